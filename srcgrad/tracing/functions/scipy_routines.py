"""Rules of the routines of LAPACK and BLAS that ``scipy.linalg.lapack`` and ``scipy.linalg.blas`` give as they are.

Each has one rule for its four dtypes, by the name without the letter for it. Operands are converted to the dtype of the
routine, as its wrapper does; what may be overwritten is left as it is. Where LAPACK reports by ``info`` that there is
no solution, all of the solution is nan; a singular matrix of ``gesv`` and ``getri`` is a LinAlgError.
Importing this module imports SciPy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np
import scipy.linalg

from srcgrad.errors import ShapeError
from srcgrad.tracing.conversion.calls import traced_among
from srcgrad.tracing.functions.linear_algebra import square_matrices
from srcgrad.tracing.functions.registry import Rule, as_array, cast, refuse
from srcgrad.tracing.functions.scipy_decompositions import eigh, svd
from srcgrad.tracing.functions.scipy_linalg import (
    adjoint,
    lu_factor,
    lu_solve,
    mirrored,
    solve_triangular,
    solve_with_factor,
    structured_solve,
    system,
)
from srcgrad.tracing.functions.scipy_structured import columns_of, of_banded
from srcgrad.tracing.tracer import FUNCTIONS, Tracer, as_tracer, emit

LETTERS: Final = {"s": "f4", "d": "f8", "c": "c8", "z": "c16", "sc": "c8", "dz": "c16"}
"""What names of routines begin with, and the dtypes of their operands; two letters where the result is real."""
HINTS: Final = {
    "lapack": "scipy.linalg.solve_banded, solve, solve_triangular, cho_solve, cholesky, lu, qr, svd and eigh have one",
    "blas": "`@`, np.dot, np.outer and scipy.linalg.solve_triangular have one",
}
"""What to call in place of routines that have no rule."""
PARTS: Final = {"offx": 0, "incx": 1, "offy": 0, "incy": 1}
SIZES: Final = ("n", "lda", "ldab", "lwork", "liwork", "lrwork")
"""What says which part of an array is meant, or how much room there is."""
RULES: dict[int, tuple[Callable[..., Any], Any]] = {}
"""The rule of a routine, by its identity, and the dtype that it has."""


def routine_rule(*stems: str) -> Callable[[Rule], Rule]:
    """Register the rule of a routine, which takes its arguments and ``like``: a function that makes its operands."""

    def register(rule: Rule) -> Rule:
        for library in (scipy.linalg.lapack, scipy.linalg.blas):
            for letters, dtype in LETTERS.items():
                for stem in stems:
                    routine = getattr(library, letters + stem, None)
                    if routine is not None:
                        RULES[id(routine)] = rule, np.dtype(dtype)
        return rule

    return register


def of_routine(routine: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of a routine; one without a rule is refused for traced numbers."""
    if not traced_among(args, kwargs):
        return routine(*args, **kwargs)
    found = RULES.get(id(routine))
    if found is None:
        require_untraced(routine, (*args, *kwargs.values()))
        return routine(*args, **kwargs)
    rule, dtype = found
    return rule(lambda x: cast(as_array(x), dtype), **given_to(routine, args, kwargs))


