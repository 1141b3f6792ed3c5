"""Random NumPy programs: Python source written statement by statement, each tried on real arrays as it is written.

A program is a function of one or two float arrays in a closure over arrays and numbers. Its statements are drawn by
hypothesis, so that failing programs shrink; what NumPy itself refuses, or what leaves the range of modest finite
numbers, is left out. Programs change arrays in place, through views and through their own arguments.
"""

from __future__ import annotations

import linecache
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

LARGEST = 24
"""Elements of an array in a program."""
BOUND = 50.0
SHAPES = ((), (3,), (4,), (1, 3), (2, 3), (3, 2), (2, 1, 2), (1,), (3, 3))
DTYPES = ("float64", "float32", "int64", "complex128", "bool")
CONSTANTS = ("0.5", "-1.25", "2.0", "3", "-1", "0.1")

UNARY = (
    "np.sin({0})",
    "np.cos({0})",
    "np.tanh({0})",
    "np.arctan({0})",
    "np.arcsinh({0})",
    "np.exp(-{0} * {0})",
    "np.sqrt(1.0 + {0} ** 2)",
    "np.log1p({0} * {0})",
    "np.abs({0})",
    "np.square({0})",
    "-{0}",
    "+{0}",
    "{0} ** 3",
    "{0} ** 2.0",
    "2.0 ** np.sin({0})",
    "np.cbrt({0})",
    "np.sinc({0})",
    "np.floor({0}) * {0}",
    "np.sign({0}) + {0}",
    "np.clip({0}, -0.4, 0.7)",
    "np.maximum({0}, 0.0)",
    "np.where({0} > 0.1, {0}, np.sin({0}))",
    "np.nan_to_num({0})",
    "np.expm1({0} / 4)",
    "np.reciprocal(2.0 + {0} ** 2)",
    "np.float64(0.5) * {0}",
    "{0}.astype(np.float64)",
    "1.0 / (1.0 + np.exp(-{0}))",
    "np.deg2rad({0})",
    "np.positive({0})",
    "{0} % 1.5",
    "np.arcsin(np.tanh({0}))",
    "abs({0})",
    "np.angle({0} + 2.0j)",
    "np.abs(({0} + 1j) ** 2)",
    "({0} * (1 + 2j)).imag",
    "np.real(np.exp(1j * {0}))",
)
BINARY = (
    "{0} + {1}",
    "{0} - {1}",
    "{0} * {1}",
    "{0} / (1.5 + {1} * {1})",
    "np.maximum({0}, {1})",
    "np.fmin({0}, {1})",
    "np.hypot({0}, {1})",
    "np.arctan2({0}, 2.0 + {1})",
    "(1.0 + {0} ** 2) ** np.tanh({1})",
    "np.where({0} > {1}, {0}, {1} * 2.0)",
    "np.logaddexp({0}, {1})",
    "np.remainder({0}, 1.3 + np.abs({1}))",
    "np.copysign({0}, {1})",
    "np.add({0}, {1})",
    "np.subtract.outer({0}, {1})",
    "np.outer({0}, {1})",
    "{0} @ {1}",
    "np.dot({0}, {1})",
    "np.inner({0}, {1})",
    "np.tensordot({0}, {1}, 1)",
    "np.einsum('i,j->ij', {0}, {1})",
    "np.einsum('...,...->', {0}, {1})",
    "np.einsum('ij,kj->ik', {0}, {1})",
    "np.vdot({0}, {1})",
    "np.convolve({0}, {1})",
    "np.kron({0}, {1})",
    "np.concatenate([{0}, {1}])",
    "np.concatenate([{0}, {1}], axis=-1)",
    "np.stack([{0}, {1}], axis=-1)",
    "np.append({0}, {1})",
    "np.vstack([{0}, {1}])",
    "np.hstack([{0}, {1}, {0}])",
    "np.interp({0}, [-1.0, 0.0, 2.0], np.resize({1}, 3))",
)
REDUCTIONS = (
    "np.sum({0}{axis})",
    "{0}.sum({only})",
    "np.mean({0}{axis})",
    "np.max({0}{axis})",
    "np.min({0}{axis})",
    "np.prod({0}{axis})",
    "np.std({0}{axis})",
    "{0}.var({only})",
    "np.linalg.norm({0})",
    "np.median({0}{axis})",
    "np.ptp({0}{axis})",
    "np.nansum({0}{axis})",
    "np.average({0}{axis})",
    "np.quantile({0}, 0.3{axis})",
    "np.trapezoid({0}{axis})",
    "np.argmax({0}) * {0}",
    "np.add.reduce({0}{axis})",
)
ALONG = (
    "np.cumsum({0}, axis={n})",
    "np.cumprod({0}, axis={n})",
    "np.sort({0}, axis={n})",
    "np.flip({0}, {n})",
    "np.roll({0}, 1, axis={n})",
    "np.diff({0}, axis={n})",
    "np.repeat({0}, 2, axis={n})",
    "np.take_along_axis({0}, np.argsort({0}, axis={n}), axis={n})",
    "np.take({0}, [0, -1, 0], axis={n})",
    "np.expand_dims({0}, {n})",
    "np.swapaxes({0}, {n}, -1)",
    "np.moveaxis({0}, {n}, 0)",
    "np.gradient({0}, axis={n})",
    "np.partition({0}, 1, axis={n})",
    "np.delete({0}, 0, axis={n})",
    "np.split({0}, [1], axis={n})[-1]",
)
MOVES = (
    "{0}.T",
    "{0}.ravel()",
    "{0}.reshape(-1)",
    "{0}.reshape({0}.shape[::-1])",
    "{0}.copy()",
    "{0}.squeeze()",
    "{0}.flatten()",
    "np.rot90({0})",
    "np.tile({0}, 2)",
    "np.triu({0})",
    "np.diag({0})",
    "np.diagonal({0})",
    "np.trace({0})",
    "np.atleast_2d({0})",
    "np.pad({0}, 1)",
    "np.pad({0}, 1, mode='edge')",
    "np.broadcast_to({0}, (2, *{0}.shape)) * 1.0",
    "np.argsort({0}) * {0}",
    "{0}[np.argsort({0})]",
    "np.fliplr({0})",
    "np.vander({0}, 3)",
    "np.unwrap({0} * 3.0)",
    "np.cov({0})",
    "sum({0})",
    "max({0}.ravel()) * {0}",
    "np.linalg.solve({0} @ {0}.T + 2.0 * np.eye(len({0})), {0})",
    "np.linalg.inv({0}.T @ {0} + np.eye({0}.shape[1]))",
    "np.linalg.cholesky({0} @ {0}.T + np.eye(len({0})))",
    "[row * 2.0 for row in {0}][0]",
    "np.meshgrid({0}, {0})[1]",
    "np.stack([row.sum() for row in {0}])",
)
CALLS = (
    "helper({0})",
    "helper({0}, b={0})",
    "(lambda t: t * c0)({0})",
    "sg.checkpoint(helper)({0})",
    "sg.jit(helper)({0})",
    "sg.grad(lambda t: np.sum(helper(t) * t))({0})",
    "sg.jvp(helper, ({0},), ({0},))[1]",
    "sg.vmap(lambda t: helper(t) + 1.0)({0})",
    "apply(helper, {0})",
    "partial(helper, b=c0)({0})",
)
BLOCKS = (
    "if np.sum({0}) > {c}:\n    {t} = np.sin({0})\nelse:\n    {t} = {0} * 2.0",
    "{t} = {0}\nfor k in range(3):\n    {t} = np.sin({t}) * (k + 1) + c0",
    "{t} = {0} * 1.0\nwhile np.max(np.abs({t})) > 0.8:\n    {t} = {t} * 0.6",
    "{t} = {0} * 1.0\nfor k in range({0}.shape[0]):\n    {t}[k] = {t}[k] * k + {t}[k - 1]",
    "{t} = np.zeros_like({0})\nfor k, value in enumerate({0}):\n    {t}[k] += value * value",
    "try:\n    {t} = {0}.reshape(7, 11)\nexcept ValueError:\n    {t} = {0} + 1.0",
    "{t} = 0.0\nfor value in {0}.ravel():\n    if value > {c}:\n        continue\n    {t} = {t} + value ** 2",
    "parts = {{'a': {0}, 'b': [{0} * 2.0]}}\n{t} = parts['a'] + parts['b'][0]",
    "first, *rest = {0}\n{t} = first * 2.0",
)
WRITES = (
    "{0}[{i}] = {1}",
    "{0}[{i}] += {1}",
    "{0}[{i}] *= 0.5",
    "{0} *= 0.9",
    "{0} += {1}",
    "{0} -= np.tanh({1})",
    "np.add.at({0}, {a}, 0.5)",
    "np.multiply({0}, {1}, out={0})",
    "np.tanh({0}, out={0})",
    "{0}.T[...] = {1}",
    "{0}.fill(0.25)",
    "np.copyto({0}, {1})",
    "np.copyto({0}, {1}, where={0} > 0.0)",
    "np.sin({0}, out={0}, where={0} > 0.2)",
    "{0}.sort()",
    "{0}.flat[0] = 0.3",
    "{0}[{0} > 0.5] = 0.1",
    "{0}.ravel()[0] += 1.0",
    "{0}[...] = {0}[::-1]",
    "{0}[1:] = {0}[:-1]",
    "{0}[1:] += {0}[:-1]",
    "np.cumsum({0}, axis=0, out={0})",
    "np.clip({0}, -0.5, 0.5, out={0})",
    "np.fill_diagonal({0}, 0.7)",
    "{0}.reshape(-1)[::2] = 0.1",
    "np.put({0}, [0, -1], [0.2, 0.4])",
    "{0} = {0}[::-1] * 1.0",
)
FAULTS = (
    "{0}.reshape(5, 7)",
    "{0} + np.ones((7, 5, 13))",
    "{0}[99]",
    "{0}[..., 17]",
    "np.sum({0}, axis=9)",
    "np.concatenate([{0}, np.ones((1, 1, 1, 1, 1))])",
    "{0} @ np.ones((11, 2))",
    "np.linalg.inv(np.ones((2, 3)) * np.sum({0}))",
    "np.stack([{0}, np.ones(17)])",
    "np.broadcast_to({0}, (13, 17))",
    "{0}.transpose(0, 0, 0)",
    "np.take({0}, [77])",
    "bool(np.ones((2, 2)) * np.sum({0}) > 0)",
    "np.swapaxes({0}, 0, 8)",
    "np.squeeze({0}[None, None, ...], axis=7)",
    "np.split(np.ones(5) * np.sum({0}), 2)",
    "np.einsum('ij->ijk', {0})",
    "undefined_name + {0}",
)
"""Statements that NumPy refuses (most of them, for most operands)."""


