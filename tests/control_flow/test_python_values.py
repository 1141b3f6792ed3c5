"""Converted functions on Python values: the same results, the same order of effects, the same errors as Python."""

from __future__ import annotations

import copy
import linecache
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.errors import SrcgradError
from srcgrad.tracing.conversion import operators
from srcgrad.tracing.conversion.convert import convert, is_user_function
from srcgrad.tracing.conversion.sources import Unconvertible
from srcgrad.tracing.trace import Trace, tracing
from srcgrad.tracing.tracer import Tracer
from tests.control_flow.python_cases import CASES


def plain(thing: Any) -> Any:
    """A result with traced constants as arrays."""
    if isinstance(thing, Tracer):
        return thing.number()
    if isinstance(thing, (list, tuple)):
        return type(thing)(map(plain, thing))
    return thing


def outcome(function: Callable[..., Any], args: Any) -> Any:
    given = copy.deepcopy(args)
    with tracing(Trace(None, False, "test")):
        try:
            return plain(function(*given)), given
        except Exception as error:
            return type(error), str(error), given


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return bool(type(one) is type(other) and one.dtype == other.dtype and np.array_equal(one, other))
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    return bool(type(one) is type(other) and one == other)


@pytest.mark.parametrize(("function", "args"), CASES, ids=[f"{f.__name__}-{k}" for k, (f, _) in enumerate(CASES)])
def test_python_values(function: Any, args: Any) -> None:
    converted = convert(function)
    assert same(outcome(converted, args), outcome(function, args))


def test_every_case_is_converted() -> None:
    assert all(is_user_function(function) and not is_user_function(convert(function)) for function, _ in CASES)


# --- the function object -----------------------------------------------------------------------------
def test_cells_globals_and_defaults_are_the_functions_own() -> None:
    count = [0]
    offset = 1

    def f(x: int, step: int = 2, *, scale: int = 3) -> int:
        count[0] += 1
        return x * scale + step + offset if x else offset

    converted = convert(f)  # type: ignore[arg-type]
    assert converted(1) == f(1)
    offset = 10
    assert converted(1) == f(1) == 15
    assert count == [4]
    f.__defaults__ = (20,)
    assert convert(f)(1) == f(1)  # type: ignore[arg-type]
    assert converted.__name__ == "f"
    assert converted.__qualname__ == f.__qualname__
    assert converted.__module__ == f.__module__
    assert converted.__globals__ is f.__globals__  # type: ignore[attr-defined]


def test_two_lambdas_of_one_line_are_told_apart() -> None:
    pair = (lambda x: x + 1 if x else 0, lambda x: x - 1 if x else 0)
    assert [convert(f)(5) for f in pair] == [6, 4]  # type: ignore[arg-type]
    nested = lambda y: lambda y: y * 2 if y else 7  # noqa: E731
    assert convert(nested)(5)(3) == 6  # type: ignore[arg-type]
    assert convert(nested(1))(0) == 7


def test_errors_are_at_the_users_line() -> None:
    def fails(x: int) -> int:
        for k in range(3):
            if k == 2:
                x = x // (k - 2)
        return x

    def lines(function: Any) -> list[tuple[str, int | None]]:
        try:
            function(1)
        except ZeroDivisionError as error:
            entries = traceback.extract_tb(error.__traceback__)
            return [(entry.name, entry.lineno) for entry in entries if entry.filename == __file__][1:]
        return []

    own = lines(fails)
    found = lines(convert(fails))  # type: ignore[arg-type]
    assert found[-1] == own[-1]
    assert {name for name, _ in found} == {"fails"}


def from_linecache(text: str, file: str) -> Any:
    """The function ``f`` of a text that `inspect` finds under a name of no file; what Python warns of is not shown."""
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        exec(compile(text, file, "exec"), names)
    return names["f"]


def test_source_from_linecache() -> None:
    text = "def f(x):\n    for k in range(3):\n        x = x + k if k else x\n    return x\n"
    assert convert(from_linecache(text, "<made here>"))(1) == 4


def without_source() -> Any:
    names: dict[str, Any] = {}
    exec("def f(x):\n    return x if x else 1", names)
    return names["f"]


async def asynchronous(x: int) -> int:
    return x


def namespace(x: int) -> Any:
    return locals()


JUMP_IN_FINALLY = """\
def f(x):
    for _ in range(2):
        try:
            x += 1
        finally:
            if x:
                break
    return x
"""


def jump_in_finally() -> Any:
    """Python warns of it from 3.14 on."""
    return from_linecache(JUMP_IN_FINALLY, "<a jump in finally>")


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (without_source(), "its source is not available"),
        (asynchronous, "it is asynchronous"),
        (namespace, "it calls locals()"),
        (jump_in_finally(), "a jump stands in a finally"),
    ],
    ids=["no source", "asynchronous", "locals", "finally"],
)
def test_what_is_not_converted_says_why(function: Any, reason: str) -> None:
    with pytest.raises(Unconvertible, match=reason.replace("(", r"\(").replace(")", r"\)")):
        convert(function)


FILLING = """
def filling(x):
    out = np.zeros(3)
    for i in range(3):
        out[i] = x * i
    return np.sum(out)

def written(x):
    out = np.zeros(3)
    return np.sum(np.add(x, x, out=out))
"""


@pytest.mark.parametrize("name", ["filling", "written"])
def test_functions_without_a_source_are_told_that_their_arrays_are_not_followed(name: str) -> None:
    names: dict[str, Any] = {"np": np}
    exec(compile(FILLING, "<none>", "exec"), names)
    with pytest.raises(SrcgradError, match=f"the source of {name} is not available"):
        sg.grad(names[name])(1.5)


def test_functions_with_a_source_are_told_what_else_to_do() -> None:
    with pytest.raises(SrcgradError, match=r"int\(x\) is an integer"):
        sg.grad(lambda x: np.sum(bytearray(x)))(np.ones(3))


def test_library_functions_are_called_as_they_are() -> None:
    import json
    import statistics

    assert not any(map(is_user_function, (json.dumps, statistics.mean, np.mean, np.linalg.inv, convert)))


def test_a_converted_function_that_outlives_its_trace_is_python() -> None:
    def f(x: float) -> float:
        values = [max(x, k) for k in range(3)]
        return sum(values) if isinstance(x, float) else -1.0

    assert convert(f)(1.5) == f(1.5)  # type: ignore[arg-type]
    assert operators.call(len, [1]) == 1


def test_a_lambda_behind_letters_of_several_bytes_is_found() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        functions = {"é ∂": lambda x: np.sum(x) if x[0] > 0 else x[1], "x": lambda x: (
            "é" and x[0] * x[1] if x[0] > 1 else x[2]
        )}  # fmt: skip
        found = [sg.grad(f)(np.array([2.0, 3.0, 4.0])).tolist() for f in functions.values()]
    assert found == [[1.0, 1.0, 1.0], [3.0, 2.0, 0.0]]
