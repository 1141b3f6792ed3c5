"""What a trace with numbers leaves in the caller's objects: it runs on these themselves, and must leave NumPy's values.

`settle` looks at what a function can reach without its arguments, closures, globals that its code names, the objects,
containers and context variables that these lead to, and puts the numbers in place of the traced values:
``self.history.append(loss)``.
"""

from __future__ import annotations

import collections
import contextvars
import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import numpy as np

from srcgrad.errors import SrcgradError
from srcgrad.tracing.members import names_in
from srcgrad.tracing.tracer import Tracer
from srcgrad.tracing.unasked import attribute

ATOMS: Final = frozenset(
    (*(int, float, complex, bool, str, bytes, type(None), type(Ellipsis), slice, range), np.ndarray, np.float64)
)
LIBRARIES: Final = sys.stdlib_module_names | {
    *("numpy", "scipy", "jax", "jaxlib", "srcgrad"),
    *("matplotlib", "mpl_toolkits", "pandas", "sklearn", "IPython", "torch"),
    *("_pytest", "pytest", "pluggy", "hypothesis"),  # an assertion that pytest has rewritten leads to all of its tests
}
"""What keeps no traced values and is not searched for them: a search of the large ones takes longer than the call."""
OF_PYTHON: Final = (collections.ChainMap, collections.UserDict, collections.UserList)
"""The containers of Python's library that hold others."""
DEEPEST: Final = 20
"""How deep tuples in each other are looked at."""


def settle(roots: Iterable[Any]) -> None:
    """Put numbers in place of the traced values that are left in what can be reached from the roots."""
    Settling().run(roots)


def settle_error(error: Exception) -> None:
    """The same of an error of the user's, which may hold them: ``raise ValueError("too small", x)``."""
    Settling().run([error])


