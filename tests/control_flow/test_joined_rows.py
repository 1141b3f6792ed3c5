"""Arrays that a loop has made, joined along any axis: the loop's column, not a slice for each of its trips."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.testing import check_grads

Array = np.ndarray[Any, Any]
X = np.random.default_rng(5).normal(size=(2, 2))
Y = np.random.default_rng(6).normal(size=(6, 4))


def states(x: Array) -> list[Array]:
    found = []
    for _ in range(40):
        x = np.sin(x) + 0.1 * x[::-1]
        found.append(x)
    return found


JOINED: dict[str, Callable[[Array], Array]] = {
    "vstack": lambda x: np.vstack(states(x)),
    "vstack backwards": lambda x: np.vstack(states(x)[::-1]),
    "vstack of every third": lambda x: np.vstack(states(x)[2:35:3]),
    "hstack": lambda x: np.hstack(states(x)),
    "dstack": lambda x: np.dstack(states(x)),
    "column_stack": lambda x: np.column_stack(states(x)),
    "column_stack of vectors": lambda x: np.column_stack([s[0] for s in states(x)]),
    "stack in the middle": lambda x: np.stack(states(x), axis=1),
    "stack at the end": lambda x: np.stack(states(x), axis=-1),
    "concatenate": lambda x: np.concatenate(states(x)),
    "concatenate along the second axis": lambda x: np.concatenate(states(x), axis=1),
    "concatenate flat": lambda x: np.concatenate(states(x), axis=None),
    "transposed": lambda x: np.concatenate([s.T for s in states(x)], axis=1),
    "reversed": lambda x: np.concatenate([s[:, ::-1] for s in states(x)], axis=1),
    "parts": lambda x: np.concatenate([s[:1] for s in states(x)]),
    "the first before": lambda x: np.concatenate([x, *states(x)], axis=1),
    "two runs": lambda x: np.concatenate(states(x)[20:] + states(x)[:20], axis=1),
    "numbers side by side": lambda x: np.hstack([s[0, 1] for s in states(x)]),
    "numbers below each other": lambda x: np.vstack([s[0, 1] for s in states(x)]),
    "numbers as columns": lambda x: np.column_stack([s[0, 1] for s in states(x)]),
    "numbers in depth": lambda x: np.dstack([s[0, 1] for s in states(x)]),
    "r_": lambda x: np.r_[tuple(states(x))],
    "c_": lambda x: np.c_[tuple(states(x))],
}


def weighted(f: Callable[[Array], Array]) -> Callable[[Array], Any]:
    def value(x: Array) -> Any:
        found = f(x)
        return np.sum(found**2 * np.cos(np.arange(found.size)).reshape(found.shape))

    return value


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", JOINED)
def test_arrays_of_a_loop_are_joined_as_they_are_by_numpy(name: str, backend: str) -> None:
    np.testing.assert_allclose(sg.jit(JOINED[name], backend=backend)(X), JOINED[name](X), rtol=1e-14)
    with sg.use_backend(backend):
        check_grads(weighted(JOINED[name]), (X,), order=1)


@pytest.mark.parametrize("name", JOINED)
def test_what_is_joined_is_few_operations(name: str) -> None:
    """A thousand arrays were as many slices: a minute and more to compile."""
    program = str(sg.explain(JOINED[name])(X)["ir"])
    assert len(re.findall("= (slice|concatenate|reshape) ", program)) < 40


PICKED: dict[str, Callable[[Array], Array]] = {
    "a permutation": lambda y: np.concatenate([y[k] for k in (0, 2, 4, 1, 3, 5)]),
    "backwards": lambda y: np.stack([y[k] for k in range(5, -1, -1)], axis=1),
    "columns": lambda y: np.stack([y[:, k] for k in range(4)], axis=0),
    "parts of rows": lambda y: np.stack([y[k, 1:3] for k in range(6)], axis=1),
    "other parts of each": lambda y: np.concatenate([y[k, : k + 1] for k in range(4)]),
    "matrices": lambda y: np.stack([y[k].reshape(2, 2).T for k in range(6)], axis=2),
    "rows of a row": lambda y: np.stack([y.reshape(2, 6, 2)[1, k] for k in range(6)], axis=1),
    "one row of each": lambda y: np.stack([y.reshape(6, 2, 2)[k, 1] for k in range(6)], axis=1),
    "complex numbers": lambda y: np.stack([(y * (1 + 2j))[k].T for k in range(6)], axis=1).imag,
    "another number before": lambda y: np.hstack([1.0] + [y[k, 0] for k in range(6)]),
    "a run and what is written later": lambda y: written(y),
}


def written(y: Array) -> Array:
    y = y.copy()
    rows = [y[k] for k in range(6)]
    y[2] *= 3.0  # the rows are views
    return np.concatenate(rows)


@pytest.mark.parametrize("name", PICKED)
def test_rows_of_an_array_that_are_joined_are_those_of_it(name: str) -> None:
    np.testing.assert_allclose(sg.jit(PICKED[name])(Y), PICKED[name](Y), rtol=1e-15)
    check_grads(weighted(PICKED[name]), (Y,), order=1)
