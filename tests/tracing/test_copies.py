"""What makes an array of an array: a copy where NumPy makes one, for each layout of it, and else the array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

Array = np.ndarray[Any, Any]

SOURCES: dict[str, Callable[[Any], Any]] = {
    "whole": lambda x: x,
    "transposed": lambda x: x.T,
    "columns": lambda x: x[:, ::2],
    "rows": lambda x: x[::2],
    "first rows": lambda x: x[:2],
    "column": lambda x: x[:, 1],
    "row": lambda x: x[1],
    "row of F": lambda x: x.T[:1],
    "reversed": lambda x: x[::-1],
    "cube": lambda x: x.reshape(2, 2, 3).transpose(1, 0, 2),
    "point": lambda x: x[1, 1, ...],
}
MAKERS: dict[str, Callable[[Any], Any]] = {
    "ascontiguousarray": np.ascontiguousarray,
    "asfortranarray": np.asfortranarray,
    "asarray": np.asarray,
    "asarray C": lambda x: np.asarray(x, order="C"),
    "asarray F": lambda x: np.asarray(x, order="F"),
    "asarray A": lambda x: np.asarray(x, order="A"),
    "asarray copy": lambda x: np.asarray(x, copy=True),
    "asanyarray": lambda x: np.asanyarray(x, order="C"),
    "asarray_chkfinite": lambda x: np.asarray_chkfinite(x, order="F"),
    "array": np.array,
    "array C": lambda x: np.array(x, copy=None, order="C"),
    "array F": lambda x: np.array(x, copy=None, order="F", ndmin=2),
    "array A": lambda x: np.array(x, copy=None, order="A"),
    "copied A": lambda x: np.array(x, order="A"),
    "array that may be none": lambda x: np.array(x, copy=np._CopyMode.IF_NEEDED),  # type: ignore[attr-defined]
    "array in any case": lambda x: np.array(x, copy=np._CopyMode.ALWAYS),  # type: ignore[attr-defined]
    "require": np.require,
    "require C": lambda x: np.require(x, float, "C"),
    "require F": lambda x: np.require(x, None, ["F_CONTIGUOUS", "W"]),
    "require W": lambda x: np.require(np.broadcast_to(x, (2, *x.shape)), None, "W"),
    "astype": lambda x: x.astype(float, copy=False),
    "astype C": lambda x: x.astype(float, order="C", copy=False),
    "astype F": lambda x: x.astype(float, order="F", copy=False),
    "astype A": lambda x: x.astype(float, order="A", copy=False),
    "float32": lambda x: np.asarray(x, np.float32),
    "copy F": lambda x: x.copy("F"),
    "np.copy": np.copy,
}


def written(make: Callable[[Any], Any], source: Callable[[Any], Any], x: Any) -> tuple[Any, ...]:
    """What the array holds after a write into it, its layout, and what the memory that it is of holds then."""
    part = source(x)
    w = make(part)
    shared = np.shares_memory(w, x), np.may_share_memory(w, x)
    flat = w.ravel()  # a view or a copy, as the layout of w is
    w *= 3.0
    return (
        w,
        flat,
        part * 1.0,
        np.array(shared),
        np.array([step for step, size in zip(w.strides, w.shape, strict=True) if size > 1]),
    )


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("maker", MAKERS)
def test_conversions_copy_where_numpy_does(maker: str, order: Any) -> None:
    x = np.arange(1.0, 13.0).reshape(4, 3).copy(order)
    names = [name for name in SOURCES if name != "cube" or order == "C"]

    def every(x: Any) -> Any:
        return [written(MAKERS[maker], SOURCES[name], x.copy(order)) for name in names]

    for name, found, expected in zip(names, sg.jit(every)(x), every(x), strict=True):
        for one, other in zip(found, expected, strict=True):
            assert np.shape(one) == other.shape, name
            np.testing.assert_array_equal(one, other, err_msg=name)
    for name in names:
        given, expected = x.copy(order), x.copy(order)
        written(MAKERS[maker], SOURCES[name], expected)
        sg.jit(lambda x, name=name: written(MAKERS[maker], SOURCES[name], x))(given)
        np.testing.assert_array_equal(given, expected, err_msg=f"the caller's array: {name}")


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_derivatives_through_a_contiguous_copy(backend: str) -> None:
    def f(x: Any) -> Any:
        w = np.ascontiguousarray(x.T)
        w *= x.T
        return np.sum(w * x.T)

    x = np.arange(1.0, 7.0).reshape(2, 3)
    np.testing.assert_allclose(sg.grad(f, backend=backend)(x), 3 * x**2)
    np.testing.assert_allclose(sg.jvp(sg.grad(f, backend=backend), (x,), (x,), backend=backend)[1], 6 * x**2)


def test_a_copy_that_is_forbidden_raises() -> None:
    x = np.ones((2, 3))
    assert sg.jit(lambda x: np.asarray(x, copy=False))(x).shape == (2, 3)
    for f in (
        lambda x: np.asarray(x.T, order="C", copy=False),
        lambda x: np.array(x, np.float32, copy=False),
        lambda x: np.array([x[0], x[1]], copy=False),
    ):
        with pytest.raises(ValueError, match="Unable to avoid"):
            f(x)
        with pytest.raises(ValueError, match="Unable to avoid"):
            sg.grad(lambda x, f=f: f(x).sum())(x)
    with pytest.raises(ValueError, match="order must be"):
        sg.grad(lambda x: np.asarray(x, order="X").sum())(x)  # type: ignore[call-overload]


def test_owned_memory_is_refused() -> None:
    with pytest.raises(sg.errors.UnsupportedError, match="owns its memory"):
        sg.grad(lambda x: np.require(x, None, "O").sum())(np.ones(3))


def test_disjoint_views_share_no_memory() -> None:
    def f(x: Any) -> Any:
        return np.shares_memory(x[:2], x[2:]), np.shares_memory(x[::2], x[1::2]), np.may_share_memory(x[::2], x[1::2])

    x = np.arange(4.0)
    assert sg.jit(f)(x) == f(x) == (False, False, True)


def test_numpys_enumeration_of_copies_has_no_truth() -> None:
    modes = np._CopyMode  # type: ignore[attr-defined]

    def f(x: Any) -> Any:
        kept, given = np.array(x, copy=modes.NEVER), np.asarray(x, copy=modes.ALWAYS)
        given[0] = 5.0
        return np.sum(np.array([x[0], x[1]], copy=modes.IF_NEEDED) * kept[:2])

    np.testing.assert_array_equal(sg.grad(f)(np.arange(1.0, 4.0)), [2.0, 4.0, 0.0])
