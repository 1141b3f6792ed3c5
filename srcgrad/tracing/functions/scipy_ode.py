"""Rules of ``scipy.integrate.solve_ivp`` and ``odeint``: explicit Runge-Kutta methods as loops of the program.

What is differentiated are the steps that are taken; their sizes count as numbers. The functions that integrate are
plain NumPy, which is converted like the user's own. Importing this module imports SciPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import scipy.integrate
from scipy.optimize import OptimizeResult

from srcgrad.errors import ShapeError, UnsupportedError
from srcgrad.tracing.affine import Affine, between
from srcgrad.tracing.conversion.calls import call_rule
from srcgrad.tracing.conversion.convert import convert
from srcgrad.tracing.conversion.recorded import room_for
from srcgrad.tracing.conversion.trust import emit_trust, may_trust
from srcgrad.tracing.functions.registry import as_array, cast
from srcgrad.tracing.trace import current_span, current_trace
from srcgrad.tracing.tracer import Tracer, emit, from_value

SAFETY: Final = 0.9
LEAST, MOST = 0.2, 10.0
"""By how much one step may be shorter or longer than the one before."""


class Method(NamedTuple):
    """An embedded Runge-Kutta pair, the coefficients as SciPy's solver classes hold them."""

    stages: list[list[float]]
    places: list[float]
    weights: list[float]
    errors: tuple[list[float], ...]
    """Weights of the error's estimate; two of them for the method of order 8."""
    dense: list[list[float]]
    """Powers of the place within a step, by stage; none where there is no interpolation."""
    order: int


def method(solver: Any) -> Method:
    rows = [[float(a) for a in row[:k]] for k, row in enumerate(np.asarray(solver.A))]
    errors = [solver.E3, solver.E5] if hasattr(solver, "E3") else [solver.E]
    dense = [] if hasattr(solver, "E3") else np.asarray(solver.P).tolist()
    weights = np.asarray(solver.B).tolist()
    used = tuple(np.asarray(row)[: len(weights) + 1].tolist() for row in errors)
    count = len(weights)
    return Method(
        rows[:count], np.asarray(solver.C).tolist()[:count], weights, used, dense, solver.error_estimator_order
    )


METHODS: Final = {"RK45": method(scipy.integrate.RK45), "RK23": method(scipy.integrate.RK23)}
ACCURATE: Final = method(scipy.integrate.DOP853)


def held(x: Any) -> Any:
    """A value as a number: nothing flows back through it."""
    return from_value(emit("stop_gradient", x).read(), x.scalar, x.weak) if isinstance(x, Tracer) else x


def combined(weights: list[float], stages: list[Any]) -> Any:
    """The sum of the stages by their weights, without those that are zero."""
    return sum((w * k for w, k in zip(weights, stages, strict=False) if w), 0.0 * stages[0])


def size_of(x: Any) -> Any:
    """The root of the mean square, of which no derivative is asked for."""
    return np.sqrt(np.mean(np.abs(held(x)) ** 2))


def first_step(
    slope: Any, t: Any, y: Any, f: Any, length: Any, direction: Any, order: int, rtol: Any, atol: Any
) -> Any:
    """Hairer, Nørsett and Wanner, Solving Ordinary Differential Equations I, II.4."""
    scale = atol + np.abs(held(y)) * rtol
    d0, d1 = size_of(y / scale), size_of(f / scale)
    small = (d0 < 1e-5) | (d1 < 1e-5)
    h0 = np.minimum(np.where(small, 1e-6, 0.01 * d0 / np.where(small, 1.0, d1)), length)
    y1 = y + h0 * direction * f
    d2 = size_of((slope(t + h0 * direction, y1) - f) / scale) / h0
    flat = (d1 <= 1e-15) & (d2 <= 1e-15)
    steep = (0.01 / np.where(flat, 1.0, np.maximum(d1, d2))) ** (1.0 / (order + 1))
    return held(np.minimum(np.minimum(100.0 * h0, np.where(flat, np.maximum(1e-6, h0 * 1e-3), steep)), length))


