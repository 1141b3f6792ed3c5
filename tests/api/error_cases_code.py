"""Bad code inside traced functions."""

from __future__ import annotations

import contextvars
import ctypes
import threading
from decimal import Decimal
from typing import Any

import numpy as np

import srcgrad as sg
from tests.api.error_table import case

X = np.array([1.0, 2.0, 3.0])
M = np.arange(6.0).reshape(2, 3)
KEPT: Any = (ctypes.py_object * 1)()  # what is no container of Python's, in which no numbers are put


# --- shapes ----------------------------------------------------------------------------------------------------------
@case("ShapeError", ValueError, at="x + np.ones(4)")
def add_shapes() -> Any:
    return sg.grad(lambda x: np.sum(x + np.ones(4)))(X)


@case("ShapeError", ValueError, at="x @ x")
def matmul_shapes() -> Any:
    return sg.grad(lambda x: np.sum(x @ x))(M)


@case("ShapeError", ValueError, at="np.dot(x, np.ones(2))")
def dot_shapes() -> Any:
    return sg.jit(lambda x: np.dot(x, np.ones(2)))(X)


@case("ShapeError", ValueError, at='np.einsum("ij,jk->ik", x, x)')
def einsum_shapes() -> Any:
    return sg.jacrev(lambda x: np.einsum("ij,jk->ik", x, x))(M)


@case("ShapeError", ValueError, at="np.broadcast_to(x, (2, 4))")
def broadcast_to_shape() -> Any:
    return sg.jacobian(lambda x: np.broadcast_to(x, (2, 4)))(X)


@case("ShapeError", ValueError, at="x.reshape(2, 2)")
def reshape_method() -> Any:
    return sg.grad(lambda x: x.reshape(2, 2).sum())(X)


@case("ShapeError", ValueError, at="np.reshape(x, (-1, 2))")
def reshape_function() -> Any:
    return sg.grad(lambda x: np.reshape(x, (-1, 2)).sum())(X)


@case("ShapeError", ValueError, at="np.concatenate([x, np.ones((1, 2))])")
def concatenate_shapes() -> Any:
    return sg.jit(lambda x: np.concatenate([x, np.ones((1, 2))]))(M)


@case("ShapeError", ValueError, at="np.stack([x, x[1:]])")
def stack_shapes() -> Any:
    return sg.vmap(lambda x: np.stack([x, x[1:]]))(M)


@case("ShapeError", ValueError, at="x[0]")
def assignment_shape() -> Any:
    def f(x: Any) -> Any:
        x[0] = np.ones(2)
        return np.sum(x)

    return sg.grad(f)(M)


@case("ShapeError", ValueError, at="y += x")
def in_place_shape() -> Any:
    def f(x: Any) -> Any:
        y = x[0]
        y += x
        return np.sum(y)

    return sg.grad(f)(M)


@case("ShapeError", ValueError, at="np.where(x > 0, x, np.ones(2))")
def where_shapes() -> Any:
    return sg.jvp(lambda x: np.where(x > 0, x, np.ones(2)), (X,), (X,))


@case("MatrixError", np.linalg.LinAlgError, at="np.linalg.solve(x, np.ones(2))")
def solve_of_no_square() -> Any:
    return sg.vjp(lambda x: np.linalg.solve(x, np.ones(2)), M)


@case("RangeError", OverflowError, at="x + 300")
def number_out_of_range() -> Any:
    return sg.jit(lambda x: x + 300)(np.zeros(3, np.uint8))


# --- axes and indices ------------------------------------------------------------------------------------------------
@case("AxisError", ValueError, IndexError, at="np.sum(x, axis=2)")
def sum_axis() -> Any:
    return sg.grad(lambda x: np.sum(x, axis=2)[0])(M)


@case("AxisError", ValueError, IndexError, at="x.mean(axis=-2)")
def mean_axis() -> Any:
    return sg.linearize(lambda x: x.mean(axis=-2), X)


@case("AxisError", ValueError, at="x.sum(axis=(0, 0))")
def sum_axis_twice() -> Any:
    return sg.hvp(lambda x: x.sum(axis=(0, 0)), (M,), (M,))


@case("ShapeError", ValueError, at="x.transpose(0, 1)")
def transpose_axes() -> Any:
    return sg.jacfwd(lambda x: x.transpose(0, 1))(X)


@case("IndexingError", IndexError, at="x[3]")
def index_out_of_bounds() -> Any:
    return sg.grad(lambda x: x[3])(X)


