"""Large captured containers of floats: one input for all that are in one, and what each call reads out of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.cache import find_captures
from srcgrad.tracing import packing

BACKENDS = ["llvm", "numpy"]
P = np.array([2.0, 0.3])
TIMES = [0.02 * k for k in range(130)]


def captured_of(f: Any) -> Any:
    found: Any = find_captures(f, False, converted=True)
    return found[0]


def gradient_of(f: Any) -> Any:
    """By central differences."""
    step = 1e-6
    return np.array([(f(P + step * e) - f(P - step * e)) / (2 * step) for e in np.eye(2)])


def require_right(f: Any, value_and_grad: Any) -> None:
    value, gradient = value_and_grad(P)
    np.testing.assert_allclose(value, f(P), rtol=1e-12)
    np.testing.assert_allclose(gradient, gradient_of(f), rtol=1e-6, atol=1e-8)


def held_in(kind: str) -> Any:
    """So many floats, in a container of this kind."""
    pairs = [(t, 3.0 * np.exp(-0.5 * t).item()) for t in TIMES]
    return {
        "list": lambda: [y for _, y in pairs],
        "tuple": lambda: tuple(y for _, y in pairs),
        "dict": lambda: {f"y{k}": y for k, (_, y) in enumerate(pairs)},
        "pairs": lambda: list(pairs),
        "lists": lambda: [list(pair) for pair in pairs],
        "of pairs": lambda: dict(enumerate(pairs)),
        "numbered": lambda: [(k, y, None) for k, (_, y) in enumerate(pairs)],
        "with constants": lambda: [k if k % 3 == 0 else y for k, (_, y) in enumerate(pairs)],
        "of numpy": lambda: [np.float64(y) for _, y in pairs],
        "pairs of numpy": lambda: [(t, np.float64(y)) for t, y in pairs],
        "of both": lambda: [y if k % 2 else np.float64(y) for k, (_, y) in enumerate(pairs)],
        "with texts": lambda: tuple(None if k == 7 else y for k, (_, y) in enumerate(pairs)),
    }[kind]()


def function_of(held: Any) -> Callable[[Any], Any]:
    """What reads a container as an array, in a loop, and by its places."""
    items = list(held.values()) if isinstance(held, dict) else held
    if isinstance(items[0], (list, tuple)):

        def f(p: Any) -> Any:
            read = list(held.values()) if isinstance(held, dict) else held
            read = [record[:2] for record in read] if len(read[0]) > 2 else read
            fit = sum((p[0] * np.exp(-p[1] * t) - y) ** 2 for t, y in read)
            both = np.array(read)
            times = np.array([record[0] for record in read])
            return fit + np.sum(p[0] * both[:, 1] * times) + p[1] * read[3][1]

        return f

    def g(p: Any) -> Any:
        read = [y for y in (held.values() if isinstance(held, dict) else held) if y is not None]
        ys = np.array(read)
        fit = sum((p[0] * y - p[1]) ** 2 for y in read)
        return fit + np.sum(np.sin(p[0] * ys)) + p[1] * read[3] + len(held)

    return g


KINDS = [
    "list",
    "tuple",
    "dict",
    "pairs",
    "lists",
    "numbered",
    "of pairs",
    "with constants",
    "with texts",
    "of numpy",
    "pairs of numpy",
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", KINDS)
def test_values_and_gradients(kind: str, backend: str) -> None:
    f = function_of(held_in(kind))
    require_right(f, sg.value_and_grad(f, backend=backend))


def test_values_and_gradients_on_xla() -> None:
    f = function_of(held_in("pairs"))
    require_right(f, sg.value_and_grad(f, backend="xla"))


@pytest.mark.parametrize("kind", KINDS)
def test_one_input_for_all_of_a_container(kind: str) -> None:
    (hidden,) = captured_of(function_of(held_in(kind))).hidden
    assert hidden.kind == "floats"


@pytest.mark.parametrize("kind", ["list", "dict", "pairs", "lists", "with constants"])
def test_each_call_reads_them_anew(kind: str) -> None:
    """Another float is no other program; an int where a float was, a constant or a length is one."""
    held = held_in(kind)
    f = function_of(held)
    slope = sg.value_and_grad(f)
    require_right(f, slope)
    key: Any = "y5" if kind == "dict" else 5

    def replaced(value: Any) -> None:
        if kind == "pairs":
            held[key] = (held[key][0], value)
        elif kind == "lists":
            held[key][1] = value
        else:
            held[key] = value
        require_right(f, slope)

    for value in (7.25, -0.0, 3, 4, 2.5):
        replaced(value)
    if kind == "with constants":
        held[6] = 8
        require_right(f, slope)
        held[6] = 8.5
        require_right(f, slope)
    if kind != "dict":
        held.append(held[0])
        require_right(f, slope)
        del held[10:12]
        require_right(f, slope)


def test_a_sign_of_a_zero_and_a_nan_are_read() -> None:
    held = held_in("list")
    slope = sg.jit(lambda p: p[0] / np.array(held)[4] + np.sum(p) * 0.0)
    for value, wanted in ((0.0, np.inf), (-0.0, -np.inf), (np.nan.real, np.nan)):
        held[4] = float(value)
        with np.errstate(divide="ignore", invalid="ignore"):
            np.testing.assert_equal(slope(P), wanted)


def test_a_container_that_the_function_changes_is_changed_for_the_caller() -> None:
    held = held_in("list")

    def f(p: Any) -> Any:
        held[2] = held[2] + 1.0
        return p[0] * held[2] * np.sum(p)

    slope = sg.grad(f)
    before = held[2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        for call in (1, 2, 3):
            found = slope(P)
            assert held[2] == before + call
            np.testing.assert_allclose(found, held[2] * np.array([2 * P[0] + P[1], P[0]]))


def test_a_record_that_is_a_list_and_is_changed_elsewhere() -> None:
    """One of the lists has another name too, by which the function changes it."""
    held = held_in("lists")
    first = held[0]

    def f(p: Any) -> Any:
        first[1] = first[1] * 2.0
        return p[0] * held[0][1] + p[1] * sum(y for _, y in held)

    slope = sg.grad(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        for _ in range(3):
            wanted = [first[1] * 2.0, sum(y for _, y in held) + first[1]]
            np.testing.assert_allclose(slope(P), wanted)


def test_a_record_that_the_function_changes_is_changed_for_the_caller() -> None:
    held = held_in("lists")

    def f(p: Any) -> Any:
        held[3][1] = held[3][1] * 2.0
        return p[0] * held[3][1] + p[1]

    slope, before = sg.grad(f), held[3][1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        for call in (1, 2, 3):
            np.testing.assert_allclose(slope(P), [before * 2.0**call, 1.0])
            assert held[3][1] == before * 2.0**call


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("kind", ["pairs", "lists"])
def test_a_record_that_something_else_leads_to_is_the_same_object(kind: str) -> None:
    held = held_in(kind)
    first, some = held[4], held[10:15]

    def f(p: Any) -> Any:
        return sum(p[0] * record[1] for record in held if record is not first and record is not some[2])

    assert not any(hidden.kind == "floats" for hidden in captured_of(f).hidden)
    require_right(f, sg.value_and_grad(f))


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_a_record_that_stands_twice_is_one_object() -> None:
    held = held_in("pairs")

    def f(p: Any) -> Any:
        return p[0] * (2.0 if held[3] is held[5] else 3.0) + p[1] * held[5][1]

    slope = sg.value_and_grad(f)
    require_right(f, slope)
    held[3] = held[5]
    require_right(f, slope)


def test_types_of_floats_are_what_they_were() -> None:
    held = held_in("of both")

    def f(p: Any) -> Any:
        return p[0] * sum(isinstance(x, np.float64) for x in held) + p[1] * sum(held)

    assert not any(hidden.kind == "floats" for hidden in captured_of(f).hidden)
    require_right(f, sg.value_and_grad(f))
    held[1] = np.float64(held[1])
    require_right(f, sg.value_and_grad(f))


def test_second_derivatives_and_forward_mode() -> None:
    f = function_of(held_in("pairs"))
    hessian = sg.hessian(f)(P)
    step = 1e-5
    slope = sg.grad(f)
    wanted = np.stack([(slope(P + step * e) - slope(P - step * e)) / (2 * step) for e in np.eye(2)])
    np.testing.assert_allclose(hessian, wanted, rtol=1e-6)
    np.testing.assert_allclose(sg.jvp(f, (P,), (np.ones(2),))[1], np.sum(slope(P)), rtol=1e-12)


def test_small_containers_are_packed_where_there_are_many_inputs() -> None:
    """Of several lists of 60 the first have an input for each float, which the machine of calls reads itself."""
    many: list[list[float]] = [[0.5 * k + j for k in range(60)] for j in range(4)]
    a, b, c, d = many

    def f(p: Any) -> Any:
        return p[0] * np.sum(np.array(a) * np.array(b)) + p[1] * sum(c) * d[3]

    kinds = [hidden.kind for hidden in captured_of(f).hidden]
    assert kinds.count("floats") == 3 and len(kinds) == 63
    require_right(f, sg.value_and_grad(f))


def test_a_trace_with_numbers_has_the_numbers() -> None:
    held = held_in("pairs")
    found = packing.packing(held, lambda item: None, 0)
    assert found is not None
    floats = found.read(held)
    assert floats is not None and floats.shape == (2, 130) and floats.flags.c_contiguous
    assert found.unpacked(floats, held) == held


@pytest.mark.parametrize("items", [[1.0] * 20, [(1.0, 2.0)] * 40, [(1.0,)] * 100 + [(1.0, 2.0)] * 100])
def test_what_is_not_packed(items: list[Any]) -> None:
    """Few floats, and records of several lengths."""
    assert packing.packing(items, lambda item: None, 0) is None
