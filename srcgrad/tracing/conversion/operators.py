"""What converted code runs: on Python values each operator is Python's own, on traced ones it emits operations."""

from __future__ import annotations

import builtins

from srcgrad.tracing.conversion import arrays, numbers
from srcgrad.tracing.conversion.branches import and_, assert_, choose, compare, if_, not_, or_, raise_
from srcgrad.tracing.conversion.calls import call, getitem, lifted
from srcgrad.tracing.conversion.loops import for_, while_
from srcgrad.tracing.conversion.reductions import reduced
from srcgrad.tracing.conversion.state import UNBOUND, UNSET, attempted, read
from srcgrad.tracing.conversion.texts import text

slice = builtins.slice

__all__ = [
    "UNBOUND",
    "UNSET",
    "and_",
    "arrays",
    "assert_",
    "attempted",
    "call",
    "choose",
    "compare",
    "for_",
    "getitem",
    "if_",
    "lifted",
    "not_",
    "numbers",
    "or_",
    "raise_",
    "read",
    "reduced",
    "slice",
    "text",
    "while_",
]
