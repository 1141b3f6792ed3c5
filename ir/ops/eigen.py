"""Eigenvalues, singular values and their vectors, of stacks of matrices.

First derivatives: M. B. Giles, Collected matrix derivative results (2008); for singular vectors and their phases also
Z.-Q. Wan and S.-X. Zhang, Automatic differentiation for complex valued SVD (2019).

Vectors have a derivative only where their value is simple. Where values are equal, the terms that couple the vectors of
equal values contribute 0. That is right for no function in particular; functions that are smooth at equal values are
recognised before they are differentiated (``ir/passes/spectral.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from srcgrad.ir.core import NO_ATTRS, Attrs, Operation, Region, Value, zeros
from srcgrad.ir.errors import DTypeError, InternalError, ShapeError
from srcgrad.ir.opdef import (
    REGISTRY,
    LinearEmitter,
    Op,
    Sample,
    Tangent,
    Term,
    Zero,
    broadcast_to,
    require_arity,
)
from srcgrad.ir.ops.complexes import as_dtype
from srcgrad.ir.ops.generate import iota
from srcgrad.ir.ops.linalg import (
    LAPACK_DTYPES,
    compare_indices,
    from_lower,
    matmul,
    matrix_transpose,
    require_matrices,
    transposed,
)
from srcgrad.ir.types import INT64, ArrayType, Size, complex_dtype, real_dtype

Array = np.ndarray[Any, Any]


def adjoint(matrix: Term) -> Term:
    """The conjugate transpose."""
    found = transposed(matrix)
    return REGISTRY["conj"](found) if found.dtype.kind == "c" else found


def along(vector: Term, matrix: Term, axis: int) -> Term:
    """Numbers for the columns (``axis`` -1) or the rows (-2) of ``matrix``, repeated to its shape and in its dtype."""
    if vector.dtype != matrix.dtype:
        vector = REGISTRY["cast"](vector, dtype=matrix.dtype)
    return spread(vector, matrix, axis)


def spread(vector: Term, matrix: Term, axis: int) -> Term:
    """As `along`, in the dtype that the numbers have."""
    return broadcast_to(vector, matrix.shape, (*range(matrix.rank - 2), matrix.rank + axis))


def column_sums(s: LinearEmitter, tangent: Tangent) -> Tangent:
    return s.apply(REGISTRY["reduce_sum"], [tangent], {"axes": (tangent.type.rank - 2,)})


def real_part(s: LinearEmitter, tangent: Tangent) -> Tangent:
    return s.apply(REGISTRY["real"], [tangent]) if tangent.type.dtype.kind == "c" else tangent


def rounding(values: Term, size: int) -> Term:
    """How much of the values of a matrix may be rounding errors, for each value: a few ulp of the largest one."""
    largest = REGISTRY["reduce_max"](REGISTRY["abs"](values), axes=(values.rank - 1,))
    error = largest * (2.0 * size * float(np.finfo(largest.dtype).eps))
    return broadcast_to(error, values.shape, tuple(range(values.rank - 1)))


def safe_inverse(x: Term, valid: Term) -> Term:
    """1/x where ``valid``, else 0, without a division by zero on the way."""
    select = REGISTRY["select"]
    return select(valid, 1.0 / select(valid, x, x.like(1)), x.like(0))


def inverse_gaps(values: Term, matrix: Term, size: int) -> Term:
    """In row i and column j 1/(values[j] - values[i]), 0 where the two are equal to rounding."""
    rows, columns = spread(values, matrix, -2), spread(values, matrix, -1)
    gaps = columns - rows
    error = spread(rounding(values, size), matrix, -1)
    size_of_gap = REGISTRY["abs"](gaps)
    return safe_inverse(gaps, size_of_gap > error)


def emit_all(op: str, *operands: Term, **attrs: Any) -> list[Term]:
    """The results of an op that has several."""
    builder = operands[0].builder
    values = [operand.value for operand in operands]
    return [Term(builder, value) for value in builder.emit_operation(REGISTRY[op], values, attrs or NO_ATTRS).results]


class Decomposition(Op, abstract=True):
    """An op on stacks of matrices, with one or more results."""

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        raise InternalError(f"{self.name} has its own result_types")

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return emit_all(self.name, *operands, **attrs)


class ValuesOnly(Decomposition, abstract=True):
    """The values of a decomposition without the vectors. Its derivative needs those: it is the decomposition's."""

    whole: ClassVar[str]
    position: ClassVar[int] = 0
    whole_attrs: ClassVar[Attrs] = NO_ATTRS

    def result_types(
        self, types: Sequence[ArrayType], attrs: Attrs = NO_ATTRS, regions: Sequence[Region] = ()
    ) -> Sequence[ArrayType]:
        return (REGISTRY[self.whole].result_types(types, self.whole_attrs)[self.position],)

    def differentiate(
        self, s: LinearEmitter, operands: Sequence[Term], tangents: Sequence[Tangent], operation: Operation
    ) -> tuple[Sequence[Value], Sequence[Tangent]]:
        op = REGISTRY[self.whole]
        whole = Operation(op, operation.operands, self.whole_attrs, (), (), operation.span)
        values, outgoing = op.differentiate(s, operands, tangents, whole)
        return [values[self.position]], [outgoing[self.position]]


