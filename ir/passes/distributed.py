"""Sums that a loop takes beside other work, as products of matrices after it.

The adjoint of ``h = np.tanh(W @ h)`` in a loop adds ``np.outer(d, h)`` to the cotangent of W in each trip, and hands d
on. No trip reads that sum, so the loop keeps d, a row in each trip, and one product of all rows follows it (`at_once`).
That is done for arrays that nothing but the loop's result reads, if what has to be kept is little beside what a trip
would add.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from srcgrad.ir.core import Builder, Function, Literal, Operation, Region, Value
from srcgrad.ir.passes.dce import dce
from srcgrad.ir.passes.independent import is_known
from srcgrad.ir.passes.layouts import INDEXED, READS
from srcgrad.ir.passes.readers import Readers
from srcgrad.ir.transforms.interpret import Env, inline, look_up
from srcgrad.ir.transforms.residuals import CHEAP, emitted
from srcgrad.ir.types import ArrayType

SMALLEST: Final = 256
"""The elements of what a trip makes from which that pays."""
LESS: Final = 4
"""How much less a trip keeps than that."""
BYTES: Final = 8
"""Of an element."""


class Share(NamedTuple):
    """What a loop does for one of the arrays that it hands on, and for nothing else."""

    carry: int
    operations: list[Operation]
    handed: list[Value]
    """What these read of the rest of a trip."""
    versions: set[Value]
    """What the array is before and after them."""

    @property
    def largest(self) -> int:
        """The elements of the largest value that they make."""
        results = [value for operation in self.operations for value in operation.results]
        return max((value.type.size for value in results if value not in self.versions), default=0)

    def given(self, loop: Operation) -> list[Value]:
        """The parameters of the loop's body that these read: the array, then constants and columns."""
        body, first = loop.regions[0], 1 + loop.attrs["carries"]
        read = {value for operation in self.operations for value in operation.operands}
        return [body.params[1 + self.carry], *(value for value in body.params[first:] if value in read)]

    def pays(self, loop: Operation, most: int) -> bool:
        """Whether trips keep little beside what they would add, and no more than ``most`` elements."""
        kept = sum(value.type.size * value.type.dtype.itemsize for value in self.handed)
        enough = self.largest >= SMALLEST and BYTES * self.largest >= LESS * kept
        return enough and kept * loop.attrs["trips"] <= BYTES * most


def distributed(loop: Operation, most: int, at_once: Callable[[Operation], Function | None]) -> Function | None:
    """A loop as a function of one that does less, and of what ``at_once`` makes of the rest; None if that is all.

    Args:
        loop: a loop of a known number of trips.
        most: the elements that all its trips may keep of one array for that.
        at_once: what to do in place of a loop, if that can be known.
    """
    if len(loop.results) < 2:
        return None
    found, trip = [], Trip(loop)
    for carry in range(loop.attrs["carries"]):
        for share in shares_of(trip, carry):
            made = at_once(sum_of(loop, share)) if share.pays(loop, most) else None
            if made is not None:
                found.append((share, made))
                break
    return without(loop, found) if found else None


class Trip:
    """The body of a loop, and what in it is read by what and made of which arrays."""

    def __init__(self, loop: Operation) -> None:
        body = loop.regions[0]
        self.readers = Readers(body)
        self.params = body.params[1 : 1 + loop.attrs["carries"]]
        self.results = body.results
        self.carries = {param: carry for carry, param in enumerate(self.params)}
        self.depends: dict[Value, int | None] = dict(self.carries)
        """Of what is made of arrays that trips hand on, the one if it is one, or None; others are not here."""
        for operation in body.operations:
            read = {self.depends[value] for value in operation.operands if value in self.depends}
            if read:
                (one,) = read if len(read) == 1 else (None,)
                self.depends.update(dict.fromkeys(operation.results, one))

    def is_free(self, values: Sequence[Value], carry: int) -> bool:
        """Whether values are made of no arrays that trips hand on but one."""
        return all(self.depends.get(value, carry) == carry for value in values)


