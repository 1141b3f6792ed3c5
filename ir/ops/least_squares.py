"""Pseudo-inverses and least squares of least norm, of matrices of any rank.

G. H. Golub, V. Pereyra, The differentiation of pseudo-inverses and nonlinear least squares problems whose variables
separate (1973). Their formula holds where the rank does not change: where the singular values that are cut off are 0.
Where they are not, the spaces of those that are kept and of those that are cut turn against each other as they do for
any function of singular values that is not smooth there. With the projector Q on the right singular vectors that are
kept, N = A^H A, and Y that part of Q' which takes what is cut to what is kept, Q' = Y + Y^H and N Y - Y N = Q N' (I-Q),

    P' = -P A' P + P P^H (A'^H (I - A P) + Y A^H) + Y^H P

for a matrix with at least as many rows as columns; for others it is that of A^H. Where what is cut is 0, Y is
P A' (I - P A), and the formula is theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from srcgrad.ir.core import Attrs, Builder, Region, zeros
from srcgrad.ir.errors import DTypeError, ShapeError
from srcgrad.ir.opdef import (
    REGISTRY,
    Linear,
    LinearEmitter,
    Op,
    Sample,
    Tangent,
    Term,
    Zero,
    batch_all,
    broadcast_to,
    require_arity,
)
from srcgrad.ir.ops.chains import product
from srcgrad.ir.ops.divided import like_dtype
from srcgrad.ir.ops.eigen import adjoint, emit_all, safe_inverse, spread
from srcgrad.ir.ops.factorisations import rectangles, require_rectangular
from srcgrad.ir.ops.linalg import from_lower, require_matrices, right_sides
from srcgrad.ir.ops.matrices import MatrixAlgebra
from srcgrad.ir.ops.matrix_functions import whole_matrix
from srcgrad.ir.types import ArrayType, Size, real_dtype


class Coupling(Linear):
    """Y with N Y - Y N = Q C (I - Q) and Y = Q Y (I - Q), for N = A^H A and the projector Q on the right singular
    vectors of A whose values are larger than ``rcond`` times the largest. C is the second operand.

    A has at least as many rows as columns. No backend knows the op: it is written out on the svd of A.
    """

    linear = (1,)
    masking = "mix"
    keeps_zero = False
    expanded = True

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 2)
        matrix, right = types
        require_rectangular(self, matrix)
        *stack, rows, columns = matrix.static_shape
        if rows < columns or right != matrix.with_shape((*stack, columns, columns)):
            raise ShapeError(f"{self.name}: {right} does not fit the matrices {matrix}")
        return right

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        """Y' = Q' Y - Y Q' + the coupling of C' + Q' C - C Q' - N' Y + Y N'."""
        a, c = operands
        y, total = results[0], tangents[1]
        if isinstance(tangents[0], Zero):
            return (s.apply(self, [a, total], attrs),)
        algebra = MatrixAlgebra(s, a.builder)
        change = squared(algebra, a, tangents[0])
        turn = s.apply(self, [a, change], attrs)
        turn = algebra.add(turn, algebra.adjoint(turn))
        total = algebra.add(total, algebra.sub(algebra.product(turn, c), algebra.product(c, turn)))
        total = algebra.add(total, algebra.sub(algebra.product(y, change), algebra.product(change, y)))
        turned = algebra.sub(algebra.product(turn, y), algebra.product(y, turn))
        return (algebra.add(s.apply(self, [a, total], attrs), turned),)

    def mask(self, operands: Sequence[Term], attrs: Attrs) -> Term:
        return whole_matrix(operands[1])

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        """In the basis of V the map has real factors: it is its own adjoint."""
        a = operands[0]
        if isinstance(a, Zero):
            return (None, None)
        is_complex = a.dtype.kind == "c"
        found = s.apply(REGISTRY["conj"], [cotangents[0]]) if is_complex else cotangents[0]
        found = s.apply(self, [a, found], attrs)
        return (None, s.apply(REGISTRY["conj"], [found]) if is_complex else found)

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(*batch_all(size, operands, batched), **attrs)

    def expand(self, operands: Sequence[Term], attrs: Attrs, regions: Sequence[Region]) -> Sequence[Term]:
        a, c = operands
        if not c.type.size:
            return [Term(c.builder, zeros(c.type))]
        _, values, vh = emit_all("svd", a, full_matrices=False)
        axis = values.rank - 1
        cutoff = REGISTRY["reduce_max"](values, axes=(axis,)) * attrs["rcond"]
        kept = values > broadcast_to(cutoff, values.shape, tuple(range(axis)))
        rows, columns = spread(values, c, -2), spread(values, c, -1)
        factors = safe_inverse((rows - columns) * (rows + columns), spread(kept, c, -2) & ~spread(kept, c, -1))
        v = adjoint(vh)
        inner = product(product(vh, c), v)
        return [product(product(v, inner * like_dtype(factors, inner)), vh)]


def squared(algebra: MatrixAlgebra, a: Term, change: Tangent) -> Tangent:
    """The tangent of A^H A."""
    half = algebra.product(algebra.adjoint(a), change)
    return algebra.add(half, algebra.adjoint(half))  # type: ignore[no-any-return]


def cuts(matrix: ArrayType, rcond: float) -> bool:
    """Whether more is cut off than what may be rounding errors of 0."""
    return rcond > 2.0 * max(matrix.static_shape[-2:]) * float(np.finfo(matrix.dtype).eps)


def hermitian_of(a: Term) -> Term:
    """The Hermitian matrix of which the lower triangle is given, with the derivative of its functions."""
    scalar = Builder()
    identity = scalar.region([scalar.param(ArrayType(real_dtype(a.dtype)))])
    return Term(
        a.builder, a.builder.emit(REGISTRY["spectral"], [a.value], {"directions": 0, "indexed": ()}, (identity,))
    )


class Pinv(Op):
    """The pseudo-inverse; singular values of at most ``rcond`` times the largest are taken for zeros.

    If ``hermitian``, the matrix is taken to be so and only its lower triangle is read; so it is for the derivative, as
    for that of ``cholesky``.
    """

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 1)
        (require_matrices if attrs["hermitian"] else require_rectangular)(self, types[0])
        *stack, m, n = types[0].shape
        return types[0].with_shape((*stack, n, m))

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"np.linalg.pinv({operands[0]}, rcond={attrs['rcond']!r}, hermitian={attrs['hermitian']})"

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        """P' = -P A' P + P P^H A'^H (I - A P) + (I - P A) A'^H P^H P, where what is cut is 0."""
        a, p, change = operands[0], results[0], tangents[0]
        algebra = MatrixAlgebra(s, a.builder)
        exact = cuts(a.type, attrs["rcond"])
        if attrs["hermitian"]:  # A itself has a triangle that is not read
            cutoff = max(attrs["rcond"], a.type.static_shape[-1] * float(np.finfo(a.dtype).eps))
            a = hermitian_of(a) if exact else self(p, rcond=cutoff, hermitian=True)
            change = from_lower(s, operands[0], change)
        if exact:
            return (turning_tangent(algebra, a, p, change, attrs["rcond"]),)
        adjoint, p_adjoint = algebra.adjoint(change), algebra.adjoint(p)
        left = algebra.product(algebra.product(p, p_adjoint), adjoint)
        left = algebra.sub(left, algebra.product(algebra.product(left, a), p))
        right = algebra.product(adjoint, algebra.product(p_adjoint, p))
        right = algebra.sub(right, algebra.product(p, algebra.product(a, right)))
        middle = algebra.product(algebra.product(p, change), p)
        return (algebra.sub(algebra.add(left, right), middle),)

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(operands[0], **attrs)

    def samples(self) -> Iterator[Sample]:
        attrs = {"rcond": 1e-15, "hermitian": False}
        for label, matrix in rectangles():
            yield Sample((matrix,), attrs, label=label)
        yield Sample((np.zeros((2, 3)),), attrs, smooth=False, label="zero")
        yield Sample((np.outer([1.0, 2.0, -1.0], [0.5, 1.0]),), {**attrs, "rcond": 1e-10}, smooth=False, label="rank 1")
        hermitian = np.array([[2.0, 0.5 - 1j], [0.5 + 1j, -1.0]])
        for matrix in (hermitian, hermitian.real, hermitian.real.astype(np.float32)):
            yield Sample((matrix,), {**attrs, "hermitian": True}, symmetric=(0,), label=f"Hermitian, {matrix.dtype}")
        for label, matrix in cut_matrices():
            yield Sample((matrix,), {**attrs, "rcond": 0.25}, label=f"cut, {label}")
        small = np.array([[3.0, 0.5 - 1j, 0.25], [0.5 + 1j, -0.25, 0.125j], [0.25, -0.125j, 2.0]])
        for matrix in (small, small.real):
            cut = {"rcond": 0.5, "hermitian": True}
            yield Sample((matrix,), cut, symmetric=(0,), label=f"cut, Hermitian, {matrix.dtype}")


def turning_tangent(algebra: MatrixAlgebra, a: Term, p: Term, change: Tangent, rcond: float) -> Tangent:
    """P' where what is cut may be anything."""
    rows, columns = a.type.static_shape[-2:]
    if rows < columns:
        found = turning_tangent(algebra, algebra.adjoint(a), algebra.adjoint(p), algebra.adjoint(change), rcond)
        return algebra.adjoint(found)  # type: ignore[no-any-return]
    adjoint, p_adjoint = algebra.adjoint(change), algebra.adjoint(p)
    y = algebra.apply("coupling", [a, squared(algebra, a, change)], {"rcond": rcond})
    inner = algebra.sub(adjoint, algebra.product(algebra.product(adjoint, a), p))
    inner = algebra.add(inner, algebra.product(y, algebra.adjoint(a)))
    found = algebra.product(algebra.product(p, p_adjoint), inner)
    found = algebra.add(found, algebra.product(algebra.adjoint(y), p))
    return algebra.sub(found, algebra.product(algebra.product(p, change), p))  # type: ignore[no-any-return]


