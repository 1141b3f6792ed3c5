"""What a function is, as bytes: equal for functions that run alike, in every process.

Names, spans and linear marks do not count. Regions are closed, so each is described by itself, with the numbers of its
own values, and those that an operation holds are numbered in the order in which they are met.
"""

from __future__ import annotations

import marshal
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from srcgrad.ir.core import Function, Literal, Region, Value
from srcgrad.ir.opdef import REGISTRY, Op
from srcgrad.ir.types import ArrayType, Dim

__all__ = ["described"]

_PLAIN: Final = (int, str, bool, float, complex, bytes, type(None))
"""What is written as it is: 1 differs from True, and 0.0 from -0.0."""
_WITHOUT_REFERENCES: Final = 2
"""The version of `marshal` that writes each object out: later ones tell whether two are one object, which may differ
between processes."""


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
        self.seen: dict[int, int] = {}
        """The numbers of types by their identity, which takes no comparison: most values share a few objects."""
        self.literals: dict[Literal, int] = {}
        self.named: dict[Op, str] = {}

    def bytes(self) -> bytes:
        types = [repr(type) for type in self.types]
        literals = [(self.types[key.key[0]], *key.key[1:]) for key in self.literals]
        return marshal.dumps((self.items, types, literals), _WITHOUT_REFERENCES)

    def region(self, region: Region, regions: list[Region]) -> None:
        numbers = _Numbers(self)
        number_of, define = numbers.__getitem__, self.defined
        params = define(region.params, numbers)
        operations, named = [], self.named
        for operation in region.operations:
            op, attrs, inner = operation.op, operation.attrs, operation.regions
            name = named.get(op)
            if name is None:
                name = self.name(op)
            attributes = [(key, _attribute(value)) for key, value in attrs.items()] if attrs else None
            regions += inner
            operands = [*map(number_of, operation.operands)]
            operations.append((name, operands, attributes, len(inner), define(operation.results, numbers)))
        self.items.append((params, operations, [*map(number_of, region.results)]))

    def name(self, op: Op) -> str:
        if REGISTRY.get(op.name) is not op:
            raise _Nameless
        self.named[op] = op.name
        return op.name

    def defined(self, values: Sequence[Value], numbers: _Numbers) -> list[int]:
        """The types of values, which have numbers from here on."""
        found, seen = [], self.seen
        for value in values:
            numbers[value] = len(numbers)
            type = seen.get(id(value.type))
            found.append(self.type(value.type) if type is None else type)
        return found

    def type(self, type: Any) -> int:
        number = self.seen[id(type)] = self.types.setdefault(type, len(self.types))
        return number


class _Numbers(dict[Value, int]):
    """Values of a region by number, and literals by one below 0."""

    def __init__(self, writer: _Writer) -> None:
        super().__init__()
        self.writer = writer

    def __missing__(self, value: Value) -> int:
        if not isinstance(value, Literal):
            raise _Nameless
        self.writer.type(value.type)
        literals = self.writer.literals
        return ~literals.setdefault(value, len(literals))


def _attribute(value: Any) -> Any:
    """Something that `marshal` writes, and that is as the attribute."""
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