@case("IndexingError", IndexError, at="x[np.array([0, 7])]")
def array_index_out_of_bounds() -> Any:
    return sg.grad(lambda x: np.sum(x[np.array([0, 7])]))(X)


def picked(x: Any, index: Any) -> Any:
    return np.sum(x[index] * 2.0)


@case("IndexingError", IndexError, at="")
def index_out_of_bounds_at_run_time() -> Any:
    return sg.grad(picked)(X, np.array([0, 9]))


@case("IndexingError", IndexError, at="x[0, 1]")
def too_many_indices() -> Any:
    return sg.hessian(lambda x: x[0, 1])(X)


@case("IndexingError", IndexError, at='x["a"]')
def index_text() -> Any:
    return sg.grad(lambda x: x["a"])(X)


@case("IndexingError", IndexError, at="x[0.5]")
def index_float() -> Any:
    return sg.grad(lambda x: x[0.5])(X)


@case("IndexingError", IndexError, at="x[x]")
def index_traced_float() -> Any:
    return sg.grad(lambda x: np.sum(x[x]))(X)


@case("IndexingError", IndexError, at="x[np.array([True, False])]")
def mask_shape() -> Any:
    return sg.grad(lambda x: np.sum(x[np.array([True, False])]))(X)


@case("IndexingError", IndexError, at="x[0][0]")
def index_of_a_scalar() -> Any:
    return sg.grad(lambda x: x[0][0])(X)


@case("UnsupportedError", TypeError, at="len(x)")
def len_of_a_scalar() -> Any:
    return sg.grad(lambda x: x * len(x))(1.0)


@case("UnsupportedError", TypeError, at="list(x)")
def iteration_over_a_scalar() -> Any:
    return sg.grad(lambda x: sum(list(x)))(1.0)


# --- what has no rule ------------------------------------------------------------------------------------------------
@case("UnsupportedError", TypeError, at="np.datetime_as_string(x)")
def function_without_rule() -> Any:
    return sg.grad(lambda x: np.datetime_as_string(x))(X)


@case("UnsupportedError", TypeError, at='np.linalg.qr(x, mode="raw")')
def mode_without_rule() -> Any:
    return sg.grad(lambda x: np.linalg.qr(x, mode="raw")[0])(M)


@case("UnsupportedError", TypeError, at="np.isnat(x)")
def ufunc_without_rule() -> Any:
    return sg.grad(lambda x: np.isnat(x))(1.0)


@case("UnsupportedError", TypeError, at="np.frompyfunc(max, 2, 1).reduce(x)")
def ufunc_method_without_rule() -> Any:
    return sg.grad(lambda x: np.frompyfunc(max, 2, 1).reduce(x))(X)


@case("UnsupportedError", TypeError, at="x.tobytes")
def method_without_rule() -> Any:
    return sg.grad(lambda x: len(x.tobytes()))(X)


@case("NoAttributeError", AttributeError, at="x.summ")
def attribute_that_is_none() -> Any:
    return sg.grad(lambda x: x.summ())(X)


@case("UnsupportedError", TypeError, at="np.sin(x, where=x > 0)")
def where_without_out() -> Any:
    return sg.grad(lambda x: np.sum(np.sin(x, where=x > 0)))(X)


@case("UnsupportedError", TypeError, at='np.sort(x, order="a")')
def option_without_rule() -> Any:
    return sg.grad(lambda x: np.sort(x, order="a")[0])(X)


@case("ArgumentError", ValueError, at='x.reshape(3, 1, order="Z")')
def reshape_order() -> Any:
    return sg.grad(lambda x: np.sum(x.reshape(3, 1, order="Z")))(X)


@case("UnsupportedError", TypeError, at='x.astype("nothing")')
def unknown_dtype() -> Any:
    return sg.grad(lambda x: np.sum(x.astype("nothing")))(X)


@case("DTypeError", TypeError, at='np.sum(x, dtype="U3")')
def text_dtype() -> Any:
    return sg.grad(lambda x: np.sum(x, dtype="U3"))(X)


@case("DTypeError", TypeError, at="x % 1j")
def operator_without_loop() -> Any:
    return sg.jit(lambda x: x % 1j)(X)


@case("UnsupportedError", TypeError, at='x + "a"')
def add_text() -> Any:
    return sg.jit(lambda x: x + "a")(X)


@case("DTypeError", TypeError, at='np.add(x, "a")')
def add_text_by_function() -> Any:
    return sg.jit(lambda x: np.add(x, "a"))(X)


@case("UnsupportedError", TypeError, at="x + None")
def add_none() -> Any:
    return sg.grad(lambda x: x + None)(1.0)


