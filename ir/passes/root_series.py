"""Functions of a root that are smooth where it is 0: cos(sqrt(x)), (1 + r)*exp(-r) of r = sqrt(x), x/(1 + sqrt(x)).

At 0 the slope of the root is infinite, and times the 0 of what it is in; that of the whole is a number. The function is
a power series in the root, u = a*sqrt(x), whose coefficients the program says. Where that of u is 0, those of u**2,
u**4, … up to the first odd power are the derivatives in x, and the odd power is infinite in those that it has not in
common with them. At 0 the series takes the place of the function, whose value stays, and which is held there.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.ir.core import Builder, Operation, Value
from srcgrad.ir.opdef import Term
from srcgrad.ir.passes.flats import held
from srcgrad.ir.passes.matching import apply, is_known, made_by, rule
from srcgrad.ir.passes.roots import is_held, number

COUNT: Final = 17
"""How many coefficients there are: derivatives at 0 are right up to the eighth."""
DEPTH: Final = 8
"""How many ops a function may be made of, one behind the other."""
LOOKED: Final = 16
"""How many ops a root is looked for behind."""
ROUNDING: Final = 2.0**-50
Scale = tuple[tuple[Value, int], ...]
Numbers = np.ndarray[Any, np.dtype[np.float64]]


class Series(NamedTuple):
    """Coefficients of the powers of ``sqrt(base)`` times and over values, and their rounding errors at most.

    A number is one without a base.
    """

    base: Value | None
    scale: Scale
    terms: Numbers
    errors: Numbers

    @property
    def exact(self) -> Numbers:
        """The coefficients, with 0 for those that are nothing but rounding."""
        return np.where(np.abs(self.terms) <= self.errors, 0.0, self.terms)

    def with_terms(self, terms: Numbers, errors: Numbers) -> Series | None:
        return self._replace(terms=terms, errors=errors) if np.isfinite(terms).all() else None


def of_number(number: float) -> Series:
    terms = np.zeros(COUNT)
    terms[0] = number
    return Series(None, (), terms, np.abs(terms) * ROUNDING)


def of_power(base: Value, k: int) -> Series:
    terms = np.zeros(COUNT)
    terms[k] = 1.0
    return Series(base, (), terms, np.zeros(COUNT))


# --- arithmetic -------------------------------------------------------------------------------------------------------


def added(one: Series, other: Series, sign: float) -> Series | None:
    joint = shared(one, other)
    if joint is None:
        return None
    return joint.with_terms(one.terms + sign * other.terms, one.errors + other.errors)


def shared(one: Series, other: Series) -> Series | None:
    """What says which root both are of."""
    if one.base is None or (one.base is other.base and one.scale == other.scale):
        return other
    return one if other.base is None else None


def product(one: Series, other: Series) -> Series | None:
    joint = shared(one, other)
    if joint is None:
        return None
    (a, ea), (b, eb) = ((np.abs(each.terms), each.errors) for each in (one, other))
    errors = cut(a, eb + ROUNDING * b) + cut(ea, b + eb)
    return joint.with_terms(cut(one.terms, other.terms), errors)


def cut(a: Numbers, b: Numbers) -> Numbers:
    return np.convolve(a, b)[:COUNT]


def quotient(one: Series, other: Series) -> Series | None:
    below = composed(other, "reciprocal")
    return None if below is None else product(one, below)


def coefficients(name: str, place: float, exponent: float = 0.0) -> list[float] | None:
    """Those of a function around a place, from the recurrence that its differential equation is."""
    if name in ("exp", "expm1"):
        return [math.exp(place) / math.factorial(k) for k in range(COUNT)]
    if name in ("sin", "cos"):
        cycle = [math.sin(place), math.cos(place), -math.sin(place), -math.cos(place)]
        return [cycle[(k + (name == "cos")) % 4] / math.factorial(k) for k in range(COUNT)]
    if name in ("sinh", "cosh"):
        pair = [math.sinh(place), math.cosh(place)]
        return [pair[(k + (name == "cosh")) % 2] / math.factorial(k) for k in range(COUNT)]
    if name in ("log", "log1p"):
        place += name == "log1p"
        return [math.log(place), *[-((-1.0 / place) ** k) / k for k in range(1, COUNT)]] if place > 0.0 else None
    if name in ("reciprocal", "sqrt", "pow"):
        power = {"reciprocal": -1.0, "sqrt": 0.5}.get(name, exponent)
        if place == 0.0 or (place < 0.0 and not power.is_integer()):
            return None
        found = [place**power]
        for k in range(1, COUNT):
            found.append(found[-1] * (power - k + 1.0) / (k * place))
        return found
    if name in ("tanh", "expit"):  # y' = 1 - y**2, y' = y - y**2
        found = [math.tanh(place) if name == "tanh" else 0.5 + 0.5 * math.tanh(place / 2.0)]
        for k in range(COUNT - 1):
            square = sum(found[j] * found[k - j] for j in range(k + 1))
            found.append(((1.0 if k == 0 else 0.0) - square if name == "tanh" else found[k] - square) / (k + 1))
        return found
    if name in ("arcsin", "arctan", "arcsinh", "arctanh"):
        return of_inverse(name, place)
    if name in ("sinc", "j0") and place == 0.0:
        factors = [-(math.pi**2) / (2 * k * (2 * k + 1)) if name == "sinc" else -0.25 / k**2 for k in range(1, COUNT)]
        even = [math.prod(factors[:k]) for k in range(COUNT // 2 + 1)]
        return [even[k // 2] if k % 2 == 0 else 0.0 for k in range(COUNT)]
    return None


def of_inverse(name: str, place: float) -> list[float] | None:
    """The slope is a power of 1 + place**2 or 1 - place**2, of which the coefficients are those of a power."""
    sign, exponent = (1.0 if name in ("arctan", "arcsinh") else -1.0), (-0.5 if name in ("arcsin", "arcsinh") else -1.0)
    if sign < 0.0 and abs(place) >= 1.0:
        return None
    below = of_number(1.0 + sign * place * place)
    below.terms[1:3] = 2.0 * sign * place, sign
    slope = composed(below, "pow", exponent)
    if slope is None:
        return None
    value = float({"arcsin": math.asin, "arctan": math.atan, "arcsinh": math.asinh, "arctanh": math.atanh}[name](place))
    return [value, *(float(slope.terms[k]) / (k + 1) for k in range(COUNT - 1))]


def composed(inner: Series, name: str, exponent: float = 0.0) -> Series | None:
    """A function of a series."""
    try:
        outer = coefficients(name, float(inner.exact[0]), exponent)
    except OverflowError:
        return None
    if outer is None:
        return None
    rest, errors = inner.terms.copy(), inner.errors.copy()
    rest[0], errors[0] = 0.0, 0.0
    total: Series | None = of_number(outer[-1])
    for each in outer[-2::-1]:
        total = None if total is None else product(total, inner._replace(terms=rest, errors=errors))
        total = None if total is None else added(total, of_number(each), 1.0)
    if total is not None and name == "expm1":
        total = added(total, of_number(1.0), -1.0)
    return total


def power(inner: Series, exponent: int) -> Series | None:
    total: Series | None = of_number(1.0)
    for _ in range(exponent):
        total = None if total is None else product(total, inner)
    return total


# --- values -----------------------------------------------------------------------------------------------------------


Known = dict[Value, Series | None]


def series(value: Value, known: Known, depth: int = DEPTH) -> Series | None:
    """What a value is in a root that it is made of; None if it is not known."""
    if value not in known:
        known[value] = made_of(value, known, depth)
    return known[value]


def made_of(value: Value, known: Known, depth: int) -> Series | None:
    if is_known(value):
        number = float(value.value) if value.type.dtype.kind == "f" else math.nan
        return of_number(number) if math.isfinite(number) else None
    made = value.producer
    if made is None or depth == 0:
        return None
    name = made.op.name
    if is_held(value) or met(made) is not None:
        return series(made.operands[2], known, depth)
    if name in PAIRS:
        return of_two(made, known, depth - 1)
    exponent = exponent_of(made)
    if name not in FUNCTIONS and exponent is None:
        return None
    inner = series(made.operands[0], known, depth - 1)
    if exponent == 0.5 and (inner is None or inner.base is None or inner.exact[0] == 0.0):
        return of_power(unheld(made.operands[0]), 1)
    if inner is None or inner.base is None:
        return None
    if name == "neg":
        return inner._replace(terms=-inner.terms)
    if exponent is not None:
        whole = exponent.is_integer() and 0.0 < exponent < COUNT
        return power(inner, int(exponent)) if whole else composed(inner, "pow", exponent)
    return composed(inner, name)


def unheld(value: Value) -> Value:
    made = value.producer
    return made.operands[2] if made is not None and is_held(value) else value


def met(made: Operation) -> Value | None:
    """What a root is of that has met another before: `roots` and this module have put what it is at 0 beside it."""
    if made.op.name != "select" or not is_of_held(made.operands[2], made.operands[0], DEPTH):
        return None
    test = made_by(made.operands[0], "equal")
    return None if test is None or number(test.operands[1]) != 0.0 else test.operands[0]


def is_of_held(value: Value, where: Value, depth: int) -> bool:
    made = value.producer
    if made is None or depth == 0:
        return False
    if is_held(value):
        return made.operands[0] is where
    return made.op.name in OPS and any(is_of_held(each, where, depth - 1) for each in made.operands)


def exponent_of(made: Operation) -> float | None:
    exponent = {"square": 2.0, "sqrt": 0.5}.get(made.op.name)
    if made.op.name == "integer_pow":
        exponent = float(made.attrs["y"])
    elif made.op.name == "pow" and is_known(made.operands[1]):
        exponent = float(made.operands[1].value)
    return exponent


def of_two(made: Operation, known: Known, depth: int) -> Series | None:
    name, found = made.op.name, [series(operand, known, depth) for operand in made.operands]
    for one, other in ((0, 1), (1, 0)):
        root, value = found[one], made.operands[other]
        if root is None or root.base is None or found[other] is not None:
            continue
        if name == "mul" or (name == "div" and one == 0):
            return scaled(root, value, 1 if name == "mul" else -1)
    left, right = found
    if left is None or right is None:
        return None
    if name in ("minimum", "maximum"):
        return one_of(left, right, name == "minimum")
    if name == "arctan2":
        ratio = quotient(left, right) if right.exact[0] > 0.0 else None
        return None if ratio is None or ratio.base is None else composed(ratio, "arctan")
    if name in ("add", "sub"):
        return added(left, right, 1.0 if name == "add" else -1.0)
    return product(left, right) if name == "mul" else quotient(left, right)


def one_of(left: Series, right: Series, smaller: bool) -> Series | None:
    """The one of two that is the smaller, or the larger, where the root is 0; where they are equal there is a kink."""
    gap = added(left._replace(base=None), right._replace(base=None), -1.0)
    if gap is None or gap.exact[0] == 0.0:
        return None
    return left if (gap.exact[0] < 0.0) is smaller else right


def scaled(root: Series, value: Value, sign: int) -> Series | None:
    """A root times, or over, what the program does not say."""
    if np.flatnonzero(root.terms).tolist() != [1] or value is root.base:
        return None
    scale = sorted([*root.scale, (value, sign)], key=lambda pair: (id(pair[0]), pair[1]))
    return root._replace(scale=tuple(scale)) if len(scale) <= 2 else None


def rooted(value: Value) -> list[Value]:
    """What there is a root of among the first few ops that a value is made of."""
    pending, seen, found = [value.producer], 0, dict[Value, None]()
    while pending and seen < LOOKED:
        made, seen = pending.pop(0), seen + 1
        if made is not None and (made.op.name in OPS or is_held(made.results[0])):
            if exponent_of(made) == 0.5:
                found[made.operands[0]] = None
            pending += [operand.producer for operand in made.operands if operand.producer is not None]
    return list(found)


def with_base(value: Value, base: Value, place: Term, memo: dict[Value, Term]) -> Term:
    """The value of another base."""
    if value is base:
        return place
    made = value.producer
    if made is not None and met(made) is base:
        return Term(place.builder, made.operands[2])
    if made is None or not (made.op.name in OPS or is_held(value)):
        return Term(place.builder, value)
    if value in memo:
        return memo[value]
    if is_held(value):
        memo[value] = held(Term(place.builder, made.operands[0]), with_base(made.operands[2], base, place, memo))
    else:
        memo[value] = made.op(*[with_base(each, base, place, memo) for each in made.operands], **made.attrs)
    return memo[value]


# --- the rule ---------------------------------------------------------------------------------------------------------


def smooth_at_zero(operation: Operation, builder: Builder) -> Value | None:
    for base in rooted(operation.results[0]):
        found = smooth_in(base, operation, builder)
        if found is not None:
            return found
    return None


def smooth_in(root_of: Value, operation: Operation, builder: Builder) -> Value | None:
    known: Known = {root_of: of_power(root_of, 2)}
    found = series(operation.results[0], known)
    if found is None or found.base is not root_of or found.exact[1] != 0.0:
        return None
    sides = [known.get(operand) for operand in operation.operands]
    if all(each is None or each.base is None or each.exact[1] == 0.0 for each in sides):
        return None  # the root has met something that makes up for it before
    powers = np.flatnonzero(found.exact)
    if is_held(found.base) or len(powers[powers > 0]) == 0 or (len(powers) == 1 and not found.scale):
        return None  # of a power alone others know (`roots`)
    base = Term(builder, found.base)
    zero = base == 0.0
    plain = with_base(operation.results[0], found.base, held(zero, base), {})
    return apply("select", zero, plain + at_zero(found, base), plain).value


def at_zero(found: Series, base: Term) -> Term:
    """The powers of the base up to the first that is not whole."""
    place, sign = base, None
    for value, direction in found.scale:
        factor = Term(base.builder, value)
        for _ in range(2):  # not by the square, which may overflow where 0 times the factor is 0
            place = place * factor if direction > 0 else place / factor
        sign = apply("sign", factor) if sign is None else sign * apply("sign", factor)
    exact = found.exact
    odd = next((k for k in range(3, COUNT, 2) if exact[k]), COUNT)
    last = odd - 1 if odd < COUNT else COUNT - 1
    total: Term | None = None
    for k in range(last, 1, -2):
        if total is None and exact[k] == 0.0:
            continue
        total = place.like(float(exact[k])) if total is None else total + float(exact[k])
        total = total * place
    if odd < COUNT:
        half = float(exact[odd]) * apply("pow", place, odd / 2.0)
        half = half if sign is None else sign * half
        total = half if total is None else total + half
    assert total is not None
    return total


FUNCTIONS: Final = frozenset(
    {"neg", "exp", "expm1", "sin", "cos", "sinh", "cosh", "log", "log1p", "reciprocal", "tanh", "expit", "sinc", "j0"}
    | {"arcsin", "arctan", "arcsinh", "arctanh"}
)
PAIRS: Final = frozenset({"mul", "div", "add", "sub", "arctan2", "minimum", "maximum"})
OPS: Final = FUNCTIONS | PAIRS | {"square", "integer_pow", "pow", "sqrt"}
_EXAMPLES: Final = {
    "mul": (
        lambda x: (1.0 + apply("sqrt", x)) * apply("exp", -apply("sqrt", x)),
        lambda x: x * apply("log1p", apply("sqrt", x)),
        lambda x: apply("sqrt", x) * apply("sin", apply("sqrt", x)),
    ),
    "div": (
        lambda x: x / (1.0 + apply("sqrt", x)),
        lambda x: (2.0 + apply("sqrt", x)) / apply("exp", 0.5 * apply("sqrt", x)),
    ),
    "cos": (lambda x: apply("cos", apply("sqrt", x)), lambda x, y: apply("cos", apply("sqrt", x) * y)),
    "cosh": (lambda x: apply("cosh", 3.0 * apply("sqrt", x)),),
    "sinc": (lambda x: apply("sinc", apply("sqrt", x)),),
    "j0": (lambda x: apply("j0", apply("sqrt", x)),),
    "square": (lambda x: apply("square", apply("sin", apply("sqrt", x))),),
    "integer_pow": (lambda x: apply("integer_pow", apply("expm1", apply("sqrt", x)), y=3),),
}
for _name, _examples in _EXAMPLES.items():
    rule(
        f"{_name}(sqrt(x)) -> select(x == 0, {_name}(sqrt(x)) of x held + its series, {_name}(sqrt(x)) of x held)",
        *_examples,
        kinds="f",
        limit=True,
    )(smooth_at_zero)
