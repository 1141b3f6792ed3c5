"""Checking derivatives: `check_grads` compares them with differences, with each other, and to any order.

Complex numbers count as pairs of real ones, so that every derivative is a real matrix. Small problems are compared
entry by entry, large ones along random directions. Differences are either

- complex steps, ``Im f(x + ih) / h`` (Squire and Trapp, *Using complex variables to estimate derivatives of real
  functions*, SIAM Review 40, 1998), which round like f itself, where f is holomorphic by its structure; or
- central differences extrapolated to step 0 with an error estimate (Ridders, *Accurate computation of F'(x) and
  F'(x)F''(x)*, Advances in Engineering Software 4, 1982), computed in double precision.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from srcgrad.boundary import checked, described
from srcgrad.errors import ArgumentError, GradientCheckError, IntegerInputError
from srcgrad.ir.core import Builder
from srcgrad.ir.transforms.derivatives import is_holomorphic
from srcgrad.ir.transforms.linearize import copy_params, record
from srcgrad.real_derivatives import (
    Forward,
    Part,
    Reals,
    Reverse,
    as_given,
    chosen_leaves,
    divided,
    flat,
    joined,
    parts_of,
)
from srcgrad.tracing.function import as_array, leaf_spec, trace_function
from srcgrad.tracing.pytree import flatten

__all__ = ["check_grads"]

MODES = {"fwd": "forward", "rev": "reverse"}
LARGEST_MATRIX = 2000
"""Derivatives with more entries than this are compared along random directions."""
DIRECTIONS = 3
ROUNDING = {2: 5e-2, 4: 5e-4, 8: 1e-9}
"""By the bytes of a real number: what rounding may change, relative to the largest entry."""
LADDER, RATIO, FIRST_STEP = 12, 4.0, 2.0**-4
"""Central differences are taken at ``FIRST_STEP / RATIO**k`` for k < LADDER, until they agree."""
SAFETY = 10.0
"""How far the error estimate of a difference is trusted."""
WORST_DIFFERENCE = 1e-4
"""A difference whose own error is larger than this, relative to the largest entry, decides nothing."""
COMPLEX_STEP = 1e-25
CANCELLATION = 100.0
"""Rounding errors of terms that cancel, in units of the last place of what the function and its derivatives return."""
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


class Tolerance(NamedTuple):
    """What the caller asked for."""

    atol: float | None
    rtol: float | None
    eps: float | None


# --- the problem ----------------------------------------------------------------------------------------------


class Problem:
    """A function at a point, as a map of real vectors."""

    def __init__(
        self, f: Callable[..., Any], args: tuple[Any, ...], argnums: Any, tolerance: Tolerance, seed: int
    ) -> None:
        if not callable(f):
            raise ArgumentError(f"check_grads takes a function, not {described(f)}")
        self.f = f
        self.name = getattr(f, "__name__", type(f).__name__)
        self.tolerance = tolerance
        self.seed = seed
        self.leaves, self.treedef = flatten(args)
        self.argnums = positions(argnums, len(args))
        self.active = chosen_leaves(args, self.argnums)
        if not any(self.active):
            raise IntegerInputError(
                f"check_grads({self.name}): no argument to differentiate is a float or complex number",
                hint="pass floats (2.0, x.astype(float))",
            )
        chosen = [leaf for leaf, flag in zip(self.leaves, self.active, strict=True) if flag]
        paths = [path.removeprefix("[").replace("]", "", 1) for path in self.treedef.paths()]
        self.paths = [f"argument {path}" for path, flag in zip(paths, self.active, strict=True) if flag]
        self.parts = parts_of(chosen, self.paths)
        self.inputs = self.parts[-1].stop
        self.point = flat(chosen)
        values = self.value_leaves(self.point, True)
        self.out_parts = parts_of(values, [""] * len(values))
        self.outputs = self.out_parts[-1].stop if values else 0
        if not values:
            raise ArgumentError(f"check_grads({self.name}): the function returns no floats to differentiate")
        precisions = [np.finfo(part.dtype) for part in (*self.parts, *self.out_parts)]
        worst = max(precisions, key=lambda info: float(info.eps))
        self.rounding = ROUNDING[min(np.dtype(worst.dtype).itemsize, 8)] if tolerance.rtol is None else tolerance.rtol
        self.unit = float(worst.eps)
        self.magnitude = float(largest(flat(values)))
        """The largest entry of all lower orders: what rounding errors are relative to where terms cancel."""
        self.holomorphic = self.has_complex_step()

    def floor(self) -> float:
        """The error that two right derivatives may have whatever their size."""
        point = max(1.0, float(largest(self.point)))
        return (self.tolerance.atol or 0.0) + CANCELLATION * self.unit * self.magnitude / point

    def arguments(self, vector: NDArray[Any], exact: bool) -> tuple[Any, ...]:
        """Fresh arguments whose active leaves hold these numbers, in the leaves' precision if ``exact``."""
        found = iter(zip(self.parts, divided(vector, self.parts, False), strict=True))
        leaves = []
        for leaf, flag in zip(self.leaves, self.active, strict=True):
            if not flag:
                leaves.append(np.array(leaf) if isinstance(leaf, np.ndarray) else leaf)
                continue
            part, value = next(found)
            if part.dtype.kind == "c":
                value = value + 1j * next(found)[1]
            value = np.array(value.astype(part.dtype) if exact else value)
            leaves.append(as_given(leaf, value))
        arguments: tuple[Any, ...] = self.treedef.unflatten(leaves)
        return arguments

    def value_leaves(self, vector: NDArray[Any], exact: bool) -> list[Any]:
        """The float and complex leaves that the function returns."""
        found = flatten(self.f(*self.arguments(vector, exact)))[0]
        specs = [leaf_spec(leaf) for leaf in found]
        return [leaf for leaf, spec in zip(found, specs, strict=True) if spec is not None and spec.type.differentiable]

    def value(self, vector: Reals) -> Reals:
        return flat(self.value_leaves(vector, False))

    def derivative(self, chain: Sequence[str], way: str) -> Callable[..., Any]:
        """The nested derivative; the first mode is the innermost."""
        found: Any = self.f
        for mode in chain:
            found = (Forward if mode == "fwd" else Reverse)(found, way, self.argnums)
        return found  # type: ignore[no-any-return]

    def along(self, chain: Sequence[str], vector: Reals, exact: bool, inward: Reals, outward: Reals) -> Reals:
        """The nested products with ``inward``; the first reverse mode pulls ``outward`` back."""
        arguments = self.arguments(vector, exact)
        directions: list[list[Any]] = []
        inputs, parts, slot = self.parts, self.out_parts, outward
        if not exact:
            leaves = flatten(arguments)[0]
            inputs = parts_of([leaf for leaf, flag in zip(leaves, self.active, strict=True) if flag], self.paths)
            values = self.value_leaves(vector, False)
            parts = parts_of(values, [""] * len(values))
        for mode in chain:
            if mode == "fwd":
                directions.append(divided(inward, inputs, True))
            else:
                directions.append(divided(slot, parts, True))
                parts, slot = inputs, inward
        return joined(self.derivative(chain, "vector")(*reversed(directions), *arguments))

    def has_complex_step(self) -> bool:
        """Whether the function is real, takes complex numbers instead, and is holomorphic in them by its structure."""
        if any(part.dtype.kind == "c" for part in (*self.parts, *self.out_parts)):
            return False
        leaves, treedef = flatten(self.arguments(self.point + 0j, False))
        specs = [leaf_spec(leaf) if flag else None for leaf, flag in zip(leaves, self.active, strict=True)]
        numbers = [as_array(leaf) for leaf, flag in zip(leaves, self.active, strict=True) if flag]
        try:
            traced = trace_function(
                lambda given: self.f(*treedef.unflatten(given)), leaves, specs, [None] * len(leaves),
                name=self.name, concrete=True, numbers=numbers,
            )  # fmt: skip
            builder = Builder()
            active = [k < traced.inputs for k in range(len(traced.function.params))]
            _, program = record(builder, traced.function, copy_params(builder, traced.function), active)
            if not is_holomorphic(program):
                return False
            found = joined(self.value_leaves(self.point + 0j, False))
        except (TypeError, ValueError, ArithmeticError, AttributeError, LookupError):
            return False  # the function, or a rule, takes no complex numbers
        real = self.value(self.point)
        return found.shape == real.shape and bool(np.allclose(found, real, rtol=1e-12, atol=1e-300, equal_nan=True))


