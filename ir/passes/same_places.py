"""What is done twice to one place of an array is done once.

``R[k, j] = q @ a[:, j]; a[:, j] -= q * R[k, j]`` reads what it has just written: that is the number itself
(`as_written`). The adjoint of ``a[:, j] -= …`` reads the cotangent there, clears it and adds to it, and that of
``R[k, j]`` adds to an element, reads it and clears it: each place is written once, with all that comes to it
(`written_once`).

Places are told by equal indices of rank 0. A read that goes has to be within bounds, as an error would go with it; a
write goes only where a later one is at the same place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from srcgrad.ir.core import Builder, Function, Operation, Value
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.passes.layouts import INDEXED, Rewriting, indices_of
from srcgrad.ir.passes.places import Places
from srcgrad.ir.passes.readers import Readers
from srcgrad.ir.passes.rewrite import AnyRegion
from srcgrad.ir.transforms.interpret import Env, look_up
from srcgrad.ir.types import BOOL, ArrayType

FARTHEST: Final = 16
"""How many writes elsewhere a read is looked back through."""
PUT: Final = ("scatter_set", "scatter_add")


def same_place(one: Operation, other: Operation) -> bool:
    """Whether two operations read or write an array at equal indices of rank 0."""
    indices = tuple(indices_of(one))
    alone = not any(index.type.rank for index in indices)
    return alone and one.attrs == other.attrs and indices == tuple(indices_of(other))


# --- what has been written --------------------------------------------------------------------------------------------


def as_written(function: Function) -> Function:
    """The function whose reads of what has just been written are what was written; itself if there are none.

    >>> import srcgrad.ir.ops
    >>> from srcgrad.ir.parser import parse
    >>> function = parse('''func @f(%x: f64[9], %v: f64[]) -> (f64[9], f64[]) {
    ...   %0: f64[9] = scatter_set %x, %v, 4 {axis=0}
    ...   %1: f64[9] = scatter_set %0, 1.0, 3 {axis=0}
    ...   %2: f64[] = gather %1, 4 {axis=0}
    ...   return %1, %2
    ... }''')
    >>> print(as_written(function))
    func @f(%x: f64[9], %v: f64[]) -> (f64[9], f64[]) {
      %0: f64[9] = scatter_set %x, %v, 4 {axis=0}
      %1: f64[9] = scatter_set %0, 1.0, 3 {axis=0}
      return %1, %v
    }
    """
    places: Places | None = None
    found: dict[Operation, Value] = {}
    for operation in function.walk():
        if operation.op.name == "gather" and is_update(operation.operands[0]):
            places = places or Places(function)
            written = last_written(places, operation)
            if written is not None:
                found[operation] = written
    return Forwarded(found).region(function) if found else function


def is_update(value: Value) -> bool:
    return value.producer is not None and value.producer.op.name in PUT


def last_written(places: Places, read: Operation) -> Value | None:
    """What the last write to the place of a read has put there."""
    indices = indices_of(read)
    type = read.operands[0].type
    assert isinstance(type, ArrayType)
    if any(index.type.rank for index in indices):
        return None
    for index, size in zip(indices, type.shape[read.attrs["axis"] :], strict=False):
        low, high = places.bounds(index)
        if not isinstance(size, int) or low < 0 or high >= size:
            return None
    where = None
    value = read.operands[0]
    for _ in range(FARTHEST):
        write = value.producer
        if write is None or write.op.name not in PUT:
            return None
        if same_place(write, read):
            return write.operands[1] if write.op.name == "scatter_set" else None
        where = where or places.indexed(type, indices, read.attrs["axis"])
        other = places.indexed(type, indices_of(write), write.attrs["axis"])
        if where is None or other is None or not places.apart(where[0], other[0]):
            return None
        value = write.operands[0]
    return None


class Forwarded(Rewriting):
    """Writes a function again, with known values in place of reads."""

    def __init__(self, found: dict[Operation, Value]) -> None:
        self.found = found

    def placed(self, builder: Builder, operation: Operation, env: Env) -> Sequence[Value]:
        if operation in self.found:
            return [look_up(env, self.found[operation])]
        regions = [self.region(region) for region in operation.regions]
        operands = [look_up(env, value) for value in operation.operands]
        return builder.emit_operation(operation.op, operands, operation.attrs, regions).results


# --- what is written again --------------------------------------------------------------------------------------------


def written_once(function: Function) -> Function:
    """The function without arrays that are only read, and written again, at the place where they were written.

    >>> import srcgrad.ir.ops
    >>> from srcgrad.ir.parser import parse
    >>> function = parse('''func @f(%x: f64[9], %v: f64[], %k: i64[]) -> (f64[9], f64[]) {
    ...   %0: f64[9] = scatter_add %x, %v, %k {axis=0}
    ...   %1: f64[] = gather %0, %k {axis=0}
    ...   %2: f64[9] = scatter_set %0, 0.0, %k {axis=0}
    ...   %3: f64[9] = scatter_add %2, 2.0, %k {axis=0}
    ...   return %3, %1
    ... }''')
    >>> print(written_once(function))
    func @f(%x: f64[9], %v: f64[], %k: i64[]) -> (f64[9], f64[]) {
      %0: f64[] = gather %x, %k {axis=0}
      %1: f64[] = add %0, %v
      %2: f64[] = add 0.0, 2.0
      %3: f64[9] = scatter_set %x, %2, %k {axis=0}
      return %3, %1
    }
    """
    rewriting = Once()
    found = rewriting.region(function)
    return found if rewriting.gone else function


class Pending(NamedTuple):
    """An array that is not made: what it would be made of, and what is there, or comes to what is there."""

    array: Value
    value: Value
    is_set: bool


class Once(Rewriting):
    """Writes a function again without writes that are written over."""

    def __init__(self) -> None:
        self.gone: dict[Value, bool] = {}
        """The arrays that are not made, and whether it is known what they have at the place."""
        self.pending: dict[Value, Pending] = {}

    def region(self, region: AnyRegion) -> AnyRegion:
        readers = Readers(region)
        for operation in region.operations:
            if operation.op.name in PUT:
                is_set = operation.op.name == "scatter_set" or self.gone.get(operation.operands[0], False)
                if is_written_again(readers, operation, is_set):
                    self.gone[operation.results[0]] = is_set
        return super().region(region)

    def placed(self, builder: Builder, operation: Operation, env: Env) -> Sequence[Value]:
        name, operands = operation.op.name, [look_up(env, value) for value in operation.operands]
        before = self.pending.get(operation.operands[0]) if name in INDEXED else None
        if before is not None:
            operands[0] = before.array
        if name in PUT:
            is_set = name == "scatter_set"
            if before is not None and before.is_set and not is_set:
                operands[1], is_set = added(builder, before.value, operands[1]), True
            if operation.results[0] in self.gone:
                self.pending[operation.results[0]] = Pending(operands[0], operands[1], is_set)
                return [operands[0]]
            op = REGISTRY["scatter_set" if is_set else "scatter_add"]
            return [builder.emit(op, operands, operation.attrs)]
        regions = [self.region(region) for region in operation.regions]
        results = builder.emit_operation(operation.op, operands, operation.attrs, regions).results
        return results if before is None else [added(builder, results[0], before.value)]


def added(builder: Builder, one: Value, other: Value) -> Value:
    return builder.emit(REGISTRY["logical_or" if one.type.dtype == BOOL else "add"], [one, other])


def is_written_again(readers: Readers, write: Operation, is_set: bool) -> bool:
    """Whether what an update gives is only read where it wrote, and then written there.

    To a sum that is in the array nothing else is added before: that would be another order. Of what has been set
    nothing is read, as the read asks whether the place is there.
    """
    array = write.results[0]
    if readers.is_given(array, -1):
        return False
    *reads, last = readers.of(array) or [write]
    if last.op.name != "scatter_set" and not (is_set and last.op.name == "scatter_add"):
        return False
    if any(is_set or read.op.name != "gather" for read in reads):
        return False
    return all(same_place(write, each) and array not in each.operands[1:] for each in (*reads, last))
