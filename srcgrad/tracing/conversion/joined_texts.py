"""Texts that two blocks on a traced condition leave, or a text and None: one of a few (`placed_texts`).

Its place among them is a result, and so are the numbers that stand in a text which a block makes (``f"{x} is large"``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from srcgrad.tracing.conversion.placed_texts import MOST, distinct, place_among, text_among, texts_of
from srcgrad.tracing.conversion.state import PYTHON_KINDS, UNSET, entered, kind_of
from srcgrad.tracing.conversion.texts import Text, tracers_in, with_numbers

if TYPE_CHECKING:
    from srcgrad.tracing.conversion.branches import Joining


def join_texts(joining: Joining, name: str, one: Any, other: Any) -> Callable[[], Any] | None:
    """What gives the joined text once the results are there; None where one of the two is no text, or not known to be
    one of a few.
    """
    first, second = alternatives(one), alternatives(other)
    if first is None or second is None:
        return None
    texts = distinct((*first, *second))
    made = [text for text in texts if isinstance(text, Text)]
    kinds = {id(number): kind_of(number) for number in tracers_in(made)}
    if len(texts) > MOST or any(kind is None or not kind.scalar for kind in kinds.values()):
        return None
    with entered(joining.then.trace):
        place = place_among(one, texts)
    with entered(joining.orelse.trace):
        slot = joining.slot(name, place, place_among(other, texts), PYTHON_KINDS[int])
    parts = [carried(joining, name, text, first, second, kinds) for text in texts]
    return functools.cache(lambda: text_among(tuple(part() for part in parts), slot()))


def carried(
    joining: Joining, name: str, text: Any, first: tuple[Any, ...], second: tuple[Any, ...], kinds: dict[int, Any]
) -> Callable[[], Any]:
    """A text with the results of the blocks in place of what it holds of them."""
    if not isinstance(text, Text):
        return lambda: text
    here, there = (any(text is x for x in side) for side in (first, second))
    slots = {
        id(number): joining.slot(name, number if here else UNSET, number if there else UNSET, kinds[id(number)])
        for number in tracers_in([text])
    }
    return lambda: with_numbers(text, lambda number: slots[id(number)]())


def alternatives(x: Any) -> tuple[Any, ...] | None:
    """The texts that something may be, those with traced values among them."""
    return (x,) if isinstance(x, Text) else texts_of(x)
