"""What vjp and linearize return, under other transforms and read from outside by functions."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad import cache

X = np.array([0.5, 2.0, -1.0])


@pytest.fixture(autouse=True)
def one_program() -> Iterator[None]:
    """No function is traced again at each call."""
    sg.clear_caches()
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        yield


def first_of(pull: Any) -> Any:
    return lambda t: pull(t)[0]


def programs() -> int:
    return len(cache.PROGRAMS.entries)


@pytest.mark.parametrize("backend", ["llvm", "numpy", "xla"])
def test_one_program_maps_the_pullbacks_of_all_points(backend: str) -> None:
    counts = set()
    for shift in range(6):  # after some of which machine code answers
        _, pull = sg.vjp(lambda x: np.sin(x) * x, X + shift, backend=backend)
        _, push = sg.linearize(lambda x: np.sin(x) * x, X + shift, backend=backend)
        slope = np.diag(np.cos(X + shift) * (X + shift) + np.sin(X + shift))
        np.testing.assert_allclose(sg.vmap(pull, backend=backend)(np.eye(3))[0], slope, rtol=1e-14)
        np.testing.assert_allclose(sg.vmap(push, backend=backend)(np.eye(3)), slope, rtol=1e-14)
        np.testing.assert_allclose(sg.jacrev(push, backend=backend)(X), slope, rtol=1e-14)
        np.testing.assert_allclose(sg.jacfwd(first_of(pull), backend=backend)(X), slope, rtol=1e-14)
        counts.add(programs())
    assert len(counts) == 1


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_functions_read_linear_maps_from_outside(backend: str) -> None:
    def model(p: Any, n: int, order: Any) -> Any:
        return {"y": p["a"][order] * p["b"] ** n, "n": n}

    for scale in (1.0, 2.0, 3.0):
        point = {"a": scale * X, "b": 2.0 * scale}
        order = np.argsort(X * (-1) ** scale)
        out, pull = sg.vjp(model, point, 2, order, backend=backend)

        def energy(t: Any, pull: Any = pull) -> Any:
            back, *_ = pull({"y": t, "n": 0})
            return np.sum(back["a"] ** 2) * back["b"]

        back = np.zeros(3)
        back[order] = X * point["b"] ** 2
        slope = 2.0 * point["b"] * point["a"][order]
        value = np.sum(back**2) * np.dot(slope, X)
        assert sg.jit(energy, backend=backend)(X) == pytest.approx(value, rel=1e-14)
        expected = 2.0 * point["b"] ** 4 * X * np.dot(slope, X) + np.sum(back**2) * slope
        np.testing.assert_allclose(sg.grad(energy, backend=backend)(X), expected, rtol=1e-13)
        np.testing.assert_allclose(sg.jacfwd(energy, backend=backend)(X), expected, rtol=1e-13)
        assert out["n"] == 2
    sg.grad(energy, backend=backend)(X)
    assert programs() == 4  # the pullback, the value, and both derivatives


def test_the_pullback_keeps_its_point() -> None:
    point = X.copy()
    _, pull = sg.vjp(lambda x: x * x, point)
    mapped = sg.vmap(pull)
    np.testing.assert_array_equal(mapped(np.eye(3))[0], np.diag(2.0 * X))
    point[:] = 0.0
    np.testing.assert_array_equal(mapped(np.eye(3))[0], np.diag(2.0 * X))


def test_a_pullback_within_a_trace_is_part_of_it() -> None:
    def slopes(x: Any) -> Any:
        _, pull = sg.vjp(lambda x: np.sin(x) * x[::-1], x)
        return sg.vmap(pull)(np.eye(3))[0]

    expected = sg.jacrev(lambda x: np.sin(x) * x[::-1])(X)
    np.testing.assert_allclose(slopes(X), expected, rtol=1e-14)
    np.testing.assert_allclose(sg.jit(slopes)(X), expected, rtol=1e-14)
    sg.testing.check_grads(slopes, (X,), order=2)


def test_maps_of_functions_that_are_traced_at_each_call_make_no_programs() -> None:
    """Each would be another: they are traced again themselves."""

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        counts = set()
        for shift in (0.0, 1.0, 2.0, 3.0):
            _, pull = sg.vjp(lambda x: x * np.setdiff1d(x, [100.0])[0], X + shift)
            found = sg.vmap(pull)(np.eye(3))[0]
            expected = np.diag(np.full(3, shift - 1.0))
            expected[:, 2] += X + shift
            np.testing.assert_allclose(found, expected, rtol=1e-14)
            counts.add(programs())
    assert len(counts) == 1


def test_a_function_that_reads_another_map_is_another_program() -> None:
    for shift in range(5):
        _, one = sg.vjp(lambda x: np.sin(x + 0.0), X + shift)  # each has one array of residuals
        _, other = sg.vjp(lambda x: x * x, X + shift)
        np.testing.assert_allclose(sg.jit(first_of(one))(X), X * np.cos(X + shift), rtol=1e-14)
        np.testing.assert_allclose(sg.jit(first_of(other))(X), X * 2.0 * (X + shift), rtol=1e-14)


def steps(x: Any, w: Any) -> Any:
    """Loops in loops, none of whose trips are known: what their pullbacks keep are tapes of tapes."""
    total, y = 0.0, x
    while y < 30.0:
        z = y * w
        while np.sum(z) < 90.0:
            z = z * 1.25 + 0.5
            total = total + np.sum(np.sin(z)) * y
        y = y * 1.5 + 0.25
    return total


W = np.array([0.5, 0.75, 1.25])


@pytest.mark.parametrize("backend", ["llvm", "numpy", "xla"])
def test_functions_read_maps_that_keep_as_much_as_loops_had_trips(backend: str) -> None:
    slopes = sg.grad(steps, argnums=(0, 1), backend="numpy")
    counts = set()
    for x in (1.0, 2.0, 9.0):  # each with other trips
        _, pull = sg.vjp(steps, x, W, backend=backend)
        _, push = sg.linearize(steps, x, W, backend=backend)
        one, rows = slopes(x, W)
        np.testing.assert_allclose(pull(1.0)[0], one, rtol=1e-10)
        np.testing.assert_allclose(pull(1.0)[1], rows, rtol=1e-10)
        squared = sg.grad(lambda t, pull=pull: pull(t)[0] * t, backend=backend)(1.5)
        np.testing.assert_allclose(squared, 3.0 * one, rtol=1e-10)
        found = sg.jit(lambda t, pull=pull: [pull(t)[1], pull(2.0 * t)[0]], backend=backend)(0.5)
        np.testing.assert_allclose(found[0], 0.5 * rows, rtol=1e-10)
        np.testing.assert_allclose(found[1], one, rtol=1e-10)
        np.testing.assert_allclose(sg.vmap(pull, backend=backend)(X)[0], X * one, rtol=1e-10)
        np.testing.assert_allclose(sg.jacfwd(push, argnums=1, backend=backend)(0.0, X), rows, rtol=1e-10)
        counts.add(programs())
    assert len(counts) == 1


def test_a_map_that_keeps_tapes_is_read_on_its_backend() -> None:
    def applied(pull: Any) -> Any:
        return lambda t: pull(t)[0]

    expected = sg.grad(steps)(2.0, W)
    pulls = {backend: sg.vjp(steps, 2.0, W, backend=backend)[1] for backend in ("llvm", "numpy", "xla")}
    for maker in ("llvm", "numpy"):
        for reader in ("llvm", "numpy"):
            found = sg.jit(applied(pulls[maker]), backend=reader)(1.0)
            np.testing.assert_allclose(found, expected, rtol=1e-10)
    for maker, reader in (("llvm", "xla"), ("numpy", "xla"), ("xla", "llvm"), ("xla", "numpy")):
        with pytest.raises(sg.errors.ArgumentError, match=f"which {reader} cannot read"):
            sg.jit(applied(pulls[maker]), backend=reader)(1.0)


def test_maps_that_keep_tapes_take_jax_arrays_on_llvm() -> None:
    jnp = pytest.importorskip("jax.numpy")
    import jax

    with jax.enable_x64(True):
        x, w, one = jnp.float64(2.0), jnp.array(W), jnp.float64(1.0)
        _, pull = sg.vjp(steps, x, w, backend="llvm")
        found = pull(one)
        assert all(isinstance(item, jax.Array) for item in found)
    np.testing.assert_allclose(found[1], sg.grad(steps, argnums=1)(2.0, W), rtol=1e-10)
