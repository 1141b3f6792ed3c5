"""Calls answered in machine code are never stale, take exactly what they were made for, and leave nothing behind."""

from __future__ import annotations

import contextvars
import copy
import functools
import gc
import inspect
import pickle
import random
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad import transformed
from srcgrad.transformed import SERVED_FROM, Transformed
from tests.backends.llvm.front_cases import BOUND, CHANGES, MANY, STEPS, Change, arrays, numbers, world

pytest.importorskip("llvmlite")
from srcgrad import front, front_guards
from srcgrad.backends.llvm.front import POSSIBLE

pytestmark = pytest.mark.skipif(not POSSIBLE, reason="objects are laid out in a way that is not known")

X = np.linspace(0.1, 1.0, 6)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Transformed]:
    """The objects whose calls came to Python."""
    found: list[Transformed] = []
    call = Transformed.__call__

    def counted(self: Transformed, *args: Any, **kwargs: Any) -> Any:
        found.append(self)
        return call(self, *args, **kwargs)

    monkeypatch.setattr(Transformed, "__call__", counted)
    return found


@pytest.fixture(params=["machine", "bind"])
def guards(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether guards are checked by machine code, or all by the Python function `bind`."""
    if request.param == "bind":

        def refuse(*args: Any) -> Any:
            raise front_guards.UnknownGuard

        monkeypatch.setattr(front, "Guards", refuse)
    return str(request.param)


def served(f: Any, *args: Any) -> Any:
    """The object after so many calls that machine code answers them."""
    for _ in range(SERVED_FROM + 1):  # the last by the table
        f(*args)
    assert hasattr(f, "tables"), "no call is answered in machine code"
    return f


def outcome(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a call returns, or the class of what it raises."""
    try:
        return f(*args, **kwargs)
    except Exception as error:
        return type(error)


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, (tuple, list)):
        return type(found) is type(expected) and len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, dict):
        return type(found) is dict and list(found) == list(expected) and all(same(found[k], expected[k]) for k in found)
    if isinstance(expected, (np.ndarray, np.generic)):
        alike = type(found) is type(expected) and found.dtype == expected.dtype and found.shape == expected.shape
        return alike and np.allclose(found, expected, 1e-3 if found.dtype.itemsize < 4 else 1e-5, equal_nan=True)
    return found is expected or (type(found) is type(expected) and found == expected)


# --- staleness -------------------------------------------------------------------------------------------------------
@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("case", CHANGES, ids=lambda case: case.name)
def test_a_change_of_what_is_read_is_seen(case: Change, guards: str, asked: list[Transformed]) -> None:
    names = world(case.source)
    f = served(sg.value_and_grad(names["f"], backend="llvm"), 0.7)
    asked.clear()
    first = f(0.7)
    assert not asked
    bound = any(getattr(kept, "__name__", "") == "bind" for kept in f.tables[1])
    assert bound == (guards == "bind" or case.name in BOUND)
    assert same(first, sg.value_and_grad(names["f"], backend="numpy")(0.7))
    exec(case.change, names)
    for _ in range(3 * SERVED_FROM):
        expected = outcome(sg.value_and_grad(f.f, backend="numpy"), 0.7)
        assert same(outcome(f, 0.7), expected)
    assert not same(expected, first)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("seed", range(2))
def test_changes_in_any_order_are_seen(seed: int, guards: str) -> None:
    names, steps = world(MANY), random.Random(seed)
    f = served(sg.grad(names["f"], backend="llvm"), 0.7)
    plain = sg.grad(names["f"], backend="numpy")
    for _ in range(60):
        step = steps.choice(STEPS)
        exec(step, names)
        for _ in range(steps.choice((1, 1, 6))):
            assert same(outcome(f, 0.7), outcome(plain, 0.7)), step


def test_changes_back_and_forth_are_seen(asked: list[Transformed]) -> None:
    names = world("n = 2\ns = 1.0\ndef f(x): return x**n * s")
    f = served(sg.grad(names["f"], backend="llvm"), 3.0)
    for n in (3, 2, 3, 2):
        names["n"] = n
        for s in (1.0, 2.0):
            names["s"] = s
            for _ in range(2 * SERVED_FROM):
                assert f(3.0) == n * 3.0 ** (n - 1) * s
    asked.clear()
    names["n"] = 2
    assert f(3.0) == 12.0
    assert not asked


