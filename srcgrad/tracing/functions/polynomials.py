"""Polynomials as vectors of coefficients, the highest power first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from srcgrad.errors import DTypeError, ShapeError
from srcgrad.tracing.functions.joining import vander
from srcgrad.tracing.functions.registry import as_array, cast, filled, known_nonzeros, numpy_rule
from srcgrad.tracing.tracer import as_tracer, emit


@numpy_rule("polyval")
def polyval(p: Any, x: Any) -> Any:
    """Horner's rule."""
    coefficients: Any = as_array(p)
    place: Any = as_tracer(x)
    value: Any = filled(place.shape, 0, place.dtype)
    for k in range(coefficients.shape[0]):
        value = value * place + coefficients[k]
    return value


@numpy_rule("polyder")
def polyder(p: Any, m: int = 1) -> Any:
    coefficients: Any = as_array(p)
    if m < 0:
        raise ShapeError("Order of derivative must be positive (see polyint)")
    for _ in range(m):
        degree = coefficients.shape[0] - 1
        coefficients = coefficients[:-1] * np.arange(degree, 0, -1)
    return coefficients


@numpy_rule("polyint")
def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    coefficients: Any = as_array(p)
    if m < 0:
        raise ShapeError("Order of integral must be positive (see polyder)")
    constants: Any = np.zeros(m) if k is None else np.broadcast_to(as_array(k), (m,))
    for step in range(m):
        size = coefficients.shape[0]
        head = coefficients / np.arange(size, 0, -1)
        coefficients = np.concatenate([head, as_array(constants[step : step + 1])])
    return coefficients


def aligned_sum(a1: Any, a2: Any, sign: int) -> Any:
    left, right = np.atleast_1d(as_array(a1)), np.atleast_1d(as_array(a2))
    size = max(len(left), len(right))
    left, right = (
        np.concatenate([filled((size - len(part),), 0, part.dtype), part]) if len(part) < size else part
        for part in (left, right)
    )
    return left + right if sign > 0 else left - right


@numpy_rule("polyadd")
def polyadd(a1: Any, a2: Any) -> Any:
    return aligned_sum(a1, a2, 1)


@numpy_rule("polysub")
def polysub(a1: Any, a2: Any) -> Any:
    return aligned_sum(a1, a2, -1)


def without_leading_zeros(a: Any) -> Any:
    """The coefficients from the first that is not 0, which the numbers decide; a single 0 if all are.

    Raises:
        NeedsConcrete: they are traced, in an abstract trace.
    """
    coefficients: Any = np.atleast_1d(as_array(a))
    if coefficients.ndim > 1:
        raise ShapeError("Polynomial must be 1d only.")
    nonzero = np.flatnonzero(
        known_nonzeros(coefficients, "np.polymul, which drops leading zeros (np.convolve does not),")
    )
    return coefficients[nonzero[0] :] if nonzero.size else filled((1,), 0, coefficients.dtype)


@numpy_rule("polymul")
def polymul(a1: Any, a2: Any) -> Any:
    return np.convolve(without_leading_zeros(a1), without_leading_zeros(a2))


@numpy_rule("polydiv")
def polydiv(u: Any, v: Any) -> tuple[Any, Any]:
    """The quotient and the remainder, which has no leading zeros: its length depends on the numbers."""
    numerator, denominator = as_array(u).ravel() + 0.0, as_array(v).ravel() + 0.0
    dtype = np.result_type(numerator.dtype, denominator.dtype)
    count, length = numerator.size - denominator.size + 1, denominator.size
    scale = 1.0 / denominator[0]
    quotient: Any = filled((max(count, 1),), 0, dtype)
    rest: Any = cast(numerator, dtype).copy()
    for k in range(count):
        factor = scale * rest[k]
        quotient[k] = factor
        rest[k : k + length] -= factor * denominator
    close: Any = np.isclose(rest, 0, rtol=1e-14)
    present = np.flatnonzero(~np.asarray(close.concrete("np.polydiv")))
    return quotient, rest[present[0] if present.size else rest.size - 1 :]


@numpy_rule("poly")
def poly(seq_of_zeros: Any) -> Any:
    """The coefficients from the roots, or the characteristic polynomial of a matrix."""
    x: Any = as_array(seq_of_zeros)
    if x.ndim == 0:
        x = x.reshape(1)
    if x.ndim == 2 and x.shape[0] == x.shape[1] and x.shape[0]:
        eigenvalues: Any = np.linalg.eigvals(x)
        value = from_roots(emit("stop_gradient", eigenvalues), real=x.dtype.kind != "c")
        exact = characteristic(cast(x, np.float64) if x.dtype.kind in "biu" else x)
        # NumPy's number, and the derivative of the coefficients as polynomials in the elements.
        return value + (exact - emit("stop_gradient", exact)).astype(value.dtype)
    if x.ndim != 1:
        raise ShapeError("input must be 1d or non-empty square 2d array.")
    return from_roots(cast(x, np.float64) if x.dtype.kind in "biu" else x) if x.size else 1.0


