"""Transforms that are made for one call each begin with what calls of others of the same code have found."""

from __future__ import annotations

import gc
import math
import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import srcgrad as sg
from srcgrad import cache
from srcgrad.directional import Jvp
from srcgrad.transformed import SERVED_FROM, Transformed
from tests.backends.llvm.front_cases import world
from tests.backends.llvm.front_support import X, needs_machine, outcome, same, served, switching_often

pytest.importorskip("llvmlite")
from srcgrad import front

pytestmark = needs_machine
V = np.linspace(1.0, 2.0, 6)


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclass
class Record:
    a: Any
    b: Any


def pair(x: Any, y: Any) -> Any:
    return np.sum(np.sin(x) * y)


def of_pair(p: Any) -> Any:
    return pair(p.a, p.b)


def squared(x: Any) -> Any:
    return np.sin(x) * x


class Model:
    def __init__(self, size: int) -> None:
        self.w, self.layers, self.rates = np.ones(size), [np.ones(size), 2.0], {"b": 1.5, "a": np.full(size, 2.0)}

    def loss(self, x: Any) -> Any:
        h = np.tanh(self.layers[0] * x) * self.layers[1]
        return np.sum(self.w * h * self.rates["a"]) * self.rates["b"]

    @sg.grad
    def slope(self, x: Any) -> Any:
        return self.loss(x)


MODEL = Model(6)
FORMS: dict[str, Callable[[], Any]] = {
    "grad": lambda: sg.grad(squared)(0.5),
    "grad of a lambda": lambda: sg.grad(lambda x: np.sin(x) * x)(0.5),
    "value_and_grad": lambda: sg.value_and_grad(pair, (0, 1))(X, V),
    "jacfwd": lambda: sg.jacfwd(squared)(X),
    "hessian": lambda: sg.hessian(pair)(X, V),
    "vmap": lambda: sg.vmap(sg.grad(squared))(X),
    "grad of grad": lambda: sg.grad(sg.grad(squared))(0.5),
    "grad of a closure's grad": lambda: sg.grad(lambda x: sg.grad(lambda y: np.sin(x * y))(x))(0.5),
    "jit": lambda: sg.jit(squared)(X),
    "keywords": lambda: sg.grad(pair)(X, y=V),
    "method": lambda: sg.grad(MODEL.loss)(X),
    "bound method": lambda: MODEL.slope(X),
    "jvp": lambda: sg.jvp(pair, (X, V), (V, X)),
    "jvp of numbers": lambda: sg.jvp(squared, (0.5,), (2.0,)),
    "jvp of records": lambda: sg.jvp(of_pair, (Pair(X, 2.0),), (Pair(V, 1.0),)),
    "hvp": lambda: sg.hvp(pair, (X, V), (V, X)),
    "hvp of lists": lambda: sg.hvp(lambda p: pair(p[0], p[1]), [[X, V]], [[V, X]]),
    "vjp": lambda: sg.vjp(squared, X)[0],
    "linearize": lambda: sg.linearize(squared, X)[0],
}


@pytest.mark.parametrize("name", FORMS)
def test_calls_of_objects_made_anew_are_answered(name: str, asked: list[Transformed]) -> None:
    form = FORMS[name]
    sg.set_backend("numpy")
    expected = form()
    sg.set_backend("llvm")
    for _ in range(SERVED_FROM):
        assert same(form(), expected)
    asked.clear()
    assert same(form(), expected)
    assert not asked


def test_functions_of_one_code_are_told_apart(asked: list[Transformed]) -> None:
    def made(n: Any, s: Any) -> Any:
        def f(x: Any) -> Any:
            return np.sum(np.sin(x) * s) * n

        return f

    for _ in range(2 * SERVED_FROM):
        for n, s in ((2, 1.5), (3, 1.5), (2, 2.5), (2, np.ones(6)), (2.0, 2)):
            assert same(sg.grad(made(n, s), backend="llvm")(X), n * s * np.cos(X))
    asked.clear()
    for s in (3.5, 4.5):
        assert same(sg.grad(made(2, s), backend="llvm")(X), 2 * s * np.cos(X))
    assert not asked


def test_transforms_of_one_code_are_told_apart() -> None:
    makers: list[Callable[[Any], Any]] = [
        lambda f: sg.grad(f, backend="llvm"), lambda f: sg.grad(f, 1, backend="llvm"),
        lambda f: sg.grad(f, (0, 1), backend="llvm"), lambda f: sg.value_and_grad(f, backend="llvm"),
        lambda f: sg.jacfwd(f, backend="llvm"), lambda f: sg.jacrev(f, backend="llvm"),
        lambda f: sg.hessian(f, backend="llvm"), lambda f: sg.jit(f, backend="llvm"),
        lambda f: sg.grad(sg.jit(f), backend="llvm"), lambda f: sg.grad(f, backend="numpy"),
        lambda f: sg.vmap(f, in_axes=0, backend="llvm"), lambda f: sg.vmap(f, in_axes=(0, None), backend="llvm"),
    ]  # fmt: skip
    expected = []
    for make in makers:
        sg.clear_caches()
        expected.append(outcome(make(pair), X, V))
    for _ in range(2 * SERVED_FROM):
        for make, good in zip(makers, expected, strict=True):
            assert same(outcome(make(pair), X, V), good)


