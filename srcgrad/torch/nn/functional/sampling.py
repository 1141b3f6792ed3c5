"""Images read at places between their elements: affine_grid, grid_sample."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, Final

import numpy as np

from srcgrad.torch.dispatch import apply, named
from srcgrad.torch.errors import TensorError, TensorNotImplementedError, TensorValueError
from srcgrad.torch.operation import Op
from srcgrad.torch.tensor import Tensor

__all__ = ["affine_grid", "grid_sample"]

PADDINGS = ("zeros", "border", "reflection")
CUBIC: Final = -0.75


def centres(count: int, align: bool, dtype: Any) -> Any:
    """Where the elements of a dimension lie between -1 and 1."""
    if count == 1:
        return np.zeros(1, dtype)
    return np.linspace(-1, 1, count, dtype=dtype) * (1 if align else (count - 1) / count)


def grid_of(theta: Any, size: tuple[int, ...], align: bool) -> Any:
    """The affine maps (N, d, d + 1) of the places of an image's elements: (N, *size, d), x first."""
    axes = np.meshgrid(*(centres(n, align, theta.dtype) for n in size), indexing="ij")
    places = np.stack([*reversed(axes), np.ones_like(axes[0])], -1).reshape(-1, len(size) + 1)
    found = places @ np.swapaxes(theta, -1, -2)
    return found.reshape(theta.shape[0], *size, len(size))


AFFINE_GRID = Op("affine_grid_generator", "AffineGridGeneratorBackward0", grid_of)


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The grid for `grid_sample` of affine maps: (N, 2, 3) for images (N, C, H, W), (N, 3, 4) for (N, C, D, H, W)."""
    rank = len(size) - 2
    if theta._data.dtype.kind != "f":
        raise TensorValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if rank not in (2, 3):
        raise TensorNotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
            f"{tuple(size)}.",
            hint="add a dimension of length 1 to the image",
        )
    if theta._data.shape[-2:] != (rank, rank + 1) or theta._data.ndim != 3:
        raise TensorValueError(
            f"Expected a batch of {rank}D affine matrices of shape Nx{rank}x{rank + 1} for size {tuple(size)}. Got "
            f"{tuple(theta._data.shape)}."
        )
    return apply(AFFINE_GRID, (theta,), (tuple(size[2:]), bool(align_corners)))  # type: ignore[no-any-return]


# --- reading ------------------------------------------------------------------------------------------
def reflected(place: Any, low: float, high: float) -> Any:
    """A place between two mirrors."""
    span = high - low
    if span <= 0:
        return place * 0
    far = np.abs(place - low)
    turns = np.floor(far / span)
    rest = far - turns * span
    return np.where(turns % 2 == 0, low + rest, high - rest)


def inside(place: Any, count: int, padding: str, align: bool) -> Any:
    """The place that is read, in elements: of what is outside, the border or the mirror image."""
    if padding == "zeros":
        return place
    if padding == "reflection":
        place = reflected(place, 0, count - 1) if align else reflected(place, -0.5, count - 0.5)
    # PyTorch: no gradient where the border is reached
    return np.where(place <= 0, 0.0, np.where(place >= count - 1, count - 1.0, place)).astype(place.dtype)


def element(image: Any, indices: Sequence[Any], keep: bool) -> Any:
    """The elements (N, C, ...) at indices (N, ...) per dimension; 0 outside, the border with ``keep``."""
    size = image.shape[2:]
    seen = [np.clip(index, 0, n - 1) for index, n in zip(indices, size, strict=True)]
    batch = np.arange(image.shape[0]).reshape(-1, *(1,) * len(size))
    found = np.moveaxis(image, 1, -1)[(batch, *seen)]
    if not keep:
        valid: Any = True
        for index, n in zip(indices, size, strict=True):
            valid = valid & (index >= 0) & (index < n)
        found = np.where(valid[..., None], found, image.dtype.type(0))
    return np.moveaxis(found, -1, 1)


def cubic_tap(far: Any) -> Any:
    """The kernel of cubic convolution at a distance."""
    near = ((CUBIC + 2) * far - (CUBIC + 3)) * far * far + 1
    outer = ((CUBIC * far - 5 * CUBIC) * far + 8 * CUBIC) * far - 4 * CUBIC
    return np.where(far <= 1, near, outer)


def sampled(image: Any, grid: Any, mode: str, padding: str, align: bool) -> Any:
    """The image at the places of a grid, each a sum over its neighbours."""
    size = image.shape[2:]
    places = []
    for k, count in enumerate(size):
        x = grid[..., len(size) - 1 - k]
        place = (x + 1) / 2 * (count - 1) if align else ((x + 1) * count - 1) / 2
        places.append(place if mode == "bicubic" else inside(place, count, padding, align))
    if mode == "nearest":
        return element(image, [np.rint(place).astype(np.int64) for place in places], False)
    low = [np.floor(place) for place in places]
    taps = (-1, 0, 1, 2) if mode == "bicubic" else (0, 1)
    total: Any = 0
    for offsets in product(taps, repeat=len(size)):
        weight: Any = 1
        indices = []
        for place, start, offset, count in zip(places, low, offsets, size, strict=True):
            far = np.abs(place - start - offset)
            weight = weight * (cubic_tap(far) if mode == "bicubic" else 1 - far)
            at = start + offset
            indices.append((inside(at, count, padding, align) if mode == "bicubic" else at).astype(np.int64))
        total = total + element(image, indices, False) * weight[:, None]
    return total


SAMPLERS = {
    2: Op("grid_sampler_2d", "GridSampler2DBackward0", sampled),
    3: Op("grid_sampler_3d", "GridSampler3DBackward0", sampled),
}


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """The image (N, C, H, W) or (N, C, D, H, W) at the places of a grid (N, ..., 2) or (N, ..., 3).

    Args:
        grid: places between -1 and 1, x first.
        mode: bilinear, nearest, or bicubic (of images of two dimensions).
        padding_mode: what is outside: zeros, border or reflection.
        align_corners: -1 and 1 are the centres of the first and last elements, and not their outer edges.
    """
    x, places = input._data, grid._data
    rank = x.ndim - 2
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise TensorValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in PADDINGS:
        raise TensorValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    if rank not in (2, 3) or places.ndim != x.ndim or places.shape[-1] != rank or places.shape[0] != x.shape[0]:
        raise TensorError(
            "grid_sampler(): expected an input of 4 or 5 dimensions and a grid with as many, of the same batch size, "
            f"but got input with sizes {list(x.shape)} and grid with sizes {list(places.shape)}"
        )
    if x.dtype != places.dtype:
        raise TensorError(
            "grid_sampler(): expected input and grid to have same dtype, but input has "
            f"{named(x.dtype)} and grid has {named(places.dtype)}"
        )
    if mode == "bicubic" and rank == 3:
        raise TensorError("grid_sampler(): bicubic interpolation only supports 4D input")
    return apply(SAMPLERS[rank], (input, grid), (mode, padding_mode, bool(align_corners)))  # type: ignore[no-any-return]
