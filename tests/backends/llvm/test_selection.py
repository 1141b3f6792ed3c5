"""Selection as native functions: by ranks and at a pivot, of long rows and columns, where a sample misleads too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.backends.llvm.steps import selection
from srcgrad.backends.llvm.target import TARGET, Target
from srcgrad.backends.numpy.evaluate import evaluate
from tests.backends.llvm.steps_support import make_operation, native
from tests.backends.llvm.test_ordering import SHORT, VALUES

Array = np.ndarray[Any, Any]
TARGETS = {"host": TARGET, "of 16 bytes": SHORT}
LONG = 5 * selection.SHORT + 3


def require(name: str, array: Array, target: Target, **attrs: Any) -> None:
    """The step gives what the op means, to the bits of all that is no nan."""
    operation, function = make_operation(name, array, **attrs)
    compiled = native(operation, target)
    assert compiled is not None, f"{name} of {array.dtype} has no step"
    status, (found,) = compiled(array)
    assert status == 0
    wanted = np.asarray(evaluate(function, [array])[0])
    np.testing.assert_array_equal(found, wanted)
    if found.dtype.kind == "f":
        assert np.all(np.isnan(wanted) | (np.signbit(found) == np.signbit(wanted))), "the sign of a zero"


def require_all(array: Array, target: Target = TARGET, axis: int = 0) -> None:
    size = array.shape[axis]
    for kth in sorted({0, size // 2}):
        for name in ("partition", "argpartition"):
            require(name, array, target, axis=axis, kth=kth)
    several = tuple(sorted({0, size // 3, min(size // 3 + 1, size - 1), size - 1}))
    for name in ("order_statistics", "order_positions"):
        require(name, array, target, axis=axis, ranks=several)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("values", VALUES)
def test_selections_of_rows_are_those_of_stable_sorts(values: str, target: str) -> None:
    for size in (1, 2, 33, LONG):
        row = VALUES[values](np.random.default_rng(size), size)
        require_all(row, TARGETS[target])
        require_all(row.astype(np.float32), TARGETS[target])


@pytest.mark.parametrize("values", VALUES)
def test_selections_of_columns_are_those_of_stable_sorts(values: str) -> None:
    array = VALUES[values](np.random.default_rng(3), 2 * 700 * 11).reshape(2, 700, 11)
    require_all(array, axis=1)
    require_all(array[:, :, :3].astype(np.float32), axis=1)
    require_all(array[:, :40], axis=2)


@pytest.mark.parametrize("dtype", ["i8", "u8", "i4", "u4", "i2", "u1", "?", "f2"])
def test_selections_of_other_dtypes_are_those_of_stable_sorts(dtype: str) -> None:
    raw = np.random.default_rng(11).integers(0, 256, 8 * LONG, dtype=np.uint8)
    wide = raw[:LONG] > 99 if dtype == "?" else raw.view(dtype)[:LONG]
    for array in (wide, (raw[:LONG] % 7).astype(dtype), wide[:30]):
        require_all(array)


@pytest.mark.parametrize("spread", [0.0, -2.0])
def test_ranks_that_the_sample_misses_are_found(spread: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then all keys are sorted: bounds that are too near each other, or in the wrong order, are such a case."""
    monkeypatch.setattr(selection, "SPREAD", spread)
    for values in VALUES.values():
        require_all(values(np.random.default_rng(7), LONG))


def test_rows_in_order_and_in_waves_are_selected_from() -> None:
    ramp = np.arange(float(LONG))
    for row in (ramp, ramp[::-1].copy(), np.sin(ramp), ramp % 8, np.where(ramp % 5 == 0, ramp, 0.0)):
        require_all(row)


