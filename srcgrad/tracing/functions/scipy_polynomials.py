"""Polynomials of ``scipy.interpolate`` through given values: by Newton's and Lagrange's forms.

Importing this module imports SciPy.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import scipy.interpolate

from srcgrad.errors import ShapeError, UnsupportedError
from srcgrad.tracing.conversion.calls import call_rule
from srcgrad.tracing.functions.registry import axis_of
from srcgrad.tracing.functions.scipy_interpolate import (
    doubles,
    of_traced,
    reals,
    require,
)
from srcgrad.tracing.tracer import Tracer


class Newton:
    """A polynomial by divided differences: ``c[k]`` times the product of the distances from the first k nodes.

    The derivatives at nodes that are repeated are given where the node is.
    """

    def __init__(self, xi: Any, yi: Any, axis: int = 0) -> None:
        nodes, values = reals(xi), doubles(yi)
        self.axis = axis_of(axis, values.ndim)
        values = np.moveaxis(values, self.axis, 0)
        if nodes.ndim != 1 or nodes.shape[0] != values.shape[0]:
            raise ShapeError("x and y arrays must be equal in length along interpolation axis.")
        self.xi, self.c = nodes, divided(nodes, values)

    @classmethod
    def of(cls, fitted: Any) -> Newton:
        """One of SciPy's."""
        found = object.__new__(cls)
        found.xi, found.axis = fitted.xi, fitted._y_axis
        found.c = fitted.c[: fitted.n].reshape(fitted.n, *fitted._y_extra_shape)
        return found

    def __call__(self, x: Any) -> Any:
        return self.derivative(x, 0)

    def derivative(self, x: Any, der: int = 1) -> Any:
        return self.all_derivatives(x, der + 1)[der]

    def derivatives(self, x: Any, der: Any = None) -> Any:
        return np.stack(self.all_derivatives(x, self.xi.shape[0] if der is None else der))

    def all_derivatives(self, x: Any, count: int) -> list[Any]:
        """The first derivatives, from the 0th, by Horner's rule."""
        places = reals(x)
        flat, rank = places.reshape(-1), self.c.ndim - 1
        found: list[Any] = [np.zeros((flat.shape[0], *self.c.shape[1:])) for _ in range(count)]
        for k in range(self.c.shape[0] - 1, -1, -1):
            away = (flat - self.xi[k]).reshape((-1,) + (1,) * rank)
            for order in range(min(count, self.c.shape[0]) - 1, 0, -1):
                found[order] = found[order] * away + order * found[order - 1]
            found[0] = found[0] * away + self.c[k]
        return [placed(part, places.shape, self.axis) for part in found]


def placed(found: Any, shape: tuple[int, ...], axis: int) -> Any:
    """Results at flat places, with the axes of the places where that of the nodes was."""
    found = found.reshape(shape + found.shape[1:])
    order, rank = list(range(found.ndim)), len(shape)
    return found.transpose(order[rank : rank + axis] + order[:rank] + order[rank + axis :])


def divided(nodes: Any, values: Any) -> Any:
    """The divided differences from the first node on; at nodes that are repeated the values are derivatives there."""
    count, rank = nodes.shape[0], values.ndim - 1
    runs = repeats(nodes)
    column = values[np.arange(count) - runs]
    found = [column[0]]
    for order in range(1, count):
        again, here = runs[order:] >= order, np.arange(order, count)
        apart = np.where(again, 1.0, nodes[order:] - nodes[:-order])
        slopes = (column[1:] - column[:-1]) / apart.reshape((-1,) + (1,) * rank)
        given = values[np.where(again, here - runs[order:] + order, 0)] / math.factorial(order)
        column = np.where(again.reshape((-1,) + (1,) * rank), given, slopes)
        found.append(column[0])
    return np.stack(found)


def repeats(nodes: Any) -> Any:
    """How many nodes before each are the same, one after the other."""
    same = nodes[1:] == nodes[:-1]
    if isinstance(same, Tracer):
        same = same.concrete("which nodes are repeated")
    found = [0]
    for again in np.asarray(same):
        found.append(found[-1] + 1 if again else 0)
    return np.array(found)


class Barycentric:
    """A polynomial by Lagrange's: each is a product of distances, which has slopes at the nodes too."""

    def __init__(self, xi: Any, yi: Any = None, axis: int = 0, *, wi: Any = None, rng: Any = None, **_: Any) -> None:
        if yi is None:
            raise UnsupportedError(
                "scipy.interpolate.BarycentricInterpolator of traced nodes without values", hint="yi="
            )
        self.xi, values = reals(xi), doubles(yi)
        self.axis = axis_of(axis, values.ndim)
        self.yi = np.moveaxis(values, self.axis, 0)
        if self.xi.ndim != 1 or self.xi.shape[0] != self.yi.shape[0]:
            raise ShapeError("x and y arrays must be equal in length along interpolation axis.")

    @classmethod
    def of(cls, fitted: Any) -> Barycentric:
        """One of SciPy's."""
        if fitted.yi is None:
            raise UnsupportedError("the scipy.interpolate.BarycentricInterpolator has no values")
        found = object.__new__(cls)
        found.xi, found.axis = fitted.xi, fitted._y_axis
        found.yi = fitted.yi.reshape(-1, *fitted._y_extra_shape)
        return found

    def products(self) -> tuple[Any, Any]:
        """By what distances are multiplied so that their products are of a size, and those of each node from others."""
        stretch = 4.0 / (np.max(self.xi) - np.min(self.xi)) if self.xi.shape[0] > 1 else 1.0
        apart = stretch * (self.xi[:, None] - self.xi[None]) + np.eye(self.xi.shape[0])
        found = np.prod(apart, axis=1)
        require(found != 0.0, "Interpolation points xi must be distinct.")
        return stretch, found

    def __call__(self, x: Any) -> Any:
        return self.derivative(x, 0)

    def derivative(self, x: Any, der: int = 1) -> Any:
        stretch, products = self.products()
        places, values = reals(x), self.yi
        for _ in range(der):
            values = self.slopes(products, values)
        away = stretch * (places.reshape(-1, 1) - self.xi)
        ones = np.ones_like(away[:, :1])
        before = np.cumprod(np.concatenate([ones, away[:, :-1]], axis=1), axis=1)
        behind = np.cumprod(np.concatenate([ones, away[:, :0:-1]], axis=1), axis=1)[:, ::-1]
        shares = before * behind / products
        found = np.tensordot(shares, values, 1)
        return placed(found, places.shape, self.axis)

    def slopes(self, products: Any, values: Any) -> Any:
        """At the nodes, of the polynomial with these values: each from the differences to the others."""
        size = self.xi.shape[0]
        factors = products[:, None] / (products[None] * (self.xi[:, None] - self.xi[None] + np.eye(size)))
        factors = factors * (1.0 - np.eye(size))
        own = np.sum(factors, axis=1).reshape((-1,) + (1,) * (values.ndim - 1))
        return np.tensordot(factors, values, 1) - own * values

    def derivatives(self, x: Any, der: Any = None) -> Any:
        count = self.xi.shape[0] if der is None else der
        return np.stack([self.derivative(x, order) for order in range(count)])


def at_orders(polynomial: Any, x: Any, der: Any) -> Any:
    if np.ndim(der) == 0:
        return polynomial.derivative(x, int(der))
    return polynomial.derivatives(x, int(np.max(der)) + 1)[np.asarray(der)]


def krogh_interpolate(xi: Any, yi: Any, x: Any, der: Any = 0, axis: int = 0) -> Any:
    return at_orders(Newton(xi, yi, axis), x, der)


def barycentric_interpolate(xi: Any, yi: Any, x: Any, axis: int = 0, *, der: Any = 0, rng: Any = None) -> Any:
    return at_orders(Barycentric(xi, yi, axis), x, der)


MADE: Final[dict[Any, Any]] = {
    scipy.interpolate.KroghInterpolator: Newton,
    scipy.interpolate.BarycentricInterpolator: Barycentric,
    scipy.interpolate.krogh_interpolate: krogh_interpolate,
    scipy.interpolate.barycentric_interpolate: barycentric_interpolate,
}
for _original, _made in MADE.items():
    call_rule(_original)(of_traced(_original, _made))
