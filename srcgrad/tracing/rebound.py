"""Globals that a function assigns for a while: a mode that is another one inside of a ``with``, and is what it was
behind it.

The functions that read or assign one have a namespace of their own in a trace, so that nothing else sees what it is
there, and blocks of statements give it back what it was as they do with what objects have in slots. At the end of a
trace each global is the very object that it was, which a guard or an input says; else the function is traced again at
each call.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NoReturn

from srcgrad.tracing.bytecode import Refusal, Scope, Step
from srcgrad.tracing.lookups import MISSING
from srcgrad.tracing.storage import Rebound
from srcgrad.tracing.trace import CURRENT, REBINDING, Refused, Trace, Unread

if TYPE_CHECKING:
    from srcgrad.tracing.reach import ObjectAnalysis
    from srcgrad.tracing.rebuild import Plan

REBINDS: Final = "assigns the global '{}'"


def note_rebound(analysis: ObjectAnalysis, index: int, scope: Scope, step: Step) -> None:
    """A function assigns a global.

    Raises:
        Refusal: blocks that do may be passed over, as nothing is known yet that comes to one; or it is a global whose
            value can be neither a guard nor an input, or there is none.
    """
    plan, refusal = analysis.plan, scope.refuse(REBINDS.format(step.name), step)
    analysis.rebinding = True
    read = Step("global", step.name, step.line)
    if not plan.rebinds or scope.alias(read) is not None or not analysis.is_run_converted(index):
        raise refusal
    try:
        value, _ = analysis._find(index, scope, read)
    except Refusal:
        raise refusal from None
    place = (plan.nodes[index].namespace, step.name)
    if value is MISSING or analysis.edge_of.get(place, -1) < 0:
        raise refusal
    plan.rebound.setdefault(place, str(refusal))
    plan.rebinders.add(index)


def settle_rebound(analysis: ObjectAnalysis) -> None:
    """Find the functions that read what is assigned, when all that is read is known.

    Raises:
        Refusal: something else has it too: a module, of which a trace has a copy, or results that are kept.
    """
    plan = analysis.plan
    if not plan.rebound:
        return
    for index, node in enumerate(plan.nodes):
        read = [edge for edge in map(plan.edges.__getitem__, node.edges) if edge.source == "global"]
        reasons = [plan.rebound[edge.holder, edge.key] for edge in read if (edge.holder, edge.key) in plan.rebound]
        if reasons and node.kind == "module":
            raise Refusal(f"{min(reasons)}, which is read as an attribute of the module {node.label}")
        if reasons:
            plan.rebinders.add(index)
    if analysis.keeping or any(node.kind == "cached" and node.unsteady for node in plan.nodes):
        raise Refusal(f"{min(plan.rebound.values())}, where results of functions are kept")


def watch_rebound(plan: Plan, namespaces: list[dict[str, Any]]) -> None:
    """Have the trace in progress know which names of its copies of namespaces are assigned."""
    trace = CURRENT.get()
    found = defaultdict[int, dict[str, str]](dict)
    for (namespace, name), reason in plan.rebound.items():
        found[namespace][name] = reason
    if trace is not None:
        trace.rebound += [Rebound(namespaces[number], reasons) for number, reasons in found.items()]


def require_bound_again(trace: Trace) -> None:
    """
    Raises:
        Refused: a global is not what it was, which a call would have to leave behind.
    """
    for rebound in trace.rebound:
        now = rebound.bound()
        for name, before in rebound.before.items():
            if now.get(name, rebound) is not before:
                said_with_place(rebound.reasons[name])


def come_to(reason: str) -> None:
    """A trace comes to a block that was passed over.

    Raises:
        Unread: since it assigns globals, which may be what they were in the end.
    """
    trace = CURRENT.get()
    while trace is not None and trace.parent is not None:
        trace = trace.parent
    if trace is not None and not trace.concrete and not trace.rebinds and reason.startswith(REBINDS.partition("{")[0]):
        raise Unread(REBINDING)


def said_with_place(reason: str) -> NoReturn:
    """
    Raises:
        Refused: in these words, which name the place.
    """
    error = Refused(reason)
    error.span = None
    raise error
