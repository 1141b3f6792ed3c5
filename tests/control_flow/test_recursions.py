"""Branches in branches that hand on many values to their derivatives: these are packed in one array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.ir.transforms import record_control
from srcgrad.lowering import lower
from srcgrad.tracing.conversion import branches

P = np.array([0.3, 2.0, 3.0])


@pytest.fixture(autouse=True)
def _packed_early(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(record_control, "MANY", 3)
    sg.clear_caches()
    yield
    sg.clear_caches()


def simpson(f: Any, a: Any, b: Any, eps: float, depth: int) -> Any:
    m = 0.5 * (a + b)
    fa, fm, fb = f(a), f(m), f(b)
    whole = (b - a) / 6 * (fa + 4 * fm + fb)
    left = (m - a) / 6 * (fa + 4 * f(0.5 * (a + m)) + fm)
    right = (b - m) / 6 * (fm + 4 * f(0.5 * (m + b)) + fb)
    if depth == 0 or abs(left + right - whole) < 15 * eps:
        return left + right + (left + right - whole) / 15
    return simpson(f, a, m, eps / 2, depth - 1) + simpson(f, m, b, eps / 2, depth - 1)


def adaptive(p: Any) -> Any:
    return simpson(lambda x: np.exp(-p[0] * x) * np.sin(p[1] * x), 0.0, p[2], 1e-5, 3)


def of_several_kinds(p: Any) -> Any:
    """Arrays and single precision; one branch hands on nothing."""
    q = (p * 0.5).astype(np.float32)
    if p[0] < 1.0:
        y = np.exp(np.outer(p, np.sin(p)) * p[1])
        for k in range(4):
            y = np.sin(y * p[2] + k) * y
            q = q * np.cos(q)
        found = np.sum(y) + np.sum(q * q)
    else:
        found = p[1] * 2.0
    return found * p[0]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", [adaptive, of_several_kinds], ids=lambda f: f.__name__)
@pytest.mark.parametrize("p", [P, pytest.param(P + 1.0, marks=pytest.mark.slow)], ids=["near", "far"])
def test_derivatives_through_packed_values(f: Any, p: Any, backend: str) -> None:
    value, slope = sg.value_and_grad(f, backend=backend)(p)
    assert value == pytest.approx(f(p), rel=1e-6)
    pushed = [sg.jvp(f, (p,), (e,), backend=backend)[1] for e in np.eye(3)]
    np.testing.assert_allclose(slope, pushed, rtol=1e-5)
    batch = np.stack([p, p + 0.01])
    single = [sg.grad(f, backend=backend)(x) for x in batch]
    np.testing.assert_allclose(sg.vmap(sg.grad(f), backend=backend)(batch), single, rtol=1e-5)
    twice = sg.hessian(f, backend=backend)(p)
    np.testing.assert_allclose(twice, twice.T, rtol=1e-4, atol=1e-4)


def test_a_cond_hands_on_one_array(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not as many results as all branches inside of it have values."""

    def most() -> int:
        sg.clear_caches()
        program = lower(sg.grad(adaptive), (P,), {}).built.function
        return max(len(x.results) for x in program.walk() if x.op.name == "cond")

    packed = most()
    monkeypatch.setattr(record_control, "MANY", 10_000)
    assert packed * 3 < most()


def test_a_recursion_that_branches_has_no_more_than_some_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each level had twice the blocks of the one before: a depth of 20 was traced without an end."""

    def to_the_depth(depth: int) -> Any:
        return lambda p: simpson(lambda x: np.exp(-p[0] * x) * np.sin(p[1] * x), 0.0, p[2], 1e-3, depth)

    monkeypatch.setattr(branches, "DEEP", 3)
    monkeypatch.setattr(branches, "MOST_DEEP", 20)
    for depth, ways in ((3, ("One program",) * 2), (6, ("Path 1", "Path 2"))):
        function = to_the_depth(depth)
        slope = sg.grad(function)
        for p, way in zip((P, P * 4.0), ways, strict=True):
            steps = 1e-6 * np.eye(3)
            by_differences = [(function(p + step) - function(p - step)) / 2e-6 for step in steps]
            np.testing.assert_allclose(slope(p), by_differences, rtol=1e-4, atol=1e-6)
            assert sg.explain(slope)(p)["how it runs"].startswith(way)
