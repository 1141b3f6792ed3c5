"""Arrays of which a part is written: read where the parts are, or written in place."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.backends.llvm.loops import Group
from srcgrad.backends.llvm.nests import is_straight
from srcgrad.backends.llvm.partition import LONG_PROGRAM, Partition
from srcgrad.backends.llvm.pieces import FEW, LONG_RUN, SHORT
from srcgrad.backends.llvm.target import TARGET
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


def updated(partition: Partition) -> list[Any]:
    """What groups write in part."""
    return [value for group in partition.groups if isinstance(group, Group) for value in group.updates]


@pytest.mark.parametrize("size", [149, 150])
def test_a_row_of_which_half_is_computed_is_one_loop(size: int) -> None:
    x, y = normal(300), normal(size, seed=1)

    def rule(x: Any, y: Any) -> Any:
        return written(x, y * 2.0, (1,), (size + 1,))

    partition = groups(rule, x, y)
    assert names(partition) == ["fused"] and bool(updated(partition)) == (size == 149)
    agree(rule, x, y)


def test_a_plane_of_which_half_is_computed_is_written_by_the_loop_that_computes_it() -> None:
    x, y = normal(40, 50), normal(38, 48, seed=1)

    def rule(x: Any, y: Any) -> Any:
        return written(x, y * 2.0, (1, 1), (39, 49))

    assert names(groups(rule, x, y)) == ["fused"]
    agree(rule, x, y)


INSIDE = ((1, 1), (39, 49))


def added_up(x: Any, axis: int) -> Any:
    """An array that a step makes or reads."""
    return OPS["cumsum"](x, axis=axis, reverse=False)


def neighbours(x: Any) -> Any:
    places = [((1, 0), (39, 48)), ((1, 2), (39, 50)), ((0, 1), (38, 49)), ((2, 1), (40, 49))]
    found = part(x, *places[0])
    for place in places[1:]:
        found = found + part(x, *place)
    return found


def test_a_loop_does_not_write_over_what_it_reads_elsewhere() -> None:
    """Neighbours of a point are read after it is written: a step writes the part, once it is all there."""
    x = normal(40, 50)

    def rule(x: Any) -> Any:
        whole = x * 2.0
        return written(whole, neighbours(whole) * 0.25, *INSIDE)

    assert names(groups(rule, x)) == ["fused", "fused", "slice_set"]
    agree(rule, x)


def test_a_loop_writes_over_what_it_reads_in_place() -> None:
    x, y = normal(40, 50), normal(40, 50, seed=1)

    def rule(x: Any, y: Any) -> Any:
        whole = added_up(x, 0)
        return written(whole, part(whole, *INSIDE) - neighbours(y), *INSIDE)

    partition = groups(rule, x, y)
    assert names(partition) == ["cumsum", "fused"]
    assert partition.groups[0].text().splitlines()[1] == "  out0 is in1 elsewhere"
    agree(rule, x, y)


def test_what_is_read_after_an_update_is_what_was_there_before() -> None:
    """An array that others still read is copied, and so is one that the caller has."""
    x, y = normal(40, 50), normal(38, 48, seed=1)

    def rule(x: Any, y: Any) -> Any:
        whole = added_up(x, 1)
        found = written(whole, y * 2.0, *INSIDE)
        return found, added_up(whole, 0), written(x, y * 3.0, *INSIDE)

    kept = x.copy()
    agree(rule, x, y)
    np.testing.assert_array_equal(x, kept)


def test_a_part_that_others_read_is_an_array_too() -> None:
    x, y = normal(40, 50), normal(38, 48, seed=1)

    def rule(x: Any, y: Any) -> Any:
        made = y * 2.0
        return written(x, made, *INSIDE), made, added_up(made, 0)

    assert names(groups(rule, x, y)) == ["fused", "cumsum"]
    agree(rule, x, y)


def test_parts_one_after_the_other() -> None:
    """Each group waits for the array that it writes a part of; the one written last shows."""
    x, y = normal(40, 50), normal(40, 50, seed=1)

    def rule(x: Any, y: Any) -> Any:
        edges = [((0, 0), (1, 50)), ((39, 0), (40, 50)), ((0, 0), (40, 1)), ((0, 49), (40, 50))]
        found = written(added_up(x, 0), neighbours(y), *INSIDE)
        for k, edge in enumerate(edges):
            found = written(found, part(y, *edge) * float(k + 2), *edge)
        return found, added_up(found, 1)

    assert updated(groups(rule, x, y))
    agree(rule, x, y)


@pytest.mark.parametrize("size", [1, 5, 40])
def test_what_lies_behind_a_part_stays(size: int, how: str) -> None:
    """Vectors end with the part, though the array goes on; a part of one element is written where it stands."""
    x, y = drawn(40, 64), drawn(40, size, seed=1)

    def rule(x: Any, y: Any) -> Any:
        found = added_up(x, 0)
        found = written(found, OPS["sin"](y), (0, 0), (40, size))
        one = written(added_up(found, 0), part(y, (0, 0), (1, 1)) * 2.0, (3, 7), (4, 8))
        return added_up(one, 1)

    agree(rule, x, y)


def test_a_long_body_writes_no_more_than_a_part() -> None:
    """At level 0 vectors that begin in an array of the arena may go beyond its end, but not beyond a part's."""
    x = normal(24)

    def rule(x: Any) -> Any:
        wholes = [x * float(k + 1) for k in range(8)]
        for _ in range(20):
            wholes = [added_up(whole, 0) for whole in wholes]
            for k, whole in enumerate(wholes):
                inner = part(whole, (0,), (13,))
                for _ in range(4):
                    inner = OPS["sin"](inner) * 1.25
                wholes[k] = written(whole, inner, (0,), (13,))
        return tuple(added_up(whole, 0) for whole in wholes)

    partition = groups(rule, x)
    straight = [group for group in partition.groups if isinstance(group, Group) and is_straight(group, TARGET)]
    assert partition.length() >= LONG_PROGRAM and any(group.updates for group in straight)
    agree(rule, x, rtol=1e-9)


