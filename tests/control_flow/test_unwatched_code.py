"""Code that runs as it is, or is traced again at each call, sees traced values as what they stand for."""

from __future__ import annotations

import abc
import functools
import io
import math
import numbers
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.signal

import srcgrad as sg
from srcgrad.errors import ConcretizationError

X = np.array([0.5, 1.5, -2.0])
BACKENDS = ["llvm", "numpy"]


def unknown() -> int:
    """What nobody knows to be pure."""
    return len(io.StringIO("ab").read())


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", BACKENDS)
def test_questions_in_code_that_is_traced_again(backend: str) -> None:
    def f(x: Any, s: Any) -> Any:
        n = unknown()
        known = [isinstance(x, np.ndarray), isinstance(s, float), np.isscalar(s), type(x) is np.ndarray]
        other = [np.isscalar(x), isinstance(s, np.ndarray), hasattr(s, "__len__"), isinstance(x, float)]
        return n * np.sum(x) * s if all(known) and not any(other) else 0.0 * np.sum(x)

    np.testing.assert_array_equal(sg.grad(f, backend=backend)(X, 3.0), [6.0, 6.0, 6.0])


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_conversions_in_code_that_is_traced_again() -> None:
    def f(x: Any) -> Any:
        return unknown() * math.sin(x[0]) + float(x[1]) + math.dist(x, np.zeros(3))

    expected = X / np.linalg.norm(X) + np.array([2 * np.cos(0.5), 1.0, 0.0])
    np.testing.assert_allclose(sg.grad(f)(X), expected, rtol=1e-14)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_the_error_is_that_of_what_cannot_be_done() -> None:
    def f(x: Any) -> Any:
        y = math.sin(x[0]) + unknown()
        return y + scipy.signal.find_peaks(x)[0].size

    with pytest.raises(sg.errors.ConcretizationError) as caught:
        sg.grad(f)(X)
    assert "find_peaks(x)" in str(caught.value)


def without_source(text: str) -> Any:
    names: dict[str, Any] = {"np": np, "numbers": numbers}
    exec(text, names)
    return names["f"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_isinstance_in_code_without_source(backend: str) -> None:
    f = without_source(
        "def f(x, s):\n"
        "    known = isinstance(x, np.ndarray) and isinstance(s, float) and isinstance(s, numbers.Real)\n"
        "    known = known and isinstance(x[0], np.floating) and x.__class__ is np.ndarray\n"
        "    return np.sum(x) * s if known and not isinstance(x, float) else 0.0 * s\n"
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=sg.RetraceWarning)
        warnings.filterwarnings("error", message=".*run as it is.*")
        first, second = sg.grad(f, argnums=(0, 1), backend=backend)(X, 2.0)
    np.testing.assert_array_equal(first, [2.0, 2.0, 2.0])
    assert second == 0.0


def test_type_in_code_without_source_warns() -> None:
    f = without_source("def f(x):\n    return np.sum(x) if type(x) is np.ndarray else 2.0 * np.sum(x)\n")
    with pytest.warns(UserWarning, match="ask isinstance"):
        sg.grad(f)(X)


@functools.singledispatch
def area(shape: Any) -> Any:
    raise TypeError(f"no area of {type(shape)}")


@area.register
def _(shape: float) -> Any:
    return shape**2


@area.register(np.ndarray)
def _(shape: Any) -> Any:
    return np.sum(shape)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_singledispatch_finds_the_class_stood_for() -> None:
    first, second = sg.grad(lambda x, s: area(x) * area(s), argnums=(0, 1))(X, 3.0)
    np.testing.assert_array_equal(first, [9.0, 9.0, 9.0])
    assert second == 0.0


def test_srcgrad_and_numpy_know_a_traced_value_for_what_it_is() -> None:
    kinds = []

    def f(x: Any) -> Any:
        kinds.append(type(x))
        return np.sum(np.atleast_2d(np.asarray(x))) + np.sum(np.vstack([x, x]))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_array_equal(sg.grad(f)(X), [3.0, 3.0, 3.0])


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_a_traced_value_is_not_pickled() -> None:
    with pytest.raises(sg.errors.ConcretizationError, match="cannot be pickled"):
        sg.grad(lambda x: np.sum(x) * len(pickle.dumps(x)))(X)


# --- attributes by name ----------------------------------------------------------------------------------------------
class Scaled:
    def __init__(self, factor: float) -> None:
        self.factor = factor


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", BACKENDS)
def test_attributes_by_names_that_are_written_out(backend: str) -> None:
    held = Scaled(2.0)

    def f(x: Any) -> Any:
        shape = x.shape if hasattr(x, "shape") else ()
        scale = getattr(held, "factor", 1.0) * getattr(held, "missing", 3.0)
        old = hasattr(np, "there_is_no_such_function") or hasattr(x, "nothing")
        return scale * getattr(x, "sum")() * len(shape) * (0.0 if old else 1.0)  # noqa: B009

    slope = sg.grad(f, backend=backend)
    np.testing.assert_array_equal(slope(X), [6.0, 6.0, 6.0])
    held.factor = 5.0
    np.testing.assert_array_equal(slope(X), [15.0, 15.0, 15.0])


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
def test_a_number_has_no_length() -> None:
    def f(x: Any) -> Any:
        return np.sum(x) if hasattr(x, "__len__") else 3.0 * x

    assert sg.grad(f)(2.0) == 3.0
    np.testing.assert_array_equal(sg.grad(f)(X), np.ones(3))


# --- warnings --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("backend", BACKENDS)
def test_warnings_are_given_when_the_program_runs(backend: str) -> None:
    def f(x: Any) -> Any:
        if np.sum(x) > 3.0:
            warnings.warn("large", UserWarning, stacklevel=2)
        return np.sum(x**2)

    slope = sg.grad(f, backend=backend)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        slope(X)
        assert not given
        slope(X + 9.0)
        slope(X + 9.0)
    assert [(str(w.message), w.category, w.filename) for w in given] == [("large", UserWarning, __file__)] * 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="large"):
            slope(X + 9.0)


# --- abstract classes ------------------------------------------------------------------------------------------------
class Shape(abc.ABC):
    def __init__(self, size: Any) -> None:
        self.size = size if size > 1.0 else 2.0 * size

    @property
    def half(self) -> Any:
        return self.size / 2.0 if self.size > 2.0 else self.size

    @abc.abstractmethod
    def area(self) -> Any: ...


class Square(Shape):
    def area(self) -> Any:
        return self.size**2 + self.half


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize(("size", "expected"), [(0.5, 6.0), (1.5, 4.0), (3.0, 6.5)])
def test_abstract_classes_are_converted(size: float, expected: float) -> None:
    assert sg.jit(sg.grad(lambda x: Square(x).area()), strict=True)(size) == expected


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_what_cannot_be_traced_at_all_has_its_error_and_no_warning(backend: str) -> None:
    def f(x: Any) -> Any:
        return scipy.optimize.differential_evolution(lambda t: (t[0] - x[0]) ** 2, [(0, 1)]).x[0]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ConcretizationError, match=r"scipy.optimize.differential_evolution has no derivative rule"):
            sg.grad(f, backend=backend)(np.ones(2))
