"""Loops that write into arrays, as NumPy code does: stencils by slices, tables and triangles by elements.

NumPy runs the values as they stand; jax has the same as scans over carries that are made anew, or as a product of
matrices, written for it by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from benchmarks.measure import Row, measured, module

# isort: split
import numpy as np

import srcgrad as sg

STEPS = 200


def heat(u: Any) -> Any:
    """Steps of the heat equation on a rod."""
    u = u.copy()
    for _ in range(STEPS):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return np.sum(u**2)


def heat_of_jax(jax: Any) -> Callable[[Any], Any]:
    def step(u: Any, _: Any) -> Any:
        return u.at[1:-1].add(0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])), None

    return lambda u: jax.numpy.sum(jax.lax.scan(step, u, None, length=STEPS)[0] ** 2)


def alignment(a: Any) -> Any:
    """The distance of a sequence from a sine by dynamic time warping: a table by elements."""
    b, n = np.sin(np.arange(60) * 0.2), len(a)
    d = np.full((n + 1, 61), np.inf)
    d[0, 0] = 0.0
    for i in range(n):
        for j in range(60):
            d[i + 1, j + 1] = abs(a[i] - b[j]) + min(d[i, j + 1], d[i + 1, j], d[i, j])
    return d[n, 60]


def alignment_of_jax(jax: Any) -> Callable[[Any], Any]:
    """Row by row, of which each is a scan: no table is written."""
    jnp = jax.numpy

    def row(before: Any, costs: Any) -> Any:
        def cell(left: Any, given: Any) -> Any:
            up, corner, cost = given
            value = cost + jnp.minimum(jnp.minimum(up, left), corner)
            return value, value

        _, values = jax.lax.scan(cell, jnp.inf, (before[1:], before[:-1], costs))
        return jnp.concatenate([jnp.array([jnp.inf]), values]), None

    def whole(a: Any) -> Any:
        costs = jnp.abs(a[:, None] - jnp.sin(jnp.arange(60) * 0.2)[None])
        return jax.lax.scan(row, jnp.concatenate([jnp.zeros(1), jnp.full(60, jnp.inf)]), costs)[0][-1]

    return whole


def elimination(a: Any) -> Any:
    """The logarithm of a determinant, by Gauss's elimination of rows."""
    a, n = a.copy(), a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            a[i] -= a[k] * (a[i, k] / a[k, k])
    return np.sum(np.log(np.diag(a)))


def triangle(a: Any) -> Any:
    """The lower triangle of a product of a matrix with itself, by rows and one number after the other (`syrk`)."""
    n, m = a.shape
    c = np.zeros((n, n))
    for i in range(n):
        for k in range(m):
            c[i, : i + 1] += 0.5 * a[i, k] * a[: i + 1, k]
    return np.sum(c**2)


def triangle_of_jax(jax: Any) -> Callable[[Any], Any]:
    return lambda a: jax.numpy.sum(jax.numpy.tril(0.5 * a @ a.T) ** 2)


class Case(NamedTuple):
    f: Callable[[Any], Any]
    given: Any
    of_jax: Callable[[Any], Callable[[Any], Any]] | None = None


def cases() -> dict[str, Case]:
    random = np.random.default_rng(0)
    return {
        "heat": Case(heat, random.normal(size=1_000), heat_of_jax),
        "alignment": Case(alignment, random.normal(size=60), alignment_of_jax),
        "elimination": Case(elimination, random.normal(size=(80, 80)) + 80 * np.eye(80)),
        "triangle": Case(triangle, random.normal(size=(80, 60)), triangle_of_jax),
    }


def row(name: str, kind: str, rounds: int) -> Row:
    """Microseconds of the value, or of the value with its gradient."""
    f, given, of_jax = cases()[name]
    found = Row(f"in place, {name}, {kind}", "us")
    ours = sg.jit(f, backend="llvm") if kind == "value" else sg.value_and_grad(f, backend="llvm")
    calls: dict[str, Any] = {"srcgrad": partial(ours, given)}
    np.testing.assert_allclose(ours(given) if kind == "value" else ours(given)[0], f(given), rtol=1e-10)
    if kind == "value":
        calls["numpy"] = partial(f, given)
    jax = module("jax")
    if jax is not None and of_jax is not None:
        jax.config.update("jax_enable_x64", True)
        whole, array = of_jax(jax), jax.numpy.asarray(given)
        theirs = jax.jit(whole if kind == "value" else jax.value_and_grad(whole))
        calls["jax"] = lambda: jax.block_until_ready(theirs(array))
        for one, other in zip(both(calls["jax"]()), both(ours(given)), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9)
    return measured(found, calls, min(rounds, 9), 1e6)


def both(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


ROWS: dict[str, Callable[[int], Row]] = {
    f"in-place-{name}-{kind}": partial(row, name, kind)
    for name in ("heat", "alignment", "elimination", "triangle")
    for kind in ("value", "gradient")
}
