"""Which compiled program serves a call: by code, transforms, argument types and guards, never by ``id(f)``.

Two bounded tables, safe under threads: what is known of a code object (its captures), and the programs.
"""

from __future__ import annotations

import abc
import bisect
import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import heapq
import itertools
import math
import operator
import types
import typing
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from srcgrad.backends.base import release_memory
from srcgrad.ir.collector import without_gc
from srcgrad.ir.locks import new_lock
from srcgrad.ir.source import forget_places
from srcgrad.tracing.asked_signatures import SIGNATURES
from srcgrad.tracing.capture import Captures, Uncacheable, analyze
from srcgrad.tracing.conversion.calls import CALLS
from srcgrad.tracing.conversion.classes import TWINS
from srcgrad.tracing.conversion.convert import (
    asks_in_vain,
    code_without,
    convert_code,
    library_code,
    needs_conversion,
    operators_cell,
)
from srcgrad.tracing.conversion.scipy_rules import (
    is_distribution,
    is_joint,
    is_multimethod,
    is_routine,
    load_scipy_rules,
    routines,
)
from srcgrad.tracing.frames import FUNCTIONS_OF_PANDAS
from srcgrad.tracing.hosts import is_host_function, is_log_function
from srcgrad.tracing.jitted import python_of
from srcgrad.tracing.members import reads_from_outside
from srcgrad.tracing.purity import is_factors, is_ufunc_method
from srcgrad.tracing.pytree import TreeDef
from srcgrad.tracing.reach import ObjectAnalysis
from srcgrad.tracing.trace import Unread
from srcgrad.tracing.tracer import FUNCTIONS
from srcgrad.tracing.ufuncs import has_rule
from srcgrad.tracing.unasked import attribute, is_among
from srcgrad.waiting import MUCH, About, Waiting

Found = TypeVar("Found")
CAPACITY = 1024
"""How many programs, and how many code objects, are remembered."""
VARIANTS = 64
"""How many sets of guards are remembered for one code object."""

