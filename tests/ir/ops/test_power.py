"""Powers at 0, of negative numbers, and with an exponent that is differentiated."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ir.ops.derivatives import R, check_slopes, slopes

INF = np.inf
# The k-th derivative of x**n at 0 for n = 0, 1, 2, 3: k! where k = n, else 0.
EXPONENTS = np.array([0.0, 1.0, 2.0, 3.0])
AT_ZERO = {1: [0.0, 1.0, 0.0, 0.0], 2: [0.0, 0.0, 2.0, 0.0], 3: [0.0, 0.0, 0.0, 6.0]}


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_powers_at_zero_with_an_array_of_exponents(order, zero):
    operands = [np.full(4, zero), EXPONENTS]
    check_slopes(lambda x, y: R["pow"](x, y), operands, [0] * order, AT_ZERO[order])


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("power", ["literal", "integer"])
def test_powers_at_zero_with_a_known_exponent(order, power):
    for k, exponent in enumerate(EXPONENTS):

        def body(x, exponent=exponent):
            return R["pow"](x, exponent) if power == "literal" else R["integer_pow"](x, y=int(exponent))

        check_slopes(body, [np.array([0.0, -0.0])], [0] * order, AT_ZERO[order][k])


@pytest.mark.parametrize("order", [1, 2, 3])
def test_negative_bases(order):
    x, n = np.array([-1.5, -0.5, -2.0, -3.0]), np.array([2.0, 3.0, -1.0, 1.0])
    falling = np.prod([n - k for k in range(order)], axis=0)
    expected = falling * x ** (n - order)
    check_slopes(lambda x, y: R["pow"](x, y), [x, n], [0] * order, expected)


def test_a_negative_base_has_no_derivative_in_the_exponent():
    check_slopes(lambda x, y: R["pow"](x, y), [np.array([-1.5]), np.array([2.0])], [1], [np.nan])


def test_roots_have_an_infinite_slope_at_zero():
    check_slopes(lambda x: R["pow"](x, 0.5), [np.array([0.0])], [0], [INF])
    check_slopes(lambda x, y: R["pow"](x, y), [np.array([0.0]), np.array([0.5])], [0], [INF])


@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives_in_the_exponent_at_base_zero(order):
    exponents = np.array([2.0, 1.0, 0.5, 0.0])
    expected = [0.0, 0.0, 0.0, (-INF) ** order]
    check_slopes(lambda x, y: R["pow"](x, y), [np.zeros(4), exponents], [1] * order, expected)


def test_mixed_derivatives_at_base_zero():
    """d/dx d/dy x**y = x**(y-1) (y log(x) + 1): 0 for y > 1, -inf for 0 < y <= 1, inf for y = 0."""
    operands = [np.zeros(5), np.array([3.0, 2.0, 1.0, 0.5, 0.0])]
    check_slopes(lambda x, y: R["pow"](x, y), operands, [1, 0], [0.0, 0.0, -INF, -INF, INF])


def test_mixed_derivatives():
    """In both orders, to the third: d²/dx dy = x**(y-1) (y L + 1), d³/dx dy² = x**(y-1) (y L² + 2 L), L = log(x)."""
    x, y = np.array([0.5, 1.5, 2.0, 0.5, 3.0]), np.array([1.5, -0.5, 2.0, 0.0, 1.0])
    log = np.log(x)
    for arguments in ([0, 1], [1, 0]):
        check_slopes(lambda x, y: R["pow"](x, y), [x, y], arguments, x ** (y - 1) * (y * log + 1))
    for arguments in ([0, 1, 1], [1, 0, 1], [1, 1, 0]):
        expected = x ** (y - 1) * (y * log**2 + 2 * log)
        check_slopes(lambda x, y: R["pow"](x, y), [x, y], arguments, expected)


@pytest.mark.parametrize("base", [0.5, 2.0])
def test_exponential_of_a_known_base(base):
    y = np.array([-1.0, 0.0, 3.0])
    check_slopes(lambda y: R["pow"](base, y), [y], [0, 0], base**y * np.log(base) ** 2)


def test_negative_integer_powers():
    x = np.array([-2.0, 0.5])
    check_slopes(lambda x: R["integer_pow"](x, y=-2), [x], [0, 0], 6.0 * x**-4)


def test_the_modes_give_the_same_at_a_complex_base():
    z = np.array([1.0 + 2.0j, -0.5j])
    for _, found in slopes(lambda z: R["integer_pow"](z, y=3), [z], [0, 0]):
        np.testing.assert_allclose(found, 6 * z)
