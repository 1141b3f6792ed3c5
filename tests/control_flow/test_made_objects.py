"""Objects that branches make: one stands for both where nothing else holds either, and each path is Python's."""

from __future__ import annotations

import collections
import dataclasses
import math
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

POINTS = (np.array([0.9, 2.0, 2.5]), np.array([-1.1, 0.2, 1.5]), np.array([-0.4, -0.8, -1.0]))
Function = Callable[[Any], Any]


class Rotation:
    def __init__(self, q: Any) -> None:
        self.q = q

    @classmethod
    def of(cls, r: Any) -> Rotation:
        angle = np.linalg.norm(r)
        if angle < 1e-8:
            return cls(np.hstack([1.0, r / 2]))
        return cls(np.concatenate(([np.cos(angle / 2)], np.sin(angle / 2) * r / angle)))

    def __mul__(self, other: Rotation) -> Rotation:
        if self.q[0] > other.q[1]:
            return Rotation(self.q * other.q)
        return Rotation(self.q + other.q)

    @property
    def size(self) -> Any:
        return math.sqrt(np.sum(self.q**2)) if self.q[0] > 0 else self.q[1]


class Slotted:
    __slots__ = ("first", "second")

    def __init__(self, first: Any, second: Any) -> None:
        self.first, self.second = first, second


@dataclasses.dataclass(frozen=True)
class Frozen:
    inner: Any
    pair: Any


Named = collections.namedtuple("Named", "rotation weight")


def in_a_loop(x: Any) -> Any:
    total = 0.0
    for k in range(20):
        total = total + Rotation.of(x * k).q[1] ** 2
    return total


def operators_and_properties(x: Any) -> Any:
    made = Rotation.of(x) * Rotation.of(x[::-1]) * Rotation.of(2 * x)
    return made.size + made.q[2]


def slots_changed_afterwards(x: Any) -> Any:
    made = Slotted(x[0], x)
    if x[1] > 0:
        made = Slotted(x[2], x * 2)
    made.first = made.first * 2
    made.second[0] = 7 * x[1]
    return made.first * made.second.sum() + x.sum()


def in_each_other(x: Any) -> Any:
    def made() -> Frozen:
        if x[0] > 0:
            return Frozen(Slotted(x[0], Rotation(x * 1)), (Rotation(x * 2), 1.0))
        return Frozen(Slotted(x[1], Rotation(x * 3)), (Rotation(x * 4), 2.0))

    found = made()
    found.inner.second.q[1] = 5 * x[2]
    found.pair[0].q[0] *= 2
    return found.inner.second.q.sum() * found.pair[0].q[2] * found.pair[1]


def in_a_named_tuple(x: Any) -> Any:
    found = Named(Rotation(x), 1.0) if x[0] > 0 else Named(Rotation(2 * x), 2.0)
    found.rotation.q = found.rotation.q**2
    return found.rotation.q.sum() * found.weight


def two_at_once(x: Any) -> Any:
    def split() -> Any:
        if x[1] > 0:
            return Rotation(x * 2), Rotation(x[::-1])
        return Rotation(x * 3), Rotation(x)

    one, other = split()
    one.q = one.q * 2
    return np.sum(one.q * other.q)


def one_made_and_one_changed(x: Any) -> Any:
    made = Rotation(x)
    if x[0] > 0:
        made = Rotation(2 * x)
    else:
        made.q = 5 * x
    return made.q.sum() * x[1]


def part_of_both(x: Any) -> Any:
    base = Slotted(x, 1.0)

    def made() -> Any:
        if x[0] > 0:
            return Slotted(base, x[1])
        return Slotted(base, x[2])

    found = made()
    found.first.first = found.first.first * 2
    return base.first.sum() * found.second


def list_in_an_object(x: Any) -> Any:
    made = Slotted([x[0]], 1.0) if x[0] > 0 else Slotted([x[1]], 2.0)
    made.first[0] = made.first[0] * 3
    return made.first[0] * made.second


def namespaces(x: Any) -> Any:
    made = types.SimpleNamespace(a=x[0], b=x * 2) if x[1] > 0 else types.SimpleNamespace(a=x[1], b=x * 3)
    made.c = made.a**2
    return made.c * np.sum(made.b)


ONE_PROGRAM = (
    in_a_loop,
    operators_and_properties,
    slots_changed_afterwards,
    in_each_other,
    in_a_named_tuple,
    two_at_once,
    one_made_and_one_changed,
    part_of_both,
    list_in_an_object,
    namespaces,
)


