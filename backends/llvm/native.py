"""Machine code from modules, and kernels as Python callables.

A kernel is a built-in function over its entry point (``entry.py``), where objects lie in memory as that expects; where
they do not, as on free-threaded Python, it is a Python function that hands pointers to the loops through ctypes.
"""

from __future__ import annotations

import ctypes
import os
import sys
import sysconfig
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

import llvmlite.binding as llvm  # type: ignore[import-untyped]
import numpy as np

from srcgrad.backends.llvm import entry, memory, objects, pool_text, workers
from srcgrad.backends.llvm.emission import object_file
from srcgrad.backends.llvm.target import TARGET
from srcgrad.ir.errors import InternalError
from srcgrad.ir.types import DTYPES, ArrayType

_METH_FASTCALL: Final = 0x80
_NEW_FROM_DESCR: Final = 94
_SCALAR: Final = 60
_NEW_COPY: Final = 85
_GET_HANDLER: Final = 305
_DEFAULT_HANDLER: Final = 306
"""Places in NumPy's table of functions for extensions."""
_ALLOC, _FREE = 47, 74
"""Numbers of a class's slots, of Python's stable interface: what makes room for an instance, and what frees it."""
IN_LLVM: Final = threading.RLock()
"""What a thread has while it compiles, but the second one of a compilation, which has the next."""
ASIDE_IN_LLVM: Final = threading.RLock()
_CALLS: Final = getattr(llvm.ffi.lib, "_lock", IN_LLVM)
"""llvmlite's own lock, which it takes for each call of LLVM."""
if hasattr(os, "register_at_fork"):  # so that no child begins with locks held by threads that it has not
    for lock in (_CALLS, ASIDE_IN_LLVM, IN_LLVM):  # forks take the last one first, as all others do
        os.register_at_fork(before=lock.__enter__, after_in_parent=lock.__exit__, after_in_child=lock.__exit__)
_FUNCTIONS: Final = (
    "PyTuple_New", "_PyObject_New", "PyMem_RawMalloc", "PyEval_SaveThread", "PyEval_RestoreThread",
    "PyObject_Vectorcall", "Py_IncRef", "Py_DecRef", "PyTraceMalloc_Track",
)  # fmt: skip
_ALWAYS: Final = (
    "PyGILState_Ensure", "PyGILState_Release", "PyErr_Format", "PyErr_CheckSignals", "PyExc_MemoryError",
)  # fmt: skip
"""What loops call too, which run where layouts are not known."""


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def layout_is_known() -> bool:
    """Whether arrays, scalars and tuples have their fields where entry points look for them."""
    if sysconfig.get_config_var("Py_GIL_DISABLED") or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    if sys.implementation.name != "cpython":
        return False
    array = np.arange(6.0).reshape(2, 3)
    number, pair = np.float64(2.5), (array, array)
    turned, one = (complex(2.5, 2.5), np.complex128(2.5 + 2.5j)), int(number.view(np.int64))

    orders = [np.dtype(np.float64), np.dtype(bool), np.dtype(">f8")]

    def word(object: Any, offset: int) -> int:
        return int(ctypes.c_int64.from_address(id(object) + offset).value)

    dims, strides = word(array, entry.DIMS), word(array, pool_text.STRIDES_FIELD)
    return (
        word(array, entry.TYPE) == id(np.ndarray)
        and word(array, entry.DATA) == array.ctypes.data
        and ctypes.c_int32.from_address(id(array) + entry.RANK).value == 2
        and [ctypes.c_int64.from_address(dims + 8 * k).value for k in range(2)] == [2, 3]
        and [ctypes.c_int64.from_address(strides + 8 * k).value for k in range(2)] == [24, 8]
        and word(array, entry.DESCR) == id(np.dtype(np.float64))
        and word(array.dtype, entry.SCALARS) == id(np.float64)
        and [ctypes.c_char.from_address(id(dtype) + entry.ORDER).value for dtype in orders] == [b"=", b"|", b">"]
        and ctypes.c_int32.from_address(id(array) + entry.FLAGS).value == array.flags.num
        and word(np.ones(3), pool_text.HANDLER_FIELD) == id(_numpy_function(_GET_HANDLER, ctypes.py_object)())
        and ctypes.c_double.from_address(id(number) + entry.NUMBER).value == 2.5
        and ctypes.c_double.from_address(id(2.5) + entry.NUMBER).value == 2.5
        and [word(value, entry.NUMBER + place) for value in turned for place in (0, 8)] == [one] * 4
        and word(pair, entry.ITEMS) == id(array)
    )


