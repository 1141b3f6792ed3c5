"""Slices, parts and counted numbers as the text of the NumPy backend has them, and that they mean what they meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import srcgrad as sg
from srcgrad.backends.numpy.codegen import generate
from srcgrad.backends.numpy.literals import array_text
from srcgrad.ir.core import Builder, Function, Literal, Value, literal
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.types import FLOAT64, INT64, ArrayType
from tests.backends.numpy.test_codegen import agree

Emit = Callable[..., Value]


def program(
    make: Callable[..., Any], *shapes: tuple[int, ...], returned: Callable[[Any], Any] = lambda found: [found]
) -> tuple[Function, str]:
    """The function of parameters of these shapes, and the lines of its text."""
    builder = Builder()
    params = [builder.param(ArrayType(FLOAT64, shape), "xyz"[place]) for place, shape in enumerate(shapes)]

    def emit(name: str, *operands: Value, **attrs: Any) -> Value:
        return builder.emit(REGISTRY[name], list(operands), attrs)

    function = builder.function("f", returned(make(emit, *params)))
    lines = generate(function, bare=True).text.split('"""\n', 1)[1]
    return function, "".join(line.strip() + "\n" for line in lines.splitlines())


def check(function: Function) -> None:
    rng = np.random.default_rng(0)
    agree(function, [np.asarray(rng.normal(size=param.type.static_shape))[()] for param in function.params])


def part(emit: Emit, x: Value, starts: tuple[int, ...], limits: tuple[int, ...]) -> Value:
    return emit("slice", x, starts=starts, limits=limits, strides=(1,) * len(starts))


def set_part(emit: Emit, x: Value, y: Value, starts: tuple[int, ...], limits: tuple[int, ...]) -> Value:
    return emit("slice_set", x, y, starts=starts, limits=limits, strides=(1,) * len(starts))


def test_a_slice_without_its_axis_is_an_index() -> None:
    function, text = program(
        lambda emit, x: emit("sin", emit("reshape", part(emit, x, (1, 0), (2, 4)), shape=(4,))), (3, 4)
    )
    assert text == "v0 = np.sin(x[1])\nreturn v0\n"
    check(function)


def test_an_index_in_the_middle_keeps_the_other_bounds() -> None:
    function, text = program(
        lambda emit, x: emit("reshape", part(emit, x, (0, 3, 1), (2, 4, 5)), shape=(2, 4)), (2, 4, 5)
    )
    assert text == "v0 = x[:, 3, 1:]\nreturn v0.copy()\n"
    check(function)


def test_an_element_is_a_number() -> None:
    function, text = program(
        lambda emit, x: emit("mul", *[emit("reshape", part(emit, x, (k,), (k + 1,)), shape=()) for k in (0, 2)]), (3,)
    )
    assert text == "v0 = x[0] * x[2]\nreturn v0\n"
    check(function)


def test_an_element_of_every_other_one_is_an_index_without_a_step() -> None:
    """``x[3:4:2]`` has one element; as ``3:2`` it had none, and an assignment to ``0:2`` met two."""
    bounds = {"starts": (3,), "limits": (4,), "strides": (2,)}
    function, text = program(lambda emit, x: emit("exp", emit("reshape", emit("slice", x, **bounds), shape=())), (6,))
    assert text == "v0 = np.exp(x[3])\nreturn v0\n"
    check(function)

    bounds = {"starts": (0,), "limits": (1,), "strides": (2,)}
    function, text = program(
        lambda emit, x, y: emit("slice_set", x, emit("reshape", y, shape=(1,)), **bounds), (6,), ()
    )
    assert "np.s_[0]" in text
    check(function)


def test_axes_of_size_1_are_written_as_people_do() -> None:
    for shape, found in [((1, 3), "x[None]"), ((3, 1), "x[:, None]"), ((1, 3, 1), "x[None, :, None]")]:
        function, text = program(lambda emit, x, shape=shape: emit("exp", emit("reshape", x, shape=shape)), (3,))
        assert text == f"v0 = np.exp({found})\nreturn v0\n"
        check(function)
    function, text = program(lambda emit, x: emit("exp", emit("reshape", x, shape=(3, 2))), (1, 3, 1, 2))
    assert text == "v0 = np.exp(x[0, :, 0])\nreturn v0\n"
    check(function)


def test_other_shapes_are_reshaped() -> None:
    for old, new in [((6,), (2, 3)), ((1, 6), (2, 3)), ((), (1, 1)), ((0, 1), (1, 0, 2)), ((2, 3), (3, 2))]:
        function, text = program(lambda emit, x, new=new: emit("reshape", x, shape=new), old)
        assert f"np.reshape(x, {new})" in text
        check(function)


def filled(emit: Emit, array: Value, parts: list[tuple[Value, int, int]]) -> Value:
    for value, start, stop in parts:
        array = set_part(emit, array, value, (start,), (stop,))
    return array


def number(emit: Emit, x: Value) -> Value:
    return emit("reshape", x, shape=(1,))


def zeros(*shape: int) -> Literal:
    return literal(0.0, ArrayType(FLOAT64, shape))


