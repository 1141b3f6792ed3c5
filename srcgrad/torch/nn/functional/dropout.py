"""Dropout: elements or channels set to zero at random while training, the others scaled up."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from srcgrad.torch import random
from srcgrad.torch.errors import TensorError, TensorValueError
from srcgrad.torch.tensor import Tensor, wrapped

__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]


def checked(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise TensorValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def kept(shape: tuple[int, ...], p: float, dtype: Any) -> Any:
    """1 with probability 1 - p, else 0."""
    if dtype.kind != "f":
        raise TensorError("result type Float can't be cast to the desired output type Long")
    return random.bernoulli(1 - p, shape, dtype)


def dropped(input: Tensor, p: float, training: bool, inplace: bool, shape: tuple[int, ...]) -> Tensor:
    """The input times a mask of the given shape."""
    checked(p)
    if not training or not p or not input._data.size:
        return input
    mask = kept(shape, p, input._data.dtype)
    if p < 1:
        mask /= 1 - p
    factor = wrapped(mask)
    return input.mul_(factor) if inplace else input * factor


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Elements are 0 with probability p; the others are divided by 1 - p."""
    return dropped(input, p, training, inplace, input._data.shape)


def channels(input: Tensor) -> tuple[int, ...]:
    shape: tuple[int, ...] = input._data.shape
    return shape[:2] + (1,) * (len(shape) - 2)


def unbatched(input: Tensor, rank: int, name: str) -> bool:
    """Whether there is no batch dimension: whether the rank is one less than that of a batch."""
    ndim = input._data.ndim
    if ndim not in (rank - 1, rank):
        warnings.warn(
            f"{name}: Received a {ndim}-D input to {name}, which is deprecated and will result in an error in a future "
            "release.",
            UserWarning,
            stacklevel=3,
        )
    return bool(ndim == rank - 1)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels, of (N, C, L) or (C, L)."""
    checked(p)
    if input._data.ndim not in (2, 3):
        raise TensorError(
            f"dropout1d: Expected 2D or 3D input, but received a {input._data.ndim}D input. Note that dropout1d "
            "exists to "
            "provide channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional "
            "batch "
            "dimension (i.e. 2D or 3D inputs)."
        )
    shape = (input._data.shape[0], 1) if input._data.ndim == 2 else channels(input)
    return dropped(input, p, training, inplace, shape)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels, of (N, C, H, W)."""
    checked(p)
    unbatched(input, 4, "dropout2d")
    return dropped(input, p, training, inplace, channels(input))


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels, of (N, C, D, H, W) or (C, D, H, W)."""
    checked(p)
    shape = channels(input)
    if unbatched(input, 5, "dropout3d"):
        shape = (shape[0],) + (1,) * (len(shape) - 1)
    return dropped(input, p, training, inplace, shape)


def alpha_dropped(input: Tensor, p: float, training: bool, inplace: bool, shape: tuple[int, ...]) -> Tensor:
    """a (x mask + alpha' (1 - mask)) + b, of mean 0 and variance 1 again (Klambauer et al. 2017, arXiv:1706.02515)."""
    checked(p)
    if not training or not p or not input._data.size:
        return input
    if p == 1:
        return input * wrapped(np.zeros(shape, input._data.dtype))
    low = -1.7580993408473766  # what selu tends to for small x: -scale alpha
    a = ((1 - p) * (1 + p * low**2)) ** -0.5
    mask = kept(shape, p, input._data.dtype)
    factor = wrapped(a * mask)
    shift = wrapped((1 - mask) * (a * low) - a * low * p)
    if inplace:
        return input.mul_(factor).add_(shift)  # type: ignore[no-any-return]
    return input * factor + shift


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps the mean and the variance of what `selu` gives."""
    return alpha_dropped(input, p, training, inplace, input._data.shape)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels."""
    return alpha_dropped(input, p, training, inplace, channels(input))
