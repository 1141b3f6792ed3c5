"""Rules of filters and spectra along an axis, of ``scipy.signal``, found by the function that is called.

Importing this module imports SciPy.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import scipy.signal

from srcgrad.errors import ShapeError, UnsupportedError
from srcgrad.tracing.functions.registry import (
    as_array,
    axis_of,
    cast,
    filled,
    function_rule,
    inexact_dtype,
    prefix,
    refuse,
    require,
)
from srcgrad.tracing.functions.scipy_ndimage import correlate_along
from srcgrad.tracing.functions.scipy_signal import direct
from srcgrad.tracing.functions.signal import sliding_window_view
from srcgrad.tracing.tracer import contains_tracer

# --- recursive filters -----------------------------------------------------------------------------------------------


def recursion(b: Any, a: Any, x: Any, state: Any) -> Any:
    """The transposed direct form II, of coefficients with ``a[0] == 1``, along the first axis; and the last state."""
    y = np.zeros_like(x)
    for k in range(len(x)):
        y[k] = b[0] * x[k] + state[0]
        state = np.concatenate([state[1:], np.zeros_like(state[:1])]) + b[1:] * x[k] - a[1:] * y[k]
    return y, state


@function_rule(scipy.signal.lfilter)
def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """By convolution where the output feeds nothing back, else step by step in a loop."""
    up, down, values = np.atleast_1d(as_array(b)), np.atleast_1d(as_array(a)), as_array(x)
    if up.ndim > 1 or down.ndim > 1:
        raise ShapeError("b and a must be 1-D")
    dtype = inexact_dtype(np.result_type(up.dtype, down.dtype, values.dtype))
    axis = axis_of(axis, values.ndim)
    up, down, values = cast(up / down[0], dtype), cast(down / down[0], dtype), cast(values, dtype)
    size = max(up.shape[0], down.shape[0])
    if size == 1:
        return up[0] * values if zi is None else (up[0] * values, as_array(zi))
    if zi is None and down.shape[0] == 1:
        kernel = up.reshape(tuple(-1 if k == axis else 1 for k in range(values.ndim)))
        return direct(values, kernel, "full")[prefix(axis, slice(0, values.shape[axis]))]
    moved = np.moveaxis(values, axis, 0)
    shape = (size - 1, *moved.shape[1:])
    given: Any = np.zeros(shape, dtype) if zi is None else np.moveaxis(cast(as_array(zi), dtype), axis, 0)
    column = (-1, *(1,) * (moved.ndim - 1))
    padded = [np.concatenate([c, np.zeros(size - c.shape[0], dtype)]).reshape(column) for c in (up, down)]
    from srcgrad.tracing.conversion.convert import convert  # which needs the rules

    y, last = convert(recursion)(*padded, moved, np.broadcast_to(given, shape))  # type: ignore[arg-type]
    y = np.moveaxis(y, 0, axis)
    return y if zi is None else (y, np.moveaxis(last, 0, axis))


@function_rule(scipy.signal.sosfilt)
def sosfilt(sos: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    sections, values = as_array(sos), as_array(x)
    if sections.ndim != 2 or sections.shape[1] != 6:
        raise ShapeError("sos array must be shape (n_sections, 6)")
    lasts = []
    for k in range(sections.shape[0]):
        found = lfilter(sections[k, :3], sections[k, 3:], values, axis, None if zi is None else as_array(zi)[k])
        values = found if zi is None else found[0]
        lasts.append(found)
    return values if zi is None else (values, np.stack([last[1] for last in lasts]))


def vector_coefficients(b: Any, a: Any) -> tuple[Any, Any]:
    """A filter's numerator and denominator."""
    up, down = np.atleast_1d(as_array(b)), np.atleast_1d(as_array(a))
    if up.ndim > 1:
        raise ShapeError("Numerator b must be 1-D.")
    if down.ndim > 1:
        raise ShapeError("Denominator a must be 1-D.")
    if not down.shape[0]:
        raise ShapeError("There must be at least one `a` coefficient.")
    return up, down


@function_rule(scipy.signal.lfilter_zi)
def lfilter_zi(b: Any, a: Any) -> Any:
    """The state of a filter whose input has always been 1: a linear system."""
    up, down = vector_coefficients(b, a)
    dtype = inexact_dtype(np.result_type(up.dtype, down.dtype))
    up, down = cast(up / down[0], dtype), cast(down / down[0], dtype)
    size = max(up.shape[0], down.shape[0])
    up, down = (np.concatenate([c, np.zeros(size - c.shape[0], c.dtype)]) for c in (up, down))
    feedback = np.eye(size - 1, k=1, dtype=dtype)
    feedback = feedback - np.concatenate([down[1:, None], np.zeros((size - 1, size - 2), dtype)], axis=1)
    return np.linalg.solve(np.eye(size - 1, dtype=dtype) - feedback, up[1:] - down[1:] * up[0])


