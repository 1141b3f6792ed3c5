"""Views: tensors that show the memory of another one in another shape or order, or a part of it."""

from __future__ import annotations

import math
import operator
from typing import Any, Final

import numpy as np

from srcgrad.torch import dtypes
from srcgrad.torch.dispatch import FIXED, RECAST, SCATTERED, View, apply_restride, apply_view
from srcgrad.torch.errors import TensorError, TensorTypeError
from srcgrad.torch.graph import type_name
from srcgrad.torch.operation import Op
from srcgrad.torch.ops.arguments import need_tensor, one_axis
from srcgrad.torch.ops.define import method
from srcgrad.torch.tensor import Tensor, checked_dim, wrapped
from srcgrad.tracing.tracer import Tracer

__all__ = [
    "adjoint", "broadcast_shapes", "broadcast_tensors", "broadcast_to", "flatten", "moveaxis", "movedim", "permute",
    "ravel", "reshape", "squeeze", "swapaxes", "swapdims", "t", "transpose", "unflatten", "unsqueeze",
]  # fmt: skip

FULL: Final = (slice(None),) * 64


# --- the views ----------------------------------------------------------------------------------------


def select_at(x: Any, place: Any, dim: int) -> Any:
    return x[(*FULL[:dim], place if isinstance(place, Tracer) else int(place), ...)]


def expanded(x: Any, shape: tuple[int, ...]) -> Any:
    """The array broadcast; of an array that can be written, so can this."""
    found = np.broadcast_to(x, shape)
    if type(x) is np.ndarray and x.flags.writeable:
        found.flags.writeable = True
    return found


def diagonal_of(x: Any, offset: int, dim1: int, dim2: int) -> Any:
    found = np.diagonal(x, offset, dim1, dim2)
    if type(x) is np.ndarray and x.flags.writeable:
        found.flags.writeable = True
    return found


def windows(x: Any, dim: int, size: int, step: int) -> Any:
    """All windows along a dimension; their elements are the last dimension."""
    if type(x) is np.ndarray:
        found = np.lib.stride_tricks.sliding_window_view(x, size, dim, writeable=x.flags.writeable)
    else:
        found = np.lib.stride_tricks.sliding_window_view(x, size, dim)
    return found[(*FULL[:dim], slice(None, None, step))]