def test_unrelated_globals_change_nothing(asked: list[Transformed]) -> None:
    names = world("def f(x): return np.sin(x) * x")
    f = served(sg.grad(names["f"], backend="llvm"), 0.5)
    asked.clear()
    for number in range(20):
        names[f"other{number}"] = number
        assert np.isclose(f(0.5), np.sin(0.5) + 0.5 * np.cos(0.5))
    assert not asked


def test_a_guard_that_changes_while_its_table_is_written_is_not_taken_as_it_is_then() -> None:
    names = world("n = 2\ndef f(x): return x**n")
    f = sg.grad(names["f"], backend="llvm")
    f(3.0)
    captures = next(iter(f.fast.values()))[0]
    names["n"] = 3
    with pytest.raises(front_guards.UnknownGuard):
        front_guards.Guards(front.Table(1), captures, names["f"], 0)


# --- what is chosen --------------------------------------------------------------------------------------------------
def test_the_backend_of_the_moment_is_asked(asked: list[Transformed]) -> None:
    sg.set_backend("llvm")
    try:
        f = served(sg.grad(lambda x: np.sin(x)), 0.5)
        asked.clear()
        with sg.use_backend("numpy"):
            f(0.5)
        assert len(asked) == 1
        sg.set_backend("numpy")
        f(0.5)
        assert len(asked) == 2
        sg.set_backend("llvm")
        f(0.5)
        assert len(asked) == 2
    finally:
        sg.set_backend(transformed_default)


transformed_default = front.DEFAULT[0]


def test_a_table_made_where_a_backend_was_chosen_is_no_choice_afterwards(asked: list[Transformed]) -> None:
    sg.set_backend("numpy")
    try:
        f = sg.grad(lambda x: np.sin(x))
        with sg.use_backend("llvm"):
            served(f, 0.5)
        asked.clear()
        f(0.5)
        assert len(asked) == 1
        sg.set_backend("".join(["ll", "vm"]))
        f(0.5)
        assert len(asked) == 1
    finally:
        sg.set_backend(transformed_default)


def test_a_backend_chosen_in_a_context_that_lasts_is_asked(asked: list[Transformed]) -> None:
    f = served(sg.grad(lambda x: np.sin(x), backend="llvm"), 0.5)
    with sg.use_backend("numpy"):
        context = contextvars.copy_context()
    asked.clear()
    f(0.5)
    assert len(asked) == 1
    del context
    f(0.5)
    assert len(asked) == 1


def test_debugging_looks_at_every_operation() -> None:
    f = served(sg.grad(lambda x: np.sqrt(x) * 2.0, backend="llvm"), 0.5)
    assert np.isinf(f(0.0))
    with sg.debug(), pytest.raises(sg.errors.NonFiniteError):
        f(0.0)
    assert np.isinf(f(0.0))


def test_calls_inside_traces_are_traced(asked: list[Transformed]) -> None:
    f = served(sg.grad(lambda x: np.sin(x) * x, backend="llvm"), 0.5)
    outer = sg.grad(lambda x: f(x) * x, backend="llvm")
    expected = sg.grad(lambda x: sg.grad(lambda y: np.sin(y) * y)(x) * x)(0.5)
    for _ in range(3 * SERVED_FROM):
        assert np.isclose(outer(0.5), expected)
    many = sg.vmap(f, backend="llvm")
    for _ in range(3 * SERVED_FROM):
        assert np.allclose(many(X), [f(x) for x in X])
    asked.clear()
    outer(0.5), many(X), f(0.5)
    assert not asked


def test_a_call_on_numbers_inside_a_trace_is_part_of_it() -> None:
    f = served(sg.jit(lambda x: x * 2.0, backend="llvm"), 3.0)
    seen = []

    def inside(x: Any) -> Any:
        seen.append(type(f(3.0)).__name__)
        return x * f(3.0)

    assert sg.grad(inside, backend="llvm")(1.0) == 6.0
    assert seen[0] != "float64"


