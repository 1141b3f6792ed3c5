"""Rules of ``scipy.spatial.distance``, found by the function that is called.

Importing this module imports SciPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.special
from scipy.spatial import distance

from srcgrad.errors import ShapeError, UnsupportedError
from srcgrad.tracing.functions.registry import as_array, cast, function_rule, refuse, require, scalar_if_rank0
from srcgrad.tracing.tracer import FUNCTIONS, emit

Metric = Callable[..., Any]
for _function in (distance.num_obs_y, distance.num_obs_dm, distance.is_valid_y, distance.is_valid_dm):  # of constants
    FUNCTIONS[_function] = _function


def weighted(x: Any, w: Any) -> Any:
    return x if w is None else x * w


def length(x: Any) -> Any:
    """The Euclidean norm along the last axis, of which the derivative at 0 is 0."""
    return np.linalg.norm(x, axis=-1)


def cosine(u: Any, v: Any, w: Any = None) -> Any:
    if w is not None:
        w = w / np.sum(w)
    both = np.sum(weighted(u * v, w), axis=-1)
    if w is None:
        return 1.0 - both / (length(u) * length(v))
    root = np.sqrt(w)
    return 1.0 - both / (length(u * root) * length(v * root))


def correlation(u: Any, v: Any, w: Any = None, centered: bool = True) -> Any:
    if centered:
        share = None if w is None else w / np.sum(w)
        u, v = (
            x - (np.mean(x, axis=-1, keepdims=True) if share is None else np.sum(x * share, axis=-1, keepdims=True))
            for x in (u, v)
        )
    return cosine(u, v, w)


def canberra(u: Any, v: Any, w: Any = None) -> Any:
    total = np.abs(u) + np.abs(v)
    parts = np.where(total > 0, np.abs(u - v) / np.where(total > 0, total, 1.0), 0.0)
    return np.sum(weighted(parts, w), axis=-1)


def minkowski(u: Any, v: Any, p: Any = 2, w: Any = None) -> Any:
    if p == 2:
        return length((u - v) if w is None else (u - v) * np.sqrt(w))
    if p == np.inf:
        return np.max(weighted(np.abs(u - v), None if w is None else w > 0), axis=-1)
    if p == 0:  # of many vectors SciPy takes it for what the formula says
        return np.sum(weighted(np.abs(u - v) ** 0.0, w), axis=-1) ** np.inf
    if w is not None:
        return np.linalg.norm((u - v) * w ** (1.0 / p), p, axis=-1)
    return np.linalg.norm(u - v, p, axis=-1)


def minkowski_of_two(u: Any, v: Any, p: Any = 2, w: Any = None) -> Any:
    require(~(as_array(p) <= 0), "ValueError", "p must be greater than 0")
    return minkowski(u, v, p, w)


def mahalanobis(u: Any, v: Any, VI: Any) -> Any:
    away = u - v
    return emit("kinked_sqrt", as_array(np.sum(away @ as_array(VI) * away, axis=-1)))


METRICS: Final[dict[str, Metric]] = {
    "euclidean": lambda u, v, w=None: minkowski(u, v, 2, w),
    "sqeuclidean": lambda u, v, w=None: np.sum(weighted((u - v) ** 2, w), axis=-1),
    "cityblock": lambda u, v, w=None: np.sum(weighted(np.abs(u - v), w), axis=-1),
    "chebyshev": lambda u, v, w=None: minkowski(u, v, np.inf, w),
    "cosine": cosine,
    "correlation": correlation,
    "canberra": canberra,
    "braycurtis": lambda u, v, w=None: (
        np.sum(weighted(np.abs(u - v), w), axis=-1) / np.sum(weighted(np.abs(u + v), w), axis=-1)
    ),
    "minkowski": minkowski,
    "seuclidean": lambda u, v, V: length((u - v) / np.sqrt(as_array(V))),
    "mahalanobis": mahalanobis,
}
NEEDED: Final = {"seuclidean": "V", "mahalanobis": "VI"}
"""What SciPy else estimates from the observations."""


def floats(x: Any) -> Any:
    found = as_array(x)
    return cast(found, np.result_type(found.dtype, np.float64))


def checked_weights(w: Any) -> Any:
    """A vector of numbers none of which is negative, which is known when the program runs."""
    found = floats(w)
    if found.ndim != 1:
        raise ShapeError("Weights must be a vector (ndim = 1)")
    require(np.all(found >= 0), "ValueError", "Input weights should be all non-negative")
    return found


def of_vectors(metric: Metric) -> Metric:
    """The rule of a function of two vectors."""

    def rule(u: Any, v: Any, *args: Any, **kwargs: Any) -> Any:
        x, y = floats(u), floats(v)
        if x.ndim != 1 or y.ndim != 1:
            raise ShapeError("Input vector should be 1-D.")
        options = {
            name: checked_weights(value) if name == "w" and value is not None else value
            for name, value in kwargs.items()
        }
        return scalar_if_rank0(metric(x, y, *args, **options))

    return rule


for _name, _metric in {**METRICS, "minkowski": minkowski_of_two}.items():
    function_rule(getattr(distance, _name))(of_vectors(_metric))


@function_rule(distance.jensenshannon)
def jensenshannon(p: Any, q: Any, base: Any = None, *, axis: int = 0, keepdims: bool = False) -> Any:
    """The root of the mean divergence from the mean of both; of equal ones the derivative is 0, as that of a length."""
    x, y = (part / np.sum(part, axis=axis, keepdims=True) for part in (floats(p), floats(q)))
    mean = (x + y) / 2.0
    parts = [scipy.special.rel_entr(part, mean) for part in (x, y)]
    total = sum(np.sum(part, axis=axis, keepdims=keepdims) for part in parts)
    return scalar_if_rank0(emit("kinked_sqrt", as_array((total if base is None else total / np.log(base)) / 2.0)))


def metric_of(metric: Any, options: dict[str, Any]) -> Metric:
    """The function of two stacks of vectors that a name stands for, with its options.

    Raises:
        UnsupportedError: there is none.
    """
    name = {"cosine": "cosine", "l2": "euclidean", "l1": "cityblock", "manhattan": "cityblock"}.get(metric, metric)
    if not isinstance(name, str) or name not in METRICS:
        raise UnsupportedError(
            f"scipy.spatial.distance with metric={metric!r} is not supported on traced arrays",
            hint=f"there are {', '.join(METRICS)}",
        )
    if name in NEEDED and options.get(NEEDED[name]) is None:
        raise UnsupportedError(f"the metric {name!r} of traced arrays needs {NEEDED[name]}", hint="pass it")
    given = {
        key: checked_weights(value) if key == "w" and value is not None else value for key, value in options.items()
    }
    return lambda u, v: METRICS[name](u, v, **given)


@function_rule(distance.cdist)
def cdist(XA: Any, XB: Any, metric: Any = "euclidean", *, out: Any = None, **kwargs: Any) -> Any:
    refuse("scipy.spatial.distance.cdist", out=(out, None))
    x, y = floats(XA), floats(XB)
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1]:
        raise ShapeError(f"XA and XB must be 2-D with as many columns each, not {x.shape} and {y.shape}")
    return metric_of(metric, kwargs)(x[:, None, :], y[None, :, :])


@function_rule(distance.pdist)
def pdist(X: Any, metric: Any = "euclidean", *, out: Any = None, **kwargs: Any) -> Any:
    refuse("scipy.spatial.distance.pdist", out=(out, None))
    x = floats(X)
    if x.ndim != 2:
        raise ShapeError("A 2-dimensional array must be passed.")
    rows, columns = np.triu_indices(x.shape[0], 1)
    return metric_of(metric, kwargs)(x[rows], x[columns])


@function_rule(distance.squareform)
def squareform(X: Any, force: str = "no", checks: bool = True) -> Any:
    """The matrix of a vector of distances, and back."""
    x = as_array(X)
    if x.ndim == 1 and force != "tovector":
        size = int(np.ceil(np.sqrt(2.0 * x.shape[0]))) if x.shape[0] else 1
        if size * (size - 1) != 2 * x.shape[0]:
            raise ShapeError(
                "Incompatible vector size. It must be a binomial coefficient n choose 2 for some integer n >= 2."
            )
        found = np.zeros((size, size), x.dtype) + np.zeros_like(x, shape=(size, size))
        rows, columns = np.triu_indices(size, 1)
        found[rows, columns] = x
        found[columns, rows] = x
        return found
    if x.ndim != 2 or x.shape[0] != x.shape[1] or force == "tomatrix":
        raise ShapeError(f"squareform takes a vector or a square matrix, not the shape {x.shape}")
    return x[np.triu_indices(x.shape[0], 1)]
