"""Decompositions, and the equations that are solved with them."""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from srcgrad.torch.dispatch import apply
from srcgrad.torch.errors import LinAlgError, TensorError
from srcgrad.torch.operation import Op
from srcgrad.torch.ops.arguments import lapack, named_result, need_tensor, scipy_linalg
from srcgrad.torch.ops.define import method, promoted, store
from srcgrad.torch.ops.matrices import default_cutoff, need_matrices, need_square
from srcgrad.torch.tensor import Tensor, wrapped
from srcgrad.tracing.tracer import Tracer

numpy_qr: Final[Any] = np.linalg.qr
scipy_lu: Final = scipy_linalg("lu")
scipy_lu_factor: Final = scipy_linalg("lu_factor")
scipy_lu_solve: Final = scipy_linalg("lu_solve")
scipy_cho_solve: Final = scipy_linalg("cho_solve")
scipy_solve_triangular: Final = scipy_linalg("solve_triangular")


# --- Cholesky factors ---------------------------------------------------------------------------------


def failed_minor(x: Any) -> tuple[int, int]:
    """The first matrix of a stack that is not positive-definite, and the order of its minor that is not."""
    potrf = lapack("potrf", x)
    for k, matrix in enumerate(x.reshape(-1, *x.shape[-2:])):
        info = potrf(matrix, lower=True)[1]
        if info:
            return k, int(info)
    return 0, x.shape[-1]


def cholesky_factor(x: Any, upper: bool) -> Any:
    try:
        return np.linalg.cholesky(x, upper=upper)
    except np.linalg.LinAlgError:
        index, order = failed_minor(x)
        batch = f"(Batch element {index}): " if x.ndim > 2 else ""
        raise LinAlgError(
            f"linalg.cholesky: {batch}The factorization could not be completed because the input is not "
            f"positive-definite (the leading minor of order {order} is not positive-definite)."
        ) from None


CHOLESKY: Final = Op("linalg.cholesky", "LinalgCholeskyExBackward0", cholesky_factor, saves_result=True)
CHOLESKY_EX: Final = named_result("linalg_cholesky_ex", "L", "info")
CHOLESKY_SOLVE: Final = Op(
    "cholesky_solve",
    "CholeskySolveBackward0",
    lambda b, factor, lower: scipy_cho_solve((factor, lower), b),
    saves_result=True,
)
CHOLESKY_INVERSE: Final = Op(
    "cholesky_inverse",
    "CholeskyInverseBackward0",
    lambda factor, lower: scipy_cho_solve((factor, lower), identities(factor)),
    saves_result=True,
)


def identities(x: Any) -> Any:
    """A unit matrix for each matrix of a stack."""
    return np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), x.shape)


def linalg_cholesky(A: Tensor, *, upper: bool = False, out: Any = None) -> Tensor:
    """L with L L^H = A, or U with U^H U = A. One triangle is read, as of a Hermitian matrix.

    Raises:
        LinAlgError: A is not positive-definite.
    """
    need_square("linalg.cholesky", A)
    return store(out, apply(CHOLESKY, (A,), (upper,)))  # type: ignore[no-any-return]


@method("cholesky")
def cholesky(input: Tensor, upper: bool = False, *, out: Any = None) -> Tensor:
    """`torch.linalg.cholesky`."""
    return linalg_cholesky(input, upper=upper, out=out)


def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """The factor, and 0, or the order of the minor that is not positive-definite (then the factor is nan)."""
    need_square("linalg.cholesky_ex", A)
    info = np.zeros(A._data.shape[:-2], np.int32)
    try:
        return CHOLESKY_EX(linalg_cholesky(A, upper=upper), wrapped(info))
    except LinAlgError:
        if check_errors:
            raise
    for index in np.ndindex(info.shape):
        potrf = lapack("potrf", A._data)
        info[index] = potrf(A._data[index], lower=True)[1]
    return CHOLESKY_EX(wrapped(np.full_like(A._data, np.nan)), wrapped(info))


@method("cholesky_solve")
def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False, *, out: Any = None) -> Tensor:
    """X with A X = B, from the Cholesky factor of A."""
    need_matrices("cholesky_solve", B, "B")
    need_square("cholesky_solve", L, "L")
    return store(out, apply(CHOLESKY_SOLVE, (B, L), (not upper,)))  # type: ignore[no-any-return]


