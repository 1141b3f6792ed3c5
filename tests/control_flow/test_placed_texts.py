"""Letters of texts at traced places: loops over sequences are one region, and what is asked of a letter is a table."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.control_flow.traced_once import require_one_program

FIRST, SECOND = "GATTACAGATTACAGGCATTCGATCGAT", "GCATGCATTACGATCCGATAGC"
PLACES = {letter: k for k, letter in enumerate("ACGT")}
ALIKE = {"A": "purine", "G": "purine", "C": "other", "T": "other"}
X = np.array([0.3, 0.2, 0.25])


def aligned(x: Any) -> Any:
    n, m = len(FIRST), len(SECOND)
    table = np.zeros((n + 1, m + 1))
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            score = x[0] if FIRST[i - 1] == SECOND[j - 1] else -x[2]
            skipped = np.logaddexp(table[i - 1, j] - x[1], table[i, j - 1] - x[1])
            table[i, j] = np.logaddexp(table[i - 1, j - 1] + score, skipped)
    return table[n, m]


def substituted(x: Any) -> Any:
    rates = np.arange(16.0).reshape(4, 4) * x[0] + x[1]
    total = 0.0
    for k in range(len(FIRST) - 1):
        total = total * 0.9 + np.sin(rates[PLACES[FIRST[k]], PLACES[FIRST[k + 1]]] + total)
    return total


def emitted(x: Any) -> Any:
    """Values of a dict, parts of texts, methods and places, in nested loops."""
    chances = {"A": x[0], "C": x[1], "G": x[2], "T": 1 - x[0] - x[1] - x[2]}
    total = 0.0
    for _ in range(20):
        for k in range(len(FIRST)):
            letter = FIRST[k]
            total = 0.9 * total + chances[letter] * ("ACGT".index(letter) + 1)
            if letter in "GC" or letter.lower() == "t":
                total += 0.1 * x[0]
            if ALIKE[letter] == "purine" and letter < "B" and letter != FIRST[k - 1]:
                total *= x[1] + 0.5
            if letter not in {"A", "N"} and PLACES.get(letter, 9) != 9:
                total -= 0.01 * x[2]
            if isinstance(letter, str) and len(letter) == 1 and (letter + "A") in ("AA", "CA") and "X" not in ALIKE:
                total += 0.02
    return total


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("function", [aligned, substituted, emitted])
def test_loops_over_sequences_are_one_region(function: Callable[..., Any], backend: str) -> None:
    require_one_program(function, backend, X, np.array([0.5, 0.1, 0.15]))
    shown = str(sg.explain(sg.jit(function, backend=backend))(X))
    assert "one region" in shown
    assert "unrolled" not in shown


def kept(x: Any) -> Any:
    letter, total = "A", 0.0
    for k in range(60):
        if k % 3 == 0:
            letter = FIRST[k % len(FIRST)]
        total = total * x[0] + (x[1] if letter == "A" else x[2])
    return total


def joined(x: Any) -> Any:
    words, total = [], 0.0
    for k in range(len(FIRST) - 2):
        words.append(FIRST[k] + FIRST[k + 1])
        total += x[0] * words.count(words[-1])
    return total


def put_together(x: Any) -> Any:
    total, seen = 0.0, set()
    for k in range(len(FIRST) - 2):
        word = "".join(FIRST[k + i] for i in range(2))
        seen.add(FIRST[k])
        total += x[0] * (word == "TA") + x[1] * (FIRST[k] is FIRST[k]) + x[2] * ("%s!" % FIRST[k] == "A!")  # noqa: UP031
    return total * len(seen)


def shown_again(x: Any) -> Any:
    total = 0.0
    for k in range(len(FIRST)):
        letter = FIRST[k]
        total += x[0] * len(f"{letter}{k}") + x[1] * ["C", "A", "G", "T"].index(letter) ** 2
    return total * (2.0 if letter == "T" else 1.0)


def far(x: Any) -> Any:
    total = 0.0
    for k in range(20):
        total += x[0] if FIRST[k + 20] == "A" else x[1]
    return total


@pytest.mark.parametrize("function", [kept, joined, put_together, shown_again])
def test_what_no_table_holds_is_right_all_the_same(function: Callable[..., Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        value, slope = sg.value_and_grad(function)(X)
    np.testing.assert_allclose(value, function(X), rtol=1e-12)
    steps = 1e-6 * np.eye(3)
    np.testing.assert_allclose(slope, [(function(X + e) - function(X - e)) / 2e-6 for e in steps], rtol=1e-6)


def test_a_truth_value_is_a_place() -> None:
    slope = sg.grad(lambda t: t * 2 if "ab"[t > 0.5] == "b" else t * 3)
    assert (slope(0.7), slope(0.2)) == (2.0, 3.0)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_a_place_behind_the_end_is_an_error(backend: str) -> None:
    with pytest.raises(IndexError):
        far(X)
    with pytest.raises(IndexError):
        sg.grad(far, backend=backend)(X)
