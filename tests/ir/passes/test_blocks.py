"""Loops over long arrays, block by block: they give what they gave, and what needs other places stays one loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import srcgrad as sg
from srcgrad.backends.llvm import scalars
from srcgrad.ir.core import Builder, Function, Region, Value, literal
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.parser import parse
from srcgrad.ir.passes import blocks
from srcgrad.ir.passes.blocks import block_by_block, parts_of, written
from srcgrad.ir.types import FLOAT64, INT64, ArrayType
from srcgrad.ir.verify import verify
from tests.ir.ops.harness import run

PLACES, TRIPS = 6, 4
NUMBER = ArrayType(FLOAT64)


def array(*shape: int) -> ArrayType:
    return ArrayType(FLOAT64, shape)


# --- random programs --------------------------------------------------------------------------------------------------

ROW, PAIRS, SQUARE, SHARED, LONG = (
    array(PLACES),
    array(PLACES, 2),
    array(PLACES, PLACES),
    array(2),
    array(TRIPS, PLACES),
)
CARRIES = (ROW, PAIRS, NUMBER, LONG, SQUARE, SHARED)
KINDS = (
    *("add", "mul", "sin", "across", "down", "number", "spread", "total", "pair", "rows", "joined", "row"),
    *("shift", "part", "turned", "square", "fold", "share", "put", "sum"),
)
STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 60), st.integers(0, 60)), min_size=2, max_size=9).map(
    tuple
)


def emit(builder: Builder, name: str, *operands: Value, **attrs: Any) -> Value:
    return builder.emit(REGISTRY[name], operands, attrs)


class Pool:
    """The values that a random body has made, by their types."""

    def __init__(self, builder: Builder, values: list[Value], trip: Value | None) -> None:
        self.builder, self.values, self.trip = builder, values, trip

    def pick(self, number: int, type: ArrayType) -> Value:
        """One of the last of a type."""
        found = [value for value in self.values if value.type == type]
        return found[-1 - number % len(found)] if found else literal(0.25, type)

    def step(self, kind: str, one: int, two: int) -> None:
        e = self.builder
        row, other = self.pick(one, ROW), self.pick(two, ROW)
        pairs, square = self.pick(one, PAIRS), self.pick(one, SQUARE)
        made = {
            "add": lambda: emit(e, "add", row, other),
            "mul": lambda: emit(e, "mul", self.pick(one, CARRIES[two % 6]), self.pick(one // 2, CARRIES[two % 6])),
            "sin": lambda: emit(e, "sin", self.pick(one, CARRIES[two % 6])),
            "across": lambda: emit(e, "broadcast", row, shape=(PLACES, 2), dims=(0,)),
            "down": lambda: emit(e, "broadcast", self.pick(one, SHARED), shape=(PLACES, 2), dims=(1,)),
            "number": lambda: emit(e, "broadcast", self.pick(one, NUMBER), shape=(PLACES,), dims=()),
            "spread": lambda: emit(e, "broadcast", row, shape=(PLACES, PLACES), dims=(two % 2,)),
            "total": lambda: emit(e, "reduce_sum", pairs, axes=(1,)),
            "pair": lambda: emit(e, "mul", pairs, self.pick(two, PAIRS)),
            "rows": lambda: emit(e, "slice", pairs, starts=(0, 0), limits=(PLACES, 1), strides=(1, 1)),
            "joined": lambda: emit(
                e, "concatenate", *[emit(e, "reshape", each, shape=(PLACES, 1)) for each in (row, other)], axis=1
            ),
            "row": lambda: emit(e, "gather", self.pick(one, LONG), self.trip or literal(1, ArrayType(INT64)), axis=0),
            "shift": lambda: emit(
                e,
                "concatenate",
                emit(e, "slice", row, starts=(1,), limits=(PLACES,), strides=(1,)),
                emit(e, "slice", row, starts=(0,), limits=(1,), strides=(1,)),
                axis=0,
            ),
            "part": lambda: emit(
                e,
                "slice_set",
                pairs,
                emit(e, "reshape", row, shape=(PLACES, 1)),
                starts=(0, 1),
                limits=(PLACES, 2),
                strides=(1, 1),
            ),
            "turned": lambda: emit(e, "transpose", square, perm=(1, 0)),
            "square": lambda: emit(e, "reduce_sum", square, axes=(two % 2,)),
            "fold": lambda: emit(e, "reduce_sum", row, axes=(0,)),
            "share": lambda: emit(e, "reduce_sum", pairs, axes=(0,)),
            "put": lambda: emit(
                e, "scatter_add", self.pick(one, LONG), row, self.trip or literal(2, ArrayType(INT64)), axis=0
            ),
            "sum": lambda: emit(e, "add", self.pick(one, NUMBER), emit(e, "reduce_sum", other, axes=(0,))),
        }[kind]()
        self.values.append(made)


def loop(builder: Builder, given: Pool, steps: Any, picks: Any, columns: list[Value], reverse: bool) -> list[Value]:
    """A loop with carries of random types, on random values, and what it gives."""
    types = [CARRIES[k % len(CARRIES)] for k in picks[:3]]
    starts = [literal(0.0, type) if k % 2 else given.pick(k, type) for k, type in zip(picks, types, strict=False)]
    consts = [given.pick(picks[3], type) for type in (ROW, LONG, SHARED, PAIRS)]
    consts = [value if value.producer or value in given.values else given.pick(0, value.type) for value in consts]
    inner = Builder()
    trip = inner.param(ArrayType(INT64))
    own = [inner.param(type) for type in types]
    fixed = [inner.param(value.type) for value in consts]
    elements = [inner.param(value.type.with_shape(value.type.shape[1:])) for value in columns]
    pool = Pool(inner, [*fixed, *elements, *own], trip)
    running = None
    if picks[5] % 3 and types[0] == NUMBER:  # a sum of all places and trips, which others may read
        running = emit(inner, "add", own[0], emit(inner, "reduce_sum", pool.pick(picks[4], ROW), axes=(0,)))
        pool.values += [running] if picks[5] % 3 == 1 else []
        pool.values.remove(own[0])
    for step in steps:
        pool.step(*step)
    results = [pool.pick(picks[4], type) for type in types]
    results[0] = running or results[0]
    kept = [pool.pick(picks[5], ROW), pool.pick(picks[5], NUMBER)] if not reverse else []
    region = inner.region([*results, *kept])
    attrs = {"trips": TRIPS, "carries": 3, "consts": len(consts), "reverse": reverse}
    return list(builder.emit_operation(REGISTRY["for"], [*starts, *consts, *columns], attrs, [region]).results)


PICKS = st.tuples(*[st.integers(0, 30)] * 6)


def program(bodies: Any, picks: Any) -> Function:
    """A loop, what is made of it, and a second one the other way that reads what the first one keeps."""
    builder = Builder()
    params = [builder.param(type) for type in (ROW, PAIRS, NUMBER, LONG, SHARED, SQUARE, array(TRIPS, PLACES))]
    pool = Pool(builder, params[:-1], None)
    first = loop(builder, pool, bodies[0], picks[0], params[-1:], False)
    pool.values += first[:3]
    for step in bodies[1]:
        pool.step(*step)
    second = loop(builder, pool, bodies[2], picks[1], first[3:], True)
    return builder.function("f", [*first, *second])


@settings(max_examples=40, deadline=None)
@given(st.tuples(STEPS, STEPS, STEPS), st.tuples(PICKS, PICKS), st.sampled_from([1, 2, 3]))
def test_blocks_of_random_loops_give_what_these_give(bodies: Any, picks: Any, length: int) -> None:
    function = program(bodies, picks)
    rng = np.random.default_rng(1)
    arguments = [rng.uniform(0.2, 0.9, param.type.shape) for param in function.params]
    expected = run(function, arguments)
    for part in parts_of(function):
        if part.size % length:  # loops over the pairs alone
            continue
        made = written(function, part, length)
        verify(made)
        for value, other in zip(expected, run(made, arguments), strict=True):
            np.testing.assert_allclose(other, value, rtol=1e-9, atol=1e-300)


# --- single programs --------------------------------------------------------------------------------------------------

BODIES = {
    "what is beside": "%0: f64[8] = reverse %y {axes=[0]}",
    "a sum of all": "%1: f64[] = reduce_sum %y {axes=[0]}\n %0: f64[8] = broadcast %1 {shape=[8], dims=[]}",
    "another place": "%1: i64[] = add %k, 1\n %2: f64[] = gather %y, %1 {axis=0}\n"
    "%0: f64[8] = broadcast %2 {shape=[8], dims=[]}",
    "nothing but itself": "%0: f64[8] = sin %y",
    "numbers in order": "%0: f64[8] = cumsum %y {axis=0, reverse=false}",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_what_needs_other_places_is_no_part_and_what_does_not_is_one(body: str) -> None:
    function = parse(f"""func @f(%x: f64[8]) -> (f64[8]) {{
      %y: f64[8] = for %x {{trips=5, carries=1, consts=0, reverse=false}}
        body (%k: i64[], %y: f64[8]) {{
          {body}
          yield %0
        }}
      return %y
    }}""")
    assert len([*parts_of(function)]) == (body == BODIES["nothing but itself"])


@pytest.mark.parametrize(("read", "parts"), [("%s", 0), ("%1", 0), ("%2", 0), ("0.5", 1)])
def test_a_sum_that_trips_read_as_it_grows_is_no_sum_of_blocks(read: str, parts: int) -> None:
    function = parse(f"""func @f(%x: f64[8]) -> (f64[8], f64[]) {{
      %y: f64[8], %t: f64[] = for %x, 0.0 {{trips=5, carries=2, consts=0, reverse=false}}
        body (%k: i64[], %y: f64[8], %s: f64[]) {{
          %1: f64[] = reduce_sum %y {{axes=[0]}}
          %2: f64[] = add %s, %1
          %3: f64[8] = broadcast {read} {{shape=[8], dims=[]}}
          %4: f64[8] = mul %y, %3
          yield %4, %2
        }}
      return %y, %t
    }}""")
    assert len([*parts_of(function)]) == parts


def loops_inside(function: Region) -> int:
    return sum(op.op.name == "for" for outer in function.operations for region in outer.regions for op in region.walk())


@pytest.mark.parametrize(("size", "inside"), [(200_000, 1), (10_000, 0), (200_003, 0)])
def test_long_arrays_have_blocks_and_short_ones_and_primes_have_none(size: int, inside: int) -> None:
    function = parse(f"""func @f(%x: f64[{size}]) -> (f64[{size}]) {{
      %y: f64[{size}] = for %x {{trips=5, carries=1, consts=0, reverse=false}}
        body (%k: i64[], %y: f64[{size}]) {{
          %0: f64[{size}] = mul %y, %y
          yield %0
        }}
      return %y
    }}""")
    assert loops_inside(block_by_block(function)) == inside


def test_what_trips_keep_for_what_comes_behind_their_loop_is_not_put_together_of_blocks() -> None:
    function = parse("""func @f(%x: f64[200000]) -> (f64[200000], f64[50,200000]) {
      %y: f64[200000], %z: f64[50,200000] = for %x {trips=50, carries=1, consts=0, reverse=false}
        body (%k: i64[], %y: f64[200000]) {
          %0: f64[200000] = mul %y, %y
          yield %0, %0
        }
      return %y, %z
    }""")
    assert not loops_inside(block_by_block(function))


@pytest.mark.parametrize(("shared", "step", "inside"), [("[]", "sqrt", 1), ("[]", "sin", 0), ("[64]", "sqrt", 0)])
def test_blocks_do_not_make_again_what_takes_long_and_all_places_share(shared: str, step: str, inside: int) -> None:
    number = "%s" if shared == "[]" else "%2"
    first = "" if shared == "[]" else "%2: f64[] = gather %s, 3 {axis=0}"
    steps = "".join(f"%s{k + 1}: f64{shared} = {step} %s{k or ''}\n" for k in range(12))
    function = parse(f"""func @f(%x: f64[200000], %s: f64{shared}) -> (f64[200000], f64{shared}) {{
      %y: f64[200000], %t: f64{shared} = for %x, %s {{trips=50, carries=2, consts=0, reverse=false}}
        body (%k: i64[], %y: f64[200000], %s: f64{shared}) {{
          {first}
          {steps}
          %3: f64[200000] = broadcast {number} {{shape=[200000], dims=[]}}
          %4: f64[200000] = mul %y, %3
          yield %4, %s12
        }}
      return %y, %t
    }}""")
    assert loops_inside(block_by_block(function, scalars.cost)) == inside


# --- from user code ---------------------------------------------------------------------------------------------------


def paths(p: Any, z: Any) -> Any:
    price, mean, clock = p[0] + np.zeros(z.shape[1]), np.zeros(z.shape[1]), p[1] * 0
    for t in range(z.shape[0]):
        clock = clock + p[1]
        price = price * (1 + p[1] * z[t] * clock)
        mean = np.where(price > 0.8, mean + price, mean)
    return np.mean(np.maximum(mean - 1.0, 0)) + clock


def states(s: Any, k: Any) -> Any:
    for _ in range(20):
        x, y, z = s[:, 0], s[:, 1], s[:, 2]
        s = s + k * np.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z], axis=1)
    return np.sum(s**2)


def plane(x: Any, c: Any) -> Any:
    for _ in range(20):
        x = np.where(x * x < 4, x * x + c, x)
    return np.sum(np.exp(-x))


@pytest.mark.parametrize(
    ("f", "arguments"),
    [
        (paths, (np.array([0.9, 0.1]), np.random.default_rng(1).standard_normal((20, 24)))),
        (states, (np.random.default_rng(2).standard_normal((24, 3)), 0.01)),
        (plane, (np.full((24, 24), 0.3), np.linspace(-1, 1, 576).reshape(24, 24))),
        (plane, (np.full((24, 24), 0.3), np.linspace(-1, 1, 24 * 24).reshape(24, 24).astype(np.float32))),
    ],
)
def test_derivatives_by_blocks_are_those_of_whole_arrays(
    f: Any, arguments: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SRCGRAD_CACHE_DIR", "")
    for name in ("FAR", "TIMES", "PER_ADDITION"):
        monkeypatch.setattr(blocks, name, 0)
    for name in ("SHORT", "WIDE"):
        monkeypatch.setattr(blocks, name, 4)
    monkeypatch.setattr(blocks, "LONG", 6)
    whole, lengths = blocks.written, []

    def counted(function: Function, part: Any, length: int) -> Function:
        lengths.append(length)
        return whole(function, part, length)

    monkeypatch.setattr(blocks, "written", counted)
    found = sg.value_and_grad(f, argnums=(0, 1), backend="llvm")(*arguments)
    assert lengths
    expected = sg.value_and_grad(f, argnums=(0, 1), backend="numpy")(*arguments)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-6)
    for one, other in zip(found[1], expected[1], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5 if np.asarray(other).dtype == np.float32 else 1e-10)