def arrays_are_known() -> bool:
    """Whether an array is the fields of `pool_text` and no more, made and freed as machine code does it."""
    handler, array = _numpy_handler(), np.empty((2, 3), np.float32)
    fields = (ctypes.c_int64 * (pool_text.ARRAY_SIZE // 8)).from_address(id(array))
    found = {place: fields[place // 8] for place in range(16, pool_text.ARRAY_SIZE, 8)}
    dims, strides = found[pool_text.DIMS_FIELD], found[pool_text.STRIDES_FIELD]
    slot = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_int)(("PyType_GetSlot", ctypes.pythonapi))
    return (
        np.ndarray.__basicsize__ == pool_text.ARRAY_SIZE
        and slot(np.ndarray, _ALLOC) == _python_address("PyType_GenericAlloc")
        and slot(np.ndarray, _FREE) == _python_address("PyObject_Free")
        and memory.handler_of(handler).context is None
        and not any(found[place] for place in (pool_text.WEAK_FIELD, pool_text.BUFFER_FIELD, pool_text.BASE_FIELD))
        and found[pool_text.DATA_FIELD] == array.ctypes.data
        and found[pool_text.RANK_FIELD] & 0xFFFFFFFF == 2
        and strides == dims + 16
        and list((ctypes.c_int64 * 4).from_address(dims)) == [2, 3, 12, 4]
        and found[pool_text.DESCR_FIELD] == id(array.dtype)
        and found[pool_text.FLAGS_FIELD] & 0xFFFFFFFF == array.flags.num
        and found[pool_text.HANDLER_FIELD] == id(handler)
    )


def _numpy_place(place: int) -> int:
    """What is in this place of NumPy's table for extensions."""
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    capsule = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]
    table = get(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, None)
    return int(ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))[place])


def _numpy_function(place: int, *types: Any) -> Any:
    return ctypes.PYFUNCTYPE(*types)(_numpy_place(place))


def _numpy_handler() -> Any:
    """The capsule of the memory handler that NumPy has where nobody chooses another."""
    return ctypes.py_object.from_address(_numpy_place(_DEFAULT_HANDLER)).value


def _python_address(name: str) -> int:
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


def _add_symbols() -> None:
    symbols = {name: _python_address(name) for name in _FUNCTIONS}
    symbols["PyArray_NewFromDescr"] = _numpy_place(_NEW_FROM_DESCR)
    symbols["PyArray_Scalar"] = _numpy_place(_SCALAR)
    symbols["PyArray_NewCopy"] = _numpy_place(_NEW_COPY)
    symbols["PyArray_Type"], symbols["PyFloat_Type"], symbols["PyComplex_Type"] = id(np.ndarray), id(float), id(complex)
    if ARRAYS_ARE_KNOWN:
        handler = _numpy_handler()
        symbols["srcgrad_numpy_handler"] = id(handler)
        symbols["srcgrad_numpy_malloc"] = memory.handler_of(handler).malloc
    symbols["srcgrad_true"], symbols["srcgrad_failed"] = id(True), id(entry.FAILED)
    for dtype in DTYPES.values():
        name, scalar = entry.dtype_symbols(dtype)
        symbols[name[1:]], symbols[scalar[1:]] = id(dtype), id(dtype.type)
    for name, address in symbols.items():
        llvm.add_symbol(name, address)


LAYOUT_IS_KNOWN: Final = layout_is_known()
ARRAYS_ARE_KNOWN: Final = LAYOUT_IS_KNOWN and arrays_are_known()
_KEPT: Final = (*DTYPES.values(), _numpy_handler())
for always in _ALWAYS:
    llvm.add_symbol(always, _python_address(always))
if LAYOUT_IS_KNOWN:
    _add_symbols()


def machine_code(text: str) -> bytes:
    """A module as an object file."""
    return object_file(text, TARGET)


def kept_code(text: str) -> bytes:
    """The object file of a module, from disk if it is there."""
    store, key = objects.current(), objects.fingerprint(text, TARGET)
    code = store.load(key)
    if code is None:
        with IN_LLVM:
            code = machine_code(text)
        store.save(key, code)
    return code


def prepare(text: str) -> None:
    """What must be there before a module is loaded."""
    if workers.SYMBOL in text:
        workers.prepare(Library)


