"""Mistakes that once were there: each test is named after what it guards."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import srcgrad as sg
from srcgrad.errors import AxisError, ShapeError, UnsupportedError

X = np.array([0.3, -0.7, 1.1])


@pytest.mark.parametrize("transform", [sg.grad, sg.jacfwd, sg.jacrev, sg.hessian, sg.jit])
def test_numpy_functions_themselves_do_not_share_one_program(transform: Callable[..., Any]) -> None:
    """The transform of one pure function was served for every other."""
    direct = [transform(f)(0.3) for f in (np.sin, np.exp, np.cos, np.tanh)]
    wrapped = [transform(lambda x, f=f: f(x))(0.3) for f in (np.sin, np.exp, np.cos, np.tanh)]
    np.testing.assert_allclose(direct, wrapped)
    nested = [sg.grad(sg.grad(functools.partial(f, 2.0)))(0.3) for f in (np.hypot, np.multiply)]
    np.testing.assert_allclose(nested, [4.0 / np.hypot(2.0, 0.3) ** 3, 0.0])


@pytest.mark.parametrize("shape", [(1,), (1, 1), (2,), (2, 1)])
def test_axes_of_size_one_survive_where_every_operand_was_broadcast(shape: tuple[int, ...]) -> None:
    """A broadcast that only adds axes of size 1 was left to NumPy although no operand had those axes."""
    x = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
    programs = [
        lambda x: np.triu(x) + x,
        lambda x: np.sin(x)[None] * np.cos(x)[None],
        lambda x: x[..., None] + x[..., None],
        lambda x: np.broadcast_to(x, (1, *x.shape)) * 2.0,
        lambda x: np.where(np.ones((1, *x.shape), bool), x, 0.0) - x,
    ]
    for f in programs:
        found, expected = sg.jit(f)(x), f(x)
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found, expected)


def test_number_that_fills_an_array_keeps_its_shape_beside_a_scalar() -> None:
    @sg.jit
    def f(x: Any, b: float) -> Any:
        x[:] = 3.0
        return np.tanh(x) / (1.0 + b * b)

    assert f(np.array([0.5]), 2.0).shape == (1,)


REDUCING = [np.sum, np.prod, np.max, np.min, np.ptp, np.nansum, np.nanmax, np.all, np.any, np.argmax, np.count_nonzero]
SPREADING: list[Callable[..., Any]] = [
    np.cumsum,
    np.cumprod,
    np.argsort,
    lambda x, axis: np.repeat(x, 2, axis),
    lambda x, axis: np.take(x, 0, axis),
]


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("number", [1.5, np.float64(1.5), np.array(1.5)], ids=["float", "scalar", "array"])
def test_axis_zero_of_an_array_without_axes(axis: int, number: Any) -> None:
    for f in (*REDUCING, *SPREADING):
        found, expected = sg.jit(lambda x, f=f: f(x, axis=axis))(number), f(number, axis=axis)
        assert np.shape(found) == np.shape(expected) and np.asarray(found).dtype == np.asarray(expected).dtype
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(AxisError):
        sg.jit(lambda x: np.sum(x, axis=1))(number)
    with pytest.raises(AxisError):
        sg.jit(lambda x: np.mean(x, axis=0))(number)


def test_jacobians_have_the_precision_of_the_input_in_both_modes() -> None:
    """jacfwd gave the output's precision, so that jacobian's depended on the shapes."""
    low = X.astype(np.float32)
    mixed: list[tuple[Callable[..., Any], Any, str]] = [
        (lambda x: x.astype(np.float64) ** 2, low, "float32"),
        (lambda x: (x**2).astype(np.float32), X, "float64"),
        (lambda x: np.ones(2), low, "float32"),
        (lambda x: np.exp(1j * x.astype(np.float64)), low, "complex64"),
        (lambda z: np.abs(z).astype(np.float32), X + 1j, "complex128"),
    ]
    for f, x, dtype in mixed:
        for transform in (sg.jacfwd, sg.jacrev, sg.jacobian):
            assert transform(f)(x).dtype == dtype
        np.testing.assert_allclose(sg.jacfwd(f)(x), sg.jacrev(f)(x), rtol=1e-5)


PRODUCTS: list[Callable[..., Any]] = [
    np.dot,
    np.inner,
    np.add.outer,
    lambda a, c: np.tensordot(a, c, 0),
    lambda a, c: np.einsum("i,->i", a, c),
    lambda a, c: np.vdot(a[:1], c),
    lambda a, c: a * round(c, 2),
    lambda a, c: np.choose([0, 1, 0], [a, c]),
]


@pytest.mark.parametrize("number", [1.25, 2, np.float64(1.25)], ids=["float", "int", "float64"])
def test_python_numbers_are_weak_just_where_numpy_has_them_weak(number: Any) -> None:
    low = X.astype(np.float32)
    for f in PRODUCTS:
        expected = f(low, number)
        for found in (sg.jit(f)(low, number), sg.jit(lambda a, f=f: f(a, number))(low)):
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_out_decides_the_dtype_of_a_sum() -> None:
    def f(x: Any) -> Any:
        out = np.zeros_like(x)
        np.cumsum(x, axis=0, out=out)
        return out

    bits = np.array([True, True, False])
    np.testing.assert_array_equal(sg.jit(f)(bits), f(bits))


def test_copyto_drops_leading_axes_of_size_one() -> None:
    def f(x: Any, y: Any) -> Any:
        out = x * 2.0
        np.copyto(out, y, where=out > 0.0)
        np.copyto(out[:1], y[:, :1])
        return out

    np.testing.assert_array_equal(sg.jit(f)(X, X[None] + 5.0), f(X, X[None] + 5.0))


def test_a_write_into_a_copy_of_a_scalar_is_lost() -> None:
    """``np.put`` and ``flat`` of a NumPy scalar change a copy, not the scalar."""

    def f(x: Any) -> Any:
        y = np.square(x)
        np.put(y, [0], 5.0)
        y.flat[0] = 7.0
        return y

    assert sg.value_and_grad(f)(0.5) == (0.25, 1.0)


def test_einsum_of_an_empty_axis_beside_one_of_size_one() -> None:
    x, y = np.ones((1, 1)), np.ones((1, 0))
    for subscripts in ("ij,kj->ik", "ij,kj->ikj"):
        found = sg.jit(lambda x, y, s=subscripts: np.einsum(s, x, y))(x, y)
        np.testing.assert_array_equal(found, np.einsum(subscripts, x, y))


def test_floats_added_at_places_of_integers_are_refused() -> None:
    """NumPy rounds each sum towards 0; adding the rounded values is not that."""

    def f(x: Any, counts: Any) -> Any:
        np.add.at(counts, [0], 0.5 * x[0])
        return counts * x

    counts, expected = np.array([-3, 2, 1]), np.array([-3, 2, 1])
    with pytest.raises(UnsupportedError):
        sg.jit(f, strict=True)(X, counts)
    with pytest.raises(UnsupportedError):
        sg.vjp(lambda x: f(x, np.array([-3, 2, 1])), X)
    with pytest.warns(sg.RetraceWarning):  # jit does as NumPy does
        found = sg.jit(f)(X, counts)
    np.testing.assert_array_equal(found, f(X, expected))
    np.testing.assert_array_equal(counts, expected)


# --- numbers at which a derivative was lost ---------------------------------------------------------------------------

LIMITS: list[tuple[str, Callable[..., Any], int, float, float]] = [
    ("tanh far out", np.tanh, 1, 20.0, 4.0 * np.exp(-40.0)),
    ("tanh far out, second order", np.tanh, 2, -20.0, 8.0 * np.exp(-40.0)),
    ("tanh beyond the range of cosh", np.tanh, 2, 800.0, 0.0),
    ("tanh at 0", np.tanh, 3, 0.0, -2.0),
    ("cbrt at inf", np.cbrt, 2, np.inf, 0.0),
    ("cbrt at 0", np.cbrt, 2, 0.0, -np.inf),
    ("cbrt at -0", np.cbrt, 2, -0.0, np.inf),
    ("arcsin at 1", np.arcsin, 2, 1.0, np.inf),
    ("arcsin at -1", np.arcsin, 2, -1.0, -np.inf),
    ("arccos at 1", np.arccos, 2, 1.0, -np.inf),
    ("arcsin near 0", np.arcsin, 2, 1e-9, 1e-9),
    ("arccos near 0", np.arccos, 2, 1e-200, -1e-200),
    ("arctanh near 0", np.arctanh, 2, 1e-9, 2e-9),
    ("arctanh near 1", np.arctanh, 1, 1 - 2.0**-50, 2.0**49),
    ("arccosh at 1", np.arccosh, 2, 1.0, -np.inf),
    ("expit far out", scipy.special.expit, 1, 40.0, np.exp(-40.0)),
    ("expm1 far below", np.expm1, 1, -40.0, np.exp(-40.0)),
    ("sinc near 0", np.sinc, 1, 1e-200, -(np.pi**2) / 3 * 1e-200),
]


@pytest.mark.parametrize("case", LIMITS, ids=lambda case: case[0])
def test_derivative_at_an_extreme_point(case: tuple[str, Callable[..., Any], int, float, float]) -> None:
    _, f, order, point, expected = case
    for modes in itertools.product((sg.jacfwd, sg.jacrev), repeat=order):
        g = f
        for mode in modes:
            g = mode(g)
        np.testing.assert_allclose(g(point), expected, rtol=1e-14)


HUGE: list[tuple[Callable[..., Any], float, float, tuple[float, float]]] = [
    (np.hypot, 1e200, 1e200, (0.5**0.5, 0.5**0.5)),
    (np.hypot, 3e-200, 4e-200, (0.6, 0.8)),
    (np.hypot, 0.0, 0.0, (0.0, 0.0)),
    (np.arctan2, 1e200, 1e200, (5e-201, -5e-201)),
    (np.arctan2, 1e-200, 1e-200, (5e199, -5e199)),
    (np.logaddexp, 1e308, 1e308, (0.5, 0.5)),
    (np.logaddexp, -np.inf, 1.0, (0.0, 1.0)),
    (np.logaddexp2, -np.inf, -np.inf, (0.5, 0.5)),
    (np.true_divide, 1e200, 1e200, (1e-200, -1e-200)),
    (np.power, 0.0, 2.0, (0.0, 0.0)),
    (scipy.special.xlogy, 0.0, 0.0, (-np.inf, 0.0)),
]


@pytest.mark.parametrize("case", HUGE, ids=lambda case: f"{case[0].__name__} {case[1]} {case[2]}")
def test_partial_derivatives_do_not_overflow(
    case: tuple[Callable[..., Any], float, float, tuple[float, float]],
) -> None:
    f, x, y, expected = case
    np.testing.assert_allclose(sg.grad(f, (0, 1))(x, y), expected, rtol=1e-14)


# --- NumPy functions that had no rule ---------------------------------------------------------------------------------

HOLES = np.array([[1.0, np.nan, 3.5, -2.0], [np.nan, np.nan, 2.0, 0.5], [0.25, -1.0, 4.0, 6.0]])
NEW: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
    ("linspace", lambda a, b: np.linspace(a, b, 5), (1.0, 2.5)),
    ("linspace open", lambda a, b: np.linspace(a, b, 4, endpoint=False, axis=1), (X, X + 1.0)),
    ("linspace step", lambda a, b: np.linspace(a, b, 3, retstep=True), (1.0, np.array([2.5, 0.0]))),
    ("linspace of one", lambda a, b: np.linspace(a, b, 1), (1.0, 2.5)),
    ("linspace of none", lambda a, b: np.linspace(a, b, 0), (1.0, 2.5)),
    ("linspace float32", lambda a: np.linspace(a, 2 * a, 3), (X.astype(np.float32),)),
    ("linspace of integers", lambda a, b: np.linspace(a, b, 4, dtype=int), (1.0, 7.5)),
    ("logspace", lambda a, b: np.logspace(a, b, 4, base=2.0), (0.5, 1.5)),
    ("geomspace", lambda a, b: np.geomspace(a, b, 4), (1.5, 8.0)),
    ("geomspace below 0", lambda a, b: np.geomspace(a, b, 3), (-1.5, -8.0)),
    ("geomspace of complex ends", lambda a, b: np.geomspace(a, b, 4), (1.5 - 0.4j, np.array([8.0, -2.0 + 1.0j]))),
    ("nanmedian", lambda x: (np.nanmedian(x), np.nanmedian(x, axis=1), np.nanmedian(x, 0, keepdims=True)), (HOLES,)),
    ("nanquantile", lambda x: (np.nanquantile(x, 0.3), np.nanquantile(x, [0.2, 0.9], axis=1)), (HOLES,)),
    ("nanpercentile", lambda x: np.nanpercentile(x, 40.0, axis=(0, 1)), (HOLES,)),
    ("modf", lambda x: np.modf(x * 3.0), (X,)),
    ("modf of infinities", np.modf, (np.array([np.inf, -np.inf, np.nan]),)),
    ("ldexp", lambda x: np.ldexp(x, np.array([2, -3, 0])), (X,)),
    ("ldexp beyond the range of exp2", lambda x: np.ldexp(x * 1e-300, 1030), (X,)),
    ("astype", lambda x: np.astype(x, np.complex128), (X,)),
    ("tensorinv", lambda x: np.linalg.tensorinv(x.reshape(2, 2, 4)), (np.eye(4) + np.arange(16.0).reshape(4, 4) / 9,)),
    ("tensorsolve", lambda x, b: np.linalg.tensorsolve(x, b), (np.eye(3) * 2 + 0.1, X)),
    ("logaddexp.reduce", lambda x: (np.logaddexp.reduce(x), np.logaddexp.reduce(x * 900.0, keepdims=True)), (X,)),
    ("logaddexp.reduce of -inf", lambda x: np.logaddexp.reduce(np.log(x * 0.0)), (np.abs(X),)),
]


@pytest.mark.parametrize("case", NEW, ids=lambda case: case[0])
def test_function_without_a_rule(case: tuple[str, Callable[..., Any], tuple[Any, ...]]) -> None:
    _, f, arguments = case
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # All-NaN slices, as in NumPy
        expected = f(*arguments)
    found = sg.jit(f)(*arguments)
    pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    for one, other in pairs:
        assert np.asarray(one).dtype == np.asarray(other).dtype and isinstance(one, type(other))
        np.testing.assert_allclose(one, other, rtol=1e-14 if np.asarray(other).dtype != np.float32 else 1e-6)


SMOOTH = [case for case in NEW if not any(word in case[0] for word in ("float32", "integers", "inf", "none", "beyond"))]


@pytest.mark.parametrize("case", SMOOTH, ids=lambda case: case[0])
def test_derivative_of_a_function_without_a_rule(case: tuple[str, Callable[..., Any], tuple[Any, ...]]) -> None:
    _, f, arguments = case

    def present(*values: Any) -> Any:
        found = f(*values)
        return tuple(np.where(np.isnan(part), 0.0, part) for part in (found if isinstance(found, tuple) else (found,)))

    if not np.isnan(np.sum([np.sum(argument) for argument in arguments])):
        sg.testing.check_grads(present, arguments, order=2)
        return
    known = ~np.isnan(arguments[0])

    def inside(values: Any) -> Any:
        full = np.full_like(arguments[0], np.nan) + 0.0 * np.sum(values)
        full[known] = values
        return present(full)

    sg.testing.check_grads(inside, (arguments[0][known],), order=1)


def test_vmap_gives_outputs_that_are_the_same_for_all_examples_without_an_axis() -> None:
    x, y = np.arange(3.0), np.arange(2.0)
    doubled, total = sg.vmap(lambda a, b: (a * 2, b.sum()), in_axes=(0, None), out_axes=(0, None))(x, y)
    np.testing.assert_array_equal(doubled, 2 * x)
    assert total == 1.0
    assert np.shape(total) == ()
    gradient = sg.grad(lambda b: sg.vmap(lambda a, c: a + c.sum(), (0, None))(x, b).sum())(y)
    np.testing.assert_array_equal(gradient, [3.0, 3.0])


def test_methods_of_ufuncs_are_functions_of_a_known_meaning() -> None:
    """``jacrev(np.maximum.accumulate)`` was traced again at each call; each method still has a program of its own."""
    x = np.array([1.0, 3.0, 2.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        for _ in range(2):
            np.testing.assert_array_equal(sg.jacrev(np.maximum.accumulate)(x), [[1, 0, 0], [0, 1, 0], [0, 1, 0]])
            np.testing.assert_array_equal(sg.jacrev(np.minimum.accumulate)(x), [[1, 0, 0], [1, 0, 0], [1, 0, 0]])
            np.testing.assert_allclose(sg.grad(np.multiply.reduce)(x), [6.0, 2.0, 3.0])
            assert sg.jacrev(np.multiply.outer)(x, x).shape == (3, 3, 3)
        assert sg.jit(functools.partial(np.maximum.accumulate, axis=0), strict=True)(x).tolist() == [1.0, 3.0, 3.0]


def naive_logistic(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize(
    "f",
    [
        naive_logistic,
        lambda x: 2.0 / (np.exp(-x) + 1.0) * 0.5,
        lambda x: np.reciprocal(1 + np.exp(-x)),
        lambda x: (1 + np.exp(-x)) ** -1,
    ],
)
def test_the_logistic_function_as_people_write_it_has_a_derivative_in_both_tails(f: Callable[..., Any]) -> None:
    """It was 0 * inf where exp(-x) is inf, and 0 where its square is."""
    x = np.array([-1000.0, -800.0, -700.0, -400.0, -3.0, 0.0, 40.0, 1000.0])
    p, q = scipy.special.expit(x), scipy.special.expit(-x)
    np.testing.assert_allclose(sg.vmap(sg.grad(f))(x), p * q, rtol=1e-14)
    np.testing.assert_allclose(sg.vmap(sg.jacfwd(f))(x), p * q, rtol=1e-14)
    np.testing.assert_allclose(sg.vmap(sg.hessian(f))(x), p * q * (q - p), rtol=1e-13)
    np.testing.assert_allclose(sg.value_and_grad(f)(-3.0)[0], f(-3.0), rtol=1e-15)


def test_einsum_whose_output_leaves_the_ellipsis_out_is_refused_as_by_numpy() -> None:
    """It summed over the axes under the ellipsis."""
    x = np.ones((2, 3))
    for subscripts in ("...->", "...i->i"):
        with pytest.raises(ValueError, match="einstein sum"):
            np.einsum(subscripts, x)
        with pytest.raises(ShapeError, match="leaves out"):
            sg.jit(lambda x, s=subscripts: np.einsum(s, x))(x)
    np.testing.assert_array_equal(sg.jit(lambda x: np.einsum("...i->i", x))(x[0]), x[0])  # nothing is under it


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("function", [np.median, np.nanmedian])
@pytest.mark.parametrize(("shape", "axis"), [((0,), None), ((0, 3), 0), ((2, 0), 0), ((2, 0), 1)])
def test_the_median_of_no_elements_is_nan(function: Callable[..., Any], shape: tuple[int, ...], axis: Any) -> None:
    x = np.ones(shape)
    found = sg.jit(lambda x: function(x, axis=axis, keepdims=True))(x)
    np.testing.assert_array_equal(found, function(x, axis=axis, keepdims=True))


def test_in_place_partition_and_views_of_the_same_type() -> None:
    """Both were unknown methods, with a hint at a private name."""

    def f(x: Any) -> Any:
        a = x.copy()
        a.view()[0] *= 3.0
        a.partition(1)
        return a

    x = np.array([1.0, 5.0, 4.0])
    np.testing.assert_array_equal(sg.jit(f)(x), f(x))
    np.testing.assert_array_equal(sg.jacrev(f)(x), [[3.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    with pytest.raises(UnsupportedError) as caught:
        sg.grad(lambda x: np.sum(x.view(np.int64)))(x)
    assert "x.real" in str(caught.value)


OVERFLOWING: dict[str, Callable[[Any], Any]] = {
    "1/cosh": lambda x: 1 / np.cosh(x),
    "Planck's law": lambda x: x**3 / (np.exp(x) - 1),
    "Planck's law by expm1": lambda x: x**3 / np.expm1(x),
    "x/exp(x)": lambda x: x / np.exp(x),
    "Bose and Fermi": lambda x: 1 / (0.5 + np.exp(x)),
    "1/2**x": lambda x: 1 / np.exp2(2 * x),
    "Gompertz": lambda x: np.exp(-np.exp(x)),
    "Gompertz, scaled": lambda x: np.exp(-3.0 * np.exp(0.9 * x)),
    "Gumbel": lambda x: np.exp(-x * np.exp(x)),
    "1/i0": lambda x: 1 / scipy.special.i0(x),
    "x/i1": lambda x: x / scipy.special.i1(x),
}


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("name", OVERFLOWING)
def test_a_quotient_that_vanishes_as_its_denominator_overflows_is_flat_there(name: str) -> None:
    """It was 0 * inf; elsewhere the derivatives are those of the differences."""
    f = OVERFLOWING[name]
    assert f(800.0) == 0.0
    for derivative in (sg.grad(f), sg.jacfwd(f), sg.hessian(f), sg.jacfwd(sg.jacfwd(f)), sg.grad(sg.grad(f))):
        assert derivative(800.0) == 0.0
    sg.testing.check_grads(f, (0.7,))
    np.testing.assert_allclose(sg.value_and_grad(f)(0.7)[0], f(0.7), rtol=1e-15)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_results_are_c_ordered_as_a_trace_takes_them_to_be(backend: str) -> None:
    """What a transform returns is written through a view of it: the same in plain NumPy and in a trace."""
    with sg.use_backend(backend):

        def program(x):
            t = sg.jacfwd(lambda t: np.cumsum(t) * t)(x)
            t.reshape(-1)[:] = np.arange(4.0) * x[0]
            return t

        x = np.array([1.5, -2.0])
        assert sg.jacfwd(lambda t: np.cumsum(t) * t)(x).flags.c_contiguous
        assert sg.grad(lambda x: np.sum(x**3))(np.asfortranarray(np.ones((2, 3)))).flags.c_contiguous
        np.testing.assert_array_equal(program(x), sg.jit(program)(x))


def test_tensorsolve_of_nothing():
    empty = np.zeros((0, 0))
    assert sg.jit(np.linalg.tensorsolve)(empty, np.zeros(0)).shape == (0,)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble, np.complex64])
@pytest.mark.parametrize(
    "function",
    [lambda v: v[0].item() / 3, lambda v: v.tolist()[0] / 3, lambda v: v.item(1) * v, lambda v: v[1].item() * 1j],
)
def test_the_item_of_a_narrow_array_is_a_python_number(function: Callable[[Any], Any], dtype: Any) -> None:
    """That of a float32 stayed one, so that results had fewer digits than NumPy's."""
    v = np.array([1, 2.1], dtype)
    expected = np.asarray(function(v))
    found = np.asarray(sg.jit(function)(v))
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
