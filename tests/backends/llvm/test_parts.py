"""Sums of parts that were each written into zeros: gradients of functions of slices."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.backends.llvm.backend import BACKEND
from srcgrad.backends.llvm.expansions import written_out
from srcgrad.backends.llvm.parts import MOST, Part, is_apart
from srcgrad.backends.numpy.backend import BACKEND as NUMPY
from srcgrad.ir.core import Function, literal
from srcgrad.ir.opdef import Term
from srcgrad.ir.types import ArrayType
from tests.backends.llvm.support import OPS, build, normal

Slice = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
LAYOUTS: dict[str, tuple[tuple[int, ...], list[Slice]]] = {
    "columns": ((7, 2), [((0, 1), (7, 2), (1, 1)), ((0, 0), (7, 1), (1, 1))]),
    "three columns": ((7, 3), [((0, k), (7, k + 1), (1, 1)) for k in (2, 0, 1)]),
    "some columns": ((7, 4), [((0, k), (7, k + 1), (1, 1)) for k in (3, 1)]),
    "rows": ((3, 9), [((k, 0), (k + 1, 9), (1, 1)) for k in range(3)]),
    "ends": ((11,), [((0,), (4,), (1,)), ((4,), (11,), (1,))]),
    "a gap": ((11,), [((0,), (4,), (1,)), ((5,), (11,), (1,))]),
    "in turns": ((12,), [((1,), (12,), (2,)), ((0,), (11,), (2,))]),
    "in turns of three": ((2, 9, 2), [((0, k, 0), (2, k + 7, 2), (1, 3, 1)) for k in (1, 2, 0)]),
    "two of three turns": ((9,), [((k,), (k + 7,), (3,)) for k in (0, 2)]),
    "in turns of an odd number": ((13,), [((0,), (13,), (2,)), ((1,), (12,), (2,))]),
    "four quarters": ((4, 6), [((i, j), (i + 2, j + 3), (1, 1)) for i in (0, 2) for j in (0, 3)]),
    "chequered": ((4, 4), [((i, j), (i + 3, j + 3), (2, 2)) for i in (0, 1) for j in (0, 1)]),
}


def parts_of(shape: tuple[int, ...], slices: list[Slice], dtype: Any) -> list[np.ndarray[Any, Any]]:
    """Numbers for each part, zeros of both signs among them."""
    found = []
    for seed, (starts, limits, strides) in enumerate(slices):
        place = tuple(slice(*item) for item in zip(starts, limits, strides, strict=True))
        numbers = 4 * normal(*np.empty(shape)[place].shape, seed=seed)
        numbers.flat[::3] = -0.0 if seed % 2 else 0.0
        found.append(numbers.astype(dtype))
    return found


def summed(shape: tuple[int, ...], slices: list[Slice], given: list[np.ndarray[Any, Any]]) -> Function:
    def rule(*parts: Any) -> Any:
        total = None
        for part, (starts, limits, strides) in zip(parts, slices, strict=True):
            whole = zeros(part, shape)
            term = OPS["slice_set"](whole, part, starts=starts, limits=limits, strides=strides)
            total = term if total is None else total + term
        return total

    return build(rule, *given)


def zeros(like: Any, shape: tuple[int, ...]) -> Any:
    return Term(like.builder, literal(0, ArrayType(like.dtype, shape)))


def names(function: Function) -> Counter[str]:
    return Counter(operation.op.name for operation in written_out(function).walk())


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "i4"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_parts_that_do_not_overlap_are_put_together(layout: str, dtype: str) -> None:
    """Bit by bit what the sum is, zeros of both signs included."""
    shape, slices = LAYOUTS[layout]
    given = parts_of(shape, slices, dtype)
    function = summed(shape, slices, given)
    (found,), (wanted,) = BACKEND.compile(function).run(*given), NUMPY.compile(function).run(*given)
    assert found.tobytes() == wanted.tobytes()
    left = names(function)
    whole = layout in ("columns", "three columns", "rows", "ends", "in turns", "in turns of three")
    times = 2 if dtype == "c16" else 1  # of real and of imaginary parts
    assert left["concatenate"] == times * whole and left["slice_set"] == (0 if whole else times * len(slices))
    assert left["add"] == (times * len(slices) if dtype != "i4" else 0)  # of zeros


def written(slices: list[Slice], shape: tuple[int, ...], parts: Any, into: Any = None) -> Any:
    """Parts that are written one after the other."""
    whole = zeros(parts[0], shape) if into is None else into
    for part, (starts, limits, strides) in zip(parts, slices, strict=True):
        whole = OPS["slice_set"](whole, part, starts=starts, limits=limits, strides=strides)
    return whole


def require_same_bits(function: Function, given: list[np.ndarray[Any, Any]]) -> None:
    pairs = zip(BACKEND.compile(function).run(*given), NUMPY.compile(function).run(*given), strict=True)
    for found, wanted in pairs:
        assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "i4"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_parts_that_are_written_one_after_the_other(layout: str, dtype: str) -> None:
    """Bit by bit what they are: nothing is added to them."""
    shape, slices = LAYOUTS[layout]
    given = parts_of(shape, slices, dtype)
    function = build(lambda *parts: written(slices, shape, parts), *given)
    require_same_bits(function, given)
    left = names(function)
    whole = layout in ("columns", "three columns", "rows", "ends", "in turns", "in turns of three")
    assert left["concatenate"] == whole and left["slice_set"] == (0 if whole else len(slices))
    assert not left["add"]


def test_parts_of_which_one_is_written_over() -> None:
    slices: list[Slice] = [((0,), (6,), (1,)), ((6,), (11,), (1,)), ((5,), (7,), (1,))]
    given = parts_of((11,), slices, "f8")
    function = build(lambda *parts: written(slices, (11,), parts), *given)
    assert names(function) == Counter(concatenate=1, slice_set=1)
    require_same_bits(function, given)


def test_parts_that_are_written_into_sums() -> None:
    """What else is added to parts is written over."""
    slices: list[Slice] = [((0,), (4,), (1,)), ((4,), (7,), (1,)), ((7,), (11,), (1,))]
    given = [normal(11, seed=9), *parts_of((11,), slices, "f8")]

    def rule(x: Any, *parts: Any) -> Any:
        return written(slices[2:], (11,), parts[2:], into=x + written(slices[:2], (11,), parts[:2]))

    require_same_bits(build(rule, *given), given)

    def summed_too(x: Any, *parts: Any) -> Any:
        """Parts that were written, and parts of zeros that are added to these."""
        return written(slices[:2], (11,), parts[:2]) + written(slices[2:], (11,), parts[2:])

    require_same_bits(build(summed_too, *given), given)


def test_parts_that_overlap_are_added() -> None:
    slices: list[Slice] = [((0,), (9,), (1,)), ((2,), (11,), (1,))]
    given = parts_of((11,), slices, "f8")
    function = summed((11,), slices, given)
    assert names(function) == Counter(slice_set=2, add=1)
    (found,), (wanted,) = BACKEND.compile(function).run(*given), NUMPY.compile(function).run(*given)
    assert found.tobytes() == wanted.tobytes()


def test_a_sum_in_part_of_which_parts_overlap() -> None:
    slices: list[Slice] = [((0,), (4,), (1,)), ((4,), (11,), (1,)), ((3,), (5,), (1,))]
    given = parts_of((11,), slices, "f8")
    function = summed((11,), slices, given)
    assert names(function)["concatenate"] == 1
    (found,), (wanted,) = BACKEND.compile(function).run(*given), NUMPY.compile(function).run(*given)
    assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("shifts", [(1, -1), (2,), (1, 1, -3), (4, -4)])
@pytest.mark.parametrize("first", [True, False])
def test_sums_of_parts_and_of_others(shifts: tuple[int, ...], first: bool) -> None:
    """The gradient of ``np.roll``: two parts are all there is, and others that overlap these are added."""
    given = [normal(9, seed=1)]
    slices: list[Slice] = []
    for shift in shifts:
        k = shift % 9
        slices += [((0,), (k,), (1,)), ((k,), (9,), (1,))]
    given += parts_of((9,), slices, "f8")
    given[0][::2] = -0.0

    def rule(x: Any, *parts: Any) -> Any:
        total = x if first else None
        for part, (starts, limits, strides) in zip(parts, slices, strict=True):
            term = OPS["slice_set"](zeros(part, (9,)), part, starts=starts, limits=limits, strides=strides)
            total = term if total is None else total + term
        return total

    function = build(rule, *given)
    left = names(function)
    assert left["concatenate"] == len(shifts) and left["slice_set"] == 0
    (found,), (wanted,) = BACKEND.compile(function).run(*given), NUMPY.compile(function).run(*given)
    assert found.tobytes() == wanted.tobytes()


def test_many_parts_are_several_sums() -> None:
    """Each is compared with the others of its sum: for all of 1,000 that would be half a million times."""
    count = 2 * MOST + 5
    slices: list[Slice] = [((k,), (k + 1,), (1,)) for k in reversed(range(count))]
    given = parts_of((count,), slices, "f8")
    function = summed((count,), slices, given)
    left = names(function)
    assert left["slice_set"] == count and left["add"] < count + 5
    (found,), (wanted,) = BACKEND.compile(function).run(*given), NUMPY.compile(function).run(*given)
    assert found.tobytes() == wanted.tobytes()


def test_what_others_read_too_stays() -> None:
    def rule(a: Any, b: Any) -> Any:
        left = OPS["slice_set"](zeros(a, (8,)), a, starts=(0,), limits=(4,), strides=(1,))
        right = OPS["slice_set"](zeros(a, (8,)), b, starts=(4,), limits=(8,), strides=(1,))
        return left + right, left * 2.0

    a, b = normal(4), normal(4, seed=1)
    function = build(rule, a, b)
    assert names(function)["concatenate"] == 0
    for found, wanted in zip(BACKEND.compile(function).run(a, b), NUMPY.compile(function).run(a, b), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("a", "b", "apart"),
    [
        ((0, 4, 1), (4, 8, 1), True),
        ((0, 5, 1), (4, 8, 1), False),
        ((0, 9, 2), (1, 9, 2), True),
        ((0, 9, 2), (2, 9, 2), False),
        ((0, 9, 2), (1, 9, 3), False),
        ((0, 9, 2), (1, 9, 4), True),
        ((3, 5, 1), (0, 9, 4), False),
    ],
)
def test_which_parts_have_nothing_in_common(a: tuple[int, int, int], b: tuple[int, int, int], apart: bool) -> None:
    value = literal(0.0, ArrayType(np.dtype(np.float64), (1,)))
    pair = [Part(value, (start,), (limit,), (stride,)) for start, limit, stride in (a, b)]
    assert is_apart(*pair) == is_apart(*reversed(pair)) == apart
    assert not apart or set(range(*a)).isdisjoint(range(*b))


def spread(x: Any) -> Any:
    return np.sum(np.exp(-(x[:, 0] ** 2)) * x[:, 1] * np.sin(x[:, 2]))


def cross(x: Any) -> Any:
    return np.sum(np.cross(x, x[::-1]) ** 2)


def unpacked(x: Any) -> Any:
    a, b, c, *_ = x
    return np.sum(a * np.sin(b) / (2.0 + c**2))


def turns(x: Any) -> Any:
    return np.sum(x[::2] * np.exp(x[1::2]) + x[::2, 1:2])


@pytest.mark.parametrize("n", [6, 16, 50])
@pytest.mark.parametrize("f", [spread, cross, unpacked, turns])
def test_gradients_of_functions_of_slices(f: Any, n: int) -> None:
    x = normal(n, 3, seed=n)
    found, wanted = (sg.grad(f, backend=backend)(x) for backend in ("llvm", "numpy"))
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)
    u, v = normal(n, 3, seed=1), normal(n, 3, seed=2)
    both = [np.sum(a * sg.hvp(f, (x,), (b,))) for a, b in ((u, v), (v, u))]
    np.testing.assert_allclose(both[0], both[1], rtol=1e-9, atol=1e-10)


# --- constants of one number -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("number", [2.0, -1.5, 0.0, -0.0, np.inf, np.nan])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "c16", "?"])
def test_what_is_no_loop_reads_a_number_over_and_over(dtype: str, number: float) -> None:
    """As an array that a loop fills: as a constant it would be text of 20 bytes for each element."""
    if dtype in ("i4", "?") and not np.isfinite(number):
        pytest.skip("no such number")
    x = normal(7).astype(dtype)
    filled = literal(np.dtype(dtype).type(number), ArrayType(np.dtype(dtype), (20_000,)))

    def rule(x: Any) -> Any:
        return OPS["concatenate"](x, Term(x.builder, filled), axis=0)

    compiled = BACKEND.compile(build(rule, x))
    (found,) = compiled.run(x)
    assert found.tobytes() == np.concatenate([x, np.full(20_000, number).astype(dtype)]).tobytes()
    assert len(compiled.source) < 40_000 or dtype == "c16"