SAFE_BUILTINS = frozenset(
    {
        len, range, zip, enumerate, tuple, list, dict, set, frozenset, isinstance, issubclass, float, int, abs, min,
        max, sum, reversed, sorted, map, filter, bool, round, pow, slice, all, any, complex, divmod, iter, next, str,
        repr, type, callable, format, bin, hex, oct, ord, chr,
    }
)  # fmt: skip
ITERATORS = frozenset(thing for thing in vars(itertools).values() if isinstance(thing, type)) | {itertools.tee}
SEQUENCE_TOOLS = frozenset(
    {
        heapq.heappush, heapq.heappop, heapq.heapify, heapq.heappushpop, heapq.heapreplace, heapq.nlargest,
        heapq.nsmallest, heapq.merge, bisect.bisect,
        bisect.bisect_left, bisect.bisect_right, bisect.insort, bisect.insort_left, bisect.insort_right,
        collections.deque, collections.defaultdict, collections.OrderedDict, collections.Counter, collections.ChainMap,
        dataclasses.replace, dataclasses.fields, dataclasses.is_dataclass,
        copy.copy, copy.deepcopy, operator.itemgetter, types.SimpleNamespace, np.vectorize, np.ndindex, np.ndenumerate,
        np.nditer,
    }
)  # fmt: skip
"""What works on lists, dicts and records by the operators of what is in them."""
MANAGER = type(contextlib.contextmanager(iter)(()))
"""What functions decorated as context managers make."""
CONTEXTS = frozenset(
    {
        contextlib.suppress, contextlib.nullcontext, contextlib.ExitStack, warnings.catch_warnings,
        warnings.simplefilter, warnings.filterwarnings, MANAGER,
    }
)  # fmt: skip
"""What a with statement enters, and what is set within: it matters while the function is traced, and later nothing."""
ARITHMETIC = frozenset(
    getattr(operator, name)
    for name in (
        *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "neg", "pos", "abs", "invert", "not_"),
        *("lt", "le", "gt", "ge", "eq", "ne", "and_", "or_", "xor", "truth", "getitem", "is_", "is_not", "index"),
    )
)
SETTER = object.__setattr__.__get__
"""By which what is frozen is made."""
DECORATORS = frozenset(
    {contextlib.contextmanager, functools.cache, functools.lru_cache, functools.update_wrapper, functools.wraps}
)
"""What makes functions of functions: those that are made in a trace end with it."""
DEFINING = frozenset(
    {
        collections.namedtuple, typing.NamedTuple, dataclasses.dataclass, dataclasses.field, functools.total_ordering,
        functools.cached_property, property, classmethod, staticmethod, abc.abstractmethod, abc.ABC, abc.ABCMeta,
        enum.auto, enum.unique, typing.Protocol, typing.Generic, typing.TypeVar,
    }
)  # fmt: skip
"""What makes classes and is in them: those that are made in a trace are made again in the next one."""
MAKING = (functools.partial, functools.reduce, functools.cmp_to_key, super, types.MappingProxyType)
PURE_FUNCTIONS: set[Any] = set()
"""Functions of srcgrad itself that trace as part of the program."""
UNWATCHED = frozenset({getattr, hasattr, setattr, vars})
"""What reads attributes by names that are known only when the function runs."""
CONSTRUCTORS = frozenset(
    {
        np.zeros, np.ones, np.empty, np.full, np.eye, np.identity, np.arange, np.linspace, np.logspace, np.geomspace,
        np.array, np.asarray, np.ascontiguousarray, np.tri, np.indices, np.meshgrid, np.ix_, np.finfo, np.iinfo,
        np.dtype, np.errstate, np.seterr, np.broadcast_shapes, np.tril_indices, np.triu_indices,
        np.diag_indices, np.hanning, np.hamming, np.blackman, np.bartlett, np.kaiser, np.fft.fftfreq, np.fft.rfftfreq,
        np.newaxis, np.float64,
        np.issubdtype, np.binary_repr, np.base_repr, np.mask_indices,
        np.polynomial.legendre.leggauss, np.polynomial.chebyshev.chebgauss, np.polynomial.hermite.hermgauss,
        np.polynomial.hermite_e.hermegauss, np.polynomial.laguerre.laggauss, np.polynomial.chebyshev.chebpts1,
        np.polynomial.chebyshev.chebpts2, np.poly1d, np.polynomial.Polynomial, np.polynomial.Chebyshev,
        np.polynomial.Legendre, np.polynomial.Hermite, np.polynomial.HermiteE, np.polynomial.Laguerre,
        np.promote_types, np.isfortran,
        np.r_, np.c_, np.s_, np.index_exp, np.mgrid, np.ogrid,
    }
)  # fmt: skip
"""NumPy callables, and objects to be indexed, that give the same for the same arguments."""
TEXTS = frozenset({"numpy.char", "numpy.strings", "re", "textwrap", "unicodedata"})
"""Modules whose functions take texts."""
NOTATIONS = frozenset({("json", "loads"), ("json", "dumps"), ("ast", "literal_eval")})
"""What reads and writes values as texts."""
MASKS = frozenset({"isMaskedArray", "is_masked", "getmask", "getmaskarray"})
"""What is asked of an array that may be a masked one, of ``np.ma``, which is imported by those who use it."""
DATES = frozenset({np.busday_count, np.busday_offset, np.is_busday, np.datetime_as_string, np.datetime_data})
ALWAYS_PURE = frozenset().union(SAFE_BUILTINS, CONSTRUCTORS, ARITHMETIC, SEQUENCE_TOOLS, ITERATORS, CONTEXTS, DATES)


TABLES = frozenset({"scipy.constants._codata"})
"""Modules whose functions look something up that nobody changes."""


