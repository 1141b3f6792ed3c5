"""Rules of ``scipy.linalg`` for matrices of a given structure: banded and Toeplitz ones, Lyapunov equations, matrices
made from a few numbers. Systems of Toeplitz matrices are solved as dense ones.
"""

from __future__ import annotations

import operator
from typing import Any, Final

import numpy as np
import scipy.linalg

from srcgrad.errors import AxisError, DTypeError, ShapeError
from srcgrad.tracing.conversion.calls import followed
from srcgrad.tracing.functions.linear_algebra import linalg_dtype
from srcgrad.tracing.functions.predicates import truth_of
from srcgrad.tracing.functions.registry import as_array, cast, filled, require
from srcgrad.tracing.functions.scipy_decompositions import Subset, eigenpairs, eigenvalues
from srcgrad.tracing.functions.scipy_linalg import (
    SINCE_1_18,
    adjoint,
    scipy_rule,
    solve_sylvester,
    structured_solve,
    toeplitz,
)
from srcgrad.tracing.functions.written_loops import factor_bands
from srcgrad.tracing.tracer import FUNCTIONS, emit

CONSTANT = ("dft", "hadamard", "helmert", "hilbert", "invhilbert", "invpascal", "pascal")
"""Functions of whole numbers."""

for _name in CONSTANT:
    FUNCTIONS[getattr(scipy.linalg, _name)] = getattr(scipy.linalg, _name)


def of_bands(bands: Any, above: int) -> Any:
    """The square matrix a with ``a[i, j] == bands[above + i - j, j]``."""
    size = bands.shape[1]
    total: Any = filled((size, size), 0, bands.dtype)
    for row in range(bands.shape[0]):
        k = above - row
        if abs(k) < size:
            total = total + np.diag(bands[row, max(k, 0) : size + min(k, 0)], k)
    return total


def turned(bands: Any, below: int) -> Any:
    """The bands of the transposed matrix: each is moved along by as much as it is away from the diagonal.

    The rows, with zeros at their ends, are read as rows of one element more, of which each begins one element later.
    """
    rows, size = bands.shape
    if not size:
        return bands
    width = size + rows
    flat = np.pad(bands[::-1], ((0, 1), (below, rows - 1 - below))).reshape(-1)
    return flat[: rows * width].reshape(rows, width)[:, :size]


def columns_of(bands: Any, b: Any) -> tuple[Any, Any, bool]:
    """The bands, and as many columns in the same dtype; whether these were one vector."""
    numbers, right = as_array(bands), as_array(b)
    if numbers.ndim != 2:
        raise ShapeError(f"the bands must have two axes, not {numbers.ndim}")
    if right.ndim not in (1, 2) or right.shape[0] != numbers.shape[-1]:
        raise ShapeError("shapes of ab and b are not compatible.")
    dtype = linalg_dtype(numbers, right)
    is_vector = right.ndim == 1
    return cast(numbers, dtype), cast(right[:, None] if is_vector else right, dtype), is_vector


def of_banded(bands: Any, right: Any, below: int, above: int, definite: bool = False, strict: bool = True) -> Any:
    return emit("banded_solve", bands, right, below=below, above=above, definite=definite, strict=strict)


