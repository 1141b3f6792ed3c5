"""Views of a part of a tensor: slices, rows, diagonals, windows; and tensors cut in pieces."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from srcgrad.torch.dispatch import apply_view
from srcgrad.torch.errors import TensorError, TensorIndexError, TensorTypeError
from srcgrad.torch.ops.arguments import need_tensor, one_axis
from srcgrad.torch.ops.define import method
from srcgrad.torch.ops.shapes import (
    AS_STRIDED,
    DIAGONAL,
    SELECT,
    SLICE,
    SPLIT,
    SPLIT_SIZES,
    UNBIND,
    UNFOLD,
    ints,
    reshaped,
    unsqueeze,
)
from srcgrad.torch.tensor import Tensor, wrapped

__all__ = [
    "as_strided", "atleast_1d", "atleast_2d", "atleast_3d", "chunk", "diagonal", "dsplit", "hsplit", "narrow", "select",
    "split", "split_with_sizes", "tensor_split", "unbind", "vsplit",
]  # fmt: skip


# --- one part -----------------------------------------------------------------------------------------


@method("select")
def select(input: Tensor, dim: int, index: int) -> Any:
    """The part at one place of a dimension, without that dimension."""
    need_tensor("select", input)
    shape = input._data.shape
    if not shape:
        raise TensorIndexError("select() cannot be applied to a 0-dim tensor.")
    axis, place = one_axis(dim, len(shape), "select"), int(index)
    if not -shape[axis] <= place < shape[axis]:
        raise TensorIndexError(
            f"select(): index {place} out of range for tensor of size {list(shape)} at dimension {axis}"
        )
    return selected(input, axis, place)


def selected(x: Tensor, axis: int, place: int) -> Any:
    """`select` at a place that is known to be there."""
    if place < 0:
        place += x._data.shape[axis]
    return apply_view(SELECT, x, (axis,), (wrapped(np.asarray(place)),))


@method("narrow")
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Any:
    """``length`` places of a dimension from ``start`` on."""
    need_tensor("narrow", input)
    shape = input._data.shape
    if not shape:
        raise TensorError("narrow() cannot be applied to a 0-dim tensor.")
    axis, first = one_axis(dim, len(shape), "narrow"), int(start)
    if length < 0:
        raise TensorError("narrow(): length must be non-negative.")
    if not -shape[axis] <= first <= shape[axis]:
        raise TensorIndexError(
            f"start out of range (expected to be in range of [{-shape[axis]}, {shape[axis]}], but got {first})"
        )
    if first < 0:
        first += shape[axis]
    if first + length > shape[axis]:
        raise TensorError(f"start ({first}) + length ({length}) exceeds dimension size ({shape[axis]}).")
    return apply_view(SLICE, input, (axis, first, first + int(length), 1))


@method("diagonal")
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """The diagonal of two dimensions, as the last one."""
    need_tensor("diagonal", input)
    rank = input._data.ndim
    a, b = one_axis(dim1, rank, "diagonal"), one_axis(dim2, rank, "diagonal")
    if a == b:
        raise TensorError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return apply_view(DIAGONAL, input, (offset, a, b))


@method("unfold")
def unfold(self: Tensor, dimension: int, size: int, step: int) -> Any:
    """All windows of ``size`` along a dimension, ``step`` apart; a window's elements are the last dimension."""
    shape = self._data.shape or (1,)
    axis = one_axis(dimension, self._data.ndim, "unfold")
    if size < 0:
        raise TensorError(f"size is {size} but must be >= 0")
    if size > shape[axis]:
        raise TensorError(f"maximum size for tensor at dimension {axis} is {shape[axis]} but size is {size}")
    if step <= 0:
        raise TensorError(f"step is {step} but must be > 0")
    if not self._data.ndim:  # PyTorch's window of a number has no place
        return apply_view(UNFOLD, reshaped(self, (1,)), (axis, int(size), int(step)))[0]
    return apply_view(UNFOLD, self, (axis, int(size), int(step)))


