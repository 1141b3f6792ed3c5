"""What calls leave behind, and inputs of every memory layout."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.tracing.trace import Trace
from srcgrad.tracing.tracer import Tracer
from srcgrad.transformed import COUNTED

pytestmark = pytest.mark.usefixtures("older_objects_left_alone")

X = np.array([1.0, 2.0, 3.0])
V = np.array([1.0, 0.0, -1.0])


def smooth(x: Any) -> Any:
    return np.sum(np.sin(x) * x**2)


def branching(x: Any) -> Any:
    return np.sum(x**3) if np.sum(x) > 0 else np.sum(x)


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "grad": lambda f, x: sg.grad(f)(x),
    "value_and_grad": lambda f, x: sg.value_and_grad(f)(x),
    "jacobian": lambda f, x: sg.jacobian(f)(x),
    "jacfwd": lambda f, x: sg.jacfwd(f)(x),
    "jacrev": lambda f, x: sg.jacrev(f)(x),
    "hessian": lambda f, x: sg.hessian(f)(x),
    "vmap": lambda f, x: sg.vmap(f)(np.stack([x, x])),
    "jit": lambda f, x: sg.jit(f)(x),
    "vjp": lambda f, x: sg.vjp(f, x)[1](1.0),
    "jvp": lambda f, x: sg.jvp(f, (x,), (np.ones_like(x),)),
    "linearize": lambda f, x: sg.linearize(f, x)[1](np.ones_like(x)),
    "hvp": lambda f, x: sg.hvp(f, (x,), (np.ones_like(x),)),
    "checkpoint": lambda f, x: sg.grad(sg.checkpoint(f))(x),
}


BOUND = 60_000
"""Python's own pools of small objects fill up to some 50 kB; a trace that stays at each call would be far more."""


def traces() -> set[int]:
    """The traces and tracers that are alive; other tests may have kept some."""
    gc.collect()
    return {id(thing) for thing in gc.get_objects() if isinstance(thing, (Trace, Tracer))}


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("f", [smooth, branching])
@pytest.mark.parametrize("name", CALLS)
def test_calls_leave_nothing_behind(name: str, f: Any) -> None:
    call, argument, others = CALLS[name], X.copy(), traces()
    for _ in range(3):
        call(f, argument)
    assert traces() == others
    references = sys.getrefcount(argument)
    count = 100
    tracemalloc.start()
    try:
        for _ in range(5):
            call(f, argument)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(count):
            call(f, argument)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < BOUND, f"{grown} bytes in {count} calls"
    assert sys.getrefcount(argument) == references
    assert traces() == others


def test_fresh_functions_leave_nothing_behind() -> None:
    def call(k: int) -> None:
        weights = np.full(1000, float(k))
        sg.grad(lambda x: np.sum(weights * x))(weights)

    for k in range(5):
        call(k)
    tracemalloc.start()
    try:
        call(0)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for k in range(200):
            call(k)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < BOUND


def test_old_signatures_let_their_code_go() -> None:
    """One object called with ever new shapes: it held each program, its machine code and two mappings of memory."""
    g = sg.grad(lambda x: np.sum(np.sin(x)))
    for count in range(1, 3 * COUNTED):
        g(np.ones(count))
    assert len(g.answered) == COUNTED == len(g.learned.calls)


def test_failed_calls_leave_nothing_behind() -> None:
    def bad(x: Any) -> Any:
        return x @ np.ones((7, 7))

    def call() -> None:
        try:
            sg.grad(bad)(X)
        except ValueError:
            return

    others = traces()
    call()
    assert traces() == others
    tracemalloc.start()
    try:
        call()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(100):
            call()
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < BOUND


def test_a_pullback_keeps_no_more_than_its_residuals() -> None:
    x = np.linspace(0.0, 1.0, 100_000)
    tracemalloc.start()
    try:
        _, pull = sg.vjp(lambda x: np.sum(np.sin(np.exp(np.sin(x)))), x)
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert kept < 4.5 * x.nbytes
    assert np.shape(pull(1.0)[0]) == x.shape


# --- layouts ---------------------------------------------------------------------------------------------------------
def layouts() -> dict[str, Any]:
    base = np.arange(24.0).reshape(4, 6) / 7
    read_only = base.copy()
    read_only.flags.writeable = False
    return {
        "transposed": base.T,
        "fortran": np.asfortranarray(base),
        "odd strides": base[::3, 1::2],
        "negative strides": base[::-1, ::-2],
        "broadcast": np.broadcast_to(base[0], (3, 6)),
        "read-only": read_only,
        "big-endian": base.astype(">f8"),
        "big-endian float32": base.astype(">f4"),
        "little-endian": base.astype("<f8"),
        "unaligned": np.frombuffer(b"\0" + base.tobytes(), np.uint8)[1:].view(np.float64).reshape(4, 6),
        "0-d": np.array(0.5),
        "scalar": np.float64(0.5),
        "python float": 0.5,
        "float16": base.astype(np.float16),
        "longdouble": base.astype(np.longdouble),
        "complex": base + 1j * base[::-1],
        "empty": np.zeros((0, 3)),
        "one element": np.array([[0.5]]),
        "many axes": base.reshape(2, 1, 2, 3, 2, 1),
        "a column of records": np.array([(0.5, 1), (1.5, 2)], dtype=[("x", float), ("n", int)])["x"],
        "large": np.linspace(0.0, 1.0, 300_000),
    }


