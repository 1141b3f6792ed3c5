"""How an operation becomes a function, a method, an operator and an in-place form.

Each module of ``ops`` lists its public functions in ``__all__``; the package exports them. `method` puts others on
`Tensor`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

import numpy as np

from srcgrad.torch import dtypes
from srcgrad.torch.dispatch import apply, apply_inplace, named
from srcgrad.torch.errors import TensorError, TensorNotImplementedError, TensorOverflowError, TensorTypeError
from srcgrad.torch.graph import moved_on
from srcgrad.torch.operation import Op
from srcgrad.torch.tensor import Tensor, wrapped
from srcgrad.tracing.tracer import Tracer

F = TypeVar("F", bound=Callable[..., Any])
DType = np.dtype[Any]
NUMBER_DTYPES: Final[dict[type, DType]] = {
    bool: np.dtype(np.bool_),
    int: np.dtype(np.int64),
    float: np.dtype(np.float64),
    complex: np.dtype(np.complex128),
}
KINDS: Final = {"b": "bool", "i": "integer", "u": "integer", "f": "real", "c": "complex"}


def method(*names: str) -> Callable[[F], F]:
    """Install a function of (self, ...) as methods of these names."""

    def install(function: F) -> F:
        for name in names:
            setattr(Tensor, name, function)
        return function

    return install


# --- operands -----------------------------------------------------------------------------------------


def entry(x: Any) -> tuple[DType, int]:
    """An operand's place in promotion: its dtype, and whether it has dimensions, has none, or is a Python number."""
    if isinstance(x, Tensor):
        return x._data.dtype, dtypes.TENSOR if x._data.ndim else dtypes.SCALAR_TENSOR
    found = NUMBER_DTYPES.get(type(x))
    if found is None:  # of a class derived from a number's
        found = next(dtype for kind, dtype in NUMBER_DTYPES.items() if isinstance(x, kind))
    return found, dtypes.NUMBER


def promoted(operands: tuple[Any, ...]) -> DType:
    """The dtype of the result of an arithmetic operation on tensors and Python numbers."""
    return dtypes.result_dtype(tuple([entry(x) for x in operands]))


def known_operand(x: Any) -> Any:
    """A tensor or a Python number of what stands for one: NumPy's scalars are numbers, its arrays tensors."""
    if isinstance(x, Tensor) or type(x) in NUMBER_DTYPES:
        return x
    if isinstance(x, np.generic):
        return x.item()
    if isinstance(x, (np.ndarray, Tracer)):
        return wrapped(x)
    return x if isinstance(x, (int, float, complex)) else None


def number_array(x: Any, dtype: DType) -> Any:
    """A Python number as an array of no dimensions; integers wrap around, as in C.

    Raises:
        TensorOverflowError: an integer that has more than 64 bits.
    """
    try:
        if type(x) is float and not -6e4 < x < 6e4:  # what every dtype holds needs no care
            with np.errstate(all="ignore"):
                return np.asarray(x, dtype)
        return np.asarray(x, dtype)
    except OverflowError:
        if not -(2**63) <= x < 2**64:
            raise TensorOverflowError(f"int too big to convert: {x}") from None
        return np.array(x).astype(dtype)


def number(x: Any, dtype: DType) -> Tensor:
    """A Python number as a tensor of no dimensions."""
    return wrapped(number_array(x, dtype))


C_NAMES: Final = {"float16": "c10::Half", "float32": "float", "float64": "double"}
"""What PyTorch calls dtypes where a number is too large for one; integers have a ``_t``."""


def fitting(x: Any, dtype: DType, fills: bool = False) -> Any:
    """A number that is to be stored in tensors of this dtype, as it is; a negative one may wrap around if unsigned.

    ``fills``: it fills a tensor, where half precision may become infinite.

    Raises:
        TensorError: it is too large.
    """
    if fills and dtype.name == "float16":
        return x
    if dtype.kind == "f":
        too_large = isinstance(x, (int, float)) and float(np.finfo(dtype).max) < abs(x) < np.inf
    elif dtype.kind in "iu" and isinstance(x, (int, float)):
        limits = np.iinfo(dtype)
        too_large = not (limits.min if dtype.kind == "i" else -limits.max) <= x <= limits.max
    else:
        return x
    if too_large:
        name = C_NAMES.get(dtype.name, f"{dtype.name}_t")
        raise TensorError(
            f"value cannot be converted to type {name} without overflow", hint=f"{named(dtype)} does not hold {x}"
        )
    return x


