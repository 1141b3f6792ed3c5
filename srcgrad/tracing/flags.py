"""What is asked of the memory of traced arrays, and is known to the caller alone."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from srcgrad.errors import MutationError, UnsupportedError
from srcgrad.tracing.trace import NeedsConcrete, Refused, current_trace
from srcgrad.tracing.views import DiagonalView, LockedView, WritableDiagonalView

if TYPE_CHECKING:
    from srcgrad.tracing.tracer import Tracer

BYTES_HINT: Final = "a traced array has no memory of its own: leave what reads or writes its bytes out of the function"


class Flags:
    """``x.flags``: the order is known here, and of an array of the caller's whose memory it is only there."""

    KNOWN: Final = frozenset({"aligned", "c_contiguous", "contiguous", "f_contiguous", "fnc", "forc", "fortran"})
    LETTERS: Final = MappingProxyType({"O": "owndata", "W": "writeable", "X": "writebackifcopy", "B": "behaved"})

    def __init__(self, array: Tracer) -> None:
        object.__setattr__(self, "_array", array)

    def __getattr__(self, name: str) -> Any:
        array: Tracer = self._array
        flags = array.ghost().flags
        locked = name == "writeable" and LOCKED in array.chain
        if locked or name in self.KNOWN or not array.storage.given or not hasattr(flags, name):
            return getattr(flags, name)
        if name == "writeable" and array.storage.trace.concrete:
            return flags.writeable and bool(array.storage.writable)
        raise NeedsConcrete(f"ndarray.flags.{name} of an argument is not known while it is traced", hint=BYTES_HINT)

    def __getitem__(self, name: str) -> Any:
        found = self._array.ghost().flags[name]
        return found if name in ("A", "C", "F") else getattr(self, self.LETTERS.get(name, name.lower()))

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "writeable":
            set_writeable(self._array, bool(value))
            return
        try:
            setattr(self._array.ghost().flags, name, value)
        except (AttributeError, ValueError) as error:
            raise UnsupportedError(str(error)) from None

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self, self.LETTERS.get(name, name.lower()), value)

    def __repr__(self) -> str:
        return repr(self._array.ghost().flags)


LOCKED: Final = LockedView()


def taken_as_writeable(array: Tracer) -> bool:
    """Whether what asks for an array that may be written into gets this one: else it gets a copy.

    Of an argument that is not known it is taken to be so: a program that writes into it is for such arrays only.
    """
    return bool(array.storage.writable) and array.ghost().flags.writeable


def set_writeable(array: Tracer, writeable: bool) -> None:
    """Let the array be written into or not, and with it the views that are made of it from now on.

    Raises:
        MutationError: it is a view of an array that may not be.
        NeedsConcrete: it is an array of the caller's, who is to see this.
        Refused: this depends on a traced condition, or stands in what may have to be run again.
    """
    trace, storage, chain = current_trace(), array.storage, array.chain
    if storage.given and not chain and storage.trace.writes_back:
        raise NeedsConcrete("ndarray.flags.writeable of an argument is set", hint="set it outside of the function")
    if not trace.concrete and (storage.trace is not trace or trace.journal is not None):
        raise Refused("whether an array may be written into depends on a traced condition")
    if writeable and chain[-1:] == (LOCKED,):
        array.chain = chain[:-1]
    elif writeable and chain and type(chain[-1]) is DiagonalView and LOCKED not in chain:
        last = chain[-1]  # as which NumPy hands it out, but whose memory may be written into
        array.chain = (*chain[:-1], WritableDiagonalView(last.offset, last.axis1, last.axis2))
    elif writeable and LOCKED in chain:
        raise MutationError("cannot set WRITEABLE flag to True of this array", hint="make a copy: x = x.copy()")
    elif not writeable and LOCKED not in chain:
        array.chain = (*chain, LOCKED)
    array.cache = None


def setflags(array: Tracer, write: Any = None, align: Any = None, uic: Any = None) -> None:
    for name, value in (("writeable", write), ("aligned", align), ("writebackifcopy", uic)):
        if value is not None:
            setattr(array.flags, name, value)
