"""Programs made of other things than operations: rules, calls, containers, loops, nested transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

import srcgrad as sg
from tests.hard_points.points import Case

EYE = np.eye(2)
X = np.array([0.5, 2.0])


def cube(x: Any) -> Any:
    return x**3


def halved(x: Any) -> Any:
    while np.max(np.abs(x)) > 1:
        x = x / 2
    return x**2


def branch(x: Any) -> Any:
    return x**2 if x > 0 else -x


def early(x: Any) -> Any:
    for k in range(4):
        if np.sum(x) > 2:
            return np.sum(x) * k
        x = x * x + 1
    return np.sum(x)


def power(x: Any, n: int) -> Any:
    return x if n == 1 else x * power(x, n - 1)


@sg.custom_jvp
def clipped(x: Any) -> Any:
    """At its bound the rule has the slope of the inside."""
    return np.minimum(x, 1.0)


@clipped.defjvp
def _(primals: Any, tangents: Any) -> Any:
    return np.minimum(primals[0], 1.0), np.where(primals[0] <= 1.0, tangents[0], 0.0)


@sg.custom_vjp
def safe_root(x: Any) -> Any:
    return np.sqrt(x)


def safe_root_forward(x: Any) -> Any:
    return np.sqrt(x), x


def safe_root_backward(x: Any, ct: Any) -> Any:
    return (np.where(x > 0, ct / (2 * np.sqrt(np.where(x > 0, x, 1.0))), 0.0),)


safe_root.defvjp(safe_root_forward, safe_root_backward)


def dictionary(x: Any) -> Any:
    parts = {"a": x[0], "b": (x[1], [x[0] * x[1]])}
    return parts["a"] * parts["b"][1][0]


def closure(x: Any) -> Any:
    def inner(y: Any) -> Any:
        return x[0] * y

    return inner(inner(x[1]))


def threefold(x: Any) -> Any:
    return np.stack([x, x, x])


def diagonal3(value: float) -> Any:
    found = np.zeros((2, 2, 2))
    found[0, 0, 0] = found[1, 1, 1] = value
    return found


STRUCTURE: dict[str, Case] = {
    "a derivative inside": (lambda x: sg.grad(cube)(x) * x, 0.5, (9 * 0.25, 18 * 0.5)),
    "a Hessian inside": (lambda x: sg.hessian(cube)(x) * x, 0.5, (12 * 0.5, 12.0)),
    "a perturbation of another level": (lambda x: x * sg.grad(lambda y: x + y)(1.0), 0.5, (1.0, 0.0)),
    "vmap inside": (lambda x: np.sum(sg.vmap(cube)(x)), X, (3 * X**2, np.diag(6 * X))),
    "vmap of a gradient": (lambda x: sg.vmap(sg.grad(cube))(x), X, (np.diag(6 * X), diagonal3(6.0))),
    "jit inside": (lambda x: sg.jit(cube)(x), 0.5, (0.75, 3.0)),
    "checkpoint": (sg.checkpoint(lambda x: np.exp(x) * x), 0.0, (1.0, 2.0)),
    "checkpoint of a where": (
        sg.checkpoint(lambda x: np.where(x > 0, np.sqrt(x), x)),
        0.0,
        (1.0, 0.0),
    ),
    "stop_gradient": (lambda x: sg.stop_gradient(x) * x, 3.0, (3.0, 0.0)),
    "stop_gradient beside inf": (lambda x: sg.stop_gradient(np.sqrt(x)) + x, 0.0, (1.0, 0.0)),
    "a forward rule at its kink": (clipped, 1.0, (1.0, 0.0)),
    "a reverse rule at its pole": (safe_root, 0.0, (0.0, 0.0)),
    "a loop that looks at numbers": (halved, X, (np.diag(X / 2), diagonal3(0.5))),
    "a branch at its boundary": (branch, 0.0, (-1.0, 0.0)),
    "a return out of a loop": (early, X, (np.array([0.0, 0.0]), np.zeros((2, 2)))),
    "recursion": (lambda x: power(x, 4), 0.5, (4 * 0.125, 12 * 0.25)),
    "containers": (dictionary, X, (np.array([2 * 0.5 * 2, 0.25]), np.array([[4.0, 1.0], [1.0, 0.0]]))),
    "a closure called twice": (closure, X, (np.array([2 * 0.5 * 2, 0.25]), np.array([[4.0, 1.0], [1.0, 0.0]]))),
    "a constant function": (lambda x: np.float64(2.0), 0.5, (0.0, 0.0)),
    "the identity": (lambda x: x, X, (EYE, np.zeros((2, 2, 2)))),
    "an argument returned thrice": (threefold, 0.5, (np.ones(3), np.zeros(3))),
    "an empty sum": (lambda x: np.sum(x), np.zeros((0,)), (np.zeros((0,)), np.zeros((0, 0)))),
    "an empty product": (lambda x: np.prod(x[:0]) + x[0], X, (np.array([1.0, 0.0]), np.zeros((2, 2)))),
    "a sum over no axis": (lambda x: np.sum(x**2, axis=()), X, (np.diag(2 * X), diagonal3(2.0))),
    "broadcasting": (lambda x: np.sum(x[:, None] * x[None, :]), X, (np.full(2, 5.0), np.full((2, 2), 2.0))),
    "einsum with a repeated index": (
        lambda x: np.einsum("ii->", np.outer(x, x)),
        X,
        (2 * X, 2 * EYE),
    ),
}
