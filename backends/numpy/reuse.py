"""Which values share a buffer, and until when each buffer is read.

A *root* is a value that owns a buffer: a parameter, or the result of an op that computes something new. A view, or what
may be one, has the roots of its operands. What is large enough to matter has its last use recorded, so that a program
can write over a buffer that is read no more, or free it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple

from srcgrad.backends.numpy.expressions import Meaning, takes_scalars
from srcgrad.ir.core import Literal, Operation, Region, Value
from srcgrad.ir.opdef import Elementwise
from srcgrad.ir.types import ArrayType, TapeType

LARGE: Final = 4096
"""Bytes from which on the reuse of a buffer is worth a longer line."""

FREED: Final = 1 << 16
"""Bytes from which on freeing a buffer before the function ends is worth a line."""

_MANY_ROOTS: Final = 16

Roots = tuple[Value, ...]


class Flat(NamedTuple):
    """A region as a straight list of operations, with their meanings."""

    params: Sequence[Value]
    operations: Sequence[Operation]
    results: Sequence[Value]
    meanings: Sequence[Meaning]


Flatten = Callable[[Region], Flat]


def bytes_of(type: ArrayType) -> int:
    """The memory that an array of this type takes."""
    return type.size * type.dtype.itemsize


class Buffers:
    """The roots of the values of a straight list of operations.

    ``last_use`` maps each large root to the index of the last operation that reads its buffer: what the function
    returns is read at ``len(operations)``. A parameter's buffer belongs to the caller, but for those that are
    ``owned``. ``regions`` says of each operation with regions what they may do with its operands' buffers.
    """

    __slots__ = (
        "_is_large", "_last_read", "_roots", "_views", "any_large", "flatten", "last_use", "pinned", "read_only",
        "regions",
    )  # fmt: skip

    def __init__(
        self,
        params: Sequence[Value],
        operations: Sequence[Operation],
        results: Sequence[Value],
        meanings: Sequence[Meaning],
        flatten: Flatten | None = None,
        owned: Collection[Value] = (),
    ) -> None:
        self._is_large: dict[ArrayType, bool] = {}
        self._roots: dict[Value, Roots] = {}
        self.last_use: dict[Value, int] = {}
        self.flatten = flatten
        self.regions: dict[Operation, Ownership] = {}
        self._last_read: dict[Value, int] = {}
        self._views: dict[Value, list[Value]] = {}
        self.pinned: set[Value] = set(params).difference(owned)
        """Roots whose buffers are not the program's to write or to return."""
        self.read_only: set[Value] = set()
        """Values that may be broadcasts or constants, neither of which can be written."""
        self.any_large = any(self.large(value) for operation in operations for value in operation.results)
        if owned:
            self.any_large = True
            self.last_use.update(dict.fromkeys(owned, -1))
        if flatten is not None and any(operation.regions for operation in operations):
            for index, operation in enumerate(operations):
                self._last_read.update(dict.fromkeys(operation.operands, index))
            self._last_read.update(dict.fromkeys(results, len(operations)))
        for index, operation in enumerate(operations):
            self._visit(index, operation, meanings[index])
            if operation.op.effect:
                self._give_away(operation)
        if self.any_large:
            for value in results:
                self._read(value, len(operations))

    def large(self, value: Value) -> bool:
        """Whether the value takes enough memory for its buffer to matter."""
        type = value.type
        if not type.shape or isinstance(type, TapeType):
            return False
        found = self._is_large.get(type)
        if found is None:
            found = self._is_large[type] = bytes_of(type) >= LARGE
        return found

    def roots(self, value: Value) -> Roots:
        return self._roots.get(value) or (value,)

    def _visit(self, index: int, operation: Operation, meaning: Meaning) -> None:
        if self.any_large:
            for value in operation.operands:
                if type(value) is Value:
                    self._read(value, index)
            for result in operation.results:
                if meaning.fresh and self.large(result):
                    self.last_use[result] = index
        if operation.regions:
            self._visit_regions(index, operation)
        elif not meaning.fresh:
            for result in operation.results:
                operands = operation.operands
                if not result.type.shape:  # a scalar, which is a view of nothing but of a scalar
                    operands = tuple([value for value in operands if not value.type.shape])
                self._share(operands, result)
                if meaning.read_only:
                    self.read_only.add(result)

    def _visit_regions(self, index: int, operation: Operation) -> None:
        """Results that are buffers of their own, and others, which may be any operand or one another."""
        if self.flatten is None:
            found = Ownership(frozenset(), (), [False] * len(operation.results))
        else:
            movable = [k for k, value in enumerate(operation.operands) if self._is_movable(value, index, operation)]
            found = ownership(operation, frozenset(movable), self.flatten)
        self.regions[operation] = found
        shared: Value | None = None
        arrays = [value for value in operation.operands if value.type.shape]
        for result, own in zip(operation.results, found.own, strict=True):
            if own or not result.type.shape:
                if self.large(result):
                    self.last_use[result] = index
                continue
            self._share(arrays, result)
            self.read_only.add(result)
            if shared is not None:
                self._roots[result] = (*self.roots(result), shared)
            shared = shared or result
        if any(inner.op.name == "host_call" for region in operation.regions for inner in region.walk()):
            self._give_away(operation)

    def _is_movable(self, value: Value, index: int, operation: Operation) -> bool:
        """Whether an operand is a whole buffer that nothing reads after this operation, nor through another operand."""
        if type(value) is not Value:
            return isinstance(value, Literal) and value.splat and self.large(value)
        if value not in self.last_use or value in self.pinned or value in self.read_only:
            return False
        alive = any(self._last_read.get(view, -1) > index for view in (value, *self._views.get(value, ())))
        shown = sum(other is value or value in self._roots.get(other, ()) for other in operation.operands)
        return not alive and shown == 1

    def _read(self, value: Value, index: int) -> None:
        roots = self._roots.get(value)
        if roots is not None:
            for root in roots:
                if root in self.last_use:
                    self.last_use[root] = index
        elif value in self.last_use:
            self.last_use[value] = index

    def _share(self, operands: Sequence[Value], result: Value) -> None:
        found: dict[Value, None] = {}
        for value in operands:
            if isinstance(value, Literal):
                if not value.splat:
                    self.read_only.add(result)
                continue
            found.update(dict.fromkeys(self.roots(value)))
            if value in self.read_only:
                self.read_only.add(result)
        if len(found) <= _MANY_ROOTS:
            self._roots[result] = tuple(found) or (result,)
            if self._last_read:
                for root in found:
                    self._views.setdefault(root, []).append(result)
            return
        # A long chain of choices between buffers: none of them is reused or freed, and the result is copied out.
        for root in found:
            self.pinned.add(root)
            self.last_use.pop(root, None)
        self.pinned.add(result)

    def _give_away(self, operation: Operation) -> None:
        """Python code outside may keep what it is given, and keep what it returns."""
        for value in operation.operands:
            if type(value) is Value:
                self.pinned.update(self.roots(value))
        self.read_only.update(operation.results)

    def dead(self, operation: Operation, index: int) -> list[Value]:
        """The program's own large buffers that the operation at ``index`` is the last to read, or that nobody reads."""
        last_use = self.last_use
        found: dict[Value, None] = {}
        for value in (*operation.operands, *operation.results):
            if type(value) is Value:
                for root in self._roots.get(value) or (value,):
                    if last_use.get(root) == index and root not in self.pinned:
                        found[root] = None
        return list(found)

    def target(self, operation: Operation, dead: Sequence[Value]) -> Value | None:
        """The operand whose buffer the result of an elementwise or updating op may be written into.

        It is a whole buffer of the result's type, dead after this operation, and read through no other operand.
        """
        result = operation.results[0].type
        for value in operation.operands:
            if value in dead and value.type == result and self._alone(value, operation):
                return value
        return None

    def _alone(self, root: Value, operation: Operation) -> bool:
        return all(
            other is root or root not in self._roots.get(other, ())
            for other in operation.operands
            if type(other) is Value
        )

    def copies(self, results: Sequence[Value]) -> list[bool]:
        """For each result of the function, whether it must be copied: what is returned aliases nothing."""
        seen: set[Value] = set()
        found = []
        for value in results:
            roots = self.roots(value)
            copy = (
                value in self.read_only
                or any(root in self.pinned or root in seen for root in roots)
                # A small part of a buffer would keep the whole of it alive.
                or any(root.type.size != value.type.size for root in roots)
            )
            if not copy:
                seen.update(roots)
            found.append(copy)
        return found