def operand(x: Any, dtype: DType, name: str) -> Tensor:
    """A tensor of a tensor or a number; a number is of the given dtype.

    Raises:
        TensorTypeError: it is neither.
    """
    known = known_operand(x)
    if known is None:
        raise not_a_tensor(name, "other", 2, x)
    return known if isinstance(known, Tensor) else number(known, dtype)


def not_a_tensor(name: str, argument: str, position: int, x: Any) -> TensorTypeError:
    """The error for an argument that must be a tensor."""
    return TensorTypeError(
        f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {type(x).__name__}",
        hint="make a tensor of it: torch.tensor(...)",
    )


Refusals = dict[str, tuple[type[TensorError] | type[TensorNotImplementedError], str]]
"""By kind of dtype, the class of the error that PyTorch raises and what it says."""


def refused(name: str, dtype: DType, refusals: Refusals | None = None) -> Exception:
    """The error for a dtype that an operation has no meaning for."""
    text = f"\"{name}_cpu\" not implemented for '{named(dtype)}'"
    kind, message = (refusals or {}).get(dtype.kind, (TensorNotImplementedError, text))
    return kind(message, hint=f"{name} does not take {KINDS[dtype.kind]} tensors; use x.to(dtype)")


def pair(name: str, left: Any, right: Any) -> tuple[Tensor, Tensor, DType | None]:
    """Two operands of an arithmetic operation, and the dtype in which it is computed; None if both have it already.

    Raises:
        TensorTypeError: one of them is neither a tensor nor a number.
    """
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        same = left._data.dtype is right._data.dtype
        return left, right, None if same else promoted((left, right))
    a, b = known_operand(left), known_operand(right)
    if a is None:
        raise not_a_tensor(name, "input", 1, left)
    if b is None:
        raise not_a_tensor(name, "other", 2, right)
    dtype = promoted((a, b))
    first = a if isinstance(a, Tensor) else number(a, dtype)
    second = b if isinstance(b, Tensor) else number(b, dtype)
    if first._data.dtype is dtype and second._data.dtype is dtype:
        return first, second, None
    return first, second, dtype


# --- results ------------------------------------------------------------------------------------------


def store(out: Tensor | None, result: Any, name: str = "out") -> Any:
    """``out=``: the result written into a tensor, which is resized where it has another shape.

    Raises:
        TensorError: something requires grad; the result's category of dtype is wider than that of ``out``.
    """
    if out is None:
        return result
    if not isinstance(out, Tensor):
        raise TensorTypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if result.requires_grad or out.requires_grad:
        raise TensorError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )
    source, target = result._data.dtype, out._data.dtype
    if not dtypes.can_store(source, target):
        raise TensorError(f"result type {named(source)} can't be cast to the desired output type {named(target)}")
    resize(out, result._data.shape)
    with np.errstate(all="ignore"):
        out._data[...] = result._data
    moved_on(out._counter)
    return out


def resize(out: Tensor, shape: tuple[int, ...]) -> None:
    """Give ``out`` of ``out=`` the result's shape; a warning if it held something."""
    if out._data.shape == shape:
        return
    if out._data.size:
        warnings.warn(
            f"An output with one or more elements was resized since it had shape {list(out._data.shape)}, which does "
            f"not match the required output shape {list(shape)}.",
            UserWarning,
            stacklevel=4,
        )
    out._data = np.empty(shape, out._data.dtype)


# --- functions of one tensor --------------------------------------------------------------------------


def floating(x: Tensor) -> DType | None:
    """The dtype a function of real analysis is computed in: an integer tensor becomes the default dtype."""
    kind = x._data.dtype.kind
    return None if kind in "fc" else dtypes.get_default_dtype().numpy