def stepped(slope: Any, how: Method, t: Any, y: Any, f: Any, h: Any, rtol: Any, atol: Any) -> tuple[Any, ...]:
    """One step: the new value, its slope, the error's estimate, and what interpolates, by powers of the place."""
    stages = [f]
    for row, place in zip(how.stages[1:], how.places[1:], strict=True):
        stages.append(slope(t + place * h, y + h * combined(row, stages)))
    new = y + h * combined(how.weights, stages)
    stages.append(slope(t + h, new))
    scale = atol + np.maximum(np.abs(held(y)), np.abs(held(new))) * rtol
    powers = [h * combined(list(column), stages) for column in zip(*how.dense, strict=True)]
    return new, stages[-1], error_of(how, h, stages, scale), np.stack(powers) if powers else h


def error_of(how: Method, h: Any, stages: list[Any], scale: Any) -> Any:
    """The estimate of the step's error, 1 where it is what the tolerances allow."""
    found = [size_of(combined(weights, [held(k) for k in stages]) / scale) for weights in how.errors]
    if len(found) == 1:
        return np.abs(held(h)) * found[0]
    third, fifth = found
    both = np.sqrt(fifth**2 + 0.01 * third**2)
    return np.abs(held(h)) * fifth**2 / np.where(both > 0.0, both, 1.0)


def resized(how: Method, error: Any, rejected: Any) -> Any:
    """By what the next step is longer."""
    factor = SAFETY * np.where(error > 0.0, error, 1e-30) ** (-1.0 / (how.order + 1))
    return np.clip(factor, LEAST, np.where(rejected | (error >= 1.0), 1.0, MOST))


def lengthened(t: Any, h: Any, direction: Any, longest: Any) -> tuple[Any, Any]:
    """The size of a step within what it may be, and whether it was less than can be told apart."""
    least = 10.0 * np.abs(np.nextafter(held(t), direction * np.inf) - held(t))
    return np.minimum(np.maximum(h, least), longest), h < least


def reached(t: Any, end: Any, h: Any, direction: Any) -> tuple[Any, Any]:
    """Where a step ends, and whether that is the end of all."""
    last = direction * (held(t) + direction * h - held(end)) >= 0.0
    return np.where(last, end, t + direction * h), last


def begun(
    slope: Any, how: Method, t: Any, end: Any, y: Any, rtol: Any, atol: Any, longest: Any, first: Any
) -> tuple[Any, Any, Any]:
    """The direction of time, the slope where it begins, and the size of the first step."""
    direction = np.where(held(end) >= held(t), 1.0, -1.0)
    f = slope(t, y)
    if first is not None:
        return direction, f, first
    length = np.minimum(np.abs(held(end - t)), longest)
    return direction, f, first_step(slope, t, y, f, length, direction, how.order, rtol, atol)


def tried(
    slope: Any, how: Method, t: Any, end: Any, y: Any, f: Any, h: Any, direction: Any, rtol: Any, atol: Any
) -> tuple[Any, ...]:
    """A step that does not go past the end: its size, where it ends, and what `stepped` gives."""
    there, _ = reached(t, end, h, direction)
    return there - t, there, *stepped(slope, how, t, y, f, there - t, rtol, atol)


def advanced(
    slope: Any, how: Method, t: Any, end: Any, y: Any, f: Any, h: Any, direction: Any, rejected: Any, rtol: Any,
    atol: Any, longest: Any,
) -> tuple[Any, ...]:  # fmt: skip
    """One trial: whether it may be made, its size, what `tried` gives, the next size and whether it is rejected."""
    h, least = lengthened(t, h, direction, longest)
    alive = np.logical_not(np.logical_and(rejected, least))
    step, new_t, new, slope_there, error, powers = tried(slope, how, t, end, y, f, h, direction, rtol, atol)
    h = held(np.abs(step)) * resized(how, error, rejected)
    return alive, step, new_t, new, slope_there, powers, h, error >= 1.0


def integrated(
    slope: Any, how: Method, t: Any, end: Any, y: Any, asked: Any, rtol: Any, atol: Any, longest: Any, first: Any
) -> Any:
    """The values at the places that are asked for, each interpolated within the step that it lies in.

    Converted before it is called. Returns them and whether the end was reached.
    """
    direction, f, h = begun(slope, how, t, end, y, rtol, atol, longest, first)
    found = np.zeros((len(asked), len(y)), y.dtype) + y
    rejected, alive = False, True
    while alive and direction * held(end - t) > 0.0:
        alive, step, new_t, new, slope_there, powers, h, rejected = advanced(
            slope, how, t, end, y, f, h, direction, rejected, rtol, atol, longest
        )
        if not rejected:
            inside = (direction * (asked - t) > 0.0) & (direction * (asked - new_t) <= 0.0)
            x = np.where(inside, (asked - t) / step, 0.0)[:, None]
            away = sum(powers[m] * x ** (m + 1) for m in range(len(powers)))
            found = np.where(inside[:, None], y + away, found)
            t, y, f = new_t, new, slope_there
    return found, alive


