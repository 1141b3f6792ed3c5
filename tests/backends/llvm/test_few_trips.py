"""Loops of few trips: what is known of them is not computed, rows are short vectors, and LLVM sees no counters."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.backends.llvm import control, trips
from srcgrad.backends.llvm.access import INT64
from srcgrad.backends.llvm.emitter import Emitter, Number, folded
from srcgrad.backends.llvm.shapes import ROWS, rows_at_once, shape_of
from srcgrad.backends.llvm.steps import small_products
from srcgrad.backends.llvm.target import TARGET
from srcgrad.backends.llvm.written import Written
from tests.backends.llvm.support import OPS, agree, build, groups, normal, run, total

SHAPES = [(1,), (3,), (8,), (9,), (33,), (65,), (3, 1), (1, 3), (12, 12), (17, 3), (9, 5), (2, 64), (70, 4), (14, 3, 3)]


def text_of(rule: Any, *arrays: Any) -> str:
    return "\n".join(Written(build(rule, *arrays)).texts)


def number(value: Any, dtype: Any = np.int64) -> Number:
    return Number(str(value), np.dtype(dtype), 1)


@pytest.mark.parametrize(
    ("opcode", "a", "b", "found"),
    [
        ("add", 3, 4, "7"), ("add", (1 << 63) - 1, 1, str(-(1 << 63))), ("sub", 3, 4, "-1"), ("mul", -3, 4, "-12"),
        ("and", -1, 7, "7"), ("urem", 12, 8, "4"), ("urem", -1, 2, "1"), ("urem", 1, 0, None), ("shl", 1, 2, None),
        ("add", "%a", 0, "%a"), ("add", 0, "%a", "%a"), ("sub", "%a", 0, "%a"), ("sub", 0, "%a", None),
        ("mul", "%a", 1, "%a"), ("mul", 1, "%a", "%a"), ("mul", "%a", 0, "0"), ("add", "%a", 1, None),
        ("and", "%a", 0, None), ("urem", "%a", 1, None), ("add", "%a", "%b", None),
    ],
)  # fmt: skip
def test_places_that_are_known_are_not_computed(opcode: str, a: Any, b: Any, found: str | None) -> None:
    made = folded(opcode, number(a), number(b))
    assert (made and made.text) == found


def test_numbers_of_few_bits_wrap_where_they_are_known() -> None:
    for dtype in (np.int8, np.uint8):
        assert folded("add", number(100, dtype), number(100, dtype)) == number(-56, dtype)


def test_what_is_known_decides_without_a_branch() -> None:
    e = Emitter(1)
    assert e.compare("ult", number(3), number(12)).text == "true"
    assert e.compare("ult", number(-1), number(12)).text == "false"
    assert e.lesser(number(12), number(40)) == number(12) and e.lesser(number(-1), number(40)) == number(40)
    assert not e.lines
    assert e.lesser(Number("%a", INT64, 1), number(40)).text.startswith("%") and len(e.lines) == 1


def normed(x: Any) -> Any:
    e = OPS["exp"](x - OPS["broadcast"](OPS["reduce_max"](x, axes=(1,)), shape=x.shape, dims=(0,)))
    return e, total(e, 0), total(e, 1)


def test_a_nest_of_one_block_has_its_places_as_constants() -> None:
    text = text_of(normed, normal(12, 12))
    assert not re.search(r"(add|sub|mul|urem) (nuw nsw )?i64 -?\d+, -?\d+\n", text)
    assert not re.search(r"icmp ult i64 \d+, \d+", text) and "umin" not in text
    agree(normed, normal(12, 12))


# --- bools ----------------------------------------------------------------------------------------
def decided(x: Any) -> Any:
    last = (x.rank - 1,)
    names = ("reduce_or", "reduce_and", "reduce_max", "reduce_min")
    return tuple(OPS[name](x, axes=axes) for name in names for axes in (last, (0,), tuple(range(x.rank))))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", ["none", "some", "one", "all"])
def test_bools_are_decided_as_numpy_decides_them(shape: tuple[int, ...], kind: str) -> None:
    x = np.full(shape, kind == "all")
    if kind == "some":
        x = normal(*shape) > 0.0
    elif kind == "one":
        x[(-1,) * len(shape)] = True
    last, every = (len(shape) - 1,), tuple(range(len(shape)))
    wanted = [f(x, axis=axes) for f in (np.any, np.all, np.any, np.all) for axes in (last, (0,), every)]
    for found, expected in zip(run(decided, x), wanted, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_the_lanes_of_bools_are_looked_at_together() -> None:
    text = text_of(lambda x: OPS["reduce_or"](x, axes=(1,)), normal(5, 64) > 0.0)
    assert not re.search(r"shufflevector <\d+ x i1>", text) and re.search(r"bitcast <\d+ x i1> \S+ to i\d+", text)


# --- short rows -----------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "float64"])
@pytest.mark.parametrize("size", [4, 5, 8, 9, 200])
def test_rows_are_no_longer_vectors_than_they_need(size: int, dtype: str) -> None:
    fold = OPS["reduce_or" if dtype == "bool" else "reduce_max"]
    (group,) = groups(lambda x: fold(x, axes=(1,)), np.ones((40, size), dtype)).groups
    full = TARGET.vector_bytes // np.dtype(dtype).itemsize
    assert tuple(group.domain) == (40, size)
    assert shape_of(group, TARGET).lanes == min(full, 1 << (size - 1).bit_length())
    part = frozenset({len(group.domain) - 1})
    assert shape_of(group, TARGET, part).lanes == full  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_short_rows_give_the_digits_of_longer_vectors(shape: tuple[int, ...], dtype: str) -> None:
    x = normal(*shape, dtype=dtype)

    def rule(x: Any) -> Any:
        y = OPS["tanh"](x) * x
        return y, OPS["reduce_max"](y, axes=(x.rank - 1,)), OPS["reduce_min"](y, axes=(0,))

    agree(rule, x, rtol=1e-14 if dtype == "float64" else 1e-6)
    y = run(rule, x)[0]
    alone = run(lambda x: OPS["tanh"](x) * x, x.reshape(-1))[0]
    np.testing.assert_array_equal(y.reshape(-1), alone)


@pytest.mark.parametrize("count", range(1, 70))
def test_no_few_rows_are_left(count: int) -> None:
    rows = rows_at_once(count)
    assert 1 <= rows <= min(ROWS, count)
    parts = [k for k in range(4, ROWS + 1) if not count % k]
    assert rows == (min(ROWS, count) if count > 4 * ROWS or not parts else parts[-1])


@pytest.mark.parametrize("rows", [1, 3, 6, 9, 10, 12, 13, 20, 31, 32, 33, 64])
def test_sums_of_columns_of_few_rows(rows: int) -> None:
    x = normal(rows, 5)
    agree(lambda x: (total(x, 0), OPS["reduce_max"](x, axes=(0,)), OPS["reduce_min"](x, axes=(0,))), x, rtol=1e-14)


# --- what folds begin with --------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "uint64", "float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(3, 42), (100, 3), (2, 700)], ids=str)
def test_folds_in_memory_begin_with_their_number_everywhere(shape: tuple[int, ...], dtype: str) -> None:
    limits = {"i": -128, "u": 0, "b": 0, "f": -2}
    x = np.full(shape, limits[np.dtype(dtype).kind]).astype(dtype)
    names = ["reduce_max", "reduce_min", *(("reduce_sum", "reduce_prod") if dtype in ("int32", "float64") else ())]
    agree(lambda x: tuple(OPS[name](x, axes=(0,)) for name in names), x, rtol=0.0)
    agree(lambda x: tuple(OPS[name](x, axes=(0,)) for name in names), np.ones(shape, dtype), rtol=0.0)


def test_numbers_of_equal_bytes_are_filled_in_at_once() -> None:
    x = normal(3, 42)
    assert "memset" in text_of(lambda x: total(x, 0), x)
    assert "memset" not in text_of(lambda x: OPS["reduce_max"](x, axes=(0,)), x)


def test_columns_of_short_rows_are_read_under_constant_masks() -> None:
    def rule(x: Any) -> Any:
        return OPS["mul"](OPS["transpose"](x, perm=(0, 2, 1)), x)

    assert not re.search(r"shufflevector <\d+ x i1> <", text_of(rule, normal(14, 3, 3)))
    agree(rule, normal(14, 3, 3))


# --- counters ---------------------------------------------------------------------------------------
COUNTER = re.compile(r'= call i64 asm "", "=r,0"\(i64 %')


@pytest.mark.parametrize(("size", "hidden"), [(2, True), (64, True), (65, False), (200, False)])
def test_llvm_does_not_see_that_short_loops_count(size: int, hidden: bool) -> None:
    x = normal(size * TARGET.vector_bytes // 8 * 4)
    assert trips.SHORT == 64
    assert bool(COUNTER.search(text_of(lambda x: x * 2.0 + 1.0, x))) is hidden
    agree(lambda x: x * 2.0 + 1.0, x)


def test_llvm_does_not_see_where_many_columns_of_a_loop_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    def loss(x: Any) -> Any:
        y = x
        for _ in range(70):
            a, b = y @ y, np.tanh(y)
            y = np.sin(a) * np.cos(b) + np.exp(-a * a) * np.sqrt(1.0 + b * b) / (2.0 + a @ b)
        return np.sum(y)

    x = 0.1 * normal(3, 3)
    texts, slopes = [], []
    for most in (control.MANY, 1 << 20):
        monkeypatch.setattr(control, "MANY", most)
        slopes.append(sg.grad(loss, backend="llvm")(x))
        texts.append(sg.explain(sg.grad(loss, backend="llvm"))(x)["llvm source"])
        sg.clear_caches()
    assert len(COUNTER.findall(texts[0])) > len(COUNTER.findall(texts[1]))
    np.testing.assert_array_equal(*slopes)


# --- small products ---------------------------------------------------------------------------------
@pytest.mark.parametrize("rows", [1, 8, 12, 13, 42, 51, 68, 100])
def test_tiles_of_small_products_are_of_few_rows(rows: int) -> None:
    a, b = normal(rows, 4), normal(4, 4, seed=1)
    jitted = sg.jit(lambda a, b: a @ b, backend="llvm")
    np.testing.assert_allclose(jitted(a, b), a @ b, rtol=1e-14, atol=1e-15)
    source = sg.explain(jitted)(a, b)["llvm source"]
    assert len(re.findall(r"= call <\d+ x double> @llvm.fma", source)) <= 4 * small_products.FEW_ROWS
