"""The elementwise ops in registers: what one line of NumPy means, on numbers or vectors of them.

Integers wrap around, comparisons follow the sign of the type, and a float16 result is rounded after each operation that
was made in float32, all as NumPy does it. Ops that are not in these tables are left to NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final

import numpy as np

from srcgrad.backends.llvm.emitter import BOOL, F32, F64, NAMES, DType, Emitter, Number
from srcgrad.backends.llvm.target import TARGET
from srcgrad.backends.llvm.vector_math import FUNCTIONS, LARGEST_POWER, whole_power
from srcgrad.backends.llvm.vector_math.exponents import frexp_exponent, ldexp
from srcgrad.ir.core import Attrs, Operation

F16: Final = np.dtype(np.float16)
_SHORT_POWERS: Final = range(5)
"""The powers that are products rounded one after another, as NumPy's of whole numbers; others are `whole_power`."""


def is_register(dtype: DType) -> bool:
    """Whether numbers of this dtype are computed with in registers."""
    if dtype == F16 and not TARGET.half:
        return False
    return dtype.isnative and dtype.str[1:].replace("u", "i") in NAMES


# --- tables: op name -> function of the emitter and the operands ----------------------------------------------------


def _arithmetic(floating: str, integer: str, boolean: str = "") -> Callable[..., Number]:
    def emit(e: Emitter, a: Number, b: Number) -> Number:
        if a.dtype.kind == "f":
            return e.binary(floating + e.flags, a, b)
        return e.binary(boolean if a.dtype == BOOL else integer, a, b)

    return emit


def _neg(e: Emitter, a: Number) -> Number:
    return e.neg(a) if a.dtype.kind == "f" else e.binary("sub", e.constant(0, a.dtype, a.lanes), a)


def _square(e: Emitter, a: Number) -> Number:
    return TABLE["mul"](e, a, a)


def _abs(e: Emitter, a: Number) -> Number:
    if a.dtype.kind == "f":
        return e.intrinsic("fabs", a)
    if a.dtype.kind == "u":
        return a
    return e.select(e.compare("slt", a, 0), _neg(e, a), a)


def _sign(e: Emitter, a: Number) -> Number:
    """-1, 0 or 1; 0 for both zeros, and nan of nan."""
    if a.dtype.kind == "f":
        found = e.select(e.compare("oeq", a, 0.0), 0.0, e.like(1.0, a))
        found = e.select(e.compare("olt", a, 0.0), -1.0, found)
        return e.select(e.compare("uno", a, a), a, found)
    found = e.select(e.compare("eq", a, 0), 0, e.like(1, a))
    return found if a.dtype.kind == "u" else e.select(e.compare("slt", a, 0), -1, found)


def extreme(e: Emitter, a: Number, b: Number, larger: bool) -> Number:
    """The larger or the smaller one; nan if one is nan."""
    if a.dtype.kind == "f":
        return FUNCTIONS["maximum" if larger else "minimum"](e, a, b)
    if a.dtype == BOOL:
        return e.binary("or" if larger else "and", a, b)
    return e.select(_ordered(e, "gt" if larger else "lt", a, b), a, b)


def _ordered(e: Emitter, relation: str, a: Number, b: Number) -> Number:
    signs = {"f": "o", "i": "s"}
    return e.compare(signs.get(a.dtype.kind, "u") + relation, a, b)


def _comparison(relation: str) -> Callable[..., Number]:
    def emit(e: Emitter, a: Number, b: Number) -> Number:
        if relation in ("eq", "ne"):
            floating = "oeq" if relation == "eq" else "une"
            return e.compare(floating if a.dtype.kind == "f" else relation, a, b)
        return _ordered(e, relation, a, b)

    return emit


def _test(predicate: str, other: float | None, constant: bool) -> Callable[..., Number]:
    """A test of floats by comparing the absolute value; of what is no float it is ``constant``."""

    def emit(e: Emitter, a: Number) -> Number:
        if a.dtype.kind != "f":
            return e.constant(constant, BOOL, a.lanes)
        return e.compare(predicate, a, a) if other is None else e.compare(predicate, e.intrinsic("fabs", a), other)

    return emit


