"""The points at which derivatives need a policy, a limit or care: value, both modes, all nestings, on each backend.

The tables beside this file give a function in plain NumPy, a point, and the derivatives there, worked out by hand. The
value is what NumPy itself gives. On the xla backend all that is checked of a point is one compiled program.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.testing.problem import Problem, Tolerance
from srcgrad.testing.programs import Programs, subject
from tests.hard_points.points import Point
from tests.hard_points.table import POINTS

INF = np.inf
MODES = {"F": sg.jacfwd, "R": sg.jacrev}
SAMPLED, SEED = 25, 20
"""How many points run on the xla backend where slow tests are left out, and the seed that draws them."""
FLOORS = {2: 2e-3, 4: 2e-6, 8: 1e-12}
"""By the bytes of a real number: the relative error allowed, of an entry or of the largest beside it."""


def nested(f: Callable[[Any], Any], modes: str) -> Callable[[Any], Any]:
    """Differentiate once per letter, the first innermost."""
    for mode in modes:
        f = MODES[mode](f)
    return f


def nestings(order: int) -> list[str]:
    return ["".join(modes) for modes in itertools.product("FR", repeat=order)]


def fresh(point: Point) -> Any:
    """The point itself; functions may write into their argument."""
    return np.array(point.x) if isinstance(point.x, np.ndarray) else np.asarray(point.x)[()]


def close(found: Any, expected: Any, x: Any, what: str, magnitude: float = 0.0) -> None:
    """Shapes agree, and entries to rounding relative to the largest; inf and nan are where they should be."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape, f"{what}: {found.shape}, not {expected.shape}"
    rtol = FLOORS[min(np.finfo(np.asarray(x).dtype).dtype.itemsize, 8)]
    largest = max(magnitude, largest_of(expected))
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol / 10 * largest, err_msg=what)


def largest_of(*arrays: Any) -> float:
    """The largest finite magnitude."""
    found = [np.abs(np.asarray(array)) for array in arrays]
    return max(float(np.max(array, initial=0.0, where=np.isfinite(array))) for array in found)


def test_there_are_points_of_every_group() -> None:
    groups = {point.group for point in POINTS}
    assert groups == {"kinks and limits", "linear algebra", "indexing", "dtype", "complex", "structure"}
    assert len({point.id for point in POINTS}) == len(POINTS) >= 150


def everywhere(point: Point, backend: str) -> None:
    """Value and all nestings of all orders that the point has."""
    with np.errstate(all="ignore"), sg.use_backend(backend):
        value = point.f(fresh(point))
        close(sg.vjp(point.f, fresh(point))[0], value, point.x, "value")
        for order, expected in enumerate(point.derivatives, 1):
            magnitude = largest_of(*point.derivatives[:order])  # terms of this size may cancel
            for modes in nestings(order):
                close(nested(point.f, modes)(fresh(point)), expected, point.x, modes, magnitude)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("point", POINTS, ids=[point.id for point in POINTS])
def test_numpy(point: Point) -> None:
    everywhere(point, "numpy")


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize(
    "point",
    [
        pytest.param(point, id=point.id, marks=[] if k % 4 == 1 else [pytest.mark.slow])
        for k, point in enumerate(POINTS)
    ],
)
def test_llvm(point: Point) -> None:
    """A fourth of the points; the others are slow."""
    everywhere(point, "llvm")


def on_xla(point: Point) -> None:
    """Value, both modes and the four nestings of second order from one program of the xla backend."""
    pytest.importorskip("jax")
    x = fresh(point)
    with np.errstate(all="ignore"):
        problem = Problem(point.f, (x,), None, Tolerance(None, None, None), 0)
        found = subject(point.f, (x,), {}, None, problem.parts, problem.out_parts)
        order = min(len(point.derivatives), 2)
        here = Programs(found, order, None, "numpy")(found.arguments)
        there = Programs(found, order, None, "xla")(found.arguments)
    for chain, matrix in there.items():
        lower = [other for name, other in here.items() if len(name) <= len(chain)]
        magnitude = largest_of(point.x, *lower)  # terms of this size may cancel, as in a determinant that is 0
        close(matrix, here[chain], point.x, f"{chain}, against the numpy backend", magnitude)
        if chain and all(part.dtype.kind == "f" for part in (*found.inputs, *found.outputs)):
            expected = np.reshape(point.derivatives[len(chain) - 1], matrix.shape)
            close(matrix, expected, point.x, str(chain), largest_of(*point.derivatives[: len(chain)]))


