"""Python's own functions of numbers on traced ones: casts, comparisons of several, ranges, ``math``, questions."""

from __future__ import annotations

import cmath
import functools
import math
import struct
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from srcgrad.errors import ShapeError, UnsupportedError
from srcgrad.ir.types import INT64
from srcgrad.tracing.affine import affine_of, combined
from srcgrad.tracing.conversion.arithmetic import domain, in_range
from srcgrad.tracing.conversion.asked_objects import complex_of, float_of, tested, with_objects
from srcgrad.tracing.conversion.attributes import class_of
from srcgrad.tracing.conversion.calls import CALLS, call_rule, ruled
from srcgrad.tracing.conversion.classes import original, originals
from srcgrad.tracing.conversion.effects import emit_check
from srcgrad.tracing.conversion.filled import filled_of
from srcgrad.tracing.conversion.state import may_be_none, require_defined, truth, unknown
from srcgrad.tracing.conversion.texts import Text
from srcgrad.tracing.conversion.varying import Varying
from srcgrad.tracing.guards import answer
from srcgrad.tracing.rows import pieces, source_of
from srcgrad.tracing.shown_texts import Shown
from srcgrad.tracing.single import require_one, require_rounding
from srcgrad.tracing.tracer import Deferring, Tracer, as_tracer, cast_value, contains_tracer, emit, from_value

FLOAT64 = np.dtype(np.float64)
COMPLEX128 = np.dtype(np.complex128)
UNROLLED = 16
"""Python's functions of sequences run element by element up to this length, as NumPy reductions beyond."""
MISSING: Any = object()


def one_number(x: Tracer) -> Tracer:
    """What Python takes for a number, without axes."""
    require_one(x)
    element: Tracer = x if x.scalar else x.reshape(())
    return element


def python_number(x: Tracer, dtype: Any, what: str) -> Tracer:
    """A traced number as one of Python's of this dtype."""
    element = one_number(x)
    if x.dtype.kind == "c" and np.dtype(dtype).kind != "c":
        raise UnsupportedError(f"{what}() argument must be a real number, not complex")
    return from_value(cast_value(element.read(), np.dtype(dtype)), scalar=True, weak=np.dtype(dtype).kind in "ifc")


@call_rule(float)
def float_(x: Any = 0.0, /) -> Any:
    return python_number(x, FLOAT64, "float") if isinstance(x, Tracer) else float(x)


@call_rule(complex)
def complex_(*parts: Any, **named: Any) -> Any:
    if not any(isinstance(part, Tracer) for part in (*parts, *named.values())):
        return complex(*parts, **named)  # of one text there is no second part
    return complex_of_parts(*parts, **named)


def complex_of_parts(real: Any = 0, imag: Any = 0) -> Any:
    if not isinstance(imag, Tracer) and not imag and type(imag) is int:
        return python_number(as_tracer(real), COMPLEX128, "complex")
    first, second = (
        python_number(part, COMPLEX128 if part.dtype.kind == "c" else FLOAT64, "complex")
        for part in (as_tracer(real), as_tracer(imag))
    )
    across = first.real - second.imag if second.dtype.kind == "c" else first.real
    upwards = second.real + first.imag if first.dtype.kind == "c" else second.real
    return weak(emit("complex", across, upwards, scalar=True))


@call_rule(int)
def int_(x: Any = 0, /, *base: Any, **options: Any) -> Any:
    if not isinstance(x, Tracer):
        return int(x, *base, **options)
    require_one(x)
    if not unknown(x):
        return int(np.asarray(x.number()).reshape(())[()])
    require_finite(x)
    return python_number(x, INT64, "int")


def require_finite(x: Tracer) -> None:
    """What Python raises of a number of which it is to make a whole one."""
    if x.dtype.kind == "f":
        element: Any = x if x.scalar else x.reshape(())
        emit_check(np.logical_not(np.isnan(element)), "ValueError", "cannot convert float NaN to integer")
        emit_check(np.logical_not(np.isinf(element)), "OverflowError", "cannot convert float infinity to integer")
        emit_check(np.abs(element) < 2.0**63, "OverflowError", "the float is too large for an integer of 64 bits")


@call_rule(bool)
def bool_(x: Any = False, /) -> Any:
    x = tested(x)
    if not unknown(x):
        return bool(x)
    if may_be_none(x):
        return from_value(truth(x), True, True)
    if x.size != 1:
        return bool(x)  # which raises NumPy's error
    return from_value(cast_value((x if x.scalar else x.reshape(())).read(), np.dtype(np.bool_)), True, True)


