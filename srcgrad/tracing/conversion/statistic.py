"""Python's modules ``statistics`` and ``fractions``: no traced value is one of integers, NumPy's sums are instead."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

import numpy as np

from srcgrad.errors import UnsupportedError
from srcgrad.tracing.conversion.arithmetic import said
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


def refuse(fails: Any, function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Raise what a function says of these arguments where the condition holds; nothing if Python computes there."""
    message = said(function, *args, **kwargs)
    if message:
        emit_check(np.logical_not(fails), "StatisticsError", message)


def number_of(found: Any, items: list[Any]) -> Any:
    """A result: a number of Python's where all that it is made of are."""
    weak = all(type(item) in (int, float, bool) or (isinstance(item, Tracer) and item.weak) for item in items)
    return from_value(as_tracer(found).read(), scalar=True, weak=weak)


WEIGHED: Final = (statistics.fmean, statistics.harmonic_mean)


def ruled(function: Callable[..., Any], least: int, computed: Callable[..., Any]) -> None:
    """Register what stands for a function of data, of which it needs so many; it says itself what is wrong else."""

    def rule(data: Any, *args: Any, **kwargs: Any) -> Any:
        items = list(data)
        weighed: dict[str, list[Any]] = {}
        weights: Any = kwargs.get("weights", args[0] if args else None) if function in WEIGHED else None
        if weights is not None:
            args, kwargs = (), (weighed := {"weights": list(weights)})
        given = [*items, *args, *kwargs.values()]
        if not any(map(contains_tracer, given)):
            return function(items, *args, **kwargs)
        if len(items) < least or any(len(column) != len(items) for column in weighed.values()):
            return function([1.0] * len(items), **{name: [1.0] * len(column) for name, column in weighed.items()})
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
    square = covariance(x, x) * covariance(y, y)
    refuse(square == 0.0, statistics.correlation, [1.0, 1.0], [1.0, 2.0])
    return covariance(x, y) / np.sqrt(square)


def regression(x: Any, y: Any, proportional: bool = False) -> Any:
    """The class of the result is `statistics`' own, which is not in its ``__all__``."""
    if proportional:
        square = np.sum(x * x)
        refuse(square == 0.0, statistics.linear_regression, [0.0, 0.0], [1.0, 2.0], proportional=True)
        return statistics.LinearRegression(np.sum(x * y) / square, 0.0)
    square = covariance(x, x)
    refuse(square == 0.0, statistics.linear_regression, [1.0, 1.0], [1.0, 2.0])
    slope = covariance(x, y) / square
    return statistics.LinearRegression(slope, np.mean(y) - slope * np.mean(x))


def harmonic(x: Any, weights: Any = None) -> Any:
    refuse(np.any(x < 0.0), statistics.harmonic_mean, [-1.0])
    if weights is None:
        return len(x) / np.sum(1.0 / x)
    share = as_tracer(list(weights))
    refuse(np.any(share < 0.0), statistics.harmonic_mean, [1.0], weights=[-1.0])
    total = np.sum(np.where(share == 0.0, 0.0, share / np.where(share == 0.0, 1.0, x)))
    refuse(total <= 0.0, statistics.harmonic_mean, [1.0], weights=[0.0])
    return np.sum(share) / total


def geometric(x: Any) -> Any:
    for fails, example in ((x < 0.0, -1.0), (x == 0.0, 0.0)):  # the latter is an error before Python 3.13
        refuse(np.any(fails), statistics.geometric_mean, [example])
    return np.exp(np.mean(np.log(x)))


def weighted(x: Any, weights: Any = None) -> Any:
    if weights is None:
        return np.mean(x)
    share = as_tracer(list(weights))
    total = np.sum(share)
    refuse(total == 0.0, statistics.fmean, [1.0], [0.0])
    return np.sum(x * share) / total


def squares(x: Any, center: Any) -> Any:
    return np.sum((x - (np.mean(x) if center is None else center)) ** 2)


ruled(statistics.mean, 1, np.mean)
ruled(statistics.fmean, 1, weighted)
ruled(statistics.geometric_mean, 1, geometric)
ruled(statistics.variance, 2, lambda x, xbar=None: squares(x, xbar) / (len(x) - 1))
ruled(statistics.pvariance, 1, lambda x, mu=None: squares(x, mu) / len(x))
ruled(statistics.stdev, 2, lambda x, xbar=None: np.sqrt(squares(x, xbar) / (len(x) - 1)))
ruled(statistics.pstdev, 1, lambda x, mu=None: np.sqrt(squares(x, mu) / len(x)))
ruled(statistics.harmonic_mean, 1, harmonic)
paired(statistics.covariance, covariance)
paired(statistics.correlation, correlation)
paired(statistics.linear_regression, regression)
