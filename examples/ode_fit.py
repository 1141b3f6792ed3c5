"""The parameters of a predator-prey model from noisy observations, by Gauss-Newton on a Jacobian through the solver.

The model is that of Lotka and Volterra; it is integrated by the classical Runge-Kutta method of fourth order, as a
plain loop. The observations are synthetic: the solution at known parameters, times log-normal noise from a fixed seed.
One call of `cross_check` compares the Jacobian with differences, and with jax's own where jax is installed. Run it with
``python examples/ode_fit.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import srcgrad as sg
from srcgrad.testing import CrossCheck, cross_check

Array = NDArray[Any]

TRUTH = np.array([1.1, 0.4, 0.4, 0.1])
"""Growth of the prey, predation, death and growth of the predators."""
START = np.array([4.0, 3.0])
STEP, STEPS = 0.4, 30
NOISE = 0.01


def rates(state: Array, parameters: Array) -> Array:
    meetings = state[0] * state[1]
    prey = parameters[0] * state[0] - parameters[1] * meetings
    predators = parameters[3] * meetings - parameters[2] * state[1]
    return np.stack([prey, predators])


def solve(parameters: Array, steps: int = STEPS) -> Array:
    """The states after each step, a row each."""
    state = START
    states = []
    for _ in range(steps):
        k1 = rates(state, parameters)
        k2 = rates(state + STEP / 2 * k1, parameters)
        k3 = rates(state + STEP / 2 * k2, parameters)
        k4 = rates(state + STEP * k3, parameters)
        state = state + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        states.append(state)
    return np.stack(states)


def residuals(parameters: Array, observed: Array) -> Array:
    """How far the logarithms of the solution are from those of the observations."""
    return np.log(solve(parameters, len(observed)) / observed).ravel()


def observations() -> Array:
    noise = np.random.default_rng(0).normal(size=(STEPS, 2))
    return solve(TRUTH) * np.exp(NOISE * noise)


def check(observed: Array) -> CrossCheck:
    """The Jacobian of the residuals, by all that can compute it."""
    return cross_check(residuals, np.array([1.0, 0.5, 0.5, 0.2]), observed, argnums=0)


def fit(observed: Array, parameters: Array) -> Array:
    """Gauss-Newton: each step solves a linear least squares problem; it is halved while it does not help."""
    jacobian = sg.jacfwd(residuals)
    for _ in range(50):
        here = residuals(parameters, observed)
        step = np.linalg.lstsq(jacobian(parameters, observed), -here)[0]
        with np.errstate(all="ignore"):  # far away the solution may overflow, and is then not taken
            while not np.sum(residuals(parameters + step, observed) ** 2) <= np.sum(here**2):
                step = step / 2
                if np.max(np.abs(step)) < 1e-12:
                    return parameters
        parameters = parameters + step
        if np.max(np.abs(step)) < 1e-10:
            break
    return parameters


def main() -> float:
    """Fit; return the largest relative error of a parameter."""
    observed = observations()
    print(check(observed[:3]))
    found = fit(observed, np.array([1.0, 0.5, 0.5, 0.2]))
    error = float(np.max(np.abs(found / TRUTH - 1)))
    print(f"parameters {found.round(4)}, drawn with {TRUTH}: largest relative error {error:.1%}")
    return error


if __name__ == "__main__":
    main()
