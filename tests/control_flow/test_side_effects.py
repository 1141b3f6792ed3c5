"""What blocks on a traced condition change besides their own variables: closures, containers, objects, iterators."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.lowering import lower

POINTS = (np.array([0.53, -1.57, 2.43]), np.array([-0.52, 1.27, 3.47]))


def closure_variable(x: Any) -> Any:
    count = 1.0

    def bump(v: Any) -> None:
        nonlocal count
        count = count * 2 + v

    if x[0] > 0:
        bump(x[1])
    return np.sum(x) * count


def closure_list(x: Any) -> Any:
    kept = [1.0]

    def keep(v: Any) -> None:
        if v > 0:
            kept.append(2.0)

    keep(x[0])
    keep(x[1])
    return np.sum(x) * len(kept)


def list_of_a_closure_called_in_a_branch(x: Any) -> Any:
    kept = [1.0, 0.0]

    def keep(v: Any) -> None:
        kept[1] = v

    if x[0] > 0:
        keep(x[1] * 2)
    return np.sum(x) * kept[1] + kept[0] * x[0]


def second_operand_with_an_effect(x: Any) -> Any:
    seen = []

    def positive(v: Any) -> Any:
        seen.append(1.0)
        return v > 0

    flag = x[0] > 0 and positive(x[1])
    return np.sum(x) * len(seen) if not flag else x[0]


def test_with_an_effect(x: Any) -> Any:
    stack = [3.0, 2.0, 1.0]
    y = x[2]
    while y * stack.pop() > 3.0:
        y = y * 0.5
    return y * len(stack)


def iterator_read_in_a_branch(x: Any) -> Any:
    numbers = iter([2.0, 3.0, 4.0])
    total = x[1]
    if x[0] > 0:
        total = total * next(numbers)
    return total * next(numbers)


def bound_method_in_a_branch(x: Any) -> Any:
    table = {"a": 1.0}
    update = table.update
    if x[0] > 0:
        update(a=x[1])
    return np.sum(x) * table["a"]


def local_object(x: Any) -> Any:
    state = np.array([1.0, 2.0]), {"n": [0.0]}
    for v in x:
        if v > 0:
            state[1]["n"][0] += v
    return state[1]["n"][0] ** 2


def set_in_a_branch(x: Any) -> Any:
    seen = {1}
    if x[0] > 0:
        seen.add(2)
    return np.sum(x) * len(seen)


CASES = (
    closure_variable,
    closure_list,
    list_of_a_closure_called_in_a_branch,
    second_operand_with_an_effect,
    test_with_an_effect,
    iterator_read_in_a_branch,
    bound_method_in_a_branch,
    local_object,
    set_in_a_branch,
)
del test_with_an_effect  # a case, no test


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_both_paths_are_exact(function: Callable[[Any], Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        for x in POINTS:
            value, found = sg.value_and_grad(function)(x.copy())
            np.testing.assert_allclose(value, function(x.copy()), rtol=1e-12)
            moves = 1e-6 * np.eye(3)
            expected = [(function(x + move) - function(x - move)) / 2e-6 for move in moves]
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def percent(x: Any) -> Any:
    for k in range(20):
        x = x * 0.9
        if k % 10 == 0:
            print("step %d: %6.3f of %s" % (k, np.sum(x), x[0] > 0.5))  # noqa: UP031
    print("%(name)s = %(value)r, %%" % {"name": "x", "value": x[0]})  # noqa: UP031
    row = "%-9s%13.3f"
    print(row % ("sum", np.sum(x)))
    return np.sum(x)


def methods(x: Any) -> Any:
    print("{:.3f}|{name:>9}|{}".format(x[0], x[1:], name="x"))
    print(f"{x[1]:.2f}".rjust(9) + "|" + str(x[2]).upper().zfill(20) + "|" + repr(x[0]).replace(".", ","))
    return np.sum(x)


def joins(x: Any) -> Any:
    print(", ".join(f"{v:.2f}" for v in x), "|".join(map(str, x)), "-".join(["a", "b"]))
    kept = ["%.4f" % v for v in x]  # noqa: UP031
    print(" ".join(kept), len(kept))
    return np.sum(x)


def until(x: Any) -> Any:
    total = np.sum(np.abs(x))
    while total < 100.0:
        total = total * 2
        print("total %8.3f" % total, "{:>9.2f}".format(total))  # noqa: UP031, UP032
    return total


@pytest.mark.parametrize("function", [percent, methods, joins, until], ids=lambda f: f.__name__)
def test_texts_are_made_when_the_program_runs(
    function: Callable[[Any], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    slope = sg.grad(function)
    for point in POINTS:
        expected = function(point.copy())
        printed = capsys.readouterr().out
        with warnings.catch_warnings():
            warnings.simplefilter("error", sg.RetraceWarning)
            assert sg.jit(function)(point) == pytest.approx(expected, rel=1e-12)
        assert capsys.readouterr().out == printed
        slope(point)
        assert capsys.readouterr().out == printed


def test_a_text_that_is_asked_what_it_says_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        shown = "%.1f %s" % (x[0], "end")  # noqa: UP031
        print(shown)
        return np.sum(x) * len(shown) if shown.startswith("0.5") else x[0]

    with pytest.warns(sg.RetraceWarning, match="formatting needs the value"):
        np.testing.assert_array_equal(sg.grad(f)(POINTS[0]), np.full(3, 7.0))
    assert capsys.readouterr().out == "0.5 end\n"


@functools.lru_cache
def remembered(x: Any) -> Any:
    return x * x


def test_functions_of_c_that_python_calls_itself() -> None:
    """``map`` and keys hand traced values to functions that know numbers only."""

    def f(x: Any) -> Any:
        roots = sum(map(math.sqrt, map(abs, x))) + sum(map(float, x)) * max(map(math.exp, x))
        return roots + sorted(x, key=math.cos)[0] + min(x, key=math.sin) * x[1]

    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        for point in POINTS:
            differences = [(f(point + step) - f(point - step)) / 2e-6 for step in 1e-6 * np.eye(3)]
            np.testing.assert_allclose(sg.grad(f)(point), differences, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_a_cache_around_the_function_itself_keeps_no_traced_value() -> None:
    assert sg.grad(remembered)(3.0) == 6.0 and sg.grad(remembered)(2.0) == 4.0
    np.testing.assert_array_equal(sg.jacobian(remembered)(np.ones(2)), 2 * np.eye(2))
    assert remembered(3.0) == 9.0


@pytest.mark.parametrize("prints", [False, True])
def test_an_effect_is_known_to_all_the_branches_and_loops_around_it(prints: bool) -> None:
    def f(x: Any) -> Any:
        if x > 0:
            if x > 1:
                for _ in range(30):
                    x = x * 0.9
                    if prints:
                        print(x)
            else:
                x = x + 1
        return x

    function = lower(sg.jit(f), (2.0,), {}).traced
    nested = [operation for operation in function.walk() if operation.regions]
    assert len(nested) == 3
    for operation in nested:
        inside = [inner.op.effect for region in operation.regions for inner in region.walk()]
        assert operation.acts == any(inside) == prints
