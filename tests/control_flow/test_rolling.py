"""Long loops are one region: what is traced does not grow with the trips, and what cannot be one is undone."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.lowering import lower

X = np.array([0.5, -1.5, 2.5])


def operations(function: Callable[..., Any], *args: Any) -> int:
    """How many operations the program has, regions included."""
    return len(list(lower(sg.jit(function), args, {}).traced.walk()))


def cheap(x: Any, trips: int) -> Any:
    total = 0.0
    for k in range(trips):
        total = total * 0.5 + np.sin(x * k)
    return total


def in_place(x: Any, trips: int) -> Any:
    y = np.zeros(8)
    for k in range(trips):
        y[k % 8] += x[k % 3]
    return np.sum(y**2)


def nested(x: Any, trips: int) -> Any:
    y = x.copy()
    for i in range(trips):
        for j in range(trips):
            if i != j:
                y[j % 3] += 1e-9 * y[i % 3]
    return np.sum(y)


@pytest.mark.parametrize(
    ("function", "x"), [(cheap, 0.5), (in_place, X), (nested, X)], ids=["cheap", "write", "nested"]
)
def test_a_million_trips_are_traced_as_fast_as_a_hundred(function: Any, x: Any) -> None:
    few, many = operations(function, x, 100), operations(function, x, 1_000_000)
    assert few == many < 40


def grows(x: Any) -> Any:
    parts, total = [], 0.0
    for k in range(40):
        total = total + x[k % 3]
        parts.insert(1, total * k)
    return sum(parts)


def test_an_attempt_that_fails_leaves_nothing_behind() -> None:
    def flat(x: Any) -> Any:
        total, found = 0.0, 0.0
        for k in range(40):
            total = total + x[k % 3]
            found = found + total * k
        return found

    np.testing.assert_allclose(sg.jit(grows)(X), flat(X), rtol=1e-12)
    np.testing.assert_allclose(sg.grad(grows)(X), sg.grad(flat)(X), rtol=1e-12)
    names = {operation.op.name for operation in lower(sg.jit(grows), (X,), {}).traced.walk()}
    assert "for" not in names and "while" not in names


def test_effects_of_a_failed_attempt_do_not_happen(capsys: pytest.CaptureFixture[str]) -> None:
    def prints(x: Any) -> Any:
        kept = []
        for k in range(33):
            if k > 31:
                print("last", x[0])
            kept.append(x[k % 3])
        return sum(kept)

    assert sg.jit(prints)(X) == prints(X)
    assert capsys.readouterr().out == "last 0.5\n" * 2


def test_too_many_trips_to_unroll_are_traced_again() -> None:
    def f(x: Any) -> Any:
        kept: list[Any] = []
        for k in range(30_000):
            if 0.5 * k % 5000.0 == 0.0:
                kept.append(x[0] * k)
        return sum(kept)

    with pytest.raises(
        sg.errors.ArgumentError, match="a loop of 30000 trips cannot be one region: a list, dict or set"
    ):
        sg.jit(f, strict=True)(X)


def taylor(x: Any) -> Any:
    total, factorial = 0.0, 1
    for k in range(1, 45):
        factorial = factorial * k
        total = total + x**k / factorial
    return total


def powers_of_two(x: Any) -> Any:
    total = 0.0
    for k in range(100):
        total = total + x / 2**k
    return total


def shifted(x: Any) -> Any:
    total = 0.0
    for k in range(80):
        total = total + x / (1 << k) + k * (k + 1) * x
    return total


def until_large(x: Any) -> Any:
    n = 1
    y = x
    while y < 1e30:
        n = n * 3
        y = y * 3.0 + n
    return y / n


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("function", [taylor, powers_of_two, shifted, until_large], ids=lambda f: f.__name__)
def test_python_integers_have_no_64_bits(function: Callable[[Any], Any]) -> None:
    np.testing.assert_allclose(sg.jit(function)(0.7), function(0.7), rtol=1e-13)
    value, slope = sg.value_and_grad(function)(0.7)
    np.testing.assert_allclose(value, function(0.7), rtol=1e-13)
    np.testing.assert_allclose(slope, (function(0.7 + 1e-6) - function(0.7 - 1e-6)) / 2e-6, rtol=1e-6)


def test_an_iterator_goes_on_where_it_stood() -> None:
    def f(x: Any) -> Any:
        pairs = enumerate(np.concatenate([x * k for k in range(20)]))
        _, first = next(pairs)
        total = first
        for k, v in pairs:
            total = total + v * k
            if k == 5:
                break
        for k, v in pairs:
            total = total - v * k
        for _ in pairs:
            total = total * 100.0
        return total

    np.testing.assert_allclose(sg.jit(f)(X), f(X), rtol=1e-12)


def counts_up(x: Any, trips: int) -> Any:
    total, i = 0.0, 0
    while i < trips:
        total = total * 0.5 + np.sin(x * i)
        i += 1
    return total


def counts_down(x: Any, trips: int) -> Any:
    y, i = np.zeros(8), trips
    while i >= 1:
        i = i - 1
        y[i % 8] += x[i % 3]
    return np.sum(y**2)


def counts_in_steps(x: Any, trips: int) -> Any:
    """The test is none of the counter alone, and asks what the loop leaves alone."""
    total, k = x[0], 3
    while k * k < 4 * len(x) * trips and k != -7:
        k = 2 + k
        if x[k % 3] < 0.0:
            continue
        total = total * 0.75 + k * x[k % 3]
    return total * np.zeros(k % 5 + 1).size  # the counter is a number of Python's behind the loop


def counts_time(x: Any, trips: int) -> Any:
    t, end, step, y = 0.0, float(trips), 0.25, x
    while t < end:
        y = y + step * (np.cos(t) - 0.1 * y)
        t += step
    return y * (round(t) + t)


def nested_counts(x: Any, trips: int) -> Any:
    y, i, j = x.copy(), 0, 0
    while i < trips:
        j = 0
        while j < trips:
            if i != j:
                y[j % 3] += 1e-9 * y[i % 3]
            j += 1
        i += 1
    return np.sum(y) * (i + j)


COUNTING = pytest.mark.parametrize(
    ("function", "x"),
    [(counts_up, 0.5), (counts_down, X), (counts_in_steps, X), (counts_time, 0.5), (nested_counts, X)],
    ids=lambda value: getattr(value, "__name__", ""),
)


@COUNTING
def test_a_while_that_counts_is_traced_as_a_range_is(function: Any, x: Any) -> None:
    few, many = operations(function, x, 1_000), operations(function, x, 10_000)
    assert few == many < 60


@COUNTING
def test_a_while_that_counts_has_the_values_of_python(function: Any, x: Any) -> None:
    for trips in (0, 1, 16, 17, 53):
        value, slope = sg.value_and_grad(function)(x, trips)
        np.testing.assert_allclose(value, function(x, trips), rtol=1e-12)
        ahead, behind = (function(np.add(x, step), trips) for step in (1e-6, -1e-6))
        np.testing.assert_allclose(np.sum(slope), (ahead - behind) / 2e-6, rtol=1e-6, atol=1e-8)


class Budget:
    def __init__(self, trips: int) -> None:
        self.trips = trips


def moves_its_end(x: Any) -> Any:
    total, i, end = 0.0, 0, 60
    while i < end:
        total = total + x[i % 3]
        end -= 1
        i += 1
    return total * end


def moves_its_end_in_an_object(x: Any) -> Any:
    budget, total, i = Budget(60), 0.0, 0
    while i < budget.trips:
        total = total + x[i % 3] * i
        if i % 2:
            budget.trips -= 1
        i += 1
    return total * budget.trips


def moves_its_end_with_a_list(x: Any) -> Any:
    waiting, total, i = list(range(60)), 0.0, 0
    while i < len(waiting):
        total = total + x[waiting.pop() % 3] * i
        i += 1
    return total * i


def moves_its_step(x: Any) -> Any:
    total, i, step = 0.0, 0, 1
    while i < 400:
        total = total + x[i % 3]
        i += step
        step = 2 if step == 1 else 1
    return total * i


def is_moved_by_another_function(x: Any) -> Any:
    total, i = 0.0, 0

    def skip() -> None:
        nonlocal i
        i += i % 3

    while i < 60:
        total = total + x[i % 3]
        skip()
        i += 1
    return total * i


def grows_an_array(x: Any) -> Any:
    y, total, i = np.concatenate([x] * 12), 0.0, 0
    while i < y.shape[0]:
        y = y[1:] * 0.9
        total = total + np.sum(y)
        i += 1
    return total * i


@pytest.mark.parametrize(
    "function",
    [
        *(moves_its_end, moves_its_end_in_an_object, moves_its_end_with_a_list),
        *(moves_its_step, is_moved_by_another_function, grows_an_array),
    ],
    ids=lambda f: f.__name__,
)
def test_a_while_whose_numbers_change_counts_as_python_does(function: Callable[[Any], Any]) -> None:
    value, slope = sg.value_and_grad(function)(X)
    np.testing.assert_allclose(value, function(X), rtol=1e-12)
    np.testing.assert_allclose(np.sum(slope), (function(X + 1e-3) - function(X - 1e-3)) / 2e-3, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_a_while_of_very_many_trips_that_is_no_region_is_traced_again() -> None:
    def f(x: Any) -> Any:
        kept: list[Any] = []
        total, n = 0.0, 21_000
        while n:
            total = total + x[0]
            kept.append(n)
            n = abs(n) - 1
        return total / len(kept)

    with pytest.raises(sg.errors.ArgumentError, match="a while makes more than 20000 trips that are no region"):
        sg.jit(f, strict=True)(X)


def trained(w: Any) -> Any:
    p = {"a": w.copy()}
    for _ in range(20):
        g = {"a": 2 * p["a"]}
        for k in p:
            p[k] -= 0.1 * g[k]
    return np.sum(p["a"] ** 3)


def trained_with_what_is_kept(w: Any) -> Any:
    p, g = {"a": w.copy()}, {"a": w}
    kept = g
    for _ in range(20):
        g = {"a": 2 * p["a"]}
        p["a"] -= 0.1 * g["a"]
    return np.sum(p["a"] ** 3) + np.sum(kept["a"])


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", [trained, trained_with_what_is_kept])
def test_memory_is_what_it_was_where_a_loop_is_given_up_at_its_end(f: Any, backend: str) -> None:
    """Containers made in the loop beside arrays that it changes in place: an operation of the trial stayed in them."""
    x, h = np.array([1.5, -0.5]), 1e-6
    value, slope = sg.value_and_grad(f, backend=backend)(x)
    assert value == pytest.approx(f(x), rel=1e-13)
    differences = [(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(2)]
    np.testing.assert_allclose(slope, differences, rtol=1e-7)


def test_a_container_that_is_made_in_a_loop_leaves_it_a_region() -> None:
    assert "20 trips" in (said := sg.explain(sg.grad(trained))(np.ones(2))["how it runs"])
    assert "unrolled" not in said


def test_a_traced_key_is_told_as_the_reason_to_unroll() -> None:
    def f(x: Any) -> Any:
        kept = {0: x}
        for k in range(100):
            kept[k + 1] = kept[k] * 0.99
        return kept[10] + kept[100]

    assert "a traced value is no key of a dict" in sg.explain(sg.grad(f))(1.0)["how it runs"]
    assert sg.grad(f)(1.0) == pytest.approx(0.99**10 + 0.99**100)


def test_products_of_sequences_with_themselves_are_one_loop() -> None:
    """``product(prims, repeat=4)``, and of what ``zip`` gives, was written out: 39 s of compiling rather than 0.7."""
    exponents, weights = [0.3, 0.7, 1.1], [0.5, 0.2, 0.9]

    def f(x: Any) -> Any:
        total = 0.0
        pairs = list(zip(exponents, weights, strict=True))
        for (a, u), (b, v), (c, w) in itertools.product(pairs, repeat=3):
            total = total + u * v * w * np.exp(-a * b * x**2 / (a + b + c))
        for (a, u), (b, v), (c, w) in itertools.product(*(zip(exponents, weights, strict=True) for _ in range(3))):
            total = total + u * v * w * np.sin(a * x) / (b + c)
        return total

    value, slope = sg.value_and_grad(f)(1.3)
    np.testing.assert_allclose(value, f(1.3))
    np.testing.assert_allclose(slope, (f(1.3 + 1e-6) - f(1.3 - 1e-6)) / 2e-6, rtol=1e-7)
    assert str(sg.explain(sg.grad(f))(1.3)).count("The loop of 27 trips") == 2


@pytest.mark.parametrize("repeat", [0, 1, 2])
def test_products_repeat_as_pythons(repeat: int) -> None:
    numbers = np.linspace(0.1, 0.9, 17)

    def f(x: Any) -> Any:
        total = 0.0
        for places in itertools.product(numbers, repeat=repeat):
            total = total + x * sum(places) + 1
        return total

    np.testing.assert_allclose(sg.value_and_grad(f)(0.5)[0], f(0.5))


def backwards(a: Any, d: Any) -> Any:
    x = np.zeros_like(a)
    for k in range(39, -1, -1):
        x[:, k] = d[:, k] - (a[:, k] * x[:, k + 1] if k < 39 else 0.0)
    return np.sum(x**2)


def forwards(a: Any, d: Any) -> Any:
    x = np.zeros_like(a)
    for k in range(40):
        before = 1.0 if k == 0 else x[:, k - 1] * a[:, k]
        x[:, k] = d[:, k] + before
        if k != 0 and 0 <= k - 1 < 50:
            x[:, k] *= 0.5
    return np.sum(x**2)


@pytest.mark.parametrize("f", [backwards, forwards])
def test_what_holds_of_the_number_of_each_trip_but_the_first_leaves_one_loop(f: Callable[..., Any]) -> None:
    """An array or 0.0 by the number of the trip had the loop written out."""
    random = np.random.default_rng(5)
    a, d = random.uniform(-0.5, 0.5, (2, 3, 40))
    value, slope = sg.value_and_grad(f)(a, d)
    np.testing.assert_allclose(value, f(a, d))
    step = np.zeros_like(a)
    step[1, 7] = 1e-6
    np.testing.assert_allclose(slope[1, 7], (f(a + step, d) - f(a - step, d)) / 2e-6, rtol=1e-6)
    assert "one region" in str(sg.explain(sg.grad(f))(a, d))


@pytest.mark.parametrize("first", [-2, 0, 3])
def test_comparisons_of_trip_numbers_are_pythons(first: int) -> None:
    def f(x: Any) -> Any:
        total = 0.0
        for k in range(first, 30):
            j = 2 * k - 5
            signs = [k < first, k <= first, k > 29, k >= 29, k == first - 1, k != 30, j < 54, j >= -9, k > 3, k + 1 > k]
            signs += [k < 7, k <= 7, k >= 7, k == 7, k != 7]
            for place, sign in enumerate(signs):
                total = total + (x * (place + 1) if sign else 0.25)
        return total

    np.testing.assert_allclose(sg.value_and_grad(f)(0.7), (f(0.7), f(1.7) - f(0.7)))
