"""``in`` for traced numbers: what a set, a dict or a range holds, which need no value while the function is traced."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.control_flow.traced_once import require_one_program

MISSING = {3, 4, 17}
PRICES = {5: 1.0, "a": 2.0, 7: 3.0, None: 0.0}
SOME = frozenset(range(0, 40, 3))
LEVELS = {0.5, 1.5, 2, float("nan")}
NOTHING: frozenset[int] = frozenset()
MIXED = {1, 2.5, (3, 4), "x", 9, 11, 13}
X = np.array([0.15, 0.2, 0.3])


def holes(x: Any) -> Any:
    total = 0.0
    for t in range(40):
        if t in MISSING:
            continue
        x = x * 0.99 + 0.01 * np.sin(x[::-1])
        total += np.sum(x) * (2.0 if t in SOME else 1.0)
    return total


def keys(x: Any) -> Any:
    total = 0.0
    for t in range(40):
        if t in PRICES or t % 9 in PRICES:
            total += x[0]
        if t / 2 in LEVELS:
            total += x[1] ** 2
        if t - 1 not in MIXED:
            total += x[2]
        if t in NOTHING:
            total += 100.0
    return total


def ranges(x: Any) -> Any:
    total = 0.0
    for t in range(40):
        if t in range(10, 20) or t in range(30, 20, -3):
            total += x[0]
        if t / 2 in range(2, 30, 4):
            total += x[1] ** 2
        if t in range(5, 5):
            total += 100.0
    return total


def of_values(x: Any) -> Any:
    level = np.floor(10 * x[0])
    return x[1] ** 2 if level in {1.0, 3.0} else x[2] ** 3 if level in range(4, 9, 2) else x[0]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", [holes, keys, ranges, of_values], ids=lambda f: f.__name__)
def test_membership_is_part_of_the_program(f: Any, backend: str) -> None:
    """A test of the number of a trip had loops written out; one of values had functions traced again at each call."""
    require_one_program(f, backend, X, X + 0.2, X + 0.3, X + 0.5)
    if f is not of_values:
        assert "one region" in sg.explain(f)(X)["how it runs"]


def test_a_set_that_changes_between_calls_is_seen() -> None:
    value = sg.jit(holes)
    before = value(X)
    MISSING.add(30)
    try:
        assert before == pytest.approx(holes(X) + before - value(X))
        np.testing.assert_allclose(value(X), holes(X), rtol=1e-13)
        assert value(X) != before
    finally:
        MISSING.remove(30)


class Odd:
    """Equal to odd numbers, of which it has the hash of one."""

    def __hash__(self) -> int:
        return 5

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int) and other % 2 == 1


def test_keys_with_an_equality_of_their_own_are_asked_by_python() -> None:
    def f(x: Any) -> Any:
        odd = {Odd(), 4}
        return sum(x[0] ** t for t in range(20) if t in odd)

    np.testing.assert_allclose(sg.jit(f)(X), f(X), rtol=1e-13)
