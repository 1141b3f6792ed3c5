"""The guards of a function's captures that have no form in machine code, as a Python function of their own.

The machine calls it first and checks all else itself: of a program with a spline, a counter or a function with a cache
only what concerns these is asked in Python. It is made of the statements of `bind`, the one text of the guards.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, Final

Statements = Sequence[ast.stmt]


def loaded(statement: ast.stmt) -> set[str]:
    """The names that a statement reads."""
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def assigned(statement: ast.stmt) -> str | None:
    """The name that it assigns; None of a condition."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
    return None


def says_the_class(statement: ast.stmt) -> bool:
    """Whether it is a condition that begins with the class of something."""
    return isinstance(statement, ast.If) and ast.unparse(statement).startswith(("if not type(", "if not (type("))


class Asked:
    """The statements ``numbers`` of ``bind`` as a function that returns what they are about; None where one fails.

    What they read is found by the statements before them, and of what class that is they ask, too.
    """

    def __init__(self, statements: Statements, numbers: frozenset[int], constants: dict[str, Any]) -> None:
        self.numbers: Final = numbers
        definitions: dict[str, int] = {}
        needed: dict[int, set[str]] = {}
        """Of each statement that is taken, the names that it reads and that others assign."""
        direct: list[set[str]] = []
        for number, statement in enumerate(statements):
            names = loaded(statement)
            own = {name for name in names if name in definitions}
            if number in numbers:
                self._take(number, own, definitions, needed, statements)
                direct.append(own)
            name = assigned(statement)
            if name is not None:
                definitions[name] = number
        used = set[str]().union(*direct)
        checks = {
            number
            for number, statement in enumerate(statements)
            if says_the_class(statement) and (own := loaded(statement) & definitions.keys()) and own <= used
        }
        lines = []
        self.places: Final[dict[tuple[int, str], int]] = {}
        """Where in the result that is which a statement assigns, or a condition reads by a name."""
        for number in sorted(checks | needed.keys()):
            statement = statements[number]
            lines.append(ast.unparse(statement))
            if number in numbers:
                name = assigned(statement)
                for read in sorted(needed[number]) if name is None else [name]:
                    self.places[number, read] = len(self.places)
                    lines.append(f"r{self.places[number, read]} = {read}")
        body = ["try:", textwrap.indent("\n".join(lines), "    ")]
        body += ["except (AttributeError, IndexError, KeyError, ValueError):", "    return None"]
        body.append(f"return ({''.join(f'r{k}, ' for k in range(len(self.places)))})")
        namespace = dict(constants)
        text = "def asked(function):\n" + textwrap.indent("\n".join(body), "    ")
        exec(compile(text, "<guards>", "exec"), namespace)
        self.function: Final[Callable[[Any], tuple[Any, ...] | None]] = namespace["asked"]

    def _take(
        self, number: int, own: set[str], definitions: dict[str, int], needed: dict[int, set[str]],
        statements: Statements,
    ) -> None:  # fmt: skip
        """Take a statement, and those before it that assign what it reads."""
        needed[number] = own
        for name in own:
            place = definitions[name]
            if place not in needed:
                known = {other: at for other, at in definitions.items() if at < place}
                read = loaded(statements[place])
                self._take(place, {other for other in read if other in known}, known, needed, statements)
