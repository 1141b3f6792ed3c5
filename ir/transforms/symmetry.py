"""Whether matrices are Hermitian by the way in which they are computed, whatever the numbers are.

A matrix and its adjoint are both named by their inputs, with the order of axes pushed down to these: of ``B X B^T``
with a Hermitian X both are the same product. Values with the same name are equal; of values with other names nothing is
known.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Final, NamedTuple

import numpy as np

from srcgrad.ir.core import Literal, Operation, Value
from srcgrad.ir.opdef import Elementwise
from srcgrad.ir.ops.dot import sides
from srcgrad.ir.types import ArrayType, TapeType

Axes = tuple[int, ...]
Rule = Callable[["Symmetry", Operation, "View"], "Name | None"]

DEPTH: Final = 60
"""How far from a matrix its inputs are looked for."""
PARTS: Final = 16
"""The most terms of a sum, and factors of a product, that are put in order."""
LARGEST: Final = 1 << 16
"""The most elements of a literal that is looked at."""
EVEN: Final = frozenset({"square", "abs"})
ANALYTIC: Final = frozenset({"add", "sub", "mul", "div", "neg", "square", "cast", "identity", "exp", "sqrt"})
"""Elementwise ops that take conjugates to conjugates."""


class View(NamedTuple):
    """A value with its axes in another order (that of ``np.transpose``), and conjugated or not."""

    value: Value
    axes: Axes
    conjugated: bool
    depth: int

    def of(self, value: Value, axes: Axes | None = None) -> View:
        """What stands for an operand in the view of the result."""
        axes = (self.axes if value.type.rank else ()) if axes is None else axes
        return View(value, axes, self.conjugated and value.type.dtype.kind == "c", self.depth + 1)


class Name(NamedTuple):
    """The number that all equal values have, and the sign with which the value is that of the number."""

    negative: bool
    number: int


class Symmetry:
    """``given``: values that are Hermitian; ``meant``: what the parameters stand for that are residuals."""

    def __init__(self, given: set[Value], meant: Mapping[Value, Value]) -> None:
        self.given = given
        self.meant = meant
        self.numbers: dict[Hashable, int] = {}
        self.parts: dict[int, tuple[Name, ...]] = {}
        self.known: dict[tuple[Value, Axes, bool], Name] = {}

    def holds(self, value: Value) -> bool:
        """Whether each of a stack of matrices is Hermitian; symmetric, if its elements are real."""
        if not are_matrices(value.type):
            return False
        axes = tuple(range(value.type.rank))
        adjoint = View(value, swapped(axes), value.type.dtype.kind == "c", 0)
        return self.name(View(value, axes, False, 0)) == self.name(adjoint)

    def name(self, view: View) -> Name:
        key = (view.value, view.axes, view.conjugated)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self.found(view)
        return found

    def found(self, view: View) -> Name:
        value = view.value
        if isinstance(value, Literal):
            return self.plain("literal", *of_literal(value, view))
        if value in self.given:  # its adjoint is itself
            other = (swapped(view.axes), not view.conjugated and value.type.dtype.kind == "c")
            return self.plain("given", value, *min((view.axes, view.conjugated), other))
        if value in self.meant:
            return self.name(view._replace(value=self.meant[value]))
        operation = value.producer
        if operation is not None and operation.op.name == "barrier":
            return self.name(view.of(operation.operands[operation.results.index(value)]))
        if operation is not None and len(operation.results) == 1 and not operation.regions and view.depth < DEPTH:
            name = RULES.get(operation.op.name, elementwise)(self, operation, view)
            if name is not None:
                return name
        return self.plain("value", value, view.axes, view.conjugated)

    def plain(self, *key: Hashable) -> Name:
        return Name(False, self.numbers.setdefault(key, len(self.numbers)))

    def sum(self, terms: Iterable[Name]) -> Name:
        """One order for the terms, and one sign for a sum and its negative."""
        parts = self.flat("sum", terms)
        opposite = tuple(sorted(Name(not part.negative, part.number) for part in parts))
        negative = opposite < parts
        number = self.plain("sum", min(parts, opposite)).number
        self.parts[number] = min(parts, opposite)
        return Name(negative, number)

    def product(self, factors: Iterable[Name]) -> Name:
        """One order for the factors, whose signs are the product's."""
        factors = list(factors)
        negative = sum(factor.negative for factor in factors) % 2 == 1
        parts = self.flat("product", [Name(False, factor.number) for factor in factors])
        number = self.plain("product", parts).number
        self.parts[number] = parts
        return Name(negative, number)

    def flat(self, kind: str, names: Iterable[Name]) -> tuple[Name, ...]:
        """The names in order; of what are sums in a sum, or products in a product, their parts, if there are few."""
        found: list[Name] = []
        for name in names:
            inner = self.parts.get(name.number)
            if inner is None or (kind, inner) not in self.numbers or len(inner) > PARTS:
                found.append(name)
            else:
                found.extend(Name(part.negative != name.negative, part.number) for part in inner)
        return tuple(sorted(found))


