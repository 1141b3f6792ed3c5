"""Sums, means, products, spreads, and what is made of exponentials."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from srcgrad.torch import dtypes
from srcgrad.torch.dispatch import apply, named
from srcgrad.torch.errors import TensorError, TensorNotImplementedError, TensorTypeError
from srcgrad.torch.operation import Op
from srcgrad.torch.ops.arguments import (
    axes_of,
    in_single,
    lengths,
    need_flag,
    need_tensor,
    numpy_dtype,
    numpy_names,
    one_axis,
    widened,
)
from srcgrad.torch.ops.define import method, store
from srcgrad.torch.tensor import Tensor, wrapped

add_reduce: Final[Callable[..., Any]] = np.add.reduce
multiply_reduce: Final[Callable[..., Any]] = np.multiply.reduce
maximum_reduce: Final[Callable[..., Any]] = np.maximum.reduce


# --- sums and means -----------------------------------------------------------------------------------


@in_single
def sum_all(x: Any) -> Any:
    return add_reduce(x, axis=None)


@in_single
def sum_over(x: Any, axes: tuple[int, ...], keep: bool) -> Any:
    return add_reduce(x, axis=axes, keepdims=keep)


@in_single
def mean_over(x: Any, axes: tuple[int, ...], keep: bool) -> Any:
    return add_reduce(x, axis=axes, keepdims=keep) / lengths(x.shape, axes)


@in_single
def mean_all(x: Any) -> Any:
    return mean_over(x, tuple(range(x.ndim)), False)


@in_single
def nansum_over(x: Any, axes: tuple[int, ...], keep: bool) -> Any:
    return add_reduce(np.where(np.isnan(x), np.zeros((), x.dtype), x), axis=axes, keepdims=keep)


@in_single
def nanmean_over(x: Any, axes: tuple[int, ...], keep: bool) -> Any:
    there = ~np.isnan(x)
    total = add_reduce(np.where(there, x, np.zeros((), x.dtype)), axis=axes, keepdims=keep)
    return total / add_reduce(there.astype(x.dtype), axis=axes, keepdims=keep)


SUM_ALL: Final = Op("sum", "SumBackward0", sum_all)
SUM: Final = Op("sum", "SumBackward1", sum_over)
MEAN_ALL: Final = Op("mean", "MeanBackward0", mean_all)
MEAN: Final = Op("mean", "MeanBackward1", mean_over)
NANSUM: Final = Op("nansum", "NansumBackward0", nansum_over)
NANMEAN: Final = Op("nanmean", "DivBackward0", nanmean_over)
NO_DIM: Final[Any] = object()
"""Where a dimension is not given; None means all of them."""


@method("sum")
def sum(
    input: Tensor, dim: Any = NO_DIM, keepdim: bool = False, *, dtype: Any = None, out: Any = None, **names: Any
) -> Tensor:
    """The sum over dimensions (all by default), in ``dtype``; that of integers is int64."""
    if names:
        dim, keepdim = numpy_names("sum", names, dim, keepdim)
    need_tensor("sum", input)
    cast = widened(input, dtype) if dtype is not None or input._data.dtype.kind in "iub" else None
    if dim is NO_DIM:
        found: Tensor = apply(SUM_ALL, (input,), (), cast)
    else:
        need_flag("sum", keepdim, "keepdim", 2)
        found = apply(SUM, (input,), (axes_of(dim, input._data.ndim, "sum"), keepdim), cast)
    return found if out is None else store(out, found)


def mean_dtype(name: str, x: Tensor, dtype: Any) -> np.dtype[Any] | None:
    """The dtype of a mean.

    Raises:
        TensorError: it would be an integer one.
    """
    cast = numpy_dtype(dtype)
    found = x._data.dtype if cast is None else cast
    if found.kind not in "fc":
        which = "Input" if cast is None else "Optional"
        raise TensorError(
            f"{name}(): could not infer output dtype. {which} dtype must be either a floating point or complex dtype. "
            f"Got: {named(found)}",
            hint="convert it first: x.float(), or pass dtype=torch.float32",
        )
    return cast


@method("mean")
def mean(
    input: Tensor, dim: Any = NO_DIM, keepdim: bool = False, *, dtype: Any = None, out: Any = None, **names: Any
) -> Tensor:
    """The mean over dimensions (all by default) of floating or complex numbers."""
    if names:
        dim, keepdim = numpy_names("mean", names, dim, keepdim)
    need_tensor("mean", input)
    cast = mean_dtype("mean", input, dtype) if dtype is not None or input._data.dtype.kind not in "fc" else None
    if dim is NO_DIM:
        found: Tensor = apply(MEAN_ALL, (input,), (), cast)
    else:
        need_flag("mean", keepdim, "keepdim", 2)
        found = apply(MEAN, (input,), (axes_of(dim, input._data.ndim, "mean"), keepdim), cast)
    return found if out is None else store(out, found)


@method("nansum")
def nansum(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None, **names: Any
) -> Tensor:
    """The sum of what is not nan."""
    if names:
        dim, keepdim = numpy_names("nansum", names, dim, keepdim)
    need_tensor("nansum", input)
    if input._data.dtype.kind == "c":
        raise TensorError("nansum on CPU does not support complex inputs", hint="use torch.where")
    if input._data.dtype.kind != "f":
        return sum(input, dim, keepdim, dtype=dtype, out=out)
    statics = (axes_of(dim, input._data.ndim, "nansum"), keepdim)
    return store(out, apply(NANSUM, (input,), statics, numpy_dtype(dtype)))  # type: ignore[no-any-return]


@method("nanmean")
def nanmean(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None, **names: Any
) -> Tensor:
    """The mean of what is not nan."""
    if names:
        dim, keepdim = numpy_names("nanmean", names, dim, keepdim)
    need_tensor("nanmean", input)
    if input._data.dtype.kind not in "fc":
        raise TensorError(
            "nanmean(): expected input to have floating point or complex dtype but got " + named(input._data.dtype),
            hint="convert it first: x.float()",
        )
    if input._data.dtype.kind == "c":
        raise TensorError("nansum on CPU does not support complex inputs", hint="use torch.where")
    statics = (axes_of(dim, input._data.ndim, "nanmean"), keepdim)
    return store(out, apply(NANMEAN, (input,), statics, numpy_dtype(dtype)))  # type: ignore[no-any-return]


# --- products -----------------------------------------------------------------------------------------

PROD_ALL: Final = Op(
    "prod", "ProdBackward0", in_single(lambda x: multiply_reduce(x, axis=None, dtype=x.dtype)), saves_result=True
)
PROD: Final = Op(
    "prod",
    "ProdBackward1",
    in_single(
        lambda x, axis, keep: multiply_reduce(x, axis=axis, dtype=x.dtype, keepdims=keep) if x.ndim else np.copy(x)
    ),
    saves_result=True,
)


@method("prod")
def prod(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None, **names: Any
) -> Tensor:
    """The product over a dimension (all by default), in ``dtype``; that of integers is int64."""
    if names:
        dim, keepdim = numpy_names("prod", names, dim, keepdim)
    need_tensor("prod", input)
    cast = widened(input, dtype)
    if dim is None:
        return store(out, apply(PROD_ALL, (input,), (), cast))  # type: ignore[no-any-return]
    return store(out, apply(PROD, (input,), (one_axis(dim, input._data.ndim, "prod"), keepdim), cast))  # type: ignore[no-any-return]


# --- variances ----------------------------------------------------------------------------------------


@in_single
def spread(x: Any, axes: tuple[int, ...], keep: bool, correction: float, root: bool) -> Any:
    """The variance or its root; its derivative at equal numbers is 0, in the root's too."""
    count = lengths(x.shape, axes)
    if count > correction:
        return (np.std if root else np.var)(x, axis=axes, ddof=correction, keepdims=keep)
    mean = add_reduce(x, axis=axes, keepdims=True) / count
    found = add_reduce(np.abs(x - mean) ** 2, axis=axes, keepdims=keep) / 0.0
    return np.sqrt(found) if root else found


