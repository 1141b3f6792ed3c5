"""What V g(w) V^H is not written for and that is smooth at ties as it is: expected values sum(g(w) * diag(V^H M V)),
which are traces of V g(w) V^H M, single elements and rows of it, lengths of coefficients, and products of all g(w).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.hard_points.spectra import (  # noqa: F401  the fixtures work where they are imported
    RANDOM,
    B,
    Function,
    H,
    K,
    close,
    la,
    on_numpy,
    rotated,
    same_numbers,
)
from tests.hard_points.test_spectra_spellings import check_spelling, passes

M, L = RANDOM.normal(size=(2, 3, 3))
SEVERAL = RANDOM.normal(size=(2, 3, 3))

TRACES: dict[str, Function] = {
    "diagonal": lambda w, v: np.sum(np.exp(-w) * np.diag(v.T @ M @ v)),
    "product of rows": lambda w, v: np.exp(-w) @ np.diag(v.T @ (M @ v)),
    "columns": lambda w, v: np.sum(np.exp(-w) * np.sum(v * (M @ v), axis=0)),
    "einsum": lambda w, v: np.sum(np.einsum("ji,jk,ki->i", v, M, v) / w),
    "einsum of all": lambda w, v: np.einsum("ji,jk,ki,i->", v, M, v, w**2),
    "trace": lambda w, v: np.trace(v.T @ M @ v @ np.diag(w**3)),
    "trace, weighted before": lambda w, v: np.trace(np.diag(np.sqrt(w)) @ v.T @ M @ v),
    "trace, divided": lambda w, v: np.trace((v.T @ M @ v) / w),
    "two matrices": lambda w, v: np.sum(np.log(w) * np.diag(v.T @ M @ L @ v)),
    "two matrices apart": lambda w, v: np.sum(np.log(w) * np.sum((M @ v) * (L @ v), axis=0)),
    "average": lambda w, v: np.average(np.diag(v.T @ M @ v), weights=np.exp(-w)),
    "part of the vectors": lambda w, v: np.trace(v[:, :2].T @ M @ v[:, :2]) + np.trace(v[:, 2:].T @ M @ v[:, 2:]),
    "terms": lambda w, v: sum(np.exp(-w[i]) * (v[:, i] @ M @ v[:, i]) for i in range(3)),
    "terms of pairs": lambda w, v: sum(x**2 * np.dot(y, M @ y) for x, y in zip(w, v.T, strict=True)),
    "terms of projectors": lambda w, v: sum(w[i] ** 2 * np.sum(np.outer(v[:, i], v[:, i]) * M) for i in range(3)),
    "several": lambda w, v: np.stack([np.sum(np.exp(-w) * np.diag(v.T @ m @ v)) for m in SEVERAL]),
    "several at once": lambda w, v: np.einsum("i,ki,bkl,li->b", np.exp(-w), v, SEVERAL, v),
}


@pytest.mark.parametrize("name", TRACES)
def test_traces(name: str) -> None:
    def f(a: Any) -> Any:
        return TRACES[name](*la.eigh(a))

    assert "spectral" in passes(f, B)
    check_spelling(f, B, H, K)


def test_traces_have_the_slope_of_the_matrix_function() -> None:
    """At the unit matrix the slope of tr(exp(a) M) is e M: the numbers beside the diagonal were 0."""
    for name in ("diagonal", "columns", "terms"):
        for size, backend in ((3, "numpy"), (3, "llvm")):
            found = sg.grad(lambda a, name=name: TRACES[name](*np.linalg.eigh(a)), backend=backend)(np.eye(size))
            close(found, -np.exp(-1) * (M + M.T) / 2, 1e-14)


COMPLEX_M = (lambda x: x + x.conj().T)(RANDOM.normal(size=(3, 3)) + 1j * RANDOM.normal(size=(3, 3)))

COMPLEX: dict[str, Callable[..., Any]] = {
    "real parts": lambda w, v: np.sum(np.exp(-w) * np.real(np.diag(v.conj().T @ COMPLEX_M @ v))),
    "the real part": lambda w, v: np.sum(np.exp(-w) * np.diag(v.conj().T @ COMPLEX_M @ v)).real,
    "einsum": lambda w, v: np.einsum("ki,kl,li->i", v.conj(), COMPLEX_M, v).real @ np.exp(-w),
    "terms": lambda w, v: sum(np.exp(-w[i]) * np.vdot(v[:, i], COMPLEX_M @ v[:, i]).real for i in range(3)),
    "imaginary beside": lambda w, v: np.sum(np.exp(-w) * np.real(1j * np.diag(v.conj().T @ (COMPLEX_M @ v * 1j)))),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_traces_of_complex_matrices(name: str) -> None:
    a = rotated([2.0, 2.0, 2.0], True)
    h = (lambda x: x + x.conj().T)(RANDOM.normal(size=(3, 3)) + 1j * RANDOM.normal(size=(3, 3)))

    def f(a: Any) -> Any:
        return COMPLEX[name](*la.eigh(a))

    sign = -1 if name == "imaginary beside" else 1
    expected = sign * -np.exp(-2.0) * np.trace(h @ COMPLEX_M).real
    close(sg.jvp(f, (a,), (h,))[1], expected, 1e-12)
    close(np.sum(sg.grad(f)(a) * h).real, expected, 1e-12)
    close(sg.hvp(f, (a,), (h,)), np.conj(np.exp(-2.0) * sign * (h @ COMPLEX_M + COMPLEX_M @ h) / 2), 1e-12)


SINGULAR: dict[str, Function] = {
    "left and right": lambda u, s, vh: np.sum(np.tanh(s) * np.diag(u.T @ M @ vh.T)),
    "left": lambda u, s, vh: np.sum(s**2 * np.einsum("ki,kl,li->i", u, M, u)),
    "terms": lambda u, s, vh: sum(s[i] ** 3 * (u[:, i] @ M @ vh[i]) for i in range(3)),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_traces_of_singular_vectors(name: str) -> None:
    def f(a: Any) -> Any:
        return SINGULAR[name](*la.svd(a))

    a = 2 * la.qr(RANDOM.normal(size=(3, 3)))[0]
    assert "spectral" in passes(f, a)
    check_spelling(f, a, H, K)


LEFT_ALONE: dict[str, Function] = {
    "weights of others": lambda w, v: np.sum(np.exp(w)[::-1] * np.diag(v.T @ M @ v)),
    "products of diagonals": lambda w, v: np.sum(np.diag(v.T @ M @ v) * np.diag(v.T @ L @ v)),
    "real parts of two": lambda w, v: np.sum(np.real(np.diag(v.T @ (M + 1j * L) @ v)) * np.real(np.exp(1j * w))),
    "divided by a diagonal": lambda w, v: np.sum(w / (9 + np.diag(v.T @ M @ v))),
    "beside the diagonal": lambda w, v: np.sum(w[1:] * np.diag(v.T @ M @ v, 1)),
    "the other diagonal": lambda w, v: np.sum(w * np.diag(np.fliplr(v.T @ M @ v))),
    "powers of two sums": lambda w, v: np.sum(w * np.sum(v * (M @ v), axis=0) ** 2),
    "rows": lambda w, v: np.sum(np.exp(w) * np.diag(v @ M @ v.T)),
    "numbers alone": lambda w, v: np.sum(np.exp(w) * np.diag(M @ L)),
    "numbers summed": lambda w, v: np.sum(np.exp(w) * np.sum(M * L, axis=0)),
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_other_sums_keep_their_derivatives(name: str) -> None:
    """Where eigenvalues are distinct all functions of w and V have one."""
    a = rotated([1.0, 2.0, 4.0])

    def f(x: Any) -> Any:
        return LEFT_ALONE[name](*la.eigh(x))

    close(f(a), sg.jit(f)(a), 1e-13)
    check_spelling(f, a, H, K)


PRODUCTS: dict[str, Callable[[Any], Any]] = {
    "shifted": lambda w: np.prod(w + 1),
    "roots": lambda w: np.prod(np.sqrt(w)) ** (1 / 3),
    "of any sign": lambda w: np.prod(np.cos(w)),
    "powers of it": lambda w: np.sum((np.prod(np.sqrt(w)) ** (-1 / 3) * np.sqrt(w)) ** 2.5),
    "some of the values": lambda w: np.prod(1 + w[:2]) * np.prod(1 + w[2:]),
    "reversed": lambda w: np.prod(np.exp(-w[::-1])) * np.prod(w[3:]),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str) -> None:
    def f(a: Any) -> Any:
        return PRODUCTS[name](la.eigvalsh(a))

    assert "spectral" in passes(f, B)
    check_spelling(f, B, H, K)
    for dtype, backend in ((np.float32, "numpy"), (np.float32, "llvm"), (np.float64, "llvm")):
        found = sg.hvp(f, (B.astype(dtype),), (H.astype(dtype),), backend=backend)
        assert found.dtype == dtype
        close(found, sg.hvp(f, (B,), (H,)), 1e-13 if dtype is np.float64 else 1e-5)


def test_a_product_of_singular_values() -> None:
    """The determinant's absolute value."""
    a, (h, k) = 2 * la.qr(RANDOM.normal(size=(3, 3)))[0], RANDOM.normal(size=(2, 3, 3))
    expected = sg.jvp(lambda x: sg.jvp(lambda y: np.abs(la.det(y)), (x,), (h,))[1], (a,), (k,))[1]
    for f in (lambda x: np.prod(la.svd(x)[1]), lambda x: np.prod(la.svd(x, compute_uv=False))):
        close(sg.jvp(lambda x, f=f: sg.jvp(f, (x,), (h,))[1], (a,), (k,))[1], expected, 1e-13)


