"""Elements taken from, and written to, places that index tensors name along one dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from srcgrad.torch.dispatch import apply, apply_inplace, named
from srcgrad.torch.errors import TensorError, TensorIndexError
from srcgrad.torch.operation import Op
from srcgrad.torch.ops.arguments import need_tensor, one_axis
from srcgrad.torch.ops.define import fitting, method, number, store
from srcgrad.torch.ops.indexing import check_bounds
from srcgrad.torch.ops.shapes import FULL, expand, reshaped
from srcgrad.torch.tensor import Tensor, wrapped
from srcgrad.torch.writing import refuse_repeated, refuse_same, refuse_write
from srcgrad.tracing.tracer import Tracer

__all__ = [
    "gather", "index_add", "index_copy", "index_fill", "index_select", "masked_select", "take", "take_along_dim",
]  # fmt: skip


# --- checks -----------------------------------------------------------------------------------------------


def need_index(function: str, index: Any) -> None:
    """Raise unless it is a tensor of int32 or int64."""
    need_tensor(function, index, "index", 3)
    if index._data.dtype.name not in ("int64", "int32"):
        raise TensorError(f"{function}(): Expected dtype int32/int64 for index", hint="index.long()")


def same_dtype(function: str, x: Tensor, source: Tensor) -> None:
    if x._data.dtype != source._data.dtype:
        raise TensorError(f"{function}(): Expected self.dtype to be equal to src.dtype", hint="src.to(x.dtype)")


def bounded(index: Any, size: int, dim: int) -> None:
    """Raise a `TensorError` if an index is negative or too large."""
    try:
        check_bounds(index, size, dim, negative=False)
    except TensorIndexError as error:
        raise TensorError(error.message) from None


def grid(index: Any, dim: int) -> tuple[Any, ...]:
    """The full index of the places ``(i, ..., index[i, ..., j], ..., j)``: one array per dimension."""
    rank = index.ndim
    return tuple(
        [index if d == dim else np.arange(index.shape[d]).reshape((-1,) + (1,) * (rank - d - 1)) for d in range(rank)]
    )


def corner(x: Any, shape: tuple[int, ...]) -> Any:
    """The part of an array, from the origin on, of a shape."""
    return x if x.shape == shape else x[tuple([slice(0, size) for size in shape])]


def outline(x: Tensor, index: Tensor, dim: int, function: str) -> int:
    """The dimension as a number, once the index fits the tensor.

    Raises:
        TensorError: another rank, or larger than the tensor in another dimension.
    """
    rank = x._data.ndim
    axis = one_axis(dim, rank, function)
    shape, own = index._data.shape or (1,), x._data.shape or (1,)
    if not index._data.size:
        return axis
    if len(shape) != len(own):
        raise TensorError("Index tensor must have the same number of dimensions as input tensor")
    if any(d != axis and shape[d] > own[d] for d in range(len(own))):
        raise TensorError(
            f"Size does not match at dimension {next(d for d in range(len(own)) if d != axis and shape[d] > own[d])} "
            f"expected index {list(shape)} to be no larger than self {list(own)} apart from dimension {axis}"
        )
    bounded(index._data, own[axis], axis)
    return axis


# --- taken ------------------------------------------------------------------------------------------------


def gathered(x: Any, index: Any, dim: int) -> Any:
    if 0 in index.shape:
        return x.reshape(-1)[:0].reshape(index.shape)
    if not x.ndim:
        return np.broadcast_to(x, index.shape).copy()
    if not index.ndim:
        return x[index]
    if index.shape[:dim] + index.shape[dim + 1 :] != x.shape[:dim] + x.shape[dim + 1 :]:
        x = x[tuple([slice(None) if d == dim else slice(0, index.shape[d]) for d in range(x.ndim)])]
    return np.take_along_axis(x, index, dim)


def part_at(x: Any, index: Any, dim: int) -> Any:
    if not x.ndim:
        return x.copy()
    return np.take(x, index.reshape(-1), dim)


GATHER: Final = Op("gather", "GatherBackward0", gathered, quiet=True, shown=1)
INDEX_SELECT: Final = Op("index_select", "IndexSelectBackward0", part_at, quiet=True, shown=1)
TAKE: Final = Op("take", "TakeBackward0", lambda x, index: x.reshape(-1)[index], quiet=True, shown=1)
MASKED_SELECT: Final = Op(
    "masked_select",
    "MaskedSelectBackward0",
    lambda x, *rest: (x if x.shape == rest[-1] else np.broadcast_to(x, rest[-1]))[rest[:-1]],
    quiet=True,
    shown=1,
)


@method("gather")
def gather(input: Tensor, dim: int, index: Any, *, sparse_grad: bool = False, out: Any = None) -> Any:
    """Along a dimension, the elements at the places that the index names.

    >>> import srcgrad.torch as torch
    >>> torch.tensor([[1, 2], [3, 4]]).gather(1, torch.tensor([[1], [0]]))
    tensor([[2],
            [3]])
    """
    need_tensor("gather", input)
    need_index("gather", index)
    axis = outline(input, index, dim, "gather")
    return store(out, apply(GATHER, (input, index), (axis,)))


@method("take_along_dim")
def take_along_dim(input: Tensor, indices: Any, dim: int | None = None, *, out: Any = None) -> Any:
    """`gather`, where tensor and index broadcast in the other dimensions; of the flat tensor without ``dim``."""
    need_tensor("take_along_dim", input)
    if not isinstance(indices, Tensor) or indices._data.dtype.kind not in "iu":
        raise TensorError("torch.take_along_dim(): dtype of indices should be Long", hint="indices.long()")
    if dim is None:
        size = input._data.size
        return gather(reshaped(input, (-1,)), 0, wrapped(wrapped_index(reshaped(indices, (-1,))._data, size)), out=out)
    if indices._data.ndim != input._data.ndim:
        raise TensorError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{input._data.ndim} dimensions for input, and {indices._data.ndim} dimensions for indices"
        )
    axis = one_axis(dim, input._data.ndim, "take_along_dim")
    own, wanted = list(input._data.shape), list(indices._data.shape)
    own[axis] = wanted[axis] = 1
    common = np.broadcast_shapes(tuple(own), tuple(wanted))
    size = input._data.shape[axis]
    x = expand(input, tuple([size if d == axis else common[d] for d in range(len(common))]))
    shape = tuple([indices._data.shape[axis] if d == axis else common[d] for d in range(len(common))])
    return gather(x, axis, wrapped(wrapped_index(np.broadcast_to(indices._data, shape), size)), out=out)


def wrapped_index(index: Any, size: int) -> Any:
    """Negative indices counted from the end."""
    return np.where(index < 0, index + size, index)


@method("index_select")
def index_select(input: Tensor, dim: int, index: Any, *, out: Any = None) -> Any:
    """The parts of a dimension at the places of a vector."""
    need_tensor("index_select", input)
    axis = along(input, dim, index, "index_select")
    if not input._data.ndim and index._data.size != 1:
        raise TensorError(f"index_select(): Index to scalar can have only 1 value, got {index._data.size} value(s)")
    return store(out, apply(INDEX_SELECT, (input, index), (axis,)))


def need_places(index: Any, function: str) -> None:
    """Raise unless it is a vector of integers."""
    need_tensor(function, index, "index", 3)
    if index._data.ndim > 1:
        raise TensorIndexError(f"{function}(): Index is supposed to be a vector")
    if index._data.dtype.name not in ("int64", "int32"):
        raise TensorError(f"{function}(): Expected dtype int32 or int64 for index", hint="index.long()")


def along(x: Tensor, dim: int, index: Any, function: str, negative: bool = False) -> int:
    """The dimension as a number, once the index is a vector of places of it."""
    need_places(index, function)
    axis = one_axis(dim, x._data.ndim, function)
    size = (x._data.shape or (1,))[axis]
    if function == "index_select" and not size and x._data.ndim > 1:
        raise TensorError("index_select(): self indexing axis dim should be positive")
    try:
        check_bounds(index._data, size, axis, negative)
    except TensorIndexError as error:
        if function == "index_add_" and x._data.ndim > 1:
            raise TensorError(error.message) from None
        raise TensorIndexError("index out of range in self") from None
    return axis


@method("take")
def take(input: Tensor, index: Any) -> Any:
    """The elements of the flat tensor at these places."""
    need_tensor("take", input)
    need_tensor("take", index, "index", 2)
    if index._data.dtype.name != "int64":
        raise TensorError(f"take(): Expected a long tensor for index, but got {named(index._data.dtype)}")
    flat_bounds(input, index)
    return apply(TAKE, (input, index))


def flat_bounds(x: Tensor, index: Tensor) -> None:
    size = x._data.size
    try:
        check_bounds(index._data, size, 0)
    except TensorIndexError as error:
        place = error.message.split()[1]
        raise TensorIndexError(f"out of range: tried to access index {place} on a tensor of {size} elements.") from None


@method("masked_select")
def masked_select(input: Tensor, mask: Any, *, out: Any = None) -> Any:
    """The elements at which a mask holds, in one dimension; tensor and mask broadcast."""
    need_tensor("masked_select", input)
    need_tensor("masked_select", mask, "mask", 2)
    if mask._data.dtype.kind != "b":
        raise TensorError("masked_select: expected BoolTensor for mask", hint="mask.bool()")
    shape = common_shape(input, mask)
    places = np.nonzero(np.atleast_1d(np.broadcast_to(mask._data, shape)))
    return store(out, apply(MASKED_SELECT, (input, *map(wrapped, places)), (shape or (1,),)))


def common_shape(a: Tensor, b: Tensor) -> tuple[int, ...]:
    from srcgrad.torch.messages import size_mismatch

    try:
        return np.broadcast_shapes(a._data.shape, b._data.shape)
    except ValueError:
        raise TensorError(str(size_mismatch([a._data.shape, b._data.shape]))) from None


# --- written along a dimension ------------------------------------------------------------------------------


def with_axis(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of arrays of at least one dimension, for those of none too, and for an index of nothing."""

    def call(x: Any, *rest: Any) -> Any:
        arrays = [y for y in rest if isinstance(y, (np.ndarray, np.generic, Tracer))]
        if any(0 in y.shape for y in arrays):
            return x.copy()
        if x.ndim:
            return function(x, *rest)
        raised = [y if y.ndim else y.reshape(1) for y in arrays]
        return function(x.reshape(1), *raised, *rest[len(arrays) :]).reshape(())

    return call