def unary(
    name: str,
    node: str | None,
    function: Callable[..., Any],
    *,
    accepts: str = "fc",
    casts: str = "biu",
    refusals: Refusals | None = None,
    kernel: str | None = None,
    strict_out: bool = False,
    saves_result: bool = False,
    pullback: Callable[..., Any] | None = None,
    inplace: bool = True,
    is_method: bool = True,
    aliases: tuple[str, ...] = (),
    quiet: bool = False,
) -> Callable[..., Tensor]:
    """Define an elementwise function of one tensor: ``torch.name(input, *, out=None)``, ``x.name()``, ``x.name_()``.

    ``accepts``: the kinds of dtype (NumPy's letters) it is computed in; those of ``casts`` are first cast to the
    default dtype, and others are errors, with the text that ``refusals`` may give, or about ``kernel``.
    ``strict_out``: ``out`` must be of the operand's dtype.
    """
    op = Op(name, node, function, saves_result=saves_result, pullback=pullback, quiet=quiet)

    def computed(dtype: DType) -> DType:
        if dtype.kind in casts:
            return dtypes.get_default_dtype().numpy
        raise refused(kernel or name, dtype, refusals)

    def call(input: Tensor, *, out: Tensor | None = None) -> Tensor:
        if type(input) is not Tensor and not isinstance(input, Tensor):
            raise not_a_tensor(name, "input", 1, input)
        dtype = input._data.dtype
        if strict_out and out is not None and out._data.dtype != dtype:
            raise TensorError(f"Found dtype {named(out._data.dtype)} but expected {named(dtype)}")
        found: Tensor = apply(op, (input,), (), None if dtype.kind in accepts else computed(dtype))
        return store(out, found, name) if out is not None else found

    def call_inplace(self: Tensor) -> Tensor:
        dtype = self._data.dtype
        return apply_inplace(op, self, (), (), None if dtype.kind in accepts else computed(dtype))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`torch.{name}`: elementwise, of any shape; the result has the operand's shape."
    install(name, aliases, call if is_method else None, call_inplace if inplace else None)
    return call


def install(
    name: str, aliases: Iterable[str], method: Callable[..., Any] | None, inplace: Callable[..., Any] | None
) -> None:
    """Give tensors a method and its form that writes into the tensor, as far as there are such, under all names."""
    if inplace is not None:
        inplace.__name__ = inplace.__qualname__ = f"{name}_"
        inplace.__doc__ = f"`{name}`, written into the tensor."
    for known in (name, *aliases):
        if method is not None:
            setattr(Tensor, known, method)
        if inplace is not None:
            setattr(Tensor, f"{known}_", inplace)


# --- functions of two tensors or numbers --------------------------------------------------------------


class Binary:
    """How the operands of an elementwise function of two tensors are read; see `binary`.

    ``check`` is asked of every pair but that of two equal integer or real dtypes.
    """

    __slots__ = ("accepts", "casts", "check", "direct", "left_op", "name", "numbers", "op", "refusals", "right_op")

    def __init__(
        self,
        name: str,
        op: Op,
        *,
        accepts: str = "biufc",
        casts: str = "",
        refusals: Refusals | None = None,
        numbers: str = "r",
        check: Callable[[Tensor, Tensor], None] | None = None,
        left_node: str | None = None,
        right_node: str | None = None,
    ) -> None:
        self.name = name
        self.op = op
        self.accepts = accepts
        self.casts = casts
        self.refusals = refusals
        self.numbers = numbers
        self.check = check
        self.direct = accepts if check is None else accepts.replace("b", "").replace("c", "")
        self.left_op = op if left_node is None else turned(op, left_node)
        self.right_op = op if right_node is None else renamed(op, right_node, shown=1)

    def read(self, left: Any, right: Any) -> tuple[Op, Tensor, Tensor, DType | None]:
        """The operation, its operands, and the dtype to cast them to (None: no cast)."""
        if isinstance(left, Tensor):  # the usual cases first: one dtype, and a real tensor with a real number
            dtype = left._data.dtype
            if dtype.kind in self.direct:
                if isinstance(right, Tensor):
                    if right._data.dtype is dtype:
                        return self.op, left, right, None
                elif type(right) in (float, int) and dtype.kind == "f" and "r" in self.numbers:
                    return self.right_op, left, number(right, dtype), None
        return self.converted(left, right)

    def converted(self, left: Any, right: Any) -> tuple[Op, Tensor, Tensor, DType | None]:
        """What `read` gives, for operands of any kind."""
        op = self.op
        if not isinstance(left, Tensor):
            if "l" not in self.numbers:
                raise not_a_tensor(self.name, "input", 1, left)
            op = self.left_op
        elif not isinstance(right, Tensor):
            if "r" not in self.numbers:
                raise not_a_tensor(self.name, "other", 2, right)
            op = self.right_op
        first, second, dtype = pair(self.name, left, right)
        if op is self.left_op and op is not self.op:
            first, second = second, first
        if self.check is not None:
            self.check(first, second)
        found = first._data.dtype if dtype is None else dtype
        if found.kind not in self.accepts:
            if found.kind not in self.casts:
                raise refused(self.name, found, self.refusals)
            dtype = dtypes.get_default_dtype().numpy
        return op, first, second, dtype


