"""Slices as Python's ranges, one for each axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from srcgrad.ir.core import Attrs


def ranges_of(attrs: Attrs) -> list[range]:
    """The indices of a slice, axis by axis."""
    return list(map(range, attrs["starts"], attrs["limits"], attrs["strides"]))


def bounds_of(ranges: Sequence[range]) -> dict[str, Any]:
    """The attributes of a slice of these indices, none of them empty."""
    return {
        "starts": tuple(each.start for each in ranges),
        "limits": tuple(each[-1] + 1 for each in ranges),
        "strides": tuple(each.step for each in ranges),
    }


def within(inner: range, outer: range) -> range | None:
    """Where the one's indices stand in the other, if they all do."""
    if not inner or inner[0] not in outer or inner[-1] not in outer:
        return None
    if len(inner) == 1:
        start = outer.index(inner[0])
        return range(start, start + 1)
    if inner.step % outer.step:
        return None
    return range(outer.index(inner[0]), outer.index(inner[-1]) + 1, inner.step // outer.step)


def apart(one: range, other: range) -> bool:
    """Whether two ranges have no index in common for certain: one is beyond the other, or between its steps."""
    if not one or not other or one[-1] < other[0] or other[-1] < one[0]:
        return True
    return (one[0] - other[0]) % math.gcd(one.step, other.step) != 0
