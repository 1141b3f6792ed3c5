"""Linear algebra at singular, rank-deficient and degenerate matrices, to second order."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.hard_points.points import Case, bilinear, leibniz

MATRICES = {
    "of rank 3": np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 3.0], [1.0, 0.0, 1.0]]),
    "of rank 2": np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]),
    "of rank 1": np.outer([1.0, 2.0, -1.0], [3.0, 0.0, 1.0]),
    "of zeros": np.zeros((3, 3)),
    "of rank 1, two rows": np.array([[1.0, 2.0], [2.0, 4.0]]),
    "of one element": np.zeros((1, 1)),
    "of a permutation": np.eye(3)[[1, 2, 0]],
}
A = np.array([[2.0, 1.0], [0.5, 1.5]])
INVERSE = np.array([[1.5, -1.0], [-0.5, 2.0]]) / 2.5
B = np.array([1.0, -2.0])
NILPOTENT = np.array([[0.0, 1.0], [0.0, 0.0]])
COLUMN = np.array([[2.0], [1.0]])
DEFICIENT = np.diag([2.0, 0.0])
TWIN = np.diag([1.0, 1.0, 2.0])
"""Two equal eigenvalues beside another."""
ONES2, ONES3 = np.eye(2), np.eye(3)


def symmetric(e: Any) -> Any:
    return (e + e.T) / 2


def half_lower(e: Any) -> Any:
    return np.tril(e, -1) + np.diag(np.diagonal(e)) / 2


def both(product: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Symmetrise a product of two directions."""
    return lambda e, d: product(e, d) + product(d, e)


def cholesky_second(e: Any, d: Any) -> Any:
    """From L L^T = A at the identity: L'' + L''^T = -(L' L'^T + …), and L'' is lower triangular."""
    left, right = half_lower(symmetric(e)), half_lower(symmetric(d))
    return -half_lower(left @ right.T + right @ left.T)


def words(length: int, *letters: Any) -> Any:
    """The sum of all products of ``length`` matrices that hold each letter once and NILPOTENT elsewhere."""
    total = np.zeros((2, 2))
    for places in itertools.permutations(range(length), len(letters)):
        product = np.eye(2)
        for k in range(length):
            product = product @ (letters[places.index(k)] if k in places else NILPOTENT)
        total = total + product
    return total


def column_first(e: Any) -> Any:
    """A column a has the pseudo-inverse a / (a . a)."""
    square = np.sum(COLUMN**2)
    return (e / square - COLUMN * 2 * np.sum(COLUMN * e) / square**2).T


def column_second(e: Any, d: Any) -> Any:
    square, ae, ad, ed = (np.sum(p * q) for p, q in ((COLUMN, COLUMN), (COLUMN, e), (COLUMN, d), (e, d)))
    return (-2 * (e * ad + d * ae + COLUMN * ed) / square**2 + 8 * COLUMN * ae * ad / square**3).T


def golub_pereyra(e: Any) -> Any:
    """The derivative of the pseudo-inverse at constant rank (SIAM J. Numer. Anal. 10, 1973), at DEFICIENT."""
    p, one = np.diag([0.5, 0.0]), np.eye(2)
    return -p @ e @ p + p @ p.T @ e.T @ (one - DEFICIENT @ p) + (one - p @ DEFICIENT) @ e.T @ p.T @ p


def first_divided(a: float, b: float) -> float:
    """The divided difference of exp."""
    return float(np.exp(a)) if a == b else float((np.exp(a) - np.exp(b)) / (a - b))


def second_divided(a: float, b: float, c: float) -> float:
    low, middle, high = sorted((a, b, c))
    if low == high:
        return float(np.exp(a) / 2)
    return (first_divided(middle, high) - first_divided(low, middle)) / (high - low)


def exp_first(e: Any) -> Any:
    """The derivative of the matrix exponential at TWIN (Daleckii and Krein)."""
    values = np.diagonal(TWIN)
    return np.array([[first_divided(a, b) for b in values] for a in values]) * symmetric(e)


def exp_second(e: Any, d: Any) -> Any:
    values, e, d = np.diagonal(TWIN), symmetric(e), symmetric(d)
    found = np.zeros((3, 3))
    for i, j, k in itertools.product(range(3), repeat=3):
        found[i, j] += second_divided(values[i], values[k], values[j]) * (e[i, k] * d[k, j] + d[i, k] * e[k, j])
    return found


def matrix_exp(a: Any) -> Any:
    values, vectors = np.linalg.eigh(a)
    return vectors * np.exp(values) @ vectors.T


def projector(a: Any) -> Any:
    """On the eigenvector of the largest eigenvalue."""
    vector = np.linalg.eigh(a)[1][:, -1:]
    return vector @ vector.T


