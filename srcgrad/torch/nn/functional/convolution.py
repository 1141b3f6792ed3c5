"""Convolutions of one, two and three dimensions, their transposes, and the columns they are products of."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from srcgrad.torch.dispatch import apply, named
from srcgrad.torch.errors import TensorError
from srcgrad.torch.nn.functional.padding import pad
from srcgrad.torch.nn.functional.windows import Layout, Sizes, columns, gathered, sizes_of
from srcgrad.torch.operation import Op, analytic
from srcgrad.torch.tensor import Tensor

__all__ = [
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "fold", "unfold",
]  # fmt: skip


def window_counts(size: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Sizes:
    """How many windows there are in each dimension."""
    return tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True)
    )


def product(weight: Any, met: Any, groups: int) -> Any:
    """(O, C/groups K) times the columns (C K, length), group by group: (O, length)."""
    if groups == 1:
        return weight.reshape(weight.shape[0], -1) @ met
    parts = weight.reshape(groups, weight.shape[0] // groups, -1)
    return np.matmul(parts, met.reshape(groups, -1, met.shape[-1])).reshape(weight.shape[0], -1)


def product_with_transpose(weight: Any, rows: Any, groups: int) -> Any:
    """The columns that rows (O, length) come back to: (C K, length)."""
    if groups == 1:
        return weight.reshape(weight.shape[0], -1).T @ rows
    parts = weight.reshape(groups, weight.shape[0] // groups, -1)
    found = np.matmul(parts.swapaxes(1, 2), rows.reshape(groups, -1, rows.shape[-1]))
    return found.reshape(-1, rows.shape[-1])


def outer_product(rows: Any, met: Any, shape: Sizes, groups: int) -> Any:
    """The cotangent of the weight: rows (O, length) with columns (C K, length), summed over the length."""
    if groups == 1:
        return (rows @ met.T).reshape(shape)
    parts = met.reshape(groups, -1, met.shape[-1])
    return np.matmul(rows.reshape(groups, -1, rows.shape[-1]), parts.swapaxes(1, 2)).reshape(shape)


def rows_of(x: Any, layout: Layout) -> Any:
    """(N, C, ...) as (C, windows and batch)."""
    return layout.turned(x).reshape(x.shape[1], -1)


def image_of(rows: Any, out: Sizes, batch: int, layout: Layout) -> Any:
    """The inverse of `rows_of`."""
    return layout.back(rows.reshape(layout.shape((rows.shape[0],), out, batch)))


def convolved(x: Any, weight: Any, *rest: Any) -> Any:
    """The cross-correlation of (N, C, ...) with (O, C/groups, ...kernel), plus a bias."""
    *bias, stride, padding, dilation, groups = rest
    kernel = weight.shape[2:]
    out = window_counts(x.shape[2:], kernel, stride, padding, dilation)
    layout = Layout.best(x.shape[1], weight.shape[0], kernel)
    found = product(weight, columns(x, padding, (kernel, stride, dilation, out), layout), groups)
    if bias:
        found = found + bias[0][:, None]
    return image_of(found, out, x.shape[0], layout).copy()


def convolved_backward(cotangent: Any, result: Any, x: Any, weight: Any, *rest: Any) -> Any:
    *bias, stride, padding, dilation, groups = rest
    windows = (weight.shape[2:], stride, dilation, cotangent.shape[2:])
    layout = Layout.best(x.shape[1], weight.shape[0], weight.shape[2:])
    rows = rows_of(cotangent, layout)
    by_x = gathered(product_with_transpose(weight, rows, groups), x.shape, padding, windows, layout)
    by_weight = outer_product(rows, columns(x, padding, windows, layout), weight.shape, groups)
    return (by_x, by_weight, rows.sum(1)) if bias else (by_x, by_weight)


def transposed(x: Any, weight: Any, *rest: Any) -> Any:
    """The transpose of `convolved` in its image: (N, C, ...) with (C, O/groups, ...kernel) to (N, O, ...)."""
    *bias, stride, padding, extra, dilation, groups = rest
    out, kernel, outputs = x.shape[2:], weight.shape[2:], weight.shape[1] * groups
    size = tuple(
        (n - 1) * s + d * (k - 1) + 1 + e - 2 * p
        for n, k, d, s, e, p in zip(out, kernel, dilation, stride, extra, padding, strict=True)
    )
    layout = Layout.best(outputs, x.shape[1], kernel)
    met = product_with_transpose(weight, rows_of(x, layout), groups)
    found = gathered(met, (x.shape[0], outputs, *size), padding, (kernel, stride, dilation, out), layout)
    if bias:
        found = found + bias[0].reshape((-1,) + (1,) * len(out))
    return found.copy()


def transposed_backward(cotangent: Any, result: Any, x: Any, weight: Any, *rest: Any) -> Any:
    *bias, stride, padding, _, dilation, groups = rest
    out, kernel = x.shape[2:], weight.shape[2:]
    layout = Layout.best(cotangent.shape[1], x.shape[1], kernel)
    met = columns(cotangent, padding, (kernel, stride, dilation, out), layout)
    by_x = image_of(product(weight, met, groups), out, x.shape[0], layout)
    found = (by_x, outer_product(rows_of(x, layout), met, weight.shape, groups))
    return (*found, cotangent.sum((0, *range(2, cotangent.ndim)))) if bias else found


def without_batch(function: Any) -> Any:
    """The function of one image."""
    return lambda x, *rest: function(x[None], *rest)[0]


def without_batch_backward(function: Any) -> Any:
    def pull(cotangent: Any, result: Any, x: Any, *rest: Any) -> Any:
        found = function(cotangent[None], None, x[None], *rest)
        return (found[0][0], *found[1:]) if isinstance(found, tuple) else found[0]

    return pull


CONVOLUTION = Op("convolution", "ConvolutionBackward0", convolved, pullback=analytic(convolved_backward))
TRANSPOSED = Op("conv_transpose", "ConvolutionBackward0", transposed, pullback=analytic(transposed_backward))
SQUEEZED = Op(
    "convolution",
    "SqueezeBackward1",
    without_batch(convolved),
    pullback=analytic(without_batch_backward(convolved_backward)),
)
SQUEEZED_TRANSPOSED = Op(
    "conv_transpose",
    "SqueezeBackward1",
    without_batch(transposed),
    pullback=analytic(without_batch_backward(transposed_backward)),
)


def check(
    input: Tensor, weight: Tensor, bias: Tensor | None, rank: int, channels: int, outputs: int, name: str
) -> bool:
    """Whether there is a batch dimension.

    Raises:
        TensorError: ranks, channels or dtypes do not fit.
    """
    x, w = input._data, weight._data
    if w.ndim != rank + 2:
        raise TensorError(f"{name}: weight must have {rank + 2} dimensions, not {w.ndim}: {list(w.shape)}")
    if x.ndim not in (rank + 1, rank + 2):
        raise TensorError(
            f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to {name}, but got input of size: "
            f"{list(x.shape)}"
        )
    if x.dtype != w.dtype:
        raise TensorError(
            f"Input type ({named(x.dtype).lower()}) and weight type ({named(w.dtype).lower()}) should be the same"
        )
    batched = x.ndim == rank + 2
    given = x.shape[1 if batched else 0]
    if given != channels:
        raise TensorError(
            f"Given groups={channels // max(w.shape[1], 1)}, weight of size {list(w.shape)}, expected "
            f"input{list(x.shape)} to have {channels} channels, but got {given} channels instead"
        )
    if bias is not None and bias._data.shape != (outputs,):
        raise TensorError(
            f"Given weight of size {list(w.shape)}, expected bias to be 1-dimensional with {outputs} elements, but got "
            f"bias of size {list(bias._data.shape)} instead"
        )
    return bool(batched)


def same_padding(kernel: Sizes, stride: Sizes, dilation: Sizes) -> tuple[Sizes, list[int] | None]:
    """What ``padding="same"`` adds on both sides, and what it adds to the ends, as `pad` takes it.

    Raises:
        TensorError: a stride that is not 1.
    """
    if any(s != 1 for s in stride):
        raise TensorError("padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
    uneven = [n % 2 for n in total]
    more = [n for k in reversed(range(len(total))) for n in (0, uneven[k])]
    return tuple(n // 2 for n in total), more if any(uneven) else None


def convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, groups: int, rank: int
) -> Tensor:
    """`convolved`, with its arguments read and checked."""
    name = f"conv{rank}d"
    if groups < 1:
        raise TensorError("non-positive groups is not supported")
    w = weight._data
    batched = check(input, weight, bias, rank, w.shape[1] * groups, w.shape[0], name)
    if w.shape[0] % groups:
        raise TensorError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of "
            "size "
            f"{list(w.shape)} instead"
        )
    stride, dilation = sizes_of(stride, rank, "stride"), sizes_of(dilation, rank, "dilation")
    if any(s < 1 for s in stride):
        raise TensorError("non-positive stride is not supported")
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise TensorError(f"Invalid padding string: '{padding}'", hint="'same' or 'valid'")
        same = padding == "same"
        padding, ends = same_padding(w.shape[2:], stride, dilation) if same else ((0,) * rank, None)
        if ends is not None:
            input = pad(input, ends)
    else:
        padding = sizes_of(padding, rank, "padding")
    if any(p < 0 for p in padding):
        raise TensorError("negative padding is not supported")
    reach = [d * (k - 1) + 1 for k, d in zip(w.shape[2:], dilation, strict=True)]
    room = [n + 2 * p for n, p in zip(input._data.shape[-rank:], padding, strict=True)]
    if any(n < k for n, k in zip(room, reach, strict=True)):
        raise TensorError(
            f"Calculated padded input size per channel: ({' x '.join(map(str, room))}). Kernel size: "
            f"({' x '.join(map(str, w.shape[2:]))}). Kernel size can't be greater than actual input size"
        )
    operands = [input, weight] if bias is None else [input, weight, bias]
    statics = (stride, padding, dilation, groups)
    return apply(CONVOLUTION if batched else SQUEEZED, operands, statics)  # type: ignore[no-any-return]


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The cross-correlation of (N, C, L) with (O, C/groups, K); ``padding`` may be "same" or "valid"."""
    return convolution(input, weight, bias, stride, padding, dilation, groups, 1)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The cross-correlation of (N, C, H, W) with (O, C/groups, kH, kW); ``padding`` may be "same" or "valid"."""
    return convolution(input, weight, bias, stride, padding, dilation, groups, 2)


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The cross-correlation of (N, C, D, H, W) with (O, C/groups, kD, kH, kW)."""
    return convolution(input, weight, bias, stride, padding, dilation, groups, 3)


