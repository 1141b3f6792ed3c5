"""Divided differences of a function at all tuples of points of a spectrum, accurate for points however close.

g[x_0, …, x_n] is the quotient (g[without x_b] - g[without x_a]) / (x_a - x_b), which loses what the points have in
common, and by Genocchi and Hermite the mean of g⁽ⁿ⁾ over the simplex of the points, divided by n!, which loses nothing
but needs g smooth between them. The mean is taken of the polynomial through g⁽ⁿ⁾ at Gauss points, and used if half as
many points give it too, and if it agrees with the quotient: to rounding, or, for points so close that the quotient has
lost digits, but for those; both also for close points of which g⁽ⁿ⁾ is but rounding. Else g has a kink or a
jump between the points, or they are far apart: the quotient is used.

C. de Boor, Divided differences (2005); N. J. Higham, Functions of Matrices (2008), section 3.2 and appendix B.16.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import factorial
from typing import Any, Final

import numpy as np

from srcgrad.ir.core import Builder, Literal, Region, Value, is_splat, literal
from srcgrad.ir.opdef import REGISTRY, Lin, Tangent, Term, Zero, broadcast_to
from srcgrad.ir.passes.dce import eliminate
from srcgrad.ir.transforms.interpret import push_forward
from srcgrad.ir.transforms.linear import Masked
from srcgrad.ir.types import BOOL, ArrayType

POINTS: Final = 8
FEWER: Final = 4

FACTOR: Final = 64.0
"""How many rounding errors a value of g may have, for all that is known."""

NEAR: Final = 0.01
"""How far, relative to their size, points may be apart for the quotient to lose digits where g loses some."""

Evaluate = Callable[[int, Term, Sequence[Term]], Term]
"""The derivative of an order at an array of points, with the parameters as arrays of the same shape."""


def differentiated(region: Region, position: int) -> Region:
    """The partial derivative of a region of scalars, which has one result, in one real parameter."""
    builder = Builder()
    primals = [builder.param(param.type, param.name) for param in region.params]
    tangents: list[Tangent] = [Zero(param.type) for param in primals]
    tangents[position] = Lin(literal(1, primals[position].type))
    s = Masked(builder)
    _, outgoing = push_forward(builder, s, region, primals, tangents)
    return eliminate(builder.region([s.materialise(outgoing[0])]))[0]


def lift(region: Region, arguments: Sequence[Term]) -> Term:
    """Emit a region of scalars on arrays of one shape, element by element."""
    builder, shape = arguments[0].builder, arguments[0].shape
    env: dict[Value, Value] = {param: argument.value for param, argument in zip(region.params, arguments, strict=True)}

    def read(value: Value) -> Value:
        return literal(value.value, value.type.with_shape(shape)) if isinstance(value, Literal) else env[value]

    for operation in region.operations:
        operands = [read(value) for value in operation.operands]
        env[operation.results[0]] = builder.emit(operation.op, operands, operation.attrs)
    return Term(builder, read(region.results[0]))


def at_end(term: Term, shape: Sequence[Any]) -> Term:
    """The term broadcast to ``shape``, its axes at the end."""
    return broadcast_to(term, tuple(shape), tuple(range(len(shape) - term.rank, len(shape))))


@dataclass
class Spectrum:
    """The points at which differences are taken: stacks of N, with what belongs to each point.

    ``labels``: arrays like the points; points are points of one function where these are equal. ``apart``: a bool
    array; at points at which it holds g is 0, and no two of them belong together. ``error``: how far points that are
    equal may be apart.
    """

    points: Term
    params: Sequence[Term]
    labels: Sequence[Term]
    apart: Term | None
    error: Term
    evaluate: Evaluate

    def is_constant(self, order: int) -> bool:
        """Whether a derivative is 0 wherever g is smooth: then there is nothing to take the mean of."""
        found = self.evaluate(order, self.points, self.params).value
        return is_splat(found, 0)

    def differences(self, order: int) -> Term:
        """g[x_i0, …, x_in] as a tensor: the axes of the stack, then i0 to in."""
        found = self.evaluate(0, self.points, self.params)
        if self.apart is not None:
            found = REGISTRY["select"](self.apart, found.like(0), found)
        sizes = REGISTRY["abs"](found)
        for level in range(1, order + 1):
            found = Level(self, level).differences(found, sizes)
        return found


class Level:
    """The step from the differences of one order to the next."""

    def __init__(self, spectrum: Spectrum, order: int) -> None:
        self.spectrum = spectrum
        self.order = order
        points = spectrum.points
        *self.stack, self.size = points.shape
        self.shape = (*self.stack, *(self.size,) * (order + 1))
        self.at = [self.placed(points, axis) for axis in range(order + 1)]

    def placed(self, vector: Term, axis: int) -> Term:
        """An array of the points along one of the axes of the tensor."""
        count = len(self.stack)
        return broadcast_to(vector, self.shape, (*range(count), count + axis))

    def without(self, lower: Term, axis: int) -> Term:
        """The differences of the order below, of all points but that of ``axis``."""
        count = len(self.stack)
        return broadcast_to(lower, self.shape, tuple(k for k in range(len(self.shape)) if k != count + axis))

    def differences(self, lower: Term, sizes: Term) -> Term:
        """From the differences of the order below, and the size of g at the points."""
        select, size_of = REGISTRY["select"], REGISTRY["abs"]
        gap, numerator, extent = self.widest(lower)
        distance = size_of(gap)
        tied = distance == 0.0
        error = self.placed(self.spectrum.error, 0)
        related = self.related()
        quotient = numerator / like_dtype(select(tied, gap.like(1), gap), numerator)
        quotient = select((distance > error) | (related & ~tied), quotient, quotient.like(0))
        eps = float(np.finfo(gap.dtype).eps)
        most, width = REGISTRY["maximum"], like_dtype(distance, extent)
        noise = (FACTOR * eps) * extent
        least = most(noise, self.rounding(sizes, eps))
        near = distance <= NEAR * most(size_of(self.at[0]), size_of(self.at[-1]))
        mean, converged = quotient.like(0), related
        if not self.spectrum.is_constant(self.order):
            mean, fewer, scale = self.means()
            change = size_of(mean - fewer)
            converged = related & ((change <= eps**0.5 * scale) | (near & (change * width <= least)))
        difference = size_of(mean - quotient) * width
        agrees = (difference <= noise) | (near & (difference <= most(eps**0.5 * extent, least)))
        return select((tied & related) | (converged & agrees), mean, quotient)

    def rounding(self, sizes: Term, eps: float) -> Term:
        """What rounding of g alone makes of the differences below, for points close to the first: where derivatives are
        0, as those of sqrt(w)**2 from the second on, they are computed as nothing but that."""
        place = REGISTRY["abs"](self.spectrum.points)
        for _ in range(self.order - 1):
            sizes = sizes / like_dtype(place, sizes)
        return self.placed((FACTOR * eps) * sizes, 0)

    def widest(self, lower: Term) -> tuple[Term, Term, Term]:
        """Of the pair of points that is furthest apart: the gap, the numerator, and the size of what it subtracts."""
        select, size_of = REGISTRY["select"], REGISTRY["abs"]
        best: tuple[Term, Term, Term] | None = None
        for a, b in combinations(range(self.order + 1), 2):
            left, right = self.without(lower, b), self.without(lower, a)
            found = (self.at[a] - self.at[b], left - right, size_of(left) + size_of(right))
            if best is None:
                best = found
            else:
                wider = size_of(found[0]) > size_of(best[0])
                best = tuple(select(wider, new, old) for new, old in zip(found, best, strict=True))  # type: ignore
        assert best is not None
        return best

    def related(self) -> Term:
        """Whether all points of a tuple are points of one function."""
        found = self.at[0].like(True, BOOL)
        for label in self.spectrum.labels:
            first = self.placed(label, 0)
            for axis in range(1, self.order + 1):
                found = found & (first == self.placed(label, axis))
        if self.spectrum.apart is not None:
            for a, b in combinations(range(self.order + 1), 2):
                found = found & ~(self.placed(self.spectrum.apart, a) & self.placed(self.spectrum.apart, b))
        return found

    def means(self) -> tuple[Term, Term, Term]:
        """The mean of g⁽ⁿ⁾ over n!, by two polynomials, and the size of what they sum."""
        low, high = self.at[0], self.at[0]
        for other in self.at[1:]:
            low, high = REGISTRY["minimum"](low, other), REGISTRY["maximum"](high, other)
        middle, half = 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
        axis = len(self.stack) if self.spectrum.points.type.static_shape[-1] >= LONG else len(self.shape)
        rules = [self.values_at(middle, half, axis, gauss(count)[0]) for count in (POINTS, FEWER)]
        scale = combined(REGISTRY["abs"](rules[0]), axis, gauss(POINTS)[1] / factorial(self.order))
        if self.order == 1:
            mean, fewer = (combined(part, axis, gauss(part.type.static_shape[axis])[1]) for part in rules)
            return mean, fewer, scale
        safe = REGISTRY["select"](half == 0.0, half.like(1), half)
        powers = symmetric_polynomials([(point - middle) / safe for point in self.at], POINTS)
        found = []
        for part in rules:
            total: Term | None = None
            for degree, row in enumerate(interpolation(part.type.static_shape[axis])):
                weight = factorial(degree) / factorial(degree + self.order)
                term = combined(part, axis, row * weight) * like_dtype(powers[degree], part)
                total = term if total is None else total + term
            assert total is not None
            found.append(total)
        return found[0], found[1], scale

    def values_at(self, middle: Term, half: Term, axis: int, nodes: Any) -> Term:
        """g⁽ⁿ⁾ at the points of a rule between those of each tuple, along a new axis."""
        wide = (*self.shape[:axis], len(nodes), *self.shape[axis:])
        dims = tuple(k for k in range(len(wide)) if k != axis)
        row = Term(middle.builder, literal(nodes, ArrayType(middle.dtype, (len(nodes),))))
        at = broadcast_to(middle, wide, dims) + broadcast_to(half, wide, dims) * broadcast_to(row, wide, (axis,))
        params = [broadcast_to(self.placed(param, 0), wide, dims) for param in self.spectrum.params]
        return self.spectrum.evaluate(self.order, at, params)


LONG: Final = 8
"""The number of points from which those of the rules are an axis before them: so the loops' vectors are full."""