def strided(x: Any, size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> Any:
    """The elements of a contiguous array at ``offset + sum(index * stride)``."""
    if type(x) is np.ndarray:
        steps = [step * x.itemsize for step in stride]
        return np.lib.stride_tricks.as_strided(x.reshape(-1)[offset:], size, steps, writeable=x.flags.writeable)
    places = np.full(size, offset)
    for axis, step in enumerate(stride):
        places += (np.arange(size[axis]) * step).reshape((-1,) + (1,) * (len(size) - axis - 1))
    return x.reshape(-1)[places]


def swapped(x: Any, a: int, b: int) -> Any:
    return x.swapaxes(a, b) if x.ndim else x


def parts_of(x: Any, dim: int, sizes: tuple[int, ...]) -> tuple[Any, ...]:
    found, start = [], 0
    for size in sizes:
        found.append(x[(*FULL[:dim], slice(start, start + size))])
        start += size
    return tuple(found)


ALIAS: Final = Op("alias", "AliasBackward0", lambda x: x[...], quiet=True)
VIEW: Final = Op("view", "ViewBackward0", lambda x, shape: x.reshape(shape), quiet=True)
RESHAPE_ALIAS: Final = Op("_reshape_alias", "ReshapeAliasBackward0", lambda x, shape: x.reshape(shape), quiet=True)
T: Final = Op("t", "TBackward0", lambda x: x.transpose(), quiet=True)
T_INPLACE: Final = Op("t_", "TBackward1", lambda x: x.transpose(), quiet=True)
TRANSPOSE: Final = Op("transpose", "TransposeBackward0", swapped, quiet=True)
TRANSPOSE_INPLACE: Final = Op("transpose_", "TransposeBackward1", swapped, quiet=True)
PERMUTE: Final = Op("permute", "PermuteBackward0", lambda x, order: x.transpose(order), quiet=True)
SQUEEZES: Final = [Op("squeeze", f"SqueezeBackward{k}", lambda x, dims: x.squeeze(dims), quiet=True) for k in range(6)]
UNSQUEEZES: Final = [
    Op("unsqueeze", f"UnsqueezeBackward{k}", lambda x, dim: x[(*FULL[:dim], None)], quiet=True) for k in range(2)
]
EXPAND: Final = Op("expand", "ExpandBackward0", expanded, quiet=True)
SELECT: Final = Op("select", "SelectBackward0", select_at, quiet=True, shown=1)
SELECT_FIXED: Final = Op("select", "SelectBackward0", lambda x, dim, place: select_at(x, place, dim), quiet=True)
SLICE: Final = Op(
    "slice",
    "SliceBackward0",
    lambda x, dim, start, stop, step: x[(*FULL[:dim], slice(start, stop, step))],
    quiet=True,
)
DIAGONAL: Final = Op("diagonal", "DiagonalBackward0", diagonal_of, quiet=True)
UNFOLD: Final = Op("unfold", "UnfoldBackward0", windows, quiet=True)
AS_STRIDED: Final = Op("as_strided", "AsStridedBackward0", strided, quiet=True)
SPLIT: Final = Op("split", "SplitBackward0", parts_of, quiet=True)
SPLIT_SIZES: Final = Op("split_with_sizes", "SplitWithSizesBackward0", parts_of, quiet=True)
UNBIND: Final = Op(
    "unbind", "UnbindBackward0", lambda x, dim: tuple([select_at(x, k, dim) for k in range(x.shape[dim])]), quiet=True
)
OTHER_DTYPE: Final = Op("view", None, lambda x, dtype: x.view(dtype), quiet=True)

FIXED[SELECT] = SELECT_FIXED
SCATTERED.update((EXPAND, DIAGONAL, UNFOLD, AS_STRIDED))
RECAST[VIEW] = RECAST[RESHAPE_ALIAS] = lambda part, new, shape: new.reshape(part.shape)


# --- shapes as arguments --------------------------------------------------------------------------------


def ints(function: str, given: Any, argument: str = "size") -> tuple[int, ...]:
    """Sizes or dimensions, given one by one or as a sequence.

    Raises:
        TensorTypeError: one is no integer.
    """
    if len(given) == 1 and isinstance(given[0], (tuple, list)):
        given = given[0]
    try:
        return tuple([operator.index(n) for n in given])
    except TypeError:
        wrong = next(n for n in given if not hasattr(n, "__index__"))
        raise TensorTypeError(
            f"{function}(): argument '{argument}' must be tuple of ints, but found element of type "
            f"{type(wrong).__name__}"
        ) from None


def sequence(function: str, given: Any, argument: str) -> tuple[int, ...]:
    """Sizes given as a tuple or list."""
    if not isinstance(given, (tuple, list)):
        raise TensorTypeError(
            f"{function}(): argument '{argument}' (position 2) must be tuple of ints, not {type(given).__name__}"
        )
    return ints(function, (given,), argument)


def resolved(shape: tuple[int, ...], count: int) -> tuple[int, ...]:
    """A shape for so many elements, with -1 worked out.

    Raises:
        TensorError: there is none.
    """
    unknown = [k for k, n in enumerate(shape) if n == -1]
    if len(unknown) > 1:
        raise TensorError("only one dimension can be inferred")
    for n in shape:
        if n < -1:
            raise TensorError(f"invalid shape dimension {n} at index {shape.index(n)} of shape {list(shape)}")
    if unknown:
        rest = math.prod(n for n in shape if n != -1)
        if not rest and not count:
            raise TensorError(
                f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size "
                "-1 can be any value and is ambiguous"
            )
        if rest and not count % rest:
            return (*shape[: unknown[0]], count // rest, *shape[unknown[0] + 1 :])
    elif math.prod(shape) == count:
        return shape
    raise TensorError(f"shape '{list(shape)}' is invalid for input of size {count}")


def is_viewable(data: Any, shape: tuple[int, ...]) -> bool:
    """Whether the array can be shown in this shape without a copy."""
    if type(data) is not np.ndarray or data.flags.c_contiguous or not data.size:
        return True
    return bool(np.may_share_memory(data.reshape(shape), data))


# --- one shape for another --------------------------------------------------------------------------------


@method("view")
def view(self: Tensor, *shape: Any, dtype: Any = None, size: Any = None) -> Any:
    """The same memory in another shape (or read as another dtype).

    Raises:
        TensorError: the shape has another number of elements, or would need a copy.
    """
    if dtype is not None or (len(shape) == 1 and isinstance(shape[0], dtypes.dtype)):
        return viewed_as(self, shape[0] if dtype is None else dtype)
    target = resolved(ints("view", shape if size is None else (size,)), self._data.size)
    if not is_viewable(self._data, target):
        raise TensorError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        )
    return apply_view(VIEW, self, (target,))


def viewed_as(self: Tensor, dtype: Any) -> Any:
    found = dtypes.as_dtype(dtype).numpy
    if found.itemsize != self._data.itemsize and (not self._data.ndim or self._data.strides[-1] != self._data.itemsize):
        raise TensorError(
            f"self.stride(-1) must be 1 to view {self.dtype} as {dtypes.of(found)} (different element sizes)",
            hint="view its contiguous()",
        )
    result = wrapped(self._data.view(found))
    result._counter = self._counter
    result._base = self if self._base is None else self._base
    result._views, result._seen = (*self._views, (OTHER_DTYPE, (found,), None)), self._counter[0]
    return result


@method("view_as")
def view_as(self: Tensor, other: Tensor) -> Any:
    """`view` in the shape of another tensor."""
    return view(self, *other._data.shape)


def reshape(input: Tensor, shape: Any) -> Any:
    """The same elements in another shape: a view where that is possible, else a copy.

    >>> import srcgrad.torch as torch
    >>> torch.arange(4).reshape(2, -1)
    tensor([[0, 1],
            [2, 3]])
    """
    need_tensor("reshape", input)
    return reshaped(input, sequence("reshape", shape, "shape"))


def reshaped(x: Tensor, shape: tuple[int, ...]) -> Any:
    target = resolved(shape, x._data.size)
    if type(x._data) is not np.ndarray or x._data.flags.c_contiguous:
        return apply_view(VIEW, x, (target,))
    if is_viewable(x._data, target):
        return apply_view(RESHAPE_ALIAS, x, (target,))
    from srcgrad.torch.ops.joining import unsafe_view

    return unsafe_view(x, target)


@method("reshape")
def reshape_method(self: Tensor, *sizes: Any, shape: Any = None) -> Any:
    """The same elements in another shape: a view where that is possible, else a copy."""
    return reshaped(self, ints("reshape", sizes if shape is None else (shape,), "shape"))


@method("reshape_as")
def reshape_as(self: Tensor, other: Tensor) -> Any:
    """`reshape` to the shape of another tensor."""
    return reshaped(self, other._data.shape)


@method("flatten")
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Dimensions from ``start_dim`` to ``end_dim`` as one."""
    need_tensor("flatten", input)
    shape = input._data.shape
    start, end = checked_dim(start_dim, len(shape)), checked_dim(end_dim, len(shape))
    if start > end:
        raise TensorError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not shape:
        return reshaped(input, (1,))
    if start == end:
        return input
    return reshaped(input, (*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :]))


@method("unflatten")
def unflatten(input: Tensor, dim: int, sizes: Any) -> Any:
    """One dimension as several, of these sizes; one of them may be -1."""
    need_tensor("unflatten", input)
    shape = input._data.shape
    axis = one_axis(dim, len(shape), "unflatten")
    parts = ints("unflatten", (sizes,), "sizes")
    if not parts:
        raise TensorError("unflatten: sizes must be non-empty")
    try:
        parts = resolved(parts, shape[axis])
    except TensorError:
        raise TensorError(
            f"unflatten: Provided sizes {list(parts)} don't multiply up to the size of dim {axis} ({shape[axis]}) in "
            "the input tensor"
        ) from None
    return view(input, *shape[:axis], *parts, *shape[axis + 1 :])


@method("ravel")
def ravel(input: Tensor) -> Any:
    """All elements in one dimension."""
    need_tensor("ravel", input)
    data = input._data
    if type(data) is np.ndarray and not data.flags.c_contiguous:
        return reshaped(input.contiguous(), (-1,))
    return reshaped(input, (-1,))


# --- order of the dimensions ------------------------------------------------------------------------------


@method("t")
def t(input: Tensor) -> Any:
    """The transpose of a matrix; tensors of fewer dimensions are as they are."""
    need_tensor("t", input)
    refuse_rank("t", input)
    return apply_view(T, input)


def refuse_rank(function: str, x: Tensor) -> None:
    if x._data.ndim > 2:
        raise TensorError(f"{function}() expects a tensor with <= 2 dimensions, but self is {x._data.ndim}D")


@method("transpose", "swapdims")
def transpose(input: Tensor, dim0: int, dim1: int) -> Any:
    """Two dimensions swapped."""
    need_tensor("transpose", input)
    rank = input._data.ndim
    a, b = one_axis(dim0, rank, "transpose"), one_axis(dim1, rank, "transpose")
    return apply_view(TRANSPOSE, input, (a, b))


@method("swapaxes")
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Any:
    """`transpose` under NumPy's name."""
    return transpose(input, axis0, axis1)


def swapdims(input: Tensor, dim0: int, dim1: int) -> Any:
    """`transpose` under another name."""
    return transpose(input, dim0, dim1)


def permute(input: Tensor, dims: Any) -> Any:
    """The dimensions in another order."""
    need_tensor("permute", input)
    return permuted(input, sequence("permute", dims, "dims"))


@method("permute")
def permute_method(self: Tensor, *order: Any, dims: Any = None) -> Any:
    """The dimensions in another order."""
    return permuted(self, ints("permute", order if dims is None else (dims,), "dims"))


def permuted(x: Tensor, dims: tuple[int, ...]) -> Any:
    rank = x._data.ndim
    if len(dims) != rank:
        raise TensorError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {rank} is not equal to len(dims) = {len(dims)}"
        )
    order = tuple([checked_dim(dim, rank) for dim in dims])
    if len(set(order)) != rank:
        raise TensorError("permute(): duplicate dims are not allowed.")
    return apply_view(PERMUTE, x, (order,))


