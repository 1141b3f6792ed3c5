"""Helper functions of special functions: families closed under differentiation, accurate where a formula would cancel.

They are written as those of ``helpers.py``, which gives them to generated programs.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def gaussian_derivative(x: Any, n: int, a: float) -> Any:
    """The n-th derivative of exp(-a x²): a Hermite polynomial times exp(-a x²); 0 where x is infinite.

    The square is split, x² = h² + (x - h)(x + h) with h² exact, as exp magnifies its rounding error.
    """
    dtype = np.asarray(x).dtype
    x = np.asarray(x, np.promote_types(dtype, np.float64))
    far = np.abs(x) > 100
    x = np.where(far, 0.0, x)
    h = x.astype(np.float32).astype(x.dtype)
    polynomial, lower = np.ones_like(x), np.zeros_like(x)
    for k in range(n):
        raised = x * polynomial + k * lower if k else x
        polynomial, lower = -2 * a * raised, polynomial
    value = polynomial * (np.exp(-a * h * h) * np.exp(-a * (x - h) * (x + h)))
    return np.where(far, 0.0, value).astype(dtype)[()]


def erfcx_derivative(x: Any, n: int) -> Any:
    """The n-th derivative of erfcx(x) = exp(x²) erfc(x), n >= 1: (-1)ⁿ 2ⁿ n! times y(n), the scaled repeated integral.

    y(k) = (y(k-2)/2 - x y(k-1))/k (DLMF 7.18.7) goes forward where x is small, and backward, from where y is as good
    as 0, where x is large; all terms are of one sign there. Then y(0) = erfcx(x).
    """
    import scipy.special

    dtype = np.asarray(x).dtype
    x = np.asarray(x, np.promote_types(dtype, np.float64))
    small, large = np.where(x < 2, x, 0.0), np.where(x < 2, 2.0, np.minimum(x, 1e10))
    y, before = scipy.special.erfcx(small), np.full_like(x, 2 / np.sqrt(np.pi))
    for k in range(1, n + 1):
        y, before = (before / 2 - small * y) / k, y
    below, above, wanted = np.full_like(x, 1e-290), np.zeros_like(x), np.zeros_like(x)
    for k in range(n + 60, 0, -1):
        wanted = below if k == n else wanted
        below, above = 2 * (k + 1) * above + 2 * large * below, below
        scale = np.where(below > 1e100, 1e-100, 1.0)
        below, above, wanted = below * scale, above * scale, wanted * scale
    backward = wanted / below * scipy.special.erfcx(large) * (large / np.maximum(x, large)) ** (n + 1.0)
    sign = 1.0
    for k in range(1, n + 1):
        sign *= -2.0 * k
    return (sign * np.where(x < 2, y, np.where(np.isnan(x), x, backward))).astype(dtype)[()]


def dawsn_derivative(x: Any, n: int) -> Any:
    """The n-th derivative of Dawson's integral D, n >= 1: D' = 1 - 2 x D and D⁽ᵏ⁺¹⁾ = -2 x D⁽ᵏ⁾ - 2 k D⁽ᵏ⁻¹⁾.

    Where x is large these cancel: there D is its asymptotic series, the sum of (2k-1)!!/(2 x)(2 x²)⁻ᵏ.
    """
    import scipy.special

    dtype = np.asarray(x).dtype
    x = np.asarray(x, np.promote_types(dtype, np.float64))
    far = np.abs(x) > 6
    near, large = np.where(far, 0.0, x), np.where(far, np.abs(x), np.inf)
    before, value = scipy.special.dawsn(near), 1.0 - 2.0 * near * scipy.special.dawsn(near)
    for k in range(1, n):
        before, value = value, -2.0 * (near * value + k * before)
    series = np.zeros_like(x)
    coefficient = 0.5
    for k in range(34):
        rising = 1.0
        for j in range(n):
            rising *= -(2.0 * k + 1 + j)
        series = series + coefficient * rising * large ** -(2.0 * k + 1 + n)
        coefficient *= (2 * k + 1) / 2.0
    sign = np.sign(x) if n % 2 == 0 else 1.0
    value = np.where(np.isnan(x), x, np.where(far, series * sign, value))
    return value.astype(dtype)[()]


def exprel_derivative(x: Any, n: int) -> Any:
    """The n-th derivative of (exp(x) - 1)/x, n >= 1: the integral of tⁿ exp(x t) over t in [0, 1].

    By quadrature where x is small, as n! P(n + 1, -x)/(-x)ⁿ⁺¹ where it is far below 0, and by the recurrence
    x Eₙ = exp(x) - n Eₙ₋₁ where it is large.
    """
    import scipy.special

    dtype = np.asarray(x).dtype
    x = np.asarray(x, np.promote_types(dtype, np.float64))
    middle, low, high = np.where(np.abs(x) <= 10, x, 0.0), np.where(x < -10, -x, 10.0), np.where(x > 10, x, 10.0)
    nodes, weights = np.polynomial.legendre.leggauss(24)
    value = np.zeros_like(x)
    for t, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        value = value + weight * t**n * np.exp(middle * t)
    below, above = scipy.special.gammainc(n + 1.0, low) / low, scipy.special.exprel(high)
    for k in range(1, n + 1):
        below, above = below * (k / low), (np.exp(high) - k * above) / high
    above = np.where(np.isfinite(np.exp(high)), above, np.inf)
    return np.where(np.isnan(x), x, np.where(x < -10, below, np.where(x > 10, above, value))).astype(dtype)[()]


def log1p_ratio(x: Any, n: int) -> Any:
    """The n-th derivative of log(1 + x)/x, 1 at 0: (-1)ⁿ n! times the integral of tⁿ (1 + x t)⁻ⁿ⁻¹ over t in [0, 1].

    By quadrature near 0, and by x L⁽ⁿ⁾ + n L⁽ⁿ⁻¹⁾ = log1p⁽ⁿ⁾ elsewhere.
    """
    dtype = np.asarray(x).dtype
    x = np.asarray(x, np.promote_types(dtype, np.float64))
    inner = np.abs(x) < 0.5
    near, far = np.where(inner, x, 0.0), np.where(inner, 1.0, x)
    value = np.zeros_like(x)
    nodes, weights = np.polynomial.legendre.leggauss(24)
    for t, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        value = value + weight * t**n * (1 + near * t) ** -(n + 1.0)
    closed, power, factorial = np.log1p(far) / far, np.ones_like(x), 1.0
    for k in range(1, n + 1):
        power = power / (1 + far)  # in place of -(-1)ᵏ (k-1)! (1 + x)⁻ᵏ: all that a sign and a factor leave
        derivative = (-1.0) ** (k - 1) * factorial * power
        closed = (derivative - k * closed) / far
        factorial *= k
    sign = (-1.0) ** n * factorial
    return np.where(inner, sign * value, closed).astype(dtype)[()]


def second_bessel(x: Any) -> Any:
    """I(2, x), which is even; where x is so small that SciPy's is nan, the first term of its series."""
    import scipy.special

    size = np.abs(x)
    small = size < 1e-7
    return np.where(small, size * size * 0.125, scipy.special.iv(2.0, np.where(small, 1.0, size))).astype(x.dtype)[()]


