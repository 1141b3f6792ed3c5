"""What every op must satisfy on its samples: the checks that ``test_samples.py`` runs on the whole registry.

Derivatives are looked at as real matrices: an array becomes the vector of its real numbers (a complex one of its real
parts, then of its imaginary parts). A cotangent u pairs with a tangent t as Re(sum(u * t)), without a conjugate: so the
unit cotangents of a complex result are 1 and -1j, and a cotangent c of an operand is the row (Re c, -Im c).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import scipy.linalg
import scipy.special

import srcgrad.ir.ops.calls  # noqa: F401  registers the ops that hold regions, as the package does all others
from srcgrad.backends.numpy import helpers
from srcgrad.backends.numpy.evaluate import evaluate
from srcgrad.ir.core import Builder, Function, Literal, Value, literal
from srcgrad.ir.opdef import REGISTRY, Lin, Op, Sample, Tangent, Term, Zero
from srcgrad.ir.transforms.batch import batch
from srcgrad.ir.transforms.interpret import push_forward
from srcgrad.ir.transforms.linear import Masked
from srcgrad.ir.transforms.linearize import record
from srcgrad.ir.transforms.transpose import pull_back
from srcgrad.ir.types import BOOL, ArrayType

Array = np.ndarray[Any, Any]


def type_of(value: Any) -> ArrayType:
    array = np.asarray(value)
    return ArrayType(array.dtype, array.shape)


@dataclass(frozen=True)
class Case:
    """One op on one sample. ``constant``: operands that are literals of the function rather than parameters."""

    op: Op
    sample: Sample
    index: int
    constant: tuple[int, ...] = ()

    def __str__(self) -> str:
        types = ", ".join(str(type_of(operand)) for operand in self.sample.operands)
        constant = f", literal operands {self.constant}" if self.constant else ""
        return f"{self.op.name} sample {self.index} {self.sample.label!r}: {types} {dict(self.sample.attrs)}{constant}"

    @cached_property
    def operands(self) -> list[Array]:
        """The operands that are parameters."""
        return [np.asarray(a) for k, a in enumerate(self.sample.operands) if k not in self.constant]

    @cached_property
    def symmetric(self) -> list[bool]:
        return [k in self.sample.symmetric for k in range(len(self.sample.operands)) if k not in self.constant]

    @cached_property
    def function(self) -> Function:
        builder = Builder()
        operands: list[Value] = []
        for k, operand in enumerate(self.sample.operands):
            type = type_of(operand)
            operands.append(literal(operand, type) if k in self.constant else builder.param(type))
        results = builder.emit_operation(self.op, operands, dict(self.sample.attrs)).results
        return builder.function(self.op.name, results)

    @cached_property
    def active(self) -> list[int]:
        """The parameters that can be differentiated: not the orders and degrees of special functions."""
        free = [k for k in range(len(self.sample.operands)) if k not in self.constant]
        fixed = getattr(self.op, "parameters", ())
        return [j for j, k in enumerate(free) if self.operands[j].dtype.kind in "fc" and k not in fixed]

    @cached_property
    def outputs(self) -> list[int]:
        """The results that can be differentiated."""
        return [k for k, result in enumerate(self.function.results) if result.type.differentiable]

    @property
    def differentiable(self) -> bool:
        return bool(self.active and self.outputs and self.input_size and self.output_size)

    @cached_property
    def input_size(self) -> int:
        return sum(reals(self.operands[k].shape, self.operands[k].dtype) for k in self.active)

    @cached_property
    def output_size(self) -> int:
        types = [self.function.results[k].type for k in self.outputs]
        return sum(reals(type.static_shape, type.dtype) for type in types)

    @cached_property
    def tolerance(self) -> float:
        dtypes = [a.dtype for a in self.operands] + [result.type.dtype for result in self.function.results]
        return max((float(np.finfo(dtype).eps) for dtype in dtypes if dtype.kind in "fc"), default=0.0) * 1e3

    @cached_property
    def random(self) -> np.random.Generator:
        return np.random.default_rng(1000 * len(self.op.name) + self.index)

    @cached_property
    def programs(self) -> dict[tuple[str, str, tuple[int, ...]], Function]:
        """The derivatives that were asked for, by what was asked."""
        return {}

    @cached_property
    def forward(self) -> tuple[Array, Array]:
        """The Jacobian and its structure (False: structurally zero), by columns."""
        return self.columns(self.operands)

    @cached_property
    def reverse(self) -> tuple[Array, Array]:
        """The same, by rows."""
        run_at = at_operands(self.program("vjp", "masked"), self.operands)
        values, structure = np.zeros((2, self.output_size, self.input_size))
        for row, seeds in enumerate(unit_seeds([self.function.results[k].type for k in self.outputs], adjoint=True)):
            found = run_at(seeds)
            values[row] = to_reals(found[::2], adjoint=True)
            structure[row] = to_reals([widen(m, v) for v, m in zip(found[::2], found[1::2], strict=True)])
        return values, structure.astype(bool)

    def alone(self, operand: int) -> tuple[Array, Array]:
        """The columns of one operand, where no other one is active."""
        return self.forward if self.active == [operand] else self.columns(self.operands, only=operand)

    def columns(self, operands: Sequence[Array], only: int | None = None) -> tuple[Array, Array]:
        active = self.active if only is None else [only]
        run_at = at_operands(self.program("jvp", "masked", tuple(active)), operands)
        seeds_of = [type_of(self.operands[k]) for k in active]
        found_values, found_structure = [], []
        for seeds in unit_seeds(seeds_of):
            found = run_at(seeds)
            found_values.append(to_reals(found[::2]))
            found_structure.append(to_reals([widen(m, v) for v, m in zip(found[::2], found[1::2], strict=True)]))
        shape = (len(found_values), self.output_size)
        return np.reshape(found_values, shape).T, np.reshape(found_structure, shape).T.astype(bool)

    def program(self, mode: str, masks: str = "", active: tuple[int, ...] = ()) -> Function:
        asked = mode, masks, active or tuple(self.active)
        if asked not in self.programs:
            build = push_forward_function if mode == "jvp" else pull_back_function
            self.programs[asked] = build(self.function, asked[2], self.outputs, masks)
        return self.programs[asked]


def widen(mask: Array, value: Array) -> Array:
    """A mask as an array like ``value`` with 1 in every real number that is not structurally zero."""
    full = np.broadcast_to(mask, value.shape)
    return full * (1 + 1j) if value.dtype.kind == "c" else full * 1.0


def reals(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    return int(np.prod(shape)) * (2 if dtype.kind == "c" else 1)


def to_reals(arrays: Sequence[Array], adjoint: bool = False) -> Array:
    """The real numbers of tangents, or of cotangents if ``adjoint``."""
    parts = [np.zeros(0)]
    for array in map(np.asarray, arrays):
        parts.append(array.real.ravel())
        if array.dtype.kind == "c":
            parts.append(-array.imag.ravel() if adjoint else array.imag.ravel())
    return np.concatenate(parts, dtype=np.float64)


def from_reals(numbers: Array, types: Sequence[ArrayType], adjoint: bool = False) -> list[Array]:
    """The inverse of `to_reals`."""
    arrays, start = [], 0
    for type in types:
        size = int(np.prod(type.static_shape))
        array = numbers[start : start + size].reshape(type.static_shape).astype(type.dtype)
        start += size
        if type.dtype.kind == "c":
            imaginary = numbers[start : start + size].reshape(type.static_shape)
            array = array + (-1j if adjoint else 1j) * imaginary
            start += size
        arrays.append(array.astype(type.dtype))
    return arrays


def unit_seeds(types: Sequence[ArrayType], adjoint: bool = False) -> Iterator[list[Array]]:
    """For each real number: a value and a mask per array, one-hot; the values elsewhere are 0."""
    size = sum(reals(type.static_shape, type.dtype) for type in types)
    for k in range(size):
        values = from_reals(np.eye(1, size, k)[0], types, adjoint)
        yield [array for value in values for array in (value, value != 0)]


SITES = (np.copy, lambda array: (array * array.dtype.type(2), np.copy(array)), lambda *operands: None)
"""What the sites of ``host_call`` samples call."""


def run(function: Function, arguments: Sequence[Any]) -> list[Array]:
    found = evaluate(function, [np.asarray(argument)[()] for argument in arguments], SITES)
    return [np.asarray(result) for result in found]


def at_operands(function: Function, operands: Sequence[Any]) -> Callable[[Sequence[Any]], list[Array]]:
    """`run` as a function of the other arguments, mostly seeds: what depends on none of them is computed once."""
    given, free = function.params[: len(operands)], function.params[len(operands) :]
    known, first, rest = set(given), [], []
    for operation in function.operations:
        fixed = known.issuperset(value for value in operation.operands if not isinstance(value, Literal))
        if fixed and not operation.op.effect and not operation.regions:
            known.update(operation.results)
            first.append(operation)
        else:
            rest.append(operation)
    read = [value for operation in rest for value in operation.operands]
    between = list(dict.fromkeys(value for value in [*read, *function.results] if value in known))
    kept = run(Function(function.name, given, first, between), operands)
    remaining = Function(function.name, [*between, *free], rest, function.results)
    return lambda seeds: run(remaining, [*kept, *seeds])


# --- programs ---------------------------------------------------------------------------------------------------------


def seed_params(builder: Builder, types: Sequence[ArrayType], masks: str) -> list[Lin]:
    """Parameters for (co)tangents; masks: ``masked`` (full, values clean), ``dirty`` (full), ``scalar`` (rank 0)."""
    seeds = []
    for type in types:
        value = builder.param(type)
        if masks:
            mask = builder.param(ArrayType(BOOL) if masks == "scalar" else type.with_dtype(BOOL))
            seeds.append(Lin(value, mask, clean=masks == "masked"))
        else:
            seeds.append(Lin(value))
    return seeds


def returned(s: Masked, tangents: Sequence[Tangent], masks: str) -> list[Value]:
    """What a program returns: values, each followed by its mask if ``masked``."""
    results: list[Value] = []
    for tangent in tangents:
        results.append(s.materialise(tangent))
        if masks == "masked":
            known = tangent.mask if isinstance(tangent, Lin) else literal(False, ArrayType(BOOL))
            results.append(known if known is not None else literal(True, ArrayType(BOOL)))
    return results


def push_forward_function(function: Function, active: Sequence[int], outputs: Sequence[int], masks: str) -> Function:
    builder = Builder()
    primals = [builder.param(param.type) for param in function.params]
    seeds = seed_params(builder, [function.params[k].type for k in active], masks)
    tangents: list[Tangent] = [Zero(primal.type) for primal in primals]
    for k, seed in zip(active, seeds, strict=True):
        tangents[k] = seed
    s = Masked(builder)
    _, outgoing = push_forward(builder, s, function, primals, tangents)
    return builder.function("forward", returned(s, [outgoing[k] for k in outputs], masks))


def pull_back_function(function: Function, active: Sequence[int], outputs: Sequence[int], masks: str) -> Function:
    builder = Builder()
    primals = [builder.param(param.type) for param in function.params]
    seeds = seed_params(builder, [function.results[k].type for k in outputs], masks)
    _, program = record(builder, function, primals, [k in active for k in range(len(primals))])
    cotangents: list[Tangent] = [Zero(result.type) for result in function.results]
    for k, seed in zip(outputs, seeds, strict=True):
        cotangents[k] = seed
    s = Masked(builder)
    residuals = [Term(builder, value) for value in program.residuals]
    outgoing = pull_back(s, program.function, residuals, cotangents)
    return builder.function("reverse", returned(s, outgoing, masks))


# --- cases ------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def cases(op: Op) -> tuple[Case, ...]:
    """The samples of an op, and again with the operands that cannot be differentiated as literals.

    They are kept while one check after the other is run on an op: most look at the same Jacobian.
    """
    found: list[Case] = []
    for index, sample in enumerate(op.samples()):
        found.append(Case(op, sample, index))
        discrete = tuple(k for k, a in enumerate(sample.operands) if np.asarray(a).dtype.kind not in "fc")
        if discrete and len(discrete) < len(sample.operands):
            found.append(replace(found[-1], constant=discrete))
    return tuple(found)


def drawn(op: Op, seed: int) -> list[Case]:
    """One of the samples of an op; none where it has none."""
    known = cases(op)
    return [known[np.random.default_rng(seed + len(op.name)).integers(len(known))]] if known else []


# --- checks -----------------------------------------------------------------------------------------------------------


def same(actual: Array, expected: Array, tolerance: float, what: str) -> None:
    np.testing.assert_allclose(
        actual, expected, rtol=tolerance, atol=tolerance * scale_of(expected), equal_nan=True, err_msg=what
    )


def scale_of(values: Array) -> float:
    finite = np.abs(values[np.isfinite(values)]) if values.size else values
    return max(1.0, float(finite.max())) if finite.size else 1.0


def both_finite(left: Array, right: Array) -> tuple[Array, Array]:
    """Replace by 0 what is infinite or nan in both: the modes agree on where, not on which of the two (inf - inf)."""
    neither = ~np.isfinite(left) & ~np.isfinite(right)
    return np.where(neither, 0.0, left), np.where(neither, 0.0, right)


def check_value(case: Case) -> None:
    """The value is that of the op's NumPy text; the results have the declared types."""
    results = run(case.function, case.operands)
    operation = case.function.operations[0]
    declared = [result.type for result in operation.results]
    names = [f"x{k}" for k in range(len(case.operands))]
    types = [operand.type for operand in operation.operands]
    text = case.op.source(names, types, declared[0] if declared else ArrayType(BOOL), case.sample.attrs)
    values = {name: operand[()] for name, operand in zip(names, case.operands, strict=True)}
    with np.errstate(all="ignore"):
        found = eval(text, {**NAMESPACE, **helper_functions(case.op), **values})
    expected = (found,) if len(declared) == 1 else (found or ())
    for result, value, type in zip(results, expected, declared, strict=True):
        assert type_of(value) == type, f"{text} gives {type_of(value)}, the op declares {type}"
        assert type_of(result) == type
        np.testing.assert_array_equal(result, value)


