"""``np.piecewise``, whose functions are given the elements that their conditions choose, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import srcgrad as sg

X = np.array([-1.0, 0.1, 0.5, 2.0])
SCALE = 3.0
CASES: dict[str, Callable[[Any], Any]] = {
    "a mean of what is chosen": lambda x: np.piecewise(x, [x > 0], [lambda v: v - v.mean(), lambda v: v * 2]),
    "a sum of what is chosen, of two axes": lambda x: np.piecewise(
        x.reshape(2, 2), [x.reshape(2, 2) < 0.3], [lambda v: v * v.sum(), np.exp]
    ),
    "running sums": lambda x: np.piecewise(x, [x > 0], [np.cumsum, lambda v: v * 2]),
    "the order of what is chosen": lambda x: np.piecewise(x, [x > 0], [lambda v: np.sort(v)[::-1], np.sin]),
    "a median": lambda x: np.piecewise(x, [x > 0], [lambda v: v - np.median(v), lambda v: v * 2]),
    "a number of elements": lambda x: np.piecewise(x, [x > 0], [lambda v: v / len(v), lambda v: v * v.size]),
    "the largest, of nothing too": lambda x: np.piecewise(x, [x > 0, x > 50], [lambda v: v - v.max(), np.max, 1.0]),
    "what raises for nothing": lambda x: np.piecewise(x, [x > 50], [lambda v: v * refused_if_empty(v), np.cos]),
    "one that holds everywhere": lambda x: np.piecewise(x, True, [lambda v: v * v.sum()]),
    "truth values as one condition": lambda x: np.piecewise(x, [True, False, True, True], [lambda v: v * v.sum()]),
    "known conditions": lambda x: np.piecewise(
        x, [[False, True, True, False], [False] * 4], [lambda v: v * v.sum(), np.max, np.exp]
    ),
    "conditions as an array": lambda x: np.piecewise(x, np.array([x > 0, x < -0.5]), [1.0, lambda v: v * v.sum()]),
    "the last that holds": lambda x: np.piecewise(x, [x < 1, x < 0], [lambda v: v * 3, lambda v: v * 5]),
    "rows": lambda x: np.piecewise(x.reshape(2, 2), [x[:2] > 0], [lambda v: v * v.sum(0)]),
    "a number": lambda x: np.piecewise(x[2], [x[2] < 0, x[2] >= 0], [lambda v: -v, lambda v: v * v.sum()]) * x,
    "more arguments": lambda x: np.piecewise(x, [x < 1], [lambda v, k, p=1: v**p * k, lambda v, k, p: v + k], 3.0, p=2),
    "interpolation": lambda x: np.piecewise(x, [x > 0], [lambda v: np.interp(v, [0, 1, 3], [2, 3, 9]), np.sin]),
    "functions by element": lambda x: np.piecewise(
        x, [x > 0], [lambda v: np.polyval([1, 2, 3], v) * np.i0(v) + np.select([v > 1.0], [v], 2.0), np.sin]
    ),
    "steps": lambda x: np.piecewise(x, [x > 0], [lambda v: v * np.digitize(v, [0.3, 1.0]), np.sin]),
    "a distribution": lambda x: np.piecewise(x, [x > 0], [stats.norm.cdf, lambda v: SCALE * v]),
    "a choice of Python's": lambda x: np.piecewise(x, [x > 0], [lambda v: v * 2 if v.sum() > 1 else v, np.sin]),
    "the dtype of the array": lambda x: np.piecewise(x.astype(np.float32), [x > 0], [lambda v: v * SCALE, 0.1]),
}


def refused_if_empty(v: Any) -> Any:
    if v.sum() == 0.0:
        raise ValueError("nothing")
    return v.sum()


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("name", CASES)
def test_functions_are_given_what_is_chosen(name: str, backend: str) -> None:
    """They were given the whole array: means, sums and orders of what is chosen were those of all."""
    f = CASES[name]
    found, expected = sg.jit(f, backend=backend)(X), f(X)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    if expected.dtype == np.float64:
        rows = [(f(X + e) - f(X - e)).ravel() / 2e-6 for e in 1e-6 * np.eye(X.size)]
        for derive in (sg.jacfwd, sg.jacrev):
            found = derive(f, backend=backend)(X).reshape(-1, X.size)
            np.testing.assert_allclose(found, np.transpose(rows), rtol=1e-6, atol=1e-8)


def test_functions_by_element_are_one_program() -> None:
    for name in ("a mean of what is chosen", "interpolation", "functions by element", "steps", "the last that holds"):
        assert sg.explain(sg.jit(CASES[name]))(X)["how it runs"].startswith("One program"), name


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_errors_of_what_is_chosen_are_raised(backend: str) -> None:
    def f(x: Any) -> Any:
        return np.piecewise(x, [x > 50], [lambda v: v * refused_if_empty(v - v), np.cos])

    with pytest.raises(ValueError, match="nothing"):
        sg.jit(f, backend=backend)(X + 50)
    np.testing.assert_allclose(sg.jit(f, backend=backend)(X), np.cos(X), rtol=1e-15)


def test_functions_that_fit_no_conditions_are_refused() -> None:
    with pytest.raises(ValueError, match="1 condition"):
        sg.jit(lambda x: np.piecewise(x, [x > 0], [np.sin, np.cos, np.exp]))(X)


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.interp(0.5, x[x > 0.05], x[x > 0.05] ** 2) * x,
        lambda x: np.interp(x[x > 0], x[x > 0], x[x > 0] ** 2).sum() * x,
        lambda x: np.interp(x=x[x > 0.2], xp=[0, 1, 3], fp=[1, 3, 2]).sum() * x,
        lambda x: np.polyval(x[x > 0], 2.0) * x,
        lambda x: np.searchsorted(x[x > 0.05], 0.3) * x,
    ],
)
def test_what_a_mask_selects_as_another_argument_takes_a_path(f: Any, backend: str) -> None:
    np.testing.assert_allclose(sg.jit(f, backend=backend)(X), f(X), rtol=1e-13)
    assert np.all(np.isfinite(sg.jacrev(f, backend=backend)(X)))
