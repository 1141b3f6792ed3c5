"""Activations as modules."""

from __future__ import annotations

from typing import Any

from srcgrad.torch.errors import TensorValueError
from srcgrad.torch.nn import functional as F
from srcgrad.torch.nn import init
from srcgrad.torch.nn.linear import empty
from srcgrad.torch.nn.module import Module
from srcgrad.torch.tensor import Tensor

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "SELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU",
    "LogSigmoid", "LogSoftmax", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SiLU", "Sigmoid", "Softmax", "Softmax2d",
    "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
]  # fmt: skip


class InPlace(Module):
    """Activations that may write into their input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(InPlace):
    """max(0, x)."""

    def forward(self, input: Tensor) -> Tensor:
        """Elementwise."""
        return F.relu(input, self.inplace)


class Hardtanh(Module):
    """x between ``min_val`` and ``max_val``."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace
        if max_val <= min_val:
            raise AssertionError("max_val must be larger than min_val")

    def forward(self, input: Tensor) -> Tensor:
        """Elementwise."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class ReLU6(Hardtanh):
    """x between 0 and 6."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class Hardsigmoid(InPlace):
    """x/6 + 1/2 between 0 and 1."""

    def forward(self, input: Tensor) -> Tensor:
        """Elementwise."""
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Hardswish(InPlace):
    """x times `Hardsigmoid` of x."""

    def forward(self, input: Tensor) -> Tensor:
        """Elementwise."""
        return F.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class SELU(InPlace):
    """`torch.nn.functional.selu`."""

    def forward(self, input: Tensor) -> Tensor:
        """Elementwise."""
        return F.selu(input, self.inplace)


class SiLU(InPlace):
    """x sigmoid(x)."""

    def forward(self, input: Tensor) -> Tensor:
        """Elementwise."""
        return F.silu(input, self.inplace)


class Mish(InPlace):
    """x tanh(softplus(x))."""

    def forward(self, input: Tensor) -> Tensor:
        """Elementwise."""
        return F.mish(input, self.inplace)


class ELU(Module):
    """x above 0, alpha (exp(x) - 1) below."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Elementwise."""
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class CELU(ELU):
    """x above 0, alpha (exp(x / alpha) - 1) below."""

    def forward(self, input: Tensor) -> Tensor:
        """Elementwise."""
        return F.celu(input, self.alpha, self.inplace)


class LeakyReLU(Module):
    """x above 0, ``negative_slope`` x below."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Elementwise."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class RReLU(Module):
    """`LeakyReLU` with slopes drawn from ``lower`` to ``upper`` while training."""

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Elementwise."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class PReLU(Module):
    """x above 0, weight x below; the weights are parameters, one for all channels or one each."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = empty(num_parameters, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the initial values."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """Elementwise; channels are dimension 1."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Threshold(Module):
    """x above a threshold, ``value`` elsewhere."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Elementwise."""
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class Softplus(Module):
    """log(1 + exp(beta x)) / beta."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        """Elementwise."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Softshrink(Module):
    """x moved towards 0 by ``lambd``."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """Elementwise."""
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class Hardshrink(Softshrink):
    """0 from -lambd to lambd, x elsewhere."""

    def forward(self, input: Tensor) -> Tensor:
        """Elementwise."""
        return F.hardshrink(input, self.lambd)


class GELU(Module):
    """x times the normal distribution function of x."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Elementwise."""
        return F.gelu(input, self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        """Elementwise."""
        return F.tanh(input)


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, input: Tensor) -> Tensor:
        """Elementwise."""
        return F.sigmoid(input)


class LogSigmoid(Module):
    """The logarithm of `Sigmoid`."""

    def forward(self, input: Tensor) -> Tensor:
        """Elementwise."""
        return F.logsigmoid(input)


class Softsign(Module):
    """x / (1 + abs(x))."""

    def forward(self, input: Tensor) -> Tensor:
        """Elementwise."""
        return F.softsign(input)


class Tanhshrink(Module):
    """x - tanh(x)."""

    def forward(self, input: Tensor) -> Tensor:
        """Elementwise."""
        return F.tanhshrink(input)


class GLU(Module):
    """The first half times the sigmoid of the second half along a dimension."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Half as long in that dimension."""
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(Module):
    """exp(x) divided by its sum along a dimension."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Of the same shape."""
        return F.softmax(input, self.dim, _stacklevel=5)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class LogSoftmax(Softmax):
    """The logarithm of `Softmax`."""

    def forward(self, input: Tensor) -> Tensor:
        """Of the same shape."""
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmin(Softmax):
    """`Softmax` of -x."""

    def forward(self, input: Tensor) -> Tensor:
        """Of the same shape."""
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """`Softmax` over the channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        """Of the same shape."""
        if input._data.ndim not in (3, 4):
            raise TensorValueError(f"Softmax2d: expected input to be 3D or 4D, got {input._data.ndim}D instead")
        return F.softmax(input, -3)
