"""The points at which derivatives need a policy: values in both modes and at second order in all four mode pairs.

Each row of a table gives a function, a point, and the first one, two or four derivatives there, worked out by hand.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import scipy.special

import srcgrad as sg

NAN, INF = np.nan, np.inf
MODES = {"F": sg.jacfwd, "R": sg.jacrev}
Case = tuple[Callable[[Any], Any], Any, Sequence[Any]]


def nested(f: Callable[[Any], Any], modes: str) -> Callable[[Any], Any]:
    """Differentiate once per letter, the first innermost."""
    for mode in modes:
        f = MODES[mode](f)
    return f


def nestings(*orders: int) -> list[str]:
    return ["".join(modes) for order in orders for modes in itertools.product("FR", repeat=order)]


def check(case: Case, modes: str) -> None:
    f, x, expected = case
    found = nested(f, modes)(x)
    np.testing.assert_allclose(found, expected[len(modes) - 1], rtol=1e-12, atol=1e-14)


SCALARS: dict[str, Case] = {
    "abs": (np.abs, 0.0, (0.0, 0.0)),
    "abs at -0": (np.abs, -0.0, (0.0, 0.0)),
    "sign": (np.sign, 0.0, (0.0, 0.0)),
    "hypot": (lambda x: np.hypot(x, 0.0), 0.0, (0.0, 0.0)),
    "hypot of both": (lambda x: np.hypot(x, 2 * x), 0.0, (0.0, 0.0)),
    "norm**2": (lambda x: np.linalg.norm(x * np.ones(3)) ** 2, 0.0, (0.0, 6.0)),
    "x**0.": (lambda x: x**0.0, 0.0, (0.0, 0.0, 0.0, 0.0)),
    "x**1.": (lambda x: x**1.0, 0.0, (1.0, 0.0, 0.0, 0.0)),
    "x**2.": (lambda x: x**2.0, 0.0, (0.0, 2.0, 0.0, 0.0)),
    "x**3.": (lambda x: x**3.0, 0.0, (0.0, 0.0, 6.0, 0.0)),
    "x**2": (lambda x: x**2, 0.0, (0.0, 2.0, 0.0, 0.0)),
    "power(x, 4)": (lambda x: np.power(x, 4), 0.0, (0.0, 0.0, 0.0, 24.0)),
    "x**[0, 1, 2, 3]": (lambda x: np.sum(x ** np.array([0.0, 1.0, 2.0, 3.0])), 0.0, (1.0, 2.0, 6.0, 0.0)),
    "x**int array": (lambda x: np.sum(x ** np.array([0, 1, 2, 3])), 0.0, (1.0, 2.0, 6.0, 0.0)),
    "0.**x": (lambda x: 0.0**x, 2.0, (0.0, 0.0)),
    "prod, one zero": (lambda x: np.prod(np.array([2.0, 0.0, 3.0]) + x), 0.0, (6.0, 10.0, 6.0, 0.0)),
    "prod, two zeros": (lambda x: np.prod(np.array([2.0, 0.0, 0.0]) + x), 0.0, (0.0, 4.0, 6.0, 0.0)),
    "cumprod": (lambda x: np.cumprod(np.array([2.0, 0.0, 3.0]) + x)[-1], 0.0, (6.0, 10.0, 6.0, 0.0)),
    "sinc": (np.sinc, 0.0, (0.0, -(np.pi**2) / 3, 0.0, np.pi**4 / 5)),
    "xlogy(0, x)": (lambda x: scipy.special.xlogy(0.0, x), 0.0, (0.0, 0.0)),
    "xlogy(0, x), x > 0": (lambda x: scipy.special.xlogy(0.0, x), 2.0, (0.0, 0.0)),
    "xlogy(x, 2)": (lambda x: scipy.special.xlogy(x, 2.0), 0.0, (np.log(2.0), 0.0)),
    "max of ties": (lambda x: np.max(np.array([1.0, 2.0, 0.0]) * x), 0.0, (1.0, 0.0)),
    "min of ties": (lambda x: np.min(np.array([1.0, 2.0, 0.0]) * x), 0.0, (1.0, 0.0)),
    "maximum": (lambda x: np.maximum(x, 0.0), 0.0, (0.5, 0.0)),
    "minimum": (lambda x: np.minimum(x, 0.0), 0.0, (0.5, 0.0)),
    "maximum of itself": (lambda x: np.maximum(x, x), 3.0, (1.0, 0.0)),
    "clip at a bound": (lambda x: np.clip(x, 0.0, 1.0), 0.0, (0.5, 0.0)),
    "clip at the other": (lambda x: np.clip(x, 0.0, 1.0), 1.0, (0.5, 0.0)),
    "sqrt": (np.sqrt, 0.0, (INF, -INF)),
    "sqrt, negative": (np.sqrt, -1.0, (NAN, NAN)),
    "log": (np.log, 0.0, (INF, -INF)),
    "arcsin": (np.arcsin, 1.0, (INF, INF)),
    "sqrt(x) * sqrt(x)": (lambda x: np.sqrt(x) * np.sqrt(x), 0.0, (NAN, NAN)),
    "sqrt(x)**2": (lambda x: np.sqrt(x) ** 2, 0.0, (NAN, NAN)),
    "sqrt(x * x)": (lambda x: np.sqrt(x * x), 0.0, (NAN, NAN)),
    "exp(log(x))": (lambda x: np.exp(np.log(x)), 0.0, (NAN, NAN)),
    "0 * inf beside a where": (lambda x: np.sqrt(x) * np.sqrt(x) + np.where(x < 1, x, 0.0), 0.0, (NAN, NAN)),
    "std of constants": (lambda x: np.std(x * np.ones(3)), 2.0, (0.0, 0.0)),
    "arctan2 at 0": (lambda x: np.arctan2(x, x), 0.0, (NAN, NAN)),
}


@pytest.mark.parametrize("modes", nestings(1, 2))
@pytest.mark.parametrize("name", SCALARS)
def test_scalars(name: str, modes: str) -> None:
    check(SCALARS[name], modes)


@pytest.mark.parametrize("modes", nestings(3, 4))
@pytest.mark.parametrize("name", [name for name in SCALARS if len(SCALARS[name][2]) == 4])
def test_scalars_at_higher_orders(name: str, modes: str) -> None:
    check(SCALARS[name], modes)


EYE = np.eye(3)
ARRAYS: dict[str, Case] = {
    "norm": (np.linalg.norm, np.zeros(3), (np.zeros(3), np.zeros((3, 3)))),
    "norm**2": (lambda x: np.linalg.norm(x) ** 2, np.zeros(3), (np.zeros(3), 2 * EYE)),
    "norm of rows": (lambda x: np.linalg.norm(x, axis=1), np.zeros((2, 1)), (np.zeros((2, 2, 1)),)),
    "frobenius**2": (
        lambda x: np.linalg.norm(x) ** 2,
        np.zeros((1, 2)),
        (np.zeros((1, 2)), 2 * np.eye(2).reshape(1, 2, 1, 2)),
    ),
    "std": (np.std, np.full(3, 2.0), (np.zeros(3), np.zeros((3, 3)))),
    "abs": (lambda x: np.sum(np.abs(x)), np.array([0.0, -0.0, -2.0]), (np.array([0.0, 0.0, -1.0]), np.zeros((3, 3)))),
    "hypot": (
        lambda x: np.hypot(x[0], x[1]),
        np.array([0.0, 0.0, 5.0]),
        (np.zeros(3), np.zeros((3, 3))),
    ),
    "max": (np.max, np.array([1.0, 3.0, 3.0]), (np.array([0.0, 0.5, 0.5]), np.zeros((3, 3)))),
    "min": (np.min, np.array([1.0, 1.0, 1.0]), (np.full(3, 1 / 3), np.zeros((3, 3)))),
    "maximum": (
        lambda x: np.maximum(x[0], x[1]),
        np.array([2.0, 2.0, 0.0]),
        (np.array([0.5, 0.5, 0.0]), np.zeros((3, 3))),
    ),
    "minimum": (
        lambda x: np.minimum(x[0], x[1]),
        np.array([2.0, 2.0, 0.0]),
        (np.array([0.5, 0.5, 0.0]), np.zeros((3, 3))),
    ),
    "sort": (
        lambda x: np.sort(x) @ np.array([1.0, 10.0, 100.0]),
        np.array([2.0, 1.0, 2.0]),
        (np.array([10.0, 1.0, 100.0]), np.zeros((3, 3))),
    ),
    "argsort": (
        lambda x: x[np.argsort(x, kind="stable")] @ np.array([1.0, 10.0, 100.0]),
        np.array([1.0, 1.0, 0.0]),
        (np.array([10.0, 100.0, 1.0]), np.zeros((3, 3))),
    ),
    "prod": (
        np.prod,
        np.array([2.0, 0.0, 3.0]),
        (np.array([0.0, 6.0, 0.0]), np.array([[0.0, 3.0, 0.0], [3.0, 0.0, 2.0], [0.0, 2.0, 0.0]])),
    ),
    "cumprod": (
        lambda x: np.cumprod(x)[1:],
        np.array([0.0, 0.0, 3.0]),
        (np.zeros((2, 3)), np.array([[[0, 1, 0], [1, 0, 0], [0, 0, 0]], [[0, 3, 0], [3, 0, 0], [0, 0, 0]]])),
    ),
    "a traced exponent at (0, 0)": (lambda x: x[0] ** x[1], np.array([0.0, 0.0, 1.0]), (np.array([0.0, -INF, 0.0]),)),
    "a traced exponent at (0, 1)": (lambda x: x[0] ** x[1], np.array([0.0, 1.0, 1.0]), (np.array([1.0, 0.0, 0.0]),)),
    "a traced exponent at (0, 2)": (
        lambda x: x[0] ** x[1],
        np.array([0.0, 2.0, 1.0]),
        (np.zeros(3), np.diag([2.0, 0.0, 0.0])),
    ),
    "a part that does not contribute": (lambda x: x[1] + x[2], np.array([0.0, 1.0, 2.0]), (np.array([0.0, 1.0, 1.0]),)),
    "sqrt beside a line": (
        lambda x: x[0] + np.sqrt(x[1]) - np.log(x[1]) * np.sqrt(x[1]),
        np.array([1.0, 0.0, 1.0]),
        (np.array([1.0, NAN, 0.0]), np.array([[0.0, 0.0, 0.0], [0.0, NAN, 0.0], [0.0, 0.0, 0.0]])),
    ),
    "sqrt of another element": (
        lambda x: np.sqrt(x)[1:] + x[1:],
        np.array([0.0, 4.0, 1.0]),
        (np.array([[0.0, 1.25, 0.0], [0.0, 0.0, 1.5]]),),
    ),
    "sum of sqrt": (
        lambda x: np.sum(np.sqrt(x)),
        np.array([0.0, 4.0, 1.0]),
        (np.array([INF, 0.25, 0.5]), np.diag([-INF, -1 / 32, -0.25])),
    ),
    "sqrt and a line side by side": (
        lambda x: np.stack([np.sqrt(x[0]), 3 * x[1]]),
        np.array([0.0, 4.0]),
        (np.array([[INF, 0.0], [0.0, 3.0]]), np.array([[[-INF, 0], [0, 0]], [[0, 0], [0, 0]]])),
    ),
}


def assigned(index: Any, values: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        out = np.zeros_like(x)
        out[index] = values(x)
        return out**2

    return f


ARRAYS["the last assignment wins"] = (
    assigned([1, 1, 2], lambda x: x),
    np.array([3.0, 4.0, 5.0]),
    (np.array([[0.0, 0.0, 0.0], [0.0, 8.0, 0.0], [0.0, 0.0, 10.0]]),),
)
ARRAYS["the last assignment wins in rows"] = (
    assigned(([0, 0],), lambda x: x[:2] * x[1:]),
    np.array([3.0, 4.0, 5.0]),
    (np.array([[0.0, 2 * 20 * 5, 2 * 20 * 4], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]),),
)


@pytest.mark.parametrize("modes", nestings(1, 2))
@pytest.mark.parametrize("name", ARRAYS)
def test_arrays(name: str, modes: str) -> None:
    if len(modes) <= len(ARRAYS[name][2]):
        check(ARRAYS[name], modes)


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


# --- what does not contribute never does: the where trap, to order 4 in all nestings ---------------------------
C3 = np.array([1.0, 0.0, 2.0])
M = np.array([[1.0, 2.0], [0.0, 3.0]])
ZEROS, ONE = (0.0, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)


def rows(x: Any) -> Any:
    y, r = M @ np.broadcast_to(x, 2), M @ np.broadcast_to(np.sqrt(x), 2)
    return np.sum(np.where(y > 0, r, y))


def shared(x: Any) -> Any:
    return np.where(x > 0, np.sqrt(x), x) * np.where(x > 0, np.sqrt(x), 1.0)


def logs(x: Any) -> Any:
    return np.sum(np.where(np.broadcast_to(x, 3) * C3 > 0, np.log(np.broadcast_to(x, 3) * C3), 0.0))


def larger(x: Any) -> Any:
    return np.where(np.log(x) > -1, np.log(x), -1.0)


def pieces(x: Any) -> Any:
    return np.where(x > 1, np.log(x - 1), np.where(x > 0, np.sqrt(x), x))


def left_out(x: Any) -> Any:
    return np.sum(np.sqrt(np.broadcast_to(x, 3) * C3)[[0, 2]])


def masked_in_place(x: Any) -> Any:
    out = np.sqrt(x * C3)
    out[C3 == 0] = x
    return np.sum(out)


ROOT = 1 + np.sqrt(2.0)
TRAPS: dict[str, Case] = {
    "where(x < 1, x, sqrt x)": (lambda x: np.where(x < 1, x, np.sqrt(x)), 0.0, ONE),
    "where(x > 0, log x, 0)": (lambda x: np.where(x > 0, np.log(x), 0.0), 0.0, ZEROS),
    "where(x >= 0, x, sqrt(-x))": (lambda x: np.where(x >= 0, x, np.sqrt(-x)), 1.0, ONE),
    "where(x > 0, sin x / x, 1)": (lambda x: np.where(x > 0, np.sin(x) / x, 1.0), 0.0, ZEROS),
    "where(x < 700, exp x, x)": (lambda x: np.where(x < 700, np.exp(x), x), 1000.0, ONE),
    "nested": (pieces, 0.0, ONE),
    "the predicate shares": (lambda x: np.where(np.sqrt(x) > 0, x / np.sqrt(x), x), 0.0, ONE),
    "log x > -1 ? log x : -1": (larger, 0.0, ZEROS),
    "two, added": (
        lambda x: np.where(x > 0, np.sqrt(x), x) + np.where(x > 0, np.log(x), 2 * x),
        0.0,
        (3.0, 0.0, 0.0, 0.0),
    ),
    "a branch shared": (shared, 0.0, ONE),
    "a chain": (lambda x: np.where(x > 0, np.exp(np.log(np.sqrt(x)) * 2), x), 0.0, ONE),
    "broadcast and sum, masked everywhere": (logs, 0.0, ZEROS),
    "broadcast and sum": (logs, 2.0, (1.0, -0.5, 0.5, -0.75)),
    "sum inside": (lambda x: np.where(x > 0, np.sum(np.sqrt(np.broadcast_to(x, 3) * C3)), x), 0.0, ONE),
    "dot of a where": (
        lambda x: np.where(np.broadcast_to(x, 3) > 0, np.sqrt(np.broadcast_to(x, 3)), np.broadcast_to(x, 3)) @ C3,
        0.0,
        (3.0, 0.0, 0.0, 0.0),
    ),
    "dot inside": (
        lambda x: np.where(x > 0, np.sqrt(np.broadcast_to(x, 3)) @ np.log(np.broadcast_to(x, 3)), x),
        0.0,
        ONE,
    ),
    "matrix product, where on rows": (rows, 0.0, (6.0, 0.0, 0.0, 0.0)),
    "gather inside": (lambda x: np.where(x > 0, np.sum(np.sqrt(np.broadcast_to(x, 3))[[0, 2]]), x), 0.0, ONE),
    "gather leaves an element out": (left_out, 4.0, (ROOT / 4, -ROOT / 32, 3 * ROOT / 256, -15 * ROOT / 2048)),
    "sqrt of a where": (lambda x: np.sqrt(np.where(x > 0, x, 0.0)), -1.0, ZEROS),
    "overwritten in place": (masked_in_place, 4.0, (ROOT / 4 + 1, -ROOT / 32, 3 * ROOT / 256, -15 * ROOT / 2048)),
}


@pytest.mark.parametrize("modes", nestings(1, 2, 3, 4))
@pytest.mark.parametrize("name", TRAPS)
def test_what_does_not_contribute_never_does(name: str, modes: str) -> None:
    check(TRAPS[name], modes)
