"""Terms that are alike, one for each vector of a decomposition, become one for all vectors.

``sum(g(w[i]) * np.outer(v[:, i], v[:, i]) for i in range(n))`` is V g(w) V^H, which is smooth where eigenvalues are
equal (`spectral`), and its terms are not. So terms that are added up, stacked or written side by side, and the trips
of a loop that does so (`all_trips`), are made at once, with a leading axis of terms, where they differ in nothing but
the places that they read single elements, rows and columns from. The sums of them have rules then (`summed`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from srcgrad.ir.core import Builder, Function, Literal, Operation, Region, Value, literal, zeros
from srcgrad.ir.ops.spectral import MatrixFunction
from srcgrad.ir.passes.all_trips import Batched, InOrder, added_to, all_at_once, applied, in_places, named, one_by_one
from srcgrad.ir.passes.independent import is_known
from srcgrad.ir.passes.layouts import Rewriting
from srcgrad.ir.passes.matching import emit, is_zero
from srcgrad.ir.passes.sums import Sums, chained
from srcgrad.ir.passes.values import MOST_NESTED, PARTS, Expression, NoMatch, full_bounds
from srcgrad.ir.transforms.interpret import Env, look_up
from srcgrad.ir.types import INT64, ArrayType

SMALL: Final = 1 << 14
"""The elements that an array of all terms may have, whatever there was before."""
CHAINS: Final = ("add", "mul", "slice_set")
"""What is applied to its own result, once for each term: an array is the first operand."""


def is_better(taken: Function, found: Function) -> bool:
    """Whether a function whose terms were made at once reads less of decompositions, and makes no larger arrays.

    What no rule knows would be an array for each term. A product of which some numbers may be nearly 0 reads values
    as it did, but has a rule.
    """
    reads, read = results_read(taken), results_read(found)
    less = reads < read or (reads == read and functions(taken) > functions(found))
    return less and largest(taken) <= max(SMALL, 2 * largest(found))


def functions(region: Region) -> int:
    """How many functions of matrices there are, that rules have made."""
    return sum(isinstance(operation.op, MatrixFunction) for operation in region.walk())


def largest(region: Region) -> int:
    """The elements of the largest array that is made."""
    sizes = [value.type.size for operation in region.operations for value in operation.results if is_known(value.type)]
    return max((*sizes, *(largest(inner) for operation in region.operations for inner in operation.regions)), default=0)


def results_read(region: Region) -> tuple[int, int]:
    """How often a region reads vectors of decompositions, and how often any of their results, for what has derivatives.

    No rule knows these reads, so that their derivatives lack something where values are equal.
    """
    vectors = results = 0
    values, live = list(region.results), set(region.results)
    for reader in reversed(region.operations):
        if reader.op.name != "stop_gradient" and (reader.op.effect or not live.isdisjoint(reader.results)):
            values += reader.operands
            live.update(reader.operands)
    for value in values:
        operation = value.producer
        if operation is not None and operation.op.name in PARTS:
            results += 1
            vectors += PARTS[operation.op.name][1][operation.results.index(value)] != "values"
    for operation in region.operations:
        for each in operation.regions:
            inner = results_read(each)
            vectors, results = vectors + inner[0], results + inner[1]
    return vectors, results


def terms_at_once(function: Function) -> Function:
    """The function with terms that can be made at once so; itself if there are none.

    >>> import srcgrad.ir.ops
    >>> from srcgrad.ir.parser import parse
    >>> from srcgrad.ir.passes.dce import dce
    >>> function = parse('''func @f(%a: f64[2,2]) -> (f64[1]) {
    ...   %0: f64[2] = eigvalsh %a
    ...   %1: f64[1] = slice %0 {starts=[0], limits=[1], strides=[1]}
    ...   %2: f64[1] = exp %1
    ...   %3: f64[1] = slice %0 {starts=[1], limits=[2], strides=[1]}
    ...   %4: f64[1] = exp %3
    ...   %5: f64[1] = add %2, %4
    ...   return %5
    ... }''')
    >>> print(dce(terms_at_once(function)))
    func @f(%a: f64[2,2]) -> (f64[1]) {
      %0: f64[2] = eigvalsh %a
      %1: f64[2,1] = reshape %0 {shape=[2,1]}
      %2: f64[2,1] = exp %1
      %3: f64[1] = reduce_sum %2 {axes=[0]}
      return %3
    }
    """
    writing = Sums()
    sums = writing.region(function)
    terms = Terms(sums.results)
    found = terms.region(sums)
    return found if terms.changed or writing.changed else function


def is_link(value: Operation, reader: Operation, place: int) -> bool:
    """Whether an operation goes on with the chain that another one is part of."""
    name = reader.op.name
    if name == "for":
        return value.op.name == "add" and place in added_to(reader)
    return name in CHAINS and value.op.name == name and (name != "slice_set" or place == 0)


class Terms(Rewriting):
    """Writes a function again: what is made of terms that are alike is made of all of them at once."""

    def __init__(self, results: Sequence[Value]) -> None:
        self.changed = False
        self.roots = set(results)
        """Values that something else than the next link of their chain reads, or that it reads twice."""
        self.kinds: dict[object, int] = {}
        self.kind_of: dict[Value, int] = {}
        self.spectral: set[Value] = set()
        """What has been made of a decomposition."""
        self.alike: dict[tuple[Value, ...], Batched | None] = {}
        self.of_places: set[Value] = set()
        """Of what is made at once, that of which terms are read from different places."""

    def run(self, builder: Builder, operations: Sequence[Operation], env: Env) -> None:
        for operation in operations:
            for place, value in enumerate(operation.operands):
                twice = operation.operands.count(value) > 1
                if value.producer is not None and (twice or not is_link(value.producer, operation, place)):
                    self.roots.add(value)
        super().run(builder, operations, env)

    def placed(self, builder: Builder, operation: Operation, env: Env) -> Sequence[Value]:
        operands = [look_up(env, value) for value in operation.operands]
        results = self.all_trips(builder, operation, operands) if operation.op.name == "for" else None
        if results is None:
            inner = [Terms(region.results) for region in operation.regions]
            regions = [each.region(region) for each, region in zip(inner, operation.regions, strict=True)]
            self.changed = self.changed or any(each.changed for each in inner)
            results = builder.emit_operation(operation.op, operands, operation.attrs, regions).results
        for value in results:
            self.note(value)
        if len(results) == 1 and operation.results[0] in self.roots:
            return [self.made_at_once(builder, results[0])]
        return results

    def all_trips(self, builder: Builder, loop: Operation, operands: Sequence[Value]) -> Sequence[Value] | None:
        """The results of a loop whose trips are terms; what goes on with a sum is written out as its others are."""
        try:
            going_on = any(operands[place] in self.spectral for place in added_to(loop))
            results = (one_by_one if going_on else all_at_once)(builder, loop, operands)
        except InOrder:
            return None
        self.changed = True
        return results

    # --- what values have in common -----------------------------------------------------------------------------------
    def note(self, value: Value) -> None:
        """Note of what kind a value is, and what it is made of: terms that are alike are of one kind."""
        pending = [value]
        while pending:
            value = pending[-1]
            operands = () if value.producer is None else value.producer.operands
            before = [operand for operand in operands if operand not in self.kind_of]
            if before and value not in self.kind_of:
                pending += before
                continue
            pending.pop()
            if value not in self.kind_of:
                self.kind_of[value] = self.kinds.setdefault(self.key(value), len(self.kinds))

    def key(self, value: Value) -> object:
        operation = value.producer
        if operation is None:
            return ("literal", value.type) if isinstance(value, Literal) else value
        name, operands, attrs = operation.op.name, operation.operands, operation.attrs
        if name in PARTS or not self.spectral.isdisjoint(operands):
            self.spectral.add(value)
        if operation.regions or operation.op.effect or len(operation.results) != 1:
            return value
        if name == "slice":
            return name, operands[0], value.type, attrs["strides"]
        return name, tuple(attrs.items()), tuple(self.kind_of[operand] for operand in operands)

    # --- what is made of terms ----------------------------------------------------------------------------------------
    def made_at_once(self, builder: Builder, value: Value) -> Value:
        """A value that terms are added up, stacked or written side by side for."""
        operation, found = value.producer, None
        if operation is not None and value in self.spectral:
            if operation.op.name == "add":
                found = self.summed(builder, value)
            elif operation.op.name == "mul" and value.type.size == 1:
                found = self.multiplied(builder, value)
            elif operation.op.name == "concatenate":
                found = self.stacked(builder, operation.operands, operation.attrs["axis"])
            elif operation.op.name == "slice_set":
                found = self.written(builder, value)
        if found is None:
            return value
        self.changed = True
        self.note(found)
        return found

    def summed(self, builder: Builder, value: Value) -> Value | None:
        """A sum of terms, of which those of one kind are added up at once."""
        total: Value | None = None
        rest: list[Value] = []
        for terms in self.by_kinds(value, "add"):
            there = len(terms) > 1 and terms[0] in self.spectral
            made = self.made_of_places(builder, terms) if there else None
            if made is None:
                rest += [term for term in terms if not is_zero(term)]
                continue
            one = emit(builder, "reduce_sum", made, axes=(0,))
            total = one if total is None else emit(builder, "add", total, one)
        for term in rest:
            total = None if total is None else emit(builder, "add", total, term)
        return total

    def by_kinds(self, value: Value, op: str) -> Sequence[list[Value]]:
        """What is added up, or multiplied, in groups of terms that are alike."""
        kinds: dict[int, list[Value]] = {}
        for term in chained(value, op):
            self.note(term)
            kinds.setdefault(self.kind_of[term], []).append(term)
        return list(kinds.values())

    def multiplied(self, builder: Builder, value: Value) -> Value | None:
        """A product of numbers, of which those that are one function of all values are multiplied at once."""
        found: list[Value] = []
        groups = self.by_kinds(value, "mul")
        for terms in groups:
            one = self.product_of_all(builder, terms) if len(terms) > 1 and terms[0] in self.spectral else None
            found += terms if one is None else [one]
        if len(found) == sum(map(len, groups)):
            return None
        total = found[0]
        for each in found[1:]:
            total = emit(builder, "mul", total, each)
        return total

    def product_of_all(self, builder: Builder, terms: Sequence[Value]) -> Value | None:
        made = self.made_of_places(builder, terms)
        if made is None:
            return None
        row = emit(builder, "reshape", made, shape=(len(terms),))
        expression = Expression(builder)
        try:
            expression.read(row)
        except NoMatch:
            return None
        if expression.source is None or expression.size() != len(terms):
            return None
        product = emit(builder, "reduce_prod", row, axes=(0,))
        return emit(builder, "reshape", product, shape=terms[0].type.shape) if terms[0].type.rank else product

    def stacked(self, builder: Builder, values: Sequence[Value], axis: int) -> Value | None:
        """Terms one after the other, each of size 1 along the axis."""
        if len(values) < 2 or any(value.type.shape[axis] != 1 for value in values):
            return None
        made = self.made_of_places(builder, values)
        if made is None:
            return None
        shape = values[0].type.shape
        value = emit(builder, "reshape", made, shape=(len(values), *shape[:axis], *shape[axis + 1 :]))
        perm = (*range(1, axis + 1), 0, *range(axis + 1, len(shape)))
        return emit(builder, "transpose", value, perm=perm) if axis else value

    def written(self, builder: Builder, value: Value) -> Value | None:
        """Terms that are written into an array, one for each place of an axis or of the diagonal of zeros."""
        terms: dict[tuple[int, ...], Value] = {}
        shape, size = value.type.shape, None
        while (operation := value.producer) is not None and operation.op.name == "slice_set":
            before, term = operation.operands
            if term.type.shape != (size := size or term.type.shape) or set(operation.attrs["strides"]) != {1}:
                return None
            terms.setdefault(operation.attrs["starts"], term)
            value = before
        last = max(terms)
        varies = [axis for axis, start in enumerate(last) if start]
        places = [tuple(k if axis in varies else 0 for axis in range(len(shape))) for k in range(len(terms))]
        if not varies or sorted(terms) != places:
            return None
        values = [terms[place] for place in places]
        if len(varies) == 1 and shape == tuple(len(terms) if k == varies[0] else n for k, n in enumerate(size or ())):
            return self.stacked(builder, values, varies[0])
        if size != (1, 1) or not is_zero(value) or len(terms) != min(value.type.static_shape):
            return None
        row = self.stacked(builder, [emit(builder, "reshape", term, shape=(1,)) for term in values], 0)
        index = literal(np.arange(len(terms)), ArrayType(INT64, (len(terms),)))
        return None if row is None else emit(builder, "scatter_set", zeros(value.type), row, index, index, axis=0)

    def made_of_places(self, builder: Builder, values: Sequence[Value]) -> Value | None:
        """Terms at once that are read from different places: sums for one number or another are none."""
        made = self.batched(builder, tuple(values))
        return made[0] if made is not None and made[0] in self.of_places else None

    # --- terms at once ------------------------------------------------------------------------------------------------
    def batched(self, builder: Builder, values: tuple[Value, ...], depth: int = 0) -> Batched | None:
        """Values that are alike, with a leading axis; None if they are not."""
        if values not in self.alike:
            self.alike[values] = self.find_batched(builder, values, depth)
        return self.alike[values]

    def find_batched(self, builder: Builder, values: tuple[Value, ...], depth: int) -> Batched | None:
        first, count = values[0], len(values)
        if all(value == first for value in values):
            return first, False
        if depth > MOST_NESTED or any(value.type != first.type for value in values):
            return None
        if all(isinstance(value, Literal) for value in values):
            shape = first.type.static_shape
            numbers = np.stack([np.broadcast_to(v.value, shape) for v in values if isinstance(v, Literal)])
            return literal(numbers, first.type.with_shape((count, *shape))), True
        made = [value.producer for value in values if value.producer is not None]
        if len(made) < count or any(each.op is not made[0].op for each in made):
            return None
        operation = made[0]
        if operation.op.name == "slice":
            found = picked_at_once(builder, made)
            self.of_places.update([] if found is None else [found[0]])
            return found
        if operation.regions or operation.op.effect or len(operation.results) != 1:
            return None
        if any(each.attrs != operation.attrs or len(each.operands) != len(operation.operands) for each in made):
            return None
        columns = zip(*(each.operands for each in made), strict=True)
        operands = [self.batched(builder, column, depth + 1) for column in columns]
        known = [each for each in operands if each is not None]
        if len(known) < len(operands) or not any(flag for _, flag in known):
            return None
        result = applied(builder, operation, known, count)
        if any(flag and value in self.of_places for value, flag in known):
            self.of_places.add(result[0])
        return result


def picked_at_once(builder: Builder, made: Sequence[Operation]) -> Batched | None:
    """Elements, rows or columns of one array, which differ in where along one axis they stand."""
    array, first, shape = made[0].operands[0], made[0].attrs, made[0].results[0].type.shape
    if any(each.operands[0] is not array or each.attrs["strides"] != first["strides"] for each in made):
        return None
    starts = np.array([each.attrs["starts"] for each in made])
    axes = np.flatnonzero((starts != starts[0]).any(axis=0))
    if len(axes) != 1 or shape[axes[0]] != 1:
        return None
    axis = int(axes[0])
    bounds = [list(first[name]) for name in named(full_bounds(shape))]
    value = in_places(builder, array, bounds, [int(place) for place in starts[:, axis]], axis)
    if axis:
        value = emit(builder, "transpose", value, perm=(axis, *(k for k in range(len(shape)) if k != axis)))
    return emit(builder, "reshape", value, shape=(len(made), *shape)), True
