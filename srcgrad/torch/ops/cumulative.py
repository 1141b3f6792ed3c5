"""Running sums and products, differences, integrals over a grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from srcgrad.torch import dtypes
from srcgrad.torch.dispatch import apply, apply_inplace, named
from srcgrad.torch.errors import TensorError, TensorNotImplementedError
from srcgrad.torch.operation import Op
from srcgrad.torch.ops.arguments import in_single, need_tensor, numpy_dtype, one_axis, widened
from srcgrad.torch.ops.define import floating, method, promoted, store
from srcgrad.torch.tensor import Tensor


def running_function(name: str, node: str, function: Callable[..., Any]) -> Callable[..., Tensor]:
    """``cumsum`` or ``cumprod``."""

    def running(x: Any, axis: int) -> Any:
        return function(x, axis=axis, dtype=x.dtype) if x.ndim else np.copy(x)

    op = Op(name, node, in_single(running), saves_result=True)

    def call(input: Tensor, dim: int, *, dtype: Any = None, out: Any = None) -> Tensor:
        need_tensor(name, input)
        axis = one_axis(dim, input._data.ndim, name)
        found = apply(op, (input,), (axis,), widened(input, dtype))
        return found if out is None else store(out, found)  # type: ignore[no-any-return]

    def call_inplace(self: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
        return apply_inplace(op, self, (), (one_axis(dim, self._data.ndim, name),), numpy_dtype(dtype))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`torch.{name}` along a dimension, in ``dtype``; that of integers is int64."
    call_inplace.__name__ = call_inplace.__qualname__ = f"{name}_"
    call_inplace.__doc__ = f"`{name}`, written into the tensor."
    setattr(Tensor, name, call)
    setattr(Tensor, f"{name}_", call_inplace)
    return call


cumsum = running_function("cumsum", "CumsumBackward0", np.cumsum)
cumprod = running_function("cumprod", "CumprodBackward0", np.cumprod)


@in_single
def log_of_running_sum(x: Any, axis: int) -> Any:
    if not x.ndim or not x.size:
        return np.copy(x)
    if x.dtype.kind == "f":
        return np.logaddexp.accumulate(x, axis=axis)
    shift = np.max(np.real(x), axis=axis, keepdims=True)
    return np.log(np.cumsum(np.exp(x - shift), axis=axis)) + shift


LOGCUMSUMEXP: Final = Op("logcumsumexp", "LogcumsumexpBackward0", log_of_running_sum, saves_result=True)


@method("logcumsumexp")
def logcumsumexp(input: Tensor, dim: int, *, out: Any = None) -> Tensor:
    """log(cumsum(exp(x))) along a dimension, without overflow."""
    need_tensor("logcumsumexp", input)
    axis = one_axis(dim, input._data.ndim, "logcumsumexp")
    if input._data.dtype.kind not in "fc":
        raise TensorNotImplementedError(
            f'"logcumsumexp_out_cpu" not implemented for {named(input._data.dtype)!r}',
            hint="convert it first: x.float()",
        )
    return store(out, apply(LOGCUMSUMEXP, (input,), (axis,)))  # type: ignore[no-any-return]


# --- differences --------------------------------------------------------------------------------------


def differences(x: Any, *ends_and_statics: Any) -> Any:
    """``np.diff`` of the array joined with the ends that are given."""
    *ends, count, axis, before, after = ends_and_statics
    parts = [*(ends[:1] if before else ()), x, *(ends[-1:] if after else ())]
    joined = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=axis)
    return np.diff(joined, n=count, axis=axis) if count else np.copy(joined)


DIFF: Final = Op("diff", "SubBackward0", differences)


@method("diff")
def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
    *,
    out: Any = None,
) -> Tensor:
    """The n-th differences along a dimension, with tensors joined to its ends first."""
    need_tensor("diff", input)
    if not input._data.ndim:
        raise TensorError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise TensorError(f"order must be non-negative but got {n}")
    axis = one_axis(dim, input._data.ndim, "diff")
    if not n:
        prepend = append = None
    ends = [end for end in (prepend, append) if end is not None]
    count = min(n, input._data.shape[axis] + sum(end._data.shape[axis] for end in ends))
    statics = (count, axis, prepend is not None, append is not None)
    cast = promoted((input, *ends)) if ends else None
    return store(out, apply(DIFF, (input, *ends), statics, cast))  # type: ignore[no-any-return]


GRADIENT: Final = Op(
    "gradient",
    "CatBackward0",
    lambda x, spacing, axis, edge: np.gradient(x, spacing, axis=axis, edge_order=edge),
)


@method("gradient")
def gradient(input: Tensor, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """The derivative along each dimension by differences of the second order: a tensor for each.

    Args:
        spacing: the step, one for each dimension, or a tensor of coordinates for each.
        edge_order: the order at the ends, 1 or 2.
    """
    need_tensor("gradient", input)
    if edge_order not in (1, 2):
        raise TensorError("torch.gradient only supports edge_order=1 and edge_order=2.")
    rank = input._data.ndim
    if dim is None:
        axes = list(range(rank))
    else:
        axes = [one_axis(d, rank, "gradient") for d in (dim if isinstance(dim, Sequence) else (dim,))]
    spacing = 1 if spacing is None else spacing
    steps = list(spacing) if isinstance(spacing, Sequence) else [spacing] * len(axes)
    if len(steps) != len(axes):
        raise TensorError(
            f"torch.gradient expected spacing to be unspecified, a scalar, or a list of length {len(axes)}, not of "
            f"length {len(steps)}"
        )

    def along(step: Any, axis: int) -> Tensor:
        if not isinstance(step, Tensor):
            return apply(GRADIENT, (input,), (step, axis, edge_order), floating(input))  # type: ignore[no-any-return]
        dtype = promoted((input, step))
        cast = dtype if dtype.kind in "fc" else floating(input)
        return apply(GRADIENT, (input, step), (axis, edge_order), cast)  # type: ignore[no-any-return]

    return tuple(along(step, axis) for step, axis in zip(steps, axes, strict=True))


# --- integrals ----------------------------------------------------------------------------------------


def strips(y: Any, *rest: Any) -> Any:
    """The areas between neighbouring points, times 2; ``rest`` ends with the step and the axis."""
    *points, step, axis = rest
    low, high = np.take(y, np.arange(y.shape[axis] - 1), axis), np.take(y, np.arange(1, y.shape[axis]), axis)
    if not points:
        return (low + high) * step
    (x,) = points
    if x.ndim == 1 and y.ndim > 1:
        shape = [1] * y.ndim
        shape[axis] = x.shape[0]
        x = x.reshape(shape)
    return (low + high) * np.diff(x, axis=axis)


def area(y: Any, *rest: Any) -> Any:
    return np.sum(strips(y, *rest), axis=rest[-1]) / 2


def areas(y: Any, *rest: Any) -> Any:
    return np.cumsum(strips(y, *rest), axis=rest[-1]) / 2


TRAPEZOID: Final = Op("trapezoid", "MulBackward1", area)
TRAPEZOID_AT: Final = Op("trapezoid", "DivBackward1", area)
AREAS: Final = Op("cumulative_trapezoid", "CumsumBackward0", areas)
AREAS_AT: Final = Op("cumulative_trapezoid", "DivBackward1", areas)


def integral(op: Op, op_at: Op, y: Tensor, x: Any, dx: Any, dim: int) -> Tensor:
    need_tensor(op.name, y, "y")
    axis = one_axis(dim, y._data.ndim, op.name)
    if x is None:
        return apply(op, (y,), (1 if dx is None else dx, axis), floating(y))  # type: ignore[no-any-return]
    if dx is not None:
        raise TensorError(f"{op.name} takes x or dx, not both")
    dtype = promoted((y, x))
    cast = dtype if dtype.kind in "fc" else dtypes.get_default_dtype().numpy
    return apply(op_at, (y, x), (1, axis), cast)  # type: ignore[no-any-return]


def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """The integral along a dimension by the trapezoidal rule, of points x or of steps dx."""
    return integral(TRAPEZOID, TRAPEZOID_AT, y, x, dx, dim)


trapz = trapezoid


def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """The running `trapezoid`."""
    return integral(AREAS, AREAS_AT, y, x, dx, dim)


__all__ = [
    "cumprod", "cumsum", "cumulative_trapezoid", "diff", "gradient", "logcumsumexp", "trapezoid", "trapz",
]  # fmt: skip
