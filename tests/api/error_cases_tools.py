"""Bad calls of check_grads, source and explain; what is no array; what is not computed yet."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

import srcgrad as sg
from srcgrad.testing import check_grads
from tests.api.error_table import case

X = np.array([1.0, 2.0, 3.0])


def total(x: Any) -> Any:
    return np.sum(x * x)


@sg.custom_vjp
def wrong(x: Any) -> Any:
    return 2.0 * x


wrong.defvjp(lambda x: (2.0 * x, None), lambda residuals, ct: (-2.0 * ct,))


@case("ArgumentError", TypeError, at="check_grads(3, (X,))")
def check_grads_of_an_int() -> Any:
    return check_grads(3, (X,))  # type: ignore[arg-type]


@case("ArgumentError", TypeError, at="check_grads(total, X)")
def check_grads_args_bare() -> Any:
    return check_grads(total, X)  # type: ignore[arg-type]


@case("ArgumentError", ValueError, at="check_grads(total, (X,), order=0)")
def check_grads_order_zero() -> Any:
    return check_grads(total, (X,), order=0)


@case("ArgumentError", ValueError, at='check_grads(total, (X,), modes=("forward",))')
def check_grads_modes_unknown() -> Any:
    return check_grads(total, (X,), modes=("forward",))


@case("ArgumentError", ValueError, at="check_grads(total, (X,), modes=3)")
def check_grads_modes_an_int() -> Any:
    return check_grads(total, (X,), modes=3)  # type: ignore[arg-type]


@case("ArgumentError", ValueError, at="check_grads(total, (X,), argnums=1)")
def check_grads_argnums_out_of_range() -> Any:
    return check_grads(total, (X,), argnums=1)


@case("IntegerInputError", TypeError, at="check_grads(total, (3,))")
def check_grads_of_an_integer() -> Any:
    return check_grads(total, (3,))


@case("ArgumentError", TypeError, at='check_grads(lambda x: "text", (X,))')
def check_grads_of_a_text() -> Any:
    return check_grads(lambda x: "text", (X,))


@case("GradientCheckError", AssertionError, at="check_grads(wrong, (1.5,), order=1)")
def check_grads_of_a_wrong_rule() -> Any:
    return check_grads(wrong, (1.5,), order=1)


@case("ArgumentError", TypeError, at="sg.source(3)")
def source_of_an_int() -> Any:
    return sg.source(3)  # type: ignore[arg-type]


@case("NonScalarOutputError", TypeError, at="sg.source(sg.grad(np.sin))(X)")
def source_of_a_bad_gradient() -> Any:
    return sg.source(sg.grad(np.sin))(X)


@case("ArgumentError", TypeError, at="sg.source(total)()")
def source_without_arguments() -> Any:
    return sg.source(total)()


@case("ArgumentError", TypeError, at="sg.explain(None)")
def explain_of_none() -> Any:
    return sg.explain(None)  # type: ignore[arg-type]


@case("ShapeError", ValueError, at="x @ np.ones(4)")
def explain_of_bad_code() -> Any:
    return sg.explain(lambda x: x @ np.ones(4))(X)


@case("IntegerInputError", TypeError, at="sg.explain(sg.grad(total))(3)")
def explain_of_an_integer() -> Any:
    return sg.explain(sg.grad(total))(3)


@case("ArgumentError", TypeError, at='sg.debug(values="no")')
def debug_of_an_unknown_option() -> Any:
    return sg.debug(values="no")  # type: ignore[arg-type]


@case("NonFiniteError", FloatingPointError, at="np.sqrt(np.sum(x * x))")
def a_slope_that_is_not_finite() -> Any:
    with sg.debug():
        return sg.grad(lambda x: np.sqrt(np.sum(x * x)))(np.zeros(2))


# --- what is no array, and what is not computed yet ------------------------------------------------------------------
class Table:
    """An object that can become an array."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.ones(2)


@case("IntegerInputError", TypeError, at="sg.grad(sum)(v for v in [1.0, 2.0])")
def grad_of_a_generator() -> Any:
    return sg.grad(sum)(v for v in [1.0, 2.0])


@case("IntegerInputError", TypeError, at="sg.grad(sum)({1.0, 2.0})")
def grad_of_a_set() -> Any:
    return sg.grad(sum)({1.0, 2.0})


@case("IntegerInputError", TypeError, at="sg.grad(np.sum)(Table())")
def grad_of_an_object_with_an_array() -> Any:
    return sg.grad(np.sum)(Table())


@case("NonScalarOutputError", TypeError, at="sg.grad(f)(1.0)")
def grad_of_a_generator_function() -> Any:
    def f(x: Any) -> Any:
        yield x

    return sg.grad(f)(1.0)


@case("ConcretizationError", TypeError, at="pickle.dumps(x)")
def pickled_while_tracing() -> Any:
    return sg.grad(lambda x: x * len(pickle.dumps(x)))(1.0)


@case("ConcretizationError", TypeError, at="np.ma.masked_less(x, 0.0)")
def masked_arrays() -> Any:
    return sg.grad(lambda x: np.ma.masked_less(x, 0.0).sum())(np.ones(2))


@case("ConcretizationError", TypeError, at="np.ma.masked_array(x, mask=[True, False])")
def masked_arrays_by_their_class() -> Any:
    return sg.grad(lambda x: np.ma.masked_array(x, mask=[True, False]).sum())(np.ones(2))


@case("UnsupportedError", TypeError, at="doubled(x)")
def ufunc_of_objects() -> Any:
    doubled = np.frompyfunc(lambda v: v * 2, 1, 1)
    return sg.grad(lambda x: doubled(x))(1.0)
