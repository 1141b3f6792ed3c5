"""Large arguments in another order of axes than C's are read as they stand, and nothing else is different."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.turned import LARGE, orders_of, turned_back

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(7)
X = RNG.standard_normal((12, 30, 40))
assert X.nbytes >= LARGE


def misaligned(x: Array) -> Array:
    memory = np.empty(x.nbytes + 1, np.uint8)[1:]
    result: Array = np.ndarray(x.shape, x.dtype, memory, order="F")
    result[...] = x
    return result


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "C": lambda x: x.copy(),
    "Fortran": lambda x: x.copy(order="F"),
    "axes in turn": lambda x: x.transpose(2, 0, 1).copy().transpose(1, 2, 0),
    "part": lambda x: np.concatenate([x, x]).copy(order="F")[: len(x)],
    "reversed": lambda x: x[::-1].copy(order="F")[::-1],
    "swapped bytes": lambda x: x.astype(x.dtype.newbyteorder(), order="F"),
    "misaligned": misaligned,
}


def loss(x: Any) -> Any:
    return np.sum(np.tanh(x[1:] * x[:-1]) * np.mean(x, axis=1, keepdims=True)[1:]) + np.max(x)


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The orders of arguments of programs that are made."""
    sg.clear_caches()
    seen: list[Any] = []

    def noted(function: Any, orders: Any) -> Any:
        seen.append(orders)
        return turned_back(function, orders)

    monkeypatch.setattr("srcgrad.building.turned_back", noted)
    return seen


@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_and_derivatives_do_not_depend_on_the_order_of_axes(layout: str) -> None:
    x, f = LAYOUTS[layout](X), sg.value_and_grad(loss)
    expected = sg.value_and_grad(loss, backend="numpy")(X)
    for scale in (1.0, 0.5):
        value, slope = f(x * scale if scale != 1.0 else x)
        if scale == 1.0:
            assert value == pytest.approx(expected[0], rel=1e-12)
            np.testing.assert_allclose(slope, expected[1], rtol=1e-11, atol=1e-13)
        assert slope.flags.c_contiguous
    tangent = sg.jvp(loss, (x,), (LAYOUTS[layout](X),))[1]
    assert tangent == pytest.approx(np.sum(expected[1] * X), rel=1e-11)
    assert np.array_equal(sg.jit(lambda x: x.reshape(-1)[:5])(x), X.reshape(-1)[:5])


def test_one_function_serves_all_orders_in_turn(turns: list[Any]) -> None:
    f = sg.jit(lambda x: np.sum(x, axis=0))
    for k in range(3):
        for layout in ("C", "Fortran", "axes in turn", "part"):
            np.testing.assert_allclose(f(LAYOUTS[layout](X + k)), np.sum(X + k, axis=0), rtol=1e-12, atol=1e-14)
    assert turns == [{0: (2, 1, 0)}, {0: (2, 0, 1)}]


def test_captured_arrays_and_cotangents_are_read_as_they_stand(turns: list[Any]) -> None:
    weights = X.copy(order="F")
    f = sg.jit(lambda x: np.sum(weights * x))
    for _ in range(3):
        assert f(X) == pytest.approx(np.sum(X * weights), rel=1e-12)
        weights *= 0.5
    assert turns == [{1: (2, 1, 0)}]
    pull = sg.vjp(lambda x: np.sin(x) * 2.0, X)[1]
    np.testing.assert_allclose(pull(X.copy(order="F"))[0], 2.0 * np.cos(X) * X, rtol=1e-13)


def test_what_a_function_writes_into_a_turned_argument_is_in_it() -> None:
    def zeroed(x: Any) -> Any:
        x[1:3] = 0.0
        return x.sum()

    f = sg.jit(zeroed)
    for k in range(3):
        given, expected = (X + k).copy(order="F"), (X + k).copy(order="F")
        assert f(given) == pytest.approx(zeroed(expected), rel=1e-12)
        assert np.array_equal(given, expected) and given.flags.f_contiguous


@pytest.mark.parametrize("dtype", [np.float32, np.complex128, np.int64, np.bool_])
def test_turned_arguments_of_other_dtypes(dtype: Any) -> None:
    x = np.asfortranarray((4 * X).astype(dtype).repeat(4, axis=0))
    assert np.array_equal(sg.jit(lambda x: x.T[3])(x), x.T[3])
    assert sg.jit(lambda x: np.sum(x != 0))(x) == np.sum(x != 0)


def test_what_is_small_or_lies_apart_is_not_turned() -> None:
    assert orders_of([X, X[:2].copy(order="F"), np.asfortranarray(X)[::2], X[..., ::2], 2.0]) == {}


def test_errors_name_the_argument_as_it_was_given() -> None:
    with pytest.raises(sg.errors.ShapeError, match=r"12,30,40|12, 30, 40"):
        sg.jit(lambda x: x + np.ones(7))(X.copy(order="F"))
