"""What converted code runs: on Python values each operator is Python's own, on traced ones it emits operations."""

from __future__ import annotations

import builtins

from srcgrad.tracing.conversion import (
    arrays,
    choices,  # noqa: F401  # of which calls find the rules
    dataclass_items,  # noqa: F401
    iterators,
    normal_law,  # noqa: F401
    numbers,
    statistic,  # noqa: F401  # of which calls find the rules
)
from srcgrad.tracing.conversion.attempts import Finishing, attempt
from srcgrad.tracing.conversion.attributes import namespace
from srcgrad.tracing.conversion.branches import and_, asked, choose, if_, not_, or_
from srcgrad.tracing.conversion.calls import call
from srcgrad.tracing.conversion.classes import above
from srcgrad.tracing.conversion.comparisons import FALSE, TRUE, compare, is_, is_not, matched
from srcgrad.tracing.conversion.fresh_arrays import fresh, kept, lifted
from srcgrad.tracing.conversion.history_items import item, length, require_list
from srcgrad.tracing.conversion.loops import for_, while_
from srcgrad.tracing.conversion.managing import guarded, managed
from srcgrad.tracing.conversion.masked import accumulated, augmented
from srcgrad.tracing.conversion.operands import binary
from srcgrad.tracing.conversion.raises import assert_, raise_, unreached
from srcgrad.tracing.conversion.recorded import whole
from srcgrad.tracing.conversion.recording import recording_while_
from srcgrad.tracing.conversion.reductions import listed, reduced
from srcgrad.tracing.conversion.state import UNBOUND, UNSET, Passing, read
from srcgrad.tracing.conversion.subscripts import getitem, target
from srcgrad.tracing.conversion.texts import percent, text
from srcgrad.tracing.conversion.varying import spliced, tuple_

slice = builtins.slice

__all__ = [
    "FALSE",
    "TRUE",
    "UNBOUND",
    "UNSET",
    "Finishing",
    "Passing",
    "above",
    "accumulated",
    "and_",
    "arrays",
    "asked",
    "assert_",
    "attempt",
    "augmented",
    "binary",
    "call",
    "choose",
    "compare",
    "for_",
    "fresh",
    "getitem",
    "guarded",
    "if_",
    "is_",
    "is_not",
    "item",
    "iterators",
    "kept",
    "length",
    "lifted",
    "listed",
    "managed",
    "matched",
    "namespace",
    "not_",
    "numbers",
    "or_",
    "percent",
    "raise_",
    "read",
    "recording_while_",
    "reduced",
    "require_list",
    "slice",
    "spliced",
    "target",
    "text",
    "tuple_",
    "unreached",
    "while_",
    "whole",
]
