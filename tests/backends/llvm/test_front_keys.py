"""Dicts by keys that are no texts or numbers, members of enumerations for instance, read in machine code."""

from __future__ import annotations

import enum
import sys
import warnings
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

import pytest

import srcgrad as sg
from tests.backends.llvm.front_support import needs_machine, served

pytestmark = needs_machine


class Side(enum.Enum):
    LEFT = 1
    RIGHT = 2


KEYS: dict[str, tuple[Any, Any]] = {
    "enum": (Side.LEFT, Side.RIGHT),
    "tuple": ((0, 1), (1, "a")),
    "None": (None, True),
    "float": (0.5, float("inf")),
    "class": (int, float),
    "text": ("a", "b"),
}


def of(table: Any, keys: tuple[Any, Any]) -> Callable[[Any], Any]:
    first, second = keys

    def f(x: Any) -> Any:
        return x * table[first] + x * x * table[second]

    return f


@pytest.mark.parametrize("keys", list(KEYS))
@pytest.mark.parametrize("kind", [dict, Counter, lambda items: defaultdict(float, items)])
def test_what_a_dict_has_under_any_key_is_read_at_each_call(keys: str, kind: Any) -> None:
    first, second = KEYS[keys]
    table = kind({first: 2.0, second: 3.0})
    slope = served(sg.grad(of(table, KEYS[keys]), backend="llvm"), 1.5)
    assert not any(getattr(kept, "__name__", "") == "bind" for kept in slope._tables[1])
    assert slope(1.5) == 2.0 + 3.0 * 3.0
    table[second] = 5.0
    assert slope(1.5) == 2.0 + 3.0 * 5.0
    table[first], table[second] = 7.0, 4.0
    assert slope(1.5) == 7.0 + 3.0 * 4.0
    value = table.pop(first)
    table[first] = value + 1.0  # the keys in another order
    assert slope(1.5) == 8.0 + 3.0 * 4.0
    table[first] = 9  # a guard now
    assert slope(1.5) == 9.0 + 3.0 * 4.0
    table["more"] = 1.0
    assert slope(1.5) == 9.0 + 3.0 * 4.0
    del table[second]
    if not isinstance(table, (Counter, defaultdict)):
        with warnings.catch_warnings(), pytest.raises(KeyError):
            warnings.simplefilter("ignore", sg.RetraceWarning)
            slope(1.5)


def test_an_ordered_dict_is_asked_by_python() -> None:
    table = OrderedDict({Side.LEFT: 2.0, Side.RIGHT: 3.0})
    slope = served(sg.grad(of(table, KEYS["enum"]), backend="llvm"), 1.5)
    table.move_to_end(Side.LEFT)
    table[Side.LEFT] = 4.0
    assert slope(1.5) == 4.0 + 3.0 * 3.0


def test_reading_by_a_member_keeps_no_references() -> None:
    table = {Side.LEFT: 2.0, Side.RIGHT: 3.0}
    slope = served(sg.grad(of(table, KEYS["enum"]), backend="llvm"), 1.5)
    before = sys.getrefcount(Side.LEFT), sys.getrefcount(table)
    for _ in range(1000):
        slope(1.5)
    assert (sys.getrefcount(Side.LEFT), sys.getrefcount(table)) == before
