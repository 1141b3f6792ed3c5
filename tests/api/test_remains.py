"""What a function leaves in objects of the caller's: numbers, whatever way it runs."""

from __future__ import annotations

import contextvars
import ctypes
import functools
import types
from collections import ChainMap, defaultdict, deque
from typing import Any, NamedTuple

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.tracing.remains import Settling
from srcgrad.tracing.tracer import Tracer

X = np.array([1.0, 2.0])
KEPT: list[Any] = []
LAST: Any = None


class Pair(NamedTuple):
    first: Any
    second: Any


class Slotted:
    __slots__ = ("kept",)


class Model:
    shared: Any = None

    def __init__(self) -> None:
        self.calls, self.history, self.last = 0, [], None  # type: ignore[var-annotated]
        self.named: Any = defaultdict(list)
        self.window: Any = deque(maxlen=2)
        self.inner = Slotted()

    @property
    def count(self) -> int:
        return len(self.history)

    def loss(self, x: Any) -> Any:
        self.calls += 1
        self.history.append(np.sum(x**2))
        self.named["x"].append(x * 2.0)
        self.window.append((x[0], Pair(x[1], [x])))
        self.last = {"half": x.sum() * 0.5}
        self.inner.kept = np.zeros(2)
        self.inner.kept[1] = x[0]
        Model.shared = x[1] * 1.0
        return self.history[-1] * self.count


def plain(found: Any) -> bool:
    """Whether there is nothing but NumPy's and Python's values in a structure."""
    if isinstance(found, (list, tuple, deque)):
        return all(map(plain, found))
    if isinstance(found, dict):
        return all(map(plain, found.values()))
    if isinstance(found, Slotted):
        return plain(found.kept)
    return type(found) in (int, float, str, np.ndarray, np.float64, type(None))


def derivatives(f: Any) -> list[Any]:
    return [
        sg.grad(f)(X), sg.value_and_grad(f)(X)[1], sg.jvp(f, (X,), (X,))[1], sg.vjp(f, X)[1](1.0)[0], sg.hessian(f)(X),
    ]  # fmt: skip


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_attributes_lists_and_dicts_hold_what_numpy_leaves_there(backend: str) -> None:
    ours, numpys = Model(), Model()
    for k in range(3):
        with sg.use_backend(backend):
            slope = sg.grad(ours.loss)(X + k)
        assert np.array_equal(slope, 2 * (X + k) * (k + 1))
        numpys.loss(X + k)
        assert plain(vars(ours))
        assert plain(Model.shared)
        assert ours.calls == k + 1
        assert np.array_equal(ours.history, numpys.history)
        assert np.array_equal(ours.named["x"], numpys.named["x"])
        assert np.array_equal(ours.inner.kept, numpys.inner.kept)
        assert repr(ours.window) == repr(numpys.window)
        assert ours.last == numpys.last
        assert type(ours.history[0]) is type(numpys.history[0])


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_globals_closures_defaults_and_attributes_of_functions_hold_numbers() -> None:
    best: Any = None

    def f(x: Any, seen: list[Any] = []) -> Any:  # noqa: B006
        global LAST
        nonlocal best
        LAST, best = np.sin(x), x[0]
        seen.append(x)
        f.trace.append(x.sum())  # type: ignore[attr-defined]
        KEPT.append((x[1], Pair(x, 0)))
        return np.sum(x**2)

    f.trace = []  # type: ignore[attr-defined]
    derivatives(f)
    derivatives(functools.partial(f))
    assert plain([LAST, best, f.__defaults__, f.trace, KEPT])  # type: ignore[attr-defined]
    assert np.array_equal(LAST, np.sin(X))


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_what_is_returned_keeps_its_derivative_where_the_function_keeps_it_too() -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        kept[:] = [x[0] ** 2, x]
        return kept

    first, second = sg.jacobian(f)(X)
    assert np.array_equal(first, [2.0, 0.0])
    assert np.array_equal(second, np.eye(2))
    assert plain(kept)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_a_function_that_raises_leaves_numbers_too() -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        kept.append(x * 3.0)
        raise KeyError("gone")

    with pytest.raises(KeyError):
        sg.grad(f)(X)
    assert kept
    assert plain(kept)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("name", ["trace", "job", "build", "count", "calls", "f", "options", "history"])