def _sign_bit(e: Emitter, a: Number) -> Number:
    return e.compare("slt", e.bits(a), 0)


def _shift(opcode: str) -> Callable[..., Number]:
    """All bits leave where the count is negative or at least the width."""

    def emit(e: Emitter, a: Number, b: Number) -> Number:
        width = 8 * a.dtype.itemsize
        inside = e.compare("ult", b, width)
        if opcode == "shl":
            return e.select(inside, e.binary("shl", a, e.select(inside, b, 0)), 0)
        if a.dtype.kind == "u":
            return e.select(inside, e.binary("lshr", a, e.select(inside, b, 0)), 0)
        return e.binary("ashr", a, e.select(inside, b, width - 1))

    return emit


def _one_minus_square(e: Emitter, a: Number) -> Number:
    return e.mul(e.sub(1.0, a), e.add(a, 1.0))


TABLE: Final[dict[str, Callable[..., Number]]] = {
    "neg": _neg,
    "add": _arithmetic("fadd", "add", "or"),
    "sub": _arithmetic("fsub", "sub"),
    "mul": _arithmetic("fmul", "mul", "and"),
    "product": lambda e, a, b: e.mul(a, b),
    "div": lambda e, a, b: e.div(a, b),
    "identity": lambda e, a: a,
    "stop_gradient": lambda e, a: a,
    "select": lambda e, p, a, b: e.select(e.splat(p, a.lanes), a, b),
    "square": _square,
    "reciprocal": lambda e, a: e.div(1.0, a),
    "sqrt": lambda e, a: e.intrinsic("sqrt", a),
    "kinked_sqrt": lambda e, a: e.intrinsic("sqrt", a),
    "one_minus_square": _one_minus_square,
    "abs": _abs,
    "sign": _sign,
    "maximum": lambda e, a, b: extreme(e, a, b, True),
    "minimum": lambda e, a, b: extreme(e, a, b, False),
    "floor": lambda e, a: e.intrinsic("floor", a),
    "ceil": lambda e, a: e.intrinsic("ceil", a),
    "trunc": lambda e, a: e.intrinsic("trunc", a),
    "rint": lambda e, a: e.intrinsic("rint", a),
    "equal": _comparison("eq"),
    "not_equal": _comparison("ne"),
    "less": _comparison("lt"),
    "less_equal": _comparison("le"),
    "greater": _comparison("gt"),
    "greater_equal": _comparison("ge"),
    "logical_and": lambda e, a, b: e.binary("and", a, b),
    "logical_or": lambda e, a, b: e.binary("or", a, b),
    "logical_xor": lambda e, a, b: e.binary("xor", a, b),
    "logical_not": lambda e, a: e.invert(a),
    "bitwise_and": lambda e, a, b: e.binary("and", a, b),
    "bitwise_or": lambda e, a, b: e.binary("or", a, b),
    "bitwise_xor": lambda e, a, b: e.binary("xor", a, b),
    "bitwise_not": lambda e, a: e.invert(a),
    "left_shift": _shift("shl"),
    "right_shift": _shift("shr"),
    "is_nan": _test("uno", None, False),
    "is_finite": _test("one", np.inf, True),
    "is_inf": _test("oeq", np.inf, False),
    "sign_bit": _sign_bit,
    "frexp_exponent": frexp_exponent,
    "ldexp": ldexp,
}
ROUNDED_ONCE: Final[dict[str, Callable[..., Number]]] = {
    "product_plus": lambda e, a, b, c: e.add(e.mul(a, b), c) if e.separate else e.fma(a, b, c),
    "product_minus": lambda e, a, b, c: e.sub(e.mul(a, b), c) if e.separate else e.fma(a, b, e.neg(c)),
    "minus_product": lambda e, a, b, c: e.sub(c, e.mul(a, b)) if e.separate else e.fma(e.neg(a), b, c),
}
"""What a product and the sum that reads it become, with one rounding where the machine has that and it is wanted."""
EMITTED: Final = {**FUNCTIONS, **ROUNDED_ONCE, **TABLE}
BELLS: Final = {1.0: "bell", 0.5: "half_bell"}
"""The functions that a `gaussian` is which is no derivative, by its factor."""
_MEMBERS: Final[dict[str, Callable[[Attrs], str | None]]] = {
    "gaussian": lambda attrs: None if attrs["n"] else BELLS.get(attrs["a"]),
    "polygamma": lambda attrs: "trigamma" if attrs["n"] == 1 else None,
    "bessel_slope": lambda attrs: f"i{attrs['order']}e_slope" if attrs["n"] == 1 and attrs["kind"] == "i" else None,
}
"""The functions of `vector_math` that members of families are."""
_FREE: Final = frozenset({"identity", "stop_gradient", "cast", "complex", "iota"})
_SLOW: Final = frozenset({"div", "frexp_exponent", "kinked_sqrt", "ldexp", "reciprocal", "sqrt"})
_IN_HALVES: Final = frozenset({"select", "neg", "abs", "identity", "stop_gradient", "sign_bit"})
"""Ops that are exact on float16 itself."""


