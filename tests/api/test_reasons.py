"""The reason in a `RetraceWarning` is the one that decided, with a line of the user's."""

from __future__ import annotations

import inspect
import pprint
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg


def makes_an_object_of_a_library(x: Any) -> Any:
    return np.sum(x ** len(pprint.pformat("a")))  # here


def writes_to_a_stream(x: Any) -> Any:
    sys.stdout.write("value")  # here
    return np.sum(x**2)


REASONS: tuple[tuple[Callable[..., Any], str], ...] = (
    (
        makes_an_object_of_a_library,
        r"PrettyPrinter\.__init__ runs code of its own \(.*\), which pprint leads to \({}\)$",
    ),
    (writes_to_a_stream, r"reads the attribute 'write' of 'sys.stdout' \({}\)$"),
)


@pytest.mark.parametrize(("f", "reason"), REASONS, ids=[f.__name__ for f, _ in REASONS])
def test_the_reason_is_that_of_the_analysis_that_decides(f: Callable[..., Any], reason: str) -> None:
    lines, first = inspect.getsourcelines(f)
    line = next(first + k for k, text in enumerate(lines) if "# here" in text)
    with pytest.warns(sg.RetraceWarning, match=reason.format(re.escape(f"{__file__}:{line}"))):
        found = sg.grad(f)(np.ones(2))
    np.testing.assert_allclose(found, [3.0, 3.0] if f is makes_an_object_of_a_library else [2.0, 2.0])
    how = sg.explain(sg.grad(f))(np.ones(2))["how it runs"]
    assert "PrettyPrinter" in how if f is makes_an_object_of_a_library else "sys.stdout" in how


def test_the_error_is_that_of_the_way_that_went_further() -> None:
    """Run as it is, the function is refused at `np.array`, which is an operation where it is converted."""

    def f(x: Any) -> Any:
        y = np.array([x[0], x[1]])
        return bytes.join(b"", y)  # what has no rule

    with pytest.raises(sg.errors.UnsupportedError) as caught:
        sg.grad(f)(np.ones(2))
    assert "what has no rule" in str(caught.value) and "np.array" not in caught.value.message
