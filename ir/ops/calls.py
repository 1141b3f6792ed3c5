"""Ops that hold regions: checkpointed calls and calls with a user's derivative rule. The IR never calls Python.

A ``custom_jvp`` or ``custom_vjp`` holds the traced function and its traced rule; their linear parts stay linear
programs, so both rules serve forward and reverse mode, to any order, and under batching.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from srcgrad.ir.core import NO_ATTRS, Attrs, Builder, Literal, Operation, Region, Value, zeros
from srcgrad.ir.errors import CustomRuleError, ShapeError
from srcgrad.ir.opdef import REGISTRY, Lin, LinearEmitter, LinearOperand, Op, Sample, Tangent, Term, Zero
from srcgrad.ir.passes.dead_control import all_sources
from srcgrad.ir.transforms.batch import batch_region, with_leading_axis
from srcgrad.ir.transforms.interpret import inline, push_forward
from srcgrad.ir.transforms.linear import Masked
from srcgrad.ir.transforms.linearize import record, terms_of
from srcgrad.ir.transforms.transpose import pull_back
from srcgrad.ir.types import ArrayType, Size


class Call(Op, abstract=True):
    """An application of its first region to the operands."""

    tapes = True
    transparent = True
    """Evaluating the op is evaluating its first region on the operands."""

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        raise ShapeError(f"{self.name} takes its types from its region")

    def result_types(
        self, types: Sequence[ArrayType], attrs: Attrs = NO_ATTRS, regions: Sequence[Region] = ()
    ) -> Sequence[ArrayType]:
        body = regions[0]
        if tuple(types) != body.param_types:
            raise ShapeError(f"{self.name}: the region takes {body.param_types}, not {tuple(types)}")
        return body.result_types

    def samples(self) -> Iterator[Sample]:
        return iter(())


def batch_body(region: Region, batched: Sequence[bool], size: Size) -> tuple[Region, list[bool]]:
    """A region on batched parameters, all of whose results are batched."""

    builder = Builder()
    arguments = [
        builder.param(param.type.with_shape((size, *param.type.shape)) if flag else param.type, param.name)
        for param, flag in zip(region.params, batched, strict=True)
    ]
    results, flags = batch_region(builder, region, arguments, batched, size)
    full = [v if flag else with_leading_axis(builder, v, size) for v, flag in zip(results, flags, strict=True)]
    return builder.region(full), flags


class Checkpoint(Call):
    """A call whose intermediate values are computed again in the reverse pass instead of being kept."""

    region_labels = ("body",)

    def differentiate(
        self, s: LinearEmitter, operands: Sequence[Term], tangents: Sequence[Tangent], operation: Operation
    ) -> tuple[Sequence[Value], Sequence[Tangent]]:

        builder = operands[0].builder
        values = [operand.value for operand in operands]
        body = operation.regions[0]
        if s.builder is builder or body.acts:
            return push_forward(builder, s, body, values, tangents)
        emitted = builder.emit_operation(self, values, operation.attrs, operation.regions)
        linear = [tangent for tangent in tangents if isinstance(tangent, Lin)]
        attrs = {
            "active": tuple(isinstance(tangent, Lin) for tangent in tangents),
            "hermitian": tuple(map(s.is_hermitian, linear)),
        }
        outgoing = s.apply_all(REGISTRY["rematerialised"], [*operands, *linear], attrs, (body,))
        return emitted.results, outgoing

    def batch_operation(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], operation: Operation
    ) -> Sequence[Term]:
        builder = operands[0].builder
        body, _ = batch_body(operation.regions[0], batched, size)
        emitted = builder.emit_operation(self, [operand.value for operand in operands], operation.attrs, (body,))
        return [Term(builder, value) for value in emitted.results]


class Rematerialised(Call):
    """The linear part of a checkpointed call: operands, then the tangents of the active ones.

    ``hermitian``: which of these are seen to be tangents of Hermitian matrices.
    """

    region_labels = ("body",)
    transparent = False

    def linear_positions(self, arity: int, attrs: Attrs) -> tuple[int, ...]:
        return tuple(range(len(attrs["active"]), arity))

    def result_types(
        self, types: Sequence[ArrayType], attrs: Attrs = NO_ATTRS, regions: Sequence[Region] = ()
    ) -> Sequence[ArrayType]:
        return regions[0].result_types

    def apply_linear(
        self, s: LinearEmitter, operands: Sequence[LinearOperand], attrs: Attrs, regions: Sequence[Region]
    ) -> list[Tangent]:

        body, active = regions[0], attrs["active"]
        values = [operand.value for operand in operands[: len(active)] if isinstance(operand, Term)]
        incoming = iter(operands[len(active) :])
        tangents = [
            linear_part(next(incoming)) if is_active else Zero(param.type)
            for param, is_active in zip(body.params, active, strict=True)
        ]
        linear = [tangent for tangent, is_active in zip(tangents, active, strict=True) if is_active]
        s.assume_hermitian(itertools.compress(linear, attrs["hermitian"]))
        return push_forward(s.builder, s, body, values, tangents)[1]

    def transpose_region(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], operation: Operation
    ) -> Sequence[Tangent | None]:
        """Compute the body again, from operands that common-subexpression elimination cannot see through."""

        builder, active = s.builder, operation.attrs["active"]
        primals = [operand.value for operand in operands[: len(active)] if isinstance(operand, Term)]
        fresh = builder.emit_operation(REGISTRY["barrier"], primals).results if primals else ()
        _, program = record(builder, operation.regions[0], fresh, active, operation.attrs["hermitian"])
        found = pull_back(s, program.function, terms_of(builder, program.residuals), cotangents)
        return [None] * len(active) + list(found)


def linear_part(operand: LinearOperand) -> Tangent:
    if isinstance(operand, Term):
        raise ShapeError("a residual stands where a tangent is needed")
    return operand


def refuse_closures(name: str, active: Sequence[bool], tangents: Sequence[Tangent]) -> None:
    """A rule says nothing about values that the function closes over, so they must not be differentiated."""
    if any(isinstance(tangent, Lin) and not is_active for tangent, is_active in zip(tangents, active, strict=True)):
        raise CustomRuleError(
            f"{name}: the function closes over a value that is differentiated, or is given one by nondiff_argnums, and "
            "its rule has no tangent for it",
            hint="pass that value to the function as an argument that is differentiated",
        )


def require_linear(name: str, rule: Region, given: int, outputs: Sequence[int]) -> None:
    """The outputs of a rule have derivatives, in the parameters from ``given`` on, that do not depend on these, and
    nothing is added to them.

    Both modes take the derivative of the rule at 0 in their stead, which is another map if it is not linear.

    Raises:
        CustomRuleError: it is not linear.
    """
    builder = Builder()
    primals = [builder.param(param.type) for param in rule.params]
    tangents: list[Tangent] = [Zero(param.type) for param in rule.params[:given]]
    tangents += [Lin(builder.param(param.type)) for param in rule.params[given:]]
    s = Masked(builder)
    _, outgoing = push_forward(builder, s, rule, primals, tangents)
    found = all_sources(s.materialise(outgoing[k]) for k in outputs)
    if not found.isdisjoint(primals[given:]):
        raise not_linear(name)
    at_zero = inline(builder, rule, [*primals[:given], *(zeros(param.type) for param in rule.params[given:])])
    if any(stays(at_zero[k]) for k in outputs):
        raise not_linear(name)


def not_linear(name: str) -> CustomRuleError:
    if name == "custom_vjp":
        return CustomRuleError(
            "custom_vjp: forward mode needs a bwd that is linear in the cotangent, and this is not",
            hint="use reverse mode (grad, vjp, jacrev), which calls bwd as it is, or a rule that is linear",
        )
    return CustomRuleError(
        "custom_jvp: the tangent that the rule returns is not linear in the tangents that it is given",
        hint="return a sum of derivatives times tangents, np.zeros_like(out) where there is none",
    )


DEEPEST = 64
"""How many operations behind one another `vanishes` looks at; it does not know of what lies further back."""


def vanishes(value: Value, known: dict[Value, bool] | None = None, depth: int = 0) -> bool:
    """Whether a value is 0 by its structure: made of zeros by operations that are linear in them, as far as known."""
    known = {} if known is None else known
    if isinstance(value, Literal):
        return not np.any(value.value)
    operation = value.producer
    if operation is None or operation.regions:
        return False
    if value not in known and depth < DEEPEST:
        linear = operation.op.linear_positions(len(operation.operands), operation.attrs)
        zero = (vanishes(operation.operands[k], known, depth + 1) for k in linear)
        known[value] = bool(linear) and (any(zero) if operation.op.separate else all(zero))
    return known.get(value, True)


SPREADING = frozenset({"broadcast", "concatenate", "neg", "reshape", "transpose"})
"""Ops that drop no element of an operand."""


def stays(value: Value, depth: int = 0) -> bool:
    """Whether a value is other than 0 by its structure: a constant, a primal, a function of it, or that added to zeros.

    What is selected, taken out of an array or computed in a region may be 0, and is nothing that is known here.
    """
    if isinstance(value, Literal):
        return bool(np.any(value.value))
    operation = value.producer
    if operation is None:
        return True
    op, operands = operation.op, operation.operands
    if operation.regions or depth >= DEEPEST or not value.type.differentiable:
        return False
    if op.name in ("add", "sub"):
        return any(vanishes(left) and stays(right, depth + 1) for left, right in (operands, reversed(operands)))
    if op.name in ("mul", "div"):
        return all(stays(operand, depth + 1) for operand in operands)
    if op.name in SPREADING:
        return any(stays(operand, depth + 1) for operand in operands)
    return not op.linear_positions(len(operands), operation.attrs) and any(stays(o, depth + 1) for o in operands)


class CustomJvp(Call):
    """A function with the user's forward rule: regions ``body`` and ``rule`` (primals, tangents -> results, tangents).

    Tangents of operands that are not differentiable are not passed: ``rule`` takes those of ``attrs["active"]``.
    """

    region_labels = ("body", "rule")

    def differentiate(
        self, s: LinearEmitter, operands: Sequence[Term], tangents: Sequence[Tangent], operation: Operation
    ) -> tuple[Sequence[Value], Sequence[Tangent]]:
        """Run the rule's own linearisation at tangent 0: it is linear in the tangents, so that is the rule itself."""

        builder = operands[0].builder
        rule, active = operation.regions[1], operation.attrs["active"]
        refuse_closures(self.name, active, tangents)
        seeds: list[Value] = [zeros(o.type) for o, is_active in zip(operands, active, strict=True) if is_active]
        incoming: list[Tangent] = [Zero(operand.type) for operand in operands]
        incoming += [tangent for tangent, is_active in zip(tangents, active, strict=True) if is_active]
        values, outgoing = push_forward(builder, s, rule, [*(o.value for o in operands), *seeds], incoming)
        count = len(operation.results)
        outputs = [k for k, result in enumerate(operation.results, count) if result.type.differentiable]
        require_linear(self.name, rule, len(operands), outputs)
        if any(isinstance(outgoing[k], Zero) and not vanishes(values[k]) for k in outputs):
            raise not_linear(self.name)
        return values[:count], outgoing[count:]

    def batch_operation(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], operation: Operation
    ) -> Sequence[Term]:
        builder = operands[0].builder
        body, _ = batch_body(operation.regions[0], batched, size)
        active = operation.attrs["active"]
        flags = [flag for flag, is_active in zip(batched, active, strict=True) if is_active]
        rule, _ = batch_body(operation.regions[1], [*batched, *flags], size)
        values = [operand.value for operand in operands]
        emitted = builder.emit_operation(self, values, operation.attrs, (body, rule))
        return [Term(builder, value) for value in emitted.results]


