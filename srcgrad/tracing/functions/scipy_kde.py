"""The rule of ``scipy.stats.gaussian_kde``: of traced data, weights or bandwidths, and of numbers at traced places.

Importing this module imports SciPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as sc
import scipy.stats

from srcgrad.errors import ShapeError, UnsupportedError
from srcgrad.tracing.conversion.calls import call, call_rule
from srcgrad.tracing.functions.registry import as_array, cast, inexact_dtype, scalar_if_rank0
from srcgrad.tracing.tracer import contains_tracer


class Estimate:
    """A mean of normal densities around data, with a share of their covariance."""

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None) -> None:
        self.dataset = np.atleast_2d(floats(dataset))
        self.d, self.n = self.dataset.shape
        if weights is None:
            self.weights: Any = np.full(self.n, 1.0 / self.n)
        else:
            self.weights = floats(weights) / np.sum(floats(weights))
        self.neff = 1.0 / np.sum(self.weights**2)
        self.factor = self.bandwidth(bw_method)
        self.covariance = np.atleast_2d(np.cov(self.dataset, aweights=self.weights)) * self.factor**2

    @classmethod
    def of(cls, estimate: Any) -> Estimate:
        """One of SciPy's."""
        return cls(estimate.dataset, estimate.factor, estimate.weights)

    def bandwidth(self, method: Any) -> Any:
        if method is None or (isinstance(method, str) and method == "scott"):
            return self.scotts_factor()
        if isinstance(method, str) and method == "silverman":
            return self.silverman_factor()
        if isinstance(method, str):
            raise UnsupportedError("`bw_method` should be 'scott', 'silverman', a scalar or a callable.")
        return call(method, self) if callable(method) else method

    def scotts_factor(self) -> Any:
        return self.neff ** (-1.0 / (self.d + 4))

    def silverman_factor(self) -> Any:
        return (self.neff * (self.d + 2.0) / 4.0) ** (-1.0 / (self.d + 4))

    def log_parts(self, x: Any) -> Any:
        """The logarithm of what each of the data adds to the density, by place."""
        places = np.atleast_2d(floats(x))
        if places.shape[0] != self.d:
            if places.shape[0] != 1 or places.shape[1] != self.d:
                raise ShapeError(f"points have dimension {places.shape[0]}, dataset has dimension {self.d}")
            places = places.reshape(self.d, 1)
        root = np.linalg.cholesky(self.covariance)
        away = (places[:, None, :] - self.dataset[:, :, None]).reshape(self.d, -1)
        length = np.sum(np.linalg.solve(root, away) ** 2, axis=0).reshape(self.n, -1)
        volume = np.sum(np.log(np.diag(root))) + 0.5 * self.d * np.log(2.0 * np.pi)
        return np.log(self.weights)[:, None] - 0.5 * length - volume

    def evaluate(self, points: Any) -> Any:
        return np.sum(np.exp(self.log_parts(points)), axis=0)

    __call__ = pdf = evaluate

    def logpdf(self, x: Any) -> Any:
        return call(sc.logsumexp, self.log_parts(x), axis=0)

    def integrate_box_1d(self, low: Any, high: Any) -> Any:
        """Of one variable, between two places."""
        if self.d != 1:
            raise ShapeError("integrate_box_1d() only handles 1D pdfs")
        spread = np.sqrt(self.covariance[0, 0])
        ends = [sc.ndtr((end - self.dataset[0]) / spread) for end in (as_array(low), as_array(high))]
        return scalar_if_rank0(np.sum(self.weights * (ends[1] - ends[0])))


def floats(x: Any) -> Any:
    found = as_array(x)
    return cast(found, inexact_dtype(found.dtype))


@call_rule(scipy.stats.gaussian_kde)
def gaussian_kde(dataset: Any, bw_method: Any = None, weights: Any = None) -> Any:
    traced = contains_tracer(dataset) or contains_tracer(bw_method) or contains_tracer(weights)
    return (Estimate if traced else scipy.stats.gaussian_kde)(dataset, bw_method, weights)


def of_method(method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method of one of SciPy's that is given traced values."""
    found = getattr(Estimate.of(method.__self__), method.__name__, None)
    if found is None:
        raise UnsupportedError(f"scipy.stats.gaussian_kde.{method.__name__} has no derivative rule in srcgrad")
    return found(*args, **kwargs)
