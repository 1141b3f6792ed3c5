"""Programs for calls in which nothing fails in a ``try``: they say so where something does.

The call is then made again in another way, which does from the start what Python does; so nothing may have been done
for good before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from srcgrad.ir.core import Function, Operation
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.ops.effects import UNFORESEEN
from srcgrad.tracing.conversion.state import truth
from srcgrad.tracing.journals import is_store
from srcgrad.tracing.trace import Refused, Trace, current_span, current_trace
from srcgrad.tracing.tracer import Tracer

if TYPE_CHECKING:
    from srcgrad.tracing.function import Traced


def emit_trust(condition: Tracer, fails: bool) -> None:
    """Take it that the condition is not this; where it is, the program says so."""
    holds: Any = np.logical_not(condition) if fails else condition
    value, trace = truth(holds), current_trace()
    trace.builder.span = current_span()
    trace.builder.emit_operation(REGISTRY["check"], [value], {"message": UNFORESEEN, "kind": "RuntimeError"})


def is_trust(operation: Operation) -> bool:
    return operation.op.name == "check" and operation.attrs["message"] == UNFORESEEN


def may_trust(trace: Trace) -> bool:
    """Whether what fails from here on may be left to another way of making the call."""
    return trace.trusting and not any(
        acts(operation) for found in trace.around() for operation in found.builder.operations
    )


def require_timely(function: Function) -> None:
    """Refuse a program that says too late that the call is to be made in another way: it has done something by then."""
    if is_untimely(function.operations, False, is_trust, acts)[0]:
        raise Refused("a try has an effect before it may fail")


def loses_stores(function: Function, traced: Traced, fails: Callable[[Operation], bool]) -> bool:
    """Whether a program stores attributes at its end, or stands for a function that assigns attributes which nothing
    stores or globals for a while, and has done nothing else for good where it fails before.

    The call is then to be made again: the function itself has stored what comes before it fails.

    Raises:
        Refused: it may do something else and then fail where a global is another one.
    """
    stores = {number for number, site in enumerate(traced.sites) if is_store(site)}

    def does_more(operation: Operation) -> bool:
        if operation.regions:
            return operation.acts and any(does_more(inner) for r in operation.regions for inner in r.operations)
        return acts(operation) and operation.attrs.get("site") not in stores

    def may_fail(operation: Operation) -> bool:
        return not operation.regions and fails(operation) and not acts(operation)

    untimely = is_untimely(function.operations, False, may_fail, does_more)[0]
    if traced.rebinds and untimely:
        raise Refused("assigns globals and does something for good before it may fail")
    rebinds = traced.rebinds and is_untimely(function.operations, True, may_fail, does_more)[0]
    return (bool(stores) or traced.forgets or rebinds) and not untimely


def is_untimely(
    operations: Sequence[Operation], acted: bool, says: Callable[[Operation], bool], acts: Callable[[Operation], bool]
) -> tuple[bool, bool]:
    """Whether something may have been done for good before a program says so; and whether it has at the end.

    ``acted``: whether it has before these operations.
    """
    for operation in operations:
        if says(operation):
            if acted:
                return True, acted
        elif operation.regions:
            earlier = acted or (operation.op.name in ("for", "while") and acts(operation))
            found = [is_untimely(region.operations, earlier, says, acts) for region in operation.regions]
            if any(untimely for untimely, _ in found):
                return True, acted
            acted = acted or any(after for _, after in found)
        else:
            acted = acted or acts(operation)
    return False, acted


def acts(operation: Operation) -> bool:
    """Whether to run this again would do something again, besides raising an error."""
    if operation.regions:
        return operation.acts and any(acts(inner) for region in operation.regions for inner in region.operations)
    return operation.op.effect and operation.op.name != "check" and "raises" not in operation.attrs
