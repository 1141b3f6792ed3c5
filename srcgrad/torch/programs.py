"""Whole graphs as one compiled program, remembered by the graph's structure.

The adjoints of the nodes, one after the other, are a function of the IR. A structure that is met a second time (a
training loop) is compiled, and from then on a backward is one call on the saved arrays. What needs to be watched node
by node (hooks, functions in Python, anomaly detection) is left to the walk of `engine`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from srcgrad.ir.core import Builder, Value, zeros
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.transforms.interpret import inline
from srcgrad.torch.graph import AccumulateGrad, Edge, GraphNode, Node
from srcgrad.torch.operation import compiled_program

LARGEST: Final = 2000
"""Nodes of the largest graph that is compiled: compiling takes about as long as a hundred walks."""
REMEMBERED: Final = 128


class Structure(NamedTuple):
    """What a program depends on: per node its signature and edges, the roots, and what is asked for."""

    nodes: tuple[Any, ...]
    roots: tuple[tuple[int, int], ...]
    results: tuple[tuple[int, int], ...]


PROGRAMS: OrderedDict[Structure, Callable[..., Any] | None] = OrderedDict()
"""None for a structure that was met once."""


def run(
    nodes: Sequence[GraphNode], roots: Sequence[tuple[GraphNode, int, Any]], keep: bool, targets: Sequence[Edge] | None
) -> Any:
    """The gradients by the compiled program of this structure; None where there is none (yet).

    Without targets: pairs of a leaf and its gradient. With targets: a list of their cotangents.
    """
    if len(nodes) > LARGEST:
        return None
    order: list[Node] = []
    leaves: list[AccumulateGrad] = []
    for node in nodes:
        if isinstance(node, Node):
            if node.hooked or node.retained is not None:
                return None
            order.append(node)
        elif isinstance(node, AccumulateGrad) and not node.variable._hooks:
            leaves.append(node)
        else:
            return None
    order.sort(key=newest_first)
    found = structure(order, leaves, roots, targets)
    if found is None:
        return None
    program = PROGRAMS.get(found)
    if program is None:
        if found not in PROGRAMS:
            PROGRAMS[found] = None
            if len(PROGRAMS) > REMEMBERED:
                PROGRAMS.popitem(last=False)
            return None
        program = PROGRAMS[found] = compiled_program(composed(found))
    arguments: list[Any] = []
    for node in order:
        arguments += node.saved_arrays()
    arguments += [cotangent for _, _, cotangent in roots]
    results = program(*arguments)
    if not keep:
        for node in order:
            if node.saved:
                node.saved = None
    if targets is not None:
        return list(results)
    return list(zip([leaf.variable for leaf in leaves], unshared(results, arguments), strict=True))


def unshared(results: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
    """The results, each an array of its own: a leaf keeps it as its gradient and adds to it."""
    seen = set(map(id, arguments))
    found = []
    for result in results:
        if id(result) in seen:
            result = result.copy()
        seen.add(id(result))
        found.append(result)
    return found


def newest_first(node: Node) -> float:
    return -node.number


def structure(
    order: Sequence[Node],
    leaves: Sequence[AccumulateGrad],
    roots: Sequence[tuple[GraphNode, int, Any]],
    targets: Sequence[Edge] | None,
) -> Structure | None:
    """The structure of a graph; None where a target gets no cotangent."""
    place: dict[GraphNode, int] = {node: k for k, node in enumerate(order)}
    for leaf in leaves:
        place[leaf] = len(place)
    listed = tuple(
        [
            (
                node.signature,
                tuple(
                    [None if edge is None or edge[0] not in place else (place[edge[0]], edge[1]) for edge in node.edges]
                ),
            )
            for node in order
        ]
    )
    if any(node not in place or isinstance(node, AccumulateGrad) for node, _, _ in roots):
        return None
    starts = tuple([(place[node], index) for node, index, _ in roots])
    if targets is None:
        return Structure(listed, starts, tuple([(place[leaf], 0) for leaf in leaves]))
    if any(node not in place for node, _ in targets):
        return None
    return Structure(listed, starts, tuple([(place[node], index) for node, index in targets]))


def composed(structure: Structure) -> Any:
    """The function: saved values node by node, then the roots' cotangents, to the cotangents asked for."""
    builder = Builder()
    saved = [
        [builder.param(param.type) for param in signature.adjoint.params[: saved_count(signature)]]
        for signature, _ in structure.nodes
    ]
    known: dict[tuple[int, int], Value] = {}

    def put(place: tuple[int, int], value: Value) -> None:
        before = known.get(place)
        known[place] = value if before is None else builder.emit(REGISTRY["add"], [before, value])

    types: dict[tuple[int, int], Any] = {}
    for k, (signature, edges) in enumerate(structure.nodes):
        for index, type in enumerate(signature.results):
            types[k, index] = type
        for edge, type in zip(edges, signature.types, strict=True):
            if edge is not None:
                types[edge] = type
    for root in structure.roots:
        put(root, builder.param(types[root]))
    for k, (signature, edges) in enumerate(structure.nodes):
        differentiable = [index for index, type in enumerate(signature.results) if type.dtype.kind in "fc"]
        if not any((k, index) in known for index in differentiable):
            continue
        cotangents = [known.get((k, index)) or zeros(signature.results[index]) for index in differentiable]
        outgoing = iter(inline(builder, signature.adjoint, [*saved[k], *cotangents]))
        for edge, is_active in zip(edges, signature.active, strict=True):
            if is_active:
                cotangent = next(outgoing)
                if edge is not None:
                    put(edge, cotangent)
    results = [known.get(place) or zeros(types[place]) for place in structure.results]
    return builder.function("backward", results)


def saved_count(signature: Any) -> int:
    return len(signature.saved_inputs) + len(signature.saved_results)


def forget() -> None:
    """Forget all programs."""
    PROGRAMS.clear()