class Lstsq(Op):
    """The matrix X of least norm that minimises the norm of A @ X - B, column by column.

    Singular values of A of at most ``rcond`` times the largest are taken for zeros.
    """

    helpers: ClassVar[tuple[str, ...]] = ("least_squares",)

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 2)
        matrix, right = types
        require_rectangular(self, matrix)
        if right.dtype != matrix.dtype:
            raise DTypeError(f"{self.name}: operands differ, {matrix} and {right}")
        if right.rank != matrix.rank or right.shape[:-1] != matrix.shape[:-1]:
            raise ShapeError(f"{self.name}: {right} does not fit the matrices {matrix}")
        return right.with_shape((*matrix.shape[:-2], matrix.shape[-1], right.shape[-1]))

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"least_squares({operands[0]}, {operands[1]}, {attrs['rcond']!r})"

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        """X' = P (B' - A' X) + P P^H A'^H (B - A X) + (I - P A) A'^H P^H X, where what is cut is 0."""
        a, b = operands
        x = results[0]
        algebra = MatrixAlgebra(s, a.builder)
        p = REGISTRY["pinv"](a, rcond=attrs["rcond"], hermitian=False)
        p_adjoint, adjoint = algebra.adjoint(p), algebra.adjoint(tangents[0])
        right = algebra.sub(tangents[1], algebra.product(tangents[0], x))
        if cuts(a.type, attrs["rcond"]):
            turned = turned_solution(algebra, (a, b, p, x), tangents[0], attrs["rcond"])
            return (algebra.add(algebra.product(p, right), turned),)
        residual = b - algebra.product(a, x)
        right = algebra.add(right, algebra.product(p_adjoint, algebra.product(adjoint, residual)))
        outside = algebra.product(adjoint, algebra.product(p_adjoint, x))
        right = algebra.sub(right, algebra.product(a, outside))
        return (algebra.add(algebra.product(p, right), outside),)

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(*batch_all(size, operands, batched), **attrs)

    def samples(self) -> Iterator[Sample]:
        for label, matrix in rectangles():
            yield Sample((matrix, right_hand(matrix)), {"rcond": 1e-15}, label=label)
        low = np.outer([1.0, 2.0, -1.0], [0.5, 1.0])
        yield Sample((low, right_hand(low)), {"rcond": 1e-10}, smooth=False, label="rank 1")
        yield Sample((np.zeros((2, 3)), np.ones((2, 1))), {"rcond": 1e-10}, smooth=False, label="zero")
        for label, matrix in cut_matrices():
            yield Sample((matrix, right_hand(matrix)), {"rcond": 0.25}, label=f"cut, {label}")


