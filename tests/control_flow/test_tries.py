"""``try`` around what fails where values say so: one program, with Python's values and derivatives on every backend."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import srcgrad as sg
from srcgrad.errors import ArgumentError

Function = Callable[[Any], Any]
VECTORS = tuple(map(np.array, ([0.53, 1.57], [-0.52, 1.27], [1.2, -0.3], [1.3, 2.7], [-1.3, -2.7])))
MATRICES = tuple(map(np.array, ([[2.0, 0.5], [0.5, 1.0]], [[1.0, 2.0], [2.0, 1.0]], [[1.0, 2.0], [3.0, 4.0]])))
SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])


class OutOfRange(Exception):
    """An error of the user's."""


def root(v: Any) -> Any:
    if v < 0:
        raise OutOfRange(f"{v} is negative")
    return np.sqrt(v)


def cholesky(a: Any) -> Any:
    try:
        factor = np.linalg.cholesky((a + a.T) / 2)
    except np.linalg.LinAlgError:
        factor = np.linalg.cholesky(a @ a.T + np.eye(2))
    return np.sum(factor**3)


def solve(a: Any) -> Any:
    try:
        y = np.linalg.solve(a, np.array([1.0, 2.0]))
    except np.linalg.LinAlgError:
        y = a[0] * 2
    else:
        y = y * 3
    finally:
        z = np.sum(a)
    return np.sum(y**2) * z


def inverse(a: Any) -> Any:
    try:
        return np.sum(np.linalg.inv(a))
    except np.linalg.LinAlgError:
        return np.sum(a * a)


def triangular(a: Any) -> Any:
    try:
        return np.sum(scipy.linalg.solve_triangular(a, np.ones(2)))
    except np.linalg.LinAlgError as error:
        return a[0, 1] ** len(error.args)


def raised_by_a_helper(x: Any) -> Any:
    try:
        y = root(x[0]) + root(x[1])
    except OutOfRange:
        y = x[0] * x[1]
    return y * x[0]


def nested(x: Any) -> Any:
    out = 1.0
    try:
        try:
            out = out * root(x[0])
            if x[1] > 0:
                if x[1] > 2:
                    raise ValueError("big", x[1])
                out = out + x[1]
        except OutOfRange:
            out = x[1] * 3
            raise ValueError("again") from None
        finally:
            out = out + 1.0
    except ValueError:
        out = out * x[0]
    return out * x[1]


def raised_once_more(x: Any) -> Any:
    try:
        try:
            return root(x[0]) * x[1]
        except OutOfRange:
            raise
    except (ValueError, OutOfRange):
        return x[1] ** 3


def index(x: Any) -> Any:
    k = int(x[0] * 2)
    try:
        return x[k] * 2 + x[1]
    except IndexError:
        return x[0] ** 2


def index_of_a_list(x: Any) -> Any:
    try:
        return [1.0, x[0], 5.0][int(x[1] * 2)] * x[1]
    except IndexError:
        return -x[0]


def written_place(x: Any) -> Any:
    y = x * 1.0
    try:
        y[0] = y[0] * 3
        y[int(x[1])] = x[1] ** 2
    except IndexError:
        y[1] = x[0] * 4
    return np.sum(y * x)


def key(x: Any) -> Any:
    try:
        return {0: x[0], 1: x[1]}[int(x[1] + 1)] ** 2
    except KeyError:
        return x[0] * 5


def math_domain(x: Any) -> Any:
    try:
        return math.sqrt(x[0]) + math.log(x[1])
    except ValueError:
        return x[0] * x[1]


def asserted(x: Any) -> Any:
    total = 0.0
    for v in x:
        try:
            check_positive(v)
            total += v**2
        except AssertionError:
            total -= v
            continue
        total *= 2.0
    return total


def check_positive(v: Any) -> None:
    if not v > 0:
        raise AssertionError


def in_a_loop(x: Any) -> Any:
    y, misses = x[0], 0
    for k in range(50):
        try:
            y = y + 0.1 * root(x[1] - 0.1003 * k)
        except OutOfRange:
            misses += 1
            y = y * 0.99
            if misses > 30:
                break
    return y * misses


def loop_inside(x: Any) -> Any:
    total = 0.0
    try:
        for v in x:
            total = total + root(v) * v
    except OutOfRange:
        total = total * 2 + x[0]
    return total


def what_was_done_before(x: Any) -> Any:
    done, y = [], x.copy()
    try:
        y[0] = 5.0
        done.append(1)
        y[1] = root(x[1])
        done[0] = 2
    except OutOfRange:
        y[1] = y[0] * x[0]
        done[0] += 6
    return np.sum(y * x) * done[-1]


def bare_except(x: Any) -> Any:
    try:
        y = root(x[0])
    except:  # noqa: E722
        y = x[1]
    return y**2


# --- errors that Python raises while a branch is traced: they are the branch's, which may not be taken ---------------


def returned_before(x: Any) -> Any:
    try:
        if x[0] > 0:
            return x[0] * 3
        y = [x[1]][7]
    except IndexError:
        y = x[1] * 2
    return y**2


