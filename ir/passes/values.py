"""Reading g(w) off a program: elementwise expressions of the values of a decomposition become regions of scalars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from srcgrad.ir.core import Builder, Literal, Operation, Region, Value, literal, zeros
from srcgrad.ir.opdef import REGISTRY, Elementwise
from srcgrad.ir.passes.matching import emit
from srcgrad.ir.types import BOOL, ArrayType, Size, real_dtype

PARTS: Final = {
    "eigh": ("eigh", ("values", "vectors")),
    "eigvalsh": ("eigh", ("values",)),
    "svd": ("svd", ("left", "values", "right")),
    "svdvals": ("svd", ("values",)),
}
"""For an op: the decomposition, and what its results are."""

MOST_OPERATIONS: Final = 64
MOST_NESTED: Final = 32
"""How large an expression may be, so that looking for one takes constant time."""

Step = tuple[Any, ...]
Chain = tuple[Step, ...]
"""How values are picked from all values of a matrix, the last step first."""


class NoMatch(Exception):
    """The left side of a rule is not there."""


@dataclass(frozen=True)
class Source:
    """A decomposition, by what it is of."""

    kind: str
    matrix: Value

    @property
    def size(self) -> Size:
        """How many values it has."""
        rows, columns = self.matrix.type.shape[-2:]
        return min(rows, columns) if isinstance(rows, int) and isinstance(columns, int) else columns


def origin(value: Value) -> tuple[Source, str] | None:
    """The decomposition that gives the value, and what of it the value is."""
    found = whole_origin(value)
    if found is None or (found[1] != "values" and value.type.shape[column_of(found[1], value)] != found[0].size):
        return None
    return found


def whole_origin(value: Value) -> tuple[Source, str] | None:
    """The same, also of vectors among which are those of the null space (``full_matrices=True``)."""
    value = plain(value)
    producer = value.producer
    if producer is None or producer.op.name not in PARTS:
        return None
    kind, names = PARTS[producer.op.name]
    part = names[next(k for k, result in enumerate(producer.results) if result is value)]
    return Source(kind, producer.operands[0]), part


def column_of(part: str, value: Value) -> int:
    """The axis of the vectors of a part of a decomposition."""
    return value.type.rank - (2 if part == "right" else 1)


def plain(value: Value) -> Value:
    """What a value is a copy of: movements that move nothing are looked through."""
    for _ in range(MOST_NESTED):
        producer = value.producer
        if producer is None or producer.op.name not in ("reshape", "transpose", "broadcast", "identity", "gather"):
            break
        if producer.op.name == "reshape":
            producer = first_of_same(producer)
        if producer.operands[0].type != value.type or not moves_nothing(producer):
            break
        value = producer.operands[0]
    return value


def first_of_same(reshape: Operation) -> Operation:
    """The first of reshapes of one another that begins with the shape that the last one gives."""
    found, last = reshape, reshape
    for _ in range(MOST_NESTED):
        inner = last.operands[0].producer
        if inner is None or inner.op.name != "reshape":
            break
        last = inner
        found = last if last.operands[0].type == reshape.results[0].type else found
    return found


def moves_nothing(operation: Operation) -> bool:
    """Whether a movement of elements to an array of the same shape is none."""
    if operation.op.name == "transpose":
        return bool(operation.attrs["perm"] == tuple(range(operation.results[0].type.rank)))
    if operation.op.name != "gather":
        return True
    index = operation.operands[1]
    if len(operation.operands) != 2 or not isinstance(index, Literal) or index.type.rank != 1:
        return False
    return bool((index.value == np.arange(index.type.static_shape[0])).all())


def step_of(operation: Operation, axis: int) -> Step | None:
    """The way in which an operation picks or orders elements along one axis only, none of them twice."""
    name, attrs, operands = operation.op.name, operation.attrs, operation.operands
    shape = operands[0].type.shape if operands else ()
    if name == "slice":
        bounds = list(zip(attrs["starts"], attrs["limits"], attrs["strides"], strict=True))
        others = [bound == (0, shape[k], 1) for k, bound in enumerate(bounds) if k != axis]
        return ("slice", *bounds[axis]) if all(others) else None
    if name == "reverse" and tuple(attrs["axes"]) == (axis,):
        return ("reverse",)
    if name == "gather" and attrs["axis"] == axis and len(operands) == 2 and operands[1].type.rank == 1:
        index = operands[1]
        return ("gather", index) if picks_once(index, shape[axis]) else None
    if name == "take_along_axis" and attrs["axis"] == axis:
        row = row_of(operands[1], axis)
        if row is not None and picks_once(row, shape[axis]):
            return ("gather" if row.type.rank == 1 else "take", row)
    return None


def row_of(index: Value, axis: int) -> Value | None:
    """Indices of columns that are repeated for each row, for one row; others are as they are."""
    producer = index.producer
    if axis == 0 or producer is None or producer.op.name != "broadcast":
        return index
    inner, dims = producer.operands[0], producer.attrs["dims"]
    if axis - 1 not in dims:
        return inner
    place = dims.index(axis - 1)
    if inner.type.shape[place] != 1:
        return index
    maker = inner.producer
    row = None if maker is None or maker.op.name != "reshape" else maker.operands[0]
    expected = (*inner.type.shape[:place], *inner.type.shape[place + 1 :])
    return row if row is not None and row.type.shape == expected else None


def picks_once(index: Value, size: Any) -> bool:
    """Whether no element is picked twice: distinct constants, or (a part of) what a sort or a selection gives."""
    for _ in range(MOST_NESTED):
        if isinstance(index, Literal):
            rows = np.broadcast_to(index.value, index.type.static_shape)
            if not rows.size:
                return True
            rows = np.sort(rows.reshape(-1, rows.shape[-1]) % size, axis=-1)
            return bool((np.diff(rows, axis=-1) > 0).all())
        producer = index.producer
        if producer is None:
            return False
        if producer.op.name in ("argsort", "argpartition", "order_positions"):
            return bool(producer.attrs["axis"] == index.type.rank - 1)
        if producer.op.name not in ("slice", "reverse", "identity"):
            return False
        index = producer.operands[0]
    return False


def undone(builder: Builder, value: Value, steps: Sequence[Step], size: int) -> Value:
    """Numbers for what the steps pick as numbers for all values of a matrix: zeros elsewhere."""
    sizes = [size]
    for step in reversed(steps):
        sizes.append(picked(step, sizes[-1]))
    sizes.pop()
    last = value.type.rank - 1
    for step in steps:
        whole = value.type.with_shape((*value.type.shape[:-1], sizes.pop()))
        if step[0] == "reverse":
            value = emit(builder, "reverse", value, axes=(last,))
        elif step[0] == "slice":
            shape = value.type.shape[:-1]
            starts, limits, strides = ((*ends, bound) for ends, bound in zip(full_bounds(shape), step[1:], strict=True))
            value = emit(builder, "slice_set", zeros(whole), value, starts=starts, limits=limits, strides=strides)
        elif step[0] == "gather":
            value = emit(builder, "scatter_set", zeros(whole), value, step[1], axis=last)
        else:
            value = emit(builder, "add_along_axis", value, step[1], axis=last, size=whole.shape[-1])
    return value


def full_bounds(shape: Sequence[Any]) -> tuple[tuple[Any, ...], ...]:
    return tuple(0 for _ in shape), tuple(shape), tuple(1 for _ in shape)


def picked(step: Step, size: int) -> int:
    """How many of ``size`` elements a step picks."""
    if step[0] == "slice":
        return len(range(*step[1:]))
    return size if step[0] == "reverse" else step[1].type.static_shape[-1]


def one_row(value: Literal, axis: int) -> Literal:
    """Constants that are the same along an axis, without it."""
    shape = value.type.shape
    return literal(value.value.take(0, axis), value.type.with_shape((*shape[:axis], *shape[axis + 1 :])))


# --- expressions of the values ----------------------------------------------------------------------------------------


@dataclass
class Expression:
    """A region of scalars in the making, read off arrays of numbers for the values, for some of them, or for rows."""

    builder: Builder
    source: Source | None = None
    chain: Chain | None = None
    scalars: Builder = field(default_factory=Builder)
    params: list[tuple[Value, Value, bool, Chain]] = field(default_factory=list)
    """For each parameter: the scalar, its argument, whether it is indexed, and the steps that led to the argument."""
    w: Value | None = None
    count: int = 0
    known: dict[Any, Value] = field(default_factory=dict)
    before: dict[tuple[Value, Any], Value | None] = field(default_factory=dict)
    """What arrays were in another shape: asked once for each, however often it is used."""
    chosen: set[Value] = field(default_factory=set)
    """What is read where something does not hold. Where it does, that may be held constant by rules (`flats.held`): a
    constant so is no number beside the values, of which equal ones would be told apart by its rounding."""
    uninvolved: set[Value] = field(default_factory=set)
    """What has no values of a decomposition in it, as far as it was asked."""

    def read(self, value: Value, chain: Chain = (), row: int | None = None, depth: int = 0) -> Value:
        """The scalar for an array of numbers; with an axis ``row``, for one that is the same along that axis.

        Raises:
            NoMatch: it is not the same along that axis, or the expression is too large.
        """
        if isinstance(value, Literal) and value.splat:
            return literal(value.value, ArrayType(value.type.dtype))
        value = plain(value)
        if isinstance(value, Literal) and row is not None and (value.value == value.value.take([0], row)).all():
            value, row = one_row(value, row), None
        key = (value, chain, row)
        if key not in self.known:
            self.known[key] = self.read_new(value, chain, row, depth)
        return self.known[key]

    def read_new(self, value: Value, chain: Chain, row: int | None, depth: int) -> Value:
        self.count += 1
        if self.count > MOST_OPERATIONS or depth > MOST_NESTED:
            raise NoMatch
        if row is None:
            found = origin(value)
            if found is not None and found[1] == "values" and self.source in (None, found[0]):
                return self.values(found[0], chain)
        operation = value.producer
        if operation is not None:
            name, shape = operation.op.name, value.type.shape
            if name == "select":
                self.chosen.add(operation.operands[2])
            constant = name == "stop_gradient" and operation.operands[0] not in self.chosen
            elementwise = isinstance(operation.op, Elementwise) and not constant
            if (elementwise or name == "select") and all(v.type.shape in ((), shape) for v in operation.operands):
                operands = [
                    self.read(v, chain, row, depth + 1) if v.type.shape == shape else self.uniform(v, shape)
                    for v in operation.operands
                ]
                return self.scalars.emit(operation.op, operands, operation.attrs)
            if name == "broadcast":
                return self.read_broadcast(operation, chain, row, depth)
            if row is None:
                step = step_of(operation, len(shape) - 1)
                if step is not None and self.involved(operation.operands[0], MOST_NESTED):
                    return self.read(operation.operands[0], (*chain, step), row, depth + 1)
        if row is not None:
            raise NoMatch
        return self.parameter(value, True, chain)

    def values(self, source: Source, chain: Chain) -> Value:
        if self.source is None:
            self.source = source
        if self.chain is None:
            self.chain = chain
        if self.chain != chain:
            raise NoMatch
        return self.value_param()

    def value_param(self) -> Value:
        """The region's first parameter, the value."""
        if self.w is None:
            assert self.source is not None
            dtype = real_dtype(self.source.matrix.type.dtype)
            self.w = Value(ArrayType(dtype), None, "w")
        return self.w

    def involved(self, value: Value, depth: int) -> bool:
        """Whether an expression has the values of a decomposition in it."""
        value = plain(value)
        found = origin(value)
        if found is not None:
            return found[1] == "values" and self.source in (None, found[0])
        operation = value.producer
        if operation is None or depth == 0 or value in self.uninvolved:
            return False
        read: Sequence[Value] = ()
        if isinstance(operation.op, Elementwise) or operation.op.name == "select":
            read = operation.operands
        elif value.type.rank and step_of(operation, value.type.rank - 1) is not None:
            read = operation.operands[:1]
        if any(self.involved(operand, depth - 1) for operand in read):
            return True
        self.uninvolved.add(value)
        return False

    def read_broadcast(self, operation: Operation, chain: Chain, row: int | None, depth: int) -> Value:
        operand, shape = operation.operands[0], operation.attrs["shape"]
        dims = list(operation.attrs["dims"])
        inner, sizes = operand, list(operand.type.shape)
        rank = len(shape)
        column = rank - 1 if row != rank - 1 else rank - 2
        for axis in (row, column):
            if axis in dims and sizes[dims.index(axis)] == 1 and (axis == row or shape[axis] != 1):
                place = dims.index(axis)
                del dims[place], sizes[place]
        if row in dims:
            raise NoMatch
        inner = self.reshaped(inner, tuple(sizes))
        if row is not None:
            dims = [dim - (dim > row) for dim in dims]
            shape = tuple(size for axis, size in enumerate(shape) if axis != row)
        if column - (row is not None and column > row) not in dims:
            return self.uniform(self.placed(inner, shape[:-1], dims), shape)
        if inner.type.shape == shape:
            return self.read(inner, chain, None, depth + 1)
        return self.parameter(self.placed(inner, shape, dims), True, chain)

    def reshaped(self, value: Value, shape: tuple[Any, ...]) -> Value:
        if value.type.shape == shape:
            return value
        if isinstance(value, Literal) and not value.splat:
            return literal(value.value.reshape(shape), value.type.with_shape(shape))
        found = self.before_reshape(value, shape, MOST_NESTED)
        return emit(self.builder, "reshape", value, shape=shape) if found is None else found

    def before_reshape(self, value: Value, shape: tuple[Any, ...], depth: int) -> Value | None:
        """What an array was in this shape: ``g(w)`` of ``g(w[None, :])``; None where no part of it was in it."""
        if (value, shape) not in self.before:
            self.before[value, shape] = self.find_before_reshape(value, shape, depth)
        return self.before[value, shape]

    def find_before_reshape(self, value: Value, shape: tuple[Any, ...], depth: int) -> Value | None:
        producer = value.producer
        if producer is None or depth == 0:
            return None
        if producer.op.name == "reshape":
            return producer.operands[0] if producer.operands[0].type.shape == shape else None
        elementwise = isinstance(producer.op, Elementwise) or producer.op.name == "select"
        if not elementwise or any(v.type.shape not in ((), value.type.shape) for v in producer.operands):
            return None
        parts = [self.before_reshape(v, shape, depth - 1) if v.type.shape else v for v in producer.operands]
        if all(part is None or part is v for part, v in zip(parts, producer.operands, strict=True)):
            return None
        operands = [
            self.of_shape(v, shape) if part is None else part for part, v in zip(parts, producer.operands, strict=True)
        ]
        return self.builder.emit(producer.op, operands, producer.attrs)

    def of_shape(self, value: Value, shape: tuple[Any, ...]) -> Value:
        """An array in another shape, one number for all elements as that."""
        if isinstance(value, Literal) and value.splat:
            return literal(value.value, value.type.with_shape(shape))
        producer = value.producer
        if producer is not None and producer.op.name == "broadcast" and not producer.operands[0].type.rank:
            return emit(self.builder, "broadcast", producer.operands[0], shape=shape, dims=())
        return emit(self.builder, "reshape", value, shape=shape)

    def placed(self, value: Value, shape: tuple[Any, ...], dims: Sequence[int]) -> Value:
        if value.type.shape == shape:
            return value
        return emit(self.builder, "broadcast", value, shape=shape, dims=tuple(dims))

    def uniform(self, value: Value, shape: Sequence[Any]) -> Value:
        """A parameter that is one number for all values of a matrix."""
        if isinstance(value, Literal) and value.splat:
            return literal(value.value, ArrayType(value.type.dtype))
        return self.parameter(value, False, ())

    def parameter(self, value: Value, indexed: bool, chain: Chain) -> Value:
        """A parameter; a complex one is two real ones, so that g is differentiated in real numbers."""
        if value.type.dtype.kind == "c":
            real, imaginary = (
                self.parameter(emit(self.builder, part, value), indexed, chain) for part in ("real", "imag")
            )
            return self.scalars.emit(REGISTRY["complex"], [real, imaginary])
        for scalar, argument, flag, steps in self.params:
            if argument == value and (flag, steps) == (indexed, chain):
                return scalar
        scalar = Value(ArrayType(value.type.dtype), None, value.name)
        self.params.append((scalar, value, indexed, chain))
        return scalar

    def finish(self, result: Value) -> tuple[Region, list[Value], tuple[bool, ...]]:
        """The region, the arguments of its parameters, and which of them are indexed."""
        assert self.source is not None
        chain = self.chain or ()
        size = self.size()
        for _, _, indexed, steps in self.params:
            if indexed and steps != chain[: len(steps)]:
                raise NoMatch
        params = [self.value_param()]
        arguments, flags = [], []
        for scalar, argument, indexed, steps in self.params:
            params.append(scalar)
            arguments.append(undone(self.builder, argument, chain[len(steps) :], size) if indexed else argument)
            flags.append(indexed)
        remaining = size
        for step in reversed(chain):
            remaining = picked(step, remaining)
        if remaining != size:
            mask = Value(ArrayType(BOOL), None, "picked")
            stack = self.source.matrix.type.shape[:-2]
            ones = literal(True, ArrayType(BOOL, (*stack, remaining)))
            params.append(mask)
            arguments.append(undone(self.builder, ones, chain, size))
            flags.append(True)
            result = self.scalars.emit(REGISTRY["select"], [mask, result, zeros(result.type)])
        return Region(params, self.scalars.operations, [result]), arguments, tuple(flags)

    def size(self) -> int:
        assert self.source is not None
        shape = self.source.matrix.type.static_shape[-2:]
        return min(shape)
