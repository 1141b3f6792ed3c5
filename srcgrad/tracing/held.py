"""The attributes of the objects of users' classes, where these have them: in a dict, or in slots."""

from __future__ import annotations

from typing import Any

from srcgrad.tracing.conversion.state import Slots, contents, refill, slots_of

__all__ = ["held_by", "hold", "holding", "is_slotted"]


def is_slotted(x: Any) -> bool:
    """Whether an object has its attributes in slots alone.

    >>> from fractions import Fraction
    >>> is_slotted(Fraction(1, 2)), is_slotted(print)
    (True, False)
    """
    cls = type(x)
    return cls.__dictoffset__ == 0 and cls.__itemsize__ == 0 and bool(slots_of(cls))


def holding(x: Any) -> dict[str, Any]:
    """The attributes that an object has: its dict, or one that is made of its slots.

    >>> from fractions import Fraction
    >>> sorted(holding(Fraction(1, 2)).items())
    [('_denominator', 2), ('_numerator', 1)]
    """
    if not is_slotted(x):
        found: dict[str, Any] = vars(x)
        return found
    names, values = contents(Slots(x, slots_of(type(x))))
    return dict(zip(names, values, strict=True))


def held_by(x: Any) -> dict[str, Any]:
    """What an object has in slots, and what it has in its dict; either may be missing."""
    names, values = contents(Slots(x, slots_of(type(x))))
    return {**dict(zip(names, values, strict=True)), **getattr(x, "__dict__", {})}


def hold(x: Any, attributes: dict[str, Any]) -> None:
    """Give an object with slots alone these attributes, and no others."""
    refill(Slots(x, slots_of(type(x))), tuple(attributes), list(attributes.values()))
