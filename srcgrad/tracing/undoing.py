"""A trace with numbers that is begun again finds the caller's objects as they were before the first attempt.

Such a trace runs on these objects themselves (`remains`). Where one attempt ends with an error and another is made,
what the first has appended, counted, assigned and drawn would be done twice. So before the first one `Undo` notes what
all that can be reached holds, and puts that back. What is written to a stream or told to a library cannot be taken
back: `lasting`.
"""

from __future__ import annotations

import collections
import contextvars
import functools
import itertools
import random
import types
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from srcgrad.tracing.hosts import draws_by_numpy
from srcgrad.tracing.lasting import LASTING
from srcgrad.tracing.members import names_in
from srcgrad.tracing.remains import ATOMS, DEEPEST, Settling, is_library, slots_of
from srcgrad.tracing.unasked import attribute

LARGEST: Final = 1 << 20
"""Of larger arrays, in bytes, no copy is made at each call."""
UNCHANGING: Final = ATOMS - {np.ndarray}
MISSING: Final = object()


class Undo:
    """What can be reached from ``roots`` holds now, to be put back by `restore`."""

    def __init__(self, roots: Iterable[Any]) -> None:
        self.lasting: list[Any] = []
        noting = Noting()
        noting.run(roots)
        self.puts = noting.puts
        self.begun = False

    @property
    def is_final(self) -> bool:
        """Whether something was done that cannot be taken back."""
        return bool(self.lasting)

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """One attempt, which begins as the first one did."""
        if self.begun:
            self.restore()
        self.begun = True
        token = LASTING.set(self.lasting)
        try:
            yield
        finally:
            LASTING.reset(token)

    def restore(self) -> None:
        for put in self.puts:
            put()


class Noting(Settling):
    """A walk to all that `Settling` looks at, which changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.puts: list[Callable[[], None]] = []

    def settled(self, x: Any, depth: int = 0) -> Any:
        kind = type(x)
        if kind in UNCHANGING:
            return x
        if isinstance(x, tuple) and depth < DEEPEST:
            for item in tuple.__iter__(x):
                self.settled(item, depth + 1)
        elif id(x) not in self.seen:
            self.seen[id(x)] = x
            self.waiting.append(x)
        return x

    def visit(self, x: Any) -> None:
        if isinstance(x, list):
            held = list.copy(x)
            self.noted(x, held, functools.partial(put_list, x, held))
        elif isinstance(x, dict):
            table = dict(dict.items(x))
            self.noted(x, table.values(), functools.partial(put_dict, x, table))
        elif isinstance(x, set):
            self.noted(x, (), functools.partial(put_set, x, set(set.__iter__(x))))
        elif isinstance(x, collections.deque):
            held = list(collections.deque.__iter__(x))
            self.noted(x, held, functools.partial(put_deque, x, held))
        elif isinstance(x, np.ndarray):
            if x.nbytes <= LARGEST and x.flags.writeable and not x.dtype.hasobject:
                self.puts.append(functools.partial(put_array, x, x.copy()))
        elif isinstance(x, contextvars.ContextVar):
            self.settled(x.get(None))
        else:
            if is_generator(x):
                self.puts.append(state_of(x))
            super().visit(x)

    def noted(self, x: Any, items: Collection[Any], put: Callable[[], None]) -> None:
        """A container, which may be of a class of the user's."""
        self.puts.append(put)
        if not UNCHANGING.issuperset(map(type, items)):
            self.run_later(*items)
        if type(x).__module__ not in ("builtins", "collections"):
            self.attributes(x)

    def each(self, items: Iterable[tuple[Any, Any]], put: Callable[[Any, Any], Any]) -> None:
        self.run_later(*(item for _, item in items))

    def function(self, function: types.FunctionType) -> None:
        for cell in function.__closure__ or ():
            self.place(cell, "cell_contents")
        self.run_later(function.__defaults__, function.__kwdefaults__, vars(function))
        if is_library(function.__module__):
            return
        names = frozenset(names_in(function.__code__))
        if "random" in names:
            self.run_later(*shared_generators())
        self.namespace(function.__globals__, names)
        for name in names:
            module = function.__globals__.get(name)
            if isinstance(module, types.ModuleType) and not is_library(module.__name__):
                self.namespace(vars(module), names)

    def namespace(self, variables: dict[str, Any], names: frozenset[str]) -> None:
        for name in names:
            value = variables.get(name, MISSING)
            if isinstance(value, types.ModuleType):
                continue
            self.puts.append(functools.partial(put_name, variables, name, value))
            owner = attribute(value, "__self__")
            self.run_later(value, owner if is_generator(owner) else None)

    def members(self, cls: type) -> None:
        if not is_library(cls.__module__):
            self.puts += [
                functools.partial(put_members, base, dict(vars(base)))
                for base in cls.__mro__
                if not is_library(base.__module__)
            ]
        super().members(cls)

    def attributes(self, x: Any) -> None:
        cls = type(x)
        if cls not in self.slots:
            library = is_library(cls.__module__) and cls is not types.SimpleNamespace
            self.slots[cls] = None if library else list(slots_of(cls))
            self.settled(cls)
        slots = self.slots[cls]
        if slots is not None:
            self.settled(attribute(x, "__dict__"))
            for name in slots:
                self.place(x, name)

    def place(self, x: Any, name: str) -> None:
        """What a cell or an attribute in a slot holds."""
        value = held_at(x, name)
        self.puts.append(functools.partial(put_at, x, name, value))
        self.settled(value)


