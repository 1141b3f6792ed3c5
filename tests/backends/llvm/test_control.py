"""Control flow in machine code: values and derivatives of every nesting, arrays and tapes, errors, interruptions."""

from __future__ import annotations

import _thread
import gc
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from srcgrad.backends.llvm import native, program
from srcgrad.backends.llvm.modules import Program
from srcgrad.backends.llvm.planning import LoopPlan, Plan
from srcgrad.backends.llvm.sections import sectioned
from srcgrad.backends.llvm.target import TARGET
from srcgrad.ir.core import Builder, Function, literal
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.parser import parse
from srcgrad.ir.passes.pipeline import prepare
from srcgrad.ir.types import INT64, ArrayType
from tests.ir.control.programs import PROGRAMS, compiled, derivative, interpreted, nestings, trace
from tests.ir.control.test_random_control import OPTIONS, programs, traced
from tests.ir.control.tracing import F64, apply, at, cond, for_, put, sin, spread, tanh, total, vector, while_

CLOSED = {"newton": (2.0, [0.5 / 2**0.5, -0.25 * 2**-1.5]), "power": (3.0, [405.0, 540.0])}
COUNT = ArrayType(INT64)


def require_agreement(function: Function, *arguments: Any, rtol: float = 1e-11) -> Callable[..., Any]:
    """The llvm backend gives what the interpreter gives."""
    run = compiled(function, "llvm").run
    expected = interpreted(function, *arguments)
    found = run(*[np.asarray(argument)[()] for argument in arguments])
    assert len(found) == len(expected)
    for actual, wanted in zip(found, map(np.asarray, expected), strict=True):
        assert np.asarray(actual).dtype == wanted.dtype and np.shape(actual) == wanted.shape
        np.testing.assert_allclose(actual, wanted, rtol=rtol, atol=1e-13)
    return run


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_nesting_of_derivatives(name: str) -> None:
    rule, x = PROGRAMS[name]
    function = trace(rule, F64)
    for each in (function, *[nested for order in (1, 2) for _, nested in nestings(function, order)]):
        run = require_agreement(each, x)
        assert not native.LAYOUT_IS_KNOWN or type(run) is type(len), "not wholly native"


@pytest.mark.parametrize("name", CLOSED)
def test_derivatives_of_loops_are_exact(name: str) -> None:
    x, expected = CLOSED[name]
    function = trace(PROGRAMS[name][0], F64)
    for order, value in enumerate(expected, start=1):
        for modes, nested in nestings(function, order):
            np.testing.assert_allclose(compiled(nested, "llvm")(np.float64(x))[0], value, rtol=1e-14, err_msg=modes)


@settings(max_examples=40, **OPTIONS)
@given(programs)
def test_random_programs(statements: list[Any]) -> None:
    function = trace(lambda term: traced(statements, term), F64)
    for each in (function, *[derivative(prepare(function), mode) for mode in "FR"]):
        require_agreement(each, 0.4)


@settings(max_examples=8, **OPTIONS)
@given(programs)
def test_random_programs_in_many_parts(statements: list[Any]) -> None:
    function = trace(lambda term: traced(statements, term), F64)
    before, program.PART = program.PART, 12  # type: ignore[misc]
    try:
        require_agreement(derivative(prepare(function), "R"), 0.4)
    finally:
        program.PART = before  # type: ignore[misc]


# --- arrays ----------------------------------------------------------------------------------------------------------

SIZE = 5


def swapped(x: Any) -> Any:
    """Two carries that change places, and one that never changes."""
    a, b = spread(x, SIZE), spread(x * 2.0, SIZE)
    a = put(a, np.int64(1), x * x)
    found = for_(3, lambda i, a, b, c: (b, sin(a), c), a, b, a)
    return total(found[0]) + total(found[1]) * x + at(found[2], np.int64(1))


