"""Functions and methods that keep their results: where these may be of other values than a trace has."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

import numpy as np

from srcgrad.tracing.bytecode import Refusal
from srcgrad.tracing.rebuild import read_edge
from srcgrad.tracing.tracer import Tracer
from srcgrad.tracing.unasked import attribute

if TYPE_CHECKING:
    from srcgrad.tracing.reach import ObjectAnalysis


def reads_values(analysis: ObjectAnalysis, index: int) -> bool:
    """Whether code reads more from outside than modules and functions: what a cache has may be of other values."""
    plan, waiting, seen = analysis.plan, [index], {index}
    while waiting:
        for edge in [plan.edges[number] for number in plan.nodes[waiting.pop()].edges]:
            if edge.node is None:
                value = read_edge(plan, edge, analysis.objects)
                if edge.source not in ("default", "keyword default") and not (
                    callable(value) or isinstance(value, types.ModuleType)
                ):
                    return True
            elif plan.nodes[edge.node].kind not in ("function", "cached", "module"):
                return True
            elif edge.node not in seen:
                seen.add(edge.node)
                waiting.append(edge.node)
    return False


def require_new_results(analysis: ObjectAnalysis) -> None:
    """Refuse methods whose caches may have results of an object as it was before, which only Python finds."""
    nodes = zip(analysis.objects, analysis.plan.nodes, strict=True)
    captured = [type(value) for value, node in nodes if node.kind == "object"]
    for cls, label in analysis.keeping:
        compared = attribute(cls, "__eq__") is not attribute(object, "__eq__")
        if analysis.changing or compared or any(issubclass(kind, cls) for kind in captured):
            raise Refusal(f"{label} keeps its results, which an object that has changed may find again")


def require_keys(values: tuple[Any, ...]) -> None:
    """
    Raises:
        TypeError: a cache could not look them up, as there is an array or a list among them.
    """
    for value in values:
        if isinstance(value, tuple):
            require_keys(value)
        elif isinstance(value, Tracer) and not value.scalar:
            raise TypeError("unhashable type: 'numpy.ndarray'")
        elif isinstance(value, (list, dict, set, np.ndarray)):
            hash(value)
