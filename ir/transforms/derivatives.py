"""Gradients and Jacobians of whole functions, composed of linearize, transpose and batch.

Jacobians of complex functions, with J = dy/dx where that exists and the pairing Re(sum of products):

- complex -> real: forward pushes 1 and 1j, and J = push(1) - 1j push(1j), which is what reverse mode pulls back from 1;
- real -> complex: reverse pulls 1 and 1j back, and J = pull(1) - 1j pull(1j), which is what forward mode pushes;
- complex -> complex: both use the seed 1, which is right for holomorphic functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from srcgrad.ir.core import Builder, Function, Region, Value, literal
from srcgrad.ir.opdef import REGISTRY, Lin, Tangent, Term, Zero
from srcgrad.ir.passes.kinks import aged
from srcgrad.ir.transforms.batch import batch_region, with_leading_axis
from srcgrad.ir.transforms.interpret import push_forward, run_linear
from srcgrad.ir.transforms.linear import Masked
from srcgrad.ir.transforms.linearize import LinearProgram, copy_params, record, terms_of
from srcgrad.ir.transforms.transpose import pull_back
from srcgrad.ir.types import BOOL, ArrayType, DType, complex_dtype, real_dtype

CONTROL = frozenset({"linear_cond", "linear_for"})
"""Linear ops whose regions say what they are."""

REAL_LINEAR = frozenset({"real", "imag", "conj", "complex"})
"""Linear ops that are linear over the reals only."""


def value_and_grad(function: Function, active: Sequence[bool], seed: complex = 1.0) -> Function:
    """Results: the function's results, then the gradient of the first (a scalar) in each active parameter."""
    builder = Builder()
    results, program = record(builder, function, copy_params(builder, function), active)
    cotangents: list[Tangent] = [Zero(result.type) for result in results]
    cotangents[0] = Lin(literal(seed, results[0].type))
    s = Masked(builder)
    gradients = pull_back(s, program.function, terms_of(builder, program.residuals), cotangents)
    return builder.function(f"{function.name}.grad", [*results, *map(s.materialise, gradients)])


def vjp(function: Function, active: Sequence[bool]) -> Function:
    """Parameters: the function's, then a cotangent per result. Results: its results, then cotangents of the active."""
    builder = Builder()
    results, program = record(builder, function, copy_params(builder, function), active)
    cotangents: list[Tangent] = [Lin(builder.param(result.type)) for result in results]
    s = Masked(builder)
    outgoing = pull_back(s, program.function, terms_of(builder, program.residuals), cotangents)
    return builder.function(f"{function.name}.vjp", [*results, *map(s.materialise, outgoing)])


def hvp(function: Function, active: Sequence[bool]) -> Function:
    """The Hessian of a scalar function times tangents of the active parameters (forward over reverse)."""
    gradient = value_and_grad(function, active)
    count = len(function.results)
    gradient = Function(gradient.name, gradient.params, gradient.operations, gradient.results[count:])
    gradient = aged(gradient)
    builder = Builder()
    primals = copy_params(builder, gradient)
    tangents: list[Tangent] = [
        Lin(builder.param(primal.type)) if is_active else Zero(primal.type)
        for primal, is_active in zip(primals, active, strict=True)
    ]
    s = Masked(builder)
    _, outgoing = push_forward(builder, s, gradient, primals, tangents)
    return builder.function(f"{function.name}.hvp", [s.materialise(tangent) for tangent in outgoing])


def is_holomorphic(program: LinearProgram) -> bool:
    """Whether the linear program is linear over the complex numbers by its structure."""
    return is_complex_linear(program.function)


def is_complex_linear(linear: Region) -> bool:
    for operation in linear.operations:
        if operation.op.name in REAL_LINEAR:
            return False
        if operation.regions:
            if operation.op.name not in CONTROL:
                return False
            if not all(map(is_complex_linear, operation.regions[1::2])):  # each comes after one for its residuals
                return False
    return True


def one_hot(builder: Builder, type: ArrayType) -> tuple[Value, Value]:
    """The standard basis of a type along a leading axis, and the mask of where it is not structurally zero."""
    size = type.size
    square = ArrayType(np.dtype(np.int64), (size, size))
    iota = REGISTRY["iota"]
    rows, columns = (
        Term(builder, builder.emit(iota, [], {"dtype": square.dtype, "shape": square.shape, "axis": axis}))
        for axis in (0, 1)
    )
    mask = REGISTRY["reshape"](rows == columns, shape=(size, *type.shape))
    return REGISTRY["cast"](mask, dtype=type.dtype).value, mask.value


LinearMap = Callable[[Masked, list[Term], Tangent], list[Tangent]]
"""A linear map given an emitter, its residuals and its argument."""


