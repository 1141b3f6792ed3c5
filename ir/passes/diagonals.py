"""Reading diag(g(w)) off a program: matrices that are 0 beside their diagonal, and the numbers on it.

``np.diag(w)`` is one, and so are ``np.sqrt(np.diag(w))``, ``np.diag(w) + c * np.eye(n)``, ``np.eye(n) * w[:, None]``,
products of such matrices, and their multiples.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from srcgrad.ir.core import Literal, Operation, Value, literal
from srcgrad.ir.opdef import REGISTRY, Elementwise
from srcgrad.ir.passes.values import MOST_NESTED, MOST_OPERATIONS, Chain, Expression, NoMatch, plain
from srcgrad.ir.types import ArrayType

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
        return is_identity(value)
    if name == "dot_general":
        return is_product(producer) and all(is_diagonal(operand, known, depth + 1) for operand in operands)
    if name in ("div", "integer_pow", "pow"):
        exponent = producer.attrs["y"] if name == "integer_pow" else 1
        if name == "pow":
            exponent = operands[1].value if isinstance(operands[1], Literal) and operands[1].splat else 0
        return bool(exponent > 0) and is_diagonal(operands[0], known, depth + 1)
    if name == "mul":
        return any(is_diagonal(operand, known, depth + 1) for operand in operands)
    if name in KEEPS_ZERO:
        zeros = operands[1:] if name == "select" else operands
        return all(is_diagonal(operand, known, depth + 1) for operand in zeros)
    return written_on(producer) is not None


def written_on(operation: Operation) -> Value | None:
    """The numbers that are written on the diagonal of zeros: of what ``np.diag`` makes."""
    if operation.op.name != "scatter_set" or len(operation.operands) != 4:
        return None
    base, diagonal, rows, columns = operation.operands
    size = base.type.static_shape[-1]
    square = base.type.shape == (size, size) and operation.attrs["axis"] == 0
    zero = isinstance(base, Literal) and base.splat and base.value == 0
    if not (square and zero and rows == columns and isinstance(rows, Literal)):
        return None
    return diagonal if rows.type.shape == (size,) and (rows.value == np.arange(size)).all() else None


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
