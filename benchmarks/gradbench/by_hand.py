"""Gradients of the evals written by hand in NumPy, for the table and for checks."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.gradbench.evals import log_sum_exp, strict_lower


def double(x: Any) -> Any:
    return 2 * x


def lse(x: Any) -> Any:
    weights = np.exp(x - np.max(x))
    weights /= np.sum(weights)
    return weights


def llsq(x: Any, t: Any) -> Any:
    rest, power, powers = np.sign(t), np.ones_like(t), []
    for coefficient in x:
        powers.append(power)
        rest = rest - coefficient * power
        power = power * t
    return np.array([-(rest @ power) for power in powers])


def gmm(alpha: Any, mu: Any, q: Any, l: Any, x: Any, gamma: float, m: int) -> tuple[Any, Any, Any, Any]:  # noqa: E741
    """Responsibilities weigh the terms: a matrix product forward and two backward for each component."""
    n, d = x.shape
    columns, rows = np.triu_indices(d, 1)
    roots = [np.diag(np.exp(q[k])) + strict_lower(l[k], d) for k in range(len(alpha))]
    centred = [x - mu[k] for k in range(len(alpha))]
    scaled = [centred[k] @ roots[k].T for k in range(len(alpha))]
    terms = np.array([alpha[k] + np.sum(q[k]) - 0.5 * np.sum(scaled[k] ** 2, axis=1) for k in range(len(alpha))])
    weights = np.exp(terms - log_sum_exp(terms))
    totals = np.sum(weights, axis=1)
    mu_bar, q_bar, l_bar = np.empty_like(mu), np.empty_like(q), np.empty_like(l)
    for k, root in enumerate(roots):
        weighted = weights[k][:, None] * scaled[k]
        mu_bar[k] = np.sum(weighted, axis=0) @ root
        root_bar = -weighted.T @ centred[k] - gamma**2 * root
        l_bar[k] = root_bar[rows, columns]
        q_bar[k] = np.diag(root_bar) * np.diag(root) + totals[k] + m
    return totals - n * np.exp(alpha - log_sum_exp(alpha)), mu_bar, q_bar, l_bar


def ode_last(x: Any, steps: int) -> Any:
    """The adjoint of the steps of Runge and Kutta, backwards over the kept states."""

    def slope(y: Any) -> Any:
        return np.concatenate([x[:1], x[1:] * y[:-1]])

    h, y, states = 2.0 / steps, np.zeros_like(x), []
    for _ in range(steps):
        k1 = slope(y)
        y2 = y + 0.5 * h * k1
        k2 = slope(y2)
        y3 = y + 0.5 * h * k2
        k3 = slope(y3)
        y4 = y + h * k3
        states.append((y, y2, y3, y4))
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + slope(y4))
    x_bar, y_bar = np.zeros_like(x), np.zeros_like(x)
    y_bar[-1] = 1.0

    def back(k_bar: Any, y: Any) -> Any:
        """Add to ``x_bar``; the cotangent of ``y``."""
        x_bar[0] += k_bar[0]
        x_bar[1:] += k_bar[1:] * y[:-1]
        return np.concatenate([k_bar[1:] * x[1:], [0.0]])

    for y1, y2, y3, y4 in reversed(states):
        b4 = back(h / 6 * y_bar, y4)
        b3 = back(h / 3 * y_bar + h * b4, y3)
        b2 = back(h / 3 * y_bar + 0.5 * h * b3, y2)
        b1 = back(h / 6 * y_bar + 0.5 * h * b2, y1)
        y_bar = y_bar + b1 + b2 + b3 + b4
    return x_bar


def distance_of_hit(w: float) -> tuple[float, float]:
    """The value and its derivative: positions, velocities and their derivatives in ``w``, step by step."""
    charges = (np.array([10.0, 10 - w]), np.array([10.0, 0.0]))
    moves = (np.array([0.0, -1.0]), np.zeros(2))  # of the charges, per w
    x, v, dt = np.array([0.0, 8.0]), np.array([0.75, 0.0]), 0.1
    x_dot, v_dot = np.zeros(2), np.zeros(2)
    while x[1] + dt * v[1] > 0:
        force, force_dot = np.zeros(2), np.zeros(2)
        for charge, move in zip(charges, moves, strict=True):
            away, away_dot = x - charge, x_dot - move
            square = away @ away
            force += away / square**1.5
            force_dot += away_dot / square**1.5 - 3 * (away @ away_dot) / square**2.5 * away
        x, x_dot = x + dt * v, x_dot + dt * v_dot
        v, v_dot = v + dt * force, v_dot + dt * force_dot
    rest = x[1] / v[1]
    rest_dot = (x_dot[1] - rest * v_dot[1]) / v[1]
    hit, hit_dot = x - rest * v, x_dot - rest_dot * v - rest * v_dot
    return float(hit[0] ** 2), float(2 * hit[0] * hit_dot[0])