@call_rule(round)
def round_(x: Any, ndigits: Any = None) -> Any:
    if isinstance(x, Tracer):
        require_rounding(x)
    if not isinstance(x, Tracer) or ndigits is not None:
        return round(x) if ndigits is None else round(x, ndigits)
    return int_(np.rint(x))


@call_rule(isinstance)
def isinstance_(thing: Any, classes: Any) -> bool:
    """As the object that a traced value stands for would answer."""
    require_defined(thing)
    classes = originals(classes)
    if isinstance(thing, Text):
        return issubclass(str, classes)
    if not isinstance(thing, (Tracer, Deferring)):
        return isinstance(thing, classes)
    return issubclass(class_of(thing), classes)


@call_rule(issubclass)
def issubclass_(cls: Any, classes: Any, /) -> bool:
    """Of the user's classes, which may have twins in the trace."""
    return issubclass(original(cls) if isinstance(cls, type) else cls, originals(classes))


@call_rule(len)
def len_(thing: Any, /) -> Any:
    filled = filled_of(thing)
    if filled is not None:
        return filled.count()
    return thing.shape[0] if isinstance(thing, Deferring) and thing.ndim else len(thing)


@call_rule(callable)
def callable_(thing: Any, /) -> bool:
    require_defined(thing)
    return callable(thing)


@call_rule(id)
def id_(thing: Any, /) -> int:
    require_defined(thing)
    return id(thing)


@call_rule(struct.pack)
def pack(layout: Any, /, *values: Any) -> bytes:
    if any(isinstance(value, Tracer) for value in values):
        raise UnsupportedError("struct.pack is not supported on a traced value", hint="bytes have no derivative")
    return struct.pack(layout, *values)


@call_rule(type)
def type_(*args: Any, **kwargs: Any) -> Any:
    if len(args) == 1:
        require_defined(args[0])
    if len(args) == 1 and isinstance(args[0], (Tracer, Deferring)):
        return class_of(args[0])
    if len(args) == 1 and (type(args[0]) is Shown or isinstance(args[0], Text)):
        return str
    return original(type(args[0])) if len(args) == 1 and not kwargs else type(*args, **kwargs)


def pick(first: Any, second: Any, larger: Callable[[Any, Any], Any]) -> Any:
    """``max`` or ``min`` of two numbers, the first where they are equal."""
    if not isinstance(first, Tracer) and not isinstance(second, Tracer):
        return second if larger(second, first) else first
    better = larger(second, first)
    if not unknown(better):
        return second if better else first
    if better.size != 1:
        return bool(better)  # which raises NumPy's error
    chosen: Any = np.where(better, second, first)
    weak = all(not isinstance(x, (Tracer, np.generic)) or getattr(x, "weak", False) for x in (first, second))
    found = from_value(chosen.read(), scalar=True, weak=weak)
    if weak and found.dtype == INT64:
        found.affine = combined(np.maximum if larger(1, 0) else np.minimum, (first, second))
    return found


def extreme(builtin: Any, reduction: Any, position: Any, larger: Any) -> Any:
    def rule(*args: Any, key: Any = None, default: Any = MISSING) -> Any:
        options = {} if default is MISSING else {"default": default}
        items: Any = args[0] if len(args) == 1 else args
        if isinstance(items, Deferring) and items.ndim == 1 and key is None and not options:
            return number_of(items, reduction)
        if isinstance(items, Tracer):
            if items.ndim == 1 and items.size > UNROLLED and key is None:
                return items[position(items)]
            items = list(items)
        elif not isinstance(items, (list, tuple)):
            items = list(items)
        rows = source_of(items) if len(items) > UNROLLED and key is None else None
        if rows is not None and rows.ndim == 1:
            return from_value(rows[position(rows)].copy().read(), items[0].scalar, items[0].weak)
        if key is not None:
            return extreme_by_key(builtin, items, ruled(key), larger, options)
        if not items or not any(isinstance(item, Tracer) for item in items):
            return builtin(items, **options)
        found = items[0]
        for item in items[1:]:
            found = pick(found, item, larger)
        return found

    return rule


