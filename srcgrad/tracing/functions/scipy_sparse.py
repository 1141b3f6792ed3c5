"""Sparse matrices of ``scipy.sparse`` among traced values: products, sums, and the solvers of linear systems.

A matrix is its elements with their rows and columns. These places are known while tracing, the elements may be traced.
Importing this module imports SciPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from srcgrad.errors import ShapeError, UnsupportedError
from srcgrad.tracing.conversion.calls import call, call_rule, traced_among
from srcgrad.tracing.conversion.matrices import Matrix
from srcgrad.tracing.functions.registry import as_array, axis_of, cast, concrete_array, inexact_dtype
from srcgrad.tracing.tracer import Deferring, Tracer, as_tracer, contains_tracer, emit

Places = Any
OPERATORS: Final = {
    np.matmul: "__matmul__",
    np.multiply: "__mul__",
    np.true_divide: "__truediv__",
    np.add: "__add__",
    np.subtract: "__sub__",
}
UNTRACED: Final = (scipy.sparse.spmatrix, scipy.sparse.sparray)


class Sparse(Deferring):
    """A sparse matrix with traced elements, one at a place: `summed` adds up those that are given there.

    ``matrix``: whether ``*`` is a product of matrices, as of ``csr_matrix``, and not of elements, as of ``csr_array``.
    """

    ndim: Any = 2
    shape: Any = (0, 0)

    def __init__(self, data: Any, rows: Places, columns: Places, shape: tuple[int, int], matrix: bool) -> None:
        self.data, self.rows, self.columns, self.shape, self.matrix = data, rows, columns, shape, matrix

    @classmethod
    def of(cls, thing: Any) -> Sparse:
        """A matrix of SciPy's, its elements row by row, as it adds them up."""
        if isinstance(thing, Sparse):
            return thing.settled()
        if thing.ndim != 2:
            raise ShapeError(f"sparse arrays have two axes here, not {thing.ndim}")
        found = thing.tocsr().tocoo()
        rows, columns = found.row.astype(np.int64), found.col.astype(np.int64)
        return cls(as_tracer(found.data), rows, columns, found.shape, isinstance(thing, scipy.sparse.spmatrix))

    @classmethod
    def at_places(cls, data: Any, labels: Any, matrix: bool) -> Sparse:
        """The matrix of SciPy's whose elements are the numbers of some of these, counted from 1."""
        found = labels.tocoo()
        rows, columns = found.row.astype(np.int64), found.col.astype(np.int64)
        return cls(as_array(data)[found.data - 1], rows, columns, found.shape, matrix)

    def settled(self) -> Sparse:
        """One whose elements stay what they are: itself."""
        return self

    def labels(self, first: int = 1) -> Any:
        """The numbers of its elements in their places."""
        numbers = np.arange(first, first + self.nnz)
        kind = scipy.sparse.csr_matrix if self.matrix else scipy.sparse.csr_array
        return kind((numbers, (self.rows, self.columns)), shape=self.shape)

    def summed(self) -> Sparse:
        """With one element at each place."""
        keys, place = np.unique(self.rows * max(self.shape[1], 1) + self.columns, return_inverse=True)
        if len(keys) == self.nnz:
            return self
        rows, columns = keys // max(self.shape[1], 1), keys % max(self.shape[1], 1)
        return Sparse(added(self.data, place, len(keys)), rows, columns, self.shape, self.matrix)

    def like(self, data: Any) -> Sparse:
        """Other elements at the same places."""
        return Sparse(data, self.rows, self.columns, self.shape, self.matrix)

    @property
    def dtype(self) -> Any:
        return self.data.dtype

    @property
    def nnz(self) -> int:
        return len(self.rows)

    @property
    def T(self) -> Sparse:
        return Sparse(self.data, self.columns, self.rows, self.shape[::-1], self.matrix)

    @property
    def H(self) -> Sparse:
        return self.T.like(np.conj(self.data))

    def transpose(self) -> Sparse:
        return self.T

    def conj(self) -> Sparse:
        return self.like(np.conj(self.data))

    conjugate = conj

    def copy(self) -> Sparse:
        return self

    eliminate_zeros = sum_duplicates = sort_indices = lambda self: None

    def __abs__(self) -> Sparse:
        return self.like(np.abs(self.data))

    @property
    def real(self) -> Sparse:
        return self.like(np.real(self.data))

    @property
    def imag(self) -> Sparse:
        return self.like(np.imag(self.data))

    def __getitem__(self, key: Any) -> Any:
        """A part, as SciPy takes it: one element, a row of a sparse array as a vector, or a matrix."""
        labels: Any = self.labels()[key]
        rank = labels.ndim if hasattr(labels, "tocoo") else 0
        if rank == 0:
            return self.data[int(labels) - 1] if labels else 0 * np.sum(self.data[:0])
        part = Sparse.at_places(self.data, labels if rank == 2 else labels.reshape((1, -1)), self.matrix)
        return part if rank == 2 else part.toarray()[0]

    def __setitem__(self, key: Any, value: Any) -> None:
        raise UnsupportedError(
            "elements are assigned to a sparse matrix with traced elements, which is no lil_matrix or dok_matrix",
            hint="assign to the elements of `.tolil()` of it",
        )

    def reshape(self, *shape: Any, **options: Any) -> Sparse:
        return Sparse.at_places(self.data, self.labels().reshape(*shape, **options), self.matrix)

    def getrow(self, i: int) -> Sparse:
        return Sparse.at_places(self.data, self.labels()[[i]], self.matrix)

    def getcol(self, j: int) -> Sparse:
        return Sparse.at_places(self.data, self.labels()[:, [j]], self.matrix)

    def as_asked(self, *_: Any, **__: Any) -> Sparse:
        """In another format, which says no more than how the elements are stored."""
        return self

    tocsr = tocsc = tocoo = tobsr = todia = asformat = as_asked

    def tolil(self, copy: bool = False) -> Any:
        return call(scipy.sparse.lil_matrix if self.matrix else scipy.sparse.lil_array, self)

    def todok(self, copy: bool = False) -> Any:
        return call(scipy.sparse.dok_matrix if self.matrix else scipy.sparse.dok_array, self)

    def astype(self, dtype: Any) -> Sparse:
        return self.like(self.data.astype(dtype))

    def toarray(self, *_: Any, **__: Any) -> Any:
        return added(self.data, self.rows * self.shape[1] + self.columns, self.shape[0] * self.shape[1]).reshape(
            self.shape
        )

    def todense(self, *_: Any, **__: Any) -> Any:
        return Matrix(self.toarray()) if self.matrix else self.toarray()

    def diagonal(self, k: int = 0) -> Any:
        size = min(self.shape[0] - max(-k, 0), self.shape[1] - max(k, 0))
        met = np.flatnonzero(self.columns - self.rows == k)
        return added(self.data[met], self.rows[met] - max(-k, 0), size)

    def trace(self, offset: int = 0) -> Any:
        return np.sum(self.diagonal(offset))

    def sum(self, axis: Any = None) -> Any:
        if axis is None:
            return np.sum(self.data)
        kept = 1 - axis_of(axis, 2)
        found = added(self.data, (self.rows, self.columns)[kept], self.shape[kept])
        return found if not self.matrix else Matrix(found[:, None] if kept == 0 else found)

    def mean(self, axis: Any = None) -> Any:
        return self.sum(axis) / (self.shape[0] * self.shape[1] if axis is None else self.shape[axis_of(axis, 2)])

    def power(self, n: Any) -> Sparse:
        return self.like(self.data**n)

    # --- products

    def dot(self, other: Any) -> Any:
        return self @ other

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, (Sparse, *UNTRACED)):
            return meeting(self, Sparse.of(other))
        if isinstance(other, Matrix):
            return Matrix(self @ other.array)
        x = as_array(other)
        if x.ndim not in (1, 2) or x.shape[0] != self.shape[1]:
            raise ShapeError(f"matmul: dimension mismatch of the shapes {self.shape} and {x.shape}")
        data = self.data if x.ndim == 1 else self.data[:, None]
        return added(data * x[self.columns], self.rows, self.shape[0])

    def __rmatmul__(self, other: Any) -> Any:
        if isinstance(other, UNTRACED):
            return Sparse.of(other) @ self
        if isinstance(other, Matrix):
            return Matrix(other.array @ self)
        return np.transpose(self.T @ np.transpose(as_array(other)))

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, (Sparse, *UNTRACED)) and not np.ndim(other):
            return self.like(self.data * other)
        return self @ other if self.matrix else self.multiply(other)

    def __rmul__(self, other: Any) -> Any:
        if isinstance(other, UNTRACED):
            return Sparse.of(other) * self
        if not np.ndim(other):
            return self.like(other * self.data)
        return other @ self if self.matrix else self.multiply(other)

    def multiply(self, other: Any) -> Sparse:
        """Element by element, of which those that are not listed stay zero."""
        if isinstance(other, (Sparse, *UNTRACED)):
            other = Sparse.of(other).toarray()
        factors = np.broadcast_to(as_array(other), self.shape)
        return self.like(self.data * factors[self.rows, self.columns])

    def __truediv__(self, other: Any) -> Sparse:
        return self.multiply(1.0 / as_array(other)) if np.ndim(other) else self.like(self.data / other)

    # --- sums

    def __neg__(self) -> Sparse:
        return self.like(-self.data)

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, (Sparse, *UNTRACED)):
            return self.todense() + (other if isinstance(other, Matrix) else as_array(other))
        more = Sparse.of(other)
        if more.shape != self.shape:
            raise ShapeError(f"inconsistent shapes {self.shape} and {more.shape}")
        rows, columns = np.append(self.rows, more.rows), np.append(self.columns, more.columns)
        return Sparse(np.concatenate([self.data, more.data]), rows, columns, self.shape, self.matrix).summed()

    def __radd__(self, other: Any) -> Any:
        return self + other

    def __sub__(self, other: Any) -> Any:
        return self + -(Sparse.of(other) if isinstance(other, UNTRACED) else other)

    def __rsub__(self, other: Any) -> Any:
        return -self + other


