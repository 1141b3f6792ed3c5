"""Equations of data movement, casts, reductions and norms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from srcgrad.ir.core import Builder, Literal, Operation, Value, literal, zeros
from srcgrad.ir.opdef import Term
from srcgrad.ir.passes.matching import apply, emit, is_filled, is_one, made_by, operand_of, rule
from srcgrad.ir.types import ArrayType, DType, Shape

MATRIX = (4, 8)
"""The shape of the examples."""
LIGHT: Final = frozenset({"add", "mul", "neg", "square", "sub"})
"""What may be computed twice, in two shapes."""


def splat_of(operation: Operation) -> Value | None:
    """The operand's splat, if it is one, in the type of the result: moving equal elements changes nothing."""
    value = operation.operands[0]
    if isinstance(value, Literal) and value.splat:
        return Literal(value.value, operation.results[0].type)
    return None


# --- broadcast, reshape, transpose, reverse, slice, concatenate -------------------------------------------------------


@rule(
    "broadcast(splat) -> splat",
    lambda x: apply("broadcast", x.like(2), shape=(3, *MATRIX), dims=(1, 2)),
    shape=MATRIX,
    early=True,  # numbers that limits are told by
)
@rule("reshape(splat) -> splat", lambda x: apply("reshape", x.like(2), shape=(8, 4)), shape=MATRIX)
@rule("transpose(splat) -> splat", lambda x: apply("transpose", x.like(2), perm=(1, 0)), shape=MATRIX)
@rule("reverse(splat) -> splat", lambda x: apply("reverse", x.like(2), axes=(1,)), shape=MATRIX)
@rule("slice(splat) -> splat", lambda x: part(x.like(2), (1, 0), (3, 8), (1, 2)), shape=MATRIX)
def moved_splat(operation: Operation, builder: Builder) -> Value | None:
    return splat_of(operation)


@rule("broadcast(x, same shape) -> x", lambda x: apply("broadcast", x, shape=MATRIX, dims=(0, 1)), shape=MATRIX)
@rule("reshape(x, same shape) -> x", lambda x: apply("reshape", x, shape=MATRIX), shape=MATRIX)
@rule("slice(x, same shape) -> x", lambda x: part(x, (0, 0), MATRIX, (1, 1)), shape=MATRIX)
def same_shape(operation: Operation, builder: Builder) -> Value | None:
    """These ops place elements in order, so the shape alone says that nothing moves."""
    value = operation.operands[0]
    return value if value.type.shape == operation.results[0].type.shape else None


@rule(
    "broadcast(broadcast(x)) -> broadcast(x)",
    lambda x: apply("broadcast", apply("broadcast", x, shape=(1, 8), dims=(1,)), shape=(2, 3, 8), dims=(1, 2)),
    shape=(8,),
)
def broadcast_twice(operation: Operation, builder: Builder) -> Value | None:
    inner = made_by(operation.operands[0], "broadcast")
    if inner is None:
        return None
    outer_dims = operation.attrs["dims"]
    dims = tuple(outer_dims[dim] for dim in inner.attrs["dims"])
    return emit(builder, "broadcast", inner.operands[0], shape=operation.attrs["shape"], dims=dims)


@rule(
    "reshape(reshape(x)) -> reshape(x)",
    lambda x: apply("reshape", apply("reshape", x, shape=(32,)), shape=(8, 4)),
    shape=MATRIX,
)
def reshape_twice(operation: Operation, builder: Builder) -> Value | None:
    inner = operand_of(operation.operands[0], "reshape")
    return None if inner is None else emit(builder, "reshape", inner, shape=operation.attrs["shape"])


@rule(
    "reshape(2*reshape(x)) -> 2*x",
    lambda x: apply("reshape", 2.0 * apply("reshape", x, shape=(32,)), shape=MATRIX),
    lambda x: apply("reshape", -apply("reshape", x, shape=(32,)) * apply("reshape", x, shape=(32,)), shape=MATRIX),
    kinds="fc",
    shape=MATRIX,
)
def reshape_back(operation: Operation, builder: Builder) -> Value | None:
    """What is computed in another shape between two reshapes is computed in theirs, if it is as cheap as a product.

    In loops a reshape that joins axes of what is computed is an array of its own.
    """
    value, shape = operation.operands[0], operation.results[0].type.shape
    if value.type.shape == shape or not made_in(value, shape):
        return None
    return reshaped_back(value, shape, builder)


