"""``to_jax``: functions written in NumPy under jax's own transforms."""

from __future__ import annotations

import gc
import math
import threading
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import srcgrad as sg
from srcgrad.errors import ConcretizationError, DTypeError

X = np.array([0.3, -1.2, 0.8, 2.1])
M = np.array([[0.5, -0.3, 1.1], [0.9, 0.1, -0.7], [0.2, 0.4, 2.0]])


class Pair(NamedTuple):
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    x: Any


def in_place(x: Any) -> Any:
    y = np.zeros_like(x)
    y[1:] = np.sin(x[:-1]) * x[1:]
    y[0] += x[-1] ** 2
    return np.sum(y * y)


def in_place_jax(x: Any) -> Any:
    y = jnp.zeros_like(x).at[1:].set(jnp.sin(x[:-1]) * x[1:]).at[0].add(x[-1] ** 2)
    return jnp.sum(y * y)


PAIRS = {
    "elementwise": Pair(
        lambda x: np.sum(np.tanh(x) * np.exp(-x * x) + np.sqrt(x * x + 1)),
        lambda x: jnp.sum(jnp.tanh(x) * jnp.exp(-x * x) + jnp.sqrt(x * x + 1)),
        X,
    ),
    "in_place": Pair(in_place, in_place_jax, X),
    "where": Pair(
        lambda x: np.sum(np.where(x > 0, x**3, np.sin(x))), lambda x: jnp.sum(jnp.where(x > 0, x**3, jnp.sin(x))), X
    ),
    "reductions": Pair(
        lambda x: np.max(x) * np.mean(x) + np.linalg.norm(x), lambda x: jnp.max(x) * jnp.mean(x) + jnp.linalg.norm(x), X
    ),
    "matrices": Pair(lambda m: np.sum((m @ m.T) ** 2), lambda m: jnp.sum((m @ m.T) ** 2), M),
    "solve": Pair(lambda m: np.sum(np.linalg.solve(m, m[0])), lambda m: jnp.sum(jnp.linalg.solve(m, m[0])), M),
    "sort": Pair(lambda x: np.sum(np.sort(x) * np.arange(4.0)), lambda x: jnp.sum(jnp.sort(x) * jnp.arange(4.0)), X),
    "indices": Pair(
        lambda x: np.sum(x[np.array([0, 2, 0])] ** 2) + x[-1],
        lambda x: jnp.sum(x[jnp.array([0, 2, 0])] ** 2) + x[-1],
        X,
    ),
}


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "none": lambda g: g,
    "grad": jax.grad,
    "jit_jacfwd": lambda g: jax.jit(jax.jacfwd(g)),
    "vmap_grad": lambda g: jax.vmap(jax.grad(g)),
    "hessian": lambda g: jax.jit(jax.hessian(g)),
    "nested": lambda g: jax.vmap(jax.jit(jax.jacrev(jax.grad(g)))),
}


def agree(pair: Pair, transform: Callable[[Any], Any], mapped: bool, wide: bool) -> None:
    """The transform of the function here is that of its twin in jax.numpy, in both precisions."""
    tolerance = {"rtol": 1e-10, "atol": 1e-12} if wide else {"rtol": 1e-4, "atol": 1e-5}
    with jax.enable_x64(wide):
        x = jnp.asarray(pair.x)
        given = jnp.stack([x, x * 1.5]) if mapped else x
        found, wanted = transform(sg.to_jax(pair.ours))(given), transform(pair.theirs)(given)
        for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
            assert isinstance(one, jax.Array) and one.dtype == (np.float64 if wide else np.float32)
            np.testing.assert_allclose(one, other, **tolerance)


@pytest.mark.parametrize("name", PAIRS)
def test_batches_of_gradients_are_those_of_jax(name: str) -> None:
    agree(PAIRS[name], lambda g: jax.jit(jax.vmap(jax.value_and_grad(g))), True, name != "reductions")


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_every_transform_of_jax_applies(transform: str) -> None:
    agree(PAIRS["in_place"], TRANSFORMS[transform], transform in ("vmap_grad", "nested"), transform != "grad")


