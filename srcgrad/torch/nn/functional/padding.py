"""Borders around tensors, and images made larger: pad, interpolate, pixel_shuffle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from srcgrad.torch.dispatch import apply
from srcgrad.torch.errors import TensorError, TensorNotImplementedError, TensorValueError
from srcgrad.torch.nn.functional.pooling import adaptive_avg_pool
from srcgrad.torch.operation import Op
from srcgrad.torch.ops.define import refused
from srcgrad.torch.tensor import Tensor

__all__ = ["interpolate", "pad", "pixel_shuffle", "pixel_unshuffle", "upsample"]

Widths = tuple[tuple[int, int], ...]
MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
"""PyTorch's names of the modes that read the tensor itself, and NumPy's."""


def pad_of(x: Any, widths: Widths, mode: str, value: Any) -> Any:
    """Widths per dimension; negative ones cut off."""
    cut = tuple(slice(max(0, -a), n - max(0, -b)) for (a, b), n in zip(widths, x.shape, strict=True))
    wider = tuple((max(a, 0), max(b, 0)) for a, b in widths)
    if mode == "constant":
        return np.pad(x[cut], wider, constant_values=value)
    mirror: Any = MODES[mode]
    if mode == "replicate":  # the border repeats the tensor's elements, also those that are cut off
        whole = np.pad(x, wider, mode=mirror)
        return whole[tuple(slice(max(0, -a), n - max(0, -b)) for (a, b), n in zip(widths, whole.shape, strict=True))]
    return np.pad(x[cut], wider, mode=mirror)


CONSTANT_PAD = Op("constant_pad_nd", "ConstantPadNdBackward0", pad_of)
MIRRORED = {
    (mode, rank): Op(f"{mode}_pad{rank}d", f"{name}{rank}DBackward0", pad_of)
    for mode, name in (("reflect", "ReflectionPad"), ("replicate", "ReplicationPad"))
    for rank in (1, 2, 3)
}
CIRCULAR = Op("circular_pad", "CopySlices", pad_of)


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """The tensor with borders: ``pad`` gives two widths per dimension, the last dimension first.

    Args:
        mode: constant (of ``value``), reflect, replicate or circular.

    Raises:
        TensorError: widths that do not fit. TensorNotImplementedError: a mode for these dimensions.
    """
    widths = tuple(int(n) for n in pad)
    shape = input._data.shape
    rank = len(widths) // 2
    if len(widths) % 2:
        raise TensorError("Padding length must be divisible by 2")
    if rank > len(shape):
        raise TensorError(
            f"Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(widths)} and input of dimension {len(shape)}"
        )
    pairs = tuple((widths[2 * k], widths[2 * k + 1]) for k in reversed(range(rank)))
    whole: Widths = ((0, 0),) * (len(shape) - rank) + pairs
    for axis, ((a, b), n) in enumerate(zip(whole, shape, strict=True)):
        if n + a + b < 0:
            raise TensorError(
                f"The input size {n}, plus negative padding {a} and {b} resulted in a negative output size, which is "
                f"invalid. Check dimension {axis} of your input."
            )
    if mode == "constant":
        filled = 0 if value is None else value
        return apply(CONSTANT_PAD, (input,), (whole, mode, filled))  # type: ignore[no-any-return]
    if value is not None and value != 0:
        raise TensorValueError(f"Padding mode '{mode}' doesn't take in value argument")
    if mode not in MODES:
        raise TensorNotImplementedError(f"Unrecognised padding mode {mode}", hint=f"constant, {', '.join(MODES)}")
    if len(shape) not in (rank + 1, rank + 2) or rank not in (1, 2, 3):
        raise TensorNotImplementedError(
            "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now",
            hint=f"{len(widths)} widths need a tensor of {rank + 1} or {rank + 2} dimensions",
        )
    check_border(mode, pairs, shape[-rank:])
    op = CIRCULAR if mode == "circular" else MIRRORED[mode, rank]
    return apply(op, (input,), (whole, mode, 0))  # type: ignore[no-any-return]


def check_border(mode: str, widths: Widths, shape: tuple[int, ...]) -> None:
    """Raise where there is not enough to reflect or to repeat."""
    for (a, b), n in zip(widths, shape, strict=True):
        if mode == "reflect" and max(a, b) >= n:
            raise TensorError(
                "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding "
                f"({a}, {b}) at dimension of size {n}"
            )
        if mode == "circular" and max(a, b) > n:
            raise TensorError("Padding value causes wrapping around more than once.")
        if mode == "replicate" and not n:
            raise TensorError("replication_pad: expected a dimension that is not empty")


# --- larger images ------------------------------------------------------------------------------------
def nearest_of(x: Any, out: tuple[int, ...], scales: tuple[float | None, ...], exact: bool) -> Any:
    """Each element of the result is the one at floor(place * scale)."""
    first = x.ndim - len(out)
    for k, (wanted, scale) in enumerate(zip(out, scales, strict=True)):
        given = x.shape[first + k]
        ratio = np.float32(1 / scale if scale else given / wanted)
        places = np.arange(wanted, dtype=np.float32)
        index = np.floor((places + np.float32(0.5)) * ratio if exact else places * ratio).astype(np.int64)
        x = np.take(x, np.minimum(index, given - 1), first + k)
    return x


NEAREST = {
    (rank, exact): Op("upsample", f"UpsampleNearest{'Exact' if exact else ''}{rank}DBackward0", nearest_of)
    for rank in (1, 2, 3)
    for exact in (False, True)
}


def linear_weights(given: int, wanted: int, scale: float | None, align: bool) -> Any:
    """The matrix of linear interpolation from ``given`` places to ``wanted`` ones."""
    if align:
        places = np.arange(wanted) * ((given - 1) / (wanted - 1) if wanted > 1 else 0.0)
    else:
        places = np.maximum((np.arange(wanted) + 0.5) * (1 / scale if scale else given / wanted) - 0.5, 0.0)
    low = np.minimum(np.floor(places).astype(np.int64), given - 1)
    high = np.minimum(low + 1, given - 1)
    part = places - low
    found = np.zeros((wanted, given))
    np.add.at(found, (np.arange(wanted), low), 1 - part)
    np.add.at(found, (np.arange(wanted), high), part)
    return found


CUBIC: Final = -0.75
"""The slope at 1 of the kernel of cubic convolution (Keys 1981), PyTorch's."""