def over_basis(
    builder: Builder, type: ArrayType, residuals: Sequence[Value], linear: LinearMap, seed: complex = 1.0
) -> list[Value]:
    """Apply a linear map to ``seed`` times each basis element of ``type``; results get a leading axis of its size.

    Seeds are masked: a structural zero of the basis stays one whatever the partials hold.
    """
    if type.size == 1:
        s = Masked(builder)
        found = linear(s, terms_of(builder, residuals), Lin(literal(seed, type)))
        return [with_leading_axis(builder, s.materialise(tangent), 1) for tangent in found]
    inner = Builder()
    s = Masked(inner)
    terms = [Term(inner, inner.param(value.type)) for value in residuals]
    value, mask = inner.param(type), inner.param(type.with_dtype(BOOL))
    results = [s.materialise(tangent) for tangent in linear(s, terms, Lin(value, mask, True))]
    seeds, masks = one_hot(builder, type)
    if seed != 1:
        seeds = (Term(builder, seeds) * seed).value
    batched = [False] * len(terms) + [True, True]
    arguments = [*residuals, seeds, masks]
    emitted, flags = batch_region(builder, inner.region(results), arguments, batched, type.size)
    return [
        value if flag else with_leading_axis(builder, value, type.size)
        for value, flag in zip(emitted, flags, strict=True)
    ]


def combine(builder: Builder, one: Value, other: Value) -> Value:
    """``one - 1j * other``."""
    dtype = complex_dtype(one.type.dtype)
    left, right = (REGISTRY["cast"](Term(builder, value), dtype=dtype) for value in (one, other))
    return (left - right * 1j).value


def jacobian(function: Function, active: Sequence[bool], outputs: Sequence[int], forward: bool) -> Function:
    """Results: the function's results, then for each of ``outputs`` its Jacobian in each active parameter.

    A Jacobian has the output's shape followed by the parameter's.
    """
    builder = Builder()
    results, program = record(builder, function, copy_params(builder, function), active)
    inputs = [param.type for param in program.function.params if param.linear]
    blocks = forward_blocks if forward else reverse_blocks
    found = blocks(builder, program, inputs, [results[k].type for k in outputs], outputs)
    return builder.function(f"{function.name}.jacobian", [*results, *found])


def forward_blocks(
    builder: Builder,
    program: LinearProgram,
    inputs: Sequence[ArrayType],
    outputs: Sequence[ArrayType],
    positions: Sequence[int],
) -> list[Value]:
    columns: list[list[Value]] = []
    for k, type in enumerate(inputs):

        def push(s: Masked, residuals: list[Term], tangent: Tangent, k: int = k) -> list[Tangent]:
            tangents: list[Tangent] = [Zero(other) for other in inputs]
            tangents[k] = tangent
            found = run_linear(s, program.function, residuals, tangents)
            return [found[position] for position in positions]

        column = over_basis(builder, type, program.residuals, push)
        if type.dtype.kind == "c" and any(output.dtype.kind != "c" for output in outputs):
            turned = over_basis(builder, type, program.residuals, push, 1j)
            column = [
                one if output.dtype.kind == "c" else combine(builder, one, other)
                for one, other, output in zip(column, turned, outputs, strict=True)
            ]
        columns.append(column)
    blocks = []
    for j, output in enumerate(outputs):
        for k, type in enumerate(inputs):
            block = Term(builder, columns[k][j])
            block = REGISTRY["transpose"](block, perm=(*range(1, block.rank), 0))
            block = REGISTRY["reshape"](block, shape=(*output.shape, *type.shape))
            blocks.append(in_precision_of(block, type.dtype).value)
    return blocks


def in_precision_of(block: Term, dtype: DType) -> Term:
    """A block in the precision of the input, as reverse mode gives it, whatever the output's is."""
    target = complex_dtype(dtype) if block.dtype.kind == "c" else real_dtype(dtype)
    return block if block.dtype == target else REGISTRY["cast"](block, dtype=target)


def reverse_blocks(
    builder: Builder,
    program: LinearProgram,
    inputs: Sequence[ArrayType],
    outputs: Sequence[ArrayType],
    positions: Sequence[int],
) -> list[Value]:
    every = program.function.result_types
    blocks = []
    for position, output in zip(positions, outputs, strict=True):

        def pull(s: Masked, residuals: list[Term], cotangent: Tangent, position: int = position) -> list[Tangent]:
            cotangents: list[Tangent] = [Zero(type) for type in every]
            cotangents[position] = cotangent
            return pull_back(s, program.function, residuals, cotangents)

        row = over_basis(builder, output, program.residuals, pull)
        if output.dtype.kind == "c" and any(type.dtype.kind != "c" for type in inputs):
            turned = over_basis(builder, output, program.residuals, pull, 1j)
            row = [
                one if type.dtype.kind == "c" else combine(builder, one, other)
                for one, other, type in zip(row, turned, inputs, strict=True)
            ]
        for value, type in zip(row, inputs, strict=True):
            shape = (*output.shape, *type.shape)
            blocks.append(REGISTRY["reshape"](Term(builder, value), shape=shape).value)
    return blocks