NAMESPACE = {"np": np, "scipy": scipy, "sites": SITES}


def helper_functions(op: Op) -> dict[str, Any]:
    """The functions that the op says its text calls."""
    return {name: getattr(helpers, name) for name in getattr(op, "helpers", ())}


def check_modes(case: Case) -> None:
    """Forward equals reverse: finite values to rounding, structural zeros exactly."""
    (forward, zeros_forward), (reverse, zeros_reverse) = case.forward, case.reverse
    same(*both_finite(forward, reverse), case.tolerance, "Jacobian: forward, reverse")
    np.testing.assert_array_equal(zeros_forward, zeros_reverse, "structure: forward, reverse")
    assert not forward[~zeros_forward].any(), "a structural zero is not 0"


def check_differences(case: Case) -> None:
    """The Jacobian, and the derivative of its adjoint along a line, against differences."""
    wide = [widest(operand) for operand in case.operands]
    types = [type_of(wide[k]) for k in case.active]
    tolerance = 1e-7 if case.tolerance < 1e-9 else 2e-3
    jacobian, results_at = case.forward[0], primal(case, wide)
    for k in range(case.input_size):
        direction = symmetrised(case, from_reals(np.eye(1, case.input_size, k)[0], types))
        expected = differences(lambda at: to_reals(results_at(at)), wide, case.active, direction)
        same(jacobian @ to_reals(direction), expected, tolerance, f"Jacobian along direction {k}: rule, differences")


