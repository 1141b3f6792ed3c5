"""Fits the polynomials of backends/llvm/vector_math and writes them as backends/llvm/coefficients.py.

    python tests/backends/llvm/fit_coefficients.py

Every fit interpolates in Chebyshev's points with 60 digits, which is close to the best polynomial; the coefficients are
then rounded to float64. What is fitted is what remains when the leading terms of a function, which are computed
exactly or nearly so, are taken off: its absolute error is a relative one of the function.
"""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import mpmath as mp

TARGET = Path(__file__).parents[3] / "backends" / "llvm" / "coefficients.py"

HEADER = '''"""Coefficients of the polynomials of vector_math, from the constant one up, and constants in parts.

Written by tests/backends/llvm/fit_coefficients.py: change that, not this. Of a `Fit`, ``double`` serves float64, and
``single`` float32.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Fit(NamedTuple):
    """A polynomial, or a constant in parts, for float64 and for float32."""

    double: tuple[float, ...]
    single: tuple[float, ...]


# fmt: off
'''


class Problem(NamedTuple):
    """A function to fit on an interval with so many coefficients, for float64 and for float32."""

    name: str
    text: str
    function: Callable[[Any], Any]
    interval: tuple[Any, Any]
    double: int
    single: int
    weight: Callable[[Any], Any] | None = None


def fit(problem: Problem, count: int) -> tuple[list[Any], Any]:
    """The coefficients from the constant one up, and the largest (weighted) error."""
    if problem.weight is None:
        found, error = mp.chebyfit(problem.function, list(problem.interval), count, error=True)
        return found[::-1], error
    return weighted_fit(problem.function, problem.weight, problem.interval, count)


def weighted_fit(
    function: Callable[[Any], Any], weight: Callable[[Any], Any], interval: tuple[Any, Any], count: int
) -> tuple[list[Any], Any]:
    """Least squares in Chebyshev's points, which are many, of the error times its weight."""
    low, high = (mp.mpf(end) for end in interval)
    nodes = [mp.cos(mp.pi * (k + mp.mpf(0.5)) / 80) for k in range(80)]
    points = [(low + high) / 2 + (high - low) / 2 * node for node in nodes]
    weights = [weight(point) for point in points]
    rows = [[w * mp.cos(j * mp.acos(t)) for j in range(count)] for t, w in zip(nodes, weights, strict=True)]
    values = [w * function(point) for point, w in zip(points, weights, strict=True)]
    solution, _ = mp.qr_solve(mp.matrix(rows), mp.matrix(values))
    smooth = list(solution)

    def series(x: Any) -> Any:
        t = mp.acos((2 * x - low - high) / (high - low))
        return sum(c * mp.cos(j * t) for j, c in enumerate(smooth))

    found = mp.chebyfit(series, [low, high], count)[::-1]
    errors = [abs(sum(c * x**j for j, c in enumerate(found)) - function(x)) for x in points]
    return found, max(error * w for error, w in zip(errors, weights, strict=True))


def near_zero(function: Callable[[Any], Any], at_zero: Any) -> Callable[[Any], Any]:
    """The function, with its limit where the formula is 0/0."""
    return lambda x: at_zero if abs(x) < mp.mpf(10) ** -15 else function(x)


def half_logarithm(z: Any) -> Any:
    root = mp.sqrt(z)
    return 2 * (mp.atanh(root) / root - 1) / z


