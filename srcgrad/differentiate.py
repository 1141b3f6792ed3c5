"""The transforms that give derivatives with respect to arguments: grad, value_and_grad, jacobians, hessian."""

from __future__ import annotations

import types
from collections.abc import Callable, Hashable, Iterator, Sequence, Set
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np

from srcgrad.boundary import described
from srcgrad.building import Built, Job
from srcgrad.errors import (
    ArgumentError,
    DTypeError,
    HolomorphicError,
    IntegerInputError,
    NonScalarOutputError,
    StructureError,
)
from srcgrad.ir.core import Builder, Function
from srcgrad.ir.passes.kinks import aged
from srcgrad.ir.transforms.derivatives import is_holomorphic, jacobian, value_and_grad
from srcgrad.ir.transforms.linearize import copy_params, record
from srcgrad.tracing.function import StaticLeaf, Traced, leaf_spec, numbers_of, plain_array_of
from srcgrad.tracing.pytree import TreeDef, flatten, record_fields
from srcgrad.tracing.subclasses import plain_number
from srcgrad.tracing.tables import is_table
from srcgrad.transformed import Transformed

Argnums = int | Sequence[int]


class Plan(NamedTuple):
    """What a structure of arguments decides: the leaves that are differentiated, and their structures."""

    active: tuple[bool, ...]
    trees: tuple[TreeDef, ...]


def normal_argnums(
    argnums: Argnums, count: int, kind: str, name: str = "argnums", done: str = "differentiated"
) -> tuple[int, ...]:
    """Argument numbers as positions that are not negative, in the order given; ``name`` is what messages call them.

    Raises:
        ArgumentError: not an int or a sequence of ints, out of range, or twice the same.
    """
    numbers = (argnums,) if isinstance(argnums, (int, np.integer)) else tuple(argnums)
    for number in numbers:
        if not -count <= number < count:
            raise ArgumentError(
                f"{kind}: {name}={argnums!r}, but the call has {plural(count, 'positional argument')}",
                hint=f"{name} counts positional arguments from 0, of a method those after self; pass what is {done} by "
                "position, not by keyword",
            )
    found = tuple(int(number) % count for number in numbers)
    if len(set(found)) != len(found):
        raise ArgumentError(
            f"{kind}: {name}={argnums!r} names an argument twice", hint=f"the call has {plural(count, 'argument')}"
        )
    return found


def plural(count: int, noun: str, many: str = "") -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {many or noun + 's'}"


def tree_text(tree: TreeDef) -> str:
    """A structure in a message: ``*`` stands for an array."""
    if tree.kind is None:
        return "one array or number"
    return f"{tree!r}, where each * is an array or a number" if tree.num_leaves else repr(tree)


def check_argnums(argnums: Any, kind: str, name: str = "argnums") -> Any:
    if isinstance(argnums, (bool, np.bool_)) or not (
        isinstance(argnums, (int, np.integer))
        or (isinstance(argnums, (tuple, list)) and all(type(n) is int for n in argnums) and argnums)
    ):
        raise ArgumentError(
            f"{kind}: {name} must be an int or a non-empty sequence of ints, not {described(argnums)}",
            hint=f"{name}=0 is the first argument, {name}=(0, 1) the first two",
        )
    return tuple(argnums) if isinstance(argnums, (tuple, list)) else int(argnums)


class TakesAux(Transformed):
    """A transform whose function may return auxiliary output beside what is differentiated."""

    has_aux: bool

    def split_aux(self, traced: Traced) -> tuple[TreeDef, list[Any], TreeDef | None, list[Any]]:
        """The output's and aux's structures and leaves.

        Raises:
            StructureError: the function does not return the pair that ``has_aux`` asks for.
        """
        if not self.has_aux:
            return traced.out_tree, traced.outputs, None, []
        tree = traced.out_tree
        if tree.kind not in (tuple, list) or len(tree.children) != 2:
            text = "None" if tree.kind is type(None) else tree_text(tree)
            raise StructureError(
                f"{self.kind}({self.name}) with has_aux=True needs a function that returns (output, aux), not {text}",
                hint="return a pair, or leave has_aux out",
            )
        count = tree.children[0].num_leaves
        return tree.children[0], traced.outputs[:count], tree.children[1], traced.outputs[count:]


