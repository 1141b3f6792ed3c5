"""Rules of SciPy's solvers and minimisers: ``fsolve``, ``root``, ``fixed_point``, ``minimize``, ``minimize_scalar``,
``least_squares``, ``leastsq`` and ``curve_fit``, by the implicit function theorem; and of assignments.

SciPy's own code runs on the numbers, so the function around it is traced again at each call. What it finds counts as
known; two steps of Newton's method from there, on what is zero at a solution, change nothing but the derivatives, which
are those of the solution up to the third order (each step doubles how far they are right). Importing this module
imports SciPy.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.linalg
import scipy.optimize

from srcgrad.errors import ShapeError, UnsupportedError
from srcgrad.tracing.conversion.calls import call, call_rule
from srcgrad.tracing.conversion.convert import convert
from srcgrad.tracing.function import trace_function
from srcgrad.tracing.functions.registry import as_array, cast
from srcgrad.tracing.functions.scipy_ode import held
from srcgrad.tracing.functions.scipy_roots import solved
from srcgrad.tracing.hosts import ask
from srcgrad.tracing.trace import NeedsConcrete, current_trace
from srcgrad.tracing.tracer import Tracer, as_tracer, contains_tracer

Function = Callable[..., Any]
optimize: Any = scipy.optimize
HELD: Final = 2
"""Newton's steps from the solution."""
LOSSES: Final[dict[str, Callable[[Any], Any]]] = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2.0 * (np.sqrt(1.0 + z) - 1.0),
    "huber": lambda z: np.where(z <= 1.0, z, 2.0 * np.sqrt(np.where(z <= 1.0, 1.0, z)) - 1.0),
    "cauchy": lambda z: np.log1p(z),
    "arctan": lambda z: np.arctan(z),
}
"""What `scipy.optimize.least_squares` makes of a squared residual."""

# --- running SciPy on numbers ----------------------------------------------------------------------------------------


def numbers(x: Any) -> Any:
    """What traced values hold, in tuples, lists and dicts too."""
    if isinstance(x, Tracer):
        return np.array(x.number())[()] if not x.ndim else np.array(x.number())
    if type(x) in (tuple, list):
        return type(x)(map(numbers, x))
    return {key: numbers(value) for key, value in x.items()} if type(x) is dict else x


def apart(work: Callable[[], None]) -> None:
    """Do something in a trace of its own, of which nothing is kept."""
    trace_function(lambda _: work(), [], [], [], name="numbers", concrete=current_trace().concrete, numbers=[])


def on_numbers(f: Any) -> Any:
    """A function for SciPy, which gives it numbers and wants some; what is none as it is."""
    if not callable(f):
        return f

    def function(*places: Any) -> Any:
        found: list[Any] = []
        apart(lambda: found.append(numbers(call(f, *map(np.copy, places)))))
        return found[0]

    return function


def is_traced(f: Any, *places: Any) -> bool:
    """Whether what a function gives depends on traced values."""
    found: list[bool] = []

    def work() -> None:
        given = call(f, *places)
        parts = given if type(given) in (tuple, list) else [given]
        found.append(any(contains_tracer(part) for part in parts))

    apart(work)
    return found[0]


def vector(x0: Any) -> Any:
    """Where a solver begins, as SciPy gives it to the function."""
    return np.atleast_1d(np.asarray(x0) * 1.0)


def require_numbers(name: str) -> None:
    """Have the function traced again at each call, with its numbers known.

    Raises:
        NeedsConcrete: they are not.
    """
    if not current_trace().concrete:
        raise NeedsConcrete(
            f"scipy.optimize.{name} runs on numbers, which are known only when the program runs",
            hint="call it outside of vmap and of jit(strict=True)",
        )


def with_arguments(f: Any, args: Any, spread: bool = False) -> Any:
    """A function of the unknowns alone. ``spread``: a list of arguments is several, as where SciPy writes ``*args``."""
    more = tuple(args) if spread or isinstance(args, tuple) else (args,)
    return (lambda *places: call(f, *places, *more)) if callable(f) else f


# --- the implicit function theorem -----------------------------------------------------------------------------------


def implicit(equations: Function, found: Any) -> Any:
    """A solution that SciPy has found, as a function of the traced values that the equations depend on."""
    from srcgrad.api import jacfwd

    solution = as_tracer(np.asarray(found, np.float64).reshape(-1))

    def level(x: Any) -> Any:
        return cast(as_array(equations(x.reshape(np.shape(found)))), np.float64).reshape(-1)

    x: Any = solution
    for _ in range(HELD):
        x = x - np.linalg.solve(jacfwd(level)(x), level(x))
    return (solution + (x - held(x))).reshape(np.shape(found))


