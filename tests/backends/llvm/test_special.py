"""Special functions that loops compute, written as others: against their meaning, and without a step of their own."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import scipy.special

import srcgrad as sg
from srcgrad.backends.llvm.backend import BACKEND
from srcgrad.backends.llvm.expansions import written_out
from srcgrad.backends.llvm.special import HALVES, LARGEST_ORDER, SPECIAL
from srcgrad.backends.numpy.evaluate import evaluate
from tests.backends.llvm.support import OPS, build, names, normal, run
from tests.backends.llvm.support import partitioned as parts_of

Array = np.ndarray[Any, Any]
ATTRS: dict[str, list[dict[str, Any]]] = {
    "integer_pow": [{"y": 33}, {"y": -33}, {"y": 100}],
    "gaussian": [{"n": n, "a": a} for n in range(LARGEST_ORDER + 1) for a in (1.0, 0.5)],
    "pow_log": [{"n": 1}, {"n": 2}],
    "sinc_derivative": [{"n": n} for n in range(1, LARGEST_ORDER + 1)],
}
PAIRS = {"log_ratio", "pow_log", "rel_entr", "xlogy"}
SPECIALS = [0.0, 1e-310, 1e-20, 0.3, 0.5, 1.0, 1.5, 2.0, 7.0, 40.0, 150.0, 1e8, 1e300, np.inf]


def given(name: str, dtype: Any) -> list[Array]:
    """Numbers of all sizes and both signs, nan and infinities; round 1/2 and next to one another."""
    random = np.random.default_rng(11)
    numbers = np.array([*SPECIALS, *[-x for x in SPECIALS], np.nan])
    many = random.uniform(-3, 3, 400) * 10.0 ** random.integers(-6, 2, 400)
    near = 0.5 + random.uniform(-0.3, 0.5, 400) * 10.0 ** random.integers(-6, 1, 400)
    if name not in PAIRS:
        with np.errstate(over="ignore"):
            return [np.concatenate([numbers, many, near]).astype(dtype)]
    x, y = (np.array(part) for part in zip(*itertools.product(numbers, repeat=2), strict=True))
    with np.errstate(all="ignore"):
        close = near * (1 + random.uniform(-1, 1, 400) * 10.0 ** -random.integers(0, 14, 400))
        return [np.concatenate([x, np.abs(many), near]).astype(dtype), np.concatenate([y, many, close]).astype(dtype)]


NAMES = (*(name for name in SPECIAL if name not in ("pow", "reduce_norm")), "remainder", "fmod", "floor_divide")
CASES = [(name, attrs) for name in NAMES for attrs in ATTRS.get(name, [{}])]


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize(("name", "attrs"), CASES)
def test_values_are_what_the_op_means(name: str, attrs: dict[str, Any], dtype: str) -> None:
    arguments = given(name if name in SPECIAL else "xlogy", dtype)

    def rule(*values: Any) -> Any:
        return OPS[name](*values, **attrs)

    function = build(rule, *arguments)
    exact = [argument.astype("f8") for argument in arguments] if name in SPECIAL else arguments
    assert names(parts_of(written_out(function))) == ["fused"]
    with np.errstate(all="ignore"):
        (found,), (wanted,) = run(rule, *arguments), evaluate(build(rule, *exact), exact)
        wanted = np.asarray(wanted).astype(dtype)
    assert found.dtype == np.dtype(dtype)
    # At the roots of Hermite polynomials the error is that of their terms.
    scale = {"gaussian": 2.0**LARGEST_ORDER}.get(name, 0.0)
    rtol = 1e-13 if dtype == "f8" else 4e-7
    atol = np.nan_to_num(rtol * scale + (4e-310 if dtype == "f8" else 1e-44))
    with np.errstate(all="ignore"):
        close = (np.abs(found - wanted) <= rtol * np.abs(wanted) + atol) | (found == wanted)
    same = close | (np.isnan(found) & np.isnan(wanted))
    at = [argument[~same][:5] for argument in arguments]
    assert same.all(), (at, found[~same][:5], np.asarray(wanted)[~same][:5])


EXACT: dict[str, tuple[Callable[..., Any], tuple[tuple[float, float], ...], float]] = {
    "logit": (lambda x: mp.log(x / (1 - x)), ((0.0, 1.0),), 3.0),
    "ndtr": (lambda x: mp.ncdf(x), ((-5.0, 8.0),), 24.0),
    "log_ratio": (lambda x, y: mp.log(x / y), ((0.5, 2.0), (0.5, 2.0)), 3.0),
    "rel_entr": (lambda x, y: x * mp.log(x / y), ((0.5, 2.0), (0.5, 2.0)), 4.0),
    "xlogy": (lambda x, y: x * mp.log(y), ((-2.0, 2.0), (0.0, 5.0)), 3.0),
    "sinc": (lambda x: mp.sincpi(x), ((-0.5, 0.5),), 4.0),
}
"""By op the exact function, intervals, and the bound of errors in ULP: of ndtr those of its argument count too."""


@pytest.mark.parametrize("name", EXACT)
def test_errors_are_a_few_units_in_the_last_place(name: str) -> None:
    exact, intervals, bound = EXACT[name]
    random = np.random.default_rng(3)
    arguments = [random.uniform(*interval, 300) for interval in intervals]
    (found,) = run(lambda *values: OPS[name](*values), *arguments)
    with mp.workdps(40):
        for value, *at in zip(found, *arguments, strict=True):
            wanted = exact(*map(mp.mpf, at))
            assert abs(mp.mpf(float(value)) - wanted) <= bound * mp.mpf(float(np.spacing(abs(value)))), at


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("exponent", HALVES)
def test_powers_by_a_root_are_those_of_numpy(exponent: float, dtype: str) -> None:
    """Also where the root differs, at -0.0 and -inf, and where a part of them over- or underflows."""
    big = float(np.finfo(dtype).max)
    specials = [0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 1.0, 4.0, big, big ** (2 / 3), 1e-39, 1e-45, 5e-324]
    with np.errstate(over="ignore", under="ignore"):
        x = np.concatenate([specials, 10.0 ** np.random.default_rng(2).uniform(-38, 38, 400)]).astype(dtype)

    def rule(base: Any) -> Any:
        return OPS["pow"](base, base.like(exponent))

    function = build(rule, x)
    assert names(parts_of(written_out(function))) == ["fused"]
    assert "pow" not in [operation.op.name for operation in written_out(function).walk()]
    (found,) = run(rule, x)
    with np.errstate(all="ignore"):
        known = np.power(x.astype(np.longdouble), np.full(x.shape, exponent, np.longdouble)).astype(dtype)
        close = np.abs(found - known) <= 2 * np.spacing(np.abs(known))
    assert found.dtype == np.dtype(dtype)
    assert np.all(close | (found == known) | (np.isnan(found) & np.isnan(known)))
    assert np.array_equal(np.signbit(found)[~np.isnan(known)], np.signbit(known)[~np.isnan(known)])


@pytest.mark.parametrize("dtype", ["i8", "i4", "i2", "u1"])
def test_known_powers_of_whole_numbers_are_products(dtype: str) -> None:
    x = np.arange(-40, 41).astype(dtype)
    for exponent in (0, 1, 2, 3, 5, 10, 63, 64):

        def rule(base: Any, y: int = exponent) -> Any:
            return OPS["pow"](base, base.like(y))

        assert "pow" not in [operation.op.name for operation in written_out(build(rule, x)).walk()]
        (found,) = run(rule, x)
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found, x ** np.array(exponent, dtype))


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_norms_are_sums_in_loops_with_what_makes_their_operand(dtype: str) -> None:
    """NumPy's loops in turn took twice the time of its own norm."""
    x, y = (np.random.default_rng(k).normal(size=(60, 300)).astype(dtype) for k in range(2))

    def rule(a: Any, b: Any) -> Any:
        return OPS["reduce_norm"](a - b, axes=(1,)), OPS["reduce_norm"](a, axes=(0, 1))

    assert set(names(parts_of(written_out(build(rule, x, y))))) == {"fused"}
    rows, whole = run(rule, x, y)
    rtol = 1e-14 if dtype == "f8" else 1e-6
    np.testing.assert_allclose(rows, np.sqrt(np.sum((x - y).astype("f8") ** 2, 1)), rtol=rtol)
    np.testing.assert_allclose(whole, np.sqrt(np.sum(x.astype("f8") ** 2)), rtol=rtol)
    (zero,) = run(lambda a: OPS["reduce_norm"](a, axes=(0,)), np.array([-0.0, 0.0], dtype))
    assert zero == 0.0 and not np.signbit(zero)


