"""Functions of the eigenvalues or singular values of a matrix, and their derivatives of every order as ops.

With A = V diag(w) V^H and g a function of a real variable, g(A) = V diag(g(w)) V^H is as smooth in A as g is, also
where eigenvalues are equal and V is not even continuous. Its n-th Fréchet derivative in the Hermitian directions H_1 to
H_n is

    sum over permutations of V (sum over i_1 … i_(n-1) of g[w_i0, …, w_in] M_1[i0, i1] … M_n[i_(n-1), i_n]) V^H

with M_k = V^H H_k V and the divided differences of g (Daleckii and Krein 1965; R. Bhatia, Matrix Analysis, chapter V;
N. J. Higham, Functions of Matrices, chapter 3). `Spectral` is this map, for n = 0, 1, 2, …: its derivative in A
appends a direction, and its transpose in a direction is itself, with the cotangent in the place of that direction. So
it is closed under differentiation.

g is a region of scalars: the value w, then parameters. A parameter is one number for all values of a matrix, or
*indexed*: one number for each value, in the values' order, as the weights that choose eigenvectors do. Where values
whose indexed parameters differ are equal, nothing is defined, and the terms that couple them contribute 0.

No backend knows these ops: `expand` writes them out before a function runs, on the decomposition of A that the program
may also use elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from srcgrad.ir.core import NO_ATTRS, Attrs, Operation, Region, Value, zeros
from srcgrad.ir.errors import InternalError, ShapeError
from srcgrad.ir.opdef import (
    REGISTRY,
    Lin,
    LinearEmitter,
    LinearOperand,
    Op,
    Tangent,
    Term,
    Zero,
    broadcast_to,
    written_out,
)
from srcgrad.ir.ops.chains import chains, product
from srcgrad.ir.ops.complexes import as_dtype
from srcgrad.ir.ops.divided import Spectrum, at_end, differentiated, lift, like_dtype
from srcgrad.ir.ops.eigen import (
    adjoint,
    along,
    emit_all,
    real_part,
    rounding,
)
from srcgrad.ir.ops.linalg import from_lower, matrix_transpose, require_matrices, transposed
from srcgrad.ir.transforms.interpret import push_forward
from srcgrad.ir.types import ArrayType, DType, Shape, Size, real_dtype


class Parts(NamedTuple):
    """The operands of an application, by what they are."""

    matrix: Any
    directions: list[Any]
    params: list[Any]
    indexed: tuple[bool, ...]


def parts(operands: Sequence[Any], attrs: Attrs) -> Parts:
    count = attrs.get("directions", 0)
    return Parts(operands[0], list(operands[1 : 1 + count]), list(operands[1 + count :]), attrs["indexed"])


class MatrixFunction(Op, abstract=True):
    """What `Spectral`, `Singular` and their sums share.

    Operands: the stack of matrices; the directions, ``attrs["directions"]`` of them; the parameters, of which
    ``attrs["indexed"]`` says which are indexed. The stack of each operand is that of the result, or its last axes.
    """

    region_labels = ("function",)
    separate = True
    expanded = True

    def linear_positions(self, arity: int, attrs: Attrs) -> tuple[int, ...]:
        return tuple(range(1, 1 + attrs.get("directions", 0)))

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        raise InternalError(f"{self.name} takes its type from its region")

    def require_matrix(self, type: ArrayType) -> None:
        require_matrices(self, type)

    def count(self, matrix: ArrayType) -> Size:
        """How many values a matrix has."""
        return min(matrix.static_shape[-2:])

    def result_stack(self, types: Sequence[ArrayType], attrs: Attrs) -> Shape:
        """The stack of the result, of which those of all operands must be the last axes."""
        found = parts(types, attrs)
        self.require_matrix(found.matrix)
        stacks = [found.matrix.shape[:-2], *(direction.shape[:-2] for direction in found.directions)]
        for k, direction in enumerate(found.directions):
            if direction.shape[-2:] != self.direction_axes(found.matrix, attrs, k):
                raise ShapeError(f"{self.name}: the direction {direction} does not fit {found.matrix}")
        for param, is_indexed in zip(found.params, found.indexed, strict=True):
            if is_indexed and param.shape[-1:] != (self.count(found.matrix),):
                raise ShapeError(f"{self.name}: the indexed parameter {param} does not fit {found.matrix}")
            stacks.append(param.shape[:-1] if is_indexed else param.shape)
        longest: Shape = max(stacks, key=len)
        if any(longest[len(longest) - len(stack) :] != stack for stack in stacks):
            raise ShapeError(f"{self.name}: the stacks {stacks} do not fit together")
        return longest

    def result_dtype(self, matrix: ArrayType, region: Region) -> DType:
        return np.result_type(matrix.dtype, region.results[0].type.dtype)

    def result_types(
        self,
        types: Sequence[ArrayType],
        attrs: Attrs = NO_ATTRS,
        regions: Sequence[Region] = (),
    ) -> Sequence[ArrayType]:
        stack = self.result_stack(types, attrs)
        matrix, region = types[0], regions[0]
        expected = [real_dtype(matrix.dtype), *(param.dtype for param in parts(types, attrs).params)]
        if [param.type for param in region.params] != [ArrayType(dtype) for dtype in expected]:
            raise ShapeError(f"{self.name}: the region takes {region.param_types}, not scalars of {expected}")
        dtype = self.result_dtype(matrix, region)
        for direction in parts(types, attrs).directions:
            if direction.dtype != dtype:
                raise ShapeError(f"{self.name}: the direction {direction} is not of {dtype}")
        return (ArrayType(dtype, (*stack, *self.result_axes(matrix, attrs))),)

    def result_axes(self, matrix: ArrayType, attrs: Attrs) -> Shape:
        """The axes of a result after its stack."""
        return matrix.shape[-2:]

    def direction_axes(self, matrix: ArrayType, attrs: Attrs, position: int) -> Shape:
        """Those of a direction."""
        return matrix.shape[-2:]

    # --- derivatives -----------------------------------------------------------------------------
    def differentiate(
        self, s: LinearEmitter, operands: Sequence[Term], tangents: Sequence[Tangent], operation: Operation
    ) -> tuple[Sequence[Value], Sequence[Tangent]]:
        builder, attrs, region = operands[0].builder, operation.attrs, operation.regions[0]
        values = [operand.value for operand in operands]
        own, moved = parts(operands, attrs), parts(tangents, attrs)
        if any(isinstance(tangent, Lin) for tangent, flag in zip(moved.params, own.indexed, strict=True) if flag):
            body = written_out(self, [operand.type for operand in operands], attrs, operation.regions)
            return push_forward(builder, s, body, values, tangents)
        emitted = builder.emit_operation(self, values, attrs, operation.regions)
        span = builder.span
        if s.builder is builder and span is not None:
            builder.span = span.derive("tangent")
        result = Term(builder, emitted.results[0])
        total: Tangent = Zero(result.type)
        if isinstance(moved.matrix, Lin):
            total = self.along_matrix(s, operands, moved.matrix, operation, result.type)
        for k, tangent in enumerate(moved.directions, start=1):
            if isinstance(tangent, Lin):
                mixed: list[LinearOperand] = [*operands[:k], tangent, *operands[k + 1 :]]
                total = s.add(total, s.apply_all(self, mixed, attrs, operation.regions)[0])
        for k, tangent in enumerate(moved.params):
            if isinstance(tangent, Lin):
                partial = (differentiated(region, 1 + k),)
                change = Term(builder, builder.emit(self, values, attrs, partial))
                total = s.add(
                    total,
                    s.scale(repeated(s, tangent, change.type, len(self.result_axes(operands[0].type, attrs))), change),
                )
        return emitted.results, [total]

    def along_matrix(
        self, s: LinearEmitter, operands: Sequence[Term], tangent: Tangent, operation: Operation, result: ArrayType
    ) -> Tangent:
        """The tangent of the result for that of the matrix."""
        raise NotImplementedError

    def apply_linear(
        self, s: LinearEmitter, operands: Sequence[LinearOperand], attrs: Attrs, regions: Sequence[Region]
    ) -> list[Tangent]:
        """Every number of a result depends on every number of the direction's matrix."""
        values = [operand.value if isinstance(operand, Term) else s.materialise(operand) for operand in operands]
        result = s.builder.emit(self, values, attrs, regions)
        (mask,) = [operand.mask for operand in operands if isinstance(operand, Lin)]
        if mask is None:
            return [Lin(result)]
        if mask.type.rank:
            rank = mask.type.rank
            term = REGISTRY["reduce_or"](Term(s.builder, mask), axes=(rank - 2, rank - 1))
            shape = result.type.shape
            dims = tuple(range(len(shape) - rank, len(shape) - 2))
            mask = broadcast_to(term, shape, dims).value
        return [Lin(result, mask, clean=False)]

    def transpose_region(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], operation: Operation
    ) -> Sequence[Tangent | None]:
        (position,) = [k for k, operand in enumerate(operands) if isinstance(operand, Zero)]
        found = self.exchanged(s, cotangents[0], operands, position, operation)
        extra = found.type.rank - operands[position].type.rank
        if extra:
            found = s.apply(REGISTRY["reduce_sum"], [found], {"axes": tuple(range(extra))})
        return [found if k == position else None for k in range(len(operands))]

    def exchanged(
        self,
        s: LinearEmitter,
        cotangent: Tangent,
        operands: Sequence[Term | Zero],
        position: int,
        operation: Operation,
    ) -> Tangent:
        """The cotangent of a direction, over the whole stack: the result with the cotangent in its place."""
        raise NotImplementedError

    # --- batching --------------------------------------------------------------------------------
    def batch_operation(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], operation: Operation
    ) -> Sequence[Term]:
        """A batched operand gets the whole stack, so that the new axis is the first of the result's."""
        attrs, builder = operation.attrs, operands[0].builder
        stack = self.result_stack([value.type for value in operation.operands], attrs)
        found: list[Value] = []
        for operand, flag, old in zip(operands, batched, operation.operands, strict=True):
            axes = own_axes(old.type, len(found), attrs)
            if flag:
                own = operand.shape[operand.rank - axes :]
                shape = (size, *stack, *own)
                dims = (0, *range(len(shape) - operand.rank + 1, len(shape)))
                operand = broadcast_to(operand, shape, dims)
            found.append(operand.value)
        return [Term(builder, builder.emit(self, found, attrs, operation.regions))]

    # --- writing out -----------------------------------------------------------------------------
    def expand(self, operands: Sequence[Term], attrs: Attrs, regions: Sequence[Region]) -> Sequence[Term]:
        raise NotImplementedError


