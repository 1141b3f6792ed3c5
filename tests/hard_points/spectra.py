"""What the tests of functions of eigenvalues and singular values share: matrices, and checks of both modes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
import srcgrad.tracing.functions.scipy_decompositions  # registers the rules
from tests.hard_points.high_precision import value_and_derivatives

RANDOM = np.random.default_rng(20)
la = np.linalg
Array = np.ndarray[Any, Any]
Function = Callable[[Any], Any]


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    """Every test draws the same numbers, whichever ran before it."""
    RANDOM.bit_generator.state = np.random.default_rng(21).bit_generator.state


@pytest.fixture(autouse=True)
def on_numpy() -> Iterator[None]:
    """Programs that are called once or twice take longer to compile than to run: llvm's are asked for by name.

    ``SRCGRAD_BACKEND=llvm python -m pytest tests/hard_points`` runs all of this on llvm.
    """
    with sg.use_backend(os.environ.get("SRCGRAD_BACKEND") or "numpy"):
        yield


def hermitian(size: int, complex_: bool = False) -> Array:
    x = RANDOM.normal(size=(size, size)) + (1j * RANDOM.normal(size=(size, size)) if complex_ else 0)
    return (x + x.conj().T) / 2


def rotated(values: list[float], complex_: bool = False) -> Array:
    x = RANDOM.normal(size=(len(values),) * 2) + (1j * RANDOM.normal(size=(len(values),) * 2) if complex_ else 0)
    q = la.qr(x)[0]
    a = (q * values) @ q.conj().T
    return (a + a.conj().T) / 2


UNIT = np.array([1.0, 0.0])
H, K, W = (hermitian(3) for _ in range(3))
HC, KC, WC = (hermitian(3, True) for _ in range(3))
B = np.diag([4.0, 1.0, 1.0])
X, XS = np.arange(3.0), np.arange(6.0).reshape(3, 2)


def close(actual: Any, expected: Any, tolerance: float, what: str = "") -> None:
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale, err_msg=what)


def paired(u: Any, y: Any) -> Any:
    """<u, y>, real."""
    return np.sum(u.real * y.real) + np.sum(u.imag * y.imag) if np.iscomplexobj(u) else np.sum(u * y)


def nestings(f: Function, a: Array, h: Array, k: Array, w: Array, **options: Any) -> dict[str, Any]:
    """The second derivative of <w, f> along h and k in the four ways; for complex matrices by JAX's convention."""

    def scalar(x: Any) -> Any:
        return paired(w, f(x))

    def slope(x: Any) -> Any:
        return sg.jvp(scalar, (x,), (h,))[1]

    def along(gradient: Any, direction: Array) -> Any:
        return np.sum((gradient * direction).real) if np.iscomplexobj(a) else np.sum(gradient * direction)

    return {
        "forward over forward": sg.jvp(slope, (a,), (k,), **options)[1],
        "reverse over forward": along(sg.grad(slope, **options)(a), k),
        "forward over reverse": sg.jvp(lambda x: along(sg.grad(scalar)(x), h), (a,), (k,), **options)[1],
        "reverse over reverse": along(sg.grad(lambda x: along(sg.grad(scalar)(x), h), **options)(a), k),
    }


def check(f: Function, reference: Function, a: Array, h: Array, k: Array, w: Array, tolerance: float = 2e-13) -> None:
    value, first, second = value_and_derivatives(reference, a, h, k)
    found, slope = sg.jvp(f, (a,), (h,))
    value, first, second = (x.reshape(np.shape(found)) for x in (value, first, second))
    w = w if np.shape(w) == np.shape(found) else np.ones(np.shape(found))
    close(found, value, tolerance, "value")
    close(slope, first, tolerance, "first derivative, forward")
    gradient = sg.grad(lambda x: paired(w, f(x)))(a)
    close(np.sum((gradient * h).real), paired(w, first), tolerance, "first derivative, reverse")
    for name, number in nestings(f, a, h, k, w).items():
        close(number, paired(w, second), tolerance * 5, name)


def second_by_differences(f: Function, a: Array, h: Array, k: Array) -> Any:
    def slope(t: float) -> Any:
        return sg.jvp(f, (a + t * k,), (h,))[1]

    step = 1e-3
    return (8 * (slope(step) - slope(-step)) - (slope(2 * step) - slope(-2 * step))) / (12 * step)