def slope_of(f: Function, jac: Any) -> Function:
    """The gradient of a function of the user's: the one that is given with it, or its derivative."""
    from srcgrad.api import grad

    if jac is True:
        return lambda x: call(f, x)[1]
    return (lambda x: call(jac, x)) if callable(jac) else grad(lambda x: as_array(call(f, x)).reshape(())[()])


def within(slope: Function, low: Any, high: Any, found: Any) -> Function:
    """What is zero at a minimum between bounds: where one is met, the distance from it stands for the slope.

    A minimum that a bound holds is nearer to it than its slope is to zero: some of SciPy's methods stay inside.
    """
    x, steep = np.reshape(found, -1), np.reshape(on_numbers(slope)(found), -1)
    at_low = x - numbers(low) <= np.maximum(steep, 0.0)
    at_high = numbers(high) - x <= np.maximum(-steep, 0.0)
    edge = np.where(at_low, np.where(at_low, low, 0.0), np.where(at_high, high, 0.0))

    def equations(x: Any) -> Any:
        return np.where(at_low | at_high, x.reshape(-1) - edge, as_array(slope(x)).reshape(-1))

    return equations


def ends(bounds: Any) -> tuple[Any, Any]:
    """The bounds of the unknowns, infinite where there are none, from what `scipy.optimize.minimize` takes."""
    if bounds is None:
        return -np.inf, np.inf
    if isinstance(bounds, optimize.Bounds):
        return bounds.lb, bounds.ub
    pairs = [(-np.inf if a is None else a, np.inf if b is None else b) for a, b in bounds]
    return tuple(as_tracer(side) for side in zip(*pairs, strict=True))  # type: ignore[return-value]


# --- equations -------------------------------------------------------------------------------------------------------


@call_rule(optimize.fsolve)
def fsolve(
    func: Any, x0: Any, args: Any = (), fprime: Any = None, full_output: Any = 0, col_deriv: Any = 0, *rest: Any,
    **options: Any,
) -> Any:  # fmt: skip
    f, slope = with_arguments(func, args), with_arguments(fprime, args)
    if not (contains_tracer(x0) or is_traced(f, vector(x0))):
        return optimize.fsolve(func, x0, args, fprime, full_output, col_deriv, *rest, **options)
    require_numbers("fsolve")
    given = (on_numbers(f), numbers(x0), (), on_numbers(slope), full_output, col_deriv)
    found = optimize.fsolve(*given, *rest, **options)
    if not full_output:
        return implicit(f, found)
    return (implicit(f, found[0]), *found[1:])


@call_rule(optimize.root)
def root(
    fun: Any, x0: Any, args: Any = (), method: str = "hybr", jac: Any = None, tol: Any = None, callback: Any = None,
    options: Any = None,
) -> Any:  # fmt: skip
    f, slope = with_arguments(fun, args), with_arguments(jac, args)
    if not (contains_tracer(x0) or is_traced(f, vector(x0))):
        return optimize.root(fun, x0, args, method, jac, tol, callback, options)
    require_numbers("root")
    given = (on_numbers(f), numbers(x0), (), method, on_numbers(slope), tol, callback, numbers(options))
    found = optimize.root(*given)
    equations = (lambda x: f(x)[0]) if jac is True else f
    found.x = implicit(equations, found.x)
    found.fun = equations(found.x)
    return found


@call_rule(optimize.newton)
def newton(
    func: Any, x0: Any, fprime: Any = None, args: Any = (), tol: Any = 1.48e-8, maxiter: int = 50, fprime2: Any = None,
    x1: Any = None, rtol: float = 0.0, full_output: bool = False, disp: bool = True,
) -> Any:  # fmt: skip
    """Of one number, or of an array of them that have one equation each."""
    f, *slopes = (with_arguments(part, args, spread=True) for part in (func, fprime, fprime2))
    if not (contains_tracer([x0, x1]) or is_traced(f, np.asarray(x0) if isinstance(x0, (list, tuple)) else x0)):
        return optimize.newton(func, x0, fprime, args, tol, maxiter, fprime2, x1, rtol, full_output, disp)
    require_numbers("newton")
    slope, bend = map(on_numbers, slopes)
    found = optimize.newton(
        on_numbers(f), numbers(x0), slope, (), tol, maxiter, bend, numbers(x1), rtol, full_output, disp
    )
    root = solved(lambda x: as_array(f(x))[()], as_tracer(found[0] if full_output else found))
    return (root, *found[1:]) if full_output else root


