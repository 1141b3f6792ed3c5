"""The linear parts of control flow, as linear programs hold them. Pushed forward or transposed they are control flow.

A region that gets the residuals comes before each linear region, whose first parameters they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from srcgrad.ir.core import NO_ATTRS, Attrs, Operation, Region, Value
from srcgrad.ir.errors import InternalError
from srcgrad.ir.opdef import LinearEmitter, LinearOperand, Tangent, Term, Zero
from srcgrad.ir.ops.control import ControlFlow
from srcgrad.ir.transforms.interpret import inline, run_linear
from srcgrad.ir.transforms.linear import Masked
from srcgrad.ir.transforms.structured import Branch, LinearLoop, Trip, emit_cond
from srcgrad.ir.transforms.transpose import pull_back
from srcgrad.ir.types import ArrayType, stacked


def split_operands(operands: Sequence[LinearOperand], plain: int) -> tuple[list[Value], list[Tangent]]:
    values = [operand.value for operand in operands[:plain] if isinstance(operand, Term)]
    return values, [operand for operand in operands[plain:] if not isinstance(operand, Term)]


def masked(s: LinearEmitter) -> Masked:
    if not isinstance(s, Masked):
        raise InternalError("the linear part of control flow is emitted as ordinary operations only")
    return s


class LinearControl(ControlFlow, abstract=True):
    """The linear part of control flow, whose cotangents may be added to what they are so far."""

    def transpose_region(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], operation: Operation
    ) -> Sequence[Tangent | None]:
        return self.transpose_onto(s, cotangents, operands, operation, {})


class LinearFor(LinearControl):
    """The linear part of a loop.

    Operands: the trip count (if ``trips`` is None), ``plain_consts`` and ``plain_columns``, from which ``residuals``
    (after the index) computes what ``linear`` reads; then tangents: of ``carries`` carries, ``consts`` constants, and
    columns. ``lifted`` is that of the loop.
    """

    region_labels = ("residuals", "linear")

    def plain(self, attrs: Attrs) -> int:
        return int(attrs["trips"] is None) + int(attrs["plain_consts"]) + int(attrs["plain_columns"])

    def linear_positions(self, arity: int, attrs: Attrs) -> tuple[int, ...]:
        return tuple(range(self.plain(attrs), arity))

    def result_types(
        self, types: Sequence[ArrayType], attrs: Attrs = NO_ATTRS, regions: Sequence[Region] = ()
    ) -> Sequence[ArrayType]:
        found, carries = regions[1].result_types, attrs["carries"]
        return (*found[:carries], *[stacked(type, attrs["trips"]) for type in found[carries:]])

    def parts(self, attrs: Attrs, values: Sequence[Value]) -> tuple[Value | None, Sequence[Value], Sequence[Value]]:
        """The trip count, the plain constants and the plain columns."""
        first = int(attrs["trips"] is None)
        second = first + attrs["plain_consts"]
        return (values[0] if first else None), values[first:second], values[second:]

    def apply_linear(
        self, s: LinearEmitter, operands: Sequence[LinearOperand], attrs: Attrs, regions: Sequence[Region]
    ) -> list[Tangent]:
        emitter, (residuals, linear) = masked(s), regions
        values, tangents = split_operands(operands, self.plain(attrs))
        count, plain_consts, plain_columns = self.parts(attrs, values)
        first, second = attrs["carries"], attrs["carries"] + attrs["consts"]
        loop = LinearLoop(
            emitter, attrs["trips"], count, attrs["reverse"], tangents[:first], tangents[first:second],
            tangents[second:], plain_consts, plain_columns, lifted=attrs["lifted"],
        )  # fmt: skip

        def body(inner: Masked, trip: Trip) -> tuple[list[Tangent], list[Tangent]]:
            found = inline(inner.builder, residuals, [trip.counter, *trip.plain_consts, *trip.plain_elements])
            terms = [Term(inner.builder, value) for value in found]
            outgoing = run_linear(inner, linear, terms, [*trip.carries, *trip.consts, *trip.elements])
            return outgoing[:first], outgoing[first:]

        carries, columns = loop.emit(body)
        return [*carries, *columns]

    def totalled(self, arity: int, attrs: Attrs) -> tuple[int, ...]:
        first = self.plain(attrs) + int(attrs["carries"])
        return tuple(range(first, first + attrs["consts"]))

    def transpose_onto(
        self,
        s: LinearEmitter,
        cotangents: Sequence[Tangent],
        operands: Sequence[Term | Zero],
        operation: Operation,
        totals: Mapping[int, Tangent],
    ) -> Sequence[Tangent | None]:
        """The loop in the other direction: cotangents of carries are carries, those of constants add up."""
        emitter, attrs = masked(s), operation.attrs
        residuals, linear = operation.regions
        plain = self.plain(attrs)
        values = [operand.value for operand in operands[:plain] if isinstance(operand, Term)]
        count, plain_consts, plain_columns = self.parts(attrs, values)
        first, consts = attrs["carries"], attrs["consts"]
        params = [param for param in linear.params if param.linear]
        # Those that add to something are carries as others are; those that start at zero come last.
        places = sorted(range(consts), key=lambda k: plain + first + k not in totals)
        summed = [params[first + k] for k in places]
        starts = [totals.get(plain + first + k) or Zero(params[first + k].type) for k in places]
        carries = [*cotangents[:first], *starts]
        loop = LinearLoop(
            emitter, attrs["trips"], count, not attrs["reverse"], carries, (), cotangents[first:],
            plain_consts, plain_columns, accumulators=consts - len(totals), lifted=attrs["lifted"],
        )  # fmt: skip

        def body(inner: Masked, trip: Trip) -> tuple[list[Tangent], list[Tangent]]:
            found = inline(inner.builder, residuals, [trip.counter, *trip.plain_consts, *trip.plain_elements])
            terms = [Term(inner.builder, value) for value in found]
            incoming = [*trip.carries[:first], *trip.elements]
            sums = dict(zip(summed, trip.carries[first:], strict=True))
            outgoing = pull_back(inner, linear, terms, incoming, sums)
            ordered = [outgoing[first + k] for k in places]
            return [*outgoing[:first], *ordered], outgoing[first + consts :]

        outgoing, columns = loop.emit(body)
        found = dict(zip(places, outgoing[first:], strict=True))
        return [*[None] * plain, *outgoing[:first], *(found[k] for k in range(consts)), *columns]


class LinearCond(LinearControl):
    """The linear part of a `cond`: the predicate and ``plain - 1`` values, then tangents of operands."""

    region_labels = ("then_residuals", "then", "else_residuals", "else")

    def linear_positions(self, arity: int, attrs: Attrs) -> tuple[int, ...]:
        return tuple(range(attrs["plain"], arity))

    def result_types(
        self, types: Sequence[ArrayType], attrs: Attrs = NO_ATTRS, regions: Sequence[Region] = ()
    ) -> Sequence[ArrayType]:
        return regions[1].result_types

    def apply_linear(
        self, s: LinearEmitter, operands: Sequence[LinearOperand], attrs: Attrs, regions: Sequence[Region]
    ) -> list[Tangent]:
        values, tangents = split_operands(operands, attrs["plain"])

        def branch(residuals: Region, linear: Region) -> Branch:
            def emit(inner: Masked, plain: list[Value], given: list[Tangent]) -> tuple[list[Value], list[Tangent]]:
                terms = [Term(inner.builder, value) for value in inline(inner.builder, residuals, plain)]
                return [], run_linear(inner, linear, terms, given)

            return emit

        branches = [branch(*regions[:2]), branch(*regions[2:])]
        return emit_cond(masked(s), values[0], values[1:], tangents, branches)[1]

    def totalled(self, arity: int, attrs: Attrs) -> tuple[int, ...]:
        return self.linear_positions(arity, attrs)

    def transpose_onto(
        self,
        s: LinearEmitter,
        cotangents: Sequence[Tangent],
        operands: Sequence[Term | Zero],
        operation: Operation,
        totals: Mapping[int, Tangent],
    ) -> Sequence[Tangent | None]:
        """Totals go through both branches, of which each adds what it has."""
        count, regions = operation.attrs["plain"], operation.regions
        values = [operand.value for operand in operands[:count] if isinstance(operand, Term)]
        incoming = [*cotangents, *totals.values()]

        def branch(residuals: Region, linear: Region) -> Branch:
            params = [param for param in linear.params if param.linear]

            def emit(inner: Masked, plain: list[Value], given: list[Tangent]) -> tuple[list[Value], list[Tangent]]:
                terms = [Term(inner.builder, value) for value in inline(inner.builder, residuals, plain)]
                so_far = given[len(cotangents) :]
                sums = {params[k - count]: tangent for k, tangent in zip(totals, so_far, strict=True)}
                return [], pull_back(inner, linear, terms, given[: len(cotangents)], sums)

            return emit

        branches = [branch(*regions[:2]), branch(*regions[2:])]
        found = emit_cond(masked(s), values[0], values[1:], incoming, branches)[1]
        return [*[None] * count, *found]