def test_an_error_in_a_trace_leaves_nothing_in_progress(asked: list[Transformed]) -> None:
    f = served(sg.grad(lambda x: np.sin(x), backend="llvm"), 0.5)

    def fails(x: Any) -> Any:
        raise KeyError(1)

    with pytest.raises(KeyError):
        sg.grad(fails)(1.0)
    with pytest.raises(KeyError), sg.use_backend("numpy"):
        raise KeyError(2)
    with pytest.raises(KeyError), sg.debug():
        raise KeyError(3)
    asked.clear()
    f(0.5)
    assert not asked


# --- arguments -------------------------------------------------------------------------------------------------------
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


def total(tree: Any) -> Any:
    if isinstance(tree, dict):
        return sum(total(tree[key]) * (2.0 + len(key)) for key in sorted(tree))
    if isinstance(tree, (list, tuple)):
        return sum((total(item) * (1.0 + k) for k, item in enumerate(tree)), 0.0)
    return 0.0 if tree is None else np.sum(np.sin(tree) * tree)


@pytest.mark.parametrize(("name", "tree", "others"), TREES, ids=[case[0] for case in TREES])
def test_containers_are_looked_into(name: str, tree: Any, others: list[Any], asked: list[Transformed]) -> None:
    f = served(sg.value_and_grad(total, backend="llvm"), tree)
    asked.clear()
    f(tree)
    assert not asked
    for other in others:
        assert same(outcome(f, other), outcome(sg.value_and_grad(total, backend="numpy"), other))
        assert same(f(tree), sg.value_and_grad(total, backend="numpy")(tree))


def test_keywords_and_counts_of_arguments(asked: list[Transformed]) -> None:
    def f(x: Any, y: Any = 2.0, *, z: Any = 3.0) -> Any:
        return np.sum(np.sin(x) * y * z)

    g, plain = served(sg.grad(f, backend="llvm"), X), sg.grad(f, backend="numpy")
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


# --- results ---------------------------------------------------------------------------------------------------------
def pair(x: Any, y: Any) -> Any:
    return np.sum(np.sin(x) * y)


def with_aux(x: Any, y: Any) -> Any:
    return pair(x, y), {"b": x * 2.0, "a": [y, "text", 7]}


RESULTS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "grad": (lambda b: sg.grad(pair, backend=b), (X, X)),
    "argnums": (lambda b: sg.grad(pair, (1, 0), backend=b), (X, X)),
    "one in a tuple": (lambda b: sg.grad(pair, (1,), backend=b), (X, X)),
    "value": (lambda b: sg.value_and_grad(pair, backend=b), (X, X)),
    "value and argnums": (lambda b: sg.value_and_grad(pair, (0, 1), backend=b), (X, X)),
    "aux": (lambda b: sg.value_and_grad(with_aux, (0, 1), has_aux=True, backend=b), (X, X)),
    "grad with aux": (lambda b: sg.grad(with_aux, has_aux=True, backend=b), (X, X)),
    "trees": (lambda b: sg.grad(lambda t, y: pair(t["a"], y) + total(t), backend=b), ({"b": [X, ()], "a": X}, X)),
    "jacobian": (lambda b: sg.jacobian(lambda x, y: (np.sin(x) * y, y), (0, 1), backend=b), (X, X)),
    "hessian": (lambda b: sg.hessian(pair, backend=b), (X, X)),
    "jit": (lambda b: sg.jit(with_aux, backend=b), (X, X)),
    "vmap": (lambda b: sg.vmap(lambda x, y: {"a": np.sin(x) * y}, backend=b), (X, X)),
    "nested": (lambda b: sg.grad(lambda x: sg.grad(np.sin)(x) * x, backend=b), (0.5,)),
    "twice": (lambda b: sg.grad(sg.grad(lambda x: np.sin(x) * x), backend=b), (0.5,)),
    "number": (lambda b: sg.grad(np.tanh, backend=b), (0.5,)),
    "the argument": (lambda b: sg.jit(lambda x: (x, x + 1.0), backend=b), (X,)),
    "a product": (lambda b: sg.value_and_grad(lambda x: np.sum((x @ x.T) ** 2), backend=b), (np.ones((3, 2)),)),
    "complex": (lambda b: sg.jit(lambda x: x * x, backend=b), (1.0 + 2.0j,)),
    "weak": (lambda b: sg.jit(lambda x, y: np.matmul(x, x) * y, backend=b), (np.eye(2, dtype=np.float32), 2.0)),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_arranged_as_in_python(name: str, guards: str, asked: list[Transformed]) -> None:
    make, args = RESULTS[name]
    f = served(make("llvm"), *args)
    asked.clear()
    found = f(*args)
    assert not asked
    assert same(found, make("numpy")(*args))
    again = f(*args)
    for one, other in zip(parts(found), parts(again), strict=True):
        assert one is not other
        assert not isinstance(one, np.ndarray) or (one.flags.writeable and not np.may_share_memory(one, other))
        assert all(one is not argument for argument in args)