def primal(case: Case, operands: Sequence[Array]) -> Callable[[Sequence[Array]], list[Array]]:
    """The results as a function of operands of these dtypes, which may be wider: a float32 sample is differenced in
    float64.
    """
    rest = iter(operands)
    sample = tuple(a if k in case.constant else next(rest) for k, a in enumerate(case.sample.operands))
    function = replace(case, sample=replace(case.sample, operands=sample)).function

    def results_at(at: Sequence[Array]) -> list[Array]:
        results = run(function, at)
        return [results[k] for k in case.outputs]

    return results_at


def widest(operand: Array) -> Array:
    wide = {"f": np.float64, "c": np.complex128}.get(operand.dtype.kind)
    return operand.astype(wide) if wide is not None else operand


def symmetrised(case: Case, direction: list[Array]) -> list[Array]:
    """Directions for operands that must stay symmetric (Hermitian)."""
    return [
        (array + array.swapaxes(-1, -2).conj()) / 2 if case.symmetric[k] else array
        for k, array in zip(case.active, direction, strict=True)
    ]


def differences(
    function: Callable[[Sequence[Array]], Array], at: Sequence[Array], active: Sequence[int], direction: Sequence[Array]
) -> Array:
    """Central differences, extrapolated to step 0 (Ridders 1982): the entry of the table that moves least."""

    def slope(step: float) -> Array:
        plus, minus = list(at), list(at)
        for k, change in zip(active, direction, strict=True):
            plus[k], minus[k] = at[k] + step * change, at[k] - step * change
        return (function(plus) - function(minus)) / (2 * step)

    step, shrink = 0.02, 1.8
    row = [slope(step)]
    best, error = row[0], np.full(row[0].shape, np.inf)
    for level in range(1, 6):
        step /= shrink
        following = [slope(step)]
        for order in range(level):
            factor = shrink ** (2 * order + 2)
            following.append((following[-1] * factor - row[order]) / (factor - 1))
            moved = np.maximum(np.abs(following[-1] - following[-2]), np.abs(following[-1] - row[order]))
            best, error = np.where(moved < error, following[-1], best), np.minimum(moved, error)
        row = following
    return best


