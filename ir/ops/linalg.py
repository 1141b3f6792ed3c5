"""Linear algebra on stacks of matrices: the last two axes are the matrix, the others are a batch.

Matrix derivatives: M. B. Giles, Collected matrix derivative results for forward and reverse mode algorithmic
differentiation (2008); I. Murray, Differentiation of the Cholesky decomposition (2016).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from srcgrad.ir.core import Attrs, Builder
from srcgrad.ir.errors import DTypeError, ShapeError, UnsupportedError
from srcgrad.ir.opdef import (
    REGISTRY,
    Lin,
    Linear,
    LinearEmitter,
    LinearOperand,
    NonDifferentiable,
    Op,
    Sample,
    Tangent,
    Term,
    Zero,
    batch_all,
    broadcast_to,
    require_arity,
)
from srcgrad.ir.ops.generate import iota
from srcgrad.ir.ops.indexing import moved
from srcgrad.ir.types import BOOL, INT64, ArrayType, Shape, Size

LAPACK_DTYPES = ("float32", "float64", "complex64", "complex128")


def require_matrices(op: Op, type: ArrayType) -> None:
    """A stack of square matrices of a dtype that LAPACK has."""
    if type.rank < 2 or type.shape[-1] != type.shape[-2]:
        raise ShapeError(f"{op.name}: {type} is not a stack of square matrices")
    if type.dtype.name not in LAPACK_DTYPES:
        raise DTypeError(f"{op.name} does not take {type}", hint=f"it takes {', '.join(LAPACK_DTYPES)}")


def matrix_transpose(s: LinearEmitter, tangent: Tangent, conjugate: bool = False) -> Tangent:
    """The tangent with the last two axes exchanged, conjugated if it is complex and ``conjugate``."""
    rank = tangent.type.rank
    found = s.apply(REGISTRY["transpose"], [tangent], {"perm": swapped(rank)})
    return s.apply(REGISTRY["conj"], [found]) if conjugate and tangent.type.dtype.kind == "c" else found


def hermitian_part(s: LinearEmitter, tangent: Tangent) -> Tangent:
    return s.scale(s.add(tangent, matrix_transpose(s, tangent, conjugate=True)), 0.5)


def summands(tangent: Lin, depth: int = 8) -> Iterator[Lin]:
    """What a tangent without a mask is the sum of."""
    producer = tangent.value.producer
    if tangent.mask is not None or producer is None or producer.op.name != "add" or not depth:
        yield tangent
        return
    for operand in producer.operands:
        yield from summands(Lin(operand), depth - 1)


def hermitian_terms(s: LinearEmitter, tangent: Lin) -> tuple[Tangent, Tangent]:
    """The sum of those terms of a sum that are seen to be Hermitian, and that of all others."""
    found: list[Tangent] = [Zero(tangent.type), Zero(tangent.type)]
    for term in summands(tangent):
        other = not s.is_hermitian(term)
        found[other] = s.add(found[other], term)
    return found[0], found[1]


def from_lower(s: LinearEmitter, matrix: Term, tangent: Tangent) -> Tangent:
    """The tangent of the Hermitian matrix of which the lower triangle is that of ``matrix``.

    Of a Hermitian tangent it is the tangent itself. Of terms that are so if the matrices that are differentiated are it
    takes the Hermitian part: their gradients are Hermitian then, as in JAX. Of all others it is what is read.
    """
    if isinstance(tangent, Zero):
        return tangent
    if s.is_hermitian(tangent):
        return hermitian_part(s, tangent)
    hermitian, rest = hermitian_terms(s, tangent)
    found = s.select(compare_indices(matrix, "less"), matrix_transpose(s, rest, conjugate=True), rest)
    if rest.type.dtype.kind == "c":
        real = s.apply(REGISTRY["cast"], [s.apply(REGISTRY["real"], [rest])], {"dtype": rest.type.dtype})
        found = s.select(compare_indices(matrix, "equal"), real, found)
    return s.add(hermitian_part(s, hermitian), found)


def transposed(matrix: Term) -> Term:
    return REGISTRY["transpose"](matrix, perm=swapped(matrix.rank))


def swapped(rank: int) -> tuple[int, ...]:
    return (*range(rank - 2), rank - 1, rank - 2)


def matmul(s: LinearEmitter, left: LinearOperand, right: LinearOperand) -> Tangent:
    """The stack of products; one of the operands is a tangent."""
    rank = left.type.rank
    stack = tuple(range(rank - 2))
    return s.apply(
        REGISTRY["dot_general"], [left, right], {"contract": ((rank - 1,), (rank - 2,)), "batch": (stack, stack)}
    )


def compare_indices(matrix: Term, comparison: str) -> Term:
    """A bool array like ``matrix``: the comparison of the row's number with the column's."""
    return index_mask(matrix.builder, matrix.shape, comparison)


def index_mask(builder: Builder, shape: Shape, comparison: str) -> Term:
    """A bool array of ``shape``: the comparison of the row's number with the column's."""
    type = ArrayType(INT64, shape[-2:])
    rows, columns = (iota(builder, type, axis) for axis in (0, 1))
    return broadcast_to(REGISTRY[comparison](rows, columns), shape, (len(shape) - 2, len(shape) - 1))


class Cholesky(Op):
    """The lower triangular L with L @ L^H equal to the operand, which is Hermitian and positive definite.

    Only the operand's lower triangle is read, as by NumPy, and the derivative is that of `from_lower`. LinAlgError if
    the operand is not positive definite.
    """

    meaning = "np.linalg.cholesky"

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 1)
        require_matrices(self, types[0])
        return types[0]

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        """L' = L phi(L^-1 A' L^-H); phi takes the lower triangle and halves its diagonal."""
        factor, solve = results[0], {"lower": True, "trans": "N", "unit": False}
        half = s.apply(REGISTRY["triangular_solve"], [factor, from_lower(s, operands[0], tangents[0])], solve)
        inner = matrix_transpose(s, half, conjugate=True)
        inner = s.apply(REGISTRY["triangular_solve"], [factor, inner], solve)
        below, diagonal = compare_indices(factor, "greater"), compare_indices(factor, "equal")
        select = REGISTRY["select"]
        weights = select(below, factor.like(1), select(diagonal, factor.like(0.5), factor.like(0)))
        return (matmul(s, factor, s.scale(inner, weights)),)

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(operands[0])

    def samples(self) -> Iterator[Sample]:
        for label, matrix in positive_definite():
            yield Sample((matrix,), symmetric=(0,), label=label)


class IsIndefinite(NonDifferentiable):
    """Whether ``cholesky`` would find that a matrix, Hermitian by its lower triangle, is not positive definite."""

    helpers: ClassVar[tuple[str, ...]] = ("is_indefinite",)

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 1)
        require_matrices(self, types[0])
        return types[0].with_shape(types[0].shape[:-2]).with_dtype(BOOL)

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"is_indefinite({operands[0]})"

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(operands[0])

    def samples(self) -> Iterator[Sample]:
        for label, matrix in positive_definite():
            yield Sample((matrix,), smooth=False, label=label)
            yield Sample((-matrix,), smooth=False, label=f"the negative: {label}")
        yield Sample((np.stack([np.eye(2), np.diag([1.0, -1.0])]),), smooth=False, label="one of a stack")


class Solver(Linear, abstract=True):
    """x with A x = b for stacks of matrices A and b: linear in b, column by column."""

    linear = (1,)
    masking = "mix"
    keeps_zero = False

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 2)
        matrix, right = types
        require_matrices(self, matrix)
        if right.dtype != matrix.dtype:
            raise DTypeError(f"{self.name}: operands differ, {matrix} and {right}")
        if right.rank != matrix.rank or right.shape[:-1] != matrix.shape[:-1]:
            raise ShapeError(f"{self.name}: {right} does not fit the matrices {matrix}")
        return right

    def mask(self, operands: Sequence[Term], attrs: Attrs) -> Term:
        """A column of the result depends on all of the column of b, and on no other."""
        mask = operands[1]
        rank = mask.rank
        found = REGISTRY["reduce_or"](mask, axes=(rank - 2,))
        return broadcast_to(found, mask.shape, (*range(rank - 2), rank - 1))

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        """Examples that share a matrix become columns of one system."""
        if batched[0]:
            return self(*batch_all(size, operands, batched), **attrs)
        matrix, right, *places = operands
        rank = right.rank
        columns = moved(right, 0, rank - 2)
        *stack, examples, width = columns.type.static_shape
        merged = REGISTRY["reshape"](columns, shape=(*stack, examples * width))
        found = REGISTRY["reshape"](self(matrix, merged, *places, **attrs), shape=columns.shape)
        return moved(found, rank - 2, 0)


class Solve(Solver):
    """x with A @ x equal to the second operand; LinAlgError if A is singular."""

    meaning = "np.linalg.solve"

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        """x' = A^-1 (b' - A' x)."""
        right = s.add(tangents[1], s.neg(matmul(s, tangents[0], results[0])))
        return (s.apply(self, [operands[0], right]),)

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        matrix = operands[0]
        if isinstance(matrix, Zero):
            return (None, None)
        return (None, s.apply(self, [transposed(matrix), cotangents[0]]))

    def samples(self) -> Iterator[Sample]:
        for label, matrix in regular():
            yield Sample((matrix, right_sides(matrix)), label=label)


