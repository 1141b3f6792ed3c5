"""Functions of square matrices (exponential, logarithm, square root, real powers), and Sylvester's equation.

The derivative of f at A in the direction H stands in f([[A, H], [0, A]]) = [[f(A), Df(A)[H]], [0, f(A)]], and so do
the higher ones in f of doubled blocks (R. Mathias, A chain rule for matrix functions and applications, 1996;
N. J. Higham, Functions of Matrices: Theory and Computation, 2008, sections 3.2 and 6.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from srcgrad.ir.core import Attrs
from srcgrad.ir.errors import DTypeError, ShapeError, UnsupportedError
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
    broadcast_to,
    require_arity,
    require_same,
)
from srcgrad.ir.ops.linalg import matmul, require_matrices, transposed
from srcgrad.ir.ops.matrices import MatrixAlgebra
from srcgrad.ir.types import ArrayType, Size

KINDS = ("exp", "log", "sqrt", "power")


def whole_matrix(mask: Term) -> Term:
    """For each matrix, whether anything in it is there."""
    axes = (mask.rank - 2, mask.rank - 1)
    found = REGISTRY["reduce_or"](mask, axes=axes)
    return broadcast_to(found, mask.shape, tuple(range(mask.rank - 2)))


class Sylvester(Linear):
    """The matrix X with A @ X + X @ B equal to the third operand; nan where A and -B have an eigenvalue in common."""

    linear = (2,)
    masking = "mix"
    keeps_zero = False
    helpers: ClassVar[tuple[str, ...]] = ("solve_sylvester",)

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 3)
        left, right, total = types
        require_matrices(self, left)
        require_matrices(self, right)
        if left.dtype != right.dtype or total.dtype != left.dtype:
            raise DTypeError(f"{self.name}: operands differ, {left}, {right} and {total}")
        fits = left.shape[:-2] == right.shape[:-2] and total.shape == (*left.shape[:-1], right.shape[-1])
        if not fits:
            raise ShapeError(f"{self.name}: {total} does not fit the matrices {left} and {right}")
        return total

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"solve_sylvester({', '.join(operands)})"

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        """A X' + X' B = Q' - A' X - X B'."""
        a, b, _ = operands
        total = s.add(tangents[2], s.neg(matmul(s, tangents[0], results[0])))
        total = s.add(total, s.neg(matmul(s, results[0], tangents[1])))
        return (s.apply(self, [a, b, total]),)

    def mask(self, operands: Sequence[Term], attrs: Attrs) -> Term:
        return whole_matrix(operands[2])

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        a, b, _ = operands
        if isinstance(a, Zero) or isinstance(b, Zero):
            return (None, None, None)
        return (None, None, s.apply(self, [transposed(a), transposed(b), cotangents[0]]))

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(*batch_all(size, operands, batched))

    def samples(self) -> Iterator[Sample]:
        a = np.array([[2.0, -0.5, 0.25], [1.0, 3.0, -0.5], [-0.75, 0.5, 2.5]])
        b, q = np.array([[1.5, 0.5], [-1.0, 2.0]]), np.array([[1.0, -2.0], [0.5, 0.25], [3.0, 1.0]])
        yield Sample((a, b, q), label="matrix")
        yield Sample((np.stack([b, b.T]), np.stack([b, 2 * b]), np.stack([q[:2], q[1:]])), label="stack")
        yield Sample((a[:1, :1], b[:1, :1], q[:1, :1]), label="1x1")
        yield Sample(tuple(x.astype(np.float32) for x in (b, b, q[:2])), label="float32")
        yield Sample((b + 0.5j * b.T, b - 0.25j, q[:2] * (1 + 2j)), label="complex")
        yield Sample((np.zeros((0, 0)), b, np.zeros((0, 2))), label="empty")
        yield Sample((np.diag([1.0, -1.0]), np.diag([1.0, 2.0]), q[:2]), smooth=False, label="singular")