def check_pairing(case: Case) -> None:
    """On dense seeds without masks: J t and J^T u are the Jacobian's products, and <u, J t> = <J^T u, t>."""
    jacobian = case.forward[0]
    t, u = case.random.normal(size=case.input_size), case.random.normal(size=case.output_size)
    in_types = [type_of(case.operands[k]) for k in case.active]
    out_types = [case.function.results[k].type for k in case.outputs]
    pushed = to_reals(run(case.program("jvp"), [*case.operands, *from_reals(t, in_types)]))
    pulled = to_reals(run(case.program("vjp"), [*case.operands, *from_reals(u, out_types, True)]), True)
    with np.errstate(invalid="ignore"):
        rows, columns = np.isfinite(jacobian).all(1), np.isfinite(jacobian).all(0)
        same(pushed[rows], (jacobian[rows] @ t), case.tolerance, "J t")
        same(pulled[columns], (u @ jacobian[:, columns]), case.tolerance, "J^T u")
    if rows.all() and columns.all():
        same(u @ pushed, pulled @ t, case.tolerance, "<u, J t> = <J^T u, t>")


def check_masks(case: Case) -> None:
    """Where a mask is False nothing gets through, be the value there nan; a zero operand is one that is absent."""
    jacobian, structure = case.forward
    for k in case.active:
        block, zeros = case.alone(k)
        start = sum(reals(case.operands[j].shape, case.operands[j].dtype) for j in case.active if j < k)
        expected = jacobian[:, start : start + block.shape[1]]
        same(*both_finite(block, expected), case.tolerance, f"only operand {k} active")
        np.testing.assert_array_equal(zeros, structure[:, start : start + block.shape[1]])
    in_types = [type_of(case.operands[k]) for k in case.active]
    out_types = [case.function.results[k].type for k in case.outputs]
    for mode, types, matrix in (("jvp", in_types, jacobian), ("vjp", out_types, jacobian.T)):
        for masks in ("dirty", "scalar"):
            check_dirty_seeds(case, mode, types, matrix, masks)