@method("cholesky_inverse")
def cholesky_inverse(L: Tensor, upper: bool = False, *, out: Any = None) -> Tensor:
    """The inverse of A, from its Cholesky factor."""
    need_square("cholesky_inverse", L, "L")
    return store(out, apply(CHOLESKY_INVERSE, (L,), (not upper,)))  # type: ignore[no-any-return]


# --- orthogonal factors -------------------------------------------------------------------------------


def orthogonal_factors(x: Any, mode: str) -> Any:
    if mode == "r":
        return np.zeros((0,), x.dtype), numpy_qr(x, "r")
    return tuple(numpy_qr(x, mode))


QR: Final = Op("linalg.qr", "LinalgQrBackward0", orthogonal_factors, saves_result=True)
QR_RESULT: Final = named_result("qr", "Q", "R")
LINALG_QR_RESULT: Final = named_result("linalg_qr", "Q", "R")


def linalg_qr(A: Tensor, mode: str = "reduced", *, out: Any = None) -> Any:
    """Q and R with Q R = A; ``mode`` is reduced, complete, or r (R alone)."""
    need_matrices("linalg.qr", A)
    if mode not in ("reduced", "complete", "r"):
        raise TensorError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    return LINALG_QR_RESULT(*apply(QR, (A,), (mode,)))


@method("qr")
def qr(input: Tensor, some: bool = True) -> Any:
    """`torch.linalg.qr`: reduced, or complete for ``some=False``."""
    return QR_RESULT(*linalg_qr(input, "reduced" if some else "complete"))


# --- singular values ----------------------------------------------------------------------------------

SVD: Final = Op(
    "linalg.svd", "LinalgSvdBackward0", lambda x, full: tuple(np.linalg.svd(x, full_matrices=full)), saves_result=True
)
SVDVALS: Final = Op(
    "linalg.svdvals", "LinalgSvdBackward0", lambda x: np.linalg.svd(x, compute_uv=False), saves_result=True
)
SVD_RESULT: Final = named_result("svd", "U", "S", "V")
LINALG_SVD_RESULT: Final = named_result("linalg_svd", "U", "S", "Vh")


def old_svd(x: Any, full: bool) -> Any:
    u, s, vh = np.linalg.svd(x, full_matrices=full)
    return u, s, np.conjugate(np.swapaxes(vh, -1, -2))


OLD_SVD: Final = Op("svd", "LinalgSvdBackward0", old_svd, saves_result=True)


def linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: Any = None, out: Any = None) -> Any:
    """U, S and Vh with (U * S) Vh = A."""
    need_matrices("linalg.svd", A)
    return LINALG_SVD_RESULT(*apply(SVD, (A,), (full_matrices,)))


@method("svd")
def svd(input: Tensor, some: bool = True, compute_uv: bool = True, *, out: Any = None) -> Any:
    """U, S and V (not its adjoint) with U diag(S) V^H = A; zeros for U and V without ``compute_uv``."""
    need_matrices("linalg.svd", input)
    if compute_uv:
        return SVD_RESULT(*apply(OLD_SVD, (input,), (not some,)))
    (rows, columns), stack = input._data.shape[-2:], input._data.shape[:-2]
    zeros = [wrapped(np.zeros((*stack, n, n), input._data.dtype)) for n in (rows, columns)]
    return SVD_RESULT(zeros[0], svdvals(input), zeros[1])


def svdvals(A: Tensor, *, driver: Any = None, out: Any = None) -> Tensor:
    """The singular values, the largest first."""
    need_matrices("linalg.svdvals", A)
    return store(out, apply(SVDVALS, (A,)))  # type: ignore[no-any-return]


# --- eigenvalues --------------------------------------------------------------------------------------


def complex_of(dtype: Any) -> Any:
    return np.result_type(dtype, np.complex64)


def eigen(x: Any) -> Any:
    values, vectors = np.linalg.eig(x)
    return values.astype(complex_of(x.dtype)), vectors.astype(complex_of(x.dtype))


