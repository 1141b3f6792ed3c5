"""Covariances and counts."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from srcgrad.torch.dispatch import apply, named
from srcgrad.torch.errors import TensorError, TensorNotImplementedError
from srcgrad.torch.operation import Op
from srcgrad.torch.ops.arguments import in_single, need_tensor
from srcgrad.torch.ops.define import floating, method, store
from srcgrad.torch.tensor import Tensor


@in_single
def covariance(x: Any, *weights_and_statics: Any) -> Any:
    """Rows are variables. The divisor is that of `np.cov`, never below 0."""
    *weights, correction, repeats, weighs = weights_and_statics
    rows = x.reshape((1, -1)) if x.ndim < 2 else x
    count: Any = rows.shape[1]
    weight = None
    if repeats:  # integers next to a tensor of another category do not widen it
        weight = weights[0].astype(x.real.dtype)
        count = np.sum(weight)
    if weighs:
        weight = weights[-1] if weight is None else weight * weights[-1]
    total = count if weight is None else np.sum(weight)
    mean = np.sum(rows if weight is None else rows * weight, axis=1, keepdims=True) / total
    centred = rows - mean
    lost = np.sum(weight * weights[-1]) / total if weighs and correction else 1
    divisor = np.maximum(total - correction * lost, 0).astype(x.real.dtype)
    spread = centred if weight is None else centred * weight
    found = spread @ np.conjugate(centred.T) / divisor
    return found.reshape(()) if rows.shape[0] == 1 else found


def correlation(x: Any) -> Any:
    found = covariance(x, 1, False, False)
    if not found.ndim:
        return found / found
    deviations = np.sqrt(np.real(np.diagonal(found)))
    found = found / deviations[:, None] / deviations[None, :]
    if found.dtype.kind == "c":
        return found
    # At the bounds, where the diagonal is, PyTorch's clamp passes the derivative on.
    return np.where(found > 1, found.dtype.type(1), np.where(found < -1, found.dtype.type(-1), found))


COV: Final = Op("cov", "SqueezeBackward0", covariance)
CORRCOEF: Final = Op("corrcoef", "ClampBackward1", correlation)


def need_rows(name: str, x: Tensor) -> None:
    need_tensor(name, x)
    if x._data.ndim > 2:
        raise TensorError(
            f"{name}(): expected input to have two or fewer dimensions but got an input with {x._data.ndim} dimensions"
        )


@method("cov")
def cov(input: Tensor, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Tensor:
    """The covariances of the rows.

    Args:
        correction: what is subtracted from the number of observations, to divide by.
        fweights: how often each observation counts, integers.
        aweights: how much it counts.
    """
    need_rows("cov", input)
    if input._data.dtype == np.bool_:
        raise TensorError("cov(): bool dtype is not supported for input")
    weights = [weight for weight in (fweights, aweights) if weight is not None]
    if fweights is not None and fweights._data.dtype.kind not in "iu":
        raise TensorError(
            "cov(): expected fweights to have integral dtype but got fweights with " + str(fweights.dtype)
        )
    statics = (correction, fweights is not None, aweights is not None)
    return apply(COV, (input, *weights), statics, floating(input))  # type: ignore[no-any-return]


@method("corrcoef")
def corrcoef(input: Tensor) -> Tensor:
    """The correlation coefficients of the rows."""
    need_rows("corrcoef", input)
    return apply(CORRCOEF, (input,), (), floating(input))  # type: ignore[no-any-return]


# --- counts -------------------------------------------------------------------------------------------


def histogram_counts(x: Any, bins: int, low: float, high: float) -> Any:
    if low == high:
        low, high = (float(x.min()), float(x.max())) if x.size else (0.0, 1.0)
    if low == high:
        low, high = low - 1, high + 1
    return np.histogram(x, bins, (low, high))[0].astype(x.dtype)


HISTC: Final = Op("histc", None, histogram_counts)


@method("histc")
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0, *, out: Any = None) -> Tensor:
    """How many elements lie in each of ``bins`` equal intervals from min to max; of the tensor's if both are 0."""
    need_tensor("histc", input)
    if input._data.dtype.kind != "f":
        raise TensorNotImplementedError(f'"histogram_cpu" not implemented for {named(input._data.dtype)!r}')
    if bins <= 0:
        raise TensorError("bins must be > 0")
    if min > max:
        raise TensorError("max must be larger than min")
    return store(out, apply(HISTC, (input,), (bins, min, max)))  # type: ignore[no-any-return]


def counted(x: Any, *rest: Any) -> Any:
    *weights, least = rest
    return np.bincount(x, weights[0] if weights else None, least)


BINCOUNT: Final = Op("bincount", None, counted)


@method("bincount")
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each number occurs, or the sum of its weights; not differentiable, as PyTorch's."""
    need_tensor("bincount", input)
    data = input._data
    if data.dtype.kind not in "iu":
        raise TensorNotImplementedError(f'"bincount_cpu" not implemented for {named(data.dtype)!r}')
    if data.ndim != 1 or (data.size and data.min() < 0):
        raise TensorError("bincount only supports 1-d non-negative integral inputs.")
    if weights is None:
        return apply(BINCOUNT, (input,), (minlength,))  # type: ignore[no-any-return]
    if weights._data.shape != data.shape:
        raise TensorError("weights should be 1-d and have the same length as input")
    found = apply(BINCOUNT, (input, weights), (minlength,))
    if weights._data.dtype == np.float32:
        found._data = found._data.astype(np.float32)
    return found  # type: ignore[no-any-return]


__all__ = ["bincount", "corrcoef", "cov", "histc"]
