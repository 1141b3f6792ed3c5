"""How large traced Python integers can become: Python's have no bound, those of a program have 64 bits.

A bound is attached to each; where it is not known it is taken to be `USUAL`, more than counters reach. What may leave
64 bits is refused, as are carries of loops that grow from trip to trip by more than addition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from srcgrad.ir.types import INT64
from srcgrad.tracing.trace import Refused
from srcgrad.tracing.tracer import Tracer, cast_value, from_value

USUAL: Final = 2**31
TRIPS: Final = 2**24
"""What the index of a loop is taken to reach whose trips are not known."""
MOST: Final = 2**62
BOUNDS: Final[dict[np.ufunc, Callable[[int, int], int]]] = {
    np.add: lambda a, b: a + b,
    np.subtract: lambda a, b: a + b,
    np.multiply: lambda a, b: a * b,
    np.power: lambda a, b: a**b if a < 2 or b < 64 else MOST + 1,
    np.left_shift: lambda a, b: a << b if b < 64 else MOST + 1,
    np.floor_divide: lambda a, b: a,
    np.remainder: lambda a, b: b,
    np.right_shift: lambda a, b: a,
    np.bitwise_and: max,
    np.bitwise_or: lambda a, b: 2 * max(a, b),
    np.bitwise_xor: lambda a, b: 2 * max(a, b),
    np.maximum: max,
    np.minimum: max,
}


def bound_of(x: Any) -> int:
    """The largest magnitude that an integer can have."""
    if isinstance(x, Tracer):
        number = x.number()
        if number is None:
            return USUAL if x.bound is None else x.bound
        x = number
    return abs(int(x))


def bounded(ufunc: np.ufunc, inputs: Sequence[Any], result: Any) -> Any:
    """The result of an operation on Python integers, with its bound.

    Raises:
        Refused: it may not have 64 bits.
    """
    rule = BOUNDS.get(ufunc)
    if isinstance(result, Tracer) and result.weak:
        bounds = [bound_of(x) for x in inputs]
        result.bound = bounds[0] if rule is None or len(bounds) < 2 else rule(bounds[0], bounds[1])
        if result.bound > MOST:
            raise Refused("a traced Python integer may exceed 64 bits", hint="use floats: 1.0 in place of 1")
    return result


def grows(x: Any) -> bool:
    """Whether an integer at the end of a trip may be more than a sum of what it was and something usual."""
    return isinstance(x, Tracer) and x.weak and x.bound is not None and x.bound >= 2 * USUAL


COUNTING: Final = frozenset({np.add, np.subtract, np.multiply, np.true_divide, np.floor_divide, np.remainder, np.power})
"""Operators for which Python's truth values are the integers 0 and 1, while NumPy's stay truth values."""


def counted(x: Any) -> Any:
    """A number of Python's as an operand of arithmetic."""
    if not isinstance(x, Tracer):
        return int(x) if type(x) is bool else x
    if x.dtype.kind != "b":
        return x
    found = from_value(cast_value(x.read(), INT64), scalar=True, weak=True)
    found.bound = 1
    return found
