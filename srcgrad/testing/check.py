"""`check_grads`: derivatives against differences, against each other, to any order.

Small problems are compared entry by entry, large ones along random directions.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from srcgrad.boundary import checked, described
from srcgrad.errors import ArgumentError, GradientCheckError, StructureError
from srcgrad.real_derivatives import Reals
from srcgrad.testing.problem import (
    WORST_DIFFERENCE,
    Difference,
    Problem,
    Tolerance,
    assemble,
    closer,
    complex_step,
    largest,
    lower_matrix,
    ridders,
)

MODES = {"fwd": "forward", "rev": "reverse"}
LARGEST_MATRIX = 2000
"""Derivatives with more entries than this are compared along random directions."""
DIRECTIONS = 3
SAFETY = 10.0
"""How far the error estimate of a difference is trusted."""
SHOWN = 64
"""Matrices with more entries than this are not shown."""


@checked
def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int = 2,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    *,
    argnums: int | Sequence[int] | None = None,
    seed: int = 0,
) -> None:
    """Check the derivatives of a function against differences, and forward and reverse mode against each other.

    Args:
        f: a function of pytrees of arrays that returns one. It is called with copies of ``args``.
        args: its positional arguments, the point at which to check. Float and complex leaves are differentiated, others
            passed as they are.
        order: derivatives of the orders 1 to ``order`` are checked, in all ``len(modes) ** order`` nestings.
        modes: ``"fwd"``, ``"rev"`` or both.
        atol: how far two entries may be apart; 0 unless given.
        rtol: the same relative to the largest entry of the matrix; unless given 1e-9 for double, 5e-4 for single and
            5e-2 for half precision, besides what the differences' own error estimates allow.
        eps: the first step of the differences, relative to ``max(1, |x|)``; 1/16 unless given.
        argnums: the arguments to differentiate; all unless given.
        seed: of the random directions that stand for matrices of more than 2000 entries.

    Raises:
        GradientCheckError: derivatives disagree, or the differences do not converge (a kink, a pole, the edge of the
            domain); the message names the argument, both values, the error and the seed.
        ArgumentError: an argument of `check_grads` makes no sense.
        IntegerInputError: there is nothing to differentiate.

    >>> import numpy as np
    >>> from srcgrad.testing import check_grads
    >>> check_grads(lambda x: np.sum(np.sin(x) ** 3), (np.array([0.3, -1.2]),), order=2)

    A wrong rule does not pass:

    >>> import srcgrad as sg
    >>> @sg.custom_vjp
    ... def double(x):
    ...     return 2.0 * x
    >>> double.defvjp(lambda x: (2.0 * x, None), lambda residuals, ct: (-2.0 * ct,))
    >>> try:
    ...     check_grads(double, (1.5,))
    ... except sg.errors.GradientCheckError as error:
    ...     print(error.message)
    check_grads(double): the forward-mode derivative of order 1 in argument 0 disagrees
      -2.0, but differences give 2.0: relative error 2.0e+00, tolerance 2.0e-09
    """
    problem = Problem(f, checked_args(args), argnums, Tolerance(atol, rtol, eps), seed)
    names = checked_modes(modes)
    if isinstance(order, bool) or not isinstance(order, int) or order < 1:
        raise ArgumentError(f"check_grads: order must be a positive int, not {order!r}")
    for k in range(1, order + 1 if problem.inputs and problem.outputs else 1):  # no entries, nothing to compare
        if problem.inputs**k * problem.outputs <= LARGEST_MATRIX:
            check_matrices(problem, names, k)
        else:
            for sample in range(DIRECTIONS):
                check_directions(problem, names, k, sample)


def checked_args(args: Any) -> tuple[Any, ...]:
    if not isinstance(args, (tuple, list)):
        raise ArgumentError(
            f"check_grads: args must be a tuple of the function's arguments, not {described(args)}",
            hint="check_grads(f, (x,))",
        )
    return tuple(args)


def checked_modes(modes: Any) -> tuple[str, ...]:
    given = tuple(modes) if isinstance(modes, (tuple, list)) else (modes,)
    if not given or any(mode not in MODES for mode in given):
        raise ArgumentError(
            f"check_grads: modes are 'fwd' and 'rev', not {described(modes)}", hint="modes=('fwd', 'rev') checks both"
        )
    return tuple(dict.fromkeys(given))


# --- comparing ------------------------------------------------------------------------------------------------


class Case(NamedTuple):
    """What is compared, for the message."""

    problem: Problem
    what: str
    against: str
    hint: str | None = None


def require_same(case: Case, derivative: Reals, other: Reals, error: Reals | None, scale: Reals, floor: float) -> None:
    """Both agree to rounding, relative to ``scale``, or to the other's error estimate if it is a difference.

    Raises:
        GradientCheckError: they do not.
    """
    problem = case.problem
    if derivative.shape != other.shape:
        raise StructureError(
            f"{problem.name} has {len(other)} real numbers in its results when NumPy runs it, {len(derivative)} here",
            hint="NumPy chose a real or complex dtype by the numbers (np.roots): cast the result",
        )
    allowed = np.broadcast_to(problem.rounding * scale + floor, derivative.shape)
    limit = WORST_DIFFERENCE * largest(other) + floor
    if error is not None:
        allowed = allowed + np.minimum(SAFETY * np.where(np.isnan(error), np.inf, error), limit)
    with np.errstate(all="ignore"):
        fine = derivative == other
        fine |= np.abs(derivative - other) <= allowed
        if error is None:
            fine |= np.isnan(derivative) & np.isnan(other)
        if fine.all():
            return
        gap = np.abs(derivative - other) / allowed
        gap = np.where(fine, -1.0, np.where(np.isnan(gap), np.inf, gap))
    worst = tuple(int(k) for k in np.unravel_index(int(np.argmax(gap)), gap.shape))
    hint = case.hint
    if error is not None and not SAFETY * error[worst] <= limit:
        hint = (
            "the differences do not converge there: a kink, a jump, a pole or the edge of the domain is near; "
            "check at another point, or pass eps"
        )
    raise GradientCheckError(message(case, derivative, other, worst, float(allowed[worst])), hint=hint)


def message(case: Case, derivative: Reals, other: Reals, worst: tuple[int, ...], allowed: float) -> str:
    problem = case.problem
    place, where = "", []
    if derivative.ndim == 2:
        column = worst[-1]
        part = next(part for part in problem.parts if part.start <= column < part.stop)
        place = f" in {part.path}"
        if part.dtype.kind == "c":
            where.append("imaginary part" if part.imaginary else "real part")
        if part.shape:
            where.append(f"at {[int(k) for k in np.unravel_index(column - part.start, part.shape)]}")
        if len(derivative) > 1:
            where.append(f"row {worst[0]} of the matrix")
    elif derivative.size > 1:
        where.append(f"entry {worst[0]}")
    found, expected = float(derivative[worst]), float(other[worst])
    with np.errstate(all="ignore"):
        relative = np.float64(abs(found - expected)) / max(abs(found), abs(expected))
    lines = [f"check_grads({problem.name}): {case.what}{place} disagrees"]
    if 1 < derivative.size <= SHOWN:
        width = max(len("derivative"), len(case.against))
        for title, matrix in (("derivative", derivative), (case.against, other)):
            text = np.array2string(matrix, precision=8, separator=", ", prefix=" " * (width + 3))
            lines.append(f"  {title:{width}} {text}")
    entry = f"worst entry ({', '.join(where)}): " if where else ""
    lines.append(
        f"  {entry}{found!r}, but {case.against} {expected!r}: relative error {relative:.1e}, tolerance {allowed:.1e}"
    )
    return "\n".join(lines)


def describe(chain: Sequence[str]) -> str:
    return f"the {'-over-'.join(MODES[mode] for mode in reversed(chain))}-mode derivative of order {len(chain)}"


# --- small: whole matrices ------------------------------------------------------------------------------------


def check_matrices(problem: Problem, modes: Sequence[str], order: int) -> None:
    """All nestings of one order, as whole matrices: against differences of the next lower order, then each other."""
    chains = list(itertools.product(modes, repeat=order))
    found = {}
    for chain in chains:
        blocks = problem.derivative(chain, "matrix")(*problem.arguments(problem.point, True))
        found[chain] = assemble(blocks, problem.parts, order)
    floor = problem.floor()

    def compare(columns: Sequence[Difference]) -> None:
        value = np.stack([column.value for column in columns], axis=1)
        error = np.stack([column.error for column in columns], axis=1)
        scale = np.minimum(largest(value, 0), largest(value, 1))
        for chain, matrix in found.items():
            require_same(Case(problem, describe(chain), "differences give"), matrix, value, error, scale, floor)

    basis = np.eye(problem.inputs)
    if (
        order > 1
        or not problem.holomorphic
        or not passes(lambda: compare([complex_step(problem, direction) for direction in basis]))
    ):
        lower = lower_matrix(problem, chains[0][:-1])
        terms = problem.magnitude if order > 1 else 0.0
        columns = [ridders(problem, lower, direction, terms) for direction in basis]
        given = list(zip(basis, columns, strict=True))
        confirmed(compare, columns, lambda: [closer(problem, lower, *pair, terms) for pair in given])
    first = found[chains[0]]
    scale = np.minimum(largest(first, 0), largest(first, 1))
    for chain, matrix in found.items():
        require_same(Case(problem, describe(chain), f"{describe(chains[0])} gives"), matrix, first, None, scale, floor)
    problem.magnitude = max(problem.magnitude, float(largest(first)))


def confirmed(compare: Callable[[Any], None], found: Any, nearer: Callable[[], Any] | None) -> None:
    """Compare with differences; with those of smaller steps, if there are any, before a derivative is accused."""
    try:
        compare(found)
    except GradientCheckError:
        if nearer is None or not passes(lambda: compare(nearer())):
            raise


def passes(comparison: Callable[[], None]) -> bool:
    """Whether complex steps confirm the derivatives; if not, real differences decide."""
    try:
        comparison()
    except GradientCheckError:
        return False
    return True


# --- large: random directions ---------------------------------------------------------------------------------


class Direction(NamedTuple):
    """A random direction of inputs and one of outputs."""

    inward: Reals
    outward: Reals
    hint: str


def check_directions(problem: Problem, modes: Sequence[str], order: int, sample: int) -> None:
    """All nestings of one order along one random direction of inputs v and one of outputs u.

    The derivative of order k is the form ``u . d^k f [v, ..., v]``. A chain of modes holds it as a vector with one slot
    open: the output's until reverse mode is first applied, then an input's.
    """
    generator = np.random.default_rng([problem.seed, order, sample])
    inward, outward = generator.standard_normal(problem.inputs), generator.standard_normal(problem.outputs)
    along = Direction(inward, outward, f"along random direction {sample} of seed={problem.seed}")
    forms: dict[tuple[str, ...], tuple[float, float]] = {}
    for parent in itertools.product(modes, repeat=order - 1):
        if (
            order > 1
            or not problem.holomorphic
            or not passes(lambda: check_parent(problem, modes, (), along, complex_step(problem, inward), {}))
        ):
            lower = lower_vector(problem, parent, along)
            terms = problem.magnitude if order > 1 else 0.0
            difference = ridders(problem, lower, inward, terms)
            nearer: Callable[[], Difference] | None = functools.partial(
                closer, problem, lower, inward, difference, terms
            )
        else:
            difference = complex_step(problem, inward)
            nearer = None
        check = functools.partial(check_parent, problem, modes, parent, along, forms=forms)
        confirmed(check, difference, nearer)
    first, (expected, expected_size) = next(iter(forms.items()))
    for chain, (form, size) in forms.items():
        case = Case(problem, describe(chain), f"{describe(first)} gives", along.hint)
        floor = problem.floor() * norm(inward) * norm(outward)
        scale = np.array([max(size, expected_size)])
        require_same(case, np.array([form]), np.array([expected]), None, scale, floor)
    problem.magnitude = max(problem.magnitude, abs(expected) / norm(inward))


def lower_vector(problem: Problem, chain: Sequence[str], along: Direction) -> Callable[[Reals], Reals]:
    if not chain:
        return problem.value
    return lambda vector: problem.along(chain, vector, False, along.inward, along.outward)


def check_parent(
    problem: Problem,
    modes: Sequence[str],
    parent: tuple[str, ...],
    along: Direction,
    difference: Difference,
    forms: dict[tuple[str, ...], tuple[float, float]],
) -> None:
    """One derivative's own derivatives against its difference along v; adds each form, and the size of its terms."""
    slot = along.inward if "rev" in parent else along.outward
    value, error = difference
    floor = problem.floor() * norm(along.inward)
    for mode in modes:
        chain = (*parent, mode)
        found = problem.along(chain, problem.point, True, along.inward, along.outward)
        case = Case(problem, describe(chain), "differences give", along.hint)
        if mode == "fwd":
            require_same(case, found, value, error, np.abs(value), floor)
            terms = found * slot
        else:
            terms = found * along.inward
            total, spread = np.array([np.sum(slot * value)]), np.array([np.sum(np.abs(slot) * error)])
            require_same(case, np.array([terms.sum()]), total, spread, np.array([norm(terms)]), floor * norm(slot))
        forms[chain] = (float(terms.sum()), norm(terms))


def norm(vector: Reals) -> float:
    return float(np.sqrt(np.sum(np.square(vector))))
