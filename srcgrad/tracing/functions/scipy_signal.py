"""Rules of convolution and correlation of ``scipy.signal``, found by the function that is called.

Importing this module imports SciPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import scipy.fft
import scipy.signal

from srcgrad.errors import ShapeError
from srcgrad.tracing.functions import fourier
from srcgrad.tracing.functions.padding import pad
from srcgrad.tracing.functions.products import conjugated, promoted
from srcgrad.tracing.functions.registry import as_array, cast, function_rule, ordered_axes
from srcgrad.tracing.functions.scipy_fourier import widened
from srcgrad.tracing.functions.shapes import flip
from srcgrad.tracing.tracer import emit

Shape = tuple[int, ...]
MODES = ("full", "valid", "same")


def operands(in1: Any, in2: Any, mode: Any, axes: Sequence[int] | None = None) -> tuple[Any, Any]:
    """The arrays of one rank; for mode "valid" the longer one first."""
    x, y = as_array(in1), as_array(in2)
    if x.ndim != y.ndim:
        raise ShapeError("in1 and in2 should have the same dimensionality")
    if mode not in MODES:
        raise ShapeError("Acceptable mode flags are 'valid', 'same', or 'full'.")
    if mode != "valid":
        return x, y
    places = range(x.ndim) if axes is None else axes
    if all(x.shape[k] >= y.shape[k] for k in places):
        return x, y
    if not all(y.shape[k] >= x.shape[k] for k in places):
        raise ShapeError("For 'valid' mode, one must be at least as large as the other in every dimension")
    return y, x


def window(mode: str, left: Shape, right: Shape) -> tuple[Shape, Shape]:
    """Starts and sizes of what a mode keeps of the full convolution; "same" is centred on the left operand."""
    full = tuple(n + m - 1 for n, m in zip(left, right, strict=True))
    if mode == "full":
        return (0,) * len(full), full
    sizes = left if mode == "same" else tuple(n - m + 1 for n, m in zip(left, right, strict=True))
    return tuple((size - kept) // 2 for size, kept in zip(full, sizes, strict=True)), sizes


def reversed_conjugate(x: Any) -> Any:
    return conjugated(flip(x))


@function_rule(scipy.signal.convolve)
def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """Direct or through Fourier transforms, as SciPy chooses for floats of these shapes; integers directly."""
    x, y = operands(in1, in2, mode)
    if not x.ndim:
        return x[()] * y[()]
    if method not in ("auto", "direct", "fft"):
        raise ShapeError("Acceptable method flags are 'auto', 'direct', or 'fft'.")
    if method == "auto":
        method = "direct"
        if x.dtype.kind in "fc" and y.dtype.kind in "fc":
            first, second = (np.broadcast_to(np.zeros((), part.dtype), part.shape) for part in (x, y))
            choose: Any = scipy.signal.choose_conv_method
            method = choose(first, second, mode=mode)
    if method == "fft":
        dtype = np.result_type(x.dtype, y.dtype)
        found = fftconvolve(x, y, mode)
        return cast(np.rint(found) if dtype.kind in "iu" else found, dtype)
    return direct(x, y, mode)


def direct(x: Any, y: Any, mode: str) -> Any:
    starts, sizes = window(mode, x.shape, y.shape)
    return emit("convolve", *promoted(x, y), starts=starts, sizes=sizes)


@function_rule(scipy.signal.correlate)
def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """A convolution with the conjugate of the reversed second operand."""
    x, y = as_array(in1), as_array(in2)
    return convolve(x, reversed_conjugate(y) if y.ndim else conjugated(y), mode, method)


@function_rule(scipy.signal.fftconvolve, scipy.signal.oaconvolve)
def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """The inverse transform of the product of transforms, of sizes that are fast."""
    x, y = as_array(in1), as_array(in2)
    if not x.ndim and not y.ndim:
        return x[()] * y[()]
    places = list(range(x.ndim)) if axes is None else list(ordered_axes(axes, x.ndim))
    x, y = operands(x, y, mode, places)
    if not x.size or not y.size:
        return np.zeros(0)
    for k in range(x.ndim):
        if k not in places and x.shape[k] != y.shape[k] and 1 not in (x.shape[k], y.shape[k]):
            raise ShapeError(f"incompatible shapes for in1 and in2: {x.shape} and {y.shape}")
    starts, sizes = window(mode, tuple(x.shape[k] for k in places), tuple(y.shape[k] for k in places))
    mixed = [k for k in places if x.shape[k] != 1 and y.shape[k] != 1]
    product = transformed_product(widened(x), widened(y), mixed)
    index = [slice(None)] * x.ndim
    for k, start, size in zip(places, starts, sizes, strict=True):
        index[k] = slice(start, start + size)
    return product[tuple(index)].copy()


def transformed_product(x: Any, y: Any, axes: list[int]) -> Any:
    """The full convolution along axes, and the product along the others."""
    if not axes:
        return x * y
    is_complex = "c" in (x.dtype.kind, y.dtype.kind)
    shape = [x.shape[k] + y.shape[k] - 1 for k in axes]
    fast = [scipy.fft.next_fast_len(size, not is_complex) for size in shape]
    forward, back = (fourier.fftn, fourier.ifftn) if is_complex else (fourier.rfftn, fourier.irfftn)
    product: Any = back(forward(x, fast, axes) * forward(y, fast, axes), fast, axes)
    index = [slice(None)] * product.ndim
    for k, size in zip(axes, shape, strict=True):
        index[k] = slice(0, size)
    return product[tuple(index)]


BOUNDARIES = {"wrap": "wrap", "circular": "wrap", "symm": "symmetric", "symmetric": "symmetric"}


@function_rule(scipy.signal.convolve2d)
def convolve2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Any:
    return with_boundary(in1, in2, mode, boundary, fillvalue, 1)


@function_rule(scipy.signal.correlate2d)
def correlate2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Any:
    return with_boundary(in1, reversed_conjugate(as_array(in2)), mode, boundary, fillvalue, 0)


def with_boundary(in1: Any, in2: Any, mode: str, boundary: str, fillvalue: Any, less: int) -> Any:
    """The convolution of an image that goes on beyond its edges as ``boundary`` says.

    For even lengths m of the second operand there are two centres: mode "same" starts at (m - ``less``)//2.
    """
    x, y = operands(in1, in2, mode)
    if x.ndim != 2:
        raise ShapeError("the inputs must both be 2-D arrays")
    x, y = promoted(x, y)
    starts, sizes = window(mode, x.shape, y.shape)
    if mode == "same":
        starts = tuple((m - less) // 2 for m in y.shape)
    if boundary in ("fill", "pad") and np.ndim(fillvalue) == 0 and not np.any(fillvalue):
        return emit("convolve", x, y, starts=starts, sizes=sizes)
    if boundary not in ("fill", "pad", *BOUNDARIES):
        raise ShapeError("Acceptable boundary flags are 'fill', 'circular' (or 'wrap'), and 'symmetric' (or 'symm').")
    widths = [(m - 1, m - 1) for m in y.shape]
    if boundary in BOUNDARIES:
        wide = pad(x, widths, BOUNDARIES[boundary])
    else:
        wide = pad(x, widths, "constant", constant_values=fillvalue)
    begin = tuple(start + m - 1 for start, m in zip(starts, y.shape, strict=True))
    return emit("convolve", wide, y, starts=begin, sizes=sizes)


# --- rates -----------------------------------------------------------------------------------------------------------

EXTENSIONS: Final[dict[str, dict[str, Any]]] = {
    "wrap": {"mode": "wrap"}, "edge": {"mode": "edge"}, "symmetric": {"mode": "symmetric"},
    "reflect": {"mode": "reflect"}, "antireflect": {"mode": "reflect", "reflect_type": "odd"},
}  # fmt: skip
"""NumPy's way to go on beyond the ends of a signal for most of those of `scipy.signal.upfirdn`."""


