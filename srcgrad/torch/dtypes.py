"""PyTorch's dtypes over NumPy's, its promotion rules, and what a tensor says of itself: `Size`, `device`, `layout`.

A `dtype` is one object per kind of element, named as in PyTorch; `of` finds it from NumPy's and its attribute `numpy`
leads back. `result_dtype` is the promotion that the facade applies before every operation; it speaks NumPy's dtypes,
since it runs once per operation.

The names that Python has built in carry an underscore here (`bool_`, `int_`, `float_`): the package exports them bare.
"""

from __future__ import annotations

import math
import operator
import threading
from collections.abc import Iterable
from contextlib import ContextDecorator
from typing import Any, Final, SupportsIndex

import numpy as np

from srcgrad.errors import DTypeError, NoAttributeError
from srcgrad.ir.errors import nearest_hint
from srcgrad.torch.errors import TensorError, TensorTypeError

NumPyDType = np.dtype[Any]

# The kinds of operand of a promotion, strongest first.
TENSOR: Final = 2  # a tensor with dimensions
SCALAR_TENSOR: Final = 1  # a tensor of shape ()
NUMBER: Final = 0  # a Python number

_BOOL, _INTEGER, _FLOATING, _COMPLEX = 0, 1, 2, 3
_CATEGORIES = {"b": _BOOL, "u": _INTEGER, "i": _INTEGER, "f": _FLOATING, "c": _COMPLEX}


class dtype:
    """The kind of a tensor's elements: `torch.float32`. There is one object per kind, so `is` compares them.

    >>> float32
    torch.float32
    >>> float32.itemsize, float32.is_floating_point, float32.to_complex(), float32.numpy
    (4, True, torch.complex64, dtype('float32'))
    """

    __slots__ = ("is_complex", "is_floating_point", "is_signed", "itemsize", "name", "numpy")

    name: str
    numpy: NumPyDType
    is_floating_point: bool
    is_complex: bool
    is_signed: bool
    itemsize: int

    def __new__(cls, *args: object, **kwargs: object) -> dtype:
        """Refuses: the dtypes that exist are all there are."""
        raise DTypeError("cannot create torch.dtype instances", hint="take one that exists: torch.float32")

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple[object, ...]:
        return named, (self.name,)

    def to_complex(self) -> dtype:
        """The complex dtype of this precision; complex64 for float16, since NumPy has no complex32."""
        if not (self.is_floating_point or self.is_complex):
            raise TensorError(f"{self} has no complex dtype", hint="convert to a floating-point dtype first")
        return of(np.promote_types(self.numpy, np.complex64))

    def to_real(self) -> dtype:
        """The dtype of the real part: float32 for complex64, itself for real dtypes."""
        return of(np.dtype(f"f{self.itemsize // 2}")) if self.is_complex else self


def _make(name: str) -> dtype:
    made = object.__new__(dtype)
    made.name = name
    made.numpy = np.dtype(name)
    made.is_floating_point = made.numpy.kind == "f"
    made.is_complex = made.numpy.kind == "c"
    made.is_signed = made.numpy.kind in "ifc"
    made.itemsize = made.numpy.itemsize
    return made


float16 = half = _make("float16")
float32 = float_ = _make("float32")
float64 = double = _make("float64")
complex64 = cfloat = _make("complex64")
complex128 = cdouble = _make("complex128")
uint8 = _make("uint8")
uint16 = _make("uint16")
uint32 = _make("uint32")
uint64 = _make("uint64")
int8 = _make("int8")
int16 = short = _make("int16")
int32 = int_ = _make("int32")
int64 = long = _make("int64")
bool_ = _make("bool")

DTYPES: Final = (
    float16, float32, float64, complex64, complex128, uint8, uint16, uint32, uint64, int8, int16, int32, int64, bool_
)  # fmt: skip

_NAMED: dict[str, dtype] = {each.name: each for each in DTYPES} | {
    "half": half, "float": float_, "double": double, "cfloat": cfloat, "cdouble": cdouble,
    "short": short, "int": int_, "long": long,
}  # fmt: skip
_OF: dict[NumPyDType, dtype] = {each.numpy: each for each in DTYPES}
_PYTHON_TYPES: dict[object, dtype] = {bool: bool_, int: int64, float: float64, complex: complex128}