class Parameters(set[Value]):
    """The matrices that a region is given, for `Symmetry`."""

    def __contains__(self, value: object) -> bool:
        return type(value) is Value and value.producer is None and are_matrices(value.type)


def are_matrices(type: ArrayType) -> bool:
    """Whether what has this type may be a stack of Hermitian matrices; a tape is none."""
    return not isinstance(type, TapeType) and type.rank > 1 and type.shape[-1] == type.shape[-2]


def swapped(axes: Axes) -> Axes:
    """The order of axes in which the operand's last two ones are exchanged before it is applied."""
    last = len(axes) - 1
    places = {last: last - 1, last - 1: last}
    return tuple(places.get(axis, axis) for axis in axes)


def swapped_last(axes: Axes) -> Axes:
    """The order with its last two axes exchanged after it is applied."""
    return (*axes[:-2], axes[-1], axes[-2])


def of_literal(value: Literal, view: View) -> tuple[Hashable, ...]:
    shape = tuple(value.type.shape[axis] for axis in view.axes)
    if value.value.size > LARGEST:
        return (value, view.axes, view.conjugated)
    numbers = value.value if value.splat else np.transpose(value.value, view.axes)
    numbers = np.conjugate(numbers) if view.conjugated else numbers
    return (value.type.dtype, shape, value.splat, np.ascontiguousarray(numbers).tobytes())


# --- one rule per op; None where the op does not go with the order of axes ------------------------------------------


def elementwise(known: Symmetry, operation: Operation, view: View) -> Name | None:
    op = operation.op
    if not isinstance(op, Elementwise) or (view.conjugated and op.name not in ANALYTIC):
        return None
    if any(operand.type.shape not in ((), view.value.type.shape) for operand in operation.operands):
        return None
    names = [known.name(view.of(operand)) for operand in operation.operands]
    attrs = tuple(sorted(operation.attrs.items(), key=lambda item: item[0]))
    if op.name in EVEN:
        names = [Name(False, name.number) for name in names]
    return known.plain(op.name, attrs, *(sorted(names) if op.commutes else names))


def sign_and_name(known: Symmetry, operation: Operation, view: View) -> Name:
    """Sums, products and quotients, for which signs and the order do not matter."""
    op, names = operation.op.name, [known.name(view.of(operand)) for operand in operation.operands]
    if op == "neg":
        return Name(not names[0].negative, names[0].number)
    if op == "sub":
        return known.sum([names[0], Name(not names[1].negative, names[1].number)])
    if op == "div":
        negative = names[0].negative != names[1].negative
        return Name(negative, known.plain("div", names[0].number, names[1].number).number)
    return known.sum(names) if op == "add" else known.product(names)


