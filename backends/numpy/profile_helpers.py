"""Helper functions of the Faddeeva function, Voigt's profile, Carlson's and Tricomi's integrals and elliptic ones, the
noncentral chi-squared density and Mathieu's functions.

They are written as those of ``helpers.py``, which gives them to generated programs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from srcgrad.backends.numpy.special_helpers import gaussian_derivative


def faddeeva_series(square: Any, n: int) -> Any:
    """The sum of (2k - 1)!! (2k + n)!/(2k)! square**k: (-1)ⁿ √pi zⁿ⁺¹/i times the n-th derivative of w at large z.

    ``square`` is 1/(2 z²); where it is at most 1/72, the terms fall below 1e-15 before they rise.
    """
    total, double, power = np.zeros_like(square), 1.0, np.ones_like(square)
    for k in range(34):
        rising = 1.0
        for j in range(n):
            rising *= 2.0 * k + 1 + j
        total = total + double * rising * power
        double *= 2 * k + 1.0
        power = power * square
    return total


def wofz_derivative(z: Any, n: int) -> Any:
    """The n-th derivative of w(z) = exp(-z²) erfc(-i z): w' = 2i/√pi - 2 z w, w⁽ᵏ⁺¹⁾ = -2 z w⁽ᵏ⁾ - 2 k w⁽ᵏ⁻¹⁾.

    Where z is large these cancel: there it is the asymptotic series, in the upper half plane; the lower one has
    w(z) = 2 exp(-z²) - w(-z). On the real axis the real part is exp(-z²), which the series does not have.
    """
    import scipy.special

    dtype = np.asarray(z).dtype
    z = np.asarray(z, np.complex128)
    far = np.abs(z) > 6
    near = np.where(far, 0.0, z)
    before, value = scipy.special.wofz(near), 2j / np.sqrt(np.pi) - 2 * near * scipy.special.wofz(near)
    for k in range(1, n):
        before, value = value, -2 * (near * value + k * before)
    large = np.where(far & (np.abs(z) < 1e100), z, 1e100)
    low = large.imag < 0
    upper = np.where(low, -large, large)
    series = faddeeva_series(0.5 / upper**2, n) * ((-1.0) ** n * 1j / np.sqrt(np.pi)) * (1 / upper) ** (n + 1)
    sunk = np.where(low & far, z, 0.0)
    lower, growth = np.zeros_like(z), 2 * np.exp(-sunk * sunk)
    for k in range(n):
        lower, growth = growth, -2 * (sunk * growth + k * lower)
    series = np.where(low, growth - (-1.0) ** n * series, series)
    value = np.where(np.isnan(z), z, np.where(far, series, value))
    bell = gaussian_derivative(np.where(np.isfinite(z.real), z.real, 1e100), n, 1.0)
    return np.where(z.imag == 0, bell + 1j * value.imag, value).astype(dtype)[()]


def voigt_derivative(x: Any, sigma: Any, gamma: Any, n: int, conjugate: bool) -> Any:
    """The n-th derivative in x, n >= 1, of w(z)/(√(2pi) sigma), z = (x + i gamma)/(√2 sigma): one of its parts.

    Where sigma is small beside x + i gamma it is the asymptotic series, whose first term is Cauchy's distribution; for
    gamma = 0 the real part is that of the normal distribution.
    """
    dtype = np.result_type(x, sigma, gamma)
    x, sigma, gamma = np.broadcast_arrays(*(np.asarray(part, np.float64) for part in (x, sigma, gamma)))
    z = np.clip(x, -1e300, 1e300) + 1j * np.minimum(gamma, 1e300)
    far = (np.abs(z) > 8.6 * sigma) & (gamma >= 0)
    large, small = np.where(far, z, 1.0), np.where(far, sigma, 0.0)
    series = faddeeva_series((small / large) ** 2, n) * ((-1.0) ** n * 1j / np.pi) * (1 / large) ** (n + 1)
    root = np.sqrt(2.0) * np.where(far & (sigma == 0), 1.0, sigma)
    plain = wofz_derivative(np.where(far, 0.0, z) / root, n) / (np.sqrt(np.pi) * root ** (n + 1))
    value = np.where(far, series, plain)
    if conjugate:
        return value.imag.astype(dtype)[()]
    bell = gaussian_derivative(z.real / root, n, 1.0) / (np.sqrt(np.pi) * root ** (n + 1))
    normal = np.where(far & (sigma == 0), 0.0, bell)
    return np.where(gamma == 0, normal, value.real).astype(dtype)[()]


def carlson_integral(x: Any, y: Any, z: Any, p: Any, n: int, powers: tuple[float, float, float, float]) -> Any:
    """The integral of tⁿ (t + x)⁻ᵃ (t + y)⁻ᵇ (t + z)⁻ᶜ (t + p)⁻ᵈ over t > 0, for a, b, c, d = ``powers``.

    By the trapezoidal rule in u, t = exp(s), s = u + exp(u - v) - exp(w - u): between the logarithms w and v of the
    smallest and the largest operand nearly uniform, so that operands may differ by many powers of ten, and doubly
    exponential outside.
    """
    dtype = np.result_type(x, y, z, p)
    arrays = np.broadcast_arrays(*(np.asarray(part, np.float64) for part in (x, y, z, p)))
    factors = [(part, power) for part, power in zip(arrays, powers, strict=True) if power]
    shape = arrays[0].shape
    known, infinite = np.ones(shape, bool), np.zeros(shape, bool)
    low, high, exponent = np.full(shape, np.inf), np.zeros(shape), np.full(shape, n + 1.0)
    for part, power in factors:
        known = known & (part >= 0)
        infinite = infinite | (part == np.inf)
        inner = (part > 0) & (part < np.inf)
        low, high = np.where(inner, np.minimum(low, part), low), np.where(inner, np.maximum(high, part), high)
        exponent = exponent - np.where(part == 0, power, 0.0)
    usual = known & ~infinite & (exponent > 0) & (high > 0)
    w, v, decay = (np.where(usual, part, 1.0) for part in (low, high, exponent))
    logarithms = [np.log(np.where(usual, part, 1.0)) for part, _ in factors]
    w, v = np.log(w), np.log(v)
    start, end, step = w - np.log(40 / decay) - 0.4, v + 4.3, 0.15
    total = np.zeros(shape)
    nodes = np.arange(np.ceil(np.max(end - start, initial=0.0) / step) + 1).reshape((-1, *(1,) * len(shape)))
    count = max(1, 1_000_000 // max(total.size, 1))  # nodes at a time
    for first in range(0, len(nodes), count):
        u = start + nodes[first : first + count] * step
        inside = u < end + step
        u = np.where(inside, u, end)
        rising, falling = np.exp(u - v), np.exp(w - u)
        s = u + rising - falling
        term = (n + 1) * s
        for logarithm, (_, power) in zip(logarithms, factors, strict=True):
            term = term - power * np.logaddexp(s, logarithm)
        total = total + np.sum(np.where(inside, np.exp(term) * (1 + rising + falling), 0.0), axis=0)
    special = np.where(known, np.where(infinite, 0.0, np.inf), np.nan)
    return np.where(usual, total * step, special).astype(dtype)[()]


def elliptic_incomplete_derivative(phi: Any, m: Any, n: int, kind: str) -> Any:
    """The n-th derivative in m, n >= 1, of the incomplete elliptic integral F(phi, m) (kind "k") or E(phi, m).

    It is (a)ₙ times the integral over t from 0 to phi of sin(t)²ⁿ (1 - m sin(t)²)⁻ᵃ⁻ⁿ, a = 1/2 or -1/2: in u, with
    sin(t)² = s²/(1 + u), s = sin(phi), an integral of Carlson's, with operands cos(phi)², 1 and 1 - m s² however far
    apart they are. Half periods are counted apart.
    """
    import scipy.special

    dtype = np.result_type(phi, m)
    phi, m = np.broadcast_arrays(np.asarray(phi, np.float64), np.asarray(m, np.float64))
    a = 0.5 if kind == "k" else -0.5
    factor = 1.0
    for k in range(n):
        factor *= a + k
    turns = np.rint(phi / np.pi)

    def up_to(sine: Any, square: Any) -> Any:
        rest = square + (1 - m) * sine**2
        if n == 1:
            operands = (square, np.ones_like(m), rest) if kind == "k" else (square, rest, np.ones_like(m))
            return sine**3 * (scipy.special.elliprd(*operands) / 3)
        return sine ** (2 * n + 1) * (carlson_integral(square, 1.0, rest, 1.0, 0, (0.5, 1 - a, a + n, 0.0)) / 2)

    part = up_to(np.sin(phi) * (1 - 2 * np.mod(turns, 2)), np.cos(phi) ** 2)
    quarter = up_to(np.ones_like(m), np.zeros_like(m))
    value = part + np.where(turns == 0, 0.0, 2 * turns * quarter)
    return (factor * value).astype(dtype)[()]


def hyperu_integral(a: Any, b: Any, x: Any) -> Any:
    """Tricomi's U(a, b, x) as the integral of exp(-x t) tᵃ⁻¹ (1 + t)ᵇ⁻ᵃ⁻¹/Gamma(a) over t > 0, where a is positive.

    By the trapezoidal rule in u, t = exp(s), s = u - exp(w - u), w the logarithm of the smaller of 1 and 1/x. SciPy's
    own, used for other parameters and for those of which the integrand is narrow, may stop its series too early.
    """
    import scipy.special

    dtype = np.result_type(a, b, x)
    a, b, x = np.broadcast_arrays(*(np.asarray(part, np.float64) for part in (a, b, x)))
    usual = (a > 1e-3) & (a < 40) & (np.abs(b) < 40) & (x > 1e-100) & (x < 1e100)
    c, d, y = np.where(usual, a, 1.0), np.where(usual, b, 1.0), np.where(usual, x, 1.0)
    w = np.minimum(0.0, -np.log(y))
    start, end, step = w - np.log(40 / c) - 0.4, 7 - np.log(y), 0.1
    scale, total = scipy.special.gammaln(c), np.zeros(y.shape)
    nodes = np.arange(np.ceil(np.max(end - start, initial=0.0) / step) + 1).reshape((-1, *(1,) * y.ndim))
    count = max(1, 1_000_000 // max(total.size, 1))  # nodes at a time
    for first in range(0, len(nodes), count):
        u = np.minimum(start + nodes[first : first + count] * step, end + step)
        falling = np.exp(w - u)
        s = u - falling
        term = c * s - y * np.exp(s) + (d - c - 1) * np.logaddexp(0.0, s) - scale
        total = total + np.sum(np.where(u < end + step, np.exp(term) * (1 + falling), 0.0), axis=0)
    plain = scipy.special.hyperu(np.where(usual, 1.0, a), np.where(usual, 1.0, b), np.where(usual, 1.0, x))
    return np.where(usual, total * step, plain).astype(dtype)[()]


def noncentral_density(x: Any, df: Any, nc: Any) -> Any:
    """The density of the noncentral chi-squared distribution: the central one's times exp(-nc/2) 0F1(df/2; nc x/4).

    Where the arguments are large 0F1 is a modified Bessel function (DLMF 10.39.9), scaled, so that nothing overflows.
    """
    import scipy.special

    dtype = np.result_type(x, df, nc)
    x, df, nc = np.broadcast_arrays(*(np.asarray(part, np.float64) for part in (x, df, nc)))
    order, square = df / 2 - 1, nc * x
    far = (square > 900) & (square < np.inf)
    a, b = np.where(far, x, 1.0), np.where(far, nc, 1.0)
    scaled = np.exp(-0.5 * (np.sqrt(a) - np.sqrt(b)) ** 2 + 0.5 * order * np.log(a / b))
    root = np.where(scaled > 0, np.sqrt(a * b), 1.0)  # of huge arguments SciPy's function is nan
    large = 0.5 * scaled * scipy.special.ive(np.where(far, order, 0.0), root)
    central = np.exp(scipy.special.xlogy(order, x / 2) - x / 2 - nc / 2 - scipy.special.gammaln(df / 2)) / 2
    small = central * scipy.special.hyp0f1(df / 2, np.where(far, 0.0, square) / 4)
    inside = (x >= 0) & (df > 0) & (nc >= 0)
    return np.where(inside, np.where(far, large, small), np.where(x < 0, 0.0, np.nan)).astype(dtype)[()]


def mathieu_function(m: Any, q: Any, x: Any, kind: str, part: int) -> Any:
    """A Mathieu function of SciPy's or its derivative; of nan SciPy's are not safe to call."""
    import scipy.special

    known = np.isfinite(m) & np.isfinite(q) & np.isfinite(x)
    given = [np.where(known, operand, 1.0) for operand in (m, q, x)]
    return np.where(known, getattr(scipy.special, f"mathieu_{kind}")(*given)[part], np.nan)[()]