def transposed_convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    dilation: Any,
    rank: int,
) -> Tensor:
    """`transposed`, with its arguments read and checked."""
    w = weight._data
    batched = check(input, weight, bias, rank, w.shape[0], w.shape[1] * groups, f"conv_transpose{rank}d")
    stride, padding = sizes_of(stride, rank, "stride"), sizes_of(padding, rank, "padding")
    extra, dilation = sizes_of(output_padding, rank, "output_padding"), sizes_of(dilation, rank, "dilation")
    if any(e >= max(s, d) for e, s, d in zip(extra, stride, dilation, strict=True)):
        raise TensorError(
            f"output padding must be smaller than either stride or dilation, but got output_padding: {extra}, stride: "
            f"{stride}, dilation: {dilation}"
        )
    operands = [input, weight] if bias is None else [input, weight, bias]
    statics = (stride, padding, extra, dilation, groups)
    return apply(TRANSPOSED if batched else SQUEEZED_TRANSPOSED, operands, statics)  # type: ignore[no-any-return]


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """The transpose of `conv1d` in its input: ``weight`` is (C, O/groups, K)."""
    return transposed_convolution(input, weight, bias, stride, padding, output_padding, groups, dilation, 1)


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """The transpose of `conv2d` in its input: ``weight`` is (C, O/groups, kH, kW)."""
    return transposed_convolution(input, weight, bias, stride, padding, output_padding, groups, dilation, 2)


