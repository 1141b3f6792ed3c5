"""Tensors from data, of one value, of ranges; and their like."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from srcgrad.torch import dtypes
from srcgrad.torch.errors import AutogradError, TensorError, TensorTypeError, TensorValueError
from srcgrad.torch.modes import MODE
from srcgrad.torch.ops.define import fitting, method, not_a_tensor, number_array, store
from srcgrad.torch.tensor import Tensor, wrapped
from srcgrad.tracing.tracer import Tracer

__all__ = [
    "BoolTensor",
    "ByteTensor",
    "DoubleTensor",
    "FloatTensor",
    "IntTensor",
    "LongTensor",
    "arange",
    "as_tensor",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "from_numpy",
    "full",
    "full_like",
    "linspace",
    "logspace",
    "ones",
    "ones_like",
    "scalar_tensor",
    "tensor",
    "zeros",
    "zeros_like",
]


def finished(array: Any, requires_grad: bool, device: Any = None, out: Tensor | None = None) -> Tensor:
    """A fresh tensor of an array that nobody else has; or ``out``, with the array written into it."""
    dtypes.usable_device(device)
    found = wrapped(array)
    if out is not None:
        return store(out, found)  # type: ignore[no-any-return]
    if requires_grad and found._data.dtype.kind not in "fc":
        raise AutogradError("Only Tensors of floating point and complex dtype can require gradients")
    if requires_grad:
        found.requires_grad_()
    if MODE.get().inference:
        found._inference = True
    return found


def numpy_dtype(dtype: Any, default: np.dtype[Any] | None = None) -> np.dtype[Any]:
    """NumPy's dtype for ``dtype=``; the default floating one for None."""
    if dtype is None:
        return dtypes.get_default_dtype().numpy if default is None else default
    return dtypes.as_dtype(dtype).numpy


def shape_of(size: tuple[Any, ...]) -> tuple[int, ...]:
    """``f(2, 3)`` and ``f((2, 3))``.

    Raises:
        TensorTypeError: a size is no integer.
        TensorError: a size is negative.
    """
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = tuple(size[0])
    try:
        found = tuple([int(n.__index__()) for n in size])
    except (AttributeError, TypeError):
        raise TensorTypeError(f"a size must be made of ints, not {size}") from None
    for n in found:
        if n < 0:
            raise TensorError(f"Trying to create tensor with negative dimension {n}: {list(found)}")
    return found


def asked(size: tuple[Any, ...], options: dict[str, Any]) -> tuple[int, ...]:
    """The shape that ``f(2, 3)``, ``f((2, 3))`` or ``f(size=(2, 3))`` ask for.

    Raises:
        TensorTypeError: none of them, or an unknown option.
    """
    given = options.pop("size", None)
    if options:
        raise TensorTypeError(f"got an unexpected keyword argument '{next(iter(options))}'")
    if given is not None:
        size = (given,)
    if not size:
        raise TensorTypeError("received no size", hint="torch.zeros(2, 3), or torch.zeros(()) for no dimensions")
    return shape_of(size)


def check_tensor(name: str, x: Any) -> None:
    """Raise a TensorTypeError unless it is a tensor."""
    if not isinstance(x, Tensor):
        raise not_a_tensor(name, "input", 1, x)


# --- from data --------------------------------------------------------------------------------------


def leaves_to_numbers(data: Any) -> Any:
    """Nested sequences with tensors in them, as nested sequences of numbers."""
    if isinstance(data, Tensor):
        return data._data.tolist() if isinstance(data._data, np.ndarray) else data._data
    if isinstance(data, (list, tuple)):
        return [leaves_to_numbers(item) for item in data]
    return data


def holds_numpy(data: Any) -> bool:
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return isinstance(data, (np.ndarray, np.generic))