@call_rule(optimize.fixed_point)
def fixed_point(func: Any, x0: Any, args: Any = (), *rest: Any, **options: Any) -> Any:
    f = with_arguments(func, args, spread=True)
    if not (contains_tracer(x0) or is_traced(f, np.asarray(x0) if isinstance(x0, (list, tuple)) else x0)):
        return optimize.fixed_point(func, x0, args, *rest, **options)
    require_numbers("fixed_point")
    found = optimize.fixed_point(on_numbers(f), numbers(x0), (), *rest, **options)
    return implicit(lambda x: x - f(x), found)


# --- minima ----------------------------------------------------------------------------------------------------------


@call_rule(optimize.minimize)
def minimize(
    fun: Any, x0: Any, args: Any = (), method: Any = None, jac: Any = None, hess: Any = None, hessp: Any = None,
    bounds: Any = None, constraints: Any = (), tol: Any = None, callback: Any = None, options: Any = None,
) -> Any:  # fmt: skip
    """Of a function that is smooth at its minimum."""
    f = with_arguments(fun, args)
    if not (contains_tracer(x0) or contains_tracer(bounds) or is_traced(f, vector(x0))):
        more = (hess, hessp, bounds, constraints, tol, callback, options)
        return optimize.minimize(fun, x0, args, method, jac, *more)
    if constraints is not None and np.size(constraints):
        raise UnsupportedError(
            "scipy.optimize.minimize with constraints has no derivative rule in srcgrad",
            hint="put equations into the function that is minimised, or give it a rule with custom_jvp or custom_vjp",
        )
    require_numbers("minimize")
    slopes = [on_numbers(with_arguments(part, args)) for part in (jac, hess, hessp)]
    found = optimize.minimize(
        on_numbers(f), numbers(x0), (), method, *slopes, numbers(bounds), (), numbers(tol), callback, numbers(options)
    )
    slope = slope_of(f, jac if jac is True else with_arguments(jac, args))
    found.x = implicit(within(slope, *ends(bounds), found.x), found.x)
    value = f(found.x)
    found.fun = as_array(value[0] if jac is True else value).reshape(())[()]
    if "jac" in found:
        found.jac = slope(found.x)
    return found


@call_rule(optimize.minimize_scalar)
def minimize_scalar(
    fun: Any, bracket: Any = None, bounds: Any = None, args: Any = (), method: Any = None, tol: Any = None,
    options: Any = None,
) -> Any:  # fmt: skip
    f = with_arguments(fun, args)
    known = numbers(bounds) if current_trace().concrete else bounds
    inside = 1.0 if bounds is None and bracket is None else (bracket if bounds is None else bounds)[0]
    if not (contains_tracer(bounds) or contains_tracer(bracket) or is_traced(f, inside)):
        return optimize.minimize_scalar(fun, bracket, bounds, args, method, tol, options)
    require_numbers("minimize_scalar")
    found = optimize.minimize_scalar(on_numbers(f), numbers(bracket), known, (), method, numbers(tol), numbers(options))
    slope = slope_of(f, None)
    found.x = implicit(slope if bounds is None else within(slope, bounds[0], bounds[1], found.x), found.x)[()]
    found.fun = f(found.x)
    return found


@call_rule(optimize.least_squares)
def least_squares(
    fun: Any, x0: Any, jac: Any = "2-point", bounds: Any = (-np.inf, np.inf), method: str = "trf", ftol: Any = 1e-8,
    xtol: Any = 1e-8, gtol: Any = 1e-8, x_scale: Any = None, loss: Any = "linear", f_scale: Any = 1.0, *rest: Any,
    args: Any = (), kwargs: Any = None, **options: Any,
) -> Any:  # fmt: skip
    """Of residuals and one of SciPy's own losses."""
    named = {} if kwargs is None else kwargs

    def residuals(x: Any) -> Any:
        return as_array(call(fun, x, *args, **named)).reshape(-1)

    low, high = ends(bounds) if isinstance(bounds, optimize.Bounds) else bounds
    head = ((low, high), method, ftol, xtol, gtol, x_scale, loss, f_scale)
    if not (any(map(contains_tracer, (x0, low, high, f_scale))) or is_traced(fun, vector(x0), *args)):
        return optimize.least_squares(fun, x0, jac, *head, *rest, args=args, kwargs=named, **options)
    require_numbers("least_squares")
    if not isinstance(loss, str):
        raise UnsupportedError(
            "scipy.optimize.least_squares with a function as loss= has no derivative rule in srcgrad",
            hint=f"there are {', '.join(LOSSES)}",
        )
    slopes = on_numbers((lambda x: call(jac, x, *args, **named)) if callable(jac) else jac)
    head = tuple(map(numbers, head))
    found = optimize.least_squares(on_numbers(residuals), numbers(x0), slopes, *head, *rest, **options)

    def cost(x: Any) -> Any:
        return 0.5 * f_scale**2 * np.sum(LOSSES[loss]((residuals(x) / f_scale) ** 2))

    slope = slope_of(cost, None)
    found.x = implicit(within(slope, low, high, found.x), found.x)
    found.fun, found.cost, found.grad = residuals(found.x), cost(found.x), slope(found.x)
    return found


