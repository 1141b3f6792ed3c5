"""The calls that take primals: vjp, jvp, linearize, hvp."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, NoReturn, Self

import numpy as np

from srcgrad.boundary import checked, described
from srcgrad.building import Built, Job, own
from srcgrad.compiler import Runner, inlined
from srcgrad.differentiate import TakesAux, are_plain, plural, rebuild, tree_text
from srcgrad.errors import (
    ArgumentError,
    DTypeError,
    IntegerInputError,
    NonScalarOutputError,
    ShapeError,
    StructureError,
)
from srcgrad.ir.core import Builder, Function
from srcgrad.ir.opdef import Lin, Tangent, Term
from srcgrad.ir.transforms.derivatives import hvp
from srcgrad.ir.transforms.interpret import run_linear
from srcgrad.ir.transforms.linear import Masked
from srcgrad.ir.transforms.linearize import Linearized, jvp, linearize
from srcgrad.ir.transforms.transpose import transpose
from srcgrad.ir.types import ArrayType, TapeType
from srcgrad.tracing.function import StaticLeaf, Traced, as_array, leaf_spec
from srcgrad.tracing.jax_arrays import is_jax_array, to_jax_array, to_numpy
from srcgrad.tracing.kept import KeptTape, kept_tape
from srcgrad.tracing.pytree import TreeDef, flatten, flatten_up_to
from srcgrad.tracing.subclasses import plain_number
from srcgrad.tracing.tables import KINDS
from srcgrad.tracing.trace import CURRENT
from srcgrad.tracing.tracer import Tracer


class Directional(TakesAux):
    """A call on primals, all of whose float leaves are differentiated."""

    def __init__(self, f: Callable[..., Any], has_aux: bool, backend: str | None) -> None:
        self.has_aux = bool(has_aux)
        super().__init__(f, backend, (self.has_aux,))

    def job(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Job:
        """``args`` are the primals; for jvp and hvp, (primals, tangents)."""
        leaves, treedef = flatten((args, {}))
        leaves = [*map(plain_number, leaves)]
        return Job(leaves, treedef, (True,) * len(leaves), trees=tuple(flatten(argument)[1] for argument in args))


class Pushed(Directional):
    """A call with tangents."""

    def job(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Job:
        primals, tangents = args
        for name, given in (("primals", primals), ("tangents", tangents)):
            if not isinstance(given, (tuple, list)):
                raise ArgumentError(
                    f"{self.kind}: {name} must be a tuple with one entry per argument, not {described(given)}",
                    hint=f"{self.kind}(f, (x,), (v,)) for a function of one argument",
                )
        if len(primals) != len(tangents):
            raise StructureError(
                f"{self.kind}: {plural(len(primals), 'primal')} but {plural(len(tangents), 'tangent')}",
                hint="pass one tangent per primal, zeros where nothing moves",
            )
        job = super().job(tuple(primals), kwargs)
        extras: list[Any] = []
        for primal, tree, tangent in zip(primals, job.trees, tangents, strict=True):
            values = matched(tree, tangent, f"{self.kind}: the tangent of its primal")
            for leaf, value in zip(map(plain_number, flatten(primal)[0]), values, strict=True):
                spec = leaf_spec(leaf)
                if spec is None or not spec.type.differentiable:
                    if moves(value):
                        path = job.treedef.paths()[len(extras)].removeprefix("[0]")
                        raise immovable(f"{self.kind}: primals{path}, which is {described(leaf)},")
                    extras.append(None)
                elif fits(value, spec.type):
                    extras.append(value)
                else:
                    path = job.treedef.paths()[len(extras)].removeprefix("[0]")
                    extras.append(tangent_like(value, spec.type, f"{self.kind}: the tangent of primals{path}"))
        kept = tuple(extra for extra in extras if extra is not None)
        return job._replace(extras=kept)


def has_tangent(leaf: Any) -> bool:
    """Whether a leaf of the primals is differentiated."""
    spec = leaf_spec(leaf)
    return spec is not None and spec.type.differentiable


def moves(tangent: Any) -> bool:
    """Whether this is known to be a tangent other than 0."""
    if not isinstance(tangent, (int, float, complex, np.generic, np.ndarray)):
        return False
    given = np.asarray(tangent)
    return given.dtype.kind in "biufc" and bool(given.any())


def immovable(what: str) -> IntegerInputError:
    """What is raised where a tangent other than 0 is given for an integer."""
    return IntegerInputError(
        f"{what} has a tangent other than 0: only floats and complex numbers have derivatives",
        hint="pass a float (2.0, x.astype(float)), or the tangent 0",
    )


def matched(tree: TreeDef, value: Any, what: str) -> list[Any]:
    """The leaves of a tangent or cotangent; StructureError if its structure is not the given one."""
    try:
        return flatten_up_to(tree, value)
    except StructureError as error:
        raise StructureError(f"{what}: {error.message}", hint="give it the same containers") from None


def fits(value: Any, expected: ArrayType) -> bool:
    """Whether something is a tangent or cotangent of this type as it is, told quickly; False where it may be one."""
    kind = type(value)
    if kind is np.ndarray or kind is np.float64:
        return bool(value.dtype == expected.dtype and value.shape == expected.shape)
    return kind is float and not expected.shape and expected.dtype == np.float64


def tangent_like(value: Any, type: ArrayType, what: str) -> Any:
    """A tangent or cotangent of a type: cast where NumPy would cast safely.

    Raises:
        ShapeError: its shape differs. DTypeError: its dtype does not fit.
    """
    spec = leaf_spec(value)
    if spec is None:
        array = plain_array(value, what)
        if array.dtype.kind not in "biuf":
            raise DTypeError(f"{what} must be {type}, not {described(value)}", hint="give it numbers of the same shape")
        value = array[()]
    dtype, shape = (spec.type.dtype, spec.type.shape) if spec is not None else (value.dtype, value.shape)
    if shape != type.shape:
        raise ShapeError(
            f"{what} must have the shape {type.shape}, not {shape}", hint="it has the shape of what it belongs to"
        )
    if dtype == type.dtype:
        return value
    if dtype.kind == "c" and type.dtype.kind != "c":
        raise DTypeError(f"{what} must be real, {type}, not {dtype}", hint="take its real part: v.real")
    if isinstance(value, (float, complex, int)):
        return type.dtype.type(value)
    if not np.can_cast(dtype, type.dtype, "same_kind"):
        raise DTypeError(f"{what} must have the dtype {type.dtype}, not {dtype}", hint=f"v.astype(np.{type.dtype})")
    return to_jax_array(to_numpy(value).astype(type.dtype)) if is_jax_array(value) else value.astype(type.dtype)


def plain_array(value: Any, what: str) -> Any:
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise StructureError(f"{what} is not an array: {error}") from None


class Jvp(Pushed):
    """``jvp``."""

    kind = "jvp"

    def build(self, traced: Traced, job: Job, active: tuple[bool, ...]) -> Built:
        out_tree, outputs, aux_tree, aux = self.split_aux(traced)
        count = len(traced.function.results)
        transformed = jvp(traced.function, active)

        def finish(results: Sequence[Any], stages: Any) -> Any:
            out = rebuild(out_tree, outputs, results)
            tangents = [zero_like(o.value) if isinstance(o, StaticLeaf) else results[count + o] for o in outputs]
            found = (out, out_tree.unflatten(tangents))
            return found if aux_tree is None else (*found, rebuild(aux_tree, aux, results))

        return Built(transformed, finish, arranges=are_plain(out_tree, aux_tree))


def zero_like(value: Any) -> Any:
    """What stands where nothing is differentiated: zeros like an array or number, None of anything else."""
    if isinstance(value, Tracer):
        return np.zeros_like(value)[()]
    if is_jax_array(value):
        return to_jax_array(np.zeros(value.shape, value.dtype))
    if isinstance(value, (np.generic, np.ndarray)) and value.dtype.kind in KINDS:
        return None
    return np.zeros_like(value)[()] if isinstance(value, (int, float, complex, np.generic, np.ndarray)) else None


class Hvp(Pushed):
    """``hvp``: the Hessian of a scalar function times tangents."""

    kind = "hvp"

    def build(self, traced: Traced, job: Job, active: tuple[bool, ...]) -> Built:
        position: Any = traced.outputs[0] if len(traced.outputs) == 1 else None
        if position is None or traced.out_tree.kind is not None:
            text = tree_text(traced.out_tree)
        elif isinstance(position, StaticLeaf):
            text = type(position.value).__name__
        else:
            type_ = traced.function.results[position].type
            text = "" if type_.differentiable and not type_.shape else str(type_)
        if text:
            raise NonScalarOutputError(
                f"hvp({self.name}) needs one scalar float output, not {text}",
                hint="return a scalar (np.sum, np.mean, …)",
            )
        transformed = hvp(traced.function, active)
        specs = [leaf_spec(leaf) for leaf in job.leaves]
        places = [spec is not None and spec.type.differentiable for spec in specs]
        statics = [None if place else zero_like(leaf) for leaf, place in zip(job.leaves, places, strict=True)]
        trees = job.trees

        def finish(results: Sequence[Any], stages: Any) -> Any:
            found = iter(results)
            leaves = iter([next(found) if place else zero for place, zero in zip(places, statics, strict=True)])
            parts = [tree.unflatten([next(leaves) for _ in range(tree.num_leaves)]) for tree in trees]
            return parts[0] if len(parts) == 1 else tuple(parts)

        return Built(transformed, finish, arranges=are_plain(*trees))


class Later(NamedTuple):
    """A linear map with its residuals: what ``vjp_fn`` and ``linear_fn`` are made of."""

    residuals: Sequence[Any]
    run: Runner
    stage: Function

    def __call__(self, values: Sequence[Any]) -> Sequence[Any]:
        given = [*self.residuals, *values]
        if CURRENT.get() is not None and any(isinstance(item, Tracer) for item in given):
            return inlined(self.stage)(given)  # it may come from outside the trace
        results = self.run([*map(as_array, given)])
        return results if CURRENT.get() is not None else [*map(own, results)]


def kept(residuals: Sequence[Any], stage: Function) -> list[Any]:
    """The residuals; tapes with their types, so that a trace can be given them."""
    types = [param.type for param in stage.params[: len(residuals)]]
    return [
        kept_tape(type, residual) if isinstance(type, TapeType) and not isinstance(residual, Tracer) else residual
        for type, residual in zip(types, residuals, strict=True)
    ]


def as_hidden(residual: Any) -> Any:
    """A residual as a hidden input: of a number that is no float, as a count of trips is, an array."""
    if isinstance(residual, KeptTape):
        return residual
    return np.asarray(residual) if isinstance(residual, (np.integer, np.bool_)) else as_array(residual)


class LinearMap:
    """A linear map that a call of vjp or linearize returns: what it holds, and what other transforms see of it.

    A map whose program is kept is captured as transformed functions are: its residuals are hidden inputs, so that one
    program serves the maps of all points. That of a function which is traced again at each call has no such program.
    """

    __name__: ClassVar[str]

    def __init__(self, later: Later, types: list[ArrayType | None], finish: Any) -> None:
        self._later = later
        self._types = types
        self._finish = finish
        if "executable" in vars(later.run):
            self.__srcgrad_code__ = later.stage
            self.__srcgrad_static__ = (type(self), later.stage)

    @property
    def held(self) -> Sequence[Any]:
        """What it keeps of the call that made it."""
        return self._later.residuals

    def __copy__(self) -> Self:
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        return other

    def __deepcopy__(self, memo: Any) -> Self:
        return copy.copy(self)  # what it holds does not change

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise DTypeError(
            f"a {self.__name__} cannot be pickled: it holds a compiled program and what that keeps of the call",
            hint="keep the function and its primals, and call vjp or linearize again where it is needed",
        )

    @functools.cached_property
    def __srcgrad_wrapped__(self) -> tuple[Any, ...]:
        return (None, *map(as_hidden, self._later.residuals))

    def __srcgrad_rewrap__(self, function: None, *residuals: Any) -> Self:
        other = copy.copy(self)
        vars(other).pop("__srcgrad_wrapped__", None)
        other._later = self._later._replace(residuals=residuals)
        return other


class VjpFunction(LinearMap):
    """The pullback of `vjp`: from a cotangent of the output to a tuple of cotangents, one per primal."""

    __name__ = "vjp_fn"

    def __init__(self, later: Later, tree: TreeDef, types: list[ArrayType | None], finish: Any) -> None:
        super().__init__(later, types, finish)
        self._tree = tree

    @checked
    def __call__(self, *cotangents: Any) -> tuple[Any, ...]:
        """Pull a cotangent back; its structure, shapes and dtypes are the output's.

        Raises:
            ArgumentError: not one argument. StructureError, ShapeError, DTypeError: it does not fit the output.
        """
        if len(cotangents) != 1:
            raise ArgumentError(
                f"vjp: the pullback takes one cotangent, not {len(cotangents)}",
                hint="give it the structure of the output: vjp_fn((a, b)) for a function that returns two arrays",
            )
        leaves = matched(self._tree, cotangents[0], "vjp: the cotangent of the output")
        given = [leaf for leaf, type in zip(leaves, self._types, strict=True) if type is not None]
        types = [type for type in self._types if type is not None]
        if not all(map(fits, given, types)):
            given = [
                tangent_like(leaf, type, f"vjp: the cotangent of output{path}")
                for leaf, type, path in zip(leaves, self._types, self._tree.paths(), strict=True)
                if type is not None
            ]
        found: tuple[Any, ...] = self._finish(self._later(given))
        return found

    def __repr__(self) -> str:
        return f"<vjp_fn of {self._tree!r}>"


class LinearFunction(LinearMap):
    """The linear map of `linearize`: from tangents, one per primal, to the output's tangent."""

    __name__ = "linear_fn"

    def __init__(self, later: Later, trees: tuple[TreeDef, ...], types: list[ArrayType | None], finish: Any) -> None:
        super().__init__(later, types, finish)
        self._trees = trees

    @checked
    def __call__(self, *tangents: Any) -> Any:
        """Push tangents forward.

        Raises:
            StructureError, ShapeError, DTypeError: they do not fit the primals.
        """
        if len(tangents) != len(self._trees):
            raise StructureError(
                f"linearize: {plural(len(self._trees), 'primal')} but {plural(len(tangents), 'tangent')}",
                hint="pass one tangent per primal, zeros where nothing moves",
            )
        leaves = [
            leaf
            for tree, tangent in zip(self._trees, tangents, strict=True)
            for leaf in matched(tree, tangent, "linearize: a tangent")
        ]
        if any(type is None and moves(leaf) for leaf, type in zip(leaves, self._types, strict=True)):
            raise immovable("linearize: a primal that is no float or complex number")
        given = [
            leaf if fits(leaf, type) else tangent_like(leaf, type, "linearize: a tangent")
            for leaf, type in zip(leaves, self._types, strict=True)
            if type is not None
        ]
        return self._finish(self._later(given))

    def __repr__(self) -> str:
        return f"<linear_fn of {self._trees!r}>"


