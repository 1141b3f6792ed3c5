"""Normalisations: of batches, layers, groups and instances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from srcgrad.torch.dispatch import apply
from srcgrad.torch.errors import TensorError, TensorValueError
from srcgrad.torch.graph import moved_on
from srcgrad.torch.modes import no_grad
from srcgrad.torch.operation import Op
from srcgrad.torch.ops.arguments import in_single
from srcgrad.torch.tensor import Tensor, constant_of, wrapped
from srcgrad.tracing.tracer import Tracer

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "rms_norm"]


def normalised(x: Any, axes: tuple[int, ...], eps: float) -> tuple[Any, Any, Any]:
    """(x - mean) / sqrt(var + eps), with the mean and the variance, whose axes are kept."""
    size = math.prod([x.shape[axis] for axis in axes])
    mean = x.sum(axes, keepdims=True) / size
    centred = x - mean
    variance = (centred * centred).sum(axes, keepdims=True) / size
    return centred / np.sqrt(variance + eps), mean, variance


def scaled(x: Any, factors: Sequence[Any], has_weight: bool, shape: tuple[int, ...]) -> Any:
    """x times the weight plus the bias, those of them that there are."""
    if has_weight:
        x = x * factors[0].reshape(shape)
    if len(factors) > has_weight:
        x = x + factors[-1].reshape(shape)
    return x


def along(x: Any, axis: int) -> tuple[int, ...]:
    """The shape of a vector along one axis."""
    return (*(1,) * axis, -1, *(1,) * (x.ndim - axis - 1))


def factors_of(weight: Tensor | None, bias: Tensor | None) -> list[Tensor]:
    return [x for x in (weight, bias) if x is not None]


# --- batches ------------------------------------------------------------------------------------------
def batch_norm_of(x: Any, *rest: Any) -> Any:
    """With the statistics of the batch: the result, and the mean and the variance of each channel."""
    *factors, has_weight, eps = rest
    axes = (0, *range(2, x.ndim))
    found, mean, variance = normalised(x, axes, eps)
    return scaled(found, factors, has_weight, along(x, 1)), mean.reshape(-1), variance.reshape(-1)


def batch_norm_fixed(x: Any, mean: Any, variance: Any, *rest: Any) -> Any:
    *factors, has_weight, eps = rest
    shape = along(x, 1)
    found = (x - mean.reshape(shape)) / np.sqrt(variance.reshape(shape) + eps)
    return scaled(found, factors, has_weight, shape)


BATCH_NORM = Op("batch_norm", "NativeBatchNormBackward0", batch_norm_of, outputs=1)
BATCH_NORM_FIXED = Op("batch_norm", "NativeBatchNormBackward0", batch_norm_fixed)


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel of (N, C, ...) with mean 0 and variance 1, times ``weight`` plus ``bias``.

    Training, the statistics are those of the batch, and the running ones move towards them by ``momentum`` (the running
    variance to the unbiased one); else the running ones are used.

    Raises:
        TensorValueError: training with one value per channel. TensorError: sizes that do not fit.
    """
    x = input._data
    if x.ndim < 2:
        raise TensorError(f"batch_norm: expected (N, C, ...), got {list(x.shape)}")
    channels = x.shape[1]
    named = (("running_mean", running_mean), ("running_var", running_var), ("weight", weight), ("bias", bias))
    for name, given in named:
        if given is not None and given._data.size != channels:
            raise TensorError(f"{name} should contain {channels} elements not {given._data.size}")
    factors = factors_of(weight, bias)
    if not training:
        if running_mean is None or running_var is None:
            raise TensorError("Expected running_mean and running_var to be defined when training=False")
        operands = [input, running_mean, running_var, *factors]
        return apply(BATCH_NORM_FIXED, operands, (weight is not None, eps))  # type: ignore[no-any-return]
    count = x.size // channels if channels else 0
    if count == 1:
        raise TensorValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
    found, mean, variance = apply(BATCH_NORM, [input, *factors], (weight is not None, eps))
    if running_mean is not None:
        move(running_mean, mean._data, momentum)
    if running_var is not None:
        move(running_var, variance._data, momentum, False, count / (count - 1))
    return found  # type: ignore[no-any-return]


def move(running: Tensor, new: Any, momentum: float, examples: bool = False, factor: float = 1.0) -> None:
    """Move a running statistic towards a new value times a factor, in place.

    ``examples``: the mean of the values of the examples counts. What a transform traces counts by its number.

    Raises:
        TensorError: the new value is one per example of a mapped function, and the statistic is not.
    """

    def moved(before: Any, value: Any) -> Any:
        return (1 - momentum) * before + momentum * factor * (value.mean(0) if examples else value)

    if isinstance(running._data, Tracer):
        with no_grad():
            running.copy_(wrapped(moved(running._data, constant_of(new))))
        return
    known = new.number() if isinstance(new, Tracer) else new
    if known is None:
        raise TensorError(
            "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in "
            "place, were not batched.",
            hint="call eval(), or make the layer with track_running_stats=False",
        )
    with np.errstate(all="ignore"):
        running._data[...] = moved(running._data, known)
    moved_on(running._counter)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """`batch_norm` of each example by itself; running statistics are the means of those of the examples."""
    x = input._data
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    size = math.prod(x.shape[2:])
    if size == 1:
        raise TensorValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    factors = factors_of(weight, bias)
    found, mean, variance = apply(INSTANCE_NORM, [input, *factors], (weight is not None, eps))
    if running_mean is not None:
        move(running_mean, mean._data, momentum, True)
    if running_var is not None:
        move(running_var, variance._data, momentum, True, size / (size - 1))
    return found  # type: ignore[no-any-return]


