"""What the functions share: error-free sums and products, powers of two, signs.

All of it is emitted within `Emitter.strict`: nothing is contracted, so that an error is what it says. A pair (high,
low) stands for the number high + low, |low| <= ulp(high)/2. Source: T. J. Dekker, A floating-point technique for
extending the available precision, 1971; D. E. Knuth, The Art of Computer Programming 2, 4.2.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from srcgrad.backends.llvm.emitter import F32, F64, DType, Emitter, Number, constant_text

Pair = tuple[Number, Number]

INFINITY: Final = math.inf
NAN: Final = math.nan
SHIFTER: Final = 1.5 * 2.0**52  # adding it rounds to whole numbers, which are then the low bits
SHIFTER_BITS: Final = 0x4338000000000000
ONE_BITS: Final = 0x3FF0000000000000
SMALLEST_NORMAL: Final = 2.0**-1022


def has_avx512(e: Emitter) -> bool:
    return e.features >= {"avx512f", "avx512vl"}


def quick_sum(e: Emitter, a: Number, b: Number) -> Pair:
    """a + b without error, where |a| >= |b| or a is 0."""
    total = e.add(a, b)
    return total, e.sub(b, e.sub(total, a))


def exact_sum(e: Emitter, a: Number, b: Number) -> Pair:
    """a + b without error."""
    total = e.add(a, b)
    second = e.sub(total, a)
    return total, e.add(e.sub(a, e.sub(total, second)), e.sub(b, second))


def split(e: Emitter, a: Number) -> Pair:
    """Two parts of 26 bits: the bits are masked, so that nothing overflows."""
    high = truncated(e, a, 27)
    return high, e.sub(a, high)


def truncated(e: Emitter, a: Number, zeros: int) -> Number:
    """The number with its last bits 0."""
    return e.from_bits(e.integer("and", e.bits(a), -(1 << zeros)))


def exact_product(e: Emitter, a: Number, b: Number) -> Pair:
    """a * b without error, where the error does not underflow."""
    product = e.mul(a, b)
    if "fma" in e.features:
        return product, e.fma(a, b, e.neg(product))
    (a1, a2), (b1, b2) = split(e, a), split(e, b)
    # The parts below have 26 and 27 bits: their products are exact.
    error = e.sub(e.mul(a1, b1), product)
    error = e.add(error, e.mul(a1, b2))
    error = e.add(error, e.mul(a2, b1))
    return product, e.add(error, e.mul(a2, b2))


def magnitude(e: Emitter, a: Number) -> Number:
    return e.intrinsic("fabs", a)


def with_sign(e: Emitter, a: Number, sign: Number) -> Number:
    return e.intrinsic("copysign", a, sign)


def at_least(e: Emitter, a: Number, bound: float) -> Number:
    """The larger; nan stays."""
    return e.select(e.compare("olt", a, bound), bound, a)


def at_most(e: Emitter, a: Number, bound: float) -> Number:
    """The smaller; nan stays."""
    return e.select(e.compare("ogt", a, bound), bound, a)


def negative(e: Emitter, a: Number) -> Number:
    """Whether the sign bit is set: -0 has one."""
    return e.compare("slt", e.bits(a), 0)


def nearest(e: Emitter, shifted: Number) -> Number:
    """The whole number that a sum with SHIFTER holds."""
    return e.sub(shifted, SHIFTER)


def two_to_the(e: Emitter, shifted: Number) -> Number:
    """2**n of a sum n + SHIFTER, -1022 <= n <= 1023: n is added to the exponent of 1."""
    return e.from_bits(e.integer("add", e.integer("shl", e.bits(shifted), 52), ONE_BITS))


def scaled_one(e: Emitter, shifted: Number, n: Number) -> Number:
    """2**n, -1022 <= n <= 1023, of a whole number and its sum with SHIFTER."""
    if has_avx512(e):
        return avx512(e, "scalef", e.like(1.0, n), n)
    return two_to_the(e, shifted)


def quarter_of_two_to_the(e: Emitter, shifted: Number, n: Number) -> Number:
    """2**(n - 2), -1020 <= n <= 1025; ``shifted`` is n + SHIFTER."""
    if has_avx512(e):
        return avx512(e, "scalef", e.like(0.25, n), n)
    return two_to_the(e, e.sub(shifted, 2.0))


def scaled(e: Emitter, a: Number, n: Number) -> Number:
    """a * 2**n of a whole number n, |n| <= 2000, rounded once where it is subnormal."""
    if has_avx512(e):
        return avx512(e, "scalef", a, n)
    half = e.add(e.mul(n, 0.5), SHIFTER)
    rest = e.add(e.sub(n, nearest(e, half)), SHIFTER)
    return e.mul(e.mul(a, two_to_the(e, half)), two_to_the(e, rest))


def avx512(e: Emitter, name: str, *operands: Number, immediate: int | None = None) -> Number:
    """An instruction of AVX-512: masked intrinsics, every lane written, in the rounding mode in force.

    Other numbers of lanes are halved, or padded, to what the intrinsics know.
    """
    first = operands[0]
    width, kind = (32, "ps") if first.dtype == F32 else (64, "pd")
    if first.lanes * width > 512:
        halves = zip(*(split_lanes(e, operand) for operand in operands), strict=True)
        return joined_lanes(e, *(avx512(e, name, *half, immediate=immediate) for half in halves))
    if first.lanes == 1:
        wide = [e.splat(operand, 128 // width) for operand in operands]
        found = avx512(e, name, *wide, immediate=immediate)
        return first._replace(text=e.emit(f"extractelement {found.type} {found.text}, i64 0"))
    if first.lanes * width < 128:
        padding = [operand._replace(text="zeroinitializer") for operand in operands]
        pairs = zip(operands, padding, strict=True)
        return split_lanes(e, avx512(e, name, *(joined_lanes(e, *pair) for pair in pairs), immediate=immediate))[0]
    size, vector = first.lanes * width, first.type
    arguments = [f"{vector} {operand.text}" for operand in operands]
    types = [vector] * len(operands)
    if immediate is not None:
        arguments.append(f"i32 {immediate}")
        types.append("i32 immarg")
    mask = f"i{max(first.lanes, 8)}"
    arguments += [f"{vector} zeroinitializer", f"{mask} -1"]
    types += [vector, mask]
    if size == 512 and name != "rcp14":
        arguments.append("i32 4")
        types.append("i32 immarg")
    masked = "" if name == "rcp14" else "mask."
    function = f"@llvm.x86.avx512.{masked}{name}.{kind}.{size}"
    e.declarations.add(f"declare {vector} {function}({', '.join(types)})")
    return first._replace(text=e.emit(f"call {vector} {function}({', '.join(arguments)})"))


def split_lanes(e: Emitter, a: Number) -> Pair:
    """The lower and the upper half of a vector."""
    half = a.lanes // 2

    def part(start: int) -> Number:
        lanes = ", ".join(f"i32 {start + lane}" for lane in range(half))
        text = e.emit(f"shufflevector {a.type} {a.text}, {a.type} poison, <{half} x i32> <{lanes}>")
        return a._replace(text=text, lanes=half)

    return part(0), part(half)


def joined_lanes(e: Emitter, low: Number, high: Number) -> Number:
    count = 2 * low.lanes
    lanes = ", ".join(f"i32 {lane}" for lane in range(count))
    text = e.emit(f"shufflevector {low.type} {low.text}, {high.type} {high.text}, <{count} x i32> <{lanes}>")
    return low._replace(text=text, lanes=count)


def looked_up(e: Emitter, name: str, table: Sequence[float], index: Number) -> Number:
    """The entry of a table of 16 float64 that the last four bits of the index name."""
    if index.lanes > 8:
        return joined_lanes(e, *(looked_up(e, name, table, half) for half in split_lanes(e, index)))
    texts = [f"double {constant_text(value, F64)}" for value in table]
    if index.lanes == 8 and has_avx512(e):
        vector, integers = "<8 x double>", "<8 x i64>"
        function = "@llvm.x86.avx512.vpermi2var.pd.512"
        e.declarations.add(f"declare {vector} {function}({vector}, {integers}, {vector})")
        low, high = (f"{vector} <{', '.join(part)}>" for part in (texts[:8], texts[8:]))
        return Number(e.emit(f"call {vector} {function}({low}, {integers} {index.text}, {high})"), F64, 8)
    e.definitions[f"@{name}"] = f"@{name} = internal constant [16 x double] [{', '.join(texts)}]"
    last = e.integer("and", index, 15)
    found = Number("poison", F64, index.lanes)
    for lane in range(index.lanes):
        one = last.text if index.lanes == 1 else e.emit(f"extractelement {last.type} {last.text}, i64 {lane}")
        place = e.emit(f"getelementptr double, ptr @{name}, i64 {one}")
        value = e.emit(f"load double, ptr {place}, align 8")
        text = value
        if index.lanes > 1:
            text = e.emit(f"insertelement {found.type} {found.text}, double {value}, i64 {lane}")
        found = found._replace(text=text)
    return found


def out_of_line(e: Emitter, name: str, function: Callable[..., Number], *operands: Number, cold: bool = True) -> Number:
    """A call of a function of its own; if that is cold, the vectors that are alive meet it on its path only."""
    types = tuple([(operand.dtype, operand.lanes) for operand in operands])
    key = (name, types, e.features)
    made = _DEFINED.get(key)
    if made is None:
        made = _DEFINED[key] = _defined(name, function, types, e.features, cold)
    e.declarations |= made.declarations
    e.definitions.update(made.definitions)
    given = ", ".join(f"{operand.type} {operand.text}" for operand in operands)
    return made.result._replace(text=e.emit(f"call {made.result.type} {made.name}({given})"))


class _Defined(NamedTuple):
    """A function of its own, and what it needs."""

    name: str
    result: Number
    declarations: frozenset[str]
    definitions: dict[str, str]


_DEFINED: Final[dict[Any, _Defined]] = {}
"""By name, types of the operands and features: the name says what the function is."""


def _defined(
    name: str,
    function: Callable[..., Number],
    types: tuple[tuple[DType, int], ...],
    features: frozenset[str],
    cold: bool,
) -> _Defined:
    inner = Emitter(types[0][1], features)
    parameters = [Number(f"%x{number}", *type) for number, type in enumerate(types)]
    with inner.strict():
        found = function(inner, *parameters)
    helper = f"@srcgrad_{name}_{types[0][1]}"
    head = f"define internal {found.type} {helper}({', '.join(f'{x.type} {x.text}' for x in parameters)})"
    attributes = 'noinline nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512"'
    attributes = f"cold {attributes}" if cold else attributes
    text = "\n".join([f"{head} {attributes} {{", "entry:", *inner.lines, f"  ret {found.type} {found.text}", "}"])
    return _Defined(helper, found, frozenset(inner.declarations), {**inner.definitions, helper: text})


def where_rare(
    e: Emitter, mask: Number, name: str, function: Callable[..., Number], result: Number, *operands: Number
) -> Number:
    """``result``, or where a lane of the mask holds, all lanes of an `out_of_line` function of the operands."""
    some = e.any(mask)
    rare, usual, before = e.label("rare"), e.label("usual"), e.block
    e.branch(some, rare, usual)
    e.start(rare)
    redone = out_of_line(e, name, function, *operands)
    e.jump(usual)
    e.start(usual)
    return e.phi((result, before), (redone, rare))
