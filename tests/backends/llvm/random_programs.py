"""Random functions of the language that are all loops: views of views, reductions, several results, odd sizes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import srcgrad.ir.ops  # noqa: F401  registers the ops
from srcgrad.backends.llvm.backend import BACKEND
from srcgrad.backends.llvm.target import TARGET
from srcgrad.backends.numpy.evaluate import OBSERVER, evaluate
from srcgrad.ir.core import Builder, Function, Operation, Value, literal
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.types import ArrayType

Array = np.ndarray[Any, Any]
SIZES = (1, 2, 3, 5, 8, 16, 17, 33, 70)
UNARY = ("neg", "abs", "square", "sign")
BINARY = ("add", "sub", "mul", "maximum", "minimum")
FLOATING = ("sqrt", "floor", "tanh", "exp", "sin")
COMPARISONS = ("less", "greater_equal", "equal")
DTYPES = (np.float64, np.float64, np.float64, np.float32, np.int32, np.int64, np.uint8)
ROUNDED = ("add", "sub", "mul", "square", "sqrt", "tanh", "exp", "sin", "reduce_sum", "reduce_prod", "cast")
"""Operations of which results are rounded."""
STEPS = ("compute", "compute", "compute", "chosen", "view", "view", "reduced", "rows", "cast")
PIECES = (*STEPS, "joined", "joined", "padded", "padded")
"""Concatenations and parts of zeros too."""
UPDATES = (*PIECES, "updated", "updated", "updated")
"""And arrays of which a part is written."""
REDUCTIONS = ("reduce_sum", "reduce_max", "reduce_min", "reduce_prod")


class Drawing:
    """The state of drawing one function."""

    def __init__(self, seed: int, steps: Sequence[str] = STEPS) -> None:
        self.random = np.random.default_rng(seed)
        self.steps = steps
        self.builder = Builder()
        self.values: list[Value] = []
        self.arguments: list[Array] = []

    def pick(self, options: Sequence[Any]) -> Any:
        return options[int(self.random.integers(len(options)))]

    def emit(self, name: str, *operands: Value, **attrs: Any) -> Value:
        found = self.builder.emit(REGISTRY[name], operands, attrs)
        if found.type.size <= 1 << 16:
            self.values.append(found)
        return found

    def param(self) -> None:
        shape = tuple(int(self.pick(SIZES)) for _ in range(int(self.random.integers(4))))
        while np.prod(shape, dtype=int) > 20_000:
            shape = shape[1:]
        dtype = np.dtype(self.pick(DTYPES))
        numbers = self.random.integers(-3, 4, shape) * (0.25 if dtype.kind == "f" else 1)
        self.values.append(self.builder.param(ArrayType(dtype, shape)))
        self.arguments.append(np.asarray(numbers).astype(dtype))

    def step(self) -> None:
        getattr(self, self.pick(self.steps))()

    def like(self, type: ArrayType) -> Value:
        """A value of this type: one that is there, one that broadcasts to it, or a number."""
        for _ in range(6):
            value = self.pick(self.values)
            if value.type == type:
                return value  # type: ignore[no-any-return]
            if value.type.dtype == type.dtype and value.type.rank <= type.rank:
                dims = tuple(range(type.rank - value.type.rank, type.rank))
                if all(size in (1, type.shape[dim]) for size, dim in zip(value.type.shape, dims, strict=True)):
                    return self.emit("broadcast", value, shape=type.shape, dims=dims)
        return literal(self.pick((2, 1, 0)), type)

    def compute(self) -> None:
        value = self.pick(self.values)
        kind = value.type.dtype.kind
        if kind == "b":
            self.emit("logical_xor", value, self.like(value.type))
        elif self.random.random() < 0.6:
            self.emit(self.pick(BINARY), value, self.like(value.type))
        elif kind == "f" and self.random.random() < 0.5:
            self.emit(self.pick(FLOATING), value)
        else:
            self.emit(self.pick(UNARY), value)

    def chosen(self) -> None:
        value = self.pick(self.values)
        other = self.like(value.type)
        self.emit("select", self.emit(self.pick(COMPARISONS), value, other), value, other)

    def cast(self) -> None:
        value = self.pick(self.values)
        target = np.dtype(self.pick((np.float64, np.float32, np.int64, np.bool_)))
        if value.type.dtype.kind != "f" or target.kind in "fb":
            self.emit("cast", value, dtype=target)

    def view(self) -> None:
        value = self.pick(self.values)
        rank, shape = value.type.rank, value.type.shape
        if not rank:
            self.emit("broadcast", value, shape=(int(self.pick(SIZES)),), dims=())
            return
        name = self.pick(("transpose", "slice", "reverse", "reshape", "broadcast"))
        if name == "transpose":
            self.emit(name, value, perm=tuple(int(k) for k in self.random.permutation(rank)))
        elif name == "slice":
            starts = tuple(int(self.random.integers(size // 2 + 1)) for size in shape)
            strides = tuple(int(self.random.integers(1, 4)) for _ in shape)
            self.emit(name, value, starts=starts, limits=shape, strides=strides)
        elif name == "reverse":
            self.emit(name, value, axes=(int(self.random.integers(rank)),))
        elif name == "reshape":
            self.emit(name, value, shape=self.pick(((value.type.size,), (1, *shape, 1), (*shape[:-2], -1))[:2]))
        elif value.type.size * 5 <= 20_000:
            self.emit(name, value, shape=(*shape[:1], 5, *shape[1:]), dims=(0, *range(2, rank + 1)))

    def joined(self) -> None:
        """A concatenation of values, and slices of them."""
        value = self.pick(self.values)
        shape = value.type.static_shape
        if not shape:
            return
        axis = int(self.random.integers(len(shape)))
        parts = [value]
        for _ in range(int(self.random.integers(1, 4))):
            part = self.like(value.type)
            if self.random.random() < 0.5 and shape[axis]:
                start = int(self.random.integers(shape[axis]))
                starts, limits = [0] * len(shape), list(shape)
                starts[axis], limits[axis] = start, int(self.random.integers(start, shape[axis] + 1))
                part = self.emit("slice", part, starts=tuple(starts), limits=tuple(limits), strides=(1,) * len(shape))
            parts.insert(int(self.random.integers(len(parts) + 1)), part)
        if sum(part.type.size for part in parts) <= 20_000:
            self.emit("concatenate", *parts, axis=axis)

    def padded(self) -> None:
        """A value that is written into zeros."""
        value = self.pick(self.values)
        shape = value.type.static_shape
        starts = tuple(int(self.pick((0, 0, 1, 2, 7, 40))) for _ in shape)
        after = tuple(int(self.pick((0, 0, 1, 3, 50))) for _ in shape)
        strides = tuple(int(self.pick((1, 1, 1, 1, 2))) for _ in shape)
        limits = tuple(
            start + max(0, (size - 1) * stride + 1) for start, size, stride in zip(starts, shape, strides, strict=True)
        )
        whole = tuple(limit + more for limit, more in zip(limits, after, strict=True))
        if shape and np.prod(whole, dtype=int) <= 20_000:
            zeros = literal(0, ArrayType(value.type.dtype, whole))
            self.emit("slice_set", zeros, value, starts=starts, limits=limits, strides=strides)

    def updated(self) -> None:
        """A value, a part of which is another one, or what is computed of that part."""
        value = self.pick(self.values)
        shape = value.type.static_shape
        if not shape:
            return
        starts = tuple(min(size, int(self.pick((0, 0, 1, 2)))) for size in shape)
        limits = tuple(
            max(start, size - int(self.pick((0, 0, 1, 5)))) for start, size in zip(starts, shape, strict=True)
        )
        attrs = {"starts": starts, "limits": limits, "strides": tuple(int(self.pick((1, 1, 1, 1, 2))) for _ in shape)}
        part = self.emit("slice", self.pick((value, self.like(value.type))), **attrs)
        if self.random.random() < 0.6:
            part = self.emit("maximum", part, self.like(part.type))
        self.emit("slice_set", value, part, **attrs)

    def rows(self) -> None:
        """A value with what its rows, or columns, fold to."""
        value = self.pick(self.values)
        shape, kind = value.type.shape, value.type.dtype.kind
        if value.type.rank < 2 or kind == "b" or 0 in shape:
            return
        axes = self.pick(((value.type.rank - 1,), (value.type.rank - 1,), (0,), tuple(range(1, value.type.rank))))
        folded = self.emit(self.pick(("reduce_sum", "reduce_max")), value, axes=axes)
        dims = tuple(axis for axis in range(value.type.rank) if axis not in axes)
        self.emit(self.pick(BINARY), value, self.emit("broadcast", folded, shape=shape, dims=dims))

    def reduced(self) -> None:
        value = self.pick(self.values)
        rank, kind = value.type.rank, value.type.dtype.kind
        if not rank:
            return
        axes = tuple(axis for axis in range(rank) if self.random.random() < 0.6)
        name = self.pick(("reduce_or", "reduce_and") if kind == "b" else REDUCTIONS)
        if name in ("reduce_max", "reduce_min") and 0 in value.type.shape:
            return
        self.emit(name, value, axes=axes)


def random_function(seed: int, steps: int = 14, kinds: Sequence[str] = STEPS) -> tuple[Function, list[Array]]:
    """A function and arguments for it; the same for the same seed."""
    drawing = Drawing(seed, kinds)
    for _ in range(3):
        drawing.param()
    for _ in range(steps):
        drawing.step()
    made = drawing.values[3:]
    count = min(len(made), int(drawing.random.integers(1, 5)))
    results = [made[-1 - k] for k in range(count)] or drawing.values[:1]
    return drawing.builder.function("random", results), drawing.arguments


class OtherRounding:
    """Rounds what every operation computes otherwise, by a unit in the last place or two."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def ran(self, operation: Operation, operands: Sequence[Any], run: Callable[[], Sequence[Any]]) -> Sequence[Any]:
        return [self.moved(result) if operation.op.name in ROUNDED else result for result in run()]

    def moved(self, result: Any) -> Any:
        if np.asarray(result).dtype.kind != "f":
            return result
        part = np.finfo(result.dtype).eps * self.random.integers(-1, 2, np.shape(result)).astype(result.dtype)
        return np.where(np.isfinite(result), result * (1 + part), result)[()]

    def trips(self, numbers: Iterable[int]) -> Iterable[int]:
        return numbers


