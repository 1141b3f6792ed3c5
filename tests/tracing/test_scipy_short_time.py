"""Short-time Fourier and chirp transforms of ``scipy.signal`` that are objects: one program, of all windows at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.signal

import srcgrad as sg
from srcgrad.errors import SrcgradError
from tests.tracing.slope_support import check_slopes

SIGNAL = np.sin(0.37 * np.arange(40.0) ** 1.3)
CHANNELS = np.cos(np.arange(120.0) ** 1.1).reshape(3, 40)
WINDOW = scipy.signal.windows.hann(12) + 0.1


def made(mode: str = "onesided", **options: Any) -> Any:
    return scipy.signal.ShortTimeFFT(WINDOW, 5, 100.0, fft_mode=mode, **options)


PLAIN, DOUBLED, POWER = made(), made("onesided2X", mfft=15, scale_to="magnitude"), made("onesided2X", scale_to="psd")
CENTRED, BOTH, SHIFTED = made("centered", phase_shift=None), made("twosided", mfft=17), made(phase_shift=3, mfft=16)
CHIRP, ZOOM = scipy.signal.CZT(40, m=13), scipy.signal.ZoomFFT(40, [0.1, 0.5], 9)
MADE = {"plain": PLAIN, "doubled": DOUBLED, "power": POWER, "centred": CENTRED, "both": BOTH, "shifted": SHIFTED}

CASES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "edge": (lambda x: PLAIN.stft(x, padding="edge"), SIGNAL),
    "even": (lambda x: PLAIN.stft(x, padding="even"), SIGNAL),
    "odd": (lambda x: PLAIN.stft(x, 1, 6, k_offset=3, padding="odd"), SIGNAL),
    "channels": (lambda x: PLAIN.stft(x), CHANNELS),
    "channels along another axis": (lambda x: PLAIN.stft(x.T, axis=0), CHANNELS),
    "without a line": (lambda x: PLAIN.stft_detrend(x, "linear"), SIGNAL),
    "without what is said": (lambda x: PLAIN.spectrogram(x, detr=lambda part: part - part[0] ** 2), SIGNAL),
    "of two": (lambda x: PLAIN.spectrogram(x, x**2), SIGNAL),
    "with its frequencies": (lambda x: PLAIN.spectrogram(x).sum(axis=1) * PLAIN.f + PLAIN.delta_t, SIGNAL),
    "back, a part": (lambda x: PLAIN.istft(PLAIN.stft(SIGNAL) * x[:7, None], 1, 33), SIGNAL),
    "back, along other axes": (
        lambda x: PLAIN.istft(np.moveaxis(PLAIN.stft(CHANNELS) * x[:3, None, None], 0, -1), f_axis=0, t_axis=1),
        SIGNAL,
    ),
    "chirp": (lambda x: CHIRP(x), SIGNAL),
    "chirp of channels": (lambda x: CHIRP(x.T, axis=0), CHANNELS),
    "zoom": (lambda x: ZOOM(x), CHANNELS),
    "made within": (lambda x: scipy.signal.ZoomFFT(40, [0.1, 0.5], 9)(x), SIGNAL),
    "windows made within": (lambda x: scipy.signal.ShortTimeFFT(np.hanning(12), 5, 1.0).spectrogram(x), SIGNAL),
}
for _name, _made in MADE.items():
    CASES[f"there, {_name}"] = lambda x, made=_made: made.stft(x), SIGNAL
    CASES[f"and back, {_name}"] = lambda x, made=_made: made.istft(made.stft(SIGNAL) * x[: made.f_pts, None]), SIGNAL


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["llvm", "numpy", "xla"])
@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives(name: str, backend: str) -> None:
    check_slopes(*CASES[name], backend, curved=backend != "xla")


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
def test_a_signal_of_many_windows_is_a_short_program() -> None:
    slope = sg.explain(sg.grad(lambda x: np.sum(PLAIN.spectrogram(x))))
    few, many = (str(slope(np.ones(size))["ir"]).count(" = ") for size in (60, 600))
    assert few == many < 100


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
def test_an_object_that_is_changed_makes_another_program() -> None:
    transform = made()
    slope = sg.grad(lambda x: np.sum(np.abs(transform.stft(x)) ** 2))
    before = slope(SIGNAL)
    transform.scale_to("psd")
    np.testing.assert_allclose(slope(SIGNAL), before * (transform.win[0] / WINDOW[0]) ** 2)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda x: PLAIN.stft(x + 1j), "Complex-valued"),
        (lambda x: PLAIN.stft(x[:3]), "must be >="),
        (lambda x: PLAIN.stft(x, padding="wrap"), "padding"),
        (lambda x: PLAIN.stft_detrend(x, 3), "not a str"),
        (lambda x: PLAIN.istft(x.reshape(8, 5)), "must be equal to"),
        (lambda x: PLAIN.istft(x[:28].reshape(7, 4), 5, 90), "is false"),
        (lambda x: CHIRP(x[:3]), "CZT defined for length"),
    ],
)
def test_what_scipy_refuses_is_refused(f: Any, message: str) -> None:
    with pytest.raises((SrcgradError, ValueError), match=message):
        sg.jit(f)(SIGNAL)