def input_types(job: Job) -> list[ArrayType | None]:
    """Per leaf, the type of its tangent; None if it has none."""
    specs = [leaf_spec(leaf) for leaf in job.leaves]
    return [spec.type if spec is not None and spec.type.differentiable else None for spec in specs]


class Vjp(Directional):
    """``vjp``."""

    kind = "vjp"

    def build(self, traced: Traced, job: Job, active: tuple[bool, ...]) -> Built:
        out_tree, outputs, aux_tree, aux = self.split_aux(traced)
        function = traced.function
        parts = linearize(function, active)
        types = [
            None if isinstance(o, StaticLeaf) or not function.results[o].type.differentiable
            else function.results[o].type
            for o in outputs
        ]  # fmt: skip
        passed = [o for o, type in zip(outputs, types, strict=True) if type is not None]
        stage = selected_transpose(parts, passed)
        places = input_types(job)
        statics = [None if place else zero_like(leaf) for leaf, place in zip(job.leaves, places, strict=True)]
        trees = job.trees

        def restore(results: Sequence[Any]) -> tuple[Any, ...]:
            found = iter(results)
            leaves = iter([zero if place is None else next(found) for place, zero in zip(places, statics, strict=True)])
            return tuple(tree.unflatten([next(leaves) for _ in range(tree.num_leaves)]) for tree in trees)

        def finish(results: Sequence[Any], stages: Sequence[Runner]) -> Any:
            later = Later(kept(results[parts.results :], stage), stages[0], stage)
            found = (rebuild(out_tree, outputs, results), VjpFunction(later, out_tree, types, restore))
            return found if aux_tree is None else (*found, rebuild(aux_tree, aux, results))

        return Built(parts.primal, finish, (stage,))


