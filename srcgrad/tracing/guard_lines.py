"""The guard function of a program, as the analysis of what its function reaches writes it.

It tells whether a function is as it was when it was analysed, and finds the hidden inputs: one line for each thing that
was read, in the order in which it was found.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from srcgrad.tracing.aliasing import alias_groups
from srcgrad.tracing.alike import same_keys, value_key
from srcgrad.tracing.lookups import is_unbound_cell, same_code
from srcgrad.tracing.members import read_by_errors
from srcgrad.tracing.on_demand import made
from srcgrad.tracing.purity import OF_OTHERS, decimal_context, static_key, unsteady
from srcgrad.tracing.rebuild import Hidden, wrapped_functions
from srcgrad.tracing.unasked import attribute


class GuardFunction:
    """The lines of `bind`, the constants that they name, and what is said and known of them."""

    def __init__(self, is_pure: Callable[[object], bool], floats_static: bool) -> None:
        self.is_pure = is_pure
        self.floats_static = floats_static
        self.hidden: list[Hidden] = []
        self.identity: list[Hashable] = []
        self.report: list[str] = []
        self.lines: list[str] = []
        self.constants: dict[str, Any] = {
            "FunctionType": types.FunctionType,
            "ModuleType": types.ModuleType,
            "partial": functools.partial,
            "ndarray": np.ndarray,
            "alias_groups": alias_groups,
            "is_unbound_cell": is_unbound_cell,
            "made": made,
            "modules": sys.modules,
            "same_code": same_code,
            "same_keys": same_keys,
            "value_key": value_key,
            "wrapped_functions": wrapped_functions,
            "static_key": functools.partial(static_key, is_pure=is_pure, floats=floats_static),
        }
        self.constant_of: dict[int, str] = {}
        self.unsteady = set[str]()
        """The methods of constant objects that give other things at each call."""

    def constant(self, value: Any) -> str:
        name = self.constant_of.setdefault(id(value), f"k{len(self.constants)}")
        self.constants[name] = value
        return name

    def require(self, condition: str) -> None:
        self.lines.append(f"if not ({condition}): return None")

    def guard_length(self, expression: str, held: Any) -> None:
        if held is None:
            self.require(f"{expression} is None")
        else:
            self.require(f"{expression} is not None and len({expression}) == {len(held)}")

    def guard_hidden(self, index: int, value: Any, expression: str) -> None:
        kind = "ndarray" if type(value) is np.ndarray else self.constant(type(value))
        self.lines.append(f"v{index} = {expression}")
        self.require(f"type(v{index}) is {kind}")

    def guard_static(self, value: Any, static: Hashable, expression: str, path: str) -> None:
        self.note_constant(value)
        self.lines.append(f"v = {expression}")
        self.require(f"v is {self.constant(value)} or static_key(v) == {self.constant(static)}")
        self.report.append(f"{path}: guard, {value!r}")

    def note_constant(self, value: Any) -> None:
        """A constant object of Python's, or its class, is read."""
        self.unsteady.update((unsteady(value) or frozenset()) - OF_OTHERS)
        if isinstance(value, type) and issubclass(value, BaseException):
            for read in filter(None, read_by_errors(value)):
                self.require(f"{self.constant(read.names)}.get({read.name!r}) is {self.constant(read.value)}")
        if "Decimal" in (type(value).__name__, attribute(value, "__name__")):
            self.require(f"{self.constant(decimal_context)}() == {self.constant(decimal_context())}")

    def generate(self) -> str:
        """The source of `bind`: guards in the order in which they were found, then the hidden inputs and their
        aliasing.
        """
        values = "".join(f"v{index}, " for index in range(len(self.hidden)))
        arrays = [f"v{index}" for index, hidden in enumerate(self.hidden) if hidden.kind == "array"]
        result = [f"return ({values}), None"]
        if len(arrays) > 1:
            owned = " and ".join(f"{array}.base is None" for array in arrays)
            distinct = f"len({{{', '.join(f'id({array})' for array in arrays)}}}) == {len(arrays)}"
            result = [
                f"values = ({values})",
                f"return values, None if {owned} and {distinct} else alias_groups(values)",
            ]
        body = ["try:", *(f"    {line}" for line in self.lines)]
        # What a guard reads may be gone by now: a name, the contents of a cell, an attribute of a module.
        body += ["except (AttributeError, IndexError, KeyError, ValueError):", "    return None", *result]
        return "def bind(function):\n" + "\n".join(f"    {line}" for line in body) + "\n"
