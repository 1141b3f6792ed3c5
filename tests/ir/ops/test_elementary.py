"""Elementary and special functions where their derivatives are hard: in the tails, near poles, at removable points."""

from __future__ import annotations

import numpy as np
import pytest

from srcgrad.ir.core import Builder
from srcgrad.ir.errors import DTypeError
from srcgrad.ir.types import ArrayType
from tests.ir.ops.derivatives import R, check_jacobian, check_slopes, constant, program, slopes
from tests.ir.ops.harness import run

INF, NAN = np.inf, np.nan


def wide(value):
    return np.longdouble(value)


# (op, points, derivative computed in long double by a formula that is accurate there)
ACCURATE = [
    ("expm1", [-40.0, -1e-20, 1.0], np.exp),
    ("expit", [-800.0, -40.0, 0.0, 40.0, 700.0], lambda x: 1 / (2 + np.exp(x) + np.exp(-x))),
    ("log1p", [-1 + 1e-12, 1e-20, 1e20], lambda x: 1 / (1 + x)),
    ("tan", [1.57, 1e-9], lambda x: 1 / np.cos(x) ** 2),
    ("arcsin", [1 - 1e-12, -1 + 1e-12], lambda x: 1 / np.sqrt((1 - x) * (1 + x))),
    ("arccos", [1 - 1e-12, -1 + 1e-12], lambda x: -1 / np.sqrt((1 - x) * (1 + x))),
    ("arctanh", [1 - 1e-12, -1 + 1e-12], lambda x: 1 / ((1 - x) * (1 + x))),
    ("arccosh", [1 + 1e-12, 2.0, 1e200], lambda x: 1 / np.sqrt((x - 1) * (x + 1))),
    ("arcsinh", [1e-9, 1e200, -1e200], lambda x: 1 / np.sqrt(1 + x * x)),
    ("cbrt", [1e-300, -1e-300, 8.0], lambda x: 1 / (3 * np.cbrt(x) ** 2)),
    ("log2", [5e-308, 3.0], lambda x: 1 / (x * np.log(wide(2)))),
    ("log10", [5e-308, 3.0], lambda x: 1 / (x * np.log(wide(10)))),
    ("erfc", [-5.0, 5.0, 20.0], lambda x: -2 / np.sqrt(wide(np.pi)) * np.exp(-x * x)),
]


@pytest.mark.parametrize(("op", "points", "derivative"), ACCURATE, ids=[case[0] for case in ACCURATE])
def test_derivatives_are_accurate(op, points, derivative):
    """To a relative error: so small derivatives count as much as large ones."""
    x = np.array(points)
    with np.errstate(over="ignore"):
        expected = derivative(wide(x)).astype(float)
    for modes, found in slopes(lambda x: R[op](x), [x], [0]):
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=0, err_msg=modes)


@pytest.mark.parametrize("op", ["sqrt", "cbrt"])
def test_roots_have_an_infinite_slope_at_zero(op):
    check_slopes(lambda x: R[op](x), [np.array([0.0])], [0], [INF])


def test_sinc_at_zero_to_order_five():
    """sinc(x) = 1 - (pi x)²/3! + (pi x)⁴/5! - …"""
    expected = [0.0, -(np.pi**2) / 3, 0.0, np.pi**4 / 5, 0.0]
    for order, value in enumerate(expected, start=1):
        check_slopes(lambda x: R["sinc"](x), [np.array([0.0, -0.0])], [0] * order, value)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6, 10])
def test_sinc_derivatives_against_the_integral(n):
    """sin(u)/u is the integral of cos(ut) over t in [0, 1], so its n-th derivative that of tⁿ cos(ut + n pi/2)."""
    nodes, weights = np.polynomial.legendre.leggauss(60)
    t, weights = (nodes + 1) / 2, weights / 2
    x = np.concatenate([np.linspace(-6, 6, 241), [1e-300, 1e-5, 0.3183, 0.39789, 0.5]])
    u = np.pi * x[:, None]
    expected = np.pi**n * np.sum(weights * t**n * np.cos(u * t + n * np.pi / 2), axis=1)
    found = run(program(lambda x: R["sinc_derivative"](x, n=n), x), [x])[0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.pi**n)


