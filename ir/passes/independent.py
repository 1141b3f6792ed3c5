"""Which loops make trips of which none needs what another one made.

A trip may write its own places of an array, which are no other trip's, and read these; and it may add to what all of
them add to. ``C[i, :] *= b`` in a loop over i is of the first kind, ``s += x[k] * y[k]`` and ``C[i] += a[k] * B[k]``
in a loop over k of the second. Of such loops all trips can be made at once (`at_once`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from srcgrad.ir.core import Literal, Operation, Value
from srcgrad.ir.passes.layouts import INDEXED, READS, WRITES, indices_of
from srcgrad.ir.passes.places import Key, Places, Sum
from srcgrad.ir.transforms.residuals import is_safe
from srcgrad.ir.types import ArrayType, TapeType

ADDED: Final = "iufc"
"""Kinds of numbers whose sums may be taken in another order."""


class InOrder(Exception):
    """The trips of a loop are made one after the other."""


class Spot(NamedTuple):
    """Where an operation reads or writes an array.

    ``axis`` is the one along which trips are apart, at what ``sum`` says; None where all trips share the place, or may.
    ``fixed``: all of them share it.
    """

    axis: int | None
    sum: Sum
    fixed: bool


class Addition(NamedTuple):
    """``array + term``, or minus it; where there is a ``mask``, only where that holds."""

    term: Value
    sign: int
    mask: Value | None
    steps: tuple[Operation, ...]
    """The operations that it is made of, but for reading the array and writing it."""
    read: Operation | None
    """What reads the place that is added to."""
    array: Value | None = None
    """What is added to, if that is a whole array."""


Factor = tuple[Value, tuple[int, ...]]
"""A value, and for each of its axes that of the product which it is; below 0 the same number as that one of the other
factor over which sums are taken."""


class Product(NamedTuple):
    """``left * right``, or minus it, where what they share is summed; the sum over the trips times ``scale``.

    Where ``mask``, which all trips share, does not hold, it is 0.
    """

    sign: int
    left: Factor
    right: Factor
    scale: Factor | None = None
    mask: Factor | None = None


def is_known(type: ArrayType) -> bool:
    """Whether it is an array of a size that is known."""
    return not isinstance(type, TapeType) and all(isinstance(size, int) for size in type.shape)


class Trips:
    """What the trips of one loop do to the arrays that they hand on.

    Raises:
        InOrder: a trip needs what another one made, or that is not known.
    """

    def __init__(self, places: Places, loop: Operation, unmasked: bool) -> None:
        self.places, self.loop, self.body = places, loop, loop.regions[0]
        self.unmasked = unmasked
        """Whether products are 0 where a factor is, which a mask makes so (`unmasked`)."""
        self.count: int = loop.attrs["trips"]
        self.index = self.body.params[0]
        carries = loop.attrs["carries"]
        self.carried = self.body.params[1 : 1 + carries]
        self.uses: dict[Value, list[tuple[Operation, int]]] = {}
        if not all(is_known(value.type) for value in (*loop.operands, *loop.results)):
            raise InOrder
        for operation in self.body.operations:
            self.require_simple(operation)
            for position, value in enumerate(operation.operands):
                self.uses.setdefault(value, []).append((operation, position))
        self.results = Counter(self.body.results)
        self.additions: dict[Operation, Addition] = {}
        """By the operation that gives the next version of an array."""
        self.skipped: set[Operation] = set()
        """Operations in place of which sums over the trips stand."""
        self.products: dict[Value, list[Product]] = {}
        """Terms whose sums over the trips are those of products of matrices."""
        self.masks: dict[Value, Factor] = {}
        """What masks of such terms are spread from, if these vary."""
        self.versions: set[Value] = set()
        for param, last in zip(self.carried, self.body.results, strict=False):
            self.follow(param, last)
        self.varying = self.found_varying()
        for operation, addition in self.additions.items():
            if addition.array is not None or self.spot(operation).fixed:
                self.look_for_products(addition)
        self.leave_unread()

    def require_simple(self, operation: Operation) -> None:
        simple = is_safe(operation) or operation.op.name in INDEXED
        if operation.regions or not simple or not all(is_known(value.type) for value in operation.results):
            raise InOrder

    def found_varying(self) -> set[Value]:
        """What differs from trip to trip, the arrays that are handed on apart."""
        handed = len(self.carried) + self.loop.attrs["consts"]
        found = {self.index, *self.body.params[1 + handed :]}
        for operation in self.body.operations:
            if operation.results[0] not in self.versions and not found.isdisjoint(operation.operands):
                found.update(operation.results)
        return found

    # --- arrays that are handed on ------------------------------------------------------------------------------------

    def follow(self, param: Value, last: Value) -> None:
        """See to it that what the trips do to an array does not depend on their order.

        One that they do not look at is what the last of them leaves.
        """
        if last is param or (param not in self.uses and param not in self.results):
            return
        writes: list[Operation] = []
        reads: list[Operation] = []
        version = param
        while version is not last:
            self.versions.add(version)
            operation = self.next_version(version, reads)
            writes.append(operation)
            version = operation.results[0]
        self.versions.add(version)
        reads += [self.read_of(operation, place) for operation, place in self.uses.get(version, ())]
        if any(self.results[value] != (value is last) for value in (param, *(w.results[0] for w in writes))):
            raise InOrder
        if not self.only_added(writes, reads):
            self.require_apart(writes, reads)

    def next_version(self, version: Value, reads: list[Operation]) -> Operation:
        """What writes to an array; what reads it before is noted."""
        written = None
        uses = self.uses.get(version, ())
        for operation, place in uses:
            if operation.op.name in WRITES and not place and written is None:
                written = operation
        if written is None:
            return self.whole_addition(version)
        for operation, place in uses:
            if operation is not written:
                reads.append(self.read_of(operation, place))
            elif place:
                raise InOrder
        addition = self.written_addition(written)
        if addition is not None:
            self.additions[written] = addition
        return written

    def read_of(self, operation: Operation, place: int) -> Operation:
        if operation.op.name not in READS or place:
            raise InOrder
        return operation

    def only_added(self, writes: Sequence[Operation], reads: Sequence[Operation]) -> bool:
        """Whether trips do nothing but add to an array."""
        own = {self.additions[write].read for write in writes if write in self.additions}
        kept = all(write in self.additions for write in writes) and own.issuperset(reads)
        if kept:
            for write in writes:
                self.skipped.update(self.additions[write].steps)
        return kept

    def require_apart(self, writes: Sequence[Operation], reads: Sequence[Operation]) -> None:
        """All that trips read or write of an array is at places that are those of one trip each."""
        spots = [self.spot(operation) for operation in (*writes, *reads)]
        first = spots[0]
        if first.axis is None or any(spot[:2] != first[:2] for spot in spots):
            raise InOrder
        for write in writes:
            self.additions.pop(write, None)

    def spot(self, operation: Operation) -> Spot:
        """Where an operation reads or writes its first operand."""
        if operation.op.name not in INDEXED:
            return Spot(None, Sum(0), operation.op.name in (*READS, *WRITES))
        indices = indices_of(operation)
        fixed = True
        found: list[tuple[int, Sum]] = []
        for axis, index in enumerate(indices, operation.attrs["axis"]):
            if index.type.rank:
                return Spot(None, Sum(0), False)
            total = self.places.sum(index)
            inner = {key for key in total.factors if self.places.inside(key.value, self.loop)}
            fixed = fixed and not inner
            low, high = self.places.bounds(index)
            size = operation.operands[0].type.shape[axis]
            if inner == {Key(self.index)} and low >= 0 and isinstance(size, int) and high < size:
                found.append((axis, total))
        return Spot(found[0][0], found[0][1], fixed) if found else Spot(None, Sum(0), fixed)

    # --- sums ---------------------------------------------------------------------------------------------------------

    def made(self, value: Value, name: str) -> Operation | None:
        """The operation of the body that makes a value which nothing else reads, if it is of this name."""
        operation = value.producer
        if operation is None or operation.op.name != name or len(self.uses.get(value, ())) != 1:
            return None
        return None if self.results[value] else operation

    def whole_addition(self, version: Value) -> Operation:
        """What adds to an array as a whole, all over or where a mask holds."""
        uses = self.uses.get(version, ())
        if version.type.dtype.kind not in ADDED or version.type.dtype.itemsize < 4:
            raise InOrder
        added = next((operation for operation, _ in uses if operation.op.name in ("add", "sub")), None)
        found = None if added is None else self.added_to(version, added)
        if added is None or found is None:
            raise InOrder
        if len(uses) == 1:
            self.additions[added] = Addition(*found, None, (), None, version)
            return added
        for operation, place in uses:
            chosen = operation.op.name == "select" and place == 2 and operation.operands[1] is added.results[0]
            if chosen and len(uses) == 2 and self.made(added.results[0], added.op.name):
                self.additions[operation] = Addition(*found, operation.operands[0], (added,), None, version)
                return operation
        raise InOrder

    def added_to(self, value: Value, operation: Operation) -> tuple[Value, int] | None:
        """What is added to a value, and with which sign."""
        left, right = operation.operands
        if left is value and right is not value:
            return right, 1 if operation.op.name == "add" else -1
        return (left, 1) if right is value and left is not value and operation.op.name == "add" else None

    def written_addition(self, write: Operation) -> Addition | None:
        """What a write adds to the place that it writes; None if it does not add to it."""
        type = write.operands[0].type
        if type.dtype.kind not in ADDED or type.dtype.itemsize < 4:
            return None
        if write.op.name == "scatter_add":
            return Addition(write.operands[1], 1, None, (), None)
        steps: list[Operation] = []
        value, mask = write.operands[1], None
        reshaped = self.made(value, "reshape")
        if reshaped is not None:
            steps.append(reshaped)
            value = reshaped.operands[0]
        chosen = self.made(value, "select")
        if chosen is not None:
            steps.append(chosen)
            mask, value, before = chosen.operands
        added = self.made(value, "add") or self.made(value, "sub")
        if added is None:
            return None
        steps.append(added)
        for operand in added.operands:
            read = self.read_before(operand, write)
            if read is None or (mask is not None and before is not operand):
                continue
            found = self.added_to(operand, added)
            readers = 1 + (mask is not None)
            if found is not None and len(self.uses[operand]) == readers and not self.results[operand]:
                steps.append(read)
                if operand.producer is not None and operand.producer is not read:
                    steps.append(operand.producer)
                return Addition(*found, mask, tuple(steps), read)
        return None

    def read_before(self, value: Value, write: Operation) -> Operation | None:
        """The operation that reads, for a value, the place that is written then."""
        operation = value.producer
        if operation is not None and operation.op.name == "reshape" and write.op.name == "slice_set":
            if len(self.uses[operation.operands[0]]) != 1 or self.results[operation.operands[0]]:
                return None
            operation = operation.operands[0].producer
        if operation is None or operation.op.name not in READS or operation.operands[0] is not write.operands[0]:
            return None
        if (operation.op.name == "slice") != (write.op.name == "slice_set") or operation.attrs != write.attrs:
            return None
        indices = indices_of(operation) if operation.op.name == "gather" else ()
        if tuple(indices) != tuple(indices_of(write) if indices else ()) or any(index.type.rank for index in indices):
            return None
        return operation

    def look_for_products(self, addition: Addition) -> None:
        """Note terms that are sums of products of two factors that vary, and what need not be computed then."""
        masked = addition.mask in self.varying
        if (masked and not self.unmasked) or addition.term.type.dtype.kind not in "fc":
            return
        steps: list[Operation] = []
        pending, found = [(addition.term, 1)], []
        while pending:
            value, sign = pending.pop()
            operation = self.made(value, "add") or self.made(value, "sub") or self.made(value, "neg")
            if operation is None:
                product = self.product((value, tuple(range(value.type.rank))), sign, steps)
                if product is None:
                    return
                found.append(product)
                continue
            steps.append(operation)
            *others, last = operation.operands
            pending.append((last, sign if operation.op.name == "add" else -sign))
            pending += [(value, sign) for value in others]
        if masked and addition.mask is not None:
            mask = source((addition.mask, tuple(range(addition.mask.type.rank))))
            if not all(any(map(partial(is_zero_without, mask), (each.left, each.right))) for each in found):
                return
            self.masks[addition.term] = mask
        self.products[addition.term] = found
        self.skipped.update(steps)

    def product(self, factor: Factor, sign: int, steps: list[Operation]) -> Product | None:
        """A factor as the product of what was multiplied last to make it; None where its factors share an axis.

        So all products that are added up are what they are in the loop, which overflows nowhere else then.
        """
        value, axes = source(factor)
        chosen = self.made(value, "select")
        if chosen is not None:
            return self.chosen(chosen, axes, sign, steps)
        operation = self.made(value, "mul")
        if operation is not None:
            left, right = (source((operand, axes)) for operand in operation.operands)
        else:
            operation = self.made(value, "dot_general")
            if operation is None or operation.attrs["batch"][0]:
                return None
            left, right = factors_of(operation, axes)
        steps.append(operation)
        if not (left[0] in self.varying and right[0] in self.varying):
            return self.scaled(left, right, sign, steps) if operation.op.name == "mul" else None
        apart = {axis for axis in left[1] if axis >= 0}.isdisjoint(right[1])
        return Product(sign, left, right) if apart else None

    def chosen(self, operation: Operation, axes: Sequence[int], sign: int, steps: list[Operation]) -> Product | None:
        """A product where a mask holds that all trips share: of the sum that is as well left out as of each trip's."""
        mask, value, other = operation.operands
        if mask in self.varying or not is_zero(other):
            return None
        steps.append(operation)
        found = self.product((value, tuple(axes)), sign, steps)
        if found is None or found.mask is not None:
            return None
        kept = source((mask, tuple(axes)))
        left, right = (within(kept, each) for each in (found.left, found.right))
        return found._replace(left=left, right=right, mask=kept)

    def scaled(self, left: Factor, right: Factor, sign: int, steps: list[Operation]) -> Product | None:
        """A product times what is the same in all trips, and finite where a mask made zeros of a factor."""
        if right[0] in self.varying:
            left, right = right, left
        if not self.unmasked or right[0] in self.varying or left[0] not in self.varying:
            return None
        found = self.product(left, sign, steps)
        if found is None or found.scale is not None or not any(map(is_masked, (found.left, found.right))):
            return None
        return found._replace(scale=right)

    def leave_unread(self) -> None:
        """Skip what nothing reads but for sums that are products."""
        products = [product for found in self.products.values() for product in found]
        factors = [factor for _, *each in products for factor in each if factor is not None]
        read = {value for value, _ in (*factors, *self.masks.values())}
        read.update(self.body.results, self.versions)
        for operation in reversed(self.body.operations):
            if read.isdisjoint(operation.results):
                self.skipped.add(operation)
            elif operation not in self.skipped:
                read.update(self.read_by(operation))

    def read_by(self, operation: Operation) -> set[Value]:
        """What is needed for the results of an operation that is run, factors of products apart."""
        read = set(operation.operands)
        addition = self.additions.get(operation)
        if addition is not None:
            if addition.term in self.products:
                read.discard(addition.term)
            else:
                read.add(addition.term)
            if addition.mask is not None:
                read.discard(addition.mask)
                if addition.term not in self.masks:
                    read.add(addition.mask)
            if addition.read is not None:
                read.update(addition.read.operands)
        return read


