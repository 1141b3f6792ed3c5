"""What the source says of the lists that may become `recorded.Recorded`.

Which they are is found in `histories`. ``ts = np.array(ts)`` behind the loops sets what is another variable from there
on, and is taken for one.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from srcgrad.tracing.conversion.histories import History, appending, displays, grown, mentioned, of_array, parts
from srcgrad.tracing.conversion.names import all_nodes, load, operator, own_nodes, placed

LISTED: Final = " as a list"
"""Behind the name of a list whose variable the function uses for something else afterwards."""


class Records:
    """The lists of a function of which more is read than variables hold, but no more than `recorded.Recorded` tells."""

    def __init__(self, body: Sequence[ast.stmt], found: dict[str, History]) -> None:
        self.lists = {name: history for name, history in found.items() if not history.is_short()}
        self.groups = together(body, self.lists)

    def appended_in(self, loop: ast.While) -> list[list[str]]:
        """Those to which a loop appends, by what the same statements do."""
        calls = [appending(node) for node in own_nodes([loop])] if self.lists else []
        names = {call[0].id for call in calls if call is not None}
        inside = [[name for name in group if name in names] for group in self.groups]
        return [group for group in inside if group]

    def readers(self, names: Collection[str]) -> list[ast.expr]:
        """The functions that read them, each once."""
        lists = [self.lists[name] for name in names]
        found: list[ast.expr] = [load("len")] if any(history.counted for history in lists) else []
        found += [reader for history in lists for reader in history.arrays]
        return list({ast.unparse(reader): reader for reader in found}.values())

    def read(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The statements of the function, with arrays of the items where functions are given the lists."""
        reading = Reading(self.lists)
        return [reading.visit(statement) for statement in body] if self.lists else body


def together(body: Sequence[ast.stmt], names: Collection[str]) -> list[list[str]]:
    """Lists in groups to which the same blocks of statements append as many items, and which they make."""
    uses: dict[str, list[tuple[int, int]]] = {name: [] for name in names}
    for number, block in enumerate(blocks(body) if names else ()):
        for statement in block:
            call = appending(statement.value) if isinstance(statement, ast.Expr) else None
            if call is not None and call[0].id in uses:
                uses[call[0].id].append((number, -1))
            for variable, items in displays(statement) if isinstance(statement, (ast.Assign, ast.AnnAssign)) else ():
                if variable.id in uses:
                    uses[variable.id].append((number, len(items)))
    groups: dict[tuple[tuple[int, int], ...], list[str]] = {}
    for name, used in uses.items():
        groups.setdefault(tuple(used), []).append(name)
    return list(groups.values())


def blocks(body: Sequence[ast.stmt]) -> Iterator[Sequence[ast.stmt]]:
    yield body
    for node in own_nodes(body):
        for _, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                yield value


class Reading(ast.NodeTransformer):
    """Puts the arrays of the items where functions of NumPy's are given the lists."""

    def __init__(self, names: Collection[str]) -> None:
        self.names = names

    def visit_Call(self, node: ast.Call) -> ast.expr:
        for name in of_array(node):
            if name.id in self.names:
                made = placed(operator("whole", ast.copy_location(load(name.id), name)), name)
                node.args = [made if x is name else x for x in node.args]  # type: ignore[misc]
                for keyword in node.keywords:
                    keyword.value = made if keyword.value is name else keyword.value  # type: ignore[assignment]
        return self.generic_visit(node)  # type: ignore[return-value]


def told_apart(body: list[ast.stmt], parameters: Sequence[str]) -> list[ast.stmt]:
    """The statements of a function, with names of their own for lists whose variables become other things for good."""
    for name in sorted(grown(body) - set(parameters)):
        place = next((k for k, statement in enumerate(body) if sets_anew(statement, name)), None)
        if place is not None and only_read_and_set(body, name):
            for statement in body[:place]:
                rename(all_nodes(statement), name)
            rename((node for node in all_nodes(body[place]) if not is_store(node)), name)
    return body


def sets_anew(statement: ast.stmt, name: str) -> bool:
    """Whether it sets a variable to what is no new list."""
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return False
    made = [variable.id for variable, _ in displays(statement)]
    return (
        any(isinstance(target, ast.Name) and target.id == name for target, _ in parts(statement)) and name not in made
    )


def only_read_and_set(body: Sequence[ast.stmt], name: str) -> bool:
    """Whether no other scope and no other kind of statement has a variable."""
    own = {id(node) for node in own_nodes(body) if not isinstance(node, ast.Lambda)}
    return all(
        isinstance(node, ast.Name) and id(node) in own
        for statement in body for node in all_nodes(statement) if name in mentioned(node)
    )  # fmt: skip


def is_store(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def rename(nodes: Iterator[ast.AST], name: str) -> None:
    for node in nodes:
        if isinstance(node, ast.Name) and node.id == name:
            node.id = name + LISTED
