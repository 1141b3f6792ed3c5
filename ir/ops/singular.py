"""Functions of singular values, as ops that are closed under differentiation.

With A = U diag(s) V^H, B = [[0, A], [A^H, 0]] has the eigenvalues s and -s, with the eigenvectors [u, v] and [u, -v],
and 0 as often as A has more rows than columns, or columns than rows (Jordan and Wielandt). So U g(s) V^H is a block
of g(B) for odd g, and U g(s) U^H and V g(s) V^H are blocks of g(B) for even g; on the null space that B has because A
is not square, g is taken as 0. Their derivatives are blocks of those in ``spectral.py``, with the decomposition of B
taken from that of A. Directions and results are blocks of matrices like B: ``cross``, of the shape of A, for [[0, H],
[H^H, 0]], and ``left`` or ``right``, square, for [[H, 0], [0, 0]] or [[0, 0], [0, H]].
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from itertools import product as cartesian
from typing import Final

import numpy as np

from srcgrad.ir.core import Attrs, Builder, Operation, Region, is_splat, literal, zeros
from srcgrad.ir.opdef import REGISTRY, LinearEmitter, LinearOperand, Tangent, Term, Zero
from srcgrad.ir.ops.chains import chain, product, total
from srcgrad.ir.ops.divided import Spectrum, at_end, differentiated, lift, like_dtype
from srcgrad.ir.ops.eigen import adjoint, along, columns_of, emit_all, require_stack, rounding
from srcgrad.ir.ops.linalg import hermitian_part, transposed
from srcgrad.ir.ops.spectral import (
    Derivatives,
    MatrixFunction,
    Parts,
    appended,
    longest_stack,
    make_spectrum,
    parts,
    spread_params,
    traced,
    value_sum,
)
from srcgrad.ir.transforms.interpret import inline
from srcgrad.ir.types import BOOL, ArrayType, DType, Shape


def block_axes(block: str, matrix: ArrayType) -> Shape:
    rows, columns = matrix.shape[-2:]
    return {"cross": (rows, columns), "left": (rows, rows), "right": (columns, columns)}[block]


class Singular(MatrixFunction):
    """U g(s) V^H (``block`` is ``cross``), U g(s) U^H (``left``) or V g(s) V^H (``right``), or a derivative of one.

    g is real, and for s < 0 continued as an ``even`` or an odd function: where s is 0 the derivatives are those of such
    a function. ``kinds`` are the blocks of which the directions are; the map is real linear in each of them.
    """

    def require_matrix(self, type: ArrayType) -> None:
        require_stack(self, type)

    def result_dtype(self, matrix: ArrayType, region: Region) -> DType:
        return matrix.dtype

    def result_axes(self, matrix: ArrayType, attrs: Attrs) -> Shape:
        return block_axes(attrs["block"], matrix)

    def direction_axes(self, matrix: ArrayType, attrs: Attrs, position: int) -> Shape:
        return block_axes(attrs["kinds"][position], matrix)

    def along_matrix(
        self, s: LinearEmitter, operands: Sequence[Term], tangent: Tangent, operation: Operation, result: ArrayType
    ) -> Tangent:
        return appended(self, s, operands, tangent, operation, kinds=(*operation.attrs["kinds"], "cross"))

    def exchanged(
        self,
        s: LinearEmitter,
        cotangent: Tangent,
        operands: Sequence[Term | Zero],
        position: int,
        operation: Operation,
    ) -> Tangent:
        """The trace of the Hermitian result times another such matrix is symmetric in that matrix and the directions.

        A cross block stands in a Hermitian matrix twice, and a square one once.
        """
        attrs = operation.attrs
        kinds = list(attrs["kinds"])
        kind, kinds[position - 1] = kinds[position - 1], attrs["block"]
        if attrs["block"] != "cross":
            cotangent = hermitian_part(s, cotangent)
        mixed: list[LinearOperand] = list(operands)
        mixed[position] = conjugated(s, cotangent)
        attrs = {**attrs, "kinds": tuple(kinds), "block": kind}
        found = conjugated(s, s.apply_all(self, mixed, attrs, operation.regions)[0])
        twice = (kind == "cross") - (operation.attrs["block"] == "cross")
        return s.scale(found, 2.0**twice)

    def expand(self, operands: Sequence[Term], attrs: Attrs, regions: Sequence[Region]) -> Sequence[Term]:
        own, region = parts(operands, attrs), regions[0]
        (result,) = self.result_types([operand.type for operand in operands], attrs, regions)
        if not result.size or not own.matrix.type.size:
            return [Term(operands[0].builder, zeros(result))]
        u, values, vh = emit_all("svd", own.matrix, full_matrices=False)
        if not own.directions:
            sides = {"cross": (u, vh), "left": (u, adjoint(u)), "right": (adjoint(vh), vh)}
            left, right = sides[attrs["block"]]
            shape = (*longest_stack(values, own), values.shape[-1])
            weights = lift(region, [at_end(values, shape), *spread_params(own, shape)])
            wide = at_end(left, (*shape[:-1], *left.shape[-2:]))
            return [product(wide * along(weights, wide, -1), right)]
        kernel = like_dtype(spectrum(values, own, region, attrs["even"]).differences(len(own.directions)), u)
        directions = list(zip(own.directions, attrs["kinds"], strict=True))
        return [Doubled(u, adjoint(vh)).summed(kernel, directions, attrs["block"])]


CORNERS: Final = {"cross": (0, 1), "left": (0, 0), "right": (1, 1)}
"""Where a block stands in the doubled matrix: its rows and its columns. A cross block stands there twice."""

Direction = tuple[Term, str]
"""A block of a doubled matrix, and its kind."""


class Doubled:
    """The eigenvectors of [[0, A], [A^H, 0]]: those of s and of -s are [u, v] and [u, -v] over the root of 2.

    Those of its null space, which has the dimensions that the longer side of A has more, are not computed: on that side
    their sum over n n^H is I - W W^H with the side's singular vectors W, and the kernel is the same for all of them.
    """

    def __init__(self, u: Term, v: Term) -> None:
        self.vectors = (u, v)
        rows, columns = u.type.static_shape[-2], v.type.static_shape[-2]
        self.null = None if rows == columns else int(columns > rows)
        self.count = min(rows, columns)

    def summed(self, kernel: Term, directions: Sequence[Direction], block: str) -> Term:
        """The block of the sum over all orders of the directions, and over the eigenvectors of s and -s or of 0."""
        kinds = (False,) if self.null is None else (False, True)
        found = []
        for shared in cartesian(kinds, repeat=len(directions) + 1):
            if all(shared) or not self.has_place(block, shared[0], shared[-1]):
                continue
            weights = kernel if self.null is None else part(kernel, shared)
            for order in permutations(directions):
                places = list(zip(order, shared, shared[1:], strict=False))
                if all(self.has_place(kind, *ends) or self.has_place(kind, *ends[::-1]) for (_, kind), *ends in places):
                    inner = [self.inner(direction, *ends) for direction, *ends in places]
                    found.append(self.outer(chain(weights, inner, shared), block, shared[0], shared[-1]))
        return total(found)

    def has_place(self, kind: str, before: bool, after: bool) -> bool:
        """Whether the null space, where an end is in it, is on the side on which the block is."""
        rows, columns = CORNERS[kind]
        return (not before or rows == self.null) and (not after or columns == self.null)

    def inner(self, direction: Direction, before: bool, after: bool) -> Term:
        """A direction in the basis of the eigenvectors; in the null space, projected."""
        block, kind = direction
        found = []
        if self.has_place(kind, before, after):
            found.append(self.turned(block, kind, before, after))
        if kind == "cross" and self.has_place(kind, after, before):
            found.append(adjoint(found[0] if before == after else self.turned(block, kind, after, before)))
        return total(found)

    def turned(self, block: Term, kind: str, before: bool, after: bool) -> Term:
        rows, columns = CORNERS[kind]
        found = adjoint(self.applied(columns, after, adjoint(block)))
        return self.applied(rows, before, found)

    def applied(self, side: int, null: bool, matrix: Term) -> Term:
        """The adjoint of the eigenvectors, or the projector, times a matrix."""
        vectors = self.vectors[side]
        small = product(adjoint(vectors), matrix)
        if null:
            own = product(vectors, small)
            return at_end(matrix, own.shape) - own
        small = small * np.sqrt(0.5)
        return REGISTRY["concatenate"](small, -small if side else small, axis=small.rank - 2)

    def outer(self, inner: Term, block: str, before: bool, after: bool) -> Term:
        """The block of the doubled matrix, from its numbers in the basis."""
        rows, columns = CORNERS[block]
        found = inner if before else self.restored(rows, inner)
        return found if after else adjoint(self.restored(columns, adjoint(found)))

    def restored(self, side: int, inner: Term) -> Term:
        """The part on one side of the eigenvectors times a matrix."""
        first, second = rows_of(inner, 0, self.count), rows_of(inner, self.count, 2 * self.count)
        both = first - second if side else first + second
        return product(self.vectors[side], both * np.sqrt(0.5))


def part(kernel: Term, shared: Sequence[bool]) -> Term:
    """The kernel at its last row for the indices that are shared, and without that row for the others."""
    first = kernel.rank - len(shared)
    sizes = kernel.type.static_shape
    last = [sizes[-1] - 1] * len(shared)
    starts = (*(0 for _ in sizes[:first]), *(end * flag for end, flag in zip(last, shared, strict=True)))
    limits = (*sizes[:first], *(end + flag for end, flag in zip(last, shared, strict=True)))
    found = REGISTRY["slice"](kernel, starts=starts, limits=limits, strides=(1,) * kernel.rank)
    kept = (*sizes[:first], *(end for end, flag in zip(last, shared, strict=True) if not flag))
    return REGISTRY["reshape"](found, shape=kept)


def conjugated(s: LinearEmitter, tangent: Tangent) -> Tangent:
    return s.apply(REGISTRY["conj"], [tangent]) if tangent.type.dtype.kind == "c" else tangent


def spectrum(values: Term, own: Parts, region: Region, even: bool) -> Spectrum:
    """The eigenvalues of the doubled matrix; that of its null space, which stands once, belongs to no value of A."""
    rows, columns = own.matrix.type.static_shape[-2:]
    null = rows != columns
    shape = (*longest_stack(values, own), values.shape[-1])
    params = [
        joined([wide, wide], null) if is_indexed else param
        for param, wide, is_indexed in zip(own.params, spread_params(own, shape), own.indexed, strict=True)
    ]
    points = joined([values, -values], null)
    error = rounding(values, max(rows, columns))
    errors = joined([error, error], null, columns_of(error, 0, 1))
    apart = None
    if null:
        flags = np.arange(points.type.static_shape[-1]) >= 2 * min(rows, columns)
        apart = Term(values.builder, literal(flags, ArrayType(BOOL, flags.shape)))
    doubled = Parts(own.matrix, [], params, own.indexed)
    return make_spectrum(points, doubled, ContinuedDerivatives(region, even), errors, apart)


class ContinuedDerivatives(Derivatives):
    """g, given for positive numbers, as an even or an odd function, and its derivatives."""

    def __init__(self, region: Region, even: bool) -> None:
        super().__init__(region)
        self.even = even

    def __call__(self, order: int, points: Term, params: Sequence[Term]) -> Term:
        """Of every second derivative the sign is that of the point, and 0 at 0."""
        found = super().__call__(order, REGISTRY["abs"](points), params)
        if (order % 2 == 0) == self.even or is_splat(found.value, 0):
            return found
        select = REGISTRY["select"]
        return select(points == 0.0, found.like(0), select(points < 0.0, -found, found))


class SingularSum(MatrixFunction):
    """The sum of g(s) over the singular values s of each matrix, for real g.

    A value that is 0 to rounding is a kink if g'(0) is a finite number that is not 0: it contributes 0, as abs does
    at 0.
    """

    def require_matrix(self, type: ArrayType) -> None:
        require_stack(self, type)

    def result_dtype(self, matrix: ArrayType, region: Region) -> DType:
        return region.results[0].type.dtype

    def result_axes(self, matrix: ArrayType, attrs: Attrs) -> Shape:
        return ()

    def along_matrix(
        self, s: LinearEmitter, operands: Sequence[Term], tangent: Tangent, operation: Operation, result: ArrayType
    ) -> Tangent:
        """The real part of the sum of conj(G) A', G = U g'(s) V^H."""
        if not operands[0].type.size:
            return Zero(result)
        own, region = parts(operands, operation.attrs), differentiated(operation.regions[0], 0)
        values = emit_all("svd", own.matrix, full_matrices=False)[1]
        shape = (*longest_stack(values, own), values.shape[-1])
        wide = at_end(values, shape)
        at_zero = lift(region, [wide.like(0), *spread_params(own, shape)])
        error = at_end(rounding(values, max(own.matrix.type.static_shape[-2:])), shape)
        kinks = (wide <= error) & REGISTRY["is_finite"](at_zero) & (at_zero != 0.0)
        attrs = {"directions": 0, "kinds": (), "block": "cross", "even": False, "indexed": (*own.indexed, True)}
        builder = kinks.builder
        emitted = builder.emit(
            REGISTRY["singular"],
            [operand.value for operand in (*operands, kinks)],
            attrs,
            (unless(region),),
        )
        gradient = Term(builder, emitted)
        return traced(s, tangent, REGISTRY["conj"](gradient) if gradient.dtype.kind == "c" else gradient, result)

    def expand(self, operands: Sequence[Term], attrs: Attrs, regions: Sequence[Region]) -> Sequence[Term]:
        own = parts(operands, attrs)
        return [value_sum(REGISTRY["svdvals"](own.matrix), own, regions[0])]


def unless(region: Region) -> Region:
    """The region with one more parameter, a bool: 0 where it holds; it does not on the null space."""
    builder = Builder()
    params = [builder.param(param.type, param.name) for param in region.params]
    predicate = builder.param(ArrayType(BOOL))
    (found,) = inline(builder, region, params)
    return builder.region([builder.emit(REGISTRY["select"], [predicate, zeros(found.type), found])])


def joined(pieces: Sequence[Term], null: bool, fill: Term | None = None) -> Term:
    """Numbers for s, for -s, and for the null space: that is 0, or ``fill``, one number for each matrix."""
    found = list(pieces)
    first = found[0]
    if null:
        found.append(
            Term(first.builder, zeros(first.type.with_shape((*first.shape[:-1], 1)))) if fill is None else fill
        )
    return REGISTRY["concatenate"](*found, axis=first.rank - 1)


def rows_of(matrix: Term, start: int, limit: int) -> Term:
    return transposed(columns_of(transposed(matrix), start, limit))
