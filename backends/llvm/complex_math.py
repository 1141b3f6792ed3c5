"""What operations on complex numbers are on their parts: NumPy's formulas, with its special values.

Products are not fused with the sums that read them: of z and its conjugate the imaginary part is 0. A part that is
known to be 0, as of a real number that becomes complex, is a constant: of inf and nan it makes what it does in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final, NamedTuple

import numpy as np

from srcgrad.backends.llvm.emitter import F32
from srcgrad.ir.core import Attrs, Literal, is_splat, literal
from srcgrad.ir.opdef import REGISTRY, Op, Term
from srcgrad.ir.ops.complexes import dtype_text
from srcgrad.ir.types import ArrayType, DType, complex_dtype, real_dtype

_TOP: Final = {8: 709.0, 4: 88.0}
"""By the bytes of a part, up to where exp is finite."""
_FAR: Final = {8: 22.0, 4: 11.0}
"""The same, from where on tanh is 1."""


class Parts(NamedTuple):
    """A complex number. ``turn``: the real part is 0, or nan where the other is infinite or nan."""

    real: Term
    imag: Term
    turn: bool = False


def pair(real: Term, imag: Term) -> Parts:
    return Parts(real, imag)


class Inner(Op, abstract=True):
    """An operation that only loops have, on numbers of one type."""

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        return types[0]


class Product(Inner, abstract=True):
    """A product that is rounded before it is added."""

    name: ClassVar[str] = "product"

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"({operands[0]} * {operands[1]})"


class LogHypot(Inner, abstract=True):
    """The logarithm of the absolute value, accurate where that is near 1."""

    name: ClassVar[str] = "log_hypot"
    helpers: ClassVar[tuple[str, ...]] = ("make_complex",)

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        dtype = dtype_text(complex_dtype(result.dtype))
        return f"np.log(make_complex({operands[0]}, {operands[1]}, {dtype})).real"


PRODUCT: Final = Product()
LOG_HYPOT: Final = LogHypot()


def times(a: Term, b: Term) -> Term:
    """A product, rounded; by 1 or -1 there is nothing to round."""
    for one, other in ((a, b), (b, a)):
        if is_splat(one.value, 1):
            return other
        if is_splat(one.value, -1):
            return -other
    found: Term = PRODUCT(a, b)
    return found


def is_nought(a: Term) -> bool:
    """Whether it is known to be 0 everywhere, of any sign."""
    return is_splat(a.value, 0)


def choose(where: Term, a: Term, b: Term) -> Term:
    found: Term = REGISTRY["select"](where, a, b)
    return found


# --- arithmetic ------------------------------------------------------------------------------------
def add(a: Parts, b: Parts) -> Parts:
    return Parts(a.real + b.real, a.imag + b.imag, a.turn and b.turn)


def sub(a: Parts, b: Parts) -> Parts:
    return Parts(a.real - b.real, a.imag - b.imag, a.turn and b.turn)


def neg(a: Parts) -> Parts:
    return Parts(-a.real, -a.imag, a.turn)


def conj(a: Parts) -> Parts:
    return Parts(a.real, -a.imag, a.turn)


def mul(a: Parts, b: Parts) -> Parts:
    turn = (a.turn and is_nought(b.imag)) or (b.turn and is_nought(a.imag))
    real = times(a.real, b.real) - times(a.imag, b.imag)
    return Parts(real, times(a.real, b.imag) + times(a.imag, b.real), turn)


def square(a: Parts) -> Parts:
    cross = times(a.real, a.imag)
    return Parts(times(a.real, a.real) - times(a.imag, a.imag), cross + cross)


def div(a: Parts, b: Parts) -> Parts:
    """Smith's formula: no square overflows. By 0 each part is divided by 0."""
    if is_nought(b.imag):
        return over_real(a, b)
    size, other = REGISTRY["abs"](b.real), REGISTRY["abs"](b.imag)
    upper = REGISTRY["greater_equal"](size, other)
    large, small = choose(upper, b.real, b.imag), choose(upper, b.imag, b.real)
    first, second = choose(upper, a.real, a.imag), choose(upper, a.imag, a.real)
    ratio = small / large
    scale = 1.0 / (large + times(small, ratio))
    cross = times(first, ratio)
    real, imag = first + times(second, ratio), choose(upper, second - cross, cross - second)
    nothing, endless = (size == 0.0) & (other == 0.0), size.like(np.inf)
    return Parts(
        choose(nothing, times(a.real, endless), times(real, scale)),
        choose(nothing, times(a.imag, endless), times(imag, scale)),
    )


