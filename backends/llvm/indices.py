"""Where an array is read: offsets and strides along the axes of a loop nest, and how views change them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from srcgrad.ir.core import Operation, Value

VIEWS: Final = frozenset({"broadcast", "reshape", "transpose", "slice", "reverse"})


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


class View(NamedTuple):
    """A value that shows elements of ``base``: by an index, or, where axes were joined, by the place in C order."""

    base: Value
    places: Index | None
    flat: Line | None


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
    return reshape_index(operand, result)


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


def composed(view: View, index: Index, rank: int) -> View:
    """A view of a view, whose operand's axes are read by ``index`` in terms of its own ``rank`` axes."""
    if view.flat is not None:
        return View(view.base, None, view.flat.of(index, rank))
    assert view.places is not None
    return View(view.base, tuple(line.of(index, rank) for line in view.places), None)
