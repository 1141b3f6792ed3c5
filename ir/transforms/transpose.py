"""Transposition of linear programs: reverse mode is linearize, then transpose.

The transpose of a linear map L is the map with <u, L t> = <L^T u, t>, the pairing being the real part of the sum of
products (no conjugate: the convention of JAX for complex values).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from srcgrad.ir.core import Attrs, Builder, Function, Region, Value
from srcgrad.ir.errors import InternalError
from srcgrad.ir.opdef import Lin, LinearEmitter, Op, Tangent, Term, Zero
from srcgrad.ir.source import Span
from srcgrad.ir.transforms.interpret import adopt
from srcgrad.ir.transforms.linear import Masked, add_part, total
from srcgrad.ir.types import BOOL

NO_TOTALS: Final[Mapping[Value, Tangent]] = {}


class Cotangents:
    """What is known of the cotangents of linear values: their parts, which are added when they are read.

    So parts under one mask are added before it is asked. A sum belongs to the line of the last part.
    """

    def __init__(self, s: LinearEmitter) -> None:
        self.s = s
        self.parts: dict[Value, list[Tangent]] = {}
        self.spans: dict[Value, Span | None] = {}

    def add(self, value: Value, cotangent: Tangent) -> None:
        if isinstance(cotangent, Lin) and value.linear:
            parts = self.parts.setdefault(value, [])
            add_part(self.s, parts, cotangent)
            if len(parts) > 1:
                self.spans[value] = self.s.builder.span

    def take(self, value: Value) -> Tangent | None:
        """The cotangent of a value, which has no more uses; None if nothing reached it."""
        parts = self.parts.pop(value, None)
        if parts is None or len(parts) == 1:
            return None if parts is None else parts[0]
        builder = self.s.builder
        now, builder.span = builder.span, self.spans[value]
        found = total(self.s, parts)
        builder.span = now
        return found


def pull_back(
    s: LinearEmitter,
    linear: Region,
    residuals: Sequence[Term],
    cotangents: Sequence[Tangent],
    totals: Mapping[Value, Tangent] = NO_TOTALS,
) -> list[Tangent]:
    """Run a linear region backwards: from cotangents of its results to cotangents of its linear parameters.

    ``totals``: by linear parameter, what its cotangent is added to.
    """
    plain = [param for param in linear.params if not param.linear]
    terms: dict[Value, Term] = dict(zip(plain, residuals, strict=True))
    known = Cotangents(s)
    for value, cotangent in (*totals.items(), *zip(linear.results, cotangents, strict=True)):
        known.add(value, cotangent)
    outer = s.builder.span
    for operation in reversed(linear.operations):
        incoming = [known.take(result) for result in operation.results]
        if not any(incoming):
            continue
        for found, result in zip(incoming, operation.results, strict=True):
            if result.name is not None:
                name_cotangent(found, result.name)
        s.builder.span = operation.span.derive("adjoint") if operation.span is not None else outer
        operands: list[Term | Zero] = [
            Zero(value.type) if value.linear else terms.get(value) or Term(s.builder, value)
            for value in operation.operands
        ]
        op = operation.op
        require_linear(op, operation.operands, operation.attrs)
        full = [cotangent or Zero(result.type) for cotangent, result in zip(incoming, operation.results, strict=True)]
        if operation.regions:
            sums: dict[int, Tangent] = {}
            for position in op.totalled(len(operands), operation.attrs):
                before = known.take(operation.operands[position])
                if before is not None:
                    sums[position] = before
            if sums:
                outgoing = op.transpose_onto(s, full, operands, operation, sums)
            else:
                outgoing = op.transpose_region(s, full, operands, operation)
        else:
            if not op.separate:  # a literal at a linear position is a structural zero
                positions = op.linear_positions(len(operands), operation.attrs)
                operands = [Zero(operand.type) if k in positions else operand for k, operand in enumerate(operands)]
            outgoing = op.transpose(s, full, operands, operation.attrs)
        for value, contribution in zip(operation.operands, outgoing, strict=True):
            if contribution is not None:
                known.add(value, contribution)
    s.builder.span = outer
    inputs = [param for param in linear.params if param.linear]
    found_for = [known.take(param) for param in inputs]
    for param, found in zip(inputs, found_for, strict=True):
        if param.name is not None:
            name_cotangent(found, param.name)
    return [found or Zero(param.type) for param, found in zip(inputs, found_for, strict=True)]


def name_cotangent(cotangent: Tangent | None, name: str) -> None:
    """The cotangent of ``h.dot`` is ``h.bar``: cosmetic."""
    if isinstance(cotangent, Lin):
        adopt(cotangent.value, f"{name.removesuffix('.dot')}.bar")


def require_linear(op: Op, operands: Sequence[Value], attrs: Attrs) -> None:
    """Refuse an operation that is not linear in its linear operands."""
    used = [k for k, operand in enumerate(operands) if operand.linear]
    allowed = op.linear_positions(len(operands), attrs)
    if not set(allowed).issuperset(used) or (op.separate and len(used) > 1):
        raise InternalError(f"transpose: {op.name} is not linear in its operands {used}")


def transpose(linear: Function, masked: bool = False) -> Function:
    """Parameters: the residuals, then a cotangent for each result (then, if ``masked``, a mask for each).

    Results: the cotangents of the linear parameters. Where a mask is False the cotangent is a structural zero.
    """
    builder = Builder()
    residuals = [builder.param(param.type, param.name) for param in linear.params if not param.linear]
    values = [builder.param(result.type) for result in linear.results]
    cotangents: list[Tangent] = [
        Lin(value, builder.param(value.type.with_dtype(BOOL)), True) if masked else Lin(value) for value in values
    ]
    s = Masked(builder)
    outgoing = pull_back(s, linear, [Term(builder, value) for value in residuals], cotangents)
    return builder.function(f"{linear.name}.transpose", [s.materialise(tangent) for tangent in outgoing])
