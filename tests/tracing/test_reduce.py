"""``ufunc.reduce``: where it begins, along which axes, and in which dtype, as in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcgrad as sg

X = np.array([[0.5, 0.7], [0.3, 0.2], [1.2, 0.4]])
ORDERED: list[Any] = [
    np.subtract, np.divide, np.power, np.float_power, np.fmod, np.remainder, np.floor_divide, np.arctan2,
]  # fmt: skip
REORDERABLE: list[Any] = [
    np.add, np.multiply, np.maximum, np.minimum, np.fmax, np.hypot, np.logaddexp, np.logaddexp2, np.logical_and,
    np.logical_or, np.logical_xor,
]  # fmt: skip
MISREAD = (np.power, np.arctan2)
"""Of contiguous numbers, some builds of NumPy apply these to the first and the last alone."""
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "initial": {"initial": 2.0},
    "initial kept": {"initial": 1.7, "keepdims": True},
    "last axis": {"axis": 1, "initial": 2.5},
    "no initial": {"initial": None},
    "no axes": {"axis": ()},
    "both axes": {"axis": None},
    "both axes, initial": {"axis": (0, 1), "initial": 2},
    "axis twice": {"axis": (0, 0)},
    "float32": {"dtype": np.float32, "initial": 1.5},
    "bool": {"dtype": bool},
    "where": {"where": X > 0.4, "initial": 1.0},
    "where, no initial": {"where": X > 0.4, "initial": None},
}


@pytest.mark.parametrize("ufunc", [*ORDERED, *REORDERABLE, np.less], ids=lambda ufunc: ufunc.__name__)
def test_reduce_is_numpys(ufunc: Any) -> None:
    """Where NumPy raises, so does srcgrad: of ufuncs whose order matters along several axes, without a loop for it."""
    for x in (X, np.array([[5, 7], [3, 2], [2, 4]]), np.zeros((0, 2)), np.array([[True, False]]), np.float64(0.3)):
        for name, options in OPTIONS.items():
            given = options if np.shape(x) == X.shape or "where" not in options else {"initial": 1.0}

            def f(x: Any, given: dict[str, Any] = given) -> Any:
                return ufunc.reduce(x, **given)

            with np.errstate(all="ignore"):
                try:
                    expected = f(x)
                except (TypeError, ValueError):
                    with pytest.raises((TypeError, ValueError)):
                        sg.jit(f)(x)
                    continue
                if ufunc in MISREAD and name == "last axis":
                    continue
                found = sg.jit(f)(x)
            assert found.dtype == expected.dtype and np.shape(found) == np.shape(expected), (name, x)
            np.testing.assert_allclose(found, expected, 2e-3 if found.dtype == np.float16 else 1e-6, err_msg=name)


def folded(ufunc: Any, x: Any, initial: float) -> Any:
    """A fold from ``initial``, one row after the other."""
    result: Any = initial
    for row in x:
        result = ufunc(result, row)
    return result


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("ufunc", [*ORDERED, np.logaddexp, np.hypot], ids=lambda ufunc: ufunc.__name__)
def test_derivatives_of_a_fold_that_begins_with_a_number(ufunc: Any, backend: str) -> None:
    def reduced(x: Any) -> Any:
        return np.sum(np.sin(ufunc.reduce(x, initial=2.0)))

    def unrolled(x: Any) -> Any:
        return np.sum(np.sin(folded(ufunc, x, 2.0)))

    for derive in (sg.grad, sg.hessian):
        expected = derive(unrolled, backend="numpy")(X)
        np.testing.assert_allclose(derive(reduced, backend=backend)(X), expected, rtol=1e-10, atol=1e-12)
    pushed = sg.jvp(reduced, (X,), (X,), backend=backend)[1]
    np.testing.assert_allclose(pushed, sg.jvp(unrolled, (X,), (X,), backend="numpy")[1], rtol=1e-12)


def test_the_initial_value_has_a_derivative() -> None:
    def f(start: Any) -> Any:
        return np.sum(np.subtract.reduce(X, initial=start) * np.logaddexp.reduce(X, initial=start))

    step = 1e-6
    slope = (f(0.4 + step) - f(0.4 - step)) / (2 * step)
    assert sg.grad(f)(0.4) == pytest.approx(slope, rel=1e-8)


def test_initial_is_cast_before_it_is_multiplied() -> None:
    x = np.array([5, 3, 2])
    for f in (lambda x: np.prod(x, initial=2.5), lambda x: np.sum(x, initial=-2.5)):
        assert sg.jit(f)(x) == f(x)


@pytest.mark.parametrize("name", ["sum", "prod", "nansum", "cumsum", "cumprod"])
@pytest.mark.parametrize("dtype", ["i8", "f4", "f8", "c16"])
@pytest.mark.parametrize("given", ["f8", "i8", "i1"])
def test_out_of_another_dtype_takes_what_is_summed_in_a_dtype_of_both(name: str, dtype: str, given: str) -> None:
    def f(x: Any) -> Any:
        found = np.zeros(x.shape if name.startswith("cum") else x.shape[:1], dtype)
        return getattr(np, name)(x, axis=1, out=found), found * 2

    x = (np.array([[1.6, -2.7, 1.9], [16777216.0, 1.0, -16777216.0]]) % 2**27).astype(given)
    for backend in ("llvm", "numpy"):
        ours = sg.jit(f, strict=True, backend=backend)(x)
        for one, wanted in zip(ours, f(x), strict=True):
            assert one.dtype == wanted.dtype
            np.testing.assert_allclose(one, wanted, rtol=1e-13, atol=1e-8)


@pytest.mark.parametrize("dtype", ["i8", "i1", "f4", "f8"])
@pytest.mark.parametrize("given", ["f8", "f4", "i8"])
def test_a_mean_with_out_divides_what_the_output_holds_of_the_sum(dtype: str, given: str) -> None:
    """And the reduction of a ufunc is computed in the dtype of both, as by its function."""

    def f(x: Any) -> Any:
        found = [np.zeros(x.shape[:1], dtype) for _ in range(3)]
        np.mean(x, axis=1, out=found[0])
        np.add.reduce(x, axis=1, out=found[1])
        np.multiply.reduce(x / 16, axis=1, out=found[2])
        return found

    x = np.array([[1.6, -2.7, 1.9], [40.3, -11.5, 7.25]]).astype(given)
    for backend in ("llvm", "numpy"):
        for one, wanted in zip(sg.jit(f, strict=True, backend=backend)(x), f(x), strict=True):
            assert one.dtype == wanted.dtype
            np.testing.assert_allclose(one, wanted, rtol=1e-6)


@pytest.mark.parametrize("name", ["nanmean", "nanvar", "nanstd"])
@pytest.mark.parametrize("options", [{"dtype": int}, {"out": np.zeros(2, int)}], ids=["dtype", "out"])
def test_integers_take_no_mean_that_may_be_nan(name: str, options: dict[str, Any]) -> None:
    x = np.ones((2, 3))
    for function in (getattr(np, name), sg.jit(lambda x, **options: getattr(np, name)(x, axis=1, **options))):
        with pytest.raises(TypeError, match=f"If a is inexact, then {next(iter(options))} must be inexact"):
            function(x, **({"axis": 1} if function is getattr(np, name) else {}), **options)