def test_numbers_that_fill_an_array_are_an_array_of_them() -> None:
    def make(emit: Emit, x: Value, y: Value) -> Value:
        parts = [(number(emit, y), 1, 2), (literal(2.5, ArrayType(FLOAT64, (1,))), 2, 3), (number(emit, x), 0, 1)]
        return filled(emit, zeros(3), parts)

    function, text = program(make, (), ())
    assert text == "v0 = np.array([x, y, np.float64(2.5)])\nreturn v0\n"
    check(function)


def test_parts_that_fill_an_array_are_joined_in_their_order() -> None:
    def make(emit: Emit, x: Value, y: Value) -> Value:
        return filled(emit, zeros(4), [(y, 2, 4), (number(emit, x), 0, 1), (number(emit, emit("sin", x)), 1, 2)])

    function, text = program(make, (), (2,))
    assert "np.concatenate((np.reshape(x, (1,)), np.reshape(np.sin(x), (1,)), y))" in text
    check(function)


def test_rows_and_columns_are_stacked_along_their_axis() -> None:
    def make(emit: Emit, x: Value, y: Value, axis: int) -> Value:
        array = zeros(*((2, 3) if axis == 0 else (3, 2)))
        for place, value in ((1, y), (0, x)):
            row = emit("reshape", value, shape=(1, 3) if axis == 0 else (3, 1))
            starts = (place, 0) if axis == 0 else (0, place)
            limits = (place + 1, 3) if axis == 0 else (3, place + 1)
            array = set_part(emit, array, row, starts, limits)
        return array

    for axis, found in ((0, "np.stack((x, y))"), (1, "np.stack((x, y), axis=1)")):
        function, text = program(lambda emit, x, y, axis=axis: make(emit, x, y, axis), (3,), (3,))
        assert text == f"v0 = {found}\nreturn v0\n"
        check(function)


def test_numbers_that_are_joined_are_an_array_of_them() -> None:
    def make(emit: Emit, x: Value, y: Value) -> Value:
        one = emit("broadcast", emit("sin", x), shape=(1,), dims=())
        return emit("concatenate", one, part(emit, y, (2,), (3,)), number(emit, x), axis=0)

    function, text = program(make, (), (3,))
    assert text == "v0 = np.array([np.sin(x), y[2], x])\nreturn v0\n"
    check(function)
    function, text = program(lambda emit, x, y: emit("concatenate", x, y, axis=0), (1,), (1,))
    assert "v0 = np.concatenate((x, y))" in text
    check(function)


@pytest.mark.parametrize(
    "parts", [[(0, 2), (2, 3)], [(0, 2), (1, 4)], [(0, 4), (1, 2)], [(1, 2), (2, 4)]], ids=lambda parts: str(parts)
)
def test_gaps_and_second_writes_are_kept(parts: list[tuple[int, int]]) -> None:
    def make(emit: Emit, x: Value) -> Value:
        return filled(emit, literal(7.0, x.type), [(part(emit, x, (a,), (b,)), a, b) for a, b in parts])

    function, text = program(make, (4,))
    assert text.count("slice_set(") == 2
    check(function)


def test_an_array_read_before_it_is_full_is_written_twice() -> None:
    def make(emit: Emit, x: Value) -> Any:
        first = set_part(emit, zeros(2), number(emit, x), (0,), (1,))
        return [first, set_part(emit, first, number(emit, emit("neg", x)), (1,), (2,))]

    function, text = program(make, (), returned=lambda found: found)
    assert "slice_set(np.zeros((2,)), x, np.s_[0]" in text
    check(function)


def test_large_arrays_are_written_part_by_part() -> None:
    def make(emit: Emit, x: Value) -> Value:
        halves = [emit("exp", part(emit, x, (500 * k,), (500 * k + 500,))) for k in (0, 1)]
        return filled(emit, zeros(1000), [(half, 500 * k, 500 * k + 500) for k, half in enumerate(halves)])

    function, text = program(make, (1000,))
    assert "concatenate" not in text
    check(function)


@pytest.mark.parametrize(
    ("shape", "lines"),
    [
        ((3, 3), "v0 = np.arange(3)\n    v1 = np.where(v0[:, None] < v0, x, 0.0)\n"),
        ((3, 4), "v0 = np.arange(3)\n    v1 = np.arange(4)\n    v2 = np.where(v0[:, None] < v1, x, 0.0)\n"),
    ],
)
def test_numbers_along_an_axis_are_counted_once(shape: tuple[int, int], lines: str) -> None:
    builder = Builder()
    x = builder.param(ArrayType(FLOAT64, shape), "x")
    rows, columns = (
        builder.emit(REGISTRY["iota"], [], {"shape": shape, "axis": axis, "dtype": INT64}) for axis in (0, 1)
    )
    below = builder.emit(REGISTRY["less"], [rows, columns])
    function = builder.function("f", [builder.emit(REGISTRY["select"], [below, x, zeros(*shape)])])
    assert lines in generate(function, bare=True).text
    check(function)


