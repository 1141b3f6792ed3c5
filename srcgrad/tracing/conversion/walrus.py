"""Tests that bind a name only where Python comes to it: ``while ok and (n := n + 1) < 20:``.

What ``and`` and ``or`` join is evaluated or not, depending on what comes before; as statements under an ``if`` it may
be so on a traced condition. A ``while`` asks such a test at the beginning of its body, and breaks. So is any test of
an ``assert`` that binds a name: what Python asks there becomes a function.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TypeVar

from srcgrad.tracing.conversion.names import OPERATORS, holds, load

Node = TypeVar("Node", bound=ast.AST)
PASSED = f"{OPERATORS}_passed"
"""The variable with the answer of such a test; numbers follow."""


def without_binding_tests(body: list[ast.stmt]) -> list[ast.stmt]:
    """Statements of one function, with tests that bind names as statements before them, where they have to be."""
    return Tests().block(body)


def binds(test: ast.expr) -> bool:
    """Whether a test binds a name in an operand that Python may not come to."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return binds(test.operand)
    if not isinstance(test, ast.BoolOp) or holds([test], ast.Yield, ast.YieldFrom, ast.Await):
        return False
    return holds(test.values[1:], ast.NamedExpr) or binds(test.values[0])


class Tests:
    """Rewrites the statements of a function."""

    def __init__(self) -> None:
        self.count = 0

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        return [made for statement in statements for made in self.statement(statement)]

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            return [node]
        for field in ("body", "orelse", "finalbody"):
            if isinstance(getattr(node, field, None), list):
                setattr(node, field, self.block(getattr(node, field)))
        for inner in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            inner.body = self.block(inner.body)
        if isinstance(node, ast.If) and binds(node.test):
            before, node.test = self.asked(node.test)
            return [*before, node]
        if isinstance(node, ast.Assert) and holds([node.test], ast.NamedExpr) and __debug__:
            before, node.test = self.asked(node.test)
            return [*before, node]
        if isinstance(node, ast.While) and binds(node.test) and not holds(node.orelse, ast.Break, ast.Continue):
            before, passed = self.asked(node.test)
            leave = ast.If(ast.UnaryOp(ast.Not(), passed), [*node.orelse, ast.Break()], [])
            made = ast.While(ast.Constant(True), [*before, leave, *node.body], [])
            return [located(made, node)]
        return [node]

    def asked(self, test: ast.expr) -> tuple[list[ast.stmt], ast.expr]:
        """Statements that ask a test, and the variable that has its answer then."""
        name = f"{PASSED}{self.count}"
        self.count += 1
        return [
            located(ast.Assign([ast.Name(name, ast.Store())], ast.Constant(False)), test),
            *self.where(test, [located(ast.Assign([ast.Name(name, ast.Store())], ast.Constant(True)), test)]),
        ], ast.copy_location(load(name), test)

    def where(self, test: ast.expr, then: list[ast.stmt]) -> list[ast.stmt]:
        """``if test: then``."""
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) and binds(test):
            for value in reversed(test.values):
                then = self.where(value, then)
            return then
        if not binds(test):
            return [located(ast.If(test, then, []), test)]
        if isinstance(test, ast.UnaryOp):
            before, passed = self.asked(test.operand)
            return [*before, located(ast.If(ast.UnaryOp(ast.Not(), passed), then, []), test)]
        assert isinstance(test, ast.BoolOp)
        none = ast.BoolOp(ast.And(), [ast.UnaryOp(ast.Not(), value) for value in test.values])
        before, passed = self.asked(located(none, test))
        return [*before, located(ast.If(ast.UnaryOp(ast.Not(), passed), then, []), test)]


def located(made: Node, node: ast.AST) -> Node:
    """A node that is made, with the place of what it is made for."""
    ast.copy_location(made, node)
    for inner in ast.walk(made):
        if not hasattr(inner, "lineno") and isinstance(inner, (ast.stmt, ast.expr)):
            ast.copy_location(inner, node)
    return made
