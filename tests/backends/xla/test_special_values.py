"""NumPy's meaning where numbers are special: the range of floats, zeros, infinities, nan, overflow of integers."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from srcgrad.backends.xla.tables import elementary, elementwise, functions
from srcgrad.ir.errors import SrcgradError
from srcgrad.ir.opdef import Elementwise, Op, Sample
from tests.backends.xla.agreement import Program, run_xla, ulps_apart, zeros_differ
from tests.backends.xla.support import apply, compiled, program
from tests.backends.xla.test_samples import LESS_ACCURATE, SIGNS_OF_ZERO
from tests.ir.ops.harness import Case, ops, run

SEED = 7
BOUND = 8.0
ATTRS: dict[str, dict[str, Any]] = {
    "cast": {"dtype": np.dtype(np.float32)},
    "integer_pow": {"y": -3},
    "polygamma": {"n": 1},
    "pow_log": {"n": 2},
    "sinc_derivative": {"n": 2},
}
WIDER: dict[tuple[str, str], tuple[float, str]] = {
    ("erfc", "float32"): (16.0, "XLA's approximation loses a few bits where the result is small"),
    ("polygamma", "float64"): (64.0, "cos(pi x)/sin(pi x) near the poles is as accurate as pi is"),
}
"""(op, dtype) -> how many ulps it may be apart on the grid, and why."""


def grid(dtype: Any, random: np.random.Generator) -> np.ndarray[Any, Any]:
    """Special numbers and random ones of all sizes; none that is subnormal, or nearly so."""
    limits = np.finfo(dtype)
    large = 1e4 if dtype is np.float16 else 1e22
    return np.concatenate(
        [
            [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, 10.0, 100.0, -7.0],
            [float(limits.max) / 2, float(limits.tiny) * 4, 88.0, -88.0, 700.0, -700.0, large],
            [1 - float(limits.eps), 1 + float(limits.eps), float(limits.eps)],
            random.normal(size=40) * 10,
            random.uniform(-1, 1, 40),
            np.exp(random.uniform(-8, 8, 60)) * random.choice([-1, 1], 60),
        ]
    ).astype(dtype)


def grid_case(op: Op, dtype: Any) -> Case | None:
    """The op on the grid, or on pairs of its numbers; None if it does not take the dtype."""
    random = np.random.default_rng(SEED)
    numbers = grid(dtype, random)
    operands: tuple[Any, ...] = (numbers,)
    if isinstance(op, Elementwise) and op.arity == 2:
        pairs = [axis.ravel() for axis in np.meshgrid(numbers[:16], numbers[:16])]
        drawn = [random.choice(numbers, 300) for _ in pairs]
        operands = tuple(np.concatenate(both) for both in zip(pairs, drawn, strict=True))
    case = Case(op, Sample(operands, ATTRS.get(op.name, {})), 0)
    try:
        assert case.function.results
    except SrcgradError:
        return None
    return case


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_elementwise_ops_on_the_whole_range(dtype: Any) -> None:
    print(f"seed {SEED}")
    own = {**elementwise.TABLE, **elementary.TABLE, **functions.TABLE}
    tried = [op for op in ops() if isinstance(op, Elementwise) and op.name in own]
    found = [case for case in (grid_case(op, dtype) for op in tried) if case is not None]
    assert len(found) > 50
    wanted = [Program("value", case.function, case.operands) for case in found]
    wrong = []
    for case, one, results in zip(found, wanted, run_xla(wanted), strict=True):
        name = case.op.name
        bound = max(BOUND, LESS_ACCURATE.get(name, (0.0,))[0], WIDER.get((name, np.dtype(dtype).name), (0.0,))[0])
        for actual, expected in zip(results, run(one.function, one.arguments), strict=True):
            apart = ulps_apart(actual, expected, False, least=float(name in LESS_ACCURATE))
            if apart > bound:
                wrong.append(f"{name}: {apart} ulps")
            if zeros_differ(actual, expected) and name not in SIGNS_OF_ZERO:
                wrong.append(f"{name}: a zero of another sign")
    assert wrong == []


INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "floor_divide", "remainder", "fmod", "maximum", "less", "equal"])
def test_integers_wrap_and_divide_by_zero_as_in_numpy(name: str, dtype: Any) -> None:
    limits = np.iinfo(dtype)
    numbers = np.unique(np.array([0, 1, 2, 3, 7, limits.max, limits.max - 1, limits.min], dtype))
    if limits.min:
        numbers = np.concatenate([numbers, -numbers[numbers > 0][:4]])
    x, y = (axis.ravel() for axis in np.meshgrid(numbers, numbers))
    meaning = {"fmod": np.fmod, "maximum": np.maximum, "less": np.less, "equal": np.equal}.get(name)
    by_symbol = {"add": "+", "sub": "-", "mul": "*", "floor_divide": "//", "remainder": "%"}
    with np.errstate(all="ignore"):
        expected = meaning(x, y) if meaning else eval(f"x {by_symbol[name]} y")
    found = apply(name, x, y)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint16])
def test_integer_powers_wrap(dtype: Any) -> None:
    x = np.array([0, 1, 2, 3, 7, np.iinfo(dtype).max, np.iinfo(dtype).min], dtype)
    bases, exponents = (axis.ravel() for axis in np.meshgrid(x, np.array([0, 1, 2, 5, 63, 100], dtype)))
    np.testing.assert_array_equal(apply("pow", bases, exponents), bases**exponents)
    np.testing.assert_array_equal(apply("integer_pow", x, y=5), x**5)


def complex_numbers() -> np.ndarray[Any, Any]:
    parts = [0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan]
    return np.array([complex(a, b) for a, b in itertools.product(parts, parts)])


@pytest.mark.parametrize("name", ["less", "less_equal", "greater", "greater_equal", "equal", "not_equal"])
def test_complex_numbers_are_compared_by_their_parts(name: str) -> None:
    x, y = (axis.ravel() for axis in np.meshgrid(complex_numbers(), complex_numbers()))
    with np.errstate(invalid="ignore"):
        expected = getattr(np, name)(x, y)
    np.testing.assert_array_equal(apply(name, x, y), expected)


@pytest.mark.parametrize("name", ["is_nan", "is_inf", "is_finite", "conj", "neg", "real", "imag", "rint", "abs"])
def test_parts_and_tests_of_special_complex_numbers(name: str) -> None:
    x = complex_numbers()
    meaning: Any = {"is_nan": np.isnan, "is_inf": np.isinf, "is_finite": np.isfinite, "neg": np.negative}
    rounding = np.finfo(float).eps if name == "abs" else 0.0  # neither library rounds sqrt(a² + b²) correctly
    np.testing.assert_allclose(apply(name, x), meaning.get(name, getattr(np, name, None))(x), rtol=rounding)


def test_complex_division_and_logarithm() -> None:
    random = np.random.default_rng(SEED)
    x, y = (
        random.normal(size=200) * np.exp(random.uniform(-9, 9, 200)) * np.exp(6j * random.random(200)) for _ in "xy"
    )
    near_one = np.exp(1j * random.uniform(-3, 3, 200)) * (1 + random.normal(size=200) * 1e-6)
    assert ulps_apart(apply("div", x, y), x / y, scaled=False) < BOUND
    assert ulps_apart(apply("log", x), np.log(x), scaled=False) < BOUND
    np.testing.assert_allclose(apply("log", near_one).real, np.log(near_one).real, rtol=1e-13)


def test_sorting_puts_nan_last_and_keeps_the_order_of_equal_elements() -> None:
    x = np.array([np.nan, 0.0, -0.0, 1.0, -np.inf, np.inf, 0.0, np.nan, 1.0, -1.0])
    np.testing.assert_array_equal(apply("sort", x, axis=0), np.sort(x, kind="stable"))
    np.testing.assert_array_equal(apply("argsort", x, axis=0), np.argsort(x, kind="stable"))
    z = complex_numbers()[::-1].copy()
    np.testing.assert_array_equal(apply("sort", z, axis=0), np.sort(z, kind="stable"))
    np.testing.assert_array_equal(apply("argsort", z, axis=0), np.argsort(z, kind="stable"))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
@pytest.mark.parametrize("shape", [(3, 2), (1, 2), (0, 2)], ids=str)
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), ()], ids=str)
def test_no_sum_is_a_negative_zero(dtype: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    x = np.full(shape, complex(-0.0, -0.0) if np.dtype(dtype).kind == "c" else -0.0, dtype)
    found = apply("reduce_sum", x, axes=axes)
    assert not np.signbit(found.real).any()
    assert not np.signbit(found.imag).any()


def test_float16_sums_and_products_are_rounded_once() -> None:
    x = np.full(3000, 1.0, np.float16) + np.float16(0.001)
    assert apply("reduce_sum", x, axes=(0,)) == np.sum(x)
    left, right = np.full((2, 3000), 0.1, np.float16), np.full((3000, 2), 0.1, np.float16)
    attrs = {"contract": ((1,), (0,)), "batch": ((), ())}
    np.testing.assert_allclose(
        apply("dot_general", left, right, **attrs), (left.astype(float) @ right.astype(float)), rtol=1e-3
    )


def test_float16_steps_are_rounded_one_by_one() -> None:
    """Intermediate float16 results do not stay in float32: 2048 + 1 is 2048."""
    function = program(
        """