def shares_of(trip: Trip, carry: int) -> Iterator[Share]:
    """What a loop does for an array: all that it does for nothing else, then what is large of it."""
    share = share_of(trip, carry, 0)
    if share is not None:
        yield share
        less = share_of(trip, carry, share.largest // LESS)
        if less is not None and less.handed != share.handed:
            yield less


def share_of(trip: Trip, carry: int, most: int) -> Share | None:
    """What a loop does for an array; None if what it makes of it is read for anything else.

    Values of up to ``most`` elements that depend on other arrays are read where they are made, all others if they must.
    """
    param, last, readers = trip.params[carry], trip.results[carry], trip.readers
    versions = readers.depending([param])
    if last is param or last not in versions or any(readers.is_given(value, carry) for value in versions):
        return None
    taken: list[Operation] = []
    gone: set[Operation] = set()
    """What the rest of a trip does no longer: what others read of the taken stays there too."""
    wanted: set[Value] = set()
    handed = []
    waiting = [-readers.made[value] for value in versions if value in readers.made]
    heapq.heapify(waiting)
    done = 1
    while waiting:
        place = heapq.heappop(waiting)
        if place == done:
            continue
        done, operation = place, readers.operations[-place]
        shared = any(
            readers.is_given(value, carry) or not gone.issuperset(readers.of(value)) for value in operation.results
        )
        if not versions.isdisjoint(operation.results) or is_taken(trip, operation, carry, shared, most):
            taken.append(operation)
            wanted.update(operation.operands)
            for value in operation.operands:
                if value in readers.made:
                    heapq.heappush(waiting, -readers.made[value])
            if not shared:
                gone.add(operation)
        else:
            handed += [value for value in operation.results if value in wanted]
    others = [trip.carries[value] for value in wanted if value in trip.carries and value is not param]
    handed += [trip.params[other] for other in sorted(others)]
    values = [*handed, *(value for operation in taken for value in operation.results)]
    if any(operation.regions for operation in taken) or not all(is_known(value.type) for value in values):
        return None
    return Share(carry, taken[::-1], handed, versions)


def is_taken(trip: Trip, operation: Operation, carry: int, shared: bool, most: int) -> bool:
    """Whether an operation is made where its results are added, rather than where it stands."""
    free = trip.is_free(operation.results, carry)
    if not free and all(value.type.size <= most for value in operation.results):
        return False
    if shared:
        return operation.op.name == "broadcast" or (free and operation.op.name in (*CHEAP, *READS))
    indexed = operation.op.name in (*INDEXED, *READS)
    return free or not (indexed and not trip.is_free(operation.operands[:1], carry))


def sum_of(loop: Operation, share: Share) -> Operation:
    """A loop that does nothing but a share of another one, whose operands come first; then what that one keeps."""
    body, attrs = loop.regions[0], loop.attrs
    read = share.given(loop)
    consts = len(set(read).intersection(body.params[1 + attrs["carries"] :][: attrs["consts"]]))
    given = dict(zip(body.params[1:], loop.operands, strict=True))
    builder = Builder()
    builder.span = loop.span
    types = [ArrayType(value.type.dtype, (attrs["trips"], *value.type.shape)) for value in share.handed]
    operands = [*(given[value] for value in read), *(builder.param(type) for type in types)]
    region = copied((body.params[0], *read, *share.handed), share.operations, [body.results[share.carry]])
    return builder.emit_operation(loop.op, operands, {**attrs, "carries": 1, "consts": consts}, [region])


def without(loop: Operation, found: Sequence[tuple[Share, Function]]) -> Function:
    """A loop without some of what it does, and functions of what that reads in place of it."""
    body, attrs = loop.regions[0], loop.attrs
    moved = {share.carry for share, _ in found}
    handed = list(dict.fromkeys(value for share, _ in found for value in share.handed))
    gone = set[Value]().union(*(share.versions for share, _ in found))
    kept = [k for k in range(attrs["carries"]) if k not in moved]
    positions = [*kept, *range(attrs["carries"], len(loop.operands))]
    builder = Builder()
    builder.span = loop.span
    operands = [value if isinstance(value, Literal) else builder.param(value.type) for value in loop.operands]
    region = copied(
        (body.params[0], *(body.params[1 + k] for k in positions)),
        [operation for operation in body.operations if gone.isdisjoint(operation.results)],
        [*(value for k, value in enumerate(body.results) if k not in moved), *handed],
    )
    rest = builder.emit_operation(
        loop.op, [operands[k] for k in positions], {**attrs, "carries": len(kept)}, [region]
    ).results
    columns = dict(zip(handed, rest[len(rest) - len(handed) :], strict=True))
    results = list(rest[: len(rest) - len(handed)])
    given = dict(zip(body.params[1:], operands, strict=True))
    for share, made in found:
        arguments = [*(given[value] for value in share.given(loop)), *(columns[value] for value in share.handed)]
        results.insert(share.carry, inline(builder, made, [v for v in arguments if not isinstance(v, Literal)])[0])
    return dce(builder.function("loop", results))


def copied(params: Sequence[Value], operations: Sequence[Operation], results: Sequence[Value]) -> Region:
    builder = Builder()
    env: Env = {param: builder.param(param.type, param.name) for param in params}
    emitted(builder, operations, env)
    return builder.region([look_up(env, value) for value in results])
