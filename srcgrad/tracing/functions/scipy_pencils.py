"""Generalised eigenvalues of ``scipy.linalg``, and left eigenvectors: found by SciPy when the program runs.

With Z of columns z_i, A v_i = alpha_i z_i and B v_i = beta_i z_i, the pencil Z^-1 (A, B) V is diagonal; what it becomes
where A and B vary gives the derivatives (G. W. Stewart, J. Sun, Matrix Perturbation Theory, 1990, chapter VI). A
singular B is none to Z. Importing this module imports SciPy.
"""

from __future__ import annotations

import functools
from typing import Any, Final, NamedTuple

import numpy as np
import scipy.linalg

from srcgrad.errors import ShapeError, UnsupportedError
from srcgrad.tracing.functions.linear_algebra import linalg_dtype, square_matrices
from srcgrad.tracing.functions.registry import as_array, cast
from srcgrad.tracing.hosts import ask

EQUAL: Final = 1e-14
"""Pairs (alpha, beta) of norm 1 that differ by less are those of equal eigenvalues: their vectors do not couple."""


class Found(NamedTuple):
    """Eigenvalues, their pairs of norm 1, and the left and right eigenvectors."""

    w: Any
    alpha: Any
    beta: Any
    left: Any
    right: Any


def adjoint(x: Any) -> Any:
    return np.conj(x.mT)


def asked(general: bool) -> Any:
    """The callable of the program: SciPy's decomposition of one pencil, or of one matrix."""

    def site(a: Any, b: Any) -> Any:
        solvers: Any = scipy.linalg
        pair = (a, b) if general else (a,)
        w, left, right = solvers.eig(*pair, left=True, check_finite=False)
        alpha, beta = solvers.eigvals(*pair, homogeneous_eigvals=True, check_finite=False)
        if not general or not np.allclose(alpha, np.where(beta != 0, w * beta, alpha), equal_nan=True):
            alpha, beta = np.where(np.isfinite(w), w, 1.0), np.where(np.isfinite(w), 1.0, 0.0)
        size = np.hypot(np.abs(alpha), np.abs(beta))
        kind = np.result_type(w.dtype, np.complex64)
        return tuple(np.asarray(x, kind) for x in (w, alpha / size, beta / size, left, right))

    return site


@functools.cache
def decomposed(general: bool) -> Any:
    """The decomposition with its derivatives."""
    from srcgrad.custom import custom_jvp  # which is written with the modules of tracing

    site = asked(general)

    @custom_jvp
    def decomposition(a: Any, b: Any) -> Any:
        kind = np.result_type(a.dtype, np.complex64)
        numbers, matrix = np.zeros(a.shape[:1], kind), np.zeros(a.shape, kind)
        return tuple(ask(site, (a, b), (numbers, numbers, numbers, matrix, matrix), "scipy.linalg.eig"))

    def rule(primals: Any, tangents: Any) -> Any:
        (a, b), (da, db) = primals, tangents
        found = Found(*decomposition(a, b))
        change = moved(a, b, da, db, found, found.right, not general)
        mirrored = found._replace(alpha=np.conj(found.alpha), beta=np.conj(found.beta))
        back = moved(adjoint(a), adjoint(b), adjoint(da), adjoint(db), mirrored, found.left, not general)
        d_alpha, d_beta, right = change
        d_w = (d_alpha * found.beta - found.alpha * d_beta) / found.beta**2
        along = np.conj(found.alpha) * d_alpha + np.conj(found.beta) * d_beta
        d_alpha, d_beta = d_alpha - along * found.alpha, d_beta - along * found.beta
        return tuple(found), (d_w, d_alpha, d_beta, back[2], right)

    decomposition.defjvp(rule)
    return decomposition


def moved(a: Any, b: Any, da: Any, db: Any, found: Found, v: Any, largest_real: bool) -> tuple[Any, Any, Any]:
    """How alpha, beta and the vectors vary, whose norm stays 1.

    Their phases stay too, but for those of LAPACK's vectors of one matrix: real in their largest component.
    """
    alpha, beta = found.alpha, found.beta
    z = (a @ v) * np.conj(alpha) + (b @ v) * np.conj(beta)
    p, q = np.linalg.solve(z, da @ v), np.linalg.solve(z, db @ v)
    gaps = beta[:, None] * alpha - alpha[:, None] * beta
    apart = np.abs(gaps) > EQUAL
    turn = np.where(apart, (p * beta - q * alpha) / np.where(apart, gaps, 1.0), 0.0)
    free = v @ turn
    factor: Any = np.sum(np.conj(v) * free, axis=0)
    if largest_real:
        rows = np.argmax(np.abs(v), axis=0)[None, :]
        chosen, at = np.take_along_axis(v, rows, 0)[0], np.take_along_axis(free, rows, 0)[0]
        factor = np.real(factor) + 1j * np.imag(at) / np.real(chosen)
    return np.diagonal(p), np.diagonal(q), free - v * factor


def pencil(a: Any, b: Any, name: str, homogeneous: bool) -> Found:
    """The decomposition of matrices that a program is given.

    Raises:
        UnsupportedError: of the numbers alpha and beta alone, which LAPACK scales as it likes.
    """
    if homogeneous:
        raise UnsupportedError(
            f"scipy.linalg.{name} with homogeneous_eigvals=True has no derivative: how long a pair is, is not defined",
            hint="leave homogeneous_eigvals out: the eigenvalues are alpha/beta",
        )
    general = b is not None
    a = square_matrices(a)
    b = square_matrices(b) if general else np.eye(a.shape[-1], dtype=a.dtype)
    if a.shape != b.shape:
        raise ShapeError(f"a and b must have the same shape, not {a.shape} and {b.shape}")
    if a.ndim != 2:
        raise UnsupportedError(f"scipy.linalg.{name} of a stack with b= or left=True is not supported on traced arrays")
    kind = linalg_dtype(a, as_array(b))
    return Found(*decomposed(general)(cast(a, kind), cast(as_array(b), kind)))
