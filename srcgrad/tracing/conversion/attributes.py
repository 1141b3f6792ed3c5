"""Attributes that are read or assigned by names which the function computes: `getattr`, `hasattr`, `setattr`, `vars`,
``x.__dict__``, ``operator.attrgetter``.

The analysis of a function does not know these names. A trace is told which attributes guards watch, and where it reads
another one, it is given up, that name is watched too, and it begins again (`cache.watching`). It is given up at once
where what it finds could be changed or called, which would happen to the caller's own; a number or an array is handed
out, so that the rest of the trace says what other names it reads.
"""

from __future__ import annotations

import operator
import os
import types
from typing import Any, Final

import numpy as np

from srcgrad.tracing.asked import concrete_class
from srcgrad.tracing.conversion.calls import call, call_rule
from srcgrad.tracing.conversion.classes import original
from srcgrad.tracing.held import is_slotted
from srcgrad.tracing.hosts import is_host_function
from srcgrad.tracing.purity import TRUSTED_ROOTS, hidden_kind, static_key
from srcgrad.tracing.trace import CURRENT, Refused, Unread
from srcgrad.tracing.tracer import Deferring, Tracer
from srcgrad.tracing.unasked import attribute
from srcgrad.tracing.users_classes import is_user_class

VALUES: Final = (np.ndarray, np.generic, str, bytes, int, float, complex, list, tuple, dict, set, frozenset, slice)
"""Whose attributes are what their classes say, which do not change."""
WATCHED: Final = object()


def class_of(thing: Tracer | Deferring) -> type:
    return concrete_class(thing) if isinstance(thing, Tracer) else thing.stands_for


def require_watched(thing: Any, name: object) -> Any:
    """An attribute is about to be read that the analysis may not know of.

    Returns:
        `WATCHED`, or what stands for the attribute for the rest of a trace that will be given up.

    Raises:
        Unread: another value of it at a later call would not be seen.
    """
    trace = CURRENT.get()
    if trace is None or trace.concrete or not isinstance(name, str):
        return WATCHED
    while trace.parent is not None:
        trace = trace.parent
    if trace.attributes is None or name in trace.attributes:
        return WATCHED
    if isinstance(thing, (Tracer, Deferring)) or type(thing) in VALUES or is_constant(thing, name):
        return WATCHED
    unread = Unread(name)  # which the trace remembers
    found = inert(thing, name)
    if found is WATCHED:
        raise unread
    return found


def inert(thing: Any, name: str) -> Any:
    """An attribute that an object itself holds and a trace cannot change; `WATCHED` if there is none."""
    from srcgrad.cache import is_convertible  # which is written with this module

    held = attribute(thing, "__dict__")
    if type(held) is not dict or name not in held or has_descriptor(type(thing), name):
        return WATCHED
    value = held[name]
    kind = hidden_kind(value)
    if kind == "array":
        found = value.view()
        found.flags.writeable = False
        return found
    if kind in ("float", "complex", "numpy scalar") or static_key(value, is_convertible, True) is not None:
        return value
    return WATCHED


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


def has_descriptor(cls: type, name: str) -> bool:
    """Whether a class may find an attribute elsewhere than where its objects hold it."""
    found = (base.__dict__[name] for base in cls.__mro__ if name in base.__dict__)
    return any(hasattr(type(x), method) for x in found for method in ("__get__", "__set__", "__delete__"))


@call_rule(hasattr)
def hasattr_(thing: Any, name: str, /) -> bool:
    """As the object that a traced value stands for would answer."""
    require_watched(thing, name)
    return objects_have(class_of(thing), name) if isinstance(thing, (Tracer, Deferring)) else hasattr(thing, name)


def objects_have(cls: type, name: str) -> bool:
    """Whether objects of a class of Python's or NumPy's find an attribute: not those that a class alone has, as any
    class can be called and has a name."""
    return name == "__class__" or any(name in vars(base) for base in cls.__mro__)


@call_rule(getattr)
def getattr_(thing: Any, name: str, /, *default: Any) -> Any:
    found = require_watched(thing, name)
    if found is not WATCHED:
        return found
    if isinstance(thing, (Tracer, Deferring)) and not objects_have(class_of(thing), name):
        return default[0] if default else getattr(thing, name)  # which raises NumPy's error
    return getattr(thing, name, *default)


@call_rule(setattr)
def setattr_(thing: Any, name: str, value: Any, /) -> None:
    """As the assignment would: to what the trace has made, or to its copy of what is captured."""
    require_assignable(thing, name)
    setattr(thing, name, value)


def accessed(method: Any, args: tuple[Any, ...]) -> Any:
    """A call of ``object.__setattr__``, as of a frozen dataclass that puts more into itself, or of the method that
    objects find.
    """
    trace = CURRENT.get()
    if method.__objclass__ is not object and not (trace is None or trace.concrete):
        raise Refused(f"{method.__objclass__.__name__}.{method.__name__} is no object's of a plain class")
    thing, name, *value = args if isinstance(method, types.WrapperDescriptorType) else (method.__self__, *args)
    if value:
        require_assignable(thing, name)
        object.__setattr__(thing, name, *value)
        return None
    found = require_watched(thing, name)
    return object.__getattribute__(thing, name) if found is WATCHED else found


def require_assignable(thing: Any, name: str) -> None:
    if is_others(thing):
        raise Refused("setattr changes what is no object of a plain class")
    if not isinstance(thing, Tracer) and (captured(thing) or has_descriptor(type(thing), name)):
        require_watched(thing, name)


@call_rule(vars)
def vars_(thing: Any, /) -> Any:
    return namespace(thing)


def namespace(thing: Any) -> Any:
    """``thing.__dict__``: all attributes of a captured object are watched, which may be read there or assigned."""
    if is_others(thing):
        raise Refused("__dict__ reads what the compiled program cannot watch")
    held = thing.__dict__
    for name in list(held) if captured(thing) else ():
        require_watched(thing, name)
    return held


def is_others(thing: Any) -> bool:
    """Whether this is a class, a module, a function or an object in C, of which a trace has no copy."""
    trace = CURRENT.get()
    if trace is None or trace.concrete or isinstance(thing, Tracer):
        return False
    return isinstance(thing, (type, types.ModuleType)) or not is_user_class(original(type(thing)))


def captured(thing: Any) -> bool:
    """Whether a trace in progress has this as its copy of an object from outside."""
    trace, held = CURRENT.get(), thing if is_slotted(thing) else attribute(thing, "__dict__")
    while trace is not None:
        if any(watched.copy is held for watched in trace.watched):
            return True
        trace = trace.parent
    return False


@call_rule(os.getenv)
def getenv(key: Any, default: Any = None) -> Any:
    """Read of the environment at each call, as ``os.environ.get``."""
    return call(os.environ.get, key, default)


@call_rule(operator.attrgetter)
def attrgetter_(*names: Any) -> Any:
    """It is not known of which objects it will read them."""
    for name in names:
        for part in name.split(".") if isinstance(name, str) else ():
            require_watched(None, part)
    return operator.attrgetter(*names)


@call_rule(operator.methodcaller)
def methodcaller_(name: Any, /, *args: Any, **kwargs: Any) -> Any:
    """A method of what it is given, which is called as converted code would."""
    require_watched(None, name)
    return lambda thing: call(getattr_(thing, name), *args, **kwargs)
