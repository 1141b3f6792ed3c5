"""Operations whose meaning is a helper function of the NumPy backend: that function, run on registers.

The helper runs once, with an ``np`` and a ``scipy`` that write instructions for what it does to its operands; what it
does to plain numbers is done at once. So the formula, its order and its constants are the helper's own. Helpers ask of
whole arrays (``x.all()``) only to leave out work that changes nothing: here nothing is left out.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from types import FunctionType, SimpleNamespace
from typing import Any, Final

import numpy as np

from srcgrad.backends.llvm import scalars
from srcgrad.backends.llvm.emitter import F32, F64, Number
from srcgrad.backends.llvm.steps import Step, StepWriter
from srcgrad.backends.llvm.steps.body import Body
from srcgrad.backends.llvm.steps.ufuncs import UfuncCall, hidden, loop_for
from srcgrad.backends.llvm.target import Target
from srcgrad.backends.llvm.vector_math import FUNCTIONS
from srcgrad.backends.numpy.expressions import HELPERS, expression, helper
from srcgrad.ir.core import Literal, Operation
from srcgrad.ir.types import INT64, DType

INLINED: Final = 1500
"""The instructions up to which a formula holds copies of the functions that it calls."""
LONGEST: Final = 8000
"""The instructions at which a formula is left to NumPy: LLVM takes ever longer per instruction of a long block."""


OF_FORMULAS: Final = (F64, F32, INT64)
"""The dtypes of which formulas are written."""


class NotNative(Exception):
    """The helper does what has no instructions."""


class Traced:
    """An operand of a helper or what it makes of it: numbers in registers."""

    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]
    shape: tuple[int, ...] = ()
    ndim = 0
    size = 1

    def __init__(self, run: _Run, number: Number) -> None:
        self.run, self.number = run, number

    @property
    def dtype(self) -> DType:
        return self.number.dtype

    def astype(self, dtype: Any, copy: bool = True) -> Traced:
        wanted = F32 if isinstance(dtype, _Single) else np.dtype(dtype)
        return Traced(self.run, scalars.cast(self.run.e, self.number, wanted))

    def __getitem__(self, index: Any) -> Traced:
        if index != ():
            raise NotNative
        return self

    def __bool__(self) -> bool:
        raise NotNative

    def __getattr__(self, name: str) -> Any:
        raise NotNative

    def all(self) -> bool:
        return False

    def any(self) -> bool:
        return True

    def __pow__(self, other: Any) -> Traced:
        return self.run.power(self, other)

    def __rpow__(self, other: Any) -> Traced:
        return self.run.power(other, self)

    def __neg__(self) -> Traced:
        return self.run.apply("neg", self)

    def __abs__(self) -> Traced:
        return self.run.apply("abs", self)

    def __invert__(self) -> Traced:
        return self.run.apply("logical_not", self)


def _operator(op: str, flipped: bool = False) -> Callable[[Traced, Any], Any]:
    decides = {"logical_and": False, "logical_or": True}.get(op)

    def run(self: Traced, other: Any) -> Any:
        if decides is not None and not isinstance(other, Traced):
            return np.bool_(decides) if bool(other) is decides else self
        return self.run.apply(op, other, self) if flipped else self.run.apply(op, self, other)

    return run


_OPERATORS: Final = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "mod": "remainder",
    "and": "logical_and", "or": "logical_or",
}  # fmt: skip
for _name, _op in _OPERATORS.items():
    setattr(Traced, f"__{_name}__", _operator(_op))
    setattr(Traced, f"__r{_name}__", _operator(_op, flipped=True))
for _name, _op in {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
}.items():  # fmt: skip
    setattr(Traced, f"__{_name}__", _operator(_op))


class _Run:
    """One run of a helper on the registers of an emitter."""

    def __init__(self, w: Body, lanes: int) -> None:
        self.w, self.e, self.lanes = w, w.e, lanes

    def number(self, value: Any, dtype: DType) -> Number:
        """A value as registers of a dtype."""
        if isinstance(value, Traced):
            return scalars.cast(self.e, value.number, dtype)
        if np.ndim(value):
            raise NotNative
        return self.e.constant(value, dtype, self.lanes)

    def dtype_of(self, values: Sequence[Any]) -> DType:
        """NumPy's: plain numbers are weak."""
        given = [value.number.dtype if isinstance(value, Traced) else value for value in values]
        return np.result_type(*(value if isinstance(value, np.dtype) else _weak(value) for value in given))

    def is_too_long(self) -> bool:
        return len(self.e.lines) > (LONGEST if self.e.outlined else INLINED)

    def numbers(self, values: Sequence[Any]) -> list[Number]:
        if self.is_too_long():
            raise NotNative
        dtype = self.dtype_of(values)
        return [self.number(value, dtype) for value in values]

    def apply(self, op: str, *values: Any) -> Traced:
        """An op of the language, or a function of ``vector_math``."""
        numbers = self.numbers(values)
        if op == "div" and numbers[0].dtype.kind != "f":
            numbers = [scalars.cast(self.e, number, F64) for number in numbers]
        if op == "remainder":
            return self.floored_remainder(*numbers)
        if op in ("add", "sub", "mul") and numbers[0].dtype.kind == "f":
            return Traced(self, getattr(self.e, op)(*numbers))  # rounded as written
        function = scalars.TABLE.get(op) or FUNCTIONS.get(op)
        if function is None or (op in FUNCTIONS and op not in scalars.TABLE and numbers[0].dtype not in (F32, F64)):
            raise NotNative
        return Traced(self, function(self.e, *numbers))

    def floored_remainder(self, a: Number, b: Number) -> Traced:
        """Of floats, by what divides exactly: x - y floor(x/y) where y is a power of two."""
        if a.dtype.kind != "f" or b.text not in {self.e.constant(n, a.dtype, a.lanes).text for n in (1, 2, 4)}:
            raise NotNative
        down = self.e.intrinsic("floor", self.e.div(a, b))
        return Traced(self, self.e.sub(a, self.e.mul(down, b)))

    def power(self, base: Any, exponent: Any) -> Traced:
        if isinstance(base, Traced) and not isinstance(exponent, Traced) and exponent in (0, 1, 2, 3, 4, -1):
            if exponent == -1:
                return self.apply("div", 1.0, base)
            return Traced(self, scalars.power(self.e, base.number, int(exponent)))
        return self.apply("pow", base, exponent)

    def where(self, condition: Any, a: Any, b: Any) -> Any:
        if not isinstance(condition, Traced):
            return a if condition else b
        x, y = self.numbers([a, b])
        return Traced(self, self.e.select(condition.number, x, y))

    def ufunc(self, ufunc: np.ufunc, *values: Any) -> Any:
        """A ufunc by its own loop, through memory."""
        common = self.dtype_of(values)
        dtypes = [value.dtype if isinstance(value, Traced) else common for value in values]
        found = loop_for(ufunc, dtypes)
        if found is None:
            dtypes = [F64 if dtype.kind == "f" else dtype for dtype in dtypes]
            found = loop_for(ufunc, dtypes)
        if found is None or self.is_too_long():
            raise NotNative
        loop, outputs = found
        places = [self.w.take_scratch(self.lanes * dtype.itemsize) for dtype in (*dtypes, *outputs)]
        for place, value, dtype in zip(places, values, dtypes, strict=False):
            self.w.store(place, 0, self.number(value, dtype))
        strides = [dtype.itemsize for dtype in (*dtypes, *outputs)]
        UfuncCall(self.w, ufunc, loop, dtypes)(places, strides, self.lanes)
        results = [
            Traced(self, self.w.load(place, 0, dtype, self.lanes))
            for place, dtype in zip(places[len(values) :], outputs, strict=True)
        ]
        return results[0] if len(results) == 1 else tuple(results)