class Ownership(NamedTuple):
    """What regions do with buffers: which operands' they may write, and which results are buffers of their own.

    ``owned``: operands whose buffers are the operation's. ``copied``: those of them that are copied first. ``own``: by
    result. ``buffers``: by region.
    """

    owned: frozenset[int]
    copied: tuple[int, ...]
    own: Sequence[bool]
    buffers: tuple[Buffers, ...] = ()


def ownership(operation: Operation, movable: frozenset[int], flatten: Flatten) -> Ownership:
    """What the regions of control flow may do with operands of which some are ``movable``: not read any more."""
    if operation.op.name == "cond":
        return owned_by_branches(operation, movable, flatten)
    return owned_by_loop(operation, movable, flatten)


def buffers_of(flat: Flat, owned: Collection[Value], flatten: Flatten) -> Buffers:
    return Buffers(flat.params, flat.operations, flat.results, flat.meanings, flatten, owned)


def are_own(buffers: Buffers, results: Sequence[Value], others: Sequence[Value]) -> list[bool]:
    """For each result of a region, whether it is a whole buffer of the region's own, and of no other result."""
    users: dict[Value, int] = {}
    for value in (*results, *others):
        for root in buffers.roots(value):
            users[root] = users.get(root, 0) + 1
    found = []
    for value in results:
        if isinstance(value, Literal):
            found.append(value.splat)
            continue
        whole = buffers.roots(value) == (value,) and (value in buffers.last_use or not value.type.shape)
        found.append(whole and users[value] == 1 and value not in buffers.pinned and value not in buffers.read_only)
    return found


