"""Checks, errors of linear algebra and indexing, and host calls: what they raise, when, and in which order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

from srcgrad.backends.numpy.backend import BACKEND as NUMPY
from srcgrad.backends.xla import callbacks
from srcgrad.backends.xla.backend import Compiled
from srcgrad.backends.xla.lowering import lower
from srcgrad.ir.core import Function
from srcgrad.ir.errors import BackendError
from tests.backends.xla.support import compiled, one_op, program


def raised(run: Callable[..., Any], arguments: list[Any]) -> BaseException | None:
    try:
        run(*arguments)
    except Exception as error:
        return error
    return None


def require_same_error(function: Function, *arguments: Any, sites: Any = None) -> None:
    """Both backends raise the same error, from ``run`` and from ``run_device``."""
    given = [np.asarray(argument)[()] for argument in arguments]
    expected = raised(NUMPY.compile(function, sites).run, given)
    assert expected is not None
    executable = compiled(function, sites)
    for run in (executable.run, executable.run_device):
        found = raised(run, given)
        assert type(found) is type(expected)
        assert str(found) == str(expected)


TWO_CHECKS = program(
    """
func @checked(%x: f64[2]) -> (f64[2]) {
  %a: bool[2] = greater %x, 0.0:f64[2]
  check %a {message="x must be positive {x}", kind="ValueError"}
  %b: bool[2] = less %x, 1.0:f64[2]
  check %b {message="x must be small", kind="ZeroDivisionError"}
  %c: f64[2] = log %x
  return %c
}
"""
)


@pytest.mark.parametrize("x", [[0.5, -1.0], [0.5, 2.0], [-1.0, 2.0]])
def test_the_first_check_that_fails_is_raised(x: list[float]) -> None:
    require_same_error(TWO_CHECKS, np.array(x))


def test_checks_that_hold_change_nothing() -> None:
    x = np.array([0.25, 0.5])
    (found,) = compiled(TWO_CHECKS).run(x)
    np.testing.assert_allclose(found, np.log(x), rtol=1e-15)


def test_a_check_alone_is_a_program() -> None:
    function = program('func @f(%x: bool[]) -> () {\n  check %x {message="no", kind="AssertionError"}\n  return\n}')
    assert compiled(function).run(np.bool_(True)) == ()
    require_same_error(function, np.bool_(False))


CHECK_BEFORE_LOOPS = program(
    """
func @f(%x: f64[]) -> (f64[]) {
  %ok: bool[] = less %x, 0.0
  check %ok {message="x must be negative", kind="ValueError"}
  %last: f64[], %outer: i64[] = while %x {carries=1}
    condition (%c: f64[]) {
      %more: bool[] = less %c, 3.0
      yield %more
    }
    body (%c: f64[]) {
      %far: f64[], %inner: i64[], %tape: tape<f64[]> = while %c {carries=1}
        condition (%d: f64[]) {
          %more: bool[] = less %d, 1000.0
          yield %more
        }
        body (%d: f64[]) {
          %next: f64[] = add %d, 1.0
          yield %next, %d
        }
      yield %far
    }
  return %last
}
"""
)


def test_no_loop_goes_on_after_a_check_has_failed() -> None:
    """One that waits for a number which only comes where nothing has failed made trips for ever."""
    lowered = lower(CHECK_BEFORE_LOOPS, None, checks=True)
    run = Compiled(lowered, ()).unpacked
    with pytest.raises(ValueError, match="must be negative"):
        run(np.float64(0.0))
    (room,) = lowered.capacities.values()
    assert room < 1000
    (found,) = run(np.float64(-1.0))
    assert np.asarray(found) == 1000.0
    (room,) = lowered.capacities.values()
    assert room >= 1000


INDEX_CASES = [
    ("gather", (np.ones((3, 2)), np.array([0, 3, 7])), {"axis": 0}),
    ("gather", (np.ones((3, 2)), np.array([0, -3, 1])), {"axis": 1}),
    ("gather", (np.ones((3, 2)), np.array([0, 1]), np.array([1, -5])), {"axis": 0}),
    ("gather", (np.ones((3, 2)), np.array([0, 200], np.uint8)), {"axis": 0}),
    ("gather", (np.ones((0, 2)), np.array([0])), {"axis": 0}),
    ("scatter_add", (np.ones(3), np.ones(2), np.array([-4, 0])), {"axis": 0}),
    ("scatter_set", (np.ones(3), np.ones(2), np.array([1, 3])), {"axis": 0}),
    ("take_along_axis", (np.ones((3, 2)), np.array([[1, 3]])), {"axis": 0}),
    ("add_along_axis", (np.ones((2, 2)), np.array([[1, 0], [-4, 0]])), {"axis": 1, "size": 3}),
]


@pytest.mark.parametrize(("name", "operands", "attrs"), INDEX_CASES)
def test_indices_out_of_bounds(name: str, operands: tuple[Any, ...], attrs: dict[str, Any]) -> None:
    require_same_error(one_op(name, *operands, **attrs), *operands)


@pytest.mark.parametrize("name", ["pow", "integer_pow"])
def test_negative_powers_of_integers(name: str) -> None:
    x = np.array([2, 3])
    if name == "pow":
        require_same_error(one_op("pow", x, x), x, np.array([1, -1]))
    else:
        require_same_error(one_op("integer_pow", x, y=-1), x)


SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])
TRIANGLES = np.array([[[1.0, 0.0], [2.0, 3.0]], [[2.0, 0.0], [2.0, 0.0]]])


@pytest.mark.parametrize(
    ("name", "operands", "attrs"),
    [
        ("cholesky", (-np.eye(2),), {}),
        ("cholesky", (np.stack([np.eye(3), np.diag([1.0, 0.0, 1.0])]),), {}),
        ("cholesky", (np.array([[1.0, 2j], [-2j, 1.0]]),), {}),
        ("solve", (SINGULAR, np.ones((2, 1))), {}),
        ("solve", (np.zeros((2, 3, 3), np.float32), np.ones((2, 3, 2), np.float32)), {}),
        ("triangular_solve", (TRIANGLES[1], np.ones((2, 1))), {"lower": True, "trans": "N", "unit": False}),
        ("triangular_solve", (TRIANGLES, np.ones((2, 2, 1))), {"lower": True, "trans": "T", "unit": False}),
    ],
)
def test_linear_algebra_errors(name: str, operands: tuple[Any, ...], attrs: dict[str, Any]) -> None:
    require_same_error(one_op(name, *operands, **attrs), *operands)


def test_a_matrix_with_nan_is_no_error() -> None:
    x = np.array([[4.0, 7.0], [2.0, np.nan]])
    (found,) = compiled(one_op("cholesky", x)).run(x)
    assert np.isnan(found[1, 1]) and np.isnan(np.linalg.cholesky(x)[1, 1])


def test_a_unit_triangle_has_no_zero_on_its_diagonal() -> None:
    function = one_op("triangular_solve", TRIANGLES, np.ones((2, 2, 1)), lower=True, trans="N", unit=True)
    (found,) = compiled(function).run(TRIANGLES, np.ones((2, 2, 1)))
    np.testing.assert_array_equal(found[:, :, 0], [[1.0, -1.0], [1.0, -1.0]])


# --- host calls ---------------------------------------------------------------------------------------

CALLS = program(
    """