@method("as_strided")
def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """Elements of a contiguous tensor at places with these steps in memory.

    Raises:
        TensorError: the tensor is not contiguous; a place is outside of it.
    """
    need_tensor("as_strided", input)
    sizes, steps = ints("as_strided", (size,)), ints("as_strided", (stride,), "stride")
    if len(sizes) != len(steps):
        raise TensorError("mismatch in length of strides and shape")
    data = input._data
    if type(data) is np.ndarray and not data.flags.c_contiguous:
        raise TensorError("as_strided is here only for contiguous tensors", hint="take it of the tensor's contiguous()")
    offset = 0 if storage_offset is None else int(storage_offset) - input.storage_offset()
    last = offset + sum((n - 1) * step for n, step in zip(sizes, steps, strict=True))
    if 0 not in sizes and (offset < 0 or last >= data.size or any(step < 0 for step in steps)):
        raise TensorError(
            f"as_strided reaches places {offset} to {last} of a tensor of {data.size} elements",
            hint="take it of the tensor that all those elements belong to",
        )
    return apply_view(AS_STRIDED, input, (sizes, steps, offset))


# --- pieces ---------------------------------------------------------------------------------------------


@method("unbind")
def unbind(input: Tensor, dim: int = 0) -> Any:
    """The parts at all places of a dimension."""
    need_tensor("unbind", input)
    if not input._data.ndim:
        raise TensorIndexError("Dimension specified as 0 but tensor has no dimensions")
    axis = one_axis(dim, input._data.ndim, "unbind")
    return apply_view(UNBIND, input, (axis,)) if input._data.shape[axis] else ()


def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> Any:
    """Pieces of a size along a dimension (the last may be smaller), or of the sizes of a list."""
    need_tensor("split", tensor)
    if isinstance(split_size_or_sections, (list, tuple)):
        return split_with_sizes(tensor, split_size_or_sections, dim)
    if not tensor._data.ndim:
        raise TensorError("split expects at least a 1-dimensional tensor")
    axis = one_axis(dim, tensor._data.ndim, "split")
    try:
        size, length = int(split_size_or_sections.__index__()), tensor._data.shape[axis]
    except AttributeError:
        raise TensorTypeError(
            f"split(): argument 'split_size' must be int or a list of ints, not {type(split_size_or_sections).__name__}"
        ) from None
    if size < 0:
        raise TensorError(f"split expects split_size be non-negative, but got split_size={size}")
    if not size and length:
        raise TensorError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {length}")
    return apply_view(SPLIT, tensor, (axis, sizes_up_to(length, size)))


@method("split")
def split_method(self: Tensor, split_size: Any, dim: int = 0) -> Any:
    """Pieces of a size along a dimension (the last may be smaller), or of the sizes of a list."""
    return split(self, split_size, dim)


def sizes_up_to(length: int, size: int) -> tuple[int, ...]:
    if not length:
        return (0,)
    return tuple([min(size, length - start) for start in range(0, length, size)])


@method("split_with_sizes")
def split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> Any:
    """Pieces of these sizes along a dimension."""
    need_tensor("split_with_sizes", input)
    if not input._data.ndim:
        raise TensorError("split expects at least a 1-dimensional tensor")
    axis, sizes = one_axis(dim, input._data.ndim, "split"), ints("split_with_sizes", (split_sizes,), "split_sizes")
    length = input._data.shape[axis]
    if any(size < 0 for size in sizes):
        raise TensorError(
            f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={list(sizes)}"
        )
    if sum(sizes) != length:
        raise TensorError(
            f"split_with_sizes expects split_sizes to sum exactly to {length} (input tensor's size at dimension "
            f"{axis}), but got split_sizes={list(sizes)}"
        )
    return apply_view(SPLIT_SIZES, input, (axis, sizes))


