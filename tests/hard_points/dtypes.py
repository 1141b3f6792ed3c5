"""Precisions and kinds of numbers: exact where the arithmetic is."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.hard_points.points import Case

INF = np.inf
HALF = np.array([0.5, 2.0], np.float16)
SINGLE = np.array([0.5, 2.0], np.float32)


def square_derivatives(x: Any) -> tuple[Any, Any]:
    second = np.zeros((2, 2, 2))
    second[0, 0, 0] = second[1, 1, 1] = 2
    return np.diag(2.0 * x.astype(float)), second


def both_precisions(x: Any) -> Any:
    return np.sum(x.astype(np.float32)) * np.sum(x)


DTYPES: dict[str, Case] = {
    "half precision": (lambda x: x * x, HALF, square_derivatives(HALF)),
    "single precision": (lambda x: x * x, SINGLE, square_derivatives(SINGLE)),
    "a Python number is weak": (lambda x: 2 * x * (x * 0.5), SINGLE, square_derivatives(SINGLE)),
    "an integer array": (
        lambda x: np.sum(np.array([1, 2]) * x**2),
        np.array([0.5, 2.0]),
        (np.array([1.0, 8.0]), np.diag([2.0, 4.0])),
    ),
    "a bool array": (
        lambda x: np.sum((x > 1) * x**2),
        np.array([0.5, 2.0]),
        (np.array([0.0, 4.0]), np.diag([0.0, 2.0])),
    ),
    "two precisions": (both_precisions, np.array([0.5, 2.0]), (np.array([5.0, 5.0]), np.full((2, 2), 2.0))),
    "there and back": (
        lambda x: x.astype(np.int64) * x,
        np.array([1.5, 2.5]),
        (np.diag([1.0, 2.0]), np.zeros((2, 2, 2))),
    ),
    "a subnormal": (lambda x: x * x, 5e-324, (1e-323, 2.0)),
    "overflow to inf": (lambda x: x * x, 1e200, (2e200, 2.0)),
    "exp that overflows": (lambda x: np.exp(x), 1000.0, (INF, INF)),
    "exp that underflows": (lambda x: np.exp(x), -1000.0, (0.0, 0.0)),
    "log1p of a small number": (lambda x: np.log1p(x), 1e-20, (1.0, -1.0)),
    "expm1 of a small number": (lambda x: np.expm1(x), 1e-20, (1.0, 1.0)),
    "tanh far out": (lambda x: np.tanh(x), 400.0, (0.0, 0.0)),
    "logaddexp far apart": (lambda x: np.logaddexp(x, 0.0), 800.0, (1.0, 0.0)),
    "hypot without overflow": (lambda x: np.hypot(x, 4e200), 3e200, (0.6, 1.28e-201)),
    "norm without underflow": (
        lambda x: np.linalg.norm(x),
        np.array([3e-150, 4e-150]),
        (np.array([0.6, 0.8]),),
    ),
}  # fmt: skip
