"""Every Python block of the README and of docs/ runs; where a text block follows, it prints exactly that."""

from __future__ import annotations

import contextlib
import io
import os
import re
import stat
import sys
import textwrap
import types
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)[^\n`]*\n(?P<body>.*?)^(?P=indent)```[ ]*$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    language: str
    body: str
    line: int  # of the first line of the body
    end: int  # offset in the page
    start: int


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return [
        Block(
            match["language"],
            textwrap.dedent(match["body"]),
            page.count("\n", 0, match.start("body")) + 1,
            match.end(),
            match.start(),
        )
        for match in FENCE.finditer(page)
    ]


def expected_output(page: str, python: Block, following: Block | None) -> str | None:
    """The text block that belongs to a Python block: the next one, with nothing but blank lines between."""
    if following is None or following.language != "text" or page[python.end : following.start].strip():
        return None
    return following.body


def run_page(path: Path) -> int:
    """Run the Python blocks of a page in one namespace; return how many there were."""
    page = path.read_text("utf-8")
    found = blocks(page)
    module = types.ModuleType("page_" + re.sub(r"\W", "_", path.stem))
    sys.modules[module.__name__] = module
    try:
        for block, following in zip(found, [*found[1:], None], strict=False):
            if block.language == "python":
                run_block(path, block, expected_output(page, block, following), module)
    finally:
        del sys.modules[module.__name__]
    return sum(block.language == "python" for block in found)


def run_block(path: Path, block: Block, expected: str | None, module: types.ModuleType) -> None:
    # Blank lines in front give every statement the line number it has in the page, and the page's own path as the
    # file name lets error messages and inspect.getsource find the line.
    code = compile("\n" * (block.line - 1) + block.body, str(path), "exec")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, vars(module))
    if expected is not None:
        assert printed.getvalue() == expected, (
            f"{path.name}, line {block.line}: prints something else than the page says"
        )


@pytest.mark.whole
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_page(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(path)


def test_readme_shows_python() -> None:
    assert any(block.language == "python" for block in blocks((ROOT / "README.md").read_text("utf-8")))


PLANTED = """
Text.
```python
values = [1, 2]
print(values)
```
```text
[1, 2]
```
1. In a list:
   ```python
   print(sum(values){change})
   ```

   ```text
   3
   ```
```python
print("not compared")
```
Not its output:
```text
other
```
"""


def test_blocks_share_a_namespace_and_output_is_compared(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PLANTED.replace("{change}", ""), "utf-8")
    assert run_page(page) == 3


@pytest.mark.parametrize(
    ("change", "error"), [(" + 1", AssertionError), (" + missing", NameError), (" / 0", ZeroDivisionError)]
)
def test_a_wrong_page_is_reported(tmp_path: Path, change: str, error: type[Exception]) -> None:
    page = tmp_path / "page.md"
    page.write_text(PLANTED.replace("{change}", change), "utf-8")
    with pytest.raises(error) as caught:
        run_page(page)
    if error is not AssertionError:
        assert caught.traceback[-1].lineno + 1 == 1 + PLANTED.split("\n").index("   print(sum(values){change})")


def test_first_two_shell_blocks_hold_one_command_each() -> None:
    shell = [block.body for block in blocks((ROOT / "README.md").read_text("utf-8")) if block.language == "sh"]
    assert len(shell) >= 2
    for command in shell[:2]:
        assert command.count("\n") == 1
        assert command.startswith("python3 -m venv .venv && .venv/bin/pip install ")
    assert shell[0].endswith(".venv/bin/python examples/quickstart.py\n")
    assert shell[1].endswith(".venv/bin/python -m pytest -q -n 2\n")


def test_ci_script_takes_its_command_from_the_readme() -> None:
    script = ROOT / ".ci" / "run"
    assert "README.md" in script.read_text("utf-8")
    if os.name == "posix":
        assert script.stat().st_mode & stat.S_IXUSR
