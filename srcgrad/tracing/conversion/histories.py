"""Lists of which a function reads their ends and their length alone, as histories of iterations are: variables.

``errors.append(e)`` in a loop that goes on as long as values say so would make the list another size in each trip.
Where the source shows that nothing sees more of the list than ``errors[-1]``, ``errors[0]`` and ``len(errors)``, those
are variables of their own, and there is no list; a list that nothing reads is none either. Where an array of all items
is made too, or an item is read that is far from the ends, the list may become `recorded.Recorded`: see `records`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Final

from srcgrad.tracing.conversion.appends import is_append
from srcgrad.tracing.conversion.names import OPERATORS, all_nodes, assign, load, operator, own_nodes, placed, store

FIRST: Final = 2
"""So many items from the front may be read."""
LAST: Final = 3
"""So many items from the end may be read."""
READERS: Final = frozenset({
    "array", "asarray", "stack", "sum", "mean", "std", "var", "prod", "min", "max", "argmin", "argmax", "any", "all",
    "diff", "cumsum", "trapezoid", "interp", "dot",
})  # fmt: skip
"""Functions of NumPy's to which a list is the array of its items."""
OPTIONS: Final = frozenset({"axis", "ddof", "dtype", "dx", "keepdims", "n", "x"})
"""Arguments of theirs by name, with which they do so too."""


class History:
    """What a function does with one list."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.made: list[int] = []
        """How many items it begins with, wherever it is made."""
        self.repeated = False
        """Whether a loop makes it anew."""
        self.indices: set[int] = set()
        self.counted = False
        self.arrays: list[ast.expr] = []
        """The functions of NumPy's, as the source names them, that are given all its items."""

    @property
    def first(self) -> int:
        return max((index + 1 for index in self.indices if index >= 0), default=0)

    @property
    def last(self) -> int:
        return max((-index for index in self.indices if index < 0), default=0)

    @property
    def least(self) -> int:
        """How many items it has at any time."""
        return min(self.made)

    def is_short(self) -> bool:
        """Whether variables are enough for what is read of it."""
        return self.first <= FIRST and self.last <= LAST and not self.arrays

    @property
    def is_counted(self) -> bool:
        """Whether its size is asked for, or decides which items an ``append`` sets."""
        return self.counted or self.first > self.least or self.last > self.least + 1

    def without(self, count: int) -> list[str]:
        """The items that a new list of so many does not have, but one made before may have left."""
        if not self.repeated and len(self.made) == 1:
            return []
        front, back = range(count, self.first), range(count + 1, self.last + 1)
        return [*(self.item(place) for place in front), *(self.item(-place) for place in back)]

    def item(self, index: int) -> str:
        return f"{self.name}[{index}]"

    def places(self, place: int, count: int) -> list[str]:
        """The variables that the items of a new list are: of those that nothing reads, one that nothing reads."""
        front = [self.item(place)] if place < self.first else []
        back = [self.item(place - count)] if count - place <= self.last else []
        return [*front, *back] or [self.added]

    @property
    def added(self) -> str:
        """What is being appended."""
        return f"{self.name}[]"

    @property
    def length(self) -> str:
        return f"len({self.name})"


class Untouched(ast.Name):
    """A variable that the program reads for itself: it may be unbound, and nobody's ``len`` is asked."""


def untouched(name: str) -> Untouched:
    return Untouched(name, ast.Load())


def without_histories(body: Sequence[ast.stmt], found: dict[str, History]) -> list[ast.stmt]:
    """The statements of a function, with variables for what is read of such lists."""
    names = {name: history for name, history in found.items() if history.is_short()}
    return list(body) if not names else Rewriting(names).block(body)


def histories(body: Sequence[ast.stmt], parameters: Sequence[str]) -> dict[str, History]:
    """The lists of which all that the function does with them is known."""
    if not (candidates := grown(body) - set(parameters)):
        return {}
    found = {name: History(name) for name in sorted(candidates)}
    known: set[int] = set()
    loops = [node for node in own_nodes(body) if isinstance(node, (ast.While, ast.For))]
    inside = {id(node) for loop in loops for node in all_nodes(loop)}
    for node in own_nodes(body):
        known.update(id(name) for name in note(node, found, id(node) in inside))
    for statement in body:
        for node in all_nodes(statement):
            for name in mentioned(node):
                if id(node) not in known:
                    found.pop(name, None)
    return {name: history for name, history in found.items() if history.made}


