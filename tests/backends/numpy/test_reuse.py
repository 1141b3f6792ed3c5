"""Reuse of buffers: never wrong, and worth it."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from srcgrad.backends.base import Executable
from srcgrad.backends.numpy import chunks, codegen
from srcgrad.backends.numpy.backend import BACKEND
from srcgrad.backends.numpy.codegen import meaning_of
from srcgrad.backends.numpy.evaluate import evaluate_operation
from srcgrad.ir.core import Builder, literal, zeros
from srcgrad.ir.opdef import REGISTRY, Op, Sample
from srcgrad.ir.types import FLOAT64, ArrayType
from tests.backends.numpy.programs import (
    SITES,
    SIZE,
    Step,
    arguments,
    build,
    on_every_sample,
    one_operation,
    random_steps,
)
from tests.backends.numpy.test_codegen import agree


@pytest.mark.whole
@on_every_sample
def test_fresh_results_are_fresh(op: Op, sample: Sample) -> None:
    """What the tables call a new buffer shares no memory with an operand, and can be written."""
    operation = one_operation(op, sample).operations[0]
    args = [np.array(arg) for arg in arguments(sample)]
    meaning = meaning_of(operation)
    for result in evaluate_operation(op, args, dict(sample.attrs), sites=SITES):
        if meaning.fresh and isinstance(result, np.ndarray):
            assert result.flags.writeable
            assert not any(np.may_share_memory(result, arg) for arg in args)


PHASES = [phase for phase in Phase if phase is not Phase.explain]


def matrices() -> list[Any]:
    random = np.random.default_rng(7)
    return [random.standard_normal((SIZE, SIZE)) for _ in range(2)]


outputs_of_late = st.lists(st.integers(0, 9), max_size=2)


@settings(max_examples=150, deadline=None, derandomize=True, phases=PHASES)
@given(random_steps(8, 24), outputs_of_late)
def test_random_programs(steps: list[Step], outputs: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codegen, "FREED", 0)
        agree(build(steps, outputs), matrices())


@settings(max_examples=60, deadline=None, derandomize=True, phases=PHASES)
@given(random_steps(16, 40), outputs_of_late, st.integers(1, 6))
def test_random_programs_in_parts(steps: list[Step], outputs: list[int], part: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codegen, "FREED", 0)
        patch.setattr(chunks, "WHOLE", 4)
        patch.setattr(chunks, "PART", part)
        agree(build(steps, outputs), matrices())


def chain(count: int, size: int) -> Any:
    builder = Builder()
    value = builder.param(ArrayType(FLOAT64, (size,)), "x")
    for _ in range(count):
        value = builder.emit(REGISTRY["sin"], [builder.emit(REGISTRY["mul"], [value, value])])
    return BACKEND.compile(builder.function("f", [value]))


def peak_bytes(program: Executable, *args: Any) -> int:
    """The most memory that a call holds at once, after a first call."""
    program(*args)
    tracemalloc.start()
    program(*args)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize("count", [50, 1500])
def test_a_chain_takes_one_buffer(count: int) -> None:
    """In one piece, and in parts."""
    size = 20_000
    program, x = chain(count, size), np.linspace(0.0, 1.0, 20_000)
    assert peak_bytes(program, x) < 1.5 * x.nbytes


def test_what_is_returned_is_live_to_the_end() -> None:
    """exp(x) is read by neg and returned: neg does not take its buffer."""
    builder = Builder()
    x = builder.param(ArrayType(FLOAT64, (20_000,)), "x")
    first = builder.emit(REGISTRY["exp"], [x])
    second = builder.emit(REGISTRY["neg"], [first])
    agree(builder.function("f", [first, second]), [np.linspace(0.0, 1.0, 20_000)])


def test_residuals_of_parameters_are_computed_where_they_are_used() -> None:
    """Twelve products of the parameter come first in the program and are needed one by one: one lives at a time."""
    size, count = 20_000, 12
    builder = Builder()
    x = builder.param(ArrayType(FLOAT64, (size,)), "x")
    products = [builder.emit(REGISTRY["mul"], [x, literal(float(k), x.type)]) for k in range(2, count + 2)]
    value = builder.emit(REGISTRY["exp"], [x])
    for product in products:
        value = builder.emit(REGISTRY["mul"], [value, product])
    function, argument = builder.function("f", [value]), np.linspace(0.0, 1.0, size)
    agree(function, [argument])
    program = BACKEND.compile(function)
    assert peak_bytes(program, argument) < 2.5 * argument.nbytes


def test_what_is_read_no_more_is_freed() -> None:
    """Each reduced row of outer products needs one matrix at a time, though none can be written over."""
    size = 100
    builder = Builder()
    x = builder.param(ArrayType(FLOAT64, (size, size)), "x")
    total = builder.emit(REGISTRY["reduce_sum"], [x], {"axes": (0,)})
    for _ in range(20):
        full = builder.emit(REGISTRY["dot_general"], [x, x], {"contract": ((1,), (0,)), "batch": ((), ())})
        turned = builder.emit(REGISTRY["transpose"], [full], {"perm": (1, 0)})
        x = builder.emit(REGISTRY["concatenate"], [turned], {"axis": 0})
        total = builder.emit(REGISTRY["add"], [total, builder.emit(REGISTRY["reduce_sum"], [turned], {"axes": (0,)})])
    program, value = BACKEND.compile(builder.function("f", [total])), np.eye(size)
    assert peak_bytes(program, value) < 3.5 * value.nbytes


def test_updates_are_made_in_place() -> None:
    builder = Builder()
    type = ArrayType(FLOAT64, (1000,))
    value = builder.emit(REGISTRY["sin"], [builder.param(type, "x")])
    part = builder.param(ArrayType(FLOAT64, (1,)), "part")
    for start in range(3):
        attrs = {"starts": (start,), "limits": (start + 1,), "strides": (1,)}
        value = builder.emit(REGISTRY["slice_set"], [value, part], attrs)
    function = builder.function("f", [value])
    assert BACKEND.compile(function).source.count("reuse=True") == 3
    agree(function, [np.linspace(0.0, 1.0, 1000), np.array([7.0])])


def test_no_buffer_is_written_while_a_view_of_it_is_read() -> None:
    """NumPy would get it right, by a hidden copy."""
    builder = Builder()
    y = builder.emit(REGISTRY["sin"], [builder.param(ArrayType(FLOAT64, (SIZE, SIZE)), "x")])
    product = builder.emit(REGISTRY["mul"], [y, builder.emit(REGISTRY["transpose"], [y], {"perm": (1, 0)})])
    function = builder.function("f", [product])
    assert "out=" not in BACKEND.compile(function).source
    agree(function, matrices()[:1])


def test_zeros_are_updated_in_place() -> None:
    """The transpose of a slice writes into zeros that nobody else sees, whatever the size."""
    builder = Builder()
    part = builder.param(ArrayType(FLOAT64, (2,)), "part")
    attrs = {"starts": (1,), "limits": (3,), "strides": (1,)}
    value = builder.emit(REGISTRY["slice_set"], [zeros(ArrayType(FLOAT64, (4,))), part], attrs)
    function = builder.function("f", [value])
    assert "slice_set(np.zeros((4,)), part, np.s_[1:3], reuse=True)" in BACKEND.compile(function).source
    agree(function, [np.array([1.0, 2.0])])
