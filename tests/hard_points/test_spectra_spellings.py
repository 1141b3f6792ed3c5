"""How people write functions of eigenvalues and singular values: each spelling is known as one, and smooth at ties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.ir.passes.values import Expression
from tests.hard_points.spectra import (  # noqa: F401  the fixtures work where they are imported
    RANDOM,
    XS,
    Array,
    B,
    Function,
    H,
    K,
    W,
    X,
    close,
    la,
    nestings,
    on_numpy,
    rotated,
    same_numbers,
    second_by_differences,
)

SPELLINGS: dict[str, Function] = {}


def spelling(f: Function) -> Function:
    """A function of w and V, smooth at w = (1, 1, 4)."""
    SPELLINGS[f.__name__] = lambda a: f(*la.eigh(a))
    return f


@spelling
def weighted_columns(w, v):
    return (v * np.exp(w)) @ v.T


@spelling
def weights_on_the_right(w, v):
    return v @ (v * np.exp(w)).T


@spelling
def weighted_rows(w, v):
    return v @ (np.exp(w)[:, None] * v.T)


@spelling
def functions_of_a_row(w, v):
    return (v * (1.0 / np.sqrt(1.0 + w[None, :] ** 2))) @ v.T


@spelling
def functions_of_a_column(w, v):
    return v @ (np.where(w[:, None] > 3, w[:, None] ** 2, 2.0 * np.sum(w)) * v.T)


@spelling
def a_row_by_reshape(w, v):
    return (v * np.clip(w.reshape(1, -1), 0.5, None)) @ v.T


@spelling
def multiple_of_a_diagonal_matrix(w, v):
    return v @ (-np.sum(w) * np.diag(np.exp(w)) / 3.0) @ v.T


@spelling
def diagonal_matrix(w, v):
    return v @ np.diag(np.exp(w)) @ v.T


@spelling
def diagonal_matrix_first(w, v):
    return v @ (np.diag(np.exp(w)) @ v.conj().T)


@spelling
def scaled_unit_matrix(w, v):
    return v @ (np.exp(w) * np.eye(3)) @ v.T


@spelling
def einsum_of_three(w, v):
    return np.einsum("ik,k,jk->ij", v, np.exp(w), v)


@spelling
def einsum_of_two(w, v):
    return np.einsum("ik,jk->ij", v * np.exp(w), v)


@spelling
def dots(w, v):
    return np.dot(np.dot(v, np.diag(np.exp(w))), v.T)


@spelling
def chained(w, v):
    return la.multi_dot([v, np.diag(np.exp(w)), v.T])


@spelling
def two_halves(w, v):
    half = v * np.sqrt(np.exp(w))
    return half @ half.T


@spelling
def divided(w, v):
    return (v / np.exp(-w)) @ v.T


@spelling
def negated(w, v):
    return (-v * np.exp(w)) @ v.T


@spelling
def sorted_descending(w, v):
    order = np.argsort(w)[::-1]
    w, v = w[order], v[:, order]
    return (v * np.exp(w)) @ v.T


@spelling
def reversed_order(w, v):
    w, v = w[::-1], v[:, ::-1]
    return (v * np.exp(w)) @ v.T


@spelling
def taken(w, v):
    order = np.argsort(-w)
    w, v = np.take(w, order), np.take(v, order, axis=1)
    return (v * np.exp(w)) @ v.T


@spelling
def taken_along_axis(w, v):
    order = np.argsort(-w)
    w, v = np.take_along_axis(w, order, -1), np.take_along_axis(v, order[None], 1)
    return (v * np.exp(w)) @ v.T


@spelling
def projector(w, v):
    return v[:, 2:] @ v[:, 2:].T


@spelling
def leading_projector(w, v):
    v = v[:, ::-1][:, :1]
    return v @ v.T


@spelling
def lower_part(w, v):
    return (v[:, :2] * np.exp(w[:2])) @ v[:, :2].T


@spelling
def picked(w, v):
    return (v[:, [0, 1]] * np.exp(w[[0, 1]])) @ v[:, [0, 1]].T


@spelling
def thresholded(w, v):
    return (v * np.where(w > 3, w**2, 0.0)) @ v.T


@spelling
def boolean_weights(w, v):
    return (v * (w > 3)) @ v.T


@spelling
def array_weights(w, v):
    return (v * (np.array([2.0, 2.0, 5.0]) * np.exp(w))) @ v.T


@spelling
def softmax(w, v):
    p = np.exp(w - w.max())
    return (v * (p / p.sum())) @ v.T


@spelling
def shifted_by_the_trace(w, v):
    return (v * np.log1p(w / np.sum(w))) @ v.T


@spelling
def times_vector(w, v):
    return v @ (np.exp(w) * (v.T @ X))


@spelling
def times_matrix(w, v):
    return v @ (np.exp(w)[:, None] * (v.T @ XS))


@spelling
def solved(w, v):
    return v @ ((v.T @ X) / (w + 1))


@spelling
def from_the_left(w, v):
    return ((X @ v) * np.exp(w)) @ v.T


@spelling
def quadratic_form(w, v):
    return np.sum(np.exp(w) * (v.T @ X) ** 2)


@spelling
def quadratic_form_by_division(w, v):
    return np.sum((v.T @ X) ** 2 / (w + 1))


@spelling
def quadratic_forms(w, v):
    return np.sum(np.exp(w)[:, None] * (v.T @ XS) ** 2, axis=0)


@spelling
def quadratic_forms_of_rows(w, v):
    return np.sum(np.square((XS.T @ v) / np.sqrt(w)), axis=-1)


@spelling
def sum_of_quadratic_forms(w, v):
    return np.sum(np.square((v.T @ XS) / np.sqrt(w)[:, None]))


@spelling
def quadratic_forms_by_einsum(w, v):
    z = XS.T @ (v / np.sqrt(w))
    return np.einsum("ij,ij->i", z, z)


@spelling
def bilinear_forms(w, v):
    return np.sum(np.log(w)[:, None] * (v.T @ XS) * (v.T @ np.cos(XS)), axis=0)


@spelling
def bilinear_form(w, v):
    z = v.T @ X
    return np.dot(z, z * np.log(w))


@spelling
def quadratic_forms_weighted_each(w, v):
    return np.sum(np.array([1.0, 2.0]) * np.log(w)[:, None] * (v.T @ XS) ** 2 / np.array([3.0, 5.0]), axis=0)


@spelling
def quadratic_forms_by_product(w, v):
    return np.exp(w) @ (v.T @ XS) ** 2


@spelling
def quadratic_forms_by_einsum_of_three(w, v):
    return np.einsum("kj,k,kj->j", v.T @ XS, np.exp(w), v.T @ np.cos(XS))


@spelling
def products_of_coefficients(w, v):
    z = v.T @ XS
    return (z.T * np.log(w)) @ z


@spelling
def inverse_of_vectors(w, v):
    return v @ np.diag(np.exp(w)) @ la.inv(v)


@spelling
def solved_for_vectors(w, v):
    return v @ (np.exp(w) * la.solve(v, X))


@spelling
def solved_for_a_matrix(w, v):
    return la.solve(v.T, np.diag(np.exp(w)) @ v.T)


@spelling
def function_of_a_diagonal_matrix(w, v):
    return v @ np.sqrt(np.diag(w)) @ v.T


@spelling
def power_of_a_diagonal_matrix(w, v):
    return v @ np.diag(w) ** 1.5 @ v.T


@spelling
def shifted_diagonal_matrix(w, v):
    return v @ (np.diag(w**2) + 0.1 * np.eye(3)) @ v.T


@spelling
def product_of_diagonal_matrices(w, v):
    return v @ (np.diag(w) @ np.diag(np.log(w))) @ v.T


@spelling
def multiple_of_the_unit_matrix(w, v):
    return v @ (2 * np.eye(3) * np.log(w)[:, None]) @ v.T


@spelling
def part_of_a_diagonal_matrix(w, v):
    return v[:, 2:] @ np.sqrt(np.diag(w[2:])) @ v[:, 2:].T


@spelling
def complex_weights_of_a_real_matrix(w, v):
    return (v @ np.diag(w**2).astype(complex) @ v.T).real


@spelling
def log_determinant(w, v):
    return np.sum(np.log(w))


@spelling
def entropy(w, v):
    p = w / w.sum()
    return -(p * np.log(p)).sum()


@spelling
def log_sum_exp(w, v):
    top = w.max()
    return top + np.log(np.sum(np.exp(w - top)))


@spelling
def variance(w, v):
    return w.var()


@spelling
def lower_sum(w, v):
    return np.sum(w[:2] ** 3)


@spelling
def weighted_sum(w, v):
    return np.exp(w) @ np.array([2.0, 2.0, 5.0])


@spelling
def squares(w, v):
    return w @ w


@spelling
def length(w, v):
    return la.norm(w)


@spelling
def product(w, v):
    return np.prod(w)


SVD_SPELLINGS: dict[str, Function] = {
    "tall": lambda a: (lambda u, s, vh: (u * np.tanh(s)) @ vh)(*la.svd(a, full_matrices=False)),
    "diagonal": lambda a: (lambda u, s, vh: u @ np.diag(np.tanh(s)) @ vh)(*la.svd(a)),
    "transposed": lambda a: (lambda u, s, vh: (vh.T * np.tanh(s)) @ u.T)(*la.svd(a)),
    "polar": lambda a: (lambda u, s, vh: u @ vh)(*la.svd(a)),
    "truncated": lambda a: (lambda u, s, vh: (u[:, :1] * s[:1]) @ vh[:1])(*la.svd(a)),
    "pseudo-inverse times vector": lambda a: (lambda u, s, vh: vh.T @ ((u.T @ X) / s))(*la.svd(a)),
    "bilinear form": lambda a: (lambda u, s, vh: np.sum(np.tanh(s) * (u.T @ X) * (vh @ np.cos(X))))(*la.svd(a)),
    "and the other way round": lambda a: (lambda u, s, vh: np.sum(np.tanh(s) * (vh @ X) * (u.T @ np.cos(X))))(
        *la.svd(a)
    ),
    "bilinear forms": lambda a: (lambda u, s, vh: np.sum(np.tanh(s)[:, None] * (u.T @ XS) * (vh @ np.cos(XS)), axis=0))(
        *la.svd(a)
    ),
    "bilinear forms by einsum": lambda a: (
        lambda u, s, vh: np.einsum("kj,k,kj->j", u.T @ XS, np.tanh(s), vh @ np.cos(XS))
    )(*la.svd(a)),
    "column space": lambda a: (lambda u, s, vh: u[:, :1] @ u[:, :1].T)(*la.svd(a)),
    "whitening": lambda a: (lambda u, s, vh: (vh.T / s) @ vh)(*la.svd(a)),
    "nuclear norm": lambda a: np.sum(la.svd(a, compute_uv=False)),
    "nuclear norm by name": lambda a: la.norm(a, "nuc"),
    "Schatten norm": lambda a: np.sum(la.svdvals(a) ** 3) ** (1 / 3),
    "Frobenius norm": lambda a: la.norm(la.svdvals(a)),
}
M = B @ la.qr(np.random.default_rng(22).normal(size=(3, 3)))[0]


def test_a_bilinear_form_of_left_and_right_vectors_is_not_transposed() -> None:
    """Of two sides that both have three components nothing tells which is which but the vectors."""
    a, y = RANDOM.normal(size=(3, 3)), np.cos(X)

    def f(a: Any) -> Any:
        u, s, vh = la.svd(a)
        return np.sum(s * (u.T @ X) * (vh @ y))

    for backend in ("llvm", "numpy"):
        value, slope = sg.value_and_grad(f, backend=backend)(a)
        close(value, X @ a @ y, 1e-13)
        close(slope, np.outer(X, y), 1e-12)


def test_numbers_that_are_used_twice_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of ten was read again for each use of the next: many thousand times."""
    read, count = Expression.find_before_reshape, 0

    def counted(*args: Any) -> Any:
        nonlocal count
        count += 1
        return read(*args)

    def f(a: Any) -> Any:
        w, v = la.eigh(a)
        row = 0.1 * w[None, :]
        for _ in range(10):
            row = row * row + row
        return (v * row) @ v.T

    monkeypatch.setattr(Expression, "find_before_reshape", counted)
    assert "spectral" in passes(f, B)
    assert 10 < count < 1000