func @calls(%x: f64[2], %n: i64[]) -> (f64[2]) {
  %a: f64[2] = host_call %x, %n {site=0, results=[f64[2]]}
  %b: bool[2] = greater %a, 0.0:f64[2]
  check %b {message="negative", kind="ValueError"}
  host_call %a {site=1, results=[]}
  %c: f64[2] = host_call %a {site=0, results=[f64[2]]}
  return %c
}
"""
)
LARGE_INT = np.int64(2**40 + 1)


def recording() -> tuple[list[str], tuple[Callable[..., Any], ...]]:
    seen: list[str] = []

    def first(x: Any, n: Any = None) -> Any:
        seen.append(f"first {x.tolist()} {n!r}")
        x += 1 / 3  # the callable's own copy
        return x

    def second(x: Any) -> None:
        seen.append(f"second {x.tolist()}")

    return seen, (first, second)


def test_host_calls_run_in_order_with_exact_numbers() -> None:
    x = np.array([0.1, 0.2])
    results = []
    for backend in (NUMPY.compile, compiled):
        seen, sites = recording()
        (found,) = backend(CALLS, sites).run(x.copy(), LARGE_INT)
        results.append((seen, found.tolist()))
    assert results[0] == results[1]
    assert len(results[1][0]) == 3


def test_no_host_call_runs_after_a_check_has_failed() -> None:
    seen, sites = recording()
    with pytest.raises(ValueError, match="negative"):
        compiled(CALLS, sites).run(np.array([-1.0, 1.0]), LARGE_INT)
    assert len(seen) == 1


class Special(Exception):
    """An exception with a state of its own."""


def test_an_exception_of_a_host_call_is_raised_as_it_is() -> None:
    error = Special("told", 3)

    def fail(*operands: Any) -> Any:
        raise error

    called: list[Any] = []
    executable = compiled(CALLS, (fail, called.append))
    for run in (executable.run, executable.run_device):
        with pytest.raises(Special) as caught:
            run(np.array([1.0, 1.0]), LARGE_INT)
        assert caught.value is error
    assert called == []


def test_a_host_call_that_returns_the_wrong_type_is_a_type_error() -> None:
    sites = (lambda *operands: np.float32(1.0), None)
    require_same_error(CALLS, np.ones(2), LARGE_INT, sites=sites)


@pytest.mark.parametrize("dtype", ["bool", "i8", "u16", "i32", "i64", "f16", "f32", "f64", "c64", "c128"])
def test_every_dtype_passes_through_a_host_call(dtype: str) -> None:
    function = program(
        f"func @f(%x: {dtype}[3]) -> ({dtype}[3]) {{\n"
        f"  %a: {dtype}[3] = host_call %x {{site=0, results=[{dtype}[3]]}}\n  return %a\n}}"
    )
    type = function.params[0].type.dtype
    x = np.array([0, 1, 3 + 0.5j if type.kind == "c" else 3]).astype(type)
    (found,) = compiled(function, (np.flip,)).run(x)
    assert found.dtype == type
    np.testing.assert_array_equal(found, x[::-1])


def test_host_calls_are_refused_where_jax_cannot_call_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callbacks.jax, "default_backend", lambda: "METAL")
    with pytest.raises(BackendError, match="a host call on cpu, gpu, tpu only, not on METAL"):
        compiled(CALLS, recording()[1])


# --- ops that are called back -------------------------------------------------------------------------


def test_ops_without_a_lowering_are_refused_where_jax_cannot_call_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callbacks.jax, "default_backend", lambda: "METAL")
    with pytest.raises(BackendError, match="op 'erf' on cpu, gpu, tpu only, not on METAL"):
        compiled(one_op("erf", np.array([1j])))


def test_a_callback_is_exact_whatever_the_precision_of_the_caller() -> None:
    import scipy.special

    x = np.linspace(0.1, 1, 50_000) * (1 + 0.5j)
    executable = compiled(one_op("erf", x))
    with jax.enable_x64(True):
        on_device = jax.device_put(x)
    (found,) = executable.run_device(on_device)
    np.testing.assert_array_equal(np.asarray(found), scipy.special.erf(x))
