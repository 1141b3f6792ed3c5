"""Rules of the distributions of ``scipy.stats`` of several variables: densities and entropies."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import scipy.special as sc

from srcgrad.errors import ShapeError
from srcgrad.tracing.conversion.effects import emit_check
from srcgrad.tracing.functions.laws import INF, LOG_2PI, Formula, undefined
from srcgrad.tracing.functions.registry import scalar_if_rank0
from srcgrad.tracing.tracer import as_tracer

NEGLIGIBLE: Final = 1e6 * np.finfo(np.float64).eps
"""The part of the largest eigenvalue of a covariance that SciPy takes for 0."""


def normal_log_density(x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
    """Of positive definite covariances, and of semidefinite ones if they are allowed.

    Raises:
        LinAlgError, ValueError: when the program runs, for others.
    """
    place: Any = as_tracer(x)
    centre, spread = normal_parameters(mean, cov)
    size = spread.shape[0]
    if place.ndim == 0 or (place.ndim == 1 and size == 1):
        place = place.reshape((*place.shape, 1))
    away: Any = place - centre
    if allow_singular:
        return squeezed(singular_log_density(away, Spectrum.of(spread)))
    factor: Any = np.linalg.cholesky(spread)
    away = np.linalg.solve(factor, away[..., None])[..., 0]
    volume = np.sum(np.log(np.diag(factor)))
    return squeezed(-0.5 * (size * LOG_2PI + np.sum(away**2, axis=-1)) - volume)


def normal_parameters(mean: Any, cov: Any) -> tuple[Any, Any]:
    """The mean and the covariance as a vector and a matrix: of as many variables as the mean has numbers, or else as
    the covariance has rows.

    Raises:
        ShapeError: they do not fit.
    """
    spread: Any = as_tracer(1.0 if cov is None else cov)
    size = spread.shape[0] if spread.ndim == 2 else 1
    centre: Any = as_tracer(np.zeros(size) if mean is None else mean)
    if mean is not None:
        size = centre.size
    if size == 1 == centre.size == spread.size:
        centre, spread = centre.reshape(1), spread.reshape(1, 1)
    if centre.shape != (size,):
        raise ShapeError(f"the mean must be a vector of {size} numbers, not of the shape {centre.shape}")
    if spread.ndim < 2:
        spread = np.diag(spread) if spread.ndim else spread * np.eye(size)
    if spread.shape != (size, size):
        raise ShapeError(f"the covariance must have the shape {(size, size)}, not {spread.shape}")
    return centre, spread


def squeezed(found: Any) -> Any:
    """A result without axes of length 1, as SciPy returns those of several variables."""
    return scalar_if_rank0(np.squeeze(found))


class Spectrum(NamedTuple):
    """A covariance that may be singular, in double precision as SciPy's."""

    matrix: Any
    vectors: Any
    kept: Any
    """Which eigenvalues count."""
    cut: Any
    log_volume: Any
    """The logarithm of the product of those."""

    @classmethod
    def of(cls, matrix: Any) -> Spectrum:
        matrix = matrix.astype(np.float64)
        values, vectors = np.linalg.eigh(matrix)
        cut = NEGLIGIBLE * np.max(np.abs(values))
        message = "The input matrix must be symmetric positive semidefinite."
        emit_check(np.min(values) >= -cut, "ValueError", message)
        kept = values > cut
        return cls(matrix, vectors, kept, cut, np.sum(np.log(np.where(kept, values, 1.0))))


def singular_log_density(away: Any, spread: Spectrum) -> Any:
    """Of what lies in the space of the eigenvectors that count; 0 has no logarithm elsewhere."""
    inverse = np.linalg.pinv(spread.matrix, NEGLIGIBLE, hermitian=True)
    rank = np.sum(spread.kept)
    found = -0.5 * (rank * LOG_2PI + spread.log_volume + np.sum((away @ inverse) * away, axis=-1))
    beside = np.sqrt(np.sum(np.where(spread.kept, 0.0, away @ spread.vectors) ** 2, axis=-1))
    return np.where((beside < 1e3 * spread.cut) | np.all(spread.kept), found, -INF)


def normal_entropy(mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
    _, spread = normal_parameters(mean, cov)
    if allow_singular:
        spectrum = Spectrum.of(spread)
        return 0.5 * (np.sum(spectrum.kept) * (LOG_2PI + 1) + spectrum.log_volume)
    return 0.5 * (spread.shape[0] * (LOG_2PI + 1) + np.linalg.slogdet(spread)[1])


def dirichlet_log_density(x: Any, alpha: Any) -> Any:
    place: Any = as_tracer(x)
    weights: Any = as_tracer(alpha)
    if place.shape[0] == weights.shape[0] - 1:
        place = np.concatenate([place, 1.0 - np.sum(place, axis=0, keepdims=True)])
    total = np.sum(sc.gammaln(weights)) - sc.gammaln(np.sum(weights))
    powers = weights.reshape((-1,) + (1,) * (place.ndim - 1)) - 1
    return squeezed(np.sum(sc.xlogy(powers, place), axis=0) - total)


def multinomial_log_density(x: Any, n: Any, p: Any) -> Any:
    """The last probability is what the others leave, as in SciPy."""
    counts: Any = as_tracer(x)
    chances: Any = as_tracer(p)
    rest: Any = 1.0 - np.sum(chances[..., :-1], axis=-1, keepdims=True)
    last = np.where(np.abs(rest) > np.finfo(np.float64).eps, rest, chances[..., -1:])
    chances = np.concatenate([chances[..., :-1], last], axis=-1)
    found = sc.gammaln(as_tracer(n) + 1.0) + np.sum(sc.xlogy(counts, chances) - sc.gammaln(counts + 1.0), axis=-1)
    possible = (np.sum(counts, axis=-1) == n) & np.all((counts >= 0) & (np.floor(counts) == counts), axis=-1)
    proper = np.all((chances >= 0) & (chances <= 1), axis=-1)
    nowhere = undefined(np.sum(counts, axis=-1), n, np.sum(chances, axis=-1))
    return scalar_if_rank0(np.where(proper, np.where(possible, found, -INF), nowhere))


MULTIVARIATE: Final[dict[str, dict[str, Formula]]] = {
    "multivariate_normal": {
        "logpdf": normal_log_density,
        "pdf": lambda *args, **kwargs: np.exp(normal_log_density(*args, **kwargs)),
        "entropy": normal_entropy,
    },
    "dirichlet": {
        "logpdf": dirichlet_log_density,
        "pdf": lambda *args, **kwargs: np.exp(dirichlet_log_density(*args, **kwargs)),
    },
    "multinomial": {
        "logpmf": multinomial_log_density,
        "pmf": lambda *args, **kwargs: np.exp(multinomial_log_density(*args, **kwargs)),
    },
}
