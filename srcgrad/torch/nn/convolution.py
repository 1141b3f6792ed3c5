"""Convolutions as modules, and what reads or writes their columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from srcgrad.torch.errors import TensorValueError
from srcgrad.torch.nn import functional as F
from srcgrad.torch.nn import init
from srcgrad.torch.nn.functional.windows import sizes_of
from srcgrad.torch.nn.linear import add_parameter, empty
from srcgrad.torch.nn.module import Module
from srcgrad.torch.tensor import Tensor

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "Fold", "Unfold",
]  # fmt: skip

PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class ConvNd(Module):
    """What all convolutions share: the arguments, and a weight that begins uniform within 1 / sqrt(fan_in)."""

    rank: int
    transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        output_padding: Any,
        groups: int,
        bias: bool,
        padding_mode: str,
        dtype: Any,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise TensorValueError("groups must be a positive integer")
        if in_channels % groups:
            raise TensorValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise TensorValueError("out_channels must be divisible by groups")
        if padding_mode not in PADDING_MODES:
            raise TensorValueError(
                f"padding_mode must be one of {set(PADDING_MODES)}, but got padding_mode='{padding_mode}'"
            )
        rank = self.rank
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = sizes_of(kernel_size, rank, "kernel_size")
        self.stride = sizes_of(stride, rank, "stride")
        self.dilation = sizes_of(dilation, rank, "dilation")
        self.output_padding = sizes_of(output_padding, rank, "output_padding")
        self.groups = groups
        self.padding_mode = padding_mode
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise TensorValueError(f"Invalid padding string '{padding}', should be one of {{'valid', 'same'}}")
            if padding == "same" and any(s != 1 for s in self.stride):
                raise TensorValueError("padding='same' is not supported for strided convolutions")
            self.padding: Any = padding
        else:
            self.padding = sizes_of(padding, rank, "padding")
        first, second = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        self.weight = empty(first, second // groups, *self.kernel_size, dtype=dtype)
        add_parameter(self, "bias", (out_channels,), bias, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial values."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init.fans(self.weight)
            if fan_in:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def _border(self) -> list[int]:
        """The widths of the border, as `torch.nn.functional.pad` takes them."""
        if self.padding == "valid":
            return [0, 0] * self.rank
        if self.padding == "same":
            total = [d * (k - 1) for k, d in zip(self.kernel_size, self.dilation, strict=True)]
            return [n for size in reversed(total) for n in (size // 2, size - size // 2)]
        return [n for size in reversed(self.padding) for n in (size, size)]

    def _convolve(self, input: Tensor, function: Any) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._border(), mode=self.padding_mode), 0
        return function(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        none = (0,) * self.rank
        if self.padding != none:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * self.rank:
            text += f", dilation={self.dilation}"
        if self.output_padding != none:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class Convolution(ConvNd):
    """A convolution with the arguments of `Conv2d`."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias, padding_mode, dtype
        )


class Conv1d(Convolution):
    """The cross-correlation of (N, C, L) or (C, L) with a kernel, plus a bias."""

    rank = 1

    def forward(self, input: Tensor) -> Tensor:
        """(N, in_channels, L) to (N, out_channels, L')."""
        return self._convolve(input, F.conv1d)


class Conv2d(Convolution):
    """The cross-correlation of (N, C, H, W) or (C, H, W) with a kernel, plus a bias."""

    rank = 2

    def forward(self, input: Tensor) -> Tensor:
        """(N, in_channels, H, W) to (N, out_channels, H', W')."""
        return self._convolve(input, F.conv2d)


class Conv3d(Convolution):
    """The cross-correlation of (N, C, D, H, W) or (C, D, H, W) with a kernel, plus a bias."""

    rank = 3

    def forward(self, input: Tensor) -> Tensor:
        """(N, in_channels, D, H, W) to (N, out_channels, D', H', W')."""
        return self._convolve(input, F.conv3d)


class TransposedConvolution(ConvNd):
    """The transpose of a convolution, with the arguments of `ConvTranspose2d`."""

    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise TensorValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            output_padding,
            groups,
            bias,
            padding_mode,
            dtype,
        )

    def _extra(self, input: Tensor, output_size: Sequence[int] | None) -> tuple[int, ...]:
        """The output padding that gives a size.

        Raises:
            TensorValueError: none does.
        """
        if output_size is None:
            return self.output_padding
        wanted = tuple(output_size)[-self.rank :]
        found = []
        for n, m, k, s, p, d in zip(
            input._data.shape[-self.rank :],
            wanted,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            strict=True,
        ):
            least = (n - 1) * s - 2 * p + d * (k - 1) + 1
            if not least <= m < least + s:
                raise TensorValueError(
                    f"requested an output size of {list(wanted)}, but a size of {m} is not between {least} and "
                    f"{least + s - 1}"
                )
            found.append(m - least)
        return tuple(found)

    def _transpose(self, input: Tensor, output_size: Sequence[int] | None, function: Any) -> Tensor:
        extra = self._extra(input, output_size)
        return function(  # type: ignore[no-any-return]
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )


class ConvTranspose1d(TransposedConvolution):
    """The transpose of `Conv1d` in its input."""

    rank = 1

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """(N, in_channels, L) to (N, out_channels, L')."""
        return self._transpose(input, output_size, F.conv_transpose1d)


class ConvTranspose2d(TransposedConvolution):
    """The transpose of `Conv2d` in its input."""

    rank = 2

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """(N, in_channels, H, W) to (N, out_channels, H', W')."""
        return self._transpose(input, output_size, F.conv_transpose2d)


class ConvTranspose3d(TransposedConvolution):
    """The transpose of `Conv3d` in its input."""

    rank = 3

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """(N, in_channels, D, H, W) to (N, out_channels, D', H', W')."""
        return self._transpose(input, output_size, F.conv_transpose3d)


class Unfold(Module):
    """The windows of (N, C, H, W) as columns."""

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, H, W) to (N, C kH kW, number of windows)."""
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"


class Fold(Module):
    """The transpose of `Unfold`."""

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        """(N, C kH kW, number of windows) to (N, C, H, W)."""
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, dilation={self.dilation}, "
            f"padding={self.padding}, stride={self.stride}"
        )
