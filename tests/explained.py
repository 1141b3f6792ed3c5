"""Functions whose programs the tests print: golden files name their lines."""

from __future__ import annotations

import numpy as np
from scipy import special

weight = np.arange(1.0, 10.0).reshape(3, 3) / 10
factor = 2.0


def logistic(weights, features, labels):
    score = features @ weights[:-1] + weights[-1]
    penalty = 1e-3 * np.sum(weights[:-1] ** 2)
    return np.mean(np.logaddexp(0.0, score) - labels * score) + penalty


def layer(w, x, b):
    h = np.tanh(x @ w + b)
    return np.sum(h**2)


def reads_globals(x):
    h = factor * np.sin(weight @ x)
    return np.sum(h * h)


def tree(point, power=2):
    inner = point["a"] ** power
    return np.sum(inner) * point["b"]


def branches(x, data):
    total = np.sum(x * data)
    if total > 0:
        total = total * np.exp(x[0])
    return total


def in_place(x):
    y = np.zeros_like(x)
    y[1:] += x[:-1] * x[1:]
    y *= 2.0
    return np.sum(y * y)


def needs_scipy(x):
    return np.sum(special.expit(x) * special.erf(x))


def where(x):
    return np.sum(np.where(x > 0, np.sqrt(x), 0.0))


def vector(x):
    y = np.sin(x) * x[0]
    return y + np.cumsum(x)


def changes(x):
    x *= 3.0
    return {"sum": np.sum(x), "name": "changes"}


class Model:
    def __init__(self):
        self.scale = np.ones(3)

    def loss(self, x):
        return np.sum(self.scale * x**2)


def selects(x, data):
    total = np.sum(x * data)
    return total * np.exp(x[0]) * np.ones(int(total > 0) + 1).size


def rounds(x, data):
    total = np.sum(x * data)
    return total * np.exp(x[0]) * len(f"{total:.1f}")
