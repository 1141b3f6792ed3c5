"""Long bodies compute two vectors side by side: every element, fold, tail and scalar as with one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.backends.llvm.backend import BACKEND
from srcgrad.backends.llvm.shapes import MEASURED, WORTH_WIDTH, shape_of
from srcgrad.backends.llvm.target import CPU_VARIABLE, LEVELS, TARGET, Target
from tests.backends.llvm.support import OPS, build, groups, normal, run, total

ROOT = Path(__file__).resolve().parents[3]
V3 = Target(TARGET.triple, "x86-64-v3", LEVELS["x86-64-v3"])
SIZES = [WORTH_WIDTH + k for k in (0, 3, 9, 14, 23)]
needs_v3 = pytest.mark.skipif(not LEVELS["x86-64-v3"] <= TARGET.features | {"fxsr", "cmov"}, reason="no such processor")


def long_body(x: Any, rate: Any) -> Any:
    """More than a processor sees at once, with a scalar from outside of the loop."""
    return OPS["tanh"](OPS["exp"](x * rate) * 0.25 - x) + x


def folded(x: Any, rate: Any) -> tuple[Any, ...]:
    y = long_body(x, rate)
    extremes = (OPS["reduce_max"](y, axes=(0,)), OPS["reduce_min"](y, axes=(0,)))
    return (y, total(y, 0), *extremes)


def computed(x: Any, rate: Any) -> Any:
    return np.tanh(np.exp(x * rate) * 0.25 - x) + x


def check_sizes(dtype: str) -> None:
    """All elements, and what is folded of them, wherever the pairs of vectors end."""
    rtol = 1e-13 if dtype == "float64" else 2e-6
    for size in SIZES:
        x, rate = normal(size, seed=size).astype(dtype), np.asarray(0.75, dtype)
        compiled = BACKEND.compile(build(folded, x, rate)).run
        y, added, most, least = compiled(x, rate)
        expected = computed(x.astype(np.float64), 0.75)
        np.testing.assert_allclose(y, expected, rtol=rtol, atol=rtol)
        np.testing.assert_allclose(added, expected.sum(), rtol=rtol, atol=size * rtol)
        assert (most, least) == (y.max(), y.min())
        for place in (0, 4, 5, 15, size - 1, size - 9):
            given = x.copy()
            given[place] = np.nan
            y, added, most, least = compiled(given, rate)
            assert np.isnan([added, most, least]).all() and list(np.flatnonzero(np.isnan(y))) == [place]


def check_rows() -> None:
    """What all of a row shares is in the lanes of both vectors."""
    x, rates = normal(5, 1_003, seed=3), normal(5, 1, seed=4)

    def rule(x: Any, rates: Any) -> tuple[Any, ...]:
        y = long_body(x, OPS["broadcast"](rates, shape=x.shape, dims=(0, 1)))
        return y, total(y, 1)

    y, added = run(rule, x, rates)
    np.testing.assert_allclose(y, computed(x, rates), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(added, computed(x, rates).sum(1), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_two_vectors_have_what_one_has(dtype: str) -> None:
    check_sizes(dtype)


def test_two_vectors_of_rows() -> None:
    check_rows()


@needs_v3
def test_two_vectors_with_registers_of_four() -> None:
    code = (
        "from tests.backends.llvm.test_side_by_side import *\n"
        "check_sizes('float64'), check_sizes('float32'), check_rows()"
    )
    environment = {**os.environ, CPU_VARIABLE: "x86-64-v3"}
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr[-2000:]


def test_long_bodies_over_many_points_are_wide() -> None:
    def of(size: int, rule: Any = folded) -> bool:
        (group,) = groups(rule, normal(size), np.asarray(0.5)).groups
        return shape_of(group, V3).wide

    assert of(WORTH_WIDTH) and not of(WORTH_WIDTH - 1)
    assert not of(WORTH_WIDTH, lambda x, rate: (OPS["exp"](x) * rate,))
    assert of(WORTH_WIDTH, lambda x, rate: (OPS["tanh"](x) * rate,))


def test_a_double_outside_of_the_loop_leaves_whole_vectors_of_float32() -> None:
    """A learning rate that is Python's beside float32 arrays: it halved the vectors."""

    def scaled(x: Any, rate: Any) -> Any:
        return np.exp(x) * np.float32(rate)

    x = normal(1_000).astype(np.float32)
    text = str(sg.explain(sg.jit(scaled, backend="llvm"))(x, 0.5))
    assert f"llvm.fma.v{TARGET.vector_bytes // 4}f32" in text


def test_what_float32_computes_in_float64_is_two_vectors_already() -> None:
    """It was four, for which there are not the registers: the logarithm of Γ took 1.2 times as long."""

    def of(dtype: str) -> bool:
        (group,) = groups(lambda x: (OPS["gammaln"](x),), normal(WORTH_WIDTH).astype(dtype)).groups
        return shape_of(group, TARGET).wide

    assert not of("float32") and of("float64") == (TARGET.vector_bytes == 32)


def test_bodies_of_many_functions_leave_registers_of_64_bytes_for_their_constants() -> None:
    """The gradient of a sinh over a cosh took 1.3 to 1.5 times as long."""

    def of(*names: str) -> bool:
        (group,) = groups(lambda x: (sum([OPS[name](x) for name in names]),), normal(WORTH_WIDTH)).groups
        return shape_of(group, TARGET).wide

    wide = TARGET.vector_bytes in MEASURED
    assert of("sinh", "cosh", "exp") == wide and of("sinh", "cosh", "exp", "sin", "tanh") == wide
    assert of("sinh", "cosh", "exp", "tanh") == (wide and TARGET.vector_bytes != 64)
