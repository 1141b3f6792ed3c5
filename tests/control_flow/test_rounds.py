"""A loop inside of a loop begins, in each round of that, with what it handed on in the round before."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.lowering import lower
from srcgrad.tracing.conversion import loop_regions, loops, rounds
from srcgrad.tracing.conversion.carries import Carry
from srcgrad.tracing.conversion.state import kind_beneath

pytestmark = pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
POINT = np.array([0.3, 0.7, -0.4, 1.1])


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The trips that are traced."""
    found: list[str] = []
    begin = loop_regions.Trip.__init__

    def watched(self: Any, loop: Any, label: str, indexed: bool) -> None:
        begin(self, loop, label, indexed)
        found.append(label)

    monkeypatch.setattr(loop_regions.Trip, "__init__", watched)
    return found


def trace(f: Callable[..., Any], *args: Any) -> list[str]:
    """Trace a function; what became of its loops."""
    lower(sg.jit(f), args, {})
    return [line for line in sg.explain(sg.jit(f))(*args)["how it runs"].splitlines() if "The loop" in line]


def differences(f: Callable[[Any], Any], x: Any) -> Any:
    return np.array([(f(x + 1e-6 * d) - f(x - 1e-6 * d)) / 2e-6 for d in np.eye(len(x))])


def check(f: Callable[[Any], Any], x: Any = POINT) -> None:
    value, slope = sg.value_and_grad(f)(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-11)
    np.testing.assert_allclose(slope, differences(f, x), rtol=1e-6, atol=1e-7)


def nested(depth: int) -> Callable[[Any], Any]:
    """Long loops in each other, of which the innermost uses a variable of its own."""
    lines = ["def f(x):", "    total = 0.0"]
    lines += [f"{'    ' * (k + 1)}for i{k} in range(17):" for k in range(depth)]
    inner = "    " * (depth + 1)
    names = " + ".join(f"i{k}" for k in range(depth))
    lines += [f"{inner}part = np.sin(x[0] * ({names}))", f"{inner}total = total + part * x[1]", "    return total"]
    return made(f"<loops {depth} deep>", lines)


def made(file: str, lines: list[str]) -> Callable[[Any], Any]:
    scope: dict[str, Any] = {"np": np}
    text = "\n".join(lines)
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), scope)
    return scope["f"]  # type: ignore[no-any-return]


def test_what_is_traced_does_not_double_with_each_loop_around(trips: list[str]) -> None:
    counts = []
    for depth in (2, 4, 6):
        trips.clear()
        lower(sg.jit(nested(depth)), (POINT,), {})
        counts.append(len(trips))
    assert counts[1] < 2 * 4**2 and counts[2] < 2 * 6**2


def assigned_on_a_path(depth: int) -> Callable[[Any], Any]:
    """Long loops in each other, of which the innermost assigns arrays where a number of the loops says so."""
    lines = ["def f(x):", "    total = 0.0"]
    lines += [f"{'    ' * (k + 1)}for i{k} in range(17):" for k in range(depth)]
    inner = "    " * (depth + 1)
    lines += [f"{inner}if i0 >= i{depth - 1}:", f"{inner}    part = np.sin(x * i0)", f"{inner}    other = part * x[1]"]
    lines += [f"{inner}    total = total + np.sum(other * part)", "    return total * 1e-3"]
    return made(f"<paths {depth} deep>", lines)


def test_arrays_assigned_on_a_path_do_not_double_what_is_traced(trips: list[str]) -> None:
    """What memory they may share at the start is known before a loop that is met again is traced."""
    counts = []
    for depth in (2, 4, 6):
        trips.clear()
        lower(sg.jit(assigned_on_a_path(depth)), (POINT,), {})
        counts.append(len(trips))
    assert counts[1] < 2 * 4**2 and counts[2] < 2 * 6**2
    check(assigned_on_a_path(3))


