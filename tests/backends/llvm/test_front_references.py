"""Calls answered in machine code leave nothing behind, in threads too, and their objects are like any others."""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import pickle
import subprocess
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad import transformed
from srcgrad.transformed import SERVED_FROM, Transformed
from tests.backends.llvm.front_cases import world
from tests.backends.llvm.front_support import X, needs_machine, same, served, switching_often

pytest.importorskip("llvmlite")
from srcgrad import front

pytestmark = needs_machine


# --- references and threads ------------------------------------------------------------------------------------------
def test_nothing_is_left_behind(guards: str) -> None:
    names = world("a = np.arange(6.0)\ns = 2.0\ndef f(x, t, n): return np.sum(np.sin(x) * a * s * t['w'][0]) * n")
    x, tree = X.copy(), {"w": [X.copy(), 2.5]}
    f = served(sg.value_and_grad(names["f"], (0, 1), backend="llvm"), x, tree, 3)
    g = served(sg.grad(lambda y: np.sin(y) * 1.5, backend="llvm"), 0.5)
    missing = served(sg.grad(lambda y: np.sin(y), backend="llvm"), 0.5)
    watched = [
        *(x, tree, tree["w"], tree["w"][0], names["a"], names["s"], names["f"], np, float, np.float64, np.ndarray),
        *(x.dtype, f, g, missing, f._tables, g._tables, missing._tables, names, tuple, list, dict),
        *(*f._tables, *g._tables),
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
    try:
        with switching_often():
            for thread in threads:
                thread.start()
            for turn in range(2000):
                names["n"] = 2 + turn % 2
                names["s"] = np.float64(1.0 + (turn // 2) % 2)
    finally:
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
        g._tables = ()
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
    sg.set_backend("llvm")  # which the fixture of all tests takes back
    served(module_level, 0.5)
    f = served(sg.grad(np.sin), 0.5)
    assert pickle.loads(pickle.dumps(module_level)) is module_level
    for copied in (pickle.loads(pickle.dumps(f)), copy.copy(f), copy.deepcopy(f)):
        assert copied._tables is f.learned.tables  # not those that were pickled: what was learned of np.sin here
        assert same(copied(0.5), np.cos(0.5))
        assert same(served(copied, 0.5)(0.5), np.cos(0.5))
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
    found = weakref.ref(f), weakref.ref(next(iter(f.answered)).executable)  # type: ignore[attr-defined]
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
        "print('llvmlite' in sys.modules, hasattr(f, '_tables'))"
    )
    assert text.strip() == "False False"


def test_calls_work_until_the_interpreter_has_ended() -> None:
    text = run(
        "import atexit, sys, numpy as np, srcgrad as sg\n"
        "f = sg.grad(lambda x: np.sin(x) * x, backend='llvm')\n"
        "for _ in range(20): f(0.5)\n"
        "assert hasattr(f, '_tables')\n"
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
    assert len(asked) == 3 * SERVED_FROM and not hasattr(f, "_tables")


def test_the_base_class_is_plain_where_classes_are_not_known() -> None:
    text = run(
        "import sys, numpy as np\n"
        "info = sys.version_info\n"
        "sys.version_info = (3, 99, 0, 'final', 0)\n"
        "import srcgrad.vectorcall as v\n"
        "sys.version_info = info\n"
        "import srcgrad as sg\n"
        "f = sg.grad(np.sin, backend='llvm')\n"
        "print(v.POSSIBLE, v.VectorCalled.__basicsize__, {float(f(0.5)) for _ in range(20)}, hasattr(f, '_tables'))"
    )
    assert text.split() == ["False", "16", f"{{{np.cos(0.5)}}}", "False"]


def test_the_threshold_is_a_power_of_two() -> None:
    assert transformed.SERVED_FROM & (transformed.SERVED_FROM - 1) == 0


def test_an_attribute_of_the_users_is_not_what_machine_code_reads() -> None:
    """Attributes are for whoever has the function: a dict in the place of the tables was a crash at the next call."""
    f = served(sg.grad(lambda x: x * x, backend="llvm"), 0.5)
    f.tables = {"one": 1}
    assert f(0.7) == 1.4 and f.tables == {"one": 1}
