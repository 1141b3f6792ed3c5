"""Memory of large results and of arenas: blocks that are used again, instead of fresh pages at every call.

Freshly mapped pages cost more than most kernels that fill them. A *block* is data aligned to 64 bytes behind a header;
it belongs to one of a few *classes* by its capacity, four to an octave. A block that is given back waits in a slot of
its class until it is taken again. Slots change hands by one atomic exchange, so there is no lock: threads need not hold
the interpreter's, and a fork leaves nothing locked. What waits is bounded; beyond that other blocks that wait are freed
in turn, and all of them before memory is said to be lacking.

Results own their memory as other arrays do: a large one has NumPy's flag OWNDATA and a memory handler (NEP 49) that
gives back here. Such an array may outlive every program, so this code and the handler are never freed. Where the layout
of arrays is not known, arrays are NumPy's own.

For IR that needs memory of its own, by any thread, with or without the interpreter's lock:

- ``declare ptr @srcgrad_take(i64)``: at least that many bytes, aligned to 64, not cleared; null where there are none
- ``declare void @srcgrad_give(ptr)``: give a block back (null passes); its header knows its size
- ``declare void @srcgrad_give_all(ptr)``: the same for each block of a list, which begins with where the next one is
- ``declare ptr @srcgrad_grown(ptr, i64)``: a block with room for so many bytes and what the old one held, which is the
  old one where that has the room; null where there is no memory, and then the old one is as it was; null grows too

With the lock: ``declare ptr @srcgrad_array(ptr dtype, i32 rank, ptr shape, i64 bytes)``, a new array, which takes a
reference to the dtype; null with MemoryError set.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
from pathlib import Path
from typing import Any, Final

import numpy as np

from srcgrad.ir.errors import BackendError

LIMIT_VARIABLE: Final = "SRCGRAD_KEPT_MEMORY"
DEFAULT_LIMIT: Final = 512 << 20
"""The bytes that may wait for use; a sixteenth of the memory on machines that have less than 16 times as much."""
GROUP_LIMITS: Final = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where Linux says how much memory a control group may have."""
POOLED: Final = 1 << 15
"""The bytes from which results come from here; smaller ones are as quick from NumPy and the C library."""


class _Handler(ctypes.Structure):
    """NumPy's ``PyDataMem_Handler``."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    )


class Pool:
    """The memory of this process: the code that hands it out, and what waits.

    Args:
        library: the machine code of `pool_text`, with ``address(name)``; it is kept for ever.
        arrays: whether the layout of arrays is known.

    Attributes:
        symbols: the addresses of what IR may call, by name.
        take, give, give_all, grown: the same for Python.
    """

    def __init__(self, library: Any, arrays: bool) -> None:
        self.library = library
        keep(self.library)
        names = ["srcgrad_take", "srcgrad_give", "srcgrad_give_all", "srcgrad_grown"]
        names += ["srcgrad_array"] if arrays else []
        self.symbols: dict[str, int] = {name: self.library.address(name) for name in names}
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        self.take = ctypes.CFUNCTYPE(pointer, size)(self.symbols["srcgrad_take"])
        self.give = ctypes.CFUNCTYPE(None, pointer)(self.symbols["srcgrad_give"])
        self.give_all = ctypes.CFUNCTYPE(None, pointer)(self.symbols["srcgrad_give_all"])
        self.grown = ctypes.CFUNCTYPE(pointer, pointer, size)(self.symbols["srcgrad_grown"])
        self._drain = ctypes.CFUNCTYPE(None, ctypes.c_int64)(self.library.address("srcgrad_drain"))
        self._waiting = ctypes.c_int64.from_address(self.library.address("srcgrad_waiting"))
        self._limit = ctypes.c_int64.from_address(self.library.address("srcgrad_limit"))
        self.limit = kept_bytes(os.environ.get(LIMIT_VARIABLE))
        self._array: Any = None
        if arrays:
            capsule = handler_capsule(self.library)
            ctypes.c_void_p.from_address(self.library.address("srcgrad_capsule")).value = id(capsule)
            new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_int, pointer, size)
            self._array = new(self.symbols["srcgrad_array"])

    @property
    def waiting(self) -> int:
        """The bytes that wait to be used again."""
        return int(self._waiting.value)

    @property
    def limit(self) -> int:
        """How many bytes may wait."""
        return int(self._limit.value)

    @limit.setter
    def limit(self, value: int) -> None:
        self._limit.value = value
        self.release(value)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """A new array, as entry functions make them: large ones are aligned to 64 where the layout is known."""
        size = dtype.itemsize * math.prod(shape)
        if self._array is None or not POOLED <= size < 1 << 62:
            return np.empty(shape, dtype)
        keep(dtype)  # this reference is the array's
        return self._array(dtype, len(shape), (ctypes.c_int64 * len(shape))(*shape), size)  # type: ignore[no-any-return]

    def release(self, down_to: int = 0) -> None:
        """Give memory back to the system until no more than ``down_to`` bytes wait."""
        self._drain(down_to)


def keep(object: Any) -> None:
    """Add a reference that nobody gives back: the object is never freed, not even at the end of the interpreter."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(object))


def handler_capsule(library: Any) -> Any:
    """The memory handler as NumPy wants it; both live for ever."""
    found = {name: library.address(f"srcgrad_handler_{name}") for name in ("malloc", "calloc", "realloc", "free")}
    handler = _Handler(name=b"srcgrad", version=1, context=None, **found)
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    name = ctypes.create_string_buffer(b"mem_handler")  # the capsule points to its name
    capsule = new(("PyCapsule_New", ctypes.pythonapi))(ctypes.addressof(handler), ctypes.addressof(name), None)
    for object in (handler, name, capsule):
        keep(object)
    return capsule


def handler_of(capsule: Any) -> _Handler:
    """The memory handler that a capsule of NumPy's holds."""
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    return _Handler.from_address(get(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, b"mem_handler"))


def kept_bytes(megabytes: str | None) -> int:
    """How much may wait for use: what ``SRCGRAD_KEPT_MEMORY`` says, or what suits the machine.

    Raises:
        BackendError: the variable is no whole number from 0 on.
    """
    if megabytes is not None and megabytes.strip():
        if not megabytes.strip().isdecimal():
            raise BackendError(
                f"{LIMIT_VARIABLE}={megabytes} is no number of megabytes", hint="give a whole number; 0 keeps nothing"
            )
        return int(megabytes) << 20
    return min([DEFAULT_LIMIT, *(size // 16 for size in memory_sizes())])


def memory_sizes() -> list[int]:
    """The bytes of memory of the machine, and of the control group that the process may be confined to."""
    found = []
    with contextlib.suppress(AttributeError, ValueError, OSError):  # a system that does not tell
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for file in GROUP_LIMITS:
        with contextlib.suppress(ValueError, OSError):  # no such file, or it says max
            found.append(int(Path(file).read_text("utf-8")))
    return [size for size in found if size > 0]


def library_symbols() -> dict[str, int]:
    """The C library's functions that the pool calls."""
    library = ctypes.CDLL(None) if os.name == "posix" else ctypes.CDLL("ucrtbase")
    names = ("malloc", "free", "memcpy", "memset", *(("mmap", "munmap", "madvise") if os.name == "posix" else ()))
    return {name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in names}
