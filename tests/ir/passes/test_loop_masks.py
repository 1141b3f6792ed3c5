"""Masks that loops carry: what is taken for True is, and a mask that says nothing is not carried."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import srcgrad as sg
from srcgrad.ir.core import Builder, Function, Literal, Region, Value, literal
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.parser import parse
from srcgrad.ir.passes.dce import dce
from srcgrad.ir.passes.masks import Search, without_masks
from srcgrad.ir.passes.places import whole
from srcgrad.ir.types import BOOL, INT64, ArrayType
from srcgrad.ir.verify import verify
from tests.ir.ops.harness import run

# --- random programs --------------------------------------------------------------------------------------------------

SIZE = 8
COUNT = ArrayType(INT64)
MASK = ArrayType(BOOL, (SIZE, 2))
ROW = ArrayType(BOOL, (2,))


class Index(NamedTuple):
    """``start + step * trip + inner * (trip of the loop inside)``."""

    start: int
    step: int
    inner: int


class Step(NamedTuple):
    """One operation on a mask: its kind, which mask, where, and what it writes (a truth value, or what was read).

    ``either`` writes the last read or True in part; ``part`` reads the first element of a row, and gives it for both.
    """

    kind: str
    mask: int
    index: Index
    written: str


class Loop(NamedTuple):
    trips: int
    reverse: bool
    steps: tuple[Any, ...]
    """Steps, or a loop inside, whose trips get fewer by one in each trip of this one where ``shrinks``."""
    shrinks: bool = False


INDICES = st.builds(Index, st.integers(-SIZE, SIZE - 1), st.integers(-1, 2), st.integers(-1, 1))
NEAR = st.builds(Index, st.integers(0, 3), st.integers(0, 1), st.integers(0, 1))
"""Few places, so that those of different operations and trips meet."""
WRITTEN = st.sampled_from(["false", "true", "part", "read", "either"])
STEPS = st.one_of(
    st.builds(
        Step,
        st.sampled_from(["gather", "gather", "part", "scatter_set", "scatter_add", "slice_set", "slice"]),
        st.integers(0, 1),
        INDICES,
        WRITTEN,
    ),
    st.builds(
        Step, st.sampled_from(["scatter_set", "gather", "part", "scatter_add"]), st.integers(0, 1), NEAR, WRITTEN
    ),
)
INNER = st.builds(
    Loop, st.integers(0, 4), st.booleans(), st.lists(STEPS, min_size=1, max_size=3).map(tuple), st.booleans()
)
LOOPS = st.builds(
    Loop, st.integers(0, 5), st.booleans(), st.lists(st.one_of(STEPS, INNER), min_size=1, max_size=5).map(tuple)
)
STARTS = st.sampled_from(["true", "false", "part"])


def constant(builder: Builder, number: int) -> Value:
    return literal(number, COUNT)


def emit(builder: Builder, name: str, *operands: Value, **attrs: Any) -> Value:
    return builder.emit(REGISTRY[name], operands, attrs)


class Body:
    """Emits the steps of a trip."""

    def __init__(self, builder: Builder, masks: list[Value], trip: Value, inner: Value | None) -> None:
        self.builder = builder
        self.masks = masks
        self.trip = trip
        self.inner = inner
        self.reads: list[Value] = []

    def index(self, index: Index) -> Value:
        value = constant(self.builder, index.start)
        for trip, factor in ((self.trip, index.step), (self.inner, index.inner)):
            if trip is not None and factor:
                trip = emit(self.builder, "mul", constant(self.builder, factor), trip) if factor > 1 else trip
                value = emit(self.builder, "add" if factor > 0 else "sub", value, trip)
        # An index out of bounds is an error: the ones here wrap.
        return emit(self.builder, "remainder", value, constant(self.builder, SIZE)) if self.may_leave(index) else value

    def may_leave(self, index: Index) -> bool:
        reach = [index.start]
        for trip, factor, most in ((self.trip, index.step, 4), (self.inner, index.inner, 3)):
            if trip is not None:
                reach += [end + factor * most for end in reach]
        return min(reach) < -SIZE or max(reach) >= SIZE

    def step(self, step: Step) -> None:
        builder, mask = self.builder, self.masks[step.mask]
        if step.kind in ("slice", "slice_set"):
            row = step.index.start % SIZE
            bounds = {"starts": (row, 0), "limits": (row + 1, 2), "strides": (1, 1)}
        if step.kind == "gather":
            self.reads.append(emit(builder, "gather", mask, self.index(step.index), axis=0))
        elif step.kind == "part":
            row = emit(builder, "gather", mask, self.index(step.index), axis=0)
            first = emit(builder, "slice", row, starts=(0,), limits=(1,), strides=(1,))
            self.reads.append(emit(builder, "broadcast", first, shape=(2,), dims=(0,)))
        elif step.kind == "slice":
            self.reads.append(emit(builder, "reshape", emit(builder, "slice", mask, **bounds), shape=(2,)))
        else:
            value: Value = literal(step.written == "true", ROW)
            if step.written in ("part", "either"):
                first = literal(True, ArrayType(BOOL, (1,)))
                value = emit(builder, "slice_set", value, first, starts=(0,), limits=(1,), strides=(1,))
            if step.written == "read" and self.reads:
                value = self.reads[-1]
            elif step.written == "either" and self.reads:
                value = emit(builder, "logical_or", self.reads[-1], value)
            if step.kind == "slice_set":
                self.masks[step.mask] = emit(
                    builder, "slice_set", mask, emit(builder, "reshape", value, shape=(1, 2)), **bounds
                )
            else:
                self.masks[step.mask] = emit(builder, step.kind, mask, value, self.index(step.index), axis=0)

    def all(self, steps: tuple[Any, ...]) -> None:
        for step in steps:
            if isinstance(step, Step):
                self.step(step)
            else:
                self.masks, ended = loop(self.builder, step, self.masks, self.trip)
                self.reads += ended


def loop(
    builder: Builder, made: Loop, masks: list[Value], outer: Value | None = None
) -> tuple[list[Value], list[Value]]:
    """The masks after a loop, and what its trips read: columns where it is the outer one, else of the last trip."""
    inside = Builder()
    trip = inside.param(COUNT, "trip")
    carried = [inside.param(mask.type) for mask in masks]
    last = None if outer is None else inside.param(ROW)
    given = None if outer is None else inside.param(COUNT)
    body = Body(inside, carried, trip if given is None else given, None if given is None else trip)
    body.all(made.steps)
    attrs = {"trips": made.trips, "reverse": made.reverse}
    if outer is None:
        region = inside.region([*body.masks, *body.reads])
        found = builder.emit_operation(REGISTRY["for"], masks, {**attrs, "carries": 2, "consts": 0}, [region]).results
        return list(found[:2]), list(found[2:])
    assert last is not None
    region = inside.region([*body.masks, body.reads[-1] if body.reads else last])
    operands: list[Value] = [*masks, literal(True, ROW), outer]
    if made.shrinks:
        left = emit(builder, "sub", constant(builder, made.trips), outer)
        operands.insert(0, emit(builder, "maximum", left, constant(builder, 0)))
        attrs["trips"] = None
    found = builder.emit_operation(REGISTRY["for"], operands, {**attrs, "carries": 3, "consts": 1}, [region]).results
    return list(found[:2]), [found[2]]


def program(loops: list[Loop], starts: tuple[str, str]) -> Function:
    builder = Builder()
    flag = builder.param(ArrayType(BOOL, (1, 2)), "flag")
    masks: list[Value] = []
    for start in starts:
        mask: Value = literal(start != "false", MASK)
        if start == "part":
            mask = emit(builder, "slice_set", mask, flag, starts=(3, 0), limits=(4, 2), strides=(1, 1))
        masks.append(mask)
    results: list[Value] = []
    for made in loops:
        masks, columns = loop(builder, made, masks)
        results += columns
        results += [
            emit(builder, "slice", mask, starts=(row, 0), limits=(row + 2, 2), strides=(1, 1))
            for mask in masks
            for row in (0, 3)
        ]
    return builder.function("f", [*results, *masks])


@settings(max_examples=150, deadline=None)
@given(st.lists(LOOPS, min_size=1, max_size=2), st.tuples(STARTS, STARTS), st.booleans())
def test_what_is_taken_for_true_is_true(loops: list[Loop], starts: tuple[str, str], flag: bool) -> None:
    function = program(loops, starts)
    verify(function)
    found = without_masks(function)
    verify(found)
    argument = np.full((1, 2), flag)
    for one, other in zip(run(function, [argument]), run(found, [argument]), strict=True):
        np.testing.assert_array_equal(one, other)


def test_random_programs_hold_both_masks_that_are_true_and_masks_that_are_not() -> None:
    """Else the test above would say little."""
    found, left = 0, 0

    @settings(max_examples=60, database=None, derandomize=True, deadline=None)
    @given(st.lists(LOOPS, min_size=1, max_size=2))
    def count(loops: list[Loop]) -> None:
        nonlocal found, left
        for result in without_masks(program(loops, ("true", "false"))).results:
            if isinstance(result, Literal):
                found += 1
            else:
                left += 1

    count()
    assert min(found, left) > 60, (found, left)


@pytest.mark.parametrize("count", [0, 1])
def test_what_a_loop_inside_fills_is_not_filled_where_that_has_no_trip(count: int) -> None:
    function = parse("""func @f(%n: i64[]) -> (bool[4]) {
      %m: bool[5], %0: bool[4] = for true:bool[5], %n {trips=4, carries=1, consts=1, reverse=false}
        body (%k: i64[], %m: bool[5], %n: i64[]) {
          %0: bool[] = gather %m, %k {axis=0}
          %1: i64[] = add %k, 1
          %2: bool[5] = scatter_set %m, false, %1 {axis=0}
          %3: bool[5] = for %n, %2, %1 {trips=none, carries=1, consts=1, reverse=false}
            body (%j: i64[], %m: bool[5], %k: i64[]) {
              %0: bool[5] = scatter_set %m, true, %k {axis=0}
              yield %0
            }
          yield %3, %0
        }
      return %0
    }""")
    (found,) = run(without_masks(function), [np.array(count)])
    np.testing.assert_array_equal(found, [True] + 3 * [count > 0])


def filled_by_loops_in_loops(trips: int, where: str, cleared: str) -> Function:
    """A mask of which two loops write elements, in three trips, and what it is as each of these begins."""
    return parse(f"""func @f() -> (bool[4,7], bool[3,4,7]) {{
      %m: bool[4,7], %r: bool[3,4,7] = for false:bool[4,7] {{trips=3, carries=1, consts=0, reverse=false}}
        body (%i: i64[], %m: bool[4,7]) {{
          %a: bool[4,7] = for %m {{trips={trips}, carries=1, consts=0, reverse=true}}
            body (%j: i64[], %m: bool[4,7]) {{
              %b: bool[4,7] = for %m, %j {{trips=4, carries=1, consts=1, reverse=false}}
                body (%k: i64[], %m: bool[4,7], %j: i64[]) {{
                  %up: i64[] = sub 3, %k
                  %left: i64[] = sub 6, %j
                  %twice: i64[] = add %k, %k
                  %both: i64[] = add %k, %j
                  %0: bool[4,7] = scatter_set %m, true, {where} {{axis=0}}
                  %1: bool[4,7] = scatter_set %0, {"false" if cleared else "true"}, {cleared or where} {{axis=0}}
                  yield %1
                }}
              yield %b
            }}
          yield %a, %m
        }}
      return %m, %r
    }}""")


@pytest.mark.parametrize(
    ("trips", "where", "cleared", "known"),
    [
        (7, "%k, %j", "", True),
        (7, "%k, %left", "", True),
        (7, "%up, %j", "", True),
        (6, "%k, %j", "", False),
        (4, "%j, %twice", "", False),
        (4, "%k, %both", "", False),
        (7, "%k, %j", "%up, %j", False),
    ],
)
def test_what_all_trips_of_loops_in_loops_fill_is_filled(trips: int, where: str, cleared: str, known: bool) -> None:
    """Together, after them: so the next trip of the loop around reads what the one before has filled."""
    function = filled_by_loops_in_loops(trips, where, cleared)
    found = without_masks(function)
    for one, other in zip(run(function, []), run(found, []), strict=True):
        np.testing.assert_array_equal(one, other)
    assert isinstance(found.results[0], Literal) is known


def test_what_is_supposed_of_a_part_says_nothing_of_the_rest() -> None:
    """Each trip turns the mask, whose first column alone is True at first, and which each trip reads."""
    function = parse("""func @f(%x: bool[2,2]) -> (bool[3,2,1]) {
      %0: bool[2,2] = slice_set false:bool[2,2], true:bool[2,1] {starts=[0,0], limits=[2,1], strides=[1,1]}
      %m: bool[2,2], %1: bool[3,2,1] = for %0 {trips=3, carries=1, consts=0, reverse=false}
        body (%k: i64[], %m: bool[2,2]) {
          %0: bool[2,1] = slice %m {starts=[0,0], limits=[2,1], strides=[1,1]}
          %1: bool[2,2] = transpose %m {perm=[1,0]}
          yield %1, %0
        }
      return %1
    }""")
    argument = np.zeros((2, 2), bool)
    (expected,), (found,) = run(function, [argument]), run(without_masks(function), [argument])
    np.testing.assert_array_equal(found, expected)
    assert not expected.all()


def test_what_is_known_on_a_supposition_is_not_known_without_it() -> None:
    """Whether the read element is True is found out by supposing that all of the mask is, which is then asked for."""
    function = parse("""func @f(%x: bool[9]) -> (bool[9]) {
      %m: bool[9], %last: bool[9] = for true:bool[9], true:bool[9], %x {trips=9, carries=2, consts=1, reverse=false}
        body (%k: i64[], %m: bool[9], %r: bool[9], %x: bool[9]) {
          %0: bool[] = gather %m, %k {axis=0}
          %1: bool[9] = broadcast %0 {shape=[9], dims=[]}
          %2: bool[9] = logical_or %1, %m
          %3: bool[9] = slice %2 {starts=[0], limits=[9], strides=[1]}
          %4: bool[9] = logical_and %m, %x
          yield %4, %3
        }
      return %last
    }""")
    (found,) = run(without_masks(function), [np.zeros(9, bool)])
    assert not found.any()


def test_a_loop_inside_has_other_trips_in_other_trips() -> None:
    """One in the last one, which clears element 0, while the first one clears them all."""
    function = parse("""func @f(%x: bool[4]) -> (bool[1]) {
      %m: bool[4] = for true:bool[4] {trips=4, carries=1, consts=0, reverse=false}
        body (%k: i64[], %m: bool[4]) {
          %0: i64[] = sub 4, %k
          %1: bool[4] = for %0, %m {trips=none, carries=1, consts=0, reverse=false}
            body (%j: i64[], %m: bool[4]) {
              %0: bool[4] = scatter_set %m, false, %j {axis=0}
              yield %0
            }
          yield %1
        }
      %0: bool[1] = slice %m {starts=[1], limits=[2], strides=[1]}
      return %0
    }""")
    (found,) = run(without_masks(function), [np.ones(4, bool)])
    assert not found


def test_what_is_filled_behind_makes_up_for_its_own_place_alone() -> None:
    function = parse("""func @f(%x: bool[4]) -> (bool[], bool[]) {
      %0: bool[4] = scatter_set true:bool[4], false, 1 {axis=0}
      %1: bool[4] = scatter_set %0, true, 2 {axis=0}
      %2: bool[4] = scatter_set %1, false, 3 {axis=0}
      %3: bool[4] = scatter_add %2, true, 3 {axis=0}
      %4: bool[] = gather %3, 1 {axis=0}
      %5: bool[] = gather %3, 3 {axis=0}
      return %4, %5
    }""")
    found = without_masks(function)
    assert [isinstance(result, Literal) for result in found.results] == [False, True]
    assert [bool(value) for value in run(found, [np.ones(4, bool)])] == [False, True]


def test_integers_that_take_many_operations_are_any_number() -> None:
    builder = Builder()
    inside = Builder()
    trip, mask = inside.param(COUNT, "trip"), inside.param(MASK)
    index = trip
    for _ in range(3000):
        index = emit(inside, "sub", emit(inside, "add", index, trip), trip)
    read = emit(inside, "gather", mask, index, axis=0)
    written = emit(inside, "scatter_set", mask, literal(False, ROW), index, axis=0)
    attrs = {"trips": 5, "reverse": False, "carries": 1, "consts": 0}
    made = builder.emit_operation(REGISTRY["for"], [literal(True, MASK)], attrs, [inside.region([written, read])])
    function = builder.function("f", list(made.results))
    for one, other in zip(run(function, []), run(without_masks(function), []), strict=True):
        np.testing.assert_array_equal(one, other)


# --- derivatives ------------------------------------------------------------------------------------------------------


def recurrence(x: Any) -> Any:
    y = np.zeros_like(x)
    y[:, 0] = x[:, 0]
    y[:, 1] = np.sin(x[:, 1]) + 0.3 * y[:, 0]
    for j in range(2, x.shape[1]):
        y[:, j] = np.sqrt(x[:, j] ** 2 + 1) + 0.3 * y[:, j - 1] * y[:, j - 2]
    return np.sum(y**2)


def twice_in_a_trip(x: Any) -> Any:
    y, z = np.zeros_like(x), np.zeros_like(x)
    z[:, 0] = x[:, 0]
    for k in range(1, x.shape[1] - 1):
        y[:, k] = x[:, k + 1] * x[:, k]
        z[:, k] = y[:, k] + x[:, k]
        y[:, k] = y[:, k] / (2 + z[:, k - 1] ** 2)
        z[:, k] = (z[:, k] - 0.1 * z[:, k - 1]) * y[:, k]
    last = z[:, -2]
    for k in range(x.shape[1] - 3, -1, -1):
        last = z[:, k] - y[:, k] * last
        z[:, k] = np.sin(last)
    return np.sum(z**2)


def orthogonal(x: Any) -> Any:
    a, q, r = x.copy(), np.zeros_like(x), np.zeros((x.shape[1], x.shape[1]))
    for k in range(x.shape[1]):
        r[k, k] = np.sqrt(a[:, k] @ a[:, k])
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, x.shape[1]):
            r[k, j] = q[:, k] @ a[:, j]
            a[:, j] -= q[:, k] * r[k, j]
    return np.sum(q**3) + np.sum(r**2)


def within_borders(x: Any) -> Any:
    """Each trip writes a part of a column, and reads that of the one before."""
    n = x.shape[0]
    y = x.copy()
    for j in range(1, x.shape[1]):
        y[1 : n - 1, j] = x[1 : n - 1, j] * np.sqrt(1.0 + y[1 : n - 1, j - 1] ** 2)
    return np.sum(y[1 : n - 1] ** 2)


def eliminated(x: Any) -> Any:
    """Each trip writes an element over by what it was: its adjoint is cleared, and filled again."""
    n = x.shape[1]
    a = x[:n] + 5.0 * np.eye(n)
    for i in range(n):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, n):
            a[i, j] -= a[i, :i] @ a[:i, j]
    return np.sum(np.log(np.diag(a))) + np.sum(a**2)


def down_and_right(x: Any) -> Any:
    """Between two loops the adjoint is scaled by a number, so that nothing in it has to be cleared."""
    y, z = np.zeros_like(x), np.zeros_like(x)
    y[:, 0] = x[:, 0]
    for j in range(1, x.shape[1]):
        y[:, j] = x[:, j] + 0.6 * y[:, j - 1]
    scaled = 0.4 * y
    z[0] = scaled[0]
    for i in range(1, x.shape[0]):
        z[i] = scaled[i] + 0.6 * z[i - 1]
    return np.sum(z**3)


def alternating_directions(x: Any) -> Any:
    """Sweeps along rows, then columns: what one sweep clears, the other fills, in its trips together."""
    n = x.shape[0]
    u, v = x.copy(), np.zeros((n, n))
    q = np.zeros((n, n))
    for _ in range(3):
        q[1 : n - 1, 0] = v[0, 1 : n - 1]
        for j in range(1, n - 1):
            q[1 : n - 1, j] = (u[j, : n - 2] + np.sin(u[j, 1 : n - 1]) + u[j, 2:] - q[1 : n - 1, j - 1]) / 3.0
        for j in range(n - 2, 0, -1):
            v[j, 1 : n - 1] = 0.3 * v[j + 1, 1 : n - 1] + q[1 : n - 1, j]
        u[1 : n - 1, 0] = 1.0
        for j in range(n - 2, 0, -1):
            u[1 : n - 1, j] = 0.3 * u[1 : n - 1, j + 1] + np.sin(v[1 : n - 1, j])
    return np.sum(u**2)


@pytest.mark.parametrize(
    "function",
    [recurrence, twice_in_a_trip, orthogonal, within_borders, eliminated, down_and_right, alternating_directions],
)
def test_adjoints_of_written_columns_carry_no_masks(function: Callable[[Any], Any]) -> None:
    x = np.random.default_rng(3).normal(size=(7, 7 if function is alternating_directions else 6))
    shown = str(sg.explain(sg.grad(function))(x))
    _, _, rest = shown.partition("--- optimised ir")
    program, _, _ = rest.partition("--- llvm source")
    assert program
    assert not [line for line in program.splitlines() if "bool[" in line and ("gather" in line or "scatter" in line)]
    differences = np.zeros_like(x)
    for place in np.ndindex(*x.shape):
        step = np.zeros_like(x)
        step[place] = 1e-5
        differences[place] = (function(x + step) - function(x - step)) / 2e-5
    for backend in ("numpy", "llvm"):
        np.testing.assert_allclose(sg.grad(function, backend=backend)(x), differences, rtol=2e-6, atol=1e-8)


def down_and_right_by_numbers(x: Any) -> Any:
    """The adjoint between the loops is scaled by what may be infinite, so that zeros in it are to be put back."""
    y, z = np.zeros_like(x), np.zeros_like(x)
    y[:, 0] = x[:, 0]
    for j in range(1, x.shape[1]):
        y[:, j] = x[:, j] + 0.6 * y[:, j - 1]
    scaled = np.sqrt(x) * y
    for i in range(2, x.shape[0]):
        z[i] = scaled[i] + 0.6 * z[i - 1]
    return np.sum(z**3)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_zeros_are_put_back_before_a_loop_and_not_in_each_trip(backend: str) -> None:
    x = np.random.default_rng(4).uniform(0.5, 1.5, size=(24, 23))
    shown = str(sg.explain(sg.grad(down_and_right_by_numbers))(x)).partition("--- optimised ir")[2]
    program = shown.partition("--- llvm source")[0]
    loops = [line for line in program.splitlines() if line.startswith("     ")]
    assert [line for line in loops if "bool[24,23] = scatter" in line]
    assert not [line for line in loops if "f64[24,23] = select" in line]
    x[1] = 0.0
    slope = sg.grad(down_and_right_by_numbers, backend=backend)(x)
    assert np.isfinite(slope[2:]).all()
    np.testing.assert_array_equal(slope[:2], 0.0)


def overwritten(x: Any) -> Any:
    """Column 1 is written over: the root in it counts for nothing, though its derivative at 0 is infinite."""
    y = np.zeros_like(x)
    for j in range(x.shape[1]):
        y[:, j] = np.sqrt(x[:, j])
    for j in range(1, 3):
        y[:, j] = x[:, j + 1]
    return np.sum(y)


def written_twice(x: Any) -> Any:
    """Each trip writes over what the trip before wrote one column further."""
    y = np.zeros_like(x)
    for j in range(x.shape[1] - 1):
        y[:, j] = 1.0 + x[:, j]
        y[:, j + 1] = np.sqrt(x[:, j])
    return np.sum(y)


def filled_in_part(x: Any) -> Any:
    y = np.zeros_like(x)
    for j in range(x.shape[1]):
        y[:, j] = np.sqrt(x[:, j])
    total = 0.0
    for j in range(2, x.shape[1]):
        total = total + np.sum(y[:, j])
    return total


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(
    ("function", "row"),
    [
        (overwritten, [0.5, 0.0, 1.0, 1.0, 0.5]),
        (written_twice, [1.0, 1.0, 1.0, 1.5, 0.0]),
        (filled_in_part, [0.0, 0.0, 0.5, 0.5, 0.5]),
    ],
)
def test_masks_that_say_something_are_carried(function: Callable[[Any], Any], row: list[float], backend: str) -> None:
    x = np.ones((2, 5))
    if function is overwritten:
        x[:, 1:3] = 0.0
        row = [0.5, 0.0, 1.0, 1.0 + 0.5, 0.5]
    elif function is written_twice:
        x[:, :3] = 0.0
    else:
        x[:, :2] = 0.0
    np.testing.assert_array_equal(sg.grad(function, backend=backend)(x), np.tile(row, (2, 1)))


# --- how far reads are followed ---------------------------------------------------------------------------------------


def bounced(tau: Any, solid: Any) -> Any:
    """A step of lattice Boltzmann: the masks of its writes depend on each other over and over."""
    f = np.ones((3, 4, 6)) * tau
    for _ in range(12):
        for i in range(3):
            f[i] = np.roll(f[i], i, axis=1)
        equilibrium = np.empty((3, 4, 6))
        for i in range(3):
            equilibrium[i] = np.cos(f[i]) * f.sum(axis=0)
        back = f[[0, 2, 1]][:, solid]
        f += (equilibrium - f) / tau
        f[:, solid] = back
    return f.sum()


def test_a_search_takes_a_part_of_the_stack_alone() -> None:
    """It took all of it: the error was caught, and the function traced again at each call."""
    solid = np.zeros((4, 6), bool)
    solid[0] = solid[2, 2:4] = True
    slope = sg.grad(bounced)
    assert sg.explain(slope)(1.3, solid)["ir"]
    np.testing.assert_allclose(slope(1.3, solid), sg.jvp(lambda tau: bounced(tau, solid), (1.3,), (1.0,))[1], rtol=1e-9)


def test_what_was_shown_counts_where_what_it_rests_on_is_supposed() -> None:
    function = parse("""func @f(%x: bool[4], %y: bool[4]) -> (bool[4]) {
      %m: bool[4] = for %x, %y {trips=3, carries=1, consts=1, reverse=false}
        body (%k: i64[], %m: bool[4], %y: bool[4]) {
          %0: bool[4] = logical_or %m, %y
          yield %0
        }
      return %m
    }""")
    body, search = function.operations[0].regions[0], Search(function)
    search.steps, either, everywhere = 1000, body.results[0], whole(body.results[0].type)
    assert everywhere is not None
    for _ in range(2):
        assert not search.follow(either, everywhere)
        with search.supposing(body.params[1], everywhere):
            assert search.follow(either, everywhere)


def scattered(x: Any) -> Any:
    """Sums of products in eight loops, of which a condition leaves some out."""
    total = np.zeros((2, 2, 3, 2, 2))
    for k in range(2):
        for e in range(2):
            for q in range(2):
                for w in range(2):
                    for i in range(2):
                        for j in range(2):
                            for a in range(3):
                                for b in range(4):
                                    if e - w >= 0:
                                        left = x[k, e - w, (a + b) % 3] @ x[q, w, a]
                                        total[k, e, a] += left @ x[i, j, b % 3]
    return np.sum(total**2)


def test_a_search_does_not_grow_with_the_sets_of_loops_in_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """It took 31,937 steps: in each loop a mask may be True by itself, or supposed to be in those around it."""
    steps, step = [], Search.step
    monkeypatch.setattr(Search, "step", lambda self: steps.append(1) or step(self))  # type: ignore[func-returns-value]
    x = np.cos(np.arange(48.0)).reshape(2, 2, 3, 2, 2)
    slope = sg.grad(scattered)(x)
    assert 0 < len(steps) < 2000
    np.testing.assert_allclose(np.sum(slope * x), 6 * scattered(x), rtol=1e-12)  # of degree six


# --- what is not needed goes ------------------------------------------------------------------------------------------


def test_a_carry_that_only_loops_hand_to_each_other_goes() -> None:
    function = parse("""func @f(%x: f64[4]) -> (f64[4]) {
      %m: bool[4], %y: f64[4] = for true:bool[4], %x {trips=3, carries=2, consts=0, reverse=false}
        body (%k: i64[], %m: bool[4], %y: f64[4]) {
          %n: bool[4], %z: f64[4] = for %m, %y, %k {trips=2, carries=2, consts=1, reverse=false}
            body (%j: i64[], %m: bool[4], %y: f64[4], %k: i64[]) {
              %0: bool[4] = scatter_set %m, false, %k {axis=0}
              %1: f64[4] = sin %y
              yield %0, %1
            }
          yield %n, %z
        }
      return %y
    }""")
    assert not [value for value in results_of(dce(function)) if value.type.dtype.kind == "b"]


def results_of(region: Region) -> list[Value]:
    return [result for operation in region.walk() for result in operation.results]
