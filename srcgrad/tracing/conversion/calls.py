"""Calls in converted code: user functions are converted in turn, what does not dispatch is found by its identity."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import heapq
import importlib
import inspect
import itertools
import operator
import types
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import numpy as np

from srcgrad.errors import SrcgradError
from srcgrad.tracing.asked import concrete_class
from srcgrad.tracing.built_on import bare
from srcgrad.tracing.caches import require_keys
from srcgrad.tracing.conversion.array_likes import as_array, as_given, takes_arrays
from srcgrad.tracing.conversion.classes import adopt, adopt_records, give_back, original
from srcgrad.tracing.conversion.convert import (
    asks_in_vain,
    convert,
    is_straight,
    is_user_function,
    library_code,
    reads_frames,
)
from srcgrad.tracing.conversion.draws import drawn, is_draw
from srcgrad.tracing.conversion.filled import require_fixed
from srcgrad.tracing.conversion.fresh_arrays import made_here, may_be_traced
from srcgrad.tracing.conversion.matrices import Matrix, is_of_arrays, of_matrices
from srcgrad.tracing.conversion.placed_texts import PlacedText, of_texts
from srcgrad.tracing.conversion.scipy_rules import (
    distributions,
    is_distribution,
    is_multimethod,
    is_routine,
    load_scipy_rules,
    routines,
    rules_of_method,
    rules_of_object,
)
from srcgrad.tracing.conversion.sources import Unconvertible
from srcgrad.tracing.conversion.vectorized import vectorized
from srcgrad.tracing.dispatching import BOUND, DISPATCHED, chosen
from srcgrad.tracing.floating_errors import STATED, in_its_state, judged_function
from srcgrad.tracing.frozen import given_to
from srcgrad.tracing.hosts import is_global_cache, is_log_function, is_logger, later, runs_later
from srcgrad.tracing.jitted import is_parallel_range, plain_of, primitive_of, python_of
from srcgrad.tracing.kept_results import answer_now, is_question, result_of, result_of_method
from srcgrad.tracing.lasting import done_for_good
from srcgrad.tracing.purity import METACLASSES, is_generated, makes_plain_objects, static_key
from srcgrad.tracing.refusing import require_told
from srcgrad.tracing.shown_texts import made_of_texts, text_in_call
from srcgrad.tracing.trace import CURRENT, NeedsConcrete, Unread
from srcgrad.tracing.tracer import FUNCTIONS, SEQUENCES, Deferring, Tracer, as_tracer, contains_tracer
from srcgrad.tracing.unasked import attribute

Rule = Callable[..., Any]
Instead = Callable[[], Any] | None
CALLS: Final[dict[Any, Rule]] = {}
"""What stands for a function in converted code, by identity: it is given the call's arguments."""
HIGHER_ORDER: Final = frozenset(
    {
        map, filter, sorted, min, max, functools.reduce, any, all, sum, np.vectorize, itertools.accumulate,
        itertools.takewhile, itertools.dropwhile, itertools.filterfalse, itertools.starmap, itertools.groupby,
        heapq.nlargest, heapq.nsmallest, heapq.merge, functools.cmp_to_key,
    }
)  # fmt: skip
"""Functions that call the functions they are given: these are converted first."""
DISPATCHING: Final = (types.FunctionType, type(np.sum))
"""The kinds of NumPy's functions that have rules: in a list of traced values those of C find nothing to dispatch on."""
MANAGING: Final = contextlib.contextmanager(iter).__code__
"""The code of what ``contextlib.contextmanager`` makes of a generator."""
METHODS: Final = (types.MethodType, types.BuiltinFunctionType)
DESCRIPTORS: Final = (types.MethodDescriptorType, types.WrapperDescriptorType)
"""The kinds of methods that are read of a class in C: ``np.ndarray.sum``."""
ACCESSORS: Final = (types.WrapperDescriptorType, types.MethodWrapperType)
ACCESSING: Final = ("__getattribute__", "__setattr__")
"""The methods by which objects find or change their attributes, by names that are computed."""
COMPILED: Final = ("cython_function_or_method", "fused_cython_function")
"""The kinds of functions that Cython makes, which ask no array what it is."""
PLAIN_KINDS: Final = (types.BuiltinFunctionType, *METACLASSES, np.ufunc, types.FunctionType, type(np.sum))


