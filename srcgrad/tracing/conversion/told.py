"""Which names the statements of one function bind and read, found once for each statement.

A chain of ``elif``, or of early returns, is as deep as it is long, and at each of its depths the names in all that lies
deeper are asked for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from srcgrad.tracing.conversion.names import Bound, children

Levels = Sequence[Sequence[str]]


class Below(NamedTuple):
    """What a statement reads from a depth on."""

    levels: Levels
    depth: int


class BoundOnce(Bound):
    """The names that statements bind, of which those that were visited before are remembered."""

    def __init__(self, known: dict[int, tuple[ast.stmt, list[str]]]) -> None:
        super().__init__()
        self.known: Final = known

    def visit(self, node: ast.AST) -> None:
        if not isinstance(node, ast.stmt):
            super().visit(node)
            return
        found = self.known.get(id(node))
        if found is None:
            inner = BoundOnce(self.known)
            Bound.visit(inner, node)
            found = self.known[id(node)] = (node, list(inner.names))  # with the node, so that no other has its identity
        for name in found[1]:
            self.add(name)


class Told:
    """What is asked of the statements of a function as they were before they are converted."""

    def __init__(self) -> None:
        self.binding: Final[dict[int, tuple[ast.stmt, list[str]]]] = {}
        self.reading: Final[dict[int, tuple[ast.stmt, Levels]]] = {}

    def bound(self, nodes: Iterable[ast.AST]) -> list[str]:
        """The names that the nodes bind, in order: `names.bound`."""
        visitor = BoundOnce(self.binding)
        for node in nodes:
            visitor.visit(node)
        return list(visitor.names)

    def read(self, nodes: Iterable[ast.AST]) -> list[str]:
        """The names that the nodes read, in the order of `names.read`: those of each node by their depth."""
        found: dict[str, None] = {}
        for node in nodes:
            for level in self.levels(node):
                found.update(dict.fromkeys(level))
        return list(found)

    def levels(self, node: ast.AST) -> Levels:
        """The names that are read at each depth below a node, in order; those of a statement in it are known."""
        known = self.reading.get(id(node))
        if known is not None:
            return known[1]
        found: list[list[str]] = []
        generation: list[ast.AST | Below] = [node]
        while generation:
            names: dict[str, None] = {}
            following: list[ast.AST | Below] = []
            for item in generation:
                if isinstance(item, ast.stmt) and item is not node:
                    item = Below(self.levels(item), 0)
                if isinstance(item, Below):
                    names.update(dict.fromkeys(item.levels[item.depth]))
                    if item.depth + 1 < len(item.levels):
                        following.append(Below(item.levels, item.depth + 1))
                    continue
                if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Load):
                    names[item.id] = None
                following += children(item)
            found.append(list(names))
            generation = following
        if isinstance(node, ast.stmt):
            self.reading[id(node)] = (node, found)
        return found
