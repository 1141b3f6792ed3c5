"""Rules of SciPy's solvers and minimisers: ``fsolve``, ``root``, ``fixed_point``, ``minimize``, ``minimize_scalar``,
``least_squares``, ``leastsq`` and ``curve_fit``, by the implicit function theorem; and of assignments.

SciPy's own code runs on numbers (`scipy_asked`). What it finds counts as known; two steps of Newton's method from
there, on what is zero at a solution, have its derivatives up to the third order (each step doubles how far they are
right). Where no derivative is asked for they are not made. Importing this module imports SciPy.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.linalg
import scipy.optimize

from srcgrad.errors import ShapeError, UnsupportedError
from srcgrad.tracing.conversion.calls import call, call_rule
from srcgrad.tracing.conversion.convert import convert
from srcgrad.tracing.functions.registry import as_array, cast
from srcgrad.tracing.functions.scipy_asked import fields, is_traced, moving, numbers, solution
from srcgrad.tracing.functions.scipy_constrained import conditions, constraints_in, edges, functions_in
from srcgrad.tracing.functions.scipy_ode import held
from srcgrad.tracing.functions.scipy_roots import solved
from srcgrad.tracing.hosts import ask
from srcgrad.tracing.tracer import Tracer, as_tracer, contains_tracer, emit

Function = Callable[..., Any]
optimize: Any = scipy.optimize
HELD: Final = 2
"""Newton's steps from the solution."""
MOST_GROWTH: Final = 2.0**-8 / np.finfo(float).eps
"""How much errors of rounding may grow where equations are solved: two digits are left then."""
WITHOUT_SLOPES: Final = ("nelder-mead", "powell", "cobyla", "cobyqa", "trust-constr")
"""Methods of `scipy.optimize.minimize` whose solutions have no gradient by the name ``jac``."""
LOSSES: Final[dict[str, Callable[[Any], Any]]] = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2.0 * (np.sqrt(1.0 + z) - 1.0),
    "huber": lambda z: np.where(z <= 1.0, z, 2.0 * np.sqrt(np.where(z <= 1.0, 1.0, z)) - 1.0),
    "cauchy": lambda z: np.log1p(z),
    "arctan": lambda z: np.arctan(z),
}
"""What `scipy.optimize.least_squares` makes of a squared residual."""

# --- what SciPy is given ----------------------------------------------------------------------------------------------


def vector(x0: Any) -> Any:
    """Where a solver begins, as SciPy gives it to the function."""
    return np.atleast_1d(np.asarray(x0) * 1.0)


def place_like(x0: Any, flat: bool = False) -> Any:
    """A place of the shape of those that SciPy gives to a function for this beginning."""
    shape = np.shape(as_array(x0))
    return np.zeros((max(1, math.prod(shape)),) if flat else shape)[()]


def with_arguments(f: Any, args: Any, spread: bool = False) -> Any:
    """A function of the unknowns alone. ``spread``: a list of arguments is several, as where SciPy writes ``*args``."""
    more = tuple(args) if spread or isinstance(args, tuple) else (args,)
    return (lambda *places: call(f, *places, *more)) if callable(f) else f


# --- the implicit function theorem -----------------------------------------------------------------------------------


def implicit(equations: Function, found: Any) -> Any:
    """A solution that SciPy has found, as a function of the traced values that the equations depend on."""
    from srcgrad.api import jacfwd

    shape = np.shape(found)
    place: Any = cast(as_tracer(found), np.float64).reshape(-1)

    def level(x: Any) -> Any:
        return cast(as_array(equations(x.reshape(shape))), np.float64).reshape(-1)

    x, determined = place, None
    for _ in range(HELD):
        slopes = jacfwd(level)(x)
        determined = determines(slopes) if determined is None else determined
        x = x - np.linalg.solve(np.where(determined, slopes, 0.0), level(x))
    return moving(place, x).reshape(shape)


def determines(slopes: Any) -> Any:
    """Whether equations of these slopes determine the unknowns, beyond what rounding makes of equations that do not:
    as those for the slope of a function that a shift of all unknowns leaves as it is.

    The diagonal of |A⁻¹| |A| is the same whatever units the unknowns and the equations are in: 1 for a diagonal matrix
    of any condition, and the inverse of the rounding for a singular one.
    """
    matrix = held(slopes)
    return np.all(np.sum(np.abs(emit("inv", matrix, strict=False)) * np.abs(matrix).T, axis=1) < MOST_GROWTH)


