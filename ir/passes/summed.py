"""Reading V g(w) V^H off sums of products that are written out: ``(v[:, None, :] * g(w) * v).sum(-1)``.

A sum over the vectors is one product of matrices, whatever the order and the axes in which its factors stand. Each
axis of what is summed has a label, its number; two of the factors are vectors, or coefficients V^H x, the others are
numbers for the vectors or have nothing to do with them. Where this does not show, sums that are factors are opened:
of sum(g(w) * np.diag(V^H M V)) the elements of M are factors then, so that it is the trace of V g(w) V^H M.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from srcgrad.ir.core import Builder, Literal, Operation, Value, literal, zeros
from srcgrad.ir.ops.dot import Side, sides
from srcgrad.ir.passes.coefficients import coefficients, squared_of
from srcgrad.ir.passes.diagonals import written_on
from srcgrad.ir.passes.matching import emit, is_known, is_zero
from srcgrad.ir.passes.values import MOST_OPERATIONS, NoMatch, full_bounds, plain, step_of
from srcgrad.ir.passes.vectors import factor
from srcgrad.ir.types import INT64, ArrayType, Size

Labels = tuple[int | None, ...]
"""For each axis of a factor, the axis of the product that it is; None where its size is 1."""


@dataclass(frozen=True)
class Part:
    """A factor: whether it divides, whether its conjugate is meant, and of which label its vectors are, if it has.

    ``picks``: what takes some of the rows of vectors, of which the value is all, and the axis of these.
    """

    value: Value
    labels: Labels
    divides: bool = False
    conjugated: bool = False
    column: int | None = None
    picks: tuple[Operation, int] | None = None


@dataclass(frozen=True)
class Ways:
    """How factors are looked at."""

    rows: bool = False
    """Whether rows of vectors are vectors, or numbers: sum(v[0] * g(w) * v[1]) is an element of V g(w) V^H."""
    sums: bool = False
    """Whether sums of vectors are opened."""
    coefficients: bool = False
    """Whether those that are coefficients V^H x are opened too."""


AS_IT_STANDS: Final = Ways()
ROWS: Final = ("slice", "gather")
SUMS: Final = ("dot_general", "reduce_sum", "gather", "real")
WAYS: Final[Sequence[tuple[Ways, Sequence[str]]]] = (
    (AS_IT_STANDS, ()),
    (Ways(rows=True), ROWS),
    (Ways(rows=True, sums=True, coefficients=True), SUMS),
    (Ways(rows=True, sums=True), SUMS),
)
"""In the order in which they are tried, each with what makes the factors for which it makes a difference."""


@dataclass
class Product:
    """Factors in the making. ``sizes``: of each label, ``summed``: the labels that are summed over."""

    sizes: dict[int, Size]
    summed: frozenset[int]
    dtype: Any
    """Of the factors: of the sum, or of complex ones whose product's real part is a factor and all others are real."""
    ways: Ways
    parts: list[Part] = field(default_factory=list)
    guards: list[tuple[Part, bool]] = field(default_factory=list)
    """Where these are not so, the product is 0."""
    left: int = MOST_OPERATIONS

    def read(self, part: Part) -> None:
        """Take factors of a factor into the product.

        Raises:
            NoMatch: there are too many.
        """
        pending = [part]
        while pending:
            self.left -= 1
            if self.left < 0:
                raise NoMatch
            part = pending.pop()
            part = replace(part, value=plain(part.value), labels=part.labels if part.value.type.rank else ())
            if is_known(part.value) and part.value.type.rank:
                part = replace(part, value=literal(part.value.value, part.value.type.with_shape(())), labels=())
            found: list[Part] | Part | None = self.factors(part)
            found = self.carrier(part) if found is None else found
            if found is None:
                self.parts.append(part)
            elif isinstance(found, Part):
                self.parts.append(found)
            else:
                pending += found

    def carrier(self, part: Part) -> Part | None:
        """A factor as vectors, or as coefficients, of which one is summed over."""
        rows = self.rows_of_vectors(part) if self.ways.rows and not part.divides else None
        if rows is not None:
            return rows
        if part.divides or None in part.labels or not 1 <= len(set(part.labels)) == len(part.labels) <= 2:
            return None
        axis = None
        if len(part.labels) == 2:
            vectors = factor(part.value)
            axis = None if vectors is None else vectors.column
        if axis is None:
            found = coefficients(part.value)
            axis = None if found is None or found.repeated else found.column
        label = None if axis is None else part.labels[axis]
        return replace(part, column=label) if label in self.summed else None

    def rows_of_vectors(self, part: Part) -> Part | None:
        """Some rows of vectors; one row has a label of its own, of size 1."""
        operation = part.value.producer
        if operation is None or operation.op.name not in ("slice", "gather") or len(part.labels) != DIAGONAL:
            return None
        vectors = factor(operation.operands[0])
        if vectors is None or part.labels[vectors.column] not in self.summed or not is_picked(operation, vectors.row):
            return None
        column = part.labels[vectors.column]
        labels = tuple(self.new_label(1) if label is None else label for label in part.labels)
        return replace(part, value=operation.operands[0], labels=labels, column=column, picks=(operation, vectors.row))

    def factors(self, part: Part) -> list[Part] | None:
        """What a factor is the product of; None if it is to be taken as it is."""
        operation = part.value.producer
        if operation is None or not part.value.type.rank:
            return None
        name, operands = operation.op.name, operation.operands
        if name in ("mul", "div"):
            return [
                replace(part, value=operand, divides=part.divides != (name == "div" and k == 1))
                for k, operand in enumerate(operands)
            ]
        if name == "neg":
            minus = Part(literal(-1, part.value.type.with_shape(())), ())
            return [minus, replace(part, value=operands[0])]
        if name == "conj":
            return [replace(part, value=operands[0], conjugated=not part.conjugated)]
        if name == "cast" and part.value.type.dtype.kind == "c" and operands[0].type.dtype.kind == "f":
            return [replace(part, value=operands[0])]
        if squared_of(part.value) is not None:
            return [replace(part, value=operands[0])] * 2
        if name == "select" and not part.divides and (is_zero(operands[2]) or is_zero(operands[1])):
            holds = is_zero(operands[2])
            self.guards.append((replace(part, value=operands[0]), holds))
            return [replace(part, value=operands[1 if holds else 2])]
        if name == "dot_general":
            if all(operands[0].type.shape[axis] == 1 for axis in operation.attrs["contract"][0]):
                return self.multiplied(part, operation, {})
            return self.sum_opened(part, operation)
        if name in ("reduce_sum", "gather"):
            return self.sum_opened(part, operation)
        if name == "real" and operands[0].type.dtype.kind == "c" and self.ways.sums and not part.divides:
            return self.complex_factors(replace(part, value=operands[0]))
        labels = labels_before(operation, part.labels)
        return None if labels is None else [replace(part, value=operands[0], labels=labels)]

    def sum_opened(self, part: Part, operation: Operation) -> list[Part] | None:
        """The factors of a sum, or of a diagonal, that is a factor itself, if vectors are among them.

        A sum times a number is the sum of products with it: over more labels there is one sum.
        """
        if not self.ways.sums or part.divides or self.summed.isdisjoint(part.labels):
            return None
        if operation.op.name == "gather" and not is_diagonal_read(operation):
            return None
        if not self.ways.coefficients and self.carrier(part) is not None:
            return None
        inner = Product(dict(self.sizes), self.summed, self.dtype, self.ways, left=self.left)
        for given in inner.terms_of(part, operation):
            inner.read(given)
        if all(each.column is None for each in inner.parts) or inner.guards:
            return None
        self.sizes, self.summed, self.dtype, self.left = inner.sizes, inner.summed, inner.dtype, inner.left
        self.parts += inner.parts
        return []

    def terms_of(self, part: Part, operation: Operation) -> list[Part]:
        """What a sum is the sum of: its axes are labels of their own, which are summed over too."""
        if operation.op.name == "gather":
            return [replace(part, value=operation.operands[0], labels=part.labels * 2)]
        if operation.op.name == "reduce_sum":
            (operand,), axes = operation.operands, operation.attrs["axes"]
            kept = iter(part.labels)
            labels = [self.new_label(size) if k in axes else next(kept) for k, size in enumerate(operand.type.shape)]
            return [replace(part, value=operand, labels=tuple(labels))]
        left, _ = operation.operands
        axes = operation.attrs["contract"][0]
        found = self.multiplied(part, operation, {axis: self.new_label(left.type.shape[axis]) for axis in axes})
        for k, (one, other) in enumerate((found, found[::-1])):
            producer = one.value.producer
            numbers = None if producer is None else written_on(producer)
            if numbers is not None and len(axes) == 1:
                return self.on_the_diagonal(one, other, numbers, operation.attrs["contract"][k][0])
        return found

    def on_the_diagonal(self, diagonal: Part, other: Part, numbers: Value, axis: int) -> list[Part]:
        """A product with a diagonal matrix, of which the terms are those where both of its labels are one."""
        gone, label = diagonal.labels[axis], diagonal.labels[1 - axis]
        if label is None:
            return [diagonal, other]
        assert gone is not None
        self.summed -= {gone}
        del self.sizes[gone]
        labels = tuple(label if each == gone else each for each in other.labels)
        return [replace(diagonal, value=numbers, labels=(label,)), replace(other, labels=labels)]

    def new_label(self, size: Size) -> int:
        label = max(self.sizes, default=-1) + 1
        self.sizes[label] = size
        self.summed |= {label}
        return label

    def complex_factors(self, part: Part) -> list[Part]:
        """The factors of a complex number of which the real part is one.

        Raises:
            NoMatch: there is another one already, or others are complex.
        """
        if self.dtype.kind == "c":
            raise NoMatch
        self.dtype = part.value.type.dtype
        return [part]

    def multiplied(self, part: Part, operation: Operation, summed: dict[int, int]) -> list[Part]:
        """The factors of a product; ``summed``: the labels of axes of the left one that are summed over."""
        contract, batch = operation.attrs["contract"], operation.attrs["batch"]
        count = len(batch[0])
        given = [part.labels[:count], part.labels[count:]]
        found = []
        both = both_sides(operation)
        for k, (operand, side) in enumerate(zip(operation.operands, both, strict=True)):
            labels: list[int | None] = [None] * operand.type.rank
            for axis, at in zip(contract[0], contract[k], strict=True):
                labels[at] = summed.get(axis)
            for axis, label in zip(side.batch, given[0], strict=True):
                labels[axis] = label
            for axis, label in zip(side.free, given[1], strict=False):
                labels[axis] = label
            given[1] = given[1][len(side.free) :]
            found.append(replace(part, value=operand, labels=tuple(labels)))
        return found


