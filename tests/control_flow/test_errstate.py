"""``np.errstate`` that asks for errors: they are raised where NumPy raises them, in a ``try`` and outside of any."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import srcgrad as sg

Function = Callable[..., Any]
TINY = 3e-310
NUMBERS = [0.0, -0.0, 1.0, -1.0, 2.5, -3.5, 1e-200, TINY, 1e200, 1e308, 800.0, -800.0, -1100.0, np.inf, -np.inf, np.nan]
OF_ONE: dict[str, Function] = {
    "log": lambda x: np.log(x),
    "log1p": lambda x: np.log1p(x),
    "sqrt": lambda x: np.sqrt(x),
    "exp": lambda x: np.exp(x),
    "cosh": lambda x: np.cosh(x),
    "arctanh": lambda x: np.arctanh(x),
    "arcsin": lambda x: np.arcsin(x),
    "sin": lambda x: np.sin(x),
    "square": lambda x: x**2,
    "inverse": lambda x: x**-1,
    "inverse power": lambda x: x**-3,
    "reciprocal": lambda x: np.reciprocal(x),
    "first": lambda x: 1.0 / x[0],
    "sum": lambda x: x.sum(),
    "prod": lambda x: np.prod(x),
    "mean": lambda x: np.mean(x),
    "norm": lambda x: np.linalg.norm(x),
    "var": lambda x: np.var(x),
    "cumsum": lambda x: np.cumsum(x),
    "cast": lambda x: x.astype(np.float32).astype(float),
    "whole": lambda x: x.astype(np.int64) * x,
    "maximum": lambda x: np.maximum(x, 0.0),
    "where": lambda x: np.where(x > 0, x, np.nan),
    "nan_to_num": lambda x: np.nan_to_num(x),
    "expit": lambda x: scipy.special.expit(x),
    "logsumexp": lambda x: scipy.special.logsumexp(x),
}
OF_TWO: dict[str, Function] = {
    "divide": lambda x, y: x / y,
    "multiply": lambda x, y: x * y,
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "power": lambda x, y: x**y,
    "floor_divide": lambda x, y: x // y,
    "remainder": lambda x, y: x % y,
    "hypot": lambda x, y: np.hypot(x, y),
    "scalar": lambda x, y: x[0] / y[0],
    "scalar power": lambda x, y: x[0] ** y[0],
    "matmul": lambda x, y: x @ y,
    "outer": lambda x, y: np.multiply.outer(x, y),
    "whole numbers": lambda x, y: (x > 0).astype(int) // (y > 0).astype(int) + x,
}


def outcome(f: Function, *args: Any) -> tuple[str, Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return "", f(*args)
    except FloatingPointError as error:
        return str(error), None


def stated(operation: Function, kind: str) -> Function:
    def f(*args: Any) -> Any:
        with np.errstate(**{kind: "raise"}):
            return operation(*args)

    return f


ROUNDED = ("sum", "prod", "mean", "norm", "var", "matmul", "floor_divide")
"""What NumPy makes of several operations: the error may name another one, and underflow is not looked for in each."""
WITH_TINY = ("exp", "square", "reciprocal", "cast", "sqrt", "multiply", "divide", "add", "subtract", "power")
"""The C library's other functions set the flag at numbers below the normal ones, or do not, as it likes."""


def numbers_for(name: str) -> list[float]:
    return [number for number in NUMBERS if number != TINY or name in WITH_TINY]


def kinds_for(name: str) -> list[str]:
    silent = name in ROUNDED or name == "logsumexp"
    return ["divide", "over", "invalid", *([] if silent else ["under", "all"])]


def same_error(name: str, one: str, other: str) -> bool:
    if name in ROUNDED:
        return one.partition(" encountered")[0] == other.partition(" encountered")[0]
    return one == other


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name in OF_ONE for kind in kinds_for(name)])
def test_operations_of_one_array_raise_what_numpy_raises(name: str, kind: str) -> None:
    f = stated(OF_ONE[name], kind)
    run = sg.jit(f, strict=True, backend="llvm")
    for number in numbers_for(name):
        x = np.array([number, 1.0])
        expected, got = outcome(f, x), outcome(run, x)
        assert same_error(name, got[0], expected[0]), (number, expected, got)
        if not expected[0]:
            np.testing.assert_allclose(got[1], expected[1], rtol=1e-12)


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name in OF_TWO for kind in kinds_for(name)])
def test_operations_of_two_arrays_raise_what_numpy_raises(name: str, kind: str) -> None:
    f = stated(OF_TWO[name], kind)
    run = sg.jit(f, strict=True, backend="llvm")
    for left in numbers_for(name):
        for right in numbers_for(name):
            x, y = np.array([left, 1.0]), np.array([right, 2.0])
            # In vectors of AVX-512, NumPy's power sets flags at infinite exponents that C's pow does not.
            given = (x[0], y[0]) if name == "power" and np.isinf(right) else (x, y)
            expected, got = outcome(f, *given), outcome(run, x, y)
            assert same_error(name, got[0], expected[0]), (left, right, expected, got)