@case("DTypeError", TypeError, at="x[0]")
def complex_into_real() -> Any:
    def f(x: Any) -> Any:
        x[0] = 1j
        return np.sum(x)

    return sg.grad(f)(X)


# --- traced values where concrete ones are needed --------------------------------------------------------------------
@case("ConcretizationError", TypeError, at="np.zeros(x)")
def as_a_shape() -> Any:
    return sg.grad(lambda x: np.sum(np.zeros(x)) * x)(2.0)


@case("ConcretizationError", TypeError, at="range(x)")
def as_a_range() -> Any:
    return sg.grad(lambda x: sum(x for _ in range(x)))(2.0)


@case("ShapeError", ValueError, at="x > 0")
def truth_of_an_array() -> Any:
    return sg.grad(lambda x: x[0] if x > 0 else x[1])(X)


# --- traced values used elsewhere ------------------------------------------------------------------------------------
def keeping(x: Any) -> Any:
    KEPT[:] = [x]
    return x * x


@case("LeakedTracerError", TypeError, at="KEPT[0] + 1.0")
def leaked_through_a_list() -> Any:
    sg.grad(keeping)(1.0)
    return KEPT[0] + 1.0


@case("LeakedTracerError", TypeError, at="np.sin(KEPT[0])")
def leaked_into_a_ufunc() -> Any:
    sg.grad(keeping)(1.0)
    return np.sin(KEPT[0])


@case("LeakedTracerError", TypeError, at="np.sum(KEPT[0])")
def leaked_into_a_function() -> Any:
    sg.grad(keeping)(1.0)
    return np.sum(KEPT[0])


@case("LeakedTracerError", TypeError, at="x * KEPT[0]")
def leaked_into_another_trace() -> Any:
    sg.grad(keeping)(1.0)
    return sg.grad(lambda x: x * KEPT[0])(2.0)


@case("LeakedTracerError", TypeError, at="KEPT[0][0]")
def leaked_and_written() -> Any:
    sg.grad(lambda x: np.sum(keeping(x)))(X)
    KEPT[0][0] = 1.0


@case("LeakedTracerError", TypeError, at="float(KEPT[0])")
def leaked_to_float() -> Any:
    sg.grad(keeping)(1.0)
    return float(KEPT[0])


@case("LeakedTracerError", TypeError, at="bool(KEPT[0])")
def leaked_to_bool() -> Any:
    sg.grad(keeping)(1.0)
    return bool(KEPT[0])


@case("LeakedTracerError", TypeError, at="x * y[0]")
def leaked_from_an_inner_trace() -> Any:
    def f(x: Any) -> Any:
        y: list[Any] = []

        def g(z: Any) -> Any:
            y.append(z * x)
            return z

        sg.grad(g)(1.0)
        return x * y[0]

    return sg.grad(f)(1.0)


@case("LeakedTracerError", TypeError, at="x * 2.0")
def used_in_another_thread() -> Any:
    def f(x: Any) -> Any:
        failures: list[Exception] = []

        def work() -> None:
            try:
                x * 2.0
            except Exception as error:
                failures.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        raise failures[0]

    return sg.grad(f)(1.0)


@case("LeakedTracerError", TypeError, at="x * 3.0")
def used_in_a_thread_with_a_copy_of_the_context() -> Any:
    """As `asyncio.to_thread` makes them, and free-threaded Python makes all."""

    def f(x: Any) -> Any:
        failures: list[Exception] = []

        def work() -> None:
            try:
                x * 3.0
            except Exception as error:
                failures.append(error)

        thread = threading.Thread(target=contextvars.copy_context().run, args=(work,))
        thread.start()
        thread.join()
        raise failures[0]

    return sg.grad(f)(1.0)


# --- custom rules ----------------------------------------------------------------------------------------------------
def ruled(rule: Any) -> Any:
    f = sg.custom_jvp(lambda x: x * x)
    f.defjvp(rule)
    return f


def pulled(fwd: Any, bwd: Any) -> Any:
    f = sg.custom_vjp(lambda x: x * x)
    f.defvjp(fwd, bwd)
    return f


@case("CustomRuleError", TypeError, at="f(x)")
def custom_jvp_without_rule() -> Any:
    f = sg.custom_jvp(np.sin)
    return sg.grad(lambda x: f(x))(1.0)


@case("CustomRuleError", TypeError, at="f(x)")
def custom_vjp_without_rule() -> Any:
    f = sg.custom_vjp(np.sin)
    return sg.grad(lambda x: f(x))(1.0)


