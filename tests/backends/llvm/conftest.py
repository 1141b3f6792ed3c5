"""Fixtures of the tests of calls answered in machine code."""

from __future__ import annotations

from typing import Any

import pytest

from srcgrad import cache
from srcgrad.backends.llvm import native, objects
from srcgrad.transformed import Transformed


@pytest.fixture(autouse=True)
def nothing_learned() -> None:
    """No test's calls are answered by what those of another one have left."""
    cache.LEARNED.clear()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Transformed]:
    """The objects whose calls came to Python."""
    found: list[Transformed] = []
    call = Transformed.__call__

    def counted(self: Transformed, *args: Any, **kwargs: Any) -> Any:
        found.append(self)
        return call(self, *args, **kwargs)

    monkeypatch.setattr(Transformed, "__call__", counted)
    return found


@pytest.fixture(params=["machine", "bind"])
def guards(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether guards are checked by machine code, or all by the Python function `bind`."""
    if request.param == "bind":
        from srcgrad import front, front_guards

        def refuse(*args: Any) -> Any:
            raise front_guards.UnknownGuard

        monkeypatch.setattr(front, "Guards", refuse)
    return str(request.param)


@pytest.fixture
def nothing_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine code is neither read from the disk nor kept there."""
    monkeypatch.setenv(objects.VARIABLE, "")


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The modules that are compiled."""
    found: list[str] = []
    made = native.machine_code
    monkeypatch.setattr(native, "machine_code", lambda text: found.append(text) or made(text))
    return found
