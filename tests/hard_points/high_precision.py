"""Functions of eigenvalues and singular values, and their derivatives by differences, with 60 digits.

What is differenced is smooth at equal values, whatever vectors the decompositions choose there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np

Array = np.ndarray[Any, Any]
DIGITS = 60
STEP = mpmath.mpf(10) ** -12


def precise(matrix: Any) -> Any:
    return mpmath.matrix(
        [[mpmath.mpmathify(complex(x) if np.iscomplexobj(matrix) else float(x)) for x in row] for row in matrix]
    )


def eigen_function(g: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """V g(w) V^H."""

    def apply(a: Any) -> Any:
        w, v = mpmath.eighe(a) if any(isinstance(x, mpmath.mpc) for x in a) else mpmath.eigsy(a)
        return v * mpmath.diag([g(x) for x in w]) * v.H

    return apply


def singular_function(g: Callable[[Any], Any], block: str = "cross") -> Callable[[Any], Any]:
    """U g(s) V^H, or U g(s) U^H (``left``), or V g(s) V^H (``right``)."""

    def apply(a: Any) -> Any:
        u, s, vh = mpmath.svd_c(a, full_matrices=False)
        d = mpmath.diag([g(x) for x in s])
        return {"cross": u * d * vh, "left": u * d * u.H, "right": vh.H * d * vh}[block]

    return apply


def trace(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def apply(a: Any) -> Any:
        found = f(a)
        return mpmath.matrix([[sum(found[k, k] for k in range(found.rows))]])

    return apply


def value_and_derivatives(f: Callable[[Any], Any], a: Array, h: Array, k: Array) -> tuple[Array, Array, Array]:
    """f(A), its derivative along H, and its second derivative along H and K."""
    with mpmath.workdps(DIGITS):
        x, y, z = (precise(matrix) for matrix in (a, h, k))
        y, z = STEP * y, STEP * z
        first = (f(x + y) - f(x - y)) / (2 * STEP)
        second = (f(x + y + z) - f(x + y - z) - f(x - y + z) + f(x - y - z)) / (4 * STEP * STEP)
        value, first, second = (np.array(found.tolist(), dtype=complex) for found in (f(x), first, second))
    if np.iscomplexobj(a):
        return value, first, second
    return value.real, first.real, second.real
