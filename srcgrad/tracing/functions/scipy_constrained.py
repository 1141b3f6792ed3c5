"""Minima under constraints, for the rule of ``scipy.optimize.minimize``.

At a minimum the slope of f is a sum of the slopes of the constraints that hold it, each times a multiplier, which is
none below zero where the constraint is an inequality; these constraints are zero, and the multipliers of the others
are. These are as many equations as unknowns and multipliers, and their solution moves as the implicit function theorem
says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.errors import UnsupportedError
from srcgrad.tracing.conversion.calls import call
from srcgrad.tracing.functions.registry import as_array
from srcgrad.tracing.functions.scipy_ode import held
from srcgrad.tracing.tracer import as_tracer

Function = Callable[..., Any]
NEAR: Final = 1e-3
"""How near to zero a constraint is that may hold a minimum, beside the largest unknown: solvers stop before it is."""


class Constraint(NamedTuple):
    equal: bool
    value: Function
    slopes: Any
    """As they are given to SciPy: a function, the name of a way, or None."""

    def for_scipy(self, value: Any, slopes: Any) -> dict[str, Any]:
        more = {} if slopes is None else {"jac": slopes}
        return {"type": "eq" if self.equal else "ineq", "fun": value, **more}


def constraints_in(given: Any, with_arguments: Function) -> list[Constraint]:
    """Those that are given to ``minimize`` as dicts.

    Raises:
        UnsupportedError: there are others.
    """
    found = [given] if isinstance(given, dict) else list(given) if isinstance(given, (list, tuple)) else [given]
    if not all(isinstance(one, dict) and str(one.get("type")).lower() in ("eq", "ineq") for one in found):
        raise UnsupportedError(
            "scipy.optimize.minimize with constraints that are no dicts has no derivative rule in srcgrad",
            hint='write them as {"type": "eq" or "ineq", "fun": lambda x: …}, or give it a rule with custom_jvp',
        )
    return [
        Constraint(
            str(one["type"]).lower() == "eq",
            with_arguments(one["fun"], tuple(one.get("args", ())), spread=True),
            with_arguments(one.get("jac"), tuple(one.get("args", ())), spread=True),
        )
        for one in found
    ]


def functions_in(given: Any) -> list[Function]:
    """What constraints ask for, of the unknowns."""
    found = given if isinstance(given, (list, tuple)) else [given]
    parts = [(one["fun"], one.get("args", ())) for one in found if isinstance(one, dict) and "fun" in one]
    others = [(getattr(one, "fun", None), ()) for one in found if not isinstance(one, dict)]
    return [lambda x, f=f, args=args: call(f, x, *args) for f, args in (*parts, *others) if callable(f)]


def edges(x: Any, steep: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """Which of the unknowns a bound holds, and where, from the slope at a minimum.

    A minimum that a bound holds is nearer to it than its slope is to zero: some of SciPy's methods stay inside.
    """
    at_low = x - held(low) <= np.maximum(steep, 0.0)
    at_high = held(high) - x <= np.maximum(-steep, 0.0)
    return at_low | at_high, np.where(at_low, np.where(at_low, low, 0.0), np.where(at_high, high, 0.0))


def conditions(
    slope: Function, constraints: Sequence[Constraint], low: Any, high: Any, found: Any
) -> tuple[Function, Any]:
    """What is zero at a minimum, of the unknowns and the multipliers in one array, and that array."""
    from srcgrad.api import grad, jacfwd

    place = as_tracer(found).reshape(-1)
    n = place.size

    def values(x: Any) -> Any:
        return np.concatenate([as_array(one.value(x)).reshape(-1) for one in constraints])

    sizes = [as_array(one.value(place)).size for one in constraints]
    equal = np.repeat([one.equal for one in constraints], sizes)
    steep, level, slopes = held(as_array(slope(place)).reshape(-1)), held(values(place)), held(jacfwd(values)(place))
    near = NEAR * (1.0 + np.max(np.abs(place)))
    free = (place - held(low) > near) & (held(high) - place > near)
    may_hold = equal | (level <= near)
    parts = np.where(may_hold[:, None] & free, slopes, 0.0)
    multipliers = np.linalg.pinv(parts.T) @ np.where(free, steep, 0.0)
    holds = equal | (may_hold & (level <= multipliers))
    bound, edge = edges(place, steep - slopes.T @ multipliers, low, high)

    def equations(z: Any) -> Any:
        x, lagrange = z[:n], z[n:]
        leans = as_array(slope(x)).reshape(-1) - grad(lambda y: np.sum(lagrange * values(y)))(x)
        return np.concatenate([np.where(bound, x - edge, leans), np.where(holds, values(x), lagrange)])

    return equations, np.concatenate([place, held(multipliers)])
