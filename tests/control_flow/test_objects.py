"""Objects and containers of the user's: which one it is, slots, properties and operators, attributes that are set."""

from __future__ import annotations

import collections
import dataclasses
import enum
import heapq
import itertools
import math
import operator
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

POINTS = (np.array([0.5, 0.7, 2.5]), np.array([-0.5, 0.7, 1.5]), np.array([-0.45, 0.8, -1.0]))
Function = Callable[[Any], Any]
MUST_WATCH = "is one of several objects, depending on a traced condition, and changed"


@dataclass
class Record:
    value: Any
    count: int = 0


@dataclass(frozen=True)
class Spring:
    stiffness: Any
    mass: Any

    @property
    def frequency(self) -> Any:
        return math.sqrt(self.stiffness / self.mass) if self.stiffness > 0 else 0.0 * self.mass


class Slotted:
    __slots__ = ("first", "second")

    def __init__(self, first: Any) -> None:
        self.first = first
        self.second: Any = 1.0

    def raised(self, x: Any) -> None:
        if x > self.first:
            self.first, self.second = x, self.second * 2


class Vector:
    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    def __add__(self, other: Any) -> Vector:
        return Vector(*(a + b for a, b in zip(self.parts, other.parts, strict=True)))

    def __iter__(self) -> Any:
        return iter(self.parts)

    def __bool__(self) -> bool:
        return True

    @property
    def size(self) -> Any:
        return math.sqrt(sum(part * part for part in self))

    @size.setter
    def size(self, size: Any) -> None:
        scale = size / self.size if size > 0.1 else 0.1
        self.parts = tuple(part * scale for part in self.parts)


class Mode(enum.Enum):
    UP = 1
    DOWN = -1


class Plain:
    limit = 1.0

    def __init__(self, x: Any) -> None:
        self.x = x


def slots(x: Any) -> Any:
    thing = Slotted(x[0])
    for v in x:
        thing.raised(v)
    return thing.first * thing.second + x[1]


def properties_and_operators(x: Any) -> Any:
    total = Vector(x[0], x[1]) + Vector(x[1], x[2])
    total.size = x[0] + 0.67
    one, other = total
    return total.size * one + other + Spring(x[1], 2.0).frequency + Spring(x[0], 1.0).frequency


def attributes_set_outside_of_methods(x: Any) -> Any:
    thing = Plain(x[0])
    thing.y = x[1]  # type: ignore[attr-defined]
    for _ in range(5):
        thing.x += thing.y * thing.limit  # type: ignore[attr-defined]
        if thing.x > 1:
            thing.x = thing.x * 0.5
            thing.y *= 0.9  # type: ignore[attr-defined]
    return thing.x


def own_dict_rebound(x: Any) -> Any:
    state = {"value": x[0], "scale": 1.0}
    if x[2] > 0:
        state = {"value": x[1], "scale": 2.0}
    state["value"] *= 3
    return state["value"] * state["scale"]


def own_record_rebound_in_a_loop(x: Any) -> Any:
    best = Record(x[0], 1)
    for k in range(40):
        other = Record(x[1] * k - x[0] * k * k * 0.1, k)
        if other.value > best.value:
            best = other
    return best.value * best.count + other.count


def namespaces(x: Any) -> Any:
    state = types.SimpleNamespace(x=x[0], v=0.0, trips=0, options=types.SimpleNamespace(step=0.01), log=[])
    for _ in range(30):
        state.v -= state.options.step * x[1] * np.sin(state.x)
        if state.v < -0.001:
            state.v = state.v * 0.5
        state.x += state.options.step * state.v
        state.trips += 1
        state.log.append(state.x)
    return state.x + state.v * state.trips + np.mean(state.log)


def replaced_records(x: Any) -> Any:
    spring = Spring(x[1], 1.0)
    for _ in range(40):
        spring = dataclasses.replace(spring, stiffness=spring.stiffness * 0.97, mass=spring.mass + 0.01)
    return spring.frequency


def modes(x: Any) -> Any:
    mode, total = Mode.UP, x[0]
    for k in range(6):
        total = total * 1.1 + x[1] if mode is Mode.UP else total - 0.5 * x[2]
        mode = Mode.DOWN if k % 2 else Mode.UP
    return total * mode.value


def library_tools(x: Any) -> Any:
    queue = collections.deque(x[k] for k in range(3))
    queue.rotate(1)
    pairs = itertools.combinations(queue, 2)
    return sum(itertools.starmap(operator.mul, pairs)) + operator.sub(queue.popleft(), queue.pop())


def nearest(x: Any) -> Any:
    centres = [x * 0.9, x[::-1]]
    return np.argmin([np.sum((x - centre) ** 2) for centre in centres]) * x[0] + np.max([x[1], x[0]])


ONE_PROGRAM = (
    slots,
    properties_and_operators,
    attributes_set_outside_of_methods,
    own_dict_rebound,
    own_record_rebound_in_a_loop,
    replaced_records,
    namespaces,
    modes,
    library_tools,
    nearest,
)


