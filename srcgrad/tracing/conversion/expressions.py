"""Expressions as operators: calls, logic, ``x if c else y``, chained comparison, ``in``, indexing, f-strings."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from typing import Any

from srcgrad.tracing.conversion.names import holds, load, operator, placed, references_to, thunk
from srcgrad.tracing.conversion.sources import Unconvertible

FRAME_FUNCTIONS = ("globals", "breakpoint", "__import__")
"""Built-ins that look at the frame of their caller: called as they are."""
NAMESPACE_FUNCTIONS = ("locals", "vars", "dir", "eval", "exec")
"""Built-ins that look at the variables of their caller, which converted code keeps in functions of its own."""
REDUCING = ("sum", "max", "min", "any", "all", "len", "fsum", "prod", "amax", "amin")
"""How functions are called that reduce the items of a comprehension."""
GATHERING = ("list", "tuple", "sorted")
"""How functions are called that take all items of a generator."""
TAKER = "_sg_taker"
"""The parameter of a comprehension's loops: what takes its items."""
LAZY = (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)
"""What cannot move into a function of its own."""
IDENTITY: dict[type, str] = {ast.Is: "is_", ast.IsNot: "is_not"}
"""The comparisons that Python makes without asking the operands."""
HISTORIES = {"]": "item", ")": "length"}
"""The operators that read variables which stand for items and lengths of lists, by how their names end."""

MEETING = (
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult),
    *(ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq),
)
"""The operators of which NumPy takes lists as operands, beside an array."""
LISTS = (ast.List, ast.Tuple, ast.ListComp, ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.IfExp)
"""The expressions that may be lists."""
ARRAYS = (ast.BinOp, ast.Compare, ast.UnaryOp)
"""Those that may be arrays, and are hardly ever lists."""


