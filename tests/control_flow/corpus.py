"""Realistic functions with native control flow and arrays changed in place; each gives a float."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

CORPUS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = {}
RANDOM = np.random.default_rng(7)
TRANSITIONS = RANDOM.normal(size=(3, 3))
A = np.array([[4.0, 1.0, 0.0, 0.5], [1.0, 5.0, 1.0, 0.0], [0.0, 1.0, 6.0, 1.0], [0.5, 0.0, 1.0, 7.0]])


def entry(*args: Any, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Take up the function below with its arguments, of which the first is differentiated.

    ``smooth=False``: differences say nothing of the derivative; ``hessian=True``: it is asked for too.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        CORPUS[function.__name__] = (function, args, options)
        return function

    return register


# --- iteration to convergence -----------------------------------------------------------------------------
@entry(2.0, hessian=True)
def newton_square_root(x: Any) -> Any:
    r = x
    while abs(r * r - x) > 1e-12:
        r = 0.5 * (r + x / r)
    return r


@entry(3.0, smooth=False)
def bisection(c: Any) -> Any:
    low, high = 0.0, 10.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if middle**3 + middle - c > 0:
            high = middle
        else:
            low = middle
    return middle * c


@entry(np.array([0.3, -0.4]))
def doubling_until_large(x: Any) -> Any:
    y = x * 2
    while np.linalg.norm(y) < 1000:
        y = y * 2
    return np.sum(y)


@entry(3.0, hessian=True)
def product_until_large(x: Any) -> Any:
    c = x
    while c < 100:
        c = c * x
    return c


@entry(np.array([1.0, 2.0, 0.5]))
def power_iteration(d: Any) -> Any:
    m = np.diag(d) + 0.3
    v = np.ones(3)
    value, change = 0.0, 1.0
    while change > 1e-11:
        w = m @ v
        new = np.linalg.norm(w)
        change = abs(new - value)
        value = new
        v = w / new
    return value


@entry(0.7)
def secant(c: Any) -> Any:
    x0, x1 = 0.0, 1.0
    for _ in range(100):
        f0, f1 = math.cos(x0) - c * x0, math.cos(x1) - c * x1
        if abs(f1) < 1e-13 or f1 == f0:
            break
        x0, x1 = x1, x1 - f1 * (x1 - x0) / (f1 - f0)
    return x1


@entry(np.array([1.0, -2.0, 0.5, 3.0]))
def gauss_seidel(b: Any) -> Any:
    n = len(b)
    x = np.zeros(n)
    for _ in range(60):
        for i in range(n):
            s = 0.0
            for j in range(n):
                if j != i:
                    s += A[i, j] * x[j]
            x[i] = (b[i] - s) / A[i, i]
    return np.sum(x**2)


@entry(np.array([1.0, -2.0, 0.5, 3.0]))
def conjugate_gradients(b: Any) -> Any:
    x = np.zeros(4)
    r = b.copy()
    p = r.copy()
    rr = r @ r
    k = 0
    while rr > 1e-20 and k < 20:
        q = A @ p
        alpha = rr / (p @ q)
        x += alpha * p
        r -= alpha * q
        new = r @ r
        p = r + new / rr * p
        rr = new
        k += 1
    return np.sum(x * np.arange(4))


@entry(np.array([0.5, 1.5]))
def gradient_descent_with_backtracking(c: Any) -> Any:
    def loss(x: Any) -> Any:
        return np.sum((x - c) ** 4 + 0.5 * x**2)

    x = np.array([2.0, -1.0])
    for _ in range(40):
        g = 4 * (x - c) ** 3 + x
        step = 0.5
        while loss(x - step * g) > loss(x) and step > 1e-6:
            step *= 0.5
        x = x - step * g
    return loss(x)


@entry(np.array([1.0, 4.0]))
def arithmetic_geometric_mean(x: Any) -> Any:
    a, g = x[0], x[1]
    while True:
        if abs(a - g) < 1e-13 * abs(a):
            return a
        a, g = (a + g) / 2, np.sqrt(a * g)


# --- differential equations -----------------------------------------------------------------------------
@entry(1.3)
def adaptive_heun(y0: Any) -> Any:
    t, h, y, steps = 0.0, 0.1, y0, 0
    while t < 1.0:
        if t + h > 1.0:
            h = 1.0 - t
        k1 = -y * y
        k2 = -((y + h * k1) ** 2)
        error = abs(h * (k2 - k1) / 2)
        if error < 1e-3:
            t = t + h
            y = y + h * (k1 + k2) / 2
            h = h * 1.2
        else:
            h = h * 0.5
        steps += 1
    return y * steps


@entry(np.linspace(0.0, 1.0, 10) ** 2)
def heat_equation(u0: Any) -> Any:
    u = u0.copy()
    for _ in range(100):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return np.sum(u**2)


@entry(np.array([0.1, 0.5]))
def runge_kutta(y0: Any) -> Any:
    def slope(t: Any, y: Any) -> Any:
        return np.array([y[1], -math.sin(y[0]) - 0.1 * y[1] + 0.1 * math.cos(t)])

    y, h = y0, 0.05
    for n in range(100):
        t = n * h
        k1 = slope(t, y)
        k2 = slope(t + h / 2, y + h / 2 * k1)
        k3 = slope(t + h / 2, y + h / 2 * k2)
        k4 = slope(t + h, y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y[0] ** 2 + y[1]


@entry(np.array([[0.0, 0.0], [1.0, 0.1], [0.2, 1.1]]))
def bodies_with_verlet(x0: Any) -> Any:
    def forces(x: Any) -> Any:
        f = np.zeros_like(x)
        for i in range(3):
            for j in range(i):
                d = x[j] - x[i]
                r2 = np.sum(d**2) + 0.1
                f[i] += d / r2**1.5
                f[j] -= d / r2**1.5
        return f

    x, v = x0.copy(), np.zeros((3, 2))
    a = forces(x)
    for _ in range(40):
        v += 0.01 * a
        x += 0.02 * v
        a = forces(x)
        v += 0.01 * a
    return np.sum(x[0] * x[1])


@entry(1.0)
def bouncing_ball(height: Any) -> Any:
    y, v, bounces = height, 0.0, 0
    for _ in range(120):
        v = v - 9.81 * 0.01
        y = y + v * 0.01
        if y < 0:
            y = -y
            v = -0.8 * v
            bounces += 1
    return y + v * bounces


# --- linear algebra by loops -----------------------------------------------------------------------------
@entry(np.array([0.3, 1.0, -0.5]))
def cholesky_by_loops(v: Any) -> Any:
    a = np.outer(v, v) + 3 * np.eye(3)
    n = a.shape[0]
    low = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            s = a[i, j]
            for k in range(j):
                s -= low[i, k] * low[j, k]
            if i == j:
                low[i, j] = math.sqrt(s)
            else:
                low[i, j] = s / low[j, j]
    return np.sum(np.log(np.diag(low)))


@entry(np.array([2.0, 1.0, 4.0]))
def lu_with_pivots(d: Any) -> Any:
    m = np.array([[d[0], 1.0, 2.0], [4.0, d[1], 1.0], [1.0, 3.0, d[2]]])
    sign = 1.0
    for k in range(3):
        p = k
        for i in range(k + 1, 3):
            if abs(m[i, k]) > abs(m[p, k]):
                p = i
        if p != k:
            row = m[k].copy()
            m[k] = m[p]
            m[p] = row
            sign = -sign
        for i in range(k + 1, 3):
            m[i, k:] -= m[k, k:] * (m[i, k] / m[k, k])
    return sign * m[0, 0] * m[1, 1] * m[2, 2]


@entry(RANDOM.normal(size=(4, 3)))
def gram_schmidt(a: Any) -> Any:
    q = a.copy()
    for i in range(3):
        for j in range(i):
            q[:, i] -= (q[:, j] @ q[:, i]) * q[:, j]
        q[:, i] /= np.sqrt(q[:, i] @ q[:, i])
    return np.sum(q[:2] * np.arange(6.0).reshape(2, 3))


@entry(np.array([1.0, 2.0, 3.0, 4.0]))
def thomas_algorithm(d: Any) -> Any:
    n = len(d)
    c, x = np.empty(n), d.copy()
    c[0] = 1.0 / 4.0
    x[0] = x[0] / 4.0
    for i in range(1, n):
        m = 4.0 - c[i - 1]
        c[i] = 1.0 / m
        x[i] = (x[i] - x[i - 1]) / m
    for i in reversed(range(n - 1)):
        x[i] -= c[i] * x[i + 1]
    return np.sum(x * d)


@entry(np.array([0.7, 0.2]))
def matrix_power_by_squaring(x: Any) -> Any:
    m = np.array([[x[0], 1.0], [x[1], 0.5]])
    result, n = np.eye(2), 13
    while n:
        if n & 1:
            result = result @ m
        m = m @ m
        n >>= 1
    return result[0, 1] + result[1, 1]


# --- dynamic programming and sequences -----------------------------------------------------------------------------
@entry(TRANSITIONS)
def viterbi(scores: Any) -> Any:
    n = 3
    best = np.zeros(n)
    for t in range(40):
        new = np.empty(n)
        for j in range(n):
            top = best[0] + scores[0, j]
            for i in range(1, n):
                c = best[i] + scores[i, j]
                if c > top:
                    top = c
            new[j] = top + 0.1 * j * math.sin(t)
        best = new
    return np.max(best)


@entry(TRANSITIONS * 0.3)
def hidden_markov_forward(scores: Any) -> Any:
    p = np.exp(scores)
    alpha, total = np.ones(3) / 3, 0.0
    for t in range(50):
        alpha = alpha @ p
        alpha[t % 3] *= 1.5
        scale = np.sum(alpha)
        alpha /= scale
        total += math.log(scale)
    return total


@entry(np.array([0.1, 0.9, 0.4, 0.7, 0.2]))
def dynamic_time_warping(x: Any) -> Any:
    y = np.array([0.2, 0.8, 0.5, 0.3])
    n, m = len(x), len(y)
    cost = np.full((n + 1, m + 1), np.inf)
    cost[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            d = (x[i - 1] - y[j - 1]) ** 2
            cost[i, j] = d + min(cost[i - 1, j], cost[i, j - 1], cost[i - 1, j - 1])
    return cost[n, m]


@entry(RANDOM.normal(size=(3, 3)) * 0.5)
def rnn(w: Any) -> Any:
    h = np.zeros(3)
    for t in range(50):
        h = np.tanh(w @ h + np.array([math.sin(t), 1.0, 0.5]))
    return np.sum(h**2)


@entry(RANDOM.normal(size=(3, 3)) * 0.5)
def rnn_with_a_list_of_states(w: Any) -> Any:
    states = [np.zeros(3)]
    for t in range(10):
        states.append(np.tanh(w @ states[-1] + 0.1 * t))
    return sum(np.sum(h) for h in states)


@entry(RANDOM.normal(size=(8, 4)) * 0.5)
def lstm(w: Any) -> Any:
    def sigmoid(x: Any) -> Any:
        return 1 / (1 + np.exp(-x))

    h, c = np.zeros(2), np.zeros(2)
    for t in range(40):
        z = w @ np.concatenate([h, np.array([math.sin(t), math.cos(t)])])
        i, f, o, g = sigmoid(z[:2]), sigmoid(z[2:4]), sigmoid(z[4:6]), np.tanh(z[6:])
        c = f * c + i * g
        h = o * np.tanh(c)
    return np.sum(h)


@entry(np.array([0.5, 0.1]))
def kalman_filter(noise: Any) -> Any:
    x, p = np.zeros(2), np.eye(2)
    f = np.array([[1.0, 0.1], [0.0, 1.0]])
    likelihood = 0.0
    for k in range(40):
        x = f @ x
        p = f @ p @ f.T + noise[0] * np.eye(2)
        z = math.sin(0.1 * k)
        s = p[0, 0] + noise[1]
        gain = p[:, 0] / s
        residual = z - x[0]
        x = x + gain * residual
        p = p - np.outer(gain, p[0])
        likelihood -= 0.5 * (residual**2 / s + math.log(s))
    return likelihood


@entry(0.9)
def recurrence(x: Any) -> Any:
    terms = np.zeros(128)
    terms[0], terms[1] = x, x * x
    for n in range(2, 128):
        terms[n] = 0.5 * terms[n - 1] + 0.3 * terms[n - 2] * x
    return terms[10] + np.sum(terms)


@entry(np.linspace(-1, 1, 6))
def exponential_smoothing(x: Any) -> Any:
    level, total = x[0], 0.0
    for previous, value in zip(x[:-1], x[1:]):  # noqa: B905, RUF007
        level = 0.7 * level + 0.3 * value * previous
        total += level**2
    return total


@entry(np.linspace(-1, 1, 40))
def cumulative_maximum(x: Any) -> Any:
    y = np.sin(7 * x)
    top, total = -10.0, 0.0
    for k, value in enumerate(y):
        top = max(top, value)
        total += top * (k + 1)
    return total


@entry(np.array([0.3, 0.8, -0.4]))
def horner_and_derivative(c: Any) -> Any:
    p, d = 0.0, 0.0
    for k in reversed(range(3)):
        d = d * 0.7 + p
        p = p * 0.7 + c[k]
    return p * d


@entry(np.array([0.7, 0.8]))
def growth_with_settled_rates(p: Any) -> Any:
    """A branch and a loop that are the same in every step, and what is computed from them."""
    y = 1.0
    for _ in range(40):
        rate = np.sin(p[1]) if p[0] > 0.5 else 2.0 * p[0]
        weight = p[0]
        for _ in range(25):
            weight = 0.9 * weight + 0.1 * p[1] * weight
        y = y + 0.02 * (np.exp(-rate) + np.tanh(weight) - y * y)
    return y
