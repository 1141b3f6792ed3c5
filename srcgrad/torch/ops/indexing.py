"""``x[index]`` and ``x[index] = value``, as PyTorch reads an index: views one by one, then index tensors at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from srcgrad.torch.dispatch import apply, apply_inplace, apply_view, named
from srcgrad.torch.errors import TensorError, TensorIndexError, TensorTypeError, TensorValueError
from srcgrad.torch.graph import type_name
from srcgrad.torch.modes import MODE
from srcgrad.torch.operation import Op
from srcgrad.torch.ops.arguments import need_tensor
from srcgrad.torch.ops.define import fitting, method, number
from srcgrad.torch.ops.parts import selected
from srcgrad.torch.ops.shapes import ALIAS, FULL, SLICE, UNSQUEEZES, expand, view
from srcgrad.torch.tensor import Tensor, wrapped
from srcgrad.torch.writing import refuse_same, refuse_write
from srcgrad.tracing.tracer import Tracer

__all__ = ["index_put"]

Places = dict[int, Tensor]
"""Index tensors by the dimension they index."""


def picked(x: Any, *rest: Any) -> Any:
    *indices, dims = rest
    found = x[key_of(x.ndim, dims, indices)]
    return found if type(found) is not np.ndarray or found.flags.c_contiguous else found.copy()


def key_of(rank: int, dims: tuple[int, ...], indices: Sequence[Any]) -> tuple[Any, ...]:
    key: list[Any] = list(FULL[:rank])
    for dim, index in zip(dims, indices, strict=True):
        key[dim] = index
    return tuple(key)


def put(x: Any, value: Any, *rest: Any) -> Any:
    """The array with values written, or added, at the indices' places; of values for one place the last counts."""
    *indices, dims, accumulate = rest
    x = x.copy()
    key = key_of(x.ndim, dims, indices)
    if accumulate:
        np.add.at(x, key, value)
    else:
        x[key] = value
    return x


INDEX: Final = Op("index", "IndexBackward0", picked, quiet=True, shown=1)
INDEX_PUT: Final = Op("index_put", "IndexPutBackward0", put, shown=2)


# --- reading an index -------------------------------------------------------------------------------------


def items_of(index: Any) -> list[Any]:
    """The items of an index: numbers, slices, None, Ellipsis, bools, and tensors."""
    if isinstance(index, tuple):
        return [item_of(item) for item in index]
    if isinstance(index, list) and any(
        item is None or item is Ellipsis or isinstance(item, (Tensor, list, tuple, slice)) for item in index
    ):
        return [item_of(item) for item in index]
    return [item_of(index)]


def item_of(item: Any) -> Any:
    """One item; sequences and arrays as tensors, a tensor with one integer as that number.

    Raises:
        TensorIndexError: it is no index.
    """
    if item is None or item is Ellipsis or isinstance(item, (bool, slice, int)):
        return item
    if isinstance(item, np.ndarray):
        item = wrapped(item)
    if isinstance(item, Tensor):
        data = item._data
        if data.dtype.kind not in "iub" or data.dtype.name not in ("int64", "int32", "uint8", "bool"):
            raise TensorIndexError("tensors used as indices must be long, int, byte or bool tensors")
        if not data.ndim and data.dtype.name not in ("bool", "uint8") and not isinstance(data, Tracer):
            return int(data)
        return item
    if isinstance(item, np.bool_):
        return bool(item)
    if hasattr(item, "__index__"):
        return item.__index__()
    if isinstance(item, (list, tuple, range)):
        return listed_index(item)
    if isinstance(item, str):
        raise TensorTypeError("new(): invalid data type 'str'")
    raise TensorIndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
        f"(got {type(item).__name__})"
    )


def listed_index(item: Any) -> Tensor:
    array = np.array([x._data if isinstance(x, Tensor) else x for x in item]) if len(item) else np.empty(0, np.int64)
    if array.dtype.kind not in "iub":
        raise TensorIndexError("tensors used as indices must be long, int, byte or bool tensors")
    return wrapped(array)


def is_mask(x: Tensor) -> bool:
    return bool(x._data.dtype.name in ("bool", "uint8"))