def both_sides(operation: Operation) -> tuple[Side, Side]:
    """The axes of the operands of a product."""
    left, right = operation.operands
    return sides(left.type.rank, right.type.rank, operation.attrs)


def labels_before(operation: Operation, labels: Labels) -> Labels | None:
    """The labels of what is transposed, repeated along axes, or given axes of size 1."""
    (name, attrs), operands = (operation.op.name, operation.attrs), operation.operands
    if name == "transpose":
        found: list[int | None] = [None] * len(labels)
        for axis, before in enumerate(attrs["perm"]):
            found[before] = labels[axis]
        return tuple(found)
    if name == "broadcast":
        shape = operands[0].type.shape
        return tuple(None if shape[k] == 1 else labels[dim] for k, dim in enumerate(attrs["dims"]))
    if name == "reshape":
        before, after = operands[0].type.shape, operation.results[0].type.shape
        if [size for size in before if size != 1] != [size for size in after if size != 1]:
            return None
        rest = [label for size, label in zip(after, labels, strict=True) if size != 1]
        return tuple(None if size == 1 else rest.pop(0) for size in before)
    return None


def is_picked(operation: Operation, row: int) -> bool:
    """Whether rows are taken, in whatever order, and nothing of the other axis."""
    if operation.op.name == "gather":
        return operation.attrs["axis"] == row and [place.type.rank for place in operation.operands[1:]] == [1]
    return step_of(operation, row) is not None


