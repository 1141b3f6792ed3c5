"""Reading coefficients V^H x off a program, and the products of two that are summed in x^H V g(w) V^H y."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from srcgrad.ir.core import Builder, Operation, Value, literal
from srcgrad.ir.passes.diagonals import is_constant, is_diagonal
from srcgrad.ir.passes.matching import emit
from srcgrad.ir.passes.values import MOST_OPERATIONS, Chain, NoMatch, plain, step_of
from srcgrad.ir.passes.vectors import Factor, Weight, factor, looked_at_once, wrapped


@dataclass(frozen=True)
class Coefficients:
    """V^H x, weighted: ``vectors`` has V^H and the weights, ``axis`` is the axis of ``x`` that is summed over.

    Of the array that it is, ``column`` is the axis of the vectors and ``free`` that of x, if x has another one.
    Instead of x its conjugate may be meant; with ``repeated`` the sizes of a stack, one x is that of all matrices.
    """

    vectors: Factor
    x: Value
    axis: int
    column: int
    free: int | None
    conjugated: bool = False
    repeated: tuple[Any, ...] = ()

    @property
    def place(self) -> int:
        """The axis of what `read` gives that is summed over."""
        return self.axis + len(self.repeated)

    def read(self, builder: Builder) -> Value:
        """The x of each matrix of a stack."""
        x = self.x
        if self.conjugated and x.type.dtype.kind == "c":
            x = emit(builder, "conj", x)
        if self.repeated:
            count, shape = len(self.repeated), (*self.repeated, *x.type.shape)
            x = emit(builder, "broadcast", x, shape=shape, dims=tuple(range(count, len(shape))))
        return x

    def weighted(self, weight: Weight) -> Coefficients:
        return replace(self, vectors=replace(self.vectors, weights=(*self.vectors.weights, weight)))

    def turned(self) -> Coefficients | None:
        """The transpose, of coefficients of several x."""
        return None if self.free is None else replace(self, column=self.free, free=self.column)

    def conjugate(self, value: Value) -> Coefficients:
        """``value``: what it is the conjugate as."""
        vectors = wrapped(self.vectors, value, "conj", self.vectors.chain)
        assert vectors is not None
        return replace(self, vectors=vectors, conjugated=not self.conjugated)


@looked_at_once
def coefficients(value: Value, chain: Chain, depth: int, failed: set[Value]) -> Coefficients | None:
    """The value as coefficients."""
    operation, rank = value.producer, value.type.rank
    if operation is None:
        return None
    name, operands = operation.op.name, operation.operands
    if name == "dot_general":
        return expanded_in(operation, chain, depth) or times_diagonal(operation, chain, depth, failed)
    if name == "cast" and value.type.dtype.kind == "c" and operands[0].type.dtype.kind == "f":
        return coefficients(operands[0], chain, depth + 1, failed)
    if name in ("conj", "neg"):
        inner = coefficients(operands[0], chain, depth + 1, failed)
        if inner is None:
            return None
        return (
            inner.conjugate(value) if name == "conj" else inner.weighted(Weight(literal(-1, value.type), chain, None))
        )
    if name in ("mul", "div"):
        inner, other = coefficients(operands[0], chain, depth + 1, failed), operands[1]
        if inner is None and name == "mul":
            inner, other = coefficients(operands[1], chain, depth + 1, failed), operands[0]
        return inner and inner.weighted(Weight(other, chain, inner.free, name == "div"))
    if name == "transpose" and operation.attrs["perm"] == (*range(rank - 2), rank - 1, rank - 2):
        inner = coefficients(operands[0], chain, depth + 1, failed)
        return inner and inner.turned()
    for axis in range(max(rank - 2, 0), rank):
        step = step_of(operation, axis)
        if step is not None:
            inner = coefficients(operands[0], (*chain, step), depth + 1, failed)
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
        matrices = operation.operands[side].type
        count = matrices.rank - 2
        stack = tuple(range(count))
        shared = count > 0 and side == 0 and batch == ((), ())
        free = other.type.rank - (0 if shared else count) - 1
        if contract[side] == (found.row,) and (shared or batch == (stack, stack)) and free in (0, 1):
            column = count if side == 0 else count + free
            rest = (count + 1 if side == 0 else count) if free else None
            repeated = matrices.shape[:count] if shared else ()
            return Coefficients(found, other, contract[1 - side][0], column, rest, False, repeated)
    return None


def times_diagonal(operation: Operation, chain: Chain, depth: int, failed: set[Value]) -> Coefficients | None:
    """The product of coefficients with a diagonal matrix: each vector's are multiplied with its number."""
    contract, batch = operation.attrs["contract"], operation.attrs["batch"]
    for side in (0, 1):
        value, other = operation.operands[side], operation.operands[1 - side]
        stack = tuple(range(other.type.rank - 2))
        if batch != (stack, stack) or len(contract[side]) != 1 or not is_diagonal(other):
            continue
        inner = coefficients(value, chain, depth + 1, failed)
        if inner is None or contract[side] != (inner.column,):
            continue
        first, last = len(stack), len(stack) + 1
        column, free = (first, last) if side == 1 or inner.free is None else (last, first)
        inner = inner.weighted(Weight(other, chain, None, diagonal=True))
        return replace(inner, column=column, free=None if inner.free is None else free)
    return None


