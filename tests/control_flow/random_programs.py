"""Random programs with views, writes, shared memory and nested control flow, as Python text."""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from typing import Any

import numpy as np

SIZE = 4
SCALARS = ("s", "t")
ARRAYS = ("a", "b", "c")


class Writer:
    """One program, statement by statement; values stay bounded, and comparisons stay away from ties."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.loops = 0
        self.names = 0

    def scalar(self) -> str:
        kind = self.random.randrange(8)
        array, place = self.random.choice(ARRAYS), self.random.randrange(SIZE)
        if kind < 3:
            return self.random.choice(SCALARS)
        if kind == 3:
            return f"{array}[{place}]"
        if kind == 4:
            return f"np.sin({self.random.choice(SCALARS)})"
        if kind == 5:
            return f"({self.scalar()} * {self.random.choice(['0.5', '-0.75', '0.25'])} + {self.random.random():.3f})"
        if kind == 6:
            return f"np.sum({array}[{self.random.choice(['1:', ':2', '::2', '::-1'])}]) * 0.25"
        return f"math.tanh({self.random.choice(SCALARS)})"

    def array(self) -> str:
        kind = self.random.randrange(7)
        name = self.random.choice(ARRAYS)
        if kind == 0:
            return name
        if kind == 1:
            return f"{name}.copy()"
        if kind == 2:
            return f"np.sin({name})"
        if kind == 3:
            return f"{name}[::-1]"
        if kind == 4:
            return f"{name} * {self.scalar()}"
        if kind == 5:
            return f"0.5 * ({name} + {self.random.choice(ARRAYS)})"
        return f"np.zeros({SIZE})"

    def condition(self) -> str:
        kind = self.random.randrange(6)
        value = f"{self.scalar()} {self.random.choice('<>')} {self.random.uniform(-0.6, 0.9):.4f}"
        if kind == 0:
            return f"{value} and {self.scalar()} > {self.random.uniform(-0.6, 0.9):.4f}"
        if kind == 1:
            return f"{value} or not {self.scalar()} > {self.random.uniform(-0.6, 0.9):.4f}"
        if kind == 2:
            return f"-0.41 < {self.scalar()} < 0.87"
        return value

    def index(self) -> str:
        options = [str(self.random.randrange(SIZE)), "1:3", "::2", ":"]
        if self.loops:
            options += [f"k{self.loops} % {SIZE}"] * 3
        return self.random.choice(options)

    def put(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def statement(self, depth: int, in_loop: bool) -> None:
        kind = self.random.randrange(16)
        if kind < 3:
            self.put(depth, f"{self.random.choice(SCALARS)} = {self.scalar()}")
        elif kind == 3:
            self.put(depth, f"{self.random.choice(SCALARS)} += 0.5 * {self.scalar()}")
        elif kind == 4:
            self.put(depth, f"{self.random.choice(ARRAYS)} = {self.array()}")
        elif kind < 7:
            self.put(depth, f"{self.random.choice(ARRAYS)}[{self.index()}] = {self.scalar()}")
        elif kind == 7:
            self.put(depth, f"{self.random.choice(ARRAYS)}[{self.index()}] *= {self.scalar()}")
        elif kind == 8:
            self.put(depth, f"{self.random.choice(ARRAYS)} += 0.5 * {self.array()}")
        elif kind == 9:
            self.put(depth, f"s, t = t, {self.scalar()}")
        elif kind < 13:
            self.branch(depth, in_loop)
        elif kind < 15:
            self.loop(depth)
        elif in_loop:
            self.put(depth, f"if {self.condition()}:")
            self.put(depth + 1, self.random.choice(["break", "continue", "break"]))
        elif self.random.randrange(3) == 0:
            self.put(depth, f"if {self.condition()}:")
            self.put(depth + 1, f"return {self.scalar()} * 3.0")

    def block(self, depth: int, in_loop: bool, most: int = 3) -> None:
        for _ in range(self.random.randint(1, most) if depth < 5 else 0):
            self.statement(depth, in_loop)
        if depth >= 5:
            self.put(depth, f"{self.random.choice(SCALARS)} = {self.scalar()}")
        self.put(depth, "pass")

    def branch(self, depth: int, in_loop: bool) -> None:
        if depth > 4:
            return
        self.put(depth, f"if {self.condition()}:")
        self.block(depth + 1, in_loop)
        if self.random.random() < 0.3:
            self.put(depth, f"elif {self.condition()}:")
            self.block(depth + 1, in_loop)
        if self.random.random() < 0.6:
            self.put(depth, "else:")
            self.block(depth + 1, in_loop)

    def loop(self, depth: int) -> None:
        if depth > 3:
            return
        self.loops += 1
        mine = self.loops
        if self.random.random() < 0.5:
            trips = self.random.choice(["3", "4", "40", "np.int64(2) + (s > 0.2)"])
            if trips.startswith("np"):
                trips = "2 + int(s > 0.2)"
            self.put(depth, f"for k{mine} in range({trips}):")
            self.block(depth + 1, True)
        else:
            self.put(depth, f"k{mine} = 0")
            self.put(depth, f"while k{mine} < 5 and ({self.condition()}):")
            self.put(depth + 1, f"k{mine} += 1")
            self.block(depth + 1, True)
        if self.random.random() < 0.2:
            self.put(depth, "else:")
            self.block(depth + 1, False, 1)
        self.loops -= 1

    def program(self) -> str:
        self.put(0, "def program(x):")
        self.put(1, "a = x.copy()")
        self.put(1, f"b = np.zeros({SIZE})")
        self.put(1, "c = np.sin(x) if x[0] > -5.0 else x * 0.5")
        self.put(1, "s, t = x[1], 0.25")
        for _ in range(self.random.randint(3, 6)):
            self.statement(1, False)
        self.put(1, "return np.sum(np.tanh(a)) + 2.0 * np.sum(np.tanh(b)) + np.sum(np.tanh(c) * x) + np.tanh(s) * t")
        return "\n".join(self.lines) + "\n"


def program(seed: int) -> tuple[str, Callable[..., Any]]:
    """The text of the program of a seed, and its function."""
    text = Writer(seed).program()
    file = f"<random program {seed}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names: dict[str, Any] = {"np": np}
    import math

    names["math"] = math
    exec(compile(text, file, "exec"), names)
    return text, names["program"]


def point(seed: int) -> Any:
    return np.random.default_rng(seed).uniform(-1.0, 1.0, SIZE)
