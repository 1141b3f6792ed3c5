"""Comparing two matrices of derivatives entry by entry, and saying which entry is the worst."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from srcgrad.real_derivatives import Part, Reals
from srcgrad.testing.problem import WORST_DIFFERENCE, Problem, largest
from srcgrad.testing.programs import Chain, Directions, Subject
from srcgrad.testing.report import QUANTITIES

SAFETY: Final = 30.0
"""How far the error estimate of a difference is trusted."""

UNDECIDED: Final = 1e4
"""A difference whose own error is larger than this many times ``floor`` decides nothing, however small all are."""
NOTHING: Final = 1e-12
"""A scale this small beside the largest is no scale: differences are shown relative to the largest."""


class Comparison(NamedTuple):
    """Two matrices, entry by entry."""

    gap: Reals
    """The absolute difference; 0 where both are the same infinity or both nan, inf where one is not finite."""
    allowed: Reals
    scale: Reals
    fine: NDArray[np.bool_]

    def worst(self, entries: NDArray[np.bool_]) -> tuple[float, float]:
        """The largest difference among some entries relative to its scale, and what that entry was allowed."""
        if not entries.any():
            return 0.0, 0.0
        most = float(largest(self.scale)) or 1.0
        unit = np.where(self.scale > NOTHING * most, self.scale, most)
        relative = np.where(entries, self.gap / unit, -1.0)
        place = np.unravel_index(int(np.argmax(relative)), relative.shape)
        return float(relative[place]), float(self.allowed[place] / unit[place])


def compare(
    ours: Reals,
    theirs: Reals,
    tolerance: float,
    floor: float,
    error: Reals | None,
    parts: Sequence[Part] | None,
) -> Comparison:
    """Entries agree to ``tolerance`` relative to their scale, besides ``floor`` and the other's own error estimate.

    The scale of an entry of a matrix is the smaller of the largest in its row and in its column. If ``parts`` are
    given, each column is a vector whose scale is the largest of the part; if there are none, each entry's is itself.
    """
    scale = scales(theirs, parts)
    allowed = tolerance * scale + floor
    if error is not None:
        limit = WORST_DIFFERENCE * largest(theirs) + UNDECIDED * floor
        allowed = allowed + np.minimum(SAFETY * np.where(np.isnan(error), np.inf, error), limit)
    with np.errstate(all="ignore"):
        gap = np.abs(ours - theirs)
        equal = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
        gap = np.where(equal, 0.0, np.where(np.isnan(gap), np.inf, gap))
    return Comparison(gap, allowed, scale, gap <= allowed)


def scales(matrix: Reals, parts: Sequence[Part] | None) -> Reals:
    if parts is None:
        smaller: Reals = np.minimum(largest(matrix, 0), largest(matrix, 1))
        return smaller
    if not parts:
        return np.where(np.isfinite(matrix), np.abs(matrix), 0.0)
    found = np.zeros(matrix.shape)
    for part in parts:
        found[part.start : part.stop] = largest(matrix[part.start : part.stop], 0)
    return found


def describe_worst(
    problem: Problem,
    found: Subject,
    chain: Chain,
    left: str,
    right: str,
    ours: Reals,
    theirs: Reals,
    result: Comparison,
    bad: NDArray[np.bool_],
    along: Sequence[Directions] | None,
) -> str:
    """The message of a disagreement: the pair, the argument, the entry and both numbers."""
    with np.errstate(all="ignore"):
        ratio = np.where(bad, result.gap / np.maximum(result.allowed, np.finfo(float).tiny), -1.0)
    row, column = (int(k) for k in np.unravel_index(int(np.argmax(ratio)), ratio.shape))
    leaf, where = "", []
    if chain and along is None:
        leaf, place = entry_of(found.inputs, column)
        where = [f"{place} of the argument"] if place else []
        rows = row // found.columns ** (len(chain) - 1)
        _, output = entry_of(found.outputs, rows)
        where += [f"{output} of the output"] if output else []
        if len(chain) == 2:
            path, place = entry_of(found.inputs, row % found.columns)
            where.append(f"and {' '.join([place, path]).strip()}")
        leaf = f" in {leaf}"
    elif chain:
        parts = found.inputs if "rev" in chain else found.outputs
        if ours.shape[0] == parts[-1].stop and ours.shape[0] > 1:
            path, place = entry_of(parts, row)
            where = [" of ".join(filter(None, (place, path or "the output")))]
            leaf = f" in {path}" if path else ""
        where.append(f"along random direction {column} of seed={problem.seed}")
    else:
        _, place = entry_of(found.outputs, row)
        where = [f"{place} of the output"] if place else []
    relative = result.gap[row, column] / result.scale[row, column] if result.scale[row, column] else np.inf
    bound = result.allowed[row, column] / result.scale[row, column] if result.scale[row, column] else 0.0
    what = QUANTITIES[len(chain)]
    entry = f"{', '.join(where)}: " if where else ""
    return (
        f"cross_check({problem.name}): {left} and {right} disagree on the {what}{leaf}\n"
        f"  {entry}{number(ours[row, column])} ({left}), {number(theirs[row, column])} ({right}): "
        f"relative {relative:.1e}, allowed {bound:.1e}"
    )


def number(value: Any) -> str:
    return repr(float(value))


def entry_of(parts: Sequence[Part], position: int) -> tuple[str, str]:
    """The path of the leaf that a number belongs to, and its place there: ``"entry [1, 0], imaginary part"``."""
    part = next(part for part in parts if part.start <= position < part.stop)
    words = []
    if part.shape:
        words.append(f"entry {[int(k) for k in np.unravel_index(position - part.start, part.shape)]}")
    if part.dtype.kind == "c":
        words.append("imaginary part" if part.imaginary else "real part")
    return part.path, ", ".join(words)
