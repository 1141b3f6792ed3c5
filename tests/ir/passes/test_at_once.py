"""Loops that become products of matrices, and those that do not because a trip needs what another one made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.backends.numpy.evaluate import evaluate
from srcgrad.ir.core import Function
from srcgrad.ir.parser import parse
from srcgrad.ir.passes import at_once
from srcgrad.ir.passes.at_once import trips_at_once
from tests.ir.passes.programs_of_loops import before_loops_are_seen

SIZE = 19
"""More than the trips that are written out."""


def optimised(function: Callable[..., Any], *args: Any) -> str:
    return sg.explain(sg.jit(function))(*args)["optimised ir"]


def matrices(count: int = 3) -> Any:
    return np.random.default_rng(0).normal(size=(count, SIZE, SIZE))


def same_without_loops(function: Function, given: Sequence[Any]) -> Sequence[Any]:
    """What a function gives without its loops, which is what it gives with them."""
    flat = trips_at_once(function)
    assert not any(operation.op.name == "for" for operation in flat.operations)
    results = evaluate(flat, given)
    for found, expected in zip(results, evaluate(function, given), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    return results


def of_rank_k(a: Any, b: Any, c: Any) -> Any:
    c = c.copy()
    for i in range(SIZE):
        c[i, : i + 1] *= 0.5
        for k in range(SIZE):
            c[i, : i + 1] += 2.0 * a[i, k] * b[: i + 1, k]
    return c


def of_rows(a: Any, b: Any, c: Any) -> Any:
    c = c.copy()
    for i in range(SIZE):
        c[i] = c[i] @ a
    return c


def of_numbers(a: Any, b: Any, c: Any) -> Any:
    c = c.copy()
    for i in range(SIZE):
        for j in range(SIZE):
            for k in range(SIZE):
                c[i, j] -= a[k, i] * b[j, k]
    return c


def of_two_sums(a: Any, b: Any, c: Any) -> Any:
    c = c.copy()
    for i in range(SIZE):
        for k in range(SIZE):
            c[i] += a[:, k] * b[i, k] - b[:, k] * a[i, k]
    return c


def of_a_vector(a: Any, b: Any, c: Any) -> Any:
    out = np.zeros(SIZE)
    for i in range(SIZE):
        for k in range(SIZE):
            out[i] += a[i, k] * b[0, k]
    return out


@pytest.mark.parametrize("function", [of_rank_k, of_rows, of_numbers, of_two_sums, of_a_vector])
def test_it_is_a_product(function: Callable[..., Any]) -> None:
    given = matrices()
    text = optimised(function, *given)
    assert "= for " not in text and "batch=[[],[]]" in text
    np.testing.assert_allclose(sg.jit(function)(*given), function(*given), rtol=1e-12, atol=1e-12)


def before_it(a: Any, b: Any, c: Any) -> Any:
    """A row of the one before."""
    c = c.copy()
    for i in range(SIZE - 1):
        for k in range(SIZE):
            c[i + 1] += a[i, k] * b[k] + c[i]
    return c


def mirrored(a: Any, b: Any, c: Any) -> Any:
    """Rows that other trips write, before or behind."""
    c = c.copy()
    for i in range(SIZE):
        c[i] = c[SIZE - 1 - i] @ a
    return c


def other_column(a: Any, b: Any, c: Any) -> Any:
    """Elements that another trip writes, by the other index."""
    c = c.copy()
    for i in range(SIZE):
        for k in range(SIZE):
            c[i, k] += a[i, k] * c[k, i]
    return c


def same_row_for_all(a: Any, b: Any, c: Any) -> Any:
    """A row that all trips scale."""
    c = c.copy()
    for i in range(SIZE):
        for k in range(SIZE):
            c[0] = c[0] * 0.5 + a[i, k] * b[k]
    return c


def in_between(a: Any, b: Any, c: Any) -> Any:
    """A sum that is read as it grows."""
    total, out = 0.0, np.zeros(SIZE)
    for k in range(SIZE):
        total = total + a[0, k] * b[k, 0]
        out[k] = total
    return out


def compensated(a: Any, b: Any, c: Any) -> Any:
    """Kahan's sum, which lives by its order."""
    total, lost = a[0, 0] * 0.0, a[0, 0] * 0.0
    for k in range(SIZE):
        term = a[0, k] * b[k, 0] - lost
        new = total + term
        lost = (new - total) - term
        total = new
    return np.array([total, lost])


