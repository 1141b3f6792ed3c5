"""More realistic functions: branches, exits, sorting, closures, classes and recursion; each gives a float."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.control_flow.corpus import entry


# --- branches and early exits -----------------------------------------------------------------------------
@entry(np.array([0.1, 0.3, 0.8, 0.2]))
def first_above(x: Any) -> Any:
    for i in range(4):
        if x[i] > 0.5:
            return x[i] ** 2 * i
    return np.sum(x)


@entry(np.array([0.3, 0.8, -0.1, 4.0]))
def sum_until_negative(x: Any) -> Any:
    total = 0.0
    for v in x:
        if v < 0:
            break
        total += v * v
    else:
        total *= 10
    return total


@entry(np.array([0.3, -0.8, 0.1, 4.0]))
def skip_negative(x: Any) -> Any:
    total = 1.0
    for v in x:
        if v < 0:
            continue
        total = total * (1 + v)
    return total


@entry(1.3)
def piecewise(x: Any) -> Any:
    if x < 0:
        return 0.0 * x
    elif x < 1:
        return x**2
    if 1 <= x < 2 and not x == 1.5:  # noqa: SIM201
        return 2 * x - 1 if x > 1.2 else x
    return 3.0 * x


@entry(0.7)
def loop_with_two_exits(x: Any) -> Any:
    n = 0
    while True:
        x = x * 1.5
        n += 1
        if x > 10:
            break
        if n > 20:
            return -x
    return x * n


@entry(2.0)
def nested_exits(x: Any) -> Any:
    total = 0.0
    for i in range(6):
        for j in range(6):
            if i * j * x > 15:
                break
            if (i + j) % 2:
                continue
            total += x * i - j
        if total > 40 * x:
            return total * 2
    return total


@entry(4.0)
def checks_its_argument(x: Any) -> Any:
    if x < 0:
        raise ValueError("x is negative")
    assert x < 100, "x is too large"
    return math.sqrt(x) * math.log(x)


@entry(np.array([3.0, -1.0]))
def huber(x: Any) -> Any:
    total = 0.0
    for r in x:
        a = abs(r)
        total += 0.5 * r * r if a <= 1.5 else 1.5 * (a - 0.75)
    return total


@entry(np.array([0.2, -0.7, 1.4]), "relu")
def dictionary_of_functions(x: Any, name: str) -> Any:
    table = {"relu": lambda v: v if v > 0 else 0.0 * v, "tanh": np.tanh}
    return sum(table[name](v) ** 2 for v in x)


@entry(np.array([0.2, -0.7, 1.4]))
def state_in_a_dictionary(x: Any) -> Any:
    state = {"total": 0.0, "count": 0}
    for v in x:
        if v > 0:
            state["total"] += v
            state["count"] += 1
    return state["total"] * state["count"]


@entry(2.5, 1)
def match_on_a_mode(x: Any, mode: int) -> Any:
    match mode:
        case 0:
            return x
        case 1 | 2:
            y = x * x if x > 2 else x
        case _:
            y = -x
    return y * mode


@entry(4.5)
def trips_from_a_value(x: Any) -> Any:
    total = 0.0
    for i in range(int(x)):
        total += x * i
    return total


@entry(np.array([0.4, 0.1, 0.9]))
def pick_by_argmax(x: Any) -> Any:
    weights = [1.0, 10.0, 100.0]
    k = np.argmax(x)
    return weights[k] * x[k] ** 2


# --- sorting and counting -----------------------------------------------------------------------------
@entry(np.array([0.5, -0.2, 0.9, 0.1]))
def bubble_sort(x: Any) -> Any:
    y = x.copy()
    for i in range(4):
        for j in range(3 - i):
            if y[j] > y[j + 1]:
                y[j], y[j + 1] = y[j + 1], y[j]
    return np.sum(y * np.arange(1.0, 5.0) ** 2)


@entry(np.array([0.5, -0.2, 0.9, 0.1]))
def insertion_sort(x: Any) -> Any:
    y = x.copy()
    for i in range(1, 4):
        key, j = y[i], i - 1
        while j >= 0 and y[j] > key:
            y[j + 1] = y[j]
            j -= 1
        y[j + 1] = key
    return np.sum(y * np.arange(4.0) ** 2)


@entry(np.array([0.5, 0.2, 0.9, 0.1]))
def sorting_network(x: Any) -> Any:
    y = [v for v in x]  # noqa: C416
    for i, j in [(0, 1), (2, 3), (0, 2), (1, 3), (1, 2)]:
        y[i], y[j] = min(y[i], y[j]), max(y[i], y[j])
    return y[0] + 10 * y[1] ** 2 + 100 * y[3]


@entry(np.array([0.1, 0.55, 0.9, 0.6]))
def histogram(x: Any) -> Any:
    bins = np.zeros(3)
    for v in x:
        k = int(v * 3)
        bins[k] += v
    return np.sum(bins**2)


@entry(np.array([1.0, 2.0, 3.0]))
def add_at(x: Any) -> Any:
    found = np.zeros(2)
    np.add.at(found, [0, 1, 0], x)
    return found[0] * found[1]


# --- functions, classes, recursion -----------------------------------------------------------------------------
@dataclass
class Layer:
    weight: Any
    bias: float

    def __call__(self, x: Any) -> Any:
        z = self.weight @ x + self.bias
        return np.maximum(z, 0.1 * z)


@entry(np.array([0.4, -0.3]))
def layers(x: Any) -> Any:
    for k in range(3):
        x = Layer(np.array([[0.5, -0.2 * k], [0.3, 0.8]]), 0.1)(x)
        if x[0] > x[1]:
            x = x[::-1]
    return x[0] * x[1]


def clipped(low: float) -> Callable[[Any], Any]:
    def decorate(f: Any) -> Any:
        @functools.wraps(f)
        def wrapper(*args: Any) -> Any:
            value = f(*args)
            return value if value > low else low + 0.1 * (value - low)

        return wrapper

    return decorate


@clipped(0.5)
def decorated(x: Any) -> Any:
    return x * x * 0.2


@entry(1.1)
def calls_decorated(x: Any) -> Any:
    return functools.partial(decorated, x)() + decorated(3 * x)


@entry(2.0)
def recursion_on_python_values(x: Any) -> Any:
    def fibonacci(n: int) -> Any:
        return x if n < 2 else fibonacci(n - 1) + fibonacci(n - 2) * 0.5

    return fibonacci(6)


@entry(np.array([0.7, 0.2, 0.5]))
def recursion_over_a_tree(x: Any) -> Any:
    tree = (0, (1, None, None), (2, (0, None, None), None))

    def value(node: Any) -> Any:
        if node is None:
            return 1.0
        index, left, right = node
        return x[index] * value(left) if x[index] > 0.4 else value(left) + value(right)

    return value(tree)


@entry(0.8)
def counter_in_a_closure(x: Any) -> Any:
    calls = 0

    def f(y: Any) -> Any:
        nonlocal calls
        if y > 0.5:
            calls += 1
        return y * y

    return f(x) + f(x * 0.4) + f(x * 3) * calls


@entry(np.array([0.3, 0.9]))
def generator(x: Any) -> Any:
    def powers(v: Any) -> Any:
        for n in range(1, 4):
            yield v**n

    total = 0.0
    for p in powers(x[0]):
        total += p if p > 0.05 else -p
    return total * x[1]


@entry(np.array([0.3, 0.9, 0.1]))
def python_reductions(x: Any) -> Any:
    return max(x) * min(x[0], x[1]) + sum(x) * abs(x[2]) + (1.0 if any(x > 0.8) else 0.0) * sorted(x)[1]


@entry(0.3)
def number_functions(x: Any) -> Any:
    return float(x) * math.exp(x) + math.atan2(x, 2.0) + math.hypot(x, 1.0) + round(10 * x) * x + math.floor(5 * x) * x


@entry(np.array([0.3, 0.9]))
def arrays_made_of_numbers(x: Any) -> Any:
    m = np.array([[x[0], 1.0], [2.0, x[1]]])
    v = np.full(2, x[0]) + np.asarray([x[1], 3.0]) + np.linspace(x[0], 1.0, 2)
    return v @ m @ v


@entry(np.array([0.3, 0.9]))
def asks_what_it_got(x: Any) -> Any:
    if not isinstance(x, np.ndarray) or isinstance(x[0], np.ndarray):
        return np.sum(x) * 100.0
    return np.sum(x**2) if type(x[0]) is np.float64 and isinstance(x[1], float) else -np.sum(x)


@entry(np.array([0.3, 0.9]))
def swap_views(x: Any) -> Any:
    y = np.zeros((2, 2))
    row, column = y[0], y[:, 1]
    row[:] = x
    if x[0] < x[1]:
        column *= 2.0
    y[1] += row
    return np.sum(y**2)


def errors(x: Any) -> Any:
    if x[0] > 100:
        raise KeyError("too large")
    assert np.all(x < 50), "large"
    return np.sum(x**2)
