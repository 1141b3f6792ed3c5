"""Captured arrays that share memory are inputs as others are, unless the function writes into one."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

TABLE = np.arange(12.0).reshape(4, 3) + 1
ROWS, FIRST = TABLE[1:], TABLE[0]
WRITTEN = np.arange(5.0)
READ = WRITTEN[1:]


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    yield
    TABLE[:] = np.arange(12.0).reshape(4, 3) + 1


def reads(x: Any) -> Any:
    return np.sum(TABLE * x) + np.sum(ROWS**2 * x) + FIRST[0] * x**2


def slope_of_reads(x: Any) -> Any:
    return np.sum(TABLE) + np.sum(ROWS**2) + 2 * x * FIRST[0]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_arrays_that_share_memory_are_read_at_each_call(backend: str) -> None:
    """Also by the calls that machine code answers, and whatever shares memory by then."""
    gradient = sg.grad(reads, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        for rows in (ROWS, np.ones((3, 3)), TABLE[:3], TABLE, TABLE[1:], np.ones((4, 3))[1:]):
            globals()["ROWS"] = rows
            for k in range(20):
                TABLE[:] += 1.0
                np.testing.assert_allclose(gradient(1.0 + k), slope_of_reads(1.0 + k), rtol=1e-12)
    globals()["ROWS"] = TABLE[1:]


def writes(x: Any) -> Any:
    WRITTEN[2] = 3.5
    return np.sum(READ * x)


def writes_in_a_loop(x: Any) -> Any:
    total = 0.0
    for k in range(40):
        if x > k:
            WRITTEN[k % 5] = 0.1 * k
        total = total + READ[k % 4] * x
    return total


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", [writes, writes_in_a_loop])
def test_a_write_is_seen_in_what_shares_the_memory(f: Any, backend: str) -> None:
    """Arrays that lie apart at first, and share memory later, are another program."""
    gradient, run = sg.grad(f, backend=backend), sg.jit(f, backend=backend)
    for read in (WRITTEN[1:], np.arange(4.0), WRITTEN[1:]):
        globals()["READ"] = read
        for k in range(12):
            x, found = 1.5 + k, []
            for call in (f, gradient, run, lambda v: f(v + 1e-6), lambda v: f(v - 1e-6)):
                WRITTEN[:] = np.arange(5.0) + k
                found.append(call(x))
            np.testing.assert_allclose(found[2], found[0], rtol=1e-12)
            np.testing.assert_allclose(found[1], (found[3] - found[4]) / 2e-6, rtol=1e-5)
