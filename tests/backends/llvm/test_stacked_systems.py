"""Systems side by side in lanes: pivots of each lane, what is singular or not finite, and what must not be read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from srcgrad.backends.llvm.steps import stacked_systems
from srcgrad.backends.llvm.steps.lapack import Lapack
from srcgrad.backends.llvm.steps.stacked_systems import MOST_ROWS
from srcgrad.backends.llvm.target import TARGET, Target
from tests.backends.llvm import steps_support
from tests.backends.llvm.steps_support import agree_or_give_up, make_operation, native, target_of
from tests.backends.llvm.test_linear_algebra_steps import agree, definite, matrix, random, status_of

COUNT = 19
"""More matrices than a register has lanes, and no multiple of that."""
TRIANGLES = [("N", True, False), ("T", True, False), ("N", False, True), ("C", False, False), ("T", True, True)]


@pytest.fixture(autouse=True)
def nan_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """What results and scratch memory hold before is nan."""
    monkeypatch.setattr(steps_support, "_FILL", 0xFF)


def check_all(n: int, dtype: Any, target: Target = TARGET) -> None:
    a, ulps = matrix(n, dtype, (COUNT,))[:, ::-1].copy(), 64.0
    agree("cholesky", definite(n, dtype, (COUNT,)), target=target, ulps=ulps)
    for count in (1, 3, 4, 9):
        agree("solve", a, random(COUNT, n, count, dtype=dtype), target=target, ulps=ulps)
    agree("inv", a, target=target, ulps=ulps, strict=True)
    agree("slogdet_gradient", a, target=target, ulps=ulps)
    agree("det", a, target=target, ulps=4 * ulps)
    agree("slogdet", a, target=target, ulps=ulps)
    for trans, lower, unit in TRIANGLES:
        for count in (1, 6):
            read = np.tril(np.ones((n, n), bool), -int(unit))
            given = np.where(read if lower else read.T, a[:, ::-1] / (n if unit else 1), np.nan).astype(dtype)
            attrs = {"trans": trans, "lower": lower, "unit": unit}
            operands = given, random(COUNT, n, count, dtype=dtype)
            agree("triangular_solve", *operands, target=target, ulps=ulps, **attrs)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", [5, 6, 7, 8, 9, 13, 16, 17, MOST_ROWS, MOST_ROWS + 1])
def test_every_size(n: int, dtype: str) -> None:
    check_all(n, dtype)


@pytest.mark.parametrize("name", ["x86-64", "x86-64-v3", "x86-64-v4"])
def test_other_registers(name: str) -> None:
    target = target_of(name)
    for n in (5, 8, 11):
        check_all(n, "float64", target)


def test_few_matrices_are_left_to_lapack() -> None:
    lanes = TARGET.vector_bytes // 8
    for count, stacked in ((2 * lanes - 1, False), (2 * lanes, True)):
        operation, _ = make_operation("inv", matrix(6, np.float64, (count,)), strict=True)
        assert stacked_systems.is_stacked(Lapack(operation, TARGET)) == stacked


def test_each_lane_has_its_own_pivots() -> None:
    """Rows in another order in each matrix; a pivot that is small would lose all digits."""
    source, n = np.random.default_rng(3), 7
    base = random(n, n)
    base[:, 0] = np.linspace(1e-9, 3.0, n) * (-1.0) ** np.arange(n)  # a small one is larger than a negative one
    base[:, 1] = np.linspace(5.0, 1e-8, n)
    orders = [source.permutation(n) for _ in range(COUNT)]
    a, b = np.stack([base[order] for order in orders]), np.stack([random(n, 2)[order] for order in orders])
    agree("solve", a, b, ulps=64.0)
    agree("inv", a, ulps=64.0, strict=True)
    agree("det", a, ulps=64.0)
    compiled = native(make_operation("solve", a, b)[0])
    assert compiled is not None
    found = compiled(a, b)[1][0]
    np.testing.assert_array_equal(found, np.broadcast_to(found[0], found.shape))


def test_ties_are_broken_as_lapack_does() -> None:
    a = np.where(np.random.default_rng(0).random((COUNT, 5, 5)) < 0.5, 1.0, -1.0) + 3.0 * np.eye(5)[::-1]
    a[:, 0, 4] = 1.0
    agree("solve", a, random(COUNT, 5, 1), ulps=256.0)
    agree("det", a, ulps=256.0)


@pytest.mark.parametrize("place", [0, 9, COUNT - 1])
def test_one_singular_matrix_among_others(place: int) -> None:
    a, b = matrix(6, np.float64, (COUNT,)), random(COUNT, 6, 1)
    a[place, :, 4] = 0.0
    agree("det", a, ulps=400.0)
    agree("slogdet", a)
    agree("inv", a, strict=False)
    assert status_of("solve", a, b) == status_of("inv", a, strict=True) == status_of("slogdet_gradient", a) == 1
    broken = definite(6, np.float64, (COUNT,))
    for value in (-1.0, np.nan):
        broken[place, 5, 5] = value
        assert status_of("cholesky", broken) == 1
    broken[place, 5, 5] = 0.0
    assert status_of("triangular_solve", broken, b, lower=True, trans="N", unit=False) == 1


def test_cholesky_reads_the_lower_triangle() -> None:
    a = definite(9, np.float64, (COUNT,))
    compiled = native(make_operation("cholesky", a)[0])
    assert compiled is not None
    broken = np.where(np.tril(np.ones((9, 9), bool)), a, np.nan)
    np.testing.assert_array_equal(compiled(a)[1][0], compiled(broken)[1][0])


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, 1e308, 1e-310])
@pytest.mark.parametrize("n", [3, 6])
def test_special_numbers(special: float, n: int) -> None:
    """As NumPy, wherever the number stands in a stack; where the step gives up, NumPy says what is right."""
    for i, j in ((0, 0), (n - 1, n - 1), (1, 0), (0, 2)):
        a, right = definite(n, np.float64, (COUNT,)), random(COUNT, n, 2)
        a[9, i, j] = special
        calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
            ("cholesky", (a,), {}),
            ("solve", (a, right), {}),
            ("inv", (a,), {"strict": True}),
            ("det", (a,), {}),
            ("triangular_solve", (a, right), {"lower": True, "trans": "N", "unit": False}),
        ]
        for name, operands, attrs in calls:
            agree_or_give_up(name, *operands, **attrs)


@pytest.mark.parametrize("n", [3, 6])
@pytest.mark.parametrize("scale", [2.0**1010, 2.0**-1015, 2.0**-1040])
def test_numbers_whose_inverses_are_no_normal_numbers(n: int, scale: float) -> None:
    a, b = matrix(n, np.float64, (COUNT,)), random(COUNT, n, 1)
    agree("solve", a * scale, b * scale, ulps=2.0**30 if scale < 1e-308 else 64.0)
    last = np.stack([np.diag([1e-300] * (n - 1) + [1e-310])] * COUNT)
    agree("solve", last, last @ np.ones((n, 1)))
    if n < 6 or scale < 2.0**-1022:  # LAPACK multiplies by inverses, which are infinite
        return
    for trans, lower, unit in TRIANGLES:
        attrs = {"trans": trans, "lower": lower, "unit": unit}
        agree("triangular_solve", a * (1 if unit else scale), b * scale, ulps=256.0, **attrs)


def test_determinants_out_of_bounds() -> None:
    """Also where they are so on the way only, as the product of the first numbers on the diagonal."""
    for numbers in ((1e-200, 1e-120, 1e100, 1e100, 1e100), (1e200, 1e200, 1e-100, 1e-100, 1e-50), (1e-70,) * 5):
        a = np.stack([np.diag(numbers)] * COUNT)
        agree("det", a, ulps=2.0**10)  # NumPy's is the exponential of a logarithm
        agree("slogdet", a)
