"""Conversion of dtypes, copies, values written into tensors, complex numbers and their parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcgrad.torch import dtypes
from srcgrad.torch.dispatch import RECAST, apply, apply_inplace, apply_view, named
from srcgrad.torch.errors import TensorError, TensorTypeError
from srcgrad.torch.operation import Op
from srcgrad.torch.ops.define import fitting, known_operand, method, not_a_tensor, number, renamed, store
from srcgrad.torch.tensor import Tensor, wrapped

__all__ = ["clone", "complex", "conj", "fill", "fill_", "imag", "polar", "real", "resolve_conj", "resolve_neg",
           "view_as_complex", "view_as_real", "zero_"]  # fmt: skip

# --- dtypes -------------------------------------------------------------------------------------------


def converted(x: Any, dtype: np.dtype[Any]) -> Any:
    """In another dtype: of complex numbers the real part; what is not 0 is True."""
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        return x.real.astype(dtype)
    return x.astype(dtype)


TO_COPY = Op("to", "ToCopyBackward0", converted)
CLONE = Op("clone", "CloneBackward0", lambda x, order: x.copy(order), quiet=True)


def as_dtype(self: Tensor, dtype: np.dtype[Any], copy: bool = False) -> Tensor:
    """The tensor itself if it has the dtype already and no copy is asked for."""
    if self._data.dtype == dtype and not copy:
        return self
    return apply(TO_COPY, (self,), (dtype,))  # type: ignore[no-any-return]


@method("to")
def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor in another dtype: ``to(dtype)``, ``to(device, dtype)``, ``to(other)``; itself if nothing changes.

    ``copy=True`` makes a new tensor in any case; ``non_blocking`` and ``memory_format`` change nothing here.
    """
    dtype, device, copy = kwargs.pop("dtype", None), kwargs.pop("device", None), kwargs.pop("copy", False)
    other = kwargs.pop("other", None)
    for option in ("non_blocking", "memory_format"):
        kwargs.pop(option, None)
    if kwargs:
        raise TensorTypeError(f"to() got an unexpected keyword argument '{next(iter(kwargs))}'")
    rest = list(args)
    if rest and isinstance(rest[0], Tensor):
        other = rest.pop(0)
    elif rest and (rest[0] is None or isinstance(rest[0], (str, dtypes.device))):
        device = rest.pop(0)
    if rest and other is None and dtype is None and not isinstance(rest[0], bool):
        dtype = rest.pop(0)
    if len(rest) > 1:
        copy = rest[1]
    if device is not None:
        dtypes.usable_device(device)
    if other is not None:
        return as_dtype(self, other._data.dtype, copy)
    return as_dtype(self, self._data.dtype if dtype is None else dtypes.as_dtype(dtype).numpy, copy)


def conversion(name: str, dtype: dtypes.dtype) -> None:
    def call(self: Tensor, memory_format: Any = None) -> Tensor:
        return as_dtype(self, dtype.numpy)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"The tensor in {dtype}; itself if it is."
    setattr(Tensor, name, call)


for _name, _dtype in {
    "float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16, "cfloat": dtypes.complex64,
    "cdouble": dtypes.complex128, "long": dtypes.int64, "int": dtypes.int32, "short": dtypes.int16,
    "char": dtypes.int8, "byte": dtypes.uint8, "bool": dtypes.bool_,
}.items():  # fmt: skip
    conversion(_name, _dtype)


@method("type_as")
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor in another one's dtype."""
    return as_dtype(self, other._data.dtype)


@method("cpu")
def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor itself, which lies on the CPU."""
    return self


@method("cuda")
def cuda(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
    """An error: tensors here lie on the CPU."""
    dtypes.usable_device("cuda")
    return self


# --- copies -------------------------------------------------------------------------------------------


@method("clone")
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy; gradients flow through it."""
    if not isinstance(input, Tensor):
        raise not_a_tensor("clone", "input", 1, input)
    order = "C" if memory_format is dtypes.contiguous_format else "K"
    return apply(CLONE, (input,), (order,))  # type: ignore[no-any-return]


