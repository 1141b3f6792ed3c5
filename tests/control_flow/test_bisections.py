"""Bisections of tables in Python: the middle of two whole numbers may be handed on, and one program serves all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

TABLE = [0.3 * k**1.5 for k in range(25)]


def halved_sums(x: Any) -> Any:
    low, high = 0, len(TABLE) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if TABLE[middle] > x:
            high = middle
        else:
            low = middle
    return low


def shifted_distances(x: Any) -> Any:
    low, high = 0, len(TABLE)
    while low < high:
        middle = low + ((high - low) >> 1)
        if x >= TABLE[middle]:
            low = middle + 1
        else:
            high = middle
    return low - 1


def halved_distances(x: Any) -> Any:
    low, high = 0, len(TABLE) - 1
    while low < high:
        middle = high - (high - low) // 2
        if TABLE[middle] == x:
            return middle
        if TABLE[middle] < x:
            low = middle
        else:
            high = middle - 1
    return low


@pytest.mark.parametrize("search", [halved_sums, shifted_distances, halved_distances])
def test_a_bisection_is_one_program(search: Callable[[Any], Any]) -> None:
    def between(x: Any) -> Any:
        k = search(x)
        part = (x - TABLE[k]) / (TABLE[k + 1] - TABLE[k])
        return part * part + k

    slope = sg.value_and_grad(between)
    for x in np.linspace(0.05, 0.99 * TABLE[-1], 29):
        value, found = slope(float(x))
        assert value == pytest.approx(between(float(x)), rel=1e-12)
        assert found == pytest.approx((between(x + 1e-6) - between(x - 1e-6)) / 2e-6, rel=1e-5)
    assert sg.explain(slope)(1.0)["how it runs"].startswith("One program")


def thrice_halved(x: Any) -> Any:
    k = 1
    while k * x < 100.0:
        k = 3 * k // 2 + 1
    return k * x


def added(x: Any) -> Any:
    one, other = 1, 1
    while other * x < 100.0:
        one, other = other, one + other
    return other * x


def doubled(x: Any) -> Any:
    k = 1
    while k * x < 100.0:
        k = k - (-k)
    return k * x


@pytest.mark.parametrize("f", [thrice_halved, added, doubled])
def test_what_grows_by_a_factor_is_no_such_program(f: Callable[[Any], Any]) -> None:
    slope = sg.value_and_grad(f)
    assert slope(1.5) == (f(1.5), pytest.approx(f(1.5) / 1.5))
    assert "may exceed 64 bits" in sg.explain(slope)(1.5)["how it runs"]
