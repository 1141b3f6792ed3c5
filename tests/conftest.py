"""Options of the tests, and what several of them use."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from srcgrad import cache


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write tests/golden anew from what the code gives now"
    )


@pytest.fixture(scope="module")
def older_objects_left_alone() -> Iterator[None]:
    """``gc.collect`` looks at what is made from here on only: late in a run there are millions of older objects."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def programs() -> cache.Table:
    """The table of programs, empty: at its capacity one program more does not show in their number."""
    cache.PROGRAMS.clear()
    return cache.PROGRAMS
