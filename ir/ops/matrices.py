"""Matrix expressions in rules: operands are terms or tangents, the last two axes are the matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from srcgrad.ir.core import NO_ATTRS, Attrs, Builder, literal
from srcgrad.ir.opdef import REGISTRY, LinearEmitter, Op, Tangent, Term, Zero, broadcast_to
from srcgrad.ir.ops.complexes import as_dtype
from srcgrad.ir.ops.linalg import compare_indices, index_mask, matrix_transpose, swapped

Bounds = tuple[int, int]


def emit_results(op: Op, operands: Sequence[Term], attrs: Attrs = NO_ATTRS) -> list[Term]:
    """Emit an op with several results on terms."""
    builder = operands[0].builder
    values = [operand.value for operand in operands]
    return [Term(builder, value) for value in builder.emit_operation(op, values, attrs).results]


class Triangle:
    """A triangle to divide by: of a singular one, every quotient is nan, and none is an error.

    ``regular`` has ones for zeros on the diagonal. What is divided, and what comes of it, goes through `guard`, which
    makes it nan where the triangle is singular: all of it, in both modes.
    """

    def __init__(self, s: LinearEmitter, triangle: Term) -> None:
        self.s = s
        at = compare_indices(triangle, "equal") & (triangle == 0)
        self.regular: Term = REGISTRY["select"](at, triangle.like(1), triangle)
        singular = REGISTRY["reduce_or"](at, axes=(triangle.rank - 2, triangle.rank - 1))
        type = triangle.type.with_shape(triangle.shape[:-2])
        numbers = [Term(triangle.builder, literal(number, type)) for number in (float("nan"), 1.0)]
        self.factor: Term = REGISTRY["select"](singular, *numbers)

    def guard(self, tangent: Tangent) -> Tangent:
        factor = broadcast_to(self.factor, tangent.type.shape, tuple(range(self.factor.rank)))
        return self.s.scale(tangent, factor)


class MatrixAlgebra:
    """Sums, products, parts and solves in which tangents may occur; what has only terms in it is a term."""

    def __init__(self, s: LinearEmitter, builder: Builder) -> None:
        """``builder`` is that of the terms."""
        self.s = s
        self.builder = builder

    def apply(self, op: str, operands: Sequence[Any], attrs: Attrs = NO_ATTRS) -> Any:
        if all(isinstance(operand, Term) for operand in operands):
            return REGISTRY[op](*operands, **attrs)
        return self.s.apply(REGISTRY[op], operands, attrs)

    def product(self, left: Any, right: Any) -> Any:
        """The stack of products; at most one of the two is a tangent."""
        rank = left.type.rank
        stack = tuple(range(rank - 2))
        attrs = {"contract": ((rank - 1,), (rank - 2,)), "batch": (stack, stack)}
        return self.apply("dot_general", [left, right], attrs)

    def transpose(self, x: Any) -> Any:
        return self.apply("transpose", [x], {"perm": swapped(x.type.rank)})

    def adjoint(self, x: Any) -> Any:
        """The conjugate transpose."""
        if isinstance(x, Term):
            x = self.transpose(x)
            return REGISTRY["conj"](x) if x.dtype.kind == "c" else x
        return matrix_transpose(self.s, x, conjugate=True)

    def add(self, left: Any, right: Any) -> Any:
        return left + right if isinstance(left, Term) else self.s.add(left, right)

    def sub(self, left: Any, right: Any) -> Any:
        return left - right if isinstance(left, Term) else self.s.add(left, self.s.neg(right))

    def part(self, x: Any, rows: Bounds | None = None, columns: Bounds | None = None) -> Any:
        """Rows from the first to before the second number, and columns likewise; None: all of them."""
        shape = x.type.static_shape
        bounds = [(0, size) for size in shape[:-2]]
        bounds += [rows or (0, shape[-2]), columns or (0, shape[-1])]
        if all(bound == (0, size) for bound, size in zip(bounds, shape, strict=True)):
            return x
        starts, limits = (tuple(bound[k] for bound in bounds) for k in (0, 1))
        return self.apply("slice", [x], {"starts": starts, "limits": limits, "strides": (1,) * len(shape)})

    def join(self, parts: Sequence[Any], axis: int) -> Any:
        """Blocks side by side (``axis`` -1) or one below the other (-2)."""
        return parts[0] if len(parts) == 1 else self.apply("concatenate", parts, {"axis": parts[0].type.rank + axis})

    def where(self, comparison: str, x: Any) -> Any:
        """The tangent where row and column compare so, a structural zero elsewhere."""
        return self.s.select(index_mask(self.builder, x.type.shape, comparison), x, Zero(x.type))

    def real_part(self, x: Any) -> Any:
        """The tangent without its imaginary part, in the same dtype."""
        if x.type.dtype.kind != "c":
            return x
        return as_dtype(self.s, self.s.apply(REGISTRY["real"], [x]), x.type.dtype)

    def triangular_solve(self, matrix: Term, right: Any, lower: bool, unit: bool = False) -> Any:
        return self.apply("triangular_solve", [matrix, right], {"lower": lower, "trans": "N", "unit": unit})

    def divide_by_upper(self, left: Any, matrix: Term) -> Any:
        """X with X @ U = left, U the upper triangle of the matrix."""
        attrs = {"lower": False, "trans": "T", "unit": False}
        return self.transpose(self.apply("triangular_solve", [matrix, self.transpose(left)], attrs))