# PyTorch's dtypes whose elements NumPy has no type for.
_LACKING: dict[str, str] = {
    "bfloat16": "torch.float32 holds every value of it",
    "complex32": "use torch.complex64",
    "chalf": "use torch.complex64",
    "float8_e4m3fn": "use torch.float16",
    "float8_e5m2": "use torch.float16",
    "float8_e4m3fnuz": "use torch.float16",
    "float8_e5m2fnuz": "use torch.float16",
    "quint8": "use torch.uint8",
    "qint8": "use torch.int8",
    "qint32": "use torch.int32",
}


def lacking(name: str) -> NoAttributeError | None:
    """The error for a dtype that PyTorch has and NumPy has not; None for every other name.

    >>> print(lacking("bfloat16").message)
    NumPy has no bfloat16, and tensors here are NumPy arrays
    """
    if name not in _LACKING:
        return None
    return NoAttributeError(f"NumPy has no {name}, and tensors here are NumPy arrays", hint=_LACKING[name])


def named(name: str) -> dtype:
    """The dtype of a name or an alias: `named("long")` is `int64`."""
    found = _NAMED.get(name)
    if found is None:
        if name in _LACKING:
            raise DTypeError(f"NumPy has no {name}, and tensors here are NumPy arrays", hint=_LACKING[name])
        raise DTypeError(f"no dtype is named {name!r}", hint=nearest_hint(name, _NAMED))
    return found


def of(numpy_dtype: NumPyDType) -> dtype:
    """The dtype of arrays of `numpy_dtype`; an error for what PyTorch lacks (longdouble, dates, text, objects)."""
    found = _OF.get(numpy_dtype)
    return _explain_dtype(np.dtype(numpy_dtype)) if found is None else found


def _explain_dtype(numpy_dtype: NumPyDType) -> dtype:
    if numpy_dtype in _OF:  # given as something that only converts to a dtype: the class np.float32
        return _OF[numpy_dtype]
    if numpy_dtype.name in _LACKING:
        return named(numpy_dtype.name)
    if not numpy_dtype.isnative and numpy_dtype.newbyteorder("=") in _OF:
        raise DTypeError(
            f"a tensor cannot have the byte order of {numpy_dtype.str}",
            hint=f"pass x.astype(np.{numpy_dtype.name})",
        )
    if numpy_dtype.kind in "fc":
        hint = "pass x.astype(np.float64)" if numpy_dtype.kind == "f" else "pass x.astype(np.complex128)"
    else:
        hint = f"the dtypes are {', '.join(each.name for each in DTYPES)}"
    raise DTypeError(f"no tensor has NumPy's dtype {numpy_dtype}", hint=hint)


def as_dtype(wanted: object) -> dtype:
    """What a user gave as `dtype=`: a `dtype`, or Python's bool, int, float or complex (int64, float64, complex128)."""
    if isinstance(wanted, dtype):
        return wanted
    found = _PYTHON_TYPES.get(wanted) if isinstance(wanted, type) else None
    if found is not None:
        return found
    if isinstance(wanted, np.dtype) or (isinstance(wanted, type) and issubclass(wanted, np.generic)):
        name = np.dtype(wanted).name
        hint = f"write torch.{name}" if name in _NAMED else None
        raise DTypeError(f"dtype must be a torch.dtype, not NumPy's {name}", hint=hint)
    hint = f"write torch.{wanted}" if isinstance(wanted, str) and wanted in _NAMED else "such as torch.float32"
    raise DTypeError(f"dtype must be a torch.dtype, not {type(wanted).__name__} {wanted!r}", hint=hint)


class _Defaults:
    """The default dtypes, of all threads as in PyTorch."""

    floating: NumPyDType = float32.numpy
    complex: NumPyDType = complex64.numpy


def get_default_dtype() -> dtype:
    """The dtype of tensors made of Python floats; `float32` unless `set_default_dtype` changed it."""
    return _OF[_Defaults.floating]


