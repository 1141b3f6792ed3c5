"""Linear algebra: products, systems and decompositions, small, many and large. All compute in the same dtype."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from benchmarks.measure import Row, guarded, measured, module, on_jax, on_torch

# isort: split
import numpy as np
import scipy.linalg

import srcgrad as sg

SMALL = {"numpy": 2.0, "jax": 2.0}
"""The bounds of products of small matrices."""


class Case(NamedTuple):
    """What ``make`` writes with NumPy, jax.numpy or torch, of arrays that are made when they are asked for."""

    label: str
    make: Callable[[Any], Callable[..., Any]]
    arrays: Callable[[], tuple[Any, ...]]
    bounds: dict[str, float] = {}  # noqa: RUF012  no one writes into it


def normal(*shape: int, dtype: str = "float64") -> Any:
    values = np.random.default_rng(len(shape)).normal(size=shape)
    return (values + 0.5j * values[..., ::-1] if dtype.startswith("complex") else values).astype(dtype)


def two(*shapes: tuple[int, ...], dtype: str = "float64") -> Callable[[], tuple[Any, ...]]:
    return lambda: tuple(normal(*shape, dtype=dtype) for shape in shapes)


def product(xp: Any) -> Callable[..., Any]:
    return lambda a, b: a @ b


def products() -> Iterator[Case]:
    for dtype in ("float64", "float32", "complex128"):
        for n in (4, 5, 8, 13, 16):
            yield Case(f"matmul-{dtype}-1000x{n}", product, two((1000, n, n), (1000, n, n), dtype=dtype), SMALL)
    for n in (4, 8, 16, 32, 64, 128, 512):
        yield Case(f"matmul-{n}", product, two((n, n), (n, n)), SMALL if n <= 16 else {})
    for n in (4, 8, 16):
        yield Case(f"matmul-transposed-1000x{n}", lambda xp: lambda a, b: a @ b.mT, two((1000, n, n), (1000, n, n)))
    for n in (4, 16, 64, 512):
        yield Case(f"matvec-{n}", product, two((n, n), (n,)))
        yield Case(f"vecmat-{n}", product, two((n,), (n, n)))
    for n in (16, 1000, 100_000):
        yield Case(f"dot-{n}", product, two((n,), (n,)))
    yield Case("gram-1000x8", lambda xp: lambda a, b: a.T @ b, two((1000, 8), (1000, 8)))
    yield Case("points-by-rotation-1000x3", product, two((1000, 3), (3, 3)))
    yield Case("matmul-int64-100", product, lambda: (np.arange(10000, dtype=np.int64).reshape(100, 100),) * 2)


def definite(*shape: int) -> Any:
    a = normal(*shape)
    return a @ a.mT + shape[-1] * np.eye(shape[-1])


def regular(*shape: int) -> Any:
    return normal(*shape) + shape[-1] ** 0.5 * np.eye(shape[-1])


def triangle(xp: Any) -> Callable[..., Any]:
    if xp is np:
        return lambda a, b: scipy.linalg.solve_triangular(a, b, lower=True, check_finite=False)
    if xp is module("torch"):
        return lambda a, b: xp.linalg.solve_triangular(a, b, upper=False)
    solve = module("jax.scipy.linalg").solve_triangular
    return lambda a, b: solve(a, b, lower=True)


def of_matrix(name: str) -> Callable[[Any], Callable[..., Any]]:
    """A function of the modules ``linalg``; of several results, a tuple."""

    def make(xp: Any) -> Callable[..., Any]:
        f = getattr(xp.linalg, name)
        return (lambda a: tuple(f(a))) if name in ("slogdet", "qr") else (lambda a: f(a))

    return make


def solution(xp: Any) -> Callable[..., Any]:
    return lambda a, b: xp.linalg.solve(a, b)


def systems() -> Iterator[Case]:
    for shape in ((1000, 3, 3), (1000, 8, 8), (64, 64), (500, 500)):
        label = "x".join(map(str, shape[:-1]))
        for name in ("cholesky", "inv", "slogdet", "qr", "eigvalsh"):
            matrix = partial(definite if name in ("cholesky", "eigvalsh") else regular, *shape)
            yield Case(f"{name}-{label}", of_matrix(name), lambda matrix=matrix: (matrix(),))
        yield Case(f"solve-{label}", solution, lambda shape=shape: (regular(*shape), normal(*shape[:-1], 1)))
    for n, count in ((64, 1), (64, 64), (500, 1), (500, 500)):
        yield Case(f"triangle-{n}-{count}", triangle, lambda n=n, count=count: (definite(n, n), normal(n, count)))


def row(case: Case, rounds: int) -> Row:
    found, given = Row(case.label, "us", bounds=case.bounds), case.arrays()
    right = case.make(np)(*given)
    tolerance = 1e-9 if given[0].dtype.itemsize >= 8 else 1e-3
    calls: dict[str, Any] = {
        "srcgrad": partial(sg.jit(case.make(np), backend="llvm"), *given),
        "numpy": partial(case.make(np), *given),
    }
    for peer, on_peer in (("jax", on_jax), ("torch", on_torch)):
        call = guarded(found, peer, partial(on_peer, case.make, given))
        if call is not None:
            calls[peer] = call
    for call in calls.values():
        for one, other in zip(
            *[value if isinstance(value, tuple) else (value,) for value in (call(), right)], strict=True
        ):
            np.testing.assert_allclose(np.asarray(one), other, rtol=1e-3, atol=tolerance)
    return measured(found, calls, rounds, 1e6)


ROWS: dict[str, Callable[[int], Row]] = {
    f"algebra-{case.label}": partial(row, case) for case in (*products(), *systems())
}