def gauss(count: int) -> tuple[Any, Any]:
    """The points of a rule in (-1, 1), and its weights, whose sum is 1."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return nodes, weights / 2


def interpolation(count: int) -> Any:
    """Rows of weights for the values at the points of a rule: the coefficients of the polynomial through them."""
    return np.linalg.inv(np.vander(gauss(count)[0], increasing=True))


def combined(values: Term, axis: int, weights: Any) -> Term:
    """The weighted sum over an axis; over one that is not the last, in the loops that compute the values."""
    row = Term(values.builder, literal(weights, ArrayType(values.dtype, (len(weights),))))
    if axis < values.rank - 1:
        return REGISTRY["reduce_sum"](values * broadcast_to(row, values.shape, (axis,)), axes=(axis,))
    return REGISTRY["dot_general"](values, row, contract=((axis,), (0,)), batch=((), ()))


def like_dtype(term: Term, other: Term) -> Term:
    return term if term.dtype == other.dtype else REGISTRY["cast"](term, dtype=other.dtype)


def symmetric_polynomials(variables: Sequence[Term], count: int) -> list[Term]:
    """The complete homogeneous symmetric polynomials of degrees 0 to ``count - 1``: the divided differences of powers.

    h_k(t_0 … t_a) = h_k(t_0 … t_(a-1)) + t_a h_(k-1)(t_0 … t_a).
    """
    first = variables[0]
    found = [first.like(1)]
    for _ in range(1, count):
        found.append(found[-1] * first)
    for variable in variables[1:]:
        for degree in range(1, count):
            found[degree] = found[degree] + variable * found[degree - 1]
    return found
