"""Functions and methods that keep their results: where these may be of other values than a trace has."""

from __future__ import annotations

import types
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from srcgrad.tracing.bytecode import Refusal
from srcgrad.tracing.hosts import is_cache, is_global_cache
from srcgrad.tracing.kept_results import Question, Result
from srcgrad.tracing.rebuild import is_first, read_edge
from srcgrad.tracing.tracer import Tracer
from srcgrad.tracing.unasked import attribute

if TYPE_CHECKING:
    from srcgrad.tracing.reach import ObjectAnalysis


def reads_values(analysis: ObjectAnalysis, index: int) -> bool:
    """Whether code reads more from outside than modules and functions: what a cache has may be of other values."""
    plan, waiting, seen = analysis.plan, [index], {index}
    while waiting:
        for edge in [plan.edges[number] for number in plan.nodes[waiting.pop()].edges]:
            if edge.source == "result":
                continue
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


def read_results(analysis: ObjectAnalysis, index: int) -> None:
    """Read what traces have asked a function with a cache for."""
    function, label = analysis.objects[index], analysis.plan.nodes[index].label
    for result in sorted(analysis.results, key=lambda result: result.label):
        if type(result) is Result and result.code is function.__wrapped__.__code__:
            with suppress(KeyError):
                place = f"{analysis.constant(result)}.of(n{index})"
                analysis.read(index, "result", result, result.of(function), place, f"{label}({result.label})")


def read_answers(analysis: ObjectAnalysis) -> None:
    """Read what traces have asked of loggers, of the environment and of context variables."""
    for question in sorted(analysis.results, key=lambda result: result.label):
        if type(question) is Question:
            with suppress(KeyError):
                place = f"{analysis.constant(question)}.of()"
                analysis.read(0, "question", question, question.of(), place, question.label)


def read_results_of_methods(analysis: ObjectAnalysis, index: int) -> None:
    """Read what traces have asked the methods of a captured object for that have a cache."""
    owner, label = analysis.objects[index], analysis.plan.nodes[index].label
    asked = sorted(
        [result for result in analysis.results if type(result) is Result and result.method],
        key=lambda result: result.label,
    )
    for number, base in enumerate(type(owner).__mro__ if asked else ()):
        for name, member in list(vars(base).items()):
            for result in asked if is_cache(member) and is_first(type(owner), number, name) else ():
                if result.code is member.__wrapped__.__code__:
                    place = f"{analysis.constant(base)}.__dict__[{name!r}]"
                    with suppress(KeyError):
                        found = result.of(member, owner)
                        place = f"{analysis.constant(result)}.of({place}, n{index})"
                        path = f"{label}.{name}({result.label})"
                        analysis.read(index, "method result", (number, name, result), found, place, path)


def keep_caches(analysis: ObjectAnalysis) -> None:
    """Have a trace find something else for a function with a cache if it may not call the user's own."""
    for index, node in enumerate(analysis.plan.nodes):
        if node.kind == "cached":
            edges = [analysis.plan.edges[edge] for edge in node.edges]
            node.unsteady = reads_values(analysis, index)
            node.kept = node.unsteady or any(edge.source == "result" for edge in edges)
            node.kept |= not is_global_cache(analysis.objects[index])


def require_new_results(analysis: ObjectAnalysis) -> None:
    """Refuse methods whose caches may have results of an object as it was before, which only Python finds."""
    nodes = zip(analysis.objects, analysis.plan.nodes, strict=True)
    captured = [type(value) for value, node in nodes if node.kind == "object"]
    for cls, label, plain in analysis.keeping:
        compared = attribute(cls, "__eq__") is not attribute(object, "__eq__")
        if analysis.changing or compared or (not plain and any(issubclass(kind, cls) for kind in captured)):
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