EIGH: Final = Op(
    "linalg.eigh", "LinalgEighBackward0", lambda x, part: tuple(np.linalg.eigh(x, part)), saves_result=True
)
EIGVALSH: Final = Op("linalg.eigvalsh", "LinalgEighBackward0", np.linalg.eigvalsh)
EIG: Final = Op("linalg.eig", "LinalgEigBackward0", eigen, saves_result=True)
EIGVALS: Final = Op("linalg.eigvals", "LinalgEigBackward0", lambda x: np.linalg.eigvals(x).astype(complex_of(x.dtype)))
EIGH_RESULT: Final = named_result("linalg_eigh", "eigenvalues", "eigenvectors")
EIG_RESULT: Final = named_result("linalg_eig", "eigenvalues", "eigenvectors")


def checked_part(UPLO: str) -> str:
    if UPLO.upper() not in ("L", "U"):
        raise TensorError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO.upper()


def eigh(A: Tensor, UPLO: str = "L", *, out: Any = None) -> Any:
    """The eigenvalues, the smallest first, and eigenvectors of a Hermitian matrix of which one triangle is read."""
    need_square("linalg.eigh", A)
    return EIGH_RESULT(*apply(EIGH, (A,), (checked_part(UPLO),)))


def eigvalsh(A: Tensor, UPLO: str = "L", *, out: Any = None) -> Tensor:
    """The eigenvalues of a Hermitian matrix, the smallest first."""
    need_square("linalg.eigvalsh", A)
    return store(out, apply(EIGVALSH, (A,), (checked_part(UPLO),)))  # type: ignore[no-any-return]


def eig(A: Tensor, *, out: Any = None) -> Any:
    """The eigenvalues and eigenvectors of a square matrix: always complex."""
    need_square("linalg.eig", A)
    return EIG_RESULT(*apply(EIG, (A,)))


def eigvals(A: Tensor, *, out: Any = None) -> Tensor:
    """The eigenvalues of a square matrix: always complex."""
    need_square("linalg.eigvals", A)
    return store(out, apply(EIGVALS, (A,)))  # type: ignore[no-any-return]


# --- LU -----------------------------------------------------------------------------------------------

LU: Final = Op("linalg.lu", "LinalgLuBackward0", lambda x: tuple(scipy_lu(x)[1:]), saves_result=True)
LU_RESULT: Final = named_result("linalg_lu", "P", "L", "U")
LU_FACTOR_RESULT: Final = named_result("linalg_lu_factor", "LU", "pivots")


def packed_lu(x: Any) -> Any:
    """The factors in one matrix, and the rows that were exchanged, counted from 1."""
    if isinstance(x, Tracer):
        packed, pivots = scipy_lu_factor(x)
        return packed, (pivots + 1).astype(np.int32)
    size = min(x.shape[-2:])
    packed, pivots = np.empty_like(x), np.empty((*x.shape[:-2], size), np.int32)
    getrf = lapack("getrf", x)
    for place, index in enumerate(np.ndindex(x.shape[:-2] if x.size else (0,))):
        packed[index], found, info = getrf(x[index])
        pivots[index] = found + 1
        if info > 0:
            batch = f"(Batch element {place}): " if x.ndim > 2 else ""
            raise LinAlgError(
                f"torch.linalg.lu_factor: {batch}U[{info},{info}] is zero and using it on lu_solve would result in a "
                "division by zero. If you still want to perform the factorization, consider calling linalg.lu(A, "
                "pivot) or linalg.lu_factor_ex(A, pivot)"
            )
    return packed, pivots


LU_FACTOR: Final = Op("linalg.lu_factor", "LinalgLuFactorExBackward0", packed_lu, saves_result=True)


def need_pivot(pivot: bool) -> None:
    if not pivot:
        raise TensorError("linalg.lu: LU without pivoting is not implemented on the CPU")


def lu(A: Tensor, *, pivot: bool = True, out: Any = None) -> Any:
    """P, L and U with P L U = A; P has no derivative."""
    need_matrices("linalg.lu", A)
    need_pivot(pivot)
    rows = A._data.shape[-2]
    found = scipy_lu(A._data)[0] if A._data.size else np.eye(rows) + np.zeros((*A._data.shape[:-2], rows, rows))
    order = found.astype(A._data.dtype)
    return LU_RESULT(wrapped(order), *apply(LU, (A,)))


