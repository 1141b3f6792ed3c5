"""Functions with assertions in modules whose code pytest has rewritten are what their source says: this is one."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

X = np.array([1.0, 2.0, 3.0])


def of_shape(x: Any) -> Any:
    assert x.shape == (3,), "three numbers"
    return np.sum(x**2)


def of_value(x: Any) -> Any:
    total = np.sum(x)
    assert total > 0, "positive"
    assert np.isfinite(total) and len(x) == 3 and isinstance(x, np.ndarray)
    return np.sum(x**2)


def in_a_loop(x: Any) -> Any:
    total = 0.0
    for part in x:
        assert all(limit > 0 for limit in (1, 2)), [2.0 * part for part in x]
        assert part is not None
        total = total + part**2
    return total


def in_a_function_inside(x: Any) -> Any:
    def squared(y: Any) -> Any:
        assert (n := y.ndim) == 1, n
        return y**2

    return squared(x).sum()


FUNCTIONS = (of_shape, of_value, in_a_loop, in_a_function_inside)


def test_this_module_is_rewritten() -> None:
    assert any(name.startswith("@py") for name in of_shape.__code__.co_names)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_function_with_assertions_is_one_program_in_a_test_module(f: Callable[..., Any], backend: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        np.testing.assert_allclose(sg.grad(f, backend=backend)(X), 2.0 * X)
        np.testing.assert_allclose(sg.jit(f, backend=backend, strict=True)(X), np.sum(X**2))


@pytest.mark.parametrize("transform", [sg.grad, sg.jit], ids=["grad", "jit"])
@pytest.mark.parametrize(
    ("f", "x", "message"), [(of_shape, np.ones(2), "three numbers"), (of_value, -X, "positive")], ids=["shape", "value"]
)
def test_an_assertion_that_fails_says_what_its_author_says(
    transform: Callable[..., Any], f: Callable[..., Any], x: Any, message: str
) -> None:
    for _ in range(2):
        with pytest.raises(AssertionError, match=message):
            transform(f)(x)


def test_what_is_read_in_an_assertion_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "LIMIT", 4.0)
    found = sg.jit(below_the_limit, strict=True)
    assert found(3.0) == 3.0
    monkeypatch.setitem(globals(), "LIMIT", 2.0)
    with pytest.raises(AssertionError, match="too large"):
        found(3.0)


LIMIT = 4.0


def below_the_limit(x: Any) -> Any:
    assert x < LIMIT, "too large"
    return x


MODULE = """
import numpy as np
import srcgrad as sg

def loss(x):
    assert x.ndim == 1, "a vector"
    return np.sum(np.sin(x))

def test_loss():
    assert np.allclose(sg.grad(loss)(np.ones(3)), np.cos(np.ones(3)))
    assert sg.jit(loss, strict=True)(np.zeros(2)) == 0.0

def test_that_fails():
    sg.jit(loss)(np.ones((2, 2)))
"""


def test_a_test_run_warns_of_nothing_and_shows_the_assertion(tmp_path: Path) -> None:
    (tmp_path / "test_loss.py").write_text(MODULE)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-W",
        "error::UserWarning",
        str(tmp_path),
    ]
    found = subprocess.run(
        command, capture_output=True, text=True, timeout=120, cwd=Path(__file__).parents[2], check=False
    )
    assert "1 failed, 1 passed" in found.stdout, found.stdout
    assert "AssertionError: a vector" in found.stdout
