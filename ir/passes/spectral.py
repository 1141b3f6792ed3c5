"""Limit rules: functions of eigenvalues and singular values that are smooth where those are equal.

Derivatives of eigenvectors do not exist at equal eigenvalues; those of V diag(g(w)) V^H and of sum(g(w)) do. So these
are recognised, before anything is differentiated, in the spellings that NumPy code has: g is any elementwise
expression of w and of other values, weights may stand at either factor or at both, vectors and values may be sliced,
reversed, sorted and picked, and products may be ``@``, ``einsum`` or ``dot``. What is found becomes an op of
``ir/ops/spectral.py``, which has derivatives of every order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from srcgrad.ir.core import Builder, Literal, Operation, Value, literal
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.passes.coefficients import bilinear_form, coefficients
from srcgrad.ir.passes.diagonals import before_zeros, first_places
from srcgrad.ir.passes.matching import emit, is_one
from srcgrad.ir.passes.rewrite import Rule
from srcgrad.ir.passes.summed import expansion_of_sum, product_of_sum
from srcgrad.ir.passes.values import MOST_NESTED, Expression, NoMatch, full_bounds, origin, plain, whole_origin
from srcgrad.ir.passes.vectors import Factor, Weight, factor, weight_expression
from srcgrad.ir.types import ArrayType

SPECTRAL_RULES: Final[list[Rule]] = []
"""In the order in which those of one op are tried."""

RuleFunction = Callable[[Operation, Builder], Value]


def spectral_rule(name: str) -> Callable[[RuleFunction], RuleFunction]:
    """Register a rule whose function raises `NoMatch` where its left side is not there."""

    def register(function: RuleFunction) -> RuleFunction:
        def apply(operation: Operation, builder: Builder) -> Value | None:
            try:
                return function(operation, builder)
            except NoMatch:
                return None

        SPECTRAL_RULES.append(Rule(name, name.partition("(")[0], "fc", apply, (), None, "limit"))
        return function

    return register


@spectral_rule("reduce_norm(g(w) dot_general(V^H, x)) -> reduce_norm(dot_general(spectral(A), x))")
def norm_of_coefficients(operation: Operation, builder: Builder) -> Value:
    """The length of V g(w) V^H x, as vectors of length 1 at right angles keep lengths."""
    found, axes = coefficients(operation.operands[0]), operation.attrs["axes"]
    if found is None or found.column not in axes:
        raise NoMatch
    vectors = found.vectors
    outer = replace(vectors, weights=(), conjugated=not vectors.conjugated)
    matrix, exchanged = matrix_op(builder, outer, vectors)
    last = matrix.type.rank - 1
    stack = tuple(range(last - 1))
    dtype = operation.operands[0].type.dtype
    pair = [as_dtype(builder, operand, dtype) for operand in (matrix, found.read(builder))]
    contract = ((last - 1 if exchanged else last,), (found.place,))
    image = emit(builder, "dot_general", *pair, contract=contract, batch=(stack, stack))
    places = {found.column: last - 1, found.free: last}
    over = tuple(sorted(places.get(axis, axis) for axis in axes))
    return emit(builder, "reduce_norm", image, **{**operation.attrs, "axes": over})


@spectral_rule("reduce_norm(g(values(A))) -> reduce_norm(spectral(A))")
def norm_of_values(operation: Operation, builder: Builder) -> Value:
    """The Frobenius norm of the matrix: a sum of squares would not have the norm's derivative at 0."""
    (operand,) = operation.operands
    last = operand.type.rank - 1
    expression = Expression(builder)
    if operation.attrs["axes"] != (last,) or not expression.involved(operand, MOST_NESTED):
        raise NoMatch
    return emit(builder, "reduce_norm", value_matrix(expression, operand), axes=(last, last + 1))


@spectral_rule("reduce_prod(g(values(A))) -> exp(spectral_sum(A))")
def product_of_values(operation: Operation, builder: Builder) -> Value:
    """Of the eigenvalues themselves it is the determinant; of others the value is the one that is written."""
    (operand,) = operation.operands
    last = operand.type.rank - 1
    expression = Expression(builder)
    if operation.attrs["axes"] != (last,) or not expression.involved(operand, MOST_NESTED):
        raise NoMatch
    scalar = expression.read(operand)
    if expression.source is None or scalar.type.dtype.kind != "f" or not operand.type.shape[-1]:
        raise NoMatch
    is_whole = operand.type.shape[-1] == expression.size()
    if expression.source.kind != "eigh" or scalar is not expression.w or not is_whole:
        return product_by_logarithms(operation, expression, scalar)
    determinant = emit(builder, "det", function_op(expression, scalar))
    if determinant.type.dtype != operand.type.dtype:
        determinant = emit(builder, "real", determinant)
    return determinant


