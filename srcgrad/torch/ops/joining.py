"""Tensors put together, repeated and rearranged: what gives a copy."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from srcgrad.torch import dtypes
from srcgrad.torch.dispatch import apply, apply_inplace, apply_view
from srcgrad.torch.errors import TensorError, TensorIndexError, TensorTypeError, TensorValueError
from srcgrad.torch.operation import Op
from srcgrad.torch.ops.arguments import need_tensor, one_axis
from srcgrad.torch.ops.define import method, store
from srcgrad.torch.ops.parts import atleast_1d, atleast_2d, atleast_3d
from srcgrad.torch.ops.shapes import UNSQUEEZES, expand, flatten, ints, reshaped, view
from srcgrad.torch.tensor import Tensor, checked_dim, wrapped

__all__ = [
    "block_diag", "cartesian_prod", "cat", "column_stack", "combinations", "concat", "concatenate", "diag",
    "diag_embed", "diagflat", "dstack", "flip", "fliplr", "flipud", "hstack", "meshgrid", "repeat_interleave", "roll",
    "rot90", "row_stack", "stack", "tile", "tril", "tril_indices", "triu", "triu_indices", "vstack",
]  # fmt: skip


# --- joined -----------------------------------------------------------------------------------------------


def joined(*arguments: Any) -> Any:
    return np.concatenate(arguments[:-1], axis=arguments[-1])


def stacked(*arguments: Any) -> Any:
    return np.stack(arguments[:-1], axis=arguments[-1])


def blocks(*arrays: Any) -> Any:
    """The matrices along the diagonal of one of zeros."""
    width = sum(x.shape[1] for x in arrays)
    rows, start = [], 0
    for x in arrays:
        height, own = x.shape
        before, after = np.zeros((height, start), x.dtype), np.zeros((height, width - start - own), x.dtype)
        rows.append(np.concatenate([before, x, after], axis=1))
        start += own
    return np.concatenate(rows, axis=0)


CAT: Final = Op("cat", "CatBackward0", joined, quiet=True)
STACK: Final = Op("stack", "StackBackward0", stacked, quiet=True)
BLOCK_DIAG: Final = Op("block_diag", "BlockDiagBackward0", blocks, quiet=True)
UNSAFE_VIEW: Final = Op("_unsafe_view", "UnsafeViewBackward0", lambda x, shape: x.reshape(shape), quiet=True)


def unsafe_view(x: Tensor, shape: tuple[int, ...]) -> Any:
    """A copy in another shape, which counts as no view."""
    return apply(UNSAFE_VIEW, (x.contiguous(),), (shape,))


def listed(function: str, tensors: Any) -> list[Tensor]:
    """The tensors of a sequence.

    Raises:
        TensorTypeError: it is no sequence, or not of tensors.
    """
    if not isinstance(tensors, (tuple, list)):
        raise TensorTypeError(
            f"{function}(): argument 'tensors' (position 1) must be tuple of Tensors, not {type(tensors).__name__}"
        )
    for k, x in enumerate(tensors):
        if not isinstance(x, Tensor):
            raise TensorTypeError(
                f"expected Tensor as element {k} in argument 0, but got {type(x).__name__}",
                hint="make a tensor of it: torch.tensor(...)",
            )
    return list(tensors)


def common(tensors: list[Tensor]) -> np.dtype[Any] | None:
    """The dtype that tensors are joined in; None if all have it."""
    first = tensors[0]._data.dtype
    if all(x._data.dtype == first for x in tensors):
        return None
    return dtypes.result_dtype(
        tuple([(x._data.dtype, dtypes.TENSOR if x._data.ndim else dtypes.SCALAR_TENSOR) for x in tensors])
    )


def cat(tensors: Any, dim: Any = 0, *, out: Any = None, axis: Any = None) -> Any:
    """The tensors one after the other along a dimension.

    >>> import srcgrad.torch as torch
    >>> torch.cat([torch.tensor([1, 2]), torch.tensor([3])])
    tensor([1, 2, 3])
    """
    dim = dim if axis is None else axis
    given = listed("cat", tensors)
    if not given:
        raise TensorValueError("torch.cat(): expected a non-empty list of Tensors")
    for k, x in enumerate(given):
        if not x._data.ndim:
            raise TensorError(f"zero-dimensional tensor (at position {k}) cannot be concatenated")
    dtype = common(given)
    shown = [x for x in given if x._data.shape != (0,)] or given[:1]
    rank = shown[0]._data.ndim
    place = one_axis(dim, rank, "cat")
    first = shown[0]._data.shape
    for k, x in enumerate(shown):
        shape = x._data.shape
        if len(shape) != rank:
            raise TensorError(f"Tensors must have same number of dimensions: got {rank} and {len(shape)}")
        for d in range(rank):
            if d != place and shape[d] != first[d]:
                raise TensorError(
                    f"Sizes of tensors must match except in dimension {place}. Expected size {first[d]} but got size "
                    f"{shape[d]} for tensor number {k} in the list."
                )
    if dtype is not None and len(shown) < len(given):
        shown = [x if x._data.dtype == dtype else x.to(dtypes.of(dtype)) for x in shown]
    return store(out, apply(CAT, shown, (place,), dtype))


concat = concatenate = cat


def stack(tensors: Any, dim: int = 0, *, out: Any = None) -> Any:
    """Tensors of one shape along a new dimension."""
    given = listed("stack", tensors)
    if not given:
        raise TensorError("stack expects a non-empty TensorList")
    first = given[0]._data.shape
    for k, x in enumerate(given):
        if x._data.shape != first:
            raise TensorError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and "
                f"{list(x._data.shape)} at entry {k}"
            )
    return store(out, apply(STACK, given, (one_axis(dim, len(first) + 1, "stack"),), common(given)))


def hstack(tensors: Any, *, out: Any = None) -> Any:
    """Tensors side by side: along the second dimension, or the only one."""
    given = [atleast_1d(x) for x in listed("hstack", tensors)]
    if not given:
        raise TensorError("hstack expects a non-empty TensorList")
    return cat(given, 0 if given[0]._data.ndim == 1 else 1, out=out)


def vstack(tensors: Any, *, out: Any = None) -> Any:
    """Tensors as rows, one below the other."""
    given = [atleast_2d(x) for x in listed("vstack", tensors)]
    if not given:
        raise TensorError("vstack expects a non-empty TensorList")
    return cat(given, 0, out=out)


row_stack = vstack


def dstack(tensors: Any, *, out: Any = None) -> Any:
    """Tensors along the third dimension."""
    given = [atleast_3d(x) for x in listed("dstack", tensors)]
    if not given:
        raise TensorError("dstack expects a non-empty TensorList")
    return cat(given, 2, out=out)


def column_stack(tensors: Any, *, out: Any = None) -> Any:
    """Tensors as columns of one matrix."""
    given = listed("column_stack", tensors)
    if not given:
        raise TensorError("column_stack expects a non-empty TensorList")
    return hstack([reshaped(x, (x._data.size, 1)) if x._data.ndim < 2 else x for x in given], out=out)


def block_diag(*tensors: Any) -> Any:
    """Matrices along the diagonal of one of zeros; vectors count as rows."""
    given = [wrapped(np.asarray(x)) if isinstance(x, (int, float, complex)) else x for x in tensors]
    given = listed("block_diag", given) or [wrapped(np.zeros((1, 0), np.float32))]
    for k, x in enumerate(given):
        if x._data.ndim > 2:
            raise TensorError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {k} has "
                f"{x._data.ndim} dimensions"
            )
    return apply(BLOCK_DIAG, [atleast_2d(x) for x in given], (), common(given))


# --- grids ------------------------------------------------------------------------------------------------


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Any, ...]:
    """Coordinates of a grid: each vector expanded along its own dimension; ``"xy"`` swaps the first two."""
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    given = listed("meshgrid", given)
    if not given:
        raise TensorError("meshgrid expects a non-empty TensorList")
    for x in given:
        if x._data.ndim > 1:
            raise TensorError(
                f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: a tensor of "
                f"{x._data.ndim} dimensions"
            )
        if x._data.dtype != given[0]._data.dtype:
            raise TensorError("torch.meshgrid expects all tensors to have the same dtype")
    if indexing not in (None, "ij", "xy"):
        raise TensorError(
            f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}',
        )
    swapped = indexing == "xy" and len(given) >= 2
    if swapped:
        given[:2] = given[1], given[0]
    shape = tuple([x._data.size for x in given])
    grids = []
    for k, x in enumerate(given):
        own = [1] * len(given)
        own[k] = -1
        grids.append(expand(view(x, *own), shape))
    if swapped:
        grids[:2] = grids[1], grids[0]
    return tuple(grids)


def cartesian_prod(*tensors: Any) -> Any:
    """All combinations of one element of each vector, as rows."""
    given = listed("cartesian_prod", tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list) else tensors)
    for x in given:
        if x._data.ndim != 1:
            raise TensorError("Expect a 1D vector, but got shape " + str(list(x._data.shape)))
    if len(given) == 1:
        return given[0]
    return stack([flatten(grid) for grid in meshgrid(*given, indexing="ij")], 1)


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Any:
    """All choices of ``r`` elements of a vector, as rows."""
    need_tensor("combinations", input)
    if input._data.ndim != 1:
        raise TensorError(f"Expect a 1D vector, but got shape {list(input._data.shape)}")
    if r < 0:
        raise TensorError(f"Expect a non-negative number, but got {r}")
    if not r:
        return wrapped(np.empty(0, input._data.dtype))
    chosen = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = np.array(list(chosen(range(input._data.size), r)), np.int64).reshape(-1, r)
    return stack([input[wrapped(np.ascontiguousarray(column))] for column in places.T], 1)


# --- repeated ---------------------------------------------------------------------------------------------

REPEAT: Final = Op("repeat", "RepeatBackward0", lambda x, counts: np.tile(x, counts), quiet=True)
REPEAT_EACH: Final = Op(
    "repeat_interleave",
    "IndexSelectBackward0",
    lambda x, places, axis: np.take(x, places, axis),
    quiet=True,
    shown=1,
)


@method("repeat")
def repeat(self: Tensor, *counts: Any, repeats: Any = None) -> Any:
    """The tensor repeated so often along each dimension; further ones stand first."""
    counts = ints("repeat", counts if repeats is None else (repeats,), "repeats")
    if len(counts) < self._data.ndim:
        raise TensorError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor",
        )
    if any(count < 0 for count in counts):
        raise TensorError(f"Trying to create tensor with negative dimension: repeats {list(counts)}")
    return apply(REPEAT, (self,), (counts,))


def tile(input: Tensor, dims: Any) -> Any:
    """`repeat`, where missing leading counts are 1."""
    need_tensor("tile", input)
    counts = ints("tile", (dims,) if not isinstance(dims, int) else ((dims,),), "dims")
    return repeat(input, (1,) * (input._data.ndim - len(counts)) + counts)


@method("tile")
def tile_method(self: Tensor, *counts: Any, dims: Any = None) -> Any:
    """`repeat`, where missing leading counts are 1."""
    return tile(self, ints("tile", counts if dims is None else (dims,), "dims"))


@method("repeat_interleave")
def repeat_interleave(input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: Any = None) -> Any:
    """Each element (or part along a dimension) repeated so often, or as often as its number in ``repeats`` says.

    Given counts alone, the places: 0 repeated ``input[0]`` times, 1 ``input[1]`` times, ...
    """
    need_tensor("repeat_interleave", input)
    if repeats is None:
        return wrapped(np.repeat(np.arange(input._data.size), input._data))
    x = flatten(input) if dim is None else input
    axis = 0 if dim is None else one_axis(dim, x._data.ndim, "repeat_interleave")
    if isinstance(repeats, int):
        if repeats < 0:
            raise TensorError("Repeats must be non-negative")
        shape = x._data.shape
        wide = apply_view(UNSQUEEZES[0], x, (axis + 1,))
        wide = expand(wide, (*shape[: axis + 1], repeats, *shape[axis + 1 :])).clone(
            memory_format=dtypes.contiguous_format
        )
        return view(wide, *shape[:axis], shape[axis] * repeats, *shape[axis + 1 :])
    counts = repeats._data if isinstance(repeats, Tensor) else np.asarray(repeats)
    if counts.ndim > 1 or counts.dtype.kind not in "iu":
        raise TensorError("Repeats has to be a vector of integers")
    if counts.size not in (1, x._data.shape[axis]):
        raise TensorError("repeats must have the same size as input along dim")
    if np.any(counts < 0):
        raise TensorError("repeats can not be negative")
    places = np.repeat(np.arange(x._data.shape[axis]), counts)
    return apply(REPEAT_EACH, (x, wrapped(places)), (axis,))


# --- rearranged -------------------------------------------------------------------------------------------


def flipped(x: Any, axes: tuple[int, ...]) -> Any:
    return x[tuple([slice(None, None, -1) if k in axes else slice(None) for k in range(x.ndim)])].copy()


FLIP: Final = Op("flip", "FlipBackward0", flipped, quiet=True)
ROLL: Final = Op("roll", "RollBackward0", lambda x, shifts, axes: np.roll(x, shifts, axes), quiet=True)
ROT90: Final = Op("rot90", "Rot90Backward0", lambda x, k, axes: np.rot90(x, k, axes).copy(), quiet=True)


def distinct(dims: tuple[int, ...], rank: int) -> tuple[int, ...]:
    found = tuple([checked_dim(d, rank) for d in dims])
    if len(set(found)) != len(found):
        twice = next(d for d in found if found.count(d) > 1)
        raise TensorError(f"dim {twice} appears multiple times in the list of dims")
    return found


def flip(input: Tensor, dims: Any) -> Any:
    """The elements along these dimensions in reverse order, as a copy."""
    need_tensor("flip", input)
    axes = distinct(ints("flip", (dims,) if not isinstance(dims, int) else ((dims,),), "dims"), input._data.ndim)
    return apply(FLIP, (input,), (axes,))


@method("flip")
def flip_method(self: Tensor, *axes: Any, dims: Any = None) -> Any:
    """The elements along these dimensions in reverse order, as a copy."""
    return flip(self, ints("flip", axes if dims is None else (dims,), "dims"))


@method("fliplr")
def fliplr(input: Tensor) -> Any:
    """The columns in reverse order."""
    need_tensor("fliplr", input)
    if input._data.ndim < 2:
        raise TensorError("Input must be >= 2-d.")
    return flip(input, (1,))


@method("flipud")
def flipud(input: Tensor) -> Any:
    """The rows in reverse order."""
    need_tensor("flipud", input)
    if input._data.ndim < 1:
        raise TensorError("Input must be >= 1-d.")
    return flip(input, (0,))


@method("roll")
def roll(input: Tensor, shifts: Any, dims: Any = None) -> Any:
    """The elements moved along dimensions; those that leave at one end come in at the other."""
    need_tensor("roll", input)
    moves = ints("roll", (shifts,) if not isinstance(shifts, int) else ((shifts,),), "shifts")
    if dims is None or dims == ():
        if len(moves) != 1:
            raise TensorError(f"shifts and dimensions must align. shifts: {len(moves)}, dims:0")
        return apply(ROLL, (input,), (moves[0], None))
    axes = ints("roll", (dims,) if not isinstance(dims, int) else ((dims,),), "dims")
    if len(moves) != len(axes):
        raise TensorError(f"shifts and dimensions must align. shifts: {len(moves)}, dims:{len(axes)}")
    return apply(ROLL, (input,), (moves, tuple([one_axis(d, input._data.ndim, "roll") for d in axes])))


@method("rot90")
def rot90(input: Tensor, k: int = 1, dims: Any = (0, 1)) -> Any:
    """Turned by ``k`` quarter turns in the plane of two dimensions."""
    need_tensor("rot90", input)
    axes = ints("rot90", (dims,), "dims")
    if len(axes) != 2:
        raise TensorError(f"expected total rotation dims == 2, but got dims = {len(axes)}")
    if input._data.ndim < 2:
        raise TensorError(f"expected total dims >= 2, but got total dims = {input._data.ndim}")
    a, b = (checked_dim(d, input._data.ndim) for d in axes)
    if a == b:
        raise TensorError(f"expected rotation dims to be different, but got dim0 = {axes[0]} and dim1 = {axes[1]}")
    return apply(ROT90, (input,), (int(k), (a, b)))


# --- triangles and diagonals --------------------------------------------------------------------------------

TRIL: Final = Op("tril", "TrilBackward0", lambda x, k: np.tril(x, k), quiet=True)
TRIU: Final = Op("triu", "TriuBackward0", lambda x, k: np.triu(x, k), quiet=True)


def triangle(name: str, op: Op) -> Callable[..., Any]:
    """`tril` or `triu`: function, method and in-place form."""

    def checked(x: Any) -> None:
        need_tensor(name, x)
        if x._data.ndim < 2:
            raise TensorError(f"{name}: input tensor must have at least 2 dimensions")

    def call(input: Tensor, diagonal: int = 0, *, out: Any = None) -> Any:
        checked(input)
        return store(out, apply(op, (input,), (int(diagonal),)))

    def call_inplace(self: Tensor, diagonal: int = 0) -> Tensor:
        checked(self)
        return apply_inplace(op, self, (), (int(diagonal),))

    side = "below" if name == "tril" else "above"
    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Matrices with zeros except on and {side} a diagonal."
    call_inplace.__name__ = call_inplace.__qualname__ = f"{name}_"
    call_inplace.__doc__ = f"`{name}`, written into the tensor."
    method(name)(call)
    method(f"{name}_")(call_inplace)
    return call


tril = triangle("tril", TRIL)
triu = triangle("triu", TRIU)


def triangle_indices(function: str, places: Callable[..., Any], row: int, col: int, offset: int, dtype: Any) -> Any:
    for name, size in (("row", row), ("col", col)):
        if size < 0:
            raise TensorError(f"{name} must be non-negative, got {size}")
    found = np.stack(places(row, offset, col))
    return wrapped(found.astype(np.int64 if dtype is None else dtypes.as_dtype(dtype).numpy))


def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None, layout: Any = None
) -> Any:
    """Rows and columns of the elements on and below a diagonal, as two rows."""
    return triangle_indices("tril_indices", np.tril_indices, row, col, offset, dtype)


def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None, layout: Any = None
) -> Any:
    """Rows and columns of the elements on and above a diagonal, as two rows."""
    return triangle_indices("triu_indices", np.triu_indices, row, col, offset, dtype)


def embedded(x: Any, offset: int, dim1: int, dim2: int) -> Any:
    """Matrices with the last dimension of the array on a diagonal, their dimensions at ``dim1`` and ``dim2``."""
    size = x.shape[-1] + abs(offset)
    flat = np.zeros_like(x, shape=(*x.shape[:-1], size * size))
    start = offset if offset >= 0 else -offset * size
    flat[..., start : start + x.shape[-1] * (size + 1) : size + 1] = x
    matrices = flat.reshape((*x.shape[:-1], size, size))
    return np.moveaxis(matrices, (-2, -1), (dim1, dim2))


DIAG_EMBED: Final = Op("diag_embed", "DiagEmbedBackward0", embedded, quiet=True)
DIAGONAL_COPY: Final = Op(
    "diagonal_copy", "DiagonalBackward0_copy", lambda x, offset: np.diagonal(x, offset).copy(), quiet=True
)


@method("diag_embed")
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Matrices whose diagonals are the last dimension of the tensor."""
    need_tensor("diag_embed", input)
    rank = input._data.ndim + 1
    a, b = one_axis(dim1, rank, "diag_embed"), one_axis(dim2, rank, "diag_embed")
    if a == b:
        raise TensorError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return apply(DIAG_EMBED, (input,), (int(offset), a, b))


@method("diag")
def diag(input: Tensor, diagonal: int = 0, *, out: Any = None) -> Any:
    """The diagonal of a matrix, or the matrix with this diagonal."""
    need_tensor("diag", input)
    if input._data.ndim == 1:
        return store(out, diag_embed(input, diagonal))
    if input._data.ndim != 2:
        raise TensorError(f"diag(): Supports 1D or 2D tensors. Got {input._data.ndim}D")
    rows, columns = input._data.shape
    if not -rows <= diagonal <= columns:
        raise TensorIndexError(f"diag(): the diagonal {diagonal} is outside of a matrix of {rows} x {columns}")
    return store(out, apply(DIAGONAL_COPY, (input,), (int(diagonal),)))


@method("diagflat")
def diagflat(input: Tensor, offset: int = 0) -> Any:
    """The matrix with all elements of the tensor on a diagonal."""
    need_tensor("diagflat", input)
    return diag(reshaped(input.contiguous(), (-1,)), offset)