FLUSHED = {"dtype: a subnormal"}
"""Points that XLA cannot have: it computes with 0 in place of subnormal numbers."""
WITH_ENTRIES = [point for point in POINTS if np.size(point.x) and point.id not in FLUSHED]
SAMPLE = random.Random(SEED).sample(WITH_ENTRIES, SAMPLED)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("point", SAMPLE, ids=[point.id for point in SAMPLE])
def test_xla(point: Point) -> None:
    on_xla(point)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("point", WITH_ENTRIES, ids=[point.id for point in WITH_ENTRIES])
def test_xla_everywhere(point: Point) -> None:
    on_xla(point)


SIGNED: dict[str, tuple[Callable[[Any], Any], float, float]] = {
    "x * -0.": (lambda x: x * -0.0, 1.0, -0.0),
    "-x, from a sum": (lambda x: -0.0 * np.sum(np.stack([x])), 1.0, -0.0),
    "x**2 at -0": (lambda x: x**2, -0.0, -0.0),
    "x * x at -0": (lambda x: x * x, -0.0, -0.0),
    "sin(x) * -0.": (lambda x: np.sin(x) * -0.0, 0.0, -0.0),
    "x * 0.": (lambda x: x * 0.0, 1.0, 0.0),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SIGNED)
def test_signs_of_zeros(name: str, mode: str) -> None:
    f, x, expected = SIGNED[name]
    found = MODES[mode](f)(x)
    assert found == 0 and np.signbit(found) == np.signbit(expected)


def test_nothing_is_multiplied_by_an_invented_zero() -> None:
    for mode in MODES.values():
        assert np.isnan(mode(lambda x: x * INF * 0.0)(1.0))
        assert np.isnan(mode(lambda x: 0.0 * np.sqrt(x))(0.0))
        assert np.isnan(mode(lambda x: np.sqrt(x) - np.sqrt(x) + 0.0 * np.sqrt(x))(0.0))


# --- complex ---------------------------------------------------------------------------------------------------
def test_real_to_complex() -> None:
    x = np.array([0.3, 1.2])

    def f(x: Any) -> Any:
        return np.exp(1j * x) * x[0]

    expected = np.diag(1j * np.exp(1j * x) * x[0])
    expected[:, 0] += np.exp(1j * x)
    for mode in MODES.values():
        found = mode(f)(x)
        assert found.dtype == np.complex128
        np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_real_output_of_complex_input_is_jax_s_gradient() -> None:
    z = np.array([1 + 2j, -0.5j])
    for transform in (sg.grad, sg.jacfwd, sg.jacrev):
        np.testing.assert_allclose(transform(lambda z: np.sum(np.abs(z) ** 2))(z), 2 * np.conj(z), rtol=1e-14)
        np.testing.assert_allclose(transform(lambda z: np.sum(np.real(z) * np.imag(z)))(z), z.imag - 1j * z.real)
    assert sg.grad(np.abs)(0j) == 0
    assert sg.grad(lambda z: np.real(z))(1 + 1j) == 1 and sg.grad(lambda z: np.imag(z))(1 + 1j) == -1j


def test_holomorphic_functions() -> None:
    z = 0.3 + 0.4j
    for transform in (sg.grad, sg.jacfwd, sg.jacrev):
        np.testing.assert_allclose(transform(np.exp)(z), np.exp(z), rtol=1e-14)
        np.testing.assert_allclose(transform(np.exp, holomorphic=True)(z), np.exp(z), rtol=1e-14)
        with pytest.raises(TypeError, match="not holomorphic"):
            transform(np.conj)(z)
        with pytest.raises(TypeError, match="not holomorphic"):
            transform(lambda z: z * np.abs(z))(z)
        with pytest.raises(TypeError, match="complex inputs"):
            transform(np.exp, holomorphic=True)(0.5)
    np.testing.assert_allclose(sg.hessian(lambda z: z**3)(z), 6 * z, rtol=1e-14)
    for mode, other in itertools.product(MODES.values(), repeat=2):
        np.testing.assert_allclose(mode(other(lambda z: z**3))(z), 6 * z, rtol=1e-14)
    out, pull = sg.vjp(np.conj, z)  # never refuses
    assert out == np.conj(z) and pull(1j) == (-1j,)
    assert sg.jvp(np.conj, (z,), (1j,)) == (np.conj(z), -1j)
    assert sg.linearize(np.conj, z)[1](1j) == -1j


@pytest.mark.parametrize("transform", [sg.grad, sg.value_and_grad, sg.jacfwd, sg.jacrev, sg.jacobian, sg.hessian])
@pytest.mark.parametrize("x", [3, np.int64(3), np.arange(3), np.array([True]), True])
def test_integers_have_no_derivative(transform: Any, x: Any) -> None:
    with pytest.raises(TypeError, match="only floats and complex numbers have derivatives") as caught:
        transform(lambda x: np.sum(x * 1.0))(x)
    assert "pass a float" in str(caught.value)