def test_attributes_of_a_function_may_have_the_names_that_ours_use(name: str) -> None:
    def f(x: Any) -> Any:
        setattr(f, name, getattr(f, name) + 1)
        return x * x

    setattr(f, name, 0)
    slope = sg.grad(f)
    assert [slope(float(k)) for k in range(6)] == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    assert getattr(f, name) == 6


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_a_decorated_function_may_count_its_calls() -> None:
    @sg.grad
    def f(x: Any) -> Any:
        f.calls += 1  # type: ignore[attr-defined]
        return x * x

    f.calls = 0  # type: ignore[attr-defined]
    assert [f(float(k)) for k in range(6)] == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    assert f.calls == 6  # type: ignore[attr-defined]


def test_what_a_plotting_library_holds_is_not_searched() -> None:
    import matplotlib.pyplot as plt

    def titled(x: Any) -> Any:
        plt.title("x")
        return x

    settling = Settling()
    settling.run([titled])
    assert len(settling.seen) < 20


CONTEXT: contextvars.ContextVar[Any] = contextvars.ContextVar("CONTEXT", default=None)
LISTED: contextvars.ContextVar[Any] = contextvars.ContextVar("LISTED")


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_context_variables_hold_numbers() -> None:
    def f(x: Any) -> Any:
        CONTEXT.set(x * 2.0)
        LISTED.get().append(CONTEXT.get()[0])
        return np.sum(x**2)

    def run() -> None:
        LISTED.set([])
        np.testing.assert_array_equal(sg.grad(f)(X), 2.0 * X)
        assert type(CONTEXT.get()) is np.ndarray
        assert CONTEXT.get().tolist() == [2.0, 4.0]
        assert plain(LISTED.get())
        assert LISTED.get() == [2.0]

    contextvars.copy_context().run(run)


def test_the_tests_are_not_searched() -> None:
    """pytest's assertions lead to its own modules, and these to each test of a run: it took seconds."""

    def positive(x: Any) -> Any:
        assert x > 0
        return x

    assert "@pytest_ar" in positive.__globals__
    search = Settling()
    search.run([positive])
    assert not [x for x in search.seen.values() if isinstance(x, pytest.Item | pytest.Config)]


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_modules_defaults_and_partials_hold_numbers() -> None:
    module: Any = types.ModuleType("settings")

    def helper(a: Any = 1.0) -> Any:
        return a

    part: Any = functools.partial(helper)
    chained: Any = ChainMap({}, {"last": 0.0})

    def f(x: Any) -> Any:
        module.last = part.last = chained["last"] = x * 2.0
        setattr(module, "first", x[0])  # noqa: B010
        helper.__defaults__ = (x,)
        return np.sum(x**2)

    np.testing.assert_array_equal(sg.grad(f)(X), 2.0 * X)
    assert type(module.last) is type(part.last) is type(chained["last"]) is type(helper()) is np.ndarray
    assert type(module.first) is np.float64


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_errors_that_are_kept_hold_numbers() -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        try:
            if x[0] > 0.0:
                raise KeyError("large", x)
        except KeyError as cause:
            kept.append(cause)
            try:
                raise ValueError(x[0], [x]) from cause
            except ValueError as error:
                kept.append(error)
        return np.sum(x**2)

    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(sg.grad(f)(x), 2.0 * x)
    first, second = kept
    assert type(first.args[1]) is type(second.args[1][0]) is np.ndarray
    assert type(second.args[0]) is np.float64


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_arrays_of_objects_that_a_program_would_return_hold_numbers() -> None:
    def f(x: Any) -> Any:
        found = np.empty(2, object)
        found[0] = x * 2
        found[1] = [x]
        return found

    g = sg.jit(f)
    for _ in range(2):
        first, second = g(np.ones(2))
        assert type(first) is np.ndarray and first.tolist() == [2.0, 2.0] and second[0].tolist() == [1.0, 1.0]


POINTERS: Any = (ctypes.py_object * 1)()


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_what_keeps_alive_what_memory_points_to_is_left_alone() -> None:
    """A number in its place freed the traced value that the memory still pointed to, which was a crash."""

    def f(x: Any) -> Any:
        POINTERS[:] = [x]
        return x * x

    for _ in range(2):
        assert sg.grad(f)(1.0) == 2.0
        assert isinstance(POINTERS._objects["0"], Tracer)
    POINTERS[:] = [None]
