"""Variables that the statements of a loop append to, and whose last item they read at most; see `appending`.

Those into which they do nothing but insert items at the front are such too.
And those of which they do nothing but assign items by keys that change from trip to trip; see `entries`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Final

from srcgrad.tracing.conversion.names import all_nodes, bound, load, operator, placed, thunk

FRONT: Final = "front"


def appended_to(loop: ast.For, allowed: Callable[[str], bool]) -> ast.expr | None:
    """The variables, and whether the last item of each is read, as an expression; None if there are none.

    Where items are assigned by keys, it is None in place of that, and `FRONT` where they are inserted at the front.
    """
    body = loop.body
    names = {node.func.value.id for node in walk(body) if is_append(node)}  # type: ignore[attr-defined]
    found = {name: reads_last(body, name) for name in names if allowed(name) and nothing_else(body, name)}
    filled = dict.fromkeys(name for name in filled_by_key(loop) if allowed(name))
    fronts = {node.func.value.id for node in walk(body) if is_insert(node)}  # type: ignore[attr-defined]
    first = dict.fromkeys((x for x in fronts if allowed(x) and nothing_else(body, x, is_insert)), FRONT)
    both: dict[str, bool | str | None] = {**found, **filled, **first}
    if not both:
        return None
    parts = [
        ast.Tuple([operator("read", thunk(load(name))), ast.Constant(both[name])], ast.Load()) for name in sorted(both)
    ]
    made = thunk(ast.Tuple(list(parts), ast.Load()))
    placed(made, body[0])
    return made


def filled_by_key(loop: ast.For) -> list[str]:
    """The variables of which the statements do nothing but assign items, by keys that the loop's variables make."""
    changing = set(bound([loop.target, *loop.body]))
    nodes = walk(loop.body)
    changed = {id(node.target) for node in nodes if isinstance(node, ast.AugAssign)}
    places = [
        node.value
        for node in nodes
        if isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and id(node) not in changed
        and not isinstance(node.slice, (ast.Slice, ast.Tuple))
        and not changing.isdisjoint(inner.id for inner in ast.walk(node.slice) if isinstance(inner, ast.Name))
    ]
    known = {id(place) for place in places}
    others = {node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in known}
    return sorted({place.id for place in places} - others)


def walk(body: Sequence[ast.stmt]) -> list[ast.AST]:
    return [node for statement in body for node in all_nodes(statement)]


def is_append(node: ast.AST) -> bool:
    """``name.append(value)``."""
    given = given_to(node, "append")
    return len(given) == 1 and not isinstance(given[0], ast.Starred)


def is_insert(node: ast.AST) -> bool:
    """``name.insert(0, value)``."""
    given = given_to(node, "insert")
    if len(given) != 2 or isinstance(given[1], ast.Starred):
        return False
    return isinstance(given[0], ast.Constant) and given[0].value == 0


def given_to(node: ast.AST, method: str) -> list[ast.expr]:
    """The arguments of ``name.method(...)``; none of what is something else, or has keywords."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.keywords:
        return []
    return node.args if node.func.attr == method and isinstance(node.func.value, ast.Name) else []


def is_last(node: ast.AST, name: str) -> bool:
    """``name[-1]``, read."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name) or node.value.id != name:
        return False
    index = node.slice
    minus = (
        isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub) and isinstance(index.operand, ast.Constant)
    )
    return minus and index.operand.value == 1 and isinstance(node.ctx, ast.Load)  # type: ignore[attr-defined]


def reads_last(body: Sequence[ast.stmt], name: str) -> bool:
    return any(is_last(node, name) for node in walk(body))


def nothing_else(body: Sequence[ast.stmt], name: str, adds: Callable[[ast.AST], bool] = is_append) -> bool:
    """Whether the statements add to a list and read its last item, if they append, and do nothing else with it."""
    nodes = walk(body)
    known = {id(node.func.value) for node in nodes if adds(node)}  # type: ignore[attr-defined]
    if adds is is_append:
        known |= {id(node.value) for node in nodes if is_last(node, name)}  # type: ignore[attr-defined]
    return all(id(node) in known for node in nodes if isinstance(node, ast.Name) and node.id == name)
