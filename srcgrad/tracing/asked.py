"""What Python asks a traced value for: its truth value, an integer, an index, an array, a text."""

from __future__ import annotations

import functools
import operator
import re
import sys
import types
import weakref
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from srcgrad.errors import ConcretizationError, ShapeError, SrcgradError, UnsupportedError
from srcgrad.ir.source import is_storing
from srcgrad.tracing.conversion.scipy_rules import load_scipy_rules
from srcgrad.tracing.conversion.sources import WITHOUT_SOURCE
from srcgrad.tracing.guards import answer
from srcgrad.tracing.shown_texts import shown, shows_all
from srcgrad.tracing.swallowed import is_caught
from srcgrad.tracing.trace import CURRENT, NeedsConcrete, asked_by_debugger, leaked
from srcgrad.tracing.unasked import is_among

if TYPE_CHECKING:
    from srcgrad.ir.types import ArrayType, DType
    from srcgrad.tracing.storage import Storage
    from srcgrad.tracing.tracer import Tracer
    from srcgrad.tracing.views import Chain


TOLD_THE_TRUTH: Final = frozenset({"srcgrad", "numpy", "scipy", "jax", "jaxlib", "json"})
"""The packages whose own code must know a traced value for what it is, or says of what class it is."""


WITHOUT_MASKED_ARRAYS: Final = (
    "keep the mask as an array of its own: np.sum(x, where=~mask), np.where(mask, 0.0, x), np.nanmean"
)
TO_ARRAYS: Final = (
    "join values with np.stack or np.concatenate; make the array to be filled with np.zeros_like(x); "
    "call NumPy and SciPy functions that srcgrad supports"
)
INTO_ARRAYS: Final = (
    "make the array that takes the values in the function, of floats, with np.zeros_like(x); in place of an array of "
    "records keep an array for each field"
)
TO_SCIPY: Final = "SciPy takes numbers only here: compute it outside, or give it a rule with custom_vjp or custom_jvp"


def is_scipys(frame: types.FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).startswith("scipy.")


def asked_by_scipy() -> bool:
    """Whether the caller's caller is code of SciPy's."""
    return is_scipys(sys._getframe(2))


def asks_for_scalars(frame: types.FrameType) -> bool:
    """Whether ``np.isscalar`` asks, but for a sparse matrix of SciPy's, which would take the number and keep it."""
    caller = frame.f_back
    return frame.f_code.co_name == "isscalar" and (caller is None or caller.f_code.co_name != "isscalarlike")


def left_to_operand() -> bool:
    """Whether an operator of a sparse matrix of SciPy's asks, which leaves the operation to what is no array."""
    frame = sys._getframe(2)
    return frame.f_code.co_name in ("_matmul_dispatch", "_divide") and is_scipys(frame)


def library_function(ruled: bool = False) -> str | None:
    """The public name of the function of NumPy's or SciPy's, written in Python, that the user's code has called; if not
    ``ruled``, one without a rule.
    """
    frame, found = sys._getframe(1), None
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        package = module.partition(".")[0]
        if package in ("numpy", "scipy"):
            wrapped = [frame.f_locals.get(name) for name in frame.f_code.co_freevars]  # by a decorator
            functions = [item for item in wrapped if isinstance(item, types.FunctionType)]
            names = [(module, frame.f_code.co_qualname), *((item.__module__, item.__qualname__) for item in functions)]
            owner = frame.f_locals.get("self")
            kind = type(getattr(owner, "dist", owner))
            if kind.__module__.startswith("scipy.stats."):  # of a distribution, whose class inherits the method
                names.insert(0, (kind.__module__, f"{kind.__name__}.{frame.f_code.co_name}"))
            if frame.f_code.co_name == "__call__":  # of an object that stands for a function
                names.append((module, str(getattr(frame.f_locals.get("self"), "__name__", ""))))
            found = next(filter(None, (public_name(*name, ruled) for name in names)), found)
        elif package != "srcgrad" or module == "srcgrad.transformed":  # what calls that has no part in the trace
            break
        frame = frame.f_back  # type: ignore[assignment]
    return found