def instance_norm_of(x: Any, *rest: Any) -> Any:
    *factors, has_weight, eps = rest
    found, mean, variance = normalised(x, tuple(range(2, x.ndim)), eps)
    shape = x.shape[:2]
    return scaled(found, factors, has_weight, along(x, 1)), mean.reshape(shape), variance.reshape(shape)


INSTANCE_NORM = Op("instance_norm", "ViewBackward0", instance_norm_of, outputs=1)


# --- layers and groups --------------------------------------------------------------------------------
@in_single
def layer_norm_of(x: Any, *rest: Any) -> Any:
    *factors, has_weight, rank, eps = rest
    found, _, _ = normalised(x, tuple(range(x.ndim - rank, x.ndim)), eps)
    return scaled(found, factors, has_weight, x.shape[x.ndim - rank :])


@in_single
def rms_norm_of(x: Any, *rest: Any) -> Any:
    *factors, rank, eps = rest
    axes = tuple(range(x.ndim - rank, x.ndim))
    size = math.prod(x.shape[x.ndim - rank :])
    return scaled(x / np.sqrt((x * x).sum(axes, keepdims=True) / size + eps), factors, bool(factors), x.shape[-rank:])


@in_single
def group_norm_of(x: Any, *rest: Any) -> Any:
    *factors, has_weight, groups, eps = rest
    parts = x.reshape(x.shape[0], groups, -1)
    found, _, _ = normalised(parts, (2,), eps)
    return scaled(found.reshape(x.shape), factors, has_weight, along(x, 1))


LAYER_NORM = Op("layer_norm", "NativeLayerNormBackward0", layer_norm_of)
RMS_NORM = Op("rms_norm", "MulBackward0", rms_norm_of)
GROUP_NORM = Op("group_norm", "NativeGroupNormBackward0", group_norm_of)


def check_shape(input: Tensor, shape: tuple[int, ...], weight: Tensor | None, bias: Tensor | None) -> None:
    """Raise where the last dimensions are not those that are normalised."""
    given = input._data.shape
    if not shape:
        raise TensorError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element"
        )
    for name, factor in (("weight", weight), ("bias", bias)):
        if factor is not None and factor._data.shape != shape:
            raise TensorError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{list(factor._data.shape)} and normalized_shape = {list(shape)}"
            )
    if given[len(given) - len(shape) :] != shape or len(given) < len(shape):
        wanted = ", ".join(map(str, ("*", *shape)))
        raise TensorError(
            f"Given normalized_shape={list(shape)}, expected input with shape [{wanted}], but got input of size"
            f"{list(given)}"
        )


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """The last dimensions with mean 0 and variance 1, times ``weight`` plus ``bias``.

    Ba et al. 2016, arXiv:1607.06450.
    """
    shape = tuple(normalized_shape)
    check_shape(input, shape, weight, bias)
    operands = [input, *factors_of(weight, bias)]
    return apply(LAYER_NORM, operands, (weight is not None, len(shape), eps))  # type: ignore[no-any-return]


def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """The last dimensions divided by the root of their mean square (Zhang and Sennrich 2019, arXiv:1910.07467)."""
    shape = tuple(normalized_shape)
    check_shape(input, shape, weight, None)
    eps = float(np.finfo(input._data.dtype).eps) if eps is None else eps
    return apply(RMS_NORM, [input, *factors_of(weight, None)], (len(shape), eps))  # type: ignore[no-any-return]


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Groups of channels of (N, C, ...) with mean 0 and variance 1 (Wu and He 2018, arXiv:1803.08494)."""
    x = input._data
    if x.ndim < 2:
        raise TensorError(f"Expected at least 2 dimensions for input tensor but received {x.ndim}")
    if x.shape[1] % num_groups:
        raise TensorError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(x.shape)} "
            f"and num_groups={num_groups}"
        )
    operands = [input, *factors_of(weight, bias)]
    return apply(GROUP_NORM, operands, (weight is not None, num_groups, eps))  # type: ignore[no-any-return]


def local_response_of(x: Any, size: int, alpha: float, beta: float, k: float) -> Any:
    squares = x * x
    before = size // 2
    around = ((0, 0), (before, size - 1 - before)) + ((0, 0),) * (x.ndim - 2)
    whole = np.pad(squares, around)
    total: Any = 0
    for start in range(size):
        total = total + whole[:, start : start + x.shape[1]]
    return x / (k + (alpha / size) * total) ** beta


LOCAL_RESPONSE = Op("local_response_norm", "DivBackward0", local_response_of)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """x / (k + alpha mean(x^2))^beta, the mean over ``size`` neighbouring channels."""
    if input._data.ndim < 3:
        raise TensorValueError(f"Expected 3D or higher dimensionality input (got {input._data.ndim} dimensions)")
    return apply(LOCAL_RESPONSE, (input,), (size, alpha, beta, k))  # type: ignore[no-any-return]
