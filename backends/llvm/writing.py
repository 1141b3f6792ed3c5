"""The statements of one group: all that its outputs need, in the order of the program.

Derivatives are written in an order in which little waits. Followed from the ends instead, a chain has all that it reads
first, and what it gives to several ends waits for the last of them: in long groups these are hundreds of registers. So
what is needed is noted from the ends, and then written as the program has it, arrays just before what reads them first.

A sum holds the product that it alone reads: where LLVM decides what has one rounding, that depends on its level, and on
what is in the same block.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from operator import itemgetter
from typing import Final, NamedTuple

from srcgrad.backends.llvm.emitter import F32, F64
from srcgrad.backends.llvm.indices import Index, Line, View, flat, strides_of
from srcgrad.backends.llvm.loops import REDUCTIONS, Compute, Constant, Fold, Group, Iota, Load, Statement, Store
from srcgrad.ir.core import Literal, Operation, Value

_SUMS: Final = {"add": ("product_plus", "product_plus"), "sub": ("product_minus", "minus_product")}
"""What a sum becomes, of which the first or the second operand is a product."""


class _Product(NamedTuple):
    """A product that is left to a sum; ``whole``: it is known to vary along all axes."""

    operation: Operation
    place: Index
    whole: bool


class GroupWriter:
    """Makes the statements of one group; a value is computed once for each way in which it is read.

    ``computed``: the statements of each value, that of the sum where one holds it.
    """

    def __init__(
        self, domain: tuple[int, ...], outputs: Sequence[Value], views: Mapping[Value, View], kept: Set[Value],
        places: Mapping[Operation, int],
    ) -> None:  # fmt: skip
        self.group = Group("", domain)
        self.identity = tuple(Line(0, tuple(int(a == b) for b in range(len(domain)))) for a in range(len(domain)))
        self.views = views
        self.kept = kept
        self.places = places
        self.own = {value for value in outputs if not is_fold(value)}
        """The kept values that this group itself computes: read in place, they are in registers."""
        self.wanted: list[tuple[int, Value, Index]] = []
        """What is computed, by its place in the program."""
        self.readers: dict[Index, dict[Value, Operation | None]] = {}
        """The operation that alone reads a value, in place, by where; None where there are others or it is kept."""
        self.known: dict[Index, dict[Value, int]] = {}
        """The statements of values, by where these are read; ``~k`` for product ``k`` that is not written yet."""
        self.axes: list[int] = []
        """By statement the axes that it varies along, each a bit."""
        self.all_axes = (1 << len(domain)) - 1
        self.products: list[_Product] = []
        """Products that are left to the sums which read them."""
        self.taken: dict[Index, dict[Operation, int]] = {}
        """By place and sum the one that it is to hold."""
        self.loads: dict[tuple[Value, Line], int] = {}
        self.sources: dict[Value, int] = {}
        self.computed: dict[Value, list[int]] = {}
        self.want([folded(value) if is_fold(value) else value for value in outputs])
        self.compute()
        for value in outputs:
            self.keep(value)
        self.group.inputs = list(self.sources)
        self.group.deep = [axes.bit_length() for axes in self.axes]

    # --- what is needed ----------------------------------------------------------------------------
    def want(self, values: Iterable[Value]) -> None:
        """Note all that is computed for these values of the domain's shape, and what reads it."""
        views, kept, places, wanted = self.views, self.kept, self.places, self.wanted
        here = self.identity
        readers = self.readers.setdefault(here, {})
        stack: list[tuple[Value, Index, Operation | None]] = []
        for value in values:
            target = self.shown(value, here)
            if target is not None and self.is_computed(*target):
                stack.append((*target, None))
        while stack:
            value, index, reader = stack.pop()
            if index is not here:
                here, readers = index, self.readers.setdefault(index, {})
            if value in readers:
                readers[value] = None
                continue
            readers[value] = reader
            producer = value.producer
            assert producer is not None
            wanted.append((places[producer], value, index))
            rank, given = len(index), producer.operands
            if producer.op.name == "square":
                given, _ = self.squared(producer)
            for operand in given:
                if operand.producer is None:
                    continue
                # Elementwise operands are read where the result is; a predicate of rank 0 at its only place.
                place: Index = index if len(operand.type.shape) == rank else ()
                if operand in views:
                    target = self.shown(operand, place)
                    if target is not None and self.is_computed(*target):
                        stack.append((*target, None))
                elif operand not in kept or self.is_computed(operand, place):
                    stack.append((operand, place, producer if place is index else None))

    def is_computed(self, value: Value, index: Index) -> bool:
        """Whether a value that is read at an index is computed in this group, not loaded."""
        if value.producer is None or value not in self.kept:
            return value.producer is not None
        return value in self.own and index == self.identity and value.type.shape == self.group.domain

    def shown(self, value: Value, index: Index) -> tuple[Value, Index] | None:
        """A value through its views: what it shows and where; None where that is loaded by its place in C order."""
        view = self.views.get(value)
        if view is None:
            return value, index
        if view.places is None:
            return None
        rank = len(self.group.domain)
        return view.base, tuple([line.of(index, rank) for line in view.places])

    def squared(self, operation: Operation) -> tuple[tuple[Value, ...], str]:
        """The operands of a square, or those of its operand where one function is both, and that function.

        The square of a sech is the derivative of a tanh, with which it has the exponential and the quotient in common.
        """
        operands = operation.operands
        if operands[0] not in self.kept and operands[0].type.dtype in (F32, F64):
            inner = operands[0].producer
            if inner is not None and inner.op.name == "sech":
                return inner.operands, "sech_squared"
        return operands, ""

    # --- what is written ---------------------------------------------------------------------------
    def compute(self) -> None:
        """All that is wanted, as the program has it: what it reads is there by then, or an array."""
        self.wanted.sort(key=itemgetter(0))
        here: Index | None = None
        for _, value, index in self.wanted:
            if index is not here:
                here, known = index, self.known.setdefault(index, {})
                readers, taken = self.readers[index], self.taken.setdefault(index, {})
            operation, reader = value.producer, readers[value]
            assert operation is not None
            name, given, function = operation.op.name, operation.operands, ""
            if name == "iota":
                known[value] = self.iota(operation, index)
                continue
            if reader is not None and reader.op.name in _SUMS and self.is_left(operation, index, reader, taken):
                known[value] = taken[reader]
                continue
            if name == "square":
                given, function = self.squared(operation)
            operands = self.numbers(given, index, known)
            if operation in taken:
                known[value] = self.sum(operation, operands, taken[operation])
            else:
                known[value] = self.computation(operation, operands, function)

    def numbers(self, values: Sequence[Value], index: Index, known: Mapping[Value, int]) -> list[int]:
        """The statements of what a result at an index reads; ``known`` are those of values at that index."""
        return [known[value] if value in known else self.read(value, index) for value in values]

    def computation(self, operation: Operation, operands: Sequence[int], function: str = "") -> int:
        """The statement of an operation on earlier ones."""
        axes = 0
        for number in operands:
            axes |= self.axes[number]
        number = self.add(Compute(operation, tuple(operands), function), axes)
        self.computed.setdefault(operation.results[0], []).append(number)
        return number

    # --- products and the sums that read them ------------------------------------------------------
    def is_left(self, product: Operation, index: Index, reader: Operation, taken: dict[Operation, int]) -> bool:
        """Whether this is a product that is left to its reader, a sum: one is, if it can one along all axes."""
        if not is_product(product) or reader.results[0].type.dtype not in (F32, F64):
            return False
        if product.op.name == "square" and self.squared(product)[1]:
            return False
        whole = self.is_whole(product, index)
        other = taken.get(reader)
        if other is not None and (not whole or self.products[~other].whole):
            return False
        self.products.append(_Product(product, index, whole))
        taken[reader] = ~(len(self.products) - 1)
        return True

    def is_whole(self, product: Operation, index: Index) -> bool:
        """Whether it is known of a product that it varies along all axes, before the arrays are read."""
        domain, known = self.group.domain, self.known[index]
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
        product, index, _ = self.products[~taken]
        other = self.written(operands[1 - place])
        given = self.numbers(product.operands, index, self.known[index])
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
        product, index, _ = self.products[~number]
        return self.computation(product, self.numbers(product.operands, index, self.known[index]))

    def read(self, value: Value, index: Index) -> int:
        """The statement of a value that is read at an index, or by a result at that index."""
        if len(value.type.shape) != len(index):
            index = ()
        if value in self.views:
            target = self.shown(value, index)
            if target is None:
                view, rank = self.views[value], len(self.group.domain)
                assert view.flat is not None
                return self.load(view.base, view.flat.of(index, rank))
            value, index = target
        known = self.known.setdefault(index, {})
        found = known.get(value)
        if found is None:
            found = known[value] = self.leaf(value, index)
        return found

    def leaf(self, value: Value, index: Index) -> int:
        """The statement of a value that is not computed in this group."""
        if isinstance(value, Literal) and value.splat:
            return self.add(Constant(value.value, value.type.dtype), 0)
        return self.load(value, flat(index, value.type.static_shape, len(self.group.domain)))

    def load(self, value: Value, line: Line) -> int:
        known = self.loads.get((value, line))
        if known is None:
            source = self.sources.setdefault(value, len(self.sources))
            known = self.loads[value, line] = self.add(Load(source, line, value.type.dtype), axes_of(line))
        return known

    def iota(self, operation: Operation, index: Index) -> int:
        line = index[operation.attrs["axis"]]
        return self.add(Iota(line, operation.results[0].type.dtype), axes_of(line))

    def add(self, statement: Statement, axes: int) -> int:
        self.axes.append(axes)
        self.group.statements.append(statement)
        return len(self.axes) - 1

    def keep(self, value: Value) -> None:
        """Have a value kept as an output."""
        group, output = self.group, len(self.group.outputs)
        group.outputs.append(value)
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


def folded(value: Value) -> Value:
    """What a reduction reduces."""
    assert value.producer is not None
    return value.producer.operands[0]


def is_product(operation: Operation) -> bool:
    """Whether an operation is one product, of its first operand with its last."""
    name = operation.op.name
    return name in ("mul", "square") or (name == "integer_pow" and operation.attrs["y"] == 2)


def axes_of(line: Line) -> int:
    """The axes along which a line is not the same, each a bit."""
    found = 0
    for axis, stride in enumerate(line.strides):
        if stride:
            found |= 1 << axis
    return found
