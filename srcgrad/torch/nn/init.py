"""Initial values of parameters, written into tensors.

Xavier: Glorot and Bengio 2010; Kaiming: He et al. 2015, arXiv:1502.01852; orthogonal: Saxe et al. 2013,
arXiv:1312.6120; sparse: Martens 2010.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from scipy.special import erf, erfinv

from srcgrad.torch import random
from srcgrad.torch.errors import TensorValueError
from srcgrad.torch.graph import moved_on
from srcgrad.torch.tensor import Tensor

__all__ = [
    "calculate_gain", "constant_", "dirac_", "eye_", "kaiming_normal_", "kaiming_uniform_", "normal_", "ones_",
    "orthogonal_", "sparse_", "trunc_normal_", "uniform_", "xavier_normal_", "xavier_uniform_", "zeros_",
]  # fmt: skip


def written(tensor: Tensor, values: Any) -> Tensor:
    """The tensor with new values; leaves that require grad may be written too."""
    tensor._data[...] = values
    moved_on(tensor._counter)
    return tensor


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor that keeps the variance through an activation; ``param``: the slope of leaky_relu.

    Raises:
        TensorValueError: the activation is not known.
    """
    if nonlinearity in ("sigmoid", "linear") or nonlinearity.startswith("conv"):
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "selu":
        return 3.0 / 4
    if nonlinearity == "leaky_relu":
        if param is not None and (isinstance(param, bool) or not isinstance(param, (int, float))):
            raise TensorValueError(f"negative_slope {param} not a valid number")
        slope = 0.01 if param is None else param
        return math.sqrt(2.0 / (1 + slope**2))
    raise TensorValueError(f"Unsupported nonlinearity {nonlinearity}")


def fans(tensor: Tensor) -> tuple[int, int]:
    """How many inputs an output has, and how many outputs an input has."""
    shape = tensor._data.shape
    if len(shape) < 2:
        raise TensorValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


_calculate_fan_in_and_fan_out = fans


def correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise TensorValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return fans(tensor)[mode == "fan_out"]


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform numbers from a to b."""
    return written(tensor, random.uniform(tensor._data.shape, a, b, tensor._data.dtype, generator=generator))


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Normal numbers."""
    return written(tensor, random.normal(tensor._data.shape, mean, std, tensor._data.dtype, generator=generator))


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Normal numbers, of those from a to b: the inverse of the distribution function of uniform numbers."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be "
            "incorrect.",
            UserWarning,
            stacklevel=2,
        )
    low, high = (erf((bound - mean) / (std * math.sqrt(2.0))) for bound in (a, b))
    drawn = random.uniform(tensor._data.shape, low, high, np.float64, generator=generator)
    return written(tensor, np.clip(mean + std * math.sqrt(2.0) * erfinv(drawn), a, b))


def constant_(tensor: Tensor, val: float) -> Tensor:
    """One value everywhere."""
    return written(tensor, val)


def ones_(tensor: Tensor) -> Tensor:
    """Ones."""
    return written(tensor, 1)


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros."""
    return written(tensor, 0)


def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix."""
    if tensor._data.ndim != 2:
        raise TensorValueError("Only tensors with 2 dimensions are supported")
    return written(tensor, np.eye(*tensor._data.shape))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """The kernels of convolutions that pass on as many channels as they can."""
    shape = tensor._data.shape
    if len(shape) not in (3, 4, 5):
        raise TensorValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if shape[0] % groups:
        raise TensorValueError("dim 0 must be divisible by groups")
    values = np.zeros(shape)
    outputs = shape[0] // groups
    centre = tuple(n // 2 for n in shape[2:])
    for group in range(groups):
        for channel in range(min(outputs, shape[1])):
            values[(group * outputs + channel, channel, *centre)] = 1
    return written(tensor, values)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform numbers of variance gain^2 2 / (fan_in + fan_out)."""
    fan_in, fan_out = fans(tensor)
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / (fan_in + fan_out))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Normal numbers of variance gain^2 2 / (fan_in + fan_out)."""
    fan_in, fan_out = fans(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / (fan_in + fan_out)), generator)


def nothing_to_do(tensor: Tensor) -> bool:
    if 0 not in tensor._data.shape:
        return False
    warnings.warn("Initializing zero-element tensors is a no-op", UserWarning, stacklevel=3)
    return True


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Uniform numbers of variance gain^2 / fan; ``a``: the slope of leaky_relu."""
    if nothing_to_do(tensor):
        return tensor
    deviation = calculate_gain(nonlinearity, a) / math.sqrt(correct_fan(tensor, mode))
    bound = math.sqrt(3.0) * deviation
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Normal numbers of variance gain^2 / fan; ``a``: the slope of leaky_relu."""
    if nothing_to_do(tensor):
        return tensor
    return normal_(tensor, 0, calculate_gain(nonlinearity, a) / math.sqrt(correct_fan(tensor, mode)), generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """A random matrix with orthonormal rows or columns, times ``gain``; later dimensions are flattened."""
    shape = tensor._data.shape
    if len(shape) < 2:
        raise TensorValueError("Only tensors with 2 or more dimensions are supported")
    if not tensor._data.size:
        return tensor
    rows, columns = shape[0], math.prod(shape[1:])
    drawn = random.normal((rows, columns), 0.0, 1.0, np.float64, generator=generator)
    q, r = np.linalg.qr(drawn.T if rows < columns else drawn)
    q = q * np.sign(np.diag(r))  # the distribution is uniform (Mezzadri 2007, arXiv:math-ph/0609050)
    return written(tensor, gain * (q.T if rows < columns else q).reshape(shape))


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Normal numbers, of which a part of each column is 0."""
    if tensor._data.ndim != 2:
        raise TensorValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor._data.shape
    count = math.ceil(sparsity * rows)
    values = random.normal((rows, columns), 0, std, tensor._data.dtype, generator=generator)
    for column in range(columns):
        values[random.permutation(rows, np.dtype(np.int64), generator=generator)[:count], column] = 0
    return written(tensor, values)
