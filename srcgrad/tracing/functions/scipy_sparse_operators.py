"""Linear operators of ``scipy.sparse.linalg`` among traced values, and least squares of sparse matrices.

An operator is what its functions give; a solver is given its matrix, by the products with all unit vectors.
Importing this module imports SciPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.sparse.linalg

from srcgrad.errors import ShapeError, UnsupportedError
from srcgrad.tracing.conversion.calls import call, call_rule
from srcgrad.tracing.conversion.state import Undefined
from srcgrad.tracing.functions.registry import as_array
from srcgrad.tracing.functions.scipy_sparse import UNTRACED, Sparse
from srcgrad.tracing.tracer import Deferring, contains_tracer

sparse_linalg: Any = scipy.sparse.linalg
MOST_COLUMNS: Final = 4096
"""Of so many columns at most an operator is made a matrix, to be solved with."""
CUSTOM: Final = "_CustomLinearOperator__{}_impl"
"""Where SciPy's operators of functions hold these."""


class Operator(Deferring):
    """An operator of functions, of which some may read traced values, or of a matrix."""

    ndim: Any = 2
    shape: Any = (0, 0)
    stands_for = sparse_linalg.LinearOperator

    def __init__(
        self, shape: Any, matvec: Any, rmatvec: Any = None, matmat: Any = None, rmatmat: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        self.shape, self.functions = tuple(shape), (matvec, rmatvec, matmat, rmatmat)
        self.dtype = np.dtype(np.float64 if dtype is None else dtype)

    @classmethod
    def of(cls, thing: Any) -> Operator:
        if isinstance(thing, Operator):
            return thing
        names = ("matvec", "rmatvec", "matmat", "rmatmat")
        if hasattr(thing, CUSTOM.format("matvec")):
            return cls(thing.shape, *(getattr(thing, CUSTOM.format(name), None) for name in names))
        matrix = getattr(thing, "A", None)
        if isinstance(matrix, (np.ndarray, *UNTRACED)):
            return cls.of_matrix(matrix)
        parts = COMPOSED.get(type(thing).__name__)
        if parts is not None and type(thing).__module__.startswith("scipy."):
            return parts(*thing.args)
        return cls.of_class(thing)

    @classmethod
    def of_class(cls, thing: Any) -> Operator:
        """Of a class with methods for products: what SciPy's base class has of these asks the others."""
        base = sparse_linalg.LinearOperator
        names = ("_matvec", "_rmatvec", "_matmat", "_rmatmat")
        vector, adjoint, several, adjoints = (
            None if getattr(type(thing), name) is getattr(base, name) else getattr(thing, name) for name in names
        )
        if vector is None and several is not None:
            vector = lambda x: call(several, x[:, None])[:, 0]  # noqa: E731
        if adjoint is None and type(thing)._adjoint is not base._adjoint:
            other = cls.of(call(thing._adjoint))
            adjoint, adjoints = other.functions[::2]
        if vector is None:
            raise UnsupportedError(
                f"a {type(thing).__name__} of scipy.sparse.linalg has no derivative rule in srcgrad",
                hint="write the product as a function, or pass a matrix",
            )
        return cls(thing.shape, vector, adjoint, several, adjoints)

    @classmethod
    def of_matrix(cls, matrix: Any) -> Operator:
        def product(x: Any) -> Any:
            return Sparse.of(matrix) @ x if isinstance(matrix, (Sparse, *UNTRACED)) else as_array(matrix) @ x

        def adjoint(x: Any) -> Any:
            turned: Any = Sparse.of(matrix).H if isinstance(matrix, (Sparse, *UNTRACED)) else np.conj(matrix).T
            return turned @ x

        return cls(matrix.shape, product, adjoint, product, adjoint)

    def applied(self, x: Any, adjoint: bool) -> Any:
        vector, several = self.functions[1::2] if adjoint else self.functions[::2]
        count, height = self.shape if adjoint else self.shape[::-1]
        given = as_array(x)
        if given.ndim not in (1, 2) or given.shape[0] != count:
            raise ShapeError(f"dimension mismatch: the operator {self.shape} and {given.shape}")
        if given.ndim == 2 and several is not None:
            return call(several, given)
        if vector is None:
            raise UnsupportedError("an adjoint is asked of a LinearOperator without rmatvec", hint="pass rmatvec")
        if given.ndim == 1:
            return as_array(call(vector, given)).reshape(height)
        return np.stack([as_array(call(vector, given[:, k])).reshape(height) for k in range(given.shape[1])], axis=1)

    def matvec(self, x: Any) -> Any:
        return self.applied(x, False)

    def rmatvec(self, x: Any) -> Any:
        return self.applied(x, True)

    matmat, rmatmat = matvec, rmatvec

    def __matmul__(self, other: Any) -> Any:
        """Of a vector or columns; of another operator the one of both."""
        if not isinstance(other, (Operator, sparse_linalg.LinearOperator)):
            return self.matvec(other)
        inner = Operator.of(other)
        return self.like(
            lambda x: self.matvec(inner.matvec(x)), lambda x: inner.rmatvec(self.rmatvec(x)), inner.shape[1]
        )

    def __mul__(self, other: Any) -> Any:
        if np.ndim(other) or isinstance(other, (Operator, sparse_linalg.LinearOperator)):
            return self @ other
        return self.like(lambda x: other * self.matvec(x), lambda x: np.conj(other) * self.rmatvec(x))

    dot = __call__ = __mul__

    def __rmul__(self, other: Any) -> Any:
        return other @ self if np.ndim(other) else self * other

    def __rmatmul__(self, other: Any) -> Any:
        return np.transpose(self.T.matvec(np.transpose(as_array(other))))

    def __neg__(self) -> Operator:
        return self.like(lambda x: -self.matvec(x), lambda x: -self.rmatvec(x))

    def __add__(self, other: Any) -> Operator:
        more = Operator.of(other)
        if more.shape != self.shape:
            raise ShapeError(f"operators of the shapes {self.shape} and {more.shape} are added")
        return self.like(lambda x: self.matvec(x) + more.matvec(x), lambda x: self.rmatvec(x) + more.rmatvec(x))

    def __sub__(self, other: Any) -> Operator:
        return self + -Operator.of(other)

    def like(self, product: Any, adjoint: Any, width: int | None = None) -> Operator:
        shape = self.shape if width is None else (self.shape[0], width)
        return Operator(shape, product, adjoint, product, adjoint, self.dtype)

    @property
    def H(self) -> Operator:
        vector, adjoint, several, adjoints = self.functions
        return Operator(self.shape[::-1], adjoint, vector, adjoints, several, self.dtype)

    def adjoint(self) -> Operator:
        return self.H

    @property
    def T(self) -> Operator:
        other = self.H
        return other.like(lambda x: np.conj(other.matvec(np.conj(x))), lambda x: np.conj(self.matvec(np.conj(x))))

    def transpose(self) -> Operator:
        return self.T

    def __pow__(self, power: int) -> Operator:
        found = Operator.of_matrix(np.eye(self.shape[0]))
        for _ in range(power):
            found = found @ self
        return found

    def toarray(self) -> Any:
        """The matrix."""
        if self.shape[1] > MOST_COLUMNS:
            raise UnsupportedError(
                f"a LinearOperator of {self.shape[1]} columns is solved with among traced values",
                hint="pass a sparse matrix, or write the solver's steps as a loop",
            )
        from srcgrad.api import vmap

        return np.transpose(vmap(self.matvec)(np.eye(self.shape[1])))


COMPOSED: Final[dict[str, Callable[..., Operator]]] = {
    "_AdjointLinearOperator": lambda a: Operator.of(a).H,
    "_TransposedLinearOperator": lambda a: Operator.of(a).T,
    "_SumLinearOperator": lambda a, b: Operator.of(a) + b,
    "_ProductLinearOperator": lambda a, b: Operator.of(a) @ b,
    "_ScaledLinearOperator": lambda a, number: number * Operator.of(a),
    "_PowerLinearOperator": lambda a, power: Operator.of(a) ** power,
}
"""What SciPy makes of operators, by the names of its classes."""


def made(original: Any) -> Callable[..., Any]:
    """What stands for the class where functions are given: SciPy's own calls one of them to ask for its dtype."""

    def rule(shape: Any, matvec: Any, rmatvec: Any = None, matmat: Any = None, dtype: Any = None, rmatmat: Any = None,
             **options: Any) -> Any:  # fmt: skip
        return Operator(shape, matvec, rmatvec, matmat, rmatmat, dtype)

    return rule


call_rule(sparse_linalg.LinearOperator)(made(sparse_linalg.LinearOperator))


@call_rule(sparse_linalg.aslinearoperator)
def aslinearoperator(A: Any) -> Any:
    if isinstance(A, (Operator, sparse_linalg.LinearOperator)):
        return A
    return Operator.of_matrix(A) if isinstance(A, Sparse) or contains_tracer(A) else sparse_linalg.aslinearoperator(A)


# --- least squares ---------------------------------------------------------------------------------------------------


def least_squares(original: Callable[..., Any], unknown: dict[int, str]) -> Callable[..., Any]:
    """The rule of a solver: the limit of its iterations, and what of the rest of its results is that of the limit.

    ``unknown``: the places of what the iterations alone know.
    """
    name = original.__name__

    def rule(A: Any, b: Any, damp: Any = 0.0, *args: Any, x0: Any = None, **options: Any) -> Any:
        if not (isinstance(A, (Sparse, Operator)) or contains_tracer(A) or contains_tracer(b) or contains_tracer(damp)):
            return original(A, b, damp, *args, x0=x0, **options)
        matrix = dense(A)
        right = as_array(b).reshape(-1)
        start: Any = np.zeros(matrix.shape[1]) if x0 is None else as_array(x0)
        size = matrix.shape[1]
        rows = np.concatenate([matrix, damp * np.eye(size)]) if contains_tracer(damp) or damp else matrix
        given = right - matrix @ start
        given = np.concatenate([given, np.zeros(size)]) if rows is not matrix else given
        x = start + np.linalg.lstsq(rows, given, rcond=None)[0]
        rest = right - matrix @ x
        lengths = [np.linalg.norm(rest), np.sqrt(np.sum(np.abs(rest) ** 2) + np.sum(np.abs(damp * x) ** 2))]
        slope = np.linalg.norm(np.conj(matrix.T) @ rest - damp**2 * x)
        stop = np.where(lengths[0] <= 1e-6 * np.linalg.norm(right), 1, 2)
        found = [x, stop, None, lengths[0], lengths[1], None, None, slope, np.linalg.norm(x), None]
        if name == "lsmr":
            found = [x, stop, None, lengths[1], slope, None, None, np.linalg.norm(x)]
        for place, word in unknown.items():
            found[place] = Undefined(word, f"is known to the iterations of {name} alone")
        return tuple(found)

    return rule


def dense(A: Any) -> Any:
    if isinstance(A, (Operator, sparse_linalg.LinearOperator)):
        return Operator.of(A).toarray()
    return Sparse.of(A).toarray() if isinstance(A, (Sparse, *UNTRACED)) else as_array(A)


call_rule(sparse_linalg.lsqr)(least_squares(sparse_linalg.lsqr, {2: "itn", 5: "anorm", 6: "acond", 9: "var"}))
call_rule(sparse_linalg.lsmr)(least_squares(sparse_linalg.lsmr, {2: "itn", 5: "norma", 6: "conda"}))
