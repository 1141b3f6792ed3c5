"""``x[places]`` where it is not known how many places there are: the columns of a sparse row, a node's neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcgrad.tracing.affine import ZERO
from srcgrad.tracing.indexing import known_integer, spread, stored
from srcgrad.tracing.parts import Part
from srcgrad.tracing.ragged import Extent, Ragged, aligned, refused
from srcgrad.tracing.tracer import Tracer, as_tracer


class Picked:
    """What one array of integers of which a part counts picks of an axis, beside slices and integers.

    Places that do not count are 0: what they pick counts nowhere.
    """

    def __init__(self, x: Tracer, index: Any) -> None:
        """
        Raises:
            Refused: there is more in the index, or what is picked would be no axis in its place.
        """
        entries = spread(list(index) if isinstance(index, tuple) else [index], x.ndim)
        found = [k for k, entry in enumerate(entries) if isinstance(entry, Ragged)]
        places: Any = entries[found[0]] if found else None
        if len(found) != 1 or places.ndim != 1 or places.dtype.kind not in "iu":
            raise refused("such an index with")
        self.places: Ragged = places
        numbers = [k for k, entry in enumerate(entries) if k in found or is_number(known_integer(entry))]
        rest = [entry for k, entry in enumerate(entries) if k not in numbers]
        if not all(entry is None or (isinstance(entry, slice) and is_plain(entry)) for entry in rest):
            raise refused("such an index beside")
        if numbers[-1] - numbers[0] >= len(numbers):
            raise refused("separated indices beside")
        self.x, self.entries, self.at, self.axis = x, entries, found[0], numbers[0]

    def index(self, places: Any) -> tuple[Any, ...]:
        return (*self.entries[: self.at], places, *self.entries[self.at + 1 :])

    @property
    def part(self) -> Part:
        found = self.places.extents[0]
        assert found is not None
        return found

    def elements(self) -> Ragged:
        base = self.x[self.index(self.places.filled(0))]
        before: tuple[Part | None, ...] = (None,) * self.axis
        return Ragged(base, (*before, self.part, *(None,) * (base.ndim - self.axis - 1)))

    def values(self, value: Any) -> tuple[Ragged, Any]:
        """What is there, and as many elements of what comes there.

        Raises:
            Refused: it is not known whether these are as many.
        """
        old = self.elements()
        (_, new), extents = aligned([old, value])
        if len(extents) > old.ndim:
            raise refused("an array of more axes assigned to")
        if any(mine is None and other is not None for mine, other in zip(old.extents, extents, strict=True)):
            raise refused("an axis of one length assigned from")
        return old, np.broadcast_to(as_tracer(new), old.base.shape)

    def write(self, value: Any) -> None:
        """``x[places] = value``: of several at one place the last is kept, and in place of what does not count the
        last that counts is written again.
        """
        part = self.part
        if not isinstance(part, Extent) or part.first != ZERO or not part.exact:
            raise refused("such places assigned through")
        old, new = self.values(stored_part(self.x, value))
        count: Any = part.length()
        last: Any = np.minimum(as_tracer(np.arange(part.size)), np.maximum(count - 1, 0))
        before = (slice(None),) * self.axis
        kept = new[(*before, last)]
        if part.least() == 0:
            kept = np.where(count > 0, kept, old.base[(*before, last)])
        self.x[self.index(self.places.filled(0)[last])] = kept

    def added(self, value: Any) -> tuple[tuple[Any, ...], Any]:
        """Index and value of ``np.add.at``: zeros are added for what does not count."""
        old, new = self.values(value)
        return self.index(self.places.filled(0)), np.where(old.mask(), new, np.zeros((), new.dtype))


def stored_part(x: Tracer, value: Any) -> Any:
    """A value as assignment stores it, with its parts."""
    return value.like(stored(x, value.base)) if isinstance(value, Ragged) else stored(x, value)


def is_number(entry: Any) -> bool:
    return (isinstance(entry, Tracer) and entry.scalar) or isinstance(entry, (int, np.integer))


def is_plain(entry: slice) -> bool:
    return not any(isinstance(known_integer(bound), Tracer) for bound in (entry.start, entry.stop, entry.step))
