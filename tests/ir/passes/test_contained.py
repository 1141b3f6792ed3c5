"""Results that are part of what another operation computes anyway."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.ir.core import Builder, Function
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.passes.contained import taken_from_others
from srcgrad.ir.types import FLOAT64, ArrayType
from srcgrad.testing import check_grads


def names(function: Function) -> Counter[str]:
    return Counter(operation.op.name for operation in function.walk())


def both(axis: int, other: int) -> Function:
    builder = Builder()
    x = builder.param(ArrayType(FLOAT64, (3, 5)), "x")
    values = builder.emit(REGISTRY["sort"], [x], {"axis": axis})
    order = builder.emit(REGISTRY["argsort"], [x], {"axis": other})
    return builder.function("both", [values, order])


def test_numbers_are_sorted_by_their_order() -> None:
    assert names(taken_from_others(both(1, 1))) == {"argsort": 1, "take_along_axis": 1}


def test_an_order_along_another_axis_is_another_order() -> None:
    assert names(taken_from_others(both(1, 0))) == {"sort": 1, "argsort": 1}


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_sorted_numbers_have_the_bits_that_they_have_alone(backend: Any) -> None:
    values = np.array([0.0, -1.5, np.nan, -0.0, 2.0, np.inf, 0.0, -np.nan, -np.inf, -0.0, 2.0] * 9)
    f = sg.jit(lambda x: (np.sort(x), np.argsort(x, kind="stable")), backend=backend)
    found, order = f(values)
    expected = np.sort(values, kind="stable")
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found[:-18]), np.signbit(values[order][:-18]))


def test_in_a_loop() -> None:
    def smallest(x: Any) -> Any:
        total = 0.0
        for k in range(4):
            total = total + np.sort(np.sin(x * (k + 1)))[:3] @ np.sort(x)[2:5]
        return total

    x = np.random.default_rng(3).normal(size=9)
    check_grads(smallest, (x,))
