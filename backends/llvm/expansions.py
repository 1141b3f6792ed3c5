"""Operations written as others, which have native forms, where they have none of their own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from srcgrad.backends.llvm import scalars
from srcgrad.backends.llvm.complexes import in_parts
from srcgrad.backends.llvm.factors import FACTORED, factored_once
from srcgrad.backends.llvm.indices import VIEWS
from srcgrad.backends.llvm.kinds import is_loop_type, is_plain, is_zero
from srcgrad.backends.llvm.loops import REDUCTIONS
from srcgrad.backends.llvm.parts import joined
from srcgrad.backends.llvm.placing import read_in_place
from srcgrad.backends.llvm.planning import bytes_of
from srcgrad.backends.llvm.scalars import F16, is_register
from srcgrad.backends.llvm.special import SPECIAL, Expansion, as_dtype, in_float64, of_floats
from srcgrad.backends.llvm.steps.formulas import FORMULAS, OF_FORMULAS
from srcgrad.ir.core import Attrs, Builder, Function, Literal, Operation, Region, Value, literal
from srcgrad.ir.opdef import REGISTRY, Term, broadcast_to
from srcgrad.ir.ops.dot import permuted, sides
from srcgrad.ir.ops.linalg import swapped
from srcgrad.ir.ops.matrices import emit_results
from srcgrad.ir.ops.recurrences import cut
from srcgrad.ir.passes.expand import emitted
from srcgrad.ir.passes.rewrite import AnyRegion
from srcgrad.ir.types import ArrayType, real_dtype


def matmul(a: Term, b: Term) -> Term:
    stack = tuple(range(a.rank - 2))
    axes = {"contract": ((a.rank - 1,), (b.rank - 2,)), "batch": (stack, stack)}
    return REGISTRY["dot_general"](a, b, **axes)


def conjugate(a: Term) -> Term:
    return REGISTRY["conj"](a) if a.dtype.kind == "c" else a


def transposed(a: Term) -> Term:
    return REGISTRY["transpose"](a, perm=swapped(a.rank))


def constant(like: Term, value: Any) -> Term:
    array = np.asarray(value)
    return Term(like.builder, literal(array, ArrayType(array.dtype, array.shape)))


# --- sums of one number ---------------------------------------------------------------------------
def is_sum_of_one(operation: Operation) -> bool:
    """Whether each sum of floats is of one number: loops would take it for a view."""
    type = operation.operands[0].type
    return type.dtype.kind in "fc" and all(type.static_shape[axis] == 1 for axis in operation.attrs["axes"])


def sum_of_one(operands: Sequence[Term], attrs: Attrs) -> Term:
    """The numbers themselves, of which -0.0 is 0.0."""
    (x,) = operands
    shape = tuple(size for axis, size in enumerate(x.shape) if axis not in attrs["axes"])
    found: Term = REGISTRY["reshape"](x, shape=shape)
    return found + found.like(0.0)


# --- products of vectors ---------------------------------------------------------------------------
def product_in_loops(operands: Sequence[Term], attrs: Attrs) -> Term:
    """Every product with every other one, or sums of products of elements at the same place."""
    left, right = operands
    lhs, rhs = sides(left.rank, right.rank, attrs)
    a = permuted(left, (*lhs.batch, *lhs.free, *lhs.contract))
    b = permuted(right, (*rhs.batch, *rhs.free, *rhs.contract))
    if not lhs.contract:
        shape, stack = (*a.shape, *b.shape[len(rhs.batch) :]), range(len(lhs.batch))
        b = broadcast_to(b, shape, (*stack, *range(a.rank, len(shape))))
        return broadcast_to(a, shape, tuple(range(a.rank))) * b
    found: Term = REGISTRY["reduce_sum"](a * b, axes=tuple(range(len(lhs.batch), a.rank)))
    return found


# --- pseudo-inverses ---------------------------------------------------------------------
def hermitian_pinv(operands: Sequence[Term], attrs: Attrs) -> Term:
    """By eigenvalues: those of at most ``rcond`` times the largest in size are taken for zeros."""
    (a,) = operands
    values, vectors = emit_results(REGISTRY["eigh"], [a])
    sizes = REGISTRY["abs"](values)
    axis = values.rank - 1
    largest = REGISTRY["reduce_max"](sizes, axes=(axis,)) * float(attrs["rcond"])
    large = sizes > broadcast_to(largest, sizes.shape, tuple(range(axis)))
    select = REGISTRY["select"]
    inverse = select(large, 1.0 / select(large, values, values.like(1)), values.like(0))
    columns = broadcast_to(as_dtype(inverse, a.dtype), a.shape, (*range(a.rank - 2), a.rank - 1))
    return matmul(vectors * columns, transposed(conjugate(vectors)))


# --- derivatives of determinants -----------------------------------------------------------------
def det_derivative(operands: Sequence[Term], attrs: Attrs) -> Term:
    """With A = U S V^H the directions are written in the bases of U and V, where it is a sum over permutations.

    In products of singular values those of the rows that the directions take are left out. nan where A is not finite.
    """
    a, *directions = operands
    finite = REGISTRY["reduce_and"](REGISTRY["is_finite"](a), axes=(a.rank - 2, a.rank - 1))
    known = broadcast_to(finite, a.shape, tuple(range(finite.rank)))
    select = REGISTRY["select"]
    safe = select(known, a, a.like(0))
    u, s, vh = emit_results(REGISTRY["svd"], [safe], {"full_matrices": True})
    rotated = [matmul(matmul(transposed(conjugate(u)), h), transposed(conjugate(vh))) for h in directions]
    core = mixed_discriminant(as_dtype(left_out(s, len(operands)), a.dtype), rotated)
    phase = REGISTRY["det"](u) * REGISTRY["det"](vh)
    found = matmul(matmul(conjugate(u), core), conjugate(vh))
    return select(known, broadcast_to(phase, a.shape, tuple(range(phase.rank))) * found, a.like(float("nan")))


def left_out(s: Term, order: int) -> Term:
    """For each ``order`` distinct indices, the product of the elements of ``s`` at all others; 0 if two are equal.

    It is the product over k of s[k], or of 1 where an index is k.
    """
    *stack, size = s.type.static_shape
    count = len(stack)
    shape = (*stack, *[size] * order)
    indices = np.indices((size,) * order)
    distinct = np.ones((size,) * order, bool)
    for one, other in itertools.combinations(indices, 2):
        distinct &= one != other
    dims = tuple(range(count, count + order))
    found = broadcast_to(constant(s, distinct.astype(s.dtype)), shape, dims)
    for k in range(size):
        window = [(0, length, 1) for length in stack] + [(k, k + 1, 1)]
        starts, limits, strides = zip(*window, strict=True)
        value = REGISTRY["reshape"](
            REGISTRY["slice"](s, starts=starts, limits=limits, strides=strides), shape=tuple(stack)
        )
        taken = broadcast_to(constant(s, (indices == k).any(axis=0)), shape, dims)
        factor = broadcast_to(value, shape, tuple(range(count)))
        found = found * REGISTRY["select"](taken, factor.like(1), factor)
    return found


def mixed_discriminant(products: Term, directions: Sequence[Term]) -> Term:
    """The array C for which sum(C * h) is a sum over all permutations p of rows r, and all rows.

    Its terms are sign(p) times ``products[r0, r1, …]`` times the elements of the directions, and last of h, in row r
    and column p(r).
    """
    order = len(directions) + 1
    stack = products.type.static_shape[: products.rank - order]
    count, size = len(stack), products.type.static_shape[-1]
    shape = (*stack, size, size)
    total: Term | None = None
    eye = broadcast_to(constant(products, np.eye(size, dtype=products.dtype)), shape, (count, count + 1))

    def axes(*rows: int) -> tuple[int, ...]:
        return (*range(count), *(count + row for row in rows))

    for permutation in itertools.permutations(range(order)):
        sign = (-1.0) ** sum(first > second for first, second in itertools.combinations(permutation, 2))
        term = products
        for row, (column, direction) in enumerate(zip(permutation, directions, strict=False)):
            if row == column:
                diagonal = REGISTRY["reduce_sum"](direction * eye, axes=(count + 1,))
                term = term * broadcast_to(diagonal, products.shape, axes(row))
            else:
                ordered = direction if row < column else transposed(direction)
                term = term * broadcast_to(ordered, products.shape, axes(min(row, column), max(row, column)))
        row, column = order - 1, permutation[-1]
        others = tuple(count + k for k in range(order) if k not in (row, column))
        found = REGISTRY["reduce_sum"](term, axes=others) if others else term
        found = broadcast_to(found, shape, axes(0)) * eye if row == column else transposed(found)
        found = found * sign
        total = found if total is None else total + found
    assert total is not None
    return total


# --- derivatives of functions of matrices --------------------------------------------------------
def matrix_function_derivative(operands: Sequence[Term], attrs: Attrs) -> Term:
    """From the function of [[A, H], [0, A]], with H scaled to the size of A."""
    a, h = operands
    axes, size = (a.rank - 2, a.rank - 1), a.type.static_shape[-1]
    select = REGISTRY["select"]
    sizes = [REGISTRY["reduce_max"](REGISTRY["abs"](x), axes=axes) for x in (a, h)]
    known = (sizes[0] > 0.0) & (sizes[1] > 0.0)
    ratio = select(known, sizes[1], sizes[1].like(1)) / select(known, sizes[0], sizes[0].like(1))
    scale = broadcast_to(as_dtype(ratio, a.dtype), a.shape, tuple(range(ratio.rank)))
    join = REGISTRY["concatenate"]
    above = join(a, h / scale, axis=axes[1])
    below = join(a.like(0), a, axis=axes[1])
    blocks = join(above, below, axis=axes[0])
    large = is_large_power(attrs)
    found = large_power([blocks], attrs) if large else REGISTRY["matrix_function"](blocks, **attrs)
    starts = (*[0] * (a.rank - 2), 0, size)
    limits = (*a.type.static_shape[:-2], size, 2 * size)
    part: Term = REGISTRY["slice"](found, starts=starts, limits=limits, strides=(1,) * a.rank)
    return part * scale


def large_power(operands: Sequence[Term], attrs: Attrs) -> Term:
    """A whole power, by squares of the matrix or its inverse, times one of an exponent up to 1/2."""
    (a,), exponent = operands, float(attrs["exponent"])
    whole = round(exponent)
    found: Term = REGISTRY["matrix_function"](a, kind="power", exponent=exponent - whole)
    square = a if whole > 0 else REGISTRY["inv"](a, strict=True)
    count = abs(whole)
    while True:
        if count % 2:
            found = matmul(found, square)
        count //= 2
        if not count:
            return found
        square = matmul(square, square)


def is_large_power(attrs: Attrs) -> bool:
    return bool(attrs["kind"] == "power" and abs(attrs["exponent"]) > 1)


# --- what is put together of many ------------------------------------------------------------------
WIDE: Final = 64
"""The operands from which a concatenation is one of several: LLVM takes quadratic time for functions of more."""


def is_wide(operation: Operation) -> bool:
    return len(operation.operands) > WIDE


def put_together(operands: Sequence[Term], attrs: Attrs) -> Term:
    """The concatenation of concatenations of some each, in levels."""
    pieces = list(operands)
    while len(pieces) > 1:
        together = [pieces[k : k + WIDE] for k in range(0, len(pieces), WIDE)]
        pieces = [some[0] if len(some) == 1 else REGISTRY["concatenate"](*some, **attrs) for some in together]
    return pieces[0]


# --- running logarithms ----------------------------------------------------------------------------
def cumlogsumexp(operands: Sequence[Term], attrs: Attrs) -> Term:
    """By the largest so far, m, and sums of exp(x - m): what waits for the element before is one product and sum."""
    (x,), axis = operands, attrs["axis"]
    select, most = REGISTRY["select"], REGISTRY["cummax"](x, axis=axis)
    parts = [REGISTRY["slice"](most, **cut(most, axis, 0, stop)) for stop in (1, x.type.static_shape[axis] - 1)]
    before = REGISTRY["concatenate"](*parts, axis=axis)

    def share(a: Term) -> Term:
        found: Term = select(a == most, a.like(1), REGISTRY["exp"](a - most))
        return found

    total = REGISTRY["linear_recurrence"](share(x), share(before), axis=axis, reverse=False)
    found: Term = select(total == 1.0, most, most + REGISTRY["log"](total))
    return found


# --- convolution -----------------------------------------------------------------------------------
FEW: Final = 16
"""The elements of a window that are sums of products each, in one pass together."""


def few_sums(operands: Sequence[Term], attrs: Attrs) -> Term:
    """Element o of the window is the sum over j of long[start + o - j] short[j], as far as both reach."""
    short, long = operands
    (start,), (count,) = attrs["starts"], attrs["sizes"]
    size, length = short.type.size, long.type.size
    backwards, zeros = REGISTRY["reverse"](long, axes=(0,)), short.like(0)
    found = []
    for o in range(start, start + count):
        low, high = max(0, o - length + 1), min(size, o + 1)
        shift = length - 1 - o  # long[o - j] is element shift + j from the end
        if low >= high:
            found.append(REGISTRY["slice"](zeros, **cut(zeros, 0, 0, 1)))
            continue
        product = REGISTRY["slice"](short, **cut(short, 0, low, high))
        product = product * REGISTRY["slice"](backwards, **cut(backwards, 0, low + shift, high + shift))
        whole = REGISTRY["slice_set"](zeros, product, **cut(zeros, 0, low, high))
        found.append(REGISTRY["reshape"](REGISTRY["reduce_sum"](whole, axes=(0,)), shape=(1,)))
    joined: Term = REGISTRY["concatenate"](*found, axis=0)
    return joined


def is_few_sums(operation: Operation) -> bool:
    """Whether the window of two long vectors is short, as in the derivative in a filter."""
    types, window = [value.type for value in operation.operands], operation.attrs["sizes"]
    if types[0].rank != 1 or not of_floats(operation) or not 0 < window[0] <= FEW:
        return False
    return min([type.size for type in types]) >= 32 * FEW


# --- which ---------------------------------------------------------------------------------------
def is_complex(operation: Operation) -> bool:
    return operation.results[0].type.dtype.kind == "c"


def is_hermitian(operation: Operation) -> bool:
    return bool(operation.attrs["hermitian"])


def has_many_terms(operation: Operation) -> bool:
    """Whether there is no step: of more than three rows several directions, or complex numbers."""
    rows, order = operation.operands[0].type.static_shape[-1], len(operation.operands)
    return 3 < rows >= order and (order > 1 or is_complex(operation))


def is_no_exponential(operation: Operation) -> bool:
    return bool(operation.attrs["kind"] != "exp")


def is_loop_product(operation: Operation) -> bool:
    """Whether each number is read once for each result: there is nothing that a product of matrices has in cache.

    So it is one loop with what makes its operands, what reads it, and other such products.
    """
    left, right = (value.type for value in operation.operands)
    if left.dtype.kind not in "fc" or not is_register(real_dtype(left.dtype)) or left.dtype == F16:
        return False
    lhs, rhs = sides(left.rank, right.rank, operation.attrs)
    return not lhs.contract or not (lhs.free or rhs.free)


EXPANSIONS: Final[Mapping[str, tuple[Callable[[Operation], bool], Expansion]]] = {
    "concatenate": (is_wide, put_together),
    "convolve": (is_few_sums, few_sums),
    "cumlogsumexp": (of_floats, in_float64(cumlogsumexp)),
    "det_derivative": (has_many_terms, det_derivative),
    "dot_general": (is_loop_product, product_in_loops),
    "matrix_function": (lambda operation: is_large_power(operation.attrs), large_power),
    "matrix_function_derivative": (is_no_exponential, matrix_function_derivative),
    "pinv": (is_hermitian, hermitian_pinv),
    "reduce_sum": (is_sum_of_one, sum_of_one),
    **SPECIAL,
}
"""Ops, of which operations there is no step, and what these are."""


_IN_LOOPS: Final = frozenset({*scalars.EMITTED, "cast", "complex", "integer_pow"} | REDUCTIONS | VIEWS)
"""What groups compute, wherever they can."""
_AS_IT_IS: Final = _IN_LOOPS - EXPANSIONS.keys()
"""What of that is never written as something else."""
FILLED: Final = 1 << 14
"""The bytes of one number over and over from which a loop writes them."""


def expands(operation: Operation) -> bool:
    found = EXPANSIONS.get(operation.op.name)
    if found is None or not all(is_plain(value.type) for value in operation.operands):
        return False
    return bool(operation.results[0].type.size) and found[0](operation)


def written_out(function: Function) -> Function:
    """The function with sums of parts as one array, and the operations of `EXPANSIONS` written as others.

    In its regions too.
    """
    found = [operation for operation in function.walk() if operation.op.name not in _AS_IT_IS]
    if any(operation.op.name == "slice_set" for operation in found):
        function = read_in_place(joined(function))
    if any(is_filled(value) for operation in found for value in operation.operands if reads_memory(operation)):
        function = filled(function)
    if any(map(expands, found)):
        function = expanded(function)
    made = (value for operation in function.walk() for value in operation.results)
    if any(value.type.dtype.kind == "c" for value in itertools.chain(function.params, made)):
        function = in_parts(function)
    return factored_once(function) if sum([operation.op.name in FACTORED for operation in found]) > 1 else function


def reads_memory(operation: Operation) -> bool:
    """Whether it reads what is many times one number from memory, as the steps do that are no formulas."""
    if operation.op.name in FORMULAS:
        return any(value.type.dtype not in OF_FORMULAS for value in operation.operands)
    return operation.op.name not in _IN_LOOPS


def is_filled(value: Value) -> bool:
    """Whether it is many times the same number, which is no zero: as a constant it would be a long text."""
    if not isinstance(value, Literal) or not value.splat or not is_loop_type(value.type):
        return False
    return bytes_of(value.type) > FILLED and not is_zero(value)


def loop_of(builder: Builder, value: Value) -> Value:
    """A loop that gives a constant: its product with 1, which has the same bits."""
    name, other = ("logical_or", False) if value.type.dtype.kind == "b" else ("mul", 1)
    return builder.emit(REGISTRY[name], (value, literal(other, value.type)))


def filled(region: AnyRegion) -> AnyRegion:
    """The region with loops that fill arrays for what is no loop, in its regions too."""

    def emit(builder: Builder, operation: Operation, operands: list[Value]) -> Sequence[Value]:
        if reads_memory(operation):
            operands = [loop_of(builder, value) if is_filled(value) else value for value in operands]
        regions: tuple[Region, ...] = tuple([filled(inner) for inner in operation.regions])
        return builder.emit_operation(operation.op, operands, operation.attrs, regions).results

    return emitted(region, emit)


def expanded(region: AnyRegion) -> AnyRegion:
    def emit(builder: Builder, operation: Operation, operands: list[Value]) -> Sequence[Value]:
        if expands(operation):
            terms = [Term(builder, value) for value in operands]
            return [EXPANSIONS[operation.op.name][1](terms, operation.attrs).value]
        regions: tuple[Region, ...] = tuple([expanded(inner) for inner in operation.regions])
        return builder.emit_operation(operation.op, operands, operation.attrs, regions).results

    return emitted(region, emit)
