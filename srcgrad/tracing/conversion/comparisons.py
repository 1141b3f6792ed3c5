"""Comparisons of converted code: chains, ``in``, and ``is``, which Python answers without asking its operands."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Collection
from typing import Any, Final

import numpy as np

from srcgrad.boundary import AS_A_KEY
from srcgrad.ir.types import BOOL
from srcgrad.tracing.built_on import is_view_of_dict, viewed
from srcgrad.tracing.conversion.binding import flag_of
from srcgrad.tracing.conversion.branches import and_, not_, or_
from srcgrad.tracing.conversion.calls import call
from srcgrad.tracing.conversion.classes import original, originals
from srcgrad.tracing.conversion.identity import Picked
from srcgrad.tracing.conversion.operands import binary
from srcgrad.tracing.conversion.placed_texts import PlacedText, refuse
from srcgrad.tracing.conversion.standing import ITEM, use_of
from srcgrad.tracing.conversion.state import Mistaken, kind_of, may_be_none, require_defined, shown, unknown
from srcgrad.tracing.conversion.texts import Text, needed
from srcgrad.tracing.trace import CURRENT, Refused
from srcgrad.tracing.tracer import Tracer, from_value
from srcgrad.tracing.unasked import attribute

CACHED: Final = range(-5, 257)
"""The integers of which Python has one object each."""
TABLES: Final[tuple[type[Collection[Any]], ...]] = (set, frozenset, dict, type({}.keys()))
NUMBERS: Final = (int, float, complex, np.number, np.bool_)
NO_NUMBERS: Final = (str, bytes, tuple, frozenset, type(None))
"""Keys that no number is equal to."""
FEW_KEYS: Final = 4
"""So many keys are compared one by one."""


# --- identity -----------------------------------------------------------------------------


def is_(one: Any, other: Any) -> Any:
    """``one is other``, as the objects that traced values stand for would answer."""
    if one is other:
        return True
    if isinstance(one, type) and isinstance(other, type):
        return original(one) is original(other)
    for x, y in ((one, other), (other, one)):
        if y is None and type(x) is PlacedText:
            return x.asked(lambda text: text is None)
        if y is None and may_be_none(x):
            return not_(from_value(flag_of(x), scalar=True, weak=True))
        require_defined(x)
        if type(x) is PlacedText and isinstance(y, (str, PlacedText)):
            refuse()
    if isinstance(one, Tracer):
        return same_object(one, other)
    if isinstance(other, Tracer):
        return same_object(other, one)
    if one is not None and original(type(one)) is original(type(other)):
        require_own(one)
        require_own(other)
    return False


def is_not(one: Any, other: Any) -> Any:
    """``one is not other``."""
    return not_(is_(one, other))


def matched(subject: Any) -> Any:
    """The subject of a ``match`` that Python runs: it asks for identity and kind, of the items of a sequence too."""
    for x in subject if type(subject) in (tuple, list) else (subject,):
        require_defined(x)
        if isinstance(x, Tracer) and x.scalar and x.dtype == BOOL:
            bool(x)
    return subject


class Truth:
    """True or False in a pattern of Python's own ``match``, which compares by ``==``: an answer by ``is``."""

    __array_ufunc__ = None  # so that an array leaves the answer to this
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: bool) -> None:
        self.value = value

    def __eq__(self, other: object) -> Any:
        return is_(other, self.value)


TRUE, FALSE = Truth(True), Truth(False)


def require_own(x: Any) -> None:
    """Refuse a container or record that stands for one or another: by a traced condition, or in each trip of a loop."""
    if isinstance(x, tuple):
        for item in x:
            if isinstance(item, Tracer) and item.storage.decided:
                raise undecided("a tuple")
            require_not_rebuilt(item)
            require_own(item)
        return
    trace = CURRENT.get()
    while trace is not None and trace.region and trace.parent is not None:
        trace = trace.parent
    attributes = attribute(x, "__dict__")
    if use_of(x) is ITEM:
        raise undecided("an item of a list that a loop runs over")
    for container, _, name, use in trace.chosen if trace is not None else ():
        if container is x or (attributes is not None and container is attributes):
            raise Mistaken("a list is compared by 'is'") if type(use) is Picked else undecided(shown(name))


def require_not_rebuilt(x: Any) -> None:
    """Refuse what stands for an object of the program's own, in a trip of a loop or behind it."""
    if isinstance(x, Tracer) and x.rebuilt:
        raise Refused(
            "what a loop runs over or hands on is compared by 'is'",
            hint="compare what the objects hold, or their places",
        )


