"""What Python's floats and ``math`` raise: in a ``try`` that handles it, the handler; elsewhere NumPy's inf and nan."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

Function = Callable[..., Any]
POINTS = [(2.0, 3.0), (2.0, 0.0), (0.0, -1.0), (1e10, 40.0), (1000.0, 1.0), (-2.0, 1.0), (0.0, 0.0), (math.inf, 2.0)]
POINTS += [(math.nan, 1.0), (171.0, 2.0), (172.0, 2.0), (1.0, 1.0)]
OPERATORS: list[Function] = [
    lambda a, b: a / b,
    lambda a, b: a // b,
    lambda a, b: a % b,
    lambda a, b: divmod(a, b)[1],
    lambda a, b: a ** abs(b) + 1.0 / a**b,
    lambda a, b: a**400 + b,
    lambda a, b: math.pow(a, b),
    lambda a, b: math.fmod(a, b),
    lambda a, b: math.remainder(a, b),
    lambda a, b: math.log(a, b),
    lambda a, b: math.ldexp(a, 1020) + b,
]
NAMES = (
    "exp", "expm1", "exp2", "cosh", "sinh", "gamma", "lgamma", "log", "log2", "log10", "log1p", "sqrt", "acos", "asin",
    "atanh", "acosh", "sin", "cos", "tan", "tanh",
)  # fmt: skip


def tried(operation: Function) -> Function:
    def f(a: float, b: float) -> Any:
        try:
            c = operation(a, b)
        except ZeroDivisionError:
            c = 7.0 * a
        except (OverflowError, ValueError):
            c = a - 3.0
        return c * 1.0

    return f


def of_math(name: str) -> Function:
    function = getattr(math, name)
    return lambda a, b: function(a) + b


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(
    "operation", [*OPERATORS, *map(of_math, NAMES)], ids=[*map(str, range(len(OPERATORS))), *NAMES]
)
def test_a_try_handles_what_python_raises_of_its_floats(operation: Function, backend: str) -> None:
    f = tried(operation)
    run = sg.jit(f, strict=True, backend=backend)
    for a, b in POINTS:
        np.testing.assert_allclose(run(a, b), f(a, b), rtol=1e-13, err_msg=f"{a}, {b}")


def mean_of_inverses(x: Any) -> Any:
    total = 0.0
    for v in x.tolist():
        try:
            total += inverse(v)
        except ArithmeticError:
            total += 100.0 * v
    return total


def inverse(v: float) -> Any:
    return 1.0 / v


def scaled(x: Any) -> Any:
    try:
        return math.exp(float(x[0]) / float(x[1])) + x[0]
    except Exception:
        return x[0] * 5


def any_error(x: Any) -> Any:
    try:
        y = float(x[0]) ** -2.0
    except:  # noqa: E722
        y = x[1] * x[1]
    return y * x[1]


def of_another_kind(x: Any) -> Any:
    """The inner handler does not take it."""
    try:
        try:
            y = x.tolist()[0] / x.tolist()[1]
        except KeyError:
            y = 5.0
    except ZeroDivisionError:
        y = x[0] * 3
    return y * x[0]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", [mean_of_inverses, scaled, any_error, of_another_kind], ids=lambda f: f.__name__)
def test_the_derivative_is_that_of_the_way_taken(f: Function, backend: str) -> None:
    slope = sg.grad(f, backend=backend)
    for x in (np.array([0.5, 2.0, 1.0]), np.array([2.0, 0.0, -1.0]), np.array([0.0, 3.0, 1.0])):
        fixed = x == 0.0
        expected = np.zeros(3)
        for k in np.flatnonzero(~fixed):
            step = 1e-6 * np.eye(3)[k]
            expected[k] = (f(x + step) - f(x - step)) / 2e-6
        np.testing.assert_allclose(sg.jit(f, backend=backend)(x), f(x), rtol=1e-14)
        np.testing.assert_allclose(slope(x)[~fixed], expected[~fixed], rtol=1e-6)


def test_a_long_loop_of_divisions_in_a_try_takes_the_handler() -> None:
    def f(a: float, b: float) -> Any:
        total = 0.0
        try:
            for k in range(40):
                total += a / (b - 0.25 * k)
        except ZeroDivisionError:
            return a * a
        return total

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        for b in (-1.0, 2.0):
            assert sg.jit(f)(3.0, b) == pytest.approx(f(3.0, b), rel=1e-14)
            difference = (f(3.0 + 1e-6, b) - f(3.0 - 1e-6, b)) / 2e-6
            assert sg.grad(f)(3.0, b) == pytest.approx(difference, rel=1e-7)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_numpys_numbers_and_floats_outside_of_a_try_divide_by_zero(backend: str) -> None:
    def of_arrays(x: Any) -> Any:
        try:
            return x[0] / x[1]
        except ZeroDivisionError:
            return -x[0]

    def of_keys(a: float, b: float) -> Any:
        try:
            return a / b
        except KeyError:
            return -a

    with np.errstate(divide="ignore"):
        assert sg.jit(of_arrays, backend=backend)(np.array([1.0, 0.0])) == math.inf
    assert sg.jit(of_keys, backend=backend)(1.0, 0.0) == math.inf
    assert sg.jit(lambda a, b: math.exp(a) / b, backend=backend)(1.0, 0.0) == math.inf
    assert sg.jit(lambda a: math.exp(a), backend=backend)(1000.0) == math.inf


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(
    ("function", "points"),
    [
        (math.acos, (2.0,)), (math.asin, (-1.5,)), (math.atanh, (1.0,)), (math.acosh, (0.5,)), (math.log1p, (-1.0,)),
        (math.log2, (0.0,)), (math.log10, (-1.0,)), (math.gamma, (-1.0,)), (math.lgamma, (0.0,)),
        (math.fmod, (1.0, 0.0)), (math.remainder, (math.inf, 2.0)),
    ],
    ids=lambda p: getattr(p, "__name__", None),
)  # fmt: skip
def test_math_raises_where_it_is_not_defined(function: Any, points: tuple[float, ...], backend: str) -> None:
    def f(*args: float) -> Any:
        return function(*args) * args[0]

    with pytest.raises(ValueError) as expected:
        f(*points)
    with pytest.raises(ValueError) as found:
        sg.jit(f, backend=backend)(*points)
    assert str(expected.value) == str(found.value)