def check_dirty_seeds(case: Case, mode: str, types: Sequence[ArrayType], matrix: Array, masks: str) -> None:
    program = case.program(mode, masks)
    arguments, clean = [], []
    for position, type in enumerate(types):
        value = from_reals(case.random.normal(size=reals(type.static_shape, type.dtype)), [type])[0]
        mask = case.random.random(type.static_shape) < 0.5 if masks == "dirty" else np.array(position % 2 == 0)
        arguments += [np.where(mask, value, np.array(np.nan, type.dtype)), mask]
        clean.append(np.where(mask, value, np.zeros((), type.dtype)))
    adjoint = mode == "vjp"
    found = to_reals(run(program, [*case.operands, *arguments]), adjoint)
    seeds = to_reals(clean, adjoint)
    used = matrix[:, seeds != 0]
    rows = np.isfinite(used).all(1)
    same(found[rows], used[rows] @ seeds[seeds != 0], case.tolerance, f"{mode} with {masks} masks")


def check_second_order(case: Case) -> None:
    """H t, H the Hessian of <u, f>, in all four mode pairs and by differences of the reverse mode."""
    t, u = case.random.normal(size=case.input_size), case.random.normal(size=case.output_size)
    in_types = [type_of(case.operands[k]) for k in case.active]
    out_types = [case.function.results[k].type for k in case.outputs]
    tangents, cotangents = symmetrised(case, from_reals(t, in_types)), from_reals(u, out_types, True)
    forward, reverse = case.program("jvp"), case.program("vjp")
    active, outputs = tuple(case.active), range(len(case.outputs))
    inputs = range(len(active))
    forward_forward = at_operands(push_forward_function(forward, active, outputs, ""), [*case.operands, *tangents])
    columns = []
    for k in range(case.input_size):
        second = from_reals(np.eye(1, case.input_size, k)[0], in_types)
        columns.append(u @ to_reals(forward_forward(second)))
    expected = np.array(columns)
    reverse_forward = run(pull_back_function(forward, active, outputs, ""), [*case.operands, *tangents, *cotangents])
    forward_reverse = run(push_forward_function(reverse, active, inputs, ""), [*case.operands, *cotangents, *tangents])
    reverse_reverse = run(pull_back_function(reverse, active, inputs, ""), [*case.operands, *cotangents, *tangents])
    tolerance = case.tolerance * 10
    same(to_reals(reverse_forward, True), expected, tolerance, "reverse over forward, forward over forward")
    same(to_reals(forward_reverse, True), expected, tolerance, "forward over reverse, forward over forward")
    same(to_reals(reverse_reverse, True), expected, tolerance, "reverse over reverse, forward over forward")
    if case.tolerance < 1e-9:
        gradient = differences(
            lambda at: to_reals(run(reverse, [*at, *cotangents]), True), case.operands, case.active, tangents
        )
        same(expected, gradient, 1e-6, "second order: rule, differences of the first")


