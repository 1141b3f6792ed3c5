"""Functions of ``scipy.sparse.linalg`` beside the direct solvers: iterative solvers, norms, some eigenvalues.

An iterative solver's limit is the solution, which is what stands for it: it is closer than the tolerance that is asked
for, and so are its derivatives. Importing this module imports SciPy.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.linalg
import scipy.sparse.linalg

from srcgrad.errors import ArgumentError, ShapeError, UnsupportedError
from srcgrad.tracing.conversion.calls import call, call_rule
from srcgrad.tracing.functions.registry import as_array, refuse, require
from srcgrad.tracing.functions.scipy_sparse import UNTRACED, Sparse, solution
from srcgrad.tracing.functions.scipy_sparse_operators import Operator, dense
from srcgrad.tracing.tracer import contains_tracer

ITERATIVE: Final = ("bicg", "bicgstab", "cg", "cgs", "gcrotmk", "gmres", "lgmres", "minres", "qmr", "tfqmr")
sparse_linalg: Any = scipy.sparse.linalg


def is_traced(thing: Any) -> bool:
    return isinstance(thing, (Sparse, Operator)) or contains_tracer(thing)


def solve(a: Any, b: Any) -> Any:
    if isinstance(a, (Sparse, *UNTRACED)):
        return solution(Sparse.of(a), b)
    if isinstance(a, (Operator, sparse_linalg.LinearOperator)):
        a = Operator.of(a).toarray()
    right = as_array(b)
    return np.linalg.solve(as_array(a), right.reshape(right.shape[0], -1)).reshape(right.shape)


def iterative(original: Callable[..., Any]) -> Callable[..., Any]:
    """The rule of a solver that gives the solution and 0; a number of steps that may be too small is refused."""
    name = f"scipy.sparse.linalg.{original.__name__}"
    parameters = inspect.signature(original).parameters

    def rule(A: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
        if not (is_traced(A) or is_traced(b)):
            return original(A, b, *args, **kwargs)
        given = dict(zip(list(parameters)[2:], args, strict=False)) | kwargs
        if not set(given) <= set(parameters):
            return original(np.eye(1), np.ones(1), **given)  # which raises
        refuse(name, callback=(given.get("callback"), None))
        steps = given.get("maxiter")
        if steps is not None and steps < A.shape[0] and "gmres" not in name:
            raise UnsupportedError(
                f"{name} with maxiter={steps} is not supported on traced arrays: it may end before the solution",
                hint=f"leave maxiter out, or pass {A.shape[0]} or more; write the steps as a loop to end them early",
            )
        found: Any = solve(A, b)
        known = ~np.any(np.isnan(found)) | np.any(np.isnan(as_array(b)))
        require(known, "LinAlgError", f"{name}: the matrix is singular, so that it has no one solution")
        return found, 0

    return rule


for _name in ITERATIVE:
    call_rule(getattr(sparse_linalg, _name))(iterative(getattr(sparse_linalg, _name)))


@call_rule(sparse_linalg.spsolve_triangular)
def spsolve_triangular(A: Any, b: Any, lower: bool = True, *args: Any, **kwargs: Any) -> Any:
    """Of the triangle that is meant; with ``unit_diagonal`` its diagonal is not read."""
    if not (is_traced(A) or is_traced(b)):
        return sparse_linalg.spsolve_triangular(A, b, lower, *args, **kwargs)
    names = ("overwrite_A", "overwrite_b", "unit_diagonal")
    unit = {**dict(zip(names, args, strict=False)), **kwargs}.get("unit_diagonal", False)
    matrix = Sparse.of(A)
    below = matrix.rows - matrix.columns if lower else matrix.columns - matrix.rows
    if np.any(below < 0):
        raise ShapeError(f"A is not triangular: an element is {'above' if lower else 'below'} the diagonal")
    kept = np.flatnonzero(below > 0 if unit else below >= 0)
    triangle: Any = Sparse(matrix.data[kept], matrix.rows[kept], matrix.columns[kept], matrix.shape, matrix.matrix)
    return solution(triangle + scipy.sparse.eye(matrix.shape[0]) if unit else triangle, b)


@call_rule(sparse_linalg.inv)
def inv(A: Any) -> Any:
    if not isinstance(A, Sparse):
        return sparse_linalg.inv(A)
    found = solution(A, np.eye(A.shape[0]))
    rows, columns = (part.reshape(-1) for part in np.indices(found.shape))
    return Sparse(found.reshape(-1), rows, columns, found.shape, A.matrix)


@call_rule(sparse_linalg.expm)
def expm(A: Any) -> Any:
    """As the dense one's, of which nothing is known to be zero."""
    if not isinstance(A, Sparse):
        return call(scipy.linalg.expm, A) if is_traced(A) else sparse_linalg.expm(A)
    found = call(scipy.linalg.expm, A.toarray())
    rows, columns = (part.reshape(-1) for part in np.indices(found.shape))
    return Sparse(found.reshape(-1), rows, columns, found.shape, A.matrix)