def accumulated(x: Any) -> Any:
    """An array that is read and written in place, before and after."""
    start = spread(x, 40)

    def body(i: Any, v: Any) -> Any:
        return put(v, i, at(v, i - 1) * x + 0.25)

    (found,) = for_(40, body, start)
    return total(found) + total(start) * at(found, np.int64(-1))


def kept_and_written(x: Any) -> Any:
    """Columns of the array that is being written: a copy for each trip."""
    carry, rows = for_(4, lambda i, v: (put(v, i, at(v, i) * x), v), spread(x, SIZE))
    return total(carry) + total(apply("mul", rows, rows))


def handed_twice(x: Any) -> Any:
    """One array as two carries and a column."""

    def body(i: Any, a: Any, b: Any) -> Any:
        c = sin(a * x) + b
        return c, c, c

    a, b, rows = for_(3, body, spread(x, SIZE), spread(x * 0.5, SIZE))
    return total(a * b) + total(rows)


def branches_on_arrays(x: Any) -> Any:
    """One branch writes in place, the other hands on; results in and out of place."""

    def then(v: Any, w: Any) -> Any:
        return put(v, np.int64(2), at(w, np.int64(0)) * x), w, w

    def orelse(v: Any, w: Any) -> Any:
        return v, sin(v), w

    def body(i: Any, v: Any, w: Any) -> Any:
        a, b, c = cond(at(v, i) > 0.5, then, orelse, v, w)
        return a, b + c * 0.1

    v, w = for_(SIZE, body, spread(x, SIZE), spread(x * 0.3, SIZE))
    return total(v) * total(w)


def arrays_on_tapes(x: Any) -> Any:
    """As many trips as the number says, of an array: tapes of arrays, read by a loop the other way round."""
    going = lambda k, v: at(v, np.int64(0)) < 3.0  # noqa: E731
    found = while_(going, lambda k, v: (k + 1, v * 1.1 + tanh(v) * x), np.int64(0), spread(x, SIZE))
    return total(found[1])


def rows_of_a_table(x: Any) -> Any:
    """Rows that a loop reads by its index, and rows that it is given."""
    table = apply("broadcast", x, shape=(4, SIZE), dims=()) * np.arange(4.0 * SIZE).reshape(4, SIZE)

    def body(i: Any, s: Any, row: Any) -> Any:
        return s + total(at(table, i) * sin(row))

    return for_(4, body, x, columns=[table])[0]


def reset(x: Any) -> Any:
    """A carry that a trip sets to a constant, and one that begins as one."""

    def body(i: Any, v: Any, w: Any) -> Any:
        return cond(at(v, np.int64(0)) > 1.0, lambda v: v * 0.0 + 0.5, lambda v: v * 2.0, v)[0], w + v

    v, w = for_(6, body, spread(x, SIZE), literal_zeros(x))
    return total(v) + total(w * w)


def literal_zeros(x: Any) -> Any:
    return spread(x * 0.0, SIZE)


def small_tapes(x: Any) -> Any:
    """Tapes that live for one trip: a loop and its derivative in each trip of another."""

    def body(i: Any, s: Any) -> Any:
        inner = while_(lambda c: c < 5.0, lambda c: c * 1.5 + x, s * 0.1 + 0.2)[0]
        return s * 0.5 + inner * 0.1

    return for_(6, body, x)[0]


