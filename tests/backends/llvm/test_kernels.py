"""What kernels compute: tails, strides, dtypes, reductions and their order."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from srcgrad.backends.llvm.folds import BLOCK, ROUNDS, Folding
from tests.backends.llvm.support import OPS, agree, normal, run, total

SIZES = (1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 65, 127, 130)
DTYPES = (np.float64, np.float32, np.float16, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32, np.uint64)


def numbers(shape: Any, dtype: Any, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(-9, 9, shape).astype(dtype)


@pytest.mark.parametrize("size", SIZES)
def test_every_tail(size: int) -> None:
    x, y = normal(size), normal(size, seed=1)
    agree(lambda x, y: (x * y, OPS["less"](x, y), OPS["reduce_max"](x, axes=(0,))), x, y)
    np.testing.assert_allclose(run(lambda x: total(x), x)[0], x.sum(), rtol=1e-12, atol=1e-14)
    padded = np.full(size + 2, -7.0)
    padded[1:-1] = run(lambda x: x + 1.0, x)[0]
    assert padded[0] == padded[-1] == -7.0


@pytest.mark.parametrize("size", [1, 3, 8, 9, 31, 5003])
def test_long_bodies_are_one_loop_under_masks(size: int) -> None:
    def rule(x: Any, y: Any) -> Any:
        for _ in range(20):
            x = OPS["tanh"](x) * y + 0.5
        return x, total(x), OPS["reduce_min"](x, axes=(0,))

    agree(rule, normal(size), normal(size, seed=1), rtol=1e-11)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.__name__)
def test_arithmetic_of_every_dtype(dtype: Any) -> None:
    x, y = numbers((5, 13), dtype), numbers((5, 13), dtype, 1)
    agree(lambda x, y: (x + y, x - y, x * y, OPS["maximum"](x, y), OPS["square"](x)), x, y)
    agree(lambda x, y: (OPS["less"](x, y), x == y, OPS["abs"](x), OPS["sign"](x), -x), x, y)


@pytest.mark.parametrize("dtype", [t for t in DTYPES if t is not np.float16], ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)], ids=str)
def test_reductions(dtype: Any, axes: tuple[int, ...]) -> None:
    x = numbers((3, 5, 19), dtype)
    agree(lambda x: tuple(OPS[f"reduce_{name}"](x, axes=axes) for name in ("sum", "max", "min")), x)
    agree(lambda x: OPS["reduce_prod"](OPS["sign"](x), axes=axes), x)
    agree(lambda x: (OPS["reduce_or"](x > x.like(7), axes=axes), OPS["reduce_and"](x < x.like(7), axes=axes)), x)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 3)], ids=str)
def test_empty_arrays(shape: tuple[int, ...]) -> None:
    x = np.zeros(shape)
    for axis in range(len(shape)):
        agree(lambda x, axis=axis: (x + 1.0, total(x, axis), OPS["reduce_prod"](x, axes=(axis,))), x)
    found = run(lambda x: total(x), x)[0]
    assert found == 0.0 and not np.signbit(found)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64, np.complex128])
def test_no_sum_is_a_negative_zero(dtype: Any) -> None:
    """As in NumPy, whose sums begin with 0.0: those of -0.0 were -0.0."""
    number = np.asarray(complex(-0.0, -0.0) if np.dtype(dtype).kind == "c" else -0.0).astype(dtype)
    for shape in ((1,), (7,), (40,), (20_000,), (4, 9), (1, 9), (9, 1), (2, 1, 70), ()):
        x = np.full(shape, number)
        for axes in itertools.chain(*[itertools.combinations(range(x.ndim), count) for count in range(x.ndim + 1)]):
            (found,) = run(lambda x, axes=axes: OPS["reduce_sum"](x, axes=axes), x)
            assert not np.signbit(found.real).any(), (shape, axes)
            assert not np.signbit(found.imag).any(), (shape, axes)


def test_nan_and_infinities_in_reductions() -> None:
    for size in (5, 8, 77, 20_000):
        for place in (0, size // 2, size - 1):
            x = normal(size)
            for value in (np.nan, np.inf, -np.inf):
                x[place] = value
                agree(lambda x: (OPS["reduce_max"](x, axes=(0,)), OPS["reduce_min"](x, axes=(0,))), x)
                np.testing.assert_equal(run(lambda x: total(x), x)[0], value)
            x[place] = np.inf
            x[(place + 1) % size] = -np.inf
            assert np.isnan(run(lambda x: total(x), x)[0])


def test_long_sums_lose_nothing_to_their_length() -> None:
    x = np.full(3_000_017, 0.1, np.float32)
    np.testing.assert_allclose(run(lambda x: total(x), x)[0], np.sum(x, dtype=np.float64), rtol=1e-6)
    y = normal(1_000_003) * 10.0 ** np.random.default_rng(2).integers(-8, 8, 1_000_003)
    exact = float(np.sum(y.astype(np.longdouble)))
    np.testing.assert_allclose(run(lambda x: total(x), y)[0], exact, rtol=1e-13)


@pytest.mark.parametrize("size", [1000, 4096, 30_000])
def test_sums_of_float32_whose_terms_take_long_have_as_few_rounding_errors(size: int) -> None:
    x = np.full(size, 0.1, np.float32)
    found, terms = run(lambda x: (total(OPS["tanh"](OPS["tanh"](x))), OPS["tanh"](OPS["tanh"](x))), x)
    np.testing.assert_allclose(found, np.sum(terms, dtype=np.float64), rtol=2e-6)


def test_accumulators_of_narrow_vectors_have_no_more_to_add() -> None:
    for step in (1, 4, 16, 64):
        assert Folding.block(np.dtype(np.float32), step) <= ROUNDS * step
        assert Folding.block(np.dtype(np.float64), step) == BLOCK
    assert Folding.block(np.dtype(np.float32), 64) == BLOCK


def test_casts_of_what_does_not_fit_do_not_depend_on_the_place() -> None:
    for source in (np.float64, np.float32, np.float16):
        for value in (3e9, -1e10, 1e30, np.nan, np.inf):
            with np.errstate(all="ignore"):
                x = np.full(23, value).astype(source)
            for target in (np.int8, np.int16, np.int32, np.int64):
                found = run(lambda x, target=target: OPS["cast"](x, dtype=np.dtype(target)), x)[0]
                assert np.all(found == found[0]), (source, value, target)


def test_a_sum_does_not_depend_on_where_the_array_lies() -> None:
    room = np.zeros(5 * 1031 + 16)
    rule = lambda x: (total(x), total(x, 0), total(x, 1))  # noqa: E731
    x, first = normal(5, 1031), None
    for start in range(9):
        place = room[start : start + x.size].reshape(x.shape)
        place[...] = x
        found = run(rule, place)
        first = first or found
        for one, other in zip(found, first, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("perm", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (0, 2, 1), (2, 0, 1)], ids=str)
def test_any_order_of_axes(perm: tuple[int, ...]) -> None:
    x = normal(4, 9, 17)
    agree(lambda x: OPS["transpose"](x, perm=perm) * 2.0, x)
    agree(lambda x: tuple(total(OPS["transpose"](x, perm=perm), axis) for axis in range(3)), x, rtol=1e-12)
    agree(lambda x: OPS["reverse"](OPS["transpose"](x, perm=perm), axes=(0, 2)) + 1.0, x)


def test_shifts_beyond_the_width_and_wrapping_integers() -> None:
    x, n = np.meshgrid(np.array([1, -1, 100, -128], np.int8), np.array([0, 1, 7, 8, 9, -1], np.int8))
    agree(lambda x, n: (OPS["left_shift"](x, n), OPS["right_shift"](x, n), x * x, x + n), x.copy(), n.copy())
    agree(lambda x: OPS["integer_pow"](x, y=7), np.arange(-9, 9, dtype=np.int32))


def test_casts_between_all_dtypes() -> None:
    x = np.array([0.0, 1.5, -2.5, 100.0, 7.0])
    for source in (*DTYPES, np.bool_):
        given = x.astype(source) if source not in (np.uint8, np.uint32, np.uint64) else np.abs(x).astype(source)
        for target in (*DTYPES, np.bool_):
            if np.dtype(target).kind != "u" or given.dtype.kind != "f":
                agree(lambda x, target=target: OPS["cast"](x, dtype=np.dtype(target)), given)


def test_bools_are_bytes_of_any_value() -> None:
    odd = np.array([0, 1, 2, 255, 0, 7, 3, 128, 0], np.uint8).view(np.bool_)
    found = run(lambda p: (OPS["logical_not"](p), p & p), odd)
    np.testing.assert_array_equal(found[1].view(np.uint8), [0, 1, 1, 1, 0, 1, 1, 1, 0])
    np.testing.assert_array_equal(found[0].view(np.uint8), [1, 0, 0, 0, 1, 0, 0, 0, 1])


def test_float16_is_rounded_after_each_operation() -> None:
    x, y = normal(33, dtype=np.float16), normal(33, seed=1, dtype=np.float16)
    agree(lambda x, y: x * y + x * 0.1 - y, x, y, rtol=0.0)


def test_iota_and_a_predicate_of_rank_0() -> None:
    from srcgrad.ir.ops.generate import iota
    from srcgrad.ir.types import FLOAT64, ArrayType

    def rule(p, x):  # type: ignore[no-untyped-def]
        counted = iota(x.builder, ArrayType(FLOAT64, (5, 21)), 1)
        return OPS["select"](p, x + counted, x * 2.0)

    for flag in (np.True_, np.False_):
        agree(rule, flag, normal(5, 21))
