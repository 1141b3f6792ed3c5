"""Short-time Fourier transforms and chirp transforms of ``scipy.signal`` as objects: all windows at once.

SciPy goes from window to window in Python, which would be a program as long as the signal. An object itself is made of
numbers that are known. Importing this module imports SciPy.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import scipy.signal

from srcgrad.errors import DTypeError, ShapeError
from srcgrad.tracing.conversion.calls import CALLS, call, call_rule
from srcgrad.tracing.functions.registry import as_array, cast
from srcgrad.tracing.functions.scipy_sparse import added
from srcgrad.tracing.functions.signal import sliding_window_view

PADDINGS: Final[dict[str, dict[str, Any]]] = {
    "zeros": {"mode": "constant"},
    "edge": {"mode": "edge"},
    "even": {"mode": "reflect", "reflect_type": "even"},
    "odd": {"mode": "reflect", "reflect_type": "odd"},
}
"""NumPy's way to go on beyond the ends of a signal, by the names of `scipy.signal.ShortTimeFFT`."""
ShortTime: Any = scipy.signal.ShortTimeFFT
for _class in (scipy.signal.ShortTimeFFT, scipy.signal.CZT, scipy.signal.ZoomFFT):
    call_rule(_class)(_class)


def of_method(method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method that has a rule, given traced values; the others are converted like the user's functions."""
    return CALLS[method.__func__](method.__self__, *args, **kwargs)


@call_rule(ShortTime.stft_detrend)
def stft_detrend(
    self: Any, x: Any, detr: Any, p0: Any = None, p1: Any = None, *, k_offset: int = 0, padding: str = "zeros",
    axis: int = -1,
) -> Any:  # fmt: skip
    """The spectra of windows that begin ``hop`` elements after each other."""
    signal = as_array(x)
    if self.onesided_fft and signal.dtype.kind == "c":
        raise DTypeError(f"Complex-valued `x` not allowed for {self.fft_mode=}'!", hint="set fft_mode='twosided'")
    if not (detr is None or isinstance(detr, str) or callable(detr)):
        raise DTypeError(f"Parameter {detr=} is not a str, function or None!")
    size = signal.shape[axis]
    if size < self.m_num - self.m_num_mid:
        raise ShapeError(f"{size} elements must be >= ceil(m_num/2) = {self.m_num - self.m_num_mid}!")
    first, stop = self.p_range(size, p0, p1)
    windows = windows_of(self, np.moveaxis(signal, axis, -1), k_offset, first, stop, padding)
    if isinstance(detr, str):
        windows = call(scipy.signal.detrend, windows, type=detr)
    elif detr is not None:
        parts = [call(detr, windows[..., k, :]) for k in range(windows.shape[-2])]
        windows = np.stack(parts, axis=-2)
    found = np.swapaxes(cast(spectra(self, windows * np.conj(self.win)), np.complex128), -1, -2)
    return np.moveaxis(found, -2, axis if axis >= 0 else axis - 1) if signal.ndim > 1 else found


def windows_of(self: Any, x: Any, offset: int, first: int, stop: int, padding: str) -> Any:
    """The windows with the numbers from ``first`` on, along the last axis but one."""
    if padding not in PADDINGS:
        raise ShapeError(f"Parameter padding={padding!r} not in {(*PADDINGS,)}!")
    size, length = x.shape[-1], (stop - first) * self.hop
    begin = first * self.hop - self.m_num_mid + offset
    end = begin + length + self.m_num
    widths = [(0, 0)] * (x.ndim - 1) + [(-min(begin, 0), max(end - size, 0))]
    wide: Any = np.pad(x[..., max(begin, 0) : min(end, size)], widths, **PADDINGS[padding])
    return sliding_window_view(wide[..., : length - self.hop + self.m_num], self.m_num, -1)[..., :: self.hop, :]


def spectra(self: Any, x: Any) -> Any:
    """The transforms of windows along the last axis."""
    if self.phase_shift is not None:
        if x.shape[-1] < self.mfft:
            x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, self.mfft - x.shape[-1])])
        x = np.roll(x, -((self.phase_shift + self.m_num_mid) % self.m_num), axis=-1)
    if self.fft_mode == "twosided":
        return np.fft.fft(x, self.mfft)
    if self.fft_mode == "centered":
        return np.fft.fftshift(np.fft.fft(x, self.mfft), axes=-1)
    found = np.fft.rfft(x, self.mfft)
    return found * doubling(self) if self.fft_mode == "onesided2X" else found


