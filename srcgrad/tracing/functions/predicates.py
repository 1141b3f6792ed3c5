"""Functions that ask about arrays: about values, elementwise, and about shapes and dtypes, at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcgrad.errors import DTypeError, NoAttributeError
from srcgrad.ir.types import DType
from srcgrad.tracing.flags import BYTES_HINT
from srcgrad.tracing.functions.reductions import all as all_of
from srcgrad.tracing.functions.registry import (
    as_array,
    axes_of,
    filled,
    finish,
    method_rule,
    numpy_rule,
    scalar_if_rank0,
)
from srcgrad.tracing.indexing import IndexView
from srcgrad.tracing.layout import uninitialised
from srcgrad.tracing.trace import NeedsConcrete
from srcgrad.tracing.tracer import Tracer, as_tracer, cast_value, from_value
from srcgrad.tracing.ufuncs import weak_type


@numpy_rule("isclose")
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    x, y = as_tracer(a), as_tracer(float(b) if isinstance(b, int) else b)
    if y.dtype.kind in "biu":  # of which the magnitude may be no number of its dtype
        y = from_value(cast_value(y.read(), np.dtype(np.float64)), scalar=y.scalar, weak=y.weak)
    near = (abs(x - y) <= atol + rtol * abs(y)) & np.isfinite(y) | (x == y)
    if equal_nan:
        near = near | (np.isnan(x) & np.isnan(y))
    return near


@method_rule("is_integer")
def is_integer(x: Any) -> Any:
    """Of numbers, as Python's: arrays have no such method."""
    if not x.scalar or x.dtype.kind not in "fiu":
        raise NoAttributeError("an array has no attribute 'is_integer'")
    return np.isfinite(x) & (np.floor(x) == x)


def truth_of(found: Any) -> Any:
    """A truth value as one of Python's, which stays traced where it is not known."""
    if not isinstance(found, Tracer) or found.number() is not None:
        return bool(found)
    return from_value(found.read(), scalar=True, weak=True)


@numpy_rule("allclose")
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    return truth_of(all_of(isclose(a, b, rtol, atol, equal_nan)))


@numpy_rule("array_equal")
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    x, y = as_array(a1), as_array(a2)
    return x.shape == y.shape and truth_of(all_of(same_elements(x, y, equal_nan)))


@numpy_rule("array_equiv")
def array_equiv(a1: Any, a2: Any) -> Any:
    x, y = as_array(a1), as_array(a2)
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return False
    return truth_of(all_of(same_elements(x, y, False)))


def same_elements(x: Any, y: Any, equal_nan: bool) -> Any:
    same = x == y
    return same | (np.isnan(x) & np.isnan(y)) if equal_nan else same


@numpy_rule("isposinf")
def isposinf(x: Any, out: Any = None) -> Any:
    return finish(np.isinf(x) & (positive_parts(x) > 0), out, broadcasts=True)


@numpy_rule("isneginf")
def isneginf(x: Any, out: Any = None) -> Any:
    return finish(np.isinf(x) & (positive_parts(x) < 0), out, broadcasts=True)


def positive_parts(x: Any) -> Any:
    array = as_tracer(x)
    if array.dtype.kind == "c":
        raise DTypeError(f"This operation is not supported for {array.dtype} values because it would be ambiguous.")
    return array


@numpy_rule("isreal")
def isreal(x: Any) -> Any:
    return scalar_if_rank0(as_tracer(x).imag == 0) if np.iscomplexobj(x) else constant_bool(x, True)


@numpy_rule("iscomplex")
def iscomplex(x: Any) -> Any:
    return scalar_if_rank0(as_tracer(x).imag != 0) if np.iscomplexobj(x) else constant_bool(x, False)


def constant_bool(x: Any, value: bool) -> Any:
    return scalar_if_rank0(filled(as_tracer(x).shape, value, np.bool_))


@numpy_rule("isin")
def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: str | None = None
) -> Any:
    x, choices = as_array(element), as_array(test_elements).ravel()
    column: Any = x.reshape((*x.shape, 1))
    found = np.any(column == choices, axis=-1)
    return ~found if invert else found


# --- shapes and dtypes -----------------------------------------------------------------------------------------------


@numpy_rule("shape")
def shape(a: Any) -> tuple[int, ...]:
    return as_tracer(a).shape


@numpy_rule("ndim")
def ndim(a: Any) -> int:
    return as_tracer(a).ndim


@numpy_rule("size")
def size(a: Any, axis: Any = None) -> int:
    x = as_tracer(a)
    if axis is None:
        return x.size
    return int(np.prod([x.shape[k] for k in axes_of(axis, x.ndim)], dtype=int))


@numpy_rule("iscomplexobj")
def iscomplexobj(x: Any) -> bool:
    return as_tracer(x).dtype.kind == "c"


@numpy_rule("isrealobj")
def isrealobj(x: Any) -> bool:
    return as_tracer(x).dtype.kind != "c"


@numpy_rule("result_type")
def result_type(*arrays_and_dtypes: Any) -> DType:
    return np.result_type(*(seen_by_promotion(item) for item in arrays_and_dtypes))


def seen_by_promotion(item: Any) -> Any:
    """A dtype, or a number for a weak scalar."""
    if not isinstance(item, Tracer):
        return item
    kind = weak_type(item)
    return kind(0) if isinstance(kind, type) else kind


@numpy_rule("common_type")
def common_type(*arrays: Any) -> type:
    empties = [np.empty(0, as_tracer(array).dtype) for array in arrays]
    return np.common_type(*empties)


@numpy_rule("min_scalar_type")
def min_scalar_type(a: Any, /) -> DType:
    x = as_tracer(a)
    return x.dtype if x.ndim else np.min_scalar_type(x.concrete("np.min_scalar_type"))


@numpy_rule("can_cast")
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    source = from_.dtype if isinstance(from_, Tracer) else from_
    return np.can_cast(source, to.dtype if isinstance(to, Tracer) else to, casting)


def overlaps(overlap: Any, a: Any, b: Any, max_work: Any) -> bool:
    """Whether both view the same traced memory; of what a traced index names, any part of it counts.

    Raises:
        NeedsConcrete: they are two arrays of the caller's, who may have given one twice.
    """
    one_memory = isinstance(a, Tracer) and isinstance(b, Tracer) and a.storage is b.storage
    if not one_memory and all(x.storage.given if isinstance(x, Tracer) else isinstance(x, np.ndarray) for x in (a, b)):
        raise NeedsConcrete("whether two arguments share memory is not known while they are traced", hint=BYTES_HINT)
    if not isinstance(a, Tracer) or not isinstance(b, Tracer) or a.storage is not b.storage or a.scalar or b.scalar:
        return False
    if any(isinstance(view, IndexView) for view in (*a.chain, *b.chain)):
        return bool(a.size and b.size)
    memory = uninitialised(a.storage.value.type, a.storage.strides)
    return bool(overlap(a.ghost(memory), b.ghost(memory), max_work=max_work))


@numpy_rule("shares_memory")
def shares_memory(a: Any, b: Any, /, max_work: Any = None) -> bool:
    return overlaps(np.shares_memory, a, b, max_work)


@numpy_rule("may_share_memory")
def may_share_memory(a: Any, b: Any, /, max_work: Any = None) -> bool:
    return overlaps(np.may_share_memory, a, b, max_work)


@numpy_rule("array_repr", "array_str", "array2string")
def array_text(a: Any, *args: Any, **kwargs: Any) -> str:
    return repr(a)
