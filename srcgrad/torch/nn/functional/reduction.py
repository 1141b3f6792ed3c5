"""The reductions of losses: their mean, their sum, or none."""

from __future__ import annotations

import warnings
from typing import Any

from srcgrad.torch.errors import TensorValueError
from srcgrad.torch.tensor import Tensor


def reduction_of(reduction: str, size_average: bool | None = None, reduce: bool | None = None) -> str:
    """The reduction that is meant; ``size_average`` and ``reduce`` are its old names.

    Raises:
        TensorValueError: it is none of mean, sum and none.
    """
    if size_average is not None or reduce is not None:
        average, is_reduced = size_average is not False, reduce is not False
        reduction = ("mean" if average else "sum") if is_reduced else "none"
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
            UserWarning,
            stacklevel=4,
        )
    if reduction not in ("mean", "sum", "none"):
        raise TensorValueError(f"{reduction} is not a valid value for reduction", hint="mean, sum or none")
    return reduction


def reduced(losses: Any, reduction: str) -> Any:
    """The reduction of an array."""
    if reduction == "none":
        return losses
    total = losses.sum()
    return total / losses.size if reduction == "mean" else total


def as_reduction(losses: Tensor, reduction: str) -> Tensor:
    """The reduction of a tensor."""
    if reduction == "mean":
        return losses.mean()  # type: ignore[no-any-return]
    return losses.sum() if reduction == "sum" else losses
