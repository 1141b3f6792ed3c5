"""Python's cyclic collector, while programs are made."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

MANY: Final = 50_000
"""So many new objects are a large program: to look through them takes a tenth of the time that making them took."""
MOST: Final = 2_000_000
"""How many objects may be spared before all are looked through."""
SHARE: Final = 4
"""They also may be one in so many of all that there are, as Python's own collector has it."""


class _Spared:
    """How many objects the collector has not looked through since it last was asked to look through all."""

    count = 0


@contextmanager
def without_gc() -> Iterator[None]:
    """Pause the cyclic collector: a program under construction is many long-lived objects, scanned for nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            young = gc.get_count()[0]
            if young > MANY and _can_spare():
                _spare(young)
            gc.enable()


def _can_spare() -> bool:
    """Whether objects can be called old: what the user has frozen would no longer be, and some builds have no ages."""
    return gc.get_freeze_count() == 0 and getattr(sys, "_is_gil_enabled", lambda: True)()


def _spare(young: int) -> None:
    """Call the young objects old, so that they wait for a full collection; most of a program lives as long as it.

    A full collection is due by what has grown old by itself alone, so what has been spared is counted here.
    """
    _Spared.count += young
    if _Spared.count > MOST and _Spared.count * SHARE > len(gc.get_objects()):
        gc.collect()
        _Spared.count = 0
        return
    gc.freeze()
    gc.unfreeze()
