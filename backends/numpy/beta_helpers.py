"""Helper functions of the incomplete beta function: its density and their derivatives in the parameters.

They are written as those of ``helpers.py``, which gives them to generated programs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from srcgrad.backends.numpy.special_helpers import digamma_difference


def beta_logarithm(a: Any, b: Any) -> Any:
    """log B(a, b), where one of them is large by Stirling's series for the ratio of two gamma functions (DLMF 5.11)."""
    import scipy.special

    large, small = np.maximum(a, b), np.minimum(a, b)
    unequal = (large > 30) & (small > 0) & (small < 30) & (large < np.inf)
    p, q = np.where(unequal, large, 30.0), np.where(unequal, small, 1.0)
    total, ratio = p + q, np.zeros_like(p)
    bernoulli = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730)
    for k, number in enumerate(bernoulli, start=1):
        ratio = ratio + number / (2 * k * (2 * k - 1)) * (p ** (1.0 - 2 * k) - total ** (1.0 - 2 * k))
    ratio = ratio + q - (p - 0.5) * np.log1p(q / p) - q * np.log(total)
    return np.where(unequal, scipy.special.gammaln(q) + ratio, scipy.special.betaln(a, b))


def beta_density(a: Any, b: Any, x: Any, n: int, m: int) -> Any:
    """The n-th derivative in a and m-th in b of xᵃ⁻¹ (1 - x)ᵇ⁻¹/B(a, b), the density of the beta distribution.

    Where a and b are large it is written by Stirling's series and u - log(1 + u), which lose no accuracy (C. Loader,
    Fast and accurate computation of binomial probabilities, 2000).
    """
    import scipy.special

    dtype = np.result_type(a, b, x)
    a, b, x = np.broadcast_arrays(*(np.asarray(part, np.float64) for part in (a, b, x)))
    plain = np.exp(scipy.special.xlogy(a - 1, x) + scipy.special.xlog1py(b - 1, -x) - beta_logarithm(a, b))
    if n or m:
        inner = (x > 0) & (x < 1) & (a > 0) & (b > 0)
        p, q, at = np.where(inner, a, 1.0), np.where(inner, b, 1.0), np.where(inner, x, 0.5)
        factor = beta_log_moment(beta_log_cumulants(p, q, n, m), np.log(at), np.log1p(-at), n, m)
        left = np.where((a > 1) | (n == 0), 0.0, (-1.0) ** n * np.inf)
        right = np.where((b > 1) | (m == 0), 0.0, (-1.0) ** m * np.inf)
        at_end = np.where((x == 0) & (a > 0) & (b > 0), left, np.where((x == 1) & (a > 0) & (b > 0), right, np.nan))
        density = beta_density(p, q, at, 0, 0)
        return np.where(inner, density * factor, at_end).astype(dtype)[()]
    large = (a >= 10) & (b >= 10) & (x > 0) & (x < 1)
    if not large.any():
        return plain.astype(dtype)[()]
    p, q, at = np.where(large, a, 10.0), np.where(large, b, 10.0), np.where(large, x, 0.5)
    total = p + q
    excess = at * q - p * (1 - at)
    exponent = np.zeros_like(at)
    for count, u, ratio in ((p, excess / p, at * total / p), (q, -excess / q, (1 - at) * total / q)):
        close = np.abs(u) < 0.5
        w = np.where(close, u / (2 + u), 0.0)
        tail = np.zeros_like(at)
        for k in range(18, 0, -1):
            tail = (tail + 1 / (2 * k + 1)) * w * w
        exponent = exponent + count * np.where(close, u * w - 2 * w * tail, u - np.log(np.where(close, 1.0, ratio)))
    stirling = np.zeros_like(at)
    bernoulli = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
    for k, number in enumerate(bernoulli, start=1):
        powers = p ** (1.0 - 2 * k) + q ** (1.0 - 2 * k) - total ** (1.0 - 2 * k)
        stirling = stirling + number / (2 * k * (2 * k - 1)) * powers
    value = np.sqrt(p / total * q / (2 * np.pi)) * np.exp(-exponent - stirling) / (at * (1 - at))
    return np.where(large, value, plain).astype(dtype)[()]


