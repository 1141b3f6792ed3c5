"""Constants and names as Python text."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from srcgrad.ir.core import Literal
from srcgrad.ir.types import DType

_NOT_IN_NAMES: Final = re.compile(r"\W+")
_NOT_FINITE: Final = re.compile(r"\b(inf|nan)\b")
RESERVED: Final = frozenset([*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "np", "scipy", "sites", "saved"])
"""Names that a generated program does not give to its own variables."""

# The dtypes that NumPy gives to Python numbers.
_NATIVE: Final = frozenset(np.dtype(name) for name in ("bool", "int64", "float64", "complex128"))


def dtype_text(dtype: DType) -> str:
    return "bool" if dtype.kind == "b" else f"np.{_scalar_name(dtype)}"


def _scalar_name(dtype: DType) -> str:
    # The names of long doubles are not the same on all platforms; those of their types are.
    return {"g": "longdouble", "G": "clongdouble"}.get(dtype.char, dtype.name)


def weak_text(literal: Literal) -> str:
    """A splat as a Python number, which takes the dtype of the array it meets; an atom."""
    value = literal.value
    kind = value.dtype.kind
    if kind == "b":
        return str(bool(value))
    if kind in "iu":
        text = str(int(value))
    elif kind == "f":
        number = float(value)
        if value.dtype.type(number) != value and number == number:
            return typed_text(literal)
        text = _float_text(value, number)
    else:
        if value.dtype.type(complex(value)) != value and value == value:
            return typed_text(literal)
        text = _complex_text(complex(value))
    return f"({text})" if text.startswith("-") else text


def typed_text(literal: Literal) -> str:
    """A splat as a NumPy scalar."""
    value, name = literal.value, _scalar_name(literal.value.dtype)
    if value.dtype.kind == "b":
        return f"np.bool_({bool(value)})"
    if value.dtype.char == "g" and np.isfinite(value) and np.longdouble(float(value)) != value:
        return f'np.longdouble("{value!s}")'
    if value.dtype.char == "G":
        return f"{array_text(np.asarray([value]))}[0]"
    if value.dtype.kind == "c":
        return f"np.{name}({_complex_text(complex(value))})"
    if value.dtype.kind == "f":
        return f"np.{name}({_float_text(value, float(value))})"
    return f"np.{name}({int(value)})"


def full_text(literal: Literal) -> str:
    """A splat as an array of its shape."""
    shape, value = literal.type.static_shape, literal.value
    if value.tobytes() == bytes(value.dtype.itemsize):
        return f"np.zeros({shape})" if value.dtype == np.float64 else f"np.zeros({shape}, {dtype_text(value.dtype)})"
    if value.dtype in _NATIVE:
        return f"np.full({shape}, {weak_text(literal)})"
    return f"np.full({shape}, {typed_text(literal)})"


def native(dtype: DType) -> bool:
    """Whether a Python number written in its place gets this dtype."""
    return dtype in _NATIVE


def _float_text(value: Any, number: float) -> str:
    if not np.isfinite(number):
        return "np.nan" if number != number else "np.inf" if number > 0 else "-np.inf"
    short = str(value)  # fewer digits where the dtype has fewer
    return short if value.dtype.type(float(short)) == value else repr(number)


def _complex_text(number: complex) -> str:
    text = repr(number)
    # "(-0+1j)" and "(inf+nanj)" do not read back.
    if "inf" in text or "nan" in text or "-0" in text:
        return f"complex({_finite(repr(number.real))}, {_finite(repr(number.imag))})"
    return text


def _finite(text: str) -> str:
    return _NOT_FINITE.sub(r"np.\1", text)


def array_text(array: np.ndarray[Any, Any]) -> str:
    """An expression that makes the array again, bit for bit (but for the payload of a nan)."""
    shape, dtype = array.shape, array.dtype
    named = _named_text(array)
    if named:
        return named
    if dtype.kind == "c":
        parts = np.ascontiguousarray(array).reshape(-1).view(array.real.dtype)
        return f"{array_text(parts)}.view({dtype_text(dtype)}).reshape({shape})"
    if dtype.char == "g":
        # Strings keep the digits that a Python float has no room for.
        return f"np.array({[str(number) for number in array.reshape(-1)]}, np.longdouble).reshape({shape})"
    text = _finite(repr(array.tolist()))
    return f"np.array({text})" if native(dtype) and array.size else f"np.array({text}, {dtype_text(dtype)})"


def _named_text(array: np.ndarray[Any, Any]) -> str:
    """The call that makes the array, where it is an identity matrix or integers at equal steps."""
    dtype, size = array.dtype, array.size
    if (
        array.ndim == 2
        and size > 1
        and dtype.kind in "fiu"
        and array.tobytes() == np.eye(*array.shape, dtype=dtype).tobytes()
    ):
        sizes = ", ".join(map(str, dict.fromkeys(array.shape)))
        return f"np.eye({sizes})" if dtype == np.float64 else f"np.eye({sizes}, dtype={dtype_text(dtype)})"
    if array.ndim == 1 and size > 2 and dtype == np.int64:
        first, step = int(array[0]), int(array[1]) - int(array[0])
        stop = first + size * step
        if step and abs(stop) < 2**62 and np.array_equal(array, np.arange(first, stop, step)):
            return f"np.arange({f'{first}, ' if first or step != 1 else ''}{stop}{f', {step}' if step != 1 else ''})"
    return ""


def identifier(name: str) -> str:
    """A Python name that looks like the given one: ``h.bar`` -> ``h_bar``."""
    text = _NOT_IN_NAMES.sub("_", name).strip("_") if not name.isidentifier() else name
    if not text or text[0].isdigit():
        text = f"v_{text}"
    return f"{text}_" if text in RESERVED else text


class Names:
    """Hands out names, each once."""

    __slots__ = ("_counts", "_taken")

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {*RESERVED, *taken}
        self._counts: dict[str, int] = {}

    def numbered(self, prefix: str) -> str:
        """``v0``, ``v1``, …"""
        taken, count = self._taken, self._counts.get(prefix, 0)
        while (name := f"{prefix}{count}") in taken:
            count += 1
        self._counts[prefix] = count + 1
        taken.add(name)
        return name

    def named(self, name: str) -> str:
        """The name as an identifier, with a number where it is taken: ``x``, ``x_2``, …"""
        base = identifier(name)
        if base not in self._taken:
            self._taken.add(base)
            return base
        taken, count = self._taken, self._counts.get(base + "_", 2)
        while (name := f"{base}_{count}") in taken:
            count += 1
        self._counts[base + "_"] = count + 1
        taken.add(name)
        return name
