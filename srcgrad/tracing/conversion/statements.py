"""Statements as operators: the blocks of ``if``, ``while`` and ``for`` become functions over the same variables."""

from __future__ import annotations

import ast
import copy
import sys
from collections.abc import Callable, Sequence
from typing import Any

from srcgrad.tracing.conversion.appends import appended_to
from srcgrad.tracing.conversion.counters import counter_of, numbers_in, read_inside, rebound_inside, repeated
from srcgrad.tracing.conversion.expressions import ExpressionConverter
from srcgrad.tracing.conversion.histories import histories, without_histories
from srcgrad.tracing.conversion.jumps import Lowering
from srcgrad.tracing.conversion.names import (
    assign,
    holds,
    load,
    operator,
    own_nodes,
    parameters,
    placed,
    references_to,
    store,
    thunk,
)
from srcgrad.tracing.conversion.records import Records, told_apart
from srcgrad.tracing.conversion.sources import Unconvertible
from srcgrad.tracing.conversion.told import Told
from srcgrad.tracing.conversion.walrus import without_binding_tests
from srcgrad.tracing.conversion.written import MAKING, Sources, fresh, written_names

CREATORS = frozenset({"array", "eye", "identity", "arange", "linspace", "copy", "asarray", "tile", "diag", "repeat"})
"""Functions of NumPy whose results are lifted into the trace where the function writes into them."""
ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.Mod, ast.FloorDiv)


def convert_function(node: ast.FunctionDef, outer: StatementConverter | None = None) -> ast.FunctionDef:
    """The function with operators in place of control flow and calls; decorators and defaults are left as they are.

    Raises:
        Unconvertible: a construct in it has no operator.
    """
    if holds(node.body, ast.Await, ast.AsyncFor, ast.AsyncWith):
        raise Unconvertible("it is asynchronous")
    names = parameters(node.args)
    first = names[0] if names else None
    if holds(node.body, ast.Yield, ast.YieldFrom):
        generator = ExpressionsOnly()
        generator.first_parameter = first
        node.body = [generator.visit(statement) for statement in node.body]
        return node
    body = node.body
    documentation = body[:1] if ast.get_docstring(node, clean=False) is not None else []
    body = body[len(documentation) :] or [ast.copy_location(ast.Pass(), body[0])]
    body = told_apart(body, names)
    lists = histories(body, names)
    records = Records(body, lists)
    body = Lowering().function(without_binding_tests(records.read(without_histories(body, lists))))
    scope = StatementConverter(names, body, first, records)
    converted = scope.block(body)
    node.body = [*documentation, *scope.declarations(body[0]), *converted]
    return node


class NestedFunctions(ExpressionConverter):
    """Functions defined inside are converted where they stand; classes keep their own statements."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.decorator_list = self.visit_expressions(node.decorator_list)
        arguments = node.args
        arguments.defaults = self.visit_expressions(arguments.defaults)
        arguments.kw_defaults = [None if value is None else self.visit(value) for value in arguments.kw_defaults]
        return convert_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AsyncFunctionDef:
        return node

    def visit_withitem(self, node: ast.withitem) -> ast.withitem:
        self.generic_visit(node)
        made = operator("managed", node.context_expr)
        placed(made, node.context_expr)
        node.context_expr = made
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        node.body = [
            convert_function(statement) if isinstance(statement, ast.FunctionDef) else statement
            for statement in node.body
        ]
        return node


def watch(node: ast.Try, context: ast.expr) -> None:
    """Put a context manager around the body of a ``try``, and let pass what is none of the user's errors."""
    watched = ast.With([ast.withitem(context)], node.body)
    placed(watched, node.body[0])
    node.body = [watched]
    passing = ast.ExceptHandler(ast.Attribute(load("_sg"), "Passing", ast.Load()), None, [ast.Raise()])
    ast.copy_location(passing, node.handlers[0])
    placed(passing, node.handlers[0])
    node.handlers.insert(0, passing)