def beta_log_cumulants(a: Any, b: Any, n: int, m: int) -> dict[tuple[int, int], Any]:
    """The derivatives in a and b, up to the n-th and m-th, of -log B(a, b), by their orders."""
    import scipy.special

    found = {}
    for i in range(n + 1):
        for j in range(m + 1):
            if i and j:
                order = float(i + j)
                found[i, j] = (-1.0) ** (i + j) * scipy.special.gamma(order) * scipy.special.zeta(order, a + b)
            elif i or j:
                found[i, j] = -digamma_difference(a, b, i - 1) if i else -digamma_difference(b, a, j - 1)
    return found


def beta_log_moment(cumulants: dict[tuple[int, int], Any], left: Any, right: Any, n: int, m: int) -> Any:
    """What the n-th derivative in a and m-th in b multiplies the beta density at x by.

    ``cumulants`` are those of `beta_log_cumulants`; ``left`` is log(x), ``right`` is log(1 - x). The density is exp(f),
    of which one derivative, in a if there is one, gives exp(f) times that of f; Leibniz's rule gives the others.
    """
    import math

    slopes = dict(cumulants)
    if n:
        slopes[1, 0] = cumulants[1, 0] + left
    if m:
        slopes[0, 1] = cumulants[0, 1] + right
    moments = {(0, 0): np.ones_like(left)}
    for i in range(n + 1):
        for j in range(m + 1):
            if i + j == 0:
                continue
            p, q = (i - 1, j) if i else (i, j - 1)
            total = np.zeros_like(left)
            for k in range(p + 1):
                for r in range(q + 1):
                    slope = slopes[(k + 1, r) if i else (k, r + 1)]
                    total = total + math.comb(p, k) * math.comb(q, r) * moments[p - k, q - r] * slope
            moments[i, j] = total
    return moments[n, m]


def betainc_derivative(a: Any, b: Any, x: Any, n: int, m: int) -> Any:
    """The n-th derivative in a and m-th in b, n + m >= 1, of the regularised incomplete beta function I(a, b, x).

    It is an integral over t below x of the derivative of the density, or minus the one above x, which is that below
    1 - x with a and b exchanged: of the two, that over which the first derivative has one sign.
    """
    dtype = np.result_type(a, b, x)
    a, b, x = np.broadcast_arrays(*(np.asarray(part, np.float64) for part in (a, b, x)))
    inner = (x > 0) & (x < 1) & (a > 0) & (a < np.inf) & (b > 0) & (b < np.inf)
    p, q, at = np.where(inner, a, 1.0), np.where(inner, b, 1.0), np.where(inner, x, 0.5)
    # The sign of the first derivative of log density: in a it is that of x - exp(digamma(a) - digamma(a + b)).
    lower = np.log(at) < digamma_difference(p, q, 0) if n else np.log1p(-at) > digamma_difference(q, p, 0)
    near, far = np.where(lower, p, q), np.where(lower, q, p)
    t, rest = np.where(lower, at, 1 - at), np.where(lower, 1 - at, at)
    logs = np.where(lower, np.log(at), np.log1p(-at)), np.where(lower, np.log1p(-at), np.log(at))
    below = beta_tail_derivative(near, far, t, rest, logs, n, m)
    if n != m:
        below = np.where(lower, below, beta_tail_derivative(near, far, t, rest, logs, m, n))
    weight = at * (1 - at) * beta_density(p, q, at, 0, 0)
    small = at < 1e-100  # where the density may overflow
    weight = np.where(small, np.exp(np.where(small, p * np.log(at) - beta_logarithm(p, q), 0.0)), weight)
    result = np.where(lower, 1.0, -1.0) * weight * below
    known = (a > 0) & (b > 0) & (x >= 0) & (x <= 1)
    return np.where(inner, result, np.where(known, 0.0, np.nan)).astype(dtype)[()]