def added(parts: Any, places: Places, size: int) -> Any:
    """The sums of what goes to each of so many places, along the first axis."""
    parts = as_array(parts)
    zeros = np.zeros_like(parts, shape=(size, *parts.shape[1:]))
    return emit("scatter_add", as_tracer(zeros), parts, as_tracer(places), axis=0, scalar=False)


def meeting(left: Sparse, right: Sparse) -> Sparse:
    """The product of two: each element of the one with those of the other whose row is its column."""
    if left.shape[1] != right.shape[0]:
        raise ShapeError(f"matmul: dimension mismatch of the shapes {left.shape} and {right.shape}")
    order = np.argsort(right.rows, kind="stable")
    starts = np.searchsorted(right.rows[order], np.arange(right.shape[0] + 1))
    counts = (starts[1:] - starts[:-1])[left.columns]
    first = np.repeat(np.arange(left.nnz), counts)
    within = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
    second = order[starts[left.columns[first]] + within]
    keys, place = np.unique(left.rows[first] * right.shape[1] + right.columns[second], return_inverse=True)
    data = added(left.data[first] * right.data[second], place, len(keys))
    shape = (left.shape[0], right.shape[1])
    return Sparse(data, keys // max(shape[1], 1), keys % max(shape[1], 1), shape, left.matrix)


def moved(place: Callable[[Any], Any], given: Any) -> Sparse:
    """What a function that moves elements makes of matrices: it is given others, of the numbers of their elements."""
    parts: list[Any] = []

    def labelled(thing: Any) -> Any:
        if isinstance(thing, (list, tuple)):
            return [labelled(item) for item in thing]
        if thing is None:
            return None
        if not isinstance(thing, (Sparse, *UNTRACED)):
            dense = as_array(thing)
            parts.append(dense.reshape(-1))
            first = sum(part.shape[0] for part in parts[:-1]) + 1
            return np.arange(first, first + dense.size).reshape(dense.shape)
        matrix = Sparse.of(thing)
        parts.append(matrix.data)
        return matrix.labels(sum(part.shape[0] for part in parts[:-1]) + 1)

    found = place(labelled(given))
    return Sparse.at_places(np.concatenate(parts), found, isinstance(found, scipy.sparse.spmatrix))


# --- operators and methods of SciPy's own matrices -------------------------------------------------------------------


def of_operator(ufunc: np.ufunc, left: Any, right: Any) -> Any:
    """An operator between a traced value and a matrix of SciPy's."""
    if ufunc not in OPERATORS:
        raise UnsupportedError(f"{ufunc.__name__} of a sparse matrix and a traced value is not supported")
    name = OPERATORS[ufunc]
    if isinstance(left, Tracer):
        other = standing_for(right)
        return getattr(other, f"__r{name[2:]}")(left) if hasattr(other, f"__r{name[2:]}") else NotImplemented
    return getattr(standing_for(left), name)(right)


def standing_for(thing: Any) -> Any:
    """What stands for one of SciPy's matrices, operators or factors, and knows traced values."""
    if isinstance(thing, scipy.sparse.linalg.LinearOperator):
        from srcgrad.tracing.functions.scipy_sparse_operators import Operator  # which needs this module

        return Operator.of(thing)
    return Sparse.of(thing) if isinstance(thing, UNTRACED) else factored(thing)


def of_method(method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method of a matrix of SciPy's, or of its factors, that is given traced values."""
    found = getattr(standing_for(method.__self__), method.__name__, None)
    if found is None:
        raise UnsupportedError(f"scipy.sparse: {method.__name__} has no derivative rule in srcgrad")
    return found(*args, **kwargs)


# --- making them -----------------------------------------------------------------------------------------------------


def maker(original: Any) -> Callable[..., Any]:
    """What stands for a class: of traced elements with their places, or of an array that is traced."""
    matrix = issubclass(original, scipy.sparse.spmatrix)

    def rule(arg1: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(arg1, Sparse):
            return Sparse.of(arg1)
        if not (contains_tracer(arg1) or (type(arg1) is tuple and traced_among(arg1, {}))):
            return original(arg1, *args, **kwargs)
        shape = args[0] if args else kwargs.get("shape")
        if type(arg1) is not tuple:
            dense = as_array(arg1)
            rows, columns = (part.reshape(-1) for part in np.indices(dense.shape))
            return Sparse(dense.reshape(-1), rows, columns, dense.shape, matrix)
        data, rows, columns = as_array(arg1[0]), *places_of(original, arg1[1:])
        if shape is None:
            shape = tuple(int(part.max(initial=-1)) + 1 for part in (rows, columns))
        return Sparse(data, rows, columns, tuple(shape), matrix).summed()

    return rule


def places_of(original: Any, given: tuple[Any, ...]) -> tuple[Places, Places]:
    """The rows and columns of elements that are given by both, or by one and where each of the other begins."""
    parts = given[0] if len(given) == 1 else given
    first, second = (concrete_array(part, "a place in a sparse matrix").astype(np.int64) for part in parts)
    if len(given) == 1:
        return first, second
    other = np.repeat(np.arange(len(second) - 1), np.diff(second))
    return (first, other) if "csc" in original.__name__ else (other, first)


for _format in ("csr", "csc", "coo"):
    for _kind in ("matrix", "array"):
        call_rule(getattr(scipy.sparse, f"{_format}_{_kind}"))(maker(getattr(scipy.sparse, f"{_format}_{_kind}")))


def diagonals(original: Any) -> Callable[..., Any]:
    def rule(diagonals: Any, offsets: Any = 0, shape: Any = None, *args: Any, **kwargs: Any) -> Any:
        if "offsets" in kwargs:
            offsets = kwargs.pop("offsets")
        if not (contains_tracer(diagonals)):
            return original(diagonals, offsets=offsets, shape=shape, **kwargs)
        if np.ndim(offsets) == 0:
            offsets = [offsets]
            diagonals = [diagonals] if np.ndim(as_array(diagonals)) == 1 else diagonals
        rows, columns, parts = [], [], []
        lengths = [as_array(part).reshape(-1).shape[0] for part in diagonals]
        size = lengths[0] + abs(int(offsets[0]))
        shape = (size, size) if shape is None else tuple(shape)
        for part, k in zip(diagonals, map(int, offsets), strict=True):
            count = min(shape[0] - max(-k, 0), shape[1] - max(k, 0))
            parts.append(np.broadcast_to(as_array(part).reshape(-1), (count,)))
            rows.append(np.arange(count) + max(-k, 0))
            columns.append(np.arange(count) + max(k, 0))
        made = np.concatenate(rows), np.concatenate(columns), shape, original is scipy.sparse.diags
        return Sparse(np.concatenate(parts), *made)

    return rule


call_rule(scipy.sparse.diags)(diagonals(scipy.sparse.diags))
call_rule(scipy.sparse.diags_array)(diagonals(scipy.sparse.diags_array))


# --- systems ---------------------------------------------------------------------------------------------------------


def solution(matrix: Sparse, b: Any) -> Any:
    right = Sparse.of(b).toarray() if isinstance(b, (Sparse, *UNTRACED)) else as_array(b)
    if matrix.shape[0] != matrix.shape[1] or right.ndim not in (1, 2) or right.shape[0] != matrix.shape[0]:
        raise ShapeError(f"the shapes of the matrix {matrix.shape} and of the right side {right.shape} do not fit")
    dtype = inexact_dtype(np.result_type(matrix.dtype, right.dtype))
    columns = cast(right, dtype).reshape(right.shape[0], -1)
    places = as_tracer(matrix.rows), as_tracer(matrix.columns)
    found = emit("sparse_solve", cast(matrix.data, dtype), columns, *places, scalar=False)
    return found.reshape(right.shape)


@call_rule(scipy.sparse.linalg.spsolve)
def spsolve(A: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
    if not (isinstance(A, Sparse) or isinstance(b, Sparse) or contains_tracer(b)):
        return scipy.sparse.linalg.spsolve(A, b, *args, **kwargs)
    found = solution(Sparse.of(A), b)
    return found.reshape(-1) if found.ndim == 2 and found.shape[1] == 1 else found


class Factors:
    """What `splu` gives for a matrix with traced elements."""

    def __init__(self, matrix: Sparse) -> None:
        self.matrix, self.shape = matrix, matrix.shape

    def solve(self, rhs: Any, trans: str = "N") -> Any:
        way = {"N": self.matrix, "T": self.matrix.T, "H": self.matrix.H}[trans]
        return solution(way, rhs)

    __call__ = solve


def factored(factors: Any) -> Factors:
    """The matrix of which SciPy has the factors."""
    size = np.arange(factors.shape[0])
    rows = scipy.sparse.csc_array((np.ones(len(size)), (factors.perm_r, size)))
    columns = scipy.sparse.csc_array((np.ones(len(size)), (size, factors.perm_c)))
    return Factors(Sparse.of(rows.T @ (factors.L @ factors.U) @ columns.T))


def factoring(original: Any) -> Callable[..., Any]:
    def rule(A: Any, *args: Any, **kwargs: Any) -> Any:
        return Factors(A) if isinstance(A, Sparse) else original(A, *args, **kwargs)

    return rule


call_rule(scipy.sparse.linalg.splu)(factoring(scipy.sparse.linalg.splu))
call_rule(scipy.sparse.linalg.factorized)(factoring(scipy.sparse.linalg.factorized))


@call_rule(scipy.sparse.issparse)
def issparse(x: Any) -> bool:
    return isinstance(x, (Sparse, *UNTRACED))