def over_real(a: Parts, b: Parts) -> Parts:
    """The quotient by a number whose imaginary part is 0; so is the ratio of its parts, with its sign."""
    scale = 1.0 / b.real
    ratio = choose(REGISTRY["sign_bit"](b.real), -b.imag, b.imag)
    real, imag = a.real + times(a.imag, ratio), a.imag - times(a.real, ratio)
    nothing, size = b.real == 0.0, REGISTRY["abs"](scale)
    return Parts(
        choose(nothing, times(a.real, size), times(real, scale)),
        choose(nothing, times(a.imag, size), times(imag, scale)),
    )


def reciprocal(a: Parts) -> Parts:
    upper = REGISTRY["less_equal"](REGISTRY["abs"](a.imag), REGISTRY["abs"](a.real))
    large, small = choose(upper, a.real, a.imag), choose(upper, a.imag, a.real)
    ratio = small / large
    total = large + times(small, ratio)
    one, other = 1.0 / total, ratio / total
    return Parts(choose(upper, one, other), choose(upper, -other, -one))


def integer_pow(a: Parts, y: int) -> Parts:
    """By squaring, as NumPy's: from 4 on it begins with 1."""
    if y in _SHORT:
        return _SHORT[y](a)
    found, power = Parts(a.real.like(1), a.real.like(0)), a
    bit = 1
    while True:
        if y & bit:
            found = mul(found, power)
        bit *= 2
        if bit > y:
            break
        power = mul(power, power)
    return found


_SHORT: Final[Mapping[int, Callable[[Parts], Parts]]] = {
    -1: reciprocal,
    1: lambda a: a,
    2: square,
    3: lambda a: mul(mul(a, a), a),
}


def one_minus_square(a: Parts) -> Parts:
    """(1 - z)(1 + z)."""
    less, more = 1.0 - a.real, a.real + 1.0
    return Parts(times(less, more) + times(a.imag, a.imag), times(less, a.imag) - times(a.imag, more))


# --- functions -------------------------------------------------------------------------------------
def exp(a: Parts) -> Parts:
    """e**x (cos y + i sin y), in two factors where e**x alone overflows; of i y it is a turn."""
    x, y = a.real, a.imag
    cosine, sine = REGISTRY["cos"](y), REGISTRY["sin"](y)
    if a.turn:
        return Parts(cosine, sine)
    top = _TOP[x.dtype.itemsize]
    large = x > top
    size = REGISTRY["exp"](choose(large, x - top, x))
    factor = choose(large, x.like(float(np.exp(top))), x.like(1))
    real, imag = times(size, times(cosine, factor)), times(size, times(sine, factor))
    endless = REGISTRY["is_inf"](x) & REGISTRY["logical_not"](REGISTRY["is_finite"](y))
    signed = choose(REGISTRY["sign_bit"](y), y.like(-0.0), y.like(0.0))
    imag = choose(endless & (x < 0.0), signed, choose(y == 0.0, y, imag))
    return Parts(choose(endless, size, real), imag)


def sinh(a: Parts) -> Parts:
    """sinh x cos y + i cosh x sin y."""
    x, y = a.real, a.imag
    size, other, (cosine, sine) = *hyperbolic(x), circular(x, y)
    endless = REGISTRY["logical_not"](REGISTRY["is_finite"](y))
    real = choose(endless & REGISTRY["is_inf"](x), REGISTRY["abs"](x), times(size, cosine))
    real = choose(endless & (x == 0.0), x, real)
    return Parts(real, choose(y == 0.0, y, times(other, sine)))


def cosh(a: Parts) -> Parts:
    """cosh x cos y + i sinh x sin y."""
    x, y = a.real, a.imag
    size, other, (cosine, sine) = *hyperbolic(x), circular(x, y)
    endless = REGISTRY["logical_not"](REGISTRY["is_finite"](y))
    real = choose(endless & REGISTRY["is_inf"](x), other, times(other, cosine))
    nothing = choose(REGISTRY["sign_bit"](x) & (x == x), -y, y)
    imag = choose(y == 0.0, nothing, times(size, sine))
    return Parts(real, choose(endless & (x == 0.0), x.like(0), imag))


