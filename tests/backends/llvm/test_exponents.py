"""Exponents of floats and products with powers of two: in loops, and for machines that have no instruction for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.backends.llvm.emitter import Emitter, Number
from srcgrad.backends.llvm.vector_math.exponents import frexp_exponent, ldexp
from tests.backends.llvm.kernels import Kernel, host, plain, with_fma
from tests.backends.llvm.support import OPS, agree

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 3.0, -3.0, 7.3, -7.3, np.inf, -np.inf, np.nan]
SMALL = [5e-324, -5e-324, 1e-40, 1e-310, 2.2250738585072014e-308, 1.7976931348623157e308]
TWICE = [0.5 + 2.0**-43 + 2.0**-53]
"""Times 2**-1022 it is rounded to what 2**-10 makes a tie."""
EXPONENTS = [0, 1, -1, 52, -52, -1074, 1074, -1000, 1000, -1032, 2000, -2000, 5000, -5000]
MACHINES = {"host": host(), "plain": plain()}
if (middling := with_fma()) is not None:
    MACHINES["fma"] = middling


def values_of(dtype: Any) -> np.ndarray[Any, Any]:
    numbers = np.random.default_rng(3).normal(size=20)
    with np.errstate(over="ignore"):
        return np.concatenate([SPECIAL, SMALL, numbers, numbers * 1e-300, TWICE]).astype(dtype)


def same(found: Any, wanted: Any) -> bool:
    equal = (found == wanted) & (np.signbit(found) == np.signbit(wanted))
    return bool(np.all(equal | (np.isnan(found) & np.isnan(wanted))))


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2"])
@pytest.mark.parametrize("whole", ["i2", "i4", "i8"])
def test_powers_of_two_are_rounded_once(dtype: str, whole: str) -> None:
    limits = np.iinfo(whole)
    exponents = np.array([*EXPONENTS, limits.max, limits.min], whole)
    x, n = (axis.ravel() for axis in np.meshgrid(values_of(dtype), exponents, indexing="ij"))
    agree(lambda x, n: OPS["ldexp"](x, n), x, n, rtol=0.0)
    agree(lambda x: OPS["frexp_exponent"](x), values_of(dtype))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_powers_of_two_are_rounded_once_on_every_machine(dtype: Any, machine: str) -> None:
    def by_number(e: Emitter, a: Number, n: Number) -> Number:
        return ldexp(e, a, e.convert("fptosi", n, np.dtype(np.int32)))

    def exponent(e: Emitter, a: Number) -> Number:
        return e.convert("sitofp", frexp_exponent(e, a), a.dtype)

    x, n = (axis.ravel() for axis in np.meshgrid(values_of(dtype), np.array(EXPONENTS, dtype), indexing="ij"))
    x, n = x[: x.size // 8 * 8], n[: x.size // 8 * 8]
    with np.errstate(all="ignore"):
        wanted = np.ldexp(x, n.astype(int))
    for lanes in (1, 2, 8):
        found = Kernel(by_number, dtype, 2, lanes, MACHINES[machine], False)(x, n)
        assert same(found, wanted), lanes
        found = Kernel(exponent, dtype, 1, lanes, MACHINES[machine], False)(x)
        np.testing.assert_array_equal(found, np.frexp(x)[1])


def test_fractions_and_exponents_are_one_pass() -> None:
    """They were four, with steps between them: 1.8 times NumPy's time."""
    x = np.concatenate([SPECIAL, SMALL])
    parts = sg.jit(lambda v: np.frexp(v), backend="llvm")
    assert sg.explain(parts)(x)["llvm source"].count("#   for i0") == 1
    for found, wanted in zip(parts(x), np.frexp(x), strict=True):
        assert found.dtype == wanted.dtype and same(found, wanted)
