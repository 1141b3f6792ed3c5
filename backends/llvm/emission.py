"""A module of LLVM IR as an object file, while other threads make others.

llvmlite lets one thread at a time call LLVM, since its modules share one context. Threads that share none may compile
side by side, as LLVM's manual says: so each module has a context of its own here, and what takes long is called past
llvmlite's lock, in the same library. What is short keeps the interpreter's lock: a thread that gives it up while
another one runs Python waits 5 ms until it has it again.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import llvmlite.binding as llvm  # type: ignore[import-untyped]

from srcgrad.backends.llvm.target import Target, level_of

_POINTER: Final = ctypes.c_void_p
_MESSAGE: Final = ctypes.POINTER(ctypes.c_void_p)
_SHORT: Final[dict[str, tuple[Any, ...]]] = {
    "ContextCreate": (_POINTER,),
    "ContextDispose": (None, _POINTER),
    "DisposeModule": (None, _POINTER),
    "SetTarget": (None, _POINTER, ctypes.c_char_p),
    "SetDataLayout": (None, _POINTER, ctypes.c_char_p),
    "GetBufferStart": (_POINTER, _POINTER),
    "GetBufferSize": (ctypes.c_size_t, _POINTER),
    "DisposeMemoryBuffer": (None, _POINTER),
    "DisposeString": (None, _POINTER),
}
_LONG: Final[dict[str, tuple[Any, ...]]] = {
    "ParseAssembly": (_POINTER, _POINTER, ctypes.c_char_p, _MESSAGE),
    "VerifyModule": (ctypes.c_bool, _POINTER, _MESSAGE),
    "TargetMachineEmitToMemory": (_POINTER, _POINTER, _POINTER, ctypes.c_int, _MESSAGE),
}
"""What functions of llvmlite's library return and take, by their names after ``LLVMPY_``."""


def functions() -> dict[str, Callable[..., Any]] | None:
    """The functions, past the lock; None where llvmlite does not show its library, or has others."""
    try:
        library = ctypes.CDLL("llvmlite", handle=llvm.ffi.lib._handle)
        found: dict[str, Callable[..., Any]] = {}
        for kind, table in ((ctypes.PYFUNCTYPE, _SHORT), (ctypes.CFUNCTYPE, _LONG)):
            for name, (result, *arguments) in table.items():
                found[name] = kind(result, *arguments)((f"LLVMPY_{name}", library))
    except AttributeError:
        return None
    return found


FUNCTIONS: Final = functions()


class Machine:
    """A machine of LLVM's, and what it says of modules."""

    __slots__ = ("layout", "machine", "triple")

    def __init__(self, target: Target, level: int) -> None:
        self.machine = target.machine(level)
        self.triple = self.machine.triple.encode()
        """On Windows it is of another object format than the system's."""
        self.layout = str(self.machine.target_data).encode()


_MACHINES: Final[dict[tuple[str, str, str, int], deque[Machine]]] = {}
"""Machines that no thread uses, by what they make: a new one is many short calls of llvmlite's."""


def object_file(text: str, target: Target, known: dict[str, Callable[..., Any]] | None = FUNCTIONS) -> bytes:
    """A module's object file.

    Raises:
        RuntimeError: LLVM does not take the text.
    """
    level = level_of(text)
    free = _MACHINES.setdefault((target.triple, target.cpu, target.flags, level), deque())
    try:
        machine = free.pop()
    except IndexError:
        machine = Machine(target, level)
    found = _emitted(text, machine, known) if known is not None else _through_llvmlite(text, machine)
    free.append(machine)
    return found


def _through_llvmlite(text: str, machine: Machine) -> bytes:
    module = llvm.parse_assembly(text, llvm.create_context())
    module.triple = machine.triple.decode()
    module.verify()
    module.data_layout = machine.layout.decode()
    return bytes(machine.machine.emit_object(module))


def _emitted(text: str, machine: Machine, known: dict[str, Callable[..., Any]]) -> bytes:
    context, module = known["ContextCreate"](), None
    try:
        module = _asked(known, "ParseAssembly", context, text.encode())
        known["SetTarget"](module, machine.triple)
        _asked(known, "VerifyModule", module)
        known["SetDataLayout"](module, machine.layout)
        buffer = _asked(known, "TargetMachineEmitToMemory", machine.machine, module, 1)
        found = ctypes.string_at(known["GetBufferStart"](buffer), known["GetBufferSize"](buffer))
        known["DisposeMemoryBuffer"](buffer)
    finally:
        if module:
            known["DisposeModule"](module)
        known["ContextDispose"](context)
    return found


def _asked(known: dict[str, Callable[..., Any]], name: str, *arguments: Any) -> Any:
    """What a function returns that may write a message, which says what is wrong: then it is an error."""
    message = ctypes.c_void_p()
    found = known[name](*arguments, ctypes.byref(message))
    shown = ""
    if message.value:
        shown = ctypes.string_at(message.value).decode(errors="replace")
        known["DisposeString"](message)
    if found if name == "VerifyModule" else not found:
        raise RuntimeError(f"LLVM does not take a module ({name}): {shown}")
    return found