def test_products_of_numbers_that_differ_by_much() -> None:
    """The slope of exp(tr a) is a multiple of the unit matrix, whatever the factors; one may be 0."""
    a = rotated([-20.0, 1.0, 20.0])
    close(sg.grad(lambda a: np.prod(np.exp(la.eigvalsh(a))))(a), np.exp(1.0) * np.eye(3), 1e-12)
    values = np.array([1.0, 2.0, 4.0])
    found = sg.grad(lambda a: np.prod(la.eigvalsh(a) - 1))(np.diag(values))
    close(found, np.diag([3.0, 0.0, 0.0]), 1e-14)
    close(sg.hvp(lambda a: np.prod(la.eigvalsh(a) - 1), (np.diag(values),), (np.diag(values),)),
          np.diag([2.0 * 3 + 4.0, 3.0, 1.0]), 1e-13)  # fmt: skip


ROWS: dict[str, Function] = {
    "an element": lambda w, v: np.sum(v[0] * np.exp(-w) * v[1]),
    "on the diagonal": lambda w, v: np.sum(np.exp(-w) * v[-1] ** 2),
    "dot": lambda w, v: np.dot(v[2], np.exp(-w) * v[0]),
    "einsum": lambda w, v: np.einsum("i,i,i->", v[1], w**2, v[2]),
    "a row": lambda w, v: (v[1] * np.exp(-w)) @ v.T,
    "a row times x": lambda w, v: v[0] @ (np.exp(-w) * (v.T @ M[0])),
    "coefficients and a row": lambda w, v: np.sum(np.exp(-w) * (M[0] @ v) * v[2]),
    "some rows": lambda w, v: np.sum(v[1:] ** 2 * np.sqrt(w), axis=1),
    "rows by a list": lambda w, v: np.sum(v[[2, 0]] ** 2 * np.sqrt(w), axis=1),
    "every other row": lambda w, v: (v[::2] * np.sqrt(w)) @ v[::2].T,
    "terms": lambda w, v: sum(v[0, k] * np.exp(-w[k]) * v[1, k] for k in range(3)),
    "all elements": lambda w, v: np.array([[np.sum(v[i] * v[j] / w) for j in range(3)] for i in range(3)]),
    "scaled": lambda w, v: np.sum((v * np.exp(-w))[0] * v[1]),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows(name: str) -> None:
    def f(a: Any) -> Any:
        return ROWS[name](*la.eigh(a))

    assert "spectral" in passes(f, B)
    check_spelling(f, B, H, K)


def test_rows_of_other_vectors() -> None:
    """Of complex ones, and of singular ones; at the unit matrix the slope of exp(-a) is that of -a / e."""

    def element(a: Any) -> Any:
        w, v = la.eigh(a)
        return np.sum(v[0] * np.exp(-w) * np.conj(v[2]))

    h = (lambda x: x + x.conj().T)(RANDOM.normal(size=(3, 3)) + 1j * RANDOM.normal(size=(3, 3)))
    close(sg.jvp(element, (np.eye(3) + 0j,), (h,))[1], -h[0, 2] / np.e, 1e-14)

    def polar(a: Any) -> Any:
        u, _, vh = la.svd(a)
        return u[1] @ vh[:, 0] + np.sum(u[0] * u[2])

    a, (h, k) = 2 * la.qr(RANDOM.normal(size=(3, 3)))[0], RANDOM.normal(size=(2, 3, 3))
    check_spelling(polar, a, h, k)


ROWS_LEFT_ALONE: dict[str, Function] = {
    "three rows": lambda w, v: np.sum(v[0] * v[1] * v[2] * w),
    "a row and all": lambda w, v: (v * v[0] * w) @ v.T,
    "columns": lambda w, v: np.sum(v[:, 0] * np.exp(w) * v[:, 1]),
    "shifted": lambda w, v: np.sum(v[0, 1:] * v[0, :-1] * w[1:]),
    "a row alone": lambda w, v: np.sum(v[0] ** 4 * w),
    "a row in an exponent": lambda w, v: np.sum(np.exp(v[0]) * w * v[1]),
    "a row that divides": lambda w, v: np.sum(w * v[0] / (3 + v[1] * v[0])),
    "a quotient of rows": lambda w, v: np.sum(w * v[0] / v[1]),
    "outer": lambda w, v: np.outer(v[0], v[1]) @ w,
    "reversed": lambda w, v: np.sum(w * v[0] * v[0, ::-1]),
}


@pytest.mark.parametrize("name", ROWS_LEFT_ALONE)
def test_other_uses_of_rows_keep_their_derivatives(name: str) -> None:
    a = rotated([1.0, 2.0, 4.0])

    def f(x: Any) -> Any:
        return ROWS_LEFT_ALONE[name](*la.eigh(x))

    close(f(a), sg.jit(f)(a), 1e-13)
    check_spelling(f, a, H, K)


LENGTHS: dict[str, Function] = {
    "a distance": lambda w, v: la.norm((v.T @ M[0]) / np.sqrt(w)),
    "of several": lambda w, v: la.norm((L @ v) / np.sqrt(w), axis=1),
    "of several, in columns": lambda w, v: la.norm(np.exp(-w)[:, None] * (v.T @ L), axis=0),
    "of all": lambda w, v: la.norm((L @ v) / np.sqrt(w)),
    "part of the vectors": lambda w, v: la.norm(v[:, 1:].T @ M[0]) + la.norm(v[:, :1].T @ M[0]),
}


@pytest.mark.parametrize("name", LENGTHS)
def test_lengths(name: str) -> None:
    def f(a: Any) -> Any:
        return LENGTHS[name](*la.eigh(a))

    a = B if name != "part of the vectors" else np.diag([1.0, 4.0, 4.0])
    assert "spectral" in passes(f, a)
    check_spelling(f, a, H, K)


def test_lengths_of_other_vectors() -> None:
    """Of complex ones, of singular ones; and of each coefficient of several x, which are no lengths of vectors."""
    x = RANDOM.normal(size=3) + 1j * RANDOM.normal(size=3)
    h = (lambda x: x + x.conj().T)(RANDOM.normal(size=(3, 3)) + 1j * RANDOM.normal(size=(3, 3)))

    def length(a: Any) -> Any:
        w, v = la.eigh(a)
        return la.norm(np.exp(-w) * (v.conj().T @ x))

    expected = -np.real(x.conj() @ h @ x) / la.norm(x) / np.e
    close(sg.jvp(length, (np.eye(3) + 0j,), (h,))[1], expected, 1e-14)
    singular = 2 * la.qr(RANDOM.normal(size=(3, 3)))[0][:, :2]

    def tall(a: Any) -> Any:
        u, s, vh = la.svd(a, full_matrices=False)
        return la.norm(u.T @ M[0] / s) + la.norm((vh @ L[:2]) * s[:, None])

    check_spelling(tall, singular, *RANDOM.normal(size=(2, 3, 2)))

    def each(a: Any) -> Any:
        _, v = la.eigh(a)
        return la.norm(L @ v, axis=0)

    check_spelling(each, rotated([1.0, 2.0, 4.0]), H, K)