def grown(body: Sequence[ast.stmt]) -> set[str]:
    """The variables to which loops append that may end where values say so, or may do so where values say so."""
    blocks = [node for node in own_nodes(body) if isinstance(node, ast.While) or may_stop(node)]
    loops = [node for node in own_nodes(body) if isinstance(node, ast.For)]
    blocks += [node for loop in loops for node in own_nodes(loop.body) if isinstance(node, ast.If)]
    calls = [appending(node) for block in blocks for node in own_nodes([block])]
    return {call[0].id for call in calls if call is not None}


def may_stop(node: ast.AST) -> bool:
    return isinstance(node, ast.For) and any(isinstance(x, (ast.Break, ast.Return)) for x in own_nodes(node.body))


def note(node: ast.AST, found: dict[str, History], repeated: bool) -> Iterator[ast.Name]:
    """The variables in a node that stand where such a list may; what the node does with them is noted."""
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        for name, items in displays(node):
            if name.id in found:
                found[name.id].made.append(len(items))
                found[name.id].repeated |= repeated
                yield name
    elif isinstance(node, ast.Expr) and (call := appending(node.value)) is not None:
        yield call[0]
    elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and isinstance(node.ctx, ast.Load):
        index = constant(node.slice)
        if index is not None and node.value.id in found:
            found[node.value.id].indices.add(index)
            yield node.value
    elif (counted := of_length(node)) is not None and counted.id in found:
        found[counted.id].counted = True
        yield counted
    for whole in of_array(node):
        if whole.id in found:
            found[whole.id].arrays.append(node.func)  # type: ignore[attr-defined]
            yield whole