class Derivative(TakesAux):
    """A transform with argnums, has_aux and holomorphic."""

    def __init__(
        self,
        f: Callable[..., Any],
        argnums: Argnums,
        has_aux: bool,
        holomorphic: bool,
        backend: str | None,
        *more: Hashable,
    ) -> None:
        self.argnums = check_argnums(argnums, self.kind)
        self.has_aux = bool(has_aux)
        self.holomorphic = bool(holomorphic)
        super().__init__(f, backend, (self.argnums, self.has_aux, self.holomorphic, *more))

    def job(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Job:
        leaves, treedef = flatten((args, kwargs))
        plans = self.learned.plans
        plan: Plan | None = plans.get(treedef)
        if plan is None:
            plan = self.plan(args, treedef)
            if len(plans) > 256:
                plans.clear()
            plans[treedef] = plan
        leaves = [plain_number(leaf) if flag else leaf for leaf, flag in zip(leaves, plan.active, strict=True)]
        return Job(leaves, treedef, plan.active, (), None, plan.trees)

    def plan(self, args: tuple[Any, ...], treedef: TreeDef) -> Plan:
        numbers = normal_argnums(self.argnums, len(args), self.kind)
        trees = [flatten(argument)[1] for argument in args]
        flags: list[bool] = []
        for position, tree in enumerate(trees):
            flags += [position in numbers] * tree.num_leaves
        flags += [False] * (treedef.num_leaves - len(flags))
        return Plan(tuple(flags), tuple(trees[number] for number in sorted(numbers)))

    def arrangement(self, job: Job) -> Callable[[list[Any]], Any]:
        """From one part per differentiated argument, in call order, to what ``argnums`` asks for, in its order."""
        if isinstance(self.argnums, int):
            return lambda parts: parts[0]
        numbers = normal_argnums(self.argnums, len(job.treedef.children[0].children), self.kind)
        places = [sorted(numbers).index(number) for number in numbers]
        return lambda parts: tuple([parts[place] for place in places])

    def require_differentiable(self, job: Job) -> None:
        """Every differentiated leaf must be floating or complex."""
        paths = job.treedef.paths()
        for leaf, flag, path in zip(job.leaves, job.active, paths, strict=True):
            spec = leaf_spec(leaf) if flag else None
            if flag and (spec is None or not spec.type.differentiable):
                if is_table(leaf):
                    raise DTypeError(f"{self.kind} of an array of dtype {leaf.dtype}", hint=numbers_of(leaf.dtype))
                what = spec.type if spec is not None else type(leaf).__name__
                number_like = spec is not None or isinstance(leaf, (int, np.generic))
                number, _, inner = path.removeprefix("[0][").partition("]")
                raise IntegerInputError(
                    f"{self.kind} of argument {number}{inner}, which is {what}: only floats and complex numbers "
                    "have derivatives",
                    hint=f"{'pass a float (2.0, x.astype(float))' if number_like else as_arrays(leaf)}, or leave the "
                    "argument out of argnums",
                )

    def trace(self, job: Job, *args: Any, **kwargs: Any) -> Traced:
        self.require_differentiable(job)
        return super().trace(job, *args, **kwargs)

    def refuse_output(self, function: Function, output: Any) -> NoReturn:
        what = type(output.value).__name__ if isinstance(output, StaticLeaf) else function.results[output].type
        raise NonScalarOutputError(
            f"{self.kind}({self.name}) needs float outputs, not {what}",
            hint="return it as auxiliary output, (output, aux), with has_aux=True",
        )

    def require_holomorphic(self, function: Function, active: Sequence[bool], outputs: Sequence[int]) -> None:
        """A complex output of complex inputs has a complex derivative only if the function is holomorphic."""
        inputs = [p.type for p, flag in zip(function.params, active, strict=True) if flag]
        results = [function.results[k].type for k in outputs]
        is_complex = any(t.dtype.kind == "c" for t in inputs) and any(t.dtype.kind == "c" for t in results)
        if self.holomorphic and not all(t.dtype.kind == "c" for t in (*inputs, *results)):
            raise HolomorphicError(
                f"{self.kind}: holomorphic=True needs complex inputs and outputs, not "
                f"{', '.join(map(str, inputs))} -> {', '.join(map(str, results))}",
                hint="leave holomorphic out where numbers are real",
            )
        if is_complex and not self.holomorphic:
            builder = Builder()
            _, program = record(builder, function, copy_params(builder, function), active)
            if not is_holomorphic(program):
                raise HolomorphicError(
                    f"{self.kind} of a complex output in a complex input, and the function is not holomorphic by its "
                    "structure (it takes real or imaginary parts, conjugates or absolute values)",
                    hint="differentiate its real and imaginary parts, or pass holomorphic=True if it is holomorphic",
                )


def leaf_value(output: Any, results: Sequence[Any]) -> Any:
    return output.given() if isinstance(output, StaticLeaf) else results[output]


def rebuild(tree: TreeDef, outputs: Sequence[Any], results: Sequence[Any]) -> Any:
    return tree.unflatten([leaf_value(output, results) for output in outputs])


def are_plain(*trees: TreeDef | None) -> bool:
    """Whether only containers of Python's own, namedtuples and dataclasses are made, by no code of the user's."""
    kinds = [kind for tree in trees if tree is not None for kind in tree.node_types()]
    return all(record_fields(kind) is not None for kind in kinds)


class Grad(Derivative):
    """``grad`` and ``value_and_grad``."""

    kind = "grad"

    def __init__(
        self,
        f: Callable[..., Any],
        argnums: Argnums,
        has_aux: bool,
        holomorphic: bool,
        backend: str | None,
        with_value: bool,
    ) -> None:
        self.with_value = with_value
        self.kind = "value_and_grad" if with_value else "grad"
        super().__init__(f, argnums, has_aux, holomorphic, backend, with_value)

    def build(self, traced: Traced, job: Job, active: tuple[bool, ...]) -> Built:
        out_tree, outputs, aux_tree, aux = self.split_aux(traced)
        position = self.require_scalar(traced, out_tree, outputs)
        function = first_result(traced.function, position)
        self.require_real_output(function, active)
        self.require_holomorphic(function, active, [0])
        transformed = value_and_grad(function, active)
        count, trees, arranged = len(traced.function.results), job.trees, self.arrangement(job)
        if not self.with_value:
            kept = {output for output in aux if not isinstance(output, StaticLeaf)}
            transformed, order = keep_results(transformed, [1 + k - (k > position) for k in sorted(kept)], count)
            aux = [o if isinstance(o, StaticLeaf) else order[1 + o - (o > position)] for o in aux]
            count = len(order)
        else:
            aux = [o if isinstance(o, StaticLeaf) else (0 if o == position else 1 + o - (o > position)) for o in aux]

        with_value = self.with_value  # a cached program must not hold self, which holds the user's function

        def finish(results: Sequence[Any], stages: Any) -> Any:
            gradients, start = [], count
            for tree in trees:
                gradients.append(tree.unflatten(results[start : start + tree.num_leaves]))
                start += tree.num_leaves
            gradient = arranged(gradients)
            auxiliary = () if aux_tree is None else (rebuild(aux_tree, aux, results),)
            if not with_value:
                return (gradient, *auxiliary) if auxiliary else gradient
            return ((results[0], *auxiliary) if auxiliary else results[0]), gradient

        def finish_array(results: Sequence[Any], stages: Any) -> Any:
            """For one array or number, and no auxiliary output: most calls."""
            return (results[0], results[count]) if with_value else results[count]

        plain = aux_tree is None and isinstance(self.argnums, int) and trees[0].kind is None
        return Built(transformed, finish_array if plain else finish, arranges=are_plain(*trees, aux_tree))

    def require_real_output(self, function: Function, active: Sequence[bool]) -> None:
        """Of a complex output and a real input, one cotangent gives the derivative of the real part alone."""
        inputs = [p.type for p, flag in zip(function.params, active, strict=True) if flag]
        real = next((type_ for type_ in inputs if type_.dtype.kind != "c"), None)
        result = function.results[0].type
        if result.dtype.kind == "c" and real is not None and not self.holomorphic:
            raise HolomorphicError(
                f"{self.kind}({self.name}) has a complex output, {result}, and a real input, {real}: the gradient "
                "would be that of the real part",
                hint="return what is to be differentiated (.real, abs(…)), or use jacobian, jacrev or jvp",
            )

    def require_scalar(self, traced: Traced, out_tree: TreeDef, outputs: Sequence[Any]) -> int:
        """The position of the function's scalar output."""
        hint = "return a scalar (np.sum, np.mean, …), or use jacobian, jacrev or vjp"
        if len(outputs) == 1 and isinstance(outputs[0], StaticLeaf):
            hint = UNFINISHED.get(type(outputs[0].value), hint)
        if out_tree.kind is not None or len(outputs) != 1:
            if out_tree.kind is type(None):
                raise NonScalarOutputError(
                    f"{self.kind}({self.name}) needs one scalar output, and the function returns nothing",
                    hint="end it, and each of its branches, with return of a scalar",
                )
            more = "" if self.has_aux else "; for (output, aux) pass has_aux=True"
            raise NonScalarOutputError(
                f"{self.kind}({self.name}) needs one scalar output, not {tree_text(out_tree)}", hint=hint + more
            )
        position = outputs[0]
        if isinstance(position, StaticLeaf):
            raise NonScalarOutputError(
                f"{self.kind}({self.name}) needs a float output, not {type(position.value).__name__}", hint=hint
            )
        type_ = traced.function.results[position].type
        if type_.shape != () or not type_.differentiable:
            raise NonScalarOutputError(f"{self.kind}({self.name}) needs a scalar float output, not {type_}", hint=hint)
        return int(position)


UNFINISHED: Final[dict[type, str]] = {
    types.CoroutineType: "the function is asynchronous, and nothing awaits it: write def in place of async def",
    types.GeneratorType: "a call of the function makes a generator: return a value in place of yield",
}
"""What is to be done about a result that nobody has computed yet."""


def as_arrays(leaf: Any) -> str:
    """What to pass in place of an object that is no array or number."""
    if isinstance(leaf, (Iterator, Set)):
        return "pass a list, tuple or dict of floats or arrays"
    if hasattr(type(leaf), "__array__"):
        return plain_array_of(type(leaf))
    for base in (dict, list, tuple):
        if isinstance(leaf, base):
            return f"tell what {type(leaf).__name__} holds (srcgrad.register_pytree_node), pass a plain {base.__name__}"
    return "pass floats or arrays of floats"


def first_result(function: Function, position: int) -> Function:
    """The function with one of its results first."""
    results = list(function.results)
    results.insert(0, results.pop(position))
    return Function(function.name, function.params, function.operations, results)


def keep_results(function: Function, kept: Sequence[int], count: int) -> tuple[Function, dict[int, int]]:
    """Drop all but ``kept`` of the first ``count`` results; where the kept ones are now."""
    results = [function.results[k] for k in kept] + list(function.results[count:])
    order = {k: place for place, k in enumerate(kept)}
    return Function(function.name, function.params, function.operations, results), order


class Jacobian(Derivative):
    """``jacfwd``, ``jacrev`` and ``jacobian`` (which picks from the shapes)."""

    kind = "jacobian"

    def __init__(
        self,
        f: Callable[..., Any],
        argnums: Argnums,
        has_aux: bool,
        holomorphic: bool,
        backend: str | None,
        mode: str,
    ) -> None:
        self.mode = mode
        self.kind = {"forward": "jacfwd", "reverse": "jacrev"}.get(mode, "jacobian")
        super().__init__(f, argnums, has_aux, holomorphic, backend, mode)

    def build(self, traced: Traced, job: Job, active: tuple[bool, ...]) -> Built:
        function = traced.function
        out_tree, outputs, aux_tree, aux = self.split_aux(traced)
        positions = [self.require_float(function, output) for output in outputs]
        self.require_holomorphic(function, active, positions)
        inputs = sum(param.type.size for param, flag in zip(function.params, active, strict=True) if flag)
        size = sum(function.results[k].type.size for k in positions)
        forward = self.mode == "forward" or (self.mode == "auto" and inputs <= size)
        transformed = jacobian(function, active, positions, forward)
        kept = sorted({output for output in aux if not isinstance(output, StaticLeaf)})
        transformed, order = keep_results(transformed, kept, len(function.results))
        aux = [o if isinstance(o, StaticLeaf) else order[o] for o in aux]
        start, trees, arranged = len(kept), job.trees, self.arrangement(job)

        def finish(results: Sequence[Any], stages: Any) -> Any:
            blocks = iter(results[start:])
            rows = []
            for _ in outputs:
                row = [tree.unflatten([next(blocks) for _ in range(tree.num_leaves)]) for tree in trees]
                rows.append(arranged(row))
            found = out_tree.unflatten(rows)
            return found if aux_tree is None else (found, rebuild(aux_tree, aux, results))

        return Built(transformed, finish, arranges=are_plain(*trees, out_tree, aux_tree))

    def require_float(self, function: Function, output: Any) -> int:
        if isinstance(output, StaticLeaf) or not function.results[output].type.differentiable:
            self.refuse_output(function, output)
        return int(output)


class Hessian(Derivative):
    """``hessian``: forward over reverse."""

    kind = "hessian"

    def build(self, traced: Traced, job: Job, active: tuple[bool, ...]) -> Built:
        function = traced.function
        out_tree, outputs, aux_tree, aux = self.split_aux(traced)
        for output in outputs:
            if isinstance(output, StaticLeaf) or not function.results[output].type.differentiable:
                self.refuse_output(function, output)
        self.require_holomorphic(function, active, outputs)
        count = len(function.results)
        first = jacobian(function, active, outputs, forward=False)
        blocks = len(first.results) - count
        second = jacobian(aged(first), active, list(range(count, count + blocks)), forward=True)
        kept = sorted({output for output in aux if not isinstance(output, StaticLeaf)})
        second, order = keep_results(second, kept, count + blocks)
        aux = [o if isinstance(o, StaticLeaf) else order[o] for o in aux]
        start, trees, arranged = len(kept), job.trees, self.arrangement(job)

        def finish(results: Sequence[Any], stages: Any) -> Any:
            blocks = iter(results[start:])
            found = out_tree.unflatten([nested(blocks, trees, arranged, 2) for _ in outputs])
            return found if aux_tree is None else (found, rebuild(aux_tree, aux, results))

        return Built(second, finish, arranges=are_plain(*trees, out_tree, aux_tree))


def nested(blocks: Iterator[Any], trees: Sequence[TreeDef], arranged: Callable[[list[Any]], Any], depth: int) -> Any:
    """The next blocks in the structure of the arguments, ``depth`` times."""
    if depth == 0:
        return next(blocks)
    parts = [
        tree.unflatten([nested(blocks, trees, arranged, depth - 1) for _ in range(tree.num_leaves)]) for tree in trees
    ]
    return arranged(parts)