def held_at(x: Any, name: str) -> Any:
    try:
        return object.__getattribute__(x, name)
    except (AttributeError, ValueError):  # of an empty cell
        return MISSING


def put_at(x: Any, name: str, value: Any) -> None:
    now = held_at(x, name)
    if now is value:
        return
    if value is MISSING:
        object.__delattr__(x, name)
    else:
        object.__setattr__(x, name, value)


def put_name(variables: dict[str, Any], name: str, value: Any) -> None:
    if variables.get(name, MISSING) is value:
        return
    if value is MISSING:
        del variables[name]
    else:
        variables[name] = value


def put_members(cls: type, held: dict[str, Any]) -> None:
    now = dict(vars(cls))
    for name in now.keys() - held.keys():
        type.__delattr__(cls, name)
    for name, value in held.items():
        if now.get(name, MISSING) is not value and name not in ("__dict__", "__weakref__"):
            type.__setattr__(cls, name, value)


def put_list(x: list[Any], held: list[Any]) -> None:
    if not alike(list.__iter__(x), held):
        list.__setitem__(x, slice(None), held)


def put_dict(x: dict[Any, Any], held: dict[Any, Any]) -> None:
    if alike(dict.__iter__(x), held) and alike(dict.values(x), held.values()):
        return
    kind: Any = collections.OrderedDict if isinstance(x, collections.OrderedDict) else dict
    kind.clear(x)
    kind.update(x, held)


def put_set(x: set[Any], held: set[Any]) -> None:
    if not set.__eq__(x, held):
        set.clear(x)
        set.update(x, held)


def put_deque(x: collections.deque[Any], held: list[Any]) -> None:
    if not alike(collections.deque.__iter__(x), held):
        collections.deque.clear(x)
        collections.deque.extend(x, held)


def put_array(x: np.ndarray, held: np.ndarray) -> None:
    if x.shape == held.shape and x.dtype == held.dtype and x.flags.writeable:
        np.copyto(x, held)


def alike(items: Iterable[Any], held: Iterable[Any]) -> bool:
    """Whether these are the same objects."""
    return all(one is other for one, other in itertools.zip_longest(items, held, fillvalue=MISSING))


def shared_generators() -> list[Any]:
    """Those that the functions of ``random`` and of ``np.random`` draw from."""
    found: list[Any] = [random._inst]
    return [*found, np.random.mtrand._rand] if draws_by_numpy() else found


def is_generator(x: Any) -> bool:
    if isinstance(x, random.Random):
        return True
    return draws_by_numpy() and isinstance(x, (np.random.Generator, np.random.RandomState))


def state_of(generator: Any) -> Callable[[], None]:
    """What puts a generator of random numbers back to where it is now."""
    if isinstance(generator, random.Random):
        return functools.partial(generator.setstate, generator.getstate())
    if isinstance(generator, np.random.Generator):
        bits = generator.bit_generator
        return functools.partial(setattr, bits, "state", bits.state)
    return functools.partial(generator.set_state, generator.get_state(legacy=False))
