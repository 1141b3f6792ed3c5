"""Attributes that are read by names which the function computes: `getattr`, `hasattr`, ``operator.attrgetter``.

The analysis of a function does not know these names. A trace is told which attributes guards watch, and where it reads
another one, it is given up, that name is watched too, and it begins again (`cache.watching`).
"""

from __future__ import annotations

import operator
import types
from typing import Any, Final

import numpy as np

from srcgrad.tracing.asked import concrete_class
from srcgrad.tracing.conversion.calls import call_rule
from srcgrad.tracing.hosts import is_host_function
from srcgrad.tracing.purity import TRUSTED_ROOTS, hidden_kind, static_key
from srcgrad.tracing.trace import CURRENT, Unread
from srcgrad.tracing.tracer import Deferring, Tracer
from srcgrad.tracing.unasked import attribute

VALUES: Final = (np.ndarray, np.generic, str, bytes, int, float, complex, list, tuple, dict, set, frozenset, slice)
"""Whose attributes are what their classes say, which do not change."""


def class_of(thing: Tracer | Deferring) -> type:
    return concrete_class(thing) if isinstance(thing, Tracer) else np.ndarray


def require_watched(thing: Any, name: object) -> None:
    """An attribute is about to be read that the analysis may not know of.

    Raises:
        Unread: another value of it at a later call would not be seen.
    """
    trace = CURRENT.get()
    if trace is None or trace.concrete or not isinstance(name, str):
        return
    while trace.parent is not None:
        trace = trace.parent
    if trace.attributes is None or name in trace.attributes:
        return
    if isinstance(thing, (Tracer, Deferring)) or type(thing) in VALUES or is_constant(thing, name):
        return
    raise Unread(name)


def is_constant(module: Any, name: str) -> bool:
    """Whether this is a module of NumPy or SciPy that has nothing by this name or what the function could have read by
    its whole name.
    """
    from srcgrad.cache import is_convertible  # which is written with this module

    if type(module) is not types.ModuleType or module.__name__.partition(".")[0] not in TRUSTED_ROOTS:
        return False
    value = attribute(module, name)
    if hidden_kind(value) in ("float", "complex"):
        return True
    return not is_host_function(value) and static_key(value, is_convertible) is not None


@call_rule(hasattr)
def hasattr_(thing: Any, name: str, /) -> bool:
    """As the object that a traced value stands for would answer."""
    require_watched(thing, name)
    return hasattr(class_of(thing) if isinstance(thing, (Tracer, Deferring)) else thing, name)


@call_rule(getattr)
def getattr_(thing: Any, name: str, /, *default: Any) -> Any:
    require_watched(thing, name)
    if isinstance(thing, (Tracer, Deferring)) and not hasattr(class_of(thing), name):
        return default[0] if default else getattr(thing, name)  # which raises NumPy's error
    return getattr(thing, name, *default)


@call_rule(operator.attrgetter)
def attrgetter_(*names: Any) -> Any:
    """It is not known of which objects it will read them."""
    for name in names:
        for part in name.split(".") if isinstance(name, str) else ():
            require_watched(None, part)
    return operator.attrgetter(*names)
