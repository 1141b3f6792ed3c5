"""Linear least squares between bounds, of ``scipy.optimize``: SciPy is asked which unknowns meet a bound.

The others solve the normal equations of their columns. Steps of Newton's method on these, from what SciPy has found,
change nothing but the derivatives: those where the same unknowns stay at their bounds. Importing this module imports
SciPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.optimize

from srcgrad.errors import ShapeError, UnsupportedError
from srcgrad.tracing.conversion.calls import call_rule
from srcgrad.tracing.functions.registry import as_array, cast, function_rule
from srcgrad.tracing.functions.scipy_interpolate import of_traced
from srcgrad.tracing.functions.scipy_ode import held
from srcgrad.tracing.functions.scipy_optimize import HELD
from srcgrad.tracing.hosts import ask
from srcgrad.tracing.tracer import Tracer

optimize: Any = scipy.optimize


def system(A: Any, b: Any, name: str) -> tuple[Any, Any]:
    if not isinstance(A, (Tracer, np.ndarray, list, tuple)):
        raise UnsupportedError(f"scipy.optimize.{name} of traced values takes arrays", hint="pass A.toarray()")
    matrix, right = (cast(as_array(x), np.float64) for x in (A, b))
    if matrix.ndim != 2:
        raise ShapeError(f"Expected a 2D array, but the shape of A is {matrix.shape}")
    if right.shape != matrix.shape[:1]:
        raise ShapeError(f"Incompatible dimensions. The first dimension of A is {matrix.shape[0]}, b has {right.shape}")
    return matrix, right


def settled(matrix: Any, right: Any, found: Any, free: Any, edge: Any) -> Any:
    """The solution as a function of the matrix, the right side and, where it is not free, of its bounds."""
    pairs = free[:, None] & free[None, :]
    normal = np.where(pairs, matrix.T @ matrix, np.eye(matrix.shape[1]))
    x = found
    for _ in range(HELD):
        x = x + np.linalg.solve(normal, np.where(free, matrix.T @ (right - matrix @ x), edge - x))
    return found + (x - held(x))


class TracedBounds(optimize.Bounds):  # type: ignore[misc]
    """SciPy's bounds of traced values, which are not looked at."""

    def __init__(self, lb: Any = -np.inf, ub: Any = np.inf, keep_feasible: Any = False) -> None:
        self.lb, self.ub, self.keep_feasible = np.atleast_1d(as_array(lb)), np.atleast_1d(as_array(ub)), keep_feasible


call_rule(optimize.Bounds)(of_traced(optimize.Bounds, TracedBounds))


@function_rule(optimize.nnls)
def nnls(A: Any, b: Any, maxiter: Any = None, **options: Any) -> tuple[Any, Any]:
    matrix, right = system(A, b, "nnls")

    def site(a: Any, b: Any) -> Any:
        return np.asarray(optimize.nnls(a, b, maxiter=maxiter, **options)[0], np.float64)

    found: Any = ask(site, (matrix, right), np.zeros(matrix.shape[1]), "scipy.optimize.nnls")
    x = settled(matrix, right, found, found > 0, 0.0)
    return x, np.linalg.norm(matrix @ x - right)


@function_rule(optimize.lsq_linear)
def lsq_linear(A: Any, b: Any, bounds: Any = (-np.inf, np.inf), *rest: Any, **options: Any) -> Any:
    """Its result, without the text of how it ended."""
    matrix, right = system(A, b, "lsq_linear")
    ends = (bounds.lb, bounds.ub) if isinstance(bounds, optimize.Bounds) else bounds
    size = matrix.shape[1:]
    if isinstance(bounds, optimize.Bounds) and bounds.lb.shape != size and bounds.ub.shape != size:
        raise ShapeError("Bounds have wrong shape.")
    low, high = (np.zeros(matrix.shape[1]) + cast(as_array(end), np.float64) for end in ends)

    def site(a: Any, b: Any, low: Any, high: Any) -> Any:
        found = optimize.lsq_linear(a, b, (low, high), *rest, **options)
        counts = (np.int64(found.nit), np.int64(found.status), np.float64(found.optimality))
        return (found.x, np.asarray(found.active_mask, np.int64), *counts)

    like = (np.zeros(matrix.shape[1]), np.zeros(matrix.shape[1], np.int64), np.int64(0), np.int64(0), np.float64(0))
    found, mask, steps, status, optimality = ask(site, (matrix, right, low, high), like, "scipy.optimize.lsq_linear")
    at: Any = mask
    edge = np.where(at < 0, np.where(at < 0, low, 0.0), np.where(at > 0, high, 0.0))
    x = settled(matrix, right, found, at == 0, edge)
    left = matrix @ x - right
    return optimize.OptimizeResult(
        x=x, fun=left, cost=0.5 * np.sum(left**2), optimality=optimality, active_mask=mask, nit=steps, status=status,
        success=status > 0,
    )  # fmt: skip