def unsettled(
    function: Function, given: Sequence[Any], expected: Sequence[Array], rtols: Sequence[float]
) -> list[Array]:
    """Where results depend on how others are rounded: sines of huge numbers, comparisons of what is nearly equal."""
    found = [np.zeros(wanted.shape, bool) for wanted in expected]
    for seed in range(24):
        token = OBSERVER.set(OtherRounding(seed))
        try:
            others = evaluate(function, given)
        finally:
            OBSERVER.reset(token)
        for where, other, wanted, rtol in zip(found, others, expected, rtols, strict=True):
            where |= apart(other, wanted, rtol)
    return found


def apart(actual: Any, wanted: Array, rtol: float) -> Array:
    """Where elements differ by more than a part of the largest one."""
    scale = np.max(np.abs(wanted[np.isfinite(wanted)]), initial=1.0) if rtol else 0.0
    with np.errstate(invalid="ignore"):
        return ~np.isclose(actual, wanted, rtol=rtol, atol=rtol * scale, equal_nan=True)


def require_agreement(function: Function, given: Sequence[Any], found: Sequence[Any], rtols: dict[int, float]) -> None:
    """Results are what the operations mean, on exact types; ``rtols`` is by the size of a float."""
    expected = [np.asarray(wanted) for wanted in evaluate(function, given)]
    tolerances = [rtols[wanted.dtype.itemsize] if wanted.dtype.kind == "f" else 0.0 for wanted in expected]
    for actual, wanted in zip(found, expected, strict=True):
        assert np.asarray(actual).dtype == wanted.dtype and np.shape(actual) == wanted.shape, function
    wrong = [apart(*three) for three in zip(found, expected, tolerances, strict=True)]
    if any(map(np.any, wrong)):
        free = unsettled(function, given, expected, tolerances)
        for actual, wanted, where, other in zip(found, expected, wrong, free, strict=True):
            bad = where & ~other
            assert not np.any(bad), f"{np.asarray(actual)[bad][:5]} instead of {wanted[bad][:5]}: {function}"


def check(seed: int, steps: int = 14, kinds: Sequence[str] = STEPS) -> None:
    """The llvm backend agrees with the meaning of each op, on exact types and to rounding."""
    function, arguments = random_function(seed, steps, kinds)
    given = [argument[()] for argument in arguments]
    single = any(value.type.dtype == np.float32 for op in function.operations for value in op.operands)
    rtol = 3e-4 if single else 1e-9
    require_agreement(function, given, BACKEND.compile(function).run(*given), {4: rtol, 8: rtol})


if __name__ == "__main__":
    for number in range(int(sys.argv[1]), int(sys.argv[2])):
        check(number)
    print(f"{sys.argv[1]} to {sys.argv[2]} agree on {TARGET.cpu}")