def lu_factor(A: Tensor, *, pivot: bool = True, out: Any = None) -> Any:
    """The factors in one matrix, and the pivots, counted from 1."""
    need_matrices("linalg.lu_factor", A)
    need_pivot(pivot)
    return LU_FACTOR_RESULT(*apply(LU_FACTOR, (A,)))


@method("lu")
def torch_lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """`torch.linalg.lu_factor`, as a plain pair; with ``get_infos`` zeros are the third."""
    found = tuple(lu_factor(A, pivot=pivot))
    return (*found, wrapped(np.zeros(A._data.shape[:-2], np.int32))) if get_infos else found


def unpacked_lu(packed: Any) -> Any:
    """The two factors that one matrix holds."""
    rows, columns = packed.shape[-2:]
    count = min(rows, columns)
    lower = np.tril(packed[..., :count], -1) + np.eye(rows, count, dtype=packed.dtype)
    return lower, np.triu(packed[..., :count, :])


LU_UNPACK: Final = Op("lu_unpack", "LuUnpackBackward0", unpacked_lu, quiet=True)
LU_UNPACK_RESULT: Final = named_result("lu_unpack", "P", "L", "U")


def permutation_of(pivots: Any, size: int, dtype: Any) -> Any:
    """The matrices P with P L U = A, of exchanges of rows counted from 1."""
    rows = np.broadcast_to(np.arange(size), (*pivots.shape[:-1], size)).copy()
    for index in np.ndindex(pivots.shape[:-1]):
        row = rows[index]
        for k, other in enumerate(pivots[index]):
            row[[k, other - 1]] = row[[other - 1, k]]
    return np.swapaxes(np.eye(size, dtype=dtype)[rows], -1, -2)


def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True, *, out: Any = None
) -> Any:
    """P, L and U from what `torch.linalg.lu_factor` gives; empty what is not asked for."""
    need_matrices("lu_unpack", LU_data, "LU_data")
    data = LU_data._data
    empty = np.zeros((0,), data.dtype)
    order = permutation_of(LU_pivots._data, data.shape[-2], data.dtype) if unpack_pivots else empty
    factors = apply(LU_UNPACK, (LU_data,)) if unpack_data else (wrapped(empty), wrapped(empty))
    return LU_UNPACK_RESULT(wrapped(order), *factors)


def solve_with_lu(packed: Any, pivots: Any, b: Any, left: bool, adjoint: bool) -> Any:
    """X with A X = B or X A = B, A (or its adjoint) from its factors."""
    if left:
        return scipy_lu_solve((packed, pivots - 1), b, trans=2 if adjoint else 0)
    turned = np.conjugate(np.swapaxes(b, -1, -2)) if adjoint else np.swapaxes(b, -1, -2)
    found = scipy_lu_solve((packed, pivots - 1), turned, trans=0 if adjoint else 1)
    return np.conjugate(np.swapaxes(found, -1, -2)) if adjoint else np.swapaxes(found, -1, -2)


LU_SOLVE: Final = Op("linalg.lu_solve", "LinalgLuSolveBackward0", solve_with_lu, saves_result=True)


def linalg_lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False, out: Any = None
) -> Tensor:
    """X with A X = B (X A = B unless ``left``), from the factors of A."""
    need_square("linalg.lu_solve", LU, "LU")
    need_matrices("linalg.lu_solve", B, "B")
    return store(out, apply(LU_SOLVE, (LU, pivots, B), (left, adjoint)))  # type: ignore[no-any-return]


@method("lu_solve")
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Any = None) -> Tensor:
    """X with A X = b, from the factors of A."""
    return linalg_lu_solve(LU_data, LU_pivots, b, out=out)


# --- linear equations ---------------------------------------------------------------------------------


def solved(a: Any, b: Any, left: bool, is_vector: bool) -> Any:
    if is_vector:
        b = b[..., None]
    if not left:
        a, b = np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)
    try:
        found = np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        raise LinAlgError(
            "torch.linalg.solve: The solver failed because the input matrix is singular.",
            hint="torch.linalg.lstsq and torch.linalg.pinv take such matrices",
        ) from None
    if not left:
        found = np.swapaxes(found, -1, -2)
    return found[..., 0] if is_vector else found