def undecided(what: str) -> Refused:
    return Refused(
        f"{what} is one object or another, depending on a traced condition, and compared by 'is'",
        hint="compare what the objects hold, or set a flag where the object is chosen",
    )


def same_object(x: Tracer, other: Any) -> Any:
    """Whether a traced value stands for an object; truth values of one kind are one object each.

    Raises:
        Refused: a traced condition decides which object it is.
    """
    kind, asked = kind_of(x), kind_of(other)
    if kind is None or asked is None or kind.type != asked.type:
        return False
    truths = kind.scalar and asked.scalar and x.dtype == BOOL
    if not (truths and kind.weak and asked.weak) and any(
        isinstance(one, Tracer) and one.storage.decided for one in (x, other)
    ):
        raise undecided("a number" if kind.scalar else "an array")
    if kind.weak != asked.weak:
        return False
    if truths:
        if isinstance(other, Tracer):
            return x == other
        return x if other else not_(x)
    if kind.scalar and kind.weak and x.dtype.kind == "i":
        if unknown(x) or unknown(other):
            raise Refused("an integer from traced values is compared by 'is'", hint="use ==")
        return int(x) == int(other) and int(x) in CACHED
    for one in (x, other):
        require_not_rebuilt(one)
    return False


# --- chains and containment -----------------------------------------------------------------

IDENTITY: Final[dict[str, Callable[[Any, Any], Any]]] = {"Is": is_, "IsNot": is_not}


def compared(name: str, left: Any, right: Any) -> Any:
    if name in ("In", "NotIn"):
        found = contains(right, left)
        return found if name == "In" else not_(found)
    return IDENTITY[name](left, right) if name in IDENTITY else binary(name, left, right)


def contains(container: Any, item: Any) -> Any:
    """``item in container``."""
    if isinstance(container, Tracer):
        return np.any(container == item)
    if is_view_of_dict(container):
        container = viewed(container)
    if type(item) is PlacedText:
        return item.asked(lambda text: text in container)
    if type(item) is Text and isinstance(container, str):
        raise needed()
    if type(container) in (list, tuple) and (isinstance(item, Tracer) or any(map(unknown, container))):
        found: Any = False
        for other in container:
            found = or_(found, functools.partial(same_item, item, other))
        return found
    if isinstance(container, TABLES) and isinstance(item, Tracer) and item.scalar:
        return is_key(list(container), item)
    if type(container) is range and isinstance(item, Tracer) and item.scalar:
        return in_range(container, item)
    if isinstance(item, type) and type(container) in (list, tuple, set):
        return original(item) in [originals(other) for other in container]
    if container is os.environ:
        return call(os.environ.get, item) is not None
    return call(sys.modules.__contains__, item) if container is sys.modules else item in container


def in_range(numbers: range, item: Tracer) -> Any:
    """Whether a number is one of those of a range."""
    if not numbers:
        return False
    least, most = sorted((numbers[0], numbers[-1]))
    inside = and_(least <= item, lambda: item <= most)
    if abs(numbers.step) == 1 and item.dtype.kind in "biu":
        return inside
    return and_(inside, lambda: (item - least) % abs(numbers.step) == 0)


def is_key(keys: list[Any], item: Tracer) -> Any:
    """Whether a number is one of the keys of a set or dict: of those that Python would find, which are equal to it."""
    if not all(isinstance(key, (*NUMBERS, *NO_NUMBERS)) for key in keys):
        raise Refused(AS_A_KEY)  # they may have an equality of their own
    numbers = [key for key in keys if isinstance(key, NUMBERS)]
    kinds = {kind_of(number) for number in numbers}
    if len(numbers) > FEW_KEYS and len(kinds) == 1 and None not in kinds:
        return np.any(np.array(numbers) == item)
    found: Any = False
    for number in numbers:
        found = or_(found, functools.partial(same_item, item, number))
    return found


def same_item(item: Any, other: Any) -> Any:
    return other is item or other == item


def compare(names: tuple[str, ...], left: Any, *operands: Callable[[], Any]) -> Any:
    """A chain of comparisons, each operand evaluated once."""
    right = operands[0]()
    result = compared(names[0], left, right)
    if len(operands) == 1:
        return result
    return and_(result, lambda: compare(names[1:], right, *operands[1:]))