def slope_of(f: Function, jac: Any) -> Function:
    """The gradient of a function of the user's: the one that is given with it, or its derivative."""
    from srcgrad.api import grad

    if jac is True:
        return lambda x: call(f, x)[1]
    return (lambda x: call(jac, x)) if callable(jac) else grad(lambda x: as_array(call(f, x)).reshape(())[()])


def within(slope: Function, low: Any, high: Any, found: Any) -> Function:
    """What is zero at a minimum between bounds: where one is met, the distance from it stands for the slope."""
    place = as_tracer(found)
    bound, edge = edges(place.reshape(-1), held(as_array(slope(place))).reshape(-1), low, high)

    def equations(x: Any) -> Any:
        return np.where(bound, x.reshape(-1) - edge, as_array(slope(x)).reshape(-1))

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
    n = place_like(x0, flat=True)

    def run(f: Any, slope: Any, x0: Any) -> dict[str, Any]:
        found = optimize.fsolve(f, x0, (), slope, full_output, col_deriv, *numbers(list(rest)), **numbers(options))
        return {"x": found[0], "ier": found[2], "mesg": found[3], **found[1]} if full_output else {"x": found}

    like = {"x": n}
    if full_output:
        like |= {
            "ier": 0,
            "mesg": "",
            "nfev": 0,
            "fvec": n,
            "fjac": np.outer(n, n),
            "r": np.zeros(n.size * (n.size + 1) // 2),
        }
        like |= {"qtf": n, **({} if fprime is None else {"njev": 0})}
    known = not contains_tracer([rest, options])
    found = solution("fsolve", run, [(f, [n]), (slope, [n])], [x0], like if known else None)
    x = implicit(f, found.pop("x"))
    if not full_output:
        return x
    said = [found.pop(name) for name in ("ier", "mesg")]
    return (x, fields(found), *said)


@call_rule(optimize.root)
def root(
    fun: Any, x0: Any, args: Any = (), method: str = "hybr", jac: Any = None, tol: Any = None, callback: Any = None,
    options: Any = None,
) -> Any:  # fmt: skip
    f, slope = with_arguments(fun, args), with_arguments(jac, args)
    if not (contains_tracer(x0) or is_traced(f, vector(x0))):
        return optimize.root(fun, x0, args, method, jac, tol, callback, options)
    flat = method.lower() in ("hybr", "lm")
    place = place_like(x0, flat)

    def run(f: Any, slope: Any, x0: Any) -> Any:
        return optimize.root(f, x0, (), method, slope, numbers(tol), callback, numbers(options))

    like = {"x": place, "success": True, "message": "", **({"status": 0, "nfev": 0} if flat else {})}
    known = not (callback or contains_tracer([tol, options]) or place.ndim == 0)
    found = solution("root", run, [(f, [place]), (slope, [place])], [x0], like if known else None)
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
    place = place_like(x0)
    several = np.size(place) > 1

    def run(f: Any, slope: Any, bend: Any, x0: Any, *x1: Any) -> Any:
        found = optimize.newton(f, x0, slope, (), tol, maxiter, bend, *(x1 or (None,)), rtol, full_output, disp)
        if not full_output:
            return {"x": found}
        return {"x": found[0], "more": found[1:], **({} if several else found[1])}

    said = {"iterations": 0, "function_calls": 0, "converged": True, "flag": ""}
    like = {"x": place, **(said if full_output else {})}
    known = not contains_tracer([tol, maxiter, rtol]) and not (several and full_output)
    functions = [(part, [place]) for part in (f, *slopes)]
    found = solution("newton", run, functions, [x0, *([] if x1 is None else [x1])], like if known else None)
    root = solved(lambda x: as_array(f(x))[()], as_tracer(found.pop("x")))
    if not full_output:
        return root
    return (root, *found["more"]) if "more" in fields(found) else (root, found)


@call_rule(optimize.fixed_point)
def fixed_point(func: Any, x0: Any, args: Any = (), *rest: Any, **options: Any) -> Any:
    f = with_arguments(func, args, spread=True)
    if not (contains_tracer(x0) or is_traced(f, np.asarray(x0) if isinstance(x0, (list, tuple)) else x0)):
        return optimize.fixed_point(func, x0, args, *rest, **options)
    place = place_like(x0)

    def run(f: Any, x0: Any) -> Any:
        return {"x": optimize.fixed_point(f, x0, (), *numbers(list(rest)), **numbers(options))}

    like = None if contains_tracer([rest, options]) else {"x": place}
    return implicit(lambda x: x - f(x), solution("fixed_point", run, [(f, [place])], [x0], like)["x"])


# --- minima ----------------------------------------------------------------------------------------------------------


@call_rule(optimize.minimize)
def minimize(
    fun: Any, x0: Any, args: Any = (), method: Any = None, jac: Any = None, hess: Any = None, hessp: Any = None,
    bounds: Any = None, constraints: Any = (), tol: Any = None, callback: Any = None, options: Any = None,
) -> Any:  # fmt: skip
    """Of a function that is smooth at its minimum."""
    f = with_arguments(fun, args)
    given = [] if constraints is None or not np.size(constraints) else constraints
    traced = contains_tracer(x0) or contains_tracer(bounds) or is_traced(f, vector(x0))
    if not (traced or any(is_traced(part, vector(x0)) for part in functions_in(given))):
        options = (hess, hessp, bounds, constraints, tol, callback, options)
        return optimize.minimize(fun, x0, args, method, jac, *options)
    limits = constraints_in(given, with_arguments)
    place, more = place_like(x0, flat=True), [with_arguments(part, args) for part in (jac, hess, hessp)]
    low, high = ends(bounds)

    def run(f: Any, jac: Any, hess: Any, hessp: Any, *rest: Any) -> Any:
        *parts, x0, low, high = rest
        between = None if bounds is None else optimize.Bounds(*(np.broadcast_to(x, place.shape) for x in (low, high)))
        within = [
            one.for_scipy(*pair) for one, pair in zip(limits, zip(parts[::2], parts[1::2], strict=True), strict=True)
        ]
        return optimize.minimize(
            f, x0, (), method, jac, hess, hessp, between, within, numbers(tol), callback, numbers(options)
        )

    like = {"x": place, "success": True, "message": "", "status": 0, "nit": 0, "nfev": 0}
    by_slopes = method is None or str(method).lower() not in WITHOUT_SLOPES
    like |= {"jac": place, "njev": 0} if by_slopes else {}
    if str(method).lower() == "cobyla":
        del like["nit"]
    functions = [(f, [place]), *[(part, [place]) for part in more[:2]], (more[2], [place, place])]
    functions += [(part, [place]) for one in limits for part in (one.value, one.slopes)]
    known = isinstance(method, (str, type(None))) and not (callback or contains_tracer([tol, options]))
    found = solution("minimize", run, functions, [x0, low, high], like if known else None)
    slope = slope_of(f, jac if jac is True else more[0])
    if limits:
        equations, at = conditions(slope, limits, low, high, found.x)
        found.x = implicit(equations, at)[: place.size]
    else:
        found.x = implicit(within(slope, low, high, found.x), found.x)
    value = f(found.x)
    found.fun = as_array(value[0] if jac is True else value).reshape(())[()]
    if "jac" in fields(found):
        found.jac = slope(found.x)
    return found


@call_rule(optimize.minimize_scalar)
def minimize_scalar(
    fun: Any, bracket: Any = None, bounds: Any = None, args: Any = (), method: Any = None, tol: Any = None,
    options: Any = None,
) -> Any:  # fmt: skip
    f = with_arguments(fun, args)
    inside = 1.0 if bounds is None and bracket is None else (bracket if bounds is None else bounds)[0]
    if not (contains_tracer(bounds) or contains_tracer(bracket) or is_traced(f, inside)):
        return optimize.minimize_scalar(fun, bracket, bounds, args, method, tol, options)
    place, begins = np.float64(), 0 if bracket is None else len(bracket)

    def run(f: Any, *given: Any) -> Any:
        between = None if bounds is None else given[begins:]
        return optimize.minimize_scalar(f, given[:begins] or None, between, (), method, numbers(tol), numbers(options))

    like = {"x": place, "success": True, "message": "", "nfev": 0, "nit": 0}
    ends = [*(bracket or ()), *(bounds or ())]
    found = solution("minimize_scalar", run, [(f, [place])], ends, None if contains_tracer([tol, options]) else like)
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
    from srcgrad.api import jacfwd

    named = {} if kwargs is None else kwargs

    def residuals(x: Any) -> Any:
        return as_array(call(fun, x, *args, **named)).reshape(-1)

    low, high = ends(bounds) if isinstance(bounds, optimize.Bounds) else bounds
    head = (ftol, xtol, gtol, x_scale, loss)
    if not (any(map(contains_tracer, (x0, low, high, f_scale))) or is_traced(residuals, vector(x0))):
        more = ((low, high), method, *head, f_scale, *rest)
        return optimize.least_squares(fun, x0, jac, *more, args=args, kwargs=named, **options)
    if not isinstance(loss, str):
        raise UnsupportedError(
            "scipy.optimize.least_squares with a function as loss= has no derivative rule in srcgrad",
            hint=f"there are {', '.join(LOSSES)}",
        )
    place = place_like(x0, flat=True)

    def run(f: Any, slopes: Any, x0: Any, low: Any, high: Any, f_scale: Any) -> Any:
        between = tuple(np.broadcast_to(x, place.shape) for x in (low, high))
        return optimize.least_squares(
            f, x0, slopes, between, method, *numbers(head), float(f_scale), *numbers(rest), **numbers(options)
        )

    functions = [(residuals, [place]), ((lambda x: call(jac, x, *args, **named)) if callable(jac) else jac, [place])]
    like = {"x": place, "success": True, "message": "", "status": 0, "nfev": 0, "optimality": 0.0}
    like |= {"active_mask": place.astype(int)}
    known = not contains_tracer([head, rest, options])
    found = solution("least_squares", run, functions, [x0, low, high, f_scale], like if known else None)

    def cost(x: Any) -> Any:
        return 0.5 * f_scale**2 * np.sum(LOSSES[loss]((residuals(x) / f_scale) ** 2))

    slope = slope_of(cost, None)
    found.x = implicit(within(slope, low, high, found.x), found.x)
    found.fun, found.cost, found.grad = residuals(found.x), cost(found.x), slope(found.x)
    if loss == "linear":  # for others SciPy's is one of residuals that it has weighed
        found.jac = jacfwd(residuals)(found.x)
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
    place = place_like(x0, flat=True)

    def run(f: Any, slopes: Any, x0: Any) -> Any:
        x, *more = optimize.leastsq(f, x0, (), slopes, full_output, col_deriv, *numbers(list(rest)), **numbers(options))
        return {"x": np.atleast_1d(x), "more": more, "ier": more[-1]}

    known = not (full_output or contains_tracer([rest, options]))
    functions = [(f, [place]), (slopes, [place])]
    found = solution("leastsq", run, functions, [x0], {"x": place, "ier": 0} if known else None)
    slope = slope_of(lambda x: 0.5 * np.sum(as_array(f(x)).reshape(-1) ** 2), None)
    return (implicit(slope, found["x"]), *(found["more"] if full_output else [found["ier"]]))


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
    count = len(inspect.signature(f).parameters) - 1 if p0 is None else np.size(as_array(p0))
    data = (xdata, ydata, p0, sigma, low, high)
    arrays = isinstance(xdata, (list, tuple, np.ndarray, Tracer))
    if not (any(map(contains_tracer, data)) or is_traced(f, np.asarray(xdata) if arrays else xdata, *np.ones(count))):
        plain = (xdata, ydata, p0, sigma, absolute_sigma, check_finite, bounds)
        return optimize.curve_fit(f, *plain, jac=jac, full_output=full_output, **options)
    for name, used in {"full_output=True": full_output, "nan_policy='omit'": nan_policy == "omit"}.items():
        if used:
            raise UnsupportedError(f"scipy.optimize.curve_fit with {name} is not supported on traced values")
    given = {"xdata": xdata if arrays else 0.0, "ydata": ydata, "p0": p0, "sigma": sigma, "low": low, "high": high}
    given = {name: value for name, value in given.items() if value is not None}

    def run(model: Any, slopes: Any, *values: Any) -> Any:
        known = dict(zip(given, values, strict=True))
        edges = tuple(np.broadcast_to(known.pop(name), count) for name in ("low", "high"))
        found = optimize.curve_fit(
            parametric(model), known.pop("xdata"), known.pop("ydata"), jac=parametric(slopes), bounds=edges,
            absolute_sigma=absolute_sigma, check_finite=check_finite, **known, **numbers(options),
        )  # fmt: skip
        return dict(zip(("x", "covariance"), found, strict=True))

    def parametric(model: Any) -> Any:
        if not callable(model):
            return model
        found: Any = lambda _, *p: model(*p)  # noqa: E731
        found.__signature__ = inspect.signature(f)  # which says how many parameters there are
        return found

    def at_data(model: Any) -> Any:
        return (lambda *p: call(model, xdata, *p)) if callable(model) else model

    functions = [(at_data(part), [np.float64()] * count) for part in (f, jac)]
    like = None if contains_tracer([options]) else {"x": np.zeros(count), "covariance": np.zeros((count, count))}
    popt, known = fields(solution("curve_fit", run, functions, list(given.values()), like)).values()

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
    return found, moving(as_tracer(known), covariance)


# --- functions to try them on ----------------------------------------------------------------------------------------


for _function in (optimize.rosen, optimize.rosen_der, optimize.rosen_hess, optimize.rosen_hess_prod):
    call_rule(_function)(lambda *args, of=_function: convert(of)(*args))