def set_default_dtype(d: dtype) -> None:
    """Makes `d`, a floating-point dtype, that of tensors made of Python floats, and its complex one that of complex."""
    if not (isinstance(d, dtype) and d.is_floating_point):
        raise DTypeError(
            f"only floating-point types are supported as the default type, not {d}",
            hint="torch.float16, torch.float32 or torch.float64",
        )
    _Defaults.floating = d.numpy
    _Defaults.complex = d.to_complex().numpy
    _RESULTS.clear()


def default_numpy_dtype(of_number: NumPyDType) -> NumPyDType:
    """The dtype that a Python number has as a tensor, from the one NumPy gives it: the default one for float64."""
    if of_number.kind == "f":
        return _Defaults.floating
    return _Defaults.complex if of_number.kind == "c" else of_number


def is_floating(numpy_dtype: NumPyDType) -> bool:
    """Whether it is a real floating-point dtype."""
    return numpy_dtype.kind == "f"


def is_complex(numpy_dtype: NumPyDType) -> bool:
    """Whether it is a complex dtype."""
    return numpy_dtype.kind == "c"


def is_inexact(numpy_dtype: NumPyDType) -> bool:
    """Whether it is floating or complex: only such tensors can require a gradient."""
    return numpy_dtype.kind in "fc"


def is_integral(numpy_dtype: NumPyDType, *, with_bool: bool = False) -> bool:
    """Whether it is an integer dtype; bool counts where asked for."""
    return numpy_dtype.kind in ("iub" if with_bool else "iu")


# --- promotion --------------------------------------------------------------------------------------------------------

_RESULTS: dict[tuple[tuple[NumPyDType, int], ...], NumPyDType] = {}
_REMEMBERED_LENGTH = 4  # longer ones (`cat` of many) are shortened first, so that the memory stays bounded
_NO_PROMOTION = {uint16.numpy, uint32.numpy, uint64.numpy}


def _promote(a: NumPyDType, b: NumPyDType) -> NumPyDType:
    """The smallest dtype of the higher category that holds both, as PyTorch has it: int64 and float16 give float16."""
    if a == b:
        return a
    if _FLOATING not in (_CATEGORIES[a.kind], _CATEGORIES[b.kind]) and (a in _NO_PROMOTION or b in _NO_PROMOTION):
        raise TensorError(
            f"there is no promotion for uint16, uint32 and uint64: {a} with {b}", hint="convert one with .to(dtype)"
        )
    return _hold_both(a, b)


def _hold_both(a: NumPyDType, b: NumPyDType) -> NumPyDType:
    """The precision of integers never counts beside floating or complex numbers."""
    category_a, category_b = _CATEGORIES[a.kind], _CATEGORIES[b.kind]
    if max(category_a, category_b) >= _FLOATING > min(category_a, category_b):
        return a if category_a > category_b else b
    return np.promote_types(a, b)


def _combine(higher: NumPyDType | None, lower: NumPyDType | None) -> NumPyDType | None:
    """The result of two priorities: the lower one counts only where its category is higher."""
    if higher is None or lower is None:
        return lower if higher is None else higher
    category, other = _CATEGORIES[higher.kind], _CATEGORIES[lower.kind]
    if category >= other:
        return higher
    if category == _FLOATING:  # with complex: of the precision of `higher`
        return np.promote_types(higher, np.complex64)
    return lower if category == _INTEGER else _promote(higher, lower)


