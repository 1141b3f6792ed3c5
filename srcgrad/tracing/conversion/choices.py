"""Lists, tuples and dicts indexed by traced integers: one of their values, gathered."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from srcgrad.ir.core import Value
from srcgrad.ir.opdef import REGISTRY
from srcgrad.tracing.affine import affine_of
from srcgrad.tracing.conversion.aliases import link, outlasting, predicate_here, settled
from srcgrad.tracing.conversion.branches import choose
from srcgrad.tracing.conversion.calls import call_rule
from srcgrad.tracing.conversion.classes import adopt_records
from srcgrad.tracing.conversion.effects import emit_call, emit_check, fail_if, innermost_attempt
from srcgrad.tracing.conversion.filled import fill, filled_of, read_beyond
from srcgrad.tracing.conversion.guarded import places_in
from srcgrad.tracing.conversion.identity import pick
from srcgrad.tracing.conversion.items import frozen
from srcgrad.tracing.conversion.numbers import itself
from srcgrad.tracing.conversion.placed import append_in_place, put_in_place, read_in_place
from srcgrad.tracing.conversion.placed_texts import PlacedText, is_known, refuse, text_at
from srcgrad.tracing.conversion.state import Kind, join_kinds, kind_of, same_handle, tree_of
from srcgrad.tracing.conversion.subscripts import getitem, unknown_place
from srcgrad.tracing.guards import answer
from srcgrad.tracing.rows import NUMBERS, known, source_of
from srcgrad.tracing.single import require_index, require_key
from srcgrad.tracing.storage import Storage
from srcgrad.tracing.trace import RaisingSite, Refused, current_trace
from srcgrad.tracing.tracer import Tracer, as_tracer, from_value


class ListTarget:
    """A list of which an element is assigned, at a place that may be traced."""

    __slots__ = ("items",)

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def __getitem__(self, index: Any) -> Any:
        return getitem(self.items, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        filled = filled_of(self.items)
        if filled is not None:
            filled[index] = value
            return
        if not unknown_place(index):
            self.items[index] = value
            return
        require_index(index)
        number = answer(index, "an index")
        if number is not None:
            self.items[np.asarray(number).item()] = value
            return
        fill(self.items, value)
        put_in_place(self.items, index, value)
        count = len(self.items)
        inside = np.logical_and(index >= -count, index < count)
        emit_check(inside, "IndexError", "list assignment index out of range")
        for k, before in enumerate(self.items):
            self.items[k] = choose(index % count == k, lambda: value, functools.partial(itself, before))


class DictTarget:
    """A dict of which a value is assigned, by a key that may be traced or one of a few texts."""

    __slots__ = ("entries", "read")

    def __init__(self, entries: dict[Any, Any]) -> None:
        self.entries = entries
        self.read: Any = None
        """The key that was read before, as ``entries[key] += value`` does, which the dict surely has."""

    def __getitem__(self, key: Any) -> Any:
        found = getitem(self.entries, key)
        self.read = key
        return found

    def __setitem__(self, key: Any, value: Any) -> None:
        if type(key) is PlacedText:
            if any(text not in self.entries for text in key.texts):
                refuse()
            self.put({text: key.place == k for k, text in enumerate(key.texts)}, value)
            return
        if not unknown_place(key) or self.read is not key:
            self.entries[key] = value
            return
        number = answer(key, "an index")
        if number is not None:
            self.entries[np.asarray(number).item()] = value
            return
        self.put({known: key == known for known in self.entries}, value)

    def put(self, where: dict[Any, Any], value: Any) -> None:
        for key, here in where.items():
            self.entries[key] = choose(here, lambda: value, functools.partial(itself, self.entries[key]))


def stretch(items: list[Any], index: slice) -> list[Any]:
    """``items[t : t + 3]`` between traced numbers."""
    places = places_in(index, len(items))
    if places is not None:
        return [getitem(items, k) for k in places]
    read_beyond(items)
    append_in_place(items)
    if all(affine_of(end) is not None for end in (index.start, index.stop) if isinstance(end, Tracer)):
        raise Refused("a slice of a list has another length from trip to trip of a loop")
    return items[index]  # which asks for the numbers


class KeySite(RaisingSite):
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
    if type(container) is dict:
        require_key(index)
    else:
        require_index(index)
    if type(container) not in (list, tuple, dict, str) or not container:
        raise Refused(f"a {kind} is indexed by a traced value")
    place: Any = index.astype(np.int64) if index.dtype.kind == "b" else index
    place = place.reshape(()) if place.ndim else place
    if type(container) is str:
        return text_at(container, place)
    if type(container) is not dict:
        if type(container) is list and kind_among(container) is None:
            read_in_place(container)
        return among(list(container), place, kind)
    keys = list(container)
    if not all(isinstance(key, (int, np.integer)) for key in keys):
        raise Refused("a dict with keys that are no integers is indexed by a traced value")
    if innermost_attempt() is None or not fail_if(missing(place, keys), lambda: KeyError("a traced key")):
        emit_call(KeySite([int(key) for key in keys]), [place.read()])
    return among(list(container.values()), np.argmax(np.array(keys, np.int64) == place), kind)


@call_rule(dict.get)
def get(container: dict[Any, Any], key: Any, default: Any = None, /) -> Any:
    """``container.get(key)``, which asks no more than one of the values for a traced integer."""
    if not unknown_place(key):
        return container.get(key, default)
    require_key(key)
    number = answer(key, "an index")
    if number is not None:
        return container.get(np.asarray(number).item(), default)
    if any(not isinstance(k, (int, np.integer, str, type(None))) for k in container):
        raise Refused("a dict with keys that are no integers is indexed by a traced value")
    known = {k: value for k, value in container.items() if isinstance(k, (int, np.integer))}
    if not known:
        return default
    place: Any = key.astype(np.int64).reshape(())
    keys = np.array(list(known), np.int64)
    return choose(
        np.any(keys == place), lambda: among(list(known.values()), np.argmax(keys == place), "dict"), lambda: default
    )


def missing(place: Tracer, keys: Sequence[int]) -> Any:
    return np.logical_not(np.any(np.array(keys, np.int64) == place))


def kind_among(values: Sequence[Any]) -> Kind | None:
    """The kind of all of the values, if they have one."""
    kind = kind_of(values[0])
    for value in values:
        other = kind_of(value)
        found = None if kind is None or other is None else join_kinds("_sg_value", kind, other)
        kind = found if isinstance(found, Kind) else None
        if kind is None or (other is not None and other.scalar != kind.scalar):
            return None
    return kind


def among(values: list[Any], place: Any, container: str) -> Any:
    """The value at a traced place."""
    kind = kind_among(values)
    if kind is None:
        if all(map(is_known, values)):
            return text_at(values, place)
        return container_among(values, place, container)
    source = source_of(values)
    if source is not None and not kind.scalar:
        source.storage.decided = True
        return source[place]
    stacked: Any = stack_of(values) if source is None else source
    result = from_value(stacked[place].copy().read(), kind.scalar, kind.weak)
    result.storage.decided = True
    if not kind.scalar:
        settled(result, "_sg_value", values)
        for k, value in enumerate(values):
            if isinstance(value, Tracer):
                link_choice(result.storage, value, (place % len(values) == k).read())
    return result


def stack_of(values: list[Any]) -> Any:
    """Numbers or arrays of one kind as an array; Python's own numbers are one constant."""
    numbers = known(values) if type(values[0]) in NUMBERS else None
    return np.stack([as_tracer(value) for value in values]) if numbers is None else as_tracer(numbers)


