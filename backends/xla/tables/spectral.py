"""Eigenvalues, singular values and their vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.lax import linalg

from srcgrad.backends.xla.program import Application
from srcgrad.backends.xla.tables import Array, contextual


def converged(application: Application, operand: Array, values: Array) -> None:
    """jax gives nan where LAPACK gives up on finite numbers."""
    failed = jnp.isfinite(operand).all() & jnp.isnan(values).any()
    application.check(~failed, f"{application.operation.op.name} did not converge", "LinAlgError")


@contextual
def eigh(application: Application, a: Array) -> tuple[Array, Array]:
    vectors, values = linalg.eigh(application.from_lower(a), lower=True, symmetrize_input=False)
    converged(application, a, values)
    return values, vectors


@contextual
def eigvalsh(application: Application, a: Array) -> Array:
    return eigh(application, a)[0]


@contextual
def svd(application: Application, a: Array) -> tuple[Array, Array, Array]:
    if not a.size:
        return empty_svd(a, application.attrs["full_matrices"])
    u, s, vh = decomposed(a, application.attrs["full_matrices"])
    converged(application, a, s)
    return u, s, vh


def decomposed(a: Array, full_matrices: bool) -> Sequence[Array]:
    found: Sequence[Array] = linalg.svd(a, full_matrices=full_matrices, compute_uv=True, algorithm=algorithm())
    return found


def algorithm() -> linalg.SvdAlgorithm:
    """Of GPUs that of LAPACK: Jacobi's, which jax takes there, gives values ten times as far from the right ones."""
    return linalg.SvdAlgorithm.QR if jax.default_backend() == "gpu" else linalg.SvdAlgorithm.DEFAULT


def empty_svd(a: Array, full: bool) -> tuple[Array, Array, Array]:
    """Of matrices without elements: unit matrices, as by NumPy."""
    *stack, rows, columns = a.shape
    count = min(rows, columns)
    units = [np.eye(rows, rows if full else count), np.eye(columns if full else count, columns)]
    left, right = (jnp.broadcast_to(jnp.asarray(unit, a.dtype), (*stack, *unit.shape)) for unit in units)
    return left, jnp.zeros((*stack, count), np.empty(0, a.dtype).real.dtype), right


@contextual
def svdvals(application: Application, a: Array) -> Array:
    if not a.size:
        return empty_svd(a, False)[1]
    values = linalg.svd(a, full_matrices=False, compute_uv=False, algorithm=algorithm())
    converged(application, a, values)
    return values


def general(application: Application, a: Array, vectors: bool) -> list[Array]:
    """In double precision, as NumPy: in single precision LAPACK's vectors may have other signs."""
    wide = lax.convert_element_type(a, np.promote_types(a.dtype, np.float64))
    found = linalg.eig(wide, compute_left_eigenvectors=False, compute_right_eigenvectors=vectors)
    converged(application, a, found[0])
    return [lax.convert_element_type(x, np.promote_types(a.dtype, np.complex64)) for x in found]


@contextual
def eig(application: Application, a: Array) -> tuple[Array, Array]:
    values, vectors = general(application, a, True)
    return values, vectors


@contextual
def eigvals(application: Application, a: Array) -> Array:
    return general(application, a, False)[0]


TABLE: Final[dict[str, Callable[..., Any]]] = {
    "eigh": eigh,
    "eigvalsh": eigvalsh,
    "svd": svd,
    "svdvals": svdvals,
    "eig": eig,
    "eigvals": eigvals,
}
