"""Ties, nan and kinks of maximum, max, sort and norm; positions; zeros in products."""

from __future__ import annotations

import numpy as np
import pytest

from srcgrad.ir.core import Builder
from srcgrad.ir.errors import AxisError, DTypeError, ShapeError
from srcgrad.ir.ops.generate import iota
from srcgrad.ir.types import FLOAT64, ArrayType
from tests.ir.ops.derivatives import R, check_jacobian, check_slopes, constant, jacobian, program
from tests.ir.ops.harness import run

INF, NAN = np.inf, np.nan


@pytest.mark.parametrize("op", ["maximum", "minimum"])
def test_ties_of_two_operands_share_equally(op):
    tied = [np.array([1.0, 0.0, INF]), np.array([1.0, -0.0, INF])]
    for argument in (0, 1):
        check_slopes(lambda x, y: R[op](x, y), tied, [argument], 0.5)
        check_slopes(lambda x, y: R[op](x, y), tied, [argument, argument], 0.0)
    check_slopes(lambda x: R[op](x, 1.0), [np.array([1.0])], [0], [0.5])
    check_slopes(lambda x: R[op](x, x), [np.array([1.0])], [0], [1.0])


def test_the_larger_and_the_smaller_operand_have_it_all():
    x, y = np.array([2.0, 1.0, INF]), np.array([1.0, 2.0, 0.0])
    check_slopes(lambda x, y: R["maximum"](x, y), [x, y], [0], [1.0, 0.0, 1.0])
    check_slopes(lambda x, y: R["maximum"](x, y), [x, y], [1], [0.0, 1.0, 0.0])
    check_slopes(lambda x, y: R["minimum"](x, y), [x, y], [0], [0.0, 1.0, 0.0])


def test_what_is_not_chosen_does_not_contribute():
    """sqrt has an infinite slope at 0, where 1 is the larger."""
    body = lambda x: R["maximum"](R["sqrt"](x), 1.0)  # noqa: E731
    check_slopes(body, [np.array([0.0, 4.0])], [0], [0.0, 0.25])
    body = lambda x: R["minimum"](R["log"](x), x)  # noqa: E731
    check_slopes(body, [np.array([0.0, 4.0])], [0], [INF, 0.25])
    body = lambda x: R["maximum"](R["log"](x), x)  # noqa: E731
    check_slopes(body, [np.array([0.0, 4.0])], [0], [1.0, 1.0])


@pytest.mark.parametrize(("op", "sign"), [("reduce_max", 1.0), ("reduce_min", -1.0)])
def test_ties_of_a_reduction_share_equally(op, sign):
    x = sign * np.array([[2.0, 2.0, 1.0, 2.0], [0.0, -0.0, -1.0, -1.0]])
    third = 1 / 3
    expected = [[third, third, 0, third, 0, 0, 0, 0], [0, 0, 0, 0, 0.5, 0.5, 0, 0]]
    check_jacobian(lambda x: R[op](x, axes=(1,)), [x], expected)
    check_jacobian(lambda x: R[op](x, axes=(0, 1)), [x], [[third, third, 0, third, 0, 0, 0, 0]])


@pytest.mark.parametrize("op", ["reduce_max", "reduce_min"])
def test_all_nan_share_a_reduction(op):
    check_jacobian(lambda x: R[op](x, axes=(0,)), [np.array([NAN, 1.0, NAN])], [[0.5, 0.0, 0.5]])


def test_a_reduction_of_what_has_an_infinite_slope():
    body = lambda x: R["reduce_max"](R["sqrt"](x), axes=(0,))  # noqa: E731
    check_jacobian(body, [np.array([0.0, 1.0, 4.0])], [[0.0, 0.0, 0.25]])


def test_no_elements_have_no_extreme():
    for op, attrs in (("reduce_max", {"axes": (0,)}), ("argmin", {"axis": 0})):
        with pytest.raises(ShapeError, match="there are no elements"):
            program(lambda x, op=op, attrs=attrs: R[op](x, **attrs), np.zeros((0, 3)))


def test_sorting_is_stable():
    """Equal elements keep their order: so do their slopes."""
    x = np.array([1.0, 0.0, 1.0, -0.0, 0.0])
    expected = np.eye(5)[[1, 3, 4, 0, 2]]
    check_jacobian(lambda x: R["sort"](x, axis=0), [x], expected)
    found = run(program(lambda x: R["argsort"](x, axis=0), x), [x])[0]
    np.testing.assert_array_equal(found, [1, 3, 4, 0, 2])


