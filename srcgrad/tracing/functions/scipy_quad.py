"""The rules of ``scipy.integrate.quad`` and of integrals of integrals.

Both are by the pair of Gauss and Kronrod, on intervals that are halved where it errs most.
Where the intervals lie counts as known: the derivative is that of the sum over their nodes, which is the same sum of
the integrand's derivative. The interval is a multiple of (0, 1) or, if it is infinite, an image of it, so that limits
have derivatives too. What is halved is found by plain NumPy, which is converted like the user's own.
Importing this module imports SciPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.integrate

from srcgrad.errors import DTypeError, ShapeError, UnsupportedError
from srcgrad.tracing.conversion.calls import call, call_rule
from srcgrad.tracing.conversion.convert import convert
from srcgrad.tracing.functions.registry import as_array, cast, require
from srcgrad.tracing.functions.scipy_ode import held
from srcgrad.tracing.tracer import Tracer

_NODES: Final = np.array(
    [
        0.995657163025808080735527280689003, 0.973906528517171720077964012084452, 0.930157491355708226001207180059508,
        0.865063366688984510732096688423493, 0.780817726586416897063717578345042, 0.679409568299024406234327365114874,
        0.562757134668604683339000099272694, 0.433395394129247190799265943165784, 0.294392862701460198131126603103866,
        0.148874338981631210884826001129720,
    ]
)  # fmt: skip
_KRONROD: Final = np.array(
    [
        0.011694638867371874278064396062192, 0.032558162307964727478818972459390, 0.054755896574351996031381300244580,
        0.075039674810919952767043140916190, 0.093125454583697605535065465083366, 0.109387158802297641899210590325805,
        0.123491976262065851077958109585166, 0.134709217311473325928054001771707, 0.142775938577060080797094273138717,
        0.147739104901338491374841515972068,
    ]
)  # fmt: skip
_GAUSS: Final = np.array(
    [
        0.0, 0.066671344308688137593568809893332, 0.0, 0.149451349150580593145863396957698, 0.0,
        0.219086362515982043995534934228163, 0.0, 0.269266719309996355091226921569469, 0.0,
        0.295524224714752870173815619188769,
    ]
)  # fmt: skip
NODES: Final = np.concatenate([-_NODES, [0.0], _NODES[::-1]])
KRONROD: Final = np.concatenate([_KRONROD, [0.149445554002916905664936468389821], _KRONROD[::-1]])
GAUSS: Final = np.concatenate([_GAUSS, [0.0], _GAUSS[::-1]])
SHARE: Final = 1e-4
"""By what the error is to be less than is asked for: where an integrand has a kink its derivative has a step, of which
the sum is as exact as the interval is short."""
Integrand = Callable[[Any], Any]


@call_rule(scipy.integrate.quad)
def quad(
    func: Any, a: Any, b: Any, args: Any = (), full_output: Any = 0, epsabs: Any = 1.49e-8, epsrel: Any = 1.49e-8,
    limit: int = 50, points: Any = None, weight: Any = None, wvar: Any = None, wopts: Any = None, maxp1: Any = 50,
    limlst: Any = 50, complex_func: bool = False,
) -> Any:  # fmt: skip
    """The integral and an estimate of its error."""
    for name, given in {"full_output": full_output or None, "points": points, "weight": weight}.items():
        if given is not None:
            raise UnsupportedError(
                f"scipy.integrate.quad with {name}= is not supported on traced values", hint=f"leave {name} out"
            )
    f = function_of(func, args if isinstance(args, tuple) else (args,), complex_func)
    return integral(on_unit_interval(f, a, b), np.abs, epsabs, epsrel, limit)


def integral(integrand: Integrand, size: Integrand, epsabs: Any, epsrel: Any, limit: int) -> tuple[Any, Any]:
    """From 0 to 1, of a number or of a vector of them for each place; errors are measured by ``size``."""
    tolerances = (SHARE * epsabs, max(SHARE * epsrel, 50 * float(np.finfo(float).eps)))
    low, high, error = convert(halved)(lambda u: held(integrand(u)), size, *tolerances, limit)  # type: ignore[arg-type]
    half = 0.5 * (high - low)
    values = integrand((0.5 * (low + high)[:, None] + half[:, None] * NODES).ravel())
    values = values.reshape((*values.shape[:-1], limit, len(NODES)))
    used = np.broadcast_to((half > 0.0)[:, None], values.shape)
    return np.sum(np.where(used, half[:, None] * KRONROD * values, 0.0), axis=(-2, -1)), error


NORMS: Final[dict[Any, Integrand]] = {
    "2": lambda x: np.linalg.norm(x, axis=0),
    "max": lambda x: np.max(np.abs(x), axis=0),
    None: lambda x: np.max(np.abs(x), axis=0),
}
"""The lengths of vectors that are columns."""
MOST_PARTS: Final = 50
"""As many intervals an integral of vectors is the sum over: each is in the program, whether it is halved or not."""


@call_rule(scipy.integrate.quad_vec)
def quad_vec(
    f: Any, a: Any, b: Any, epsabs: Any = 1e-200, epsrel: Any = 1e-8, norm: Any = "2", cache_size: Any = 100e6,
    limit: int = 10000, workers: Any = 1, points: Any = None, quadrature: Any = None, full_output: Any = False, *,
    args: Any = (),
) -> Any:  # fmt: skip
    """The integral of an array and an estimate of its error."""
    refused = {"points": points, "full_output": full_output or None, "norm": norm if callable(norm) else None}
    for name, given in refused.items():
        if given is not None:
            raise UnsupportedError(
                f"scipy.integrate.quad_vec with {name}= is not supported on traced values", hint=f"leave {name} out"
            )
    from srcgrad.api import vmap

    shape: list[Any] = [()]

    def one(t: Any) -> Any:
        found = as_array(call(f, t, *(args if isinstance(args, tuple) else (args,))))
        shape[0] = found.shape
        return cast(found.reshape(-1), np.result_type(found.dtype, np.float64))

    several = vmap(one)
    integrand = on_unit_interval(lambda t: np.transpose(several(t)), a, b)
    found, error = integral(integrand, NORMS[norm], epsabs, epsrel, min(limit, MOST_PARTS))
    return found.reshape(shape[0]), error


@call_rule(scipy.integrate.dblquad)
def dblquad(
    func: Any, a: Any, b: Any, gfun: Any, hfun: Any, args: Any = (), epsabs: Any = 1.49e-8, epsrel: Any = 1.49e-8
) -> Any:  # fmt: skip
    """An integral of integrals between curves or numbers."""
    return nquad(func, [between(gfun, hfun), (a, b)], args, {"epsabs": epsabs, "epsrel": epsrel})


@call_rule(scipy.integrate.tplquad)
def tplquad(
    func: Any, a: Any, b: Any, gfun: Any, hfun: Any, qfun: Any, rfun: Any, args: Any = (), epsabs: Any = 1.49e-8,
    epsrel: Any = 1.49e-8,
) -> Any:  # fmt: skip
    """An integral of double ones between surfaces or numbers, which are given the outer place first."""
    surfaces = between(*(turned(surface) for surface in (qfun, rfun)))
    ranges = [surfaces, between(gfun, hfun), (a, b)]
    return nquad(func, ranges, args, {"epsabs": epsabs, "epsrel": epsrel})


def between(low: Any, high: Any) -> Any:
    """The range between two limits, of the places outside of it: as `nquad` takes it."""

    def limits(*outer: Any) -> tuple[Any, ...]:
        return tuple(call(limit, *outer[:2]) if callable(limit) else limit for limit in (low, high))

    return limits


def turned(surface: Any) -> Any:
    return (lambda y, x, *_: call(surface, x, y)) if callable(surface) else surface


MOST_NODES: Final = 6e6
"""As many places an integral over three variables or more is the sum over: each direction has as many parts."""
MOST_HALVED: Final = 2
"""Of so many variables the intervals are halved where that is needed: of more it would take too long to compile."""


@call_rule(scipy.integrate.nquad)
def nquad(func: Any, ranges: Any, args: Any = None, opts: Any = None, full_output: bool = False) -> Any:
    """Integrals of integrals, the last place outermost; of three or more, over some equal parts of each range."""
    if full_output:
        raise UnsupportedError("scipy.integrate.nquad with full_output= is not supported on traced values")
    others = () if args is None else args if isinstance(args, tuple) else (args,)
    options = list(opts) if isinstance(opts, (list, tuple)) else [opts or {}] * len(ranges)
    parts = int(MOST_NODES ** (1 / len(ranges)) / len(NODES))
    if len(ranges) > MOST_HALVED and not parts:
        raise UnsupportedError(f"scipy.integrate.nquad over {len(ranges)} variables is not supported on traced values")

    def over(level: int, outer: tuple[Any, ...]) -> Any:
        limits, given = ranges[level], options[level]
        low, high = call(limits, *outer, *others) if callable(limits) else limits
        chosen = dict(call(given, *outer, *others) if callable(given) else given)

        def inner(t: Any) -> Any:
            return over(level - 1, (t, *outer))[0] if level else call(func, t, *outer, *others)

        if len(ranges) <= MOST_HALVED:
            return quad(inner, low, high, **chosen)
        return in_parts(on_unit_interval(function_of(inner, (), False), low, high), parts, chosen)

    return over(len(ranges) - 1, ())


def in_parts(integrand: Integrand, count: int, options: dict[str, Any]) -> tuple[Any, Any]:
    """The integral from 0 to 1 over so many equal parts, which is an error where it is not as exact as is asked for."""
    unknown = sorted(set(options) - {"epsabs", "epsrel", "limit"})
    if unknown:
        raise UnsupportedError(f"scipy.integrate.nquad with {unknown[0]}= is not supported on traced values")
    places = (np.arange(count)[:, None] + 0.5 + 0.5 * NODES) / count
    values = integrand(places.reshape(-1)).reshape(places.shape)
    found, error = (np.sum(part) for part in judged(values, 0.5 / count, np.abs))
    allowed = np.maximum(options.get("epsabs", 1.49e-8), options.get("epsrel", 1.49e-8) * np.abs(found))
    message = f"an integral over several variables takes more than {count} parts of the range of one of them"
    require(~(error > allowed), "ArithmeticError", message)
    return found, error


def function_of(func: Any, args: tuple[Any, ...], complex_func: bool) -> Integrand:
    """The user's function of a number, of an array of them."""
    from srcgrad.api import vmap

    def one(t: Any) -> Any:
        found = as_array(call(func, t, *args))
        if found.size != 1:
            raise ShapeError(f"an integrand gives a number, not an array of shape {found.shape}")
        if found.dtype.kind == "c" and not complex_func:
            raise DTypeError("an integrand gives real numbers, unless quad is told otherwise by complex_func=True")
        return cast(found.reshape(()), np.complex128 if complex_func else np.float64)

    found: Integrand = vmap(one)
    return found


