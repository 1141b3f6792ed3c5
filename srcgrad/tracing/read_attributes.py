"""Of the names of attributes that code reads: what is refused of them, and that what lacks one still does."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from srcgrad.tracing.bytecode import Refusal, Scope, Step
from srcgrad.tracing.frozen import makes_rotations
from srcgrad.tracing.guard_lines import GuardFunction
from srcgrad.tracing.members import ASKED_FOR
from srcgrad.tracing.purity import (
    OF_TYPES,
    class_reason,
    hidden_kind,
    is_factors,
    is_plain_type,
    is_ufunc_method,
    module_reason,
    unsteady,
)
from srcgrad.tracing.unasked import is_special

FEW: Final = 8
"""So many names that functions lack are asked about one by one."""


class ReadAttributes(GuardFunction):
    """The part of an analysis that knows the attributes by their names: whose they are is known when a program runs."""

    deep = False
    """Whether containers, objects and classes are followed: `reach`."""

    def __init__(self, is_pure: Callable[[object], bool], floats_static: bool) -> None:
        super().__init__(is_pure, floats_static)
        self.local_attributes: set[str] = set()
        self.optional: set[str] = set()
        """Those of which code goes on where an object has none."""
        self.handling = False
        """Whether any code handles that an object has no such attribute."""
        # The objects met; they are alive while the analysis runs, and dropped with it.
        self.objects: list[Any] = []
        self.classes: set[type] = set()
        self.handed_on: dict[types.ModuleType, Callable[[str], Refusal]] = {}
        """The modules that are local values too (defaults, elements, arguments of calls), and how each is refused."""

    def _check_attribute(self, step: Step, scope: Scope) -> None:
        if step.name == "rvs":
            raise scope.refuse("rvs draws at each call", step)
        if (
            is_special(step.name)
            and step.name not in ("__name__", "__len__", "__doc__")
            and not step.optional
            and not (self.deep and step.name in ASKED_FOR)
            and not step.name == scope.code.co_name == "__new__"
        ):
            raise scope.refuse(f"reads the attribute '{step.name}'", step)
        self.note_attribute(step)

    def note_attribute(self, step: Step) -> None:
        """Code reads an attribute."""
        self.local_attributes.add(step.name)
        if step.optional:
            self.optional.add(step.name)

    def check_captured_attribute(self, value: Any, name: str, step: Step, scope: Scope) -> None:
        constant = hidden_kind(value) is not None or isinstance(
            value, (int, str, bytes, tuple, frozenset, range, slice, np.dtype, np.generic, *OF_TYPES)
        )
        other = unsteady(value)
        if other is not None and step.name in other:
            raise scope.refuse(f"reads the attribute '{step.name}' of '{name}'", step)
        if constant or other is not None or is_plain_type(value) or value is None or is_ufunc_method(value, step.name):
            return
        if isinstance(value, type) and value.__module__ in ("builtins", "inspect", "itertools"):
            return
        if makes_rotations(value, step.name) or is_factors(value):
            return
        raise scope.refuse(f"reads the attribute '{step.name}' of '{name}'", step)

    def _check_local_attributes(self) -> None:
        names = frozenset(self.local_attributes)
        for name in sorted(names & self.unsteady):
            raise Refusal(f"reads the attribute '{name}', which draws or reads the clock or files of what is captured")
        for cls in self.classes:
            reason = class_reason(cls, names, constructed=True)
            if reason is not None:
                raise Refusal(reason)
        for module, refused in self.handed_on.items():
            reason = module_reason(module, names, self.is_pure)
            if reason is not None:
                raise refused(reason)
        for value in self.objects:
            kinds = functools.partial if self.deep else (types.FunctionType, functools.partial)
            for name in names & vars(value).keys() if isinstance(value, kinds) else ():
                raise Refusal(f"reads the attribute '{name}', which the {self.label_of(value)} has")

    def label_of(self, function: Any) -> str:
        return f"function {function.__name__}" if isinstance(function, types.FunctionType) else "partial"

    def require_absent(self) -> None:
        """What functions have no attribute of, where code goes on without: ``hasattr(f, "table")`` of a local ``f``."""
        names = self.optional | (self.local_attributes if self.handling else set())
        kinds = (types.FunctionType, functools.partial)
        found = [(k, value) for k, value in enumerate(self.objects if names else ()) if isinstance(value, kinds)]
        bare: list[str] = []
        for index, value in found:
            held, place = vars(value), f"n{index}.__dict__"
            if len(names) * len(found) <= FEW:
                for name in sorted(names - held.keys()):
                    self.require(f"{name!r} not in {place}")
            elif held:
                self.require(f"{place}.keys() == {self.constant(frozenset(held))}")
            else:
                bare.append(place)
        if bare:  # most have no attributes at all, which is asked at once: there may be many functions and names
            self.require(f"not ({' or '.join(bare)})")
