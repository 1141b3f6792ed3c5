"""Determinants of stacks of matrices, with derivatives that are right where a matrix is singular.

The determinant is a polynomial, and so are its derivatives: nothing is divided by it. ``det_derivative`` is closed
under differentiation. The first is Jacobi's formula, D det(A)[H] = tr(adj(A) H): R. A. Horn, C. R. Johnson, Matrix
Analysis (2013), 0.8.10. The others: R. Bhatia, T. Jain, Higher order derivatives and perturbation bounds for
determinants (2009), who write them in singular values too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from srcgrad.ir.core import NO_ATTRS, Attrs, Region
from srcgrad.ir.errors import InternalError, ShapeError
from srcgrad.ir.opdef import (
    REGISTRY,
    Lin,
    Linear,
    LinearEmitter,
    Op,
    Sample,
    Tangent,
    Term,
    Zero,
    batch_all,
    require_arity,
    require_same,
)
from srcgrad.ir.ops.complexes import as_dtype
from srcgrad.ir.ops.linalg import compare_indices, matmul, regular, require_matrices, swapped
from srcgrad.ir.ops.matrices import emit_results
from srcgrad.ir.types import BOOL, ArrayType, Size


def matrix_axes(rank: int) -> tuple[int, int]:
    return rank - 2, rank - 1


class Det(Op):
    """The determinant of each matrix."""

    meaning = "np.linalg.det"

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 1)
        require_matrices(self, types[0])
        return types[0].with_shape(types[0].shape[:-2])

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        """The sum of the products of the cofactors and the tangent."""
        cofactors = REGISTRY["det_derivative"](operands[0])
        axes = matrix_axes(operands[0].rank)
        return (s.apply(REGISTRY["reduce_sum"], [s.scale(tangents[0], cofactors)], {"axes": axes}),)

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(operands[0])

    def samples(self) -> Iterator[Sample]:
        for label, matrix in (*regular(), *singular()):
            yield Sample((matrix,), label=label)


class DetDerivative(Linear):
    """The array C with sum(C * H) equal to the derivative of order n + 1 of det at A in directions H1, …, Hn, H.

    The operands are A, H1, …, Hn; for n = 0 these are the cofactors of A. It is linear in each direction, and the same
    for all their orders: so its transpose in one direction is itself with the cotangent there, and its derivative in A
    is itself with one direction more.
    """

    separate = True
    masking = "mix"
    keeps_zero = False
    helpers: ClassVar[tuple[str, ...]] = ("det_derivative",)

    def linear_positions(self, arity: int, attrs: Attrs) -> tuple[int, ...]:
        return tuple(range(1, arity))

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        if not types:
            raise ShapeError(f"{self.name} takes a matrix and directions")
        require_matrices(self, types[0])
        require_same(self, types)
        return types[0]

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"det_derivative({', '.join(operands)})"

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        """By the product rule; the derivatives of order above the number of rows are structural zeros."""
        total: Tangent = Zero(results[0].type)
        for k, tangent in enumerate(tangents):
            if k and isinstance(tangent, Lin):
                total = s.add(total, s.apply(self, [*operands[:k], tangent, *operands[k + 1 :]]))
            elif isinstance(tangent, Lin) and len(operands) < operands[0].type.static_shape[-1]:
                total = s.add(total, s.apply(self, [*operands, tangent]))
        return (total,)

    def mask(self, operands: Sequence[Term], attrs: Attrs) -> Term:
        """An element depends on those of a direction that stand in another row and another column."""
        mask = next(operand for operand in operands if operand.dtype == BOOL)
        others = compare_indices(mask, "not_equal")
        stack = tuple(range(mask.rank - 2))
        rows = {"contract": ((mask.rank - 1,), (mask.rank - 2,)), "batch": (stack, stack)}
        product = REGISTRY["dot_general"]
        return product(product(others, mask, **rows), others, **rows)

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        found: list[Tangent | None] = [None] * len(operands)
        for k, operand in enumerate(operands):
            if isinstance(operand, Zero):
                found[k] = s.apply(self, [*operands[:k], cotangents[0], *operands[k + 1 :]])
        return found

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(*batch_all(size, operands, batched))

    def samples(self) -> Iterator[Sample]:
        for label, matrix in (*regular(), *singular()):
            first = np.asarray(matrix[..., ::-1] + 0.5, matrix.dtype)
            yield Sample((matrix,), label=label)
            yield Sample((matrix, first), label=f"{label}, one direction")
        matrix = dict(singular())["rank 2 of 4"]
        yield Sample((matrix, matrix.T + 0.25, matrix[::-1]), label="two directions")
        yield Sample((np.array([[np.inf, 1.0], [2.0, np.nan]]),), smooth=False, label="special numbers")


class Slogdet(Op):
    """Sign and logarithm of the absolute value of the determinant of each matrix: two results."""

    meaning = "np.linalg.slogdet"

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        raise InternalError(f"op {self.name!r} has no single result: ask for result_types")

    def result_types(
        self, types: Sequence[ArrayType], attrs: Attrs = NO_ATTRS, regions: Sequence[Region] = ()
    ) -> Sequence[ArrayType]:
        require_arity(self, types, 1)
        require_matrices(self, types[0])
        sign = types[0].with_shape(types[0].shape[:-2])
        return sign, sign.with_dtype(np.empty(0, sign.dtype).real.dtype)

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        """With z = tr(A^-1 A'): the logarithm's is Re z, the sign's i Im(z) times the sign."""
        sign, logarithm = results
        scaled = s.scale(tangents[0], REGISTRY["slogdet_gradient"](operands[0]))
        z = s.apply(REGISTRY["reduce_sum"], [scaled], {"axes": matrix_axes(operands[0].rank)})
        if sign.dtype.kind != "c":
            return Zero(sign.type), z
        turned = s.scale(as_dtype(s, s.apply(REGISTRY["imag"], [z]), sign.dtype), sign * 1j)
        return turned, as_dtype(s, s.apply(REGISTRY["real"], [z]), logarithm.dtype)

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return emit_results(self, operands)

    def samples(self) -> Iterator[Sample]:
        for label, matrix in regular():
            yield Sample((matrix,), label=label)
        yield Sample((np.diag([-2.0, 0.5, 3.0]),), label="negative")
        yield Sample((np.zeros((1, 1)),), smooth=False, label="zero")
        yield Sample((np.diag([0.0, 2.0]),), smooth=False, label="singular")


class SlogdetGradient(Op):
    """The transposed inverse, which is the gradient of log|det|; of a singular matrix, the cofactors divided by 0.

    So the gradient of log|det| is infinite or nan where log|x| has such a derivative.
    """

    helpers: ClassVar[tuple[str, ...]] = ("slogdet_gradient",)

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 1)
        require_matrices(self, types[0])
        return types[0]

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"slogdet_gradient({operands[0]})"

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        """G' = -G A'^T G."""
        gradient = results[0]
        moved = s.apply(REGISTRY["transpose"], tangents, {"perm": swapped(gradient.rank)})
        return (s.neg(matmul(s, matmul(s, gradient, moved), gradient)),)

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(operands[0])

    def samples(self) -> Iterator[Sample]:
        for label, matrix in regular():
            yield Sample((matrix,), label=label)
        stack = np.stack([np.zeros((2, 2)), np.diag([0.0, 2.0]), np.array([[1.0, 2.0], [3.0, 5.0]])])
        yield Sample((stack,), smooth=False, label="singular")


def singular() -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Matrices of every rank, real and complex."""
    yield "1x1", np.array([[-2.5]])
    yield "1x1 zero", np.zeros((1, 1))
    for size in (3, 4):
        for rank in range(size + 1):
            left = np.cos(np.arange(size * rank) + 0.5).reshape(size, rank)
            right = np.sin(1.3 * np.arange(size * rank) + 0.2).reshape(rank, size)
            yield f"rank {rank} of {size}", left @ right
    complex_parts = np.array([[1.0 + 1j, 0.5, 2j], [0.25, -1.0 + 0.5j, 1.0]])
    yield "complex of rank 2 of 3", complex_parts.T @ (complex_parts[::-1] * (0.5 - 1j))
    yield "complex of rank 1 of 2", np.array([[1 + 1j, 2.0], [2j, 2.0 + 2j]])