@in_single
def with_mean(x: Any, axes: tuple[int, ...], keep: bool, correction: float, root: bool) -> Any:
    return spread(x, axes, keep, correction, root), mean_over(x, axes, keep)


def spread_function(name: str, node: str, root: bool, with_mean_: bool) -> Callable[..., Any]:
    """``var``, ``std``, or one of them with the mean."""
    op = Op(name, node, with_mean if with_mean_ else spread, saves_result=True)

    def call(
        input: Tensor,
        dim: Any = None,
        unbiased: Any = None,
        keepdim: bool = False,
        *,
        correction: float | None = None,
        out: Any = None,
        **names: Any,
    ) -> Any:
        if names:
            dim, keepdim = numpy_names(name, names, dim, keepdim)
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        need_tensor(name, input)
        if input._data.dtype.kind not in "fc":
            who = name if with_mean_ else "std and var"
            raise TensorError(
                f"{who} only support floating point and complex dtypes", hint="convert it first: x.float()"
            )
        if correction is None:
            correction = 1 if unbiased is None else int(unbiased)
        elif unbiased is not None:
            raise TensorTypeError(f"{name}() takes unbiased or correction, not both")
        axes = axes_of(dim, input._data.ndim, name)
        found = apply(op, (input,), (axes, keepdim, correction, root))
        return store(out, found) if out is not None else found

    call.__name__ = call.__qualname__ = name
    call.__doc__ = (
        f"`torch.{name}`: over dimensions (all by default), the squares' sum divided by the count minus ``correction`` "
        "(1; 0 for ``unbiased=False``)."
    )
    if not with_mean_:
        setattr(Tensor, name, call)
    return call


