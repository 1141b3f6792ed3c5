"""A structural zero stays one across regions: what is not computed, or not taken, never makes a derivative nan."""

from __future__ import annotations

import numpy as np
import pytest

from srcgrad.ir.transforms.derivatives import jacobian
from srcgrad.ir.types import INT64
from tests.ir.control.programs import Program, compiled, interpreted, nestings, trace
from tests.ir.control.tracing import F64, apply, at, cond, for_, log, put, spread, sqrt, total, vector, where, while_

NONE, ONE, EIGHT = [0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [8.0, 0.0, 0.0]


def shared_root(x):  # type: ignore[no-untyped-def]
    root = sqrt(x)
    return cond(x > 0.0, lambda a, b: a, lambda a, b: b, root, x)[0]


def no_trip_reads_root(x):  # type: ignore[no-untyped-def]
    root = sqrt(x)
    return x + while_(lambda a: a > 0.0, lambda a: a - root, 0.0)[0]


def no_trip_of_for(x):  # type: ignore[no-untyped-def]
    return x + for_(apply("cast", x, dtype=INT64), lambda i, a: a - sqrt(x), 0.0)[0]


def no_trip_reads_two(x):  # type: ignore[no-untyped-def]
    """One of which has a cotangent already."""
    other = x * 2.0
    return x + while_(lambda a: a > 0.0, lambda a: a - x - other, 0.0)[0]


def in_while(x):  # type: ignore[no-untyped-def]
    return while_(lambda k, r: k < 3.0, lambda k, r: (k + 1.0, where(r < 1.0, r, sqrt(r)) * 2.0), 0.0, x)[1]


def rescued_later(x):  # type: ignore[no-untyped-def]
    """A carry with an infinite derivative, of which the value is chosen away in each trip."""
    return for_(3, lambda i, a, b: (where(a > 9.0, sqrt(b), a), b * 1.0), x, x)[0]


def masked_array(x):  # type: ignore[no-untyped-def]
    return total(for_(3, lambda i, a: where(a > 0.0, sqrt(a), a), spread(x, 2))[0])


CASES: dict[str, tuple[Program, float, list[float]]] = {
    "where in a branch": (
        lambda x: cond(x < 5.0, lambda y: where(y < 1.0, y, sqrt(y)), lambda y: log(y), x)[0], 0.0, ONE,
    ),
    "the branch taken does not read the root": (shared_root, 0.0, ONE),
    "where in a for": (lambda x: for_(3, lambda i, r: where(r < 1.0, r, sqrt(r)) * 2.0, x)[0], 0.0, EIGHT),
    "where in a while": (in_while, 0.0, EIGHT),
    "a loop of no trip reads the root": (no_trip_reads_root, 0.0, ONE),
    "a loop of no trip reads x": (lambda x: x + while_(lambda a: a > 0.0, lambda a: a - x, 0.0)[0], 0.0, ONE),
    "a loop of no trip reads two": (no_trip_reads_two, 0.0, ONE),
    "a for of no trip reads the root": (no_trip_of_for, 0.0, ONE),
    "where around a loop": (lambda x: where(x > 0.0, for_(3, lambda i, r: sqrt(r), x)[0], x), 0.0, ONE),
    "cond in a loop": (
        lambda x: for_(3, lambda i, r: cond(r > 1.0, sqrt, lambda a: a * 1.0, r)[0], x)[0], 0.0, ONE,
    ),
    "root of a constant under where": (
        lambda x: for_(3, lambda i, a: where(a > 5.0, a * sqrt(x), a + x), x)[0], 0.0, [4.0, 0.0, 0.0],
    ),
    "chosen away in each trip": (rescued_later, 0.0, ONE),
    "arrays": (masked_array, 0.0, [2.0, 0.0, 0.0]),
    "written over": (
        lambda x: at(for_(2, lambda i, a: put(a, i, x), spread(sqrt(x), 2))[0], 0), 0.0, ONE,
    ),
    "constant where it is clipped": (
        lambda x: for_(2, lambda i, r: sqrt(where(r > 0.0, r, 0.0)), x)[0], -1.0, NONE,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_structural_zeros_stay(name: str) -> None:
    program, x, expected = CASES[name]
    function = trace(program, F64)
    for order, value in enumerate(expected, start=1):
        for modes, nested in nestings(function, order):
            found = [interpreted(nested, np.float64(x))[0], compiled(nested)(np.float64(x))[0]]
            np.testing.assert_allclose(found, value, err_msg=f"{name} {modes}")


@pytest.mark.parametrize("name", CASES)
def test_structural_zeros_stay_on_xla(name: str) -> None:
    pytest.importorskip("jax")
    program, x, expected = CASES[name]
    for modes, nested in nestings(trace(program, F64), 1):
        np.testing.assert_allclose(compiled(nested, "xla")(np.float64(x))[0], expected[0], err_msg=f"{name} {modes}")


@pytest.mark.parametrize(
    "program",
    [
        lambda x: for_(1, lambda i, r: sqrt(r) * sqrt(r), x)[0],
        lambda x: cond(x < 1.0, lambda r: sqrt(r) * sqrt(r), lambda r: r, x)[0],
    ],
)
def test_numerical_nan_stays(program: Program) -> None:
    """No zero is invented: 0 * inf is nan in regions too."""
    for _, nested in nestings(trace(program, F64), 1):
        assert np.isnan(compiled(nested)(np.float64(0.0))[0])


@pytest.mark.parametrize("forward", [True, False])
def test_seeds_of_jacobians_are_masked(forward: bool) -> None:
    """[sqrt(x0), 3 x1] at x0 = 0, computed in a loop that writes one after the other."""

    def roots(x):  # type: ignore[no-untyped-def]
        def body(i, a):  # type: ignore[no-untyped-def]
            return put(a, i, where(apply("cast", i, dtype=x.dtype) > 0.5, at(x, i) * 3.0, sqrt(at(x, i))))

        return for_(2, body, x * 0.0)[0]

    matrix = jacobian(trace(roots, vector(2)), [True], [0], forward)
    for name in ("numpy", "xla"):
        if name == "xla":
            pytest.importorskip("jax")
        found = compiled(matrix, name)(np.array([0.0, 4.0]))[1]
        np.testing.assert_array_equal(found, [[np.inf, 0.0], [0.0, 3.0]])