class Eigh(Decomposition):
    """The eigenvalues of Hermitian matrices in ascending order, and their unit eigenvectors as columns.

    Only the lower triangle is read, as by NumPy, and the derivative is that of `from_lower`. The phase of a complex
    eigenvector v is held: v^H v' = 0.

    LAPACK's routines, and one routine by the triangle that it reads, differ in the signs of vectors: ``driver`` "evr"
    is SciPy's where NumPy takes "evd"; ``upper`` says that the upper triangle of the conjugate transpose is read.
    Of the other drivers SciPy is asked, which may find some of the vectors only: ``select`` says which, as "index" or
    "value" and two bounds, and the others are there too. ``band`` says how many diagonals beside that in the middle.
    """

    helpers: ClassVar[tuple[str, ...]] = ("eigenvectors_by",)

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        """Of stacks matrix by matrix: SciPy takes none before 1.16. XLA has one routine alone, whose signs it gives."""
        upper = attrs.get("upper", False)
        conjugate = f"np.conj({operands[0]})" if types[0].dtype.kind == "c" else operands[0]
        matrix = f"np.matrix_transpose({conjugate})" if upper else operands[0]
        if attrs.get("driver", "evr") != "evr" or "select" in attrs:
            select = tuple(float(x) if type(x) is np.float64 else x for x in attrs.get("select", ()))
            text = repr(select).replace("inf", "np.inf")
            return f"eigenvectors_by({matrix}, {attrs['driver']!r}, {not upper}, {text}, {attrs.get('band', 0)})"
        if attrs.get("driver") == "evr":
            options = f"lower={not upper}, check_finite=False"
            if types[0].rank == 2:
                return f"scipy.linalg.eigh({matrix}, {options})"
            letters = real_dtype(types[0].dtype).char + types[0].dtype.char
            one = f"lambda a: scipy.linalg.eigh(a, {options})"
            return f"np.vectorize({one}, {letters!r}, signature='(n,n)->(n),(n,n)')({matrix})"
        return f"np.linalg.eigh({matrix}, UPLO='U')" if upper else f"np.linalg.eigh({matrix})"

    def result_types(
        self, types: Sequence[ArrayType], attrs: Attrs = NO_ATTRS, regions: Sequence[Region] = ()
    ) -> Sequence[ArrayType]:
        require_arity(self, types, 1)
        require_matrices(self, types[0])
        return (ArrayType(real_dtype(types[0].dtype), types[0].shape[:-1]), types[0])

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        """With M = V^H A' V: w' = diag(M) and V' = V (F * M), F[i, j] = 1/(w[j] - w[i]), 0 on ties."""
        w, v = results
        size = w.type.static_shape[-1]
        if not size:
            return [Zero(w.type), Zero(v.type)]
        moved = matmul(s, from_lower(s, operands[0], tangents[0]), v)
        conjugate = REGISTRY["conj"](v) if v.dtype.kind == "c" else v
        values = real_part(s, column_sums(s, s.scale(moved, conjugate)))
        gaps = inverse_gaps(w, v, size)
        factors = REGISTRY["cast"](gaps, dtype=v.dtype) if v.dtype.kind == "c" else gaps
        return [values, matmul(s, v, s.scale(matmul(s, adjoint(v), moved), factors))]

    def samples(self) -> Iterator[Sample]:
        yield from hermitian_samples()
        matrix, stack, *_ = hermitian_samples()
        for sample in (matrix, stack):
            for attrs in (
                {"upper": True},
                {"driver": "evr"},
                {"driver": "evr", "upper": True},
                {"driver": "evx", "select": ("index", 0, 1)},
                {"driver": "evr", "select": ("value", -np.inf, 0.5)},
                {"driver": "band", "band": 3, "upper": True},
            ):
                smooth = "driver" not in attrs  # whose signs jump between matrices that are next to each other
                yield Sample(sample.operands, attrs, smooth, (0,), label=f"{sample.label} by {', '.join(attrs)}")


