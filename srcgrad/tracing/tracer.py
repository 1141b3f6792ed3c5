"""The traced array: what user code holds in place of an ndarray or a number.

A `Tracer` is a handle, (storage, view chain). It behaves as the NumPy object it stands for: an ndarray, a NumPy
scalar (``scalar``: immutable, so that ``x += 1`` rebinds), or a Python float or complex (``weak``: it takes the dtype
of what it meets).
"""

from __future__ import annotations

from collections import UserList, deque
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from srcgrad.errors import (
    MutationError,
    NoAttributeError,
    ShapeError,
    UnsupportedError,
)
from srcgrad.ir.core import Literal, Value
from srcgrad.ir.errors import nearest_hint
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.registry import Registry
from srcgrad.ir.types import ArrayType, DType, dtype_name
from srcgrad.tracing.asked import Asked
from srcgrad.tracing.built_on import items_in
from srcgrad.tracing.doubts import require_number
from srcgrad.tracing.flags import BYTES_HINT, Flags, setflags
from srcgrad.tracing.jax_arrays import is_jax_array
from srcgrad.tracing.kept import KeptTape
from srcgrad.tracing.layout import (
    elementwise_strides,
    order_name,
    strides_of,
    uninitialised,
)
from srcgrad.tracing.reshaping import Reshaped
from srcgrad.tracing.storage import Storage
from srcgrad.tracing.subclasses import array_of, dtype_of_view
from srcgrad.tracing.trace import CURRENT, Refused, current_trace, leaked
from srcgrad.tracing.views import Chain, NumbersView, PartView, ReshapeView, View, put_through, seen_of

if TYPE_CHECKING:
    from srcgrad.tracing.affine import Affine
    from srcgrad.tracing.magnitude import Shares

SAVING: Final = "save what the transformed function returns (has_aux=True returns more), after the call"
NO_LENGTH: Final = (
    "a number has none: where the line calls another package, as torch or jax, that takes no traced values, use "
    "NumPy's functions, or put it into a function that custom_vjp or custom_jvp gives a rule"
)
DISPATCHED: Final = type(np.sum)
"""The class of NumPy's functions that ask their arguments for a rule."""
FUNCTIONS: Final[Registry[Callable[..., Any], Callable[..., Any]]] = Registry(
    lambda function: isinstance(function, DISPATCHED) or (isinstance(function, np.ufunc) and bool(function.signature))
)
"""The rule of each NumPy function: NumPy's own signature, on tracers."""

METHODS: Final[Registry[str, Callable[..., Any]]] = Registry(lambda name: not name.startswith("__"))
"""ndarray methods that are functions of the array: ``sum``, ``mean``, ``clip``, …"""


SEQUENCES: Final = (list, tuple, deque, UserList)
"""What NumPy makes an array of, item by item."""


class Deferring:
    """A traced array of a kind of its own, which knows the operations that a tracer meets it in."""

    __slots__ = ()
    __array_priority__ = 2e4
    stands_for: type = np.ndarray
    """The class that a program finds it to be of."""

    if TYPE_CHECKING:

        @property
        def ndim(self) -> int: ...
        @property
        def shape(self) -> tuple[Any, ...]: ...
        def copy(self) -> Any: ...


