"""The syntax tree of a function, found by its code object: file, first line, name, and columns for lambdas."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from functools import lru_cache
from types import CodeType
from typing import Final, NamedTuple

from srcgrad.ir.parsing import parse
from srcgrad.tracing.conversion.names import children

FunctionNode = ast.FunctionDef | ast.Lambda

WITHOUT_SOURCE: Final = "its source is not available"


class Unconvertible(Exception):
    """A function that cannot be converted, and why."""


class Source(NamedTuple):
    """A function's own tree, fresh at each call of `find_source`, and the class it is written in (for ``__names``)."""

    node: FunctionNode
    owner: str | None


class Entry(NamedTuple):
    """Where a function stands in a file."""

    node: FunctionNode | ast.AsyncFunctionDef
    owner: str | None


def find_source(code: CodeType) -> Source:
    """The tree of the function that a code object was compiled from, with the lines and columns of its file.

    Raises:
        Unconvertible: there is no source, or it is not clear which function of a line is meant.
    """
    lines = linecache.getlines(code.co_filename)
    if not lines:
        raise Unconvertible(WITHOUT_SOURCE)
    text = "".join(lines)
    found = entries(code.co_filename, text)
    if found is None:
        return from_block(code, lines)
    matching = [entry for entry in found.get(code.co_firstlineno, ()) if matches(entry.node, code)]
    if not matching and code.co_filename == "<string>":  # which since Python 3.13 is what follows ``python -c``
        raise Unconvertible(WITHOUT_SOURCE)
    entry = single(matching, code)
    if isinstance(entry.node, ast.AsyncFunctionDef):
        raise Unconvertible("it is asynchronous")
    return Source(fresh(entry.node, lines), entry.owner)


@lru_cache(maxsize=64)
def entries(file: str, text: str) -> dict[int, list[Entry]] | None:
    """The functions of a file by first line; None if the text is no Python."""
    try:
        tree = parse(text)
    except (SyntaxError, ValueError):
        return None
    found: dict[int, list[Entry]] = {}

    waiting: list[tuple[ast.AST, str | None]] = [(tree, None)]
    while waiting:
        node, owner = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            found.setdefault(first_line(node), []).append(Entry(node, owner))
        inner = node.name if isinstance(node, ast.ClassDef) else owner
        waiting += [(part, inner) for part in reversed(children(node))]
    return found


def first_line(node: FunctionNode | ast.AsyncFunctionDef) -> int:
    """The line that Python gives as the function's first: that of the first decorator."""
    if isinstance(node, ast.Lambda) or not node.decorator_list:
        return node.lineno
    return node.decorator_list[0].lineno


def matches(node: FunctionNode | ast.AsyncFunctionDef, code: CodeType) -> bool:
    """Whether the code can have been compiled from the node: name, arguments, and for lambdas the place."""
    if (code.co_name == "<lambda>") != isinstance(node, ast.Lambda):
        return False
    if not isinstance(node, ast.Lambda) and node.name != code.co_name:
        return False
    arguments = node.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    if len(names) != code.co_argcount or len(arguments.kwonlyargs) != code.co_kwonlyargcount:
        return False
    held = code.co_varnames[: len(names)]
    if any(given != name and not given.endswith(name) for given, name in zip(held, names, strict=True)):
        return False
    return not isinstance(node, ast.Lambda) or contains(node.body, code)


def contains(body: ast.expr, code: CodeType) -> bool:
    """Whether all instructions of a lambda's code come from this expression."""
    start = (body.lineno, body.col_offset)
    end = (body.end_lineno or body.lineno, body.end_col_offset or 0)
    places = 0
    for line, end_line, column, end_column in code.co_positions():
        if line is None or end_line is None or column is None or not end_column:
            continue
        places += 1
        if (line, column) < start or (end_line, end_column) > end:
            return False
    return places > 0


def single(matching: list[Entry], code: CodeType) -> Entry:
    """The one entry; of lambdas inside each other the innermost.

    Raises:
        Unconvertible: there is none, or there are several.
    """
    if code.co_name == "<lambda>" and len(matching) > 1:
        sizes = sorted(matching, key=lambda entry: len(ast.dump(entry.node)))
        return sizes[0]
    if len(matching) != 1:
        what = "does not hold it" if not matching else "holds several of its name on one line"
        raise Unconvertible(f"its source file {what}: has it changed since it was read?")
    return matching[0]


def segment_of(node: ast.expr, lines: list[str]) -> str:
    """The text of an expression, as `ast.get_source_segment` gives it, which takes milliseconds for a long file."""
    block = lines[node.lineno - 1 : node.end_lineno]
    block[-1] = block[-1].encode()[: node.end_col_offset].decode()
    block[0] = block[0].encode()[node.col_offset :].decode()
    return "".join(block)


def fresh(node: FunctionNode, lines: list[str]) -> FunctionNode:
    """A tree of its own for a node of the file, with the same places."""
    if isinstance(node, ast.Lambda):
        segment = segment_of(node, lines)
        front = "\n" * (node.lineno - 2) + "(\n" if node.lineno > 1 else "("
        indent = node.col_offset if node.lineno > 1 else max(node.col_offset - 1, 0)
        tree: ast.Module = parse(f"{front}{' ' * indent}{segment}\n)")
        return next(found for found in ast.walk(tree) if isinstance(found, ast.Lambda))
    start = first_line(node)
    block = lines[start - 1 : node.end_lineno]
    front = "\n" * (start - 1)
    if block[0][:1].isspace():
        front = "\n" * (start - 2) + "if 1:\n"
    tree = parse(front + "".join(block))
    return next(found for found in ast.walk(tree) if isinstance(found, ast.FunctionDef) and found.name == node.name)


def from_block(code: CodeType, lines: list[str]) -> Source:
    """The function in a text that is not all Python: a page of documentation.

    Raises:
        Unconvertible: no function stands there.
    """
    start = code.co_firstlineno
    try:
        block = inspect.getblock(lines[start - 1 :])
        indent = len(block[0]) - len(block[0].lstrip())
        tree = parse(textwrap.dedent("".join(block)))
    except (SyntaxError, IndexError, ValueError):
        raise Unconvertible("its source is no Python") from None
    ast.increment_lineno(tree, start - 1)
    for node in ast.walk(tree):
        if isinstance(node, (ast.expr, ast.stmt)):
            node.col_offset += indent
            node.end_col_offset = (node.end_col_offset or 0) + indent
    found = [
        Entry(node, None)
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.Lambda)) and matches(node, code)
    ]
    node = single(found, code).node
    if isinstance(node, ast.AsyncFunctionDef):
        raise Unconvertible("it is asynchronous")
    return Source(node, None)
