"""Whether Python evaluates what the user's code makes of a value now: ``eval(str(x))``, also some lines further.

``eval`` takes the characters of a text and asks it for nothing, and code with it runs as it is. So the text is looked
for ahead: from the line in progress to the names that are assigned there, from these to others, up to an ``eval``.
"""

from __future__ import annotations

import types
from typing import Any, Final, NamedTuple

from srcgrad.ir.source import internal_frame
from srcgrad.tracing.bytecode import instructions

EVALUATING: Final = frozenset({"eval", "exec"})
STORING: Final = frozenset({"append", "add", "insert", "extend", "update", "setdefault", "put", "write"})
"""Methods by which an object takes what they are given."""


class Line(NamedTuple):
    loaded: set[Any]
    stored: set[Any]


def is_evaluated(frame: types.FrameType | None) -> bool:
    inner = None
    while frame is not None:
        if internal_frame(frame):
            if frame.f_code.co_name == "trace_function":
                return False
        # where the code that is evaluated runs, the text has been made before
        elif (inner is None or inner.f_code.co_name != "<module>") and reaches_eval(frame.f_code, frame.f_lineno):
            return True
        inner, frame = frame, frame.f_back
    return False


def reaches_eval(code: types.CodeType, line: int | None) -> bool:
    if EVALUATING.isdisjoint(code.co_names):
        return False
    lines = lines_of(code)
    here = lines.get(line, Line(set(), set()))
    if here.loaded & EVALUATING:
        return True
    held, before = set(here.stored), 0
    while before != len(held):
        before = len(held)
        for other in lines.values():
            if other.loaded & held:
                held |= other.stored
    return any(other.loaded & EVALUATING and other.loaded & held for other in lines.values())


def lines_of(code: types.CodeType) -> dict[int | None, Line]:
    """What is loaded and stored in each line, by name; of an attribute both its own name and the object's."""
    found: dict[int | None, Line] = {}
    for name, argument, line, _ in instructions(code):
        here = found.setdefault(line, Line(set(), set()))
        if name in ("STORE_SUBSCR", "STORE_ATTR") or argument in STORING:
            here.stored.update(here.loaded)
        if isinstance(argument, str) and name.startswith("STORE_"):
            here.stored.add(argument)
        elif isinstance(argument, str) and name.startswith("LOAD_") and name != "LOAD_CONST":
            here.loaded.add(argument)
    return found