def result_dtype(operands: tuple[tuple[NumPyDType, int], ...]) -> NumPyDType:
    """The dtype of an operation on operands, each a NumPy dtype and its kind: TENSOR, SCALAR_TENSOR or NUMBER.

    Categories are bool < integer < floating < complex. Within a kind the usual promotion holds; a kind of lower
    priority counts only where its category is higher. Python floats and complex numbers have the default dtype.

    >>> result_dtype(((int32.numpy, TENSOR), (float64.numpy, NUMBER)))
    dtype('float32')
    >>> result_dtype(((float16.numpy, TENSOR), (float64.numpy, SCALAR_TENSOR)))
    dtype('float16')
    """
    found = _RESULTS.get(operands)
    if found is not None:
        return found
    if not operands:
        raise TensorTypeError("a promotion needs an operand", hint="pass a tensor or a number")
    distinct = tuple(dict.fromkeys(operands))
    by_kind: list[NumPyDType | None] = [None, None, None]
    for numpy_dtype, kind in distinct:
        current = default_numpy_dtype(numpy_dtype) if kind == NUMBER else numpy_dtype
        before = by_kind[kind]
        by_kind[kind] = current if before is None else _promote(before, current)
    result = _combine(by_kind[TENSOR], _combine(by_kind[SCALAR_TENSOR], by_kind[NUMBER]))
    assert result is not None
    if len(operands) <= _REMEMBERED_LENGTH:
        _RESULTS[operands] = result
    return result


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The dtype that holds values of both: `promote_types(int32, float32)` is `float32`."""
    for position, given in enumerate((type1, type2), 1):
        if not isinstance(given, dtype):
            raise DTypeError(f"type{position} must be a torch.dtype, not {type(given).__name__}")
    return _OF[_promote(type1.numpy, type2.numpy)]


def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether an in-place operation may store `from_` in `to`: no category may be lost, precision may."""
    if not (isinstance(from_, dtype) and isinstance(to, dtype)):
        raise DTypeError("can_cast takes two torch.dtypes", hint="can_cast(torch.float32, torch.int64)")
    return can_store(from_.numpy, to.numpy)


def can_store(source: NumPyDType, target: NumPyDType) -> bool:
    """`can_cast` of NumPy's dtypes."""
    return _CATEGORIES[source.kind] <= _CATEGORIES[target.kind]


# --- limits -----------------------------------------------------------------------------------------------------------


class finfo:
    """The limits of a floating-point dtype, or of a complex one's parts; of the default dtype if none is given.

    >>> finfo(float32)
    finfo(resolution=1e-06, min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07, smallest_normal=1.17549e-38, \
tiny=1.17549e-38, dtype=float32)
    """

    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")

    def __init__(self, type: dtype | None = None) -> None:
        given = get_default_dtype() if type is None else type
        if not (isinstance(given, dtype) and (given.is_floating_point or given.is_complex)):
            raise DTypeError(
                f"torch.finfo() requires a floating point input type, not {given!r}",
                hint="use torch.iinfo for integers",
            )
        real = given.to_real()
        limits = np.finfo(real.numpy)
        self.dtype = real.name
        self.bits = 8 * real.itemsize
        self.eps = float(limits.eps)
        self.max = float(limits.max)
        self.min = float(limits.min)
        self.smallest_normal = self.tiny = float(limits.smallest_normal)
        self.resolution = float(f"1e-{limits.precision}")

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((finfo, self.dtype))


class iinfo:
    """The limits of an integer dtype.

    >>> iinfo(int16)
    iinfo(min=-32768, max=32767, dtype=int16)
    """

    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, type: dtype) -> None:
        if not (isinstance(type, dtype) and type.numpy.kind in "iu"):
            hint = None if type is bool_ else "use torch.finfo for floating-point dtypes"
            raise DTypeError(f"torch.iinfo() requires an integer input type, not {type!r}", hint=hint)
        limits = np.iinfo(type.numpy)
        self.dtype = type.name
        self.bits = limits.bits
        self.max = int(limits.max)
        self.min = int(limits.min)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((iinfo, self.dtype))


# --- sizes ------------------------------------------------------------------------------------------------------------