# --- index_add, index_copy, index_fill ----------------------------------------------------------------------


def parts_added(x: Any, source: Any, index: Any, *rest: Any) -> Any:
    """``rest``: the factor of the source, if it has one, and the dimension."""
    *factors, dim = rest
    x = x.copy()
    np.add.at(x, (*FULL[:dim], index.reshape(-1)), source * factors[0].reshape(()) if factors else source)
    return x


def parts_copied(x: Any, source: Any, index: Any, dim: int) -> Any:
    x = x.copy()
    x[(*FULL[:dim], index.reshape(-1))] = source
    return x


def parts_filled(x: Any, value: Any, index: Any, dim: int) -> Any:
    x = x.copy()
    x[(*FULL[:dim], index.reshape(-1))] = value.reshape(())
    return x


INDEX_ADD: Final = Op("index_add", "IndexAddBackward0", with_axis(parts_added), shown=2)
INDEX_COPY: Final = Op("index_copy", "IndexCopyBackward0", with_axis(parts_copied), quiet=True, shown=2)
INDEX_FILLS: Final = (
    Op("index_fill", "IndexFillBackward0", with_axis(parts_filled), quiet=True, shown=1),
    Op("index_fill", "IndexFillBackward1", with_axis(parts_filled), quiet=True, shown=2),
)


