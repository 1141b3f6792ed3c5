"""Solutions and minima that SciPy finds, as functions of what they depend on: the implicit function theorem."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize as so

import srcgrad as sg
from srcgrad.errors import SrcgradError, UnsupportedError
from srcgrad.tracing.tracer import Tracer

pytestmark = pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
T = np.linspace(0.0, 1.0, 9)
NOISY = 2.0 * np.exp(-1.5 * T) + 0.05 * np.cos(20 * T)
P = np.array([1.2, 0.7])


def pair(y: Any, p: Any) -> Any:
    return np.stack([p[0] * y[0] ** 3 + y[1] - 1.0, y[1] ** 3 - y[0] + p[1]])


def bowl(y: Any, p: Any) -> Any:
    return (y[0] - p[0]) ** 2 + np.cosh(y[1] - p[1] * y[0]) + 0.1 * y[0] ** 4


def exponential(t: Any, a: Any, b: Any) -> Any:
    return a * np.exp(-b * t)


CASES: dict[str, Callable[[Any], Any]] = {
    "fsolve": lambda p: so.fsolve(lambda y: pair(y, p), [0.5, 0.5], xtol=1e-13),
    "fsolve with arguments and slopes": lambda p: so.fsolve(
        lambda y, a, b: y**3 + a * y - b, 0.5, args=(p[0], p[1]), fprime=lambda y, a, b: np.diag(3 * y**2 + a)
    ),
    "fsolve, all that it gives": lambda p: so.fsolve(pair, [0.5, 0.5], (p,), full_output=True, xtol=1e-13)[0],
    "root": lambda p: so.root(pair, [0.5, 0.5], args=p, tol=1e-13).x,
    "what a root leaves": lambda p: so.root(pair, [0.5, 0.5], args=p, tol=1e-13).fun + p,
    "root of a matrix": lambda p: so.root(
        lambda y: y @ y - np.outer(p, p) - 2.0 * np.eye(2), np.eye(2), method="krylov", tol=1e-11
    ).x,
    "fixed_point": lambda p: so.fixed_point(lambda y: 0.5 * np.cos(p * y), [0.5, 0.4], xtol=1e-13),
    "newton of many": lambda p: so.newton(lambda y: y**3 + p * y - 1.0, np.array([0.5, 0.5]), tol=1e-14),
    "newton with a list of arguments": lambda p: so.newton(
        lambda y, a, b: y**3 + a * y - b, np.array([0.5, 0.5]), args=[p, 1.0], fprime=lambda y, a, b: 3 * y**2 + a
    ),
    "fixed_point with a list of arguments": lambda p: so.fixed_point(
        lambda y, a, b: b * np.cos(a * y), [0.5, 0.4], args=[p, 0.5], xtol=1e-13
    ),
    "newton that begins at the root": lambda p: so.newton(
        lambda y: y**3 + p[0] * y - 2.2, 1.0, lambda y: 3 * y**2 + p[0], tol=1e-14
    ),
    "root_scalar that begins at the root": lambda p: so.root_scalar(
        lambda y: y**3 + p[0] * y - 2.2, x0=1.0, fprime=lambda y: 3 * y**2 + p[0], xtol=1e-14
    ).root,
    "minimize": lambda p: so.minimize(bowl, [0.5, 0.5], p, tol=1e-11).x,
    "minimize with a gradient": lambda p: so.minimize(
        bowl, [0.5, 0.5], p, jac=sg.grad(bowl), method="trust-exact", hess=sg.hessian(bowl), tol=1e-12
    ).x,
    "minimize of both": lambda p: so.minimize(
        lambda y: (bowl(y, p), sg.grad(bowl)(y, p)), [0.5, 0.5], jac=True, tol=1e-12
    ).x,
    "the minimum": lambda p: so.minimize(bowl, [0.5, 0.5], (p,), tol=1e-11).fun,
    "between bounds": lambda p: so.minimize(
        lambda y: bowl(y, p), [0.5, 0.5], bounds=[(None, p[1]), (None, None)], jac=sg.grad(lambda y: bowl(y, p)),
        tol=1e-14,
    ).x,
    "minimize_scalar": lambda p: so.minimize_scalar(lambda y: (y - p[0]) ** 2 + p[1] * y**4, tol=1e-13).x,
    "minimize_scalar between": lambda p: so.minimize_scalar(
        lambda y: (y - p[0]) ** 2 + p[1] * y**4, bounds=(0, 3), options={"xatol": 1e-12}
    ).x,
    "least_squares": lambda p: so.least_squares(
        lambda y: np.append(exponential(T, *y) - NOISY, 0.1 * (y - p)), [1.0, 1.0], xtol=1e-15, ftol=1e-15, gtol=1e-15
    ).x,
    "least_squares of another loss": lambda p: so.least_squares(
        lambda y, q: np.append(y - q, y[0] * y[1] - 0.5), [1.0, 1.0], loss="soft_l1", args=(p,), xtol=1e-15,
        ftol=1e-15, gtol=1e-15,
    ).x,
    "curve_fit": lambda p: so.curve_fit(exponential, T, NOISY + p[0] * T * p[1], [1.0, 1.0], xtol=1e-14, ftol=1e-14)[0],
    "the covariance of a fit": lambda p: so.curve_fit(
        exponential, T, NOISY + 0.1 * p[0] * T, sigma=0.1 + p[1] * T, xtol=1e-14, ftol=1e-14
    )[1],
    "rosen": lambda p: so.rosen(p),
    "rosen_der": lambda p: so.rosen_der(p),
}  # fmt: skip


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("name", CASES)
def test_solutions_and_their_derivatives(name: str, backend: str) -> None:
    f = CASES[name]
    found = np.asarray(f(P))
    weights = np.cos(np.arange(found.size) + 0.3).reshape(found.shape)

    def loss(p: Any) -> Any:
        return np.sum(f(p) * weights)

    direction, h = np.array([0.6, -0.8]), 1e-2

    def slope(g: Callable[[Any], Any]) -> Any:
        first, second = ((g(P + k * h * direction) - g(P - k * h * direction)) / (2 * k * h) for k in (1, 2))
        return (4 * first - second) / 3

    with sg.use_backend(backend):
        np.testing.assert_allclose(sg.jit(f)(P), found, rtol=1e-7 if "covariance" in name else 1e-12)
        gradient = sg.grad(loss)
        np.testing.assert_allclose(gradient(P) @ direction, slope(loss), rtol=2e-5, atol=1e-6)
        tangent = sg.jvp(loss, (P,), (direction,))[1]
        np.testing.assert_allclose(tangent, gradient(P) @ direction, rtol=1e-10, atol=1e-12)
        curvature = direction @ sg.hessian(loss)(P) @ direction
        np.testing.assert_allclose(curvature, slope(lambda p: gradient(p) @ direction), rtol=2e-4, atol=2e-5)


def test_what_depends_on_nothing_traced_is_scipys_own() -> None:
    def f(x: Any) -> Any:
        fixed = so.minimize(lambda y: (y[0] - 2.0) ** 2, [0.0]).x[0] + so.fsolve(lambda y: y - 3.0, 0.0)[0]
        return x * (fixed + so.root(lambda y: y - 1.0, 0.0).x[0] + so.newton(lambda y: y - 4.0, 0.1))

    np.testing.assert_allclose(sg.grad(f)(0.5), 10.0, rtol=1e-6)


def test_an_argument_that_is_no_list_is_refused_where_scipy_refuses_it() -> None:
    def f(p: Any) -> Any:
        return so.newton(lambda y, a: y**3 + a * y - 1.0, 0.5, args=p)

    for call in (f, sg.grad(f)):
        with pytest.raises(TypeError):
            call(2.0)


def test_starting_places_contribute_nothing() -> None:
    np.testing.assert_array_equal(sg.grad(lambda x: so.fsolve(lambda y: y**3 - 2.0, x)[0])(1.5), 0.0)


def inside(method: str) -> Callable[[Any], Any]:
    return lambda p: so.minimize(
        lambda y: (y[0] - p) ** 2 + (y[1] - p * y[0]) ** 2, [0.5, 0.5], bounds=[(0, 1), (0, 9)], method=method
    ).x.sum()  # fmt: skip


HELD: dict[str, tuple[Callable[[Any], Any], float, float]] = {
    "bounded": (lambda p: so.minimize_scalar(lambda y: (y - p) ** 2, bounds=(0.0, 1.0)).x, 0.0, 1.0),
    "bounded by it": (lambda p: so.minimize_scalar(lambda y: (y - 3.0) ** 2, bounds=(0.0, p)).x, 1.0, 1.0),
    "from above": (lambda p: so.minimize_scalar(lambda y: (y + p) ** 2, bounds=(-0.7, 1.0)).x, 0.0, -1.0),
    "least_squares": (
        lambda p: so.least_squares(lambda y: y - p * np.array([1.0, 2.0]), [0.5, 0.5], bounds=([0, 0], [1, 9])).x.sum(),
        2.0, 3.0,
    ),
    "curve_fit": (
        lambda p: so.curve_fit(lambda t, a, b: a * t + b, T, p * T + 0.3, bounds=([0, 0], [1, 2]))[0][0], 0.0, 1.0
    ),
    "trust-constr": (inside("trust-constr"), 1.0, 2.2),
    "L-BFGS-B": (inside("L-BFGS-B"), 1.0, 2.2),
}  # fmt: skip


@pytest.mark.parametrize("name", HELD)
def test_bounds_hold_minima_of_methods_that_stay_inside(name: str) -> None:
    f, held, free = HELD[name]
    np.testing.assert_allclose([sg.grad(f)(2.0), sg.grad(f)(0.6)], [held, free], rtol=1e-4, atol=1e-8)


def test_a_program_reads_what_its_functions_read_at_each_call() -> None:
    scale = 1.0

    class Law:
        power = 3

        def __init__(self) -> None:
            self.shift = 0.0

        def level(self, y: Any, x: Any) -> Any:
            total = 0.0
            for k in range(20):  # a loop of the program that is asked
                total = total + 0.01 * np.sin(k * x)
            return scale * y**self.power + y - x - self.shift + total

        def solve(self, x: Any) -> Any:
            return so.fsolve(self.level, 0.5, args=(x,), xtol=1e-11)[0]

    law = Law()
    slope = sg.value_and_grad(law.solve)
    for step in range(9):
        scale, law.shift = 1.0 + step % 2, 0.1 * (step % 3)
        value, found = slope(1.3)
        np.testing.assert_allclose(value, law.solve(1.3), rtol=1e-9)
        np.testing.assert_allclose(found, (law.solve(1.3 + 1e-4) - law.solve(1.3 - 1e-4)) / 2e-4, rtol=1e-6)


def test_solvers_within_solvers_and_loops() -> None:
    def inner(z: Any) -> Any:
        return so.newton(lambda y: y**3 + y - z, 0.5, tol=1e-13)

    def outer(x: Any) -> Any:
        z = 1.0
        for _ in range(20):
            z = so.newton(lambda u, z=z: u - z - 0.1 * (x - inner(u) * u), z, tol=1e-13)
        return z

    difference = (outer(1.3 + 1e-5) - outer(1.3 - 1e-5)) / 2e-5
    np.testing.assert_allclose(sg.grad(outer)(1.3), difference, rtol=1e-7)
    np.testing.assert_allclose(sg.vmap(inner)(np.array([1.0, 2.0])), [inner(1.0), inner(2.0)], rtol=1e-12)
    np.testing.assert_allclose(sg.jit(inner, strict=True)(2.0), 1.0, rtol=1e-12)


def test_what_a_solver_says_is_known_to_a_program() -> None:
    def solved(x: Any, most: int) -> Any:
        found = so.root(lambda y: y**3 + y - x, [0.5], options={"maxfev": most})
        if not found.success:
            raise ValueError(f"no root: {found.message}")
        again, more, ier, said = so.fsolve(lambda y: y - x, 0.5, full_output=True)
        assert ier == 1, said
        value, how = so.newton(lambda y: y**3 + y - x, 0.5, full_output=True)
        return found.x[0] + again[0] * more["nfev"] + value * how.converged

    for most in (200, 2):
        errors = []
        f = functools.partial(solved, most=most)
        for call in (f, sg.grad(f), sg.jit(f)):
            try:
                call(2.0)
            except ValueError as error:
                errors.append(str(error).splitlines()[0])
        assert len(errors) == (0 if most == 200 else 3) and len(set(errors)) <= 1
    np.testing.assert_allclose(sg.jit(lambda x: solved(x, 200))(2.0), solved(2.0, 200))


def test_a_solver_raises_its_own_error_when_the_program_runs() -> None:
    def lost(x: Any) -> Any:
        return so.newton(lambda y: y**2 + x, 0.6, maxiter=10)

    def rescued(x: Any) -> Any:
        try:
            return lost(x)
        except RuntimeError:
            return x**2

    for call in (lost, sg.jit(lost), sg.grad(lost)):
        with pytest.raises(RuntimeError, match="Failed to converge after 10 iterations"):
            call(1.0)
    with pytest.warns(sg.RetraceWarning, match="newton runs on numbers"):
        np.testing.assert_allclose(sg.grad(rescued)(1.5), 3.0)


def test_solutions_whose_equations_say_nothing_have_values() -> None:
    def flat(x: Any) -> Any:
        return so.fsolve(lambda y: (y - x) ** 3, x + 0.0)[0]

    assert sg.jit(flat, strict=True)(1.0) == 1.0
    with pytest.raises(np.linalg.LinAlgError):
        sg.grad(flat)(1.0)


def test_unknowns_that_equations_do_not_determine_but_for_rounding_have_no_derivatives() -> None:
    """A shift of all unknowns leaves the function as it is; the elements of its Hessian are sums that are rounded."""
    weights = np.array([[0.0, 0.3, 0.7], [0.1, 0.0, 0.9], [0.3, 0.4, 0.0]])

    def shifted(x: Any) -> Any:
        def objective(u: Any) -> Any:
            return np.sum(weights * (u[:, None] - u - np.log(x[:, None] / x)) ** 2)

        return so.minimize(objective, np.zeros(3)).x

    x = np.array([0.7, 0.2, 0.5])
    assert sg.jit(shifted)(x).shape == (3,)
    for transform in (sg.jacfwd, sg.jacrev):
        with pytest.raises(np.linalg.LinAlgError):
            transform(shifted)(x)


def test_a_program_with_a_solver_keeps_nothing_of_its_trace() -> None:
    def found(x: Any) -> Any:
        return so.fsolve(lambda u: u - np.sin(x), np.zeros(3))

    def traced() -> int:
        gc.collect()
        return sum(type(thing) is Tracer for thing in gc.get_objects())

    before = traced()
    solve = sg.jit(found)
    np.testing.assert_allclose(solve(np.ones(3)), np.sin(np.ones(3)))
    assert traced() == before


def test_units_of_unknowns_and_equations_do_not_matter() -> None:
    units, scales = np.array([1e-9, 1.0, 1e8]), np.array([1e10, 1e-4, 1e-9])
    mixed = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]])

    def scaled(x: Any) -> Any:
        return so.fsolve(lambda u: scales * (mixed @ (u / units) - x), np.linalg.solve(mixed, x) * units)

    x = np.array([1.0, 2.0, 3.0])
    for transform in (sg.jacfwd, sg.jacrev):
        np.testing.assert_allclose(transform(scaled)(x), np.linalg.inv(mixed) * units[:, None], rtol=1e-12)


def test_the_jacobian_of_least_squares_has_derivatives() -> None:
    def spread(x: Any) -> Any:
        found = so.least_squares(lambda p: p[0] * np.exp(-p[1] * T * x) - NOISY, [1.0, 1.0], xtol=1e-15, ftol=1e-15)
        return np.linalg.inv(found.jac.T @ found.jac)[0, 1] + found.cost

    difference = (spread(1.1 + 1e-3) - spread(1.1 - 1e-3)) / 2e-3
    np.testing.assert_allclose(sg.grad(spread)(1.1), difference, rtol=1e-4)


def test_functions_that_print_are_called_as_often_as_scipy_does(capsys: Any) -> None:
    def shown(x: Any) -> Any:
        def level(y: Any) -> Any:
            print("asked")
            return y - x

        return so.fsolve(level, 0.5)[0]

    shown(1.0)
    said = capsys.readouterr().out
    with pytest.warns(sg.RetraceWarning, match="does more than to compute"):
        assert sg.jit(shown)(1.0) == 1.0
    assert capsys.readouterr().out == said


def noted(y: Any) -> Any:
    print(y)
    return y


def test_what_has_no_theorem_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="constraints"):
        equation = so.NonlinearConstraint(lambda y: y[0] - 1.0, 0.0, 0.0)
        sg.grad(lambda p: so.minimize(lambda y: bowl(y, p), [0.5, 0.5], constraints=equation).x[0])(P)
    with pytest.raises(UnsupportedError, match="loss="):
        sg.grad(lambda p: so.least_squares(lambda y: y - p, [0.5, 0.5], loss=lambda z: z).x[0])(P)
    with pytest.raises(SrcgradError, match="fixed_point runs on numbers"):
        sg.jit(lambda p: so.fixed_point(lambda y: noted(y - p), 0.5), strict=True)(0.5)


DECAY = np.array([2.0, 1.5, 1.1, 0.8, 0.6])


def test_leastsq_has_the_derivatives_of_its_minimum() -> None:
    def fit(y: Any) -> Any:
        return so.leastsq(lambda p, k: p[0] * np.exp(-p[1] * k) - y, [1.0, 0.1], args=(np.arange(5),))[0]

    def by_trust_region(y: Any) -> Any:
        return so.least_squares(lambda p: p[0] * np.exp(-p[1] * np.arange(5)) - y, [1.0, 0.1]).x

    np.testing.assert_allclose(sg.jacobian(fit)(DECAY), sg.jacobian(by_trust_region)(DECAY), rtol=1e-5)
    found = [fit(DECAY + sign * 1e-4 * np.eye(5)[2]) for sign in (1, -1)]
    np.testing.assert_allclose(sg.jacobian(fit)(DECAY)[:, 2], (found[0] - found[1]) / 2e-4, rtol=1e-4)


@pytest.mark.parametrize(
    "solver",
    [
        lambda a: so.fsolve(lambda x: x**3 - a, [1.0]),
        lambda a: so.fsolve(lambda x: x[0] ** 3 - a, 1),
        lambda a: so.root(lambda x: x**3 - a, [1.0]).x,
        lambda a: so.minimize(lambda x: np.sum((x**3 - a) ** 2), [1.0], tol=1e-14).x,
        lambda a: so.least_squares(lambda x: x**3 - a, [1.0], xtol=1e-14, gtol=1e-14).x,
        lambda a: so.newton(lambda x: x**3 - a, [1.0]),
        lambda a: so.fixed_point(lambda x: (x + a / x**2) / 2.0, [1.0]),
    ],
)
def test_a_list_or_a_number_to_begin_with_is_an_array_for_the_function(solver: Any) -> None:
    slope = sg.grad(lambda a: np.sum(solver(a)))(2.0)
    np.testing.assert_allclose(slope, 2.0 ** (-2 / 3) / 3, rtol=1e-5)


def test_the_source_of_a_program_that_asks_a_solver_is_refused_by_its_name() -> None:
    def root(a: Any) -> Any:
        return so.fsolve(lambda x: x**2 - a, 1.0)[0]

    with pytest.raises(UnsupportedError, match=r"a module cannot call scipy\.optimize\.fsolve") as caught:
        sg.source(sg.grad(root))(2.0)
    assert "an argument of the function" in str(caught.value)
