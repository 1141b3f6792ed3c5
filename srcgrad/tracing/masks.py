"""``x[mask]`` where values decide how many elements that are: the whole axis, of which the mask says what counts.

So ``y[mask] = f(x[mask])`` and ``np.sum(x[mask])`` are one program, whatever the mask is. On a path, where Python's
questions are answered, it is the array that NumPy gives.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from srcgrad.tracing.guards import guided
from srcgrad.tracing.indexing import mask_mismatch, stored
from srcgrad.tracing.parts import Chosen, Part
from srcgrad.tracing.ragged import Ragged, aligned, refused
from srcgrad.tracing.trace import CURRENT
from srcgrad.tracing.tracer import Tracer, from_value


class Selection(NamedTuple):
    """Axes of an array, the first of them ``axis``, of which a mask selects elements."""

    view: Tracer
    axis: int
    holds: Tracer

    def of(self, x: Any) -> Ragged:
        """The elements of an array like the view, along one axis in place of those of the mask."""
        before, after = x.shape[: self.axis], x.shape[self.axis + self.holds.ndim :]
        size = math.prod(self.holds.shape)
        parts: tuple[Part | None, ...] = (None,) * len(before)
        chosen = Chosen(from_value(self.holds.reshape(size).read()), size)
        return Ragged(from_value(x.reshape((*before, size, *after)).read()), (*parts, chosen, *(None,) * len(after)))

    def write(self, value: Any) -> None:
        """Set the elements.

        Raises:
            Refused: it is not known whether the value has as many.
        """
        old = self.of(self.view)
        (_, new), extents = aligned([old, value])
        if len(extents) > old.ndim:
            raise refused("an array of more axes assigned to")
        if any(mine is None and other is not None for mine, other in zip(old.extents, extents, strict=True)):
            raise refused("an axis of one length assigned from")
        whole = np.broadcast_to(stored(self.view, new), old.base.shape).reshape(self.view.shape)
        after = (1,) * (self.view.ndim - self.axis - self.holds.ndim)
        chosen: Any = np.where(self.holds.reshape(self.holds.shape + after), whole, self.view)
        self.view.write(chosen.read())


def selection_of(x: Tracer, index: Any) -> Selection | None:
    """What ``x[index]`` selects, if the index is a mask that is not known, beside slices or behind integers.

    Raises:
        IndexingError: the mask has another shape than what it indexes.
    """
    entries = list(index) if isinstance(index, tuple) else [index]
    masks = [k for k, entry in enumerate(entries) if is_open(entry)]
    if len(masks) != 1 or guided(CURRENT.get()):
        return None
    (at,) = masks
    holds = entries[at]
    before, after = entries[:at], entries[at + 1 :]
    if before == [Ellipsis]:
        before = [slice(None)] * (x.ndim - holds.ndim - len(after))
    slices = all(map(is_slice, before))
    if not (slices or all(map(is_number, before))) or not all(map(is_slice, after)):
        return None
    axis = len(before) if slices else 0
    view = x[tuple(before)] if before else x
    if not isinstance(view, Tracer) or view.scalar:
        return None
    if after:
        view = view[(*[slice(None)] * (axis + holds.ndim), *after)]
    if holds.shape != view.shape[axis : axis + holds.ndim]:
        raise mask_mismatch(holds, view, axis)
    return Selection(view, axis, holds)


def is_open(entry: Any) -> bool:
    """Whether this is a mask whose value is not known."""
    return isinstance(entry, Tracer) and entry.dtype == np.bool_ and entry.ndim > 0 and entry.number() is None


def is_slice(entry: Any) -> bool:
    bounds = (entry.start, entry.stop, entry.step) if isinstance(entry, slice) else (entry,)
    return isinstance(entry, slice) and not any(isinstance(bound, Tracer) for bound in bounds)


def is_number(entry: Any) -> bool:
    return isinstance(entry, (int, np.integer)) or (isinstance(entry, Tracer) and entry.scalar)
