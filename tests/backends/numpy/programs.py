"""Programs to run two ways: one op on its samples, and random programs on arrays large enough to be reused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import srcgrad.ir.ops
import srcgrad.ir.ops.calls  # noqa: F401  importing registers the ops
from srcgrad.ir.core import Builder, Function, Value, literal
from srcgrad.ir.opdef import REGISTRY, Op, Sample
from srcgrad.ir.types import ArrayType

SITES: list[Callable[..., Any]] = [
    lambda array: np.array(array) * 2,
    lambda array: (np.array(array) + 1, np.array(array) - 1),
    lambda *arrays: None,
]
"""The callables that the samples of ``host_call`` refer to."""


def on_every_sample(check: Callable[[Op, Sample], None]) -> Any:
    """A check of one sample as a test for each op, on all samples of the op.

    There are thousands of samples: to be a test takes longer than what the check does.
    """

    def test(op: Op) -> None:
        for number, sample in enumerate(op.samples()):
            try:
                check(op, sample)
            except Exception as error:
                error.add_note(f"on sample {number} {sample.label!r} of {op.name}")
                raise

    test.__doc__ = check.__doc__
    known = [op for op in REGISTRY.values() if list(op.samples())]
    return pytest.mark.parametrize("op", known, ids=lambda op: op.name)(test)


def arguments(sample: Sample) -> list[Any]:
    """The operands as a backend takes them: arrays, and NumPy scalars for rank 0."""
    return [np.asarray(operand)[()] for operand in sample.operands]


def type_of(array: Any) -> ArrayType:
    return ArrayType(np.asarray(array).dtype, np.shape(array))


def one_operation(op: Op, sample: Sample, literals: Sequence[bool] = ()) -> Function:
    """The function that applies the op; operands flagged in ``literals`` are constants."""
    builder = Builder()
    operands: list[Value] = []
    for position, array in enumerate(arguments(sample)):
        constant = position < len(literals) and literals[position]
        operands.append(literal(array, type_of(array)) if constant else builder.param(type_of(array), "x"))
    operation = builder.emit_operation(op, operands, dict(sample.attrs))
    return builder.function("f", operation.results)


def same(left: Any, right: Any) -> bool:
    """Equal in type, dtype, shape and bits (but any nan equals any other)."""
    if type(left) is not type(right):
        return False
    a, b = np.asarray(left), np.asarray(right)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind == "c":
        return same(a.real, b.real) and same(a.imag, b.imag)
    if a.dtype.kind != "f":
        return np.array_equal(a, b)
    signs = np.isnan(a) | (np.signbit(a) == np.signbit(b))
    return np.array_equal(a, b, equal_nan=True) and bool(signs.all())


SIZE = 24  # 24 * 24 doubles are more than reuse.LARGE bytes
MATRIX = ArrayType(np.dtype(np.float64), (SIZE, SIZE))

Step = tuple[str, int, int, int]
STEPS = (
    "add", "mul", "sin", "neg", "select", "transpose", "reverse", "reshape", "row", "column", "slice_set",
    "scatter_add", "barrier", "identity", "choose", "sum", "outer", "constant",
)  # fmt: skip


def random_steps(least: int, most: int) -> st.SearchStrategy[list[Step]]:
    pick = st.integers(0, 99)
    return st.lists(st.tuples(st.sampled_from(STEPS), pick, pick, pick), min_size=least, max_size=most)


def build(steps: Sequence[Step], outputs: Sequence[int]) -> Function:
    """A function of two matrices; each step applies an op to values of late, and nothing is computed in vain."""
    builder = Builder()
    matrices = [builder.param(MATRIX, "x"), builder.param(MATRIX, "w")]
    small: list[Value] = []
    for name, first, second, third in steps:
        a, b, c = (matrices[-1 - k % min(_LATE, len(matrices))] for k in (first, second, third))
        found = _step(builder, name, a, b, c, second)
        (matrices if found.type == MATRIX else small).append(found)
    read = {operand for operation in builder.operations for operand in operation.operands}
    unread = [value for value in matrices if value not in read]
    total = unread[0] if unread else matrices[-1]
    for other in unread[1:]:
        total = builder.emit(REGISTRY["add"], [total, other])
    return builder.function("f", [total, *small, *[matrices[-1 - k % len(matrices)] for k in outputs]])


_LATE = 4


def _step(builder: Builder, name: str, a: Value, b: Value, c: Value, number: int) -> Value:
    def emit(op: str, *operands: Value, **attrs: Any) -> Value:
        return builder.emit(REGISTRY[op], operands, attrs)

    strides = {"starts": (1, 0), "limits": (1 + SIZE // 2, SIZE), "strides": (1, 1)}
    row_type = ArrayType(MATRIX.dtype, (SIZE,))
    row = {"starts": (number % SIZE, 0), "limits": (number % SIZE + 1, SIZE), "strides": (1, 1)}
    full = {"shape": MATRIX.shape}
    if name in ("add", "mul"):
        return emit(name, a, b)
    if name in ("sin", "neg", "identity"):
        return emit(name, a)
    if name == "select":
        return emit("select", emit("less", a, b), c, literal(0.5, MATRIX))
    if name == "transpose":
        return emit("transpose", a, perm=(1, 0))
    if name == "reverse":
        return emit("reverse", a, axes=(0,))
    if name == "reshape":
        return emit("reshape", a, shape=MATRIX.shape)
    if name in ("row", "column"):
        flat = emit("reshape", emit("slice", a, **row), shape=(SIZE,))
        return emit("mul", b, emit("broadcast", flat, **full, dims=(1,) if name == "row" else (0,)))
    if name == "outer":
        flat = emit("reshape", emit("slice", a, **row), shape=(SIZE,))
        other = literal(0.5, MATRIX) if number % 3 else emit("broadcast", flat, **full, dims=(1,))
        return emit("add", emit("broadcast", flat, **full, dims=(0,)), other)
    if name == "slice_set":
        return emit("slice_set", a, emit("slice", b, **strides), **strides)
    if name == "scatter_add":
        index = literal(np.arange(SIZE) % 5, ArrayType(np.dtype(np.int64), (SIZE,)))
        return emit("scatter_add", a, b, index, axis=0)
    if name == "barrier":
        return builder.emit_operation(REGISTRY["barrier"], [a, b]).results[number % 2]
    if name == "choose":
        total = emit("reduce_sum", a, axes=(0, 1))
        return emit("select", emit("less", total, literal(0.0, total.type)), b, c)
    if name == "sum":
        return emit("reduce_sum", a, axes=(number % 2,))
    values = np.linspace(-1.0, 1.0, SIZE)
    return emit("add", a, emit("broadcast", literal(values, row_type), **full, dims=(1,)))
