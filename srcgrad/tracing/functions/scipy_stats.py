"""Rules of the summary statistics of ``scipy.stats``, found by the function that is called.

Importing this module imports SciPy.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sc
import scipy.stats

from srcgrad.errors import ArgumentError, ShapeError, UnsupportedError
from srcgrad.tracing.functions.quantiles import moved_last
from srcgrad.tracing.functions.registry import (
    Rule,
    along_axis,
    as_array,
    axes_of,
    cast,
    function_rule,
    inexact_dtype,
    refuse,
    require,
    scalar_if_rank0,
)
from srcgrad.tracing.functions.scipy_linalg import SINCE_1_18


def sample(a: Any, axis: Any, nan_policy: Any = "propagate", omits: bool = False) -> tuple[Any, int]:
    """The array of floats and the axis of the observations; all of them for None.

    ``omits``: the caller leaves nan out where it is told to, by `Summary`.
    """
    if nan_policy not in ("propagate", "raise", "omit"):
        raise ArgumentError("nan_policy must be one of {'propagate', 'raise', 'omit'}")
    if not omits:
        refuse("scipy.stats", nan_policy=("propagate" if nan_policy == "raise" else nan_policy, "propagate"))
    if isinstance(axis, (tuple, list)):
        raise UnsupportedError("scipy.stats with several axes is not supported on traced arrays", hint="reshape first")
    x = as_array(a)
    x, place = along_axis(cast(x, inexact_dtype(x.dtype)), axis)
    if nan_policy == "raise":
        require(~np.any(np.isnan(x)), "ValueError", "The input contains nan values")
    return x, place


class Summary:
    """Means, deviations and counts along an axis of a sample, of what is not nan where ``nan_policy`` is "omit"."""

    def __init__(self, a: Any, axis: Any, nan_policy: Any) -> None:
        self.x, self.place = sample(a, axis, nan_policy, omits=True)
        self.omits = nan_policy == "omit"
        self.count: Any = self.x.shape[self.place]
        if self.omits:
            self.count = cast(np.sum(~np.isnan(self.x), axis=self.place), self.x.dtype)

    def mean(self, x: Any, keepdims: bool = False) -> Any:
        return (np.nanmean if self.omits else np.mean)(x, axis=self.place, keepdims=keepdims)

    def std(self, ddof: Any, keepdims: bool = False) -> Any:
        return (np.nanstd if self.omits else np.std)(self.x, axis=self.place, ddof=ddof, keepdims=keepdims)

    def central(self, order: int, center: Any = None) -> Any:
        """The mean of the powers of what is left beside the mean."""
        middle = self.mean(self.x, keepdims=True) if center is None else center
        return self.mean((self.x - middle) ** order)

    def where_more(self, least: int, found: Any, other: Any) -> Any:
        """One result where there are more observations than so many, else the other."""
        if self.omits:
            return np.where(self.count > least, found(np.maximum(self.count, least + 1)), other)
        return found(self.count) if self.count > least else other

    def kept(self, result: Any, keepdims: bool, given: Any) -> Any:
        """The reduced array, with axes of size 1 where ``keepdims`` asks for them; ``given``: how many there were."""
        return kept(result, self.place, keepdims, self.x.ndim, given)


def root(count: Any) -> Any:
    """The square root of a number of observations: of one that is known a Python float."""
    return math.sqrt(count) if isinstance(count, (int, float)) else np.sqrt(count)


def kept(result: Any, axis: int, keepdims: bool, rank: int, given: Any) -> Any:
    """The reduced array, with axes of size 1 where ``keepdims`` asks for them."""
    if keepdims:
        return np.reshape(result, (1,) * given) if rank != given else np.expand_dims(result, axis)
    return scalar_if_rank0(result)


def reducing(*functions: Any) -> Callable[[Rule], Rule]:
    """As `function_rule`, of rules for one axis: several are made one, the last."""

    def register(rule: Rule) -> Rule:
        signature = inspect.signature(rule)
        first = next(iter(signature.parameters))

        @functools.wraps(rule)
        def found(*args: Any, **kwargs: Any) -> Any:
            kwargs.pop("_no_deco", None)  # SciPy's tests call its statistics so, on what they have prepared
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            given = bound.arguments
            if not isinstance(given["axis"], tuple):
                return rule(*args, **kwargs)
            if not given["axis"]:
                raise UnsupportedError(f"{functions[0].__name__} along no axis is not supported on traced arrays")
            x, keepdims = as_array(given[first]), given["keepdims"]
            axes = axes_of(given["axis"], x.ndim)
            for name in ("qk", "weights"):
                if given.get(name) is not None:
                    given[name] = moved_last(np.broadcast_to(as_array(given[name]), x.shape), axes)[0]
            given.update({first: moved_last(x, axes)[0], "axis": -1, "keepdims": False})
            result = rule(*bound.args, **bound.kwargs)
            if not keepdims:
                return result
            ahead = np.ndim(result) + len(axes) - x.ndim
            return np.expand_dims(result, tuple(ahead + k for k in axes))

        function_rule(*functions)(found)
        return rule

    return register


@reducing(scipy.stats.moment)
def moment(
    a: Any, order: Any = 1, axis: Any = 0, nan_policy: Any = "propagate", *, center: Any = None, keepdims: bool = False
) -> Any:
    """The first one about the mean is 0, but of nan."""
    s = Summary(a, axis, nan_policy)

    def found(order: Any) -> Any:
        zero = order == 1 and center is None
        value = np.where(np.isnan(s.mean(s.x)), s.x.dtype.type(np.nan), 0) if zero else s.central(order, center)
        return s.kept(value, keepdims, np.ndim(a))

    return np.stack([found(k) for k in order]) if np.ndim(order) else found(order)


@reducing(scipy.stats.skew)
def skew(a: Any, axis: Any = 0, bias: bool = True, nan_policy: Any = "propagate", *, keepdims: bool = False) -> Any:
    s = Summary(a, axis, nan_policy)
    found = s.central(3) / s.central(2) ** 1.5
    if not bias:
        found = s.where_more(2, lambda n: found * (root(n * (n - 1.0)) / (n - 2.0)), found)
    return s.kept(found, keepdims, np.ndim(a))


@reducing(scipy.stats.kurtosis)
def kurtosis(
    a: Any, axis: Any = 0, fisher: bool = True, bias: bool = True, nan_policy: Any = "propagate", *,
    keepdims: bool = False,
) -> Any:  # fmt: skip
    s = Summary(a, axis, nan_policy)
    found = s.central(4) / s.central(2) ** 2

    def unbiased(n: Any) -> Any:
        return ((n**2 - 1.0) * found - 3.0 * (n - 1.0) ** 2) / ((n - 2.0) * (n - 3.0)) + 3.0

    if not bias:
        found = s.where_more(3, unbiased, found)
    return s.kept(found - 3.0 if fisher else found, keepdims, np.ndim(a))


@reducing(scipy.stats.sem)
def sem(a: Any, axis: Any = 0, ddof: Any = 1, nan_policy: Any = "propagate", *, keepdims: bool = False) -> Any:
    """Of one observation SciPy has none."""
    s = Summary(a, axis, nan_policy)
    unknown = np.full_like(s.mean(s.x), np.nan)
    return s.kept(s.where_more(1, lambda n: s.std(ddof) / root(n), unknown), keepdims, np.ndim(a))


@reducing(scipy.stats.variation)
def variation(a: Any, axis: Any = 0, nan_policy: Any = "propagate", ddof: Any = 0, *, keepdims: bool = False) -> Any:
    """SciPy's variance of fewer observations than ``ddof`` is none; of as many it is infinite."""
    s = Summary(a, axis, nan_policy)
    if ddof > s.x.shape[s.place]:
        return s.kept(np.full_like(np.mean(s.x, axis=s.place), np.nan), keepdims, np.ndim(a))
    deviation, mean = s.std(ddof), s.mean(s.x)
    if s.omits and ddof:  # np.nanstd has nan of as many, where the deviation is over 0
        infinite = np.where(s.central(2) > 0, np.copysign(np.inf, mean), np.nan)
        return s.kept(np.where(s.count == ddof, infinite, deviation / mean), keepdims, np.ndim(a))
    return s.kept(deviation / mean, keepdims, np.ndim(a))


