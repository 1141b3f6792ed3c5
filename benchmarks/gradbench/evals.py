"""The functions of GradBench's evals hello, lse, llsq, gmm, ode and particle, as one writes them in NumPy.

Their definitions: https://github.com/gradbench/gradbench, ``evals/*/README.md``. The loops are Python's. What a
function is differentiated in comes first; all else it is given, so that nothing that depends on the data is computed
ahead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np


def square(x: Any) -> Any:
    """hello."""
    return x * x


def lse(x: Any) -> Any:
    """log Σ exp(x), without overflow."""
    largest = np.max(x)
    return largest + np.log(np.sum(np.exp(x - largest)))


def llsq(x: Any, t: Any) -> Any:
    """Half the squared distance between sign(t) and the polynomial with coefficients ``x``, over the points ``t``."""
    rest = np.sign(t)
    power = np.ones_like(t)
    for j in range(len(x)):
        rest = rest - x[j] * power
        power = power * t
    return 0.5 * np.sum(rest * rest)


def strict_lower(values: Any, size: int) -> Any:
    """The square matrix with ``values`` below its diagonal, column by column."""
    matrix = np.zeros_like(values, shape=(size, size))
    columns, rows = np.triu_indices(size, 1)
    matrix[rows, columns] = values
    return matrix


def log_sum_exp(values: Any) -> Any:
    """Over the first axis."""
    largest = np.max(values, axis=0)
    return largest + np.log(np.sum(np.exp(values - largest), axis=0))


def gmm(alpha: Any, mu: Any, q: Any, l: Any, x: Any, gamma: Any, m: int) -> Any:  # noqa: E741
    """The log posterior of a Gaussian mixture with a Wishart prior.

    ``alpha`` (K), ``mu`` (K, d), the logarithms ``q`` (K, d) of the diagonals of the inverse covariances' roots, the
    parts ``l`` (K, d (d - 1) / 2) below them, the points ``x`` (n, d), and the prior's parameters.
    """
    (n, d), components = x.shape, len(alpha)
    terms, penalty = [], 0.0
    for k in range(components):
        root = np.diag(np.exp(q[k])) + strict_lower(l[k], d)
        scaled = (x - mu[k]) @ root.T
        volume = np.sum(q[k])
        terms.append(alpha[k] + volume - 0.5 * np.sum(scaled**2, axis=1))
        penalty = penalty + 0.5 * gamma**2 * np.sum(root**2) - m * volume
    freedom = d + m + 1
    log_gamma = 0.25 * d * (d - 1) * math.log(math.pi) + sum(math.lgamma(0.5 * (freedom - j)) for j in range(d))
    prior = components * (freedom * d * (np.log(gamma) - 0.5 * math.log(2)) - log_gamma) - penalty
    fit = np.sum(log_sum_exp(np.stack(terms))) - n * log_sum_exp(alpha)
    return fit - 0.5 * n * d * math.log(2 * math.pi) + prior


def ode(x: Any, steps: int) -> Any:
    """y at t = 2, where y_0' = x_0, y_i' = x_i y_(i-1) and y(0) = 0, by Runge and Kutta's steps of fourth order."""

    def slope(y: Any) -> Any:
        return np.concatenate([x[:1], x[1:] * y[:-1]])

    y, h = np.zeros_like(x), 2.0 / steps
    for _ in range(steps):
        k1 = slope(y)
        k2 = slope(y + 0.5 * h * k1)
        k3 = slope(y + 0.5 * h * k2)
        k4 = slope(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


def ode_last(x: Any, steps: int) -> Any:
    """The last component of `ode`."""
    return ode(x, steps)[-1]


def distance_of_hit(w: Any, derivative: Callable[[Any], Any]) -> Any:
    """particle: the square of where the particle crosses the axis; its force comes from the ``derivative`` given."""

    def from_charge(x: Any, height: Any) -> Any:
        return 1 / np.sqrt((x[0] - 10) ** 2 + (x[1] - height) ** 2)

    def potential(x: Any) -> Any:
        return from_charge(x, 10 - w) + from_charge(x, 0)

    slope = derivative(potential)
    x, v, dt = np.array([0.0, 8.0]), np.array([0.75, 0.0]), 0.1
    while True:
        ahead = x + dt * v
        if ahead[1] <= 0:
            break
        x, v = ahead, v - dt * slope(x)
    at_axis = x - x[1] / v[1] * v
    return at_axis[0] ** 2


def argmin(value: Callable[[float], Any], with_slope: Callable[[float], tuple[Any, Any]], w: float) -> float:
    """Gradient descent whose step doubles after ten successes and halves after a failure."""
    current, slope = with_slope(w)
    step, successes = 1e-5, 0
    while abs(slope) > 1e-5:
        if successes == 10:
            step, successes = step * 2, 0
        ahead = w - step * slope
        if abs(ahead - w) <= 1e-5:
            break
        if value(ahead) < current:
            w, successes = ahead, successes + 1
            current, slope = with_slope(w)
        else:
            step, successes = step / 2, 0
    return float(w)


def generate_gmm(d: int, k: int, n: int, seed: int = 31337) -> dict[str, Any]:
    """Arguments of `gmm`, as drawn by GradBench."""
    random = np.random.default_rng(seed)
    return {
        "x": random.normal(size=(n, d)),
        "mu": random.uniform(size=(k, d)),
        "q": random.normal(size=(k, d)),
        "l": random.normal(size=(k, d * (d - 1) // 2)),
        "alpha": random.normal(size=k),
    }


def points(n: int) -> Any:
    """The points of `llsq`."""
    return -1 + 2 * np.arange(n) / (n - 1)
