"""Random programs of long loops over arrays: what the compiler does to loops, which short programs do not reach.

A program is the text of a seed. Its loops have more trips than are written out. They hand elements from trip to trip,
read and write rows, columns, windows and places that repeat, through views of each other, forwards and backwards, under
conditions, with choices whose other side is nan or inf, whole numbers that overflow, complex and single numbers.
"""

from __future__ import annotations

import random
import warnings

import numpy as np

from tests.fuzz.programs import Program, plain

ROWS, COLUMNS = 19, 3
BOUND = 1e3
DTYPES = ("float64",) * 6 + ("float32",)
COMPLEX = 0.15
"""Part of the programs that have complex arrays."""
REGULAR = 0.5
"""Part of the programs that are recurrences: they read and write beside the trip's place, in arrays of their own."""
HEAD = "import numpy as np\nimport srcgrad as sg\n"
NUMBERS = ("0.3", "-0.7", "1.5", "0.45", "c0")
UNARY = ("np.sin({})", "np.tanh({})", "np.cos({})", "np.arctan({})", "np.exp(-({}) ** 2)", "np.sqrt(({}) ** 2 + 0.3)")
CHOICES = (
    "np.where({0} > 0.3, np.sqrt(np.where({0} > 0.3, {0} - 0.3, 1.0)), 0.5 * {0})",
    "np.where({0} > 0.2, np.log({0} - 0.19) * 0.1, {1})",
    "np.where({0} < 0.1, {1}, 0.1 / {0})",
    "np.where({0} > 0.0, {0} ** 1.5, {1})",
    "np.where(np.abs({0}) < 1.0, np.arcsin({0}), 0.2 * {0})",
    "np.where({0} == {0}, {1}, np.nan * {0})",
    "np.maximum({0}, {1})",
    "np.minimum({0}, 0.8) * {1}",
    "np.clip({0}, -0.6, 0.7)",
    "np.abs({0}) - {1}",
)
"""Most have a nan or an inf on the side that is not taken."""
WHOLE = (
    "n = n * 1103515245 + 12345",
    "n = n ^ (n >> 7)",
    "n = n ^ (n << 9)",
    "n = n * n + {k}",
    "n = ~n & 0xFFFF",
    "n = (n >> 60) + (n & 255) - {k}",
    "n = n // 3 - n % 7",
    "h = (h * np.uint32(31)) ^ np.uint32(77)",
    "h = h >> np.uint32(1)",
    "h = h << np.uint32(3)",
)
RECURRENT = (0, 0, 1, 2, 5, 6, 7, 8, 9, 12, 15, 18)
"""The kinds of statements in recurrences."""
MOVED = (
    "np.cumsum({0})", "np.roll({0}, 1)", "np.sort({0})", "(square @ {0}) * 0.4", "({0})[twice]",
    "np.convolve({0}, taps, 'same')",
)  # fmt: skip
VECTORS = (
    "u", "v", "x", "u[::-1]", "np.sin(v)", "np.roll(u, 1)", "np.tanh(u) * x", "a[:, 1]", "b[0]", "u[order]",
    "0.5 * (u + v)", "np.where(u > 0.3, np.log(u), v)", "np.convolve(u, taps, 'same')", "np.cumsum(u) * 0.1",
    "a[:, ::-1].T[0]", "np.concatenate([u[1:], v[:1]])", "np.outer(u, taps)[:, 1]", "a @ taps",
)  # fmt: skip
TARGETS = {
    "u[1:]": "[1:]", "v[:-1]": "[1:]", "a[1:, 0]": "[:-1]", "u[::-1]": "", "v": "", "u[order]": "", "b[1]": "",
    "u[2::2]": "[2::2]", "a[:, 1]": "",
}  # fmt: skip
"""Parts that are written, and which part of a vector fits them."""
NAMED = ("v = u", "p = v[::2]", "u = u[::-1]", "p = u[1::2]", "u = x", "b = a.T", "v = u[::-1]", "a = y")
PAIRS = (
    "z = z * z * 0.2 + {0}", "z = np.exp(1j * z.real) * {0}", "s = np.abs(z + 0.3) * 0.5", "q[{i}] = z * 0.5",
    "q[{i}] += {0} * 1j", "t = np.real(q[{i}] * np.conj(z)) * 0.1", "z = np.sum(q) / (1.0 + np.abs(np.sum(q)))",
)  # fmt: skip
BEGINNINGS = (
    ("u, v = x.copy(), np.zeros_like(x)", "u, v = x * 0.7, x[::-1]", "u, v = np.sin(x), x.copy()", "u = v = x + 0.0"),
    ("a = y * 1.0", "a = y", "a = np.zeros_like(y)", "a = np.tanh(y)"),
    ("b = y.T.copy()", "b = a.T", "b = np.zeros((M, N)) + a.T * 0.5"),
    ("p = x[::2] * 1.0", "p = u[::2]", "p = v[1::2]", "p = u[::-2]", "p = a[:, 0]"),
    ("r, s, t = y[1] * 0.5, x[1], 0.25",),
    ("taps, square = c1[:M], np.outer(c1[:M], c1[1:M + 1])",),
    ("n, h, kept = 7, np.uint32(99), []",),
)


