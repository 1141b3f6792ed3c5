"""Python's text as its syntax tree, in several threads at once."""

from __future__ import annotations

import ast
from typing import Final

_TRIES: Final = 100


def parse(text: str) -> ast.Module:
    """`ast.parse`, again where another thread's came between.

    Python 3.11 and 3.12 count how deep a tree is in one place for all threads, and then raise SystemError
    ("AST constructor recursion depth mismatch", https://github.com/python/cpython/issues/106905).

    Raises:
        SyntaxError: the text is no program of Python's.

    >>> ast.unparse(parse("x = 1"))
    'x = 1'
    """
    for _ in range(_TRIES - 1):
        try:
            return ast.parse(text)
        except SystemError:
            continue
    return ast.parse(text)