def test_functions_whose_loops_assign_on_a_path_do_not_double_what_is_traced(trips: list[str]) -> None:
    """Their variables are unbound before the loop, in each round of the one around."""

    def inner(x: Any, depth: int) -> Any:
        total = 0.0
        for i in range(17):
            if i > 3:
                here = np.sin(x * i)
                total = total + np.sum(here)
            total = total + (inner(x, depth - 1) if depth else 0.0)
        return total * 1e-2

    counts = []
    for depth in range(5):
        trips.clear()
        lower(sg.jit(lambda x, depth=depth: inner(x, depth)), (POINT,), {})
        counts.append(len(trips))
    assert counts[4] < 2 * 5**2
    check(lambda x: inner(x, 1))


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_arrays_assigned_on_a_path_and_read_behind(backend: str) -> None:
    def f(x: Any, bound: int = 3) -> Any:
        total = np.zeros(4)
        kept = x
        for k in range(18):
            for i in range(19):
                if i - k > bound:
                    here = np.sin(x * i + k)
                    kept = here if i % 2 else kept
                    here += 0.1 * x
                total += kept * k
        return np.sum(total * here)

    value, slope = sg.value_and_grad(f, backend=backend)(POINT)
    np.testing.assert_allclose(value, f(POINT), rtol=1e-11)
    np.testing.assert_allclose(slope, differences(f, POINT), rtol=1e-6)
    with pytest.raises(UnboundLocalError):
        sg.jit(f, backend=backend)(POINT, 30)


def test_values_and_derivatives_of_deep_loops() -> None:
    f = nested(3)
    value, slope = sg.value_and_grad(f)(POINT)
    np.testing.assert_allclose(value, f(POINT), rtol=1e-10)
    np.testing.assert_allclose(slope, differences(f, POINT), rtol=1e-5, atol=1e-4)


def test_a_loop_that_is_met_again_in_trips_that_are_written_out(trips: list[str]) -> None:
    """Rows of lengths of their own: the outer loop is no region, and its inner ones hand on the same."""

    def f(x: Any) -> Any:
        total = 0.0
        for k in range(20):
            row = rows[k]
            for i in range(20):
                total = total + np.sin(x[0] * i) * row.sum() * x[1]
        return total / 1e4

    rows = [np.ones(k + 1) for k in range(20)]

    said = trace(f, POINT)
    assert sum("one region" in line for line in said) >= 20
    trips.clear()
    lower(sg.jit(f), (POINT,), {})
    assert len(trips) < 30
    check(f)


def test_memory_that_is_another_one_in_each_round(trips: list[str]) -> None:
    def f(x: Any) -> Any:
        state = x * 1.0
        for k in range(20):
            new = np.zeros(4)
            for i in range(17):
                new[i % 4] += np.sin(state[i % 4] * k) * x[1]
            for i in range(18):
                state[i % 4] = state[i % 4] * 0.5 + new[(i + 1) % 4] * 0.01
        return np.sum(state)

    lower(sg.jit(f), (POINT,), {})
    assert len(trips) <= 3 + 2 * (2 + 1 + 1)
    check(f)


def test_a_loop_that_turns_out_to_hand_on_less() -> None:
    """From the second trip on the inner loop leaves what it handed on in the first round as it is."""

    def f(x: Any) -> Any:
        scale, first, total = 1.0, True, 0.0
        for k in range(20):
            for i in range(17):
                if first:
                    scale = scale + x[1] * 0.1
                total = total + np.sin(x[0] * i) * scale * k
            first = False
        return total

    check(f)
    check(lambda x: f(x) * 1e-3)


def test_a_wider_kind_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Carries that are more than a loop needs would make a number of Python's one that NumPy promotes."""
    widened = []
    again = rounds.Carried.again

    def widen(self: Any, name: str, start: Any) -> Any:
        carry = again(self, name, start)
        if carry is not None and name == "y":
            carry.kinds = [kind._replace(weak=False) for kind in carry.kinds]
            widened.append(name)
        return carry

    def f(x: Any) -> Any:
        y, total = 1.5, 0.0
        for k in range(20):
            for i in range(17):
                total = total + y
                y = 0.25 * i + k
        return x * y

    x = POINT.astype(np.float32)
    monkeypatch.setattr(rounds.Carried, "again", widen)
    assert sg.jit(f)(x).dtype == f(x).dtype == np.float32 and widened


