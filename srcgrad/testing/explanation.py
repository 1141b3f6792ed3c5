"""Which disagreements the policies of a point explain, entry by entry.

Only jax and differences may disagree with srcgrad for such a reason. The backends, and forward and reverse mode, may
not, at any point.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from srcgrad.real_derivatives import Part, Reals
from srcgrad.testing.policy_points import (
    DEGENERATE,
    INFINITE,
    KINK,
    LIMIT,
    ONE_TRIANGLE,
    PERMUTING,
    RULED,
    SINGULAR,
    STEP,
    STRUCTURAL,
    SYMMETRIC,
    TIE,
    UNDEFINED,
    Point,
    find,
    flatten_calls,
    marked,
    reach,
)
from srcgrad.testing.programs import Chain, Directions, Programs, Subject

Mask = NDArray[np.bool_]

FREE: Final = (KINK, TIE, DEGENERATE)
"""Policies under which another convention has other numbers."""


RULES: Final = frozenset({"custom_jvp", "custom_vjp"})


class Explanation(NamedTuple):
    mask: Mask
    """The entries explained."""
    anchors: tuple[str, ...]


class Policies:
    """The policy points of a subject at its arguments, and the entries of each derivative that they reach."""

    def __init__(self, found: Subject, order: int, along: Sequence[Directions] | None) -> None:
        self.found = found
        self.order = order
        self.along = along
        self.flat = flatten_calls(found.raw)
        self.points = find(self.flat, found.arguments)
        self.masks: dict[str, dict[Chain, Mask]] = {}

    def of(self, anchor: str) -> list[Point]:
        return [point for point in self.points if point.anchor == anchor]

    def reached(self, anchor: str, chain: Chain, ours: Reals) -> Mask:
        """The entries whose tangents pass a point of this policy; never those that srcgrad itself gives as nan."""
        points = self.of(anchor)
        if not points:
            return np.zeros(ours.shape, bool)
        if anchor not in self.masks:
            subject = self.found._replace(prepared=marked(self.flat, points))
            found = Programs(subject, self.order, self.along, None)(self.found.arguments)
            masks = {name: np.isnan(entries) for name, entries in found.items()}
            for name in masks:
                if len(name) == 2:
                    masks[name] = masks[name] | self.of_second_order(masks[name[:1]], masks[name].shape)
            self.masks[anchor] = masks
        return self.masks[anchor][chain] & ~np.isnan(ours)

    def of_second_order(self, first: Mask, shape: tuple[int, ...]) -> Mask:
        """Where one of the two first derivatives that a second derivative is of passes the policy."""
        if self.along is not None:
            return np.broadcast_to(first.any(axis=0), shape)
        return (first[:, :, None] | first[:, None, :]).reshape(shape)

    def depending(self, anchor: str, chain: Chain, shape: tuple[int, ...]) -> Mask:
        """The entries whose output and input depend on a point of this policy, masked or not."""
        return self.depending_on(self.of(anchor), chain, shape)

    def depending_on(self, points: Sequence[Point], chain: Chain, shape: tuple[int, ...]) -> Mask:
        total = np.zeros(shape, bool)
        for point in points:
            ends = reach(self.flat, point.operation)
            active = [k for k, flag in enumerate(self.found.active) if flag]
            rows = covered(self.found.outputs, [k in ends.results for k in range(len(self.found.outputs))])
            columns = covered(self.found.inputs, [k in ends.params for k in active])
            total |= self.spread(chain, rows, columns, shape)
        return total

    def spread(self, chain: Chain, rows: Mask, columns: Mask, shape: tuple[int, ...]) -> Mask:
        if not columns.any():
            return np.zeros(shape, bool)
        if self.along is not None:
            if "rev" not in chain:
                return np.broadcast_to(rows[:, None], shape)
            found = columns if len(chain) == 1 else np.ones(len(columns), bool)
            return np.broadcast_to((found & rows.any())[:, None], shape)
        inner = columns
        for _ in chain[1:]:
            inner = inner[..., None] | columns
        return np.broadcast_to(np.multiply.outer(rows, inner).reshape(-1, len(columns)), shape)

    def explain(self, chain: Chain, oracle: str, ours: Reals, lost: Mask, bad: Mask, undefined: Mask) -> Explanation:
        """What explains the entries ``bad``, in which the oracle (``"jax"``, ``"differences"``) differs.

        ``lost``: where the oracle is not finite, or does not converge. ``undefined``: where what is differentiated
        is not finite itself.
        """
        finite, other = np.isfinite(ours), lost
        candidates: list[tuple[str, Mask]] = [(anchor, self.reached(anchor, chain, ours) & finite) for anchor in FREE]
        candidates.append((LIMIT, self.reached(LIMIT, chain, ours) & finite & (other | (oracle == "jax"))))
        permuted = [point for point in self.of(TIE) if point.operation.op.name in PERMUTING]
        candidates.append((TIE, self.depending_on(permuted, chain, ours.shape) & finite))
        if oracle == "differences":
            candidates.append((STEP, self.depending(STEP, chain, ours.shape)))
        singular = self.depending(SINGULAR, chain, ours.shape)
        candidates.append((UNDEFINED, (singular & np.isnan(ours)) | (undefined & other)))
        candidates.append((INFINITE, singular & np.isinf(ours) & other))
        if oracle == "jax" and len(chain) == 2 and any(p.operation.op.name in ONE_TRIANGLE for p in self.points):
            # Off the symmetric matrices jax has terms of one over the squared gap, in which digits are lost.
            candidates.append((SYMMETRIC, self.reached(SYMMETRIC, chain, ours)))
        if oracle == "jax":
            candidates.append((STRUCTURAL, singular & finite & other))
        elif any(operation.op.name in RULES for operation in self.found.raw.walk()):
            candidates.append((RULED, singular & finite & other))
        total, anchors = np.zeros(bad.shape, bool), []
        for anchor, mask in candidates:
            if np.any(bad & mask & ~total):
                anchors.append(anchor)
                total |= bad & mask
        return Explanation(total, tuple(anchors))

    def everywhere(self, chain: Chain, ours: Reals) -> Mask:
        """The entries that any policy point reaches or that depend on one."""
        total = np.zeros(ours.shape, bool)
        for anchor in {point.anchor for point in self.points}:
            total |= self.depending(anchor, chain, ours.shape)
        return total


def covered(parts: Sequence[Part], flags: Sequence[bool]) -> Mask:
    """Per real number, whether the flag of its part is set."""
    mask = np.zeros(parts[-1].stop if parts else 0, bool)
    for part, flag in zip(parts, flags, strict=True):
        mask[part.start : part.stop] = flag
    return mask


def symmetric_parts(found: Subject, policies: Policies, matrix: Reals, errors: bool = False) -> Reals | None:
    """Derivatives (or their ``errors``) along Hermitian directions; None where no Hermitian argument is read as one."""
    places = [part for part in hermitian_arguments(found) if policies.of(SYMMETRIC)]
    if not places:
        return None
    columns = found.columns
    tensor = np.array(matrix).reshape(found.rows, *[columns] * (1 if len(matrix) == found.rows else 2))
    for axis in range(1, tensor.ndim):
        moved = np.moveaxis(tensor, axis, -1)  # a view: what is written there is written in the tensor
        for part in places:
            sign = -1 if part.imaginary and not errors else 1
            block = moved[..., part.start : part.stop].reshape(*moved.shape[:-1], *part.shape)
            turned = (block + sign * np.swapaxes(block, -1, -2)) / 2
            moved[..., part.start : part.stop] = turned.reshape(*moved.shape[:-1], -1)
    return tensor.reshape(matrix.shape)


def hermitian_arguments(found: Subject) -> list[Part]:
    """The parts of the arguments that are Hermitian matrices at this point."""
    values = [value for value, flag in zip(found.arguments, found.active, strict=True) if flag]
    places = []
    for part, value in zip(found.inputs, values, strict=True):
        sign = -1 if part.imaginary else 1
        square = len(part.shape) >= 2 and part.shape[-1] == part.shape[-2]
        if square and np.array_equal(value, sign * np.swapaxes(value, -1, -2)):
            places.append(part)
    return places