def own_axes(type: ArrayType, position: int, attrs: Attrs) -> int:
    """How many axes of an operand are not its stack."""
    first_param = 1 + attrs.get("directions", 0)
    return 2 if position < first_param else int(attrs["indexed"][position - first_param])


def repeated(s: LinearEmitter, tangent: Tangent, result: ArrayType, axes: int) -> Tangent:
    """The tangent of a parameter of each matrix as an array like the result, which has ``axes`` axes of its own."""
    tangent = as_dtype(s, tangent, result.dtype)
    last = result.rank - axes
    dims = tuple(range(last - tangent.type.rank, last))
    if tangent.type.shape == result.shape:
        return tangent
    return s.apply(REGISTRY["broadcast"], [tangent], {"shape": result.shape, "dims": dims})


def appended(
    op: Op, s: LinearEmitter, operands: Sequence[Term], direction: Tangent, operation: Operation, **attrs: Any
) -> Tangent:
    """The derivative of the next order: one more direction."""
    count = operation.attrs["directions"]
    mixed: list[LinearOperand] = [*operands[: 1 + count], direction, *operands[1 + count :]]
    attrs = {**operation.attrs, "directions": count + 1, **attrs}
    return s.apply_all(op, mixed, attrs, operation.regions)[0]


class Spectral(MatrixFunction):
    """V diag(g(w)) V^H for Hermitian A = V diag(w) V^H, or its n-th derivative in n directions.

    Of A only the lower triangle is read, and so of its tangent, as by `Eigh`. Directions are any
    matrices: the map is linear in each of them (complex linear) and symmetric.
    """

    def along_matrix(
        self, s: LinearEmitter, operands: Sequence[Term], tangent: Tangent, operation: Operation, result: ArrayType
    ) -> Tangent:
        direction = as_dtype(s, from_lower(s, operands[0], tangent), result.dtype)
        return appended(self, s, operands, direction, operation)

    def expand(self, operands: Sequence[Term], attrs: Attrs, regions: Sequence[Region]) -> Sequence[Term]:
        own, region = parts(operands, attrs), regions[0]
        (result,) = self.result_types([operand.type for operand in operands], attrs, regions)
        if not result.size:
            return [Term(operands[0].builder, zeros(result))]
        w, v = emit_all("eigh", own.matrix)
        v = v if v.dtype == result.dtype else REGISTRY["cast"](v, dtype=result.dtype)
        error = rounding(w, w.type.static_shape[-1])
        spectrum = make_spectrum(w, own, Derivatives(region), error, None)
        kernel = like_dtype(spectrum.differences(len(own.directions)), v)
        if not own.directions:
            wide = at_end(v, (*kernel.shape[:-1], *v.shape[-2:]))
            return [product(wide * along(kernel, wide, -1), adjoint(v))]
        inner = [product(product(adjoint(v), direction), v) for direction in own.directions]
        return [product(product(v, chains(kernel, inner)), adjoint(v))]

    def exchanged(
        self,
        s: LinearEmitter,
        cotangent: Tangent,
        operands: Sequence[Term | Zero],
        position: int,
        operation: Operation,
    ) -> Tangent:
        """The trace of the result times a matrix is symmetric in that matrix and the directions."""
        mixed: list[LinearOperand] = list(operands)
        mixed[position] = matrix_transpose(s, cotangent)
        return matrix_transpose(s, s.apply_all(self, mixed, operation.attrs, operation.regions)[0])


