"""Floating-point errors that ``np.errstate(divide="raise")`` asks for: checks of the program, where NumPy raises them.

The processor's flags say what NumPy raises; here it is read off the operands and the result. ``divide``: infinite at a
pole. ``over``: infinite, of finite operands. ``invalid``: nan, of operands that are none. ``under``: below the normal
numbers and not exact. The state is that of the lines of the user's which run while tracing, so that a program has the
checks wherever it is run; a state around the call of a program changes nothing in it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.tracing.tracer import SEQUENCES, Tracer, cast_value, from_value

SAID: Final = {
    "divide": "divide by zero",
    "over": "overflow",
    "under": "underflow",
    "invalid": "invalid value",
}
"""The kinds of errors in the order in which NumPy looks for them, and their names in its messages."""
POLES: Final[dict[np.ufunc, Callable[..., Any]]] = {
    np.true_divide: lambda x, y: (y == 0) & (x != 0) & np.isfinite(x),
    np.floor_divide: lambda x, y: (y == 0) & ((x != 0) if kind_of(x, y) in "fc" else True) & np.isfinite(x),
    np.remainder: lambda x, y: (y == 0) & (kind_of(x, y) in "biu"),
    np.fmod: lambda x, y: (y == 0) & (kind_of(x, y) in "biu"),
    np.divmod: lambda x, y: (y == 0) & ((x != 0) if kind_of(x, y) in "fc" else True) & np.isfinite(x),
    np.reciprocal: lambda x: x == 0,
    np.power: lambda x, y: (x == 0) & (y < 0) & np.isfinite(y),
    np.float_power: lambda x, y: (x == 0) & (y < 0) & np.isfinite(y),
    np.log: lambda x: x == 0,
    np.log2: lambda x: x == 0,
    np.log10: lambda x: x == 0,
    np.log1p: lambda x: x == -1,
    np.arctanh: lambda x: np.abs(x) == 1,
}
"""Where a ufunc of finite operands is infinite, or has no result among the whole numbers."""
VANISHING: Final = frozenset({np.exp, np.exp2, np.logaddexp, np.logaddexp2})
"""Ufuncs that are nowhere exactly 0 at finite numbers."""
EXACT_WHERE: Final[dict[np.ufunc, Callable[..., Any]]] = {
    np.multiply: lambda found, x, y: product_is_exact(found, x, y),
    np.square: lambda found, x: product_is_exact(found, x, x),
    np.true_divide: lambda found, x, y: (found * raised(found)) * y == x * raised(found),
    np.reciprocal: lambda found, x: (found * raised(found)) * x == raised(found),
    np.power: lambda found, x, y: x == 0,
    np.float_power: lambda found, x, y: x == 0,
}
"""Where a result that is below the normal numbers is exact."""
SILENT: Final = frozenset(
    {np.copysign, np.nextafter, np.spacing, np.maximum, np.minimum, np.fmax, np.fmin, np.heaviside}
)
REDUCTIONS: Final[dict[Any, str]] = {
    np.sum: "reduce", np.prod: "reduce", np.mean: "reduce", np.var: "reduce", np.std: "reduce", np.average: "reduce",
    np.nansum: "reduce", np.nanmean: "reduce", np.nanprod: "reduce", np.cumsum: "accumulate", np.cumprod: "accumulate",
    np.dot: "dot", np.vdot: "vdot", np.inner: "dot", np.tensordot: "dot", np.matmul: "matmul", np.outer: "multiply",
    np.linalg.norm: "dot", np.linalg.det: "det", np.diff: "subtract", np.ediff1d: "subtract", np.trapezoid: "add",
    np.gradient: "divide", np.cross: "multiply", np.kron: "multiply", np.polyval: "add", np.trace: "reduce",
    np.ptp: "subtract", np.median: "reduce", np.cov: "dot", np.corrcoef: "divide", np.logspace: "power",
    np.linspace: "multiply", np.geomspace: "multiply", np.interp: "interp", np.sinc: "divide", np.unwrap: "remainder",
    np.quantile: "subtract", np.percentile: "subtract", np.vander: "accumulate", np.linalg.matrix_power: "matmul",
    np.linalg.multi_dot: "dot", np.nanvar: "reduce", np.nanstd: "reduce", np.nancumsum: "accumulate",
}  # fmt: skip
"""NumPy's functions of several ufuncs that may raise, and what the error names: that of the sum, mostly."""

ALONG: Final = frozenset(
    {
        *(np.sum, np.prod, np.mean, np.var, np.std, np.average, np.median, np.ptp, np.cumsum, np.cumprod, np.diff),
        *(np.nansum, np.nanmean, np.nanprod, np.nanvar, np.nanstd, np.nancumsum, np.trapezoid, np.linalg.norm),
    }
)
"""Those of which an element of the result belongs to a row of the first operand, along ``axis``."""
WHOLE: Final = None
"""The axis of what is computed of all elements."""


