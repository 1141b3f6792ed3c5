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


def read_results(analysis: ObjectAnalysis) -> bool:
    """Read what traces have asked functions with a cache for, and methods of captured objects, when all else that is
    read is known: these objects may be arguments. Whether there was something new.
    """
    asked = sorted([found for found in analysis.results if type(found) is Result], key=lambda result: result.label)
    count = len(analysis.plan.edges)
    for result in asked:
        for index, owner in enumerate(list(analysis.objects)):
            if (index, result) in analysis.settled or max(result.nodes, default=0) >= len(analysis.objects):
                continue
            if analysis.changing and result.nodes:  # the cache may be asked for the first time when one has changed
                continue
            kind = analysis.plan.nodes[index].kind
            if kind == "cached" and not result.method and result.code is owner.__wrapped__.__code__:
                analysis.settled.add((index, result))
                read_result(analysis, result, index, "result", result, owner, f"n{index}")
            elif kind == "object" and result.method:
                analysis.settled.add((index, result))
                read_result_of_method(analysis, result, index, owner)
    return len(analysis.plan.edges) > count


def read_result(
    analysis: ObjectAnalysis, result: Result, index: int, source: str, key: Any, cache: Any, place: str, *owner: Any
) -> None:  # fmt: skip
    """Read a result of a cache that is found at this place."""
    objects = [*owner, *[analysis.objects[node] for node in result.nodes]]
    names = [place, *[f"n{index}" for _ in owner], *[f"n{node}" for node in result.nodes]]
    label = f"{cache.__name__}({result.label})"
    if owner:
        label = f"{analysis.plan.nodes[index].label}.{label}"
    with suppress(KeyError):
        found = result.of(cache, *objects)
        analysis.read(index, source, key, found, f"{analysis.constant(result)}.of({', '.join(names)})", label)


def read_result_of_method(analysis: ObjectAnalysis, result: Result, index: int, owner: Any) -> None:
    for number, base in enumerate(type(owner).__mro__):
        for name, member in list(vars(base).items()):
            if is_cache(member) and is_first(type(owner), number, name) and result.code is member.__wrapped__.__code__:
                place = f"{analysis.constant(base)}.__dict__[{name!r}]"
                read_result(analysis, result, index, "method result", (number, name, result), member, place, owner)


def read_answers(analysis: ObjectAnalysis) -> None:
    """Read what traces have asked of loggers, of the environment and of context variables."""
    for question in sorted(analysis.results, key=lambda result: result.label):
        if type(question) is Question:
            with suppress(KeyError):
                place = f"{analysis.constant(question)}.of()"
                analysis.read(0, "question", question, question.of(), place, question.label)


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
