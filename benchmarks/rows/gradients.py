"""Gradients through linear algebra, sorting, convolution and transforms, of a few sizes, beside jax's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from benchmarks.measure import Row, guarded, measured, module, on_jax
from benchmarks.rows.algebra import definite, normal, regular

# isort: split
import numpy as np

import srcgrad as sg


class Case(NamedTuple):
    """What ``make`` writes with NumPy or jax.numpy: a number, of arrays that are made when they are asked for."""

    label: str
    make: Callable[[Any], Callable[..., Any]]
    arrays: Callable[[], tuple[Any, ...]]


def solution(xp: Any) -> Callable[..., Any]:
    return lambda a, b: xp.sum(xp.linalg.solve(a, b) ** 2)


def log_density(xp: Any) -> Callable[..., Any]:
    return lambda a, b: -0.5 * b @ xp.linalg.solve(a, b) - 0.5 * xp.linalg.slogdet(a)[1]


def log_determinant(xp: Any) -> Callable[..., Any]:
    return lambda a: 2 * xp.sum(xp.log(xp.diagonal(xp.linalg.cholesky(a))))


def root(xp: Any) -> Callable[..., Any]:
    def f(a: Any) -> Any:
        w, v = xp.linalg.eigh(a)
        return xp.sum(((v * xp.sqrt(w)) @ v.T) ** 3)

    return f


def components(xp: Any) -> Callable[..., Any]:
    """What five principal components leave."""

    def f(a: Any) -> Any:
        u, s, vh = xp.linalg.svd(a - a.mean(0), full_matrices=False)
        return xp.sum((a - (u[:, :5] * s[:5]) @ vh[:5]) ** 4)

    return f


def smoothing(xp: Any) -> Callable[..., Any]:
    return lambda x: xp.sum(xp.convolve(x, xp.array([0.1, 0.2, 0.4, 0.2, 0.1]), mode="same") ** 2)


def spread(xp: Any) -> Callable[..., Any]:
    return lambda x: xp.median(xp.abs(x - xp.median(x)))


def power(xp: Any) -> Callable[..., Any]:
    return lambda x: xp.sum(xp.abs(xp.fft.fft(x)) ** 4)


def survival(xp: Any) -> Callable[..., Any]:
    return lambda x: xp.sum(xp.cumprod(xp.exp(-(x**2)), axis=-1))


def cases() -> Iterator[Case]:
    for n in (10, 40, 150):
        yield Case(f"solve-{n}", solution, lambda n=n: (regular(n, n), normal(n)))
        yield Case(f"log-density-{n}", log_density, lambda n=n: (definite(n, n), normal(n)))
        yield Case(f"cholesky-{n}", log_determinant, lambda n=n: (definite(n, n),))
        yield Case(f"eigh-{n}", root, lambda n=n: (definite(n, n),))
    yield Case("svd-200x40", components, lambda: (normal(200, 40),))
    for n in (1000, 100_000):
        for make in (smoothing, spread, power):
            yield Case(f"{make.__name__}-{n}", make, lambda n=n: (normal(n),))
    yield Case("survival-1024x64", survival, lambda: (0.1 * normal(1024, 64),))


def row(case: Case, rounds: int) -> Row:
    found, given = Row(case.label, "us"), case.arrays()
    every = tuple(range(len(given)))
    calls: dict[str, Any] = {"srcgrad": partial(sg.grad(case.make(np), argnums=every, backend="llvm"), *given)}
    right = calls["srcgrad"]()
    jax = module("jax")
    call = guarded(found, "jax", partial(on_jax, lambda xp: jax.grad(case.make(xp), argnums=every), given))
    if call is not None:
        calls["jax"] = call
        for one, other in zip(call(), right, strict=True):
            np.testing.assert_allclose(other, np.asarray(one), rtol=1e-6, atol=1e-9 * np.abs(other).max())
    return measured(found, calls, rounds, 1e6)


ROWS: dict[str, Callable[[int], Row]] = {f"gradients-{case.label}": partial(row, case) for case in cases()}
