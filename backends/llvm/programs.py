"""Programs on disk: what is compiled already is loaded without being written again.

Machine code is known by the text that it is made from (`objects`), and text is most of what a program takes to make
once that is on disk. So of a function that is one kernel an entry says what that is: its name and face, and the keys
of its modules. It is known by the function itself (`identity.described`), by the code of srcgrad that would write the
text, and by all that the text depends on beside that.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import llvmlite.binding as llvm  # type: ignore[import-untyped]
import numpy as np

from srcgrad.backends.base import Executable
from srcgrad.backends.llvm import native, objects, tapes, workers
from srcgrad.backends.llvm.target import TARGET
from srcgrad.ir.core import Function
from srcgrad.ir.identity import described
from srcgrad.ir.types import ArrayType, TapeType

KEPT = True
"""Whether programs are kept: a test that has the same function written in several ways says no."""
_PARTS: Final = ("srcgrad.ir", "srcgrad.backends.llvm")
"""The packages that write text."""
_LIBRARIES: Final = ("numpy", "scipy")
_FAMILIES: Final = {
    "scipy_": ("steps.writer", "routine"),
    "numpy_sort_": ("steps.sorts", "sorter_of"),
    "srcgrad_product_": ("steps.packed_products", "product_of"),
    "srcgrad_spherical_": ("steps.special", "spherical_of"),
    "srcgrad_loop_": ("steps.ufuncs", "function_of"),
    "srcgrad_data_": ("steps.ufuncs", "data_of"),
}
"""How names of addresses begin that steps call: the function of a module that finds one by the rest of its name."""


class Entry(NamedTuple):
    """A function as one kernel."""

    name: str
    inputs: Sequence[int]
    """The parameter of each input."""
    results: Sequence[int]
    """The output of each result."""
    fails: bool
    """Whether it says by a status that NumPy's program is to run."""
    chunks: bool
    """Whether other threads may take part."""
    symbols: Sequence[str]
    """The addresses that it calls, of those that not every program knows."""
    modules: Sequence[str]
    """The keys of its machine code."""

    def content(self) -> bytes:
        return json.dumps(self).encode()

    @classmethod
    def of(cls, content: bytes) -> Self:
        return cls(*json.loads(content))


# --- keys ------------------------------------------------------------------------------------------
def key_of(function: Function) -> str | None:
    """What a function's entry is known by; None where it has none."""
    state = code_state() if KEPT else None
    text = described(function) if state is not None else None
    if text is None:
        return None
    digest = hashlib.blake2b(text).hexdigest()
    return objects.fingerprint(f"program {native.LAYOUT_IS_KNOWN} {native.ARRAYS_ARE_KNOWN} {state} {digest}", TARGET)


@cache
def code_state() -> str | None:
    """What tells one state of the code that writes text from another; None where it lies in no files.

    That is when its files were written, and changed in any way, and their sizes: reading them would take ten times as
    long. A version would not do, since code under development keeps its own.
    """
    try:
        found = sorted(_states(Path(str(sys.modules[name].__file__)).parent for name in _PARTS))
        found += [_state(os.stat(library_file(name)), name) for name in _LIBRARIES]
    except OSError:
        return None
    return hashlib.blake2b(repr(found).encode()).hexdigest()


def library_file(name: str) -> str:
    """The file of a library that is written anew with each version; the library is not imported."""
    found = importlib.util.find_spec(name)
    return os.path.join(os.path.dirname(str(found and found.origin)), "version.py")


def _states(folders: Iterable[Path]) -> Iterator[tuple[Any, ...]]:
    waiting = [str(folder) for folder in folders]
    for folder in waiting:  # which grows
        with os.scandir(folder) as files:
            for file in files:
                if file.name.endswith(".py"):
                    yield _state(file.stat(), file.path)
                elif file.name != "__pycache__" and file.is_dir():
                    waiting.append(file.path)


def _state(status: os.stat_result, name: str) -> tuple[Any, ...]:
    return name, status.st_size, status.st_mtime_ns, status.st_ctime_ns


# --- keeping and finding ---------------------------------------------------------------------------
def keep(key: str, entry: Entry, addresses: Mapping[str, int]) -> None:
    """Keep a program of which the modules are kept; not one that calls what another process would not find."""
    if all(address_of(symbol) == addresses[symbol] for symbol in entry.symbols):
        objects.current().save(key, entry.content())


def found(key: str, function: Function, sites: Any, shown: Callable[[], str]) -> Executable | None:
    """The program under a key, or None where it, or a part of it, is not there any more."""
    store = objects.current()
    content = store.load(key)
    if content is None:
        return None
    entry = Entry.of(content)
    codes = [store.load(module) for module in entry.modules]
    addresses = {symbol: address_of(symbol) for symbol in entry.symbols}
    if None in codes or None in addresses.values():
        return None
    for symbol, address in addresses.items():
        llvm.add_symbol(symbol, address)
    if entry.chunks:
        workers.prepare(native.Library)
    library = native.Library(*[code for code in codes if code is not None])
    types = [param.type for param in function.params]
    outputs = dict(zip(entry.results, [value.type for value in function.results], strict=True))
    kernel = tapes.kernel(
        library, entry.name, types, entry.inputs, [outputs[k] for k in range(len(outputs))], entry.results, True,
        InNumPy(function, sites) if entry.fails else None,
    )  # fmt: skip
    return Executable(kernel, shown)


def address_of(symbol: str) -> int | None:
    """The address that a step calls by this name; None where this process has none."""
    for start, (module, function) in _FAMILIES.items():
        if symbol.startswith(start):
            find = getattr(importlib.import_module(f"srcgrad.backends.llvm.{module}"), function)
            address: int | None = find(symbol.removeprefix(start))
            return address
    return None


class InNumPy:
    """The function as NumPy's program: it runs where the machine code cannot, and raises what there is to raise."""

    def __init__(self, function: Function, sites: Any) -> None:
        self.function = function
        self.sites = sites
        self.executable: Executable | None = None
        """Kept, for with it goes the text that errors quote."""

    def __call__(self, *arguments: Any) -> Any:
        if self.executable is None:
            from srcgrad.backends.numpy.backend import BACKEND as NUMPY

            self.executable = NUMPY.compile(self.function, self.sites)
        params = self.function.params
        given = zip(arguments, params, strict=True)
        return self.executable.run(*[as_given(argument, param.type) for argument, param in given])


def as_given(argument: Any, type: ArrayType) -> Any:
    """An argument of a kernel as NumPy's program takes it."""
    return argument if isinstance(type, TapeType) else np.asarray(argument, type.dtype)[()]
