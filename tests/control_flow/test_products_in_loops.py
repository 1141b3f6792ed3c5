"""Loops that are a product of matrices: what they give, and their derivatives, are those of the product."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

BACKENDS = ("numpy", "llvm", "xla")
N, M, K = 19, 21, 23
"""More than the trips that are written out."""


def by_elements(a: Any, b: Any, c: Any) -> Any:
    c = c.copy()
    for i in range(N):
        for j in range(M):
            for k in range(K):
                c[i, j] += a[i, k] * b[k, j]
    return c


def by_numbers(a: Any, b: Any, c: Any) -> Any:
    out = np.zeros_like(c)
    for j in range(M):
        for i in range(N):
            total = c[i, j]
            for k in range(K):
                total = total + a[i, k] * b[k, j]
            out[i, j] = total
    return out


def by_rows(a: Any, b: Any, c: Any) -> Any:
    c = c.copy()
    for i in range(N):
        for k in range(K - 1, -1, -1):
            c[i] += a[i, k] * b[k]
    return c


def by_columns(a: Any, b: Any, c: Any) -> Any:
    c = c.copy()
    for j in range(M):
        c[:, j] += a @ b[:, j]
    return c


def by_outer_products(a: Any, b: Any, c: Any) -> Any:
    c = c.copy()
    for k in range(K):
        c += a[:, k][:, None] * b[k]
    return c


def product(a: Any, b: Any, c: Any) -> Any:
    return c + a @ b


def triangle(a: Any, b: Any, c: Any) -> Any:
    """Two products that are taken from the upper triangle, which is scaled before."""
    c = c.copy()
    for i in range(N):
        c[i, i:] *= 0.5
        for k in range(K):
            c[i, i:] -= a[i, k] * 0.25 * b[k, i:] - b[k, i] * a[i, k]
    return c


def masked_product(a: Any, b: Any, c: Any) -> Any:
    found = c * 0.5 - (0.25 * a @ b - np.sum(a * b.T[:N], 1)[:, None])
    return np.where(np.arange(M) >= np.arange(N)[:, None], found, c)


def turned(a: Any, b: Any, c: Any) -> Any:
    """Indices that run down, or are one off, and what is written where the loop does not read."""
    out = np.ones((N + 2, M))
    for i in range(N):
        for j in range(M):
            for k in range(K - 1):
                out[i + 1, M - 1 - j] += a[N - 1 - i, k + 1] * b[K - 1 - k, j]
    return out + c[0]


def turned_product(a: Any, b: Any, c: Any) -> Any:
    inner = a[::-1, 1:] @ b[:0:-1]
    return 1.0 + np.concatenate([np.zeros((1, M)), inner[:, ::-1], np.zeros((1, M))]) + c[0]


LOOPS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "elements": (by_elements, product),
    "numbers": (by_numbers, product),
    "rows": (by_rows, product),
    "columns": (by_columns, product),
    "outer": (by_outer_products, product),
    "triangle": (triangle, masked_product),
    "turned": (turned, turned_product),
}


def arrays(seed: int = 0) -> list[Any]:
    random = np.random.default_rng(seed)
    return [random.normal(size=size) for size in ((N, K), (K, M), (N, M))]


@pytest.mark.parametrize("name", LOOPS)
def test_derivatives_are_those_of_the_product(name: str) -> None:
    loop, whole = LOOPS[name]
    given, along = arrays(), arrays(1)
    np.testing.assert_allclose(loop(*given), whole(*given), rtol=1e-10, atol=1e-10)

    def total(f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given: np.sum(np.sin(f(*given)))

    every = (0, 1, 2)
    slopes = [sg.grad(total(f), argnums=every)(*given) for f in (loop, whole)]
    pushed = [sg.jvp(f, tuple(given), tuple(along))[1] for f in (loop, whole)]
    bent = [sg.hvp(total(f), tuple(given), tuple(along)) for f in (loop, whole)]
    for one, other in zip((*slopes[0], pushed[0], *bent[0]), (*slopes[1], pushed[1], *bent[1]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("name", "backend"), [("elements", "numpy"), ("triangle", "numpy"), ("triangle", "xla")])
def test_gradients_on_other_backends(name: str, backend: str) -> None:
    loop, whole = LOOPS[name]
    slopes = [sg.grad(lambda *given, f=f: np.sum(np.sin(f(*given))), backend=backend)(*arrays()) for f in (loop, whole)]
    np.testing.assert_allclose(*slopes, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", LOOPS)
def test_infinities_meet_what_they_meet_in_the_loop(name: str, backend: str) -> None:
    """A zero times an infinity is nan where the loop multiplies them, and nowhere else."""
    a, b, c = arrays()
    loop = LOOPS[name][0]
    product = sg.jit(loop, backend=backend)
    close = {"rtol": 1e-10, "atol": 1e-10, "equal_nan": True}
    np.testing.assert_allclose(product(a, b, c), loop(a, b, c), **close)
    a[3, 5], b[5, :4], b[7, 9], c[0, 2], a[4, 7] = 0.0, np.inf, -np.inf, np.nan, 0.0
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(product(a, b, c), loop(a, b, c), **close)


def test_what_lies_outside_a_triangle_has_no_part_in_derivatives() -> None:
    a, b, c = arrays()
    b[:, 0] = np.inf  # only the first row has this column

    def below(a: Any, b: Any, c: Any) -> Any:
        return np.sum(triangle(a, b, c)[2:, 1:])

    slope = sg.grad(below, argnums=(0, 1, 2))
    for one, other in zip(slope(a, b, c), slope(a, np.where(np.isinf(b), 0.0, b), c), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128", "int64", "int32"])
@pytest.mark.parametrize("name", ["elements", "rows", "outer"])
def test_other_numbers(name: str, dtype: str) -> None:
    """Whole numbers wrap round as they do in the loop."""
    loop = LOOPS[name][0]
    given = [(array * (1e8 if np.dtype(dtype).kind == "i" else 1)).astype(dtype) for array in arrays()]
    if np.dtype(dtype).kind == "c":
        given = [array * (1 + 2j) for array in given]
    with np.errstate(over="ignore"):
        found, expected = sg.jit(loop)(*given), loop(*given)
    assert found.dtype == expected.dtype
    if np.dtype(dtype).kind == "i":
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-10 if dtype == "complex128" else 1e-3)


def test_a_product_of_the_loop_overflows_where_it_does_there() -> None:
    """Factors are multiplied in the order of the code: these are finite in one order alone."""

    def scaled(a: Any, b: Any, s: Any) -> Any:
        total = np.zeros((N, M))
        for i in range(N):
            for k in range(K):
                total[i] += a[i, k] * s * b[k]
        return total

    for big, small, s in ((1e200, 1e-200, 1e150), (1e200, 1e200, 1e-150), (1e-200, 1e200, 1e-150)):
        a, b = np.full((N, K), big), np.full((K, M), small)
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(sg.jit(scaled)(a, b, s), scaled(a, b, s), rtol=1e-12)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_trips(count: int) -> None:
    def few(a: Any, b: Any) -> Any:
        total = np.zeros((N, M))
        for i in range(N):
            for k in range(a.shape[1]):
                total[i] += a[i, k] * b[k]
        return total

    a, b, _ = arrays()
    np.testing.assert_allclose(sg.jit(few)(a[:, :count], b[:count]), a[:, :count] @ b[:count], rtol=1e-12, atol=1e-12)
