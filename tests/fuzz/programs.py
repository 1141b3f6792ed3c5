"""Random NumPy programs: Python source written statement by statement, each tried on real arrays as it is written.

A program is a function of one or two float arrays in a closure over arrays and numbers. Its statements are drawn by
hypothesis, so that failing programs shrink; what NumPy itself refuses, or what leaves the range of modest finite
numbers, is left out. Programs change arrays in place, through views and through their own arguments.
"""

from __future__ import annotations

import itertools
import linecache
import re
import warnings
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

from srcgrad.cache import is_pure
from tests.fuzz import scipy_rules, special_tables
from tests.fuzz.statements import BLOCKS, CALLS, FAULTS, WRITES
from tests.fuzz.tables import ALONG, BINARY, MATRICES, MOVES, REDUCTIONS, UNARY

LARGEST = 24
"""Elements of an array in a program."""
BOUND = 50.0
SQUARE = "({0} @ {0}.T / 4 + np.diag(np.arange(len({0})) * 0.3 + 1.5))"
DEFINITE = "({0} @ np.conj({0}).mT + 2.0 * np.eye({0}.shape[-2]))"
"""Matrices whose condition is modest, made of a matrix."""
SHAPES = ((), (3,), (4,), (1, 3), (2, 3), (3, 2), (2, 1, 2), (1,), (3, 3))
DTYPES = ("float64", "float32", "int64", "complex128", "bool")
CONSTANTS = ("0.5", "-1.25", "2.0", "3", "-1", "0.1")


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
        elif kind == "matrix":
            one = self.choose([name for name in self.names if np.ndim(self.env[name]) == 2] or self.names)
            text = str(self.choose(DRAWN_MATRICES)).format(one, m=SQUARE.format(one), s=DEFINITE.format(one))
        else:
            table = {"unary": UNARY, "binary": BINARY, "move": MOVES, "call": CALLS, "special": SPECIAL}[kind]
            text = str(self.choose(table)).format(one, other)
        return f"{target} = {text}"

    def try_statement(self) -> None:
        """Draw one statement and keep it if NumPy runs it and its numbers are modest."""
        text = self.statement()
        before = {name: np.array(value) for name, value in self.env.items() if isinstance(value, np.ndarray)}
        rebound = {name: self.env[name] for name in self.names}
        target = f"t{len(self.lines)}"
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("error")  # deprecations, discarded imaginary parts, poor fits: not a program
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
                if self.env[name].shape != value.shape:  # a block has bound the name to another array
                    self.env[name] = value
                elif self.env[name].flags.writeable:
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


def has_rules(text: str) -> bool:
    """Whether srcgrad has a rule for each function of SciPy in a statement."""
    found = re.findall(r"\b(special|sl|fft|signal)\.(\w+)", text)
    return all(is_pure(getattr(getattr(scipy_rules, module), name, None)) for module, name in found)


SPECIAL = tuple(text for text in special_tables.SPECIAL if has_rules(text))
DRAWN_MATRICES = tuple(text for text in MATRICES if has_rules(text))
KINDS = (
    ("unary",) * 3 + ("binary",) * 3 + ("reduce", "along", "along", "move", "move", "index", "call", "block")
    + ("special",) * 2 + ("matrix",) + ("write",) * 3
)  # fmt: skip
HEAD = (
    "from functools import partial\nimport numpy as np\nimport srcgrad as sg\n"
    "from tests.fuzz.scipy_rules import fft, signal, sl, special\n"
    "def helper(a, b=2.0):\n    return {helper}\n"
    "def apply(f, *values):\n    return f(*values)\n"
    "@sg.custom_jvp\ndef pushed(a):\n    return np.sin(a) * a\n"
    "@pushed.defjvp\ndef rule(primals, tangents):\n"
    "    (a,), (t,) = primals, tangents\n    return pushed(a), t * (np.cos(a) * a + np.sin(a))\n"
    "@sg.custom_vjp\ndef pulled(a, b):\n    return np.tanh(a) * b\n"
    "def forward(a, b):\n    return pulled(a, b), (a, b)\n"
    "def backward(kept, g):\n    a, b = kept\n    t = np.tanh(a)\n    return g * b * (1.0 - t * t), g * t\n"
    "pulled.defvjp(forward, backward)\n"
)
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
def programs(draw: Any, faulty: bool = False, most: int = 14) -> Program:
    """A program of at most so many statements; a ``faulty`` one ends in a statement that NumPy may refuse."""
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
    head = HEAD.format(helper=helper)
    exec(head, writer.env)
    writer.names = ["x", "y"][:count]
    writer.env.update(zip(writer.names, [np.array(a) if np.ndim(a) else a for a in args], strict=True))
    writer.env.update(c0=captured[0], c1=np.array(captured[1]) if np.ndim(captured[1]) else captured[1])
    for _ in range(draw(st.integers(min(3, most), most))):
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


def template_calls() -> list[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    """Each template of an expression once, as a function and operands that NumPy takes; those without are left out."""
    operands = [np.linspace(0.31, 1.27, 9).reshape(3, 3) ** 2, np.array([0.4, -0.7, 0.9]), np.linspace(-0.9, 1.1, 6)]
    operands += [operands[2].reshape(2, 3), np.float64(0.7)]
    found = []
    texts = [
        (text, {"axis": "", "only": "", "n": 0}) for text in (*UNARY, *BINARY, *REDUCTIONS, *ALONG, *MOVES, *CALLS)
    ]
    texts += [(text, {}) for text in SPECIAL]
    texts += [(text, {"m": SQUARE.format("x"), "s": DEFINITE.format("x")}) for text in DRAWN_MATRICES]
    for text, more in texts:
        expression = text.format("x", "y", **more)
        source = f"{HEAD.format(helper=HELPERS[0])}c0 = 0.75\ndef program(x, y):\n    return {expression}\n"
        for x, y in itertools.product(operands, operands):
            f = compiled(source)["program"]
            try:
                with np.errstate(all="ignore"), warnings.catch_warnings():
                    warnings.simplefilter("error")
                    value = f(np.array(x)[()], np.array(y)[()])
                    np.asarray(value) + 0.0
            except Exception:
                continue
            found.append((text, f, (x, y)))
            break
    return found
