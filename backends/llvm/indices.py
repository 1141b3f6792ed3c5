"""Where an array is read: offsets and strides along the axes of a loop nest, and how views change them.

A view may be of several arrays: a concatenation shows each of them within bounds, and an array that is written into
another one is shown within bounds and the other, or zeros, elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from srcgrad.ir.core import Literal, Operation, Value
from srcgrad.ir.types import ArrayType

VIEWS: Final = frozenset({"broadcast", "reshape", "transpose", "slice", "reverse"})
LARGEST_WINDOWS: Final = 4096
"""The indices up to which it is asked whether they are affine."""


class Line(NamedTuple):
    """A whole number that is affine in the indices of a domain."""

    offset: int
    strides: tuple[int, ...]

    def of(self, index: Index, rank: int) -> Line:
        """The number where this line's own indices are given by lines of another domain, of ``rank`` axes."""
        offset, strides = self.offset, [0] * rank
        for stride, line in zip(self.strides, index, strict=True):
            if stride:
                offset += stride * line.offset
                for axis, inner in enumerate(line.strides):
                    strides[axis] += stride * inner
        return Line(offset, tuple(strides))

    def text(self) -> str:
        named = [(f"i{axis}", stride) for axis, stride in enumerate(self.strides) if stride]
        parts = [name if stride == 1 else f"{stride}*{name}" for name, stride in named]
        if self.offset or not parts:
            parts.append(str(self.offset))
        return " + ".join(parts).replace("+ -", "- ")


Index = tuple[Line, ...]
"""One line per axis of an array."""


class Bound(NamedTuple):
    """That a number, affine in the indices of a domain, is one of the first ``size`` whole numbers."""

    line: Line
    size: int

    def of(self, index: Index, rank: int) -> Bound:
        return Bound(self.line.of(index, rank), self.size)

    def holds(self, domain: Sequence[int]) -> bool | None:
        """Whether it is so at all points of a domain, or at none; None where it depends on the point."""
        least = most = self.line.offset
        for stride, size in zip(self.line.strides, domain, strict=True):
            least, most = least + min(stride * (size - 1), 0), most + max(stride * (size - 1), 0)
        if least >= 0 and most < self.size:
            return True
        return False if most < 0 or least >= self.size else None


Bounds = tuple[Bound, ...]


class Where(NamedTuple):
    """At which elements an array is read, at those points of a domain that are within bounds."""

    places: Index
    bounds: Bounds = ()


class Piece(NamedTuple):
    """What shows elements of ``base``: by an index, or, where axes were joined, by the place in C order."""

    base: Value
    places: Index | None
    flat: Line | None = None
    bounds: Bounds = ()

    def of(self, index: Index, rank: int) -> Piece:
        """The piece where the indices of its view are given by lines of a domain of ``rank`` axes."""
        bounds = tuple([bound.of(index, rank) for bound in self.bounds])
        if self.places is None:
            assert self.flat is not None
            return Piece(self.base, None, self.flat.of(index, rank), bounds)
        return Piece(self.base, tuple([line.of(index, rank) for line in self.places]), None, bounds)


class View(NamedTuple):
    """A value that shows pieces of arrays: at each place the first one that is there.

    ``padded``: it is zero where there is no piece; or else there is none such place.
    """

    pieces: tuple[Piece, ...]
    bases: tuple[Value, ...]
    padded: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether it is one piece, everywhere."""
        return len(self.pieces) == 1 and not self.pieces[0].bounds

    @property
    def is_flat(self) -> bool:
        """Whether an array is read by its place in C order."""
        return any(piece.places is None for piece in self.pieces)

    def of(self, index: Index, rank: int) -> View:
        return self._replace(pieces=tuple([piece.of(index, rank) for piece in self.pieces]))


def whole_view(base: Value, places: Index | None, line: Line | None = None) -> View:
    """A view of one array everywhere."""
    return View((Piece(base, places, line),), (base,))


def strides_of(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of an array in C order, in elements."""
    found, step = [], 1
    for size in reversed(shape):
        found.append(step)
        step *= size
    return tuple(reversed(found))


def flat(index: Index, shape: Sequence[int], rank: int) -> Line:
    """The place in C order of what an index reads, in a domain of ``rank`` axes."""
    return Line(0, strides_of(shape)).of(index, rank)


def unit(axis: int, rank: int, stride: int = 1, offset: int = 0) -> Line:
    return Line(offset, tuple(stride if k == axis else 0 for k in range(rank)))