def test_sorting_puts_nan_last():
    x = np.array([NAN, INF, 1.0, NAN])
    check_jacobian(lambda x: R["sort"](x, axis=0), [x], np.eye(4)[[2, 1, 0, 3]])


def test_duplicate_indices_add_up():
    indices = np.array([2, 0, 2, -1])

    def body(x):
        return R["take_along_axis"](x, constant(x, indices), axis=0)

    x = np.array([1.0, 2.0, 3.0])
    expected = np.eye(3)[[2, 0, 2, 2]]
    check_jacobian(body, [x], expected)
    check_jacobian(lambda u: R["add_along_axis"](u, constant(u, indices), axis=0, size=3), [np.arange(4.0)], expected.T)


def test_indices_are_checked():
    x = np.zeros((3, 2))
    with pytest.raises(ShapeError, match="differ beside axis 0"):
        program(lambda x: R["take_along_axis"](x, constant(x, np.zeros((3, 1), np.int64)), axis=0), x)
    with pytest.raises(DTypeError, match="not int64"):
        program(lambda x: R["take_along_axis"](x, constant(x, np.zeros((3, 2), np.int32)), axis=0), x)
    with pytest.raises(AxisError, match="do not fit"):
        program(lambda x: R["sort"](x, axis=2), x)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_the_norm_at_its_kink(dtype):
    x = np.zeros(3, dtype)
    body = lambda x: R["reduce_norm"](x, axes=(0,))  # noqa: E731
    check_jacobian(body, [x], np.zeros((1, x.view(float).size)))


def test_the_norm_of_one_zero_row():
    x = np.array([[0.0, 0.0], [3.0, 4.0]])
    check_jacobian(lambda x: R["reduce_norm"](x, axes=(1,)), [x], [[0, 0, 0, 0], [0, 0, 0.6, 0.8]])


def test_the_norm_of_complex_numbers():
    check_jacobian(lambda z: R["reduce_norm"](z, axes=(0,)), [np.array([3 - 4j, 12j])], [[3 / 13, 0, -4 / 13, 12 / 13]])


@pytest.mark.parametrize("zeros", [(), (1,), (0, 3), (0, 1, 2), (0, 1, 2, 3, 4)])
@pytest.mark.parametrize("op", ["reduce_prod", "cumprod"])
def test_products_with_zeros(op, zeros):
    """The derivative in an element is the product of the others; no element is divided by."""
    x = np.array([1.5, -2.0, 0.5, 3.0, 0.25])
    x[list(zeros)] = 0.0
    lengths = [5] if op == "reduce_prod" else [1, 2, 3, 4, 5]
    expected = [[np.prod(np.delete(x[:n], k)) if k < n else 0.0 for k in range(5)] for n in lengths]
    attrs = {"axes": (0,)} if op == "reduce_prod" else {"axis": 0}
    check_jacobian(lambda x: R[op](x, **attrs), [x], expected)


@pytest.mark.parametrize("op", ["reduce_prod", "cumprod"])
def test_second_derivatives_of_products_with_zeros(op):
    """Of x y z along x = y = z: d²/dx² x³ = 6 x, and d³/dx³ x³ = 6, at 0 too."""

    def body(x):
        three = R["broadcast"](x, shape=(3, 2), dims=(1,))
        if op == "reduce_prod":
            return R["reduce_prod"](three, axes=(0,))
        product = R["cumprod"](three, axis=0)
        last = R["slice"](product, starts=(2, 0), limits=(3, 2), strides=(1, 1))
        return R["reshape"](last, shape=(2,))

    x = np.array([0.0, 2.0])
    check_slopes(body, [x], [0, 0], 6 * x)
    check_slopes(body, [x], [0, 0, 0], [6.0, 6.0])


def test_products_of_no_elements():
    x = np.zeros((0, 2))
    function = program(lambda x: R["reduce_prod"](x, axes=(0,)), x)
    np.testing.assert_array_equal(run(function, [x])[0], [1.0, 1.0])
    assert jacobian(function, [x], "reverse").shape == (2, 0)


def test_iota():
    for shape, axis in (((4,), 0), ((2, 3), 0), ((2, 3), 1), ((2, 3, 4), 1), ((0,), 0)):
        builder = Builder()
        function = builder.function("f", [iota(builder, ArrayType(FLOAT64, shape), axis).value])
        np.testing.assert_array_equal(run(function, [])[0], np.indices(shape)[axis].astype(float))
