"""Products of arrays as steps: loops over the batch, and in them registers, or BLAS where matrices are large.

Axes that follow each other in memory are taken as one. An operand whose axes cannot be taken for those of a matrix,
with neighbours along one of them, is first copied to scratch memory in a better order. Rows of C are columns for BLAS:
it computes the transposed product, of the operands exchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Final, NamedTuple

from srcgrad.backends.llvm.emitter import BOOL, Number
from srcgrad.backends.llvm.indices import strides_of
from srcgrad.backends.llvm.steps import Step, StepWriter
from srcgrad.backends.llvm.steps.cells import Cells, cells
from srcgrad.backends.llvm.steps.matrices import Matrix
from srcgrad.backends.llvm.steps.packed_products import is_available, write_packed
from srcgrad.backends.llvm.steps.small_products import Product, write_product
from srcgrad.backends.llvm.steps.writer import LETTERS, MOST, Writer
from srcgrad.backends.llvm.target import Target
from srcgrad.ir.core import Operation
from srcgrad.ir.ops.dot import Axes, Side, sides
from srcgrad.ir.types import ArrayType

SMALL: Final = 16
"""The largest size of matrices whose products are always computed in registers."""
MODERATE: Final = 2**18
"""The most multiplications of a product of matrices for which registers are faster than BLAS, which copies operands."""
UNPACKED: Final = 2**22
"""The same with registers of 64 bytes, of which not every BLAS makes use: our own code comes after (`write_packed`)."""
NARROW: Final = 64
UNPACKED_LONGER: Final = 2**24
"""The same of complex numbers, for which there is BLAS only, and of few rows or columns, too few for the copies."""
SMALL_VECTOR: Final = 8192
"""The most elements of a matrix whose product with a vector is computed in registers."""
SMALL_DOT: Final = 8192
"""The longest sum over two vectors that is computed in registers."""


def write_dot_general(operation: Operation, name: str, target: Target) -> Step | None:
    w = Writer(target)
    types = [operand.type for operand in operation.operands]
    how = cells(w, types[0].dtype)
    if how is None or any(type.size > MOST for type in (*types, operation.results[0].type)):
        return None
    left, right = sides(types[0].rank, types[1].rank, operation.attrs)
    result = operation.results[0].type
    depth = prod(types[0].static_shape[axis] for axis in left.contract)
    if not result.size or not depth:
        w.clear("%out0", result.size * result.dtype.itemsize)
        return w.step(name, operation)
    a, b = placed(how, types, left, right)
    rows = prod(types[0].static_shape[axis] for axis in left.free)
    columns = prod(types[1].static_shape[axis] for axis in right.free)
    sizes = [types[0].static_shape[axis] for axis in left.batch]
    size = how.size
    steps = [stride * rows * columns * size for stride in strides_of(sizes)]
    adds = bool(left.contract or left.batch)
    sizes, moves = joined(sizes, [list(a.batch), list(b.batch), steps])

    alike = left == right and types[0] == types[1]

    def body(indices: list[Number]) -> None:
        def moved(matrix: Matrix, strides: Sequence[int]) -> Matrix:
            return matrix._replace(pointer=w.at(matrix.pointer, 0, *zip(indices, strides, strict=True)))

        c = moved(Matrix("%out0", columns * size, size), moves[2])
        one, other = moved(a.matrix, moves[0]), moved(b.matrix, moves[1])
        extents = [(one.pointer, rows * depth * size), (other.pointer, columns * depth * size)]
        after = [
            (w.at(pointer, nbytes), nbytes)
            for (pointer, nbytes), strides in zip(extents, moves, strict=False)
            if strides and strides[-1] == nbytes  # the next one lies behind it
        ]
        write_matrix_product(how, Product(rows, columns, depth, one, other, c, adds, after=tuple(after)), alike)

    w.nest(sizes, body)
    return w.step(name, operation)


# --- operands as matrices ----------------------------------------------------------------------
class Operand(NamedTuple):
    """A stack of matrices: the first of them, and the bytes from one to the next along each batched axis."""

    matrix: Matrix
    batch: tuple[int, ...]


def placed(how: Cells, types: Sequence[ArrayType], left: Side, right: Side) -> tuple[Operand, Operand]:
    """Both operands, rows and columns in the order of the product; summed axes in the order that saves most copying."""
    pairs = list(zip(left.contract, right.contract, strict=True))
    found: list[tuple[int, Axes, Axes]] = []
    for key in range(2):
        order = sorted(pairs, key=lambda pair: pair[key])
        own, other = tuple(pair[0] for pair in order), tuple(pair[1] for pair in order)
        cost = sum(
            type.size * (as_matrix(type, side.free, axes) is None)
            for type, side, axes in zip(types, (left, right), (own, other), strict=True)
        )
        found.append((cost, own, other))
    _, own, other = min(found, key=lambda item: item[0])
    a = operand(how, "%in0", types[0], left, own)
    b = operand(how, "%in1", types[1], right, other)
    return a, b._replace(matrix=b.matrix.transposed)


def operand(how: Cells, pointer: str, type: ArrayType, side: Side, summed: Axes) -> Operand:
    """An operand as matrices with rows along the free axes and columns along ``summed``, copied if need be."""
    found = as_matrix(type, side.free, summed)
    size, shape = type.dtype.itemsize, type.static_shape
    strides = strides_of(shape)
    if found is not None:
        return Operand(Matrix(pointer, found[0] * size, found[1] * size), tuple(strides[k] * size for k in side.batch))
    w = how.w
    order = (*side.batch, *side.free, *summed)
    copied = w.reserve(type.size * size)
    target = strides_of([shape[axis] for axis in order])
    sizes, (out, into) = joined([shape[k] for k in order], [[strides[k] for k in order], list(target)])

    def body(indices: list[Number]) -> None:
        source, place = (
            w.at(start, 0, *[(index, stride * size) for index, stride in zip(indices, moves, strict=True)])
            for start, moves in ((pointer, out), (copied, into))
        )
        w.copy(place, source, size)

    w.nest(sizes, body)
    depth = prod(shape[axis] for axis in summed)
    return Operand(Matrix(copied, depth * size, size), tuple(stride * size for stride in target[: len(side.batch)]))


def as_matrix(type: ArrayType, free: Axes, summed: Axes) -> tuple[int, int] | None:
    """The elements from row to row and from column to column; None where there is no such matrix.

    Neighbours are along one of the two, if both have several elements.
    """
    shape = type.static_shape
    strides = strides_of(shape)
    found = []
    for axes in (free, summed):
        sizes, (moves,) = joined([shape[axis] for axis in axes], [[strides[axis] for axis in axes]])
        if len(sizes) > 1:
            return None
        found.append(moves[0] if sizes else 0)
    row, column = found
    if row and column and 1 not in found:
        return None
    extent = prod(shape[axis] for axis in summed)
    return row or max(extent * column, 1), column or 1


def joined(sizes: Sequence[int], moves: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """Loops without those of one trip, and with neighbours as one where every array goes on from one to the next."""
    found: list[int] = []
    strides: list[list[int]] = [[] for _ in moves]
    for axis, size in enumerate(sizes):
        if size == 1:
            continue
        if found and all(own[-1] == move[axis] * size for own, move in zip(strides, moves, strict=True)):
            found[-1] *= size
            for own, move in zip(strides, moves, strict=True):
                own[-1] = move[axis]
        else:
            found.append(size)
            for own, move in zip(strides, moves, strict=True):
                own.append(move[axis])
    return found, strides


# --- one product of matrices -------------------------------------------------------------------
def write_matrix_product(how: Cells, product: Product, alike: bool) -> None:
    """Registers, a dot product, a product with a vector, or of large matrices.

    ``alike``: the operands have one shape and the same axes are summed, so that of one array it is a product with the
    transposed matrix.
    """
    rows, columns, depth = product.rows, product.columns, product.depth
    if how.dtype.name not in LETTERS or not product.adds or is_small(how, product):
        write_product(how, product)
    elif rows == columns == 1 and how.dtype.kind == "f":
        write_dot(how, product)
    elif rows == 1:
        write_matvec(how, columns, depth, product.b, product.a.transposed, product.c.pointer)
    elif columns == 1:
        write_matvec(how, rows, depth, product.a.transposed, product.b, product.c.pointer)
    elif is_available(how.w.target, how.dtype):
        write_packed(how.w, how.dtype, product, alike and product.a[1:] == product.b.transposed[1:])
    elif alike and product.a[1:] == product.b.transposed[1:] and how.w.scratch == 0:
        w = how.w
        one, two, after = (w.label(stem) for stem in ("one", "two", "after"))
        same = Number(w.emit(f"icmp eq ptr {product.a.pointer}, {product.b.pointer}"), BOOL, 1)
        w.branch(same, one, two)
        w.start(one)
        write_gram(how, product)
        w.jump(after)
        w.start(two)
        write_gemm(how, product)
        w.jump(after)
        w.start(after)
    else:
        write_gemm(how, product)


def is_small(how: Cells, product: Product) -> bool:
    """Whether registers are faster than a call."""
    rows, columns, depth = product.rows, product.columns, product.depth
    if rows == columns == 1:
        return depth <= SMALL_DOT
    if rows == 1 or columns == 1:
        most = SMALL_VECTOR
        return max(rows, columns) * depth <= most
    if depth == 1:
        return True
    if rows * columns * depth * how.registers <= most_unpacked(how, product):
        return True
    if depth > SMALL:
        return max(rows, columns) <= SMALL and product.b.column == product.a.row == how.size
    return columns <= SMALL or (rows <= SMALL and product.b.column == how.size)


def most_unpacked(how: Cells, product: Product) -> int:
    """The most multiplications for which a product of matrices is computed in registers."""
    if how.w.target.vector_bytes < 64:
        return MODERATE
    narrow = min(product.rows, product.columns) <= NARROW and product.b.column == how.size
    return UNPACKED_LONGER if narrow or how.registers == 2 else UNPACKED


def write_dot(how: Cells, product: Product) -> None:
    w, size = how.w, how.size
    a, b = product.a, product.b
    found = w.call(
        f"{LETTERS[how.dtype.name]}dot",
        w.integer_at(product.depth),
        a.pointer, w.integer_at(a.column // size), b.pointer, w.integer_at(b.row // size),
        result=how.dtype,
    )  # fmt: skip
    assert found is not None
    w.store(found, product.c.pointer)


def write_matvec(how: Cells, count: int, depth: int, matrix: Matrix, vector: Matrix, result: str) -> None:
    """The sums over k of ``matrix[k, j] * vector[k]``, with ``vector`` in a column.

    The result is cleared before it is scaled by 0: what it held might be nan.
    """
    w, size, dtype = how.w, how.size, how.dtype
    if matrix.column == size or count == 1:
        trans, rows, columns, leading = "N", count, depth, matrix.row
    else:
        trans, rows, columns, leading = "T", depth, count, matrix.column
    w.clear(result, count * size)
    w.call(
        f"{LETTERS[dtype.name]}gemv",
        w.letter_at(trans), w.integer_at(rows), w.integer_at(columns),
        w.number_at(1, dtype), matrix.pointer, w.integer_at(max(leading // size, rows)),
        vector.pointer, w.integer_at(vector.row // size), w.number_at(0, dtype), result, w.integer_at(1),
    )  # fmt: skip


def write_gram(how: Cells, product: Product) -> None:
    """The product of a matrix with its transposed one, by half of the work: one triangle, and then the other."""
    w, size, dtype, rows = how.w, how.size, how.dtype, product.rows
    trans, leading = ("T", product.a.row) if product.a.column == size else ("N", product.a.column)
    w.call(
        f"{LETTERS[dtype.name]}syrk",
        w.letter_at("L"), w.letter_at(trans), w.integer_at(rows), w.integer_at(product.depth), w.number_at(1, dtype),
        product.a.pointer, w.integer_at(leading // size), w.number_at(0, dtype), product.c.pointer, w.integer_at(rows),
    )  # fmt: skip

    def mirror(i: Number) -> None:
        def copy(j: Number) -> None:
            source = w.at(product.c.pointer, 0, (i, product.c.row), (j, size))
            w.copy(w.at(product.c.pointer, 0, (j, product.c.row), (i, size)), source, size)

        w.loop(rows, copy, w.integer("add", i, 1))

    w.loop(rows - 1, mirror)


def write_gemm(how: Cells, product: Product) -> None:
    w, size, dtype = how.w, how.size, how.dtype
    rows, columns, depth = product.rows, product.columns, product.depth

    def given(matrix: Matrix, width: int) -> tuple[str, str, str]:
        """Whether BLAS is to transpose a matrix of C with rows of ``width``, the pointer, and the leading dimension."""
        if matrix.column == size:
            return w.letter_at("N"), matrix.pointer, w.integer_at(max(matrix.row // size, width))
        return w.letter_at("T"), matrix.pointer, w.integer_at(matrix.column // size)

    right, b, leading_b = given(product.b, columns)
    left, a, leading_a = given(product.a, depth)
    one, zero = w.number_at(1, dtype), w.number_at(0, dtype)
    shape = [w.integer_at(size) for size in (columns, rows, depth)]
    width = w.integer_at(columns)
    w.call(
        f"{LETTERS[dtype.name]}gemm",
        right, left, *shape, one, b, leading_b, a, leading_a, zero, product.c.pointer, width,
    )  # fmt: skip


WRITERS: Final[Mapping[str, StepWriter]] = {"dot_general": write_dot_general}
