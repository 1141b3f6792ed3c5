"""What `cross_check` runs and compares: a function at a point on all backends, jax's derivatives, differences."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.errors import BackendError, DTypeError, UnsupportedError
from srcgrad.real_derivatives import Reals, flat
from srcgrad.testing.comparison import Comparison, compare, describe_worst
from srcgrad.testing.explanation import Explanation, Policies, symmetric_parts
from srcgrad.testing.oracles import Differences, first_differences, second_differences
from srcgrad.testing.policy_points import SYMMETRIC
from srcgrad.testing.problem import CANCELLATION, WORST_DIFFERENCE, Problem, largest
from srcgrad.testing.programs import Chain, Directions, JaxPrograms, Programs, Subject, subject
from srcgrad.testing.report import AGREE, DISAGREE, NOT_RUN, POLICY, Row

LARGEST_MATRIX: Final = 10_000
"""Derivatives with more entries than this are compared along random directions …"""
MOST_COLUMNS: Final = 500
"""… and so are those in more numbers."""
DIRECTIONS: Final = 3
PERTURBATIONS: Final = 3
TRUNCATED: Final = 1e-45
"""What is taken for 0 beside complex steps of 1e-25."""
NOISE: Final = 16.0
"""How many times the effect of changing the arguments in their last place two results may differ."""
MOST_NOISE: Final = 1e-9
"""… but no more than this relative to the largest entry of any order, besides 1e-4 of the entry's own scale."""
NUDGE: Final = 1e-3
"""How far away the point nearby is, relative to ``max(1, |x|)``."""
ATTEMPTS: Final = 16
"""How many points nearby are tried until the function is finite where it is finite at the point."""
MODE_NAMES: Final = {"fwd": "forward", "rev": "reverse"}
JAX_NAMES: Final[dict[Chain, str]] = {
    ("fwd",): "jax jacfwd",
    ("rev",): "jax jacrev",
    ("rev", "fwd"): "jax jacfwd over jacrev",
}
CANNOT: Final = (BackendError, UnsupportedError, DTypeError)
"""What a backend says that cannot run a program."""


class Settings(NamedTuple):
    """What the caller asked for."""

    order: int
    backends: tuple[str, ...]
    missing: tuple[tuple[str, str], ...]
    """Backends that cannot be had here, and why."""
    seed: int


