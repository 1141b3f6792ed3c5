"""How functions of dimensions read their arguments, and the named tuples they return."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from inspect import CO_VARKEYWORDS
from typing import Any, Final

import numpy as np

from srcgrad.torch import dtypes
from srcgrad.torch.dispatch import named
from srcgrad.torch.errors import TensorError, TensorIndexError, TensorTypeError
from srcgrad.torch.tensor import Tensor, checked_dim
from srcgrad.tracing.tracer import FUNCTIONS, Tracer

INT64: Final = np.dtype(np.int64)


def need_tensor(function: str, x: Any, argument: str = "input", position: int = 1) -> None:
    """Raise a `TensorTypeError` unless the argument is a tensor."""
    if not isinstance(x, Tensor):
        raise TensorTypeError(
            f"{function}(): argument '{argument}' (position {position}) must be Tensor, not {type(x).__name__}"
        )


def need_flag(function: str, x: Any, argument: str, position: int) -> None:
    """Raise a `TensorTypeError` unless the argument is a bool."""
    if not isinstance(x, bool):
        raise TensorTypeError(
            f"{function}(): argument '{argument}' (position {position}) must be bool, not {type(x).__name__}"
        )


def need_inexact(function: str, x: Tensor) -> None:
    """Raise a `TensorError` unless the tensor is floating or complex."""
    if x._data.dtype.kind not in "fc":
        raise TensorError(
            f"{function}: Expected a floating point or complex tensor as input. Got {named(x._data.dtype)}",
            hint="convert it first: x.float()",
        )


def need_ordered(function: str, x: Tensor) -> None:
    """Raise a `TensorError` for complex numbers, which have no order."""
    if x._data.dtype.kind == "c":
        raise TensorError(f"{function}(): does not support complex input", hint="order its .real, .imag or .abs()")


def one_axis(dim: Any, rank: int, function: str = "the function") -> int:
    """A dimension as a number that is not negative."""
    if type(dim) is int:
        if 0 <= dim < rank:
            return dim
    elif not hasattr(dim, "__index__") or isinstance(dim, bool):
        raise TensorTypeError(f"{function}(): argument 'dim' must be int, not {type(dim).__name__}")
    return checked_dim(int(dim), rank)


def axes_of(dim: Any, rank: int, function: str) -> tuple[int, ...]:
    """The dimensions that are reduced: all for None and for ()."""
    if dim is None:
        return tuple(range(rank))
    if isinstance(dim, (tuple, list)):
        if not dim:
            return tuple(range(rank))
        found = tuple([one_axis(d, rank, function) for d in dim])
        if len(set(found)) != len(found):
            twice = next(d for d in found if found.count(d) > 1)
            raise TensorError(f"dim {twice} appears multiple times in the list of dims")
    else:
        found = (one_axis(dim, rank, function),)
    return found if rank else ()


def numpy_names(function: str, names: dict[str, Any], dim: Any, keepdim: Any) -> tuple[Any, Any]:
    """``axis`` and ``keepdims``, NumPy's names for ``dim`` and ``keepdim``, which PyTorch takes too."""
    for name, value in names.items():
        if name == "axis":
            dim = value
        elif name == "keepdims":
            keepdim = value
        else:
            raise TensorTypeError(f"{function}() got an unexpected keyword argument '{name}'")
    return dim, keepdim


