"""Routines of LAPACK and BLAS, called as SciPy gives them: values, derivatives, reports of failure."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy.linalg import blas, get_blas_funcs, get_lapack_funcs, lapack

import srcgrad as sg

Array = np.ndarray[Any, Any]
Program = Callable[..., Any]
RANDOM = np.random.default_rng(3)


def numbers(*shape: int, letter: str = "d") -> Array:
    found = RANDOM.normal(size=shape)
    return found + 1j * RANDOM.normal(size=shape) if letter == "z" else found


def hermitian(x: Any) -> Any:
    return (x + np.conj(x.T)) / 2


def solvers(letter: str) -> Iterator[tuple[str, Program, tuple[Array, ...]]]:
    """Programs whose results have no freedom: of factors, what depends on no signs."""
    square, right, vector = numbers(4, 4, letter=letter) + 4 * np.eye(4), numbers(4, 2, letter=letter), numbers(4)
    vector = vector + 0 * right[:, 0]
    definite = square @ np.conj(square.T)

    def named(name: str) -> Any:
        return getattr(lapack, letter + name)

    yield "gesv", lambda a, b: named("gesv")(a, b)[2:], (square, right)
    yield "gesv, vector", lambda a, b: named("gesv")(a, b), (square, vector)
    yield "gtsv", lambda a, b, c: named("gtsv")(b[1:], a, c[:-1], b)[1:], (vector + 5, vector, vector - 1)
    yield "gtsv, columns", lambda a, b: named("gtsv")(a[1:], a + 5, a[:-1], b, overwrite_b=1)[3], (vector, right)
    yield "getrf", lambda a: named("getrf")(a), (square,)
    packed, pivots, _ = named("getrf")(square)
    yield "getri", lambda a: named("getri")(a, pivots), (packed,)
    for trans in range(3):
        yield f"getrs {trans}", lambda a, b, t=trans: named("getrs")(a, pivots, b, t), (packed, right)
    for lower in (0, 1):
        yield f"posv {lower}", lambda a, b, k=lower: named("posv")(hermitian(a), b, lower=k), (definite, right)
        yield f"potrf {lower}", lambda a, k=lower: named("potrf")(hermitian(a), k), (definite,)
        yield f"potrf all {lower}", lambda a, k=lower: named("potrf")(hermitian(a), lower=k, clean=0), (definite,)
        factor = named("potrf")(definite, lower)[0]
        yield f"potrs {lower}", lambda a, b, k=lower: named("potrs")(a, b, k), (factor, right)
        if letter == "d":  # of complex factors the diagonal is taken as real
            yield f"potri {lower}", lambda a, k=lower: named("potri")(a, k), (factor,)
        kind = "syev" if letter == "d" else "heev"
        yield f"{kind} {lower}", lambda a, k=lower, n=kind: named(n)(hermitian(a), 0, k)[0], (definite,)
        yield f"{kind}d {lower}", lambda a, k=lower, n=kind: named(n + "d")(hermitian(a), 1, k)[0], (definite,)
        for unit in (0, 1):
            yield f"trtri {lower}{unit}", lambda a, k=lower, u=unit: named("trtri")(a, k, u), (square,)
            for trans in range(3):
                options = {"lower": lower, "trans": trans, "unitdiag": unit}
                yield f"trtrs {lower}{unit}{trans}", lambda a, b, o=options: named("trtrs")(a, b, **o), (square, right)
    for name in ("gesdd", "gesvd"):
        yield name, lambda a, n=name: named(n)(a, 0)[1], (square[:, :3],)
        yield f"{name}, product", lambda a, n=name: of_parts(*named(n)(a, full_matrices=0)), (square[:, :3],)


def of_parts(u: Any, s: Any, vh: Any, info: Any) -> Any:
    return (u * s**2) @ vh


def products(letter: str) -> Iterator[tuple[str, Program, tuple[Array, ...]]]:
    square, right, x, y = (numbers(*shape, letter=letter) for shape in ((4, 4), (4, 2), (4,), (4,)))

    def named(name: str) -> Any:
        return getattr(blas, letter + name)

    real = {"d": "d", "z": "dz"}[letter]
    for name in ("dot",) if letter == "d" else ("dotu", "dotc"):
        yield name, lambda a, b, n=name: named(n)(a, b), (x, y)
    for name in ("nrm2", "asum"):
        yield name, lambda a, n=name: getattr(blas, real + n)(a), (x,)
    for name in ("ger",) if letter == "d" else ("geru", "gerc"):
        yield name, lambda a, b, c, n=name: named(n)(1.5, b, c, a=a), (square, x, y)
    for trans in range(3):
        yield f"gemv {trans}", lambda a, b, c, t=trans: named("gemv")(1.5, a, b, 0.5, c, 0, 1, 0, 1, t), (square, x, y)
    for one, two in itertools.product(range(3), range(3)):
        yield (
            f"gemm {one}{two}",
            lambda a, b, s=one, t=two: named("gemm")(1.5, a, b, 0.5, a - b, s, trans_b=t),
            (square, square + 1),
        )
    kinds = ("sy",) if letter == "d" else ("sy", "he")
    for kind, lower in itertools.product(kinds, (0, 1)):
        if (letter, kind) != ("z", "sy"):  # not in BLAS
            yield f"{kind}mv {lower}", lambda a, b, k=kind, o=lower: named(k + "mv")(1.5, a, b, lower=o), (square, x)
        options = {"lower": lower, "side": lower}
        other = right.T if lower else right
        yield f"{kind}mm {lower}", lambda a, b, k=kind, o=options: named(k + "mm")(1.5, a, b, **o), (square, other)
        for trans in (0, 2 if kind == "he" else 1):
            given = {"lower": lower, "trans": trans}
            yield f"{kind}rk {lower}{trans}", lambda a, k=kind, o=given: named(k + "rk")(1.5, a, **o), (square,)
    yield "syrk, added", lambda a: named("syrk")(1.5, a, 0.5, a.T + 1), (square,)
    for lower, trans, diag in itertools.product((0, 1), range(3), (0, 1)):
        options = {"lower": lower, "trans": trans, "diag": diag}
        for name in ("trmv", "trsv"):
            yield (
                f"{name} {lower}{trans}{diag}",
                lambda a, b, n=name, o=options: named(n)(a, b, **o),
                (square + 4 * np.eye(4), x),
            )
        for name, side in itertools.product(("trmm", "trsm"), (0, 1)):
            sides = {"side": side, "lower": lower, "trans_a": trans, "diag": diag}
            yield (
                f"{name} {side}{lower}{trans}{diag}",
                lambda a, b, n=name, o=sides: named(n)(1.5, a, b, **o),
                (square + 4 * np.eye(4), right.T if side else right),
            )


CASES = {
    f"{letter}{name}": (program, operands)
    for letter in "dz"
    for name, program, operands in (*solvers(letter), *products(letter))
}


def parts(found: Any) -> list[Any]:
    return list(found) if isinstance(found, (tuple, list)) else [found]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", CASES)
def test_a_routine_has_its_values_and_derivatives(name: str, backend: str) -> None:
    program, operands = CASES[name]
    expected = parts(program(*operands))
    for part, wanted in zip(parts(sg.jit(program, backend=backend)(*operands)), expected, strict=True):
        assert np.shape(part) == np.shape(wanted)
        np.testing.assert_allclose(part, wanted, rtol=1e-9, atol=1e-12)

    moving = [k for k, part in enumerate(expected) if np.asarray(part).dtype.kind in "fc"]

    def smooth(*args: Any) -> Any:
        found = parts(program(*args))
        return sum(np.sum(np.abs(found[k]) ** 2) for k in moving)

    gradients = sg.grad(smooth, tuple(range(len(operands))), backend=backend)(*operands)
    for k, operand in enumerate(operands):
        step = 1e-6 * numbers(*operand.shape, letter=name[0])
        ends = [smooth(*operands[:k], operand + sign * step, *operands[k + 1 :]) for sign in (1, -1)]
        slope = np.sum(gradients[k] * step).real  # for complex operands the gradient is conjugated
        np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2, rtol=2e-6, atol=1e-12 * abs(ends[0]))


def test_a_routine_that_fails_says_so_as_lapack_does() -> None:
    """Which paths a caller takes then, and no error."""

    def likelihood(k: Any, y: Any) -> Any:
        factor, info = lapack.dpotrf(k, lower=1)
        if info != 0:
            return -np.inf
        return y @ lapack.dpotrs(factor, y, lower=1)[0]

    def solution(d: Any) -> Any:
        *_, x, info = lapack.dgtsv(np.zeros(2), d, np.zeros(2), np.ones(3))
        return np.sum(d) if info > 0 else np.sum(x)

    k, y = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([1.0, -1.0])
    value, slope = sg.value_and_grad(likelihood)(k, y)
    x = np.linalg.solve(k, y)
    np.testing.assert_allclose(value, y @ x)
    np.testing.assert_allclose(slope, -np.outer(x, x))
    assert sg.jit(likelihood)(-k, y) == -np.inf
    np.testing.assert_allclose(sg.grad(solution)(np.array([1.0, 2.0, 4.0])), [-1.0, -0.25, -0.0625])
    np.testing.assert_array_equal(sg.grad(solution)(np.array([1.0, 0.0, 4.0])), 1.0)
    assert sg.jit(lambda a: lapack.dgetrf(a)[2])(np.diag([1.0, 0.0, 2.0])) == 2
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        sg.jit(lambda a: lapack.dgesv(a, y)[2])(np.zeros((2, 2)))


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
def test_routines_that_are_chosen_by_dtype_are_traced_once() -> None:
    def solve(a: Any, b: Any) -> Any:
        gesv, potrf = get_lapack_funcs(("gesv", "potrf"), (a, b))
        gemm = get_blas_funcs("gemm", (a, a))
        return np.sum(gesv(a, b)[2]) + np.sum(potrf(gemm(1.0, a, a, trans_b=1))[0])

    a, b = np.array([[2.0, 0.5], [0.25, 1.0]]), np.array([1.0, -1.0])
    slope = sg.grad(solve)
    for scale in (1.0, 2.0):
        step = 1e-6 * np.array([[1.0, -2.0], [0.5, 0.25]])
        expected = (solve(scale * a + step, b) - solve(scale * a - step, b)) / 2
        np.testing.assert_allclose(np.sum(slope(scale * a, b) * step), expected, rtol=1e-7)
    single = sg.jit(lambda a: get_blas_funcs("gemm", (a,))(1.0, a, a))(a.astype(np.float32))
    assert single.dtype == np.float32


def test_a_call_that_a_routine_refuses_is_its_own_error() -> None:
    a = np.eye(2)
    with pytest.raises(TypeError, match="missing required argument 'b'"):
        sg.grad(lambda a: np.sum(lapack.dgesv(a)[2]))(a)
    with pytest.raises(TypeError, match=r"'other' is an invalid keyword|unexpected keyword argument 'other'"):
        sg.grad(lambda a: np.sum(lapack.dgesv(a, a, other=1)[2]))(a)
    with pytest.raises(sg.SrcgradError, match=r"scipy\.linalg\.blas\.dgemv with incx=2 is not supported"):
        sg.grad(lambda a: np.sum(blas.dgemv(1.0, a, a.reshape(-1), incx=2)))(a)
