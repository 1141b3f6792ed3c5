"""Rules of ``scipy.linalg`` for algebraic Riccati equations.

The stabilising solution is found by iterations that converge quadratically, and counts as known: Kleinman's steps of
Newton's method from there change nothing but the derivatives, which after two of them are right up to the third order
(D. Kleinman, On an iterative technique for Riccati equation computations, 1968). Importing this module imports SciPy.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import scipy.linalg

from srcgrad.errors import ShapeError
from srcgrad.tracing.functions.linear_algebra import linalg_dtype
from srcgrad.tracing.functions.registry import as_array, cast, require
from srcgrad.tracing.functions.scipy_linalg import adjoint, require_finite, scipy_rule, solve_sylvester
from srcgrad.tracing.functions.scipy_ode import held
from srcgrad.tracing.functions.scipy_structured import solve_discrete_lyapunov

TRIPS: Final = 40
"""How often an iteration is repeated at most: each trip doubles the digits, once they are there."""
INFINITE: Final = "Failed to find a finite solution."


def operands(a: Any, b: Any, q: Any, r: Any, e: Any, s: Any) -> list[Any]:
    """The matrices of one equation without ``e`` and ``s``, and what takes its solution to that of the given one.

    With Y = E^H X E the equation has E^-1 A and E^-1 B in place of A and B; without S it has A - B R^-1 S^H and
    Q - S R^-1 S^H.
    """
    given: list[Any] = [np.atleast_2d(as_array(x)) for x in (a, b, q, r, *(x for x in (e, s) if x is not None))]
    for matrix in given:
        require_finite(matrix)
    dtype = linalg_dtype(*given)
    dtype = np.dtype(np.complex128 if dtype.kind == "c" else np.float64)
    given = [cast(x, dtype) for x in given]
    check_shapes(given, e is not None, s is not None)
    a, b, q, r = given[:4]
    for name, matrix in (("q", q), ("r", r)):
        error, size = (np.linalg.norm(x, 1) for x in (matrix - adjoint(matrix), matrix))
        require(error <= 100 * np.spacing(size), "ValueError", f"Matrix {name} should be symmetric/hermitian.")
    values: Any = np.linalg.svd(held(r), compute_uv=False)
    regular = values[-1] >= np.spacing(1.0) * np.linalg.norm(held(r), 1)
    require(regular & (values[-1] != 0.0), "ValueError", "Matrix r is numerically singular.")
    scale = given[4] if e is not None else None
    if scale is not None:
        a, b = np.linalg.solve(scale, a), np.linalg.solve(scale, b)
    if s is not None:
        mixed = given[-1]
        back = np.linalg.solve(r, adjoint(mixed))
        a, q = a - b @ back, q - mixed @ back
    return [a, b, q, r, scale]


def check_shapes(given: list[Any], has_e: bool, has_s: bool) -> None:
    a, b, q, r = given[:4]
    for name, matrix in zip("aqr", (a, q, r), strict=True):
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ShapeError(f"Matrix {name} should be square.")
    if b.shape[0] != a.shape[0]:
        raise ShapeError("Matrix a and b should have the same number of rows.")
    if q.shape != a.shape:
        raise ShapeError("Matrix a and q should have the same shape.")
    if b.shape[1] != r.shape[0]:
        raise ShapeError("Matrix b and r should have the same number of cols.")
    if has_e and given[4].shape != a.shape:
        raise ShapeError("Matrix a and e should have the same shape.")
    if has_s and given[-1].shape != b.shape:
        raise ShapeError("Matrix b and s should have the same shape.")


def finished(x: Any, residual: Any, scale: Any, pencil: str, places: str) -> Any:
    """The solution of the given equation, if it is one."""
    size = np.max(np.abs(held(x)))
    require(np.isfinite(size), "LinAlgError", INFINITE)
    solved = np.max(np.abs(held(residual))) <= 1e-6 * (1.0 + size)
    require(solved, "LinAlgError", f"The associated {pencil} pencil has eigenvalues too close to the {places}")
    if scale is not None:
        half = np.linalg.solve(adjoint(scale), x)
        x = adjoint(np.linalg.solve(adjoint(scale), adjoint(half)))
    return 0.5 * (x + adjoint(x))


@scipy_rule(scipy.linalg.solve_continuous_are)
def solve_continuous_are(a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True) -> Any:
    """A^H X + X A - X G X + Q = 0 with G = B R^-1 B^H."""
    a, b, q, r, scale = operands(a, b, q, r, e, s)
    g = b @ np.linalg.solve(r, adjoint(b))

    def step(x: Any) -> Any:
        closed = a - g @ x
        return solve_sylvester(adjoint(closed), closed, -(q + x @ g @ x))

    x = held(step(stabilising(held(a), held(g), held(q))))
    x = step(step(x))
    residual = adjoint(a) @ x + x @ a - x @ g @ x + q
    require(np.all(np.real(np.linalg.eigvals(held(a - g @ x))) < 0.0), "LinAlgError", INFINITE)
    return finished(x, residual, scale, "Hamiltonian", "imaginary axis")


def stabilising(a: Any, g: Any, q: Any) -> Any:
    """By the sign W of the Hamiltonian matrix: (W + I) [I; X] = 0 (J. Roberts, Linear model reduction and solution of
    the algebraic Riccati equation by use of the sign function, 1980).
    """
    size = a.shape[0]
    hamiltonian = np.concatenate([np.concatenate([a, -g], 1), np.concatenate([-q, -adjoint(a)], 1)])
    from srcgrad.tracing.conversion.convert import convert  # which needs the rules

    sign = convert(sign_of)(hamiltonian) + np.eye(2 * size)  # type: ignore[arg-type]
    return -np.linalg.pinv(sign[:, size:]) @ sign[:, :size]


def sign_of(matrix: Any) -> Any:
    """Newton's iteration, scaled by the determinant; a matrix without a sign is nan."""
    for _ in range(TRIPS):
        scale = np.exp(-np.linalg.slogdet(matrix)[1] / matrix.shape[0])
        matrix = 0.5 * (scale * matrix + np.linalg.inv(matrix) / scale)
    return matrix


