"""What SciPy's own classes of distributions say of them: moments, entropies, and the laws of those without rules here.

A class has its formulas in methods that are plain Python on arrays (``_pdf``, ``_cdf``, ``_stats`` and so on, which
SciPy documents for those who write one); they are converted like the user's own functions. What a class leaves to
numerical integration has no rule. Importing this module imports SciPy.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.special as sc
import scipy.stats

from srcgrad.errors import UnsupportedError
from srcgrad.tracing.conversion.convert import convert
from srcgrad.tracing.functions import laws_truncated
from srcgrad.tracing.functions.laws import INF, Formula, Law
from srcgrad.tracing.functions.laws_at_ends import AT_ENDS, of_logarithm
from srcgrad.tracing.hosts import ask
from srcgrad.tracing.tracer import as_tracer

MOMENTS: Final[dict[str, tuple[Formula, Formula]]] = {
    "nbinom": (lambda n, p: n * (1.0 - p) / p, lambda n, p: n * (1.0 - p) / p**2),
    "truncpareto": (
        lambda b, c: pareto_moment(1, b, c),
        lambda b, c: pareto_moment(2, b, c) - pareto_moment(1, b, c) ** 2,
    ),
    **laws_truncated.MOMENTS,
}
"""Mean and variance where SciPy's formulas are in C, others where a shape is a whole number, or cancel."""
DEVIATIONS: Final[dict[str, Formula]] = {
    "binom": lambda n, p: np.sqrt(n * p) * np.sqrt(1.0 - p),
    "bernoulli": lambda p: np.sqrt(p) * np.sqrt(1.0 - p),
}
"""Standard deviations as products: that of a difference is nan where it is 0, as its slope is infinite there."""
WITHOUT: Final = frozenset({"kappa3"})
"""Of which SciPy says no more than which moments are infinite."""
SWITCHING: Final = frozenset({"genextreme", "kappa4", "tukeylambda"})
"""Whose formulas are others where a shape is 0: the branch for it does not vary with the shape, but the law does."""
PLACED: Final = frozenset({"_pdf", "_logpdf", "_pmf", "_logpmf", "_cdf", "_sf", "_logcdf", "_logsf", "_ppf", "_isf"})
"""The methods of a place, or a probability, and the shapes."""
GENERIC: Final = (scipy.stats.rv_continuous, scipy.stats.rv_discrete)


def pareto_moment(order: int, b: Any, c: Any) -> Any:
    """The integral of x**order over the density b x**(-b - 1)/(1 - c**-b) from 1 to c, also where b is the order."""
    width = np.log(c)
    return sc.exprel((order - b) * width) / sc.exprel(-b * width)


def own(distribution: Any, *names: str) -> Formula | None:
    """The first of these methods that the distribution's class has a formula for."""
    for name in names:
        for cls in type(distribution).__mro__:
            if cls in GENERIC:
                break
            if name in vars(cls):
                method = vars(cls)[name]
                if name in PLACED and loops(method.__code__):
                    return lambda *operands: on_vectors(convert(method), distribution, *operands)
                return lambda *operands, **options: convert(method)(distribution, *operands, **options)
    return None


def loops(code: Any) -> bool:
    """Whether Python code has a ``for``, its comprehensions' own code included."""
    if any(step.opname == "FOR_ITER" for step in dis.get_instructions(code)):
        return True
    return any(loops(part) for part in code.co_consts if inspect.iscode(part))


def on_vectors(method: Formula, distribution: Any, *operands: Any) -> Any:
    """What SciPy does of every method: its operands are vectors of one length, over which it may loop."""
    even = np.broadcast_arrays(*operands)
    found: Any = method(distribution, *(operand.ravel() for operand in even))
    return found.reshape(even[0].shape)


def beside(formula: Formula | None) -> Formula | None:
    """What is left to 1."""
    return None if formula is None else lambda *operands: 1.0 - formula(*operands)


def logarithm_of(formula: Formula | None) -> Formula | None:
    """As SciPy takes it: the other tail's formula may be none that can be followed."""
    return None if formula is None else lambda *operands: np.log(formula(*operands))


def law_of(distribution: Any) -> Law | None:
    """The law that a class of SciPy's holds; None where it has no density."""
    if distribution.name in SWITCHING:
        return None
    discrete = isinstance(distribution, scipy.stats.rv_discrete)
    mass = own(distribution, *(("_pmf",) if discrete else ("_pdf",)))
    logarithm = own(distribution, *(("_logpmf",) if discrete else ("_logpdf",)))
    if logarithm is None and mass is None:
        return None
    below, above = own(distribution, "_cdf"), own(distribution, "_sf")
    below, above = below if below is not None else beside(above), above if above is not None else beside(below)
    low, high = float(distribution.a), float(distribution.b)
    inside = (low + high) / 2 if np.isfinite(low + high) else low + 1 if low > -INF else high - 1 if high < INF else 0.5
    shapes = tuple(part.strip() for part in (distribution.shapes or "").split(",") if part.strip())
    argcheck = own(distribution, "_argcheck")
    found = Law(
        shapes, low, high, np.floor(inside) if discrete else inside,
        logarithm if logarithm is not None else lambda *operands: np.log(mass(*operands)),  # type: ignore[misc]
        below, above, None if discrete else own(distribution, "_ppf"),
        own(distribution, "_logcdf") or logarithm_of(below), own(distribution, "_logsf") or logarithm_of(above),
        discrete=discrete, allowed=all_positive if argcheck is None else argcheck, positive=opened(distribution),
        support=own(distribution, "_get_support"), upper_quantile=own(distribution, "_isf"),
        powers=mass if mass is None or logarithm is None else of_logarithm(logarithm, mass),
    )  # fmt: skip
    corrected = with_noncentrality if distribution.name == "ncx2" else AT_ENDS.get(distribution.name)
    return found if corrected is None else corrected(found)


