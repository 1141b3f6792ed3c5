"""Blocks of a function that a call may not come to, and the function without them.

What a function reads in a block that nothing runs does not matter: ``if DEBUG: plt.plot(x)``, an early return, a
function inside that nothing calls. The analysis looks at the code without such a block, and a trace runs it with a
refusal in its place, so that coming there is seen. Names that the block binds stay variables of the function.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from srcgrad.tracing.conversion.names import assign, bound, holds, operator, own_nodes, placed
from srcgrad.tracing.conversion.sources import FunctionNode

LEAVING: Final = (ast.Return, ast.Raise, ast.Break, ast.Continue)
YIELDING: Final = (ast.Yield, ast.YieldFrom, ast.Await)


class Block(NamedTuple):
    """Where statements, from one to the last of their list, or an expression, stand in a file."""

    line: int
    column: int
    end_line: int
    end_column: int
    statements: bool


Unreached = Mapping[Block, str]
"""Blocks, and what is refused where a trace comes to them."""


def block_of(nodes: Sequence[ast.stmt] | ast.expr) -> Block:
    first, last = (nodes, nodes) if isinstance(nodes, ast.expr) else (nodes[0], nodes[-1])
    end = (last.end_lineno or last.lineno, last.end_col_offset or 0)
    return Block(first.lineno, first.col_offset, *end, not isinstance(nodes, ast.expr))


def innermost(root: FunctionNode, line: int, name: object) -> list[Block]:
    """The innermost blocks in which a name is read or assigned on a line; none where one of these places is in none."""
    found: list[Block | None] = []

    def visit(node: ast.AST, around: Block | None) -> None:
        if says(node, line, name):
            found.append(around)
        for child, block in children(node, called):
            visit(child, block or around)

    called = called_functions(root)
    visit(root, None)
    return [] if None in found else list(dict.fromkeys(block for block in found if block is not None))


def says(node: ast.AST, line: int, name: object) -> bool:
    if isinstance(node, ast.Name):
        return node.lineno == line and node.id == name
    if isinstance(node, ast.Attribute):
        return line in (node.lineno, node.end_lineno) and node.attr == name
    if not isinstance(node, (ast.Import, ast.ImportFrom)) or node.lineno != line:
        return False
    module = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
    return name in (*module, *[alias.asname or alias.name for alias in node.names])


def called_functions(root: FunctionNode) -> set[str]:
    """The root, and the functions inside it that code outside of all blocks knows by name."""
    found: set[str] = {root.name} if isinstance(root, ast.FunctionDef) else set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.add(node.id)
        for child, block in children(node, {"*"}):
            if block is None:
                visit(child)

    visit(root)
    return found


def children(node: ast.AST, called: set[str]) -> Iterator[tuple[ast.AST, Block | None]]:
    """What is in a node, each with the block that it begins or is part of there.

    ``called``: the functions inside whose bodies are no blocks; of ``{"*"}`` none are.
    """
    inside = isinstance(node, ast.FunctionDef) and not {node.name, "*"} & called
    conditional = inside or isinstance(node, (ast.If, ast.ExceptHandler, ast.match_case))
    for field, value in ast.iter_fields(node):
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            yield from in_list(value, conditional and (field == "body" or isinstance(node, ast.If)))
        elif isinstance(value, list):
            later = isinstance(node, ast.BoolOp)
            for position, item in enumerate(value):
                if isinstance(item, ast.AST):
                    yield item, as_block(item) if later and position else None
        elif isinstance(value, ast.AST):
            yield value, as_block(value) if isinstance(node, ast.IfExp) and field != "test" else None


def in_list(statements: Sequence[ast.stmt], conditional: bool) -> Iterator[tuple[ast.stmt, Block | None]]:
    """Statements that run on a condition: all of them, or those behind one that may leave."""
    block = as_block(statements) if conditional else None
    for position, statement in enumerate(statements):
        yield statement, block
        leaving = not isinstance(statement, LEAVING) and holds([statement], *LEAVING)
        if leaving and position + 1 < len(statements):
            block = as_block(statements[position + 1 :]) or block


def as_block(nodes: Sequence[ast.stmt] | ast.AST) -> Block | None:
    """The block of these nodes; None where the function would be another one without them."""
    if isinstance(nodes, ast.AST):
        whole = isinstance(nodes, ast.expr) and not holds([nodes], ast.NamedExpr, *YIELDING)
        return block_of(nodes) if whole and isinstance(nodes, ast.expr) else None
    return None if holds(nodes, *YIELDING) else block_of(nodes)


def without_blocks(root: FunctionNode, unreached: Unreached, converting: bool) -> None:
    """Put a refusal in the place of blocks, or where the code is only looked at, nothing."""

    def visit(node: ast.AST) -> None:
        for field, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(node, field, replaced(value))
            elif isinstance(value, ast.expr) and isinstance(node, ast.IfExp):
                setattr(node, field, instead(value))
        if isinstance(node, ast.BoolOp):
            node.values = [*map(instead, node.values)]
        for child in ast.iter_child_nodes(node):
            visit(child)

    def replaced(statements: list[ast.stmt]) -> list[ast.stmt]:
        for position in range(len(statements)):
            rest = statements[position:]
            if block_of(rest) in unreached:
                return [*statements[:position], *ending(rest, unreached[block_of(rest)], converting)]
        return statements

    def instead(value: ast.expr) -> ast.expr:
        reason = unreached.get(block_of(value))
        if reason is None:
            return value
        made = refusal(reason) if converting else ast.Constant(None)
        placed(made, value)
        return made

    visit(root)


def ending(statements: Sequence[ast.stmt], reason: str, converting: bool) -> list[ast.stmt]:
    """What stands in the place of statements, and is left there. It binds the same names, behind the end."""
    kinds = (ast.Global, ast.Nonlocal)
    declared: list[ast.stmt] = [copy.deepcopy(node) for node in own_nodes(statements) if isinstance(node, kinds)]
    end: ast.stmt = ast.Expr(refusal(reason)) if converting else ast.Raise(None, None)
    made = [*declared, end, *(assign(name, ast.Constant(None)) for name in bound(statements))]
    for node in made:
        placed(node, statements[0])
    return made


def refusal(reason: str) -> ast.expr:
    return operator("unreached", ast.Constant(reason))
