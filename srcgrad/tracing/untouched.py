"""What the caller has, kept as it is while a function is traced for its derivative.

A function that is no single program runs on the caller's own objects with traced values. What it assigns and changes
there is undone when it has run: variables of closures and globals that it assigns, attributes, lists, dicts, sets,
deques and arrays. So a derivative changes nothing, and leaves no traced value behind. What moves on by being read
(generators of random numbers, files, iterators) moves on.
"""

from __future__ import annotations

import functools
import operator
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import numpy as np

from srcgrad.ir.source import internal
from srcgrad.tracing.bytecode import instructions
from srcgrad.tracing.conversion.convert import library_file
from srcgrad.tracing.conversion.state import contents, refill, slots_of
from srcgrad.tracing.rebuild import wrapped_functions
from srcgrad.tracing.tracer import Tracer
from srcgrad.tracing.unasked import attribute

_PLAIN: Final = (Tracer, np.generic, str, bytes, int, float, complex, type(None))
_SIMPLE: Final = frozenset({str, bytes, int, float, complex, bool, type(None)})
_COMMON: Final = frozenset({list, dict, set, deque, types.CellType})
_INPLACE: Final = range(13, 26)
"""The numbers of ``BINARY_OP`` that are augmented assignments."""
_WRITERS: Final = frozenset(
    {"at", "copyto", "fill", "fill_diagonal", "partition", "place", "put", "put_along_axis", "putmask", "resize"}
    | {"shuffle", "sort"}
)
"""The names of functions and methods that write into arrays without an assignment."""
_ANY_NAME: Final = frozenset({"__dict__", "delattr", "setattr", "vars"})
"""The names through which attributes can be assigned whose names nobody sees."""
_ASSIGNED: Final = frozenset({"STORE_ATTR", "DELETE_ATTR"})
_GLOBALS: Final = frozenset({"STORE_GLOBAL", "DELETE_GLOBAL"})
_MISSING: Final = object()


class _Written:
    """What code assigns, and the codes nested in it."""

    def __init__(self) -> None:
        self.attributes: set[str] = set()
        self.any_attribute = False
        self.items = False
        """Whether items may be assigned, so that arrays may change."""

    def look(self, code: types.CodeType) -> set[str]:
        """Note what code writes; the globals that it assigns."""
        found: set[str] = set()
        self.any_attribute |= not _ANY_NAME.isdisjoint(code.co_names)
        self.items |= not _WRITERS.isdisjoint(code.co_names)
        for operation, argument, _, _ in instructions(code):
            if operation in _ASSIGNED:
                self.attributes.add(argument)
            elif operation in _GLOBALS:
                found.add(argument)
            elif operation in ("STORE_SUBSCR", "STORE_SLICE") or (operation == "BINARY_OP" and argument in _INPLACE):
                self.items = True
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                found |= self.look(constant)
            elif isinstance(constant, tuple) and "out" in constant:  # the names of a call's arguments
                self.items = True
        return found