def used(item: Any) -> int:
    """How many dimensions an item takes."""
    if isinstance(item, Tensor):
        return int(item._data.ndim) if is_mask(item) else 1
    return int(isinstance(item, (int, slice)) and not isinstance(item, bool))


def located(x: Tensor, index: Any, always: bool = True) -> tuple[Tensor, Places]:
    """The view that numbers, slices and new dimensions give, and the index tensors to be used on it.

    ``always``: one slice gives a view also where it is the whole tensor.
    """
    items = items_of(index)
    total = sum(map(used, items))
    shape = x._data.shape
    if total > len(shape):
        if not shape and len(items) == 1 and isinstance(items[0], int):
            raise TensorIndexError(
                "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to "
                "convert a 0-dim tensor to a number"
            )
        if not shape and len(items) == 1 and isinstance(items[0], slice):
            if MODE.get().grad:
                x.grad_fn  # noqa: B018  a view that must not have been changed is the graver error
            raise TensorIndexError("slice() cannot be applied to a 0-dim tensor.")
        raise TensorIndexError(f"too many indices for tensor of dimension {len(shape)}")
    result, dim, places = x, 0, {}
    only = always and len(items) == 1
    for item in items:
        if item is Ellipsis:
            dim += len(shape) - total
        elif item is None:
            result = apply_view(UNSQUEEZES[0], result, (dim,))
            dim += 1
        elif isinstance(item, bool):
            result = apply_view(UNSQUEEZES[0], result, (dim,))
            places[dim] = wrapped(np.zeros(int(item), np.int64))
            dim += 1
        elif isinstance(item, int):
            result = at(result, dim, item)
        elif isinstance(item, slice):
            result = sliced(result, dim, item, only)
            dim += 1
        elif is_mask(item):
            if not item._data.ndim:
                result = apply_view(UNSQUEEZES[0], result, (dim,))
            for index_array in chosen(item._data, result._data.shape, dim):
                places[dim] = wrapped(index_array)
                dim += 1
        elif not item._data.ndim:
            result = apply(INDEX, (result, item), ((dim,),))
        else:
            places[dim] = item
            dim += 1
    return result, places


def at(x: Tensor, dim: int, place: int) -> Any:
    size = x._data.shape[dim]
    if not -size <= place < size:
        raise TensorIndexError(f"index {place} is out of bounds for dimension {dim} with size {size}")
    return selected(x, dim, place)


def sliced(x: Tensor, dim: int, item: slice, always: bool) -> Any:
    """A slice; the tensor itself if the slice is all of it, unless a view is wanted ``always``."""
    size = x._data.shape[dim]
    try:
        if item.step is not None and item.step.__index__() <= 0:
            raise TensorValueError("step must be greater than zero")
        start, stop, step = item.indices(size)
    except (TypeError, AttributeError):
        raise TensorTypeError("slice indices must be integers or None or have an __index__ method") from None
    whole = item.start in (None, 0) and (item.stop is None or item.stop >= size) and step == 1
    if whole and not always:
        return x
    return apply_view(SLICE, x, (dim, start, max(start, stop), step))


def chosen(mask: Any, shape: Sequence[int], dim: int) -> tuple[Any, ...]:
    """The places where a mask holds, per dimension."""
    if not mask.ndim:
        return (np.zeros(int(bool(mask)), np.int64),)
    for k, size in enumerate(mask.shape):
        if size != shape[dim + k]:
            raise TensorIndexError(
                f"The shape of the mask {list(mask.shape)} at index {k} does not match the shape of the indexed tensor "
                f"{list(shape)} at index {dim + k}"
            )
    found: tuple[Any, ...] = np.nonzero(mask)
    return found


def check_places(x: Tensor, places: Places) -> None:
    """Raise unless the index tensors broadcast and lie within the tensor. An index of nothing is not looked at."""
    shape = x._data.shape
    empty = 0 in common_shape(places) or any(not size for dim, size in enumerate(shape) if dim not in places)
    for dim, index in places.items():
        if empty and shape[dim]:
            places[dim] = wrapped(np.zeros_like(index._data))
        else:
            check_bounds(index._data, shape[dim], dim)


