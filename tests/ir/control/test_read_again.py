"""What a loop reads of an array that it leaves alone is read again by its derivative, not kept in each trip."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.lowering import lower
from srcgrad.testing import check_grads

RNG = np.random.default_rng(3)
POINTS, WEIGHTS = RNG.normal(size=(19, 5)), RNG.normal(size=(5, 18))
PLACES = RNG.integers(0, 19, 40)


def pairs(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        for j in range(i):
            r2 = np.sum((x[i] - x[j]) ** 2) + 0.5
            total = total + 1 / r2**2
    return total


def columns(a: Any, b: Any) -> Any:
    """Columns of arrays by a number of an inner loop, in rows of one that changes."""
    out = np.zeros((a.shape[0], a.shape[0]))
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            out[i] += a[:, k] * np.tanh(b[k, i])
    return np.sum(out**2)


def under_a_condition(x: Any) -> Any:
    total = 0.0
    for p in PLACES:
        if total < 3.0:
            total += np.sum(x[p] * x[p - 1])
            continue
        total -= np.sum(x[p] ** 3)
    return total


def by_values(x: Any) -> Any:
    """Rows by numbers that the trips compute: these are kept."""
    total = 0.0
    for k in range(25):
        p = int(np.abs(17.0 * np.sin(total + k)))
        total = total + 0.1 * x[p] @ x[p]
    return total


def swept(x: Any) -> Any:
    """Rows of an array that the outer loop changes: the inner one reads few of them, and keeps these."""
    x = x.copy()
    total = 0.0
    for k in range(17):
        for i in range(18):
            total = total + np.sum(x[(i + k) % 3] * x[i % 4])
        x = 0.9 * x[::-1]
    return total


def steepened(u: Any) -> Any:
    """Products of an array with differences of its neighbours, which wrap around, are one-sided or have ends."""
    for _ in range(23):
        back = u - np.roll(u, 1)
        ahead = np.concatenate([u[1:], u[:1]]) - u
        u = u - 0.1 * u * back - 0.05 * ahead * back
        u[1:-1] += 0.02 * (u[2:] - u[:-2]) * u[1:-1][::-1]
    return np.sum(u**2)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "pairs": (pairs, (POINTS,)),
    "columns": (columns, (WEIGHTS, WEIGHTS.T.copy())),
    "under a condition": (under_a_condition, (0.3 * POINTS,)),
    "by values": (by_values, (POINTS,)),
    "swept": (swept, (0.3 * POINTS,)),
    "steepened": (steepened, (0.3 * POINTS[:, 0],)),
}


def kept(f: Callable[..., Any], *args: Any) -> list[int]:
    """How many numbers the loops of a gradient keep of all of their trips."""
    found = []
    for operation in lower(sg.grad(f, tuple(range(len(args)))), args, {}).built.function.operations:
        if operation.op.name == "for":
            columns = operation.results[operation.attrs["carries"] :]
            found += [value.type.size for value in columns]
    return found


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("case", CASES)
def test_derivatives(case: str, backend: str) -> None:
    f, args = CASES[case]
    check_grads(sg.jit(f, backend=backend), args, order=1)
    np.testing.assert_allclose(sg.jit(f, backend=backend)(*args), f(*args), rtol=1e-11)


def test_second_derivatives() -> None:
    check_grads(pairs, (POINTS[:6],), order=2)


def test_rows_of_an_argument_are_not_kept() -> None:
    trips = len(POINTS) ** 2
    assert kept(pairs, POINTS) and max(kept(pairs, POINTS)) <= trips
    assert max(kept(columns, WEIGHTS, WEIGHTS.T.copy()), default=0) <= WEIGHTS.size
    assert max(kept(under_a_condition, POINTS), default=0) <= len(PLACES)
    assert max(kept(by_values, POINTS)) <= 25


def test_an_array_that_a_loop_around_changes_is_not_kept_for_the_sake_of_its_rows() -> None:
    assert 17 * POINTS.size not in kept(swept, POINTS)


def test_differences_of_neighbours_are_computed_again_from_the_array_that_has_both() -> None:
    assert kept(steepened, POINTS[:, 0]) == [23 * 19]