def rows_picked(builder: Builder, value: Value, picks: tuple[Operation, int], axis: int) -> Value:
    """What an operation takes of vectors' rows, of an axis of a product with these vectors."""
    operation, row = picks
    if operation.op.name == "gather":
        return emit(builder, "gather", value, operation.operands[1], axis=axis)
    starts, limits, strides = map(list, full_bounds(value.type.shape))
    for bounds, name in ((starts, "starts"), (limits, "limits"), (strides, "strides")):
        bounds[axis] = operation.attrs[name][row]
    return emit(builder, "slice", value, starts=tuple(starts), limits=tuple(limits), strides=tuple(strides))


def is_diagonal_read(operation: Operation) -> bool:
    """Whether the diagonal of a square matrix is read, as ``np.diag`` and ``np.trace`` do."""
    matrix, *places = operation.operands
    shape, index = matrix.type.shape, places[0]
    if len(places) != len(shape) or len(shape) != DIAGONAL or shape[0] != shape[1] or places[1] != index:
        return False
    if not isinstance(index, Literal) or index.type.shape != shape[:1]:
        return False
    return bool((index.value == np.arange(index.type.static_shape[0])).all())


# --- the product of matrices ------------------------------------------------------------------------------------------


def product_of_sum(builder: Builder, operation: Operation) -> Value:
    """A sum over vectors as a product of matrices, which a rule knows: as it stands, or with sums in it opened.

    All are opened only where what is summed then is no larger than the matrix.

    Raises:
        NoMatch: it is none, or none that a rule knows.
    """
    made: set[str] = set()
    for ways, names in WAYS:
        if names and made.isdisjoint(names):
            continue
        try:
            product, kept = read_sum(operation, ways)
            made.update(part.value.producer.op.name for part in product.parts if part.value.producer is not None)
            return product_with(builder, operation, product, kept)
        except NoMatch:
            continue
    raise NoMatch


