"""Poolings: the maximum or the mean of windows."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np

from srcgrad.torch.dispatch import apply
from srcgrad.torch.errors import TensorError
from srcgrad.torch.nn.functional.windows import Sizes, inner, padded, sizes_of, slices
from srcgrad.torch.operation import Op
from srcgrad.torch.tensor import Tensor, wrapped

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "lp_pool1d", "lp_pool2d", "lp_pool3d",
    "max_pool1d", "max_pool2d", "max_pool3d",
]  # fmt: skip


def pooled_size(size: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil: bool) -> Sizes:
    """How many windows there are. With ``ceil``, one more where something is left, if it begins inside the image.

    Raises:
        TensorError: there are none.
    """
    found = []
    for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True):
        room = n + 2 * p - d * (k - 1) - 1
        count = (room + (s - 1 if ceil else 0)) // s + 1
        if ceil and (count - 1) * s >= n + p:
            count -= 1
        found.append(count)
    if any(count < 1 for count in found):
        given, out = "x".join(map(str, size)), "x".join(map(str, found))
        raise TensorError(f"Given input size: ({given}). Calculated output size: ({out}). Output size is too small")
    return tuple(found)


def borders(size: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, out: Sizes) -> Any:
    """The border that all windows need."""
    return tuple(
        (p, max(0, (m - 1) * s + d * (k - 1) + 1 - n - p))
        for n, k, s, p, d, m in zip(size, kernel, stride, padding, dilation, out, strict=True)
    )


# --- maxima -------------------------------------------------------------------------------------------
def met(x: Any, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, out: Sizes) -> list[Any]:
    """Per element of the kernel, what it meets: -inf in the border."""
    around = borders(x.shape[-len(out) :], kernel, stride, padding, dilation, out)
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    whole = padded(x, around, lowest)
    return [whole[index] for index in slices(kernel, stride, dilation, out)]


def largest(parts: list[Any]) -> Any:
    found = parts[0]
    for part in parts[1:]:
        found = np.maximum(found, part)
    return found


def max_pool_of(x: Any, *windows: Any) -> Any:
    return largest(met(x, *windows)).copy()


def max_pool_backward(cotangent: Any, result: Any, x: Any, *windows: Any) -> Any:
    """To the first element of each window that is its maximum (or nan)."""
    kernel, stride, _, dilation, out = windows
    parts = met(x, *windows)
    top = largest(parts)
    around = borders(x.shape[-len(out) :], *windows)
    shape = tuple(n + a + b for n, (a, b) in zip(x.shape[-len(out) :], around, strict=True))
    found = np.zeros_like(cotangent, shape=(*x.shape[: -len(out)], *shape))
    apart = all(s >= d * (k - 1) + 1 for s, d, k in zip(stride, dilation, kernel, strict=True))
    free: Any = None
    for k, (part, index) in enumerate(zip(parts, slices(kernel, stride, dilation, out), strict=True)):
        hit = free
        if k + 1 < len(parts):
            largest_here = (part == top) | np.isnan(part)
            hit = largest_here if free is None else free & largest_here
            free = ~hit if free is None else free & ~largest_here
        share = cotangent if hit is None else np.where(hit, cotangent, 0.0)
        if apart:
            found[index] = share
        else:
            place = found[index]
            np.add(place, share, out=place)
    return found[inner(around, found)]


MAX_POOL = {
    3: Op("max_pool3d", "MaxPool3DWithIndicesBackward0", max_pool_of, pullback=max_pool_backward),
    2: Op("max_pool2d", "MaxPool2DWithIndicesBackward0", max_pool_of, pullback=max_pool_backward),
    1: Op("max_pool1d", "SqueezeBackward1", max_pool_of, pullback=max_pool_backward),
}


def max_pool(
    input: Tensor, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool, indices: bool, rank: int
) -> Any:
    x = input._data
    name = f"max_pool{rank}d"
    check_rank(x, rank, name)
    kernel = sizes_of(kernel, rank, "kernel_size")
    stride = kernel if stride is None or stride in ([], ()) else sizes_of(stride, rank, "stride")
    padding, dilation = sizes_of(padding, rank, "padding"), sizes_of(dilation, rank, "dilation")
    if any(s < 1 for s in stride):
        raise TensorError(f"{name}() stride must be greater than zero, but got {stride[0]}")
    if any(p < 0 or p > k / 2 for p, k in zip(padding, kernel, strict=True)):
        raise TensorError(
            f"pad should be at most half of effective kernel size, but got pad={padding}, kernel_size={kernel}"
        )
    out = pooled_size(x.shape[-rank:], kernel, stride, padding, dilation, ceil)
    statics = (kernel, stride, padding, dilation, out)
    found = apply(MAX_POOL[rank], (input,), statics)
    return (found, wrapped(places(x, *statics))) if indices else found


def places(x: Any, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, out: Sizes) -> Any:
    """Where in the flattened image each maximum lies."""
    parts = np.stack(met(x, kernel, stride, padding, dilation, out))
    size = x.shape[-len(out) :]
    flat = np.arange(math.prod(size)).reshape(size)
    where = np.stack(
        [
            padded(flat, borders(size, kernel, stride, padding, dilation, out), -1)[index]
            for index in slices(kernel, stride, dilation, out)
        ]
    )
    whole = np.broadcast_to(where.reshape(len(where), *(1,) * (x.ndim - len(out)), *out), parts.shape)
    return np.take_along_axis(whole, parts.argmax(0)[None], 0)[0]


def check_rank(x: Any, rank: int, name: str) -> None:
    if x.ndim not in (rank + 1, rank + 2):
        raise TensorError(f"{name}: expected a tensor of {rank + 1} or {rank + 2} dimensions, got {list(x.shape)}")


def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of (N, C, L) or (C, L); with ``return_indices``, where it lies too."""
    return max_pool(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices, 1)