var = spread_function("var", "VarBackward0", False, False)
std = spread_function("std", "StdBackward0", True, False)
var_mean = spread_function("var_mean", "VarMeanBackward0", False, True)
std_mean = spread_function("std_mean", "StdMeanBackward0", True, True)


# --- exponentials -------------------------------------------------------------------------------------


def shift_of(x: Any, axes: Any) -> Any:
    """What is subtracted before exponentials are taken: the largest number, 0 where it is infinite."""
    largest = maximum_reduce(np.real(x) if x.dtype.kind == "c" else x, axis=axes, keepdims=True)
    return np.where(np.isfinite(largest), largest, np.zeros((), largest.dtype))


@in_single
def logsumexp_over(x: Any, axes: tuple[int, ...], keep: bool) -> Any:
    if not lengths(x.shape, axes):
        return add_reduce(x, axis=axes, keepdims=keep) - np.inf
    shift = shift_of(x, axes)
    found = np.log(add_reduce(np.exp(x - shift), axis=axes, keepdims=True)) + shift
    return found if keep else np.squeeze(found, axis=axes)


@in_single
def logsumexp_pullback(cotangent: Any, result: Any, x: Any, axes: tuple[int, ...], keep: bool) -> Any:
    """The softmax times the cotangent; 0 for what is -inf, also where all is."""
    if not keep:
        cotangent, result = np.expand_dims(cotangent, axes), np.expand_dims(result, axes)
    share = np.exp(np.where(x == result, np.zeros((), x.dtype), x - result))
    return cotangent * (np.conjugate(share) if x.dtype.kind == "c" else share)


@in_single
def softmax_over(x: Any, axis: int) -> Any:
    if not x.ndim:
        return np.exp(x - x)
    if not x.shape[axis]:
        return np.copy(x)
    powers = x - maximum_reduce(x, axis=axis, keepdims=True)
    np.exp(powers, out=powers)
    powers /= add_reduce(powers, axis=axis, keepdims=True)
    return powers


@in_single
def softmax_pullback(cotangent: Any, result: Any, x: Any, axis: int) -> Any:
    product = cotangent * result
    return product - result * add_reduce(product, axis=axis if x.ndim else (), keepdims=True)


@in_single
def log_softmax_over(x: Any, axis: int) -> Any:
    if not x.ndim:
        return x - x
    if not x.shape[axis]:
        return np.copy(x)
    shifted = x - maximum_reduce(x, axis=axis, keepdims=True)
    shifted -= np.log(add_reduce(np.exp(shifted), axis=axis, keepdims=True))
    return shifted


@in_single
def log_softmax_pullback(cotangent: Any, result: Any, x: Any, axis: int) -> Any:
    return cotangent - np.exp(result) * add_reduce(cotangent, axis=axis if x.ndim else (), keepdims=True)


LOGSUMEXP: Final = Op("logsumexp", "LogsumexpBackward0", logsumexp_over, pullback=logsumexp_pullback)
SOFTMAX: Final = Op("softmax", "SoftmaxBackward0", softmax_over, pullback=softmax_pullback)
LOG_SOFTMAX: Final = Op("log_softmax", "LogSoftmaxBackward0", log_softmax_over, pullback=log_softmax_pullback)