def made_in(value: Value, shape: Shape, depth: int = 4) -> bool:
    """Whether the value is made of splats and of reshaped values of this shape, by few operations of little work."""
    producer = value.producer
    if producer is None or not depth:
        return isinstance(value, Literal) and value.splat
    if producer.op.name == "reshape":
        return producer.operands[0].type.shape == shape
    return producer.op.name in LIGHT and all(made_in(operand, shape, depth - 1) for operand in producer.operands)


def reshaped_back(value: Value, shape: Shape, builder: Builder) -> Value:
    """What is `made_in` this shape, in it."""
    producer = value.producer
    if isinstance(value, Literal):
        return Literal(value.value, ArrayType(value.type.dtype, shape))
    assert producer is not None
    if producer.op.name == "reshape":
        return producer.operands[0]
    given = [reshaped_back(operand, shape, builder) for operand in producer.operands]
    return builder.emit(producer.op, given, producer.attrs)


@rule("transpose(x, same order) -> x", lambda x: apply("transpose", x, perm=(0, 1)), shape=MATRIX)
def same_order(operation: Operation, builder: Builder) -> Value | None:
    perm = operation.attrs["perm"]
    return operation.operands[0] if tuple(perm) == tuple(range(len(perm))) else None


@rule(
    "transpose(transpose(x)) -> transpose(x)",
    lambda x: apply("transpose", apply("transpose", x, perm=(1, 2, 0)), perm=(1, 0, 2)),
    shape=(2, 4, 4),
)
def transpose_twice(operation: Operation, builder: Builder) -> Value | None:
    inner = made_by(operation.operands[0], "transpose")
    if inner is None:
        return None
    perm = tuple(inner.attrs["perm"][axis] for axis in operation.attrs["perm"])
    return emit(builder, "transpose", inner.operands[0], perm=perm)


@rule(
    "reverse(reverse(x)) -> reverse(x)",
    lambda x: apply("reverse", apply("reverse", x, axes=(0, 1)), axes=(1,)),
    lambda x: apply("reverse", apply("reverse", x, axes=(1,)), axes=(1,)),
    shape=MATRIX,
)
def reverse_twice(operation: Operation, builder: Builder) -> Value | None:
    inner = made_by(operation.operands[0], "reverse")
    if inner is None:
        return None
    axes = tuple(sorted(set(inner.attrs["axes"]) ^ set(operation.attrs["axes"])))
    return emit(builder, "reverse", inner.operands[0], axes=axes) if axes else inner.operands[0]


def part(x: Term, starts: Shape, limits: Shape, strides: Shape) -> Term:
    """A slice, in an example."""
    return apply("slice", x, starts=starts, limits=limits, strides=strides)


@rule(
    "slice(slice(x)) -> slice(x)",
    lambda x: part(part(x, (1, 1), (4, 8), (1, 2)), (0, 1), (2, 4), (1, 2)),
    lambda x: part(part(x, (1, 1), (4, 8), (1, 3)), (3, 1), (3, 2), (1, 1)),
    shape=MATRIX,
)
def slice_twice(operation: Operation, builder: Builder) -> Value | None:
    inner = made_by(operation.operands[0], "slice")
    if inner is None:
        return None
    starts, limits, strides = [], [], []
    shape = operation.results[0].type.static_shape
    for axis, size in enumerate(shape):
        stride = inner.attrs["strides"][axis]
        start = inner.attrs["starts"][axis] + (operation.attrs["starts"][axis] * stride if size else 0)
        stride *= operation.attrs["strides"][axis]
        starts.append(start)
        limits.append(start + (size - 1) * stride + 1 if size else start)
        strides.append(stride)
    bounds = {"starts": tuple(starts), "limits": tuple(limits), "strides": tuple(strides)}
    return emit(builder, "slice", inner.operands[0], **bounds)


@rule("concatenate(x) -> x", lambda x: apply("concatenate", x, axis=0))
def concatenate_one(operation: Operation, builder: Builder) -> Value | None:
    return operation.operands[0] if len(operation.operands) == 1 else None


