"""Types of SSA values: a dtype and a shape whose dimensions are ints or named, bounded sizes; tapes of such values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from srcgrad.ir.errors import DTypeError, ShapeError

DType = np.dtype[Any]


class Dim:
    """A size known only at run time: a name, and the largest value it can take.

    Two dimensions are the same size exactly when their names are equal.
    """

    __slots__ = ("bound", "name")
    name: str
    bound: int

    def __init__(self, name: str, bound: int) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "bound", bound)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Dim is immutable: cannot set {name!r}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dim) and other.name == self.name and other.bound == self.bound

    def __hash__(self) -> int:
        return hash((self.name, self.bound))

    def __repr__(self) -> str:
        return f"{self.name}<={self.bound}"


Size = int | Dim
Shape = tuple[Size, ...]

DTYPE_NAMES: Final[dict[str, str]] = {
    "bool": "bool",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "complex64": "c64",
    "complex128": "c128",
    np.dtype(np.longdouble).name: "flong",
    np.dtype(np.clongdouble).name: "clong",
}
if np.dtype(np.longdouble) == np.dtype(np.float64):  # platforms whose long double is a double
    DTYPE_NAMES.update({"float64": "f64", "complex128": "c128"})
DTYPES: Final[dict[str, DType]] = {short: np.dtype(name) for name, short in DTYPE_NAMES.items()}


def dtype_name(dtype: DType) -> str:
    """The short name of a dtype in IR text: ``f64``, ``i32``, ``bool``, …"""
    name = DTYPE_NAMES.get(dtype.name)
    if name is None:
        raise DTypeError(
            f"srcgrad has no type for dtype {dtype}",
            hint="use booleans, integers, floats (float16 to longdouble) or complex numbers",
        )
    return name


MOST_SHARED: Final = 4096
"""How many types are shared before the table starts anew."""
_TYPES: Final[dict[tuple[DType, Shape], ArrayType]] = {}


class ArrayType:
    """The type of an array value: ``f64[3,2]``, ``bool[]``, ``i64[n<=10]``."""

    __slots__ = ("_hash", "dtype", "shape")
    dtype: DType
    shape: Shape

    def __new__(cls, dtype: DType, shape: Iterable[Size] = ()) -> ArrayType:
        """Types in use are shared, so that comparing them is mostly comparing identities.

        Their dtypes are NumPy's own objects: entry points compare addresses, and ``newbyteorder`` makes equal copies.
        """
        key = (dtype, tuple(shape))
        found = _TYPES.get(key)
        if found is None:
            found = object.__new__(cls)
            own = np.dtype(dtype.type)
            object.__setattr__(found, "dtype", own if own == dtype else dtype)
            object.__setattr__(found, "shape", key[1])
            object.__setattr__(found, "_hash", hash(key))
            if len(_TYPES) >= MOST_SHARED:
                _TYPES.clear()
            _TYPES[key] = found
        return found

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"ArrayType is immutable: cannot set {name!r}")

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def static_shape(self) -> tuple[int, ...]:
        """The shape as ints.

        Raises:
            ShapeError: a dimension is known only at run time.
        """
        shape = self.shape
        for size in shape:
            if isinstance(size, Dim):
                raise ShapeError(f"the size {size} of {self} is known only at run time")
        return shape  # type: ignore[return-value]

    @property
    def size(self) -> int:
        """The number of elements, or its bound."""
        total = 1
        for size in self.shape:
            total *= size.bound if isinstance(size, Dim) else size
        return total

    @property
    def differentiable(self) -> bool:
        return self.dtype.kind in "fc"

    def with_shape(self, shape: Iterable[Size]) -> ArrayType:
        return ArrayType(self.dtype, shape)

    def with_dtype(self, dtype: DType) -> ArrayType:
        return ArrayType(dtype, self.shape)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, ArrayType)
            and not isinstance(other, TapeType)
            and self.dtype == other.dtype
            and self.shape == other.shape
        )

    def __hash__(self) -> int:
        return self._hash  # type: ignore[no-any-return, attr-defined]

    def __repr__(self) -> str:
        return f"{dtype_name(self.dtype)}[{','.join(map(str, self.shape))}]"

    def __reduce__(self) -> tuple[Any, ...]:
        return (ArrayType, (self.dtype, self.shape))


class TapeType(ArrayType):
    """The type of a tape, ``tape<f64[3]>``: a sequence of values of one type, as many as a loop has had trips.

    ``element`` is an array or a tape. ``dtype`` and ``shape`` are those of the arrays in it, and so are those that
    `with_dtype` and `with_shape` change.
    """

    __slots__ = ("element",)
    element: ArrayType

    def __new__(cls, element: ArrayType) -> TapeType:
        found = object.__new__(cls)
        object.__setattr__(found, "dtype", element.dtype)
        object.__setattr__(found, "shape", element.shape)
        object.__setattr__(found, "element", element)
        object.__setattr__(found, "_hash", hash(("tape", element)))
        return found

    def with_shape(self, shape: Iterable[Size]) -> TapeType:
        return TapeType(self.element.with_shape(shape))

    def with_dtype(self, dtype: DType) -> TapeType:
        return TapeType(self.element.with_dtype(dtype))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, TapeType) and self.element == other.element)

    def __hash__(self) -> int:
        return self._hash  # type: ignore[no-any-return, attr-defined]

    def __repr__(self) -> str:
        return f"tape<{self.element}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (TapeType, (self.element,))


def stacked(type: ArrayType, trips: int | None) -> ArrayType:
    """The type of a column of a loop: an array with a leading axis where the trip count is known, or else a tape."""
    if trips is None or isinstance(type, TapeType):
        return TapeType(type)
    return type.with_shape((trips, *type.shape))


def element_type(column: ArrayType, trips: int | None) -> ArrayType:
    """The type of one element of a column.

    Raises:
        ShapeError: it is neither a tape nor, where the trip count is known, an array of so many elements.
    """
    if isinstance(column, TapeType):
        return column.element
    if trips is None or not column.shape or column.shape[0] != trips:
        wanted = "a tape" if trips is None else f"a tape or an array of {trips}"
        raise ShapeError(f"a column of this loop is {wanted}, not {column}")
    return column.with_shape(column.shape[1:])


BOOL: Final = np.dtype(np.bool_)
INT64: Final = np.dtype(np.int64)
FLOAT64: Final = np.dtype(np.float64)


def real_dtype(dtype: DType) -> DType:
    """The dtype of the real part: complex128 -> float64; others are returned as they are."""
    return np.empty(0, dtype).real.dtype if dtype.kind == "c" else dtype


def complex_dtype(dtype: DType) -> DType:
    """The complex dtype whose parts have the given float dtype."""
    return np.result_type(dtype, np.complex64)
