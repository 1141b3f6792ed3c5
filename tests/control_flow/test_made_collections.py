"""Collections of Python's library that a function makes: `Counter` and `ChainMap`."""

from __future__ import annotations

from collections import ChainMap, Counter, deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

X = np.array([1.0, 2.0, 0.5])


def counted(x: Any) -> Any:
    counts: Any = Counter()
    for k in range(50):
        x = np.sin(x)
        counts["trips"] += 1
        counts[k % 3] += x.sum()
    return counts[0] * counts["trips"] + counts[2] + counts["missing"] + len(counts)


def updated(x: Any) -> Any:
    counts = Counter("abca")
    counts.update({"a": 3})
    counts.update(b=2)
    counts.subtract({"c": 1})
    (name, most), *_ = counts.most_common(1)
    return x.sum() * most + x[0] * counts["b"] + len(list(counts.elements())) * (name == "a")


def added(x: Any) -> Any:
    one, other = Counter(p=2, q=1), Counter(p=1)
    return x.sum() * (one + other)["p"] + x[0] * (one - other).total()


def optional(x: Any, stats: Any = None) -> Any:
    stats = stats if stats is not None else Counter()
    return x.sum() * (1 + stats["n"])


def chained(x: Any) -> Any:
    found: Any = ChainMap({"a": x[2]}, {"a": x[0], "b": x[1]})
    found["c"] = x[0] * found["a"]
    return found["b"] * found["c"] + sum(found.values())


def of_values(x: Any) -> Any:
    """Keys that turn up where values say so, and an order that values decide."""
    counts: Any = Counter()
    while x.sum() > 1.0:
        x = x / 2.0
        counts["halved"] += 1
    counts["sum"] += x.sum()
    return x[0] * counts["halved"] + counts.most_common(1)[0][1]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", [counted, updated, added, optional, chained, of_values], ids=lambda f: f.__name__)
def test_collections_that_are_made_are_those_of_python(f: Callable[..., Any], backend: str) -> None:
    g = sg.value_and_grad(f, backend=backend)
    for x in (X, X + 1.0, 3.0 * X):
        value, slope = g(x)
        steps = 1e-6 * np.eye(3)
        assert value == pytest.approx(f(x), rel=1e-12)
        np.testing.assert_allclose(slope, [(f(x + h) - f(x - h)) / 2e-6 for h in steps], rtol=1e-6, atol=1e-8)
    path = f is of_values
    assert sg.explain(g)(X)["how it runs"].startswith("Path" if path else "One program")


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("made", [lambda x: Counter(a=x), lambda x: deque([[x]]), lambda x: ChainMap({"a": x})])
def test_a_collection_that_is_returned_holds_numbers(made: Callable[[Any], Any]) -> None:
    jitted = sg.jit(lambda x: made(x * 2.0))
    for x in (3.0, 4.0):
        assert jitted(x) == made(x * 2.0)