def on_unit_interval(f: Integrand, a: Any, b: Any) -> Integrand:
    """What has the same integral from 0 to 1. A half-line is the image of that by (1 - u)/u, as in QUADPACK."""
    a, b = number(a), number(b)
    if isinstance(a, Tracer) or isinstance(b, Tracer):
        return between_any(f, a, b)
    if math.isinf(a) and math.isinf(b):
        sign = float(b > a) - float(a > b)
        return lambda u: sign * (f((1.0 - u) / u) + f((u - 1.0) / u)) / u**2
    if math.isinf(a) or math.isinf(b):
        end, (infinite, factor) = (b, (a, -1.0)) if math.isinf(a) else (a, (b, 1.0))
        direction = 1.0 if infinite > 0.0 else -1.0
        return lambda u: factor * direction * f(end + direction * (1.0 - u) / u) / u**2
    return lambda u: (b - a) * f(a + (b - a) * u)


def between_any(f: Integrand, a: Any, b: Any) -> Integrand:
    """What has the same integral from 0 to 1, of limits of which the run decides whether they are infinite.

    The integrand is taken once whatever they are, so the line is one image here: by (2u - 1)/(u (1 - u)).
    """
    from_infinity, to_infinity = np.isinf(a), np.isinf(b)
    start, stop = np.where(from_infinity, 0.0, a), np.where(to_infinity, 0.0, b)
    everywhere, half = from_infinity & to_infinity, from_infinity | to_infinity
    end, direction = np.where(from_infinity, stop, start), np.sign(np.where(from_infinity, a, b))
    forwards = np.where(from_infinity, -direction, direction)
    sign = 0.5 * (np.sign(b) - np.sign(a))

    def integrand(u: Any) -> Any:
        ends, rest = 1.0 / u, 1.0 / (1.0 - u)
        place = np.where(half, end + direction * (ends - 1.0), start + (stop - start) * u)
        stretch = np.where(half, forwards * ends**2, stop - start)
        place = np.where(everywhere, rest - ends, place)
        return np.where(everywhere, sign * (ends**2 + rest**2), stretch) * f(place)

    return integrand


