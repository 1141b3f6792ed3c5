"""Names of the user's variables for what a program computes: cosmetic, and only where somebody reads the program.

Tracing knows the place of each operation, not the variable that its result is bound to. `readable` is on while a
program is made to be read; the traced function's values are then named after the assignments that they come from, and
what transforms derive from a named value is named after it (``h.dot``, ``h.bar``).
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import zip_longest

from srcgrad.ir.core import Region
from srcgrad.ir.parsing import parse
from srcgrad.ir.source import Span

READABLE: ContextVar[bool] = ContextVar("srcgrad_readable", default=False)


@contextmanager
def readable() -> Iterator[None]:
    """Name values after variables in what is traced inside."""
    token = READABLE.set(True)
    try:
        yield
    finally:
        READABLE.reset(token)


def name_assignments(region: Region) -> None:
    """Name the unnamed result of each operation that is the last step of ``name = expression``."""
    found: dict[Span, str | None] = {}
    operations = region.operations
    for operation, following in zip_longest(operations, operations[1:]):
        for inner in operation.regions:
            name_assignments(inner)
        span = operation.span
        if span is None or span.role or len(operation.results) != 1 or operation.results[0].name is not None:
            continue
        if following is not None and following.span is span:
            continue
        if span not in found:
            found[span] = assigned_name(span)
        operation.results[0].name = found[span]


def assigned_name(span: Span) -> str | None:
    """The variable that the whole expression at ``span`` is assigned to; None if it is a part of a statement.

    >>> assigned_name(Span.at("demo.py", 4, 4, 17, "loss", "h = np.sin(x @ w)"))
    'h'
    >>> assigned_name(Span.at("demo.py", 4, 11, 16, "loss", "h = np.sin(x @ w)")) is None
    True
    """
    first = span.source
    text = first.lstrip()
    if not text or not text.isascii():
        return None
    # Only the last line's end counts in the comparison below, and no statement ends before its expression does.
    rest = [linecache.getline(span.file, line) for line in range(span.line + 1, span.end_line + 1)]
    try:
        (statement,) = parse("\n".join([text, *[line.rstrip("\n") for line in rest]])).body
    except (SyntaxError, ValueError):  # a part of a longer statement, or several
        return None
    indentation = len(first) - len(text)
    place = (span.line, span.column, span.end_line, span.end_column)

    def is_here(node: ast.expr | ast.stmt) -> bool:
        end_line, end_column = node.end_lineno or 1, node.end_col_offset or 0
        start = (span.line + node.lineno - 1, node.col_offset + (indentation if node.lineno == 1 else 0))
        end = (span.line + end_line - 1, end_column + (indentation if end_line == 1 else 0))
        return (*start, *end) == place

    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target: ast.expr = statement.targets[0]
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        target = statement.target
    else:
        return None
    if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
        # The array after the assignment: the store has the target's place, an update that of the statement.
        return target.value.id if is_here(target) or is_here(statement) else None
    if not isinstance(target, ast.Name) or statement.value is None:
        return None
    step = statement if isinstance(statement, ast.AugAssign) else statement.value
    return target.id if is_here(step) else None