def hyperbolic(x: Term) -> tuple[Term, Term]:
    """sinh x and cosh x, without a factor e**t where they overflow: `circular` has that."""
    top = _TOP[x.dtype.itemsize]
    near = REGISTRY["abs"](x) - top
    large = near > 0.0
    rest = REGISTRY["exp"](choose(large, near, x.like(0))) * 0.5
    signed = choose(x < 0.0, -rest, rest)
    return choose(large, signed, REGISTRY["sinh"](x)), choose(large, rest, REGISTRY["cosh"](x))


def circular(x: Term, y: Term) -> tuple[Term, Term]:
    """cos y and sin y, times e**t where |x| > t."""
    top = _TOP[x.dtype.itemsize]
    factor = choose(REGISTRY["abs"](x) > top, x.like(float(np.exp(top))), x.like(1))
    return times(REGISTRY["cos"](y), factor), times(REGISTRY["sin"](y), factor)


def sin(a: Parts) -> Parts:
    """sin x cosh y + i cos x sinh y."""
    found = sinh(Parts(a.imag, a.real))
    return Parts(found.imag, found.real)


def cos(a: Parts) -> Parts:
    """cosh(i z)."""
    return cosh(Parts(-a.imag, a.real))


def tanh(a: Parts) -> Parts:
    """(sinh x cosh x + i sin y cos y)/(sinh² x + cos² y); far out ±1 + 4i sin y cos y exp(-2|x|).

    Source: ISO C99, annex G.6.2.6, and its defect report 471, for what is infinite or nan.
    """
    x, y = a.real, a.imag
    size = REGISTRY["abs"](x)
    far, endless = size > _FAR[x.dtype.itemsize], REGISTRY["logical_not"](REGISTRY["is_finite"](y))
    inner, cosine = choose(far, x.like(1), x), REGISTRY["cos"](y)
    s, turned = REGISTRY["sinh"](inner), times(REGISTRY["sin"](y), cosine)
    below = 1.0 / (times(s, s) + times(cosine, cosine))
    zero, one = (choose(REGISTRY["sign_bit"](of), y.like(-k), y.like(k)) for of, k in ((y, 0.0), (x, 1.0)))
    real = choose(far, one, times(times(s, REGISTRY["cosh"](inner)), below))
    imag = times(turned, choose(far, 4.0 * REGISTRY["exp"](-2.0 * size), below))
    real = choose(endless & REGISTRY["is_finite"](x), choose(x == 0.0, x, x.like(np.nan)), real)
    imag = choose(endless & REGISTRY["is_inf"](x), zero, imag)
    return Parts(real, choose(y == 0.0, y, imag))


def tan(a: Parts) -> Parts:
    """-i tanh(i z)."""
    found = tanh(Parts(a.imag, a.real))
    return Parts(found.imag, found.real)


def sech(a: Parts) -> Parts:
    return div(Parts(a.real.like(1), a.real.like(0)), cosh(a))


def log(a: Parts) -> Parts:
    return Parts(LOG_HYPOT(a.real, a.imag), REGISTRY["arctan2"](a.imag, a.real))


