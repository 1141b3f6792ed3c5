"""Functions beside a step, for what it does in several places: products, combinations and norms of square matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from srcgrad.backends.llvm.emitter import F64, DType, Number
from srcgrad.backends.llvm.steps.blas import write_dot_general
from srcgrad.backends.llvm.steps.lapack import Lapack
from srcgrad.backends.llvm.vector_math import FUNCTIONS
from srcgrad.ir.core import Builder
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.types import ArrayType

PARAMETERS: Final = ("%a", "%b", "%c")


class Matrices(Lapack):
    """A step that computes with square matrices of ``n`` rows; arithmetic with real numbers is that of their parts."""

    def prepare(self, rows: int, dtype: DType | None = None) -> None:
        """Compute with matrices of so many rows; ``dtype``: with such numbers, whatever the operand has."""
        self.n = rows
        if dtype is not None:
            self.dtype, self.size = dtype, dtype.itemsize
        self.parts = 2 if self.dtype.kind == "c" else 1
        self.numbers = rows * rows * self.parts
        self.nbytes = rows * rows * self.size
        self.suffix = f"{self.dtype.name}_{rows}"
        self.outlined = True
        self.product_scratch = ""

    def function(self, name: str, count: int, body: Callable[[], str]) -> str:
        """Define a function of ``count`` pointers, `PARAMETERS`, and a whole number ``%k``; ``body`` gives its result.

        Functions of equal names are equal.
        """
        if name not in self.definitions:
            saved = self.lines, self.allocated, self.block
            self.lines, self.allocated, self.block = [], [], "entry"
            result = body()
            type = result.split()[0]
            width = 8 * self.target.vector_bytes
            attributes = f'noinline nounwind "prefer-vector-width"="{width}" "min-legal-vector-width"="{width}"'
            head = f"define internal {type} @{name}({', '.join(f'ptr {x}' for x in PARAMETERS[:count])}, i64 %k)"
            lines = [f"{head} {attributes} {{", "entry:", *self.allocated, *self.lines, f"  ret {result}", "}", ""]
            self.definitions[name] = "\n".join(lines)
            self.lines, self.allocated, self.block = saved
        return name

    def run_function(self, name: str, *pointers: str, count: Number | int = 0, type: str = "void") -> str:
        number = count.text if isinstance(count, Number) else str(count)
        text = f"call {type} @{name}({', '.join(f'ptr {pointer}' for pointer in pointers)}, i64 {number})"
        if type == "void":
            self.do(text)
            return ""
        return self.emit(text)

    # --- control -----------------------------------------------------------------------------------
    def when(self, condition: Number, body: Callable[[], None], otherwise: Callable[[], None] | None = None) -> None:
        yes, no, after = self.label("yes"), self.label("no"), self.label("after")
        self.branch(condition, yes, no)
        for label, part in ((yes, body), (no, otherwise)):
            self.start(label)
            if part is not None:
                part()
            self.jump(after)
        self.start(after)

    def number(self, value: float) -> Number:
        return self.constant(value, F64, 1)

    def strips(self, count: int, body: Callable[[Number, int], None]) -> None:
        """Run ``body`` from places, for so many neighbours."""
        lanes = min(self.target.vector_bytes // 8, 1 << (count.bit_length() - 1))
        whole = count // lanes * lanes
        self.loop(whole, lambda j: body(j, lanes), 0, lanes)
        self.loop(count, lambda j: body(j, 1), whole)

    # --- numbers, as one part or two ---------------------------------------------------------------
    def numbers_at(self, name: str, values: Sequence[float]) -> str:
        """A pointer to constant numbers."""
        text = ", ".join(f"double {self.constant(value, F64, 1).text}" for value in values)
        return self.constant_at(name, f"[{len(values)} x double] [{text}]")

    def load_parts(self, place: str) -> list[Number]:
        return [self.load(self.at(place, 8 * part), F64) for part in range(self.parts)]

    def store_parts(self, parts: Sequence[Number], place: str) -> None:
        for part, number in enumerate(parts):
            self.store(number, self.at(place, 8 * part))

    def times(self, a: Sequence[Number], b: Sequence[Number]) -> list[Number]:
        if self.parts == 1:
            return [self.mul(a[0], b[0])]
        with self.strict():
            real = self.sub(self.mul(a[0], b[0]), self.mul(a[1], b[1]))
            return [real, self.add(self.mul(a[0], b[1]), self.mul(a[1], b[0]))]

    # --- matrices ----------------------------------------------------------------------------------
    def combine(self, target: str, sources: Sequence[str], formula: Callable[..., Number]) -> None:
        """A formula of the numbers of matrices, of which the target may be one."""

        def body(j: Number, lanes: int) -> None:
            found = formula(*[self.load(self.at(source, 0, (j, 8)), F64, lanes) for source in sources])
            self.store(found, self.at(target, 0, (j, 8)))

        self.strips(self.numbers, body)

    def scale(self, place: str, factor: Number) -> None:
        """Multiply a matrix in its place."""

        def body(j: Number) -> None:
            start = self.at(place, 0, (j, 8))
            self.store(self.mul(self.load(start, F64), factor), start)

        self.loop(self.numbers, body)

    def multiply(self, target: str, left: str, right: str) -> None:
        name = f"matrices_product_{self.suffix}"
        if not self.product_scratch:
            builder = Builder()
            type = ArrayType(self.dtype, (self.n, self.n))
            attrs = {"contract": ((1,), (0,)), "batch": ((), ())}
            operands = [builder.param(type), builder.param(type)]
            operation = builder.emit_operation(REGISTRY["dot_general"], operands, attrs)
            step = write_dot_general(operation, name, self.target)
            assert step is not None
            self.definitions[name] = step.text
            self.definitions.update(step.definitions)
            self.declarations |= step.declarations
            self.symbols.update(step.symbols)
            self.product_scratch = self.reserve(step.scratch) if step.scratch else "null"
        self.do(f"call i32 @{name}(ptr {left}, ptr {right}, ptr {target}, ptr {self.product_scratch})")

    def polynomial_of_matrix(self, target: str, powers: str, coefficients: str, count: Number | int) -> None:
        """The first coefficient on the diagonal, and ``count`` more times matrices that lie one after the other."""

        def body() -> str:
            given = Number("%k", self.index(0).dtype, 1)
            pointers = PARAMETERS

            def strip(j: Number, lanes: int) -> None:
                def add(k: Number, carried: list[Number]) -> list[Number]:
                    factor = self.splat(self.load(self.at(pointers[2], 8, (k, 8)), F64), lanes)
                    place = self.at(pointers[1], 0, (k, self.nbytes), (j, 8))
                    return [self.fma(factor, self.load(place, F64, lanes), carried[0])]

                (found,) = self.fold(given, [self.constant(0.0, F64, lanes)], add)
                self.store(found, self.at(pointers[0], 0, (j, 8)))

            self.strips(self.numbers, strip)
            first = self.load(pointers[2], F64)

            def shift(i: Number) -> None:
                place = self.at(pointers[0], 0, (i, (self.n + 1) * self.size))
                self.store(self.add(self.load(place, F64), first), place)

            self.loop(self.n, shift)
            return "void"

        name = self.function(f"matrices_polynomial_{self.suffix}", 3, body)
        self.run_function(name, target, powers, coefficients, count=count)

    def column_sums(self, target: str, matrix: str, weights: str) -> Number:
        """The sums of the sizes of what stands in columns, row by row times weights; the largest one is the result."""

        def body() -> str:
            def size(place: str, lanes: int) -> Number:
                if self.parts == 1:
                    return self.intrinsic("fabs", self.load(place, F64, lanes))
                x, y = (self.load(self.at(place, 8 * k), F64) for k in range(2))
                return FUNCTIONS["hypot"](self, x, y)

            def strip(j: Number, lanes: int) -> None:
                def add(i: Number, carried: list[Number]) -> list[Number]:
                    weight = self.splat(self.load(self.at(PARAMETERS[2], 0, (i, 8)), F64), lanes)
                    place = self.at(PARAMETERS[1], 0, (i, self.n * self.size), (j, self.size))
                    return [self.fma(weight, size(place, lanes), carried[0])]

                (found,) = self.fold(self.n, [self.constant(0.0, F64, lanes)], add)
                self.store(found, self.at(PARAMETERS[0], 0, (j, 8)))

            if self.parts == 1:
                self.strips(self.n, strip)
            else:
                self.loop(self.n, lambda j: strip(j, 1))

            def compare(j: Number, carried: list[Number]) -> list[Number]:
                return [FUNCTIONS["maximum"](self, carried[0], self.load(self.at(PARAMETERS[0], 0, (j, 8)), F64))]

            (found,) = self.fold(self.n, [self.number(0.0)], compare)
            return f"double {found.text}"

        name = self.function(f"matrices_column_sums_{self.suffix}", 3, body)
        return Number(self.run_function(name, target, matrix, weights, type="double"), F64, 1)