def extended(x: Any, far: int, mode: str, cval: Any) -> Any:
    """A signal along its last axis, with so many elements more at each end."""
    widths = [(0, 0)] * (x.ndim - 1) + [(far, far)]
    if mode == "constant":
        return pad(x, widths, "constant", constant_values=cval)
    if mode in EXTENSIONS:
        return pad(x, widths, **EXTENSIONS[mode])
    size = x.shape[-1]
    place = np.arange(-far, size + far)
    if mode == "antisymmetric":
        return pad(x, widths, "symmetric") * np.where(place // size % 2, -1, 1).astype(x.dtype)
    if mode not in ("smooth", "line"):
        raise ShapeError(f"Unknown mode: {mode}")
    step = np.arange(1, far + 1).astype(x.dtype)
    first, last = x[..., :1], x[..., -1:]
    if mode == "smooth" and size > 1:
        slopes = x[..., 1:2] - first, last - x[..., -2:-1]
    else:
        slopes = ((last - first) / max(size - 1, 1),) * 2
    return np.concatenate([first - slopes[0] * step[::-1], x, last + slopes[1] * step], axis=-1)


@function_rule(scipy.signal.upfirdn)
def upfirdn(h: Any, x: Any, up: int = 1, down: int = 1, axis: int = -1, mode: str = "constant", cval: Any = 0) -> Any:
    """Every ``down``-th element of the convolution of the filter with the signal and up - 1 zeros after each one."""
    kernel, values = as_array(h), as_array(x)
    if kernel.ndim != 1 or not kernel.size:
        raise ShapeError("h must be 1-D with non-zero length")
    up, down = int(up), int(down)
    if up < 1 or down < 1:
        raise ShapeError("Both up and down must be >= 1")
    dtype = np.result_type(kernel.dtype, values.dtype, np.float32)
    kernel, values = cast(kernel, dtype), np.moveaxis(cast(values, dtype), axis, -1)
    size, length = values.shape[-1], kernel.shape[0]
    mode = mode.lower()
    is_bare = mode == "constant" and np.ndim(cval) == 0 and not np.any(cval)
    far = 0 if is_bare else -(-length // up) + 1
    wide = extended(values, far, mode, cval) if far else values
    if up > 1:
        zeros = np.zeros((*wide.shape, up - 1), dtype)
        wide = np.concatenate([wide[..., None], zeros], axis=-1).reshape((*wide.shape[:-1], -1))
    count = ((size - 1) * up + length - 1) // down + 1
    kernel = kernel.reshape((1,) * (wide.ndim - 1) + (-1,))
    starts = (0,) * (wide.ndim - 1) + (far * up,)
    sizes = (*wide.shape[:-1], (count - 1) * down + 1)
    found: Any = emit("convolve", *promoted(wide, kernel), starts=starts, sizes=sizes)
    return np.moveaxis(found[..., ::down], -1, axis)
