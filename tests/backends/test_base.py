"""The registry of backends."""

from __future__ import annotations

import subprocess
import sys

import pytest

from srcgrad.backends import base
from srcgrad.ir.errors import BackendError, UnknownBackendError


def test_numpy() -> None:
    numpy = base.backend("numpy")
    assert numpy.name == "numpy"
    assert base.backend("numpy") is numpy


def test_available() -> None:
    found = base.available()
    assert found["numpy"]
    assert set(found) == {"numpy", "llvm", "xla"}


def test_unknown() -> None:
    with pytest.raises(UnknownBackendError, match=r"there is no backend 'numpi'(.|\n)*did you mean numpy\?"):
        base.backend("numpi")
    with pytest.raises(UnknownBackendError, match=r"the backends are llvm, numpy, xla"):
        base.backend("?")


@pytest.mark.parametrize(("name", "hint"), [("xla", r"pip install srcgrad\[xla\]"), ("llvm", "pip install llvmlite")])
def test_missing(name: str, hint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_is_available", lambda entry: False)
    monkeypatch.setattr(base, "_loaded", {})
    with pytest.raises(BackendError, match=rf"the backend '{name}' is not available(.|\n)*{hint}"):
        base.backend(name)


def test_imports_nothing_that_is_not_asked_for() -> None:
    code = (
        "import sys; from srcgrad.backends import base; base.available(); base.backend('numpy');"
        "print(*sorted({'scipy', 'jax', 'llvmlite'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []
