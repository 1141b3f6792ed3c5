"""Nodes and weights of Gauss's rules whose weight function has parameters: ``scipy.special.roots_jacobi`` and the like.

The nodes are the eigenvalues of the symmetric tridiagonal matrix of the recurrence of the orthonormal polynomials,

    b[k+1] p[k+1](x) = (x - a[k]) p[k](x) - b[k] p[k-1](x),

and the weight of a node is the integral of the weight function over the sum of the squares of the first n of these
there (Golub and Welsch). All of it is smooth in the parameters, and the coefficients here are those of the general
case, so that parameters of special polynomials, as Legendre's, have the derivatives of their neighbours.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import gammaln

from srcgrad.errors import ShapeError
from srcgrad.tracing.functions.scipy_interpolate import reals, require
from srcgrad.tracing.functions.special_functions import scipy_rule


def parameter(x: Any, lowest: float, message: str) -> Any:
    found = reals(x)
    if found.ndim:
        raise ShapeError("a parameter of a rule of quadrature is a number", hint="call it for each one, or use vmap")
    require(found > lowest, message)
    return found


def order(n: Any) -> int:
    if int(n) != n or n < 1:
        raise ValueError("n must be a positive integer.")
    return int(n)


def rule(diagonal: Any, beside: Any, total: Any, mu: Any) -> Any:
    """The nodes and weights; ``total`` is the integral of the weight function."""
    matrix = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
    nodes = np.linalg.eigvalsh(matrix)
    here = np.ones_like(nodes)
    before, squares = np.zeros_like(nodes), here
    for k in range(beside.shape[0]):
        ahead = (nodes - diagonal[k]) * here / beside[k]
        if k:
            ahead = ahead - beside[k - 1] / beside[k] * before
        before, here, squares = here, ahead, squares + ahead * ahead
    weights = total / squares
    return (nodes, weights, total) if mu else (nodes, weights)


def of_jacobi(size: int, a: Any, b: Any, mu: Any) -> Any:
    both = a + b
    k = np.arange(1.0, size)
    twice = 2 * k + both
    diagonal = np.concatenate([((b - a) / (both + 2))[None], (b - a) * both / (twice * (twice + 2))])
    k = k[1:]
    first = 2 / (both + 2) * np.sqrt((1 + a) * (1 + b) / (both + 3))
    others = 2 / twice[1:] * np.sqrt(k * (k + a) * (k + b) * (k + both) / (twice[1:] * twice[1:] - 1))
    beside = np.concatenate([first[None], others])[: size - 1]
    total = np.exp((both + 1) * np.log(2.0) + gammaln(a + 1) + gammaln(b + 1) - gammaln(both + 2))
    return rule(diagonal, beside, total, mu)


@scipy_rule("roots_jacobi")
def roots_jacobi(n: Any, alpha: Any, beta: Any, mu: Any = False) -> Any:
    message = "alpha and beta must be greater than -1."
    return of_jacobi(order(n), parameter(alpha, -1.0, message), parameter(beta, -1.0, message), mu)


@scipy_rule("roots_gegenbauer")
def roots_gegenbauer(n: Any, alpha: Any, mu: Any = False) -> Any:
    found = parameter(alpha, -0.5, "alpha must be greater than -0.5.") - 0.5
    return of_jacobi(order(n), found, found, mu)


@scipy_rule("roots_genlaguerre")
def roots_genlaguerre(n: Any, alpha: Any, mu: Any = False) -> Any:
    size, a = order(n), parameter(alpha, -1.0, "alpha must be greater than -1.")
    k = np.arange(1.0, size)
    return rule(2 * np.arange(float(size)) + 1 + a, np.sqrt(k * (k + a)), np.exp(gammaln(a + 1)), mu)


@scipy_rule("roots_sh_jacobi")
def roots_sh_jacobi(n: Any, p1: Any, q1: Any, mu: Any = False) -> Any:
    message = "(p - q) must be greater than -1, and q must be greater than 0."
    a, b = parameter(p1 - q1, -1.0, message), parameter(q1 - 1, -1.0, message)
    nodes, weights, total = of_jacobi(order(n), a, b, True)
    shrunk = 2.0 ** -(a + b + 1)
    nodes, weights, total = (nodes + 1) / 2, weights * shrunk, total * shrunk
    return (nodes, weights, total) if mu else (nodes, weights)
