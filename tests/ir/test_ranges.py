"""Slices as ranges, against the numbers in them."""

from __future__ import annotations

import itertools

from srcgrad.ir.ranges import apart, bounds_of, ranges_of, within

RANGES = [range(*three) for three in itertools.product(range(4), range(4, 9), (1, 2, 3, 4))]


def test_where_ranges_are_within_others() -> None:
    for inner, outer in itertools.product(RANGES, repeat=2):
        places = within(inner, outer)
        assert (places is not None) == (set(inner) <= set(outer)), (inner, outer)
        assert places is None or [outer[place] for place in places] == [*inner]
    assert within(range(3, 3), range(9)) is None


def test_which_ranges_are_apart() -> None:
    """For certain: those that could meet and do not, as both are short, may count as meeting."""
    for one, other in itertools.product(RANGES, repeat=2):
        assert not apart(one, other) or set(one).isdisjoint(other)
        assert apart(one, other) == apart(other, one)
    assert apart(range(4), range(4, 9)) and apart(range(0, 9, 2), range(1, 9, 4)) and apart(range(3, 3), range(9))
    assert not apart(range(5), range(4, 9)) and not apart(range(0, 9, 2), range(1, 9, 3))


def test_bounds_are_those_of_the_ranges() -> None:
    attrs = {"starts": (1, 0), "limits": (8, 3), "strides": (3, 1)}
    assert ranges_of(attrs) == [range(1, 8, 3), range(3)]
    assert bounds_of(ranges_of(attrs)) == attrs
    assert bounds_of([range(0, 6, 4)]) == {"starts": (0,), "limits": (5,), "strides": (4,)}
