"""Programs with control flow of one number, and how they are derived, compiled and compared."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from srcgrad.backends.base import Executable, backend
from srcgrad.backends.numpy.evaluate import evaluate, evaluate_operation
from srcgrad.ir.core import Builder, Function, literal
from srcgrad.ir.opdef import REGISTRY, Term
from srcgrad.ir.passes.dce import dce
from srcgrad.ir.passes.pipeline import optimise
from srcgrad.ir.transforms.derivatives import value_and_grad
from srcgrad.ir.transforms.interpret import inline
from srcgrad.ir.transforms.linearize import jvp
from srcgrad.ir.types import FLOAT64, INT64
from srcgrad.ir.verify import verify
from tests.ir.control.tracing import F64, apply, cond, for_, log, sin, sqrt, trace, where, while_

Program = Callable[..., Any]


def as_float(x: Term) -> Term:
    return apply("cast", x, dtype=FLOAT64)


def newton(x: Term) -> Term:
    def far(r: Term) -> Term:
        error = r * r - x
        return where(error > 0.0, error, -error) > 1e-14

    return while_(far, lambda r: 0.5 * (r + x / r), x)[0]


def power(x: Term) -> Term:
    return while_(lambda c: c < 100.0, lambda c: c * x, 1.0)[0]


def induction(x: Term) -> Term:
    """An integer that counts by two, and what no trip changes."""
    return while_(lambda k, s: k < 9, lambda k, s: (k + 2, s * sin(x) * 0.5 + as_float(k) * x), np.int64(-1), x)[1]


def while_in_for(x: Term) -> Term:
    """Tapes of tapes, whose lengths differ."""

    def body(i: Term, s: Term) -> Term:
        return s + while_(lambda c: c < 1.0, lambda c: c * 1.1 + x * c * c, s * 0.5 + x)[0] * 0.1

    return for_(4, body, x)[0]


def while_in_while(x: Term) -> Term:
    def body(k: Term, s: Term) -> tuple[Term, Term]:
        return k + 1, while_(lambda c: c < as_float(k) + 2.0, lambda c: c * 1.5 + x * c, s * 0.25 + x)[0]

    return while_(lambda k, s: k < 4, body, np.int64(0), x)[1]


def cond_in_for(x: Term) -> Term:
    """Branches that keep different things for their reverse."""

    def body(i: Term, s: Term) -> Term:
        return cond(s > 1.0, lambda s: sqrt(s) * s, lambda s: sin(s) + s * s * x, s)[0]

    return for_(5, body, x)[0]


def loop_in_cond(x: Term) -> Term:
    """A tape that one branch has and the other has not."""

    def grow(y: Term) -> Term:
        return while_(lambda c: c < 10.0, lambda c: c * c + y, y + 1.0)[0]

    return cond(x > 0.0, grow, lambda y: y * y, x)[0] * x


def two_loops_in_cond(x: Term) -> Term:
    def up(y: Term) -> Term:
        return while_(lambda c: c < 10.0, lambda c: c * c + y, y + 1.0)[0]

    def down(y: Term) -> Term:
        return while_(lambda c: c > -9.0, lambda c: c * 2.0 + y * y * y, y)[0]

    return cond(x > 0.0, up, down, x)[0] * x


def two_carries(x: Term) -> Term:
    """Its tapes are read by two loops at second order."""
    return for_(4, lambda i, s, t: (s * sin(t) + t, t * s), x, x * 0.5)[0]


def counted_at_run_time(x: Term) -> Term:
    trips = apply("cast", x * 10.0, dtype=INT64)
    return for_(trips, lambda i, s: s * 0.9 + sin(s * as_float(i)) * x, x, reverse=True)[0]


def columns(x: Term) -> Term:
    """A loop that makes columns, and one that reads them."""
    made = for_(4, lambda i, s: (s * x + 0.1, s * s), x)[1]
    return for_(4, lambda i, t, e: t * 0.5 + sin(e) * x, x, columns=[made], reverse=True)[0]


def logarithm_of_sum(x: Term) -> Term:
    total = for_(3, lambda i, s: s + x * as_float(i), 1.0)[0]
    return log(total) * total


PROGRAMS: dict[str, tuple[Program, float]] = {
    "newton": (newton, 2.0),
    "power": (power, 3.0),
    "induction": (induction, 0.7),
    "while in for": (while_in_for, 0.3),
    "while in while": (while_in_while, 0.4),
    "cond in for": (cond_in_for, 0.4),
    "loop in cond, taken": (loop_in_cond, 0.5),
    "loop in cond, not taken": (loop_in_cond, -0.5),
    "two loops in cond": (two_loops_in_cond, -0.6),
    "two carries": (two_carries, 0.8),
    "counted at run time": (counted_at_run_time, 0.65),
    "columns": (columns, 0.7),
    "sum": (logarithm_of_sum, 0.7),
}


def derivative(function: Function, mode: str) -> Function:
    """The derivative of a function of one number: F(orward) or R(everse)."""
    if mode == "R":
        found = value_and_grad(function, [True])
        result = Function(f"{function.name}R", found.params, found.operations, found.results[1:])
    else:
        builder = Builder()
        x = builder.param(F64, "x")
        pushed = inline(builder, jvp(function, [True]), [x, literal(1.0, F64)])
        result = builder.function(f"{function.name}F", pushed[1:])
    result = dce(result)
    verify(result)
    return result


def nestings(function: Function, order: int) -> Iterator[tuple[str, Function]]:
    """All derivatives of one order, by the modes in which they were taken."""
    for modes in itertools.product("FR", repeat=order):
        found = function
        for mode in modes:
            found = derivative(found, mode)
        yield "".join(modes), found


def interpreted(function: Function, *arguments: Any) -> list[Any]:
    return evaluate(function, [np.asarray(argument)[()] for argument in arguments])


def compiled(function: Function, name: str = "numpy", sites: Any = None) -> Executable:
    program = optimise(function, evaluate_operation)
    verify(program, "lowered")
    return backend(name).compile(program, sites)


def differences(function: Function, x: float, step: float = 5e-4) -> float:
    """The derivative by differences of fourth order."""
    low2, low, high, high2 = (float(interpreted(function, np.float64(x + k * step))[0]) for k in (-2, -1, 1, 2))
    return (8 * (high - low) - (high2 - low2)) / (12 * step)


def summed(function: Function) -> Function:
    """The sum of the first result."""
    builder = Builder()
    params = [builder.param(param.type, param.name) for param in function.params]
    first = Term(builder, inline(builder, function, params)[0])
    return builder.function("total", [REGISTRY["reduce_sum"](first, axes=tuple(range(first.rank))).value])


__all__ = ["PROGRAMS", "compiled", "derivative", "differences", "interpreted", "nestings", "summed", "trace"]
