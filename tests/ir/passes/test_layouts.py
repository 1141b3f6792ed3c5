"""Arrays that loops handle by columns: with these first, programs give the same, bit by bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.fft
from hypothesis import given, settings
from hypothesis import strategies as st

import srcgrad as sg
from srcgrad.ir.core import Builder, Function, Operation, Region, Value, literal
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.parser import parse
from srcgrad.ir.passes import layouts
from srcgrad.ir.passes.layouts import by_rows
from srcgrad.ir.types import BOOL, FLOAT64, INT64, ArrayType
from srcgrad.ir.verify import verify
from tests.ir.ops.harness import run

ROWS, COLUMNS = 4, 6
COUNT, NUMBER = ArrayType(INT64), ArrayType(FLOAT64)
ARRAY = ArrayType(FLOAT64, (ROWS, COLUMNS, 3))
COLUMN = ArrayType(FLOAT64, (ROWS, 3))

# --- how random programs are made -------------------------------------------------------------------------------------


class Step(NamedTuple):
    """What is done to array ``one`` of three, the last of which is a constant, with what was read, at ``at``."""

    kind: str
    one: int
    at: int


class Inner(NamedTuple):
    """A branch, or a loop inside, which has the arrays for carries, or for constants where it only reads."""

    kind: str
    steps: tuple[Step, ...]


USUAL = ["read", "read", "write", "write", "add", "element", "put", "number", "swap", "thin", "cut"]
STEPS = st.builds(
    Step, st.sampled_from([*USUAL, "whole", "rows", "given"]), st.integers(0, 2), st.integers(0, COLUMNS - 1)
)
INNER = st.builds(
    Inner, st.sampled_from(["loop", "branch", "reading"]), st.lists(STEPS, min_size=1, max_size=3).map(tuple)
)
PROGRAMS = st.lists(st.one_of(STEPS, STEPS, INNER), min_size=1, max_size=7)


def emit(builder: Builder, name: str, *operands: Value, **attrs: Any) -> Value:
    return builder.emit(REGISTRY[name], operands, attrs)


class Trip:
    """Emits the steps of a trip: ``arrays`` as they are by then, and the last column that was read."""

    def __init__(self, builder: Builder, arrays: list[Value], index: Value, last: Value) -> None:
        self.builder = builder
        self.arrays = arrays
        self.index = index
        self.last = last
        self.given: list[Value] = []

    def at(self, offset: int) -> Value:
        moved = emit(self.builder, "add", self.index, literal(offset, COUNT))
        return emit(self.builder, "remainder", moved, literal(COLUMNS, COUNT))

    def step(self, step: Step) -> None:
        builder, k, one = self.builder, self.at(step.at), self.arrays[step.one]
        row, last = literal(step.at % ROWS, COUNT), literal(step.at % 3, COUNT)
        thin = {"starts": (1, step.at, 0), "limits": (ROWS, step.at + 1, 3), "strides": (2, 1, 2)}
        kind = step.kind
        if step.one == 2 and kind in ("write", "add", "put", "swap", "cut", "number"):
            kind = "read"
        if kind == "read":
            self.last = emit(builder, "sin", emit(builder, "gather", one, k, axis=1))
        elif kind == "write":
            self.arrays[step.one] = emit(builder, "scatter_set", one, self.last, k, axis=1)
        elif kind == "add":
            self.arrays[step.one] = emit(builder, "scatter_add", one, self.last, k, axis=1)
        elif kind == "element":
            number = emit(builder, "gather", one, row, k, last, axis=0)
            self.last = emit(builder, "add", self.last, emit(builder, "broadcast", number, shape=(ROWS, 3), dims=()))
        elif kind == "put":
            number = emit(builder, "gather", self.last, row, last, axis=0)
            self.arrays[step.one] = emit(builder, "scatter_set", one, number, row, k, last, axis=0)
        elif kind == "number":
            self.arrays[step.one] = literal(0.25 * step.at, ARRAY)
        elif kind == "swap":
            self.arrays[:2] = self.arrays[1], self.arrays[0]
        elif kind == "thin":
            part = emit(builder, "reduce_sum", emit(builder, "slice", one, **thin), axes=(0, 1, 2))
            self.last = emit(builder, "mul", self.last, emit(builder, "broadcast", part, shape=(ROWS, 3), dims=()))
        elif kind == "cut":
            part = emit(builder, "slice", self.last, starts=(0, 0), limits=(2, 2), strides=(1, 1))
            part = emit(builder, "reshape", part, shape=(2, 1, 2))
            self.arrays[step.one] = emit(builder, "slice_set", one, part, **thin)
        elif kind == "whole":
            self.last = emit(builder, "add", self.last, emit(builder, "reduce_sum", one, axes=(1,)))
        elif kind == "rows":
            number = emit(builder, "reduce_sum", emit(builder, "gather", one, row, axis=0), axes=(0, 1))
            self.last = emit(builder, "add", self.last, emit(builder, "broadcast", number, shape=(ROWS, 3), dims=()))
        else:
            self.given.append(one)

    def inner(self, inner: Inner) -> None:
        builder = Builder()
        index = builder.param(COUNT) if inner.kind != "branch" else None
        arrays = [builder.param(ARRAY) for _ in range(3)]
        outer, last = builder.param(COUNT), builder.param(COLUMN)
        trip = Trip(builder, arrays, emit(builder, "add", outer, index) if index is not None else outer, last)
        for step in inner.steps:
            if inner.kind != "reading" or step.kind in ("read", "element", "thin"):
                trip.step(step)
        given = [*self.arrays, self.index, self.last]
        if inner.kind == "branch":
            region = builder.region([*trip.arrays[:2], trip.last])
            other = Builder()
            params = [other.param(value.type) for value in given]
            bare = other.region([params[1], params[0], params[4]])
            even = emit(self.builder, "remainder", self.index, literal(2, COUNT))
            predicate = emit(self.builder, "equal", even, literal(0, COUNT))
            found = self.builder.emit_operation(REGISTRY["cond"], [predicate, *given], {}, [region, bare]).results
            self.arrays[:2], self.last = list(found[:2]), found[2]
            return
        attrs = {"trips": 3, "reverse": False}
        params = builder.params
        if inner.kind == "reading":
            region = Region([params[0], params[5], *params[1:5]], builder.operations, [trip.last])
            operands = [self.last, *given[:4]]
            (self.last,) = self.builder.emit_operation(
                REGISTRY["for"], operands, {**attrs, "carries": 1, "consts": 4}, [region]
            ).results
            return
        region = Region(
            [params[0], *params[1:3], params[5], params[3], params[4]],
            builder.operations,
            [*trip.arrays[:2], trip.last],
        )
        operands = [*self.arrays[:2], self.last, self.arrays[2], self.index]
        found = self.builder.emit_operation(
            REGISTRY["for"], operands, {**attrs, "carries": 3, "consts": 2}, [region]
        ).results
        self.arrays[:2], self.last = list(found[:2]), found[2]


def program(steps: list[Step | Inner], constant: bool) -> Function:
    builder, inside = Builder(), Builder()
    x, y, z = (builder.param(ARRAY, name) for name in "xyz")
    first = emit(builder, "slice", x, starts=(0, 0, 0), limits=(ROWS, 1, 3), strides=(1, 1, 1))
    index = inside.param(COUNT)
    arrays = [inside.param(ARRAY) for _ in range(2)]
    last, fixed = inside.param(COLUMN), inside.param(ARRAY)
    trip = Trip(inside, [*arrays, fixed], index, last)
    for step in steps:
        trip.step(step) if isinstance(step, Step) else trip.inner(step)
    region = inside.region([*trip.arrays[:2], trip.last, *trip.given])
    initial: Value = emit(builder, "slice_set", literal(0.5, ARRAY), first, **start()) if constant else y
    operands = [x, initial, emit(builder, "reshape", first, shape=(ROWS, 3)), z]
    attrs = {"trips": COLUMNS, "carries": 3, "consts": 1, "reverse": False}
    found = builder.emit_operation(REGISTRY["for"], operands, attrs, [region]).results
    return builder.function("f", [*found, emit(builder, "add", found[0], found[1])])


def start() -> dict[str, Any]:
    return {"starts": (0, 2, 0), "limits": (ROWS, 3, 3), "strides": (1, 1, 1)}


@pytest.fixture(autouse=True)
def small_arrays_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layouts, "SMALLEST", 4)


def arguments() -> list[Any]:
    return list(np.random.default_rng(5).normal(size=(3, ROWS, COLUMNS, 3)))


# --- what is turned, and what is not ----------------------------------------------------------------------------------


def columns_of(function: Function) -> list[Operation]:
    """What reads or writes columns in loops."""
    return [operation for operation in function.walk() if operation.op.name in layouts.INDEXED and axis(operation)]


def axis(operation: Operation) -> int:
    found: int = operation.attrs["axis"]
    return found


def loop(body: str, results: str = "%y", operand: str = "%x", trips: int = 6) -> Function:
    return parse(f"""func @f(%x: f64[4,6], %n: i64[], %w: f64[6,4]) -> (f64[4,6]) {{
      %y: f64[4,6] = for {operand}, %n {{trips={trips}, carries=1, consts=1, reverse=false}}
        body (%k: i64[], %y: f64[4,6], %n: i64[]) {{
          %0: f64[4] = gather %y, %k {{axis=1}}
          {body}
        }}
      return {results}
    }}""")


WRITTEN = """%1: f64[4] = sin %0
          %2: f64[4,6] = scatter_set %y, %1, %k {axis=1}
          yield %2"""


@pytest.mark.parametrize(
    ("body", "trips", "turned"),
    [
        pytest.param(WRITTEN, 6, True, id="columns"),
        pytest.param(WRITTEN, 2, False, id="few trips"),
        pytest.param(
            """%1: f64[4] = sin %0
          %2: f64[4,6] = scatter_set %y, %1, %k {axis=1}
          %3: f64[4,6] = sin %2
          yield %3""",
            6,
            False,
            id="all of it",
        ),
        pytest.param(
            """%1: f64[6] = gather %y, %n {axis=0}
          %2: f64[4,6] = scatter_set %y, %1, %n {axis=0}
          %3: f64[4,6] = scatter_set %2, %0, %k {axis=1}
          yield %3""",
            6,
            False,
            id="rows too",
        ),
        pytest.param(
            """%1: f64[] = gather %y, %n, %k {axis=0}
          %2: f64[4,6] = scatter_set %y, %1, %n, %n {axis=0}
          %3: f64[4,6] = scatter_set %2, %0, %k {axis=1}
          yield %3""",
            6,
            True,
            id="elements too",
        ),
    ],
)
def test_what_is_handled_by_columns_alone_is_turned(body: str, trips: int, turned: bool) -> None:
    function = loop(body, trips=trips)
    found = by_rows(function)
    assert (not columns_of(found)) == turned
    assert (found is function) != turned
    x, w = np.random.default_rng(1).normal(size=(2, 4, 6))
    (one,), (other,) = (run(each, [x, np.array(3), w.T]) for each in (function, found))
    np.testing.assert_array_equal(one, other)


def test_what_two_loops_handle_is_not_turned_between_them() -> None:
    function = parse("""func @f(%x: f64[4,6]) -> (f64[4,6]) {
      %y: f64[4,6] = for %x {trips=6, carries=1, consts=0, reverse=false}
        body (%k: i64[], %y: f64[4,6]) {
          %0: f64[4] = gather %y, %k {axis=1}
          %1: f64[4] = sin %0
          %2: f64[4,6] = scatter_set %y, %1, %k {axis=1}
          yield %2
        }
      %z: f64[4,6] = for 0.0:f64[4,6], %y {trips=6, carries=1, consts=1, reverse=false}
        body (%k: i64[], %z: f64[4,6], %y: f64[4,6]) {
          %0: f64[4] = gather %y, %k {axis=1}
          %1: f64[4,6] = scatter_add %z, %0, %k {axis=1}
          yield %1
        }
      return %z
    }""")
    names = [operation.op.name for operation in by_rows(function).operations]
    assert names == ["transpose", "for", "for", "transpose"]


def recurrence(x: Any) -> Any:
    y = np.zeros_like(x)
    y[:, 0] = x[:, 0]
    for t in range(1, x.shape[1]):
        y[:, t] = 0.5 * y[:, t - 1] + np.sin(x[:, t]) * y[:, t - 1]
    return np.sum(y**2)


def in_three_dimensions(x: Any) -> Any:
    """The sweeps of a system of three diagonals along the last axis."""
    a = x.reshape(3, -1, x.shape[1])
    c, d = np.zeros_like(a), np.zeros_like(a)
    for k in range(a.shape[2]):
        m = 1.0 / (4.0 - (c[:, :, k - 1] if k else 0.0))
        c[:, :, k] = m
        d[:, :, k] = (a[:, :, k] + (d[:, :, k - 1] if k else 0.0)) * m
    for k in range(a.shape[2] - 2, -1, -1):
        d[:, :, k] -= c[:, :, k] * d[:, :, k + 1]
    return np.sum(d**2)


def product(x: Any) -> Any:
    """Rows of a triangle by columns of another array."""
    a, b = np.tril(x[:6]), x[6:12].copy()
    for i in range(6):
        for j in range(b.shape[1]):
            b[i, j] += np.dot(a[i + 1 :, i], b[i + 1 :, j])
    return np.sum(np.sin(b))


@pytest.mark.parametrize("function", [recurrence, in_three_dimensions, product])
def test_derivatives(function: Callable[[Any], Any]) -> None:
    x = np.random.default_rng(2).uniform(0.1, 1.0, size=(12, 70))
    differences = np.zeros_like(x)
    for place in np.ndindex(*x.shape):
        step = np.zeros_like(x)
        step[place] = 1e-5
        differences[place] = (function(x + step) - function(x - step)) / 2e-5
    for argument in (x, np.asfortranarray(x), x[::-1][::-1]):
        value, slope = sg.value_and_grad(function)(argument)
        np.testing.assert_allclose(value, function(argument), rtol=1e-12)
        np.testing.assert_allclose(slope, differences, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("function", [recurrence, in_three_dimensions])
def test_loops_of_a_derivative_handle_rows(function: Callable[[Any], Any]) -> None:
    x = np.random.default_rng(2).uniform(0.1, 1.0, size=(12, 70))
    shown = str(sg.explain(sg.grad(function))(x))
    program = shown.partition("--- optimised ir")[2].partition("--- llvm source")[0]
    made = parse(program[program.index("func @") :].partition("\n}")[0] + "\n}")
    assert columns_of(made)
    assert not columns_of(by_rows(made))


def test_flags_are_turned_too() -> None:
    function = parse("""func @f(%x: bool[4,6]) -> (bool[4,6]) {
      %y: bool[4,6] = for %x {trips=6, carries=1, consts=0, reverse=true}
        body (%k: i64[], %y: bool[4,6]) {
          %0: bool[4,6] = scatter_set %y, true:bool[4], %k {axis=1}
          yield %0
        }
      return %y
    }""")
    assert by_rows(function).operations[1].results[0].type == ArrayType(BOOL, (6, 4))


def shifted(x: Any, by: Any) -> Any:
    y = np.zeros_like(x)
    for t in range(70):
        y[:, t] = np.sin(x[:, t + by])
    return np.sum(y**2)


def shifted_beside_a_line_of_numpy(x: Any, by: Any) -> Any:
    return shifted(x, by) + np.sum(scipy.fft.dct(x[0]) ** 2)


@pytest.mark.parametrize("function", [shifted, shifted_beside_a_line_of_numpy])
def test_errors_name_the_axes_of_the_function(function: Callable[..., Any]) -> None:
    x = np.random.default_rng(2).normal(size=(12, 70))
    slope = sg.grad(function)
    np.testing.assert_allclose(slope(x, 0), sg.grad(function, backend="numpy")(x, 0))
    with pytest.raises(IndexError, match="index 70 is out of bounds for axis 1 with size 70"):
        slope(x, 1)


# --- random programs give the same ------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(PROGRAMS, st.booleans())
def test_programs_give_the_same(steps: list[Step | Inner], constant: bool) -> None:
    function = program(steps, constant)
    verify(function)
    found = by_rows(function)
    verify(found)
    with np.errstate(all="ignore"):
        for one, other in zip(run(function, arguments()), run(found, arguments()), strict=True):
            np.testing.assert_array_equal(one, other)


def test_random_programs_hold_both_arrays_that_are_turned_and_arrays_that_are_not() -> None:
    """Else the test above would say little."""
    found, left = 0, 0

    @settings(max_examples=100, database=None, derandomize=True, deadline=None)
    @given(PROGRAMS)
    def count(steps: list[Step | Inner]) -> None:
        nonlocal found, left
        for operation in by_rows(program(steps, True)).walk():
            if operation.op.name in ("gather", "scatter_set", "scatter_add"):
                found += operation.attrs["axis"] == 0 and operation.operands[0].type.shape == (COLUMNS, ROWS, 3)
                left += operation.attrs["axis"] == 1

    count()
    assert min(found, left) > 20, (found, left)
