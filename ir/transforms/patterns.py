"""Masks that are known while a program is transformed: what slices, updates and concatenations leave zero.

A `Pattern` says of an array of any size where it is True, by boxes: each axis is cut in a few places, and between cuts
all elements are alike. So it takes as long for ten elements as for a million.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from srcgrad.ir.core import Attrs, Literal, Operation, Value
from srcgrad.ir.ranges import ranges_of
from srcgrad.ir.types import TapeType

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_CELLS: Final = 4096
"""The boxes of a pattern; with more it counts as unknown."""
DEEPEST: Final = 64
"""How many operations back a mask is looked into at once."""

Cuts = tuple[int, ...]
Cells: TypeAlias = "NDArray[np.bool_]"


class Pattern(NamedTuple):
    """Where an array is True: ``cells`` has one element for each box; those of axis k begin and end at ``cuts[k]``."""

    cuts: tuple[Cuts, ...]
    cells: Cells

    @property
    def always(self) -> bool:
        """Whether all elements are True; of no elements all are."""
        return bool(self.cells.all())

    @property
    def never(self) -> bool:
        """Whether there is no True element."""
        return not self.cells.any()


class Unknown(Exception):
    """Nothing is known of a mask."""


def constant(flag: bool, shape: Sequence[int]) -> Pattern:
    """One flag everywhere.

    >>> constant(True, (2, 0)).cuts
    ((0, 2), (0,))
    """
    cuts = tuple((0, size) if size else (0,) for size in shape)
    return Pattern(cuts, np.full([len(each) - 1 for each in cuts], flag))


def split(pattern: Pattern, axis: int, cuts: Sequence[int]) -> Pattern:
    """The same pattern with these cuts, among which its own are, along an axis."""
    own = pattern.cuts[axis]
    if tuple(cuts) == own:
        return pattern
    places = np.searchsorted(own, cuts[:-1], side="right") - 1
    new = (*pattern.cuts[:axis], tuple(cuts), *pattern.cuts[axis + 1 :])
    return limited(Pattern(new, np.take(pattern.cells, places, axis)))


def limited(pattern: Pattern) -> Pattern:
    if pattern.cells.size > MOST_CELLS:
        raise Unknown
    return pattern


def merged(pattern: Pattern) -> Pattern:
    """Without the cuts between boxes that are alike."""
    cuts, cells = list(pattern.cuts), pattern.cells
    for axis, own in enumerate(cuts):
        if len(own) > 2:
            rows = np.moveaxis(cells, axis, 0).reshape(len(own) - 1, -1)
            kept = np.flatnonzero(np.concatenate([[True], (rows[1:] != rows[:-1]).any(axis=1)]))
            cuts[axis] = (*(own[k] for k in kept), own[-1])
            cells = np.take(cells, kept, axis)
    return Pattern(tuple(cuts), cells)


def alike(patterns: Sequence[Pattern], axes: Sequence[int]) -> list[Pattern]:
    """The same patterns with cuts in common along these axes."""
    found = list(patterns)
    for axis in axes:
        cuts = sorted(set().union(*(pattern.cuts[axis] for pattern in found)))
        found = [split(pattern, axis, cuts) for pattern in found]
    return found


def pointwise(function: Callable[..., Cells], *patterns: Pattern) -> Pattern:
    """What a function of flags gives of patterns of one shape."""
    same = alike(patterns, range(len(patterns[0].cuts)))
    return merged(Pattern(same[0].cuts, function(*(pattern.cells for pattern in same))))


# --- movement ---------------------------------------------------------------------------------------------------------


def cut_out(pattern: Pattern, axis: int, places: range) -> Pattern:
    """Cuts round the places of a slice."""
    if len(places) > MOST_CELLS and places.step > 1:
        raise Unknown
    ends = {0, pattern.cuts[axis][-1], *pattern.cuts[axis]}
    if places.step == 1:
        ends |= {places.start, places.stop}
    else:
        ends |= {place + more for place in places for more in (0, 1)}
    return split(pattern, axis, sorted(ends))


def inside(pattern: Pattern, axis: int, places: range) -> tuple[NDArray[np.intp], Cuts]:
    """The boxes that are in a slice along an axis, and the cuts of the slice, once there are cuts round it."""
    own = pattern.cuts[axis]
    first = np.array(own[:-1], dtype=np.intp)
    if places.step == 1:
        chosen = np.flatnonzero((first >= places.start) & (first < places.stop))
        return chosen, (*(own[k] - places.start for k in chosen), len(places)) if len(places) else (0,)
    chosen = np.flatnonzero(
        (first >= places.start) & (first < places.stop) & ((first - places.start) % places.step == 0)
    )
    return chosen, tuple(range(len(places) + 1))


def sliced(pattern: Pattern, attrs: Attrs) -> Pattern:
    for axis, places in enumerate(ranges_of(attrs)):
        pattern = cut_out(pattern, axis, places)
        chosen, own = inside(pattern, axis, places)
        cuts = (*pattern.cuts[:axis], own, *pattern.cuts[axis + 1 :])
        pattern = Pattern(cuts, pattern.cells.take(chosen, axis))
    return merged(pattern)


def written(target: Pattern, part: Pattern, attrs: Attrs) -> Pattern:
    """The target with a slice of it replaced."""
    chosen = []
    for axis, places in enumerate(ranges_of(attrs)):
        back = [places[cut] for cut in part.cuts[axis][:-1]]
        target = cut_out(target, axis, places)
        target = split(target, axis, sorted({*target.cuts[axis], *back}))
        boxes, own = inside(target, axis, places)
        part = split(part, axis, own)
        chosen.append(boxes)
    cells = np.array(target.cells)
    cells[np.ix_(*chosen)] = part.cells
    return merged(Pattern(target.cuts, cells))


def joined(patterns: Sequence[Pattern], axis: int) -> Pattern:
    """One after the other along an axis."""
    same = alike(patterns, [k for k in range(len(patterns[0].cuts)) if k != axis])
    ends: list[int] = [0]
    for pattern in same:
        ends += [ends[-1] + cut for cut in pattern.cuts[axis][1:]]
    cells = np.concatenate([pattern.cells for pattern in same], axis)
    return merged(limited(Pattern((*same[0].cuts[:axis], tuple(ends), *same[0].cuts[axis + 1 :]), cells)))


def reversed_along(pattern: Pattern, axes: Sequence[int]) -> Pattern:
    cuts = [tuple(own[-1] - cut for cut in own[::-1]) if k in axes else own for k, own in enumerate(pattern.cuts)]
    return Pattern(tuple(cuts), np.flip(pattern.cells, tuple(axes)))


def stretched(pattern: Pattern, shape: Sequence[int], dims: Sequence[int]) -> Pattern:
    """A broadcast: axis k becomes ``dims[k]``, and one of size 1 any size."""
    wide = constant(True, shape)
    cuts = list(wide.cuts)
    for axis, dim in enumerate(dims):
        if pattern.cuts[axis][-1] == shape[dim]:
            cuts[dim] = pattern.cuts[axis]
    placed = np.expand_dims(
        pattern.cells.transpose(np.argsort(dims)), tuple(k for k in range(len(shape)) if k not in dims)
    )
    return Pattern(tuple(cuts), np.broadcast_to(placed, [len(own) - 1 for own in cuts]))


def reshaped(pattern: Pattern, shape: Sequence[int]) -> Pattern:
    """Axes of one element come and go; else only what is the same everywhere is known."""
    if not pattern.cells.size or pattern.always or pattern.never:
        return constant(pattern.always, shape)
    kept = [own for own in pattern.cuts if own[-1] != 1]
    if [own[-1] for own in kept] != [size for size in shape if size != 1]:
        raise Unknown
    following = iter(kept)
    cuts = tuple((0, 1) if size == 1 else next(following) for size in shape)
    return Pattern(cuts, pattern.cells.reshape([len(own) - 1 for own in cuts]))


def reduced(pattern: Pattern, axes: Sequence[int]) -> Pattern:
    """Whether any is True, along axes."""
    cuts = tuple(own for k, own in enumerate(pattern.cuts) if k not in axes)
    return merged(Pattern(cuts, np.asarray(pattern.cells.any(axis=tuple(axes)))))


def running(pattern: Pattern, marks: Pattern, axis: int, reverse: bool) -> Pattern:
    """Whether any is True so far along an axis, which starts anew nowhere."""
    if not marks.never:
        raise Unknown
    cells = np.flip(pattern.cells, axis) if reverse else pattern.cells
    found = np.logical_or.accumulate(cells, axis)
    return merged(Pattern(pattern.cuts, np.flip(found, axis) if reverse else found))


RULES: Final[dict[str, Callable[[Attrs, Sequence[Pattern]], Pattern]]] = {
    "slice": lambda attrs, given: sliced(given[0], attrs),
    "slice_set": lambda attrs, given: written(given[0], given[1], attrs),
    "concatenate": lambda attrs, given: joined(given, attrs["axis"]),
    "reverse": lambda attrs, given: reversed_along(given[0], attrs["axes"]),
    "transpose": lambda attrs, given: Pattern(
        tuple(given[0].cuts[k] for k in attrs["perm"]), given[0].cells.transpose(attrs["perm"])
    ),
    "broadcast": lambda attrs, given: stretched(given[0], attrs["shape"], attrs["dims"]),
    "reshape": lambda attrs, given: reshaped(given[0], attrs["shape"]),
    "reduce_or": lambda attrs, given: reduced(given[0], attrs["axes"]),
    "restarting_cumsum": lambda attrs, given: running(given[0], given[1], attrs["axis"], attrs["reverse"]),
    "logical_or": lambda attrs, given: pointwise(np.logical_or, *given),
    "logical_and": lambda attrs, given: pointwise(np.logical_and, *given),
    "logical_not": lambda attrs, given: pointwise(np.logical_not, *given),
}
"""By op, what its result is, of its attributes and patterns of its operands."""


class Patterns:
    """What is known of the masks of one program, each looked into once."""

    def __init__(self) -> None:
        self.found: dict[Value, Pattern | None] = {}

    def of(self, mask: Value, depth: int = 0) -> Pattern | None:
        """Where a mask is True, if that is known."""
        if isinstance(mask, Literal):
            return constant(bool(mask.value), mask.type.static_shape) if self.sized(mask) and mask.splat else None
        producer = mask.producer
        if producer is None or producer.op.name not in RULES:
            return None
        if mask not in self.found:
            self.found[mask] = self.made(producer, depth) if depth < DEEPEST and self.sized(mask) else None
        return self.found[mask]

    def never_in(self, mask: Value, attrs: Attrs) -> bool:
        """Whether it is known that a mask is False everywhere in a slice."""
        pattern = self.of(mask)
        try:
            return pattern is not None and sliced(pattern, attrs).never
        except Unknown:
            return False

    def sized(self, mask: Value) -> bool:
        """Whether this is an array of a shape that is known."""
        type: Any = mask.type
        return not isinstance(type, TapeType) and all(isinstance(size, int) for size in type.shape)

    def made(self, operation: Operation, depth: int) -> Pattern | None:
        given = []
        for operand in operation.operands:
            pattern = self.of(operand, depth + 1)
            if pattern is None:
                return None
            given.append(pattern)
        try:
            return RULES[operation.op.name](operation.attrs, given)
        except Unknown:
            return None