def sweeps(a: Any, b: Any) -> Any:
    a, b = a.copy(), b.copy()
    for _ in range(20):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1])
        b[:, 0] = b[:, 1] * 0.5
        a[-1, :] -= 0.1 * (b[-1, :] - a[-1, :])
    return np.sum(a * b)


def test_sweeps_over_two_planes() -> None:
    """Both are carried in one piece of memory each, and what one sweep wrote the next one reads."""
    a, b = normal(30, 40), normal(30, 40, seed=1)
    assert sg.jit(sweeps)(a, b) == pytest.approx(sweeps(a, b), rel=1e-12)
    found, expected = (sg.grad(sweeps, argnums=(0, 1), backend=name)(a, b) for name in ("llvm", "numpy"))
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("more", [0, 1])
def test_short_parts_are_written_in_place(more: int) -> None:
    whole = SHORT * 100
    x, y = normal(whole), normal(100 - more, seed=1)
    found = names(groups(lambda x, y: written(x, y, (0,), (100 - more,)) + 1.0, x, y))
    assert ("slice_set" in found) == bool(more)


def test_short_rows_are_written_in_place() -> None:
    x, y = normal(100, LONG_RUN - 1), normal(100, LONG_RUN - 2, seed=1)
    assert "slice_set" in names(groups(lambda x, y: written(x, y, (0, 0), (100, LONG_RUN - 2)) + 1.0, x, y))


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
        assert bool(updated(groups(rule, x))) == (count > FEW)
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


@pytest.mark.parametrize("reads", [5, 12])
def test_the_adjoint_of_many_reads_adds_numbers_to_what_a_loop_carries(reads: int) -> None:
    """From eight reads of an array in a trip on, each trip added arrays as long as that."""

    def f(v: Any) -> Any:
        total = 0.0
        for i in range(len(v) // reads):
            for k in range(reads):
                total += v[reads * i + k] ** 2 * (k + 1)
        return total

    v = np.random.default_rng(7).normal(size=reads * 40)
    np.testing.assert_allclose(sg.grad(f)(v), 2 * v * (np.arange(v.size) % reads + 1))
    text = str(sg.explain(sg.grad(f))(v)).partition("--- derivative ir")[2].partition("--- optimised ir")[0]
    assert f"f64[{v.size}] = add " not in text and f"f64[{v.size}] = scatter_add" in text
