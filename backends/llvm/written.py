"""Programs as sections of machine code, and NumPy lines for what has no native form."""

from __future__ import annotations

import itertools
import linecache
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from srcgrad.backends.base import Executable
from srcgrad.backends.llvm import native, objects, programs, scalars, tapes, workers
from srcgrad.backends.llvm.compilation import Compilation
from srcgrad.backends.llvm.entry import DECLARATIONS, WORDS, block_text, dtype_symbols, entry_text
from srcgrad.backends.llvm.loops import Group
from srcgrad.backends.llvm.modules import Program
from srcgrad.backends.llvm.nests import Nest
from srcgrad.backends.llvm.partition import FUSED
from srcgrad.backends.llvm.sections import Section, Sectioned, sectioned
from srcgrad.backends.llvm.target import TARGET
from srcgrad.backends.numpy.backend import BACKEND as NUMPY
from srcgrad.backends.numpy.codegen import generate
from srcgrad.backends.numpy.expressions import HELPERS, SITES
from srcgrad.backends.numpy.literals import Names
from srcgrad.ir.collector import without_gc
from srcgrad.ir.core import Function, Literal, Value
from srcgrad.ir.passes.blocks import block_by_block
from srcgrad.ir.passes.handed_on import elements_handed_on
from srcgrad.ir.passes.lanes import tangents_last
from srcgrad.ir.passes.layouts import by_rows
from srcgrad.ir.passes.products import turned_products
from srcgrad.ir.types import ArrayType

_numbers: Final = itertools.count()
RELEASED: Final = 100_000
"""The work, in additions, from which other threads may run meanwhile."""


MOST: Final = 16_384
"""How many arrays machine code takes and gives: their pointers and what it knows of them lie on the stack, of which
some systems give a thread half a megabyte."""


def compiled(function: Function, sites: Any, key: str | None) -> Executable:
    """The function as an executable, which is kept under the key where it is one kernel."""
    if len(function.params) + len(function.results) > MOST:
        return NUMPY.compile(function, sites)
    with Compilation() as compilation:
        written = Written(function, compilation.begin)
        if not written.kernels:
            return NUMPY.compile(function, sites)
        library = native.Library(*compilation.finished(written.texts[-1]))

    def shown() -> str:
        return Written(function).shown()

    otherwise = programs.InNumPy(function, sites)
    if written.whole is None:
        found = wrapped(written.made.function, written.kernels, library, sites, shown)
        if written.turned and not calls_python(function):
            found.run = again_where_an_index_fails(found.run, otherwise)
        return found
    if key is not None:
        programs.keep(key, written.entry(written.whole), written.symbols)
    return Executable(written.kernels[0].load(library, otherwise), shown)


def calls_python(function: Function) -> bool:
    """Whether it calls what may do more than to raise an error."""
    return any(each.op.name == "host_call" and not each.attrs.get("raises") for each in function.walk())


