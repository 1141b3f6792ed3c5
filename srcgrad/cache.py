"""Which compiled program serves a call: by code, transforms, argument types and guards, never by ``id(f)``.

Two bounded tables, safe under threads: what is known of a code object (its captures), and the programs.
"""

from __future__ import annotations

import bisect
import collections
import copy
import dataclasses
import functools
import heapq
import itertools
import math
import operator
import threading
import types
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

from srcgrad.tracing.capture import Captures, Uncacheable, analyze
from srcgrad.tracing.conversion.calls import CALLS, is_multimethod, load_scipy_rules
from srcgrad.tracing.conversion.convert import convert_code, operators_cell
from srcgrad.tracing.hosts import is_host_function
from srcgrad.tracing.purity import is_ufunc_method
from srcgrad.tracing.reach import ObjectAnalysis
from srcgrad.tracing.tracer import FUNCTIONS
from srcgrad.tracing.ufuncs import has_rule

CAPACITY = 1024
"""How many programs, and how many code objects, are remembered."""
VARIANTS = 64
"""How many sets of guards are remembered for one code object."""

SAFE_BUILTINS = frozenset(
    {
        len, range, zip, enumerate, tuple, list, dict, set, frozenset, isinstance, issubclass, float, int, abs, min,
        max, sum, reversed, sorted, map, filter, bool, round, pow, slice, all, any, complex, divmod, iter, next, str,
        repr, type, callable,
    }
)  # fmt: skip
ITERATORS = frozenset(thing for thing in vars(itertools).values() if isinstance(thing, type))
SEQUENCE_TOOLS = frozenset(
    {
        heapq.heappush, heapq.heappop, heapq.heapify, heapq.heappushpop, heapq.heapreplace, bisect.bisect,
        bisect.bisect_left, bisect.bisect_right, bisect.insort, bisect.insort_left, bisect.insort_right,
        collections.deque, collections.defaultdict, collections.OrderedDict, dataclasses.replace, dataclasses.fields,
        copy.copy, copy.deepcopy, np.vectorize, np.ndindex, np.ndenumerate,
    }
)  # fmt: skip
"""What works on lists, dicts and records by the operators of what is in them."""
ARITHMETIC = frozenset(
    getattr(operator, name)
    for name in (
        *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "neg", "pos", "abs", "invert", "not_"),
        *("lt", "le", "gt", "ge", "eq", "ne", "and_", "or_", "xor", "truth", "getitem", "is_", "is_not", "index"),
    )
)
PURE_FUNCTIONS: set[Any] = set()
"""Functions of srcgrad itself that trace as part of the program."""
CONSTRUCTORS = frozenset(
    {
        np.zeros, np.ones, np.empty, np.full, np.eye, np.identity, np.arange, np.linspace, np.logspace, np.geomspace,
        np.array, np.asarray, np.ascontiguousarray, np.tri, np.indices, np.meshgrid, np.ix_, np.finfo, np.iinfo,
        np.dtype, np.errstate, np.broadcast_shapes, np.tril_indices, np.triu_indices, np.diag_indices, np.hanning,
        np.hamming, np.blackman, np.bartlett, np.kaiser, np.fft.fftfreq, np.fft.rfftfreq, np.newaxis, np.float64,
    }
)  # fmt: skip
"""NumPy callables that give the same array for the same arguments."""


def is_pure(thing: object) -> bool:
    """Whether calling this traces the same operations every time."""
    try:
        if isinstance(thing, types.FunctionType) or is_multimethod(thing):
            load_scipy_rules(thing)
        if any(thing in known for known in (SAFE_BUILTINS, FUNCTIONS, CONSTRUCTORS, PURE_FUNCTIONS)):
            return True
        if thing in ARITHMETIC or thing in SEQUENCE_TOOLS or thing in ITERATORS:
            return True
    except TypeError:
        return False
    if isinstance(thing, np.ufunc):
        return has_rule(thing)
    owner = getattr(thing, "__self__", None)
    if isinstance(owner, np.ufunc):
        return is_ufunc_method(owner, getattr(thing, "__name__", "")) and has_rule(owner)
    if isinstance(thing, type):
        return issubclass(thing, np.generic) or issubclass(thing, BaseException)
    return isinstance(thing, types.BuiltinFunctionType) and getattr(math, thing.__name__, None) is thing


