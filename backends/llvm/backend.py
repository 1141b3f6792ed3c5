"""Programs as fused loops in machine code, and NumPy lines for all else."""

from __future__ import annotations

import itertools
import linecache
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from srcgrad.backends.base import Backend, Executable
from srcgrad.backends.llvm import native, scalars
from srcgrad.backends.llvm.entry import DECLARATIONS, block_text, dtype_symbols, entry_text
from srcgrad.backends.llvm.kernels import kernel_text
from srcgrad.backends.llvm.loops import Compute, Group
from srcgrad.backends.llvm.partition import FUSED, Partition, partitioned
from srcgrad.backends.llvm.target import TARGET
from srcgrad.backends.numpy.backend import BACKEND as NUMPY
from srcgrad.backends.numpy.codegen import generate
from srcgrad.backends.numpy.expressions import HELPERS, SITES
from srcgrad.backends.numpy.literals import Names
from srcgrad.ir.core import Function, Literal, Value
from srcgrad.ir.types import ArrayType

_numbers: Final = itertools.count()
RELEASED: Final = 100_000
"""The work, in additions, from which other threads may run meanwhile."""


class LlvmBackend(Backend):
    """Runs elementwise operations, movements and reductions as fused loops; the rest as the NumPy backend does."""

    name = "llvm"

    def compile(self, function: Function, sites: Any = None) -> Executable:
        partition = partitioned(function)
        if not partition.groups:
            return NUMPY.compile(function, sites)
        whole = whole_kernel(function, partition)
        modules = [_Kernel(group, whole) for group in partition.groups]
        text = module_text(modules)
        library = native.Library(text)
        loops = "\n\n".join(f"# {line}".rstrip() for kernel in modules for line in kernel.group.text().splitlines())
        loops = loops.replace("\n\n", "\n")
        if whole is not None:
            run = modules[0].load(library)
            return Executable(run, f"{loops}\n\n{text}")
        return wrapped(partition.function, modules, library, sites, f"{loops}\n\n{text}")


class Whole:
    """How a function is one kernel: the parameter of each input, and the output of each result."""

    __slots__ = ("params", "results", "types")

    def __init__(self, types: Sequence[ArrayType], params: list[int], results: list[int]) -> None:
        self.types = types
        self.params = params
        self.results = results


def whole_kernel(function: Function, partition: Partition) -> Whole | None:
    """How the function is one kernel, or None: its inputs are parameters, and its results distinct outputs."""
    operations, results = partition.function.operations, partition.function.results
    if len(operations) != 1 or operations[0].op is not FUSED:
        return None
    (operation,) = operations
    places: dict[Value, int] = {value: k for k, value in enumerate(function.params)}
    outputs: dict[Value, int] = {value: k for k, value in enumerate(operation.results)}
    if any(isinstance(value, Literal) for value in operation.operands) or len(set(results)) != len(results):
        return None
    if any(value not in outputs for value in results) or len(results) != len(outputs):
        return None
    return Whole(
        [param.type for param in function.params],
        [places[value] for value in operation.operands],
        [outputs[value] for value in results],
    )


class _Kernel:
    """One group as IR and as a callable."""

    def __init__(self, group: Group, whole: Whole | None) -> None:
        self.group = group
        self.types = [value.type for value in group.inputs] if whole is None else whole.types
        self.params = list(range(len(group.inputs))) if whole is None else whole.params
        self.results = list(range(len(group.outputs))) if whole is None else whole.results
        self.as_tuple = whole is not None
        self.text, self.emitter = kernel_text(group, TARGET)

    def entry(self) -> str:
        if not native.LAYOUT_IS_KNOWN:
            return block_text(self.group)
        releases = work(self.group) >= RELEASED
        return entry_text(self.group, len(self.types), self.params, self.results, releases, self.as_tuple)

    def load(self, library: native.Library) -> Callable[..., Any]:
        outputs = [value.type for value in self.group.outputs]
        return native.kernel(library, self.group.name, self.types, self.params, outputs, self.results, self.as_tuple)


def work(group: Group) -> int:
    """About how many additions a group costs."""
    points = 1
    for size in group.domain:
        points *= size
    return points * sum(1 + scalars.cost(item.operation) for item in group.statements if isinstance(item, Compute))


def module_text(kernels: Sequence[_Kernel]) -> str:
    """The module of all kernels of a program."""
    declared: dict[str, None] = {}
    defined: dict[str, str] = {}
    for kernel in kernels:
        declared.update(dict.fromkeys(sorted(kernel.emitter.declarations)))
        defined.update(kernel.emitter.definitions)
    dtypes = {value.type.dtype for kernel in kernels for value in (*kernel.group.inputs, *kernel.group.outputs)}
    dtypes |= {type.dtype for kernel in kernels for type in kernel.types}
    names = sorted({name for dtype in dtypes for name in dtype_symbols(dtype)})
    parts = [DECLARATIONS, *[f"{name} = external global i8" for name in names], *declared, *defined.values()]
    parts += [text for kernel in kernels for text in (kernel.text, kernel.entry())]
    return "\n".join(parts)


def wrapped(
    function: Function, kernels: Sequence[_Kernel], library: native.Library, sites: Any, shown: str
) -> Executable:
    """The program around several kernels, as the NumPy backend writes it."""
    reserved = {kernel.group.name for kernel in kernels}
    program = generate(function, Names(HELPERS | reserved))
    file = f"<srcgrad {next(_numbers)} {program.name}>"
    names = program.namespace()
    names[SITES] = sites
    names.update({kernel.group.name: kernel.load(library) for kernel in kernels})
    exec(compile(program.text, file, "exec"), names)
    run = names[program.name]
    if any(operation.op is not FUSED for operation in function.operations):
        run = np.errstate(all="ignore")(run)
    executable = Executable(run, f"{program.text}\n{shown}")
    linecache.cache[file] = (len(program.text), None, program.text.splitlines(keepends=True), file)
    weakref.finalize(executable, linecache.cache.pop, file, None).atexit = False
    return executable


BACKEND: Final = LlvmBackend()
