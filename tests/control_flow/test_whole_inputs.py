"""Paths that ask for many elements of an array of integers: one question for all of it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad import paths

ROWS = 70


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[list[Any]]]:
    """The questions of each path that is traced; a re-trace at each call is an error."""
    sg.clear_caches()
    found: list[list[Any]] = []
    traced = paths.trace_path

    def counted(transformed: Any, job: Any, entry: Any) -> Any:
        made = traced(transformed, job, entry)
        found.append(list(made[1]))
        return made

    monkeypatch.setattr(paths, "trace_path", counted)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        yield found
    sg.clear_caches()


def require_slope(f: Any, x: Any, slope: Any) -> None:
    """Compare a gradient with differences, in one direction."""
    step, d = 1e-6, np.random.default_rng(7).normal(size=x.shape)
    expected = (f(x + step * d) - f(x - step * d)) / (2 * step)
    np.testing.assert_allclose(slope @ d, expected, rtol=1e-6, atol=1e-8)


def starts(seed: int) -> Any:
    return np.concatenate([[0], np.cumsum(np.random.default_rng(seed).integers(2, 5, ROWS))])


def largest(x: Any) -> Any:
    return np.sort(x)[-1]


def by_rows(ptr: Any, x: Any) -> Any:
    return sum(largest(x[ptr[i] : ptr[i + 1]]) ** 2 for i in range(ROWS))


def edges_first(ptr: Any, x: Any) -> Any:
    total = 0.0
    for first, last in zip(ptr[:-1], ptr[1:], strict=True):  # noqa: RUF007
        total = total + largest(np.sin(x[first:last]))
    return total


def counted_from_one(ptr: Any, x: Any) -> Any:
    return sum(largest(x[ptr[i] + 1 - 1 : ptr[i + 1] - 0]) * (i % 5) for i in range(ROWS))


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", [by_rows, edges_first, counted_from_one])
def test_many_elements_of_an_integer_array_are_one_question(f: Any, backend: str, asked: list[list[Any]]) -> None:
    """Each was a question, and with more than 64 each call was traced again."""
    g = sg.value_and_grad(f, argnums=1, backend=backend)
    one, other = starts(0), starts(1)
    x = np.random.default_rng(2).normal(size=max(one[-1], other[-1]))
    for ptr in (one, one.copy(), other, one):
        value, slope = g(ptr, x)
        np.testing.assert_allclose(value, f(ptr, x), rtol=1e-12)
        require_slope(lambda x, p=ptr: f(p, x), x, slope)
    np.testing.assert_allclose(sg.jvp(lambda x: f(one, x), (x,), (x,))[1], g(one, x)[1] @ x, rtol=1e-10)
    assert [len(path) for path in asked] == [1, 1, 1]
    assert all(path[0].answer.shape == (ROWS + 1,) for path in asked)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_a_captured_integer_array_that_changes_is_another_path(backend: str, asked: list[list[Any]]) -> None:
    ptr = starts(0)
    x = np.random.default_rng(2).normal(size=int(ptr[-1]))

    def f(x: Any) -> Any:
        return sum(largest(x[ptr[i] : ptr[i + 1]]) ** 2 for i in range(ROWS))

    g = sg.grad(f, backend=backend)
    require_slope(f, x, g(x))
    ptr[ROWS // 2] -= 1
    require_slope(f, x, g(x))
    ptr[ROWS // 2] += 1
    require_slope(f, x, g(x))
    assert len(asked) == 2


TREE = """
def f(parents, x):
    total = [v for v in x]
    for k in range(len(parents) - 1, -1, -1):
        if parents[k] >= 0:
            total[parents[k]] = total[parents[k]] + np.tanh(total[k])
    return total[0] ** 2
"""
"""Without source; Python asks for a truth value and an index of each node."""


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_what_follows_from_an_array_that_was_asked_for_is_no_question(backend: str, asked: list[list[Any]]) -> None:
    parents = np.array([-1, *np.random.default_rng(3).integers(0, np.arange(1, 90))])
    x = np.random.default_rng(4).normal(size=90)
    made: dict[str, Any] = {"np": np}
    exec(TREE, made)
    slope = sg.grad(made["f"], argnums=1, backend=backend)(parents, x)
    require_slope(lambda x: made["f"](parents, x), x, slope)
    assert [len(path) for path in asked] == [1]


def test_a_few_elements_are_asked_for_one_by_one(asked: list[list[Any]]) -> None:
    """So that what the others are makes no other path."""

    def f(k: Any, x: Any) -> Any:
        return largest(x[k[0] : k[1]])

    g, x = sg.grad(f, argnums=1), np.arange(9.0)
    for rest in range(12):
        assert np.array_equal(g(np.array([2, 5, rest]), x), np.arange(9) == 4)
    assert len(asked) == 1


def test_what_is_asked_for_in_part_is_no_question_any_more(asked: list[list[Any]]) -> None:
    """Of 21 elements, for which there would be room."""
    ptr = starts(0)[:21]

    def f(ptr: Any, x: Any) -> Any:
        return sum(largest(x[ptr[i] : ptr[i + 1]]) for i in range(20))

    x = np.random.default_rng(2).normal(size=ptr[-1])
    require_slope(lambda x: f(ptr, x), x, sg.grad(f, argnums=1)(ptr, x))
    assert [len(path) for path in asked] == [1]


def test_questions_that_are_not_elements_ask_for_the_whole_at_the_limit(asked: list[list[Any]]) -> None:
    """Sums, which are many, as long as there is room for them."""
    made: dict[str, Any] = {"np": np}
    text = (
        "def f(k, x):\n    for i in range(COUNT):\n        x = x * 0.9 if np.sum(k[i:]) > 3 else x + k[i]\n    return x"
    )
    for count, questions in ((50, 50), (90, 1)):
        exec(text.replace("COUNT", str(count)), made)
        k = np.random.default_rng(6).integers(-3, 4, 90)
        value, slope = sg.value_and_grad(made["f"], argnums=1)(k, 1.5)
        np.testing.assert_allclose(value, made["f"](k, 1.5), rtol=1e-12)
        np.testing.assert_allclose(slope, made["f"](k, 2.5) - made["f"](k, 1.5), rtol=1e-9)
        assert len(asked[-1]) == questions
