"""What a ``for`` runs over, by index: the items of a range, an array, ``zip``, ``enumerate`` or ``reversed``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from srcgrad.ir.core import Value
from srcgrad.tracing.affine import ZERO, Affine, affine_of, between
from srcgrad.tracing.conversion.numbers import UNROLLED, DynamicRange, Series
from srcgrad.tracing.magnitude import TRIPS
from srcgrad.tracing.rows import source_of
from srcgrad.tracing.trace import current_trace
from srcgrad.tracing.tracer import Deferring, Tracer, from_value


class Items:
    """What a ``for`` runs over, by index; ``count`` is the number of items."""

    def __init__(self, count: int | Value, at: Callable[[Any], Any]) -> None:
        self.count, self.at = count, at

    def after(self, first: int) -> Items:
        """All but the first ones of a known number of items."""
        assert isinstance(self.count, int)
        return Items(self.count - first, lambda k: self.at(k + first))


def items_of(thing: Any) -> Items | None:
    """Items that a traced index can find; None for iterables that only Python can run over."""
    if isinstance(thing, range):
        return Items(len(thing), lambda k: along(thing.start, thing.step, k))
    if isinstance(thing, DynamicRange):
        count: Any = thing.count()
        return Items(count.read(), lambda k: dynamic_item(thing, k))
    if isinstance(thing, Tracer):
        return Items(len(thing), lambda k: thing[k]) if thing.ndim else None
    if isinstance(thing, Deferring):
        return dynamic_rows(thing)
    if isinstance(thing, np.ndarray):
        return (
            Items(len(thing), lambda k: constant_item(thing, k)) if thing.ndim and thing.dtype.kind in "biufc" else None
        )
    if type(thing) is list and len(thing) > UNROLLED and (source := source_of(thing)) is not None:
        scalar, weak = thing[0].scalar, thing[0].weak
        return Items(len(thing), lambda k: from_value(source[k].read(), True, weak) if scalar else source[k])
    if not isinstance(thing, Series) or thing.used:
        return None
    parts = [items_of(part) for part in thing.parts]
    found = [part for part in parts if part is not None and isinstance(part.count, int)]
    if len(found) != len(parts):
        return None
    count = min(part.count for part in found if isinstance(part.count, int))
    if thing.kind == "zip":
        return Items(count, lambda k: tuple(part.at(k) for part in found))
    if thing.kind == "enumerate":
        return Items(count, lambda k: (thing.start + k, found[0].at(k)))
    return Items(count, lambda k: found[0].at(count - 1 - k))


def dynamic_item(thing: DynamicRange, k: Tracer) -> Any:
    """The item of a range between traced numbers, which lies between them."""
    item, start, stop = along(thing.start, thing.step, k), affine_of(thing.start), affine_of(thing.stop)
    if start is not None and stop is not None:
        one = Affine({}, 1)
        item.affine = between(start, stop.plus(one, -1)) if thing.step > 0 else between(stop.plus(one), start)
    return item


def dynamic_rows(thing: Any) -> Items | None:
    """The items of an array whose length is traced."""
    length = thing.shape[0]
    number = affine_of(length) if isinstance(length, Tracer) else None
    if number is None:
        return None

    def item(k: Tracer) -> Any:
        k.affine = between(ZERO, number.plus(Affine({}, 1), -1))
        return thing[k]

    return Items(length.read(), item)


def constant_item(array: Any, k: Any) -> Any:
    from srcgrad.tracing.conversion.calls import getitem

    return getitem(array, k)


def along(start: Any, step: int, k: Any) -> Any:
    """The item of a range."""
    scaled = k if step == 1 else k * step
    return scaled if isinstance(start, int) and start == 0 else start + scaled


def index_of(value: Value, count: int | Value) -> Tracer:
    """A loop's index as a Python integer."""
    index = from_value(value, scalar=True, weak=True)
    index.bound = count if isinstance(count, int) else TRIPS
    if isinstance(count, int):
        trace = current_trace()
        if trace.counter is None:
            trace.counter = between(ZERO, Affine({}, count - 1))
        index.affine = trace.counter
    return index
