"""What a call that raises an error has done before: once, as in plain Python."""

from __future__ import annotations

import array
import collections
import contextlib
import gc
import random
import types
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.tracing.undoing import Undo, put_dict

pytestmark = pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
SEEN: list[Any] = []


def raises(x: Any) -> Any:
    SEEN.append(x)
    if x < 0:
        raise ValueError("too small", x)
    return x * len(SEEN)


def asserts(x: Any) -> Any:
    SEEN.append(x)
    assert x > 0, f"{x:.1f} is too small"
    return x * len(SEEN)


def checked(x: Any) -> Any:
    if x < 0:
        raise RuntimeError("too small")
    return x


def finishes(x: Any) -> Any:
    """One program would raise the error, and not come to what is behind it."""
    SEEN.append(x)
    try:
        return checked(x)
    finally:
        SEEN.append(2.0)


def finishes_and_handles(x: Any) -> Any:
    try:
        return checked(x)
    except KeyError:
        return x
    finally:
        SEEN.append(3.0)


class Timed:
    def __enter__(self) -> None:
        SEEN.append(4.0)

    def __exit__(self, kind: Any, error: Any, place: Any) -> None:
        SEEN.append(0.0 if kind is None else 1.0)


@contextlib.contextmanager
def timed() -> Iterator[float]:
    SEEN.append(5.0)
    try:
        yield 2.0
    finally:
        SEEN.append(6.0)


def leaves(x: Any) -> Any:
    with Timed():
        return checked(x)


def leaves_a_generator(x: Any) -> Any:
    with timed() as factor:
        return checked(x) * factor


def leaves_a_trip(x: Any) -> Any:
    for k in range(2):
        with Timed():
            x = checked(x) - k
    return x


def has_no_key(x: Any) -> Any:
    SEEN.append(x)
    return {"a": x}["b" if x < 0 else "a"]


def is_no_number(x: Any) -> Any:
    SEEN.append(x)
    return x * int("a" if x < 0 else "2")


def has_no_attribute(x: Any) -> Any:
    SEEN.append(2.0)
    return x.nope if x < 0 else x


def has_no_place(x: Any) -> Any:
    SEEN.append(x)
    return np.ones(3)[5 if x < 0 else 0] * x + np.array([x, x])[len(SEEN) % 2]


def made() -> Exception:
    return ValueError("made elsewhere")


def raises_what_is_made(x: Any) -> Any:
    SEEN.append(x)
    if x < 0:
        error = made()
        raise error
    return x * len(SEEN)


def raises_in_a_handler(x: Any) -> Any:
    SEEN.append(x)
    try:
        return {True: x}[bool(x > 0)] * len(SEEN)
    except KeyError:
        SEEN.append(1.0)
        raise ValueError("handled", x) from None


def fails_before_finally(x: Any) -> Any:
    SEEN.append(len(SEEN))
    try:
        return np.array([x])[0 if x > 0 else 7]
    finally:
        SEEN.append(8.0)


class Held:
    __slots__ = ("drawn", "many")
    count = 0
    rng = np.random.default_rng(0)
    seen: ClassVar[set[int]] = set()
    last: ClassVar[collections.deque[float]] = collections.deque(maxlen=2)
    table: ClassVar[collections.OrderedDict[str, float]] = collections.OrderedDict()
    array = np.zeros(1)

    def reset(self) -> None:
        Held.count, Held.rng = 0, np.random.default_rng(0)
        self.seen.clear(), self.last.clear(), self.table.clear()
        self.many = self.array[0] = 0.0
        del self.drawn


HELD = Held()


class Counted(collections.OrderedDict[str, float]):
    """Its own methods, and those of what it holds, are called by the function alone."""

    stored = 0

    def __setitem__(self, key: str, value: float) -> None:
        Counted.stored += 1
        super().__setitem__(key, value)


class Place:
    asked = 0

    def __hash__(self) -> int:
        Place.asked += 1
        return 1


class Root(complex):
    """What it has in slots can be read only."""


class Rows(np.ndarray):
    def copy(self, order: Any = "C") -> Any:
        raise AssertionError

    def __array_function__(self, *_: Any) -> Any:
        raise AssertionError


class Kinds:
    """What `changes_kinds_that_few_have` changes, or has only at hand."""

    def __init__(self) -> None:
        self.order = collections.OrderedDict(a=1, b=2, c=3)
        self.order.move_to_end("a")
        self.counted, self.places = Counted(), {Place(): 1.0}
        self.users, self.numbers, self.text = collections.UserList([1.0]), array.array("d", [0.0]), bytearray(b"a")
        self.objects, self.rows = np.array([None, []], dtype=object), np.zeros(2).view(Rows)
        self.fixed = types.MappingProxyType({"seen": [0.0]})
        self.root, self.system, self.drawn = Root(1 + 2j), random.SystemRandom(), random.Random(1)
        Counted.stored = Place.asked = 0


KINDS = [Kinds()]


def changes_kinds_that_few_have(x: Any) -> Any:
    held = KINDS[0]
    held.order.move_to_end(next(iter(held.order)))
    held.counted["n"] = len(held.users) * 1.0
    held.users.append(1.0)
    held.numbers[0] += 1.0
    held.text[0] += 1
    held.objects[1].append(1.0)
    held.objects[0] = len(held.objects[1])
    held.rows[0] += 1.0
    held.fixed["seen"].append(held.system.random() * 0.0 + held.root.real)
    SEEN.extend((Counted.stored, Place.asked, len(held.places), *map(ord, held.order), *held.users, held.numbers[0]))
    SEEN.extend((held.text[0], held.objects[0], float(held.rows[0]), len(held.fixed["seen"]), held.drawn.gauss(0, 1)))
    return np.array([x])[7 if x < 0 else 0] * len(SEEN)