def missing_key_in_one_branch(x: Any) -> Any:
    known: dict[str, Any] = {}
    try:
        if x[0] > 0:
            y = x[0] * 3
            y = y + 1
        else:
            y = known["y"]
    except KeyError:
        y = x[1]
    return y**2


def wrong_shape_after_a_write(x: Any) -> Any:
    y = np.zeros(3)
    try:
        y[0] = x[0]
        if x[0] > 0:
            y[1] = x[1]
            x.reshape(7)
        y[2] = x[1]
    except ValueError:
        y = y * 2
    return np.sum(y**2 * np.arange(1.0, 4.0))


def division_in_an_expression(x: Any) -> Any:
    try:
        y = x[0] if x[0] > 0 else x[1] * (1 // len(""))
    except ZeroDivisionError:
        y = x[1]
    return y**2


def behind_and(x: Any) -> Any:
    known: dict[str, float] = {}
    y = x[1]
    try:
        if x[0] > 0 and known["limit"] > 0:
            y = x[0]
    except KeyError:
        y = x[0] * 5
    return y**2


def continued(x: Any) -> Any:
    known: dict[str, float] = {}
    y = 1.0
    for k in range(2):
        try:
            if x[k] > 1:
                y = y + [0.5][1]
            if x[k] > 0:
                continue
            y = y + x[k] * known["y"]
        except LookupError as error:
            y = y * x[k] if isinstance(error, KeyError) else y + x[k] ** 2
    return y


def in_a_trip(x: Any) -> Any:
    known: dict[str, float] = {}
    y = x[0]
    try:
        for k in range(20):
            y = y + x[1] ** 2
            if k > 15 and y > 9:
                y = y * known["y"]
    except KeyError:
        y = y * x[0]
    return y


def taken_by_the_outer(x: Any) -> Any:
    known: dict[str, Any] = {}
    y = x[1]
    try:
        try:
            if x[0] > 0:
                y = known["y"]
            y = y * 2
        except IndexError:
            y = x[0]
    except KeyError:
        y = y * x[0]
    return y**2


WITHOUT_SOURCE = """
def hidden(a):
    try:
        return np.sum(np.linalg.inv(a))
    except np.linalg.LinAlgError:
        return a[0, 0] * 7
"""
CASES: dict[Function, tuple[Any, ...]] = {
    **dict.fromkeys((cholesky, solve, inverse), MATRICES),
    triangular: (np.array([[1.0, 2.0], [0.0, 3.0]]),),
    **dict.fromkeys(
        (
            *(raised_by_a_helper, nested, raised_once_more, index, index_of_a_list, written_place, key, math_domain),
            *(asserted, in_a_loop, loop_inside, what_was_done_before, bare_except),
            *(returned_before, missing_key_in_one_branch, wrong_shape_after_a_write, division_in_an_expression),
            *(behind_and, continued, in_a_trip, taken_by_the_outer),
        ),
        VECTORS,
    ),
}


def differences(function: Function, x: Any) -> Any:
    found = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[place] = 1e-6
        found[place] = (function(x + step) - function(x - step)) / 2e-6
    return found


@pytest.mark.parametrize("backend", ["numpy", "xla"])
@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_a_try_is_one_program(function: Function, backend: str) -> None:
    run, slope = sg.jit(function, strict=True, backend=backend), sg.grad(function, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        for x in CASES[function]:
            np.testing.assert_allclose(run(x.copy()), function(x.copy()), rtol=1e-12)
            np.testing.assert_allclose(slope(x.copy()), differences(function, x), rtol=2e-5, atol=1e-6)
            tangent = np.arange(1.0, 1.0 + x.size).reshape(x.shape)
            moved = sg.jvp(function, (x,), (tangent,))[1]
            np.testing.assert_allclose(moved, np.sum(tangent * differences(function, x)), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("backend", ["numpy", "xla"])
@pytest.mark.parametrize(
    ("function", "expected"),
    [(solve, 9 * 20.0), (inverse, 25.0), (triangular, 2.0)],
    ids=["solve", "inverse", "triangular"],
)
def test_a_singular_matrix_takes_the_handler(function: Function, expected: float, backend: str) -> None:
    matrix = SINGULAR if function is not triangular else np.array([[1.0, 2.0], [0.0, 0.0]])
    assert sg.jit(function, strict=True, backend=backend)(matrix) == expected
    assert np.isfinite(sg.grad(function, backend=backend)(matrix)).all()


@pytest.mark.parametrize("backend", ["numpy", "xla"])
@pytest.mark.parametrize("function", [cholesky, solve, inverse], ids=lambda f: f.__name__)
def test_of_examples_each_takes_its_own_way(function: Function, backend: str) -> None:
    stack = np.stack([*MATRICES, SINGULAR])
    found = sg.vmap(function, backend=backend)(stack)
    np.testing.assert_allclose(found, [function(matrix) for matrix in stack], rtol=1e-12, atol=1e-15)
    slopes = sg.vmap(sg.grad(function), backend=backend)(stack)
    np.testing.assert_allclose(slopes, [sg.grad(function)(matrix) for matrix in stack], rtol=1e-10)


@pytest.mark.parametrize("backend", ["numpy", "xla"])
def test_an_error_that_no_handler_takes_is_raised(backend: str) -> None:
    def f(x: float) -> float:
        try:
            if x < 0:
                raise OutOfRange("below")
            y = x * 2
        except ValueError:
            y = x
        return y

    run = sg.jit(f, strict=True, backend=backend)
    assert run(2.0) == 4.0
    with pytest.raises(OutOfRange, match="below"):
        run(-2.0)


def test_second_order_goes_through_a_try() -> None:
    for x in VECTORS:
        expected = [differences(lambda v, k=k: sg.grad(nested)(v)[k], x) for k in range(2)]
        np.testing.assert_allclose(sg.hessian(nested)(x), expected, rtol=1e-4, atol=1e-6)


def test_what_cannot_be_one_program_is_right_all_the_same() -> None:
    """A ``try`` that prints before it may fail, one without source, one around a loop whose end is traced."""

    def prints(x: float) -> Any:
        try:
            print("tried")
            return root(x) * x
        except OutOfRange:
            return x

    def long(x: float) -> Any:
        y = x
        try:
            while y < 100.0:
                y = y * 2 + root(y) * 0.0
        except OutOfRange:
            y = x * 3
        return y

    names: dict[str, Any] = {"np": np}
    exec(WITHOUT_SOURCE, names)
    matrices = (MATRICES[0], SINGULAR)
    for function, points in ((prints, (2.0, -1.0)), (long, (2.0, -1.0)), (names["hidden"], matrices)):
        for backend in ("numpy", "xla"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", sg.RetraceWarning)
                for x in points:
                    np.testing.assert_allclose(sg.value_and_grad(function, backend=backend)(x)[0], function(x))
        with pytest.raises(ArgumentError, match="cannot be one program"):
            sg.jit(function, strict=True)(points[0])


def test_an_error_in_a_loop_that_may_make_no_trip_is_not_the_try_s() -> None:
    known: dict[str, float] = {}

    def waits(x: float) -> Any:
        y = x
        try:
            while y > 1.0:
                y = y * known["y"]
        except KeyError:
            y = x * 3
        return y

    def counts(x: float) -> Any:
        y = x
        try:
            for _ in range(int(x)):
                y = y * known["y"]
        except KeyError:
            y = x * 3
        return y

    for function in (waits, counts):
        for x in (0.5, 2.5, -1.0):
            assert sg.value_and_grad(function)(x) == (function(x), 3.0 if x > 1 else 1.0)


class Half:
    """An object with a property that fails on a condition."""

    def __init__(self, x: float) -> None:
        self.x = x

    @property
    def doubled(self) -> Any:
        if self.x > 1.0:
            return self.missing  # type: ignore[attr-defined]
        return self.x * 2


def test_an_error_of_a_branch_that_other_code_takes_as_a_default() -> None:
    """``getattr`` with a default took it whatever the condition."""

    def with_default(x: float) -> Any:
        return getattr(Half(x), "doubled", x)

    for x in (0.5, 2.5):
        assert sg.value_and_grad(with_default)(x) == (with_default(x), 1.0 if x > 1 else 2.0)


def test_an_error_of_a_branch_that_other_code_than_a_try_takes() -> None:
    def suppressed(x: float) -> Any:
        known: dict[str, float] = {}
        y = x
        with contextlib.suppress(KeyError):
            if x > 1.0:
                y = known["y"]
            y = y * 2
        return y

    for x in (0.5, 2.5):
        assert sg.value_and_grad(suppressed)(x) == (suppressed(x), 1.0 if x > 1 else 2.0)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_a_block_may_write_before_it_raises_what_nothing_handles(backend: str) -> None:
    """One program: where the error is raised it ends, and under `jit` the caller's array is as Python leaves it."""

    def f(x: Any) -> Any:
        y = x * 1.0
        for k in range(3):
            if x[0] > k + 1:
                y[0] = 3.0 * y[0]
                x[1] = 7.0
                if x[2] > 0:
                    raise ValueError("no")
            y[k] *= x[k]
        return np.sum(y * y)

    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        run, slope = sg.jit(f, backend=backend), sg.grad(f, backend=backend)
        for start in ([0.5, 1.0, 2.0], [2.5, 1.0, -2.0], [2.5, 1.0, 2.0]):
            x, seen = np.array(start), np.array(start)
            if start[0] > 1 and start[2] > 0:
                for call in (run, f):
                    with pytest.raises(ValueError, match="no"):
                        call(x if call is run else seen)
                with pytest.raises(ValueError, match="no"):
                    slope(np.array(start))
            else:
                np.testing.assert_allclose(run(x), f(seen), rtol=1e-14)
                step = 1e-6 * np.array([1.0, 0.5, -0.3])
                difference = (f(np.array(start) + step) - f(np.array(start) - step)) / 2
                np.testing.assert_allclose(slope(np.array(start)) @ step, difference, rtol=1e-6)
            np.testing.assert_array_equal(x, seen)
