"""Globals and captured variables that a function sets where they are not set yet."""

from __future__ import annotations

import sys
import typing
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.constants
from numpy.typing import NDArray

import srcgrad as sg

quadrature: Any = None
TABLE: Any = None
FLOATS, EITHER, MAYBE, ARRAYS = np.float32 | np.float64, typing.Union[int, float], typing.Optional[float], NDArray[Any]  # noqa: UP007, UP045


def imported_late(x: Any) -> Any:
    global quadrature
    if quadrature is None:
        from scipy.integrate import quad as quadrature
    return quadrature(lambda t, k: np.sin(t * k) * x, 0.0, x, args=(2.0,))[0]


def table() -> Any:
    global TABLE
    if TABLE is None:
        TABLE = np.linspace(0, 1, 5)
    return TABLE


def made_late(x: Any) -> Any:
    return np.sum(table() * x**2)


def closure() -> Callable[[Any], Any]:
    found = None

    def get() -> Any:
        nonlocal found
        if found is None:
            found = np.arange(4.0)
        return found

    return lambda x: np.sum(get() * x**2)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", [imported_late, made_late, closure()])
def test_what_is_set_once_is_no_reason_to_trace_again(f: Callable[[Any], Any], backend: str) -> None:
    f(0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        for x in (0.7, 1.3):
            np.testing.assert_allclose(sg.grad(f, backend=backend)(x), (f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_what_is_not_set_yet_is_set() -> None:
    globals()["TABLE"] = None
    assert sg.grad(made_late)(1.0) == 5.0 and TABLE is not None
    globals()["TABLE"] = np.ones(3)
    assert sg.grad(made_late)(1.0) == 6.0
    globals()["TABLE"] = None
    assert sg.grad(made_late)(1.0) == 5.0


def of_the_system(x: Any) -> Any:
    least = np.log(sys.float_info.min) if sys.version_info >= (3, 8) else 1.0
    return x**2 * least * sys.float_info.max_10_exp


def of_types(x: Any) -> Any:
    kept = typing.cast(ARRAYS, typing.cast(MAYBE, np.asarray(x, FLOATS.__args__[1])))  # type: ignore[valid-type]
    return kept**2 if isinstance(3, EITHER) and np.float64 in FLOATS.__args__ else x  # type: ignore[arg-type]


@pytest.mark.parametrize(("f", "slope"), [(of_the_system, 2 * np.log(sys.float_info.min) * 308), (of_types, 2.0)])
def test_what_python_says_of_itself_and_of_types_is_constant(f: Callable[[Any], Any], slope: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        np.testing.assert_allclose(sg.grad(f)(1.0), slope)


def looked_up(x: Any) -> Any:
    return x**2 * scipy.constants.value("electron volt") * 1e19


def test_physical_constants_that_are_looked_up_are_constant() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        np.testing.assert_allclose(sg.grad(looked_up)(1.0), 2e19 * scipy.constants.e)