@function_rule(scipy.stats.zscore)
def zscore(a: Any, axis: Any = 0, ddof: Any = 0, nan_policy: Any = "propagate") -> Any:
    return zmap(a, a, axis, ddof, nan_policy)


@function_rule(scipy.stats.zmap)
def zmap(scores: Any, compare: Any, axis: Any = 0, ddof: Any = 0, nan_policy: Any = "propagate") -> Any:
    s = Summary(compare, axis, nan_policy)
    mean, spread = s.mean(s.x, keepdims=True), s.std(ddof, keepdims=True)
    if axis is None:
        mean, spread = mean[0], spread[0]
    return (as_array(scores) - mean) / spread


@function_rule(scipy.stats.gzscore)
def gzscore(a: Any, *, axis: Any = 0, ddof: Any = 0, nan_policy: Any = "propagate") -> Any:
    return zscore(np.log(as_array(a)), axis, ddof, nan_policy)


def mean_of(s: Summary, x: Any, weights: Any) -> Any:
    if weights is None:
        return s.mean(x)
    spread = np.broadcast_to(weights, x.shape)
    if not s.omits:
        return np.average(x, axis=s.place, weights=spread)
    unknown = np.isnan(s.x)
    parts, spread = np.where(unknown, 0.0, x * spread), np.where(unknown, 0.0, spread)
    return np.sum(parts, axis=s.place) / np.sum(spread, axis=s.place)


