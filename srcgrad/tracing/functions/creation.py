"""Functions that make arrays like others, and those that write into an array."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcgrad.errors import ShapeError
from srcgrad.tracing.functions.registry import as_array, cast, concrete_array, filled, numpy_rule
from srcgrad.tracing.functions.shapes import broadcast_to
from srcgrad.tracing.indexing import in_dtype
from srcgrad.tracing.tracer import Tracer, as_tracer
from srcgrad.tracing.ufuncs import assign, require_traced_out


def like(prototype: Any, dtype: Any, shape: Any) -> tuple[tuple[int, ...], Any]:
    x = as_tracer(prototype)
    if shape is None:
        shape = x.shape
    elif isinstance(shape, (int, np.integer)):
        shape = (int(shape),)
    return tuple(shape), x.dtype if dtype is None else np.dtype(dtype)


def laid_out(result: Tracer, prototype: Any, order: str) -> Tracer:
    """The fresh array in the memory layout of its prototype, where the order asks for that."""
    keeps = order in "KA" and isinstance(prototype, Tracer) and prototype.shape == result.shape
    return result.like_ufunc(prototype) if keeps else result


@numpy_rule("zeros_like", "empty_like")
def zeros_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Tracer:
    shape, dtype = like(a, dtype, shape)
    return laid_out(filled(shape, 0, dtype), a, order)


@numpy_rule("ones_like")
def ones_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Tracer:
    shape, dtype = like(a, dtype, shape)
    return laid_out(filled(shape, 1, dtype), a, order)


@numpy_rule("full_like")
def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Tracer:
    shape, dtype = like(a, dtype, shape)
    return laid_out(broadcast_to(cast(in_dtype(fill_value, dtype), dtype), shape).copy(), a, order)


@numpy_rule("copy")
def copy(a: Any, order: str = "K", subok: bool = False) -> Tracer:
    return as_tracer(a).copy(order)


@numpy_rule("astype")
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tracer:
    return as_tracer(x).astype(dtype, copy=copy)


@numpy_rule("copyto")
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    require_traced_out(dst)
    value: Any = as_tracer(src)
    while value.ndim > dst.ndim and value.shape[0] == 1:  # as in an assignment, leading axes of size 1 may be dropped
        value = value.reshape(value.shape[1:])
    assign(dst, value, where, casting)


@numpy_rule("fill_diagonal")
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    require_traced_out(a)
    if a.ndim < 2:
        raise ShapeError("array must be at least 2-d")
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise ShapeError("All dimensions of input must be of equal length")
    places = np.zeros(a.shape, bool)
    np.fill_diagonal(places, True, wrap)
    index = np.nonzero(places)
    values, count = as_array(val).ravel(), len(index[0])
    a[index] = values if values.size == count else values[np.arange(count) % values.size]


@numpy_rule("put", method="put")
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    require_traced_out(a)
    if a.scalar:  # NumPy changes a copy of it
        return
    index: Any = as_array(ind).ravel()
    values: Any = as_array(v).ravel()
    if mode == "wrap":
        index = index % a.size
    elif mode == "clip":
        index = np.minimum(np.maximum(index, 0), a.size - 1)
    if values.size and index.size:
        a.flat[index] = values[np.arange(index.size) % values.size]


def require_size(function: str, array: Any, mask: Any) -> None:
    if np.size(mask) != array.size:
        raise ShapeError(f"{function}: mask and data must be the same size")


@numpy_rule("place")
def place(arr: Any, mask: Any, vals: Any) -> None:
    require_traced_out(arr)
    require_size("place", arr, mask)
    index = np.flatnonzero(concrete_array(mask, "np.place's mask"))
    values: Any = as_array(vals).ravel()
    if not index.size:
        return
    if not values.size:
        raise ShapeError("Cannot insert from an empty array!")
    arr.flat[index] = values[np.arange(index.size) % values.size]


@numpy_rule("putmask")
def putmask(a: Any, /, mask: Any, values: Any) -> None:
    require_traced_out(a)
    require_size("putmask", a, mask)
    source: Any = as_array(values)
    if source.shape != a.shape:
        source = source.ravel()[np.arange(a.size) % source.size].reshape(a.shape)
    assign(a, source, mask, "unsafe")


# --- diagonals -------------------------------------------------------------------------------------------------------


@numpy_rule("diag")
def diag(v: Any, k: int = 0) -> Tracer:
    x: Any = as_tracer(v)
    if x.ndim == 2:
        return x.diagonal(k)  # type: ignore[no-any-return]
    if x.ndim != 1:
        raise ShapeError("Input must be 1- or 2-d.")
    size = x.size + abs(k)
    result: Any = filled((size, size), 0, x.dtype)
    places = np.arange(x.size)
    result[places + max(-k, 0), places + max(k, 0)] = x
    return result  # type: ignore[no-any-return]


@numpy_rule("diagflat")
def diagflat(v: Any, k: int = 0) -> Tracer:
    return diag(as_array(v).ravel(), k)


def triangle(m: Any, k: int, lower: bool) -> Any:
    x: Any = as_tracer(m)
    if not x.ndim:
        raise ShapeError("np.tril and np.triu take at least one dimension")
    shape = x.shape if x.ndim > 1 else (x.size, x.size)
    mask = np.tri(shape[-2], shape[-1], k if lower else k - 1, dtype=np.bool_)
    return np.where(mask if lower else ~mask, x, np.zeros((), x.dtype)[()])


@numpy_rule("tril")
def tril(m: Any, k: int = 0) -> Any:
    return triangle(m, k, True)


@numpy_rule("triu")
def triu(m: Any, k: int = 0) -> Any:
    return triangle(m, k, False)


@numpy_rule("diag_indices_from")
def diag_indices_from(arr: Any) -> tuple[Any, ...]:
    x = as_tracer(arr)
    if x.ndim < 2 or len(set(x.shape)) > 1:
        raise ShapeError("input array must be at least 2-d, with all dimensions of equal length")
    return np.diag_indices(x.shape[0], x.ndim)


@numpy_rule("tril_indices_from")
def tril_indices_from(arr: Any, k: int = 0) -> tuple[Any, ...]:
    x = as_tracer(arr)
    if x.ndim != 2:
        raise ShapeError("input array must be 2-d")
    return np.tril_indices(x.shape[0], k, x.shape[1])


@numpy_rule("triu_indices_from")
def triu_indices_from(arr: Any, k: int = 0) -> tuple[Any, ...]:
    x = as_tracer(arr)
    if x.ndim != 2:
        raise ShapeError("input array must be 2-d")
    return np.triu_indices(x.shape[0], k, x.shape[1])