def product_by_logarithms(operation: Operation, expression: Expression, scalar: Value) -> Value:
    """A product of numbers with the derivatives of exp(sum(log |g(w)|)); where one is nearly 0 as it is written.

    The value is the one that is written: numbers g(w) may be more accurate than those of the matrix that has them as
    eigenvalues. Of a factor g the logarithms know g'' / g as (log g)'' + (log g)'^2, to as many digits as there are
    more in a number than zeros in g; so it must not be less than half of them beside the largest factor.
    """
    builder, (operand,) = expression.builder, operation.operands
    logarithm = expression.scalars.emit(REGISTRY["log"], [expression.scalars.emit(REGISTRY["abs"], [scalar])])
    total = sum_op(expression, logarithm)
    numbers = emit(builder, "abs", emit(builder, "stop_gradient", operand))
    least, most = (emit(builder, f"reduce_{name}", numbers, axes=operation.attrs["axes"]) for name in ("min", "max"))
    most = emit(builder, "mul", most, literal(np.sqrt(np.finfo(most.type.dtype).eps), most.type))
    last = operand.type.rank - 1
    column = emit(builder, "reshape", operand, shape=(*operand.type.shape, 1))  # of which there is no rule
    written = emit(builder, "reduce_prod", column, axes=(last, last + 1))
    change = emit(builder, "exp", emit(builder, "sub", total, emit(builder, "stop_gradient", total)))
    found = emit(builder, "mul", emit(builder, "stop_gradient", written), change)
    return emit(builder, "select", emit(builder, "greater", least, most), found, written)


def value_matrix(expression: Expression, operand: Value) -> Value:
    """The matrix function whose eigenvalues or singular values are the numbers."""
    scalar = expression.read(operand)
    if expression.source is None or (expression.source.kind == "svd" and scalar.type.dtype.kind == "c"):
        raise NoMatch
    return function_op(expression, scalar)


@spectral_rule("reduce_sum(mul(g(w), square(dot_general(V^H, x)))) -> dot_general(x, spectral(A), x)")
def sum_of_squares(operation: Operation, builder: Builder) -> Value:
    return quadratic(builder, operation, operation.operands, operation.attrs["axes"])


@spectral_rule("dot_general(g(w) dot_general(V^H, x), dot_general(V^H, x)) -> dot_general(x, spectral(A), x)")
def dot_of_coefficients(operation: Operation, builder: Builder) -> Value:
    """A sum of products number by number, or over the vectors for each of several x."""
    contract, batch = operation.attrs["contract"], operation.attrs["batch"]
    left, right = operation.operands
    rest = tuple(axis for axis in range(left.type.rank) if axis not in contract[0])
    if left.type == right.type and contract[0] == contract[1] and batch == (rest, rest):
        return quadratic(builder, operation, [left, right], contract[0])
    if batch == ((), ()) and 1 in (left.type.rank, right.type.rank) and len(contract[0]) == 1:
        side = 0 if right.type.rank == 1 else 1
        return quadratic(builder, operation, [operation.operands[side]], contract[side], operation.operands[1 - side])
    raise NoMatch


@spectral_rule("dot_general(g(w) dot_general(V^H, x), dot_general(V^H, y)) -> dot_general(x, spectral(A) y)")
def product_of_coefficients(operation: Operation, builder: Builder) -> Value:
    """The products of all x and all y."""
    (left, right), dtype = map(coefficients, operation.operands), operation.results[0].type.dtype
    if left is None or right is None or operation.attrs["contract"] != ((left.column,), (right.column,)):
        raise NoMatch
    matrix, exchanged = matrix_op(builder, left.vectors, right.vectors)
    last = matrix.type.rank - 1
    stack = tuple(range(last - 1))
    if operation.attrs["batch"] != (stack, stack):
        raise NoMatch
    matrix, x, y = (as_dtype(builder, each, dtype) for each in (matrix, left.read(builder), right.read(builder)))
    axis = last - 1 if exchanged else last
    image = emit(builder, "dot_general", matrix, y, contract=((axis,), (right.place,)), batch=(stack, stack))
    found = emit(builder, "dot_general", x, image, contract=((left.place,), (last - 1,)), batch=(stack, stack))
    return as_written(builder, operation, found) if left.x == right.x else found


