"""NumPy's errors of numbers that are not known while a function is traced: the program raises them, in one program."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import srcgrad as sg

X = np.array([[1.0, 2.0, 4.0], [3.0, 5.0, 7.0]])


class Case(NamedTuple):
    function: Callable[..., Any]
    good: Any
    bad: Any
    error: type[Exception]


CASES = {
    "weights that sum to zero": Case(
        lambda x, w: np.average(x, axis=1, weights=w), np.array([1.0, -1.0, 2.0]), np.array([1.0, -1.0, 0.0]),
        ZeroDivisionError,
    ),
    "weights of which one row sums to zero": Case(
        lambda x, w: np.average(x, axis=1, weights=w, returned=True)[0], X, X * [[1.0], [0.0]], ZeroDivisionError
    ),
    "the greatest of nothing but nan": Case(
        lambda x, y: x[:, np.nanargmax(y)], np.array([np.nan, 1.0, 0.5]), np.full(3, np.nan), ValueError
    ),
    "the least of a column of nan": Case(
        lambda x, y: x * np.nanargmin(y, axis=0), np.array([[1.0, np.nan, 2.0], [np.nan, 0.0, 1.0]]),
        np.array([[1.0, np.nan, 2.0], [np.nan, np.nan, 1.0]]), ValueError,
    ),
    "digits out of bounds": Case(
        lambda x, k: x.ravel()[np.ravel_multi_index((k, k + 1), (2, 3))], np.array([1, 0]), np.array([1, 2]),
        ValueError,
    ),
    "negative digits": Case(
        lambda x, k: x.ravel()[np.ravel_multi_index((k, k + 1), (2, 3))], np.array([1, 0]), np.array([0, -1]),
        ValueError,
    ),
    "a position out of bounds": Case(
        lambda x, k: x[np.unravel_index(k, (2, 3))], np.array([5, 0]), np.array([0, 6]), ValueError
    ),
    "a choice out of bounds": Case(
        lambda x, k: np.choose(k, [x[0], x[1], 2.0 * x[0] ** 2]), np.array([0, 2, 1]), np.array([0, 3, 1]), ValueError
    ),
}  # fmt: skip


@pytest.mark.parametrize("backend", ["llvm", "numpy", "xla"])
@pytest.mark.parametrize("name", CASES)
def test_the_program_raises_what_numpy_raises(name: str, backend: str) -> None:
    case = CASES[name]
    f = case.function

    def gradient(x: Any, other: Any) -> Any:
        return sg.grad(lambda x: np.sum(f(x, other)), backend=backend)(x)

    call = sg.jit(f, strict=True, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        for _ in range(2):
            np.testing.assert_allclose(call(X, case.good), f(X, case.good), rtol=1e-15)
            step = 1e-6 * np.eye(X.size).reshape(-1, *X.shape)
            slope = [(f(X + e, case.good).sum() - f(X - e, case.good).sum()) / 2e-6 for e in step]
            np.testing.assert_allclose(gradient(X, case.good).ravel(), slope, rtol=1e-8, atol=1e-8)
            for run in (f, call, gradient):
                with pytest.raises(case.error) as raised:
                    run(X, case.bad)
                assert not isinstance(raised.value, sg.errors.InternalError)


def test_what_is_known_while_tracing_is_raised_too() -> None:
    for f, error in (
        (lambda x: np.average(x, axis=1, weights=[1.0, -1.0, 0.0]), ZeroDivisionError),
        (lambda x: x * np.nanargmax([np.nan, np.nan]), ValueError),
        (lambda x: x.ravel()[np.ravel_multi_index((x.argmax(), 3), (6, 3))], ValueError),
        (lambda x: np.choose([0, 1, 2], x), ValueError),
    ):
        with pytest.raises(error):
            f(X)
        with pytest.raises(error):
            sg.jit(f)(X)
        with pytest.raises(error):
            sg.jacrev(f)(X)


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
def test_mapped_checks_look_at_all_examples() -> None:
    mapped = sg.vmap(lambda w: np.average(X[0], weights=w))
    weights = np.array([[1.0, 2.0, 3.0], [0.5, -1.0, 1.0]])
    np.testing.assert_allclose(mapped(weights), [np.average(X[0], weights=w) for w in weights], rtol=1e-15)
    with pytest.raises(ZeroDivisionError):
        mapped(np.array([[1.0, 2.0, 3.0], [0.0, -1.0, 1.0]]))
