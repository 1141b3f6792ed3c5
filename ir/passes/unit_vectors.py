"""Products with unit vectors, which Jacobians are made of, are what the vectors pick.

A Jacobian is one tangent (or cotangent) for each unit vector, all of them the rows of ``equal(iota, iota)``. The first
product of a function is then one with the identity matrix, n times as much work as what it is. So are later ones, as
long as only elementwise operations lie between: their operand is diag(d), and the product is rows times d.

Those of an array are its places in one row, ``reshape(equal(iota, iota), (n, *shape))``: a product over some of its
axes has what these pick where the other axes are at the row's place, and zeros elsewhere.

Derivatives compare two `iota` (and JAX's ``eye``): their zeros are structural, so that infinite elements which a
vector does not pick count for nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from srcgrad.ir.core import Builder, Literal, Operation, Value, literal, zeros
from srcgrad.ir.opdef import Elementwise
from srcgrad.ir.passes.matching import emit, is_one, is_zero, made_by, operand_of
from srcgrad.ir.passes.rewrite import Rule
from srcgrad.ir.types import INT64

DEPTH: Final = 16
"""How far from a product its diagonal is looked for."""


def are_units(value: Value) -> bool:
    """Whether it is True where row and column are the same, of a square matrix."""
    compared = made_by(value, "equal")
    if compared is None or value.type.rank != 2 or value.type.shape[0] != value.type.shape[1]:
        return False
    counts = [made_by(operand, "iota") for operand in compared.operands]
    return {None if count is None else count.attrs["axis"] for count in counts} == {0, 1}


def array_of_units(value: Value) -> tuple[int, ...] | None:
    """The shape of the arrays whose places are all True once, in a stack of their number; None if there is no such."""
    spread = made_by(value, "reshape")
    shape = value.type.static_shape if spread is not None else ()
    units = None if spread is None else operand_of(value, "reshape")
    if units is None or len(shape) < 3 or not are_units(units) or shape[0] != units.type.shape[0]:
        return None
    return shape[1:]


class Diagonals:
    """The numbers on the diagonals of square matrices, as vectors; those found are known."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.known: dict[tuple[Value, bool], Value | None] = {}

    def alone(self, value: Value, depth: int = 0) -> Value | None:
        """Of a matrix whose other elements are structural zeros; None if they are not, or nothing is known."""
        return self.of(value, True, depth)

    def of(self, value: Value, alone: bool, depth: int) -> Value | None:
        if value.type.rank != 2 or value.type.shape[0] != value.type.shape[1] or depth > DEPTH:
            return None
        key = (value, alone)
        if key not in self.known:
            found = self.found_alone(value, depth + 1)
            self.known[key] = found if found is not None or alone else self.found(value, depth + 1)
        return self.known[key]

    def found_alone(self, value: Value, depth: int) -> Value | None:
        producer = value.producer
        if producer is None:
            return None
        name, operands = producer.op.name, producer.operands
        if name == "cast" and are_units(operands[0]):
            return literal(1, value.type.with_shape(value.type.shape[:1]))
        if name == "select" and are_units(operands[0]) and is_zero(operands[2]):
            return self.of(operands[1], False, depth)
        if name in ("cast", "neg", "conj", "transpose"):
            inner = self.alone(operands[0], depth)
            if inner is None or name == "transpose":
                return inner
            return self.builder.emit(producer.op, [inner], producer.attrs)
        if name == "mul" or (name == "dot_general" and any(operand.type.rank == 0 for operand in operands)):
            return self.product(value, operands, depth)
        return None

    def product(self, value: Value, operands: tuple[Value, ...], depth: int) -> Value | None:
        """Of elements; a zero that is structural is one whatever it is multiplied by."""
        for matrix, factor in (operands, operands[::-1]):
            inner = self.alone(matrix, depth)
            other = None if inner is None else self.of_operand(factor, value, depth)
            if inner is not None and other is not None and inner.type.dtype == other.type.dtype:
                return other if is_one(inner) else emit(self.builder, "mul", inner, other)
        return None

    def of_operand(self, operand: Value, matrix: Value, depth: int) -> Value | None:
        """The diagonal of a matrix, or of a number that stands for one."""
        if operand.type.rank:
            return self.of(operand, False, depth)
        return emit(self.builder, "broadcast", operand, shape=matrix.type.shape[:1], dims=())

    def found(self, value: Value, depth: int) -> Value | None:
        row = value.type.with_shape(value.type.shape[:1])
        if isinstance(value, Literal):
            return literal(value.value if value.splat else np.diagonal(value.value), row)
        producer = value.producer
        if producer is None:
            return None
        if producer.op.name == "broadcast":
            operand = producer.operands[0]
            if operand.type.rank == 1 and operand.type.shape == row.shape:
                return operand
            return emit(self.builder, "broadcast", operand, shape=row.shape, dims=()) if not operand.type.rank else None
        elementwise = isinstance(producer.op, Elementwise) or producer.op.name == "select"
        if not elementwise or producer.op.name == "stop_gradient":
            return None
        found = [self.of_operand(operand, value, depth) for operand in producer.operands]
        vectors = [each for each in found if each is not None]
        return self.builder.emit(producer.op, vectors, producer.attrs) if len(vectors) == len(found) else None