CALLING: Final = frozenset({np.apply_along_axis, np.apply_over_axes, np.piecewise, np.fromfunction, np.vectorize})
LIBRARIES: Final = ("numpy", "scipy")
SOLVERS: Final = ("scipy.integrate", "scipy.optimize")
STATED: Final = np.errstate()(len).__code__
"""The code of what ``np.errstate`` makes of a function that it decorates."""


def in_its_state(decorated: Any, follow: Callable[[Any], Any]) -> Any:
    """A function that ``np.errstate`` decorates, with another one in place of the user's."""
    function, state = (cells_of(decorated)[name] for name in ("func", "self"))
    return state(follow(function))


def cells_of(function: Any) -> dict[str, Any]:
    cells = function.__closure__
    return {name: cell.cell_contents for name, cell in zip(function.__code__.co_freevars, cells, strict=True)}


def kind_of(*operands: Any) -> str:
    return np.result_type(*[x.dtype if isinstance(x, Tracer) else np.asarray(x).dtype for x in operands]).kind


def raised_kinds() -> tuple[str, ...]:
    """The kinds of errors that are raised where the user's line stands."""
    state = np.geterr()
    return tuple(kind for kind in SAID if state[kind] == "raise")  # type: ignore[literal-required]


def name_of(ufunc: np.ufunc, left: Any, right: Any) -> str:
    """What an error of an operator names: between NumPy's scalars it is none of the ufunc."""
    name = ufunc.__name__
    if all(x.scalar if isinstance(x, Tracer) else np.ndim(x) == 0 for x in (left, right)):
        return f"scalar {name}"
    if ufunc is np.power and type(right) in (int, float):
        return {2: "square", -1: "reciprocal", 0.5: "sqrt"}.get(right, name)
    return name