class Trivial(NamedTuple):
    """The captures of a function that is itself pure: ``grad(np.tanh)``."""

    function: Any
    hidden: tuple[Any, ...] = ()
    copies: bool = False

    def bind(self, function: Any) -> Any:
        return (), None

    def rebuild(self, function: Any, replacements: Any) -> Any:
        return function

    def class_reason(self, cls: type) -> str | None:
        return None


Known = Captures | Trivial


def code_of(function: Any) -> Hashable:
    """What identifies a function's code: its code object, through transforms and partials; None if it has none."""
    while True:
        inner = getattr(function, "__srcgrad_wrapped__", None)
        if isinstance(inner, tuple):
            inner = inner[0]
        if inner is None and isinstance(function, functools.partial):
            inner = function.func
        if inner is None:
            break
        function = inner
    return getattr(function, "__code__", None)


class Table:
    """A bounded dictionary: what was used least recently goes first."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.entries: OrderedDict[Hashable, Any] = OrderedDict()
        self.lock = threading.Lock()

    def get(self, key: Hashable) -> Any:
        with self.lock:
            found = self.entries.get(key)
            if found is not None:
                self.entries.move_to_end(key)
            return found

    def put(self, key: Hashable, value: Any) -> None:
        with self.lock:
            self.entries[key] = value
            self.entries.move_to_end(key)
            while len(self.entries) > self.capacity:
                self.entries.popitem(last=False)

    def clear(self) -> None:
        with self.lock:
            self.entries.clear()


CODES = Table(CAPACITY)
PROGRAMS = Table(CAPACITY)


def clear_caches() -> None:
    """Forget every compiled program and every analysed function; later calls trace and compile anew.

    >>> import srcgrad as sg
    >>> sg.clear_caches()
    """
    CODES.clear()
    PROGRAMS.clear()
    convert_code.cache_clear()


def is_convertible(thing: object) -> bool:
    """As `is_pure`, for converted code: it also knows what Python's own functions do with traced values."""
    if is_pure(thing) or is_host_function(thing):
        return True
    operators_cell()  # with which the rules of Python's own functions are loaded
    try:
        return thing in CALLS or thing in (functools.partial, functools.reduce, super)
    except TypeError:
        return False


def find_captures(function: Any, floats_static: bool, converted: bool = False) -> tuple[Known, Any] | Uncacheable:
    """The captures whose guards hold for this function now, with what they read; analysed if there are none.

    ``converted``: for a trace in which functions are converted. Returns the captures and their ``bind`` result
    ``(values, alias pattern)``.
    """
    code = code_of(function)
    if code is None:
        return (Trivial(function), ((), None)) if is_pure(function) else analyse(function, floats_static, converted)
    key = (code, floats_static, converted)
    variants: tuple[Captures, ...] = CODES.get(key) or ()
    for captures in variants:
        bound = captures.bind(function)
        if bound is not None:
            return captures, bound
    found = analyse(function, floats_static, converted)
    if not isinstance(found, Uncacheable):
        CODES.put(key, (found[0], *variants[: VARIANTS - 1]))
    return found


def analyse(function: Any, floats_static: bool, converted: bool) -> tuple[Captures, Any] | Uncacheable:
    if converted:
        captures = analyze(function, is_pure=is_convertible, floats_static=floats_static, kind=ObjectAnalysis)
    else:
        captures = analyze(function, is_pure=is_pure, floats_static=floats_static)
    if isinstance(captures, Uncacheable):
        return captures
    bound = captures.bind(function)
    if bound is None:
        return Uncacheable("what the function reads changes while it is looked at")
    return captures, bound