def picked(operation: Operation, builder: Builder) -> Value | None:
    """The product of diag(d) and an array, over one axis of each: the array times d, the axis in the matrix's place."""
    attrs, result = operation.attrs, operation.results[0].type
    contract = attrs["contract"]
    if attrs["batch"][0] or len(contract[0]) != 1:
        return None
    diagonals = Diagonals(builder)
    for side in (0, 1):
        matrix, array = operation.operands[side], operation.operands[1 - side]
        if array.type.dtype != result.dtype or not may_be_diagonal(matrix):
            continue
        numbers = diagonals.alone(matrix)
        if numbers is None or numbers.type.dtype != result.dtype:
            continue
        (axis,), shape = contract[1 - side], array.type.shape
        if not is_one(numbers):
            array = emit(builder, "mul", array, emit(builder, "broadcast", numbers, shape=shape, dims=(axis,)))
        others = [each for each in range(len(shape)) if each != axis]
        order = (axis, *others) if side == 0 else (*others, axis)
        return array if order == tuple(range(len(order))) else emit(builder, "transpose", array, perm=order)
    return None


def may_be_diagonal(value: Value) -> bool:
    """What leaves out, at little cost, most products of a program."""
    producer = value.producer
    return (
        value.type.rank == 2
        and producer is not None
        and producer.op.name in ("cast", "select", "neg", "conj", "transpose", "mul", "dot_general")
    )


def picked_of_arrays(operation: Operation, builder: Builder) -> Value | None:
    """The product of an array's unit vectors and another array, over axes of these arrays."""
    attrs, result = operation.attrs, operation.results[0].type
    if attrs["batch"][0]:
        return None
    for side in (0, 1):
        units, array = operation.operands[side], operation.operands[1 - side]
        inner = operand_of(units, "cast")
        shape = None if inner is None else array_of_units(inner)
        axes = attrs["contract"][side]
        if shape is None or array.type.dtype != result.dtype or not axes or 0 in axes:
            continue
        summed = dict(zip(attrs["contract"][1 - side], axes, strict=True))
        rows = row_by_row(builder, array, summed, shape, last=side == 1)
        others = [axis for axis in range(1, 1 + len(shape)) if axis not in axes]
        there = at_their_place(builder, shape, others)
        if there is None:
            return rows
        first = 0 if side == 0 else rows.type.rank - 1  # where the rows' number is
        own = range(first, first + there.type.rank)
        of_rows = (0, *range(own.stop, result.rank)) if side == 0 else range(rows.type.rank)
        there = emit(builder, "broadcast", there, shape=result.shape, dims=tuple(own))
        rows = emit(builder, "broadcast", rows, shape=result.shape, dims=tuple(of_rows))
        return emit(builder, "select", there, rows, zeros(result))
    return None


def row_by_row(builder: Builder, array: Value, summed: Mapping[int, int], shape: tuple[int, ...], last: bool) -> Value:
    """What each row's unit picks of an array, along axes ``summed``: the rows first, or last, then other axes."""
    free = [axis for axis in range(array.type.rank) if axis not in summed]
    sizes = tuple(array.type.static_shape[axis] for axis in free)
    start = len(free) if last else 0
    places = {axis: start + row_axis - 1 for axis, row_axis in summed.items()}
    places |= {axis: k if last else len(shape) + k for k, axis in enumerate(free)}
    order = sorted(places, key=places.__getitem__)
    if order != list(range(len(order))):
        array = emit(builder, "transpose", array, perm=tuple(order))
    full, count = (*sizes, *shape) if last else (*shape, *sizes), math.prod(shape)
    if full != array.type.shape:
        array = emit(builder, "broadcast", array, shape=full, dims=tuple(sorted(places.values())))
    return emit(builder, "reshape", array, shape=(*sizes, count) if last else (count, *sizes))


def at_their_place(builder: Builder, shape: tuple[int, ...], axes: Sequence[int]) -> Value | None:
    """By row, where these axes of the arrays are at the row's place; None of no axes."""
    there: Value | None = None
    full = (*shape, *(shape[axis - 1] for axis in axes))
    for position, axis in enumerate(axes):
        square = (shape[axis - 1],) * 2
        counts = [emit(builder, "iota", shape=square, axis=side, dtype=INT64) for side in (0, 1)]
        dims = (axis - 1, len(shape) + position)
        same = emit(builder, "broadcast", emit(builder, "equal", *counts), shape=full, dims=dims)
        there = same if there is None else emit(builder, "logical_and", there, same)
    shape = (math.prod(shape), *full[len(shape) :])
    return None if there is None else emit(builder, "reshape", there, shape=shape)


def units_hold(operation: Operation, builder: Builder) -> Value | None:
    """Each row of the identity has a True element, and each column; each array has one.

    What rows of arrays have is left as it is: `lanes.py` turns the tangents of a Jacobian with it.
    """
    units, axes = operation.operands[0], operation.attrs["axes"]
    shape = array_of_units(units)
    holds = len(axes) == 1 if are_units(units) else shape is not None and axes == tuple(range(1, 1 + len(shape)))
    return literal(True, operation.results[0].type) if holds else None


UNIT_RULES: Final = (
    Rule("dot_general(units, a) -> a", "dot_general", "fc", picked, (), None, "final"),
    Rule(
        "dot_general(units of arrays, a) -> select(place, a, 0)",
        "dot_general",
        "fc",
        picked_of_arrays,
        (),
        None,
        "final",
    ),
    Rule("reduce_or(units) -> True", "reduce_or", "b", units_hold, (), None, "final"),
)