class Library:
    """The machine code of one program, from its modules or their object files: it lives as long as a kernel of it."""

    __slots__ = ("engine",)

    def __init__(self, *modules: str | bytes) -> None:
        codes = []
        for module in modules:
            if isinstance(module, str):
                prepare(module)
                module = kept_code(module)
            codes.append(module)
        with IN_LLVM:
            # An engine begins with a module, over which it would run its passes, and owns a machine: nothing is
            # generated here, so the module goes, and the machine is any one, without a hundred features to be read.
            self.engine = llvm.create_mcjit_compiler(empty := llvm.parse_assembly(""), TARGET.plain_machine())
            self.engine.remove_module(empty)
            for code in codes:
                self.engine.add_object_file(llvm.ObjectFileRef.from_data(code))
            self.engine.finalize_object()

    def address(self, name: str) -> int:
        return int(self.engine.get_function_address(name))


def kernel(
    library: Library, name: str, params: Sequence[ArrayType], inputs: Sequence[int], outputs: Sequence[ArrayType],
    results: Sequence[int], as_tuple: bool, otherwise: Callable[..., Any] | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """A kernel as a callable of one array or NumPy scalar per parameter.

    ``inputs``: the parameter of each of its inputs; ``results``: the output of each result. ``otherwise`` runs where
    the loops say so; without it they give no status.
    """
    slow = python_kernel(library, name, params, inputs, outputs, results, as_tuple, otherwise)
    return builtin(library, name, slow) if LAYOUT_IS_KNOWN else slow


def python_kernel(
    library: Library, name: str, params: Sequence[ArrayType], inputs: Sequence[int], outputs: Sequence[ArrayType],
    results: Sequence[int], as_tuple: bool, otherwise: Callable[..., Any] | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """The kernel as a Python function, which takes anything that NumPy makes the right arrays of."""
    kind = ctypes.CFUNCTYPE if otherwise is None else ctypes.PYFUNCTYPE  # which raises what is set
    run = kind(ctypes.c_int32, ctypes.c_void_p)(library.address(f"{name}_block"))
    pointers = ctypes.c_void_p * (len(inputs) + len(outputs))
    owner = library

    def call(*arguments: Any, failed: bool = False) -> Any:
        if failed and otherwise is not None:  # the loops have said so already
            return otherwise(*arguments)
        if len(arguments) != len(params):
            raise InternalError(f"{name} takes {len(params)} arrays, not {len(arguments)} ({owner!r})")
        arrays = [
            np.require(argument, type.dtype, ["C", "A"]) for argument, type in zip(arguments, params, strict=True)
        ]
        for array, type in zip(arrays, params, strict=True):
            if array.shape != type.shape:
                raise InternalError(f"{name} takes {type}, not an array of shape {array.shape}")
        made = [POOL.empty(type.static_shape, type.dtype) for type in outputs]
        block = pointers(*[arrays[k].ctypes.data for k in inputs], *[array.ctypes.data for array in made])
        if run(ctypes.addressof(block)) == entry.IN_PYTHON and otherwise is not None:
            return otherwise(*arguments)
        found = [made[k] if made[k].ndim else made[k][()] for k in results]
        return found[0] if len(found) == 1 and not as_tuple else tuple(found)

    return call


def builtin(library: Library, name: str, slow: Callable[..., Any]) -> Callable[..., Any]:
    """A built-in function over the entry point; it holds ``slow``, which holds what both need."""
    definition = _MethodDef(name.encode(), library.address(name), _METH_FASTCALL, None)
    slow.__dict__.update(definition=definition, table=library.engine.get_global_value_address(f"{name}_call"))
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    make = new(("PyCFunction_NewEx", ctypes.pythonapi))
    return make(ctypes.addressof(definition), slow, None)  # type: ignore[no-any-return]


def _start() -> memory.Pool:
    """Load what all programs share: the pool, and entry functions' common part."""
    for name, address in memory.library_symbols().items():
        llvm.add_symbol(name, address)
    library = Library(pool_text.pool_text(LAYOUT_IS_KNOWN, ARRAYS_ARE_KNOWN) + (entry.ENTER if LAYOUT_IS_KNOWN else ""))
    pool = memory.Pool(library, LAYOUT_IS_KNOWN)
    shared = dict(pool.symbols)
    if LAYOUT_IS_KNOWN:
        shared["srcgrad_enter"] = library.address("srcgrad_enter")
    for name, address in shared.items():
        llvm.add_symbol(name, address)
    return pool


POOL: Final = _start()
"""The memory of large results and arenas."""
