"""Python's modules ``statistics`` and ``fractions``: no traced value is one of integers, NumPy's sums are instead."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from srcgrad.errors import UnsupportedError
from srcgrad.tracing.conversion.calls import call_rule
from srcgrad.tracing.conversion.effects import emit_check
from srcgrad.tracing.tracer import Tracer, as_tracer, contains_tracer, from_value


@call_rule(Fraction)
def fraction(*args: Any, **kwargs: Any) -> Fraction:
    """
    Raises:
        UnsupportedError: it is of a number that is known only when the program runs.
    """
    if contains_tracer((args, kwargs)):
        raise UnsupportedError("a Fraction of a traced value", hint="compute with the number itself, which is a float")
    return Fraction(*args, **kwargs)


def number_of(found: Any, items: list[Any]) -> Any:
    """A result: a number of Python's where all that it is made of are."""
    weak = all(type(item) in (int, float, bool) or (isinstance(item, Tracer) and item.weak) for item in items)
    return from_value(as_tracer(found).read(), scalar=True, weak=weak)


def ruled(function: Callable[..., Any], least: int, computed: Callable[..., Any]) -> None:
    """Register what stands for a function of data, of which it needs so many; it says itself what is wrong else."""

    def rule(data: Any, *args: Any, **kwargs: Any) -> Any:
        items = list(data)
        given = [*items, *args, *kwargs.values()]
        if not any(map(contains_tracer, given)):
            return function(items, *args, **kwargs)
        if len(items) < least:
            return function([0.0] * len(items))  # which raises its own error
        array = np.array([0.0] * len(items)) + as_tracer(items)
        return number_of(computed(array, *args, **kwargs), given)

    call_rule(function)(rule)


def paired(function: Callable[..., Any], computed: Callable[..., Any]) -> None:
    """Register what stands for a function of two columns."""

    def rule(x: Any, y: Any, /, **kwargs: Any) -> Any:
        given = [list(x), list(y)]
        if not contains_tracer(given):
            return function(*given, **kwargs)
        if len(given[0]) != len(given[1]) or len(given[0]) < 2:
            return function(*([0.0] * len(column) for column in given))  # which raises its own error
        if not contains_tracer(given[0]):
            function(given[0], range(len(given[0])), **kwargs)  # so does it where x is constant
        columns = [np.array([0.0] * len(column)) + as_tracer(column) for column in given]
        found = computed(*columns, **kwargs)
        items = [*given[0], *given[1]]
        if isinstance(found, tuple):
            return type(found)(*(number_of(part, items) for part in found))
        return number_of(found, items)

    call_rule(function)(rule)


def covariance(x: Any, y: Any) -> Any:
    return np.sum((x - np.mean(x)) * (y - np.mean(y))) / (len(x) - 1)


def correlation(x: Any, y: Any, method: str = "linear") -> Any:
    if method != "linear":
        raise UnsupportedError(f"statistics.correlation of traced values by {method!r}", hint="ranks have no slope")
    return covariance(x, y) / np.sqrt(covariance(x, x) * covariance(y, y))


def regression(x: Any, y: Any, proportional: bool = False) -> Any:
    """The class of the result is `statistics`' own, which is not in its ``__all__``."""
    if proportional:
        return statistics.LinearRegression(np.sum(x * y) / np.sum(x * x), 0.0)
    slope = covariance(x, y) / covariance(x, x)
    return statistics.LinearRegression(slope, np.mean(y) - slope * np.mean(x))


def harmonic(x: Any, weights: Any = None) -> Any:
    emit_check(np.all(x >= 0), "ValueError", "harmonic mean does not support negative values")
    share = np.ones(len(x)) if weights is None else as_tracer(list(weights))
    return np.sum(share) / np.sum(share / x)


def weighted(x: Any, weights: Any = None) -> Any:
    return np.mean(x) if weights is None else np.sum(x * as_tracer(list(weights))) / np.sum(as_tracer(list(weights)))


def squares(x: Any, center: Any) -> Any:
    return np.sum((x - (np.mean(x) if center is None else center)) ** 2)


ruled(statistics.mean, 1, np.mean)
ruled(statistics.fmean, 1, weighted)
ruled(statistics.geometric_mean, 1, lambda x: np.exp(np.mean(np.log(x))))
ruled(statistics.variance, 2, lambda x, xbar=None: squares(x, xbar) / (len(x) - 1))
ruled(statistics.pvariance, 1, lambda x, mu=None: squares(x, mu) / len(x))
ruled(statistics.stdev, 2, lambda x, xbar=None: np.sqrt(squares(x, xbar) / (len(x) - 1)))
ruled(statistics.pstdev, 1, lambda x, mu=None: np.sqrt(squares(x, mu) / len(x)))
ruled(statistics.harmonic_mean, 1, harmonic)
paired(statistics.covariance, covariance)
paired(statistics.correlation, correlation)
paired(statistics.linear_regression, regression)
