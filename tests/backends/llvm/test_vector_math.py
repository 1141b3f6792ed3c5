"""Vector math: its errors against mpmath, its special values against NumPy, and that lanes do not matter."""

from __future__ import annotations

import ctypes
import itertools
import platform
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np
import pytest
import scipy.special

from srcgrad.backends.llvm.vector_math import FUNCTIONS
from srcgrad.backends.numpy.helpers import second_bessel
from tests.backends.llvm import fit_coefficients
from tests.backends.llvm.kernels import Kernel, host, plain, with_fma

DTYPES = [np.float64, np.float32]
MACHINES = {"host": host(), "plain": plain()}
if (middling := with_fma()) is not None:
    MACHINES["fma"] = middling
LANES = [1, 2, 4, 8]


class Case(NamedTuple):
    """A function of one operand: the exact one, NumPy's, the interval, and the bounds in ULP of both dtypes.

    ``narrow`` is the interval for float32; None means the same.
    """

    exact: Callable[[Any], Any]
    known: Callable[..., Any]
    interval: tuple[float, float]
    double: float
    single: float = 0.75
    narrow: tuple[float, float] | None = None


INF = np.inf


def scaled_erfc(x: Any) -> Any:
    """exp(x²) erfc(x); of large numbers by the asymptotic series (DLMF 7.12.1)."""
    if x < 1e3:
        return mp.exp(x * x) * mp.erfc(x)
    series = sum((-1) ** k * mp.fac2(2 * k - 1) / (2 * x * x) ** k for k in range(12))
    return series / (x * mp.sqrt(mp.pi))


def scaled_bessel(order: int, x: Any) -> Any:
    """exp(-|x|) I_n(x); of large numbers by the asymptotic series (DLMF 10.40.1)."""
    if abs(x) < 1e4:
        return mp.besseli(order, x) * mp.exp(-abs(x))
    total = term = mp.mpf(1)
    for k in range(1, 20):
        term *= -mp.mpf(4 * order**2 - (2 * k - 1) ** 2) / (8 * k * abs(x))
        total += term
    return total * (mp.sign(x) if order % 2 else 1) / mp.sqrt(2 * mp.pi * abs(x))


def bessel_slope(order: int) -> Callable[[Any], Any]:
    """The derivative of `scaled_bessel`: I_0' = I_1, I_1' = (I_0 + I_2)/2."""

    def exact(x: Any) -> Any:
        if abs(x) > 1e30:  # the leading term
            return -scaled_bessel(order, x) / (2 * x)
        sides = scaled_bessel(1, x) if order == 0 else (scaled_bessel(0, x) + scaled_bessel(2, x)) / 2
        return sides - mp.sign(x) * scaled_bessel(order, x)

    return exact


def slope_of(order: int) -> Callable[[Any], Any]:
    """With the sign that zeros have where numbers vanish: the functions fall."""

    def known(x: Any) -> Any:
        finite = np.isfinite(x) & (x != 0)
        with mp.workprec(200):
            exact = [
                bessel_slope(order)(mp.mpf(float(v))) if given else v * 0 for given, v in zip(finite, x, strict=True)
            ]
        found = np.array(exact, float)
        found = np.where(np.isinf(x), -0.0, found)
        return (np.copysign(found, -x) if order == 0 else np.where(x == 0, 0.5, found)).astype(x.dtype)

    return known


def finite_bessel(x: Any) -> Any:
    """SciPy's gives nan of what is finite and very large."""
    return np.where(np.isfinite(x) & (np.abs(x) > 1e5), np.inf, second_bessel(x)).astype(x.dtype)