@method("movedim", "moveaxis")
def movedim(input: Tensor, source: Any, destination: Any) -> Any:
    """Some dimensions at other places; the others keep their order."""
    need_tensor("movedim", input)
    rank = input._data.ndim
    taken = (source,) if isinstance(source, int) else tuple(source)
    places = (destination,) if isinstance(destination, int) else tuple(destination)
    if len(taken) != len(places):
        raise TensorError(
            f"movedim: Invalid source or destination dims: source ({list(taken)} dims) should contain the same number "
            f"of dims as destination ({list(places)} dims)"
        )
    taken, places = tuple(checked_dim(d, rank) for d in taken), tuple(checked_dim(d, rank) for d in places)
    for name, dims in (("source", taken), ("destination", places)):
        if len(set(dims)) != len(dims):
            raise TensorError(f"movedim: repeated dim in `{name}` ({list(dims)})")
    order = [axis for axis in range(rank) if axis not in taken]
    for place, axis in sorted(zip(places, taken, strict=True)):
        order.insert(place, axis)
    return permuted(input, tuple(order)) if rank else apply_view(ALIAS, input)


moveaxis = movedim


def all_reversed(self: Tensor) -> Any:
    """The dimensions in reverse order."""
    return permuted(self, tuple(range(self._data.ndim))[::-1])


