"""A function at a point as a map of real vectors, and its derivatives by differences.

Complex numbers count as pairs of real ones, so that every derivative is a real matrix. Differences are either

- complex steps, ``Im f(x + ih) / h`` (Squire and Trapp, *Using complex variables to estimate derivatives of real
  functions*, SIAM Review 40, 1998), which round like f itself, where f is holomorphic by its structure; or
- central differences extrapolated to step 0 with an error estimate (Ridders, *Accurate computation of F'(x) and
  F'(x)F''(x)*, Advances in Engineering Software 4, 1982), computed in double precision.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from srcgrad.boundary import described
from srcgrad.errors import ArgumentError, IntegerInputError, StructureError
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

ROUNDING = {2: 5e-2, 4: 5e-4, 8: 1e-9}
"""By the bytes of a real number: what rounding may change, relative to the largest entry."""
LADDER, RATIO, FIRST_STEP = 12, 4.0, 2.0**-4
"""Central differences are taken at ``FIRST_STEP / RATIO**k`` for k < LADDER, until they agree."""
CLOSER = (4, 8)
"""How many times smaller steps begin, as powers of RATIO, where differences disagree with a derivative."""
APART = 30.0
"""So many times the error estimates of two differences that exclude each other are between them."""
WORST_DIFFERENCE = 1e-4
"""A difference whose own error is larger than this, relative to the largest entry, decides nothing."""
COMPLEX_STEP = 1e-25
CANCELLATION = 100.0
"""Rounding errors of terms that cancel, in units of the last place of what the function and its derivatives return."""


class Tolerance(NamedTuple):
    """What the caller asked for."""

    atol: float | None
    rtol: float | None
    eps: float | None


def largest(array: Reals, axis: int | None = None) -> Any:
    """The largest finite magnitude."""
    kept: Reals = np.where(np.isfinite(array), np.abs(array), 0.0)
    return kept.max(initial=0.0) if axis is None else kept.max(axis=axis, initial=0.0, keepdims=True)


# --- the problem ----------------------------------------------------------------------------------------------


class Problem:
    """A function at a point, as a map of real vectors."""

    def __init__(
        self,
        f: Callable[..., Any],
        args: tuple[Any, ...],
        argnums: Any,
        tolerance: Tolerance,
        seed: int,
        caller: str = "check_grads",
    ) -> None:
        if not callable(f):
            raise ArgumentError(f"{caller} takes a function, not {described(f)}")
        self.f = f
        self.name = getattr(f, "__name__", type(f).__name__)
        self.tolerance = tolerance
        self.seed = seed
        self.leaves, self.treedef = flatten(args)
        self.argnums = positions(argnums, len(args), caller)
        self.active = chosen_leaves(args, self.argnums)
        if not any(self.active):
            raise IntegerInputError(
                f"{caller}({self.name}): no argument to differentiate is a float or complex number",
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
            raise ArgumentError(f"{caller}({self.name}): the function returns no floats to differentiate")
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
        with warnings.catch_warnings():
            warnings.simplefilter("error", np.exceptions.ComplexWarning)  # a cast to real numbers is not holomorphic
            return self.takes_complex_numbers()

    def takes_complex_numbers(self) -> bool:
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
        except (TypeError, ValueError, ArithmeticError, AttributeError, LookupError, np.exceptions.ComplexWarning):
            return False  # the function, or a rule, takes no complex numbers
        real = self.value(self.point)
        return found.shape == real.shape and bool(np.allclose(found, real, rtol=1e-12, atol=1e-300, equal_nan=True))


def positions(argnums: Any, count: int, caller: str) -> tuple[int, ...] | None:
    """Argument numbers as positions; None for all.

    Raises:
        ArgumentError: one is out of range, or no int.
    """
    if argnums is None:
        return None
    given = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for number in given:
        if not isinstance(number, int) or not -count <= number < count:
            raise ArgumentError(f"{caller}: argnums={argnums!r}, but f has {count} here; argnums counts from 0")
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
    problem: Problem, g: Callable[[Reals], Reals], direction: Reals, first: float, terms: float | Reals
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
            if high.shape != low.shape:
                raise StructureError(
                    f"{problem.name} has results of another size within a step of {step:.2g}",
                    hint="check it where shapes do not depend on values, as those of x[x > 0] do",
                )
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


def ridders(problem: Problem, g: Callable[[Reals], Reals], direction: Reals, terms: float | Reals) -> Difference:
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


def closer(
    problem: Problem, g: Callable[[Reals], Reals], direction: Reals, found: Difference, terms: float | Reals
) -> Difference:
    """The difference where smaller steps do not contradict it, and theirs where they do.

    Steps may jump over what a function does near the point, or end where it is flat: they agree on a wrong number, and
    their error estimate is as small as can be. What two estimates exclude with their errors the smaller steps decide.
    """
    size = float(largest(np.abs(problem.point[direction != 0])))
    for power in CLOSER if problem.tolerance.eps is None else ():
        other = extrapolate(problem, g, direction, FIRST_STEP * max(1.0, size) * RATIO**-power, terms)
        with np.errstate(all="ignore"):
            apart = np.abs(other.value - found.value) > APART * (other.error + found.error)
        found = Difference(np.where(apart, other.value, found.value), np.where(apart, other.error, found.error))
    return found


# --- matrices --------------------------------------------------------------------------------------------------------


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


def lower_matrix(problem: Problem, chain: Sequence[str]) -> Callable[[Reals], Reals]:
    """The derivative of the next lower order, as a function of real vectors."""
    if not chain:
        return problem.value
    derivative = problem.derivative(chain, "matrix")
    return lambda vector: assemble(derivative(*problem.arguments(vector, False)), problem.parts, len(chain)).ravel()
