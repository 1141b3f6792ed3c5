"""Programs are compiled once per code, transforms, types and guards, and a cached one is never stale."""

from __future__ import annotations

import functools
import gc
import io
import os
import random
import subprocess
import sys
import threading
import time
import types
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad import cache
from srcgrad.errors import ArgumentError, SrcgradError
from srcgrad.tracing.conversion.classes import TWINS, twin_of
from srcgrad.tracing.trace import CURRENT, Trace
from srcgrad.tracing.tracer import Tracer

X = np.array([1.0, 2.0, 3.0])


def module(source: str) -> Any:
    """A module of its own, with the source's names as globals."""
    made = types.ModuleType("case")
    made.__dict__["np"] = np
    exec(compile(source, "<case>", "exec"), made.__dict__)
    return made


# --- what does not compile again -------------------------------------------------------------------------------------
def test_a_fresh_lambda_in_a_loop_compiles_once(compilations: list[str]) -> None:
    for _ in range(20):
        assert sg.grad(lambda x: x * x)(3.0) == 6.0
    assert len(compilations) == 1


def test_a_fresh_closure_over_other_floats_and_arrays_compiles_once(compilations: list[str]) -> None:
    for k in range(20):
        weights, bias = np.full(3, float(k)), float(k)
        found = sg.grad(lambda x: np.sum(weights * x**2) + bias * np.sum(x))(X)  # noqa: B023
        assert np.array_equal(found, 2 * k * X + k)
    assert len(compilations) == 1


def test_one_object_called_again_compiles_once(compilations: list[str]) -> None:
    g = sg.value_and_grad(lambda x, y: x * y)
    for k in range(10):
        assert g(float(k), 2.0) == (2.0 * k, 2.0)
    assert len(compilations) == 1


def test_nested_transforms_compile_once(compilations: list[str]) -> None:
    for k in range(5):
        assert sg.grad(lambda x: sg.grad(lambda y: x * y**2)(x))(float(k)) == 4.0 * k
    assert len(compilations) == 1


def test_new_types_compile_anew(compilations: list[str]) -> None:
    g = sg.grad(lambda x: np.sum(x * x))
    for argument in (1.0, np.float32(1.0), X, X.astype(np.float32), X[:2], X.reshape(3, 1), 1j, np.longdouble(2.0)):
        found = g(argument)
        assert np.array_equal(found, 2 * argument)
        assert found.dtype == np.result_type(argument)
        assert np.shape(found) == np.shape(argument)
    assert len(compilations) == 8


