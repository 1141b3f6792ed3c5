"""What a function reads, changed by another thread while a call looks at it."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.tracing import reach, rebuild

HELD: dict[str, Any] = {"scale": 2.0}


def scaled(x: Any) -> Any:
    if np.sum(x) > 0.0:
        return np.sum(x * x * HELD["scale"])
    return np.sum(x)


@pytest.fixture(autouse=True)
def held() -> Iterator[None]:
    sg.clear_caches()
    yield
    HELD.clear()
    HELD["scale"] = 2.0


def test_a_key_that_goes_between_the_look_and_the_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    HELD["other"] = "text"
    real = rebuild.read_edge

    def read_edge(*args: Any) -> Any:
        HELD.pop("other", None)
        return real(*args)

    monkeypatch.setattr(rebuild, "read_edge", read_edge)
    assert np.array_equal(sg.grad(scaled)(np.ones(2)), [4.0, 4.0])
    assert "One program" in sg.explain(sg.grad(scaled))(np.ones(2))["how it runs"]


def test_keys_that_come_while_a_dict_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    real = reach.ObjectAnalysis.read

    def read(self: Any, *args: Any) -> Any:
        if len(HELD) < 5:
            HELD[f"other{len(HELD)}"] = 1.0
        return real(self, *args)

    monkeypatch.setattr(reach.ObjectAnalysis, "read", read)
    assert np.array_equal(sg.grad(scaled)(np.ones(2)), [4.0, 4.0])


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_another_thread_changes_other_keys_all_the_time() -> None:
    slope, stop, interval = sg.grad(scaled), threading.Event(), sys.getswitchinterval()

    def change() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            HELD[f"other{number % 5}"] = 1
            HELD.pop(f"other{(number + 2) % 5}", None)

    thread = threading.Thread(target=change)
    sys.setswitchinterval(1e-5)
    thread.start()
    try:
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            assert np.array_equal(slope(np.ones(2)), [4.0, 4.0])
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        thread.join()