def call_rule(*functions: Any) -> Callable[[Rule], Rule]:
    """Register what stands for functions in converted code."""

    def register(rule: Rule) -> Rule:
        for function in functions:
            CALLS[function] = rule
        return rule

    return register


def traced_among(args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether an argument is traced, or a sequence with traced elements."""
    for argument in args:
        if contains_tracer(argument):
            return True
    return any(contains_tracer(argument) for argument in kwargs.values())


def converts(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether a Python function or method is converted for this call: one of SciPy's where it is given traced values
    and has no rule."""
    plain = getattr(function, "__func__", function)
    if not is_user_function(plain):
        return False
    if not plain.__globals__.get("__name__", "").startswith("scipy."):
        return True
    if is_ruled(plain):
        return False
    if function is plain or is_distribution(function.__self__):
        return (function is plain or plain.__name__.startswith("_")) and traced_among(args, kwargs)
    return traced_among(args, kwargs) or may_be_traced(function.__self__, 2)


def is_ruled(function: types.FunctionType) -> bool:
    """Whether a function of SciPy's has a rule, so that its code is not converted."""
    if not function.__globals__.get("__name__", "").startswith("scipy."):
        return False
    load_scipy_rules(function)
    return function in CALLS or function in FUNCTIONS


def numpys(function: Any) -> Any:
    """NumPy's own function for its namesake in the array API's namespace, by which SciPy calls it."""
    module = function.__module__
    if not isinstance(module, str) or not module.startswith("scipy.") or ".array_api_compat.numpy" not in module:
        return None
    return getattr(np, function.__name__, None)


def call(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """``function(*args, **kwargs)``, with traced values wherever Python or NumPy would not know them."""
    trace = CURRENT.get()
    if trace is None:  # a converted function that outlived its trace
        return function(*args, **kwargs)
    kind = type(function)
    instead = INSTEAD.get(kind, instead_of_another)(function, args, kwargs)
    if instead is not None:
        return instead()
    if trace.concrete:
        done_for_good(function)
    if kind is type:
        load_scipy_rules(function)
        function = range if is_parallel_range(function) else function
    args = handed_on(args)
    if PlacedText in map(type, args) or (kwargs and PlacedText in map(type, kwargs.values())):
        return of_texts(function, args, kwargs)
    shown = trace.showing
    text = None if shown is None else text_in_call(trace, function, args, kwargs)
    if function is not len:
        require_whole(function, args)
    for argument in (*args, *kwargs.values()):
        require_told(argument)
    if Matrix in map(type, args) and is_of_arrays(function):
        return of_matrices(function, args, kwargs)
    given = args
    if takes_arrays(function):
        args = tuple(as_array(x, call) for x in args)
        kwargs = {name: as_array(x, call) for name, x in kwargs.items()}
    try:
        if (
            kind in PLAIN_KINDS
            or is_multimethod(function)
            or (isinstance(function, type) and makes_plain_objects(kind))
        ):
            found = made_here(as_given(function, given, call_plain(function, args, kwargs), call))
        else:
            found = call_object(function, args, kwargs)
    except Exception as error:
        require_known_texts(args, kwargs, error)
        raise
    if text is not None or trace.showing is not shown:  # which Python's own library makes of values
        return made_of_texts(trace, function, kwargs, text, found)
    return found


def require_known_texts(args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> None:
    """Where a function fails with a text that is not known yet, it may not have with the text: a handler is not to see.

    Raises:
        NeedsConcrete: there is such a text.
    """
    from srcgrad.tracing.conversion.texts import Text, needed  # which is written with this module

    if not isinstance(error, (SrcgradError, Unread)) and Text in map(type, (*args, *kwargs.values())):
        raise needed() from error


def instead_of_function(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Instead:
    load_scipy_rules(function)
    twin = numpys(function) or primitive_of(function)
    if twin is not None:
        return partial(call, twin, *args, **kwargs)
    if converts(function, args, kwargs):
        return partial(followed(function), *args, **kwargs)
    if is_log_function(function):
        from srcgrad.tracing.conversion.logs import of_module  # which is written with this module

        return partial(of_module, function, args, kwargs)
    if function.__code__ is STATED:
        return partial(in_its_state(function, followed), *args, **kwargs)
    if function.__code__ in (DISPATCHED, BOUND) and args:
        return partial(call, chosen(function, CALLS[type](args[0])), *args, **kwargs)
    if function.__code__ is MANAGING:
        return partial(contextlib.contextmanager(followed(generator_of(function))), *args, **kwargs)
    return None


def instead_of_method(method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Instead:
    function, instance = method.__func__, method.__self__
    if converts(method, args, kwargs):
        return partial(followed(function), instance, *args, **kwargs)
    if type(function) is types.FunctionType and function in CALLS:
        return partial(CALLS[function], instance, *args, **kwargs)
    if attribute(function, "__code__") is MANAGING:
        return partial(call, function, instance, *args, **kwargs)
    if isinstance(function, functools._lru_cache_wrapper):
        return partial(call_with_cache, function, (instance, *args), kwargs)
    if runs_later(method):
        return partial(later, method, args, kwargs)
    if is_question(method):
        return partial(answer_now, method, args, kwargs)
    if is_logger(instance):
        from srcgrad.tracing.conversion.logs import logged  # which is written with this module

        return partial(logged, method, args, kwargs)
    if is_draw(method) and traced_among(args, kwargs):
        return partial(drawn, method, args, kwargs)
    rules = rules_of_method(method, traced_among(args, kwargs))
    if rules is not None:
        return partial(rules.of_method, method, args, kwargs)
    if is_distribution(instance) and traced_among(args, kwargs):
        rule = distributions().rule_of(instance, method.__name__)
        return None if rule is None else partial(rule, *args, **kwargs)
    return None


def instead_of_partial(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Instead:
    options = {**function.keywords, **kwargs}
    if function.func is call:  # what `called_back` has made of an object that is called
        return partial(call, *function.args, *args, **options)
    return partial(call, function.func, *function.args, *args, **options)


def instead_of_another(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Instead:
    kind = type(function)
    if runs_later(function):
        return partial(later, function, args, kwargs)
    if kind is types.BuiltinFunctionType or is_multimethod(function):
        load_scipy_rules(function)
        return partial(answer_now, function, args, kwargs) if is_question(function) else None
    if kind in DESCRIPTORS and args and stands_for_one(function, args[0]):
        return partial(call, getattr(args[0], function.__name__), *args[1:], **kwargs)
    if kind in ACCESSORS and function.__name__ in ACCESSING:
        from srcgrad.tracing.conversion.attributes import accessed  # which is written with this module

        return partial(accessed, function, args)
    return None


INSTEAD: Final[dict[type, Callable[[Any, tuple[Any, ...], dict[str, Any]], Instead]]] = {
    types.FunctionType: instead_of_function,
    types.MethodType: instead_of_method,
    functools.partial: instead_of_partial,
}
"""By the kind of what is called, what is called in its place, with its arguments: a `partial`, which has no frame of
its own, as the user's loggers count frames. None: itself."""


def call_plain(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of a function or class that is not converted: of its rule, or of NumPy's code for traced values."""
    kind = type(function)
    rule = CALLS.get(function)
    if rule is not None:
        return judged_function(function, rule, args, kwargs)
    if function in HIGHER_ORDER:
        args = tuple(map(ruled, args))
        kwargs = {name: ruled(value) for name, value in kwargs.items()}
        return function(*args, **kwargs)
    if isinstance(function, type):
        return construct(function, args, kwargs)
    if kind is np.ufunc:
        args = tuple(as_tracer(x) if listed(x) else x for x in args)
    dispatches = kind in DISPATCHING or is_multimethod(function)
    if dispatches and not deferring(args) and traced_among(args, kwargs):
        if function in FUNCTIONS:
            return judged_function(function, FUNCTIONS[function], args, kwargs)
        function = followed(library_code(function) or function)
    owner = attribute(function, "__self__")
    if type(owner) is np.ufunc:
        return function(*with_arrays(function, args), **kwargs)
    if type(owner) in (str, dict, list) and getattr(type(owner), function.__name__) in CALLS:
        return CALLS[getattr(type(owner), function.__name__)](owner, *args, **kwargs)
    if type(owner).__name__ == "SuperLU" and traced_among(args, kwargs):
        return importlib.import_module("srcgrad.tracing.functions.scipy_sparse").of_method(function, args, kwargs)
    if type(owner) is np.ndarray and traced_among(args, kwargs):
        return getattr(constant_array(owner), function.__name__)(*args, **kwargs)
    if dispatches and function.__module__ != "inspect":  # which looks at functions
        args = tuple(map(called_back, args))
        kwargs = {name: called_back(value) for name, value in kwargs.items()}
    return function(*args, **kwargs)


def stands_for_one(method: Any, x: Any) -> bool:
    """Whether a traced value stands for an object of the class that a method is read of."""
    cls = method.__objclass__
    return isinstance(x, Tracer) and cls is not object and issubclass(concrete_class(x), cls)


def called_back(thing: Any) -> Any:
    """What a function of NumPy's is given for one of the user's, which it calls on arrays that are known."""
    if type(thing) in (list, tuple) and any(map(callable, thing)):
        return type(thing)(map(called_back, thing))
    if isinstance(thing, (functools.partial, types.MethodType)) or is_user_function(attribute(type(thing), "__call__")):
        return functools.partial(call, thing)
    return followed(thing) if is_user_function(thing) else thing


def generator_of(manager: Any) -> Any:
    """The generator of a function that ``contextlib.contextmanager`` has made."""
    return manager.__closure__[0].cell_contents


def deferring(args: tuple[Any, ...]) -> bool:
    """Whether an array of a kind of its own is among arguments, or in a list or tuple of them."""
    return any(
        isinstance(x, Deferring) or (type(x) in (list, tuple) and any(isinstance(item, Deferring) for item in x))
        for x in args
    )


def require_whole(function: Any, args: tuple[Any, ...]) -> None:
    """Refuse what a function that is run as it is would not find in a list: its items, in a loop that appends some."""
    for argument in args:
        if type(argument) is list:
            require_fixed(argument)
    owner = attribute(function, "__self__")
    if type(owner) is list and function.__name__ not in ("append", "extend", "pop"):
        require_fixed(owner)


def handed_on(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments for code that is run as it is: a draw among them is made when the program runs."""
    if not any(type(argument) in METHODS for argument in args):
        return args
    return tuple(followed(argument) if type(argument) in METHODS else argument for argument in args)


def invoke(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """A function of the user's that a transform calls: as converted code would, in a trace that converts."""
    trace = CURRENT.get()
    if trace is None or not trace.converting:
        return function(*args, **kwargs)
    return call(function, *args, **kwargs)


def run_converted(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """`invoke` for the function that is traced: the objects it made are of their own classes afterwards."""
    trace = CURRENT.get()
    plain = attribute(function, "__func__", function)
    while isinstance(function, functools._lru_cache_wrapper):  # which would keep traced values
        function = function.__wrapped__
    if trace is not None and not trace.converting and is_user_function(plain):
        why = None
        with suppress(RecursionError):
            why = asks_in_vain(plain.__code__)
        if why is not None:
            warnings.warn(
                f"{plain.__name__} is run as it is: {why}; type() does not take a traced array for an ndarray there: "
                "ask isinstance()",
                stacklevel=2,
            )
    for argument in (*args, *kwargs.values()):
        adopt_records(argument)  # other objects are the caller's own
    try:
        return invoke(function, *args, **kwargs)
    finally:
        if trace is not None:
            give_back(trace.adopted)


def callee(function: Any) -> Any:
    """What `invoke` would run, to be called by the caller itself."""
    trace = CURRENT.get()
    return function if trace is None or not trace.converting else followed(function)


def call_with_cache(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method with a cache, which knows what is constant: it would keep the traced values of others."""
    trace = CURRENT.get()
    traced = traced_among(args, kwargs)
    if traced:
        require_keys((*args[1:], *kwargs.values()))
    owner = None if trace is None or trace.concrete else trace.owners.get(id(args[0]))
    if owner is not None:
        return result_of_method(function, owner, args[1:], kwargs, traced)
    if not traced and not may_be_traced(args[0], 2):
        found = function(*args, **kwargs)
        if trace is None or trace.concrete or static_key(found, lambda _: False, True) is not None:
            return found
    return call(function.__wrapped__, *args, **kwargs)


def call_compiled(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of code in C, which takes numbers: refused of traced values, but for integers that are known.

    Into an array that is given it may write, as ``scipy.ndimage.label`` has its result written.
    """
    taken = {id(x): (x, np.array(x)) for x in (*args, *kwargs.values()) if contains_tracer(x)}
    before = {key: numbers.copy() for key, (_, numbers) in taken.items()}

    def given(x: Any) -> Any:
        return taken[id(x)][1] if id(x) in taken else x

    found = function(*map(given, args), **{name: given(x) for name, x in kwargs.items()})
    for key, (x, numbers) in taken.items():
        if isinstance(x, Tracer) and not np.array_equal(numbers, before[key]):
            x[...] = numbers
    return found


def call_object(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An object with ``__call__``: of a user's class, or a cache around a function."""
    if isinstance(function, functools._lru_cache_wrapper) and traced_among(args, kwargs):
        require_keys((*args, *kwargs.values()))
        return call(function.__wrapped__, *args, **kwargs)  # a cache would keep traced values
    if is_global_cache(function):
        return result_of(function, args, kwargs)
    if type(function) is operator.methodcaller:
        given, named = given_to(function)
        return CALLS[operator.methodcaller](*given, **named)(*args, **kwargs)
    if type(function) is np.vectorize and traced_among(args, kwargs):
        return vectorized(function, args, kwargs, call)
    compiled = python_of(function)
    if compiled is not None:
        numbers = not any(getattr(x, "ndim", 0) or type(x) in (list, tuple) for x in args)
        return call(compiled if numbers else plain_of(function, compiled), *args, **kwargs)
    if is_distribution(function) and traced_among(args, kwargs):
        return distributions().Frozen(function, args, kwargs)
    if traced_among(args, kwargs) and rules_of_object(function) is not None:
        return rules_of_object(function).of_method(function.__call__, args, kwargs)
    if type(function).__name__ in COMPILED and traced_among(args, kwargs):
        return call_compiled(function, args, kwargs)
    if is_routine(function):
        return routines().of_routine(function, args, kwargs)
    method = inspect.getattr_static(type(function), "__call__", None)
    if is_user_function(method):
        return followed(method)(function, *args, **kwargs)
    return function(*args, **kwargs)


def construct(cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A class: an ``__init__`` of the user's is converted, and the ``__post_init__`` of a dataclass."""
    instance = constructed(original(cls), args, kwargs)
    adopt(instance)
    return instance


def constructed(cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if issubclass(cls, BaseException) and is_user_function(inspect.getattr_static(cls, "__init__")):
        error = cls.__new__(cls, *args, **kwargs)
        followed(cls.__init__)(error, *args, **kwargs)
        return error
    if not makes_plain_objects(type(cls)) or (instance := bare(cls)) is None:
        return cls(*args, **kwargs)
    trace = CURRENT.get()
    found = cls if trace is None else trace.twins.get(cls, cls)
    initialise: Any = inspect.getattr_static(found, "__init__")
    if is_generated(initialise):
        kwargs = with_defaults(cls, args, kwargs)
        finish = inspect.getattr_static(found, "__post_init__", None)
        if not is_user_function(finish) or not cls.__dictoffset__:
            return cls(*args, **kwargs)
        vars(instance)["__post_init__"] = types.MethodType(followed(finish), instance)
        adopt(instance)
        initialise(instance, *args, **kwargs)
        del vars(instance)["__post_init__"]
        return instance
    if is_user_function(initialise):
        adopt(instance)
        followed(initialise)(instance, *args, **kwargs)
        return instance
    return cls(*args, **kwargs)


def with_defaults(cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The keywords for a dataclass, and what its default factories of the user's give for those that are not given."""
    if not dataclasses.is_dataclass(cls):
        return kwargs
    fields = [field for field in dataclasses.fields(cls) if field.init]
    given = {field.name for field in [field for field in fields if not field.kw_only][: len(args)]} | kwargs.keys()
    factories = {field.name: field.default_factory for field in fields if field.name not in given}
    return kwargs | {name: call(factory) for name, factory in factories.items() if is_user_function(factory)}


def followed(thing: Any) -> Any:
    """A user's function as its converted twin; anything else as it is, and a function that has none too if it need not.

    Raises:
        NeedsConcrete: a function with control flow or effects cannot be converted; the message says why. Or it reads
            the frames of its callers, which are the user's own where nothing is converted.
    """
    if type(thing) is types.MethodType and is_user_function(thing.__func__):
        return types.MethodType(followed(thing.__func__), thing.__self__)
    if not is_user_function(thing):
        return functools.partial(call, thing) if type(thing) in METHODS and runs_later(thing) else thing
    if is_ruled(thing):
        return functools.partial(call, thing)
    if reads_frames(thing.__code__):
        raise NeedsConcrete(
            f"{thing.__qualname__} reads the variables of what calls it, which converted code has elsewhere",
            hint="hand these values on as arguments",
        )
    try:
        return convert(thing)
    except Unconvertible as error:
        trace = CURRENT.get()
        if trace is None or trace.concrete or is_straight(thing.__code__):
            return thing
        raise NeedsConcrete(str(error)) from None


def ruled(thing: Any) -> Any:
    """What Python is to call for a function that it is handed: a built-in one would not know traced values."""
    if type(thing) is functools.partial:
        return functools.partial(call, thing)
    plain = ((numpys(thing) or primitive_of(thing)) if type(thing) is types.FunctionType else None) or thing
    known = type(plain) in DESCRIPTORS or (
        type(plain) in PLAIN_KINDS and (plain in CALLS or type(attribute(plain, "__self__")) is np.ufunc)
    )
    return functools.partial(call, plain) if known else followed(plain)


def constant_array(array: Any) -> Tracer:
    """A real array as a traced constant; it cannot be written into."""
    found = as_tracer(array)
    found.storage.writable = False
    return found


def listed(x: Any) -> bool:
    """Whether this is a list with traced values."""
    return isinstance(x, SEQUENCES) and contains_tracer(x)


def with_arrays(method: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments of a method of a ufunc with arrays for lists of traced values, which it would not look into."""
    many = {"reduce": 1, "accumulate": 1, "reduceat": 1, "outer": 2}.get(method.__name__, 0)
    return (*(as_tracer(x) if listed(x) else x for x in args[:many]), *args[many:])
