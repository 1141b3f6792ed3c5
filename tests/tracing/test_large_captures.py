"""Functions that read large containers: what cannot be watched is not looked at in vain again and again."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad import cache


@pytest.fixture
def analysed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """What is found where functions are analysed at length."""
    sg.clear_caches()
    found: list[Any] = []
    analyse = cache.analyse

    def counted(*given: Any) -> Any:
        result = analyse(*given)
        if isinstance(result, cache.Uncacheable) and result.reads >= cache.MUCH:
            found.append(result)
        return result

    monkeypatch.setattr(cache, "analyse", counted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield found


def test_what_reads_too_much_is_analysed_ever_less_often(analysed: list[Any]) -> None:
    neighbours = [[(7 * k) % 5, (3 * k) % 5] for k in range(2000)]

    def energy(x: Any) -> Any:
        return sum(x[j] * x[k] for k in range(4) for j in neighbours[k])

    x, gradient = np.linspace(0.1, 1.0, 5), sg.grad(energy)
    counts = []
    for _ in range(40):
        np.testing.assert_allclose(gradient(x)[4], sg.jvp(energy, (x,), (np.eye(5)[4],))[1])
        counts.append(len(analysed))
    assert counts[0] > 0 and counts[-1] < 8 * counts[0], "at the calls 1, 3, 6, 11, 20 and 37 of each"
    neighbours[1] = [0, 0]  # which each call reads anew
    np.testing.assert_allclose(gradient(x), expected(x))


def expected(x: Any) -> Any:
    """Of the pairs (0, 0) twice, (1, 0) twice, (2, 4), (2, 1), (3, 1), (3, 4)."""
    pairs = [(0, 0), (0, 0), (1, 0), (1, 0), (2, 4), (2, 1), (3, 1), (3, 4)]
    found = np.zeros(5)
    for k, j in pairs:
        found[k] += x[j]
        found[j] += x[k]
    return found


def test_what_becomes_small_is_one_program_again(analysed: list[Any], programs: cache.Table) -> None:
    table: list[Any] = [[k] for k in range(2000)]

    def total(x: Any) -> Any:
        return np.sum(x * x) * len(table[3])

    x, gradient = np.linspace(0.1, 1.0, 5), sg.grad(total)
    for _ in range(20):
        np.testing.assert_allclose(gradient(x), 2 * x)
    del table[5:]
    table[3] = [1, 2]
    for _ in range(cache.LONGEST + 1):
        np.testing.assert_allclose(gradient(x), 4 * x)
    analysed.clear()
    for _ in range(5):
        np.testing.assert_allclose(gradient(x), 4 * x)
    assert analysed == [] and len(programs.entries) > 0


def test_nothing_is_looked_at_behind_the_most() -> None:
    sg.clear_caches()
    table = [[k] for k in range(100_000)]

    def total(x: Any) -> Any:
        return np.sum(x * x) * len(table[3])

    found = cache.find_captures(total, False, True)
    assert isinstance(found, cache.Uncacheable) and "more than 512" in found.reason
    assert found.reads < 2000
