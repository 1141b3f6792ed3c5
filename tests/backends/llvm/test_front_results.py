"""Calls answered in machine code return what Python would, and raise what it would."""

from __future__ import annotations

import dataclasses
import gc
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.directional import Hvp, Jvp
from srcgrad.transformed import SERVED_FROM, Transformed
from tests.backends.llvm.front_cases import total
from tests.backends.llvm.front_support import X, needs_machine, same, served

pytest.importorskip("llvmlite")
from srcgrad import front
from srcgrad.backends.llvm import entry
from srcgrad.backends.llvm.front import Table
from tests.backends.llvm.test_entry import loaded, values

pytestmark = needs_machine


def pair(x: Any, y: Any) -> Any:
    return np.sum(np.sin(x) * y)


def with_aux(x: Any, y: Any) -> Any:
    return pair(x, y), {"b": x * 2.0, "a": [y, "text", 7]}


class Both(NamedTuple):
    a: Any
    b: Any


@dataclasses.dataclass
class Instance:
    a: Any
    b: Any


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: Any
    b: Any


@dataclasses.dataclass(slots=True)
class Slotted:
    a: Any
    b: Any


@dataclasses.dataclass
class Empty:
    pass


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
    "record": (lambda b: sg.grad(lambda t: pair(t.a, t.b), backend=b), (Both(X, X),)),
    "records in trees": (
        lambda b: sg.value_and_grad(lambda t: pair(t["k"][0].a, 2.0), backend=b),
        ({"k": [Both(X, ())]},),
    ),
    "instance": (lambda b: sg.grad(lambda t: pair(t.a, t.b), backend=b), (Instance(X, X),)),
    "frozen instance": (lambda b: sg.value_and_grad(lambda t: pair(t.a, t.b.a), backend=b), (Frozen(X, Both(X, X)),)),
    "instance with slots": (lambda b: sg.jit(lambda t: (t, t.a + t.b), backend=b), (Slotted(X, 2.0),)),
    "records made": (lambda b: sg.jit(lambda x: Both(Instance(x + 1.0, 3), [x, "text"]), backend=b), (X,)),
    "empty instance": (lambda b: sg.jit(lambda x: (x * 2.0, Empty()), backend=b), (X,)),
    "jacobian in a record": (lambda b: sg.jacobian(lambda t: t.a * t.b, backend=b), (Both(X, X),)),
    "pushed": (lambda b: Jvp(pair, False, b), ((X, X), (X, X))),
    "pushed with aux": (lambda b: Jvp(with_aux, True, b), ([X, X], (X, X))),
    "pushed records": (
        lambda b: Jvp(lambda t, n: pair(t.a, t.b) * n, False, b),
        ((Both(X, 2.0), 3), (Both(X, 1.0), 0)),
    ),
    "pushed by hvp": (lambda b: Hvp(pair, False, b), ((X, X), (X, X))),
    "one pushed by hvp": (lambda b: Hvp(lambda t: pair(t.a, t.b), False, b), ((Instance(X, X),), (Instance(X, X),))),
    "complex": (lambda b: sg.jit(lambda x: x * x, backend=b), (1.0 + 2.0j,)),
    "complex128": (lambda b: sg.grad(lambda x: np.abs(x * x), backend=b), (np.complex128(1.0 + 2.0j),)),
    "complex64": (lambda b: sg.jit(lambda x: (x * x, x.real), backend=b), (np.complex64(1.0 + 2.0j),)),
    "complex arrays": (lambda b: sg.value_and_grad(lambda x: np.sum(np.abs(x * x)), backend=b), (X + 1j,)),
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
    if dataclasses.is_dataclass(tree):
        yield tree
        tree = [getattr(tree, field.name) for field in dataclasses.fields(tree)]
        yield from parts(tuple(tree))
    elif isinstance(tree, (tuple, list, dict)):
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


def arranged(arrange: Callable[..., Any], status: int, made: tuple[Any, ...]) -> Any:
    """A function of one array whose table arranges three results, of loops that return a status, or else ``made``."""
    run = loaded(f"  ret i32 {status}", values((3,)), values((3,), (3,), ()), False, True, lambda *_: made)
    table, results = Table(1), [front.Result() for _ in range(3)]
    table.require_array(1, X.dtype, (3,))
    table.give(1)
    table.arranged(run, arrange(*results), results)
    f = served(sg.grad(np.sin, backend="llvm"), 0.5)
    f.answer_by(table.finished())
    return f


MADE = (np.full(3, 7.0), np.full(3, 8.0), np.float64(9.0))


@pytest.mark.parametrize("status", [entry.FINE, entry.IN_PYTHON])
def test_results_that_stand_in_several_places_or_in_none(status: int) -> None:
    """Those of the loops, and those that a Python function returns instead."""
    f = arranged(lambda a, b, _: (b, [a, b], {"a": a, "b": None}), status, MADE)
    x, watched = np.ones(3), (MADE, *MADE, X.dtype, np.float64)
    fresh = object()
    alone = sys.getrefcount(fresh)  # Python 3.14 lends what a variable holds to the functions that it calls
    f(x)
    counts, blocks = list(map(sys.getrefcount, watched)), sys.getallocatedblocks()
    for _ in range(1_000):
        one, (other, again), named = f(x)
        assert one is again and other is named["a"] and one is not other and named["b"] is None
        assert (one is MADE[1] and other is MADE[0]) == (status == entry.IN_PYTHON)
        del again, named
        if status == entry.FINE:
            assert (sys.getrefcount(one), sys.getrefcount(other)) == (alone, alone)
        del one, other
    assert list(map(sys.getrefcount, watched)) == counts and sys.getallocatedblocks() - blocks < 20


@pytest.mark.parametrize("status", [entry.FINE, entry.IN_PYTHON])
def test_results_where_there_is_no_room_for_their_container(status: int) -> None:
    local: Any = dataclasses.make_dataclass("Local", ["a", "b"], slots=True)
    f = arranged(lambda a, b, c: (a, (b, c), local(a, b), [c]), status, MADE)
    x, watched = np.ones(3), (MADE, *MADE, X.dtype, local)
    assert f(x)[2].b.shape == (3,)
    del local.b
    blocks, counts = 0, []
    for turn in range(600):
        if turn == 100:
            gc.collect()
            counts, blocks = list(map(sys.getrefcount, watched)), sys.getallocatedblocks()
        with pytest.raises(AttributeError):
            f(x)
    gc.collect()
    assert all(abs(sys.getrefcount(item) - count) <= 2 for item, count in zip(watched, counts, strict=True))
    assert sys.getallocatedblocks() - blocks < 100


def test_a_program_that_fails_leaves_no_results_behind() -> None:
    def f(a: Any, b: Any) -> Any:
        return np.sum(np.linalg.solve(a, b) * b)

    g = served(sg.value_and_grad(f, (0, 1), backend="llvm"), np.eye(3) + 0.1, np.ones(3))
    singular = np.zeros((3, 3))
    blocks = 0
    for turn in range(600):
        if turn == 100:
            gc.collect()
            blocks = sys.getallocatedblocks()
        with pytest.raises(np.linalg.LinAlgError):
            g(singular, np.ones(3))
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 100
    assert same(g(np.eye(3), np.ones(3)), sg.value_and_grad(f, (0, 1), backend="numpy")(np.eye(3), np.ones(3)))


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