def _weak(value: Any) -> Any:
    """What a plain number counts for: as Python's, but for NumPy's of another width than float64."""
    if isinstance(value, np.generic):
        return value.dtype
    return value


class _Library:
    """A library whose functions write instructions where an operand is `Traced`, and are the real ones elsewhere.

    ``functions`` are those that are written in another way than by the loop of the ufunc of that name.
    """

    def __init__(self, module: Any, run: _Run, functions: dict[str, Callable[..., Any]]) -> None:
        self._module, self._run, self._functions = module, run, functions

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._module, name)
        if isinstance(real, type):
            return self._functions.get(name, real)
        if not callable(real):
            return real
        function = self._functions.get(name)

        def call(*args: Any, **kwargs: Any) -> Any:
            flat = [part for value in args for part in (value if isinstance(value, list | tuple) else (value,))]
            if not any(isinstance(value, Traced) for value in flat):
                return real(*args, **kwargs)
            if function is not None:
                return function(*args, **kwargs)
            if not isinstance(real, np.ufunc) or kwargs:
                raise NotNative
            return self._run.ufunc(real, *args)

        return call


class _Single:
    """float32: a dtype, and a function of numbers."""

    dtype = F32

    def __call__(self, value: Any) -> Any:
        return value.astype(F32) if isinstance(value, Traced) else np.float32(value)