GRADIENTS: dict[str, tuple[Callable[..., Any], int]] = {
    "a power": (np.power, 2),
    "an error function": (scipy.special.erf, 1),
    "its complement": (scipy.special.erfc, 1),
    "a normal distribution": (scipy.special.ndtr, 1),
    "a log of odds": (scipy.special.logit, 1),
    "an entropy": (scipy.special.entr, 1),
    "a relative entropy": (scipy.special.rel_entr, 2),
    "sinc": (np.sinc, 1),
    "a remainder": (np.mod, 2),
    "a remainder of C's": (np.fmod, 2),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_values_and_gradients_are_one_pass(name: str) -> None:
    f, count = GRADIENTS[name]
    arguments = [np.random.default_rng(seed).uniform(0.1, 0.9, 300) for seed in range(count)]

    def loss(*values: Any) -> Any:
        return np.sum(f(*values) * 2.0)

    gradient = sg.value_and_grad(loss, tuple(range(count)), backend="llvm")
    text = sg.explain(gradient)(*arguments)["llvm source"]
    assert text.count("#   for i0 in 0..300:") == 1
    assert {step.partition("_")[0] for step in re.findall(r"^#   (\w+) ->", text, re.MULTILINE)} <= {"kernel"}
    known = sg.value_and_grad(loss, tuple(range(count)), backend="numpy")(*arguments)
    found = gradient(*arguments)
    np.testing.assert_allclose(found[0], known[0], rtol=1e-13)
    np.testing.assert_allclose(found[1], known[1], rtol=1e-11)


@pytest.mark.parametrize("name", ["i0", "i1", "i0e", "i1e", "k0e", "k1e", "digamma", "gammaln"])
def test_derivatives_of_bessel_and_gamma_functions_are_numpys(name: str) -> None:
    """To the third order, of which the first are computed in loops."""
    function = getattr(scipy.special, name)
    positive = [1e-3, 0.7, 1.5451, 7.99, 8.01, 40.0, 600.0]
    x = np.array(positive if name.startswith("k") else [*positive, -0.3, -2.7])

    def derivative(order: int, backend: str) -> Any:
        found: Any = function
        for _ in range(order):
            found = (lambda inner: lambda x: sg.jvp(inner, (x,), (np.ones_like(x),))[1])(found)
        return sg.jit(found, backend=backend)(x)

    for order in (1, 2, 3):
        np.testing.assert_allclose(derivative(order, "llvm"), derivative(order, "numpy"), rtol=1e-9)


def test_of_i1_at_the_smallest_numbers_the_derivative_is_a_half() -> None:
    """By the function of order 2, which SciPy does not have there."""
    for backend in ("numpy", "llvm"):
        for x in (5e-324, -1e-320, 1e-200):
            assert sg.grad(scipy.special.i1, backend=backend)(x) == 0.5


@pytest.mark.parametrize("parameters", [(2.0, 3.0), (1.0, 1.0), (0.5, 12.0), (30.0, 12.0)])
def test_densities_of_known_parameters_are_numpys(parameters: tuple[float, float]) -> None:
    """What is made of parameters that are known is computed once: short arrays, and ones that are filled elsewhere."""
    a, b = parameters
    random = np.random.default_rng(3)
    for count in (7, 5000):
        x = np.concatenate([[0.0, 1.0], random.uniform(0, 1, count)])
        for f in (
            lambda x: scipy.special.betainc(a, b, x),
            lambda x: scipy.special.gammainc(a, 9 * x),
            lambda x: scipy.special.ive(a, 3 * x) + scipy.special.zeta(a + 1.5, 1 + x),
        ):
            for order in (1, 2):
                found: Any = f
                for _ in range(order):
                    found = (lambda inner: lambda x: sg.jvp(inner, (x,), (np.ones_like(x),))[1])(found)
                ours, theirs = (sg.jit(found, backend=backend)(x) for backend in ("llvm", "numpy"))
                np.testing.assert_allclose(ours[2:], theirs[2:], rtol=1e-10, atol=1e-300)
                np.testing.assert_array_equal(np.isfinite(ours[:2]), np.isfinite(theirs[:2]))


WINDOWS = [(0, 1), (0, 9), (300, 16), (695, 9), (990, 16), (1410, 5), (1620, 15), (-7, 10)]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("start", "count"), WINDOWS)
def test_short_windows_of_long_vectors_are_sums(start: int, count: int, dtype: Any) -> None:
    """In one pass, as the derivative in a filter; what does not meet is in no product, as 0 times inf would be."""
    random = np.random.default_rng(abs(start))
    a, b = random.normal(size=700).astype(dtype), random.normal(size=935).astype(dtype)

    def rule(x: Any, y: Any) -> Any:
        return OPS["convolve"](x, y, starts=(start,), sizes=(count,))

    for x, y in ((a, b), (b, a)):
        function = build(rule, x, y)
        assert "convolve" not in [operation.op.name for operation in written_out(function).walk()]
        for at in (None, 0, 3, 650, 699):
            given = x.copy()
            if at is not None:
                given[at] = np.inf
            (found,) = run(rule, given, y)
            for o, value in zip(range(start, start + count), found, strict=True):
                j = np.arange(max(0, o - len(y) + 1), max(0, min(len(x), o + 1)))
                wanted = np.sum(given[j].astype(float) * y[o - j])
                scale = float(np.finfo(dtype).eps) * (1 + np.sum(np.abs(x[j] * y[o - j])))
                assert value == wanted or abs(value - wanted) <= 4 * scale, (at, o)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_tanh_has_the_same_digits_beside_its_derivative_and_alone(dtype: str) -> None:
    """Beside it, it is a product with the reciprocal that both need, corrected to the last bit."""
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -1e-38, 5e-324, 3e38, 19.0, 22.1, 44.5, 88.9, 350.0, 354.9]
    x = np.concatenate([normal(3_000), normal(3_000, seed=1) * 20, normal(3_000, seed=2) * 1e-3, edges]).astype(dtype)
    both = BACKEND.compile(build(lambda x: (OPS["tanh"](x), OPS["square"](OPS["sech"](x))), x)).run(x)
    alone = [
        BACKEND.compile(build(rule, x)).run(x)[0]
        for rule in (lambda x: (OPS["tanh"](x),), lambda x: (OPS["square"](OPS["sech"](x)),))
    ]
    for found, expected in zip(both, alone, strict=True):
        np.testing.assert_array_equal(found, expected)
        assert np.array_equal(np.signbit(found[:-11]), np.signbit(expected[:-11]))