@method("contiguous")
def contiguous(self: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor with its elements in order in memory: itself if they are, else a copy."""
    return self if self.is_contiguous() else clone(self, memory_format=dtypes.contiguous_format)


def copied(x: Any, source: Any) -> Any:
    """The source in the shape and dtype of x, whose values are lost."""
    value = converted(source, x.dtype) if source.dtype != x.dtype else source
    return np.broadcast_to(value, x.shape).copy()


COPY = Op("copy_", "CopyBackwards", copied)


@method("copy_")
def copy_(self: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """The values of another tensor, broadcast and converted, written into this one."""
    if not isinstance(src, Tensor):
        raise not_a_tensor("copy_", "other", 1, src)
    return apply_inplace(COPY, self, (src,))


def filled(x: Any, value: Any) -> Any:
    return np.broadcast_to(value, x.shape).copy()


ZERO = Op("zero_", "ZeroBackward0", lambda x: np.zeros_like(x), quiet=True)
FILL_NUMBER = Op("fill_", "FillBackward2", filled, quiet=True, shown=1)
FILL_TENSOR = Op("fill_", "FillBackward3", filled, quiet=True)


@method("zero_")
def zero_(self: Tensor) -> Tensor:
    """Zeros, written into the tensor."""
    return apply_inplace(ZERO, self)


def fill_value(self: Tensor, value: Any) -> tuple[Op, Tensor]:
    dtype = self._data.dtype
    if isinstance(value, Tensor):
        if value._data.ndim:
            raise TensorError(
                f"fill_ only supports 0-dimension value tensor but got tensor with {value._data.ndim} dimensions."
            )
        return FILL_TENSOR, as_dtype(value, dtype)
    known = known_operand(value)
    if known is None:
        raise not_a_tensor("fill_", "value", 1, value)
    if isinstance(known, builtin_complex) and dtype.kind != "c":
        raise TensorError(f"value cannot be converted to type {named(dtype).lower()} without overflow")
    fitting(known, dtype, fills=True)
    return FILL_NUMBER, number(int(known) if dtype.kind in "iu" else known, dtype)


@method("fill_")
def fill_(input: Tensor, value: Any) -> Tensor:
    """One value, a number or a tensor without dimensions, written everywhere."""
    op, operand = fill_value(input, value)
    return apply_inplace(op, input, (operand,))


@method("fill")
def fill(input: Tensor, value: Any) -> Tensor:
    """A tensor of one value, with the shape and dtype of ``input``."""
    op, operand = fill_value(input, value)
    node = "FillBackward0" if op is FILL_NUMBER else "FillBackward1"
    return apply(renamed(op, node), (input, operand))  # type: ignore[no-any-return]


@method("__array_wrap__")
def array_wrap(self: Tensor, array: Any, context: Any = None, return_scalar: bool = False) -> Tensor:
    """What a ufunc of NumPy gives for tensors: a tensor."""
    return wrapped(np.asarray(array))


# --- complex numbers ----------------------------------------------------------------------------------

builtin_complex = complex
CONJ = Op("conj", "ConjBackward0", np.conj, quiet=True)
REAL = Op("real", "SelectBackward0", lambda x: x.real, quiet=True)
IMAG = Op("imag", "SelectBackward0", lambda x: x.imag, quiet=True)


@method("conj")
def conj(input: Tensor) -> Tensor:
    """The complex conjugate, at once; a real tensor itself."""
    return apply(CONJ, (input,)) if input._data.dtype.kind == "c" else input


@method("resolve_conj")
def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself: no conjugation waits to be done."""
    return input


@method("resolve_neg")
def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself: no negation waits to be done."""
    return input


def real(input: Tensor) -> Tensor:
    """The real part, which shares the tensor's memory; a real tensor itself."""
    return apply_view(REAL, input) if input._data.dtype.kind == "c" else input


def imag(input: Tensor) -> Tensor:
    """The imaginary part, which shares the tensor's memory.

    Raises:
        TensorError: the tensor is real.
    """
    if input._data.dtype.kind != "c":
        raise TensorError("imag is not implemented for tensors with non-complex dtypes.")
    return apply_view(IMAG, input)  # type: ignore[no-any-return]


def set_part(part: Any) -> Any:
    def write(self: Tensor, value: Any) -> None:
        target = part(self)
        if isinstance(value, Tensor):
            copy_(target, value)
        else:
            fill_(target, value)

    return write


Tensor.real = property(real, set_part(real))  # type: ignore[attr-defined]
Tensor.imag = property(imag, set_part(imag))  # type: ignore[attr-defined]


def pairs_of(x: Any) -> Any:
    """Real and imaginary parts along a new last axis; a view of an array."""
    if type(x) is np.ndarray:
        return x[..., None].view(x.real.dtype)
    return np.stack([x.real, x.imag], -1)


def from_pairs(x: Any) -> Any:
    """Complex numbers of the pairs along the last axis; a view of an array whose last axis is dense."""
    if type(x) is np.ndarray:
        dtype = np.result_type(x.dtype, np.complex64)
        if x.strides[-1] == x.itemsize:
            return x.view(dtype)[..., 0]
        return x[..., 0] + 1j * x[..., 1]
    return of_parts(x[..., 0], x[..., 1])


VIEW_AS_REAL = Op("view_as_real", "ViewAsRealBackward0", pairs_of, quiet=True)
VIEW_AS_COMPLEX = Op("view_as_complex", "ViewAsComplexBackward0", from_pairs, quiet=True)


def from_new_pairs(part: Any, new: Any) -> Any:
    """Complex numbers of which these are the pairs."""
    found = np.zeros_like(part)
    found.real[...] = new[..., 0]
    found.imag[...] = new[..., 1]
    return found


RECAST[VIEW_AS_REAL] = from_new_pairs
RECAST[VIEW_AS_COMPLEX] = lambda part, new: np.stack([new.real, new.imag], -1)


@method("view_as_real")
def view_as_real(input: Tensor) -> Tensor:
    """Real and imaginary parts along a new last dimension of length 2, in the same memory."""
    if input._data.dtype.kind != "c":
        raise TensorError("view_as_real is only supported for complex tensors")
    return apply_view(VIEW_AS_REAL, input)  # type: ignore[no-any-return]


@method("view_as_complex")
def view_as_complex(input: Tensor) -> Tensor:
    """Complex numbers of the pairs along the last dimension, in the same memory."""
    data = input._data
    if data.dtype.kind != "f" or data.dtype == np.float16:
        raise TensorError(
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: "
            f"{named(data.dtype)}"
        )
    if not data.ndim:
        raise TensorError("Input tensor must have one or more dimensions")
    if data.shape[-1] != 2:
        raise TensorError("Tensor must have a last dimension of size 2")
    return apply_view(VIEW_AS_COMPLEX, input)  # type: ignore[no-any-return]


def of_parts(x: Any, y: Any) -> Any:
    """x + i y without arithmetic on what may be infinite."""
    dtype = np.result_type(x.dtype, np.complex64)
    if type(x) is not np.ndarray or type(y) is not np.ndarray:
        return x + y * dtype.type(1j)
    found = np.empty(np.broadcast_shapes(x.shape, y.shape), dtype)
    found.real, found.imag = x, y
    return found


def of_polar(size: Any, angle: Any) -> Any:
    return of_parts(size * np.cos(angle), size * np.sin(angle))


COMPLEX = Op("complex", "ComplexBackward0", of_parts, quiet=True)
POLAR = Op("polar", "PolarBackward0", of_polar)


def real_pair(one: Tensor, other: Tensor) -> None:
    a, b = one._data.dtype, other._data.dtype
    if a.kind != "f" or b.kind != "f":
        raise TensorError(f"Expected both inputs to be Half, Float or Double tensors but got {named(a)} and {named(b)}")
    if a != b:
        raise TensorError(
            f"Expected object of scalar type {named(a)} but got scalar type {named(b)} for second argument"
        )


def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex numbers of their real and imaginary parts, which are of one dtype."""
    real_pair(real, imag)
    return store(out, apply(COMPLEX, (real, imag)), "complex")  # type: ignore[no-any-return]


def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex numbers of their absolute values and angles, which are of one dtype."""
    real_pair(abs, angle)
    return store(out, apply(POLAR, (abs, angle)), "polar")  # type: ignore[no-any-return]