def takes_constants(thing: object) -> bool:
    """Whether it is a function of texts, of masks or of what pandas has, by its name: the modules need not be there."""
    home, name = (attribute(thing, of) for of in ("__module__", "__name__"))
    if not (isinstance(home, str) and isinstance(name, str) and callable(thing)) or isinstance(thing, types.MethodType):
        return False  # a method's object is none of what is compared
    if home.partition(".")[0] == "pandas":
        return name in FUNCTIONS_OF_PANDAS
    if home in ("numpy.ma", "numpy.ma.core"):
        return name in MASKS
    return home in TEXTS or (home, name) in NOTATIONS


def is_pure(thing: object) -> bool:
    """Whether calling this traces the same operations every time."""
    kinds = (types.FunctionType, types.BuiltinFunctionType, type, functools._lru_cache_wrapper)
    if isinstance(thing, kinds) or is_multimethod(thing):
        load_scipy_rules(thing)
    if is_among(thing, ALWAYS_PURE) or is_among(thing, FUNCTIONS) or is_among(thing, PURE_FUNCTIONS):
        return True
    if isinstance(thing, types.FunctionType) and thing.__module__ in TABLES:
        return True
    if takes_constants(thing):
        return True
    if isinstance(thing, np.ufunc):
        return has_rule(thing)
    owner = attribute(thing, "__self__")
    if is_factors(owner):  # scipy.sparse.linalg.factorized gives its method
        return True
    if isinstance(owner, np.ufunc):
        return is_ufunc_method(owner, getattr(thing, "__name__", "")) and has_rule(owner)
    if isinstance(thing, type):
        return issubclass(thing, np.generic) or (issubclass(thing, BaseException) and not reads_from_outside(thing))
    return isinstance(thing, types.BuiltinFunctionType) and getattr(math, thing.__name__, None) is thing


class Trivial(NamedTuple):
    """The captures of a function that is itself pure: ``grad(np.tanh)``."""

    function: Any
    hidden: tuple[Any, ...] = ()
    copies: bool = False
    asks: bool = False
    local_attributes: frozenset[str] = frozenset()
    results: frozenset[Any] = frozenset()
    unreached: tuple[Any, ...] = ()

    def bind(self, function: Any) -> Any:
        """Functions that a decorator of a library makes have one code, and do different things."""
        return ((), None) if function is self.function or function == self.function else None

    def rebuild(self, function: Any, replacements: Any) -> Any:
        return function

    def containers(self, function: Any) -> list[Any]:
        return []

    def class_reason(self, cls: type) -> str | None:
        return None


Known = Captures | Trivial


def code_of(function: Any) -> Hashable:
    """What identifies a function's code: its code object, through transforms and partials, that of its class's
    ``__call__``, or the program of a linear map; None if it has none.
    """
    if type(function) is types.FunctionType and not function.__dict__:
        return function.__code__
    while True:
        inner = attribute(function, "__srcgrad_wrapped__")
        if isinstance(inner, tuple):
            inner = inner[0]
        if inner is None and isinstance(function, functools.partial):
            inner = function.func
        if inner is None and isinstance(function, np.vectorize):
            inner = function.pyfunc
        if inner is None:
            inner = python_of(function)
        if inner is None:
            break
        function = inner
    code: Hashable = attribute(function, "__code__")
    if code is None:
        code = attribute(function, "__srcgrad_code__")
    return attribute(attribute(type(function), "__call__"), "__code__") if code is None else code


def lasting(function: Any) -> Hashable:
    """What stands for a function among what is learned: its code, or itself if it is one of NumPy's or Python's in C.

    A method of the user's array would keep the array.
    """
    own: Hashable = function
    code = code_of(function)
    if code is None and (has_rule(function) if type(function) is np.ufunc else is_of_a_module(function)):
        return own
    return code


def is_of_a_module(function: Any) -> bool:
    return isinstance(function, types.BuiltinFunctionType) and isinstance(function.__self__, types.ModuleType)


