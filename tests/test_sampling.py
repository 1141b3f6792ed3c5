"""What a run of all files leaves out: cases of large tables, no value of an argument that several cases share."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sampling import SHARE, WHOLE, Case, sample

TABLE = [
    Case(f"f.py::g[{op}-{backend}]", frozenset({("op", op), ("backend", backend)}))
    for op, backend in itertools.product(range(60), range(3))
]
ROOT = Path(__file__).resolve().parent.parent
LEFT = round(SHARE * 100) + round(SHARE * 40) + 50 + 1
PROJECT = {
    "pyproject.toml": """[tool.pytest.ini_options]
testpaths = ["checks"]
addopts = ["-m", "not slow"]
markers = ["slow", "whole"]
""",
    "conftest.py": "from tests.sampling import *",
    "checks/test_tables.py": """import pytest

@pytest.mark.parametrize("k", range(100))
def test_of_many(k): pass

@pytest.mark.parametrize("k", [pytest.param(k, marks=pytest.mark.slow if k < 60 else ()) for k in range(100)])
def test_of_slow_ones(k): pass

@pytest.mark.whole
@pytest.mark.parametrize("k", range(50))
def test_whole(k): pass

def test_alone(): pass
""",
}


@pytest.mark.parametrize("seed", range(4))
def test_each_value_that_cases_share_occurs(seed: int) -> None:
    found = sample(TABLE, seed)
    kept = [case for case in TABLE if case.name in found]
    assert set().union(*(case.values for case in kept)) == set().union(*(case.values for case in TABLE))
    assert SHARE * len(TABLE) <= len(kept) <= 60 + 3


def test_tables_of_one_argument_are_sampled_to_the_share() -> None:
    cases = [Case(f"f.py::g[{k}]", frozenset({("k", k), ("same", k)})) for k in range(100)]
    assert len(sample(cases, 0)) == round(SHARE * 100)


def test_another_seed_takes_others_and_the_same_seed_the_same_in_any_order() -> None:
    assert sample(TABLE, 1) == sample(TABLE[::-1], 1) != sample(TABLE, 2)


def test_small_tests_are_whole() -> None:
    cases = [Case(f"f.py::g[{k}]", frozenset({("k", k)})) for k in range(WHOLE)]
    assert sample(cases, 0) == {case.name for case in cases}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "checks").mkdir()
    for name, text in PROJECT.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "arguments, passed",
    [
        ([], LEFT),
        (["-n", "2"], LEFT),
        (["--every"], 100 + 40 + 50 + 1),
        (["checks", "-n", "2"], 100 + 40 + 50 + 1),
        (["-m", "slow"], 60),
        (["-k", "test_of_many"], 100),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_who_takes_a_sample(project: Path, arguments: list[str], passed: int) -> None:
    """Of 100 cases, of 40 that are not slow, of 50 of a test that is run whole, and of a test without arguments."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--seed", "3", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert f"{passed} passed" in done.stdout, done.stdout + done.stderr
    assert ("of seed 3" in done.stdout) == (passed == LEFT)