def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of (N, C, H, W) or (C, H, W); with ``return_indices``, where it lies too."""
    return max_pool(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices, 2)


def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of (N, C, D, H, W) or (C, D, H, W); with ``return_indices``, where it lies too."""
    return max_pool(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices, 3)


# --- means --------------------------------------------------------------------------------------------
def divisors(
    size: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, out: Sizes, include_pad: bool, override: int | None
) -> Any:
    """What each window's sum is divided by: how many elements it has, of the padded image or of the image."""
    if override is not None:
        return override
    found: Any = np.ones(())
    for n, k, s, p, m in zip(size, kernel, stride, padding, out, strict=True):
        start = np.arange(m) * s - p
        end = np.minimum(start + k, n + p)
        if not include_pad:
            start, end = np.maximum(start, 0), np.minimum(end, n)
        found = found[..., None] * (end - start)
    return float(found.flat[0]) if (found == found.flat[0]).all() else found


def avg_pool_of(x: Any, kernel: Sizes, stride: Sizes, padding: Sizes, out: Sizes, include: bool, override: Any) -> Any:
    size, ones = x.shape[-len(out) :], (1,) * len(out)
    whole = padded(x, borders(size, kernel, stride, padding, ones, out))
    total: Any = 0
    for index in slices(kernel, stride, ones, out):
        total = total + whole[index]
    by = divisors(size, kernel, stride, padding, out, include, override)
    return total / (by if isinstance(by, (int, float)) else by.astype(x.dtype))


def avg_pool_backward(cotangent: Any, result: Any, x: Any, *rest: Any) -> Any:
    kernel, stride, padding, out, include, override = rest
    size, ones = x.shape[-len(out) :], (1,) * len(out)
    by = divisors(size, kernel, stride, padding, out, include, override)
    part = cotangent / (by if isinstance(by, (int, float)) else by.astype(x.dtype))
    around = borders(size, kernel, stride, padding, ones, out)
    shape = tuple(n + a + b for n, (a, b) in zip(size, around, strict=True))
    found = np.zeros_like(cotangent, shape=(*x.shape[: -len(out)], *shape))
    for index in slices(kernel, stride, ones, out):
        place = found[index]
        np.add(place, part, out=place)
    return found[inner(around, found)]