def parts(tree: Any) -> Iterator[Any]:
    """The arrays and containers that can change."""
    if isinstance(tree, (tuple, list, dict)):
        if isinstance(tree, (list, dict)):
            yield tree
        for item in tree.values() if isinstance(tree, dict) else tree:
            yield from parts(item)
    elif isinstance(tree, np.ndarray):
        yield tree


def test_a_pullback_is_made_at_each_call(asked: list[Transformed]) -> None:
    for _ in range(2 * SERVED_FROM):
        _, pull = sg.vjp(lambda x: np.sin(x) * x, X, backend="llvm")
        assert same(pull(np.ones(6)), sg.vjp(lambda x: np.sin(x) * x, X)[1](np.ones(6)))


# --- errors ----------------------------------------------------------------------------------------------------------
def test_an_exception_of_the_program_leaves_as_from_python() -> None:
    def f(x: Any) -> Any:
        if x > 1.0:
            raise ValueError("too large")
        return np.sin(x)

    def raised(g: Any) -> tuple[Any, ...]:
        with pytest.raises(ValueError, match="too large") as caught:
            g(2.0)
        return type(caught.value), caught.value.args, getattr(caught.value, "__notes__", [])

    g = sg.grad(f, backend="llvm")
    expected = raised(g)
    served(g, 0.5)
    for _ in range(3):
        assert raised(g) == expected
        assert g(0.5) == np.cos(0.5)


def test_an_error_of_srcgrad_in_the_program_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    failing: list[BaseException | None] = [None]
    whole = front.whole

    def spoiled(program: Any) -> Any:
        run = whole(program)

        def call(*inputs: Any) -> Any:
            if failing[0] is not None:
                raise failing[0]
            return run(*inputs)

        return call

    monkeypatch.setattr(front, "whole", spoiled)
    monkeypatch.setattr(front, "is_native", lambda run: False)
    f = served(sg.jit(lambda x: x @ x, backend="llvm"), 1j * np.eye(2))
    for error in (sg.errors.ArgumentError("no"), KeyboardInterrupt()):
        failing[0] = error
        with pytest.raises(type(error)):
            f(1j * np.eye(2))
    failing[0] = None
    assert same(f(1j * np.eye(2)), -np.eye(2, dtype=complex))


# --- references and threads ------------------------------------------------------------------------------------------
def test_nothing_is_left_behind(guards: str) -> None:
    names = world("a = np.arange(6.0)\ns = 2.0\ndef f(x, t, n): return np.sum(np.sin(x) * a * s * t['w'][0]) * n")
    x, tree = X.copy(), {"w": [X.copy(), 2.5]}
    f = served(sg.value_and_grad(names["f"], (0, 1), backend="llvm"), x, tree, 3)
    g = served(sg.grad(lambda y: np.sin(y) * 1.5, backend="llvm"), 0.5)
    missing = served(sg.grad(lambda y: np.sin(y), backend="llvm"), 0.5)
    watched = [
        *(x, tree, tree["w"], tree["w"][0], names["a"], names["s"], names["f"], np, float, np.float64, np.ndarray),
        *(x.dtype, f, g, missing, f.tables, g.tables, missing.tables, names, tuple, list, dict, *f.tables, *g.tables),
    ]
    gc.collect()
    counts = list(map(sys.getrefcount, watched))
    f(x, tree, 3), g(0.5), missing(np.float32(0.5))
    gc.collect()
    blocks = sys.getallocatedblocks()
    for _ in range(100_000 if guards == "machine" else 10_000):
        f(x, tree, 3)
        g(0.5)
    for _ in range(2_000):
        missing(np.float32(0.5))
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 200
    after = list(map(sys.getrefcount, watched))
    assert [abs(new - old) < 20 for old, new in zip(counts, after, strict=True)] == [True] * len(watched)