class Eigvalsh(ValuesOnly):
    """The eigenvalues of Hermitian matrices in ascending order; see `Eigh`."""

    meaning = "np.linalg.eigvalsh"
    whole = "eigh"

    def samples(self) -> Iterator[Sample]:
        yield from hermitian_samples(phases=False)


class Svd(Decomposition):
    """U, s and V^H with A = U diag(s) V^H, s descending; U and V have ``full_matrices`` or as many columns as s.

    Where s is 0 the parts of U' and V' that are divided by it contribute 0. The phases are held as by JAX: v^H v' = 0.
    Of the vectors beyond those of s only the derivative of the space is determined: they do not turn within it.
    """

    def result_types(
        self, types: Sequence[ArrayType], attrs: Attrs = NO_ATTRS, regions: Sequence[Region] = ()
    ) -> Sequence[ArrayType]:
        require_arity(self, types, 1)
        (matrix,) = types
        require_stack(self, matrix)
        *stack, rows, columns = matrix.static_shape
        count = min(rows, columns)
        full = attrs["full_matrices"]
        return (
            matrix.with_shape((*stack, rows, rows if full else count)),
            ArrayType(real_dtype(matrix.dtype), (*stack, count)),
            matrix.with_shape((*stack, columns if full else count, columns)),
        )

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"np.linalg.svd({operands[0]}, full_matrices={attrs['full_matrices']})"

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        """With P = U^H A' V: s' = Re diag(P); U' and V' turn U and V by skew matrices, and out of their span."""
        u, values, vh = results
        if not operands[0].type.size:
            return [Zero(result.type) for result in results]
        *_, rows, columns = operands[0].type.static_shape
        count = min(rows, columns)
        if attrs["full_matrices"]:
            u, vh = columns_of(u, 0, count), transposed(columns_of(transposed(vh), 0, count))
        v = adjoint(vh)
        moved = matmul(s, tangents[0], v)  # A' V
        conjugate = REGISTRY["conj"](u) if u.dtype.kind == "c" else u
        change = real_part(s, column_sums(s, s.scale(moved, conjugate)))
        inner = matmul(s, adjoint(u), moved)
        turn_u, turn_v = turns(s, inner, values)
        inverse = safe_inverse(values, values > rounding(values, max(rows, columns)))
        out_u = out_of_span(s, turn_u, results[0], u, moved, inner, inverse)
        back = matmul(s, matrix_transpose(s, tangents[0], conjugate=True), u)  # A'^H U
        full_v = adjoint(results[2])
        adjoint_inner = matrix_transpose(s, inner, conjugate=True)
        out_v = out_of_span(s, turn_v, full_v, v, back, adjoint_inner, inverse)
        return [out_u, change, matrix_transpose(s, out_v, conjugate=True)]

    def samples(self) -> Iterator[Sample]:
        for sample in singular_samples():
            for full in (False, True):
                yield Sample(sample.operands, {"full_matrices": full}, sample.smooth, label=sample.label)


def require_stack(op: Op, type: ArrayType) -> None:
    """A stack of matrices of a dtype that LAPACK has."""
    if type.rank < 2:
        raise ShapeError(f"{op.name}: {type} is not a stack of matrices")
    if type.dtype.name not in LAPACK_DTYPES:
        raise DTypeError(f"{op.name} does not take {type}", hint=f"it takes {', '.join(LAPACK_DTYPES)}")


def columns_of(matrix: Term, start: int, limit: int) -> Term:
    """The columns from ``start`` to ``limit``."""
    shape = matrix.type.static_shape
    if (start, limit) == (0, shape[-1]):
        return matrix
    starts = (*(0 for _ in shape[:-1]), start)
    return REGISTRY["slice"](matrix, starts=starts, limits=(*shape[:-1], limit), strides=(1,) * matrix.rank)