@reducing(scipy.stats.gmean)
def gmean(
    a: Any, axis: Any = 0, dtype: Any = None, weights: Any = None, *, nan_policy: Any = "propagate",
    keepdims: bool = False,
) -> Any:  # fmt: skip
    s = Summary(a if dtype is None else as_array(a).astype(dtype), axis, nan_policy)
    return s.kept(np.exp(mean_of(s, np.log(s.x), weights)), keepdims, np.ndim(a))


@reducing(scipy.stats.hmean)
def hmean(
    a: Any, axis: Any = 0, dtype: Any = None, *, weights: Any = None, nan_policy: Any = "propagate",
    keepdims: bool = False,
) -> Any:  # fmt: skip
    s = Summary(a if dtype is None else as_array(a).astype(dtype), axis, nan_policy)
    return s.kept(1.0 / mean_of(s, 1.0 / s.x, weights), keepdims, np.ndim(a))


@reducing(scipy.stats.pmean)
def pmean(
    a: Any, p: Any, *, axis: Any = 0, dtype: Any = None, weights: Any = None, nan_policy: Any = "propagate",
    keepdims: bool = False,
) -> Any:  # fmt: skip
    if np.ndim(p) == 0 and p == 0:
        return gmean(a, axis, dtype, weights, nan_policy=nan_policy, keepdims=keepdims)
    s = Summary(a if dtype is None else as_array(a).astype(dtype), axis, nan_policy)
    return s.kept(mean_of(s, s.x**p, weights) ** (1.0 / p), keepdims, np.ndim(a))


@reducing(scipy.stats.entropy)
def entropy(
    pk: Any, qk: Any = None, base: Any = None, axis: Any = 0, *, nan_policy: Any = "propagate", keepdims: bool = False
) -> Any:
    """Of weights, which are made to sum to 1; with ``qk`` the divergence of Kullback and Leibler."""
    rank = max(np.ndim(pk), np.ndim(qk))
    if qk is not None:  # weights that are fewer are repeated before they are made to sum to 1
        both = (as_array(pk), as_array(qk))
        pk, qk = np.broadcast_arrays(*(both if axis is not None else [part.reshape(-1) for part in both]))
    x, place = sample(pk, axis, nan_policy)
    p = x / np.sum(x, axis=place, keepdims=True)
    if qk is None:
        parts: Any = sc.entr(p)
    else:
        y, _ = sample(qk, axis, nan_policy)
        parts = sc.rel_entr(p, y / np.sum(y, axis=place, keepdims=True))
    found = np.sum(parts, axis=place)
    return kept(found if base is None else found / math.log(base), place, keepdims, x.ndim, rank)