# --- which -------------------------------------------------------------------------------------------------------


def supports(operation: Operation) -> bool:
    """Whether the operation, whose types all are registers', is computed in groups."""
    name = operation.op.name
    first = operation.operands[0].type.dtype if operation.operands else None
    if first is None:
        return False
    if name == "cast":
        return _supports_cast(first, operation.results[0].type.dtype)
    if name == "integer_pow":
        y = operation.attrs["y"]
        return y in _SHORT_POWERS or (y >= 0 if first.kind in "iu" else first.kind == "f" and abs(y) <= LARGEST_POWER)
    if name in TABLE:
        return not operation.attrs
    if name in _MEMBERS:
        return first.kind == "f" and _MEMBERS[name](operation.attrs) is not None
    # float16 has no functions of its own: it is computed in float32, as NumPy does.
    return name in FUNCTIONS and first.kind == "f" and not operation.attrs


def _supports_cast(source: DType, target: DType) -> bool:
    if F16 in (source, target):  # the way between float64 and float16 is a call of the compiler's library
        return {source, target} <= {F16, F32, BOOL} or (source == F16 and target == F64)
    # What the conversion of a float to an unsigned integer gives is the machine's choice.
    return not (source.kind == "f" and target.kind == "u")


def supports_iota(dtype: DType) -> bool:
    return dtype.kind in "iu" or dtype in (F32, F64)


def supports_fold(operation: Operation) -> bool:
    """Sums of float16 are NumPy's, in its order: their error is large enough to be seen."""
    dtype = operation.operands[0].type.dtype
    return dtype != F16


def is_function(operation: Operation, function: str = "") -> bool:
    """Whether it is one of the functions of `vector_math`, which are long."""
    name = function or operation.op.name
    return (name in FUNCTIONS and name not in TABLE) or name in _MEMBERS


def is_quotient(operation: Operation, function: str = "") -> bool:
    """Whether it is what the divider of a processor does."""
    return (function or operation.op.name) in ("div", "reciprocal", "sqrt")


def cost(operation: Operation, function: str = "") -> int:
    """About how many additions an operation costs, or the function that stands for it."""
    if operation.op.name == "integer_pow" and not function:
        return 1 if operation.attrs["y"] in _SHORT_POWERS else 16
    return _cost(function or operation.op.name)


@cache
def _cost(name: str) -> int:
    if name in _FREE:
        return 0
    if name in _SLOW:
        return 4
    if name in ROUNDED_ONCE:
        return 2
    return 1 if name in TABLE or name.startswith("reduce_") else 16