class Rewriting(ast.NodeTransformer):
    """Puts the variables in the place of the lists."""

    def __init__(self, names: dict[str, History]) -> None:
        self.names = names

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for statement in statements:
            made = self.visit(statement)
            found += made if isinstance(made, list) else [made]
        return found

    def visit_Assign(self, node: ast.Assign | ast.AnnAssign) -> ast.stmt | list[ast.stmt]:
        made = [(name, items) for name, items in displays(node) if name.id in self.names]
        self.generic_visit(node)
        if not made:
            return node
        targets, values, after = list[ast.expr](), list[ast.expr](), list[ast.stmt]()
        for target, value in parts(node):
            items = next((items for name, items in made if name is target), None)
            if items is None:
                targets.append(target)
                values.append(value)
                continue
            assert isinstance(target, ast.Name)
            history = self.names[target.id]
            if isinstance(value, ast.Call):
                after.append(ast.Expr(operator("require_list", value.func)))
            for place, item in enumerate(items):
                first, *others = history.places(place, len(items))
                targets.append(store(first))
                values.append(item)
                after += [assign(name, load(first)) for name in others]
            unbound = ast.Attribute(load(OPERATORS), "UNBOUND", ast.Load())
            after += [assign(name, unbound) for name in history.without(len(items))]
            if history.is_counted:
                after.append(assign(history.length, ast.Constant(len(items))))
        setting = ast.Assign([ast.Tuple(targets, ast.Store())], ast.Tuple(values, ast.Load())) if targets else None
        return self.placed([setting or ast.Pass(), *after], node)

    visit_AnnAssign = visit_Assign

    def visit_Expr(self, node: ast.Expr) -> ast.stmt | list[ast.stmt]:
        call = appending(node.value)
        if call is None or call[0].id not in self.names:
            return self.generic_visit(node)  # type: ignore[return-value]
        history, value = self.names[call[0].id], self.visit(call[1])
        last, least = history.last, history.least
        kept = last > 0 or history.first > least
        made: list[ast.stmt] = [assign(history.added, value) if kept else ast.Expr(value)]
        for k in range(last, 1, -1):
            moved = assign(history.item(-k), untouched(history.item(1 - k)))
            made.append(moved if k <= least + 1 else where(history, ast.GtE(), k - 1, moved))
        made += [assign(history.item(-1), load(history.added))] if last else []
        for k in range(least, history.first):
            made.append(where(history, ast.Eq(), k, assign(history.item(k), load(history.added))))
        if history.is_counted:
            made.append(ast.AugAssign(store(history.length), ast.Add(), ast.Constant(1)))
        return self.placed(made, node)

    def placed(self, made: list[ast.stmt], node: ast.stmt) -> list[ast.stmt]:
        for statement in made:
            placed(statement, node)
        return made

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        history, index = self.history(node.value), constant(node.slice)
        if history is None or index is None:
            return self.generic_visit(node)  # type: ignore[return-value]
        return ast.copy_location(load(history.item(index)), node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        history = self.history(of_length(node))
        if history is None:
            return self.generic_visit(node)  # type: ignore[return-value]
        return ast.copy_location(load(history.length), node)

    def history(self, node: ast.AST | None) -> History | None:
        return self.names.get(node.id) if isinstance(node, ast.Name) else None


def where(history: History, operator: ast.cmpop, number: int, statement: ast.stmt) -> ast.If:
    """A statement for lists of some sizes."""
    return ast.If(ast.Compare(untouched(history.length), [operator], [ast.Constant(number)]), [statement], [])


def parts(node: ast.Assign | ast.AnnAssign) -> list[tuple[ast.expr, ast.expr]]:
    """What a statement sets to what; none where one value goes to several targets."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    if len(targets) != 1 or node.value is None:
        return []
    target, value = targets[0], node.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]


def displays(node: ast.Assign | ast.AnnAssign) -> list[tuple[ast.Name, list[ast.expr]]]:
    """The variables that a statement sets to new lists, and their items."""
    return [
        (target, value.elts if isinstance(value, ast.List) else [])
        for target, value in parts(node)
        if isinstance(target, ast.Name)
        and (isinstance(value, ast.List) or makes_a_list(value))
        and not any(isinstance(item, ast.Starred) for item in getattr(value, "elts", ()))
    ]


def makes_a_list(node: ast.expr) -> bool:
    """``list()``"""
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "list"
    return called and not node.args and not node.keywords  # type: ignore[attr-defined]


def appending(node: ast.AST) -> tuple[ast.Name, ast.expr] | None:
    """The variable and the value of ``name.append(value)``."""
    if is_append(node):
        assert isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        assert isinstance(node.func.value, ast.Name)
        return node.func.value, node.args[0]
    return None


def of_length(node: ast.AST) -> ast.Name | None:
    """The variable of ``len(name)``."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != "len":
        return None
    alone = len(node.args) == 1 and not node.keywords
    return node.args[0] if alone and isinstance(node.args[0], ast.Name) else None


def of_array(node: ast.AST) -> list[ast.Name]:
    """The variables that ``np.trapezoid(ys, ts)`` makes arrays of: which function it is, is asked in the loop."""
    if not isinstance(node, ast.Call) or any(keyword.arg not in OPTIONS for keyword in node.keywords):
        return []
    function = node.func
    name = function.id if isinstance(function, ast.Name) else ""
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        name = function.attr
    given = [*node.args, *(keyword.value for keyword in node.keywords)]
    return [x for x in given if isinstance(x, ast.Name)] if name in READERS else []


def constant(index: ast.expr) -> int | None:
    """The number that an index is in the source."""
    sign = 1
    if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub):
        sign, index = -1, index.operand
    return sign * index.value if isinstance(index, ast.Constant) and type(index.value) is int else None


def mentioned(node: ast.AST) -> Iterator[str]:
    """The names in a node, whatever they stand for."""
    if isinstance(node, (ast.Attribute, ast.Constant, ast.keyword)):
        return
    for _, value in ast.iter_fields(node):
        for x in value if isinstance(value, list) else [value]:
            if isinstance(x, str):
                yield x
