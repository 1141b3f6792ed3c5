"""The rules of ``scipy.fft`` and ``scipy.signal`` give SciPy's values, dtypes and shapes, and the right derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.signal

import srcgrad as sg
import srcgrad.tracing.functions.scipy_fourier
import srcgrad.tracing.functions.scipy_signal
from srcgrad.errors import DTypeError, ShapeError
from srcgrad.tracing.tracer import FUNCTIONS, Tracer
from tests.tracing.function_inputs import F16, F32, INTS, C, M, T, V
from tests.tracing.trace_support import compare, directional, run

IMAGE = np.random.default_rng(3).standard_normal((4, 5))
KERNEL = np.random.default_rng(4).standard_normal((2, 3))
SHORT = np.array([1.0, -2.0, 0.5, 3.0])
NORMS = (None, "ortho", "forward")


def call(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """The rule if an argument is traced, as a call of the function itself is to become."""
    rule = FUNCTIONS[function] if any(isinstance(arg, Tracer) for arg in args) else function
    return rule(*args, **options)


def check(program: Callable[..., Any], *arrays: Any) -> None:
    compare(program, arrays)
    directional(program, arrays)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_fourier_transforms(name: str, norm: str | None) -> None:
    one, many, two = (getattr(scipy.fft, name + suffix) for suffix in ("", "n", "2"))
    check(
        lambda x: (
            call(one, x, norm=norm),
            call(one, x, 7, 0, norm),
            call(one, x, 3, workers=1),
            call(many, x, norm=norm),
            call(many, x, (3, 6), (1, 0), norm),
            call(two, x, norm=norm),
        ),
        IMAGE,
    )


@pytest.mark.parametrize("orthogonalize", [None, True, False])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["dct", "idct", "dst", "idst"])
def test_cosine_and_sine_transforms(name: str, kind: int, norm: str | None, orthogonalize: bool | None) -> None:
    one, many = getattr(scipy.fft, name), getattr(scipy.fft, f"{name}n")
    options = {"norm": norm, "orthogonalize": orthogonalize}
    check(
        lambda x: (
            call(one, x, kind, **options),
            call(one, x, kind, n=7, axis=0, **options),
            call(one, x, kind, n=3, **options),
            call(many, x, kind, **options),
            call(many, x, kind, s=(3, 6), axes=(1, 0), **options),
        ),
        IMAGE,
    )


def test_transforms_of_other_dtypes() -> None:
    for x in (F32, F16, INTS, M > 0):
        compare(lambda x: (call(scipy.fft.fft, x), call(scipy.fft.irfft, x), call(scipy.fft.dst, x)), (x,))
    check(lambda x: (call(scipy.fft.dct, x), call(scipy.fft.fftshift, x), call(scipy.fft.ifftshift, x)), C)


MODES = ("full", "same", "valid")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("method", ["auto", "direct", "fft"])
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_convolution_of_any_rank(name: str, method: str, mode: str) -> None:
    function = getattr(scipy.signal, name)
    check(
        lambda x, y, v, w: (
            call(function, x, y, mode, method),
            call(function, y, x, mode, method),
            call(function, y * (1 - 2j), x, mode, method),
            call(function, v, w, mode, method),
            call(function, w, v, mode, method),
        ),
        IMAGE,
        KERNEL,
        V,
        SHORT,
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["fftconvolve", "oaconvolve"])
def test_convolution_by_transforms(name: str, mode: str) -> None:
    function = getattr(scipy.signal, name)
    check(
        lambda x, y, t: (
            call(function, x, y, mode),
            call(function, x, x[:1], mode, axes=1),
            call(function, t, t[:, :2] * 1j, mode, axes=(1, 2)),
        ),
        IMAGE,
        KERNEL,
        T,
    )


@pytest.mark.parametrize("boundary", ["fill", "wrap", "symm"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["convolve2d", "correlate2d"])
def test_convolution_of_images(name: str, mode: str, boundary: str) -> None:
    function = getattr(scipy.signal, name)
    check(
        lambda x, y: (
            call(function, x, y, mode, boundary),
            call(function, y, x, mode, boundary),
            call(function, x, y[:, :2] * 1j, mode, boundary),
            call(function, x, y, mode, boundary, 2.5),
        ),
        IMAGE,
        KERNEL,
    )


def test_convolution_of_integers() -> None:
    compare(
        lambda x: (call(scipy.signal.convolve, x, x[:2]), call(scipy.signal.convolve, x, x, "same", "fft")), (INTS,)
    )
    compare(lambda x: call(scipy.signal.convolve2d, x[:, None], x[None, :2], "same"), (INTS,))


REFUSED: list[tuple[str, Any, type[Exception]]] = [
    ("type", lambda x: call(scipy.fft.dct, x, 5), ShapeError),
    ("fewest elements", lambda x: call(scipy.fft.dct, x[:, :1], 1), ShapeError),
    ("norm", lambda x: call(scipy.fft.dst, x, norm="other"), ShapeError),
    ("real", lambda x: call(scipy.fft.rfft, x * 1j), DTypeError),
    ("ranks", lambda x: call(scipy.signal.convolve, x, x[0]), ShapeError),
    ("mode", lambda x: call(scipy.signal.convolve, x, x, "other"), ShapeError),
    ("method", lambda x: call(scipy.signal.convolve, x, x, "full", "other"), ShapeError),
    ("valid", lambda x: call(scipy.signal.convolve, x, x.T, "valid"), ShapeError),
    ("boundary", lambda x: call(scipy.signal.convolve2d, x, x, boundary="other"), ShapeError),
    ("axes", lambda x: call(scipy.signal.fftconvolve, x, x[:2], axes=1), ShapeError),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[0])
def test_refusal(case: tuple[str, Any, type[Exception]]) -> None:
    _, program, error = case
    with pytest.raises(error):
        run(program, (M,))


def test_a_users_function_calls_scipy_fft(recwarn: pytest.WarningsRecorder) -> None:
    """Its functions are objects that choose among libraries; no function is traced again at each call for that."""

    def energy(x: Any) -> Any:
        return np.sum(np.abs(scipy.fft.rfft(x)) ** 2) + np.sum(scipy.fft.dct(x) ** 2)

    x = np.linspace(-1.0, 2.0, 6)
    step = 1e-6 * np.eye(6)
    expected = [(energy(x + h) - energy(x - h)) / 2e-6 for h in step]
    np.testing.assert_allclose(sg.grad(energy)(x), expected, rtol=1e-7)
    assert not recwarn.list