@dataclass
class Program:
    """The source of ``make(c0, c1)``, which returns the program; the closure's values, the arguments."""

    source: str
    captured: tuple[Any, ...]
    args: tuple[Any, ...]
    branches: bool = False
    """Whether Python looks at numbers."""
    exact: bool = True
    """Whether all numbers are in double precision."""
    kinds: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        arguments = ", ".join(f"np.{np.asarray(arg)!r}" for arg in self.args)
        return f"\n{self.source}\n# captured: {self.captured!r}\n# arguments: {arguments}\n"


def compiled(source: str) -> dict[str, Any]:
    """Run a program's source as a module of its own, with its lines known to tracebacks."""
    filename = f"<program {zlib.crc32(source.encode())}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    names: dict[str, Any] = {}
    exec(compile(source, filename, "exec"), names)
    return names


class Writer:
    """Draws statements and runs each at once, so that the next can fit the shapes there are."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self.draw = draw
        self.lines: list[str] = []
        self.names: list[str] = []
        self.kinds: list[str] = []
        self.branches = False
        self.kind = ""
        self.env: dict[str, Any] = {}

    def choose(self, options: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(options))

    def array(self, shape: tuple[int, ...], dtype: str = "float64") -> Any:
        """Numbers apart from each other and from 0, so that few programs are at a kink."""
        if dtype == "float64":
            return self.floats(shape)
        values = self.floats(shape) * (4.0 if dtype == "int64" else 1.0)
        found = np.asarray(values * (1.0 - 0.5j) if dtype == "complex128" else values)
        return found.astype(dtype) if shape else found.astype(dtype)[()]

    def floats(self, shape: tuple[int, ...]) -> Any:
        grid = np.arange(1, 41) * 0.0437
        picked = self.draw(
            st.lists(st.integers(0, 79), min_size=int(np.prod(shape)), max_size=int(np.prod(shape)), unique=True)
        )
        values = np.array([grid[k % 40] * (1 if k < 40 else -1) for k in picked], dtype=np.float64)
        return values.reshape(shape) if shape else float(values[0])

    def shape_of(self, name: str) -> tuple[int, ...]:
        return np.shape(self.env[name])

    def index(self, shape: tuple[int, ...]) -> str:
        """An index that fits a shape: ints, slices, new axes, ellipsis, integer and boolean arrays."""
        parts = []
        for size in shape[: self.draw(st.integers(0, len(shape)))]:
            kind = self.choose(("int", "slice", "step", "list", "mask", "all", "array"))
            if kind == "int" and size:
                parts.append(str(self.draw(st.integers(-size, size - 1))))
            elif kind == "slice":
                parts.append(self.choose(("1:", ":-1", ":2", "-2:", "5:", "1:2")))
            elif kind == "step":
                parts.append(self.choose(("::-1", "::2", "::-2", "-1:0:-1", "1::-1")))
            elif kind in ("list", "array") and size:
                numbers = self.draw(st.lists(st.integers(-size, size - 1), min_size=1, max_size=3))
                parts.append(str(numbers) if kind == "list" else f"np.array({[numbers]})")
            elif kind == "mask":
                parts.append(f"np.array({self.draw(st.lists(st.booleans(), min_size=size, max_size=size))}, bool)")
            else:
                parts.append(":")
        extra = self.choose(("", "", "", "...", "None"))
        if extra:
            parts.insert(self.draw(st.integers(0, len(parts))), extra)
        return ", ".join(parts) or "..."

    def axis(self, shape: tuple[int, ...]) -> str:
        choices = ["", *[f"axis={k}" for k in range(-1, len(shape))]]
        if len(shape) > 1:
            choices.append("axis=(0, -1)")
        keep = self.choose(("", "keepdims=True"))
        return ", ".join(part for part in (self.choose(choices) if shape else "", keep) if part)

    def statement(self) -> str:
        one, other = self.choose(self.names), self.choose([*self.names, *self.names, "c0", "c1", *CONSTANTS])
        shape, target = self.shape_of(one), f"t{len(self.lines)}"
        kind = self.kind = self.choose(KINDS)
        if kind == "write":
            place = self.choose([name for name in self.names if np.ndim(self.env[name])] or self.names)
            index = self.index(self.shape_of(place))
            entries = str(self.draw(st.lists(st.integers(-1, 0), min_size=1, max_size=3)))
            return str(self.choose(WRITES)).format(place, other, i=index, a=entries)
        if kind == "block":
            return str(self.choose(BLOCKS)).format(one, t=target, c=self.choose(("0.1", "-0.7", "1.5")))
        if kind == "index":
            return f"{target} = {one}[{self.index(shape)}]"
        if kind == "reduce":
            only = self.axis(shape)
            text = str(self.choose(REDUCTIONS)).format(one, axis=f", {only}" if only else "", only=only)
        elif kind == "along":
            text = str(self.choose(ALONG)).format(one, n=self.draw(st.integers(-1, max(len(shape) - 1, 0))))
        else:
            table = {"unary": UNARY, "binary": BINARY, "move": MOVES, "call": CALLS}[kind]
            text = str(self.choose(table)).format(one, other)
        return f"{target} = {text}"

    def try_statement(self) -> None:
        """Draw one statement and keep it if NumPy runs it and its numbers are modest."""
        text = self.statement()
        before = {name: np.array(value) for name, value in self.env.items() if isinstance(value, np.ndarray)}
        rebound = {name: self.env[name] for name in self.names}
        target = f"t{len(self.lines)}"
        try:
            with np.errstate(all="ignore"):
                exec(text, self.env)
        except Exception:  # NumPy refuses it: not a program
            self.env.pop(target, None)
            self.env.update(rebound)
            return
        fine = all(is_modest(self.env[name]) for name in (*self.names, *([target] if target in self.env else [])))
        if not fine:
            self.env.pop(target, None)
            self.env.update(rebound)
            for name, value in before.items():
                if self.env[name].flags.writeable:
                    self.env[name][...] = value
            return
        self.lines.append(text)
        self.kinds.append(self.kind)
        self.branches = self.branches or self.kind == "block"
        if target in self.env:
            self.names.append(target)


def is_modest(value: Any) -> bool:
    """An array or number, small and finite."""
    if not isinstance(value, (np.ndarray, np.number, float)) or np.asarray(value).dtype.name not in DTYPES:
        return False
    return bool(np.size(value) <= LARGEST and np.all(np.abs(value) < BOUND))


KINDS = ("unary", "binary", "binary", "reduce", "along", "move", "index", "call", "block", "write", "write")
MIXED = ("float64",) * 6 + ("float32", "int64", "complex128", "bool")
HELPERS = (
    "np.sin(a) * b + a",
    "a * a - b",
    "np.where(a > 0.0, a, 0.1 * a) * b",
    "np.tanh(a) / (1.0 + b * b)",
    "np.cumsum(a, axis=-1) * b",
    "a[..., ::-1] * b",
)


@st.composite
def programs(draw: Any, faulty: bool = False) -> Program:
    """A program; a ``faulty`` one ends in a statement that NumPy may refuse."""
    writer = Writer(draw)
    count = draw(st.integers(1, 2))
    args = (writer.array(writer.choose(SHAPES)),)
    if count == 2:
        args += (writer.array(writer.choose(SHAPES), writer.choose(MIXED)),)
    if faulty:
        args = tuple(np.float64(arg) if isinstance(arg, float) else arg for arg in args)
    captured = (
        draw(st.sampled_from([0.75, -1.5, np.float64(0.3), 2, np.float32(0.5)])),
        writer.array(writer.choose(SHAPES), writer.choose(MIXED)),
    )
    helper = writer.choose(HELPERS)
    head = (
        "from functools import partial\nimport numpy as np\nimport srcgrad as sg\n"
        f"def helper(a, b=2.0):\n    return {helper}\n"
        "def apply(f, *values):\n    return f(*values)\n"
    )
    exec(head, writer.env)
    writer.names = ["x", "y"][:count]
    writer.env.update(zip(writer.names, [np.array(a) if np.ndim(a) else a for a in args], strict=True))
    writer.env.update(c0=captured[0], c1=np.array(captured[1]) if np.ndim(captured[1]) else captured[1])
    for _ in range(draw(st.integers(3, 14))):
        writer.try_statement()
    floats = [name for name in writer.names if np.asarray(writer.env[name]).dtype.kind in "fc"]
    results = [name for name in floats if name.startswith("t")][-2:] or ["x"]
    returned = results[-1] if draw(st.booleans()) else f"({', '.join([*results, floats[0]])},)"
    if faulty:
        writer.lines.append(f"t99 = {writer.choose(FAULTS).format(writer.choose(writer.names))}")
    parameters = ", ".join(["x", "y"][:count])
    body = "\n".join(f"        {line}" for text in [*writer.lines, f"return {returned}"] for line in text.splitlines())
    source = f"{head}def make(c0, c1):\n    def program({parameters}):\n{body}\n    return program\n"
    exact = not any(np.asarray(value).dtype == np.float32 for value in writer.env.values() if is_modest(value))
    return Program(source, captured, args, writer.branches, exact, writer.kinds)


def fresh(values: Sequence[Any]) -> list[Any]:
    """Copies, for a program that changes its arguments."""
    return [np.array(value) if isinstance(value, np.ndarray) else value for value in values]


def leaves_of(output: Any) -> list[Any]:
    return list(output) if isinstance(output, tuple) else [output]


def plain(program: Program, args: Sequence[Any]) -> list[Any]:
    """What NumPy itself returns."""
    with np.errstate(all="ignore"):
        return [np.array(value) for value in leaves_of(program_of(program)(*fresh(args)))]


def program_of(program: Program) -> Callable[..., Any]:
    captured = tuple(np.array(value) if isinstance(value, np.ndarray) else value for value in program.captured)
    return compiled(program.source)["make"](*captured)  # type: ignore[no-any-return]


def unseen(f: Callable[..., Any]) -> Callable[..., Any]:
    """The same function behind a container, so that it is traced at each call."""
    box = [f]
    return lambda *args: box[0](*args)


def projected(program: Program) -> Callable[..., Any]:
    """A scalar: the outputs weighted by fixed numbers."""
    f = program_of(program)

    def scalar(*args: Any) -> Any:
        total = 0.0
        for value in leaves_of(f(*args)):
            weights = np.cos(np.arange(np.size(value))).reshape(np.shape(value))
            total = total + np.sum(np.real(value) * weights) + np.sum(np.imag(value))
        return total

    return scalar