def test_without_64_bits_the_program_has_none() -> None:
    def f(x: Any, scale: float) -> Any:
        weights = np.ones(4) * np.pi
        return np.sum(weights * x * scale) + np.argmax(x) * np.float64(0.5)

    x = jnp.asarray(X, jnp.float32)
    with jax.enable_x64(False):
        text = str(jax.make_jaxpr(sg.to_jax(f))(x, 2.0))
        assert "f64" not in text and "f32[4]" in text
        assert sg.to_jax(np.argmax)(x).dtype == np.int32
        assert jax.grad(sg.to_jax(f))(x, 2.0).dtype == np.float32
        np.testing.assert_allclose(sg.to_jax(f)(x, 2.0), f(X, 2.0), rtol=1e-5)


def test_python_floats_are_weak() -> None:
    f = sg.to_jax(lambda x, s: x * s + 1.0)
    with jax.enable_x64(True):
        narrow = jnp.ones(3, jnp.float32)
        assert f(narrow, 2.0).dtype == np.float32
        assert jax.jit(f)(narrow, 2.0).dtype == np.float32
        assert f(jnp.ones(3), 2.0).dtype == np.float64
        assert jax.jit(f)(2.0, 3.0).dtype == np.float64


def test_arguments_and_results_are_containers() -> None:
    def f(params: Any, x: Any, *, power: int = 2, name: str = "a") -> Any:
        return {name: params["w"] @ x + params["b"] ** power, "fixed": power}

    params = {"w": jnp.asarray(M), "b": jnp.ones(3)}
    g = sg.to_jax(f)
    found = jax.jit(g, static_argnames=("power", "name"))(params, jnp.ones(3), power=3, name="z")
    assert sorted(found) == ["fixed", "z"] and found["fixed"] == 3
    np.testing.assert_allclose(found["z"], M.sum(1) + 1, rtol=1e-6)
    slopes = jax.grad(lambda p: jnp.sum(g(p, jnp.ones(3))["a"]))(params)
    np.testing.assert_allclose(slopes["b"], [2.0, 2.0, 2.0])


def test_derivatives_made_here_are_functions_of_jax() -> None:
    f = PAIRS["elementwise"]
    with jax.enable_x64(True):
        x = jnp.asarray(X)
        slope = sg.to_jax(sg.grad(f.ours))
        np.testing.assert_allclose(jax.jit(slope)(x), jax.grad(f.theirs)(x), rtol=1e-12)
        np.testing.assert_allclose(jax.jacrev(slope)(x), jax.hessian(f.theirs)(x), rtol=1e-10, atol=1e-12)
        mapped = sg.to_jax(sg.vmap(sg.grad(f.ours)))
        np.testing.assert_allclose(mapped(jnp.stack([x, -x]))[1], jax.grad(f.theirs)(-x), rtol=1e-12)


def test_rules_of_the_user_are_rules_for_jax() -> None:
    @sg.custom_jvp
    def doubled(x: Any) -> Any:
        return np.sin(x)

    @doubled.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        return doubled(primals[0]), 2.0 * tangents[0]

    @sg.custom_vjp
    def tripled(x: Any) -> Any:
        return np.sin(x)

    tripled.defvjp(lambda x: (np.sin(x), None), lambda _, ct: (3.0 * ct,))
    x = jnp.asarray(X)
    assert np.allclose(jax.grad(sg.to_jax(lambda x: np.sum(doubled(x))))(x), 2.0)
    assert np.allclose(jax.jvp(sg.to_jax(doubled), (x,), (x,))[1], 2.0 * X)
    assert np.allclose(jax.grad(sg.to_jax(lambda x: np.sum(tripled(x))))(x), 3.0)
    assert np.allclose(jax.grad(sg.to_jax(lambda x: np.sum(x * sg.stop_gradient(x))))(x), X)
    assert np.allclose(jax.grad(sg.to_jax(lambda x: np.sum(sg.checkpoint(np.sin)(x))))(x), np.cos(X))


