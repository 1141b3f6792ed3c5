"""What SciPy does with a few numbers for each element, srcgrad does too: a matrix of all by all would not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import interpolate, linalg, signal, stats

import srcgrad as sg
from srcgrad.tracing.functions.scipy_linalg import SINCE_1_18

SIZE = 100_000
PLACES = np.arange(SIZE + 0.0)
NUMBERS = np.sin(PLACES**1.5)

PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "detrend": lambda x: signal.detrend(x, bp=[0, 1000]),
    "rankdata": lambda x: stats.rankdata(x) * x,
    "rankdata dense": lambda x: stats.rankdata(x, "dense") * x,
    "cholesky_banded": lambda x: linalg.cholesky_banded(np.stack([0.1 * x, 2.0 + x**2])),
    "cholesky_banded lower": lambda x: linalg.cholesky_banded(np.stack([2.0 + x**2, 0.1 * x]), lower=True),
    "matmul_toeplitz": lambda x: linalg.matmul_toeplitz((x, np.cos(x)), x),
    "matmul_toeplitz complex": lambda x: abs(linalg.matmul_toeplitz(x + 1j, np.stack([x, x - 1], axis=1))),
    "periodic spline": lambda x: periodic(x)(PLACES[:-1] + 0.5),
    "spline": lambda x: interpolate.CubicSpline(PLACES, x)(PLACES[:-1] + 0.5),
}


def periodic(x: Any) -> Any:
    return interpolate.CubicSpline(PLACES, np.concatenate([x[:-1], x[:1]]), bc_type="periodic")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_hundred_thousand_numbers(name: str) -> None:
    program = PROGRAMS[name]
    expected = program(NUMBERS)
    np.testing.assert_allclose(sg.jit(program)(NUMBERS), expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())

    def loss(x: Any) -> Any:
        return np.sum(program(x) ** 2)

    step = np.cos(PLACES)
    slope = np.sum(sg.grad(loss)(NUMBERS) * step)
    np.testing.assert_allclose(slope, sg.jvp(loss, (NUMBERS,), (step,))[1], rtol=1e-7)
    if "rank" not in name:
        change = (program(NUMBERS + 1e-5 * step) - program(NUMBERS - 1e-5 * step)) / 2e-5
        scale = 2 * np.linalg.norm(expected) * np.linalg.norm(change)
        np.testing.assert_allclose(slope, 2 * np.sum(expected * change), atol=1e-7 * scale)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("size", [2, 3, 4, 9])
def test_periodic_splines_of_few_places(size: int, backend: str) -> None:
    places = np.cumsum(1.0 + 0.5 * np.sin(np.arange(size)))
    values = np.cos(np.arange(size) ** 2)

    def total(places: Any, values: Any) -> Any:
        closed = np.concatenate([values[:-1], values[:1]])
        spline = interpolate.CubicSpline(places, closed, bc_type="periodic")
        return np.sum(spline(np.linspace(1.2, 2.0, 5)) ** 2)

    check_slopes(total, (places, values), backend)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("lower", [False, True], ids=["upper", "lower"])
@pytest.mark.parametrize("shape", [(1, 4), (2, 6), (4, 7), (3, 2)], ids=str)
def test_banded_factors(shape: tuple[int, int], lower: bool, backend: str) -> None:
    """Complex ones, with what lies outside the matrix as it was."""
    rows, size = shape
    bands = np.cos(np.arange(rows * size)).reshape(shape)
    bands[0 if lower else -1] += 4 + rows
    turn = 1 + 0.25j * (np.arange(rows)[:, None] != (0 if lower else rows - 1))
    np.testing.assert_allclose(
        sg.jit(lambda a: linalg.cholesky_banded(a, lower=lower), backend=backend)(bands * turn),
        linalg.cholesky_banded(bands * turn, lower=lower),
        rtol=1e-12,
    )
    check_slopes(lambda a: np.sum(abs(linalg.cholesky_banded(a * turn, lower=lower)) ** 3), (bands,), backend)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        sg.jit(lambda a: linalg.cholesky_banded(a, lower=lower), backend=backend)(-bands)


def check_slopes(loss: Callable[..., Any], operands: tuple[Any, ...], backend: str) -> None:
    """Both modes, against differences."""
    np.testing.assert_allclose(sg.jit(loss, backend=backend)(*operands), loss(*operands), rtol=1e-11)
    steps = tuple(np.sin(1.0 + np.arange(x.size)).reshape(x.shape) for x in operands)
    ends = [loss(*[x + sign * 1e-6 * step for x, step in zip(operands, steps, strict=True)]) for sign in (1, -1)]
    slopes = sg.grad(loss, tuple(range(len(operands))), backend=backend)(*operands)
    slope = sum(np.sum(part * step) for part, step in zip(slopes, steps, strict=True))
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2e-6, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(sg.jvp(loss, operands, steps, backend=backend)[1], slope, rtol=1e-9, atol=1e-12)


METHODS = ("average", "min", "max", "dense", "ordinal")


@pytest.mark.parametrize("method", METHODS)
def test_ranks_of_equal_numbers(method: str) -> None:
    for x in (np.round(NUMBERS[:12], 1), np.round(NUMBERS[:30].reshape(5, 6)), np.zeros((0, 3)), np.zeros((3, 0))):
        for axis in (None, 0, -1):
            expected = stats.rankdata(x, method, axis=axis)
            found = sg.jit(lambda x, axis=axis: stats.rankdata(x, method, axis=axis))(x)
            np.testing.assert_array_equal(found, expected)
            assert found.dtype == expected.dtype or not x.size
    unknown = np.array([[3.0, np.nan], [1.0, 2.0]])
    ranks = sg.jit(lambda x: stats.rankdata(x, method, axis=1))
    if method == "average" or SINCE_1_18:
        np.testing.assert_array_equal(ranks(unknown), [[np.nan, np.nan], [1.0, 2.0]])
    else:
        with pytest.raises(ValueError, match="ranks of nan"):
            ranks(unknown)


@pytest.mark.parametrize("method", [None, "direct", "bilinear"])
@pytest.mark.parametrize("size", [3, 12])
def test_discrete_lyapunov_equations(size: int, method: str | None) -> None:
    a = np.cos(np.arange(size * size)).reshape(size, size) / size
    q = np.sin(np.arange(size * size)).reshape(size, size)
    solution = linalg.solve_discrete_lyapunov(a, q, method)
    np.testing.assert_allclose(sg.jit(lambda a, q: linalg.solve_discrete_lyapunov(a, q, method))(a, q), solution)
    check_slopes(lambda a, q: np.sum(linalg.solve_discrete_lyapunov(a, q, method) ** 2), (a, q), "llvm")
    with pytest.raises(ValueError, match="Unknown solver"):
        sg.jit(lambda a: linalg.solve_discrete_lyapunov(a, q, "other"))(a)


NAN = np.nan
SQUARES = {
    "nan on the diagonal": np.array([[NAN, 1.0], [1.0, 2.0]]),
    "nan beside it": np.array([[1.0, NAN], [NAN, 2.0]]),
    "imaginary": np.array([[1j]]),
    "complex nan": np.array([[NAN + 0j, 1.0], [1.0, 2.0]]),
    "empty": np.zeros((0, 0)),
    "hermitian": np.array([[0j, 1j], [-1j, 0]]),
    "near": np.array([[1.0, 2.0], [2.0 + 1e-12, 1.0]]),
}


@pytest.mark.parametrize("name", SQUARES)
def test_whether_a_matrix_is_symmetric(name: str) -> None:
    for ask in (linalg.issymmetric, linalg.ishermitian):
        for given in ({}, {"atol": 1e-9}, {"rtol": 1e-9}):
            found = sg.jit(lambda a, ask=ask, given=given: ask(a, **given))(SQUARES[name])
            assert bool(found) is ask(SQUARES[name], **given)


def test_symmetry_decides_which_derivative_there_is() -> None:
    slope = sg.grad(lambda a: np.sum(a**2) if linalg.issymmetric(a) else np.sum(a))
    np.testing.assert_array_equal(slope(np.eye(2)), 2.0 * np.eye(2))
    np.testing.assert_array_equal(slope(np.array([[1.0, 2.0], [3.0, 4.0]])), np.ones((2, 2)))
    with pytest.raises(ValueError, match="square"):
        slope(np.ones((2, 3)))