def scaled_bessel_derivative(v: Any, x: Any, n: int, kind: str) -> Any:
    """The n-th derivative in x of exp(-x) I(v, x) (kind "i") or exp(x) K(v, x) (kind "k"), x > 0.

    It is a central difference of order 2n over v, which cancels where x is large; there the asymptotic series
    (DLMF 10.40), the sum of ±aₖ(v) x⁻ᵏ⁻¹ᐟ², is differentiated term by term. Below 0, and for whole v, exp(-abs(x))
    I(v, x) is even or odd; at its kink 0 the derivative is the mean of the two slopes.
    """
    import scipy.special

    dtype = np.asarray(x).dtype
    v, x = np.broadcast_arrays(np.asarray(v, np.float64), np.asarray(x, np.float64))
    function = scipy.special.ive if kind == "i" else scipy.special.kve
    negative, zero, x = np.signbit(x), x == 0, np.abs(x) if kind == "i" else x
    parity = np.where(v == np.rint(v), 1 - 2 * np.mod(v + n, 2), np.nan)
    far = x > np.maximum(30.0, v * v / 4)
    near, large = np.where(far, 1.0, x), np.where(far, x, np.inf)
    value, binomial = np.zeros_like(x), 1.0
    for j in range(2 * n + 1):
        value = value + (-1.0) ** j * binomial * function(v + n - j, near)
        binomial *= (2 * n - j) / (j + 1)
    value = value * ((0.5 if kind == "i" else -0.5) ** n)
    series, coefficient, sign = np.full_like(x, -0.0), np.ones_like(x), -1.0 if kind == "i" else 1.0
    for k in range(50):
        rising = 1.0
        for j in range(n):
            rising *= -(k + 0.5 + j)
        series = series + coefficient * rising * large ** -(k + 0.5 + n)
        factor = sign * (4 * v * v - (2 * k + 1) ** 2) / (8 * (k + 1))
        done = (np.abs(factor) > large) & (k > v) | np.isinf(large)
        coefficient = np.where(done, 0.0, coefficient * factor)
    series = series * np.sqrt(1 / (2 * np.pi) if kind == "i" else np.pi / 2)
    value = np.where(far, series, value)
    if kind == "i":
        value = value * np.where(negative, parity, 1.0) * np.where(zero, (1 + parity) / 2, 1.0)
    return value.astype(dtype)[()]