def test_what_it_closes_over_is_read_at_each_call() -> None:
    scale = np.array([1.0, 2.0, 3.0, 4.0])
    factor = 2.0

    def f(x: Any) -> Any:
        return np.sum(scale * factor * x)

    g = sg.to_jax(f)
    x = jnp.asarray(X)
    np.testing.assert_allclose(jax.grad(g)(x), 2.0 * scale, rtol=1e-6)
    scale *= 2.0
    factor = 5.0
    np.testing.assert_allclose(jax.grad(g)(x), 5.0 * scale, rtol=1e-6)


def test_it_closes_over_tracers_of_jax() -> None:
    def outer(w: Any) -> Any:
        return sg.to_jax(lambda x: np.sum(w * x * x))(jnp.asarray(X))

    w = jnp.ones(4)
    np.testing.assert_allclose(jax.grad(outer)(w), X * X, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.grad(outer))(w), X * X, rtol=1e-6)
    inner = jax.grad(lambda w: jnp.sum(jax.grad(sg.to_jax(lambda x: np.sum(w * x * x)))(jnp.asarray(X))))
    np.testing.assert_allclose(inner(w), 2 * X, rtol=1e-6)


def test_a_function_is_traced_once_for_each_signature(programs: Any) -> None:
    traces = []

    def f(x: Any) -> Any:
        note(x.shape)
        return np.sum(x * x)

    def note(shape: Any) -> None:
        traces.append(shape)

    def pure(x: Any) -> Any:
        return np.sum(np.sin(x) * x)

    g = sg.to_jax(pure)
    first = jax.make_jaxpr(g)(jnp.ones(3))
    entries = len(programs.entries)
    assert str(jax.make_jaxpr(jax.jit(g))(jnp.ones(3))).count("sin") == str(first).count("sin")
    jax.grad(g)(jnp.ones(3))
    assert len(programs.entries) == entries
    jax.grad(g)(jnp.ones(5))
    assert len(programs.entries) == entries + 1
    jax.grad(sg.to_jax(f))(jnp.ones(3))  # it writes to a list, so that it cannot be remembered
    jax.grad(sg.to_jax(f))(jnp.ones(3))
    assert traces == [(3,), (3,)]


def branching(x: Any) -> Any:
    if x[0] > 0:
        return np.sum(x**2)
    return np.sum(np.sin(x)) * math.exp(x[1])


def filling(x: Any) -> Any:
    filled = np.zeros(3)
    for k in range(3):
        filled[k] = x[k] * k if x[k] > 0 else -x[k]
    return np.sum(filled**2)


def rolling(x: Any) -> Any:
    for k in range(60):
        x = np.sin(x) * (1 + 0.01 * k)
    return np.sum(x)


def newton(x: Any) -> Any:
    square = x[2] * x[2] + 1.0
    root = square
    while abs(root * root - square) > 1e-12:
        root = 0.5 * (root + square / root)
    return root


@pytest.mark.parametrize("function", [branching, filling, rolling, newton], ids=lambda f: f.__name__)
def test_native_control_flow_is_part_of_a_jax_program(function: Any) -> None:
    points = np.array([[0.53, -1.57, 2.43], [-0.52, 1.27, 3.47]])
    moves = 1e-6 * np.eye(3)
    with jax.enable_x64(True):
        inside = sg.to_jax(function)
        np.testing.assert_allclose(jax.jit(jax.vmap(inside))(points), [function(x) for x in points], rtol=1e-12)
        for x in points:
            expected = [(function(x + move) - function(x - move)) / 2e-6 for move in moves]
            np.testing.assert_allclose(jax.jit(jax.jacfwd(inside))(x), expected, rtol=1e-5, atol=1e-7)
            if function is newton:
                with pytest.raises(ValueError, match="Reverse-mode"):
                    jax.grad(inside)(x)
            else:
                np.testing.assert_allclose(jax.jit(jax.grad(inside))(x), expected, rtol=1e-5, atol=1e-7)