def extreme_by_key(builtin: Any, items: Any, key: Any, larger: Any, options: dict[str, Any]) -> Any:
    """``max(items, key=key)``: the first of the items whose key is largest."""
    from srcgrad.tracing.conversion.branches import choose  # which is written with this module

    keys = [key(item) for item in items]
    if not any(map(unknown, keys)):
        known = dict(zip(range(len(items)), keys, strict=True))
        return items[builtin(known, key=known.__getitem__)] if known else builtin(items, **options)
    best, found = keys[0], items[0]
    for other, item in zip(keys[1:], items[1:], strict=True):
        better = larger(other, best)
        found = choose(better, functools.partial(itself, item), functools.partial(itself, found))
        best = choose(better, functools.partial(itself, other), functools.partial(itself, best))
    return found


def itself(x: Any) -> Any:
    return x


def number_of(items: Any, reduction: Any) -> Any:
    """What is computed of all items: of a list, of their kind."""
    found = reduction(items)
    return items.number(found) if isinstance(items, Varying) else found


call_rule(max)(extreme(max, np.max, np.argmax, lambda a, b: a > b))
call_rule(min)(extreme(min, np.min, np.argmin, lambda a, b: a < b))


@call_rule(sum)
def sum_(iterable: Any, /, start: Any = 0) -> Any:
    long = isinstance(iterable, Tracer) and iterable.ndim and iterable.shape[0] > UNROLLED
    if isinstance(iterable, Deferring) and iterable.ndim == 1:
        return start + number_of(iterable, np.sum)
    if long or isinstance(iterable, Deferring):
        return start + np.sum(iterable, axis=0)
    parts = pieces(iterable) if isinstance(iterable, (list, tuple)) and len(iterable) > UNROLLED else None
    if parts is None:
        return sum(iterable, start)
    place = 0
    for part in parts:
        count, item = len(part), iterable[place]
        if isinstance(part, Tracer):
            start = start + from_value(np.sum(part, axis=0).read(), item.scalar, item.weak)
        else:
            start = sum(part, start)
        place += count
    return start


@call_rule(sorted)
def sorted_(iterable: Any, /, *, key: Any = None, reverse: Any = False) -> Any:
    items = list(iterable)
    numbers = items and all(isinstance(item, (Tracer, int, float, np.number)) for item in items)
    if key is None and numbers and any(unknown(item) for item in items):
        tracers: list[Any] = [as_tracer(item) for item in items]
        ordered: Any = np.sort(np.stack(tracers))
        return list(ordered[::-1] if reverse else ordered)
    if key is None or not items:
        return sorted(items, key=key, reverse=reverse)
    keys = [ruled(key)(item) for item in items]
    if not any(map(unknown, keys)) or any(np.ndim(one) for one in keys):
        known = dict(zip(range(len(items)), keys, strict=True))
        return [items[k] for k in sorted(known, key=known.__getitem__, reverse=reverse)]
    from srcgrad.tracing.conversion.choices import chosen, kind_among  # which is written with this module

    places: Any = np.stack([as_tracer(one) for one in keys])
    order: Any = np.argsort(-places if reverse else places, kind="stable")
    one_order = answer(order, "an order") if kind_among(items) is None else None  # which a path has
    if one_order is not None:
        return [items[k] for k in one_order]
    return [chosen(items, order[k]) for k in range(len(items))]


# --- ranges -----------------------------------------------------------------------------


