"""The equations by which functions are simplified, each under its name.

The law: never to worse code, never to code that behaves differently. An exact rule keeps the value bit by bit (the sign
and payload of nan aside) on -inf, -1, -0.0, 0.0, 1, inf, nan and subnormal numbers, and the derivatives of both sides
agree there too, structural zeros included; the tests check each rule on its examples. So these are *not* rules::

    add(x, 0.0) -> x            # x = -0.0
    mul(x, 0) -> 0              # x = inf: a zero must not be invented
    sub(x, x) -> 0, div(0, x) -> 0
    neg(sub(a, b)) -> sub(b, a) # a = b: -0.0 and 0.0
    mul(c, mul(d, x)) -> mul(c*d, x), reduce_sum(reduce_sum(x))   # other roundings
    mul(x, 1) -> x              # for complex x: inf * 1 has a nan part
    pow(x, 2.0) -> integer_pow(x, 2)  # NumPy rounds a scalar's power otherwise
    reduce_sum over no axes -> x      # x = -0.0
    real(complex(x, y)) -> x    # y's cotangent is the number 0, then a structural zero
"""

from __future__ import annotations

from typing import Final

from srcgrad.ir.core import Function, Region
from srcgrad.ir.passes import (
    algebra,
    angles,
    bounds,
    broadcasts,
    extremes,
    flats,
    infinities,
    linalg_rules,
    log_terms,
    movement,
    overflows,
    parts,
    powers,
    root_series,
    roots,
    scaled_bessel,
    signs,
    sizes,
)
from srcgrad.ir.passes.matching import RULES
from srcgrad.ir.passes.rewrite import Fired, RuleSet, rewrite
from srcgrad.ir.passes.unit_vectors import UNIT_RULES

__all__ = [
    "DECOMPOSITIONS",
    "EARLY",
    "EXACT",
    "FINAL",
    "RULES",
    "algebra",
    "angles",
    "bounds",
    "broadcasts",
    "extremes",
    "flats",
    "infinities",
    "linalg_rules",
    "log_terms",
    "movement",
    "overflows",
    "parts",
    "powers",
    "root_series",
    "roots",
    "scaled_bessel",
    "signs",
    "simplify",
    "sizes",
    "take_limits",
]

TRIED: Final = (
    algebra, flats, roots, angles, movement, powers, bounds, broadcasts, extremes, infinities, linalg_rules, log_terms,
    overflows, parts, root_series, scaled_bessel, signs, sizes,
)  # fmt: skip
"""The modules of rules in the order in which those of one op are tried, whichever was imported first.

1/(1 + exp(-x)) is the logistic function before it is a quotient by what overflows.
"""
PLACES: Final = {module.__name__: place for place, module in enumerate(TRIED)}
RULES.sort(key=lambda rule: PLACES[rule.apply.__module__])
EXACT: Final = RuleSet(rule for rule in RULES if rule.stage == "exact")
EARLY: Final = RuleSet(rule for rule in RULES if rule.stage == "limit" or rule.early)
"""The rules before differentiation: limits, and the exact ones that are early."""
FINAL: Final = RuleSet([*(rule for rule in RULES if rule.stage != "limit"), *UNIT_RULES])
"""The exact rules, and those that only hold where nothing is differentiated any more."""
DECOMPOSITIONS: Final = frozenset({"eigh", "eigvalsh", "svd", "svdvals"})
"""What has functions of matrices as limits: `spectral_limits`."""


def has_decompositions(function: Region) -> bool:
    return any(operation.op.name in DECOMPOSITIONS for operation in function.walk())


def simplify(function: Function, fired: list[Fired] | None = None) -> Function:
    """The function after all exact rules, with equal operations merged.

    >>> import srcgrad.ir.ops
    >>> from srcgrad.ir.core import Builder
    >>> from srcgrad.ir.opdef import Term
    >>> from srcgrad.ir.types import FLOAT64, ArrayType
    >>> builder = Builder()
    >>> x, y = (Term(builder, builder.param(ArrayType(FLOAT64), name)) for name in "xy")
    >>> fired = []
    >>> _ = simplify(builder.function("f", [(x + (-y)).value]), fired)
    >>> [each.rule for each in fired]
    ['add(a, neg(b)) -> sub(a, b)']
    """
    return rewrite(function, EXACT, fired=fired)


def take_limits(function: Function, fired: list[Fired] | None = None) -> Function:
    """The function after the rules that belong before differentiation; equal operations are merged."""
    if not has_decompositions(function):
        return rewrite(function, EARLY, fired=fired)
    from srcgrad.ir.passes.spectral_limits import take_spectral_limits  # a third of the passes, for few programs

    return take_spectral_limits(function, fired)
