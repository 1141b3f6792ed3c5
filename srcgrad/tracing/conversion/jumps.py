"""``break``, ``continue`` and ``return`` as flags, so that every block of statements ends at its end.

``if c: return a`` followed by other statements becomes an ``if`` with these in its ``else``: most early returns need no
flag. What remains sets a flag, and what follows is guarded by it. The loops test their flags before each trip.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from srcgrad.tracing.conversion.names import assign, load, negated, own_nodes, placed
from srcgrad.tracing.conversion.sources import Unconvertible

RETURNED = "_sg_returned"
"""The flag that the function has returned."""
RESULT = "_sg_result"
"""What it returns."""
COMPOUND = (ast.If, ast.While, ast.For, ast.With, ast.Try, ast.Match)
LOOPS = (ast.While, ast.For)


class Loop(NamedTuple):
    """The flags of a loop."""

    broken: str
    continued: str


def returns(nodes: Sequence[ast.AST]) -> bool:
    return any(isinstance(node, ast.Return) for node in own_nodes(nodes))


def leaves_loop(nodes: Sequence[ast.AST], kind: type[ast.stmt]) -> bool:
    """Whether a ``break`` or ``continue`` in the nodes belongs to the loop around them."""
    for node in nodes:
        if isinstance(node, kind):
            return True
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            continue
        inner: Sequence[ast.AST] = node.orelse if isinstance(node, LOOPS) else list(ast.iter_child_nodes(node))
        if leaves_loop(inner, kind):
            return True
    return False


def ends(statements: Sequence[ast.stmt]) -> bool:
    """Whether what follows the statements is never reached."""
    if not statements:
        return False
    last = statements[-1]
    if isinstance(last, (ast.Return, ast.Raise, ast.Continue, ast.Break)):
        return True
    if isinstance(last, ast.While):  # an endless loop is left by returning only
        endless = isinstance(last.test, ast.Constant) and bool(last.test.value)
        return endless and not leaves_loop(last.body, ast.Break)
    return isinstance(last, ast.If) and ends(last.body) and ends(last.orelse)


class Lowering:
    """One function's jumps."""

    def __init__(self) -> None:
        self.count = 0
        self.flagged = False
        """Whether the flag that the function has returned is used."""

    def function(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The body without jumps, if a block that becomes a function of its own has any."""
        jumping = [node for node in body if isinstance(node, COMPOUND) and returns([node])]
        if not jumping:
            return self.block(body, None, False, plain=True)
        if not ends(body):
            body = [*body, ast.copy_location(ast.Return(ast.Constant(None)), body[-1])]
        lowered = self.block(body, None, True)
        first, last = body[0], body[-1]
        made: list[ast.stmt] = [assign(RESULT, ast.Attribute(load("_sg"), "UNSET", ast.Load()))]
        if self.flagged:
            made.append(assign(RETURNED, ast.Constant(False)))
        for node in made:
            placed(node, first)
        end = ast.Return(load(RESULT))
        placed(end, last)
        return [*made, *lowered, end]

    def block(self, statements: list[ast.stmt], loop: Loop | None, tail: bool, plain: bool = False) -> list[ast.stmt]:
        """The statements without jumps. ``tail``: nothing follows them in their loop's body or function.

        ``plain``: they are a function's own, where ``return`` may stay.
        """
        found: list[ast.stmt] = []
        for position, statement in enumerate(statements):
            rest = statements[position + 1 :]
            if isinstance(statement, (ast.Break, ast.Continue, ast.Return)) and not plain:
                found += self.jump(statement, loop, tail)
                return found
            if not isinstance(statement, COMPOUND):
                found.append(statement)
                continue
            flags = self.flags(statement, loop) if rest else []
            if isinstance(statement, ast.If) and flags:
                if ends(statement.body):
                    statement.orelse, rest = [*statement.orelse, *rest], []
                elif ends(statement.orelse):
                    statement.body, rest = [*statement.body, *rest], []
            last = tail and not rest
            found += self.compound(statement, loop, last)
            if not rest:
                return found
            if flags:
                found.append(self.guarded(flags, self.block(rest, loop, tail), rest[0]))
                return found
        return found or [ast.Pass()]

    def jump(self, statement: ast.stmt, loop: Loop | None, tail: bool) -> list[ast.stmt]:
        made: list[ast.stmt]
        if isinstance(statement, ast.Return):
            made = [assign(RESULT, statement.value or ast.Constant(None))]
            if loop is not None or not tail:
                made.append(assign(RETURNED, ast.Constant(True)))
                self.flagged = True
        elif loop is None:
            raise Unconvertible("a jump stands outside a loop")
        elif isinstance(statement, ast.Break):
            made = [assign(loop.broken, ast.Constant(True))]
        else:
            made = [ast.Pass()] if tail else [assign(loop.continued, ast.Constant(True))]
        for node in made:
            placed(node, statement)
        return made

    def flags(self, statement: ast.stmt, loop: Loop | None) -> list[str]:
        """The flags that a statement may set, behind which what follows must not run."""
        found = []
        if loop is not None and leaves_loop([statement], ast.Break):
            found.append(loop.broken)
        if loop is not None and leaves_loop([statement], ast.Continue):
            found.append(loop.continued)
        if returns([statement]):
            found.append(RETURNED)
        return found

    def guarded(self, flags: Sequence[str], statements: list[ast.stmt], place: ast.AST) -> ast.If:
        tests = [negated(flag) for flag in flags]
        test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
        made = ast.If(test, statements, [])
        placed(made, place)
        if RETURNED in flags:
            self.flagged = True
        return made

    def compound(self, statement: ast.stmt, loop: Loop | None, tail: bool) -> list[ast.stmt]:
        if isinstance(statement, ast.If):
            statement.body = self.block(statement.body, loop, tail)
            statement.orelse = self.block(statement.orelse, loop, tail) if statement.orelse else []
            return [statement]
        if isinstance(statement, LOOPS):
            return self.loop(statement, loop, tail)
        if isinstance(statement, ast.With):
            statement.body = self.block(statement.body, loop, tail)
        elif isinstance(statement, ast.Match):
            for case in statement.cases:
                case.body = self.block(case.body, loop, tail)
        elif isinstance(statement, ast.Try):
            self.attempt(statement, loop)
        return [statement]

    def attempt(self, statement: ast.Try, loop: Loop | None) -> None:
        """A ``try``: its ``else`` runs only where the body did not jump."""
        if any(isinstance(node, (ast.Return, ast.Break, ast.Continue)) for node in own_nodes(statement.finalbody)):
            raise Unconvertible("a jump stands in a finally")
        flags = [flag for node in statement.body for flag in self.flags(node, loop)]
        statement.body = self.block(statement.body, loop, False)
        if statement.orelse:
            orelse = self.block(statement.orelse, loop, False)
            statement.orelse = [self.guarded(list(dict.fromkeys(flags)), orelse, orelse[0])] if flags else orelse
        for handler in statement.handlers:
            handler.body = self.block(handler.body, loop, False)
        if statement.finalbody:
            statement.finalbody = self.block(statement.finalbody, loop, False)

    def loop(self, statement: ast.While | ast.For, outer: Loop | None, tail: bool) -> list[ast.stmt]:
        """A loop whose test asks the flags; its ``else`` is an ``if`` behind it."""
        self.count += 1
        own = Loop(f"_sg_broken{self.count}", f"_sg_continued{self.count}")
        breaks, continues = leaves_loop(statement.body, ast.Break), leaves_loop(statement.body, ast.Continue)
        returning = returns(statement.body)
        body = self.block(statement.body, own, True)
        orelse, statement.orelse = statement.orelse, []
        found: list[ast.stmt] = [statement]
        exits = []
        if breaks:
            exits.append(own.broken)
            found.insert(0, assign(own.broken, ast.Constant(False)))
        if returning:
            exits.append(RETURNED)
            self.flagged = True
        if continues:
            body.insert(0, assign(own.continued, ast.Constant(False)))
        statement.body = body
        for node in (*found, *body):
            placed(node, statement)
        statement.exits = exits  # type: ignore[union-attr]  # for the pass that makes the loop an operator
        if orelse:
            inner = self.block(orelse, outer, False)
            found += [self.guarded(exits, inner, orelse[0])] if exits else inner
        return found