class CustomVjp(Call):
    """A function with the user's reverse rule.

    Regions: ``body``; ``forward`` (operands -> results, residuals); ``backward`` (residuals, cotangents of the
    ``attrs["outputs"]`` results -> cotangents of the ``attrs["active"]`` operands).
    """

    region_labels = ("body", "forward", "backward")

    def differentiate(
        self, s: LinearEmitter, operands: Sequence[Term], tangents: Sequence[Tangent], operation: Operation
    ) -> tuple[Sequence[Value], Sequence[Tangent]]:

        builder = operands[0].builder
        _, forward, backward = operation.regions
        found = inline(builder, forward, [operand.value for operand in operands])
        count = len(operation.results)
        residuals = [Term(builder, value) for value in found[count:]]
        active, outputs = operation.attrs["active"], operation.attrs["outputs"]
        refuse_closures(self.name, active, tangents)
        incoming = [tangent for tangent, is_active in zip(tangents, active, strict=True) if is_active]
        linear = s.apply_all(
            REGISTRY["custom_linear"], [*residuals, *incoming], {"residuals": len(residuals)}, (backward,)
        )
        pairs = iter(linear)
        outgoing = [
            next(pairs) if is_output else Zero(value.type)
            for value, is_output in zip(found[:count], outputs, strict=True)
        ]
        return found[:count], outgoing

    def batch_operation(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], operation: Operation
    ) -> Sequence[Term]:
        builder = operands[0].builder
        body, _ = batch_body(operation.regions[0], batched, size)
        forward, _ = batch_body(operation.regions[1], batched, size)
        backward, _ = batch_body(operation.regions[2], [True] * len(operation.regions[2].params), size)
        backward = unbatch_results(backward, operation, batched)
        values = [operand.value for operand in operands]
        emitted = builder.emit_operation(self, values, operation.attrs, (body, forward, backward))
        return [Term(builder, value) for value in emitted.results]


