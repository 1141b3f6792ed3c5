"""Python's module ``statistics``, which computes with fractions that no traced value has: NumPy's sums instead."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

from srcgrad.tracing.conversion.calls import call_rule
from srcgrad.tracing.tracer import Tracer, as_tracer, contains_tracer, from_value


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
