"""Programs that compute: reductions, products, linear algebra, differences, predicates."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.tracing.array_cases import writes
from tests.tracing.function_inputs import (
    A0,
    F16,
    F32,
    I8,
    INF,
    INTS,
    MASK,
    NAN,
    SC,
    SPD,
    U8,
    B,
    C,
    E,
    M,
    N,
    S,
    T,
    V,
    W,
    Z,
)
from tests.tracing.trace_support import Case

IN_A_PLANE: list[Case] = [
    (
        "cross of vectors in a plane",
        lambda x, y: (
            np.cross(x[:, :2], y[:, 1:]),
            np.cross(x[0, :2], y[0, 1:]),
            np.cross(x[:, :2], y),
            np.cross(x, y[0, :2]),
            np.cross(x[1:], y[:2], axis=0),
        ),
        (S, SPD),
    ),
]
if np.lib.NumpyVersion(np.__version__) >= "2.5.0":  # which takes vectors of three elements only
    IN_A_PLANE.clear()


def reduced(f: Any, **options: Any) -> Any:
    return lambda x: (
        [
            f(x, **options),
            *(f(x, axis=axis, **options) for axis in (0, -1, (0, 1))),
            f(x, axis=0, keepdims=True, **options),
        ]
    )


REDUCTIONS: list[Case] = [
    *[
        (f"{f.__name__} {x.dtype}", reduced(f), (x,))
        for f in (
            np.sum,
            np.prod,
            np.mean,
            np.max,
            np.min,
            np.amax,
            np.amin,
            np.ptp,
            np.var,
            np.std,
            np.all,
            np.any,
            np.count_nonzero,
        )
        for x in (M, F32, F16, I8, C, B)
        if not (f in (np.max, np.min, np.amax, np.amin, np.ptp) and x.dtype.kind == "c")
        and not (f is np.ptp and x.dtype.kind == "b")
    ],
    ("sum empty", lambda x: (np.sum(x), np.sum(x, axis=0), np.prod(x, axis=1), np.sum(x, axis=())), (E,)),
    ("sum scalar", lambda x: (np.sum(x), x.sum(), np.mean(x), np.std(x), np.max(x), np.cumsum(x)), (SC,)),
    ("sum 0-d", lambda x: (np.sum(x), np.sum(x, keepdims=True), np.max(x, axis=())), (A0,)),
    (
        "sum dtype",
        lambda x: (
            np.sum(x, dtype=np.float32),
            np.sum(x, dtype=complex),
            np.mean(x, dtype=np.float32),
            np.cumsum(x, dtype=np.float32),
        ),
        (M,),
    ),
    ("sum int dtypes", lambda x: (np.sum(x), np.prod(x), np.cumsum(x), np.sum(x, dtype=np.int8), np.mean(x)), (U8,)),
    ("sum bool dtype", lambda x: (np.sum(x, dtype=bool), np.sum(x, axis=0), np.cumsum(x)), (B,)),
    (
        "sum initial",
        lambda x: (
            np.sum(x, initial=2.0),
            np.prod(x, axis=0, initial=3.0),
            np.max(x, initial=0.5),
            np.min(x, axis=1, initial=0.0),
        ),
        (M,),
    ),
    (
        "sum where",
        lambda x: (
            np.sum(x, where=x > 0),
            np.prod(x, where=x > 0, axis=0),
            np.mean(x, where=[True, False, True, True]),
        ),
        (M,),
    ),
    ("max where", lambda x: (np.max(x, where=x < 1, initial=-3.0), np.min(x, axis=0, where=x > 0, initial=9.0)), (M,)),
    ("max empty initial", lambda x: (np.max(x, initial=1.0), np.max(x, axis=0, initial=1.0), np.max(x, axis=1)), (E,)),
    ("all where", lambda x: (np.all(x, where=[True, False, True]), np.any(x, axis=0, where=[[True], [False]])), (B,)),
    (
        "var options",
        lambda x: (
            np.var(x, ddof=1),
            np.std(x, axis=0, ddof=1),
            np.var(x, correction=1),
            np.var(x, axis=1, where=x > -1),
            np.std(x, where=x > -1),
        ),
        (M,),
    ),
    ("var mean", lambda x: (np.var(x, axis=0, mean=np.mean(x, axis=0, keepdims=True)), np.std(x, mean=0.5)), (M,)),
    (
        "average",
        lambda x: (
            np.average(x),
            np.average(x, axis=1),
            np.average(x, axis=0, weights=[1.0, 2.0, 3.0]),
            np.average(x, weights=x**2),
            np.average(x, axis=1, keepdims=True),
        ),
        (M,),
    ),
    (
        "average returned",
        lambda x: (
            *np.average(x, axis=0, returned=True),
            *np.average(x, axis=0, weights=[1.0, 2.0, 3.0], returned=True),
            *np.average(x, returned=True),
        ),
        (M,),
    ),
    ("average int", lambda x: (np.average(x), np.average(x, weights=[1, 2, 3, 4])), (INTS,)),
    (
        "argmax",
        lambda x: (
            np.argmax(x),
            np.argmin(x, axis=0),
            np.argmax(x, axis=-1, keepdims=True),
            np.argmin(x, keepdims=True),
            x.argmax(),
        ),
        (M,),
    ),
    ("cumsum", lambda x: (np.cumsum(x), np.cumsum(x, axis=0), np.cumprod(x, axis=1), x.cumsum(-1), x.cumprod()), (M,)),
    (
        "nan",
        lambda x: [
            f(x)
            for f in (
                np.nansum,
                np.nanprod,
                np.nanmax,
                np.nanmin,
                np.nanmean,
                np.nanvar,
                np.nanstd,
                np.nancumsum,
                np.nancumprod,
            )
        ],
        (NAN,),
    ),
    (
        "nan axis",
        lambda x: [
            f(x, axis=0) for f in (np.nansum, np.nanprod, np.nanmax, np.nanmin, np.nanmean, np.nanvar, np.nanstd)
        ],
        (NAN,),
    ),
    ("nanargmax", lambda x: (np.nanargmax(x), np.nanargmin(x, axis=1)), (NAN,)),
    ("max nan", lambda x: (np.max(x), np.min(x, axis=1), np.argmax(x)), (NAN,)),
    (
        "median",
        lambda x: (np.median(x), np.median(x, axis=0), np.median(x, axis=1, keepdims=True), np.median(x, axis=(0, 1))),
        (M,),
    ),
    ("median odd", lambda x: np.median(x), (V,)),
    ("median nan", lambda x: (np.median(x), np.median(x, axis=0)), (NAN,)),
    ("median int", lambda x: np.median(x), (INTS,)),
    ("median f32", lambda x: (np.median(x), np.median(x, axis=0)), (F32,)),
    (
        "quantile",
        lambda x: (
            np.quantile(x, 0.3),
            np.quantile(x, [0.1, 0.5, 0.9]),
            np.quantile(x, 0.3, axis=1),
            np.quantile(x, [0.2, 1.0], axis=0),
            np.quantile(x, 0.4, axis=0, keepdims=True),
        ),
        (M,),
    ),
    (
        "quantile methods",
        lambda x: [np.quantile(x, 0.37, axis=0, method=m) for m in ("lower", "higher", "midpoint", "nearest")],
        (M,),
    ),
    ("percentile", lambda x: (np.percentile(x, 30), np.percentile(x, [10, 50], axis=1), np.percentile(x, 100)), (M,)),
    ("quantile f32", lambda x: (np.quantile(x, 0.3), np.percentile(x, 30.0, axis=0)), (F32,)),
    ("quantile int", lambda x: np.quantile(x, 0.3), (INTS,)),
    ("quantile nan", lambda x: np.quantile(x, [0.3, 0.6], axis=0), (NAN,)),
    ("cov", lambda x: (np.cov(x), np.cov(x, rowvar=False), np.cov(x, bias=True), np.cov(x, ddof=0)), (M,)),
    ("cov two", lambda x, y: (np.cov(x, y), np.corrcoef(x, y), np.cov(x)), (V, W)),
    ("cov complex", lambda x: np.cov(x), (C,)),
    ("corrcoef", lambda x: np.corrcoef(x), (M,)),
]
if hasattr(np, "cumulative_sum"):
    REDUCTIONS += [
        (
            "cumulative_sum",
            lambda x: (
                np.cumulative_sum(x, axis=1),
                np.cumulative_sum(x, axis=0, include_initial=True),
                np.cumulative_prod(x, axis=0, include_initial=True),
            ),
            (M,),
        ),
        ("unstack", lambda x: (np.unstack(x), np.unstack(x, axis=-1)), (M,)),
    ]

PRODUCTS: list[Case] = [
    (
        "dot",
        lambda x, y: (
            np.dot(x, y),
            x.dot(y),
            np.dot(x, 2.0),
            np.dot(x[0], y),
            np.dot(x, y[:, 0]),
            np.dot(x[0], y[:, 0]),
        ),
        (M, N),
    ),
    ("dot stacks", lambda x, y: (np.dot(x, y), np.dot(y.T, x[0].T)), (T, N)),
    ("dot dtypes", lambda x, y: (np.dot(x, y.T), np.dot(x, 2), np.dot(x, np.float64(2))), (F32, M)),
    ("dot int", lambda x: (np.dot(x, x), np.dot(x, x[0])), (I8,)),
    ("vdot", lambda x, y: (np.vdot(x, y), np.vdot(y, x)), (C, C * 1j)),
    ("inner", lambda x, y: (np.inner(x, y), np.inner(x[0], y), np.inner(x, 2.0)), (M, M + 1)),
    (
        "outer",
        lambda x, y: (np.outer(x, y), np.linalg.outer(x, y), np.multiply.outer(x, y), np.subtract.outer(x, y)),
        (V, W),
    ),
    ("outer matrices", lambda x: np.outer(x, x), (M,)),
    (
        "matmul",
        lambda x, y: (x @ y, np.matmul(x, y), x @ y[:, 0], x[0] @ y, x[0] @ y[:, 0], np.linalg.matmul(x, y)),
        (M, N),
    ),
    (
        "matmul stacks",
        lambda x, y: (x @ y, x @ y[:, 0], y.T @ x.mT, x[0] @ x.mT, x @ x.mT, x.mT[:1] @ x, x[0, 0] @ x.mT),
        (T, N),
    ),
    ("matmul broadcast", lambda x: x[:, None] @ x.mT[None], (T,)),
    ("matmul int", lambda x: x @ x, (I8,)),
    ("matmul bool", lambda x: x @ x.T, (B,)),
    ("rmatmul", lambda y: (np.ones((2, 4)) @ y, np.ones(4) @ y), (N,)),
    ("vecdot", lambda x, y: (np.vecdot(x, y), np.vecdot(x, y, axis=0), np.linalg.vecdot(x, y[0])), (C, C * 1j)),
    (
        "tensordot",
        lambda x, y: (
            np.tensordot(x, y, 1),
            np.tensordot(x, y, axes=([2], [0])),
            np.tensordot(x, x, axes=([0, 1], [0, 1])),
            np.tensordot(x, y, 0),
        ),
        (T, N),
    ),
    ("tensordot scalar", lambda x: np.tensordot(x, x, 2), (M,)),
    ("kron", lambda x, y: (np.kron(x, y), np.kron(x, y[0]), np.kron(x[0], y), np.kron(x, 2.0)), (M, N)),
    (
        "cross",
        lambda x, y: (
            np.cross(x, y),
            np.cross(x[0], y),
            np.cross(x.T, y.T, axis=0),
            np.cross(x, y, axisc=0),
            np.linalg.cross(x, y),
        ),
        (S, SPD),
    ),
    *IN_A_PLANE,
    (
        "convolve",
        lambda x, y: [
            np.convolve(p, q, mode) for p, q in ((x, y), (y, x), (x, y[:2])) for mode in ("full", "same", "valid")
        ],
        (V, np.array([1.0, -2.0, 0.5, 3.0])),
    ),
    (
        "correlate",
        lambda x, y: [
            np.correlate(p, q, mode)
            for p, q in ((x, y), (y, x), (x, y[:2]), (y[:3], x), (y[:2], x))
            for mode in ("full", "same", "valid")
        ],
        (V, np.array([1.0, -2.0, 0.5, 3.0])),
    ),
    ("correlate complex", lambda x: (np.correlate(x, x * 1j, "full"), np.correlate(x[:2], x, "same")), (Z,)),
    *[
        (f"einsum {text}", lambda *xs, text=text: np.einsum(text, *xs), arrays)
        for text, arrays in [
            ("ij->ji", (M,)),
            ("ij->", (M,)),
            ("ij->j", (M,)),
            ("ii->i", (S,)),
            ("ii", (S,)),
            ("ij", (M,)),
            ("ba", (M,)),
            ("ij,jk->ik", (M, N)),
            ("ij,jk", (M, N)),
            ("ij,jk->ki", (M, N)),
            ("ij,ij->i", (M, M + 1)),
            ("i,j->ij", (V, W)),
            ("i,i", (V, W)),
            ("i,i->i", (V, W)),
            ("aij,jk->aik", (T, N)),
            ("...ij,jk->...ik", (T, N)),
            ("...j,...j", (T, M)),
            ("ij,jk,kl->il", (M, N, M)),
            ("ij,jk,kl", (M, N, M)),
            ("i,ij,j->", (V[:3], S, V[:3])),
            ("iij->j", (np.stack([S, S + 1, S - 1]),)),
            ("ij,kl->", (M, N)),
            ("ii,ij->j", (S, S)),
            ("a,a,a->a", (V, W, V)),
            ("i...->...", (T,)),
            ("ij,j,i,ij->ij", (M, N[:, 0], N[0], M)),
            (",ij->ij", (A0, M)),
            ("i...i->...", (np.stack([T[:, :2], T[:, 1:]], -1),)),
            ("ij , jk -> ik", (M, N)),
        ]
    ],
    ("einsum lists", lambda x, y: np.einsum(x, [0, 1], y, [1, 2], [2, 0]), (M, N)),
    ("einsum broadcast", lambda x, y: np.einsum("...i,...i->...", x[:1], y), (M, M + 1)),
    ("einsum int", lambda x: (np.einsum("ij,jk", x, x), np.einsum("ii", x)), (I8,)),
    ("einsum complex", lambda x, y: np.einsum("ij,kj->ik", x, y), (C, C)),
]
if hasattr(np, "matvec"):
    PRODUCTS += [
        ("matvec", lambda x, y: (np.matvec(x, y), np.vecmat(y, x.mT)), (T, M[:2])),
        ("vecmat complex", lambda x, y: np.vecmat(x, y), (C, S)),
    ]

NORMS = [(M, (None, "fro", 1, -1, np.inf, -np.inf)), (V, (None, 1, 2, 3, 0.5, np.inf, -np.inf, 0, -1, -2))]
LINALG: list[Case] = [
    *[
        (
            f"norm {x.ndim} {order}",
            lambda x, order=order: (np.linalg.norm(x, order), np.linalg.norm(x, order, keepdims=True)),
            (x,),
        )
        for x, orders in NORMS
        for order in orders
    ],
    (
        "norm axis",
        lambda x: (
            np.linalg.norm(x, axis=0),
            np.linalg.norm(x, 1, axis=1, keepdims=True),
            np.linalg.norm(x, np.inf, axis=-1),
        ),
        (M,),
    ),
    (
        "norm 3-D",
        lambda x: (
            np.linalg.norm(x),
            np.linalg.norm(x, axis=(0, 2)),
            np.linalg.norm(x, 1, axis=(2, 0)),
            np.linalg.norm(x, np.inf, axis=(1, 2), keepdims=True),
        ),
        (T,),
    ),
    ("norm complex", lambda x: (np.linalg.norm(x), np.linalg.norm(x, 1), np.linalg.norm(x, axis=0)), (C,)),
    ("norm int", lambda x: (np.linalg.norm(x), np.linalg.norm(x, 1)), (INTS,)),
    ("norm f32", lambda x: (np.linalg.norm(x), np.linalg.norm(x, 1), np.linalg.norm(x[0], 3)), (F32,)),
    (
        "vector_norm",
        lambda x: (
            np.linalg.vector_norm(x),
            np.linalg.vector_norm(x, ord=1, axis=(0, 1)),
            np.linalg.vector_norm(x, axis=1, keepdims=True),
        ),
        (M,),
    ),
    ("matrix_norm", lambda x: (np.linalg.matrix_norm(x), np.linalg.matrix_norm(x, ord=1)), (T,)),
    ("solve", lambda a, b: (np.linalg.solve(a, b), np.linalg.solve(a, b[:, 0]), np.linalg.solve(a, b)), (SPD, M)),
    (
        "solve stacks",
        lambda a, b: (
            np.linalg.solve(a, b),
            np.linalg.solve(a, b[0]),
            np.linalg.solve(a[0], b),
            np.linalg.solve(a, b[0, :, 0]),
        ),
        (np.stack([SPD, SPD + 1]), T),
    ),
    ("solve int", lambda a: np.linalg.solve(a, a[0]), (I8,)),
    ("inv", lambda a: (np.linalg.inv(a), np.linalg.inv(np.stack([a, a * 2]))), (SPD,)),
    (
        "cholesky",
        lambda a: (np.linalg.cholesky((a + a.T) / 2), np.linalg.cholesky(np.stack([a + a.T, a @ a.T]))),
        (SPD,),
    ),
    ("matrix_power", lambda a: [np.linalg.matrix_power(a, n) for n in (0, 1, 2, 3, 5, 6, -2)], (SPD,)),
    (
        "multi_dot",
        lambda x, y: (
            np.linalg.multi_dot([x, y, x]),
            np.linalg.multi_dot([x[0], y, x, y[:, 0]]),
            np.linalg.multi_dot([x, y]),
        ),
        (M, N),
    ),
]

DIFFERENCES: list[Case] = [
    (
        "diff",
        lambda x: (
            np.diff(x),
            np.diff(x, axis=0),
            np.diff(x, n=2),
            np.diff(x, prepend=0.0),
            np.diff(x, append=x[:, :1], axis=1),
            np.diff(x, 0),
        ),
        (M,),
    ),
    ("diff bool", lambda x: np.diff(x), (B,)),
    ("diff int", lambda x: np.diff(x), (U8,)),
    ("ediff1d", lambda x: (np.ediff1d(x), np.ediff1d(x, to_end=9.0, to_begin=[1.0, 2.0])), (M,)),
    (
        "gradient",
        lambda x: (
            np.gradient(x),
            np.gradient(x, 0.5),
            np.gradient(x, edge_order=2),
            np.gradient(x, np.array([0.0, 1.0, 1.5, 3.0, 3.5])),
        ),
        (V,),
    ),
    (
        "gradient 2-D",
        lambda x: (
            np.gradient(x),
            np.gradient(x, axis=1),
            np.gradient(x, 2.0, [0.0, 1.0, 3.0, 4.0]),
            np.gradient(x, axis=(1, 0)),
        ),
        (M,),
    ),
    ("gradient order 2", lambda x: np.gradient(x, np.array([0.0, 1.0, 1.5, 3.0, 3.5]), edge_order=2), (V,)),
    ("gradient dtypes", lambda x: np.gradient(x), (INTS,)),
    ("gradient f32", lambda x: np.gradient(x[0]), (F32,)),
    (
        "trapezoid",
        lambda y: (
            np.trapezoid(y),
            np.trapezoid(y, dx=0.5, axis=0),
            np.trapezoid(y, [0.0, 1.0, 3.0, 4.0]),
            np.trapezoid(y, [0.0, 1.0, 3.0], axis=0),
        ),
        (M,),
    ),
    ("trapezoid x", lambda y, x: np.trapezoid(y, x), (V, W)),
    (
        "interp",
        lambda x: (
            np.interp(x, [-1.0, 0.0, 1.0], [0.0, 1.0, 5.0]),
            np.interp(x, [-0.5, 0.5], [0.0, 1.0], left=-7.0, right=9.0),
            np.interp(x[0], [-1.0, 0.0], [1.0, 2.0]),
        ),
        (V,),
    ),
    ("interp fp", lambda x, f: np.interp(x, [-1.0, 0.0, 1.0, 2.0, 3.0], f), (V, W)),
    (
        "interp nodes",
        lambda n, x: (np.interp(n, n, n * 2), np.interp([np.nan, 9.0, 0.5], n, n), np.interp(x, n[:1], n[:1])),
        (np.array([0.0, 1.0, 2.0]), V),
    ),
    ("unwrap", lambda x: (np.unwrap(x * 4), np.unwrap(x, period=1.0), np.unwrap(x, discont=4.0)), (V,)),
    ("polyval", lambda p, x: (np.polyval(p, x), np.polyval(p, 2.0), np.polyval([1, 2, 3], x)), (V, W)),
    (
        "poly",
        lambda p, q: (
            np.polyder(p),
            np.polyder(p, 2),
            np.polyint(p),
            np.polyint(p, 2, [1.0, 2.0]),
            np.polyadd(p, q[:3]),
            np.polysub(p[:2], q),
        ),
        (V, W),
    ),
    (
        "bincount",
        lambda x: (np.bincount([0, 1, 1, 3, 0], x), np.bincount([0, 1, 1, 3, 0], weights=x, minlength=6)),
        (V,),
    ),
]

PREDICATES: list[Case] = [
    (
        "allclose",
        lambda x: (np.allclose(x, x), np.array_equal(x, x + 1), np.array_equiv(x, x[None]), np.array_equal(x, x[0])),
        (M,),
    ),
    ("isclose", lambda x, y: (np.isclose(x, y), np.isclose(x, x + 1e-9), np.isclose(x, 1.0, atol=1.0)), (V, W)),
    ("isclose nan", lambda x: (np.isclose(x, x), np.isclose(x, x, equal_nan=True)), (INF,)),
    ("isposinf", lambda x: (np.isposinf(x), np.isneginf(x), np.isreal(x), np.iscomplex(x)), (INF,)),
    ("isreal", lambda x: (np.isreal(x), np.iscomplex(x)), (Z,)),
    (
        "static",
        lambda x: (
            np.shape(x),
            np.ndim(x),
            np.size(x),
            np.size(x, 0),
            np.iscomplexobj(x),
            np.isrealobj(x),
            len(x),
            x.shape,
            x.ndim,
            x.size,
            x.nbytes,
            x.itemsize,
        ),
        (M,),
    ),
    ("result_type", lambda x: str(np.result_type(x, np.float32)), (M,)),
    ("can_cast", lambda x: (np.can_cast(x.dtype, np.float32), np.common_type(x).__name__), (M,)),
    ("may_share_memory", lambda x: (np.may_share_memory(x, x[1:]), np.shares_memory(x, x.copy())), (M,)),
]

CONCRETE: list[Case] = [
    ("polymul", lambda p, q: np.polymul(p, q), (V, W)),
    ("polymul drops leading zeros", lambda p, q: np.polymul(p * [0, 0, 1, 1, 1], q), (V, W)),
    ("polymul of zeros", lambda p, q: np.polymul(p * 0, q), (V, W)),
    (
        "nonzero",
        lambda x: (np.nonzero(x > 0), np.flatnonzero(x > 0), np.argwhere(x > 0), np.where(x > 0), (x > 0).nonzero()),
        (M,),
    ),
    ("boolean index", lambda x: (x[x > 0], np.extract(x > 0, x), np.compress(x[0] > 0, x, axis=1)), (M,)),
    (
        "unique",
        lambda x: (
            np.unique(np.round(x)),
            *np.unique(np.round(x), return_index=True, return_counts=True),
            np.unique(np.round(x).astype(int)),
        ),
        (V,),
    ),
    ("place", writes(lambda y: np.place(y, y > 0, [1.0, 2.0])), (V,)),
    ("trim_zeros", lambda x: np.trim_zeros(x * MASK), (V,)),
    ("real_if_close", lambda x: np.real_if_close(x * 0 + 1.0), (C,)),
    ("bool", lambda x: x[0] if x.sum() > 100 else x[1], (M,)),
    ("index", lambda x: (x[int(np.argmax(x))], x[: int(np.argmax(x)) + 1]), (V,)),
]
