"""Random functions of loops agree with the NumPy backend, for each level of processor that this machine has."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from srcgrad.backends.llvm.target import CPU_VARIABLE, LEVELS, TARGET
from tests.backends.llvm.random_programs import check
from tests.backends.llvm.random_structured import check as check_structured

ROOT = Path(__file__).resolve().parents[3]
SEEDS = 60
HAVE = [name for name, features in LEVELS.items() if features <= TARGET.features | {"cx16", "fxsr", "cmov"}]
OTHERS = HAVE if platform.machine() in ("x86_64", "AMD64") else ["generic"]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_random_function(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(SEEDS, 5000, 100))
def test_many_random_functions(start: int) -> None:
    for seed in range(start, start + 100):
        check(seed)
        check(seed, steps=60)


@pytest.mark.parametrize("seed", range(25))
def test_a_random_function_with_control_flow(seed: int) -> None:
    check_structured(seed)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(25, 5000, 100))
def test_many_random_functions_with_control_flow(start: int) -> None:
    for seed in range(start, start + 100):
        check_structured(seed)


@pytest.mark.parametrize("cpu", OTHERS)
def test_other_processors(cpu: str) -> None:
    environment = {**os.environ, CPU_VARIABLE: cpu}
    command = [sys.executable, "-m", "tests.backends.llvm.random_programs", "0", "25"]
    found = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stderr[-3000:]
    assert f"agree on {cpu if cpu != 'generic' else ''}" in found.stdout


def test_an_unknown_processor_is_an_error() -> None:
    command = [sys.executable, "-c", "import srcgrad as sg; sg.set_backend('llvm')"]
    environment = {**os.environ, CPU_VARIABLE: "pentium"}
    found = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert found.returncode != 0 and "use one of native, generic" in found.stderr