def turns(s: LinearEmitter, inner: Tangent, values: Term) -> tuple[Tangent, Tangent]:
    """The skew matrices by which U and V turn: F * (P s + s P^H) and F * (s P + P^H s), F[i, j] = 1/(s_j² - s_i²).

    For complex matrices the diagonal of U's is Im diag(P) / s: A' turns the phase of u against that of v.
    """
    size = values.type.static_shape[-1]
    square = Term(values.builder, zeros(inner.type))
    gaps = inverse_gaps(values, square, size)
    sums = spread(values, square, -1) + spread(values, square, -2)
    factors = gaps * safe_inverse(sums, sums > 0.0)
    if square.dtype.kind == "c":
        factors = REGISTRY["cast"](factors, dtype=square.dtype)
    by_row, by_column = along(values, square, -2), along(values, square, -1)
    opposite = matrix_transpose(s, inner, conjugate=True)
    turn_u = s.scale(s.add(s.scale(inner, by_column), s.scale(opposite, by_row)), factors)
    turn_v = s.scale(s.add(s.scale(inner, by_row), s.scale(opposite, by_column)), factors)
    if square.dtype.kind == "c":
        inverse = along(safe_inverse(values, values > rounding(values, size)), square, -1)
        skew = s.scale(s.add(inner, s.neg(opposite)), 0.5)
        diagonal = compare_indices(square, "equal")
        weights = REGISTRY["select"](diagonal, inverse, square.like(0))
        turn_u = s.add(turn_u, s.scale(skew, weights))
    return turn_u, turn_v


def out_of_span(
    s: LinearEmitter, turn: Tangent, full: Term, thin: Term, moved: Tangent, inner: Tangent, inverse: Term
) -> Tangent:
    """The tangent of U (or V): its columns turn within their span, and move out of it by (I - U U^H) A' V / s.

    Of a full U = [U1 U2] the second part turns against the first, so that U stays unitary.
    """
    rows, count = thin.type.static_shape[-2:]
    if rows == count:
        return matmul(s, thin, turn)
    weights = along(inverse, thin, -1)
    if full.shape == thin.shape:
        outside = s.add(moved, s.neg(matmul(s, thin, inner)))
        return s.add(matmul(s, thin, turn), s.scale(outside, weights))
    rest = columns_of(full, count, rows)
    outside = matmul(s, adjoint(rest), s.scale(moved, weights))
    first = s.add(matmul(s, thin, turn), matmul(s, rest, outside))
    second = s.neg(matmul(s, thin, matrix_transpose(s, outside, conjugate=True)))
    return s.apply(REGISTRY["concatenate"], [first, second], {"axis": thin.rank - 1})


class Svdvals(ValuesOnly):
    """The singular values in descending order; see `Svd`."""

    whole = "svd"
    position = 1
    whole_attrs: ClassVar[Attrs] = {"full_matrices": False}

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"np.linalg.svd({operands[0]}, compute_uv=False)"

    def samples(self) -> Iterator[Sample]:
        yield from singular_samples(phases=False)


class Eig(Decomposition):
    """The eigenvalues of square matrices, and their unit eigenvectors as columns; both are always complex.

    The derivative is that of LAPACK's vectors: of norm 1, and real in their largest component.
    """

    helpers: ClassVar[tuple[str, ...]] = ("complex_eig",)

    def result_types(
        self, types: Sequence[ArrayType], attrs: Attrs = NO_ATTRS, regions: Sequence[Region] = ()
    ) -> Sequence[ArrayType]:
        require_arity(self, types, 1)
        require_matrices(self, types[0])
        vectors = types[0].with_dtype(complex_dtype(real_dtype(types[0].dtype)))
        return (vectors.with_shape(vectors.shape[:-1]), vectors)

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"complex_eig({operands[0]})"

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        """With M = V^-1 A' V: w' = diag(M), and V' is V (F * M) less what changes norms and phases."""
        w, v = results
        size = w.type.static_shape[-1]
        if not size:
            return [Zero(w.type), Zero(v.type)]
        inner = s.apply(REGISTRY["solve"], [v, matmul(s, as_dtype(s, tangents[0], v.dtype), v)])
        diagonal = compare_indices(v, "equal")
        values = column_sums(s, s.select(diagonal, inner, Zero(inner.type)))
        free = matmul(s, v, s.scale(inner, inverse_gaps(w, v, size)))
        along_v = real_part(s, column_sums(s, s.scale(free, REGISTRY["conj"](v))))
        chosen = largest_component(v)
        at_largest = s.apply(REGISTRY["imag"], [column_sums(s, s.select(chosen, free, Zero(free.type)))])
        real = REGISTRY["real"](REGISTRY["reduce_sum"](REGISTRY["select"](chosen, v, v.like(0)), axes=(v.rank - 2,)))
        turned = s.scale(at_largest, 1.0 / real)
        factor = s.apply(REGISTRY["complex"], [along_v, turned])
        spread_factor = s.apply(
            REGISTRY["broadcast"], [factor], {"shape": v.shape, "dims": (*range(v.rank - 2), v.rank - 1)}
        )
        return [values, s.add(free, s.neg(s.scale(spread_factor, v)))]

    def samples(self) -> Iterator[Sample]:
        yield from general_samples()