def characteristic(a: Any) -> Any:
    """The coefficients of det(t - a) by the recurrence of Faddeev and LeVerrier: no eigenvalues are taken.

    Their derivatives in ``a`` are infinite at matrices without a basis of eigenvectors; those of the coefficients are
    polynomials.
    """
    eye = np.eye(a.shape[0], dtype=a.dtype)
    coefficients = [filled((), 1, a.dtype)]
    product: Any = np.zeros_like(a)
    for k in range(1, a.shape[0] + 1):
        product = a @ (product + coefficients[-1] * eye)
        coefficients.append(-np.trace(product) / k)
    return np.stack(coefficients)


def from_roots(
    x: Any, real: bool = False, sorted_part: Callable[[Any], Any] = lambda roots: roots, name: str = "np.poly"
) -> Any:
    """The coefficients of the product of ``t - root``.

    They are real if the roots are pairs of conjugates, which ``real`` says; else the roots' numbers are looked at:
    of the ``sorted_part`` of them, each is that of a conjugate.
    """
    one: Any = filled((1,), 1, x.dtype)
    result = one
    for k in range(x.size):
        result = np.convolve(result, np.concatenate([one, -x[k : k + 1]]))
    if x.dtype.kind == "c":
        if real:
            return result.real.copy()
        pairs: Any = np.all(np.sort(sorted_part(x)) == np.sort(sorted_part(x.conj())))
        if pairs.concrete(f"{name} of complex roots"):
            return result.real.copy()
    return result


@numpy_rule("roots")
def roots(p: Any) -> Any:
    """The eigenvalues of the companion matrix. Which coefficients are zero decides how many roots there are."""
    x: Any = as_array(p)
    x = x.reshape(1) if not x.ndim else x
    if x.ndim != 1:
        raise ShapeError("Input must be a rank-1 array.")
    present = np.flatnonzero(known_nonzeros(x, "np.roots"))
    if not present.size:
        return np.array([])
    trailing = x.size - int(present[-1]) - 1
    x = x[int(present[0]) : int(present[-1]) + 1]
    x = cast(x, np.float64) if x.dtype.kind in "biu" else x
    if x.size > 1:
        first = -x[1:] / x[0]
        below = np.eye(x.size - 2, x.size - 1, dtype=x.dtype)
        found: Any = np.linalg.eigvals(np.concatenate([first[None], below]))
    else:
        found = filled((0,), 0, x.dtype)
    return np.concatenate([found, np.zeros(trailing, found.dtype)]) if trailing else found


@numpy_rule("polyfit")
def polyfit(x: Any, y: Any, deg: Any, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False) -> Any:
    """Least squares in the powers of ``x``, each scaled to length 1."""
    order = int(deg) + 1
    places, rhs = as_array(x) + 0.0, as_array(y) + 0.0
    if deg < 0:
        raise ShapeError("expected deg >= 0")
    if places.ndim != 1 or not places.size:
        raise DTypeError("expected non-empty 1D vector for x")
    if rhs.ndim not in (1, 2) or rhs.shape[0] != places.shape[0]:
        raise DTypeError("expected 1D or 2D array for y, with as many rows as x has elements")
    if rcond is None:
        rcond = len(places) * np.finfo(places.dtype).eps
    lhs: Any = vander(places, order)
    if w is not None:
        weights: Any = as_array(w) + 0.0
        if weights.shape != (rhs.shape[0],):
            raise DTypeError("expected a 1-d array for weights, as long as y")
        lhs = lhs * weights[:, None]
        rhs = rhs * (weights[:, None] if rhs.ndim == 2 else weights)
    scale = np.sqrt((lhs * lhs).sum(axis=0))
    lhs = lhs / scale
    c, residuals, rank, singular = np.linalg.lstsq(lhs, rhs, rcond)
    c = (c.T / scale).T
    if full:
        return c, residuals, rank, singular, rcond
    if not cov:
        return c
    base = np.linalg.inv(np.dot(lhs.T, lhs)) / np.outer(scale, scale)
    factor: Any = 1
    if not (isinstance(cov, str) and cov == "unscaled"):
        if len(places) <= order:
            raise ShapeError("the number of data points must exceed order to scale the covariance matrix")
        factor = residuals / (len(places) - order)
    return c, base * factor if rhs.ndim == 1 else base[:, :, None] * factor
