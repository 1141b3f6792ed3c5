"""Index arrays and systems of equations whose numbers are known only at run time, and such as are literals."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from srcgrad.backends.xla.backend import BACKEND
from srcgrad.backends.xla.tables import indexing
from srcgrad.ir.core import Builder, literal
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.types import FLOAT64, ArrayType
from tests.backends.xla.support import apply

SEED = 5


def drawn(random: np.random.Generator, axis: int, count: int) -> tuple[Any, Any, list[Any]]:
    """An array, a part and index arrays with many duplicates, some negative."""
    shape = (4, 3, 5)
    indices = [random.integers(-size, size, (6, 7)) for size in shape[axis : axis + count]]
    part_shape = (*shape[:axis], 6, 7, *shape[axis + count :])
    return random.normal(size=shape), random.normal(size=part_shape), indices


@pytest.mark.parametrize(("axis", "count"), [(0, 1), (1, 1), (2, 1), (0, 2), (1, 2), (0, 3)])
@pytest.mark.parametrize("known", [False, True])
def test_duplicate_indices(axis: int, count: int, known: bool) -> None:
    """Of several writes to one place the last wins; several additions add up; reading takes what is there."""
    print(f"seed {SEED}")
    array, part, indices = drawn(np.random.default_rng(SEED), axis, count)
    where = (slice(None),) * axis + tuple(indices)
    literals = tuple(range(2, 2 + count)) if known else ()
    written = array.copy()
    written[where] = part
    np.testing.assert_array_equal(apply("scatter_set", array, part, *indices, known=literals, axis=axis), written)
    added = array.copy()
    np.add.at(added, where, part)
    np.testing.assert_allclose(
        apply("scatter_add", array, part, *indices, known=literals, axis=axis), added, rtol=1e-13, atol=1e-13
    )
    read = tuple(range(1, 1 + count)) if known else ()
    np.testing.assert_array_equal(apply("gather", array, *indices, known=read, axis=axis), array[where])


def test_boolean_additions_are_disjunctions() -> None:
    array = np.array([False, True, False])
    found = apply("scatter_add", array, np.array([True, False] * 300), np.tile([0, 1], 300), axis=0)
    np.testing.assert_array_equal(found, [True, True, False])


def test_writes_do_not_rely_on_the_order_of_xla(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the writes in any order the result is the same: those that lose are not written at all."""
    plain = indexing.lax.scatter

    def reversed_order(x: Any, where: Any, part: Any, numbers: Any, **options: Any) -> Any:
        return plain(x, where[::-1], part[::-1], numbers, **options)

    monkeypatch.setattr(indexing.lax, "scatter", reversed_order)
    array, part = np.zeros(3), np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    index = np.array([0, 2, 0, -1, 0])
    for known in ((), (2,)):
        np.testing.assert_array_equal(apply("scatter_set", array, part, index, known=known, axis=0), [5.0, 0.0, 4.0])


@pytest.mark.parametrize("step", [1, 2, 3])
def test_slices_are_written(step: int) -> None:
    x, expected = np.arange(24.0).reshape(4, 6), np.arange(24.0).reshape(4, 6)
    part = -np.ones_like(x[1:4:2, 1:6:step])
    expected[1:4:2, 1:6:step] = part
    attrs = {"starts": (1, 1), "limits": (4, 6), "strides": (2, step)}
    np.testing.assert_array_equal(apply("slice_set", x, part, **attrs), expected)


def test_systems_that_need_row_exchanges() -> None:
    random = np.random.default_rng(SEED)
    for shape in ((5, 5), (3, 4, 4)):
        a = random.normal(size=shape)
        a[..., 0, 0] = 0.0
        b = random.normal(size=(*shape[:-1], 2))
        np.testing.assert_allclose(apply("solve", a, b), np.linalg.solve(a, b), rtol=1e-9, atol=1e-12)
    swap = np.array([[0.0, 1.0], [1.0, 0.0]])
    np.testing.assert_array_equal(apply("solve", swap, np.array([[3.0], [5.0]])), [[5.0], [3.0]])


def test_donated_parameters_stand_after_large_literals() -> None:
    type = ArrayType(FLOAT64, (2000,))
    builder = Builder()
    x, y = builder.param(type), builder.param(type)
    known = literal(np.arange(2000.0), type)
    total = builder.emit(REGISTRY["add"], [builder.emit(REGISTRY["mul"], [x, known]), y])
    executable = BACKEND.compile(builder.function("program", [total]), donate=(1,))
    for _ in range(2):
        with jax.enable_x64(True):
            first, second = jax.device_put(np.ones(2000)), jax.device_put(np.ones(2000))
        (found,) = executable.run_device(first, second)
        np.testing.assert_array_equal(np.asarray(found), np.arange(2000.0) + 1)
        assert second.is_deleted() and not first.is_deleted()
