"""What a function only writes for its caller: lists that it appends to, numbers that it counts with, attributes that it
stores. One program does it, when it runs, as plain Python would.
"""

from __future__ import annotations

import functools
import gc
import threading
import warnings
import weakref
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.cache import find_captures

POINTS = tuple(np.array(point) for point in ([0.5, 0.2], [1.5, -0.5], [0.1, 2.0], [3.0, 0.7]))
SEEN: list[Any] = []
TABLE: dict[str, Any] = {"seen": [], "calls": 0}
CALLS = 0


def count_a_global(x: Any) -> Any:
    global CALLS
    CALLS += 1
    return np.sum(x * x)


def append_to_a_global(x: Any) -> Any:
    total = np.sum(np.sin(x))
    SEEN.append(total)
    SEEN.append([x, {"twice": 2 * x, "is": "known"}])
    SEEN.append((1, float(total), np.zeros(2)))
    SEEN.append(f"{total:.3f}")
    TABLE["seen"].append(x[0])
    TABLE["calls"] += 2
    return total


class Model:
    """Each method is tried."""

    shared = 3

    def __init__(self) -> None:
        self.calls = 0
        self.total = 1.0
        self.losses: list[Any] = []
        self.best = np.inf
        self.point: Any = None
        self.weight = np.ones(2)
        self.table: dict[str, Any] = {"a": [], "n": 1}
        self.counts: Counter[str] = Counter()
        self.lists: defaultdict[str, list[Any]] = defaultdict(list)
        self.ordered: OrderedDict[str, Any] = OrderedDict(k=1.5)
        self.pair = [0, 0.0]

    def counts_and_appends(self, x: Any) -> Any:
        self.calls += 1
        value = np.sum(x * x)
        self.losses.append(value)
        return value

    def other_operators(self, x: Any) -> Any:
        self.total *= 1.5
        self.total -= x[0]
        self.calls |= 4
        self.calls <<= 1
        self.total **= 2
        return np.sum(x * x)

    def items(self, x: Any) -> Any:
        self.table["a"].append(x)
        self.table["n"] *= 3
        self.counts["k"] += 1
        self.lists["b"].append(x.max())
        self.ordered["k"] += x[0]
        self.pair[1] += x[1]
        return np.sum(x * x)

    def on_one_path(self, x: Any) -> Any:
        if x[0] > 1:
            self.calls += 1
            self.losses.append(x[1])
        return np.sum(x * x)

    def in_a_long_loop(self, x: Any) -> Any:
        total = 0.0
        for k in range(100):
            self.calls += 1
            total = total + np.sin(x[0] * k)
            if k % 20 == 0:
                self.losses.append((k, total))
        return total * x[1]

    def in_a_while(self, x: Any) -> Any:
        while np.sum(x) > 0.1:
            x = x * 0.5
            self.losses.append(np.sum(x))
        return np.sum(x * x)

    def in_a_try(self, x: Any) -> Any:
        try:
            found = np.linalg.solve(np.outer(x, x) + np.eye(2), x)
            self.losses.append(found)
        except np.linalg.LinAlgError:
            self.calls += 1
            found = x
        return np.sum(found * x)

    def stores(self, x: Any) -> Any:
        value = np.sum(x * x)
        if value < self.best:
            self.best, self.point = value, x.copy()
        self.last = {"x": x, "value": value, "name": "last"}
        return value

    def stores_what_it_reads(self, x: Any) -> Any:
        self.weight = self.weight - 0.1 * x
        for k in range(40):
            self.total = self.total * 0.5 + k * x[0]
        return np.sum(self.weight * x) + self.total

    def between_methods(self, x: Any) -> Any:
        self.state = np.sin(x)
        return self.reads_state() * 2

    def reads_state(self) -> Any:
        self.calls += 1
        return np.sum(self.state**2)

    @property
    def counted(self) -> float:
        self.calls += 1
        return 2.0

    def in_a_property(self, x: Any) -> Any:
        return np.sum(x * self.counted)

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        self.losses.append(np.sum(x))
        return np.sum(x**3)


METHODS = [name for name, member in vars(Model).items() if callable(member) and name not in ("__init__", "reads_state")]
TRANSFORMS: dict[str, Callable[..., Any]] = {
    "grad": sg.grad,
    "jit": sg.jit,
    "hessian": sg.hessian,
    "jvp": lambda f, **options: lambda x: sg.jvp(f, (x,), (x,), **options),
    "vjp": lambda f, **options: lambda x: sg.vjp(f, x, **options)[1](1.0),
}


def closure() -> tuple[Any, Callable[[], Any]]:
    calls, seen = 0, []

    def f(x: Any) -> Any:
        nonlocal calls
        calls += 1
        for k in range(20):
            seen.append(x[0] * k)
        return np.sum(x**2)

    return f, lambda: (calls, seen)