def add_parts_checked(
    x: Tensor, dim: int, index: Any, source: Any, alpha: Any
) -> tuple[tuple[Tensor, ...], tuple[int]]:
    """The operands after the tensor, and the statics."""
    need_tensor("index_add", x)
    need_tensor("index_add_", source, "source", 4)
    axis = one_axis(dim, x._data.ndim, "index_add_")
    if source._data.ndim > axis:
        source_shape("index_add_", x, source, axis)
    need_places(index, "index_add_")
    if x._data.dtype != source._data.dtype:
        raise TensorError("index_add_(): self and source must have the same scalar type", hint="source.to(x.dtype)")
    if 0 < source._data.ndim <= axis:
        raise TensorError(
            f"index_add_(): Indexing dim {axis} is out of bounds of the source tensor with dim {source._data.ndim}"
        )
    length = source._data.shape[axis] if source._data.ndim else 1
    if length != index._data.size:
        raise TensorError(
            f"index_add_(): Number of indices ({index._data.size}) should be equal to source.size(dim): ({length}), "
            f"for dim: {axis}"
        )
    along(x, dim, index, "index_add_")
    factors = () if alpha == 1 else (number(alpha, source._data.dtype),)
    return (source, index, *factors), (axis,)


def source_shape(function: str, x: Tensor, source: Tensor, axis: int) -> None:
    own, given = list(x._data.shape), list(source._data.shape)
    if len(given) > axis and len(own) > axis:
        own[axis] = given[axis]
    if own != given and given and own:
        raise TensorError(
            f"{function}: source and destination have different shapes: {given} against {list(x._data.shape)}"
        )


