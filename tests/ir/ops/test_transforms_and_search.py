"""Transforms, convolution, running extremes and search: identities, ties, long and extreme inputs, the work done."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.backends.base import backend as find_backend
from srcgrad.backends.numpy import helpers
from tests.backends.llvm.support import OPS, build
from tests.tracing.trace_support import trace_function

RANDOM = np.random.default_rng(5)


def operations(program: Any, *arrays: Any) -> list[Any]:
    return list(trace_function(program, arrays)[0].operations)


# --- Fourier ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 9])
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_jacobian_of_the_half_spectrum_is_its_matrix(size: int, norm: Any) -> None:
    """Column k of the Jacobian of a linear function is its value on the k-th unit vector, in both modes."""
    x = RANDOM.standard_normal(size)

    def parts(x: Any) -> Any:
        spectrum = np.fft.rfft(x, norm=norm)
        return np.concatenate([spectrum.real, spectrum.imag])

    matrix = np.stack([parts(unit) for unit in np.eye(size)], axis=1)
    for jacobian in (sg.jacfwd(parts)(x), sg.jacrev(parts)(x)):
        np.testing.assert_allclose(jacobian, matrix, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 9])
def test_jacobian_of_the_inverse_half_spectrum_is_its_matrix(size: int) -> None:
    half = size // 2 + 1
    parts = RANDOM.standard_normal(2 * half)

    def signal(parts: Any) -> Any:
        return np.fft.irfft(parts[:half] + 1j * parts[half:], size)

    matrix = np.stack([signal(unit) for unit in np.eye(2 * half)], axis=1)
    for jacobian in (sg.jacfwd(signal)(parts), sg.jacrev(signal)(parts)):
        np.testing.assert_allclose(jacobian, matrix, rtol=1e-14, atol=1e-14)


def test_parseval() -> None:
    """The energy of the spectrum is that of the signal: the gradient of sum |fft(x)|^2 / n is 2 x."""
    x = RANDOM.standard_normal((3, 10))
    energy = sg.grad(lambda x: np.sum(np.abs(np.fft.fft2(x)) ** 2) / x.size)
    np.testing.assert_allclose(energy(x), 2 * x, rtol=1e-12)


def test_a_transform_of_several_axes_is_one_operation() -> None:
    found = [operation.op.name for operation in operations(lambda x: np.fft.fftn(x), RANDOM.random((2, 3, 4)))]
    assert found == ["cast", "fft"]


# --- convolution ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(("long", "short"), [(7, 3), (3, 7), (4, 4), (6, 1)])
def test_gradients_of_a_convolution_are_correlations(mode: Any, long: int, short: int) -> None:
    x, y = RANDOM.standard_normal(long), RANDOM.standard_normal(short)
    u = RANDOM.standard_normal(np.convolve(x, y, mode).shape)
    gx, gy = sg.grad(lambda x, y: np.sum(u * np.convolve(x, y, mode)), argnums=(0, 1))(x, y)
    np.testing.assert_allclose(gx, [np.sum(u * np.convolve(unit, y, mode)) for unit in np.eye(long)], atol=1e-13)
    np.testing.assert_allclose(gy, [np.sum(u * np.convolve(x, unit, mode)) for unit in np.eye(short)], atol=1e-13)


def test_a_convolution_makes_no_windows() -> None:
    """Nothing as large as the product of the lengths is made, nor by the gradient."""
    x, y = RANDOM.standard_normal(400), RANDOM.standard_normal(300)
    text = str(sg.explain(sg.grad(lambda x, y: np.sum(np.convolve(x, y) ** 2), argnums=(0, 1)))(x, y)["optimised ir"])
    assert "gather" not in text
    assert "convolve" in text
    assert "300, 400" not in text and "400, 300" not in text


@pytest.mark.parametrize("seed", range(30))
def test_windows_of_convolutions(seed: int) -> None:
    """Any window, of examples of up to two axes, is that of the sum that defines it."""
    random = np.random.default_rng(seed)
    rank = int(random.integers(1, 3))
    examples = tuple(random.integers(1, 5, random.integers(0, 2)))
    n, m = random.integers(1, 5, rank), random.integers(1, 5, rank)
    x, y = random.standard_normal((*examples, *n)), random.standard_normal((*examples, *m))
    starts = tuple(int(start) for start in random.integers(-3, 6, rank))
    sizes = tuple(int(size) for size in random.integers(0, 6, rank))
    expected = np.zeros((*examples, *sizes))
    for place in np.ndindex(*sizes):
        for j in np.ndindex(*m):
            i = tuple(k + s - b for k, s, b in zip(place, starts, j, strict=True))
            if all(0 <= a < size for a, size in zip(i, n, strict=True)):
                expected[(..., *place)] += x[(..., *i)] * y[(..., *j)]
    found = helpers.convolve(x, y, starts, sizes)
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13, err_msg=f"seed {seed}")


# --- running extremes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("extreme", [np.maximum, np.minimum])
def test_a_running_extreme_is_the_extreme_of_each_prefix(extreme: np.ufunc, seed: int) -> None:
    """Value and derivative, ties and nan among them, in both modes."""
    random = np.random.default_rng(seed)
    x = random.integers(-2, 3, 9).astype(float)
    if seed % 3 == 0:
        x[random.integers(0, 9)] = np.nan
    reduce = np.max if extreme is np.maximum else np.min

    def prefixes(x: Any) -> Any:
        return np.stack([reduce(x[: k + 1]) for k in range(9)])

    expected = sg.jacrev(prefixes)(x)
    np.testing.assert_array_equal(extreme.accumulate(x), prefixes(x), err_msg=f"seed {seed}")
    programs = {np.maximum: lambda x: np.maximum.accumulate(x), np.minimum: lambda x: np.minimum.accumulate(x)}
    for jacobian in (sg.jacrev(programs[extreme])(x), sg.jacfwd(programs[extreme])(x)):
        np.testing.assert_allclose(jacobian, expected, rtol=1e-15, err_msg=f"seed {seed}")


def test_a_running_extreme_cancels_nothing() -> None:
    """A small tangent after a large one comes through whole: segments are summed by themselves."""
    x = np.array([0.0, 1.0, 2.0, 2.0])
    _, tangent = sg.jvp(np.maximum.accumulate, (x,), (np.array([1e20, 1.0, 3.0, 5.0]),))
    np.testing.assert_array_equal(tangent, [1e20, 1.0, 3.0, 4.0])
    _, tangent = sg.jvp(np.maximum.accumulate, (x,), (np.array([np.inf, 1.0, 3.0, 5.0]),))
    np.testing.assert_array_equal(tangent, [np.inf, 1.0, 3.0, 4.0])


@pytest.mark.parametrize("seed", range(20))
def test_restarting_sums(seed: int) -> None:
    random = np.random.default_rng(seed)
    values = random.integers(-5, 6, 17).astype(float)
    marks = random.random(17) < 0.3
    forward, total = [], 0.0
    for value, mark in zip(values, marks, strict=True):
        total = value if mark else total + value
        forward.append(total)
    backward, total = [], 0.0
    for k in reversed(range(17)):
        total = values[k] if k == 16 or marks[k + 1] else total + values[k]
        backward.append(total)
    np.testing.assert_array_equal(helpers.restarting_cumsum(values, marks, 0, False), forward, f"seed {seed}")
    np.testing.assert_array_equal(helpers.restarting_cumsum(values, marks, 0, True), backward[::-1], f"seed {seed}")


@pytest.mark.parametrize("backend", ["numpy", "llvm", "xla"])
@pytest.mark.parametrize("reverse", [False, True])
def test_recurrences_go_in_the_order_of_the_elements(reverse: bool, backend: str) -> None:
    """In pairs the product of the first factors is infinite, and times 0 nan."""
    start, factors = np.zeros(1200), np.repeat([2.0, 0.5], [1100, 100])
    start[1100] = 1.0
    wanted = np.concatenate([np.zeros(1100), 0.5 ** np.arange(100.0)])
    if reverse:
        start, factors, wanted = start[::-1].copy(), np.roll(factors[::-1], 1), wanted[::-1]
    function = build(lambda x, a: OPS["linear_recurrence"](x, a, axis=0, reverse=reverse), start, factors)
    (found,) = find_backend(backend).compile(function).run(start, factors)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("backend", ["numpy", "llvm", "xla"])
def test_running_products_have_derivatives_beside_what_overflows(backend: str) -> None:
    """Forwards what is carried is as large as the results; what no result asks for does not come in backwards."""
    x = np.repeat([0.5, 2.0], [1000, 1500])
    _, (tangent,) = sg.jvp(lambda x: np.cumprod(x)[-1:], (x,), (np.eye(1, 2500)[0],), backend=backend)
    assert tangent == 2.0**501
    slope = sg.grad(lambda x: np.cumprod(x)[2] + np.cumprod(x)[0], backend=backend)(np.full(3000, 2.0))
    np.testing.assert_array_equal(slope, [5.0, 4.0, 4.0, *[0.0] * 2997])
    slope = sg.grad(lambda x: np.cumprod(x)[1], backend=backend)(np.array([3.0, 2.0, np.inf, np.nan]))
    np.testing.assert_array_equal(slope, [2.0, 3.0, 0.0, 0.0])
    moved = sg.jvp(lambda x: np.cumprod(np.concatenate([[np.inf, 2.0], x])), (x[:2],), (x[:2],), backend=backend)[1]
    np.testing.assert_array_equal(moved[:2], [0.0, 0.0])


@pytest.mark.parametrize("backend", ["numpy", "llvm", "xla"])
@pytest.mark.parametrize("shape", [(4,), (2, 6), (3, 2, 2)])
def test_derivatives_of_products_in_turns_are_finite(shape: tuple[int, ...], backend: str) -> None:
    """They were those of a tree, whose products of distant elements vanish and overflow: inf, 0 and nan came out."""
    size = int(np.prod(shape))
    x = np.tile([1e-200, 1e200], size // 2).reshape(shape)
    np.testing.assert_allclose(sg.grad(np.prod, backend=backend)(x), 1 / x, rtol=1e-12)
    tangent = sg.jvp(np.prod, (x,), (x,), backend=backend)[1]
    np.testing.assert_allclose(tangent, size, rtol=1e-12)


def test_running_logsumexp_neither_overflows_nor_vanishes() -> None:
    x = np.array([-1000.0, 900.0, 899.0, -5.0, 900.0])
    jacobian = sg.jacrev(np.logaddexp.accumulate)(x)
    expected = [np.exp(x[: k + 1] - np.logaddexp.reduce(x[: k + 1])) for k in range(5)]
    for row, shares in zip(jacobian, expected, strict=True):
        np.testing.assert_allclose(row, np.concatenate([shares, np.zeros(5 - len(shares))]), rtol=1e-12, atol=0)


# --- search -----------------------------------------------------------------------------------------------------------


def test_search_makes_no_table_of_comparisons() -> None:
    nodes, values = np.sort(RANDOM.random(50)), RANDOM.random(70)
    for program in (
        lambda n, v: np.searchsorted(n, v),
        lambda n, v: np.digitize(v, n),
        lambda n, v: np.interp(v, n, n**2),
        lambda n, v: np.histogram(v, n)[0],
    ):
        found = operations(program, nodes, values)
        assert "searchsorted" in [operation.op.name for operation in found]
        assert max(result.type.size for operation in found for result in operation.results) <= 70


def test_interpolation_at_the_nodes_and_outside() -> None:
    """At a node the slope is that of the interval that begins there, at the last one that of the last; 0 outside."""
    xp, fp = np.array([0.0, 1.0, 3.0]), np.array([1.0, 3.0, -1.0])
    slope = sg.grad(lambda x: np.sum(np.interp(x, xp, fp)))
    np.testing.assert_array_equal(slope(np.array([-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0])), [0, 2, 2, -2, -2, -2, 0])


def test_einsum_multiplies_in_a_good_order() -> None:
    """A chain of matrices and a vector is multiplied from the vector on: nothing but vectors is made."""
    a, b, v = RANDOM.random((30, 40)), RANDOM.random((40, 50)), RANDOM.random(50)
    found = operations(lambda a, b, v: np.einsum("ij,jk,k->i", a, b, v), a, b, v)
    assert max(result.type.size for operation in found for result in operation.results) == 40
