"""Texts at traced places: ``sequence[i - 1]`` in a loop, ``state = "high"`` on one path, one of a few texts that are
known. None may be among them, and texts that the program makes of its numbers.

What is asked of such a text, as whether it is another one, its place in an alphabet or what a dict holds for it, is
asked of each that it may be, and the answers are a table. What has no such answer is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NoReturn

import numpy as np

from srcgrad.tracing.affine import ZERO, Affine, between
from srcgrad.tracing.journals import StandIn
from srcgrad.tracing.trace import NeedsConcrete, Refused
from srcgrad.tracing.tracer import Tracer
from srcgrad.tracing.unasked import attribute, is_among

UNANSWERED: Final = (LookupError, TypeError, ValueError, AttributeError, NeedsConcrete)
"""The errors of what is asked of one of the texts, or of one that only the program knows."""
MOST: Final = 256
"""The texts that one may be."""
ANSWERS: Final = (bool, int, float, complex, np.number, np.bool_)
ASKED: Final = frozenset({int, float, str, len, isinstance, bool})
"""Functions that are asked of each text, besides methods of texts."""
KEEPING: Final = frozenset({"append", "insert"})
"""Methods of lists that ask nothing of what they are given last."""
LOOKING: Final = frozenset({"get", "index", "count"})
"""Methods of containers that change nothing."""


class PlacedText:
    """One of ``texts``, which differ, at a traced place."""

    __slots__ = ("place", "texts")
    __srcgrad_unfinished__ = True

    def __init__(self, texts: tuple[Any, ...], place: Tracer) -> None:
        self.texts = texts
        self.place = place

    def __eq__(self, other: object) -> Any:
        return self.compared(other, lambda one, two: one == two)

    def __ne__(self, other: object) -> Any:
        return self.compared(other, lambda one, two: one != two)

    def __lt__(self, other: Any) -> Any:
        return self.compared(other, lambda one, two: one < two)

    def __le__(self, other: Any) -> Any:
        return self.compared(other, lambda one, two: one <= two)

    def __gt__(self, other: Any) -> Any:
        return self.compared(other, lambda one, two: one > two)

    def __ge__(self, other: Any) -> Any:
        return self.compared(other, lambda one, two: one >= two)

    def compared(self, other: Any, comparison: Callable[[str, str], bool]) -> Any:
        if isinstance(other, Tracer):
            refuse()
        if not isinstance(other, PlacedText):
            return self.asked(lambda text: comparison(text, other))
        try:
            table = [[comparison(one, two) for two in other.texts] for one in self.texts]
        except UNANSWERED:
            return refuse()
        return tabulated(np.array(table))[self.place, other.place]

    def __contains__(self, item: Any) -> Any:
        refuse()

    def __len__(self) -> int:
        found = self.asked(len)
        return found if isinstance(found, int) else refuse()

    def __bool__(self) -> bool:
        return len(self) > 0

    def __getitem__(self, index: Any) -> Any:
        return refuse() if isinstance(index, Tracer) else self.asked(lambda text: text[index])

    def __add__(self, other: Any) -> Any:
        return self.asked(lambda text: text + other) if isinstance(other, str) else refuse()

    def __radd__(self, other: Any) -> Any:
        return self.asked(lambda text: other + text) if isinstance(other, str) else refuse()

    def __getattr__(self, name: str) -> Any:
        if not hasattr(str, name) or name.startswith("__"):
            refuse()
        return lambda *args, **kwargs: self.asked(lambda text: getattr(text, name)(*args, **kwargs))

    def __hash__(self) -> int:
        return refuse()

    def __iter__(self) -> NoReturn:
        refuse()

    def __str__(self) -> str:
        return refuse()

    def __format__(self, spec: str) -> str:
        return refuse()

    def __repr__(self) -> str:
        return f"one of {self.texts!r}"

    def asked(self, question: Callable[[str], Any]) -> Any:
        """The answer for the text that it is: a number, a truth value or a text.

        Raises:
            Refused: there is no answer for one of the texts, or one of another kind.
        """
        try:
            answers = [question(text) for text in self.texts]
        except UNANSWERED:
            return refuse()
        return answer_at(answers, self.place)


def refuse() -> NoReturn:
    raise Refused("a text at a traced place is asked for what no table holds")


def tabulated(table: Any) -> Any:
    from srcgrad.tracing.conversion.calls import constant_array  # which asks of texts

    return constant_array(table)


def answer_at(answers: list[Any], place: Tracer) -> Any:
    """The answer at a place; itself where there is one alone."""
    from srcgrad.tracing.conversion.choices import among  # which asks of texts
    from srcgrad.tracing.conversion.texts import Text  # which is written with this module

    if all(isinstance(one, ANSWERS) for one in answers) and len({(type(one), repr(one)) for one in answers}) == 1:
        return answers[0]
    if all(is_known(one) or isinstance(one, Text) for one in answers):
        return text_at(answers, place)
    return among(answers, place, "text")


def text_at(texts: Collection[Any], place: Tracer) -> Any:
    """The text at a place among these; itself where there is one alone."""
    known = distinct(texts)
    if not known or len(known) > MOST:
        refuse()
    if len(known) == 1:
        return known[0]
    places = [key_of(text) for text in known]
    return PlacedText(known, tabulated(np.array([places.index(key_of(text)) for text in texts], np.int64))[place])


def is_known(text: Any) -> bool:
    return text is None or type(text) is str


def texts_of(x: Any) -> tuple[Any, ...] | None:
    """The texts that something may be; None where it is no text, and not None."""
    if is_known(x):
        return (x,)
    return x.texts if type(x) is PlacedText else None


def alphabet(one: Any, other: Any) -> tuple[Any, ...] | None:
    """The texts that two texts may be, those of the first before what else there is; None where one is no text, or one
    that only the program knows.
    """
    first, second = texts_of(one), texts_of(other)
    if first is None or second is None or not all(map(is_known, (*first, *second))):
        return None
    known = distinct((*first, *second))
    return known if len(known) <= MOST else None


def key_of(text: Any) -> Any:
    """What tells a text from others: of one that only the program knows, which object it is."""
    return text if is_known(text) else id(text)


def distinct(texts: Collection[Any]) -> tuple[Any, ...]:
    return tuple({key_of(text): text for text in texts}.values())


def place_among(x: Any, texts: tuple[Any, ...]) -> Any:
    """The place of a text among these, which have it."""
    places = {key_of(text): k for k, text in enumerate(texts)}
    if type(x) is not PlacedText:
        return places[key_of(x)]
    found = [places[key_of(text)] for text in x.texts]
    if found == list(range(len(texts))):
        return x.place
    return tabulated(np.array(found, np.int64))[x.place]


def text_among(texts: tuple[Any, ...], place: Tracer) -> PlacedText:
    """The text at a place that surely is one of these."""
    place.bound, place.affine = len(texts), between(ZERO, Affine({}, len(texts) - 1))
    return PlacedText(texts, place)


def held_for(container: Mapping[Any, Any], key: PlacedText) -> Any:
    """``container[key]``."""
    if any(text not in container for text in key.texts):
        refuse()
    return answer_at([container[text] for text in key.texts], key.place)


def of_texts(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of what is no user's function, of which an argument is such a text: of each in its place."""
    found = [k for k, one in enumerate(args) if type(one) is PlacedText]
    owner = attribute(function, "__self__")
    if isinstance(owner, StandIn) or (type(owner) is list and function.__name__ in KEEPING):
        return function(*args, **kwargs)
    if function is print:
        from srcgrad.tracing.conversion.texts import print_  # which is written with this module

        return print_(*args, **kwargs)
    looks = type(owner) in (dict, list, tuple) and function.__name__ in LOOKING
    if len(found) != 1 or kwargs or not (is_among(function, ASKED) or type(owner) is str or looks):
        refuse()
    (k,) = found
    return args[k].asked(lambda text: function(*args[:k], text, *args[k + 1 :]))