def selected_transpose(parts: Linearized, passed: Sequence[int]) -> Function:
    """The transpose that takes cotangents of some of the results only."""
    linear = parts.linear
    chosen = Function(linear.name, linear.params, linear.operations, [linear.results[k] for k in passed])
    return transpose(chosen)


class Linearize(Directional):
    """``linearize``."""

    kind = "linearize"

    def build(self, traced: Traced, job: Job, active: tuple[bool, ...]) -> Built:
        out_tree, outputs, aux_tree, aux = self.split_aux(traced)
        parts = linearize(traced.function, active)
        stage = forward_stage(parts)
        trees, types = job.trees, input_types(job)

        def restore(results: Sequence[Any]) -> Any:
            return out_tree.unflatten(
                [zero_like(o.value) if isinstance(o, StaticLeaf) else results[o] for o in outputs]
            )

        def finish(results: Sequence[Any], stages: Sequence[Runner]) -> Any:
            later = Later(kept(results[parts.results :], stage), stages[0], stage)
            linear = LinearFunction(later, trees, types, restore)
            found = (rebuild(out_tree, outputs, results), linear)
            return found if aux_tree is None else (*found, rebuild(aux_tree, aux, results))

        return Built(parts.primal, finish, (stage,))


def forward_stage(parts: Linearized) -> Function:
    """The linear program as an ordinary function: residuals, then tangents."""
    builder = Builder()
    params = parts.linear.params
    residuals = [Term(builder, builder.param(param.type)) for param in params if not param.linear]
    tangents: list[Tangent] = [Lin(builder.param(param.type)) for param in params if param.linear]
    s = Masked(builder)
    found = run_linear(s, parts.linear, residuals, tangents)
    results = [s.materialise(tangent) for tangent in found]
    return builder.function(f"{parts.primal.name}.linear", results)
