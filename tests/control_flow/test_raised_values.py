"""Errors whose messages show values, or before which a block does something: raised when the program runs.

PYTEST_DONT_REWRITE: the assertions are those of the functions under test.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.tracing.tracer import Tracer

SEEN: list[Any] = []


@pytest.fixture(autouse=True)
def one_program() -> Iterator[None]:
    SEEN.clear()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error", sg.RetraceWarning)
        yield


class NoConvergence(Exception):
    def __init__(self, steps: Any, rest: Any) -> None:
        super().__init__(f"{rest:.3f} after {steps} steps")
        self.rest = rest


def of_an_argument(x: Any) -> Any:
    if x[0] > 2:
        raise ValueError(f"{x[0]:.2f} of {x} is large")
    return np.sum(x * x)


def in_a_loop(x: Any) -> Any:
    steps = 0
    while np.sum(x) > 0.1:
        x = x * 0.9
        steps += 1
        if steps > 25:
            raise NoConvergence(steps, np.max(np.abs(x)))
    return np.sum(x * x)


def asserted(x: Any) -> Any:
    assert np.all(x > 0), f"the least is {x.min()}"
    return np.sum(np.log(x))


def asserted_value(x: Any) -> Any:
    assert x[0] < 2, x[1]
    return np.sum(x)


def one_of_two(x: Any) -> Any:
    if x[1] > 1:
        if x[0] > 2:
            raise KeyError(f"a {x[0]}")
        else:
            raise IndexError(f"b {x[0]}")
    return np.sum(x * x)


def after_something(x: Any) -> Any:
    if np.sum(x) > 3:
        SEEN.append(x[0])
        raise RuntimeError("too large")
    return np.sum(x * x)


def with_a_cause(x: Any) -> Any:
    try:
        found = np.linalg.inv(np.diag(x))
    except np.linalg.LinAlgError as error:
        raise ValueError(f"singular at {x[0]}") from error
    return np.sum(found)


def caught(x: Any) -> Any:
    try:
        if x[0] > 2:
            raise ValueError(f"{x[0]}")
        y = x * 2
    except ValueError:
        y = x * 3
    return np.sum(y * x)


def asserted_in_a_try(x: Any) -> Any:
    try:
        assert x[0] < 2, f"{x[0]} is large"
        y = x * 2
    except AssertionError:
        y = x * 3
    return np.sum(y * x)


FUNCTIONS = [
    asserted_in_a_try,
    of_an_argument,
    in_a_loop,
    asserted,
    asserted_value,
    one_of_two,
    after_something,
    with_a_cause,
    caught,
]
POINTS = [[0.3, 0.4], [2.5, 0.5], [0.5, 3.0], [9.0, 8.0], [1.0, 0.0], [-1.0, 0.7]]


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:
        held = {name: value for name, value in vars(error).items() if name != "__notes__"}
        return type(error), error.args, held, type(error.__cause__)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", FUNCTIONS)
def test_the_message_has_the_values_of_the_run(f: Callable[..., Any], backend: str) -> None:
    gradient, program = sg.value_and_grad(f, backend=backend), sg.jit(f, backend=backend)
    for point in POINTS:
        x = np.array(point)
        with np.errstate(all="ignore"):
            expected = outcome(lambda x=x: f(x))  # type: ignore[misc]
            seen = SEEN[:]
            found = [outcome(lambda x=x: program(x)), outcome(lambda x=x: gradient(x))]  # type: ignore[misc]
        if isinstance(expected, tuple):
            assert found == [expected, expected]
        else:
            np.testing.assert_allclose([found[0], found[1][0]], [expected, expected], rtol=1e-12, err_msg=str(found))
        assert seen * 3 == SEEN
        SEEN.clear()


def test_a_message_of_an_example_that_fails() -> None:
    points = np.array([[0.1, 0.2], [3.0, 4.0], [5.0, 6.0]])
    with pytest.raises(ValueError, match=r"3.00 of \[3. 4.\] is large"):
        sg.vmap(of_an_argument)(points)


def test_xla_raises_it_too() -> None:
    pytest.importorskip("jax")
    gradient = sg.grad(in_a_loop, backend="xla")
    with pytest.raises(NoConvergence, match="after 26 steps"):
        gradient(np.array([50.0, 20.0]))


class Unusual(Exception):
    def __init__(self, low: float, high: float) -> None:
        super().__init__(f"not between {low} and {high}")
        self.low, self.seen = low, list[str]()


def of_the_users(x: Any) -> Any:
    if x > 2:
        raise Unusual(0.0, 2.0)
    if x < 0:
        raise FileNotFoundError(2, "no such curve", "below.txt")
    return x * x


def test_each_call_raises_an_error_of_its_own() -> None:
    """It was one object, which kept the notes of all calls and what handlers had done to it."""
    program = sg.jit(of_the_users)
    found = []
    for _ in range(2):
        with pytest.raises(Unusual, match="not between") as caught:
            program(3.0)
        assert (caught.value.low, caught.value.seen, len(caught.value.__notes__)) == (0.0, [], 1)
        caught.value.seen.append("handled")
        found.append(caught.value)
    assert found[0] is not found[1]
    with pytest.raises(FileNotFoundError, match="no such curve") as missing:
        program(-1.0)
    assert (missing.value.errno, missing.value.filename) == (2, "below.txt")
    assert str(missing.value) == "[Errno 2] no such curve: 'below.txt'"


def test_loops_with_such_messages_are_native() -> None:
    text = str(sg.explain(sg.grad(in_a_loop))(np.array([0.3, 0.4])))
    assert "callbacks into Python: 0" in text


def test_loops_before_a_call_of_python_are_native() -> None:
    """The adjoint of such a loop was run trip by trip in Python's lines, a thousand times slower."""

    def f(x: Any) -> Any:
        steps = 0
        while np.sum(x) > 0.1:
            x = x - np.sin(x) * 0.1
            steps += 1
        SEEN.append(steps)
        return np.sum(x)

    text = str(sg.explain(sg.grad(f))(np.ones(2)))
    assert "callbacks into Python: 1 (host_call 1)" in text


def test_variables_that_loops_bind_leave_them_native() -> None:
    def f(x: Any) -> Any:
        while np.sum(x) > 0.1:
            y = np.sin(x) * 0.1
            x = x - y
        return np.sum(y * x)

    gradient = sg.grad(f)
    assert "callbacks into Python: 0" in str(sg.explain(gradient)(np.ones(2)))
    with pytest.raises(UnboundLocalError, match="'y'"):
        gradient(np.zeros(2))


def test_programs_keep_no_traced_values_of_errors() -> None:
    def failing(x: Any) -> Any:
        if x[0] > 2:
            raise NoConvergence(3, x[1])
        if x[0] > 1:
            raise ValueError(f"{x[0]:.2f} is large")
        return np.sum(x * x)

    gc.collect()
    before = [thing for thing in gc.get_objects() if type(thing) is Tracer]
    compiled = sg.jit(failing)
    assert compiled(np.array([0.5, 1.0])) == 1.25
    for x, message in ((2.5, "1.000 after 3 steps"), (1.5, "1.50 is large")):
        with pytest.raises((NoConvergence, ValueError), match=message):
            compiled(np.array([x, 1.0]))
    gc.collect()
    assert not [thing for thing in gc.get_objects() if type(thing) is Tracer and all(thing is not x for x in before)]