def gathered_from(operation: Operation, axes: Sequence[int]) -> Factor | None:
    """What a broadcast, or a transpose, with these axes holds the elements of; None if it repeats an axis."""
    (operand,) = operation.operands
    if operation.op.name == "transpose":
        return operand, tuple(axes[operation.attrs["perm"].index(axis)] for axis in range(len(axes)))
    dims, shape = operation.attrs["dims"], operation.results[0].type.shape
    own = [k for k, dim in enumerate(dims) if operand.type.shape[k] == shape[dim]]
    if len(own) < len(dims):  # `a[:, None]`
        made = operand.producer
        if (
            made is None
            or made.op.name != "reshape"
            or made.operands[0].type.shape != tuple(shape[dims[k]] for k in own)
        ):
            return None
        operand = made.operands[0]
    return operand, tuple(axes[dims[k]] for k in own)


def source(factor: Factor) -> Factor:
    """What a factor holds the elements of."""
    value, axes = factor
    while value.producer is not None and value.producer.op.name in ("broadcast", "transpose"):
        before = gathered_from(value.producer, axes)
        if before is None:
            break
        value, axes = before
    return value, axes


def within(mask: Factor, factor: Factor) -> Factor:
    """A factor as it is where a mask holds."""
    producer = factor[0].producer
    return (
        factor if producer is None or not is_zero_without(mask, factor) else source((producer.operands[1], factor[1]))
    )


def is_zero_without(mask: Factor, factor: Factor) -> bool:
    """Whether a factor is 0 wherever a mask does not hold."""
    value, axes = source(factor)
    operation = value.producer
    if operation is None or operation.op.name != "select" or not is_zero(operation.operands[2]):
        return False
    return source((operation.operands[0], axes)) == source(mask)


def is_masked(factor: Factor) -> bool:
    """Whether a factor is 0 where some mask does not hold."""
    operation = source(factor)[0].producer
    return operation is not None and operation.op.name == "select" and is_zero(operation.operands[2])


def is_zero(value: Value) -> bool:
    return isinstance(value, Literal) and not np.any(value.value)


def factors_of(operation: Operation, axes: Sequence[int]) -> tuple[Factor, Factor]:
    """The factors of a product of matrices, given what its axes are."""
    own = iter(axes)
    left, right = (
        (operand, tuple(-1 - summed.index(axis) if axis in summed else next(own) for axis in range(operand.type.rank)))
        for operand, summed in zip(operation.operands, operation.attrs["contract"], strict=True)
    )
    return left, right
