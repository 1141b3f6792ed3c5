"""Elements written through masks, flat places and views; places that are found."""

from __future__ import annotations

from typing import Any, Final, Literal

import numpy as np

from srcgrad.torch.dispatch import apply, apply_inplace, named
from srcgrad.torch.errors import TensorError, TensorIndexError, TensorTypeError
from srcgrad.torch.operation import Op
from srcgrad.torch.ops.arguments import need_tensor, one_axis
from srcgrad.torch.ops.define import method, store
from srcgrad.torch.ops.parts import diagonal, select
from srcgrad.torch.ops.selection import common_shape, flat_bounds
from srcgrad.torch.ops.shapes import FULL, expand
from srcgrad.torch.tensor import Tensor, wrapped
from srcgrad.torch.writing import refuse_same

__all__ = [
    "argwhere", "bucketize", "diagonal_scatter", "masked_scatter", "nonzero", "put", "searchsorted", "select_scatter",
    "slice_scatter",
]  # fmt: skip


# --- masks and flat places ----------------------------------------------------------------------------------


def masked_written(x: Any, source: Any, *places: Any) -> Any:
    x = x.copy()
    x[places if x.ndim else ...] = source.reshape(-1)[: places[0].size].reshape(places[0].shape if x.ndim else ())
    return x


def flat_written(x: Any, source: Any, index: Any, accumulate: bool) -> Any:
    flat = x.copy().reshape(-1)
    if accumulate:
        np.add.at(flat, index.reshape(-1), source.reshape(-1))
    else:
        flat[index.reshape(-1)] = source.reshape(-1)
    return flat.reshape(x.shape)


MASKED_SCATTER: Final = Op("masked_scatter", "MaskedScatterBackward0", masked_written, quiet=True, shown=2)
PUT: Final = Op("put", "PutBackward0", flat_written, shown=2)


def masked_checked(x: Any, mask: Any, source: Any) -> tuple[Tensor, ...]:
    need_tensor("masked_scatter", x)
    need_tensor("masked_scatter", mask, "mask", 2)
    need_tensor("masked_scatter", source, "source", 3)
    if x._data.dtype != source._data.dtype:
        raise TensorError(
            "masked_scatter: expected self and source to have same dtypes but got"
            f"{named(x._data.dtype)} and {named(source._data.dtype)}"
        )
    if mask._data.dtype.kind != "b":
        raise TensorError(f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask.dtype}")
    shape = common_shape(x, mask)
    places = np.nonzero(np.atleast_1d(np.broadcast_to(mask._data, shape)))
    if places[0].size > source._data.size:
        raise TensorError("Number of elements of source < number of ones in mask")
    return tuple(map(wrapped, places))


@method("masked_scatter")
def masked_scatter(input: Tensor, mask: Any, source: Any) -> Any:
    """A copy with the elements of ``source``, one after the other, where the mask holds."""
    places = masked_checked(input, mask, source)
    shape = common_shape(input, mask)
    x = input if input._data.shape == shape else expand(input, shape)
    if not places[0]._data.size and not x._data.ndim:
        return x.clone()
    return apply(MASKED_SCATTER, (x, source, *places))


@method("masked_scatter_")
def masked_scatter_inplace(self: Tensor, mask: Any, source: Any) -> Tensor:
    """`masked_scatter`, written into the tensor."""
    places = masked_checked(self, mask, source)
    common = common_shape(self, mask)
    if common != self._data.shape:
        raise TensorError(
            f"output with shape {list(self._data.shape)} doesn't match the broadcast shape {list(common)}"
        )
    refuse_same(self, (mask, source))
    if not places[0]._data.size and not self._data.ndim:
        return self
    return apply_inplace(MASKED_SCATTER, self, (source, *places))