def unbatch_results(backward: Region, operation: Operation, batched: Sequence[bool]) -> Region:
    """Sum the cotangents of operands that were shared by all examples."""

    builder = Builder()
    found = inline(builder, backward, [builder.param(param.type, param.name) for param in backward.params])
    flags = [flag for flag, is_active in zip(batched, operation.attrs["active"], strict=True) if is_active]
    results = [
        value if flag else REGISTRY["reduce_sum"](Term(builder, value), axes=(0,)).value
        for value, flag in zip(found, flags, strict=True)
    ]
    return builder.region(results)


class CustomLinear(Op):
    """The linear map whose transpose is the region (residuals, cotangents -> cotangents of the operands)."""

    region_labels = ("transpose",)
    tapes = True

    def linear_positions(self, arity: int, attrs: Attrs) -> tuple[int, ...]:
        return tuple(range(attrs["residuals"], arity))

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        raise ShapeError(f"{self.name} takes its types from its region")

    def result_types(
        self, types: Sequence[ArrayType], attrs: Attrs = NO_ATTRS, regions: Sequence[Region] = ()
    ) -> Sequence[ArrayType]:
        return regions[0].param_types[attrs["residuals"] :]

    def apply_linear(
        self, s: LinearEmitter, operands: Sequence[LinearOperand], attrs: Attrs, regions: Sequence[Region]
    ) -> list[Tangent]:
        """Forward mode: the transpose of the user's backward rule, linearised at cotangent 0."""

        builder, backward, count = s.builder, regions[0], attrs["residuals"]
        require_linear("custom_vjp", backward, count, range(len(backward.results)))
        residuals = [operand.value for operand in operands[:count] if isinstance(operand, Term)]
        seeds = [zeros(param.type) for param in backward.params[count:]]
        active = [k >= count for k in range(len(backward.params))]
        _, program = record(builder, backward, [*residuals, *seeds], active)
        tangents = [linear_part(operand) for operand in operands[count:]]
        return pull_back(s, program.function, terms_of(builder, program.residuals), tangents)

    def transpose_region(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], operation: Operation
    ) -> Sequence[Tangent | None]:
        """Reverse mode: the user's backward rule, as it is."""

        count = operation.attrs["residuals"]
        residuals = [operand.value for operand in operands[:count] if isinstance(operand, Term)]
        values = [s.materialise(cotangent) for cotangent in cotangents]
        found = inline(s.builder, operation.regions[0], [*residuals, *values])
        return [None] * count + [Lin(value) for value in found]