def kept_in_a_list(x: Any) -> Any:
    one = Rotation(x)
    kept = [one]
    found = one if x[0] > 0 else Rotation(2 * x)
    found.q = found.q * 3
    return kept[0].q.sum() + found.q[0]


def compared_by_is(x: Any) -> Any:
    one, other = Rotation(x), Rotation(2 * x)
    found = one if x[0] > 0 else other
    return (1.0 if found is one else 2.0) * x.sum() + found.q[1]


def compared_as_equal(x: Any) -> Any:
    one, other = Rotation(x), Rotation(2 * x)
    found = one if x[0] > 0 else other
    return (1.0 if found == one else 2.0) * x.sum() + found.q[1]


def two_names_on_one_path(x: Any) -> Any:
    if x[0] > 0:
        one = other = Rotation(x)
    else:
        one, other = Rotation(x), Rotation(2 * x)
    one.q = one.q * 3
    return other.q.sum()


def one_list_by_two_names(x: Any) -> Any:
    def made(v: Any) -> Slotted:
        items = [v]
        return Slotted(items, items)

    found = made(x[0]) if x[0] > 0 else made(x[1])
    found.first[0] = found.first[0] * 3
    return found.second[0] * x[1]


def tuple_kept_elsewhere(x: Any) -> Any:
    pair = (Rotation(x), 1.0)
    found = pair if x[0] > 0 else (Rotation(2 * x), 2.0)
    rotation, weight = found
    rotation.q = rotation.q * 3
    return pair[0].q.sum() * weight


class Linked:
    def __init__(self, value: Any) -> None:
        self.value, self.own = value, self


def that_holds_itself(x: Any) -> Any:
    found = Linked(x) if x[0] > 0 else Linked(2 * x)
    found.value = found.value * 3
    return found.own.value.sum()


BY_PATHS = (
    kept_in_a_list,
    compared_by_is,
    compared_as_equal,
    two_names_on_one_path,
    one_list_by_two_names,
    tuple_kept_elsewhere,
    that_holds_itself,
)


def list_made_or_changed(x: Any) -> Any:
    items = [x[0], 1.0]
    if x[0] > 0:
        items = [x[1], 2.0]
    else:
        items[0] = x[2]
    return items[0] * items[1]


def list_changed_in_a_tuple(x: Any) -> Any:
    inner = [x[0]]
    found = (inner, 1.0)
    if x[0] > 0:
        found = ([x[1]], 3.0)
    else:
        inner[0] = x[2] ** 2
    return found[0][0] * found[1]


def agrees(function: Function, backend: str) -> None:
    for x in POINTS:
        value, found = sg.value_and_grad(function, backend=backend)(x.copy())
        np.testing.assert_allclose(value, function(x.copy()), rtol=1e-12)
        expected = [(function(x + step) - function(x - step)) / 2e-6 for step in 1e-6 * np.eye(3)]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("function", ONE_PROGRAM, ids=lambda f: f.__name__)
def test_a_new_object_of_either_branch_is_one_program(function: Function, backend: str) -> None:
    sg.jit(function, strict=True)(POINTS[0].copy())
    agrees(function, backend)


@pytest.mark.parametrize("function", BY_PATHS, ids=lambda f: f.__name__)
def test_an_object_that_the_program_holds_in_another_way_is_that_object(function: Function) -> None:
    with pytest.raises(sg.errors.ArgumentError, match="depending on a traced condition"):
        sg.jit(function, strict=True)(POINTS[0].copy())
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        agrees(function, "llvm")


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("function", [list_made_or_changed, list_changed_in_a_tuple], ids=lambda f: f.__name__)
def test_what_a_branch_changes_in_a_list_is_in_what_stands_for_it(function: Function, backend: str) -> None:
    sg.jit(function, strict=True)(POINTS[0].copy())
    agrees(function, backend)


class Watching:
    """It answers what is asked of it."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __getattr__(self, name: str) -> Any:
        return 3.0


def test_an_object_that_is_more_than_its_attributes_has_paths() -> None:
    def watched(x: Any) -> Any:
        made = Watching(x[0]) if x[1] > 0 else Watching(x[1])
        return made.x * made.weight

    with pytest.raises(sg.errors.ArgumentError, match="another Watching"):
        sg.jit(watched, strict=True)(POINTS[0].copy())
    agrees(watched, "llvm")
