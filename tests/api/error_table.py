"""The table of bad calls: each case is a function that raises, with the Python error it must also be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Case(NamedTuple):
    """One bad call: the error's class, the Python errors it must be, and the expression under the caret."""

    run: Callable[[], object]
    kind: str
    python: tuple[type[Exception], ...]
    at: str


CASES: dict[str, Case] = {}


def case(kind: str, *python: type[Exception], at: str = "") -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Add a bad call to the table; ``at`` is the source text that the caret must be under."""

    def register(run: Callable[[], Any]) -> Callable[[], Any]:
        assert run.__name__ not in CASES, run.__name__
        CASES[run.__name__] = Case(run, kind, python, at)
        return run

    return register