def cubic_weights(given: int, wanted: int, scale: float | None, align: bool) -> Any:
    """The matrix of cubic convolution; places outside are those at the border."""
    if align:
        places = np.arange(wanted) * ((given - 1) / (wanted - 1) if wanted > 1 else 0.0)
    else:
        places = (np.arange(wanted) + 0.5) * (1 / scale if scale else given / wanted) - 0.5
    low = np.floor(places).astype(np.int64)
    found = np.zeros((wanted, given))
    for tap in (-1, 0, 1, 2):
        far = np.abs(places - low - tap)
        near = ((CUBIC + 2) * far - (CUBIC + 3)) * far * far + 1
        outer = ((CUBIC * far - 5 * CUBIC) * far + 8 * CUBIC) * far - 4 * CUBIC
        np.add.at(found, (np.arange(wanted), np.clip(low + tap, 0, given - 1)), np.where(far <= 1, near, outer))
    return found


def resized(x: Any, out: tuple[int, ...], scales: tuple[float | None, ...], align: bool, weights_of: Any) -> Any:
    """Each dimension in turn, by a matrix product; bytes are computed in single precision and rounded."""
    if x.dtype == np.uint8:
        found = np.rint(resized(x.astype(np.float32), out, scales, align, weights_of))
        return np.clip(found, 0, 255).astype(np.uint8)
    first = x.ndim - len(out)
    for k, (wanted, scale) in enumerate(zip(out, scales, strict=True)):
        weights = weights_of(x.shape[first + k], wanted, scale, align).astype(x.dtype)
        x = np.moveaxis(np.moveaxis(x, first + k, -1) @ weights.T, -1, first + k)
    return x


def cubic_of(x: Any, out: tuple[int, ...], scales: tuple[float | None, ...], align: bool) -> Any:
    return resized(x, out, scales, align, cubic_weights)


def linear_of(x: Any, out: tuple[int, ...], scales: tuple[float | None, ...], align: bool) -> Any:
    return resized(x, out, scales, align, linear_weights)


