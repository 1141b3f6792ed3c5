"""Activations: elementwise functions, and the softmax family.

Where a function has a kink, its derivative there is PyTorch's: the functions are written with `np.where` on the side
that PyTorch counts the kink to. A branch that is not taken is given 0, so that nothing in it overflows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit, log_expit, ndtr

from srcgrad.torch import random
from srcgrad.torch.dispatch import apply, apply_inplace, named
from srcgrad.torch.errors import TensorError, TensorNotImplementedError, TensorTypeError, TensorValueError
from srcgrad.torch.operation import Op
from srcgrad.torch.tensor import Tensor, checked_dim, wrapped

__all__ = [
    "celu", "celu_", "elu", "elu_", "gelu", "glu", "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish",
    "hardtanh", "hardtanh_", "leaky_relu", "leaky_relu_", "log_softmax", "logsigmoid", "mish", "prelu", "relu", "relu6",
    "relu_", "rrelu", "rrelu_", "selu", "selu_", "sigmoid", "silu", "softmax", "softmin", "softplus", "softshrink",
    "softsign", "tanh", "tanhshrink", "threshold", "threshold_",
]  # fmt: skip

SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


def need_tensor(name: str, input: Any) -> None:
    """Raise a `TensorTypeError` unless it is a tensor."""
    if not isinstance(input, Tensor):
        raise TensorTypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")


def need_floating(name: str, input: Tensor) -> None:
    """Raise a `TensorNotImplementedError` unless the elements are floating-point numbers."""
    if input._data.dtype.kind != "f":
        raise TensorNotImplementedError(
            f"\"{name}\" not implemented for '{named(input._data.dtype)}'", hint="convert it: x.float()"
        )


def run(op: Op, input: Tensor, statics: tuple[Any, ...], inplace: bool) -> Tensor:
    """An elementwise operation on floating-point numbers, as a new tensor or written into its operand."""
    need_tensor(op.name, input)
    need_floating(op.name, input)
    if inplace:
        return apply_inplace(WRITTEN.get(op, op), input, (), statics)
    return apply(op, (input,), statics)  # type: ignore[no-any-return]


def as_dtype(values: Any, x: Any) -> Any:
    """Values in the dtype of x: SciPy gives float32 for float16."""
    return values if values.dtype == x.dtype else values.astype(x.dtype)


def sigmoid_of(x: Any) -> Any:
    return as_dtype(expit(x), x)


# --- kinks ------------------------------------------------------------------------------------------
def leaky_relu_of(x: Any, slope: float) -> Any:
    return np.where(x > 0, x, slope * x)


def elu_of(x: Any, alpha: float, scale: float, input_scale: float) -> Any:
    below = np.where(x > 0, 0.0, x)
    return np.where(x > 0, scale * x, (scale * alpha) * np.expm1(input_scale * below))


def hardtanh_of(x: Any, low: float, high: float) -> Any:
    return np.where(x <= low, low, np.where(x >= high, high, x))


def hardsigmoid_of(x: Any) -> Any:
    return np.where(x <= -3, 0.0, np.where(x >= 3, 1.0, (x + 3) / 6))


def hardswish_of(x: Any) -> Any:
    return np.where(x <= -3, 0.0, np.where(x < 3, x * (x + 3) / 6, x))


def threshold_of(x: Any, bound: float, value: float) -> Any:
    return np.where(x <= bound, value, x)


def softshrink_of(x: Any, width: float) -> Any:
    inside = np.where(np.isnan(x), x, 0.0)
    return np.where(x > width, x - width, np.where(x < -width, x + width, inside))


def hardshrink_of(x: Any, width: float) -> Any:
    return np.where((x >= -width) & (x <= width), 0.0, x)


def prelu_of(x: Any, weight: Any) -> Any:
    return np.where(x > 0, x, weight * x)


# --- smooth ones --------------------------------------------------------------------------------------
def softplus_of(x: Any, beta: float, bound: float) -> Any:
    scaled = x * beta
    return np.where(scaled > bound, x, np.logaddexp(scaled, 0.0) / beta)


def silu_of(x: Any) -> Any:
    return x * sigmoid_of(x)


def mish_of(x: Any) -> Any:
    return x * np.tanh(np.logaddexp(x, 0.0))


def logsigmoid_of(x: Any) -> Any:
    return as_dtype(log_expit(x), x)


def gelu_of(x: Any, approximate: str) -> Any:
    if approximate == "none":
        return x * as_dtype(ndtr(x), x)
    return 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))  # sqrt(2/pi)


def glu_of(x: Any, dim: int) -> Any:
    half = x.shape[dim] // 2
    lead = (slice(None),) * dim
    return x[(*lead, slice(None, half))] * sigmoid_of(x[(*lead, slice(half, None))])


LEAKY_RELU = Op("leaky_relu", "LeakyReluBackward0", leaky_relu_of)
RRELU = Op("rrelu_with_noise", "RreluWithNoiseBackward0", prelu_of)
RRELU_MEAN = Op("rrelu_with_noise", "RreluWithNoiseBackward0", leaky_relu_of)
ELU = Op("elu", "EluBackward0", elu_of)
CELU = Op("celu", "CeluBackward0", elu_of)
HARDTANH = Op("hardtanh", "HardtanhBackward0", hardtanh_of)
HARDSIGMOID = Op("hardsigmoid", "HardsigmoidBackward0", hardsigmoid_of)
HARDSWISH = Op("hardswish", "HardswishBackward0", hardswish_of)
THRESHOLD = Op("threshold", "ThresholdBackward0", threshold_of)
SOFTSHRINK = Op("softshrink", "SoftshrinkBackward0", softshrink_of)
HARDSHRINK = Op("hardshrink", "HardshrinkBackward0", hardshrink_of)
PRELU = Op("prelu", "PreluKernelBackward0", prelu_of)
SOFTPLUS = Op("softplus", "SoftplusBackward0", softplus_of)
SILU = Op("silu", "SiluBackward0", silu_of)
MISH = Op("mish", "MishBackward0", mish_of)
LOGSIGMOID = Op("log_sigmoid", "LogSigmoidBackward0", logsigmoid_of)
GELU = Op("gelu", "GeluBackward0", gelu_of)
GLU = Op("glu", "GluBackward0", glu_of)
WRITTEN = {
    op: Op(op.name, str(op.node).replace("Backward0", "Backward1"), op.function)
    for op in (LEAKY_RELU, RRELU, RRELU_MEAN, ELU, CELU, THRESHOLD)
}
"""What is recorded of those functions whose in-place form has a node of its own."""


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0)."""
    need_tensor("relu", input)
    return input.relu_() if inplace else input.relu()  # type: ignore[no-any-return]


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """x between 0 and 6."""
    return hardtanh(input, 0.0, 6.0, inplace)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x above 0, ``negative_slope`` x below."""
    return run(LEAKY_RELU, input, (negative_slope,), inplace)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x above 0, alpha (exp(x) - 1) below."""
    return run(ELU, input, (alpha, 1.0, 1.0), inplace)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x above 0, alpha (exp(x / alpha) - 1) below (Barron 2017, arXiv:1704.07483)."""
    if alpha == 0:
        raise TensorError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return run(CELU, input, (alpha, 1.0, 1.0 / alpha), inplace)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """`elu` with the factors that keep mean 0 and variance 1 (Klambauer et al. 2017, arXiv:1706.02515)."""
    return run(ELU, input, (SELU_ALPHA, SELU_SCALE, 1.0), inplace)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x between two bounds."""
    if min_val > max_val:
        raise TensorValueError("min_val cannot be greater than max_val")
    need_tensor("hardtanh", input)
    if input._data.dtype.kind in "iu":
        return apply(HARDTANH, (input,), (int(min_val), int(max_val)))  # type: ignore[no-any-return]
    return run(HARDTANH, input, (min_val, max_val), inplace)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """x/6 + 1/2 between 0 and 1."""
    return run(HARDSIGMOID, input, (), inplace)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x times `hardsigmoid` of x."""
    return run(HARDSWISH, input, (), inplace)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x above a threshold, ``value`` elsewhere."""
    return run(THRESHOLD, input, (threshold, value), inplace)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by ``lambd``, and 0 where that would pass it."""
    if lambd < 0:
        raise TensorError(f"lambda must be greater or equal to 0, but found to be {lambd:g}.")
    return run(SOFTSHRINK, input, (lambd,), False)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """0 from -lambd to lambd, x elsewhere."""
    return run(HARDSHRINK, input, (lambd,), False)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta x)) / beta; x itself where beta x is above the threshold."""
    return run(SOFTPLUS, input, (beta, threshold), False)


