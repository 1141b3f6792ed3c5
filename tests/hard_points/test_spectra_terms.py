"""Functions of matrices that are summed vector by vector, as textbooks write them: smooth at ties, as products are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg as sl

import srcgrad as sg
from srcgrad.ir.passes.rules import take_limits
from srcgrad.ir.passes.terms import terms_at_once
from tests.hard_points.spectra import (  # noqa: F401  the fixtures work where they are imported
    RANDOM,
    XS,
    Array,
    B,
    Function,
    H,
    K,
    X,
    close,
    la,
    on_numpy,
    rotated,
    same_numbers,
)
from tests.hard_points.test_spectra_spellings import check_spelling, passes
from tests.tracing.trace_support import trace_function

TERMS: dict[str, Function] = {}


def terms(f: Function) -> Function:
    """A function of w and V that is smooth at ties."""
    TERMS[f.__name__] = lambda a: f(*la.eigh(a))
    return f


@terms
def generator(w, v):
    return sum(np.sqrt(w[i]) * np.outer(v[:, i], v[:, i]) for i in range(len(w)))


@terms
def written_out_for_three(w, v):
    a, b, c = v.T[:3]
    rest = (v[:, 3:] * w[3:] ** 2) @ v[:, 3:].T
    return w[0] ** 2 * np.outer(a, a) + w[1] ** 2 * np.outer(b, b) + w[2] ** 2 * np.outer(c, c) + rest


@terms
def loop(w, v):
    m = np.zeros_like(v)
    for i in range(len(w)):
        m += np.sqrt(w[i]) * np.outer(v[:, i], v[:, i])
    return m


@terms
def loop_from_the_end(w, v):
    m = np.zeros_like(v)
    for i in range(1, len(w) + 1):
        m = m + v[:, -i][:, None] * v[:, -i] / w[len(w) - i]
    return m


@terms
def loop_over_pairs(w, v):
    m = 0
    for value, vector in zip(w, v.T, strict=True):
        column = vector[:, None]
        m = m + np.exp(-value) * (column @ column.T)
    return m


@terms
def loop_with_a_threshold(w, v):
    m = np.zeros_like(v)
    for i in range(len(w)):
        if w[i] > 1e-10:
            m += np.outer(v[:, i], v[:, i]) / w[i]
    return m


@terms
def loop_above_a_threshold(w, v):
    m = np.zeros_like(v)
    for i in range(len(w)):
        if w[i] > 2.5:
            m += w[i] ** 2 * np.outer(v[:, i], v[:, i])
    return m + np.trace(m) * np.eye(len(w)) + np.sum(w**3)


@terms
def loop_of_two_parts(w, v):
    above, below = np.zeros_like(v), np.zeros_like(v)
    for i in range(len(w)):
        p = np.outer(v[:, i], v[:, i])
        if w[i] > 2.5:
            above += w[i] ** 2 * p
        else:
            below += w[i] * p
    return above - 3 * below


@terms
def columns_by_lists(w, v):
    m = np.zeros_like(v)
    for k in range(len(w)):
        m = m + np.sqrt(w[k]) * v[:, [k]] @ v[:, [k]].T
    return m


@terms
def subtracted(w, v):
    total = 0.0
    for value in w:
        total -= value * np.log(value)
    return total


@terms
def evolved(w, v):
    x = np.cos(np.arange(float(len(w))))
    c, y = v.T @ x, np.zeros(len(w))
    for k in range(len(w)):
        y = y + c[k] * np.exp(-w[k]) * v[:, k]
    return y


@terms
def components_summed(w, v):
    x = np.cos(np.arange(float(len(w))))
    y = np.zeros(len(w))
    for k in range(len(w)):
        y += np.sqrt(w[k]) * v[:, k] * np.sum(v[:, k] * x)
    return y


@terms
def quadratic_form(w, v):
    x = np.cos(np.arange(float(len(w))))
    return sum(np.dot(v[:, k], x) ** 2 / (w[k] + 0.1) for k in range(len(w)))


@terms
def stacked_terms(w, v):
    return np.sum([np.sqrt(w[k]) * np.outer(v[:, k], v[:, k]) for k in range(len(w))], axis=0)


@terms
def list_on_the_diagonal(w, v):
    return v @ np.diag([1 / np.sqrt(value) for value in w]) @ v.T


@terms
def written_on_the_diagonal(w, v):
    d = np.zeros_like(v)
    for i in range(len(w)):
        d[i, i] = np.sqrt(w[i])
    return v @ d @ v.T


@terms
def columns_one_by_one(w, v):
    half = np.zeros_like(v)
    for i in range(len(w)):
        half[:, i] = v[:, i] * np.sqrt(w[i])
    return half @ half.T


@terms
def columns_scaled_in_place(w, v):
    half = v.copy()
    for i in range(len(w)):
        half[:, i] *= w[i] ** 0.25
    return half @ half.T


@terms
def product_written_out(w, v):
    return (v[:, None, :] * np.sqrt(w) * v[None, :, :]).sum(-1)


@terms
def projectors(w, v):
    p = np.einsum("ik,jk->kij", v, v)
    return np.tensordot(np.sqrt(w), p, 1)


@terms
def diagonal_alone(w, v):
    return np.sum(v**2 * np.sqrt(w), axis=1)


@terms
def chain_of_four(w, v):
    return np.einsum("ik,k,jk,j->i", v, np.sqrt(w), v, np.cos(np.arange(float(len(w)))))


@terms
def values_multiplied(w, v):
    rest = np.prod(w[3:])
    return w[0] * w[1] * rest * w[2] if len(w) == 3 else np.prod(w)


@terms
def product_of_pairs(w, v):
    total = 1.0
    for i in range(len(w)):
        total = total * (1 + np.sqrt(w[i]))
    return total * total


@terms
def list_of_sums(w, v):
    return np.array([sum(np.exp(-t * w)) for t in (0.5, 1.0)])


@terms
def sum_of_sums(w, v):
    return np.sum(np.exp(-w)) + np.sum(np.exp(-2 * w)) * np.sum(np.exp(-3 * w))


LARGE = 20
"""So many trips are a loop, three are written out."""


@pytest.mark.parametrize("name", TERMS)
def test_terms_written_out(name: str) -> None:
    assert "spectral" in passes(TERMS[name], B)
    check_spelling(TERMS[name], B, H, K)


@pytest.mark.parametrize(
    "name", [name for name in TERMS if name.startswith(("loop", "col", "ev", "comp", "written_on", "sub"))]
)
def test_terms_of_a_loop(name: str) -> None:
    h, k = ((x + x.T) / 2 for x in 0.3 * RANDOM.normal(size=(2, LARGE, LARGE)))
    assert "spectral" in passes(TERMS[name], 2 * np.eye(LARGE))
    check_spelling(TERMS[name], 2 * np.eye(LARGE), h, k)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", ["generator", "loop", "loop_with_a_threshold", "columns_scaled_in_place"])
def test_terms_have_the_slope_of_the_product(name: str, backend: Any) -> None:
    """At the unit matrix, where what couples the terms is all of it: 0 was what it gave."""
    slope = {"generator": 0.5, "loop": 0.5, "loop_with_a_threshold": -1.0, "columns_scaled_in_place": 0.5}[name]
    for dtype, tolerance in ((np.float64, 1e-14), (np.float32, 1e-6)):
        for size in (3, LARGE):
            h = (lambda x: x + x.T)(RANDOM.normal(size=(size, size))).astype(dtype)
            a = np.eye(size, dtype=dtype)
            close(sg.jvp(TERMS[name], (a,), (h,), backend=backend)[1], slope * h, tolerance)
            found = sg.grad(lambda x, h=h: np.sum(TERMS[name](x) * h), backend=backend)(a)
            assert found.dtype == dtype
            close(found, slope * h, tolerance)


def test_terms_of_complex_vectors() -> None:
    def f(a: Any) -> Any:
        w, v = la.eigh(a)
        return sum(w[i] ** 2 * np.outer(v[:, i], v[:, i].conj()) for i in range(3))

    def trips(a: Any) -> Any:
        w, v = la.eigh(a)
        m = np.zeros(v.shape, dtype=complex)
        for i in range(len(w)):
            m += w[i] ** 2 * np.outer(v[:, i], np.conj(v[:, i]))
        return m

    for size, g in ((3, f), (LARGE, trips)):
        a = rotated([2.0] * size, True)
        h = RANDOM.normal(size=(size, size)) + 1j * RANDOM.normal(size=(size, size))
        h = h + h.conj().T
        close(sg.jvp(g, (a,), (h,))[1], a @ h + h @ a, 1e-13)
        close(sg.jvp(lambda x, g=g, h=h: sg.jvp(g, (x,), (h,))[1], (a,), (h,))[1], 2 * h @ h, 1e-13)


TALL: dict[str, Function] = {
    "diagonal block": lambda u, s, vh: u @ np.vstack([np.diag(np.tanh(s)), np.zeros((1, 2))]) @ vh,
    "diagonal part written": lambda u, s, vh: u @ part(np.zeros((3, 2)), s) @ vh,
    "diagonal filled": lambda u, s, vh: u @ filled(np.zeros((3, 2)), s) @ vh,
    "diagonal by index": lambda u, s, vh: la.multi_dot([u, indexed(np.zeros((3, 2)), s), vh]),
    "diagonal one by one": lambda u, s, vh: u @ one_by_one(np.zeros((3, 2)), s) @ vh,
    "diagonal of SciPy": lambda u, s, vh: u @ sl.diagsvd(np.tanh(s), 3, 2) @ vh,
    "unit matrix": lambda u, s, vh: u @ (np.eye(3, 2) * np.tanh(s)) @ vh,
    "pseudo-inverse": lambda u, s, vh: vh.T @ part(np.zeros((3, 2)), s).T @ u.T,
    "from the right": lambda u, s, vh: np.dot(u, np.dot(filled(np.zeros((3, 2)), s), vh)),
    "first vectors": lambda u, s, vh: (u[:, :2] * np.tanh(s)) @ vh,
    "as many as values": lambda u, s, vh: u[:, : len(s)] @ vh,
    "coefficients": lambda u, s, vh: vh.T @ ((u.T @ X)[:2] / s),
    "terms": lambda u, s, vh: sum(np.tanh(s[i]) * np.outer(u[:, i], vh[i]) for i in range(2)),
}


def part(d: Any, s: Any) -> Any:
    d[: len(s), : len(s)] = np.diag(np.tanh(s))
    return d


def filled(d: Any, s: Any) -> Any:
    np.fill_diagonal(d, np.tanh(s))
    return d


def indexed(d: Any, s: Any) -> Any:
    d[np.diag_indices(len(s))] = np.tanh(s)
    return d


def one_by_one(d: Any, s: Any) -> Any:
    for i in range(len(s)):
        d[i, i] = np.tanh(s[i])
    return d


@pytest.mark.parametrize("name", TALL)
def test_all_vectors_of_a_matrix_that_is_not_square(name: str) -> None:
    a, (h, k) = 2 * la.qr(RANDOM.normal(size=(3, 3)))[0][:, :2], RANDOM.normal(size=(2, 3, 2))

    def f(x: Any) -> Any:
        return TALL[name](*la.svd(x))

    assert "spectral" in passes(f, a) or "singular" in passes(f, a)
    check_spelling(f, a, h, k)


def test_all_vectors_of_a_wide_matrix() -> None:
    a, (h, k) = 2 * la.qr(RANDOM.normal(size=(3, 3)))[0][:2], RANDOM.normal(size=(2, 2, 3))

    def f(x: Any) -> Any:
        u, s, vh = la.svd(x)
        return u @ filled(np.zeros((2, 3)), s) @ vh

    check_spelling(f, a, h, k)


LEFT_ALONE: dict[str, Function] = {
    "weights of rows": lambda w, v: (v * np.exp(w)[:, None]) @ v.T,
    "differences in a ring": lambda w, v: np.sqrt((w[0] - w[1]) ** 2 + (w[1] - w[2]) ** 2 + (w[2] - w[0]) ** 2),
    "neighbours": lambda w, v: sum(w[i] * np.outer(v[:, i], v[:, i + 1]) for i in range(2)),
    "numbers of other vectors": lambda w, v: sum(w[2 - i] * np.outer(v[:, i], v[:, i]) for i in range(3)),
    "not transposed": lambda w, v: sum(w[i] * np.outer(v[:, i], v[i]) for i in range(3)),
    "one alone": lambda w, v: np.outer(v[:, 2], v[:, 2]) * w[2],
    "one twice": lambda w, v: sum(w[k] * np.outer(v[:, k], v[:, k]) for k in (2, 2)),
    "one is other": lambda w, v: sum(
        f(w[k]) * np.outer(v[:, k], v[:, k]) for k, f in enumerate((np.exp, np.cos, np.exp))
    ),
    "an array that is read": lambda w, v: read(w, v),
    "weights of rows and vectors": lambda w, v: np.sum(v[:, None] * v[None] * (XS @ XS.T)[:, None] * w, axis=-1),
}


def read(w: Any, v: Any) -> Any:
    m = np.eye(3)
    for i in range(3):
        m = m + w[i] * np.outer(v[:, i], v[:, i]) @ m
    return m


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_terms_of_other_functions_keep_their_derivatives(name: str) -> None:
    """Where eigenvalues are distinct all functions of w and V have one."""
    a = rotated([1.0, 2.0, 4.0])

    def f(x: Any) -> Any:
        return LEFT_ALONE[name](*la.eigh(x))

    close(f(a), sg.jit(f)(a), 1e-13)
    check_spelling(f, a, H, K)


def test_complex_terms_with_a_threshold() -> None:
    def inverse(a: Any) -> Any:
        u, s, vh = la.svd(a)
        m = np.zeros((3, 3), dtype=complex)
        for i in range(3):
            if s[i] > 1e-10:
                m += np.outer(vh[i].conj(), u[:, i].conj()) / s[i]
        return m

    h = RANDOM.normal(size=(3, 3)) + 1j * RANDOM.normal(size=(3, 3))
    close(sg.jvp(inverse, (2 * np.eye(3) + 0j,), (h,))[1], -h / 4, 1e-14)


def test_terms_that_no_rule_knows_are_no_array_of_all_of_them() -> None:
    """Products of columns with their neighbours are made one after the other: at once they are forty times as large."""

    def f(a: Any) -> Any:
        w, v = la.eigh(a)
        m = np.zeros_like(v)
        for i in range(len(w) - 1):
            m += w[i] * np.outer(v[:, i], v[:, i + 1])
        return np.sum(m)

    function, _ = trace_function(f, [np.diag(np.arange(40.0))])
    assert "[39,40,40]" in str(terms_at_once(function))
    assert "[39,40,40]" not in str(take_limits(function))


def test_a_sum_of_thousands_of_terms_is_prepared_at_once() -> None:
    """Nothing is looked at more often than there are terms."""

    def f(a: Any) -> Array:
        w, v = la.eigh(a)
        total = np.zeros((2, 2))
        for _ in range(400):
            total = total + w[0] * np.outer(v[:, 0], v[:, 1])
        return total

    assert np.isfinite(sg.jacfwd(f)(np.diag([1.0, 2.0]))).all()


@pytest.mark.parametrize("doubled", [lambda x: x + x, lambda x: x * x * 1.0], ids=["sums", "products"])
def test_what_is_used_twice_has_two_terms(doubled: Callable[[Any], Any]) -> None:
    """Thirty sums of a sum with itself were a sum of 2**30 terms."""

    def f(a: Any) -> Any:
        w, _ = la.eigh(a)
        x = w[0] * w[1]
        for _ in range(30):
            x = doubled(x)
        return x

    a = np.diag([0.5, 2.0])
    close(sg.grad(f)(a), 2.0**30 * np.diag([2.0, 0.5]), 1e-13)


SPAN = np.cos(np.arange(15.0).reshape(5, 3) ** 2)
SINGULAR, WITHIN = SPAN @ SPAN.T, SPAN @ np.array([[1.0, 0.5], [2.0, -1.0], [3.0, 0.25]])


def null_part(a: Any) -> Any:
    w, v = np.linalg.eigh(a)
    return np.sqrt(np.sum(((v.T @ WITHIN[:, 0]) * (w < 1e-9)) ** 2))


def null_parts(a: Any) -> Any:
    w, v = np.linalg.eigh(a)
    return np.sqrt(np.sum(np.where(w < 1e-9, WITHIN.T @ v, 0) ** 2, axis=1))


def null_terms(a: Any) -> Any:
    w, v = np.linalg.eigh(a)
    return np.sqrt(sum((v[:, k] @ WITHIN[:, 0]) ** 2 * (w[k] < 1e-9) for k in range(5)))


@pytest.mark.parametrize("program", [null_part, null_parts, null_terms])
def test_a_sum_of_squares_that_is_nearly_zero_is_not_negative(program: Callable[[Any], Any]) -> None:
    """Its root was nan: rounding beside numbers of order 1 has any sign."""
    assert np.max(sg.jit(program)(SINGULAR)) < 1e-13
    assert sg.value_and_grad(lambda a: np.sum(program(a)))(SINGULAR)[0] < 2e-13