@function_rule(scipy.signal.lfiltic)
def lfiltic(b: Any, a: Any, y: Any, x: Any = None) -> Any:
    """The state that outputs and inputs, the newest first, have left behind.

    SciPy's own divides by ``a[0]`` only where it is not 1, which as a path taken has no slope in it.
    """
    up, down = vector_coefficients(b, a)
    after, before = as_array(y), as_array(np.zeros(0, up.dtype) if x is None else x)
    dtype = inexact_dtype(np.result_type(up.dtype, down.dtype, after.dtype, before.dtype))
    size = max(up.shape[0], down.shape[0]) - 1
    require(down[0] != 0, "ValueError", "First `a` filter coefficient must be non-zero.")
    forth = left_behind(cast(up, dtype), cast(before, dtype), size)
    back = left_behind(cast(down, dtype), cast(after, dtype), size)
    return (forth - back) / cast(down[0], dtype)


def left_behind(coefficients: Any, past: Any, size: int) -> Any:
    """For each m < size, the sum of coefficients[m + 1 + k] past[k] over what there is of both."""
    places = np.arange(size)[:, None] + np.arange(size) + 1
    there = (places < coefficients.shape[0]) & (np.arange(size) < past.shape[0])
    padded = np.concatenate([coefficients, np.zeros(2 * size, coefficients.dtype)])[places]
    before = np.concatenate([past[:size], np.zeros(max(size - past.shape[0], 0), past.dtype)])
    return np.sum(np.where(there, padded * before, 0), axis=1)


@function_rule(scipy.signal.filtfilt)
def filtfilt(
    b: Any, a: Any, x: Any, axis: int = -1, padtype: Any = "odd", padlen: Any = None, method: str = "pad",
    irlen: Any = None,
) -> Any:  # fmt: skip
    """Forward, then backward, over a signal that goes on beyond its ends."""
    refuse("scipy.signal.filtfilt", method=(method, "pad"))
    values = as_array(x)
    axis = axis_of(axis, values.ndim)
    size = max(np.atleast_1d(as_array(b)).shape[0], np.atleast_1d(as_array(a)).shape[0])
    edge = 0 if padtype is None else 3 * size if padlen is None else int(padlen)
    if padtype not in ("odd", "even", "constant", None):
        raise ShapeError(f"Unknown value {padtype!r} given to padtype.")
    if values.shape[axis] <= edge:
        raise ShapeError(f"The length of the input vector x must be greater than padlen, which is {edge}.")
    if edge:
        widths = [(edge, edge) if k == axis else (0, 0) for k in range(values.ndim)]
        options: dict[str, Any] = {"mode": "edge"} if padtype == "constant" else {"mode": "reflect"}
        if padtype != "constant":
            options["reflect_type"] = padtype
        values = np.pad(values, widths, **options)
    if size > 1:
        zi = lfilter_zi(b, a).reshape(tuple(-1 if k == axis else 1 for k in range(values.ndim)))
    else:
        zi = np.zeros(tuple(0 if k == axis else 1 for k in range(values.ndim)))
    for _ in range(2):
        values = lfilter(b, a, values, axis, zi * values[prefix(axis, slice(0, 1))])[0]
        values = np.flip(values, axis)
    return values[prefix(axis, slice(edge, values.shape[axis] - edge))]


# --- polynomials -----------------------------------------------------------------------------------------------------


@function_rule(scipy.signal.detrend)
def detrend(data: Any, axis: int = -1, type: str = "linear", bp: Any = 0, overwrite_data: bool = False) -> Any:
    """Without the mean, or without the line of least squares of each piece."""
    x = as_array(data)
    x = cast(x, inexact_dtype(x.dtype))
    axis = axis_of(axis, x.ndim)
    if type in ("constant", "c"):
        return x - np.mean(x, axis=axis, keepdims=True)
    if type not in ("linear", "l"):
        raise ShapeError("Trend type must be 'linear' or 'constant'.")
    breaks = np.unique(np.concatenate([[0], np.atleast_1d(bp), [x.shape[axis]]])).astype(int)
    moved = np.moveaxis(x, axis, 0)
    pieces = [without_line(moved[begin:end]) for begin, end in itertools.pairwise(breaks)]
    return np.moveaxis(np.concatenate(pieces) if pieces else moved, 0, axis)


def without_line(x: Any) -> Any:
    """The residuals of a line of least squares along the first axis."""
    size = x.shape[0]
    line = np.stack([np.ones(size), np.arange(1.0, size + 1) / size], axis=1)
    coefficients = np.tensordot(cast(np.linalg.pinv(line), x.dtype), x, 1)
    return x - np.tensordot(cast(line, x.dtype), coefficients, 1)