@rule("concatenate(splat, splat) -> splat", lambda x: apply("concatenate", x.like(1), x.like(1), axis=0))
def concatenate_splats(operation: Operation, builder: Builder) -> Value | None:
    values = set()
    for value in operation.operands:
        if not isinstance(value, Literal) or not value.splat:
            return None
        values.add(value.key[2])
    return splat_of(operation) if len(values) == 1 else None


# --- casts ------------------------------------------------------------------------------------------------------------


@rule("cast(x, same dtype) -> x", lambda x: apply("cast", x, dtype=x.dtype))
def cast_to_same(operation: Operation, builder: Builder) -> Value | None:
    value = operation.operands[0]
    return value if value.type.dtype == operation.attrs["dtype"] else None


def lossless(source: DType, target: DType) -> bool:
    """Whether every number of the one floating dtype is one of the other."""
    return np.can_cast(source, target, "safe")


def widest(x: Term) -> DType:
    return np.dtype(np.complex128 if x.dtype.kind == "c" else np.float64)


def narrow(x: Term) -> DType:
    return np.dtype(np.complex64 if x.dtype.kind == "c" else np.float16)


@rule(
    "cast(cast(x, wide), narrow) -> cast(x, narrow)",
    lambda x: apply("cast", apply("cast", x, dtype=widest(x)), dtype=narrow(x)),
    lambda x: apply("cast", apply("cast", x, dtype=widest(x)), dtype=x.dtype),
    kinds="fc",
)
def cast_twice(operation: Operation, builder: Builder) -> Value | None:
    """Through a dtype that holds all numbers of the first, and of the last too, so that cotangents round once."""
    inner = made_by(operation.operands[0], "cast")
    if inner is None:
        return None
    value = inner.operands[0]
    source, middle, target = value.type.dtype, inner.attrs["dtype"], operation.attrs["dtype"]
    if source.kind in "fc" and target.kind in "fc" and lossless(source, middle) and lossless(target, middle):
        return emit(builder, "cast", value, dtype=target)
    return None


# --- reductions -------------------------------------------------------------------------------------------------------


@rule("reduce_sum(0) -> 0", lambda x: apply("reduce_sum", x.like(0), axes=(0,)), kinds="iufc", shape=MATRIX)
def sum_of_zeros(operation: Operation, builder: Builder) -> Value | None:
    return zeros(operation.results[0].type) if is_filled(operation.operands[0], 0) else None


@rule("reduce_or(p, no axes) -> p", lambda p: apply("reduce_or", p, axes=()), shape=MATRIX)
@rule("reduce_and(p, no axes) -> p", lambda p: apply("reduce_and", p, axes=()), shape=MATRIX)
def reduce_nothing(operation: Operation, builder: Builder) -> Value | None:
    return None if operation.attrs["axes"] else operation.operands[0]


def not_empty(shape: Shape, axes: tuple[int, ...]) -> bool:
    """Whether the axes have an element for certain."""
    return all(isinstance(shape[axis], int) and shape[axis] != 0 for axis in axes)


@rule("reduce_or(splat) -> splat", lambda p: apply("reduce_or", p.like(True), axes=(0,)), shape=MATRIX)
@rule("reduce_and(splat) -> splat", lambda p: apply("reduce_and", p.like(False), axes=(0,)), shape=MATRIX)
def reduce_equal(operation: Operation, builder: Builder) -> Value | None:
    shape, axes = operation.operands[0].type.shape, operation.attrs["axes"]
    return splat_of(operation) if not_empty(shape, axes) else None


@rule(
    "reduce_or(broadcast(p)) -> broadcast(p)",
    lambda p: apply("reduce_or", apply("broadcast", p, shape=(3, 4, 5, 8), dims=(1, 3)), axes=(0,)),
    lambda p: apply("reduce_or", apply("broadcast", p, shape=(3, 4, 5, 8), dims=(1, 3)), axes=(0, 2)),
    shape=MATRIX,
)
@rule(
    "reduce_and(broadcast(p)) -> broadcast(p)",
    lambda p: apply("reduce_and", apply("broadcast", p, shape=(3, 4, 5, 8), dims=(1, 3)), axes=(0,)),
    shape=MATRIX,
)
def reduce_repeated(operation: Operation, builder: Builder) -> Value | None:
    """Where only axes that the broadcast added are reduced, each element meets copies of itself."""
    inner = made_by(operation.operands[0], "broadcast")
    if inner is None:
        return None
    shape, dims, axes = inner.attrs["shape"], inner.attrs["dims"], operation.attrs["axes"]
    if not not_empty(shape, axes) or any(axis in dims for axis in axes):
        return None
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    moved = tuple(kept.index(dim) for dim in dims)
    return emit(builder, "broadcast", inner.operands[0], shape=operation.results[0].type.shape, dims=moved)


