"""Loops through iterators without an end, which a value ends, or their count at the latest: one program."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import srcgrad as sg


def iterates(c: Any) -> Iterator[Any]:
    f = c * 0
    while True:
        f = np.tanh(f * 0.5 + c)
        yield f


def two_breaks(c: Any, tol: float = 1e-4, most: int = 9) -> Any:
    previous = c * 0
    for k, f in enumerate(iterates(c)):
        if np.abs(f - previous).max() < tol:
            break
        if k > most:
            break
        previous = f
    return f.sum() * k


def from_none(c: Any, tol: float = 1e-4, most: int = 9) -> Any:
    previous = None
    for k, f in enumerate(iterates(c)):
        if previous is not None and np.abs(f - previous).max() < tol:
            break
        if k > most:
            break
        previous = f
    return f.sum() + k


def one_test(c: Any, tol: float = 1e-4, most: int = 9) -> Any:
    f = c * 0
    for k in itertools.count():
        previous = f
        f = np.tanh(previous * 0.5 + c)
        if np.abs(f - previous).max() < tol or k > most:
            break
    return f.sum() * k


def going_on(c: Any, tol: float = 1e-4, most: int = 9) -> Any:
    total, going = c.sum() * 0, True
    for k in itertools.count(1):
        going = going and np.abs(c).max() > tol and k < most
        if not going:
            return total * k
        c = c * 0.3
        total = total + c.sum()


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", [two_breaks, from_none, one_test, going_on], ids=lambda f: f.__name__)
def test_a_count_ends_a_loop_that_a_value_may_end_before(f: Callable[..., Any], backend: str) -> None:
    derivative = sg.value_and_grad(f, backend=backend)
    for c in (np.array([0.4, -1.0]), np.zeros(2), np.array([3.0, 2.0]), np.array([1e-3, 1e-4])):
        value, slope = derivative(c)
        assert value == pytest.approx(f(c), rel=1e-12, abs=1e-300)
        expected = [(f(c + h) - f(c - h)) / 2e-7 for h in 1e-7 * np.eye(2)]
        np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-7)
        assert sg.jvp(f, (c,), (c,), backend=backend)[1] == pytest.approx(slope @ c, rel=1e-12, abs=1e-300)
    assert "One program" in sg.explain(derivative)(np.ones(2))["how it runs"]


def first_of_pairs(x: Any) -> Any:
    for i in range(6):
        for j in range(i):
            if x[i] * x[j] > 0.2:
                return x[i] * x[j] * j
    return x[1] ** 2


def flagged_pairs(x: Any) -> Any:
    r = x[0] ** 2
    for i in range(6):
        done = False
        for j in range(i):
            if x[i] > x[j]:
                r, done = x[i] ** 3, True
                break
        if done:
            break
    return r


def stepped_pairs(x: Any) -> Any:
    r = x[0] ** 2
    for i in range(6):
        for j in range(i, 6, 2):
            if x[i] > x[j]:
                r = r + x[i] ** 2 * j
                break
    return r


def rows_before(x: Any) -> Any:
    r = x[0] * 0.0
    for i in range(40):
        for v in x[:i]:
            if v < x[1]:
                break
            r = r + v**2 * i
    return r


NESTINGS: dict[str, Callable[[Any, str], Callable[[Any], Any]]] = {
    "grad": lambda f, b: sg.grad(f, backend=b),
    "jit(grad)": lambda f, b: sg.jit(lambda x: sg.grad(f)(x), backend=b),
    "jit(value_and_grad)": lambda f, b: lambda x: sg.jit(lambda y: sg.value_and_grad(f)(y), backend=b)(x)[1],
    "vmap(grad)": lambda f, b: lambda x: sg.vmap(sg.grad(f), backend=b)(np.stack([-x, x]))[1],
    "grad(vmap)": lambda f, b: sg.grad(lambda x: sg.vmap(f)(np.stack([x, x])).sum() / 2, backend=b),
    "jit(vmap)": lambda f, b: lambda x: sg.jit(lambda y: sg.vmap(sg.grad(f))(np.stack([y, -y])), backend=b)(x)[0],
    "grad(jvp)": lambda f, b: lambda x: sg.grad(lambda v: sg.jvp(f, (x,), (v,))[1], backend=b)(x),
}
SECOND: dict[str, Callable[[Any, str], Callable[[Any], Any]]] = {
    "jacfwd(grad)": lambda f, b: sg.jacfwd(sg.grad(f), backend=b),
    "grad(grad)": lambda f, b: lambda x: sg.grad(lambda y: sg.grad(f)(y)[0], backend=b)(x)[None],
}


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", [first_of_pairs, flagged_pairs, stepped_pairs, rows_before])
def test_nested_loops_that_a_value_ends_are_regions_in_every_nesting(f: Any, backend: str) -> None:
    """The inner one runs as often as the number of the outer one's trip says."""
    assert sg.explain(sg.grad(f, backend=backend))(np.ones(40))["how it runs"].startswith("One program")
    for x in (np.linspace(0.1, 0.9, 40), -np.linspace(0.1, 0.9, 40)):
        steps = 1e-6 * np.eye(40)
        expected = [(f(x + e) - f(x - e)) / 2e-6 for e in steps]
        for name, nested in NESTINGS.items():
            np.testing.assert_allclose(nested(f, backend)(x), expected, rtol=1e-6, atol=1e-8, err_msg=name)
        slope = sg.grad(f, backend=backend)
        second = np.array([(slope(x + e) - slope(x - e)) / 2e-6 for e in steps])
        for name, nested in SECOND.items():
            found = nested(f, backend)(x)
            np.testing.assert_allclose(found, second[: len(found)], rtol=1e-6, atol=1e-7, err_msg=name)