def as_written(builder: Builder, operation: Operation, found: Value) -> Value:
    """The value of an operation with the derivatives of what is found for it.

    Where a sum of squares is nearly 0, x^H V g(w) V^H x is rounding of any sign, whose root is nan.
    """
    operands = [emit(builder, "stop_gradient", operand) for operand in operation.operands]
    value = builder.emit(operation.op, operands, operation.attrs)
    return emit(builder, "add", found, emit(builder, "sub", value, emit(builder, "stop_gradient", found)))


def quadratic(
    builder: Builder, operation: Operation, values: Sequence[Value], axes: Sequence[int], numbers: Value | None = None
) -> Value:
    """The sum of a product of numbers for the vectors and of two coefficients, x^H V g(w) V^H y.

    Of coefficients of several x the sum may be one for each of them, or of all. ``numbers``: a row of such numbers.
    """
    result = operation.results[0].type
    form = bilinear_form(values)
    left, right = form.pair
    squares = left.x == right.x
    if left.column not in axes or (result.dtype.kind == "c" and form.real):
        raise NoMatch
    if numbers is not None:
        left = left.weighted(Weight(numbers, (), None))
    matrix, exchanged = matrix_op(builder, left.vectors, right.vectors)
    if exchanged:  # x^T M^T y = y^T M x
        left, right = right, left
    operands = [matrix, left.read(builder), right.read(builder)]
    wide = np.result_type(result.dtype, *(operand.type.dtype for operand in operands))
    matrix, x, y = (as_dtype(builder, operand, wide) for operand in operands)
    last = matrix.type.rank - 1
    stack = tuple(range(last - 1))
    image = emit(builder, "dot_general", matrix, y, contract=((last,), (right.place,)), batch=(stack, stack))
    if left.free is None:
        attrs: dict[str, Any] = {"contract": ((left.place,), (last - 1,)), "batch": (stack, stack)}
        found = emit(builder, "dot_general", x, image, **attrs)
    else:
        x = x if left.place == last - 1 else emit(builder, "transpose", x, perm=(*stack, last, last - 1))
        found = emit(builder, "reduce_sum", emit(builder, "mul", x, image), axes=(last - 1,))
    for value, divides in form.others:
        other = as_dtype(builder, first_of(builder, value, left.column), wide)
        found = emit(builder, "div" if divides else "mul", found, other)
    others = tuple(axis - (axis > left.column) for axis in axes if axis != left.column)
    found = emit(builder, "reduce_sum", found, axes=others) if others else found
    if result.dtype.kind == "f" and found.type.dtype.kind == "c":
        if not form.real:
            raise NoMatch
        found = emit(builder, "real", found)
    if found.type.dtype != result.dtype:
        raise NoMatch
    return as_written(builder, operation, found) if squares else found


def as_dtype(builder: Builder, value: Value, dtype: Any) -> Value:
    return value if value.type.dtype == dtype else emit(builder, "cast", value, dtype=np.dtype(dtype))


def first_of(builder: Builder, value: Value, axis: int) -> Value:
    """An array that is the same along an axis without it."""
    if isinstance(value, Literal):
        shape = (*value.type.shape[:axis], *value.type.shape[axis + 1 :])
        return literal(value.value if value.splat else value.value.take(0, axis), value.type.with_shape(shape))
    starts, limits, strides = map(list, full_bounds(value.type.shape))
    limits[axis] = 1
    first = emit(builder, "slice", value, starts=tuple(starts), limits=tuple(limits), strides=tuple(strides))
    return emit(builder, "reshape", first, shape=(*first.type.shape[:axis], *first.type.shape[axis + 1 :]))


@spectral_rule("dot_general(V g(w), V^H) -> spectral(A)")
def matrix_of_vectors(operation: Operation, builder: Builder) -> Value:
    pair = [factor(operand) for operand in operation.operands]
    left, right = pair
    if left is None or right is None:
        raise NoMatch
    rank = operation.operands[0].type.rank
    stack = tuple(range(rank - 2))
    if operation.attrs["contract"] != ((left.column,), (right.column,)) or operation.attrs["batch"] != (stack, stack):
        raise NoMatch
    found, exchanged = matrix_op(builder, left, right)
    dtype = operation.results[0].type.dtype
    if found.type.dtype.kind == "f" and dtype.kind == "c":  # of a real matrix, and weights that were made complex
        found = as_dtype(builder, found, dtype)
    if found.type.dtype != dtype:
        raise NoMatch
    return emit(builder, "transpose", found, perm=(*stack, rank - 1, rank - 2)) if exchanged else found


