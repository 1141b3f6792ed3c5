"""A traced function and its derivatives as programs: on each backend, and by jax's own differentiation.

Complex arguments and outputs count as pairs of real ones. A derivative is named by its *chain* of modes, the first
innermost: ``("fwd", "rev")`` is reverse over forward. As *matrices* derivatives are whole; as *products* they are
multiplied with random directions, ``u . d^k f [v, …, v]`` with one slot open: the output's until reverse mode is first
applied, then an input's.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from srcgrad.building import Built, Job
from srcgrad.compiler import compiled, interpreted, prepared
from srcgrad.ir.core import Builder, Function
from srcgrad.ir.transforms.derivatives import jacobian, vjp
from srcgrad.ir.transforms.interpret import inline
from srcgrad.ir.transforms.linearize import copy_params, jvp
from srcgrad.lowering import lower
from srcgrad.real_derivatives import Part, Reals, chosen_leaves, divided, in_real_parts, joined
from srcgrad.testing.problem import assemble
from srcgrad.tracing.function import StaticLeaf, Traced
from srcgrad.tracing.pytree import flatten
from srcgrad.transformed import Transformed

Chain = tuple[str, ...]
Directions = tuple[Reals, Reals]
"""A random direction of all inputs, and one of all outputs."""

MODES = ("fwd", "rev")


def chains(order: int) -> list[Chain]:
    """All nestings of the orders 0 to ``order``."""
    return [chain for k in range(order + 1) for chain in itertools.product(MODES, repeat=k)]


class Whole(Transformed):
    """The function itself, kept as what the passes before differentiation make of it."""

    kind = "cross_check"

    def __init__(self, f: Callable[..., Any], argnums: tuple[int, ...] | None) -> None:
        self.argnums = argnums
        self.seen: tuple[Traced, tuple[bool, ...]] | None = None
        super().__init__(f, None, (argnums,))

    def job(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Job:
        leaves, treedef = flatten((args, kwargs))
        chosen = chosen_leaves(args, self.argnums)
        return Job(leaves, treedef, (*chosen, *[False] * (len(leaves) - len(chosen))))

    def build(self, traced: Traced, job: Job, active: tuple[bool, ...]) -> Built:
        self.seen = (traced, active)
        return Built(traced.function, lambda found, stages: list(found))


class Subject(NamedTuple):
    """A function at a point, traced, in real numbers."""

    raw: Function
    """As traced, before any pass."""
    prepared: Function
    """After the passes that come before differentiation."""
    active: tuple[bool, ...]
    """Per parameter, whether it is differentiated."""
    arguments: list[Any]
    """The parameters' values."""
    inputs: list[Part]
    outputs: list[Part]
    again: bool
    """Whether the program holds for this point only, since Python code looked at numbers."""

    @property
    def rows(self) -> int:
        return self.outputs[-1].stop if self.outputs else 0

    @property
    def columns(self) -> int:
        return self.inputs[-1].stop


def subject(
    f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], argnums: tuple[int, ...] | None,
    inputs: list[Part], outputs: list[Part],
) -> Subject:  # fmt: skip
    """Trace a function; ``inputs`` and ``outputs`` are the parts of its differentiated leaves and of what it returns.

    Raises:
        What tracing ``f`` at these arguments raises.
    """
    whole = Whole(f, argnums)
    found = lower(whole, args, kwargs, "cross_check")
    assert whole.seen is not None
    traced, active = whole.seen
    positions = [o for o in traced.outputs if not isinstance(o, StaticLeaf)]
    positions = [o for o in positions if traced.function.results[o].type.differentiable]
    raw, _ = in_real_parts(found.traced, active, positions)
    ready, flags = in_real_parts(traced.function, active, positions)
    arguments: list[Any] = []
    for item, flag in zip(found.inputs, active, strict=True):
        split = flag and item.type.dtype.kind == "c"
        arguments += [np.array(item.value.real)[()], np.array(item.value.imag)[()]] if split else [item.value]
    return Subject(raw, ready, tuple(flags), arguments, inputs, outputs, found.retraced is not None)


# --- derivatives as functions of the language -----------------------------------------------------


def matrix(function: Function, active: Sequence[bool], chain: Chain) -> Function:
    """The nested Jacobian; its results are blocks, a row of them for each block of the next lower order."""
    for mode in chain:
        function = prepared(function)
        count = len(function.results)
        full = jacobian(function, active, range(count), mode == "fwd")
        function = Function(full.name, full.params, full.operations, full.results[count:])
    return function