def matrix_transposed(self: Tensor) -> Any:
    """The last two dimensions swapped."""
    if self._data.ndim < 2:
        if not self._data.ndim:
            return apply_view(ALIAS, self)
        raise TensorError(
            f"tensor.mT is only supported on matrices or batches of matrices. Got {self._data.ndim}-D tensor."
        )
    return transpose(self, -2, -1)


def hermitian(self: Tensor) -> Any:
    """The conjugate transpose of a matrix."""
    if self._data.ndim not in (0, 2):
        raise TensorError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {self._data.ndim}-D tensor. For batches of "
            "matrices, consider using tensor.mH"
        )
    return conjugate_transposed(self)


def conjugate_transposed(self: Tensor) -> Any:
    """The last two dimensions swapped, conjugated."""
    return adjoint(self) if self._data.ndim else apply_view(ALIAS, self)


@method("adjoint")
def adjoint(input: Tensor) -> Any:
    """The conjugate transpose of matrices."""
    need_tensor("adjoint", input)
    if input._data.ndim < 2:
        raise TensorError(
            f"tensor.adjoint() is only supported on matrices or batches of matrices. Got {input._data.ndim}-D tensor."
        )
    turned = transpose(input, -2, -1)
    return turned.conj() if input._data.dtype.kind == "c" else turned


for name, function in {
    "T": all_reversed,
    "mT": matrix_transposed,
    "H": hermitian,
    "mH": conjugate_transposed,
}.items():
    setattr(Tensor, name, property(function))


# --- dimensions of size 1 ---------------------------------------------------------------------------------


def size_one(x: Tensor, dim: Any) -> tuple[tuple[int, ...], int]:
    """The dimensions that `squeeze` takes away, and which of PyTorch's three forms it is."""
    shape = x._data.shape
    if dim is None:
        return tuple([k for k, size in enumerate(shape) if size == 1]), 0
    if isinstance(dim, (tuple, list)):
        axes = [checked_dim(operator.index(d), len(shape)) for d in dim]
        if len(set(axes)) != len(axes):
            twice = next(a for a in axes if axes.count(a) > 1)
            raise TensorError(f"dim {twice} appears multiple times in the list of dims")
        return tuple(sorted(a for a in axes if shape and shape[a] == 1)), 2
    axis = one_axis(dim, len(shape), "squeeze")
    return ((axis,) if shape and shape[axis] == 1 else ()), 1


@method("squeeze")
def squeeze(input: Tensor, dim: Any = None) -> Any:
    """Without the dimensions (or those named) of size 1."""
    need_tensor("squeeze", input)
    axes, form = size_one(input, dim)
    return apply_view(SQUEEZES[form], input, (axes,))


