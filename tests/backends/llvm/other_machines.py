"""Machine code for machines that this one is not: every kind of module is compiled, none is run.

``python -m tests.backends.llvm.other_machines TRIPLE [CPU [FEATURES]]`` prints the names of functions that LLVM
calls and no module does. With a fourth argument, a sample of every op is compiled too.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterator
from typing import Any

import llvmlite.binding as llvm

ROOM = (ctypes.c_char * (1 << 16))()
"""Where all functions and variables of modules that are not loaded seem to be."""


class Engine:
    """Takes object files as MCJIT does, and leaves them."""

    def __init__(self, module: Any, machine: Any) -> None:
        pass

    def remove_module(self, module: Any) -> None:
        pass

    def add_object_file(self, file: Any) -> None:
        pass

    def finalize_object(self) -> None:
        pass

    def get_function_address(self, name: str) -> int:
        return ctypes.addressof(ROOM) + 1024

    get_global_value_address = get_function_address


def undefined(code: bytes) -> set[str]:
    """The names that an ELF or Mach-O object wants from elsewhere."""
    return set(elf_names(code) if code[:4] == b"\x7fELF" else mach_names(code)) - {""}


def text_at(table: bytes, start: int) -> str:
    return table[start : table.index(b"\0", start)].decode()


def elf_names(code: bytes) -> Iterator[str]:
    first, size, count = struct.unpack_from("<40xQ10xHH", code)
    sections = [struct.unpack_from("<4xI16xQQI", code, first + size * k) for k in range(count)]
    for kind, start, length, link in sections:
        if kind == 2:  # the table of symbols
            names = code[sections[link][1] :][: sections[link][2]]
            for place in range(start, start + length, 24):
                name, section = struct.unpack_from("<I2xH", code, place)
                if section == 0:
                    yield text_at(names, name)


def mach_names(code: bytes) -> Iterator[str]:
    (count,), place = struct.unpack_from("<16xI", code), 32
    for _ in range(count):
        command, size = struct.unpack_from("<II", code, place)
        if command == 2:  # the table of symbols
            symbols, number, names, length = struct.unpack_from("<8xIIII", code, place)
            for k in range(number):
                name, kind = struct.unpack_from("<IB", code, symbols + 16 * k)
                if kind & 0x0F == 1:
                    yield text_at(code[names : names + length], name).removeprefix("_")
        place += size


def pretend(triple: str, cpu: str, features: str) -> None:
    """Let the backend take the machine for another one; before it is imported."""
    os.environ["SRCGRAD_CACHE_DIR"], os.environ["SRCGRAD_CPU"] = "", ""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    found = type(llvm.get_host_cpu_features())((name[1:], name[0] == "+") for name in features.split(",") if name)
    llvm.get_process_triple = lambda: triple
    llvm.get_host_cpu_name = lambda: cpu
    llvm.get_host_cpu_features = lambda: found
    llvm.create_mcjit_compiler = Engine
    from srcgrad.backends.llvm import memory

    memory.Pool.release = lambda self, down_to=0: None  # type: ignore[method-assign]


def main(triple: str, cpu: str = "generic", features: str = "", every_op: str = "") -> None:
    pretend(triple, cpu, features)
    from srcgrad.backends.llvm import native, workers_text

    found: set[str] = set()
    machine_code = native.machine_code

    def looked_at(text: str) -> bytes:
        code = machine_code(text)
        found.update(name for name in undefined(code) if f"@{name}" not in text)
        return code

    native.machine_code = looked_at
    for sleeps in (True, False):
        native.machine_code(workers_text.workers_text(sleeps))
    compile_programs(bool(every_op))
    print(*sorted(found))


def compile_programs(every_op: bool) -> None:
    """Programs with vector math, loops in chunks and control flow, and of one sample of every op."""
    import numpy as np

    from srcgrad.backends.llvm import front_machine, native
    from srcgrad.backends.llvm.backend import BACKEND
    from srcgrad.backends.llvm.vector_math import FUNCTIONS
    from srcgrad.ir.opdef import REGISTRY
    from tests.backends.llvm.random_programs import random_function
    from tests.backends.llvm.random_structured import random_structured
    from tests.backends.llvm.support import build
    from tests.ir.ops.harness import SITES, drawn, ops

    def rule(x: Any, y: Any) -> Any:
        found = [REGISTRY[name](*[x, y][:operands]) for name, operands in arities.items()]
        return (*found, REGISTRY["cast"](x, dtype=np.dtype(np.int32)))

    arities = {name: REGISTRY[name].arity for name in FUNCTIONS if name in REGISTRY}
    native.machine_code(front_machine.text(32))
    for dtype in (np.float64, np.float32, np.float16):
        BACKEND.compile(build(rule, *np.ones((2, 30_001), dtype)))
    for seed in range(4):
        BACKEND.compile(random_function(seed, 40)[0])
        BACKEND.compile(random_structured(seed)[0])
    for op in ops() if every_op else ():
        for case in drawn(op, 5):
            BACKEND.compile(case.function, SITES)


if __name__ == "__main__":
    main(*sys.argv[1:])
