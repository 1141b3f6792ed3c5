"""What a function is, as bytes: equal for functions that run alike, in every process.

Names, spans and linear marks do not count. Regions are closed, so each is described by itself, with the numbers of its
own values, and those that an operation holds are numbered in the order in which they are met.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from srcgrad.ir.core import Function, Literal, Region, Value
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.types import ArrayType, Dim

__all__ = ["described"]

_PLAIN: Final = (int, str, bool, float, complex, bytes, type(None))
"""Whose ``repr`` says all: 1 differs from True, and 0.0 from -0.0."""


class _Nameless(Exception):
    """What exists in this process alone, as a callable."""


def described(function: Function) -> bytes | None:
    """The bytes, or None for a function that holds what exists in this process alone.

    >>> from srcgrad.ir.parser import parse
    >>> text = "func @f(%{}: f64[]) -> (f64[]) {{\\n  return {}\\n}}"
    >>> described(parse(text.format("x", "0.0"))) == described(parse(text.format("y", "0.0")))
    True
    >>> described(parse(text.format("x", "0.0"))) == described(parse(text.format("x", "-0.0")))
    False
    """
    writer = _Writer()
    regions: list[Region] = [function]
    try:
        for region in regions:  # which grows
            writer.region(region, regions)
    except _Nameless:
        return None
    return writer.bytes()


class _Writer:
    """Describes regions: types and literals are written where they are first met, and are numbers afterwards."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self.types: dict[Any, int] = {}
        self.literals: dict[Literal, int] = {}

    def bytes(self) -> bytes:
        types = [repr(type) for type in self.types]
        literals = [(self.types[key.key[0]], *key.key[1:]) for key in self.literals]
        return repr((self.items, types, literals)).encode()

    def region(self, region: Region, regions: list[Region]) -> None:
        numbers: dict[Value, int] = {}
        params = self.defined(region.params, numbers)
        operations = []
        for operation in region.operations:
            op = operation.op
            if REGISTRY.get(op.name) is not op:
                raise _Nameless
            operands = self.used(operation.operands, numbers)
            attributes = [(name, _attribute(value)) for name, value in operation.attrs.items()]
            regions += operation.regions
            results = self.defined(operation.results, numbers)
            operations.append((op.name, operands, attributes, len(operation.regions), results))
        self.items.append((params, operations, self.used(region.results, numbers)))

    def defined(self, values: Sequence[Value], numbers: dict[Value, int]) -> list[int]:
        """The types of values, which have numbers from here on."""
        types = self.types
        for value in values:
            numbers[value] = len(numbers)
        return [types.setdefault(value.type, len(types)) for value in values]

    def used(self, values: Sequence[Value], numbers: dict[Value, int]) -> list[int]:
        """Values by number, and literals by one below 0."""
        found = []
        for value in values:
            number = numbers.get(value)
            if number is None:
                if not isinstance(value, Literal):
                    raise _Nameless
                self.types.setdefault(value.type, len(self.types))
                number = ~self.literals.setdefault(value, len(self.literals))
            found.append(number)
        return found


def _attribute(value: Any) -> Any:
    """Something whose ``repr`` is as the attribute."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is tuple:
        return tuple(map(_attribute, value))
    if isinstance(value, np.dtype):
        return "dtype", value.str
    if isinstance(value, np.generic) and value.dtype.kind in "biufc":
        return value.dtype.str, value.tobytes()
    if isinstance(value, ArrayType | Dim):
        return kind.__name__, repr(value)
    raise _Nameless
