"""``is``, ``isinstance`` and ``type`` of what a traced condition chose, a loop gives, or is read from outside."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.tracing.members import compares_objects


class Phase(enum.Enum):
    FIRST = 1
    SECOND = 2


@dataclasses.dataclass
class Switch:
    on: Any
    by: Any


def none_or_number(p: Any) -> Any:
    last, x = None, p * p
    if x > 0.1:
        last = x
    if last is None:
        x = 10 * x
    return x


def none_or_number_denied(p: Any) -> Any:
    last = None if p < 1 else p * p
    return last if last is not None else 10 * p * p


def phase_in_a_loop(p: Any) -> Any:
    phase, x = Phase.FIRST, 0.0
    for _ in range(80):
        if phase is Phase.FIRST:
            x += p * p
            if x > 3:
                phase = Phase.SECOND
    return x


def none_in_a_while(p: Any) -> Any:
    last, x = None, 0.1
    while x < 3.0:
        x += p * p if last is None else 2 * p * p
        if x > 1:
            last = x
    return x


def integer(p: Any) -> Any:
    mode, first = 1, 1
    if p > 1:
        mode = 2
    return p * p if mode is first else 10 * p * p


def text(p: Any) -> Any:
    mode = first = "a"
    if p > 1:
        mode = "b"
    return p * p if mode is first else 10 * p * p


def array(p: Any) -> Any:
    a, b = np.ones(2) * p, np.zeros(2) * p
    c = a
    if p > 1:
        c = b
    return np.sum(c * c) + (5.0 if c is a else 7.0) * p * p


def container(p: Any) -> Any:
    a, b = [p], [2 * p]
    c = a
    if p > 1:
        c = b
    return c[0] * p * (5.0 if c is a else 7.0)


def kind_of_instance(p: Any) -> Any:
    last, x = None, p * p
    if p > 1:
        last = x
    return 10 * x if isinstance(last, float) else x


def exact_type(p: Any) -> Any:
    last, x = None, p * p
    if p > 1:
        last = x
    return 10 * x if type(last) is type(None) else x


def callable_or_none(p: Any) -> Any:
    function = None
    if p > 1:
        function = np.sin
    return 10 * p * p if callable(function) else p * p


def key_of_a_dict(p: Any) -> Any:
    mode = "a"
    if p > 1:
        mode = "b"
    return p * p * {"a": 1.0, "b": 10.0}.get(mode, 0.0)


def case_none(p: Any) -> Any:
    last = None
    if p > 1:
        last = p
    match last:
        case None:
            return 10 * p * p
        case found:
            return found * p


def cases_that_return(p: Any) -> Any:
    match p > 1:
        case True:
            return 10 * p * p
        case False:
            return p * p
    return None


def case_in_a_list(p: Any) -> Any:
    match [p > 1, p]:
        case [True, q]:
            return 10 * q * p
        case [False, q]:
            return q * p
    return 3 * p * p


def case_in_a_dict(p: Any) -> Any:
    match {"on": (p > 1, p)}:
        case {"on": (True, q)}:
            return 10 * q * p
        case _:
            return p * p


def case_in_an_object(p: Any) -> Any:
    match Switch(p > 1, p):
        case Switch(on=True, by=q):
            return 10 * q * p
        case Switch(False):
            return p * p
        case _:
            return 3 * p * p


PATHS = (
    none_or_number, none_or_number_denied, phase_in_a_loop, none_in_a_while, integer, text, array, container,
    kind_of_instance, exact_type, callable_or_none, key_of_a_dict, case_none, case_in_a_list,
    case_in_a_dict, case_in_an_object,
)  # fmt: skip


def flag(p: Any) -> Any:
    on = True
    if p > 1:
        on = False
    return p * p if on is True else 10 * p * p


def flag_denied(p: Any) -> Any:
    on = True
    if p > 1:
        on = False
    return p * p if on is not False else 10 * p * p


def flag_in_a_loop(p: Any) -> Any:
    on, x = True, 0.0
    for _ in range(80):
        if on is True:
            x += p * p
            if x > 3:
                on = False
    return x


def called(p: Any) -> Any:
    ok = bool(p > 1)
    return p * p if ok is True else 10 * p * p


def compared(p: Any) -> Any:
    ok = p > 1
    return p * p if ok is True else 10 * p * p


def compared_with_numpys(p: Any) -> Any:
    ok = p > 1
    return p * p if ok is np.True_ else 10 * p * p


def two_flags(p: Any) -> Any:
    one, other = bool(p > 1), bool(p > 0.2)
    return p * p if one is other else 10 * p * p


def negated(p: Any) -> Any:
    return p * p if (not p > 1) is True else 10 * p * p


def case_of_a_flag(p: Any) -> Any:
    on = True
    if p > 1:
        on = False
    x = p
    match on:
        case True:
            x = p * p
        case False:
            x = 10 * p * p
    return x


def cases_of_a_pair(p: Any) -> Any:
    match (p > 0.4, p > 1):
        case (True, True):
            x = 10 * p * p
        case (True, False):
            x = p * p
        case _:
            x = 3 * p * p
    return x


def names_in_cases(p: Any) -> Any:
    x = 3 * p * p
    match p > 1, p, None:
        case True, q, None:
            x = 10 * q * p
        case False | None, q, _:
            x = q * p
    return x


FLAGS = (
    flag, flag_denied, flag_in_a_loop, called, compared, compared_with_numpys, two_flags, negated, case_of_a_flag,
    cases_of_a_pair, names_in_cases,
)  # fmt: skip


def agrees(f: Callable[..., Any], p: Any, backend: str) -> None:
    """The value, and both derivatives by differences: the functions are quadratic between their jumps."""
    step = 1e-3
    before, here, after = (float(f(type(p)(p + d))) for d in (-step, 0, step))
    value, slope = sg.value_and_grad(f, backend=backend)(p)
    forward = sg.jvp(f, (p,), (type(p)(1.0),), backend=backend)[1]
    assert value == pytest.approx(here, rel=1e-13)
    assert slope == pytest.approx((after - before) / (2 * step), rel=1e-8)
    assert forward == pytest.approx(slope, rel=1e-13)
    second = sg.grad(sg.grad(f, backend=backend), backend=backend)(p)
    assert second == pytest.approx((after - 2 * here + before) / step**2, rel=1e-6)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("kind", [float, np.float64])
@pytest.mark.parametrize("f", [*PATHS, *FLAGS], ids=lambda f: f.__name__)
def test_what_a_traced_condition_chose_is_what_python_says(f: Callable[..., Any], kind: Any, backend: str) -> None:
    for number in (0.26, 0.51, 2.0):
        agrees(f, kind(number), backend)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_a_comparison_of_python_floats_is_a_case_that_returns(backend: str) -> None:
    for number in (0.26, 2.0):
        agrees(cases_that_return, number, backend)
    assert sg.jit(cases_that_return, backend=backend)(np.float64(2.0)) is None


@pytest.mark.parametrize("f", FLAGS, ids=lambda f: f.__name__)
def test_truth_values_compared_by_identity_stay_one_program(f: Callable[..., Any]) -> None:
    derivative = sg.value_and_grad(f)
    assert "Path" not in sg.explain(derivative)(0.5)["how it runs"]
    assert derivative(2.0)[0] == f(2.0)


def test_is_none_of_a_traced_value_is_one_program() -> None:
    def scaled(x: Any, weight: Any = None) -> Any:
        if weight is None:
            weight = 2.0
        return np.sum(weight * x**2)

    x = np.array([1.0, 2.0])
    assert "Path" not in sg.explain(sg.grad(scaled))(x, x)["how it runs"]
    assert sg.grad(scaled)(x).tolist() == [4.0, 8.0]
    assert sg.grad(scaled)(x, x).tolist() == [2.0, 8.0]


def test_truth_values_of_python_are_counted_by_arithmetic() -> None:
    def f(p: Any) -> Any:
        return p * p * ((p > 1) + (p > 0.2))

    for number in (0.5, 2.0):
        agrees(f, number, "numpy")
        agrees(f, np.float64(number), "llvm")


@pytest.mark.filterwarnings("ignore:Bitwise inversion:DeprecationWarning")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(
    "factor",
    [lambda p: -(p > 1), lambda p: ~(p > 1), lambda p: +(p > 1), lambda p: abs(p > 1)],
    ids=["-", "~", "+", "abs"],
)
def test_truth_values_of_python_are_whole_numbers(factor: Callable[..., Any], backend: str) -> None:
    for number in (0.5, 2.0):
        agrees(lambda p: p * p * factor(p), number, backend)
    found = sg.jit(lambda p: p * ~(p > 1), backend=backend)(np.float64(2.0))
    assert found == 0.0  # NumPy's ~ of its own truth values


# --- containers that loops run over, and captured ones ---------------------------------------------------------------
POINTS = [(0.1 * k, 0.2 * k + 1.0) for k in range(30)]
CHOSEN = POINTS[7]


def skipped(x: Any) -> Any:
    total = 0.0
    for point in POINTS:
        if point is CHOSEN:
            continue
        total = total + x[0] * point[0] * point[1]
    return total


def summed(x: Any) -> Any:
    return sum(x[1] * point[0] for point in POINTS if point is not CHOSEN)


def in_pairs(x: Any) -> Any:
    total = 0.0
    for one in POINTS[:20]:
        for other in POINTS[:20]:
            if one is not other:
                total = total + x[0] * one[0] * other[1]
    return total


def handed_on(x: Any) -> Any:
    last = POINTS[0]
    for point in POINTS:
        last = point
    return x[0] * (2.0 if last is POINTS[-1] else 3.0) * last[1]


def of_arrays(x: Any) -> Any:
    rows = [x * k for k in range(30)]
    row, total = rows[5], 0.0
    for one in rows:
        if one is not row:
            total = total + np.sum(one)
    return total


def of_numbers(x: Any) -> Any:
    numbers = [x[0] * k for k in range(30)]
    number, total = numbers[5], 0.0
    for one in numbers:
        if one is not number:
            total = total + one
    return total


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", [skipped, summed, in_pairs, handed_on, of_arrays, of_numbers], ids=lambda f: f.__name__)
def test_what_a_loop_gives_is_what_the_list_has(f: Callable[..., Any], backend: str) -> None:
    """The tuples of a region are made anew in each trip: ``point is CHOSEN`` held for none."""
    x = np.array([1.5, -0.5])
    value, slope = sg.value_and_grad(f, backend=backend)(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-12)
    np.testing.assert_allclose(slope @ x, f(x), rtol=1e-12)


class Held:
    def __init__(self, value: float) -> None:
        self.value = value


@pytest.mark.parametrize(
    "make", [lambda: [1.5], lambda: tuple(map(float, (1, 2))), lambda: {"a": 1.5}, lambda: Held(1.5)]
)
def test_captured_objects_that_become_one_are_seen(make: Callable[[], Any]) -> None:
    """They were two when the program was made, which no guard of either one says."""
    held = [make(), make(), make()]

    def f(x: Any) -> Any:
        one, other, third = held
        return x * sum(2.0 if a is b else 3.0 for a, b in ((one, other), (other, third), (one, third)))

    slope = sg.grad(f)
    for _ in range(3):
        assert slope(1.0) == 9.0
    held[1] = held[0]
    assert slope(1.0) == 8.0
    held[2] = held[0]
    assert slope(1.0) == 6.0
    held[1] = make()
    assert slope(1.0) == 8.0


def test_a_constant_compared_by_identity_asks_for_no_more() -> None:
    """``is None`` is no question after the identity of what is captured."""
    left, right = [1.0], [2.0]

    def f(x: Any, scale: Any = None) -> Any:
        return x * left[0] * right[0] * (1.0 if scale is None else scale)

    assert not compares_objects(f.__code__)
    assert compares_objects((lambda a, b: a is b).__code__)
    assert compares_objects((lambda: [a is not POINTS for a in POINTS]).__code__)
    assert sg.grad(f)(3.0) == 2.0
