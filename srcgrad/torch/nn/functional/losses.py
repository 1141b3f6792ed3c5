"""Losses of numbers and of distances."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from srcgrad.torch.dispatch import apply
from srcgrad.torch.errors import TensorError, TensorValueError
from srcgrad.torch.nn.functional.distances import pairwise_distance
from srcgrad.torch.nn.functional.reduction import as_reduction, reduced, reduction_of
from srcgrad.torch.operation import Op
from srcgrad.torch.ops.define import promoted
from srcgrad.torch.tensor import Tensor, wrapped

__all__ = [
    "cosine_embedding_loss", "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss",
    "margin_ranking_loss", "mse_loss", "poisson_nll_loss", "smooth_l1_loss", "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]  # fmt: skip


def mse_of(x: Any, target: Any, reduction: str) -> Any:
    error = x - target
    return reduced(error * error, reduction)


def smooth_l1_of(x: Any, target: Any, beta: float, reduction: str) -> Any:
    error = x - target
    size = np.abs(error)
    return reduced(np.where(size < beta, (0.5 / beta) * error * error, size - 0.5 * beta), reduction)


def huber_of(x: Any, target: Any, delta: float, reduction: str) -> Any:
    error = x - target
    size = np.abs(error)
    return reduced(np.where(size <= delta, 0.5 * error * error, delta * (size - 0.5 * delta)), reduction)


MSE = Op("mse_loss", "MseLossBackward0", mse_of)
SMOOTH_L1 = Op("smooth_l1_loss", "SmoothL1LossBackward0", smooth_l1_of)
HUBER = Op("huber_loss", "HuberLossBackward0", huber_of)


def warn_of_sizes(input: Tensor, target: Tensor) -> None:
    """Warn where the target is broadcast."""
    if input._data.shape != target._data.shape:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will "
            "likely "
            "lead to incorrect results due to broadcasting. Please ensure they have the same size.",
            UserWarning,
            stacklevel=3,
        )


def loss(op: Op, input: Tensor, target: Tensor, *statics: Any) -> Tensor:
    """A loss of two tensors, in the dtype they promote to."""
    same = input._data.dtype is target._data.dtype
    return apply(op, (input, target), statics, None if same else promoted((input, target)))  # type: ignore[no-any-return]


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """(x - t)^2."""
    warn_of_sizes(input, target)
    return loss(MSE, input, target, reduction_of(reduction, size_average, reduce))


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """abs(x - t)."""
    warn_of_sizes(input, target)
    return as_reduction((input - target).abs(), reduction_of(reduction, size_average, reduce))


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """(x - t)^2 / (2 beta) where abs(x - t) < beta, abs(x - t) - beta/2 elsewhere."""
    warn_of_sizes(input, target)
    reduction = reduction_of(reduction, size_average, reduce)
    if beta < 0:
        raise TensorError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return as_reduction((input - target).abs(), reduction)
    return loss(SMOOTH_L1, input, target, beta, reduction)


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """(x - t)^2 / 2 where abs(x - t) <= delta, delta (abs(x - t) - delta/2) elsewhere."""
    warn_of_sizes(input, target)
    reduction = reduction_of(reduction)
    if delta <= 0:
        raise TensorError("huber_loss does not support non-positive values for delta.")
    return loss(HUBER, input, target, delta, reduction)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """t (log(t) - x), with x the logarithm of a probability; ``log_target``: of log(t).

    ``reduction="batchmean"``: the sum divided by the length of the first dimension.
    """
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides "
            "only by the batch size, and aligns with the KL div math definition.'mean' will be changed to behave the "
            "same as 'batchmean' in the next major release.",
            UserWarning,
            stacklevel=2,
        )
    by_batch = reduction == "batchmean"
    reduction = reduction_of("sum" if by_batch else reduction, size_average, reduce)
    losses = target.exp() * (target - input) if log_target else target.xlogy(target) - target * input
    found = as_reduction(losses, reduction)
    return found / input._data.shape[0] if by_batch and input._data.ndim else found


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """x - t log(x), or exp(x) - t x with ``log_input``; ``full`` adds Stirling's formula for log(t!)."""
    reduction = reduction_of(reduction, size_average, reduce)
    losses = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (target * (2 * math.pi)).log()
        losses = losses + stirling.masked_fill(target <= 1, 0)
    return as_reduction(losses, reduction)