@function_rule(scipy.signal.savgol_filter)
def savgol_filter(
    x: Any, window_length: int, polyorder: int, deriv: int = 0, delta: float = 1.0, axis: int = -1,
    mode: str = "interp", cval: Any = 0.0,
) -> Any:  # fmt: skip
    """Polynomials of least squares around each place: fixed weights, at the ends those of the outermost windows."""
    values = as_array(x)
    values = values if values.dtype == np.float32 else cast(values, np.float64)
    axis = axis_of(axis, values.ndim)
    weights = scipy.signal.savgol_coeffs(window_length, polyorder, deriv=deriv, delta=delta, use="dot")
    if mode != "interp":
        return correlate_along(values, weights, axis, mode, cval, -(window_length % 2 == 0))
    if window_length > values.shape[axis]:
        raise ShapeError("If mode is 'interp', window_length must be less than or equal to the size of x.")
    inner = correlate_along(values, weights, axis, "constant", 0.0, -(window_length % 2 == 0))
    half, size = window_length // 2, values.shape[axis]
    at = np.stack(
        [
            scipy.signal.savgol_coeffs(window_length, polyorder, deriv=deriv, delta=delta, pos=k, use="dot")
            for k in range(window_length)
        ]
    )
    if not half:
        return inner

    def ends(rows: Any, part: slice) -> Any:
        window = np.moveaxis(values[prefix(axis, part)], axis, 0)
        return np.moveaxis(np.tensordot(cast(rows, values.dtype), window, 1), 0, axis)

    first = ends(at[:half], slice(0, window_length))
    last = ends(at[window_length - half :], slice(size - window_length, size))
    return np.concatenate([first, inner[prefix(axis, slice(half, size - half))], last], axis=axis)


# --- spectra ---------------------------------------------------------------------------------------------------------