def numpy_named(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with `numpy_names`; itself if it has no ``dim``, or takes them already."""
    code = getattr(function, "__code__", None)
    if code is None or code.co_flags & CO_VARKEYWORDS:
        return function
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if "dim" not in known or "axis" in known:
        return function

    @wraps(function)
    def call(*args: Any, **names: Any) -> Any:
        if "axis" in names and "dim" not in names:
            names["dim"] = names.pop("axis")
        if "keepdims" in names and "keepdim" not in names:
            names["keepdim"] = names.pop("keepdims")
        return function(*args, **names)

    return call


def numpy_dtype(dtype: Any) -> np.dtype[Any] | None:
    """What a user gave as ``dtype=``, as NumPy's."""
    return None if dtype is None else dtypes.as_dtype(dtype).numpy


def widened(x: Tensor, dtype: Any) -> np.dtype[Any] | None:
    """The dtype in which sums and products are taken: ``dtype=``, or int64 for integers and bools."""
    if dtype is not None:
        return dtypes.as_dtype(dtype).numpy
    return INT64 if x._data.dtype.kind in "iub" else None


def lengths(shape: Sequence[int], axes: Iterable[int]) -> int:
    """How many elements are reduced to one."""
    count = 1
    for axis in axes:
        count *= shape[axis]
    return count


def in_single(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function computed in single precision where its array (or arrays) are of half precision, as PyTorch does."""

    @wraps(function)
    def call(x: Any, *rest: Any) -> Any:
        if x.dtype.char != "e":
            return function(x, *rest)
        given = [y.astype(np.float32) if hasattr(y, "astype") else y for y in rest]
        found = function(x.astype(np.float32), *given)
        if isinstance(found, tuple):
            return tuple(y.astype(np.float16) if y.dtype.char == "f" else y for y in found)
        return found.astype(np.float16)

    return call


def scipy_linalg(name: str) -> Callable[..., Any]:
    """A function of scipy.linalg, loaded when it is called. NumPy's functions find their rules for tracers by
    themselves, SciPy's do not."""

    def call(*arrays: Any, **options: Any) -> Any:
        import scipy.linalg

        function = getattr(scipy.linalg, name)
        first = arrays[0][0] if isinstance(arrays[0], tuple) else arrays[0]
        if isinstance(first, Tracer) or any(isinstance(array, Tracer) for array in arrays[1:]):
            from srcgrad.tracing.functions import matrix_functions, scipy_linalg  # noqa: F401  it registers the rules

            return FUNCTIONS[function](*arrays, **options)
        if name in SOLVERS and not (first.size and arrays[1].size):
            return solution_of_nothing(first, arrays[1])
        return function(*arrays, **options)

    return call


SOLVERS: Final = frozenset({"cho_solve", "lu_solve", "solve_triangular"})
"""Functions of SciPy's that refuse stacks of no matrices."""


def solution_of_nothing(matrices: Any, b: Any) -> Any:
    """What equations have that have no elements: zeros of the shape that results."""
    batch = np.broadcast_shapes(matrices.shape[:-2], b.shape[:-2])
    return np.zeros((*batch, *b.shape[-2:]), np.result_type(matrices, b))


def lapack(name: str, x: Any) -> Any:
    """A routine of LAPACK for the dtype of an array."""
    import scipy.linalg

    return scipy.linalg.get_lapack_funcs(name, (x,))


RESULTS: Final[dict[str, Any]] = {}


def named_result(type_name: str, *fields: str) -> Any:
    """The class of the named tuples that one function returns: ``named_result("max", "values", "indices")``.

    They print as PyTorch prints its ``torch.return_types``.
    """
    found = RESULTS.get(type_name)
    if found is None:
        space = {"__slots__": (), "__repr__": described, "__reduce__": parts, "__module__": "torch.return_types"}
        found = RESULTS[type_name] = type(type_name, (namedtuple(type_name, fields),), space)
    return found


def described(self: Any) -> str:
    items = ",\n".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
    return f"torch.return_types.{type(self).__name__}(\n{items})"


def parts(self: Any) -> tuple[Any, ...]:
    return rebuilt, (type(self).__name__, self._fields, tuple(self))


def rebuilt(type_name: str, fields: tuple[str, ...], items: tuple[Any, ...]) -> Any:
    """A named tuple that was pickled."""
    return named_result(type_name, *fields)(*items)


def no_elements(function: str, axis: int) -> TensorIndexError:
    """The error of an extreme of nothing."""
    return TensorIndexError(f"{function}(): Expected reduction dim {axis} to have non-zero size.")
