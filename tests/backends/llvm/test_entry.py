"""What entry functions do with the status that loops give, and with many inputs and outputs."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from srcgrad.backends.llvm import entry, native
from srcgrad.backends.llvm.entry import DECLARATIONS, FINE, IN_PYTHON, RAISED, dtype_symbols
from srcgrad.ir.core import Builder, Value
from srcgrad.ir.types import ArrayType
from tests.backends.llvm.support import normal

pytestmark = pytest.mark.skipif(not native.LAYOUT_IS_KNOWN, reason="kernels are Python functions here")
F64 = np.dtype(np.float64)
LARGE = 50_000


class Loops(NamedTuple):
    """Loops written by hand."""

    name: str
    inputs: list[Value]
    outputs: list[Value]


def values(*shapes: tuple[int, ...]) -> list[Value]:
    builder = Builder()
    return [builder.param(ArrayType(F64, shape)) for shape in shapes]


def loaded(
    body: str, inputs: list[Value], outputs: list[Value], releases: bool, as_tuple: bool, called: Callable[..., Any]
) -> Callable[..., Any]:
    """A built-in function over loops that write nothing but what ``body`` says, and return a status."""
    loops = Loops("mine", inputs, outputs)
    params = ", ".join([f"ptr %in{k}" for k in range(len(inputs))] + [f"ptr %out{k}" for k in range(len(outputs))])
    order, results = list(range(len(inputs))), list(range(len(outputs)))
    text = "\n".join(
        [
            DECLARATIONS,
            *(f"{name} = external global i8" for name in dtype_symbols(F64)),
            "declare void @PyErr_NoMemory()",
            f"define internal i32 @mine_loops({params}) {{",
            body,
            "}",
            entry.entry_text(loops, len(inputs), order, results, releases, as_tuple),
            entry.block_text("mine", len(inputs) + len(outputs), status=True),
        ]
    )
    library = native.Library(text)
    types = [[value.type for value in group] for group in (inputs, outputs)]
    return native.kernel(library, "mine", types[0], order, types[1], results, as_tuple, called)


CASES = {
    "a number": ([()], [()], False),
    "a small array": ([(3,)], [(3,)], False),
    "a large array": ([(3,)], [(LARGE,)], False),
    "a tuple of all": ([(3,), ()], [(LARGE,), (), (2, 2), ()], True),
    "nothing": ([], [], True),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("releases", [False, True])
def test_the_status(case: str, releases: bool) -> None:
    ins, outs, as_tuple = CASES[case]
    given = [normal(*shape) if shape else np.float64(2.5) for shape in ins]
    answer = object()
    seen: list[tuple[Any, ...]] = []

    def called(*arguments: Any) -> Any:
        seen.append(arguments)
        return answer

    made = {
        status: loaded(f"  ret i32 {status}", values(*ins), values(*outs), releases, as_tuple, called)
        for status in (FINE, IN_PYTHON)
    }
    gc.collect()  # what other tests left may hold some of these
    before = [sys.getrefcount(item) for item in (*given, F64, answer)]
    for _ in range(50):
        found = made[FINE](*given)
        results = found if isinstance(found, tuple) else (found,)
        assert [np.shape(item) for item in results] == outs and not seen
        del found, results
        assert made[IN_PYTHON](*given) is answer
        assert len(seen) == 1 and all(a is b for a, b in zip(seen.pop(), given, strict=True))
    gc.collect()
    after = [sys.getrefcount(item) for item in (*given, F64, answer)]
    assert all(abs(count - other) <= 2 for count, other in zip(before, after, strict=True))


@pytest.mark.parametrize("case", CASES)
def test_an_exception_that_is_set_is_raised(case: str) -> None:
    ins, outs, as_tuple = CASES[case]
    given = [normal(*shape) if shape else np.float64(2.5) for shape in ins]
    body = f"  call void @PyErr_NoMemory()\n  ret i32 {RAISED}"
    run = loaded(body, values(*ins), values(*outs), False, as_tuple, lambda *_: pytest.fail("called"))

    def blocks_after(calls: int, arguments: list[Any]) -> int:
        for _ in range(calls):
            try:  # pytest.raises keeps some blocks of its own
                run(*arguments)
            except MemoryError:
                continue
            pytest.fail("no exception")
        gc.collect()
        return sys.getallocatedblocks()

    for arguments in (given, [np.asarray(item).tolist() for item in given]):
        before = blocks_after(50, arguments)
        assert blocks_after(1000, arguments) - before < 500  # a leak is a block a call; Python keeps some of its own


@pytest.mark.parametrize("case", CASES)
def test_results_in_memory_of_the_caller(case: str) -> None:
    """Without a tuple: a reference to each result, all given back where the loops fail, or what Python returns."""
    ins, outs, as_tuple = CASES[case]
    given = [normal(*shape) if shape else np.float64(2.5) for shape in ins]
    answer = object()
    bodies = {
        FINE: f"  ret i32 {FINE}",
        IN_PYTHON: f"  ret i32 {IN_PYTHON}",
        RAISED: f"  call void @PyErr_NoMemory()\n  ret i32 {RAISED}",
    }
    made: dict[int, Any] = {
        status: loaded(body, values(*ins), values(*outs), False, as_tuple, lambda *_: answer)
        for status, body in bodies.items()
    }
    kind = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, *[ctypes.c_void_p] * 4)
    enter = kind(native.POOL.library.address("srcgrad_enter"))
    into = (ctypes.c_void_p * (len(outs) + 1))()
    arguments = (ctypes.py_object * len(given))(*given)

    def filled(status: int) -> int | None:
        own = made[status].__self__
        into[:] = [1] * len(into)
        found: int | None = enter(own, ctypes.addressof(arguments), len(given), own.table, ctypes.addressof(into))
        return found

    gc.collect()
    watched = (*given, F64, answer)
    before, blocks = list(map(sys.getrefcount, watched)), sys.getallocatedblocks()
    for item in [object()]:
        held = sys.getrefcount(item)  # of the list, of the loop, and before Python 3.14 of the call
    for _ in range(200):
        assert filled(FINE) == ctypes.addressof(into)
        results = [ctypes.cast(place, ctypes.py_object).value for place in into[: len(outs)] if place]
        assert [np.shape(item) for item in results] == outs
        for item in results:
            assert sys.getrefcount(item) == held + 1  # that in memory
            ctypes.pythonapi.Py_DecRef(ctypes.py_object(item))
        del results[:]
        item = None
        assert filled(IN_PYTHON) == id(answer)
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(answer))
        with pytest.raises(MemoryError):
            filled(RAISED)
    gc.collect()
    assert all(abs(sys.getrefcount(item) - count) <= 2 for item, count in zip(watched, before, strict=True))
    assert sys.getallocatedblocks() - blocks < 100


def test_many_inputs_and_outputs() -> None:
    count = 300
    body = "\n".join(
        [
            line
            for k in range(count)
            for line in (
                f"  %x{k} = load double, ptr %in{k}, align 8",
                f"  %y{k} = fmul double %x{k}, 2.0",
                f"  store double %y{k}, ptr %out{count - 1 - k}, align 8",
            )
        ]
        + ["  ret i32 0"]
    )
    shapes = [() if k % 3 else (1,) for k in range(count)]
    run = loaded(body, values(*shapes), values(*reversed(shapes)), False, True, lambda *_: pytest.fail("called"))
    given = [np.float64(k) if not shape else np.full(shape, float(k)) for k, shape in enumerate(shapes)]
    found = run(*given)
    assert [float(np.ravel(item)[0]) for item in found] == [2.0 * k for k in reversed(range(count))]
    assert [np.shape(item) for item in found] == list(reversed(shapes))