def judged_function(function: Any, rule: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """A rule for a function of NumPy's or SciPy's, with the checks of what it gives, and none of how it is found."""
    kinds = raised_kinds()
    if not kinds or calls_back(function):
        return rule(*args, **kwargs)
    if function not in REDUCTIONS:
        with np.errstate(all="ignore"):
            return rule(*args, **kwargs)
    operands = [*args, *[value for name, value in kwargs.items() if name != "out"]]
    compute = functools.partial(rule, *args, **kwargs)
    return judged(kinds, function, REDUCTIONS[function], operands, compute, axis_asked(function, args, kwargs))


@functools.cache
def axis_of(function: Any) -> tuple[int, Any]:
    """The position of the parameter ``axis`` of a function of NumPy's, and its default."""
    parameters = list(inspect.signature(function).parameters.values())
    return next((k, parameter.default) for k, parameter in enumerate(parameters) if parameter.name == "axis")


def axis_asked(function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    if function not in ALONG:
        return WHOLE
    position, default = axis_of(function)
    return args[position] if len(args) > position else kwargs.get("axis", default)


def calls_back(function: Any) -> bool:
    """Whether a function is none of a library's, or one that calls functions of the user's."""
    module = "numpy" if isinstance(function, str) else getattr(function, "__module__", None) or ""
    return function in CALLING or not module.startswith(LIBRARIES) or module.startswith(SOLVERS)


def judged_method(name: str, rule: Callable[..., Any], array: Tracer) -> Callable[..., Any]:
    """A method of an array, where errors may be raised in it."""
    if not raised_kinds():
        return rule.__get__(array)  # type: ignore[no-any-return]
    return lambda *args, **kwargs: judged_function(getattr(np, name, name), rule, (array, *args), kwargs)


def judged_cast(array: Tracer, found: Tracer) -> Tracer:
    """What ``astype`` makes of an array, with the checks of it: no integer is nan or infinite."""
    kinds = () if array.dtype.kind not in "fc" or found.dtype.kind == "b" else raised_kinds()
    if not kinds:
        return found
    with np.errstate(all="ignore"):
        if found.dtype.kind in "fc" and "over" in kinds:
            check(np.isinf(found) & np.isfinite(array), "overflow encountered in cast")
        if found.dtype.kind == "f" and "under" in kinds:
            small = np.abs(found) < np.finfo(found.dtype).tiny
            check(small & (from_value(cast_value(found.read(), array.dtype)) != array), "underflow encountered in cast")
        if found.dtype.kind in "iu" and "invalid" in kinds:
            limits = np.iinfo(found.dtype)
            whole = np.trunc(array)
            fits = (whole >= float(limits.min)) & (whole <= float(limits.max)) & (whole < 2.0**limits.bits)
            check(np.logical_not(fits), "invalid value encountered in cast")
    return found


@contextmanager
def no_state_of_the_caller() -> Iterator[None]:
    """Trace in the state that NumPy begins with, where the caller has asked for errors: a program is for all calls."""
    with np.errstate(**dict.fromkeys(raised_kinds(), "warn")):  # type: ignore[arg-type]
        yield


class Given(NamedTuple):
    """The numbers of which something was computed, and the axis of the first along which that was."""

    numbers: Sequence[Any]
    axis: Any


def judged(
    kinds: tuple[str, ...],
    ufunc: Any,
    name: str,
    operands: Sequence[Any],
    compute: Callable[[], Any],
    axis: Any = WHOLE,
) -> Any:
    """What a ufunc or function gives, with the checks of its results."""
    with np.errstate(all="ignore"):
        found = compute()
        results = [x for x in (found if isinstance(found, tuple) else (found,)) if isinstance(x, Tracer)]
        given = Given([x for operand in operands for x in numbers_in(operand)], axis)
        for kind in kinds:
            for result in results:
                failed = FAILED[kind](ufunc, result, given)
                if failed is not None:
                    check(failed, f"{SAID[kind]} encountered in {name}")
    return found


def check(failed: Any, message: str) -> None:
    from srcgrad.tracing.conversion.effects import emit_check  # which is written with tracers

    emit_check(np.logical_not(np.any(failed)), "FloatingPointError", message)


def numbers_in(operand: Any) -> Iterator[Any]:
    """The arrays and numbers in an argument."""
    number = isinstance(operand, (Tracer, int, float, complex, np.generic))
    if number or (isinstance(operand, np.ndarray) and operand.dtype.kind in "biufc"):
        yield operand
    elif isinstance(operand, SEQUENCES):
        for item in operand:
            yield from numbers_in(item)


def all_of(predicate: Callable[[Any], Any], ufunc: Any, found: Tracer, given: Given) -> Any:
    """Whether it holds for each operand, of the elements that an element of the result is computed of."""
    holds: Any = True
    for operand in given.numbers:
        one = predicate(operand)
        rows = given.axis is not WHOLE and np.shape(operand) == np.shape(given.numbers[0])
        if not is_elementwise(ufunc):
            one = by_row(one, given.axis, found) if rows else np.all(one)
        holds = np.logical_and(holds, one)
    return holds


def by_row(one: Any, axis: Any, found: Tracer) -> Any:
    """Whether it holds along the axis, for each element of the result, which may have that axis or not."""
    rows = np.all(one, axis=axis, keepdims=True)
    return rows if found.ndim == rows.ndim else rows.reshape(found.shape)


def is_elementwise(ufunc: Any) -> bool:
    return isinstance(ufunc, np.ufunc) and ufunc.signature is None


def at_pole(ufunc: Any, given: Given) -> Any:
    return POLES[ufunc](*given.numbers) if ufunc in POLES else False


def divides(ufunc: Any, found: Tracer, given: Given) -> Any:
    if ufunc is np.gradient:
        return np.logical_and(np.isinf(found), all_of(np.isfinite, ufunc, found, given))
    return POLES[ufunc](*given.numbers) if ufunc in POLES else None


def overflows(ufunc: Any, found: Tracer, given: Given) -> Any:
    if found.dtype.kind not in "fc" or ufunc in SILENT or ufunc is np.gradient:
        return None
    finite = all_of(np.isfinite, ufunc, found, given)
    return np.isinf(found) & finite & np.logical_not(at_pole(ufunc, given))


def is_invalid(ufunc: Any, found: Tracer, given: Given) -> Any:
    if found.dtype.kind not in "fc" or ufunc in SILENT:
        return None
    none = np.isnan(found)
    if ufunc is np.floor_divide:  # NumPy subtracts an infinite quotient from itself
        none = none | (np.isinf(found) & np.isfinite(given.numbers[0]) & (given.numbers[1] != 0))
    return none & all_of(lambda x: np.logical_not(np.isnan(x)), ufunc, found, given)


def underflows(ufunc: Any, found: Tracer, given: Given) -> Any:
    if found.dtype.kind != "f":
        return None
    small = np.abs(found) < np.finfo(found.dtype).tiny
    if ufunc in VANISHING:
        return small & all_of(np.isfinite, ufunc, found, given)
    if ufunc not in EXACT_WHERE:
        return None
    exact = EXACT_WHERE[ufunc](found, *given.numbers)
    return small & all_of(np.isfinite, ufunc, found, given) & np.logical_not(exact)


def raised(found: Tracer) -> Any:
    """A power of 2 that makes normal numbers of all others."""
    return np.ldexp(found.dtype.type(1), {2: 14, 4: 80}.get(found.dtype.itemsize, 600))


def product_is_exact(found: Any, x: Any, y: Any) -> Any:
    """The smaller factor is no larger than the root of the smallest normal number: it may be raised."""
    x, y = np.abs(x), np.abs(y)
    product = (np.minimum(x, y) * raised(found)) * np.maximum(x, y)
    return np.where(found == 0, (x == 0) | (y == 0), product == np.abs(found) * raised(found))


FAILED: Final[dict[str, Callable[[Any, Tracer, Given], Any]]] = {
    "divide": divides,
    "over": overflows,
    "under": underflows,
    "invalid": is_invalid,
}
"""Where an error of each kind is raised; None: nowhere."""
