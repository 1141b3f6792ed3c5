"""A ``try`` in which much may fail is a program for the calls in which nothing does; the others get what Python gives.

Nothing is done twice: a program that has printed, drawn or counted before something may fail is none of these.
"""

from __future__ import annotations

import contextlib
import io
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.errors import ArgumentError

Function = Callable[..., Any]
BACKENDS = ["numpy", "llvm", "xla"]
POINTS = [(1.3, 0.7), (1.3, -3.0), (0.6, 0.0), (1.3, 0.71)]
"""Calls in which nothing fails, a division by zero in the first and in a later trip, and nothing once more."""
rng = np.random.default_rng(0)
log: list[Any] = []


def inverses(x: float, b: float) -> Any:
    total = 0.0
    try:
        for k in range(100):
            total += x / (b + k)
    except ZeroDivisionError:
        return x * x * b
    return total * x


def written_out(x: float, b: float) -> Any:
    total = x
    try:
        for _ in range(3):
            total = total + x / (b + 1) + x / (b + 2) + x / (b + 3) + x / (b + 4) + x / (b + 5) + x / (b + 6)
        total = total * math.exp(x) / b
    except Exception:
        return total + x**3
    return total


def endless_without_its_error(x: float, b: float) -> Any:
    total = 0.0
    try:
        while not total > 5.0:
            total = total + 0.0 * (x / b) + abs(b) + 0.1
    except ZeroDivisionError:
        total = 3.0 * x
    return total * x


def raised_in_a_loop(x: float, b: float) -> Any:
    total = 0.0
    try:
        for k in range(50):
            if b + k == 0.0:
                raise KeyError(k)
            total += x * k
    except LookupError:
        total = total + x**3
    return total


def raised_in_a_while(x: float, b: float) -> Any:
    y, n = abs(x) + 0.1, 0
    try:
        while y < 5.0:
            y = y * 2
            if n > 3.0 + b:
                raise ValueError
            n += 1
    except ValueError:
        y = y * x * b
    return y * x


def within_another(x: float, b: float) -> Any:
    total = 0.0
    try:
        for k in range(30):
            try:
                total += x / (b + k)
            except OverflowError:
                total -= 1.0
            finally:
                total += 0.5 * x
    except ArithmeticError:
        total = total * x
    return total


def arrays_written(x: float, b: float) -> Any:
    y = np.array([x, b, 1.0])
    try:
        for k in range(40):
            y[k % 3] += x / (b + k)
    except ZeroDivisionError:
        y[0] = 7.0 * x
    return np.sum(y * y)


def lists_that_grow(x: float, b: float) -> Any:
    kept = []
    try:
        for k in range(40):
            kept.append(x / (b + k))
    except ZeroDivisionError:
        kept.append(x * 100.0)
    return sum(kept) * len(kept)


FUNCTIONS = [
    *(inverses, written_out, endless_without_its_error, raised_in_a_loop, raised_in_a_while, within_another),
    *(arrays_written, lists_that_grow),
]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        yield


def slope_of(f: Function, x: float, b: float) -> Any:
    return (f(x + 1e-6, b) - f(x - 1e-6, b)) / 2e-6