def put_checked(x: Any, index: Any, source: Any) -> None:
    need_tensor("put", x)
    need_tensor("put", index, "index", 2)
    need_tensor("put", source, "source", 3)
    if index._data.dtype.name != "int64":
        raise TensorError(f"put_(): Expected a long tensor for index, but got {named(index._data.dtype)}")
    if x._data.dtype != source._data.dtype:
        raise TensorError(
            f"put_(): self and source expected to have the same dtype, but got self.dtype = {named(x._data.dtype)} and "
            f"source.dtype = {named(source._data.dtype)}"
        )
    if index._data.size != source._data.size:
        raise TensorIndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source._data.size}, index.numel() = {index._data.size}"
        )
    flat_bounds(x, index)


@method("put")
def put(input: Tensor, index: Any, source: Any, accumulate: bool = False) -> Any:
    """A copy with values at, or added to, places of the flat tensor; for one place the last counts."""
    put_checked(input, index, source)
    return apply(PUT, (input, source, index), (bool(accumulate),))


@method("put_")
def put_inplace(self: Tensor, index: Any, source: Any, accumulate: bool = False) -> Tensor:
    """`put`, written into the tensor."""
    put_checked(self, index, source)
    refuse_same(self, (source, index))
    return apply_inplace(PUT, self, (source, index), (bool(accumulate),))


# --- a view of a copy written ---------------------------------------------------------------------------------


def select_written(x: Any, source: Any, dim: int, place: int) -> Any:
    x = x.copy()
    x[(*FULL[:dim], place)] = source
    return x


def slice_written(x: Any, source: Any, dim: int, start: int, stop: int, step: int) -> Any:
    x = x.copy()
    x[(*FULL[:dim], slice(start, stop, step))] = source
    return x


def diagonal_written(x: Any, source: Any, offset: int, dim1: int, dim2: int) -> Any:
    places = np.diagonal(np.arange(x.size).reshape(x.shape), offset, dim1, dim2)
    flat = x.copy().reshape(-1)
    flat[places] = source
    return flat.reshape(x.shape)


SELECT_SCATTER: Final = Op("select_scatter", "SelectScatterBackward0", select_written, quiet=True)
SLICE_SCATTER: Final = Op("slice_scatter", "SliceScatterBackward0", slice_written, quiet=True)
DIAGONAL_SCATTER: Final = Op("diagonal_scatter", "DiagonalScatterBackward0", diagonal_written, quiet=True)


def need_shape(source: Tensor, shape: tuple[int, ...]) -> None:
    if source._data.shape != shape:
        raise TensorError(
            "expected src to have a size equal to the slice of self. src size = "
            f"{list(source._data.shape)}, slice size = {list(shape)}"
        )


@method("select_scatter")
def select_scatter(input: Tensor, src: Any, dim: int, index: int) -> Any:
    """A copy where ``src`` stands in the place of ``select(dim, index)``."""
    need_tensor("select_scatter", input)
    need_tensor("select_scatter", src, "src", 2)
    need_shape(src, select(input.detach(), dim, index)._data.shape)
    axis = one_axis(dim, input._data.ndim, "select_scatter")
    return apply(SELECT_SCATTER, (input, src.to(input.dtype)), (axis, int(index) % input._data.shape[axis]))


