"""Steps alone: one operation compiled as a native function, and called on buffers between guard zones."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

import srcgrad.ir.ops  # noqa: F401  registers the ops
from srcgrad.backends.llvm.native import Library
from srcgrad.backends.llvm.steps import Step, step_for
from srcgrad.backends.llvm.target import LEVELS, TARGET, Target
from srcgrad.backends.numpy.evaluate import evaluate
from srcgrad.ir.core import Builder, Function, Literal, Operation, Value, literal
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.types import ArrayType

GUARD = 256
"""Bytes before and after every buffer that a step must leave as they are."""
_FILL = 0xA5


def make_operation(
    name: str, *operands: Any, literals: Mapping[int, Any] | None = None, **attrs: Any
) -> tuple[Operation, Function]:
    """An operation on parameters of the operands' types, and the function of it; ``literals`` are literal operands."""
    builder = Builder()
    values: list[Value] = []
    for k, operand in enumerate(operands):
        array = np.asarray(operand)
        type = ArrayType(array.dtype, array.shape)
        known = (literals or {}).get(k)
        values.append(builder.param(type) if known is None else literal(known, type))
    results = builder.emit_operation(REGISTRY[name], values, attrs).results
    function = builder.function("program", list(results))
    return function.operations[-1], function


class Buffer:
    """Memory of an array between guard zones, aligned to 64."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.memory = np.full(size + 2 * GUARD + 64, _FILL, np.uint8)
        self.start = -self.memory.ctypes.data % 64 + GUARD

    @classmethod
    def of(cls, array: np.ndarray[Any, Any]) -> Buffer:
        found = cls(array.nbytes)
        found.bytes[:] = np.frombuffer(array.tobytes(), np.uint8)
        return found

    @property
    def bytes(self) -> np.ndarray[Any, Any]:
        return self.memory[self.start : self.start + self.size]

    @property
    def address(self) -> int:
        return int(self.memory.ctypes.data) + self.start

    def array(self, type: ArrayType) -> np.ndarray[Any, Any]:
        return np.frombuffer(self.bytes.tobytes(), type.dtype).reshape(type.static_shape)

    def is_guarded(self) -> bool:
        """Whether nothing was written beside the array."""
        before, after = self.memory[: self.start], self.memory[self.start + self.size :]
        return bool((before == _FILL).all() and (after == _FILL).all())


def module_of(step: Step, pointers: int) -> str:
    """A module with the step as ``@step`` and ``@call``, which takes a block of its pointers."""
    loads = [
        f"  %a{k} = getelementptr ptr, ptr %block, i64 {k}\n  %p{k} = load ptr, ptr %a{k}" for k in range(pointers)
    ]
    given = ", ".join(f"ptr %p{k}" for k in range(pointers))
    call = [
        "define i32 @call(ptr %block) {",
        *loads,
        f"  %status = call i32 @step({given})",
        "  ret i32 %status",
        "}",
    ]
    return "\n".join([*sorted(step.declarations), *step.definitions.values(), step.text, *call])


class Native:
    """A step as a function of arrays."""

    def __init__(self, operation: Operation, step: Step) -> None:
        self.operation, self.step = operation, step
        self.arity = len(operation.operands) + len(operation.results) + 1
        for name, address in step.symbols.items():
            llvm.add_symbol(name, address)
        self.library = Library(module_of(step, self.arity))
        self.address = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(self.library.address("call"))

    def __call__(self, *operands: Any, shared: bool = False) -> tuple[int, list[np.ndarray[Any, Any]]]:
        """The status and the results; ``shared`` gives result 0 the memory of the operand that it may have.

        Operands that the step does not read are null pointers; those that are one array have one memory.
        """
        given = [np.ascontiguousarray(operand) for operand in operands]
        own = {id(operand): Buffer.of(array) for operand, array in zip(operands, given, strict=True)}
        buffers = [own[id(operand)] for operand in operands]
        results = [Buffer(value.type.size * value.type.dtype.itemsize) for value in self.operation.results]
        scratch = Buffer(self.step.scratch)
        if shared:
            assert self.step.in_place is not None
            results[0] = buffers[self.step.in_place]
        addresses = [0 if k in self.step.unread else buffer.address for k, buffer in enumerate(buffers)]
        addresses += [buffer.address for buffer in (*results, scratch)]
        status = self.address((ctypes.c_void_p * self.arity)(*addresses))
        assert all(buffer.is_guarded() for buffer in (*buffers, *results, scratch)), "a step wrote out of bounds"
        for k, (buffer, array) in enumerate(zip(buffers, given, strict=True)):
            if not (shared and k == self.step.in_place):
                assert buffer.bytes.tobytes() == array.tobytes(), f"a step wrote to operand {k}"
        types = [value.type for value in self.operation.results]
        return status, [buffer.array(type) for buffer, type in zip(results, types, strict=True)]


def native(operation: Operation, target: Target = TARGET) -> Native | None:
    """The operation's step, compiled; None where it has none."""
    step = step_for(operation, "step", target)
    return None if step is None else Native(operation, step)


