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
from typing import Any

import numpy as np

from srcgrad.ir.core import Attrs, Builder, Operation, Region, is_splat, literal, zeros
from srcgrad.ir.opdef import REGISTRY, LinearEmitter, LinearOperand, Tangent, Term, Zero, broadcast_to
from srcgrad.ir.ops.chains import chains, product
from srcgrad.ir.ops.divided import Spectrum, at_end, differentiated, lift, like_dtype
from srcgrad.ir.ops.eigen import adjoint, along, columns_of, emit_all, hermitian_part, require_stack, rounding
from srcgrad.ir.ops.linalg import transposed
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
        rows, columns = own.matrix.type.static_shape[-2:]
        full = bool(own.directions) and rows != columns
        u, values, vh = emit_all("svd", own.matrix, full_matrices=full)
        sides = {"cross": (u, vh), "left": (u, adjoint(u)), "right": (adjoint(vh), vh)}
        left, right = sides[attrs["block"]]
        if not own.directions:
            shape = (*longest_stack(values, own), values.shape[-1])
            weights = lift(region, [at_end(values, shape), *spread_params(own, shape)])
            wide = at_end(left, (*shape[:-1], *left.shape[-2:]))
            return [product(wide * along(weights, wide, -1), right)]
        kernel = like_dtype(spectrum(values, own, region, attrs["even"]).differences(len(own.directions)), u)
        turn = Term(u.builder, literal(rotation(rows, columns), ArrayType(u.dtype, (rows + columns,) * 2)))
        inner = []
        for direction, kind in zip(own.directions, attrs["kinds"], strict=True):
            before, after = sides[kind]
            small = product(product(adjoint(before), direction), adjoint(after))
            inner.append(product(product(transposed(turn), embedded(small, kind, rows, columns)), turn))
        upper, lower = rows_of(turn, 0, rows), rows_of(turn, rows, rows + columns)
        first, second = {"cross": (upper, lower), "left": (upper, upper), "right": (lower, lower)}[attrs["block"]]
        block = product(product(first, chains(kernel, inner)), transposed(second))
        return [product(product(left, block), right)]


def conjugated(s: LinearEmitter, tangent: Tangent) -> Tangent:
    return s.apply(REGISTRY["conj"], [tangent]) if tangent.type.dtype.kind == "c" else tangent


def spectrum(values: Term, own: Parts, region: Region, even: bool) -> Spectrum:
    """The eigenvalues of the doubled matrix; those of its null space belong to no value of A."""
    rows, columns = own.matrix.type.static_shape[-2:]
    null = abs(rows - columns)
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
        counts = (wide > error) | ~REGISTRY["is_finite"](at_zero)
        attrs = {"directions": 0, "kinds": (), "block": "cross", "even": False, "indexed": (*own.indexed, True)}
        builder = counts.builder
        emitted = builder.emit(
            REGISTRY["singular"],
            [operand.value for operand in (*operands, counts)],
            attrs,
            (only_where(region),),
        )
        gradient = Term(builder, emitted)
        return traced(s, tangent, REGISTRY["conj"](gradient) if gradient.dtype.kind == "c" else gradient, result)

    def expand(self, operands: Sequence[Term], attrs: Attrs, regions: Sequence[Region]) -> Sequence[Term]:
        own = parts(operands, attrs)
        return [value_sum(REGISTRY["svdvals"](own.matrix), own, regions[0])]


def only_where(region: Region) -> Region:
    """The region with one more parameter, a bool: 0 where it does not hold."""
    builder = Builder()
    params = [builder.param(param.type, param.name) for param in region.params]
    predicate = builder.param(ArrayType(BOOL))
    (found,) = inline(builder, region, params)
    return builder.region([builder.emit(REGISTRY["select"], [predicate, found, zeros(found.type)])])


def joined(pieces: Sequence[Term], null: int, fill: Term | None = None) -> Term:
    """Numbers for s, for -s, and for ``null`` zeros: those are 0, or ``fill``, one number for each matrix."""
    found = list(pieces)
    first = found[0]
    if null:
        type = first.type.with_shape((*first.shape[:-1], null))
        found.append(
            Term(first.builder, zeros(type))
            if fill is None
            else broadcast_to(fill, type.shape, tuple(range(first.rank)))
        )
    return REGISTRY["concatenate"](*found, axis=first.rank - 1)


def rows_of(matrix: Term, start: int, limit: int) -> Term:
    return transposed(columns_of(transposed(matrix), start, limit))


def embedded(block: Term, kind: str, rows: int, columns: int) -> Term:
    """A block in a matrix like the doubled one."""
    stack, last = block.type.static_shape[:-2], block.rank - 1

    def empty(height: int, width: int) -> Term:
        return Term(block.builder, zeros(block.type.with_shape((*stack, height, width))))

    corners = [[empty(rows, rows), empty(rows, columns)], [empty(columns, rows), empty(columns, columns)]]
    if kind == "cross":
        corners[0][1], corners[1][0] = block, adjoint(block)
    else:
        place = int(kind == "right")
        corners[place][place] = block
    both = [REGISTRY["concatenate"](*row, axis=last) for row in corners]
    return REGISTRY["concatenate"](*both, axis=last - 1)


def rotation(rows: int, columns: int) -> np.ndarray[Any, Any]:
    """The eigenvectors of [[0, I], [I, 0]] with blocks of these sizes: those of 1, of -1, of 0."""
    count, size = min(rows, columns), rows + columns
    found = np.zeros((size, size))
    k = np.arange(count)
    found[k, k] = found[rows + k, k] = found[k, count + k] = np.sqrt(0.5)
    found[rows + k, count + k] = -np.sqrt(0.5)
    rest = np.arange(count, max(rows, columns))
    found[rest if rows > columns else rows + rest, count + rest] = 1
    return found
