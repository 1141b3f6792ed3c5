"""NumPy's polynomials that a function captures: their coefficients are inputs, read at each call."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.polynomial import Chebyshev, Hermite, HermiteE, Laguerre, Legendre, Polynomial

import srcgrad as sg

KINDS = [Polynomial, Chebyshev, Legendre, Hermite, HermiteE, Laguerre]


class Curve:
    def __init__(self, p: Any) -> None:
        self.p = p

    def __call__(self, x: Any) -> Any:
        return self.p(x) * self.p.deriv()(x)


def of_functions(p: Any) -> dict[str, Callable[[Any], Any]]:
    """By NumPy's functions of coefficients, which give such polynomials again."""
    return {
        "polyval": lambda x: np.polyval(p, x),
        "polyder": lambda x: np.polyder(p)(x) + np.polyval(np.polyder(p, 2), x),
        "polyint": lambda x: np.polyint(p)(x),
        "polyadd": lambda x: np.polyadd(p, [1.0, 2.0])(x) * np.polysub([2.0], p)(x),
        "polymul": lambda x: np.polymul(p, p)(x),
        "np.roots": lambda x: x * np.sum(np.abs(np.roots(p))),
        "dot": lambda x: x * np.dot(p, p),
    }


def uses(p: Any) -> dict[str, Callable[[Any], Any]]:
    curve, many = Curve(p), [p, 2.0]
    plain = isinstance(p, np.poly1d)
    return {
        "value": lambda x: p(x),
        "of an array": lambda x: np.sum(p(x * np.arange(3.0))),
        "slope": lambda x: p.deriv()(x),
        "area": lambda x: p.integ()(x),
        "product": lambda x: (p * p)(x) + (p + 1.0)(x),
        "coefficients": lambda x: x * p.coef[0] * (p.order if plain else p.degree()),
        "object": lambda x: curve(x),
        **(of_functions(p) if plain else {}),
        "item": lambda x: many[0](x) * many[1],
        "loop": lambda x: sum(p(x + k) for k in range(20)),
        "roots": lambda x: x * np.sum(np.abs(p.roots if plain else p.roots())),
    }


USES = list(uses(np.poly1d([1.0])))


def set_coefficients(p: Any) -> None:
    if isinstance(p, np.poly1d):
        p.coeffs[:] = np.array([3.0, 0.5, 4.0])
    else:
        p.coef = np.array([3.0, 0.5, 4.0])


def set_one(p: Any) -> None:
    p.coef[1] = 7.0


def set_zero(p: Any) -> None:
    p.coef[-1 if not isinstance(p, np.poly1d) else 0] = 0.0


def set_more(p: Any) -> None:
    if isinstance(p, np.poly1d):
        p[4] = 2.5
    else:
        p.coef = np.array([3.0, 0.5, 4.0, 1.0])


def set_whole_numbers(p: Any) -> None:
    if isinstance(p, np.poly1d):
        vars(p)["coeffs"] = np.array([3, 2, 1])
    else:
        p.coef = np.array([3, 2, 1])


def set_domain(p: Any) -> None:
    if not isinstance(p, np.poly1d):
        p.domain = np.array([0.0, 3.0])


def set_window(p: Any) -> None:
    if not isinstance(p, np.poly1d):
        p.window[1] = 2.5


CHANGES = [set_coefficients, set_one, set_zero, set_more, set_whole_numbers, set_domain, set_window]


def slope_of(f: Callable[[Any], Any], x: float) -> float:
    return float((f(x + 1e-6) - f(x - 1e-6)) / 2e-6)


def made(kind: Any) -> Any:
    """A polynomial with its own domain and window, which are else those of its class."""
    bounds = {} if kind is np.poly1d else {"domain": [-1.0, 2.0], "window": [-1.0, 1.5]}
    return kind(np.array([1.0, 2.0, 3.0]), **bounds)


@pytest.mark.parametrize("kind", [np.poly1d, *KINDS], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("use", ["value", "of an array", "slope", "coefficients", "object", "item", "loop"])
def test_a_captured_polynomial_makes_one_program(kind: Any, use: str) -> None:
    f = uses(made(kind))[use]
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        # ``poly1d`` drops leading zeros of what it makes: a program for each set of them
        slope, value = sg.grad(f), sg.jit(f, strict=kind is not np.poly1d or use not in ("slope", "object"))
        for x in (0.5, 0.7, 0.9, 1.1, 1.3, 1.5):
            assert slope(x) == pytest.approx(slope_of(f, x), rel=1e-6)
            assert value(x) == pytest.approx(f(x), rel=1e-12)


@pytest.mark.parametrize("use", of_functions(np.poly1d([1.0])))
@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
def test_functions_of_coefficients_take_a_captured_polynomial(use: str) -> None:
    """They had the function traced again at each call."""
    f = of_functions(made(np.poly1d))[use]
    slope, value = sg.grad(f), sg.jit(f)
    for x in (0.5, 0.7, 0.9, 1.1, 1.3, 1.5):
        assert slope(x) == pytest.approx(slope_of(f, x), rel=1e-6)
        assert value(x) == pytest.approx(f(x), rel=1e-12)


@pytest.mark.parametrize("kind", [np.poly1d, *KINDS], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_what_changes_in_a_polynomial_changes_the_next_call(kind: Any, change: Callable[[Any], None]) -> None:
    p = made(kind)
    functions = uses(p)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        slopes = {use: sg.grad(f) for use, f in functions.items()}
        for slope in slopes.values():
            for x in (0.5, 0.7, 0.9, 1.1, 1.3, 1.5):
                slope(x)
        change(p)
        for use, f in functions.items():
            for x in (0.7, 1.3):
                assert slopes[use](x) == pytest.approx(slope_of(f, x), rel=1e-5, abs=1e-6), use


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_polynomial_that_gets_its_own_domain_is_read_with_it(kind: Any) -> None:
    p = kind([1.0, 2.0, 3.0])

    def f(x: Any) -> Any:
        return p(x)

    slope = sg.grad(f)
    for x in (0.5, 0.7, 0.9, 1.1, 1.3, 1.5):
        assert slope(x) == pytest.approx(slope_of(f, x), rel=1e-6)
    p.domain = np.array([0.0, 3.0])
    assert slope(0.7) == pytest.approx(slope_of(f, 0.7), rel=1e-6)


@pytest.mark.parametrize("kind", [np.poly1d, *KINDS], ids=lambda kind: kind.__name__)
def test_a_polynomial_that_a_function_changes_holds_what_python_puts_there(kind: Any) -> None:
    p = made(kind)
    plain = copy.deepcopy(p)

    def writing(x: Any, p: Any) -> Any:
        p.coef[0] = x
        return p(2.0)

    f = lambda x: writing(x, p)  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        value = sg.jit(f)
        for x in (0.5, 0.7, 0.9, 1.1, 1.3, 1.5):
            assert value(x) == pytest.approx(writing(x, plain))
            np.testing.assert_allclose(p.coef, plain.coef)
            assert type(p.coef) is np.ndarray


@pytest.mark.parametrize("kind", [np.poly1d, *KINDS], ids=lambda kind: kind.__name__)
def test_a_polynomial_of_another_kind_is_another_program(kind: Any) -> None:
    held = [made(kind)]

    def f(x: Any) -> Any:
        return held[0](x)

    slope = sg.grad(f)
    for other in (kind, *KINDS, np.poly1d, kind):
        held[0] = made(other)
        for x in (0.5, 0.7, 0.9, 1.1, 1.3, 1.5):
            assert slope(x) == pytest.approx(slope_of(f, x), rel=1e-6)