def how(f: Function, *args: float) -> str:
    return str(sg.explain(f)(*args)["how it runs"])


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_such_a_try_is_one_program(f: Function) -> None:
    text = how(sg.grad(f), *POINTS[0])
    assert text.startswith("One program")
    assert "for calls in which nothing fails" in text


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_what_fails_takes_the_handler_and_its_derivative(f: Function, backend: str) -> None:
    run, slope = sg.jit(f, backend=backend), sg.value_and_grad(f, backend=backend)
    for x, b in POINTS:
        if f is endless_without_its_error and b < 0:
            continue
        np.testing.assert_allclose(run(x, b), f(x, b), rtol=1e-12)
        value, found = slope(x, b)
        np.testing.assert_allclose(value, f(x, b), rtol=1e-12)
        np.testing.assert_allclose(found, slope_of(f, x, b), rtol=1e-5)


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_calls_in_which_nothing_fails_are_made_once(f: Function, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("srcgrad.paths.run_failing", None)
    slope = sg.grad(f)
    for x, b in ((0.7, 3.0), (0.8, 3.1)):
        np.testing.assert_allclose(slope(x, b), slope_of(f, x, b), rtol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_transform_makes_a_failing_call_again(backend: str) -> None:
    f = inverses
    for x, b in POINTS[:2]:
        value, slope = f(x, b), slope_of(f, x, b)
        primal, tangent = sg.jvp(f, (x, b), (1.0, 0.0), backend=backend)
        out, pull = sg.vjp(f, x, b, backend=backend)
        again, push = sg.linearize(f, x, b, backend=backend)
        np.testing.assert_allclose([primal, out, again], value, rtol=1e-12)
        found = [tangent, pull(1.0)[0], push(1.0, 0.0), sg.jacfwd(f, backend=backend)(x, b)]
        np.testing.assert_allclose(found, slope, rtol=1e-6)
        nested = sg.grad(lambda x, b: 2.0 * sg.jit(f)(x, b), backend=backend)
        np.testing.assert_allclose(nested(x, b), 2.0 * slope, rtol=1e-6)
        curved = (slope_of(f, x + 1e-3, b) - slope_of(f, x - 1e-3, b)) / 2e-3
        np.testing.assert_allclose(sg.hessian(f, backend=backend)(x, b), curved, rtol=1e-4)


@pytest.mark.parametrize("backend", BACKENDS)
def test_of_examples_the_failing_one_takes_its_handler(backend: str) -> None:
    def one(x: Any, b: Any) -> Any:
        return inverses(float(x), float(b))

    xs, bs = np.array([1.3, 0.5, 0.4]), np.array([0.7, -3.0, 5.5])
    expected = [inverses(x, b) for x, b in zip(xs.tolist(), bs.tolist(), strict=True)]
    slopes = [slope_of(inverses, x, b) for x, b in zip(xs.tolist(), bs.tolist(), strict=True)]
    np.testing.assert_allclose(sg.vmap(one, backend=backend)(xs, bs), expected, rtol=1e-12)
    np.testing.assert_allclose(sg.vmap(sg.grad(one), backend=backend)(xs, bs), slopes, rtol=1e-5)
    np.testing.assert_allclose(sg.vmap(one, backend=backend)(xs, np.abs(bs) + 1.0), [
        inverses(x, abs(b) + 1.0) for x, b in zip(xs.tolist(), bs.tolist(), strict=True)
    ], rtol=1e-12)  # fmt: skip


def test_calls_answered_in_machine_code_fail_as_the_others() -> None:
    slope = sg.grad(written_out, backend="llvm")
    for _ in range(40):
        slope(1.3, 0.7)
    for x, b in (*POINTS, *POINTS):
        np.testing.assert_allclose(slope(x, b), slope_of(written_out, x, b), rtol=1e-5)
    with pytest.raises(TypeError):
        slope(1.3)


def prints_before(x: float, b: float) -> Any:
    print("before")
    return inverses(x, b)


def prints_within(x: float, b: float) -> Any:
    total = 0.0
    try:
        for k in range(40):
            total += x / (b + 3.5 + k)
        print("half")
        for k in range(40):
            total += x / (b + k)
    except ZeroDivisionError:
        total = x * x
    return total * x


def appends_in_each_trip(x: float, b: float) -> Any:
    total = 0.0
    try:
        for k in range(20):
            total += x / (b + k)
            log.append(k)
    except ZeroDivisionError:
        total = x * x
    return total * x


def appends_around(x: float, b: float) -> Any:
    """What an earlier trip of the outer loop has done is not done again where a later one fails."""
    total = x
    for i in range(3):
        total = total + inverses(x, b + 0.5 * i)
        log.append(i)
    return total


def appends_in_a_long_loop(x: float, b: float) -> Any:
    total = x
    for i in range(30):
        try:
            for k in range(20):
                total = total + 0.01 * x / (b + 0.5 * i - k)
        except ZeroDivisionError:
            total = total * 1.5
        log.append(i)
    return total


def draws_before(x: float, b: float) -> Any:
    return rng.normal() + inverses(x, b)


def says_why(x: float, b: float) -> Any:
    try:
        for k in range(20):
            x = x / (b + k) + 1.0
    except ZeroDivisionError as error:
        print("failed", type(error).__name__)
        x = x * x
    print("behind")
    return x + rng.normal()


DOING = [
    *(prints_before, prints_within, appends_in_each_trip, appends_around, appends_in_a_long_loop, draws_before),
    says_why,
]


def all_done(call: Function) -> tuple[Any, ...]:
    global rng
    rng = np.random.default_rng(0)
    log.clear()
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        values = [float(call(x, b)) for x, b in (*POINTS, *POINTS)]
    return np.array(values), text.getvalue(), list(log), rng.random()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", DOING, ids=lambda f: f.__name__)
def test_nothing_is_done_twice_where_something_fails(f: Function, backend: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        slope = sg.value_and_grad(f, backend=backend)
        expected = all_done(f)
        for call in (sg.jit(f, backend=backend), lambda x, b: slope(x, b)[0]):
            found = all_done(call)
            np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
            assert found[1:] == expected[1:]


def test_a_try_behind_an_effect_has_paths(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: float, b: float) -> Any:
        print("began")
        try:
            for k in range(20):
                x = x + 1.0 / (b + k)
        except ZeroDivisionError:
            x = -x
        return x

    slope = sg.grad(f)
    assert how(slope, 1.0, 0.5).startswith("Path 1 of at most 8")
    assert (slope(1.0, 0.5), slope(1.0, -3.0)) == (1.0, -1.0)
    assert capsys.readouterr().out == "began\nbegan\n"


def test_an_array_of_the_callers_is_written_once() -> None:
    def f(y: Any, b: float) -> Any:
        y[0] += 1.0
        try:
            for k in range(40):
                y[1] += 1.0 / (b + k)
        except ZeroDivisionError:
            y[2] += 1.0
        return y.sum()

    run = sg.jit(f)
    for b in (0.5, -3.0, -3.0, 0.5):
        found, expected = np.zeros(3), np.zeros(3)
        np.testing.assert_allclose(run(found, b), f(expected, b), rtol=1e-13)
        np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_what_is_to_be_one_program_for_all_calls_is_refused() -> None:
    with pytest.raises(ArgumentError, match="cannot be one program"):
        sg.jit(inverses, strict=True)(1.3, 0.7)


def test_a_jax_function_does_not_leave_out_what_fails() -> None:
    """In jax nothing can make a call again."""
    with pytest.raises(TypeError, match="cannot be one program"):
        sg.to_jax(raised_in_a_loop)(1.3, 0.7)


def test_an_error_that_no_handler_takes_is_pythons() -> None:
    def f(x: float, b: float) -> Any:
        try:
            for k in range(50):
                if b + k == 0.0:
                    raise RuntimeError("none left")
                x = x + 1.0 / (b + 0.5 + k)
        except ZeroDivisionError:
            x = -x
        return x

    slope = sg.grad(f)
    assert slope(1.0, 0.25) == 1.0
    assert slope(1.0, -2.5) == -1.0
    with pytest.raises(RuntimeError, match="none left") as caught:
        slope(1.0, -2.0)
    assert caught.value.__context__ is None


def test_few_questions_are_answered_in_the_program() -> None:
    def f(a: float, b: float) -> Any:
        try:
            c = a / b
        except ZeroDivisionError:
            c = 7.0 * a
        return c

    text = how(sg.grad(f), 1.0, 2.0)
    assert "for calls in which nothing fails" not in text
    assert sg.jit(f, strict=True)(1.0, 0.0) == 7.0


def test_calls_that_fail_again_and_again_are_told_of() -> None:
    """Their handlers are met in a loop on values, which is no path."""

    def f(x: float, b: float) -> Any:
        total = x
        k = 0.0
        while k * x < 300.5:
            try:
                for j in range(20):
                    total = total + x / (b + j)
            except ZeroDivisionError:
                total = total * 1.01
            k = k + 1.0
        return total

    slope = sg.grad(f)
    assert slope(1.0, 0.5) == pytest.approx(slope_of(f, 1.0, 0.5), rel=1e-6)
    for _ in range(8):
        assert slope(1.0, -3.0) == pytest.approx(slope_of(f, 1.0, -3.0), rel=1e-6)
    with pytest.warns(sg.RetraceWarning, match="something fails in a try at many calls"):
        slope(1.0, -3.0)
