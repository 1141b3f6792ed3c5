"""``scipy.integrate.quad`` and integrals of integrals of what depends on traced values, and between traced limits."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.integrate import dblquad, nquad, quad, quad_vec, tplquad

import srcgrad as sg
from srcgrad.errors import SrcgradError
from srcgrad.tracing.functions.scipy_quad import GAUSS, KRONROD, NODES
from tests.tracing.slope_support import check_slopes

CASES: dict[str, tuple[Callable[[Any], Any], float]] = {
    "a parameter": (lambda p: quad(lambda t: np.sin(p * t) * p, 0, 1)[0], 0.7),
    "more arguments": (lambda p: quad(lambda t, a, b: np.exp(-a * t * t) + b, 0, p, args=(p, p**2))[0], 0.7),
    "limits": (lambda p: quad(np.cos, p, p**2)[0], 1.7),
    "limits in the other order": (lambda p: quad(lambda t: np.sin(t * p), 2, p)[0], 0.7),
    "no interval": (lambda p: quad(lambda t: t, p, p)[0], 0.4),
    "a half-line": (lambda p: quad(lambda t: t ** (p - 1) * np.exp(-t), 0, np.inf)[0], 1.3),
    "a half-line from a parameter": (lambda p: quad(lambda t: np.exp(-t * t), p, np.inf)[0], 0.7),
    "a half-line to a number": (lambda p: quad(lambda t: np.exp(t * p), -np.inf, 0.4)[0], 0.7),
    "a half-line to a parameter": (lambda p: quad(lambda t: np.exp(t * p), -np.inf, p)[0], 0.7),
    "a half-line in the other order": (lambda p: quad(lambda t: np.exp(-t * p), np.inf, 0)[0], 0.7),
    "the line": (lambda p: quad(lambda t: np.exp(-p * t * t), -np.inf, np.inf)[0], 0.7),
    "the line in the other order": (lambda p: quad(lambda t: np.exp(-p * t * t), np.inf, -np.inf)[0], 0.7),
    "a peak": (lambda p: quad(lambda t: 1e-3 / ((t - p) ** 2 + 1e-6), -1, 1)[0], 0.2),
    "a logarithm at the end": (lambda p: quad(lambda t: np.log(t) * p**2, 0, 1)[0], 0.5),
    "a branch": (lambda p: quad(lambda t: t * p**2 if t < 0.3 else t**2 * p**3, 0, 1)[0], 0.4),
    "complex numbers": (lambda p: abs(quad(lambda t: np.exp(1j * t * p), 0, 1, complex_func=True)[0]), 0.8),
    "an integral of integrals": (
        lambda p: quad(lambda a: quad(lambda b: np.exp(a * b * p), 0, 1)[0], 0, p)[0],
        0.8,
    ),
    "a double integral": (lambda p: dblquad(lambda y, x: x * np.exp(y * p), 0, p, 0, lambda x: x)[0], 0.8),
    "a triple integral": (
        lambda p: tplquad(lambda z, y, x: x + np.exp(-p * z * y), 0, p, 0, lambda x: 1 + x, 0, lambda x, y: x + 2 * y)[
            0
        ],
        0.8,
    ),
    "integrals over ranges": (
        lambda p: nquad(lambda x, y, c: np.cos(x * y * c), [lambda y, c: (0, c + y), [0, p]], args=(p,))[0],
        0.8,
    ),
    "integrals over three ranges": (lambda p: nquad(lambda x, y, z: np.exp(-p * x * y + z), [[0, 1]] * 3)[0], 0.8),
}


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("name", CASES)
def test_integrals_and_their_derivatives(name: str, backend: str) -> None:
    f, p = CASES[name]
    h = 1e-4

    def slope(f: Callable[[Any], Any]) -> Any:
        return (8 * (f(p + h) - f(p - h)) - (f(p + 2 * h) - f(p - 2 * h))) / (12 * h)

    with sg.use_backend(backend):
        gradient = sg.grad(f)
        np.testing.assert_allclose(sg.jit(f)(p), f(p), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(gradient(p), slope(f), rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(sg.jvp(f, (p,), (1.0,))[1], gradient(p), rtol=1e-12, atol=1e-13)
        if name not in ("a double integral", "integrals over ranges"):
            np.testing.assert_allclose(sg.grad(gradient)(p), slope(gradient), rtol=1e-7, atol=1e-8)


def test_a_hard_integral_is_mpmaths() -> None:
    p = 1.3
    with mpmath.workdps(30):
        expected = float(mpmath.diff(mpmath.gamma, p)), float(mpmath.diff(mpmath.gamma, p, 2))
    f = CASES["a half-line"][0]
    np.testing.assert_allclose([sg.grad(f)(p), sg.grad(sg.grad(f))(p)], expected, rtol=1e-10)


def test_the_derivative_of_a_kink_is_exact() -> None:
    """The step that it has there lies in a short interval: tolerances are less than those that are asked for."""
    slope = sg.grad(lambda p: quad(lambda t: np.abs(t - p), 0, 1)[0])
    for p in (0.1, 0.3, 0.77):
        assert abs(slope(p) - (2 * p - 1)) < 1e-6


def test_many_integrals_are_one_program() -> None:
    def f(p: Any) -> Any:
        return quad(lambda t: np.exp(-p * t * t), 0, 2)[0]

    points = np.array([0.3, 0.7, 9.0])
    np.testing.assert_allclose(sg.vmap(sg.grad(f))(points), [sg.grad(f)(p) for p in points], rtol=1e-13)
    assert sg.explain(sg.grad(f))(0.3)["how it runs"].startswith("One program")


def test_nodes_and_weights_are_exact_for_polynomials() -> None:
    """Of degree 31 by Kronrod's weights, of 19 by those of Gauss."""
    for weights, degree in ((KRONROD, 31), (GAUSS, 19)):
        for k in range(degree + 1):
            assert abs(np.sum(weights * NODES**k) - (2 / (k + 1) if k % 2 == 0 else 0.0)) < 1e-15 * 8, (degree, k)