@pytest.mark.parametrize("size", [9, 10, LONG])
def test_medians_and_their_gradients_are_those_of_sorts(size: int) -> None:
    """In both parities, of rows with ties, and of columns that are no rows of memory."""
    x = np.round(np.random.default_rng(size).normal(size=(size, 3)), 2)
    for axis in (0, None):

        def middle(v: Any, axis: Any = axis) -> Any:
            return np.sum(np.median(v, axis=axis) ** 2) + np.sum(np.percentile(v, [30, 90], axis=axis))

        def by_sorting(v: Any, axis: Any = axis) -> Any:
            ordered = np.sort(v.ravel() if axis is None else v, axis=0)
            count = len(ordered)
            places = [(count - 1) * q for q in (0.3, 0.9)]
            low = [ordered[int(p)] * (1 - p % 1) + ordered[min(int(p) + 1, count - 1)] * (p % 1) for p in places]
            half = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
            return np.sum(half**2) + sum(np.sum(part) for part in low)

        np.testing.assert_allclose(sg.jit(middle)(x), middle(x), rtol=1e-13)
        np.testing.assert_allclose(sg.grad(middle)(x), sg.grad(by_sorting)(x), rtol=1e-12, atol=1e-14)


def test_partitions_are_divided_where_numpy_divides_them() -> None:
    """Any order within the parts may be; the gradient goes where the elements came from."""
    x = np.round(np.random.default_rng(1).normal(size=(4, 700)), 1)
    for kth in (0, 350, -3):
        found, order = sg.jit(lambda v, k=kth: (np.partition(v, k), np.argpartition(v, k)))(x)
        rank = kth % 700
        np.testing.assert_array_equal(found, np.take_along_axis(x, order, -1))
        np.testing.assert_array_equal(np.sort(order), np.broadcast_to(np.arange(700), (4, 700)))
        np.testing.assert_array_equal(found[:, rank], np.partition(x, rank)[:, rank])
        assert np.all(found[:, :rank] <= found[:, rank, None]) and np.all(found[:, rank:] >= found[:, rank, None])
        slope = sg.grad(lambda v, k=kth: np.sum(np.partition(v, k)[:, : k % 700 + 1] ** 2))(x)
        wanted = np.zeros_like(x)
        np.put_along_axis(wanted, order[:, : rank + 1], 2 * found[:, : rank + 1], -1)
        np.testing.assert_array_equal(slope, wanted)


REFUSED: list[tuple[Callable[[Any], Any], type[Exception]]] = [
    (lambda v: np.partition(v, 5), ValueError),
    (lambda v: np.argpartition(v, -6), ValueError),
    (lambda v: np.partition(v, 1.0), TypeError),
    (lambda v: np.partition(v, []), TypeError),
    (lambda v: np.argpartition(v, True), ValueError),
]


def test_ranks_that_are_no_ranks_are_refused_as_numpy_refuses_them() -> None:
    for f, error in REFUSED:
        for call in (f, sg.jit(f)):
            with pytest.raises(error):
                call(np.ones(5))


@pytest.mark.parametrize("size", [3, 65, 101, 700])
def test_what_is_divided_stands_beside_loops_with_tails(size: int) -> None:
    """Both write under masks, by an intrinsic that one module declares once: tangents go where the elements go."""
    x = np.random.default_rng(size).permutation(np.arange(float(size)))
    weights = np.cos(np.arange(size))
    kth = size // 3

    def f(x: Any) -> Any:
        return np.sum(np.partition(x, kth) * weights)

    forward, backward = sg.jacfwd(f, backend="llvm")(x), sg.jacrev(f, backend="llvm")(x)
    np.testing.assert_array_equal(forward, backward)
    expected = np.empty(size)
    expected[np.argpartition(x, kth)] = weights
    assert forward[np.argsort(x)[kth]] == weights[kth]
    np.testing.assert_array_equal(np.sort(forward), np.sort(expected))


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1)])
def test_no_quantiles_at_all_are_nothing(axis: Any) -> None:
    x = np.arange(12.0).reshape(3, 4)
    for f in (np.quantile, np.nanpercentile):
        found = sg.jit(lambda x, f=f: f(x, [], axis=axis), backend="llvm")(x)
        np.testing.assert_array_equal(found, f(x, [], axis=axis))
        gradient = sg.grad(lambda x, f=f: np.sum(f(x, [], axis=axis)), backend="llvm")(x)
        np.testing.assert_array_equal(gradient, np.zeros((3, 4)))