CASES = {
    "exp": Case(mp.exp, np.exp, (-745.1, 709.7), 1, 1, (-103.9, 88.7)),
    "exp2": Case(lambda x: mp.power(2, x), np.exp2, (-1074, 1023.99), 1.5, 1.5, (-149, 127.99)),
    "expm1": Case(mp.expm1, np.expm1, (-INF, 709.7), 2, 2, (-INF, 88.7)),
    "sinh": Case(mp.sinh, np.sinh, (-710.47, 710.47), 2.5, 2.75, (-89.4, 89.4)),
    "cosh": Case(mp.cosh, np.cosh, (-710.47, 710.47), 2, 2, (-89.4, 89.4)),
    "tanh": Case(mp.tanh, np.tanh, (-30, 30), 2.75, 3),
    "sech": Case(mp.sech, lambda x: 1 / np.cosh(x), (-745, 745), 2.5, 2.5, (-103, 103)),
    "sech_squared": Case(lambda x: mp.sech(x) ** 2, lambda x: 1 / np.cosh(x) ** 2, (-372, 372), 3, 3, (-51, 51)),
    "expit": Case(lambda x: 1 / (1 + mp.exp(-x)), scipy.special.expit, (-745, 60), 2.5, 2.5, (-103, 60)),
    "log": Case(mp.log, np.log, (0, INF), 1, 1),
    "log2": Case(lambda x: mp.log(x, 2), np.log2, (0, INF), 1, 1.75),
    "log10": Case(mp.log10, np.log10, (0, INF), 1.2, 1.75),
    "log1p": Case(mp.log1p, np.log1p, (-1, INF), 1.2, 1),
    "sin": Case(mp.sin, np.sin, (-INF, INF), 1, 1.5),
    "cos": Case(mp.cos, np.cos, (-INF, INF), 1, 1.5),
    "tan": Case(mp.tan, np.tan, (-INF, INF), 2, 3),
    "arcsin": Case(mp.asin, np.arcsin, (-1, 1), 0.75, 1.25),
    "arccos": Case(mp.acos, np.arccos, (-1, 1), 0.75, 1.25),
    "arctan": Case(mp.atan, np.arctan, (-INF, INF), 2, 2),
    "arcsinh": Case(mp.asinh, np.arcsinh, (-INF, INF), 2, 2),
    "arcsinh_slope": Case(lambda x: 1 / mp.sqrt(1 + x * x), lambda x: 1 / np.hypot(x, 1), (-INF, INF), 1.75, 1.75),
    "arccosh": Case(mp.acosh, np.arccosh, (1, INF), 2.5, 2.5),
    "arctanh": Case(mp.atanh, np.arctanh, (-1, 1), 3.5, 3.5),
    "cbrt": Case(lambda x: mp.sign(x) * mp.cbrt(abs(x)), np.cbrt, (-INF, INF), 0.75),
    "erf": Case(mp.erf, scipy.special.erf, (-INF, INF), 1.5, 1.5),
    "erfc": Case(mp.erfc, scipy.special.erfc, (-INF, 26.54), 4, 0.75, (-INF, 10.05)),
    "erfcx": Case(scaled_erfc, scipy.special.erfcx, (-26.6, INF), 4, 1, (-9.3, INF)),
    "bell": Case(lambda x: mp.exp(-x * x), lambda x: np.exp(-x * x), (-26.6, 26.6), 1.75, 0.75, (-10.1, 10.1)),
    "half_bell": Case(lambda x: mp.exp(-x * x / 2), lambda x: np.exp(-x * x / 2), (-37, 37), 1.5, 0.75, (-14, 14)),
    "gammaln": Case(lambda x: mp.log(abs(mp.gamma(x))), scipy.special.gammaln, (0, 170), 5, 0.75, (0, 30)),
    "digamma": Case(mp.digamma, scipy.special.psi, (0, INF), 4, 1),
    "trigamma": Case(lambda x: mp.psi(1, x), lambda x: scipy.special.zeta(2, x), (-1e4, INF), 5, 1),
    "i0": Case(lambda x: mp.besseli(0, x), scipy.special.i0, (-700, 700), 4, 1, (-90, 90)),
    "i1": Case(lambda x: mp.besseli(1, x), scipy.special.i1, (-700, 700), 4, 1, (-90, 90)),
    "i2": Case(lambda x: mp.besseli(2, x), finite_bessel, (-700, 700), 4, 1, (-90, 90)),
    "i0e": Case(lambda x: scaled_bessel(0, x), scipy.special.i0e, (-INF, INF), 4, 1),
    "i1e": Case(lambda x: scaled_bessel(1, x), scipy.special.i1e, (-INF, INF), 4, 1),
    "i0e_slope": Case(bessel_slope(0), slope_of(0), (-INF, INF), 4, 1),
    "i1e_slope": Case(bessel_slope(1), slope_of(1), (-INF, INF), 4, 1),
}


def pairs(x: Any, y: Any) -> Any:
    """Complex numbers of these parts."""
    return np.stack([x, y], -1).view(np.result_type(x.dtype, np.complex64))[..., 0]


class PairCase(NamedTuple):
    exact: Callable[[Any, Any], Any]
    known: Callable[..., Any]
    double: float
    single: float = 0.75


