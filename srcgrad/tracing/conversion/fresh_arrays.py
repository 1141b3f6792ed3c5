"""New arrays of NumPy's that a function writes traced values into: they are traced constants from then on."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from srcgrad.errors import ConcretizationError
from srcgrad.tracing.trace import CURRENT
from srcgrad.tracing.tracer import Deferring, Tracer, from_value
from srcgrad.tracing.ufuncs import require_traced_out
from srcgrad.tracing.unasked import attribute


def lifted(array: Any) -> Any:
    """A new array that the function writes into, as a traced constant; anything else as it is."""
    if type(array) is not np.ndarray or array.dtype.kind not in "biufc" or CURRENT.get() is None:
        return array
    trace = CURRENT.get()
    if trace is None:
        return array
    return from_value(trace.constant(array))


def references(array: Any) -> int:
    """What Python counts for an argument that its caller has not kept."""
    return sys.getrefcount(array)


def references_of_base(array: Any) -> int:
    return sys.getrefcount(array.base)


def references_within(array: Any) -> int:
    return references(array)


UNKEPT: Final = references_within(np.zeros(2) + 1)
UNKEPT_BASE: Final = references_of_base((np.zeros(2) + 1).reshape(2, 1))


def is_new(array: Any) -> bool:
    """Whether the caller's argument is an array of floats that may be written into, which nothing else holds."""
    if type(array) is not np.ndarray or array.dtype.kind not in "fc" or sys.getrefcount(array) > UNKEPT:
        return False
    if array.base is None:
        own = array.flags.owndata
    else:
        own = type(array.base) is np.ndarray and array.base.flags.owndata and references_of_base(array) <= UNKEPT_BASE
    return own and array.flags.writeable


def fresh(array: Any, sources: Callable[[], tuple[Any, ...]]) -> Any:
    """`lifted`, of a new array, if any of the sources is traced; else as it is."""
    return lifted(array) if is_new(array) and any(may_be_traced(source, 3) for source in sources()) else array


def made_here(array: Any) -> Any:
    """`lifted`, of a new array that a function of NumPy's has made, in a trace that lifts all of them."""
    trace = CURRENT.get()
    return lifted(array) if trace is not None and trace.lifting and is_new(array) else array


def writes_into_constant(error: BaseException) -> bool:
    """Whether an error says that a traced value was to be written into an array that is NumPy's own.

    The trace begins again then and lifts the arrays that it makes. Not all traces do: of a small array a trace knows
    the numbers, which Python or code in C may ask for.
    """
    if isinstance(error, ConcretizationError):
        return error.storing
    step = error.__traceback__
    while step is not None and step.tb_frame.f_code is not require_traced_out.__code__:
        step = step.tb_next
    return step is not None


def kept(array: Any, containers: Callable[[], tuple[Any, ...]]) -> Any:
    """`lifted`, of a new array that an object of the user's, a dict or a list gets, where numbers are known anyway."""
    trace = CURRENT.get()
    if trace is None or not (trace.concrete or trace.lifting) or not is_new(array):
        return array
    foreign = any(type(x).__module__.partition(".")[0] in ("numpy", "scipy", "jax") for x in containers())
    return array if foreign else lifted(array)  # an array would ask for its numbers


def may_be_traced(x: Any, depth: int) -> bool:
    """Whether a value is traced, or leads to one that is."""
    if isinstance(x, (Tracer, Deferring)) or attribute(type(x), "__srcgrad_unfinished__"):
        return True
    if depth == 0 or isinstance(x, (np.ndarray, np.generic, str, int, float, complex, type, types.ModuleType)):
        return False
    if isinstance(x, dict):
        x = list(x.values())
    elif isinstance(x, types.FunctionType):
        x = [cell.cell_contents for cell in x.__closure__ or () if cell != types.CellType()]
    elif isinstance(x, types.MethodType):
        x = [x.__self__]
    elif not isinstance(x, (list, tuple, set)):
        slots = [vars(cls).get("__slots__", ()) for cls in type(x).__mro__]
        names = [name for found in slots for name in ((found,) if isinstance(found, str) else found)]
        x = [*attribute(x, "__dict__", {}).values(), *(attribute(x, name) for name in names)]
    return any(may_be_traced(part, depth - 1) for part in x)