SOLVE: Final = Op("linalg.solve", "LinalgSolveExBackward0", solved, saves_result=True)
SOLVE_EX: Final = named_result("linalg_solve_ex", "result", "info")


def solve(A: Tensor, B: Tensor, *, left: bool = True, out: Any = None) -> Tensor:
    """X with A X = B, or X A = B unless ``left``; B is a vector (for each matrix), or a matrix of right-hand sides.

    Raises:
        LinAlgError: A is singular.
    """
    need_square("linalg.solve", A)
    need_tensor("linalg.solve", B, "B", 2)
    a, b = A._data, B._data
    is_vector = b.ndim == 1 or (a.ndim - 1 == b.ndim and b.shape == a.shape[:-1])
    if b.shape[-1 if is_vector or not left else -2] != a.shape[-1]:
        raise TensorError(
            f"linalg.solve: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
            f"({'x'.join(map(str, a.shape[-2:]))} and {'x'.join(map(str, b.shape[-2:]))})"
        )
    if a.dtype != b.dtype:
        raise TensorError(
            f"linalg.solve: Expected A and B to have the same dtype, but found A of type {A.dtype} and B of type "
            f"{B.dtype} instead"
        )
    if is_vector and not left:
        raise TensorError("linalg.solve: Vector broadcasting of the left hand side is not supported for left=False.")
    return store(out, apply(SOLVE, (A, B), (left, is_vector)))  # type: ignore[no-any-return]


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    """The solution and 0, or nan and 1 where a matrix is singular."""
    info = np.zeros(A._data.shape[:-2], np.int32)
    try:
        return SOLVE_EX(solve(A, B, left=left), wrapped(info))
    except LinAlgError:
        if check_errors:
            raise
    shape = np.broadcast_shapes(A._data.shape[:-2], B._data.shape[:-2]) + B._data.shape[-2:]
    return SOLVE_EX(
        wrapped(np.full(shape if B._data.ndim > 1 else B._data.shape, np.nan, B._data.dtype)), wrapped(info + 1)
    )


def solved_triangular(a: Any, b: Any, upper: bool, left: bool, unit: bool) -> Any:
    if left:
        return substituted(a, b, not upper, unit)
    return np.swapaxes(substituted(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2), upper, unit), -1, -2)


def substituted(a: Any, b: Any, lower: bool, unit: bool) -> Any:
    try:
        return scipy_solve_triangular(a, b, lower=lower, unit_diagonal=unit, check_finite=False)
    except np.linalg.LinAlgError:
        raise LinAlgError("linalg.solve_triangular: a number on the diagonal of A is zero") from None


SOLVE_TRIANGULAR: Final = Op(
    "linalg.solve_triangular", "LinalgSolveTriangularBackward0", solved_triangular, saves_result=True
)


def solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False, out: Any = None
) -> Tensor:
    """X with A X = B (X A = B unless ``left``), of A one triangle alone, with ones on its diagonal if so said."""
    need_square("linalg.solve_triangular", A)
    need_matrices("linalg.solve_triangular", B, "B")
    return store(out, apply(SOLVE_TRIANGULAR, (A, B), (upper, left, unitriangular)))  # type: ignore[no-any-return]


def old_triangular(b: Any, a: Any, upper: bool, transpose: bool, unit: bool) -> Any:
    matrix = np.swapaxes(a, -1, -2) if transpose else a
    return substituted(matrix, b, upper == transpose, unit), +a


OLD_TRIANGULAR: Final = Op("triangular_solve", "TriangularSolveBackward0", old_triangular, saves_result=True)
OLD_TRIANGULAR_RESULT: Final = named_result("triangular_solve", "solution", "cloned_coefficient")


@method("triangular_solve")
def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False, *, out: Any = None
) -> Any:
    """X with A X = b, of A one triangle alone, and a copy of A."""
    need_matrices("triangular_solve", b, "b")
    need_square("triangular_solve", A)
    return OLD_TRIANGULAR_RESULT(*apply(OLD_TRIANGULAR, (b, A), (upper, transpose, unitriangular)))