class Table:
    """A bounded dictionary: what was used least recently goes first."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.surplus: dict[Hashable, int] = {}
        """What entries take that weigh more than one."""
        self.entries: OrderedDict[Hashable, Any] = OrderedDict()
        self.lock = new_lock()

    def get(self, key: Hashable) -> Any:
        with self.lock:
            found = self.entries.get(key)
            if found is not None:
                self.entries.move_to_end(key)
            return found

    def put(self, key: Hashable, value: Any, weight: int = 1) -> None:
        with self.lock:
            self.entries[key] = value
            self.entries.move_to_end(key)
            self.surplus.pop(key, None)
            if weight > 1:
                self.surplus[key] = weight - 1
            while len(self.entries) + sum(self.surplus.values()) > self.capacity and len(self.entries) > 1:
                gone, _ = self.entries.popitem(last=False)
                self.surplus.pop(gone, None)

    def clear(self) -> None:
        with self.lock:
            self.entries.clear()
            self.surplus.clear()


CODES = Table(CAPACITY)
PROGRAMS = Table(CAPACITY)


WAITING = Table(CAPACITY)
ASKED = Table(CAPACITY)
"""By the code of a function, the attributes that its traces have read by computed names, and what they have asked of
caches: hints, as all are guarded.
"""


class Learned:
    """What calls of objects with one transform of one code have found, for those that are made later: hints.

    What is found by it is checked like all else, since functions of one code read different things.
    """

    __slots__ = ("calls", "code", "failing", "fast", "leaves", "lifting", "plans", "tables")

    def __init__(self, code: Hashable) -> None:
        self.code = code
        self.failing = 0
        """How many calls were traced again since something failed in a ``try``."""
        self.lifting = False
        """Whether the function writes values into arrays that only a trace which lifts all of them knows."""
        self.plans: dict[Any, Any] = {}
        self.fast: dict[tuple[Any, ...], Any] = {}
        self.calls: dict[Any, int] = {}
        self.tables: tuple[Any, ...] = ()
        self.leaves: dict[tuple[type, TreeDef], Any] = {}
        """By the kind of function and the structure of the arguments, what is known of their leaves."""


LEARNED: dict[tuple[Hashable, ...], Learned] = {}
_OPTIONS: dict[tuple[Hashable, ...], tuple[Hashable, ...]] = {}


def the_same(options: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
    """One object for equal tuples, as long as there are not many."""
    if len(_OPTIONS) >= CAPACITY:
        _OPTIONS.clear()
    return _OPTIONS.setdefault(options, options)


def learned(code: Hashable, *transform: Hashable) -> Learned:
    """What is known of a code, which may be None, under a transform."""
    key = (id(code), *transform)  # the hash of a code object takes as long as the code is
    found = LEARNED.get(key)
    if found is None or found.code is not code:
        found = Learned(code)
        if code is not None:
            if len(LEARNED) >= CAPACITY:
                LEARNED.clear()
            LEARNED[key] = found
    return found


def clear_caches() -> None:
    """Forget every compiled program and every analysed function; later calls trace and compile anew.

    Memory that waits for later results goes back to the system.

    >>> import srcgrad as sg
    >>> sg.clear_caches()
    """
    CODES.clear()
    PROGRAMS.clear()
    LEARNED.clear()
    WAITING.clear()
    ASKED.clear()
    for remembered in (convert_code, code_without, asks_in_vain, needs_conversion):
        remembered.cache_clear()
    TWINS.clear()
    forget_places()
    release_memory()


def is_convertible(thing: object) -> bool:
    """As `is_pure`, for converted code: it also knows what Python's own functions do with traced values."""
    if is_pure(thing) or is_host_function(thing) or is_log_function(thing) or library_code(thing) is not None:
        return True
    if is_distribution(thing) or is_joint(thing) or (is_routine(thing) and id(thing) in routines().RULES):
        return True
    operators_cell()  # with which the rules of Python's own functions are loaded
    if is_among(thing, UNWATCHED):
        return False
    return (
        is_among(thing, CALLS)
        or is_among(thing, DECORATORS)
        or (type(thing) is type(SETTER) and thing == SETTER)
        or is_among(thing, DEFINING)
        or is_typing(thing)
        or is_among(thing, SIGNATURES)
        or any(thing is known for known in MAKING)
    )


