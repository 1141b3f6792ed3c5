"""Calls answered in machine code take exactly the arguments that they were made for."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.transformed import SERVED_FROM, Transformed
from tests.backends.llvm.front_cases import arrays, numbers, total
from tests.backends.llvm.front_support import X, needs_machine, outcome, same, served

pytest.importorskip("llvmlite")
from srcgrad import front
from srcgrad.backends.llvm import front as tables

pytestmark = needs_machine


def summed(x: Any) -> Any:
    return np.sum(np.sin(x) * x)


@pytest.mark.parametrize("transform", [sg.grad, sg.value_and_grad, sg.jit], ids=lambda t: t.__name__)
@pytest.mark.parametrize("name", arrays())
def test_other_arrays_are_not_taken_for_these(name: str, transform: Any, guards: str) -> None:
    given = arrays()[name]()
    f = served(transform(summed, backend="llvm"), arrays()["the same"]())
    for _ in range(2 * SERVED_FROM):
        assert same(outcome(f, given), outcome(transform(summed, backend="numpy"), given))
        assert same(f(arrays()["the same"]()), transform(summed, backend="numpy")(arrays()["the same"]()))


def through_a_view(x: Any) -> Any:
    """What ravel gives is a view where the array is in C order, and a copy elsewhere."""
    y = x * 1.0
    flat = y.ravel()
    flat *= 3.0
    return np.sum(np.sin(y))


@pytest.mark.parametrize("name", ["Fortran order", "strided", "reversed", "not aligned"])
def test_arrays_of_another_layout_have_another_program(name: str) -> None:
    plain, given = arrays()["the same"](), arrays()[name]()
    f = served(sg.grad(through_a_view, backend="llvm"), plain)
    for _ in range(2 * SERVED_FROM):
        assert same(f(given), sg.grad(through_a_view, backend="numpy")(given))
        assert same(f(plain), 3.0 * np.cos(3.0 * plain))


@pytest.mark.parametrize("transform", [sg.grad, sg.value_and_grad, sg.jit], ids=lambda t: t.__name__)
@pytest.mark.parametrize("name", numbers())
def test_other_numbers_are_not_taken_for_these(name: str, transform: Any) -> None:
    given = numbers()[name]()
    f = served(transform(summed, backend="llvm"), 1.5)
    for _ in range(2 * SERVED_FROM):
        assert same(outcome(f, given), outcome(transform(summed, backend="numpy"), given))
        assert same(f(1.5), transform(summed, backend="numpy")(1.5))


STATIC: list[tuple[str, Any, list[Any]]] = [
    ("int", 2, [3, -2, 0, True, 2.0, np.int64(2), 2**40, -(2**31), 2**62, None]),
    ("zero", 0, [1, -1, False, 0.0]),
    ("negative", -3, [3, -4]),
    ("bool", True, [False, 1, 1.0, np.True_]),
]


@pytest.mark.parametrize(("name", "value", "others"), STATIC, ids=[case[0] for case in STATIC])
def test_static_arguments_are_compared(name: str, value: Any, others: list[Any], asked: list[Transformed]) -> None:
    def f(x: Any, n: Any) -> Any:
        return np.sum(np.sin(x) * (n if n is not None else 5.0))

    g = served(sg.grad(f, backend="llvm"), X, value)
    asked.clear()
    g(X, value)
    assert not asked
    for other in others:
        assert same(outcome(g, X, other), outcome(sg.grad(f, backend="numpy"), X, other))
        assert same(g(X, value), sg.grad(f, backend="numpy")(X, value))


TREES: list[tuple[str, Any, list[Any]]] = [
    ("tuple", (X, 2.0), [[X, 2.0], (X, 2.0, 3.0), (2.0, X), (X,), (X, (2.0,)), (X, np.float64(2.0))]),
    ("list", [X, 2.0], [(X, 2.0), [X], [X, 2.0, X], [], [X, [2.0]]]),
    ("dict", {"a": X, "b": 2.0}, [{"b": 2.0, "a": X}, {"a": X}, {"a": X, "c": 2.0}, {"a": X, "b": 2.0, "c": X}, [X]]),
    ("nested", {"w": [X, (2.0, None)]}, [{"w": [X, (2.0, 3.0)]}, {"w": [X, [2.0, None]]}, {"w": (X, (2.0, None))}]),
    ("empty", ([], X), [([2.0], X), ((), X), ({}, X)]),
]


@pytest.mark.parametrize(("name", "tree", "others"), TREES, ids=[case[0] for case in TREES])
def test_containers_are_looked_into(name: str, tree: Any, others: list[Any], asked: list[Transformed]) -> None:
    f = served(sg.value_and_grad(total, backend="llvm"), tree)
    asked.clear()
    f(tree)
    assert not asked
    for other in others:
        assert same(outcome(f, other), outcome(sg.value_and_grad(total, backend="numpy"), other))
        assert same(f(tree), sg.value_and_grad(total, backend="numpy")(tree))


def by_name(x: Any, y: Any = 2.0, *, z: Any = 3.0) -> Any:
    return np.sum(np.sin(x) * y * z)


def test_counts_of_arguments_are_compared(asked: list[Transformed]) -> None:
    g, plain = served(sg.grad(by_name, backend="llvm"), X), sg.grad(by_name, backend="numpy")
    asked.clear()
    for args, kwargs in (
        ((X,), {"z": 5.0}),
        ((X,), {"y": 7.0}),
        ((X, 7.0), {}),
        ((), {}),
        ((), {"x": X}),
        ((X,) * 5, {}),
    ):
        assert same(outcome(g, *args, **kwargs), outcome(plain, *args, **kwargs))
    assert same(g(*[X], **dict[str, Any]()), plain(X))
    assert [call for call in asked if call is g] == [g] * 6


def test_keywords_are_taken_by_name_in_the_order_of_the_call(asked: list[Transformed]) -> None:
    g, plain = served(sg.grad(by_name, backend="llvm"), X, z=5.0, y=7.0), sg.grad(by_name, backend="numpy")
    expected = plain(X, y=0.5, z=1.5)
    asked.clear()
    assert same(g(X, z=1.5, y=0.5), expected)
    assert not asked
    others: list[dict[str, Any]] = [
        {"y": 0.5, "z": 1.5}, {"z": 1.5}, {"z": 2, "y": 0.5}, {"z": np.ones(6), "y": 0.5}, {"z": None, "y": 0.5},
        {"z": 1.5, "y": 0.5, "w": 1.0}, {"w": 1.5, "y": 0.5}, {"z": 1.5, "x": 0.5},
        {"".join("z"): 1.5, "".join("y"): 2.5},
    ]  # fmt: skip
    for kwargs in others:
        assert same(outcome(g, X, **kwargs), outcome(plain, X, **kwargs))
        assert same(g(X, z=1.5, y=0.5), plain(X, y=0.5, z=1.5))
    assert same(outcome(g, z=1.5, y=0.5), outcome(plain, z=1.5, y=0.5))
    assert same(functools.partial(g, z=1.5)(X, y=0.5), plain(X, y=0.5, z=1.5))
    served(g, X, y=0.5, z=1.5)
    asked.clear()
    assert same(g(X, y=0.5, z=1.5), g(X, z=1.5, y=0.5))
    assert not asked


def test_containers_among_keywords_are_looked_into(asked: list[Transformed]) -> None:
    def f(x: Any, **more: Any) -> Any:
        return np.sum(np.sin(x)) * total(more)

    more: dict[str, Any] = {"b": {"w": X, "n": 2.0}, "a": (X, [1.5])}
    g, plain = served(sg.value_and_grad(f, backend="llvm"), X, **more), sg.value_and_grad(f, backend="numpy")
    expected = plain(X, **more)
    asked.clear()
    assert same(g(X, **more), expected)
    assert not asked
    for other in ({"b": 1.0, "a": X}, {"b": more["b"], "a": (X, (1.5,))}, {"b": more["b"], "a": (X, [1.5, 2.5])}):
        assert same(outcome(g, X, **other), outcome(plain, X, **other))


class Pair(NamedTuple):
    w: Any
    b: Any


class Other(NamedTuple):
    w: Any
    b: Any


class Longer(Pair):
    """A subclass, whose instances have a dict."""


@dataclass
class Record:
    w: Any
    b: Any = 2.0


@dataclass
class Below(Record):
    c: Any = 1.0


@dataclass(frozen=True)
class Frozen:
    w: Any
    b: Any


@dataclass(slots=True)
class Slotted:
    w: Any
    b: Any


@dataclass
class Late:
    w: Any
    b: Any = field(init=False)


def without(record: Any, name: str) -> Any:
    delattr(record, name)
    return record


def in_a_dict(record: Any) -> Any:
    """The record, whose attributes now lie in a dict."""
    vars(record)
    return record


def with_names(record: Any, **names: Any) -> Any:
    record.__dict__.update(names)
    return record


RECORDS: dict[str, tuple[Any, list[Callable[[], Any]]]] = {
    "namedtuple": (Pair(X, 2.0), [lambda: Other(X, 2.0), lambda: (X, 2.0), lambda: Pair(2.0, X), lambda: Pair(X, 3),
                                  lambda: Longer(X, 2.0), lambda: Pair(X, (2.0,))]),
    "subclass": (Longer(X, 2.0), [lambda: Pair(X, 2.0)]),
    "dataclass": (Record(X), [lambda: Record(X, 3.0), lambda: Record(2.0, X), lambda: without(Record(X, 1.0), "b"),
                              lambda: without(Record(X), "w"), lambda: Frozen(X, 2.0), lambda: Below(X, 2.0),
                              lambda: with_names(Record(X), c=1.0), lambda: Record(X, 3), lambda: Record(X, None)]),
    "derived": (Below(X, 2.0, 3.0), [lambda: Record(X, 2.0), lambda: Below(X, 2.0, X)]),
    "frozen": (Frozen(X, 2.0), [lambda: Frozen(2.0, X), lambda: Record(X, 2.0)]),
    "slots": (Slotted(X, 2.0), [lambda: Slotted(X, 3.0), lambda: without(Slotted(X, 2.0), "w")]),
    "nested": ({"a": Pair(Record(X, [1.5]), Slotted(X, 2.0))}, [lambda: {"a": Pair(Record(X, 1.5), Slotted(X, 2.0))}]),
}  # fmt: skip


def weight(tree: Any) -> Any:
    """As `total`, through the fields of records too."""
    if isinstance(tree, (Record, Frozen, Slotted)):
        return weight(tree.w) + 2.0 * weight(tree.b)
    if isinstance(tree, dict):
        return sum(weight(tree[key]) for key in sorted(tree))
    if isinstance(tree, (list, tuple)):
        return sum((weight(item) * (1.0 + k) for k, item in enumerate(tree)), 0.0)
    return 0.0 if tree is None else np.sum(np.sin(tree) * tree)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("name", RECORDS)
def test_records_are_looked_into(name: str, asked: list[Transformed]) -> None:
    tree, others = RECORDS[name]
    f, plain = served(sg.value_and_grad(weight, backend="llvm"), tree), sg.value_and_grad(weight, backend="numpy")
    expected = plain(tree)
    asked.clear()
    assert same(f(tree), expected)
    assert not asked
    for other in others:
        assert same(outcome(f, other()), outcome(plain, other()))
        assert same(f(tree), plain(tree))


def test_attributes_are_found_among_values_and_in_dicts(asked: list[Transformed]) -> None:
    copy.copy(Record(X))  # which writes something into the class, once
    f = served(sg.grad(weight, backend="llvm"), Record(X, 2.0))
    plain = sg.grad(weight, backend="numpy")
    asked.clear()
    for make in (lambda: Record(X, 3.0), lambda: in_a_dict(Record(X, 4.0)), lambda: copy.copy(Record(X, 5.0))):
        assert same(f(make()), plain(make()))
    result = f(Record(X, 6.0))
    result.b = 1.0
    assert same(f(result), plain(result))
    assert [call for call in asked if call is f] == []


def test_a_class_that_changes_is_looked_at_again(asked: list[Transformed]) -> None:
    @dataclass
    class Changing:
        w: Any
        b: Any

    def f(r: Any) -> Any:
        return np.sum(np.sin(r.w) * r.b)

    record = Changing(X, 2.0)
    g = served(sg.jit(f, backend="llvm"), record)
    cls: Any = Changing
    cls.b = property(lambda self: 7.0)
    assert same(g(record), 7.0 * np.sum(np.sin(X)))
    del cls.b
    for _ in range(2 * SERVED_FROM):
        assert same(g(record), 2.0 * np.sum(np.sin(X)))
    asked.clear()
    g(record)
    assert not asked


def test_a_record_whose_class_decides_what_is_read_goes_to_python(asked: list[Transformed]) -> None:
    @dataclass
    class Watched:
        w: Any
        b: Any

        def __getattribute__(self, name: str) -> Any:
            return object.__getattribute__(self, name)

    f = sg.grad(lambda r: np.sum(np.sin(r.w) * r.b), backend="llvm")
    for _ in range(2 * SERVED_FROM):
        assert same(f(Watched(X, 2.0)).w, 2.0 * np.cos(X))
    late = Late(X)
    h = sg.grad(lambda r: np.sum(np.sin(r.w)), backend="llvm")
    for _ in range(2 * SERVED_FROM):
        assert same(h(late).w, np.cos(X))
    assert not hasattr(f, "_tables") and not hasattr(h, "_tables")


class Stored:
    """A descriptor that reads and writes another attribute."""

    def __get__(self, instance: Any, owner: Any) -> Any:
        return instance.real

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__["real"] = value


def test_a_descriptor_that_decides_what_is_read_is_asked() -> None:
    @dataclass
    class Shadowed:
        w: Any
        b: Any

    record = Shadowed(X, 2.0)  # whose own attribute nothing reads any more
    Shadowed.b = Stored()
    record.b = 5.0
    f = sg.jit(lambda r: (r, np.sin(r.w)), backend="llvm")
    for _ in range(2 * SERVED_FROM):
        assert f(record)[0].b == 5.0


def test_many_arguments_are_taken_up_to_a_limit(asked: list[Transformed], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_ARGUMENTS", 128)
    for count, answered in ((100, True), (200, False)):
        given = [float(k) for k in range(count)]
        f = sg.grad(lambda xs: sum(x * x for x in xs), backend="llvm")
        for _ in range(SERVED_FROM):
            f(given)
        asked.clear()
        assert same(f(given), [np.float64(2.0 * k) for k in range(count)])
        assert (not asked) == answered


def test_tables_of_few_and_of_many_arrays_are_answered_in_turn(asked: list[Transformed]) -> None:
    """Each finds as many registers on the stack as it has, and places for what it gives and builds."""

    def loss(parameters: Any) -> Any:
        return sum(np.sum(p * p) for layer in parameters for p in layer.values())

    f = sg.value_and_grad(loss, backend="llvm")
    models = [[{"w": np.full(2, k + 1.0), "b": np.full((), 0.5)} for k in range(count)] for count in (2, 700, 60)]
    for model in models:
        for _ in range(SERVED_FROM):
            f(model)
    asked.clear()
    for model in models[::-1] * 2:
        value, gradient = f(model)
        assert np.isclose(value, loss(model))
        assert len(gradient) == len(model)
        for found, given in zip(gradient, model, strict=True):
            assert np.array_equal(found["w"], 2 * given["w"]) and found["b"] == 1.0
    assert not asked


def test_many_results_of_few_arguments_have_places(asked: list[Transformed]) -> None:
    f = served(sg.jit(lambda x: [[x * k, k] for k in range(300)], backend="llvm"), X)
    asked.clear()
    assert same(f(X), [[X * k, k] for k in range(300)])
    assert not asked


def test_several_signatures_are_answered_and_the_newest_kept(asked: list[Transformed]) -> None:
    f = sg.grad(summed, backend="llvm")
    shapes = [np.ones(n) for n in range(2, 2 + front.MOST_TABLES + 2)]
    for x in shapes:
        for _ in range(SERVED_FROM):
            f(x)
    asked.clear()
    for x in reversed(shapes):
        assert same(f(x), sg.grad(summed, backend="numpy")(x))
    assert [call for call in asked if call is f] == [f] * 2
