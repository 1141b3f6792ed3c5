"""Products whose result is transposed are made in that order."""

from __future__ import annotations

from typing import Any

import numpy as np

import srcgrad as sg


def chain(a: Any, b: Any) -> Any:
    """The norm of a matrix product state, of which each adjoint is moved."""
    state = np.einsum("iaj,iak->jk", a, a)
    return np.sum(np.einsum("jk,jal,kam->lm", state, b, b) ** 2)


def moved(a: Any, b: Any) -> Any:
    return np.tensordot(a, b, axes=(1, 2)).transpose(1, 2, 0) + 1.0


def test_no_product_is_made_and_then_moved() -> None:
    a, b = np.random.default_rng(0).normal(size=(5, 5)), np.random.default_rng(1).normal(size=(3, 4, 5))
    text = sg.explain(sg.jit(moved, backend="llvm"))(a, b)["llvm source"]
    assert "dot_general -> f64[3,4,5]" in text and "dot_general -> f64[5,3,4]" not in text
    np.testing.assert_allclose(sg.jit(moved, backend="llvm")(a, b), moved(a, b), rtol=1e-12)


def test_gradients_of_chains_of_products() -> None:
    a, b = np.random.default_rng(0).normal(size=(2, 4, 6, 4))
    text = sg.explain(sg.grad(chain, argnums=(0, 1), backend="llvm"))(a, b)["llvm source"]
    assert "dot_general -> f64[4,6,4]" in text and "dot_general -> f64[4,4,6]" not in text
    sg.testing.check_grads(chain, (a, b), order=1, modes=("fwd", "rev"))
