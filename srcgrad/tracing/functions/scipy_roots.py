"""Rules of ``scipy.optimize`` for roots between two numbers: Brent's method, and the implicit function theorem.

How a root is found counts as known; two steps of Newton's method from there change nothing but the derivatives, which
are those of the root up to the third order (each step doubles how far they are right). Brent's method is plain Python,
which is converted like the user's own. Importing this module imports SciPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.optimize
from scipy.optimize import OptimizeResult

from srcgrad.errors import ArgumentError, UnsupportedError
from srcgrad.tracing.conversion.calls import call, call_rule
from srcgrad.tracing.conversion.convert import convert
from srcgrad.tracing.functions.registry import as_array, cast, require
from srcgrad.tracing.functions.scipy_ode import held

BRACKETING: Final = ("brentq", "brenth", "bisect", "ridder", "toms748")
RTOL: Final = 4 * float(np.finfo(float).eps)
Function = Callable[[Any], Any]


@call_rule(*(getattr(scipy.optimize, name) for name in BRACKETING))
def bracketed(
    f: Any, a: Any, b: Any, args: Any = (), xtol: float = 2e-12, rtol: float = RTOL, maxiter: int = 100,
    full_output: bool = False, disp: bool = True, k: int = 1,
) -> Any:  # fmt: skip
    """All find a root as exact as they are asked for, and Brent's method is the one that they are found by."""
    if full_output:
        raise UnsupportedError(
            "a root with full_output=True is not supported on traced values", hint="leave full_output out"
        )
    if xtol <= 0:
        raise ArgumentError(f"xtol too small ({xtol:g} <= 0)")
    if rtol < RTOL:
        raise ArgumentError(f"rtol too small ({rtol:g} < {RTOL:g})")
    return root_between(number_function(f, args), a, b, xtol, rtol, maxiter)


@call_rule(scipy.optimize.root_scalar)
def root_scalar(
    f: Any, args: Any = (), method: Any = None, bracket: Any = None, fprime: Any = None, fprime2: Any = None,
    x0: Any = None, x1: Any = None, xtol: Any = None, rtol: Any = None, maxiter: Any = None, options: Any = None,
) -> Any:  # fmt: skip
    """Between two numbers, or by `scipy.optimize.newton`."""
    given = {"xtol": xtol, "rtol": rtol, "maxiter": maxiter, **(options or {})}
    options = {name: value for name, value in given.items() if value is not None}
    if fprime is True or fprime2 is True:
        f, fprime, fprime2 = parts_of(f, fprime, fprime2)
    chosen = method.lower() if method is not None else "brentq" if bracket is not None else "newton"
    if chosen in BRACKETING:
        if bracket is None:
            raise ArgumentError(f"Bracket needed for {chosen}")
        return found_at(bracketed(f, *bracket[:2], args, **options))
    if chosen not in ("newton", "secant", "halley") or x0 is None:
        raise UnsupportedError(
            "scipy.optimize.root_scalar with these arguments is not supported on traced values",
            hint="give it bracket=, or x0= with method='newton', 'secant' or 'halley'",
        )
    options = {{"xtol": "tol"}.get(name, name): value for name, value in options.items()}
    return found_at(call(scipy.optimize.newton, f, x0, fprime=fprime, args=args, fprime2=fprime2, x1=x1, **options))


def parts_of(f: Any, fprime: Any, fprime2: Any) -> tuple[Any, Any, Any]:
    """The functions that one function gives the values of, where it is said to."""
    slope = (lambda *given: call(f, *given)[1]) if fprime is True else fprime
    bend = (lambda *given: call(f, *given)[2]) if fprime2 is True else fprime2
    return lambda *given: call(f, *given)[0], slope, bend


def found_at(root: Any) -> Any:
    """What is known of a root that was found: it is an error if there is none."""
    found: Any = OptimizeResult()
    found.update({"root": root, "converged": True, "flag": "converged"})
    return found


def number_function(f: Any, args: Any) -> Function:
    """The user's function, which gives a float."""
    more = args if isinstance(args, tuple) else (args,)

    def function(x: Any) -> Any:
        found = as_array(call(f, x, *more))
        if found.dtype.kind == "c":
            raise ArgumentError("the function gives complex numbers, of which there are no signs")
        return cast(found.reshape(()), np.float64)[()]

    return function


def root_between(f: Function, a: Any, b: Any, xtol: float, rtol: float, maxiter: int) -> Any:
    def level(x: Any) -> Any:
        return held(f(x))

    low, high = (held(cast(as_array(end), np.float64).reshape(())[()]) for end in (a, b))
    at_low, at_high = level(low), level(high)
    opposite = (at_low == 0.0) | (at_high == 0.0) | (np.signbit(at_low) != np.signbit(at_high))
    require(opposite, "ValueError", "f(a) and f(b) must have different signs")
    root, alive = convert(brent)(level, low, high, at_low, at_high, xtol, rtol, maxiter)  # type: ignore[arg-type]
    require(alive, "RuntimeError", f"Failed to converge after {maxiter} iterations.")
    return solved(f, held(root))


def solved(f: Function, root: Any) -> Any:
    """A root that is known, as a function of what the equation depends on; of many, each has its own equation."""
    from srcgrad.api import jvp

    x = root
    for _ in range(2):
        value, slope = jvp(f, (x,), (np.ones_like(x)[()],))
        x = x - value / slope
    moved: Any = x - held(x)
    undefined = 0.0 * np.sqrt(0.0 * f(root))  # where the slope is 0, which no root that is crossed need have
    return root + np.where(np.isfinite(held(x)), moved, undefined)


def brent(f: Function, before: Any, x: Any, at_before: Any, at_x: Any, xtol: float, rtol: float, maxiter: int) -> Any:
    """R. Brent, Algorithms for Minimization without Derivatives, chapter 4, step for step as SciPy.

    Converted before it is called. Returns the root, and whether it was found.
    """
    other, at_other = before, at_before
    step = earlier = x - before
    alive = (at_before != 0.0) & (at_x != 0.0)
    x = np.where(at_before == 0.0, before, x)
    count = 0
    while alive and count < maxiter:
        if at_before != 0.0 and np.signbit(at_before) != np.signbit(at_x):
            other, at_other = before, at_before
            step = earlier = x - before
        if np.abs(at_other) < np.abs(at_x):
            before, x, other = x, other, x
            at_before, at_x, at_other = at_x, at_other, at_x
        least, half = 0.5 * (xtol + rtol * np.abs(x)), 0.5 * (other - x)
        if at_x == 0.0 or np.abs(half) < least:
            alive = False
        else:
            attempt = half
            if np.abs(earlier) > least and np.abs(at_x) < np.abs(at_before):
                if before == other:
                    attempt = -at_x * (x - before) / (at_x - at_before)
                else:
                    one, two = (at_before - at_x) / (before - x), (at_other - at_x) / (other - x)
                    attempt = -at_x * (at_other * two - at_before * one) / (two * one * (at_other - at_before))
                short = 2.0 * np.abs(attempt) < np.minimum(np.abs(earlier), 3.0 * np.abs(half) - least)
                earlier = np.where(short, step, half)
                step = np.where(short, attempt, half)
            else:
                step = earlier = half
            before, at_before = x, at_x
            x = x + np.where(np.abs(step) > least, step, np.where(half > 0.0, least, -least))
            at_x = f(x)
        count += 1
    return x, np.logical_not(alive)
