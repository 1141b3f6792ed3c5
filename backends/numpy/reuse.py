"""Which values share a buffer, and until when each buffer is read.

A *root* is a value that owns a buffer: a parameter, or the result of an op that computes something new. A view, or what
may be one, has the roots of its operands. What is large enough to matter has its last use recorded, so that a program
can write over a buffer that is read no more, or free it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from srcgrad.backends.numpy.expressions import Meaning, takes_scalars
from srcgrad.ir.core import Literal, Operation, Value
from srcgrad.ir.opdef import Elementwise
from srcgrad.ir.types import ArrayType

LARGE: Final = 4096
"""Bytes from which on the reuse of a buffer is worth a longer line."""

FREED: Final = 1 << 16
"""Bytes from which on freeing a buffer before the function ends is worth a line."""

_MANY_ROOTS: Final = 16

Roots = tuple[Value, ...]


def bytes_of(type: ArrayType) -> int:
    """The memory that an array of this type takes."""
    return type.size * type.dtype.itemsize


class Buffers:
    """The roots of the values of a straight list of operations.

    ``last_use`` maps each large root to the index of the last operation that reads its buffer: what the function
    returns is read at ``len(operations)``. A parameter's buffer belongs to the caller.
    """

    __slots__ = ("_is_large", "_roots", "any_large", "last_use", "pinned", "read_only")

    def __init__(
        self,
        params: Sequence[Value],
        operations: Sequence[Operation],
        results: Sequence[Value],
        meanings: Sequence[Meaning],
    ) -> None:
        self._is_large: dict[ArrayType, bool] = {}
        self._roots: dict[Value, Roots] = {}
        self.last_use: dict[Value, int] = {}
        self.pinned: set[Value] = set(params)
        """Roots whose buffers are not the program's to write or to return."""
        self.read_only: set[Value] = set()
        """Values that may be broadcasts or constants, neither of which can be written."""
        self.any_large = any(self.large(value) for operation in operations for value in operation.results)
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
        if not type.shape:
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
        if not meaning.fresh:
            for result in operation.results:
                self._share(operation, result)
                if meaning.read_only:
                    self.read_only.add(result)

    def _read(self, value: Value, index: int) -> None:
        roots = self._roots.get(value)
        if roots is not None:
            for root in roots:
                if root in self.last_use:
                    self.last_use[root] = index
        elif value in self.last_use:
            self.last_use[value] = index

    def _share(self, operation: Operation, result: Value) -> None:
        found: dict[Value, None] = {}
        for value in operation.operands:
            if isinstance(value, Literal):
                if not value.splat:
                    self.read_only.add(result)
                continue
            found.update(dict.fromkeys(self.roots(value)))
            if value in self.read_only:
                self.read_only.add(result)
        if len(found) <= _MANY_ROOTS:
            self._roots[result] = tuple(found) or (result,)
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
