"""Programs of linear algebra: (label, function, arguments). ``L`` calls SciPy, or on traced arrays its rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from srcgrad.tracing.functions import decompositions, matrix_functions, scipy_linalg, scipy_structured
from srcgrad.tracing.tracer import FUNCTIONS, Tracer
from tests.tracing.trace_support import Case, leaves

RULES = (decompositions, matrix_functions, scipy_linalg, scipy_structured)
"""The modules whose import registers the rules of ``scipy.linalg``."""


class Dispatching:
    """``scipy.linalg``, whose functions do not dispatch on their arguments."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = getattr(scipy.linalg, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            traced = any(isinstance(leaf, Tracer) for leaf in leaves(list(args)))
            return FUNCTIONS[function](*args, **kwargs) if traced else function(*args, **kwargs)

        return call


L: Any = Dispatching()
random = np.random.default_rng(7)
A = random.normal(size=(4, 4)) + 2 * np.eye(4)
TALL = random.normal(size=(5, 3))
WIDE = TALL.T.copy()
C = A + 1j * random.normal(size=(4, 4))
S = random.normal(size=(2, 3, 3))
P, PC = A @ A.T, C @ C.conj().T
B, V = random.normal(size=(4, 2)), random.normal(size=4)
F32 = A.astype(np.float32)
INTS = np.arange(9).reshape(3, 3) + 9 * np.eye(3, dtype=int)
ONE, EMPTY = A[:1, :1].copy(), np.zeros((0, 0))
CYCLE = np.array([[0.5, 1.0, 3.0], [4.0, 0.25, 0.5], [1.0, 5.0, -0.5]])
"""Its rows are exchanged in a cycle, which is not its own inverse."""
SMALL = random.normal(size=(2, 2)) / 10 + 3 * np.eye(2)

ORDERS = (None, 2, -2, 1, -1, np.inf, -np.inf, "fro")

NUMPY: list[Case] = [
    ("det", lambda x: np.linalg.det(x), (A,)),
    ("det stack", lambda x: np.linalg.det(x), (S,)),
    ("det complex", lambda x: np.linalg.det(x), (C,)),
    ("det empty", lambda x: (np.linalg.det(x), np.linalg.inv(x), np.linalg.slogdet(x)), (EMPTY,)),
    ("det int", lambda x: (np.linalg.det(x), np.linalg.inv(x), np.linalg.slogdet(x)), (INTS,)),
    ("det f32", lambda x: (np.linalg.det(x), np.linalg.slogdet(x)), (F32,)),
    ("slogdet", lambda x: (np.linalg.slogdet(x), np.linalg.slogdet(x).logabsdet), (A,)),
    ("slogdet complex", lambda x: np.linalg.slogdet(x), (C,)),
    ("slogdet stack", lambda x: np.linalg.slogdet(x), (S,)),
    ("inv", lambda x: (np.linalg.inv(x), np.linalg.tensorinv(x.reshape(2, 2, 4))), (A,)),
    ("matrix_power", lambda x: [np.linalg.matrix_power(x, n) for n in (-3, -1, 0, 1, 4)], (A,)),
    *[(f"cond {p} {x.ndim}", lambda x, p=p: np.linalg.cond(x, p), (x,)) for p in ORDERS for x in (A, S)],
    ("cond complex", lambda x: (np.linalg.cond(x, 1), np.linalg.cond(x, "fro")), (C,)),
    ("cond singular", lambda x: (np.linalg.cond(x, 1), np.linalg.cond(x * np.nan, 1)), (np.ones((2, 2)),)),
    *[
        (f"norm {order} {len(x)}", lambda x, order=order: np.linalg.norm(x, order, (-2, -1)), (x,))
        for order in (*ORDERS, "nuc")
        for x in (A, S, TALL)
    ],
    *[
        (f"qr {mode} {name}", lambda x, mode=mode: np.linalg.qr(x, mode), (x,))
        for mode in ("reduced", "complete", "r")
        for name, x in (("square", A), ("tall", TALL), ("wide", WIDE), ("stack", S), ("complex", C), ("f32", F32))
    ],
    ("qr names", lambda x: (np.linalg.qr(x).Q, np.linalg.qr(x).R), (A,)),
    *[
        (f"pinv {name}", lambda x: (np.linalg.pinv(x), np.linalg.pinv(x, rtol=None), np.linalg.pinv(x, 1e-3)), (x,))
        for name, x in (("square", A), ("tall", TALL), ("wide", WIDE), ("stack", S), ("complex", C))
    ],
    ("pinv f32", lambda x: np.linalg.pinv(x, 1e-5), (F32,)),
    ("pinv Hermitian", lambda x: np.linalg.pinv(x + np.conj(x.mT), hermitian=True), (C,)),
    *[
        (f"lstsq {name} {b.ndim}", lambda a, b: np.linalg.lstsq(a, b), (a, b))
        for name, a in (("square", A), ("tall", TALL), ("wide", WIDE), ("complex", C))
        for b in (np.ones(len(a)), random.normal(size=(len(a), 2)))
    ],
    ("lstsq rank", lambda a, b: np.linalg.lstsq(a, b)[2:3], (np.ones((3, 2)), np.arange(3.0))),
    ("lstsq rcond", lambda a, b: np.linalg.lstsq(a, b, rcond=-1), (TALL, np.ones(5))),
]