SQUARED: dict[str, Function] = {
    "vectors": lambda w, v, z: v @ z(np.diag(w)),
    "coefficients": lambda w, v, z: np.sum(z(v.T @ np.diag(w)) * w, axis=-1),
    "values": lambda w, v, z: np.sum(z(w[:, None] * np.ones(3)) * w, axis=-1),
    "weights": lambda w, v, z: (v * z(w + 0j)) @ v.T,
    "multiples": lambda w, v, z: v @ (np.diag(w) * z(np.trace(v) * np.ones((3, 3)))) @ v.T,
}


@pytest.mark.parametrize("name", SQUARED)
def test_what_is_used_twice_is_looked_at_once(name: str) -> None:
    """Each of 28 squares was looked through twice for the next: hours for what takes no time."""

    def squares(z: Any) -> Any:
        for _ in range(28):
            z = z * z * 1.0
        return z

    def f(a: Any) -> Any:
        return np.sum(SQUARED[name](*la.eigh(a), squares))

    assert "mul" in str(sg.explain(f)(np.diag([0.25, 0.5, 1.0])))


def passes(f: Function, a: Array) -> str:
    return str(sg.explain(sg.grad(lambda x: np.sum(f(x))))(a)["passes"])


def check_spelling(f: Function, a: Array, h: Array, k: Array) -> None:
    """The first derivative, and the second, which the first one's differences see whatever happens at the point."""
    shape = np.shape(f(a))
    w = np.cos(np.arange(float(np.prod(shape)))).reshape(shape)
    expected = second_by_differences(f, a, h, k)
    for name, number in nestings(f, a, h, k, w).items():
        close(number, np.sum(w * expected), 2e-9, name)
    step = 1e-5
    slope = (f(a + step * h) - f(a - step * h)) / (2 * step)
    close(sg.jvp(f, (a,), (h,))[1], slope, 1e-7)