def array_of(data: Any, dtype: Any) -> Any:
    """A new array of anything array-like, in PyTorch's dtype for it: Python floats are of the default dtype."""
    if isinstance(data, Tensor):
        data = data._data
    if isinstance(data, Tracer):
        return data.copy() if dtype is None else data.astype(numpy_dtype(dtype))
    if isinstance(data, (np.ndarray, np.generic)):
        array = np.array(data, None if dtype is None else numpy_dtype(dtype))
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        dtypes.of(array.dtype)
        return array
    kept = holds_numpy(data)
    if isinstance(data, (list, tuple)):
        check_regular(data)
        data = leaves_to_numbers(data)
    try:
        array = np.array(data)
    except ValueError as error:
        raise TensorValueError(f"expected sequence of equal length at every dim: {error}") from None
    if array.dtype.kind not in "biufc":
        if array.dtype.kind == "O" and isinstance(data, int):
            raise TensorValueError(f"Overflow when unpacking long long: {data!r}")
        if array.dtype.kind == "U":
            if array.ndim:
                raise TensorValueError("too many dimensions 'str'")
            raise TensorTypeError("new(): invalid data type 'str'")
        raise TensorError(f"Could not infer dtype of {type(data).__name__}")
    if dtype is not None:
        with np.errstate(all="ignore"):
            return array.astype(numpy_dtype(dtype))
    if array.size == 0 and isinstance(data, list):
        return array.astype(dtypes.get_default_dtype().numpy)
    if array.dtype.kind in "fc" and not kept:
        with np.errstate(all="ignore"):
            return array.astype(dtypes.default_numpy_dtype(array.dtype))
    return array.astype(np.int64) if array.dtype == np.uint64 and not kept else array


def check_regular(data: Any, dim: int = 0) -> None:
    """Raise where rows differ in length."""
    first = data[0] if len(data) else None
    if isinstance(first, (list, tuple)):
        for row in data:
            length = len(row) if isinstance(row, (list, tuple)) else None
            if length is None:
                raise TensorTypeError(f"must be a sequence at dim {dim + 1}, got {type(row).__name__}")
            if length != len(first):
                raise TensorValueError(f"expected sequence of length {len(first)} at dim {dim + 1} (got {length})")
        for row in data:
            check_regular(row, dim + 1)


def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """A new tensor with a copy of the data: numbers, nested sequences of equal lengths, arrays, tensors.

    Python floats get the default dtype, ints int64, bools bool; arrays keep theirs.

    Raises:
        TensorValueError: rows of different lengths.
        TensorTypeError, TensorError: data of which no tensor can be made.

    >>> import srcgrad.torch as torch
    >>> torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    tensor([[1., 2.],
            [3., 4.]])
    """
    return finished(array_of(data, dtype), requires_grad, device)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of the data, which shares its memory where it is a tensor or an array of the dtype asked for."""
    if isinstance(data, Tensor):
        return data if dtype is None or data.dtype is dtypes.as_dtype(dtype) else data.to(dtype)
    if isinstance(data, np.ndarray) and (dtype is None or numpy_dtype(dtype) == data.dtype):
        return from_numpy(data)
    return tensor(data, dtype=dtype, device=device)


def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool = False
) -> Tensor:
    """`torch.asarray`: shares memory where it can, unless ``copy``."""
    found = tensor(obj, dtype=dtype) if copy else as_tensor(obj, dtype=dtype, device=device)
    if requires_grad and not found.requires_grad:
        found.requires_grad_()
    return found


def from_numpy(ndarray: Any) -> Tensor:
    """A tensor on an array's own memory: changes of one are changes of the other.

    Raises:
        TensorTypeError: no array, or of a dtype that tensors do not have.
    """
    if not isinstance(ndarray, np.ndarray):
        raise TensorTypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    dtypes.of(ndarray.dtype)
    if any(step < 0 for step in ndarray.strides):
        raise TensorValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. (You can probably work around this by making a copy of your array "
            "with array.copy().)"
        )
    return finished(ndarray, False)


def from_dlpack(ext_tensor: Any) -> Tensor:
    """A tensor on the memory of any object that speaks DLPack."""
    return from_numpy(np.from_dlpack(ext_tensor))


@method("__dlpack__")
def to_dlpack(self: Tensor, **options: Any) -> Any:
    """The tensor's memory as a DLPack capsule."""
    if self.requires_grad:
        raise TensorError("Can't export tensors that require gradient, use tensor.detach()")
    return self._data.__dlpack__(**options)


@method("__dlpack_device__")
def dlpack_device(self: Tensor) -> Any:
    """Where the memory is: the CPU."""
    return self._data.__dlpack_device__()


