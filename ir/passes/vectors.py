"""Reading V g(w) off a program: vectors of a decomposition with weights, and products V^H x with such vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from srcgrad.ir.core import Builder, Literal, Operation, Value, literal
from srcgrad.ir.opdef import REGISTRY, Elementwise
from srcgrad.ir.passes.values import MOST_NESTED, Chain, Expression, Source, origin, plain, step_of
from srcgrad.ir.types import ArrayType, real_dtype


@dataclass(frozen=True)
class Weight:
    """Numbers that multiply the vectors: an array, the steps that led to it, the axis along which it must be constant,
    whether it divides, and whether it is conjugated.
    """

    value: Value
    chain: Chain
    row: int | None
    divides: bool = False
    conjugated: bool = False


@dataclass(frozen=True)
class Factor:
    """Vectors of a decomposition, weighted and picked: the last two axes are those of the rows and of the vectors."""

    source: Source
    part: str
    row: int
    column: int
    conjugated: bool
    chain: Chain = ()
    weights: tuple[Weight, ...] = ()


def factor(value: Value, chain: Chain = (), depth: int = 0) -> Factor | None:
    """The value as vectors of a decomposition."""
    value = plain(value)
    found, rank = origin(value), value.type.rank
    if found is not None:
        source, part = found
        if part == "values":
            return None
        row, column = (rank - 1, rank - 2) if part == "right" else (rank - 2, rank - 1)
        return Factor(source, part, row, column, part == "right", chain)
    operation = value.producer
    if operation is None or depth > MOST_NESTED or rank < 2:
        return None
    name, operands = operation.op.name, operation.operands
    if name == "cast" and value.type.dtype.kind == "c" and operands[0].type.dtype.kind == "f":
        return factor(operands[0], chain, depth + 1)
    if name in ("conj", "neg", "identity"):
        return wrapped(factor(operands[0], chain, depth + 1), value, name, chain)
    if name == "transpose":
        return permuted(factor(operands[0], chain, depth + 1), operation)
    if name in ("mul", "div"):
        return weighted(operation, chain, depth)
    if name == "dot_general":
        return multiplied(operation, chain, depth)
    for axis in (rank - 1, rank - 2):
        step = step_of(operation, axis)
        if step is not None:
            inner = factor(operands[0], (*chain, step), depth + 1)
            if inner is not None and inner.column == axis:
                return inner
    return None


def wrapped(inner: Factor | None, value: Value, name: str, chain: Chain) -> Factor | None:
    if inner is None or name == "identity":
        return inner
    if name == "conj":
        weights = tuple(replace(weight, conjugated=not weight.conjugated) for weight in inner.weights)
        return replace(inner, conjugated=not inner.conjugated, weights=weights)
    minus = Weight(literal(-1, value.type), chain, inner.row)
    return replace(inner, weights=(*inner.weights, minus))


def permuted(inner: Factor | None, operation: Operation) -> Factor | None:
    """Only the last two axes may change places."""
    perm = operation.attrs["perm"]
    rank = len(perm)
    if inner is None or perm[: rank - 2] != tuple(range(rank - 2)):
        return None
    return replace(inner, row=perm.index(inner.row), column=perm.index(inner.column))


def weighted(operation: Operation, chain: Chain, depth: int) -> Factor | None:
    left, right = operation.operands
    inner = factor(left, chain, depth + 1)
    other = right
    if inner is None and operation.op.name == "mul":
        inner, other = factor(right, chain, depth + 1), left
    if inner is None:
        return None
    weight = Weight(other, chain, inner.row, operation.op.name == "div")
    return replace(inner, weights=(*inner.weights, weight))


def multiplied(operation: Operation, chain: Chain, depth: int) -> Factor | None:
    """Products with a diagonal matrix, or of each vector with its number."""
    contract, batch = operation.attrs["contract"], operation.attrs["batch"]
    for side in (0, 1):
        inner = factor(operation.operands[side], chain, depth + 1)
        if inner is None:
            continue
        other = operation.operands[1 - side]
        rank = operation.operands[side].type.rank
        stack = tuple(range(rank - 2))
        if not contract[0] and batch[side] == (*stack, inner.column) and batch[1 - side] == (*stack, rank - 2):
            weight = Weight(other, chain, None)
            return replace(inner, row=rank - 1, column=rank - 2, weights=(*inner.weights, weight))
        diagonal = diagonal_of(plain(other), chain)
        if diagonal is not None and contract[side] == (inner.column,) and batch == (stack, stack):
            row, column = (rank - 2, rank - 1) if side == 0 else (rank - 1, rank - 2)
            return replace(inner, row=row, column=column, weights=(*inner.weights, *diagonal))
    return None


def diagonal_of(value: Value, chain: Chain, depth: int = 0) -> tuple[Weight, ...] | None:
    """The numbers on the diagonal of a diagonal matrix: of what ``np.diag`` makes, or of a product with ``np.eye``;
    and what the matrix is a multiple by.
    """
    producer = value.producer
    if producer is None or value.type.rank < 2 or depth > MOST_NESTED:
        return None
    if producer.op.name == "cast" and value.type.dtype.kind == "c" and producer.operands[0].type.dtype.kind == "f":
        return diagonal_of(plain(producer.operands[0]), chain, depth + 1)
    if producer.op.name == "neg":
        inner = diagonal_of(plain(producer.operands[0]), chain, depth + 1)
        return inner and (*inner, Weight(literal(-1, value.type), chain, None))
    if producer.op.name in ("mul", "div"):
        divides = producer.op.name == "div"
        axes = (value.type.rank - 2, value.type.rank - 1)
        for matrix, other in (producer.operands,) if divides else (producer.operands, producer.operands[::-1]):
            constant = [axis for axis in axes if is_constant(other, axis, MOST_NESTED)]
            if is_identity(matrix) and constant:
                return (Weight(other, chain, constant[0], divides),)
            inner = diagonal_of(plain(matrix), chain, depth + 1) if len(constant) == 2 else None
            if inner is not None:
                return (*inner, Weight(other, chain, constant[0], divides))
        return None
    if producer.op.name != "scatter_set" or len(producer.operands) != 4:
        return None
    base, diagonal, rows, columns = producer.operands
    size = value.type.static_shape[-1]
    square = value.type.shape == (size, size) and producer.attrs["axis"] == 0
    zero = isinstance(base, Literal) and base.splat and base.value == 0
    if not (square and zero and rows == columns and isinstance(rows, Literal)):
        return None
    return (Weight(diagonal, chain, None),) if np.array_equal(rows.value, np.arange(size)) else None


def is_identity(value: Value) -> bool:
    """Whether the value is the constant identity matrix, or a stack of them."""
    producer = value.producer
    if producer is not None and producer.op.name in ("broadcast", "reshape"):
        value = producer.operands[0]
    if not isinstance(value, Literal) or value.splat or value.type.rank < 2:
        return False
    rows, columns = value.type.static_shape[-2:]
    return rows == columns and bool((value.value == np.eye(rows)).all())


def is_constant(value: Value, axis: int, depth: int) -> bool:
    """Whether an array is the same along an axis because it was repeated along it."""
    if isinstance(value, Literal):
        return value.splat
    producer = value.producer
    if producer is None or depth == 0:
        return False
    if producer.op.name == "broadcast":
        dims = producer.attrs["dims"]
        return axis not in dims or producer.operands[0].type.shape[dims.index(axis)] == 1
    same = all(operand.type.shape == value.type.shape for operand in producer.operands)
    return (
        isinstance(producer.op, Elementwise)
        and same
        and all(is_constant(operand, axis, depth - 1) for operand in producer.operands)
    )


def real_of(builder: Builder, scalar: Value, depth: int = 0) -> Value | None:
    """A complex scalar as the real one that it was made of to multiply complex numbers; None if there is none."""
    if scalar.type.dtype.kind != "c":
        return scalar
    if isinstance(scalar, Literal):
        return literal(scalar.value.real, ArrayType(real_dtype(scalar.type.dtype))) if scalar.value.imag == 0 else None
    producer = scalar.producer
    if producer is None or depth > MOST_NESTED:
        return None
    if producer.op.name == "cast":
        return producer.operands[0] if producer.operands[0].type.dtype == real_dtype(scalar.type.dtype) else None
    if producer.op.name not in ("add", "sub", "mul", "div", "neg"):
        return None
    operands = []
    for operand in producer.operands:
        real = real_of(builder, operand, depth + 1)
        if real is None:
            return None
        operands.append(real)
    return builder.emit(producer.op, operands, producer.attrs)


def weight_expression(expression: Expression, weights: Sequence[Weight], conjugated: bool) -> Value:
    """The product of all weights as a scalar; ``conjugated``: of their conjugates."""
    assert expression.source is not None
    matrix = expression.source.matrix.type
    total: Value = literal(1, ArrayType(real_dtype(matrix.dtype)))
    first = True
    for weight in weights:
        found = expression.read(weight.value, weight.chain, weight.row)
        found = real_of(expression.scalars, found) or found
        if weight.conjugated != conjugated and found.type.dtype.kind == "c":
            found = expression.scalars.emit(REGISTRY["conj"], [found])
        if total.type.dtype != found.type.dtype:
            wide = np.result_type(total.type.dtype, found.type.dtype)
            total, found = (cast_scalar(expression.scalars, value, wide) for value in (total, found))
        if first and not weight.divides:
            total = found
        else:
            total = expression.scalars.emit(REGISTRY["div" if weight.divides else "mul"], [total, found])
        first = False
    return total


def cast_scalar(builder: Builder, value: Value, dtype: Any) -> Value:
    if value.type.dtype == dtype:
        return value
    if isinstance(value, Literal):
        return literal(value.value, ArrayType(dtype))
    return builder.emit(REGISTRY["cast"], [value], {"dtype": np.dtype(dtype)})


# --- coefficients -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Coefficients:
    """V^H x, weighted: ``vectors`` has V^H and the weights, ``axis`` is the axis of ``x`` that is summed over.

    Of the array that it is, ``column`` is the axis of the vectors and ``free`` that of x, if x has another one.
    """

    vectors: Factor
    x: Value
    axis: int
    column: int
    free: int | None


def coefficients(value: Value, chain: Chain = (), depth: int = 0) -> Coefficients | None:
    value = plain(value)
    operation, rank = value.producer, value.type.rank
    if operation is None or depth > MOST_NESTED:
        return None
    name, operands = operation.op.name, operation.operands
    if name == "dot_general":
        return expanded_in(operation, chain, depth)
    if name in ("mul", "div"):
        inner, other = coefficients(operands[0], chain, depth + 1), operands[1]
        if inner is None and name == "mul":
            inner, other = coefficients(operands[1], chain, depth + 1), operands[0]
        if inner is None:
            return None
        weight = Weight(other, chain, inner.free, name == "div")
        return replace(inner, vectors=replace(inner.vectors, weights=(*inner.vectors.weights, weight)))
    for axis in range(max(rank - 2, 0), rank):
        step = step_of(operation, axis)
        if step is not None:
            inner = coefficients(operands[0], (*chain, step), depth + 1)
            if inner is not None and inner.column == axis:
                return inner
    return None


def expanded_in(operation: Operation, chain: Chain, depth: int) -> Coefficients | None:
    """The product of vectors with x, summed over their components."""
    contract, batch = operation.attrs["contract"], operation.attrs["batch"]
    for side in (0, 1):
        other = operation.operands[1 - side]
        found = factor(operation.operands[side], chain, depth + 1)
        if found is None:
            continue
        count = operation.operands[side].type.rank - 2
        stack = tuple(range(count))
        free = other.type.rank - count - 1
        if contract[side] == (found.row,) and batch == (stack, stack) and free in (0, 1):
            column = count if side == 0 else count + free
            rest = (count + 1 if side == 0 else count) if free else None
            return Coefficients(found, other, contract[1 - side][0], column, rest)
    return None