# --- products of two --------------------------------------------------------------------------------------------------


@dataclass
class Form:
    """A product of two coefficients and of numbers, in the making."""

    coefficients: list[Coefficients] = field(default_factory=list)
    numbers: list[tuple[Value, bool, bool]] = field(default_factory=list)
    """What else is in it: whether it divides, and whether its conjugate is meant."""
    real: bool = False
    """Whether the real part of the product is meant; the other numbers are real then."""
    others: list[tuple[Value, bool]] = field(default_factory=list)
    """Numbers that are not for the vectors, but for each of several x; whether they divide."""

    @property
    def pair(self) -> tuple[Coefficients, Coefficients]:
        left, right = self.coefficients
        return left, right

    def read(self, value: Value, divides: bool, conjugated: bool, left: int = MOST_OPERATIONS) -> int:
        """Take a value into the product; how many of the operations that are ``left`` to look at are left then."""
        pending = [(value, divides, conjugated)]
        while pending:
            left -= 1
            if left < 0:
                raise NoMatch
            value, divides, conjugated = pending.pop()
            value = plain(value)
            parts = [] if divides else modulus_squared(value)
            operation = value.producer
            name = "" if operation is None else operation.op.name
            if parts:
                left = self.read_real([(part, False, k == 1) for k, part in enumerate(parts)], value, left)
            elif operation is None:
                self.numbers.append((value, divides, conjugated))
            elif squared_of(value) is not None and not divides:
                pending += [(operation.operands[0], False, conjugated)] * 2
            elif name in ("mul", "div") or is_elementwise(operation):
                pending += [
                    (operand, divides != (name == "div" and k == 1), conjugated)
                    for k, operand in enumerate(operation.operands)
                ]
            elif name == "conj":
                pending.append((operation.operands[0], divides, not conjugated))
            elif name == "real" and operation.operands[0].type.dtype.kind == "c" and not divides:
                left = self.read_real([(operation.operands[0], False, False)], value, left)
            else:
                self.read_one(value, divides, conjugated)
        return left

    def read_one(self, value: Value, divides: bool, conjugated: bool) -> None:
        found = None if divides else coefficients(value)
        if found is None:
            self.numbers.append((value, divides, conjugated))
        else:
            self.coefficients.append(found.conjugate(value) if conjugated else found)

    def read_real(self, parts: Sequence[tuple[Value, bool, bool]], whole: Value, left: int) -> int:
        """Take the real part of a product into this one, if both coefficients are in it; else it is a number."""
        inner = Form()
        for part in parts:
            left = inner.read(*part, left)
        if len(inner.coefficients) == 2 and not self.coefficients:
            self.coefficients, self.real = inner.coefficients, True
            self.numbers += inner.numbers
        else:
            self.numbers.append((whole, False, False))
        return left


def modulus_squared(value: Value) -> list[Value]:
    """The complex z, twice, of |z|² = (Re z)² + (Im z)²; nothing where it is something else."""
    operation = value.producer
    if operation is None or operation.op.name != "add":
        return []
    parts = [squared_of(plain(operand)) for operand in operation.operands]
    if parts[0] is None or parts[1] is None:
        return []
    made = [part.producer for part in parts if part is not None]
    if [None if each is None else each.op.name for each in made] not in (["real", "imag"], ["imag", "real"]):
        return []
    z, same = (each.operands[0] for each in made if each is not None)
    return [z, z] if z is same and z.type.dtype.kind == "c" else []


def squared_of(value: Value) -> Value | None:
    """What a value is the square of."""
    operation = value.producer
    if operation is None:
        return None
    name, operands = operation.op.name, operation.operands
    same = name == "mul" and operands[0] is operands[1]
    return operands[0] if same or name == "square" or (name == "integer_pow" and operation.attrs["y"] == 2) else None


def is_elementwise(operation: Operation) -> bool:
    """Whether a ``dot_general`` multiplies number by number, as ``einsum`` does before it sums."""
    if operation.op.name != "dot_general" or operation.attrs["contract"] != ((), ()):
        return False
    axes = tuple(range(operation.results[0].type.rank))
    return bool(operation.attrs["batch"] == (axes, axes))


def bilinear_form(values: Sequence[Value]) -> Form:
    """The product of the values; the numbers for the vectors are weights of its first coefficients.

    Raises:
        NoMatch: it is not one of two coefficients of one shape, or is too large.
    """
    form = Form()
    left = MOST_OPERATIONS
    for value in values:
        left = form.read(value, False, False, left)
    if len(form.coefficients) != 2:
        raise NoMatch
    first, second = form.coefficients
    if (first.column, first.free) != (second.column, second.free):
        raise NoMatch
    for value, divides, conjugated in form.numbers:
        if first.free is not None and value.type.rank > first.column and value.type.shape[first.column]:
            known: dict[object, bool] = {}
            if is_constant(value, first.column, known) and not is_constant(value, first.free, known):
                if conjugated and value.type.dtype.kind == "c":
                    raise NoMatch
                form.others.append((value, divides))
                continue
        first = first.weighted(Weight(value, (), first.free, divides, conjugated))
    form.coefficients[0] = first
    return form
