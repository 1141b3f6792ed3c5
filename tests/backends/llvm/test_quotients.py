"""Quotients by what is the same for a whole loop: bit for bit those of the divider."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.backends.llvm.backend import BACKEND
from srcgrad.backends.llvm.quotients import DIVIDENDS, DIVISORS, VECTORS
from srcgrad.backends.llvm.target import TARGET
from tests.backends.llvm.support import build, normal, run

FLOATS = {np.float64: np.uint64, np.float32: np.uint32}
corrected = pytest.mark.skipif("avx512vl" not in TARGET.features, reason="the divider is used without AVX-512")


def same_bits(found: Any, wanted: Any) -> bool:
    bits = FLOATS[wanted.dtype.type]
    return bool(((found.view(bits) == wanted.view(bits)) | (np.isnan(found) & np.isnan(wanted))).all())


def hard_numbers(dtype: Any, rng: np.random.Generator, size: int) -> np.ndarray[Any, Any]:
    """Numbers of any bits, beside ones whose fractions are nearly 1 or 2, zeros, and those at the ends of ranges."""
    bits, form = FLOATS[dtype], np.finfo(dtype)
    found = rng.integers(0, np.iinfo(bits).max, size, dtype=bits, endpoint=True).view(dtype)
    part = size // 4
    steps = rng.integers(0, 64, part) * form.eps
    found[:part] = np.ldexp(
        np.where(rng.random(part) < 0.5, 1 + steps, 2 - form.eps - steps), rng.integers(-30, 30, part)
    )
    exponent = DIVIDENDS[np.dtype(dtype)]
    ends = [0.0, -0.0, np.inf, -np.inf, np.nan, form.tiny, form.smallest_subnormal, form.max, -form.max]
    ends += [2.0**k * s for k in (exponent - 1, exponent, exponent + 1, -exponent, -exponent - 1) for s in (1, -1)]
    found[part : part + len(ends)] = np.array(ends).astype(dtype)
    return found


@pytest.mark.parametrize("dtype", FLOATS)
def test_quotients_are_rounded_once(dtype: Any) -> None:
    rng = np.random.default_rng(5)
    form, exponent = np.finfo(dtype), DIVISORS[np.dtype(dtype)]
    program = BACKEND.compile(build(lambda x, y: x / y, np.zeros(4003, dtype), dtype(1)))
    divisors = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 3.0, -3.0, 1 + form.eps, 2 - form.eps, -2 + form.eps]
    divisors += [form.tiny, form.max, form.smallest_subnormal]
    divisors += [s * 2.0**k for k in (exponent - 1, exponent, exponent + 1, -exponent, -exponent - 1) for s in (1, -1)]
    divisors += [s * f for f in rng.uniform(1, 2, 40) for s in (1, -1)]
    for divisor in [*np.array(divisors).astype(dtype), *hard_numbers(dtype, rng, 80)]:
        for x in (hard_numbers(dtype, rng, 4003), np.zeros(4003, dtype), np.full(4003, -0.0, dtype)):
            with np.errstate(all="ignore"):
                wanted = x / divisor
            assert same_bits(program.run(x, divisor)[0], wanted), divisor


@pytest.mark.parametrize("bits", range(4, 10))
def test_one_correction_is_enough(bits: int) -> None:
    """For all fractions of so many bits, by the steps of `quotient` in exact arithmetic."""

    def rounded(x: Any) -> Any:
        fraction, exponent = np.frexp(x)
        return np.ldexp(np.rint(np.ldexp(fraction, bits)), exponent - bits)

    a = np.arange(2.0 ** (bits - 1), 2.0**bits)
    b = a[:, None]
    y = rounded(1.0 / b)
    q = rounded(a * y)
    assert (rounded(q - y * rounded(q * b - a)) == rounded(a / b)).all()


def test_quotients_next_to_the_middle_of_two_numbers() -> None:
    """a 2**s = (b (2m + 1) + k) / 2 for small k: those that are hardest to round."""
    rng = np.random.default_rng(7)
    pairs = []
    for _ in range(300):
        b = int(rng.integers(2**52, 2**53)) | 1
        for k, shift in itertools.product(range(-5, 6, 2), (53, 54)):
            middle = -k * pow(b, -1, 2**shift) % 2**shift
            middle += 2**53 if middle < 2**53 else 0
            a = (b * middle + k) >> shift
            if 2**52 <= a < 2**53 and middle < 2**54:
                pairs.append((float(a), float(b)))
    program = BACKEND.compile(build(lambda x, y: x / y, np.zeros(32), 1.0))
    assert len(pairs) > 500
    for a, b in pairs:
        assert (program.run(np.full(32, a), np.float64(b))[0] == a / b).all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("divisor", [3.0, -0.1, 2.0, -0.25, 2.0**130, 0.0, np.inf])
def test_quotients_by_numbers_that_are_known(dtype: Any, divisor: float) -> None:
    x = hard_numbers(dtype, np.random.default_rng(6), 517)
    with np.errstate(all="ignore"):
        wanted = x / dtype(divisor)
        found = run(lambda x: x / x.like(dtype(divisor)), x)[0]
    assert same_bits(found, wanted)


@pytest.mark.parametrize("columns", [31, 32, 33, 67])
def test_each_row_has_its_divisor(columns: int) -> None:
    x = normal(19, columns)
    x[3], x[5] = 0.0, -0.0
    y = np.resize([2.5, -0.3, 0.0, 1e200, np.nan, 7.0], 19)
    with np.errstate(all="ignore"):
        wanted = x / y[:, None]
    assert same_bits(sg.jit(lambda x, y: x / y[:, None])(x, y), wanted)
    with np.errstate(all="ignore"):
        wanted = x.T / y
    assert same_bits(sg.jit(lambda x, y: x.T / y)(x, y), wanted)


@corrected
def test_what_is_divided_by_products_is_prepared_outside_of_the_loop() -> None:
    def normalised(x: Any) -> Any:
        return x / np.sqrt(np.sum(x * x, axis=1, keepdims=True))

    x = normal(20, 100)
    text = sg.explain(sg.jit(normalised))(x)["llvm source"]
    assert "rare" in text
    np.testing.assert_allclose(sg.jit(normalised)(x), normalised(x), rtol=1e-15)
    # Beside short rows and long bodies the divider does not count.
    assert "rare" not in sg.explain(sg.jit(normalised))(x[:, : 8 * VECTORS - 1].copy())["llvm source"]
    long = sg.explain(sg.jit(lambda x: np.tanh(np.tanh(np.tanh(x))) / 3.0))(x)["llvm source"]
    assert "fdiv <8 x double>" in long and "splat (double 0x4008000000000000)" in long


def test_a_quotient_by_a_power_of_two_is_a_product() -> None:
    text = sg.explain(sg.jit(lambda x: x / 4.0))(np.ones(100))["llvm source"]
    assert "mul %0, 0.25" in text and "fdiv" not in text


def test_sums_of_quotients_by_rows() -> None:
    def sums(x: Any, y: Any) -> Any:
        return np.sum(x / y[:, None], axis=1)

    x, y = normal(3, 517), np.array([3.0, -7.0, 0.1])
    np.testing.assert_allclose(sg.jit(sums)(x, y), sums(x, y), rtol=1e-13)
