"""What is written for machines that this one is not, as far as that can be seen without running it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

from srcgrad.backends.llvm import scalars
from srcgrad.backends.llvm.emitter import Emitter, Number
from srcgrad.backends.llvm.target import Target, find_target
from srcgrad.backends.llvm.workers_text import needed_symbols, workers_text
from srcgrad.ir.errors import BackendError

ROOT = Path(__file__).resolve().parents[3]
ROUNDINGS = {name + end for name in ("ceil", "floor", "rint", "trunc") for end in ("", "f")}
MACHINES = {
    "aarch64-unknown-linux-gnu": ("generic", "", {"fmod", "memcpy", "memset"}),
    "aarch64-unknown-linux-musl": ("neoverse-v1", "+neon,+sve,+fullfp16,+lse", {"fmod", "memcpy", "memset"}),
    "arm64-apple-darwin23.0.0": ("apple-m1", "+neon,+fullfp16,+lse", {"fmod", "memcpy", "memset", "bzero"}),
    "x86_64-pc-windows-msvc-elf": ("x86-64", "", {"fmod", "memcpy", "memset", "__chkstk"} | ROUNDINGS),
}
"""triple -> processor, features, and the functions of the system that LLVM calls there."""
ARM = Target("aarch64-unknown-linux-gnu", "generic", frozenset({"neon", "fma"}))
X86 = Target("x86_64-unknown-linux-gnu", "x86-64", frozenset({"sse2"}))
OTHER = Target("riscv64-unknown-linux-gnu", "generic", frozenset())


@pytest.mark.parametrize("every_op", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("triple", MACHINES)
def test_all_kinds_of_modules_are_compiled(triple: str, every_op: bool) -> None:
    cpu, features, known = MACHINES[triple]
    every = ["every op"] if every_op else []
    command = [sys.executable, "-m", "tests.backends.llvm.other_machines", triple, cpu, features, *every]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stderr[-3000:]
    assert set(found.stdout.split()) <= known


def test_threads_sleep_by_the_system_call_of_the_machine() -> None:
    for target, number in ((ARM, 98), (X86, 202)):
        assert workers_text(True, target).count(f"@syscall(i64 {number}, ptr") == 2
    assert "llvm.x86" not in workers_text(True, ARM) and "llvm.aarch64" not in workers_text(True, X86)
    text = workers_text(None, OTHER)
    assert "@syscall" not in text and "pthread_cond_wait" in text and "@llvm." not in text
    assert "syscall" not in needed_symbols(False)


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("target", [np.int8, np.int32])
def test_single_floats_become_integers_as_vectors_do(target: type, lanes: int) -> None:
    for machine, wide in ((ARM, "i64"), (X86, "i32")):
        e = Emitter(lanes, machine.features)
        scalars.cast(e, Number("%x", np.dtype(np.float64), lanes), np.dtype(target))
        assert wide in e.lines[0].split(" to ")[1]
        scalars.cast(e, Number("%x", np.dtype(np.float32), lanes), np.dtype(target))
        assert "fptosi" in e.lines[-2 + (target is np.int32)] and "i32" in e.lines[-2 + (target is np.int32)]


def test_the_stack_is_probed() -> None:
    """LLVM knows the attribute on no Windows: there it would name a function that nobody has."""
    assert "inline-asm" in ARM.probes and "inline-asm" in X86.probes
    for triple in ("x86_64-pc-windows-msvc", "x86_64-pc-windows-msvc-elf", "aarch64-pc-windows-msvc"):
        assert not Target(triple, "", frozenset()).probes


@pytest.mark.parametrize(
    ("machine", "least"),
    [(ARM, {"neon", "fma"}), (X86, {"sse", "sse2", "cmov", "fxsr"}), (OTHER, set())],
    ids=["ARM", "x86", "another"],
)
def test_the_least_machine_of_a_kind(machine: Target, least: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llvm, "get_process_triple", lambda: machine.triple)
    found = find_target("generic")
    assert (found.cpu, found.features, found.vector_bytes) == (machine.cpu, least, 16)
    if machine is not X86:
        with pytest.raises(BackendError, match="no such level"):
            find_target("x86-64-v3")


def test_a_machine_with_its_bytes_in_another_order_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "byteorder", "big")
    with pytest.raises(BackendError, match="64 bits") as caught:
        find_target("native")
    assert "SRCGRAD_BACKEND=numpy" in str(caught.value)