def common_shape(places: Places) -> tuple[int, ...]:
    """The shape that the index tensors broadcast to."""
    shapes = [index._data.shape for index in places.values()]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise TensorIndexError(
            "shape mismatch: indexing tensors could not be broadcast together with shapes "
            + ", ".join(str(list(shape)) for shape in shapes)
        ) from None


def require_fit(x: Tensor, places: Places, value: Tensor) -> None:
    """Raise unless the value broadcasts to the shape of what the index names."""
    shape, dims = x._data.shape, list(places)
    rest = [size for dim, size in enumerate(shape) if dim not in places]
    first = dims[0] if dims == list(range(dims[0], dims[0] + len(dims))) else 0
    target = (*rest[:first], *common_shape(places), *rest[first:])
    try:
        fits = np.broadcast_shapes(target, value._data.shape) == target
    except ValueError:
        fits = False
    if not fits:
        raise TensorError(
            f"shape mismatch: value tensor of shape {list(value._data.shape)} cannot be broadcast to indexing "
            f"result of shape {list(target)}"
        )


def check_bounds(index: Any, size: int, dim: int, negative: bool = True) -> None:
    """Raise a `TensorIndexError` if an index is outside of a dimension."""
    if isinstance(index, Tracer) or not index.size:
        return
    low, high = int(index.min()), int(index.max())
    if low < (-size if negative else 0) or high >= size:
        wrong = high if high >= size else low
        raise TensorIndexError(f"index {wrong} is out of bounds for dimension {dim} with size {size}")


# --- x[index] ---------------------------------------------------------------------------------------------


@method("__getitem__")
def getitem(self: Tensor, index: Any) -> Any:
    """The part that an index names: a view, or a copy where index tensors are in it."""
    kind = type(index)
    if kind is int and self._data.ndim:
        return at(self, 0, index)
    if kind is slice and self._data.ndim:
        return sliced(self, 0, index, True)
    found, places = located(self, index)
    if places:
        try:
            check_places(found, places)
        except TensorIndexError:
            if MODE.get().grad:
                found.grad_fn  # noqa: B018  a view that must not have been changed is the graver error
            raise
        return apply(INDEX, (found, *places.values()), (tuple(places),))
    return apply_view(ALIAS, self) if found is self else found


# --- x[index] = value ---------------------------------------------------------------------------------------


@method("__setitem__")
def setitem(self: Tensor, index: Any, value: Any) -> None:
    """Write a value into the part that an index names. Of several values for one place the last counts."""
    value = assigned(self, value)
    kind = type(index)
    if kind is int and self._data.ndim:
        write(at(self, 0, index), value)
        return
    if kind is slice and self._data.ndim:
        write(sliced(self, 0, index, False), value)
        return
    if index is False or (type(index) is tuple and any(item is False for item in index)):
        return
    if index is True:
        index = None
    if isinstance(index, Tensor) and is_mask(index) and value._data.size == 1 and shares_memory(value, self):
        value = value.clone()
    found, places = located(self, index, False)
    if not places:
        write(found, value)
        return
    put_into(found, places, without_leading_ones(value), False)


def assigned(x: Tensor, value: Any) -> Tensor:
    """What is assigned, as a tensor; a number in the tensor's dtype.

    Raises:
        TensorTypeError: it is neither a tensor nor a number.
    """
    if isinstance(value, Tensor):
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (bool, int, float, complex)):
        raise TensorTypeError(
            f"can't assign a {type(value).__module__.replace('builtins', '')}"
            f"{'.' * (type(value).__module__ != 'builtins')}{type(value).__name__} to a {type_name(x._data.dtype)}",
            hint="make a tensor of it: torch.tensor(...)",
        )
    dtype = x._data.dtype
    if isinstance(value, complex) and dtype.kind != "c":
        raise TensorError("value cannot be converted to type float without overflow", hint="assign its real part")
    fitting(value, dtype, fills=True)
    if isinstance(value, float) and dtype.kind in "iub":
        value = bool(value) if dtype.kind == "b" else int(value)
    return number(value, dtype)


