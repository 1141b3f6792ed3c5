"""Texts that values choose are one of a few: machines with named states are one program, and their loops one region."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

X = np.cos(np.linspace(0.1, 12.0, 40))
POINTS = (X, np.sin(1.3 * np.linspace(0.5, 9.0, 40)), -0.3 * X)
RATES = {"idle": 0.1, "run": 1.0, "stop": -0.5}


def machine(x: Any) -> Any:
    state, total, waited = "idle", 0.0, 0
    for k in range(len(x)):
        if state == "idle":
            if x[k] > 0.3:
                state = "run"
        elif state == "run":
            total += x[k] ** 2
            if x[k] < -0.2:
                state = "stop"
        else:
            waited += 1
            if waited > 5:
                state, waited = "idle", 0
        total += RATES[state] * x[k]
    return total if state != "stop" else 2.0 * total


def matched(x: Any) -> Any:
    mode, total = "a", 0.0
    for v in x:
        match mode:
            case "a":
                total += v
                mode = "b" if v < 0 else "a"
            case "b":
                total -= v * v
                if v > 0.5:
                    mode = "c"
            case _:
                total *= 0.9
                mode = "a"
    return total


class Switch:
    def __init__(self) -> None:
        self.state, self.energy = "off", 0.0

    def step(self, u: Any) -> None:
        if self.state == "off":
            self.state = "on" if u > 0.4 else "off"
        else:
            self.energy += u * u
            if u < -0.4:
                self.state = "off"


def in_an_attribute(x: Any) -> Any:
    switch = Switch()
    for u in x:
        switch.step(u)
    return switch.energy * (2.0 if switch.state == "on" else 1.0)


def ending_a_while(x: Any) -> Any:
    y, state, count = 5.0 + x[0], "far", 0
    while state != "done":
        y, count = 0.7 * y, count + 1
        if y < 0.1:
            state = "done"
        elif y < 1.0:
            state = "near"
    return y * count


def returned(x: Any) -> Any:
    def kind(v: Any) -> str:
        if v > 0.5:
            return "big"
        if v < -0.5:
            return "small"
        return "middle"

    weights = {"big": 1.0, "small": 2.0, "middle": 0.0}
    return sum(weights[kind(v)] * v for v in x)


def asked(x: Any) -> Any:
    """Joined with others, compared, measured, looked for; kept in lists."""
    name = "pos" if x[0] > 0 else "neg"
    if x[1] > 0.5:
        name += "itive"
    labels = ["up" if v > 0 else "down" for v in x[:5]]
    labels.append(name)
    total = x[0] * len(name) + (x[1] if name.startswith("pos") else 2.0 * x[2])
    for label, v in zip(labels, x, strict=False):
        if label in ("up", "pos", "positive") and label != "neg":
            total += v * v
    return total


def counted_by(x: Any) -> Any:
    sums, counts = {"p": 0.0, "n": 0.0}, {"p": 0, "n": 0}
    for v in x:
        key = "p" if v > 0 else "n"
        sums[key] += v * math.sin(v)
        counts[key] = counts[key] + 1
    return sums["p"] * sums["n"] + x[0] * counts["p"] / (1 + counts["n"])


def by_whole_numbers(x: Any) -> Any:
    bins = {k: 0.1 * k for k in range(-3, 4)}
    for v in x:
        bins[int(v // 0.5)] += v * v
    return sum((k + 4) * value**2 for k, value in enumerate(bins.values()))


def arrays_by_texts(x: Any) -> Any:
    sums = {"p": np.zeros(2), "n": np.ones(2)}
    view = sums["p"]
    for k in range(20):
        sums["p" if x[k] > 0 else "n"] += x[k : k + 2]
    return np.sum(sums["p"] * sums["n"]) + view[0]


PROGRAMS = (
    machine,
    matched,
    in_an_attribute,
    ending_a_while,
    returned,
    asked,
    counted_by,
    by_whole_numbers,
    arrays_by_texts,
)


CASES = [(f, backend) for f in PROGRAMS for backend in ("llvm", "numpy")] + [(machine, "xla"), (asked, "xla")]


@pytest.mark.parametrize(("f", "backend"), CASES, ids=lambda case: getattr(case, "__name__", case))
def test_they_are_one_program(f: Callable[[Any], Any], backend: str) -> None:
    slope = sg.value_and_grad(f, backend=backend)
    for x in POINTS:
        apart = [(f(x + 1e-6 * e) - f(x - 1e-6 * e)) / 2e-6 for e in np.eye(40)]
        value, found = slope(x.copy())
        np.testing.assert_allclose(value, f(x.copy()), rtol=1e-12)
        np.testing.assert_allclose(found, apart, rtol=1e-5, atol=1e-7)
    assert sg.explain(slope)(X)["how it runs"].startswith("One program")


@pytest.mark.parametrize("f", [machine, matched, in_an_attribute, counted_by, by_whole_numbers])
def test_their_loops_are_one_region(f: Callable[[Any], Any]) -> None:
    assert len(sg.explain(f)(X)["ir"].splitlines()) < 120


@pytest.mark.parametrize("f", [machine, in_an_attribute])
def test_second_derivatives_and_batches_of_them(f: Callable[[Any], Any]) -> None:
    points = np.stack(POINTS)
    np.testing.assert_allclose(sg.hessian(f)(X), sg.jacfwd(sg.grad(f, backend="numpy"))(X), atol=1e-12)
    np.testing.assert_allclose(sg.vmap(f)(points), [f(x) for x in points], rtol=1e-12)
    np.testing.assert_allclose(sg.vmap(sg.grad(f))(points), [sg.grad(f)(x) for x in points], rtol=1e-12)


class Kept:
    state = "none"


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_what_leaves_the_program_is_pythons_text(capsys: pytest.CaptureFixture[str]) -> None:
    kept, seen, held = Kept(), [], {"state": ""}

    def f(x: Any, held: dict[str, str]) -> Any:
        state = "pos" if x[0] > 0 else "neg"
        kept.state = state
        seen.append(state)
        held["state"] = state
        print(state)
        return state, {"all": [state, x.sum()]}

    run = sg.jit(f)
    for x, state in ((X, "pos"), (-X, "neg"), (X, "pos")):
        found = run(x, held)
        assert (found[0], found[1]["all"][0], kept.state, held["state"]) == (state, state, state, state)
        assert {type(found[0]), type(kept.state), type(held["state"])} == {str}
    assert seen == ["pos", "neg", "pos"]
    assert capsys.readouterr().out == "pos\nneg\npos\n"


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_texts_that_get_longer_and_keys_that_are_new_are_right() -> None:
    def longer(x: Any) -> Any:
        path = ""
        for v in x[:20]:
            path = path + ("u" if v > 0 else "d")
        return x[0] * path.count("ud")

    def new(x: Any) -> Any:
        found = {"p": 1.0}
        found["p" if x[0] > 0 else "n"] = x[1]
        return sum(found.values()) * len(found)

    def missing(x: Any) -> Any:
        found = {0: 1.0, 1: 2.0}
        found[int(4.0 * x[0])] += x[1]
        return found[0] * found[1]

    def put(x: Any) -> Any:
        found = {0: 1.0, 1: 2.0}
        found[int(4.0 * x[0])] = x[1]
        return sum(found.values()) * len(found)

    for f in (longer, new, put):
        run = sg.jit(f)
        for x in POINTS:
            np.testing.assert_allclose(run(x), f(x), rtol=1e-12)
    with pytest.raises(KeyError):
        sg.jit(missing)(X)
    np.testing.assert_allclose(sg.grad(missing)(0.2 * X)[:2], [0.0, 2.0])


@pytest.mark.parametrize("trips", [0, 1, 30])
def test_a_loop_that_makes_no_trip_leaves_the_text(trips: int) -> None:
    def f(x: Any, n: int) -> Any:
        state = "a"
        for k in range(n):
            state = "b" if x[0] > k - 0.5 else state
        return x.sum() * (2.0 if state == "b" else 1.0)

    for x in POINTS:
        np.testing.assert_allclose(sg.jit(f)(x, trips), f(x, trips), rtol=1e-12)