def chosen_by_the_sum(a: Any, b: Any, c: Any) -> Any:
    """A branch on what was summed so far."""
    total = a[0, 0] * 0.0
    for k in range(SIZE):
        total = np.where(total > 0.3, total, total + a[0, k] * b[k, 0])
    return total


def same_number(a: Any, b: Any, c: Any) -> Any:
    """One number again and again: times their count it would be rounded otherwise."""
    total, product = 0.0 * a[0, 0], 0.0 * a[0, 0]
    for k in range(SIZE):
        total = total + a[0, 0]
        product = product + a[0, k] * b[k, 0]
    return np.array([total, product])


def stack(a: Any, b: Any, c: Any) -> Any:
    """A product for each trip, of its own matrices: none for all."""
    out = np.zeros(SIZE)
    for i in range(SIZE):
        out[i] = a[i] @ b[:, i]
    return out


def of_three(a: Any, b: Any, c: Any) -> Any:
    """What is multiplied last has an axis in common with what it is multiplied by."""
    out = np.zeros(SIZE)
    for k in range(SIZE):
        out += a[k] * c[k, 0] * b[k]
    return out


ORDERED = (
    before_it,
    mirrored,
    other_column,
    same_row_for_all,
    in_between,
    compensated,
    chosen_by_the_sum,
    same_number,
)


@pytest.mark.parametrize("function", [*ORDERED, stack, of_three])
def test_it_stays_a_loop(function: Callable[..., Any]) -> None:
    given = matrices()
    given[0] *= 0.1
    assert "= for " in optimised(function, *given)
    np.testing.assert_allclose(sg.jit(function)(*given), function(*given), rtol=1e-11, atol=1e-11)


def test_arrays_of_all_trips_are_not_much_larger_than_those_of_one() -> None:
    def largest(x: Any, y: Any) -> Any:
        total = np.zeros(())
        for i in range(200):
            for j in range(200):
                total = total + np.sin(x[i] * y[j]) + x[i] * y[j]
        return total

    x, y = np.random.default_rng(0).normal(size=(2, 200))
    assert "= for " in optimised(largest, x, y)


def test_half_numbers_are_added_in_order() -> None:
    given = matrices().astype(np.float16)
    assert "= for " in optimised(of_numbers, *given)


def test_an_index_that_may_be_outside_raises_in_its_trip() -> None:
    def picked(a: Any, b: Any, where: Any) -> Any:
        c = np.zeros((SIZE, SIZE))
        for i in range(SIZE):
            for k in range(SIZE):
                c[i] += a[i, where[k]] * b[k]
        return c

    a, b = matrices(2)
    where = np.arange(SIZE)[::-1].copy()
    np.testing.assert_allclose(sg.jit(picked)(a, b, where), a[:, ::-1] @ b, rtol=1e-12, atol=1e-12)
    where[3] = SIZE
    with pytest.raises(IndexError):
        sg.jit(picked)(a, b, where)


