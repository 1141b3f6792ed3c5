"""Norms of gradients, and gradients kept small."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from srcgrad.torch.errors import TensorError
from srcgrad.torch.graph import moved_on
from srcgrad.torch.tensor import Tensor, wrapped

__all__ = ["clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]


def listed(tensors: Any) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all elements of tensors together, as a tensor of no dimensions.

    Raises:
        TensorError: it is not finite, and ``error_if_nonfinite``.
    """
    arrays = [tensor._data for tensor in listed(tensors)]
    order = float(norm_type)
    if not arrays:
        return wrapped(np.zeros((), np.float32))
    with np.errstate(all="ignore"):
        norms = np.array([np.linalg.norm(array.reshape(-1), order) for array in arrays if array.size or order >= 0])
        total = np.asarray(np.linalg.norm(norms, order), np.result_type(*arrays))
    if error_if_nonfinite and not np.isfinite(total):
        raise TensorError(
            f"The total norm of order {order} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To "
            "disable this error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return wrapped(total)


def scale(gradients: list[Tensor], max_norm: float, total: Tensor) -> None:
    """Scale gradients in place, by max_norm / (total + 1e-6) where that is less than 1."""
    factor = min(1.0, float(max_norm) / (float(total._data) + 1e-6)) if not math.isnan(total._data) else math.nan
    for gradient in gradients:
        with np.errstate(all="ignore"):
            gradient._data *= gradient._data.dtype.type(factor)
        moved_on(gradient._counter)


def gradients_of(parameters: Any) -> list[Tensor]:
    return [parameter._grad for parameter in listed(parameters) if parameter._grad is not None]


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients so that their norm, that of all together, is at most ``max_norm``; returns what it was."""
    gradients = gradients_of(parameters)
    total = get_total_norm(gradients, norm_type, error_if_nonfinite)
    scale(gradients, max_norm, total)
    return total


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """`clip_grad_norm_` with a norm that is known."""
    scale(gradients_of(parameters), max_norm, total_norm)


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Clip each element of the gradients to [-clip_value, clip_value]."""
    bound = float(clip_value)
    for gradient in gradients_of(parameters):
        np.clip(gradient._data, -bound, bound, out=gradient._data)
        moved_on(gradient._counter)