class SpectralSum(MatrixFunction):
    """The sum of g(w) over the eigenvalues w of each Hermitian matrix: the trace of `Spectral`."""

    def result_dtype(self, matrix: ArrayType, region: Region) -> DType:
        return region.results[0].type.dtype

    def result_axes(self, matrix: ArrayType, attrs: Attrs) -> Shape:
        return ()

    def along_matrix(
        self, s: LinearEmitter, operands: Sequence[Term], tangent: Tangent, operation: Operation, result: ArrayType
    ) -> Tangent:
        """The trace of g'(A) A'."""
        region = differentiated(operation.regions[0], 0)
        builder = operands[0].builder
        attrs = {"directions": 0, "indexed": operation.attrs["indexed"]}
        values = [operand.value for operand in operands]
        gradient = Term(builder, builder.emit(REGISTRY["spectral"], values, attrs, (region,)))
        if result.dtype.kind == "c" or not (isinstance(tangent, Lin) and s.is_hermitian(tangent)):
            tangent = from_lower(s, operands[0], tangent)
        return traced(s, tangent, transposed(gradient), result)

    def expand(self, operands: Sequence[Term], attrs: Attrs, regions: Sequence[Region]) -> Sequence[Term]:
        own = parts(operands, attrs)
        w = REGISTRY["eigvalsh"](own.matrix)
        return [value_sum(w, own, regions[0])]


