"""``statistics.NormalDist`` of parameters, or at places, that are traced."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from srcgrad.tracing.conversion.calls import CALLS, call_rule
from srcgrad.tracing.conversion.statistic import refuse
from srcgrad.tracing.tracer import as_tracer, contains_tracer

ROOT: Final = math.sqrt(2.0)


FIXED: Final = statistics.NormalDist(0.0, 1.0)
NARROW: Final = statistics.NormalDist(0.0, 0.0)
"""One that has no density."""


def special() -> Any:
    """SciPy's functions, imported where they are asked for."""
    import scipy.special

    return scipy.special


class Normal(statistics.NormalDist):
    """A normal distribution with traced parameters, which Python asks first where it meets one with numbers."""

    __slots__ = ()

    def __init__(self, mu: Any = 0.0, sigma: Any = 1.0) -> None:
        self._mu, self._sigma = as_tracer(mu), as_tracer(sigma)
        refuse(self.stdev < 0.0, statistics.NormalDist, 0.0, -1.0)

    def zscore(self, x: Any) -> Any:
        refuse(self.stdev == 0.0, NARROW.zscore, 0.0)
        return (x - self.mean) / self.stdev

    def pdf(self, x: Any) -> Any:
        refuse(self.variance == 0.0, NARROW.pdf, 0.0)
        away = x - self.mean
        return np.exp(away * away / (-2.0 * self.variance)) / np.sqrt(math.tau * self.variance)

    def cdf(self, x: Any) -> Any:
        refuse(self.stdev == 0.0, NARROW.cdf, 0.0)
        return 0.5 * special().erfc((self.mean - x) / (self.stdev * ROOT))

    def inv_cdf(self, p: Any) -> Any:
        share = as_tracer(p)
        refuse(np.logical_or(share <= 0.0, share >= 1.0), FIXED.inv_cdf, 0.0)
        refuse(self.stdev == 0.0, NARROW.inv_cdf, 0.5)
        return self.mean + special().ndtri(share) * self.stdev

    def quantiles(self, n: int = 4) -> list[Any]:
        return [self.inv_cdf(k / n) for k in range(1, n)]

    def overlap(self, other: Any) -> Any:
        """The area below both densities, which cross at one place where the deviations are equal, else at two."""
        if not isinstance(other, statistics.NormalDist):
            return FIXED.overlap(other)  # which raises its own error
        one, two, erf = self, normal(other), special().erf
        refuse(np.logical_or(one.variance == 0.0, two.variance == 0.0), NARROW.overlap, FIXED)
        middle, same = np.abs(one.mean - two.mean), one.stdev == two.stdev
        wide = np.where(same, two.stdev + 1.0, two.stdev)
        a, b, distance = one.variance, wide * wide, two.mean - one.mean
        root = np.sqrt(distance * distance + (a - b) * np.log(a / b))
        total: Any = 0.0
        for sign in (1.0, -1.0):
            x = (one.mean * b - two.mean * a + sign * one.stdev * wide * root) / (b - a)
            total = total + np.abs(
                0.5 * (erf((x - two.mean) / (wide * ROOT)) - erf((x - one.mean) / (one.stdev * ROOT)))
            )
        return np.where(same, 1.0 - erf(middle / (2.0 * one.stdev * ROOT)), 1.0 - total)

    def __add__(self, other: Any) -> Normal:
        if isinstance(other, statistics.NormalDist):
            return Normal(self.mean + other.mean, np.hypot(self.stdev, other.stdev))
        return Normal(self.mean + other, self.stdev)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Normal:
        return self + (-normal(other) if isinstance(other, statistics.NormalDist) else -other)

    def __rsub__(self, other: Any) -> Normal:
        return Normal(-self.mean, self.stdev).__add__(other)

    def __mul__(self, factor: Any) -> Normal:
        return Normal(self.mean * factor, self.stdev * np.abs(factor))

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> Normal:
        return Normal(self.mean / divisor, self.stdev / np.abs(divisor))

    def __pos__(self) -> Normal:
        return self

    def __neg__(self) -> Normal:
        return Normal(-self.mean, self.stdev)


def normal(law: Any) -> Normal:
    return law if type(law) is Normal else Normal(law.mean, law.stdev)


@call_rule(statistics.NormalDist)
def made(*args: Any, **kwargs: Any) -> Any:
    return (Normal if contains_tracer([*args, *kwargs.values()]) else statistics.NormalDist)(*args, **kwargs)


@call_rule(statistics.NormalDist.from_samples.__func__)  # type: ignore[attr-defined]
def of_samples(kind: type, data: Any) -> Any:
    items = list(data)
    if kind is not statistics.NormalDist or not contains_tracer(items):
        return statistics.NormalDist.from_samples.__func__(kind, items)  # type: ignore[attr-defined]
    stdev = CALLS[statistics.stdev](items)
    return Normal(CALLS[statistics.mean](items), stdev)


def method(name: str) -> Callable[..., Any]:
    original = getattr(statistics.NormalDist, name)

    def rule(law: Any, *args: Any, **kwargs: Any) -> Any:
        traced = contains_tracer([*args, *kwargs.values()]) or any(type(x) is Normal for x in args)
        return getattr(normal(law), name)(*args, **kwargs) if traced else original(law, *args, **kwargs)

    return rule


for _name in ("zscore", "pdf", "cdf", "inv_cdf", "overlap"):
    call_rule(getattr(statistics.NormalDist, _name))(method(_name))
