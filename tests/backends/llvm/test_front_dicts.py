"""Machine code looks into dicts as they are: whatever is done to them, of any kind, and objects that nobody counts."""

from __future__ import annotations

import random
import sys
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.transformed import Transformed
from tests.backends.llvm.front_cases import world
from tests.backends.llvm.front_support import X, needs_machine, outcome, same, served

pytest.importorskip("llvmlite")
from srcgrad.backends.llvm import layout

pytestmark = needs_machine


def another(name: str) -> str:
    """An equal text that is another object."""
    return "".join(list(name))


def rewritten(names: dict[Any, Any], order: Callable[[list[Any]], list[Any]]) -> None:
    items = order(list(names.items()))
    names.clear()
    names.update(items)


def exchanged(items: list[Any]) -> list[Any]:
    """The same, with ``s`` where ``t`` was and the other way round."""
    names, places = dict(items), {"s": "t", "t": "s"}
    return [(places.get(name, name), names.get(places.get(name, name))) for name, _ in items]


DONE_TO_NAMES: dict[str, Callable[[dict[Any, Any], float], Any]] = {
    "value": lambda names, v: names.__setitem__("s", v),
    "removed": lambda names, v: names.pop("s", None),
    "removed and set": lambda names, v: (names.pop("s", None), names.__setitem__("s", v)),
    "last set": lambda names, v: names.popitem() if str(list(names)[-1]).startswith("other") else None,
    "another key object": lambda names, v: (names.pop("s", None), names.__setitem__(another("s"), v)),
    "new names": lambda names, v: names.update({f"other{int(v)}{k}": k for k in range(40)}),
    "exchanged": lambda names, v: rewritten(names, exchanged),
    "reversed": lambda names, v: rewritten(names, lambda items: items[::-1]),
    "rotated": lambda names, v: rewritten(names, lambda items: items[1:] + items[:1]),
    "emptied and filled": lambda names, v: rewritten(names, list),
    "a built-in shadowed": lambda names, v: names.__setitem__("abs", lambda x: v * x),
    "a built-in shown": lambda names, v: names.pop("abs", None),
    "a built-in shadowed under another key object": lambda names, v: names.__setitem__(another("abs"), np.sin),
    "executed": lambda names, v: exec(f"s = {v}\nother = 1\ndel other", names),
    "more than text": lambda names, v: names.__setitem__(5, v),
    "text again": lambda names, v: (names.pop(5, None), rewritten(names, list)),
}


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_done_to_the_globals_is_seen(seed: int) -> None:
    names, steps = (
        world("s, t = 2.0, 3.0\ndef f(x): return np.sum(np.sin(x) * s) * t + abs(x) * s"),
        random.Random(seed),
    )
    f = served(sg.grad(names["f"], backend="llvm"), 0.7)
    plain = sg.grad(names["f"], backend="numpy")
    for number in range(120):
        step = steps.choice(list(DONE_TO_NAMES))
        DONE_TO_NAMES[step](names, 1.0 + number)
        if steps.random() < 0.5:  # as the interpreter does where it finds names often
            layout.ask_version(names)
        for _ in range(steps.choice((1, 1, 2, 6))):
            assert same(outcome(f, 0.7), outcome(plain, 0.7)), (seed, number, step)


@pytest.mark.parametrize("step", DONE_TO_NAMES)
def test_machine_code_answers_again_after_changes_that_leave_the_program(step: str, asked: list[Transformed]) -> None:
    names = world("s = 2.0\nother9 = 1\ndef f(x): return np.sin(x) * s")
    f = served(sg.grad(names["f"], backend="llvm"), 0.7)
    DONE_TO_NAMES[step](names, 3.0)
    names["s"] = 4.0
    asked.clear()
    for _ in range(3):
        assert np.isclose(f(0.7), 4.0 * np.cos(0.7))
    assert not asked


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_done_to_the_attributes_is_seen(seed: int) -> None:
    """Instances of one class share their names while they can, and have values of their own."""
    names = world(
        "class Model:\n    c = 3.0\n    def __init__(self, w): self.w, self.v = w, 1.0\n"
        "    def scale(self): return self.w * self.c\n    def loss(self, x): return np.sin(x) * self.scale() * self.v"
    )
    steps = random.Random(seed)
    models = [names["Model"](float(k)) for k in range(3)]
    losses = [served(sg.grad(model.loss, backend="llvm"), 0.7) for model in models]
    plain = [sg.grad(model.loss, backend="numpy") for model in models]
    done: dict[str, Callable[[Any, float], Any]] = {
        "value": lambda model, v: setattr(model, "w", v),
        "in the dict": lambda model, v: vars(model).__setitem__("w", v),
        "under another key object": lambda model, v: vars(model).__setitem__(another("w"), v),
        "removed": lambda model, v: vars(model).pop("v", None),
        "set again": lambda model, v: setattr(model, "v", v),
        "new": lambda model, v: setattr(model, f"other{int(v)}", v),
        "shadows the class": lambda model, v: setattr(model, "c", v),
        "shadows the class no more": lambda model, v: vars(model).pop("c", None),
        "shadows a method": lambda model, v: setattr(model, "scale", lambda: v),
        "shadows a method no more": lambda model, v: vars(model).pop("scale", None),
        "a dict of its own": lambda model, v: setattr(model, "__dict__", dict(vars(model))),
        "a dict that is reversed": lambda model, v: setattr(model, "__dict__", dict(list(vars(model).items())[::-1])),
        "the class": lambda model, v: setattr(type(model), "c", v),
    }
    for number in range(150):
        step, which = steps.choice(list(done)), steps.randrange(3)
        done[step](models[which], 2.0 + number)
        for k in range(3):
            assert same(outcome(losses[k], 0.7), outcome(plain[k], 0.7)), (seed, number, step, which, k)


