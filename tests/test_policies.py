"""docs/policies.md and docs/add_an_op.md say what the code does."""

from __future__ import annotations

import importlib.util
import re
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def policies():
    spec = importlib.util.spec_from_file_location("benchmark_policies", ROOT / "benchmarks" / "policies.py")
    module = importlib.util.module_from_spec(spec)
    path = list(sys.path)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path[:] = path
    return module


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_table_shows_what_srcgrad_gives(policies):
    page = (ROOT / "docs" / "policies.md").read_text("utf-8").splitlines()
    shown = [cells(line)[:3] for line in page if line.startswith("| ")]
    assert shown[0] == ["", "derivative of", "srcgrad"] or shown[0][1:] == ["derivative of", "srcgrad"]
    measured = [cells(line) for line in policies.table(("srcgrad",)) if line.startswith("| ")]
    assert shown[1:] == measured[1:]


def test_a_missing_library_is_a_dash(policies):
    assert policies.measure(policies.CASES[0], policies.library("no_such_library")) == "–"


def test_the_op_shown_is_the_op_in_the_code():
    page = (ROOT / "docs" / "add_an_op.md").read_text("utf-8")
    found = re.findall(r"<!-- from (\S+) -->\n```py\n(.*?)```", page, re.DOTALL)
    assert found
    for file, text in found:
        assert textwrap.dedent(text) in (ROOT / file).read_text("utf-8")
