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


REFUSED: dict[str, tuple[Callable[[Any], Any], float]] = {
    "one pair": (lambda x: statistics.covariance([1.0], [x]), 1.5),
    "columns that differ": (lambda x: statistics.covariance([1.0, 2.0], [x, x, x]), 1.5),
    "a line over one place": (lambda x: statistics.linear_regression([1.0, 1.0], [x, 2 * x]).slope, 1.5),
    "a line over one traced place": (lambda x: statistics.linear_regression([x, x], [1.0, 2.0]).slope, 1.5),
    "a line through the origin": (
        lambda x: statistics.linear_regression([x, x], [1.0, 2.0], proportional=True).slope,
        0.0,
    ),
    "correlation": (lambda x: statistics.correlation([1.0, 2.0], [x, x]), 1.5),
    "harmonic, negative": (lambda x: statistics.harmonic_mean([x, -x]), 1.5),
    "harmonic, weights": (lambda x: statistics.harmonic_mean([x, 2.0], weights=[1]), 1.5),
    "harmonic, a negative weight": (lambda x: statistics.harmonic_mean([1.0, 2.0], weights=[x, 0]), -1.5),
    "harmonic, weights of 0": (lambda x: statistics.harmonic_mean([x, 2.0], weights=[0, 0]), 1.5),
    "geometric, negative": (lambda x: statistics.geometric_mean([x, 2.0]), -1.5),
    "mean, weights": (lambda x: statistics.fmean([x, 2.0], weights=[1]), 1.5),
    "mean, weights that cancel": (lambda x: statistics.fmean([1.0, 2.0], [x, -1]), 1.0),
    "a negative deviation": (lambda s: statistics.NormalDist(0.0, s).pdf(0.3), -1.0),
    "density": (lambda s: statistics.NormalDist(0.0, s).pdf(0.3), 0.0),
    "distribution": (lambda s: statistics.NormalDist(0.0, s).cdf(0.3), 0.0),
    "score": (lambda s: statistics.NormalDist(0.0, s).zscore(0.3), 0.0),
    "quantile": (lambda p: statistics.NormalDist(0.0, 1.0).inv_cdf(p), 1.0),
    "overlap": (lambda s: statistics.NormalDist(0.0, s).overlap(statistics.NormalDist()), 0.0),
    "overlap with a number": (lambda s: statistics.NormalDist(0.0, s).overlap(s), 1.0),
    "one sample": (lambda x: statistics.NormalDist.from_samples([x]).mean, 1.0),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_python_refuses_is_refused(name: str) -> None:
    f, at = REFUSED[name]
    with pytest.raises((statistics.StatisticsError, TypeError)) as expected:
        f(at)
    for run in (sg.jit(f), sg.jit(f, backend="numpy"), sg.grad(f)):
        with pytest.raises(type(expected.value)) as found:
            run(at)
        assert (type(found.value), str(found.value)) == (type(expected.value), str(expected.value))


def test_the_xla_backend_raises_errors_of_statistics() -> None:
    pytest.importorskip("jax")
    with pytest.raises(statistics.StatisticsError, match="not defined when sigma is zero"):
        sg.grad(REFUSED["density"][0], backend="xla")(0.0)


def caught(x: Any) -> Any:
    try:
        return statistics.NormalDist(0.0, x).pdf(0.3)
    except statistics.StatisticsError:
        return 2.0 * x


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_errors_of_statistics_are_caught(backend: str) -> None:
    for x in (-1.0, 0.0, 1.0):
        assert sg.jit(caught, backend=backend)(x) == pytest.approx(caught(x), rel=1e-14)
    assert sg.grad(caught, backend=backend)(-1.0) == 2.0


def test_zeros_among_what_is_weighed_harmonically() -> None:
    """A weight of 0 counts for nothing, whatever it is of; a datum of 0 with another makes the mean 0."""
    f = lambda x: statistics.harmonic_mean([x, 0.0, 2.0], weights=[2.0, 0.0, 1.0])  # noqa: E731
    g = lambda x: statistics.harmonic_mean([x, 0.0, 2.0])  # noqa: E731
    assert sg.jit(f)(1.5) == pytest.approx(f(1.5), rel=1e-14)
    assert sg.grad(f)(1.5) == pytest.approx((f(1.50001) - f(1.49999)) / 2e-5, rel=1e-8)
    assert sg.jit(g)(1.5) == g(1.5) == 0.0


def test_a_fraction_of_a_traced_value_is_refused() -> None:
    def f(x: Any) -> Any:
        total = 0.0
        while total < x:
            total = total + 1.0
        return total * Fraction(x)

    with pytest.raises(sg.SrcgradError, match=r"float\.as_integer_ratio is not supported on a traced number"):
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
    "samples": lambda m, s: statistics.NormalDist.from_samples([m, s, 2.0]).cdf(0.7),
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