func @f(%x: f16[1], %y: f16[1]) -> (f16[1]) {
  %a: f16[1] = add %x, %y
  %b: f16[1] = sub %a, %x
  return %b
}
"""
    )
    assert compiled(function).run(np.array([2048], np.float16), np.array([1], np.float16))[0][0] == 0.0


def test_divisions_are_not_merged() -> None:
    """x / y / y does not become x / (y * y), nor exp(x) * exp(y) exp(x + y), nor a quotient a product."""
    function = program(
        """
func @f(%x: f64[1], %y: f64[1]) -> (f64[1], f64[1], f64[1]) {
  %a: f64[1] = div %x, %y
  %b: f64[1] = div %a, %y
  %c: f64[1] = exp %b
  %d: f64[1] = neg %b
  %e: f64[1] = exp %d
  %f: f64[1] = mul %c, %e
  %g: f64[1] = div %x, 1e-200:f64[1]
  return %b, %f, %g
}
"""
    )
    x = np.array([1e-200])
    twice, product, by_constant = compiled(function).run(x, x)
    assert twice[0] == 1e200
    assert np.isnan(product[0])
    assert by_constant[0] == 1.0
    fifths = program("func @f(%x: f64[3]) -> (f64[3]) {\n  %a: f64[3] = div %x, 49.0:f64[3]\n  return %a\n}")
    numbers = np.array([49.0, 98.0, 147.0])
    np.testing.assert_array_equal(compiled(fifths).run(numbers)[0], numbers / 49.0)