def traced(s: LinearEmitter, tangent: Tangent, factor: Term, result: ArrayType) -> Tangent:
    """The sum over each matrix of the products with ``factor``, whose stack may be larger, in the result's dtype.

    The factor has the dtype of g(A): g may have parameters of a wider one than the matrix.
    """
    tangent = as_dtype(s, tangent, factor.dtype)
    if tangent.type.shape != factor.shape:
        dims = tuple(range(factor.rank - tangent.type.rank, factor.rank))
        tangent = s.apply(REGISTRY["broadcast"], [tangent], {"shape": factor.shape, "dims": dims})
    axes = (factor.rank - 2, factor.rank - 1)
    stack = tuple(range(factor.rank - 2))
    total = s.apply(REGISTRY["dot_general"], [tangent, factor], {"contract": (axes, axes), "batch": (stack, stack)})
    return as_dtype(s, total if result.dtype.kind == "c" else real_part(s, total), result.dtype)


def value_sum(values: Term, own: Parts, region: Region) -> Term:
    stack = longest_stack(values, own)
    shape = (*stack, values.shape[-1])
    found = lift(region, [at_end(values, shape), *spread_params(own, shape)])
    return REGISTRY["reduce_sum"](found, axes=(len(stack),))


class Derivatives:
    """g and its derivatives on arrays."""

    def __init__(self, region: Region) -> None:
        self.regions = [region]

    def region(self, order: int) -> Region:
        while len(self.regions) <= order:
            self.regions.append(differentiated(self.regions[-1], 0))
        return self.regions[order]

    def __call__(self, order: int, points: Term, params: Sequence[Term]) -> Term:
        return lift(self.region(order), [points, *params])


def longest_stack(values: Term, own: Parts) -> Shape:
    stacks = [values.shape[:-1]]
    stacks += [p.shape[:-1] if flag else p.shape for p, flag in zip(own.params, own.indexed, strict=True)]
    return max(stacks, key=len)


def spread_params(own: Parts, shape: Shape) -> list[Term]:
    """The parameters as arrays of numbers for the values of each matrix."""
    found = []
    for param, is_indexed in zip(own.params, own.indexed, strict=True):
        last = len(shape) - (not is_indexed)
        found.append(broadcast_to(param, shape, tuple(range(last - param.rank, last))))
    return found


def make_spectrum(points: Term, own: Parts, evaluate: Derivatives, error: Term, apart: Term | None) -> Spectrum:
    shape = (*longest_stack(points, own), points.shape[-1])
    params = spread_params(own, shape)
    labels = [param for param, flag in zip(params, own.indexed, strict=True) if flag]
    apart = None if apart is None else at_end(apart, shape)
    return Spectrum(at_end(points, shape), params, labels, apart, at_end(error, shape), evaluate)