@spectral_rule("inv(V) -> V^H")
def inverse_of_vectors(operation: Operation, builder: Builder) -> Value:
    return adjoint(builder, operation.operands[0])


@spectral_rule("solve(V, x) -> dot_general(V^H, x)")
def solved_for_vectors(operation: Operation, builder: Builder) -> Value:
    inverse, x = adjoint(builder, operation.operands[0]), plain(operation.operands[1])
    if inverse.type.rank != 2 or x.type.rank != 2 or x.type.dtype != inverse.type.dtype:
        raise NoMatch
    if x.type.shape[1] == 1:
        x = emit(builder, "reshape", x, shape=x.type.shape[:1])
    found = emit(builder, "dot_general", inverse, x, contract=((1,), (0,)), batch=((), ()))
    return found if x.type.rank == 2 else emit(builder, "reshape", found, shape=operation.results[0].type.shape)


def adjoint(builder: Builder, value: Value) -> Value:
    """The inverse of a unitary matrix of vectors, however it is written."""
    found, rank = factor(value), value.type.rank
    if found is None or found.weights or found.source.kind != "eigh" or value.type.shape[-1] != value.type.shape[-2]:
        raise NoMatch
    if value.type.shape[-1] != found.source.matrix.type.shape[-1]:
        raise NoMatch
    value = emit(builder, "transpose", value, perm=(*range(rank - 2), rank - 1, rank - 2))
    return emit(builder, "conj", value) if value.type.dtype.kind == "c" else value


@spectral_rule("dot_general(V, g(w) dot_general(V^H, x)) -> dot_general(spectral(A), x)")
def matrix_times(operation: Operation, builder: Builder) -> Value:
    contract, batch = operation.attrs["contract"], operation.attrs["batch"]
    for side in (0, 1):
        outer = factor(operation.operands[side])
        if outer is None:
            continue
        stack = tuple(range(operation.operands[side].type.rank - 2))
        found = coefficients(operation.operands[1 - side])
        if found is None or contract[side] != (outer.column,) or contract[1 - side] != (found.column,):
            continue
        if batch != (stack, stack):
            continue
        matrix, exchanged = matrix_op(builder, outer, found.vectors)
        axis = len(stack) + (0 if exchanged else 1)
        dtype = operation.results[0].type.dtype
        operands = [as_dtype(builder, operand, dtype) for operand in (matrix, found.read(builder))]
        axes = [(axis,), (found.place,)]
        if side == 1:
            operands, axes = operands[::-1], axes[::-1]
        return emit(builder, "dot_general", *operands, contract=tuple(axes), batch=(stack, stack))
    raise NoMatch


@spectral_rule("dot_general(U, concatenate(S, 0)) -> dot_general(slice(U), S)")
def times_zeros(operation: Operation, builder: Builder) -> Value:
    """Of all vectors (``full_matrices=True``), those that a rectangular diagonal matrix multiplies."""
    attrs, operands = operation.attrs, list(operation.operands)
    if len(attrs["contract"][0]) != 1 or attrs["batch"] != ((), ()):
        raise NoMatch
    for side, (axis,) in enumerate(attrs["contract"]):
        other, at = operands[1 - side], attrs["contract"][1 - side][0]
        found = before_zeros(builder, operands[side], axis) if is_whole(other) else None
        if found is None:
            continue
        operands[side], operands[1 - side] = found, first_places(builder, other, at, found.type.shape[axis])
        return builder.emit(operation.op, operands, attrs)
    raise NoMatch


def is_whole(value: Value) -> bool:
    """Whether the value is all vectors of a decomposition, those of the null space too, in some layout."""
    value = plain(value)
    while value.producer is not None and value.producer.op.name in ("transpose", "conj"):
        value = plain(value.producer.operands[0])
    return whole_origin(value) is not None and origin(value) is None