@scipy_rule(scipy.linalg.solve_banded, finite="ab b")
def solve_banded(
    l_and_u: Any, ab: Any, b: Any, overwrite_ab: bool = False, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """Of one number SciPy takes the quotient; what equals 1 is a number of diagonals too."""
    below, above = (1 if count == 1 else operator.index(count) for count in l_and_u)
    bands, right, is_vector = columns_of(ab, b)
    if bands.shape[0] != below + above + 1:
        raise ShapeError(
            f"invalid values for the number of lower and upper diagonals: l+u+1 ({below + above + 1}) does not equal "
            f"ab.shape[0] ({bands.shape[0]})"
        )
    found = right / bands[above, 0] if bands.shape[1] == 1 else of_banded(bands, right, below, above)
    return found[:, 0] if is_vector else found


@scipy_rule(scipy.linalg.solveh_banded, finite="ab b")
def solveh_banded(
    ab: Any,
    b: Any,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    lower: bool = False,
    check_finite: bool = True,
) -> Any:
    bands, right, is_vector = columns_of(ab, b)
    above = bands.shape[0] - 1
    found = of_banded(adjoint_bands(bands, above) if lower else bands, right, above, above, definite=True)
    return found[:, 0] if is_vector else found


def adjoint_bands(bands: Any, below: int) -> Any:
    """Those above the diagonal for those below, or the other way round."""
    found = turned(bands, below)
    return np.conjugate(found) if found.dtype.kind == "c" else found


def hermitian_of_bands(ab: Any, lower: bool) -> Any:
    bands = as_array(ab)
    if bands.ndim != 2:
        raise ShapeError(f"the bands must have two axes, not {bands.ndim}")
    triangle = of_bands(bands, 0 if lower else bands.shape[0] - 1)
    return triangle + adjoint(np.tril(triangle, -1) if lower else np.triu(triangle, 1))


@scipy_rule(scipy.linalg.cholesky_banded, finite="ab", one=True)
def cholesky_banded(ab: Any, overwrite_ab: bool = False, lower: bool = False, check_finite: bool = True) -> Any:
    """Column by column; what lies outside the matrix is what it was."""
    bands = as_array(ab)
    if bands.ndim != 2:
        raise ShapeError(f"the bands must have two axes, not {bands.ndim}")
    bands = cast(bands, linalg_dtype(bands))
    rows, size = bands.shape
    row, column = np.ogrid[:rows, :size]
    inside = column + row < size
    below = np.where(inside, bands if lower else adjoint_bands(bands, 0), 0)
    factor = followed(factor_bands)(below)
    require(np.all(np.real(factor[0]) > 0), "LinAlgError", "the matrix is not positive definite")
    if lower:
        return np.where(inside, factor, bands)
    return np.where(column >= rows - 1 - row, adjoint_bands(factor, rows - 1), bands)


@scipy_rule(scipy.linalg.cho_solve_banded, finite="cb_and_lower b")
def cho_solve_banded(cb_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """By the factor and its adjoint, which is the one that is above."""
    cb, lower = cb_and_lower
    factor, right, is_vector = columns_of(cb, b)
    count = factor.shape[0] - 1
    other = adjoint_bands(factor, count if lower else 0)
    below, above = (factor, other) if lower else (other, factor)
    half = of_banded(below, right, count, 0, strict=False)
    found = of_banded(above, half, 0, count, strict=False)
    return found[:, 0] if is_vector else found


@scipy_rule(scipy.linalg.eigvals_banded, finite="a_band", one=True)
def eigvals_banded(
    a_band: Any, lower: bool = False, overwrite_a_band: bool = False, select: Any = "a", select_range: Any = None,
    check_finite: bool = True,
) -> Any:  # fmt: skip
    return eig_banded(a_band, lower, True, select=select, select_range=select_range)


def selected(select: Any, select_range: Any) -> Subset | None:
    """The part of the eigenvalues that is asked for."""
    kind = select.lower() if isinstance(select, str) else select
    names = {0: "", "a": "", "all": "", 1: "value", "v": "value", "value": "value", 2: "index", "i": "index",
             "index": "index"}  # fmt: skip
    if kind not in names:
        raise ShapeError("invalid argument for select")
    if not names[kind]:
        return None
    bounds = np.asarray(select_range)
    if bounds.shape != (2,) or bounds[1] < bounds[0]:
        raise ShapeError("select_range must be a 2-element array-like in nondecreasing order")
    return names[kind], bounds[0], bounds[1]


@scipy_rule(scipy.linalg.eig_banded, finite="a_band", one=True)
def eig_banded(
    a_band: Any,
    lower: bool = False,
    eigvals_only: bool = False,
    overwrite_a_band: bool = False,
    select: Any = "a",
    select_range: Any = None,
    max_ev: int = 0,
    check_finite: bool = True,
) -> Any:
    part, matrix = selected(select, select_range), hermitian_of_bands(a_band, lower)
    if eigvals_only:
        return eigenvalues(matrix, part)
    return eigenpairs(matrix, not lower, part, "band", band=np.shape(a_band)[0] - 1)


DRIVERS: Final = ("auto", "stemr", "sterf", "stebz", "stev", "stevd")


@scipy_rule(scipy.linalg.eigh_tridiagonal, finite="d e", one=True)
def eigh_tridiagonal(
    d: Any,
    e: Any,
    eigvals_only: bool = False,
    select: Any = "a",
    select_range: Any = None,
    check_finite: bool = True,
    tol: float = 0.0,
    lapack_driver: str = "auto",
) -> Any:
    diagonal, beside = as_array(d), as_array(e)
    if diagonal.ndim != 1 or beside.shape != (diagonal.size - 1,):
        raise ShapeError(f"d ({diagonal.size}) must have one more element than e ({beside.size})")
    if "c" in (diagonal.dtype.kind, beside.dtype.kind):
        raise DTypeError("Only real arrays currently supported")
    if not isinstance(lapack_driver, str):
        raise DTypeError("lapack_driver must be str")
    if lapack_driver not in DRIVERS:
        raise ShapeError(f"lapack_driver must be one of {DRIVERS}, got {lapack_driver}")
    matrix = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
    part = selected(select, select_range)
    if eigvals_only:
        return eigenvalues(matrix, part)
    if lapack_driver == "auto":
        lapack_driver = "stevd" if part is None else "stebz"
    within = {} if part else {"stevd": "evd", "stemr": "evr"}  # which call them
    return eigenpairs(matrix, False, part, within.get(lapack_driver, lapack_driver))


@scipy_rule(scipy.linalg.eigvalsh_tridiagonal, finite="d e", one=True)
def eigvalsh_tridiagonal(
    d: Any,
    e: Any,
    select: Any = "a",
    select_range: Any = None,
    check_finite: bool = True,
    tol: float = 0.0,
    lapack_driver: str = "auto",
) -> Any:
    return eigh_tridiagonal(d, e, True, select, select_range, lapack_driver=lapack_driver)


def toeplitz_matrix(c_or_cr: Any) -> Any:
    """In double precision, as SciPy computes with it."""
    column, row = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, None)
    matrix = toeplitz(column, row)
    return cast(matrix, np.result_type(matrix.dtype, np.float64))


@scipy_rule(scipy.linalg.solve_toeplitz, finite="c_or_cr b")
def solve_toeplitz(c_or_cr: Any, b: Any, check_finite: bool = True) -> Any:
    return structured_solve(toeplitz_matrix(c_or_cr), b)


@scipy_rule(scipy.linalg.matmul_toeplitz, finite="c_or_cr x")
def matmul_toeplitz(c_or_cr: Any, x: Any, check_finite: bool = False, workers: Any = None) -> Any:
    column, row = (as_array(part) for part in (c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, c_or_cr)))
    right = as_array(x)
    row = row if isinstance(c_or_cr, tuple) or row.dtype.kind != "c" else np.conjugate(row)
    if max(column.size, row.size) <= LARGEST_DENSE or column.ndim != 1 or row.ndim != 1 or right.ndim not in (1, 2):
        return toeplitz_matrix(c_or_cr) @ right
    if right.shape[0] != row.shape[0]:
        raise ShapeError(f"the Toeplitz matrix has {row.shape[0]} columns, and x {right.shape[0]} rows")
    return circulant_product(np.concatenate([column, row[:0:-1]]), right)[: column.shape[0]]