def product(function: Function, active: Sequence[bool], chain: Chain) -> Function:
    """The nested products; each mode adds parameters for its directions at the end."""
    flags = list(active)
    for mode in chain:
        function = prepared(function)
        count = len(function.results)
        full = (jvp if mode == "fwd" else vjp)(function, flags)
        function = Function(full.name, full.params, full.operations, full.results[count:])
        flags += [False] * (len(function.params) - len(flags))
    return function


def directions_of(found: Subject, chain: Chain, along: Directions) -> list[Any]:
    """The extra arguments of `product`."""
    inward, outward = along
    given: list[Any] = []
    slot, parts = outward, found.outputs
    for mode in chain:
        if mode == "fwd":
            given += divided(inward, found.inputs, True)
        else:
            given += divided(slot, parts, True)
            slot, parts = inward, found.inputs
    return given


Runner = Callable[[Sequence[Any]], Sequence[Any]]


class Programs:
    """All derivatives up to an order, compiled: by one backend, or interpreted.

    Args:
        found: the function, with `Subject.prepared` or another program in its place.
        order: the highest derivative.
        along: the random directions of products; None for matrices.
        backend: its name; None interprets, operation by operation.
    """

    def __init__(self, found: Subject, order: int, along: Sequence[Directions] | None, backend: str | None) -> None:
        self.found = found
        self.along = along
        self.chains = chains(order)
        derive = matrix if along is None else product
        functions = [derive(found.prepared, found.active, chain) for chain in self.chains]
        self.extras = [len(function.params) - len(found.active) for function in functions]
        self.counts = [len(function.results) for function in functions]
        self.runners: list[Runner]
        if backend is None or backend == "numpy":
            self.runners = [interpreted(f) if backend is None else compiled(f, backend) for f in functions]
        else:
            self.runners = [compiled(together(functions, len(found.active)), backend)]

    def __call__(self, arguments: Sequence[Any]) -> dict[Chain, Reals]:
        """Per chain a matrix: whole, or a column per direction."""
        if self.along is None:
            return {
                chain: assemble(blocks, self.found.inputs, len(chain)) if chain else joined(blocks)
                for chain, blocks in zip(self.chains, self.run(arguments, None), strict=True)
            }
        columns = [[joined(blocks) for blocks in self.run(arguments, along)] for along in self.along]
        return {chain: np.stack([column[k] for column in columns], axis=-1) for k, chain in enumerate(self.chains)}

    def run(self, arguments: Sequence[Any], along: Directions | None) -> Iterator[Sequence[Any]]:
        given = [[] if along is None else directions_of(self.found, chain, along) for chain in self.chains]
        if len(self.runners) == len(self.chains):
            for runner, extra in zip(self.runners, given, strict=True):
                yield runner([*arguments, *extra])
            return
        results = iter(self.runners[0]([*arguments, *itertools.chain(*given)]))
        for count in self.counts:
            yield list(itertools.islice(results, count))


def together(functions: Sequence[Function], shared: int) -> Function:
    """One function that gives all results; the first ``shared`` parameters are the same for all."""
    builder = Builder()
    front = copy_params(builder, functions[0])[:shared]
    builder.params = list(front)
    results = []
    for function in functions:
        extra = [builder.param(param.type) for param in function.params[shared:]]
        results += inline(builder, function, [*front, *extra])
    return builder.function("cross_check", results)


# --- jax's own differentiation --------------------------------------------------------------------


class JaxPrograms:
    """jax's derivatives of the function as the xla backend writes it: none of srcgrad's derivative rules take part."""

    def __init__(self, found: Subject, order: int, along: Sequence[Directions] | None) -> None:
        from srcgrad.testing.with_jax import jax_derivatives  # only this needs jax

        self.found = found
        self.along = along
        self.chains = [chain for chain in chains(order) if chain in (("fwd",), ("rev",), ("rev", "fwd"))]
        self.derive = jax_derivatives(found, self.chains, along is None)

    def __call__(self, arguments: Sequence[Any]) -> dict[Chain, Reals]:
        if self.along is None:
            blocks = self.derive(arguments, [[] for _ in self.chains])
            return {
                chain: assemble(found, self.found.inputs, len(chain))
                for chain, found in zip(self.chains, blocks, strict=True)
            }
        columns = []
        for along in self.along:
            given = [directions_of(self.found, chain, along) for chain in self.chains]
            columns.append([joined(found) for found in self.derive(arguments, given)])
        return {chain: np.stack([column[k] for column in columns], axis=-1) for k, chain in enumerate(self.chains)}
