"""Operations whose meaning is one ufunc: a call of the loop that the ufunc has for these dtypes.

What no group has, as complex numbers and most special functions, so needs no code of its own: a ufunc of NumPy or SciPy
holds a table of C functions ``void loop(char **args, npy_intp *dimensions, npy_intp *steps, void *data)``, of which one
is called on the step's buffers.
"""

from __future__ import annotations

import ctypes
import importlib
import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.backends.llvm.steps import Step, StepWriter
from srcgrad.backends.llvm.steps.body import Body, raw_text
from srcgrad.backends.llvm.target import Target
from srcgrad.ir.core import Literal, Operation
from srcgrad.ir.opdef import REGISTRY, Elementwise, Op
from srcgrad.ir.types import DTYPES, ArrayType, DType, dtype_name, real_dtype

_HEAD: Final = object.__basicsize__
_COUNTS: Final = _HEAD
_FUNCTIONS: Final = _HEAD + 16
_DATA: Final = _HEAD + 24
_LOOPS: Final = _HEAD + 32
_NAME: Final = _HEAD + 40
_TYPES: Final = _HEAD + 48
"""Where a ufunc has its fields, which are part of NumPy's interface for C; `table` checks them."""
_OPERATORS: Final = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "**": np.power, "//": np.floor_divide,
    "%": np.remainder, "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor, "==": np.equal,
    "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
    "<<": np.left_shift, ">>": np.right_shift,
}  # fmt: skip
_HIDDEN: Final = {"zeta": "_zeta", "lambertw": "_lambertw"}
"""What `hidden` finds."""
_BINARY: Final = re.compile(r"\{0\} (\S+) \{1\}")
_CALL: Final = re.compile(r"(np|scipy\.special(?:\._ufuncs)?)\.(\w+)(?:\(\{0\}(?:, \{1\})?\)\[(\d)\])?")


class Loop(NamedTuple):
    """The address of a C loop of a ufunc, and what it is to be given as its data."""

    function: int
    data: int


@cache
def table(ufunc: np.ufunc) -> dict[str, Loop] | None:
    """The loops of a ufunc by their types, as ``ufunc.types`` writes them; None where it is laid out in another way."""

    def word(offset: int) -> int:
        return int(ctypes.c_int64.from_address(id(ufunc) + offset).value)

    counts = [ctypes.c_int32.from_address(id(ufunc) + _COUNTS + 4 * k).value for k in range(3)]
    loops = ctypes.c_int32.from_address(id(ufunc) + _LOOPS).value
    if counts != [ufunc.nin, ufunc.nout, ufunc.nargs] or loops != ufunc.ntypes or loops > len(ufunc.types):
        return None
    if ctypes.string_at(word(_NAME)).decode() != ufunc.__name__:
        return None
    numbers = ctypes.string_at(word(_TYPES), loops * ufunc.nargs)
    found = {}
    for k in range(loops):
        text = ufunc.types[k]
        wanted = bytes(np.dtype(letter).num for letter in text.replace("->", ""))
        if numbers[k * ufunc.nargs : (k + 1) * ufunc.nargs] != wanted:
            return None
        function = ctypes.c_int64.from_address(word(_FUNCTIONS) + 8 * k).value
        data = ctypes.c_int64.from_address(word(_DATA) + 8 * k).value if word(_DATA) else 0
        if function:
            found[text] = Loop(function, data)
    return found


def loop_for(ufunc: np.ufunc, inputs: Sequence[DType]) -> tuple[Loop, list[DType]] | None:
    """The loop for exactly these dtypes, and the dtypes of its results."""
    if ctypes.sizeof(ctypes.c_void_p) != 8 or any(not can_loop(dtype) for dtype in inputs):
        return None
    for text, loop in (table(ufunc) or {}).items():
        given, made = text.split("->")
        if [np.dtype(letter) for letter in given] == list(inputs):
            outputs = [np.dtype(letter) for letter in made]
            return (loop, outputs) if all(map(can_loop, outputs)) else None
    return None


def can_loop(dtype: DType) -> bool:
    """Long doubles may be read by what needs 16 bytes of alignment."""
    return dtype.kind in "biufc" and dtype.isnative and dtype.itemsize <= (16 if dtype.kind == "c" else 8)


