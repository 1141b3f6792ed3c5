"""Loops that are products of matrices are these, in place of one trip after the other.

``for r in range(n): t[r] = t[r] @ B`` is one product, and the loops of ``for i …: for k …: C[i] += A[i, k] * B[k]`` are
one: the inner loop first, whose sum over k is a product of a row and a matrix, then the outer one, which makes that of
all rows. What else their trips do is done for all of them at once, on arrays with an axis of trips. It is done once
nothing is to be differentiated any more: a derivative of the product would read rows that contribute nothing, and 0
times inf is nan.

That holds for loops of a known number of trips that do nothing but compute (`independent`), if what a trip makes is
not so large that arrays of it for all trips would cost more than the loop does. Products that are added up are those of
the loop. Sums are taken in another order, so they differ from the loop's by rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from srcgrad.ir.core import Builder, Function, Literal, Operation, Region, Value, literal, zeros
from srcgrad.ir.opdef import REGISTRY, Op, Term, broadcast_to
from srcgrad.ir.passes.as_before import as_before
from srcgrad.ir.passes.dce import dce
from srcgrad.ir.passes.distributed import distributed
from srcgrad.ir.passes.elements import elements_as_numbers
from srcgrad.ir.passes.fold import Evaluator
from srcgrad.ir.passes.independent import Addition, Factor, InOrder, Product, Spot, Trips, is_known
from srcgrad.ir.passes.layouts import INDEXED, WRITES, Rewriting, indices_of
from srcgrad.ir.passes.loops import has_control, tidy
from srcgrad.ir.passes.moved import without_moves
from srcgrad.ir.passes.places import Places
from srcgrad.ir.passes.rewrite import rewrite
from srcgrad.ir.passes.rules import FINAL
from srcgrad.ir.passes.unmasked import without_masks_of_sums
from srcgrad.ir.transforms.batch import with_leading_axis
from srcgrad.ir.transforms.interpret import Env, inline, look_up
from srcgrad.ir.types import INT64, ArrayType, Shape

DEEPEST: Final = 4
"""Of loops in loops, how many are looked at, from the innermost one on."""
SMALL: Final = 1 << 14
"""The elements that all trips of a loop may make of one value, whatever it is given."""
TIMES: Final = 2
"""How often as many as there are of the largest array that a loop is given they may be."""
Axes = tuple[int, ...]


def trips_at_once(function: Function) -> Function:
    """The function without the loops that are made at once; itself if there are none.

    >>> import srcgrad.ir.ops
    >>> from srcgrad.ir.parser import parse
    >>> function = parse('''func @f(%x: f64[9], %a: f64[4], %y: f64[4,9]) -> (f64[9]) {
    ...   %0: f64[9] = for %x, %a, %y {trips=4, carries=1, consts=0, reverse=false}
    ...     body (%k: i64[], %s: f64[9], %a: f64[], %y: f64[9]) {
    ...       %0: f64[9] = broadcast %a {shape=[9], dims=[]}
    ...       %1: f64[9] = mul %0, %y
    ...       %2: f64[9] = add %s, %1
    ...       yield %2
    ...     }
    ...   return %0
    ... }''')
    >>> print(trips_at_once(function))
    func @f(%x: f64[9], %a: f64[4], %y: f64[4,9]) -> (f64[9]) {
      %0: f64[9] = dot_general %a, %y {contract=[[0],[0]], batch=[[],[]]}
      %1: f64[9] = add %x, %0
      return %1
    }
    """
    if not has_control(function):
        return function
    rewriting = AtOnce()
    found = rewriting.region(function)
    return tidy(dce(found)) if rewriting.changed else function


def is_candidate(operation: Operation) -> bool:
    """Whether an operation is a loop of a known number of trips without control flow in them."""
    if operation.op.name != "for" or not operation.attrs["trips"] or operation.attrs.get("lifted"):
        return False
    return not any(inner.regions for inner in operation.regions[0].operations)


class AtOnce(Rewriting):
    """Writes a function again: loops that can be made at once with all loops in them, outermost ones first."""

    def __init__(self, within: bool = False) -> None:
        self.within = within
        """Whether a loop goes on around what is written."""
        self.changed = False

    def placed(self, builder: Builder, operation: Operation, env: Env) -> Sequence[Value]:
        operands = [look_up(env, value) for value in operation.operands]
        if operation.op.name == "for":
            found = at_once(operation, self.within)
            if found is None and not self.within and operation.attrs["trips"] and not operation.attrs.get("lifted"):
                found = distributed(operation, most_made(operation.operands), partial(at_once, within=False))
            if found is not None:
                self.changed = True
                given = zip(operation.operands, operands, strict=True)
                return inline(builder, found, [new for old, new in given if not isinstance(old, Literal)])
        inner = AtOnce(self.within or operation.op.name in ("for", "while"))
        regions = [inner.region(region) for region in operation.regions]
        self.changed = self.changed or inner.changed
        return builder.emit_operation(operation.op, operands, operation.attrs, regions).results


def at_once(loop: Operation, within: bool) -> Function | None:
    """A loop as a function whose operations are not loops, one of them a product; None if it is not to be made so."""
    if not all(operation.op.name == "for" for operation in walk(loop) if operation.regions):
        return None
    if within and not all(map(is_of_numbers, walk(loop))):
        return None
    builder = Builder()
    builder.span = loop.span
    operands = [value if isinstance(value, Literal) else builder.param(value.type) for value in loop.operands]
    results = builder.emit_operation(loop.op, operands, loop.attrs, loop.regions).results
    function = builder.function("loop", results)
    if within:
        return without_loops(function)
    found = flattened(function)
    changed = as_before(loop) if found is None else None
    return found if changed is None else flattened(changed)


def flattened(function: Function) -> Function | None:
    """A function of one loop without it, or with it where numbers are not finite alone; None if it stays."""
    found = without_loops(function)
    return where_finite(function) if found is None else found


def arrays_as_before(function: Function) -> Function:
    """The function with loops that read arrays as they were before, where all trips of these can be made at once then.

    That is before it is differentiated: rows that no trip has written yet are not kept for the derivative either.
    """
    return AsBefore().region(function)


class AsBefore(Rewriting):
    """Writes a function again with loops that read arrays as they were."""

    def placed(self, builder: Builder, operation: Operation, env: Env) -> Sequence[Value]:
        operands = [look_up(env, value) for value in operation.operands]
        changed = as_before(operation) if operation.op.name == "for" else None
        if changed is not None and flattened(tidy(rewrite(changed, FINAL))) is not None:
            return inline(builder, changed, [value for value in operands if not isinstance(value, Literal)])
        return builder.emit_operation(operation.op, operands, operation.attrs, operation.regions).results


def rows_apart(function: Function) -> Function:
    """The function with rows that trips share as values of their own, but in loops that are products."""
    return elements_as_numbers(function, True, loops_of_products)


def loops_of_products(function: Function) -> set[Operation]:
    """The loops that all trips can be made at once of, and those in them."""
    found: set[Operation] = set()
    for operation in function.walk():
        known = operation.op.name == "for" and operation.attrs["trips"] and not operation.attrs.get("lifted")
        if known and operation not in found and at_once(operation, False) is not None:
            found.update([operation, *walk(operation)])
    return found


def without_moved(function: Function, evaluate: Evaluator) -> Function:
    """The function with loops that hand on nothing which they only move about, where they can be made at once then."""
    return WithoutMoved(evaluate).region(function)


class WithoutMoved(Rewriting):
    """Writes a function again with loops that hand on nothing which they only move about."""

    def __init__(self, evaluate: Evaluator) -> None:
        self.evaluate = evaluate

    def placed(self, builder: Builder, operation: Operation, env: Env) -> Sequence[Value]:
        operands = [look_up(env, value) for value in operation.operands]
        found = None
        if is_candidate(operation):
            found = without_moves(operation, most_made((*operation.operands, *operation.results)), self.evaluate)
        if found is not None:
            found = tidy(rewrite(found, FINAL))
            if made_at_once(found) and at_once(operation, False) is None:
                given = zip(operation.operands, operands, strict=True)
                return inline(builder, found, [new for old, new in given if not isinstance(old, Literal)])
        return builder.emit_operation(operation.op, operands, operation.attrs, operation.regions).results


def made_at_once(function: Function) -> bool:
    """Whether all loops of a function are products."""
    loops = [operation for operation in function.operations if operation.op.name == "for"]
    return all(at_once(loop, False) is not None for loop in loops)


def without_loops(function: Function, unmasked: bool = False) -> Function | None:
    """A function of one loop without it, of which one operation is a product; None if there is none."""
    for _ in range(DEEPEST):
        flattening = Flattening(Places(function), unmasked)
        function = flattening.region(function)
        if not has_control(function):
            return function if any(map(is_product, function.operations)) else None
        if not flattening.changed:
            return None
        function = tidy(dce(function))
    return None


def where_finite(function: Function) -> Function | None:
    """A function of one loop that is made at once where the factors of its sums are finite, and is the loop elsewhere.

    None if no mask in it can be on factors, or if it takes products to know whether these are finite.
    """
    if any(operation.op.name == "for" and not operation.attrs["trips"] for operation in function.walk()):
        return None
    moved = without_masks_of_sums(function)
    flat = None if moved is None else without_loops(moved, True)
    if flat is None:
        return None
    holds = dce(Function("holds", flat.params, flat.operations, flat.results[-1:]))
    if any(operation.op.name == "dot_general" for operation in holds.operations):
        return None
    builder = Builder()
    builder.span = function.operations[0].span
    params = [builder.param(param.type) for param in function.params]
    (predicate,) = inline(builder, holds, params)
    then = dce(Function("then", flat.params, flat.operations, flat.results[:-1]))
    regions = [Region(each.params, each.operations, each.results) for each in (then, function)]
    return builder.function("loop", builder.emit_operation(REGISTRY["cond"], [predicate, *params], {}, regions).results)


def most_made(given: Sequence[Value]) -> int:
    """The elements that all trips of a loop may make of one value."""
    return max(SMALL, TIMES * max((value.type.size for value in given if is_known(value.type)), default=0))


def is_of_numbers(operation: Operation) -> bool:
    """Whether an operation makes numbers, or writes such to an array."""
    return operation.op.name in ("for", *WRITES) or all(not result.type.rank for result in operation.results)


def is_product(operation: Operation) -> bool:
    """Whether an operation is one product of matrices, not a stack of such."""
    return operation.op.name == "dot_general" and not operation.attrs["batch"][0]


def walk(operation: Operation) -> Iterator[Operation]:
    yield operation
    for region in operation.regions:
        yield from region.walk()


class Flattening(Rewriting):
    """Writes a function again, without its innermost loops where they can be made at once."""

    def __init__(self, places: Places, unmasked: bool) -> None:
        self.places = places
        self.unmasked = unmasked
        """Whether what is added where masks hold is 0 elsewhere, if it is a product."""
        self.changed = False

    def placed(self, builder: Builder, operation: Operation, env: Env) -> Sequence[Value]:
        operands = [look_up(env, value) for value in operation.operands]
        if is_candidate(operation):
            try:
                made = Made(Trips(self.places, operation, self.unmasked), operands, builder)
            except InOrder:
                pass
            else:
                self.changed = True
                builder.operations.extend(made.builder.operations)
                return made.results
        regions = [self.region(region) for region in operation.regions]
        return builder.emit_operation(operation.op, operands, operation.attrs, regions).results


class Made:
    """What all trips of a loop make, and what the loop gives.

    Values that vary have a leading axis of trips.

    Raises:
        InOrder: arrays of it would be too large.
    """

    def __init__(self, trips: Trips, given: Sequence[Value], outer: Builder) -> None:
        self.trips = trips
        self.builder = Builder()
        self.builder.span = outer.span
        body, self.count = trips.body, trips.count
        self.env: Env = dict(zip(body.params[1:], given, strict=True))
        self.env[body.params[0]] = literal(np.arange(self.count), ArrayType(INT64, (self.count,)))
        handed = len(trips.carried) + trips.loop.attrs["consts"]
        self.batched = {body.params[0], *body.params[1 + handed :]}
        self.largest = most_made((*given, *trips.loop.results))
        for operation in body.operations:
            if operation not in trips.skipped:
                self.builder.span = operation.span or outer.span
                self.run(operation)
        self.results = [self.result(position, value) for position, value in enumerate(body.results)]

    def emit(self, name: str, operands: Sequence[Value], **attrs: Any) -> Value:
        return self.builder.emit(REGISTRY[name], operands, attrs)

    def value(self, value: Value) -> Value:
        return look_up(self.env, value)

    def run(self, operation: Operation) -> None:
        result = operation.results[0]
        if result in self.trips.versions:
            self.env[result] = self.written(operation)
        elif operation.op.name in INDEXED[:1] and operation.operands[0] not in self.batched:
            self.keep(result, self.read(operation))
        else:
            self.run_plainly(operation)

    def keep(self, old: Value, new: Value) -> None:
        """Note what a value is in all trips."""
        if new.type.size > self.largest:
            raise InOrder
        if new.name is None and new.producer is not None:
            new.name = old.name
        self.env[old] = new
        if new.type != old.type:
            self.batched.add(old)

    def run_plainly(self, operation: Operation) -> None:
        operands = [self.value(value) for value in operation.operands]
        flags = [value in self.batched for value in operation.operands]
        if any(flags):
            terms = [Term(self.builder, value) for value in operands]
            results = [found.value for found in operation.op.batch_operation(self.count, terms, flags, operation)]
        else:
            results = list(self.builder.emit_operation(operation.op, operands, operation.attrs).results)
        for old, new in zip(operation.results, results, strict=True):
            self.keep(old, new)

    def result(self, position: int, value: Value) -> Value:
        """A result of the loop."""
        found = self.value(value)
        if position >= len(self.trips.carried):
            return self.full(value)
        if value not in self.batched:
            return found
        last = 0 if self.trips.loop.attrs["reverse"] else self.count - 1
        return self.emit("gather", [found, literal(last, ArrayType(INT64))], axis=0)

    # --- arrays that are handed on ------------------------------------------------------------------------------------

    def read(self, operation: Operation) -> Value:
        """A read of an array that all trips share, by indices of rank 0 or not."""
        spot = self.trips.spot(operation)
        array = self.value(operation.operands[0])
        start = self.straight(spot)
        indices = indices_of(operation)
        axis = operation.attrs["axis"]
        others = [index for k, index in enumerate(indices, axis) if k != spot.axis]
        apart = spot.axis in (axis, axis + len(indices) - 1) and not any(index in self.batched for index in others)
        if start is None or not apart:
            operands = [Term(self.builder, self.value(value)) for value in operation.operands]
            flags = [value in self.batched for value in operation.operands]
            if not any(flags):
                return self.builder.emit(operation.op, [term.value for term in operands], operation.attrs)
            return operation.op.batch_operation(self.count, operands, flags, operation)[0].value
        if others:
            array = self.emit("gather", [array, *map(self.value, others)], axis=axis + (spot.axis == axis))
        return self.moved(self.part(array, axis, start), axis, 0)

    def straight(self, spot: Spot) -> int | None:
        """The first of the indices of the trips, if these follow each other."""
        factors = list(spot.sum.factors.items())
        if len(factors) != 1 or factors[0][0].value is not self.trips.index or factors[0][1] != 1:
            return None
        return spot.sum.constant

    def part(self, array: Value, axis: int, start: int) -> Value:
        """As many columns as there are trips."""
        if array.type.shape[axis] == self.count:
            return array
        return self.builder.emit(REGISTRY["slice"], [array], self.bounds(array, axis, start))

    def bounds(self, array: Value, axis: int, start: int) -> dict[str, Axes]:
        shape = array.type.static_shape
        return {
            "starts": tuple(start if k == axis else 0 for k in range(len(shape))),
            "limits": tuple(start + self.count if k == axis else size for k, size in enumerate(shape)),
            "strides": (1,) * len(shape),
        }

    def moved(self, value: Value, source: int, target: int) -> Value:
        if source == target:
            return value
        order = [axis for axis in range(value.type.rank) if axis != source]
        order.insert(target, source)
        producer = value.producer
        if producer is not None and producer.op.name == "transpose":
            value, order = producer.operands[0], [producer.attrs["perm"][axis] for axis in order]
            if order == sorted(order):
                return value
        return self.emit("transpose", [value], perm=tuple(order))

    def full(self, value: Value) -> Value:
        """What a value of the body is in each trip."""
        found = self.value(value)
        if value in self.batched:
            return found
        if found.type.size * self.count > self.largest:
            raise InOrder
        return with_leading_axis(self.builder, found, self.count)

    def written(self, operation: Operation) -> Value:
        """An array after what all trips write to it."""
        addition = self.trips.additions.get(operation)
        if addition is None:
            return self.put(operation.op, operation, self.full(operation.operands[1]))
        if addition.array is not None:
            return self.increased(self.value(addition.array), addition)
        spot = self.trips.spot(operation)
        if spot.fixed:
            return self.added_at(operation, addition)
        if addition.mask is None:
            return self.put(REGISTRY["scatter_add"], operation, self.signed(self.full(addition.term), addition.sign))
        if spot.axis is None:
            raise InOrder
        return self.added_where(operation, addition, spot)

    def put(self, op: Op, operation: Operation, part: Value) -> Value:
        """An array with a part of each trip written, or added, where an operation of the trips writes it."""
        array, axis, indices = self.value(operation.operands[0]), operation.attrs["axis"], indices_of(operation)
        spot = self.trips.spot(operation)
        start = self.straight(spot)
        others = [index for k, index in enumerate(indices, axis) if k != spot.axis]
        along = self.moved(part, 0, axis)
        if start is not None and not others:
            if op.name == "scatter_add":
                along = self.emit("add", [self.part(array, axis, start), along])
            return self.replaced(array, along, axis, start)
        ends = (axis, axis + len(indices) - 1)
        if start is None or spot.axis is None or spot.axis not in ends or array.type.shape[spot.axis] != self.count:
            others = []
        if not others or any(index in self.batched for index in others):
            return self.builder.emit(op, [array, along, *map(self.full, indices)], {"axis": axis})
        return self.builder.emit(op, [array, along, *map(self.value, others)], {"axis": axis + (spot.axis == axis)})

    def replaced(self, array: Value, part: Value, axis: int, start: int) -> Value:
        """An array with as many columns as there are trips replaced."""
        if part.type == array.type:
            return part
        return self.builder.emit(REGISTRY["slice_set"], [array, part], self.bounds(array, axis, start))

    def added_where(self, operation: Operation, addition: Addition, spot: Spot) -> Value:
        """An array to which each trip adds at its own place, where a mask holds."""
        assert addition.read is not None and addition.mask is not None
        start, axis = self.straight(spot), operation.attrs["axis"]
        term, mask = self.full(addition.term), self.full(addition.mask)
        if start is None or len(indices_of(operation)) > 1:
            rows = self.read(addition.read)
            return self.put(REGISTRY["scatter_set"], operation, self.total(rows, term, addition.sign, mask))
        array = self.value(operation.operands[0])
        term, mask = self.moved(term, 0, axis), self.moved(mask, 0, axis)
        found = self.total(self.part(array, axis, start), term, addition.sign, mask)
        return self.replaced(array, found, axis, start)

    # --- sums over the trips ------------------------------------------------------------------------------------------

    def added_at(self, operation: Operation, addition: Addition) -> Value:
        """An array to which all trips add at the same place."""
        array, indices = self.value(operation.operands[0]), list(map(self.value, indices_at(operation)))
        if addition.read is None:
            total = self.signed(self.sum(addition.term), addition.sign)
            return self.builder.emit(operation.op, [array, total, *indices], operation.attrs)
        part = self.builder.emit(addition.read.op, [array, *indices], addition.read.attrs)
        found = self.reshaped(self.increased(self.reshaped(part, addition.term.type), addition), part.type)
        return self.builder.emit(operation.op, [array, found, *indices], operation.attrs)

    def reshaped(self, value: Value, type: ArrayType) -> Value:
        return value if value.type == type else self.emit("reshape", [value], shape=type.shape)

    def increased(self, base: Value, addition: Addition) -> Value:
        """What it is to which all trips add."""
        mask = addition.mask
        if addition.term in self.trips.masks:
            given, axes = self.trips.masks[addition.term]
            reached = self.spread(self.emit("reduce_or", [self.full(given)], axes=(0,)), axes, base.type.shape)
            return self.total(base, self.sum(addition.term), addition.sign, reached)
        if mask not in self.batched or mask is None:
            return self.total(base, self.sum(addition.term), addition.sign, None if mask is None else self.value(mask))
        term = self.full(addition.term)
        chosen = self.emit("select", [self.value(mask), term, zeros(term.type)])
        added = self.emit("reduce_sum", [chosen], axes=(0,))
        return self.total(base, added, addition.sign, self.emit("reduce_or", [self.value(mask)], axes=(0,)))

    def total(self, base: Value, term: Value, sign: int, mask: Value | None) -> Value:
        """A value to which a term is added, or of which it is taken, where a mask holds."""
        found = self.emit("add" if sign > 0 else "sub", [base, term])
        return found if mask is None else self.emit("select", [mask, found, base])

    def signed(self, value: Value, sign: int) -> Value:
        return value if sign > 0 else self.emit("neg", [value])

    def sum(self, term: Value) -> Value:
        """The sum of a term over all trips."""
        products = self.trips.products.get(term)
        if products is None:
            return self.sum_of_array(term)
        total = None
        for product in products:
            found = self.sum_of_product(product, term.type)
            total = self.signed(found, product.sign) if total is None else self.total(total, found, product.sign, None)
        assert total is not None
        return total

    def sum_of_array(self, term: Value) -> Value:
        if term in self.batched:
            return self.emit("reduce_sum", [self.value(term)], axes=(0,))
        if term.type.dtype.kind not in "iu":  # times their count would be rounded once, not in each trip
            raise InOrder
        found = self.value(term)
        return self.emit("mul", [found, literal(self.count, found.type)])

    def sum_of_product(self, product: Product, type: ArrayType) -> Value:
        """The sum of a product over all trips, as one of matrices."""
        sides = sorted((product.left, product.right), key=has_own)  # a loop round it varies numbers
        order = tuple(axis for _, axes in sides for axis in axes if axis >= 0)
        operands = [self.full(value) for value, _ in sides]
        shared = sorted({axis for _, axes in sides for axis in axes if axis < 0}, reverse=True)
        contract = tuple((0, *(1 + axes.index(axis) for axis in shared)) for _, axes in sides)
        found = self.emit("dot_general", operands, contract=contract, batch=((), ()))
        total = self.spread(found, order, type.shape)
        if product.scale is not None:
            value, axes = product.scale
            total = self.emit("mul", [total, self.spread(self.value(value), axes, type.shape)])
        if product.mask is None:
            return total
        value, axes = product.mask
        return self.emit("select", [self.spread(self.value(value), axes, type.shape), total, zeros(total.type)])

    def spread(self, value: Value, order: Axes, shape: Shape) -> Value:
        """An array of a shape that holds the elements of a value, whose axes are these of it."""
        value = self.transposed(value, tuple(sorted(range(len(order)), key=order.__getitem__)))
        return broadcast_to(Term(self.builder, value), shape, tuple(sorted(order))).value

    def transposed(self, value: Value, perm: Axes) -> Value:
        return value if perm == tuple(range(len(perm))) else self.emit("transpose", [value], perm=perm)


def indices_at(operation: Operation) -> Sequence[Value]:
    return indices_of(operation) if operation.op.name in INDEXED else ()


def has_own(factor: Factor) -> bool:
    """Whether a product has an axis of a factor."""
    return any(axis >= 0 for axis in factor[1])