_SAME: Final = (
    "exp", "expm1", "log", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sqrt", "abs", "sign", "maximum",
    "minimum", "rint", "floor", "ceil", "square", "hypot",
)  # fmt: skip
"""Functions of NumPy that are ops of the same name."""
_FROM_SCIPY: Final = {
    "gammaln": "gammaln",
    "psi": "digamma",
    "erf": "erf",
    "erfc": "erfc",
    "expit": "expit",
}
"""Functions of SciPy that ``vector_math`` has, by the name of the op."""


def _numpy(run: _Run) -> Any:
    def to_array(value: Any, dtype: Any = None) -> Any:
        return value if dtype is None or not isinstance(value, Traced) else value.astype(dtype)

    def power(x: Any, y: Any) -> Any:
        return run.apply("pow", x, y)

    def like(number: float) -> Callable[..., Any]:
        return lambda x, *rest: Traced(run, run.e.constant(rest[0] if rest else number, x.dtype, run.lanes))

    def choose(index: Traced, choices: Sequence[Any]) -> Any:
        found = choices[-1]
        for k in reversed(range(len(choices) - 1)):
            found = run.where(run.apply("equal", index, k), choices[k], found)
        return found

    def nan_to_num(x: Traced, nan: float = 0.0) -> Any:
        limit = float(np.finfo(x.dtype).max)
        bounded = run.apply("minimum", run.apply("maximum", x, -limit), limit)
        return run.where(run.apply("is_nan", x), nan, bounded)

    def sinc(x: Any) -> Any:
        y = np.pi * x
        return run.where(run.apply("equal", x, 0.0), 1.0, run.apply("div", run.apply("sin", y), y))

    functions: dict[str, Callable[..., Any]] = {
        **{name: (lambda *values, op=name: run.apply(op, *values)) for name in _SAME},
        "isnan": lambda x: run.apply("is_nan", x),
        "isinf": lambda x: run.apply("is_inf", x),
        "isfinite": lambda x: run.apply("is_finite", x),
        "isneginf": lambda x: run.apply("equal", x, -np.inf),
        "real": lambda x: x,
        "iscomplexobj": lambda x: False,
        "where": run.where,
        "asarray": to_array,
        "broadcast_arrays": lambda *values: values,
        "result_type": lambda *values: run.dtype_of(values),
        "power": power,
        "clip": lambda x, low, high: run.apply("minimum", run.apply("maximum", x, low), high),
        "zeros_like": like(0.0),
        "ones_like": like(1.0),
        "full_like": like(0.0),
        "choose": choose,
        "mod": lambda x, y: run.apply("remainder", x, y),
        "nan_to_num": nan_to_num,
        "sinc": sinc,
        "float32": _Single(),
    }
    return _Library(np, run, functions)


