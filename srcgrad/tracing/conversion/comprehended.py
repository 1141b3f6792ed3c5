"""Comprehensions in loops whose number decides how many items they have: each trip fills one row of an array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from srcgrad.ir.core import Value
from srcgrad.tracing.affine import ZERO, Affine, between
from srcgrad.tracing.conversion.carries import is_settled
from srcgrad.tracing.conversion.items import Items, index_of, items_of
from srcgrad.tracing.conversion.loop_operations import for_region
from srcgrad.tracing.conversion.marks import Mark
from srcgrad.tracing.conversion.numbers import DynamicRange
from srcgrad.tracing.conversion.series import Series
from srcgrad.tracing.conversion.state import Kind, Passing, State, kind_of
from srcgrad.tracing.conversion.varying import USED, Varying, kind_among
from srcgrad.tracing.ragged import Extent, Ragged
from srcgrad.tracing.trace import CURRENT, Refused, current_trace
from srcgrad.tracing.tracer import Deferring, as_tracer


class Wider(Passing):
    """An item is of another kind than there are rows for."""

    def __init__(self, owner: Filling, kind: Kind) -> None:
        super().__init__()
        self.owner, self.kind = owner, kind


class Filling:
    """A list that a comprehension makes in a loop of so many trips: each fills one row of an array."""

    def __init__(self, items: Items) -> None:
        assert items.number is not None
        self.items, self.number = items, items.number
        self.kind: Kind | None = None
        self.rows: Any = None
        self.place: Any = None
        self.trace: Any = None
        self.taken = 0

    def take(self, item: Any) -> None:
        """The item of a trip.

        Raises:
            Refused: it is no number, or not the one of the trip.
            Wider: there are no rows for it.
        """
        kind = kind_of(item)
        wider = kind_among([kind] if self.kind is None else [self.kind, kind])
        if wider is None or not is_settled(item):
            raise Refused("other items than numbers are in a list whose length a loop's number decides")
        if wider != self.kind:
            raise Wider(self, wider)
        if CURRENT.get() is not self.trace or self.taken:
            raise Refused(USED)
        self.taken += 1
        self.rows[self.place] = item

    def made(self, trip: Callable[[Any], Any], visible: Callable[[], tuple[Any, ...]]) -> Varying:
        """The list. ``trip``: what hands on the item of a trip."""
        mark, size = Mark(current_trace()), self.number.most()

        def body(index: Value | None) -> None:
            assert index is not None
            self.trace, self.taken, self.place = current_trace(), 0, index_of(index, self.items.count)
            self.place.affine = between(ZERO, self.number.plus(Affine({}, 1), -1))
            trip(self.items.at(self.place))
            if not self.taken:
                raise Refused(USED)

        while True:
            if self.kind is not None:
                self.rows = as_tracer(np.zeros(size, self.kind.type.dtype)).copy()
            try:
                for_region(self.items.count, body, State(tuple, ignored, (), visible))
            except Wider as error:
                if error.owner is not self:
                    raise
                mark.back()
                self.kind = error.kind
            else:
                break
        assert self.kind is not None
        length = self.items.length()
        return Varying(Ragged(self.rows, (Extent(0, length, size, ZERO, self.number),)), self.kind)


def varying_items(iterable: Any) -> Items | None:
    """The items of what has as many as the numbers of the loops around say; None for anything else."""
    trace = CURRENT.get()
    if trace is None or not trace.region or not isinstance(iterable, (DynamicRange, Deferring, Series)):
        return None
    found = items_of(iterable)
    return found if found is not None and found.number is not None and found.number.terms else None


def ignored(values: tuple[Any, ...]) -> None:
    """Sets no variables."""