@cache
def ufunc_of(op: Op) -> tuple[np.ufunc, int] | None:
    """The ufunc that the op's meaning is, and which of its results is meant."""
    binary, call = _BINARY.fullmatch(op.meaning), _CALL.fullmatch(op.meaning)
    if op.meaning == "-{0}":
        return np.negative, 0
    if binary is not None and binary[1] in _OPERATORS:
        return _OPERATORS[binary[1]], 0
    if call is None:
        return None
    if call[2] in _HIDDEN:
        found: Any = hidden(call[2])
    else:
        found = getattr(np if call[1] == "np" else importlib.import_module(call[1]), call[2], None)
    return (found, int(call[3] or 0)) if isinstance(found, np.ufunc) else None


def hidden(name: str) -> Any:
    """The ufunc behind a function of SciPy that is none; None where this SciPy has it under another name."""
    import scipy.special

    return getattr(scipy.special._ufuncs, _HIDDEN[name], None)


def function_of(word: str) -> int | None:
    """The address of a loop that `UfuncCall` names so; None where no ufunc of NumPy or ``scipy.special`` has it."""
    loop = _loop_of(word)
    return loop and loop.function


def data_of(word: str) -> int | None:
    loop = _loop_of(word)
    return loop and loop.data


def _loop_of(word: str) -> Loop | None:
    owner, _, rest = word.partition("_")
    parts = rest.split("_")
    count = next(k for k, part in enumerate(reversed(parts)) if part not in DTYPES)
    name, inputs = "_".join(parts[: len(parts) - count]), [DTYPES[part] for part in parts[len(parts) - count :]]
    if owner == "numpy":
        ufunc = getattr(np, name, None)
    else:
        import scipy.special

        ufunc = getattr(scipy.special, name, None) or getattr(scipy.special._ufuncs, name, None)
    found = loop_for(ufunc, inputs) if isinstance(ufunc, np.ufunc) else None
    return found and found[0]


class UfuncCall:
    """Calls of one loop in a step: of so many elements at addresses with strides.

    A generalised ufunc, which has axes of its own, takes their lengths and strides after these.
    """

    def __init__(self, w: Body, ufunc: np.ufunc, loop: Loop, inputs: Sequence[DType]) -> None:
        self.w, self.ufunc = w, ufunc
        owner = "numpy" if getattr(np, ufunc.__name__, None) is ufunc else "scipy"
        word = "_".join([owner, ufunc.__name__, *map(dtype_name, inputs)])
        self.function, self.data = f"srcgrad_loop_{word}", "null"
        w.symbols[self.function] = loop.function
        w.e.declarations.add(f"declare void @{self.function}(ptr, ptr, ptr, ptr)")
        if loop.data:
            name = f"srcgrad_data_{word}"
            self.data = f"@{name}"
            w.symbols[name] = loop.data
            w.e.declarations.add(f"@{name} = external global i8")
        self.block = w.take_scratch(8 * (2 * ufunc.nargs + 8))

    def __call__(self, addresses: Sequence[str], strides: Sequence[int], *lengths: int) -> None:
        w, arity = self.w, self.ufunc.nargs
        for k, address in enumerate(addresses):
            w.e.do(f"store ptr {address}, ptr {w.address(self.block, k, 8)}, align 8")
        for k, number in enumerate([*strides, *lengths]):
            w.store(self.block, arity + k, w.i64(number))
        steps, size = w.address(self.block, arity, 8), w.address(self.block, arity + len(strides), 8)
        w.e.do(f"call void @{self.function}(ptr {self.block}, ptr {size}, ptr {steps}, ptr {self.data})")