def view_index(operation: Operation) -> Index | None:
    """Per axis of the operand of a view, the index in terms of the result's axes; None where it is not affine."""
    attrs, name = operation.attrs, operation.op.name
    operand, result = operation.operands[0].type.static_shape, operation.results[0].type.static_shape
    rank = len(result)
    if name == "broadcast":
        pairs = zip(operand, attrs["dims"], strict=True)
        return tuple(Line(0, (0,) * rank) if size == 1 else unit(dim, rank) for size, dim in pairs)
    if name == "transpose":
        found = [Line(0, ())] * rank
        for position, axis in enumerate(attrs["perm"]):
            found[axis] = unit(position, rank)
        return tuple(found)
    if name == "slice":
        pairs = zip(attrs["starts"], attrs["strides"], strict=True)
        return tuple(unit(axis, rank, stride, start) for axis, (start, stride) in enumerate(pairs))
    if name == "reverse":
        axes = attrs["axes"]
        return tuple(
            unit(axis, rank, -1, size - 1) if axis in axes else unit(axis, rank) for axis, size in enumerate(operand)
        )
    if name == "gather":
        return window_index(operation)
    return reshape_index(operand, result)


def window_index(gather: Operation) -> Index | None:
    """The index of what known indices read that are affine, as those of sliding windows are: ``x[i + j]``."""
    _, *indices = gather.operands
    if len(indices) != 1 or not isinstance(indices[0], Literal):
        return None
    axis, operand, result = gather.attrs["axis"], gather.operands[0].type, gather.results[0].type
    line, more = affine(indices[0], operand.static_shape[axis]), indices[0].type.rank - 1
    if line is None:
        return None
    strides = tuple(line.strides[k - axis] if axis <= k <= axis + more else 0 for k in range(result.rank))
    return tuple(
        Line(line.offset, strides) if k == axis else unit(k + more * (k > axis), result.rank)
        for k in range(operand.rank)
    )


@lru_cache(maxsize=64)
def affine(index: Literal, size: int) -> Line | None:
    """Indices of an axis as a line of their own indices; None where there is none, or one that is out of bounds."""
    shape = index.type.static_shape
    if not shape or not 0 < index.type.size <= LARGEST_WINDOWS:
        return None
    given = np.broadcast_to(index.value, shape).astype(np.int64)
    given = np.where(given < 0, given + size, given)
    if given.min() < 0 or given.max() >= size:
        return None
    first = (0,) * len(shape)
    steps = [
        int(given[(*first[:k], min(1, count - 1), *first[k + 1 :])] - given[first]) for k, count in enumerate(shape)
    ]
    places = np.tensordot(steps, np.indices(shape), axes=1) + given[first]
    return Line(int(given[first]), tuple(steps)) if np.array_equal(places, given) else None


def reshape_index(operand: tuple[int, ...], result: tuple[int, ...]) -> Index | None:
    """The index of a reshape, where each axis of the operand is one or several whole axes of the result."""
    rank, position = len(result), 0
    found = []
    if 0 in operand:
        return None
    for size in operand:
        axes, covered = [], 1
        while covered < size and position < rank:
            axes.append(position)
            covered *= result[position]
            position += 1
        if covered != size:
            return None
        line, step = [0] * rank, 1
        for axis in reversed(axes):
            line[axis] = step
            step *= result[axis]
        found.append(Line(0, tuple(line)))
    return tuple(found)


def within(where: Where, piece: Piece, domain: Sequence[int]) -> tuple[Piece, Bounds] | None:
    """A piece that is read there: as of the domain's indices, with all bounds that are not always kept to.

    And those of them that are its own. None where it is nowhere.
    """
    found = piece.of(where.places, len(domain))
    own: list[Bound] = []
    for bound in found.bounds:
        holds = bound.holds(domain)
        if holds is False:
            return None
        if holds is None and bound not in where.bounds:
            own.append(bound)
    if not own:
        return found._replace(bounds=where.bounds), ()
    return found._replace(bounds=tuple(sorted({*where.bounds, *own}))), tuple(sorted(set(own)))


def identity(type: ArrayType) -> tuple[Line, ...]:
    """An array read where it is."""
    return tuple(unit(axis, type.rank) for axis in range(type.rank))


def alias_offset(view: View, value: Value) -> int | None:
    """The element from which on a view is a whole piece of its base in C order; None where it is not one."""
    shape = value.type.static_shape
    if not view.is_whole:
        return None
    base, places, line, _ = view.pieces[0]
    if places is not None:
        line = flat(places, base.type.static_shape, len(shape))
    assert line is not None
    if 0 in shape:
        return 0
    for size, stride, wanted in zip(shape, line.strides, strides_of(shape), strict=True):
        if size != 1 and stride != wanted:
            return None
    return line.offset
