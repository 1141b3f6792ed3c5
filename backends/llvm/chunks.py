"""Which kernels run in chunks, on several threads: fixed parts of one axis, which depend on the program alone.

So results are the same however many threads there are, and where the chunks run one after the other.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from srcgrad.backends.llvm.loops import Fold, Group
from srcgrad.backends.llvm.nests import Nest
from srcgrad.backends.llvm.planning import bytes_of
from srcgrad.backends.llvm.shapes import moved, shape_of
from srcgrad.backends.llvm.target import Target
from srcgrad.ir.core import Value

PER_ADDITION: Final = 0.02
"""About the nanoseconds that an addition takes, of many in vectors."""
PER_BYTE: Final = 0.04
"""About the nanoseconds that a byte takes to come from memory, or to go there."""
WORTH: Final = 20_000
"""The nanoseconds from which a kernel runs in chunks: it takes some to wake a thread."""
EACH: Final = 4_000
"""The nanoseconds that a chunk should take at least."""
MANY: Final = 64
LONG: Final = 60_000
"""The nanoseconds that a chunk should take where there are ``MANY``: short ones cost a tenth of what memory gives."""
MOST: Final = 256
ROOM: Final = 256 << 10
"""The bytes, on the stack, for the parts that chunks give of folds over their axis."""
PIECE: Final = 4096
"""The least bytes that a chunk of an inner axis has in a row: what is read in shorter pieces is not read ahead."""


class Chunks(NamedTuple):
    """Parts of an axis: that many ``parts``, all of the same length but the last, which ends at ``size``."""

    axis: int
    size: int
    length: int
    parts: int


def chunks_of(group: Group | Nest, target: Target) -> Chunks | None:
    """The chunks of a kernel, or None where it is not worth it."""
    if 0 in group.domain or not group.domain or (isinstance(group, Group) and group.boxes):
        return None
    time = duration(group)
    if time < WORTH:
        return None
    wanted = min(MOST, int(time / EACH), max(MANY, int(time / LONG)))
    if isinstance(group, Nest):
        most = min(wanted, room_for_parts(group, 0))
        return divided(0, group.domain[0], group.block if group.outer == 1 else 1, most) if most else None
    shape, rank = shape_of(group, target), len(group.domain)
    best: Chunks | None = None
    for axis, size in enumerate(group.domain):
        row = math.prod(group.domain[axis:]) * max(item.dtype.itemsize for item in group.statements)
        most = min(wanted, room_for_parts(group, axis), wanted if not axis else row // PIECE)
        if not most:
            continue
        step = 1
        if axis == rank - 1:
            step = shape.lanes * (1 if shape.heavy else shape.unroll)
        elif axis == rank - 2:
            step = shape.rows
        found = divided(axis, size, step, most)
        if found is not None and (best is None or (best.parts < min(wanted, 8) and found.parts > best.parts)):
            best = found
    return best


def parted_folds(group: Group | Nest, axis: int) -> list[tuple[Group, Fold]]:
    """The folds of which chunks of an axis give parts."""
    groups = group.phases if isinstance(group, Nest) else [group]
    return [(phase, fold) for phase in groups for fold in phase.folds if axis in fold.axes]


def bytes_of_part(value: Value) -> int:
    """The room for what one chunk gives of an output: whole cache lines, which chunks do not share."""
    return -(-bytes_of(value.type) // 64) * 64


def room_for_parts(group: Group | Nest, axis: int) -> int:
    """For how many chunks of an axis there is room for the parts of folds."""
    size = sum(bytes_of_part(phase.outputs[fold.output]) for phase, fold in parted_folds(group, axis))
    return ROOM // size if size else MOST


def divided(axis: int, size: int, step: int, wanted: int) -> Chunks | None:
    """Chunks of whole steps, each of at least one, the last with what is left over too."""
    steps = size // step
    each = -(-steps // wanted)
    count = -(-steps // max(each, 1))
    return Chunks(axis, size, each * step, count) if count > 1 else None


def duration(group: Group | Nest) -> float:
    """About how many nanoseconds a kernel takes on one thread."""
    return max(PER_ADDITION * group.work(), PER_BYTE * moved(group))
