"""Linear operators of functions and of matrices, and least squares of sparse matrices, among traced values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spl

import srcgrad as sg
from srcgrad.errors import SrcgradError

RNG = np.random.default_rng(3)
N = 6
X = RNG.uniform(0.5, 1.5, N)
MATRIX = sp.csr_matrix(4.0 * np.eye(N) - np.eye(N, k=1) - np.eye(N, k=-1))
TALL = sp.csc_matrix(RNG.normal(size=(N, 3)))
CAPTURED = spl.LinearOperator((N, N), matvec=lambda v: 2.0 * v + v[::-1], dtype=float)
OF_MATRIX = spl.aslinearoperator(MATRIX)
TURNED = spl.LinearOperator(
    (N, N), matvec=lambda v: v[::-1] + v * np.arange(N), rmatvec=lambda v: v[::-1] + v * np.arange(N)
)


class Shifted(spl.LinearOperator):
    """An operator of the user's class, which may hold a traced value."""

    def __init__(self, share: Any) -> None:
        self.share = share
        super().__init__(dtype=float, shape=(N, N))

    def _matvec(self, v: Any) -> Any:
        return 3.0 * v.ravel() + self.share * np.roll(v.ravel(), 1)

    def _rmatvec(self, v: Any) -> Any:
        return 3.0 * v.ravel() + self.share * np.roll(v.ravel(), -1)


SHIFTED = Shifted(0.5)


def laplacian(v: Any) -> Any:
    return 4.0 * v - np.append(v[1:], 0.0) - np.append(0.0, v[:-1])


def scaled(x: Any) -> Any:
    """With a function that reads what is traced."""
    return spl.LinearOperator(
        (N, N), matvec=lambda v: laplacian(v) + x**2 * v, rmatvec=lambda v: laplacian(v) + x**2 * v
    )


TIGHT: Any = {"rtol": 1e-13, "atol": 0.0}
LEAST: Any = {"atol": 1e-14, "btol": 1e-14}
CASES: dict[str, Callable[..., Any]] = {
    "cg": lambda x: spl.cg(spl.LinearOperator((N, N), matvec=laplacian), x, **TIGHT)[0],
    "cg of what is traced": lambda x: spl.cg(scaled(x), x, **TIGHT)[0],
    "gmres with a preconditioner": lambda x: spl.gmres(
        scaled(x), x, M=spl.LinearOperator((N, N), matvec=lambda v: v / (4.0 + x**2)), **TIGHT
    )[0],
    "of a captured one": lambda x: spl.cg(CAPTURED, x, **TIGHT)[0] + CAPTURED.matvec(x),
    "of a matrix": lambda x: OF_MATRIX.matvec(x) + OF_MATRIX.rmatvec(x),
    "of a traced matrix": lambda x: spl.aslinearoperator(sp.diags([x, x[1:]], [0, 1])).rmatvec(x),
    "products and sums": lambda x: (
        (scaled(x) @ scaled(x)).matvec(x) + (2.0 * scaled(x) - CAPTURED) @ x + scaled(x).H.matvec(x)
    ),
    "columns": lambda x: spl.LinearOperator(
        (N, N), matvec=lambda v: x * v, matmat=lambda columns: x[:, None] * columns
    ).matmat(np.outer(x, [1.0, 2.0])),
    "captured ones by operators": lambda x: CAPTURED @ x + OF_MATRIX @ x + CAPTURED * x + x[0] * CAPTURED @ x,
    "of SciPy's own making": lambda x: (
        TURNED.H @ x + TURNED.T @ x + x @ TURNED + (TURNED @ CAPTURED + 2.0 * OF_MATRIX) @ x + (TURNED**2) @ x
    ),
    "columns of a captured one": lambda x: CAPTURED @ np.stack([x, x**2], axis=1),
    "of a user's class": lambda x: SHIFTED @ x + SHIFTED.matvec(x) + SHIFTED.H @ x + (SHIFTED @ TURNED) @ x,
    "of a user's class that holds what is traced": lambda x: (
        Shifted(x[0]) @ x + Shifted(x[1]).matvec(np.ones(N)) + Shifted(x[2]) @ np.arange(N)
    ),
    "gmres of a user's class": lambda x: spl.gmres(Shifted(0.1 * x[0]), x, **TIGHT)[0],
    "lsqr": lambda x: spl.lsqr(TALL, x, **LEAST)[0],
    "lsqr with damp": lambda x: spl.lsqr(TALL, x, damp=0.3, **LEAST)[0],
    "lsqr of traced elements": lambda x: spl.lsqr(TALL.multiply(x[:, None]).tocsr(), x, **LEAST)[0],
    "lsqr's lengths": lambda x: np.array(spl.lsqr(TALL, x, **LEAST)[3:5]),
    "lsmr": lambda x: spl.lsmr(TALL, x, **LEAST)[0],
    "lsqr of an operator": lambda x: spl.lsqr(scaled(x), x, **LEAST)[0],
}


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["llvm", "numpy", "xla"])
@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives(name: str, backend: str) -> None:
    f = CASES[name]
    expected = np.asarray(f(X))
    weights = np.cos(np.arange(expected.size) + 0.2).reshape(expected.shape)
    direction, h = RNG.normal(size=N), 1e-3

    def loss(x: Any) -> Any:
        return np.sum(f(x) * weights)

    def slope(g: Callable[[Any], Any]) -> Any:
        first, second = ((g(X + k * h * direction) - g(X - k * h * direction)) / (2 * k * h) for k in (1, 2))
        return (4 * first - second) / 3

    with sg.use_backend(backend):
        np.testing.assert_allclose(sg.jit(f)(X), expected, rtol=1e-9, atol=1e-11)
        gradient = sg.grad(loss)
        np.testing.assert_allclose(gradient(X) @ direction, slope(loss), rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(sg.jvp(loss, (X,), (direction,))[1], gradient(X) @ direction, rtol=1e-9, atol=1e-12)
        curvature = direction @ sg.hvp(loss, (X,), (direction,))
        np.testing.assert_allclose(curvature, slope(lambda x: gradient(x) @ direction), rtol=1e-5, atol=1e-7)


def test_what_the_iterations_alone_know_is_refused() -> None:
    """And what has no adjoint, or does not fit."""

    def one_way(x: Any) -> Any:
        return spl.LinearOperator((N, N), matvec=lambda v: v * x)

    for f in (
        lambda x: spl.lsqr(TALL, x)[2] * x[0],
        lambda x: np.sum(one_way(x).rmatvec(x)),
        lambda x: np.sum(one_way(x).matvec(x[:2])),
    ):
        with pytest.raises(SrcgradError):
            sg.grad(f)(X)


def test_adjoints_of_products_are_in_the_other_order() -> None:
    first, second = RNG.normal(size=(2, N, N))

    def f(x: Any) -> Any:
        left, right = (spl.aslinearoperator(x[:, None] * part) for part in (first, second))
        return (left @ right).rmatvec(x) + (left @ right).matvec(x)

    np.testing.assert_allclose(sg.jit(f)(X), f(X), rtol=1e-12)
