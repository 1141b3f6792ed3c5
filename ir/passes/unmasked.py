"""Sums in which a mask leaves products out, as sums of all products with zeros among the factors.

``np.where(m, a * b, 0)`` is ``a * np.where(m, b, 0)`` wherever a is finite: 0 times inf is nan. So what loops add up
under masks, as ``C[i, :i + 1] += A[i, k] * B[k, :i + 1]`` and the derivatives of such loops do, is products of matrices
(`at_once`) of finite numbers, and the loop of others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from srcgrad.ir.core import Builder, Function, Operation, Region, Value, literal, zeros
from srcgrad.ir.opdef import REGISTRY, Term, broadcast_to
from srcgrad.ir.passes.dce import dce
from srcgrad.ir.passes.independent import is_zero, source
from srcgrad.ir.passes.layouts import Rewriting
from srcgrad.ir.passes.rewrite import AnyRegion, rebuilt
from srcgrad.ir.transforms.interpret import Env, look_up
from srcgrad.ir.types import ArrayType

SPREAD: Final = ("broadcast", "transpose", "reshape")
"""What holds the elements of its operand and no others."""
SUMS: Final = ("add", "sub", "neg", "reduce_sum", "scatter_add")
"""What cannot tell one zero from another, once it is added to something."""


def without_masks_of_sums(function: Function) -> Function | None:
    """The function with masks on factors, and one more result: whether it is the same function, of its arguments.

    None if there is no such mask in its loops.
    """
    moving = Moved(None, {}, 0, False)
    moving.region(function)
    return dce(Moved(None, {}, 0, True).region(function)) if moving.guards else None


class Moved(Rewriting):
    """Writes a region again; that of a loop gives one more column, if something moves in it: whether it may.

    Attributes:
        scales: whether what is multiplied after sums are taken, not before, must be finite and overflow nowhere.
        guards: what must hold.
    """

    def __init__(self, loop: Operation | None, outer: Mapping[Value, int], depth: int, scales: bool) -> None:
        self.loop, self.depth, self.scales = loop, depth, scales
        self.guards: list[Value] = []
        self.level: dict[Value, int] = {}
        """The depth of the innermost loop in which a value differs from trip to trip."""
        self.seen: set[Value] = set()
        """What something other than a sum reads."""
        self.added: set[Value] = set()
        """What all trips add to the same place, and nothing else reads: a mask that they share is that of the sum."""
        if loop is None:
            return
        body, attrs = loop.regions[0], loop.attrs
        self.seen.update(body.results)
        first = attrs["carries"]
        constants = zip(body.params[1 + first :], loop.operands[first : first + attrs["consts"]], strict=False)
        self.level.update(dict.fromkeys(body.params, depth))
        self.level.update((param, outer.get(operand, 0)) for param, operand in constants)
        for operation in body.operations:
            if operation.op.name not in SUMS:
                self.seen.update(operation.operands)
            highest = max((self.level.get(operand, 0) for operand in operation.operands), default=0)
            self.level.update(dict.fromkeys(operation.results, highest))
        self.find_added(body)

    def find_added(self, body: Region) -> None:
        counts = Counter(value for operation in body.operations for value in operation.operands)
        counts.update(body.results)
        for operation in reversed(body.operations):
            if len(operation.results) != 1:
                continue
            name, (result,) = operation.op.name, operation.results
            terms: Sequence[Value] = ()
            if name == "scatter_add" and all(self.level.get(index, 0) < self.depth for index in operation.operands[2:]):
                terms = operation.operands[1:2]
            elif name in ("add", "sub", "neg") and (result in self.added or result in body.results):
                terms = [value for value in operation.operands if value not in body.params]
            self.added.update(value for value in terms if counts[value] == 1)

    def region(self, region: AnyRegion) -> AnyRegion:
        builder = Builder()
        env: Env = {param: param for param in region.params}
        self.run(builder, region.operations, env)
        results = [look_up(env, value) for value in region.results]
        if self.guards:
            holds = self.guards[0]
            for guard in self.guards[1:]:
                holds = builder.emit(REGISTRY["logical_and"], [holds, guard])
            results.append(holds)
        return rebuilt(region, builder.operations, results)

    def placed(self, builder: Builder, operation: Operation, env: Env) -> Sequence[Value]:
        operands = [look_up(env, value) for value in operation.operands]
        if operation.op.name == "for":
            return self.around(builder, operation, operands)
        found = None
        self.require_of_scale(builder, operation, env)
        if operation.op.name == "select" and self.loop is not None:
            found = self.chosen(builder, operation, env)
        elif operation.op.name == "reduce_sum":
            found = self.summed(builder, operation, operands[0])
        elif operation.op.name == "dot_general" and self.loop is not None:
            found = self.of_two(builder, operation, env)
        if found is not None:
            return [found]
        return builder.emit_operation(operation.op, operands, operation.attrs, operation.regions).results

    def around(self, builder: Builder, loop: Operation, operands: Sequence[Value]) -> Sequence[Value]:
        inner = Moved(loop, self.level, self.depth + 1, self.scales)
        body: Region = inner.region(loop.regions[0])
        results = builder.emit_operation(loop.op, operands, loop.attrs, [body]).results
        if inner.guards:
            self.guards.append(builder.emit(REGISTRY["reduce_and"], [results[-1]], {"axes": (0,)}))
        return results[: len(loop.results)]

    def chosen(self, builder: Builder, operation: Operation, env: Env) -> Value | None:
        """What is chosen by a mask: a product or nothing, or a sum with one or what it is added to."""
        mask, value, other = operation.operands
        if not mask.type.rank or (self.level.get(mask, 0) < self.depth and operation.results[0] in self.added):
            return None
        if is_zero(other):
            seen = operation.results[0] in self.seen
            return None if seen else self.masked(builder, value, mask, env)
        added = value.producer
        if added is None or added.op.name not in ("add", "sub") or other not in added.operands:
            return None
        if added.op.name == "sub" and added.operands[0] is not other:
            return None
        place = 1 if added.operands[0] is other else 0
        term = self.masked(builder, added.operands[place], mask, env)
        if term is None:
            return None
        operands = [look_up(env, operand) for operand in added.operands]
        operands[place] = term
        total = builder.emit(added.op, operands)
        return builder.emit(operation.op, [look_up(env, mask), total, look_up(env, other)])

    def masked(self, builder: Builder, value: Value, mask: Value, env: Env) -> Value | None:
        """A value where a mask holds and else 0, if factors of it can be so; None if it is no sum of products."""
        operation = value.producer
        if operation is None or value not in env or value.type.dtype.kind not in "fc":
            return None
        if operation.op.name in ("neg", "add", "sub"):
            terms = [self.masked(builder, operand, mask, env) for operand in operation.operands]
            known = [term for term in terms if term is not None]
            return builder.emit(operation.op, known) if len(known) == len(terms) else None
        if is_outer(operation):
            return self.outer(builder, operation, mask, env)
        if operation.op.name != "mul":
            return None
        self.require_of_scale(builder, operation, env)
        left, right = operation.operands
        if not self.level.get(right, 0) and self.level.get(left, 0):
            product = self.masked(builder, left, mask, env)
            if product is not None:
                self.require_finite(builder, look_up(env, right))
                return builder.emit(operation.op, [product, look_up(env, right)])
        kept = self.of_one_kind(mask, right, left)
        factors = [right, left] if kept else [left, right]
        self.require_finite(builder, look_up(env, factors[0]))
        zeroed = self.zeroed(builder, look_up(env, mask), look_up(env, factors[1]))
        operands = [look_up(env, factors[0]), zeroed]
        return builder.emit(operation.op, operands[::-1] if kept else operands)

    def outer(self, builder: Builder, operation: Operation, mask: Value, env: Env) -> Value | None:
        """A product of all pairs, with zeros in the factor whose axes are those along which a mask differs."""
        given, axes = source((mask, tuple(range(mask.type.rank))))
        operands = [look_up(env, value) for value in operation.operands]
        rank = operands[0].type.rank
        own = (range(rank), range(rank, mask.type.rank))
        fits = [set(axes) <= set(each) for each in own]
        if not any(fits) or list(axes) != sorted(axes):
            return None
        place = int(not fits[0] or (fits[1] and self.of_one_kind(mask, operation.operands[0], operation.operands[1])))
        self.require_finite(builder, operands[1 - place])
        dims = tuple(axis - own[place].start for axis in axes)
        spread = broadcast_to(Term(builder, look_up(env, given)), operands[place].type.shape, dims)
        operands[place] = self.zeroed(builder, spread.value, operands[place])
        return builder.emit(operation.op, operands, operation.attrs)

    def of_one_kind(self, mask: Value, right: Value, left: Value) -> bool:
        """Whether the left one of two factors is rather what a mask can be part of: it varies as the mask does."""
        alike = [self.level.get(factor, 0) == self.level.get(mask, 0) for factor in (left, right)]
        whole = [factor.producer is None or factor.producer.op.name != "broadcast" for factor in (left, right)]
        return (alike[0], whole[0]) > (alike[1], whole[1])

    def zeroed(self, builder: Builder, mask: Value, value: Value) -> Value:
        return builder.emit(REGISTRY["select"], [mask, value, zeros(value.type)])

    def require_of_scale(self, builder: Builder, operation: Operation, env: Env) -> None:
        """Ask of a product that is multiplied by what is the same in all trips that this may be done to their sum."""
        if not self.scales or operation.op.name != "mul":
            return
        scale, value = sorted(operation.operands, key=lambda operand: self.level.get(operand, 0))
        factors = factors_below(value)
        if factors and self.level.get(scale, 0) < self.depth:
            self.require_finite(builder, look_up(env, scale))
            for factor in factors:
                self.require_small(builder, look_up(env, factor))

    def require_finite(self, builder: Builder, value: Value) -> None:
        self.require(builder, builder.emit(REGISTRY["is_finite"], [spread_from(value)]))

    def require_small(self, builder: Builder, value: Value) -> None:
        """Products with another such value, and sums of 2**24 of them, are finite."""
        size = builder.emit(REGISTRY["abs"], [spread_from(value)])
        most = 2.0 ** ((np.finfo(size.type.dtype).maxexp - 24) // 2 - 1)
        limit = broadcast_to(Term(builder, literal(most, ArrayType(size.type.dtype))), size.type.shape, ()).value
        self.require(builder, builder.emit(REGISTRY["less"], [size, limit]))

    def require(self, builder: Builder, holds: Value) -> None:
        if holds.type.rank:
            holds = builder.emit(REGISTRY["reduce_and"], [holds], {"axes": tuple(range(holds.type.rank))})
        self.guards.append(holds)

    def summed(self, builder: Builder, operation: Operation, value: Value) -> Value | None:
        """The sum of the products of two vectors."""
        product = value.producer
        if product is None or product.op.name != "mul" or value.type.rank != 1 or value.type.dtype.kind not in "fc":
            return None
        return builder.emit(REGISTRY["dot_general"], product.operands, {"contract": ((0,), (0,)), "batch": ((), ())})

    def of_two(self, builder: Builder, operation: Operation, env: Env) -> Value | None:
        """A product of two arrays, both of which are 0 where a mask along the axis that is summed does not hold."""
        chosen = [operand.producer for operand in operation.operands]
        if any(found is None or found.op.name != "select" or not is_zero(found.operands[2]) for found in chosen):
            return None
        left, right = (found for found in chosen if found is not None)
        summed = operation.attrs["contract"]
        masks = [source((found.operands[0], tuple(range(found.operands[0].type.rank)))) for found in (left, right)]
        if operation.operands[0].type.dtype.kind not in "fc" or [axes for _, axes in masks] != list(summed):
            return None
        mask = masks[0][0]
        if len(summed[0]) != 1 or masks[1][0] is not mask:
            return None
        operands = [look_up(env, value) for value in operation.operands]
        place = 1 if self.of_one_kind(mask, right.operands[1], left.operands[1]) else 0
        operands[place] = look_up(env, (left, right)[place].operands[1])
        self.require_finite(builder, operands[place])
        return builder.emit(operation.op, operands, operation.attrs)


def is_outer(operation: Operation) -> bool:
    """Whether an operation gives the products of all pairs of elements."""
    attrs = operation.attrs
    return operation.op.name == "dot_general" and not attrs["contract"][0] and not attrs["batch"][0]


def spread_from(value: Value) -> Value:
    while value.producer is not None and value.producer.op.name in SPREAD:
        value = value.producer.operands[0]
    return value


def factors_below(value: Value) -> Sequence[Value]:
    """The factors of a product, or of a sum of products; none if it is not known to be one."""
    operation = spread_from(value).producer
    if operation is not None and operation.op.name == "reduce_sum":
        operation = operation.operands[0].producer
    known = operation is not None and operation.op.name in ("mul", "dot_general")
    return operation.operands if operation is not None and known else ()
