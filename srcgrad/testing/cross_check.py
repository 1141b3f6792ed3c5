"""`cross_check`: one function, each backend, both modes, jax's own derivatives and differences, in one table."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from srcgrad.backends.base import available
from srcgrad.boundary import checked, described
from srcgrad.errors import ArgumentError, GradientCheckError, UnknownBackendError
from srcgrad.ir.errors import nearest_hint
from srcgrad.testing.bench import Bench, Settings
from srcgrad.testing.problem import Problem, Tolerance
from srcgrad.testing.programs import subject
from srcgrad.testing.report import POLICY, CrossCheck, Row

TOLERANCE: Final = {2: 5e-2, 4: 1e-4, 8: 1e-10}
"""By the bytes of a real number: how far apart entries may be, relative to the scale of their row and column."""


@checked
def cross_check(
    f: Callable[..., Any],
    *args: Any,
    order: int = 1,
    backends: Sequence[str] | None = None,
    argnums: int | Sequence[int] | None = None,
    rtol: float | None = None,
    ulp: float | None = None,
    seed: int = 0,
    kwargs: Mapping[str, Any] | None = None,
) -> CrossCheck:
    """Compare a function's value and derivatives between all that can compute them; the result is a table.

    The value, and the derivatives in all float and complex leaves of the arguments by forward and by reverse mode, on
    every backend; jax's own derivatives, forward and reverse, of the function as the xla backend writes it; and
    complex steps where the function is holomorphic by its structure, else differences extrapolated to step 0, whose
    error estimates bound how far they are trusted (the column ``bound``). Where the derivative has more than 10 000
    entries, products with random directions are compared.

    At kinks, ties and other points where mathematics leaves a choice, jax and differences may differ from srcgrad; an
    entry that does is explained by a section of docs/policies.md, or it is an error. Then everything is compared once
    more at a random point nearby and at its mirror image: no policy hides a wrong rule. The backends, and forward and
    reverse mode, must agree everywhere.

    Args:
        f: a function of pytrees of arrays that returns one. It is called with copies of ``args``.
        args: its positional arguments, the point.
        order: 2 also compares second derivatives, in all four nestings of the modes.
        backends: names of backends; all that there are unless given. Without ``"xla"`` jax takes no part.
        argnums: the arguments to differentiate; all unless given.
        rtol: how far apart entries may be, relative to the scale of their row and column; unless given 1e-10 for
            double, 1e-4 for single and 5e-2 for half precision, besides what rounding the arguments changes.
        ulp: the same in units of the last place.
        seed: of the random directions and of the point nearby.
        kwargs: keyword arguments of ``f``; they are not differentiated.

    Returns:
        The table: ``print`` it, or read its ``rows``.

    Raises:
        GradientCheckError: two disagree; the message names the pair, the argument, the entry and both numbers.
        ArgumentError: an argument of `cross_check` makes no sense.
        IntegerInputError: there is nothing to differentiate.

    >>> import numpy as np
    >>> from srcgrad.testing import cross_check
    >>> table = cross_check(lambda x: np.sum(np.sin(x) ** 3), np.array([0.3, -1.2]), backends=["numpy"])
    >>> for row in table.rows:
    ...     print(row.left, "=", row.right, row.verdict)
    f = numpy agree
    numpy forward = complex steps agree
    numpy reverse = complex steps agree
    numpy reverse = numpy forward agree

    A wrong rule does not pass:

    >>> import srcgrad as sg
    >>> @sg.custom_vjp
    ... def double(x):
    ...     return 2.0 * x
    >>> double.defvjp(lambda x: (2.0 * x, None), lambda residuals, ct: (-2.0 * ct,))
    >>> try:
    ...     cross_check(double, 1.5, backends=["numpy"])
    ... except sg.errors.GradientCheckError as error:
    ...     print(error.message.partition(": relative")[0])
    cross_check(double): numpy forward and differences disagree on the derivative in argument 0
      -2.0 (numpy forward), 2.0 (differences)
    """
    settings = checked_settings(order, backends, seed)
    target = functools.partial(f, **kwargs) if kwargs else f
    if kwargs:
        functools.update_wrapper(target, f)
    with np.errstate(all="ignore"):
        problem = Problem(target, args, argnums, Tolerance(None, None, None), seed, "cross_check")
        tolerance = checked_tolerance(problem, rtol, ulp)
        found = subject(target, args, {}, problem.argnums, problem.parts, problem.out_parts)
        return checked_bench(Bench(problem, found, settings, tolerance))


def checked_bench(bench: Bench) -> CrossCheck:
    """Run and compare, and once more nearby where a policy was needed; raise what disagrees."""
    rows = bench.rows()
    nearby: list[Row] = []
    failures = list(bench.failures)
    if not failures and any(row.verdict == POLICY for row in rows):
        for other in bench.nearby():
            nearby += other.rows()
            where = f"\n  at a random point nearby, of seed={bench.settings.seed}"
            failures += [text + where for text in other.failures]
    result = CrossCheck(bench.problem.name, tuple(rows), bench.description(), tuple(nearby))
    if failures:
        raise GradientCheckError(f"{failures[0]}\n{result}", span=None, hint=bench.hint)
    return result


def checked_settings(order: Any, backends: Any, seed: int) -> Settings:
    if isinstance(order, bool) or order not in (1, 2):
        raise ArgumentError(f"cross_check: order must be 1 or 2, not {order!r}")
    known = available()
    if backends is None:
        missing = () if known["xla"] else (("xla", "not installed: pip install srcgrad[xla]"),)
        return Settings(order, tuple(name for name, there in known.items() if there), missing, seed)
    names = (backends,) if isinstance(backends, str) else tuple(backends)
    for name in names:
        if name not in known:
            raise UnknownBackendError(
                f"cross_check: there is no backend {described(name)}",
                hint=nearest_hint(str(name), known) or f"the backends are {', '.join(sorted(known))}",
            )
    chosen = ("numpy", *(name for name in dict.fromkeys(names) if name != "numpy"))
    return Settings(
        order,
        tuple(name for name in chosen if known[name]),
        tuple((name, "not installed") for name in chosen if not known[name]),
        seed,
    )


def checked_tolerance(problem: Problem, rtol: float | None, ulp: float | None) -> float:
    if rtol is not None and ulp is not None:
        raise ArgumentError("cross_check: give rtol or ulp, not both")
    for name, value in (("rtol", rtol), ("ulp", ulp)):
        if value is not None and not value >= 0:
            raise ArgumentError(f"cross_check: {name} must be a number >= 0, not {value!r}")
    if ulp is not None:
        return ulp * problem.unit
    if rtol is not None:
        return rtol
    worst = max((part.dtype for part in (*problem.parts, *problem.out_parts)), key=lambda d: float(np.finfo(d).eps))
    return TOLERANCE[min(np.finfo(worst).dtype.itemsize, 8)]