def is_typing(thing: object) -> bool:
    """Whether it says what type something is, and does nothing."""
    kind = thing if isinstance(thing, type) else type(thing)
    return kind.__module__ == "typing" and kind is not types.FunctionType


def watching(function: Any, attempt: Callable[[], Found]) -> Found:
    """What ``attempt`` returns, made again whenever its trace reads attributes that are not watched yet."""
    while True:
        try:
            return attempt()
        except Unread as error:
            error.with_traceback(None)
            ASKED.put(named(function), asked_of(function) | error.names)


def named(function: Any) -> Hashable:
    """What a function, or an object that is called, shares with those that read the same by name."""
    code = code_of(function)
    return type(function).__qualname__ if code is None else code


def asked_of(function: Any) -> frozenset[Hashable]:
    """The attributes that traces of a function have read by computed names, and what they have asked caches for."""
    return ASKED.get(named(function)) or frozenset()


def is_known(function: Any, converted: bool) -> bool:
    """Whether nothing is read from outside: it is pure, or one of NumPy's or SciPy's that converted code may call."""
    if is_pure(function):
        return True
    home = str(attribute(function, "__module__")).partition(".")[0]
    return converted and home in ("numpy", "scipy") and is_convertible(function)


def find_captures(
    function: Any, floats_static: bool, converted: bool = False, tree: TreeDef | None = None
) -> tuple[Known, Any] | Uncacheable:
    """The captures whose guards hold for this function now, with what they read; analysed if there are none.

    ``converted``: for a trace in which functions are converted, and the methods of arguments of the structure ``tree``
    too. Returns the captures and their ``bind`` result
    ``(values, alias pattern)``.
    """
    code = code_of(function)
    classes = tree.node_types() if converted and tree is not None else frozenset()
    if code is None or (type(function) is types.FunctionType and is_known(function, converted)):
        if is_known(function, converted):
            return Trivial(function), ((), None)
        return analyse(function, floats_static, converted, classes)
    asked: frozenset[Hashable] = asked_of(function) if converted else frozenset()
    key = (code, floats_static, converted, classes, asked)
    variants: tuple[Captures, ...] = CODES.get(key) or ()
    blocked: list[tuple[Captures, Any]] = []
    for captures in variants:
        bound = captures.bind(function)
        if bound is not None and not captures.came_to:
            return captures, bound
        if bound is not None:
            blocked.append((captures, bound))
    for captures, bound in blocked:
        if captures.serves(function):
            return captures, bound
    waiting: Waiting | None = WAITING.get(key)
    if waiting is not None and waiting.waits(function):
        return waiting.found
    found = analyse(function, floats_static, converted, classes)
    if not isinstance(found, Uncacheable):
        if found[0].unreached:
            found[0].about = About(function, in_vain(found[0], [captures for captures, _ in blocked]))
        CODES.put(key, (found[0], *variants[: VARIANTS - 1]))
        if waiting is not None:
            waiting.others = 0
    elif found.reads >= MUCH:
        WAITING.put(key, Waiting(function, found, waiting))
    return found


def in_vain(captures: Captures, blocked: list[Captures]) -> int:
    """How often in a row functions of one code were analysed, since traces came to what others passed over, and found
    to pass over the same.
    """
    alike = [other.about.others + 1 for other in blocked if other.unreached == captures.unreached]
    for other in [] if alike else blocked:
        other.about.others = 0
    return max(alike, default=0)


@without_gc()
def analyse(
    function: Any, floats_static: bool, converted: bool, classes: frozenset[type]
) -> tuple[Captures, Any] | Uncacheable:
    if converted:
        captures = analyze(
            function, is_pure=is_convertible, floats_static=floats_static,
            kind=functools.partial(ObjectAnalysis, asked=asked_of(function)), classes=classes,
        )  # fmt: skip
    else:
        captures = analyze(function, is_pure=is_pure, floats_static=floats_static)
    if isinstance(captures, Uncacheable):
        return captures
    bound = captures.bind(function)
    if bound is None:
        return Uncacheable("what the function reads changes while it is looked at")
    return captures, bound
