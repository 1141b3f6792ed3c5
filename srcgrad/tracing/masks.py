"""``x[mask]`` where values decide how many elements that are: the whole axis, of which the mask says what counts.

So ``y[mask] = f(x[mask])`` and ``np.sum(x[mask])`` are one program, whatever the mask is. On a path, where Python's
questions are answered, it is the array that NumPy gives.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from srcgrad.tracing.guards import guided
from srcgrad.tracing.indexing import mask_mismatch, spread, stored
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
    """What ``x[index]`` selects, if there is one mask in the index that is not known, beside slices and integers.

    Raises:
        IndexingError: the mask has another shape than what it indexes, or there are too many indices.
    """
    given = list(index) if isinstance(index, tuple) else [index]
    if sum(map(is_open, given)) != 1 or guided(CURRENT.get()):
        return None
    if not all(entry is None or entry is Ellipsis or is_open(entry) or is_plain(entry) for entry in given):
        return None
    entries = spread(given, x.ndim)
    at = next(k for k, entry in enumerate(entries) if is_open(entry))
    holds, before, after = entries[at], entries[:at], [entry for entry in entries[at + 1 :] if entry is not Ellipsis]
    first = sum(entry is not None and entry is not Ellipsis for entry in before)
    if holds.shape != x.shape[first : first + holds.ndim]:
        raise mask_mismatch(holds, x, first)
    left = [entry for entry in before if entry is not Ellipsis]
    view = x[(*left, *[slice(None)] * holds.ndim, *after)] if left or after else x
    if not isinstance(view, Tracer) or view.scalar:
        return None
    axis = sum(not is_number(entry) for entry in left)
    picked = [k for k, entry in enumerate(entries) if k == at or is_number(entry)]
    if picked != list(range(picked[0], picked[-1] + 1)):  # NumPy puts what they select first
        masked = range(axis, axis + holds.ndim)
        view = view.transpose([*masked, *(k for k in range(view.ndim) if k not in masked)])
        axis = 0
    return Selection(view, axis, holds)


def is_open(entry: Any) -> bool:
    """Whether this is a mask whose value is not known."""
    return isinstance(entry, Tracer) and entry.dtype == np.bool_ and entry.ndim > 0 and entry.number() is None


def is_plain(entry: Any) -> bool:
    """Whether this is an integer, or a slice without traced bounds."""
    if is_number(entry):
        return True
    bounds = (entry.start, entry.stop, entry.step) if isinstance(entry, slice) else (entry,)
    return isinstance(entry, slice) and not any(isinstance(bound, Tracer) for bound in bounds)


def is_number(entry: Any) -> bool:
    if isinstance(entry, Tracer):
        return entry.scalar and entry.dtype != np.bool_
    return isinstance(entry, (int, np.integer)) and not isinstance(entry, bool)


def is_selected(x: Any) -> bool:
    """Whether it is what a mask selects, which a loop does not hand on: slices may move, in `Moving`."""
    return isinstance(x, Ragged) and any(isinstance(part, Chosen) for part in x.extents)
