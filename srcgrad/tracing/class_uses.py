"""What code does with a class that it loads, by the steps around: whether methods of it may be run in another way than
by calling it or an object of it.

A trace has twins in place of classes whose methods read what can change (`reached_classes`). Objects are of twins,
calls of a class make one, and what asks for a class by an object is told the user's own, by which no method of a twin
would be found.
"""

from __future__ import annotations

import inspect
import itertools
import sys
from collections.abc import Sequence
from typing import Any, Final

from srcgrad.tracing.bytecode import Step
from srcgrad.tracing.members import wrapped
from srcgrad.tracing.unasked import is_special

LOADS: Final = {"local": 1, "free": 1, "global": 1, "constant": 1, "attribute": 0, "subscript": -1}
"""The steps of a value that nothing is called for, and how many values each adds."""
TITLES: Final = ("__name__", "__qualname__", "__module__", "__doc__")
"""The texts of classes."""


def is_asked_for_methods(cls: Any, steps: Sequence[Step], start: int, position: int) -> bool:
    """Whether a class is loaded, by the steps from the first place to before the other, for one of its methods or
    attributes or for those behind it, or to be asked whether something is of it: ``Base.step(self, x)``,
    ``Grid.points``, ``super(Model, self)``, ``isinstance(x, Model)``.
    """
    before = steps[start - 1] if start > 0 else None
    if before is not None and (before.kind, before.name) == ("global", "super"):
        return True
    step = steps[position] if position < len(steps) else None
    if step is not None and step.kind == "attribute" and not step.joined and isinstance(step.name, str):
        member = inspect.getattr_static(cls, step.name, None)
        return wrapped(member) is not None or (member is not None and not is_special(step.name))
    return is_asked_about(steps, start, position)


def is_asked_about(steps: Sequence[Step], start: int, end: int) -> bool:
    """Whether a class, loaded by these steps, is one that `isinstance` is asked about, alone or in a tuple."""
    behind = [*itertools.takewhile(lambda step: step.kind in ("global", "attribute") and not step.called, steps[end:])]
    rest, first = list(steps[end + len(behind) :][:2]), 0
    after = sum([step.kind == "global" for step in behind])
    if rest and rest[0].kind == "other" and type(rest[0].name) is int:  # a tuple of classes
        first = rest.pop(0).name - 1 - after
    elif behind:
        return False
    if not rest or (rest[0].kind, rest[0].name) != ("call", 2):
        return False
    known = 0
    for step in reversed(steps[:start]):
        if step.called or step.kind not in LOADS:
            return (step.kind, step.name) == ("global", "isinstance") and step.called and known == 1 + first
        known += LOADS[step.kind]
    return False


def is_only_named(steps: Sequence[Step], position: int) -> bool:
    """Whether of a class that is there before the step, by ``x.__class__``, only a text is read."""
    step = steps[position] if position < len(steps) else None
    return step is not None and step.kind == "attribute" and not step.joined and step.name in TITLES


def is_only_called(steps: Sequence[Step], position: int) -> bool:
    """Whether `type` is loaded, by the step before this one, for the class of one value, which is called at once:
    ``type(x)(y)``.
    """
    behind = behind_type(steps, position)
    return behind is not None and begins_call(steps, position - 1, behind[0])


def begins_call(steps: Sequence[Step], start: int, end: int) -> bool:
    """Whether what these steps give is called, or something with an index of it: ``cls(x)``, ``cls[int](x)``."""
    if end >= len(steps):
        return False
    if sys.version_info >= (3, 13):
        return steps[end].begins
    return steps[start].begins and steps[end].kind not in ("attribute", "copy", "comparison", "binary")


def behind_type(steps: Sequence[Step], position: int) -> tuple[int, Sequence[Step]] | None:
    """Where the class of one value is there, by ``type(x)``, and the steps from there on; None if it is not so."""
    if not steps[position - 1].called:
        return None
    count = 0
    while position < len(steps) and steps[position].kind in LOADS and not steps[position].called:
        count += LOADS[steps[position].kind]
        position += 1
    if count != 1 or position >= len(steps) or (steps[position].kind, steps[position].name) != ("call", 1):
        return None
    return position + 1, steps[position + 1 :]


def is_only_compared(steps: Sequence[Step], position: int) -> bool:
    """Whether `type` is loaded, by the step before this one, for the class of one value, of which only a text is read,
    or that is compared at once with classes that are written there: ``type(x) is str``, ``type(x) in [list, tuple]``.
    """
    behind = behind_type(steps, position)
    if behind is None:
        return False
    count = 1
    if is_only_named(steps, behind[0]):
        return True
    for step in behind[1]:
        if step.joined:
            return False
        if step.kind == "comparison":
            return count == 2
        if (
            step.kind == "other" and type(step.name) is int
        ):  # so many make a list or a tuple, without the class asked for
            if not 0 < step.name < count:
                return False
            count -= step.name - 1
        elif step.kind in ("global", "attribute", "constant"):
            count += LOADS[step.kind]
        else:
            return False
    return False