def product_with(builder: Builder, operation: Operation, product: Product, kept: Sequence[int]) -> Value:
    """The same, of factors that are known."""
    carriers = [part for part in product.parts if part.column is not None]
    if len(carriers) != 2 or carriers[0].column != carriers[1].column:
        raise NoMatch
    label = carriers[0].column
    assert label is not None
    dtype = product.dtype
    others = [part for part in product.parts if part.column is None]
    if product.ways.coefficients:
        there = [{*carriers[0].labels, *carriers[1].labels}, *({label, *part.labels} for part in others)]
        if not any(each.issuperset(product.sizes) for each in there):
            raise NoMatch
    weighted = with_numbers(builder, product, [part for part in others if label in part.labels], label, dtype)
    left, right = (part_value(builder, part, dtype) for part in carriers)
    axes = [part.labels.index(label) for part in carriers]
    if weighted is not None:
        left = emit(builder, "mul", left, emit(builder, "broadcast", weighted, shape=left.type.shape, dims=(axes[0],)))
    found = emit(builder, "dot_general", left, right, contract=((axes[0],), (axes[1],)), batch=((), ()))
    made = found.producer
    if made is not None and made.op.name == "dot_general" and made.operands == (left, right):
        raise NoMatch
    labels = tuple(each for part in carriers for each in part.labels if each != label)
    for part in carriers:
        if part.picks is not None:
            found = rows_picked(builder, found, part.picks, 0 if part is carriers[0] else len(labels) - 1)
    outside = [part for part in others if label not in part.labels]
    total = arranged(builder, product, Part(found, labels, column=label), outside, kept, dtype)
    return total if dtype == operation.results[0].type.dtype else emit(builder, "real", total)


def expansion_of_sum(builder: Builder, operation: Operation) -> Value:
    """A sum over the components of vectors as coefficients V^H x."""
    product, kept = read_sum(operation, AS_IT_STANDS)
    dtype = operation.results[0].type.dtype
    vectors = [part for part in product.parts if is_summed_row(part, product)]
    if len(vectors) != 1 or len(product.summed) != 1 or product.guards:
        raise NoMatch
    (label,) = product.summed
    others = [part for part in product.parts if part is not vectors[0]]
    x = with_numbers(builder, product, [part for part in others if label in part.labels], label, dtype)
    if x is None:
        raise NoMatch
    part = vectors[0]
    contract = ((part.labels.index(label),), (0,))
    found = emit(builder, "dot_general", part_value(builder, part, dtype), x, contract=contract, batch=((), ()))
    labels = tuple(each for each in part.labels if each != label)
    outside = [part for part in others if label not in part.labels]
    return arranged(builder, product, Part(found, labels, column=label), outside, kept, dtype)


def is_summed_row(part: Part, product: Product) -> bool:
    vectors = factor(part.value) if not part.divides and len(part.labels) == 2 and None not in part.labels else None
    return vectors is not None and part.labels[vectors.row] in product.summed


