"""Functions of ``scipy.fftpack``: those of ``scipy.fft`` by other defaults, inverse cosine and sine transforms without
a factor, and spectra of real numbers in one array of these. Importing this module imports SciPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.fft
import scipy.fftpack

from srcgrad.tracing.conversion.calls import call_rule
from srcgrad.tracing.functions.fourier import resized, size_of
from srcgrad.tracing.functions.registry import as_array, axis_of
from srcgrad.tracing.functions.scipy_fourier import INVERSE_TYPE
from srcgrad.tracing.tracer import FUNCTIONS, contains_tracer

Rule = Callable[..., Any]
SHAPED: Final = ("fft2", "ifft2", "fftn", "ifftn")


def of_traced(function: Any) -> Callable[[Rule], Rule]:
    """The rule of a function for a first argument that is traced; others go to SciPy."""

    def register(rule: Rule) -> Rule:
        def choose(x: Any, *args: Any, **kwargs: Any) -> Any:
            return (rule if contains_tracer(x) else function)(x, *args, **kwargs)

        call_rule(function)(choose)
        return rule

    return register


def one_axis(name: str) -> None:
    rule = FUNCTIONS[getattr(scipy.fft, name)]

    @of_traced(getattr(scipy.fftpack, name))
    def transform(x: Any, n: Any = None, axis: int = -1, overwrite_x: bool = False) -> Any:
        return rule(x, n, axis)


def many_axes(name: str) -> None:
    rule = FUNCTIONS[getattr(scipy.fft, name)]

    @of_traced(getattr(scipy.fftpack, name))
    def transform(
        x: Any, shape: Any = None, axes: Any = (-2, -1) if name[-1] == "2" else None, overwrite_x: bool = False
    ) -> Any:
        return rule(x, shape, axes)


def trigonometric(name: str) -> None:
    """An inverse is the transform of the inverse type."""
    forward = name.removeprefix("i")
    rule = FUNCTIONS[getattr(scipy.fft, forward)]

    def kind_of(type: Any) -> Any:
        return type if name == forward else INVERSE_TYPE.get(type, type)

    if name[-1] == "n":

        @of_traced(getattr(scipy.fftpack, name))
        def transform_axes(
            x: Any, type: Any = 2, shape: Any = None, axes: Any = None, norm: Any = None, overwrite_x: bool = False
        ) -> Any:
            return rule(x, kind_of(type), shape, axes, norm)

    else:

        @of_traced(getattr(scipy.fftpack, name))
        def transform(
            x: Any, type: Any = 2, n: Any = None, axis: int = -1, norm: Any = None, overwrite_x: bool = False
        ) -> Any:
            return rule(x, kind_of(type), n, axis, norm)


for _name in ("fft", "ifft"):
    one_axis(_name)
for _name in SHAPED:
    many_axes(_name)
for _name in ("dct", "idct", "dst", "idst", "dctn", "idctn", "dstn", "idstn"):
    trigonometric(_name)


@of_traced(scipy.fftpack.rfft)
def rfft(x: Any, n: Any = None, axis: int = -1, overwrite_x: bool = False) -> Any:
    """y[0], Re y[1], Im y[1], …: without the imaginary parts that are 0."""
    array = as_array(x)
    size = size_of(n, array.shape[axis_of(axis, array.ndim)])
    half: Any = np.moveaxis(FUNCTIONS[scipy.fft.rfft](array, size, axis), axis, -1)
    parts = np.stack([half.real, half.imag], -1).reshape(*half.shape[:-1], 2 * half.shape[-1])
    return np.moveaxis(np.concatenate([parts[..., :1], parts[..., 2 : size + 1]], -1), -1, axis)


@of_traced(scipy.fftpack.irfft)
def irfft(x: Any, n: Any = None, axis: int = -1, overwrite_x: bool = False) -> Any:
    array = as_array(x)
    place = axis_of(axis, array.ndim)
    size = size_of(n, array.shape[place])
    packed: Any = np.moveaxis(resized(array, size, place), place, -1)
    zero = np.zeros_like(packed[..., :1])
    parts = [packed[..., :1], zero, packed[..., 1:], *([] if size % 2 else [zero])]
    pairs: Any = np.concatenate(parts, -1).reshape(*packed.shape[:-1], size // 2 + 1, 2)
    half = pairs[..., 0] + 1j * pairs[..., 1]
    return np.moveaxis(FUNCTIONS[scipy.fft.irfft](half, size), -1, place)