def check_transposed_twice(case: Case) -> None:
    """The transpose of the transpose of the linear part is the linear part."""
    reverse = case.program("vjp")
    n = len(case.operands)
    cotangents = tuple(range(n, n + len(case.outputs)))
    twice = pull_back_function(reverse, cotangents, range(len(case.active)), "")
    in_types = [type_of(case.operands[k]) for k in case.active]
    out_types = [case.function.results[k].type for k in case.outputs]
    t = case.random.normal(size=case.input_size)
    zero, tangents = from_reals(np.zeros(case.output_size), out_types), from_reals(t, in_types)
    found = to_reals(run(twice, [*case.operands, *zero, *tangents]))
    expected = to_reals(run(case.program("jvp"), [*case.operands, *tangents]))
    same(*both_finite(found, expected), case.tolerance, "(J^T)^T t, J t")


def check_batching(case: Case) -> None:
    """Batching is a loop and a stack: of the op for every choice of batched operands, of its jvp and vjp for some."""
    choices = list(itertools.product((False, True), repeat=len(case.operands)))[1:]
    compare_batched(case, case.function, case.operands, choices)
    if not case.differentiable:
        return
    in_types = [type_of(case.operands[k]) for k in case.active]
    out_types = [case.function.results[k].type for k in case.outputs]
    for mode, types in (("jvp", in_types), ("vjp", out_types)):
        seeds = [from_reals(case.random.normal(size=reals(type.static_shape, type.dtype)), [type])[0] for type in types]
        count = len(case.operands) + len(seeds)
        singles = [tuple(k == j for k in range(count)) for j in range(count)]
        compare_batched(case, case.program(mode), [*case.operands, *seeds], [*singles, (True,) * count])


