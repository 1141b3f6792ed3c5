"""docs/policies.md and docs/add_an_op.md say what the code does."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.testing import policy_points
from tests.scripts import load

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "policies.md"


@pytest.fixture(scope="module")
def policies() -> Any:
    return load(ROOT / "benchmarks" / "policies.py")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def shown() -> list[list[str]]:
    """The rows of the page's table, the header first."""
    return [cells(line) for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]


@pytest.mark.parametrize("name", ["srcgrad", "xla"])
def test_the_table_shows_what_srcgrad_gives(policies: Any, name: str) -> None:
    if name == "xla":
        pytest.importorskip("jax")
    header, *rows = shown()
    column = header.index(name)
    measured = [cells(line) for line in policies.table((name,)) if line.startswith("| ")][1:]
    assert [[*row[:2], row[column]] for row in rows] == measured


def test_srcgrad_agrees_with_itself_and_raises_only_what_it_should() -> None:
    header, *rows = shown()
    raised = set()
    for row in rows:
        assert row[header.index("srcgrad")] == row[header.index("xla")], row
        raised |= set(re.findall(r"\w+Error", row[header.index("srcgrad")]))
    assert raised == {"HolomorphicError", "IntegerInputError"}


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("kth", [0, 3, 39, (5, 20), (-1, 7, 8)])
def test_the_parts_of_partitions_are_numpys_as_sets(kth: Any, backend: str) -> None:
    x = np.random.default_rng(0).permutation(40).astype(float)
    ends = sorted({k % 40 for k in np.atleast_1d(kth).tolist()})
    found, expected = sg.jit(lambda x: np.partition(x, kth), backend=backend)(x), np.partition(x, kth)
    places = sg.jit(lambda x: np.argpartition(x, kth), backend=backend)(x)
    np.testing.assert_array_equal(found[ends], expected[ends])
    np.testing.assert_array_equal(x[places][ends], expected[ends])
    for one, other, third in zip(*(np.split(part, ends) for part in (found, expected, x[places])), strict=True):
        np.testing.assert_array_equal(np.sort(one), np.sort(other))
        np.testing.assert_array_equal(np.sort(third), np.sort(other))
    slope = sg.grad(lambda x: np.sum(np.partition(x, kth)[: ends[-1]]), backend=backend)(x)
    np.testing.assert_array_equal(slope, x < expected[ends[-1]])


def test_a_missing_library_has_no_column(policies: Any) -> None:
    assert policies.library("no_such_library") is None
    assert cells(policies.table(("no_such_library",))[0]) == ["", "derivative of", ""]


def test_the_table_is_written_between_the_markers(
    policies: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "policies.md"
    page.write_text(f"before\n{policies.START}\nold\n{policies.END}\nafter\n", "utf-8")
    monkeypatch.setattr(policies, "PAGE", page)
    policies.write(["| new |"])
    policies.write(["| newer |"])
    assert page.read_text("utf-8") == f"before\n{policies.START}\n| newer |\n{policies.END}\nafter\n"


def test_every_policy_of_cross_check_has_its_section() -> None:
    headings = re.findall(r"^## (.+)$", PAGE.read_text("utf-8"), re.MULTILINE)
    anchors = {heading.lower().replace(" ", "-") for heading in headings}
    named = {policy.anchor for policy in policy_points.POLICIES.values()}
    named |= {policy_points.INFINITE, policy_points.UNDEFINED, policy_points.STRUCTURAL, policy_points.RULED}
    assert named <= anchors


def test_the_op_shown_is_the_op_in_the_code() -> None:
    page = (ROOT / "docs" / "add_an_op.md").read_text("utf-8")
    found = re.findall(r"<!-- from (\S+) -->\n```py\n(.*?)```", page, re.DOTALL)
    assert found
    for file, text in found:
        assert textwrap.dedent(text) in (ROOT / file).read_text("utf-8")
