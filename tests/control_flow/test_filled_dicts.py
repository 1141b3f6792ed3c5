"""Dicts that a loop fills by keys which the number of its trip makes, and loops over what they hold."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.errors import UnsupportedError
from tests.control_flow.sliced import Function, check, on_backends

pytestmark = pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")


def moved(x: Any, k: Any) -> Any:
    return x + 0.02 * np.sin(x[::-1] + 0.1 * k)


def snapshots(x: Any) -> Any:
    """In some trips; the values are added up."""
    kept = {}
    for k in range(200):
        x = moved(x, k)
        if k % 25 == 0:
            kept[k] = x.copy()
    return sum(np.abs(v).max() for v in kept.values()) + kept[50] * len(kept)


def each_trip(x: Any) -> Any:
    """Keys beside the number, items before the loop of which one is replaced, and a long loop over the items."""
    kept = {0: x, 3: x * 2.0, "end": 7.0 * x}
    for k in range(60):
        x = moved(x, k)
        kept[2 * k + 1] = x
    total = 0.0 * x
    for key, v in kept.items():
        if key != "end":
            total += 0.01 * key * v
    return total + list(kept)[1] * kept[3] + kept["end"] + kept[119]


def long_items(x: Any) -> Any:
    kept = {}
    for k in range(60):
        kept[k + 2], x = x[0] * x[1], moved(x, k)
    total = 0.0
    for key, v in kept.items():
        total = total + key * v**2
    for key in kept:
        total = total * (1.0 + 1e-3 * key)
    return total + max(kept.values()) + sum(kept.values())


def same_key(x: Any) -> Any:
    """The last one of a key counts, at the place of the first."""
    kept = {}
    for k in range(40):
        x = moved(x, k)
        kept[k // 20] = x * 1.0
        if k % 10 == 0:
            kept[k % 3] = x.sum()
    return sum((i + 1.0) * v for i, v in enumerate(kept.values())) + kept[2] * list(kept)[2]


def two_dicts(x: Any) -> Any:
    """With a list, and tuples as values."""
    xs, sums, times = {}, {}, []
    for k in range(50):
        t = 0.5 * k
        x = moved(x, t)
        times.append(t)
        xs[t] = (k, x.copy())
        sums[k] = x.sum()
    return sum(sums[k] * xs[t][1] for k, t in enumerate(times[::7])) + xs[24.5][0] * xs[24.5][1]


def settled(x: Any) -> Any:
    """The first trip is another one."""
    last, kept = None, {}
    for k in range(60):
        x = moved(x, k) if last is None else moved(x, k) - 0.1 * last
        last = x
        kept[k] = x.copy()
    return kept[0] + kept[1] * kept[59]


CASES: list[Function] = [snapshots, each_trip, long_items, same_key, two_dicts, settled]
POINT = np.array([0.3, -0.2, 0.5, 0.1, -0.4, 0.2, 0.6])


@pytest.mark.parametrize(("f", "x", "backend"), on_backends([(f, POINT) for f in CASES], [snapshots]))
def test_values_and_derivatives(f: Function, x: Any, backend: str) -> None:
    check(f, x, backend, 1e-6)


@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_the_loops_are_one_region(f: Function) -> None:
    said = sg.explain(sg.grad(lambda x: np.sum(f(x))))(POINT)["how it runs"]
    assert "one region" in said
    assert "unrolled" not in said


def test_long_loops_over_the_items_of_a_dict_are_one_region() -> None:
    said = sg.explain(sg.grad(lambda x: np.sum(long_items(x))))(POINT)["how it runs"]
    assert said.count("one region") == 3
    assert "unrolled" not in said


def read_in_the_loop(x: Any) -> Any:
    kept = {0: x}
    for k in range(30):
        kept[k + 1] = moved(kept[k], k)
    return kept[30]


def length_in_the_loop(x: Any) -> Any:
    kept = {}
    for k in range(30):
        x = moved(x, k) * (1.0 + 1e-3 * len(kept))
        kept[k] = x
    return kept[29]


def by_another_name(x: Any) -> Any:
    kept: dict[int, Any] = {}
    other = kept
    for k in range(30):
        kept[k] = moved(x, k)
        x = x + 1e-3 * len(other)
    return kept[29] + other[3]


def by_a_function(x: Any) -> Any:
    kept: dict[int, Any] = {}

    def last() -> Any:
        return kept[max(kept)] if kept else 0.0 * POINT

    for k in range(30):
        x = moved(x, k) + 0.1 * last()
        kept[k] = x
    return last()


def in_an_object(x: Any) -> Any:
    kept: dict[int, Any] = {}
    log = {"kept": kept}
    for k in range(30):
        x = moved(x, k) * (1.0 + 1e-3 * len(log["kept"]))
        kept[k] = x
    return log["kept"][7] + x


def raised_in_a_try(x: Any) -> Any:
    kept: dict[int, Any] = {}
    try:
        for k in range(30):
            kept[k] = moved(x, k)
            if k == 20:
                raise ValueError
    except ValueError:
        return kept[20] * len(kept)
    return x


def overwritten(x: Any) -> Any:
    """Where what was assigned is changed later."""
    kept = {}
    y = x.copy()
    for k in range(30):
        y[k % 7] = y[(k + 1) % 7] * 1.01
        kept[k] = y
    return kept[0] + kept[29] * len(kept)


def lists_and_arrays(x: Any) -> Any:
    """Items that are assigned alike, to what is no dict."""
    numbers, y = [0.0] * 30, np.zeros(30)
    for k in range(30):
        numbers[k] = x[k % 7] * k
        y[k] = x[k % 3]
    return sum(numbers) * y


OTHERS = [read_in_the_loop, length_in_the_loop, by_another_name, by_a_function, in_an_object, raised_in_a_try]
OTHERS += [overwritten, lists_and_arrays]


@pytest.mark.parametrize("f", OTHERS, ids=lambda f: f.__name__)
def test_dicts_are_pythons(f: Function) -> None:
    check(f, POINT, "llvm", 1e-6)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_keys_that_values_decide_are_known_where_the_function_runs_as_it_is(backend: str) -> None:
    def f(x: Any) -> Any:
        kept = {}
        n = x[0].astype(int)
        for k in range(30):
            kept[k + n] = x * k
        return kept[4]

    x = np.array([1.5, 2.0])
    with pytest.raises(UnsupportedError, match="no key of a dict"):
        sg.vjp(f, x, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        found = sg.jit(f, backend=backend)(x)
    np.testing.assert_array_equal(found, f(x))


def test_a_dict_that_is_handed_in_is_filled() -> None:
    def fill(kept: Any, x: Any) -> Any:
        for k in range(30):
            x = 1.01 * x
            kept[k] = x
        return x

    def f(x: Any) -> Any:
        kept: dict[int, Any] = {}
        return fill(kept, x) * len(kept) + kept[3]

    assert sg.jit(f)(2.0) == pytest.approx(f(2.0))