def test_threads_call_while_a_guard_changes() -> None:
    names = world("n = 2\ns = np.float64(1.0)\ndef f(x): return np.sum(np.sin(x) * s) * n")
    f = sg.grad(names["f"], backend="llvm")
    xs = [np.linspace(0.0, 1.0, size) for size in (3, 4, 5, 6, 7, 8)]
    allowed = {x.size: [n * s * np.cos(x) for n in (2, 3) for s in (1.0, 2.0)] for x in xs}
    wrong: list[Any] = []
    over = threading.Event()

    def call(first: int) -> None:
        number, turn = first, 0
        while not over.is_set():
            x = xs[number % len(xs)]
            found = f(x)
            if not any(np.allclose(found, good) for good in allowed[x.size]):
                wrong.append(found)
            turn += 1
            number += turn % 50 == 0

    threads = [threading.Thread(target=call, args=(k,)) for k in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for turn in range(2000):
            names["n"] = 2 + turn % 2
            names["s"] = np.float64(1.0 + (turn // 2) % 2)
    finally:
        sys.setswitchinterval(interval)
        over.set()
        for thread in threads:
            thread.join()
    assert not wrong


def test_arrays_that_another_thread_takes_away_live_until_the_call_is_over() -> None:
    size = 300_000
    names = world("def f(x): return np.sum(np.sin(x) * a)")
    names["a"] = np.ones(size)
    x = np.linspace(0.0, 1.0, size)
    f = served(sg.grad(names["f"], backend="llvm"), x)
    over = threading.Event()

    def change() -> None:
        while not over.is_set():
            names["a"] = np.ones(size)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(60):
            assert np.array_equal(f(x), np.cos(x)) or np.allclose(f(x), np.cos(x))
    finally:
        over.set()
        thread.join()


def test_a_table_that_is_replaced_during_its_call_lives_until_that_is_over() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.sin(x) * np.exp(x))

    big = np.linspace(0.0, 1.0, 200_000)
    g = served(sg.grad(f, backend="llvm"), big)
    expected = g(big)
    wrong: list[int] = []

    def call() -> None:
        for _ in range(40):
            if not np.array_equal(g(big), expected):
                wrong.append(1)

    threads = [threading.Thread(target=call) for _ in range(2)]
    for thread in threads:
        thread.start()
    size = 1
    while any(thread.is_alive() for thread in threads):
        size = 1 + size % 60
        g.tables = ()
        for _ in range(SERVED_FROM):
            g(np.ones(size))
        sg.clear_caches()
        gc.collect()
    for thread in threads:
        thread.join()
    assert not wrong


# --- an object like any other ----------------------------------------------------------------------------------------
@sg.grad
def module_level(x: Any) -> Any:
    """A docstring."""
    return np.sin(x) * x


class Holder:
    scale = 2.0

    @functools.partial(sg.grad, backend="llvm")
    def slope(self, x: Any) -> Any:
        return np.sin(x) * self.scale


def test_it_pickles_copies_and_binds_with_tables() -> None:
    sg.set_backend("llvm")
    try:
        served(module_level, 0.5)
        f = served(sg.grad(np.sin), 0.5)
        assert pickle.loads(pickle.dumps(module_level)) is module_level
        for copied in (pickle.loads(pickle.dumps(f)), copy.copy(f), copy.deepcopy(f)):
            assert not hasattr(copied, "tables")
            assert same(copied(0.5), np.cos(0.5))
            assert same(served(copied, 0.5)(0.5), np.cos(0.5))
    finally:
        sg.set_backend(transformed_default)
    assert module_level.__name__ == "module_level" and module_level.__doc__ == "A docstring."
    assert list(inspect.signature(module_level).parameters) == ["x"]
    assert repr(f) == "<grad of sin>"
    assert callable(f) and f.__wrapped__ is np.sin
    holder = Holder()
    for _ in range(2 * SERVED_FROM):
        assert np.isclose(holder.slope(0.5), 2.0 * np.cos(0.5))
    slope = served(holder.slope, 0.5)
    holder.scale = 3.0
    assert np.isclose(slope(0.5), 3.0 * np.cos(0.5))


def test_an_object_and_its_program_are_collected() -> None:
    names = world("s = [1]\ndef f(x): return np.sin(x) * x")
    f = served(sg.grad(names["f"], backend="llvm"), 0.5)
    f.itself = f
    found = weakref.ref(f), weakref.ref(next(iter(f.calls)).executable)  # type: ignore[attr-defined]
    del f, names
    sg.clear_caches()
    gc.collect()
    assert [reference() for reference in found] == [None, None]


def test_a_class_with_a_call_of_its_own_keeps_it() -> None:
    class Loud(type(sg.grad(np.sin))):  # type: ignore[misc]
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return "own", super().__call__(*args, **kwargs)

    class Quiet(Loud):
        pass

    class Same(type(sg.grad(np.sin))):  # type: ignore[misc]
        pass

    for cls in (Loud, Quiet):
        f = cls(np.sin, 0, False, False, "llvm", False)
        for _ in range(2 * SERVED_FROM):
            assert same(f(0.5), ("own", np.cos(0.5)))
    assert same(served(Same(np.sin, 0, False, False, "llvm", False), 0.5)(0.5), np.cos(0.5))


def test_another_function_in_an_object_is_called() -> None:
    f = served(sg.grad(lambda x: np.sin(x), backend="llvm"), 0.5)
    f.f = lambda x: np.cos(x)
    assert same(f(0.5), -np.sin(np.float64(0.5)))


# --- the process -----------------------------------------------------------------------------------------------------
def run(source: str) -> str:
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_nothing_is_loaded_before_there_is_a_program() -> None:
    text = run(
        "import sys, numpy as np, srcgrad as sg\n"
        "f = sg.grad(np.sin, backend='numpy')\n"
        "for _ in range(20): f(0.5)\n"
        "print('llvmlite' in sys.modules, hasattr(f, 'tables'))"
    )
    assert text.strip() == "False False"


def test_calls_work_until_the_interpreter_has_ended() -> None:
    text = run(
        "import atexit, sys, numpy as np, srcgrad as sg\n"
        "f = sg.grad(lambda x: np.sin(x) * x, backend='llvm')\n"
        "for _ in range(20): f(0.5)\n"
        "assert hasattr(f, 'tables')\n"
        "class Late:\n"
        "    def __init__(self, f): self.f = f; self.number = float(f(0.5))\n"
        "    def __del__(self): assert self.f(0.5) == self.number; print('late')\n"
        "late = Late(f)\n"
        "atexit.register(lambda: print(f(0.5) == late.number))\n"
    )
    assert text.split() == ["True", "late"]


def test_without_known_layouts_every_call_is_pythons(monkeypatch: pytest.MonkeyPatch, asked: list[Transformed]) -> None:
    monkeypatch.setattr(front, "POSSIBLE", False)
    f = sg.grad(lambda x: np.sin(x), backend="llvm")
    for _ in range(3 * SERVED_FROM):
        assert same(f(0.5), np.cos(0.5))
    assert len(asked) == 3 * SERVED_FROM and not hasattr(f, "tables")


def test_the_base_class_is_plain_where_classes_are_not_known() -> None:
    text = run(
        "import sys, collections\n"
        "info = sys.version_info\n"
        "sys.version_info = (3, 99, 0, 'final', 0)\n"
        "import srcgrad.vectorcall as v\n"
        "sys.version_info = info\n"
        "import numpy as np, srcgrad as sg\n"
        "f = sg.grad(np.sin, backend='llvm')\n"
        "print(v.POSSIBLE, v.VectorCalled.__basicsize__, {float(f(0.5)) for _ in range(20)}, hasattr(f, 'tables'))"
    )
    assert text.split() == ["False", "16", f"{{{np.cos(0.5)}}}", "False"]


def test_the_threshold_is_a_power_of_two() -> None:
    assert transformed.SERVED_FROM & (transformed.SERVED_FROM - 1) == 0
