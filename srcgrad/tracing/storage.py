"""What traces note of the memory that tracers view, and of the user's containers, objects and classes."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from srcgrad.ir.core import Value
from srcgrad.tracing.layout import Strides

if TYPE_CHECKING:
    from srcgrad.tracing.trace import Trace

ASK: Final = object()
"""The owner of attributes that is there when the trace has asked for it."""


class Storage:
    """Memory that tracers view: its current SSA value in the trace that made it."""

    __slots__ = (
        "__weakref__", "aliases", "claimed", "decided", "doubt", "given", "made", "pending", "shown", "strides",
        "trace", "value", "writable",
    )  # fmt: skip

    def __init__(self, trace: Trace, value: Value, writable: bool = True, strides: Strides | None = None) -> None:
        self.trace = trace
        self.value = self.made = value
        self.writable = writable
        self.given = False
        """Whether this stands for an array of the caller's, which may share its memory with others."""
        self.claimed = False
        """Whether a function inside, of a transform, writes into a copy of it: plain Python would write into it."""
        self.strides = strides
        """Where it is not laid out in C order, how; the IR knows no layout."""
        self.aliases: weakref.WeakKeyDictionary[Storage, Any] | None = None
        """Memory that may be shared with this one, depending on a traced condition, and how: `conversion.aliases`."""
        self.doubt: Doubt | None = None
        self.decided = False
        """Whether it stands for one object or another, depending on a traced condition."""
        self.pending: Pending | None = None
        """Of a variable that is bound, or is not None, on a condition: checked when it is first read."""
        self.shown: dict[Any, Any] | None = None
        """What views that gather show of it: `views.seen_of`."""


class Pending(NamedTuple):
    """A variable that has its value only where a predicate holds."""

    name: str
    predicate: Value
    none: bool = False
    """Whether it is None elsewhere, and not unbound."""


class Use:
    """Whether anything has read or changed a copy that stands for one of several objects."""

    def __init__(self, sources: Sequence[Any], before: Sequence[Use]) -> None:
        """``sources``: the several, which are held by this; ``before``: of the copies among them."""
        self.sources, self.before, self.happened = sources, before, False

    def note(self) -> None:
        if not self.happened:
            self.happened = True
            for use in self.before:
                use.note()


class Noted(NamedTuple):
    """What memory was at one moment."""

    storage: Storage
    value: Value
    pending: Pending | None
    aliases: weakref.WeakKeyDictionary[Storage, Any] | None

    def restore(self) -> None:
        storage = self.storage
        storage.value, storage.pending, storage.aliases = self.value, self.pending, self.aliases


class Doubt(NamedTuple):
    """What of an array depends on a traced condition, so that some uses of it mean one thing or another."""

    name: str
    dtype: bool
    """It is rounded on one path when it is written into."""
    layout: bool
    """Reshaping it gives a view or a copy."""
    memory: bool = False
    """It is an array without axes, which is changed in place, or a number, which is not."""
    listed: bool = False
    """It is an item of a list, of which the program has a copy."""


class Watched(NamedTuple):
    """A copy of a captured container, or the attributes of one of an object, and what it held at first.

    Of an array of texts or a sparse matrix ``before`` says whether it holds the same.
    """

    copy: Any
    before: Any
    label: str
    owner: Any = None
    """What stores the attributes of the user's object when the program runs: `journals.Owner`, `ASK`, or None."""
    guarded: frozenset[str] = frozenset()
    """The attributes whose values are guards, so that they must not change."""


class Rebound:
    """Globals that a function may assign, in the copy of their namespace that a trace has, and what they were first."""

    def __init__(self, namespace: dict[str, Any], reasons: dict[str, str]) -> None:
        """``reasons``: what is said of each that is assigned for good."""
        self.namespace: Final = namespace
        self.reasons: Final = reasons
        self.before: Final = {name: namespace[name] for name in reasons}

    def bind(self, names: Sequence[str], values: Sequence[Any]) -> None:
        """Give those of these names these values, the others none."""
        for name in self.before:
            self.namespace.pop(name, None)
        self.namespace.update(zip(names, values, strict=True))

    def bound(self) -> dict[str, Any]:
        return {name: self.namespace[name] for name in self.before if name in self.namespace}


WRITTEN: Final = ("_abc_", "__annot", "__abstractmethods__", "__srcgrad_")
"""How names begin of what Python itself, or a trace, writes into a class."""
OF_FUNCTIONS: Final = (
    *("__name__", "__qualname__", "__module__", "__doc__"),
    *("__code__", "__defaults__", "__kwdefaults__"),
)
"""What a function has besides its attributes."""


def attributes_of(owner: Any) -> dict[str, Any]:
    of_function = {name: getattr(owner, name) for name in OF_FUNCTIONS if not isinstance(owner, type)}
    return {**vars(owner), **of_function}


class Classed(NamedTuple):
    """A class or function whose attributes a trace may assign, and what they were at first."""

    cls: Any
    before: dict[str, Any]

    @classmethod
    def of(cls, owner: Any) -> Classed:
        return cls(owner, attributes_of(owner))

    def assigned(self) -> list[str]:
        """The attributes that are others now, or gone, as far as Python does not write them."""
        now = attributes_of(self.cls)
        names = [name for name in self.before | now if self.before.get(name, self) is not now.get(name, self)]
        return [name for name in names if not name.startswith(WRITTEN)]

    def restore(self) -> None:
        names = self.assigned()
        if names and not isinstance(self.cls, type):
            vars(self.cls).clear()
            names = list(self.before)  # in their order
        for name in names:
            if name in self.before:
                setattr(self.cls, name, self.before[name])
            else:
                delattr(self.cls, name)
