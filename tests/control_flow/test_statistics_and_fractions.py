"""Python's statistics of two columns, harmonic means and fractions are parts of programs."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.control_flow.traced_once import require_one_program

PLACES = [1, 2, 3.5, 7]


def slope(x: Any) -> Any:
    line = statistics.linear_regression(PLACES, list(x))
    return line.slope * line.intercept


def line_of_traced_places(x: Any) -> Any:
    slope, intercept = statistics.linear_regression(x.tolist(), PLACES)
    return slope + 2 * intercept


def through_the_origin(x: Any) -> Any:
    line = statistics.linear_regression(PLACES, x, proportional=True)
    return line.slope**2 + line.intercept


def covariances(x: Any) -> Any:
    return statistics.covariance(PLACES, x.tolist()) + statistics.covariance(x, x**2)


def correlation(x: Any) -> Any:
    return statistics.correlation(PLACES, x)


def harmonic_means(x: Any) -> Any:
    return statistics.harmonic_mean(x) * statistics.harmonic_mean(list(x), weights=[1, 2, 3, 4])


def fractions_of_numbers(x: Any) -> Any:
    a = float(x[0])
    return a * Fraction(1, 3) / Fraction(2, 7) + Fraction(1, 2) * x[1] - a ** Fraction(1, 2) + Fraction(3, 2) ** a


HALF = Fraction(1, 2)


def captured_fraction(x: Any) -> Any:
    return (x[0] ** 2 - HALF) * x[1] + x[2] % HALF


FUNCTIONS = [
    slope,
    line_of_traced_places,
    through_the_origin,
    covariances,
    correlation,
    harmonic_means,
    fractions_of_numbers,
    captured_fraction,
]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_it_is_one_program(f: Callable[..., Any], backend: str) -> None:
    require_one_program(f, backend, np.array([0.7, 1.3, 2.15, 1.9]), np.array([2.1, 0.4, 1.2, 3.0]))


@pytest.mark.parametrize(
    ("f", "match"),
    [
        (lambda x: statistics.covariance([1.0], [x]), "at least two"),
        (lambda x: statistics.covariance([1.0, 2.0], [x, x, x]), "same number"),
        (lambda x: statistics.linear_regression([1.0, 1.0], [x, 2 * x]).slope, "constant"),
        (lambda x: statistics.harmonic_mean([x, -x]), "negative"),
    ],
)
def test_what_python_refuses_is_refused(f: Callable[[Any], Any], match: str) -> None:
    for run in (f, sg.jit(f), sg.grad(f)):
        with pytest.raises(ValueError, match=match):
            run(1.5)


def test_a_fraction_of_a_traced_value_is_refused() -> None:
    def f(x: Any) -> Any:
        total = 0.0
        while total < x:
            total = total + 1.0
        return total * Fraction(x)

    with pytest.raises(sg.SrcgradError, match="Fraction of a traced value"):
        sg.grad(f)(1.5)


def test_a_single_number_and_a_fraction_are_a_double() -> None:
    """As in Python, where the product is a float: in single precision it would be rounded."""
    x, y = np.float32(1.3), Fraction(1, 3)
    assert sg.jit(lambda x: x * y)(x) == x * y


FIXED = statistics.NormalDist(0.1, 1.3)
NORMAL: dict[str, Callable[[Any, Any], Any]] = {
    "density": lambda m, s: statistics.NormalDist(m, s).pdf(0.7),
    "distribution": lambda m, s: statistics.NormalDist(mu=m, sigma=s).cdf(m * s),
    "quantiles": lambda m, s: sum(statistics.NormalDist(m, s).quantiles(5)[:3]),
    "overlap": lambda m, s: statistics.NormalDist(m, s).overlap(FIXED) * FIXED.overlap(statistics.NormalDist(m, 1.3)),
    "sums": lambda m, s: (3 - statistics.NormalDist(m, s) * 2 + FIXED).cdf(0.3),
    "differences": lambda m, s: (FIXED - statistics.NormalDist(m, s) / m).zscore(s),
    "of numbers": lambda m, s: FIXED.cdf(m) * FIXED.pdf(s) + FIXED.inv_cdf(m) * FIXED.zscore(s),
    "what it holds": lambda m, s: statistics.NormalDist(m, s).variance * statistics.NormalDist(m, s).median,
}


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("name", NORMAL)
def test_normal_distributions_of_traced_numbers(name: str) -> None:
    f, at, step = NORMAL[name], (0.3, 1.2), 1e-5
    assert sg.jit(f)(*at) == pytest.approx(f(*at), rel=1e-13)
    slopes = sg.grad(f, argnums=(0, 1))(*at)
    expected = [
        (f(at[0] + step, at[1]) - f(at[0] - step, at[1])) / (2 * step),
        (f(at[0], at[1] + step) - f(at[0], at[1] - step)) / (2 * step),
    ]
    np.testing.assert_allclose(slopes, expected, rtol=1e-7, atol=1e-9)


def test_errors_of_normal_distributions() -> None:
    with pytest.raises(ValueError, match="sigma must be non-negative"):
        sg.grad(lambda s: statistics.NormalDist(0.0, s).pdf(0.3))(-1.0)
    with pytest.raises(ValueError, match="not defined when sigma is zero"):
        sg.grad(lambda s: statistics.NormalDist(0.0, s).cdf(0.3))(0.0)
    with pytest.raises(ValueError, match="p must be in the range"):
        sg.grad(lambda p: statistics.NormalDist(0.0, 1.0).inv_cdf(p))(1.0)
