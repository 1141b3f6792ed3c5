"""The machine that programs are made for: this one, or the one that ``SRCGRAD_CPU`` names."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Final

import llvmlite.binding as llvm  # type: ignore[import-untyped]

from srcgrad.ir.errors import BackendError

CPU_VARIABLE: Final = "SRCGRAD_CPU"
_SSE2: Final = frozenset({"sse", "sse2", "cmov", "fxsr"})
_V2: Final = _SSE2 | {"sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "cx16"}
_V3: Final = _V2 | {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}
LEVELS: Final[dict[str, frozenset[str]]] = {
    "x86-64": _SSE2,
    "x86-64-v2": _V2,
    "x86-64-v3": _V3,
    "x86-64-v4": _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
}
"""What the levels of x86-64 have; ``generic`` is the least of any machine."""

OPTIONS: Final[dict[str, Any]] = {"opt": 2, "jit": True, "codemodel": "jitdefault"}
"""How code is generated."""
LONG_TEXT: Final = 1 << 18
"""The characters from which a module is generated at level 1: as good but for the order of instructions."""


@dataclass
class Target:
    """A processor by LLVM's name, and the features it has."""

    triple: str
    cpu: str
    features: frozenset[str]
    flags: str = field(repr=False, default="")

    @property
    def vector_bytes(self) -> int:
        """The bytes of the widest register."""
        return 64 if "avx512f" in self.features else 32 if "avx" in self.features else 16

    @property
    def masked(self) -> bool:
        """Whether loads and stores under a mask cost what others do, for numbers of every size."""
        return {"avx512bw", "avx512vl", "avx512dq"} <= self.features

    @property
    def half(self) -> bool:
        """Whether float16 is converted by an instruction; elsewhere it would be a call."""
        return "f16c" in self.features or "neon" in self.features

    def machine(self, length: int = 0) -> Any:
        """A new machine, for a module of so many characters: each engine owns one."""
        target = llvm.Target.from_triple(self.triple)
        options = OPTIONS | {"opt": 1} if length >= LONG_TEXT else OPTIONS
        return target.create_target_machine(cpu=self.cpu, features=self.flags, **options)


def find_target(name: str | None = None) -> Target:
    """The host, or a level of its architecture.

    Raises:
        BackendError: there is no level of this name.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    triple = llvm.get_process_triple()
    arm = triple.startswith(("aarch64", "arm64"))
    least = frozenset({"neon", "fma"}) if arm else _SSE2
    if name in (None, "", "native"):
        found = llvm.get_host_cpu_features()
        features = frozenset(feature for feature, present in found.items() if present) | least
        return Target(triple, llvm.get_host_cpu_name(), features, found.flatten())
    if name == "generic":
        return Target(triple, "generic" if arm else "x86-64", least)
    if arm or name not in LEVELS:
        known = ["native", "generic", *([] if arm else LEVELS)]
        raise BackendError(
            f"{CPU_VARIABLE}={name}: no such level of this architecture", hint=f"use one of {', '.join(known)}"
        )
    return Target(triple, name, LEVELS[name])


TARGET: Final = find_target(os.environ.get(CPU_VARIABLE))