def given_to(routine: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments by their names, which the first line of its text lists; of parts of arrays only the whole."""
    listed = routine.__doc__.partition("\n")[0].partition("(")[2].strip(")").replace("[", "").replace("]", "")
    names = listed.split(",")
    if len(args) > len(names) or not set(kwargs) <= set(names[len(args) :]):
        return dict(zip(names, args, strict=False)) | {"": routine(*args, **kwargs)}  # SciPy's own error
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    parts = {name: given.pop(name) for name in (*PARTS, *SIZES) if name in given}
    refuse(name_of(routine), **{name: (value, PARTS.get(name)) for name, value in parts.items()})
    return {name: value for name, value in given.items() if not name.startswith("overwrite_")}


def name_of(routine: Any) -> str:
    name = str(routine.__name__).removeprefix("function ")
    library = next((x for x in HINTS if hasattr(sys.modules.get(f"scipy.linalg.{x}"), name)), "lapack")
    return f"scipy.linalg.{library}.{name}"


def require_untraced(routine: Any, given: Iterable[Any]) -> None:
    name = name_of(routine)
    for x in given:
        for part in x if type(x) in (list, tuple) else (x,):
            if isinstance(part, Tracer) and part.dtype.kind not in "biu":
                raise part.escape(f"{name} has no derivative rule in srcgrad", HINTS[name.split(".")[2]])


Like = Callable[[Any], Any]


def status(failed: Any) -> Any:
    """LAPACK's ``info``: 1 where a computation has failed."""
    return as_tracer(failed).astype(np.int64)[()]


def without_solution(found: Any, *given: Any) -> Any:
    """Of finite numbers, a system that has no solution has nan for all of it."""
    failed: Any = np.all(np.isnan(found)) & (found.size > 0)
    for x in given:
        failed = failed & np.all(np.isfinite(x))
    return status(failed)


def chosen(choose: Callable[..., Any]) -> Callable[..., Any]:
    """What chooses routines by the dtypes of arrays, which it asks for no more."""

    def rule(names: Any, arrays: Any = (), dtype: Any = None, ilp64: Any = False) -> Any:
        given = tuple(np.empty((1,) * as_array(x).ndim, as_array(x).dtype) for x in arrays)
        return choose(names, given, dtype, ilp64)

    return rule


for _choose in (scipy.linalg.get_lapack_funcs, scipy.linalg.get_blas_funcs):
    FUNCTIONS[_choose] = chosen(_choose)

# --- systems ---------------------------------------------------------------------------------------------------------


@routine_rule("gesv")
def gesv(like: Like, a: Any, b: Any) -> Any:
    matrix = like(a)
    return *lu_factor(matrix), structured_solve(matrix, like(b)), 0


@routine_rule("gtsv")
def gtsv(like: Like, dl: Any, d: Any, du: Any, b: Any) -> Any:
    """Of the factors, which nobody asks for, the dense matrix is factored."""
    lower, diagonal, upper = like(dl), like(d), like(du)
    size = diagonal.shape[0]
    if lower.shape != (size - 1,) or upper.shape != lower.shape:
        raise ShapeError(f"diagonals of {lower.shape[0]}, {size} and {upper.shape[0]} elements are of no matrix")
    zero: Any = np.zeros(1, diagonal.dtype)
    bands = np.stack([np.concatenate([zero, upper]), diagonal, np.concatenate([lower, zero])])
    bands, right, is_vector = columns_of(bands, like(b))
    found = of_banded(bands, right, 1, 1, strict=False)
    packed: Any = lu_factor(np.diag(lower, -1) + np.diag(diagonal) + np.diag(upper, 1))[0]
    second = np.concatenate([np.diag(packed, 2), zero]) if size > 1 else upper
    info = without_solution(found, bands, right)
    return second, np.diag(packed), np.diag(packed, 1), found[:, 0] if is_vector else found, info


@routine_rule("posv")
def posv(like: Like, a: Any, b: Any, lower: Any = 0) -> Any:
    factor, info = potrf(like, a, lower, clean=0)
    return factor, potrs(like, factor, b, lower)[0], info


@routine_rule("potrf")
def potrf(like: Like, a: Any, lower: Any = 0, clean: Any = 1) -> Any:
    """Of a matrix that is not positive definite the factor is nan."""
    matrix = square_matrices(like(a))
    given = matrix if lower else adjoint(matrix)
    failed: Any = emit("is_indefinite", given)
    identity: Any = np.eye(matrix.shape[-1], dtype=matrix.dtype)
    factor: Any = np.where(failed, np.nan, np.linalg.cholesky(np.where(failed, identity, given)))
    factor = cast(np.tril(factor) if lower else np.triu(adjoint(factor)), matrix.dtype)
    if not clean:
        factor = factor + (np.triu(matrix, 1) if lower else np.tril(matrix, -1))
    return factor, status(failed)


@routine_rule("potrs")
def potrs(like: Like, c: Any, b: Any, lower: Any = 0) -> Any:
    factor, right, is_vector = system(like(c), like(b))
    found = solve_with_factor(factor, right, bool(lower))
    return found[..., 0] if is_vector else found, 0


@routine_rule("potri")
def potri(like: Like, c: Any, lower: Any = 0) -> Any:
    """One triangle of the inverse; the other one is as it was."""
    factor = square_matrices(like(c))
    identity: Any = as_tracer(np.eye(factor.shape[-1], dtype=factor.dtype))
    found = solve_with_factor(factor, identity, bool(lower))
    return (np.tril(found) + np.triu(factor, 1) if lower else np.triu(found) + np.tril(factor, -1)), 0


@routine_rule("trtrs")
def trtrs(like: Like, a: Any, b: Any, lower: Any = 0, trans: Any = 0, unitdiag: Any = 0) -> Any:
    return solve_triangular(like(a), like(b), int(trans), bool(lower), bool(unitdiag), check_finite=False), 0


@routine_rule("trtri")
def trtri(like: Like, c: Any, lower: Any = 0, unitdiag: Any = 0) -> Any:
    """The other triangle, and a diagonal of ones that is not read, are as they were."""
    matrix = square_matrices(like(c))
    identity = np.eye(matrix.shape[-1], dtype=matrix.dtype)
    found = solve_triangular(matrix, identity, 0, bool(lower), bool(unitdiag), check_finite=False)
    if unitdiag:
        found = found + np.diag(np.diag(matrix)) - identity
    return found + (np.triu(matrix, 1) if lower else np.tril(matrix, -1)), 0


@routine_rule("getrf")
def getrf(like: Like, a: Any) -> Any:
    packed, pivots = lu_factor(like(a), check_finite=False)
    singular = np.diag(packed) == 0
    first: Any = np.where(np.any(singular), np.argmax(singular) + 1, 0) if singular.size else 0
    return packed, pivots, first


@routine_rule("getrs")
def getrs(like: Like, lu: Any, piv: Any, b: Any, trans: Any = 0) -> Any:
    return lu_solve((like(lu), piv), like(b), int(trans), check_finite=False), 0


@routine_rule("getri")
def getri(like: Like, lu: Any, piv: Any) -> Any:
    packed = like(lu)
    return lu_solve((packed, piv), np.eye(packed.shape[-1], dtype=packed.dtype), check_finite=False), 0


# --- decompositions --------------------------------------------------------------------------------------------------


@routine_rule("syev", "syevd", "heev", "heevd")
def syev(like: Like, a: Any, compute_v: Any = 1, lower: Any = 0) -> Any:
    """Without vectors the second result, which is what LAPACK leaves there, is the matrix."""
    matrix = like(a)
    if not compute_v:
        return eigh(matrix, lower=bool(lower), eigvals_only=True, check_finite=False), matrix, 0
    return *eigh(matrix, lower=bool(lower), check_finite=False, driver="evd"), 0


@routine_rule("gesdd", "gesvd")
def gesdd(like: Like, a: Any, compute_uv: Any = 1, full_matrices: Any = 1) -> Any:
    matrix = like(a)
    if compute_uv:
        return *svd(matrix, bool(full_matrices), check_finite=False), 0
    none: Any = np.zeros((1, 1), matrix.dtype)
    return none, svd(matrix, compute_uv=False, check_finite=False), none, 0


# --- products --------------------------------------------------------------------------------------------------------


def turned(matrix: Any, trans: Any) -> Any:
    """op(A): the matrix, its transpose or its adjoint."""
    return matrix if not trans else adjoint(matrix) if trans == 2 else matrix.mT


def added(alpha: Any, product: Any, beta: Any, c: Any, like: Like) -> Any:
    """alpha product + beta c, where c may be left out."""
    scaled = like(alpha) * product
    return scaled if c is None else scaled + like(beta) * like(c)


def triangle_of(total: Any, lower: Any, c: Any, like: Like) -> Any:
    """One triangle is computed; the other one is that of c, or 0."""
    found = np.tril(total) if lower else np.triu(total)
    if c is None:
        return found
    return found + (np.triu(like(c), 1) if lower else np.tril(like(c), -1))


@routine_rule("dot", "dotu")
def dot(like: Like, x: Any, y: Any) -> Any:
    return np.dot(like(x), like(y))


@routine_rule("dotc")
def dotc(like: Like, x: Any, y: Any) -> Any:
    return np.vdot(like(x), like(y))


@routine_rule("nrm2")
def nrm2(like: Like, x: Any) -> Any:
    return np.linalg.norm(like(x))


@routine_rule("asum")
def asum(like: Like, x: Any) -> Any:
    """The sum of the absolute values of real and imaginary parts."""
    values = like(x)
    return np.sum(np.abs(np.real(values))) + (np.sum(np.abs(np.imag(values))) if values.dtype.kind == "c" else 0)


@routine_rule("gemv")
def gemv(like: Like, alpha: Any, a: Any, x: Any, beta: Any = 0.0, y: Any = None, trans: Any = 0) -> Any:
    return added(alpha, turned(like(a), trans) @ like(x), beta, y, like)


@routine_rule("ger", "geru")
def ger(like: Like, alpha: Any, x: Any, y: Any, a: Any = None) -> Any:
    return added(alpha, np.outer(like(x), like(y)), 1.0, a, like)


@routine_rule("gerc")
def gerc(like: Like, alpha: Any, x: Any, y: Any, a: Any = None) -> Any:
    return added(alpha, np.outer(like(x), np.conjugate(like(y))), 1.0, a, like)


@routine_rule("gemm")
def gemm(
    like: Like, alpha: Any, a: Any, b: Any, beta: Any = 0.0, c: Any = None, trans_a: Any = 0, trans_b: Any = 0
) -> Any:
    return added(alpha, turned(like(a), trans_a) @ turned(like(b), trans_b), beta, c, like)


def symmetric(hermitian: bool) -> Callable[..., Any]:
    def symv(like: Like, alpha: Any, a: Any, x: Any, beta: Any = 0.0, y: Any = None, lower: Any = 0) -> Any:
        return added(alpha, mirrored(like(a), bool(lower), hermitian) @ like(x), beta, y, like)

    return symv


def symmetric_product(hermitian: bool) -> Callable[..., Any]:
    def symm(
        like: Like, alpha: Any, a: Any, b: Any, beta: Any = 0.0, c: Any = None, side: Any = 0, lower: Any = 0
    ) -> Any:
        whole, other = mirrored(like(a), bool(lower), hermitian), like(b)
        return added(alpha, other @ whole if side else whole @ other, beta, c, like)

    return symm


def square_of(hermitian: bool) -> Callable[..., Any]:
    def syrk(like: Like, alpha: Any, a: Any, beta: Any = 0.0, c: Any = None, trans: Any = 0, lower: Any = 0) -> Any:
        """a op(a), or op(a) a if ``trans``."""
        matrix = like(a)
        other = adjoint(matrix) if hermitian else matrix.mT
        total = added(alpha, other @ matrix if trans else matrix @ other, beta, c, like)
        return triangle_of(total, lower, c, like)

    return syrk


for _hermitian, _name in ((False, "sy"), (True, "he")):
    routine_rule(f"{_name}mv")(symmetric(_hermitian))
    routine_rule(f"{_name}mm")(symmetric_product(_hermitian))
    routine_rule(f"{_name}rk")(square_of(_hermitian))


def of_triangle(matrix: Any, lower: Any, diag: Any) -> Any:
    """The triangle that is read, with a diagonal of ones if ``diag``."""
    found = np.tril(matrix) if lower else np.triu(matrix)
    return found - np.diag(np.diag(found)) + np.eye(found.shape[-1], dtype=found.dtype) if diag else found


@routine_rule("trmm")
def trmm(like: Like, alpha: Any, a: Any, b: Any, side: Any = 0, lower: Any = 0, trans_a: Any = 0, diag: Any = 0) -> Any:
    triangle, other = turned(of_triangle(like(a), lower, diag), trans_a), like(b)
    return like(alpha) * (other @ triangle if side else triangle @ other)


@routine_rule("trmv")
def trmv(like: Like, a: Any, x: Any, lower: Any = 0, trans: Any = 0, diag: Any = 0) -> Any:
    return turned(of_triangle(like(a), lower, diag), trans) @ like(x)


@routine_rule("trsm")
def trsm(like: Like, alpha: Any, a: Any, b: Any, side: Any = 0, lower: Any = 0, trans_a: Any = 0, diag: Any = 0) -> Any:
    """From the right X op(A) = B is op(A)^T X^T = B^T."""
    matrix, right, lower, trans = like(a), like(alpha) * like(b), bool(lower), int(trans_a)
    if not side:
        return solve_triangular(matrix, right, trans, lower, bool(diag), check_finite=False)
    if trans == 2:
        matrix = np.conjugate(matrix) if matrix.dtype.kind == "c" else matrix
    return solve_triangular(matrix, right.mT, 0 if trans else 1, lower, bool(diag), check_finite=False).mT


@routine_rule("trsv")
def trsv(like: Like, a: Any, x: Any, lower: Any = 0, trans: Any = 0, diag: Any = 0) -> Any:
    return solve_triangular(like(a), like(x), int(trans), bool(lower), bool(diag), check_finite=False)
