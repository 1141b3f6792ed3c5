"""Loops over long arrays whose trips take elements apart run for one block of these after the other.

A trip of ``x = x * x + c`` over a million numbers reads them all from memory, and writes them all back; so do the trips
of its derivative, which read what each trip kept. Where an element of what a loop hands on is made of elements at the
same place alone, all trips can be made for one block of places, then for the next one: what they hand on and keep is
near the processor all the while. Loops that read what others keep, and what stands between them, are in one block
together, so that what is kept is never as long as the arrays.

What the trips add up of all places is added up for each block, and then of the blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from srcgrad.ir.core import Attrs, Builder, Function, Literal, Operation, Region, Value, is_splat, literal, zeros
from srcgrad.ir.opdef import REGISTRY, Elementwise
from srcgrad.ir.passes.dce import dce
from srcgrad.ir.passes.lanes import operand_axes
from srcgrad.ir.passes.layouts import Unlike
from srcgrad.ir.passes.loops import has_loops
from srcgrad.ir.passes.readers import Readers
from srcgrad.ir.passes.rewrite import rebuilt
from srcgrad.ir.transforms.interpret import Env, look_up
from srcgrad.ir.types import INT64, ArrayType

Cost = Callable[[Operation], float]
"""About how many additions an operation costs for an element."""
FEWEST: Final = 4
"""Trips from which that pays."""
FAR: Final = 1 << 20
"""The bytes from which what loops hand on, or keep, is not near the processor."""
NEAR: Final = 1 << 18
"""The bytes that a block should have of it."""
SHORT: Final = 256
LONG: Final = 1024
"""How many elements of one array a block has, at least and at most."""
TIMES: Final = 2
"""How many bytes that come near there should be for one that a block reads in pieces."""
WIDE: Final = 4096
"""How many it has at least where trips call functions, of which two vectors are made side by side then."""
FUNCTION: Final = 16
"""The additions of one."""
PER_ADDITION: Final = 0.02
PER_BYTE: Final = 0.04
"""About the nanoseconds that these take. Loops that wait for additions had better be shared among threads."""
PER_NUMBER: Final = 0.25
"""About the nanoseconds of an addition of numbers that all places share, one after another."""
AGAIN: Final = 8
"""How many times longer what a block saves should take than what it computes again of these."""
SMALL: Final = 64
"""The elements of what all places share that a block may compute again."""
SUMS: Final = {"reduce_sum": "add", "reduce_or": "logical_or"}
"""Folds over the places, and what adds up those of blocks."""
OF_PLACES: Final = frozenset(
    {
        "select",
        "cast",
        "broadcast",
        "reshape",
        "slice",
        "slice_set",
        "gather",
        "concatenate",
        "reduce_sum",
        "reduce_or",
        "scatter_add",
        "scatter_set",
    }
)
"""What is known to take places apart, beside elementwise operations."""


def block_by_block(function: Function, cost: Cost = lambda operation: 1.0) -> Function:
    """The function whose loops over long arrays have blocks; itself if none does.

    >>> import srcgrad.ir.ops
    >>> from srcgrad.ir.parser import parse
    >>> function = parse('''func @f(%x: f64[400000]) -> (f64[400000]) {
    ...   %y: f64[400000] = for %x {trips=19, carries=1, consts=0, reverse=false}
    ...     body (%k: i64[], %y: f64[400000]) {
    ...       %0: f64[400000] = mul %y, %y
    ...       yield %0
    ...     }
    ...   return %y
    ... }''')
    >>> print(block_by_block(function))
    func @f(%x: f64[400000]) -> (f64[400000]) {
      %0: f64[400,1000] = reshape %x {shape=[400,1000]}
      %1: f64[400,1000] = for %0 {trips=400, carries=0, consts=0, reverse=false}
        body (%0: i64[], %x: f64[1000]) {
          %y: f64[1000] = for %x {trips=19, carries=1, consts=0, reverse=false}
            body (%k: i64[], %y: f64[1000]) {
              %0: f64[1000] = mul %y, %y
              yield %0
            }
          yield %y
        }
      %2: f64[400000] = reshape %1 {shape=[400000]}
      return %2
    }
    """
    if not has_loops(function) or any(operation.acts for operation in function.operations):
        return function
    for part in parts_of(function):
        length = block_length(part, wanted_of(function, part), cost)
        if length is not None:
            return block_by_block(dce(written(function, part, length)), cost)
    return function


def wanted_of(function: Function, part: Part) -> list[Value]:
    """The results of a part that what is not in it reads, or the function gives."""
    inside = set(part.operations)
    read = {value for each in function.operations if each not in inside for value in each.operands}
    read.update(function.results)
    return [value for operation in part.operations for value in operation.results if value in read]


# --- what takes places apart ------------------------------------------------------------------------------------------


class Part(NamedTuple):
    """Loops over one axis of ``size`` places, with what stands between them, in their order."""

    operations: Sequence[Operation]
    size: int
    sums: Mapping[Value, str]
    """The results that add up something of all places, and what adds that up."""


def parts_of(function: Function) -> Iterator[Part]:
    """What of a function might have blocks: all loops over as many places, or one of them."""
    by_size: dict[int, list[Operation]] = {}
    for operation in function.operations:
        if operation.op.name == "for" and (operation.attrs["trips"] or 0) >= FEWEST:
            sizes = {param.type.shape[0] for param in carries_of(operation) if is_array(param.type)}
            size = max((size for size in sizes if isinstance(size, int)), default=0)
            if size > 1:
                by_size.setdefault(size, []).append(operation)
    readers = Readers(function)
    for size, loops in by_size.items():
        for chosen in [loops] if len(loops) == 1 else [loops, *([loop] for loop in loops)]:
            try:
                yield apart(between(function, readers, chosen), size)
            except Unlike:
                continue


def carries_of(loop: Operation) -> Sequence[Value]:
    return loop.regions[0].params[1 : 1 + loop.attrs["carries"]]


def is_array(type: Any) -> bool:
    return isinstance(type, ArrayType) and type.rank > 0


def between(function: Region, readers: Readers, loops: Sequence[Operation]) -> list[Operation]:
    """The loops, and what is made of one and read by another, in their order."""
    after = readers.depending([value for loop in loops for value in loop.results])
    wanted = set(loops)
    found = []
    needed: set[Value] = set()
    for operation in reversed(function.operations):
        if operation in wanted or (
            not needed.isdisjoint(operation.results) and not after.isdisjoint(operation.results)
        ):
            found.append(operation)
            needed.update(operation.operands)
    return found[::-1]


def apart(operations: Sequence[Operation], size: int) -> Part:
    """The operations as a part; `Unlike` where a place is made of others."""
    sums: dict[Value, str] = {}
    made: set[Value] = set()
    for operation in operations:
        if not sums.keys().isdisjoint(operation.operands):
            raise Unlike
        split = [bool(axis_of(value, size)) and value not in made and not fills(value) for value in operation.operands]
        if operation.op.name == "for":
            found = Trips(operation, size).sums(split)
            starts = [operation.operands[operation.results.index(value)] for value in found]
            if not made.isdisjoint(starts):
                raise Unlike
            sums.update(found)
        elif any(split):
            raise Unlike
        else:
            require_apart(operation, size)
        made.update(operation.results)
    return Part(operations, size, sums)


def fills(value: Value) -> bool:
    """Whether it is one number at all places."""
    return isinstance(value, Literal) and value.splat


def axis_of(value: Value, size: int) -> int | None:
    """Where an array has the axis of the places; None where all of them share it."""
    type = value.type
    if not isinstance(type, ArrayType) or not all(isinstance(each, int) for each in type.shape):
        raise Unlike
    return type.shape.index(size) if size in type.shape else None


def require_apart(operation: Operation, size: int) -> None:
    """See to it that an operation of places takes them apart, and that one of none is cheap."""
    if operation.regions or len(operation.results) != 1:
        raise Unlike
    axis = axis_of(operation.results[0], size)
    own = [axis_of(value, size) for value in operation.operands]
    if not isinstance(operation.op, Elementwise) and operation.op.name not in OF_PLACES:
        raise Unlike
    if axis is None:
        if any(each is not None for each in own) or operation.results[0].type.size > SMALL:
            raise Unlike
        return
    for value, found, there in zip(operation.operands, own, operand_axes(operation, axis), strict=True):
        repeated = operation.op.name == "broadcast" and found is None and there is not None and value.type.shape[there]
        if found != there and repeated != 1:
            raise Unlike


class Trips:
    """The body of a loop, and what of it takes places apart."""

    def __init__(self, loop: Operation, size: int) -> None:
        self.loop, self.size = loop, size
        self.body = loop.regions[0]
        self.readers = Readers(self.body)

    def sums(self, split: Sequence[bool]) -> dict[Value, str]:
        """The results that add up something of all places; `Unlike` where a place is made of others.

        Of arrays that are ``split`` trips have to read rows.
        """
        kinds: dict[Value, str] = {}
        added = self.added()
        for position, there in enumerate(split):
            self.require_operand(position, there)
        for operation in self.body.operations:
            name = SUMS.get(operation.op.name)
            if operation in added:
                continue
            if name is not None and axis_of(operation.operands[0], self.size) in operation.attrs["axes"]:
                kinds[operation.results[0]] = name
                continue
            if not kinds.keys().isdisjoint(operation.operands):
                raise Unlike
            require_apart(operation, self.size)
            if any(isinstance(value, Literal) and not fills(value) for value in operation.operands):
                raise Unlike
        found = {}
        for operation, (carry, share) in added.items():
            if kinds.pop(share, None) != operation.op.name:
                raise Unlike
            found[self.loop.results[carry]] = operation.op.name
        if kinds:  # a fold that a trip reads, or that each keeps
            raise Unlike
        for position, value in enumerate(self.body.results):
            self.require_result(position, value)
        return found

    def added(self) -> dict[Operation, tuple[int, Value]]:
        """What adds to a carry that no trip reads, old or new: which one, and the share, which nothing else reads."""
        found = {}
        for carry, param in enumerate(carries_of(self.loop)):
            last = self.body.results[carry]
            operation = last.producer
            if operation is None or operation.op.name not in SUMS.values() or param not in operation.operands:
                continue
            one, other = operation.operands
            share = other if one is param else one
            single = all(len(self.readers.of(value)) == 1 for value in (param, share)) and not self.readers.of(last)
            given = [self.readers.is_given(value, -1) for value in (param, share)]
            alone = share is not param and single and not any(given) and not self.readers.is_given(last, carry)
            if alone and share.producer is not None and share.producer.op.name in SUMS:
                found[operation] = carry, share
        return found

    def require_operand(self, position: int, split: bool) -> None:
        """See to it that a column has places where its elements have them, and that rows are read of what is split."""
        param, axis = self.body.params[1 + position], axis_of(self.loop.operands[position], self.size)
        if position >= self.loop.attrs["carries"] + self.loop.attrs["consts"]:
            own = axis_of(param, self.size)
            if axis != (None if own is None else own + 1) or (split and own != 0):
                raise Unlike
        elif split:
            if position < self.loop.attrs["carries"]:
                raise Unlike
            for operation in self.readers.of(param):
                indices = operation.operands[1:]
                if operation.op.name != "gather" or operation.attrs["axis"] != 0 or len(indices) != axis:
                    raise Unlike
                if param in indices or any(index.type.rank for index in indices):
                    raise Unlike
            if self.readers.is_given(param, -1):
                raise Unlike

    def require_result(self, position: int, value: Value) -> None:
        """See to it that places are first in what a trip gives, as in what it is given."""
        axis = axis_of(value, self.size)
        if isinstance(value, Literal) and not fills(value) and axis is not None:
            raise Unlike
        if position >= self.loop.attrs["carries"] and (axis or self.loop.attrs["trips"] == self.size):
            raise Unlike


# --- how long blocks are ----------------------------------------------------------------------------------------------


def block_length(part: Part, wanted: Sequence[Value], cost: Cost) -> int | None:
    """How many places a block has; None where there had better be none."""
    found, work = Traffic.of(part, wanted), [*costs_of(part, cost)]
    far = found.kept + (found.handed // 2 if found.state >= FAR else 0)
    if max(found.state, found.all_kept) < FAR or far <= TIMES * (found.rows + 2 * found.given):  # written twice
        return None
    if PER_ADDITION * sum(work) > PER_BYTE * far * part.size:
        return None
    fewest = WIDE if max(work, default=0.0) >= FUNCTION * part.size else SHORT
    room = NEAR * part.size // (found.handed * part.size + found.all_kept)
    ideal = max(min(room, LONG), fewest) / found.width
    lengths = [length for length in divisors(part.size) if fewest <= length * found.width <= 4 * ideal * found.width]
    best = min(lengths, key=lambda length: abs(math.log(length / ideal)), default=None)
    if best is None or best * FEWEST > part.size:
        return None
    again = PER_NUMBER * sum(shared_costs_of(part, cost))
    return best if AGAIN * again <= PER_BYTE * far * best else None


class Traffic(NamedTuple):
    """What the loops of a part read and write, in bytes.

    Of each place, by one trip of all loops together: what is ``handed`` on or shared, what is ``kept`` for other loops
    of the part, what is ``given`` to what comes behind it, which has to be put together of the blocks, and ``rows`` of
    longer arrays. In all: the ``state`` of one loop, and what is kept, ``all_kept``. The largest array of a trip has
    ``width`` elements for a place.
    """

    handed: int
    kept: int
    given: int
    rows: int
    state: int
    all_kept: int
    width: int

    @staticmethod
    def of(part: Part, wanted: Sequence[Value]) -> Traffic:
        size = part.size
        handed = kept = given = rows = state = all_kept = 0
        width = 1
        own = {value for operation in part.operations for value in operation.results}
        for loop in part.operations:
            if loop.op.name != "for":
                continue
            body, trips, carries = loop.regions[0], loop.attrs["trips"], loop.attrs["carries"]
            held = 0
            for position, value in enumerate(loop.operands):
                each = bytes_of(value, size) * (1 + (position < carries))
                if position < carries + loop.attrs["consts"] and not axis_of(value, size):
                    held += bytes_of(value, size)
                    handed += each
                elif value not in own:
                    rows += each // trips
            columns = sum(bytes_of(value, size) for value in loop.results[carries:] if value not in wanted)
            state, kept, all_kept = max(state, held * size), kept + 2 * columns // trips, all_kept + columns * size
            given += sum(bytes_of(value, size) for value in loop.results[carries:] if value in wanted) // trips
            arrays = [value.type for value in (*body.params, *body.results) if axis_of(value, size) == 0]
            width = max(width, *(type.size // size for type in arrays))
        return Traffic(handed, kept, given, rows, state, all_kept, width)


def bytes_of(value: Value, size: int) -> int:
    """Of an array, for each place."""
    return 0 if axis_of(value, size) is None else value.type.size * value.type.dtype.itemsize // size


def costs_of(part: Part, cost: Cost) -> Iterator[float]:
    """About how many additions each operation of the trips makes."""
    for loop in part.operations:
        for region in loop.regions:
            for operation in region.operations:
                if isinstance(operation.op, Elementwise):
                    yield cost(operation) * operation.results[0].type.size


def shared_costs_of(part: Part, cost: Cost) -> Iterator[float]:
    """About how many additions each operation makes whose result all places share, in a trip of each block."""
    for loop in part.operations:
        for region in loop.regions:
            sums = {region.results[k] for k in range(loop.attrs["carries"]) if loop.results[k] in part.sums}
            for operation in region.operations:
                result = operation.results[0]
                if axis_of(result, part.size) is not None and result not in sums:
                    continue
                sizes = [value.type.size for value in operation.operands if axis_of(value, part.size) is None]
                each = cost(operation) if isinstance(operation.op, Elementwise) else 1.0
                yield each * max(result.type.size, *sizes, 0)


def divisors(size: int) -> list[int]:
    small = [k for k in range(1, math.isqrt(size) + 1) if size % k == 0]
    return sorted({*small, *(size // k for k in small)})


# --- the program ------------------------------------------------------------------------------------------------------


def written(function: Function, part: Part, length: int) -> Function:
    """The function with a loop over the blocks of a part."""
    inside = set(part.operations)
    after = Readers(function).depending([value for operation in part.operations for value in operation.results])
    before = [each for each in function.operations if each not in inside and after.isdisjoint(each.results)]
    later = [each for each in function.operations if each not in inside and not after.isdisjoint(each.results)]
    builder = Builder()
    env: Env = {param: param for param in function.params}
    emit_all(builder, before, env)
    builder.span = part.operations[0].span
    env.update(Blocks(part, length).loop(builder, wanted_of(function, part), env))
    emit_all(builder, later, env)
    return rebuilt(function, builder.operations, [look_up(env, value) for value in function.results])


def emit_all(builder: Builder, operations: Sequence[Operation], env: Env) -> None:
    for operation in operations:
        builder.span = operation.span
        operands = [look_up(env, value) for value in operation.operands]
        again = builder.emit_operation(operation.op, operands, operation.attrs, operation.regions)
        name_as(again.results, operation.results)
        env.update(zip(operation.results, again.results, strict=True))


def name_as(new: Sequence[Value], old: Sequence[Value]) -> None:
    for value, other in zip(new, old, strict=True):
        value.name = value.name or other.name


class Blocks:
    """Writes a part for one block of places, in a loop over these.

    What the part reads has a form: all of it (``None``), the rows of a block (``0``), or, where places are the second
    axis or a later one, an array with that axis in two, of which a trip reads one row of a block. Such an array is
    ``split``.
    """

    def __init__(self, part: Part, length: int) -> None:
        self.part, self.length = part, length
        self.size, self.count = part.size, part.size // length
        self.split: set[Value] = set()

    def loop(self, builder: Builder, wanted: Sequence[Value], env: Env) -> Env:
        """Emit the loop over blocks, and map what is wanted of the part."""
        part = self.part
        made = {value for operation in part.operations for value in operation.results}
        read = dict.fromkeys(
            value
            for operation in part.operations
            for k, value in enumerate(operation.operands)
            if operation.op.name != "for" or k >= operation.attrs["carries"] or operation.results[k] not in part.sums
        )
        given = [value for value in read if value not in made and self.is_given(value)]
        start_of = {
            operation.results[k]: operation.operands[k]
            for operation in part.operations
            if operation.op.name == "for"
            for k in range(operation.attrs["carries"])
        }
        sums = list(part.sums)
        zero = {value: zeros(value.type) for value in sums}
        shared = [value for value in wanted if value not in part.sums and axis_of(value, self.size) is None]
        stacked = [value for value in wanted if value not in part.sums and axis_of(value, self.size) is not None]
        rows = [value for value in given if axis_of(value, self.size) == 0]
        whole = [value for value in given if axis_of(value, self.size) != 0]
        self.split.update(value for value in whole if axis_of(value, self.size))

        inner = Builder()
        inner.span = builder.span
        index = inner.param(ArrayType(INT64))
        own: Env = {}
        for value in shared:
            inner.param(value.type)
        for value in whole:
            own[value] = inner.param(self.split_type(value.type) if value in self.split else value.type, value.name)
        for value in rows:
            own[value] = inner.param(self.block_type(value.type), value.name)
        self.run(inner, part.operations, own, index, zero)
        region = inner.region([own[value] for value in (*shared, *sums, *stacked)])

        operands: list[Value] = [zeros(value.type) for value in shared]
        operands += [
            self.as_split(builder, value, env) if value in self.split else look_up(env, value) for value in whole
        ]
        operands += [
            self.reshaped(builder, look_up(env, value), (self.count, *self.block_type(value.type).static_shape))
            for value in rows
        ]
        attrs = {"trips": self.count, "carries": len(shared), "consts": len(whole), "reverse": False}
        results = builder.emit_operation(REGISTRY["for"], operands, attrs, [region]).results
        found: Env = dict(zip((*shared, *sums, *stacked), results, strict=True))
        for value in sums:
            found[value] = self.added(builder, found[value], part.sums[value], look_up(env, start_of[value]))
        for value in stacked:
            found[value] = self.together(builder, found[value], value)
        return found

    def added(self, builder: Builder, shares: Value, name: str, start: Value) -> Value:
        """What the blocks give of a sum, added up."""
        fold = next(REGISTRY[each] for each, adds in SUMS.items() if adds == name)
        total = builder.emit(fold, [shares], {"axes": (0,)})
        return total if is_splat(start, 0) else builder.emit(REGISTRY[name], [start, total])

    def is_given(self, value: Value) -> bool:
        """Whether a block has to be given a value: a number that fills an array it makes itself."""
        return not isinstance(value, Literal) or (not fills(value) and axis_of(value, self.size) is not None)

    def block_type(self, type: ArrayType) -> ArrayType:
        return type.with_shape(
            self.length if each == self.size and k == type.shape.index(self.size) else each
            for k, each in enumerate(type.shape)
        )

    def split_type(self, type: ArrayType) -> ArrayType:
        axis = type.shape.index(self.size)
        return type.with_shape((*type.shape[:axis], self.count, self.length, *type.shape[axis + 1 :]))

    def reshaped(self, builder: Builder, value: Value, shape: Sequence[int]) -> Value:
        if isinstance(value, Literal):
            type = value.type.with_shape(shape)
            return Literal(value.value, type) if value.splat else literal(value.value.reshape(tuple(shape)), type)
        return builder.emit(REGISTRY["reshape"], [value], {"shape": tuple(shape)})

    def as_split(self, builder: Builder, value: Value, env: Env) -> Value:
        return self.reshaped(builder, look_up(env, value), self.split_type(value.type).static_shape)

    def together(self, builder: Builder, stacked: Value, value: Value) -> Value:
        """An array of all places, of those of the blocks."""
        axis = axis_of(value, self.size)
        assert axis is not None
        if axis:
            perm = (*range(1, axis + 1), 0, *range(axis + 1, stacked.type.rank))
            stacked = builder.emit(REGISTRY["transpose"], [stacked], {"perm": perm})
        return self.reshaped(builder, stacked, value.type.static_shape)

    def run(
        self, builder: Builder, operations: Sequence[Operation], own: Env, index: Value, zero: Mapping[Value, Value]
    ) -> None:
        """What operations do for a block, which is the one at ``index``."""
        for operation in operations:
            builder.span = operation.span or builder.span
            if operation.op.name == "for":
                results = self.trips(builder, operation, own, index, zero)
            else:
                operands = [self.taken(value, own) for value in operation.operands]
                attrs = operation.attrs
                if operation.operands and operation.operands[0] in self.split:
                    operands = [*operands, index]  # a gather of a row
                elif axis_of(operation.results[0], self.size) is not None:
                    attrs = self.attrs(operation)
                results = builder.emit_operation(operation.op, operands, attrs).results
            name_as(results, operation.results)
            own.update(zip(operation.results, results, strict=True))

    def taken(self, value: Value, own: Env) -> Value:
        if value in own:
            return own[value]
        assert isinstance(value, Literal)
        return value if axis_of(value, self.size) is None else Literal(value.value, self.block_type(value.type))

    def attrs(self, operation: Operation) -> Attrs:
        attrs: dict[str, Any] = dict(operation.attrs)
        if "shape" in attrs:
            attrs["shape"] = self.block_type(operation.results[0].type).static_shape
        if "limits" in attrs:
            axis = axis_of(operation.results[0], self.size)
            attrs["limits"] = tuple(self.length if k == axis else each for k, each in enumerate(attrs["limits"]))
        return attrs

    def trips(
        self, builder: Builder, loop: Operation, own: Env, index: Value, zero: Mapping[Value, Value]
    ) -> Sequence[Value]:
        """A loop of the part, for a block."""
        body, attrs = loop.regions[0], loop.attrs
        carries, consts = attrs["carries"], attrs["consts"]
        pairs = list(zip(body.params[1:], loop.operands, strict=True))
        rows = [(param, value) for param, value in pairs[carries + consts :] if value in self.split]
        columns = [(param, value) for param, value in pairs[carries + consts :] if value not in self.split]
        inner = Builder()
        inner.span = builder.span
        trip = inner.param(body.params[0].type, body.params[0].name)
        env: Env = {body.params[0]: trip}
        operands = []
        for k, (param, value) in enumerate(pairs[: carries + consts]):
            if k < carries and loop.results[k] in zero:
                operands.append(zero[loop.results[k]])
            else:
                operands.append(self.taken(value, own))
            if value in self.split:
                self.split.add(param)
            env[param] = inner.param(operands[-1].type, param.name)
        arrays = [inner.param(own[value].type) for _, value in rows]
        operands += [own[value] for _, value in rows]
        indexed = bool(rows) or any(value in self.split for _, value in pairs)
        block = inner.param(index.type) if indexed else index
        operands += [index] if indexed else []
        for param, value in columns:
            env[param] = inner.param(
                self.block_type(param.type) if axis_of(param, self.size) is not None else param.type, param.name
            )
            operands.append(self.taken(value, own))
        for (param, _), array in zip(rows, arrays, strict=True):
            env[param] = inner.emit(REGISTRY["gather"], [array, trip, block], {"axis": 0})
        self.run(inner, body.operations, env, block, {})
        region = inner.region([self.taken(value, env) for value in body.results])
        changed = {**attrs, "consts": consts + len(rows) + indexed}
        return builder.emit_operation(loop.op, operands, changed, [region]).results
