"""Calls in converted code: user functions are converted in turn, what does not dispatch is found by its identity."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from srcgrad.tracing.conversion.convert import convert, is_straight, is_user_function
from srcgrad.tracing.conversion.draws import drawn, is_draw
from srcgrad.tracing.conversion.sources import Unconvertible
from srcgrad.tracing.guards import answer
from srcgrad.tracing.trace import CURRENT, NeedsConcrete
from srcgrad.tracing.tracer import FUNCTIONS, Tracer, as_tracer, contains_tracer, from_value

Rule = Callable[..., Any]
CALLS: Final[dict[Any, Rule]] = {}
"""What stands for a function in converted code, by identity: it is given the call's arguments."""
HIGHER_ORDER: Final = frozenset({map, filter, sorted, min, max, functools.reduce, any, all, sum, np.vectorize})
"""Functions that call the functions they are given: these are converted first."""
SCIPY_RULES: Final = {
    "scipy.linalg": ("scipy_linalg", "scipy_decompositions", "matrix_functions"),
    "scipy.fft": ("scipy_fourier",),
    "scipy.signal": ("scipy_signal",),
    "scipy.special": ("special",),
}
"""The modules with the rules of SciPy's functions, loaded when a function of SciPy is first met."""
PLAIN_KINDS: Final = (types.BuiltinFunctionType, type, np.ufunc, types.FunctionType, type(np.sum))


def call_rule(*functions: Any) -> Callable[[Rule], Rule]:
    """Register what stands for functions in converted code."""

    def register(rule: Rule) -> Rule:
        for function in functions:
            CALLS[function] = rule
        return rule

    return register


def load_scipy_rules(function: Any) -> None:
    """Load the rules of the part of SciPy that a function is of."""
    module = getattr(function, "__module__", None)
    if isinstance(module, str) and module.startswith("scipy."):
        for package, names in SCIPY_RULES.items():
            if module == package or module.startswith(package + "."):
                for name in names:
                    if f"srcgrad.tracing.functions.{name}" not in sys.modules:
                        importlib.import_module(f"srcgrad.tracing.functions.{name}")


def traced_among(args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether an argument is traced, or a sequence with traced elements."""
    for argument in args:
        if contains_tracer(argument):
            return True
    return any(contains_tracer(argument) for argument in kwargs.values())


def call(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """``function(*args, **kwargs)``, with traced values wherever Python or NumPy would not know them."""
    if CURRENT.get() is None:  # a converted function that outlived its trace
        return function(*args, **kwargs)
    kind = type(function)
    if kind is types.FunctionType:
        if is_user_function(function):
            return followed(function)(*args, **kwargs)
        load_scipy_rules(function)
    elif kind is types.MethodType:
        if is_user_function(function.__func__):
            return followed(function.__func__)(function.__self__, *args, **kwargs)
        if is_draw(function) and traced_among(args, kwargs):
            return drawn(function, args, kwargs)
    elif kind is functools.partial:
        return call(function.func, *function.args, *args, **{**function.keywords, **kwargs})
    if kind in PLAIN_KINDS:
        rule = CALLS.get(function)
        if rule is not None:
            return rule(*args, **kwargs)
        if function in HIGHER_ORDER:
            args = tuple(map(followed, args))
            kwargs = {name: followed(value) for name, value in kwargs.items()}
            return function(*args, **kwargs)
        if isinstance(function, type):
            return construct(function, args, kwargs)
        if kind is types.FunctionType and function in FUNCTIONS and traced_among(args, kwargs):
            return FUNCTIONS[function](*args, **kwargs)
        owner = getattr(function, "__self__", None)
        if type(owner) is np.ndarray and traced_among(args, kwargs):
            return getattr(constant_array(owner), function.__name__)(*args, **kwargs)
        return function(*args, **kwargs)
    return call_object(function, args, kwargs)


def invoke(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """A function of the user's that a transform calls: as converted code would, in a trace that converts."""
    trace = CURRENT.get()
    if trace is None or not trace.converting:
        return function(*args, **kwargs)
    return call(function, *args, **kwargs)


def callee(function: Any) -> Any:
    """What `invoke` would run, to be called by the caller itself."""
    trace = CURRENT.get()
    return function if trace is None or not trace.converting else followed(function)


def call_object(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An object with ``__call__``: of a user's class, or a cache around a function."""
    wrapped = getattr(function, "__wrapped__", None)
    if isinstance(function, functools._lru_cache_wrapper) and traced_among(args, kwargs):
        return call(wrapped, *args, **kwargs)  # a cache would keep traced values
    method = inspect.getattr_static(type(function), "__call__", None)
    if is_user_function(method):
        return followed(method)(function, *args, **kwargs)
    return function(*args, **kwargs)


def construct(cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A class: an ``__init__`` of the user's is converted."""
    initialise: Any = vars(cls).get("__init__") if type(cls) is type else None
    if is_user_function(initialise) and inspect.getattr_static(cls, "__new__") is vars(object)["__new__"]:
        instance: Any = object.__new__(cls)
        followed(initialise)(instance, *args, **kwargs)
        return instance
    return cls(*args, **kwargs)


def followed(thing: Any) -> Any:
    """A user's function as its converted twin; anything else as it is, and a function that has none too if it need not.

    Raises:
        NeedsConcrete: a function with control flow or effects cannot be converted; the message says why.
    """
    if type(thing) is types.MethodType and is_user_function(thing.__func__):
        return types.MethodType(followed(thing.__func__), thing.__self__)
    if not is_user_function(thing):
        return thing
    try:
        return convert(thing)
    except Unconvertible as error:
        trace = CURRENT.get()
        if trace is None or trace.concrete or is_straight(thing.__code__):
            return thing
        raise NeedsConcrete(str(error)) from None


def constant_array(array: Any) -> Tracer:
    """A real array as a traced constant; it cannot be written into."""
    found = as_tracer(array)
    found.storage.writable = False
    return found


def getitem(container: Any, index: Any) -> Any:
    """``container[index]``: a real array or a list may be indexed by traced integers."""
    if isinstance(container, Tracer) or not traced_index(index):
        return container[index]
    if type(container) is np.ndarray:
        return constant_array(container)[index]
    unknown = isinstance(index, Tracer) and index.number() is None and index.dtype.kind in "iub"
    if unknown and index.size == 1 and isinstance(container, (list, tuple, dict)):
        number = answer(index, "an index")
        if number is not None:
            return container[np.asarray(number).item()]
    if unknown and isinstance(container, (list, tuple, dict)):
        from srcgrad.tracing.conversion.choices import chosen  # which is written with this module

        return chosen(container, index)
    return container[index]


def traced_index(index: Any) -> bool:
    if isinstance(index, tuple):
        return any(isinstance(item, Tracer) for item in index)
    return isinstance(index, Tracer)


def lifted(array: Any) -> Any:
    """A new array that the function writes into, as a traced constant; anything else as it is."""
    if type(array) is not np.ndarray or array.dtype.kind not in "biufc" or CURRENT.get() is None:
        return array
    trace = CURRENT.get()
    if trace is None:
        return array
    return from_value(trace.constant(array))