def turned(op: Op, node: str) -> Op:
    """The operation with its operands the other way round, the second of which is a number that no edge leads to."""
    function = op.function
    return Op(op.name, node, lambda y, x: function(x, y), quiet=op.quiet, shown=1)


def renamed(op: Op, node: str, shown: int | None = None) -> Op:
    """The same operation under another name of PyTorch's for its node, which has edges for ``shown`` operands."""
    return Op(
        op.name,
        node,
        op.function,
        saves_result=op.saves_result,
        pullback=op.pullback,
        quiet=op.quiet,
        shown=op.shown if shown is None else shown,
    )


def binary(
    name: str,
    node: str | None,
    function: Callable[..., Any],
    *,
    accepts: str = "biufc",
    casts: str = "",
    refusals: Refusals | None = None,
    numbers: str = "r",
    check: Callable[[Tensor, Tensor], None] | None = None,
    left_node: str | None = None,
    right_node: str | None = None,
    operators: tuple[str, ...] = (),
    saves_result: bool = False,
    inplace: bool = True,
    is_method: bool = True,
    aliases: tuple[str, ...] = (),
    quiet: bool = False,
) -> Callable[..., Tensor]:
    """Define an elementwise function of two tensors or numbers, promoted and broadcast as PyTorch does.

    ``accepts``, ``casts`` and ``refusals`` are those of `unary`, of the promoted dtype. ``numbers``: which operands may
    be Python numbers (``"l"``, ``"r"``), and ``left_node`` and ``right_node`` what PyTorch calls the node then.
    ``check`` raises for operands that do not go together, which two of one integer or
    real dtype always do. ``operators``: the special methods it is, such as ``("add",)``
    for ``__add__``, ``__radd__`` and ``__iadd__``.
    """
    op = Op(name, node, function, saves_result=saves_result, quiet=quiet)
    form = Binary(
        name,
        op,
        accepts=accepts,
        casts=casts,
        refusals=refusals,
        numbers=numbers,
        check=check,
        left_node=left_node,
        right_node=right_node,
    )
    read = form.read

    def call(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
        found, left, right, dtype = read(input, other)
        result: Tensor = apply(found, (left, right), (), dtype)
        return store(out, result, name) if out is not None else result

    def call_inplace(self: Tensor, other: Any) -> Tensor:
        found, left, right, dtype = read(self, other)
        return apply_inplace(found, left, (right,), (), dtype)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`torch.{name}`: elementwise; shapes broadcast, dtypes promote."
    install(name, aliases, call if is_method else None, call_inplace if inplace else None)
    for operator in operators:
        install_operator(operator, read, call_inplace if inplace else None)
    return call


OPERANDS: Final = (Tensor, float, int)
COMMUTING: Final = ("add", "mul", "and", "or", "xor")
COMPARISONS: Final = ("lt", "le", "gt", "ge", "eq", "ne")


def install_operator(operator: str, read: Callable[[Any, Any], Any], call_inplace: Callable[..., Any] | None) -> None:
    """Make the special methods of an operator; ``read`` gives the operation, its operands and their dtype."""
    commutes = operator in COMMUTING

    def forward(self: Tensor, other: Any) -> Any:
        if type(other) not in OPERANDS and not is_operand(other):
            return NotImplemented
        op, left, right, dtype = read(self, other)
        return apply(op, (left, right), (), dtype)

    def reflected(self: Tensor, other: Any) -> Any:
        if type(other) not in OPERANDS and not is_operand(other):
            return NotImplemented
        op, left, right, dtype = read(self, other) if commutes else read(other, self)
        return apply(op, (left, right), (), dtype)

    def augmented(self: Tensor, other: Any) -> Any:
        if not is_operand(other):
            return NotImplemented
        assert call_inplace is not None
        return call_inplace(self, other)

    setattr(Tensor, f"__{operator}__", forward)
    if operator not in COMPARISONS:
        setattr(Tensor, f"__r{operator}__", reflected)
        if call_inplace is not None:
            setattr(Tensor, f"__i{operator}__", augmented)


def is_operand(x: Any) -> bool:
    """Whether an operator between a tensor and this object is ours to answer."""
    return isinstance(x, (Tensor, int, float, complex, np.generic, np.ndarray, Tracer))