def scalar_tensor(s: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of no dimensions, of the default dtype unless said otherwise."""
    return finished(np.array(s, numpy_dtype(dtype)), requires_grad, device)


def typed(name: str, dtype: dtypes.dtype) -> Any:
    """``torch.FloatTensor`` and its like: a function of a sequence, or of sizes."""

    def make(*data: Any) -> Tensor:
        if len(data) == 1 and not isinstance(data[0], int):
            return tensor(data[0], dtype=dtype)
        return empty(*data, dtype=dtype) if data else tensor([], dtype=dtype)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"A tensor of {dtype}, of a sequence of numbers or of uninitialised ones of a size."
    return make


FloatTensor = typed("FloatTensor", dtypes.float32)
DoubleTensor = typed("DoubleTensor", dtypes.float64)
LongTensor = typed("LongTensor", dtypes.int64)
IntTensor = typed("IntTensor", dtypes.int32)
ByteTensor = typed("ByteTensor", dtypes.uint8)
BoolTensor = typed("BoolTensor", dtypes.bool_)


# --- of one value -----------------------------------------------------------------------------------


def zeros(*size: Any, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
          pin_memory: bool = False, requires_grad: bool = False, **options: Any) -> Tensor:  # fmt: skip
    """Zeros, of a size and dtype (the default floating one)."""
    return finished(np.zeros(asked(size, options), numpy_dtype(dtype)), requires_grad, device, out)


def ones(*size: Any, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
         pin_memory: bool = False, requires_grad: bool = False, **options: Any) -> Tensor:  # fmt: skip
    """Ones, of a size and dtype (the default floating one)."""
    return finished(np.ones(asked(size, options), numpy_dtype(dtype)), requires_grad, device, out)


def empty(*size: Any, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
          pin_memory: bool = False, requires_grad: bool = False, memory_format: Any = None,
          **options: Any) -> Tensor:  # fmt: skip
    """A tensor of a size whose elements are whatever the memory held."""
    return finished(np.empty(asked(size, options), numpy_dtype(dtype)), requires_grad, device, out)


def number_dtype(value: Any) -> np.dtype[Any]:
    """The dtype of a tensor filled with a Python number."""
    array = np.asarray(value)
    return dtypes.default_numpy_dtype(array.dtype)


def full(size: Any, fill_value: Any, *, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
         requires_grad: bool = False) -> Tensor:  # fmt: skip
    """A tensor filled with a number, whose kind gives the dtype unless that is given."""
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    kind = numpy_dtype(dtype, number_dtype(value))
    return finished(repeated(shape_of((size,)), value, kind), requires_grad, device, out)


def repeated(shape: tuple[int, ...], value: Any, kind: np.dtype[Any]) -> Any:
    """An array of one number, which its dtype must hold."""
    return np.full(shape, number_array(fitting(value, kind, fills=True), kind), kind)


def zeros_like(input: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None,
               requires_grad: bool = False, memory_format: Any = None) -> Tensor:  # fmt: skip
    """Zeros, of the shape and dtype of another tensor."""
    check_tensor("zeros_like", input)
    return finished(np.zeros(input._data.shape, numpy_dtype(dtype, input._data.dtype)), requires_grad, device)


def ones_like(input: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None,
              requires_grad: bool = False, memory_format: Any = None) -> Tensor:  # fmt: skip
    """Ones, of the shape and dtype of another tensor."""
    check_tensor("ones_like", input)
    return finished(np.ones(input._data.shape, numpy_dtype(dtype, input._data.dtype)), requires_grad, device)


def empty_like(input: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None,
               requires_grad: bool = False, memory_format: Any = None) -> Tensor:  # fmt: skip
    """A tensor of the shape and dtype of another, uninitialised."""
    check_tensor("empty_like", input)
    return finished(np.empty(input._data.shape, numpy_dtype(dtype, input._data.dtype)), requires_grad, device)


def full_like(input: Tensor, fill_value: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
              requires_grad: bool = False, memory_format: Any = None) -> Tensor:  # fmt: skip
    """A tensor of the shape and dtype of another, filled with a number."""
    check_tensor("full_like", input)
    kind = numpy_dtype(dtype, input._data.dtype)
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    return finished(repeated(input._data.shape, value, kind), requires_grad, device)


def eye(n: int, m: int | None = None, *, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
        requires_grad: bool = False) -> Tensor:  # fmt: skip
    """The matrix with ones on its diagonal."""
    for name, count in (("n", n), ("m", m)):
        if count is not None and count < 0:
            raise TensorError(f"{name} must be greater or equal to 0, got {count}")
    return finished(np.eye(n, m, dtype=numpy_dtype(dtype)), requires_grad, device, out)


# --- ranges -----------------------------------------------------------------------------------------


def plain(*numbers: Any) -> list[Any]:
    return [number.item() if isinstance(number, (Tensor, np.generic)) else number for number in numbers]


def arange(start: Any = 0, end: Any = None, step: Any = 1, *, out: Any = None, dtype: Any = None, layout: Any = None,
           device: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Numbers from ``start`` up to ``end``, which is left out: int64 if all are ints, else of the default dtype.

    Raises:
        TensorError: a step of 0, or of the wrong sign.
    """
    if end is None:
        start, end = 0, start
    start, end, step = plain(start, end, step)
    if step == 0:
        raise TensorError("step must be nonzero")
    if (end - start) * step < 0:
        raise TensorError("upper bound and larger bound inconsistent with step sign")
    whole = all(isinstance(number, int) for number in (start, end, step))
    kind = numpy_dtype(dtype, np.dtype(np.int64) if whole else None)
    if kind == np.int64 and not whole and int(step):
        start, end, step, whole = int(start), int(end), int(step), True
    count = math.ceil((end - start) / step) if not whole else max(0, -((start - end) // step))
    if kind.kind in "iu" and int(step):
        start, step = int(start), int(step)
    values = start + np.arange(count) * step
    return finished(values.astype(kind), requires_grad, device, out)


def evenly_spaced(start: Any, end: Any, steps: int, kind: np.dtype[Any]) -> Any:
    """Numbers from ``start`` to ``end``, which are first made integers where the result is of integers."""
    if kind.kind in "iu":
        start, end = int(start), int(end)
    return np.linspace(start, end, steps)


def linspace(start: Any, end: Any, steps: int, *, out: Any = None, dtype: Any = None, layout: Any = None,
             device: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """``steps`` numbers evenly spaced from ``start`` to ``end``, both among them.

    Raises:
        TensorError: a negative number of steps.
    """
    start, end = plain(start, end)
    if steps < 0:
        raise TensorError("number of steps must be non-negative")
    default = np.dtype(np.complex64) if isinstance(start, complex) or isinstance(end, complex) else None
    kind = numpy_dtype(dtype, default)
    values = evenly_spaced(start, end, steps, kind)
    if kind.kind in "iu":
        values = np.trunc(values)
    return finished(values.astype(kind), requires_grad, device, out)


def logspace(start: Any, end: Any, steps: int, base: float = 10.0, *, out: Any = None, dtype: Any = None,
             layout: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """``base`` to the powers of `linspace`.

    Raises:
        TensorError: a negative number of steps.
    """
    start, end = plain(start, end)
    if steps < 0:
        raise TensorError("number of steps must be non-negative")
    kind = numpy_dtype(dtype)
    return finished(np.power(base, evenly_spaced(start, end, steps, kind)).astype(kind), requires_grad, device, out)


# --- of a tensor's dtype ----------------------------------------------------------------------------


@method("new_tensor")
def new_tensor(
    self: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A tensor of data in this tensor's dtype."""
    return tensor(data, dtype=self.dtype if dtype is None else dtype, device=device, requires_grad=requires_grad)


@method("new_zeros")
def new_zeros(
    self: Tensor, *sizes: Any, size: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Zeros in this tensor's dtype."""
    sizes = sizes if size is None else (size,)
    return zeros(*sizes, dtype=self.dtype if dtype is None else dtype, device=device, requires_grad=requires_grad)


@method("new_ones")
def new_ones(
    self: Tensor, *sizes: Any, size: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Ones in this tensor's dtype."""
    sizes = sizes if size is None else (size,)
    return ones(*sizes, dtype=self.dtype if dtype is None else dtype, device=device, requires_grad=requires_grad)


@method("new_empty")
def new_empty(
    self: Tensor, *sizes: Any, size: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """An uninitialised tensor in this tensor's dtype."""
    sizes = sizes if size is None else (size,)
    return empty(*sizes, dtype=self.dtype if dtype is None else dtype, device=device, requires_grad=requires_grad)


@method("new_full")
def new_full(
    self: Tensor, size: Sequence[int], fill_value: Any, *, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A tensor in this tensor's dtype, filled with a number."""
    kind = self.dtype if dtype is None else dtype
    return full(size, fill_value, dtype=kind, device=device, requires_grad=requires_grad)
