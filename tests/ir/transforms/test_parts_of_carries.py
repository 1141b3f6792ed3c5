"""What a trip of a derivative adds to a small part of an array, it adds to that part alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

SIZE = 50


def pivot(k: Any, v: Any) -> Any:
    """All elements take from one, which is read at a known place."""
    k = k.copy()
    for i in range(4, SIZE):
        k[i] += v * k[3]
    return np.sum(k * k)


def rows(k: Any, v: Any) -> Any:
    k = np.outer(k, np.arange(1.0, 4.0))
    for i in range(2, SIZE):
        k[i] = k[i] * v + np.sin(k[1])
    return np.sum(k * k)


def chosen(k: Any, v: Any) -> Any:
    """The part counts in some trips only, by branch and by choice: its mask is not all True."""
    k = k.copy()
    for i in range(2, SIZE):
        if k[i] > 0.0:
            k[i] = v * np.sqrt(np.where(k[1] > 0.0, k[1], 0.0)) + k[0]
        k[i] += np.where(k[i] > 1.0, np.sqrt(k[1] + k[i] ** 2), k[1])
    return np.sum(k * k)


def widening(k: Any, v: Any) -> Any:
    """The part is more and more of the array that the trips hand on."""
    k = k.copy()
    for _ in range(3):
        k[:10] += v * k[10:20] ** 2
        k[20:] -= v * np.sum(k[:3])
    return np.sum(np.sin(k))


PROGRAMS: list[Callable[..., Any]] = [pivot, rows, chosen, widening]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_derivatives(program: Callable[..., Any], backend: str) -> None:
    k, v = np.random.default_rng(5).normal(size=SIZE) * 0.5, np.float64(0.3)
    k[1] = abs(k[1])
    value, (slope, _) = sg.value_and_grad(program, argnums=(0, 1), backend=backend)(k, v)
    np.testing.assert_allclose(value, program(k, v), rtol=1e-12)
    np.testing.assert_allclose(slope, sg.jacfwd(program, backend=backend)(k, v), rtol=1e-10, atol=1e-12)
    sg.testing.check_grads(program, (k, v), order=2)


def test_a_part_that_is_structurally_zero_adds_nothing() -> None:
    """The slope of a root at 0, which no trip chooses, is infinite."""

    def program(k: Any) -> Any:
        k = k.copy()
        for i in range(4, SIZE):
            k[i] += np.where(k[i] > 9.0, np.sqrt(k[3]), 1.0)
        return np.sum(k * k)

    k = np.zeros(SIZE)
    for backend in ("numpy", "llvm"):
        np.testing.assert_array_equal(sg.grad(program, backend=backend)(k), 2.0 * (np.arange(SIZE) > 3))


def test_a_trip_that_adds_to_one_element_has_no_work_on_the_array() -> None:
    k, v = np.linspace(0.0, 1.0, SIZE), np.float64(0.3)
    text = sg.explain(sg.grad(pivot))(k, v)["optimised ir"]
    backward = text[text.rindex("body") :]
    backward = backward[: backward.index("yield")]
    assert backward.count("slice_set") == 1
    assert not [line for line in backward.splitlines() if f"f64[{SIZE}] = add" in line or "select" in line]