@reducing(scipy.stats.iqr)
def iqr(
    x: Any, axis: Any = None, rng: Any = (25, 75), scale: Any = 1.0, nan_policy: Any = "propagate",
    interpolation: Any = "linear", keepdims: bool = False,
) -> Any:  # fmt: skip
    values, place = sample(x, axis, nan_policy, omits=True)
    percentile: Any = np.nanpercentile if nan_policy == "omit" else np.percentile
    low, high = percentile(values, sorted(rng), axis=place, method=interpolation)
    unit = 2.0 * math.sqrt(2.0) * float(sc.erfinv(0.5)) if scale == "normal" else scale
    return kept(cast((high - low) / unit, values.dtype), place, keepdims, values.ndim, np.ndim(x))


@function_rule(scipy.stats.rankdata)
def rankdata(a: Any, method: Any = "average", *, axis: Any = None, nan_policy: Any = "propagate") -> Any:
    """Piecewise constant: where runs of equal numbers begin and end when they are sorted.

    Whole ranks are integers before SciPy 1.18: of nan, for which SciPy gives nan, they are an error then.
    """
    if method not in ("average", "min", "max", "dense", "ordinal"):
        raise ArgumentError(f'unknown method "{method}"')
    x, place = sample(a, axis, nan_policy)
    x = np.moveaxis(x, place, -1)
    kind = np.dtype(np.float64 if method == "average" or SINCE_1_18 else np.int64)
    if not x.size:
        return np.zeros(np.moveaxis(x, -1, place).shape, kind)
    order: Any = np.argsort(x, axis=-1, kind="stable")
    rank: Any = np.arange(1, x.shape[-1] + 1)
    numbers = np.take_along_axis(x, order, -1)
    follows = numbers[..., 1:] == numbers[..., :-1]
    edge: Any = np.zeros((*x.shape[:-1], 1), bool)
    begins, ends = ~np.concatenate([edge, follows], -1), ~np.concatenate([follows, edge], -1)
    first = np.maximum.accumulate(np.where(begins, rank, 0), -1)
    last = np.minimum.accumulate(np.where(ends, rank, x.shape[-1])[..., ::-1], -1)[..., ::-1]
    if method == "average":
        found: Any = (first + last) / 2.0
    elif method == "dense":
        found = np.cumsum(begins, -1)
    else:
        found = {"min": first, "max": last, "ordinal": rank + 0 * first}[method]
    found = np.take_along_axis(found, np.argsort(order, axis=-1), -1)
    unknown: Any = np.any(np.isnan(x), axis=-1, keepdims=True)
    if kind.kind == "f":
        found = np.where(unknown, np.nan, found)
    else:
        require(~np.any(unknown), "ValueError", f"ranks of nan by method={method!r} are no integers")
    return np.moveaxis(found, -1, place)


@function_rule(scipy.stats.boxcox)
def boxcox(
    x: Any, lmbda: Any = None, alpha: Any = None, optimizer: Any = None, *, nan_policy: str = "propagate"
) -> Any:
    refuse("scipy.stats.boxcox", nan_policy=(nan_policy, "propagate"))
    if lmbda is None:
        raise UnsupportedError("scipy.stats.boxcox without lmbda is not supported on traced arrays", hint="pass lmbda")
    return sc.boxcox(as_array(x), lmbda)


@function_rule(scipy.stats.boxcox_llf)
def boxcox_llf(lmb: Any, data: Any, *, axis: Any = 0, keepdims: bool = False, nan_policy: Any = "propagate") -> Any:
    """The likelihood of Box and Cox's transform, up to a constant."""
    x, place = sample(data, axis, nan_policy)
    if not x.shape[place]:
        raise ShapeError("boxcox_llf needs observations")
    # Over its geometric mean g the sample's transform varies by a factor of g**-lmb less, and nothing is lost.
    logs = np.log(x)
    around = sc.boxcox(np.exp(logs - np.mean(logs, axis=place, keepdims=True)), lmb)
    found = -np.sum(logs, axis=place) - x.shape[place] / 2.0 * np.log(np.var(around, axis=place))
    return kept(found, place, keepdims, x.ndim, np.ndim(data))