def largest_component(vectors: Term) -> Term:
    """A bool array like ``vectors``: the component of largest absolute value of each column."""
    rank = vectors.rank
    found = REGISTRY["argmax"](REGISTRY["abs"](vectors), axis=rank - 2)
    rows = iota(vectors.builder, ArrayType(INT64, vectors.shape), rank - 2)
    return rows == broadcast_to(found, vectors.shape, (*range(rank - 2), rank - 1))


class Eigvals(ValuesOnly):
    """The eigenvalues of square matrices, always complex; see `Eig`."""

    helpers: ClassVar[tuple[str, ...]] = ("complex_eigvals",)
    whole = "eig"

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"complex_eigvals({operands[0]})"

    def samples(self) -> Iterator[Sample]:
        yield from general_samples()


# --- samples ----------------------------------------------------------------------------------------------------------


def hermitian_samples(phases: bool = True) -> Iterator[Sample]:
    """Well separated spectra, then degenerate ones. ``phases``: LAPACK chooses those of complex vectors in its own way,
    so that their derivatives cannot be seen in differences.
    """
    matrix = np.array([[2.0, -0.5, 0.25], [-0.5, 4.0, 0.75], [0.25, 0.75, 7.0]])
    hermitian = matrix + 1j * np.array([[0.0, 0.5, -0.25], [-0.5, 0.0, 1.0], [0.25, -1.0, 0.0]])
    yield Sample((matrix,), symmetric=(0,), label="matrix")
    yield Sample((np.stack([matrix, matrix[::-1, ::-1]])[:, :2, :2],), symmetric=(0,), label="stack")
    yield Sample((matrix.astype(np.float32),), symmetric=(0,), label="float32")
    yield Sample((hermitian,), smooth=not phases, symmetric=(0,), label="complex")
    yield Sample((np.zeros((0, 0)),), symmetric=(0,), label="empty")
    yield Sample((np.zeros((0, 2, 2)),), symmetric=(0,), label="empty stack")
    yield Sample((np.eye(3),), smooth=False, label="identity")
    yield Sample((np.zeros((2, 2)),), smooth=False, label="zero")
    yield Sample((np.diag([2.0, 1.0, 2.0]),), smooth=False, label="repeated")


def singular_samples(phases: bool = True) -> Iterator[Sample]:
    """Square, tall and wide matrices with distinct singular values, then degenerate ones; ``phases`` as above."""
    tall = np.array([[3.0, 0.5], [-0.25, 1.0], [0.75, -0.5]])
    square = np.array([[3.0, 0.5, -0.25], [1.0, -2.0, 0.25], [0.5, 0.25, 0.75]])
    yield Sample((square,), label="square")
    yield Sample((tall,), label="tall")
    yield Sample((tall.T,), label="wide")
    yield Sample((np.stack([tall, 2 - tall])[:, :2],), label="stack")
    yield Sample((tall.astype(np.float32),), label="float32")
    yield Sample((tall + 0.5j * tall[::-1] ** 2,), smooth=not phases, label="complex tall")
    yield Sample(((tall + 0.5j * tall[::-1] ** 2).T,), smooth=not phases, label="complex wide")
    yield Sample((np.zeros((0, 2, 2)),), label="empty stack")
    yield Sample((np.zeros((2, 0)),), label="empty")
    yield Sample((np.eye(3),), smooth=False, label="identity")
    yield Sample((np.zeros((3, 2)),), smooth=False, label="zero")
    yield Sample((np.diag([2.0, 0.0]),), smooth=False, label="singular")


def general_samples() -> Iterator[Sample]:
    """Matrices with distinct eigenvalues, real and in pairs, then degenerate ones."""
    matrix = np.array([[2.0, -0.5, 0.25], [1.0, 4.0, -0.5], [-0.75, 0.5, 7.0]])
    rotating = np.array([[1.0, -2.0, 0.25], [1.0, 1.5, 0.5], [0.5, -0.25, 4.0]])
    yield Sample((matrix,), label="real eigenvalues")
    yield Sample((rotating,), label="complex eigenvalues")
    yield Sample((np.stack([matrix, rotating])[:, :2, :2],), label="stack")
    yield Sample((matrix.astype(np.float32),), label="float32")
    yield Sample((matrix + 0.5j * rotating,), label="complex")
    yield Sample((np.zeros((0, 0)),), label="empty")
    yield Sample((np.zeros((0, 2, 2)),), label="empty stack")
    yield Sample((np.eye(2),), smooth=False, label="identity")