def without_leading_ones(value: Tensor) -> Tensor:
    shape = value._data.shape
    k = 0
    while k < len(shape) and shape[k] == 1:
        k += 1
    return view(value, *shape[k:]) if k else value


def shares_memory(a: Tensor, b: Tensor) -> bool:
    return type(a._data) is np.ndarray and type(b._data) is np.ndarray and np.may_share_memory(a._data, b._data)


def write(target: Tensor, value: Tensor) -> None:
    """Copy a value into a view."""
    shape = value._data.shape
    if shape == target._data.shape:
        target.copy_(value)
    elif not shape:
        target.fill_(value.clone() if shares_memory(value, target) else value)
    else:
        target.copy_(expand(without_leading_ones(value), target._data.shape))


# --- index_put ----------------------------------------------------------------------------------------------


def put_into(x: Tensor, places: Places, value: Tensor, accumulate: bool) -> Tensor:
    refuse_write(x, value)
    require_dtype(x, value)
    refuse_same(x, (value, *places.values()))
    require_fit(x, places, value)
    check_places(x, places)
    indices = tuple(places.values())
    return apply_inplace(INDEX_PUT, x, (value, *indices), (tuple(places), accumulate))


def require_dtype(x: Tensor, value: Tensor) -> None:
    if value._data.dtype != x._data.dtype:
        raise TensorError(
            "Index put requires the source and destination dtypes match, got "
            f"{named(x._data.dtype)} for the destination and {named(value._data.dtype)} for the source.",
            hint="convert the values: values.to(x.dtype)",
        )


def put_places(x: Tensor, indices: Any) -> Places:
    """The index tensors of `index_put`, masks as places."""
    if not isinstance(indices, (tuple, list)):
        raise TensorTypeError(f"index_put(): argument 'indices' must be tuple of Tensors, not {type(indices).__name__}")
    places: Places = {}
    dim = 0
    for k, index in enumerate(indices):
        if not isinstance(index, Tensor):
            raise TensorTypeError(f"expected Tensor as element {k} in argument 0, but got {type(index).__name__}")
        if index._data.dtype.name not in ("int64", "int32", "uint8", "bool"):
            raise TensorIndexError("tensors used as indices must be long, int, byte or bool tensors")
        if dim + (index._data.ndim if is_mask(index) else 1) > x._data.ndim:
            raise TensorIndexError(f"too many indices for tensor of dimension {x._data.ndim} (got {len(indices)})")
        if is_mask(index):
            for array in chosen(index._data, x._data.shape, dim):
                places[dim] = wrapped(array)
                dim += 1
        else:
            places[dim] = index
            dim += 1
    return places


@method("index_put_")
def index_put_inplace(self: Tensor, indices: Any, values: Any, accumulate: bool = False) -> Tensor:
    """Write values at the places of the indices, or add them there; of several for one place the last counts."""
    need_tensor("index_put_", values, "values", 2)
    refuse_write(self, values)
    return put_into(self, put_places(self, indices), values, bool(accumulate))


@method("index_put")
def index_put(input: Tensor, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """`index_put_`, into a copy."""
    need_tensor("index_put", input)
    need_tensor("index_put", values, "values", 2)
    places = put_places(input, indices)
    require_dtype(input, values)
    require_fit(input, places, values)
    check_places(input, places)
    return apply(INDEX_PUT, (input, values, *places.values()), (tuple(places), bool(accumulate)))


@method("fill_diagonal_")
def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """A number written on the main diagonal; with ``wrap``, on and on in tall matrices, after a row without."""
    shape = self._data.shape
    if len(shape) < 2:
        raise TensorError("dimensions must larger than 1")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise TensorError("all dimensions of input must be of equal length")
    if wrap and len(shape) == 2:
        places = np.arange(0, shape[0] * shape[1], shape[1] + 1)
        index = tuple(wrapped(part) for part in np.unravel_index(places, shape))
    else:
        index = (wrapped(np.arange(min(shape))),) * len(shape)
    self[index] = fill_value
    return self
