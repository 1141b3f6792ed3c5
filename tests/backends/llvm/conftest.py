"""Fixtures of the tests of calls answered in machine code."""

from __future__ import annotations

import ctypes
import gc
import mmap
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from srcgrad import cache
from srcgrad.backends.llvm import boxes, chunks, native, objects, pieces, workers
from srcgrad.backends.llvm.target import TARGET, Target
from srcgrad.transformed import Transformed
from srcgrad.vectorcall import allow, allowed


@pytest.fixture(scope="session", autouse=True)
def older_tests_left_alone() -> None:
    """Many of these tests call ``gc.collect``: jax, and what earlier tests have had compiled, is not looked at."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def nothing_learned() -> None:
    """No test's calls are answered by what those of another one have left."""
    cache.LEARNED.clear()


@pytest.fixture
def asked() -> Iterator[list[Transformed]]:
    """The objects whose calls came to Python."""
    found: list[Transformed] = []
    call = Transformed.__call__
    classes = [cls for cls in with_subclasses(Transformed) if allowed(cls)]

    def counted(self: Transformed, *args: Any, **kwargs: Any) -> Any:
        found.append(self)
        return call(self, *args, **kwargs)

    def have(function: Callable[..., Any]) -> None:
        Transformed.__call__ = function  # type: ignore[method-assign]
        for cls in classes:  # which Python 3.12 and later take to have other calls now
            allow(cls)

    have(counted)
    yield found
    have(call)


def with_subclasses(cls: type) -> list[type]:
    return [cls, *[found for below in cls.__subclasses__() for found in with_subclasses(below)]]


@pytest.fixture(params=["machine", "asked", "bind"])
def guards(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether guards are checked by machine code, the conditions by a Python function, or all by `bind`."""
    from srcgrad import front, front_guards

    if request.param == "asked":

        def unknown(*args: Any) -> Any:
            raise front_guards.UnknownGuard

        monkeypatch.setattr(front_guards.Guards, "require", unknown)
    if request.param == "bind":

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
    """The modules that are compiled, in the order in which one thread does that."""
    monkeypatch.setenv(workers.VARIABLE, "1")
    found: list[str] = []
    made = native.machine_code
    monkeypatch.setattr(native, "machine_code", lambda text: found.append(text) or made(text))
    return found


@pytest.fixture
def page() -> Iterator[np.ndarray[Any, Any]]:
    """The bytes of a page between two that may not be touched."""
    if sys.platform != "linux":
        pytest.skip("pages are protected by a call of Linux's")
    size = mmap.PAGESIZE
    memory = mmap.mmap(-1, 3 * size)
    found = np.frombuffer(memory, np.uint8)
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    address = found.ctypes.data
    for place in (address, address + 2 * size):
        assert protect(ctypes.c_void_p(place), ctypes.c_size_t(size), 0) == 0
    yield found[size : 2 * size]
    for place in (address, address + 2 * size):
        assert protect(ctypes.c_void_p(place), ctypes.c_size_t(size), 3) == 0


CUT = {"LEAST": 1, "LONG": 8, "DEAREST": 1 << 20, "MOST": 40, "MANY": 1}
"""So that small groups are boxes."""


@pytest.fixture(params=["as they are", "in boxes", "in boxes and chunks", "under masks"])
def how(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Small groups are cut, with tails as another machine has them, and run in chunks; or large ones are not cut."""
    if request.param != "as they are":
        monkeypatch.setattr(pieces, "RUN", 1)
    if request.param.startswith("in boxes"):
        for name, value in CUT.items():
            monkeypatch.setattr(boxes, name, value)
    if request.param == "in boxes":
        masked = TARGET.masked
        monkeypatch.setattr(Target, "masked", property(lambda self: not masked))
    if request.param == "in boxes and chunks":
        for name, value in {"WORTH": 50, "EACH": 20, "PIECE": 1}.items():
            monkeypatch.setattr(chunks, name, value)
    if request.param == "under masks":
        monkeypatch.setattr(boxes, "LEAST", 1 << 60)
    return str(request.param)
