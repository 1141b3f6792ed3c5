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
ASKING: Final = ("isinstance", "issubclass")
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


def is_asked_about(steps: Sequence[Step], start: int, end: int, below: int = 0) -> bool:
    """Whether a class, loaded by these steps, is one that `isinstance` or `issubclass` is asked about, alone or in a
    tuple; ``below``: how many values there are between the question's first one and these steps.
    """
    behind = [*itertools.takewhile(is_loaded, steps[end:])]
    rest, first = list(steps[end + len(behind) :][:2]), 0
    after = sum([step.kind == "global" for step in behind])
    if rest and rest[0].kind == "other" and type(rest[0].name) is int:  # a tuple of classes
        first = rest.pop(0).name - 1 - after
        if first < 0:  # the class is before the tuple: it is the one about which something is asked
            return False
    elif behind:
        return False
    if not rest or (rest[0].kind, rest[0].name) != ("call", 2):
        return False
    known, place = 0, start
    while place:
        step = steps[place - 1]
        if (step.kind, step.name) == ("call", 1):
            place, known = where_class_begins(steps, place), known + 1
        elif step.called or step.kind not in LOADS:
            asks = step.kind == "global" and step.name in ASKING and step.called
            return asks and known == 1 + first + below
        else:
            place, known = place - 1, known + LOADS[step.kind]
    return False


def where_class_begins(steps: Sequence[Step], end: int) -> int:
    """Where the steps begin that end with the class of one value, ``type(x)``, which is there before this place; 0 if
    it is another call.
    """
    place = end - 1
    while place and steps[place - 1].kind in LOADS and not steps[place - 1].called:
        place -= 1
    found = place > 0 and (steps[place - 1].kind, steps[place - 1].name) == ("global", "type")
    behind = behind_type(steps, place) if found else None
    return place - 1 if behind is not None and behind[0] == end else 0


def is_loaded(step: Step) -> bool:
    """Whether a step is one of those that load a class by its name, for another thing than to call it."""
    return step.kind in ("global", "attribute") and not step.called


def is_compared(steps: Sequence[Step], start: int, end: int) -> bool:
    """Whether a class, loaded by these steps, is compared at once, alone or in a tuple, list or set that is written
    there, or with the class of one value: ``type(x) is Model``, ``type(x) in (Model, Other)``, ``Model is type(x)``.
    In converted code all of its twins are the same.
    """
    if end < len(steps) and (steps[end].kind, steps[end].name) == ("global", "type"):
        behind = behind_type(steps, end + 1)
        if behind is None or any(step.joined for step in steps[start : behind[0] + 1]):
            return False
        return [step.kind for step in behind[1][:1]] == ["comparison"]
    rest = steps[end + sum(1 for _ in itertools.takewhile(is_loaded, steps[end:])) :][:2]
    if rest and rest[0].kind == "other" and type(rest[0].name) is int:
        rest = rest[1:]
    elif not rest or rest[0] is not steps[end]:
        return False
    return bool(rest) and rest[0].kind == "comparison" and not steps[start].joined and not rest[0].joined


def is_only_told_apart(steps: Sequence[Step], position: int) -> bool:
    """Whether the class of an object, by the attribute ``__class__`` that stands before the step, is only compared,
    with one that is written there too or with that of another one, or is what `isinstance` is asked about.
    """
    return is_asked_about(steps, position - 1, position, 1) or ends_in_comparison(steps[position:], 1)


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
    return (
        is_only_named(steps, behind[0])
        or ends_in_comparison(behind[1], 1)
        or is_asked_for_bases(steps, position, behind[1])
    )


def is_asked_for_bases(steps: Sequence[Step], position: int, behind: Sequence[Step]) -> bool:
    """Whether `issubclass` is asked about the class of one value, ``type(x)``, and classes that are written there."""
    before = steps[position - 2] if position > 1 else None
    if before is None or (before.kind, before.name, before.called) != ("global", "issubclass", True):
        return False
    count = sum([step.kind == "global" for step in itertools.takewhile(is_loaded, behind)])
    rest = [(step.kind, step.name) for step in itertools.dropwhile(is_loaded, behind)][:2]
    return rest == [("other", count), ("call", 2)] or (count == 1 and rest[:1] == [("call", 2)])


def ends_in_comparison(steps: Sequence[Step], count: int) -> bool:
    """Whether the last of so many values, the class of an object, is compared before all else: with the one before it,
    or with classes that the steps load, those of other objects too (``type(x) is type(y)``).
    """
    asked = 0
    """How many `type` are loaded that are to be called."""
    for place, step in enumerate(steps):
        if step.joined:
            return False
        if step.kind == "comparison":
            return count <= 2 and not asked
        if (
            step.kind == "other" and type(step.name) is int
        ):  # so many make a list or a tuple, without the class asked for
            if not 0 < step.name < count:
                return False
            count -= step.name - 1
        elif (step.kind, step.name, step.called) == ("global", "type", True):
            asked += 1
        elif (step.kind, step.name) == ("call", 1) and asked == 1:
            asked, count = 0, count + 1
        elif asked and step.kind in LOADS and not step.called:
            continue
        elif step.kind in ("global", "attribute", "constant") or is_class_of_local(steps[place : place + 2]):
            count += LOADS[step.kind]
        else:
            return False
    return False


def is_class_of_local(steps: Sequence[Step]) -> bool:
    """Whether two steps read the class of what a variable holds: ``x.__class__``."""
    kinds = [(step.kind, step.name if step.kind == "attribute" else "") for step in steps]
    return kinds in ([("local", ""), ("attribute", "__class__")], [("free", ""), ("attribute", "__class__")])
