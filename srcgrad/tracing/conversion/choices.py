"""Lists, tuples and dicts indexed by traced integers: one of their values, gathered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from srcgrad.tracing.conversion.aliases import array_storage, link, outside
from srcgrad.tracing.conversion.state import Kind, emit_call, join_kinds, kind_of
from srcgrad.tracing.trace import Refused
from srcgrad.tracing.tracer import Tracer, as_tracer, from_value


class KeySite:
    """The callable of an operation that asks whether a dict has a key."""

    def __init__(self, keys: Sequence[int]) -> None:
        self.keys = frozenset(keys)

    def __call__(self, key: Any) -> None:
        if key.item() not in self.keys:
            raise KeyError(key.item())


def chosen(container: Any, index: Tracer) -> Any:
    """``container[index]`` for a traced integer.

    Raises:
        Refused: the values are of no one kind, or a key of a dict is no integer.
    """
    kind = type(container).__name__
    if type(container) not in (list, tuple, dict) or not container or index.size != 1:
        raise Refused(f"a {kind} is indexed by a traced value")
    place: Any = index.astype(np.int64) if index.dtype.kind == "b" else index
    place = place.reshape(()) if place.ndim else place
    if type(container) is not dict:
        return among(list(container), place, kind)
    keys = list(container)
    if not all(isinstance(key, (int, np.integer)) for key in keys):
        raise Refused("a dict with keys that are no integers is indexed by a traced value")
    emit_call(KeySite([int(key) for key in keys]), [place.read()])
    return among(list(container.values()), np.argmax(np.array(keys, np.int64) == place), kind)


def among(values: list[Any], place: Any, container: str) -> Any:
    """The value at a traced place."""
    kind = kind_of(values[0])
    for value in values:
        other = kind_of(value)
        found = None if kind is None or other is None else join_kinds("_sg_value", kind, other)
        kind = found if isinstance(found, Kind) else None
        if kind is None or (other is not None and other.scalar != kind.scalar):
            raise Refused(f"a {container} with values of different kinds is indexed by a traced value")
    assert kind is not None
    items: list[Any] = [as_tracer(value) for value in values]
    stacked: Any = as_tracer(np.stack(items))
    result = from_value(stacked[place].copy().read(), kind.scalar, kind.weak)
    for value in values:
        storage = array_storage(value)
        if storage is not None and not kind.scalar:
            for memory in outside(storage):
                link(result.storage, memory, "_sg_value")
    return result