def refused(original: Any) -> Any:
    """Of functions that ask a traced matrix what it is, and find nothing that they know."""

    def rule(A: Any, *args: Any, **kwargs: Any) -> Any:
        if is_traced(A):
            raise UnsupportedError(
                f"scipy.sparse.linalg.{original.__name__} has no derivative rule in srcgrad",
                hint="there are eigsh and svds, and the functions of np.linalg for A.toarray()",
            )
        return original(A, *args, **kwargs)

    return rule


for _original in (sparse_linalg.eigs, sparse_linalg.lobpcg, sparse_linalg.onenormest):
    call_rule(_original)(refused(_original))


@call_rule(sparse_linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None) -> Any:
    if not isinstance(x, Sparse):
        return sparse_linalg.norm(x, ord, axis)
    if ord in (None, "f", "fro") and axis is None:
        return np.linalg.norm(x.data)
    return np.linalg.norm(x.toarray(), ord, axis)


def require_part(name: str, k: Any, size: int) -> None:
    if not 0 < k < size:
        raise ArgumentError(
            f"scipy.sparse.linalg.{name}: k must satisfy 0 < k < {size}, not {k}",
            hint="numpy.linalg has all of a dense matrix",
        )


@call_rule(sparse_linalg.eigsh)
def eigsh(
    A: Any, k: int = 6, M: Any = None, sigma: Any = None, which: str = "LM", v0: Any = None, ncv: Any = None,
    maxiter: Any = None, tol: Any = 0, return_eigenvectors: bool = True, *args: Any, **kwargs: Any,
) -> Any:  # fmt: skip
    """Of all eigenvalues those that are asked for, in ascending order; without vectors as ARPACK has them."""
    if not is_traced(A):
        options = {"M": M, "sigma": sigma, "which": which, "v0": v0, "ncv": ncv, "maxiter": maxiter, "tol": tol}
        return sparse_linalg.eigsh(A, k, *args, return_eigenvectors=return_eigenvectors, **options, **kwargs)
    refuse("scipy.sparse.linalg.eigsh", M=(M, None), **{name: (value, None) for name, value in kwargs.items()})
    size = A.shape[0]
    require_part("eigsh", k, size)
    values, vectors = np.linalg.eigh(dense(A))
    kinds = ("LM",) if sigma is not None else ("LA", "SA", "LM", "SM")
    if which not in kinds:
        raise UnsupportedError(f"scipy.sparse.linalg.eigsh with which={which!r} is not supported on traced arrays")
    if sigma is not None:
        order = np.argsort(-abs(values - sigma))
    elif which in ("LM", "SM"):
        order = np.argsort(abs(values) if which == "LM" else -abs(values))
    else:
        order = np.arange(size)[:: 1 if which == "LA" else -1]
    kept: Any = order[size - k :]
    if not return_eigenvectors and sigma is None:
        return values[kept]
    kept = np.sort(kept)
    return (values[kept], vectors[:, kept]) if return_eigenvectors else values[kept]


@call_rule(sparse_linalg.svds)
def svds(
    A: Any, k: int = 6, ncv: Any = None, tol: Any = 0, which: str = "LM", v0: Any = None, maxiter: Any = None,
    return_singular_vectors: Any = True, *args: Any, **kwargs: Any,
) -> Any:  # fmt: skip
    """Of all singular values the largest, or smallest, in ascending order."""
    if not is_traced(A):
        options = {"ncv": ncv, "tol": tol, "which": which, "v0": v0, "maxiter": maxiter}
        return sparse_linalg.svds(A, k, *args, return_singular_vectors=return_singular_vectors, **options, **kwargs)
    require_part("svds", k, min(A.shape))
    if which not in ("LM", "SM"):
        raise ArgumentError(f"scipy.sparse.linalg.svds: which must be 'LM' or 'SM', not {which!r}")
    matrix = dense(A)
    part = slice(0, k) if which == "LM" else slice(min(matrix.shape) - k, None)
    if return_singular_vectors is False:
        return np.linalg.svd(matrix, compute_uv=False)[part][::-1]
    u, s, vh = np.linalg.svd(matrix, full_matrices=False)
    return u[:, part][:, ::-1], s[part][::-1], vh[part][::-1]
