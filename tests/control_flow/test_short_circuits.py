"""``any``, ``all`` and loops that a traced value ends: what Python does not come to is not done."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.control_flow.page import Function
from tests.control_flow.traced_once import require_one_program

POINTS = [[1.0, -2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0], [-1.0, 2.0, -3.0, 1.0], [3.0, 2.0, 1.0, -1.0]]


def witness(x: Any) -> Any:
    if any((w := v) < 0 for v in x):
        return 3.0 * w
    return w + x[0]


def counted(x: Any) -> Any:
    n = 0

    def asked(v: Any) -> Any:
        nonlocal n
        n += 1
        return v < 0

    found = any(asked(v) for v in x)
    return n * x[0] + (x[1] if found else 0.0)


def counted_in_a_long_array(x: Any) -> Any:
    n = 0

    def asked(v: Any) -> Any:
        nonlocal n
        n += 1
        return v < 2.5

    return x[3] if not all(asked(v) for v in np.tile(x, 9)) else n * x[0]


def noted(x: Any) -> Any:
    seen = np.zeros(4)

    def asked(k: int) -> Any:
        seen[k] = x[k] ** 2
        return x[k] < 0

    return np.sum(seen) if any(asked(k) for k in range(4)) else x[0] * np.sum(seen)


def beyond_the_domain(x: Any) -> Any:
    y = x.tolist()
    return y[0] * 2.0 if any(math.log(v) < 0.5 for v in y) else y[0]


def beyond_the_domain_filtered(x: Any) -> Any:
    y = x.tolist()
    return y[0] * 2.0 if not all(math.sqrt(v) > 1.5 for v in y if v != 2.0) else y[0]


def two_loops(x: Any) -> Any:
    n = 0

    def less(u: Any, v: Any) -> Any:
        nonlocal n
        n += 1
        return u + v < 0.5

    return (x[1] if any(less(u, v) for u in x for v in x if v > u) else x[2]) * n


def some_above_all(x: Any) -> Any:
    return x[0] * 2.0 if any(all(u >= v for u in x) and v < 2 for v in x) else x[1] * 3.0


def by_a_generator(x: Any) -> Any:
    n = 0

    def truths() -> Iterator[Any]:
        nonlocal n
        for v in x:
            n += 1
            yield v < 0

    return (2.0 if any(truths()) else 3.0) * n * x[0]


def by_a_map(x: Any) -> Any:
    return x[0] * (2.0 if any(map(lambda v: math.log(v) < 0.5, x.tolist())) else 3.0)  # noqa: C417


def the_rest(x: Any) -> Any:
    rest = iter(x)
    for v in rest:
        if v < 0:
            break
    return x[0] + sum(rest)


def the_rest_by_a_call(x: Any) -> Any:
    rest = iter(x)
    for v in iter(rest):
        if v < 0:
            break
    return x[0] + sum(rest)


def the_rest_of_pairs(x: Any) -> Any:
    pairs = zip(x, x[::-1], strict=True)
    for u, v in pairs:
        if u > v:
            break
    return x[0] + sum(u * v for u, v in pairs)


def the_rest_behind_any(x: Any) -> Any:
    rest = iter(x)
    found = any(v < 0 for v in enumerate_values(rest))
    return sum(rest) + (x[0] if found else x[1])


def enumerate_values(values: Any) -> Iterator[Any]:
    for _, v in enumerate(values):
        yield v


def ended(x: Any) -> Any:
    n = 0

    def numbers() -> Iterator[Any]:
        nonlocal n
        for v in x:
            n += 1
            yield v * n

    for v in numbers():
        if v < 0:
            break
    return v * n


def ended_before_an_error(x: Any) -> Any:
    for v in map(math.log, x.tolist()):
        if v < 0.5:
            break
    return v + x[0]


FUNCTIONS = [
    *(witness, counted, counted_in_a_long_array, noted, beyond_the_domain, beyond_the_domain_filtered, two_loops),
    *(some_above_all, by_a_generator, by_a_map, the_rest, the_rest_by_a_call, the_rest_of_pairs),
    *(the_rest_behind_any, ended, ended_before_an_error),
]


def outcome(f: Function, x: Any) -> Any:
    try:
        return f(x)
    except ValueError:
        return None


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_what_python_does_not_come_to_is_not_done(f: Function, backend: str) -> None:
    run, slope, step = sg.jit(f, backend=backend), sg.grad(f, backend=backend), 1e-6
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        for point in POINTS:
            x = np.array(point)
            wanted = outcome(f, x)
            assert outcome(run, x) == wanted
            if wanted is not None:
                apart = [(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(4)]
                np.testing.assert_allclose(slope(x), apart, rtol=1e-6, atol=1e-7)


def first_above(x: Any) -> Any:
    total = 0.0
    for k, (u, v) in enumerate(zip(x, np.sin(x), strict=True)):
        if u * v > 0.6:
            return total + u
        total += v * (k + 1)
    return total


def close_together(x: Any) -> Any:
    far = any(abs(u - v) > 2.5 for u, v in zip(x, x[::-1], strict=True))
    steep = not all(abs(v) < 3.5 for _, v in enumerate(np.tile(x, 500)))
    return np.sum(x**2) * (2.0 if far else 1.0) + (x[0] if steep else x[1])


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", [first_above, close_together], ids=lambda f: f.__name__)
def test_what_only_computes_is_one_program(f: Function, backend: str) -> None:
    require_one_program(f, backend, *map(np.array, POINTS))


def test_a_long_any_is_one_loop() -> None:
    def some(x: Any) -> Any:
        return x.sum() if any(v > 0.5 and u < v for u, v in zip(x, x[::-1], strict=True)) else x[0]

    text = sg.explain(sg.jit(some))(np.linspace(0.0, 1.0, 2000))["ir"]
    assert text.count("while") == 1 and len(text) < 4000
