"""Straight-line LLVM IR as text: numbers and vectors of them, one instruction a call.

An `Emitter` writes instructions for one number of *lanes*: 1 emits scalars. A `Number` is an SSA name or a constant,
with its type, so that every method knows what it is given. What a program computes is not folded here: the passes of
the language have done so. Places, counts of trips and what is decided by them are, where they are single whole numbers:
of loops of few trips most are known, and each line costs LLVM some ten microseconds.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

DType = np.dtype[Any]
F64: Final = np.dtype(np.float64)
F32: Final = np.dtype(np.float32)
BOOL: Final = np.dtype(np.bool_)
NAMES: Final = {
    "b1": "i1",
    "i1": "i8",
    "i2": "i16",
    "i4": "i32",
    "i8": "i64",
    "f2": "half",
    "f4": "float",
    "f8": "double",
}


@cache
def scalar_name(dtype: DType) -> str:
    """The LLVM type of a dtype in a register: bool is ``i1``; unsigned integers are as signed ones."""
    return NAMES[dtype.str[1:].replace("u", "i")]


@cache
def type_name(dtype: DType, lanes: int) -> str:
    """The LLVM type of so many numbers."""
    name = scalar_name(dtype)
    return name if lanes == 1 else f"<{lanes} x {name}>"


@cache
def suffix_name(dtype: DType, lanes: int) -> str:
    """How intrinsics call the type of so many numbers."""
    name = scalar_name(dtype)
    name = {"half": "f16", "float": "f32", "double": "f64"}.get(name, name)
    return name if lanes == 1 else f"v{lanes}{name}"


class Number(NamedTuple):
    """A value in a register: its text, its dtype, and its lanes."""

    text: str
    dtype: DType
    lanes: int

    @property
    def type(self) -> str:
        return type_name(self.dtype, self.lanes)


def constant_text(value: Any, dtype: DType) -> str:
    """A scalar constant: floating ones as bits, which are exact."""
    if dtype == BOOL:
        return "true" if value else "false"
    if dtype.kind == "f":
        if dtype.itemsize == 2:
            return f"0xH{int(np.float16(value).view(np.uint16)):04X}"
        if dtype.itemsize == 8:
            wide = float(value)
        else:
            with np.errstate(all="ignore"):
                wide = float(dtype.type(value))
        return f"0x{struct.unpack('<Q', struct.pack('<d', wide))[0]:016X}"
    return str(int(np.asarray(value).astype(dtype)))


def constant_of(a: Number) -> int | None:
    """A single whole number that is a constant, without its sign."""
    if a.lanes > 1 or a.text[0] == "%" or a.dtype.kind not in "iu":
        return None
    return int(a.text) % (1 << 8 * a.dtype.itemsize)


def folded(opcode: str, a: Number, b: Number) -> Number | None:
    """What an instruction on two single whole numbers gives, if it is one of them or a constant."""
    left, right = constant_of(a), constant_of(b)
    if left is not None and right is not None:
        compute, bits = _OF_CONSTANTS.get(opcode), 8 * a.dtype.itemsize
        if compute is None or (opcode == "urem" and not right):
            return None
        found = compute(left, right) % (1 << bits)
        return a._replace(text=str(found - (1 << bits) * (found >> bits - 1)))
    if right is not None and (opcode, right) in _UNCHANGED:
        return a
    if left is not None and opcode in ("add", "mul") and (opcode, left) in _UNCHANGED:
        return b
    return a._replace(text="0") if opcode == "mul" and 0 in (left, right) else None


_UNCHANGED: Final = frozenset({("add", 0), ("sub", 0), ("mul", 1)})
"""Opcodes, and the second operand that leaves the first as it is."""
_OF_CONSTANTS: Final[dict[str, Callable[[int, int], int]]] = {
    "add": int.__add__,
    "sub": int.__sub__,
    "mul": int.__mul__,
    "and": int.__and__,
    "urem": int.__mod__,
}
"""What opcodes compute of numbers without signs."""


class Emitter:
    """Instructions of one function body, in order.

    ``contract`` lets a product and a sum become one rounding, but within `strict`; nothing else is relaxed.
    ``declarations`` and ``definitions`` (by name) are what the module holds beside the function. ``block`` is the label
    of the block that is being written: what a phi node that follows names. ``outlined``: functions of `vector_math` are
    called, not written out. ``separate``: the product that a sum holds is rounded first. ``divides``: the divider has
    the time that quotients take, beside the rest. ``slopes``: a tanh is computed beside its derivative, which needs its
    reciprocal too. ``plain``: what is written is generated at level 0.

    LLVM has two ways to choose instructions at level 0. The one that takes half the time does not know vector constants
    nor negated vectors, and where it meets one, the other one does all that is before it in the block. So constants are
    registers that are set at the beginning, and signs are changed as bits.
    """

    def __init__(
        self, lanes: int, features: frozenset[str] = frozenset(), block: str = "entry", outlined: bool = False,
        plain: bool = False,
    ) -> None:  # fmt: skip
        self.lanes = lanes
        self.outlined = outlined
        self.plain = plain
        self.stem = "%" if plain else "%v"
        """How names begin. Those that are numbers LLVM reads sooner; they must grow from line to line."""
        self.held: dict[tuple[str, str], Number] = {}
        """Constants in registers, by type and text."""
        self.opposites: dict[tuple[str, str], Number] = {}
        """By block and text, where it is ``plain``."""
        self.features = features
        self.block = block
        self.lines: list[str] = []
        self.rooms: list[str] = []
        self.declarations: set[str] = set()
        self.heads: dict[tuple[str, tuple[str, ...]], str] = {}
        """How calls of intrinsics begin that are declared, by their names and the types of the operands."""
        self.definitions: dict[str, str] = {}
        self.count = 0
        self.separate = self.divides = self.slopes = False
        self.flags = " contract"

    @contextmanager
    def strict(self) -> Iterator[None]:
        """Within it every sum and product is rounded as written: what error-free transformations need."""
        before, self.flags = self.flags, ""
        try:
            yield
        finally:
            self.flags = before

    # --- the basis ---------------------------------------------------------------------------------
    def fresh(self) -> str:
        self.count += 1
        return f"{self.stem}{self.count}"

    def emit(self, instruction: str) -> str:
        self.count += 1
        name = f"{self.stem}{self.count}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def do(self, instruction: str) -> None:
        self.lines.append(f"  {instruction}")

    def constant(self, value: Any, dtype: DType, lanes: int | None = None) -> Number:
        lanes = self.lanes if lanes is None else lanes
        text = constant_text(value, dtype)
        if lanes == 1:
            return Number(text, dtype, 1)
        zero = text in ("0", "false", "0x0000000000000000", "0xH0000")
        found = Number("zeroinitializer" if zero else f"splat ({scalar_name(dtype)} {text})", dtype, lanes)
        return self.hold(found) if self.plain else found

    def hold(self, a: Number) -> Number:
        """A constant as a register that has it from the beginning of the function."""
        key = a.type, a.text
        if key not in self.held:
            self.held[key] = a._replace(text=f"%held{len(self.held)}")
            self.rooms.append(f"  {self.held[key].text} = freeze {a.type} {a.text}")
        return self.held[key]

    def like(self, value: Any, x: Number) -> Number:
        """A constant of a number's type; numbers pass."""
        return value if isinstance(value, Number) else self.constant(value, x.dtype, x.lanes)

    def binary(self, opcode: str, a: Number, b: Number | float) -> Number:
        if not isinstance(b, Number):
            b = self.constant(b, a.dtype, a.lanes)
        text, dtype, lanes = a
        self.count += 1
        name = f"{self.stem}{self.count}"
        self.lines.append(f"  {name} = {opcode} {type_name(dtype, lanes)} {text}, {b[0]}")
        return Number(name, dtype, lanes)

    def intrinsic(self, name: str, *operands: Number) -> Number:
        """A call of an LLVM intrinsic that is overloaded on its first operand's type."""
        _, dtype, lanes = operands[0]
        types = tuple([type_name(operand[1], operand[2]) for operand in operands])
        head = self.heads.get((name, types))
        if head is None:
            function = f"@llvm.{name}.{suffix_name(dtype, lanes)}"
            self.declarations.add(f"declare {types[0]} {function}({', '.join(types)})")
            head = self.heads[name, types] = f"call {types[0]} {function}"
        given = ", ".join([f"{type} {operand[0]}" for type, operand in zip(types, operands, strict=True)])
        return Number(self.emit(f"{head}({given})"), dtype, lanes)

    # --- floating point ----------------------------------------------------------------------------
    def add(self, a: Number, b: Number | float) -> Number:
        return self.binary(f"fadd{self.flags}", a, b)

    def sub(self, a: Number | float, b: Number | float) -> Number:
        if not isinstance(a, Number):
            assert isinstance(b, Number)
            a = self.like(a, b)
        return self.binary(f"fsub{self.flags}", a, b)

    def mul(self, a: Number, b: Number | float) -> Number:
        return self.binary(f"fmul{self.flags}", a, b)

    def div(self, a: Number | float, b: Number) -> Number:
        return self.binary("fdiv", self.like(a, b), b)

    def neg(self, a: Number) -> Number:
        if not self.plain or a.lanes == 1:
            return Number(self.emit(f"fneg {a.type} {a.text}"), a.dtype, a.lanes)
        found = self.opposites.get((self.block, a.text))
        if found is None:
            bits = self.bits(a)
            found = self.from_bits(self.integer("xor", bits, np.iinfo(bits.dtype).min))
            self.opposites[self.block, a.text] = found
        return found

    def fma(self, a: Number, b: Number | float, c: Number | float) -> Number:
        """``a * b + c`` with one rounding where the machine has that, two elsewhere."""
        b, c = self.like(b, a), self.like(c, a)
        if "fma" not in self.features:
            return self.add(self.mul(a, b), c)
        return self.intrinsic("fma", a, b, c)

    def polynomial(self, x: Number, coefficients: Sequence[float]) -> Number:
        """Coefficients from the constant one up, by Estrin's scheme: few more products than Horner's, fewer steps."""
        if len(coefficients) < 4:
            return self.horner(x, coefficients)
        terms = [self.horner(x, coefficients[k : k + 2]) for k in range(0, len(coefficients), 2)]
        while len(terms) > 1:
            x = self.mul(x, x)
            if len(terms) == 3:  # as soon by Horner's scheme
                return self.fma(self.fma(terms[2], x, terms[1]), x, terms[0])
            pairs = [self.fma(high, x, low) for low, high in zip(terms[0::2], terms[1::2], strict=False)]
            terms = pairs + terms[2 * len(pairs) :]
        return terms[0]

    def horner(self, x: Number, coefficients: Sequence[float]) -> Number:
        found = self.like(coefficients[-1], x)
        for coefficient in reversed(coefficients[:-1]):
            found = self.fma(found, x, coefficient)
        return found

    def compare(self, predicate: str, a: Number, b: Number | float) -> Number:
        """``predicate`` is LLVM's: olt, oeq, une, uno, … for floats; eq, slt, ult, … for integers."""
        b = self.like(b, a)
        if predicate == "ult":
            left, right = constant_of(a), constant_of(b)
            if left is not None and right is not None:
                return self.constant(left < right, BOOL, 1)
        opcode = "fcmp" if a.dtype.kind == "f" else "icmp"
        return Number(self.emit(f"{opcode} {predicate} {a.type} {a.text}, {b.text}"), BOOL, a.lanes)

    def select(self, condition: Number, a: Number | float, b: Number | float) -> Number:
        if not isinstance(a, Number):
            assert isinstance(b, Number)
            a = self.like(a, b)
        b = self.like(b, a)
        text = f"select {condition.type} {condition.text}, {a.type} {a.text}, {b.type} {b.text}"
        return Number(self.emit(text), a.dtype, a.lanes)

    # --- bits and conversions ----------------------------------------------------------------------
    def bits(self, a: Number) -> Number:
        """A floating number's bits as a signed integer of its width."""
        target = np.dtype(f"i{a.dtype.itemsize}")
        return self.convert("bitcast", a, target)

    def from_bits(self, a: Number) -> Number:
        return self.convert("bitcast", a, np.dtype(f"f{a.dtype.itemsize}"))

    def convert(self, opcode: str, a: Number, dtype: DType) -> Number:
        target = Number("", dtype, a.lanes)
        return Number(self.emit(f"{opcode} {a.type} {a.text} to {target.type}"), dtype, a.lanes)

    def integer(self, opcode: str, a: Number, b: Number | int) -> Number:
        """and, or, xor, shl, lshr, ashr, add, sub, mul on integers (and bool)."""
        if not isinstance(b, Number):
            b = self.constant(b, a.dtype, a.lanes)
        found = folded(opcode, a, b) if a.lanes == 1 else None
        return self.binary(opcode, a, b) if found is None else found

    def lesser(self, a: Number, b: Number) -> Number:
        """The lesser of two numbers that are not below 0."""
        left, right = constant_of(a), constant_of(b)
        if left is None or right is None:
            return self.intrinsic("umin", a, b)
        return a if left < right else b

    def hidden(self, a: Number) -> Number:
        """A single whole number of 64 bits of which LLVM is not to know what it is."""
        return Number(self.emit(f'call i64 asm "", "=r,0"(i64 {a.text})'), a.dtype, 1)

    def invert(self, a: Number) -> Number:
        return self.binary("xor", a, -1 if a.dtype != BOOL else 1)

    # --- control flow ------------------------------------------------------------------------------
    def label(self, stem: str) -> str:
        """A label that no other block has."""
        self.count += 1
        return f"{stem}{self.count}"

    def start(self, label: str) -> None:
        """Begin a block; the one before must have ended in a branch."""
        self.lines.append(f"{label}:")
        self.block = label

    def branch(self, condition: Number, yes: str, no: str) -> None:
        """End the block: to ``yes`` where the scalar condition holds."""
        self.do(f"br i1 {condition.text}, label %{yes}, label %{no}")

    def jump(self, label: str) -> None:
        """End the block."""
        self.do(f"br label %{label}")

    def phi(self, *incoming: tuple[Number, str]) -> Number:
        """The value of the block that control came from."""
        first = incoming[0][0]
        pairs = ", ".join(f"[ {value.text}, %{label} ]" for value, label in incoming)
        return Number(self.emit(f"phi {first.type} {pairs}"), first.dtype, first.lanes)

    def any(self, mask: Number) -> Number:
        """Whether a bool holds in some lane, as a scalar."""
        if mask.lanes == 1:
            return mask
        bits = self.emit(f"bitcast {mask.type} {mask.text} to i{mask.lanes}")
        return Number(self.emit(f"icmp ne i{mask.lanes} {bits}, 0"), BOOL, 1)

    def every(self, mask: Number) -> Number:
        """Whether a bool holds in all lanes, as a scalar."""
        if mask.lanes == 1:
            return mask
        bits = self.emit(f"bitcast {mask.type} {mask.text} to i{mask.lanes}")
        return Number(self.emit(f"icmp eq i{mask.lanes} {bits}, -1"), BOOL, 1)

    # --- memory ------------------------------------------------------------------------------------
    def room(self, type: str, align: int) -> str:
        """A pointer to memory of the function, which has it from its beginning (its first lines are ``rooms``)."""
        name = f"%room{len(self.rooms)}"
        self.rooms.append(f"  {name} = alloca {type}, align {align}")
        return name

    def splat(self, a: Number, lanes: int) -> Number:
        """A scalar in every lane."""
        if lanes == 1 or a.lanes == lanes:
            return a
        vector = Number("", a.dtype, lanes).type
        first = self.emit(f"insertelement {vector} poison, {a.type} {a.text}, i64 0")
        text = self.emit(f"shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer")
        return Number(text, a.dtype, lanes)