def twin_projector(a: Any) -> Any:
    """On the space of the two equal eigenvalues."""
    vectors = np.linalg.eigh(a)[1][:, :2]
    return vectors @ vectors.T


def projector_first(e: Any) -> Any:
    e = symmetric(e)
    found = np.zeros((3, 3))
    found[:2, 2], found[2, :2] = e[:2, 2], e[2, :2]  # the gap is 1
    return found


def projector_second(e: Any, d: Any) -> Any:
    """Kato: with S the reduced resolvent, P'' = P E S D S + … - …; the gap is 1, so S is the other projector."""
    e, d = symmetric(e), symmetric(d)
    p = np.diag([0.0, 0.0, 1.0])
    s = -np.diag([1.0, 1.0, 0.0])  # the reduced resolvent (A - 2)^-1 on the complement
    total = np.zeros((3, 3))
    for x, y in ((e, d), (d, e)):
        total += p @ x @ s @ y @ s + s @ x @ p @ y @ s + s @ x @ s @ y @ p
        total -= p @ x @ p @ y @ s @ s + p @ x @ s @ s @ y @ p + s @ s @ x @ p @ y @ p
    return total


def nuclear_second(e: Any, d: Any) -> Any:
    """At the identity: half the product of the antisymmetric differences, summed over i < j."""
    return np.sum(np.triu((e - e.T) * (d - d.T), 1)) / 2


def rebuilt(a: Any) -> Any:
    u, s, vh = np.linalg.svd(a)
    return u * s @ vh


def polar(a: Any) -> Any:
    u, _, vh = np.linalg.svd(a)
    return u @ vh


def polar_second(e: Any, d: Any) -> Any:
    """Of A (A^T A)^(-1/2) at the identity: the expansion of the inverse square root to second order."""
    sym, other = e + e.T, d + d.T
    inner = -(e.T @ d + d.T @ e) / 2 + 3 / 8 * (sym @ other + other @ sym)
    return inner - (e @ other + d @ sym) / 2


def rebuilt_qr(a: Any) -> Any:
    q, r = np.linalg.qr(a)
    return q @ r


def zeros(shape: tuple[int, ...]) -> Any:
    return np.zeros(shape)


IDENTITY4 = np.eye(4).reshape(2, 2, 2, 2)
SYMMETRISER = bilinear(symmetric, lambda e, d: zeros((2, 2)), ONES2)
SYMMETRISER3 = bilinear(symmetric, lambda e, d: zeros((3, 3)), ONES3)

