"""The suite can fail: each planted fault is caught by a test that passes without it."""

from __future__ import annotations

import random
import re
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from tests.planted_faults import ROOT, Copy, Fault, NoEnd, Verdict, all_faults, judge, judge_all, line

FAULTS = all_faults()
LEAST = {
    "elementwise": 15,
    "arrays": 15,
    "transforms": 12,
    "passes": 6,
    "backend": 6,
    "tracing": 12,
    "calls": 8,
    "control": 20,
    "special": 15,
    "scipy": 8,
    "fourier_and_search": 15,
    "linalg": 15,
    "spectral": 12,
    "xla": 15,
    "llvm": 20,
    "llvm_front": 20,
    "llvm_large_linear_algebra": 12,
    "llvm_linear_algebra": 30,
    "llvm_loops": 15,
    "llvm_memory": 15,
    "llvm_sections": 15,
    "llvm_special": 10,
    "llvm_steps": 25,
    "conversion": 40,
    "bridge": 12,
    "cross_check": 10,
    "tools": 8,
    "torch": 30,
    "updates": 20,
}
"""How many faults each part of the package is tried with, at least."""
SEED = 20


@pytest.mark.whole
@pytest.mark.parametrize("area", sorted({fault.area for fault in FAULTS}))
def test_faults_apply_once(area: str) -> None:
    """The text that each replaces stands in its file exactly once, and the tests that it names exist.

    One test for all of an area: thousands of tests that take a millisecond take as long again to be told of.
    """
    assert not list(filter(None, (unfit(fault) for fault in FAULTS if fault.area == area)))


def unfit(fault: Fault) -> str:
    """Why a fault cannot be planted, or its tests cannot be run."""
    text = (ROOT / fault.file).read_text(encoding="utf-8")
    try:
        planted = fault.planted(text)
    except ValueError as error:
        return str(error)
    if planted == text:
        return f"{fault.name}: changes nothing"
    files = [argument for argument in fault.tests if argument.startswith("tests/")]
    missing = [file for file in files if not (ROOT / file).exists()]
    return f"{fault.name}: no tests {', '.join(missing)}" if missing or not files else ""


def test_faults_are_spread_over_the_package() -> None:
    counts = Counter(fault.area for fault in FAULTS)
    assert all(counts[area] >= least for area, least in LEAST.items()), counts
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def test_a_sample_of_faults_is_caught() -> None:
    print(f"seed {SEED}")
    sample = random.Random(SEED).sample(FAULTS, 3)
    verdicts = judge_all(sample, 1, lambda verdict: print(line(verdict)))
    assert not [line(verdict) for verdict in verdicts if not verdict.caught]


ENDLESS = Fault("endless_one", "area", "module.py", "that it ends", ("tests/one.py",), "a", "b", endless=True)
ENDING = replace(ENDLESS, name="ending_one", endless=False)


@pytest.mark.parametrize(("fault", "caught"), [(ENDLESS, True), (ENDING, False)])
def test_what_does_not_end_is_an_outcome_of_its_own(fault: Fault, caught: bool) -> None:
    verdict = Verdict(fault, None, False, 300.0, "300 s of tests/one.py")
    assert verdict.caught is caught
    assert line(verdict).startswith("caught" if caught else "NO END")
    assert line(verdict).endswith("after 300 s of tests/one.py")
    assert Verdict(fault, None, True, 1.0).caught is False
    assert line(Verdict(fault, None, True, 1.0)).startswith("NOT caught")
    assert Verdict(fault, "tests/one.py::test", True, 1.0).caught is True


class Endless:
    """A copy of the repository whose tests pass, or do not end from the ``limit``-th run on."""

    def __init__(self, limit: int) -> None:
        self.limit, self.runs = limit, 0

    def with_fault(self, fault: Fault) -> nullcontext[None]:
        return nullcontext()

    def failing(self, arguments: Sequence[str], first: bool = True, limit: float = 1.0) -> list[str]:
        self.runs += 1
        if self.runs >= self.limit:
            raise NoEnd(f"{limit:g} s of {arguments[0]}")
        return []


@pytest.mark.parametrize(("runs", "wider"), [(1, False), (2, True)])
def test_a_run_that_does_not_end_is_no_test_that_fails(runs: int, wider: bool) -> None:
    """Neither of the fault's own tests nor of the wider run."""
    verdict = judge(Endless(runs), ENDING)  # type: ignore[arg-type]
    assert (verdict.test, verdict.wider, verdict.caught) == (None, wider, False)
    assert verdict.unended is not None and verdict.unended.endswith("tests/ir" if wider else "tests/one.py")


def test_a_run_that_takes_too_long_has_no_end(tmp_path: Path) -> None:
    copy = object.__new__(Copy)
    copy.root = tmp_path
    (tmp_path / "test_slow.py").write_text("import time\ntime.sleep(60)\n")
    with pytest.raises(NoEnd, match=re.escape("0.2 s of test_slow.py")):
        copy.failing(["test_slow.py"], limit=0.2)


@pytest.mark.skipif(sys.platform == "win32", reason="processes end by numbers of their own there")
def test_a_run_that_crashes_is_an_outcome_and_not_the_end_of_all(tmp_path: Path) -> None:
    copy = object.__new__(Copy)
    copy.root = tmp_path
    (tmp_path / "test_crash.py").write_text("import os\nos.kill(os.getpid(), 9)\n")
    with pytest.raises(NoEnd, match=re.escape("signal 9 in test_crash.py")):
        copy.failing(["test_crash.py"])


@pytest.mark.slow
def test_every_fault_is_caught() -> None:
    verdicts = judge_all(FAULTS, 2, lambda verdict: print(line(verdict)))
    assert not [line(verdict) for verdict in verdicts if not verdict.caught]
