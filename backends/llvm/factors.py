"""Matrices that several operations factor: factored once.

The derivative of a solution solves with the transposed matrix, that of a log-determinant inverts it, and a normal
density asks for all of these. Each calls a routine of LAPACK, most of whose work is P A = L U. Operations of one block
on one matrix, or on its transpose, become ones that read its factors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod
from typing import ClassVar, Final, NamedTuple

from srcgrad.backends.llvm.kinds import is_static
from srcgrad.backends.llvm.steps.lapack import widened
from srcgrad.backends.llvm.steps.small_systems import MOST_ROWS
from srcgrad.backends.llvm.steps.stacked_systems import are_stacked
from srcgrad.backends.llvm.steps.writer import INT32, LETTERS
from srcgrad.backends.llvm.target import TARGET
from srcgrad.ir.core import NO_ATTRS, Attrs, Builder, Operation, Region, Value
from srcgrad.ir.errors import InternalError
from srcgrad.ir.opdef import REGISTRY, Op
from srcgrad.ir.ops.linalg import swapped
from srcgrad.ir.passes.dce import eliminate
from srcgrad.ir.passes.expand import emitted
from srcgrad.ir.passes.rewrite import AnyRegion
from srcgrad.ir.types import ArrayType


class Factors(Op, abstract=True):
    """L and U by columns, the rows exchanged, and LAPACK's word on the factorisation, of each matrix of a stack.

    Where NumPy runs the operations that read them it does so on the matrix.
    """

    name: ClassVar[str] = "factors"

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        raise InternalError("factors have three results")

    def result_types(
        self, types: Sequence[ArrayType], attrs: Attrs = NO_ATTRS, regions: Sequence[Region] = ()
    ) -> Sequence[ArrayType]:
        (matrix,) = types
        *stack, n, _ = matrix.static_shape
        packed = ArrayType(widened(matrix.dtype), matrix.static_shape)
        return packed, ArrayType(INT32, (*stack, n)), ArrayType(INT32, tuple(stack))

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return ", ".join(f"np.empty({type.shape}, np.{type.dtype.name})" for type in self.result_types(types))


class Factored(Op, abstract=True):
    """An op of a matrix with the matrix, its factors, and the other operands; ``trans``: of the transposed matrix."""

    def __init__(self, inner: Op) -> None:
        self.inner = inner
        self.name = f"factored_{inner.name}"  # type: ignore[misc]
        self.helpers = getattr(inner, "helpers", ())

    def own(self, types: Sequence[ArrayType]) -> Sequence[ArrayType]:
        return (types[0], *types[4:])

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        return self.inner.result_type(self.own(types), attrs)

    def result_types(
        self, types: Sequence[ArrayType], attrs: Attrs = NO_ATTRS, regions: Sequence[Region] = ()
    ) -> Sequence[ArrayType]:
        return self.inner.result_types(self.own(types), attrs)

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        matrix = operands[0] if attrs["trans"] == "N" else f"np.swapaxes({operands[0]}, -1, -2)"
        return self.inner.source([matrix, *operands[4:]], self.own(types), result, attrs)


FACTORS: Final = Factors()
FACTORED: Final = {name: Factored(REGISTRY[name]) for name in ("solve", "inv", "slogdet", "slogdet_gradient", "det")}
"""What reads factors, by the op that factors its first operand."""


class Use(NamedTuple):
    """A matrix that an operation factors, and ``T`` where it factors the transpose, or else ``N``."""

    matrix: Value
    trans: str


def use_of(operation: Operation) -> Use | None:
    """None also where the matrix is small, or one of a stack that is factored in registers."""
    if operation.op.name not in FACTORED:
        return None
    matrix, *others = operation.operands
    if not is_static(matrix.type) or matrix.type.dtype.name not in LETTERS:
        return None
    *stack, rows, _ = matrix.type.static_shape
    columns = max((other.type.static_shape[-1] for other in others), default=1)
    if rows <= MOST_ROWS or are_stacked(TARGET, matrix.type.dtype, rows, columns, prod(stack)):
        return None
    made = matrix.producer
    if made is not None and made.op.name == "transpose" and made.attrs["perm"] == swapped(matrix.type.rank):
        return Use(made.operands[0], "T")
    return Use(matrix, "N")


def factored_once(region: AnyRegion) -> AnyRegion:
    """The region with the factors of each matrix that several of its operations factor, in its regions too."""
    uses = {operation: use for operation in region.operations if (use := use_of(operation)) is not None}
    counts = Counter([use.matrix for use in uses.values()])
    shared = {operation: use.trans for operation, use in uses.items() if counts[use.matrix] > 1}
    inner = any(operation.regions for operation in region.operations)
    if not shared and not inner:
        return region

    def emit(builder: Builder, operation: Operation, operands: list[Value]) -> Sequence[Value]:
        trans = shared.get(operation)
        if trans is None:
            regions: tuple[Region, ...] = tuple([factored_once(inner) for inner in operation.regions])
            return builder.emit_operation(operation.op, operands, operation.attrs, regions).results
        matrix, *others = operands
        if trans == "T":
            assert matrix.producer is not None
            (matrix,) = matrix.producer.operands
        factors = builder.emit_operation(FACTORS, [matrix]).results
        attrs = {**operation.attrs, "trans": trans}
        return builder.emit_operation(FACTORED[operation.op.name], [matrix, *factors, *others], attrs).results

    return eliminate(emitted(region, emit))[0] if shared else emitted(region, emit)