def conjugate(known: Symmetry, operation: Operation, view: View) -> Name:
    found = view.of(operation.operands[0])
    return known.name(found._replace(conjugated=not view.conjugated and found.value.type.dtype.kind == "c"))


def transpose(known: Symmetry, operation: Operation, view: View) -> Name:
    perm = operation.attrs["perm"]
    return known.name(view.of(operation.operands[0], tuple(perm[axis] for axis in view.axes)))


def select(known: Symmetry, operation: Operation, view: View) -> Name:
    predicate, true, false = [known.name(view.of(operand)) for operand in operation.operands]
    return true if true == false else known.plain("select", predicate, true, false)


def reshape(known: Symmetry, operation: Operation, view: View) -> Name | None:
    """If it only adds and removes axes of size 1."""
    operand, shape = operation.operands[0], operation.attrs["shape"]
    wide = [axis for axis, size in enumerate(operand.type.shape) if size != 1]
    dims = [axis for axis, size in enumerate(shape) if size != 1]
    if [operand.type.shape[axis] for axis in wide] != [shape[axis] for axis in dims]:
        return None
    places = {axis: view.axes.index(dim) for axis, dim in zip(wide, dims, strict=True)}
    thin = [axis for axis in range(operand.type.rank) if axis not in places]
    name = known.name(view.of(operand, (*thin, *sorted(wide, key=places.__getitem__))))
    return known.plain("reshape", tuple(shape[axis] for axis in view.axes), name)


def broadcast(known: Symmetry, operation: Operation, view: View) -> Name:
    places = [view.axes.index(dim) for dim in operation.attrs["dims"]]
    axes = tuple(sorted(range(len(places)), key=places.__getitem__))
    shape = tuple(view.value.type.shape[axis] for axis in view.axes)
    return known.plain("broadcast", shape, tuple(sorted(places)), known.name(view.of(operation.operands[0], axes)))


def reduce_sum(known: Symmetry, operation: Operation, view: View) -> Name:
    axes = operation.attrs["axes"]
    kept = [axis for axis in range(operation.operands[0].type.rank) if axis not in axes]
    order = tuple(kept[axis] for axis in view.axes) + tuple(sorted(axes))
    name = known.name(view.of(operation.operands[0], order))
    return Name(name.negative, known.plain("reduce_sum", len(axes), name.number).number)


def dot_general(known: Symmetry, operation: Operation, view: View) -> Name:
    """Each operand with the places of its axes in the result, and then what is summed over."""
    left, right = operation.operands
    of_left, of_right = sides(left.type.rank, right.type.rank, operation.attrs)
    count, rank = len(of_left.batch), len(view.axes)
    alone = len(of_left.contract) == len(of_left.free) == len(of_right.free) == 1
    if alone and set(view.axes[:-2]) == set(range(count)):
        return matrix_product(known, operation, view)
    free = range(count + len(of_left.free), rank)
    negative, found = False, []
    for operand, side, own in ((left, of_left, range(count, free.start)), (right, of_right, free)):
        places = [view.axes.index(k) for k in (*range(count), *own)]
        place = dict(zip((*side.batch, *side.free), places, strict=True))
        order = sorted(place, key=place.__getitem__)
        name = known.name(view.of(operand, (*order, *side.contract)))
        negative ^= name.negative
        found.append((name.number, tuple(place[axis] for axis in order)))
    return Name(negative, known.plain("dot_general", len(of_left.contract), *sorted(found)).number)