class ExpressionConverter(ast.NodeTransformer):
    """Rewrites the expressions of one function."""

    first_parameter: str | None = None

    def __init__(self) -> None:
        self.asked: set[ast.expr] = set()
        """The ``and`` and ``or`` of which only the truth counts."""

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, (ast.If, ast.While, ast.IfExp, ast.Assert)):
            self.ask(node.test)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.ask(node.operand)
        elif isinstance(node, ast.comprehension):
            for test in node.ifs:
                self.ask(test)
        return super().visit(node)

    def ask(self, test: ast.expr) -> None:
        """Note that only the truth of a test counts, and of the operands of ``and`` and ``or`` in it."""
        if isinstance(test, ast.BoolOp):
            self.asked.add(test)
            for value in test.values:
                self.ask(value)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        kind = HISTORIES.get(node.id[-1]) if isinstance(node.ctx, ast.Load) else None
        if kind is None:
            return node
        made = operator(kind, thunk(node), *([load("len")] if kind == "length" else []))
        placed(made, node)
        return made

    def visit_Untouched(self, node: ast.Name) -> ast.expr:
        made = operator("read", thunk(ast.copy_location(load(node.id), node)))
        placed(made, node)
        return made

    def visit_expressions(self, nodes: Sequence[ast.expr]) -> list[ast.expr]:
        return [self.visit(node) for node in nodes]

    def visit_Call(self, node: ast.Call) -> ast.expr:
        name = node.func.id if isinstance(node.func, ast.Name) else None
        if name in NAMESPACE_FUNCTIONS and not (name in ("vars", "dir") and node.args):
            raise Unconvertible(f"it calls {name}()")
        if name == "super":
            if not node.args and self.first_parameter is not None:
                node.args = [load("__class__"), load(self.first_parameter)]
                placed(node, node)
            made = operator("above", node.func, *node.args, keywords=node.keywords)
            placed(made, node.func)
            return ast.copy_location(made, node)
        items = comprehended(node)
        if items is not None:
            return self.reduction(node, items)
        self.generic_visit(node)
        if name in FRAME_FUNCTIONS:
            return node
        made = operator("call", node.func, *node.args, keywords=node.keywords)
        placed(made, node.func)
        return ast.copy_location(made, node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        if node.attr != "__dict__" or not isinstance(node.ctx, ast.Load):
            return node
        made = operator("namespace", node.value)
        placed(made, node)
        return made

    def reduction(self, node: ast.Call, items: ast.ListComp | ast.GeneratorExp) -> ast.expr:
        """``sum(f(v) for v in x if v > 0)``: the items as loops that hand them on, and as Python has them."""
        flow = self.flow(items)
        function, python = self.visit(node.func), thunk(self.generic_visit(items))  # type: ignore[arg-type]
        rest = self.visit_expressions(node.args[1:])
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        filtered = ast.Constant(any(part.ifs for part in items.generators))
        given = [function, flow, python, filtered, ast.Constant(isinstance(items, ast.ListComp)), *rest]
        made = operator("reduced", *given, keywords=node.keywords)
        placed(made, node)
        return made

    def visit_List(self, node: ast.List) -> ast.expr:
        """``[a, *v, b]``: the length of ``v`` may be known to the program only."""
        self.generic_visit(node)
        return node if isinstance(node.ctx, ast.Store) else spliced(node)

    def visit_Tuple(self, node: ast.Tuple) -> ast.expr:
        """``(a, *v)``, as such a list."""
        self.generic_visit(node)
        found = node if isinstance(node.ctx, ast.Store) else spliced(node)
        if found is node:
            return node
        made = operator("tuple_", found)
        placed(made, node)
        return made

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        """``[f(x) for x in y]``: loops that append."""
        if not movable(node) or keeps_variables(node.elt):
            return self.generic_visit(node)  # type: ignore[return-value]
        flow = self.flow(node)
        made = operator("listed", flow, thunk(self.generic_visit(node)))  # type: ignore[arg-type]
        placed(made, node)
        return made

    def flow(self, node: ast.ListComp | ast.GeneratorExp) -> ast.expr:
        """The loops and conditions of a comprehension, as a function of what takes its items."""

        def told(method: str, *args: ast.expr) -> ast.expr:
            return ast.Call(ast.Attribute(load(TAKER), method, ast.Load()), list(args), [])

        node = copy.deepcopy(node)
        found = told("take", self.visit(node.elt))
        for part in reversed(node.generators):
            for test in reversed(part.ifs):
                self.ask(test)
                found = told("where", self.visit(test), thunk(found))
            count = references_to(part.iter)
            found = told("over", self.visit(part.iter), of_item(part.target, found), count)
        return ast.Lambda(ast.arguments([], [ast.arg(TAKER)], None, [], [], None, []), found)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        lazy, asked = holds(node.values[1:], *LAZY), node in self.asked
        self.generic_visit(node)
        if asked:
            node.values = [answer(value) for value in node.values]
        if lazy:
            return node
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        result = node.values[-1]
        for value in reversed(node.values[:-1]):
            result = operator(name, value, thunk(result))
            placed(result, node)
        return result

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Not):
            return node
        made = operator("not_", node.operand)
        placed(made, node)
        return made

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """``"%.3f" % value``: Python formats numbers by ``float``, which a traced value refuses. ``array * [x, y]``:
        so does NumPy make arrays of lists.
        """
        literal = isinstance(node.left, ast.JoinedStr) or (
            isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
        )
        met = isinstance(node.op, MEETING) and may_be_lists(node.left, node.right)
        self.generic_visit(node)
        if not (literal and isinstance(node.op, ast.Mod)):
            return between(node, node.op, node.left, node.right) if met else node
        made = operator("percent", node.left, node.right)
        placed(made, node)
        return ast.copy_location(made, node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        lazy = holds([node.body, node.orelse], *LAZY)
        self.generic_visit(node)
        if lazy:
            return node
        made = operator("choose", node.test, thunk(node.body), thunk(node.orelse))
        placed(made, node)
        return made

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        chained = len(node.ops) > 1
        contains = any(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops)
        if (chained or contains) and holds(node.comparators, *LAZY):
            return self.generic_visit(node)  # type: ignore[return-value]
        met = isinstance(node.ops[0], MEETING) and may_be_lists(node.left, node.comparators[0])
        self.generic_visit(node)
        identity = IDENTITY.get(type(node.ops[0])) if not chained else None
        if identity is not None:
            made = operator(identity, node.left, *node.comparators)
            placed(made, node)
            return made
        if not chained and not contains:
            return between(node, node.ops[0], node.left, node.comparators[0]) if met else node
        names = ast.Tuple([ast.Constant(type(op).__name__) for op in node.ops], ast.Load())
        made = operator("compare", names, node.left, *map(thunk, node.comparators))
        placed(made, node)
        return made

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        if (
            isinstance(node.slice, ast.Constant)
            and type(node.slice.value) is not int
            and not is_environment(node.value)
        ):
            return node
        if isinstance(node.ctx, ast.Store) and not isinstance(node.slice, (ast.Slice, ast.Tuple)):
            base = node.value
            node.value = operator("target", base)
            placed(node.value, base)
        if not isinstance(node.ctx, ast.Load):
            return node
        made = operator("getitem", node.value, index_of(node.slice))
        placed(made, node)
        return made

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        parts: list[ast.expr] = []
        for value in node.values:
            if not isinstance(value, ast.FormattedValue):
                parts.append(value)
                continue
            spec = ast.Constant("") if value.format_spec is None else self.visit(value.format_spec)
            part = ast.Tuple([self.visit(value.value), ast.Constant(value.conversion), spec], ast.Load())
            placed(part, value)
            parts.append(part)
        made = operator("text", *parts)
        placed(made, node)
        return made

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        if not holds([node.body], ast.Yield, ast.YieldFrom, ast.Await):
            self.generic_visit(node)
        return node


def may_be_lists(left: ast.expr, right: ast.expr) -> bool:
    """Whether one operand may be a list and the other one an array."""
    first, second = isinstance(left, LISTS), isinstance(right, LISTS)
    return (first or second) and (first or isinstance(left, ARRAYS)) and (second or isinstance(right, ARRAYS))


def spliced(node: ast.List | ast.Tuple) -> ast.expr:
    """A list of items and of those of other sequences, which are asked for them where Python does."""
    found: ast.expr | None = None
    items: list[ast.expr] = []
    for part in [*node.elts, None]:
        if part is not None and not isinstance(part, ast.Starred):
            items.append(part)
            continue
        if items or found is None:
            more = ast.List(items, ast.Load())
            found = more if found is None else operator("spliced", found, more)
            items = []
        if part is not None:
            found = operator("spliced", found, part.value)
    if isinstance(found, ast.List):
        return node
    assert found is not None
    placed(found, node)
    return found


def between(node: ast.expr, op: ast.AST, left: ast.expr, right: ast.expr) -> ast.expr:
    made = operator("binary", ast.Constant(type(op).__name__), left, right)
    placed(made, node)
    return ast.copy_location(made, node)


def is_environment(node: ast.expr) -> bool:
    """Whether this may be ``os.environ``, whose items are asked for at each call."""
    return (isinstance(node, ast.Attribute) and node.attr == "environ") or (
        isinstance(node, ast.Name) and node.id == "environ"
    )


def index_of(node: ast.expr) -> ast.expr:
    """An index as an ordinary expression: slices become calls of ``slice``."""
    if isinstance(node, ast.Slice):
        bounds = [bound or ast.Constant(None) for bound in (node.lower, node.upper, node.step)]
        return operator("slice", *bounds)
    if isinstance(node, ast.Tuple):
        node.elts = [index_of(element) for element in node.elts]
    return node


def comprehended(node: ast.Call) -> ast.ListComp | ast.GeneratorExp | None:
    """The generator, or the comprehension with a filter, whose items a call reduces or gathers."""
    name = name_of(node)
    if (
        name not in (*REDUCING, *GATHERING)
        or not node.args
        or any(isinstance(argument, ast.Starred) for argument in node.args)
        or any(keyword.arg is None for keyword in node.keywords)
    ):
        return None
    items = node.args[0]
    if isinstance(items, ast.ListComp):
        filtered = name in REDUCING and any(part.ifs for part in items.generators)
        return items if filtered and movable(items) else None
    return items if isinstance(items, ast.GeneratorExp) and movable(items) and not keeps_variables(items.elt) else None


def answer(value: ast.expr) -> ast.expr:
    """The truth of an operand, where it may be a number."""
    if isinstance(value, (ast.Compare, ast.Constant)):
        return value
    made = operator("asked", value)
    placed(made, value)
    return made


def movable(node: ast.ListComp | ast.GeneratorExp) -> bool:
    """Whether the parts of a comprehension can become functions."""
    return not any(part.is_async for part in node.generators) and not holds([node], *LAZY)


def keeps_variables(node: ast.expr) -> bool:
    """Whether a value may read the variables of its expression later: when Python's loop has bound them anew."""
    calls = [inner for inner in ast.walk(node) if isinstance(inner, ast.Call) and inner.args]
    reduced = {id(inner.args[0]) for inner in calls if name_of(inner) in REDUCING}
    return any(isinstance(x, (ast.Lambda, ast.GeneratorExp)) and id(x) not in reduced for x in ast.walk(node))


def name_of(node: ast.Call) -> str | None:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", None)


def of_item(target: ast.expr, value: ast.expr) -> ast.expr:
    """``lambda item: value``, where the target is bound to the item: a comprehension of one item unpacks it."""
    bound = copy.deepcopy(target)
    generator = ast.comprehension(bound, ast.Tuple([load("_sg_item")], ast.Load()), [], 0)
    first = ast.Subscript(ast.ListComp(value, [generator]), ast.Constant(0), ast.Load())
    return ast.Lambda(ast.arguments([], [ast.arg("_sg_item")], None, [], [], None, []), first)
