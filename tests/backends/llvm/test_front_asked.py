"""Guards without a form in machine code: Python is asked about these alone, and nothing is stale."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.interpolate
import scipy.sparse

import srcgrad as sg
from srcgrad.transformed import Transformed
from tests.backends.llvm.front_support import needs_machine, served

pytest.importorskip("llvmlite")
from srcgrad import front
from srcgrad.front_asked import Asked

pytestmark = needs_machine
NODES = np.arange(5.0)


class Counting:
    def __init__(self) -> None:
        self.calls = 0
        self.weight = 2.0
        self.order = 2

    def loss(self, x: Any) -> Any:
        self.calls += 1
        return self.weight * np.sum(x**self.order)


@functools.cache
def kept(n: int) -> Any:
    return np.arange(float(n))


COUNTING = Counting()
SPLINES = [scipy.interpolate.CubicSpline(NODES, np.sin(NODES)), scipy.interpolate.make_interp_spline(NODES, NODES**2)]
MATRIX = scipy.sparse.csr_matrix(np.eye(3) * 2.0)
NUMBERED = {k: float(k) for k in range(200)}
PAIRS = {(k, "a"): k for k in range(4)}
GRID = [[0.5 * k, 1.0] for k in range(80)]
KEPT = {"of": kept}
SCALE = 2


def of_a_counter(x: Any) -> Any:
    return COUNTING.loss(x) * SCALE


def of_splines(x: Any) -> Any:
    return np.sum(SPLINES[0](x) * SPLINES[1](x)) * SCALE


def of_a_sparse_matrix(x: Any) -> Any:
    return np.sum((MATRIX @ x) ** 2)


def of_numbered_items(x: Any) -> Any:
    return np.sum(x) * NUMBERED[7] * len(NUMBERED)


def of_pairs(x: Any) -> Any:
    return np.sum(x**2) * PAIRS[2, "a"] * sum(k for k, _ in PAIRS)


def of_a_grid(x: Any) -> Any:
    return np.sum(np.array(GRID)) * np.sum(x**2)


def of_a_cache(x: Any) -> Any:
    return np.sum(KEPT["of"](3) * x**SCALE)


def set_global(name: str, value: Any) -> Callable[[], None]:
    return lambda: globals().update({name: value})


def scaled(array: Any) -> Callable[[], None]:
    def scale() -> None:
        array[...] = array * np.linspace(1.0, 2.0, array.size).reshape(array.shape)

    return scale


CASES: dict[str, tuple[Any, list[Callable[[], Any]]]] = {
    "a counter": (
        of_a_counter,
        [
            lambda: setattr(COUNTING, "weight", 5.0),
            lambda: setattr(COUNTING, "calls", 2.5),
            lambda: setattr(COUNTING, "order", 3),
            set_global("SCALE", 3),
            set_global("COUNTING", Counting()),
            set_global("SCALE", 2),
        ],
    ),
    "splines": (
        of_splines,
        [
            scaled(SPLINES[0].c),
            scaled(SPLINES[1].c),
            lambda: SPLINES[0].x.__setitem__(0, -0.5),
            lambda: setattr(SPLINES[0], "extrapolate", False),
            lambda: SPLINES.reverse(),
            lambda: SPLINES.__setitem__(0, scipy.interpolate.CubicSpline(NODES, NODES)),
            set_global("SCALE", 3),
            set_global("SCALE", 2),
        ],
    ),
    "a sparse matrix": (of_a_sparse_matrix, [scaled(MATRIX.data), lambda: set_global("MATRIX", MATRIX.T * 3.0)()]),
    "numbered items": (
        of_numbered_items,
        [
            lambda: NUMBERED.update({7: 2.5}),
            lambda: NUMBERED.update({777: 1.0}),
            lambda: NUMBERED.pop(777),
            lambda: set_global("NUMBERED", {float(k): v for k, v in NUMBERED.items()})(),
        ],
    ),
    "pairs": (
        of_pairs,
        [
            lambda: PAIRS.update({(2, "a"): 5}),
            lambda: PAIRS.update({(9, "b"): 5}),
            lambda: set_global("PAIRS", {(float(k), a): v for (k, a), v in PAIRS.items()})(),
        ],
    ),
    "a grid": (of_a_grid, [lambda: GRID[3].__setitem__(0, 7.0), lambda: GRID.append([1.0, 2.0])]),
    "a cache": (
        of_a_cache,
        [
            scaled(kept(3)),
            kept.cache_clear,
            set_global("SCALE", 3),
            lambda: KEPT.update(of=lambda n: np.ones(n)),
            lambda: KEPT.update(of=kept),
            set_global("SCALE", 2),
        ],
    ),
}


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("name", CASES)
def test_what_python_is_asked_is_as_it_is_now(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    f, changes = CASES[name]
    made: list[Any] = []
    written = front.written

    def noted(*args: Any, machine_guards: bool, asked: Any = None, **options: Any) -> Any:
        table = written(*args, machine_guards=machine_guards, asked=asked, **options)
        made.append(asked if machine_guards else "bind")
        return table

    monkeypatch.setattr(front, "written", noted)
    run, slope = sg.jit(f), sg.grad(f)
    for change in [lambda: None, *changes]:
        change()
        for shift in 0.01 * np.arange(6):
            x = np.array([0.5, 0.2, 0.7]) + shift
            apart = [(f(x + e) - f(x - e)) / 2e-6 for e in 1e-6 * np.eye(3)]
            assert run(x) == pytest.approx(f(x), rel=1e-12)
            np.testing.assert_allclose(slope(x), apart, rtol=1e-5)
    assert any(isinstance(found, Asked) for found in made) == (name != "pairs")  # whose keys have such a form
    assert "bind" not in made


def test_calls_are_counted_where_python_is_asked() -> None:
    counting = Counting()
    slope = sg.grad(counting.loss)
    for call in range(1, 12):
        slope(np.ones(3))
        assert counting.calls == call


def test_an_object_that_is_handed_to_a_call_is_asked_about() -> None:
    class Model:
        def __init__(self, values: Any) -> None:
            self.spline = scipy.interpolate.CubicSpline(NODES, values)

        def value(self, x: Any) -> Any:
            return np.sum(self.spline(x) ** 2)

    def f(x: Any, model: Any) -> Any:
        return model.value(x)

    slope: Transformed = sg.grad(f)
    models = [Model(np.sin(NODES)), Model(np.cos(NODES)), Model(np.sin(NODES))]
    x = np.array([0.5, 1.2])
    for _ in range(4):
        for model in models:
            for _ in range(5):
                apart = [(f(x + e, model) - f(x - e, model)) / 2e-6 for e in 1e-6 * np.eye(2)]
                np.testing.assert_allclose(slope(x, model), apart, rtol=1e-5)
        models[2].spline.c[...] *= 1.5
    assert served(slope, x, models[0]) is slope
