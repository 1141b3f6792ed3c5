"""Static values that are equal and not the same: a program of one does not serve the other."""

from __future__ import annotations

import types
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.tracing.pytree import tree_leaves, tree_structure

CALLS = 7
"""After which machine code answers, where it can."""
X = np.array([1.0, 2.0], np.float32)


class Aux:
    def __init__(self, value: Any, auxiliary: Any) -> None:
        self.value, self.auxiliary = value, auxiliary


sg.register_pytree_node(Aux, lambda aux: ((aux.value,), aux.auxiliary), lambda auxiliary, held: Aux(held[0], auxiliary))


class Pair(NamedTuple):
    first: Any
    second: Any


def keyed(x: Any, names: Any) -> Any:
    return [x / np.float64(key) if key == 0 else x * key for key in names]


def of_range(x: Any, places: Any) -> Any:
    return x * places.start + x * x * places.stop


def of_slice(x: Any, places: Any) -> Any:
    return x / np.float64(places.stop) if places.stop == 0 else x * places.stop


def of_auxiliary(x: Any, auxiliary: Any) -> Any:
    while isinstance(auxiliary, tuple):
        auxiliary = auxiliary[0]
    return x / np.float64(auxiliary) if auxiliary == 0 else x * auxiliary


PAIRS: dict[str, tuple[Callable[..., Any], Callable[[Any], Any], Any, Any]] = {
    "ranges": (of_range, lambda value: value, range(0, 3, 2), range(0, 4, 2)),
    "empty ranges": (of_range, lambda value: value, range(5, 5), range(3, 3)),
    "slices of zeros": (of_slice, slice, 0.0, -0.0),
    "slices of numbers": (of_slice, slice, np.float64(1), 1),
    "slices of int and bool": (of_slice, slice, 1, True),
    "texts of NumPy": (lambda x, s: x * (2 if s == "a" else 3), lambda value: value, np.str_("a"), np.str_("b")),
    "durations": (
        lambda x, s: x * (s / np.timedelta64(1, "s")), lambda value: np.timedelta64(*value), (1, "s"), (1, "m"),
    ),
    "auxiliary zeros": (lambda x, aux: of_auxiliary(x, aux.auxiliary), lambda value: Aux(X, value), 0.0, -0.0),
    "auxiliary numbers": (lambda x, aux: of_auxiliary(x, aux.auxiliary), lambda value: Aux(X, value), np.float64(1), 1),
    "auxiliary tuples": (lambda x, aux: of_auxiliary(x, aux.auxiliary), lambda value: Aux(X, (value,)), True, 1),
    "auxiliary records": (
        lambda x, aux: of_auxiliary(x, aux.auxiliary), lambda value: Aux(X, Pair(value, 1)), 0.0, -0.0,
    ),
}  # fmt: skip
for kind, made in {
    "dict": lambda key: {key: X},
    "OrderedDict": lambda key: OrderedDict({key: X}),
    "defaultdict": lambda key: defaultdict(list, {key: X}),
}.items():
    PAIRS[f"{kind} of zeros"] = (keyed, made, 0.0, -0.0)
    PAIRS[f"{kind} of int and bool"] = (keyed, made, 1, True)
    PAIRS[f"{kind} of numbers"] = (keyed, made, 1, np.float64(1))


def same(one: Any, other: Any) -> bool:
    ours, theirs = tree_leaves(one), tree_leaves(other)
    return len(ours) == len(theirs) and all(
        np.array_equal(a, b) and np.asarray(a).dtype == np.asarray(b).dtype for a, b in zip(ours, theirs, strict=True)
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("name", PAIRS)
def test_equal_arguments_that_differ_have_programs_of_their_own(name: str, swapped: bool, backend: str) -> None:
    function, made, *values = PAIRS[name]
    compiled = sg.jit(function, backend=backend)
    for value in reversed(values) if swapped else values:
        for _ in range(CALLS):
            found = compiled(X, made(value))
        assert same(found, function(X, made(value))), value


SOURCE = """
def ranged(x):
    return x * HELD.start + x * x * HELD.stop

def keyed(x):
    return [x / np.float64(key) if key == 0 else x * key for key in HELD]
"""
CAPTURED = {
    "ranges": ("ranged", range(0, 3, 2), range(0, 4, 2)),
    "dicts of zeros": ("keyed", {0.0: 1.0}, {-0.0: 1.0}),
    "dicts of int and bool": ("keyed", {1: 1.0}, {True: 1.0}),
    "dicts of numbers": ("keyed", {1: 1.0}, {np.float64(1): 1.0}),
    "dicts of texts and int": ("keyed", {2: 1.0, 1: 1.0}, {2: 1.0, True: 1.0}),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", CAPTURED)
def test_equal_globals_that_differ_have_programs_of_their_own(name: str, backend: str, sources: Any) -> None:
    function, *values = CAPTURED[name]
    module = sources(SOURCE)
    compiled = sg.jit(getattr(module, function), backend=backend)
    for value in (*values, values[0]):
        module.HELD = value
        for _ in range(CALLS):
            found = compiled(X > 0)
        assert same(found, getattr(module, function)(X > 0)), value


@pytest.fixture
def sources(tmp_path: Any) -> Callable[[str], Any]:
    def made(text: str) -> Any:
        path = tmp_path / "case.py"
        path.write_text(text, "utf-8")
        module = types.ModuleType("case")
        module.__dict__["np"] = np
        exec(compile(text, str(path), "exec"), module.__dict__)
        return module

    return made


def test_structures_are_told_apart_by_what_their_keys_are() -> None:
    def structures(*keys: Any) -> Any:
        return [tree_structure(tree) for key in keys for tree in ({key: 1.0}, Aux(1.0, key), Aux(1.0, (key, "a")))]

    for one, other in [(1, True), (0.0, -0.0), (1, 1.0), (1.0, np.float64(1)), (range(5, 5), range(3, 3))]:
        for first, second in zip(structures(one), structures(other), strict=True):
            assert first != second
    for key in (1, 0.0, np.float64(1), "a", None, range(3), frozenset({1, "a"}), np.float32):
        assert structures(key) == structures(key)
        assert list(map(hash, structures(key))) == list(map(hash, structures(key)))