@method("slice_scatter")
def slice_scatter(input: Tensor, src: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    """A copy where ``src`` stands in the place of a slice of a dimension."""
    need_tensor("slice_scatter", input)
    need_tensor("slice_scatter", src, "src", 2)
    if step <= 0:
        raise TensorError("slice step must be positive")
    axis = one_axis(dim, input._data.ndim, "slice_scatter")
    shape = input._data.shape
    first, last, _ = slice(start, end, step).indices(shape[axis])
    need_shape(src, (*shape[:axis], len(range(first, last, step)), *shape[axis + 1 :]))
    return apply(SLICE_SCATTER, (input, src.to(input.dtype)), (axis, first, max(first, last), int(step)))


@method("diagonal_scatter")
def diagonal_scatter(input: Tensor, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """A copy where ``src`` stands in the place of a diagonal."""
    need_tensor("diagonal_scatter", input)
    need_tensor("diagonal_scatter", src, "src", 2)
    need_shape(src, diagonal(input.detach(), offset, dim1, dim2)._data.shape)
    rank = input._data.ndim
    axes = one_axis(dim1, rank, "diagonal_scatter"), one_axis(dim2, rank, "diagonal_scatter")
    return apply(DIAGONAL_SCATTER, (input, src.to(input.dtype)), (int(offset), *axes))


# --- places that are found ------------------------------------------------------------------------------------


@method("nonzero")
def nonzero(input: Tensor, *, as_tuple: bool = False, out: Any = None) -> Any:
    """The places of the elements that are not zero: as rows, or as one tensor per dimension."""
    need_tensor("nonzero", input)
    data = input._data
    if as_tuple:
        return tuple([wrapped(places) for places in np.nonzero(np.atleast_1d(data))])
    return store(out, wrapped(np.argwhere(data).astype(np.int64)))


@method("argwhere")
def argwhere(input: Tensor) -> Any:
    """The places of the elements that are not zero, as rows."""
    return nonzero(input)


def sought(sequence: Any, values: Any, right: bool, sorter: Any) -> Any:
    """Where values belong in sorted rows."""
    side: Literal["left", "right"] = "right" if right else "left"
    if sorter is not None:
        sequence = np.take_along_axis(sequence, sorter, -1)
    if sequence.ndim == 1:
        return np.searchsorted(sequence, values, side)
    if not values.size:
        return np.zeros(values.shape, np.int64)
    width = values.shape[-1]
    rows = zip(sequence.reshape(-1, sequence.shape[-1]), values.reshape(-1, width), strict=True)
    return np.array([np.searchsorted(row, own, side) for row, own in rows]).reshape(values.shape)


def searchsorted(
    sorted_sequence: Tensor,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    out: Any = None,
    sorter: Any = None,
) -> Any:
    """Where values would be put into a sorted sequence (or into rows of them) to keep it sorted.

    >>> import srcgrad.torch as torch
    >>> torch.searchsorted(torch.tensor([1.0, 2.0, 4.0]), 3.0)
    tensor(2)
    """
    need_tensor("searchsorted", sorted_sequence)
    if side not in (None, "left", "right"):
        raise TensorError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise TensorError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    sequence = sorted_sequence._data
    values = input._data if isinstance(input, Tensor) else np.asarray(input)
    if not sequence.ndim:
        raise TensorError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1"
        )
    if sequence.ndim > 1 and (values.ndim != sequence.ndim or values.shape[:-1] != sequence.shape[:-1]):
        raise TensorError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
            f"tensor and input value tensor must match, but we got boundaries tensor {list(sequence.shape)} and input "
            f"value tensor {list(values.shape)}"
        )
    if isinstance(input, Tensor) and values.dtype != sequence.dtype:
        raise TensorError(
            "torch.searchsorted(): input value tensor and boundary tensor should have same dtype, but got boundary "
            f"tensor dtype {named(sequence.dtype)} and input value tensor dtype {named(values.dtype)}"
        )
    found = sought(sequence, values, right or side == "right", None if sorter is None else sorter._data)
    return store(out, wrapped(np.asarray(found).astype(np.int32 if out_int32 else np.int64)))


def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False, out: Any = None) -> Any:
    """In which of the intervals between sorted boundaries values lie."""
    need_tensor("bucketize", boundaries, "boundaries", 2)
    if boundaries._data.ndim != 1:
        raise TensorError(f"boundaries tensor must be 1 dimension, but got dim({boundaries._data.ndim})")
    if not isinstance(input, (Tensor, int, float)):
        raise TensorTypeError(f"bucketize(): argument 'input' must be Tensor or a number, not {type(input).__name__}")
    values = input._data if isinstance(input, Tensor) else np.asarray(input)
    found = sought(boundaries._data, values, right, None)
    return store(out, wrapped(np.asarray(found).astype(np.int32 if out_int32 else np.int64)))
