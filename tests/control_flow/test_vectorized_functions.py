"""Functions that ``np.vectorize`` has decorated, captured or differentiated themselves, are one program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.control_flow.traced_once import require_one_program

pytestmark = pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
X = np.array([0.5, 1.5, 3.0])


@np.vectorize
def bent(x: Any) -> Any:
    return x * x if x > 1.0 else x


def scaled(k: float) -> Callable[..., Any]:
    return np.vectorize(lambda x, n=2: k * x**n if x > 1.0 else x, otypes=[float], excluded=["n"])


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_a_decorated_function_is_followed(backend: str) -> None:
    require_one_program(lambda x: np.sum(bent(x) * x), backend, X, 2.5 * X, X / 3.5)
    third = scaled(3.0)
    require_one_program(lambda x: np.sum(third(x, n=3)), backend, X, 2.5 * X)
    dot = np.vectorize(lambda a, b: a @ b, signature="(n),(n)->()")
    require_one_program(lambda x: np.sum(dot(np.outer(x, x), x)), backend, X, 2.5 * X)


def test_it_is_differentiated_itself() -> None:
    assert [float(sg.grad(bent)(x)) for x in (0.5, 3.0)] == [1.0, 6.0]
    np.testing.assert_array_equal(sg.jacobian(bent)(X), np.diag([1.0, 3.0, 6.0]))
    np.testing.assert_array_equal(sg.jit(bent)(X), bent(X))


def test_what_its_function_captures_is_read_at_each_call() -> None:
    for k in (2.0, 3.0):
        f = scaled(k)
        np.testing.assert_allclose(sg.grad(lambda x, f=f: np.sum(f(x)))(X), [1.0, 3.0 * k, 6.0 * k])
        np.testing.assert_allclose(sg.grad(lambda x, f: np.sum(f(x)))(X, f), [1.0, 3.0 * k, 6.0 * k])


def test_how_it_is_applied_decides_the_program() -> None:
    def total(x: Any, f: Any) -> Any:
        return np.sum(f(x))

    def squared(x: Any) -> Any:
        return np.sum(x) ** 2

    by_element, whole = (np.vectorize(squared, signature=signature) for signature in (None, "(n)->()"))
    for _ in range(2):
        np.testing.assert_allclose(sg.grad(total)(X, by_element), 2.0 * X)
        np.testing.assert_allclose(sg.grad(total)(X, whole), np.full(3, 2.0 * X.sum()))
    for kind in (np.float64, np.float32):
        assert sg.jit(np.vectorize(squared, otypes=[kind]))(X).dtype == kind
