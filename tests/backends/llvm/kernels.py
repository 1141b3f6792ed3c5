"""Loops over arrays of what an emitter writes: compiled without LLVM passes, for the host or for a plain machine."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numpy as np

from srcgrad.backends.llvm.emitter import Emitter, Number

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()


class Machine(NamedTuple):
    """A CPU, LLVM's text for its features, and the names of those that it has."""

    cpu: str
    text: str
    features: frozenset[str]


def host() -> Machine:
    found = llvm.get_host_cpu_features()
    features = {name for name, has in found.items() if has}
    if llvm.get_process_triple().startswith(("aarch64", "arm64")):
        features.add("fma")
    return Machine(llvm.get_host_cpu_name(), found.flatten(), frozenset(features))


def plain() -> Machine:
    """What every machine of the host's kind has."""
    x86 = llvm.get_process_triple().startswith("x86_64")
    return Machine("x86-64" if x86 else "generic", "", frozenset())


def with_fma() -> Machine | None:
    """A machine with fused products and no AVX-512, where the host can stand in for it."""
    if not {"avx2", "fma"} <= host().features or not llvm.get_process_triple().startswith("x86_64"):
        return None
    return Machine("haswell", "", frozenset({"avx", "avx2", "fma"}))


def loop_text(
    function: Callable[..., Number], dtype: Any, operands: int, lanes: int, machine: Machine, outlined: bool = False
) -> str:
    """A module with ``kernel(operand pointers …, result pointer, count)``; count is a multiple of the lanes."""
    e = Emitter(lanes, machine.features, block="loop", outlined=outlined)
    dtype = np.dtype(dtype)
    vector = Number("", dtype, lanes).type
    names = [f"%p{k}" for k in range(operands + 1)]
    element = Number("", dtype, 1).type
    loaded = []
    for name in names[:-1]:
        place = e.emit(f"getelementptr {element}, ptr {name}, i64 %i")
        loaded.append(Number(e.emit(f"load {vector}, ptr {place}, align {dtype.itemsize}"), dtype, lanes))
    result = function(e, *loaded)
    place = e.emit(f"getelementptr {element}, ptr {names[-1]}, i64 %i")
    e.do(f"store {result.type} {result.text}, ptr {place}, align {dtype.itemsize}")
    lines = [
        *sorted(e.declarations),
        *e.definitions.values(),
        f"define void @kernel({', '.join(f'ptr noalias {name}' for name in names)}, i64 %n) #0 {{",
        "entry:",
        "  %some = icmp sgt i64 %n, 0",
        "  br i1 %some, label %loop, label %done",
        "loop:",
        f"  %i = phi i64 [ 0, %entry ], [ %next, %{e.block} ]",
        *e.lines,
        f"  %next = add i64 %i, {lanes}",
        "  %more = icmp slt i64 %next, %n",
        "  br i1 %more, label %loop, label %done",
        "done:",
        "  ret void",
        "}",
        'attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }',
    ]
    return "\n".join(lines)


class Kernel:
    """A compiled loop, called with arrays of one length."""

    def __init__(
        self,
        function: Callable[..., Number],
        dtype: Any,
        operands: int,
        lanes: int,
        machine: Machine,
        outlined: bool = False,
    ) -> None:
        self.lanes, self.dtype = lanes, np.dtype(dtype)
        target = llvm.Target.from_triple(llvm.get_process_triple())
        self.target = target.create_target_machine(cpu=machine.cpu, features=machine.text, opt=2, jit=True)
        module = llvm.parse_assembly(loop_text(function, dtype, operands, lanes, machine, outlined))
        module.verify()
        self.module = module
        self.engine = llvm.create_mcjit_compiler(module, self.target)
        self.engine.finalize_object()
        address = self.engine.get_function_address("kernel")
        kinds = [ctypes.c_void_p] * (operands + 1) + [ctypes.c_int64]
        self.address = ctypes.CFUNCTYPE(None, *kinds)(address)

    def __call__(self, *arrays: Any) -> Any:
        """The result; the arrays are padded to a multiple of the lanes."""
        count = len(arrays[0])
        padded = -(-count // self.lanes) * self.lanes
        given = [np.ones(padded, self.dtype) for _ in arrays]
        for space, array in zip(given, arrays, strict=True):
            space[:count] = array
        result = np.empty(padded, self.dtype)
        self.run(*given, result)
        return result[:count]

    def run(self, *arrays: Any) -> None:
        """Operands and result, contiguous, whose length is a multiple of the lanes."""
        self.address(*(array.ctypes.data for array in arrays), len(arrays[0]))
