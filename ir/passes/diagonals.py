"""Reading diag(g(w)) off a program: matrices that are 0 beside their diagonal, and the numbers on it.

``np.diag(w)`` is one, and so are ``np.sqrt(np.diag(w))``, ``np.diag(w) + c * np.eye(n)``, ``np.eye(n) * w[:, None]``,
products of such matrices, and their multiples.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from srcgrad.ir.core import Builder, Literal, Operation, Value, literal, zeros
from srcgrad.ir.opdef import REGISTRY, Elementwise
from srcgrad.ir.passes.matching import emit, is_zero
from srcgrad.ir.passes.values import MOST_NESTED, MOST_OPERATIONS, Chain, Expression, NoMatch, full_bounds, plain
from srcgrad.ir.types import INT64, ArrayType

KEEPS_ZERO: Final = frozenset(
    {
        "abs",
        "add",
        "arcsin",
        "arcsinh",
        "arctan",
        "arctanh",
        "cast",
        "cbrt",
        "conj",
        "expm1",
        "identity",
        "imag",
        "kinked_sqrt",
        "log1p",
        "maximum",
        "minimum",
        "neg",
        "real",
        "select",
        "sign",
        "sin",
        "sinh",
        "sqrt",
        "square",
        "sub",
        "tan",
        "tanh",
    }
)
"""Ops that make 0 of nothing but zeros (`select` of two zeros)."""


def is_diagonal(value: Value, known: dict[Value, bool] | None = None, depth: int = 0) -> bool:
    """Whether a square matrix, or each of a stack, is 0 beside its diagonal; ``known``: the answers so far."""
    value, known = plain(value), {} if known is None else known
    if value.type.rank < 2 or value.type.shape[-2] != value.type.shape[-1] or depth > MOST_NESTED:
        return False
    if value not in known:
        known[value] = find_diagonal(value, known, depth)
    return known[value]


def find_diagonal(value: Value, known: dict[Value, bool], depth: int) -> bool:
    if isinstance(value, Literal):
        size = value.type.static_shape[-1]
        return bool((np.where(np.eye(size, dtype=bool), 0, value.value) == 0).all())
    producer = value.producer
    if producer is None:
        return False
    name, operands = producer.op.name, producer.operands
    if name in ("broadcast", "reshape"):
        return is_identity(value) or written_on(producer) is not None
    if name == "dot_general":
        return is_product(producer) and all(is_diagonal(operand, known, depth + 1) for operand in operands)
    if name in ("div", "integer_pow", "pow"):
        exponent = producer.attrs["y"] if name == "integer_pow" else 1
        if name == "pow":
            exponent = operands[1].value if isinstance(operands[1], Literal) and operands[1].splat else 0
        return bool(exponent > 0) and is_diagonal(operands[0], known, depth + 1)
    if name == "transpose":
        return is_swap(producer) and is_diagonal(operands[0], known, depth + 1)
    if name == "mul":
        return any(is_diagonal(operand, known, depth + 1) for operand in operands)
    if name == "slice_set":
        return isinstance(operands[0], Literal) and is_set(producer) and is_diagonal(operands[0], known, depth + 1)
    if name in KEEPS_ZERO:
        zeros = operands[1:] if name == "select" else operands
        return all(is_diagonal(operand, known, depth + 1) for operand in zeros)
    return written_on(producer) is not None


def is_set(operation: Operation) -> bool:
    """Whether one number is written to the diagonal of a matrix: ``d[2, 2] = x``."""
    starts = operation.attrs["starts"]
    return operation.operands[1].type.shape == (1, 1) and starts[0] == starts[1]


def written_on(operation: Operation) -> Value | None:
    """The numbers that are written on the diagonal of a square matrix of zeros: of what ``np.diag`` makes."""
    value = operation.results[0]
    return on_diagonal(value) if value.type.rank == 2 and value.type.shape[0] == value.type.shape[1] else None


def on_diagonal(value: Value) -> Value | None:
    """The numbers that are written on the diagonal of zeros, by index or (``fill_diagonal``) in the flat array."""
    operation, step = value.producer, 1
    if operation is not None and operation.op.name == "reshape" and value.type.rank == 2:
        operation, step = operation.operands[0].producer, value.type.static_shape[1] + 1
    if operation is None or operation.op.name != "scatter_set" or operation.attrs["axis"] != 0:
        return None
    base, diagonal, *places = operation.operands
    count = min(value.type.static_shape) if value.type.rank == 2 else 0
    fits = base.type.rank == len(places) == (1 if step > 1 else 2) and diagonal.type.shape == (count,)
    if not fits or not is_zero(base) or any(place != places[0] for place in places):
        return None
    rows = places[0]
    if not isinstance(rows, Literal) or rows.type.shape != (count,):
        return None
    return diagonal if (rows.value == step * np.arange(count)).all() else None


def before_zeros(builder: Builder, value: Value, axis: int, depth: int = 0) -> Value | None:
    """A matrix without the zeros that an axis of it ends with; None if none are known."""
    value = plain(value)
    if value.type.rank != 2 or depth > MOST_NESTED:
        return None
    shape = value.type.static_shape
    if isinstance(value, Literal):
        there = np.flatnonzero((np.broadcast_to(value.value, shape) != 0).any(axis=1 - axis))
        count = int(there[-1]) + 1 if len(there) else 0
        return first_places(builder, value, axis, count) if 0 < count < shape[axis] else None
    written = on_diagonal(value)
    if written is not None:
        (count,) = written.type.static_shape
        if count == shape[axis]:
            return None
        index = literal(np.arange(count), ArrayType(INT64, (count,)))
        base = zeros(value.type.with_shape((count, shape[1]) if axis == 0 else (shape[0], count)))
        return emit(builder, "scatter_set", base, written, index, index, axis=0)
    producer = value.producer
    return None if producer is None else part_before_zeros(builder, producer, axis, depth + 1)


def part_before_zeros(builder: Builder, producer: Operation, axis: int, depth: int) -> Value | None:
    name, attrs, operands = producer.op.name, producer.attrs, producer.operands
    value = producer.results[0]
    if name in ("cast", "conj", "neg", "transpose"):
        found = before_zeros(builder, operands[0], attrs["perm"][axis] if name == "transpose" else axis, depth)
        return None if found is None else builder.emit(producer.op, [found], attrs)
    if name == "concatenate" and attrs["axis"] == axis and is_zero(operands[-1]):
        kept = list(operands[:-1])
        return kept[0] if len(kept) == 1 else emit(builder, "concatenate", *kept, axis=axis)
    if name == "slice_set" and is_zero(operands[0]) and attrs["starts"] == (0, 0) and attrs["strides"] == (1, 1):
        count = attrs["limits"][axis]
        if count == value.type.shape[axis]:
            return None
        shape = tuple(count if k == axis else size for k, size in enumerate(value.type.static_shape))
        return (
            operands[1]
            if operands[1].type.shape == shape
            else emit(builder, "slice_set", zeros(value.type.with_shape(shape)), operands[1], **attrs)
        )
    if name == "mul":
        for operand, other in (operands, operands[::-1]):
            found = before_zeros(builder, operand, axis, depth)
            if found is not None:
                rest = first_places(builder, other, axis, found.type.static_shape[axis]) if other.type.rank else other
                return emit(builder, "mul", found, rest)
    if name == "dot_general" and is_product(producer):
        found = before_zeros(builder, operands[axis], axis, depth)
        if found is not None:
            return builder.emit(producer.op, [found, operands[1]] if axis == 0 else [operands[0], found], attrs)
    return None


def first_places(builder: Builder, value: Value, axis: int, count: int) -> Value:
    """The first ``count`` places of an axis."""
    shape = tuple(count if k == axis else size for k, size in enumerate(value.type.static_shape))
    if isinstance(value, Literal):
        return literal(
            value.value if value.splat else value.value.take(range(count), axis), value.type.with_shape(shape)
        )
    producer = value.producer
    if producer is not None and producer.op.name == "broadcast" and axis not in producer.attrs["dims"]:
        return emit(builder, "broadcast", producer.operands[0], shape=shape, dims=producer.attrs["dims"])
    starts, _, strides = full_bounds(shape)
    return emit(builder, "slice", value, starts=starts, limits=shape, strides=strides)


def is_swap(operation: Operation) -> bool:
    """Whether a transpose exchanges the last two axes."""
    perm = operation.attrs["perm"]
    return bool(perm == (*range(len(perm) - 2), len(perm) - 1, len(perm) - 2))


def is_product(operation: Operation) -> bool:
    """Whether it is the product of two matrices, or of those of two stacks."""
    rank = operation.operands[0].type.rank
    stack = tuple(range(rank - 2))
    contract, batch = operation.attrs["contract"], operation.attrs["batch"]
    return bool(contract == ((rank - 1,), (rank - 2,)) and batch == (stack, stack))


def is_identity(value: Value) -> bool:
    """Whether the value is the constant identity matrix, or a stack of them."""
    producer, shape = value.producer, value.type.shape
    if producer is not None and producer.op.name in ("broadcast", "reshape"):
        value = producer.operands[0]
        dims = producer.attrs["dims"] if producer.op.name == "broadcast" else range(len(shape))
        if tuple(dims[-2:]) != (len(shape) - 2, len(shape) - 1) or value.type.shape[-2:] != shape[-2:]:
            return False
    if not isinstance(value, Literal) or value.splat or value.type.rank < 2:
        return False
    rows, columns = value.type.static_shape[-2:]
    return rows == columns and bool((value.value == np.eye(rows)).all())


def is_constant(value: Value, axis: int, known: dict[Any, bool], depth: int = 0) -> bool:
    """Whether an array is the same along an axis because it was repeated along it; ``known``: the answers so far."""
    if isinstance(value, Literal):
        return value.splat or bool((value.value == value.value.take([0], axis)).all())
    if (value, axis) not in known:
        known[value, axis] = find_constant(value, axis, known, depth)
    return known[value, axis]


def find_constant(value: Value, axis: int, known: dict[Any, bool], depth: int) -> bool:
    producer = value.producer
    if producer is None or depth > MOST_NESTED:
        return False
    if producer.op.name == "broadcast":
        dims = producer.attrs["dims"]
        return axis not in dims or producer.operands[0].type.shape[dims.index(axis)] == 1
    return isinstance(producer.op, Elementwise) and all(
        not operand.type.shape
        or (operand.type.shape == value.type.shape and is_constant(operand, axis, known, depth + 1))
        for operand in producer.operands
    )


def read_diagonal(expression: Expression, value: Value, chain: Chain, depth: int = 0) -> Value:
    """The scalar for the numbers on the diagonal of a matrix, which need not be 0 beside it.

    Raises:
        NoMatch: they are not known as numbers for the values, or the expression is too large.
    """
    value = plain(value)
    if isinstance(value, Literal):
        found = (
            value
            if value.splat
            else literal(np.diagonal(value.value, axis1=-2, axis2=-1), value.type.with_shape(value.type.shape[:-1]))
        )
        return expression.read(found, chain)
    key = (value, chain, "diagonal")
    if key not in expression.known:
        expression.known[key] = read_new_diagonal(expression, value, chain, depth)
    return expression.known[key]


def read_new_diagonal(expression: Expression, value: Value, chain: Chain, depth: int) -> Value:
    expression.count += 1
    producer, shape = value.producer, value.type.shape
    if producer is None or expression.count > MOST_OPERATIONS or depth > MOST_NESTED:
        raise NoMatch
    name, operands, scalars = producer.op.name, producer.operands, expression.scalars
    if is_identity(value):
        return literal(1, ArrayType(value.type.dtype))
    written = written_on(producer)
    if written is not None:
        return expression.read(written, chain)
    if name == "transpose" and is_swap(producer):
        return read_diagonal(expression, operands[0], chain, depth + 1)
    if name == "slice_set" and isinstance(operands[0], Literal) and is_set(producer):
        row = literal(
            operands[0].value if operands[0].splat else np.diagonal(operands[0].value), value.type.with_shape(shape[:1])
        )
        (start, _), number = producer.attrs["starts"], emit(expression.builder, "reshape", operands[1], shape=(1,))
        bounds = {"starts": (start,), "limits": (start + 1,), "strides": (1,)}
        return expression.read(emit(expression.builder, "slice_set", row, number, **bounds), chain)
    repeated = [axis for axis in (len(shape) - 2, len(shape) - 1) if is_constant(value, axis, {})]
    if repeated:
        return expression.read(value, chain, repeated[0])
    if name == "dot_general":
        if not (is_product(producer) and all(map(is_diagonal, operands))):
            raise NoMatch
        return scalars.emit(REGISTRY["mul"], [read_diagonal(expression, v, chain, depth + 1) for v in operands])
    elementwise = isinstance(producer.op, Elementwise) and name != "stop_gradient"
    if not (elementwise or name == "select") or any(v.type.shape not in ((), shape) for v in operands):
        raise NoMatch
    found = [
        read_diagonal(expression, v, chain, depth + 1) if v.type.shape == shape else expression.uniform(v, shape)
        for v in operands
    ]
    return scalars.emit(producer.op, found, producer.attrs)