def turned_solution(
    algebra: MatrixAlgebra, terms: tuple[Term, Term, Term, Term], change: Tangent, rcond: float
) -> Tangent:
    """(P' + P A' P) B where what is cut may be anything; the terms are A, B, P and P B."""
    a, b, p, x = terms
    rows, columns = a.type.static_shape[-2:]
    adjoint, a_adjoint, p_adjoint = (algebra.adjoint(part) for part in (change, a, p))
    if rows >= columns:
        y = algebra.apply("coupling", [a, squared(algebra, a, change)], {"rcond": rcond})
        inner = algebra.product(adjoint, b - algebra.product(a, x))
        inner = algebra.add(inner, algebra.product(y, algebra.product(a_adjoint, b)))
        inner = algebra.product(p, algebra.product(p_adjoint, inner))
        return algebra.add(inner, algebra.product(algebra.adjoint(y), x))  # type: ignore[no-any-return]
    y = algebra.apply("coupling", [a_adjoint, squared(algebra, a_adjoint, adjoint)], {"rcond": rcond})
    left = algebra.product(p_adjoint, x)
    inner = algebra.product(adjoint, left)
    inner = algebra.sub(inner, algebra.product(p, algebra.product(a, inner)))
    inner = algebra.add(inner, algebra.product(a_adjoint, algebra.product(algebra.adjoint(y), left)))
    return algebra.add(inner, algebra.product(p, algebra.product(y, b)))  # type: ignore[no-any-return]


def cut_matrices() -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Matrices of full rank of which some singular values are below a quarter of the largest."""
    tall = np.array([[3.0, 1.0, 0.25], [0.5, 0.75, 0.0], [0.25, 1.0, -0.5], [1.0, -0.25, 0.5]])
    yield "tall", tall
    yield "wide", tall.T
    yield "square, complex", tall[:3] + 0.5j * tall[1:]
    yield "complex stack", np.stack([tall, tall[::-1] * (1 - 0.5j)]).conj().swapaxes(-1, -2)


def right_hand(matrix: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Two right-hand sides for each matrix, in a square array's place."""
    return right_sides(matrix[..., :1])
