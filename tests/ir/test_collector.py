"""The cyclic collector, which waits while programs are made and does not look through large ones at once."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from srcgrad.ir import collector
from srcgrad.ir.collector import without_gc


class Node:
    """Something that refers to itself, as the values and operations of a program refer to each other."""

    def __init__(self) -> None:
        self.itself: Any = self


@pytest.fixture(autouse=True)
def enabled_and_nothing_frozen(monkeypatch: pytest.MonkeyPatch) -> Any:
    """In these tests the collector is on, and nothing is frozen but by themselves."""
    monkeypatch.setattr(collector._Spared, "count", 0)
    before = gc.isenabled()
    gc.unfreeze()
    gc.enable()
    yield
    gc.freeze()  # as the run of the tests has it
    (gc.enable if before else gc.disable)()


def made(count: int) -> list[Node]:
    with without_gc():
        return [Node() for _ in range(count)]


def test_a_large_program_is_old_at_once_so_that_it_is_not_looked_through() -> None:
    nodes = made(collector.MANY + 1_000)
    assert nodes[0] in gc.get_objects(generation=2)


def test_a_small_program_is_left_to_the_collector() -> None:
    gc.collect()
    made(1_000)
    assert collector._Spared.count == 0


def test_large_programs_that_nothing_needs_are_freed_after_some(monkeypatch: pytest.MonkeyPatch) -> None:
    size = collector.MANY + 1_000
    monkeypatch.setattr(collector, "MOST", 2 * size)
    monkeypatch.setattr(collector, "SHARE", 1_000_000)
    first = weakref.ref(made(size)[0])
    assert first() is not None
    for _ in range(3):
        made(size)
    assert first() is None


def test_what_is_spared_may_be_a_share_of_all_that_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "MOST", 0)
    monkeypatch.setattr(collector, "SHARE", 0)
    first = weakref.ref(made(collector.MANY + 1_000)[0])
    made(collector.MANY + 1_000)
    assert first() is not None


def test_what_a_user_has_frozen_stays_so() -> None:
    gc.freeze()
    frozen = gc.get_freeze_count()
    made(collector.MANY + 1_000)
    assert gc.get_freeze_count() >= frozen > 0
    assert collector._Spared.count == 0


def test_a_collector_that_is_off_stays_off() -> None:
    gc.disable()
    made(10)
    assert not gc.isenabled()
