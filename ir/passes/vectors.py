"""Reading V g(w) off a program: vectors of a decomposition with weights."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from srcgrad.ir.core import Builder, Literal, Operation, Value, literal
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.passes.diagonals import is_diagonal, read_diagonal
from srcgrad.ir.passes.values import MOST_NESTED, Chain, Expression, Source, origin, plain, step_of, whole_origin
from srcgrad.ir.types import ArrayType, real_dtype


@dataclass(frozen=True)
class Weight:
    """Numbers that multiply the vectors: an array, the steps that led to it, the axis along which it must be constant,
    whether it divides, and whether it is conjugated. Of a ``diagonal`` matrix they are the numbers on the diagonal.
    """

    value: Value
    chain: Chain
    row: int | None
    divides: bool = False
    conjugated: bool = False
    diagonal: bool = False


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


Found = TypeVar("Found", covariant=True)


class Search(Protocol[Found]):
    """Reads a value as something; ``chain``: the steps that led to it, ``failed``: what is not looked at again."""

    def __call__(
        self, value: Value, chain: Chain = (), depth: int = 0, failed: set[Value] | None = None
    ) -> Found | None: ...


def looked_at_once(find: Callable[[Value, Chain, int, set[Value]], Found | None]) -> Search[Found]:
    """A search that asks again of no value which is not what it looks for: what is used twice would be read twice, and
    what that is made of four times."""

    @functools.wraps(find)
    def search(value: Value, chain: Chain = (), depth: int = 0, failed: set[Value] | None = None) -> Found | None:
        value, failed = plain(value), set() if failed is None else failed
        if value in failed or depth > MOST_NESTED:
            return None
        found = find(value, chain, depth, failed)
        if found is None:
            failed.add(value)
        return found

    return search


@looked_at_once
def factor(value: Value, chain: Chain, depth: int, failed: set[Value]) -> Factor | None:
    """The value as vectors of a decomposition."""
    found, rank = whole_origin(value), value.type.rank
    if found is not None:
        source, part = found
        if part == "values":
            return None
        if origin(value) is None:
            if not chain or chain[-1][0] != "slice" or chain[-1] != ("slice", 0, min(chain[-1][2], source.size), 1):
                return None
            chain = chain if chain[-1][2] < source.size else chain[:-1]
        row, column = (rank - 1, rank - 2) if part == "right" else (rank - 2, rank - 1)
        return Factor(source, part, row, column, part == "right", chain)
    operation = value.producer
    if operation is None or rank < 2:
        return None
    name, operands = operation.op.name, operation.operands
    if name == "cast" and value.type.dtype.kind == "c" and operands[0].type.dtype.kind == "f":
        return factor(operands[0], chain, depth + 1, failed)
    if name in ("conj", "neg", "identity"):
        return wrapped(factor(operands[0], chain, depth + 1, failed), value, name, chain)
    if name == "transpose":
        return permuted(factor(operands[0], chain, depth + 1, failed), operation)
    if name in ("mul", "div"):
        return weighted(operation, chain, depth, failed)
    if name == "dot_general":
        return multiplied(operation, chain, depth, failed)
    for axis in (rank - 1, rank - 2):
        step = step_of(operation, axis)
        if step is not None:
            inner = factor(operands[0], (*chain, step), depth + 1, failed)
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


def weighted(operation: Operation, chain: Chain, depth: int, failed: set[Value]) -> Factor | None:
    left, right = operation.operands
    inner = factor(left, chain, depth + 1, failed)
    other = right
    if inner is None and operation.op.name == "mul":
        inner, other = factor(right, chain, depth + 1, failed), left
    if inner is None:
        return None
    weight = Weight(other, chain, inner.row, operation.op.name == "div")
    return replace(inner, weights=(*inner.weights, weight))


def multiplied(operation: Operation, chain: Chain, depth: int, failed: set[Value]) -> Factor | None:
    """Products with a diagonal matrix, or of each vector with its number."""
    contract, batch = operation.attrs["contract"], operation.attrs["batch"]
    for side in (0, 1):
        inner = factor(operation.operands[side], chain, depth + 1, failed)
        if inner is None:
            continue
        other = operation.operands[1 - side]
        rank = operation.operands[side].type.rank
        stack = tuple(range(rank - 2))
        if not contract[0] and batch[side] == (*stack, inner.column) and batch[1 - side] == (*stack, rank - 2):
            weight = Weight(other, chain, None)
            return replace(inner, row=rank - 1, column=rank - 2, weights=(*inner.weights, weight))
        if contract[side] == (inner.column,) and batch == (stack, stack) and is_diagonal(other):
            row, column = (rank - 2, rank - 1) if side == 0 else (rank - 1, rank - 2)
            weight = Weight(other, chain, None, diagonal=True)
            return replace(inner, row=row, column=column, weights=(*inner.weights, weight))
    return None


def real_of(builder: Builder, scalar: Value, known: dict[Value, Value | None], depth: int = 0) -> Value | None:
    """A complex scalar as the real one that it was made of to multiply complex numbers; None if there is none.

    ``known``: the answers so far, so that a scalar that is used many times is asked about once.
    """
    if scalar.type.dtype.kind != "c":
        return scalar
    if isinstance(scalar, Literal):
        return literal(scalar.value.real, ArrayType(real_dtype(scalar.type.dtype))) if scalar.value.imag == 0 else None
    if scalar not in known:
        known[scalar] = find_real(builder, scalar, known, depth)
    return known[scalar]


def find_real(builder: Builder, scalar: Value, known: dict[Value, Value | None], depth: int) -> Value | None:
    producer = scalar.producer
    if producer is None or depth > MOST_NESTED:
        return None
    if producer.op.name == "cast":
        return producer.operands[0] if producer.operands[0].type.dtype == real_dtype(scalar.type.dtype) else None
    if producer.op.name not in ("add", "sub", "mul", "div", "neg", "select"):
        return None
    operands = list(producer.operands[:1]) if producer.op.name == "select" else []
    for operand in producer.operands[len(operands) :]:
        real = real_of(builder, operand, known, depth + 1)
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
    known: dict[Value, Value | None] = {}
    for weight in weights:
        if weight.diagonal:
            found = read_diagonal(expression, weight.value, weight.chain)
        else:
            found = expression.read(weight.value, weight.chain, weight.row)
        found = real_of(expression.scalars, found, known) or found
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
