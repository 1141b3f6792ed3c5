"""Linear systems of banded matrices, in time and memory that grow with the bands alone.

``bands[..., above + i - j, j]`` is the element of row i and column j, as LAPACK and SciPy keep such matrices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from srcgrad.ir.core import Attrs, literal
from srcgrad.ir.errors import DTypeError, ShapeError
from srcgrad.ir.opdef import LinearEmitter, Sample, Tangent, Term, Zero, require_arity
from srcgrad.ir.ops.linalg import LAPACK_DTYPES, Solver
from srcgrad.ir.ops.matrices import MatrixAlgebra
from srcgrad.ir.types import ArrayType


def sheared(algebra: MatrixAlgebra, x: Any, axis: int, offset: int) -> Any:
    """Each row along ``axis`` moved by one more than the row before: found[r, j] = x[r, j + r - offset], 0 outside.

    Rows of n elements are written into longer ones, with ``offset`` zeros before; read as rows of one element more,
    each begins one element later in its own.
    """
    shape = x.type.static_shape
    rows, size = shape[axis : axis + 2]
    width = size + rows - 1
    if not size:
        return x

    def slices(shape: tuple[int, ...], *bounds: tuple[int, int]) -> dict[str, tuple[int, ...]]:
        found = [(0, size) for size in shape]
        found[axis : axis + len(bounds)] = bounds
        return {
            "starts": tuple(start for start, _ in found),
            "limits": tuple(limit for _, limit in found),
            "strides": (1,) * len(found),
        }

    def reshaped(x: Any, *sizes: int) -> Any:
        rest = x.type.static_shape[axis + (1 if len(sizes) == 2 else 2) :]
        return algebra.apply("reshape", [x], {"shape": (*shape[:axis], *sizes, *rest)})

    long = x.type.with_shape((*shape[:axis], rows + 1, width, *shape[axis + 2 :]))
    base: Any = Term(algebra.builder, literal(0, long)) if isinstance(x, Term) else Zero(long)
    place = slices(long.static_shape, (0, rows), (offset, offset + size))
    flat = reshaped(algebra.apply("slice_set", [base, x], place), (rows + 1) * width)
    flat = algebra.apply("slice", [flat], slices(flat.type.static_shape, (0, rows * (width + 1))))
    found = reshaped(flat, rows, width + 1)
    return algebra.apply("slice", [found], slices(found.type.static_shape, (0, rows), (0, size)))


def reversed_rows(algebra: MatrixAlgebra, x: Any, axis: int) -> Any:
    return algebra.apply("reverse", [x], {"axes": (axis,)})


def transposed_bands(algebra: MatrixAlgebra, bands: Any, below: int) -> Any:
    """The bands of the transposed matrix, which has as many above as this one has below."""
    axis = bands.type.rank - 2
    return sheared(algebra, reversed_rows(algebra, bands, axis), axis, below)


def conjugated(algebra: MatrixAlgebra, x: Any) -> Any:
    return algebra.apply("conj", [x]) if x.type.dtype.kind == "c" else x


def all_bands(algebra: MatrixAlgebra, half: Any) -> Any:
    """The bands of the Hermitian matrix of which those above the diagonal, and the diagonal, are given."""
    above = half.type.static_shape[-2] - 1
    diagonal = algebra.real_part(algebra.part(half, rows=(above, above + 1)))
    if not above:
        return diagonal
    turned = algebra.part(transposed_bands(algebra, half, 0), rows=(1, above + 1))
    return algebra.join([algebra.part(half, rows=(0, above)), diagonal, conjugated(algebra, turned)], -2)


def product(algebra: MatrixAlgebra, bands: Any, right: Term, below: int) -> Any:
    """The product of a banded matrix, a tangent, with columns: y[i] sums bands[r, j] x[j] with j = i - r + above."""
    axis = right.rank - 2
    shape = (*bands.type.static_shape, right.type.static_shape[-1])
    dims = tuple(range(axis + 2))
    numbers = algebra.apply("broadcast", [bands], {"shape": shape, "dims": dims})
    columns = algebra.apply("broadcast", [right], {"shape": shape, "dims": (*dims[:axis], axis + 1, axis + 2)})
    terms = reversed_rows(algebra, algebra.apply("mul", [numbers, columns]), axis)
    return algebra.apply("reduce_sum", [sheared(algebra, terms, axis, below)], {"axes": (axis,)})


class BandedSolve(Solver):
    """x with A x = b for stacks of banded matrices A, of which all bands are given, and b.

    With ``definite``, A is Hermitian and positive definite: of its bands, ``above`` those above the diagonal and the
    diagonal are given, and of the diagonal only the real part is read. LinAlgError if A is singular, or is not positive
    definite; without ``strict`` all of x is nan then. What of the bands lies outside the matrix is not read.
    """

    helpers: ClassVar[tuple[str, ...]] = ("banded_solve",)

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 2)
        bands, right = types
        if right.dtype != bands.dtype or bands.dtype.name not in LAPACK_DTYPES:
            raise DTypeError(f"{self.name}: {bands} and {right} are not of one dtype that LAPACK has")
        below, above = attrs["below"], attrs["above"]
        rows = 1 + above + (0 if attrs["definite"] else below)
        if attrs["definite"] and below != above:
            raise ShapeError(f"{self.name}: a Hermitian matrix has not {below} bands below and {above} above")
        if bands.rank < 2 or bands.shape[-2] != rows:
            raise ShapeError(f"{self.name}: {bands} are not {rows} bands")
        if right.rank != bands.rank or right.shape[:-2] != bands.shape[:-2] or right.shape[-2] != bands.shape[-1]:
            raise ShapeError(f"{self.name}: {right} does not fit the bands {bands}")
        return right

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        options = ", ".join(f"{name}={attrs[name]}" for name in ("below", "above", "definite", "strict"))
        return f"banded_solve({', '.join(operands)}, {options})"

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        """x' = A^-1 (b' - A' x)."""
        change, total = tangents
        if not isinstance(change, Zero):
            algebra = MatrixAlgebra(s, operands[0].builder)
            bands = all_bands(algebra, change) if attrs["definite"] else change
            total = s.add(total, s.neg(product(algebra, bands, results[0], attrs["below"])))
        return (s.apply(self, [operands[0], total], attrs),)

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        bands = operands[0]
        if isinstance(bands, Zero):
            return (None, None)
        algebra = MatrixAlgebra(s, bands.builder)
        if attrs["definite"]:
            return (None, s.apply(self, [conjugated(algebra, bands), cotangents[0]], attrs))
        turned = {**attrs, "below": attrs["above"], "above": attrs["below"]}
        return (None, s.apply(self, [transposed_bands(algebra, bands, attrs["below"]), cotangents[0]], turned))

    def samples(self) -> Iterator[Sample]:
        bands = np.array([[9.0, -0.5, 0.25, 1.0], [2.0, 3.0, -4.0, 2.5], [1.5, -0.75, 0.5, 7.0]])
        right = np.array([[1.0, -2.0], [0.5, 0.25], [3.0, 1.0], [-1.0, 0.75]])
        half = np.array([[0.0, 0.5, -0.25, 1.0], [2.0, 3.0, 4.0, 2.5]])
        one = {"below": 1, "above": 1, "definite": False, "strict": True}
        definite = {**one, "definite": True}
        raised, turn = np.array([[0.0], [3.0], [0.0]]), 1 + 0.5j * np.arange(4)
        more = np.stack([0.5 * half[0, ::-1], half[0], half[1] + 3.0])
        five = np.concatenate([bands, bands])[:5] + 6.0 * (np.arange(5) == 2)[:, None]
        yield Sample((bands, right), one, label="tridiagonal")
        yield Sample((bands[::-1] + raised[::-1] + 1.0, right[:, :1]), {**one, "below": 0, "above": 2}, label="above")
        yield Sample((bands + 4.0, right), {**one, "below": 2, "above": 0}, label="below")
        yield Sample((bands[:2], right), {**one, "below": 0}, label="one above")
        yield Sample((bands[1:2], right), {**one, "below": 0, "above": 0}, label="diagonal")
        yield Sample((np.stack([bands, bands[::-1] + raised]), np.stack([right, right - 1.0])), one, label="stack")
        yield Sample((five, right), {**one, "below": 2, "above": 2}, label="two by two")
        yield Sample((half, right), definite, label="definite")
        yield Sample((more, right[:, :1]), {**definite, "below": 2, "above": 2}, label="definite, two")
        yield Sample((half[1:], right), {**definite, "below": 0, "above": 0}, label="definite, diagonal")
        yield Sample((half * turn, right * (1 - 2j)), definite, label="definite, complex")
        yield Sample((bands * turn, right * (1 - 2j)), one, label="complex")
        yield Sample((bands.astype(np.float32), right.astype(np.float32)), one, label="float32")
        yield Sample((half.astype(np.float32), right.astype(np.float32)), definite, label="definite, float32")
        yield Sample((bands[:, :1], right[:1]), one, label="one row")
        yield Sample((np.zeros((3, 0)), np.zeros((0, 2))), one, label="empty")
        yield Sample((bands, np.zeros((4, 0))), one, label="no columns")
        yield Sample((0 * bands, right), {**one, "strict": False}, smooth=False, label="singular")
        yield Sample((-half, right), {**definite, "strict": False}, smooth=False, label="indefinite")
