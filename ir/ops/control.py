"""Structured control flow: ``cond``, ``while`` and ``for``, whose regions are closed, and tapes.

A *column* of a loop has one element per trip. Where the trip count is known it is an array with a leading axis, else a
tape. ``docs/control_flow_ir.md`` says what goes where.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from srcgrad.ir.core import NO_ATTRS, Attrs, Operation, Region, Value
from srcgrad.ir.errors import DTypeError, InternalError, ShapeError
from srcgrad.ir.opdef import LinearEmitter, NonDifferentiable, Op, Sample, Tangent, Term
from srcgrad.ir.transforms.batch_control import batch_cond, batch_loop
from srcgrad.ir.transforms.linear import Masked, Recorder
from srcgrad.ir.transforms.push_control import push_cond, push_loop
from srcgrad.ir.transforms.record_control import record_cond, record_loop
from srcgrad.ir.types import BOOL, INT64, ArrayType, Size, TapeType, element_type, stacked

PREDICATE = ArrayType(BOOL)
COUNT = ArrayType(INT64)


class ControlFlow(Op, abstract=True):
    """An op whose regions run as often as values say."""

    tapes = True

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        raise InternalError(f"op {self.name!r} takes its types from its regions")

    def differentiate(
        self, s: LinearEmitter, operands: Sequence[Term], tangents: Sequence[Tangent], operation: Operation
    ) -> tuple[Sequence[Value], Sequence[Tangent]]:
        builder = operands[0].builder
        if isinstance(s, Masked):
            return (push_cond if self.name == "cond" else push_loop)(s, operands, tangents, operation)
        if not isinstance(s, Recorder):
            raise InternalError(f"{self.name}: tangents are emitted or recorded")
        return (record_cond if self.name == "cond" else record_loop)(s, builder, operands, tangents, operation)

    def batch_operation(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], operation: Operation
    ) -> Sequence[Term]:
        builder = operands[0].builder
        rule = batch_cond if self.name == "cond" else batch_loop
        found = rule(builder, size, [operand.value for operand in operands], batched, operation)
        return [Term(builder, value) for value in found]

    def samples(self) -> Iterator[Sample]:
        return iter(())


def require_params(op: Op, label: str, region: Region, expected: Sequence[ArrayType]) -> None:
    """The region must take values of these types."""
    if region.param_types != tuple(expected):
        raise ShapeError(f"{op.name}: {label} takes {region.param_types}, not {tuple(expected)}")


def require_carries(op: Op, body: Region, carries: Sequence[ArrayType]) -> None:
    """The body must give what the next trip takes."""
    for position, (given, wanted) in enumerate(zip(body.result_types, carries, strict=False)):
        if given != wanted:
            raise ShapeError(
                f"{op.name}: carry {position} is {wanted}, and the body gives {given}",
                hint="a carry keeps its type: cast the initial value, or what the body gives",
            )
    if len(body.results) < len(carries):
        raise ShapeError(f"{op.name}: the body gives {len(body.results)} of {len(carries)} carries")


class Cond(ControlFlow):
    """``then`` or ``else``, applied to the operands that follow the predicate; the other one does not run."""

    region_labels = ("then", "else")

    def result_types(
        self, types: Sequence[ArrayType], attrs: Attrs = NO_ATTRS, regions: Sequence[Region] = ()
    ) -> Sequence[ArrayType]:
        if not types or types[0] != PREDICATE:
            raise DTypeError(f"cond: the predicate is {types[0] if types else 'missing'}, not bool[]")
        then, orelse = regions
        require_params(self, "then", then, types[1:])
        require_params(self, "else", orelse, types[1:])
        if then.result_types != orelse.result_types:
            raise ShapeError(f"cond: then gives {then.result_types}, else {orelse.result_types}")
        return then.result_types


class While(ControlFlow):
    """Run ``body`` as long as ``condition`` holds: carries, the trip count, and a tape for each column of the body.

    The first ``carries`` operands are what a trip hands to the next one; both regions also take the others.
    """

    region_labels = ("condition", "body")

    def result_types(
        self, types: Sequence[ArrayType], attrs: Attrs = NO_ATTRS, regions: Sequence[Region] = ()
    ) -> Sequence[ArrayType]:
        condition, body = regions
        count = attrs["carries"]
        require_params(self, "condition", condition, types)
        require_params(self, "body", body, types)
        if condition.result_types != (PREDICATE,):
            raise DTypeError(f"while: condition gives {condition.result_types}, not one bool[]")
        require_carries(self, body, types[:count])
        return (*types[:count], COUNT, *[TapeType(column) for column in body.result_types[count:]])


class For(ControlFlow):
    """Run ``body`` for each index: carries, and a column for each further result of the body.

    Operands: the trip count if ``trips`` is None, ``carries`` carries, ``consts`` constants, columns. The body takes
    the index, carries, constants, and the elements of the columns at the index; ``reverse``: from the last index down.
    ``lifted``: the trip count is the ``tape_length`` of the columns; where that is -1, one trip says what is at every
    index of the columns that it gives.
    """

    region_labels = ("body",)

    def result_types(
        self, types: Sequence[ArrayType], attrs: Attrs = NO_ATTRS, regions: Sequence[Region] = ()
    ) -> Sequence[ArrayType]:
        body = regions[0]
        trips, carries, consts = attrs["trips"], attrs["carries"], attrs["consts"]
        if trips is None:
            if not types or types[0] != COUNT:
                raise DTypeError(f"for: the trip count is {types[0] if types else 'missing'}, not i64[]")
            types = types[1:]
        elif trips < 0:
            raise ShapeError(f"for: {trips} trips")
        handed = carries + consts
        elements = [element_type(column, trips) for column in types[handed:]]
        require_params(self, "body", body, (COUNT, *types[:handed], *elements))
        require_carries(self, body, types[:carries])
        return (*types[:carries], *[stacked(column, trips) for column in body.result_types[carries:]])


class TapeLength(NonDifferentiable):
    """The number of elements of tapes of one length; -1 if all of them are literals, which fit every length."""

    tapes = True
    helpers: ClassVar[tuple[str, ...]] = ("tape_length",)

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        if not types or not all(isinstance(type, TapeType) for type in types):
            raise DTypeError(f"tape_length takes tapes, not {tuple(types)}")
        return COUNT

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"tape_length({', '.join(operands)})"

    def batch_operation(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], operation: Operation
    ) -> Sequence[Term]:
        return (self(*operands),)

    def samples(self) -> Iterator[Sample]:
        return iter(())
