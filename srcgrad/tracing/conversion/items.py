"""What a ``for`` runs over, by index: the items of a range, an array, a list, ``zip``, ``enumerate``, ``product``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import numpy as np

from srcgrad.ir.core import Value
from srcgrad.tracing.affine import ZERO, Affine, affine_of, between
from srcgrad.tracing.conversion.classes import rebuilt
from srcgrad.tracing.conversion.numbers import UNROLLED, DynamicRange
from srcgrad.tracing.conversion.placed_texts import MOST as MOST_TEXTS
from srcgrad.tracing.conversion.placed_texts import distinct, text_at
from srcgrad.tracing.conversion.series import Series
from srcgrad.tracing.conversion.state import Kind, kind_of, tree_of
from srcgrad.tracing.magnitude import MOST, TRIPS
from srcgrad.tracing.pytree import TreeDef
from srcgrad.tracing.rows import source_of
from srcgrad.tracing.tables import is_table
from srcgrad.tracing.trace import Refused, current_trace
from srcgrad.tracing.tracer import Deferring, Tracer, as_tracer, from_value
from srcgrad.tracing.ufuncs import call

PAIR: Final = 2
"""So many items are always written out."""
VIEWS: Final[tuple[type, ...]] = (type({}.keys()), type({}.values()), type({}.items()))


class Items:
    """What a ``for`` runs over, by index; ``count`` is the number of items."""

    def __init__(
        self,
        count: int | Value,
        at: Callable[[Any], Any],
        lists: Sequence[tuple[Collection[Any], list[Any]]] = (),
        number: Affine | None = None,
    ) -> None:
        """``lists``: those, or views of dicts, that the items are found in, and what they held when this was made.

        ``number``: how many there are, where the numbers of loops decide that.
        """
        self.count, self.at, self.lists, self.number = count, at, lists, number

    def after(self, first: int) -> Items:
        """All but the first ones of a known number of items."""
        assert isinstance(self.count, int)
        return Items(self.count - first, lambda k: self.at(k + first), self.lists)

    def length(self) -> Any:
        """How many there are, as a Python integer."""
        if isinstance(self.count, int):
            return self.count
        found = from_value(self.count, scalar=True, weak=True)
        found.affine = self.number
        return found

    def require_unchanged(self) -> None:
        """Refuse a loop that changes a list that it runs over: Python reads each item when its trip begins."""
        for now, before in self.lists:
            if len(now) != len(before) or any(a is not b for a, b in zip(now, before, strict=True)):
                raise Refused("a list is changed in a loop over its items")


def items_of(thing: Any) -> Items | None:
    """Items that a traced index can find; None for iterables that only Python can run over."""
    if isinstance(thing, range):
        return Items(len(thing), lambda k: along(thing.start, thing.step, k))
    if isinstance(thing, DynamicRange):
        count: Any = thing.count()
        return Items(count.read(), lambda k: dynamic_item(thing, k), number=length_between(thing))
    if isinstance(thing, Tracer):
        return Items(len(thing), lambda k: thing[k]) if thing.ndim else None
    if isinstance(thing, Deferring):
        return dynamic_rows(thing)
    if isinstance(thing, np.ndarray) and thing.ndim:
        if is_table(thing):
            return labels_of(thing)
        return Items(len(thing), lambda k: constant_item(thing, k)) if thing.dtype.kind in "biufc" else None
    if type(thing) in (list, tuple):
        return listed_items(thing) if len(thing) > PAIR else None
    if type(thing) in (dict, *VIEWS):
        view = thing.keys() if type(thing) is dict else thing
        return viewed_items(view) if len(view) > UNROLLED else None
    return series_items(thing) if isinstance(thing, Series) and not thing.used else None


def labels_of(table: Any) -> Items:
    """The items of an array of texts, dates or records."""
    from srcgrad.tracing.conversion.labelled import labelled  # which is written with this module

    labels = labelled(table)
    return Items(len(table), lambda k: labels[k])


def series_items(thing: Series) -> Items | None:
    """The items of ``zip``, ``enumerate``, ``reversed`` and the functions of ``itertools`` that pair items."""
    if thing.kind == "picked" and thing.picked.number <= UNROLLED:
        return None
    some = listed_items if thing.kind == "picked" else items_of
    parts = [some(part) if type(part) in (list, tuple) else items_of(part) for part in thing.parts]
    found = [part for part in parts if part is not None and (isinstance(part.count, int) or part.number is not None)]
    if len(found) != len(parts):
        return None
    lists = [pair for part in found for pair in part.lists]
    if any(part.number is not None for part in found):
        return varying_items(thing, found, lists)
    if thing.kind == "picked":
        number, places = thing.picked
        return Items(number, lambda k: tuple(x.at(i) for x, i in zip(found, places(k), strict=True)), lists)
    count = min(part.count for part in found if isinstance(part.count, int))
    if thing.kind == "zip":
        return Items(count, lambda k: tuple(part.at(k) for part in found), lists)
    if thing.kind == "enumerate":
        return Items(count, lambda k: (thing.start + k, found[0].at(k)), lists)
    return Items(count, lambda k: found[0].at(count - 1 - k), lists)


def varying_items(thing: Series, parts: Sequence[Items], lists: Any) -> Items | None:
    """As `series_items`, where the numbers of loops decide how many items there are."""
    if thing.kind not in ("zip", "enumerate", "reversed"):
        return None
    length = parts[0].length()
    for part in parts[1:]:
        length = shorter(length, part.length())
    number = affine_of(length)
    assert number is not None
    highest = number.plus(Affine({}, 1), -1)

    def at(k: Any) -> Any:
        k.affine = between(ZERO, highest) if k.affine is None else k.affine
        if thing.kind == "zip":
            return tuple(part.at(k) for part in parts)
        return (thing.start + k, parts[0].at(k)) if thing.kind == "enumerate" else parts[0].at(length - 1 - k)

    return Items(as_tracer(length).read(), at, lists, number)


def shorter(one: Any, other: Any) -> Any:
    """The smaller of two lengths."""
    first, second = affine_of(one), affine_of(other)
    assert first is not None and second is not None
    distance = second.plus(first, -1)
    if distance.least() >= 0:
        return one
    return other if distance.most() <= 0 else call(np.minimum, one, other, weak=True)


def length_between(thing: DynamicRange) -> Affine | None:
    """How many numbers a range with a step of 1 or -1 has, if its ends are sums of the numbers of loops in order."""
    start, stop = affine_of(thing.start), affine_of(thing.stop)
    if start is None or stop is None or abs(thing.step) != 1:
        return None
    found = stop.plus(start, -1) if thing.step > 0 else start.plus(stop, -1)
    return found if found.terms and found.least() >= 0 else None


def listed_items(things: Sequence[Any]) -> Items | None:
    """The items of a list that are numbers or arrays of one kind, or tuples of such, all of one structure."""
    if not things:
        return None
    flat = [tree_of(thing) for thing in things]
    tree = flat[0][1]
    if not frozen(tree) or any(other != tree for _, other in flat):
        return None
    columns = [column_of([leaves[k] for leaves, _ in flat]) for k in range(len(flat[0][0]))]
    known = [column for column in columns if column is not None]
    if len(known) != len(columns):
        return None
    lists = [(things, list(things))] if isinstance(things, list) else []
    return Items(len(things), lambda k: rebuilt(tree, [column(k) for column in known]), lists)


def viewed_items(view: Any) -> Items | None:
    """The items of what shows the keys, the values or both of a dict."""
    found = listed_items(tuple(view))
    if found is None:
        return None
    return Items(found.count, found.at, [(x, list(x)) for x in (view.mapping.keys(), view.mapping.values())])


def frozen(tree: TreeDef | None) -> bool:
    """Whether nobody can change a container of this structure, so that another one may stand for it."""
    if tree is None or tree.kind is None:
        return True
    return issubclass(tree.kind, tuple) and all(map(frozen, tree.children))


def column_of(leaves: list[Any], stacking: bool = True) -> Callable[[Any], Any] | None:
    """Numbers or arrays of one kind by their place; None where they have none, or are arrays that may be changed.

    ``stacking``: whether traced numbers that are no rows of an array may be made one.
    """
    if all(type(leaf) is str for leaf in leaves):
        return (lambda k: text_at(leaves, k)) if len(distinct(leaves)) <= MOST_TEXTS else None
    source = source_of(leaves)
    if source is not None:
        scalar, weak = leaves[0].scalar, leaves[0].weak
        return lambda k: from_value(source[k].read(), True, weak) if scalar else source[k]
    kinds = {kind_of(leaf) for leaf in leaves}
    kind = next(iter(kinds))
    if kind is None or len(kinds) > 1 or kind.type.dtype.kind == "b":
        return None
    if not any(isinstance(leaf, Tracer) for leaf in leaves):
        return constant_column(leaves, kind)
    if not (kind.scalar and stacking):
        return None
    stacked: Any = np.stack([as_tracer(leaf) for leaf in leaves])
    return lambda k: from_value(stacked[k].read(), True, kind.weak)


def constant_column(leaves: list[Any], kind: Kind) -> Callable[[Any], Any] | None:
    """Numbers or arrays that are known, by their place."""
    if kind.weak and kind.type.dtype.kind == "i" and any(abs(leaf) > MOST for leaf in leaves):
        return None
    array = np.stack([np.asarray(leaf, kind.type.dtype) for leaf in leaves])
    if not kind.scalar:
        return lambda k: constant_item(array, k)
    if not (kind.weak and kind.type.dtype.kind == "i"):
        return lambda k: from_value(constant_item(array, k).read(), True, kind.weak)
    least, most = int(array.min()), int(array.max())

    def integer(k: Any) -> Tracer:
        found = from_value(constant_item(array, k).read(), True, True)
        found.bound = max(abs(least), abs(most))
        found.affine = between(Affine({}, least), Affine({}, most))
        return found

    return integer


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
        k.affine = between(ZERO, number.plus(Affine({}, 1), -1)) if k.affine is None else k.affine
        return thing[k]

    return Items(length.read(), item, number=number if number.terms and number.least() >= 0 else None)


def constant_item(array: Any, k: Any) -> Any:
    from srcgrad.tracing.conversion.subscripts import getitem

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
