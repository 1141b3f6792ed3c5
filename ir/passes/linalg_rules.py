"""Equations of linear algebra."""

from __future__ import annotations

from srcgrad.ir.core import Builder, Operation, Value
from srcgrad.ir.opdef import REGISTRY, Term
from srcgrad.ir.passes.matching import apply, emit, made_by, operand_of, rule


def sign_times_size(x: Term, swap: bool = False) -> Term:
    """The determinant from its sign and logarithm, in an example."""
    found = x.builder.emit_operation(REGISTRY["slogdet"], [x.value]).results
    sign, logarithm = (Term(x.builder, value) for value in found)
    size = apply("exp", logarithm)
    size = size if size.dtype == sign.dtype else apply("cast", size, dtype=sign.dtype)
    return size * sign if swap else sign * size


@rule(
    "mul(slogdet(x) sign, exp(slogdet(x) logarithm)) -> det(x)",
    lambda x: sign_times_size(x),
    lambda x: sign_times_size(x, swap=True),
    kinds="fc",
    shape=(4, 2, 2),
    limit=True,
)
def det_from_slogdet(operation: Operation, builder: Builder) -> Value | None:
    """The determinant has a derivative where its logarithm has none: at singular matrices."""
    for sign, size in (operation.operands, reversed(operation.operands)):
        source = made_by(sign, "slogdet")
        logarithm = operand_of(operand_of(size, "cast") or size, "exp")
        if source is not None and sign is source.results[0] and logarithm is source.results[1]:
            return emit(builder, "det", source.operands[0])
    return None