def as_ufunc(
    operation: Operation,
    name: str,
    target: Target,
    ufunc: np.ufunc,
    position: int,
    constants: Sequence[np.generic] = (),
) -> Step | None:
    """One call for all elements; splat literals, and ``constants`` after the operands, are one element each."""
    w = Body(operation, name, target)
    literals = [value if k in w.unread else None for k, value in enumerate(operation.operands)]
    literals += [Literal(value, ArrayType(value.dtype, w.results[0].shape)) for value in constants]
    types = [*w.types, *(literal.type for literal in literals[len(w.types) :] if literal is not None)]
    inputs, result = [type.dtype for type in types], w.results[0]
    found = loop_for(ufunc, inputs)
    if found is None or found[1][position] != result.dtype or any(type.shape != result.shape for type in types):
        return None
    if not result.size:
        return w.finish()
    addresses, strides = [], []
    for k, (literal, dtype) in enumerate(zip(literals, inputs, strict=True)):
        addresses.append(f"%in{k}" if literal is None else w.take_scratch(dtype.itemsize))
        strides.append(dtype.itemsize if literal is None else 0)
        if isinstance(literal, Literal):
            w.put(0, raw_text(literal), dtype.itemsize, addresses[-1])
    for k, dtype in enumerate(found[1]):
        addresses.append("%out0" if k == position else w.take_scratch(dtype.itemsize))
        strides.append(dtype.itemsize if k == position else 0)
    UfuncCall(w, ufunc, found[0], inputs)(addresses, strides, result.size)
    return w.finish(in_place=next((k for k, type in enumerate(w.types) if type == result), None))


def elementwise_ufunc(operation: Operation, name: str, target: Target) -> Step | None:
    """An op whose meaning is a ufunc; not one whose loop may raise."""
    found = ufunc_of(operation.op)
    raises = operation.op.name == "pow" and operation.operands[0].type.dtype.kind in "iu"
    return None if found is None or raises else as_ufunc(operation, name, target, *found)


def constant_power(operation: Operation, name: str, target: Target) -> Step | None:
    """A whole power of complex numbers, as NumPy takes it of a number that is known."""
    dtype, exponent = operation.operands[0].type.dtype, operation.attrs["y"]
    if dtype.kind != "c":
        return None
    if exponent in (2, -1):
        return as_ufunc(operation, name, target, np.square if exponent == 2 else np.reciprocal, 0)
    return as_ufunc(operation, name, target, np.power, 0, [dtype.type(exponent)])


def lambertw(operation: Operation, name: str, target: Target) -> Step | None:
    """With the number of the branch, and SciPy's tolerance."""
    ufunc, dtype = hidden("lambertw"), operation.operands[0].type.dtype
    if not isinstance(ufunc, np.ufunc):
        return None
    tolerance = real_dtype(dtype).type(1e-8)
    branch = operation.attrs["k"]
    return as_ufunc(operation, name, target, ufunc, 0, [np.int64(branch), tolerance])


def digamma(operation: Operation, name: str, target: Target) -> Step | None:
    """Of complex numbers, which NumPy's helper leaves to SciPy."""
    import scipy.special

    if operation.operands[0].type.dtype.kind != "c":
        return None
    return as_ufunc(operation, name, target, scipy.special.psi, 0)


def sech(operation: Operation, name: str, target: Target) -> Step | None:
    """1/cosh of complex numbers."""
    w = Body(operation, name, target)
    dtype, size = w.types[0].dtype, w.results[0].size
    loops = loop_for(np.cosh, [dtype]), loop_for(np.divide, [dtype, dtype])
    if dtype.kind != "c" or 0 in w.unread or loops[0] is None or loops[1] is None:
        return None
    one, step = w.take_scratch(dtype.itemsize), dtype.itemsize
    w.put(0, raw_text(Literal(dtype.type(1.0), ArrayType(dtype))), step, one)
    if size:
        UfuncCall(w, np.cosh, loops[0][0], [dtype])(["%in0", "%out0"], [step, step], size)
        divide = UfuncCall(w, np.divide, loops[1][0], [dtype, dtype])
        divide([one, "%out0", "%out0"], [0, step, step], size)
    return w.finish(in_place=0)


WRITERS: Final[dict[str, StepWriter]] = {
    **{name: elementwise_ufunc for name, op in REGISTRY.items() if isinstance(op, Elementwise) and op.meaning},
    "zeta": elementwise_ufunc,
    "digamma": digamma,
    "lambertw": lambertw,
    "sech": sech,
    "integer_pow": constant_power,
}
