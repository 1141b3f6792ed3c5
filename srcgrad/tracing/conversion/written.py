"""The variables into whose arrays a function writes, and the names on which depends what it writes."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import numpy as np

from srcgrad.tracing.conversion.names import all_nodes, bound, load, operator, placed, read, thunk

WRITERS = frozenset({"at", "copyto", "put", "place", "putmask", "fill_diagonal", "shuffle"})
"""Functions that write into their first argument."""
VIEWING = frozenset({"reshape", "ravel", "view", "transpose", "swapaxes", "squeeze", "diagonal", "atleast_2d"})
"""Methods and functions that may give a view."""
MAKING = (ast.BinOp, ast.UnaryOp, ast.Call, ast.IfExp, ast.Subscript)
"""The expressions that may give an array that nothing else holds: what a name or an attribute gives is something's."""


def written_names(body: Sequence[ast.AST]) -> frozenset[str]:
    """The variables into whose arrays the function writes: ``x[i] = v``, ``x += v``, ``out=x``, ``x.sort()``."""
    found: set[str] = set()
    for node in (inner for statement in body for inner in all_nodes(statement)):
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            found |= base_name(node)
        elif isinstance(node, ast.AugAssign):
            found |= base_name(node.target)
        elif isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg == "out":
                    found |= {inner.id for inner in ast.walk(keyword.value) if isinstance(inner, ast.Name)}
            if isinstance(node.func, ast.Attribute):
                found |= {argument.id for argument in outputs(node) if isinstance(argument, ast.Name)}
                if node.func.attr in ("sort", "fill", "put", "partition"):
                    found |= base_name(node.func.value)
                if node.func.attr in WRITERS and node.args:
                    found |= base_name(node.args[0])
            elif isinstance(node.func, ast.Name):  # a function that may write into its argument
                found |= {argument.id for argument in node.args if isinstance(argument, ast.Name)}
    return with_viewed(body, found)


def outputs(node: ast.Call) -> list[ast.expr]:
    """The arguments of a ufunc by place into which it writes: ``np.multiply(a, b, out)``."""
    ufunc = getattr(np, node.func.attr, None) if isinstance(node.func, ast.Attribute) else None
    return node.args[ufunc.nin :] if isinstance(ufunc, np.ufunc) else []


def with_viewed(body: Sequence[ast.AST], written: set[str]) -> frozenset[str]:
    """The variables, and those of whose arrays they are views."""
    pairs = views(body)
    while more := {source for view, source in pairs if view in written} - written:
        written |= more
    return frozenset(written)


def views(body: Sequence[ast.AST]) -> list[tuple[str, str]]:
    """The variables that may be bound to views of other variables' arrays, with these."""
    return [
        (target.id, source)
        for node in (inner for statement in body for inner in all_nodes(statement))
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
        for source in viewed(node.value)
    ]


def viewed(node: ast.expr) -> set[str]:
    """The variable whose array this may be a view of: ``x[1:]``, ``x.T``, ``x.reshape(2, 3)``, ``np.ravel(x)``."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in VIEWING:
        return viewed(node.func.value) | {name for argument in node.args[:1] for name in base_name(argument)}
    return base_name(node)


def base_name(node: ast.expr) -> set[str]:
    """The variable at the root of ``x[i].T[j]``."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return {node.id} if isinstance(node, ast.Name) else set()


class Sources:
    """For each variable the names on which depends what is assigned to it, or written into its array."""

    def __init__(self, body: Sequence[ast.stmt]) -> None:
        self.direct: dict[str, set[str]] = {}
        self.visit(body, set())
        for view, source in views(body):
            self.direct.setdefault(source, set()).add(view)

    def visit(self, statements: Sequence[ast.AST], control: set[str]) -> None:
        for statement in statements:
            if isinstance(statement, (ast.If, ast.While, ast.For)):
                test = statement.iter if isinstance(statement, ast.For) else statement.test
                inside = control | set(read([test]))
                if isinstance(statement, ast.For):
                    self.note([statement.target], inside)
                self.note([test], inside)
                self.visit([*statement.body, *statement.orelse], inside)
            elif isinstance(statement, ast.stmt):
                self.note([statement], control | set(read([statement])))

    def note(self, nodes: Sequence[ast.AST], names: set[str]) -> None:
        for name in {*bound(nodes), *written_names(nodes)}:
            self.direct.setdefault(name, set()).update(names)

    def of(self, name: str) -> list[str]:
        """The names that decide what the array of a variable holds."""
        found: dict[str, None] = {}
        waiting = [name]
        while waiting:
            for source in sorted(self.direct.get(waiting.pop(), ())):
                if source not in found:
                    found[source] = None
                    waiting.append(source)
        return [source for source in found if not source.startswith("_sg")]


def fresh(value: ast.expr, sources: Sequence[str]) -> ast.expr:
    """An expression whose array becomes one of the trace if it is new, and what is written into it may be traced."""
    seen = thunk(ast.Tuple([operator("read", thunk(load(name))) for name in sources], ast.Load()))
    made = operator("fresh", value, seen)
    placed(made, value)
    return made
