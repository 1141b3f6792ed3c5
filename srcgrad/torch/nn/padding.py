"""Borders, larger images, distances and dropout as modules."""

from __future__ import annotations

from typing import Any, ClassVar

from srcgrad.torch.errors import TensorValueError
from srcgrad.torch.nn import functional as F
from srcgrad.torch.nn.module import Module
from srcgrad.torch.tensor import Tensor

__all__ = [
    "AlphaDropout", "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d",
    "ConstantPad3d", "CosineSimilarity", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout",
    "PairwiseDistance", "PixelShuffle", "PixelUnshuffle", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d",
    "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "Upsample", "UpsamplingBilinear2d",
    "UpsamplingNearest2d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip


# --- borders ------------------------------------------------------------------------------------------
def widths(padding: Any, rank: int) -> tuple[int, ...]:
    """Two widths per dimension, from one for all or from all."""
    if not isinstance(padding, (tuple, list)):
        return (int(padding),) * (2 * rank)
    if len(padding) != 2 * rank:
        raise TensorValueError(f"padding should be an int or have {2 * rank} values, got {padding}")
    return tuple(padding)


class ConstantPad(Module):
    """A border of one value."""

    rank: ClassVar[int]

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__()
        self.padding = widths(padding, self.rank)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """The tensor with its border."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(ConstantPad):
    """A border of one value around the last dimension."""

    rank = 1


class ConstantPad2d(ConstantPad):
    """A border of one value around the last two dimensions."""

    rank = 2


class ConstantPad3d(ConstantPad):
    """A border of one value around the last three dimensions."""

    rank = 3


class ZeroPad(ConstantPad):
    """A border of zeros."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(ZeroPad):
    """A border of zeros around the last dimension."""

    rank = 1


class ZeroPad2d(ZeroPad):
    """A border of zeros around the last two dimensions."""

    rank = 2


class ZeroPad3d(ZeroPad):
    """A border of zeros around the last three dimensions."""

    rank = 3


class BorderPad(Module):
    """A border made of the tensor itself."""

    rank: ClassVar[int]
    mode: ClassVar[str]

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = widths(padding, self.rank)

    def forward(self, input: Tensor) -> Tensor:
        """The tensor with its border."""
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ReflectionPad1d(BorderPad):
    """A reflection at the ends of the last dimension."""

    rank, mode = 1, "reflect"


class ReflectionPad2d(BorderPad):
    """A reflection at the ends of the last two dimensions."""

    rank, mode = 2, "reflect"


class ReflectionPad3d(BorderPad):
    """A reflection at the ends of the last three dimensions."""

    rank, mode = 3, "reflect"


class ReplicationPad1d(BorderPad):
    """The first and last elements of the last dimension again."""

    rank, mode = 1, "replicate"


class ReplicationPad2d(BorderPad):
    """The first and last elements of the last two dimensions again."""

    rank, mode = 2, "replicate"


class ReplicationPad3d(BorderPad):
    """The first and last elements of the last three dimensions again."""

    rank, mode = 3, "replicate"


class CircularPad1d(BorderPad):
    """The last dimension closed to a circle."""

    rank, mode = 1, "circular"


class CircularPad2d(BorderPad):
    """The last two dimensions closed to circles."""

    rank, mode = 2, "circular"


class CircularPad3d(BorderPad):
    """The last three dimensions closed to circles."""

    rank, mode = 3, "circular"


# --- other sizes --------------------------------------------------------------------------------------
class Upsample(Module):
    """An image in another size."""

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size = size
        if isinstance(scale_factor, (tuple, list)):
            self.scale_factor: Any = tuple(map(float, scale_factor))
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, ...) in the other size."""
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        size = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{size}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """The nearest elements of (N, C, H, W)."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Linear interpolation in both dimensions of (N, C, H, W)."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class PixelShuffle(Module):
    """(..., C r^2, H, W) to (..., C, H r, W r)."""

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """The larger image."""
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """(..., C, H r, W r) to (..., C r^2, H, W)."""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """The smaller image."""
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


# --- distances ----------------------------------------------------------------------------------------
class CosineSimilarity(Module):
    """x1 x2 / (norm(x1) norm(x2)) along a dimension."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """One dimension less."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The p-norm of x1 - x2 along the last dimension."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """One dimension less."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


# --- dropout ------------------------------------------------------------------------------------------
class DropoutNd(Module):
    """What all dropouts share: the probability, which is used while training only."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise TensorValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(DropoutNd):
    """Elements are 0 with probability p; the others are divided by 1 - p."""

    def forward(self, input: Tensor) -> Tensor:
        """Of the same shape."""
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(DropoutNd):
    """Whole channels of (N, C, L)."""

    def forward(self, input: Tensor) -> Tensor:
        """Of the same shape."""
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(DropoutNd):
    """Whole channels of (N, C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        """Of the same shape."""
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(DropoutNd):
    """Whole channels of (N, C, D, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        """Of the same shape."""
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(DropoutNd):
    """Dropout that keeps mean 0 and variance 1."""

    def forward(self, input: Tensor) -> Tensor:
        """Of the same shape."""
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(DropoutNd):
    """`AlphaDropout` of whole channels."""

    def forward(self, input: Tensor) -> Tensor:
        """Of the same shape."""
        return F.feature_alpha_dropout(input, self.p, self.training)