def container_among(values: list[Any], place: Any, container: str) -> Any:
    """The container at a traced place, of several with one structure: a copy, each part of which is the one there.

    Raises:
        Refused: they have no one structure, or parts that are neither the same nor of one kind.
    """
    flat = [tree_of(value) for value in values]
    tree = flat[0][1]
    if tree is None or not current_trace().picking or any(other != tree for _, other in flat):
        raise Refused(f"a {container} with values of different kinds is indexed by a traced value")
    columns = [list(column) for column in zip(*(leaves for leaves, _ in flat), strict=True)]
    same = [all(is_same(column[0], value) for value in column) for column in columns]
    if all(same):  # by `is` alone could they be told apart
        raise Refused(f"a {container} with values that are all the same is indexed by a traced value")
    parts = [
        column[0] if alike else among(column, place, container) for column, alike in zip(columns, same, strict=True)
    ]
    result = adopt_records(tree.unflatten(parts))
    if not frozen(tree):
        pick(result, values)
    return result


def is_same(one: Any, other: Any) -> bool:
    """Whether two parts are the same to every program: so are two numbers of one value."""
    if same_handle(one, other):
        return True
    if not isinstance(one, Tracer) or not isinstance(other, Tracer) or not one.scalar or kind_of(one) != kind_of(other):
        return False
    return one.read() == other.read()  # literals of the same bits are equal


def link_choice(storage: Storage, value: Tracer, chosen: Value) -> None:
    """Link the memory of the result with that of a value which it is where the predicate holds."""
    trace = current_trace()
    for other, ways in outlasting(value):
        found = None
        if ways is not None:
            found = tuple(
                way._replace(
                    predicate=chosen
                    if way.predicate is None
                    else trace.emit(REGISTRY["logical_and"], [chosen, predicate_here(way)]),
                    home=trace,
                )
                for way in ways
            )
        link(storage, other, "_sg_value", found)
