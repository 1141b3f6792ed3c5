"""What the functions share: error-free sums and products, powers of two, signs.

All of it is emitted within `Emitter.strict`: nothing is contracted, so that an error is what it says. A pair (high,
low) stands for the number high + low, |low| <= ulp(high)/2. Source: T. J. Dekker, A floating-point technique for
extending the available precision, 1971; D. E. Knuth, The Art of Computer Programming 2, 4.2.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.backends.llvm.coefficients import Fit
from srcgrad.backends.llvm.emitter import F32, F64, DType, Emitter, Number, constant_text

Pair = tuple[Number, Number]

ESTIMATES: Final = frozenset({"rcp14", "rsqrt14"})
"""Instructions of AVX-512 whose results are within 2**-14 and are not rounded."""

INFINITY: Final = math.inf
NAN: Final = math.nan


@dataclass(frozen=True)
class Format:
    """How the numbers of a function are held, and how good its results must be.

    ``fraction`` bits are those of a number's fraction, ``bias`` its exponent's at 1. ``short``: the results are for
    float32, so that polynomials of lower degrees do. ``spare``: they are, but the numbers are float64; nothing
    overflows, nothing is subnormal, and no rounding error counts. exp is 0 below ``smallest``, and infinite from
    ``largest`` on, where with ``spare`` only float32's are.
    """

    fraction: int
    bias: int
    smallest: float
    largest: float
    short: bool = False
    spare: bool = False

    @property
    def shifter(self) -> float:
        """Adding it rounds to whole numbers, which are then the low bits."""
        return 1.5 * 2.0**self.fraction

    @property
    def shifter_bits(self) -> int:
        return (self.bias + self.fraction << self.fraction) + (1 << self.fraction - 1)

    @property
    def one_bits(self) -> int:
        return self.bias << self.fraction

    @property
    def smallest_normal(self) -> float:
        return 2.0 ** (1 - self.bias)

    @property
    def nothing(self) -> float:
        """A number below 2 times two to the power of it, or of less, is 0; with ``spare`` it is in float32."""
        return -151.0 if self.spare else -float(self.bias + self.fraction + 1)

    @property
    def lift(self) -> int:
        """Times two to the power of it, subnormal numbers are normal."""
        return self.fraction + 2

    @property
    def tiny(self) -> float:
        """Below, x is the nearest number to what begins with x."""
        return 2.0 ** -(self.fraction + 2)

    def terms(self, fit: Fit) -> tuple[float, ...]:
        """The coefficients of a polynomial."""
        return fit.single if self.short else fit.double

    def parts(self, constant: Fit) -> tuple[float, ...]:
        """A constant as a sum of numbers of this format."""
        return constant.double if self.fraction == 52 else constant.single


DOUBLE: Final = Format(52, 1023, -746.0, 710.5)
WIDENED: Final = replace(DOUBLE, smallest=-200.0, largest=200.0, short=True, spare=True)  # what float32 becomes
SINGLE: Final = Format(23, 127, -105.0, 89.6, short=True)  # for machines with fused products


def format_of(x: Number) -> Format:
    """How a number is held."""
    return SINGLE if x.dtype == F32 else DOUBLE


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
    """The whole number that a sum with the shifter holds."""
    return e.sub(shifted, format_of(shifted).shifter)


def two_to_the(e: Emitter, shifted: Number) -> Number:
    """2**n of a sum n + shifter, where that is a normal number: n is added to the exponent of 1."""
    return _power_of_bits(e, e.bits(shifted), shifted)


def _power_of_bits(e: Emitter, bits: Number, like: Number) -> Number:
    form = format_of(like)
    return e.from_bits(e.integer("add", e.integer("shl", bits, form.fraction), form.one_bits))


def scaled(e: Emitter, a: Number, n: Number, shifted: Number | None = None) -> Number:
    """a * 2**n of a whole number n, |n| <= 2000 (250 for float32), rounded once where it is subnormal.

    Two powers are multiplied on: of half of n, and of the rest. The last bits of n + shifter, which may be given, hold
    n as a complement of two, and half of them floor(n/2).
    """
    a = left_of(e, a, n, format_of(a))
    if has_avx512(e):
        return avx512(e, "scalef", a, n)
    bits = e.bits(e.add(n, format_of(a).shifter) if shifted is None else shifted)
    half = e.integer("lshr", bits, 1)
    rest = e.integer("sub", bits, half)
    return e.mul(e.mul(a, _power_of_bits(e, half, a)), _power_of_bits(e, rest, a))


def left_of(e: Emitter, a: Number, n: Number, form: Format) -> Number:
    """The number, below 2, and 0 where a * 2**n is.

    Some processors take a hundred cycles and more to round a product to 0, as what is masked or far away is.
    """
    return e.select(e.compare("ugt", n, form.nothing), a, 0.0)


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
    rounded = name not in ESTIMATES
    if size == 512 and rounded:
        arguments.append("i32 4")
        types.append("i32 immarg")
    masked = "mask." if rounded else ""
    function = f"@llvm.x86.avx512.{masked}{name}.{kind}.{size}"
    e.declarations.add(f"declare {vector} {function}({', '.join(types)})")
    return first._replace(text=e.emit(f"call {vector} {function}({', '.join(arguments)})"))


def corrected_quotient(e: Emitter, a: Number, b: Number, inverse: Number) -> Number:
    """a/b, to the last bit, of 1/b rounded, with fused products (P. Markstein; see ``quotients.py``)."""
    q = e.mul(a, inverse)
    return e.fma(e.neg(e.fma(q, b, e.neg(a))), inverse, q)


def root_pair(e: Emitter, x: Number) -> Pair:
    """√x of a float64 number, 0 or at least 2**-500, and what it lacks; nan of a negative one.

    The divider takes as long for a root, and again for what it lacks, as twenty products take. With AVX-512 both come
    from an estimate h of 1/(2 √x): g = 2 x h, and each step takes g (1/2 - g h) off g, and likewise off h (R. E.
    Goldschmidt, Applications of division by convergence, 1964); then g + h (x - g²) is the root.
    """
    if not has_avx512(e):
        root = e.intrinsic("sqrt", x)
        square, low = exact_product(e, root, root)
        error = e.div(e.sub(e.sub(x, square), low), e.add(root, root))
        return root, e.select(e.compare("ogt", root, 0.0), error, 0.0)
    estimate = avx512(e, "rsqrt14", x)
    root, half = e.mul(x, estimate), e.mul(estimate, 0.5)
    for _ in range(2):
        step = e.fma(e.neg(root), half, 0.5)
        root, half = e.fma(root, step, root), e.fma(half, step, half)
    error = e.mul(e.fma(e.neg(root), root, x), half)
    zero = e.compare("oeq", x, 0.0)
    return e.select(zero, 0.0, root), e.select(zero, 0.0, error)


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
    """The entry of a table that the last bits of the index name, a float of the index's width.

    A table of one or two registers of 64 bytes is one instruction of AVX-512.
    """
    dtype = np.dtype(f"f{index.dtype.itemsize}")
    full = 64 // dtype.itemsize
    if index.lanes > full:
        return joined_lanes(e, *(looked_up(e, name, table, half) for half in split_lanes(e, index)))
    kind, suffix = ("double", "pd") if dtype == F64 else ("float", "ps")
    texts = [f"{kind} {constant_text(value, dtype)}" for value in table]
    found = Number("poison", dtype, index.lanes)
    if index.lanes == full and has_avx512(e):
        low, *high = [f"{found.type} <{', '.join(texts[k : k + full])}>" for k in range(0, len(table), full)]
        function = f"@llvm.x86.avx512.vpermi2var.{suffix}.512" if high else "@llvm.x86.avx512.permvar.sf.512"
        types = [found.type, index.type, found.type][: 2 + len(high)]
        e.declarations.add(f"declare {found.type} {function}({', '.join(types)})")
        operands = ", ".join([low, f"{index.type} {index.text}", *high])
        return found._replace(text=e.emit(f"call {found.type} {function}({operands})"))
    name = f"{name}_{kind}"
    e.definitions[f"@{name}"] = f"@{name} = internal constant [{len(table)} x {kind}] [{', '.join(texts)}]"
    last = e.integer("and", index, len(table) - 1)
    for lane in range(index.lanes):
        one = last.text if index.lanes == 1 else e.emit(f"extractelement {last.type} {last.text}, i64 {lane}")
        place = e.emit(f"getelementptr {kind}, ptr @{name}, {last._replace(lanes=1).type} {one}")
        value = e.emit(f"load {kind}, ptr {place}, align {dtype.itemsize}")
        text = value
        if index.lanes > 1:
            text = e.emit(f"insertelement {found.type} {found.text}, {kind} {value}, i64 {lane}")
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