def kept(
    slope: Any, how: Method, t: Any, end: Any, y: Any, rtol: Any, atol: Any, longest: Any, first: Any, room: int
) -> Any:
    """As `integrated`, with the values after each step in arrays with room for so many, and their number."""
    direction, f, h = begun(slope, how, t, end, y, rtol, atol, longest, first)
    times, values = np.zeros(room), np.zeros((room, len(y)), y.dtype)
    times[0], values[0] = t, y
    count = 1
    rejected, alive = False, True
    while alive and direction * held(end - t) > 0.0:
        alive, _, new_t, new, slope_there, _, h, rejected = advanced(
            slope, how, t, end, y, f, h, direction, rejected, rtol, atol, longest
        )
        if not rejected:
            t, y, f = new_t, new, slope_there
            place = min(count, room - 1)
            times[place], values[place] = t, y
            count += 1
    return times, values, count, alive


def recorded(slope: Any, how: Method, t: Any, end: Any, y: Any, rtol: Any, atol: Any, longest: Any, first: Any) -> Any:
    """As `kept`, in lists: where Python knows how many there are."""
    direction, f, h = begun(slope, how, t, end, y, rtol, atol, longest, first)
    times, values = [t], [y]
    rejected, alive = False, True
    while alive and direction * held(end - t) > 0.0:
        alive, _, new_t, new, slope_there, _, h, rejected = advanced(
            slope, how, t, end, y, f, h, direction, rejected, rtol, atol, longest
        )
        if not rejected:
            t, y, f = new_t, new, slope_there
            times.append(t)
            values.append(y)
    return np.stack([as_array(time) for time in times]), np.stack(values), alive


def every_step(slope: Any, how: Method, t: Any, end: Any, y: Any, *given: Any) -> tuple[Any, Any, Any]:
    """The times and values after each step, and whether the end was reached.

    Where a call can be made in another way, the program is for calls in which so many are enough.
    """
    room = room_for(len(y))
    if not room or not may_trust(current_trace()):
        return convert(recorded)(slope, how, t, end, y, *given)  # type: ignore[arg-type, no-any-return]
    times, values, count, alive = convert(kept)(slope, how, t, end, y, *given, room)  # type: ignore[arg-type]
    if isinstance(count, Tracer):
        enough: Any = count <= room
        emit_trust(enough, False)
        place = current_span()
        where = "" if place is None else f" at {place.label()}"
        current_trace().rolled.append(
            f"the steps of solve_ivp{where}: this program is for calls with fewer than {room}, others have paths"
        )
        count.affine = between(Affine({}, 1), Affine({}, room))
    return times[:count], values[:count], alive


def visited(slope: Any, how: Method, times: Any, y: Any, rtol: Any, atol: Any) -> Any:
    """The values at times that each end a step."""
    found = np.zeros((len(times), len(y)), y.dtype)
    found[0] = y
    direction = np.where(held(times[-1]) >= held(times[0]), 1.0, -1.0)
    f = slope(times[0], y)
    h = first_step(slope, times[0], y, f, np.abs(held(times[-1] - times[0])), direction, how.order, rtol, atol)
    for k in range(1, len(times)):
        t, end = times[k - 1], times[k]
        rejected, alive = False, True
        while alive and direction * held(end - t) > 0.0:
            h, least = lengthened(t, h, direction, np.inf)
            alive = not (rejected and least)
            new_t, last = reached(t, end, h, direction)
            step = new_t - t
            new, slope_there, error, _ = stepped(slope, how, t, y, f, step, rtol, atol)
            wanted = held(np.abs(step)) * resized(how, error, rejected)
            rejected = error >= 1.0
            h = wanted if rejected or not last else np.maximum(h, wanted)
            if not rejected:
                t, y, f = new_t, new, slope_there
        found[k] = y
    return found


