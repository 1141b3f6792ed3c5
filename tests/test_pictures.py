"""Pictures of programs: DOT and SVG say what the program is, nothing overlaps, large programs are cut."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.ir.core import Builder
from srcgrad.ir.opdef import REGISTRY, Term
from srcgrad.ir.source import Span
from srcgrad.ir.types import FLOAT64, ArrayType
from srcgrad.lowering import lower
from srcgrad.pictures import Graph, Node, all_nodes, arrange, crossings, dot, picture, svg
from tests import explained

SVG = "{http://www.w3.org/2000/svg}"
LAYER = (np.ones((3, 2)) / 4, np.arange(12.0).reshape(4, 3) / 12, np.array([0.5, -0.5]))


def nested(x):
    return np.sum(sg.checkpoint(lambda y: np.sin(y) * sg.checkpoint(np.exp)(y))(x) * x)


def long(x):
    for function in [np.sin, np.cos] * 200:  # each trip is another operation, so that the loop is unrolled
        x = function(x) * x
    return np.sum(x)


PROGRAMS = {
    "layer": (sg.grad(explained.layer), LAYER),
    "hessian": (sg.hessian(explained.layer), LAYER),
    "regions": (sg.jit(nested), (np.ones(3),)),
    "gradient of regions": (sg.grad(nested), (np.ones(3),)),
    "long": (sg.grad(long), (np.ones(3),)),
    "a constant": (sg.grad(lambda x: 3.0), (1.0,)),
    "in place": (sg.grad(explained.in_place), (np.ones(4),)),
}


def function_of(name):
    f, args = PROGRAMS[name]
    return lower(f, args, {}).built.function


def boxes(graph, left=0.0, top=0.0):
    """``(node, left, top, right, bottom)`` of the nodes of one graph, without those of its regions."""
    for layer in graph.layers:
        for node in layer:
            x = left + node.x - node.width / 2
            yield node, x, top + node.y, x + node.width, top + node.bottom


def graphs_of(graph):
    yield graph
    for node in graph.nodes:
        for body in node.bodies:
            yield from graphs_of(body)


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_overlaps_and_edges_go_down(name):
    whole = picture(function_of(name))
    arrange(whole)
    for graph in graphs_of(whole):
        places = list(boxes(graph))
        for (_, a, b, c, d), (_, e, f, g, h) in itertools.combinations(places, 2):
            assert c <= e + 1e-6 or g <= a + 1e-6 or d <= f + 1e-6 or h <= b + 1e-6
        assert min(box[1] for box in places) > -1e-6
        assert max(box[3] for box in places) < graph.width + 1e-6
        assert max(box[4] for box in places) < graph.height + 1e-6
        steps = [step for route, _ in graph.routes for step in itertools.pairwise(route)]
        assert all(lower.layer == upper.layer + 1 for upper, lower in steps)
        assert all(source.layer < target.layer for source, target, _ in graph.edges)
        for node in graph.nodes:
            assert sum(body.width for body in node.bodies) < node.width
            assert all(body.height < node.height for body in node.bodies)


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_edge_is_drawn_from_its_source_to_its_target(name):
    whole = picture(function_of(name))
    arrange(whole)
    for graph in graphs_of(whole):
        start = {}
        for route, text in graph.routes:  # a route starts at its source, or at a bend of its value's earlier routes
            origin = start.get(route[0], (route[0], text))
            assert origin[1] == text or route[0].kind != "bend"
            start.update({node: origin for node in route if node.kind == "bend"})
        drawn = [(start.get(route[0], (route[0], ""))[0], route[-1], text) for route, text in graph.routes]
        assert drawn == graph.edges
        assert len({id(node) for route, _ in graph.routes for node in route[1:-1]}) == sum(
            node.kind == "bend" for layer in graph.layers for node in layer
        )


def test_a_picture_has_the_operations_and_what_they_read():
    function = function_of("layer")
    graph = picture(function)
    heads = [node.lines[0].split()[0] for node in graph.nodes if node.kind not in ("input", "result")]
    assert heads == [operation.op.name for operation in function.operations]
    assert [node.lines[0] for node in graph.nodes[:3]] == ["%w: f64[3,2]", "%x: f64[4,3]", "%b: f64[2]"]
    assert graph.nodes[-1].lines[0].startswith("return %")
    kinds = {node.kind for node in graph.nodes}
    assert {"input", "primal", "adjoint", "result"} <= kinds
    assert "tangent" in {node.kind for node in picture(function_of("hessian")).nodes}
    adjoint = next(node for node in graph.nodes if node.kind == "adjoint")
    assert re.search(r"adjoint of explained.py:\d+ \| ", adjoint.tooltip)
    assert graph.note == ""


def test_fewer_edges_cross():
    """Two columns whose inputs stand in the other order: the order of the layers undoes all crossings."""
    graph = Graph("f")
    inputs = [Node("input", (f"%{k}",)) for k in range(6)]
    reads = [Node("primal", (f"%{k}",)) for k in range(6)]
    end = Node("result", ("return",))
    graph.nodes = [*inputs, *reads, end]
    graph.edges = [(inputs[5 - k], reads[k], f"{k}") for k in range(6)] + [(node, end, "r") for node in reads]
    arrange(graph)
    assert crossings(graph.layers) == 0
    assert crossings([inputs, reads]) == 15


def test_large_programs_are_cut():
    function = function_of("long")
    total = sum(1 for _ in function.walk())
    assert total > 1000
    for limit in (8, 30, 200):
        graph = picture(function, limit)
        nodes = list(all_nodes(graph))
        assert len(nodes) <= limit
        missing = [node for node in nodes if node.kind == "left out"]
        assert len(missing) == 1
        shown = len(nodes) - 3  # an input, what is left out, the result
        assert missing[0].lines == (f"… {total - shown} operations",)
        assert graph.note == f"({shown} of {total} operations are shown)"
        text = svg(function, limit=limit)
        assert graph.note in text and graph.note in dot(function, limit=limit)
        assert len(text) < 2000 * limit
    with pytest.raises(ValueError, match="at least 8"):
        picture(function, 7)


def test_regions_are_cut_too():
    def f(x):
        return sg.checkpoint(long)(x) + sg.checkpoint(lambda y: long(y * 2.0))(x)

    function = lower(sg.jit(f), (np.ones(3),), {}).built.function
    graph = picture(function, 40)
    assert len(list(all_nodes(graph))) <= 40
    assert re.fullmatch(r"\(\d+ of \d+ operations are shown\)", graph.note)
    assert any("operations" in line for node in all_nodes(graph) for line in node.lines)


def test_many_inputs_are_cut():
    function = lower(sg.jit(lambda xs: sum(xs)), ([np.float64(k) for k in range(100)],), {}).built.function
    graph = picture(function, 30)
    assert len(graph.nodes) <= 30
    assert graph.nodes[10].lines == ("… 90 more inputs",)


# --- the texts --------------------------------------------------------------------------------------------------------

TOKEN = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")|(->|[{}\[\];=,])|([A-Za-z_]\w*|\d+))')


def statements(text):
    """The nodes, edges and clusters of DOT text, by the grammar of graphviz as far as it is used; it must fit whole."""
    tokens, at = [], 0
    while at < len(text.rstrip()):
        match = TOKEN.match(text, at)
        assert match, text[at : at + 60]
        tokens.append(match.group().strip())
        at = match.end()
    nodes, edges, clusters = {}, [], []
    position = 2
    assert tokens[0] == "digraph" and tokens[2] == "{"
    depth = 0

    def attributes(position):
        found = {}
        if tokens[position] != "[":
            return found, position
        position += 1
        while tokens[position] != "]":
            assert tokens[position + 1] == "="
            found[tokens[position]] = tokens[position + 2].strip('"')
            position += 3
            if tokens[position] == ",":
                position += 1
        return found, position + 1

    while position < len(tokens):
        token = tokens[position]
        if token == "{":
            depth, position = depth + 1, position + 1
        elif token == "}":
            depth, position = depth - 1, position + 1
        elif token == ";":
            position += 1
        elif token == "subgraph":
            assert tokens[position + 1].startswith("cluster_")
            clusters.append(tokens[position + 1])
            position += 2
        elif tokens[position + 1] == "=":
            position += 3
        elif tokens[position + 1] == "->":
            found, next_position = attributes(position + 3)
            edges.append((token, tokens[position + 2], found))
            position = next_position
        else:
            nodes[token], position = attributes(position + 1)
    assert depth == 0
    return nodes, edges, clusters


@pytest.mark.parametrize("name", PROGRAMS)
def test_dot(name):
    function = function_of(name)
    text = dot(function)
    graph = picture(function)
    nodes, edges, clusters = statements(text)
    nodes = {name: given for name, given in nodes.items() if name not in ("node", "graph")}
    assert len(nodes) == len(list(all_nodes(graph)))
    assert all({start, end} <= nodes.keys() for start, end, _ in edges)
    inner = list(graphs_of(graph))
    assert len(clusters) == len(set(clusters)) == len(inner) - 1
    assert len(edges) == sum(len(part.edges) for part in inner) + len(clusters)


@pytest.mark.parametrize("name", PROGRAMS)
def test_svg(name):
    function = function_of(name)
    graph = picture(function)
    root = ET.fromstring(svg(function, "a heading"))
    assert root.tag == f"{SVG}svg"
    groups = root.findall(f".//{SVG}g")
    assert len(groups) == len(list(all_nodes(graph)))
    assert len({group.get("id") for group in groups}) == len(groups)
    assert root.find(f"{SVG}text").text == "a heading"
    width, height = float(root.get("width")), float(root.get("height"))
    for box in root.iter(f"{SVG}rect"):
        assert float(box.get("x", 0)) + float(box.get("width")) <= width
        assert float(box.get("y", 0)) + float(box.get("height")) <= height
    shown = {text for element in root.iter(f"{SVG}text") for text in [element.text]}
    assert all(line in shown for node in all_nodes(graph) for line in node.lines)
    assert len(root.findall(f".//{SVG}path")) == sum(len(part.edges) for part in graphs_of(graph))


def test_names_and_lines_with_any_characters():
    builder = Builder()
    builder.span = Span.at('de"mo.py', 3, text='y = f("<a & b>\\n") \x0c # "]]>')
    x = Term(builder, builder.param(ArrayType(FLOAT64, (3,)), 'x"<&'))
    function = builder.function("f\\n", [REGISTRY["sin"](x).value])
    root = ET.fromstring(svg(function, 'heading "<&>" \x00 \ud800'))
    titles = [element.text for element in root.iter(f"{SVG}title")]
    assert any('y = f("<a & b>\\n")' in title for title in titles)
    nodes, edges, _ = statements(dot(function, 'heading "\\" \n'))
    assert len(edges) == 2
    assert any('f(\\"<a & b>\\\\n\\")' in given.get("tooltip", "") for given in nodes.values())


def test_large_constants_are_not_printed():
    table = np.arange(20_000.0)
    text = sg.explain(sg.jit(lambda x: x * np.arange(20_000.0)))(table).svg("ir")
    assert "dense f64[20000]" in text
    assert len(text) < 20_000


def test_methods_of_an_explanation():
    explanation = sg.explain(sg.grad(explained.layer))(*LAYER)
    assert list(explanation.functions) == ["ir", "derivative ir", "optimised ir"]
    for name, function in explanation.functions.items():
        assert explanation.dot(name) == dot(function, f"{explanation.heading}: {name}")
        assert explanation.svg(name) == svg(function, f"{explanation.heading}: {name}")
    assert explanation.svg() == explanation.svg("optimised ir")
    with pytest.raises(sg.errors.ArgumentError, match="no program 'passes' to draw"):
        explanation.svg("passes")
    with pytest.raises(sg.errors.ArgumentError, match="at least 8 boxes, not 3"):
        explanation.dot(limit=3)
    unmapped = sg.explain(sg.vmap(lambda x: np.sort(x[x > 0]).sum()))(np.ones((3, 2)))
    with pytest.raises(sg.errors.ArgumentError, match="runs the function itself"):
        unmapped.svg()