PAIRS = {
    "pow": PairCase(mp.power, np.power, 1.5, 2),
    "hypot": PairCase(mp.hypot, np.hypot, 1.2),
    "log_hypot": PairCase(lambda x, y: mp.log(mp.hypot(x, y)), lambda x, y: np.log(pairs(x, y)).real, 1.25),
    "arctan2": PairCase(mp.atan2, np.arctan2, 2, 2),
    "logaddexp": PairCase(lambda x, y: mp.log(mp.exp(x) + mp.exp(y)), np.logaddexp, 1.2),
    "logaddexp2": PairCase(lambda x, y: mp.log(mp.power(2, x) + mp.power(2, y), 2), np.logaddexp2, 1.2),
}
EXACT = {
    name: getattr(np, name)
    for name in ("sqrt", "floor", "ceil", "trunc", "rint", "abs", "sign", "square", "reciprocal")
}
EXACT_PAIRS = {name: getattr(np, name) for name in ("copysign", "maximum", "minimum")}
INVERSE_ROOTS = {"inverse_root": 1.5, "inverse_root_of_product": 2.5}
DIVISIONS = {name: getattr(np, name) for name in ("fmod", "remainder", "floor_divide")}


@cache
def kernel(name: str, dtype: Any, lanes: int, machine: str, outlined: bool = False) -> Kernel:
    operands = 2 if name in PAIRS or name in EXACT_PAIRS or name in DIVISIONS or name in INVERSE_ROOTS else 1
    return Kernel(FUNCTIONS[name], dtype, operands, lanes, MACHINES[machine], outlined)


def widest(dtype: Any) -> int:
    return 64 // np.dtype(dtype).itemsize


def ulps(found: Any, exact: list[Any], dtype: Any) -> Any:
    """The errors in units of the last place of the exact values, subnormal ones included."""
    info = np.finfo(dtype)
    bits, lowest = info.nmant + 1, info.minexp - info.nmant
    errors = []
    for value, reference in zip(found, exact, strict=True):
        if not np.isfinite(value):
            overflows = abs(reference) >= mp.mpf(float(info.max)) and (value > 0) == (reference > 0)
            errors.append(0.0 if overflows else np.inf)
        else:
            unit = mp.ldexp(1, max(int(mp.frexp(reference)[1]) - bits, lowest))
            errors.append(float(abs(mp.mpf(float(value)) - reference) / unit))
    return np.array(errors)


