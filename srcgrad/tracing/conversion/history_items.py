"""The operators that read what `histories` makes of lists: an item, and the length; and what made them."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from srcgrad.tracing.conversion.state import UNBOUND, read
from srcgrad.tracing.trace import Refused


def item(variable: Callable[[], Any]) -> Any:
    found = read(variable)
    if found is UNBOUND:
        raise IndexError("list index out of range")
    return found


def length(variable: Callable[[], Any], function: Any) -> Any:
    if function is not builtins.len:
        raise Refused("len is not Python's own here")
    return variable()


def require_list(function: Any) -> None:
    if function is not builtins.list:
        raise Refused("list is not Python's own here")
