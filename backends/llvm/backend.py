"""Programs as sections of machine code, and NumPy lines for what has no native form."""

from __future__ import annotations

from typing import Any, Final

from srcgrad.backends.base import Backend, Executable
from srcgrad.backends.llvm import native, programs
from srcgrad.ir.collector import without_gc
from srcgrad.ir.core import Function


class LlvmBackend(Backend):
    """Runs what has a native form as machine code; the rest as the NumPy backend does."""

    name = "llvm"

    @without_gc()
    def compile(self, function: Function, sites: Any = None) -> Executable:
        key = programs.key_of(function)
        known = programs.found(key, function, sites, lambda: _shown(function)) if key is not None else None
        if known is not None:
            return known
        from srcgrad.backends.llvm.written import compiled  # and all that writes text

        return compiled(function, sites, key)

    def release(self) -> None:
        native.POOL.release()


def _shown(function: Function) -> str:
    from srcgrad.backends.llvm.written import Written

    return Written(function).shown()


BACKEND: Final = LlvmBackend()
