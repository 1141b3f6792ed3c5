"""What a backend is: it compiles a function of the language into an executable. The registry imports one when asked."""

from __future__ import annotations

import importlib
import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Final, NamedTuple

from srcgrad.ir.core import Function
from srcgrad.ir.errors import BackendError, UnknownBackendError, nearest_hint


class Executable:
    """A compiled function: takes one array per parameter, returns a tuple with one per result.

    Arguments have exactly the dtypes and shapes of the parameters, and are neither converted nor checked nor written.
    The results are writable, share no memory with anything, and are NumPy scalars where the rank is 0.
    """

    __slots__ = ("__weakref__", "_source", "run")

    run: Callable[..., tuple[Any, ...]]
    """What a call runs: calling it directly saves a Python call."""

    def __init__(self, run: Callable[..., tuple[Any, ...]], source: str | Callable[[], str]) -> None:
        self.run = run
        self._source = source

    @property
    def source(self) -> str:
        """The program's text, in the backend's language; written when it is first asked for."""
        if not isinstance(self._source, str):
            self._source = self._source()
        return self._source

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        return self.run(*args)


class Backend(ABC):
    """One way to run functions."""

    name: ClassVar[str]
    weight: ClassVar[int] = 1
    """How many of the programs that are kept one of its programs counts for.

    Each takes maps of memory, of which Linux gives a process 65,530: where there are no more, a compiler crashes.
    """

    @abstractmethod
    def compile(self, function: Function, sites: Any = None) -> Executable:
        """Compile a function; ``sites`` is what its effects refer to: exceptions to raise, callables to run.

        Raises:
            UnsupportedError: an op that the backend cannot run.
        """

    def release(self) -> None:  # noqa: B027
        """Give memory that waits for later use back to the system."""


class _Entry(NamedTuple):
    module: str
    requires: str
    """What must be installed."""
    remedy: str | None
    """What to do where the backend cannot be had; None for one that always is there."""


_BACKENDS: Final[dict[str, _Entry]] = {
    "numpy": _Entry("srcgrad.backends.numpy.backend", "numpy", None),
    "llvm": _Entry("srcgrad.backends.llvm.backend", "llvmlite", "it needs llvmlite: pip install llvmlite"),
    "xla": _Entry("srcgrad.backends.xla.backend", "jax", "it needs the extra: pip install srcgrad[xla]"),
}
_loaded: Final[dict[str, Backend]] = {}


def backend(name: str) -> Backend:
    """The backend of this name, imported at its first use.

    Raises:
        UnknownBackendError: there is no such backend.
        BackendError: it cannot run here; the hint says what to install.

    >>> backend("numpy").name
    'numpy'
    """
    if not isinstance(name, str):
        raise UnknownBackendError(f"a backend is named by a string, not {type(name).__name__}", hint="use 'numpy'")
    found = _loaded.get(name)
    if found is not None:
        return found
    entry = _BACKENDS.get(name)
    if entry is None:
        known = ", ".join(sorted(_BACKENDS))
        raise UnknownBackendError(
            f"there is no backend {name!r}", hint=nearest_hint(name, _BACKENDS) or f"the backends are {known}"
        )
    if not _is_available(entry):
        raise BackendError(f"the backend {name!r} is not available", hint=entry.remedy)
    return _loaded.setdefault(name, importlib.import_module(entry.module).BACKEND)


def release_memory() -> None:
    """Give what backends keep for later use back to the system."""
    for found in list(_loaded.values()):
        found.release()


def available() -> dict[str, bool]:
    """By name, whether each backend can run here. Nothing is imported.

    >>> available()["numpy"]
    True
    """
    return {name: _is_available(entry) for name, entry in _BACKENDS.items()}


def _is_available(entry: _Entry) -> bool:
    if importlib.util.find_spec(entry.requires) is None:
        return False
    package = entry.module.rpartition(".")[0]
    return importlib.util.find_spec(package) is not None
