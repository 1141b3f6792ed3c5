"""Pictures of programs: DOT text for graphviz, and SVG that needs nothing.

A picture is a layered drawing: an operation stands below what it reads. Layers come from longest paths; within a layer
the order comes from barycentres, swept down and up while crossings get fewer (Sugiyama, Tagawa and Toda 1981). An edge
that passes layers does so through bends, which the edges of one value share. Regions are closed, so each is laid out on
its own, and its operation is a box around the result.

Large programs are cut: the first and last operations are drawn, and one node says what stands between them.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final
from xml.sax.saxutils import escape

from srcgrad.ir.core import Function, Literal, Operation, Region, Value
from srcgrad.ir.text import Names, attr_text, literal_text, region_label

__all__ = ["Graph", "Node", "dot", "picture", "svg"]

LIMIT: Final = 200
"""How many nodes a picture has, unless it is told otherwise."""
LEAST: Final = 8
DEPTH: Final = 6
"""How many regions deep a picture goes."""
COLOURS: Final = {
    "input": "#e6e6e6",
    "primal": "#d3e5f7",
    "tangent": "#d9f0d3",
    "adjoint": "#fbdcc0",
    "transform": "#e6dcf2",
    "result": "#ffffff",
    "left out": "#fff3b0",
}
_LEGEND: Final = ("input", "primal", "tangent", "adjoint", "transform")
_LONGEST: Final = 44
_CHARACTER, _LINE, _PADDING = 7.3, 16.0, 8.0
_BETWEEN_NODES, _BETWEEN_LAYERS, _MARGIN = 16.0, 38.0, 14.0
_SWEEPS: Final = 8
_MOST_TEXT: Final = 600
_NOT_XML: Final = re.compile(r"[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(eq=False)
class Node:
    """A box of a picture: ``x`` is its centre and ``y`` its top, inside its graph. A ``bend`` is a point of an edge."""

    kind: str
    lines: tuple[str, ...] = ()
    tooltip: str = ""
    bodies: list[Graph] = field(default_factory=list)
    layer: int = 0
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = 0.0
    above: list[Node] = field(default_factory=list)
    below: list[Node] = field(default_factory=list)

    @property
    def bottom(self) -> float:
        return self.y + self.height


@dataclass(eq=False)
class Graph:
    """The nodes of a region in program order, and its edges ``(from, to, text)``; `arrange` gives places to them."""

    label: str
    nodes: list[Node] = field(default_factory=list)
    edges: list[tuple[Node, Node, str]] = field(default_factory=list)
    note: str = ""
    layers: list[list[Node]] = field(default_factory=list)
    routes: list[tuple[list[Node], str]] = field(default_factory=list)
    """For each edge the nodes that it passes: from its source, or from where it leaves the route of its value."""
    width: float = 0.0
    height: float = 0.0


def dot(function: Function, heading: str = "", limit: int = LIMIT) -> str:
    """The picture of a function as DOT text; regions are clusters.

    >>> import numpy as np, srcgrad as sg
    >>> print(sg.explain(sg.grad(lambda x: np.sum(np.sin(x))))(np.ones(3)).dot().splitlines()[0])
    digraph "<lambda>.grad" {
    """
    graph = picture(function, limit)
    title = " ".join(part for part in (heading or graph.label, graph.note) if part)
    lines = [
        f"digraph {_quoted(graph.label)} {{",
        f"  label={_quoted(title)}; labelloc=t; rankdir=TB;",
        '  node [shape=box, style=filled, fontname="monospace", fontsize=10];',
        '  graph [fontname="monospace", fontsize=10];',
    ]
    names = {node: f"n{number}" for number, node in enumerate(all_nodes(graph))}
    lines += _dot_graph(graph, names, itertools.count(), "  ")
    return "\n".join([*lines, "}"]) + "\n"


def svg(function: Function, heading: str = "", limit: int = LIMIT) -> str:
    """The picture of a function as an SVG document. Tooltips say what boxes and edges are, with the line of code.

    >>> import numpy as np, srcgrad as sg
    >>> sg.explain(sg.grad(lambda x: np.sum(np.sin(x))))(np.ones(3)).svg()[:4]
    '<svg'
    """
    graph = picture(function, limit)
    arrange(graph)
    titles = [heading or graph.label, *([graph.note] if graph.note else [])]
    top = _MARGIN + (len(titles) + 1) * (_LINE + 4)
    width = max(graph.width, 7.8 * max(map(len, titles)), 90.0 * len(_LEGEND)) + 2 * _MARGIN
    height = graph.height + top + _MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="monospace" font-size="12">',
        "<style>path{fill:none;stroke:#777}path:hover{stroke:#c00;stroke-width:3}rect{stroke:#555}</style>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<polygon points="0,0 8,4 0,8" fill="#777"/></marker></defs>',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff" style="stroke:none"/>',
    ]
    for number, text in enumerate(titles):
        lines.append(f'<text x="{_MARGIN}" y="{_MARGIN + (number + 1) * _LINE:.0f}">{_xml(text)}</text>')
    for number, kind in enumerate(_LEGEND):
        x, y = _MARGIN + 90 * number, top - _LINE - 2
        lines.append(f'<rect x="{x:.0f}" y="{y:.0f}" width="12" height="12" fill="{COLOURS[kind]}"/>')
        lines.append(f'<text x="{x + 17:.0f}" y="{y + 11:.0f}">{kind}</text>')
    lines += _svg_graph(graph, _MARGIN, top, itertools.count())
    return "\n".join([*lines, "</svg>"]) + "\n"


# --- what is drawn ----------------------------------------------------------------------------------------------------


def picture(function: Function, limit: int = LIMIT) -> Graph:
    """The nodes and edges of a function, at most about ``limit`` nodes; ``note`` says what is left out.

    Raises:
        ValueError: the limit is below 8.
    """
    if limit < LEAST:
        raise ValueError(f"a picture has at least {LEAST} nodes, not {limit}")
    total = sum(1 for _ in function.walk())
    budget = [limit]
    graph = region_graph(function, function.name, budget, 0, "return")
    shown = sum(node.kind in ("primal", "tangent", "adjoint", "transform") for node in all_nodes(graph))
    if shown < total:
        graph.note = f"({shown} of {total} operations are shown)"
    return graph


def region_graph(region: Region, label: str, budget: list[int], depth: int, last: str) -> Graph:
    """The picture of a region. ``budget`` holds the number of nodes that may still be made."""
    graph = Graph(label)
    names = Names.of(region)
    source: dict[Value, Node] = {}
    params = region.params[: max(1, budget[0] // 3)]
    for param in params:
        source[param] = Node("input", (names.definition(param),), f"input {names.definition(param)}")
    if len(params) < len(region.params):
        rest = Node("left out", (f"… {len(region.params) - len(params)} more inputs",))
        source.update(dict.fromkeys(region.params[len(params) :], rest))
    graph.nodes += dict.fromkeys(source.values())
    operations = region.operations
    room = max(2, budget[0] - len(graph.nodes) - 2)
    head = len(operations) if len(operations) <= room else (room + 1) // 2
    tail = len(operations) if len(operations) <= room else len(operations) - room // 2
    budget[0] -= len(graph.nodes) + 2 + min(room, len(operations))

    for operation in operations[:head]:
        add_operation(graph, operation, source, names, budget, depth)
    if head < tail:
        missing = Node("left out", (f"… {tail - head} operations",), f"{tail - head} operations are left out here")
        reads: dict[Node, Value] = {}
        for operation in operations[head:tail]:
            reads.update({source[value]: value for value in operation.operands if value in source})
            source.update(dict.fromkeys(operation.results, missing))
        reads.pop(missing, None)
        graph.nodes.append(missing)
        graph.edges += [(node, missing, names.definition(value)) for node, value in reads.items()]
    for operation in operations[tail:]:
        add_operation(graph, operation, source, names, budget, depth)
    named = [literal_label(v) if isinstance(v, Literal) else names.operand(v) for v in region.results[:3]]
    shown = ", ".join(named)
    more = ", …" if len(region.results) > 3 else ""
    end = Node("result", (clipped(f"{last} {shown}{more}"),), f"{last} {shown}{more}")
    connect(graph, region.results, end, source, names)
    graph.nodes.append(end)
    return graph


def add_operation(
    graph: Graph, operation: Operation, source: dict[Value, Node], names: Names, budget: list[int], depth: int
) -> None:
    literals = [literal_label(value) for value in operation.operands if isinstance(value, Literal)]
    head = " ".join([operation.op.name, *literals])
    found = ", ".join(map(names.definition, operation.results))
    operands = [
        literal_label(value) if isinstance(value, Literal) else names.operand(value) for value in operation.operands
    ]
    text = f"{found} = {operation.op.name} {', '.join(operands)}"
    if operation.attrs:
        text += f" {{{', '.join(f'{name}={attr_text(value)}' for name, value in operation.attrs.items())}}}"
    place = ""
    if operation.span is not None:
        place = operation.span.describe()
        place += f" | {operation.span.text}" if operation.span.role and operation.span.text else ""
    tooltip = f"{text[:_MOST_TEXT]}\n{place[:_MOST_TEXT]}".strip()
    node = Node(kind_of(operation), tuple(clipped(line) for line in (head, found) if line), tooltip)
    connect(graph, operation.operands, node, source, names)
    graph.nodes.append(node)
    source.update(dict.fromkeys(operation.results, node))
    for index, region in enumerate(operation.regions):
        label = region_label(operation.op, index)
        if depth + 1 < DEPTH and budget[0] >= LEAST:
            node.bodies.append(region_graph(region, label, budget, depth + 1, "yield"))
        else:
            inside = sum(1 for _ in region.walk())
            node.lines += (f"{label}: … {inside} operations",)


def connect(graph: Graph, values: Sequence[Value], target: Node, source: dict[Value, Node], names: Names) -> None:
    """One edge for each value that the target reads."""
    for value in dict.fromkeys(values):
        if value in source:
            graph.edges.append((source[value], target, names.definition(value)))


def kind_of(operation: Operation) -> str:
    """Whose work an operation is: the user's line, its tangent or adjoint, or the transform's, without a line."""
    if operation.span is None:
        return "transform"
    role = operation.span.role
    return "adjoint" if "adjoint" in role else "tangent" if role else "primal"


def literal_label(value: Literal) -> str:
    return literal_text(value) if value.splat else f"dense {value.type}"


def clipped(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def all_nodes(graph: Graph) -> Iterator[Node]:
    """The nodes of a graph, those of its regions after the operation that holds them."""
    for node in graph.nodes:
        yield node
        for body in node.bodies:
            yield from all_nodes(body)


# --- places -----------------------------------------------------------------------------------------------------------


def arrange(graph: Graph) -> None:
    """Give every node of the graph and of its regions a place."""
    for node in graph.nodes:
        for body in node.bodies:
            arrange(body)
        inside = sum(body.width + 2 * _PADDING for body in node.bodies)
        node.width = max(_CHARACTER * max(map(len, node.lines), default=0), inside) + 2 * _PADDING
        tallest = max((body.height + _LINE + _PADDING for body in node.bodies), default=0.0)
        node.height = _LINE * len(node.lines) + _PADDING + tallest
    assign_layers(graph)
    order_layers(graph)
    place_across(graph)
    y = 0.0
    for layer in graph.layers:
        tallest = max(node.height for node in layer)
        for node in layer:
            if node.kind == "bend":
                node.height = tallest
            node.y = y + (tallest - node.height) / 2
        y += tallest + _BETWEEN_LAYERS
    graph.height = y - _BETWEEN_LAYERS


def assign_layers(graph: Graph) -> None:
    """Longest path from the inputs; the result last. Bends where edges pass layers, shared by the edges of a value."""
    for source, target, _ in graph.edges:  # in program order of the targets
        target.layer = max(target.layer, source.layer + 1)
    graph.nodes[-1].layer = max(node.layer for node in graph.nodes[:-1]) + 1 if len(graph.nodes) > 1 else 0
    graph.layers = [[] for _ in range(graph.nodes[-1].layer + 1)]
    for node in graph.nodes:
        graph.layers[node.layer].append(node)
    chains: dict[tuple[Node, str], list[Node]] = {}
    for source, target, text in graph.edges:
        chain = chains.setdefault((source, text), [source])
        shared = min(len(chain), target.layer - source.layer) - 1
        for depth in range(source.layer + len(chain), target.layer):
            bend = Node("bend", layer=depth, width=4.0)
            graph.layers[depth].append(bend)
            chain.append(bend)
        route = [*chain[shared : target.layer - source.layer], target]
        graph.routes.append((route, text))
        for upper, lower in itertools.pairwise(route):
            upper.below.append(lower)
            lower.above.append(upper)


def order_layers(graph: Graph) -> None:
    """Order each layer by the barycentres of its neighbours, down and up; the order with the fewest crossings stays."""
    best, fewest = [list(layer) for layer in graph.layers], crossings(graph.layers)
    layers = [list(layer) for layer in graph.layers]
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        down = sweep % 2 == 0
        fixed: list[Node] = []
        for layer in layers if down else reversed(layers):
            place = {node: number for number, node in enumerate(fixed)}
            centre = {}
            for number, node in enumerate(layer):
                near = node.above if down else node.below
                centre[node] = sum(place[other] for other in near) / len(near) if near else float(number)
            layer.sort(key=centre.__getitem__)
            fixed = layer
        count = crossings(layers)
        if count < fewest:
            best, fewest = [list(layer) for layer in layers], count
    graph.layers = best


def crossings(layers: Sequence[Sequence[Node]]) -> int:
    """How many pairs of segments cross, as the inversions of their ends."""
    total = 0
    for upper, lower in itertools.pairwise(layers):
        place = {node: number for number, node in enumerate(lower)}
        seen: list[int] = []
        for node in upper:
            ends = sorted(place[other] for other in node.below)
            total += sum(len(seen) - bisect_left(seen, end + 1) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


def place_across(graph: Graph) -> None:
    """Move each node towards the mean of its neighbours, keeping the order and the distances of its layer."""
    for layer in graph.layers:
        x = 0.0
        for node in layer:
            node.x = x + node.width / 2
            x += node.width + _BETWEEN_NODES
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for layer in graph.layers if down else reversed(graph.layers):
            wished = []
            for node in layer:
                near = node.above if down else node.below
                wished.append(sum(other.x for other in near) / len(near) if near else node.x)
            spread(layer, wished)
    left = min(node.x - node.width / 2 for node in itertools.chain(*graph.layers))
    for node in itertools.chain(*graph.layers):
        node.x -= left
    graph.width = max(node.x + node.width / 2 for node in itertools.chain(*graph.layers))


def spread(layer: Sequence[Node], wished: Sequence[float]) -> None:
    """Places near those wished for: the mean of pushing to the right and pushing to the left, which both fit."""
    gaps = [(one.width + other.width) / 2 + _BETWEEN_NODES for one, other in itertools.pairwise(layer)]
    right, left = list(wished), list(wished)
    for k, gap in enumerate(gaps):
        right[k + 1] = max(right[k + 1], right[k] + gap)
    for k in range(len(gaps) - 1, -1, -1):
        left[k] = min(left[k], left[k + 1] - gaps[k])
    for node, low, high in zip(layer, left, right, strict=True):
        node.x = (low + high) / 2


# --- text -------------------------------------------------------------------------------------------------------------


def _quoted(text: str) -> str:
    """A DOT string: its escapes start with a backslash."""
    inner = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{inner}"'


def _dot_graph(graph: Graph, names: dict[Node, str], clusters: Iterator[int], margin: str) -> list[str]:
    lines = []
    for node in graph.nodes:
        shape = ", shape=ellipse" if node.kind == "input" else ", peripheries=2" if node.kind == "result" else ""
        lines.append(
            f"{margin}{names[node]} [label={_quoted(chr(10).join(node.lines))}, tooltip={_quoted(node.tooltip)}, "
            f'fillcolor="{COLOURS[node.kind]}"{shape}];'
        )
        for body in node.bodies:
            lines.append(f"{margin}subgraph cluster_{next(clusters)} {{")
            lines.append(f"{margin}  label={_quoted(' '.join([*node.lines[-1:], body.label]))};")
            lines += _dot_graph(body, names, clusters, margin + "  ")
            lines.append(f"{margin}}}")
            lines.append(f"{margin}{names[node]} -> {names[body.nodes[0]]} [style=dashed];")
    for source, target, text in graph.edges:
        lines.append(f"{margin}{names[source]} -> {names[target]} [tooltip={_quoted(text)}];")
    return lines


def _xml(text: str) -> str:
    """Text of a document: what XML cannot hold becomes a sign for it."""
    kept = _NOT_XML.sub("\ufffd", text)
    return escape(kept, {'"': "&quot;"})


def _svg_graph(graph: Graph, left: float, top: float, numbers: Iterator[int]) -> list[str]:
    """Edges, then boxes over them; ``left`` and ``top`` are where the graph stands in the document."""
    lines = []
    for route, text in graph.routes:
        path = f"M{left + route[0].x:.0f} {top + route[0].bottom:.0f}"
        for upper, lower in itertools.pairwise(route):
            x, to_x, to_y = left + upper.x, left + lower.x, top + lower.y
            middle = (top + upper.bottom + to_y) / 2
            path += f"C{x:.0f} {middle:.0f} {to_x:.0f} {middle:.0f} {to_x:.0f} {to_y:.0f}"
            path += f"V{top + lower.bottom:.0f}" if lower.kind == "bend" else ""
        lines.append(f'<path d="{path}" marker-end="url(#head)"><title>{_xml(text)}</title></path>')
    for node in graph.nodes:
        x, y = left + node.x - node.width / 2, top + node.y
        round_corners = node.height / 2 if node.kind == "input" else 3
        lines.append(f'<g id="node{next(numbers)}" class="{node.kind}"><title>{_xml(node.tooltip)}</title>')
        lines.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{node.width:.1f}" height="{node.height:.1f}" '
            f'rx="{round_corners:.0f}" fill="{COLOURS[node.kind]}"/>'
        )
        for number, text in enumerate(node.lines):
            line_y = y + _PADDING / 2 + _LINE * (number + 0.75)
            lines.append(f'<text x="{left + node.x:.1f}" y="{line_y:.1f}" text-anchor="middle">{_xml(text)}</text>')
        at = x + _PADDING
        inside = y + _LINE * len(node.lines) + _PADDING
        for body in node.bodies:
            lines.append(f'<text x="{at + _PADDING:.1f}" y="{inside + 10:.1f}">{_xml(body.label)}</text>')
            lines += _svg_graph(body, at + _PADDING, inside + _LINE, numbers)
            at += body.width + 2 * _PADDING
        lines.append("</g>")
    return lines
