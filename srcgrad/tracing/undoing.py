"""A trace with numbers that is begun again finds the caller's objects as they were before the first attempt.

Such a trace runs on these objects themselves (`remains`). Where one attempt ends with an error and another is made,
what the first has appended, counted, assigned and drawn would be done twice. So before the first one `Undo` notes what
all that can be reached holds, and puts that back. What is written to a stream or told to a library cannot be taken
back: `lasting`.

Both are done below what classes may define: no method of the user's is called. What an object's own kind does not let
be noted or put back stays as it is. What did not change is not touched, as another thread may use it.
"""

from __future__ import annotations

import array
import collections
import contextvars
import functools
import gc
import inspect
import itertools
import random
import types
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import numpy as np

from srcgrad.tracing.hosts import draws_by_numpy
from srcgrad.tracing.lasting import LASTING
from srcgrad.tracing.members import names_in
from srcgrad.tracing.remains import ATOMS, DEEPEST, Settling, is_library
from srcgrad.tracing.unasked import attribute

LARGEST: Final = 1 << 20
"""Of larger arrays, in bytes, no copy is made at each call."""
MOST: Final = 2 * LARGEST
"""Nor are copies of more than this together: those of the smallest are made."""
UNCHANGING: Final = ATOMS - {np.ndarray}
MISSING: Final = object()
CELL: Final = vars(types.CellType)["cell_contents"]
NUMBERS: Final = (bytearray, array.array, memoryview)


class Undo:
    """What can be reached from ``roots`` holds now, to be put back by `restore`."""

    def __init__(self, roots: Iterable[Any]) -> None:
        self.lasting: list[Any] = []
        noting = Noting()
        noting.run(roots)
        noting.copy_arrays()
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
            around = LASTING.get()
            if around is not None:  # the attempt of a function that calls this one
                around += self.lasting

    def restore(self) -> None:
        for put in self.puts:
            with suppress(Exception):  # it may be locked, closed or exported by now
                put()


class Noting(Settling):
    """A walk to all that `Settling` looks at, which changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.puts: list[Callable[[], None]] = []
        self.arrays: list[np.ndarray] = []
        self.members_of: dict[type, list[Any]] = {}
        """The slots of classes."""

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
        elif isinstance(x, collections.OrderedDict):
            with suppress(Exception):  # its keys' own hashes are asked for
                table = {key: dict.__getitem__(x, key) for key in collections.OrderedDict.__iter__(x)}
                self.noted(x, table.values(), functools.partial(put_ordered, x, table))
        elif isinstance(x, dict):
            table = dict.copy(x)
            self.noted(x, table.values(), functools.partial(put_dict, x, table))
        elif isinstance(x, set):
            self.noted(x, (), functools.partial(put_set, x, set.copy(x)))
        elif isinstance(x, collections.deque):
            held = list(collections.deque.__iter__(x))
            self.noted(x, held, functools.partial(put_deque, x, held))
        elif isinstance(x, np.ndarray):
            self.arrays.append(x)
            if x.dtype == object and x.nbytes <= LARGEST:
                self.run_later(*np.array(x, subok=False).ravel().tolist())
            if type(x) is not np.ndarray:
                super().visit(x)
        elif isinstance(x, NUMBERS):
            with suppress(Exception):
                self.numbers_in(x)
        elif isinstance(x, types.MappingProxyType):  # of which the trace can only change what is in it
            self.run_later(*(item for held in gc.get_referents(x) if type(held) is dict for item in held.values()))
        elif isinstance(x, contextvars.ContextVar):
            self.settled(x.get(None))
        else:
            if is_generator(x):
                with suppress(Exception):  # there are such that have no state
                    self.puts.append(state_of(x))
                self.settled(attribute(x, "__dict__"))
            super().visit(x)

    def numbers_in(self, x: Any) -> None:
        """Numbers or bytes in Python's own arrays."""
        if isinstance(x, memoryview):
            self.settled(x.obj)
        elif len(x) * getattr(x, "itemsize", 1) <= LARGEST:
            kind: Any = bytearray if isinstance(x, bytearray) else array.array
            self.puts.append(functools.partial(put_numbers, kind, x, kind.__getitem__(x, slice(None))))

    def copy_arrays(self) -> None:
        """Note what is in arrays, of all the smallest ones."""
        left = MOST
        for x in sorted(self.arrays, key=lambda x: x.nbytes):
            left -= x.nbytes
            if x.nbytes > LARGEST or left < 0:
                return
            if x.flags.writeable:
                self.puts.append(functools.partial(put_array, x, np.array(x, subok=False)))

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
            self.place(cell, CELL)
        self.run_later(function.__defaults__, function.__kwdefaults__, vars(function))
        self.named_in(function)

    def named_in(self, function: types.FunctionType) -> None:
        if "random" in names_in(function.__code__) and not is_library(function.__module__):
            self.run_later(*shared_generators())
        super().named_in(function)

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
        if cls not in self.members_of:
            library = is_library(cls.__module__) and cls is not types.SimpleNamespace
            self.members_of[cls] = [] if library else list(members_of(cls))
            self.slots[cls] = None if library else []
            self.settled(cls)
        if self.slots[cls] is not None:
            self.settled(attribute(x, "__dict__"))
            for member in self.members_of[cls]:
                self.place(x, member)

    def place(self, x: Any, member: Any) -> None:
        """What a cell or an attribute in a slot holds."""
        value = held_at(x, member)
        self.puts.append(functools.partial(put_at, x, member, value))
        self.settled(value)


