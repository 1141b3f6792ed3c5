"""What the tests of calls answered in machine code have in common."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from srcgrad.transformed import SERVED_FROM

pytest.importorskip("llvmlite")
from srcgrad.backends.llvm.front import POSSIBLE

needs_machine = pytest.mark.skipif(not POSSIBLE, reason="objects are laid out in a way that is not known")
X = np.linspace(0.1, 1.0, 6)


def served(f: Any, *args: Any, **kwargs: Any) -> Any:
    """The object after so many calls that machine code answers them."""
    for _ in range(SERVED_FROM + 1):  # the last by the table
        f(*args, **kwargs)
    assert hasattr(f, "_tables"), "no call is answered in machine code"
    return f


@contextmanager
def switching_often() -> Iterator[None]:
    """Threads change every few microseconds, so that what one finds half done turns up."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


def outcome(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a call returns, or the class of what it raises."""
    try:
        return f(*args, **kwargs)
    except Exception as error:
        return type(error)


def same(found: Any, expected: Any) -> bool:
    """Whether results have the same structure, classes, dtypes and shapes, and about the same numbers."""
    if dataclasses.is_dataclass(expected) and not isinstance(expected, type):
        names = [field.name for field in dataclasses.fields(expected)]
        return type(found) is type(expected) and all(same(getattr(found, n), getattr(expected, n)) for n in names)
    if isinstance(expected, (tuple, list)):
        return type(found) is type(expected) and len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, dict):
        return type(found) is dict and list(found) == list(expected) and all(same(found[k], expected[k]) for k in found)
    if isinstance(expected, (np.ndarray, np.generic)):
        alike = type(found) is type(expected) and found.dtype == expected.dtype and found.shape == expected.shape
        return alike and np.allclose(found, expected, 1e-3 if found.dtype.itemsize < 4 else 1e-5, equal_nan=True)
    return found is expected or (type(found) is type(expected) and found == expected)