def doubling(self: Any) -> Any:
    """By what the spectra of one side are multiplied that stand for both: all but those that are their own twins."""
    factors = np.full(self.f_pts, np.sqrt(2.0) if self.scaling == "psd" else 2.0)
    factors[0] = 1.0
    if self.mfft % 2 == 0:
        factors[-1] = 1.0
    return factors


@call_rule(ShortTime.istft)
def istft(self: Any, S: Any, k0: int = 0, k1: Any = None, *, f_axis: int = -2, t_axis: int = -1) -> Any:
    """The sum of what the inverse transforms of the spectra say, each times the dual window."""
    given = as_array(S)
    if f_axis == t_axis:
        raise ShapeError(f"{f_axis=} may not be equal to {t_axis=}!")
    if given.shape[f_axis] != self.f_pts:
        raise ShapeError(f"{given.shape[f_axis]=} must be equal to {self.f_pts=} ({given.shape=})!")
    least = self.m_num - self.m_num_mid
    if given.shape[t_axis] < self.p_num(least):
        raise ShapeError(f"{given.shape[t_axis]=} needs to have at least {self.p_num(least)} slices ({given.shape=})!")
    f_axis, t_axis = f_axis % given.ndim, t_axis % given.ndim
    columns = np.moveaxis(given, (t_axis, f_axis), (-2, -1))
    last = columns.shape[-2] + self.p_min
    longest = (last - 1) * self.hop + self.m_num - self.m_num_mid
    k1 = longest if k1 is None else k1
    if not self.k_min <= k0 < k1 <= longest:
        raise ShapeError(f"({self.k_min=}) <= ({k0=}) < ({k1=}) <= (k_max={longest}) is false!")
    if k1 - k0 < least:
        raise ShapeError(f"({k1=}) - ({k0=}) = {k1 - k0} has to be at least the half the window length {least}!")
    first = k0 // self.hop + (self.p_min if k0 >= 0 else 0)
    numbers = np.arange(first, min(self.p_max(k1), last))
    parts = signals(self, columns[..., numbers - self.p_min, :]) * self.dual_win
    places = numbers[:, None] * self.hop - self.m_num_mid - k0 + np.arange(self.m_num)
    met = np.nonzero((places >= 0) & (places < k1 - k0))
    found = np.moveaxis(added(np.moveaxis(parts[..., met[0], met[1]], -1, 0), places[met], k1 - k0), 0, -1)
    found = cast(found, np.float64 if self.onesided_fft else np.complex128)
    if found.ndim == 1:
        return found
    return np.moveaxis(found, -1, f_axis if f_axis < found.ndim else t_axis)


def signals(self: Any, spectrum: Any) -> Any:
    """The inverse transforms along the last axis."""
    x: Any
    if self.fft_mode == "twosided":
        x = np.fft.ifft(spectrum, self.mfft)
    elif self.fft_mode == "centered":
        x = np.fft.ifft(np.fft.ifftshift(spectrum, axes=-1), self.mfft)
    else:
        x = np.fft.irfft(spectrum / doubling(self) if self.fft_mode == "onesided2X" else spectrum, self.mfft)
    if self.phase_shift is not None:
        x = np.roll(x, (self.phase_shift + self.m_num_mid) % self.m_num, axis=-1)
    return x[..., : self.m_num]