def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """The transpose of `conv3d` in its input."""
    return transposed_convolution(input, weight, bias, stride, padding, output_padding, groups, dilation, 3)


# --- columns ------------------------------------------------------------------------------------------
BATCH_LAST = Layout(True)


def unfolded(x: Any, kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> Any:
    out = window_counts(x.shape[-2:], kernel, stride, padding, dilation)
    met = columns(x, padding, (kernel, stride, dilation, out), BATCH_LAST)
    return np.moveaxis(met.reshape(met.shape[0], math.prod(out), x.shape[0]), -1, 0).copy()


def folded(x: Any, size: Sizes, kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> Any:
    out = window_counts(size, kernel, stride, padding, dilation)
    shape = (x.shape[0], x.shape[1] // math.prod(kernel), *size)
    met = np.moveaxis(x, 0, -1).reshape(x.shape[1], -1)
    return gathered(met, shape, padding, (kernel, stride, dilation, out), BATCH_LAST).copy()


def unfold_backward(cotangent: Any, result: Any, x: Any, *windows: Any) -> Any:
    return folded(cotangent, x.shape[-2:], *windows)


def fold_backward(cotangent: Any, result: Any, x: Any, size: Sizes, *windows: Any) -> Any:
    return unfolded(cotangent, *windows)


UNFOLD = Op("im2col", "Im2ColBackward0", unfolded, pullback=unfold_backward)
FOLD = Op("col2im", "Col2ImBackward0", folded, pullback=fold_backward)
UNFOLD_ONE = Op("im2col", "Im2ColBackward0", without_batch(unfolded), pullback=without_batch_backward(unfold_backward))
FOLD_ONE = Op("col2im", "Col2ImBackward0", without_batch(folded), pullback=without_batch_backward(fold_backward))


def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """The windows of (N, C, H, W) as columns: (N, C kH kW, number of windows)."""
    shape = input._data.shape
    if len(shape) not in (3, 4):
        raise TensorError(
            f"Expected 3D or 4D (batch mode) tensor with possibly 0 batch size for input, but got: {shape}"
        )
    given = [
        sizes_of(value, 2, name)
        for value, name in (
            (kernel_size, "kernel_size"),
            (dilation, "dilation"),
            (padding, "padding"),
            (stride, "stride"),
        )
    ]
    out = window_counts(shape[-2:], given[0], given[3], given[2], given[1])
    if any(n < 1 for n in out):
        raise TensorError(
            f"Given input with spatial size {shape[-2:]}, kernel_size={given[0]}, dilation={given[1]}, "
            f"padding={given[2]}, "
            f"calculated shape of the array of sliding blocks as {out}, but its components must be at least one."
        )
    return apply(UNFOLD if len(shape) == 4 else UNFOLD_ONE, (input,), tuple(given))  # type: ignore[no-any-return]


def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """The transpose of `unfold`: columns added up to an image of a size.

    Raises:
        TensorError: the sizes do not fit.
    """
    shape = input._data.shape
    size, kernel = sizes_of(output_size, 2, "output_size"), sizes_of(kernel_size, 2, "kernel_size")
    spread, border = sizes_of(dilation, 2, "dilation"), sizes_of(padding, 2, "padding")
    step = sizes_of(stride, 2, "stride")
    if len(shape) not in (2, 3) or shape[-2] % math.prod(kernel):
        raise TensorError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={shape[-2] if len(shape) > 1 else None} and kernel_size={kernel}."
        )
    out = window_counts(size, kernel, step, border, spread)
    if shape[-1] != math.prod(out):
        raise TensorError(
            f"Given output_size={size}, kernel_size={kernel}, dilation={spread}, padding={border}, stride={step}, "
            f"expected size of input's dimension 2 to match the calculated number of sliding blocks {out[0]} * "
            f"{out[1]} = "
            f"{math.prod(out)}, but got input.size(2)={shape[-1]}."
        )
    return apply(FOLD if len(shape) == 3 else FOLD_ONE, (input,), (size, kernel, spread, border, step))  # type: ignore[no-any-return]
