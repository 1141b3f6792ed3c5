"""Variables that are None or have a value, depending on traced values: a flag says which, and the program stays one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.control_flow.sliced import Function, check, on_backends

POINT = np.array([0.7, -0.4, 1.1, 0.3])
ONE_PROGRAM = pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")


def last_large(x: Any) -> Any:
    found = None
    for k in range(60):
        y = np.sin(x[0] * k)
        if y > 0.5:
            found = y * x[1]
    return x[2] if found is None else found * x[2]


def best_of(x: Any) -> Any:
    """A number and an array, of which Python knows that they are set where the one is less than infinite."""
    best, place, seen = np.inf, None, []
    for k in range(60):
        p = np.sin(x * k)
        value = np.sum((p - 0.3) ** 2)
        if value < best:
            best, place = value, p
        seen.append(best)
    return best + np.sum(place * x) + seen[30]


def set_and_given_up(x: Any) -> Any:
    """It is None again on a condition; others hold what it is."""
    held, kept, total = None, None, 0.0
    for k in range(60):
        y = np.cos(x[0] * k) * x[1]
        if held is None:
            held = y
        elif held > y:
            held = None
        total = total + (0.1 if held is None else held**2)
        kept = held
    return total + (kept * x[3] if kept is not None else x[2] ** 2)


def in_containers(x: Any) -> Any:
    record, table = SimpleNamespace(best=None), {"last": None, "all": 0.0}
    for k in range(60):
        y = np.sin(x[0] * k) + x[1]
        if record.best is None or y < record.best:
            record.best = y
        if y > 0.2:
            table["last"] = y * x[2]
        table["all"] += y
    return record.best * table["all"] + (table["last"] if table["last"] is not None else 1.0)


def search(x: Any, level: Any) -> Any:
    for k in range(60):
        y = x[0] * k
        if y > level:
            return y
    return None


def found_by_functions(x: Any) -> Any:
    first, second = search(x, 5.0), search(x, 1000.0)
    third = x[2] if x[1] > 0 else None
    return (0.0 if first is None else first**2) + (x[3] if second is None else second) + (third or x[0])


def before_a_while(x: Any) -> Any:
    last, y = None, 1.0 + x[0] ** 2
    while y < 20.0:
        y = y * 1.5 + (x[1] ** 2 if last is None else last * 0.1)
        if y > 3.0:
            last = y
    return y * x[2] + (last if last is not None else 0.0)


def as_truth(x: Any) -> Any:
    """None is false, as 0 is."""
    a = x[0] if x[0] > 0 else None
    b = x[1] if x[1] > 0 else None
    c = x[0] - x[0] if x[0] > 0 else None
    total = (2.0 if a else 3.0) * x[2] + (5.0 if b else 7.0) * x[3] + (11.0 if not c else 13.0) * x[2]
    return total + (a and x[3]) + (b or x[2]) + (1.0 if bool(b) or bool(a) else 2.0)


def changed_in_place(x: Any) -> Any:
    """The array that the variable may be."""
    held = None
    for k in range(30):
        y = np.sin(x * k)
        if y[0] > 0.9:
            held = y
    if held is not None:
        held[0] = 2.0 * x[1]
        held += x
    return x if held is None else held


def late(x: Any) -> Any:
    """It is None for many trips."""
    found = None
    for k in range(60):
        y = np.sin(x[0] * k)
        if k > 20 and y > 0.5:
            found = y * x[1]
    return x[2] if found is None else found * x[2]


CASES = [
    (f, POINT)
    for f in (
        last_large, best_of, set_and_given_up, in_containers, found_by_functions, before_a_while, as_truth,
        late,
    )
]  # fmt: skip


@ONE_PROGRAM
@pytest.mark.parametrize(("f", "x", "backend"), on_backends(CASES, (last_large,)))
def test_values_and_derivatives(f: Function, x: Any, backend: str) -> None:
    check(f, x, backend, rtol=1e-6)


@ONE_PROGRAM
@pytest.mark.parametrize("f", [f for f, _ in CASES], ids=lambda f: f.__name__)
def test_it_is_one_program(f: Function) -> None:
    run = sg.jit(f)
    for x in (POINT, -POINT, 0.0 * POINT + 0.1):
        try:
            expected = f(x)
        except TypeError:
            with pytest.raises(TypeError, match="is None"):
                run(x)
            continue
        np.testing.assert_allclose(run(x), expected, rtol=1e-12)
    assert sg.explain(run)(POINT)["how it runs"].startswith("One program")


@ONE_PROGRAM
def test_none_is_no_number() -> None:
    def f(x: Any) -> Any:
        found = None
        for k in range(30):
            if x * k > 10.0:
                found = x * k
        return found * 2.0  # type: ignore[operator]

    run, slope = sg.jit(f), sg.grad(f)
    assert run(1.0) == 58.0 and slope(1.0) == 58.0
    for call in (run, slope):
        with pytest.raises(TypeError, match="'found' is None"):
            call(0.1)


@ONE_PROGRAM
def test_batches_and_second_derivatives() -> None:
    np.testing.assert_allclose(sg.vmap(last_large)(np.stack([POINT, -POINT])), [last_large(POINT), last_large(-POINT)])
    slope = sg.grad(lambda x: np.sum(best_of(x) ** 2))
    direction = np.array([1.0, -1.0, 0.5, 2.0])
    difference = (slope(POINT + 1e-6 * direction) - slope(POINT - 1e-6 * direction)) / 2e-6
    np.testing.assert_allclose(sg.jvp(slope, (POINT,), (direction,))[1], difference, rtol=1e-6)


def returned(x: Any) -> Any:
    return x[0] if x[1] > 0 else None


def in_a_list(x: Any) -> Any:
    found, seen = None, []
    for k in range(20):
        if x[0] * k > 10.0:
            found = x[0] * k
        seen.append(found)
    return sum(1.0 for s in seen if s is None) * x[0]


def in_a_text(x: Any) -> Any:
    found = x[0] if x[1] > 0 else None
    return x[2] * len(f"{found!r:<5.4}")


def by_kind(x: Any) -> Any:
    found = x[0] if x[1] > 0 else None
    return x[2] if isinstance(found, float) else x[3]


def tried(x: Any) -> Any:
    found = x[0] if x[1] > 0 else None
    try:
        return found * 2.0
    except TypeError:
        return x[3]


def same_one(x: Any) -> Any:
    found = x[0] if x[1] > 0 else None
    other = found
    return x[2] if other is found and found is not x else x[3]


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize(
    "f", [returned, in_a_list, in_a_text, by_kind, tried, same_one, changed_in_place], ids=lambda f: f.__name__
)
def test_other_uses_are_as_in_python(f: Function) -> None:
    run = sg.jit(f)
    for x in (POINT, -POINT, 30 * POINT):
        expected, found = f(x.copy()), run(x.copy())
        assert (expected is None) == (found is None)
        if expected is not None:
            np.testing.assert_allclose(found, expected, rtol=1e-12)
