"""Functions that generated programs call, where an op's meaning takes more than an expression.

A generated module holds the source text of those it calls: each is a plain, self-contained function that uses its
arguments, builtins, ``np``, ``scipy`` (written out, ``scipy.special.gammaln``; imported inside the function) and other
functions of this file. An op names the ones that its text calls in its class attribute ``helpers``.

A function with a parameter ``reuse`` returns its first argument, updated, with that argument's buffer if ``reuse`` is
true and a copy otherwise. The backend adds ``reuse=True`` to a call where the old value is owned by the program and
never read again.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def slice_set(array: Any, part: Any, region: Any, reuse: bool = False) -> Any:
    """``array`` with the slice ``region`` replaced by ``part``."""
    array = array if reuse else np.array(array)
    array[region] = part
    return array


def scatter_add(array: Any, part: Any, indices: tuple[Any, ...], axis: int, reuse: bool = False) -> Any:
    """``array`` with ``part`` added at index arrays for the axes from ``axis`` on; equal indices add up."""
    array = array if reuse else np.array(array)
    np.add.at(array, (slice(None),) * axis + indices, part)
    return array


def scatter_set(array: Any, part: Any, indices: tuple[Any, ...], axis: int, reuse: bool = False) -> Any:
    """``array`` with ``part`` written at index arrays for the axes from ``axis`` on; of equal indices the last wins."""
    array = array if reuse else np.array(array)
    array[(slice(None),) * axis + indices] = part
    return array


def triangular_solve(a: Any, b: Any, lower: bool, trans: Any, unit: bool) -> Any:
    """Solve op(a) x = b for one triangle of each matrix in ``a``; op is none (N), .T (T) or .conj().T (C)."""
    import scipy.linalg

    x = np.empty_like(b)
    for example in np.ndindex(b.shape[:-2] if b.size else (0,)):
        x[example] = scipy.linalg.solve_triangular(
            a[example], b[example], trans, lower, unit_diagonal=unit, check_finite=False
        )
    return x


def check(predicate: Any, message: str, kind: str) -> None:
    """Raise the error named ``kind`` unless every element of ``predicate`` is true."""
    import builtins

    if not np.all(predicate):
        raise getattr(np.linalg if kind == "LinAlgError" else builtins, kind)(message)


def host_call(sites: Any, site: int, operands: tuple[Any, ...], types: tuple[tuple[str, tuple[int, ...]], ...]) -> Any:
    """Call ``sites[site]``; its results must have the dtypes and shapes of ``types``."""
    found = sites[site](*operands)
    results = (found,) if len(types) == 1 else () if found is None else found
    arrays = [np.asarray(result) for result in results]
    actual = tuple([(array.dtype.name, array.shape) for array in arrays])
    if actual != types:
        raise TypeError(f"host call {site} returned {actual}, not {types}")
    return arrays[0][()] if len(types) == 1 else tuple([array[()] for array in arrays])


def make_complex(real: Any, imag: Any, dtype: Any) -> Any:
    """The complex numbers of two parts. (In ``real + 1j * imag`` an infinite part would make the other one nan.)"""
    result = np.empty(np.broadcast(real, imag).shape, dtype)
    result.real = real
    result.imag = imag
    return result[()]


def pow_log(x: Any, y: Any, n: int) -> Any:
    """x**y * log(x)**n; where x is 0 or infinite and the power is 0, the power wins."""
    power = np.power(x, y)
    logarithm = np.log(x)
    exponent = np.real(y)
    vanishes = ((x == 0) & (exponent > 0)) | (np.isinf(x) & (exponent < 0))
    return np.where(vanishes, 0, power * (logarithm if n == 1 else logarithm**n))[()]


def sinc_derivative(x: Any, n: int) -> Any:
    """The n-th derivative of sin(pi x)/(pi x), n >= 1.

    With f(u) = sin(u)/u, u f⁽ⁿ⁾ = sin⁽ⁿ⁾(u) - n f⁽ⁿ⁻¹⁾. That recurrence divides by u; near 0 the Taylor series of f⁽ⁿ⁾
    is summed instead: the sum over 2k >= n of (-1)ᵏ uᵐ / ((2k + 1) m!), m = 2k - n. The two meet where their errors do.
    """
    dtype = np.asarray(x).dtype
    u = np.pi * np.asarray(x, np.promote_types(dtype, np.float64))
    near = np.abs(u) < 1 + n / 4
    small, large = np.where(near, u, 0), np.where(near, np.inf, u)
    m = n % 2
    k = (n + m) // 2
    power = small**m
    series = np.zeros_like(small)
    for _ in range(20 + n):
        series = series + (-1.0) ** k / (2 * k + 1) * power
        power = power * small * small / ((m + 1) * (m + 2))
        k, m = k + 1, m + 2
    sine, cosine = np.sin(large), np.cos(large)
    derivatives = (sine, cosine, -sine, -cosine)
    closed = sine / large
    for order in range(1, n + 1):
        closed = (derivatives[order % 4] - order * closed) / large
    return (np.where(near, series, closed) * np.pi**n).astype(dtype)[()]


def add_along_axis(updates: Any, indices: Any, axis: int, size: int) -> Any:
    """Zeros to which ``updates`` are added at ``indices`` along ``axis``; of booleans, the disjunction."""
    shape = list(indices.shape)
    shape[axis] = size
    result = np.zeros(shape, updates.dtype)
    places = list(np.ogrid[tuple(slice(length) for length in indices.shape)])
    places[axis] = indices
    np.add.at(result, tuple(places), updates)
    return result
