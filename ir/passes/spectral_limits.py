"""Limit rules of functions of eigenvalues and singular values: `spectral`, and `terms` where they are sums."""

from __future__ import annotations

from typing import Final

from srcgrad.ir.core import Function
from srcgrad.ir.passes.dce import dce
from srcgrad.ir.passes.rewrite import Fired, RuleSet, rewrite
from srcgrad.ir.passes.rules import EARLY
from srcgrad.ir.passes.spectral import SPECTRAL_RULES
from srcgrad.ir.passes.terms import is_better, results_read, terms_at_once

SPECTRAL: Final = RuleSet([*EARLY, *SPECTRAL_RULES])
"""The rules before differentiation, with those of functions of eigenvalues and singular values."""


def take_spectral_limits(function: Function, fired: list[Fired] | None = None) -> Function:
    """The function after all rules that belong before differentiation; equal operations are merged.

    Where results of decompositions are still read then, terms that are alike may be made at once, if less is read so.
    """
    names: list[Fired] = []
    found = dce(rewrite(function, SPECTRAL, fired=names))
    gathered = terms_at_once(function) if any(results_read(found)) else function
    if gathered is not function:
        others: list[Fired] = []
        taken = dce(rewrite(gathered, SPECTRAL, fired=others))
        if is_better(taken, found):
            found, names = taken, others
    if fired is not None:
        fired += names
    return found