STRUCTURES = (None, "gen", "diagonal", "tridiagonal", "upper triangular", "lower triangular", "sym", "her", "pos")

SYSTEMS: list[Case] = [
    *[
        (f"solve {kind} {lower} {name}", lambda a, b, k=kind, low=lower: L.solve(a, b, assume_a=k, lower=low), (a, B))
        for kind in STRUCTURES
        for lower in (False, True)
        for name, a in (("real", P), ("complex", PC))
    ],
    *[
        (f"inv {kind} {lower}", lambda a, k=kind, low=lower: L.inv(a, assume_a=k, lower=low), (PC,))
        for kind in (None, "upper triangular", "lower triangular", "sym", "her", "pos")
        for lower in (False, True)
    ],
    ("inv diagonal", lambda a: L.inv(a * np.eye(4), assume_a="diagonal"), (A,)),
    ("solve vector", lambda a, b: (L.solve(a, b), L.solve(a, b, transposed=True)), (A, V)),
    ("solve transposed", lambda a, b: L.solve(a, b, assume_a="lower triangular", transposed=True), (A, V)),
    ("solve int", lambda a: L.solve(a, a[0]), (INTS,)),
    *[
        (
            f"solve_triangular {trans} {lower} {unit}",
            lambda a, b, t=trans, low=lower, u=unit: L.solve_triangular(a, b, trans=t, lower=low, unit_diagonal=u),
            (C, B),
        )
        for trans in (0, 1, 2, "N", "T", "C")
        for lower in (False, True)
        for unit in (False, True)
    ],
    ("solve_triangular vector", lambda a, b: L.solve_triangular(a, b), (A, V)),
    *[
        (f"cholesky {low}", lambda a, low=low: (L.cholesky(a, lower=low), L.cho_factor(a, lower=low)[0]), (PC,))
        for low in (False, True)
    ],
    *[
        (f"cho_solve {low} {b.ndim}", lambda a, b, low=low: L.cho_solve(L.cho_factor(a, lower=low), b), (PC, b))
        for low in (False, True)
        for b in (B, V)
    ],
    ("det", lambda a: L.det(a), (A,)),
    ("det stack", lambda a: L.det(a), (S,)),
    ("norm", lambda a: (L.norm(a), L.norm(a, 2), L.norm(a, "nuc"), L.norm(a, 1, axis=0)), (A,)),
    ("solve_sylvester", lambda a, b, q: L.solve_sylvester(a, b, q), (A, SMALL, B)),
    ("solve_sylvester complex", lambda a, b, q: L.solve_sylvester(a, b, q), (C, SMALL + 0j, B + 0j)),
]

FACTORS: list[Case] = [
    *[
        (f"lu {name}", lambda a: (L.lu(a), L.lu(a, permute_l=True), L.lu(a, p_indices=True)), (a,))
        for name, a in (("real", A), ("tall", TALL), ("wide", WIDE), ("complex", C), ("stack", S), ("1x1", ONE))
    ],
    *[
        (f"lu_factor {name}", lambda a: L.lu_factor(a), (a,))
        for name, a in (("real", A), ("tall", TALL), ("wide", WIDE), ("complex", C), ("f32", F32))
    ],
    *[
        (f"lu_solve {trans} cycle", lambda a, b, t=trans: L.lu_solve(L.lu_factor(a), b, trans=t), (CYCLE, V[:3]))
        for trans in (0, 1, 2)
    ],
    *[
        (f"lu_solve {trans} {b.ndim}", lambda a, b, t=trans: L.lu_solve(L.lu_factor(a), b, trans=t), (C, b))
        for trans in (0, 1, 2)
        for b in (B, V)
    ],
    *[
        (f"qr {mode} {name}", lambda a, mode=mode: L.qr(a, mode=mode), (a,))
        for mode in ("full", "economic", "r")
        for name, a in (("real", A), ("tall", TALL), ("wide", WIDE), ("complex", C))
    ],
    *[
        (f"qr {mode} {name} of sorted columns", lambda a, mode=mode: L.qr(a, mode=mode, pivoting=True), (a,))
        for mode in ("full", "economic", "r")
        for name, a in (("real", A), ("tall", TALL), ("wide", WIDE), ("complex", C), ("float32", F32))
    ],
    *[
        (
            f"pinv above {name}",
            lambda a: (L.pinv(a, atol=1e-3), *L.pinv(a, atol=0.2, rtol=0.4, return_rank=True), L.pinv(a, atol=0.0)),
            (a,),
        )
        for name, a in (("real", A), ("tall", TALL), ("wide", WIDE), ("complex", C))
    ],
    *[
        (f"pinv {name}", lambda a: (L.pinv(a), L.pinv(a, rtol=1e-3), L.pinv(a, return_rank=True)), (a,))
        for name, a in (("real", A), ("tall", TALL), ("wide", WIDE), ("complex", C))
    ],
    *[
        (f"lstsq {name} {b.ndim}", lambda a, b: (L.lstsq(a, b), L.lstsq(a, b, lapack_driver="gelsy")[:3]), (a, b))
        for name, a in (("square", A), ("tall", TALL), ("wide", WIDE), ("complex", C))
        for b in (np.ones(len(a)), random.normal(size=(len(a), 2)))
    ],
]