def test_what_depends_on_a_value_is_an_error_with_its_line() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.sort(x[x > 0]))

    with pytest.raises(ConcretizationError, match="to_jax") as raised:
        jax.jit(sg.to_jax(f))(jnp.asarray(X))
    assert isinstance(raised.value, TypeError)
    assert raised.value.span is not None and raised.value.span.line == f.__code__.co_firstlineno + 1
    assert raised.value.hint is not None and "np.where" in raised.value.hint


def test_a_branch_on_a_captured_float_is_one_program_for_its_value() -> None:
    level = 1.0

    def f(x: Any) -> Any:
        return x * 2.0 if level > 0 else x * 3.0

    assert np.allclose(jax.jit(sg.to_jax(f))(jnp.asarray(X)), 2 * X)
    level = -1.0
    assert np.allclose(jax.jit(sg.to_jax(f))(jnp.asarray(X)), 3 * X)


def test_types_without_a_counterpart_are_refused() -> None:
    with pytest.raises(DTypeError, match="bfloat16"):
        sg.to_jax(np.sin)(jnp.ones(3, jnp.bfloat16))


def test_arguments_changed_in_place_change_for_the_function_only() -> None:
    def f(x: Any) -> Any:
        x[0] = 5.0
        return np.sum(x)

    x = jnp.asarray(X)
    assert np.isclose(sg.to_jax(f)(x), 5.0 + X[1:].sum())
    assert np.isclose(x[0], X[0])


def test_threads_trace_at_once() -> None:
    f = sg.to_jax(PAIRS["elementwise"].ours)
    wanted = jax.grad(PAIRS["elementwise"].theirs)(jnp.asarray(X))
    found: list[Any] = [None] * 6

    def work(k: int) -> None:
        found[k] = jax.jit(jax.grad(f))(jnp.asarray(X))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in found:
        np.testing.assert_allclose(result, wanted, rtol=1e-5)


def test_no_array_is_kept() -> None:
    x, w = jnp.arange(4.0), jnp.arange(4.0) + 1
    references = [weakref.ref(x), weakref.ref(w)]
    f = sg.to_jax(lambda x, w=w: np.sum(x * w))
    np.testing.assert_allclose(f(x), 20.0)
    del f, x, w
    gc.collect()
    assert [reference() for reference in references] == [None, None]


def test_a_write_into_what_is_shared_on_one_path_is_one_program() -> None:
    def f(x: Any) -> Any:
        y, z = x * 1.0, x * 2.0
        if x[0] > 0:
            y = z
        z[0] = 5.0
        return np.sum(y * z)

    for x in (np.array([1.0, 2.0]), np.array([-1.0, 2.0])):
        value, slope = jax.jit(jax.value_and_grad(sg.to_jax(f)))(jnp.asarray(x))
        np.testing.assert_allclose(value, f(x), rtol=1e-6)
        np.testing.assert_allclose(slope, sg.grad(f)(x), rtol=1e-6)
        np.testing.assert_allclose(slope, [0.0, 16.0] if x[0] > 0 else [5.0, 8.0], rtol=1e-6)


def test_what_conversion_refuses_keeps_its_own_remedy() -> None:
    def f(x: Any) -> Any:
        y, z = x[:2] * 1.0, x[1:] * 2.0
        if x[0] > 0:
            w = x * 3.0
            y, z = w[:2], w[1:]
        y[1] = 7.0
        return np.sum(y * z)

    with pytest.raises(sg.SrcgradError, match="cannot be one program: a write into memory that 'y' may") as caught:
        sg.to_jax(f)(np.ones(3))
    assert "y = y.copy() where y is set" in caught.value.hint


def test_a_tracer_of_jax_is_reported_at_the_users_line() -> None:
    with pytest.raises(sg.SrcgradError, match="a tracer of jax") as caught:
        jax.jit(sg.grad(lambda x: np.sum(x**2)))(np.ones(2))
    assert "test_to_jax.py" in str(caught.value) and "partial_eval.py" not in str(caught.value)
