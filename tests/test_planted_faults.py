"""The suite can fail: each planted fault is caught by a test that passes without it."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.planted_faults import ROOT, Fault, all_faults, judge_all, line

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
    "fourier_and_search": 15,
    "linalg": 15,
    "spectral": 12,
    "xla": 15,
    "llvm": 20,
    "llvm_front": 20,
    "llvm_linear_algebra": 30,
    "llvm_loops": 15,
    "llvm_memory": 15,
    "llvm_sections": 15,
    "llvm_steps": 25,
    "conversion": 40,
    "bridge": 12,
    "cross_check": 10,
    "tools": 8,
    "torch": 30,
}
"""How many faults each part of the package is tried with, at least."""
SEED = 20


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.area}/{fault.name}")
def test_a_fault_applies_once(fault: Fault) -> None:
    """The text it replaces stands there exactly once, and the tests it names exist."""
    text = (ROOT / fault.file).read_text(encoding="utf-8")
    planted = fault.planted(text)
    assert planted != text
    compile(planted, fault.file, "exec")
    files = [argument for argument in fault.tests if argument.startswith("tests/")]
    assert files and all((ROOT / file).exists() for file in files)


def test_faults_are_spread_over_the_package() -> None:
    counts = Counter(fault.area for fault in FAULTS)
    assert all(counts[area] >= least for area, least in LEAST.items()), counts
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def test_a_sample_of_faults_is_caught() -> None:
    print(f"seed {SEED}")
    sample = random.Random(SEED).sample(FAULTS, 3)
    verdicts = judge_all(sample, 1, lambda verdict: print(line(verdict)))
    assert not [line(verdict) for verdict in verdicts if verdict.test is None]


@pytest.mark.slow
def test_every_fault_is_caught() -> None:
    verdicts = judge_all(FAULTS, 2, lambda verdict: print(line(verdict)))
    assert not [line(verdict) for verdict in verdicts if verdict.test is None]