@spectral_rule("slice_set(V, mul(slice(V), c)) -> mul(V, c)")
def scaled_in_place(operation: Operation, builder: Builder) -> Value:
    """Vectors, or values, of which some are multiplied with a number in place: ``v[:, -1] *= -1``."""
    base, update = operation.operands
    column = axis_of_vectors(base)
    size = base.type.static_shape[column]
    start, end = (operation.attrs[name][column] for name in ("starts", "limits"))
    if set(operation.attrs["strides"]) != {1} or (end - start) * base.type.size != size * update.type.size:
        raise NoMatch
    number = multiple_of(builder, update, base, operation)
    ones = literal(1, ArrayType(base.type.dtype, (size,)))
    some = emit(builder, "broadcast", number, shape=(end - start,), dims=())
    row = emit(builder, "slice_set", ones, some, starts=(start,), limits=(end,), strides=(1,))
    return emit(builder, "mul", base, emit(builder, "broadcast", row, shape=base.type.shape, dims=(column,)))


def axis_of_vectors(value: Value) -> int:
    """The axis along which each number is for another vector, of vectors or values of one matrix.

    Raises:
        NoMatch: it is neither.
    """
    found = origin(value)
    if value.type.rank == 1 and found is not None and found[1] == "values":
        return 0
    vectors = factor(value) if value.type.rank == 2 else None
    if vectors is None:
        raise NoMatch
    return vectors.column


def multiple_of(builder: Builder, value: Value, base: Value, write: Operation) -> Value:
    """The number that a part of an array was multiplied with, before it is written where it was read.

    Raises:
        NoMatch: it is no such thing.
    """
    operation = without_reshapes(value).producer
    if operation is None or operation.op.name not in ("mul", "neg"):
        raise NoMatch
    for k, operand in enumerate(operation.operands):
        read = without_reshapes(operand).producer
        if (
            read is None
            or read.op.name != "slice"
            or plain(read.operands[0]) != plain(base)
            or read.attrs != write.attrs
        ):
            continue
        if operation.op.name == "neg":
            return literal(-1, base.type.with_shape(()))
        other = operation.operands[1 - k]
        if isinstance(other, Literal) and other.splat:
            return literal(other.value, base.type.with_shape(()))
        if other.producer is not None and other.producer.op.name == "broadcast" and not other.producer.attrs["dims"]:
            return other.producer.operands[0]
    raise NoMatch


def without_reshapes(value: Value) -> Value:
    for _ in range(MOST_NESTED):
        if value.producer is None or value.producer.op.name != "reshape":
            break
        value = value.producer.operands[0]
    return value


@spectral_rule("det(U) -> stop_gradient(det(U))")
def determinant_of_vectors(operation: Operation, builder: Builder) -> Value:
    """Of an orthogonal matrix it is 1 or -1, and no derivative of vectors is in it."""
    (operand,) = operation.operands
    if operand.type.dtype.kind != "f" or not is_orthogonal(operand, MOST_NESTED):
        raise NoMatch
    found = builder.emit(operation.op, [emit(builder, "stop_gradient", operand)], operation.attrs)
    return emit(builder, "stop_gradient", found)


def is_orthogonal(value: Value, depth: int) -> bool:
    """Whether a square matrix is all vectors of a decomposition, or a product of such matrices."""
    value = plain(value)
    operation = value.producer
    if operation is None or value.type.rank < 2 or value.type.shape[-1] != value.type.shape[-2] or not depth:
        return False
    if operation.op.name == "transpose":
        return is_orthogonal(operation.operands[0], depth - 1)
    if operation.op.name == "dot_general":
        stack = tuple(range(value.type.rank - 2))
        if len(operation.attrs["contract"][0]) != 1 or operation.attrs["batch"] != (stack, stack):
            return False
        return all(is_orthogonal(operand, depth - 1) for operand in operation.operands)
    if operation.op.name == "singular":
        (scalar,) = operation.regions[0].results
        square = operation.operands[0].type.shape == value.type.shape
        return square and not operation.attrs["directions"] and is_one(scalar)
    found = factor(value)
    return (
        found is not None
        and not found.weights
        and not found.chain
        and found.source.matrix.type.shape == value.type.shape
    )


@spectral_rule("select(p, mul(V, c), V) -> mul(V, select(p, c, 1))")
def scaled_or_not(operation: Operation, builder: Builder) -> Value:
    """Vectors, or values, that are multiplied with numbers where something holds."""
    holds, *both = operation.operands
    pairs = [scaled(value) for value in both]
    (base, _), (other, _) = pairs
    if holds.type.rank or plain(base) != plain(other):
        raise NoMatch
    axis_of_vectors(base)
    numbers = [literal(1, base.type) if number is None else number for _, number in pairs]
    return emit(builder, "mul", base, emit(builder, "select", holds, *numbers))


