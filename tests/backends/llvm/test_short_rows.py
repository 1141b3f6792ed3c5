"""Inner loops of a few trips, as over the coordinates of points; and products that are loops rather than steps."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.backends.llvm.backend import BACKEND
from srcgrad.backends.llvm.expansions import is_loop_product
from srcgrad.backends.llvm.loops import Group, Load
from srcgrad.backends.llvm.nests import Nest
from srcgrad.backends.llvm.shapes import shape_of
from srcgrad.backends.llvm.target import TARGET
from tests.backends.llvm.support import OPS, agree, build, groups, normal, total

SIZES = [1, 2, 7, 8, 9, 17, 45, 130]


def along(x: Any, shape: tuple[int, ...], *dims: int) -> Any:
    return OPS["broadcast"](x, shape=shape, dims=dims)


def distances(x: Any) -> Any:
    """The sum of exponentials over all pairs of points, and its gradient."""
    n, k = x.shape
    cube = (n, n, k)
    d = along(x, cube, 0, 2) - along(x, cube, 1, 2)
    e = OPS["exp"](-total(d * d, 2))
    g = -e * 2.0
    slope = along(g, cube, 0, 1) * d
    return total(e), total(slope, 1) - total(slope, 0)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("k", [1, 2, 3, 5, 8, 11])
@pytest.mark.parametrize("n", SIZES)
def test_pairs_of_points(n: int, k: int, dtype: str) -> None:
    x = normal(n, k, seed=n + k).astype(dtype)
    e = np.exp(-np.square(x[:, None].astype(float) - x[None].astype(float)).sum(2))
    slope = -2.0 * e[:, :, None] * (x[:, None].astype(float) - x[None].astype(float))
    found = BACKEND.compile(build(distances, x)).run(x)
    rtol = 1e-12 if dtype == "float64" else 2e-4
    np.testing.assert_allclose(found[0], e.sum(), rtol=rtol)
    np.testing.assert_allclose(found[1], slope.sum(1) - slope.sum(0), rtol=rtol, atol=rtol)


def test_pairs_of_so_many_points_that_there_are_several_blocks() -> None:
    x = normal(1500, 2)
    (nest, *_) = groups(distances, x).groups
    assert isinstance(nest, Nest) and nest.block < 1500
    e = np.exp(-np.square(x[:, None] - x[None]).sum(2))
    found = BACKEND.compile(build(distances, x)).run(x)
    np.testing.assert_allclose(found[0], e.sum(), rtol=1e-12)
    np.testing.assert_allclose(found[1], -4.0 * (x * e.sum(1)[:, None] - e @ x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", [(40, 700, 3), (3, 9001, 3), (2, 5003, 5), (900, 3, 3), (2, 2, 2)], ids=str)
def test_sums_over_rows_within_blocks_of_any_length(shape: tuple[int, int, int]) -> None:
    """Blocks of rows are no multiple of the rows that are added up at once; and there are several chunks."""

    def rule(x: Any) -> Any:
        y = OPS["exp"](x - along(OPS["reduce_max"](x, axes=(2,)), shape, 0, 1))
        shares = y / along(total(y, 2), shape, 0, 1)
        return shares, total(x * 2.0, 1), OPS["reduce_max"](x * x, axes=(1,)), total(x + 1.0, 0)

    x = normal(*shape)
    (nest, *_) = groups(rule, x).groups
    assert isinstance(nest, Nest)
    assert any(shape_of(phase, TARGET, frozenset({1})).rows > 1 for phase in nest.phases)
    agree(rule, x, rtol=1e-12)


def test_what_is_dear_is_not_computed_one_by_one_before_short_loops() -> None:
    def rule(x: Any, w: Any) -> Any:
        return total(along(OPS["exp"](w), x.shape, 0, 1) * x, 1)

    for inner, kept in ((3, True), (200, False)):
        made = groups(rule, normal(40, 50, inner), normal(40, 50)).groups
        phases = [phase for group in made for phase in (group.phases if isinstance(group, Nest) else [group])]
        assert any(phase.domain == (40, 50) for phase in phases) == kept


@pytest.mark.skipif(not TARGET.masked, reason="there are no masks for vectors")
def test_rows_shorter_than_vectors_are_read_before_one_is_written() -> None:
    """What is read under a mask waits for a write whose vector reaches over its place."""
    text = BACKEND.compile(build(distances, normal(50, 3))).source
    found = []
    for block in re.split(r"\n(?=\w+:\n)", text):
        places = dict(re.findall(r"(%\w+) = getelementptr inbounds double, ptr (%out\w+|%v\d+),", block))
        done = re.findall(r"@llvm\.masked\.(load|store)\S+\((?:<4 x double> %\w+, )?ptr (%\w+)", block)
        stored = [places.get(place) for what, place in done if what == "store"]
        if len(stored) < 4:
            continue
        array = max(stored, key=stored.count)
        found.append("".join(what[0] for what, place in done if places.get(place) == array))
    assert found and all(re.fullmatch("l{4}s{4}|l{8}s{8}", order) for order in found)


# --- products ----------------------------------------------------------------------------------------
PRODUCTS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any], bool]] = [
    ((), (1000,), {"contract": ((), ()), "batch": ((), ())}, True),
    ((40,), (30,), {"contract": ((), ()), "batch": ((), ())}, True),
    ((5, 4), (3,), {"contract": ((), ()), "batch": ((), ())}, True),
    ((6, 4), (3, 6), {"contract": ((), ()), "batch": ((0,), (1,))}, True),
    ((4, 6, 2), (2, 3, 6), {"contract": ((), ()), "batch": ((1, 2), (2, 0))}, True),
    ((1000,), (1000,), {"contract": ((0,), (0,)), "batch": ((), ())}, True),
    ((3, 4, 5), (5, 3, 4), {"contract": ((0, 2, 1), (1, 0, 2)), "batch": ((), ())}, True),
    ((7, 30), (30, 7), {"contract": ((1,), (0,)), "batch": ((0,), (1,))}, True),
    ((0,), (0,), {"contract": ((0,), (0,)), "batch": ((), ())}, True),
    ((8, 30), (30,), {"contract": ((1,), (0,)), "batch": ((), ())}, False),
    ((8, 30), (30, 8), {"contract": ((1,), (0,)), "batch": ((), ())}, False),
]


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "complex128", "bool"])
@pytest.mark.parametrize(("left", "right", "attrs", "loop"), PRODUCTS, ids=lambda value: str(value)[:40])
def test_products_in_which_nothing_is_read_twice_are_loops(
    left: tuple[int, ...], right: tuple[int, ...], attrs: dict[str, Any], loop: bool, dtype: str
) -> None:
    a, b = normal(*left) * 3, normal(*right, seed=1) * 3
    a, b = (a > 0, b > 0) if dtype == "bool" else (a.astype(dtype), b.astype(dtype))
    function = build(lambda a, b: OPS["dot_general"](a, b, **attrs), a, b)
    (operation,) = function.operations
    assert is_loop_product(operation) == (loop and dtype.startswith(("float", "complex")))
    if dtype != "complex128":  # whose sums are in another order, to the last digit
        agree(lambda a, b: OPS["dot_general"](a, b, **attrs), a, b, rtol=1e-4 if dtype == "float32" else 1e-10)


def test_dots_and_their_gradients_are_passes_over_their_vectors() -> None:
    def cosine(x: Any, y: Any) -> Any:
        return np.dot(x, y) / np.sqrt(np.dot(x, x) * np.dot(y, y))

    x, y = normal(999), normal(999, seed=1)
    differentiated = sg.grad(cosine, (0, 1), backend="llvm")
    text = sg.explain(differentiated)(x, y)["llvm source"]
    assert "dot_general" not in text and text.count(" in 0..999:") <= 3
    a, b, c = x @ y, np.sqrt(x @ x), np.sqrt(y @ y)
    for found, wanted in zip(
        differentiated(x, y), ((y - x * a / b**2) / (b * c), (x - y * a / c**2) / (b * c)), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-16)


def logsumexp_of_columns(x: Any) -> Any:
    turned = OPS["transpose"](x, perm=(1, 0))
    shape = turned.type.static_shape
    most = OPS["reduce_max"](turned, axes=(1,))
    return total(OPS["log"](total(OPS["exp"](turned - along(most, shape, 0)), 1)))


@pytest.mark.parametrize("shape", [(3, 50_000), (400, 400), (50_000, 3)])
def test_large_arrays_are_read_along_their_rows_also_where_columns_are_summed(shape: tuple[int, int]) -> None:
    """Loops over the columns, which read one number of each row, took four times as long."""
    x = normal(*shape)
    for group in groups(logsumexp_of_columns, x).groups:
        phases = group.phases if isinstance(group, Nest) else [group]
        for phase in phases:
            lines = [item.line for item in phase.statements if isinstance(item, Load) and len(item.line.strides) > 1]
            assert all(abs(line.strides[-1]) <= 1 for line in lines)
    agree(logsumexp_of_columns, x)


@pytest.mark.parametrize("shape", [(600, 600), (601, 599)])
def test_what_much_is_computed_of_is_turned_before(shape: tuple[int, int]) -> None:
    """The exponentials of a large transpose took twice as long as with a copy: tiles come late to long bodies."""

    def exponentials(x: Any) -> Any:
        turned = OPS["transpose"](x, perm=(1, 0))
        return OPS["exp"](turned) * turned

    x = normal(*shape)
    turning, computing = groups(exponentials, x).groups
    assert isinstance(turning, Group) and isinstance(computing, Group)
    assert len(turning.statements) == 1 and len(computing.domain) == 1
    agree(exponentials, x)
    small = groups(exponentials, x[:100]).groups
    assert len(small) == 1