def owned_by_branches(operation: Operation, movable: frozenset[int], flatten: Flatten) -> Ownership:
    found, own = [], [True] * len(operation.results)
    for region in operation.regions:
        flat = flatten(region)
        buffers = buffers_of(flat, [flat.params[k - 1] for k in movable if k], flatten)
        own = [a and b for a, b in zip(own, are_own(buffers, flat.results, ()), strict=True)]
        found.append(buffers)
    return Ownership(movable, (), own, tuple(found))


def owned_by_loop(operation: Operation, movable: frozenset[int], flatten: Flatten) -> Ownership:
    """A carry's buffer is the loop's if each trip hands on one of the body's own: then only the first is copied."""
    attrs, regions = operation.attrs, operation.regions
    body = flatten(regions[-1])
    carries = attrs["carries"]
    first = int(operation.op.name == "for" and attrs["trips"] is None)
    params = body.params[1:] if operation.op.name == "for" else body.params
    updates = any(
        meaning.updates or inner.regions for inner, meaning in zip(body.operations, body.meanings, strict=True)
    )
    is_owned = [
        bytes_of(param.type) >= LARGE
        and bool(param.type.shape)
        and not isinstance(param.type, TapeType)
        and (updates or first + k in movable)
        for k, param in enumerate(params[:carries])
    ]
    while True:
        buffers = buffers_of(body, [param for param, flag in zip(params, is_owned, strict=False) if flag], flatten)
        taped = [value for value in body.results[carries:] if keeps_elements(operation, value)]
        own = are_own(buffers, body.results[:carries], taped)
        kept = [flag and mine for flag, mine in zip(is_owned, own, strict=True)]
        if kept == is_owned:
            break
        is_owned = kept
    owned = frozenset(first + k for k, flag in enumerate(is_owned) if flag)
    counted = 1 if operation.op.name == "while" else 0
    arrays = [not isinstance(value.type, TapeType) for value in operation.results[carries + counted :]]
    result_own = [*is_owned, *[True] * counted, *arrays]
    parts: tuple[Buffers, ...] = (buffers,)
    if counted:
        parts = (buffers_of(flatten(regions[0]), (), flatten), buffers)
    return Ownership(owned, tuple(sorted(owned - movable)), result_own, parts)