# --- products ---------------------------------------------------------------------------------------------------------


def turned(x: Term) -> Term:
    """A transposed matrix, in an example."""
    return apply("transpose", x, perm=(1, 0))


@rule(
    "dot_general(transpose(x), y) -> dot_general(x, y)",
    lambda x, y: apply("dot_general", turned(x), y, contract=((1,), (0,)), batch=((), ())),
    lambda x, y: apply("dot_general", x, turned(y), contract=((1,), (0,)), batch=((), ())),
    lambda x, y: apply("dot_general", turned(x), turned(y), contract=((0,), (0,)), batch=((1,), (1,))),
    kinds="iufc",
    shape=MATRIX,
    final=True,
)
def product_of_turned(operation: Operation, builder: Builder) -> Value | None:
    """The axes are those of the operands as they lie, where those that stay keep their order."""
    operands, changed = list(operation.operands), False
    attrs = {name: list(operation.attrs[name]) for name in ("contract", "batch")}
    for side, value in enumerate(operands):
        inner = made_by(value, "transpose")
        if inner is None:
            continue
        perm = inner.attrs["perm"]
        used = {axis for axes in attrs.values() for axis in axes[side]}
        kept = [perm[axis] for axis in range(len(perm)) if axis not in used]
        if kept == sorted(kept):
            changed, operands[side] = True, inner.operands[0]
            for axes in attrs.values():
                axes[side] = tuple(perm[axis] for axis in axes[side])
    if not changed:
        return None
    return emit(builder, "dot_general", *operands, **{name: tuple(axes) for name, axes in attrs.items()})


def outer(x: Term, y: Term) -> Term:
    """All products of two numbers of theirs, in an example."""
    return apply("dot_general", x, y, contract=((), ()), batch=((), ()))


@rule(
    "dot_general(x, 1) -> broadcast(x)",
    lambda x: outer(x, x.like(1)),
    lambda x: outer(x.like(1), x),
    kinds="iuf",
    shape=(3,),
    final=True,
)
def product_with_ones(operation: Operation, builder: Builder) -> Value | None:
    """Where nothing is summed."""
    if operation.attrs["contract"] != ((), ()) or operation.attrs["batch"] != ((), ()):
        return None
    shape = operation.results[0].type.shape
    for side, (value, other) in enumerate((operation.operands, operation.operands[::-1])):
        if is_one(other) and value.type.rank:
            first = other.type.rank if side else 0
            return emit(builder, "broadcast", value, shape=shape, dims=tuple(range(first, first + value.type.rank)))
    return None


@rule(
    "dot_general(x, c) -> mul(x, c)",
    lambda x: outer(x, Term(x.builder, literal(2, ArrayType(x.dtype)))),
    lambda x: outer(apply("reshape", x, shape=()), apply("reshape", x, shape=())),
    kinds="iufc",
    shape=(1,),
    final=True,
)
def product_with_a_number(operation: Operation, builder: Builder) -> Value | None:
    """Where one of them is a number that the program says, or both are numbers."""
    type, wide = operation.results[0].type, list[Value]()
    if operation.attrs["contract"] != ((), ()) or operation.attrs["batch"] != ((), ()):
        return None
    for value in operation.operands:
        if value.type.rank == 0 and isinstance(value, Literal):
            wide.append(Literal(value.value, type))
        elif value.type == type:
            wide.append(value)
        else:
            return None
    return emit(builder, "mul", *wide)


# --- norms ------------------------------------------------------------------------------------------------------------


NORMS: Final = frozenset({"reduce_norm", "abs", "kinked_sqrt", "hypot"})


MOVING: Final = frozenset({"reshape", "broadcast", "transpose", "reverse", "slice", "gather"})
"""Ops whose result has elements of the first operand, whatever these are."""
BRANCHES: Final = frozenset({"concatenate", "mul", "div"})
"""Ops of which one operand or another may hold norms."""
JOINED: Final = 4
"""How many of these in each other a norm is looked for in."""