def test_what_is_carried_needlessly_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A number that Python knows would not be known any longer."""
    kept: list[Any] = []
    begin = rounds.Settled.begin

    def more(self: Any, loop: Any, alike: bool) -> bool:
        found = begin(self, loop, alike)
        cells = loop.start.cells()
        for cell, name in enumerate(loop.names):
            if name == "n" and type(cells[cell]) is float:
                loop.carries[cell] = Carry("n", None, [kind_beneath(cells[cell])])
                kept.append(cell)
        return found

    def f(x: Any, grows: bool = False) -> Any:
        n, total = 3.0, 0.0
        for _ in range(20):
            for i in range(17):
                if grows:
                    n = n + 1.0
                total = total + np.sin(x[0] * i)
        return total + np.sum(np.ones(int(n)))

    def carried(f: Any) -> list[int]:
        walked = lower(sg.jit(f), (POINT,), {}).traced.walk()
        return [operation.attrs["carries"] for operation in walked if operation.op.name == "for"]

    before = carried(f)
    monkeypatch.setattr(rounds.Settled, "begin", more)
    assert carried(f) == before and kept


def test_variables_that_are_none_lost_or_unbound() -> None:
    def f(x: Any) -> Any:
        best, total = None, 0.0
        for k in range(20):
            kind = range(k + 1)
            for i in range(17):
                here = np.sin(x[0] * i + k) * x[1]
                if i % 2 == 0:
                    odd = here * x[2]
                best = here if best is None else np.maximum(best, here)
                total = total + here * len(kind) if i == 3 else total + odd
        return total + best

    check(f)


def test_whiles_in_loops(trips: list[str]) -> None:
    def f(x: Any) -> Any:
        total = 0.0
        for k in range(20):
            y, n = x[1] + 0.1 * k, 0
            while np.abs(y * y - x[0]) > 1e-12 and n < 60:
                y = 0.5 * (y + x[0] / y)
                n += 1
            total = total + y * (1 + k)
        return total

    trace(f, POINT)
    check(f)


def test_a_loop_in_a_function_that_is_called_twice() -> None:
    def power(x: Any, n: int) -> Any:
        y = 1.0
        for _ in range(n):
            y = y * x
        return y

    def f(x: Any) -> Any:
        total = 0.0
        for k in range(20):
            total = total + power(x[0], 17) * k + power(x[:2], 18).sum() + power(x[1], 17)
        return total

    check(f)


def test_a_region_of_short_loops_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the later rounds of a loop around it is known that there is much to write out."""
    tried = []
    begun = loops.Outermost.begun

    def counted(self: Any, items: Any, item: Any, body: Any) -> bool:
        tried.append(item)
        return begun(self, items, item, body)

    def f(x: Any) -> Any:
        total = 0.0
        for a in range(10):
            for b in range(10):
                for c in range(10):
                    for d in range(10):
                        total = total + np.sin(x[0] * a + b * c) * x[1] * np.cos(x[1] * d)
        return total

    monkeypatch.setattr(loops.Outermost, "begun", counted)
    lower(sg.jit(f), (POINT,), {})
    assert len(tried) <= 9


def test_a_loop_begins_in_vain_once(monkeypatch: pytest.MonkeyPatch, trips: list[str]) -> None:
    def f(x: Any) -> Any:
        total = 0.0
        for a in range(17):
            for b in range(18):
                for c in range(19):
                    total = total + np.sin(x[0] * a + b) * c
        return total * 1e-3

    monkeypatch.setattr(rounds.Beginning, "needed", lambda *args: False)
    lower(sg.jit(f), (POINT,), {})
    assert len(trips) <= 30
    check(f)