def again_where_an_index_fails(run: Callable[..., Any], otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """The error names an axis and its size, which are those of the function as it was before arrays were turned."""

    def running(*arguments: Any) -> Any:
        try:
            return run(*arguments)
        except IndexError:
            return otherwise(*arguments)

    return running


class Written:
    """A function as the texts of modules: as much memory as its operations, so it is made again to be looked at.

    ``ready`` is told of modules that are written before the rest is.
    """

    @without_gc()
    def __init__(self, function: Function, ready: Callable[[str], None] | None = None) -> None:
        given, function = function, by_rows(tangents_last(function))
        self.turned = function is not given
        function = elements_handed_on(turned_products(function))
        function = block_by_block(function, scalars.cost)
        self.made = sectioned(function)
        called = called_kernels(self.made)
        self.whole = whole_kernel(function, self.made, called)
        program = Program(self.made.partition, TARGET, ready)
        self.kernels = [_Kernel(item, program, self.whole) for item in called]
        self.texts = [*program.modules_apart(), module_text(self.kernels, program)] if called else []
        self.symbols = program.symbols

    def entry(self, whole: Whole) -> programs.Entry:
        """What the disk is to know of a function that is one kernel."""
        (kernel,) = self.kernels
        chunks = any(workers.SYMBOL in text for text in self.texts)
        keys = [objects.fingerprint(text, TARGET) for text in self.texts]
        return programs.Entry(
            kernel.item.name, whole.params, whole.results, kernel.fails, chunks, sorted(self.symbols), keys
        )

    def shown(self) -> str:
        items = [*self.made.sections, *self.made.partition.groups]
        loops = "\n".join(f"# {line}".rstrip() for item in items for line in item.text().splitlines())
        return "\n".join([loops, "", *self.texts, callbacks(self.made.function), ""])


def callbacks(function: Function) -> str:
    """How many lines of a program are Python's, and of which ops: all else is machine code."""
    found = Counter(op.op.name for op in function.walk() if op.op is not FUSED and not op.regions)
    listed = ", ".join(f"{name} {count}" for name, count in sorted(found.items()))
    return f"# callbacks into Python: {sum(found.values())}{f' ({listed})' if listed else ''}"


def called_kernels(made: Sectioned) -> list[Group | Nest | Section]:
    """The groups and sections that Python calls, in the order of the program."""
    known: dict[str, Group | Nest | Section] = {item.name: item for item in (*made.partition.groups, *made.sections)}
    called = [op.attrs["kernel"] for op in made.function.walk() if op.op is FUSED]
    return [known[name] for name in called]


class Whole:
    """How a function is one kernel: the parameter of each input, and the output of each result."""

    __slots__ = ("params", "results", "types")

    def __init__(self, types: Sequence[ArrayType], params: list[int], results: list[int]) -> None:
        self.types = types
        self.params = params
        self.results = results


def whole_kernel(function: Function, made: Sectioned, called: Sequence[Group | Nest | Section]) -> Whole | None:
    """How the function is one kernel, or None: its inputs are parameters, and its results the outputs."""
    if len(made.function.operations) != 1 or len(called) != 1:
        return None
    inputs, outputs, results = called[0].inputs, list(called[0].outputs), list(made.function.results)
    if any(isinstance(value, Literal) for value in inputs):
        return None
    if outputs == results:
        order = list(range(len(results)))
    elif len(set(results)) == len(results) == len(outputs) and set(results) == set(outputs):
        numbers = {value: k for k, value in enumerate(outputs)}
        order = [numbers[value] for value in results]
    else:
        return None
    places: dict[Value, int] = {value: k for k, value in enumerate(function.params)}
    return Whole([param.type for param in function.params], [places[value] for value in inputs], order)


class _Kernel:
    """One group or section that Python calls, as IR and as a callable."""

    def __init__(self, item: Group | Nest | Section, program: Program, whole: Whole | None) -> None:
        self.item = item
        self.program = program
        self.types = [value.type for value in item.inputs] if whole is None else whole.types
        self.params = list(range(len(item.inputs))) if whole is None else whole.params
        self.results = list(range(len(item.outputs))) if whole is None else whole.results
        self.as_tuple = whole is not None
        self.fails = isinstance(item, Section)
        if isinstance(item, Section):
            self.text = program.write(item)
        else:
            self.text = block_text(item.name, len(item.inputs) + len(item.outputs), status=False)
            program.use(item, shared=False)

    def entry(self) -> str:
        if not native.LAYOUT_IS_KNOWN:
            return ""
        work = self.program.total_work(self.item)
        releases = work is None or work >= RELEASED
        return entry_text(self.item, len(self.types), self.params, self.results, releases, self.as_tuple)

    def load(self, library: native.Library, otherwise: Callable[..., Any] | None) -> Callable[..., Any]:
        outputs = [value.type for value in self.item.outputs]
        fallback = otherwise if self.fails else None
        return tapes.kernel(
            library, self.item.name, self.types, self.params, outputs, self.results, self.as_tuple, fallback
        )


class _Otherwise:
    """The NumPy program of a section: it runs where the section cannot, and raises what there is to raise."""

    def __init__(self, section: Section, sites: Any) -> None:
        self.section, self.sites = section, sites
        inputs = enumerate(section.inputs)
        self.inputs = [(k, value.type) for k, value in inputs if not isinstance(value, Literal)]
        self.executable: Executable | None = None
        """Kept, for with it goes the text that errors quote."""

    def __call__(self, *arguments: Any) -> Any:
        if self.executable is None:
            self.executable = NUMPY.compile(self.section.program(), self.sites)
        found = self.executable.run(*[programs.as_given(arguments[k], type) for k, type in self.inputs])
        return found[0] if len(found) == 1 else found


def module_text(kernels: Sequence[_Kernel], program: Program) -> str:
    """The module of all kernels of a program."""
    entries = [kernel.entry() for kernel in kernels]
    dtypes = {value.type.dtype for kernel in kernels for value in (*kernel.item.inputs, *kernel.item.outputs)}
    dtypes |= {type.dtype for kernel in kernels for type in kernel.types}
    dtypes.add(WORDS.dtype)
    names = sorted({name for dtype in dtypes for name in dtype_symbols(dtype)})
    parts = [DECLARATIONS, *[f"{name} = external global i8" for name in names], program.text()]
    parts += [kernel.text for kernel in kernels]
    return "\n".join([*parts, *entries])


def wrapped(
    function: Function, kernels: Sequence[_Kernel], library: native.Library, sites: Any, shown: Callable[[], str]
) -> Executable:
    """The program around several kernels, as the NumPy backend writes it."""
    reserved = {kernel.item.name for kernel in kernels}
    program = generate(function, Names(HELPERS | reserved))
    file = f"<srcgrad {next(_numbers)} {program.name}>"
    names = program.namespace()
    names[SITES] = sites
    for kernel in kernels:
        otherwise = _Otherwise(kernel.item, sites) if isinstance(kernel.item, Section) else None
        names[kernel.item.name] = kernel.load(library, otherwise)
    exec(compile(program.text, file, "exec"), names)
    run = names[program.name]
    if any(operation.op is not FUSED for operation in function.operations):
        run = np.errstate(all="ignore")(run)
    executable = Executable(run, lambda: f"{program.text}\n{shown()}")
    linecache.cache[file] = (len(program.text), None, program.text.splitlines(keepends=True), file)
    weakref.finalize(executable, linecache.cache.pop, file, None).atexit = False
    return executable
