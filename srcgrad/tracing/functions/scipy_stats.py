"""Rules of the summary statistics of ``scipy.stats``, found by the function that is called.

Importing this module imports SciPy.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sc
import scipy.stats

from srcgrad.errors import ArgumentError, ShapeError, UnsupportedError
from srcgrad.tracing.functions.registry import (
    along_axis,
    as_array,
    cast,
    function_rule,
    inexact_dtype,
    refuse,
    require,
    scalar_if_rank0,
)


def sample(a: Any, axis: Any, nan_policy: Any = "propagate") -> tuple[Any, int]:
    """The array of floats and the axis of the observations; all of them for None."""
    refuse("scipy.stats", nan_policy=(nan_policy, "propagate"))
    if isinstance(axis, (tuple, list)):
        raise UnsupportedError("scipy.stats with several axes is not supported on traced arrays", hint="reshape first")
    x = as_array(a)
    return along_axis(cast(x, inexact_dtype(x.dtype)), axis)


def kept(result: Any, axis: int, keepdims: bool, rank: int, given: Any) -> Any:
    """The reduced array, with axes of size 1 where ``keepdims`` asks for them."""
    if keepdims:
        return np.reshape(result, (1,) * given) if rank != given else np.expand_dims(result, axis)
    return scalar_if_rank0(result)


def central(x: Any, axis: int, order: int, center: Any = None) -> Any:
    """The mean of the powers of what is left beside the mean."""
    middle = np.mean(x, axis=axis, keepdims=True) if center is None else center
    return np.mean((x - middle) ** order, axis=axis)


@function_rule(scipy.stats.moment)
def moment(
    a: Any, order: Any = 1, axis: Any = 0, nan_policy: Any = "propagate", *, center: Any = None, keepdims: bool = False
) -> Any:
    x, place = sample(a, axis, nan_policy)
    if np.ndim(order):
        found = np.stack([central(x, place, k, center) for k in order])
        return np.expand_dims(found, place + 1) if keepdims else found
    if order == 1 and center is None:
        return kept(np.zeros_like(x[(slice(None),) * place + (0,)]), place, keepdims, x.ndim, np.ndim(a))
    return kept(central(x, place, order, center), place, keepdims, x.ndim, np.ndim(a))


@function_rule(scipy.stats.skew)
def skew(a: Any, axis: Any = 0, bias: bool = True, nan_policy: Any = "propagate", *, keepdims: bool = False) -> Any:
    x, place = sample(a, axis, nan_policy)
    n = x.shape[place]
    found = central(x, place, 3) / central(x, place, 2) ** 1.5
    if not bias and n > 2:
        found = found * (math.sqrt(n * (n - 1.0)) / (n - 2.0))
    return kept(found, place, keepdims, x.ndim, np.ndim(a))


@function_rule(scipy.stats.kurtosis)
def kurtosis(
    a: Any, axis: Any = 0, fisher: bool = True, bias: bool = True, nan_policy: Any = "propagate", *,
    keepdims: bool = False,
) -> Any:  # fmt: skip
    x, place = sample(a, axis, nan_policy)
    n = x.shape[place]
    found = central(x, place, 4) / central(x, place, 2) ** 2
    if not bias and n > 3:
        found = ((n**2 - 1.0) * found - 3.0 * (n - 1.0) ** 2) / ((n - 2.0) * (n - 3.0)) + 3.0
    return kept(found - 3.0 if fisher else found, place, keepdims, x.ndim, np.ndim(a))


@function_rule(scipy.stats.sem)
def sem(a: Any, axis: Any = 0, ddof: Any = 1, nan_policy: Any = "propagate", *, keepdims: bool = False) -> Any:
    x, place = sample(a, axis, nan_policy)
    found = np.std(x, axis=place, ddof=ddof) / math.sqrt(x.shape[place])
    return kept(found, place, keepdims, x.ndim, np.ndim(a))


@function_rule(scipy.stats.variation)
def variation(a: Any, axis: Any = 0, nan_policy: Any = "propagate", ddof: Any = 0, *, keepdims: bool = False) -> Any:
    x, place = sample(a, axis, nan_policy)
    if ddof > x.shape[place]:  # SciPy's variance of so few observations is none; of as many as ddof it is infinite
        found = np.full_like(np.mean(x, axis=place), np.nan)
    else:
        found = np.std(x, axis=place, ddof=ddof) / np.mean(x, axis=place)
    return kept(found, place, keepdims, x.ndim, np.ndim(a))


@function_rule(scipy.stats.zscore)
def zscore(a: Any, axis: Any = 0, ddof: Any = 0, nan_policy: Any = "propagate") -> Any:
    return zmap(a, a, axis, ddof, nan_policy)


@function_rule(scipy.stats.zmap)
def zmap(scores: Any, compare: Any, axis: Any = 0, ddof: Any = 0, nan_policy: Any = "propagate") -> Any:
    x, place = sample(compare, axis, nan_policy)
    mean = np.mean(x, axis=place, keepdims=True)
    spread = np.std(x, axis=place, ddof=ddof, keepdims=True)
    if axis is None:
        mean, spread = mean[0], spread[0]
    return (as_array(scores) - mean) / spread


@function_rule(scipy.stats.gzscore)
def gzscore(a: Any, *, axis: Any = 0, ddof: Any = 0, nan_policy: Any = "propagate") -> Any:
    return zscore(np.log(as_array(a)), axis, ddof, nan_policy)


def mean_of(x: Any, axis: int, weights: Any) -> Any:
    return (
        np.mean(x, axis=axis)
        if weights is None
        else np.average(x, axis=axis, weights=np.broadcast_to(weights, x.shape))
    )


@function_rule(scipy.stats.gmean)
def gmean(
    a: Any, axis: Any = 0, dtype: Any = None, weights: Any = None, *, nan_policy: Any = "propagate",
    keepdims: bool = False,
) -> Any:  # fmt: skip
    x, place = sample(a if dtype is None else as_array(a).astype(dtype), axis, nan_policy)
    return kept(np.exp(mean_of(np.log(x), place, weights)), place, keepdims, x.ndim, np.ndim(a))


@function_rule(scipy.stats.hmean)
def hmean(
    a: Any, axis: Any = 0, dtype: Any = None, *, weights: Any = None, nan_policy: Any = "propagate",
    keepdims: bool = False,
) -> Any:  # fmt: skip
    x, place = sample(a if dtype is None else as_array(a).astype(dtype), axis, nan_policy)
    return kept(1.0 / mean_of(1.0 / x, place, weights), place, keepdims, x.ndim, np.ndim(a))


@function_rule(scipy.stats.pmean)
def pmean(
    a: Any, p: Any, *, axis: Any = 0, dtype: Any = None, weights: Any = None, nan_policy: Any = "propagate",
    keepdims: bool = False,
) -> Any:  # fmt: skip
    if np.ndim(p) == 0 and p == 0:
        return gmean(a, axis, dtype, weights, nan_policy=nan_policy, keepdims=keepdims)
    x, place = sample(a if dtype is None else as_array(a).astype(dtype), axis, nan_policy)
    return kept(mean_of(x**p, place, weights) ** (1.0 / p), place, keepdims, x.ndim, np.ndim(a))


@function_rule(scipy.stats.entropy)
def entropy(
    pk: Any, qk: Any = None, base: Any = None, axis: Any = 0, *, nan_policy: Any = "propagate", keepdims: bool = False
) -> Any:
    """Of weights, which are made to sum to 1; with ``qk`` the divergence of Kullback and Leibler."""
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
    return kept(found if base is None else found / math.log(base), place, keepdims, x.ndim, np.ndim(pk))


@function_rule(scipy.stats.iqr)
def iqr(
    x: Any, axis: Any = None, rng: Any = (25, 75), scale: Any = 1.0, nan_policy: Any = "propagate",
    interpolation: Any = "linear", keepdims: bool = False,
) -> Any:  # fmt: skip
    values, place = sample(x, axis, nan_policy)
    low, high = np.percentile(values, sorted(rng), axis=place, method=interpolation)
    unit = 2.0 * math.sqrt(2.0) * float(sc.erfinv(0.5)) if scale == "normal" else scale
    return kept(cast((high - low) / unit, values.dtype), place, keepdims, values.ndim, np.ndim(x))


@function_rule(scipy.stats.rankdata)
def rankdata(a: Any, method: Any = "average", *, axis: Any = None, nan_policy: Any = "propagate") -> Any:
    """Piecewise constant: where runs of equal numbers begin and end when they are sorted.

    Whole ranks are integers: of nan, for which SciPy gives nan, they are an error.
    """
    if method not in ("average", "min", "max", "dense", "ordinal"):
        raise ArgumentError(f'unknown method "{method}"')
    x, place = sample(a, axis, nan_policy)
    x = np.moveaxis(x, place, -1)
    if not x.size:
        return np.zeros(np.moveaxis(x, -1, place).shape, np.float64 if method == "average" else np.int64)
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
    if method == "average":
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