@method("unsqueeze")
def unsqueeze(input: Tensor, dim: int) -> Any:
    """With a dimension of size 1 put in at ``dim``."""
    need_tensor("unsqueeze", input)
    return apply_view(UNSQUEEZES[0], input, (one_axis(dim, input._data.ndim + 1, "unsqueeze"),))


# --- broadcasting -----------------------------------------------------------------------------------------


def expand_target(x: Tensor, sizes: tuple[int, ...]) -> tuple[int, ...]:
    shape = x._data.shape
    extra = len(sizes) - len(shape)
    if extra < 0:
        raise TensorError(
            f"expand({type_name(x._data.dtype)}{{{list(shape)}}}, size={list(sizes)}): the number of sizes provided "
            f"({len(sizes)}) must be greater or equal to the number of dimensions in the tensor ({len(shape)})"
        )
    target = list(sizes)
    for k in range(len(sizes) - 1, -1, -1):
        size = sizes[k]
        own = shape[k - extra] if k >= extra else None
        if size == -1:
            if own is None:
                raise TensorError(
                    f"The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension {k}"
                )
            size = target[k] = own
        if own is not None and own != size and own != 1:
            raise TensorError(
                f"The expanded size of the tensor ({size}) must match the existing size ({own}) at non-singleton "
                f"dimension {k}.  Target sizes: {list(sizes)}.  Tensor sizes: {list(shape)}"
            )
        if size < 0:
            raise TensorError(f"The expanded size of the tensor ({size}) isn't allowed")
    return tuple(target)


@method("expand")
def expand(self: Tensor, *sizes: Any, size: Any = None, implicit: bool = False) -> Any:
    """Broadcast to these sizes without a copy; -1 keeps a size."""
    return apply_view(EXPAND, self, (expand_target(self, ints("expand", sizes if size is None else (size,))),))


@method("expand_as")
def expand_as(self: Tensor, other: Tensor) -> Any:
    """`expand` to the shape of another tensor."""
    return expand(self, other._data.shape)


@method("broadcast_to")
def broadcast_to(input: Tensor, size: Any) -> Any:
    """`expand` under NumPy's name."""
    need_tensor("broadcast_to", input)
    return expand(input, sequence("broadcast_to", size, "size"))


def broadcast_shapes(*shapes: Any) -> dtypes.Size:
    """The shape that tensors of these shapes broadcast to."""
    try:
        return dtypes.Size(np.broadcast_shapes(*[(s,) if isinstance(s, int) else tuple(s) for s in shapes]))
    except ValueError:
        raise TensorError(
            "Shape mismatch: objects cannot be broadcast to a single shape: " + ", ".join(map(str, shapes))
        ) from None


def broadcast_tensors(*tensors: Any) -> tuple[Any, ...]:
    """The tensors, expanded to their common shape."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    shapes = [x._data.shape for x in tensors]
    try:
        target = np.broadcast_shapes(*shapes)
    except ValueError:
        from srcgrad.torch.messages import size_mismatch

        raise TensorError(size_mismatch(shapes) or "the tensors do not broadcast") from None
    return tuple([x if x._data.shape == target else expand(x, target) for x in tensors])


# --- in place ---------------------------------------------------------------------------------------------


@method("t_")
def t_inplace(self: Tensor) -> Tensor:
    """`t` of the tensor itself."""
    refuse_rank("t_", self)
    return apply_restride(T_INPLACE, self, (), (T, (), None))


@method("transpose_", "swapaxes_", "swapdims_")
def transpose_inplace(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """`transpose` of the tensor itself."""
    rank = self._data.ndim
    axes = one_axis(dim0, rank, "transpose_"), one_axis(dim1, rank, "transpose_")
    return apply_restride(TRANSPOSE_INPLACE, self, axes, (TRANSPOSE, axes, None))


@method("squeeze_")
def squeeze_inplace(self: Tensor, dim: Any = None) -> Tensor:
    """`squeeze` of the tensor itself."""
    axes, form = size_one(self, dim)
    inverse: View = (VIEW, (self._data.shape,), None)
    return apply_restride(SQUEEZES[form + 3], self, (axes,), inverse)


@method("unsqueeze_")
def unsqueeze_inplace(self: Tensor, dim: int) -> Tensor:
    """`unsqueeze` of the tensor itself."""
    axis = one_axis(dim, self._data.ndim + 1, "unsqueeze_")
    return apply_restride(UNSQUEEZES[1], self, (axis,), (SQUEEZES[1], ((axis,),), None))
