"""The hyper-parameters of a Gaussian process by a second-order method of SciPy, on derivatives from srcgrad.

The series is synthetic: a damped oscillation, seen at 80 random times through normal noise of standard deviation 0.15,
drawn from a fixed seed. The process has a squared-exponential covariance; its amplitude, length and noise minimise the
negative log marginal likelihood (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, section 5.4.1).
One call of `cross_check` compares its gradient and Hessian with differences, and with jax's own where jax is installed.
Run it with ``python examples/gaussian_process.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

import srcgrad as sg
from srcgrad.testing import CrossCheck, cross_check

Array = NDArray[Any]

NOISE = 0.15


def signal(times: Array) -> Array:
    return np.exp(-times / 6) * np.sin(2 * times)


def covariance(parameters: Array, first: Array, second: Array) -> Array:
    """The squared-exponential covariance; the parameters are the logarithms of amplitude, length and noise."""
    amplitude, length = np.exp(parameters[0]), np.exp(parameters[1])
    return amplitude**2 * np.exp(-0.5 * ((first[:, None] - second[None, :]) / length) ** 2)


def negative_log_likelihood(parameters: Array, times: Array, values: Array) -> Array:
    noise = np.exp(parameters[2])
    total = covariance(parameters, times, times) + noise**2 * np.eye(len(times))
    factor = np.linalg.cholesky(total)
    whitened = np.linalg.solve(factor, values)
    return 0.5 * whitened @ whitened + np.sum(np.log(np.diagonal(factor))) + 0.5 * len(times) * np.log(2 * np.pi)


def predict(parameters: Array, times: Array, values: Array, at: Array) -> Array:
    """The posterior mean."""
    total = covariance(parameters, times, times) + np.exp(2 * parameters[2]) * np.eye(len(times))
    return covariance(parameters, at, times) @ np.linalg.solve(total, values)


def check(times: Array, values: Array) -> CrossCheck:
    """The first and second derivatives in the parameters, by all that can compute them."""
    return cross_check(negative_log_likelihood, np.log([0.9, 0.7, 0.3]), times, values, argnums=0, order=2)


def main() -> float:
    """Fit; return the root mean square error of the posterior mean on a fine grid, where the truth is known."""
    random = np.random.default_rng(0)
    times = np.sort(random.uniform(0, 10, size=80))
    values = signal(times) + NOISE * random.normal(size=80)

    print(check(times[:12], values[:12]))

    f = negative_log_likelihood
    start = np.log([1.0, 1.0, 0.5])
    result = minimize(f, start, args=(times, values), jac=sg.grad(f), hess=sg.hessian(f), method="trust-exact")
    if not result.success:
        raise RuntimeError(f"The optimiser stopped: {result.message}")

    amplitude, length, noise = np.exp(result.x)
    print(f"negative log-likelihood {f(start, times, values):.3f} -> {result.fun:.3f} in {result.nit} steps")
    print(f"largest slope at the optimum: {np.abs(result.jac).max():.1e}")
    print(f"amplitude {amplitude:.3f}, length {length:.3f}, noise {noise:.3f} (drawn with {NOISE})")
    grid = np.linspace(0, 10, 401)
    error = float(np.sqrt(np.mean((predict(result.x, times, values, grid) - signal(grid)) ** 2)))
    print(f"root mean square error of the posterior mean: {error:.4f}")
    return error


if __name__ == "__main__":
    main()