def public_name(module: str, name: str, ruled: bool) -> str | None:
    """What users call a function by; None for what is inside others, and where its package does not have it."""
    package = re.split(r"\._", module)[0]
    owner, _, method = name.removesuffix(".__new__").rpartition(".")
    parts = [*filter(None, [re.sub("_(gen|frozen)$", "", owner), method])]
    found: Any = sys.modules.get(package)
    for part in parts:
        found = getattr(found, part, None)
    if not callable(found) or method.startswith("_") or (not ruled and has_rule(found)):
        return None
    return f"{package}.{'.'.join(parts)}".replace("numpy", "np", 1).replace("np.ma.core.", "np.ma.")


def has_rule(function: Any) -> bool:
    """Whether code that is converted finds a rule for a function, which here was run as it is."""
    from srcgrad.tracing.tracer import FUNCTIONS

    load_scipy_rules(function)
    return is_among(function, FUNCTIONS)


@functools.lru_cache(1024)
def is_told(module: str) -> bool:
    """Whether a module of this name is of a package that is told the truth: asked a dozen times for each index."""
    return module.partition(".")[0] in TOLD_THE_TRUTH


def require_no_digits(x: Tracer, name: str) -> None:
    """Refuse a method that numbers have and arrays have not: ``x.hex()``, ``x.as_integer_ratio()``.

    Raises:
        UnsupportedError: it is one.
    """
    cls = concrete_class(x)
    if hasattr(cls, name):
        raise UnsupportedError(
            f"{cls.__name__}.{name} is not supported on a traced number",
            hint="it reads the digits of the number, which have no derivative: ask for it outside of the function",
        )


def concrete_class(x: Any) -> type:
    """The class of the object that a traced value stands for."""
    if x.weak:
        return {"f": float, "c": complex, "i": int, "b": bool}[x.dtype.kind]
    found: type = x.dtype.type if x.scalar else np.ndarray
    return found


def if_unfollowed(hint: str) -> str:
    """What to do: to give the function that asks a source, where it is run as it is because it has none, for then its
    arrays are NumPy's; else ``hint``.
    """
    from srcgrad.tracing.conversion.convert import convert_code  # which is written with traced values

    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in ("srcgrad", "numpy", "scipy"):
        frame = frame.f_back
    if frame is None or convert_code(frame.f_code, frame.f_code.co_filename) != WITHOUT_SOURCE:
        return hint
    name = frame.f_code.co_qualname
    return (
        f"the source of {name} is not available, so that arrays made and functions called in it are not followed: "
        "put it into a file (functions of exec, python -c and some shells have no source)"
    )


def shown_of(value: Asked, text: str) -> str:
    """The text of a value with all its digits, which remembers the trace if the value has a derivative.

    Raises:
        SrcgradError: it has one, and a number is read of the text.
    """
    if cast("Tracer", value).dtype.kind not in "fc":
        return text
    from srcgrad.tracing.evaluated_texts import is_evaluated  # which is written with traced values

    if is_evaluated(sys._getframe(1)):
        message = "eval() of the text of a traced value would lose its derivative"
        raise value.escape(message, "evaluate what names the value, as eval('x * 2')", True)
    return shown(text, weakref.ref(value.storage.trace))


def escaped(own: Any, message: str, hint: str, plainly: bool, frame: types.FrameType) -> SrcgradError:
    """The error of a conversion in a frame that would lose the derivative of a value of the trace ``own``.

    In an abstract trace the value may be one that is not differentiated: traced again, it is an ordinary array.
    """
    trace = CURRENT.get()
    if trace is None or not own.alive:
        return leaked(own)
    hint = if_unfollowed(hint)
    if not trace.concrete:
        return NeedsConcrete(message, hint=hint)
    trace.refused = ConcretizationError(message, hint=hint)
    trace.refused.storing = is_storing(frame)
    if plainly and is_caught(frame):
        trace.swallowed = trace.swallowed or trace.refused
    return trace.refused