def bessel_order_derivative(v: Any, x: Any, n: int, kind: str) -> Any:
    """The n-th derivative in v of a Bessel function of SciPy's, which is accurate in real orders: central differences.

    In v it grows like (x/2)ᵛ/Γ(v), or its inverse; of a modified one, where x > v², it falls like exp(-v²/2x). Steps
    are a part of that length, by which the error of the formula, of order 8 or 9 in the step, is that of rounding:
    1e-11 of the function for n = 1, 1e-9 for n = 2.
    """
    import scipy.special

    dtype = np.asarray(x).dtype
    v, x = np.broadcast_arrays(np.asarray(v, np.float64), np.asarray(x, np.float64))
    function = getattr(scipy.special, kind)
    size = np.where(x > 0, x, 1.0)
    length = 1 / (1 + np.abs(np.log(size / 2) - np.log1p(np.abs(v))))
    if kind[0] in "ik":
        length = np.where(size > np.maximum(12.0, v * v), np.sqrt(size) / 2, length)
    step = 0.04 * (1 + n) * length
    spread = step * (2.0**44 + 1)
    step = spread - (spread - step)  # of nine bits: places are exact, and how logarithms round does not show
    places = range(-4 - n // 2, 5 + n // 2)
    value: Any = 0.0
    for k in places:  # n! times the coefficient of tⁿ in Lagrange's polynomial, which is 1 at k and 0 at the others
        weights = [1.0] + [0.0] * n
        for j in places:
            if j != k:
                weights = [((weights[m - 1] if m else 0.0) - j * weights[m]) / (k - j) for m in range(n + 1)]
        for m in range(1, n + 1):
            weights[n] *= m
        if k or n % 2 == 0:
            value = value + weights[n] * function(v + k * step, x)
    value = value / step**n
    if kind[0] in "ij":
        value = np.where((x == 0) & (v > 0), 0.0, value)
    return value.astype(dtype)[()]


def exponential_integral(n: Any, x: Any) -> Any:
    """E(n, x), the integral of exp(-x t)/tⁿ over t > 1, for whole n, negative ones too."""
    import scipy.special

    m = np.maximum(-n, 0)
    upper = scipy.special.gammaincc(m + 1, x) * scipy.special.gamma(m + 1) / x ** (m + 1)
    positive = np.clip(np.nan_to_num(n, nan=1.0), 1, 1e9).astype(np.int64)
    value = np.where(n > 0, scipy.special.expn(positive, x), np.where(np.isnan(n), np.nan, upper))
    return value.astype(np.asarray(x).dtype)[()]


def fresnel_phase(x: Any, turn: int) -> Any:
    """sin(pi x²/2 + turn pi/2), the phase reduced before it is rounded."""
    dtype = np.asarray(x).dtype
    x = np.abs(np.asarray(x, np.promote_types(dtype, np.float64)))
    x = np.where(x < 1e8, x, np.nan)
    h = x.astype(np.float32).astype(x.dtype)
    quarters = np.fmod(h * h, 4.0) + np.fmod(2 * h * (x - h), 4.0) + (x - h) ** 2
    quarters = np.fmod(quarters, 4.0)
    nearest = np.rint(quarters)
    angle = (np.pi / 2) * (quarters - nearest)
    phase = (nearest.astype(np.int64) + turn) % 4 if np.isfinite(nearest).all() else (np.nan_to_num(nearest) + turn) % 4
    sine, cosine = np.sin(angle), np.cos(angle)
    return np.choose(np.asarray(phase, np.int64), [sine, cosine, -sine, -cosine]).astype(dtype)[()]


def elliptic_derivative(p: Any, n: int, kind: str) -> Any:
    """The n-th derivative in p, n >= 1, of the complete elliptic integral K (kind "k") or E at the parameter 1 - p.

    By Gauss's series near p = 1, elsewhere from the first derivative, an integral of Carlson's, by the differential
    equation of the hypergeometric function F(a, 1/2; 1; 1 - p) (DLMF 15.10.1, 19.5.1-2).
    """
    import scipy.special

    dtype = np.asarray(p).dtype
    p = np.asarray(p, np.promote_types(dtype, np.float64))
    m = 1 - p
    a = 0.5 if kind == "k" else -0.5
    near = np.abs(m) < 0.5
    one = np.ones_like(p)
    factor = np.pi / 2
    for k in range(n):
        factor *= (a + k) * (0.5 + k) / (1 + k)
    series = factor * scipy.special.hyp2f1(a + n, 0.5 + n, 1.0 + n, np.where(near, m, 0.0))
    m, q = np.where(near, -1.0, m), np.where(near, 2.0, p)
    if kind == "k":
        before, value = scipy.special.ellipkm1(q), scipy.special.elliprd(0 * one, one, q) / 6
    else:
        before, value = scipy.special.ellipe(m), -scipy.special.elliprd(0 * one, q, one) / 6
    for k in range(n - 1):
        following = ((a + k) * (0.5 + k) * before - (1 + k - (a + 1.5 + 2 * k) * m) * value) / (m * q)
        before, value = value, following
    return ((-1.0) ** n * np.where(near, series, value)).astype(dtype)[()]


def rgamma_derivative(x: Any, n: int) -> Any:
    """The n-th derivative of 1/Gamma(x), n >= 1, at its zeros too.

    Taylor polynomials: those of 1/Gamma at a point of [1, 2) or above, exp of those of -gammaln, times the linear
    factors x, x + 1, … that lead there.
    """
    import scipy.special

    dtype = np.asarray(x).dtype
    x = np.asarray(x, np.promote_types(dtype, np.float64))
    inside = x > -180
    steps = np.where(x < 1, np.ceil(1 - np.where(inside, x, 1.0)), 0.0)
    y = np.where(np.isfinite(x), np.where(inside, x, 1.0) + steps, 200.0)
    logarithm, factorial = [np.zeros_like(y)], 1.0
    for k in range(1, n + 1):
        factorial *= k
        polygamma = scipy.special.psi(y) if k == 1 else (-1.0) ** k * (factorial / k) * scipy.special.zeta(float(k), y)
        logarithm.append(-polygamma * (k / factorial))
    series = [scipy.special.rgamma(y)]
    for k in range(1, n + 1):
        total = np.zeros_like(y)
        for j in range(1, k + 1):
            total = total + logarithm[j] * series[k - j]
        series.append(total / k)
    for step in range(int(steps.max(initial=0.0))):
        linear, active = x + step, step < steps
        for k in range(n, 0, -1):
            series[k] = np.where(active, linear * series[k] + series[k - 1], series[k])
        series[0] = np.where(active, linear * series[0], series[0])
    value = np.where(x == np.inf, 0.0, np.where(inside & np.isfinite(x), series[n] * factorial, np.nan))
    return value.astype(dtype)[()]


def complex_polygamma(z: Any, n: int) -> Any:
    """The n-th derivative of digamma, n >= 1: the sum of (z + k)⁻ⁿ⁻¹, its rest by Euler's and Maclaurin's formula.

    The formula's terms are as small as the last bits where |z + k| is 20 (DLMF 25.11.5). Far left it is by reflection.
    """
    dtype = np.asarray(z).dtype
    z = np.asarray(z, np.complex128)
    s, total, factor = n + 1, np.zeros_like(z), (-1.0) ** (n + 1)
    known, left = np.isfinite(z), z.real < -20
    at = np.where(known, np.where(left, 1.0 - z, z), 1.0)
    for _ in range(int(max(0.0, np.max(20 - at.real, initial=0.0))) + 1):
        near = at.real < 20
        total = total + np.where(near, (1.0 / at) ** float(s), 0.0)  # of a large number a negative power is nan
        at = np.where(near, at + 1, at)
    inverse = 1.0 / at
    power = inverse ** float(n)
    total = total + power / (s - 1) + power * inverse / 2
    term = s / 2 * (power * inverse * inverse)
    for k, bernoulli in enumerate((1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510), start=1):
        total = total + bernoulli * term
        term = term * ((s + 2 * k - 1) * (s + 2 * k) / ((2 * k + 1) * (2 * k + 2))) * inverse * inverse
    for k in range(1, n + 1):
        factor *= k
    if left.any():
        turned = complex_slope_of_cotangent(np.where(left, z - np.round(z.real), 0.5), n)
        total = np.where(left, (-1.0) ** n * total - turned / factor, total)
    return np.where(known, factor * total, np.nan).astype(dtype)[()]


def slope_of_cotangent(n: int) -> list[float]:
    """The n-th derivative of pi cot(pi x), as that of cot is -(1 + cot²): a polynomial in cot, its constant first."""
    coefficients = [0.0, np.pi]
    for _ in range(n):
        slopes = [power * coefficient for power, coefficient in enumerate(coefficients)][1:]
        coefficients = [0.0] * (len(slopes) + 2)
        for power, slope in enumerate(slopes):
            coefficients[power] -= np.pi * slope
            coefficients[power + 2] -= np.pi * slope
    return coefficients


def complex_slope_of_cotangent(z: Any, n: int) -> Any:
    """The n-th derivative of pi cot(pi z), n >= 1: far from the real axis, where cot is i to rounding, by exponentials.

    With q = exp(2 pi i z), z above the axis, and u = q/(1 - q) the cotangent is -i (1 + 2 u) and the slope of u is
    2 pi i u (1 + u): polynomials in u with positive coefficients, that vanish with it.
    """
    near = np.abs(z.imag) < 0.25
    by_cotangent = np.polyval(slope_of_cotangent(n)[::-1], 1.0 / np.tan(np.pi * np.where(near, z, 0.5)))
    q = np.exp(2j * np.pi * np.where(near, 1j, np.where(z.imag < 0, np.conj(z), z)))
    coefficients = [0.0, 1.0]
    for _ in range(n):
        slopes = [power * coefficient for power, coefficient in enumerate(coefficients)]
        coefficients = [one + other for one, other in zip([*slopes, 0.0], [0.0, *slopes], strict=True)]
    found = -2j * np.pi * (2j * np.pi) ** n * np.polyval(coefficients[::-1], q / (1.0 - q))
    return np.where(near, by_cotangent, np.where(z.imag < 0, np.conj(found), found))


def polygamma(x: Any, n: int) -> Any:
    """The n-th derivative of digamma, n >= 1: (-1)ⁿ⁺¹ n! zeta(n + 1, x); of negative x by reflection (DLMF 5.15.6).

    SciPy's zeta of a negative x takes a step for each unit up to 0, which for a large one never ends.
    """
    if np.iscomplexobj(x):
        return complex_polygamma(x, n)
    import scipy.special

    dtype = np.asarray(x).dtype
    x = np.asarray(x, np.promote_types(dtype, np.float64))
    negative = x < 0
    factor = (-1.0) ** (n + 1)
    for k in range(1, n + 1):
        factor *= k
    value = factor * scipy.special.zeta(n + 1.0, np.where(negative, 1 - x, x))
    inside = np.where(negative & (x > -(2.0**52)), x, 0.0)
    rest = inside - np.rint(inside)
    pole = rest == 0
    angle = np.pi * np.where(pole, 0.25, rest)
    cotangent, turned = np.cos(angle) / np.sin(angle), np.zeros_like(x)
    for coefficient in reversed(slope_of_cotangent(n)):
        turned = turned * cotangent + coefficient
    reflected = np.where(pole, factor * np.inf, (-1.0) ** n * value - turned)
    return np.where(negative, reflected, value).astype(dtype)[()]


def digamma_difference(a: Any, b: Any, n: int) -> Any:
    """The difference of the n-th derivatives of digamma at a and a + b, without cancellation where b is small.

    With a and a + b positive: the recurrence to large arguments and the asymptotic series there (DLMF 5.5.2, 5.15.8),
    each as a sum of differences y⁻ᵐ - (y + b)⁻ᵐ.
    """
    import scipy.special

    dtype = np.result_type(a, b)
    a, b = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(b, np.float64))
    positive = (a > 0) & (a + b > 0) & np.isfinite(a)
    y, h = np.where(positive, a, 1.0), np.where(positive, b, 0.0)
    factorial = scipy.special.gamma(n + 1.0)
    total = np.zeros_like(y)

    def powers(base: Any, exponent: int) -> Any:
        return -np.expm1(-exponent * np.log1p(h / base)) * base**-exponent

    for _ in range(16 + n):
        active = np.minimum(y, y + h) < 16 + n
        total = total - np.where(active, (-1.0) ** n * factorial * powers(y, n + 1), 0.0)
        y = np.where(active, y + 1, y)
    series = factorial / 2 * powers(y, n + 1)
    series = series + (np.log1p(h / y) if n == 0 else scipy.special.gamma(float(n)) * powers(y, n))
    bernoulli = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
    for k, number in enumerate(bernoulli, start=1):
        ratio = scipy.special.poch(2.0 * k + 1, n - 1.0)  # (2k + n - 1)!/(2k)!
        series = series + number * ratio * powers(y, 2 * k + n)
    total = total + (-1.0) ** (n + 1) * series
    if not positive.all():
        direct = polygamma(a, n) - polygamma(a + b, n) if n else scipy.special.psi(a) - scipy.special.psi(a + b)
        total = np.where(positive, total, direct)
    return total.astype(dtype)[()]