def test_sinc_derivative_keeps_float32():
    x = np.array([0.0, 0.1, 2.0], np.float32)
    found = run(program(lambda x: R["sinc_derivative"](x, n=2), x), [x])[0]
    exact = run(program(lambda x: R["sinc_derivative"](x, n=2), x.astype(float)), [x.astype(float)])[0]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, exact, rtol=1e-6)


def test_logaddexp_of_infinities():
    """Equal infinities share equally; else the larger operand has it all. Nothing is nan, at second order too."""
    x = np.array([-INF, INF, -INF, INF, 0.0, 1e308])
    y = np.array([-INF, INF, 0.0, -INF, INF, -1e308])
    body = lambda x, y: R["logaddexp"](x, y)  # noqa: E731
    expected = [-INF, INF, 0.0, INF, INF, 1e308]
    np.testing.assert_array_equal(run(program(body, x, y), [x, y])[0], expected)
    check_slopes(body, [x, y], [0], [0.5, 0.5, 0.0, 1.0, 0.0, 1.0])
    check_slopes(body, [x, y], [1], [0.5, 0.5, 1.0, 0.0, 1.0, 0.0])
    for arguments in ([0, 0], [0, 1], [1, 0], [1, 1]):
        check_slopes(body, [x, y], arguments, np.zeros(6))


def test_logaddexp_of_equal_finite_operands_keeps_its_curvature():
    x = np.array([0.0, -3.0])
    check_slopes(lambda x, y: R["logaddexp"](x, y), [x, x], [0, 0], [0.25, 0.25])
    check_slopes(lambda x, y: R["logaddexp"](x, y), [x, x], [0, 1], [-0.25, -0.25])


def test_xlogy_at_zero():
    x, y = np.array([0.0, 0.0, 2.0]), np.array([0.0, 2.0, 0.0])
    body = lambda x, y: R["xlogy"](x, y)  # noqa: E731
    np.testing.assert_array_equal(run(program(body, x, y), [x, y])[0], [0.0, 0.0, -INF])
    check_slopes(body, [x, y], [0], [-INF, np.log(2.0), -INF])
    check_slopes(body, [x, y], [1], [0.0, 0.0, INF])
    check_slopes(body, [x[1:2], y[1:2]], [0, 1], [0.5])
    check_slopes(body, [x[1:2], y[1:2]], [1, 0], [0.5])


def test_entropy_at_zero_has_a_one_sided_infinite_slope():
    check_slopes(lambda p: R["xlogy"](p, p), [np.array([0.0, 1.0])], [0], [-INF, 1.0])


def test_gamma_functions_to_order_four():
    """gammaln(1) has the derivatives -gamma, pi²/6, -2 zeta(3), pi⁴/15."""
    expected = [-np.euler_gamma, np.pi**2 / 6, -2 * 1.2020569031595942, np.pi**4 / 15]
    for order, value in enumerate(expected, start=1):
        check_slopes(lambda x: R["gammaln"](x), [np.array([1.0])], [0] * order, [value])


@pytest.mark.parametrize("op", ["erf", "gammaln", "expit", "digamma"])
def test_half_precision_stays_half(op):
    x = np.array([0.5, 1.5], np.float16)
    assert run(program(lambda x: R[op](x), x), [x])[0].dtype == np.float16
    assert run(program(lambda x: R["polygamma"](x, n=2), x), [x])[0].dtype == np.float16


def test_what_scipy_lacks_is_an_error():
    builder = Builder()
    wide_type = ArrayType(np.dtype(np.longdouble), (2,))
    if wide_type.dtype.itemsize > 8:
        with pytest.raises(DTypeError, match="erf does not take"):
            builder.emit(R["erf"], [builder.param(wide_type)])