def test_axes_that_a_broadcast_adds_and_a_reshape_takes_are_none() -> None:
    def make(emit: Emit, x: Value) -> Value:
        spread = emit("broadcast", x, shape=(3, 1, 4), dims=(0, 2))
        return emit("sin", emit("reshape", spread, shape=(3, 4)))

    function, text = program(make, (3, 4))
    assert text == "v0 = np.sin(x)\nreturn v0\n"
    check(function)


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.eye(3), "np.eye(3)"),
        (np.eye(2, 3), "np.eye(2, 3)"),
        (np.eye(3, dtype=np.float32), "np.eye(3, dtype=np.float32)"),
        (np.arange(5), "np.arange(5)"),
        (np.arange(2, 5), "np.arange(2, 5)"),
        (np.arange(3)[::-1], "np.arange(2, -1, -1)"),
        (np.arange(0, 9, 3), "np.arange(0, 9, 3)"),
    ],
)
def test_identities_and_steps_are_named(array: Any, text: str) -> None:
    assert array_text(array) == text
    again = eval(text, {"np": np})
    assert again.dtype == array.dtype
    assert np.array_equal(again, array)


@pytest.mark.parametrize(
    "array",
    [
        -np.eye(3),
        np.array([[1.0, -0.0], [0.0, 1.0]]),
        np.arange(5).astype(np.int32),
        np.array([0, 1, 2, 4]),
        np.array([3, 3, 3]),
        np.eye(3, dtype=bool),
        np.array([-(2**63), 0, 2**62]),
    ],
)
def test_what_is_nearly_one_is_written_out(array: Any) -> None:
    text = array_text(array)
    again = eval(text, {"np": np})
    assert "arange" not in text and "eye" not in text
    assert again.dtype == array.dtype
    assert again.tobytes() == array.tobytes()


@st.composite
def slicing_programs(draw: st.DrawFn) -> Function:
    """A few arrays sliced, reshaped, written to and spread at random."""
    builder = Builder()
    values = [builder.param(ArrayType(FLOAT64, shape), "xy"[k]) for k, shape in enumerate(((2, 3), (4,)))]
    for _ in range(draw(st.integers(2, 9))):
        x = draw(st.sampled_from(values))
        shape = x.type.static_shape
        kind = draw(st.sampled_from(["slice", "index", "slice_set", "fill", "expand", "spread", "sin"]))
        starts = tuple(draw(st.integers(0, max(size - 1, 0))) for size in shape)
        limits = tuple(draw(st.integers(a, size)) for a, size in zip(starts, shape, strict=True))
        attrs = {"starts": starts, "limits": limits, "strides": (1,) * len(shape)}
        if kind in ("slice", "index"):
            x = builder.emit(REGISTRY["slice"], [x], attrs)
            if kind == "index":
                kept = tuple(size for size in x.type.static_shape if size != 1 or draw(st.booleans()))
                x = builder.emit(REGISTRY["reshape"], [x], {"shape": kept})
        elif kind == "slice_set":
            sizes = tuple(b - a for a, b in zip(starts, limits, strict=True))
            others = [value for value in values if value.type.static_shape == sizes]
            if others:
                x = builder.emit(REGISTRY["slice_set"], [x, draw(st.sampled_from(others))], attrs)
        elif kind == "fill" and len(shape) < 3:
            axis = draw(st.integers(0, len(shape)))
            whole = (*shape[:axis], 2, *shape[axis:])
            wide = (*shape[:axis], 1, *shape[axis:])
            array: Value = literal(0.0, ArrayType(FLOAT64, whole))
            for place in draw(st.permutations([0, 1])):
                row = builder.emit(REGISTRY["reshape"], [x], {"shape": wide})
                starts = tuple(place if k == axis else 0 for k in range(len(whole)))
                limits = tuple(place + 1 if k == axis else size for k, size in enumerate(whole))
                bounds = {"starts": starts, "limits": limits, "strides": (1,) * len(whole)}
                array = builder.emit(REGISTRY["slice_set"], [array, row], bounds)
            x = array
        elif kind == "expand":
            place = draw(st.integers(0, len(shape)))
            x = builder.emit(REGISTRY["reshape"], [x], {"shape": (*shape[:place], 1, *shape[place:])})
        elif kind == "spread" and len(shape) < 4:
            size = draw(st.integers(1, 2))
            dims = tuple(range(1, len(shape) + 1))
            x = builder.emit(REGISTRY["broadcast"], [x], {"shape": (size, *shape), "dims": dims})
        else:
            x = builder.emit(REGISTRY["sin"], [x])
        values.append(x)
    return builder.function("f", draw(st.lists(st.sampled_from(values), min_size=1, max_size=3)))


@given(slicing_programs())
def test_random_slices_mean_what_they_meant(function: Function) -> None:
    check(function)


def test_a_gradient_of_unpacked_numbers_reads_well() -> None:
    def f(theta):  # type: ignore[no-untyped-def]
        a, b, c = theta
        return a * np.sin(b) + c * b

    text = sg.source(sg.grad(f, backend="numpy"))(np.array([0.3, 0.4, 0.5]))
    assert "theta_bar = np.array([v3, v5, v1])" in text