def sqrt(a: Parts) -> Parts:
    """t + i y/(2t) or |y|/(2t) ± i t, where t² = (|x| + |z|)/2, scaled where that overflows or is small.

    Source: ISO C99, annex G.6.4.2, for what is infinite or nan.
    """
    x, y = a.real, a.imag
    absolute = REGISTRY["abs"]
    u, v = absolute(x), absolute(y)
    limits = np.finfo(x.dtype)
    largest = REGISTRY["maximum"](u, v)
    huge, tiny = largest > float(limits.max / 8), largest < float(limits.tiny * 2.0 ** (2 * limits.nmant))
    one, lift = x.like(1), 2 * (limits.nmant // 2 + 2)
    up = choose(huge, x.like(0.0625), choose(tiny, x.like(2.0 ** (2 * lift)), one))
    down = choose(huge, x.like(4), choose(tiny, x.like(2.0**-lift), one))
    scaled = times(u, up)
    root = REGISTRY["sqrt"](times(scaled + REGISTRY["hypot"](scaled, times(v, up)), x.like(0.5)))
    other = choose(root == 0.0, v, times(times(v, up), x.like(0.5)) / root)
    root, other = times(root, down), times(other, down)
    right = REGISTRY["logical_not"](REGISTRY["sign_bit"](x))
    real, imag = choose(right, root, other), choose(right, other, root)
    broad = REGISTRY["is_inf"](y)
    real, imag = choose(broad, v, real), choose(broad, v, imag)
    return Parts(real, choose(REGISTRY["sign_bit"](y), -imag, imag))


# --- which -----------------------------------------------------------------------------------------
def both(a: Parts, name: str, connective: str) -> Term:
    """A test of each part, and whether one of them or both pass."""
    found: Term = REGISTRY[connective](REGISTRY[name](a.real), REGISTRY[name](a.imag))
    return found


def equal(a: Parts, b: Parts) -> Term:
    return (a.real == b.real) & (a.imag == b.imag)


def not_equal(a: Parts, b: Parts) -> Term:
    unlike = REGISTRY["not_equal"]
    return unlike(a.real, b.real) | unlike(a.imag, b.imag)


def select(where: Term, a: Parts, b: Parts) -> Parts:
    return Parts(choose(where, a.real, b.real), choose(where, a.imag, b.imag), a.turn and b.turn)


def as_dtype(a: Term, dtype: DType) -> Term:
    return a if a.dtype == dtype else REGISTRY["cast"](a, dtype=dtype)


def cast(a: Parts | Term, dtype: DType) -> Parts | Term:
    """A real number has the imaginary part 0; of complex ones only 0 is false."""
    part = real_dtype(dtype)
    if isinstance(a, Term):
        real = as_dtype(a, part)
        return Parts(real, real.like(0))
    if dtype.kind == "b":
        return not_equal(a, Parts(a.real.like(0), a.real.like(0)))
    return Parts(as_dtype(a.real, part), as_dtype(a.imag, part), a.turn)


def joined(a: Term, b: Term) -> Parts:
    """The number of two parts, of which those of float16 become float32."""
    part = a.dtype if a.dtype.itemsize > 2 else F32
    return Parts(as_dtype(a, part), as_dtype(b, part), is_nought(a))


def each(name: str) -> Callable[..., Parts]:
    """What is done to each part."""

    def apply(*operands: Parts, **attrs: object) -> Parts:
        op = REGISTRY[name]
        return Parts(op(*[a.real for a in operands], **attrs), op(*[a.imag for a in operands], **attrs))

    return apply


Rule = Callable[..., Parts | Term]
ARITHMETIC: Final[Mapping[str, Rule]] = {
    "add": add,
    "sub": sub,
    "neg": neg,
    "conj": conj,
    "mul": mul,
    "square": square,
    "div": div,
    "reciprocal": reciprocal,
    "one_minus_square": one_minus_square,
    "identity": lambda a: a,
    "stop_gradient": lambda a: a,
    "real": lambda a: a.real,
    "imag": lambda a: a.imag,
    "complex": joined,
    "abs": lambda a: REGISTRY["hypot"](a.real, a.imag),
    "exp": exp,
    "log": log,
    "sqrt": sqrt,
    "sinh": sinh,
    "cosh": cosh,
    "tanh": tanh,
    "sech": sech,
    "sin": sin,
    "cos": cos,
    "tan": tan,
    "is_nan": lambda a: both(a, "is_nan", "logical_or"),
    "is_inf": lambda a: both(a, "is_inf", "logical_or"),
    "is_finite": lambda a: both(a, "is_finite", "logical_and"),
    "equal": equal,
    "not_equal": not_equal,
    "select": select,
    "cast": cast,
    **{name: each(name) for name in ("reduce_sum", "broadcast", "reshape", "transpose", "slice", "reverse")},
    **{name: each(name) for name in ("concatenate", "slice_set")},
}
"""By op, what it is of the parts; `complex_inverse` has logarithms, powers and inverse functions."""


def parts_of_literal(value: Literal) -> tuple[Literal, Literal]:
    """The parts of a constant, which may be a tape's."""
    type = value.type.with_dtype(real_dtype(value.type.dtype))
    real, imag = value.value.real, value.value.imag
    if value.splat:
        return Literal(type.dtype.type(real), type), Literal(type.dtype.type(imag), type)
    return literal(real, type), literal(imag, type)