def compare_batched(
    case: Case, function: Function, operands: Sequence[Array], choices: Sequence[tuple[bool, ...]]
) -> None:
    others = [other_example(operand) for operand in operands]
    first = run(function, operands)
    for choice in choices:
        if not choice:
            continue
        stacked = [np.stack([a, b]) if flag else a for a, b, flag in zip(operands, others, choice, strict=True)]
        found = run(batch(function, choice, 2), stacked)
        second = [b if flag else a for a, b, flag in zip(operands, others, choice, strict=True)]
        loop = [np.stack(pair) for pair in zip(first, run(function, second), strict=True)]
        for actual, expected in zip(found, loop, strict=True):
            assert type_of(actual) == type_of(expected)
            same(actual, expected, case.tolerance, f"{function.name}: batched {choice}, loop")


def other_example(operand: Array) -> Array:
    """Another operand in the op's domain: integers in another order, the others nearer to 0."""
    if operand.dtype.kind in "fc":
        return np.multiply(operand, 0.75, dtype=operand.dtype)
    return np.flip(operand)


CHECKS: dict[str, Callable[[Case], None]] = {
    "value": check_value,
    "modes": check_modes,
    "differences": check_differences,
    "pairing": check_pairing,
    "masks": check_masks,
    "second_order": check_second_order,
    "transposed_twice": check_transposed_twice,
    "batching": check_batching,
}


HOLES: dict[tuple[str, str], str] = {}
"""(op, rule) -> why the op does not have the rule: one of ``jvp``, ``transpose``, ``batch``."""


NOT_DIFFERENTIATED = {"stop_gradient": "its tangent is zero by definition"}
"""op -> why its derivative is not the one that differences approach."""


def applies(check: str, case: Case) -> bool:
    if check == "batching" and (case.op.name, "batch") in HOLES:
        return False
    if check in ("value", "batching"):
        return not case.constant
    if check in ("differences", "second_order"):
        return case.differentiable and case.sample.smooth and case.op.name not in NOT_DIFFERENTIATED
    return case.differentiable


def run_check(op: Op, check: str) -> int:
    """Run one check on all samples of an op; returns on how many it applied."""
    count = 0
    for case in cases(op):
        if not applies(check, case):
            continue
        count += 1
        vars(case).pop("random", None)  # what a check draws does not depend on which ran before it
        try:
            CHECKS[check](case)
        except Exception as error:
            error.add_note(f"in check {check!r} of {case}")
            raise
    return count


def ops() -> list[Op]:
    """All ops: those of the packages imported above register themselves."""
    return [REGISTRY[name] for name in sorted(REGISTRY)]