@case("CustomRuleError", TypeError, at="sg.custom_jvp(np.sin).defjvp(3)")
def defjvp_of_an_int() -> Any:
    return sg.custom_jvp(np.sin).defjvp(3)  # type: ignore[arg-type]


@case("CustomRuleError", TypeError, at="sg.custom_vjp(np.sin).defvjp(np.sin, None)")
def defvjp_of_none() -> Any:
    return sg.custom_vjp(np.sin).defvjp(np.sin, None)  # type: ignore[arg-type]


@case("CustomRuleError", TypeError, at="sg.custom_vjp(np.sin, nondiff_argnums=0.5)")
def nondiff_argnums_a_float() -> Any:
    return sg.custom_vjp(np.sin, nondiff_argnums=0.5)  # type: ignore[arg-type]


@case("CustomRuleError", TypeError, at="f(x)")
def nondiff_argnums_out_of_range() -> Any:
    f = sg.custom_vjp(lambda x: x, nondiff_argnums=(3,))
    f.defvjp(lambda x: (x, None), lambda n, r, ct: (ct,))
    return sg.grad(lambda x: f(x))(1.0)


@case("CustomRuleError", TypeError, at="f(x)")
def jvp_rule_returns_no_pair() -> Any:
    f = ruled(lambda primals, tangents: primals[0])
    return sg.grad(lambda x: f(x))(1.0)


@case("CustomRuleError", TypeError, at="f(x)")
def jvp_rule_structure() -> Any:
    f = ruled(lambda primals, tangents: (primals[0], tangents))
    return sg.grad(lambda x: f(x))(1.0)


@case("CustomRuleError", TypeError, at="f(x)")
def jvp_rule_shape() -> Any:
    f = ruled(lambda primals, tangents: (primals[0], tangents[0][0]))
    return sg.grad(lambda x: np.sum(f(x)))(X)


@case("CustomRuleError", TypeError, at="f(x)")
def jvp_rule_arguments() -> Any:
    f = ruled(lambda x: x)
    return sg.grad(lambda x: f(x))(1.0)


@case("CustomRuleError", TypeError, at="f(x)")
def fwd_returns_no_pair() -> Any:
    f = pulled(lambda x: x, lambda r, ct: (ct,))
    return sg.grad(lambda x: f(x))(1.0)


@case("CustomRuleError", TypeError, at="f(x)")
def fwd_structure() -> Any:
    f = pulled(lambda x: ((x, x), None), lambda r, ct: (ct,))
    return sg.grad(lambda x: f(x))(1.0)


@case("CustomRuleError", TypeError, at="f(x)")
def bwd_returns_no_tuple() -> Any:
    f = pulled(lambda x: (x, None), lambda r, ct: ct)
    return sg.grad(lambda x: f(x))(1.0)


@case("CustomRuleError", TypeError, at="f(x)")
def bwd_too_many() -> Any:
    f = pulled(lambda x: (x, None), lambda r, ct: (ct, ct))
    return sg.grad(lambda x: f(x))(1.0)


@case("CustomRuleError", TypeError, at="f(x)")
def bwd_shape() -> Any:
    f = pulled(lambda x: (x, None), lambda r, ct: (ct[:2],))
    return sg.grad(lambda x: np.sum(f(x)))(X)


@case("CustomRuleError", TypeError, at="f(x, scale=2.0)")
def rule_of_a_keyword_only() -> Any:
    @sg.custom_vjp
    def f(x: Any, *, scale: float) -> Any:
        return x * scale

    f.defvjp(lambda x: (x, None), lambda r, ct: (ct,))
    return sg.grad(lambda x: f(x, scale=2.0))(1.0)


@case("CustomRuleError", TypeError, at="f(x, x)")
def rule_arguments() -> Any:
    f = pulled(lambda x: (x, None), lambda r, ct: (ct,))
    return sg.grad(lambda x: f(x, x))(1.0)


@case("UnsupportedError", TypeError, at="{x: 2.0}")
def key_of_a_dict() -> Any:
    return sg.grad(lambda x: np.sum({x: 2.0}[x] * x))(X)


@case("UnsupportedError", TypeError, at="x[0] * Decimal(2)")
def decimal_number() -> Any:
    return sg.grad(lambda x: x[0] * Decimal(2))(X)


@case("ConcretizationError", TypeError, at='rows["mass"]')
def field_of_records() -> Any:
    def f(x: Any) -> Any:
        rows = np.zeros(3, dtype=[("mass", float), ("kind", int)])
        rows["mass"] = x
        return np.sum(rows["mass"])

    return sg.grad(f)(X)