@pytest.mark.parametrize("name", SPELLINGS)
def test_spelling(name: str) -> None:
    assert "spectral" in passes(SPELLINGS[name], B)
    check_spelling(SPELLINGS[name], B, H, K)


@pytest.mark.parametrize("name", SVD_SPELLINGS)
def test_spelling_of_singular_values(name: str) -> None:
    h, k = RANDOM.normal(size=(2, 3, 3))
    assert "spectral" in passes(SVD_SPELLINGS[name], M)
    check_spelling(SVD_SPELLINGS[name], M, h, k)


STACKED: dict[str, Function] = {
    "columns": lambda w, v: (v * np.exp(w)[..., None, :]) @ v.mT,
    "rows": lambda w, v: v @ (np.exp(w)[:, :, None] * v.mT),
    "functions of rows": lambda w, v: (v * np.exp(-w[..., None, :])) @ v.mT,
    "einsum": lambda w, v: np.einsum("...ik,...k,...jk->...ij", v, np.exp(w), v),
    "unit matrix": lambda w, v: v @ (np.exp(w)[..., None] * np.eye(3)) @ v.mT,
    "projector": lambda w, v: v[..., 2:] @ v[..., 2:].mT,
    "quadratic forms": lambda w, v: np.sum(np.log(w)[..., None] * (v.mT @ XS) ** 2, axis=-2),
    "one quadratic form each": lambda w, v: np.sum(np.log(w) * (v.mT @ X) ** 2, axis=-1),
    "sum": lambda w, v: np.sum(np.log(w)),
    "sums": lambda w, v: np.log(w).sum(axis=-1),
    "a number for each": lambda w, v: (v * np.exp(w * np.array([[0.5], [0.25]]))[:, None]) @ v.mT,
}