class ExpressionsOnly(NestedFunctions):
    """For generators: their statements stay Python's, since a ``yield`` cannot move into another function."""

    def visit_Try(self, node: ast.Try) -> ast.Try:
        handlers = thunk(ast.Tuple([caught(handler) for handler in node.handlers], ast.Load()))
        self.generic_visit(node)
        if node.handlers:
            entered = operator("guarded", handlers)
            placed(entered, node.body[0])
            watch(node, entered)
        return node


class StatementConverter(NestedFunctions):
    """Rewrites the statements of one function."""

    def __init__(self, names: Sequence[str], body: Sequence[ast.stmt], first: str | None, records: Records) -> None:
        super().__init__()
        self.records = records
        self.first_parameter = first
        self.count = 0
        self.tries = 0
        declared = [node for node in own_nodes(body) if isinstance(node, (ast.Global, ast.Nonlocal))]
        self.globals = {name for node in declared if isinstance(node, ast.Global) for name in node.names}
        outer = {name for node in declared if isinstance(node, ast.Nonlocal) for name in node.names}
        self.told = Told()
        assigned = self.told.bound(body)
        self.locals = [name for name in dict.fromkeys([*names, *assigned]) if name not in self.globals | outer]
        self.rebound_inside = rebound_inside(body)
        self.defines = holds(body, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        self.variables = {*self.locals, *outer, *self.rebound_inside}
        self.written = written_names(body)
        self.sources = Sources(body) if self.written else None
        self.read_inside = read_inside(body)
        self.repeated = repeated(body)

    def binds_alone(self, name: str) -> bool:
        """Whether no function but this one binds a variable."""
        return name in self.locals and name not in self.rebound_inside

    def reads_alone(self, name: str, loop: ast.For) -> bool:
        """Whether no function but this one knows a variable, or only ones that are made when a loop is over."""
        if not self.binds_alone(name):
            return False
        place = self.read_inside.get(name)
        end = (loop.end_lineno or loop.lineno, loop.end_col_offset or 0)
        return place is None or (place >= end and id(loop) not in self.repeated)

    def fresh(self, what: str) -> str:
        self.count += 1
        return f"_sg_{what}{self.count}"

    def declarations(self, place: ast.AST) -> list[ast.stmt]:
        """A dead assignment that makes the variables of generated functions variables of this one."""
        if not self.count or not self.locals:
            return []
        dead = ast.If(ast.Constant(False), [assign(name, ast.Constant(None)) for name in self.locals], [])
        placed(dead, place)
        return [dead]

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for statement in statements:
            made: Any = self.visit(statement)
            found += made if isinstance(made, list) else [made]
        return found

    # --- generated functions -----------------------------------------------------------------------
    def function(
        self, name: str, body: list[ast.stmt], changed: Sequence[str], place: ast.AST, args: Sequence[str] = ()
    ) -> ast.FunctionDef:
        """A function over the variables of this one, of which it assigns ``changed``."""
        own = [variable for variable in changed if variable in self.variables]
        shared = [variable for variable in changed if variable in self.globals]
        front: list[ast.stmt] = [ast.Nonlocal(own)] if own else []
        front += [ast.Global(shared)] if shared else []
        arguments = ast.arguments([], [ast.arg(argument) for argument in args], None, [], [], None, [])
        made = ast.FunctionDef(name, arguments, [*front, *(body or [ast.Pass()])], [], None)
        if sys.version_info >= (3, 12):
            made.type_params = []
        placed(made, place)
        return made

    def state(
        self, changed: Sequence[str], seen: Sequence[ast.AST], place: ast.AST
    ) -> tuple[list[ast.stmt], list[ast.expr]]:
        """Functions that read and set the variables a block assigns, and one that reads those it sees besides.

        What a function that the block defines assigns (``nonlocal``) is the block's too: nobody else can reach it yet.
        """
        inside = sorted(rebound_inside(seen)) if self.defines else []
        own = [name for name in dict.fromkeys([*changed, *inside]) if name in self.variables]
        get, put = self.fresh("get"), self.fresh("set")
        reads: list[ast.expr] = [operator("read", thunk(load(name))) for name in own]
        getter = self.function(get, [ast.Return(ast.Tuple(reads, ast.Load()))], [], place)
        body: list[ast.stmt] = []
        if own:
            body.append(ast.Assign([ast.Tuple([store(name) for name in own], ast.Store())], load("_sg_values")))
        for name in own:
            unbound = ast.Compare(load(name), [ast.Is()], [ast.Attribute(load("_sg"), "UNBOUND", ast.Load())])
            body.append(ast.If(unbound, [ast.Delete([ast.Name(name, ast.Del())])], []))
        setter = self.function(put, body, own, place, ["_sg_values"])
        others = [name for name in self.told.read(seen) if name not in own and not name.startswith("_sg")]
        visible = thunk(ast.Tuple([operator("read", thunk(load(name))) for name in others], ast.Load()))
        names = ast.Tuple([ast.Constant(name) for name in own], ast.Load())
        return [getter, setter], [load(get), load(put), names, visible]

    # --- control flow --------------------------------------------------------------------------------
    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        blocks = [*node.body, *node.orelse]
        changed = self.told.bound(blocks)
        functions, state = self.state(changed, blocks, node)
        then, orelse = self.fresh("then"), self.fresh("else")
        test = self.visit(node.test)
        functions.append(self.function(then, self.block(node.body), self.told.bound(node.body), node))
        functions.append(self.function(orelse, self.block(node.orelse), self.told.bound(node.orelse), node))
        made = ast.Expr(operator("if_", test, load(then), load(orelse), *state))
        placed(made, node.test)
        ast.copy_location(made, node)
        return [*functions, made]

    def exits(self, node: ast.While | ast.For) -> ast.expr | None:
        """Whether the flags of a loop's jumps let it go on."""
        flags = [ast.UnaryOp(ast.Not(), load(flag)) for flag in getattr(node, "exits", ())]
        if not flags:
            return None
        test = flags[0] if len(flags) == 1 else ast.BoolOp(ast.And(), list(flags))
        placed(test, node)
        return test

    def carried(self, names: Sequence[str]) -> list[str]:
        """The names without the flags that each trip sets anew."""
        return [name for name in names if not name.startswith("_sg_continued")]

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        exits = self.exits(node)
        test = node.test if exits is None else ast.BoolOp(ast.And(), [exits, node.test])
        if exits is not None:
            ast.copy_location(test, node.test)
        changed = self.carried(self.told.bound([node.test, *node.body]))
        groups = self.records.appended_in(node)
        recorded = [name for group in groups for name in group]
        functions, state = self.state([*changed, *recorded], [node.test, *node.body], node)
        check, body = self.fresh("test"), self.fresh("body")
        plain = ast.Constant(numbers_in(test) is not None)
        counter = None if exits is not None else counter_of(node, self.binds_alone)
        returned = ast.Return(self.visit(test))
        ast.copy_location(returned, node.test)
        functions.append(self.function(check, [returned], self.told.bound([node.test]), node))
        functions.append(self.function(body, self.block(node.body), self.carried(self.told.bound(node.body)), node))
        loop = "recording_while_" if groups else "while_"
        call = operator(loop, load(check), load(body), *state, plain, counter or ast.Constant(None))
        if groups:
            readers = thunk(ast.Tuple(copy.deepcopy(self.records.readers(recorded)), ast.Load()))
            parts = [ast.Tuple([ast.Constant(name) for name in group], ast.Load()) for group in groups]
            call.args[:0] = [ast.Tuple(list[ast.expr](parts), ast.Load()), readers]
        made = ast.Expr(call)
        placed(made, node.test)
        ast.copy_location(made, node)
        return [*functions, made]

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        exits = self.exits(node)
        changed = self.carried(self.told.bound([node.target, *node.body]))
        functions, state = self.state(changed, node.body, node)
        body = self.fresh("body")
        given = ast.Assign([node.target], load("_sg_item"))
        placed(given, node.target)
        statements = [given, *node.body]
        count, iterated = references_to(node.iter), self.visit(node.iter)
        appended = appended_to(node, lambda name: self.reads_alone(name, node)) if exits is None else None
        functions.append(self.function(body, self.block(statements), changed, node, ["_sg_item"]))
        go_on: ast.expr = ast.Constant(None) if exits is None else thunk(self.visit(exits))
        made = ast.Expr(operator("for_", iterated, load(body), go_on, *state, appended or ast.Constant(None), count))
        placed(made, node.iter)
        ast.copy_location(made, node)
        return [*functions, made]

    def visit_Match(self, node: ast.Match) -> Any:
        """A chain of ``if`` where all patterns are values, or tuples of them and names; else Python's own statement."""
        parts = node.subject.elts if isinstance(node.subject, ast.Tuple) and node.subject.elts else [node.subject]
        subjects = [self.fresh("subject") for _ in parts]
        whole = isinstance(node.subject, ast.Tuple)
        tests = [case_test(case, subjects, whole) for case in node.cases]
        if any(test is None for test in tests) or any(isinstance(part, ast.Starred) for part in parts):
            patterns = [AskedTruths().visit(case.pattern) for case in node.cases]
            for case, pattern in zip(node.cases, patterns, strict=True):
                case.pattern = pattern
            self.generic_visit(node)
            subject_of_python = operator("matched", node.subject)
            placed(subject_of_python, node.subject)
            node.subject = subject_of_python
            for case in node.cases:
                case.body = flat(case.body)
            return node
        self.locals += subjects
        self.variables.update(subjects)
        chain: list[ast.stmt] = []
        for case, test in zip(reversed(node.cases), reversed(tests), strict=True):
            taken = [*named_parts(case.pattern, subjects), *case.body]
            if isinstance(test, ast.Constant):
                chain = taken
                continue
            made = ast.If(test or ast.Constant(True), taken, chain)
            placed(made, case.pattern)
            chain = [made]
        first = [assign(subject, part) for subject, part in zip(subjects, parts, strict=True)]
        for one, part in zip(first, parts, strict=True):
            placed(one, part)
        return self.block([*first, *chain])

    def visit_With(self, node: ast.With) -> ast.With:
        node.items = [self.visit(item) for item in node.items]
        node.body = self.block(node.body)
        return node

    def visit_Try(self, node: ast.Try) -> Any:
        """A ``try`` with handlers: a function over the variables, which is run again where it may fail or not."""
        changed = self.told.bound([node])
        functions, state = self.state(changed, [node], node) if node.handlers else ([], [])
        handlers = thunk(ast.Tuple([caught(handler) for handler in node.handlers], ast.Load()))
        body = self.block(node.body)
        for handler in node.handlers:
            handler.body = self.block(handler.body)
            if handler.type is not None:
                handler.type = self.visit(handler.type)
        node.orelse, node.finalbody = self.block(node.orelse), self.block(node.finalbody)
        before = self.finishing(node)
        if not node.handlers:
            node.body = body
            return [*before, node]
        context = "_sg_attempt"
        node.body = body
        watch(node, load(context))
        name = self.fresh("try")
        functions.append(self.function(name, [*before, node], changed, node, [context]))
        made = ast.Expr(operator("attempt", load(name), handlers, *state))
        placed(made, node)
        return [*functions, made]

    def finishing(self, node: ast.Try) -> list[ast.stmt]:
        """A context manager around what stands under ``finally``, and what makes it before the ``try``."""
        if not node.finalbody:
            return []
        name = self.fresh("finally")
        made = ast.Assign([ast.Name(name, ast.Store())], operator("Finishing"))
        placed(made, node)
        watched = ast.With([ast.withitem(load(name))], node.finalbody)
        placed(watched, node.finalbody[0])
        node.finalbody = [watched]
        return [made]

    def visit_TryStar(self, node: ast.AST) -> ast.AST:
        raise Unconvertible("it has an except*")

    # --- effects --------------------------------------------------------------------------------------
    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        message = ast.Constant(None) if node.msg is None else thunk(self.visit(node.msg))
        if holds([node.test], ast.NamedExpr, ast.Await):  # where asserts are left out
            raise Unconvertible("it binds a name in an assert")
        made = ast.Expr(operator("assert_", thunk(self.visit(node.test)), message))
        placed(made, node)
        return made

    def visit_Raise(self, node: ast.Raise) -> ast.stmt:
        if node.exc is None or holds([node.exc], ast.NamedExpr, ast.Await):
            return node
        cause = ast.Constant(Ellipsis) if node.cause is None else self.visit(node.cause)
        call = operator("raise_", thunk(self.visit(node.exc)), cause)
        made = ast.Raise(call)
        placed(made, node)
        return made

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        values = node.value.elts if isinstance(node.value, ast.Tuple) else []
        tuples = [t.elts for t in node.targets if isinstance(t, ast.Tuple) and len(t.elts) == len(values)]
        wrap = self.wrapping(node.targets, node.value)
        wraps = [self.wrapping([elements[k] for elements in tuples], value) for k, value in enumerate(values)]
        self.generic_visit(node)
        node.value = wrap(node.value)
        if isinstance(node.value, ast.Tuple):
            node.value.elts = [wrap(value) for wrap, value in zip(wraps, node.value.elts, strict=True)]
        return node

    def wrapping(self, targets: Sequence[ast.expr], value: ast.expr) -> Callable[[ast.expr], ast.expr]:
        """What makes the array that is assigned one of the trace, if traced values may be written into it."""
        if any(self.creates(target, value) for target in targets):
            return lifted
        if not isinstance(value, MAKING):
            return lambda made: made
        written = [target.id for target in targets if isinstance(target, ast.Name) and target.id in self.written]
        if written and self.sources is not None:
            sources = self.sources.of(written[0])
            return lambda made: fresh(made, sources)
        places = [target.value for target in targets if isinstance(target, (ast.Attribute, ast.Subscript))]
        return (lambda made: kept(made, places)) if places else (lambda made: made)

    def creates(self, target: ast.expr, value: ast.expr) -> bool:
        """Whether this makes an array that the function writes into by the name it gets here."""
        if not isinstance(target, ast.Name) or target.id not in self.written or not isinstance(value, ast.Call):
            return False
        called = value.func
        name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
        return name in CREATORS

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AugAssign:
        """Elements that a mask picks are changed where it holds, those of a sparse matrix need not be read."""
        self.generic_visit(node)
        place = node.target
        if not isinstance(place, ast.Subscript) or not isinstance(node.op, ARITHMETIC):
            return node
        if not isinstance(place.slice, (ast.Constant, ast.Slice)):
            base = place.value
            place.value = operator("accumulated" if isinstance(place.slice, ast.Tuple) else "augmented", base)
            placed(place.value, base)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        """An annotation of a local variable is never evaluated."""
        if node.value is None or not isinstance(node.target, ast.Name):
            return node
        made = ast.copy_location(ast.Assign([node.target], node.value), node)
        return self.visit_Assign(made)


def lifted(value: ast.expr) -> ast.expr:
    made = operator("lifted", value)
    placed(made, value)
    return made


def kept(value: ast.expr, places: Sequence[ast.expr]) -> ast.expr:
    """An array that ``places`` get, where these are names: objects or containers."""
    if not all(isinstance(inner, (ast.Name, ast.Attribute, ast.expr_context)) for p in places for inner in ast.walk(p)):
        return value
    containers = [copy.deepcopy(place) for place in places]
    for container in (inner for place in containers for inner in ast.walk(place)):
        if isinstance(container, (ast.Name, ast.Attribute)):
            container.ctx = ast.Load()
    made = operator("kept", value, thunk(ast.Tuple(containers, ast.Load())))
    placed(made, value)
    return made


def caught(handler: ast.ExceptHandler) -> ast.expr:
    """What a handler takes, as it is known before the ``try`` runs: None for all errors, () where that is a call."""
    if handler.type is None:
        return ast.Constant(None)
    plain = (ast.Name, ast.Attribute, ast.Tuple, ast.expr_context)
    if not all(isinstance(inner, plain) for inner in ast.walk(handler.type)):
        return ast.Tuple([], ast.Load())
    return copy.deepcopy(handler.type)


def flat(statements: list[Any]) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    for statement in statements:
        found += statement if isinstance(statement, list) else [statement]
    return found


class AskedTruths(ast.NodeTransformer):
    """``case True`` in a statement that stays Python's: what is compared with `comparisons.Truth` answers by ``is``."""

    def visit_MatchSingleton(self, node: ast.MatchSingleton) -> ast.pattern:
        if node.value is None:
            return node
        made = ast.MatchValue(ast.Attribute(load("_sg"), "TRUE" if node.value else "FALSE", ast.Load()))
        ast.copy_location(made, node)
        placed(made, node)
        return made


def case_test(case: ast.match_case, subjects: Sequence[str], whole: bool) -> ast.expr | None:
    """The test of a ``case`` whose pattern is values or ``_``, or as many as a tuple has; None for another one.

    ``whole``: the subject is a tuple, of which the statement knows only the items.
    """
    if not whole:
        test = pattern_test(case.pattern, subjects[0])
    elif is_wildcard(case.pattern):
        test = ast.Constant(True)
    else:
        test = items_test(case.pattern, subjects)
        if case.guard is not None and named_parts(case.pattern, subjects):
            return None  # the guard may read what the pattern binds
    if test is None or case.guard is None:
        return test
    return case.guard if isinstance(test, ast.Constant) else ast.BoolOp(ast.And(), [test, case.guard])


def items_test(pattern: ast.pattern, subjects: Sequence[str]) -> ast.expr | None:
    """The test of a pattern of as many values, names and ``_`` as there are subjects."""
    if not isinstance(pattern, ast.MatchSequence) or len(pattern.patterns) != len(subjects):
        return None
    tests: list[ast.expr] = []
    for inner, subject in zip(pattern.patterns, subjects, strict=True):
        test = ast.Constant(True) if is_name(inner) else pattern_test(inner, subject)
        if test is None:
            return None
        if not isinstance(test, ast.Constant):
            tests.append(test)
    return ast.BoolOp(ast.And(), tests) if len(tests) > 1 else tests[0] if tests else ast.Constant(True)


def named_parts(pattern: ast.pattern, subjects: Sequence[str]) -> list[ast.stmt]:
    """What binds the names in a pattern that `items_test` knows."""
    found: list[ast.stmt] = []
    for inner, subject in zip(getattr(pattern, "patterns", ()), subjects, strict=False):
        if isinstance(inner, ast.MatchAs) and inner.name is not None:
            found.append(assign(inner.name, load(subject)))
            placed(found[-1], inner)
    return found


def is_name(pattern: ast.pattern) -> bool:
    return isinstance(pattern, ast.MatchAs) and pattern.pattern is None


def is_wildcard(pattern: ast.pattern) -> bool:
    return isinstance(pattern, ast.MatchAs) and pattern.pattern is None and pattern.name is None


def pattern_test(pattern: ast.pattern, subject: str) -> ast.expr | None:
    if isinstance(pattern, ast.MatchValue):
        return ast.Compare(load(subject), [ast.Eq()], [pattern.value])
    if isinstance(pattern, ast.MatchSingleton):
        return ast.Compare(load(subject), [ast.Is()], [ast.Constant(pattern.value)])
    if isinstance(pattern, ast.MatchOr):
        tests = [pattern_test(inner, subject) for inner in pattern.patterns]
        if any(test is None or isinstance(test, ast.Constant) for test in tests):
            return None
        return ast.BoolOp(ast.Or(), [test for test in tests if test is not None])
    return ast.Constant(True) if is_wildcard(pattern) else None