@method("index_add")
def index_add(input: Tensor, dim: int, index: Any, source: Any, *, alpha: Any = 1, out: Any = None) -> Any:
    """A copy with ``alpha`` times the parts of ``source`` added at the places of a dimension."""
    others, statics = add_parts_checked(input, dim, index, source, alpha)
    return store(out, apply(INDEX_ADD, (input, *others), statics))


@method("index_add_")
def index_add_inplace(self: Tensor, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Tensor:
    """`index_add`, written into the tensor."""
    refuse_write(self, source)
    others, statics = add_parts_checked(self, dim, index, source, alpha)
    refuse_same(self, (source, index))
    return apply_inplace(INDEX_ADD, self, others, statics)


def copy_parts_checked(x: Tensor, dim: int, index: Any, source: Any) -> tuple[int]:
    need_tensor("index_copy", x)
    need_tensor("index_copy_", source, "source", 4)
    axis = one_axis(dim, x._data.ndim, "index_copy_")
    own, given, count = list(x._data.shape), list(source._data.shape), index._data.size
    if index._data.ndim > 1:
        raise TensorIndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index._data.ndim})")
    if not given and count != 1:
        raise TensorIndexError(f"index_copy_(): When source is scalar, index should have one element (got {count})")
    if given and own and len(given) != len(own):
        raise TensorIndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
            f"dimensionality ({len(given)}), destination dimensionality ({len(own)})"
        )
    if index._data.dtype.name != "int64":
        raise TensorError("index_copy_(): Expected a long tensor for index", hint="index.long()")
    if x._data.dtype != source._data.dtype:
        raise TensorError(
            f"index_copy_(): self and source expected to have the same dtype, but got (self) {named(x._data.dtype)} "
            f"and (source) {named(source._data.dtype)}"
        )
    length = given[axis] if given else 1
    if own[:axis] + own[axis + 1 :] != given[:axis] + given[axis + 1 :]:
        raise TensorError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{own[:axis] + own[axis + 1 :]} at dimension {axis} and source slice shape: "
            f"{given[:axis] + given[axis + 1 :]} at dimension 0."
        )
    if length != count:
        raise TensorIndexError(
            f"index_copy_(): Number of indices ({count}) should be equal to source.size(dim) ({length})"
        )
    check_bounds(index._data, (own or [1])[axis], axis, negative=False)
    return (axis,)


@method("index_copy")
def index_copy(input: Tensor, dim: int, index: Any, source: Any, *, out: Any = None) -> Any:
    """A copy with the parts of ``source`` at the places of a dimension; for one place the last counts."""
    statics = copy_parts_checked(input, dim, index, source)
    return store(out, apply(INDEX_COPY, (input, source, index), statics))


@method("index_copy_")
def index_copy_inplace(self: Tensor, dim: int, index: Any, source: Any) -> Tensor:
    """`index_copy`, written into the tensor."""
    refuse_write(self, source)
    refuse_repeated(self._data)
    refuse_same(self, (source, index))
    statics = copy_parts_checked(self, dim, index, source)
    return apply_inplace(INDEX_COPY, self, (source, index), statics)


def fill_checked(x: Tensor, dim: int, index: Any, value: Any) -> tuple[Op, Tensor, tuple[int]]:
    need_tensor("index_fill", x)
    need_tensor("index_fill_", index, "index", 3)
    if index._data.dtype.name != "int64":
        raise TensorIndexError("index_fill_(): Expected dtype int64 for index.")
    axis = one_axis(dim, x._data.ndim, "index_fill_")
    size = (x._data.shape or (1,))[axis]
    check_bounds(index._data, size, axis)
    if not isinstance(value, Tensor):
        return INDEX_FILLS[0], number(fitting(value, x._data.dtype), x._data.dtype), (axis,)
    if value._data.ndim:
        raise TensorError(
            "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{value._data.ndim} dimension(s)."
        )
    return INDEX_FILLS[1], value, (axis,)


@method("index_fill")
def index_fill(input: Tensor, dim: int, index: Any, value: Any) -> Any:
    """A copy with one number at the places of a dimension."""
    op, number_tensor, statics = fill_checked(input, dim, index, value)
    return apply(op, (input, number_tensor, index), statics)


@method("index_fill_")
def index_fill_inplace(self: Tensor, dim: int, index: Any, value: Any) -> Tensor:
    """`index_fill`, written into the tensor."""
    refuse_write(self, value)
    op, number_tensor, statics = fill_checked(self, dim, index, value)
    return apply_inplace(op, self, (number_tensor, index), statics)