BICUBIC = Op("upsample", "UpsampleBicubic2DBackward0", cubic_of)
LINEAR = {
    rank: Op("upsample", f"Upsample{name}{rank}DBackward0", linear_of)
    for rank, name in ((1, "Linear"), (2, "Bilinear"), (3, "Trilinear"))
}
LINEAR_MODES = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """An image (N, C, ...) in another size: ``size``, or that times ``scale_factor``.

    Args:
        mode: nearest, nearest-exact, linear, bilinear, trilinear, bicubic or area (the means of windows).
        align_corners: the first and last elements stay where they are (of the linear modes).

    Raises:
        TensorValueError: both sizes or none. TensorNotImplementedError: another mode.
    """
    shape = input._data.shape
    rank = len(shape) - 2
    if (size is None) == (scale_factor is None):
        both = "only one of size or scale_factor should be defined"
        raise TensorValueError("either size or scale_factor should be defined" if size is None else both)
    if mode.startswith("nearest") and align_corners is not None:
        raise TensorValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    given = scale_factor if size is None else size
    if isinstance(given, (tuple, list)) and len(given) != rank:
        raise TensorValueError(f"Input and output must have the same number of spatial dimensions, but got {given}")
    each = tuple(given) if isinstance(given, (tuple, list)) else (given,) * rank
    if size is None:
        out = tuple(math.floor(n * float(f)) for n, f in zip(shape[2:], each, strict=True))
        scales: tuple[float | None, ...] = (None,) * rank if recompute_scale_factor else tuple(map(float, each))
    else:
        out, scales = tuple(int(n) for n in each), (None,) * rank
    if mode in ("nearest", "nearest-exact") and rank in (1, 2, 3):
        exact = mode == "nearest-exact"
        return apply(NEAREST[rank, exact], (input,), (out, scales, exact))  # type: ignore[no-any-return]
    if mode == "area" and rank in (1, 2, 3):
        return adaptive_avg_pool(input, out, rank)
    if LINEAR_MODES.get(mode) == rank and not antialias:
        kind = input._data.dtype
        if kind.kind not in "fc" and kind != np.uint8:
            raise refused(f"upsample_{mode}{rank}d", kind)
        if mode == "bicubic":
            return apply(BICUBIC, (input,), (out, scales, bool(align_corners)))  # type: ignore[no-any-return]
        return apply(LINEAR[rank], (input,), (out, scales, bool(align_corners)))  # type: ignore[no-any-return]
    raise TensorNotImplementedError(
        f"Got {len(shape)}D input, but {mode} mode needs another, or is not available here",
        hint="nearest, nearest-exact; linear for 3D, bilinear and bicubic for 4D, trilinear for 5D inputs",
    )


upsample = interpolate


def shuffled(x: Any, factor: int) -> Any:
    *lead, channels, height, width = x.shape
    left = channels // factor**2
    y = x.reshape(*lead, left, factor, factor, height, width)
    n = len(lead)
    y = y.transpose(*range(n + 1), n + 3, n + 1, n + 4, n + 2)
    return y.reshape(*lead, left, height * factor, width * factor)


def unshuffled(x: Any, factor: int) -> Any:
    *lead, channels, height, width = x.shape
    y = x.reshape(*lead, channels, height // factor, factor, width // factor, factor)
    n = len(lead)
    y = y.transpose(*range(n + 1), n + 2, n + 4, n + 1, n + 3)
    return y.reshape(*lead, channels * factor**2, height // factor, width // factor)


SHUFFLE = Op("pixel_shuffle", "PixelShuffleBackward0", shuffled, quiet=True)
UNSHUFFLE = Op("pixel_unshuffle", "PixelUnshuffleBackward0", unshuffled, quiet=True)


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(..., C r^2, H, W) to (..., C, H r, W r)."""
    shape = input._data.shape
    if len(shape) < 3 or shape[-3] % upscale_factor**2:
        raise TensorError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            "but "
            f"got input of shape {list(shape)} and upscale_factor={upscale_factor}"
        )
    return apply(SHUFFLE, (input,), (upscale_factor,))  # type: ignore[no-any-return]


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(..., C, H r, W r) to (..., C r^2, H, W)."""
    shape = input._data.shape
    if len(shape) < 3 or shape[-1] % downscale_factor or shape[-2] % downscale_factor:
        raise TensorError(
            f"pixel_unshuffle expects height and width to be divisible by downscale_factor, but got input of shape "
            f"{list(shape)} and downscale_factor={downscale_factor}"
        )
    return apply(UNSHUFFLE, (input,), (downscale_factor,))  # type: ignore[no-any-return]