def test_what_is_no_integral_of_a_number_is_refused() -> None:
    for kind, f in (
        (TypeError, lambda p: quad(lambda t: t * p * 1j, 0, 1)[0]),
        (ValueError, lambda p: quad(lambda t: np.ones(3) * p, 0, 1)[0]),
        (ValueError, lambda p: quad(np.sin, 0, np.array([p, p]))[0]),
        (TypeError, lambda p: quad(lambda t: t * p, 0, 1, weight="cos", wvar=3)[0]),
        (TypeError, lambda p: quad(lambda t: t * p, 0, 1, points=[0.5])[0]),
        (TypeError, lambda p: quad(lambda t: t * p, 0, 1, full_output=1)[0]),
    ):
        with pytest.raises(kind) as raised:
            sg.grad(f)(0.5)
        assert isinstance(raised.value, SrcgradError)
    with pytest.raises(ValueError, match="a limit of an integral is nan"):
        sg.jit(lambda p: quad(np.sin, 0, p)[0])(np.nan)


LIMITS = (-np.inf, -1.0, 0.4, np.inf)


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_whether_limits_are_infinite_is_decided_by_the_run(backend: str) -> None:
    """One program for all, with the derivatives in the limits too, which are 0 at infinity."""

    def integral(p: Any, a: Any, b: Any) -> Any:
        return quad(lambda t: np.exp(-p * (t - 0.3) ** 2), a, b)[0]

    value = sg.jit(integral, backend=backend)
    slopes = sg.grad(integral, (0, 1, 2), backend=backend)
    curvature = sg.hessian(integral, backend=backend)
    p = 1.3
    for a, b in itertools.product(LIMITS, LIMITS):
        assert abs(value(p, a, b) - quad(lambda t: np.exp(-p * (t - 0.3) ** 2), a, b)[0]) < 1e-8, (a, b)
        ends = [np.exp(-p * (t - 0.3) ** 2) for t in (a, b)]
        by_p = quad(lambda t: -((t - 0.3) ** 2) * np.exp(-p * (t - 0.3) ** 2), a, b)[0]
        np.testing.assert_allclose(slopes(p, a, b), (by_p, -ends[0], ends[1]), rtol=1e-8, atol=1e-9)
        second = quad(lambda t: (t - 0.3) ** 4 * np.exp(-p * (t - 0.3) ** 2), a, b)[0]
        np.testing.assert_allclose(curvature(p, a, b), second, rtol=1e-7, atol=1e-9)
        forward = sg.jvp(integral, (p, a, b), (1.0, 0.0, 0.0), backend=backend)[1]
        np.testing.assert_allclose(forward, by_p, rtol=1e-8, atol=1e-9)


