"""Inside `srcgrad.debug` values are visible and what is not finite is traced to the operation that makes it."""

from __future__ import annotations

import contextlib
import contextvars
import pdb
import re
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from io import StringIO
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import srcgrad as sg
import srcgrad.ir.ops
from srcgrad.debugging import Flow, Options, Watch
from srcgrad.errors import ArgumentError, NonFiniteError
from srcgrad.ir.parser import parse
from srcgrad.ir.source import internal_frame
from srcgrad.ir.transforms.linearize import linearize
from srcgrad.ir.transforms.transpose import transpose
from srcgrad.tracing.pytree import flatten

ZEROS = np.array([0.0, 1.0, 4.0])


def failure(run: Callable[[], Any]) -> NonFiniteError:
    with sg.debug(), pytest.raises(NonFiniteError) as caught:
        run()
    error = caught.value
    assert isinstance(error, FloatingPointError)
    return error


def marked(error: NonFiniteError) -> str:
    """The source text under the caret."""
    assert error.span is not None
    assert error.span.file == __file__
    return error.span.source[error.span.column : error.span.end_column]


# --- derivatives are what they are without it -------------------------------------------------------------------------
def smooth(x: Any) -> Any:
    total = 0.0
    for k in range(3):
        if x[k] > 0.5:
            total = total + np.sin(x[k]) * x[0]
            continue
        total = total + np.exp(x[k])
    while total < 10.0:
        total = total * 2.0
    return total


