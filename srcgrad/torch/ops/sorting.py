"""Order: sorting, ranks, quantiles, sets.

Values are taken at the indices that are returned, so that these carry the derivative.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from srcgrad.torch.dispatch import apply
from srcgrad.torch.errors import TensorError, TensorIndexError, TensorNotImplementedError, TensorTypeError
from srcgrad.torch.operation import Op
from srcgrad.torch.ops.arguments import named_result, need_tensor, numpy_names, one_axis
from srcgrad.torch.ops.define import method, store
from srcgrad.torch.ops.extremes import chosen, stored
from srcgrad.torch.tensor import Tensor, wrapped

# --- sorting ------------------------------------------------------------------------------------------


def order_of(x: Any, axis: int, descending: bool) -> Any:
    """The stable order of the elements; nan counts as largest. Descending, equal elements keep their order too."""
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    flipped = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return np.copy(np.flip(x.shape[axis] - 1 - flipped, axis))  # a tensor has no negative strides


def sorted_values(x: Any, axis: int, descending: bool) -> Any:
    if not x.ndim:
        return np.copy(x), np.zeros((), np.int64)
    indices = order_of(x, axis, descending)
    return np.take_along_axis(x, indices, axis), indices


SORT: Final = Op("sort", "SortBackward0", sorted_values, saves_result=True)
SORT_STABLE: Final = Op("sort", "SortBackward1", sorted_values, saves_result=True)
ARGSORT: Final = Op(
    "argsort",
    None,
    lambda x, axis, descending: order_of(x, axis, descending) if x.ndim else np.zeros((), np.int64),
)
SORT_RESULT: Final = named_result("sort", "values", "indices")


def need_real(name: str, input: Tensor) -> None:
    need_tensor(name, input)
    if input._data.dtype.kind == "c":
        raise TensorError(f"{name} does not support complex dtypes on CPU")


def need_numbers(name: str, input: Tensor) -> None:
    if input._data.dtype == np.bool_:
        raise TensorNotImplementedError(f"\"{name}_cpu\" not implemented for 'Bool'", hint="convert it first: x.int()")


@method("sort")
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool | None = None, *, out: Any = None) -> Any:
    """The elements in order along a dimension, and their indices; always stable."""
    need_real("sort", input)
    axis = one_axis(dim, input._data.ndim, "sort")
    op = SORT if stable is None else SORT_STABLE
    return stored(SORT_RESULT(*apply(op, (input,), (axis, bool(descending)))), out)


@method("argsort")
def argsort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Tensor:
    """The indices that sort along a dimension; always stable."""
    need_real("argsort", input)
    return apply(ARGSORT, (input,), (one_axis(dim, input._data.ndim, "argsort"), bool(descending)))  # type: ignore[no-any-return]


@method("msort")
def msort(input: Tensor, *, out: Any = None) -> Tensor:
    """The elements in order along the first dimension."""
    return store(out, sort(input, 0)[0])  # type: ignore[no-any-return]


# --- ranks --------------------------------------------------------------------------------------------


def largest_values(x: Any, count: int, axis: int, largest: bool) -> Any:
    if not x.ndim:
        indices: Any = np.zeros((count,), np.int64)
        return (np.copy(x), indices.reshape(())) if count else (np.reshape(x, (1,))[:0], indices)
    indices = np.take(order_of(x, axis, largest), np.arange(count), axis)
    return np.take_along_axis(x, indices, axis), indices


TOPK: Final = Op("topk", "TopkBackward0", largest_values, saves_result=True)
TOPK_RESULT: Final = named_result("topk", "values", "indices")


@method("topk")
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True, *, out: Any = None) -> Any:
    """The k largest (or smallest) elements along a dimension in order, and their indices."""
    need_real("topk", input)
    axis = one_axis(dim, input._data.ndim, "topk")
    if not 0 <= k <= (input._data.shape[axis] if input._data.ndim else 1):
        raise TensorError("selected index k out of range")
    return stored(TOPK_RESULT(*apply(TOPK, (input,), (k, axis, largest))), out)


def ranked(x: Any, rank: int, axis: int, keep: bool) -> Any:
    """The element of a rank, from 0."""
    if not x.ndim:
        return np.copy(x), np.zeros((), np.int64)
    return chosen(x, np.take(order_of(x, axis, False), rank, axis), axis, keep)


KTHVALUE: Final = Op("kthvalue", "KthvalueBackward0", ranked, saves_result=True)
KTHVALUE_RESULT: Final = named_result("kthvalue", "values", "indices")


@method("kthvalue")
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Any:
    """The k-th smallest element along a dimension, and its index."""
    need_real("kthvalue", input)
    need_numbers("kthvalue", input)
    axis = one_axis(dim, input._data.ndim, "kthvalue")
    if not 1 <= k <= (input._data.shape[axis] if input._data.ndim else 1):
        raise TensorError(f"kthvalue(): selected number k out of range for dimension {axis}")
    return stored(KTHVALUE_RESULT(*apply(KTHVALUE, (input,), (k - 1, axis, keepdim))), out)


def median_of(x: Any, axis: int, keep: bool, skip: bool) -> Any:
    """The lower of the two middle elements. A nan is the median, unless it is skipped."""
    if not x.ndim:
        return np.copy(x), np.zeros((), np.int64)
    order = order_of(x, axis, False)
    count = x.shape[axis]
    if x.dtype.kind != "f":
        return chosen(x, np.take(order, (count - 1) // 2, axis), axis, keep)
    missing = np.sum(np.isnan(x), axis=axis, keepdims=True)
    if skip:
        place = np.maximum(count - missing - 1, 0) // 2
        return chosen(x, np.squeeze(np.take_along_axis(order, place, axis), axis), axis, keep)
    first = np.argmax(np.isnan(x), axis=axis)
    middle = np.take(order, (count - 1) // 2, axis)
    return chosen(x, np.where(np.squeeze(missing, axis) > 0, first, middle), axis, keep)


def flat_median(x: Any, skip: bool) -> Any:
    """The median of all, which names no index: what equals it shares its derivative, as of ``max`` of all."""
    found = median_of(np.reshape(x, -1), 0, False, skip)[0]
    if type(x) is np.ndarray or x.dtype.kind != "f":
        return found
    same = (x == found) | (np.isnan(x) & np.isnan(found))
    lowest = np.min(np.where(same, x, np.inf))
    return np.where(found == -np.inf, lowest, np.max(np.where(same, x, -np.inf)))


def median_function(name: str, node: str, skip: bool) -> Any:
    whole = Op(name, f"{node}Backward0", flat_median, saves_result=True)
    along = Op(name, f"{node}Backward1", median_of, saves_result=True)
    result = named_result(name, "values", "indices")

    def call(input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Any = None, **names: Any) -> Any:
        if names:
            dim, keepdim = numpy_names(name, names, dim, keepdim)
        need_real(name, input)
        need_numbers(name, input)
        if dim is None:
            if not input._data.size:
                return wrapped(np.full((), np.nan, input._data.dtype))
            return apply(whole, (input,), (skip,))
        axis = one_axis(dim, input._data.ndim, name)
        if input._data.ndim and not input._data.shape[axis]:
            raise TensorIndexError(f"median(): Expected reduction dim {axis} to have non-zero size.")
        return stored(result(*apply(along, (input,), (axis, keepdim, skip))), out)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`torch.{name}`: the lower median of all, or along a dimension (values and indices)."
    setattr(Tensor, name, call)
    return call


median = median_function("median", "Median", False)
nanmedian = median_function("nanmedian", "Nanmedian", True)


def mode_of(x: Any, axis: int, keep: bool) -> Any:
    """The smallest of the most frequent elements, and where it occurs last."""
    if not x.ndim:
        return np.copy(x), np.zeros((), np.int64)
    last = np.moveaxis(x, axis, -1)
    equal = last[..., :, None] == last[..., None, :]
    counts = np.sum(equal, axis=-1)
    frequent = counts == np.max(counts, axis=-1, keepdims=True)
    order = np.argsort(last, axis=-1, kind="stable")
    first = np.argmax(np.take_along_axis(frequent, order, -1), axis=-1, keepdims=True)
    value = np.take_along_axis(last, np.take_along_axis(order, first, -1), -1)
    matches = np.flip(last == value, -1)
    return chosen(x, x.shape[axis] - 1 - np.argmax(matches, axis=-1), axis, keep)


MODE: Final = Op("mode", "ModeBackward0", mode_of, saves_result=True)
MODE_RESULT: Final = named_result("mode", "values", "indices")


@method("mode")
def mode(input: Tensor, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Any:
    """The most frequent element along a dimension (the smallest of several), and where it occurs last."""
    need_real("mode", input)
    axis = one_axis(dim, input._data.ndim, "mode")
    if input._data.ndim and not input._data.shape[axis]:
        raise TensorIndexError(f"mode(): Expected reduction dim {axis} to have non-zero size.")
    return stored(MODE_RESULT(*apply(MODE, (input,), (axis, keepdim))), out)


# --- quantiles ----------------------------------------------------------------------------------------

RULES: Final = ("linear", "lower", "higher", "midpoint", "nearest")


def quantiles(x: Any, q: Any, axis: int | None, keep: bool, rule: str, skip: bool) -> Any:
    """Quantiles q (0-d or 1-d) along an axis; the axis of q comes first in the result."""
    rank = x.ndim
    line = np.reshape(x, -1) if axis is None else np.moveaxis(x, axis, -1)
    ordered = np.take_along_axis(line, np.argsort(line, axis=-1, kind="stable"), -1)
    missing = np.isnan(line)
    last: Any = line.shape[-1] - 1
    if skip:
        last = np.maximum(last - np.sum(missing, axis=-1, keepdims=True), 0)
    points = np.reshape(q, -1)
    place = np.broadcast_to(points * last, (*line.shape[:-1], points.shape[0]))
    if not skip:
        place = np.where(np.any(missing, axis=-1, keepdims=True), line.shape[-1] - 1, place)
    if rule == "lower":
        place = np.floor(place)
    elif rule == "higher":
        place = np.ceil(place)
    elif rule == "nearest":
        place = np.rint(place)
    low = np.floor(place)
    lower = np.take_along_axis(ordered, low.astype(np.int64), -1)
    if rule in ("linear", "midpoint"):
        upper = np.take_along_axis(ordered, np.ceil(place).astype(np.int64), -1)
        share = np.full((), 0.5, x.dtype) if rule == "midpoint" else (place - low).astype(x.dtype)
        lower = lower + share * (upper - lower)
    found = np.moveaxis(lower, -1, 0)
    if keep:
        found = np.reshape(found, (-1, *[1] * rank)) if axis is None else np.expand_dims(found, axis + 1)
    return found if q.ndim else found[0]


QUANTILE: Final = Op("quantile", "SqueezeBackward4", quantiles)


def quantile_of(name: str, input: Tensor, q: Any, dim: Any, keepdim: bool, rule: str, skip: bool, out: Any) -> Tensor:
    need_tensor(name, input)
    data = input._data
    if not data.size:
        raise TensorError("quantile() input tensor must be non-empty")
    if data.dtype not in (np.float32, np.float64):
        raise TensorError("quantile() input tensor must be either float or double dtype")
    if rule not in RULES:
        raise TensorError(
            f"quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {rule}"
        )
    if isinstance(q, Tensor):
        if q._data.dtype != data.dtype:
            raise TensorError("quantile() q tensor must be same dtype as the input tensor")
        if q._data.ndim > 1:
            raise TensorError("quantile() q must be a scalar or 1D tensor")
        if not np.all((q._data >= 0) & (q._data <= 1)):
            raise TensorError("quantile() q values must be in the range [0, 1]")
    else:
        if not 0 <= q <= 1:
            raise TensorError(f"quantile() q must be in the range [0, 1] but got {q}")
        q = wrapped(np.asarray(q, data.dtype))
    axis = None if dim is None else one_axis(dim, data.ndim, name)
    axis = axis if data.ndim else None
    return store(out, apply(QUANTILE, (input, q), (axis, keepdim, rule, skip)))  # type: ignore[no-any-return]


@method("quantile")
def quantile(
    input: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Any = None,
) -> Tensor:
    """The quantiles q, a number or a vector, along a dimension or of all; nan where there is a nan."""
    return quantile_of("quantile", input, q, dim, keepdim, interpolation, False, out)


@method("nanquantile")
def nanquantile(
    input: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Any = None,
) -> Tensor:
    """The quantiles of what is not nan."""
    return quantile_of("nanquantile", input, q, dim, keepdim, interpolation, True, out)


# --- sets ---------------------------------------------------------------------------------------------


def arrays_or_one(found: tuple[Any, Any, Any], inverse: bool, counts: bool) -> Any:
    wanted = [found[0], *([found[1]] if inverse else []), *([found[2]] if counts else [])]
    tensors = tuple(wrapped(np.asarray(array)) for array in wanted)
    return tensors if len(tensors) > 1 else tensors[0]


@method("unique")
def unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    """The different elements in order, or the different slices along ``dim``; also where each occurs, and how often."""
    need_tensor("unique", input)
    axis = None if dim is None else one_axis(dim, input._data.ndim, "unique")
    found = np.unique(input._data, return_inverse=True, return_counts=True, axis=axis)
    return arrays_or_one(found, return_inverse, return_counts)


@method("unique_consecutive")
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    """The elements, or slices along ``dim``, that differ from the one before."""
    need_tensor("unique_consecutive", input)
    data = input._data
    if dim is None:
        rows, shape = data.reshape(-1), data.shape
    else:
        rows = np.moveaxis(data, one_axis(dim, data.ndim, "unique_consecutive"), 0)
        shape = rows.shape[:1]
    changed = (rows[1:] != rows[:-1]).any(axis=tuple(range(1, rows.ndim)))
    starts = np.concatenate([np.zeros(min(len(rows), 1), np.int64), 1 + np.flatnonzero(changed)])
    counts = np.diff(starts, append=len(rows))
    inverse = np.repeat(np.arange(len(starts)), counts).reshape(shape)
    kept = rows[starts]
    if dim is not None:
        kept = np.moveaxis(kept, 0, one_axis(dim, data.ndim))
    return arrays_or_one((kept, inverse, counts), return_inverse, return_counts)


ISIN: Final = Op("isin", None, lambda x, y, invert: np.isin(x, y, invert=invert), quiet=True)


def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each element is among the test elements; either may be a number."""
    if not isinstance(elements, Tensor) and not isinstance(test_elements, Tensor):
        raise TensorTypeError("isin(): one of elements and test_elements must be a Tensor")
    operands = [x if isinstance(x, Tensor) else wrapped(np.asarray(x)) for x in (elements, test_elements)]
    return apply(ISIN, operands, (invert,))  # type: ignore[no-any-return]


__all__ = [
    "argsort", "isin", "kthvalue", "median", "mode", "msort", "nanmedian", "nanquantile", "quantile", "sort", "topk",
    "unique", "unique_consecutive",
]  # fmt: skip
