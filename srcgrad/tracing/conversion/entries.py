"""Dicts that a loop does nothing to but assign items by keys that the number of the trip decides.

``snapshots[k] = u.copy()`` is ``pairs.append((k, u.copy()))`` while the loop is traced, see `appending`: the keys are
known again behind it, and the dict gets the items in Python's order. A list of pairs is all that the dict holds
meanwhile. The source says that a trip does nothing else with the variable, and nothing else may hold the dict.
"""

from __future__ import annotations

from typing import Any, Final

from srcgrad.boundary import AS_A_KEY
from srcgrad.tracing.conversion.state import Marker
from srcgrad.tracing.trace import Refused, current_trace
from srcgrad.tracing.tracer import contains_tracer

PAIRS: Final = Marker("pairs")
"""The key of the list that stands for what a dict gets."""


class Entries:
    """A dict that a loop fills, and the pairs of key and value that the loop appends instead."""

    def __init__(self, filled: dict[Any, Any]) -> None:
        self.containers = [filled]
        self.kept: dict[Any, Any] = {}
        self.pairs: list[Any] = []
        current_trace().states.add(self)  # as of `Appending`

    @property
    def filled(self) -> dict[Any, Any]:
        return self.containers[0]

    def open(self) -> None:
        self.kept = dict(self.filled)
        self.filled.clear()
        self.filled[PAIRS] = self.pairs

    def restore(self) -> None:
        self.filled.clear()
        self.filled.update(self.kept)

    def leave(self) -> None:
        """Give the dict what all trips have assigned.

        Raises:
            Refused: a value decides a key.
        """
        pairs = list(self.pairs)
        self.pairs.clear()
        if any(contains_tracer(key) for key, _ in pairs):
            raise Refused(AS_A_KEY)
        self.restore()
        self.filled.update(pairs)


class EntryTarget:
    """What an item of such a dict is assigned to."""

    def __init__(self, pairs: list[Any]) -> None:
        self.pairs = pairs

    def __setitem__(self, key: Any, value: Any) -> None:
        self.pairs.append((key, value))


def pairs_of(container: dict[Any, Any]) -> list[Any] | None:
    """The list that stands for what a dict gets, if one does."""
    pairs: list[Any] | None = container.get(PAIRS)
    return pairs


def only_filled(given: Any, reads_last: bool | str | None) -> bool:
    """Whether of a variable's value, as `appended_to` gives it, this knows what a loop does with it."""
    return type(given) is (dict if reads_last is None else list)
