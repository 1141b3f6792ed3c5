"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from srcgrad.torch.errors import TensorTypeError
from srcgrad.torch.tensor import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of all parameters, one after the other."""
    from srcgrad.torch.ops.joining import cat

    parts: list[Any] = [parameter.reshape(-1) for parameter in parameters]
    return cat(parts)  # type: ignore[no-any-return]


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Let the parameters be parts of a vector, in their shapes.

    Raises:
        TensorTypeError: it is no tensor.
    """
    if not isinstance(vec, Tensor):
        raise TensorTypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    start = 0
    for parameter in parameters:
        size = parameter._data.size
        parameter._data = vec._data[start : start + size].reshape(parameter._data.shape)
        start += size
