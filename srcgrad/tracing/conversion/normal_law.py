"""``statistics.NormalDist`` of parameters, or at places, that are traced."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from srcgrad.tracing.conversion.calls import call_rule
from srcgrad.tracing.conversion.effects import emit_check
from srcgrad.tracing.tracer import as_tracer, contains_tracer

ROOT: Final = math.sqrt(2.0)


def special() -> Any:
    """SciPy's functions, imported where they are asked for."""
    import scipy.special

    return scipy.special


class Normal(statistics.NormalDist):
    """A normal distribution with traced parameters, which Python asks first where it meets one with numbers."""

    __slots__ = ()

    def __init__(self, mu: Any = 0.0, sigma: Any = 1.0) -> None:
        self._mu, self._sigma = as_tracer(mu), as_tracer(sigma)
        emit_check(self.stdev >= 0.0, "ValueError", "sigma must be non-negative")

    def positive(self, what: str) -> None:
        emit_check(self.stdev > 0.0, "ValueError", f"{what} not defined when sigma is zero")

    def zscore(self, x: Any) -> Any:
        self.positive("zscore()")
        return (x - self.mean) / self.stdev

    def pdf(self, x: Any) -> Any:
        self.positive("pdf()")
        away = x - self.mean
        return np.exp(away * away / (-2.0 * self.variance)) / np.sqrt(math.tau * self.variance)

    def cdf(self, x: Any) -> Any:
        self.positive("cdf()")
        return 0.5 * special().erfc((self.mean - x) / (self.stdev * ROOT))

    def inv_cdf(self, p: Any) -> Any:
        emit_check(
            np.logical_and(as_tracer(p) > 0.0, as_tracer(p) < 1.0), "ValueError", "p must be in the range 0.0 < p < 1.0"
        )
        return self.mean + special().ndtri(as_tracer(p)) * self.stdev

    def quantiles(self, n: int = 4) -> list[Any]:
        return [self.inv_cdf(k / n) for k in range(1, n)]

    def overlap(self, other: Any) -> Any:
        """The area below both densities, which cross at one place where the deviations are equal, else at two."""
        one, two, erf = self, normal(other), special().erf
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


def method(name: str) -> Callable[..., Any]:
    original = getattr(statistics.NormalDist, name)

    def rule(law: Any, *args: Any, **kwargs: Any) -> Any:
        traced = contains_tracer([*args, *kwargs.values()]) or any(type(x) is Normal for x in args)
        return getattr(normal(law), name)(*args, **kwargs) if traced else original(law, *args, **kwargs)

    return rule


for _name in ("zscore", "pdf", "cdf", "inv_cdf", "overlap"):
    call_rule(getattr(statistics.NormalDist, _name))(method(_name))