def inverse_square(function: Callable[[Any], Any], first: Any) -> Callable[[Any], Any]:
    """(f(√z)/√z - 1)/z of an odd function, and its limit ``first`` at 0."""
    return near_zero(lambda z: (function(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, first)


def scaled_erfc(t: Any) -> Any:
    """(1 + 2x) exp(x²) erfc(x) at x = 4 (1 + t)/(1 - t): from 1 at x = 0 to 2/√π at infinity."""
    if t > 1 - mp.mpf(10) ** -12:
        return 2 / mp.sqrt(mp.pi)
    x = 4 * (1 + t) / (1 - t)
    if x > 1000:
        series = sum((-1) ** k * mp.fac2(2 * k - 1) / (2 * x * x) ** k for k in range(1, 12))
        return (1 + 2 * x) / (x * mp.sqrt(mp.pi)) * (1 + series)
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def stirling(z: Any) -> Any:
    """x (log Γ(x) - (x - 1/2) log x + x - log(2π)/2) at x = 1/√z."""
    x = 1 / mp.sqrt(z)
    return x * (mp.loggamma(x) - (x - 0.5) * mp.log(x) + x - mp.log(2 * mp.pi) / 2)


def digamma_series(z: Any) -> Any:
    """x² (log x - 1/(2x) - ψ(x)) at x = 1/√z."""
    x = 1 / mp.sqrt(z)
    return x * x * (mp.log(x) - 1 / (2 * x) - mp.digamma(x))


def trigamma_series(z: Any) -> Any:
    """x³ (ψ'(x) - 1/x - 1/(2x²)) at x = 1/√z."""
    x = 1 / mp.sqrt(z)
    return x**3 * (mp.psi(1, x) - 1 / x - 1 / (2 * x * x))


def lgamma_middle(t: Any) -> Any:
    """log Γ(2 + t) / (t (1 + t))."""
    return mp.loggamma(2 + t) / (t * (1 + t))


ROOT = mp.mpf(0)


def digamma_middle(t: Any) -> Any:
    """ψ(x)/(x - x0) at x = 3/2 + t, where ψ(x0) = 0."""
    x = mp.mpf(1.5) + t
    return mp.digamma(x) / (x - ROOT)


def exponentials() -> list[Problem]:
    """Exponentials."""
    log2 = mp.log(2)
    half = log2 / 2 * mp.mpf("1.0001")
    return [
        Problem(
            "EXP",
            "exp(r) = 1 + r + r² p(r), |r| <= log(2)/2",
            near_zero(lambda r: (mp.exp(r) - 1 - r) / r**2, mp.mpf(0.5)),
            (-half, half),
            10,
            6,
        ),
        Problem(
            "EXP_SHORT",
            "exp(r) = 1 + r + r² p(r), |r| <= log(2)/32",
            near_zero(lambda r: (mp.exp(r) - 1 - r) / r**2, mp.mpf(0.5)),
            (-half / 16, half / 16),
            6,
            3,
        ),
        Problem(
            "EXP_SHORTER",
            "the same, for errors beside 1",
            near_zero(lambda r: (mp.exp(r) - 1 - r) / r**2, mp.mpf(0.5)),
            (-half / 16, half / 16),
            5,
            2,
            lambda r: r**2,
        ),
        Problem(
            "EXP2",
            "2**r = 1 + r p(r), |r| <= 1/2",
            near_zero(lambda r: (mp.power(2, r) - 1) / r, log2),
            (-0.5, 0.5),
            12,
            6,
        ),
        Problem(
            "EXP2_SHORT",
            "2**r = 1 + r p(r), |r| <= 1/32",
            near_zero(lambda r: (mp.power(2, r) - 1) / r, log2),
            (-mp.mpf(1) / 32, mp.mpf(1) / 32),
            6,
            3,
        ),
    ]


def logarithms() -> list[Problem]:
    """Logarithms, and the reciprocal that they begin with."""
    third, log2 = mp.mpf(1) / 3, mp.log(2)
    return [
        Problem(
            "LOG2_SHORT",
            "log2(1 + f) = f/log(2) + f² p(f), |f| <= 1/42",
            near_zero(lambda f: (mp.log1p(f) / f - 1) / (f * log2), -1 / (2 * log2)),
            (-mp.mpf(1) / 42, mp.mpf(1) / 42),
            9,
            4,
        ),
        Problem(
            "LOG",
            "log((1 + s)/(1 - s)) = 2s + s z p(z), |s| <= 1/5, z = s²",
            near_zero(half_logarithm, 2 * third),
            (0, mp.mpf(1) / 25),
            9,
            4,
        ),
        Problem(
            "LOG_SHORT",
            "log(1 + f) = f + f² p(f), 3/4 <= 1 + f <= 3/2, for float32",
            near_zero(lambda f: (mp.log1p(f) - f) / f**2, -mp.mpf(1) / 2),
            (-0.25, 0.5),
            9,
            9,
            abs,
        ),
        Problem(
            "RECIPROCAL",
            "1/(1 + f) = 1 - f p(f), 3/4 <= 1 + f <= 3/2, roughly",
            lambda f: 1 / (1 + f),
            (-0.25, 0.5),
            4,
            2,
        ),
    ]


def trigonometric() -> list[Problem]:
    """Sines and their inverses."""
    third, sixth = mp.mpf(1) / 3, mp.mpf(1) / 6
    quarter = (mp.pi / 4 * mp.mpf("1.0001")) ** 2
    atan = (mp.sqrt(2) - 1) ** 2 * mp.mpf("1.0001")
    return [
        Problem(
            "SIN",
            "sin(r) = r + r z p(z), z = r² <= (π/4)²",
            inverse_square(mp.sin, -sixth),
            (0, quarter),
            7,
            3,
        ),
        Problem(
            "COS",
            "cos(r) = 1 - z/2 + z² p(z), z = r² <= (π/4)²",
            near_zero(lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, mp.mpf(1) / 24),
            (0, quarter),
            7,
            3,
        ),
        Problem(
            "ARCSIN",
            "arcsin(r) = r + r z p(z), z = r² <= 1/4",
            inverse_square(mp.asin, sixth),
            (0, mp.mpf(1) / 4),
            13,
            6,
        ),
        Problem(
            "ARCTAN",
            "arctan(r) = r + r z p(z), z = r² <= (√2 - 1)²",
            inverse_square(mp.atan, -third),
            (0, atan),
            12,
            5,
        ),
        Problem(
            "ARCTAN_OF_QUOTIENT",
            "arctan(r) = r + r z p(z), z = r² <= 1",
            inverse_square(mp.atan, -third),
            (0, 1),
            24,
            10,
        ),
    ]


def powers() -> list[Problem]:
    """Powers and roots."""
    third = mp.mpf(1) / 3
    return [
        Problem(
            "POW_LOG",
            "log(1 + f) = f - f²/2 + f³ p(f), |f| <= 1/20",
            near_zero(lambda f: (mp.log1p(f) - f + f * f / 2) / f**3, third),
            (-0.05, 0.05),
            10,
            4,
        ),
        Problem(
            "CBRT",
            "m**(-1/3) = p(m - 3/2), 1 <= m <= 2",
            lambda t: mp.power(mp.mpf(1.5) + t, -third),
            (-0.5, 0.5),
            5,
            4,
        ),
    ]


def error_functions() -> list[Problem]:
    """Error functions."""
    return [
        Problem(
            "ERF",
            "erf(x) = x + x p(z), z = x² <= 1",
            near_zero(lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, 2 / mp.sqrt(mp.pi) - 1),
            (0, 1),
            13,
            7,
        ),
        Problem(
            "ERF_TAIL",
            "erf(x) = 1 - exp(-p(x - 1)), 1 <= x <= 6",
            lambda t: -mp.log(mp.erfc(1 + t)),
            (0, 5),
            18,
            7,
            lambda t: mp.erfc(1 + t) + mp.mpf(10) ** -15,
        ),
        Problem(
            "ERFC",
            "(1 + 2x) exp(x²) erfc(x) = p((x - 4)/(x + 4)), x >= 0",
            scaled_erfc,
            (-1, 1),
            24,
            15,
        ),
    ]


def gammas() -> list[Problem]:
    """The gamma function and what its reflection needs."""
    return [
        Problem(
            "STIRLING",
            "log Γ(x) = (x - 1/2) log x - x + log(2π)/2 + p(1/x²)/x, x >= 9/2",
            lambda z: stirling(z) if z > mp.mpf(10) ** -12 else mp.mpf(1) / 12 - z / 360,
            (0, 4 / mp.mpf(81)),
            9,
            4,
        ),
        Problem(
            "LGAMMA",
            "log Γ(2 + t) = t (1 + t) p(t), -1 <= t <= 1/2",
            lambda t: mp.euler if abs(1 + t) < mp.mpf(10) ** -15 else near_zero(lgamma_middle, 1 - mp.euler)(t),
            (-1, 0.5),
            26,
            12,
        ),
        Problem(
            "SINPI",
            "sin(π r) = r p(r²), |r| <= 1/2",
            near_zero(lambda z: mp.sin(mp.pi * mp.sqrt(z)) / mp.sqrt(z), mp.pi),
            (0, 0.25),
            9,
            5,
        ),
        Problem(
            "DIGAMMA_TAIL",
            "ψ(x) = log x - 1/(2x) - p(1/x²)/x², x >= 3",
            lambda z: digamma_series(z) if z > mp.mpf(10) ** -12 else mp.mpf(1) / 12 - z / 120,
            (0, mp.mpf(1) / 9),
            13,
            5,
        ),
        Problem(
            "DIGAMMA",
            "ψ(3/2 + t) = (3/2 + t - x0) p(t), |t| <= 1/2, ψ(x0) = 0",
            digamma_middle,
            (-0.5, 0.5),
            23,
            10,
        ),
        Problem(
            "TRIGAMMA_TAIL",
            "ψ'(x) = 1/x + 1/(2x²) + p(1/x²)/x³, x >= 2",
            lambda z: trigamma_series(z) if z > mp.mpf(10) ** -12 else mp.mpf(1) / 6 - z / 30,
            (0, mp.mpf(1) / 4),
            20,
            10,
        ),
        Problem(
            "TRIGAMMA", "ψ'(3/2 + t) = p(t), |t| <= 1/2", lambda t: mp.psi(1, mp.mpf(1.5) + t), (-0.5, 0.5), 24, 13
        ),
    ]


def bessel_series(order: int) -> Callable[[Any], Any]:
    """(n! I_n(x)/(x/2)ⁿ - 1)/z at z = (x/2)²."""

    def function(z: Any) -> Any:
        return sum(z**k * mp.factorial(order) / (mp.factorial(k + 1) * mp.factorial(k + 1 + order)) for k in range(60))

    return function


def bessel_tail(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of x = 16/(1 + t) >= 8, as one of t; its limit at infinity is that of a large number."""
    return lambda t: function(16 / max(1 + t, mp.mpf(10) ** -5))


def scaled_slope(order: int, x: Any) -> Any:
    """Less the derivative of exp(-x) I_n(x), x > 0."""
    between = mp.besseli(1, x) if order == 0 else (mp.besseli(0, x) + mp.besseli(2, x)) / 2
    return mp.exp(-x) * (mp.besseli(order, x) - between)


SLOPE_ROOT = mp.mpf(0)


def scaled_slope_near(order: int) -> Callable[[Any], Any]:
    """That times (1 + x)√(1 + x), over x - x0 if it is 0 at x0, as a function of (x - 2)/(x + 4)."""

    def function(t: Any) -> Any:
        x = (2 + 4 * t) / (1 - t)
        found = scaled_slope(order, x) * (1 + x) * mp.sqrt(1 + x)
        return found / (x - SLOPE_ROOT) if order else found

    return function


def bessels() -> list[Problem]:
    """Modified Bessel functions, and the derivatives of the scaled ones."""
    found = []
    for n in range(3):
        text = f"I_{n}(x) = (x/2)**{n}/{n}! (1 + z p(z)), z = (x/2)² <= 16"
        found.append(Problem(f"I{n}", text, bessel_series(n), (0, 16), 16, 10))
        tail = bessel_tail(lambda x, n=n: mp.sqrt(x) * mp.exp(-x) * mp.besseli(n, x))
        found.append(Problem(f"I{n}_TAIL", f"I_{n}(x) = exp(x)/√x p(16/x - 1), x >= 8", tail, (-1, 1), 24, 11))
    for n in range(2):
        derivative = f"-d/dx (exp(-x) I_{n}(x))"
        text = f"{derivative} = {'(x - x0) ' * n}p((x - 2)/(x + 4))/(1 + x)**1.5, x <= 8"
        found.append(Problem(f"I{n}E_SLOPE", text, scaled_slope_near(n), (-0.5, 0.5), 31, 16))
        tail = bessel_tail(lambda x, n=n: x * mp.sqrt(x) * scaled_slope(n, x))
        found.append(Problem(f"I{n}E_SLOPE_TAIL", f"{derivative} = p(16/x - 1)/x**1.5, x >= 8", tail, (-1, 1), 28, 14))
    return found


def problems() -> list[Problem]:
    return [*exponentials(), *logarithms(), *trigonometric(), *powers(), *error_functions(), *gammas(), *bessels()]


def parts(value: Any, *bits: int) -> tuple[float, ...]:
    """A number as a sum of floats: of so many bits each, and a last one of 53."""
    found: list[float] = []
    rest = mp.mpf(value)
    for count in bits:
        scale = mp.mpf(2) ** (count - 1 - int(mp.floor(mp.log(abs(rest), 2))))
        found.append(float(mp.floor(rest * scale) / scale))
        rest -= mp.mpf(found[-1])
    found.append(float(rest))
    return tuple(found)


def logarithm_table(part: int) -> tuple[float, ...]:
    """-log(i/16), i = 11 … 21, at the first four bits of i/16's mantissa: the first part a multiple of 2**-40."""
    table = [0.0] * 16
    for i in range(11, 22):
        exact = -mp.log(mp.mpf(i) / 16)
        first = mp.nint(exact * 2**40) / 2**40
        table[(2 * i if i < 16 else i) % 16] = float((first, exact - first)[part])
    return tuple(table)


def log2_table(part: int) -> tuple[float, ...]:
    """-log2(i/32), i = 21 … 43, at the last five bits of i: the first part a multiple of 2**-16."""
    table = [0.0] * 32
    for i in range(21, 44):
        exact = -mp.log(mp.mpf(i) / 32, 2)
        first = mp.nint(exact * 2**16) / 2**16
        table[i % 32] = float((first, exact - first)[part])
    return tuple(table)


def power_table(part: int, bits: int) -> tuple[float, ...]:
    """2**(i/16), i = 0 … 15, rounded to so many bits; or how much of it the rounded number lacks."""
    table = []
    for i in range(16):
        exact = mp.power(2, mp.mpf(i) / 16)
        first = mp.nint(exact * 2 ** (bits - 1)) / 2 ** (bits - 1)
        table.append(float((first, exact / first - 1)[part]))
    return tuple(table)


def words() -> tuple[int, ...]:
    """The bits of 2/π behind 64 zeros, in 20 words."""
    with mp.workprec(1400):
        bits = int(mp.floor(2 / mp.pi * mp.mpf(2) ** (19 * 64)))
    return tuple(bits >> 64 * (19 - k) & (1 << 64) - 1 for k in range(20))


def single_parts(value: Any, *bits: int) -> tuple[float, ...]:
    """A number as a sum of floats, each the nearest of so many bits."""
    found: list[float] = []
    rest = mp.mpf(value)
    for count in bits:
        scale = mp.mpf(2) ** (count - 1 - int(mp.floor(mp.log(abs(rest), 2))))
        found.append(float(mp.nint(rest * scale) / scale))
        rest -= mp.mpf(found[-1])
    return tuple(found)


def pairs() -> list[tuple[str, str, Any, tuple[int, ...], tuple[int, ...]]]:
    """Name, text and value of the constants of both formats, and the bits of their parts."""
    log2, tens = mp.log(2), mp.log(10)
    text = "the first part of 32 or 15 bits: its product with an exponent is exact"
    return [
        ("LOG2", f"log(2), {text}", log2, (32,), (15, 24)),
        ("LOG2_ROUNDED", "log(2)", log2, (53,), (24, 24)),
        ("HALF_PI", "π/2 in parts of 53 and 33 bits, and one; in three of 24", mp.pi / 2, (53, 33), (24, 24, 24)),
        ("QUARTER_PI", "π/4", mp.pi / 4, (53,), (24, 24)),
        ("THREE_QUARTER_PI", "3π/4", 3 * mp.pi / 4, (53,), (24, 24)),
        ("PI", "π", mp.pi, (53,), (24, 24)),
        ("INVERSE_LOG2", "1/log(2)", 1 / log2, (53,), (24, 24)),
        ("INVERSE_LOG10", "1/log(10)", 1 / tens, (53,), (24, 24)),
        ("LOG10_2", f"log10(2), {text}", log2 / tens, (32,), (15, 24)),
    ]


def constants() -> list[tuple[str, str, tuple[float, ...]]]:
    table_text = "-log(i/16), i = 11 … 21, at the first four bits of the mantissa of i/16: the first part"
    return [
        ("HALF_PI_SHORT", "π/2 in parts whose products with 20 bits are exact, and one", parts(mp.pi / 2, 33, 33, 33)),
        ("LOG_TABLE", table_text, logarithm_table(0)),
        ("LOG_TABLE_LOW", "the second part", logarithm_table(1)),
        ("LOG2_TABLE", "-log2(i/32), i = 21 … 43, at the last five bits of i: the first part", log2_table(0)),
        ("LOG2_TABLE_LOW", "the second part", log2_table(1)),
        ("DIGAMMA_ROOT", "the positive root of ψ", parts(ROOT, 53)),
        ("I1E_SLOPE_ROOT", "where the derivative of exp(-x) I_1(x) is 0", parts(SLOPE_ROOT, 53)),
        ("CUBE_ROOTS", "2**(-r/3) for r = -1, 0, 1", tuple(float(mp.power(2, -mp.mpf(r) / 3)) for r in (-1, 0, 1))),
    ]


def tuple_text(values: tuple[float, ...] | tuple[int, ...], margin: str) -> str:
    text = ", ".join(map(repr, values)) + "," * (len(values) == 1)
    if len(margin) + len(text) < 110:
        return f"({text})"
    inner = textwrap.indent(textwrap.fill(text + ",", 110), f"{margin}    ")
    return f"(\n{inner}\n{margin})"


def fit_text(name: str, double: str, single: str) -> str:
    return f"{name}: Final = Fit(\n    {double},\n    {single},\n)\n\n"


def generated() -> str:
    """The text of coefficients.py."""
    global ROOT, SLOPE_ROOT
    with mp.workdps(60), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of mpmath's own calls
        ROOT = mp.findroot(mp.digamma, mp.mpf("1.46163214496836234126"))
        SLOPE_ROOT = mp.findroot(lambda x: scaled_slope(1, x), mp.mpf("1.545"))
        lines = [HEADER]
        for problem in problems():
            texts, errors = [], []
            for count in (problem.double, problem.single):
                found, error = fit(problem, count)
                texts.append(tuple_text(tuple(float(value) for value in found), "    "))
                errors.append(mp.nstr(error, 2))
            lines.append(f"# {problem.text}; largest errors of p {errors[0]} and {errors[1]}\n")
            lines.append(fit_text(problem.name, *texts))
        for name, text, part in (
            ("POWERS", "2**(i/16)", 0),
            ("POWERS_LOW", "2**(i/16) over the number above, less 1", 1),
        ):
            lines.append(f"# {text}, i = 0 … 15\n")
            lines.append(fit_text(name, *(tuple_text(power_table(part, bits), "    ") for bits in (53, 24))))
        for name, text, value, double, single in pairs():
            lines.append(f"# {text}\n")
            both = (parts(value, *double), single_parts(value, *single))
            lines.append(fit_text(name, *(tuple_text(part, "    ") for part in both)))
        lines.append(f"# 2/π behind 64 zeros, in words\nTWO_OVER_PI: Final = {tuple_text(words(), '')}\n")
        for name, text, values in constants():
            lines.append(f"# {text}\n{name}: Final = {tuple_text(values, '')}\n")
    return "".join(lines)


if __name__ == "__main__":
    TARGET.write_text(generated())