def softsign(input: Tensor) -> Tensor:
    """x / (1 + abs(x))."""
    need_tensor("softsign", input)
    return input / (input.abs() + 1)  # type: ignore[no-any-return]


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    need_tensor("tanhshrink", input)
    return input - input.tanh()  # type: ignore[no-any-return]


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x sigmoid(x)."""
    return run(SILU, input, (), inplace)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x tanh(log(1 + exp(x))) (Misra 2019, arXiv:1908.08681)."""
    return run(MISH, input, (), inplace)


def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x))."""
    return run(LOGSIGMOID, input, (), False)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x times the normal distribution function of x (Hendrycks and Gimpel 2016, arXiv:1606.08415).

    ``approximate="tanh"``: their approximation by tanh.
    """
    if approximate not in ("none", "tanh"):
        raise TensorError(f"approximate argument must be either none or tanh, not {approximate!r}.")
    return run(GELU, input, (approximate,), False)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half times the sigmoid of the second half along a dimension."""
    need_tensor("glu", input)
    if not input._data.ndim:
        raise TensorError("glu does not support 0-dimensional tensors")
    axis = checked_dim(dim, input._data.ndim)
    if input._data.shape[axis] % 2:
        raise TensorError(f"Halving dimension must be even, but dimension {axis} is size {input._data.shape[axis]}")
    return run(GLU, input, (axis,), False)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x above 0, weight x below; one weight, or one per channel (dimension 1)."""
    data, factor = input._data, weight._data
    if factor.ndim > 1:
        raise TensorError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {factor.ndim}")
    channels = data.shape[1] if data.ndim > 1 else 1
    if factor.size not in (1, channels):
        raise TensorError(
            f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {factor.size} and "
            "channel "
            f"size = {channels}."
        )
    shape = (1,) * data.ndim if factor.size == 1 else (1, channels) + (1,) * (data.ndim - 2)
    return apply(PRELU, (input, weight.reshape(shape) if factor.shape != shape else weight))  # type: ignore[no-any-return]


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """`leaky_relu` with slopes drawn from lower to upper while training, else with their mean."""
    if lower > upper:
        raise TensorError(f"Lower bound should be less than or equal to the upper bound, got {lower} and {upper}")
    if not training:
        return run(RRELU_MEAN, input, ((lower + upper) / 2,), inplace)
    slopes = wrapped(random.uniform(input._data.shape, lower, upper, input._data.dtype))
    if inplace:
        return apply_inplace(WRITTEN[RRELU], input, (slopes,))
    return apply(RRELU, (input, slopes))  # type: ignore[no-any-return]


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    need_tensor("sigmoid", input)
    return input.sigmoid()  # type: ignore[no-any-return]


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    need_tensor("tanh", input)
    return input.tanh()  # type: ignore[no-any-return]