def squared_norm(value: Value, builder: Builder) -> Value | None:
    """The square of a Euclidean norm, an absolute value, a hypotenuse or a root as a sum of squares, which is smooth
    at 0; what is squared may have been moved, joined with others, and scaled by numbers, by which the parts are scaled.
    """
    return squared(value, [], builder) if has_norm(value) else None


def has_norm(value: Value, depth: int = JOINED) -> bool:
    """Whether elements of the value are norms, each times or over what does not matter."""
    while (producer := value.producer) is not None and producer.op.name not in NORMS:
        scale = scaled_by(producer)
        if scale is None and producer.op.name in BRANCHES:
            operands = producer.operands[:1] if producer.op.name == "div" else producer.operands
            return depth > 0 and any(has_norm(operand, depth - 1) for operand in operands)
        if producer.op.name not in MOVING and scale is None:
            return False
        value = producer.operands[0] if scale is None else scale[0]
    return producer is not None


def squared(value: Value, scales: Sequence[tuple[str, float]], builder: Builder, depth: int = JOINED) -> Value:
    """The square of a value that is scaled by the numbers, in this order; norms in it are squared as sums."""
    made = value.producer
    if made is None or not has_norm(value, depth):
        factor = scaled(value, scales, builder)
        return emit(builder, "mul", factor, factor)
    moves: list[Operation] = []
    while made.op.name not in NORMS:
        scale = scaled_by(made)
        if scale is not None:
            scales = [scale[1:], *scales]
        elif made.op.name in BRANCHES:
            break
        else:
            moves.append(made)
        made = (made.operands[0] if scale is None else scale[0]).producer
        assert made is not None, "there is a norm"
    if made.op.name == "concatenate":
        parts = [squared(operand, scales, builder, depth - 1) for operand in made.operands]
        total = builder.emit(made.op, parts, made.attrs)
    elif made.op.name in BRANCHES:
        total = squared_product(made, scales, builder, depth - 1)
    else:
        total = sum_of_squares(made, scales, builder)
    for move in reversed(moves):
        total = emit(builder, move.op.name, total, *move.operands[1:], **move.attrs)
    return total


def squared_product(made: Operation, scales: Sequence[tuple[str, float]], builder: Builder, depth: int) -> Value:
    """The square of a norm times or over a value: where the norm is 0, its square times or over that of the value.

    Elsewhere the square of the product, as the square of one of them alone might overflow.
    """
    left, right = made.operands
    if made.op.name == "mul" and not has_norm(left, depth):
        left, right = right, left
    length, other, square = (
        Term(builder, left),
        Term(builder, right),
        Term(builder, squared(left, scales, builder, depth)),
    )
    at = length == 0.0
    beside = apply("select", at, 1.0, length)
    smooth, plain = (
        (square * other * other, beside * other) if made.op.name == "mul" else (square / other / other, beside / other)
    )
    factor = Term(builder, scaled(plain.value, scales, builder))
    return apply("select", at, smooth, factor * factor).value


def scaled(value: Value, scales: Sequence[tuple[str, float]], builder: Builder) -> Value:
    found = Term(builder, value)
    for name, number in scales:
        found = found * number if name == "mul" else found / number
    return found.value


def scaled_by(operation: Operation) -> tuple[Value, str, float] | None:
    """What an operation multiplies or divides by one number, and how: not 0 or infinity, which make nan of parts."""
    if operation.op.name == "neg" and operation.operands[0].type.dtype.kind == "f":
        return operation.operands[0], "mul", -1.0
    if operation.op.name not in ("mul", "div"):
        return None
    left, right = operation.operands
    if operation.op.name == "mul" and isinstance(left, Literal):
        left, right = right, left
    if not isinstance(right, Literal) or not right.splat or right.type.dtype.kind != "f":
        return None
    number = float(right.value)
    return (left, operation.op.name, number) if number and np.isfinite(number) else None