def sample(name: str, dtype: Any, count: int) -> Any:
    """Every binade within the interval, both signs, and the intervals where formulas change and near 1."""
    case, info = CASES[name], np.finfo(dtype)
    low, high = case.narrow if case.narrow is not None and dtype == np.float32 else case.interval
    random = np.random.default_rng(sum(map(ord, name)))
    exponents = np.arange(info.minexp - info.nmant, info.maxexp)
    exponents = exponents[:: max(1, len(exponents) // count)]
    signs = random.choice([-1.0, 1.0], len(exponents))
    with np.errstate(all="ignore"):
        binades = signs * np.ldexp(random.uniform(1, 2, len(exponents)), exponents)
        middle = random.choice([-1, 1], count) * np.ldexp(random.uniform(1, 2, count), random.integers(-5, 3, count))
        near_one = 1 + np.ldexp(random.uniform(-1, 1, count // 2), -random.integers(1, 30, count // 2))
        inside = random.uniform(max(low, -200.0), min(high, 200.0), count)
        ends = random.uniform(max(low, -1e3), min(high, 1e3), count // 4)
        # Next to the multiples of pi/2, and where log|gamma| and digamma have their roots.
        multiples = random.integers(1, 2**19, count // 4) * (np.pi / 2)
        roots = random.uniform(1.3, 2.1, count // 4)
        hardest = [6381956970095103 * 2.0**797, 5.31937264832654141671e255, 0.1]
        x = np.concatenate([binades, middle, near_one, inside, ends, multiples, roots, hardest]).astype(dtype)
    return x[(x > low) & (x < high) & np.isfinite(x) & (x != 0)]


@cache
def measured(name: str, dtype: Any) -> tuple[Any, list[Any]]:
    x = sample(name, dtype, 90)
    # Large arguments of the circular functions need their exponent's digits more.
    with mp.workprec(1300 if name in ("sin", "cos", "tan") else 200):
        return x, [CASES[name].exact(mp.mpf(float(value))) for value in x]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CASES)
def test_errors_are_within_the_bounds(name: str, dtype: Any, machine: str) -> None:
    x, exact = measured(name, dtype)
    errors = ulps(kernel(name, dtype, widest(dtype), machine)(x), exact, dtype)
    bound = CASES[name].single if dtype == np.float32 else CASES[name].double
    worst = int(errors.argmax())
    assert errors[worst] <= bound, (name, x[worst], errors[worst])


def pair_sample(name: str, dtype: Any, count: int) -> tuple[Any, Any]:
    random = np.random.default_rng(sum(map(ord, name)))
    info = np.finfo(dtype)
    if name.startswith("logaddexp"):
        return tuple(random.uniform(0, 40, (2, count)).astype(dtype))  # type: ignore[return-value]
    wide = np.ldexp(random.uniform(1, 2, count), random.integers(info.minexp - info.nmant, info.maxexp, count))
    with np.errstate(all="ignore"):
        if name == "pow":
            near = 1 + np.ldexp(random.uniform(-1, 1, count), -random.integers(1, 22, count))
            x = np.concatenate([wide, near, random.uniform(0.1, 3, count)]).astype(dtype)
            top = (info.maxexp + 1) * np.log(2)
            y = (random.uniform(-top, top, 3 * count) / np.log(x.astype(np.float64))).astype(dtype)
            keep = (x > 0) & np.isfinite(x) & np.isfinite(y)
        else:
            x = wide * random.choice([-1, 1], count)
            y = (x * np.ldexp(random.uniform(1, 2, count), random.integers(-5, 5, count))).astype(dtype)
            x = np.where(random.uniform(size=count) < 0.5, -x, x).astype(dtype)
            keep = (x != 0) & (y != 0) & np.isfinite(x) & np.isfinite(y)
    return x[keep], y[keep]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", PAIRS)
def test_errors_of_two_operands_are_within_the_bounds(name: str, dtype: Any, machine: str) -> None:
    x, y = pair_sample(name, dtype, 200)
    with mp.workprec(200):
        exact = [PAIRS[name].exact(mp.mpf(float(a)), mp.mpf(float(b))) for a, b in zip(x, y, strict=True)]
    errors = ulps(kernel(name, dtype, widest(dtype), machine)(x, y), exact, dtype)
    bound = PAIRS[name].single if dtype == np.float32 else PAIRS[name].double
    worst = int(errors.argmax())
    assert errors[worst] <= bound, (name, x[worst], y[worst], errors[worst])


def specials(dtype: Any) -> Any:
    """Zeros, ends of the ranges, infinities, nan, whole and broken numbers, and the thresholds of overflow."""
    info = np.finfo(dtype)
    sizes = [0.0, info.smallest_subnormal, info.tiny, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 2.0**30 + 1, info.max, INF]
    edges = [info.maxexp, np.log(2.0) * info.maxexp, info.minexp - info.nmant - 2, 720.0, 750.0, 1100.0]
    with np.errstate(all="ignore"):
        positive = np.array(sizes + edges).astype(dtype)
    return np.concatenate([positive, -positive, np.array([np.nan], dtype)])


def assert_as_known(found: Any, known: Any, bound: float, x: Any, cancels: bool = False) -> None:
    """Zeros, infinities and nan are the same, with their signs; what is finite is close.

    Where terms cancel, close means in units of the largest operand.
    """
    for value, reference, *at in zip(found, known, *x, strict=True):
        if np.isnan(reference):
            assert np.isnan(value), (at, value)
        elif reference == 0 or np.isinf(reference):
            same = value == reference and np.signbit(value) == np.signbit(reference)
            assert same, (at, value, reference)
        else:
            unit = np.spacing(
                np.max(np.abs([reference, *at] if cancels and np.all(np.isfinite(at)) else reference)) / 2
            )
            assert abs(float(value) - float(reference)) <= 2 * bound * unit, (at, value, reference)


# NumPy's or SciPy's value is 0 where the exact one is a subnormal number, or has an error of some ULP more.
INACCURATE = {"sech", "sech_squared", "expit", "erfc", "erfcx", "bell", "half_bell", "gammaln", "digamma", "trigamma",
              "i0", "i1", "i2", "i0e", "i1e", "i0e_slope", "i1e_slope"}  # fmt: skip


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*CASES, *EXACT])
def test_special_values_are_numpys(name: str, dtype: Any, machine: str) -> None:
    x = specials(dtype)
    if name in INACCURATE:
        # Nor is it for subnormal numbers.
        x = x[((np.abs(x) < 20) & ((np.abs(x) > 1e-300) | (x == 0))) | ~np.isfinite(x) | (np.abs(x) > 1e5)]
    with np.errstate(all="ignore"):
        known = CASES[name].known(x) if name in CASES else EXACT[name](x)
    found = kernel(name, dtype, widest(dtype), machine)(x)
    assert_as_known(found, known, 6.0 if name in CASES else 0.0, (x,))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*PAIRS, *EXACT_PAIRS])
def test_special_values_of_two_operands_are_numpys(name: str, dtype: Any, machine: str) -> None:
    x, y = (np.array(part, dtype) for part in zip(*itertools.product(specials(dtype), repeat=2), strict=True))
    if name in EXACT_PAIRS:
        # Of equal zeros NumPy's answer depends on its vectors.
        x, y = x[(x != 0) | (y != 0)], y[(x != 0) | (y != 0)]
    with np.errstate(all="ignore"):
        known = PAIRS[name].known(x, y) if name in PAIRS else EXACT_PAIRS[name](x, y)
    found = kernel(name, dtype, widest(dtype), machine)(x, y)
    assert_as_known(found, known, 6.0 if name in PAIRS else 0.0, (x, y), cancels=name.startswith("logaddexp"))


def quotient_of_roots(name: str, a: Any, b: Any) -> Any:
    with np.errstate(all="ignore"):
        return a / np.sqrt(b) if name == "inverse_root" else 1 / np.sqrt(a) * (1 / np.sqrt(b))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", INVERSE_ROOTS)
def test_reciprocals_of_roots_are_within_the_bounds_in_every_binade(name: str, dtype: Any, machine: str) -> None:
    info = np.finfo(dtype)
    random = np.random.default_rng(3)
    exponents = np.arange(info.minexp - info.nmant, info.maxexp, 1 if dtype == np.float32 else 3)
    b = np.ldexp(random.uniform(1, 2, len(exponents)), exponents).astype(dtype)
    a = np.concatenate([random.permutation(b), np.nextafter(b, dtype(INF)), b[::-1]])
    b = np.concatenate([b, b, b])
    if name == "inverse_root":
        a = random.choice([1.0, -1.0, 0.5, -2.0], len(b)).astype(dtype)
    with mp.workprec(200):
        tops = [mp.mpf(float(c)) for c in a] if name == "inverse_root" else [1 / mp.sqrt(float(c)) for c in a]
        exact = [c / mp.sqrt(float(x)) for c, x in zip(tops, b, strict=True)]
    errors = ulps(kernel(name, dtype, widest(dtype), machine)(a, b), exact, dtype)
    worst = int(errors.argmax())
    assert errors[worst] <= INVERSE_ROOTS[name], (a[worst], b[worst], errors[worst])


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", INVERSE_ROOTS)
def test_special_values_of_reciprocals_of_roots_are_those_of_quotients(name: str, dtype: Any, machine: str) -> None:
    ones = np.array([1.0, -0.5], dtype)
    sides = (ones if name == "inverse_root" else specials(dtype), specials(dtype))
    a, b = (np.array(part, dtype) for part in zip(*itertools.product(*sides), strict=True))
    found = kernel(name, dtype, widest(dtype), machine)(a, b)
    assert_as_known(found, quotient_of_roots(name, a, b), 2.0, (a, b))
    if name == "inverse_root":
        powers = np.ldexp(dtype(1), 2 * np.arange(-20, 20)).astype(dtype)
        np.testing.assert_array_equal(kernel(name, dtype, widest(dtype), machine)(powers * 0 + 1, powers), powers**-0.5)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_quotients_by_squares_of_lengths_neither_overflow_nor_lose_digits(dtype: Any, machine: str) -> None:
    """What the derivatives of arctan2 are: in the usual range nearer than two quotients, elsewhere these."""
    info = np.finfo(dtype)
    random = np.random.default_rng(4)
    divide = Kernel(FUNCTIONS["over_square_of_hypot"], dtype, 3, widest(dtype), MACHINES[machine], False)
    exponents = np.arange(info.minexp + 8, info.maxexp - 9)
    y = np.ldexp(random.uniform(1, 2, len(exponents)), exponents).astype(dtype)
    x = np.ldexp(y, random.integers(-7, 7, len(y))).astype(dtype) * random.choice([-1, 1], len(y)).astype(dtype)
    with mp.workprec(200):
        exact = [mp.mpf(float(a)) / (mp.mpf(float(a)) ** 2 + mp.mpf(float(b)) ** 2) for a, b in zip(x, y, strict=True)]
    usual = np.abs(exponents) < (40 if dtype == np.float32 else 400)
    errors = ulps(divide(x, y, x), exact, dtype)
    assert errors[usual].max() <= 1.75 and errors.max() <= 4
    a, b = (np.array(part, dtype) for part in zip(*itertools.product(specials(dtype), repeat=2), strict=True))
    with np.errstate(all="ignore"):
        known = a / np.hypot(a, b) / np.hypot(a, b)
    assert_as_known(divide(a, b, a), known, 4.0, (a, b))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DIVISIONS)
def test_division_is_numpys(name: str, dtype: Any, machine: str) -> None:
    """Bit by bit: of numbers of all sizes, of multiples and their neighbours, of specials and beside these."""
    random, info = np.random.default_rng(7), np.finfo(dtype)
    pairs = [np.array(part, dtype) for part in zip(*itertools.product(specials(dtype), repeat=2), strict=True)]
    for least in (-3, -60, info.minexp - info.nmant):
        sizes = random.integers(least, min(-least, info.maxexp), (2, 2000))
        numbers = np.ldexp(random.uniform(-1, 1, sizes.shape), sizes).astype(dtype)
        whole = np.rint(np.ldexp(random.uniform(0, 1, 2000), random.integers(0, 60, 2000))).astype(dtype)
        with np.errstate(all="ignore"):
            multiples = numbers[1] * whole
            beside = np.nextafter(multiples, random.choice([-INF, INF], 2000).astype(dtype))
        largest = np.full(2000, info.max)
        tops = np.ldexp(random.uniform(0.5, 1, 2000), info.maxexp - random.integers(0, 50, 2000)).astype(dtype)
        given = ([pairs[0], numbers[0], multiples, beside, largest], [pairs[1], *[numbers[1]] * 3, tops])
        x, y = map(np.concatenate, given)
        with np.errstate(all="ignore"):
            known = DIVISIONS[name](x, y)
        found = kernel(name, dtype, widest(dtype), machine)(x, y)
        same = (found == known) & (np.signbit(found) == np.signbit(known)) | (np.isnan(found) & np.isnan(known))
        assert same.all(), (x[~same][:3], y[~same][:3], found[~same][:3], known[~same][:3])


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", [*CASES, *PAIRS])
def test_the_number_of_lanes_does_not_matter(name: str, machine: str) -> None:
    for dtype in DTYPES:
        if name in CASES:
            arrays: tuple[Any, ...] = (np.concatenate([sample(name, dtype, 60), specials(dtype)]),)
        else:
            arrays = tuple(
                np.concatenate([part, specials(dtype), special])
                for part, special in zip(
                    pair_sample(name, dtype, 60), (specials(dtype), specials(dtype)[::-1]), strict=True
                )
            )
        expected = kernel(name, dtype, widest(dtype), machine)(*arrays)
        for lanes in LANES if dtype == np.float64 else [1, 4]:
            found = kernel(name, dtype, lanes, machine)(*arrays)
            same = (found == expected) & (np.signbit(found) == np.signbit(expected))
            assert np.all(same | (np.isnan(found) & np.isnan(expected))), (name, lanes)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", [*CASES, *PAIRS])
def test_called_functions_are_those_written_out(name: str, machine: str) -> None:
    for dtype in DTYPES:
        if name in CASES:
            arrays: tuple[Any, ...] = (np.concatenate([sample(name, dtype, 60), specials(dtype)]),)
        else:
            arrays = tuple(pair_sample(name, dtype, 60))
        found = kernel(name, dtype, widest(dtype), machine, outlined=True)(*arrays)
        np.testing.assert_array_equal(found, kernel(name, dtype, widest(dtype), machine)(*arrays))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", ["sin", "cos", "tan", "pow", "arcsinh"])
def test_other_lanes_do_not_matter(name: str, machine: str) -> None:
    """A lane that takes a path of its own leaves the others as they are."""
    run = kernel(name, np.float64, 8, machine)
    x = np.random.default_rng(5).uniform(0.5, 3, 64)
    second = (np.full(64, 1.7),) if name in PAIRS else ()
    expected = run(x, *second)
    mixed = x.copy()
    mixed[::5] = 1e300
    found = run(mixed, *second)
    untouched = mixed == x
    assert np.array_equal(found[untouched], expected[untouched])
    assert not np.array_equal(found[~untouched], expected[~untouched])


@pytest.mark.parametrize("machine", MACHINES)
def test_whole_results_are_exact(machine: str) -> None:
    whole = np.arange(-1074.0, 1024.0)
    assert np.array_equal(kernel("exp2", np.float64, 8, machine)(whole), np.ldexp(1.0, whole.astype(int)))
    assert np.array_equal(kernel("log2", np.float64, 8, machine)(np.ldexp(1.0, whole.astype(int))), whole)
    assert np.array_equal(kernel("log10", np.float64, 8, machine)(10.0 ** np.arange(23)), np.arange(23.0))
    numbers = np.arange(-2000.0, 2001.0)
    assert np.array_equal(kernel("cbrt", np.float64, 8, machine)(numbers**3), numbers)
    power = kernel("pow", np.float64, 8, machine)
    for exponent in (1.0, 2.0, 3.0, 4.0):
        assert np.array_equal(power(numbers, np.full_like(numbers, exponent)), numbers**exponent)
    assert np.array_equal(power(numbers**2, np.full_like(numbers, 0.5)), np.abs(numbers))


@pytest.mark.parametrize("machine", MACHINES)
def test_whole_results_of_float32_are_exact(machine: str) -> None:
    whole = np.arange(-149.0, 128.0, dtype=np.float32)
    assert np.array_equal(kernel("exp2", np.float32, 16, machine)(whole), np.ldexp(np.float32(1), whole.astype(int)))
    assert np.array_equal(kernel("log2", np.float32, 16, machine)(np.ldexp(np.float32(1), whole.astype(int))), whole)
    numbers = np.arange(-256.0, 257.0, dtype=np.float32)
    assert np.array_equal(kernel("cbrt", np.float32, 16, machine)(numbers**3), numbers)
    power = kernel("pow", np.float32, 16, machine)
    for exponent in (1.0, 2.0, 3.0):
        assert np.array_equal(power(numbers, np.full_like(numbers, exponent)), numbers**exponent)
    assert np.array_equal(power(numbers**2, np.full_like(numbers, 0.5)), np.abs(numbers))


@pytest.mark.slow
def test_coefficients_are_what_the_fit_gives() -> None:
    assert fit_coefficients.TARGET.read_text() == fit_coefficients.generated()


def test_machines_differ() -> None:
    """The plain machine is one without the host's instructions, so that both ways are tested."""
    assert "fma" not in MACHINES["plain"].features


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("order", [0, 1, 2])
def test_modified_bessel_functions_are_finite_a_little_longer_than_exp(order: int, machine: str) -> None:
    x = np.array([700.0, 709.5, 709.9, 712.0, 713.9, -713.9])
    with mp.workprec(200):
        exact = [mp.besseli(order, mp.mpf(value)) for value in x]
    assert ulps(kernel(f"i{order}", np.float64, 8, machine)(x), exact, np.float64).max() <= 4


@pytest.mark.skipif(sys.platform != "linux" or platform.machine() != "x86_64", reason="asks the C library of Linux")
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["exp", "exp2", "expm1", "expit", "sech", "sech_squared", "tanh", "erfc", "bell",
                                  "half_bell", "logaddexp"])  # fmt: skip
def test_nothing_underflows_where_a_result_is_0(name: str, dtype: Any, machine: str) -> None:
    """Some processors take a hundred cycles and more for a product that is rounded to 0."""
    far = np.repeat(np.array([1100.0, 1e4, 1e30, INF], dtype), 64)
    x = np.concatenate([far, -far])
    run, result = kernel(name, dtype, widest(dtype), machine), np.empty_like(x)
    flags, given = ctypes.CDLL("libm.so.6"), (x, np.zeros_like(x))[: 2 if name in PAIRS else 1]
    underflow = 0x10
    flags.feclearexcept(underflow)
    run.run(*given, result)
    assert not flags.fetestexcept(underflow)
    finite, below = np.isfinite(x), {"exp": 0, "exp2": 0, "expm1": -1, "expit": 0, "tanh": -1, "erfc": 2}
    if name in below:
        assert np.all(result[finite & (x < 0)] == below[name])
    elif name != "logaddexp":
        assert np.all(result[finite] == 0)
