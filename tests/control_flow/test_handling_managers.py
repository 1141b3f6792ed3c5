"""Errors that context managers and generators handle: as in Python, where values say whether there is one."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

Function = Callable[[Any], Any]
POINTS = tuple(map(np.array, ([1.3, 0.0, 2.1], [1.31, 0.6, -1.9], [0.4, 2.0, 0.3], [1.3, 0.0, 2.1])))


SUPPRESSED = (KeyError, ZeroDivisionError)


class Ignoring:
    def __enter__(self) -> Ignoring:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        return kind is not None and issubclass(kind, (ArithmeticError, ValueError))


class Noting:
    """Handles nothing: its functions stay one program."""

    left = 0

    def __enter__(self) -> Noting:
        return self

    def __exit__(self, *error: Any) -> None:
        self.left += 1


@contextlib.contextmanager
def ignoring() -> Iterator[None]:
    try:  # noqa: SIM105
        yield
    except (ZeroDivisionError, ValueError):
        pass


@contextlib.contextmanager
def finishing(done: list[int]) -> Iterator[None]:
    try:
        yield
    finally:
        done.append(1)


def division_suppressed(x: Any) -> Any:
    y = x[0]
    with contextlib.suppress(ZeroDivisionError):
        y = y * 2.0
        y = y + 1.0 / float(x[1])
        y = y * 3.0
    return y * x[2]


def raise_suppressed(x: Any) -> Any:
    y = x[0]
    with contextlib.suppress(KeyError, ValueError):
        y = y * 2.0
        if x[2] > 0:
            raise ValueError("no")
        y = y * 3.0
    return y * x[2]


def index_suppressed(x: Any) -> Any:
    y = x[0]
    with contextlib.suppress(IndexError):
        y = y * x[int(x[2] * 2.0)]
    return y * x[2]


def solve_suppressed(x: Any) -> Any:
    y = x[0]
    with contextlib.suppress(np.linalg.LinAlgError):
        y = y + np.linalg.solve(np.array([[2.1, 1.0], [2.1, 1.0 + x[1]]]), x[1:])[0]
    return y * x[2]


def domain_ignored(x: Any) -> Any:
    y = x[0]
    with Ignoring():
        y = y * 2.0
        y = y + math.log(x[2])
    return y * x[2]


def division_ignored(x: Any) -> Any:
    y = x[0]
    with ignoring():
        y = y * 2.0
        y = y + 1.0 / float(x[1])
    return y * x[2]


def within_a_stack(x: Any) -> Any:
    y = x[0]
    with contextlib.ExitStack() as stack:
        stack.enter_context(ignoring())
        y = y * 2.0 + 1.0 / float(x[1])
    return y * x[2]


def around_a_try(x: Any) -> Any:
    """The inner handler does not take it."""
    y = x[0]
    with contextlib.suppress(ArithmeticError):
        try:
            y = y + 1.0 / float(x[1])
        except KeyError:
            y = y * 7.0
        y = y * 2.0
    return y * x[2]


def within_a_try(x: Any) -> Any:
    """The manager does not take it."""
    y = x[0]
    try:
        with contextlib.suppress(KeyError):
            y = y + 1.0 / float(x[1])
        y = y * 2.0
    except ZeroDivisionError:
        y = y * 3.0
    return y * x[2]


def generator(x: Any) -> Any:
    def terms() -> Iterator[Any]:
        try:
            yield x[2] / 2.0
            yield 1.0 / float(x[1]) * x[2]
        except ZeroDivisionError:
            yield x[2] ** 2

    return sum(terms())


def generator_with_a_helper(x: Any) -> Any:
    def small(v: Any) -> Any:
        if v > 1.0:
            raise ValueError("large")
        return v * x[0]

    def terms() -> Iterator[Any]:
        for v in x:
            try:
                found = small(v)
            except ValueError:
                found = v**2
            yield found

    return sum(terms())


def suspended(x: Any) -> Any:
    """A generator that waits in its ``try`` handles nothing of what its caller does."""

    def terms() -> Iterator[Any]:
        try:
            yield x[2]
        except ZeroDivisionError:
            yield x[0]

    it = terms()
    y = next(it)
    try:
        y = y + 1.0 / float(x[1])
    except ZeroDivisionError:
        it.close()
        y = y * 3.0 + (1.0 / float(x[0]))
    return y * x[2]


FUNCTIONS = [
    *(division_suppressed, raise_suppressed, index_suppressed, solve_suppressed, domain_ignored, division_ignored),
    *(within_a_stack, around_a_try, within_a_try, generator, generator_with_a_helper, suspended),
]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_the_error_is_handled_as_in_python(f: Function, backend: str) -> None:
    run, slope, forward = (way(f, backend=backend) for way in (sg.jit, sg.grad, sg.jacfwd))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        for x in POINTS:
            np.testing.assert_allclose(run(x.copy()), f(x.copy()), rtol=1e-12)
            found = slope(x.copy())
            for k in np.flatnonzero(x):  # where one is 0, an error is on both sides of none
                step = 1e-6 * np.eye(3)[k]
                difference = (f(x + step) - f(x - step)) / 2e-6
                np.testing.assert_allclose(found[k], difference, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(forward(x.copy()), found, rtol=1e-12)


@pytest.mark.parametrize("f", [division_suppressed, raise_suppressed, division_ignored, generator])
def test_what_is_handled_makes_paths(f: Function) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        for x in (*POINTS, *POINTS):
            sg.grad(f)(x.copy())


def test_a_function_that_could_be_traced_as_it_is_is_converted() -> None:
    """Nothing in its code says what is handled."""

    def f(a: float, b: float) -> Any:
        with contextlib.suppress(*SUPPRESSED):
            a = a / b
        return a * 3.0

    assert sg.jit(f)(2.0, 0.0) == 6.0
    assert sg.grad(f)(2.0, 0.0) == 3.0
    assert sg.grad(f)(2.0, 4.0) == 0.75


def test_managers_that_handle_nothing_leave_one_program() -> None:
    def f(x: Any) -> Any:
        done: list[int] = []
        with Noting() as noting, finishing(done), np.errstate(divide="ignore"):
            y = 1.0 / float(x[1])
        return (y + x[0]) * x[2] * noting.left * len(done)

    slope = sg.grad(f)
    assert sg.explain(slope)(POINTS[1])["how it runs"].startswith("One program")
    assert sg.jit(f, strict=True)(POINTS[0]) == math.inf


def test_the_manager_itself_is_what_is_entered() -> None:
    def f(x: Any) -> Any:
        with Ignoring() as manager:
            y = x[0] * isinstance(manager, Ignoring)
        return y * 2.0

    assert sg.grad(f)(POINTS[0]).tolist() == [2.0, 0.0, 0.0]
