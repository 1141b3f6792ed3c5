"""Structural equality of functions: what a round trip through text must keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from srcgrad.ir.core import Attrs, Function, Literal, Operation, Region, Value
from srcgrad.ir.text import Names, attr_text, clean_name

__all__ = ["same"]


def same(left: Function, right: Function) -> bool:
    """Whether two functions have the same text but for their source comments.

    That is: the same operations in the same order, wired alike, with the same attributes, types, literals (nan equals
    any nan), linear marks, regions, and printed names.

    >>> from srcgrad.ir.parser import parse
    >>> text = "func @f(%x: f64[]) -> (f64[]) {{\\n  return {}\\n}}"
    >>> function = parse(text.format("%x"))
    >>> same(function, parse(text.format("%x"))), same(function, parse(text.format("0.0")))
    (True, False)
    """
    if clean_name(left.name) != clean_name(right.name):
        return False
    pairs: list[tuple[Region, Region]] = [(left, right)]
    while pairs:
        if not _same_block(*pairs.pop(), pairs):
            return False
    return True


def _same_block(left: Region, right: Region, pairs: list[tuple[Region, Region]]) -> bool:
    """Compare two regions; those they hold are appended to ``pairs``."""
    if len(left.params) != len(right.params) or len(left.operations) != len(right.operations):
        return False
    names = Names.of(left), Names.of(right)
    known: dict[Value, Value] = {}
    if not _same_definitions(left.params, right.params, names, known):
        return False
    for one, other in zip(left.operations, right.operations, strict=True):
        if not _same_operation(one, other, known) or not _same_definitions(one.results, other.results, names, known):
            return False
        pairs.extend(zip(one.regions, other.regions, strict=True))
    return _same_uses(left.results, right.results, known)


def _same_operation(left: Operation, right: Operation, known: dict[Value, Value]) -> bool:
    return (
        left.op is right.op
        and len(left.regions) == len(right.regions)
        and _same_attrs(left.attrs, right.attrs)
        and _same_uses(left.operands, right.operands, known)
    )


def _same_attrs(left: Attrs, right: Attrs) -> bool:
    return left.keys() == right.keys() and all(_same_attr(value, right[name]) for name, value in left.items())


def _same_attr(left: Any, right: Any) -> bool:
    # The text tells 1 from True and 0.0 from -0.0; what exists only in memory has none of its own.
    text = attr_text(left)
    return text == attr_text(right) and ("!" not in text or bool(left == right))


def _same_definitions(
    left: Sequence[Value], right: Sequence[Value], names: tuple[Names, Names], known: dict[Value, Value]
) -> bool:
    if len(left) != len(right):
        return False
    for one, other in zip(left, right, strict=True):
        if one.type != other.type or one.linear != other.linear or names[0][one] != names[1][other]:
            return False
        known[one] = other
    return True


def _same_uses(left: Sequence[Value], right: Sequence[Value], known: dict[Value, Value]) -> bool:
    if len(left) != len(right):
        return False
    for one, other in zip(left, right, strict=True):
        if isinstance(one, Literal):
            if not isinstance(other, Literal) or not _same_literal(one, other):
                return False
        elif known.get(one) is not other:
            return False
    return True


def _same_literal(left: Literal, right: Literal) -> bool:
    if left.type != right.type or left.splat != right.splat:
        return False
    one, other = (_parts(np.asarray(literal.value)) for literal in (left, right))
    if one.dtype.kind != "f":
        return bool((one == other).all())
    equal = (one == other) & (np.signbit(one) == np.signbit(other))
    return bool((equal | (np.isnan(one) & np.isnan(other))).all())


def _parts(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.stack([array.real, array.imag]) if array.dtype.kind == "c" else array
