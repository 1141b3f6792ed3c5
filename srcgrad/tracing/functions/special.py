"""Ufuncs of scipy.special, which reach traced arrays as NumPy's own do."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

from srcgrad.tracing.ufuncs import ELEMENTWISE, ufunc_rule

ELEMENTWISE.update(
    {
        scipy.special.expit: "expit",
        scipy.special.erf: "erf",
        scipy.special.erfc: "erfc",
        scipy.special.gammaln: "gammaln",
        scipy.special.digamma: "digamma",
        scipy.special.psi: "digamma",
        scipy.special.xlogy: "xlogy",
        scipy.special.xlog1py: "xlog1py",
    }
)


@ufunc_rule(scipy.special.log_expit)
def log_expit(x: Any) -> Any:
    """log(expit(x)) = -log(1 + exp(-x))."""
    return -np.logaddexp(x.dtype.type(0), -x)


@ufunc_rule(scipy.special.logit)
def logit(x: Any) -> Any:
    return np.log(x) - np.log1p(-x)


@ufunc_rule(scipy.special.entr)
def entr(x: Any) -> Any:
    """-x log(x), 0 at 0, -inf below."""
    return np.where(x < 0, x.dtype.type(-np.inf), -scipy.special.xlogy(x, x))


@ufunc_rule(scipy.special.rel_entr)
def rel_entr(x: Any, y: Any) -> Any:
    """x log(x/y) for positive x and y, 0 where x = 0 and y >= 0, else inf."""
    inside = (x >= 0) & (y >= 0)
    value = scipy.special.xlogy(x, x) - scipy.special.xlogy(x, y)
    return np.where(inside, value, x.dtype.type(np.inf))


@ufunc_rule(scipy.special.exp2)
def exp2(x: Any) -> Any:
    return np.exp2(x)


@ufunc_rule(scipy.special.exp10)
def exp10(x: Any) -> Any:
    return np.power(x.dtype.type(10), x)


@ufunc_rule(scipy.special.ndtr)
def ndtr(x: Any) -> Any:
    """The normal distribution function, erfc(-x/sqrt(2))/2, accurate in the left tail."""
    return 0.5 * scipy.special.erfc(-x * x.dtype.type(np.sqrt(0.5)))
