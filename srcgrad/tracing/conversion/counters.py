"""``while`` loops that count, as they are written: ``while i < n`` with one ``i += 1`` among its statements.

A counter is a variable to which each trip adds a number that it leaves alone, once and whatever else it does; the test
reads the counter and such numbers. `counting` finds the trips.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from srcgrad.tracing.conversion.names import all_nodes, bound, own_nodes, parameters, placed, thunk

PARTS: Final = (
    *(ast.Compare, ast.BoolOp, ast.boolop, ast.cmpop, ast.BinOp, ast.operator, ast.UnaryOp, ast.unaryop, ast.Constant),
)
"""What a test may hold around what it reads."""


def counter_of(node: ast.While, allowed: Callable[[str], bool]) -> ast.expr | None:
    """The name, the test as a function of it, what is added, and the numbers that are read; None if nothing counts.

    ``allowed``: whether a name is a variable that nothing but the statements of this function binds.
    """
    read = numbers_in(node.test)
    if read is None:
        return None
    for name in dict.fromkeys(leaf.id for leaf in read if isinstance(leaf, ast.Name)):
        added = increment(node.body, name) if allowed(name) else None
        numbers = None if added is None else numbers_in(added)
        if added is None or numbers is None:
            continue
        leaves = [leaf for leaf in (*read, *numbers) if not (isinstance(leaf, ast.Name) and leaf.id == name)]
        if {root(leaf) for leaf in leaves} & {name, *bound(node.body)}:
            continue
        parameter = ast.arguments([], [ast.arg(name)], None, [], [], None, [])
        test = ast.Lambda(parameter, copy.deepcopy(node.test))
        seen = ast.Tuple([copy.deepcopy(leaf) for leaf in leaves], ast.Load())
        parts = [ast.Constant(name), test, thunk(copy.deepcopy(added)), thunk(seen)]
        made = ast.Tuple([*parts, ast.Constant(ordered(node.test, name))], ast.Load())
        placed(made, node.test)
        return made
    return None


def numbers_in(node: ast.AST) -> list[ast.expr] | None:
    """The variables, attributes, sizes and lengths that an expression is made of; None if it holds anything else."""
    if isinstance(node, ast.Name) or (isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)) and root(node)):
        return [node]
    if not isinstance(node, PARTS):
        return None
    found: list[ast.expr] = []
    for child in ast.iter_child_nodes(node):
        inner = numbers_in(child)
        if inner is None:
            return None
        found += inner
    return found


def root(node: ast.expr) -> str:
    """The variable that ``n``, ``self.n``, ``x.shape[0]``, ``p["n"]`` or ``len(x)`` begin with; else empty."""
    if isinstance(node, ast.Call):
        called = isinstance(node.func, ast.Name) and node.func.id == "len" and len(node.args) == 1 and not node.keywords
        return root(node.args[0]) if called else ""
    if isinstance(node, ast.Subscript):
        shape = isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
        key = isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
        return root(node.value) if key or (shape and isinstance(node.slice, (ast.Constant, ast.UnaryOp))) else ""
    if isinstance(node, ast.Attribute):
        return root(node.value)
    return node.id if isinstance(node, ast.Name) else ""


def ordered(test: ast.expr, name: str) -> bool:
    """Whether a test is the counter against one number, which it passes once."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    sides = [test.left, test.comparators[0]]
    alone = [isinstance(side, ast.Name) and side.id == name for side in sides]
    holding = [any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(side)) for side in sides]
    return sum(alone) == sum(holding) == 1 and isinstance(test.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE))


def increment(body: Sequence[ast.stmt], name: str) -> ast.expr | None:
    """What a trip adds to a variable, if one statement that always runs does and no other binds it."""
    found = [added for statement in body if (added := addend(statement, name)) is not None]
    others = [statement for statement in body if addend(statement, name) is None]
    return found[0] if len(found) == 1 and name not in bound(others) else None


def addend(statement: ast.stmt, name: str) -> ast.expr | None:
    """``c`` of ``i += c``, ``i = i + c`` or ``i = c + i``, ``-c`` where it is subtracted."""
    target: ast.expr
    if isinstance(statement, ast.AugAssign):
        target, sign, added = statement.target, statement.op, statement.value
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.value, ast.BinOp):
        target, sign = statement.targets[0], statement.value.op
        left, added = statement.value.left, statement.value.right
        if isinstance(sign, ast.Add) and isinstance(added, ast.Name) and added.id == name:
            left, added = added, left
        if not (isinstance(left, ast.Name) and left.id == name):
            return None
    else:
        return None
    if not (isinstance(target, ast.Name) and target.id == name and isinstance(sign, (ast.Add, ast.Sub))):
        return None
    return added if isinstance(sign, ast.Add) else ast.UnaryOp(ast.USub(), added)


def rebound_inside(body: Sequence[ast.AST]) -> frozenset[str]:
    """The variables, of a function or from around it, that functions inside of it may bind."""
    found: set[str] = set()
    for node in own_nodes(body):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            outer = {name for inner in own_nodes(node.body) if isinstance(inner, ast.Nonlocal) for name in inner.names}
            own = set() if isinstance(node, ast.ClassDef) else {*parameters(node.args), *bound(node.body)} - outer
            found |= (outer | rebound_inside(node.body)) - own
    return frozenset(found)


def read_inside(body: Sequence[ast.stmt]) -> dict[str, tuple[int, int]]:
    """The variables that functions inside of a function may read whenever they are called, and where the first stands.

    A generator has what it goes through first from where it is made.
    """
    later = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.GeneratorExp)
    inner = [node for statement in body for node in all_nodes(statement) if isinstance(node, later)]
    found: dict[str, tuple[int, int]] = {}
    for node in inner:
        first = node.generators[0].iter if isinstance(node, ast.GeneratorExp) else None
        own = [x for child in ast.iter_child_nodes(node) for x in without(child, first)]
        for name in (x.id for x in own if isinstance(x, ast.Name)):
            place = (node.lineno, node.col_offset)
            found[name] = min(found.get(name, place), place)
    return found


def without(node: ast.AST, part: ast.AST | None) -> Iterator[ast.AST]:
    """The nodes in one, but for a part of it."""
    if node is not part:
        yield node
        for child in ast.iter_child_nodes(node):
            yield from without(child, part)


def repeated(body: Sequence[ast.stmt]) -> frozenset[int]:
    """What stands in loops, by identity."""
    loops = [node for node in own_nodes(body) if isinstance(node, (ast.While, ast.For))]
    return frozenset(id(inner) for node in loops for part in (*node.body, *node.orelse) for inner in all_nodes(part))
