"""What is remembered of the ways in which a function with paths was traced in vain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.building import Building
from srcgrad.errors import UnsupportedError

ENDS = np.array([[0, 1], [1, 2], [2, 3], [3, 1]])


def assembled(k: Any) -> Any:
    matrix = np.zeros((4, 4))
    np.add.at(matrix, (ENDS[:, :1], ENDS[:, 1:]), k[:, None])  # which only converted code may do
    load = np.bincount(ENDS.ravel(), np.repeat(k, 2))  # which asks for a size
    return np.sum(matrix**2) + load @ load


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_what_has_no_rule_as_it_is_is_not_traced_again_where_it_has_paths(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call made both traces of the function as it is again, 15 ms, before it looked for a path."""
    slope, k = sg.value_and_grad(assembled, backend=backend), np.array([1.0, 2.0, -0.5, 3.0])
    slope(k)
    monkeypatch.setattr(Building, "trace", None)
    for x in (k, -k, np.arange(4.0)):
        for found in (slope, sg.value_and_grad(assembled, backend=backend)):
            value, gradient = found(x)
            np.testing.assert_allclose(value, assembled(x))
            apart = [(assembled(x + e) - assembled(x - e)) / 2 for e in np.eye(4)]
            np.testing.assert_allclose(gradient, apart, rtol=1e-12)


def test_an_error_that_is_remembered_is_raised_anew() -> None:
    def days(x: Any) -> Any:
        return np.busday_count(x, x)

    found = []
    for _ in range(3):
        with pytest.raises(UnsupportedError, match="no derivative rule") as raised:
            sg.grad(days)(np.ones(2))
        found.append(raised.value)
    assert found[0] is not found[1] is not found[2]
    assert {str(error) for error in found} == {str(found[0])}


TIMES = np.round(np.random.default_rng(3).exponential(2.0, 40), 1)
SEEN = np.random.default_rng(4).uniform(size=40) < 0.7


def survival(w: Any) -> Any:
    """The area under a product of Kaplan and Meier: the groups of equal times are asked for one by one."""
    order = np.argsort(TIMES, kind="stable")
    left, area, before, i = 1.0, 0.0, 0.0, 0
    while i < len(order):
        t = TIMES[order[i]]
        area += left * (t - before)
        at_risk, dead = w[order[i:]].sum(), 0.0
        while i < len(order) and TIMES[order[i]] == t:
            if SEEN[order[i]]:
                dead += w[order[i]]
            i += 1
        left, before = left * (1 - dead / at_risk), t
    return area


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
def test_a_path_of_a_hundred_questions_is_one_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """From 64 questions on each call was traced again, which took a hundred times as long as the program."""
    slope, w = sg.value_and_grad(survival), np.linspace(0.5, 2.0, 40)
    slope(w)
    monkeypatch.setattr(Building, "trace", None)
    for x in (w, w[::-1].copy()):
        value, gradient = slope(x)
        np.testing.assert_allclose(value, survival(x), rtol=1e-12)
        apart = [(survival(x + 1e-5 * e) - survival(x - 1e-5 * e)) / 2e-5 for e in np.eye(40)]
        np.testing.assert_allclose(gradient, apart, rtol=1e-6, atol=1e-8)


class Priced:
    """An attribute more where a float is not 0."""

    def __init__(self, rate: Any) -> None:
        self.value = 1.5
        if rate:
            self.rate = rate
            self.value = 2.0 * rate


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize(
    ("f", "at_0"),
    [(lambda x: x * Priced(x).value, 1.5), (lambda x: x * sum([x, x, x] if x else [2.0]), 2.0)],
    ids=["a statement", "an expression"],
)
def test_the_truth_of_a_float_is_answered_by_a_path(f: Any, at_0: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a comparison it was; a float under `if` itself had each call traced again."""
    slope = sg.value_and_grad(f)
    points = [0.3, 0.0, -1.25]
    for x in points[:2]:
        slope(x)
    monkeypatch.setattr(Building, "trace", None)
    for x in points:
        value, gradient = slope(x)
        assert value == f(x)
        wanted = (f(x + 1e-6) - f(x - 1e-6)) / 2e-6 if x else at_0
        assert gradient == pytest.approx(wanted, rel=1e-6)