def changes_all_kinds(x: Any) -> Any:
    """What is appended shows all else that the function has changed."""
    Held.count += 1
    HELD.seen.add(len(HELD.seen))
    HELD.last.append(Held.count + 0.5)
    HELD.table[f"of {len(HELD.table)}"] = 1.0
    HELD.many += 2.0
    HELD.drawn = HELD.rng.random()
    HELD.array[0] += 1.0
    found = [Held.count, len(HELD.seen), *HELD.last, len(HELD.table), HELD.many, HELD.drawn, HELD.array[0]]
    SEEN.extend(map(float, found))
    return np.array([x])[7 if x < 0 else 0] * len(SEEN)


def followed(f: Callable[[Any], Any]) -> list[Any]:
    """What each call gives or raises, and what it leaves."""
    SEEN.clear()
    HELD.drawn = 0.0
    HELD.reset()
    KINDS[:] = [Kinds()]
    found = []
    for x in (2.5, -1.25, 3.0, -0.5):
        try:
            found.append(float(f(x)))
        except Exception as error:
            kind = next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins")
            said = (
                () if issubclass(kind, (AssertionError, AttributeError, IndexError)) else error.args
            )  # which say more
            found.append((kind, said))
        found.append([*map(float, SEEN)])
    return found


@pytest.mark.parametrize(
    "f",
    [
        raises,
        asserts,
        finishes,
        finishes_and_handles,
        leaves,
        leaves_a_generator,
        leaves_a_trip,
        has_no_key,
        is_no_number,
        has_no_attribute,
        has_no_place,
        raises_what_is_made,
        raises_in_a_handler,
        fails_before_finally,
        changes_all_kinds,
        changes_kinds_that_few_have,
    ],
)
def test_what_was_done_before_an_error_is_done_once(f: Callable[[Any], Any]) -> None:
    of_value = followed(lambda x: sg.value_and_grad(f)(x)[0])
    assert of_value == followed(sg.jit(f)) == followed(f)


def test_what_comes_before_an_error_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    def shown(x: Any) -> Any:
        SEEN.append(1.0)
        print(f"{len(SEEN)} of")
        return np.array([x])[len(SEEN)]

    SEEN.clear()
    for _ in range(2):
        with pytest.raises(IndexError):
            sg.grad(shown)(1.0)
    assert capsys.readouterr().out == "1 of\n2 of\n"


def test_what_a_function_within_prints_before_an_error_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    def shown(x: Any) -> Any:
        print(f"{x:.1f}")
        SEEN.append(1.0)
        return x * len(SEEN) * float(str(x)[0])

    def outer(x: Any) -> Any:
        slope = sg.grad(shown)(x)
        return np.array([slope])[len(SEEN)]

    SEEN.clear()
    with pytest.raises(IndexError):
        sg.grad(outer)(1.0)
    assert (capsys.readouterr().out, SEEN) == ("1.0\n", [1.0])


def test_errors_keep_no_copies_of_what_the_function_reaches() -> None:
    with pytest.raises(ValueError, match="too small") as caught:
        sg.grad(raises)(-1.0)
    gc.collect()
    assert caught.value.args and not any(isinstance(x, Undo) and x.puts for x in gc.get_objects())


def test_what_is_put_back_takes_a_while_for_few_arrays_only() -> None:
    arrays = [np.full(1 << 16, float(n)) for n in range(8)]
    small = np.zeros(2)
    undo = Undo([arrays, small])
    for x in (small, *arrays):
        x += 1.0
    undo.restore()
    assert not small.any()
    assert 0 < sum(x[0] == n for n, x in enumerate(arrays)) < len(arrays)


def test_attributes_that_did_not_change_are_there_while_others_are_put_back() -> None:
    class Dropped:
        def __del__(self) -> None:
            seen.append(list(table))

    seen: list[list[str]] = []
    table: dict[str, Any] = {"one": 1.0, "two": Dropped(), "three": 3.0}
    put_dict(table, {"one": 1.0, "two": 2.0})
    assert (table, seen) == ({"one": 1.0, "two": 2.0}, [["one", "two"]])


def test_a_call_that_is_refused_leaves_all_as_it_was() -> None:
    def counted(x: Any) -> Any:
        SEEN.append(1.0)
        return np.busday_count(x, x) * len(SEEN)

    SEEN.clear()
    with pytest.raises(sg.errors.UnsupportedError):
        sg.grad(counted)(1.0)
    assert not SEEN


def solves(x: Any) -> Any:
    """Managers that take times stand around solvers."""
    with Timed():
        return np.linalg.solve(np.eye(2) * x, np.ones(2))[0]


def shows(x: Any) -> Any:
    SEEN.append(7.0)
    try:
        with timed() as factor:
            SEEN.append(x)
            x = x * factor
    finally:
        SEEN.append(8.0)
    return x


@pytest.mark.parametrize("f", [solves, shows])
def test_what_finishes_behind_what_does_not_fail_is_one_program(f: Callable[[Any], Any]) -> None:
    assert followed(sg.jit(f, strict=True)) == followed(f)


def test_errors_of_the_users_hold_numbers() -> None:
    class Small(ValueError):
        def __init__(self, value: Any) -> None:
            super().__init__("too small", value)
            self.value = value

    def f(x: Any) -> Any:
        SEEN.append(len(SEEN))
        if x[0] < 0:
            raise Small(x)
        return np.sum(x)

    with pytest.raises(Small) as caught:
        sg.grad(f)(np.array([-1.0, 2.0]))
    assert type(caught.value.value) is type(caught.value.args[1]) is np.ndarray
