"""Complex numbers: through real parts to second order, and as they are by JAX's convention to first."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.hard_points.points import Case

NAN, INF = np.nan, np.inf
Z = 0.6 - 0.8j
EYE = np.eye(2)


def number(x: Any) -> Any:
    return x[0] + 1j * x[1]


def pair(z: Any) -> Any:
    return np.stack([np.real(z), np.imag(z)])


def holomorphic(first: complex, second: complex) -> tuple[Any, Any]:
    """Derivatives of the pair (Re f, Im f) in (Re z, Im z) from f' and f''."""
    jacobian = np.array([[first.real, -first.imag], [first.imag, first.real]])
    along = np.array([1, 1j])
    values = second * np.multiply.outer(along, along)
    return jacobian, np.stack([values.real, values.imag])


XY = np.array([0.6, -0.8])
ZERO = np.zeros(2)

COMPLEX: dict[str, Case] = {
    "|z| at 0": (lambda x: np.abs(number(x)), ZERO, (ZERO, np.zeros((2, 2)))),
    "|z|": (lambda x: np.abs(number(x)), XY, (XY, EYE - np.outer(XY, XY))),
    "cos |z| at 0": (lambda x: np.cos(np.abs(number(x))), ZERO, (ZERO, -EYE)),
    "log cosh |z| at 0": (lambda x: np.log(np.cosh(np.abs(number(x)))), ZERO, (ZERO, EYE)),
    "the cosine of a norm at 0": (
        lambda x: np.cos(np.linalg.norm(np.stack([number(x), 2j * number(x)]))),
        ZERO,
        (ZERO, -5 * EYE),
    ),
    "exp(i |x|) at 0": (
        lambda x: np.sum(np.real(np.exp(1j * np.abs(x)))) + np.imag(np.exp(1j * np.linalg.norm(x)) * 1j),
        ZERO,
        (ZERO, -2 * EYE),
    ),
    "a length of functions of |x| at 0": (
        lambda x: np.sum(np.abs(1 / (1 + np.abs(x)) + 1j / (1 + np.abs(x)))),
        ZERO,
        (ZERO, 2 * np.sqrt(2) * EYE),
    ),
    "a product of exp(i |x|) at 0": (
        lambda x: np.real(np.vdot(np.exp(1j * np.abs(x)), np.exp(2j * np.abs(x)))),
        ZERO,
        (ZERO, -EYE),
    ),
    "|z|**2 at 0": (lambda x: np.abs(number(x)) ** 2, ZERO, (ZERO, 2 * EYE)),
    "z * conj(z) at 0": (lambda x: np.real(number(x) * np.conj(number(x))), ZERO, (ZERO, 2 * EYE)),
    "z**2 at 0": (lambda x: pair(number(x) ** 2), ZERO, holomorphic(0j, 2 + 0j)),
    "z**3": (lambda x: pair(number(x) ** 3), XY, holomorphic(3 * Z**2, 6 * Z)),
    "exp": (lambda x: pair(np.exp(number(x))), XY, holomorphic(np.exp(Z), np.exp(Z))),
    "log": (lambda x: pair(np.log(number(x))), XY, holomorphic(1 / Z, -1 / Z**2)),
    "sqrt": (lambda x: pair(np.sqrt(number(x))), XY, holomorphic(0.5 / np.sqrt(Z), -0.25 / np.sqrt(Z) ** 3)),
    "1 / z": (lambda x: pair(1 / number(x)), XY, holomorphic(-1 / Z**2, 2 / Z**3)),
    "sin": (lambda x: pair(np.sin(number(x))), XY, holomorphic(np.cos(Z), -np.sin(Z))),
    "the angle": (
        lambda x: np.angle(number(x)),
        XY,
        (np.array([0.8, 0.6]), np.array([[2 * 0.6 * -0.8, 0.8**2 - 0.6**2], [0.8**2 - 0.6**2, -2 * 0.6 * -0.8]])),
    ),
    "the angle at the branch cut": (
        lambda x: np.angle(number(x)),
        np.array([-1.0, 0.0]),
        (np.array([0.0, -1.0]), np.array([[0.0, -1.0], [-1.0, 0.0]])),
    ),
    "where beside log of 0": (
        lambda x: np.where(x[0] > 0, np.real(np.log(number(x))), x[0]),
        ZERO,
        (np.array([1.0, 0.0]), np.zeros((2, 2))),
    ),
    "a Hermitian form": (
        lambda x: np.real(np.vdot(np.stack([number(x), 1j + 0 * number(x)]), np.stack([number(x), number(x)]))),
        XY,
        (2 * XY + np.array([0.0, 1.0]), 2 * EYE),
    ),
    "det of a singular complex matrix": (
        lambda x: pair(np.linalg.det(number(x) * np.array([[1, 1j], [-1j, 1]]))),
        XY,
        holomorphic(0j, 0j),
    ),
    "fft": (
        lambda x: np.abs(np.fft.fft(np.stack([x[0], x[1], x[0] * x[1]]))) ** 2,
        XY,
        (np.array([], float),),
    ),
    "grad of |z|**2": (lambda z: np.abs(z) ** 2, 1 + 2j, (2 - 4j,)),
    "grad of the real part": (lambda z: np.real(z), 1 + 2j, (1 + 0j,)),
    "grad of the imaginary part": (lambda z: np.imag(z), 1 + 2j, (-1j,)),
    "grad of |z| at 0": (lambda z: np.abs(z), 0j, (0j,)),
    "a holomorphic function of z": (lambda z: z**3, 1 + 2j, (3 * (1 + 2j) ** 2, 6 * (1 + 2j))),
    "a complex function of a real number": (lambda x: np.exp(1j * x), 0.5, (1j * np.exp(0.5j), -np.exp(0.5j))),
    "a real function of a complex vector": (
        lambda z: np.sum(np.abs(z) ** 2),
        np.array([1 + 2j, -1j]),
        (2 * np.conj(np.array([1 + 2j, -1j])),),
    ),
}  # fmt: skip


def spectrum_derivatives() -> tuple[Any, Any]:
    """Of |fft|**2: with the rows w of the transform, 2 Re(conj(w . y) w . y') and so on, y = (a, b, a b)."""
    a, b = XY
    w = np.exp(-2j * np.pi * np.outer(np.arange(3), np.arange(3)) / 3)
    y, dy = np.array([a, b, a * b]), np.array([[1, 0], [0, 1], [b, a]])
    twice = np.zeros((3, 2, 2))
    twice[2] = [[0, 1], [1, 0]]
    value, slope, curve = w @ y, w @ dy, np.einsum("kj,jab->kab", w, twice)
    first = 2 * np.real(np.conj(value)[:, None] * slope)
    second = 2 * np.real(np.conj(slope)[:, :, None] * slope[:, None, :] + np.conj(value)[:, None, None] * curve)
    return first, second


COMPLEX["fft"] = (*COMPLEX["fft"][:2], spectrum_derivatives())