def slope_of(function: Any, args: tuple[Any, ...], dtype: Any, tfirst: bool = True) -> Callable[..., Any]:
    """The user's function of a time and a state, with arrays for what it returns."""
    from srcgrad.tracing.conversion.calls import call

    def slope(t: Any, y: Any) -> Any:
        found = call(function, t, y, *args) if tfirst else call(function, y, t, *args)
        if isinstance(found, (list, tuple)):
            found = call(np.array, found)
        return cast(np.atleast_1d(as_array(found)), dtype)

    return slope


def state(y0: Any) -> Any:
    from srcgrad.tracing.conversion.calls import call

    found = as_array(call(np.array, y0) if isinstance(y0, (list, tuple)) else y0)
    return cast(np.atleast_1d(found), np.complex128 if found.dtype.kind == "c" else np.float64)


@call_rule(scipy.integrate.solve_ivp)
def solve_ivp(
    fun: Any, t_span: Any, y0: Any, method: Any = "RK45", t_eval: Any = None, dense_output: bool = False,
    events: Any = None, vectorized: bool = False, args: Any = None, **options: Any,
) -> Any:  # fmt: skip
    """SciPy's steps, one for one. Without ``t_eval`` the number of results depends on values."""
    if method not in METHODS or dense_output or events is not None:
        what = "dense_output" if dense_output else "events" if events is not None else f"method={method!r}"
        raise UnsupportedError(
            f"scipy.integrate.solve_ivp with {what} is not supported on traced values",
            hint="method RK45 or RK23, t_eval",
        )
    rtol, atol = max(options.pop("rtol", 1e-3), 100 * np.finfo(float).eps), options.pop("atol", 1e-6)
    longest, first = options.pop("max_step", np.inf), options.pop("first_step", None)
    if set(options) - {"jac", "jac_sparsity", "lband", "uband", "min_step"}:
        raise UnsupportedError(f"scipy.integrate.solve_ivp has no option {', '.join(options)} on traced values")
    y = state(y0)
    if y.ndim != 1:
        raise ShapeError("`y0` must be 1-dimensional.")
    begin, end = (cast(as_array(t), np.float64)[()] for t in t_span)
    slope = slope_of(fun, () if args is None else tuple(args), y.dtype)
    how = METHODS[method]
    given = (how, begin, end, y)
    if t_eval is None:
        times, values, alive = every_step(slope, *given, rtol, atol, longest, first)
        return answer(times, values.T, alive)
    asked = cast(as_array(t_eval), np.float64)
    found, alive = convert(integrated)(slope, *given, asked, rtol, atol, longest, first)  # type: ignore[arg-type]
    return answer(asked, found.T, alive)


def answer(times: Any, values: Any, alive: Any) -> Any:
    """What the solver returns; a step that became too small for the times' digits ends the integration."""
    found: Any = OptimizeResult()
    found.update(
        {
            "t": times,
            "y": values,
            "sol": None,
            "t_events": None,
            "y_events": None,
            "success": alive,
            "status": np.where(alive, 0, -1),
            "message": "The solver successfully reached the end of the integration interval.",
        }
    )
    return found


@call_rule(scipy.integrate.odeint)
def odeint(
    func: Any, y0: Any, t: Any, args: Any = (), Dfun: Any = None, col_deriv: Any = 0, full_output: Any = 0,
    ml: Any = None, mu: Any = None, rtol: Any = None, atol: Any = None, tcrit: Any = None, h0: Any = 0.0,
    hmax: Any = 0.0, hmin: Any = 0.0, ixpr: Any = 0, mxstep: Any = 0, mxhnil: Any = 0, mxordn: Any = 12,
    mxords: Any = 5, printmessg: Any = 0, tfirst: bool = False,
) -> Any:  # fmt: skip
    """By an explicit method of order 8 with a tenth of the tolerances, so that LSODA's values differ within its own."""
    if full_output:
        raise UnsupportedError("scipy.integrate.odeint with full_output is not supported on traced values")
    y, times = state(y0), cast(as_array(t), np.float64)
    if y.ndim != 1:
        raise ShapeError("Initial condition y0 must be one-dimensional.")
    slope = slope_of(func, args if isinstance(args, tuple) else (args,), y.dtype, tfirst)
    bounds = [0.1 * (1.49012e-8 if bound is None else bound) for bound in (rtol, atol)]
    found: Any = convert(visited)(slope, ACCURATE, times, y, *bounds)  # type: ignore[arg-type]
    return found
