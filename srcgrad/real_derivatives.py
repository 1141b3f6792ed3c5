"""Derivatives in which complex numbers count as pairs of real ones: what `srcgrad.testing` compares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from srcgrad.ir.core import Builder, Function, Value
from srcgrad.ir.opdef import REGISTRY, Term
from srcgrad.ir.transforms.derivatives import jacobian, vjp
from srcgrad.ir.transforms.interpret import inline
from srcgrad.ir.transforms.linearize import copy_params, jvp
from srcgrad.ir.types import real_dtype
from srcgrad.tracing.function import StaticLeaf, Traced, leaf_spec
from srcgrad.tracing.pytree import flatten
from srcgrad.transformed import Built, Job, Transformed


class RealDerivative(Transformed):
    """Derivatives in all chosen leaves, complex numbers counted as pairs of real ones.

    ``way`` is ``"matrix"`` (called with the arguments; a block per part of an output and part of a leaf) or
    ``"vector"`` (called with a list of directions, one per part, before the arguments: a product with the derivative).
    These nest: the derivative of a derivative is that of the next order.
    """

    def __init__(self, f: Callable[..., Any], way: str, argnums: tuple[int, ...] | None) -> None:
        self.way = way
        self.argnums = argnums
        self.front: int = getattr(f, "front", 0)
        """How many lists of directions ``f`` is called with before the arguments."""
        inner = self.front
        super().__init__(f, None, (way, argnums, inner))
        self.front = inner + (way == "vector")

    @property
    def forward(self) -> bool:
        return self.kind == "jacfwd"

    def job(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Job:
        taken = int(self.way == "vector")
        extras = tuple(args[0]) if taken else ()
        inner = args[taken:]
        leaves, treedef = flatten((inner, {}))
        skipped = self.front - taken
        directions = flatten(inner[:skipped])[1].num_leaves
        chosen = chosen_leaves(inner[skipped:], self.argnums)
        return Job(leaves, treedef, (False,) * directions + tuple(chosen), extras)

    def build(self, traced: Traced, job: Job, active: tuple[bool, ...]) -> Built:
        function = traced.function
        outputs = [o for o in traced.outputs if not isinstance(o, StaticLeaf)]
        outputs = [o for o in outputs if function.results[o].type.differentiable]
        real, flags = in_real_parts(function, active, outputs)
        count = len(real.results)
        if self.way == "matrix":
            derivative = jacobian(real, flags, range(count), self.forward)
        else:
            derivative = jvp(real, flags) if self.forward else vjp(real, flags)
        builder = Builder()
        params = copy_params(builder, function)
        arguments = split_parts(builder, params, active)
        arguments += [builder.param(param.type) for param in derivative.params[len(arguments) :]]
        results = inline(builder, derivative, arguments)[count:]
        return Built(builder.function(derivative.name, results), lambda found, stages: list(found))


class Forward(RealDerivative):
    """By forward mode; a vector is a tangent."""

    kind = "jacfwd"


class Reverse(RealDerivative):
    """By reverse mode; a vector is a cotangent."""

    kind = "jacrev"


def chosen_leaves(args: Sequence[Any], argnums: tuple[int, ...] | None) -> list[bool]:
    """Per leaf, whether it is differentiated."""
    flags = []
    for position, argument in enumerate(args):
        for leaf in flatten(argument)[0]:
            spec = leaf_spec(leaf)
            chosen = argnums is None or position in argnums
            flags.append(chosen and spec is not None and spec.type.differentiable)
    return flags


def split_parts(builder: Builder, params: Sequence[Value], active: Sequence[bool]) -> list[Value]:
    found = []
    for param, flag in zip(params, active, strict=True):
        if flag and param.type.dtype.kind == "c":
            found += [REGISTRY[part](Term(builder, param)).value for part in ("real", "imag")]
        else:
            found.append(param)
    return found


def in_real_parts(function: Function, active: Sequence[bool], outputs: Sequence[int]) -> tuple[Function, list[bool]]:
    """The function of the real and imaginary parts of its active parameters, to those of some of its results."""
    builder = Builder()
    arguments: list[Value] = []
    flags: list[bool] = []
    for param, flag in zip(function.params, active, strict=True):
        if flag and param.type.dtype.kind == "c":
            type = param.type.with_dtype(real_dtype(param.type.dtype))
            parts = [Term(builder, builder.param(type)) for _ in range(2)]
            arguments.append(REGISTRY["complex"](*parts).value)
            flags += [True, True]
        else:
            arguments.append(builder.param(param.type, param.name))
            flags.append(flag)
    results = inline(builder, function, arguments)
    parts_out: list[Value] = []
    for position in outputs:
        parts_out += split_parts(builder, [results[position]], [True])
    return builder.function(function.name, parts_out), flags