class DynamicRange:
    """``range`` with traced bounds: only ``for`` knows what to do with it."""

    def __init__(self, start: Any, stop: Any, step: Any) -> None:
        self.start, self.stop, self.step = start, stop, step

    def count(self) -> Any:
        """The number of trips, as a traced integer."""
        up = self.step > 0
        span = (self.stop - self.start if up else self.start - self.stop) + (abs(self.step) - 1)
        return np.maximum(span // abs(self.step), 0)

    def __len__(self) -> int:
        return len(range(*map(int, (self.start, self.stop, self.step))))

    def __iter__(self) -> Any:
        return iter(range(*map(int, (self.start, self.stop, self.step))))


@call_rule(range)
def range_(*args: Any) -> Any:
    if not any(map(unknown, args)):
        return range(*args)
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    for bound in args:
        if isinstance(bound, Tracer) and (bound.dtype.kind not in "iu" or bound.ndim):
            raise UnsupportedError(f"'{bound.dtype}' object cannot be interpreted as an integer")
    return DynamicRange(whole_number(start), whole_number(stop), int(step))


def whole_number(x: Any) -> Any:
    """An integer of any dtype as Python's, which a range makes of its bounds."""
    if not isinstance(x, Tracer) or (x.scalar and x.weak and x.dtype == INT64):
        return x
    found = int_(x)
    if isinstance(found, Tracer):
        found.affine = affine_of(x)
    return found


# --- math -----------------------------------------------------------------------------

MATH: dict[Any, Any] = {
    math.sin: np.sin, math.cos: np.cos, math.tan: np.tan, math.asin: np.arcsin, math.acos: np.arccos,
    math.atan: np.arctan, math.atan2: np.arctan2, math.sinh: np.sinh, math.cosh: np.cosh, math.tanh: np.tanh,
    math.asinh: np.arcsinh, math.acosh: np.arccosh, math.atanh: np.arctanh, math.exp: np.exp, math.expm1: np.expm1,
    math.log1p: np.log1p, math.log2: np.log2, math.log10: np.log10, math.sqrt: np.sqrt, math.fabs: np.fabs,
    math.pow: np.power, math.fmod: np.fmod, math.copysign: np.copysign, math.degrees: np.degrees,
    math.radians: np.radians, math.cbrt: np.cbrt, math.exp2: np.exp2,
    math.nextafter: np.nextafter, math.ulp: np.spacing,
}  # fmt: skip
CMATH: dict[Any, Any] = {
    cmath.sin: np.sin, cmath.cos: np.cos, cmath.tan: np.tan, cmath.asin: np.arcsin, cmath.acos: np.arccos,
    cmath.atan: np.arctan, cmath.sinh: np.sinh, cmath.cosh: np.cosh, cmath.tanh: np.tanh, cmath.asinh: np.arcsinh,
    cmath.acosh: np.arccosh, cmath.atanh: np.arctanh, cmath.exp: np.exp, cmath.sqrt: np.sqrt, cmath.log10: np.log10,
}  # fmt: skip
ROUNDING: dict[Any, Any] = {math.floor: np.floor, math.ceil: np.ceil, math.trunc: np.trunc}
QUESTIONS: dict[Any, Any] = {
    math.isnan: np.isnan, math.isinf: np.isinf, math.isfinite: np.isfinite,
    cmath.isnan: np.isnan, cmath.isinf: np.isinf, cmath.isfinite: np.isfinite,
}  # fmt: skip
PARTS: dict[Any, Any] = {math.frexp: np.frexp, math.modf: np.modf}
SPECIAL = {math.erf: "erf", math.erfc: "erfc", math.gamma: "gamma", math.lgamma: "gammaln"}


def weak(result: Any) -> Any:
    """A fresh result as a Python number."""
    if isinstance(result, Tracer):
        result.weak = True
    return result


def any_traced(args: Iterable[Any]) -> bool:
    return any(isinstance(argument, Tracer) for argument in args)


def of_math(function: Any, meaning: Any) -> Any:
    def rule(*args: Any) -> Any:
        if not any_traced(args):
            return function(*args)
        numbers = [float_(argument) for argument in args]
        domain(function, *numbers)
        return in_range(function, tuple(numbers), weak(meaning(*numbers)))

    return rule


for _function, _meaning in MATH.items():
    call_rule(_function)(of_math(_function, _meaning))
for _function, _meaning in ROUNDING.items():
    call_rule(_function)(
        lambda x, _function=_function, _meaning=_meaning: (
            int_(_meaning(float_(x))) if isinstance(x, Tracer) else _function(x)
        )
    )
for _function, _meaning in QUESTIONS.items():
    call_rule(_function)(
        lambda x, _function=_function, _meaning=_meaning: (
            weak(_meaning(one_number(x))) if isinstance(x, Tracer) else _function(x)
        )
    )
for _function, _name in SPECIAL.items():

    def _special(x: Any, _function: Any = _function, _name: str = _name) -> Any:
        if not isinstance(x, Tracer):
            return _function(x)
        import scipy.special

        number = float_(x)
        domain(_function, number)
        return in_range(_function, (number,), weak(getattr(scipy.special, _name)(number)))

    call_rule(_function)(_special)


@call_rule(math.log)
def log_(x: Any, *base: Any) -> Any:
    if not isinstance(x, Tracer) and not any(isinstance(argument, Tracer) for argument in base):
        return math.log(x, *base)
    number = float_(x)
    domain(math.log, number)
    if not base:
        return weak(np.log(number))
    other = float_(base[0])
    domain(math.log, other)
    return weak(np.log(number)) / weak(np.log(other))


@call_rule(math.hypot)
def hypot_(*coordinates: Any) -> Any:
    if not any_traced(coordinates):
        return math.hypot(*coordinates)
    found = float_(coordinates[0])
    for x in coordinates[1:]:
        found = np.hypot(found, float_(x))
    return weak(found if len(coordinates) > 1 else np.abs(found))


@call_rule(math.dist)
def dist_(p: Any, q: Any, /) -> Any:
    first, second = tuple(p), tuple(q)
    if not any_traced((*first, *second)):
        return math.dist(first, second)
    if len(first) != len(second):
        raise ShapeError("both points must have the same number of dimensions")
    return hypot_(*[float_(a) - float_(b) for a, b in zip(first, second, strict=True)])


@call_rule(math.ldexp)
def ldexp_(x: Any, i: Any, /) -> Any:
    if not any_traced((x, i)):
        return math.ldexp(x, i)
    number = float_(x)
    return in_range(math.ldexp, (number,), weak(np.ldexp(number, i)))


@call_rule(math.remainder)
def remainder_(x: Any, y: Any, /) -> Any:
    """IEEE's: what is left of x after the multiple of y nearest to it, the even one of two."""
    if not any_traced((x, y)):
        return math.remainder(x, y)
    domain(math.remainder, float_(x), float_(y))
    size, step = np.abs(float_(x)), np.abs(float_(y))
    over = np.fmod(size, step)
    short = step - over
    tie = over - 2.0 * np.fmod(0.5 * (size - over), step)
    found: Any = np.where(over < short, over, np.where(over > short, -short, tie))
    return weak(np.copysign(1.0, float_(x)) * from_value(found.read(), scalar=True))


for _function, _meaning in PARTS.items():

    def _parts(x: Any, _function: Any = _function, _meaning: Any = _meaning) -> Any:
        return tuple(map(weak, _meaning(float_(x)))) if isinstance(x, Tracer) else _function(x)

    call_rule(_function)(_parts)


@call_rule(math.fsum)
def fsum_(iterable: Any) -> Any:
    items = list(iterable)
    return sum_(map(float_, items), 0.0) if contains_tracer(items) else math.fsum(items)


@call_rule(math.prod)
def prod_(iterable: Any, *, start: Any = 1) -> Any:
    found = start
    for item in iterable:
        found = found * item
    return found


@call_rule(math.isclose)
def isclose_(a: Any, b: Any, *, rel_tol: Any = 1e-9, abs_tol: Any = 0.0) -> Any:
    if not isinstance(a, Tracer) and not isinstance(b, Tracer):
        return math.isclose(a, b, rel_tol=rel_tol, abs_tol=abs_tol)
    a, b = float_(a), float_(b)
    size = np.maximum(np.abs(a), np.abs(b))
    return np.logical_or(np.equal(a, b), np.abs(a - b) <= np.maximum(rel_tol * size, abs_tol))


# --- cmath ----------------------------------------------------------------------------

for _function, _meaning in CMATH.items():

    def _of_cmath(z: Any, _function: Any = _function, _meaning: Any = _meaning) -> Any:
        return weak(_meaning(complex_(z))) if isinstance(z, Tracer) else _function(z)

    call_rule(_function)(_of_cmath)


@call_rule(cmath.log)
def complex_log(z: Any, *base: Any) -> Any:
    if not any_traced((z, *base)):
        return cmath.log(z, *base)
    found = np.log(complex_(z))
    return weak(found / np.log(complex_(base[0])) if base else found)


@call_rule(cmath.phase)
def phase_(z: Any, /) -> Any:
    return weak(np.angle(complex_(z))) if isinstance(z, Tracer) else cmath.phase(z)


@call_rule(cmath.polar)
def polar_(z: Any, /) -> Any:
    return (weak(np.abs(complex_(z))), phase_(z)) if isinstance(z, Tracer) else cmath.polar(z)


@call_rule(cmath.rect)
def rect_(r: Any, phi: Any, /) -> Any:
    if not any_traced((r, phi)):
        return cmath.rect(r, phi)
    radius, angle = float_(r), float_(phi)
    return weak(radius * np.cos(angle) + 1j * (radius * np.sin(angle)))


for _function in [found for found in CALLS if getattr(found, "__module__", None) in ("math", "cmath")]:
    if _function not in ROUNDING:  # which ask for methods of their own
        with_objects(_function, float_of if _function.__module__ == "math" else complex_of)
with_objects(float, float_of)
with_objects(complex, complex_of)
