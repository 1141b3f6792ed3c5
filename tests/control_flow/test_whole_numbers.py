"""Whole numbers of traced floats: what Python raises of nan and infinity the program raises, and stays native."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg


def in_a_loop(x: Any) -> Any:
    total = 0.0
    for k in range(5):
        total = total * x + int(x * k)
    return total


def binned(x: Any) -> Any:
    bins = np.zeros(8)
    for v in (x, 0.5 * x):
        bins[int(v)] += v * v
    return np.sum(bins)


FUNCTIONS: list[Callable[[Any], Any]] = [
    lambda x: x * int(x),
    lambda x: x * round(x),
    lambda x: x * math.floor(x) + math.ceil(x) * math.trunc(x),
    lambda x: np.exp2(x) * int(np.array([x])[0]),
    in_a_loop,
    binned,
]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("number", range(len(FUNCTIONS)))
def test_no_whole_number_is_made_of_nan_or_infinity(number: int, backend: str) -> None:
    f = FUNCTIONS[number]
    slope, value = sg.grad(f, backend=backend), sg.jit(f, backend=backend)
    for x in (2.4, float("nan"), 3.3, float("inf"), -float("inf"), 2.7):
        if math.isfinite(x):
            np.testing.assert_allclose(value(x), f(x), rtol=1e-14)
            np.testing.assert_allclose(slope(x), (f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rtol=1e-6)
            continue
        with pytest.raises((ValueError, OverflowError)) as expected:
            f(x)
        for call in (value, slope):
            with pytest.raises(type(expected.value)) as found:
                call(x)
            assert str(found.value).split("\n")[0] == str(expected.value)
    assert sg.explain(slope)(2.5)["how it runs"].startswith("One program")


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_what_is_asked_before_or_caught_raises_nothing(backend: str) -> None:
    def asked(x: Any) -> Any:
        return x * int(x) if math.isfinite(x) else 2.0 * x

    def caught(x: Any) -> Any:
        try:
            return x * int(x)
        except (ValueError, OverflowError):
            return 3.0 * x

    for f, other in ((asked, 2.0), (caught, 3.0)):
        slope = sg.grad(f, backend=backend)
        assert [slope(x) for x in (2.5, float("nan"), float("inf"), 3.5)] == [2.0, other, other, 3.0]


def test_mapped_numbers_raise_if_one_of_them_does() -> None:
    f = sg.vmap(sg.grad(lambda x: x * int(x)))
    np.testing.assert_array_equal(f(np.array([2.5, 3.5])), [2.0, 3.0])
    with pytest.raises(ValueError, match="cannot convert float NaN to integer"):
        f(np.array([2.5, np.nan]))


def test_a_loop_with_whole_numbers_runs_in_machine_code_alone() -> None:
    def f(x: Any) -> Any:
        bins = np.zeros(64)
        for k in range(len(x)):
            bins[int(x[k] * 63.0)] += x[k] * x[k]
        return np.sum(bins * bins)

    x = np.random.default_rng(0).random(500)
    source = sg.explain(sg.grad(f, backend="llvm"))(x)["llvm source"]
    assert source.rstrip().endswith("# callbacks into Python: 0")
    places = np.bincount((x * 63.0).astype(int), x * x, 64)[(x * 63.0).astype(int)]
    np.testing.assert_allclose(sg.grad(f, backend="llvm")(x), 4 * places * x, rtol=1e-12)
