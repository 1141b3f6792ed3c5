"""Special functions that are no ufuncs of SciPy: loops that call the functions of its ``cython_special``."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, Final

from srcgrad.backends.llvm import scalars
from srcgrad.backends.llvm.emitter import F32, F64, Number
from srcgrad.backends.llvm.steps import Step, StepWriter
from srcgrad.backends.llvm.steps.body import Body
from srcgrad.backends.llvm.target import Target
from srcgrad.ir.core import Operation
from srcgrad.ir.types import INT64

SPHERICAL: Final = {"spherical_jn": 1.0, "spherical_yn": -1.0, "spherical_in": 1.0, "spherical_kn": None}
"""The functions, and by what those of even order change where the sign of the argument does (DLMF 10.47)."""
_SIGNATURE: Final = "double (Py_ssize_t, double, int __pyx_skip_dispatch, struct "
"""How the signature of each begins; the last argument points to optional ones, and is null."""


@cache
def address(name: str) -> int | None:
    """The address of a spherical Bessel function of real numbers; None where this SciPy has it otherwise."""
    import scipy.special.cython_special

    capsule: Any = scipy.special.cython_special.__pyx_capi__.get(f"__pyx_fuse_1{name}")
    if capsule is None:
        return None
    api = ctypes.pythonapi
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", api))
    signature = name_of(capsule)
    return int(pointer_of(capsule, signature)) if signature.decode().startswith(_SIGNATURE) else None


def spherical_of(kind: str) -> int | None:
    """The same by what follows ``spherical_``."""
    return address(f"spherical_{kind}")


@cache
def reflects(name: str) -> bool:
    """Whether this SciPy's function of an argument below 0 is that above, by the sign of its parity."""
    import scipy.special

    sign, function = SPHERICAL[name], getattr(scipy.special, name)
    return sign is not None and all(function(n, -1.5) == sign * (-1) ** n * function(n, 1.5) for n in (1, 2))


def spherical(operation: Operation, name: str, target: Target) -> Step | None:
    """One call per element, in float64."""
    w = Body(operation, name, target)
    order, dtype = w.types[0].dtype, w.types[1].dtype
    function = address(operation.op.name)
    if function is None or order.kind not in "iu" or dtype not in (F64, F32) or w.results[0].dtype != dtype:
        return None
    symbol = f"srcgrad_{operation.op.name}"
    w.symbols[symbol] = function
    w.e.declarations.add(f"declare double @{symbol}(i64, double, i32, ptr)")

    even = SPHERICAL[operation.op.name]

    def element(k: Number) -> None:
        e, n, x = w.e, scalars.cast(w.e, w.read(0, k), INT64), scalars.cast(w.e, w.read(1, k), F64)
        below = e.compare("olt", x, 0.0)
        if even is None or not reflects(operation.op.name):
            w.require(e.invert(below))  # SciPy goes through complex numbers
        argument = e.select(below, e.neg(x), x)
        text = e.emit(f"call double @{symbol}(i64 {n.text}, double {argument.text}, i32 0, ptr null)")
        found, odd = Number(text, F64, 1), e.compare("ne", e.integer("and", n, w.i64(1)), 0)
        turns = odd if even == 1.0 else e.invert(odd)
        found = e.select(e.binary("and", below, turns), e.neg(found), found)
        w.write(k, scalars.cast(e, found, dtype))

    w.each(w.results[0].size, element)
    return w.finish(in_place=1)


WRITERS: Final[dict[str, StepWriter]] = dict.fromkeys(SPHERICAL, spherical)