class TriangularSolve(Solver):
    """x with op(A) @ x equal to the second operand; A is the ``lower`` or upper triangle of the first.

    ``trans`` says what op is: none (``N``), the transpose (``T``) or the conjugate transpose (``C``). The other
    triangle is not read; with ``unit`` the diagonal is not read either, it is ones. LinAlgError if a diagonal element
    is 0.
    """

    helpers: ClassVar[tuple[str, ...]] = ("triangular_solve",)

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        if attrs["trans"] not in ("N", "T", "C"):
            raise UnsupportedError(f"triangular_solve: trans is {attrs['trans']!r}, not 'N', 'T' or 'C'")
        return super().result_type(types, attrs)

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        lower, trans, unit = attrs["lower"], attrs["trans"], attrs["unit"]
        return f"triangular_solve({operands[0]}, {operands[1]}, lower={lower}, trans={trans!r}, unit={unit})"

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        """x' = op(A)^-1 (b' - op(A') x), A' the triangle of the tangent that is read."""
        right = tangents[1]
        if not isinstance(tangents[0], Zero):
            read = compare_indices(operands[0], self.read(attrs))
            change = s.select(read, tangents[0], Zero(tangents[0].type))
            if attrs["trans"] != "N":
                change = matrix_transpose(s, change, conjugate=attrs["trans"] == "C")
            right = s.add(right, s.neg(matmul(s, change, results[0])))
        return (s.apply(self, [operands[0], right], attrs),)

    def read(self, attrs: Attrs) -> str:
        """The comparison of row and column that holds where A is read."""
        return ("greater" if attrs["lower"] else "less") + ("" if attrs["unit"] else "_equal")

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        """op(A)^-T: of A^-1 it is A^-T and the other way round, of A^-H it is conj(A)^-1."""
        matrix = operands[0]
        if isinstance(matrix, Zero):
            return (None, None)
        trans = attrs["trans"]
        if trans == "C" and matrix.dtype.kind == "c":
            matrix = REGISTRY["conj"](matrix)
        opposite = {**attrs, "trans": "T" if trans == "N" else "N"}
        return (None, s.apply(self, [matrix, cotangents[0]], opposite))

    def samples(self) -> Iterator[Sample]:
        for label, matrix in regular():
            for lower, trans, unit in ((True, "N", False), (False, "T", True), (False, "C", False)):
                attrs = {"lower": lower, "trans": trans, "unit": unit}
                yield Sample((matrix, right_sides(matrix)), attrs, label=label)