def differences(f: Function, x: Any) -> Any:
    return [(f(x + 1e-4 * e) - f(x - 1e-4 * e)) / 2e-4 for e in np.eye(len(x))]


def handled(x: Any) -> Any:
    try:
        with np.errstate(divide="raise", invalid="raise"):
            y = np.log(x) / x
    except FloatingPointError:
        y = 7.0 * x
    return np.sum(y * y)


def in_a_loop(x: Any) -> Any:
    total = 0.0
    for k in range(40):
        try:
            with np.errstate(all="raise"):
                total = total + 1.0 / (x[0] - k)
        except FloatingPointError:
            total = total + 3.0 * x[1]
    return total


@np.errstate(all="raise")
def decorated(x: Any) -> Any:
    total = x[0]
    for k in range(30):
        total = total + np.exp(x[1] * k)
    return total


def with_a_handler(x: Any) -> Any:
    try:
        return decorated(x)
    except FloatingPointError:
        return x[0] * x[1]


def ignored_within(x: Any) -> Any:
    with np.errstate(all="raise"):
        with np.errstate(divide="ignore"):
            y = 1.0 / x
        return np.sum(np.where(np.isinf(y), x, y * 2.0))


def halved(x: Any) -> Any:
    return np.sqrt(x) / x


def in_a_function(x: Any) -> Any:
    with np.errstate(invalid="raise", divide="raise"):
        try:
            return np.sum(halved(x - 1.0))
        except FloatingPointError as error:
            return np.sum(x) * len(str(error))


def masked(x: Any) -> Any:
    y = np.zeros_like(x)
    with np.errstate(all="raise"):
        y[x > 0] = np.log(x[x > 0]) + x[x > 0].sum()
    return y.sum()


def sliced(x: Any) -> Any:
    y = np.concatenate([x, np.zeros(28)])
    with np.errstate(divide="raise", invalid="raise"):
        for k in range(1, 30):
            y[k] = y[k] + np.sum(1.0 / y[:k])
    return y[-1]


def guarded(x: Any) -> Any:
    total = 0.0
    with np.errstate(all="raise"):
        if x[0] != 0 and 1.0 / x[0] > 0.1:
            total = total + x[1]
        total = total + (1.0 / x[0] if x[0] > 0 else x[1])
        total = total + sum(np.sqrt(v) for v in x if v > 0)
        for k in range(40):
            if x[0] > k:
                total = total + np.sqrt(x[0] - k)
    return total


