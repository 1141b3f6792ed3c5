"""What ``spmatrix.todense`` and sums along an axis give is ``np.matrix``: products and powers are of matrices."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import srcgrad as sg

B = np.arange(9.0).reshape(3, 3) ** 0.5
K = sp.csr_matrix(np.diag([3.0, 4.0, 5.0]) + 0.3 * B)
X = np.array([0.5, 1.2, 0.8])
WEIGHTS = np.cos(np.arange(3.0))
pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")


def made(x: Any) -> Any:
    return K * x[0] + sp.diags(x)


def dense(x: Any) -> Any:
    return made(x).todense()


DENSE: dict[str, Callable[[Any], Any]] = {
    "product": lambda x: dense(x) * dense(x),
    "power": lambda x: dense(x) ** 2,
    "numbers": lambda x: 2 * dense(x) * x[1] + dense(x) / x[0] - (1.0 - dense(x)),
    "a row": lambda x: dense(x)[0] * B,
    "a column": lambda x: B @ dense(x)[:, 1],
    "rows": lambda x: sum(row * row.T for row in dense(x)),
    "sums of rows": lambda x: made(x).sum(axis=1).T * made(x).sum(axis=1),
    "sums of columns": lambda x: made(x).sum(axis=0) * B + made(x).mean(axis=0) * B,
    "an array": lambda x: np.asarray(dense(x)) * B + np.array(dense(x), dtype=float) * B,
    "an array before it": lambda x: B * dense(x) + x * dense(x),
    "solve": lambda x: np.linalg.solve(dense(x), x) * WEIGHTS,
    "inverse": lambda x: np.linalg.inv(dense(x)) * x[:, None] + dense(x).I,
    "ufuncs": lambda x: np.exp(dense(x)) * B + np.multiply(dense(x), B) - np.abs(dense(x)) * B,
    "one row": lambda x: dense(x).flatten()[0, 3:6],
    "one axis": lambda x: np.asarray(made(x).sum(axis=1)).ravel() * x + made(x).sum(axis=1).A1 * x,
    "beside a sparse one": lambda x: made(x) * dense(x) + dense(x) * made(x),
    "a sum with an array": lambda x: (made(x) + np.outer(x, x)) * dense(x),
    "np.sum": lambda x: np.sum(dense(x), axis=0) * B,
    "shapes": lambda x: x * dense(x)[1].shape[0] + x * dense(x).sum(axis=1).shape[1] * len(dense(x)),
}


@pytest.mark.parametrize("name", DENSE)
def test_the_matrix_of_a_sparse_matrix(name: str) -> None:
    """It was an array: the product was one of elements, which is another number."""

    def loss(x: Any) -> Any:
        return np.sum(np.asarray(DENSE[name](x)) * WEIGHTS)

    np.testing.assert_allclose(sg.jit(loss)(X), loss(X), rtol=1e-12)
    apart = [(loss(X + 1e-6 * e) - loss(X - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
    np.testing.assert_allclose(sg.grad(loss)(X), apart, rtol=1e-6)
    np.testing.assert_allclose(sg.jacfwd(loss)(X), apart, rtol=1e-6)


def test_a_sparse_array_has_no_matrix() -> None:
    fixed = sp.csr_array(K)

    def loss(x: Any) -> Any:
        return np.sum((fixed * x[0]).todense() * B)

    np.testing.assert_allclose(sg.value_and_grad(loss)(X)[0], loss(X), rtol=1e-12)


@pytest.mark.parametrize("function", [np.kron, np.einsum, np.dstack, operator.truth, float])
def test_what_is_not_known_of_matrices_is_refused(function: Callable[..., Any]) -> None:
    def loss(x: Any) -> Any:
        return np.sum(np.asarray(function(dense(x), B) if function is np.kron else function(dense(x)))) * x[0]

    with pytest.raises(sg.errors.UnsupportedError, match=r"np\.matrix"):
        sg.grad(loss)(X)