class Inv(Op):
    """The inverse of each matrix; of a singular one LinAlgError, or nan unless ``strict``."""

    helpers: ClassVar[tuple[str, ...]] = ("inverse_or_nan",)

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 1)
        require_matrices(self, types[0])
        return types[0]

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"{'np.linalg.inv' if attrs['strict'] else 'inverse_or_nan'}({operands[0]})"

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        """X' = -X A' X: the matrix is factored once, at every order."""
        inverse = results[0]
        return (s.neg(matmul(s, matmul(s, inverse, tangents[0]), inverse)),)

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(operands[0], **attrs)

    def samples(self) -> Iterator[Sample]:
        for label, matrix in regular():
            yield Sample((matrix,), {"strict": True}, label=label)
            yield Sample((matrix,), {"strict": False}, label=f"{label}, not strict")
        singular = np.stack([np.ones((2, 2)), np.diag([2.0, 4.0])])
        yield Sample((singular,), {"strict": False}, smooth=False, label="a singular one")


def regular() -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Stacks of regular matrices, not symmetric."""
    matrix = np.array([[2.0, -0.5, 0.25], [1.0, 3.0, -0.5], [-0.75, 0.5, 2.5]])
    yield "matrix", matrix
    yield "stack", np.stack([matrix, matrix.T * 1.5])[:, :2, :2]
    yield "float32", matrix.astype(np.float32)
    yield "complex", (matrix + 0.5j * matrix.T**2)[:2, :2]
    yield "empty", np.zeros((0, 0))
    yield "empty stack", np.zeros((0, 2, 2))


def positive_definite() -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    for label, matrix in regular():
        yield label, matrix @ matrix.swapaxes(-1, -2).conj()


def right_sides(matrix: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Two right-hand sides for each matrix."""
    shape = (*matrix.shape[:-1], 2)
    values = np.cos(np.arange(float(np.prod(shape)))).reshape(shape)
    right: np.ndarray[Any, Any] = (values * (1 + 0.5j) if matrix.dtype.kind == "c" else values).astype(matrix.dtype)
    return right
