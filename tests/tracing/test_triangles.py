"""Decompositions that read one triangle: derivatives are those of what is read, and Hermitian for given matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import srcgrad as sg

X = np.array([0.7, 1.3, 2.1])
WEIGHTS = np.array([[2.0, 0.3, 0.1], [0.3, 3.0, 0.2], [0.1, 0.2, 4.0]])


def fixed() -> Any:
    return np.array([[2.0, 0.3, 0.1], [0.3, 3.0, 0.2], [0.1, 0.2, 4.0]])


def written(x: Any) -> Any:
    return np.array([[x[0] + 4.0, 0, 0.0], [x[1], x[2] + 5, 0.0], [x[0] * x[1], -x[2], x[1] + 6]]) / 3.0


def filled(x: Any) -> Any:
    a = np.zeros((3, 3))
    a[0, 0], a[1, 1], a[2, 2] = 4.0 + x[0], 5.0, 6.0
    a[1, 0], a[2, 0], a[2, 1] = x
    return a


def one_changed(x: Any) -> Any:
    a = fixed()
    a[2, 0] = 0.1 * x[0] * x[1]
    return a


def never_read(x: Any) -> Any:
    a = fixed()
    a[0, 2], a[1, 1] = x[1], x[2] + 3.0
    return a


def whole(x: Any) -> Any:
    a = fixed() * x[0]
    a[2, 0] = a[0, 2] = 0.3 * x[1]
    return a


def captured(x: Any) -> Any:
    a = WEIGHTS.copy()
    a[2, 0] = 0.2 * x[0]
    a[0, 1] = 0.2 * x[1] * x[2]
    return a


def in_loops(x: Any) -> Any:
    a = np.zeros((3, 3))
    for i in range(3):
        for j in range(i + 1):
            a[i, j] = x[i] * x[j] + (5.0 if i == j else 0.0)
    return a


def of_parts(x: Any) -> Any:
    return np.tril(np.outer(x, x[::-1])) + np.diag(x + 5) + np.diag(x[:2] ** 2, 1)


def masked(x: Any) -> Any:
    return WEIGHTS * HALF * x[0] + np.diag(x) + np.where(HALF > 0, 0.1 * x[1], x[2])


def lopsided(x: Any) -> Any:
    return WEIGHTS + np.outer(0.1 * x, x**2) + 5 * np.eye(3)


def scattered(x: Any) -> Any:
    a = fixed()
    a[np.array([1, 2, 0]), np.array([0, 1, 2])] += 0.1 * x
    a[np.diag_indices(3)] += x
    return a


def gathered(x: Any) -> Any:
    return lopsided(x)[np.ix_([2, 0, 1], [2, 0, 1])]


def of_literals(x: Any) -> Any:
    return fixed() + np.tri(3) * (0.1 * x[0]) + np.array([[0, x[1], 0], [0, 0, 0], [x[2], 0, 0]])


MATRICES: list[Callable[[Any], Any]] = [
    of_literals,
    scattered,
    gathered,
    written,
    filled,
    one_changed,
    never_read,
    whole,
    captured,
    in_loops,
    of_parts,
    masked,
    lopsided,
]
HALF = np.tril(np.ones((3, 3)))


def stacked(a: Any) -> Any:
    return np.stack([a, a * a, 2.0 * a + np.eye(3)])


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "eigh": lambda a: np.sum(np.linalg.eigh(a)[1][:, 2] ** 2 * [1.0, 2.0, 3.0]),
    "eigvalsh": lambda a: np.sum(np.linalg.eigvalsh(a) * [1.0, 2.0, 3.0]),
    "upper": lambda a: np.sum(np.linalg.eigvalsh(a.T, "U") ** 2 * [1.0, 2.0, 3.0]),
    "a function of the matrix": lambda a: (lambda w, v: np.sum(((v * np.exp(w)) @ v.T)[0]))(*np.linalg.eigh(a)),
    "cholesky": lambda a: np.sum(np.linalg.cholesky(a) * WEIGHTS),
    "the upper factor": lambda a: np.sum(np.linalg.cholesky(a, upper=True) * WEIGHTS),
    "a stack": lambda a: np.sum(np.linalg.eigvalsh(stacked(a)) * WEIGHTS),
    "a stack of factors": lambda a: np.sum(np.linalg.cholesky(stacked(a)) * WEIGHTS),
    "a determinant": lambda a: np.sum(np.log(np.linalg.eigvalsh(a))),
    "pinv": lambda a: np.sum(np.linalg.pinv(a, hermitian=True) * WEIGHTS),
    "against another": lambda a: np.sum(scipy.linalg.eigh(WEIGHTS, a)[0] * [1.0, 2.0, 3.0]),
    "cho_solve": lambda a: np.sum(scipy.linalg.cho_solve(scipy.linalg.cho_factor(a), X) * X**2),
    "cho_factor": lambda a: np.sum(scipy.linalg.cho_factor(a, lower=True)[0] * WEIGHTS),
}


@pytest.mark.parametrize("matrix", MATRICES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_reads_a_triangle_has_its_derivative(name: str, matrix: Callable[[Any], Any]) -> None:
    """It had half of what an element below a constant zero adds."""

    def loss(x: Any) -> Any:
        return FUNCTIONS[name](matrix(x))

    np.testing.assert_allclose(sg.jit(loss)(X), loss(X), rtol=1e-12)
    apart = [(loss(X + 1e-6 * e) - loss(X - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
    np.testing.assert_allclose(sg.grad(loss)(X), apart, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(sg.jacfwd(loss)(X), apart, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", ["eigh", "a function of the matrix", "cholesky", "a determinant", "pinv"])
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_second_derivatives_are_those_of_the_triangle(name: str, backend: str) -> None:
    def loss(x: Any) -> Any:
        return FUNCTIONS[name](captured(x))

    with sg.use_backend(backend):
        slope = sg.grad(loss)
        apart = [(slope(X + 1e-5 * e) - slope(X - 1e-5 * e)) / 2e-5 for e in np.eye(3)]
        np.testing.assert_allclose(sg.hessian(loss)(X), apart, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(sg.jacfwd(sg.jacfwd(loss))(X), apart, rtol=1e-5, atol=1e-7)


def test_a_triangle_of_complex_numbers_is_read() -> None:
    """The diagonal's imaginary part is not."""

    def loss(x: Any) -> Any:
        a = WEIGHTS.astype(complex)
        a[2, 0] = 0.1 * x[0] + 0.2j * x[1]
        a[0, 1] = 1j * x[0]
        a[1, 1] = x[2] + 3 + 1j * x[0]
        return np.sum(np.linalg.eigvalsh(a) * [1.0, 2.0, 3.0]) + np.sum(np.abs(np.linalg.cholesky(a)) ** 2 * WEIGHTS)

    apart = [(loss(X + 1e-6 * e) - loss(X - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
    np.testing.assert_allclose(sg.grad(loss)(X), apart, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(sg.jacfwd(loss)(X), apart, rtol=1e-6, atol=1e-8)


def of_both(a: Any) -> Any:
    vectors = np.linalg.eigh(a)[1]
    return np.sum(vectors**2 * np.arange(9.0).reshape(3, 3)) + np.sum(np.linalg.cholesky(a) * WEIGHTS)


def in_trips(a: Any) -> Any:
    total = 0.0
    for k in range(3):
        a = TURN @ a @ TURN.T / 4 + WEIGHTS
        total += of_both(a + k * np.eye(3))
    return total


def until(a: Any) -> Any:
    while np.trace(a) > 5:
        a = a / 2
    return of_both(a)


def in_a_branch(a: Any) -> Any:
    return of_both(a) if a[0, 0] > 1 else of_both(2 * a)


def with_noise(a: Any) -> Any:
    b = a.copy()
    b[np.diag_indices(3)] += np.diag(a) * X
    return of_both(b)


def with_diagonal(a: Any) -> Any:
    b = a.copy()
    np.fill_diagonal(b, np.diag(a) * X)
    return of_both(b)


TURN = np.array([[1.0, 0.5, -0.2], [0.3, 2.0, 0.1], [-0.4, 0.2, 1.0]])
HERMITIAN: dict[str, Callable[[Any], Any]] = {
    "alone": of_both,
    "transposed": lambda a: of_both(a.T),
    "a sum": lambda a: of_both(a + WEIGHTS - 0.1 * np.eye(3)),
    "a mean": lambda a: of_both((a + a.T) / 2),
    "between factors": lambda a: of_both(TURN @ a @ TURN.T),
    "by names": lambda a: of_both(np.einsum("ij,jk,lk->il", TURN, a, TURN)),
    "of a stack": lambda a: of_both(np.stack([a, WEIGHTS])[0]),
    "noise": with_noise,
    "a diagonal": with_diagonal,
    "in another order": lambda a: of_both(a[np.ix_([2, 0, 1], [2, 0, 1])]),
    "a checkpoint": lambda a: sg.checkpoint(of_both)(a),
    "trips": in_trips,
    "until": until,
    "a branch": in_a_branch,
}


@pytest.mark.parametrize("name", HERMITIAN)
def test_matrices_that_are_given_keep_hermitian_gradients(name: str) -> None:
    """In both modes and at second order, as in JAX."""
    f, direction = HERMITIAN[name], TURN + TURN.T
    found = sg.grad(f)(WEIGHTS)
    np.testing.assert_allclose(found, found.T, rtol=1e-12)
    np.testing.assert_allclose(sg.jacfwd(f)(WEIGHTS), found, rtol=1e-11)
    along = (f(WEIGHTS + 1e-6 * direction) - f(WEIGHTS - 1e-6 * direction)) / 2e-6
    np.testing.assert_allclose(np.sum(found * direction), along, rtol=1e-6)
    second = sg.hvp(f, (WEIGHTS,), (direction,))
    np.testing.assert_allclose(second, second.T, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(sg.jvp(sg.grad(f), (WEIGHTS,), (direction,))[1], second, rtol=1e-10, atol=1e-12)


def test_terms_of_one_matrix_are_read_each_in_its_way() -> None:
    """The matrix that is given as a Hermitian one, what is beside it as it is read."""

    def loss(a: Any, x: Any) -> Any:
        return of_both(a * x[0] + np.outer(x, x**2))

    a, x = np.tril(WEIGHTS), X + 2
    matrix, vector = sg.grad(loss, argnums=(0, 1))(a, x)
    apart = [(loss(a, x + 1e-6 * e) - loss(a, x - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
    np.testing.assert_allclose(vector, apart, rtol=1e-5)
    np.testing.assert_allclose(matrix, matrix.T, rtol=1e-12)


def test_a_matrix_that_a_loop_fills_is_not_taken_for_hermitian() -> None:
    def loss(x: Any) -> Any:
        a, total = WEIGHTS.copy(), 0.0
        for _ in range(12):
            a[2, 0] += 0.05 * x
            total += np.sum(np.linalg.eigvalsh(a) * X)
        return total

    np.testing.assert_allclose(sg.grad(loss)(0.7), (loss(0.7 + 1e-6) - loss(0.7 - 1e-6)) / 2e-6, rtol=1e-6)
    np.testing.assert_allclose(sg.jacfwd(loss)(0.7), sg.grad(loss)(0.7), rtol=1e-12)


def test_jax_differentiates_what_is_read() -> None:
    jax = pytest.importorskip("jax")
    for name in ("eigh", "cholesky"):

        def loss(x: Any, name: str = name) -> Any:
            return FUNCTIONS[name](captured(x))

        np.testing.assert_allclose(jax.grad(sg.to_jax(loss))(X), sg.grad(loss)(X), rtol=1e-5)