def objective(x: Any) -> Any:
    return np.sum(np.sin(x) * x)


def slope(x: Any) -> Any:
    x = np.asarray(x)
    native = x.astype(x.dtype.newbyteorder("="))
    return np.cos(native) * native + np.sin(native)


@pytest.mark.parametrize("name", layouts())
def test_inputs_of_every_layout(name: str) -> None:
    x = layouts()[name]
    before = np.array(x)
    expected = slope(x)
    tolerance = 20 * float(np.finfo(expected.dtype).eps)
    found = sg.grad(objective)(x)
    assert found.dtype == expected.dtype
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    assert np.array_equal(np.asarray(x), before)
    if isinstance(found, np.ndarray):
        assert found.flags.writeable
        assert found.flags.owndata or found.base is None or not np.may_share_memory(found, np.asarray(x))
    _, pushed = sg.jvp(objective, (x,), (np.ones_like(np.asarray(x))[()],))
    np.testing.assert_allclose(pushed, np.sum(expected), rtol=1e3 * tolerance, atol=1e3 * tolerance)
    np.testing.assert_allclose(sg.vjp(objective, x)[1](pushed * 0 + 1)[0], expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(
        sg.jit(objective)(x), objective(np.asarray(x)), rtol=1e3 * tolerance, atol=1e-2 * tolerance
    )


@pytest.mark.parametrize("name", layouts())
def test_captured_arrays_of_every_layout(name: str) -> None:
    captured = layouts()[name]
    expected = np.sum(np.asarray(captured).real)
    found = sg.grad(lambda k: np.sum(captured * k).real)(1.0)
    np.testing.assert_allclose(found, expected, rtol=1e-2 if np.asarray(captured).dtype.itemsize < 4 else 1e-6)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("name", ["transposed", "negative strides", "read-only", "big-endian", "0-d", "broadcast"])
def test_layouts_where_functions_are_traced_again(name: str) -> None:
    x = layouts()[name]
    before = np.array(x)

    def f(y: Any) -> Any:
        return objective(y) if np.sum(y) > 0 else np.sum(y)

    np.testing.assert_allclose(sg.grad(f)(x), slope(x), rtol=1e-13)
    np.testing.assert_allclose(sg.hessian(f)(x).shape, np.shape(x) * 2)
    assert np.array_equal(x, before)


def test_results_are_writable_and_alias_nothing() -> None:
    x, captured = X.copy(), V.copy()
    results = {
        "input": sg.jit(lambda x: x)(x),
        "view": sg.jit(lambda x: x[::-1])(x),
        "captured": sg.jit(lambda x: captured)(x),
        "captured view": sg.jit(lambda x: (captured[:2], x)[0])(x),
        "constant": sg.jit(lambda x: np.ones(3))(x),
        "broadcast": sg.grad(np.sum)(x),
        "pair": sg.jit(lambda x: (x, x))(x),
        "jacobian": sg.jacobian(lambda x: x * captured)(x),
        "aux": sg.grad(lambda x: (np.sum(x), (x, captured)), has_aux=True)(x)[1],
    }
    arrays: list[Any] = [x, captured]
    for name, result in results.items():
        for array in result if isinstance(result, tuple) else (result,):
            assert array.flags.writeable, name
            assert not any(np.may_share_memory(array, other) for other in arrays), name
            arrays.append(array)
            array[...] = 7.0
    assert np.array_equal(x, X)
    assert np.array_equal(captured, V)
    assert np.array_equal(sg.jit(lambda x: np.ones(3))(x), np.ones(3))
    assert np.array_equal(sg.jit(lambda x: captured)(x), V)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_whose_memory_an_argument_is_is_asked_of_the_caller() -> None:
    both, read_only = np.ones(4), np.ones(4)
    read_only.flags.writeable = False
    asked: list[tuple[Any, tuple[Any, ...]]] = [
        (lambda a, b: a * (2 if np.shares_memory(a, b) else 1), (both, both)),
        (lambda a, b: a * (2 if np.may_share_memory(a, b) else 1), (both, both[::2])),
        (lambda a, b: a * (2 if np.shares_memory(a, b) else 1), (both, read_only)),
        (lambda a: a * (2 if a.flags.writeable else 1), (read_only,)),
        (lambda a: a * (2 if a.flags["W"] else 1), (read_only,)),
        (lambda a: a * (2 if a.flags.owndata else 1), (both[:2],)),
    ]
    for function, arguments in asked:
        with pytest.warns(sg.RetraceWarning, match="is not known while"):
            assert np.array_equal(sg.jit(function)(*arguments), function(*arguments))
        slope = sg.grad(lambda *given, function=function: np.sum(function(*given)))
        if (
            len(arguments) == 1 and arguments[0] is read_only
        ):  # whether it may be written into is known where it is traced with its numbers
            assert np.array_equal(slope(*arguments), np.ones(4))
        else:
            with pytest.raises(sg.errors.ConcretizationError, match="is not known while"):
                slope(*arguments)


def test_whose_memory_a_result_is_is_known() -> None:
    def known(a: Any) -> Any:
        flags = a.flags
        assert flags.c_contiguous and flags["C"] and not flags["F_CONTIGUOUS"] and flags.forc
        double = a * 2.0
        assert np.shares_memory(a, a[1:]) and not np.shares_memory(a, double) and double.flags.owndata
        return np.sum(double)

    assert np.array_equal(sg.grad(known)(np.ones((2, 2))), np.full((2, 2), 2.0))