LARGEST_DENSE: Final = 64
"""As many rows and columns of a Toeplitz matrix are multiplied as those of a dense one, which takes less time."""


def circulant_product(first: Any, right: Any) -> Any:
    """The columns times the circulant matrix with that first column, by Fourier transforms."""
    size = first.shape[0]
    numbers = first if right.ndim == 1 else first[:, None]
    if np.result_type(first.dtype, right.dtype).kind == "c":
        return np.fft.ifft(np.fft.fft(numbers, axis=0) * np.fft.fft(right, size, axis=0), axis=0)
    return np.fft.irfft(np.fft.rfft(numbers, axis=0) * np.fft.rfft(right, size, axis=0), size, axis=0)


@scipy_rule(scipy.linalg.solve_circulant)
def solve_circulant(
    c: Any, b: Any, singular: Any = "raise", tol: Any = None, caxis: int = -1, baxis: int = 0, outaxis: int = 0
) -> Any:
    """The quotient of the Fourier transforms; zeros where that of the matrix is small, unless this is an error."""
    column, right = np.atleast_1d(as_array(c)), np.atleast_1d(as_array(b))
    for x, axis in ((column, caxis), (right, baxis)):
        if not -x.ndim <= axis < x.ndim:
            raise AxisError(f"axis {axis} is out of bounds for an array with {x.ndim} axes")
    if column.shape[caxis] != right.shape[baxis]:
        raise ShapeError(f"Shapes of c {column.shape} and b {right.shape} are incompatible")
    if not right.size:
        return filled(right.shape, 0, np.result_type(column.dtype, right.dtype, np.float64))
    size = column.shape[caxis]
    column, right = np.moveaxis(column, caxis, -1), np.moveaxis(right, baxis, -1)
    is_complex = "c" in (column.dtype.kind, right.dtype.kind)
    transform = np.fft.fft if is_complex else np.fft.rfft
    below, above = transform(column), transform(right)
    length = np.abs(emit("stop_gradient", as_array(below)))
    least = np.max(length, axis=-1, keepdims=True) * (size * np.finfo(np.float64).eps) if tol is None else tol
    small = length <= least
    if singular == "raise":
        require(~np.any(small), "LinAlgError", "near singular circulant matrix.")
        quotient = above / below
    else:
        quotient = np.where(small, 0, above / np.where(small, 1, below))
    found = np.fft.ifft(quotient) if is_complex else np.fft.irfft(quotient, size)
    return np.moveaxis(found, -1, outaxis)


