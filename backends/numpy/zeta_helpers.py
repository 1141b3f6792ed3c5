"""Derivatives of Hurwitz's zeta function in its exponent, which SciPy does not have."""

from __future__ import annotations

from typing import Any

import numpy as np


def zeta_derivative(s: Any, q: Any, n: int) -> Any:
    """The n-th derivative in s of zeta(s, q), n >= 0, also where s < 1, by the formula of Euler and Maclaurin.

    With a = q + 10: the sum of (q + k)**-s for k < 10, and a**-s G(s) for the others, with G(s) = a/(s - 1) + 1/2 and
    the sum of B_2j/(2j)! s (s + 1)...(s + 2j - 2) a**(1 - 2j) (DLMF 25.11.5). What of it is left out is less than 1e-16
    of the whole for s > -1. An n-th derivative is by Leibniz's rule one of powers of -log(a) and of those of G, of
    which ``slopes`` has the products and ``rest`` the sum.
    """
    dtype = np.asarray(q).dtype
    s, q = (np.asarray(x, np.promote_types(dtype, np.float64)) for x in (s, q))
    never = np.isinf(s) | np.isinf(q)
    limit = np.where((s > 0) & (q < 1), np.inf, 0.0)  # there, of powers of q
    s = np.where(never, 2.0, s)
    q = np.where(never, 1.0, np.where(q > 0, q, np.nan))
    total = np.zeros_like(q)
    for k in range(10):
        term = (q + k) ** -s
        for _ in range(n):
            term = term * -np.log(q + k)
        total = total + term
    a = q + 10.0
    pole = s - 1.0
    rest, term = [a / pole + 0.5], a / pole
    for order in range(1, n + 1):
        term = -order * term / pole
        rest.append(term)
    slopes = [s / a]
    for order in range(1, n + 1):
        slopes.append(1.0 / a if order == 1 else np.zeros_like(q))
    fractions = (
        1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600,
        -3617 / 10670622842880000, 43867 / 5109094217170944000, -174611 / 802857662698291200000,
        77683 / 14101100039391805440000, -236364091 / 1693824136731743669452800000,
    )  # fmt: skip
    for j, fraction in enumerate(fractions):
        rest = [total_slope + fraction * slope for total_slope, slope in zip(rest, slopes, strict=True)]
        for m in (2 * j + 1, 2 * j + 2):  # the next factor is (s + m)/a
            slopes = [
                ((s + m) * slope + order * (slopes[order - 1] if order else 0.0)) / a
                for order, slope in enumerate(slopes)
            ]
    logarithm, choices = -np.log(a), 1
    tail = rest[0]
    for order in range(1, n + 1):
        choices = choices * (n - order + 1) // order
        tail = tail * logarithm + choices * rest[order]
    found = np.where(never, limit, total + tail * a**-s)
    return found if dtype == np.float64 else found.astype(dtype)