def positions(argnums: Any, count: int) -> tuple[int, ...] | None:
    """Argument numbers as positions; None for all.

    Raises:
        ArgumentError: one is out of range, or no int.
    """
    if argnums is None:
        return None
    given = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for number in given:
        if not isinstance(number, int) or not -count <= number < count:
            raise ArgumentError(f"check_grads: argnums={argnums!r}, but f has {count} here; argnums counts from 0")
    return tuple(sorted({number % count for number in given}))


# --- differences ----------------------------------------------------------------------------------------------


class Difference(NamedTuple):
    """A directional derivative and an estimate of its error, entry by entry."""

    value: Reals
    error: Reals


def complex_step(problem: Problem, direction: Reals) -> Difference:
    """``Im f(x + ih direction) / h``: no subtraction, so no cancellation."""
    with np.errstate(all="ignore"):
        found = problem.value_leaves(problem.point + 1j * COMPLEX_STEP * direction, False)
    value = np.concatenate([np.ravel(np.imag(leaf)) for leaf in found]) / COMPLEX_STEP
    return Difference(value, np.zeros(value.shape))


def extrapolate(
    problem: Problem, g: Callable[[Reals], Reals], direction: Reals, first: float, terms: float
) -> Difference:
    """Central differences at steps that shrink by RATIO, extrapolated to 0 in even powers of the step (Neville).

    Of all estimates, each entry takes the one that differs least from those it was made of. ``terms`` is the size of
    terms that may cancel inside ``g``.
    """
    point = problem.point
    reach = float(largest(point[direction != 0]))
    rows: list[Reals] = []
    best = worst = np.zeros(0)
    for k in range(LADDER):
        step = first * RATIO**-k
        with np.errstate(all="ignore"):
            high, low = g(point + step * direction), g(point - step * direction)
            row = [(high - low) / (2 * step)]
            size = np.maximum(np.abs(high), np.abs(low)) + np.abs(row[0]) * reach + terms
            noise = 4 * np.finfo(np.float64).eps * size / step
            if not k:
                best, worst = np.full(high.shape, np.nan), np.full(high.shape, np.inf)
            for j, previous in enumerate(rows[-1:] and rows[-1]):
                row.append(row[j] + (row[j] - previous) / (RATIO ** (2 * (j + 1)) - 1))
                error = np.maximum(np.abs(row[j + 1] - row[j]), np.abs(row[j + 1] - previous)) + noise
                better = error < worst
                best, worst = np.where(better, row[j + 1], best), np.where(better, error, worst)
        rows.append(np.stack(row))
        if k > 1 and bool(np.all(worst <= 0.1 * problem.rounding * largest(best))):
            break
    return Difference(best, worst)


