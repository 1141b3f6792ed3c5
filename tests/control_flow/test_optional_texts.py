"""Texts that are None, or made of numbers of the run, as values say so: one program, and Python's texts behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.testing import check_grads

POINTS = (1.2, 2.5, -0.5, -2.0, 4.0)


class Solver:
    """Says what was wrong, as solvers do."""

    message: str | None = None

    def run(self, x: Any) -> Any:
        self.message = None
        y = x * x - 1.0
        if y < 0.0:
            self.message = "no root"
            return y
        if y > 5.0:
            self.message = "the root {:.2f} is large".format(y)  # noqa: UP032
        elif x < -1.5:
            self.message = f"{x} is below {y:.1f}" + "!"
        return np.exp(0.1 * y) * x


def noted(solver: Solver) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        return solver.run(x)

    return f


def asked(x: Any) -> Any:
    solver = Solver()
    y = solver.run(x)
    note = None if x > 0 else "low"
    if not note and x < 3.0:
        y = y * 2.0
    if solver.message is None:
        return y + x
    return y * (3.0 if note == "low" else 1.0)


def truth(x: Any) -> Any:
    error = ""
    if x < 0:
        error = "negative"
    elif x > 3:
        error = None
    y = x * x if error else 3.0 * x
    return y * (2.0 if error is None else 1.0) if error != "negative" or x < -1 else -y


def in_a_loop(x: Any) -> Any:
    best, top = None, -np.inf
    for k in range(40):
        v = np.sin(x * k)
        if v > top:
            top, best = v, "even" if k % 2 == 0 else "odd"
    return top if best == "even" else 2.0 * top


PROGRAMS = (noted(Solver()), asked, truth, in_a_loop)


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("f", PROGRAMS, ids=["noted", "asked", "truth", "in_a_loop"])
def test_they_are_one_program(f: Callable[[Any], Any], backend: str) -> None:
    slope = sg.value_and_grad(f, backend=backend)
    for x in POINTS:
        value, found = slope(x)
        np.testing.assert_allclose(value, f(x), rtol=1e-12)
        np.testing.assert_allclose(found, (f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rtol=1e-5)
        check_grads(f, (x,), order=1)
    assert sg.explain(slope)(1.0)["how it runs"].startswith("One program")


def test_the_object_has_pythons_text_after_each_call() -> None:
    ours, plain = Solver(), Solver()
    transformed = [sg.grad(noted(ours)), sg.jit(noted(ours)), sg.grad(noted(ours), backend="numpy")]
    seen = set()
    for x in (*POINTS, *POINTS):
        plain.run(x)
        for run in transformed:
            ours.message = "before"
            run(x)
            assert ours.message == plain.message
            assert type(ours.message) is type(plain.message)
        seen.add(plain.message)
    assert len(seen) == 5


def test_a_text_of_a_block_within_a_block_says_its_own_numbers() -> None:
    kept: list[Any] = []

    def f(x: Any, y: Any) -> Any:
        note = f"first {x:.1f}"
        if x > 0:
            z = x * y
            if y > 1:
                note = f"{z:.2f} of {x} and {y}"
            elif y < -1:
                note = note + f", then {y}"
            z = z + 1.0
        else:
            note = None if y > 1 else note
        if x * y > 8:
            note = f"{x * y}"
        kept.append(note)
        return x * y

    run, plain = sg.grad(f), []
    points = [(x, y) for x in (1.5, -2.0, 4.0) for y in (0.5, 2.5, -3.0)]
    for x, y in points:
        run(x, y)
    ours, kept = kept, plain
    for x, y in points:
        f(x, y)
    assert ours == plain
    assert len(set(plain)) == 8
    assert sg.explain(run)(1.5, 0.5)["how it runs"].startswith("One program")


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_what_no_table_holds_of_a_text_is_pythons() -> None:
    def f(x: Any) -> Any:
        note = f"{x:.1f}" if x > 0 else None
        if note is not None and len(note) > 3:
            return 2.0 * x
        return x if note != "1.0" else 5.0 * x

    for x in (1.0, 2.5, -0.5, 12.0):
        np.testing.assert_allclose(sg.grad(f)(x), {1.0: 5.0, 12.0: 2.0}.get(x, 1.0))
