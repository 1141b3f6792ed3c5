"""Linearize: a function as its primal part and a linear program in its tangents; and jvp.

Both are one interpretation, `push_forward`: jvp emits the linear part, linearize records it. So the coverage of
forward and reverse mode is equal by construction.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from srcgrad.ir.core import Builder, Function, Operation, Region, Value, zeros
from srcgrad.ir.opdef import Lin, Tangent, Term, Zero
from srcgrad.ir.transforms.interpret import push_forward
from srcgrad.ir.transforms.linear import Masked, Recorder


class LinearProgram(NamedTuple):
    """A recorded linear program: its function (residual parameters, then linear ones), and the residuals' values."""

    function: Function
    residuals: list[Value]


def record(
    builder: Builder,
    region: Region,
    primals: Sequence[Value],
    active: Sequence[bool],
    hermitian: Sequence[bool] = (),
) -> tuple[list[Value], LinearProgram]:
    """Emit a region's primal into ``builder``; record its linear part in the active parameters.

    ``hermitian``: which of these stand for Hermitian matrices.
    """
    inputs, tangents = linear_inputs(region.params, active)
    recorder = Recorder(Lin(value) for value in itertools.compress(inputs, hermitian))
    results, outgoing = push_forward(builder, recorder, region, primals, tangents)
    outputs = [zeros(tangent.type) if isinstance(tangent, Zero) else tangent.value for tangent in outgoing]
    used, kept = live_part(recorder, outputs)
    params = [param for _, param in kept] + inputs
    function = Function("linear", params, used, outputs)
    return results, LinearProgram(function, [value for value, _ in kept])


def linear_inputs(params: Sequence[Value], active: Sequence[bool]) -> tuple[list[Value], list[Tangent]]:
    """Linear parameters, one for each active parameter of a region; and the tangents of all: such a one, or zero."""
    inputs: list[Value] = []
    tangents: list[Tangent] = []
    for param, is_active in zip(params, active, strict=True):
        if is_active:
            inputs.append(Value(param.type, None, param.name and f"{param.name}.dot", linear=True))
            tangents.append(Lin(inputs[-1]))
        else:
            tangents.append(Zero(param.type))
    return inputs, tangents


def live_part(recorder: Recorder, outputs: Sequence[Value]) -> tuple[list[Operation], list[tuple[Value, Value]]]:
    """What outputs need of what was recorded: operations, and residuals with the parameters that stand for them."""
    live, used = set(outputs), []
    for operation in reversed(recorder.builder.operations):
        if not live.isdisjoint(operation.results):
            used.append(operation)
            live.update(operation.operands)
    return used[::-1], [(value, param) for value, param in recorder.residuals.items() if param in live]


class Linearized(NamedTuple):
    """``primal`` returns the function's results, then the residuals; ``linear`` takes the residuals, then tangents."""

    primal: Function
    linear: Function
    results: int


def copy_params(builder: Builder, region: Region) -> list[Value]:
    return [builder.param(param.type, param.name) for param in region.params]


def linearize(function: Function, active: Sequence[bool]) -> Linearized:
    """Split a function at its residuals."""
    builder = Builder()
    results, program = record(builder, function, copy_params(builder, function), active)
    primal = builder.function(f"{function.name}.primal", [*results, *program.residuals])
    return Linearized(primal, program.function, len(results))


def jvp(function: Function, active: Sequence[bool]) -> Function:
    """Parameters: the primals, then a tangent for each active one. Results: the results, then all their tangents."""
    builder = Builder()
    primals = copy_params(builder, function)
    tangents: list[Tangent] = [
        Lin(builder.param(primal.type, primal.name and f"{primal.name}.dot")) if is_active else Zero(primal.type)
        for primal, is_active in zip(primals, active, strict=True)
    ]
    s = Masked(builder)
    results, outgoing = push_forward(builder, s, function, primals, tangents)
    return builder.function(f"{function.name}.jvp", [*results, *(s.materialise(tangent) for tangent in outgoing)])


def terms_of(builder: Builder, values: Sequence[Value]) -> list[Term]:
    return [Term(builder, value) for value in values]