def number(limit: Any) -> Any:
    """A limit as a float.

    Raises:
        ShapeError: it is an array of several numbers.
        ValueError: it is nan, also when the program runs.
    """
    traced = isinstance(limit, Tracer)
    found = cast(as_array(limit), np.float64) if traced else np.asarray(limit, np.float64)
    if found.size != 1:
        raise ShapeError(f"a limit of an integral is a number, not an array of shape {found.shape}")
    require(~np.isnan(found), "ValueError", "a limit of an integral is nan")
    return found.reshape(())[()] if traced else found.item()


def estimated(integrand: Integrand, size: Integrand, low: Any, high: Any) -> tuple[Any, Any]:
    """The integral over a part of (0, 1), and what it may err by: as QUADPACK's qk21 says."""
    half = 0.5 * (high - low)
    return judged(integrand(0.5 * (low + high) + half * NODES), half, size)


def judged(values: Any, half: Any, size: Integrand) -> tuple[Any, Any]:
    """Sums over the nodes, which are along the last axis, of parts of which the halves are that long."""
    whole = np.sum(KRONROD * values, axis=-1)
    error = size(half * (whole - np.sum(GAUSS * values, axis=-1)))
    spread = half * np.sum(KRONROD * size(values - 0.5 * whole[..., None]), axis=-1)
    flat = (spread == 0.0) | (error == 0.0)
    scaled = spread * np.minimum(1.0, (200.0 * error / np.where(flat, 1.0, spread)) ** 1.5)
    rounding = 50.0 * np.finfo(float).eps * half * np.sum(KRONROD * size(values), axis=-1)
    return half * whole, np.maximum(np.where(flat, error, scaled), rounding)


def halved(integrand: Integrand, size: Integrand, absolute: float, relative: float, limit: int) -> Any:
    """Parts of (0, 1) of which the errors together are small, at most ``limit``; the others are empty.

    Converted before it is called. Returns where the parts begin and end, and the sum of the errors.
    """
    low, high, errors = np.full(limit, 0.5), np.full(limit, 0.5), np.zeros(limit)
    low[0], high[0] = 0.0, 1.0
    total, errors[0] = estimated(integrand, size, 0.0, 1.0)
    values = np.zeros(limit) * total[..., None]
    values[..., 0] = total
    count = 1
    while count < limit and np.sum(errors) > np.maximum(absolute, relative * size(np.sum(values, axis=-1))):
        k = np.argmax(errors)
        middle = 0.5 * (low[k] + high[k])
        values[..., count], errors[count] = estimated(integrand, size, middle, high[k])
        values[..., k], errors[k] = estimated(integrand, size, low[k], middle)
        low[count], high[count] = middle, high[k]
        high[k] = middle
        count += 1
    return low, high, np.sum(errors)