@function_rule(scipy.signal.hilbert)
def hilbert(x: Any, N: Any = None, axis: int = -1) -> Any:
    """The analytic signal: without negative frequencies."""
    values = as_array(x)
    if values.dtype.kind == "c":
        raise ShapeError("x must be real.")
    axis = axis_of(axis, values.ndim)
    size = values.shape[axis] if N is None else int(N)
    gain = np.zeros(size)
    gain[0] = 1.0
    gain[1 : (size + 1) // 2] = 2.0
    if size % 2 == 0:
        gain[size // 2] = 1.0
    shaped = gain.reshape(tuple(-1 if k == axis else 1 for k in range(values.ndim)))
    found = np.fft.fft(values, size, axis)
    return np.fft.ifft(found * shaped.astype(np.empty(0, found.dtype).real.dtype), axis=axis)


def segments(x: Any, size: int, overlap: int, trend: Any, window: Any, length: int, sided: bool) -> Any:
    """The transforms of overlapping windows: frequencies in the last axis, segments in the one before."""
    parts = sliding_window_view(x, size, -1)[..., :: size - overlap, :]
    if trend:
        parts = detrend(parts, -1, trend) if isinstance(trend, str) else trend(parts)
    return (np.fft.rfft if sided else np.fft.fft)(parts * window, length)


def spectral_setting(
    x: Any, window: Any, nperseg: Any, noverlap: Any, nfft: Any, default: int
) -> tuple[Any, int, int, int]:
    """The window's values, the lengths of segments and of what they share, and of the transform."""
    if contains_tracer(window):
        raise UnsupportedError("a traced window is not supported", hint="multiply the signal by it")
    if isinstance(window, (str, tuple)):
        size = min(default if nperseg is None else int(nperseg), x.shape[-1])
        values: Any = scipy.signal.get_window(window, size)
    else:
        values = np.asarray(window)
        size = len(values)
    length = size if nfft is None else int(nfft)
    if size > x.shape[-1] or length < size:
        raise ShapeError("nperseg must not exceed the length of x, and nfft must be greater than or equal to nperseg.")
    overlap = size // 2 if noverlap is None else int(noverlap)
    if overlap >= size:
        raise ShapeError("noverlap must be less than nperseg.")
    return values.astype(np.empty(0, np.result_type(x.dtype, np.complex64)).real.dtype), size, overlap, length


@function_rule(scipy.signal.csd)
def csd(
    x: Any, y: Any, fs: Any = 1.0, window: Any = "hann", nperseg: Any = None, noverlap: Any = None,
    nfft: Any = None, detrend: Any = "constant", return_onesided: bool = True, scaling: str = "density",
    axis: int = -1, average: str = "mean",
) -> Any:  # fmt: skip
    """The cross spectrum, by the mean over segments."""
    one, two = (np.moveaxis(as_array(part), axis, -1) for part in (x, y))
    if not (one.size and two.size):
        ends = (*np.broadcast_shapes(one.shape[:-1], two.shape[:-1]), min(one.shape[-1], two.shape[-1]))
        empty: Any = filled(ends, 0, np.float64)
        nothing = np.moveaxis(empty, -1, axis)
        return nothing, nothing
    refuse("scipy.signal", average=(average, "mean"))
    if one.shape[-1] != two.shape[-1]:
        raise UnsupportedError("scipy.signal.csd of signals of different lengths is not supported on traced arrays")
    shape, size, overlap, length = spectral_setting(one, window, nperseg, noverlap, nfft, 256)
    sided = bool(return_onesided) and "c" not in (one.dtype.kind, two.dtype.kind)
    first, second = (segments(part, size, overlap, detrend, shape, length, sided) for part in (one, two))
    if scaling not in ("density", "spectrum"):
        raise ShapeError(f"Unknown scaling: {scaling!r}")
    unit = fs * float(np.sum(shape**2)) if scaling == "density" else float(np.sum(shape)) ** 2
    power = np.conj(first) * second / unit
    if sided:
        twice = np.full(power.shape[-1], 2.0, shape.dtype)
        twice[0] = 1.0
        if length % 2 == 0:
            twice[-1] = 1.0
        power = power * twice
    places = np.fft.rfftfreq(length, 1 / fs) if sided else np.fft.fftfreq(length, 1 / fs)
    return places, np.moveaxis(np.mean(power, axis=-2), -1, axis)


@function_rule(scipy.signal.welch)
def welch(x: Any, fs: Any = 1.0, window: Any = "hann", *args: Any, **kwargs: Any) -> Any:
    places, power = csd(x, x, fs, window, *args, **kwargs)
    return places, np.real(power)


@function_rule(scipy.signal.periodogram)
def periodogram(
    x: Any, fs: Any = 1.0, window: Any = "boxcar", nfft: Any = None, detrend: Any = "constant",
    return_onesided: bool = True, scaling: str = "density", axis: int = -1,
) -> Any:  # fmt: skip
    values = np.moveaxis(as_array(x), axis, -1)
    size = values.shape[-1]
    if nfft is not None and nfft < size:
        values, size, nfft = values[..., :nfft], int(nfft), None
    found = welch(
        values, fs, "boxcar" if window is None else window, size, 0, nfft, detrend, return_onesided, scaling
    )  # fmt: skip
    places = found[0] if values.size else np.moveaxis(found[0], -1, axis)  # of nothing, of the signal's shape
    return places, np.moveaxis(found[1], -1, axis)


@function_rule(scipy.signal.stft)
def stft(
    x: Any, fs: Any = 1.0, window: Any = "hann", nperseg: Any = 256, noverlap: Any = None, nfft: Any = None,
    detrend: Any = False, return_onesided: bool = True, boundary: Any = "zeros", padded: bool = True, axis: int = -1,
    scaling: str = "spectrum",
) -> Any:  # fmt: skip
    """Frequencies stand in the axis of the signal, times in the last."""
    values = np.moveaxis(as_array(x), axis, -1)
    refuse("scipy.signal.stft", return_onesided=(return_onesided, True))
    shape, size, overlap, length = spectral_setting(values, window, nperseg, noverlap, nfft, 256)
    kinds: dict[Any, Any] = {"zeros": "constant", "constant": "edge", "even": "reflect", "odd": "reflect", None: None}
    if boundary not in kinds:
        raise ShapeError(f"Unknown boundary option {boundary!r}")
    widths = [(0, 0)] * (values.ndim - 1)
    if boundary is not None:
        extra: dict[str, Any] = {"reflect_type": boundary} if boundary in ("even", "odd") else {}
        values = np.pad(values, [*widths, (size // 2, size // 2)], mode=kinds[boundary], **extra)
    if padded:
        short = -(values.shape[-1] - size) % (size - overlap) % size
        values = np.pad(values, [*widths, (0, short)])
    sided = values.dtype.kind != "c"
    found = segments(values, size, overlap, detrend, shape, length, sided)
    if scaling not in ("psd", "spectrum"):
        raise ShapeError(f"Parameter scaling={scaling!r} not in ['spectrum', 'psd'].")
    found = found * float(np.sqrt(1.0 / (fs * np.sum(shape**2)) if scaling == "psd" else 1.0 / np.sum(shape) ** 2))
    times = np.arange(size / 2, values.shape[-1] - size / 2 + 1, size - overlap) / fs
    if boundary is not None:
        times = times - size / 2 / fs
    places = np.fft.rfftfreq(length, 1 / fs) if sided else np.fft.fftfreq(length, 1 / fs)
    place = axis_of(axis, values.ndim)
    return places, times, np.moveaxis(np.moveaxis(found, -1, -2), -2, place)
