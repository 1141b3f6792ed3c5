"""Functions and sums of what has been repeated: they are computed of each number once."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from srcgrad.ir.core import Builder, Literal, Operation, Value, zeros
from srcgrad.ir.opdef import Term
from srcgrad.ir.passes.matching import apply, emit, made_by, rule
from srcgrad.ir.passes.movement import LIGHT
from srcgrad.ir.types import ArrayType, Shape

UNARY: Final = (
    "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "cbrt", "cos", "cosh", "digamma", "erf", "erfc",
    "erfcx", "exp", "exp2", "expit", "expm1", "gammaln", "log", "log10", "log1p", "log2", "reciprocal", "sech", "sin",
    "sinh", "sqrt", "tan", "tanh",
)  # fmt: skip
BINARY: Final = ("arctan2", "div", "hypot", "logaddexp", "pow")
"""What takes longer than to read a number, or to write one."""
REAL: Final = frozenset({"arctan2", "cbrt", "digamma", "erfcx", "expit", "gammaln", "hypot", "logaddexp"})
"""What is not of complex numbers."""
MOVES: Final = frozenset({"broadcast", "reshape", "transpose"})
"""What neither leaves out a number nor computes one."""
QUICK: Final = LIGHT | {"abs", "cast", "complex", "conj", "imag", "maximum", "minimum", "real"}
DEPTH: Final = 4
"""How many operations of little work are looked through."""


class Moved(NamedTuple):
    """A value that others are made of by moves alone, and these, the last one first."""

    value: Value
    moves: tuple[Operation, ...]

    def key(self) -> tuple[Shape, tuple[object, ...]]:
        """Of what has been moved in the same way from the same shape it is the same."""
        return self.value.type.shape, tuple((move.op, tuple(move.attrs.items())) for move in self.moves)


def repeated(value: Value) -> Moved | None:
    """The least value that moves make this one of, if they repeat its numbers."""
    moves: list[Operation] = []
    found, source = None, value
    while source.producer is not None and source.producer.op.name in MOVES:
        moves.append(source.producer)
        source = source.producer.operands[0]
        if moves[-1].op.name == "broadcast" and 2 * source.type.size <= value.type.size:
            found = Moved(source, tuple(moves))
    return found


def made_of(value: Value, depth: int, found: dict[Value, Moved]) -> bool:
    """Whether this is made, by few operations of little work, of splats and of what is repeated in one way."""
    if isinstance(value, Literal):
        return value.splat
    if value in found:
        return True
    moved = repeated(value)
    if moved is not None:
        found[value] = moved
        return next(iter(found.values())).key() == moved.key()
    producer = value.producer
    return (
        depth > 0
        and producer is not None
        and producer.op.name in QUICK
        and all(made_of(operand, depth - 1, found) for operand in producer.operands)
    )


def before(value: Value, shape: Shape, found: dict[Value, Moved], builder: Builder) -> Value:
    """What is `made_of` repeated values, of what they repeat."""
    if value in found:
        return found[value].value
    if isinstance(value, Literal):
        return Literal(value.value, ArrayType(value.type.dtype, shape))
    assert value.producer is not None
    given = [before(operand, shape, found, builder) for operand in value.producer.operands]
    return builder.emit(value.producer.op, given, value.producer.attrs)


def once(operation: Operation, builder: Builder) -> Value | None:
    """An operation on what is repeated in one way, computed before that."""
    found: dict[Value, Moved] = {}
    if not all(made_of(operand, DEPTH, found) for operand in operation.operands) or not found:
        return None
    shape, moves = next(iter(found.values()))[0].type.shape, next(iter(found.values())).moves
    given = [before(operand, shape, found, builder) for operand in operation.operands]
    result = builder.emit(operation.op, given, operation.attrs)
    for move in reversed(moves):
        result = builder.emit(move.op, [result], move.attrs)
    return result


@rule(
    "reduce_sum(broadcast(x)) -> n*reduce_sum(x)",
    lambda x: apply("reduce_sum", apply("broadcast", x, shape=(3, 4, 5, 8), dims=(1, 3)), axes=(0, 2)),
    lambda x: apply("reduce_sum", apply("broadcast", x, shape=(3, 4, 5, 8), dims=(1, 3)), axes=(3,)),
    lambda x: apply("reduce_sum", apply("broadcast", x, shape=(4, 8, 2), dims=(0, 1)), axes=(0, 1, 2)),
    lambda x: apply("reduce_sum", apply("broadcast", x, shape=(4, 8, 2), dims=(0, 1)), axes=(1,)),
    kinds="iuf",
    shape=(4, 8),
    final=True,
)
def sum_of_repeated(operation: Operation, builder: Builder) -> Value | None:
    """Where axes are summed that a broadcast added, as many times each element: rounded once, and so at least as near.

    Other axes are summed before the rest is repeated. The number of times is one of the dtype; a sum is never -0.0.
    """
    inner = made_by(operation.operands[0], "broadcast")
    if inner is None or 2 * inner.operands[0].type.size > inner.results[0].type.size:
        return None
    x, dtype = inner.operands[0], inner.operands[0].type.dtype
    shape, dims, axes = inner.attrs["shape"], inner.attrs["dims"], operation.attrs["axes"]
    summed, result = tuple(k for k, dim in enumerate(dims) if dim in axes), operation.results[0].type
    if summed and all(axis in dims and x.type.shape[dims.index(axis)] == shape[axis] for axis in axes):
        kept = [axis for axis in range(len(shape)) if axis not in axes]
        moved = tuple(kept.index(dim) for dim in dims if dim in kept)
        return emit(builder, "broadcast", emit(builder, "reduce_sum", x, axes=summed), shape=result.shape, dims=moved)
    left = tuple(size for k, size in enumerate(x.type.shape) if k not in summed)
    if left != result.shape or not x.type.size or not inner.results[0].type.size:
        return None
    times = inner.results[0].type.size // x.type.size
    with np.errstate(over="ignore"):
        number = np.asarray(times).astype(dtype)
    if float(number) != times:
        return None
    total = emit(builder, "reduce_sum", x, axes=summed) if summed else x
    product = emit(builder, "mul", total, Literal(number, result))
    return product if summed or dtype.kind != "f" else emit(builder, "add", product, zeros(result))


def row(x: Term) -> Term:
    """An example of what is repeated: a row of three, as each of eight rows."""
    return apply("broadcast", apply("slice", x, starts=(0,), limits=(3,), strides=(1,)), shape=(8, 3), dims=(1,))


def flat(x: Term) -> Term:
    """Another one, in another shape."""
    return apply("reshape", row(x), shape=(24,))


def of_repeated(name: str) -> None:
    """The rule of an op."""
    kinds = "f" if name in REAL else "fc"
    if name in UNARY:
        title = f"{name}(broadcast(x)) -> broadcast({name}(x))"
        examples = lambda x: apply(name, row(x)), lambda x: apply(name, 2.0 * flat(x) - flat(x) * flat(x))
    else:
        title = f"{name}(broadcast(x), broadcast(y)) -> broadcast({name}(x, y))"
        examples = lambda x: apply(name, row(x), row(x) + 2.0), lambda x: apply(name, flat(x).like(2.0), flat(x))
    rule(title, *examples, kinds=kinds, shape=(4,), final=True)(once)


for _name in (*UNARY, *BINARY):
    of_repeated(_name)