AVG_POOL = {
    3: Op("avg_pool3d", "AvgPool3DBackward0", avg_pool_of, pullback=avg_pool_backward),
    2: Op("avg_pool2d", "AvgPool2DBackward0", avg_pool_of, pullback=avg_pool_backward),
    1: Op("avg_pool1d", "SqueezeBackward1", avg_pool_of, pullback=avg_pool_backward),
}


def avg_pool(
    input: Tensor, kernel: Any, stride: Any, padding: Any, ceil: bool, include: bool, override: int | None, rank: int
) -> Tensor:
    x = input._data
    check_rank(x, rank, f"avg_pool{rank}d")
    kernel = sizes_of(kernel, rank, "kernel_size")
    stride = kernel if stride is None or stride in ([], ()) else sizes_of(stride, rank, "stride")
    padding = sizes_of(padding, rank, "padding")
    if any(p > k / 2 for p, k in zip(padding, kernel, strict=True)):
        raise TensorError(
            f"pad should be at most half of effective kernel size, but got pad={padding}, kernel_size={kernel}"
        )
    if override == 0:
        raise TensorError("divisor must be not zero")
    out = pooled_size(x.shape[-rank:], kernel, stride, padding, (1,) * rank, ceil)
    return apply(AVG_POOL[rank], (input,), (kernel, stride, padding, out, include, override))  # type: ignore[no-any-return]


def avg_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window of (N, C, L) or (C, L)."""
    return avg_pool(input, kernel_size, stride, padding, ceil_mode, count_include_pad, None, 1)


def avg_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window of (N, C, H, W) or (C, H, W)."""
    return avg_pool(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, 2)


def avg_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window of (N, C, D, H, W) or (C, D, H, W)."""
    return avg_pool(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, 3)


# --- of powers ----------------------------------------------------------------------------------------
def lp_pool(input: Tensor, norm_type: float, kernel: Any, stride: Any, ceil: bool, rank: int) -> Tensor:
    """sum(x^p)^(1/p) of each window; no gradient where the sum is not positive."""
    kernel = sizes_of(kernel, rank, "kernel_size")
    means = avg_pool(input**norm_type, kernel, stride, 0, ceil, True, None, rank)
    return ((means.sign() * means.abs().relu()) * math.prod(kernel)) ** (1.0 / norm_type)  # type: ignore[no-any-return]


def lp_pool1d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """The sum of each window's powers, and of that the root."""
    return lp_pool(input, norm_type, kernel_size, stride, ceil_mode, 1)


def lp_pool2d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """The sum of each window's powers, and of that the root."""
    return lp_pool(input, norm_type, kernel_size, stride, ceil_mode, 2)


def lp_pool3d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """The sum of each window's powers, and of that the root."""
    return lp_pool(input, norm_type, kernel_size, stride, ceil_mode, 3)