class Writer:
    """One program, statement by statement."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.counters: list[str] = []
        self.fresh = 0
        self.complex = self.random.random() < COMPLEX
        self.regular = self.random.random() < REGULAR
        self.listed = self.whole = False

    def pick(self, *options: str) -> str:
        return self.random.choice(options)

    def chance(self, part: float) -> bool:
        return self.random.random() < part

    def put(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    # --- places and numbers ------------------------------------------------------------------------
    def place(self, size: str = "N") -> str:
        """An index of an axis of so many, most often the trip's or one beside it."""
        if not self.counters:
            return self.pick("0", "-1", "2")
        k = self.random.choice(self.counters)
        if self.regular:
            return self.pick(k, k, f"{k} - 1", f"{k} - 2", f"{k} + 1") if size == "N" else self.pick("0", "1", "2")
        if size != "N":
            return self.pick(*(f"{place} % {size}" for place in (k, k, f"({k} + 1)", f"order[{k}]")), "0", "-1")
        others = (f"({k} - 1)", f"({k} + 1) % N", f"-{k} - 1", f"({k} * 3 + 1) % N", f"({k} // 2)", f"order[{k}] % N")
        return self.pick(k, k, *others, f"N - 1 - {k}", "0", "-2", f"({k} - 2)")

    def number(self, deep: int = 0) -> str:
        kind = self.random.randrange(12 if deep < 2 else 5)
        vector = self.pick("u", "v", "x", "u", "x" if self.regular else "p")
        if kind < 2:
            return f"{vector}[{self.place('(N // 2)') if vector == 'p' else self.place()}]"
        if kind == 2:
            return self.pick("s", "t", "s", *NUMBERS)
        if kind == 3:
            return f"{self.pick('a', 'y', 'a')}[{self.place()}, {self.place('M')}]"
        if kind == 4:
            return self.pick("s", "t", f"b[{self.place('M')}, {self.place()}]")
        if kind < 7:
            return self.random.choice(UNARY).format(self.number(deep + 1))
        if kind < 9:
            return f"({self.number(deep + 1)} {self.pick('+', '-', '*', '*')} {self.number(deep + 1)})"
        if kind == 9:
            return self.random.choice(CHOICES).format(self.number(deep + 1), self.number(deep + 1))
        if kind == 10 and self.counters:
            k = self.counters[0]
            return self.pick(
                f"np.sum({vector if vector != 'p' else 'u'}[{k} // 2 : {k} // 2 + 3] * taps)",
                f"np.dot(a[{self.place()}], {self.row()})",
                f"np.max({self.row()})",
                f"np.sum({self.row()})",
                f"np.mean(u[{k} // 2 : {k} // 2 + 4 : 2])",
                f"(x[{k} // 2 : {k} // 2 + 3][::-1] @ taps)",
                f"np.sum(b[:, {self.place()}])",
                f"np.linalg.norm({self.row()} + 0.2)",
            )
        return self.pick("np.sum(u) * 0.1", "np.max(v) * 0.5", "np.mean(a)", "s", f"({self.number(deep + 1)} / 2.0)")

    def row(self, deep: int = 0) -> str:
        kind = self.random.randrange(9 if deep < 2 else 3)
        if kind < 2:
            return f"{self.pick('a', 'a', 'y')}[{self.place()}]"
        if kind == 2:
            return self.pick("taps", "r", f"b[:, {self.place()}]")
        if kind == 3:
            return self.random.choice(UNARY).format(self.row(deep + 1))
        if kind < 6:
            return f"({self.row(deep + 1)} {self.pick('+', '*', '-')} {self.pick(self.row(deep + 1), self.number(2))})"
        if kind == 6:
            return self.random.choice(CHOICES).format(self.row(deep + 1), self.row(deep + 1))
        if kind == 7:
            return f"({self.row(deep + 1)})[::-1]"
        return self.random.choice(MOVED).format(self.row(deep + 1))

    def vector(self) -> str:
        found = self.random.choice(VECTORS)
        return f"{found} * {self.number(2)}" if self.chance(0.4) else found

    # --- statements --------------------------------------------------------------------------------
    def statement(self, depth: int) -> None:
        kind = self.random.choice(RECURRENT) if self.regular and self.counters else self.random.randrange(20)
        equals, value = self.pick("=", "=", "+="), self.bounded(self.number())
        if kind < 4 and self.regular and self.counters:
            array, k = self.pick("u", "v"), self.counters[-1]
            before = f"{array}[{k} {self.pick('- 1', '- 1', '+ 1', '- 2')}]"
            value = self.bounded(f"{before} {self.pick('+', '*')} {self.number()}")
            self.put(depth, f"{array}[{k}] {equals} {value}")
        elif kind < 4:
            self.put(depth, f"{self.pick('u', 'u', 'v')}[{self.place()}] {equals} {value}")
        elif kind == 4:
            self.put(depth, f"p[{self.place('(N // 2)')}] {self.pick('=', '+=', '*=')} {value}")
        elif kind < 7:
            self.put(depth, f"{self.pick('s = ', 't = ', 's, t = t, ')}{value}")
        elif kind < 9:
            places = "a[{}]", "a[{}]", "b[:, {}]", "a[{}, ::-1]", "b.T[{}]"
            target = self.pick("r", *(place.format(self.place()) for place in places))
            self.put(depth, f"{target} {'=' if target == 'r' else equals} {self.bounded(self.row())}")
        elif kind == 9:
            target = f"{self.pick('a', 'b.T')}[{self.place()}, {self.place('M')}]"
            self.put(depth, f"{target} {self.pick('=', '+=', '*=')} {value}")
        elif kind == 10:
            target = self.random.choice(list(TARGETS))
            self.put(depth, f"{target} {equals} {self.bounded(f'({self.vector()}){TARGETS[target]}')}")
        elif kind == 11:
            self.put(depth, f"np.add.at({self.pick('u', 'v')}, {self.pick('order', 'twice')}, {value})")
        elif kind == 12 and self.counters:
            self.listed = True
            self.put(depth, f"kept.append({value})" if depth == 3 else f"t = {value}")
        elif kind == 13:
            self.whole = True
            self.put(depth, self.random.choice(WHOLE).format(k=self.counters[-1] if self.counters else "3"))
        elif kind == 14 and self.complex:
            self.put(depth, self.random.choice(PAIRS).format(self.number(1), i=self.place()))
        else:
            self.control(depth, kind)

    def control(self, depth: int, kind: int) -> None:
        if kind < 17:
            self.branch(depth)
        elif kind == 17 and self.counters:
            self.put(depth, f"if {self.condition()}:")
            self.put(depth + 1, self.pick("break", "continue"))
        elif kind == 18 and depth < 4:
            self.loop(depth)
        elif not self.counters:
            self.put(depth, self.random.choice(NAMED))
        else:
            self.put(depth, f"{self.pick('u', 'v', 'a')} *= {self.pick('0.9', '-0.8')}")

    def bounded(self, text: str) -> str:
        return text if self.chance(0.45) else self.pick("np.tanh({})", "np.sin({})", "0.5 * ({})").format(text)

    def condition(self) -> str:
        if self.counters and self.chance(0.25):
            first, last = self.counters[0], self.counters[-1]
            return self.pick(f"{last} % 3 == 1", f"{last} > 11", "n % 5 == 2", f"order[{first}] > 9")
        return f"{self.number(1)} {self.pick('<', '>')} {self.random.uniform(-0.7, 0.9):.4f}"

    def branch(self, depth: int) -> None:
        if depth > 4:
            self.put(depth, f"s = {self.bounded(self.number())}")
            return
        self.put(depth, f"if {self.condition()}:")
        self.block(depth + 1, 2)
        if self.chance(0.5):
            self.put(depth, "else:")
            self.block(depth + 1, 2)

    def block(self, depth: int, most: int) -> None:
        for _ in range(self.random.randint(1, most)):
            self.statement(depth)

    def loop(self, depth: int) -> None:
        inner = bool(self.counters)
        k = "ijkl"[len(self.counters)]
        kind = self.random.randrange(8)
        if self.regular:
            self.put(depth, f"for {k} in range({self.pick('2, N - 1', '2, N - 1', 'N - 2, 1, -1')}):")
        elif kind < 3:
            self.put(depth, f"for {k} in range({self.pick('N', '1, N - 1', 'N - 2')}):")
        elif kind == 3:
            trips = self.pick("range(N - 2, 0, -1)", "reversed(range(N))", "range(N - 1, -1, -1)")
            self.put(depth, f"for {k} in {trips}:")
        elif kind == 4 and inner:
            self.put(depth, f"for {k} in range({self.pick('M', self.counters[0], '2')}):")
        elif kind == 4:
            self.put(depth, f"for {k}, t in enumerate({self.pick('x', 'u * 0.9')}):")
        elif kind == 5:
            self.put(depth, f"{k} = 0")
            self.put(depth, f"while {k} < N - 1 and {self.condition()}:")
            self.put(depth + 1, f"{k} += 1")
        elif kind == 6 and not inner:
            self.put(depth, f"for {k}, r in enumerate({self.pick('y', 'np.sin(y)', 'a * 0.5')}):")
        else:
            self.put(depth, f"for {k} in range({self.pick('0, N - 1, 1', '1, N', '2, N - 1')}):")
        self.counters.append(k)
        self.block(depth + 1, 2 if inner else 3)
        self.counters.pop()

    def text(self) -> str:
        self.put(2, f"N, M = {ROWS}, {COLUMNS}")
        for options in BEGINNINGS:
            self.put(2, options[0] if self.regular else self.random.choice(options))
        if self.complex:
            self.put(2, "z, q = x[0] + 0.5j, x * (0.3 + 0.2j)")
        for _ in range(1 + self.chance(0.25)):
            if self.chance(0.4):
                self.statement(2)
            self.loop(2)
        results = [self.pick("u", "v", "p"), self.pick("a", "b"), "s * t"]
        if self.listed:
            results.append(self.pick("np.array(kept)", "np.sum(np.array(kept))"))
        if self.whole:
            results.append(self.pick("x[n % N]", "u * (n % 5)", "x[2] * (h % np.uint32(9))"))
        if self.complex:
            results += ["z", "q"]
        self.put(2, f"return ({', '.join(results)},)")
        body = "\n".join(self.lines)
        return f"{HEAD}def make(c0, c1, order, twice):\n    def program(x, y):\n{body}\n    return program\n"


def loop_program(seed: int) -> Program:
    """The program of a seed, which NumPy may refuse."""
    writer = Writer(seed)
    source = writer.text()
    numbers = np.random.default_rng(seed)
    dtype = writer.random.choice(DTYPES)
    x, y = (numbers.uniform(-1.1, 1.3, shape).astype(dtype) for shape in ((ROWS,), (ROWS, COLUMNS)))
    captured = (
        0.75,
        numbers.uniform(-0.8, 0.9, 5),
        numbers.integers(0, ROWS, ROWS),
        numbers.integers(0, COLUMNS, COLUMNS),
    )
    return Program(source, captured, (x, y), branches=True, exact=dtype == "float64")


def runs(program: Program) -> bool:
    """Whether NumPy runs it, and its numbers are modest."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            values = plain(program, program.args)
    except Exception:
        return False
    return all(np.all(np.isfinite(value)) and np.all(np.abs(value) < BOUND) for value in values)
