"""Whether a class still finds names where it found them: the guard of what methods and attributes are looked up in.

Guards compare what stands in the bases of a class under the names that are read. That the names are found there, and
not in a base before it, or in the class itself, is said here. Python gives a class a version that changes with it and
its bases; while it is the same nothing is looked at.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from typing import Any

from srcgrad.backends.llvm import layout
from srcgrad.tracing.purity import WRITTEN_BY_PYTHON
from srcgrad.tracing.unasked import is_special


class Resolution:
    """A guard: calling it says whether a class has the same bases, with the same of the names that matter in each.

    Those are the names that `settle` gives, and the ones that Python looks up by itself. Under ``fields`` each base has
    the same objects: what finds the items of a named tuple, say, which is read without looking at it.
    """

    __slots__ = ("cls", "fields", "members", "mro", "names", "own", "seen")

    def __init__(self, cls: type, fields: Sequence[str] = ()) -> None:
        self.cls, self.fields = cls, tuple(fields)
        self.seen = -1
        """The version of the class that has been looked at."""

    def settle(self, names: Iterable[str]) -> None:
        self.names = frozenset(names)
        self.mro = self.cls.__mro__
        self.own = [self.relevant(base) for base in self.mro]
        self.members = self.found()

    def found(self) -> list[Any]:
        return [vars(base).get(name) for base in self.mro for name in self.fields]

    def relevant(self, base: type) -> frozenset[str]:
        special = [name for name in vars(base) if is_special(name)]
        return (self.names.intersection(vars(base)) | frozenset(special)) - WRITTEN_BY_PYTHON

    def __call__(self) -> bool:
        version = layout.class_version(self.cls) if layout.KNOWN else 0
        if self.cls.__mro__ != self.mro or self.own != [self.relevant(base) for base in self.mro]:
            return False
        if any(one is not other for one, other in zip(self.found(), self.members, strict=True)):
            return False
        self.seen = version or -1
        return True


def version_cell(cls: type) -> Any:
    """What has the version of a class, which must live, as its ``value``; None where it is not known."""
    return ctypes.c_uint32.from_address(id(cls) + layout.CLASS_VERSION) if layout.KNOWN else None