# --- least squares ------------------------------------------------------------------------------------


def least_squares(a: Any, b: Any, cutoff: float, is_vector: bool) -> Any:
    """The solution of least norm."""
    if is_vector:
        b = b[..., None]
    found = np.linalg.lstsq(a, b, cutoff)[0] if a.ndim == b.ndim == 2 else np.linalg.pinv(a, cutoff) @ b
    return found[..., 0] if is_vector else found


LSTSQ: Final = Op("linalg.lstsq", "LinalgLstsqBackward0", least_squares)
RESIDUALS: Final = Op("linalg.lstsq", "LinalgLstsqBackward0", lambda a, b, x: np.sum(np.abs(a @ x - b) ** 2, axis=-2))
LSTSQ_RESULT: Final = named_result("linalg_lstsq", "solution", "residuals", "rank", "singular_values")


def lstsq(A: Tensor, B: Tensor, rcond: Any = None, *, driver: str | None = None) -> Any:
    """The X for which the norm of A X - B is least, residuals (of more rows than columns), the rank, singular values.

    ``driver``: gelsy (the default), gelsd and gelss, which differ in what else they return, or gels.
    """
    need_matrices("linalg.lstsq", A)
    need_tensor("linalg.lstsq", B, "B", 2)
    driver = "gelsy" if driver is None else driver
    if driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise TensorError("torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    a, b = A._data, B._data
    is_vector = a.ndim - 1 == b.ndim
    if b.shape[-1 if is_vector else -2] != a.shape[-2]:
        raise TensorError("torch.linalg.lstsq: input.size(-2) should match other.size(-2)")
    cutoff = default_cutoff(a) if rcond is None else float(rcond)
    solution = apply(LSTSQ, (A, B), (cutoff, is_vector))
    real = np.zeros(0, a.dtype).real.dtype
    values: Any = np.linalg.svd(a, compute_uv=False)
    rank = np.sum(values > cutoff * np.max(values, axis=-1, keepdims=True, initial=0.0), axis=-1)
    residuals = wrapped(np.zeros((0,), real))
    rows, columns = a.shape[-2:]
    if rows > columns and driver != "gelsy" and not is_vector and np.all(rank == columns):
        residuals = apply(RESIDUALS, (A, B, solution))
    empty = wrapped(np.zeros((0,), np.int64))
    return LSTSQ_RESULT(
        solution,
        residuals,
        empty if driver == "gels" else wrapped(rank),
        wrapped(values if driver in ("gelsd", "gelss") else np.zeros((0,), real)),
    )


def tensor_solution(a: Any, b: Any, axes: Any) -> Any:
    return np.linalg.tensorsolve(a, b, axes)


TENSORSOLVE: Final = Op("linalg.tensorsolve", "ViewBackward0", tensor_solution)
TENSORINV: Final = Op("linalg.tensorinv", "ReshapeAliasBackward0", lambda a, ind: np.linalg.tensorinv(a, ind))


def tensorsolve(A: Tensor, B: Tensor, dims: Any = None, *, out: Any = None) -> Tensor:
    """X with tensordot(A, X, X.ndim) = B; ``dims`` of A are moved to its end first."""
    need_tensor("linalg.tensorsolve", A)
    need_tensor("linalg.tensorsolve", B, "B", 2)
    axes = None if dims is None else tuple(dims)
    return store(out, apply(TENSORSOLVE, (A, B), (axes,), promoted((A, B))))  # type: ignore[no-any-return]


def tensorinv(A: Tensor, ind: int = 2, *, out: Any = None) -> Tensor:
    """The inverse of A as a linear map from its last dimensions to its first ``ind``."""
    need_tensor("linalg.tensorinv", A)
    if ind <= 0 or prod(A._data.shape[:ind]) != prod(A._data.shape[ind:]):
        raise TensorError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{list(A._data.shape)} and ind={ind}"
        )
    return store(out, apply(TENSORINV, (A,), (ind,)))  # type: ignore[no-any-return]


__all__ = [
    "cholesky", "cholesky_inverse", "cholesky_solve", "lu_solve", "lu_unpack", "qr", "svd", "triangular_solve",
]  # fmt: skip