# --- of a given number of windows ---------------------------------------------------------------------
def spans(given: int, wanted: int) -> list[tuple[int, int]]:
    """The windows that cut a dimension into a number of parts, which overlap where it does not divide."""
    return [(k * given // wanted, -(-(k + 1) * given // wanted)) for k in range(wanted)]


def mean_matrix(given: int, wanted: int, dtype: Any) -> Any:
    """The matrix that takes the mean of each span."""
    found = np.zeros((wanted, given), dtype)
    for k, (start, end) in enumerate(spans(given, wanted)):
        found[k, start:end] = 1 / (end - start)
    return found


def adaptive_avg_of(x: Any, out: Sizes) -> Any:
    """The mean over spans of each dimension in turn, by matrix products."""
    first = x.ndim - len(out)
    for k, wanted in enumerate(out):
        means = mean_matrix(x.shape[first + k], wanted, x.dtype)
        x = np.moveaxis(np.moveaxis(x, first + k, -1) @ means.T, -1, first + k)
    return x.copy()


def adaptive_parts(x: Any, out: Sizes) -> list[Any]:
    """The windows, per window its elements one after the other."""
    lead, size = x.shape[: x.ndim - len(out)], x.shape[x.ndim - len(out) :]
    return [
        x[(..., *(slice(start, end) for start, end in window))].reshape(*lead, -1)
        for window in product(*(spans(given, wanted) for given, wanted in zip(size, out, strict=True)))
    ]


def adaptive_max_of(x: Any, out: Sizes) -> Any:
    """The first maximum of each window."""
    found = []
    for window in adaptive_parts(x, out):
        found.append(np.take_along_axis(window, np.argmax(window, -1)[..., None], -1))
    return np.concatenate(found, -1).reshape(*x.shape[: x.ndim - len(out)], *out)


ADAPTIVE_AVG = {
    3: Op("adaptive_avg_pool3d", "AdaptiveAvgPool3DBackward0", adaptive_avg_of),
    2: Op("adaptive_avg_pool2d", "AdaptiveAvgPool2DBackward0", adaptive_avg_of),
    1: Op("adaptive_avg_pool1d", "SqueezeBackward1", adaptive_avg_of),
}
GLOBAL_AVG = {rank: Op(f"adaptive_avg_pool{rank}d", "MeanBackward1", adaptive_avg_of) for rank in (2, 3)}
ADAPTIVE_MAX = {
    3: Op("adaptive_max_pool3d", "AdaptiveMaxPool3DBackward0", adaptive_max_of),
    2: Op("adaptive_max_pool2d", "AdaptiveMaxPool2DBackward0", adaptive_max_of),
    1: Op("adaptive_max_pool1d", "SqueezeBackward1", adaptive_max_of),
}


def wanted_size(x: Any, size: Any, rank: int, name: str) -> Sizes:
    """The size asked for; None keeps a dimension."""
    check_rank(x, rank, name)
    each = tuple(size) if isinstance(size, (tuple, list)) else (size,) * rank
    if len(each) != rank:
        raise TensorError(f"{name}: output_size must be {rank}")
    return tuple(n if m is None else int(m) for m, n in zip(each, x.shape[-rank:], strict=True))


def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """The means of so many windows of (N, C, L) or (C, L)."""
    return adaptive_avg_pool(input, output_size, 1)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """The means of so many windows of (N, C, H, W) or (C, H, W); a size of None keeps its dimension."""
    return adaptive_avg_pool(input, output_size, 2)


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """The means of so many windows of (N, C, D, H, W) or (C, D, H, W); a size of None keeps its dimension."""
    return adaptive_avg_pool(input, output_size, 3)


def adaptive_avg_pool(input: Tensor, output_size: Any, rank: int) -> Tensor:
    out = wanted_size(input._data, output_size, rank, f"adaptive_avg_pool{rank}d")
    op = GLOBAL_AVG[rank] if rank > 1 and set(out) == {1} else ADAPTIVE_AVG[rank]
    return apply(op, (input,), (out,))  # type: ignore[no-any-return]


def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maxima of so many windows of (N, C, L) or (C, L)."""
    return adaptive_max_pool(input, output_size, return_indices, 1)


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maxima of so many windows of (N, C, H, W) or (C, H, W)."""
    return adaptive_max_pool(input, output_size, return_indices, 2)


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maxima of so many windows of (N, C, D, H, W) or (C, D, H, W)."""
    return adaptive_max_pool(input, output_size, return_indices, 3)


def adaptive_max_pool(input: Tensor, size: Any, indices: bool, rank: int) -> Any:
    x = input._data
    out = wanted_size(x, size, rank, f"adaptive_max_pool{rank}d")
    found = apply(ADAPTIVE_MAX[rank], (input,), (out,))
    if not indices:
        return found
    image = x.shape[-rank:]
    flat = np.broadcast_to(np.arange(math.prod(image)).reshape(image), x.shape)
    where = [
        np.take_along_axis(places, window.argmax(-1)[..., None], -1)
        for window, places in zip(adaptive_parts(x, out), adaptive_parts(flat, out), strict=True)
    ]
    return found, wrapped(np.concatenate(where, -1).reshape(*x.shape[:-rank], *out))
