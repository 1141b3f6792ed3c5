"""Syntax trees in several threads."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from srcgrad.ir.parsing import parse


@pytest.mark.parametrize("times", [1, 5])
def test_a_tree_that_another_thread_disturbs_is_made_again(times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made, left = ast.parse, [times]

    def disturbed(text: str) -> Any:
        if left[0]:
            left[0] -= 1
            raise SystemError("AST constructor recursion depth mismatch (before=42, after=36)")
        return made(text)

    monkeypatch.setattr(ast, "parse", disturbed)
    assert ast.unparse(parse("x = 1")) == "x = 1"
    assert not left[0]


def test_an_error_that_stays_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(text: str) -> Any:
        raise SystemError("broken")

    monkeypatch.setattr(ast, "parse", broken)
    with pytest.raises(SystemError, match="broken"):
        parse("x")


def test_what_is_no_program_is_an_error_at_once() -> None:
    with pytest.raises(SyntaxError):
        parse("x =")
