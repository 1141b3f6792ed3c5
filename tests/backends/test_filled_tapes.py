"""Tapes that have one element at every index: objects of one class, each with its own."""

from __future__ import annotations

from srcgrad.backends.numpy.helpers import filled_tape


def test_each_has_its_own_element_at_every_index() -> None:
    one, other = filled_tape(1.0), filled_tape(2.0)
    assert (one[0], one[7], other[3], len(one), type(one) is type(other)) == (1.0, 1.0, 2.0, 0, True)
