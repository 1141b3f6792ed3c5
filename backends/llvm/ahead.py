"""What loops ask memory for ahead of reading it.

Processors look some hundred instructions ahead, and what they fetch of themselves ends with each page. That is enough
for a sum of an array, where it is one instruction for each cache line. Loops with a few more for each line wait: they
ask for what comes 4 KB later. The phases of a nest read its rows one after the other, the first of them from memory and
the others from cache; so the dearest phase, which leaves memory idle, asks for the next block of rows.

Heavy bodies keep numbers on the stack, and what they write there waits behind what they write to far caches, until the
processor has no room for more: they ask for the lines that they are about to write, too. A gradient of 100,000 numbers
in three arrays took 400 µs, and takes 320.

Asking for what no loop reads, beyond the end of an array too, does nothing but take time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from srcgrad.backends.llvm.loops import Group, Load
from srcgrad.backends.llvm.nests import Nest
from srcgrad.backends.llvm.planning import bytes_of
from srcgrad.backends.llvm.shapes import Shape, moved
from srcgrad.backends.llvm.target import Target
from srcgrad.ir.core import Value

LARGE: Final = 2 << 20
"""The bytes of all arrays together from which they come from memory, or from far caches."""
_PART: Final = 8
"""The part of these that an array has at least which is worth an instruction for each of its lines."""
_WAITS: Final = 3
"""The cost in additions, for each array that is read, from which loops wait: products of arrays take 1.1 of the time
where they ask, minima and maxima, which keep nan and so have this cost, 0.7."""
_AHEAD: Final = 4096
_AHEAD_OF_ROWS: Final = 256
"""Where several rows are read at once."""
_WRITTEN: Final = 1024
_HEAVY: Final = 40
"""The cost of bodies on two vectors side by side from which some of their numbers are on the stack."""
_VECTOR: Final = 32
"""The bytes of vectors, from which there are two at most to each cache line."""


def ahead_of_group(group: Group, shape: Shape, target: Target) -> dict[int, int]:
    """How many bytes ahead loops ask memory for what statements read, by the statements' numbers."""
    found = far_reads(group, shape.lanes, target) if moved(group) >= LARGE else {}
    if group.cost() + _WAITS * sum(map(group.is_extreme, group.folds)) < _WAITS * len(found):
        return {}
    return dict.fromkeys(found.values(), _AHEAD if shape.rows == 1 else _AHEAD_OF_ROWS)


def ahead_of_writes(group: Group, shape: Shape) -> int:
    """How many bytes ahead loops that ask memory for what they read ask for what they write."""
    return _WRITTEN if shape.wide and group.cost() >= _HEAVY else 0


def ahead_of_nest(nest: Nest, lanes: Sequence[int], target: Target) -> list[dict[int, int]]:
    """The same for each phase of a nest, whose vectors have so many ``lanes``."""
    found: list[dict[int, int]] = [{} for _ in nest.phases]
    if moved(nest) < LARGE:
        return found
    reads = [far_reads(phase, count, target) for phase, count in zip(nest.phases, lanes, strict=True)]
    for value in nest.inputs:
        places = [k for k, reading in enumerate(reads) if value in reading]
        if not places:
            continue
        dearest = max(places, key=lambda k: nest.phases[k].cost())
        number = reads[dearest][value]
        item = nest.phases[dearest].statements[number]
        assert isinstance(item, Load)
        step = nest.block * item.line.strides[nest.outer - 1] * item.dtype.itemsize
        if step > 0:
            found[dearest][number] = max(step, _AHEAD)
    return found


def far_reads(group: Group, lanes: int, target: Target) -> dict[Value, int]:
    """The arrays that the innermost loop reads from end to end, vector by vector, and the first statements to."""
    found: dict[Value, int] = {}
    if target.arm or target.vector_bytes < _VECTOR or not group.domain:
        return found
    for number, item in enumerate(group.statements):
        if isinstance(item, Load) and item.line.strides[-1] == 1 and item.dtype.itemsize * lanes >= _VECTOR:
            value = group.inputs[item.source]
            if bytes_of(value.type) >= LARGE // _PART:
                found.setdefault(value, number)
    return found