AT_LEAST = Op(
    "clone",
    "CloneBackward0",
    lambda v, low: np.where(v < low, v.dtype.type(low), v),
    pullback=lambda cotangent, result, v, low: cotangent,
)
"""A bound that the gradient passes, as through a clamp in ``no_grad``."""


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """(log(v) + (x - t)^2 / v) / 2, with the variance v at least eps; ``full`` adds log(2 pi)/2.

    Raises:
        TensorValueError: a negative variance, or one whose size does not fit.
    """
    reduction = reduction_of(reduction)
    given = var if isinstance(var, Tensor) else wrapped(np.full(input._data.shape, var, input._data.dtype))
    if (given._data < 0).any():
        raise TensorValueError("var has negative entry/entries")
    x, v = input._data.shape, given._data.shape
    if v != x:
        if x[:-1] == v:
            given = given.unsqueeze(-1)
        elif not (x[:-1] == v[:-1] and v[-1] == 1):
            raise TensorValueError("var is of incorrect size")
    variance = apply(AT_LEAST, (given,), (eps,))
    losses = 0.5 * (variance.log() + (input - target) ** 2 / variance)
    if full:
        losses = losses + 0.5 * math.log(2 * math.pi)
    return as_reduction(losses, reduction)


def zero_where(condition: Any, x: Tensor) -> Tensor:
    """x, and 0 where an array of bools holds."""
    return x.new_zeros(()).where(wrapped(condition), x)  # type: ignore[no-any-return]


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """x where t is 1, max(0, margin - x) where it is -1."""
    reduction = reduction_of(reduction, size_average, reduce)
    losses = zero_where(target._data == 1, (margin - input).clamp_min(0)) + zero_where(target._data == -1, input)
    return as_reduction(losses, reduction)


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, -t (x1 - x2) + margin)."""
    reduction = reduction_of(reduction, size_average, reduce)
    if not input1._data.ndim == input2._data.ndim == target._data.ndim:
        raise TensorError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
            f"{input1.shape}, "
            f"input2: {input2.shape}, target: {target.shape} "
        )
    return as_reduction((-target * (input1 - input2) + margin).clamp_min(0), reduction)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cos(x1, x2) where t is 1, max(0, cos(x1, x2) - margin) where it is -1."""
    reduction = reduction_of(reduction, size_average, reduce)
    if target._data.ndim not in (0, 1):
        raise TensorError("0D or 1D target tensor expected, multi-target not supported")
    if input1._data.ndim != target._data.ndim + 1:
        kind = "1D target tensor expects 2D" if target._data.ndim else "0D target tensor expects 1D"
        raise TensorError(
            f"{kind} input tensors, but found inputs with sizes {list(input1.shape)} and {list(input2.shape)}."
        )
    axis = target._data.ndim
    eps = 1e-12
    squares = ((input1 * input1).sum(axis) + eps) * ((input2 * input2).sum(axis) + eps)
    cosine = (input1 * input2).sum(axis) / squares.sqrt()
    losses = zero_where(target._data != 1, 1 - cosine) + zero_where(target._data != -1, (cosine - margin).clamp_min(0))
    return as_reduction(losses, reduction)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, d(a, p) - d(a, n) + margin), d the `pairwise_distance`; ``swap``: d(p, n) where that is smaller."""
    reduction = reduction_of(reduction, size_average, reduce)
    if margin <= 0:
        raise TensorValueError(f"margin must be greater than 0, got {margin}")
    return triplet(anchor, positive, negative, lambda x, y: pairwise_distance(x, y, p, eps), margin, swap, reduction)


def triplet(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    distance: Callable[[Tensor, Tensor], Tensor],
    margin: float,
    swap: bool,
    reduction: str,
) -> Tensor:
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return as_reduction((margin + near - far).clamp_min(0), reduction)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with a distance of one's own."""
    if margin <= 0:
        raise TensorValueError(f"margin must be greater than 0, got {margin}")
    distance = pairwise_distance if distance_function is None else distance_function
    return triplet(anchor, positive, negative, distance, margin, swap, reduction_of(reduction))