class Asked:
    """The part of a `Tracer` that answers with its number, where that is known."""

    __slots__ = ()

    if TYPE_CHECKING:
        storage: Storage
        chain: Chain
        type: ArrayType
        scalar: bool
        weak: bool

        @property
        def size(self) -> int: ...
        @property
        def ndim(self) -> int: ...
        @property
        def dtype(self) -> DType: ...
        def number(self) -> Any: ...

    else:

        @property
        def __class__(self):
            """What ``isinstance`` asks where ``type`` does not answer: in the user's code, the class stood for."""
            frame = sys._getframe(1)
            module = frame.f_globals.get("__name__")
            while module == "abc" and frame.f_back is not None:
                frame = frame.f_back
                module = frame.f_globals.get("__name__")
            truth = type(module) is str and is_told(module) and not asks_for_scalars(frame)
            return type(self) if truth else concrete_class(self)

    def concrete(self, what: str) -> Any:
        """The known number; where one path is traced, Python's question for it is a guard.

        Raises:
            NeedsConcrete: in an abstract trace.
        """
        number = self.number()
        if number is None:
            number = answer(cast("Tracer", self), what)
        if number is None:
            raise NeedsConcrete(
                f"{what} needs the value of a traced {self.type}",
                hint="the value is known only when the program runs",
            )
        return number

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ShapeError(
                "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"
            )
        return bool(self.concrete("bool()"))

    def __int__(self) -> int:
        return int(self.concrete("int()"))

    def __trunc__(self) -> int:
        return int(self)

    def __index__(self) -> int:
        if self.dtype.kind not in "iu" or self.ndim:
            raise self.escape(
                "only integer scalar arrays can be converted to a scalar index",
                f"this is {self.type}: int(x) is an integer without a derivative",
            )
        return operator.index(self.concrete("an index")[()])

    def escape(self, message: str, hint: str, plainly: bool = False) -> SrcgradError:
        """The error of a conversion that would lose the derivative. ``plainly``: of the number itself there is none."""
        return escaped(self.storage.trace, message, hint, plainly, sys._getframe(1))

    def __float__(self) -> float:
        if self.dtype.kind in "biu" or asked_by_debugger():  # it has no derivative to lose
            return float(self.concrete("float()"))
        raise self.escape(
            "float() of a traced value would lose its derivative",
            TO_SCIPY if asked_by_scipy() else "use the value as it is, np functions in place of math ones",
            self.ndim == 0,
        )

    def __complex__(self) -> complex:
        raise self.escape(
            "complex() of a traced value would lose its derivative", "use the value as it is", self.ndim == 0
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if left_to_operand():
            return np.array(None, object)
        if asked_by_debugger():
            return np.array(self.concrete("an array"), dtype)
        if self.dtype.kind in "biu":
            return self.unwritten(np.array(self.concrete("an array"), dtype), copy)
        name = library_function()
        if name is not None:
            if name.startswith("np.ma."):
                raise self.escape(f"{name} makes masked arrays, which are not supported", WITHOUT_MASKED_ARRAYS)
            raise self.escape(
                f"{name} has no derivative rule in srcgrad",
                "write it with functions that have one, or give it a rule with custom_jvp or custom_vjp",
            )
        raise self.escape(
            "a traced value cannot become a concrete ndarray (np.array, np.asarray, or code in C)",
            TO_SCIPY if asked_by_scipy() else INTO_ARRAYS if is_storing(sys._getframe(1)) else TO_ARRAYS,
            True,
        )

    def unwritten(self, numbers: Any, copy: bool | None) -> Any:
        """The numbers, which stand for this array where no copy is asked for: what code in C writes would be lost."""
        if not copy and numbers.dtype == self.dtype and numbers.ndim:
            from srcgrad.tracing.storage import Watched  # which is written with traced values

            before = numbers.copy()
            unchanged = functools.partial(np.array_equal, before)
            self.storage.trace.watched.append(Watched(numbers, unchanged, "a traced array"))
        return numbers

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise self.escape(
            "a traced value cannot be pickled", "leave what writes values to a file or to another process out"
        )

    def printed(self, what: str) -> Any:
        """What a text of this value shows: the number, as the kind of object that it stands for."""
        number = self.concrete(what)
        return number.item() if self.weak else number

    def __repr__(self) -> str:
        trace = CURRENT.get()
        if trace is None or not self.storage.trace.alive:  # in a traceback or a debugger
            number = None if self.chain else self.storage.trace.builder.number(self.storage.value)
            return f"Tracer({self.type})" if number is None else f"Tracer({self.type}, {number})"
        return shown_of(self, repr(self.printed("repr()")))

    def __str__(self) -> str:
        return shown_of(self, str(self.printed("str()")))

    def __format__(self, spec: str) -> str:
        found = format(self.printed("formatting"), spec)
        return shown_of(self, found) if self.dtype.kind in "fc" and shows_all(spec) else found
