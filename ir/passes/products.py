"""Fewer and smaller passes over the results of products, for backends that run them as they stand."""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from srcgrad.ir.core import Builder, Function, Operation, Value
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.passes.dce import dce
from srcgrad.ir.transforms.interpret import Env, look_up

Axes = tuple[int, ...]
SMALLEST: Final = {"f": 4, "c": 8}
"""Bytes of the narrowest numbers whose products are summed in themselves: float16 is summed in float32."""


def turned_products(function: Function) -> Function:
    """``transpose(dot_general(a, b))`` becomes ``dot_general(b, a)``, if nothing else reads the product.

    The numbers are the same: each element is the same sum.
    """
    turned = [operation for operation in function.operations if is_turned(operation)]
    if not turned:
        return function
    uses: Counter[Value] = Counter(function.results)
    for operation in function.operations:
        uses.update(operation.operands)
    alone = {operation for operation in turned if uses[operation.operands[0]] == 1}
    if not alone:
        return function
    builder = Builder()
    env: Env = {param: builder.param(param.type, param.name, param.linear) for param in function.params}
    for operation in function.operations:
        builder.span = operation.span
        product = operation.operands[0].producer if operation in alone else None
        if product is not None:
            operands = [look_up(env, value) for value in reversed(product.operands)]
            attrs = {name: (axes[1], axes[0]) for name, axes in product.attrs.items()}
            env[operation.results[0]] = builder.emit(product.op, operands, attrs)
            continue
        operands = [look_up(env, value) for value in operation.operands]
        emitted = builder.emit_operation(operation.op, operands, operation.attrs, operation.regions)
        for old, new in zip(operation.results, emitted.results, strict=True):
            new.name = new.name or old.name
            env[old] = new
    return dce(builder.function(function.name, [look_up(env, value) for value in function.results]))


def is_turned(operation: Operation) -> bool:
    """Whether this exchanges the free axes of the left operand of a product with those of the right one."""
    if operation.op is not REGISTRY["transpose"]:
        return False
    value = operation.operands[0]
    product = value.producer
    if product is None or product.op is not REGISTRY["dot_general"]:
        return False
    batch = len(product.attrs["batch"][0])
    left = product.operands[0].type.rank - len(product.attrs["contract"][0])
    rank = value.type.rank
    return tuple(operation.attrs["perm"]) == (*range(batch), *range(left, rank), *range(batch, left))


class Factor(NamedTuple):
    """An operand of a product, seen through a transpose: its axes by what the product does with them."""

    value: Value
    batch: Axes
    free: Axes
    contract: Axes

    @property
    def axes(self) -> Axes:
        return (*self.batch, *self.free, *self.contract)


def combined_products(function: Function) -> Function:
    """``dot_general(a, b) + dot_general(a, c)`` becomes ``dot_general(a, b + c)``, if nothing else reads the products.

    So does what shares the right operand, and what shares an operand up to transposes, as in ``w @ g + w @ g.T``. The
    factors that are added are no larger than the result, so that one product and the larger addition are saved.

    The error bound is the same: each product ``a_k (b_k + c_k)`` has one rounding more, and each sum one less. Only
    where two numbers of one sign add up to more than the largest number, so within a factor of 2 of it, is ``b + c``
    infinite where the products might not be; where they cancel, the result is the more accurate.
    """
    uses: Counter[Value] = Counter(function.results)
    for operation in function.operations:
        uses.update(operation.operands)
    builder = Builder()
    env: Env = {param: builder.param(param.type, param.name, param.linear) for param in function.params}
    alone: set[Value] = set()
    combined = False
    for operation in function.operations:
        builder.span = operation.span
        operands = [look_up(env, value) for value in operation.operands]
        single = operation.results[0] if len(operation.results) == 1 else None
        found = None
        if operation.op is REGISTRY["add"] and alone.issuperset(operands):
            found = sum_of_products(builder, *operands)
        if found is not None and single is not None:
            combined = True
            env[single] = found
        else:
            emitted = builder.emit_operation(operation.op, operands, operation.attrs, operation.regions)
            for old, new in zip(operation.results, emitted.results, strict=True):
                new.name = new.name or old.name
                env[old] = new
            if operation.op is not REGISTRY["dot_general"]:
                continue
        if single is not None and uses[single] == 1:
            alone.add(env[single])
    if not combined:
        return function
    return dce(builder.function(function.name, [look_up(env, value) for value in function.results]))


def sum_of_products(builder: Builder, one: Value, other: Value) -> Value | None:
    """The sum of two products as one, None if they share no operand, or not in the same way."""
    if one.type.dtype.kind not in "fc" or one.type.dtype.itemsize < SMALLEST[one.type.dtype.kind]:
        return None
    first, second = factors(one), factors(other)
    for side in (0, 1):
        shared, added = first[side], first[1 - side]
        again, more = second[side], second[1 - side]
        if (shared.value, shared.batch, shared.free) != (again.value, again.batch, again.free):
            continue
        if added.value.type.size > one.type.size:
            continue
        order = [again.contract.index(axis) for axis in shared.contract]
        more = more._replace(contract=tuple(more.contract[k] for k in order))
        total = builder.emit(REGISTRY["add"], [added.value, arranged(builder, more, added)])
        pair = [shared, added._replace(value=total)]
        left, right = pair if side == 0 else reversed(pair)
        attrs = {"contract": (left.contract, right.contract), "batch": (left.batch, right.batch)}
        return builder.emit(REGISTRY["dot_general"], [left.value, right.value], attrs)
    return None


def arranged(builder: Builder, factor: Factor, like: Factor) -> Value:
    """The value of a factor with its axes in the order that those of another have."""
    source = dict(zip(like.axes, factor.axes, strict=True))
    perm = tuple(source[axis] for axis in range(len(source)))
    if perm == tuple(range(len(perm))):
        return factor.value
    return builder.emit(REGISTRY["transpose"], [factor.value], {"perm": perm})


def factors(product: Value) -> tuple[Factor, Factor]:
    """The operands of a product."""
    assert product.producer is not None
    operands, attrs = product.producer.operands, product.producer.attrs
    left, right = (factor(operands[k], attrs["batch"][k], attrs["contract"][k]) for k in (0, 1))
    return left, right


def factor(value: Value, batch: Axes, contract: Axes) -> Factor:
    """An operand; where a transpose reorders the free axes, which a product takes as they come, as it stands."""
    free = tuple(axis for axis in range(value.type.rank) if axis not in batch and axis not in contract)
    producer = value.producer
    if producer is not None and producer.op is REGISTRY["transpose"]:
        perm = producer.attrs["perm"]
        moved = Factor(producer.operands[0], *(tuple(perm[axis] for axis in axes) for axes in (batch, free, contract)))
        if moved.free == tuple(sorted(moved.free)):
            return moved
    return Factor(value, tuple(batch), free, tuple(contract))
