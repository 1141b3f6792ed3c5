"""``python -m srcgrad doctor``: what it says is so, and its exit status says whether the default backend works."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import srcgrad as sg
from srcgrad import doctor
from srcgrad.backends.base import Backend, Executable, available
from srcgrad.backends.numpy.evaluate import evaluate
from srcgrad.compiler import backend_name

ROOT = Path(__file__).resolve().parents[1]
HERE = backend_name(None)
"""The default backend of this process; that of a new one is llvm."""


def command(*arguments, **variables):
    environment = {**os.environ, "SRCGRAD_BACKEND": "", **variables}
    return subprocess.run(
        [sys.executable, "-m", "srcgrad", "doctor", *arguments],
        capture_output=True, text=True, cwd=ROOT, env=environment, timeout=300,
    )  # fmt: skip


class Wrong(Backend):
    """Runs programs, and changes their first result."""

    name = HERE

    def __init__(self, change):
        self.change = change

    def compile(self, function, sites=None):
        return Executable(lambda *args: tuple(self.change(result) for result in evaluate(function, args)), "")


def broken(result):
    raise ZeroDivisionError("broken")


@pytest.fixture
def planted(monkeypatch):
    """Replace the default backend."""
    from srcgrad.backends import base

    def plant(change):
        monkeypatch.setitem(base._loaded, HERE, Wrong(change))
        sg.clear_caches()

    yield plant
    monkeypatch.undo()
    sg.clear_caches()


def test_command():
    done = command()
    assert done.returncode == 0, done.stderr
    assert "backend llvm, the default: works" in done.stdout
    assert f"numpy: {np.__version__}" in done.stdout
    assert done.stdout.startswith(f"srcgrad {sg.__version__}, Python ")


def test_json():
    done = command("--json", SRCGRAD_VERIFY="1", OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["works"] is True
    assert found["default backend"] == "llvm"
    assert found["environment"]["SRCGRAD_VERIFY"] == "1"
    assert found["environment"]["OMP_NUM_THREADS"] == "1"
    assert found["libraries"]["numpy"] == np.__version__
    assert set(found["backends"]) == set(available())
    assert found["cache"]["programs"] >= 1
    assert found["threads"]["cores of this process"] >= 1


@pytest.mark.parametrize("name", ["numpi", "llvm"])
def test_a_default_that_does_not_work_is_exit_status_1(name):
    if available().get(name):
        pytest.skip("this backend is there")
    done = command(SRCGRAD_BACKEND=name)
    assert done.returncode == 1
    assert f"backend {name}, the default: " in done.stdout


def test_another_backend_that_fails_is_not(monkeypatch):
    monkeypatch.setattr(doctor, "try_backend", lambda name: {"state": "works" if name == HERE else "fails"})
    assert doctor.diagnosis()["works"] is True


@pytest.mark.parametrize(
    ("change", "state", "detail"),
    [
        (lambda result: result * (1 + 1e-9), "gives wrong numbers", "instead of"),
        (lambda result: result[None], "gives wrong numbers", "instead of"),
        (lambda result: result * np.nan, "gives wrong numbers", "nan"),
        (broken, "fails", "ZeroDivisionError: broken"),
    ],
)
def test_a_backend_that_is_wrong_does_not_work(planted, change, state, detail):
    assert doctor.try_backend(HERE)["state"] == "works"
    planted(change)
    found = doctor.diagnosis()
    assert found["works"] is False
    assert found["backends"][HERE]["state"] == state
    assert detail in found["backends"][HERE]["detail"]
    assert f"backend {HERE}, the default: {state}" in doctor.report(found)


def test_every_variable_that_is_read_is_shown():
    """What the sources read from the environment, by its name or by a constant that holds it."""
    read = set()
    for folder in ("srcgrad", "ir", "backends"):
        for path in (ROOT / folder).rglob("*.py"):
            if path.name != "doctor.py":
                read |= set(re.findall(r"\bSRCGRAD_[A-Z_]+\b", path.read_text("utf-8")))
    assert read <= doctor.VARIABLES.keys()
    assert {"SRCGRAD_BACKEND", "SRCGRAD_VERIFY"} <= read


def test_backends_that_are_not_there_say_what_to_do():
    for name, present in available().items():
        if not present:
            found = doctor.absent(name)
            assert found["state"] == "not available"
            assert name in found["detail"]


def test_missing_libraries(monkeypatch):
    monkeypatch.setattr(doctor, "LIBRARIES", ("numpy", "no-such-library"))
    monkeypatch.setattr(doctor, "devices", lambda: None)
    text = doctor.report(doctor.diagnosis())
    assert "no-such-library: not installed" in text
    assert "devices of jax: jax is not installed" in text