def _scipy(run: _Run) -> Any:
    import scipy.special

    zeta = hidden("zeta")
    functions: dict[str, Callable[..., Any]] = {}
    if isinstance(zeta, np.ufunc):
        functions["zeta"] = lambda s, q: run.ufunc(zeta, s, q)
    for name, op in _FROM_SCIPY.items():
        functions[name] = lambda *values, op=op: run.apply(op, *values)

    def times_logarithm(op: str) -> Callable[..., Any]:
        def product(x: Any, y: Any) -> Any:
            found = x * run.apply(op, y)
            if not isinstance(x, Traced) and x != 0:
                return found
            return run.where((x == 0) & (y == y), 0.0, found)

        return product

    functions["xlogy"], functions["xlog1py"] = times_logarithm("log"), times_logarithm("log1p")
    return SimpleNamespace(special=_Library(scipy.special, run, functions))


def _names(run: _Run) -> dict[str, Any]:
    """The globals of helpers that write instructions."""
    scipy = _scipy(run)

    def find(name: str, *rest: Any) -> Any:
        return scipy if name.split(".")[0] == "scipy" else __import__(name, *rest)

    names: dict[str, Any] = {"np": _numpy(run), "scipy": scipy}
    names["__builtins__"] = {**vars(builtins), "__import__": find}
    for name in HELPERS:
        real = helper(name)
        assert isinstance(real, FunctionType)
        names[name] = FunctionType(real.__code__, names, name, real.__defaults__)
    return names


def formula(operation: Operation, name: str, target: Target) -> Step | None:
    """The op's text, on vectors of elements."""
    if any(value.type.dtype not in OF_FORMULAS for value in (*operation.operands, *operation.results)):
        return None
    for outlined in (False, True):
        w = Body(operation, name, target)
        w.e.outlined = outlined
        try:
            return _written(w, w.lanes_of(F64))
        except NotNative:
            continue
    return None


def _given(run: _Run, operand: int, place: Number, lanes: int) -> Any:
    """An operand; a literal as the plain number, so that what is made of it alone is computed once, here.

    Not whole numbers: which loop of a ufunc is called depends on their dtype.
    """
    value = run.w.operation.operands[operand]
    if isinstance(value, Literal) and value.splat and value.type.dtype.kind == "f":
        return value.type.dtype.type(value.value)
    return Traced(run, run.w.read(operand, place, lanes))


def _written(w: Body, lanes: int) -> Step:
    operands = [f"operand_{k}" for k in range(len(w.types))]
    text = expression(w.operation.op, operands, w.types, w.results, w.operation.attrs)
    code = compile(text, f"<srcgrad {w.operation.op.name}>", "eval")

    def element(k: Number, n: int) -> None:
        run = _Run(w, n)
        values = {operand: _given(run, j, k, n) for j, operand in enumerate(operands)}
        with w.e.strict(), np.errstate(all="ignore"):
            found = eval(code, _names(run), values)
        if not isinstance(found, Traced):
            raise NotNative
        w.write(k, run.number(found, w.results[0].dtype))

    w.strip(w.results[0].size, lanes, element)
    same = (k for k, type in enumerate(w.types) if type == w.results[0])
    return w.finish(in_place=next(same, None))


FORMULAS: Final = (
    "gaussian", "pow_log", "sinc", "sinc_derivative", "log_ratio", "log1p_ratio", "erfcx_derivative",
    "dawsn_derivative", "exprel_derivative", "scaled_bessel_derivative", "expn", "fresnel_phase",
    "elliptic_derivative", "elliptic_incomplete_derivative", "rgamma_derivative", "digamma_difference",
    "gamma_density", "gammainc_derivative", "beta_density", "betainc_derivative", "boxcox_derivative", "polygamma",
    "bessel_order_derivative", "bessel_slope", "i2", "noncentral_density",
    "zeta_derivative",
)  # fmt: skip
"""Ops whose text is more than a ufunc."""
MIXED: Final = (
    "eval_legendre", "eval_chebyt", "eval_chebyu", "eval_gegenbauer", "eval_jacobi", "eval_hermite",
    "eval_hermitenorm", "eval_laguerre", "eval_genlaguerre",
)  # fmt: skip
"""Ops that are a ufunc of which no loop takes a whole number and float32 ones."""
WRITERS: Final[dict[str, StepWriter]] = dict.fromkeys((*FORMULAS, *MIXED), formula)
