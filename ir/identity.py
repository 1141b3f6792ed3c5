"""What a function is, as bytes: equal for functions that run alike, in every process.

Names, spans and linear marks do not count. Regions are closed, so each is described by itself, with the numbers of its
own values, and those that an operation holds are numbered in the order in which they are met.
"""

from __future__ import annotations

import marshal
from collections.abc import Sequence
from itertools import chain, count
from operator import attrgetter
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
        return writer.bytes()
    except _Nameless:
        return None


class _Writer:
    """Describes regions, a column at a time: what all operations read, then what all give, and so on.

    A step of Python for each operation would take most of the time in which a program is found that is on disk. Ops,
    types, literals and attributes are numbers in the columns, and are written where all of them are known.
    """

    def __init__(self) -> None:
        self.items: list[Any] = []
        self.types: dict[Any, int] = {}
        self.seen: dict[int, int] = {}
        """The numbers of types by their identity, which takes no comparison: most values share a few objects."""
        self.literals: dict[Literal, int] = {}
        self.ops: dict[Op, int] = {}

    def bytes(self) -> bytes:
        if any(REGISTRY.get(op.name) is not op for op in self.ops):
            raise _Nameless
        names = [op.name for op in self.ops]
        types = [repr(type) for type in self.types]
        literals = [(self.types[key.key[0]], *key.key[1:]) for key in self.literals]
        return marshal.dumps((self.items, names, types, literals), _WITHOUT_REFERENCES)

    def region(self, region: Region, regions: list[Region]) -> None:
        operations, ops = region.operations, self.ops
        read, given = [*map(_OPERANDS, operations)], [*map(_RESULTS, operations)]
        values = [*region.params, *chain.from_iterable(given)]
        numbers = _Numbers(self)
        numbers.update(zip(values, count()))
        if len(numbers) != len(values):
            raise _Nameless
        kinds = [*map(_OP, operations)]
        for op in dict.fromkeys(kinds):
            ops.setdefault(op, len(ops))
        attributes, inner = [*map(_ATTRS, operations)], [*map(_REGIONS, operations)]
        for held in filter(None, inner):
            regions += held
        self.items.append(
            (
                len(region.params),
                [*map(ops.__getitem__, kinds)],
                [*map(len, read)],
                [*map(numbers.__getitem__, chain.from_iterable(read))],
                [*map(len, given)],
                self.types_of(values),
                [*map(len, inner)],
                [(k, [*map(_attribute, attrs.items())]) for k, attrs in enumerate(attributes) if attrs],
                [*map(numbers.__getitem__, region.results)],
            )
        )

    def types_of(self, values: Sequence[Value]) -> list[int]:
        types = [*map(_TYPE, values)]
        places = [*map(id, types)]
        for first in sorted(map(places.index, set(places).difference(self.seen))):  # a set's order is the process's
            self.type(types[first])
        return [*map(self.seen.__getitem__, places)]

    def type(self, type: Any) -> int:
        number = self.seen[id(type)] = self.types.setdefault(type, len(self.types))
        return number


_OP, _OPERANDS, _ATTRS, _REGIONS, _RESULTS, _TYPE = map(
    attrgetter, ("op", "operands", "attrs", "regions", "results", "type")
)


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
        number = self[value] = ~literals.setdefault(value, len(literals))
        return number


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
