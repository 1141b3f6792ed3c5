"""Dicts have the order in which keys were set: as arguments, on the paths of a condition, in loops, as results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcgrad as sg

pytestmark = pytest.mark.parametrize("backend", ["numpy", "llvm"])
RISING = {"a": np.array([3.0, 1.0]), "s": np.ones(2)}
FALLING = {"s": np.ones(2), "a": np.array([3.0, 1.0])}


def weighted(values: dict[str, Any]) -> Any:
    """The values by their place, not by their key."""
    return sum(0.5**place * np.sum(value) for place, value in enumerate(values.values()))


def branches(x: Any) -> Any:
    values = {"s": x, "a": 2.0 * x} if x > 0.0 else {"s": -x, "a": x}
    return weighted(values)


def orders(x: Any) -> Any:
    return weighted({"s": x, "a": 2.0 * x} if x > 0.0 else {"a": -x, "s": x})


def loop(x: Any) -> Any:
    values = {"s": x, "a": 2.0 * x}
    while abs(values["s"]) > 0.01:
        values = {"s": values["s"] * 0.5, "a": values["a"] + 0.1}
    return weighted(values)


def long_loop(x: Any) -> Any:
    values = {"s": x, "a": 2.0 * x}
    for _ in range(40):
        values = {"s": values["s"] * 0.9, "a": values["a"] + 0.1 * values["s"]}
    return weighted(values)


@pytest.mark.parametrize("f", [branches, orders, loop, long_loop])
@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_inside_of_a_function(f: Any, backend: str) -> None:
    slope = sg.value_and_grad(f, backend=backend)
    for x in (0.3, -0.3, 0.7):
        value, found = slope(x)
        np.testing.assert_allclose(value, f(x), rtol=1e-13)
        np.testing.assert_allclose(found, (f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rtol=1e-8)


def test_of_arguments_and_results(backend: str) -> None:
    value, slope, same = (t(f, backend=backend) for t, f in ((sg.jit, weighted), (sg.grad, weighted), (sg.jit, dict)))
    for _ in range(8):  # the machine code of the call takes over
        for given in (RISING, FALLING):
            assert value(given) == weighted(given)
            found = slope(given)
            assert list(found) == list(same(given)) == list(given)
            for place, part in enumerate(found.values()):
                np.testing.assert_array_equal(part, 0.5**place)


def test_keys_that_are_made_at_each_call(backend: str) -> None:
    value = sg.jit(weighted, backend=backend)
    for trip in range(8):
        given = {f"{trip % 2}{name}{trip % 2}": array for name, array in FALLING.items()}
        assert value(given) == weighted(given)
        assert value(dict(reversed(given.items()))) == weighted(RISING)


def test_of_keyword_arguments(backend: str) -> None:
    def f(**given: Any) -> Any:
        return weighted(given)

    value = sg.jit(f, backend=backend)
    for _ in range(8):
        assert value(**RISING) == weighted(RISING) and value(**FALLING) == weighted(FALLING)


def test_tangents_and_cotangents_may_have_another_order(backend: str) -> None:
    _, moved = sg.jvp(weighted, (FALLING,), (RISING,), backend=backend)
    assert moved == weighted(FALLING)
    _, back = sg.vjp(lambda x: {"b": x, "a": 2.0 * x}, 1.0, backend=backend)
    assert back({"a": 1.0, "b": 0.5}) == (2.5,)


def test_a_rule_may_return_another_order(backend: str) -> None:
    @sg.custom_jvp
    def f(x: Any) -> Any:
        return {"b": x, "a": 2.0 * x}

    @f.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        return {"a": 2.0 * primals[0], "b": primals[0]}, {"a": 5.0 * tangents[0], "b": 3.0 * tangents[0]}

    out, moved = sg.jvp(f, (1.0,), (1.0,), backend=backend)
    assert out == {"b": 1.0, "a": 2.0} and moved == {"b": 3.0, "a": 5.0}