class Settling:
    def __init__(self) -> None:
        self.seen: dict[int, Any] = {}
        self.waiting: list[Any] = []
        self.numbers: dict[int, Any] = {}
        self.slots: dict[type, list[str] | None] = {}
        """The attributes in slots of the classes of objects; None of those that are a library's."""

    def run(self, roots: Iterable[Any]) -> None:
        for root in roots:
            self.settled(root)
        while self.waiting:
            self.visit(self.waiting.pop())

    def settled(self, x: Any, depth: int = 0) -> Any:
        """What stands for ``x``: itself, to be looked at later, or another value."""
        kind = type(x)
        if kind in ATOMS:
            return x
        if kind is Tracer:
            return self.number(x)
        if isinstance(x, tuple) and depth < DEEPEST:
            items = [self.settled(item, depth + 1) for item in tuple.__iter__(x)]
            if all(one is other for one, other in zip(items, tuple.__iter__(x), strict=True)):
                return x
            return tuple(items) if kind is tuple else tuple.__new__(kind, items)
        if (kind is list and ATOMS.issuperset(map(type, x))) or (
            kind is dict and ATOMS.issuperset(map(type, x.values()))
        ):
            return x
        if id(x) not in self.seen:
            self.seen[id(x)] = x
            self.waiting.append(x)
        return x

    def number(self, tracer: Tracer) -> Any:
        if id(tracer) not in self.numbers:
            self.numbers[id(tracer)] = tracer, number_of(tracer)
        return self.numbers[id(tracer)][1]

    def visit(self, x: Any) -> None:
        if isinstance(x, list):
            self.each(enumerate(list.__iter__(x)), functools.partial(list.__setitem__, x))
        elif isinstance(x, dict):
            self.each(dict.items(x), functools.partial(dict.__setitem__, x))
        elif isinstance(x, OF_PYTHON):
            self.settled(vars(x))
        elif isinstance(x, BaseException):
            self.error(x)
        elif isinstance(x, collections.deque):
            self.each(enumerate(collections.deque.__iter__(x)), functools.partial(collections.deque.__setitem__, x))
        if isinstance(x, types.FunctionType):
            self.function(x)
        elif isinstance(x, contextvars.ContextVar):
            self.each([(x, x.get(None))], contextvars.ContextVar.set)
        elif isinstance(x, types.MethodType):
            self.run_later(x.__func__, x.__self__)
        elif isinstance(x, functools.partial):
            self.run_later(x.func, x.args, x.keywords, vars(x))
        elif isinstance(x, types.ModuleType):
            if not is_library(x.__name__):
                self.each([pair for pair in vars(x).items() if type(pair[1]) is Tracer], vars(x).__setitem__)
        elif isinstance(x, type):
            self.members(x)
        elif type(x).__module__.partition(".")[0] == "srcgrad":  # a transformed function
            self.run_later(attribute(x, "f"))
        else:
            self.attributes(x)

    def run_later(self, *parts: Any) -> None:
        for part in parts:
            self.settled(part)

    def each(self, items: Iterable[tuple[Any, Any]], put: Callable[[Any, Any], Any]) -> None:
        for key, item in [pair for pair in items if type(pair[1]) not in ATOMS]:
            found = self.settled(item)
            if found is not item:
                put(key, found)

    def function(self, function: types.FunctionType) -> None:
        for cell in function.__closure__ or ():
            if cell != types.CellType():
                self.each([("cell_contents", cell.cell_contents)], functools.partial(setattr, cell))
        defaults = self.settled(function.__defaults__)
        if defaults is not function.__defaults__:
            function.__defaults__ = defaults
        self.run_later(function.__kwdefaults__, vars(function))
        self.named_in(function)

    def named_in(self, function: types.FunctionType) -> None:
        """What the code of a function of the user's names, of its module and of the modules there."""
        if is_library(function.__module__):
            return
        names = frozenset(names_in(function.__code__))
        self.namespace(function.__globals__, names)
        for name in names:
            module = function.__globals__.get(name)
            if isinstance(module, types.ModuleType) and not is_library(module.__name__):
                self.namespace(vars(module), names)

    def namespace(self, variables: dict[str, Any], names: frozenset[str]) -> None:
        found = [(name, variables[name]) for name in names if name in variables]
        self.each([pair for pair in found if not isinstance(pair[1], types.ModuleType)], variables.__setitem__)

    def members(self, cls: type) -> None:
        if is_library(cls.__module__):
            return
        for base in cls.__mro__:
            for name, member in list(vars(base).items()):
                if isinstance(member, Tracer):
                    setattr(base, name, self.number(member))
                elif isinstance(member, (staticmethod, classmethod)):
                    self.settled(member.__func__)
                elif isinstance(member, property):
                    self.run_later(member.fget, member.fset)
                elif isinstance(member, functools.cached_property):
                    self.settled(member.func)
                else:
                    self.settled(member)

    def error(self, x: BaseException) -> None:
        """What an error is raised with, and what was raised before it."""
        args = self.settled(x.args)
        if args is not x.args:
            x.args = args
        self.run_later(vars(x), x.__cause__, x.__context__)

    def attributes(self, x: Any) -> None:
        """The attributes of an object of the user's."""
        cls = type(x)
        if cls not in self.slots:
            library = is_library(cls.__module__) and cls is not types.SimpleNamespace
            self.slots[cls] = None if library else list(slots_of(cls))
            self.settled(cls)
        slots = self.slots[cls]
        if slots is None:
            return
        held = attribute(x, "__dict__")
        if type(held) is dict:
            self.settled(held)
        for name in slots:
            self.each([(name, attribute(x, name))], functools.partial(object.__setattr__, x))


def slots_of(cls: type) -> Iterator[str]:
    for base in cls.__mro__:
        if base.__module__ == "_ctypes":  # whose dict of references keeps alive what memory points to
            continue
        for name, member in vars(base).items():
            if inspect.ismemberdescriptor(member):
                yield name


def is_library(module: Any) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in LIBRARIES


def number_of(tracer: Tracer) -> Any:
    """What NumPy would have left there; the traced value itself where that is not known."""
    try:
        number = tracer.number()
    except SrcgradError:  # of a trace inside this one, which is over
        number = None if tracer.chain else tracer.storage.trace.builder.number(tracer.storage.value)
    if number is None:
        return tracer
    if tracer.weak:
        return np.asarray(number).item()
    return np.asarray(number, tracer.dtype)[()] if tracer.scalar else np.array(number, tracer.dtype)
