"""Whole powers of floats: products with their errors, and the logarithm's way near the ends of the range."""

from __future__ import annotations

from typing import Any

import mpmath as mp
import numpy as np
import pytest

import srcgrad as sg
from srcgrad.backends.llvm.backend import BACKEND
from srcgrad.backends.llvm.expansions import written_out
from tests.backends.llvm.support import OPS, build

POWERS = (*range(-16, 0), *range(5, 17), -32, -31, 21, 31, 32)
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.0, -2.0, 0.5]


def points(dtype: Any, y: int) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(abs(y))
    form = np.finfo(dtype)
    reach = 0.98 * np.log(float(form.max)) / abs(y)
    ends = np.exp(rng.uniform(-reach, reach, 60)) * rng.choice([-1, 1], 60)
    return np.concatenate([rng.uniform(-3, 3, 100), ends, SPECIAL, [form.tiny, form.max, -form.max]]).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("y", POWERS)
def test_whole_powers_are_within_an_ulp(dtype: Any, y: int) -> None:
    x = points(dtype, y)
    found = BACKEND.compile(build(lambda x: OPS["integer_pow"](x, y=y), x)).run(x)[0]
    with np.errstate(all="ignore"):
        expected = x**y
    assert found.dtype == expected.dtype
    with mp.workprec(200):
        for given, power, numpys in zip(x, found, expected, strict=True):
            if not np.isfinite(numpys) or not np.isfinite(given) or numpys == 0:
                assert np.isnan(power) == np.isnan(numpys) and (np.isnan(power) or power == numpys), given
                assert np.signbit(power) == np.signbit(numpys) or np.isnan(power), given
            else:
                error = abs(mp.mpf(float(power)) - mp.mpf(float(given)) ** y) / mp.mpf(float(np.spacing(abs(numpys))))
                ends = abs(np.log2(abs(given))) > (900 if dtype is np.float64 else 100) // abs(y)  # where it is pow
                assert error < (1.0 if y < 0 or ends else 0.75), (given, power)


@pytest.mark.parametrize("y", [5, 6, 7, 16, -3, -6])
@pytest.mark.parametrize("value", [-0.0, 0.0, -1.0, np.nan])
def test_whole_powers_of_nothing_but_one_number(y: int, value: float) -> None:
    """No other number of the vector is taken another way."""
    with np.errstate(divide="ignore"):
        found, expected = sg.jit(lambda x: x**y)(np.full(32, value)), np.full(32, value) ** y
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("y", [0, 1, 2, 3, -1, -2, 7, 32])
def test_powers_by_a_float_that_is_whole_are_those_by_the_whole_number(y: int, dtype: Any) -> None:
    x = points(dtype, y or 1)
    by_float = build(lambda x: OPS["pow"](x, x.like(float(y))), x)
    by_whole = build(lambda x: OPS["integer_pow"](x, y=y), x)
    assert "pow" not in [operation.op.name for operation in written_out(by_float).walk()]
    found, expected = BACKEND.compile(by_float).run(x)[0], BACKEND.compile(by_whole).run(x)[0]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found)[~np.isnan(x)], np.signbit(expected)[~np.isnan(x)])


@pytest.mark.parametrize("y", [33, -33, 100])
def test_high_whole_powers_are_part_of_loops(y: int) -> None:
    x = points(np.float64, y)
    text = sg.explain(sg.jit(lambda x: np.sum(x**y)))(x)["llvm source"]
    assert text.count("# kernel_") == 1 and "pow" in text
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(sg.jit(lambda x: x**y)(x), x**y, rtol=1e-14)


def test_whole_powers_are_part_of_loops() -> None:
    def energy(r: Any) -> Any:
        return np.sum(4.0 * (r**-12 - r**-6))

    r = np.linspace(0.8, 3.0, 1000)
    text = sg.explain(sg.value_and_grad(energy))(r)["llvm source"]
    assert text.count("# kernel_") == 1 and "callbacks into Python: 0" in text
    np.testing.assert_allclose(sg.grad(energy)(r), -48.0 * r**-13 + 24.0 * r**-7, rtol=1e-14, atol=1e-15)