def beta_tail_derivative(a: Any, b: Any, x: Any, rest: Any, logs: Any, n: int, m: int) -> Any:
    """The integral of a derivative of the beta density below x, over x (1 - x) times the density at x.

    With t/(1 - t) = x/(1 - x) exp(-s), dt = -t (1 - t) ds, and the logarithm of tᵃ (1 - t)ᵇ is concave in s: it falls
    by a s + (a + b) log(1 - x + x exp(-s)), until nothing is left. Its singularities have t/(1 - t) = -1, so pieces
    that grow in proportion with the distance from t = 1/2 are smooth, and integrated by Gauss's rule. ``rest`` is
    1 - x, and ``logs`` are the logarithms of both, each accurate where it is small.
    """

    def slack(s: Any) -> Any:
        """log(1 - x + x exp(-s))."""
        short = np.minimum(s, 1.0)
        return np.where(s < 1, np.log1p(x * np.expm1(-short)), np.log(rest + x * np.exp(-np.maximum(s, 1.0))))

    start, cumulants = logs[0] - logs[1], beta_log_cumulants(a, b, n, m)
    low, high = np.zeros_like(x), (50 + (a + b) * np.maximum(-logs[1], 0.0)) / a
    for _ in range(60):
        middle = 0.5 * (low + high)
        enough = a * middle + (a + b) * slack(middle) > 45
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    end, total = high, np.zeros_like(x)
    nodes, weights = np.polynomial.legendre.leggauss(32)
    column = (-1, *(1,) * x.ndim)
    count = max(1, min(32, 1_000_000 // max(x.size, 1)))  # nodes at a time
    cuts = [np.clip(start - u, 0.0, end) for u in (40.0, 12.0, 4.0, 0.0, -4.0, -12.0, -40.0)]
    for left, right in zip([np.zeros_like(x), *cuts], [*cuts, end], strict=True):
        if not (right > left).any():
            continue
        for k in range(0, 32, count):
            s = left + (nodes[k : k + count].reshape(column) + 1) / 2 * (right - left)
            drop = slack(s)
            factor = beta_log_moment(cumulants, logs[0] - s - drop, logs[1] - drop, n, m)
            values = factor * np.exp(-a * s - (a + b) * drop)
            total = total + np.sum(weights[k : k + count].reshape(column) / 2 * (right - left) * values, axis=0)
    return total


def student_slope(v: Any, t: Any) -> Any:
    """The derivative in v of the distribution function F of Student's t distribution with v degrees of freedom.

    F is 1/2 ± I(1/2, v/2, y)/2, y = t²/(v + t²), or of negative t I(v/2, 1/2, 1 - y)/2 (DLMF 8.17): of the two, that
    of which the argument is the smaller one. Where v alone changes, y changes as if t did by -t/(2v).
    """
    dtype = np.result_type(v, t)
    v, t = np.broadcast_arrays(np.asarray(v, np.float64), np.asarray(t, np.float64))
    square = t * t
    near = square < v
    y = np.where(near, square, 0.0) / np.where(near, v + square, 1.0)
    x = np.where(near, 1.0, v) / np.where(near, 1.0, v + square)
    part = np.where(near, betainc_derivative(0.5, v / 2, y, 0, 1), -betainc_derivative(v / 2, 0.5, x, 1, 0))
    power = np.exp(-0.5 * (v + 1) * np.log1p(t / v * t) - beta_logarithm(v / 2, 0.5)) / np.sqrt(v)
    shift = np.where(np.isinf(t) | np.isinf(v), 0.0, t / v) * np.where(np.isinf(v), 0.0, power)
    return (np.sign(t) * part / 4 - shift / 2).astype(dtype)[()]
