"""Masks that are known by several boxes together, which loops clear and fill again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import srcgrad as sg
from srcgrad.ir.core import Builder, Function, Literal, Value, literal
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.passes import known_masks
from srcgrad.ir.passes.masks import without_masks
from srcgrad.ir.types import BOOL, ArrayType
from srcgrad.ir.verify import verify
from srcgrad.testing import check_grads
from tests.ir.ops.harness import run

SHAPE = (4, 5)
MASK = ArrayType(BOOL, SHAPE)
RANGES = st.tuples(*(st.tuples(st.integers(0, n - 1), st.integers(1, 3)) for n in SHAPE))
KINDS = ["clear", "fill", "flag", "move", "or", "and", "read", "loop", "cond"]
STEPS = st.lists(st.tuples(st.sampled_from(KINDS), RANGES, RANGES), min_size=1, max_size=6)


def bounds(ranges: Any, shape: tuple[int, ...] = SHAPE) -> dict[str, tuple[int, ...]]:
    starts = tuple(start for start, _ in ranges)
    limits = tuple(min(start + count, size) for (start, count), size in zip(ranges, shape, strict=True))
    return {"starts": starts, "limits": limits, "strides": (1, 1)}


def size_of(box: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(stop - start for start, stop in zip(box["starts"], box["limits"], strict=True))


class Written:
    """The operations of a trip on one mask, and what it reads."""

    def __init__(self, builder: Builder, mask: Value, flag: Value) -> None:
        self.builder, self.mask, self.flag = builder, mask, flag
        self.reads: list[Value] = []

    def emit(self, name: str, *operands: Value, **attrs: Any) -> Value:
        return self.builder.emit(REGISTRY[name], operands, attrs)

    def all(self, steps: Any, deep: int) -> None:
        for kind, one, other in steps:
            box = bounds(one)
            part: Value = literal(kind != "clear", ArrayType(BOOL, size_of(box)))
            if kind in ("clear", "fill"):
                self.mask = self.emit("slice_set", self.mask, part, **box)
            elif kind == "flag":
                part = self.emit("broadcast", self.flag, shape=size_of(box), dims=())
                self.mask = self.emit("slice_set", self.mask, part, **box)
            elif kind == "read":
                self.reads.append(self.emit("slice", self.mask, **box))
            elif kind in ("or", "and"):
                shown = self.emit("slice_set", literal(False, MASK), part, **box)
                self.mask = self.emit(f"logical_{kind}", self.mask, shown)
            elif kind == "move":
                first = tuple(min(start, size - count) for (start, _), size, count in
                              zip(other, SHAPE, size_of(box), strict=True))  # fmt: skip
                limits = tuple(map(int.__add__, first, size_of(box)))
                part = self.emit("slice", self.mask, starts=first, limits=limits, strides=(1, 1))
                self.mask = self.emit("slice_set", self.mask, part, **box)
            elif kind == "cond":
                self.mask = self.either(steps, deep)
            elif deep:
                self.mask, found = looped(self.builder, steps[::-1], self.mask, self.flag, deep - 1)
                self.reads += found

    def either(self, steps: Any, deep: int) -> Value:
        regions = []
        for k in range(2):
            inner = Builder()
            inside = Written(inner, inner.param(MASK), inner.param(ArrayType(BOOL)))
            inside.all([step for step in steps[k::2] if step[0] in ("clear", "fill", "flag", "move")], deep)
            regions.append(inner.region([inside.mask]))
        operands = [self.flag, self.mask, self.flag]
        return self.builder.emit_operation(REGISTRY["cond"], operands, {}, regions).results[0]


def looped(builder: Builder, steps: Any, mask: Value, flag: Value, deep: int) -> tuple[Value, list[Value]]:
    """The mask after three trips, and what they have read."""
    inside = Builder()
    inside.param(ArrayType(np.dtype(np.int64)), "trip")
    body = Written(inside, inside.param(MASK), inside.param(ArrayType(BOOL)))
    body.all(steps, deep)
    region = inside.region([body.mask, *body.reads])
    attrs = {"trips": 3, "reverse": bool(len(steps) % 2), "carries": 1, "consts": 1}
    mask, *reads = builder.emit_operation(REGISTRY["for"], [mask, flag], attrs, [region]).results
    return mask, reads


def program(steps: Any, start: bool) -> Function:
    builder = Builder()
    flag = builder.param(ArrayType(BOOL), "flag")
    mask, reads = looped(builder, steps, literal(start, MASK), flag, 1)
    rows = [builder.emit(REGISTRY["slice"], (mask,), {"starts": (k, 0), "limits": (k + 1, 5), "strides": (1, 1)})
            for k in range(4)]  # fmt: skip
    return builder.function("f", [mask, *rows, *reads])


@settings(max_examples=200, deadline=None)
@given(STEPS, st.booleans(), st.booleans())
def test_known_masks_are_what_they_are(steps: Any, start: bool, flag: bool) -> None:
    function = program(steps, start)
    verify(function)
    found = without_masks(function)
    verify(found)
    argument = np.array(flag)
    for one, other in zip(run(function, [argument]), run(found, [argument]), strict=True):
        np.testing.assert_array_equal(one, other)


def test_random_programs_hold_masks_that_are_known_and_others() -> None:
    """Else the test above would say little."""
    found, left = 0, 0

    @settings(max_examples=60, database=None, derandomize=True, deadline=None)
    @given(STEPS)
    def count(steps: Any) -> None:
        nonlocal found, left
        known = [isinstance(result, Literal) for result in without_masks(program(steps, True)).results]
        found, left = found + sum(known), left + len(known) - sum(known)

    count()
    assert min(found, left) > 60, (found, left)


def flow(x: Any) -> Any:
    """Pressures, whose sides follow the inside of a plane, and velocities, of which the sides are held."""
    p, u = np.cos(x), x.copy()
    for _ in range(18):
        b = np.sin(u[1:-1, 1:-1])
        for _ in range(20):
            q = p.copy()
            p[1:-1, 1:-1] = 0.25 * (q[1:-1, 2:] + q[1:-1, :-2] + q[2:, 1:-1] + q[:-2, 1:-1]) - 0.1 * b
            p[:, -1] = p[:, -2]
            p[0, :] = p[1, :]
            p[:, 0] = p[:, 1]
            p[-1, :] = 0
        u[1:-1, 1:-1] = u[1:-1, 1:-1] - 0.1 * (p[1:-1, 2:] - p[1:-1, :-2])
        u[0, :] = 0
        u[-1, :] = 1
    return np.sum(np.sin(u + p))


def loops_with_masks(text: str) -> list[bool]:
    """Of loops that carry masks, whether each stands in another one."""
    return [line.startswith("   ") for line in text.splitlines() if " = for " in line and "bool[" in line]


def test_adjoints_of_planes_with_sides_carry_no_masks() -> None:
    x = np.cos(np.arange(56.0)).reshape(7, 8)
    assert not loops_with_masks(sg.explain(sg.grad(flow))(x)["optimised ir"])
    check_grads(flow, (x,))


def test_too_large_a_program_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.cos(np.arange(56.0)).reshape(7, 8)
    expected = sg.grad(flow)(x)
    monkeypatch.setattr(known_masks, "WORK", 500)
    sg.clear_caches()
    found = sg.grad(flow)
    assert any(loops_with_masks(sg.explain(found)(x)["optimised ir"]))
    np.testing.assert_allclose(found(x), expected, rtol=1e-13)