def gamma_density(a: Any, x: Any, n: int) -> Any:
    """The n-th derivative in a of xᵃ⁻¹ exp(-x)/Gamma(a), the density of the gamma distribution, x >= 0.

    Where a is large it is written by Stirling's series and u - log(1 + u), u = x/a - 1, which lose no accuracy
    (C. Loader, Fast and accurate computation of binomial probabilities, 2000). The derivatives are those of exp.
    """
    import scipy.special

    dtype = np.result_type(a, x)
    a, x = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(x, np.float64))
    inner = (x > 0) & (x < np.inf)
    wide, at = a >= 10, np.where(inner, x, 1.0)
    large = np.where(wide, a, 10.0)
    u = (at - large) / large
    close = np.abs(u) < 0.5
    w = np.where(close, u / (2 + u), 0.0)
    tail = np.zeros_like(at)
    for k in range(18, 0, -1):
        tail = (tail + 1 / (2 * k + 1)) * w * w
    excess = np.where(close, u * w - 2 * w * tail, u - np.log(at / large))
    stirling, slope = np.zeros_like(large), np.zeros_like(large)
    bernoulli = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
    for k, number in enumerate(bernoulli, start=1):
        stirling = stirling + number / (2 * k * (2 * k - 1)) * large ** (1.0 - 2 * k)
        slope = slope + number / (2 * k) * large ** (-2.0 * k)
    far = large / at * np.exp(-stirling - large * excess) / np.sqrt(2 * np.pi * large)
    power = np.exp(-at) * np.minimum(at, 1e3) ** (np.where(wide, 1.0, a) - 1)
    if n:
        logarithm = np.where(close, np.log1p(np.where(close, u, 0.0)), np.log(at / large)) + 0.5 / large + slope
        far = far * gamma_log_moments(large, logarithm, n)[n]
        total, binomial = np.zeros_like(at), 1.0
        for k in range(n + 1):
            factor = rgamma_derivative(a, k) if k else scipy.special.rgamma(a)
            total = total + binomial * factor * np.log(at) ** (n - k)
            binomial *= (n - k) / (k + 1)
        value = np.where(wide, far, power * total)
    else:
        value = np.where(wide, far, power * scipy.special.rgamma(a))
    if n == 0:
        at_zero = np.where(a > 1, 0.0, np.where(a == 1, 1.0, np.where(a > 0, np.inf, scipy.special.rgamma(a) * np.inf)))
        at_zero = np.where(a == 0, 0.0, at_zero)
    else:
        at_zero = np.where(a > 1, 0.0, np.where(a > 0, (-1.0) ** n * np.inf, np.nan))
    value = np.where(inner, value, np.where(x == 0, at_zero, np.where(x == np.inf, 0.0, np.nan)))
    return value.astype(dtype)[()]