def names_in(code: types.CodeType) -> set[str]:
    """The names that code reads from outside or as attributes, and the codes nested in it."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= names_in(constant)
    return found


class Kept:
    """What a function reaches, as it is now."""

    def __init__(self, roots: Iterable[Any]) -> None:
        self.seen: dict[int, Any] = {}
        self.written = _Written()
        self.names: set[str] = set()
        self.holders: list[Any] = []
        """Objects, functions and classes with attributes, of which those are followed that code names."""
        self.followed: set[tuple[int, str]] = set()
        self.containers: list[tuple[Any, Any, list[Any]]] = []
        self.namespaces: list[tuple[dict[str, Any], str, Any]] = []
        self.arrays: list[np.ndarray[Any, Any]] = []
        self.waiting = list(roots)
        while self.waiting:
            while self.waiting:
                self.visit(self.waiting.pop())
            self.follow_attributes()
        self.attributes = [(holder, dict(self.state(holder))) for holder in self.holders]
        self.copies = [(array, array.copy()) for array in self.arrays] if self.written.items else []

    # --- what is reached ---------------------------------------------------------------------------
    def visit(self, x: Any) -> None:
        if isinstance(x, _PLAIN) or id(x) in self.seen:
            return
        self.seen[id(x)] = x
        if isinstance(x, np.ndarray):
            if x.flags.writeable:
                self.arrays.append(x)
            if x.dtype.hasobject:
                self.waiting += x.ravel().tolist()
        elif isinstance(x, types.FunctionType):
            self.visit_function(x)
        elif isinstance(x, (list, dict, set, deque, types.CellType)):
            structure, values = contents(x)
            self.containers.append((x, structure, values))
            if not _SIMPLE.issuperset(map(type, values)):
                self.waiting += values
            if type(x) not in _COMMON:
                self.visit_object(x)
        elif isinstance(x, (tuple, frozenset)):
            self.waiting += x
        elif isinstance(x, functools.partial):
            self.waiting += [x.func, *x.args, *x.keywords.values()]
        elif isinstance(x, types.MethodType):
            self.waiting += [x.__self__, x.__func__]
        elif isinstance(x, (property, classmethod, staticmethod, functools.cached_property)):
            self.waiting += [attribute(x, name) for name in ("fget", "fset", "__func__", "func")]
        elif attribute(type(x), "__srcgrad_static__") is not None and not isinstance(x, type):
            self.waiting += wrapped_functions(x)
        else:
            self.visit_object(x)

    def visit_function(self, f: types.FunctionType) -> None:
        code = f.__code__
        if internal(code) or library_file(code.co_filename):
            return
        self.holders.append(f)
        self.waiting += [*(f.__closure__ or ()), *(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()]
        for name in self.written.look(code):
            self.namespaces.append((f.__globals__, name, f.__globals__.get(name, _MISSING)))
        names = names_in(code)
        self.names |= names
        self.waiting += [f.__globals__[name] for name in names if name in f.__globals__]

    def visit_object(self, x: Any) -> None:
        """An object, class or module of the user's."""
        cls = x if isinstance(x, type) else type(x)
        home = x.__name__ if isinstance(x, types.ModuleType) else cls.__module__
        if isinstance(x, types.ModuleType):
            file = attribute(x, "__file__")
            if file is None or library_file(file):
                return
        elif home.partition(".")[0] in ("builtins", "collections", "numpy", "scipy", "jax", "jaxlib", "srcgrad"):
            return
        self.holders.append(x)
        if not isinstance(x, (type, types.ModuleType)):
            self.waiting.append(cls)

    def state(self, holder: Any) -> dict[str, Any]:
        """The attributes of a holder that code may assign."""
        held = self.held(holder)
        if self.written.any_attribute and not isinstance(holder, (type, types.ModuleType)):
            return held
        return {name: held[name] for name in self.written.attributes if name in held}

    def held(self, holder: Any) -> dict[str, Any]:
        found = attribute(holder, "__dict__")
        held = dict(found) if isinstance(found, (dict, types.MappingProxyType)) else {}
        if not isinstance(holder, (type, types.ModuleType, types.FunctionType)):
            held |= {name: getattr(holder, name) for name in slots_of(type(holder)) if hasattr(holder, name)}
        return held

    def follow_attributes(self) -> None:
        """Reach what the attributes hold whose names have turned up; of classes also what Python calls unnamed."""
        for holder in list(self.holders):
            if self.written.any_attribute and not isinstance(holder, (type, types.ModuleType)):
                wanted = set(self.held(holder))
            else:
                wanted = self.names & self.held(holder).keys()
            bases = holder.__mro__[:-1] if isinstance(holder, type) else ()
            for base in bases:
                names = vars(base)
                wanted |= {name for name in names if name in self.names or name[:2] == name[-2:] == "__"}
            for name in wanted:
                if (id(holder), name) in self.followed:
                    continue
                self.followed.add((id(holder), name))
                found = [vars(base)[name] for base in bases if name in vars(base)] or [self.held(holder).get(name)]
                self.waiting += found

    # --- as it was ---------------------------------------------------------------------------------
    def restore(self) -> None:
        for array, copy in self.copies:
            if array.tobytes() != copy.tobytes():
                with suppress(ValueError):  # it may have become read-only
                    np.copyto(array, copy)
        for container, structure, values in self.containers:
            now, held = contents(container)
            if now != structure or not all(map(operator.is_, held, values)):
                refill(container, structure, values)
        for names, name, value in self.namespaces:
            if names.get(name, _MISSING) is not value:
                put(names, name, value)
        for holder, before in self.attributes:
            now = self.state(holder)
            for name in now.keys() | before.keys():
                value = before.get(name, _MISSING)
                if now.get(name, _MISSING) is not value:
                    set_attribute(holder, name, value)


def put(names: dict[str, Any], name: str, value: Any) -> None:
    if value is _MISSING:
        names.pop(name, None)
    else:
        names[name] = value


def set_attribute(holder: Any, name: str, value: Any) -> None:
    """Give an attribute its value again, whatever its class says of assignments."""
    kind: Any = type if isinstance(holder, type) else object
    with suppress(AttributeError, TypeError):
        if value is _MISSING:
            kind.__delattr__(holder, name)
        else:
            kind.__setattr__(holder, name, value)


@contextmanager
def untouched(f: Callable[..., Any], leaves: Sequence[Any]) -> Iterator[None]:
    """Undo what a function that is called inside changes of what it or ``leaves``, its arguments, lead to.

    >>> seen = []
    >>> with untouched(lambda x: seen.append(x), ()):
    ...     seen.append(1)
    >>> seen
    []
    """
    kept = Kept([f, *leaves])
    try:
        yield
    finally:
        kept.restore()
