"""What programs have for the sake of GPUs, seen in their texts; on a GPU all tests of the backend run there."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import srcgrad as sg
from srcgrad.backends.numpy.backend import BACKEND as NUMPY
from srcgrad.backends.xla.tables import arrays
from tests.backends.xla.support import apply, compiled, one_op

MATRIX = np.array([[2.0, 1.0, 0.3], [0.5, 3.0, 0.2], [0.1, 0.7, 4.0]], np.float32)
WITH_PRODUCTS: dict[str, Any] = {
    "matmul": lambda a: a @ a,
    "lstsq": lambda a: np.linalg.lstsq(a, a[:, :2])[0],
    "pinv": np.linalg.pinv,
    "in a loop": lambda a: [a := a @ MATRIX for _ in range(3)][-1],
}


@pytest.mark.parametrize("name", WITH_PRODUCTS)
def test_float32_matrices_are_multiplied_in_full_precision(name: str) -> None:
    """A GPU would take 10 bits of each number."""
    explanation = sg.explain(sg.grad(lambda a: np.sum(WITH_PRODUCTS[name](a) ** 2), backend="xla"))(MATRIX)
    lines = [line for line in str(explanation).splitlines() if "stablehlo.dot_general" in line]
    assert lines
    assert all("HIGHEST" in line for line in lines), lines


@pytest.fixture
def for_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs are written as for a GPU, and run where the tests run."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")


@pytest.mark.usefixtures("for_gpus")
@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize("shape", [(1, 3), (4, 5)], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("kind", ["plain", "equal", "nan", "int64", "bool"])
def test_positions_of_extremes(op: str, shape: tuple[int, int], axis: int, kind: str) -> None:
    """No search with positions beside the numbers: of a single element it fails to compile, of nan it is any."""
    x: Any = np.random.default_rng(0).normal(size=shape)
    if kind == "nan":
        x[x > 0.2] = np.nan
    elif kind != "plain":
        x = np.round(x).astype(float if kind == "equal" else kind)
    np.testing.assert_array_equal(apply(op, x, axis=axis), getattr(np, op)(x, axis=axis))
    assert ", (%" not in compiled(one_op(op, x, axis=axis)).source


def test_a_check_of_one_index_searches_nothing() -> None:
    one, two = (compiled(one_op("gather", np.ones(4), np.zeros(n, np.int64), axis=0)).source for n in (1, 2))
    assert "argmin" in two and "argmin" not in one


@pytest.mark.parametrize(
    ("op", "dtype"),
    [*((op, float) for op in ("sort", "partition", "argpartition")), ("sort", complex), ("argsort", np.int64)],
)
def test_single_elements_are_not_sorted(op: str, dtype: Any) -> None:
    """XLA for GPUs ends the process where it compiles that."""
    attrs = {"kth": 0} if "partition" in op else {}
    one, two = np.ones((3, 1), dtype), np.ones((1, 3), dtype)
    assert "stablehlo.sort" not in compiled(one_op(op, one, axis=1, **attrs)).source
    assert "stablehlo.sort" in compiled(one_op(op, two, axis=1, **attrs)).source
    np.testing.assert_array_equal(apply(op, one, axis=1, **attrs), np.zeros((3, 1)) if op.startswith("arg") else one)


@pytest.mark.usefixtures("for_gpus")
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.complex64, np.float16, np.int64])
def test_sums_have_no_negative_zeros_by_their_bits(dtype: Any) -> None:
    """GPUs begin a sum with its first element, and take x + 0.0 for x."""
    x = np.array([[-0.0, -0.0], [1.5, -1.5], [7, 1], [-9, 2], [-3, 0.0]]).astype(dtype)
    np.testing.assert_array_equal(apply("reduce_sum", x, axes=(1,)), np.sum(x, 1))
    assert ("bitcast_convert" in compiled(one_op("reduce_sum", x, axes=(1,))).source) == (dtype is not np.int64)
    plain = arrays.without_negative_zeros(jax.numpy.array([-0.0, 0.0, -1.0]))
    np.testing.assert_array_equal(np.signbit(plain), [False, False, True])


@pytest.mark.usefixtures("for_gpus")
@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.bool_])
@pytest.mark.parametrize(("left", "right"), [((7,), (3,)), ((2, 5), (2, 2)), ((4, 5), (3, 4))], ids=str)
def test_integers_are_convolved(dtype: Any, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    """GPUs have no convolution of integers."""
    rank = 1 if len(left) == 1 or left[0] == 2 else 2
    random = np.random.default_rng(1)
    x, y = (random.integers(0, 2 if dtype is np.bool_ else 9, shape).astype(dtype) for shape in (left, right))
    full = [n + m - 1 for n, m in zip(left[-rank:], right[-rank:], strict=True)]
    for starts, sizes in (([0] * rank, full), ([1] * rank, [n - 2 for n in full])):
        function = one_op("convolve", x, y, starts=tuple(starts), sizes=tuple(sizes))
        (found,) = compiled(function).run(x, y)
        assert "stablehlo.convolution" not in compiled(function).source
        np.testing.assert_array_equal(found, NUMPY.compile(function).run(x, y)[0])


@pytest.mark.usefixtures("for_gpus")
def test_large_parts_are_selected_and_small_ones_written() -> None:
    for count, op in ((3, "dynamic_update_slice"), (9, "select")):
        attrs = {"starts": (1,), "limits": (1 + count,), "strides": (1,)}
        x, part = np.arange(10.0), -np.ones(count)
        expected = x.copy()
        expected[1 : 1 + count] = part
        np.testing.assert_array_equal(apply("slice_set", x, part, **attrs), expected)
        assert f"stablehlo.{op}" in compiled(one_op("slice_set", x, part, **attrs)).source
