"""Normalisations as modules."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from srcgrad.torch.errors import TensorValueError
from srcgrad.torch.graph import moved_on
from srcgrad.torch.nn import functional as F
from srcgrad.torch.nn import init
from srcgrad.torch.nn.linear import add_parameter
from srcgrad.torch.nn.module import Module
from srcgrad.torch.ops.creation import numpy_dtype
from srcgrad.torch.tensor import Tensor, wrapped

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d",
    "LayerNorm", "LocalResponseNorm", "RMSNorm",
]  # fmt: skip


def reset_affine(module: Module) -> None:
    """Weights 1, biases 0, where the module has them."""
    if module.weight is not None:
        init.ones_(module.weight)
    if module.bias is not None:
        init.zeros_(module.bias)


class RunningNorm(Module):
    """What batch and instance normalisations share: the parameters, and the running statistics as buffers."""

    ranks: ClassVar[tuple[int, ...]]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        add_parameter(self, "weight", (num_features,), affine, dtype)
        add_parameter(self, "bias", (num_features,), affine and bias, dtype)
        kind = numpy_dtype(dtype)
        self.register_buffer("running_mean", wrapped(np.zeros(num_features, kind)) if track_running_stats else None)
        self.register_buffer("running_var", wrapped(np.ones(num_features, kind)) if track_running_stats else None)
        count = wrapped(np.zeros((), np.int64)) if track_running_stats else None
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Mean 0, variance 1, no batches."""
        if self.track_running_stats:
            for name, value in (("running_mean", 0), ("running_var", 1), ("num_batches_tracked", 0)):
                init.constant_(self._buffers[name], value)  # type: ignore[arg-type]

    def reset_parameters(self) -> None:
        """Weights 1, biases 0."""
        self.reset_running_stats()
        reset_affine(self)

    def _check_input(self, input: Tensor) -> None:
        rank = input._data.ndim
        if rank not in self.ranks:
            wanted = " or ".join(f"{n}D" for n in self.ranks)
            raise TensorValueError(f"expected {wanted} input (got {rank}D input)")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class BatchNorm(RunningNorm):
    """Each channel with mean 0 and variance 1 (Ioffe and Szegedy 2015, arXiv:1502.03167).

    Training, the statistics are those of the batch, and the running ones follow them; else the running ones are used.
    ``momentum=None``: the running statistics are the means over all batches.
    """

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, ...) of the same shape."""
        self._check_input(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked._data += 1
            moved_on(self.num_batches_tracked._counter)
            if self.momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked._data)
        from_batch = self.training or self.running_mean is None
        keeps = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if keeps else None,
            self.running_var if keeps else None,
            self.weight,
            self.bias,
            from_batch,
            momentum,
            self.eps,
        )


class BatchNorm1d(BatchNorm):
    """Batch normalisation of (N, C) or (N, C, L)."""

    ranks = (2, 3)


class BatchNorm2d(BatchNorm):
    """Batch normalisation of (N, C, H, W)."""

    ranks = (4,)


class BatchNorm3d(BatchNorm):
    """Batch normalisation of (N, C, D, H, W)."""

    ranks = (5,)


class InstanceNorm(RunningNorm):
    """Each channel of each example with mean 0 and variance 1 (Ulyanov et al. 2016, arXiv:1607.08022)."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype=dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, ...) or (C, ...) of the same shape."""
        self._check_input(input)
        rank = input._data.ndim
        unbatched = rank == self.ranks[0]
        channels = input._data.shape[0 if unbatched else 1]
        if channels != self.num_features and self.affine:
            raise TensorValueError(
                f"expected input's size at dim={0 if unbatched else 1} to match num_features ({self.num_features}), "
                "but "
                f"got: {channels}."
            )
        found = F.instance_norm(
            input.unsqueeze(0) if unbatched else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return found.squeeze(0) if unbatched else found


class InstanceNorm1d(InstanceNorm):
    """Instance normalisation of (N, C, L) or (C, L)."""

    ranks = (2, 3)


class InstanceNorm2d(InstanceNorm):
    """Instance normalisation of (N, C, H, W) or (C, H, W)."""

    ranks = (3, 4)


class InstanceNorm3d(InstanceNorm):
    """Instance normalisation of (N, C, D, H, W) or (C, D, H, W)."""

    ranks = (4, 5)


def as_shape(shape: Any) -> tuple[int, ...]:
    return tuple(shape) if isinstance(shape, (tuple, list)) else (int(shape),)


class LayerNorm(Module):
    """The last dimensions with mean 0 and variance 1, times ``weight`` plus ``bias``."""

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = as_shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        add_parameter(self, "weight", self.normalized_shape, elementwise_affine, dtype)
        add_parameter(self, "bias", self.normalized_shape, elementwise_affine and bias, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weights 1, biases 0."""
        reset_affine(self)

    def forward(self, input: Tensor) -> Tensor:
        """Of the same shape."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """The last dimensions divided by the root of their mean square, times ``weight``."""

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = as_shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        add_parameter(self, "weight", self.normalized_shape, elementwise_affine, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weights 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        """Of the same shape."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Groups of channels with mean 0 and variance 1, times ``weight`` plus ``bias``."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise TensorValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        add_parameter(self, "weight", (num_channels,), affine, dtype)
        add_parameter(self, "bias", (num_channels,), affine and bias, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weights 1, biases 0."""
        reset_affine(self)

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, ...) of the same shape."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        has_bias = self.bias is not None
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={has_bias}"


class LocalResponseNorm(Module):
    """x / (k + alpha mean(x^2))^beta, the mean over neighbouring channels."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, ...) of the same shape."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
