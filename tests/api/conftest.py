"""Fixtures of several files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import srcgrad as sg
from srcgrad import building


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the programs compiled so far; the caches start empty."""
    sg.clear_caches()
    found: list[str] = []
    compiled = building.compiled

    def counted(function: Any, backend: str, **options: Any) -> Any:
        found.append(function.name)
        return compiled(function, backend, **options)

    monkeypatch.setattr(building, "compiled", counted)
    yield found
    sg.clear_caches()