class MatrixFunction(Op):
    """A function of each matrix: ``kind`` is ``exp``, ``log``, ``sqrt`` or ``power`` (to the ``exponent``).

    Logarithm, square root and power are the principal ones. A real matrix has a real result: LinAlgError if it has a
    negative eigenvalue, for which the result is complex.
    """

    helpers: ClassVar[tuple[str, ...]] = ("matrix_function",)

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 1)
        require_matrices(self, types[0])
        require_kind(self, attrs)
        return types[0]

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"matrix_function({operands[0]}, {attrs['kind']!r}, {attrs['exponent']!r})"

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        """That of a square root X, X X' + X' X = A', takes no block; nor does it any root for the next order."""
        if attrs["kind"] == "sqrt":
            return (s.apply(REGISTRY["sylvester"], [results[0], results[0], tangents[0]]),)
        return (s.apply(REGISTRY["matrix_function_derivative"], [operands[0], tangents[0]], attrs),)

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(operands[0], **attrs)

    def samples(self) -> Iterator[Sample]:
        for label, matrix in near_identity():
            yield Sample((matrix,), {"kind": "exp", "exponent": 0.0}, label=f"exp, {label}")
            yield Sample((matrix,), {"kind": "sqrt", "exponent": 0.0}, label=f"sqrt, {label}")
            if label in ("matrix", "complex", "empty"):
                yield Sample((matrix,), {"kind": "log", "exponent": 0.0}, label=f"log, {label}")
                yield Sample((matrix,), {"kind": "power", "exponent": -0.3}, label=f"power, {label}")


class MatrixFunctionDerivative(Linear):
    """The derivative of a matrix function at A in the direction H, the second operand; linear in it.

    Its transpose is the derivative at A^T. Its derivative in A is that of the function at [[A, H], [0, A]].
    """

    linear = (1,)
    masking = "mix"
    keeps_zero = False
    helpers: ClassVar[tuple[str, ...]] = ("matrix_function_derivative",)

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 2)
        require_matrices(self, types[0])
        require_same(self, types)
        require_kind(self, attrs)
        return types[0]

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        names = ", ".join(operands)
        return f"matrix_function_derivative({names}, {attrs['kind']!r}, {attrs['exponent']!r})"

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        a, h = operands
        size = a.type.static_shape[-1]
        found = s.apply(self, [a, tangents[1]], attrs)
        if isinstance(tangents[0], Lin):
            algebra = MatrixAlgebra(s, a.builder)
            change, absent = tangents[0], Zero(a.type)
            blocks = algebra.join([algebra.join([a, h], -1), algebra.join([a.like(0), a], -1)], -2)
            changes = algebra.join([algebra.join([change, absent], -1), algebra.join([absent, change], -1)], -2)
            second = s.apply(self, [blocks, changes], attrs)
            found = s.add(found, algebra.part(second, (0, size), (size, 2 * size)))
        return (found,)

    def mask(self, operands: Sequence[Term], attrs: Attrs) -> Term:
        return whole_matrix(operands[1])

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        a = operands[0]
        if isinstance(a, Zero):
            return (None, None)
        return (None, s.apply(self, [transposed(a), cotangents[0]], attrs))

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(*batch_all(size, operands, batched), **attrs)

    def samples(self) -> Iterator[Sample]:
        for label, matrix in near_identity():
            direction: Any = np.asarray(matrix[..., ::-1, :] - 0.5, matrix.dtype)
            if label != "defective":
                yield Sample((matrix, direction), {"kind": "exp", "exponent": 0.0}, label=f"exp, {label}")
            if label in ("1x1", "empty"):
                yield Sample((matrix, direction), {"kind": "log", "exponent": 0.0}, label=f"log, {label}")
                yield Sample((matrix, direction), {"kind": "power", "exponent": 0.7}, label=f"power, {label}")


def require_kind(op: Op, attrs: Attrs) -> None:
    if attrs["kind"] not in KINDS:
        raise UnsupportedError(f"{op.name}: {attrs['kind']!r} is not one of {', '.join(KINDS)}")


def near_identity() -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Stacks of matrices without negative eigenvalues."""
    matrix = np.array([[2.0, -0.5], [1.0, 1.5]])
    yield "matrix", matrix
    yield "stack", np.stack([matrix, matrix.T * 0.75])
    yield "defective", np.array([[1.5, 1.0], [0.0, 1.5]])
    yield "1x1", matrix[:1, :1]
    yield "float32", matrix.astype(np.float32)
    yield "complex", matrix + 0.5j * matrix[::-1] ** 2
    yield "empty", np.zeros((0, 0))