@scipy_rule(scipy.linalg.solve_continuous_lyapunov, finite="a")
def solve_continuous_lyapunov(a: Any, q: Any) -> Any:
    """X with a X + X a^H = q."""
    matrix = as_array(a)
    return solve_sylvester(matrix, adjoint(matrix), q)


@scipy_rule(scipy.linalg.solve_discrete_lyapunov, finite="a q", one=True)
def solve_discrete_lyapunov(a: Any, q: Any, method: Any = None) -> Any:
    """X with a X a^H - X + q = 0: by the Kronecker product, or for ten rows or more as SciPy by the bilinear transform.

    With b = (a - 1) (a + 1)^-1 it is b X + X b^H + 2 (a + 1)^-1 q (a^H + 1)^-1 = 0 (Popov 1964).
    """
    matrix, right = as_array(a), as_array(q)
    chosen = ("bilinear" if matrix.shape[0] >= 10 else "direct") if method is None else str(method).lower()
    if chosen not in ("bilinear", "direct"):
        raise ShapeError(f"Unknown solver {method}")
    dtype = linalg_dtype(matrix, right)
    matrix, right = cast(matrix, dtype), cast(right, dtype)
    if chosen == "direct":
        operator = np.eye(right.size) - np.kron(matrix, np.conjugate(matrix))
        return np.linalg.solve(operator, right.reshape(-1)).reshape(right.shape)
    identity: Any = np.eye(matrix.shape[0], dtype=dtype)
    inverse = np.linalg.inv(matrix + identity)
    return solve_continuous_lyapunov((matrix - identity) @ inverse, -2.0 * (inverse @ right @ adjoint(inverse)))