def read_sum(operation: Operation, ways: Ways) -> tuple[Product, list[int]]:
    """The factors of what is summed, and the labels that are kept."""
    operands, dtype = operation.operands, operation.results[0].type.dtype
    if operation.op.name == "reduce_sum":
        summed = operation.attrs["axes"]
        sizes = dict(enumerate(operands[0].type.shape))
        product = Product(sizes, frozenset(summed), dtype, ways)
        product.read(Part(operands[0], tuple(sizes)))
        return product, [label for label in sizes if label not in product.summed]
    rank = operation.results[0].type.rank
    sizes = dict(enumerate(operation.results[0].type.shape))
    left, right = both_sides(operation)
    given = [dict(zip(left.batch + left.free, range(rank), strict=False))]
    rest = (*range(len(right.batch)), *range(len(left.batch + left.free), rank))
    given.append(dict(zip(right.batch + right.free, rest, strict=True)))
    for pair in zip(left.contract, right.contract, strict=True):
        label = len(sizes)
        sizes[label] = operands[0].type.shape[pair[0]]
        for labels, axis in zip(given, pair, strict=True):
            labels[axis] = label
    product = Product(sizes, frozenset(range(rank, len(sizes))), dtype, ways)
    for operand, labels in zip(operands, given, strict=True):
        product.read(Part(operand, tuple(labels[axis] for axis in range(operand.type.rank))))
    return product, list(range(rank))


def part_value(builder: Builder, part: Part, dtype: Any) -> Value:
    """A factor without its axes of size 1."""
    value = part.value
    if None in part.labels:
        shape = tuple(s for s, label in zip(value.type.shape, part.labels, strict=True) if label is not None)
        value = emit(builder, "reshape", value, shape=shape)
    if part.conjugated and value.type.dtype.kind == "c":
        value = emit(builder, "conj", value)
    return value if value.type.dtype == dtype else emit(builder, "cast", value, dtype=np.dtype(dtype))


def with_numbers(builder: Builder, product: Product, parts: Sequence[Part], label: int, dtype: Any) -> Value | None:
    """The numbers for the vectors, one after the other in a row."""
    row: Value | None = None
    for part in sorted(parts, key=lambda part: part.divides):
        value = part_value(builder, part, dtype)
        if value.type.rank != 1:
            raise NoMatch
        row = value if row is None and not part.divides else combined(builder, row, value, part.divides)
    for guard, holds in product.guards:
        value, labels = guard.value, guard.labels
        while value.type.rank > 1 and value.producer is not None:
            before = labels_before(value.producer, labels)
            if before is None:
                raise NoMatch
            value, labels = value.producer.operands[0], before
        if tuple(each for each in labels if each is not None) != (label,):
            raise NoMatch
        type = ArrayType(dtype, (product.sizes[label],))
        value = part_value(builder, Part(value, labels), value.type.dtype)
        pair = [literal(1, type) if row is None else row, zeros(type)]
        row = emit(builder, "select", value, *(pair if holds else pair[::-1]))
    return row


def combined(builder: Builder, left: Value | None, right: Value, divides: bool) -> Value:
    left = literal(1, right.type) if left is None else left
    return emit(builder, "div" if divides else "mul", left, right)


DIAGONAL: Final = 2
"""How many axes a result has of which only the diagonal is meant."""


def arranged(
    builder: Builder, product: Product, found: Part, others: Sequence[Part], kept: Sequence[int], dtype: Any
) -> Value:
    """The product with the other factors, summed over what is left to sum, its axes in order."""
    value, labels = found.value, found.labels
    if len(set(labels)) < len(labels):
        if len(labels) != DIAGONAL:
            raise NoMatch
        index = literal(np.arange(value.type.static_shape[0]), ArrayType(INT64, value.type.shape[:1]))
        value, labels = emit(builder, "gather", value, index, index, axis=0), labels[:1]
    rest = [label for label in product.sizes if label in product.summed and label != found.column]
    order = [*kept, *rest]
    shape = tuple(product.sizes[label] for label in order)
    value = spread(builder, value, labels, order, shape)
    for part in others:
        stripped = tuple(label for label in part.labels if label is not None)
        other = spread(builder, part_value(builder, part, dtype), stripped, order, shape)
        value = emit(builder, "div" if part.divides else "mul", value, other)
    return emit(builder, "reduce_sum", value, axes=tuple(range(len(kept), len(order)))) if rest else value


def spread(builder: Builder, value: Value, labels: Labels, order: Sequence[int], shape: tuple[Size, ...]) -> Value:
    """A value with the axes in this order, repeated along those that it has not."""
    if len(set(labels)) < len(labels):
        raise NoMatch
    places = [order.index(label) for label in labels if label is not None]
    perm = tuple(int(k) for k in np.argsort(places))
    if perm != tuple(range(len(perm))):
        value = emit(builder, "transpose", value, perm=perm)
    return (
        value
        if value.type.shape == shape
        else emit(builder, "broadcast", value, shape=shape, dims=tuple(sorted(places)))
    )
