"""Distances and lengths: cosine similarity, pairwise distance, normalisation to length 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcgrad.torch.dispatch import apply
from srcgrad.torch.operation import Op
from srcgrad.torch.ops.define import promoted, store
from srcgrad.torch.ops.norms import vector_norm_over
from srcgrad.torch.tensor import Tensor, checked_dim

__all__ = ["cosine_similarity", "normalize", "pairwise_distance"]


def lengthened(squares: Any, eps: float) -> Any:
    """The square root of a sum of squares, at least eps; constant, without a derivative, where it is smaller."""
    small = squares <= eps * eps
    return np.where(small, eps, np.sqrt(np.where(small, 1.0, squares)))


def cosine_of(x: Any, y: Any, axis: int, eps: float) -> Any:
    x, y = np.broadcast_arrays(x, y)
    products = (x * y).sum(axis)
    return products / (lengthened((x * x).sum(axis), eps) * lengthened((y * y).sum(axis), eps))


NORM = Op("norm", "NormBackward1", vector_norm_over, saves_result=True)
COSINE = Op("cosine_similarity", "SumBackward1", cosine_of)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """x1 x2 / (norm(x1) norm(x2)) along a dimension, each norm at least eps."""
    axis = checked_dim(dim, max(x1._data.ndim, x2._data.ndim))
    return apply(COSINE, (x1, x2), (axis, eps), promoted((x1, x2)))  # type: ignore[no-any-return]


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last dimension."""
    gap = x1 - x2 + eps
    axis = checked_dim(-1, gap._data.ndim)
    return apply(NORM, (gap,), (float(p), (axis,), keepdim))  # type: ignore[no-any-return]


def normalize(
    input: Tensor, p: float = 2.0, dim: int | tuple[int, ...] = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """x divided by its p-norm along a dimension, which is at least eps."""
    return store(out, input / input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input))  # type: ignore[no-any-return]
