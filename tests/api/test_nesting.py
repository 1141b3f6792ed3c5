"""Transforms inside transforms: every nesting to order 4, mixes of all kinds, closures over outer tracers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

X = np.array([0.5, 2.0, -1.0])


def by_jvp(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: sg.jvp(f, (x,), (1.0,))[1]


def by_vjp(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: sg.vjp(f, x)[1](1.0)[0]


def by_linearize(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: sg.linearize(f, x)[1](1.0)


FORWARD: dict[str, Any] = {"jacfwd": sg.jacfwd, "jvp": by_jvp, "linearize": by_linearize}
REVERSE: dict[str, Any] = {"grad": sg.grad, "jacrev": sg.jacrev, "vjp": by_vjp}
MODES = {"F": sg.jacfwd, "R": sg.grad}


def derivatives(name: str, x: float) -> list[float]:
    """The first four."""
    if name == "sin":
        return [np.cos(x), -np.sin(x), -np.cos(x), np.sin(x)]
    if name == "exp":
        return [np.exp(x)] * 4
    if name == "x**5":
        return [5 * x**4, 20 * x**3, 60 * x**2, 120 * x]
    signs = [-1, 2, -6, 24]
    return [sign / (1 + x) ** (k + 2) for k, sign in enumerate(signs)]


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sin": np.sin,
    "exp": lambda x: np.exp(x),
    "x**5": lambda x: x**5,
    "1 / (1 + x)": lambda x: 1 / (1 + x),
}


@pytest.mark.parametrize("modes", ["".join(m) for k in (1, 2, 3, 4) for m in itertools.product("FR", repeat=k)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_nestings_to_order_4(name: str, modes: str) -> None:
    f = FUNCTIONS[name]
    for mode in modes:
        f = MODES[mode](f)
    np.testing.assert_allclose(f(0.7), derivatives(name, 0.7)[len(modes) - 1], rtol=1e-13)


@pytest.mark.parametrize("names", list(itertools.product({**FORWARD, **REVERSE}, repeat=2)), ids="-".join)
def test_every_transform_in_every_other(names: tuple[str, str]) -> None:
    inner, outer = ({**FORWARD, **REVERSE}[name] for name in names)
    for name, f in FUNCTIONS.items():
        np.testing.assert_allclose(outer(inner(f))(0.7), derivatives(name, 0.7)[1], rtol=1e-13)


@pytest.mark.parametrize("modes", list(itertools.product({**FORWARD, **REVERSE}, repeat=2)), ids="-".join)
def test_perturbation_confusion(modes: tuple[str, str]) -> None:
    """d/dx (x * d/dy (x + y)) = 1, where a tangent taken for another one gives 2 (Siskind and Pearlmutter, 2005)."""
    inner, outer = ({**FORWARD, **REVERSE}[name] for name in modes)
    assert outer(lambda x: x * inner(lambda y: x + y)(1.0))(3.0) == 1.0
    assert outer(lambda x: x * inner(lambda y: x * y)(2.0))(3.0) == 6.0
    assert outer(lambda x: inner(lambda y: x * x * y)(1.0))(3.0) == 6.0
    assert outer(lambda x: inner(lambda y: y * y * x)(x))(3.0) == 12.0  # d/dx 2x**2
    shadowed = outer(lambda x: inner(lambda x: x**3)(x) + x)(2.0)
    assert shadowed == 13.0


@pytest.mark.parametrize("modes", list(itertools.product("FR", repeat=3)), ids="".join)
def test_closures_over_outer_tracers(modes: tuple[str, ...]) -> None:
    first, second, third = (MODES[mode] for mode in modes)

    def f(x: Any) -> Any:
        def g(y: Any) -> Any:
            return third(lambda z: x**2 * y**2 * z**2)(x + y)  # 2 x**2 y**2 (x + y)

        return second(g)(x)  # 4 x**2 y (x + y) + 2 x**2 y**2 at y = x: 10 x**4

    np.testing.assert_allclose(first(f)(1.5), 40 * 1.5**3, rtol=1e-14)


def test_closures_at_every_nesting_of_other_transforms() -> None:
    w = 3.0

    def f(x: Any) -> Any:
        row = sg.vmap(lambda y: x * y**2 * w)(X)
        return np.sum(sg.jit(lambda row: row * x)(row)) + sg.checkpoint(lambda y: y * x)(x)

    total = w * np.sum(X**2) + 1
    for transform in (sg.grad, sg.jacfwd, sg.jacrev):
        np.testing.assert_allclose(transform(f)(2.0), 4.0 * total, rtol=1e-14)
        np.testing.assert_allclose(sg.jit(transform(f))(2.0), 4.0 * total, rtol=1e-14)
        np.testing.assert_allclose(sg.vmap(transform(f))(X), 2 * X * total, rtol=1e-13)
    np.testing.assert_allclose(sg.hessian(f)(2.0), 2 * total, rtol=1e-14)


def quartic(x: Any) -> Any:
    return np.sum(x**4) + x[0] * x[1] ** 2


def test_mixes_with_vmap_and_jit() -> None:
    gradient = 4 * X**3 + np.array([X[1] ** 2, 2 * X[0] * X[1], 0.0])
    second = np.diag(12 * X**2)
    second[0, 1] = second[1, 0] = 2 * X[1]
    second[1, 1] += 2 * X[0]
    batch = np.stack([X, 2 * X])
    np.testing.assert_allclose(sg.jit(sg.grad(quartic))(X), gradient)
    np.testing.assert_allclose(sg.grad(sg.jit(quartic))(X), gradient)
    np.testing.assert_allclose(sg.grad(sg.checkpoint(sg.jit(quartic)))(X), gradient)
    np.testing.assert_allclose(sg.vmap(sg.grad(quartic))(batch)[0], gradient)
    np.testing.assert_allclose(sg.vmap(sg.hessian(quartic))(batch)[0], second)
    np.testing.assert_allclose(sg.hessian(lambda x: np.sum(sg.vmap(quartic)(x)))(batch)[0, :, 0], second)
    np.testing.assert_allclose(sg.hessian(lambda x: np.sum(sg.vmap(quartic)(x)))(batch)[0, :, 1], np.zeros((3, 3)))
    np.testing.assert_allclose(sg.jacfwd(sg.vmap(sg.grad(quartic)))(batch)[0, :, 0], second)
    np.testing.assert_allclose(sg.jit(sg.vmap(sg.jit(sg.grad(quartic))))(batch)[0], gradient)
    np.testing.assert_allclose(sg.vmap(lambda v: sg.hvp(quartic, (X,), (v,)))(np.eye(3)), second)
    np.testing.assert_allclose(sg.vmap(lambda v: sg.jvp(sg.grad(quartic), (X,), (v,))[1])(np.eye(3)), second)
    _, pull = sg.vjp(sg.grad(quartic), X)
    np.testing.assert_allclose(sg.vmap(lambda v: pull(v)[0])(np.eye(3)), second)
    _, push = sg.linearize(sg.grad(quartic), X)
    np.testing.assert_allclose(sg.vmap(push)(np.eye(3)), second)
    np.testing.assert_allclose(sg.jacrev(lambda v: pull(v)[0])(X), second)  # linear in v


def test_calls_inside_calls() -> None:
    def norm_of_gradient(x: Any) -> Any:
        out, pull = sg.vjp(quartic, x)
        (gradient,) = pull(out * 0.0 + 1.0)
        return np.sum(gradient**2)

    expected = 2 * sg.hessian(quartic)(X) @ sg.grad(quartic)(X)
    np.testing.assert_allclose(sg.grad(norm_of_gradient)(X), expected, rtol=1e-13)
    np.testing.assert_allclose(sg.jacfwd(norm_of_gradient)(X), expected, rtol=1e-13)

    def curvature(x: Any) -> Any:
        return x @ sg.hvp(quartic, (x,), (x,))

    third = sg.grad(lambda x: sg.linearize(sg.grad(quartic), x)[1](x) @ x)(X)
    np.testing.assert_allclose(sg.grad(curvature)(X), third, rtol=1e-13)
    np.testing.assert_allclose(sg.jacfwd(curvature)(X), third, rtol=1e-13)

    def value_too(x: Any) -> Any:
        value, gradient = sg.value_and_grad(quartic)(x)
        return value * np.sum(gradient)

    np.testing.assert_allclose(
        sg.grad(value_too)(X),
        sg.grad(quartic)(X) * np.sum(sg.grad(quartic)(X)) + quartic(X) * sg.hessian(quartic)(X).sum(axis=0),
        rtol=1e-13,
    )


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_python_control_flow_at_every_nesting() -> None:
    def f(x: Any) -> Any:
        total = x * 0.0
        while total < 5.0:
            total = total + x**3 if x > 0 else total + 6.0 + x
        return total

    for modes in itertools.product("FR", repeat=3):
        g: Any = f
        for k, mode in enumerate(modes):
            g = MODES[mode](g)
            np.testing.assert_allclose(g(1.5), 2 * [3 * 1.5**2, 6 * 1.5, 6.0][k], rtol=1e-14)
            np.testing.assert_allclose(g(-1.0), [1.0, 0.0, 0.0][k])
    np.testing.assert_allclose(sg.vmap(sg.grad(f))(np.array([1.5, -1.0])), [2 * 3 * 1.5**2, 1.0])
    np.testing.assert_allclose(sg.grad(lambda x: np.sum(sg.vmap(f)(x)))(np.array([1.5, -1.0])), [13.5, 1.0])
    np.testing.assert_allclose(sg.hessian(sg.jit(f))(1.5), 2 * 6 * 1.5)
    np.testing.assert_allclose(sg.grad(sg.checkpoint(f))(1.5), 2 * 3 * 1.5**2)