MATRIX_FUNCTIONS: list[Case] = [
    *[
        (f"{name} {a.dtype}", lambda a, name=name: getattr(L, name)(a), (a,))
        for name in ("expm", "logm", "sqrtm", "cosm", "sinm", "tanm", "coshm", "sinhm", "tanhm")
        for a in (P / 8, PC / 8)
    ],
    ("expm stack", lambda a: L.expm(a), (S,)),
    ("expm int", lambda a: L.expm(a // 9), (INTS,)),
    ("fractional_matrix_power", lambda a: [L.fractional_matrix_power(a, t) for t in (0.3, -1.7, 2)], (P,)),
    ("expm_frechet", lambda a, e: (L.expm_frechet(a, e), L.expm_frechet(a, e, compute_expm=False)), (A / 2, P)),
    ("empty", lambda a: (L.expm(a), L.sqrtm(a), L.inv(a)), (EMPTY,)),
]

V5 = random.normal(size=5)
LOPSIDED = random.normal(size=(4, 5)) + np.array([[0], [0], [9], [0]])
BANDS = np.stack([random.random(5) + 6, random.random(5)])
WIDE5 = np.array([9.0, 0.0, 0.0, 0.0, 0.0])
MODES = ("full", "same", "valid")
STRUCTURED: list[Case] = [
    ("toeplitz", lambda c, r: (L.toeplitz(c), L.toeplitz(c, r)), (V, V[:3] + 1)),
    ("toeplitz complex", lambda c: L.toeplitz(c), (V * (1 + 2j),)),
    ("hankel", lambda c, r: (L.hankel(c), L.hankel(c, r)), (V, V[:3] + 1)),
    ("circulant", lambda c: L.circulant(c), (V,)),
    (
        "solve_banded",
        lambda a, b: L.solve_banded((1, 2), a, b),
        (LOPSIDED, V5),
    ),
    ("solveh_banded", lambda a, b: [L.solveh_banded(a[::s], b, lower=s > 0) for s in (1, -1)], (BANDS, V5)),
    ("eig_banded", lambda a: (L.eig_banded(a, lower=True, eigvals_only=True), abs(L.eig_banded(a, True)[1])), (BANDS,)),
    ("eigh_tridiagonal", lambda d, e: L.eigh_tridiagonal(d, e, eigvals_only=True), (V5 * 3, V5[1:])),
    (
        "solve_circulant",
        lambda c, b: (L.solve_circulant(c, b), L.solve_circulant(c - np.mean(c), b, "lstsq")),
        (V5, V5),
    ),
    ("solve_toeplitz", lambda c, b: (L.solve_toeplitz(c, b), L.solve_toeplitz((c, c[::-1] + 9), b)), (V5 + WIDE5, V5)),
    ("matmul_toeplitz", lambda c, x: (L.matmul_toeplitz(c, x), L.matmul_toeplitz((c, c[:3]), x[:3])), (V5, V5)),
    ("lyapunov", lambda a, q: (L.solve_continuous_lyapunov(a, q), L.solve_discrete_lyapunov(a / 9, q)), (A, P)),
    (
        "lyapunov complex",
        lambda a, q: (L.solve_continuous_lyapunov(a, q), L.solve_discrete_lyapunov(a / 9, q)),
        (C, PC),
    ),
    ("companion", lambda a: L.companion(a), (V + 2,)),
    ("khatri_rao", lambda a, b: L.khatri_rao(a, b), (A[:, :3], TALL)),
    ("fiedler", lambda a: L.fiedler(a), (V,)),
    ("leslie", lambda f, s: L.leslie(f, s), (V5, V5[1:])),
    ("convolution_matrix", lambda a: [L.convolution_matrix(a, n, m) for n in (3, 9) for m in MODES], (V5,)),
    ("block_diag", lambda a, b, c: L.block_diag(a, b, c, a[0, 0]), (A, TALL, V)),
]

SCIPY = [*SYSTEMS, *FACTORS, *MATRIX_FUNCTIONS, *STRUCTURED]

HERMITIAN = ("cholesky", "cho_solve", "solve pos", "inv pos")
"""Their derivatives are those on Hermitian matrices, which differences of all elements are not."""