class Tracer(Asked, Reshaped):
    """A traced array or number."""

    __slots__ = ("affine", "bound", "cache", "chain", "rebuilt", "scalar", "shares", "storage", "type", "weak")
    __array_priority__ = 1e4
    __hash__ = None  # type: ignore[assignment]
    device: Final = "cpu"
    """As of every array of NumPy's; SciPy asks for it."""

    def __init__(
        self, storage: Storage, chain: Chain, type: ArrayType, scalar: bool = False, weak: bool = False
    ) -> None:
        self.storage = storage
        self.chain = chain
        self.type = type
        self.scalar = scalar
        self.weak = weak
        self.cache: tuple[Value, object, Value] | None = None
        self.bound: int | None = None
        """The largest magnitude of a Python integer, where it is known: `magnitude`."""
        self.shares: Shares | None = None
        """What it has of integers without a known bound: `magnitude`."""
        self.affine: Affine | None = None
        """A Python integer as a sum of indices of loops, where it is one: `affine`."""
        self.rebuilt = False
        """Whether this stands for an object of the program's own in a trip of a loop: ``is`` does not know which."""

    if TYPE_CHECKING:  # ``ufuncs`` and ``indexing`` install these

        def __add__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __rtruediv__(self, other: Any) -> Any: ...
        def __floordiv__(self, other: Any) -> Any: ...
        def __rfloordiv__(self, other: Any) -> Any: ...
        def __mod__(self, other: Any) -> Any: ...
        def __rmod__(self, other: Any) -> Any: ...
        def __pow__(self, other: Any) -> Any: ...
        def __rpow__(self, other: Any) -> Any: ...
        def __matmul__(self, other: Any) -> Any: ...
        def __rmatmul__(self, other: Any) -> Any: ...
        def __and__(self, other: Any) -> Any: ...
        def __rand__(self, other: Any) -> Any: ...
        def __or__(self, other: Any) -> Any: ...
        def __ror__(self, other: Any) -> Any: ...
        def __xor__(self, other: Any) -> Any: ...
        def __rxor__(self, other: Any) -> Any: ...
        def __lshift__(self, other: Any) -> Any: ...
        def __rlshift__(self, other: Any) -> Any: ...
        def __rshift__(self, other: Any) -> Any: ...
        def __rrshift__(self, other: Any) -> Any: ...
        def __lt__(self, other: Any) -> Any: ...
        def __le__(self, other: Any) -> Any: ...
        def __gt__(self, other: Any) -> Any: ...
        def __ge__(self, other: Any) -> Any: ...
        def __divmod__(self, other: Any) -> Any: ...
        def __rdivmod__(self, other: Any) -> Any: ...
        def __eq__(self, other: object) -> Any: ...
        def __ne__(self, other: object) -> Any: ...
        def __neg__(self) -> Any: ...
        def __pos__(self) -> Any: ...
        def __abs__(self) -> Any: ...
        def __invert__(self) -> Any: ...
        def __round__(self, digits: int = 0) -> Any: ...
        def __getitem__(self, index: Any) -> Tracer: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any: ...

    # --- memory ----------------------------------------------------------------------------------
    def read(self) -> Value:
        """The SSA value this handle holds now, in the current trace."""
        storage = self.storage
        trace = CURRENT.get()
        if trace is None:
            raise leaked(storage.trace)
        base = storage.value if storage.trace is trace and storage.pending is None else trace.read(storage)
        if not self.chain:
            return base
        cache = self.cache
        if cache is not None and cache[0] is base and cache[1] is trace.era:
            return cache[2]
        value = seen_of(trace, storage, base, self.chain)
        self.cache = (base, trace.era, value)
        return value

    def write(self, new: Value) -> None:
        """Put a value of this handle's type into the memory it views.

        Raises:
            MutationError: the memory is read-only, or this is a scalar.
            Refused: it depends on a traced condition in a way that is not known what else the write is seen by.
        """
        require_number(self)
        if self.scalar:
            raise UnsupportedError(f"a NumPy scalar ({self.dtype}) does not support item assignment")
        if not self.storage.writable:
            raise MutationError("assignment destination is read-only", hint="write into a copy: x = x.copy()")
        trace = CURRENT.get()
        if trace is None:
            raise leaked(self.storage.trace)
        if self.storage.doubt is not None and self.storage.doubt.dtype:
            raise Refused(
                f"a write into {self.storage.doubt.name!r}, whose dtype depends on a traced condition",
                hint="give it one dtype on all paths: x.astype(float)",
            )
        if self.storage.doubt is not None and self.storage.doubt.listed:
            raise Refused(f"an array that is an item of {self.storage.doubt.name!r} is changed", hint="append a copy")
        if self.storage.aliases is None:
            trace.write(self.storage, put_through(trace, trace.read(self.storage), self.chain, new))
            return
        from srcgrad.tracing.conversion.aliases import follow, sharers  # which are written with this module

        others = sharers(self.storage)
        trace.write(self.storage, put_through(trace, trace.read(self.storage), self.chain, new))
        follow(self.storage, others)

    def require_layout(self) -> None:
        """Refuse to reshape an array that is contiguous or not, depending on a traced condition.

        Raises:
            Refused: it is such an array.
        """
        doubt = self.storage.doubt
        if doubt is not None and doubt.layout and self.ndim > 1:
            raise Refused(
                f"{doubt.name!r} is reshaped, whose layout in memory depends on a traced condition",
                hint="make a copy of the transposed array where it is set: x.T.copy()",
            )

    def viewed(self, *views: View) -> Tracer:
        """A view of this array; its shape is what NumPy gives for the same view."""
        shape = self.type.static_shape
        ghost: np.ndarray[Any, Any] = np.broadcast_to(np.empty((), self.dtype), shape)
        for view in views:
            ghost = view.apply(ghost)
        return Tracer(self.storage, self.chain + views, ArrayType(ghost.dtype, ghost.shape))

    def shown_as(self, view: View, type: ArrayType) -> Tracer:
        """A view of this array, of a type that is known."""
        return Tracer(self.storage, (*self.chain, view), type)

    def ghost(self, memory: np.ndarray[Any, Any] | None = None) -> np.ndarray[Any, Any]:
        """An uninitialised array laid out as this one: NumPy itself says what is a view of it and what a copy.

        It is a view of ``memory``, where that stands for all of the array that this one views.
        """
        ghost = uninitialised(self.storage.value.type, self.storage.strides) if memory is None else memory
        for view in self.chain:
            ghost = view.apply(ghost)
        return ghost

    def in_c_order(self) -> bool:
        """Whether its elements stand in memory one after the other, in C order."""
        self.require_layout()
        return (not self.chain and self.storage.strides is None) or self.ghost().flags.c_contiguous

    def stands_in(self, order: str) -> bool:
        """Whether its elements stand in memory in this order: NumPy then makes no copy to have them so."""
        if order == "K" or (not self.chain and self.storage.strides is None and (order != "F" or self.ndim < 2)):
            return True
        self.require_layout()
        flags = self.ghost().flags
        return {"C": flags.c_contiguous, "F": flags.f_contiguous, "A": flags.forc}[order]

    def ordered_like(self, x: Tracer, order: str) -> Tracer:
        """This fresh result, laid out as NumPy lays out a copy of ``x`` in this order."""
        if order == "K":
            return self.like_ufunc(x)
        if order == "F" or (order == "A" and not x.in_c_order() and x.ghost().flags.fnc):
            self.storage.strides = strides_of(np.empty(self.shape, self.dtype, "F"))
        return self

    def like_ufunc(self, *operands: Tracer) -> Tracer:
        """This fresh result, laid out as NumPy lays out an elementwise result of the operands."""
        if self.ndim > 1 and any(x.ndim > 1 and (x.chain or x.storage.strides) for x in operands):
            self.storage.strides = elementwise_strides([x.ghost() for x in operands], self.dtype)
            doubts = [x.storage.doubt for x in operands if x.storage.doubt is not None and x.storage.doubt.layout]
            if doubts:
                self.storage.doubt = doubts[0]._replace(dtype=False, listed=False)
        return self

    def number(self) -> Any:
        """The array or scalar this is known to hold, or None in an abstract trace."""
        value = self.read()
        return current_trace().number(value)

    # --- ndarray attributes ------------------------------------------------------------------------
    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.static_shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        if not self.reshape_is_view(shape):
            raise MutationError("incompatible shape for in-place modification: use reshape() to make a copy")
        reshaped = self.reshape(shape)
        self.chain, self.type, self.cache = reshaped.chain, reshaped.type, None

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def ndim(self) -> int:
        return len(self.type.shape)

    @property
    def size(self) -> int:
        return self.type.size

    @property
    def itemsize(self) -> int:
        return self.type.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        return self.ghost().strides

    @property
    def flags(self) -> Any:
        return Flags(self)

    setflags = setflags

    @property
    def T(self) -> Tracer:
        return self.transpose()

    @property
    def mT(self) -> Tracer:
        if self.ndim < 2:
            raise ShapeError("matrix transpose with ndim < 2 is undefined")
        return self.swapaxes(-1, -2)

    @property
    def real(self) -> Tracer:
        if self.dtype.kind != "c":
            return self
        return self.viewed(PartView("real")).as_scalar(self.scalar)

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> Tracer:
        if self.dtype.kind == "c":
            return self.viewed(PartView("imag")).as_scalar(self.scalar)
        imag: Tracer = FUNCTIONS[np.zeros_like](self)
        return imag.as_scalar(self.scalar)

    @imag.setter
    def imag(self, value: Any) -> None:
        if self.dtype.kind != "c":
            raise UnsupportedError("a real array has no imaginary part to set")
        self.imag[...] = value

    @property
    def flat(self) -> Tracer:
        """A view in C order; where NumPy has an iterator, this is the array that it runs over. Of a scalar, a copy."""
        if self.scalar:
            return from_value(self.read()).flat
        return Flat(self.storage, (*self.chain, ReshapeView((self.size,))), ArrayType(self.dtype, (self.size,)))

    @flat.setter
    def flat(self, value: Any) -> None:
        new: Tracer = FUNCTIONS[np.resize](value, (self.size,))
        self.flat[...] = new

    def as_scalar(self, scalar: bool) -> Tracer:
        """This value as a NumPy scalar, no longer a view."""
        return from_value(self.read(), scalar=True) if scalar else self

    # --- copies ------------------------------------------------------------------------------------
    def copy(self, order: str | None = "C") -> Tracer:
        return from_value(self.read()).ordered_like(self, order_name(order or "C"))

    def __copy__(self) -> Tracer:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Tracer:
        return self.copy()

    def astype(
        self, dtype: Any, order: str | None = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> Tracer:
        target, order = np.dtype(dtype), order_name(order)
        if not np.can_cast(self.dtype, target, casting):  # type: ignore[arg-type]
            raise UnsupportedError(f"cannot cast {self.dtype} to {target} with casting={casting!r}")
        if target == self.dtype and not self.weak:
            return self.copy(order) if copy or not self.stands_in(order) else self
        from srcgrad.tracing.floating_errors import judged_cast  # which needs this module

        return judged_cast(self, from_value(cast_value(self.read(), target), scalar=self.scalar)).ordered_like(
            self, order
        )

    def item(self, *index: Any) -> Tracer:
        if len(index) == 1 and isinstance(index[0], tuple):
            index = index[0]
        if not index:
            if self.size != 1:
                raise ShapeError("can only convert an array of size 1 to a Python scalar")
            element = self.reshape(())
        else:
            element = self.ravel()[index[0]] if len(index) == 1 and self.ndim != 1 else self[index]
        wide = {"f": np.dtype(np.float64), "c": np.dtype(np.complex128)}.get(element.dtype.kind, element.dtype)
        if element.dtype.itemsize > wide.itemsize:  # a long double is no Python number
            wide = element.dtype
        value = cast_value(element.read(), wide)
        return from_value(value, scalar=True, weak=wide in (np.float64, np.complex128))

    def tolist(self) -> Any:
        return self.item() if self.ndim == 0 else [element.tolist() for element in self]

    def fill(self, value: Any) -> None:
        self[...] = value

    def sort(
        self, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: Any = None
    ) -> None:
        self[...] = FUNCTIONS[np.sort](self, axis, kind, order, stable=stable, descending=descending)

    def partition(self, kth: Any, axis: int = -1, kind: Any = "introselect", order: Any = None) -> None:
        self[...] = FUNCTIONS[np.partition](self, kth, axis, kind, order)

    def view(self, dtype: Any = None, type: Any = None) -> Any:
        """Another view of the same elements, of the same type, or of complex numbers as pairs of real ones."""
        dtype = dtype_of_view(dtype, type)
        asked = self.dtype if dtype is None else np.dtype(dtype)
        if self.ndim and {asked.kind, self.dtype.kind} == {"f", "c"}:
            complex_one, real_one = (asked, self.dtype) if asked.kind == "c" else (self.dtype, asked)
            if complex_one.itemsize == 2 * real_one.itemsize:
                self.require_layout()
                found = self.ghost().view(asked)
                return Tracer(self.storage, (*self.chain, NumbersView(asked)), ArrayType(asked, found.shape))
        if dtype is not None and np.dtype(dtype) != self.dtype:
            raise UnsupportedError(
                "ndarray.view of another type is not supported on a traced array",
                hint="x.real, x.imag and x.astype(dtype) keep the values and their derivatives",
            )
        return self[...]

    def __getattr__(self, name: str) -> Any:
        method = METHODS.get(name)
        if method is not None:
            from srcgrad.tracing.floating_errors import judged_method  # which needs this module

            return judged_method(name, method, self)
        if name.startswith("__") or not hasattr(np.ndarray, name):
            if self.scalar and not name.startswith("__"):
                from srcgrad.tracing.asked import require_no_digits  # which is written with traced values

                require_no_digits(self, name)
            raise NoAttributeError(f"an array has no attribute {name!r}", hint=hint_of_attribute(name))
        raise UnsupportedError(
            f"ndarray.{name} is not supported on a traced array",
            hint="x.reshape, np.resize and x.copy() make other shapes" if name == "resize" else BYTES_HINT,
        )

    # --- items -------------------------------------------------------------------------------------
    def __len__(self) -> int:
        if not self.ndim:
            raise UnsupportedError("len() of unsized object", hint=NO_LENGTH)
        return self.shape[0]

    def __iter__(self) -> Iterator[Tracer]:
        if not self.ndim:
            raise UnsupportedError("iteration over a 0-d array")
        return (self[k] for k in range(self.shape[0]))

    def __contains__(self, item: Any) -> bool:
        return bool((self == item).any())

    # --- NumPy's protocols ---------------------------------------------------------------------------
    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        if any(issubclass(kind, Deferring) for kind in types):
            return NotImplemented
        rule = FUNCTIONS.get(func)
        if rule is None:
            name = f"{func.__module__}.{func.__name__}".replace("numpy", "np", 1)
            raise UnsupportedError(
                f"{name} has no derivative rule in srcgrad",
                hint=(SAVING if func.__name__.startswith("save") else None)
                or nearest_hint(name, [f"{f.__module__}.{f.__name__}".replace("numpy", "np", 1) for f in FUNCTIONS])
                or "write it with functions that have one, or give it a rule with custom_jvp or custom_vjp",
            )
        from srcgrad.tracing.floating_errors import judged_function  # which needs this module

        return judged_function(func, rule, args, kwargs)


class Flat(Tracer):
    """``x.flat``: what is written into it is written into the array, what is taken out of it is a copy."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Tracer:
        found = Tracer.__getitem__(self, index)
        return found if found.scalar else found.copy()


def from_value(value: Value, scalar: bool = False, weak: bool = False, writable: bool = True) -> Tracer:
    """A new handle that owns a value of the current trace."""
    return Tracer(Storage(current_trace(), value, writable), (), value.type, scalar, weak)


def as_tracer(x: Any, dtype: Any = None) -> Tracer:
    """A tracer of anything array-like: tracers, arrays, numbers, (nested) sequences of them.

    Raises:
        UnsupportedError: it is not array-like.
        DTypeError: it is an array of a class that computes by rules of its own.
    """
    if isinstance(x, Tracer):
        return x if dtype is None or x.dtype == dtype else x.astype(dtype)
    if isinstance(x, KeptTape):
        return from_value(current_trace().tape(x))
    if isinstance(x, SEQUENCES) and contains_tracer(x):
        from srcgrad.tracing.rows import columns_of, table_of  # which needs this module

        table = table_of(x)
        if table is not None:
            return as_tracer(from_value(table.read()), dtype)
        columns = columns_of(x)
        rows = [as_tracer(item) for item in x] if columns is None else columns
        stacked: Tracer = FUNCTIONS[np.stack](rows)
        if columns is not None:
            stacked = from_value(stacked.T.read())
        return stacked if dtype is None else stacked.astype(dtype)
    if hasattr(type(x), "__array__") and not isinstance(x, (np.ndarray, np.generic)):
        from srcgrad.tracing.conversion.array_likes import as_array  # which needs this module
        from srcgrad.tracing.conversion.calls import invoke

        found = as_array(x, invoke)
        if isinstance(found, Tracer):
            return as_tracer(found, dtype)
    try:
        array = array_of(x, dtype)
    except TypeError:
        is_jax_array(x)  # says what to do about a tracer of jax
        raise
    if array.dtype.kind not in "biufc":
        raise UnsupportedError(
            f"{type(x).__name__} is not an array or a number", hint=f"its dtype would be {array.dtype}"
        )
    weak = type(x) in (float, complex)
    return from_value(current_trace().constant(array[()]), scalar=np.isscalar(x), weak=weak)


def contains_tracer(x: Any) -> bool:
    if isinstance(x, SEQUENCES):
        return any(contains_tracer(item) for item in items_in(x))
    return isinstance(x, Tracer)


def cast_value(value: Value, dtype: DType) -> Value:
    if value.type.dtype == dtype:
        return value
    dtype_name(dtype)  # raises for one that is no number's
    if isinstance(value, Literal) or value.type.dtype.kind != "c" or dtype.kind in "cb":
        return current_trace().emit(REGISTRY["cast"], [value], {"dtype": dtype})
    real = current_trace().emit(REGISTRY["real"], [value])
    return cast_value(real, dtype)


@lru_cache
def hint_of_attribute(name: str) -> str | None:
    """Looked up once: code that asks ``hasattr`` of whatever it is given drops the error, and asks again."""
    if name.startswith("__"):  # what protocols ask for
        return None
    return nearest_hint(name, [known for known in (*METHODS, *vars(Tracer)) if hasattr(np.ndarray, known)])


RAISING: Final = frozenset({"solve", "inv", "cholesky", "triangular_solve", "banded_solve"})
"""Ops by which the user may mean their error alone."""


def emit(name: str, *operands: Tracer, scalar: bool | None = None, **attrs: Any) -> Tracer:
    """Apply an op to tracers; a rank-0 result is a NumPy scalar unless said otherwise."""
    values = [operand.read() for operand in operands]
    trace = current_trace()
    value = trace.emit(REGISTRY[name], values, attrs)
    if name in RAISING and attrs.get("strict", True):
        trace.note_failing(value)
    return from_value(value, scalar=not value.type.shape if scalar is None else scalar)


def broadcast_tracer(x: Tracer, shape: tuple[int, ...]) -> Tracer:
    """``x`` broadcast to a shape, by NumPy's rule.

    Raises:
        ShapeError: it does not broadcast.
    """
    if x.shape == shape:
        return x
    offset = len(shape) - x.ndim
    if offset < 0 or any(size not in (1, full) for size, full in zip(x.shape, shape[offset:], strict=True)):
        raise ShapeError(f"could not broadcast {x.type} to shape {shape}")
    return emit("broadcast", x, scalar=False, shape=shape, dims=tuple(range(offset, len(shape))))