POINT = np.array([0.3, 0.9, 1.7])
CALLS: dict[str, Callable[[], Any]] = {
    "grad": lambda: sg.grad(smooth)(POINT),
    "value_and_grad": lambda: sg.value_and_grad(smooth)(POINT),
    "jacobian": lambda: sg.jacobian(np.sin)(POINT),
    "jacfwd": lambda: sg.jacfwd(smooth)(POINT),
    "jacrev": lambda: sg.jacrev(smooth)(POINT),
    "hessian": lambda: sg.hessian(smooth)(POINT),
    "jit": lambda: sg.jit(smooth)(POINT),
    "jit of grad": lambda: sg.jit(sg.grad(smooth))(POINT),
    "grad of grad": lambda: sg.grad(lambda x: sg.grad(smooth)(x)[1])(POINT),
    "jvp": lambda: sg.jvp(smooth, (POINT,), (POINT,)),
    "vjp": lambda: sg.vjp(smooth, POINT)[1](2.0),
    "linearize": lambda: sg.linearize(smooth, POINT)[1](POINT),
    "hvp": lambda: sg.hvp(smooth, (POINT,), (POINT,)),
    "vmap": lambda: sg.vmap(smooth)(np.stack([POINT, POINT + 1.0])),
    "vmap of grad": lambda: sg.vmap(sg.grad(smooth))(np.stack([POINT, POINT + 1.0])),
    "no examples": lambda: sg.vmap(np.sin)(np.zeros((0, 2))),
    "static argument": lambda: sg.grad(lambda x, n: x**n)(3.0, 2),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_are_those_of_compiled_programs(name: str) -> None:
    expected = CALLS[name]()
    with sg.debug():
        found = CALLS[name]()
    for one, other in zip(flatten(found)[0], flatten(expected)[0], strict=True):
        assert_allclose(one, other, 1e-13)


def test_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("srcgrad.building.compiled", None)
    with sg.debug():
        assert sg.grad(lambda x: x * x, backend="numpy")(3.0) == 6.0


def test_arrays_changed_in_place() -> None:
    def change(a: Any, b: Any) -> Any:
        a[0] = a[1] * 3.0
        return np.sum(a * b)

    array = np.array([1.0, 2.0])
    with sg.debug():
        assert_array_equal(sg.grad(change)(array, np.ones(2)), [0.0, 4.0])
        assert_array_equal(array, [1.0, 2.0])
        assert sg.jit(change)(array, np.ones(2)) == 8.0
        assert_array_equal(array, [6.0, 2.0])
        assert sg.jit(change)(array, array) == 40.0
    assert_array_equal(array, [6.0, 2.0])


def test_jit_runs_as_it_is_what_cannot_be_traced() -> None:
    with sg.debug():
        assert sg.jit(lambda x: np.busday_count("2026-01-01", "2026-01-08") * float(x))(2.0) == 10.0


# --- values are visible ----------------------------------------------------------------------------------------------
def test_print_shows_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        print(x, repr(x * 2.0), f"{x[0]:.2f}")
        return np.sum(x)

    with sg.debug():
        sg.grad(f)(np.array([1.0, 2.5]))
    assert capsys.readouterr().out == "[1.  2.5] array([2., 5.]) 1.00\n"


def stopped(commands: str, run: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a debugger prints that is given commands at a breakpoint."""
    shown = StringIO()
    debugger = pdb.Pdb(stdin=StringIO(commands), stdout=shown, nosigint=True, readrc=False)
    debugger.prompt = ""
    debugger.use_rawinput = False
    monkeypatch.setattr(sys, "breakpointhook", lambda: debugger.set_trace(sys._getframe(1)))
    try:
        run()
    finally:
        sys.settrace(None)
    return shown.getvalue().splitlines()


def test_a_debugger_shows_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        y = np.sin(x) + 1.0
        breakpoint()
        return y * y

    with sg.debug():
        lines = stopped("p y\np float(y)\np np.asarray(y) * 2\nc\n", lambda: sg.grad(f)(0.0), monkeypatch)
    assert __file__ in lines[0]
    assert lines[2:] == ["np.float64(1.0)", "1.0", "np.float64(2.0)"]


def test_float_in_the_function_keeps_its_derivative() -> None:
    with sg.debug():
        assert sg.grad(lambda x: x * float(x))(3.0) == 6.0


def test_values_after_an_error() -> None:
    def f(x: Any) -> Any:
        y = x + 1.5
        raise KeyError(str(y))

    with sg.debug(), pytest.raises(KeyError) as caught:
        sg.grad(f)(2.0)
    entry: TracebackType | None = caught.value.__traceback__
    assert entry is not None
    frames = []
    while entry is not None:
        frames.append(entry.tb_frame)
        entry = entry.tb_next
    assert repr(frames[-1].f_locals["y"]) == "Tracer(f64[], 3.5)"
    assert frames[-1].f_code is f.__code__
    assert not any(map(internal_frame, frames))


# --- what is not finite ----------------------------------------------------------------------------------------------
class Case(NamedTuple):
    run: Callable[[Any], Any]
    at: Any
    op: str
    marked: str
    hint: str


def branch(x: Any) -> Any:
    if x > 1.0:
        return np.sqrt(x - 2.0)
    return x


def overflow(x: Any) -> Any:
    return np.sum(np.exp(x * 1000.0))


VALUES = {
    "log": Case(lambda x: np.sum(np.log(x)), ZEROS, "log gives -inf", "np.log(x)", "np.log1p"),
    "sqrt": Case(lambda x: np.sqrt(x), -1.0, "sqrt gives nan", "np.sqrt(x)", "no real value"),
    "division": Case(lambda x: 1.0 / x, 0.0, "div gives inf", "1.0 / x", "a division by 0"),
    "zero by zero": Case(lambda x: x / x**2, 0.0, "div gives nan", "x / x**2", "0/0: "),
    "overflow": Case(overflow, ZEROS, "exp gives inf", "np.exp(x * 1000.0)", "overflows above 709.78"),
    "product": Case(lambda x: x * 1e308, 10.0, "mul gives inf", "x * 1e308", "overflows"),
    "discarded": Case(lambda x: np.where(x > 0, np.log(x), x), 0.0, "log gives -inf", "np.log(x)", "values=False"),
}
ADJOINTS = {
    "sqrt": Case(lambda x: np.sum(np.sqrt(x)), ZEROS, "sqrt", "np.sqrt(x)", "infinite slope at 0"),
    "power": Case(lambda x: x**0.5, 0.0, "pow|sqrt", "x**0.5", "0"),
    "arcsin": Case(lambda x: np.arcsin(x), 1.0, "arcsin", "np.arcsin(x)", "np.clip"),
    "branch": Case(branch, 2.0, "sqrt", "np.sqrt(x - 2.0)", "infinite slope at 0"),
    "helper": Case(lambda x: sg.grad(lambda y: np.sqrt(y))(x), 0.0, "sqrt", "np.sqrt(y)", "infinite slope at 0"),
}


@pytest.mark.parametrize("transform", [sg.grad, sg.value_and_grad, sg.jacfwd, sg.jacrev, sg.hessian, sg.jit])
@pytest.mark.parametrize("name", VALUES)
def test_values(name: str, transform: Any) -> None:
    case = VALUES[name]
    error = failure(lambda: transform(case.run)(case.at))
    assert error.message.startswith(f"the value became non-finite: {case.op} where its operands are finite")
    assert marked(error) == case.marked
    assert error.hint is not None
    assert case.hint in error.hint
    assert f"while tracing {transform.__name__}(" in str(error)


@pytest.mark.parametrize("transform", [sg.grad, sg.value_and_grad, sg.jacfwd, sg.jacrev, sg.hessian])
@pytest.mark.parametrize("name", ADJOINTS)
def test_derivatives(name: str, transform: Any) -> None:
    case = ADJOINTS[name]
    error = failure(lambda: transform(case.run)(case.at))
    kind = "(tangent|adjoint)" if transform is sg.jacfwd else "adjoint"
    assert re.match(rf"the {kind} became non-finite: the derivative of ({case.op}) gives -?(inf|nan)", error.message), (
        error.message
    )
    assert marked(error) == case.marked
    assert error.hint is not None
    assert case.hint in error.hint


def root(x: Any) -> Any:
    return np.sum(np.sqrt(x))


@pytest.mark.parametrize(
    ("word", "run"),
    [
        ("adjoint", lambda: sg.vjp(root, ZEROS)[1](1.0)),
        ("tangent", lambda: sg.jvp(root, (ZEROS,), (np.ones(3),))),
        ("tangent", lambda: sg.linearize(root, ZEROS)[1](np.ones(3))),
        ("adjoint", lambda: sg.hvp(root, (ZEROS,), (np.ones(3),))),
        ("adjoint", lambda: sg.jit(sg.grad(root))(ZEROS)),
        ("adjoint", lambda: sg.vmap(sg.grad(np.sqrt))(ZEROS)),
    ],
)
def test_the_derivative_is_named(word: str, run: Callable[[], Any]) -> None:
    error = failure(run)
    assert error.message.startswith(f"the {word} became non-finite: the derivative of sqrt gives inf")


def test_the_message_in_full() -> None:
    error = failure(lambda: sg.grad(root)(ZEROS))
    assert error.message == (
        "the adjoint became non-finite: the derivative of sqrt gives inf\n"
        "  operand x: f64[3] = [0., 1., 4.]\n"
        "  it arose in div of finite operands:\n"
        "    operand: f64[] = 0.5\n"
        "    operand: f64[3] = [0., 1., 2.]\n"
        "    result: f64[3] = [ inf, 0.5 , 0.25], first non-finite at [0] (1 of 3)"
    )


def test_large_operands_are_shortened() -> None:
    error = failure(lambda: sg.grad(root)(np.arange(1e6)))
    assert len(error.message) < 600
    assert "f64[1000000] = [" in error.message


@pytest.mark.parametrize(
    ("f", "x", "expected"),
    [
        (lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0)), ZEROS, [0.0, 0.5, 0.25]),
        (lambda x: np.sum(np.where(x > 0, x, 0.0) ** 1.5), ZEROS, [0.0, 1.5, 3.0]),
        (lambda x: np.max(np.append(x, -np.inf)), ZEROS, [0.0, 0.0, 1.0]),
    ],
)
def test_masked_infinities_are_no_fault(f: Any, x: Any, expected: Any) -> None:
    with sg.debug():
        assert_allclose(sg.grad(f)(x), expected)


def test_what_was_given_is_no_fault() -> None:
    with sg.debug():
        assert np.isnan(sg.grad(lambda x: np.sin(x))(np.inf))


def logs(x: Any) -> Any:
    return np.sum(np.log(x)), np.sum(x)


def test_options() -> None:
    with sg.debug(values=False), pytest.raises(NonFiniteError, match="the adjoint became"):
        sg.grad(lambda x: logs(x)[0])(ZEROS)
    with sg.debug(values=False):
        assert_array_equal(sg.grad(lambda x: np.where(x > 0, np.log(x), 2.0 * x))(0.0), 2.0)
        assert sg.jit(logs)(ZEROS)[0] == -np.inf
    with sg.debug(adjoints=False):
        assert sg.grad(np.sqrt)(0.0) == np.inf
        with pytest.raises(NonFiniteError, match="the value became"):
            sg.grad(np.log)(0.0)
    with sg.debug(nan_only=True):
        assert sg.value_and_grad(np.log)(0.0) == (-np.inf, np.inf)
        with pytest.raises(NonFiniteError, match="sqrt gives nan"):
            sg.grad(np.sqrt)(-1.0)
    with pytest.raises(ArgumentError, match="nan_only is True or False, not 1"):
        sg.debug(nan_only=1)  # type: ignore[arg-type]


# --- loops -----------------------------------------------------------------------------------------------------------
def test_runs_of_python_loops() -> None:
    def descend(x: Any) -> Any:
        for _ in range(5):
            x = np.sqrt(x - 1.0)
        return x

    assert "\n  in run 3 of this operation" in failure(lambda: sg.grad(descend)(2.0)).message

    def sums(x: Any) -> Any:
        return sum(np.sqrt(x * (n - 3.0) ** 2) for n in range(6))

    error = failure(lambda: sg.grad(sums)(2.0))
    assert error.message.startswith("the adjoint became non-finite: the derivative of sqrt")
    assert "\n  in run 4 of this operation" in error.message


LOOP = """
func @loop(%x: f64[]) -> (f64[]) {
  %0: f64[] = for %x, %x {carries=1, consts=1, reverse=false, trips=5}
    body (%i: i64[], %c: f64[], %x: f64[]) {
      %1: f64[] = cast %i {dtype=f64}
      %2: f64[] = sub %1, 2.0
      %3: f64[] = mul %2, %2
      %4: f64[] = mul %3, %x
      %5: f64[] = sqrt %4
      %6: f64[] = add %c, %5
      yield %6
    }
  return %0
}
"""


def test_trips_of_loops_of_the_program() -> None:
    function = parse(LOOP)
    options = Options(values=True, adjoints=True, nan_only=False)
    watch, flow = Watch(options), Flow(options)
    parts = linearize(function, [True])
    value, *residuals = watch.runner(parts.primal, (), flow, judged=False)([np.float64(3.0)])
    assert np.isfinite(value)
    with pytest.raises(NonFiniteError, match=r"(?s)became non-finite: div gives inf.* in trip 3"):
        watch.runner(transpose(parts.linear), (), flow, judged=True)([*residuals, np.float64(1.0)])


def swing(x: Any) -> Any:
    c = n = 0.0
    while n < 4.0 + 0.0 * x:
        n = n + 1.0
        c = c + np.sqrt(x * (n - 2.0) ** 2)
    return c


def test_trips_of_a_mapped_while() -> None:
    """Mapped inside another transform and converted, the loop is one operation."""

    def mapped(x: Any) -> Any:
        return np.sum(sg.vmap(swing)(x)) * float(x[0])

    error = failure(lambda: sg.grad(mapped)(np.array([1.0, 2.0])))
    assert "  in trip 2" in error.message.splitlines()
    assert marked(error) == "np.sqrt(x * (n - 2.0) ** 2)"


# --- scope -----------------------------------------------------------------------------------------------------------
def test_another_thread_is_not_concerned() -> None:
    found = []
    with sg.debug():
        own = contextvars.Context()  # free-threaded Python gives a thread a copy of this one's
        thread = threading.Thread(target=own.run, args=(lambda: found.append(sg.grad(np.sqrt)(0.0)),))
        thread.start()
        thread.join()
        with contextlib.suppress(NonFiniteError):
            sg.grad(np.sqrt)(0.0)
    assert found == [np.inf]
    assert sg.grad(np.sqrt)(0.0) == np.inf


def test_blocks_nest_and_no_function_is_called_slow() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with sg.debug():
            with sg.debug(adjoints=False):
                assert sg.grad(np.sqrt)(0.0) == np.inf
            with pytest.raises(NonFiniteError) as caught:
                sg.grad(np.sqrt)(0.0)
    assert "test_debug.py" in "".join(traceback.format_exception(caught.value))