def test_a_name_that_another_instance_has_is_seen_to_appear_in_this_one(asked: list[Transformed]) -> None:
    names = world(
        "class Model:\n    def __init__(self): self.w = 2.0\n    def scale(self): return self.w\n"
        "    def loss(self, x): return np.sin(x) * self.scale()"
    )
    one, other = names["Model"](), names["Model"]()
    other.scale = lambda: 5.0
    f = served(sg.grad(one.loss, backend="llvm"), 0.7)
    layout.ask_version(vars(one))
    asked.clear()
    assert np.isclose(f(0.7), 2.0 * np.cos(0.7))
    assert not asked
    one.scale = lambda: 3.0
    assert np.isclose(f(0.7), 3.0 * np.cos(0.7))


class Names:
    def method(self) -> None:
        pass


def test_globals_that_are_the_attributes_of_an_instance() -> None:
    """Instances share their keys, of which one may have some only, and the interpreter asks for the keys' version."""

    def f(x: Any) -> Any:
        return np.sin(x) * abs(x) * s  # type: ignore[name-defined]  # noqa: F821

    place, other = Names(), Names()
    for names in (place, other):
        names.np, names.s = np, 2.0  # type: ignore[attr-defined]
    other.abs = abs  # type: ignore[attr-defined]
    for _ in range(64):
        other.method()
    fast = served(sg.grad(types.FunctionType(f.__code__, vars(place)), backend="llvm"), 0.7)
    slope = 0.7 * np.cos(0.7) + np.sin(0.7)
    for value in (2.0, 3.0, 4.0):
        place.s = value  # type: ignore[attr-defined]
        assert np.isclose(fast(0.7), value * slope)
    place.abs = lambda x: 5.0 * x  # type: ignore[attr-defined]
    assert np.isclose(fast(0.7), 20.0 * slope)


@pytest.mark.parametrize("kind", [{"w": X, "b": 2.5}, {"b": 2.5, "w": X}, {another("w"): X, "b": 2.5}, {"a": 1.0}])
def test_dicts_of_arguments_are_taken_by_their_keys(kind: dict[str, Any]) -> None:
    def f(p: dict[str, Any]) -> Any:
        return sum(np.sum(np.sin(p[name]) * (2.0 if name == "w" else 3.0)) for name in sorted(p))

    fast, plain = sg.grad(f, backend="llvm"), sg.grad(f, backend="numpy")
    served(fast, {"w": X, "b": 2.5})
    given = [kind, dict(reversed(kind.items())), {**{str(k): k for k in range(9)}, **kind}, {**kind, 5: 1.0}]
    given[2] = {name: value for name, value in given[2].items() if not name.isdigit()}
    for tree in given:
        for _ in range(3):
            assert same(outcome(fast, tree), outcome(plain, tree))


class Parts(NamedTuple):
    value: Any
    fixed: Any


def test_results_that_are_records_have_the_hash_of_their_items() -> None:
    f = served(sg.jit(lambda x: Parts(np.sin(x), 3), backend="llvm"), 0.5)
    found = f(0.5)
    assert type(found) is Parts
    assert hash(found) == hash((np.sin(0.5), 3))
    assert {found: 1}[Parts(np.sin(0.5), 3)] == 1


@pytest.mark.skipif(not layout.IMMORTAL, reason="every object's references are counted")
def test_objects_whose_references_nobody_counts_stay_as_they_are() -> None:
    def f(x: Any, flag: Any, number: Any, text: Any, nothing: Any) -> Any:
        return {"x": np.sin(x) * number if flag else x, "rest": (flag, number, text, nothing, ())}

    lasting = [None, True, 3, "text", (), int, float, np.float64]
    counts = [sys.getrefcount(object) for object in lasting]
    run = served(sg.jit(f, static_argnums=(1, 2, 3, 4), backend="llvm"), 0.5, True, 3, "text", None)
    for _ in range(2000):
        assert run(0.5, True, 3, "text", None)["rest"] == (True, 3, "text", None, ())
    after = [sys.getrefcount(object) for object in lasting]
    immortal = [k for k, object in enumerate(lasting) if sys.getrefcount(object) > 1 << 29]
    assert {0, 1, 2} <= set(immortal)
    assert [after[k] for k in immortal] == [counts[k] for k in immortal]


@pytest.mark.parametrize("place", ["globals", "attributes", "a missing global"])
def test_no_key_of_the_users_is_compared_while_objects_may_go(place: str) -> None:
    """An ``__eq__`` might take away an array that has been read and is not held yet: a crash once it is gone."""
    names = world(
        "s, t = np.ones(3), np.ones(3)\nclass Model: pass\nmodel = Model()\nmodel.s, model.t = s + 0, t + 0\n"
        "def f(x): return np.sum(s * t * abs(x))\ndef g(x): return np.sum(model.s * model.t * x)"
    )
    f = served(sg.grad(names["g" if place == "attributes" else "f"], backend="llvm"), 0.7)
    table = vars(names["model"]) if place == "attributes" else names
    name = "abs" if place == "a missing global" else "t"
    callers = []

    class Key:
        def __hash__(self) -> int:
            return hash(name)

        def __eq__(self, other: Any) -> bool:
            callers.append(sys._getframe(1).f_code.co_name)
            return name == "t"

    table.pop(name, None)
    table[Key()] = np.ones(3)
    assert [f(0.7), f(0.7)] == [3.0, 3.0]
    assert callers and "test_no_key_of_the_users_is_compared_while_objects_may_go" not in callers