CASES: list[tuple[Function, list[float], Function]] = [
    (handled, [1.0, 2.0], lambda x: 2 * np.log(x) * (1 - np.log(x)) / x**3),
    (handled, [0.0, 2.0], lambda x: 98.0 * x),
    (handled, [-1.0, 3.0], lambda x: 98.0 * x),
    (in_a_loop, [0.5, 2.0], lambda x: [-np.sum((0.5 - np.arange(40.0)) ** -2), 0.0]),
    (in_a_loop, [3.0, 2.0], lambda x: [-np.sum((3.0 - np.delete(np.arange(40.0), 3)) ** -2), 3.0]),
    (with_a_handler, [0.5, 0.2], lambda x: [1.0, np.sum(np.arange(30.0) * np.exp(0.2 * np.arange(30.0)))]),
    (with_a_handler, [3.0, 200.0], lambda x: [200.0, 3.0]),
    (with_a_handler, [3.0, -100.0], lambda x: [-100.0, 3.0]),
    (ignored_within, [0.5, 2.0], lambda x: -2.0 / x**2),
    (ignored_within, [0.0, 2.0], lambda x: [1.0, -0.5]),
    (masked, [0.0, 2.0], lambda x: [0.0, 1.5]),
    (sliced, [1.0, 2.0], lambda x: differences(sliced, x)),
    (guarded, [2.5, 2.0], lambda x: differences(guarded, x)),
    (guarded, [0.0, 2.0], lambda x: [0.0, 1.0 + 0.5 / np.sqrt(2.0)]),
    (in_a_function, [3.5, 2.0], lambda x: -0.5 * (x - 1.0) ** -1.5),
    (in_a_function, [0.0, 2.0], lambda x: [len("invalid value encountered in sqrt")] * 2),
    (in_a_function, [1.0, 2.0], lambda x: [len("invalid value encountered in divide")] * 2),
]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(("f", "point", "slope"), CASES)
def test_a_handler_is_taken_where_numpy_raises(f: Function, point: list[float], slope: Function, backend: str) -> None:
    x = np.array(point)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(sg.jit(f, backend=backend)(x), f(x), rtol=1e-12)
        np.testing.assert_allclose(sg.grad(f, backend=backend)(x), slope(x), rtol=1e-6)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_a_decorated_function_is_one_program_that_raises(backend: str) -> None:
    slope = sg.jit(sg.grad(decorated), strict=True, backend=backend)
    np.testing.assert_allclose(slope(np.array([1.0, 0.1]))[0], 1.0)
    with pytest.raises(FloatingPointError, match="overflow encountered in exp"):
        slope(np.array([1.0, 100.0]))
    with pytest.raises(FloatingPointError, match="underflow encountered in exp"):
        slope(np.array([1.0, -100.0]))


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_a_state_around_the_call_changes_nothing(backend: str) -> None:
    def f(x: Any) -> Any:
        return np.sum(1.0 / x)

    run = sg.jit(f, backend=backend)
    with np.errstate(all="raise"):
        assert run(np.array([0.0, 1.0])) == np.inf
    assert run(np.array([0.0, 1.0])) == np.inf


def test_examples_of_vmap_have_their_own_handlers() -> None:
    points = np.array([[1.0, 2.0], [0.0, 2.0], [-1.0, 3.0]])
    np.testing.assert_allclose(sg.vmap(handled)(points), [handled(point) for point in points])


ALONG_AN_AXIS: list[Function] = [
    lambda x: np.sum(x, axis=1),
    lambda x: np.sum(x, axis=1, keepdims=True),
    lambda x: x.sum(1),
    lambda x: np.mean(x.T, axis=0),
    lambda x: np.cumsum(x, axis=1),
    lambda x: np.add.reduce(x.T),
    lambda x: np.add.accumulate(x, axis=1),
    lambda x: np.sum(x[None], axis=(0, 2)),
    lambda x: np.average(x, axis=1, weights=[1.0, 2.0]),
    lambda x: np.nansum(x, axis=-1),
    lambda x: np.var(x, axis=1),
    lambda x: np.diff(x, axis=1),
    lambda x: np.linalg.norm(x, axis=1),
]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("kind", ["invalid", "over"])
@pytest.mark.parametrize("reduction", ALONG_AN_AXIS)
def test_a_row_without_numbers_hides_no_error_of_another(reduction: Function, kind: str, backend: str) -> None:
    def f(x: Any) -> Any:
        with np.errstate(**{kind: "raise"}):
            return reduction(x)

    for second in ([1.0, 2.0], [np.inf, -np.inf], [1e308, 1e308], [1e308, -1e308]):
        x = np.array([[np.nan, np.inf], second])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                expected = f(x)
            except FloatingPointError:
                with pytest.raises(FloatingPointError, match=r"encountered in"):
                    sg.jit(f, backend=backend)(x)
            else:
                np.testing.assert_allclose(sg.jit(f, backend=backend)(x), expected, rtol=1e-12)


def test_a_state_that_is_put_back_is_one_program() -> None:
    def quotient(x: Any) -> Any:
        before = np.seterr(divide="raise", invalid="ignore")
        y = 1.0 / x
        np.seterr(**before)
        return np.sum(y / x)

    slope = sg.grad(quotient)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        for k in range(1, 4):
            np.testing.assert_allclose(slope(np.full(2, float(k))), np.full(2, -2.0 / k**3))
    with pytest.raises(FloatingPointError, match="divide by zero"):
        slope(np.zeros(2))


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_a_state_that_is_left_is_set_at_each_call() -> None:
    def quotient(x: Any) -> Any:
        np.seterr(divide="ignore")
        return np.sum(1.0 / x)

    before = np.geterr()
    called = sg.jit(quotient)
    try:
        for _ in range(2):
            np.seterr(**before)
            called(np.ones(2))
            assert np.geterr()["divide"] == "ignore"
    finally:
        np.seterr(**before)