@pytest.mark.parametrize("name", STACKED)
def test_spelling_of_stacks(name: str) -> None:
    def f(a: Any) -> Any:
        return STACKED[name](*la.eigh(np.stack([a, 2 * a])))

    assert "spectral" in passes(f, B)
    check_spelling(f, B, H, K)


XC, XSC = X + 1j * np.cos(X), XS + 1j * np.sin(XS)
UNITARY = la.qr(RANDOM.normal(size=(3, 3)) + 1j * RANDOM.normal(size=(3, 3)))[0]
COMPLEX: dict[str, Function] = {
    "columns": lambda w, v: (v * np.exp(w)) @ v.conj().T,
    "a row": lambda w, v: (v * np.exp(w)[None, :]) @ v.conj().T,
    "functions of a row": lambda w, v: (v * np.exp(-w[None, :])) @ v.conj().T,
    "rows": lambda w, v: v @ (np.exp(w)[:, None] * v.conj().T),
    "diagonal": lambda w, v: v @ np.diag(np.sqrt(w)) @ v.conj().T,
    "multiple": lambda w, v: v @ (2.0 * np.diag(w)) @ v.conj().T,
    "squared moduli": lambda w, v: np.sum(np.log(w) * np.abs(v.conj().T @ XC) ** 2),
    "squared moduli for each": lambda w, v: np.sum(w[:, None] ** 2 * np.abs(v.conj().T @ XSC) ** 2, axis=0),
    "real and imaginary parts": lambda w, v: (lambda z: np.sum((z.real**2 + z.imag**2) / w))(v.conj().T @ XC),
    "a number and its conjugate": lambda w, v: (lambda z: np.sum(w**2 * (z * z.conj()).real))(v.conj().T @ XC),
    "vdot": lambda w, v: (lambda z: np.vdot(z, w**2 * z))(v.conj().T @ XC),
    "bilinear form": lambda w, v: np.sum(w**2 * (v.conj().T @ XC) * np.conj(v.conj().T @ X)),
    "products of coefficients": lambda w, v: (lambda z: z.conj().T @ np.diag(w**2) @ z)(v.conj().T @ XSC),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_spelling_of_complex_matrices(name: str) -> None:
    """Numbers that are made complex before they are repeated."""

    def of_eigenvalues(a: Any) -> Any:
        found = COMPLEX[name](*la.eigh(UNITARY @ a @ UNITARY.conj().T))
        return found.real + 2.0 * found.imag

    def of_singular_values(a: Any) -> Any:
        u, s, _ = la.svd(UNITARY @ a)
        found = COMPLEX[name](s, u)
        return found.real + 2.0 * found.imag

    for f, point in ((of_eigenvalues, B), (of_singular_values, M)):
        assert "spectral" in passes(f, point)
        check_spelling(f, point, H, K)


def test_sorted_stacks() -> None:
    def f(a: Any) -> Any:
        w, v = la.eigh(np.stack([a, 2 * a]))
        order = np.argsort(-w)
        w, v = np.take_along_axis(w, order, -1), np.take_along_axis(v, order[:, None, :], -1)
        return (v * np.exp(w)[:, None]) @ v.mT

    assert "spectral" in passes(f, B)
    check_spelling(f, B, H, K)


NOT_SPECTRAL: dict[str, Function] = {
    "two decompositions": lambda a: (la.eigh(a)[1] * np.exp(la.eigvalsh(a))) @ la.eigh(2 * a)[1].T,
    "not transposed": lambda a: (lambda w, v: (v * np.exp(w)) @ v)(*la.eigh(a)),
    "function of a diagonal matrix that is no longer one": lambda a: (lambda w, v: v @ np.exp(np.diag(w)) @ v.T)(
        *la.eigh(a)
    ),
    "shifted beside the diagonal": lambda a: (lambda w, v: v @ (np.diag(w) + 0.1) @ v.T)(*la.eigh(a)),
    "part of a diagonal": lambda a: (lambda w, v: v @ np.diag(w[:2], 1) @ v.T)(*la.eigh(a)),
    "coefficients of two kinds": lambda a: (lambda w, v: np.sum((v.T @ X) * (v @ X)))(*la.eigh(a)),
    "rows of coefficients": lambda a: (lambda w, v: (lambda z: z @ (w[:2, None] * z.T))(v.T @ XS))(*la.eigh(a)),
    "different parts": lambda a: (lambda w, v: v[:, :2] @ v[:, 1:].T)(*la.eigh(a)),
    "weights of other vectors": lambda a: (lambda w, v: (v[:, :2] * np.exp(w[1:])) @ v[:, :2].T)(*la.eigh(a)),
    "shifted values": lambda a: (lambda w, v: np.sum(w[1:] * w[:-1]))(*la.eigh(a)),
    "one eigenvalue twice": lambda a: (lambda w, v: v[:, [1, 1]] @ v[:, [1, 1]].T)(*la.eigh(a)),
    "not conjugated": lambda a: (lambda w, v: ((v * np.exp(w)) @ v.T).real)(
        *la.eigh(a + 1j * np.triu(a, 1) - 1j * np.tril(a, -1))
    ),
}


@pytest.mark.parametrize("name", NOT_SPECTRAL)
def test_what_is_no_matrix_function_is_left_alone(name: str) -> None:
    a = rotated([1.0, 2.0, 4.0])
    f = NOT_SPECTRAL[name]
    assert " -> spectral(A)" not in passes(f, a)
    if name != "shifted values":
        assert "spectral_sum" not in passes(f, a)
    if name != "not conjugated":  # the phases of complex eigenvectors are LAPACK's
        check_spelling(f, a, H, K)


def test_other_functions_are_finite_at_ties() -> None:
    def f(a: Any) -> Any:
        w, v = la.eigh(a)
        return np.sum(v[:, 0] * X) + w[0] + np.max(w) + np.sum(np.abs(v) * w)

    for a in (np.eye(3), np.zeros((3, 3)), B, rotated([1.0, 1.0, 2.0]), rotated([3.0, 3.0, 3.0])):  # equal to rounding
        assert np.abs(sg.grad(f)(a)).max() < 1e3
        assert np.abs(sg.hessian(f)(a)).max() < 1e3

    def g(a: Any) -> Any:
        u, s, vh = la.svd(a)
        return u[0, 0] * s[1] + vh[1, 1] + np.max(s)

    for a in (np.eye(3), np.zeros((3, 3)), np.ones((3, 3)), np.ones((4, 2)), np.zeros((2, 4))):
        assert np.isfinite(sg.grad(g)(a)).all()
        assert np.isfinite(sg.hessian(g)(a)).all()


def test_weights_that_differ_between_equal_eigenvalues() -> None:
    """Nothing is defined there: what couples the two contributes 0, in both modes."""

    def f(a: Any) -> Any:
        w, v = la.eigh(a)
        return (v[:, :1] * np.exp(w[:1])) @ v[:, :1].T

    expected = np.zeros((3, 3))
    expected[0, 0] = np.e * H[0, 0]
    close(sg.jvp(f, (np.eye(3),), (H,))[1], expected, 1e-14)
    close(np.sum(sg.grad(lambda a: np.sum(f(a) * W))(np.eye(3)) * H), np.sum(expected * W), 1e-14)