def scaled(value: Value) -> tuple[Value, Value | None]:
    """Vectors, and what all of a decomposition are multiplied with."""
    operation = value.producer
    if operation is not None and operation.op.name == "mul":
        return operation.operands[0], operation.operands[1]
    return value, None


@spectral_rule("reduce_sum(mul(g(w), V, conj(V))) -> spectral(A)")
def product_summed(operation: Operation, builder: Builder) -> Value:
    """Sums over the vectors of products that are written out."""
    return product_of_sum(builder, operation)


@spectral_rule("dot_general(g(w), mul(V, conj(V))) -> spectral(A)")
def product_contracted(operation: Operation, builder: Builder) -> Value:
    return product_of_sum(builder, operation)


@spectral_rule("reduce_sum(g(values(A))) -> spectral_sum(A)")
def sum_of_values(operation: Operation, builder: Builder) -> Value:
    """Tried after sums of products, of which vectors would be taken for weights of the values."""
    (operand,) = operation.operands
    last = operand.type.rank - 1
    axes = operation.attrs["axes"]
    if last not in axes:
        raise NoMatch
    expression = Expression(builder)
    if not expression.involved(operand, MOST_NESTED):
        raise NoMatch
    found = sum_op(expression, expression.read(operand))
    others = tuple(axis for axis in axes if axis != last)
    return emit(builder, "reduce_sum", found, axes=others) if others else found


@spectral_rule("dot_general(f(values(A)), g(values(A))) -> spectral_sum(A)")
def dot_of_values(operation: Operation, builder: Builder) -> Value:
    left, right = operation.operands
    last = left.type.rank - 1
    stack = tuple(range(last))
    if left.type != right.type or operation.attrs["contract"] != ((last,), (last,)):
        raise NoMatch
    if operation.attrs["batch"] != (stack, stack):
        raise NoMatch
    expression = Expression(builder)
    if not any(expression.involved(operand, MOST_NESTED) for operand in (left, right)):
        raise NoMatch
    scalars = [expression.read(operand) for operand in (left, right)]
    return sum_op(expression, expression.scalars.emit(REGISTRY["mul"], scalars))


def sum_op(expression: Expression, scalar: Value) -> Value:
    if expression.source is None:
        raise NoMatch
    name = "spectral_sum" if expression.source.kind == "eigh" else "singular_sum"
    if name == "singular_sum" and scalar.type.dtype.kind == "c":
        raise NoMatch
    region, arguments, indexed = expression.finish(scalar)
    operands = [expression.source.matrix, *arguments]
    return expression.builder.emit(REGISTRY[name], operands, {"indexed": indexed}, (region,))


@spectral_rule("reduce_sum(mul(V, x)) -> dot_general(V, x)")
def coefficients_summed(operation: Operation, builder: Builder) -> Value:
    return expansion_of_sum(builder, operation)


def matrix_op(builder: Builder, left: Factor, right: Factor) -> tuple[Value, bool]:
    """The matrix function that is the sum over the vectors of left times right, and whether it is to be transposed."""
    if left.source != right.source or left.chain != right.chain:
        raise NoMatch
    source = left.source
    is_complex = source.matrix.type.dtype.kind == "c"
    expression = Expression(builder, source, left.chain)
    exchanged = conjugated = False
    block = "cross"
    if source.kind == "eigh":
        if is_complex and left.conjugated == right.conjugated:
            raise NoMatch
        exchanged = is_complex and left.conjugated
    else:
        if is_complex and left.conjugated == right.conjugated:
            raise NoMatch
        same = left.part == right.part
        exchanged = is_complex and left.conjugated if same else left.part == "right"
        conjugated = is_complex and not same and (right if exchanged else left).conjugated
        block = left.part if same else "cross"
    scalar = weight_expression(expression, left.weights + right.weights, conjugated)
    if source.kind == "svd" and scalar.type.dtype.kind == "c":
        raise NoMatch
    found = function_op(expression, scalar, block)
    return emit(builder, "conj", found) if conjugated else found, exchanged


def function_op(expression: Expression, scalar: Value, block: str = "cross") -> Value:
    assert expression.source is not None
    source = expression.source
    region, arguments, indexed = expression.finish(scalar)
    attrs: dict[str, Any] = {"directions": 0, "indexed": indexed}
    if source.kind == "svd":
        attrs = {"directions": 0, "kinds": (), "block": block, "even": block != "cross", "indexed": indexed}
    op = REGISTRY["spectral" if source.kind == "eigh" else "singular"]
    return expression.builder.emit(op, [source.matrix, *arguments], attrs, (region,))
