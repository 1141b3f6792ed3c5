"""Eigenvalues and singular values of ``scipy.linalg``, and what it computes from them: `scipy_linalg` says more."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import scipy.linalg

from srcgrad.errors import DTypeError, ShapeError, UnsupportedError
from srcgrad.tracing.functions.decompositions import eigenvectors
from srcgrad.tracing.functions.linear_algebra import cholesky, linalg_dtype, rectangular_matrices, square_matrices
from srcgrad.tracing.functions.registry import as_array, cast, inexact_dtype, refuse
from srcgrad.tracing.functions.scipy_linalg import SINCE_1_18, scipy_rule
from srcgrad.tracing.functions.scipy_pencils import pencil
from srcgrad.tracing.tracer import as_tracer, emit

Array = Any


def lowered(b: Any, lower: Any) -> Array:
    """The matrix whose lower triangle is the one that is read."""
    a: Any = as_tracer(b)
    return a if lower else np.conjugate(a.mT)


@scipy_rule(scipy.linalg.eigh, finite="a b")
def eigh(
    a: Any,
    b: Any = None,
    *,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    type: int = 1,
    check_finite: bool = True,
    subset_by_index: Any = None,
    subset_by_value: Any = None,
    driver: Any = None,
) -> Any:
    """With ``b`` = L L^H, the problem A v = w B v is that of L^-1 A L^-H for L^H v.

    The types 2 and 3, A B v = w v and B A v = w v, are those of L^H A L, for L^H v and for L^-1 v.
    """
    check_driver(driver, b is not None, subset_by_index is not None or subset_by_value is not None)
    if subset_by_index is not None and subset_by_value is not None:
        raise ShapeError("Either index or value subset can be requested.")
    if b is not None and type not in (1, 2, 3):
        raise ShapeError('"type" keyword only accepts 1, 2, and 3.')
    matrix = lowered(a, lower)
    factor: Any = None
    w: Any
    v: Any
    if b is not None:
        shapes = square_matrices(matrix).shape, square_matrices(b).shape
        if shapes[0][-1] != shapes[1][-1]:
            raise ShapeError(f"wrong b dimensions {shapes[1]}, should be {shapes[0]}")
        dtype = linalg_dtype(matrix, as_tracer(b))
        matrix = cast(matrix, dtype)
        factor = cholesky(lowered(cast(b, dtype), lower))
        back = np.conjugate(factor.mT)
        matrix = congruent(hermitian(matrix), factor) if type == 1 else back @ hermitian(matrix) @ factor
    bounds = subset_by_value if subset_by_index is None else subset_by_index
    subset = None if bounds is None else ("value" if subset_by_index is None else "index", *bounds)
    if eigvals_only:
        return eigenvalues(matrix, subset)
    if driver is None and b is not None:
        driver = "gvd" if subset is None else "gvx"
    within = {None: "evr", "gv": "ev", "gvd": "evd", "gvx": "evx"}.get(driver, driver)  # what LAPACK calls
    w, v = eigenpairs(matrix, not lower, subset, within)
    if factor is not None:
        v = factor @ v if type == 3 else emit("triangular_solve", factor, v, lower=True, trans="C", unit=False)
    return w, v


Subset = tuple[Any, Any, Any]
"""The eigenvalues that are asked for: "index" or "value", and two bounds."""


def eigenvalues(matrix: Array, subset: Subset | None) -> Array:
    w = np.linalg.eigvalsh(matrix)
    return picked(w, indices(w, subset))


def eigenpairs(matrix: Array, upper: bool, subset: Subset | None, driver: str, **attrs: Any) -> tuple[Array, Array]:
    """Those in a subset, with the signs that LAPACK gives them there, which are others than without."""
    if driver != "evd":
        attrs["driver"] = driver
    if subset is not None:
        kind: Any = int if subset[0] == "index" else float
        attrs["select"] = (subset[0], kind(subset[1]), kind(subset[2]))
    w, v = eigenvectors(square_matrices(matrix), upper, **attrs)
    places = indices(w, subset)
    return picked(w, places), picked(v, places)


DRIVERS: Final = ("ev", "evd", "evr", "evx")
GENERAL_DRIVERS: Final = ("gv", "gvd", "gvx")


def check_driver(driver: Any, general: bool, subset: bool) -> None:
    """LAPACK's routines differ in speed and the signs of vectors; SciPy refuses those that do not solve the problem.

    Raises:
        ValueError: SciPy's.
    """
    if driver not in (None, *DRIVERS, *GENERAL_DRIVERS):
        known = '", "'.join(("None", *DRIVERS, *GENERAL_DRIVERS))
        raise ShapeError(f'"{driver}" is unknown. Possible values are "{known}".')
    if general and driver in DRIVERS:
        raise ShapeError(f'"{driver}" does not accept input b array for standard eigenvalue problems.')
    if not general and driver in GENERAL_DRIVERS:
        raise ShapeError(f"{driver} requires input b array to be supplied for generalized eigenvalue problems.")
    if subset and driver in ("ev", "evd", "gv", "gvd"):
        raise ShapeError(f'"{driver}" cannot compute subsets of eigenvalues')


def hermitian(matrix: Any) -> Any:
    """The matrix of which a lower triangle is given."""
    below: Any = np.tril(matrix, -1)
    return np.tril(matrix) + np.conjugate(below.mT)


def congruent(matrix: Any, factor: Any) -> Any:
    """L^-1 A L^-H."""
    half: Any = emit("triangular_solve", factor, matrix, lower=True, trans="N", unit=False)
    return emit("triangular_solve", factor, np.conjugate(half.mT), lower=True, trans="N", unit=False)


class Between(NamedTuple):
    """The indices of eigenvalues from ``start`` to before ``stop``, of which there may be none."""

    start: int
    stop: int


def indices(w: Any, subset: Subset | None) -> Any:
    """Those of a subset: by value, they are greater than the first bound and at most the second; how many these are,
    the path says."""
    if subset is None or subset[0] == "index":
        return subset and subset[1:]
    if w.ndim != 1:
        raise UnsupportedError("scipy.linalg.eigh of a stack with subset_by_value is not supported on traced arrays")
    low, high = subset[1:]
    if not -np.inf <= low < high <= np.inf:
        raise ShapeError(f"Requested eigenvalue bounds are not valid: {low}, {high}")
    return Between(int(np.sum(w <= low)), int(np.sum(w <= high)))


def picked(x: Any, bounds: Any) -> Any:
    """Those of the eigenvalues, or eigenvectors, from one index to another."""
    if bounds is None:
        return x
    if isinstance(bounds, Between):
        return x[..., bounds.start : bounds.stop]
    start, end, last = int(bounds[0]), int(bounds[1]), x.shape[-1] - 1
    if not 0 <= start <= end <= last:
        raise ShapeError(
            f"Requested eigenvalue indices are not valid. Valid range is [0, {last}] and start <= end, but "
            f"start={start}, end={end} is given"
        )
    return x[..., start : end + 1]


@scipy_rule(scipy.linalg.eigvalsh, finite="a b")
def eigvalsh(
    a: Any,
    b: Any = None,
    *,
    lower: bool = True,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    type: int = 1,
    check_finite: bool = True,
    subset_by_index: Any = None,
    subset_by_value: Any = None,
    driver: Any = None,
) -> Any:
    options: dict[str, Any] = {"subset_by_index": subset_by_index, "subset_by_value": subset_by_value}
    return eigh(a, b, lower=lower, eigvals_only=True, type=type, driver=driver, **options)


def eigvals(
    a: Any,
    b: Any = None,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    homogeneous_eigvals: bool = False,
) -> Any:
    if b is None and not homogeneous_eigvals:
        return np.linalg.eigvals(a)
    return pencil(a, b, "eigvals", homogeneous_eigvals).w


def eigvals_before_1_18(
    a: Any, b: Any = None, overwrite_a: bool = False, check_finite: bool = True, homogeneous_eigvals: bool = False
) -> Any:
    return eigvals(a, b, homogeneous_eigvals=homogeneous_eigvals)


scipy_rule(scipy.linalg.eigvals, finite="a b")(eigvals if SINCE_1_18 else eigvals_before_1_18)


@scipy_rule(scipy.linalg.eig, finite="a b")
def eig(
    a: Any,
    b: Any = None,
    left: bool = False,
    right: bool = True,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    homogeneous_eigvals: bool = False,
) -> Any:
    if b is None and not left and not homogeneous_eigvals:
        return tuple(np.linalg.eig(a)) if right else np.linalg.eigvals(a)
    found = pencil(a, b, "eig", homogeneous_eigvals)
    wanted = (found.w, *([found.left] if left else []), *([found.right] if right else []))
    return wanted if len(wanted) > 1 else found.w


@scipy_rule(scipy.linalg.pinvh, finite="a")
def pinvh(
    a: Any, atol: Any = None, rtol: Any = None, lower: bool = True, return_rank: bool = False, check_finite: bool = True
) -> Any:
    """Of the Hermitian matrix of which one triangle is read."""
    refuse("scipy.linalg.pinvh", atol=(atol, None), rtol=(rtol, None), return_rank=(return_rank, False))
    matrix = as_array(a)
    matrix = cast(matrix, inexact_dtype(matrix.dtype))
    part: Any = np.tril(matrix, -1) if lower else np.triu(matrix, 1)
    diagonal = np.real(matrix * np.eye(matrix.shape[-1], dtype=matrix.dtype))
    limit = matrix.shape[-1] * float(np.finfo(matrix.dtype).eps)
    return np.linalg.pinv(part + np.conj(np.swapaxes(part, -1, -2)) + diagonal, rcond=limit, hermitian=True)


@scipy_rule(scipy.linalg.svd, finite="a")
def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    if not isinstance(lapack_driver, str):
        raise DTypeError("lapack_driver must be a string")
    if lapack_driver not in ("gesdd", "gesvd"):
        raise ShapeError(f'lapack_driver must be "gesdd" or "gesvd", not "{lapack_driver}"')
    if not compute_uv:
        return np.linalg.svdvals(a)
    return tuple(np.linalg.svd(rectangular_matrices(a), full_matrices=full_matrices))


@scipy_rule(scipy.linalg.svdvals, finite="a")
def svdvals(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    return np.linalg.svdvals(a)


@scipy_rule(scipy.linalg.polar, finite="a")
def polar(a: Any, side: str = "right") -> Any:
    """The unitary factor U V^H, and V s V^H (``right``) or U s U^H (``left``)."""
    if side not in ("right", "left"):
        raise ShapeError("`side` must be either 'right' or 'left'")
    u, s, vh = np.linalg.svd(rectangular_matrices(a), full_matrices=False)
    half: Any = np.conjugate(vh.mT) if side == "right" else u
    return u @ vh, (half * s[..., None, :]) @ np.conjugate(half.mT)