def with_noncentrality(law: Law) -> Law:
    """The noncentral chi-squared law, of which SciPy takes the central one where nc is 0: that does not vary with it.

    There the logarithm of 0F1(df/2; nc y/4) has the series of a logarithm.
    """

    def ratio(y: Any, df: Any, nc: Any) -> Any:
        b, z = df / 2, nc * y / 4
        return z / b * (1 - z / (2 * b * (b + 1)) * (1 - 4 * z / (3 * b * (b + 2)))) - nc / 2

    def chosen(plain: Formula | None, near: Formula) -> Formula:
        def formula(y: Any, df: Any, nc: Any) -> Any:
            assert plain is not None
            zero = nc == 0.0
            return np.where(zero, near(y, df, nc), plain(y, df, np.where(zero, 1.0, nc)))

        return formula

    central = law.log_density
    return law._replace(
        log_density=chosen(central, lambda y, df, nc: central(y, df, 0.0 * df) + ratio(y, df, nc)),
        below=chosen(law.below, sc.chndtr),
    )


def opened(distribution: Any) -> bool:
    """Whether the ends of its support are no part of it: its formulas may divide by 0 there."""
    return type(distribution)._support_mask is scipy.stats.rv_continuous._open_support_mask


def all_positive(*shapes: Any) -> Any:
    found: Any = True
    for shape in shapes:
        found = found & (shape > 0)
    return found


def asked(distribution: Any, upper: bool) -> Formula:
    """A quantile of the standard distribution as SciPy finds it: it is asked whenever the program runs."""
    method = distribution.isf if upper else distribution.ppf

    def site(*operands: Any) -> Any:
        return np.asarray(method(*operands), np.float64)

    def formula(*operands: Any) -> Any:
        like = np.zeros(np.broadcast_shapes(*map(np.shape, operands)))
        return ask(site, operands, like, f"a quantile of scipy.stats.{distribution.name}")

    return formula


def moment_of(distribution: Any, order: int, shapes: tuple[Any, ...]) -> Any:
    """The mean of the standard distribution, or its variance."""
    if distribution.name in MOMENTS:
        return as_tracer(MOMENTS[distribution.name][order - 1](*shapes))
    known = distribution.name not in WITHOUT
    stats, raw = (own(distribution, "_stats"), own(distribution, "_munp")) if known else (None, None)
    options = {"moments": "mv"} if distribution._stats_has_moments else {}
    found = None if stats is None else stats(*shapes, **options)[order - 1]
    if found is None and raw is not None:
        found = raw(1, *shapes)
        if order == 2:
            mean: Any = moment_of(distribution, 1, shapes)
            found = np.where(np.isinf(mean), INF, raw(2, *shapes) - mean**2)
    if found is None:
        raise UnsupportedError(
            f"scipy.stats.{distribution.name} has no formula for its {'mean' if order == 1 else 'variance'}",
            hint="integrate it with scipy.integrate.quad",
        )
    return as_tracer(found)


def statistic(distribution: Any, kind: str, given: Any) -> Any:
    """``mean``, ``var``, ``std`` or ``entropy`` of a distribution with these parameters."""
    if distribution.name in SWITCHING:
        raise UnsupportedError(f"scipy.stats.{distribution.name}.{kind} has no derivative rule in srcgrad")
    shapes = tuple(np.where(given.proper, shape, 0.5) for shape in given.shapes)
    if kind == "mean":
        return moment_of(distribution, 1, shapes) * given.scale + given.loc
    if kind == "std" and distribution.name in DEVIATIONS:
        return as_tracer(DEVIATIONS[distribution.name](*shapes)) * given.scale
    if kind in ("var", "std"):
        spread = moment_of(distribution, 2, shapes)
        return spread * given.scale**2 if kind == "var" else np.sqrt(spread) * given.scale
    formula: Callable[..., Any] | None = laws_truncated.ENTROPIES.get(distribution.name, own(distribution, "_entropy"))
    if formula is None:
        raise UnsupportedError(
            f"scipy.stats.{distribution.name} has no formula for its entropy",
            hint="integrate -f*log(f) with scipy.integrate.quad",
        )
    return as_tracer(formula(*shapes)) + np.log(given.scale)
