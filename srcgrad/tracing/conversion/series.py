"""``zip``, ``enumerate``, ``reversed``, ``product`` and the like of what can be indexed, whose items loops find."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.tracing.affine import ZERO, Affine, between
from srcgrad.tracing.conversion.calls import call_rule
from srcgrad.tracing.conversion.numbers import DynamicRange
from srcgrad.tracing.trace import Refused
from srcgrad.tracing.tracer import Deferring, Tracer, as_tracer, from_value


class Picked(NamedTuple):
    """Tuples of items of sequences: how many, and the places of those of one, by its number."""

    number: int
    places: Callable[[Any], Sequence[Any]]


class Series:
    """``zip``, ``enumerate`` or ``reversed`` of what can be indexed: iterates as Python's, and by a traced index."""

    def __init__(
        self, made: Iterable[Any], kind: str, parts: tuple[Any, ...], start: Any = 0, picked: Picked | None = None
    ) -> None:
        self.made = iter(made)
        self.kind, self.parts, self.start = kind, parts, start
        self.picked: Any = picked
        self.used = False
        """Whether items were taken out of it: then only Python knows where it stands."""

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        self.used = True
        return next(self.made)


def indexable(thing: Any) -> bool:
    return isinstance(thing, (Tracer, range, np.ndarray, Series)) or type(thing) in (list, tuple) or varies(thing)


def varies(thing: Any) -> bool:
    """Whether a traced number says how many items there are."""
    if isinstance(thing, Deferring):
        return bool(thing.ndim) and isinstance(thing.shape[0], Tracer)
    return isinstance(thing, DynamicRange)


def known_to(thing: Any) -> Any:
    """What Python's iterators are made of: nobody but a loop's index finds the items if a traced number says how many.

    Raises:
        Refused: an iterator is asked for one.
    """
    return only_by_index() if varies(thing) else thing


def only_by_index() -> Iterator[Any]:
    raise Refused("items of which a traced number says how many there are are taken one by one")
    yield


@call_rule(enumerate)
def enumerate_(iterable: Any, start: Any = 0) -> Any:
    made = enumerate(known_to(iterable), start)
    return Series(made, "enumerate", (iterable,), start) if indexable(iterable) else made


@call_rule(zip)
def zip_(*iterables: Any, strict: bool = False) -> Any:
    made = zip(*map(known_to, iterables), strict=strict)
    known = bool(iterables) and all(map(indexable, iterables))
    if known and strict:  # a Series has no length
        known = not any(isinstance(x, Series) or varies(x) for x in iterables) and len({len(x) for x in iterables}) == 1
    return Series(made, "zip", iterables) if known else made


@call_rule(reversed)
def reversed_(sequence: Any) -> Any:
    made = known_to(sequence) if varies(sequence) else reversed(sequence)
    known = isinstance(sequence, (Tracer, range, np.ndarray)) or type(sequence) in (list, tuple) or varies(sequence)
    return Series(made, "reversed", (sequence,)) if known else made


MOST_PAIRED: Final = 1_000_000
"""Of so many pairs at most the places are written down."""


MOST_REPEATED: Final = 16
"""The most times that sequences are paired with themselves by index."""


def pooled(function: Any, places_of: Callable[..., Picked | None]) -> None:
    """Let what a function of ``itertools`` gives be found by index, where it pairs items of sequences."""

    def rule(*args: Any, **options: Any) -> Any:
        if function is itertools.product:  # which takes all that there is of them at once
            args = tuple([list(x) if isinstance(x, Series) and not x.used else x for x in args])
            repeat = options.get("repeat", 1)
            if options.keys() == {"repeat"} and isinstance(repeat, int) and 0 < repeat <= MOST_REPEATED:
                args, options = args * repeat, {}
        if function is itertools.pairwise and not options and len(args) == 1 and isinstance(args[0], Deferring):
            return zip_(args[0], args[0][1:])  # type: ignore[index]
        made = function(*args, **options)
        count = len(args) if function is itertools.product else 1
        pools = args[:count]
        if options or not all(indexable(pool) and not isinstance(pool, Series) for pool in pools):
            return made
        if any(np.ndim(pool) == 0 for pool in pools if isinstance(pool, (Tracer, np.ndarray))):
            return made
        picked = places_of(*map(len, pools), *args[count:])
        if picked is None:
            return made
        width = len(picked.places(0)) if picked.number else 0
        return Series(made, "picked", pools if function is itertools.product else pools * width, 0, picked)

    call_rule(function)(rule)


def number_of(sizes: Iterable[int]) -> int:
    return functools.reduce(operator.mul, sizes, 1)


def of_product(*sizes: int) -> Picked | None:
    strides = [number_of(sizes[k + 1 :]) for k in range(len(sizes))]

    def places(k: Any) -> list[Any]:
        behind = [k if stride == 1 else k // stride for stride in strides]
        return behind[:1] + [place % size for place, size in zip(behind[1:], sizes[1:], strict=True)]

    return Picked(number_of(sizes), places) if sizes and number_of(sizes) else None


def of_pairs(size: int) -> Picked:
    return Picked(max(size - 1, 0), lambda k: (k, k + 1))


def of_table(function: Any, count_of: Callable[[int, int], int]) -> Callable[..., Picked | None]:
    """The places as a table of integers."""

    def places_of(size: int, length: Any = None) -> Picked | None:
        width = size if length is None else length
        if not isinstance(width, int) or not 0 < width <= size or count_of(size, width) > MOST_PAIRED:
            return None
        table = np.array(list(function(range(size), width)), np.int64)

        def places(k: Any) -> list[Any]:
            if not isinstance(k, Tracer):
                return [int(place) for place in table[k]]
            return [placed(table[:, column], k, size) for column in range(width)]

        return Picked(len(table), places)

    return places_of


def placed(column: Any, k: Tracer, size: int) -> Tracer:
    """A place in a sequence, out of a table of them."""
    rows: Any = as_tracer(column)
    found = from_value(rows[k].read(), scalar=True, weak=True)
    found.bound, found.affine = size, between(ZERO, Affine({}, size - 1))
    return found


pooled(itertools.product, of_product)
pooled(itertools.pairwise, of_pairs)
pooled(itertools.combinations, of_table(itertools.combinations, math.comb))
pooled(itertools.permutations, of_table(itertools.permutations, math.perm))
