"""Tensors that a module knows: its parameters, and its buffers."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcgrad.torch import dtypes
from srcgrad.torch.errors import AutogradError, TensorTypeError
from srcgrad.torch.tensor import Tensor, wrapped


class Parameter(Tensor):
    """A tensor that requires grad, and that a `Module` lists among its parameters when it becomes an attribute.

    It shares the memory of ``data``. What is computed from it is a plain tensor.

    Raises:
        AutogradError: the dtype has no gradient and ``requires_grad`` is true.
    """

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None:
        adopt(self, data, "Parameter")
        if requires_grad:
            if self._data.dtype.kind not in "fc":
                raise AutogradError("Only Tensors of floating point and complex dtype can require gradients")
            self._requires = True

    def __repr__(self, **options: Any) -> str:
        return "Parameter containing:\n" + super().__repr__(**options)


class Buffer(Tensor):
    """A tensor that is no parameter and that a `Module` lists among its buffers when it becomes an attribute.

    ``persistent``: it is part of the module's ``state_dict``.
    """

    persistent: bool

    def __init__(self, data: Tensor | None = None, *, persistent: bool = True) -> None:
        adopt(self, data, "Buffer")
        self._requires = False if data is None else data.requires_grad
        self.persistent = persistent


def adopt(found: Tensor, data: Tensor | None, kind: str) -> None:
    """Let a new tensor share the memory and the version of another."""
    if data is None:
        data = wrapped(np.empty(0, dtypes.get_default_dtype().numpy))
    if not isinstance(data, Tensor):
        raise TensorTypeError(
            f"{kind}: data must be a Tensor, not {type(data).__name__}", hint=f"{kind}(torch.tensor(...))"
        )
    found._data, found._counter = data._data, data._counter