def test_methods_are_answered_with_what_their_objects_hold_now(asked: list[Transformed]) -> None:
    models = [Model(6), Model(6)]
    for _ in range(2 * SERVED_FROM):
        for model in models:
            sg.grad(model.loss, backend="llvm")(X)
    asked.clear()
    for scale in (2.0, 3.0):
        models[1].w = np.full(6, scale)
        models[0].rates["b"] = scale
        models[1].layers[1] = scale
        for model in models:
            found = sg.grad(model.loss, backend="llvm")(X)
            assert not asked
            assert same(found, sg.grad(model.loss, backend="numpy")(X))
            asked.clear()
    models[0].rates = {"a": models[0].rates["a"], "b": 2.0}
    models[1].layers.append(1.0)
    for model in models:
        assert same(sg.grad(model.loss, backend="llvm")(X), sg.grad(model.loss, backend="numpy")(X))


# --- tangents --------------------------------------------------------------------------------------------------------
BAD_TANGENTS: dict[str, Any] = {
    "of another shape": (np.ones(5), V), "of another rank": (1.0, V), "float32": (V.astype(np.float32), V),
    "integers": (np.arange(6), V), "complex": (V + 1j, V), "too few": (V,), "too many": (V, V, V), "none": None,
    "of other containers": ((V,), V), "a list": [V, V], "a dict": {"a": V}, "text": ("a", V), "strided": (V[::-1], V),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_TANGENTS)
def test_other_tangents_are_not_taken_for_these(name: str) -> None:
    f, plain = served(Jvp(pair, False, "llvm"), (X, V), (V, X)), Jvp(pair, False, "numpy")
    given = BAD_TANGENTS[name]
    for _ in range(2 * SERVED_FROM):
        assert same(outcome(f, (X, V), given), outcome(plain, (X, V), given))
        assert same(f((X, V), (V, X)), plain((X, V), (V, X)))


def test_other_primals_are_not_taken_for_these() -> None:
    f, plain = served(Jvp(of_pair, False, "llvm"), (Pair(X, 3),), (Pair(V, 0),)), Jvp(of_pair, False, "numpy")
    for primal, tangent in (
        (Pair(X, 4), Pair(V, 0)),
        (Pair(X, 3), Pair(V, None)),
        (Pair(X, 3), (V, 0)),
        (Pair(X, 3.0), Pair(V, 1.0)),
        (Record(X, 3), Record(V, 0)),
        (Record(X, 3), Pair(V, 0)),
    ):
        assert same(outcome(f, (primal,), (tangent,)), outcome(plain, (primal,), (tangent,)))
        assert same(f((Pair(X, 3),), (Pair(V, 0),)), plain((Pair(X, 3),), (Pair(V, 0),)))


def test_a_pullback_takes_what_fits_and_refuses_what_does_not() -> None:
    _, pull = sg.vjp(lambda x: (np.sin(x), np.sum(x)), X, backend="llvm")
    (good,) = pull((V, 1.0))
    assert same(good, V * np.cos(X) + 1.0)
    for scalar in (np.float64(1.0), 1, np.float32(1.0), np.array(1.0)):
        assert same(pull((V, scalar)), (good,))
    for bad in ((V[:5], 1.0), (V, 1.0 + 1j), (V, V), (V,), V, (V, None), (V, "1.0")):
        with pytest.raises(sg.errors.SrcgradError):
            pull(bad)


# --- what is kept ----------------------------------------------------------------------------------------------------
def test_what_is_learned_holds_no_functions_or_arrays_of_the_users() -> None:
    names = world(
        "a = np.arange(6.0)\n"
        "class M:\n"
        "    def __init__(self): self.w = np.ones(6)\n"
        "    def f(self, x): return np.sum(np.sin(x) * self.w)\n"
        "m = M()\n"
        "def g(x): return np.sum(np.sin(x) * a)"
    )
    for _ in range(2 * SERVED_FROM):
        sg.grad(names["m"].f, backend="llvm")(X), sg.grad(names["g"], backend="llvm")(X)
    assert sum(bool(known.tables) for known in cache.LEARNED.values()) == 2
    watched = [weakref.ref(thing) for thing in (names["a"], names["m"], names["m"].w, names["g"])]
    names.clear()
    gc.collect()
    assert [reference() for reference in watched] == [None] * 4


def test_tables_that_hold_transforms_stay_with_their_object() -> None:
    class Own(type(sg.grad(np.sin))):  # type: ignore[misc]
        """Of which it is not known what tells one from another."""

        @property
        def __srcgrad_static__(self) -> Any:
            return "own", self.options

    def made(s: Any) -> Any:
        inner = Own(lambda y: np.sin(y) * s[0], 0, False, False, "llvm", False)
        return lambda x: inner(x) * x

    array = X.copy()
    f = served(sg.grad(made(array), backend="llvm"), 0.5)
    assert any(isinstance(thing, Transformed) for thing in f._tables[1])
    assert not f.learned.tables
    watched = weakref.ref(array)
    del array, f
    gc.collect()
    assert watched() is None


