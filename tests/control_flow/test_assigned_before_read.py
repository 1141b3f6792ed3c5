"""Attributes that a call assigns before it reads them: what earlier calls have left there decides nothing."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

POINTS = (0.5, 1.5, 3.0, 0.25, 2.5, 0.7)
X = np.array([1.0, 2.0])


class Solver:
    def __init__(self) -> None:
        self.error, self.message, self.done, self.kept = 0, "none", False, 0

    def flagged(self, x: Any) -> Any:
        self.error = 0
        y = x * x
        if x > 1.0:
            self.error = 6
        return 2.0 * y if self.error else y

    def counted(self, x: Any) -> Any:
        self.error, self.done = 0, False
        while x > 0.1:
            x = 0.5 * x
            self.error += 1
        self.done = True
        return x * self.error

    def told(self, x: Any) -> Any:
        self.message = "small"
        if x > 1.0:
            self.message = "large"
        return x if self.message == "large" else x * x

    def read_by_none(self, x: Any) -> Any:
        factor = 3.0 if self.message is None else 1.0
        self.message = "read"
        return factor * x * x

    def kept_elsewhere(self, x: Any) -> Any:
        self.kept = self.error
        self.error = 1 if self.error == 3 else 4
        return x * x

    def kept_on_a_path(self, x: Any) -> Any:
        if x > 1.0:
            self.error = 4
        return x * self.error

    def asked_of_numpy(self, x: Any) -> Any:
        y = x * x if np.isscalar(self.error) else x
        self.error = 2
        return y

    def asked_its_class(self, x: Any) -> Any:
        y = x if isinstance(self.error, int) and type(self.message) is str else 5.0 * x
        self.error, self.message = 1, "read"
        return y


class Owner:
    def __init__(self) -> None:
        self.solver = Solver()

    def flagged(self, x: Any) -> Any:
        return self.solver.flagged(x)


ONE_PROGRAM = ("flagged", "counted", "told")
READ = ("read_by_none", "kept_elsewhere", "kept_on_a_path", "asked_of_numpy", "asked_its_class")


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("name", ONE_PROGRAM)
def test_what_is_assigned_first_is_no_guard(name: str, backend: str) -> None:
    solver, plain = Solver(), Solver()
    call = sg.value_and_grad(getattr(solver, name), backend=backend)
    call(POINTS[0])
    getattr(plain, name)(POINTS[0])
    before = sg.explain(call)(POINTS[1])["how it runs"]
    assert before.startswith("One program")
    assert "self" not in before
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        for k, x in enumerate(POINTS):
            solver.error, solver.message = plain.error, plain.message = k, str(k)
            value, slope = call(x)
            assert value == getattr(plain, name)(x)
            difference = getattr(Solver(), name)(x + 1e-6) - getattr(Solver(), name)(x - 1e-6)
            assert slope == pytest.approx(difference / 2e-6, rel=1e-6)
            assert vars(solver) == vars(plain)


@pytest.mark.parametrize("name", READ)
def test_what_is_read_first_is_read_at_each_call(name: str) -> None:
    solver, plain = Solver(), Solver()
    call = sg.jit(getattr(solver, name))
    held: tuple[Any, ...] = (0, 3, 0, 2.5, 3, None, 7)
    for k, x in enumerate((*POINTS, *POINTS)):
        if k % 2 == 0:
            error = held[k // 2]
            solver.error = plain.error = 1 if error is None and name == "kept_on_a_path" else error
            solver.message = plain.message = None if error == 3 else "set"
        assert call(x) == getattr(plain, name)(x)
        assert vars(solver) == vars(plain)


def test_of_an_object_that_an_object_has() -> None:
    owner, plain = Owner(), Owner()
    call: Callable[..., Any] = sg.grad(owner.flagged)
    assert [call(x) for x in POINTS] == [2.0 * x * (1.0 + (x > 1.0)) for x in POINTS]
    for x in POINTS:
        plain.flagged(x)
    assert vars(owner.solver) == vars(plain.solver)
    assert sg.explain(call)(0.5)["how it runs"].startswith("One program")


def sized(self: Any, x: Any) -> Any:
    return np.full(self.error, x[0])


def indexed(self: Any, x: Any) -> Any:
    return x[self.error - 1]


def keyed(self: Any, x: Any) -> Any:
    return x * {1: 2.0, 2: 3.0}[self.error] * {"none": 1.0, "set": 5.0}[self.message]


def rooted(self: Any, x: Any) -> Any:
    return x * math.sqrt(self.error) * len(self.message + "!") * (1 if self.done else 2)


def returned(self: Any, x: Any) -> Any:
    return x, [self.error, {"said": self.message}]


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("use", [sized, indexed, keyed, rooted, returned])
def test_any_use_is_a_read(use: Callable[[Any, Any], Any]) -> None:
    def f(solver: Any, x: Any) -> Any:
        found = use(solver, x)
        solver.error, solver.message, solver.done = 1, "none", False
        if x[0] > 1.0:
            solver.error, solver.message, solver.done = 2, "set", True
        return found

    solver, plain = Solver(), Solver()
    solver.error = plain.error = 1
    call = sg.jit(lambda x: f(solver, x))
    for x in (0.5 * X, 2.0 * X, 3.0 * X, 0.25 * X, 2.0 * X):
        found, expected = call(x), f(plain, x)
        if use is returned:
            assert found[1] == expected[1]
            found, expected = found[0], expected[0]
        np.testing.assert_array_equal(found, expected)
        assert vars(solver) == vars(plain)