class Size(tuple[int, ...]):
    """The shape of a tensor: a tuple of ints.

    >>> Size((2, 3))[1:] + (4,)
    torch.Size([3, 4])
    >>> Size((2, 3)).numel()
    6
    """

    __slots__ = ()

    def __new__(cls, iterable: Iterable[SupportsIndex] = ()) -> Size:
        """The size of these lengths; what is no integer is an error."""
        lengths = []
        for position, length in enumerate(iterable):
            try:
                lengths.append(operator.index(length))
            except TypeError:
                raise TensorTypeError(
                    f"torch.Size() takes an iterable of 'int' (item {position} is {type(length).__name__!r})"
                ) from None
        return tuple.__new__(cls, lengths)

    @staticmethod
    def of_shape(shape: tuple[int, ...]) -> Size:
        """The size of an array's shape, unchecked."""
        return tuple.__new__(Size, shape)

    def numel(self) -> int:
        """How many elements a tensor of this size has."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    def __getitem__(self, key: Any) -> Any:
        found = tuple.__getitem__(self, key)
        return Size.of_shape(found) if isinstance(key, slice) else found

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, tuple):
            raise TensorTypeError(
                f"can only concatenate tuple (not {type(other).__name__}) to torch.Size", hint="pass tuple(x)"
            )
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: Any) -> Any:
        return Size(other).__add__(self) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, count: SupportsIndex) -> Size:
        return Size.of_shape(tuple.__mul__(self, count))

    __rmul__ = __mul__


# --- devices ----------------------------------------------------------------------------------------------------------

_DEVICE_TYPES = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy",
    "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
)  # fmt: skip


class _DeviceStack(threading.local):
    """The devices of the `with` blocks a thread is in, innermost last, below them that of `set_default_device`."""

    def __init__(self) -> None:
        self.entered: list[device] = [device("cpu")]


class device(ContextDecorator):
    """Where a tensor lies. Every one can be named, but tensors are made on the CPU alone.

    As a context (or a decorator) it is where tensors are made that say nothing else.

    >>> device("cpu"), device("cuda:1"), str(device("cpu", 0))
    (device(type='cpu'), device(type='cuda', index=1), 'cpu:0')
    """

    __slots__ = ("index", "type")

    type: str
    index: int | None

    def __init__(self, type: str | int | device | None = None, index: int | None = None) -> None:
        if isinstance(type, device):
            self.type, self.index = type.type, type.index
            return
        if isinstance(type, int) and not isinstance(type, bool) and index is None:
            type = f"cuda:{type}"
        if not isinstance(type, str):
            raise TensorTypeError(f"a device is named by text, not by {type!r}", hint='torch.device("cpu")')
        name, colon, number = type.partition(":")
        if name not in _DEVICE_TYPES:
            raise TensorError(
                f"no device is called {type!r}: expected one of {', '.join(_DEVICE_TYPES)}",
                hint=nearest_hint(name, _DEVICE_TYPES),
            )
        if colon:
            if index is not None:
                raise TensorError(f"the index is given twice: {type!r} and {index}")
            if not (number.isascii() and number.isdigit()) or (number[0] == "0" and number != "0"):
                raise TensorError(f"Invalid device string: {type!r}", hint='write it as "cuda:0"')
            index = int(number)
        if index is not None:
            if not isinstance(index, int):
                raise TensorTypeError(f"the index of a device must be an int, not {index!r}")
            if index < 0:
                raise TensorError(f"Device index must not be negative, and {index} is")
        self.type, self.index = name, index

    def __repr__(self) -> str:
        return (
            f"device(type={self.type!r})" if self.index is None else f"device(type={self.type!r}, index={self.index})"
        )

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((device, self.type, self.index))

    def __reduce__(self) -> tuple[object, ...]:
        return device, (self.type, self.index)

    def __enter__(self) -> device:
        _DEVICES.entered.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _DEVICES.entered.pop()


CPU: Final = device("cpu")
_DEVICES = _DeviceStack()


def get_default_device() -> device:
    """Where tensors are made that say nothing of their device."""
    return _DEVICES.entered[-1]


def set_default_device(device_: str | int | device | None) -> None:
    """Makes tensors that say nothing of their device be made there, outside of `with` blocks; None is the CPU."""
    _DEVICES.entered[0] = CPU if device_ is None else device(device_)


def usable_device(wanted: str | int | device | None = None) -> device:
    """The device to make a tensor on, the default one for None; an error for each that is not the CPU."""
    found = _DEVICES.entered[-1] if wanted is None else wanted if isinstance(wanted, device) else device(wanted)
    if found.type == "cpu":
        return found
    cuda = 'device = "cuda" if torch.cuda.is_available() else "cpu"'
    raise TensorError(
        f"tensors here are NumPy arrays, which lie on the CPU: none can be made on {str(found)!r}",
        hint=cuda if found.type == "cuda" else 'use torch.device("cpu")',
    )


# --- layouts ----------------------------------------------------------------------------------------------------------


class _Constant:
    """A named object that compares by identity, also after pickling."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


class layout(_Constant):
    """How a tensor's elements are stored; `torch.strided` is the one there is."""


class memory_format(_Constant):
    """The order of a tensor's axes in memory."""


strided = layout("strided")
preserve_format = memory_format("preserve_format")
contiguous_format = memory_format("contiguous_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
