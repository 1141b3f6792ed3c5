"""What names stand for, and the small questions that guards ask."""

from __future__ import annotations

import types
import warnings
from typing import Any, Final

from srcgrad.tracing.unasked import attribute

MISSING: Final = object()
"""Stands for what a name does not have."""


def state_of(value: Any) -> dict[str, Any]:
    state = attribute(value, "__dict__")
    return state if isinstance(state, dict) else {}


def module_attribute(module: types.ModuleType, name: str) -> Any:
    """What a module has, also what it makes when it is first asked for; `MISSING` where there is nothing."""
    if name in vars(module):
        return vars(module)[name]
    try:
        with warnings.catch_warnings():
            # A deprecated name warns again when the function itself reads it.
            warnings.simplefilter("ignore")
            return getattr(module, name)
    except AttributeError:
        return MISSING


def is_unbound_cell(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is MISSING
    except ValueError:
        return True


def same_code(one: types.CodeType, other: types.CodeType) -> bool:
    """Of the same text defined again, by a notebook cell for instance; equality of code objects ignores the file."""
    return one == other and one.co_filename == other.co_filename