def test_integrals_of_rows_of_limits_that_may_be_infinite() -> None:
    tails = np.vectorize(lambda a, b, p: quad(lambda t: np.exp(-p * t), a, b)[0], otypes=[float])
    ends = np.array([np.inf, 1.0, np.inf])
    starts = np.array([0.0, 0.5, 2.0])
    slope = sg.grad(lambda p: np.sum(tails(starts, ends, p)))(0.7)
    exact = [quad(lambda t: -t * np.exp(-0.7 * t), a, b)[0] for a, b in zip(starts, ends, strict=True)]
    np.testing.assert_allclose(slope, sum(exact), rtol=1e-8)


RATES = np.array([0.5, 1.3, 2.0])
OF_ARRAYS: dict[str, Callable[[Any], Any]] = {
    "a vector": lambda k: quad_vec(lambda t: np.exp(-k * t) * np.sin(t), 0, 2)[0],
    "a matrix": lambda k: quad_vec(lambda t: np.outer(np.cos(k * t), k), 0, 2.0, norm="max")[0],
    "a number": lambda k: quad_vec(lambda t, c: np.exp(-c * t), 0, 1, args=(k[0],))[0],
    "complex numbers": lambda k: quad_vec(lambda t: np.exp(1j * k * t), 0, 1)[0],
    "the line": lambda k: quad_vec(lambda t: np.exp(-k * t**2), -np.inf, np.inf)[0],
    "a half-line": lambda k: quad_vec(lambda t: np.exp(-k * t), np.inf, 0)[0],
    "limits": lambda k: quad_vec(lambda t: np.exp(-RATES * t), k[0], k[1])[0],
    "one of them has a peak": lambda k: quad_vec(
        lambda t: np.stack([k[1], 1e-2 / ((t - k[0]) ** 2 + 1e-4)]), 0, 1, norm="max"
    )[0],
}


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("name", OF_ARRAYS)
def test_integrals_of_arrays(name: str, backend: str) -> None:
    check_slopes(OF_ARRAYS[name], RATES, backend, loose=10.0)


def test_what_integrals_of_arrays_are_not_told() -> None:
    for options in ({"points": [0.5]}, {"full_output": True}, {"norm": np.max}):
        with pytest.raises(SrcgradError, match="quad_vec with"):
            sg.grad(lambda k, o=options: np.sum(quad_vec(lambda t: k * t, 0, 1, **o)[0]))(RATES)


def test_an_integral_over_three_variables_that_takes_too_many_parts_is_an_error() -> None:
    """Its integrand has a step: SciPy halves its intervals fifty times."""

    def stepped(p: Any) -> Any:
        return tplquad(lambda z, y, x: np.where(x * y < 0.1 * p, 1.0, z), 0, 1, 0, 1, 0, 1)[0]

    for f in (sg.jit(stepped), sg.grad(stepped)):
        with pytest.raises(ArithmeticError, match="more than 8 parts"):
            f(1.0)
