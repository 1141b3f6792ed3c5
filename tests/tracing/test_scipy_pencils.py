"""Generalised eigenvalue problems and left eigenvectors of ``scipy.linalg``: SciPy's values, and their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import srcgrad as sg

RNG = np.random.default_rng(1)
A, B = RNG.normal(size=(4, 4)), RNG.normal(size=(4, 4))
SINGULAR = np.concatenate([B[:, :1], B[:, :3]], axis=1)
WEIGHTS = np.cos(np.arange(16.0)).reshape(4, 4)


def parts(*arrays: Any) -> Any:
    """A number that no phase of a vector changes."""
    total: Any = 0.0
    for k, x in enumerate(arrays):
        weights = WEIGHTS[: x.shape[0]] if x.ndim > 1 else WEIGHTS[k, : x.shape[0]]
        total = total + np.sum(weights * np.abs(x) ** 2)
    return total


def finite(a: Any, b: Any) -> Any:
    return np.sort(np.abs(scipy.linalg.eigvals(a, b)))[:3]


FUNCTIONS: dict[str, tuple[Callable[..., Any], Any, Any]] = {
    "values": (lambda a, b: parts(scipy.linalg.eigvals(a, b)), A, B),
    "values alone": (lambda a, b: parts(scipy.linalg.eig(a, b, right=False)), A, B),
    "vectors": (lambda a, b: parts(*scipy.linalg.eig(a, b)), A, B),
    "left": (lambda a, b: parts(*scipy.linalg.eig(a, b, left=True)), A, B),
    "left of one matrix": (lambda a, b: parts(*scipy.linalg.eig(a, left=True, right=False), b), A, B),
    "phases of left ones": (lambda a, b: np.sum(WEIGHTS * scipy.linalg.eig(a, left=True)[1].imag) + parts(b), A, B),
    "complex": (lambda a, b: parts(*scipy.linalg.eig(a + 1j * b, b - 0.3j * a)), A, B),
    "a singular b": (lambda a, b: parts(finite(a, SINGULAR)) + parts(b), A, B),
    "real ones": (lambda a, b: parts(*scipy.linalg.eig(a + a.T, b @ b.T + np.eye(4))), A, B),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_pencils_have_scipys_values_and_derivatives_to_second_order(name: str) -> None:
    f, *points = FUNCTIONS[name]
    np.testing.assert_allclose(sg.jit(f, strict=True)(*points), f(*points), rtol=1e-13)
    for k in range(2):
        direction = np.random.default_rng(k).normal(size=(4, 4))

        def at(t: Any, k: int = k, direction: Any = direction) -> Any:
            return f(*(x + t * direction if j == k else x for j, x in enumerate(points)))

        slope, step = sg.grad(at), 1e-4
        expected = (8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12 * step)
        np.testing.assert_allclose(slope(0.0), expected, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(sg.jvp(at, (0.0,), (1.0,))[1], slope(0.0), rtol=1e-10, atol=1e-12)
        expected = (8 * (slope(step) - slope(-step)) - (slope(2 * step) - slope(-2 * step))) / (12 * step)
        np.testing.assert_allclose(sg.grad(slope)(0.0), expected, rtol=1e-5, atol=1e-5)


def test_results_of_pencils_are_those_of_scipy() -> None:
    for kind in (np.float32, np.float64, np.complex128):
        a, b = A.astype(kind), B.astype(kind)
        for one, other in zip(
            sg.jit(lambda a, b: scipy.linalg.eig(a, b, left=True))(a, b), scipy.linalg.eig(a, b, left=True), strict=True
        ):
            np.testing.assert_allclose(one, other, rtol=2e-6 if kind is np.float32 else 1e-13)
            assert one.dtype == np.result_type(kind, np.complex64)
    found = sg.vmap(lambda a: scipy.linalg.eigvals(a, B))(np.stack([A, B.T]))
    np.testing.assert_allclose(found[1], scipy.linalg.eigvals(B.T, B), rtol=1e-13)


def test_refusals_of_pencils_are_short() -> None:
    with pytest.raises(sg.errors.UnsupportedError, match="how long a pair is") as caught:
        sg.grad(lambda a: np.sum(np.abs(scipy.linalg.eigvals(a, B, homogeneous_eigvals=True))))(A)
    assert "[[" not in caught.value.message
    with pytest.raises(ValueError, match=r"same shape, not \(4, 4\) and \(3, 3\)"):
        sg.grad(lambda a: np.sum(np.abs(scipy.linalg.eigvals(a, B[:3, :3]))))(A)
    with pytest.raises(ValueError, match=r"wrong b dimensions \(3, 3\), should be \(4, 4\)"):
        sg.grad(lambda a: np.sum(scipy.linalg.eigh(a, B[:3, :3])[0]))(A)
    with pytest.raises(sg.errors.UnsupportedError, match="rtol= is not") as caught:
        sg.grad(lambda a: np.sum(scipy.linalg.pinvh(a, rtol=np.full(3, 1e-3))))(A)
    assert "[" not in caught.value.message