def sum_of_squares(norm: Operation, scales: Sequence[tuple[str, float]], builder: Builder) -> Value:
    def part(x: Value) -> Value:
        return scaled(x, scales, builder)

    x = norm.operands[0]
    if norm.op.name == "kinked_sqrt":
        return part(part(x))
    if norm.op.name == "hypot":
        a, b = (Term(builder, part(operand)) for operand in norm.operands)
        infinite = apply("logical_or", apply("is_inf", a), apply("is_inf", b))  # whatever the other one is
        return apply("select", infinite, float("inf"), a * a + b * b).value
    if x.type.dtype.kind == "c":
        real, imag = part(emit(builder, "real", x)), part(emit(builder, "imag", x))
        square = emit(builder, "add", emit(builder, "mul", real, real), emit(builder, "mul", imag, imag))
    else:
        found = part(x)
        square = emit(builder, "mul", found, found)
    return emit(builder, "reduce_sum", square, **norm.attrs) if norm.op.name == "reduce_norm" else square


def norm(x: Term) -> Term:
    """A norm, in an example."""
    return apply("reduce_norm", x, axes=(1,))


@rule(
    "mul(reduce_norm(x), reduce_norm(x)) -> reduce_sum(mul(x, x))",
    lambda x: norm(x) * norm(x),
    kinds="f",
    shape=MATRIX,
    limit=True,
)
def norm_times_norm(operation: Operation, builder: Builder) -> Value | None:
    left, right = operation.operands
    return squared_norm(left, builder) if left is right else None


@rule(
    "integer_pow(reduce_norm(x), 2) -> reduce_sum(mul(x, x))",
    lambda x: apply("integer_pow", norm(x), y=2),
    lambda x: apply("integer_pow", apply("reshape", norm(x), shape=(4, 1)), y=2),
    lambda x: apply("integer_pow", apply("reshape", 0.5 * norm(x), shape=(4, 1)) / 3.0, y=2),
    lambda x: apply("integer_pow", apply("hypot", x, 2.0 * x) / 3.0, y=2),
    lambda x: apply("integer_pow", part(norm(x), (1,), (4,), (2,)), y=2),
    lambda x: apply("integer_pow", apply("transpose", apply("reverse", size(x), axes=(1,)), perm=(1, 0)), y=2),
    lambda x: apply("integer_pow", apply("concatenate", x, 3.0 * size(x), axis=0), y=2),
    kinds="f",
    shape=MATRIX,
    limit=True,
)
def norm_squared(operation: Operation, builder: Builder) -> Value | None:
    return squared_norm(operation.operands[0], builder) if operation.attrs["y"] == 2 else None


@rule(
    "pow(reduce_norm(x), 2) -> reduce_sum(mul(x, x))",
    lambda x: apply("pow", norm(x), 2.0),
    kinds="f",
    shape=MATRIX,
    limit=True,
)
def norm_to_the_second(operation: Operation, builder: Builder) -> Value | None:
    norm_value, exponent = operation.operands
    return squared_norm(norm_value, builder) if is_filled(exponent, 2.0) else None


@rule(
    "square(reduce_norm(x)) -> reduce_sum(mul(x, x))",
    lambda x: apply("square", norm(x)),
    kinds="f",
    shape=MATRIX,
    limit=True,
)
def square_of_norm(operation: Operation, builder: Builder) -> Value | None:
    return squared_norm(operation.operands[0], builder)


def size(x: Term) -> Term:
    """An absolute value, in an example."""
    return apply("abs", x)


@rule("mul(abs(x), abs(x)) -> mul(x, x)", lambda x: size(x) * size(x), kinds="f", limit=True)
def abs_times_abs(operation: Operation, builder: Builder) -> Value | None:
    return norm_times_norm(operation, builder)


@rule("integer_pow(abs(x), 2) -> mul(x, x)", lambda x: apply("integer_pow", size(x), y=2), kinds="f", limit=True)
def abs_squared(operation: Operation, builder: Builder) -> Value | None:
    return norm_squared(operation, builder)


@rule("pow(abs(x), 2) -> mul(x, x)", lambda x: apply("pow", size(x), 2.0), kinds="f", limit=True)
def abs_to_the_second(operation: Operation, builder: Builder) -> Value | None:
    return norm_to_the_second(operation, builder)


@rule("square(abs(x)) -> mul(x, x)", lambda x: apply("square", size(x)), kinds="f", limit=True)
def square_of_abs(operation: Operation, builder: Builder) -> Value | None:
    return squared_norm(operation.operands[0], builder)
