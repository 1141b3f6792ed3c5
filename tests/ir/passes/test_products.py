"""Transposed products with the operands in the other order, and sums of products as products of sums."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from srcgrad.backends.numpy.evaluate import evaluate
from srcgrad.ir.core import Builder, Function, Value
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.passes.products import combined_products, turned_products
from srcgrad.ir.types import ArrayType
from srcgrad.ir.verify import verify

F64 = np.dtype(np.float64)


def program(perm: tuple[int, ...], read_twice: bool = False) -> Function:
    """A batch of products of (batch, i, j, k) with (k, batch, l), their axes permuted."""
    builder = Builder()
    left = builder.param(ArrayType(F64, (2, 3, 4, 5)))
    right = builder.param(ArrayType(F64, (5, 2, 6)))
    product = builder.emit(REGISTRY["dot_general"], [left, right], {"contract": ((3,), (0,)), "batch": ((0,), (1,))})
    moved = builder.emit(REGISTRY["transpose"], [product], {"perm": perm})
    return builder.function("f", [moved, product] if read_twice else [moved])


def names(function: Function) -> list[str]:
    return [operation.op.name for operation in function.operations]


@pytest.mark.parametrize("perm", [(0, 3, 1, 2), (0, 3, 2, 1), (3, 0, 1, 2), (0, 1, 3, 2), (0, 2, 3, 1)])
@pytest.mark.parametrize("read_twice", [False, True])
def test_products_are_turned_where_that_is_all(perm: tuple[int, ...], read_twice: bool) -> None:
    function = program(perm, read_twice)
    found = turned_products(function)
    verify(found)
    turned = perm == (0, 3, 1, 2) and not read_twice
    assert names(found) == (["dot_general"] if turned else ["dot_general", "transpose"])
    generator = np.random.default_rng(0)
    arguments = [generator.standard_normal(param.type.static_shape) for param in function.params]
    for one, other in zip(evaluate(found, arguments), evaluate(function, arguments), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)


Axes = tuple[int, ...]


def emit_product(
    builder: Builder, left: Value, right: Value, contract: tuple[Axes, Axes], batch: tuple[Axes, Axes] = ((), ())
) -> Value:
    return builder.emit(REGISTRY["dot_general"], [left, right], {"contract": contract, "batch": batch})


def turned(builder: Builder, value: Value, perm: Axes) -> Value:
    return builder.emit(REGISTRY["transpose"], [value], {"perm": perm})


def added(builder: Builder, one: Value, other: Value) -> Value:
    return builder.emit(REGISTRY["add"], [one, other])


def shared_left(b: Builder, dtype: np.dtype = F64) -> list[Value]:
    w, g, h = (b.param(ArrayType(dtype, shape)) for shape in ((9, 4), (4, 4), (4, 4)))
    return [added(b, emit_product(b, w, g, ((1,), (0,))), emit_product(b, w, h, ((1,), (0,))))]


def shared_right(b: Builder) -> list[Value]:
    w, g, h = (b.param(ArrayType(F64, shape)) for shape in ((4, 9), (4, 3), (3, 4)))
    return [added(b, emit_product(b, g, w, ((0,), (0,))), emit_product(b, h, w, ((1,), (0,))))]


def with_its_transpose(b: Builder) -> list[Value]:
    """w @ g + w @ g.T, the first product by way of w.T."""
    w, g = (b.param(ArrayType(F64, shape)) for shape in ((9, 4), (4, 4)))
    return [
        added(b, emit_product(b, turned(b, w, (1, 0)), g, ((0,), (0,))), emit_product(b, w, g, ((1,), (1,)))),
    ]


def batches_and_two_contracted_axes(b: Builder) -> list[Value]:
    """The pairs of contracted axes stand in another order, and the axes of the factors too."""
    a = b.param(ArrayType(F64, (2, 17, 3, 4)))
    g, h = b.param(ArrayType(F64, (3, 4, 2, 5))), b.param(ArrayType(F64, (5, 4, 2, 3)))
    one = emit_product(b, a, g, ((2, 3), (0, 1)), ((0,), (2,)))
    return [added(b, one, emit_product(b, a, h, ((3, 2), (1, 3)), ((0,), (2,))))]


def three(b: Builder) -> list[Value]:
    w, g = (b.param(ArrayType(F64, shape)) for shape in ((9, 4), (4, 4)))
    h = b.param(ArrayType(F64, (4, 4)))
    sum_of_two = added(b, emit_product(b, w, g, ((1,), (0,))), emit_product(b, w, h, ((1,), (1,))))
    return [added(b, emit_product(b, w, g, ((1,), (1,))), sum_of_two)]


def reordered_free_axes(b: Builder) -> list[Value]:
    """Operands whose free axes are exchanged by a transpose, which a product cannot do by itself."""
    a = turned(b, b.param(ArrayType(F64, (3, 5, 4))), (1, 0, 2))
    g, h = (turned(b, b.param(ArrayType(F64, (4, 2, 3))), (0, 2, 1)) for _ in range(2))
    return [added(b, emit_product(b, a, g, ((2,), (0,))), emit_product(b, a, h, ((2,), (0,))))]


def read_elsewhere(b: Builder) -> list[Value]:
    w, g, h = (b.param(ArrayType(F64, shape)) for shape in ((9, 4), (4, 4), (4, 4)))
    product = emit_product(b, w, g, ((1,), (0,)))
    return [added(b, product, emit_product(b, w, h, ((1,), (0,)))), product]


def larger_factors(b: Builder) -> list[Value]:
    w, g, h = (b.param(ArrayType(F64, shape)) for shape in ((2, 90), (90, 3), (90, 3)))
    return [added(b, emit_product(b, w, g, ((1,), (0,))), emit_product(b, w, h, ((1,), (0,))))]


def other_axes(b: Builder) -> list[Value]:
    w, g, h = (b.param(ArrayType(F64, (4, 4))) for _ in range(3))
    return [added(b, emit_product(b, w, g, ((1,), (0,))), emit_product(b, w, h, ((0,), (0,))))]


def other_free_axes(b: Builder) -> list[Value]:
    a = b.param(ArrayType(F64, (3, 3, 2)))
    g, h = b.param(ArrayType(F64, (2,))), b.param(ArrayType(F64, (2,)))
    moved = turned(b, a, (1, 0, 2))
    return [added(b, emit_product(b, a, g, ((2,), (0,))), emit_product(b, moved, h, ((2,), (0,))))]


def other_sides(b: Builder) -> list[Value]:
    w, g, h = (b.param(ArrayType(F64, (4, 4))) for _ in range(3))
    return [added(b, emit_product(b, w, g, ((1,), (0,))), emit_product(b, h, w, ((1,), (0,))))]


def float16(b: Builder) -> list[Value]:
    return shared_left(b, np.dtype(np.float16))


def integers(b: Builder) -> list[Value]:
    return shared_left(b, np.dtype(np.int64))


COMBINED = {
    shared_left: ["add", "dot_general"],
    shared_right: ["transpose", "add", "dot_general"],
    with_its_transpose: ["transpose", "add", "dot_general"],
    batches_and_two_contracted_axes: ["transpose", "add", "dot_general"],
    reordered_free_axes: ["transpose", "transpose", "transpose", "add", "dot_general"],
    three: ["transpose", "add", "transpose", "add", "dot_general"],
    lambda b: shared_left(b, np.dtype(np.float32)): ["add", "dot_general"],
    lambda b: shared_left(b, np.dtype(np.complex64)): ["add", "dot_general"],
}
LEFT = (
    read_elsewhere, larger_factors, other_axes, other_free_axes, other_sides, float16, integers,
)  # fmt: skip


@pytest.mark.parametrize("make", [*COMBINED, *LEFT])
def test_sums_of_products_that_share_an_operand(make: Callable[[Builder], list[Value]]) -> None:
    builder = Builder()
    function = builder.function("f", make(builder))
    found = combined_products(function)
    verify(found)
    assert names(found) == COMBINED.get(make, names(function))
    generator = np.random.default_rng(1)
    arguments = [
        (8 * generator.standard_normal(param.type.static_shape)).astype(param.type.dtype) for param in function.params
    ]
    rtol = 1e-12 if function.results[0].type.dtype == F64 else 1e-4
    for one, other in zip(evaluate(found, arguments), evaluate(function, arguments), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=rtol, atol=64 * rtol)


def test_only_numbers_that_cancel_or_nearly_overflow_see_the_difference() -> None:
    """What is finite stays so, but where two numbers of one sign add up to more than the largest."""
    builder = Builder()
    function = builder.function("f", shared_left(builder))
    found = combined_products(function)
    w, large = np.full((9, 4), 0.1), np.full((4, 4), 0.4 * np.finfo(np.float64).max)
    for one, other in ((large, large), (large, -large), (-large, large * 1.5)):
        np.testing.assert_allclose(evaluate(found, [w, one, other])[0], w @ one + w @ other, rtol=1e-14)
    cancelling = evaluate(found, [w * 3, np.full((4, 4), 1e16), np.full((4, 4), 2.0 - 1e16)])[0]
    np.testing.assert_allclose(cancelling, np.sum(w * 6, 1)[:, None] * np.ones(4), rtol=1e-15)