def test_hypot_at_its_kink():
    zeros = [np.zeros(2), np.array([0.0, -0.0])]
    body = lambda x, y: R["hypot"](x, y)  # noqa: E731
    for arguments in ([0], [1], [0, 0], [0, 1], [1, 1]):
        check_slopes(body, zeros, arguments, [0.0, 0.0])
    check_slopes(body, [np.array([3e200]), np.array([4e200])], [0], [0.6])


def test_arctan2_does_not_overflow():
    for scale in (1e-200, 1.0, 1e200):
        y, x = np.array([3 * scale]), np.array([4 * scale])
        check_jacobian(lambda y, x: R["arctan2"](y, x), [y, x], [[0.16 / scale, -0.12 / scale]])
    check_slopes(lambda y, x: R["arctan2"](y, x), [np.zeros(1), np.zeros(1)], [0], [NAN])


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_abs_at_its_kink(zero):
    for order in (1, 2):
        check_slopes(lambda x: R["abs"](x), [np.array([zero])], [0] * order, [0.0])
    check_jacobian(lambda z: R["abs"](z), [np.array([complex(zero, zero)])], [[0.0, 0.0]])


def test_abs_of_complex_numbers():
    """|z| has the slopes Re(z)/|z| and Im(z)/|z|."""
    check_jacobian(lambda z: R["abs"](z), [np.array([3 - 4j])], [[0.6, -0.8]])


def test_sign_of_complex_numbers():
    """z/|z| moves only across z: at 2i along the real axis, by 1/2."""
    check_jacobian(lambda z: R["sign"](z), [np.array([2j])], [[0.5, 0.0], [0.0, 0.0]])


def test_remainders_between_the_jumps():
    x, y = np.array([7.5, -7.5, 7.5, -7.5]), np.array([2.0, 2.0, -2.0, -2.0])
    check_slopes(lambda x, y: R["remainder"](x, y), [x, y], [0], 1.0)
    check_slopes(lambda x, y: R["remainder"](x, y), [x, y], [1], [-3.0, 4.0, 4.0, -3.0])
    check_slopes(lambda x, y: R["fmod"](x, y), [x, y], [0], 1.0)
    check_slopes(lambda x, y: R["fmod"](x, y), [x, y], [1], [-3.0, 3.0, 3.0, -3.0])


def test_quotient_by_a_number_that_is_spread():
    """The Jacobian of x / y for one number y, to second order."""

    def body(x, y):
        return x / R["broadcast"](y, shape=(3,), dims=())

    x, y = np.array([1.0, -2.0, 0.5]), np.array(4.0)
    check_jacobian(body, [x, y], np.column_stack([np.eye(3) / y, -x / y**2]))
    total = 2 * np.sum(x) / y**3
    check_slopes(lambda y: R["reduce_sum"](body(constant(y, x), y), axes=(0,)), [y], [0, 0], total)


@pytest.mark.parametrize("op", ["floor", "ceil", "trunc", "rint", "sign"])
def test_piecewise_constants_do_not_contribute(op):
    """sqrt(op(x)) at 0: a structural zero, not 0 * inf."""
    check_slopes(lambda x: R["sqrt"](R[op](x)), [np.array([0.0])], [0], [0.0])


def test_complex_of_infinite_parts():
    parts = [np.array([1.0, -0.0, INF]), np.array([INF, -0.0, NAN])]
    found = run(program(lambda a, b: R["complex"](a, b), *parts), parts)[0]
    np.testing.assert_array_equal(found.real, parts[0])
    np.testing.assert_array_equal(found.imag, parts[1])
    assert np.signbit(found.real[1]) and np.signbit(found.imag[1])


def test_casts_refuse_to_drop_an_imaginary_part():
    with pytest.raises(DTypeError, match="take the real part first"):
        program(lambda z: R["cast"](z, dtype=np.dtype(np.float64)), np.array([1j]))


def test_casts_to_integers_do_not_contribute():
    def body(x):
        return R["sqrt"](R["cast"](R["cast"](x, dtype=np.dtype(np.int64)), dtype=np.dtype(np.float64)))

    check_slopes(body, [np.array([0.25])], [0], [0.0])