ARRAYS: dict[str, tuple[Any, float]] = {
    "swapped": (swapped, 0.4),
    "accumulated": (accumulated, 0.4),
    "kept and written": (kept_and_written, 1.3),
    "handed twice": (handed_twice, 0.4),
    "branches on arrays": (branches_on_arrays, 0.8),
    "branches on arrays, mixed": (branches_on_arrays, 0.4),
    "arrays on tapes": (arrays_on_tapes, 0.3),
    "rows of a table": (rows_of_a_table, 0.3),
    "reset": (reset, 0.3),
    "small tapes": (small_tapes, 0.7),
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("part", [program.PART, 12])
def test_arrays(name: str, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "PART", part)
    rule, x = ARRAYS[name]
    function = trace(rule, F64)
    require_agreement(function, x)
    for modes, nested in [*nestings(function, 1), *nestings(function, 2)]:
        if len(modes) == 1 or part > 12:
            require_agreement(nested, x)


def test_arguments_stay_as_they_are() -> None:
    """What a loop writes in place is its own."""

    def rule(v: Any) -> Any:
        (found,) = for_(SIZE, lambda i, v: put(v, i, at(v, i) * 2.0), v)
        return found, v, found

    function = trace(rule, vector(SIZE))
    x = np.arange(float(SIZE))
    found = compiled(function, "llvm").run(x)
    np.testing.assert_array_equal(x, np.arange(float(SIZE)))
    np.testing.assert_array_equal(found[0], 2 * x)
    np.testing.assert_array_equal(found[1], x)
    assert not any(np.shares_memory(a, b) for a, b in ((found[0], found[2]), (found[1], x)))


def loop_plan(function: Function) -> LoopPlan:
    """The plan of the one loop of a function."""
    found = sectioned(function)
    (section,) = found.sections
    plan = Plan(Program(found.partition, TARGET).planner, section.inputs, section.operations, section.outputs, ())
    (loop,) = plan.control.values()
    assert isinstance(loop, LoopPlan)
    return loop


def test_a_trip_that_writes_one_element_copies_nothing() -> None:
    def rule(v: Any) -> Any:
        return for_(1000, lambda i, v, s: (put(v, i, s), s + at(v, i), s), v, 1.0)[0]

    plan = loop_plan(trace(rule, vector(1000)))
    assert plan.modes == ["place", "number"] and plan.taken == [False, False]
    owned = trace(lambda v: rule(sin(v)), vector(1000))
    assert loop_plan(owned).taken[0], "the array is the program's own: the loop may write it"

    def both(v: Any) -> Any:
        a = sin(v)
        return for_(10, lambda i, v: put(v, i, 1.0), a)[0] + a

    assert not loop_plan(trace(both, vector(10))).taken[0]
    require_agreement(trace(both, vector(10)), np.arange(10.0))


# --- trips -----------------------------------------------------------------------------------------------------------


def counted(n: Any, x: Any) -> Any:
    return for_(n, lambda i, s: (s * x, s), x)[0]


@pytest.mark.parametrize("trips", [-3, 0, 1, 2, 63, 64, 65, 1000])
def test_any_number_of_trips(trips: int) -> None:
    """Tapes grow, are empty, and are read from their end."""
    x = 0.999
    function = trace(counted, COUNT, F64)
    np.testing.assert_allclose(compiled(function, "llvm")(np.int64(trips), np.float64(x))[0], x ** (max(trips, 0) + 1))
    once = trace(lambda y: counted(apply("cast", y * 0.0 + float(trips), dtype=INT64), y), F64)
    gradient = derivative(once, "R")
    slope = (max(trips, 0) + 1) * x ** max(trips, 0)
    np.testing.assert_allclose(compiled(gradient, "llvm")(np.float64(x))[0], slope, rtol=1e-12)
    going = trace(lambda y: while_(lambda k, s: k < trips, lambda k, s: (k + 1, s * y), np.int64(0), y)[1], F64)
    np.testing.assert_allclose(compiled(derivative(going, "R"), "llvm")(np.float64(x))[0], slope, rtol=1e-12)


def test_a_million_trips_and_back() -> None:
    def rule(x: Any) -> Any:
        return while_(lambda k, s: k < 1_000_000, lambda k, s: (k + 1, s + x * 1e-6), np.int64(0), x)[1]

    function = trace(lambda x: rule(sin(x)), F64)
    (found,) = compiled(derivative(function, "R"), "llvm")(np.float64(0.3))
    np.testing.assert_allclose(found, 2.0 * np.cos(0.3), rtol=1e-9)


def test_memory_of_tapes_goes_back() -> None:
    """Not one byte more waits or is in use after many calls than after a few."""
    function = trace(lambda x: arrays_on_tapes(x) + small_tapes(x), F64)
    run = compiled(derivative(function, "R"), "llvm").run
    x = np.float64(0.02)

    def calls(count: int) -> tuple[int, int]:
        for _ in range(count):
            run(x)
        gc.collect()
        return sys.getallocatedblocks(), native.POOL.waiting

    before = calls(50)
    after = calls(3000)
    assert after[0] - before[0] < 100
    assert after[1] <= before[1]


def test_short_tapes_share_memory() -> None:
    """A thousand tapes of half a kilobyte are in a few blocks, which wait to be used again."""

    def body(i: Any, s: Any) -> Any:
        return while_(lambda k, c: k < 8, lambda k, c: (k + 1, sin(c) * s), np.int64(0), s * 0.5)[1]

    run = compiled(derivative(trace(lambda x: for_(1000, body, x)[0], F64), "R"), "llvm").run
    native.POOL.release()
    run(np.float64(0.3))
    assert 1 << 18 < native.POOL.waiting < 1 << 22


@pytest.mark.parametrize("length", [3, 64, 65, 512, 513, 1500])
def test_tapes_that_grow_beside_others(length: int) -> None:
    """Those of each trip move from what they share to blocks of their own; the others stay as they are."""

    def body(i: Any, s: Any) -> Any:
        found = while_(lambda k, c: k < length + i, lambda k, c: (k + 1, sin(c) * 0.5 + s), np.int64(0), s)
        return sin(found[1]) + s * 0.3

    function = trace(lambda x: for_(7, body, x)[0], F64)
    require_agreement(derivative(function, "R"), 0.4)


def test_tapes_of_arrays_that_grow() -> None:
    """The first ones are longer than what tapes share."""

    def rule(x: Any) -> Any:
        array = apply("broadcast", x, shape=(300,), dims=())
        found = while_(lambda k, v: k < 21, lambda k, v: (k + 1, sin(v) + v * x), np.int64(0), array)[1]
        return total(found)

    require_agreement(derivative(trace(rule, F64), "R"), 0.4)


LIFTED = """
func @f(%x: f64[], %p: bool[]) -> (f64[]) {
  %t: tape<f64[]> = cond %p, %x
    then (%x: f64[]) {
      yield 2.0:tape<f64[]>
    }
    else (%x: f64[]) {
      %r: f64[], %made: tape<f64[]> = for 3, %x {trips=none, carries=1, consts=0, reverse=false}
        body (%i: i64[], %s: f64[]) {
          %d: f64[] = mul %s, 2.0
          yield %d, %s
        }
      yield %made
    }
  %n: i64[] = tape_length %t
  %u: tape<f64[]> = for %n, %x, %t {trips=none, carries=0, consts=1, reverse=false, lifted=true}
    body (%i: i64[], %x: f64[], %e: f64[]) {
      %a: f64[] = mul %x, %e
      yield %a
    }
  %s: f64[] = for 3, 0.0, %u {trips=none, carries=1, consts=0, reverse=true}
    body (%i: i64[], %s: f64[], %e: f64[]) {
      %h: f64[] = mul %s, 0.5
      %a: f64[] = add %h, %e
      yield %a
    }
  return %s
}
"""


@pytest.mark.parametrize("filled", [True, False])
def test_tapes_that_have_one_element_at_every_index(filled: bool) -> None:
    """A loop over such tapes has one trip, and what it gives fits every length too."""
    function = parse(LIFTED)
    run = require_agreement(function, np.float64(1.5), np.bool_(filled))
    assert not native.LAYOUT_IS_KNOWN or type(run) is type(len)


@pytest.mark.parametrize("trips", [0, 1, 5, 23])
@pytest.mark.parametrize("counted_at_run_time", [False, True])
def test_checkpointed_loops(trips: int, counted_at_run_time: bool) -> None:
    """They keep some carries, and compute the others again: tapes that live for a part of the trips."""

    def rule(x: Any) -> Any:
        count: Any = apply("cast", x * 0.0, dtype=INT64) + trips if counted_at_run_time else trips

        def body(i: Any, v: Any, s: Any) -> Any:
            return put(v, np.int64(1), s) * 0.9, s + total(sin(v)) * x

        v, s = for_(count, body, spread(x, SIZE), x, checkpoint=True)
        return total(v) * s

    function = prepare(trace(rule, F64))
    for modes in ("F", "R", "RF"):
        nested = function
        for mode in modes:
            nested = derivative(nested, mode)
        run = require_agreement(nested, 0.3)
        assert not native.LAYOUT_IS_KNOWN or type(run) is type(len)


# --- errors ----------------------------------------------------------------------------------------------------------


def checked(builder: Any, predicate: Any, kind: str, message: str) -> None:
    builder.emit_operation(REGISTRY["check"], [predicate], {"message": message, "kind": kind})


def raising(x: Any) -> Any:
    """A check in each trip; the third fails where the number is large."""

    def body(i: Any, s: Any) -> Any:
        checked(s.builder, (s < 10.0).value, "ValueError", "too large")
        return s * x

    return for_(5, body, x)[0]


def test_what_a_trip_raises() -> None:
    function = trace(raising, F64)
    runs = [compiled(function, name).run for name in ("numpy", "llvm")]
    for run in runs:
        np.testing.assert_allclose(run(np.float64(1.1))[0], 1.1**6)
    for _ in range(3):
        for run in runs:
            with pytest.raises(ValueError, match=r"^too large$"):
                run(np.float64(3.0))


def test_an_index_out_of_bounds() -> None:
    def rule(v: Any, k: Any) -> Any:
        return for_(3, lambda i, s: s + at(v, i + k), 0.0)[0]

    function = trace(rule, vector(4), COUNT)
    v = np.arange(4.0)
    for k in (-4, -3, 0, 1):
        require_agreement(function, v, np.int64(k))
    messages = []
    for name in ("numpy", "llvm"):
        with pytest.raises(IndexError) as caught:
            compiled(function, name).run(v, np.int64(2))
        messages.append(str(caught.value))
    assert messages[0] == messages[1]

    def written(v: Any, k: Any) -> Any:
        return put(v, k, 1.0)

    for k in (4, -5, 1 << 62, -(1 << 63)):
        with pytest.raises(IndexError):
            compiled(trace(written, vector(4), COUNT), "llvm").run(v, np.int64(k))
    np.testing.assert_array_equal(v, np.arange(4.0))


def endless(x: Any) -> Any:
    return while_(lambda k, s: k >= 0, lambda k, s: (apply("bitwise_and", k + 1, 7), s * x), np.int64(0), x)[1]


@pytest.fixture
def interruptible() -> Iterator[None]:
    """An interruption raises KeyboardInterrupt: a shell lets what it starts in the background ignore them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(not native.LAYOUT_IS_KNOWN, reason="the slow way does not let other threads run")
@pytest.mark.parametrize("nested", [False, True])
def test_an_interruption_ends_a_long_loop(nested: bool, interruptible: None) -> None:
    function = trace(lambda x: for_(3, lambda i, s: endless(s), x)[0] if nested else endless(x), F64)
    run = compiled(function, "llvm").run
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run(np.float64(0.5))
    timer.join()
    assert compiled(trace(counted, COUNT, F64), "llvm")(np.int64(2), np.float64(2.0)) == (8.0,)


def test_other_threads_run_meanwhile() -> None:
    function = trace(lambda x: while_(lambda s: s < 1.0, lambda s: s + x, 0.0)[0], F64)
    run, runs = compiled(function, "llvm").run, 0
    done = threading.Event()

    def work() -> None:
        run(np.float64(1e-8))
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.is_set():
        runs += 1
    thread.join()
    assert runs > 1 or not native.LAYOUT_IS_KNOWN


def test_threads_at_once() -> None:
    """Each call has its own arena and tapes."""
    run = compiled(derivative(trace(arrays_on_tapes, F64), "R"), "llvm").run
    points = [np.float64(0.05 + 0.01 * k) for k in range(6)]
    expected = [run(x) for x in points]
    wrong: list[float] = []

    def work(k: int) -> None:
        for _ in range(200):
            if run(points[k]) != expected[k]:
                wrong.append(float(points[k]))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# --- what is not native ----------------------------------------------------------------------------------------------


def test_tapes_that_are_results() -> None:
    builder = Builder()
    x = builder.param(F64)
    body = Builder()
    index, s = body.param(COUNT), body.param(F64)
    squared = body.emit(REGISTRY["mul"], [s, s])
    region = body.region([squared, s])
    trips = literal(4, COUNT)
    attrs = {"trips": None, "carries": 1, "consts": 0, "reverse": False}
    loop = builder.emit_operation(REGISTRY["for"], [trips, x], attrs, [region])
    assert index.type == COUNT
    function = builder.function("f", [builder.emit(REGISTRY["sin"], [loop.results[0]]), loop.results[1]])
    found = compiled(function, "llvm").run(np.float64(1.1))
    np.testing.assert_allclose(found[0], np.sin(1.1**16))
    np.testing.assert_allclose(found[1], [1.1, 1.1**2, 1.1**4, 1.1**8])


def test_a_loop_with_a_callback_stays_python() -> None:
    met: list[float] = []

    def rule(x: Any) -> Any:
        def body(i: Any, s: Any) -> Any:
            attrs = {"site": 0, "results": (F64,)}
            called = s.builder.emit_operation(REGISTRY["host_call"], [s.value], attrs).results[0]
            return type(s)(s.builder, called) * x + sin(s)

        return for_(3, body, x)[0] * sin(x)

    def site(s: Any) -> Any:
        met.append(float(s))
        return s

    function = trace(rule, F64)
    found = compiled(function, "llvm", [site]).run(np.float64(0.5))
    assert len(met) == 3
    np.testing.assert_allclose(found[0], compiled(function, "numpy", [site]).run(np.float64(0.5))[0], rtol=1e-13)


GREEDY = """
import resource
import numpy as np
import srcgrad as sg

def trips(x, count):
    for _ in range(count):
        x = np.sin(x)
    return np.sum(x)

def until(x, count):
    while np.sum(x) > count:
        x = np.sin(x)
    return np.sum(x)

@sg.checkpoint
def hundred(x):
    for _ in range(100):
        x = np.sin(x)
    return x

def parts(x, count):
    for _ in range(count // 100):
        x = hundred(x)
    return np.sum(x)

x = np.full(20_000, 0.5)
slopes = [sg.grad(f, backend="llvm") for f in (trips, until, parts)]
for slope, count in zip(slopes, (np.array(3), 9000.0, np.array(300))):
    slope(x, count)
with open("/proc/self/statm", encoding="ascii") as pages:
    used = int(pages.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30),) * 2)
for slope, count in ((slopes[0], np.array(2**62)), (slopes[0], np.array(10**6)), (slopes[1], -1.0)):
    try:
        slope(x, count)
        print("had")
    except MemoryError as error:
        print(error)
slopes[2](x, np.array(10_000))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")
def test_a_tape_that_cannot_grow_says_what_to_do(tmp_path: Path) -> None:
    script = tmp_path / "greedy.py"
    script.write_text(GREEDY, encoding="utf-8")
    found = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    sizes = []
    for line in found.stdout.splitlines():
        size = re.fullmatch(r"there is no memory for the (\d+) bytes that a loop keeps .* srcgrad.checkpoint, .*", line)
        assert size, line
        sizes.append(int(size[1]))
    assert len(sizes) == 3 and sizes[1] == 160_000 * 10**6 < sizes[0] and sizes[2] > 1 << 28