def members_of(cls: type) -> Iterator[Any]:
    """What reads and assigns its slots, though a property of the same name may stand before it."""
    for base in cls.__mro__:
        if not is_library(base.__module__):
            yield from filter(inspect.ismemberdescriptor, vars(base).values())


def held_at(x: Any, member: Any) -> Any:
    try:
        return member.__get__(x)
    except (AttributeError, ValueError):  # of an empty cell
        return MISSING


def put_at(x: Any, member: Any, value: Any) -> None:
    now = held_at(x, member)
    if now is value:
        return
    if value is MISSING:
        member.__delete__(x)
    else:
        member.__set__(x, value)


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
    """Keys that stood before and stand still are not taken out: these may be an object's attributes."""
    if not alike(itertools.islice(dict.__iter__(x), len(held)), held):
        dict.clear(x)
        dict.update(x, held)
        return
    for key in list(dict.__iter__(x))[len(held) :]:
        dict.__delitem__(x, key)
    for (key, value), now in zip(held.items(), list(dict.values(x)), strict=True):
        if now is not value:
            dict.__setitem__(x, key, value)


def put_ordered(x: collections.OrderedDict[Any, Any], held: dict[Any, Any]) -> None:
    kind: Any = collections.OrderedDict
    if alike(kind.__iter__(x), held) and all(dict.__getitem__(x, key) is value for key, value in held.items()):
        return
    kind.clear(x)
    for key, value in held.items():
        kind.__setitem__(x, key, value)


def put_set(x: set[Any], held: set[Any]) -> None:
    if not (len(x) == len(held) and set(map(id, set.__iter__(x))) == set(map(id, held))):
        set.clear(x)
        set.update(x, held)


def put_deque(x: collections.deque[Any], held: list[Any]) -> None:
    if not alike(collections.deque.__iter__(x), held):
        collections.deque.clear(x)
        collections.deque.extend(x, held)


def put_numbers(kind: Any, x: Any, held: Any) -> None:
    if x != held:
        kind.__setitem__(x, slice(None), held)


def put_array(x: np.ndarray, held: np.ndarray) -> None:
    alike = x.shape == held.shape and x.dtype == held.dtype and x.flags.writeable
    if alike and (x.dtype.hasobject or np.ndarray.tobytes(x) != held.tobytes()):
        np.ndarray.__setitem__(x, ..., held)


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
        core: Any = random.Random.__base__
        return functools.partial(core.setstate, generator, core.getstate(generator))
    if isinstance(generator, np.random.Generator):
        bits = generator.bit_generator
        return functools.partial(setattr, bits, "state", bits.state)
    return functools.partial(generator.set_state, generator.get_state(legacy=False))
