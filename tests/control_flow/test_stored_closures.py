"""Functions that methods define to change the objects around them, and that objects keep: derivatives by hand."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.control_flow.traced_once import require_one_program

POINTS = (np.array([0.3, 0.2]), np.array([-0.4, 0.5]), np.array([-0.5, -0.3]))


class Value:
    def __init__(self, data: Any, parents: tuple[Any, ...] = ()) -> None:
        self.data, self.grad, self.parents = data, 0.0, set(parents)
        self.backward_step: Callable[[], None] = lambda: None

    def __add__(self, other: Any) -> Value:
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data + other.data, (self, other))

        def step() -> None:
            self.grad += out.grad
            other.grad += out.grad

        out.backward_step = step
        return out

    def __mul__(self, other: Any) -> Value:
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data * other.data, (self, other))

        def step() -> None:
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad

        out.backward_step = step
        return out

    def relu(self) -> Value:
        out = Value(0 if self.data < 0 else self.data, (self,))

        def step() -> None:
            self.grad += (out.data > 0) * out.grad

        out.backward_step = step
        return out

    def tanh(self) -> Value:
        t = math.tanh(self.data)
        out = Value(t, (self,))

        def step() -> None:
            self.grad += (1 - t**2) * out.grad

        out.backward_step = step
        return out

    def backward(self) -> None:
        order: list[Value] = []
        visited: set[Value] = set()

        def build(value: Value) -> None:
            if value not in visited:
                visited.add(value)
                for parent in value.parents:
                    build(parent)
                order.append(value)

        build(self)
        self.grad = 1.0
        for value in reversed(order):
            value.backward_step()


def smooth(x: Any) -> Any:
    a, b = Value(x[0]), Value(x[1])
    c = a * b + b * b * b
    ((c + c + 1 + a * -1).tanh() * b + a * 10.0).backward()
    return a.grad**2 + a.grad * b.grad


def with_kinks(x: Any) -> Any:
    a, b = Value(x[0]), Value(x[1])
    y = (a * b + b * b * b + a * -1).relu() * b + a.relu()
    (y * y + a * 10.0).backward()
    return a.grad**2 + a.grad * b.grad


def descent(x: Any) -> Any:
    weights = [Value(x[0]), Value(x[1])]
    for _ in range(3):
        loss = Value(0.0)
        for u, y in ((1.0, 0.5), (-0.3, 0.1), (0.7, -0.2)):
            error = (weights[0] * u + weights[1]).tanh() + -y
            loss = loss + error * error
        for weight in weights:
            weight.grad = 0.0
        loss.backward()
        for weight in weights:
            weight.data -= 0.3 * weight.grad
    return weights[0].data * weights[1].data


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", [smooth, with_kinks, descent], ids=lambda f: f.__name__)
def test_derivatives_by_closures_that_objects_keep_are_one_program(f: Any, backend: str) -> None:
    require_one_program(f, backend, *POINTS)


SHARED = Value(2.0)


def of_a_captured_object(x: Any) -> Any:
    (Value(x[0]) * SHARED).backward()
    return SHARED.grad * x[1]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_a_closure_that_changes_a_captured_object_changes_the_callers(backend: str) -> None:
    slope = sg.value_and_grad(of_a_captured_object, backend=backend)
    SHARED.grad, expected = 0.0, 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in POINTS:
            expected += x[0]
            value, found = slope(x)
            np.testing.assert_allclose([value, SHARED.grad], [expected * x[1], expected], rtol=1e-12)
            np.testing.assert_allclose(found, [x[1], expected], rtol=1e-12)
