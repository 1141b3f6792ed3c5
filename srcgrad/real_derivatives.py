"""Derivatives in which complex numbers count as pairs of real ones: what `srcgrad.testing` compares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from srcgrad.building import Built, Job
from srcgrad.ir.core import Builder, Function, Value
from srcgrad.ir.opdef import REGISTRY, Term
from srcgrad.ir.transforms.derivatives import jacobian, vjp
from srcgrad.ir.transforms.interpret import inline
from srcgrad.ir.transforms.linearize import copy_params, jvp
from srcgrad.ir.types import real_dtype
from srcgrad.tracing.function import StaticLeaf, Traced, leaf_spec
from srcgrad.tracing.pytree import flatten
from srcgrad.transformed import Transformed

Reals = NDArray[Any]


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


class Part(NamedTuple):
    """The real or imaginary parts of a leaf: a range of the vector of all real numbers."""

    path: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    """The leaf's."""
    imaginary: bool
    start: int
    stop: int


def parts_of(leaves: Sequence[Any], paths: Sequence[str]) -> list[Part]:
    parts: list[Part] = []
    start = 0
    for leaf, path in zip(leaves, paths, strict=True):
        array = np.asarray(leaf)
        for imaginary in range(2 if array.dtype.kind == "c" else 1):
            parts.append(Part(path, array.shape, array.dtype, bool(imaginary), start, start + array.size))
            start += array.size
    return parts


def flat(leaves: Sequence[Any]) -> Reals:
    """All real numbers of the leaves, in double precision or better."""
    found: list[Any] = []
    for leaf in leaves:
        array = np.asarray(leaf)
        found += [array.real, array.imag] if array.dtype.kind == "c" else [array]
    return joined(found)


def joined(arrays: Sequence[Any]) -> Reals:
    return np.concatenate([np.zeros(0), *[np.ravel(array) for array in arrays]])


def divided(vector: Reals, parts: Sequence[Part], exact: bool) -> list[Any]:
    """A vector as one array per part; in the leaf's precision if ``exact``."""
    found = []
    for part in parts:
        array = vector[part.start : part.stop].reshape(part.shape)
        found.append((array.astype(real_dtype(part.dtype)) if exact else array)[()])
    return found


def as_given(leaf: Any, value: NDArray[Any]) -> Any:
    """An array as what the leaf is: an array, a NumPy scalar, or a Python number."""
    if isinstance(leaf, np.ndarray):
        return value
    return value.item() if type(leaf) in (float, complex) and value.dtype.itemsize <= 16 else value[()]
