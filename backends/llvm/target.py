"""The machine that programs are made for: this one, or the one that ``SRCGRAD_CPU`` names."""

from __future__ import annotations

import ctypes
import os
import sys
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

OPTIONS: Final[dict[str, Any]] = {"jit": True, "codemodel": "jitdefault"}
"""How code is generated, at any level."""
X86: Final = ("x86_64", "amd64")
ARM: Final = ("aarch64", "arm64")
"""How triples begin."""
LONG_TEXT: Final = 1 << 18
"""The characters from which a module is generated at level 1: as good but for the order of instructions."""
STRAIGHT: Final = "; long straight bodies\n"
"""How a module begins that is generated at level 0."""
PART: Final = "; a part of a long program\n"
"""How a module begins that is generated at level 1 although it is short."""


def is_long(*texts: str) -> bool:
    """Whether these are much text together."""
    return sum(map(len, texts)) >= LONG_TEXT


def level_of(text: str) -> int:
    """The level at which a module is generated."""
    return 0 if text.startswith(STRAIGHT) else 1 if text.startswith(PART) or is_long(text) else 2


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

    @property
    def arm(self) -> bool:
        """Whether it is a 64-bit ARM."""
        return self.triple.startswith(ARM)

    @property
    def probes(self) -> str:
        """The attribute of functions that may have much memory on the stack: they touch it page by page.

        On Windows all functions do, by a call of the system's; the attribute would name another one.
        """
        return "" if "windows" in self.triple else '"probe-stack"="inline-asm"'

    @property
    def registers(self) -> int:
        """How many vector registers there are."""
        return 32 if "avx512f" in self.features else 16

    def machine(self, level: int = 2) -> Any:
        """A new machine, of this level."""
        target = llvm.Target.from_triple(self.triple)
        return target.create_target_machine(cpu=self.cpu, features=self.flags, **OPTIONS | {"opt": level})

    def plain_machine(self) -> Any:
        """A new machine of the least processor, for what loads code and makes none."""
        return llvm.Target.from_triple(self.triple).create_target_machine(**OPTIONS | {"opt": 0})


def find_target(name: str | None = None) -> Target:
    """The host, or a level of its architecture.

    Raises:
        BackendError: there is no level of this name, or pointers have not 8 bytes, the lowest first.
    """
    if ctypes.sizeof(ctypes.c_void_p) != 8 or sys.byteorder != "little":
        raise BackendError(
            "the llvm backend is for little-endian machines of 64 bits",
            hint="use the numpy backend: SRCGRAD_BACKEND=numpy",
        )
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    triple = llvm.get_process_triple()
    x86 = triple.startswith(X86)
    least = _SSE2 if x86 else frozenset({"neon", "fma"}) if triple.startswith(ARM) else frozenset()
    if name in (None, "", "native"):
        found = llvm.get_host_cpu_features()
        features = frozenset(feature for feature, present in found.items() if present) | least
        return Target(triple, llvm.get_host_cpu_name(), features, found.flatten())
    if name == "generic":
        return Target(triple, "x86-64" if x86 else "generic", least)
    if not x86 or name not in LEVELS:
        known = ["native", "generic", *(LEVELS if x86 else [])]
        raise BackendError(
            f"{CPU_VARIABLE}={name}: no such level of this architecture", hint=f"use one of {', '.join(known)}"
        )
    return Target(triple, name, LEVELS[name])


TARGET: Final = find_target(os.environ.get(CPU_VARIABLE))
