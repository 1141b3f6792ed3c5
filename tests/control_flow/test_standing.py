"""One of several objects by a traced condition, which the program holds in another way too: lists of candidates."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

POINTS = tuple(np.array(x) for x in ([0.33, 0.21], [1.57, -0.2], [0.93, 1.41], [2.32, 2.91], [-1.0, 0.7]))


class Point:
    def __init__(self, at: Any, cost: Any, name: str = "p") -> None:
        self.at, self.cost, self.name = at, cost, name

    def moved(self, by: Any) -> Point:
        return self.__class__(self.at + by, self.cost)

    @property
    def weight(self) -> Any:
        return self.cost if self.cost > 0.5 else 0.5 * self.cost

    def __mul__(self, other: Any) -> Any:
        return self.cost * other


class Slotted:
    __slots__ = ("at", "cost")

    def __init__(self, at: Any, cost: Any) -> None:
        self.at, self.cost = at, cost


class Named:
    """Compared by its name."""

    def __init__(self, name: Any, cost: Any) -> None:
        self.name, self.cost = name, cost

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


def points(x: Any, count: int = 6, cls: Any = Point) -> list[Any]:
    return [cls(x * np.sin(k), np.sum((x - 0.3 * k) ** 2)) for k in range(count)]


def the_best(x: Any) -> Any:
    best: Any = None
    for p in points(x):
        if best is None or p.cost < best.cost:
            best = p
    return best.cost + best.at[0] * best.weight + best * 2.0


def the_best_with_its_cost(x: Any) -> Any:
    best: Any = None
    for p in points(x):
        cost = p.cost * 2
        if best is None or cost < best[0]:
            best = (cost, p)
    return best[0] + best[1].at[1]


def of_many(x: Any) -> Any:
    best: Any = None
    for k in range(40):
        p = Point(x * np.sin(k), np.sum((x - 0.1 * k) ** 2))
        if best is None or p.cost < best.cost:
            best = p
    return best.cost + best.at[0]


def by_a_key(x: Any) -> Any:
    best = min(points(x), key=lambda p: p.cost)
    return best.moved(x).at[0] + best.cost


def by_a_function(x: Any) -> Any:
    ps = points(x)

    def better(a: Any, b: Any) -> Any:
        return a if a.cost < b.cost else b

    best = ps[0]
    for p in ps:
        best = better(best, p)
    return best.at[0] * ps[1].cost


def with_slots(x: Any) -> Any:
    ps = points(x, cls=Slotted)
    best = ps[0] if ps[0].cost > ps[1].cost else ps[1]
    return best.at[0] + best.cost * ps[0].cost


def one_that_nobody_reads(x: Any) -> Any:
    ps = points(x)
    worst = ps[0]
    for p in ps:
        if p.cost > worst.cost * 0.9:
            last = p
        p.cost = p.cost * x[0]
    last = ps[2]
    return sum(p.cost for p in ps) + last.at[0]


def with_what_all_have(x: Any) -> Any:
    shared = {"n": 0.0}
    ps = points(x)
    for p in ps:
        p.log = shared
    best = ps[0] if x[0] > x[1] else ps[3]
    best.log["n"] += x[0]
    return shared["n"] * best.cost + best.at[0] + ps[0].log["n"]


ONE_PROGRAM = (
    the_best, the_best_with_its_cost, of_many, by_a_key, by_a_function, with_slots, one_that_nobody_reads,
    with_what_all_have,
)  # fmt: skip


def one_changed_later(x: Any) -> Any:
    ps = points(x)
    best = ps[0] if x[0] > x[1] else ps[3]
    ps[0].cost = 10.0 * x[0]
    return best.cost + ps[3].cost


def itself_changed_later(x: Any) -> Any:
    ps = points(x)
    best = ps[0] if x[0] > x[1] else ps[3]
    best.cost += 3.0 * x[0]
    best.at[0] = 7.0
    return sum(p.cost * p.at[0] for p in ps)


def itself_written_later(x: Any) -> Any:
    ps = points(x)
    best = ps[0] if x[0] > x[1] else ps[3]
    best.cost = 3.0 * x[0]
    return sum(p.cost for p in ps)


def written_by_another_name(x: Any) -> Any:
    if x[0] > x[1]:
        one = other = Point(x, x[0])
    else:
        one, other = Point(x, x[1]), Point(2 * x, x[1])
    one.cost = x[0] * x[1]
    return other.cost * x[0]


def a_list_beside_one_written_later(x: Any) -> Any:
    pairs = [(p, [p.cost]) for p in points(x)]
    best = pairs[0] if x[0] > x[1] else pairs[3]
    best[1][0] = 3.0 * x[0]
    return sum(pair[1][0] for pair in pairs)


def an_array_of_one_changed_later(x: Any) -> Any:
    ps = points(x)
    best = ps[0] if x[0] > x[1] else ps[3]
    ps[3].at[1] = 5.0 * x[0]
    return np.sum(best.at * x)


def changed_between_two_choices(x: Any) -> Any:
    ps = points(x)
    best = ps[0] if x[0] > x[1] else ps[3]
    ps[0].cost = x[1] * 4
    best = best if x[0] > 1.0 else ps[4]
    return best.cost


def changed_in_a_list_of_two_choices(x: Any) -> Any:
    ps = points(x)
    best = [ps[0] if x[0] > x[1] else ps[3]]
    pair = (best[0], 1.0) if x[0] > 1.0 else (ps[4], 2.0)
    ps[3].cost = x[1] * 4
    return pair[0].cost * pair[1]


def swapped_and_changed(x: Any) -> Any:
    a, b = points(x, 2)
    for k in range(3):
        if a.cost > b.cost:
            a, b = b, a
        a.cost = a.cost + 0.3 * k * x[0]
    return a.cost - 2 * b.cost


def changed_in_the_trip(x: Any) -> Any:
    best = Point(x, 100.0)
    total = 0.0
    for k in range(40):
        p = Point(x * np.sin(k), np.sum((x - 0.1 * k) ** 2))
        if p.cost < best.cost:
            best = p
        p.cost = p.cost + 0.1 * x[0]
        total += p.cost
    return best.cost + best.at[0] + 0.01 * total


def compared_by_is(x: Any) -> Any:
    ps = points(x)
    best = ps[0] if x[0] > x[1] else ps[3]
    return sum(p.cost for p in ps if p is not best)


def compared_by_equality(x: Any) -> Any:
    ps = points(x)
    best = ps[0] if x[0] > x[1] else ps[3]
    return sum(p.cost for p in ps if p != best)


def by_its_place(x: Any) -> Any:
    ps = points(x)
    best = ps[0] if x[0] > x[1] else ps[3]
    return x[0] * ps.index(best) + (best in ps[1:])


def removed(x: Any) -> Any:
    ps = points(x)
    ps.remove(ps[0] if x[0] > x[1] else ps[3])
    return sum(p.cost * math.sqrt(k + 1) for k, p in enumerate(ps))


def by_its_hash(x: Any) -> Any:
    ps = points(x)
    numbers = {p: float(k) for k, p in enumerate(ps)}
    best = ps[0] if x[0] > x[1] else ps[3]
    return numbers[best] * best.cost


def by_its_number(x: Any) -> Any:
    ps = points(x)
    numbers = {id(p): float(k) for k, p in enumerate(ps)}
    best = ps[0] if x[0] > x[1] else ps[3]
    return numbers[id(best)] * best.cost


def of_a_tuple(x: Any) -> Any:
    pairs = [(p, 1.0) for p in points(x)]
    best = pairs[0] if x[0] > x[1] else pairs[3]
    return best[0].cost * pairs.index(best)


def equal_by_name(x: Any) -> Any:
    ones = [Named("a", x[0]), Named("a", x[1]), Named("b", x[0] * x[1])]
    best = ones[0] if x[0] > x[1] else ones[1]
    return best.cost * (2.0 if best == ones[0] else 1.0) * (3.0 if best in {ones[2]} else 1.0)


OTHERS = (
    one_changed_later, itself_changed_later, itself_written_later, written_by_another_name,
    a_list_beside_one_written_later, an_array_of_one_changed_later, changed_between_two_choices,
    changed_in_a_list_of_two_choices, swapped_and_changed, changed_in_the_trip, compared_by_is, compared_by_equality,
    by_its_place, removed, by_its_hash, by_its_number, of_a_tuple, equal_by_name,
)  # fmt: skip


def require_right(f: Callable[[Any], Any], backend: str) -> None:
    step = 1e-6
    run, slope = sg.jit(f, backend=backend), sg.grad(f, backend=backend)
    for x in (*POINTS, *POINTS[:2]):
        apart = [(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(len(x))]
        np.testing.assert_allclose(run(x), f(x), rtol=1e-12)
        np.testing.assert_allclose(slope(x), apart, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", ONE_PROGRAM, ids=lambda f: f.__name__)
def test_a_copy_stands_for_one_of_several_objects(f: Any, backend: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        require_right(f, backend)
    assert sg.explain(f)(POINTS[0])["how it runs"].startswith("One program")


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("f", OTHERS, ids=lambda f: f.__name__)
def test_which_object_it_is_and_later_changes_are_seen(f: Any) -> None:
    require_right(f, "numpy")


def test_copies_are_of_their_own_class_afterwards() -> None:
    kept: list[Any] = []

    def keeps(x: Any) -> Any:
        ps = points(x)
        best = ps[0] if x[0] > x[1] else ps[3]
        kept.append(best)
        return best.cost

    with pytest.warns(sg.RetraceWarning):
        sg.grad(keeps)(POINTS[0])
    assert all(type(p) is Point for p in kept)
