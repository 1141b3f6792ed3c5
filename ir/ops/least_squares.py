"""Pseudo-inverses and least squares of least norm, of matrices of any rank.

G. H. Golub, V. Pereyra, The differentiation of pseudo-inverses and nonlinear least squares problems whose variables
separate (1973). Their formula holds where the rank does not change: the singular values below the cut-off are taken for
zeros.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from srcgrad.ir.core import Attrs
from srcgrad.ir.errors import DTypeError, ShapeError
from srcgrad.ir.opdef import REGISTRY, LinearEmitter, Op, Sample, Tangent, Term, batch_all, require_arity
from srcgrad.ir.ops.factorisations import rectangles, require_rectangular
from srcgrad.ir.ops.linalg import require_matrices, right_sides
from srcgrad.ir.ops.matrices import MatrixAlgebra
from srcgrad.ir.types import ArrayType, Size


class Pinv(Op):
    """The pseudo-inverse; singular values of at most ``rcond`` times the largest are taken for zeros.

    If ``hermitian``, the matrix is taken to be so and only its lower triangle is read; the derivative is that on
    Hermitian matrices: it takes the tangent's Hermitian part, as that of ``cholesky`` does.
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
        """P' = -P A' P + P P^H A'^H (I - A P) + (I - P A) A'^H P^H P."""
        a, p, change = operands[0], results[0], tangents[0]
        algebra = MatrixAlgebra(s, a.builder)
        if attrs["hermitian"]:  # A itself has a triangle that is not read
            cutoff = max(attrs["rcond"], a.type.static_shape[-1] * float(np.finfo(a.dtype).eps))
            a = self(p, rcond=cutoff, hermitian=True)
            change = s.scale(s.add(change, algebra.adjoint(change)), 0.5)
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
        """X' = P (B' - A' X) + P P^H A'^H (B - A X) + (I - P A) A'^H P^H X, with the pseudo-inverse P."""
        a, b = operands
        x = results[0]
        algebra = MatrixAlgebra(s, a.builder)
        p = REGISTRY["pinv"](a, rcond=attrs["rcond"], hermitian=False)
        p_adjoint, adjoint = algebra.adjoint(p), algebra.adjoint(tangents[0])
        residual = b - algebra.product(a, x)
        right = algebra.sub(tangents[1], algebra.product(tangents[0], x))
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


def right_hand(matrix: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Two right-hand sides for each matrix, in a square array's place."""
    return right_sides(matrix[..., :1])
