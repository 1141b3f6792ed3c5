"""Arrays of which a part is written: read where the parts are, or written in place."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.backends.llvm.pieces import FEW, RUN, SHORT
from tests.backends.llvm.random_programs import UPDATES, check
from tests.backends.llvm.random_structured import check as check_structured
from tests.backends.llvm.support import OPS, agree, groups, names, normal, total
from tests.backends.llvm.test_pieces import drawn, padded

SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = {
    "the inside": ((300,), (1,), (298,)),
    "the beginning": ((300,), (0,), (120,)),
    "the end": ((300,), (100,), (300,)),
    "rows": ((30, 20), (1, 0), (29, 20)),
    "columns": ((20, 70), (0, 2), (20, 69)),
    "the inside of a plane": ((30, 50), (2, 1), (29, 49)),
    "short rows": ((90, 3), (1, 1), (89, 2)),
    "the inside of three": ((7, 9, 40), (1, 1, 1), (6, 8, 39)),
    "a few": ((300,), (17,), (20,)),
    "nothing": ((300,), (17,), (17,)),
}


def part(x: Any, starts: tuple[int, ...], limits: tuple[int, ...], strides: tuple[int, ...] = ()) -> Any:
    return OPS["slice"](x, starts=starts, limits=limits, strides=strides or (1,) * x.rank)


def written(x: Any, y: Any, starts: tuple[int, ...], limits: tuple[int, ...], strides: tuple[int, ...] = ()) -> Any:
    return OPS["slice_set"](x, y, starts=starts, limits=limits, strides=strides or (1,) * x.rank)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "u1", "?", "f2"])
@pytest.mark.parametrize("shape", SHAPES)
def test_updates(shape: str, dtype: str, how: str) -> None:
    """Of arrays and of what is computed, by arrays and by what is computed, read in place, beside it and backwards."""
    sizes, starts, limits = SHAPES[shape]
    x, y = drawn(*sizes, dtype=dtype), drawn(*sizes, dtype=dtype, seed=1)
    add = "logical_xor" if dtype == "?" else "add"

    def rule(x: Any, y: Any) -> Any:
        both = OPS[add](x, y)
        read = written(x, part(y, starts, limits), starts, limits)
        made = written(both, part(both, starts, limits), starts, limits)
        over = written(both, OPS[add](part(y, starts, limits), part(x, starts, limits)), starts, limits)
        turned = OPS["reverse"](over, axes=(0,))
        return OPS[add](read, both), OPS[add](made, over), OPS[add](turned, x), OPS[add](over, turned)

    agree(rule, x, y)


def test_no_step_writes_what_loops_read() -> None:
    x, y = normal(300), normal(298, seed=1)

    def rule(x: Any, y: Any) -> Any:
        return written(x, y, (1,), (299,)) * 2.0 + x

    assert names(groups(rule, x, y)) == ["fused"]
    agree(rule, x, y)


def test_what_others_read_is_written_in_place() -> None:
    """One short pass over the part, rather than one over the whole array."""
    x, y = normal(300), normal(200, seed=1)
    assert names(groups(lambda x, y: written(x, y, (1,), (201,)), x, y)) == ["slice_set"]

    def both(x: Any, y: Any) -> Any:
        found = written(x, y, (1,), (201,))
        return found, found * 2.0

    assert names(groups(both, x, y)) == ["slice_set", "fused"]
    agree(both, x, y)


@pytest.mark.parametrize("size", [149, 150])
def test_a_row_of_which_half_is_computed_is_one_loop(size: int) -> None:
    x, y = normal(300), normal(size, seed=1)

    def rule(x: Any, y: Any) -> Any:
        return written(x, y * 2.0, (1,), (size + 1,))

    assert names(groups(rule, x, y)) == (["fused"] if size == 150 else ["fused", "slice_set"])
    agree(rule, x, y)


def test_a_plane_of_which_half_is_computed_is_written_in_place() -> None:
    x, y = normal(40, 50), normal(38, 48, seed=1)

    def rule(x: Any, y: Any) -> Any:
        return written(x, y * 2.0, (1, 1), (39, 49))

    assert names(groups(rule, x, y)) == ["fused", "slice_set"]
    agree(rule, x, y)


@pytest.mark.parametrize("more", [0, 1])
def test_short_parts_are_written_in_place(more: int) -> None:
    whole = SHORT * 100
    x, y = normal(whole), normal(100 - more, seed=1)
    found = names(groups(lambda x, y: written(x, y, (0,), (100 - more,)) + 1.0, x, y))
    assert ("slice_set" in found) == bool(more)


def test_short_rows_are_written_in_place() -> None:
    x, y = normal(100, RUN - 1), normal(100, RUN - 2, seed=1)
    assert "slice_set" in names(groups(lambda x, y: written(x, y, (0, 0), (100, RUN - 2)) + 1.0, x, y))


@pytest.mark.parametrize("count", [FEW, FEW + 1])
def test_few_parts_that_are_written_into_zeros_are_read(count: int, how: str) -> None:
    """One after the other; the last one shows where several are."""
    x = drawn(60)

    def rule(x: Any) -> Any:
        whole = padded(x, (0, 400))
        for k in range(1, count):
            whole = written(whole, x * float(k), (50 * k,), (50 * k + 60,))
        return whole + 1.0, total(whole)

    if how == "as they are":
        assert ("slice_set" in names(groups(rule, x))) == (count > FEW)
    agree(rule, x, rtol=0.0)


@pytest.mark.parametrize("order", [*itertools.permutations(range(3))])
def test_the_last_that_is_written_shows(order: tuple[int, ...], how: str) -> None:
    x = drawn(300)

    def rule(x: Any) -> Any:
        found = x
        for k in order:
            found = written(found, part(x, (0,), (150,)) * float(k + 2), (60 * k,), (60 * k + 150,))
        return found + 1.0, total(found)

    agree(rule, x, rtol=0.0)


def smoothed(u: Any, steps: int) -> Any:
    u = u.copy()
    for _ in range(steps):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return np.sum(u**2)


def bounded(u: Any, steps: int) -> Any:
    u, v = u.copy(), 0.1 * u
    for _ in range(steps):
        v[1:-1] = v[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
        u += 0.1 * v
        u[0] = 0.0
        u[-1] = u[-2]
    return np.sum(u**3)


def plane(u: Any, steps: int) -> Any:
    u = u.reshape(24, -1).copy()
    for _ in range(steps):
        u[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return np.sum(u**2)


def red_and_black(u: Any, steps: int) -> Any:
    """Gauss and Seidel, of every second number: the first ones are read by the others."""
    u = u.copy()
    for _ in range(steps):
        u[2:-1:2] = 0.5 * (u[1:-2:2] + u[3::2])
        u[1:-1:2] = 0.5 * (u[0:-2:2] + u[2::2])
    return np.sum(u**3)


@pytest.mark.parametrize("trips", [1, 3, 50])
@pytest.mark.parametrize("size", [48, 960])
@pytest.mark.parametrize("f", [smoothed, bounded, plane, red_and_black])
def test_gradients_of_stencils_in_place(f: Callable[..., Any], size: int, trips: int, how: str) -> None:
    x = np.cos(np.arange(size) * 1.3) + 1.5
    found, wanted = (sg.grad(lambda u: f(u, trips), backend=backend)(x) for backend in ("llvm", "numpy"))
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-10)
    value, slope = sg.jvp(lambda u: f(u, trips), (x,), (np.sin(x),), backend="llvm")
    np.testing.assert_allclose(value, f(x, trips), rtol=1e-12)
    np.testing.assert_allclose(slope, np.sum(wanted * np.sin(x)), rtol=1e-8)


@pytest.mark.parametrize("seed", range(40))
def test_a_random_function_of_updates(seed: int, how: str) -> None:
    check(seed + 30_000, 14 if seed % 3 else 40, UPDATES)


@pytest.mark.parametrize("seed", range(20))
def test_a_random_function_of_updates_with_control_flow(seed: int, how: str) -> None:
    check_structured(seed + 30_000, kinds=UPDATES)
