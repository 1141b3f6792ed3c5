"""Machine code kept on disk, so that a program is compiled once on a machine and not in every process.

An entry is a file whose name is a digest of the module's text and of all else that its code depends on (`fingerprint`);
it holds a digest of its name and content, so that what is not whole, or another one, is not read, but removed. It is
written beside its place and renamed, so processes may read and write at once. The least recently used go when there is
more than ``LIMIT``; how much there is, a *ledger* says, to which each that writes an entry adds its bytes, so that
nobody has to look at all files.

``SRCGRAD_CACHE_DIR`` names the directory (empty: nothing is kept); without it, it is ``srcgrad`` in the user's cache
directory. A directory that cannot be written is no error, and another user's files are not read.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import struct
import sys
import threading
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import llvmlite  # type: ignore[import-untyped]
import llvmlite.binding as llvm  # type: ignore[import-untyped]
import numpy as np

from srcgrad.backends.llvm.target import LONG_TEXT, OPTIONS, Target

VARIABLE: Final = "SRCGRAD_CACHE_DIR"
LIMIT: Final = 256 << 20
"""The bytes that entries may take."""
FORMAT: Final = b"srcgrad object 2\n"
SUFFIX: Final = ".object"
PART: Final = ".part"
LEDGER: Final = "ledger"
_DIGEST: Final = 32
_NUMBER: Final = struct.Struct("<Q")
_COUNT: Final = 1 << 63
"""The bit that tells a count of all entries from the bytes of one."""
_FRESH: Final = 3600.0
"""The age in seconds from which a use is written down; before that an entry is recent enough."""


class Kept(NamedTuple):
    """A file of the cache: its path, bytes, and when it was last used."""

    path: Path
    size: int
    used: float


def directory() -> Path | None:
    """Where entries are, or None where nothing is to be kept."""
    named = os.environ.get(VARIABLE)
    if named is not None:
        return Path(named).expanduser() / "llvm" if named.strip() else None
    try:
        home = Path.home()
    except RuntimeError:  # a user without a home
        return None
    if sys.platform == "win32":
        root = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        root = home / "Library" / "Caches"
    else:
        root = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return root / "srcgrad" / "llvm"


@cache
def versions() -> str:
    """Of all that machine code may depend on beside its text and the processor."""
    own = sys.modules["srcgrad"].__version__
    made = ".".join(map(str, llvm.llvm_version_info))
    python = f"{sys.implementation.cache_tag} {sys.version_info[:3]}"
    return f"srcgrad {own}, llvmlite {llvmlite.__version__}, LLVM {made}, NumPy {np.__version__}, {python}"


def fingerprint(text: str, target: Target) -> str:
    """What an entry is known by."""
    parts = (versions(), target.triple, target.cpu, target.flags, repr((OPTIONS, LONG_TEXT)), text)
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=_DIGEST).hexdigest()


class Store:
    """Entries in one directory.

    Args:
        place: the directory; it is made when an entry is written. None: nothing is kept.
        limit: the bytes that all entries may take.
    """

    def __init__(self, place: Path | None, limit: int = LIMIT) -> None:
        self.place = place
        self.limit = limit

    def load(self, key: str) -> bytes | None:
        """An entry's content, or None. What is damaged is removed."""
        if self.place is None:
            return None
        path = self.place / (key + SUFFIX)
        try:
            with open(path, "rb", opener=_at_once) as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    return None
                found = file.read()
        except OSError:
            return None
        if hasattr(os, "getuid") and status.st_uid not in (os.getuid(), 0):
            return None
        head = len(FORMAT) + _DIGEST
        content = found[head:]
        if found[:head] != FORMAT + _digest(key, content):
            _remove(path)
            return None
        if time.time() - status.st_mtime > _FRESH:
            with contextlib.suppress(OSError):
                os.utime(path)
        return content

    def save(self, key: str, content: bytes) -> None:
        """Keep an entry, if that can be done."""
        if self.place is None:
            return
        whole = FORMAT + _digest(key, content) + content
        if len(whole) > self.limit:
            return
        part = self.place / f"{key}.{os.getpid()}.{threading.get_ident()}{PART}"
        try:
            self.place.mkdir(mode=0o700, parents=True, exist_ok=True)
            part.write_bytes(whole)
            os.replace(part, self.place / (key + SUFFIX))
        except OSError:  # not writable, full, or open in another process where that forbids a rename
            _remove(part)
            return
        self._list(len(whole))
        size = self._listed()
        if size is None:
            size = self._counted()
        if size > self.limit:
            self.shrink(self.limit * 3 // 4)

    # --- the ledger: a count of all bytes, and those of each entry since ----------------------------------------------
    # Who counts begins a new one; what is written meanwhile may be in it twice, but nothing is left out.
    def _listed(self) -> int | None:
        """What the ledger says that entries take, or None where nobody has counted."""
        assert self.place is not None
        try:
            found = (self.place / LEDGER).read_bytes()
        except OSError:
            return None
        sizes = np.frombuffer(found, "<u8", len(found) // 8)
        counts = sizes & np.uint64(_COUNT) != 0
        return int((sizes & np.uint64(_COUNT - 1)).sum(dtype=float)) if counts.any() else None

    def _counted(self) -> int:
        """Begin a new ledger."""
        assert self.place is not None
        _remove(self.place / LEDGER)
        size = self.size()
        self._list(size | _COUNT)
        return size

    def _list(self, size: int) -> None:
        """Note the bytes of an entry, or a count: all can be written at once."""
        assert self.place is not None
        with contextlib.suppress(OSError):
            mode = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
            ledger = os.open(self.place / LEDGER, mode, 0o600)
            try:
                os.write(ledger, _NUMBER.pack(size))
            finally:
                os.close(ledger)

    def kept(self) -> list[Kept]:
        """The files of the cache, by last use, those that an interrupted process has left included."""
        return sorted(self._scan(), key=lambda kept: kept.used)

    def _scan(self) -> Iterator[Kept]:
        if self.place is None:
            return
        with contextlib.suppress(OSError), os.scandir(self.place) as files:
            for file in files:
                if file.name.endswith((SUFFIX, PART)):
                    with contextlib.suppress(OSError):  # another process has removed it
                        status = file.stat()
                        yield Kept(Path(file.path), status.st_size, status.st_mtime)

    def size(self) -> int:
        return sum(kept.size for kept in self._scan())

    def shrink(self, size: int) -> int:
        """Remove what was not used for longest until the rest takes no more than ``size``; how many went."""
        if self.place is not None:
            _remove(self.place / LEDGER)
        kept = self.kept()
        left, gone = sum(entry.size for entry in kept), 0
        for entry in kept:
            if left <= size:
                break
            if _remove(entry.path):
                gone += 1
            left -= entry.size
        if left:
            self._list(left | _COUNT)
        return gone


def _digest(key: str, content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST, key=key.encode()).digest()


def _at_once(path: str, flags: int) -> int:
    """Opens a file; a pipe in its place is not waited for."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _remove(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True


@cache
def store(place: Path | None) -> Store:
    return Store(place)


def current() -> Store:
    """The store of the directory that is named now."""
    return store(directory())
