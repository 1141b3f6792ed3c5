"""QR and LU factorisations of stacks of rectangular matrices.

QR: S. F. Walter, L. Lehmann, Algorithmic differentiation of linear algebra functions with application in optimum
experimental design (2010); wide matrices: D. A. O. Roberts, L. R. Roberts, QR and LQ decomposition matrix
backpropagation algorithms for square, wide, and deep matrices (2020). LU: F. R. de Hoog, R. S. Anderssen, M. A. Lukas,
Differentiation of matrix functionals using triangular factorization (2011).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from srcgrad.ir.core import NO_ATTRS, Attrs, Region
from srcgrad.ir.errors import DTypeError, InternalError, ShapeError, UnsupportedError
from srcgrad.ir.opdef import (
    REGISTRY,
    LinearEmitter,
    NonDifferentiable,
    Op,
    Sample,
    Tangent,
    Term,
    Zero,
    broadcast_to,
    require_arity,
)
from srcgrad.ir.ops.linalg import LAPACK_DTYPES, compare_indices
from srcgrad.ir.ops.matrices import MatrixAlgebra, Triangle, emit_results
from srcgrad.ir.types import INT64, ArrayType, Size

INT32 = np.dtype(np.int32)


def require_rectangular(op: Op, type: ArrayType) -> None:
    """A stack of matrices of a dtype that LAPACK has."""
    if type.rank < 2:
        raise ShapeError(f"{op.name}: {type} is not a stack of matrices")
    if type.dtype.name not in LAPACK_DTYPES:
        raise DTypeError(f"{op.name} does not take {type}", hint=f"it takes {', '.join(LAPACK_DTYPES)}")


class Factorisation(Op, abstract=True):
    """One stack of matrices in, several arrays out."""

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        raise InternalError(f"op {self.name!r} has no single result: ask for result_types")

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return emit_results(self, operands, attrs)


class Qr(Factorisation):
    """Q with orthonormal columns and the upper triangular R, with Q @ R the operand.

    ``mode`` is ``reduced``, ``complete`` (Q is square) or ``r`` (R is the only result). The derivative exists where the
    columns of Q that are determined are: for full column rank, or the first min(m, n) columns independent if the matrix
    is wide (of a square or wide real one, all but the last of them). Else it is nan.
    """

    MODES: ClassVar[tuple[str, ...]] = ("reduced", "complete", "r")

    def result_types(
        self, types: Sequence[ArrayType], attrs: Attrs = NO_ATTRS, regions: Sequence[Region] = ()
    ) -> Sequence[ArrayType]:
        require_arity(self, types, 1)
        require_rectangular(self, types[0])
        if attrs["mode"] not in self.MODES:
            raise UnsupportedError(f"qr: mode {attrs['mode']!r} is not one of {', '.join(self.MODES)}")
        *stack, m, n = types[0].static_shape
        k = m if attrs["mode"] == "complete" else min(m, n)
        q, r = types[0].with_shape((*stack, m, k)), types[0].with_shape((*stack, k, n))
        return (r,) if attrs["mode"] == "r" else (q, r)

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"np.linalg.qr({operands[0]}, mode={attrs['mode']!r})"

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        m, n = operands[0].type.static_shape[-2:]
        if attrs["mode"] == "r":
            results = emit_results(self, operands, {"mode": "reduced"})
        q, r = results
        algebra = MatrixAlgebra(s, q.builder)
        if m <= n:
            found = wide_qr(algebra, tangents[0], q, r)
        elif attrs["mode"] == "complete":
            found = complete_qr(algebra, tangents[0], q, r)
        else:
            found = tall_qr(algebra, tangents[0], q, r)
        return found[1:] if attrs["mode"] == "r" else found

    def samples(self) -> Iterator[Sample]:
        for label, matrix in rectangles():
            yield Sample((matrix,), {"mode": "reduced"}, label=label)
            if label in ("tall", "complex tall", "stack", "empty", "column"):
                yield Sample((matrix,), {"mode": "complete"}, label=f"{label}, complete")
            if label in ("tall", "complex wide"):
                yield Sample((matrix,), {"mode": "r"}, label=f"{label}, r")
        last = np.array([[1.0, 2.0, 3.0], [0.5, -1.0, -0.5], [0.25, 1.0, 1.25]])
        yield Sample((last,), {"mode": "reduced"}, label="the last column depends on the others")
        yield Sample((np.ones((3, 2)),), {"mode": "reduced"}, smooth=False, label="rank 1")


def tall_qr(algebra: MatrixAlgebra, change: Tangent, q: Term, r: Term) -> tuple[Any, Any]:
    """With C = A' R^-1 and W = Q^H C: R' = T R and Q' = C - Q T, where T is upper triangular with a real diagonal and
    W - T skew-Hermitian.
    """
    triangle = Triangle(algebra.s, r)
    c = algebra.divide_by_upper(triangle.guard(change), triangle.regular)
    w = algebra.product(algebra.adjoint(q), c)
    above = algebra.add(algebra.where("less", w), algebra.adjoint(algebra.where("greater", w)))
    t = algebra.add(above, algebra.where("equal", algebra.real_part(w)))
    return triangle.guard(algebra.sub(c, algebra.product(q, t))), triangle.guard(algebra.product(t, r))


def wide_qr(algebra: MatrixAlgebra, change: Tangent, q: Term, r: Term) -> tuple[Any, Any]:
    """Q is square: Q' = Q S with S skew-Hermitian, R' = E - S R upper triangular, where E = Q^H A'.

    The elements of S below its diagonal, and of a complex one on it, are those of E R^-1. Below the diagonal there is
    nothing in the last column: the last element of the diagonal of a real R divides nothing.
    """
    m = r.type.static_shape[-2]
    is_complex = r.dtype.kind == "c"
    count = m if is_complex else max(m - 1, 0)
    triangle = Triangle(algebra.s, algebra.part(r, (0, count), (0, count)))
    e = algebra.product(algebra.adjoint(q), triangle.guard(change))
    w = algebra.divide_by_upper(algebra.part(e, None, (0, count)), triangle.regular)
    if count < m:
        w = algebra.join([w, Zero(w.type.with_shape((*w.type.shape[:-1], m - count)))], -1)
    below = algebra.where("greater", w)
    skew = algebra.sub(below, algebra.adjoint(below))
    if is_complex:
        skew = algebra.add(skew, algebra.where("equal", algebra.sub(w, algebra.real_part(w))))
    upper = algebra.where("less_equal", algebra.sub(e, algebra.product(skew, r)))
    return triangle.guard(algebra.product(q, skew)), triangle.guard(upper)


def complete_qr(algebra: MatrixAlgebra, change: Tangent, q: Term, r: Term) -> tuple[Any, Any]:
    """The further columns of Q are functions of the first n: Q is a product of n reflections.

    It is I + B K^H B^H for the m×n matrix B = Q1 - E1, since its first columns are Q1 = E1 + B, where K is the inverse
    of the first n rows of B (G. Ballard et al., Reconstructing Householder vectors from tall-skinny QR, 2014). So the
    further columns are E2 + B P, with P = K^H B2^H of the other rows B2.
    """
    m = q.type.static_shape[-1]
    n = r.type.static_shape[-1]
    first = algebra.part(q, None, (0, n))
    dq, dr = tall_qr(algebra, change, first, algebra.part(r, (0, n)))
    one, zero = first.like(1), first.like(0)
    b = first - REGISTRY["select"](compare_indices(first, "equal"), one, zero)
    top = algebra.adjoint(algebra.part(b, (0, n)))
    p = REGISTRY["solve"](top, algebra.adjoint(algebra.part(b, (n, m))))
    inner = algebra.adjoint(algebra.part(dq, (n, m)))
    inner = algebra.sub(inner, algebra.product(algebra.adjoint(algebra.part(dq, (0, n))), p))
    dp = algebra.apply("solve", [top, inner])
    further = algebra.add(algebra.product(dq, p), algebra.product(b, dp))
    below = Zero(dr.type.with_shape((*dr.type.shape[:-2], m - n, n)))
    return algebra.join([dq, further], -1), algebra.join([dr, below], -2)


class Lu(Factorisation):
    """The packed factors L (unit lower triangular, below the diagonal) and U, and the rows exchanged, in their order.

    The matrix with row i exchanged with row ``pivots[i]``, for i = 0, 1, …, is L @ U. The derivative exists where the
    first min(m, n) - 1 pivots (of a tall matrix, all) are not zero. Else it is nan.
    """

    helpers: ClassVar[tuple[str, ...]] = ("lu_factor",)

    def result_types(
        self, types: Sequence[ArrayType], attrs: Attrs = NO_ATTRS, regions: Sequence[Region] = ()
    ) -> Sequence[ArrayType]:
        require_arity(self, types, 1)
        require_rectangular(self, types[0])
        *stack, m, n = types[0].static_shape
        return types[0], ArrayType(INT32, (*stack, min(m, n)))

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"lu_factor({operands[0]})"

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        """Of the leading block, with F = L^-1 A' U^-1: L' = L F below the diagonal, U' = F U on and above it (the
        triangles of F); the other blocks are then solved for.
        """
        packed, pivots = results
        shape = packed.type.static_shape
        m, n = shape[-2:]
        k = n if m > n else max(m - 1, 0)
        order = REGISTRY["permutation_of_pivots"](pivots, size=m)
        order = broadcast_to(order, shape, tuple(range(len(shape) - 1)))
        change = s.apply(REGISTRY["take_along_axis"], [tangents[0], order], {"axis": len(shape) - 2})
        algebra = MatrixAlgebra(s, packed.builder)
        lead, right = algebra.part(packed, (0, k), (0, k)), algebra.part(packed, (0, k), (k, n))
        below = algebra.part(packed, (k, m), (0, k))
        triangle = Triangle(s, lead)
        upper, change = triangle.regular, triangle.guard(change)
        f = algebra.triangular_solve(lead, algebra.part(change, (0, k), (0, k)), lower=True, unit=True)
        f = algebra.divide_by_upper(f, upper)
        one, zero = lead.like(1), lead.like(0)
        on, under = compare_indices(lead, "equal"), compare_indices(lead, "greater")
        select = REGISTRY["select"]
        d_lower = algebra.product(select(under, lead, select(on, one, zero)), algebra.where("greater", f))
        d_upper = algebra.product(algebra.where("less_equal", f), select(under, zero, lead))
        found = s.select(under, d_lower, d_upper)
        d_below = algebra.sub(algebra.part(change, (k, m), (0, k)), algebra.product(below, d_upper))
        d_below = algebra.divide_by_upper(d_below, upper)
        found = algebra.join([found, d_below], -2)
        if k < n:
            d_right = algebra.sub(algebra.part(change, (0, k), (k, n)), algebra.product(d_lower, right))
            d_right = algebra.triangular_solve(lead, d_right, lower=True, unit=True)
            rest = algebra.sub(algebra.part(change, (k, m), (k, n)), algebra.product(d_below, right))
            rest = algebra.sub(rest, algebra.product(below, d_right))
            found = algebra.join([found, algebra.join([d_right, rest], -2)], -1)
        return triangle.guard(found), Zero(pivots.type)

    def samples(self) -> Iterator[Sample]:
        for label, matrix in rectangles():
            yield Sample((matrix,), label=label)
        last = np.array([[1.0, 2.0, 3.0], [2.0, 5.0, 7.0], [-1.0, 2.0, 1.0]])
        yield Sample((last,), label="the last pivot is zero")
        yield Sample((np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 3.0]]),), smooth=False, label="rank 1")


class PermutationOfPivots(NonDifferentiable):
    """0, 1, …, ``size`` - 1 with element i exchanged with element ``pivots[i]``, for i = 0, 1, … in this order."""

    helpers: ClassVar[tuple[str, ...]] = ("permutation_of_pivots",)

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 1)
        if types[0].dtype != INT32 or not types[0].rank:
            raise DTypeError(f"{self.name} does not take {types[0]}", hint="it takes the pivots that lu gives")
        return ArrayType(INT64, (*types[0].shape[:-1], attrs["size"]))

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"permutation_of_pivots({operands[0]}, {attrs['size']})"

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(operands[0], **attrs)

    def samples(self) -> Iterator[Sample]:
        yield Sample((np.array([2, 2, 2], INT32),), {"size": 3}, label="cycle")
        yield Sample((np.array([[3, 1], [0, 2]], INT32),), {"size": 4}, label="stack")
        yield Sample((np.zeros(0, INT32),), {"size": 2}, label="empty")


def rectangles() -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Matrices of full rank whose leading minors are regular: square, tall and wide."""
    values = np.array([[1.0, 0.5, -0.25, 2.0], [-2.0, 1.5, 0.5, 1.0], [0.75, -1.0, 3.0, 0.5], [0.5, 2.0, 1.0, -1.5]])
    yield "square", values[:3, :3]
    yield "tall", values[:, :2]
    yield "wide", values[:2]
    yield "row", values[:1, :3]
    yield "column", values[:3, :1]
    yield "1x1", values[:1, :1]
    yield "stack", np.stack([values[:3, :2], values[1:, 2:]])
    yield "float32", values[:2].astype(np.float32)
    waves = (values + 0.5j * values.T**2)[:3, :3]
    yield "complex", waves[:2, :2]
    yield "complex tall", waves[:, :2]
    yield "complex wide", waves[:2]
    yield "empty", np.zeros((3, 0))
    yield "empty stack", np.zeros((0, 3, 2))