# --- emission ----------------------------------------------------------------------------------------------------


def emit(e: Emitter, operation: Operation, operands: list[Number], function: str = "") -> Number:
    """The instructions of one operation, or of the function that stands for it."""
    name = function or operation.op.name
    made = EMITTED.get(name)
    if made is None:
        if name.startswith("reduce_"):  # over no axes
            return operands[0]
        if name == "cast":
            return cast(e, operands[0], operation.attrs["dtype"])
        made = made_with_attrs(name, operation.attrs, operands[0].dtype)
    if operands[-1].dtype != F16 or name in _IN_HALVES:
        return made(e, *operands)
    found = made(e, *[e.convert("fpext", a, F32) if a.dtype == F16 else a for a in operands])
    return e.convert("fptrunc", found, F16) if found.dtype == F32 else found


def made_with_attrs(name: str, attrs: Attrs, dtype: DType) -> Callable[..., Number]:
    """What writes a member of a family, or a whole power."""
    if name in _MEMBERS:
        return FUNCTIONS[_MEMBERS[name](attrs) or ""]
    y = attrs["y"]
    return whole_power(y) if dtype.kind == "f" and y not in _SHORT_POWERS else partial(power, exponent=y)


def power(e: Emitter, a: Number, exponent: int) -> Number:
    """A whole power that is not negative, by squaring."""
    found = None
    while exponent:
        if exponent & 1:
            found = a if found is None else TABLE["mul"](e, found, a)
        exponent >>= 1
        a = _square(e, a) if exponent else a
    return e.like(1, a) if found is None else found


def cast(e: Emitter, a: Number, dtype: DType) -> Number:
    """NumPy's ``astype``."""
    source = a.dtype
    if source == dtype:
        return a
    if dtype == BOOL:
        return e.compare("une" if source.kind == "f" else "ne", a, 0)
    if source.kind == "f" and dtype.kind == "f":
        return e.convert("fpext" if dtype.itemsize > source.itemsize else "fptrunc", a, dtype)
    if source.kind == "f":
        # Through an integer that the machine converts to: what does not fit wraps around. Vectors of ARM convert to
        # integers of the float's width alone, single numbers to others too, and to the nearest: all do as vectors.
        wide = dtype.itemsize == 8 or (source == F64 and "neon" in e.features)
        whole = e.convert("fptosi", a, np.dtype(np.int64 if wide else np.int32))
        return cast(e, whole, dtype)
    signed = source.kind == "i"
    if dtype.kind == "f":
        return e.convert("sitofp" if signed else "uitofp", a, dtype)
    if source != BOOL and dtype.itemsize == source.itemsize:
        return Number(a.text, dtype, a.lanes)
    if source != BOOL and dtype.itemsize < source.itemsize:
        return e.convert("trunc", a, dtype)
    return e.convert("sext" if signed else "zext", a, dtype)


# --- folds -------------------------------------------------------------------------------------------------------


def combine(e: Emitter, name: str, a: Number, b: Number) -> Number:
    """One step of a reduction."""
    if name == "reduce_sum":
        return e.binary("fadd" if a.dtype.kind == "f" else "add", a, b)
    if name == "reduce_prod":
        return e.binary("fmul" if a.dtype.kind == "f" else "mul", a, b)
    if name in ("reduce_or", "reduce_and"):
        return e.binary(name.removeprefix("reduce_"), a, b)
    return extreme(e, a, b, name == "reduce_max")


def identity(name: str, dtype: DType) -> Any:
    """What a reduction begins with: 0.0 for sums, as in NumPy, so that no sum is -0.0."""
    if name in ("reduce_prod", "reduce_and"):
        return 1
    if name in ("reduce_sum", "reduce_or"):
        return 0
    largest = name == "reduce_min"
    if dtype.kind == "f":
        return np.inf if largest else -np.inf
    if dtype == BOOL:
        return largest
    limits = np.iinfo(dtype)
    return limits.max if largest else limits.min