def one_of_two_lists(x: Any) -> Any:
    one, other = [x[0], 1.0], [x[1], 2.0]
    picked = one if x[0] > 0 else other
    picked[0] = 5.0 * x[2]
    return one[0] * 3 + other[0] + picked[0]


def source_changed_after_a_branch(x: Any) -> Any:
    one, other = [x[0], 1.0], [x[1], 2.0]
    picked = one
    if x[0] > 0:
        picked = other
    other[0] *= 2
    return one[0] * 3 + picked[0]


def one_of_two_records(x: Any) -> Any:
    one, other = Record(x[0]), Record(x[1])
    picked = one if x[0] > 0 else other
    picked.value = picked.value * 5.0
    return one.value * 3 + other.value


def nested_in_another(x: Any) -> Any:
    inner = [x[0], x[1]]
    outer = {"inner": [x[2], x[0]]}
    if x[0] > 0:
        outer = {"inner": inner}
    outer["inner"][0] = 2.0 * x[1]
    return inner[0] + outer["inner"][1]


WATCHED = (one_of_two_lists, source_changed_after_a_branch, one_of_two_records, nested_in_another)


def rebound_in_a_loop(x: Any) -> Any:
    best = [x[0], 1.0]
    kept, k = best, 0
    while k < x[2]:
        best, k = [best[0] * 0.9, 2.0], k + 1
    best[0] = 5.0 * x[1]
    return kept[0] + best[1]


def smallest_first(x: Any) -> Any:
    heap: list[Any] = []
    for v in x:
        heapq.heappush(heap, v)
    return sum((k + 1) * heapq.heappop(heap) for k in range(3))


def agrees(function: Function) -> None:
    for x in POINTS:
        value, found = sg.value_and_grad(function)(x.copy())
        np.testing.assert_allclose(value, function(x.copy()), rtol=1e-12)
        expected = [(function(x + step) - function(x - step)) / 2e-6 for step in 1e-6 * np.eye(3)]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("function", ONE_PROGRAM, ids=lambda f: f.__name__)
def test_one_program(function: Function) -> None:
    sg.jit(function, strict=True)(POINTS[0].copy())
    agrees(function)


@pytest.mark.parametrize("function", WATCHED, ids=lambda f: f.__name__)
def test_what_stands_for_one_of_two_objects_is_not_changed(function: Function) -> None:
    with pytest.raises(sg.errors.ArgumentError, match=MUST_WATCH):
        sg.jit(function, strict=True)(POINTS[0].copy())
    agrees(function)


@pytest.mark.parametrize("function", [rebound_in_a_loop, smallest_first], ids=lambda f: f.__name__)
def test_paths_where_python_must_know(function: Function) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        agrees(function)


def made(x: Any) -> Spring:
    spring = Spring(x, 2 * x)
    if x > 0.5:
        spring = Spring(x * 3, x)
    for _ in range(40):
        spring = Spring(spring.stiffness * 0.9, spring.mass) if spring.frequency > 0.1 else spring
    return spring


def test_objects_are_of_their_own_classes_after_the_trace() -> None:
    found = sg.jit(made, strict=True)(1.0)
    expected = made(1.0)
    assert type(found) is Spring
    np.testing.assert_allclose([found.stiffness, found.mass], [expected.stiffness, expected.mass])
    seen: list[Any] = []

    def keeps(x: Any) -> Any:
        vectors = [Vector(x, 1.0), Vector(x, x)]
        seen.extend(vectors)
        assert type(vectors[0]) is Vector
        return (vectors[0] + vectors[1]).size

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        sg.grad(keeps)(2.0)
    assert {type(vector) for vector in seen} == {Vector}


robot = Vector(0.5, 1.0)


def test_properties_of_captured_objects_are_converted() -> None:
    def scaled(x: Any) -> Any:
        return robot.size * x

    assert sg.jit(scaled, strict=True)(2.0) == scaled(2.0)
    assert type(robot) is Vector
    robot.parts = (3.0, 4.0)
    assert sg.grad(scaled)(2.0) == 5.0


def test_an_object_with_traced_values_that_is_returned_is_pythons() -> None:
    def namespace(x: Any) -> Any:
        return types.SimpleNamespace(inner=types.SimpleNamespace(y=x * 2.0), n=3)

    def own(x: Any) -> Any:
        made: Any = Plain(x)
        made.inner = types.SimpleNamespace(y=[x * 2.0])
        return made

    x = np.ones(2)
    with pytest.warns(sg.RetraceWarning, match="holds traced values"):
        assert sg.jit(namespace)(x).inner.y.tolist() == [2.0, 2.0]
    with pytest.warns(sg.RetraceWarning, match="holds traced values"):
        assert sg.jit(own)(x).inner.y[0].tolist() == [2.0, 2.0]