@method("chunk")
def chunk(input: Tensor, chunks: int, dim: int = 0) -> Any:
    """At most so many pieces along a dimension, of equal size but for the last."""
    need_tensor("chunk", input)
    if not input._data.ndim:
        raise TensorError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise TensorError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    axis = one_axis(dim, input._data.ndim, "chunk")
    length = input._data.shape[axis]
    if not length:
        return apply_view(SPLIT_SIZES, input, (axis, (0,) * chunks))
    return apply_view(SPLIT, input, (axis, sizes_up_to(length, -(-length // chunks))))


@method("tensor_split")
def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> Any:
    """Pieces as equal as can be, or cut at these places of a dimension."""
    need_tensor("tensor_split", input)
    if not input._data.ndim:
        raise TensorError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    axis = one_axis(dim, input._data.ndim, "tensor_split")
    length = input._data.shape[axis]
    wanted = indices_or_sections
    if isinstance(wanted, Tensor):
        wanted = wanted.tolist()
    if isinstance(wanted, (list, tuple)):
        cuts = [min(max(k + length if k < 0 else k, 0), length) for k in ints("tensor_split", (wanted,), "indices")]
        bounds = list(zip([0, *cuts], [*cuts, length], strict=True))
    else:
        if wanted <= 0:
            raise TensorError(f"number of sections must be larger than 0, got {wanted}")
        size, rest = divmod(length, wanted)
        starts = [k * size + min(k, rest) for k in range(wanted + 1)]
        bounds = list(itertools.pairwise(starts))
    return tuple([apply_view(SLICE, input, (axis, start, max(start, stop), 1)) for start, stop in bounds])


def divided(function: str, axis_of: Callable[[int], int], least: int) -> Callable[..., Any]:
    """`hsplit` and its like: `tensor_split` along a certain dimension, into pieces of one size."""

    def call(input: Tensor, indices_or_sections: Any) -> Any:
        need_tensor(function, input)
        rank = input._data.ndim
        if rank < least:
            raise TensorError(
                f"torch.{function} requires a tensor with at least {least} dimension"
                f"{'s' * (least > 1)}, but got a tensor with {rank} dimensions!"
            )
        axis = axis_of(rank)
        if isinstance(indices_or_sections, int):
            length = input._data.shape[axis]
            if not indices_or_sections or length % indices_or_sections:
                raise TensorError(
                    f"torch.{function} attempted to split along dimension {axis}, but the size of the dimension "
                    f"{length} is not divisible by the split_size {indices_or_sections}!"
                )
        return tensor_split(input, indices_or_sections, axis)

    call.__name__ = call.__qualname__ = function
    call.__doc__ = f"`torch.{function}`: pieces along a dimension, as NumPy's."
    return method(function)(call)


hsplit = divided("hsplit", lambda rank: int(rank > 1), 1)
vsplit = divided("vsplit", lambda rank: 0, 2)
dsplit = divided("dsplit", lambda rank: 2, 3)


# --- at least so many dimensions --------------------------------------------------------------------------


def at_least(function: str, tensors: tuple[Any, ...], raised: Callable[[Tensor], Any]) -> Any:
    """``raised`` of one tensor, of several, or of a sequence of them."""
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return raised(tensors[0])
    if len(tensors) == 1:
        tensors = tuple(tensors[0])
    for k, x in enumerate(tensors):
        if not isinstance(x, Tensor):
            raise TensorTypeError(f"{function}(): expected Tensor as element {k}, but got {type(x).__name__}")
    return tuple([raised(x) for x in tensors])


def atleast_1d(*tensors: Any) -> Any:
    """Tensors of no dimension as tensors of one."""
    return at_least("atleast_1d", tensors, lambda x: x if x._data.ndim else reshaped(x, (1,)))


def atleast_2d(*tensors: Any) -> Any:
    """Tensors with at least two dimensions; new ones stand first."""

    def raised(x: Tensor) -> Any:
        if not x._data.ndim:
            return reshaped(x, (1, 1))
        return unsqueeze(x, 0) if x._data.ndim == 1 else x

    return at_least("atleast_2d", tensors, raised)


def atleast_3d(*tensors: Any) -> Any:
    """Tensors with at least three dimensions."""

    def raised(x: Tensor) -> Any:
        if not x._data.ndim:
            return reshaped(x, (1, 1, 1))
        x = unsqueeze(x, 0) if x._data.ndim == 1 else x
        return unsqueeze(x, -1) if x._data.ndim == 2 else x

    return at_least("atleast_3d", tensors, raised)