LINEAR_ALGEBRA: dict[str, Case] = {
    f"det {name}": (np.linalg.det, matrix, leibniz(matrix)) for name, matrix in MATRICES.items()
}
LINEAR_ALGEBRA |= {
    "det of a product with a singular matrix": (
        lambda a: np.linalg.det(a @ np.diag([1.0, 0.0])),
        A,
        (zeros((2, 2)), zeros((2, 2, 2, 2))),
    ),
    "log |det|": (
        lambda a: np.linalg.slogdet(a)[1],
        A,
        bilinear(lambda e: np.trace(INVERSE @ e), lambda e, d: -np.trace(INVERSE @ d @ INVERSE @ e), A),
    ),
    "log |det|, negative": (
        lambda a: np.linalg.slogdet(a)[1],
        A[::-1],
        bilinear(
            lambda e: np.trace(INVERSE[:, ::-1] @ e),
            lambda e, d: -np.trace(INVERSE[:, ::-1] @ d @ INVERSE[:, ::-1] @ e),
            A,
        ),
    ),
    "the sign of det": (lambda a: np.linalg.slogdet(a)[0], A, (zeros((2, 2)), zeros((2, 2, 2, 2)))),
    "inv": (
        np.linalg.inv,
        A,
        bilinear(lambda e: -INVERSE @ e @ INVERSE, both(lambda e, d: INVERSE @ e @ INVERSE @ d @ INVERSE), A),
    ),
    "solve": (
        lambda a: np.linalg.solve(a, B),
        A,
        bilinear(lambda e: -INVERSE @ e @ INVERSE @ B, both(lambda e, d: INVERSE @ e @ INVERSE @ d @ INVERSE @ B), A),
    ),
    "cholesky of the identity": (
        np.linalg.cholesky,
        ONES2,
        bilinear(lambda e: half_lower(symmetric(e)), cholesky_second, ONES2),
    ),
    "cholesky rebuilt": (lambda a: np.linalg.cholesky(a) @ np.linalg.cholesky(a).T, ONES2, SYMMETRISER),
    "matrix_power of a nilpotent": (
        lambda a: np.linalg.matrix_power(a, 3),
        NILPOTENT,
        bilinear(lambda e: words(3, e), lambda e, d: words(3, e, d), NILPOTENT),
    ),
    "matrix_power 0": (lambda a: np.linalg.matrix_power(a, 0), NILPOTENT, (zeros((2,) * 4), zeros((2,) * 6))),
    "pinv of full rank": (np.linalg.pinv, COLUMN, bilinear(column_first, column_second, COLUMN)),
    "pinv of a rank-deficient matrix": (
        np.linalg.pinv,
        DEFICIENT,
        bilinear(golub_pereyra, lambda e, d: zeros((2, 2)), DEFICIENT)[:1],
    ),
    "norm 1 without ties": (
        lambda a: np.linalg.norm(a, 1),
        np.array([[1.0, -2.0], [0.5, 3.0]]),
        (np.array([[0.0, -1.0], [0.0, 1.0]]), zeros((2, 2, 2, 2))),
    ),
    "norm inf at a tie of rows": (
        lambda a: np.linalg.norm(a, np.inf),
        np.array([[1.0, -2.0], [0.0, 3.0]]),
        (np.array([[0.5, -0.5], [0.0, 0.5]]), zeros((2, 2, 2, 2))),
    ),
    "trace": (np.trace, NILPOTENT, (np.eye(2), zeros((2, 2, 2, 2)))),
    "dot with itself at 0": (lambda x: x @ x, np.zeros(2), (np.zeros(2), 2 * np.eye(2))),
    "sum of the squares of equal eigenvalues": (
        lambda a: np.sum(np.linalg.eigvalsh(a) ** 2),
        ONES3,
        bilinear(lambda e: 2 * np.trace(e), lambda e, d: 2 * np.sum(symmetric(e) * symmetric(d)), ONES3),
    ),
    "sum of exp of eigenvalues at a tie": (
        lambda a: np.sum(np.exp(np.linalg.eigvalsh(a))),
        TWIN,
        bilinear(lambda e: np.trace(exp_first(e)), lambda e, d: np.sum(exp_first(e) * symmetric(d)), TWIN),
    ),
    "a matrix function at a tie": (matrix_exp, TWIN, bilinear(exp_first, exp_second, TWIN)),
    "eigh rebuilt at a tie": (lambda a: rebuilt_eigh(a), TWIN, SYMMETRISER3),
    "eigh rebuilt of zeros": (lambda a: rebuilt_eigh(a), np.zeros((3, 3)), SYMMETRISER3),
    "the projector on one eigenvector beside a tie": (
        projector,
        TWIN,
        bilinear(projector_first, projector_second, TWIN),
    ),
    "the projector on a tied eigenspace": (
        twin_projector,
        TWIN,
        bilinear(lambda e: -projector_first(e), lambda e, d: -projector_second(e, d), TWIN),
    ),
    "an eigenvalue beside a tie": (
        lambda a: np.linalg.eigvalsh(a)[-1],
        TWIN,
        bilinear(lambda e: e[2, 2], lambda e, d: 2 * np.sum(symmetric(e)[:2, 2] * symmetric(d)[:2, 2]), TWIN),
    ),
    "the nuclear norm at a tie": (
        lambda a: np.sum(np.linalg.svd(a, compute_uv=False)),
        ONES2,
        bilinear(np.trace, nuclear_second, ONES2),
    ),
    "svd rebuilt at a tie": (rebuilt, ONES2, (IDENTITY4, zeros((2,) * 6))),
    "svd rebuilt of a rank-deficient matrix": (rebuilt, DEFICIENT, (IDENTITY4, zeros((2,) * 6))),
    "svd rebuilt of zeros": (rebuilt, zeros((2, 2)), (IDENTITY4, zeros((2,) * 6))),
    "the polar factor at a tie": (polar, ONES2, bilinear(lambda e: (e - e.T) / 2, polar_second, ONES2)),
    "the largest singular value": (
        lambda a: np.linalg.norm(a, 2),
        DEFICIENT,
        # sigma = 2, the other is 0: Hessian sums of squares over the gap.
        bilinear(lambda e: e[0, 0], lambda e, d: (e[0, 1] * d[0, 1] + e[1, 0] * d[1, 0]) / 2, DEFICIENT),
    ),
    "qr rebuilt": (rebuilt_qr, A, (IDENTITY4, zeros((2,) * 6))),
    "the squares of r": (
        lambda a: np.sum(np.linalg.qr(a)[1] ** 2),
        A,
        (2 * A, 2 * IDENTITY4),
    ),
    "sum of eigenvalues of a general matrix": (
        lambda a: np.real(np.sum(np.linalg.eigvals(a))),
        A,
        (np.eye(2), zeros((2, 2, 2, 2))),
    ),
}


def rebuilt_eigh(a: Any) -> Any:
    values, vectors = np.linalg.eigh(a)
    return vectors * values @ vectors.T