def expected(function: Function, operands: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    """What the NumPy backend gives for the operands, of which literals are no parameters."""
    operation = function.operations[-1]
    given = [
        np.asarray(array)[()]
        for value, array in zip(operation.operands, operands, strict=True)
        if not isinstance(value, Literal)
    ]
    return [np.asarray(array) for array in evaluate(function, given)]


def agree_or_give_up(name: str, *operands: Any, **attrs: Any) -> None:
    """The step gives what the NumPy backend gives, nearly, or leaves the operands to it."""
    operation, function = make_operation(name, *operands, **attrs)
    compiled = native(operation)
    assert compiled is not None, f"{name} has no step"
    status, found = compiled(*operands)
    if status == 0:
        for actual, wanted in zip(found, expected(function, operands), strict=True):
            np.testing.assert_allclose(actual, wanted, rtol=1e-10, atol=1e-300)


def target_of(level: str) -> Target:
    """This machine with the registers of a level of x86-64; skips where it has not got them."""
    if TARGET.triple.startswith(("aarch64", "arm64")) or not LEVELS[level] <= TARGET.features:
        pytest.skip(f"this processor is no {level}")
    return Target(TARGET.triple, level, LEVELS[level])


def distance(actual: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> float:
    """How far results are apart in units of the last place of each element; inf where they differ in kind."""
    if wanted.dtype.kind == "c":
        parts = [distance(getattr(actual, part), getattr(wanted, part)) for part in ("real", "imag")]
        return max(parts)
    if wanted.dtype.kind != "f":
        return 0.0 if np.array_equal(actual, wanted) else np.inf
    if not np.array_equal(np.isnan(actual), np.isnan(wanted)):
        return np.inf
    finite = np.isfinite(wanted)
    if not np.array_equal(actual[~finite & ~np.isnan(wanted)], wanted[~finite & ~np.isnan(wanted)]):
        return np.inf
    found, exact = actual[finite].astype(np.longdouble), wanted[finite].astype(np.longdouble)
    if not found.size:
        return 0.0
    if not np.isfinite(found).all():
        return np.inf
    with np.errstate(all="ignore"):
        return float(np.max(np.abs(found - exact) / np.spacing(np.abs(wanted[finite])).astype(np.longdouble)))


def agrees(operation: Operation, function: Function, operands: Sequence[Any], ulps: float = 0.0) -> bool:
    """Whether the operation has a step, which then must give what the NumPy backend gives, in place too.

    Where the NumPy backend raises, the status must be 1.
    """
    compiled = native(operation)
    if compiled is None:
        return False
    try:
        wanted = expected(function, operands)
    except Exception:
        assert compiled(*operands)[0] == 1
        return True
    for shared in (False, True) if compiled.step.in_place is not None else (False,):
        status, found = compiled(*operands, shared=shared)
        assert status == 0
        for actual, array in zip(found, wanted, strict=True):
            assert actual.dtype == array.dtype and actual.shape == array.shape
            apart = distance(actual, array)
            assert apart <= ulps, f"{operation.op.name}: {apart} ulps apart\n{actual}\n{array}"
            if ulps == 0.0:
                same = np.isnan(array) if array.dtype.kind in "fc" else np.zeros(array.shape, bool)
                kept = [np.where(same, np.zeros((), array.dtype), x).tobytes() for x in (actual, array)]
                assert kept[0] == kept[1], f"{operation.op.name}: bits differ\n{actual}\n{array}"
    return True
