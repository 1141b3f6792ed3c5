"""Minima and maxima in loops, which keep aside whether there was a nan; and memory that is asked for ahead."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from srcgrad.backends.llvm import ahead, target
from srcgrad.backends.llvm.ahead import ahead_of_group, ahead_of_nest, ahead_of_writes
from srcgrad.backends.llvm.backend import BACKEND
from srcgrad.backends.llvm.loops import Group
from srcgrad.backends.llvm.nests import Nest
from srcgrad.backends.llvm.shapes import shape_of
from srcgrad.backends.llvm.target import CPU_VARIABLE, LEVELS, TARGET
from tests.backends.llvm.support import OPS, agree, build, groups, normal, run, total

ROOT = Path(__file__).resolve().parents[3]
SHAPES = [(1, 1), (3, 5), (7, 16), (8, 33), (9, 64), (17, 67), (40, 131), (5, 9000)]
WAYS = {
    "rows": lambda x: (OPS["reduce_max"](x, axes=(1,)), OPS["reduce_min"](x, axes=(1,))),
    "columns": lambda x: (OPS["reduce_max"](x, axes=(0,)), OPS["reduce_min"](x, axes=(0,))),
    "all": lambda x: (OPS["reduce_max"](x, axes=(0, 1)),),
    "many": lambda x: (OPS["reduce_max"](x, axes=(1,)), OPS["reduce_min"](x * 2.0, axes=(1,)), total(x, 1)),
    "columns-and-rows": lambda x: (OPS["reduce_min"](x, axes=(0,)), OPS["reduce_min"](x, axes=(1,)), x),
}
needs_v3 = pytest.mark.skipif(not LEVELS["x86-64-v3"] <= TARGET.features | {"fxsr", "cmov"}, reason="no such processor")


def places(shape: tuple[int, int]) -> list[tuple[int, int]]:
    """The corners, and places in the middle: those of several rows and vectors, and of what is left of both."""
    m, n = shape
    found = {(0, 0), (0, n - 1), (m - 1, 0), (m - 1, n - 1), (m // 2, n // 2), (m // 3, (2 * n) // 3), (m - 1, n // 5)}
    return sorted(found)


def check(way: str, dtype: str) -> None:
    """What NumPy has, wherever a nan or a pair of zeros is: of equal ones the last, whose sign is seen."""
    rule = WAYS[way]
    for shape in SHAPES:
        x = normal(*shape, seed=sum(shape)).astype(dtype)
        compiled = BACKEND.compile(build(rule, x)).run
        for given in (x, -np.abs(x), np.full_like(x, np.inf), np.full_like(x, -np.inf)):
            compare(way, compiled(given), given)
        for place in places(shape):
            for value in (np.nan, -np.nan, np.inf, -np.inf):
                given = x.copy()
                given[place] = value
                compare(way, compiled(given), given)
            given = np.full_like(x, np.nan)
            given[place] = 1.0
            compare(way, compiled(given), given)


def compare(way: str, found: tuple[Any, ...], x: np.ndarray[Any, Any]) -> None:
    if way == "rows":
        wanted: tuple[Any, ...] = (x.max(1), x.min(1))
    elif way == "columns":
        wanted = (x.max(0), x.min(0))
    elif way == "all":
        wanted = (x.max(),)
    elif way == "many":
        wanted = (x.max(1), (x * 2).min(1))
    else:
        wanted = (x.min(0), x.min(1))
    for actual, expected in zip(found, wanted, strict=False):
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("way", WAYS)
def test_extremes_are_nan_wherever_one_is(way: str, dtype: str) -> None:
    check(way, dtype)


@needs_v3
@pytest.mark.parametrize("name", ["x86-64", "x86-64-v3"])
def test_extremes_with_other_registers(name: str) -> None:
    code = (
        "from tests.backends.llvm.test_extremes import *\nfor way in WAYS: check(way, 'float64'), check(way, 'float32')"
    )
    environment = {**os.environ, CPU_VARIABLE: name}
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr[-2000:]


@pytest.mark.parametrize("size", [200_003, 262_144])
def test_a_nan_in_any_chunk(size: int) -> None:
    x = normal(size)
    compiled = BACKEND.compile(build(lambda x: OPS["reduce_max"](OPS["exp"](x), axes=(0,)), x)).run
    assert compiled(x)[0] == np.exp(x).max() or abs(compiled(x)[0] / np.exp(x).max() - 1.0) < 1e-15
    for place in (0, 1, 63, 5_000, size // 2, size - 9, size - 1):
        given = x.copy()
        given[place] = np.nan
        assert np.isnan(compiled(given)[0])


def test_of_equal_extremes_the_last_is_taken() -> None:
    """Zeros of different sign: as one comparison for each has it, in whatever order they are looked at."""
    zeros = np.array([0.0, -0.0])
    for first in (0, 1):
        x = np.full((9, 40), -1.0)
        x[2], x[5] = zeros[first], zeros[1 - first]
        (found,) = run(lambda x: OPS["reduce_max"](x, axes=(0,)), x)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(zeros[1 - first]))


# --- memory that is asked for ahead ------------------------------------------------------------------
def asked(rule: Any, *arguments: Any) -> int:
    return BACKEND.compile(build(rule, *arguments)).source.count("call void @llvm.prefetch")


def softmax(x: Any) -> Any:
    most = OPS["broadcast"](OPS["reduce_max"](x, axes=(1,)), shape=x.shape, dims=(0,))
    e = OPS["exp"](x - most)
    return e / OPS["broadcast"](total(e, 1), shape=x.shape, dims=(0,))


ASKS = pytest.mark.skipif(TARGET.arm or TARGET.vector_bytes < 32, reason="measured with AVX alone")


@ASKS
def test_loops_that_wait_ask_for_memory_ahead() -> None:
    """What is small is in cache, and a sum is one instruction for each line: both would lose by asking."""
    large, middle, small = (np.broadcast_to(1.0, (1000, n)) for n in (1000, 50, 10))
    assert asked(lambda x: OPS["reduce_max"](x, axes=(0, 1)), large)
    assert asked(lambda x: OPS["tanh"](x), large)
    assert not asked(lambda x: OPS["tanh"](x), middle)
    assert not asked(lambda x: OPS["tanh"](x), small)
    assert not asked(lambda x: total(x), large)
    assert not asked(lambda x: OPS["reduce_max"](x, axes=(0, 1)), large.astype(np.int64))
    assert not asked(lambda x, y: total(x * y), large, large)
    assert not asked(lambda x: OPS["tanh"](OPS["reverse"](x, axes=(1,))), large)


@ASKS
def test_one_phase_of_a_nest_asks_for_the_next_rows() -> None:
    """The dearest of those that read an array: the exponential of a softmax, while the maximum finds its rows there."""
    (nest,) = groups(softmax, np.broadcast_to(1.0, (1000, 600))).groups
    assert isinstance(nest, Nest)
    lanes = [shape_of(phase, TARGET).lanes for phase in nest.phases]
    found = ahead_of_nest(nest, lanes, TARGET)
    dearest = max(range(len(nest.phases)), key=lambda k: nest.phases[k].cost())
    assert [k for k, places in enumerate(found) if places] == [dearest]
    assert list(found[dearest].values()) == [max(nest.block * 600 * 8, 4096)]


@pytest.mark.parametrize("shape", [(1000, 600), (997, 601), (3, 100_003), (100_003, 3)], ids=str)
def test_what_is_asked_for_changes_no_result(shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    x = normal(*shape)
    rules = [
        softmax,
        lambda x: (OPS["reduce_max"](x, axes=(0,)), OPS["exp"](x)),
        lambda x: OPS["reduce_min"](x, axes=(1,)),
        lambda x: OPS["sin"](OPS["exp"](OPS["tanh"](x))),
    ]
    found = [run(rule, x) for rule in rules]
    monkeypatch.setattr(ahead, "LARGE", 1 << 60)
    for rule, results in zip(rules, found, strict=True):
        for actual, wanted in zip(results, run(rule, x), strict=True):
            np.testing.assert_array_equal(actual, wanted)
        agree(rule, x, rtol=1e-12)


def test_rows_of_a_group_are_asked_for_nearer() -> None:
    (group,) = groups(lambda x: OPS["reduce_max"](x, axes=(0,)), np.broadcast_to(1.0, (1000, 600))).groups
    machine = target.Target("x86_64-unknown-linux-gnu", "x86-64-v4", LEVELS["x86-64-v4"])
    assert isinstance(group, Group)
    shape = shape_of(group, machine)
    assert shape.rows > 1
    assert list(ahead_of_group(group, shape, machine).values()) == [256]
    arm = target.Target("aarch64-unknown-linux-gnu", "generic", frozenset({"neon"}))
    assert not ahead_of_group(group, shape_of(group, arm), arm)


@pytest.mark.parametrize(
    ("shape", "rows"),
    [((70_000, 32), 1), ((9_000, 301), 1), ((5_000, 512), 1), ((9_000, 29), 8), ((4_500, 513), 8), ((2_000, 301), 8)],
)
def test_short_rows_come_from_memory_one_by_one(shape: tuple[int, int], rows: int) -> None:
    """From caches eight at once are sooner, and those as long as caches are too."""
    x = np.broadcast_to(1.0, shape)
    (group,) = groups(lambda x: total(x, 0), x).groups
    assert isinstance(group, Group)
    machine = target.Target("x86_64-unknown-linux-gnu", "x86-64-v4", LEVELS["x86-64-v4"])
    assert shape_of(group, machine).rows == rows


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_columns_of_short_rows_from_memory(dtype: str) -> None:
    x = normal(17 * (1 << 20) // 203 // np.dtype(dtype).itemsize, 203).astype(dtype)
    rules = [lambda x: total(x, 0), lambda x: (OPS["reduce_max"](x, axes=(0,)), total(x * x, 0), OPS["exp"](x))]
    for rule in rules:
        agree(rule, x, rtol=1e-12 if dtype == "float64" else 1e-3)
    x[-1, -1] = np.nan
    (found,) = run(lambda x: OPS["reduce_max"](x, axes=(0,)), x)
    np.testing.assert_array_equal(found, x.max(0))


def test_heavy_loops_ask_for_what_they_write() -> None:
    machine = target.Target("x86_64-unknown-linux-gnu", "x86-64-v4", LEVELS["x86-64-v4"])
    x = np.broadcast_to(1.0, 200_000)
    for rule, bytes_ahead in ((lambda x: OPS["sin"](OPS["exp"](OPS["tanh"](x))), 1024), (OPS["tanh"], 0)):
        (group,) = groups(rule, x).groups
        assert isinstance(group, Group)
        assert ahead_of_writes(group, shape_of(group, machine)) == bytes_ahead