def test_what_is_added_to_may_be_a_column_of_the_loop() -> None:
    """Then it is read in each trip for that, not just for the sum."""
    function = parse("""func @f(%x: f64[4,3], %w: f64[20], %y: f64[20]) -> (f64[4,3], f64[20,1,3]) {
      %0: f64[4,3], %1: f64[20,1,3] = for %x, %w, %y {trips=20, carries=1, consts=0, reverse=false}
        body (%k: i64[], %s: f64[4,3], %w: f64[], %y: f64[]) {
          %0: f64[1,3] = slice %s {starts=[1,0], limits=[2,3], strides=[1,1]}
          %1: f64[3] = reshape %0 {shape=[3]}
          %2: f64[] = mul %w, %y
          %3: f64[3] = broadcast %2 {shape=[3], dims=[]}
          %4: f64[3] = add %1, %3
          %5: f64[1,3] = reshape %4 {shape=[1,3]}
          %6: f64[4,3] = slice_set %s, %5 {starts=[1,0], limits=[2,3], strides=[1,1]}
          yield %6, %0
        }
      return %0, %1
    }""")
    random = np.random.default_rng(0)
    given = [random.normal(size=size) for size in ((4, 3), 20, 20)]
    for found, expected in zip(evaluate(trips_at_once(function), given), evaluate(function, given), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_where_masks_of_trips_hold() -> None:
    """An element to which no trip adds stays what it is, and what trips do not add is not looked at."""
    function = parse("""func @f(%x: f64[6], %m: bool[20,6], %y: f64[20,6], %a: f64[20]) -> (f64[6], f64[]) {
      %0: f64[6], %1: f64[] = for %x, 0.0, %m, %y, %a, %a {trips=20, carries=2, consts=0, reverse=true}
        body (%k: i64[], %s: f64[6], %t: f64[], %m: bool[6], %y: f64[6], %a: f64[], %b: f64[]) {
          %0: f64[6] = add %y, %s
          %1: f64[6] = select %m, %0, %s
          %2: f64[] = mul %a, %b
          %3: f64[] = add %2, %t
          yield %1, %3
        }
      return %0, %1
    }""")
    random = np.random.default_rng(0)
    mask = random.random((20, 6)) < 0.4
    mask[:, 0] = False
    y = np.where(mask, random.normal(size=(20, 6)), np.nan)
    x, a = random.normal(size=6), random.normal(size=20)
    x[0] = -0.0
    found = same_without_loops(function, [x, mask, y, a])
    assert np.signbit(found[0][0])


def test_what_the_last_trip_leaves() -> None:
    """Of a carry that no trip reads, and in the order of the trips."""
    for reverse in ("true", "false"):
        function = parse(f"""func @f(%x: f64[], %a: f64[20], %b: f64[20]) -> (f64[], f64[], f64[20]) {{
          %0: f64[], %1: f64[], %2: f64[20] = for %x, 0.0, %a, %b {{trips=20, carries=2, consts=0, reverse={reverse}}}
            body (%k: i64[], %s: f64[], %t: f64[], %a: f64[], %b: f64[]) {{
              %0: f64[] = exp %a
              %1: f64[] = mul %a, %b
              %2: f64[] = sub %t, %1
              yield %0, %2, %b
            }}
          return %0, %1, %2
        }}""")
        random = np.random.default_rng(0)
        same_without_loops(function, [0.0, *random.normal(size=(2, 20))])


def test_a_row_to_which_all_trips_add_is_read_by_the_last() -> None:
    """By an index that is another one in each trip."""
    function = parse("""func @f(%c: f64[20,3], %a: f64[20], %b: f64[20,3], %w: f64[3,3]) -> (f64[20,3], f64[20,3]) {
      %0: f64[20,3], %1: f64[20,3] = for %c, %w, %a, %b {trips=20, carries=1, consts=1, reverse=true}
        body (%k: i64[], %c: f64[20,3], %w: f64[3,3], %a: f64[], %b: f64[3]) {
          %0: f64[3] = gather %c, %k {axis=0}
          %1: f64[3] = dot_general %0, %w {contract=[[0],[0]], batch=[[],[]]}
          %2: f64[3] = gather %c, 0 {axis=0}
          %3: f64[3] = broadcast %a {shape=[3], dims=[]}
          %4: f64[3] = mul %3, %b
          %5: f64[3] = add %2, %4
          %6: f64[20,3] = scatter_set %c, %5, 0 {axis=0}
          yield %6, %1
        }
      return %0, %1
    }""")
    random = np.random.default_rng(0)
    given = [random.normal(size=size) for size in ((20, 3), 20, (20, 3), (3, 3))]
    for found, expected in zip(evaluate(trips_at_once(function), given), evaluate(function, given), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def of_rows_below(a: Any, b: Any, c: Any) -> Any:
    """Rank-k updates of a triangle (`syrk`)."""
    c = c.copy()
    for i in range(SIZE):
        c[i, : i + 1] *= 0.5
        for k in range(SIZE):
            c[i, : i + 1] += 0.7 * a[i, k] * a[: i + 1, k]
    return c


def of_two_rows_below(a: Any, b: Any, c: Any) -> Any:
    """The same of two matrices, with a number that is multiplied last in the derivative (`syr2k`)."""
    c, alpha = c.copy(), b[0, 0]
    for i in range(SIZE):
        for k in range(SIZE):
            c[i, : i + 1] += a[: i + 1, k] * alpha * b[i, k] + b[: i + 1, k] * alpha * a[i, k]
    return c


def of_symmetric_half(a: Any, b: Any, c: Any) -> Any:
    """Columns to which all later rows add, and sums over those before (`symm`)."""
    c, sums = c.copy(), np.empty(SIZE)
    for i in range(SIZE):
        for j in range(SIZE):
            c[:i, j] += b[i, j] * a[i, :i]
            sums[j] = b[:i, j] @ a[i, :i]
        c[i, :] += b[i, :] * a[i, i] + sums
    return c


def of_parts_of_rows(a: Any, b: Any, c: Any) -> Any:
    """What a mask leaves out is taken away, from rows and from all of them."""
    c = c.copy()
    for i in range(SIZE):
        for k in range(SIZE):
            c[i] = np.where(a[0] > 0, c[i] - b[i, k] * a[k], c[i])
    return c


def of_all_rows(a: Any, b: Any, c: Any) -> Any:
    """Each row of a product, in turn (`doitgen`)."""
    c = c.copy()
    for r in range(SIZE):
        c[r, :] = c[r, :] @ a
    return c


@cache
def traced(function: Callable[..., Any], argnums: Any) -> Function:
    return before_loops_are_seen(function, matrices(), argnums)


@pytest.mark.parametrize(
    ("function", "argnums"),
    [
        (of_rows_below, (0, 2)),
        (of_two_rows_below, (0, 2)),
        (of_symmetric_half, None),
        (of_symmetric_half, (0, 1, 2)),
        (of_parts_of_rows, (0, 1)),
        (of_all_rows, (0, 2)),
    ],
)
def test_products_under_masks_are_those_of_the_loop(
    function: Callable[..., Any], argnums: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a factor that a mask leaves out is not finite, and then the loop runs: 0 times inf is nan."""
    monkeypatch.setattr(at_once, "SMALL", 2 * SIZE * SIZE)
    given = matrices()
    program = traced(function, argnums)
    flat = trips_at_once(program)
    assert not any(operation.op.name == "for" for operation in flat.operations)
    random = np.random.default_rng(1)
    for special in (None, np.inf, -np.inf, np.nan):
        for _ in range(4):
            arrays = [np.array(each) for each in given]
            for array in arrays:
                if special is not None:
                    array[tuple(random.integers(SIZE, size=2))] = special
                    array[tuple(random.integers(SIZE, size=2))] = 0.0
            for found, expected in zip(evaluate(flat, arrays), evaluate(program, arrays), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("scale", [np.inf, 1e-180, 0.0])
def test_sums_that_are_multiplied_afterwards_are_those_of_the_loop(
    scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A number that each product is multiplied by may be infinite, or keep products finite whose sums are not."""
    monkeypatch.setattr(at_once, "SMALL", 2 * SIZE * SIZE)
    a, b, c = matrices()
    program = traced(of_two_rows_below, (0, 2))
    flat = trips_at_once(program)
    assert not any(operation.op.name == "for" for operation in flat.operations)
    a, b, c = (1e160 * each if scale == 1e-180 else each.copy() for each in (a, b, c))
    b[0, 0] = scale
    for found, expected in zip(evaluate(flat, [a, b, c]), evaluate(program, [a, b, c]), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


def test_a_gradient_of_products_under_masks_is_one_of_products() -> None:
    """Loops are there for what is not finite alone, and both modes agree."""
    given = matrices()
    text = sg.explain(sg.grad(lambda a, c: np.sum(of_rows_below(a, a, c) ** 2)))(given[0], given[2])["optimised ir"]
    sg.testing.check_grads(of_rows_below, tuple(given), order=2, modes=("fwd", "rev"))
    assert "is_finite" in text


def of_three_matrices(a: Any, b: Any, c: Any) -> Any:
    first, second = np.zeros((SIZE, SIZE)), np.zeros((SIZE, SIZE))
    for i in range(SIZE):
        for j in range(SIZE):
            for k in range(SIZE):
                first[i, j] += a[i, k] * b[k, j]
    for i in range(SIZE):
        for j in range(SIZE):
            second[i, j] = 0.0
            for k in range(SIZE):
                second[i, j] += first[i, k] * c[k, j]
    return np.sum(np.sin(second))


def test_gradients_of_products_of_products_are_products() -> None:
    """The masks of the adjoint in the middle are True, which the loops that read them see before they are looked at."""
    given = matrices()
    text = sg.explain(sg.grad(of_three_matrices, argnums=(0, 1, 2)))(*given)["optimised ir"]
    assert "= for " not in text and text.count("= dot_general") == 6

    def product(a: Any, b: Any, c: Any) -> Any:  # differences of the loops themselves would take a minute
        return np.sum(np.sin(a @ b @ c))

    np.testing.assert_allclose(of_three_matrices(*given), product(*given), rtol=1e-12)
    for mode in (sg.grad, sg.jacfwd):
        slopes, expected = (mode(f, (0, 1, 2))(*given) for f in (of_three_matrices, product))
        np.testing.assert_allclose(np.array(slopes), np.array(expected), rtol=1e-9, atol=1e-11)