@scipy_rule(scipy.linalg.solve_discrete_are)
def solve_discrete_are(a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True) -> Any:
    """X = A^H X A - A^H X B (R + B^H X B)^-1 B^H X A + Q."""
    a, b, q, r, scale = operands(a, b, q, r, e, s)

    def step(x: Any) -> Any:
        gain = np.linalg.solve(r + adjoint(b) @ x @ b, adjoint(b) @ x @ a)
        closed = adjoint(a - b @ gain)
        return solve_discrete_lyapunov(closed, q + adjoint(gain) @ r @ gain)

    from srcgrad.tracing.conversion.convert import convert  # which needs the rules

    g = b @ np.linalg.solve(r, adjoint(b))
    x = convert(doubled)(held(a), held(g), held(q))  # type: ignore[arg-type]
    x = step(step(held(step(x))))
    back = adjoint(b) @ x @ a
    residual = adjoint(a) @ x @ a - x - adjoint(back) @ np.linalg.solve(r + adjoint(b) @ x @ b, back) + q
    return finished(x, residual, scale, "symplectic", "unit circle")


def doubled(a: Any, g: Any, h: Any) -> Any:
    """What h is after 2**n steps of the Riccati difference equation, for n trips (E. Chu and others, A structure-
    preserving doubling algorithm for periodic discrete-time algebraic Riccati equations, 2004).
    """
    for _ in range(TRIPS):
        inner = np.linalg.inv(np.eye(a.shape[0]) + g @ h)
        forth = a @ inner
        h = h + np.conjugate(a.T) @ h @ inner @ a
        g = g + forth @ g @ np.conjugate(a.T)
        a = forth @ a
    return h