def gamma_log_moments(a: Any, first: Any, n: int) -> list[Any]:
    """What the derivatives in a, up to the n-th, multiply the gamma density by: ``first`` = log(x) - digamma(a) = B(1).

    B(k+1) is the sum over j of binomial(k, j) B(k-j) c(j+1), where c are the further derivatives of its logarithm.
    """
    import scipy.special

    cumulants = [first]
    for k in range(2, n + 1):
        cumulants.append((-1.0) ** (k - 1) * scipy.special.gamma(float(k)) * scipy.special.zeta(float(k), a))
    moments = [np.ones_like(a)]
    for k in range(n):
        total, binomial = np.zeros_like(a), 1.0
        for j in range(k + 1):
            total = total + binomial * moments[k - j] * cumulants[j]
            binomial *= (k - j) / (j + 1)
        moments.append(total)
    return moments


def gammainc_derivative(a: Any, x: Any, n: int) -> Any:
    """The n-th derivative in a, n >= 1, of the regularised lower incomplete gamma function P(a, x).

    It is an integral over t below x of the derivative of the density, or minus the one above x: of the two, that over
    which the first derivative has one sign. With t = x exp(-s), or x exp(s), the integrand falls from s = 0 on by a
    known convex exponent, and is integrated by Gauss's rule to where it is as good as 0. Small a go up by one first:
    P(a, x) = P(a + 1, x) + density(a + 1, x).
    """
    import scipy.special

    dtype = np.result_type(a, x)
    a, x = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(x, np.float64))
    inner = (x > 0) & (x < np.inf) & (a > 0) & (a < np.inf)
    b, at = np.where(inner, a, 1.0), np.where(inner, x, 1.0)
    shifted = (b < 1) & (at < 1.5)
    base = np.where(shifted, b + 1, b)
    middle = np.where(base > 40, base - 0.5, np.exp(scipy.special.psi(np.minimum(base, 40.0))))
    lower = at < middle
    direction = np.where(lower, -1.0, 1.0)
    gap = np.where(lower, base - at, at - base)

    def excess(s: Any) -> Any:
        small = np.abs(s) < 0.1
        near, t = np.zeros_like(s), np.where(small, s, 0.0)
        for k in range(10, 1, -1):
            near = (1 + near) * t / k
        return np.where(small, near * t, np.expm1(np.where(small, 1.0, s)) - np.where(small, 1.0, s))

    end = np.where(
        lower,
        np.where(
            gap + at / 3 >= 41, np.minimum(41 / np.maximum(gap, 1e-300), np.sqrt(123 / at)), 41 / (gap + at / 2.72)
        ),
        np.minimum((0.5 + np.sqrt(0.25 + 82 / np.minimum(1 / at, 1e300))) / at, np.log(100 / at + 10) + 41 / at),
    )
    for _ in range(12):
        value = gap * end + at * excess(direction * end)
        change = gap + at * direction * np.expm1(direction * end)
        end = end - np.where(value > 41, (value - 41) / change, 0.0)
    density = at * gamma_density(base, at, 0)
    large, small = np.where(base > 10, base, 10.0), np.where(base > 10, 1.0, base)
    level = np.log1p((at - large) / large) + np.log(large) - scipy.special.psi(large)
    moments, logarithm = gamma_log_moments(large, level, n), np.log(at)
    reciprocals = [scipy.special.rgamma(small)] + [rgamma_derivative(small, k) for k in range(1, n + 1)]
    for j in range(n + 1):
        moment, binomial = np.zeros_like(at), 1.0
        for k in range(j + 1):
            moment = moment + binomial * (reciprocals[k] / reciprocals[0]) * logarithm ** (j - k)
            binomial *= (j - k) / (k + 1)
        moments[j] = np.where(base > 10, moments[j], moment)
    total = np.zeros_like(at)
    nodes, weights = np.polynomial.legendre.leggauss(64)
    column = (-1, *(1,) * at.ndim)
    count = max(1, min(64, 1_000_000 // max(at.size, 1)))  # nodes at a time
    for start in range(0, 64, count):
        s = (nodes[start : start + count].reshape(column) + 1) / 2 * end
        weight = weights[start : start + count].reshape(column) / 2
        factor, binomial = np.zeros_like(s), 1.0
        for k in range(n + 1):
            factor = factor + binomial * moments[n - k] * (direction * s) ** k
            binomial *= (n - k) / (k + 1)
        values = weight * end * factor * np.exp(-gap * s - at * excess(direction * s))
        total = total + np.sum(values, axis=0)
    result = -direction * density * total
    result = result + np.where(shifted, gamma_density(b + 1, at, n), 0.0)
    known = (a > 0) & (x >= 0)
    return np.where(inner, result, np.where(known, 0.0, np.nan)).astype(dtype)[()]


def log_ratio(x: Any, y: Any) -> Any:
    """log(x/y), accurate where x is near y."""
    close = np.abs(x - y) < 0.5 * np.abs(y)
    ratio = x / y
    inexact = (np.abs(ratio) < 1e-30) | (np.abs(ratio) > 1e30)
    apart = np.where(inexact, np.log(x) - np.log(y), np.log(ratio))
    return np.where(close, np.log1p(np.where(close, (x - y) / y, 0.0)), apart).astype(np.asarray(x).dtype)[()]


def digamma(x: Any) -> Any:
    """SciPy's digamma; near its negative poles with the distance from the pole exact: psi(1 - x) - pi/tan(pi x)."""
    import scipy.special

    if np.iscomplexobj(x):
        return scipy.special.psi(x)
    dtype = np.asarray(x).dtype
    x = np.asarray(x, np.promote_types(dtype, np.float64))
    distance = x - np.rint(x)
    near = (x < -0.5) & (np.abs(distance) < 0.05) & (distance != 0) & (x > -1e4)
    mirrored = scipy.special.psi(1 - x) - np.pi / np.tan(np.pi * distance)
    return np.where(near, mirrored, scipy.special.psi(x)).astype(dtype)[()]


def boxcox_derivative(x: Any, c: Any, n: int, plus_one: bool) -> Any:
    """The n-th derivative in c, n >= 1, of (xᶜ - 1)/c = log(x) exprel(c log(x)), or of ((1 + x)ᶜ - 1)/c."""
    logarithm = np.log1p(x) if plus_one else np.log(x)
    at_zero = (-1.0) ** (n + 1) / c ** (n + 1)
    for k in range(1, n + 1):
        at_zero = at_zero * k
    value = logarithm ** (n + 1) * exprel_derivative(c * logarithm, n)
    zero = np.isneginf(logarithm) & (c > 0)
    return np.where(zero, at_zero, value).astype(np.asarray(x).dtype)[()]