class Bench:
    """A function at a point with all that computes its derivatives; `rows` runs and compares."""

    def __init__(self, problem: Problem, found: Subject, settings: Settings, tolerance: float) -> None:
        self.problem = problem
        self.found = found
        self.settings = settings
        self.tolerance = tolerance
        self.failures: list[str] = []
        self.hint: str | None = None
        large = found.rows * found.columns**settings.order > LARGEST_MATRIX or found.columns > MOST_COLUMNS
        self.along = random_directions(found, settings.seed) if large else None
        self.values: dict[str, dict[Chain, Reals]] = {}
        self.notes: dict[str, str] = dict(settings.missing)

    def description(self) -> str:
        counts = f"{count(self.found.columns, 'input')}, {count(self.found.rows, 'output')}"
        if self.along is None:
            return f"{counts}, whole matrices"
        return f"{counts}, along {len(self.along)} random directions of seed={self.settings.seed}"

    @functools.cached_property
    def policies(self) -> Policies:
        return Policies(self.found, self.settings.order, self.along)

    @functools.cached_property
    def noise(self) -> dict[Chain, Reals]:
        """How far the derivatives move when the arguments change in their last place."""
        random = np.random.default_rng([self.settings.seed, 1])
        moved: dict[Chain, Reals] = {chain: np.zeros(m.shape) for chain, m in self.values["numpy"].items()}
        run = self.programs("numpy")
        for _ in range(PERTURBATIONS):
            arguments = [
                value * (1 + random.choice([-1, 1], np.shape(value)) * np.finfo(np.asarray(value).dtype).eps)
                if np.asarray(value).dtype.kind in "fc"
                else value
                for value in self.found.arguments
            ]
            pairs = zip(arguments, self.found.arguments, strict=True)
            exact = [np.asarray(new, np.asarray(old).dtype)[()] for new, old in pairs]
            with np.errstate(all="ignore"):
                for chain, other in run(exact).items():
                    moved[chain] = np.fmax(moved[chain], np.abs(other - self.values["numpy"][chain]))
        return {chain: np.where(np.isfinite(m), m, 0.0) for chain, m in moved.items()}

    def programs(self, name: str) -> Programs:
        return Programs(self.found, self.settings.order, self.along, name)

    def run(self) -> None:
        """Everything that is compared, except differences."""
        for name in self.settings.backends:
            try:
                self.values[name] = self.programs(name)(self.found.arguments)
            except CANNOT as error:
                if name == "numpy":
                    raise
                self.notes[name] = error.message
        if "xla" in self.notes:
            self.notes["jax"] = self.notes["xla"]
        elif "xla" in self.settings.backends and importlib.util.find_spec("jax") is not None:
            try:
                self.values["jax"] = JaxPrograms(self.found, self.settings.order, self.along)(self.found.arguments)
            except CANNOT as error:
                self.notes["jax"] = error.message
            except (NotImplementedError, ValueError, TypeError) as error:
                # What jax says of an operation that it does not differentiate; what a wrong program raises is
                # raised by the xla backend too, which has run it already.
                self.notes["jax"] = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"

    def rows(self) -> list[Row]:
        if not self.found.rows or not self.found.columns:
            return [Row(0, "f", "numpy", None, None, None, NOT_RUN, note="no entries to compare")]
        self.run()
        rows = list(self.value_rows())
        for order in range(1, self.settings.order + 1):
            rows += self.derivative_rows(order)
        return rows

    def value_rows(self) -> Iterator[Row]:
        plain = self.problem.value_leaves(self.problem.point, True)
        outside = self.compared((), "f", "numpy", flat_columns(plain, self.values["numpy"][()]), "numpy")
        yield outside
        for name in self.settings.backends[1:]:
            yield self.backend_row((), name, name, "numpy")
        yield from (Row(0, "numpy", name, None, None, None, NOT_RUN, note=note) for name, note in self.settings.missing)

    def derivative_rows(self, order: int) -> Iterator[Row]:
        chains = [chain for chain in self.values["numpy"] if len(chain) == order]
        first = chains[0]
        found = self.differences(order)
        compared = chains if order == 1 else chains[:1]
        for chain in compared:
            yield self.difference_row(chain, found)
        for chain in chains[1:]:
            yield self.compared_forms(chain, first)
        for name in self.settings.backends[1:]:
            for chain in chains:
                label = f"{name} {describe(chain)}"
                yield self.backend_row(chain, name, label, f"numpy {describe(chain)}")
        for chain in chains:
            if chain in JAX_NAMES and ("jax" in self.values or "jax" in self.notes):
                yield self.jax_row(chain)
        magnitude = largest(self.values["numpy"][first])
        self.problem.magnitude = max(self.problem.magnitude, float(magnitude))

    def differences(self, order: int) -> Differences:
        if order == 1:
            # At a kink or a tie a complex step sees one side only.
            return first_differences(self.problem, self.found, self.along, not self.policies.points)
        return second_differences(self.problem, self.found, self.along)

    # --- rows ---------------------------------------------------------------------------------------------------

    def backend_row(self, chain: Chain, name: str, left: str, right: str) -> Row:
        if name not in self.values:
            return Row(len(chain), left, right, None, None, None, NOT_RUN, note=self.notes[name])
        return self.compared(chain, left, right, self.values[name][chain], "backend")

    def jax_row(self, chain: Chain) -> Row:
        left, right = f"numpy {describe(chain)}", JAX_NAMES[chain]
        if "jax" not in self.values:
            return Row(len(chain), left, right, None, None, None, NOT_RUN, note=self.notes["jax"])
        return self.compared(chain, left, right, self.values["jax"][chain], "jax")

    def difference_row(self, chain: Chain, found: Differences) -> Row:
        left = f"numpy {describe(chain)}"
        if found.note:
            return Row(len(chain), left, found.name, None, None, None, NOT_RUN, note=found.note)
        if self.along is not None and "rev" in chain:
            ours = self.forms(chain)
            spread = np.stack([np.sum(np.abs(u[:, None]) * e[:, None]) for u, e in self.outward(found.error)])
            theirs = np.stack([np.sum(u * d) for u, d in self.outward(found.value)])[None]
            return self.judged(chain, left, found.name, ours, theirs, "differences", spread[None], whole=False)
        return self.compared(chain, left, found.name, found.value, "differences", found.error)

    def outward(self, matrix: Reals) -> list[tuple[Reals, Reals]]:
        assert self.along is not None
        return [(along[1], matrix[:, k]) for k, along in enumerate(self.along)]

    def forms(self, chain: Chain) -> Reals:
        """The numbers ``u . d^k f [v, …, v]``, one per direction."""
        assert self.along is not None
        slot = 0 if "rev" in chain else 1
        matrix = self.values["numpy"][chain]
        return np.stack([np.sum(along[slot] * matrix[:, k]) for k, along in enumerate(self.along)])[None]

    def compared_forms(self, chain: Chain, first: Chain) -> Row:
        """Two nestings of one order."""
        left, right = f"numpy {describe(chain)}", f"numpy {describe(first)}"
        if self.along is None:
            return self.compared(chain, left, right, self.values["numpy"][first], "mode")
        return self.judged(chain, left, right, self.forms(chain), self.forms(first), "mode", None, whole=False)

    def compared(
        self, chain: Chain, left: str, right: str, theirs: Reals, oracle: str, error: Reals | None = None
    ) -> Row:
        ours = self.values["numpy"][chain]
        if not chain:
            ours, theirs = as_column(ours), as_column(theirs)
        if oracle in ("backend", "numpy"):
            ours, theirs = theirs, ours  # the left one is what is checked
        return self.judged(chain, left, right, ours, theirs, oracle, error)

    def judged(
        self, chain: Chain, left: str, right: str, ours: Reals, theirs: Reals, oracle: str, error: Reals | None,
        whole: bool = True,
    ) -> Row:  # fmt: skip
        """Compare; what differs is explained by a policy, or recorded as a failure."""
        order = len(chain)
        tolerance = self.tolerance
        if oracle == "differences" and right != "complex steps":
            tolerance = max(tolerance, 0.1 * self.problem.rounding)
        floor = self.floor(chain, right) if chain else 0.0
        blocks = self.found.outputs if "rev" not in chain else self.found.inputs
        parts = None if self.along is None and chain else blocks if whole else []
        found = compare(ours, theirs, tolerance, floor, error, parts)
        if not found.fine.all() and whole:
            found = self.with_noise(found, chain, ours)
        explained = Explanation(np.zeros(found.fine.shape, bool), ())
        if not found.fine.all() and oracle in ("jax", "differences"):
            explained = self.explained(found, chain, oracle, ours, theirs, tolerance, floor, error, whole)
        bad = ~found.fine & ~explained.mask
        relative, bound = found.worst(found.fine | bad)
        verdict = DISAGREE if bad.any() else POLICY if explained.anchors else AGREE
        entries = count(explained.mask.size, "entry", "entries")
        note = f"{int(explained.mask.sum())} of {entries}" if explained.anchors else ""
        if bad.any():
            self.failures.append(
                describe_worst(self.problem, self.found, chain, left, right, ours, theirs, found, bad, self.along)
            )
            if error is not None and not np.all(error[bad] <= WORST_DIFFERENCE * largest(theirs) + floor):
                self.hint = (
                    "the differences do not converge there: a kink, a jump, a pole or the edge of the domain is near; "
                    "check at another point"
                )
        return Row(order, left, right, relative / self.problem.unit, relative, bound, verdict, explained.anchors, note)

    def floor(self, chain: Chain, right: str) -> float:
        """What entries may differ by whatever their size: rounding errors of the lower orders, over powers of the size
        of the arguments; besides, complex steps are exact up to their square.
        """
        size = max(float(largest(self.problem.point)), NUDGE)
        lower = {name: float(largest(m)) for name, m in self.values["numpy"].items() if len(name) < len(chain)}
        natural = 0.0
        for name, magnitude in lower.items():
            for _ in chain[len(name) :]:  # no power of the size, which may overflow
                magnitude /= size
            natural = max(natural, magnitude)
        found = CANCELLATION * self.problem.unit * natural
        return found + (TRUNCATED if right == "complex steps" else 0.0)

    def with_noise(self, found: Comparison, chain: Chain, ours: Reals) -> Comparison:
        """Allow what rounding the arguments changes, away from policy points."""
        moved = as_column(self.noise[chain]) if not chain else self.noise[chain]
        limit = WORST_DIFFERENCE * found.scale + MOST_NOISE * max(float(largest(ours)), self.problem.magnitude)
        allowed = found.allowed + np.minimum(NOISE * moved, limit)
        with np.errstate(all="ignore"):
            better = found.gap <= allowed
        if not np.any(better & ~found.fine):
            return found
        better &= ~self.policies.everywhere(chain, ours) if chain else True
        return found._replace(fine=found.fine | better, allowed=np.where(better, allowed, found.allowed))

    def explained(
        self, found: Comparison, chain: Chain, oracle: str, ours: Reals, theirs: Reals, tolerance: float, floor: float,
        error: Reals | None, whole: bool,
    ) -> Explanation:  # fmt: skip
        if not whole:
            return self.explained_forms(chain, oracle, theirs, ~found.fine)
        lost = ~np.isfinite(theirs)
        if error is not None:
            lost |= ~(error <= WORST_DIFFERENCE * largest(theirs) + floor)
        result = self.policies.explain(chain, oracle, ours, lost, ~found.fine, self.undefined(chain, ours))
        rest = ~found.fine & ~result.mask
        if rest.any() and self.along is None:
            pair = [symmetric_parts(self.found, self.policies, matrix) for matrix in (ours, theirs)]
            if pair[0] is not None and pair[1] is not None:
                if error is None:  # what jax has along other directions cancels
                    error = self.problem.unit * np.where(np.isfinite(theirs), np.abs(theirs), 0.0)
                spread = symmetric_parts(self.found, self.policies, error, errors=True)
                other = compare(pair[0], pair[1], tolerance, floor, spread, None)
                return Explanation(result.mask | (rest & other.fine), (*result.anchors, SYMMETRIC))
        return result

    def explained_forms(self, chain: Chain, oracle: str, theirs: Reals, bad: Reals) -> Explanation:
        """A number that sums over all entries is explained where any entry that it sums is."""
        matrix = self.values["numpy"][chain]
        lost = np.broadcast_to(~np.isfinite(theirs), matrix.shape)
        everywhere = np.broadcast_to(bad, matrix.shape)
        result = self.policies.explain(chain, oracle, matrix, lost, everywhere, self.undefined(chain, matrix))
        return Explanation(bad & result.mask.any(axis=0, keepdims=True), result.anchors)

    def undefined(self, chain: Chain, ours: Reals) -> Reals:
        """The entries of which the next lower order, or the value, is not finite itself."""
        found = np.zeros(ours.shape, bool)
        for k in range(len(chain)):
            lower = as_column(self.values["numpy"][chain[:k]])
            lost = ~np.isfinite(lower)
            if self.along is not None and lower.shape[0] != ours.shape[0]:
                found |= lost.any()
            elif self.along is not None:
                found |= lost.any(axis=1, keepdims=True)
            else:
                found |= np.repeat(lost.ravel(), ours.shape[0] // lost.size)[:, None]
        return found

    # --- the point nearby ---------------------------------------------------------------------------------------

    def nearby(self) -> list[Bench]:
        """The same comparisons at a random point nearby, and at its mirror image: on both sides of a kink.

        A point at which the function cannot be evaluated is left out.
        """
        problem = self.problem
        random = np.random.default_rng([self.settings.seed, 2])
        here = np.isfinite(problem.value(problem.point))
        best: tuple[int, Any] = (-1, None)
        for _ in range(ATTEMPTS):
            step = random.uniform(0.5, 1.0, problem.point.shape) * random.choice([-1, 1], problem.point.shape)
            step = NUDGE * np.maximum(1.0, np.abs(problem.point)) * step
            finite = self.finite_at(problem.point + step)
            if finite is not None and int(finite.sum()) > best[0]:
                best = (int(finite.sum()), step)
            if finite is not None and finite.shape == here.shape and np.all(finite | ~here):
                break
        if best[1] is None:
            return []
        other = self.finite_at(problem.point - best[1])
        mirrored = other is not None and int(other.sum()) >= best[0]
        return [self.moved(problem.point + sign * best[1]) for sign in ((1, -1) if mirrored else (1,))]

    def finite_at(self, point: Reals) -> Reals | None:
        """Where the function is finite at another point; None where it raises."""
        try:
            found: Reals = np.isfinite(self.problem.value(hermitian(self.problem, point)))
        except (np.linalg.LinAlgError, ArithmeticError, ValueError):
            return None
        return found

    def moved(self, point: Reals) -> Bench:
        problem = self.problem
        args = problem.arguments(hermitian(problem, point), True)
        other = Problem(problem.f, args, problem.argnums, problem.tolerance, problem.seed, "cross_check")
        found = subject(problem.f, args, {}, problem.argnums, other.parts, other.out_parts)
        return Bench(other, found, self.settings, self.tolerance)


def hermitian(problem: Problem, moved: Reals) -> Reals:
    """The moved point with those of its matrices Hermitian that were."""
    result = np.array(moved)
    for part in problem.parts:
        sign = -1 if part.imaginary else 1
        if len(part.shape) >= 2 and part.shape[-1] == part.shape[-2]:
            old, new = (vector[part.start : part.stop].reshape(part.shape) for vector in (problem.point, moved))
            if np.array_equal(old, sign * np.swapaxes(old, -1, -2)):
                result[part.start : part.stop] = ((new + sign * np.swapaxes(new, -1, -2)) / 2).ravel()
    return result


def random_directions(found: Subject, seed: int) -> list[Directions]:
    random = np.random.default_rng([seed, 0])
    return [(random.standard_normal(found.columns), random.standard_normal(found.rows)) for _ in range(DIRECTIONS)]


def as_column(matrix: Reals) -> Reals:
    return matrix[:, None] if matrix.ndim == 1 else matrix


def flat_columns(leaves: Sequence[Any], like: Reals) -> Reals:
    """The outputs as a vector, or as the columns that products have."""
    found = flat(leaves)
    return found if like.ndim == 1 else np.broadcast_to(found[:, None], like.shape)


def describe(chain: Chain) -> str:
    return " over ".join(MODE_NAMES[mode] for mode in reversed(chain))


def count(number: int, noun: str, many: str = "") -> str:
    return f"{number} {noun if number == 1 else many or noun + 's'}"