def counting(f: Any) -> Any:
    @functools.wraps(f)
    def counted(*args: Any) -> Any:
        counted.calls += 1  # type: ignore[attr-defined]
        counted.length += 0.5 * len(args)  # type: ignore[attr-defined]
        return f(*args)

    vars(counted).update(calls=0, length=0.0)
    return counted


def decorated() -> tuple[Any, Callable[[], Any]]:
    @counting
    def square(x: Any) -> Any:
        return np.sum(x**2)

    def f(x: Any) -> Any:
        return square(x) + (square(x / 2) if x[0] > 1.0 else x[1])

    return counting(f), lambda: [square.calls, square.length]


def restart() -> None:
    global CALLS
    CALLS = 0
    SEEN.clear()
    TABLE.update(seen=[], calls=0)


def of_globals(function: Any) -> tuple[Any, Callable[[], Any]]:
    restart()
    return function, lambda: (CALLS, list(SEEN), {**TABLE, "seen": list(TABLE["seen"])})


def of_a_model(name: str) -> tuple[Any, Callable[[], Any]]:
    model = Model()
    return (model if name == "__call__" else getattr(model, name)), lambda: vars(model)


MADE: dict[str, Callable[[], tuple[Any, Callable[[], Any]]]] = {
    "a closure": closure,
    "decorators": decorated,
    "a counted global": lambda: of_globals(count_a_global),
    "globals": lambda: of_globals(append_to_a_global),
    **{name: (lambda name=name: of_a_model(name)) for name in METHODS},  # type: ignore[misc]
}


