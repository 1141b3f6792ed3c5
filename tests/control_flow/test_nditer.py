"""``np.nditer`` of traced arrays: values, writes and the order of the items are NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.errors import UnsupportedError

X = np.arange(1.0, 7.0).reshape(2, 3) / 3.0


def read(x: Any) -> Any:
    total = 0.0
    for place, item in enumerate(np.nditer(x)):
        total = total + place * np.sin(item)
    return total


def read_transposed(x: Any) -> Any:
    return sum(k * item**2 for k, item in enumerate(np.nditer(x.T)))


def read_backwards_in_c_order(x: Any) -> Any:
    return sum(k * item**2 for k, item in enumerate(np.nditer(x.T[:, ::-1], order="C")))


def read_backwards(x: Any) -> Any:
    return sum(k * item**2 for k, item in enumerate(np.nditer(x[:, ::-1])))


def written(x: Any) -> Any:
    y = np.empty_like(x)
    with np.nditer([x, y], op_flags=[["readonly"], ["writeonly"]]) as it:
        for a, b in it:
            b[...] = 2.0 * a * a
    return np.sum(y**2)


def changed_in_place(x: Any) -> Any:
    y = x.copy()
    for item in np.nditer(y, op_flags=["readwrite"]):
        item *= item
    return np.sum(y * x)


def places(x: Any) -> Any:
    it, total = np.nditer(x, flags=["multi_index"]), 0.0
    while not it.finished:
        i, j = it.multi_index
        total = total + it[0] ** 2 * (i + 10 * j)
        it.iternext()
    return total


def broadcast(x: Any) -> Any:
    return sum(a * b * k for k, (a, b) in enumerate(np.nditer([x, x[0]], flags=["c_index"])))


def allocated(x: Any) -> Any:
    it = np.nditer([x, x[:1], None])
    for a, b, c in it:
        c[...] = a * b
    return np.sum(it.operands[2] ** 2)


PROGRAMS: tuple[Callable[[Any], Any], ...] = (
    read, read_transposed, read_backwards_in_c_order, read_backwards, written, changed_in_place, places, broadcast,
    allocated,
)  # fmt: skip


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_values_and_gradients(f: Callable[[Any], Any]) -> None:
    value, slope = sg.value_and_grad(f)(X)
    np.testing.assert_allclose(value, f(X), rtol=1e-13)
    shifts = 1e-6 * np.eye(6).reshape(6, 2, 3)
    expected = np.array([(f(X + e) - f(X - e)) / 2e-6 for e in shifts]).reshape(2, 3)
    np.testing.assert_allclose(slope, expected, rtol=1e-7, atol=1e-7)
    sg.jit(f, strict=True)(X)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_an_item_that_is_only_read_cannot_be_written() -> None:
    def f(x: Any) -> Any:
        for item in np.nditer(x):
            item[...] = 0.0
        return np.sum(x)

    with pytest.raises(ValueError):
        f(X)
    with pytest.raises(ValueError):
        sg.grad(f)(X)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_chunks_are_refused() -> None:
    def f(x: Any) -> Any:
        return sum(np.sum(chunk) for chunk in np.nditer(x, flags=["external_loop"]))

    with pytest.raises(UnsupportedError, match=r"np\.nditer with external_loop"):
        sg.grad(f)(X)