@pytest.mark.parametrize("function", [np.sin, math.sin])
def test_transforms_of_a_function_in_c_made_anew_begin_with_what_is_learned(function: Any) -> None:
    served(sg.grad(function, backend="llvm"), 0.5)
    assert sg.grad(function, backend="llvm")._tables


@pytest.mark.filterwarnings("ignore:sum is traced again")
def test_what_is_learned_of_an_arrays_method_does_not_hold_the_array() -> None:
    array = X.copy()
    for _ in range(SERVED_FROM):
        sg.jit(array.sum, backend="llvm")()
    watched = weakref.ref(array)
    del array
    gc.collect()
    assert watched() is None


def test_clearing_forgets_what_is_learned(asked: list[Transformed]) -> None:
    for _ in range(2 * SERVED_FROM):
        sg.grad(squared, backend="llvm")(0.5)
    assert cache.LEARNED
    sg.clear_caches()
    assert not cache.LEARNED
    asked.clear()
    sg.grad(squared, backend="llvm")(0.5)
    assert len(asked) == 1


def test_what_is_learned_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "CAPACITY", 8)
    for _ in range(20):
        assert sg.grad(world("def f(x): return np.sin(x)")["f"], backend="llvm")(0.0) == 1.0
        assert len(cache.LEARNED) <= 8


def test_nothing_is_left_behind_by_any_form() -> None:
    model, tree, record, names = Model(6), Pair(X.copy(), 2.5), Record(X.copy(), 2.5), {"y": V.copy()}
    f = served(sg.value_and_grad(of_pair, backend="llvm"), tree)
    g = served(sg.value_and_grad(of_pair, backend="llvm"), record)
    h = served(sg.grad(pair, backend="llvm"), X, **names)
    k = served(sg.grad(model.loss, backend="llvm"), X)
    j = served(Jvp(of_pair, False, "llvm"), (record,), (record,))
    bad = Record(X, "text")

    def calls() -> None:
        f(tree), g(record), h(X, **names), k(X), j((record,), (record,))

    def others() -> None:
        sg.grad(squared, backend="llvm")(0.5), sg.jvp(pair, (X, V), (V, X), backend="llvm")
        outcome(g, bad), outcome(h, X, z=1.0), outcome(j, (record,), (bad,)), outcome(h, X, y=None)

    watched = [
        *(
            tree,
            tree.a,
            record,
            record.a,
            names["y"],
            bad,
            Pair,
            Record,
            model,
            model.w,
            model.layers,
            model.rates,
            "y",
        ),
        *(X, V, pair, squared, of_pair, f, g, h, k, j, f._tables, g._tables, h._tables, k._tables, j._tables),
    ]
    for _ in range(2 * SERVED_FROM):
        calls()
        others()
    gc.collect()
    counts, blocks = list(map(sys.getrefcount, watched)), sys.getallocatedblocks()
    for _ in range(100_000):
        calls()
    for _ in range(300):
        others()
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 400
    after = list(map(sys.getrefcount, watched))
    assert [abs(new - old) < 30 for old, new in zip(counts, after, strict=True)] == [True] * len(watched)


def test_an_instance_that_cannot_be_made_leaves_nothing_behind() -> None:
    class Refusing:
        """A descriptor that raises when it is set."""

        on = False

        def __set__(self, instance: Any, value: Any) -> None:
            raise ValueError("not now")

    f = served(sg.jit(lambda r: Record(r.a + 1.0, r.b * 2.0), backend="llvm"), Record(X, V))
    cls: Any = Record
    try:
        cls.b = Refusing()
        given = Record.__new__(Record)
        given.__dict__.update(a=X, b=V)
        blocks = sys.getallocatedblocks()
        for _ in range(200):
            outcome(f, given)
        gc.collect()
        assert sys.getallocatedblocks() - blocks < 3000
    finally:
        del cls.b
    assert same(f(Record(X, V)), Record(X + 1.0, V * 2.0))


def test_threads_make_and_call_objects_of_one_code() -> None:
    wrong: list[Any] = []

    def call(number: int) -> None:
        x = np.linspace(0.0, 1.0, 3 + number % 3)
        for turn in range(150):
            scale = float(turn + number)
            found = sg.grad(lambda y, s=scale: np.sum(np.sin(y) * s), backend="llvm")(x)
            if not np.allclose(found, scale * np.cos(x)):
                wrong.append((number, turn))
            if turn % 50 == 49:
                sg.clear_caches()

    threads = [threading.Thread(target=call, args=(k,)) for k in range(4)]
    with switching_often():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_without_known_layouts_nothing_is_learned_for_machine_code(
    monkeypatch: pytest.MonkeyPatch, asked: list[Transformed]
) -> None:
    monkeypatch.setattr(front, "POSSIBLE", False)
    for _ in range(3 * SERVED_FROM):
        assert same(sg.grad(squared, backend="llvm")(0.5), np.sin(0.5) + 0.5 * np.cos(0.5))
    assert len(asked) == 3 * SERVED_FROM