@call_rule(optimize.leastsq)
def leastsq(
    func: Any, x0: Any, args: Any = (), Dfun: Any = None, full_output: Any = False, col_deriv: Any = False,
    *rest: Any, **options: Any,
) -> Any:  # fmt: skip
    """The place and how it was found; of what ``full_output`` adds, nothing has derivatives."""
    f, slopes = with_arguments(func, args), with_arguments(Dfun, args)
    if not (contains_tracer(x0) or is_traced(f, vector(x0))):
        return optimize.leastsq(func, x0, args, Dfun, full_output, col_deriv, *rest, **options)
    require_numbers("leastsq")
    given = (on_numbers(f), numbers(x0), (), on_numbers(slopes), full_output, col_deriv)
    found = optimize.leastsq(*given, *rest, **options)
    slope = slope_of(lambda x: 0.5 * np.sum(as_array(f(x)).reshape(-1) ** 2), None)
    return (implicit(slope, np.atleast_1d(found[0])), *found[1:])


@call_rule(optimize.linear_sum_assignment)
def linear_sum_assignment(cost_matrix: Any, maximize: bool = False) -> tuple[Any, Any]:
    """SciPy is asked when the program runs: the numbers do not vary with the costs, but where they jump."""
    costs = as_array(cost_matrix)
    if costs.ndim != 2:
        raise ShapeError(f"expected a matrix (2-D array), got a {costs.ndim} array")

    def site(matrix: Any) -> Any:
        return tuple(np.asarray(x, np.int64) for x in optimize.linear_sum_assignment(matrix, maximize))

    like = np.zeros(min(costs.shape), np.int64)
    rows, columns = ask(site, (costs,), (like, like), "scipy.optimize.linear_sum_assignment")
    return rows, columns


@call_rule(optimize.curve_fit)
def curve_fit(
    f: Any, xdata: Any, ydata: Any, p0: Any = None, sigma: Any = None, absolute_sigma: bool = False,
    check_finite: Any = None, bounds: Any = (-np.inf, np.inf), method: Any = None, jac: Any = None, *,
    full_output: bool = False, nan_policy: Any = None, **kwargs: Any,
) -> Any:  # fmt: skip
    """The parameters and their covariance."""
    from srcgrad.api import jacfwd

    options = {"method": method, "nan_policy": nan_policy, **kwargs}
    low, high = ends(bounds) if isinstance(bounds, optimize.Bounds) else bounds
    data = (xdata, ydata, p0, sigma, low, high)
    if not any(map(contains_tracer, data)):
        given = (xdata, ydata, p0, sigma, absolute_sigma, check_finite, bounds)
        return optimize.curve_fit(f, *given, jac=jac, full_output=full_output, **options)
    if full_output:
        raise UnsupportedError("scipy.optimize.curve_fit with full_output=True is not supported on traced values")
    require_numbers("curve_fit")
    model, slopes = on_numbers(f), on_numbers(jac)
    model.__signature__ = inspect.signature(f)  # which says how many parameters there are
    x, y, start, spread, *edges = map(numbers, data)
    given = (x, y, start, spread, absolute_sigma, check_finite, tuple(edges))
    popt = optimize.curve_fit(model, *given, jac=slopes, **options)[0]

    def residuals(p: Any) -> Any:
        away = (as_array(call(f, xdata, *p)) - as_array(ydata)).reshape(-1)
        if sigma is None:
            return away
        errors = as_array(sigma)
        if errors.ndim < 2:
            return away / errors
        return call(scipy.linalg.solve_triangular, np.linalg.cholesky(errors), away, lower=True)

    slope = slope_of(lambda p: 0.5 * np.sum(residuals(p) ** 2), None)
    found = implicit(within(slope, low, high, popt), popt)
    steep = jacfwd(residuals)(found)
    covariance = np.linalg.inv(steep.T @ steep)
    if not absolute_sigma:
        freedom = steep.shape[0] - steep.shape[1]
        covariance = covariance * (np.sum(residuals(found) ** 2) / freedom if freedom > 0 else np.inf)
    return found, covariance


# --- functions to try them on ----------------------------------------------------------------------------------------


for _function in (optimize.rosen, optimize.rosen_der, optimize.rosen_hess, optimize.rosen_hess_prod):
    call_rule(_function)(lambda *args, of=_function: convert(of)(*args))