def alike(one: Any, other: Any) -> None:
    """The same structure, types, numbers."""
    if isinstance(one, dict):
        assert type(one) is type(other) and list(one) == list(other)
        alike(list(one.values()), list(other.values()))
    elif isinstance(one, (list, tuple)):
        assert type(one) is type(other) and len(one) == len(other)
        for item, another in zip(one, other, strict=True):
            alike(item, another)
    elif isinstance(one, (str, type(None))):
        assert one == other
    else:
        assert np.asarray(one).dtype == np.asarray(other).dtype
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", MADE)
def test_it_is_written_as_in_plain_python(name: str, backend: str, transform: str) -> None:
    plain, expected = MADE[name]()
    for point in POINTS:
        plain(point)
    kept = expected()
    f, written = MADE[name]()
    call = TRANSFORMS[transform](f, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        for point in POINTS:
            given = point.copy()
            call(given)
            given[:] = 99.0  # what is written has arrays of its own
    alike(written(), kept)


def test_xla_writes_too() -> None:
    pytest.importorskip("jax")
    model, plain = Model(), Model()
    call = sg.grad(model.counts_and_appends, backend="xla")
    for point in POINTS:
        plain.counts_and_appends(point)
        call(point)
    alike(vars(model), vars(plain))


def test_vmap_writes_for_each_example() -> None:
    model, plain = Model(), Model()
    sg.vmap(model.counts_and_appends)(np.stack(POINTS))
    for point in POINTS:
        plain.counts_and_appends(point)
    alike(vars(model), vars(plain))


def test_one_program_writes_for_the_object_that_is_called() -> None:
    models = [Model(), Model()]
    calls = [sg.grad(model.counts_and_appends) for model in models]
    for k, call in enumerate([calls[0], calls[1], calls[1], calls[0], calls[1]]):
        call(np.array([1.0, k]))
    assert [model.calls for model in models] == [2, 3]
    assert models[0].losses == [1.0, 10.0] and models[1].losses == [2.0, 5.0, 17.0]


def test_a_list_is_another_one_at_another_call() -> None:
    model = Model()
    call = sg.grad(model.counts_and_appends)
    call(POINTS[0])
    first, model.losses = model.losses, []
    model.calls = 2.5  # type: ignore[assignment]
    call(POINTS[1])
    assert len(first) == len(model.losses) == 1 and model.calls == 3.5


class Reading:
    """What is read besides is no journal: each method is right, if it is traced again."""

    default = 0

    def __init__(self) -> None:
        self.n = 1
        self.seen: list[Any] = [2.0]
        self.also = self.seen
        self.table = {"n": 1}

    def a_length(self, x: Any) -> Any:
        self.seen.append(np.sum(x))
        return np.sum(x) * len(self.seen)

    def an_item(self, x: Any) -> Any:
        self.seen.append(np.sum(x))
        return np.sum(x) * self.seen[-2]

    def by_another_name(self, x: Any) -> Any:
        self.seen.append(np.sum(x))
        return np.sum(x) * self.also[-2]

    def a_count(self, x: Any) -> Any:
        self.n += 1
        return np.sum(x) * self.n

    def an_assigned_count(self, x: Any) -> Any:
        self.n = self.n + 1
        return np.sum(x) * self.n

    def by_getattr(self, x: Any) -> Any:
        self.n += 1
        return np.sum(x) * getattr(self, "n")  # noqa: B009

    def a_table(self, x: Any) -> Any:
        self.table["n"] += 1
        return np.sum(x) * self.table["n"]

    def a_global(self, x: Any) -> Any:
        SEEN.append(np.sum(x))
        return np.sum(x) * len(SEEN)

    def a_counted_global(self, x: Any) -> Any:
        global CALLS
        CALLS += 1
        return np.sum(x) * CALLS

    def a_class_attribute(self, x: Any) -> Any:
        self.default += 1
        return np.sum(x) * self.default

    def in_another_method(self, x: Any) -> Any:
        self.n += 1
        return np.sum(x) * self.tell()

    def tell(self) -> Any:
        return self.n

    def keeps_an_object(self, x: Any) -> Any:
        self.seen.append(Reading)
        return np.sum(x) * 2


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("name", [n for n, m in vars(Reading).items() if callable(m) and n not in ("__init__", "tell")])
def test_what_is_read_as_well_is_read_anew(name: str) -> None:
    restart()
    plain = Reading()
    values = [getattr(plain, name)(point) for point in POINTS]
    restart()
    model = Reading()
    call = sg.value_and_grad(getattr(model, name))
    for point, value in zip(POINTS, values, strict=True):
        np.testing.assert_allclose(call(point)[0], value)
    assert [type(item) for item in model.seen] == [type(item) for item in plain.seen]
    assert (model.n, model.table, model.default) == (plain.n, plain.table, plain.default)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_an_object_that_is_kept_is_the_one_that_was_made() -> None:
    class Entry:
        pass

    kept: list[Any] = []

    def f(x: Any) -> Any:
        kept.append(Entry())
        return np.sum(x)

    call = sg.grad(f)
    call(POINTS[0])
    call(POINTS[1])
    assert len({id(entry) for entry in kept}) == 2


def test_arrays_that_the_function_knows_are_written_as_copies() -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        kept.append((np.zeros(2), {"ones": np.ones(1)}))
        return np.sum(x)

    call = sg.grad(f)
    for point in POINTS:
        call(point)
        zeros, ones = kept[-1]
        assert (zeros.tolist(), ones["ones"].tolist()) == ([0.0, 0.0], [1.0])
        zeros[0] = ones["ones"][0] = 9.0


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("transform", [sg.jit, sg.grad])
def test_an_array_that_is_appended_and_changed_afterwards_is_the_one_in_the_list(transform: Any) -> None:
    """The list had it as it was when it was appended."""

    def changed(x: Any) -> Any:
        y = x * 2
        kept.append(y)
        for _ in range(20):
            y[0] += 1.0
            kept.append({"rest": y[1:]})
        y += 1
        return y.sum()

    kept: list[Any] = []
    changed(POINTS[0])
    expected, kept = kept, []
    transform(changed)(POINTS[0])
    np.testing.assert_array_equal(kept[0], expected[0])
    for found, wanted in zip(kept[1:], expected[1:], strict=True):
        np.testing.assert_array_equal(found["rest"], wanted["rest"])


def test_errors_come_after_what_was_written_before_them() -> None:
    class Careful(Model):
        def f(self, x: Any) -> Any:
            self.calls += 1
            if np.sum(x) > 3:
                raise ValueError("too large")
            self.losses.append(x)
            return np.sum(x)

    model = Careful()
    call = sg.grad(model.f)
    call(POINTS[0])
    with pytest.raises(ValueError, match="too large"):
        call(POINTS[3])
    assert model.calls == 2 and len(model.losses) == 1


def test_objects_are_not_kept_alive() -> None:
    model = Model()
    call = sg.grad(model.stores_what_it_reads)
    call(POINTS[0])
    call(POINTS[0])
    gone = weakref.ref(model)
    del model, call
    gc.collect()
    assert gone() is None


def test_threads_write_what_each_of_them_computes() -> None:
    model = Model()
    call = sg.grad(model.counts_and_appends)
    call(POINTS[0])

    def run(start: int) -> None:
        for k in range(50):
            call(np.array([float(start + k), 0.0]))

    threads = [threading.Thread(target=run, args=(100 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = sorted(model.losses[1:])
    assert found == sorted(float(100 * k + i) ** 2 for k in range(4) for i in range(50))


def test_callable_objects_are_traced_once() -> None:
    """Each call of ``grad(model)`` was looked at anew, which took milliseconds."""

    class Loss:
        def __init__(self, scale: float) -> None:
            self.scale = scale

        def __call__(self, x: Any) -> Any:
            return np.sum(x * self.scale)

    known = [find_captures(loss, False, True) for loss in (Loss(2.0), Loss(3.0))]
    assert known[0][0] is known[1][0] and [bound[0] for _, bound in known] == [(2.0,), (3.0,)]  # type: ignore[index]
