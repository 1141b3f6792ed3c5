"""Determinants, inverses, factorisations, least squares and functions of matrices."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np
from jax.lax import linalg

from srcgrad.backends.xla.callbacks import call_back
from srcgrad.backends.xla.program import Application
from srcgrad.backends.xla.tables import Array, contextual
from srcgrad.backends.xla.tables.solvers import diagonal
from srcgrad.backends.xla.tables.spectral import decomposed

INT64: Final = np.dtype(np.int64)
SQUARINGS: Final = 32
"""How often jax may halve a matrix before it takes the exponential: a norm of 2**32 is far above any that is finite."""


def adjoint(x: Array) -> Array:
    return jnp.conj(x).mT


def for_each_matrix(condition: Array) -> Array:
    return condition[..., None, None]


# --- inverses and determinants ----------------------------------------------------------------------------------------


def inverse_and_singular(a: Array) -> tuple[Array, Array]:
    """The inverse of each matrix by its LU factors, and whether a pivot is zero."""
    factors, _, order = linalg.lu(a)
    exchanged = (order[..., None] == jnp.arange(a.shape[-1])).astype(a.dtype)
    lower = linalg.triangular_solve(factors, exchanged, left_side=True, lower=True, unit_diagonal=True)
    return linalg.triangular_solve(factors, lower, left_side=True, lower=False), (diagonal(factors) == 0).any(-1)


@contextual
def inv(application: Application, a: Array) -> Array:
    if not a.size:
        return a
    inverse, singular = inverse_and_singular(a)
    if application.attrs["strict"]:
        application.check(~singular, "Singular matrix", "LinAlgError")
        return inverse
    return jnp.where(for_each_matrix(singular), np.array(np.nan, a.dtype), inverse)


def slogdet_gradient(a: Array) -> Array:
    if not a.size:
        return a
    inverse, singular = inverse_and_singular(a)
    return jnp.where(for_each_matrix(singular), det_derivative(a) / np.zeros((), a.dtype), inverse.mT)


def det_derivative(a: Array, *directions: Array) -> Array:
    """See the function of the NumPy backend."""
    size, order = a.shape[-1], len(directions) + 1
    if order > size or not a.size:
        return jnp.zeros_like(a)
    if size == 1:
        return jnp.ones_like(a)
    if size <= 3:
        cofactors = minors(*([a] * (size - order)), *directions)
        return cofactors / np.array(2, a.dtype) if size == 3 and order == 1 else cofactors
    finite = for_each_matrix(jnp.isfinite(a).all((-2, -1)))
    u, s, vh = decomposed(jnp.where(finite, a, jnp.zeros_like(a)), True)
    rotated = [adjoint(u) @ h @ adjoint(vh) for h in directions]
    core = mixed_discriminant(leave_out_products(s, order).astype(a.dtype), rotated)
    phase = for_each_matrix(jnp.linalg.det(u) * jnp.linalg.det(vh))
    return jnp.where(finite, phase * (jnp.conj(u) @ core @ jnp.conj(vh)), np.array(np.nan, a.dtype))


def minors(x: Array, y: Array | None = None) -> Array:
    """The cofactors of a matrix of two rows; of three rows, their double as a symmetric function of two factors."""
    if y is None:
        rows = ([x[..., 1, 1], -x[..., 1, 0]], [-x[..., 0, 1], x[..., 0, 0]])
        return jnp.stack([jnp.stack(row, -1) for row in rows], -2)
    pairs = [(k - 2, k - 1) for k in range(3)]
    crossed = [jnp.cross(x[..., i, :], y[..., j, :]) + jnp.cross(y[..., i, :], x[..., j, :]) for i, j in pairs]
    return jnp.stack(crossed, -2)


def leave_out_products(s: Array, order: int) -> Array:
    """For each ``order`` distinct indices, the product of the elements of ``s`` at all others; 0 if two are equal."""
    size, stack = s.shape[-1], s.shape[:-1]
    rows = []
    for start in range(size + 1):
        zeros, one = jnp.zeros((*stack, start), s.dtype), jnp.ones((*stack, 1), s.dtype)
        rows.append(jnp.concatenate([zeros, one, jnp.cumprod(s[..., start:], axis=-1)], axis=-1))
    between = jnp.stack(rows, -2)
    left_out = np.sort(np.indices((size,) * order), axis=0)
    products = between[..., 0, left_out[0]]
    for k in range(1, order):
        products = products * between[..., left_out[k - 1] + 1, left_out[k]]
    return products * between[..., left_out[-1] + 1, size]


def mixed_discriminant(products: Array, directions: Sequence[Array]) -> Array:
    """The array C with sum(C * h) the sum over permutations of products of the directions and h; see the helper."""
    order = len(directions) + 1
    rows = "abcdefghijklmnopqrstuvwxyz"[:order]
    size = products.shape[-1]
    total = jnp.zeros((*products.shape[: products.ndim - order], size, size), products.dtype)
    identity = jnp.eye(size, dtype=products.dtype)
    for permutation in itertools.permutations(range(order)):
        odd = sum(first > second for first, second in itertools.combinations(permutation, 2)) % 2
        columns = [rows[k] for k in permutation]
        inputs = [f"...{row}{column}" for row, column in zip(rows, columns[:-1], strict=False)]
        is_diagonal = columns[-1] == rows[-1]
        output = rows[-1] if is_diagonal else rows[-1] + columns[-1]
        term = jnp.einsum(f"{','.join([f'...{rows}', *inputs])}->...{output}", products, *directions)
        term = term[..., None] * identity if is_diagonal else term
        total = total - term if odd else total + term
    return total


# --- factorisations and least squares ---------------------------------------------------------------------------------


@contextual
def qr(application: Application, a: Array) -> Any:
    found = jnp.linalg.qr(a, mode=application.attrs["mode"])
    return found if application.attrs["mode"] == "r" else tuple(found)


def lu(a: Array) -> tuple[Array, Array]:
    factors, pivots, _ = linalg.lu(a)
    return factors, pivots


def permutation_of_pivots(pivots: Array, size: int) -> Array:
    return linalg.lu_pivots_to_permutation(pivots, size).astype(INT64)


def pinv(a: Array, rcond: float, hermitian: bool) -> Array:
    if not a.size:
        return jnp.zeros((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)
    return jnp.linalg.pinv(a, rtol=rcond, hermitian=hermitian)


def lstsq(a: Array, b: Array, rcond: float) -> Array:
    """By the singular values of A, without those below the cut-off."""
    if not a.size or not b.size:
        return jnp.zeros((*a.shape[:-2], a.shape[-1], b.shape[-1]), b.dtype)
    u, s, vh = decomposed(a, False)
    kept = s > np.array(rcond, s.dtype) * s[..., :1]
    inverse = jnp.where(kept, 1 / jnp.where(kept, s, jnp.ones_like(s)), jnp.zeros_like(s)).astype(a.dtype)
    return adjoint(vh) @ (inverse[..., None] * (adjoint(u) @ b))


# --- functions of matrices --------------------------------------------------------------------------------------------


@contextual
def matrix_function(application: Application, a: Array) -> Any:
    """jax has the exponential; the other functions are called back."""
    if application.attrs["kind"] != "exp":
        return call_back(application, a)[0]
    if not a.size:
        return a
    return jax.scipy.linalg.expm(a, max_squarings=SQUARINGS)


@contextual
def matrix_function_derivative(application: Application, a: Array, h: Array) -> Any:
    if application.attrs["kind"] != "exp":
        return call_back(application, a, h)[0]
    if not a.size:
        return a
    frechet = functools.partial(jax.scipy.linalg.expm_frechet, compute_expm=False)
    return jnp.vectorize(frechet, signature="(n,n),(n,n)->(n,n)")(a, h)


TABLE: Final[dict[str, Callable[..., Any]]] = {
    "det": jnp.linalg.det,
    "det_derivative": det_derivative,
    "inv": inv,
    "lstsq": lstsq,
    "lu": lu,
    "matrix_function": matrix_function,
    "matrix_function_derivative": matrix_function_derivative,
    "permutation_of_pivots": permutation_of_pivots,
    "pinv": pinv,
    "qr": qr,
    "slogdet": lambda a: tuple(jnp.linalg.slogdet(a)),
    "slogdet_gradient": slogdet_gradient,
}
