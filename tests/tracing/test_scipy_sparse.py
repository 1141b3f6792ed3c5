"""Sparse matrices of SciPy's among traced values: of numbers, and with traced elements."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spl

import srcgrad as sg
from srcgrad.errors import SrcgradError

RNG = np.random.default_rng(5)
DENSE = np.where(RNG.random((5, 5)) < 0.4, RNG.normal(size=(5, 5)), 0.0) + 3.0 * np.eye(5)
WIDE = sp.csr_matrix(DENSE[:3])
A = sp.csr_matrix(DENSE)
B = sp.coo_array(([1.0, 2.0, 4.0], ([0, 0, 2], [1, 1, 3])), shape=(5, 5))
FACTORS = spl.splu(A.tocsc())
X = RNG.normal(size=5)
ROWS, COLUMNS = np.array([0, 1, 2, 3, 4, 4]), np.array([1, 2, 3, 4, 0, 4])


def made(x: Any) -> Any:
    """One with traced elements."""
    return sp.csc_matrix((np.append(2.0 + x**2, x[0]), (ROWS, COLUMNS)), shape=(5, 5))


CASES: dict[str, Callable[[Any], Any]] = {
    "A @ x": lambda x: A @ x,
    "A @ x of a wide one": lambda x: WIDE @ x,
    "A.dot(x)": lambda x: A.dot(x**2),
    "A * x": lambda x: A * x,
    "x @ A": lambda x: x @ A,
    "x * A": lambda x: x * A,
    "A.T @ X": lambda x: A.T @ np.outer(x, x[:3]),
    "X @ A": lambda x: np.outer(x[:3], x) @ A,
    "equal places": lambda x: B @ x + B.tocsr().T @ x,
    "diagonal storage": lambda x: sp.diags([1.0, -2.0], [0, 1], (5, 5)) @ x,
    "elements of elements": lambda x: A.multiply(x).toarray() + A.multiply(x[:, None]).toarray(),
    "a number times A": lambda x: (x[0] * A - A / x[1] + A * x[2]) @ x,
    "sums": lambda x: (A + x[0] * sp.eye(5) - x[1] * A.T) @ x,
    "sums with arrays": lambda x: (A + np.outer(x, x)) - (np.outer(x, x) - A),
    "traced elements": lambda x: made(x) @ x,
    "traced elements by rows": lambda x: sp.csr_array((x, [1, 0, 2, 4, 3], [0, 1, 1, 3, 4, 5]), shape=(5, 5)) @ x,
    "of a traced array": lambda x: (sp.csr_matrix(np.outer(x, x)) @ A).toarray(),
    "products of matrices": lambda x: (made(x).T @ A @ made(x) + A @ made(x)).toarray(),
    "parts": lambda x: np.append(made(x).diagonal(1), [made(x).trace(), made(x).sum(), made(x).mean()]),
    "sums along an axis": lambda x: np.asarray(made(x).sum(axis=0)) + np.asarray(made(x).sum(axis=1)),
    "diags": lambda x: sp.diags(x) @ x + sp.diags([x, x[1:]], [0, -1]) @ x + sp.diags_array(x[1:], offsets=1) @ x,
    "diags of one number": lambda x: sp.diags([x[0], x[1], 2.0], [-1, 0, 1], shape=(5, 5)) @ x,
    "spsolve": lambda x: spl.spsolve(A, x),
    "spsolve of columns": lambda x: spl.spsolve(A.tocsc(), np.outer(x, [1.0, 2.0]) ** 2),
    "spsolve with traced elements": lambda x: spl.spsolve(made(x), x**2),
    "spsolve of numbers with traced elements": lambda x: spl.spsolve(made(x) + A, np.arange(5.0)),
    "splu": lambda x: spl.splu(A.tocsc()).solve(x) + FACTORS.solve(x**2, "T"),
    "splu with traced elements": lambda x: spl.splu(made(x)).solve(x, "T"),
    "factorized": lambda x: spl.factorized(A.tocsc())(x) + spl.factorized(made(x))(x),
    "conjugates and parts": lambda x: (
        (np.conj(made(x) * (1 + 2j)) @ x).imag + (made(x) * (1 + 2j)).imag @ x + abs(made(-x)) @ x
    ),
    "a step of diffusion": lambda x: spl.spsolve(
        sp.eye(5, format="csc") - 0.1 * x[0] * sp.diags([1.0, -2.0, 1.0], [-1, 0, 1], (5, 5), format="csc"), x
    ),
}


@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of NumPy's class of matrices
@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["llvm", "numpy", "xla"])
@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives(name: str, backend: str) -> None:
    f = CASES[name]
    expected = np.asarray(f(X))
    weights = np.cos(np.arange(expected.size) + 0.2).reshape(expected.shape)
    direction, h = RNG.normal(size=5), 1e-3

    def loss(x: Any) -> Any:
        return np.sum(f(x) * weights)

    def slope(g: Callable[[Any], Any]) -> Any:
        first, second = ((g(X + k * h * direction) - g(X - k * h * direction)) / (2 * k * h) for k in (1, 2))
        return (4 * first - second) / 3

    with sg.use_backend(backend):
        found = sg.jit(f)(X)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
        assert found.dtype == expected.dtype
        gradient = sg.grad(loss)
        np.testing.assert_allclose(gradient(X) @ direction, slope(loss), rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(sg.jvp(loss, (X,), (direction,))[1], gradient(X) @ direction, rtol=1e-10)
        curvature = direction @ sg.hessian(loss)(X) @ direction
        np.testing.assert_allclose(curvature, slope(lambda x: gradient(x) @ direction), rtol=1e-6, atol=1e-8)


def test_a_product_adds_in_scipys_order() -> None:
    large = sp.random(300, 200, 0.2, "csr", random_state=1)
    x = RNG.normal(size=200)
    np.testing.assert_array_equal(sg.jit(lambda x: large @ x)(x), large @ x)


def test_dtypes() -> None:
    for dtype in (np.float32, np.complex64, np.complex128):
        x = X.astype(dtype)
        single = A.astype(np.float32)
        for f in (lambda x, single=single: single @ x, lambda x, single=single: spl.spsolve(single.tocsc(), x)):
            assert sg.jit(f)(x).dtype == f(x).dtype == dtype
            np.testing.assert_allclose(sg.jit(f)(x), f(x), rtol=2e-5, atol=1e-6)
    z = X + 0.5j * X[::-1]
    np.testing.assert_allclose(sg.jacfwd(lambda z: spl.spsolve(A, z), holomorphic=True)(z), np.linalg.inv(DENSE))
    np.testing.assert_allclose(sg.jacrev(lambda z: (1j * A) @ z, holomorphic=True)(z), 1j * DENSE)


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
def test_a_captured_matrix_is_compiled_in_while_it_holds_the_same() -> None:
    matrix = A.copy()
    slope = sg.grad(lambda x: np.sum((matrix @ x) ** 2))
    for factor in (1.0, 1.0, 3.0, 3.0):
        matrix.data[:] = factor * A.data
        for _ in range(3):
            np.testing.assert_allclose(slope(X), 2 * factor**2 * DENSE.T @ (DENSE @ X))
    assert sg.explain(slope)(X)["how it runs"].startswith("One program")


def test_captured_factors_are_one_program_until_there_are_others() -> None:
    factors, solve = FACTORS, spl.factorized(A.tocsc())

    def f(x: Any) -> Any:
        return np.sum(factors.solve(x) ** 2) + np.sum(solve(x) ** 3)

    slope = sg.value_and_grad(f)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        for step in range(12):
            if step % 6 == 0:
                factors = spl.splu(((1.0 + step) * A).tocsc())
            if step % 6 == 3:
                solve = spl.factorized((2.0 * (1.0 + step) * A).tocsc())
            value, found = slope(X)
            np.testing.assert_allclose(value, f(X), rtol=1e-12)
            away = 1e-5 * np.cos(np.arange(X.size))
            np.testing.assert_allclose(found @ away, (f(X + away) - f(X - away)) / 2, rtol=1e-6)


def test_a_singular_system_is_nan() -> None:
    singular = sp.csc_matrix((np.ones(4), ([0, 0, 1, 1], [0, 1, 0, 1])))
    assert np.isnan(sg.grad(lambda b: np.sum(spl.spsolve(singular, b)))(np.ones(2))).all()


def test_examples() -> None:
    points = RNG.normal(size=(3, 5))
    for f in (CASES["A @ x"], CASES["spsolve"], CASES["spsolve with traced elements"]):
        np.testing.assert_allclose(sg.vmap(f)(points), [f(x) for x in points], rtol=1e-11)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_what_does_not_fit_is_an_error() -> None:
    for f in (lambda x: A @ x[:3], lambda x: x[:3] @ A, lambda x: spl.spsolve(A, x[:4]), lambda x: made(x) + WIDE):
        with pytest.raises(ValueError):
            f(X)
        with pytest.raises(ValueError):
            sg.jit(f)(X)
    with pytest.raises(SrcgradError, match="maximum"):
        sg.grad(lambda x: np.sum(A.maximum(x[0]).toarray()))(X)
