"""Which names statements bind and read, and the nodes that rewriting makes."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

OPERATORS = "_sg"
"""The variable by which converted code reaches its operators; generated names start with it."""
MANY = 1_000_000
"""So many references there are to what an expression names: Python may count none for a variable that is passed on."""


class Bound(ast.NodeVisitor):
    """The names that statements bind in their function's scope."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}

    def add(self, name: str) -> None:
        self.names[name] = None

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, (ast.Store, ast.Del)):
            self.add(node.id)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.add(node.target.id)
        self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self.add(node.name)
        for decorator in node.decorator_list:
            self.visit(decorator)

    visit_AsyncFunctionDef = visit_FunctionDef
    visit_ClassDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        pass

    def visit_comprehension_scope(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        for inner in ast.walk(node):  # only a walrus inside binds outside
            if isinstance(inner, ast.NamedExpr):
                self.add(inner.target.id)

    visit_ListComp = visit_comprehension_scope
    visit_SetComp = visit_comprehension_scope
    visit_DictComp = visit_comprehension_scope
    visit_GeneratorExp = visit_comprehension_scope

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            self.add((alias.asname or alias.name).split(".")[0])

    visit_ImportFrom = visit_Import

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name is not None:
            self.add(node.name)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        if node.name is not None:
            self.add(node.name)
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        if node.name is not None:
            self.add(node.name)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest is not None:
            self.add(node.rest)
        self.generic_visit(node)


def bound(nodes: Iterable[ast.AST]) -> list[str]:
    """The names that the nodes bind, in order."""
    visitor = Bound()
    for node in nodes:
        visitor.visit(node)
    return list(visitor.names)


def read(nodes: Iterable[ast.AST]) -> list[str]:
    """The names that the nodes read, in nested functions too, in order."""
    found: dict[str, None] = {}
    for node in nodes:
        for inner in all_nodes(node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
                found[inner.id] = None
    return list(found)


def parameters(arguments: ast.arguments) -> list[str]:
    """The names of all parameters."""
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    named += [extra for extra in (arguments.vararg, arguments.kwarg) if extra is not None]
    return [argument.arg for argument in named]


def own_nodes(nodes: Iterable[ast.AST]) -> Iterable[ast.AST]:
    """The nodes and what is in them, without the bodies of functions and classes."""
    waiting = [*nodes][::-1]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            waiting += children(node)[::-1]


def all_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The node and all that is in it, in the order of `ast.walk`; contexts and operators are left out."""
    waiting = deque([node])
    while waiting:
        node = waiting.popleft()
        yield node
        waiting.extend(children(node))


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes that are parts of a node, in order; contexts and operators, which tell nothing, are none."""
    kind, found = type(node), list[ast.AST]()
    fields = _FIELDS.get(kind)
    if fields is None:
        fields = _FIELDS[kind] = fields_of(kind)
    for name in fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            found += [part for part in value if isinstance(part, ast.AST)]
        elif isinstance(value, ast.AST) and value._fields:
            found.append(value)
    return found


_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {}
"""What `fields_of` has found."""


def fields_of(kind: type[ast.AST]) -> tuple[str, ...]:
    """The fields of a kind of nodes in which there may be other nodes."""
    if kind is ast.Constant:
        return ()
    return tuple([name for name in kind._fields if name not in ("ctx", "op", "id", "attr", "type_comment")])


def holds(nodes: Iterable[ast.AST], *kinds: type[ast.AST]) -> bool:
    """Whether a node of these kinds is in the nodes, outside nested functions."""
    return any(isinstance(node, kinds) for node in own_nodes(nodes))


# --- nodes -----------------------------------------------------------------------------


def load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def store(name: str) -> ast.Name:
    return ast.Name(name, ast.Store())


def assign(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([store(name)], value)


def negated(name: str) -> ast.expr:
    return ast.UnaryOp(ast.Not(), load(name))


def operator(name: str, *args: ast.expr, keywords: Sequence[ast.keyword] = ()) -> ast.Call:
    """A call of an operator."""
    return ast.Call(ast.Attribute(load(OPERATORS), name, ast.Load()), list(args), list(keywords))


def thunk(body: ast.expr) -> ast.Lambda:
    """``lambda: body``."""
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), body)


def placed(new: ast.AST, old: ast.AST) -> ast.AST:
    """A made node at the place of an old one, with the made nodes in it; those in old ones have a place already."""
    waiting = [new]
    while waiting:
        node = waiting.pop()
        if hasattr(node, "lineno"):
            continue
        if isinstance(node, (ast.expr, ast.stmt, ast.arg, ast.keyword)):
            ast.copy_location(node, old)
        waiting += children(node)
    return new


def located(tree: ast.AST) -> None:
    """Give all nodes that have no place that of what they are in, as `ast.fix_missing_locations` does, in a loop."""
    waiting: list[tuple[ast.AST, tuple[int, ...]]] = [(tree, (1, 0, 1, 0))]
    while waiting:
        node, place = waiting.pop()
        if node._attributes:
            own = [getattr(node, name, None) for name in _PLACE]
            if None in own:
                for name, there, outer in zip(_PLACE, own, place, strict=True):
                    if there is None:
                        setattr(node, name, outer)
            place = tuple([outer if there is None else there for there, outer in zip(own, place, strict=True)])
        waiting += [(part, place) for part in children(node)]


_PLACE = ("lineno", "col_offset", "end_lineno", "end_col_offset")


def references_to(node: ast.expr) -> ast.expr:
    """How many references there are to the value of an expression; None where only the value tells."""
    return ast.Constant(MANY if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) else None)