@method("logsumexp")
def logsumexp(input: Tensor, dim: Any, keepdim: bool = False, *, out: Any = None) -> Tensor:
    """log(sum(exp(x))) over dimensions, without overflow."""
    need_tensor("logsumexp", input)
    cast = None if input._data.dtype.kind in "fc" else dtypes.get_default_dtype().numpy
    return store(out, apply(LOGSUMEXP, (input,), (axes_of(dim, input._data.ndim, "logsumexp"), keepdim), cast))  # type: ignore[no-any-return]


def normalised(op: Op, input: Tensor, dim: int, dtype: Any) -> Tensor:
    """A softmax of some kind along a dimension.

    Raises:
        TensorNotImplementedError: the numbers are not real, or integers.
    """
    need_tensor(op.name, input)
    axis = one_axis(dim, input._data.ndim, op.name)
    cast = numpy_dtype(dtype)
    kind = input._data.dtype if cast is None else cast
    if kind.kind != "f":
        raise TensorNotImplementedError(
            f'"{op.name}_lastdim_kernel_impl" not implemented for {named(kind)!r}',
            hint="convert it first: x.float(), or pass dtype=torch.float32",
        )
    return apply(op, (input,), (axis,), cast)  # type: ignore[no-any-return]


@method("softmax")
def softmax(input: Tensor, dim: int, dtype: Any = None, *, out: Any = None) -> Tensor:
    """exp(x) / sum(exp(x)) along a dimension."""
    return store(out, normalised(SOFTMAX, input, dim, dtype))  # type: ignore[no-any-return]


@method("log_softmax")
def log_softmax(input: Tensor, dim: int, dtype: Any = None, *, out: Any = None) -> Tensor:
    """The logarithm of `softmax`, without overflow."""
    return store(out, normalised(LOG_SOFTMAX, input, dim, dtype))  # type: ignore[no-any-return]


# --- truth, counts, traces ----------------------------------------------------------------------------


def truth_function(name: str, ufunc: Any) -> Callable[..., Tensor]:
    op = Op(name, None, lambda x, axes, keep: ufunc.reduce(x, axis=axes, keepdims=keep, dtype=np.bool_), quiet=True)

    def call(input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Any = None, **names: Any) -> Tensor:
        if names:
            dim, keepdim = numpy_names(name, names, dim, keepdim)
        need_tensor(name, input)
        axes = () if isinstance(dim, (tuple, list)) and not dim else axes_of(dim, input._data.ndim, name)
        found = apply(op, (input,), (axes, keepdim))
        if input._data.dtype == np.uint8:
            found = wrapped(found._data.astype(np.uint8))
        return store(out, found)  # type: ignore[no-any-return]

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Whether {name} elements over dimensions (all by default, none for ()) are true; uint8 gives uint8."
    setattr(Tensor, name, call)
    return call


all = truth_function("all", np.logical_and)
any = truth_function("any", np.logical_or)
COUNT: Final = Op("count_nonzero", None, lambda x, axes: np.count_nonzero(x, axis=axes), quiet=True)
TRACE: Final = Op("trace", "TraceBackward0", np.trace)


@method("count_nonzero")
def count_nonzero(input: Tensor, dim: Any = None) -> Tensor:
    """How many elements are not 0, over dimensions (all by default)."""
    need_tensor("count_nonzero", input)
    found = apply(COUNT, (input,), (axes_of(dim, input._data.ndim, "count_nonzero"),))
    return wrapped(np.asarray(found._data, np.int64)) if type(found._data) is int else found


@method("trace")
def trace(input: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix."""
    need_tensor("trace", input)
    if input._data.ndim != 2:
        raise TensorError(f"trace: expected a matrix, but got tensor with dim {input._data.ndim}")
    return apply(TRACE, (input,), (), widened(input, None))  # type: ignore[no-any-return]


__all__ = [
    "all", "any", "count_nonzero", "log_softmax", "logsumexp", "mean", "nanmean", "nansum", "prod", "softmax", "std",
    "std_mean", "sum", "trace", "var", "var_mean",
]  # fmt: skip