def matrix_product(known: Symmetry, operation: Operation, view: View) -> Name:
    """The factors of a product of matrices, from its rows to its columns; (A B) C and A (B C) have one name."""
    of_left, of_right = sides(operation.operands[0].type.rank, operation.operands[1].type.rank, operation.attrs)
    batch = view.axes[:-2]
    left = view.of(operation.operands[0], (*(of_left.batch[k] for k in batch), *of_left.free, *of_left.contract))
    right = view.of(operation.operands[1], (*(of_right.batch[k] for k in batch), *of_right.contract, *of_right.free))
    if view.axes[-2] > view.axes[-1]:
        left, right = (factor._replace(axes=swapped_last(factor.axes)) for factor in (right, left))
    names = [known.name(left), known.name(right)]
    factors: list[Name] = []
    for name in names:
        inner = known.parts.get(name.number)
        is_product = inner is not None and ("matmul", inner) in known.numbers and len(inner) <= PARTS
        factors.extend(inner if is_product and inner else [Name(False, name.number)])
    number = known.plain("matmul", tuple(factors)).number
    known.parts[number] = tuple(factors)
    return Name(names[0].negative != names[1].negative, number)


def concatenate(known: Symmetry, operation: Operation, view: View) -> Name:
    names = [known.name(view.of(operand)) for operand in operation.operands]
    return known.plain("concatenate", view.axes.index(operation.attrs["axis"]), *names)


def part(known: Symmetry, operation: Operation, view: View) -> Name:
    attrs = [tuple(operation.attrs[name][axis] for axis in view.axes) for name in ("starts", "limits", "strides")]
    return known.plain(operation.op.name, *attrs, *(known.name(view.of(operand)) for operand in operation.operands))


def gather(known: Symmetry, operation: Operation, view: View) -> Name | None:
    """Elements (i, j) of the last two axes are elements (j, i) of the transpose."""
    array, *indices = operation.operands
    axes, place = tuple(range(array.type.rank)), operation.attrs["axis"]
    if len(indices) != 2 or place != len(axes) - 2 or view.axes[:place] != axes[:place]:
        return None
    order = tuple(axis - place for axis in view.axes[place:])
    left, right = (known.name(View(index, order, False, view.depth + 1)) for index in indices)
    plain, transposed = (known.name(view.of(array, each)) for each in (axes, swapped(axes)))
    return known.plain("gather", *min((plain, left, right), (transposed, right, left)))


def scatter(known: Symmetry, operation: Operation, view: View) -> Name | None:
    """Elements that are written at (i, i), or added there, are in the same places of the transpose."""
    array, part, *indices = operation.operands
    axes, place = tuple(range(array.type.rank)), operation.attrs["axis"]
    if len(indices) != 2 or place != len(axes) - 2 or view.axes not in (axes, swapped(axes)):
        return None
    order = tuple(range(indices[0].type.rank))
    left, right = (known.name(View(index, order, False, view.depth + 1)) for index in indices)
    if left != right:
        return None
    names = known.name(view.of(array)), known.name(view.of(part, tuple(range(part.type.rank))))
    return known.plain(operation.op.name, left, *names)


def inverse(known: Symmetry, operation: Operation, view: View) -> Name | None:
    axes = tuple(range(len(view.axes)))
    if view.axes not in (axes, swapped(axes)):
        return None
    return known.plain("inv", known.name(view.of(operation.operands[0])))


def iota(known: Symmetry, operation: Operation, view: View) -> Name:
    shape = tuple(view.value.type.shape[axis] for axis in view.axes)
    return known.plain("iota", view.value.type.dtype, shape, view.axes.index(operation.attrs["axis"]))


def same(known: Symmetry, operation: Operation, view: View) -> Name:
    return known.name(view.of(operation.operands[0]))


RULES: Final[Mapping[str, Rule]] = {
    **dict.fromkeys(("add", "sub", "mul", "div", "neg"), sign_and_name),
    "identity": same,
    "conj": conjugate,
    "transpose": transpose,
    "select": select,
    "broadcast": broadcast,
    "reshape": reshape,
    "reduce_sum": reduce_sum,
    "dot_general": dot_general,
    "concatenate": concatenate,
    "slice": part,
    "slice_set": part,
    "gather": gather,
    **dict.fromkeys(("scatter_add", "scatter_set"), scatter),
    "inv": inverse,
    "iota": iota,
}
