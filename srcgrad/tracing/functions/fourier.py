"""``np.fft``: transforms with sizes, axes and norms; shifts of the spectrum."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from srcgrad.errors import DTypeError, IndexingError, ShapeError
from srcgrad.ir.types import DType, complex_dtype
from srcgrad.tracing.functions.registry import (
    as_array,
    axis_of,
    cast,
    concrete_array,
    filled,
    finish,
    numpy_rule,
    ordered_axes,
    prefix,
)
from srcgrad.tracing.layout import strides_of
from srcgrad.tracing.tracer import Tracer, emit

SWAPPED = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def norm_of(norm: Any) -> str:
    """The name of a norm.

    Raises:
        ShapeError: NumPy has no such norm.
    """
    if norm is None:
        return "backward"
    if norm not in SWAPPED:
        raise ShapeError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
    return str(norm)


def size_of(n: Any, default: int) -> int:
    size = default if n is None else operator.index(n)
    if size < 1:
        raise ShapeError(f"Invalid number of FFT data points ({size}) specified.")
    return size


def resized(x: Any, size: int, axis: int) -> Any:
    """The first ``size`` elements along an axis, followed by zeros if there are fewer."""
    present = x.shape[axis]
    if size < present:
        return x[prefix(axis, slice(0, size))]
    if size == present:
        return x
    zeros = filled((*x.shape[:axis], size - present, *x.shape[axis + 1 :]), 0, x.dtype)
    return emit("concatenate", x, zeros, axis=axis)


def spectral_dtype(dtype: DType) -> DType:
    """The complex dtype of a transform: complex128 of integers, complex64 of half precision."""
    return np.dtype(np.complex128) if dtype.kind in "biu" else complex_dtype(dtype)


def laid_out(result: Tracer, x: Tracer) -> Tracer:
    """The transform is laid out in memory as its operand is."""
    if x.ndim > 1 and (x.chain or x.storage.strides):
        result.storage.strides = strides_of(np.empty_like(x.ghost(), result.dtype, shape=result.shape))
    return result


def require_dimension(x: Tracer) -> None:
    if not x.ndim:
        raise IndexingError("a Fourier transform takes at least one dimension")


# --- along one axis ---------------------------------------------------------------------------------------------------


def complex_transform(op: str, a: Any, sizes: Sequence[Any], axes: Sequence[int], norm: Any) -> Any:
    """The complex transform along ``axes``, the last one first; an axis that is named twice is transformed twice."""
    x = as_array(a)
    if not axes:
        return x
    require_dimension(x)
    places = [axis_of(axis, x.ndim) for axis in axes]
    if len(places) == 1 and x.dtype.kind != "c":
        return of_real_numbers(op, x, sizes[0], places[0], norm)
    result = cast(x, spectral_dtype(x.dtype))
    if len(set(places)) < len(places):
        for n, axis in zip(reversed(list(sizes)), reversed(places), strict=True):
            result = complex_transform(op, result, (n,), (axis,), norm)
        return result
    for n, axis in zip(sizes, places, strict=True):
        result = resized(result, size_of(n, x.shape[axis]), axis)
    return laid_out(emit(op, result, axes=tuple(places), norm=norm_of(norm)), x)


def real_transform(a: Any, n: Any, axis: Any, norm: Any) -> Any:
    """The half spectrum of real numbers."""
    x = as_array(a)
    require_dimension(x)
    if x.dtype.kind == "c":
        raise DTypeError("rfft takes real numbers", hint="use fft, or the real part x.real")
    axis = axis_of(axis, x.ndim)
    real = np.empty(0, spectral_dtype(x.dtype)).real.dtype
    padded = resized(cast(x, real), size_of(n, x.shape[axis]), axis)
    return laid_out(emit("rfft", padded, axis=axis, norm=norm_of(norm)), x)


def inverse_real_transform(a: Any, n: Any, axis: Any, norm: Any) -> Any:
    """The real numbers of a half spectrum."""
    x = as_array(a)
    require_dimension(x)
    axis = axis_of(axis, x.ndim)
    size = size_of(n, 2 * (x.shape[axis] - 1))
    half = resized(cast(x, spectral_dtype(x.dtype)), size // 2 + 1, axis)
    result = emit("irfft", half, axis=axis, n=size, norm=norm_of(norm))
    return laid_out(cast(result, np.float16) if x.dtype == np.float16 else result, x)


def of_real_numbers(op: str, x: Tracer, n: Any, axis: int, norm: Any) -> Any:
    """The transform of real numbers along one axis: its half spectrum, and the conjugates of it in reverse order.

    It takes a third of the time of the complex transform, and so does its derivative, which is another one.
    """
    size, inverse = size_of(n, x.shape[axis]), op == "ifft"
    half = real_transform(x, size, axis, SWAPPED[norm_of(norm)] if inverse else norm)
    rest = half[prefix(axis, slice(size - half.shape[axis], 0, -1))]
    first, rest = (conjugate(half), rest) if inverse else (half, conjugate(rest))
    return laid_out(emit("concatenate", first, rest, axis=axis), x) if rest.shape[axis] else first


def conjugate(x: Any) -> Any:
    x = as_array(x)
    return np.conjugate(x) if x.dtype.kind == "c" else x


@numpy_rule("fft.fft")
def fft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    return finish(complex_transform("fft", a, (n,), (axis,), norm), out)


@numpy_rule("fft.ifft")
def ifft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    return finish(complex_transform("ifft", a, (n,), (axis,), norm), out)


@numpy_rule("fft.rfft")
def rfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    return finish(real_transform(a, n, axis, norm), out)


@numpy_rule("fft.irfft")
def irfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    return finish(inverse_real_transform(a, n, axis, norm), out)


@numpy_rule("fft.hfft")
def hfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """The real spectrum of a signal of which one half is given: its ends are its own conjugates."""
    return irfft(conjugate(a), n, axis, SWAPPED[norm_of(norm)], out)


@numpy_rule("fft.ihfft")
def ihfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    return finish(conjugate(real_transform(a, n, axis, SWAPPED[norm_of(norm)])), out)


# --- along several axes -----------------------------------------------------------------------------------------------


def sizes_and_axes(a: Any, s: Any, axes: Any, halved: bool = False) -> tuple[list[Any], list[int]]:
    """The sizes and the axes, as many of the one as of the other; ``halved``: the last axis holds a half spectrum."""
    x = as_array(a)
    if axes is None:
        axes = range(-(x.ndim if s is None else len(s)), 0)
    places = [operator.index(axis) for axis in axes]
    sizes: list[Any] = [x.shape[axis_of(axis, x.ndim)] for axis in places] if s is None else list(s)
    if len(sizes) != len(places):
        raise ShapeError("Shape and axes have different lengths.")
    if halved and s is None and sizes:
        sizes[-1] = 2 * (sizes[-1] - 1)
    return [x.shape[axis] if size in (-1, None) else size for size, axis in zip(sizes, places, strict=True)], places


@numpy_rule("fft.fftn")
def fftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    return finish(complex_transform("fft", a, *sizes_and_axes(a, s, axes), norm), out)


@numpy_rule("fft.ifftn")
def ifftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    return finish(complex_transform("ifft", a, *sizes_and_axes(a, s, axes), norm), out)


@numpy_rule("fft.fft2")
def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    return fftn(a, s, axes, norm, out)


@numpy_rule("fft.ifft2")
def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    return ifftn(a, s, axes, norm, out)


@numpy_rule("fft.rfftn")
def rfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    """The half spectrum along the last axis, then the complex transform along the others."""
    sizes, places = sizes_and_axes(a, s, axes)
    require_axes(places)
    half = real_transform(a, sizes[-1], places[-1], norm)
    return finish(complex_transform("fft", half, sizes[:-1], places[:-1], norm), out)


@numpy_rule("fft.irfftn")
def irfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    sizes, places = sizes_and_axes(a, s, axes, halved=True)
    require_axes(places)
    rest = complex_transform("ifft", a, sizes[-2::-1], places[-2::-1], norm)
    return finish(inverse_real_transform(rest, sizes[-1], places[-1], norm), out)


def require_axes(axes: Sequence[int]) -> None:
    if not axes:
        raise ShapeError("at least 1 axis must be transformed")


@numpy_rule("fft.rfft2")
def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    return rfftn(a, s, axes, norm, out)


@numpy_rule("fft.irfft2")
def irfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    return irfftn(a, s, axes, norm, out)


# --- order of the spectrum --------------------------------------------------------------------------------------------


def rolled(x: Any, axes: Any, inverse: bool) -> Any:
    array = as_array(x)
    if axes is None:
        places: tuple[int, ...] = tuple(range(array.ndim))
    else:
        places = ordered_axes(tuple(np.atleast_1d(concrete_array(axes, "the axes of a shift")).tolist()), array.ndim)
    shifts = tuple(-(array.shape[axis] // 2) if inverse else array.shape[axis] // 2 for axis in places)
    return np.roll(array, shifts, places)


@numpy_rule("fft.fftshift")
def fftshift(x: Any, axes: Any = None) -> Any:
    return rolled(x, axes, False)


@numpy_rule("fft.ifftshift")
def ifftshift(x: Any, axes: Any = None) -> Any:
    return rolled(x, axes, True)
