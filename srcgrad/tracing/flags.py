"""What is asked of the memory of traced arrays, and is known to the caller alone."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

from srcgrad.tracing.trace import NeedsConcrete

BYTES_HINT: Final = "a traced array has no memory of its own: leave what reads or writes its bytes out of the function"


class GivenFlags:
    """``x.flags`` of an array of the caller's: the order is known here, and whose memory it is only there."""

    KNOWN: Final = frozenset({"aligned", "c_contiguous", "contiguous", "f_contiguous", "fnc", "forc", "fortran"})
    LETTERS: Final = MappingProxyType({"O": "owndata", "W": "writeable", "X": "writebackifcopy", "B": "behaved"})

    def __init__(self, flags: Any) -> None:
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name in self.KNOWN or not hasattr(self._flags, name):
            return getattr(self._flags, name)
        raise NeedsConcrete(f"ndarray.flags.{name} of an argument is not known while it is traced", hint=BYTES_HINT)

    def __getitem__(self, name: str) -> Any:
        found = self._flags[name]
        return found if name in ("A", "C", "F") else getattr(self, self.LETTERS.get(name, name.lower()))