def inplace_form(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The function that writes into its operand."""

    def call(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return function(input, *args, inplace=True, **kwargs)

    call.__name__ = call.__qualname__ = f"{function.__name__}_"
    call.__doc__ = f"`{function.__name__}`, written into the tensor."
    return call


FUNCTIONS: tuple[Callable[..., Tensor], ...] = (relu, leaky_relu, elu, celu, selu, hardtanh, threshold, rrelu)
relu_, leaky_relu_, elu_, celu_, selu_, hardtanh_, threshold_, rrelu_ = map(inplace_form, FUNCTIONS)


Tensor.prelu, Tensor.hardshrink = prelu, hardshrink  # type: ignore[attr-defined]


# --- softmax ----------------------------------------------------------------------------------------
def softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    """The dimension that is meant where none is given; PyTorch warns of it.

    It is 0 for tensors of 0, 1 or 3 dimensions and 1 for others.
    """
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        UserWarning,
        stacklevel=stacklevel + 1,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """exp(x) divided by its sum along a dimension."""
    need_tensor("softmax", input)
    axis = softmax_dim("softmax", input._data.ndim, _stacklevel) if dim is None else dim
    return input.softmax(axis) if dtype is None else input.softmax(axis, dtype=dtype)  # type: ignore[no-any-return]


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """The logarithm of `softmax`."""
    need_tensor("log_softmax", input)
    axis = softmax_dim("log_softmax", input._data.ndim, _stacklevel) if dim is None else dim
    return input.log_softmax(axis) if dtype is None else input.log_softmax(axis, dtype=dtype)  # type: ignore[no-any-return]


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """`softmax` of -x."""
    need_tensor("softmin", input)
    axis = softmax_dim("softmin", input._data.ndim, _stacklevel) if dim is None else dim
    return softmax(-input, axis, dtype=dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A sample of the Gumbel-softmax distribution (Jang et al. 2016, arXiv:1611.01144).

    ``hard``: one-hot, with the gradient of the soft sample.
    """
    drawn = random.exponential(logits._data.shape, 1.0, logits._data.dtype)
    gumbels = wrapped(-np.log(drawn))
    soft = ((logits + gumbels) / tau).softmax(dim)
    if not hard:
        return soft  # type: ignore[no-any-return]
    axis = checked_dim(dim, logits._data.ndim)
    best = np.expand_dims(soft._data.argmax(axis), axis)
    chosen = np.zeros_like(soft._data)
    np.put_along_axis(chosen, best, 1, axis)
    return wrapped(chosen) - soft.detach() + soft  # type: ignore[no-any-return]
