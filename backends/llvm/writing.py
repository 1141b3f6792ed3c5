"""The statements of one group: all that its outputs need, in the order of the program.

Derivatives are written in an order in which little waits. Followed from the ends instead, a chain has all that it reads
first, and what it gives to several ends waits for the last of them: in long groups these are hundreds of registers. So
what is needed is noted from the ends, and then written as the program has it, arrays just before what reads them first.

A sum holds the product that it alone reads: where LLVM decides what has one rounding, that depends on its level, and on
what is in the same block. In which sums each product is rounded, as NumPy's is, `rounding` says.

What shows pieces of arrays is computed from all of these, each where it is within bounds: arrays are read there alone,
and what is computed of them elsewhere is left for what the other pieces are, or for zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from functools import lru_cache
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np

from srcgrad.backends.llvm.emitter import F32, F64
from srcgrad.backends.llvm.indices import Bounds, Line, Piece, View, Where, flat, strides_of, within
from srcgrad.backends.llvm.joins import JOINED
from srcgrad.backends.llvm.loops import (
    REDUCTIONS,
    Compute,
    Constant,
    Fold,
    Group,
    Inside,
    Iota,
    Load,
    Statement,
    Store,
    lines_of,
    varies_along,
)
from srcgrad.backends.llvm.rounding import is_product
from srcgrad.ir.core import Literal, Operation, Value, literal
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.types import ArrayType, DType

_SUMS: Final = {"add": ("product_plus", "product_plus"), "sub": ("product_minus", "minus_product")}
"""What a sum becomes, of which the first or the second operand is a product."""


class _Product(NamedTuple):
    """A product that is left to a sum; ``whole``: it is known to vary along all axes."""

    operation: Operation
    place: Where
    whole: bool


class GroupWriter:
    """Makes the statements of one group; a value is computed once for each way in which it is read.

    ``computed``: the statements of each value, that of the sum where one holds it.
    """

    def __init__(
        self, domain: tuple[int, ...], outputs: Sequence[Value], views: Mapping[Value, View], kept: Set[Value],
        places: Mapping[Operation, int], rounded: Set[Value] = frozenset(),
    ) -> None:  # fmt: skip
        """``rounded``: sums that hold no product."""
        self.group = Group("", domain)
        rank = len(domain)
        self.identity = Where(tuple(Line(0, tuple(int(a == b) for b in range(rank))) for a in range(rank)))
        self.once = Where(())
        """Where what has no axes is read."""
        self.views = views
        self.kept = kept
        self.places = places
        self.rounded = rounded
        self.own = {value for value in outputs if not is_fold(value) and not is_joined(value)}
        """The kept values that this group itself computes: read in place, they are in registers."""
        self.wanted: list[tuple[int, Value, Where]] = []
        """What is computed, by its place in the program."""
        self.readers: dict[Where, dict[Value, Operation | None]] = {}
        """The operation that alone reads a value, in place, by where; None where there are others or it is kept."""
        self.known: dict[Where, dict[Value, int]] = {}
        """The statements of values, by where these are read; ``~k`` for product ``k`` that is not written yet."""
        self.axes: list[int] = []
        """By statement the axes that it varies along, each a bit."""
        self.all_axes = (1 << len(domain)) - 1
        self.products: list[_Product] = []
        """Products that are left to the sums which read them."""
        self.taken: dict[Where, dict[Operation, int]] = {}
        """By place and sum the one that it is to hold."""
        self.functions: dict[Operation, tuple[tuple[Value, ...], str]] = {}
        """What `joined` has found."""
        self.loads: dict[tuple[Value, Line, Bounds], int] = {}
        self.iotas: dict[tuple[Line, DType], int] = {}
        self.same: dict[tuple[Operation, tuple[int, ...], str], int] = {}
        """What is computed of the same numbers, though it is read within other bounds."""
        self.insides: dict[Bounds, int] = {}
        self.found: dict[tuple[Value, Where], list[tuple[Piece, Bounds]]] = {}
        """The pieces of views, by where these are read."""
        self.sources: dict[Value, int] = {}
        self.computed: dict[Value, list[int]] = {}
        self.want([shown for value in outputs for shown in kept_of(value)])
        self.compute()
        for value in outputs:
            self.keep(value)
        self.group.inputs = list(self.sources)
        self.group.deep = [axes.bit_length() for axes in self.axes]

    # --- what is needed ----------------------------------------------------------------------------
    def want(self, values: Iterable[Value]) -> None:
        """Note all that is computed for these values of the domain's shape, and what reads it."""
        kept, places, wanted = self.kept, self.places, self.wanted
        here = self.identity
        readers = self.readers.setdefault(here, {})
        stack: list[tuple[Value, Where, Operation | None]] = []
        for value in values:
            stack += [(*target, None) for target in self.targets(value, here)]
        while stack:
            value, where, reader = stack.pop()
            if where is not here:
                here, readers = where, self.readers.setdefault(where, {})
            if value in readers:
                readers[value] = None
                continue
            readers[value] = reader
            producer = value.producer
            assert producer is not None
            wanted.append((places[producer], value, where))
            rank, given = len(where.places), producer.operands
            if producer.op.name in JOINED:
                given, _ = self.joined(producer)
            for operand in given:
                if operand.producer is None:
                    continue
                # Elementwise operands are read where the result is; a predicate of rank 0 at its only place.
                place = where if len(operand.type.shape) == rank else self.once
                if operand in self.views:
                    stack += [(*target, None) for target in self.targets(operand, place)]
                elif operand not in kept or self.is_computed(operand, place):
                    stack.append((operand, place, producer if place is where else None))

    def is_computed(self, value: Value, where: Where) -> bool:
        """Whether a value that is read somewhere is computed in this group, not loaded."""
        if value.producer is None or value not in self.kept:
            return value.producer is not None
        return value in self.own and where == self.identity and value.type.shape == self.group.domain

    def targets(self, value: Value, where: Where) -> list[tuple[Value, Where]]:
        """What is computed in this group of a value, or of what it shows, and where."""
        if value not in self.views:
            return [(value, where)] if self.is_computed(value, where) else []
        found = []
        for (base, places, _, bounds), _ in self.pieces(value, where):
            if places is not None and self.is_computed(base, target := Where(places, bounds)):
                found.append((base, target))
        return found

    def pieces(self, value: Value, where: Where) -> list[tuple[Piece, Bounds]]:
        """The pieces of a view that are read, each with the bounds that are its own; none after one that is all."""
        found = self.found.get((value, where))
        if found is None:
            found = self.found[value, where] = []
            for piece in self.views[value].pieces:
                inside = within(where, piece, self.group.domain)
                if inside is not None:
                    found.append(inside)
                    if not inside[1]:
                        break
        return found

    def joined(self, operation: Operation) -> tuple[tuple[Value, ...], str]:
        """The operands of an operation, or those of its operands where one function is all of them, and its name."""
        found = self.functions.get(operation)
        if found is None:
            found = operation.operands, ""
            if operation.results[0].type.dtype in (F32, F64):
                found = JOINED[operation.op.name](operation.operands, self.made_here) or found
            self.functions[operation] = found
        return found

    def made_here(self, value: Value) -> Operation | None:
        """What makes a value that is computed where it is read."""
        return None if value in self.kept or value in self.views else value.producer

    # --- what is written ---------------------------------------------------------------------------
    def compute(self) -> None:
        """All that is wanted, as the program has it: what it reads is there by then, or an array."""
        self.wanted.sort(key=itemgetter(0))
        here: Where | None = None
        for _, value, where in self.wanted:
            if where is not here:
                here, known = where, self.known.setdefault(where, {})
                readers, taken = self.readers[where], self.taken.setdefault(where, {})
            operation, reader = value.producer, readers[value]
            assert operation is not None
            name, given, function = operation.op.name, operation.operands, ""
            if name == "iota":
                known[value] = self.iota(operation, where)
                continue
            if reader is not None and reader.op.name in _SUMS and self.is_left(operation, where, reader, taken):
                known[value] = taken[reader]
                continue
            if name in JOINED:
                given, function = self.joined(operation)
            operands = self.numbers(given, where, known)
            if operation in taken:
                known[value] = self.sum(operation, operands, taken[operation])
            else:
                known[value] = self.computation(operation, operands, function)

    def numbers(self, values: Sequence[Value], where: Where, known: Mapping[Value, int]) -> list[int]:
        """The statements of what a result reads somewhere; ``known`` are those of values there."""
        return [known[value] if value in known else self.read(value, where) for value in values]

    def computation(self, operation: Operation, operands: Sequence[int], function: str = "") -> int:
        """The statement of an operation on earlier ones."""
        key = (operation, tuple(operands), function)
        found = self.same.get(key)
        if found is not None:
            return found
        axes = 0
        for number in operands:
            axes |= self.axes[number]
        number = self.same[key] = self.add(Compute(*key), axes)
        self.computed.setdefault(operation.results[0], []).append(number)
        return number

    # --- products and the sums that read them ------------------------------------------------------
    def is_left(self, product: Operation, where: Where, reader: Operation, taken: dict[Operation, int]) -> bool:
        """Whether this is a product that is left to its reader, a sum: one is, if it can one along all axes."""
        held = reader.results[0]
        if not is_product(product) or held.type.dtype not in (F32, F64) or held in self.rounded:
            return False
        if product.op.name in JOINED and self.joined(product)[1]:
            return False
        whole = self.is_whole(product, where)
        other = taken.get(reader)
        if other is not None and (not whole or self.products[~other].whole):
            return False
        self.products.append(_Product(product, where, whole))
        taken[reader] = ~(len(self.products) - 1)
        return True

    def is_whole(self, product: Operation, where: Where) -> bool:
        """Whether it is known of a product that it varies along all axes, before the arrays are read."""
        domain, known = self.group.domain, self.known[where]
        for value in product.operands:
            number = known.get(value)
            if number is not None and self.axes[number] == self.all_axes:
                return True
            in_place = value.type.shape == domain and value not in self.views and not isinstance(value, Literal)
            if number is None and in_place:
                return True
        return False

    def sum(self, operation: Operation, operands: list[int], taken: int) -> int:
        """A sum with the product that is left to it, if that varies along the same axes: one further outside stays."""
        place = operands.index(taken)
        product, where, _ = self.products[~taken]
        other = self.written(operands[1 - place])
        given = self.numbers(product.operands, where, self.known[where])
        factors = (given[0], given[-1])
        axes = self.axes[factors[0]] | self.axes[factors[1]]
        if self.axes[other] | axes != axes:
            operands[place], operands[1 - place] = self.computation(product, given), other
            return self.computation(operation, operands)
        number = self.computation(operation, (*factors, other), _SUMS[operation.op.name][place])
        self.computed.setdefault(product.results[0], []).append(number)
        return number

    def written(self, number: int) -> int:
        """A statement, or the one of a product that is not there yet."""
        if number >= 0:
            return number
        product, where, _ = self.products[~number]
        return self.computation(product, self.numbers(product.operands, where, self.known[where]))

    def read(self, value: Value, where: Where) -> int:
        """The statement of a value that is read somewhere, or by a result there."""
        if len(value.type.shape) != len(where.places):
            where = self.once
        known = self.known.setdefault(where, {})
        found = known.get(value)
        if found is None:
            found = self.view(value, where) if value in self.views else self.leaf(value, where)
            known[value] = found
        return found

    def view(self, value: Value, where: Where) -> int:
        """The statement of what shows pieces of arrays: the last that is read, or those before it, or zero."""
        pieces = self.pieces(value, where)
        numbers = [self.piece(piece) for piece, _ in pieces]
        found = numbers.pop() if numbers else None
        padded = self.views[value].padded and (not pieces or bool(pieces[-1][1]))
        if found is None or (padded and not isinstance(self.group.statements[found], Load)):
            zero = self.add(Constant(0, value.type.dtype), 0)
            found = zero if found is None else self.selected(pieces[-1][1], found, zero)
        for (_, own), number in zip(reversed(pieces[:-1]), reversed(numbers), strict=True):
            found = self.selected(own, number, found)
        return found

    def piece(self, piece: Piece) -> int:
        """The statement of one piece, where all its bounds are kept to."""
        if piece.places is None:
            assert piece.flat is not None
            return self.load(piece.base, piece.flat, piece.bounds)
        where = Where(piece.places, piece.bounds)
        known = self.known.setdefault(where, {})
        found = known.get(piece.base)
        if found is None:
            found = known[piece.base] = self.leaf(piece.base, where)
        return self.written(found)

    def selected(self, bounds: Bounds, one: int, other: int) -> int:
        """The statement that is one within bounds, and the other elsewhere."""
        inside = self.insides.get(bounds)
        if inside is None:
            item = Inside(bounds)
            inside = self.insides[bounds] = self.add(item, axes_of(item))
        axes = self.axes[inside] | self.axes[one] | self.axes[other]
        return self.add(Compute(selection(self.group.statements[one].dtype), (inside, one, other)), axes)

    def leaf(self, value: Value, where: Where) -> int:
        """The statement of a value that is not computed in this group."""
        if isinstance(value, Literal) and value.splat:
            return self.add(Constant(value.value, value.type.dtype), 0)
        return self.load(value, flat(where.places, value.type.static_shape, len(self.group.domain)), where.bounds)

    def load(self, value: Value, line: Line, bounds: Bounds) -> int:
        known = self.loads.get((value, line, bounds))
        if known is None:
            source = self.sources.setdefault(value, len(self.sources))
            item = Load(source, line, value.type.dtype, bounds)
            known = self.loads[value, line, bounds] = self.add(item, axes_of(item))
        return known

    def iota(self, operation: Operation, where: Where) -> int:
        key = where.places[operation.attrs["axis"]], operation.results[0].type.dtype
        found = self.iotas.get(key)
        if found is None:
            item = Iota(*key)
            found = self.iotas[key] = self.add(item, axes_of(item))
        return found

    def add(self, statement: Statement, axes: int) -> int:
        self.axes.append(axes)
        self.group.statements.append(statement)
        return len(self.axes) - 1

    def keep(self, value: Value) -> None:
        """Have a value kept as an output."""
        group, output = self.group, len(self.group.outputs)
        group.outputs.append(value)
        if is_joined(value):
            strides = tuple([2 * stride for stride in strides_of(group.domain)])
            for k, part in enumerate(kept_of(value)):
                group.stores.append(Store(output, self.read(part, self.identity), Line(k, strides)))
            return
        if not is_fold(value):
            group.stores.append(Store(output, self.read(value, self.identity), Line(0, strides_of(group.domain))))
            return
        assert value.producer is not None
        axes, places = frozenset(value.producer.attrs["axes"]), iter(strides_of(value.type.static_shape))
        line = Line(0, tuple(0 if axis in axes else next(places) for axis in range(len(group.domain))))
        statement = self.read(folded(value), self.identity)
        group.folds.append(Fold(output, statement, line, value.producer.op.name, axes))