# --- what is seen at the next call -----------------------------------------------------------------------------------
CHANGES: dict[str, tuple[str, Callable[[Any], None], float, float]] = {
    "scalar": ("k = 2.0\ndef f(x): return x * k", lambda m: setattr(m, "k", 5.0), 2.0, 5.0),
    "scalar's type": ("k = 2.0\ndef f(x): return x * k", lambda m: setattr(m, "k", 5), 2.0, 5.0),
    "int": ("k = 2\ndef f(x): return x ** k", lambda m: setattr(m, "k", 3), 2.0, 3.0),
    "text": (
        "k = 'a'\ndef f(x): return x * 2.0 if k == 'a' else x * 3.0", lambda m: setattr(m, "k", "b"), 2.0, 3.0
    ),
    "array": ("k = np.ones(2)\ndef f(x): return np.sum(x * k)", lambda m: setattr(m, "k", np.ones(3)), 2.0, 3.0),
    "array in place": ("k = np.ones(2)\ndef f(x): return np.sum(x * k)", lambda m: m.k.fill(4.0), 2.0, 8.0),
    "dtype": (
        "k = np.ones(2)\ndef f(x): return np.sum(x * k) * k.dtype.itemsize",
        lambda m: setattr(m, "k", np.ones(2, np.float32)), 16.0, 8.0,
    ),
    "structure": (
        "k = 1.0\ndef f(x): return x * 2.0 if k > 0 else x * 3.0", lambda m: setattr(m, "k", -1.0), 2.0, 3.0
    ),
    "helper": (
        "def h(x): return 2.0 * x\ndef f(x): return h(x)", lambda m: setattr(m, "h", lambda x: x * 7.0), 2.0, 7.0
    ),
    "helper's helper": (
        "def i(x): return 2.0 * x\ndef h(x): return i(x)\ndef f(x): return h(x)",
        lambda m: setattr(m, "i", lambda x: x * 7.0), 2.0, 7.0,
    ),
    "helper's global": (
        "k = 2.0\ndef h(x): return x * k\ndef f(x): return h(x)", lambda m: setattr(m, "k", 9.0), 2.0, 9.0
    ),
    "helper becomes a ufunc": (
        "def h(x): return 2.0 * x\ndef f(x): return h(x)", lambda m: setattr(m, "h", np.negative), 2.0, -1.0
    ),
    "default": ("def f(x, k=2.0): return x * k", lambda m: setattr(m.f, "__defaults__", (6.0,)), 2.0, 6.0),
    "keyword default": (
        "def f(x, *, k=2): return x * k", lambda m: setattr(m.f, "__kwdefaults__", {"k": 6}), 2.0, 6.0
    ),
    "code": (
        "def f(x): return x * 2.0", lambda m: setattr(m.f, "__code__", (lambda x: x * 4.0).__code__), 2.0, 4.0
    ),
    "list": ("k = [2.0]\ndef f(x): return x * k[0]", lambda m: m.k.__setitem__(0, 5.0), 2.0, 5.0),
    "dict": ("k = {'a': 2.0}\ndef f(x): return x * k['a']", lambda m: m.k.update(a=5.0), 2.0, 5.0),
    "tuple": ("k = (2, 3)\ndef f(x): return x * k[0]", lambda m: setattr(m, "k", (5, 3)), 2.0, 5.0),
    "attribute": (
        "class A: k = 2.0\na = A()\ndef f(x): return x * a.k", lambda m: setattr(m.a, "k", 5.0), 2.0, 5.0
    ),
    "shadowed builtin": (
        "def f(x): return abs(-x) * 2.0", lambda m: setattr(m, "abs", lambda x: x * 5.0), 2.0, -10.0
    ),
    "module": ("import math\ndef f(x): return x * math.pi", lambda m: setattr(m, "math", types.SimpleNamespace(pi=2.0)),
               np.pi, 2.0),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("fresh", [False, True], ids=["one object", "fresh object"])
def test_a_change_is_seen_at_the_next_call(name: str, fresh: bool) -> None:
    source, change, before, after = CHANGES[name]
    made = module(source)
    g = sg.grad(made.f)
    for _ in range(3):
        assert g(1.0) == before
    change(made)
    assert (sg.grad(made.f) if fresh else g)(1.0) == after
    assert sg.jit(made.f)(1.0) == (made.f(1.0))


def test_a_closure_cell_is_read_at_each_call(compilations: list[str]) -> None:
    scale = 2.0

    def f(x: Any) -> Any:
        return x * scale

    g = sg.grad(f)
    assert g(1.0) == 2.0
    scale = 3.0
    assert g(1.0) == 3.0
    assert len(compilations) == 1


def test_captured_arrays_that_begin_to_share_memory() -> None:
    made = module("a = np.zeros(2); b = np.zeros(2)\ndef f(x):\n    a[0] = x\n    return np.sum(a) + np.sum(b)")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        assert sg.grad(made.f)(1.0) == 1.0
        made.b = made.a
        assert sg.grad(made.f)(1.0) == 2.0
    assert np.array_equal(made.a, np.zeros(2))


def test_a_float_is_an_input_until_structure_depends_on_it(compilations: list[str]) -> None:
    made = module("a = 2.0\ndef f(x): return x * a")
    for k in range(1, 6):
        made.a = float(k)
        assert sg.grad(made.f)(1.0) == k
    assert len(compilations) == 1
    made = module("a = 2.0\ndef f(x): return x * a if a > 2.5 else -x * a")
    for a in (1.0, 2.0, 3.0, 4.0, 1.0, 3.0):
        made.a = a
        assert sg.grad(made.f)(1.0) == (a if a > 2.5 else -a)
    assert len(compilations) == 5


def test_signed_zero_and_nan_are_told_apart() -> None:
    made = module("a = 0.0\ndef f(x): return x * np.copysign(2.0, a) if a == 0 else x * 5.0")
    for a, expected in ((0.0, 2.0), (-0.0, -2.0), (float("nan"), 5.0), (0.0, 2.0)):
        made.a = a
        assert sg.grad(made.f)(1.0) == expected


def step_unread(p: Any, i: int, *, rate: Any = 0) -> Any:
    return np.sum(p**2)


def step_read_inside(p: Any, i: int, *, rate: Any = 0) -> Any:
    def times() -> int:
        return i

    return np.sum(p**2) * times()


@pytest.mark.parametrize(("f", "programs"), [(step_unread, 1), (step_read_inside, 6)])
def test_an_argument_that_no_code_reads_compiles_nothing(f: Any, programs: int, compilations: list[str]) -> None:
    slope = sg.grad(f)
    for i in range(1, 7):
        np.testing.assert_allclose(slope(X, i), 2.0 * X * (1 if f is step_unread else i))
    assert len(compilations) == programs
    for rate in (1, 2, 3):
        slope(X, 1, rate=rate)
    assert len(compilations) == programs + 1
    for other in ("a", None, 1.0, X):
        if f is step_unread:
            np.testing.assert_allclose(slope(X, other), 2.0 * X)


def test_static_arguments_are_guards(compilations: list[str]) -> None:
    g = sg.grad(lambda x, n, name: x**n if name == "power" else x * n)
    assert g(2.0, 3, "power") == 12.0
    assert g(2.0, 2, "power") == 4.0
    assert g(2.0, 3, "product") == 3.0
    assert g(2.0, True, "product") == 1.0
    assert g(2.0, 1, "product") == 1.0
    assert len(compilations) == 5


def test_transforms_and_their_options_are_told_apart() -> None:
    f = lambda x, y: x**2 * y  # noqa: E731
    assert sg.grad(f)(3.0, 2.0) == 12.0
    assert sg.grad(f, argnums=1)(3.0, 2.0) == 9.0
    assert sg.grad(f, argnums=(0,))(3.0, 2.0) == (12.0,)
    assert sg.value_and_grad(f)(3.0, 2.0) == (18.0, 12.0)
    assert sg.jit(f)(3.0, 2.0) == 18.0
    assert sg.hessian(f)(3.0, 2.0) == 4.0
    assert sg.jvp(f, (3.0, 2.0), (1.0, 0.0)) == (18.0, 12.0)
    pairs = np.array([[1.0, 2.0], [3.0, 4.0]])
    h = lambda m: np.sum(m * m[0])  # noqa: E731
    assert np.array_equal(sg.vmap(h)(pairs), [3.0, 21.0])
    assert np.array_equal(sg.vmap(h, in_axes=1)(pairs), [4.0, 12.0])


def test_the_backend_is_in_the_key(compilations: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from srcgrad import compiler
    from srcgrad.backends import base

    before = compiler.backend_name(None)
    monkeypatch.setitem(base._loaded, "other", base.backend("numpy"))
    g = sg.grad(lambda x: x * x)
    g(1.0)
    with sg.use_backend("other"):
        assert g(1.0) == 2.0
        assert compiler.backend_name(None) == "other"
    assert compiler.backend_name(None) == before
    g(1.0)
    assert len(compilations) == 2


# --- bounds and life times -------------------------------------------------------------------------------------------
def test_the_tables_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache.PROGRAMS, "capacity", 4)
    monkeypatch.setattr(cache.CODES, "capacity", 4)
    g = sg.grad(lambda x, n: x**n)
    for n in range(1, 12):
        assert g(1.0, n) == n
    assert g(1.0, 1) == 1.0
    for n in range(6):
        made = module(f"def f(x): return x * {n}.0")
        assert sg.grad(made.f)(1.0) == n
    assert len(cache.PROGRAMS.entries) <= 4
    assert len(cache.CODES.entries) <= 4
    sg.clear_caches()


def test_fewer_programs_of_xla_are_kept_than_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has some fifty maps of memory: after a thousand a process has no more, and the next compiler crashes."""
    monkeypatch.setattr(cache.PROGRAMS, "capacity", 9)
    sg.clear_caches()

    def run(backend: str, n: int) -> int:
        assert sg.grad(lambda x, n: x**n, backend=backend)(2.0, n) == n * 2.0 ** (n - 1)
        return len(cache.PROGRAMS.entries)

    assert [run("llvm", n) for n in range(2, 6)] == [1, 2, 3, 4]
    assert [run("xla", n) for n in range(2, 5)] == [5, 3, 2]  # 4 + 4, 1 + 8 and 8
    assert [run("llvm", n) for n in range(6, 9)] == [3, 3, 4]


def test_weights_end_with_their_entries() -> None:
    table = cache.Table(4)
    for turn in range(3):
        table.put("a", turn, 3)
        table.put("b", turn)
        assert list(table.entries) == ["a", "b"]
    table.put("c", 0, 3)
    assert list(table.entries) == ["b", "c"]
    table.put("c", 0)
    table.put("d", 0)
    assert list(table.entries) == ["b", "c", "d"]
    table.put("e", 0, 9)
    assert list(table.entries) == ["e"]
    table.clear()
    table.put("f", 0, 3)
    table.put("g", 0)
    assert list(table.entries) == ["f", "g"]


def test_what_was_used_least_recently_goes_first() -> None:
    table = cache.Table(2)
    table.put("a", 1)
    table.put("b", 2)
    assert table.get("a") == 1
    table.put("c", 3)
    assert table.get("b") is None
    assert (table.get("a"), table.get("c")) == (1, 3)


def references(call: Callable[[Any], object], branching: bool) -> list[weakref.ref[Any]]:
    """A function and its captured array, after a call of it."""
    captured = np.arange(3.0)

    def straight(x: Any) -> Any:
        return np.sum(captured * x)

    def branched(x: Any) -> Any:
        return np.sum(captured * x) if np.sum(x) > 0 else np.sum(x)

    f = branched if branching else straight
    call(f)
    return [weakref.ref(f), weakref.ref(captured)]


def with_jvp_rule(f: Any) -> Any:
    ruled = sg.custom_jvp(f)
    ruled.defjvp(lambda primals, tangents: (f(*primals), np.sum(tangents[0])))
    return ruled


def with_vjp_rule(f: Any) -> Any:
    ruled = sg.custom_vjp(f)
    ruled.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * x,))
    return ruled


ON_ARRAYS: dict[str, Callable[[Any], object]] = {
    "grad": lambda f: sg.grad(f)(X),
    "value_and_grad": lambda f: sg.value_and_grad(f)(X),
    "jacobian": lambda f: sg.jacobian(f)(X),
    "jacfwd": lambda f: sg.jacfwd(f)(X),
    "jacrev": lambda f: sg.jacrev(f)(X),
    "hessian": lambda f: sg.hessian(f)(X),
    "vmap": lambda f: sg.vmap(f)(np.ones((2, 3))),
    "jit": lambda f: sg.jit(f)(X),
    "vjp": lambda f: sg.vjp(f, X)[1](1.0),
    "jvp": lambda f: sg.jvp(f, (X,), (X,)),
    "linearize": lambda f: sg.linearize(f, X)[1](X),
    "hvp": lambda f: sg.hvp(f, (X,), (X,)),
    "custom_jvp": lambda f: sg.grad(with_jvp_rule(f))(X),
    "custom_vjp": lambda f: sg.grad(with_vjp_rule(f))(X),
    "checkpoint": lambda f: sg.grad(sg.checkpoint(f))(X),
    "hessian of jit": lambda f: sg.hessian(sg.jit(f))(X),
}


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("branching", [False, True], ids=["cached", "traced again"])
@pytest.mark.parametrize("name", ON_ARRAYS)
def test_neither_functions_nor_arrays_are_kept_alive(name: str, branching: bool) -> None:
    sg.clear_caches()
    gc.collect()
    others = {id(thing) for thing in gc.get_objects() if isinstance(thing, (Trace, Tracer))}
    gc.disable()  # large arrays are freed at once, by reference counts
    try:
        for _ in range(2):
            assert [reference() for reference in references(ON_ARRAYS[name], branching)] == [None, None]
        assert {id(thing) for thing in gc.get_objects() if isinstance(thing, (Trace, Tracer))} <= others
    finally:
        gc.enable()


@pytest.mark.usefixtures("older_objects_left_alone")
def test_a_reused_id_is_no_key() -> None:
    for k in range(50):
        made = module(f"def f(x): return x * {k}.0")
        assert sg.grad(made.f)(1.0) == k
        del made
        gc.collect()


def test_functions_of_one_factory_and_of_many_values() -> None:
    def power(n: int) -> Any:
        return lambda x: x**n

    made = [power(n) for n in range(1, 20)]
    for _ in range(2):
        for n, f in enumerate(made, 1):
            assert sg.grad(f)(1.0) == n


def test_guards_of_many_values_stay_compiled(compilations: list[str]) -> None:
    def power(n: int) -> Any:
        return lambda x: x**n

    for _ in range(3):
        for n in range(1, 20):
            assert sg.grad(power(n))(1.0) == n
    assert len(compilations) == 19


def test_recursion_partials_and_defaults() -> None:
    def power(x: Any, n: int) -> Any:
        return 1.0 if n == 0 else x * power(x, n - 1)

    assert sg.grad(power)(2.0, 3) == 12.0
    assert sg.grad(functools.partial(power, n=4))(1.0) == 4.0
    assert sg.grad(functools.partial(power, n=5))(1.0) == 5.0
    assert sg.grad(functools.partial(lambda k, x: k * x, 2.0))(1.0) == 2.0
    assert sg.grad(functools.partial(lambda k, x: k * x, 3.0))(1.0) == 3.0


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_methods_see_their_instance() -> None:
    class Line:
        def __init__(self, slope: float) -> None:
            self.slope = slope

        @sg.grad
        def rise(self, x: Any) -> Any:
            return self.slope * x

        def value(self, x: Any) -> Any:
            return self.slope * x

        derivative = sg.grad(value, argnums=1)

    one, other = Line(2.0), Line(3.0)
    assert sg.grad(one.value)(1.0) == 2.0
    assert sg.grad(other.value)(1.0) == 3.0
    assert one.rise(1.0) == 2.0
    one.slope = 5.0
    assert sg.grad(one.value)(1.0) == 5.0
    assert one.rise(1.0) == 5.0
    assert other.rise(1.0) == 3.0


@dataclass
class Model:
    """A container with a field that is static and one that is traced."""

    weight: Any
    power: int


def test_records_are_containers(compilations: list[str]) -> None:
    g = sg.grad(lambda x, m: m.weight * x**m.power)
    assert g(2.0, Model(3.0, 2)) == 12.0
    assert g(2.0, Model(5.0, 2)) == 20.0
    assert g(2.0, Model(5.0, 3)) == 60.0
    assert len(compilations) == 2


# --- threads ---------------------------------------------------------------------------------------------------------
def test_threads_calling_first() -> None:
    sg.clear_caches()
    functions = [module(f"def f(x): return np.sum(np.sin(x) * x ** {n})").f for n in range(1, 9)]
    expected = [sg.grad(f)(X) for f in functions]
    sg.clear_caches()
    start = threading.Barrier(8)
    failures: list[Any] = []

    def work(shift: int) -> None:
        start.wait()
        for k in range(len(functions)):
            n = (k + shift) % len(functions)
            found = sg.grad(functions[n])(X)
            if not np.array_equal(found, expected[n]):
                failures.append((n, found))

    threads = [threading.Thread(target=work, args=(shift,)) for shift in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert gc.isenabled()


# --- effects ---------------------------------------------------------------------------------------------------------
LOG: list[Any] = []
EFFECTS: dict[str, str] = {
    "append to a global list": "def f(x):\n    LOG.append(1)\n    return x * 2.0",
    "append in a helper": "def h():\n    LOG.append(1)\ndef f(x):\n    h()\n    return x * 2.0",
    "counter in a dict": "def f(x):\n    STATE['n'] = STATE.get('n', 0) + 1\n    LOG.append(1)\n    return x * 2.0",
    "attribute": "class A: pass\na = A()\ndef f(x):\n    a.seen = 1\n    LOG.append(a.seen)\n    return x * 2.0",
    "print": "def f(x):\n    print('called', file=OUT)\n    LOG.append(1)\n    return x * 2.0",
    "global": "n = 0\ndef f(x):\n    global n\n    n += 1\n    LOG.append(n)\n    return x * 2.0",
    "unknown": "def f(x):\n    note()\n    return x * 2.0",
}
CALLS: dict[str, Any] = {
    "grad": lambda f: sg.grad(f)(1.0),
    "value_and_grad": lambda f: sg.value_and_grad(f)(1.0),
    "jacfwd": lambda f: sg.jacfwd(f)(1.0),
    "hessian": lambda f: sg.hessian(f)(1.0),
    "jit": lambda f: sg.jit(f)(1.0),
    "vjp": lambda f: sg.vjp(f, 1.0),
    "jvp": lambda f: sg.jvp(f, (1.0,), (1.0,)),
    "linearize": lambda f: sg.linearize(f, 1.0),
    "hvp": lambda f: sg.hvp(f, (1.0,), (1.0,)),
    "grad of jit": lambda f: sg.grad(sg.jit(f))(1.0),
    "jit of grad": lambda f: sg.jit(sg.grad(f))(1.0),
    "grad of checkpoint": lambda f: sg.grad(sg.checkpoint(f))(1.0),
}


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("effect", EFFECTS)
def test_an_effect_happens_once_per_call(effect: str, call: str) -> None:
    made = module(EFFECTS[effect])
    log: list[Any] = []
    made.LOG, made.STATE, made.OUT, made.note = log, {}, io.StringIO(), functools.partial(log.append, 1)
    for count in range(1, 4):
        CALLS[call](made.f)
        assert len(log) == count


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_effects_keep_their_order_and_see_values(capsys: pytest.CaptureFixture[str]) -> None:
    made = module("def f(x):\n    print('x', x)\n    y = x * x\n    print('y', y)\n    return y")
    assert sg.grad(made.f)(3.0) == 6.0
    assert capsys.readouterr().out == "x 3.0\ny 9.0\n"
    assert sg.grad(made.f)(4.0) == 8.0
    assert capsys.readouterr().out == "x 4.0\ny 16.0\n"


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_random_draws_and_clocks_are_taken_at_each_call() -> None:
    """In code that is run as it is, for it has no source."""
    made = module("import random\ndef f(x): return x * np.random.rand() + random.random() * rng.random()")
    calls = []
    for function in (made.f, lambda x: sg.value_and_grad(made.f)(x)[0]):
        np.random.seed(7)
        random.seed(7)
        made.rng = np.random.default_rng(3)
        calls.append([function(1.0) for _ in range(4)])
    assert calls[0] == calls[1]
    made = module("import time\ndef f(x): return x * float(time.perf_counter_ns())")
    before = time.perf_counter_ns()
    assert sg.grad(made.f)(1.0) >= before
    assert sg.grad(made.f)(1.0) < sg.grad(made.f)(1.0)


def drawn(x: Any) -> Any:
    return x * np.random.rand() + random.random() * (time.perf_counter_ns() > 0)


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("transform", [sg.value_and_grad, lambda f: lambda x: (sg.jit(f, strict=True)(x), 0)])
def test_code_whose_source_is_there_draws_in_one_program(transform: Any, compilations: list[str]) -> None:
    calls = []
    for function in (drawn, lambda x: transform(drawn)(x)[0]):
        np.random.seed(7)
        random.seed(7)
        calls.append([function(1.0) for _ in range(4)])
    assert calls[0] == calls[1]
    assert len(set(calls[0])) == 4
    assert len(compilations) == 1


# --- jit(strict=True), and the warning -------------------------------------------------------------------------------
STRICT = {
    # None of it has a source, so no call back into Python can stand for these.
    "def f(x): return x * np.random.rand()": "draws at each call",
    "def f(x):\n    print(x)\n    return x": "print writes at each call",
    "import time\ndef f(x): return x * time.time()": "reads the clock",
    "k = [1.0]\ndef f(x):\n    k.append(2.0)\n    return x * k[0]": "changes k, which is captured",
    "def f(x): return x if x > 0 else -x": "bool() needs the value",
    "def f(x): return x * np.zeros(int(x)).size": "int() needs the value",
    "def f(x): return np.ones(3)[np.array([x, x, x]) > 0].sum() * x": "concrete ndarray",
}


@pytest.mark.parametrize("source", STRICT)
def test_strict_jit_says_why(source: str) -> None:
    made = module(source)
    with pytest.raises(ArgumentError, match=r"jit\(strict=True\): f cannot be one program") as caught:
        sg.jit(made.f, strict=True)(1.0)
    assert STRICT[source] in str(caught.value)
    assert sg.jit(lambda x: x * 2.0, strict=True)(1.0) == 2.0


def test_the_warning_comes_once_per_function() -> None:
    made = module("def f(x): return x * len(str(x))")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            sg.grad(made.f)(1.0)
            sg.jacfwd(made.f)(1.0)
    assert [entry.category for entry in caught] == [sg.RetraceWarning]
    assert "str() needs the value of a traced f64[]" in str(caught[0].message)
    assert caught[0].filename == __file__


# --- after an error --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("call", CALLS)
def test_an_error_in_the_middle_leaves_nothing_broken(call: str) -> None:
    made = module("def f(x):\n    y = x * 2.0\n    if broken: raise KeyError('stop')\n    return y")
    made.broken = True
    for _ in range(2):
        with pytest.raises(KeyError):
            CALLS[call](made.f)
        assert CURRENT.get() is None
        assert gc.isenabled()
    made.broken = False
    found = CALLS[call](made.f)
    assert found is not None
    made.broken = True
    with pytest.raises(KeyError):
        CALLS[call](made.f)


def test_an_error_of_srcgrad_leaves_nothing_broken() -> None:
    made = module("k = np.ones(4)\ndef f(x): return np.sum(x + k)")
    for _ in range(2):
        with pytest.raises(SrcgradError):
            sg.grad(made.f)(X)
        assert CURRENT.get() is None
        assert gc.isenabled()
    made.k = np.ones(3)
    assert np.array_equal(sg.grad(made.f)(X), np.ones(3))


def test_a_disabled_collector_stays_disabled() -> None:
    gc.disable()
    try:
        module_ = module("def f(x): return x * 123.0")
        sg.grad(module_.f)(1.0)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_an_unknown_backend_in_the_environment() -> None:
    code = "import srcgrad as sg\nprint(sg.grad(lambda x: x * x)(1.0))"
    environment = os.environ | {"SRCGRAD_BACKEND": "nunpy", "PYTHONPATH": os.pathsep.join(p or "." for p in sys.path)}
    bad = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert bad.returncode != 0
    assert "there is no backend 'nunpy'" in bad.stderr


def test_clearing_the_caches_lets_go_of_classes_and_code() -> None:
    def traced() -> tuple[weakref.ref[Any], weakref.ref[Any]]:
        made = module(
            "class Scale:\n    @property\n    def twice(self):\n        return 2.0\n\n"
            "def f(x):\n    return np.sum(x * x)\n"
        )
        twin_of(made.Scale)
        assert made.Scale in TWINS
        sg.grad(made.f)(X)
        return weakref.ref(made.Scale), weakref.ref(made.f.__code__)

    kept = traced()
    sg.clear_caches()
    gc.collect()
    assert [found() for found in kept] == [None, None]


def test_functions_that_a_decorator_of_a_library_makes_do_not_serve_each_others_calls() -> None:
    """SciPy's wrappers of linear algebra have one code object, and are no functions that guards tell apart."""
    import scipy.linalg

    a = np.array([[2.0, 0.5], [0.5, 1.0]])
    for function in (scipy.linalg.cholesky, scipy.linalg.cosm, scipy.linalg.logm, scipy.linalg.cholesky):
        for _ in range(6):
            np.testing.assert_allclose(sg.jit(function)(a), function(a), rtol=1e-13)
            np.testing.assert_allclose(sg.jvp(function, (a,), (a,))[0], function(a), rtol=1e-13)