@scipy_rule(scipy.linalg.companion)
def companion(a: Any) -> Any:
    coefficients = as_array(a)
    if coefficients.ndim != 1 or coefficients.size < 2:
        raise ShapeError("Incorrect shape for `a`: it must be one-dimensional and of length at least 2")
    first = -coefficients[1:] / (1.0 * coefficients[0])
    return np.concatenate([first[None], np.eye(coefficients.size - 1)[:-1].astype(first.dtype)])


@scipy_rule(scipy.linalg.khatri_rao, one=True)
def khatri_rao(a: Any, b: Any) -> Any:
    """The Kronecker product column by column."""
    left, right = as_array(a), as_array(b)
    if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[1]:
        raise ShapeError("The number of columns for both arrays should be equal.")
    return (left[:, None, :] * right[None]).reshape((-1, left.shape[1]))


@scipy_rule(scipy.linalg.fiedler)
def fiedler(a: Any) -> Any:
    x = as_array(a)
    if x.size == 0:  # of which SciPy makes no matrices
        return x.reshape((0, 0) if SINCE_1_18 else (0,)).astype(np.float64)
    return np.abs(x[..., :, None] - x[..., None, :])


@scipy_rule(scipy.linalg.leslie, one=True)
def leslie(f: Any, s: Any) -> Any:
    fecundity, survival = as_array(f), as_array(s)
    if fecundity.ndim != 1 or survival.shape != (fecundity.size - 1,):
        raise ShapeError("Incorrect lengths for `f` and `s`: the length of `s` must be one less than that of `f`")
    last: Any = np.zeros((survival.size, 1))
    return np.concatenate([fecundity[None], np.concatenate([np.diag(survival), last], 1)])


@scipy_rule(scipy.linalg.convolution_matrix)
def convolution_matrix(a: Any, n: int, mode: str = "full") -> Any:
    kernel = as_array(a)
    size = kernel.shape[-1]
    if n <= 0 or kernel.ndim != 1 or size == 0:
        raise ShapeError("convolution_matrix takes a vector that is not empty and a positive number of columns")
    rows = np.arange(size + n - 1)[:, None] - np.arange(n)
    found: Any = np.where((rows >= 0) & (rows < size), kernel[np.clip(rows, 0, size - 1)], 0)
    trim = min(n, size) - 1
    first, last = {"full": (0, 0), "same": (trim // 2, trim - trim // 2), "valid": (trim, trim)}[mode]
    return found[first : found.shape[0] - last]


@scipy_rule(scipy.linalg.issymmetric)
def issymmetric(a: Any, atol: Any = None, rtol: Any = None) -> Any:
    return is_like(square_of_two(a), False, atol, rtol)


@scipy_rule(scipy.linalg.ishermitian)
def ishermitian(a: Any, atol: Any = None, rtol: Any = None) -> Any:
    return is_like(square_of_two(a), True, atol, rtol)


def square_of_two(a: Any) -> Any:
    x = as_array(a)
    if x.ndim != 2:
        raise ShapeError("Input array must be a 2D NumPy array.")
    if x.shape[0] != x.shape[1]:
        raise ShapeError("Input array must be square.")
    return x


def is_like(x: Any, conjugated: bool, atol: Any, rtol: Any) -> Any:
    """Whether a matrix is its transpose, or its adjoint, as `np.allclose` says; exactly if no tolerance is given, where
    SciPy does not look at the diagonal of what is its own conjugate: nan may stand there.
    """
    conjugated &= x.dtype.kind == "c"
    other = np.conjugate(x.T) if conjugated else x.T
    if atol or rtol:
        return np.allclose(x, other, atol=atol or 0.0, rtol=rtol or 0.0)
    if x.dtype == np.float16:
        raise DTypeError("No matching signature found")
    return truth_of(np.all((x == other) | (np.eye(x.shape[0], dtype=bool) & (not conjugated))))