def is_fold(value: Value) -> bool:
    """Whether a value is a reduction over some axes."""
    producer = value.producer
    return producer is not None and producer.op.name in REDUCTIONS and bool(producer.attrs["axes"])


def is_joined(value: Value) -> bool:
    """Whether a value is the complex numbers of two parts."""
    return value.type.dtype.kind == "c" and value.producer is not None and value.producer.op.name == "complex"


def kept_of(value: Value) -> Sequence[Value]:
    """What a group computes for an output."""
    if is_joined(value):
        assert value.producer is not None
        return value.producer.operands
    return (folded(value) if is_fold(value) else value,)


def folded(value: Value) -> Value:
    """What a reduction reduces."""
    assert value.producer is not None
    return value.producer.operands[0]


def axes_of(item: Statement) -> int:
    """The axes along which what has lines is not the same, each a bit."""
    found = 0
    for line in lines_of(item):
        for axis in varies_along(line):
            found |= 1 << axis
    return found


@lru_cache(maxsize=64)
def selection(dtype: DType) -> Operation:
    """A choice of one of two numbers."""
    type = ArrayType(dtype, ())
    given = (literal(False, ArrayType(np.dtype(bool), ())), literal(0, type), literal(0, type))
    return Operation(REGISTRY["select"], given, {}, (), [type], None)
