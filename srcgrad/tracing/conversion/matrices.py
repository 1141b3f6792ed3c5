"""What ``np.matrix`` is among traced values: SciPy's sparse matrices give one by ``todense`` and by sums along an axis.

It has two axes always, and ``*`` and ``**`` are of matrices. As a plain array it would compute other numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from srcgrad.errors import UnsupportedError
from srcgrad.tracing.tracer import Deferring, Tracer

METHODS: Final = {
    getattr(np, name): name
    for name in ("sum", "mean", "prod", "max", "min", "all", "any", "transpose", "ravel", "conj", "copy", "dot")
}
ARRAYS: Final = frozenset(
    {np.array, np.asarray, np.ascontiguousarray, np.asfortranarray, np.asarray_chkfinite}
    | {np.allclose, np.array_equal, np.shape, np.ndim, np.size, np.isrealobj, np.iscomplexobj, np.zeros_like}
    | {np.linalg.det, np.linalg.slogdet, np.linalg.eigvalsh, np.linalg.eigvals, np.linalg.norm, np.linalg.cond}
    | {np.linalg.solve, np.linalg.matrix_rank}
)
"""What makes plain arrays and numbers of matrices, as ``solve`` of a right side that is none."""
KEEPING: Final = frozenset({np.linalg.inv, np.linalg.pinv, np.linalg.cholesky, np.abs, np.real, np.imag, np.round})


class Matrix(Deferring):
    """``np.matrix`` of a traced array."""

    __slots__ = ("array",)
    __array_ufunc__ = None  # so that an array leaves operators to this
    stands_for = np.matrix

    def __init__(self, array: Any) -> None:
        self.array = np.atleast_2d(array)

    ndim: Any = 2
    shape: Any = property(lambda self: self.array.shape)
    size: Any = property(lambda self: self.array.size)
    dtype: Any = property(lambda self: self.array.dtype)
    T: Any = property(lambda self: Matrix(self.array.T))
    H: Any = property(lambda self: Matrix(np.conj(self.array.T)))
    I: Any = property(lambda self: Matrix(np.linalg.inv(self.array)))  # noqa: E741
    A: Any = property(lambda self: self.array)
    A1: Any = property(lambda self: self.array.reshape(-1))
    real: Any = property(lambda self: Matrix(np.real(self.array)))
    imag: Any = property(lambda self: Matrix(np.imag(self.array)))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(np.matrix, name):
            raise AttributeError(f"'matrix' object has no attribute {name!r}")
        raise refused(repr(name))

    def __len__(self) -> int:
        return int(self.shape[0])

    def __iter__(self) -> Any:
        return iter([self[k] for k in range(len(self))])

    def __getitem__(self, index: Any) -> Any:
        """One axis is a row, or a column where the second index is a number, as NumPy has it."""
        found = self.array[index]
        if found.ndim == 1:
            column = type(index) is tuple and len(index) > 1 and np.ndim(index[1]) == 0 and index[1] is not None
            found = found[:, None] if column and type(index[1]) is not slice else found[None]
        return Matrix(found) if found.ndim else found

    def __setitem__(self, index: Any, value: Any) -> None:
        self.array[index] = plain(value)

    def item(self, *index: Any) -> Any:
        return self.array.item(*index)

    def tolist(self) -> Any:
        return self.array.tolist()

    def getA(self) -> Any:
        return self.array

    def getA1(self) -> Any:
        return self.A1

    def copy(self, *_: Any) -> Matrix:
        return Matrix(self.array.copy())

    def astype(self, dtype: Any) -> Matrix:
        return Matrix(self.array.astype(dtype))

    def conj(self) -> Matrix:
        return Matrix(np.conj(self.array))

    def transpose(self, *_: Any) -> Matrix:
        return self.T  # type: ignore[no-any-return]

    def reshape(self, *shape: Any, **options: Any) -> Matrix:
        return Matrix(self.array.reshape(*shape, **options))

    def ravel(self, *_: Any) -> Matrix:
        return Matrix(self.array.reshape(1, -1))

    def flatten(self, *_: Any) -> Matrix:
        return self.ravel().copy()

    def dot(self, other: Any) -> Any:
        return self @ other

    # --- operators
    def __matmul__(self, other: Any) -> Any:
        return NotImplemented if sparse(other) else Matrix(self.array @ columns(other))

    def __rmatmul__(self, other: Any) -> Any:
        return Matrix(np.atleast_2d(plain(other)) @ self.array)

    def __mul__(self, other: Any) -> Any:
        return Matrix(self.array * other) if np.ndim(plain(other)) == 0 else self @ other

    def __rmul__(self, other: Any) -> Any:
        return Matrix(other * self.array) if np.ndim(plain(other)) == 0 else self.__rmatmul__(other)

    def __pow__(self, n: Any) -> Any:
        return Matrix(np.linalg.matrix_power(self.array, n))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return of_matrices(func, args, kwargs)

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise refused("what Python asks")

    __array__ = __bool__ = __float__ = __int__ = __complex__ = __index__ = __contains__ = _refuse


def elementwise(name: str) -> Callable[[Matrix, Any], Any]:
    def method(self: Matrix, other: Any) -> Any:
        return NotImplemented if sparse(other) else Matrix(getattr(self.array, name)(plain(other)))

    return method


def reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    """Along an axis it gives a matrix, which has two of them."""

    def method(self: Matrix, axis: Any = None) -> Any:
        found = function(self.array, axis=axis)
        return found if axis is None else Matrix(np.expand_dims(found, axis))

    return method


for _function in (np.sum, np.mean, np.prod, np.max, np.min, np.all, np.any):
    setattr(Matrix, METHODS[_function], reduction(_function))
for _name in ("add", "sub", "truediv", "floordiv", "mod"):
    for _way in ("__", "__r"):
        setattr(Matrix, f"{_way}{_name}__", elementwise(f"{_way}{_name}__"))
for _name in ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"):
    setattr(Matrix, _name, elementwise(_name))
for _name in ("__neg__", "__pos__", "__abs__"):
    setattr(Matrix, _name, lambda self, name=_name: Matrix(getattr(self.array, name)()))


def sparse(x: Any) -> bool:
    return type(x).__module__.startswith("scipy.sparse") or type(x).__name__ == "Sparse"


def plain(x: Any) -> Any:
    """The array of a matrix; anything else as it is."""
    if isinstance(x, Matrix):
        return x.array
    return np.asarray(x) if isinstance(x, np.matrix) else x


def columns(other: Any) -> Any:
    """What a matrix is multiplied by: of one axis it is a row, which fits a matrix with one column alone."""
    return np.atleast_2d(plain(other))


def is_of_arrays(function: Any) -> bool:
    """Whether a function is of NumPy's or SciPy's, and does not leave matrices what they are."""
    module = getattr(function, "__module__", None)
    named = isinstance(module, str) and module.partition(".")[0] in ("numpy", "scipy")
    return (named or isinstance(function, np.ufunc)) and function not in (np.asanyarray, np.asmatrix, np.iterable)


def of_matrices(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of NumPy's or SciPy's that is given matrices.

    Raises:
        UnsupportedError: it is not known whether it gives a matrix.
    """
    from srcgrad.tracing.conversion.calls import call  # which needs this module

    module = str(getattr(function, "__module__", None) or "")
    if function in METHODS and isinstance(args[0], Matrix):
        return getattr(args[0], METHODS[function])(*args[1:], **kwargs)
    solving = function is np.linalg.solve and len(args) > 1 and isinstance(args[1], Matrix)
    known = function in ARRAYS or module.startswith("scipy.")
    if not (known or isinstance(function, np.ufunc) or function in KEEPING):
        raise refused(f"{module.replace('numpy', 'np', 1)}.{getattr(function, '__name__', function)} of")
    found = call(function, *map(plain, args), **{name: plain(x) for name, x in kwargs.items()})
    keeps = solving or not known
    return Matrix(found) if keeps and isinstance(found, Tracer) and found.ndim == 2 else found


def refused(what: str) -> UnsupportedError:
    return UnsupportedError(
        f"{what} a traced np.matrix is not supported", hint="use np.asarray(x), or toarray() of the sparse matrix"
    )
