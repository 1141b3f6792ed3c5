"""Rules of ``scipy.fft``, found by the function that is called. Importing this module imports SciPy.

Arguments that say how the work is done, ``overwrite_x``, ``workers`` and ``plan``, change nothing here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.fft

from srcgrad.errors import ShapeError
from srcgrad.tracing.functions import fourier
from srcgrad.tracing.functions.fourier import SWAPPED, norm_of, resized, size_of, sizes_and_axes, spectral_dtype
from srcgrad.tracing.functions.registry import as_array, axis_of, cast, function_rule
from srcgrad.tracing.tracer import FUNCTIONS, emit

INVERSE_TYPE = {1: 1, 2: 3, 3: 2, 4: 4}
for _function in (
    *(scipy.fft.fftfreq, scipy.fft.rfftfreq, scipy.fft.next_fast_len, scipy.fft.prev_fast_len, scipy.fft.fhtoffset),
):  # of numbers that are known
    FUNCTIONS[_function] = _function


def widened(x: Any) -> Any:
    """SciPy computes with half precision in single precision, and returns that."""
    array = as_array(x)
    return cast(array, np.float32) if array.dtype == np.float16 else array


# --- Fourier transforms -----------------------------------------------------------------------------------------------


def one_axis(name: str) -> None:
    rule: Callable[..., Any] = getattr(fourier, name)

    @function_rule(getattr(scipy.fft, name))
    def transform(
        x: Any,
        n: Any = None,
        axis: int = -1,
        norm: Any = None,
        overwrite_x: bool = False,
        workers: Any = None,
        *,
        plan: Any = None,
    ) -> Any:
        return rule(widened(x), n, axis, norm)


def many_axes(name: str) -> None:
    """A transform along several axes, and the one along two: all axes, or the last two, if none are named."""
    rule: Callable[..., Any] = getattr(fourier, f"{name}n", None) or HERMITIAN[name]

    @function_rule(getattr(scipy.fft, f"{name}n"))
    def transform(
        x: Any,
        s: Any = None,
        axes: Any = None,
        norm: Any = None,
        overwrite_x: bool = False,
        workers: Any = None,
        *,
        plan: Any = None,
    ) -> Any:
        return rule(widened(x), s, axes, norm)

    @function_rule(getattr(scipy.fft, f"{name}2"))
    def transform2(
        x: Any,
        s: Any = None,
        axes: Any = (-2, -1),
        norm: Any = None,
        overwrite_x: bool = False,
        workers: Any = None,
        *,
        plan: Any = None,
    ) -> Any:
        return rule(widened(x), s, axes, norm)


def hfftn(x: Any, s: Any, axes: Any, norm: Any) -> Any:
    """The complex transform along all axes but the last one, along which the spectrum is real."""
    sizes, places = sizes_and_axes(x, s, axes, halved=True)
    fourier.require_axes(places)
    rest = fourier.complex_transform("fft", x, sizes[:-1], places[:-1], norm)
    return fourier.hfft(rest, sizes[-1], places[-1], norm)


def ihfftn(x: Any, s: Any, axes: Any, norm: Any) -> Any:
    sizes, places = sizes_and_axes(x, s, axes)
    fourier.require_axes(places)
    half = fourier.ihfft(x, sizes[-1], places[-1], norm)
    return fourier.complex_transform("ifft", half, sizes[:-1], places[:-1], norm)


HERMITIAN: dict[str, Callable[..., Any]] = {"hfft": hfftn, "ihfft": ihfftn}

for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    one_axis(_name)
    many_axes(_name)

function_rule(scipy.fft.fftshift)(fourier.fftshift)
function_rule(scipy.fft.ifftshift)(fourier.ifftshift)


# --- cosine and sine transforms ---------------------------------------------------------------------------------------


def trigonometric(op: str, x: Any, kind: Any, n: Any, axis: int, norm: Any, orthogonalize: Any) -> Any:
    """One transform along one axis; of complex numbers, that of their parts."""
    array = widened(x)
    if not array.ndim:
        raise ShapeError(f"scipy.fft.{op} takes at least one dimension")
    if kind not in INVERSE_TYPE:
        raise ShapeError(f"the transform type must be 1, 2, 3 or 4, not {kind!r}")
    if array.dtype.kind == "c":
        parts = (trigonometric(op, part, kind, n, axis, norm, orthogonalize) for part in (array.real, array.imag))
        return emit("complex", *parts)
    axis = axis_of(axis, array.ndim)
    real = np.empty(0, spectral_dtype(array.dtype)).real.dtype
    padded = resized(cast(array, real), size_of(n, array.shape[axis]), axis)
    orthogonal = norm == "ortho" if orthogonalize is None else bool(orthogonalize)
    return emit(op, padded, type=int(kind), axis=axis, norm=norm_of(norm), orthogonalize=orthogonal)


def along_axes(op: str, x: Any, kind: Any, s: Any, axes: Any, norm: Any, orthogonalize: Any) -> Any:
    result = as_array(x)
    if isinstance(axes, (int, np.integer)):
        axes = (axes,)
    if isinstance(s, (int, np.integer)):
        s = (s,)
    sizes, places = sizes_and_axes(result, s, axes)
    for n, axis in zip(sizes, places, strict=True):
        result = trigonometric(op, result, kind, n, axis, norm, orthogonalize)
    return result


def both_directions(op: str) -> None:
    """The transform and its inverse, which is the transform of the inverse type; along one axis and along several."""

    def directed(inverse: bool, kind: Any, norm: Any) -> Sequence[Any]:
        return (INVERSE_TYPE.get(kind, kind), SWAPPED[norm_of(norm)]) if inverse else (kind, norm_of(norm))

    for inverse in (False, True):
        name = f"i{op}" if inverse else op

        @function_rule(getattr(scipy.fft, name))
        def transform(
            x: Any,
            type: Any = 2,
            n: Any = None,
            axis: int = -1,
            norm: Any = None,
            overwrite_x: bool = False,
            workers: Any = None,
            orthogonalize: Any = None,
            inverse: bool = inverse,
        ) -> Any:
            kind, factor = directed(inverse, type, norm)
            return trigonometric(op, x, kind, n, axis, factor, orthogonalize)

        @function_rule(getattr(scipy.fft, f"{name}n"))
        def transform_axes(
            x: Any,
            type: Any = 2,
            s: Any = None,
            axes: Any = None,
            norm: Any = None,
            overwrite_x: bool = False,
            workers: Any = None,
            *,
            orthogonalize: Any = None,
            inverse: bool = inverse,
        ) -> Any:
            kind, factor = directed(inverse, type, norm)
            return along_axes(op, x, kind, s, axes, factor, orthogonalize)


both_directions("dct")
both_directions("dst")
