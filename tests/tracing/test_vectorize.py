"""``np.vectorize`` of traced arrays: its dtypes, several results, keywords and what is excluded, as in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

X = np.array([0.3, 1.2, 2.1])


def horner(p: Any, v: Any) -> Any:
    result = 0.0
    for c in p:
        result = result * v + c
    return result


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "several results": lambda x: np.vectorize(lambda v: (v, v * v))(x),
    "a default": lambda x: np.vectorize(lambda v, w=2.0: v * w)(x),
    "a keyword": lambda x: np.vectorize(lambda v, w=2.0: v * w)(x, w=3.0),
    "a traced keyword": lambda x: np.vectorize(lambda v, w=2.0: v * w)(x, w=x[::-1]),
    "keywords alone": lambda x: np.vectorize(lambda v, w=2.0: v * w)(v=x[:, None], w=x),
    "excluded by place": lambda x: np.vectorize(horner, excluded=[0])([x[0], 2.0, x[1]], x),
    "excluded by name": lambda x: np.vectorize(horner, excluded=["p"])(p=[x[0], 2.0], v=x),
    "excluded and known": lambda x: np.vectorize(horner, excluded={0})(np.array([1.0, 2.0]), v=x),
    "a dtype": lambda x: np.vectorize(lambda v: 2 * v, otypes=[np.float32])(x),
    "dtypes": lambda x: np.vectorize(lambda v: (2 * v, v > 1), otypes="fd")(x),
    "whole numbers": lambda x: np.vectorize(lambda v: v, otypes=[int])(x) * x,
    "the dtype of the first": lambda x: np.vectorize(lambda v, k: k if k < 1 else v)(x, np.arange(3)) * x,
    "none": lambda x: np.vectorize(lambda v: v + 1, otypes=[float])(x[:0]),
    "a signature and a dtype": lambda x: np.vectorize(lambda r, v: r * v, signature="(n),()->(n)", otypes=[np.float32])(
        np.outer(x, x), x
    ),
    "a signature and a keyword": lambda x: np.vectorize(lambda r, s: r.sum() * s, signature="(n)->()", excluded=["s"])(
        np.outer(x, x), s=x[0]
    ),
}


def parts(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_vectorize_is_numpys(name: str, backend: str) -> None:
    f = FUNCTIONS[name]
    for found, wanted in zip(parts(sg.jit(f, backend=backend, strict=True)(X)), parts(f(X)), strict=True):
        assert found.dtype == wanted.dtype and found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-6 if wanted.dtype == np.float32 else 1e-14)

    def total(x: Any) -> Any:
        return sum(np.sum(part.astype(float)) for part in parts(f(x)))

    step = 1e-3 * np.array([1.0, -0.5, 0.7])
    difference = (total(X + step) - total(X - step)) / 2
    np.testing.assert_allclose(sg.grad(total, backend=backend)(X) @ step, difference, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_vectorize_of_integers_has_the_dtypes_that_are_asked_for(backend: str) -> None:
    for f in (
        lambda i: np.vectorize(lambda v: v + 1, otypes=[float])(i),
        lambda i: np.vectorize(lambda v: v + 1)(i),
        lambda i: np.vectorize(lambda v: (v + 1, 1.5), otypes="if")(i),
    ):
        number = np.arange(3)
        for found, wanted in zip(parts(sg.jit(f, backend=backend, strict=True)(number)), parts(f(number)), strict=True):
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found, wanted)


def test_vectorize_of_nothing_needs_a_dtype() -> None:
    with pytest.raises(ValueError, match="cannot call `vectorize` on size 0 inputs"):
        sg.grad(lambda x: np.sum(np.vectorize(lambda v: v + 1)(x[:0])))(X)