def keeps_elements(operation: Operation, value: Value) -> bool:
    """Whether a column keeps the arrays that it is given: a tape does, an array has a copy."""
    return operation.op.name == "while" or operation.attrs["trips"] is None or isinstance(value.type, TapeType)


def sunk(params: Sequence[Value], operations: Sequence[Operation]) -> Sequence[Operation]:
    """The operations with each large elementwise value of parameters alone moved to just before its first use.

    Parameters stay alive anyway, so nothing lives longer and fewer arrays live at once: residuals such as ``np.cos(x)``
    are computed where the reverse pass needs them, in memory that is still in the cache.
    """
    alive = set(params)
    if not any(bytes_of(param.type) >= LARGE for param in alive):
        return operations
    first_use: dict[Value, int] = {}
    for index, operation in enumerate(operations):
        for value in operation.operands:
            first_use.setdefault(value, index)
    waiting: dict[int, list[Operation]] = {}
    order: list[Operation] = []
    for index, operation in enumerate(operations):
        sinks = (
            isinstance(operation.op, Elementwise)
            and bytes_of(operation.results[0].type) >= LARGE
            and operation.results[0] in first_use
            and all(isinstance(value, Literal) or value in alive for value in operation.operands)
        )
        if sinks:
            waiting.setdefault(first_use[operation.results[0]], []).append(operation)
        order += waiting.pop(index, ())
        if not sinks:
            order.append(operation)
    return order


def foldable_broadcasts(operations: Sequence[Operation], results: Sequence[Value]) -> Mapping[Value, Value]:
    """The results of ``broadcast`` that need not be made, and their operands: NumPy broadcasts where they are used.

    That is so where every use is elementwise and the operands reach the full shape without it.
    """
    found: dict[Value, Value] = {
        operation.results[0]: operation.operands[0]
        for operation in operations
        if operation.op.name == "broadcast" and not isinstance(operation.operands[0], Literal)
    }
    if not found:
        return found
    kept: set[Value] = {value for value in results if value in found}
    shown = {value: _aligned_shape(value) for value in found}
    for operation in operations:
        uses = [value for value in operation.operands if value in found]
        if uses and not _reaches(operation, shown):
            kept.update(uses)
    return {value: source for value, source in found.items() if value not in kept}


def _aligned_shape(value: Value) -> tuple[object, ...]:
    """The shape of a broadcast's operand with axes of size 1 inserted; None for the leading ones, which it lacks."""
    broadcast = value.producer
    if broadcast is None:
        return value.type.shape
    dims = broadcast.attrs["dims"]
    absent = min(dims, default=value.type.rank)
    sizes: list[object] = [None] * absent + [1] * (value.type.rank - absent)
    for size, dim in zip(broadcast.operands[0].type.shape, dims, strict=True):
        sizes[dim] = size
    return tuple(sizes)


def _reaches(operation: Operation, shown: Mapping[Value, tuple[object, ...]]) -> bool:
    if not takes_scalars(operation.op):
        return False
    if operation.op.name == "select" and operation.operands[0].type.rank == 0:
        return False
    shape = operation.results[0].type.shape
    reached = [False] * len(shape)
    for value in operation.operands:
        if isinstance(value, Literal) and value.splat:
            continue
        for axis, size in enumerate(shown.get(value, value.type.shape)):
            reached[axis] = reached[axis] or size == shape[axis]
    return all(reached)
