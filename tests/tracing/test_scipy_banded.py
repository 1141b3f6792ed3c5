"""Systems of banded matrices: solutions and derivatives are those of dense ones, in memory for the bands alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import srcgrad as sg

Array = np.ndarray[Any, Any]
SHAPES = (
    (1, 1, 7, 0), (1, 1, 2, 3), (2, 1, 6, 2), (0, 2, 5, 0), (3, 0, 5, 1), (0, 0, 4, 0), (1, 1, 1, 2), (4, 5, 20, 2),
)  # fmt: skip
"""Bands below and above, rows, and columns of b, or 0 for one vector."""


def numbers(*shape: int, is_complex: bool) -> Array:
    random = np.random.default_rng(sum(shape))
    found = random.normal(size=shape)
    return found + 1j * random.normal(size=shape) if is_complex else found


def dense(bands: Any, above: int) -> Any:
    rows, size = bands.shape
    total: Any = np.zeros((size, size))
    for row in range(rows):
        k = above - row
        if abs(k) < size:
            total = total + np.diag(bands[row, max(k, 0) : size + min(k, 0)], k)
    return total


def agree(f: Callable[..., Any], of_dense: Callable[..., Any], operands: list[Array], backend: str) -> None:
    """Value, gradient, and the second derivative along a direction: forward mode over reverse mode."""
    np.testing.assert_allclose(sg.jit(f, backend=backend)(*operands), f(*operands), rtol=1e-10)
    places = tuple(range(len(operands)))
    along = [numbers(*x.shape, is_complex=np.iscomplexobj(x)) for x in operands]

    def loss(g: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: np.sum(np.abs(g(*args)) ** 2)

    def twice(g: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: sg.jvp(sg.grad(loss(g), places), args, tuple(along), backend=backend)

    for result, expected in zip(twice(f)(*operands), twice(of_dense)(*operands), strict=True):
        for part, other in zip(result, expected, strict=True):
            np.testing.assert_allclose(part, other, rtol=1e-9, atol=1e-9 * np.abs(other).max(initial=0))


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("is_complex", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_banded_systems_are_those_of_the_dense_matrix(
    shape: tuple[int, int, int, int], is_complex: bool, backend: str
) -> None:
    below, above, size, columns = shape
    bands = numbers(below + above + 1, size, is_complex=is_complex)
    bands[above] += 8
    right = numbers(size, *[columns] * (columns > 0), is_complex=is_complex)
    agree(
        lambda ab, b: scipy.linalg.solve_banded((below, above), ab, b),
        lambda ab, b: np.linalg.solve(dense(ab, above), b),
        [bands, right],
        backend,
    )


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("is_complex", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("lower", [False, True], ids=["upper", "lower"])
@pytest.mark.parametrize("shape", [(1, 6, 0), (2, 7, 2), (0, 4, 1), (3, 3, 2)], ids=str)
def test_definite_banded_systems_are_those_of_the_dense_matrix(
    shape: tuple[int, int, int], lower: bool, is_complex: bool, backend: str
) -> None:
    above, size, columns = shape
    bands = numbers(above + 1, size, is_complex=is_complex)
    diagonal = 0 if lower else above
    bands[diagonal] = bands[diagonal].real + 12
    right = numbers(size, *[columns] * (columns > 0), is_complex=is_complex)

    def whole(ab: Any) -> Any:
        half = dense(ab, 0 if lower else above)
        rest = np.tril(half, -1) if lower else np.triu(half, 1)
        return rest + np.conj(rest.T) + np.diag(np.real(np.diag(half)))

    agree(
        lambda ab, b: scipy.linalg.solveh_banded(ab, b, lower=lower),
        lambda ab, b: np.linalg.solve(whole(ab), b),
        [bands, right],
        backend,
    )
    factor = scipy.linalg.cholesky_banded(bands, lower=lower)

    def of_factor(cb: Any) -> Any:
        half = dense(cb, 0 if lower else above)
        return half @ np.conj(half.T) if lower else np.conj(half.T) @ half

    agree(
        lambda cb, b: scipy.linalg.cho_solve_banded((cb, lower), b),
        lambda cb, b: np.linalg.solve(of_factor(cb), b),
        [factor, right],
        backend,
    )


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_the_memory_of_a_banded_system_is_that_of_its_bands(backend: str) -> None:
    """The dense matrix would take 320 GB."""
    size = 200_000
    diagonal, right = 3 + np.sin(np.arange(size)), np.cos(np.arange(size))

    def loss(diagonal: Any, right: Any) -> Any:
        bands = np.zeros((3, size))
        bands[0, 1:] = bands[2, :-1] = -1.0
        bands[1] = diagonal
        x = scipy.linalg.solve_banded((1, 1), bands, right)
        return np.sum(x * scipy.linalg.solveh_banded(bands[:2], right))

    by_diagonal, by_right = sg.grad(loss, (0, 1), backend=backend)(diagonal, right)
    bands = np.stack([np.full(size, -1.0), diagonal, np.full(size, -1.0)])
    x = scipy.linalg.solve_banded((1, 1), bands, right)
    twice = 2 * scipy.linalg.solve_banded((1, 1), bands, x)  # the matrix is symmetric
    np.testing.assert_allclose(by_right, twice, rtol=1e-9)
    np.testing.assert_allclose(by_diagonal, -x * twice, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_banded_systems_without_a_solution_are_errors_that_can_be_caught(backend: str) -> None:
    right = np.ones(3)

    def solution(bands: Any) -> Any:
        return scipy.linalg.solve_banded((1, 1), bands, right)

    def definite(bands: Any) -> Any:
        return scipy.linalg.solveh_banded(bands, right)

    def caught(bands: Any) -> Any:
        try:
            return np.sum(solution(bands))
        except np.linalg.LinAlgError:
            return np.sum(bands)

    zero, negative = np.zeros((3, 3)), np.array([[0.0, 0.5, 0.5], [1.0, -1.0, 1.0]])
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        sg.jit(solution, backend=backend)(zero)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        sg.jit(definite, backend=backend)(negative)
    np.testing.assert_array_equal(sg.grad(caught, backend=backend)(zero), 1.0)
    regular = zero + np.array([[0.5], [2.0], [0.25]])
    np.testing.assert_allclose(sg.jit(caught, backend=backend)(regular), np.sum(solution(regular)))


def test_what_lies_outside_of_the_matrix_is_not_read() -> None:
    bands = np.array([[np.nan, 0.5, 0.5], [2.0, 3.0, 4.0], [0.25, 0.25, np.inf]])

    def total(bands: Any) -> Any:
        return np.sum(scipy.linalg.solve_banded((1, 1), bands, np.ones(3), check_finite=False))

    found = sg.grad(total)(bands)
    assert np.isfinite(found).all()
    assert found[0, 0] == found[2, 2] == 0


def test_one_band_may_be_said_by_a_float() -> None:
    """As to SciPy, which solves it by another routine."""
    bands, right = numbers(3, 6, is_complex=False) + 4.0 * (np.arange(3) == 1)[:, None], numbers(6, is_complex=False)
    expected: Any = scipy.linalg.solve_banded((1.0, 1), bands, right)  # type: ignore[arg-type]
    found = sg.jit(lambda b: scipy.linalg.solve_banded((1.0, 1), bands, b))(right)  # type: ignore[arg-type]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    with pytest.raises(TypeError):
        sg.grad(lambda b: np.sum(scipy.linalg.solve_banded((2.0, 1), bands, b)))(right)  # type: ignore[arg-type]