def ridders(problem: Problem, g: Callable[[Reals], Reals], direction: Reals, terms: float) -> Difference:
    """Differences with steps for numbers of order 1; then, where these do not converge, for numbers of the point's."""
    touched = np.abs(problem.point[direction != 0])
    size = float(largest(touched))
    if problem.tolerance.eps is not None:
        return extrapolate(problem, g, direction, problem.tolerance.eps * max(1.0, size), terms)
    found = extrapolate(problem, g, direction, FIRST_STEP * max(1.0, size), terms)
    smallest = float(np.min(touched, initial=size, where=touched > 0))
    if 0 < smallest < 0.25 and not np.all(found.error <= problem.rounding * largest(found.value)):
        other = extrapolate(problem, g, direction, FIRST_STEP * smallest, terms)
        # Steps across a pole give small numbers with small errors: what has converged at the point's own scale counts.
        better = (other.error < found.error) | (other.error <= 0.1 * WORST_DIFFERENCE * np.abs(other.value))
        found = Difference(np.where(better, other.value, found.value), np.where(better, other.error, found.error))
    return found


# --- comparing ------------------------------------------------------------------------------------------------


class Case(NamedTuple):
    """What is compared, for the message."""

    problem: Problem
    what: str
    against: str
    hint: str | None = None


def largest(array: Reals, axis: int | None = None) -> Any:
    """The largest finite magnitude."""
    kept: Reals = np.where(np.isfinite(array), np.abs(array), 0.0)
    return kept.max(initial=0.0) if axis is None else kept.max(axis=axis, initial=0.0, keepdims=True)


def require_same(case: Case, derivative: Reals, other: Reals, error: Reals | None, scale: Reals, floor: float) -> None:
    """Both agree to rounding, relative to ``scale``, or to the other's error estimate if it is a difference.

    Raises:
        GradientCheckError: they do not.
    """
    problem = case.problem
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


def assemble(blocks: Sequence[Any], parts: Sequence[Part], order: int) -> Reals:
    """A matrix with a column for each input and a row for each entry of the next lower order.

    A block has an output's shape, then the shapes of ``order`` inputs; the blocks of one output follow each other.
    """
    if order == 0:
        return joined(blocks)
    columns, group, found = parts[-1].stop, len(parts) ** order, []
    for start in range(0, len(blocks), group):
        front = np.ndim(blocks[start]) - order * len(parts[0].shape)
        rows = int(np.prod(np.shape(blocks[start])[:front], dtype=int))
        tensor = np.zeros((rows, *[columns] * order))
        for block, chosen in zip(blocks[start : start + group], itertools.product(parts, repeat=order), strict=True):
            shape = (rows, *[part.stop - part.start for part in chosen])
            tensor[(slice(None), *[slice(part.start, part.stop) for part in chosen])] = np.reshape(block, shape)
        found.append(tensor)
    return np.concatenate(found).reshape(-1, columns)


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
        compare([ridders(problem, lower, direction, terms) for direction in basis])
    first = found[chains[0]]
    scale = np.minimum(largest(first, 0), largest(first, 1))
    for chain, matrix in found.items():
        require_same(Case(problem, describe(chain), f"{describe(chains[0])} gives"), matrix, first, None, scale, floor)
    problem.magnitude = max(problem.magnitude, float(largest(first)))


def passes(comparison: Callable[[], None]) -> bool:
    """Whether complex steps confirm the derivatives; if not, real differences decide."""
    try:
        comparison()
    except GradientCheckError:
        return False
    return True


def lower_matrix(problem: Problem, chain: Sequence[str]) -> Callable[[Reals], Reals]:
    """The derivative of the next lower order, as a function of real vectors."""
    if not chain:
        return problem.value
    derivative = problem.derivative(chain, "matrix")
    return lambda vector: assemble(derivative(*problem.arguments(vector, False)), problem.parts, len(chain)).ravel()


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
        else:
            difference = complex_step(problem, inward)
        check_parent(problem, modes, parent, along, difference, forms)
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
