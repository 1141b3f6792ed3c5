"""vmap and jit."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from srcgrad.annotations import signature_of
from srcgrad.boundary import described, from_outside, translated
from srcgrad.building import Built, Job, Program, copy_input
from srcgrad.cache import Known
from srcgrad.differentiate import Argnums, are_plain, check_argnums, normal_argnums, plural, rebuild
from srcgrad.errors import ArgumentError, DTypeError, ShapeError, SrcgradError, StructureError, UnsupportedError
from srcgrad.ir.core import Builder, Function, Literal, Value
from srcgrad.ir.opdef import REGISTRY, Term
from srcgrad.ir.transforms.batch import batch_region, each_example, with_leading_axis
from srcgrad.ir.types import ArrayType
from srcgrad.tracing.conversion.calls import invoke
from srcgrad.tracing.function import LeafSpec, StaticLeaf, Traced, as_array, is_writable, leaf_spec, numbers_of
from srcgrad.tracing.jax_arrays import is_jax_array
from srcgrad.tracing.pytree import TreeDef, broadcast_prefix, flatten
from srcgrad.tracing.tables import is_table
from srcgrad.tracing.trace import CURRENT, NeedsConcrete, RaisingSite
from srcgrad.tracing.tracer import Tracer
from srcgrad.transformed import Transformed
from srcgrad.users_errors import is_of_a_raise
from srcgrad.ways import Verdict, first_lines

Axes = Any


class Vmap(Transformed):
    """``vmap``."""

    kind = "vmap"

    def __init__(
        self, f: Callable[..., Any], in_axes: Axes, out_axes: Axes, axis_size: int | None, backend: str | None
    ) -> None:
        self.in_axes = in_axes
        self.out_axes = out_axes
        self.axis_size = axis_size
        in_leaves, in_tree = flatten(in_axes, is_leaf=lambda axis: axis is None)
        out_leaves, out_tree = flatten(out_axes, is_leaf=lambda axis: axis is None)
        for axis in (*in_leaves, *out_leaves):
            if axis is not None and (not isinstance(axis, int) or isinstance(axis, bool)):
                raise ArgumentError(
                    f"vmap: axes are ints or None, not {described(axis)}",
                    hint="in_axes=0 for all arguments, in_axes=(0, None) for one per argument",
                )
        if axis_size is not None and (not isinstance(axis_size, (int, np.integer)) or axis_size < 0):
            raise ArgumentError(f"vmap: axis_size must be an int, not {described(axis_size)}")
        super().__init__(f, backend, (tuple(in_leaves), in_tree, tuple(out_leaves), out_tree, axis_size))

    def job(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Job:
        leaves, treedef = flatten((args, kwargs))
        axes = self.leaf_axes(args, kwargs)
        size = self.axis_size
        used: list[int | None] = []
        for leaf, axis, path in zip(leaves, axes, treedef.paths(), strict=True):
            if axis is None:
                used.append(None)
                continue
            shape = np.shape(leaf) if not isinstance(leaf, Tracer) else leaf.shape
            if is_table(leaf):
                raise DTypeError(
                    f"vmap: {argument_path(path)} is an array of dtype {leaf.dtype}, a constant that is not mapped",
                    hint="pass in_axes with None for it, or " + numbers_of(leaf.dtype),
                )
            if leaf_spec(leaf) is None or not -len(shape) <= axis < len(shape):
                raise ShapeError(
                    f"vmap: {argument_path(path)} has no axis {axis}: it is {describe(leaf)}",
                    hint="in_axes=(0, None) maps the first argument alone: an axis for each, from 0 on, or None",
                )
            axis %= len(shape)
            if size is not None and shape[axis] != size:
                raise ShapeError(
                    f"vmap: mapped axes differ in size: {argument_path(path)} has {shape[axis]}, others {size}",
                    hint="pass in_axes with None for arguments that are not mapped",
                )
            size = shape[axis]
            used.append(axis)
        if size is None:
            raise ArgumentError("vmap: no argument is mapped", hint="give in_axes an axis, or pass axis_size")
        active = tuple(leaf_spec(leaf) is not None for leaf in leaves)
        return Job(leaves, treedef, active, (), (tuple(used), size))

    def leaf_axes(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[int | None]:
        in_axes = list(self.in_axes) if isinstance(self.in_axes, tuple) else self.in_axes
        if isinstance(in_axes, list):
            if len(in_axes) != len(args):
                raise ArgumentError(
                    f"vmap: in_axes has {plural(len(in_axes), 'entry', 'entries')} for {plural(len(args), 'argument')}",
                    hint="give an entry per positional argument; None where it is not mapped",
                )
            axes: list[Any] = []
            for axis, argument in zip(in_axes, args, strict=True):
                axes += prefixed("in_axes", axis, flatten(argument)[1])
        else:
            axes = prefixed("in_axes", in_axes, flatten(args)[1])
        return axes + [0] * flatten(kwargs)[1].num_leaves

    def trace(self, job: Job, leaves: Sequence[Any], specs: Any, *args: Any, **kwargs: Any) -> Traced:
        axes, _ = mapping(job)
        kwargs.pop("origins", None)  # the values of single examples are not known outside
        examples = list(specs)
        for position, axis in enumerate(axes):
            spec = examples[position]
            if axis is not None and spec is not None:
                shape = spec.type.shape[:axis] + spec.type.shape[axis + 1 :]
                examples[position] = LeafSpec(spec.type.with_shape(shape), spec.scalar or not shape, spec.weak)
        return super().trace(job, leaves, examples, *args, **kwargs)

    def build(self, traced: Traced, job: Job, active: tuple[bool, ...]) -> Built:
        axes, size = mapping(job)
        inputs = [axis for axis, leaf in zip(axes, job.leaves, strict=True) if leaf_spec(leaf) is not None]
        out_tree, where = traced.out_tree, prefixed("out_axes", self.out_axes, traced.out_tree)
        single, outputs = with_numbers(traced.function, traced.outputs, where)
        out_axes = {
            output: axis for output, axis in zip(outputs, where, strict=True) if not isinstance(output, StaticLeaf)
        }
        function = mapped(single, inputs, size, out_axes, traced.sites)

        def finish(results: Sequence[Any], stages: Any) -> Any:
            return rebuild(out_tree, outputs, results)

        return Built(function, finish, arranges=are_plain(out_tree))

    def inline(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """In a concrete trace the numbers of single examples are not known to the mapped function: loop if it asks."""
        trace = CURRENT.get()
        if trace is None or not trace.concrete:
            return super().inline(args, kwargs)
        with suppress(NeedsConcrete):
            return self.inline_as(args, kwargs, False)
        return self.loop(args, kwargs)

    def plainly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.loop(args, kwargs)

    def takes_paths(self) -> bool:
        return False  # each example takes its own

    def loop(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """One example after the other."""
        job = self.job(args, kwargs)
        axes, size = mapping(job)
        outputs, tree = [], None
        for k in range(size):
            example = [
                unshared(leaf if axis is None else leaf[(slice(None),) * axis + (k,)])
                for leaf, axis in zip(job.leaves, axes, strict=True)
            ]
            given_args, given_kwargs = job.treedef.unflatten(example)
            leaves, found = flatten(self.f(*given_args, **given_kwargs))
            if tree is not None and not found.fits(tree):
                raise ShapeError(f"vmap: {self.name} returns different structures for different examples")
            tree = found
            outputs.append(leaves)
        if tree is None:
            raise ShapeError(f"vmap: the mapped axis of {self.name} is empty and the function cannot be one program")
        out_axes = prefixed("out_axes", self.out_axes, tree)
        stacked = [
            column[0] if axis is None else np.stack(column, axis=axis)
            for column, axis in zip(zip(*outputs, strict=True), out_axes, strict=True)
        ]
        return tree.unflatten(stacked)


def mapping(job: Job) -> tuple[tuple[int | None, ...], int]:
    """The mapped axis of each leaf, and the number of examples."""
    found: Any = job.detail
    axes, size = found
    return axes, size


def unshared(leaf: Any) -> Any:
    """An example that the function may change in place without the caller seeing it."""
    if not isinstance(leaf, Tracer):
        return copy_input(leaf)
    if leaf.scalar:
        return leaf
    copied = leaf.copy()
    copied.storage.writable = is_writable(leaf, True)
    return copied


def prefixed(name: str, axes: Axes, tree: TreeDef) -> list[Any]:
    """An axis per leaf; StructureError if the axes are not a prefix of the structure."""
    try:
        return broadcast_prefix(axes, tree)
    except StructureError as error:
        raise StructureError(
            f"vmap: {name}: {error.message}", hint="one axis may stand for a whole container"
        ) from None


def argument_path(path: str) -> str:
    """``argument 0['w']`` for the leaf at ``[0][0]['w']`` of ``(args, kwargs)``."""
    kind, _, rest = path.removeprefix("[").partition("]")
    if kind == "1":
        return f"argument {rest}"
    number, _, inner = rest.removeprefix("[").partition("]")
    return f"argument {number}{inner}"


def describe(leaf: Any) -> str:
    spec = leaf_spec(leaf)
    return f"{type(leaf).__name__} {leaf!r}" if spec is None else str(spec.type)


def with_numbers(function: Function, outputs: Sequence[Any], axes: Sequence[int | None]) -> tuple[Function, list[Any]]:
    """Integers and booleans that are outputs as results of the function, where they get an axis of examples."""
    results, found = list(function.results), list(outputs)
    for k, (output, axis) in enumerate(zip(outputs, axes, strict=True)):
        number = output.value if isinstance(output, StaticLeaf) and axis is not None else None
        if type(number) in (int, bool) or isinstance(number, (np.integer, np.bool_)):
            array = np.asarray(number)
            if array.dtype.kind in "biu":  # a larger integer is Python's
                found[k] = len(results)
                results.append(Literal(array[()], ArrayType(array.dtype)))
    return Function(function.name, function.params, function.operations, results), found


def mapped(
    function: Function,
    axes: Sequence[int | None],
    size: int,
    out_axes: Mapping[int, int | None],
    sites: Sequence[Any] = (),
) -> Function:
    """A function over examples along the given axes of its first parameters.

    ``out_axes`` has, for each result that is an output, where its axis of examples goes; None for one that has none.
    ``sites``: what the function's host calls call. One that does more than raise errors is called for the examples in
    order, and all its calls for one before the first for the next: then the function runs example after example.
    """
    builder = Builder()
    arguments, flags = [], []
    for position, param in enumerate(function.params):
        axis = axes[position] if position < len(axes) else None
        flags.append(axis is not None)
        shape = param.type.shape
        if axis is None:
            arguments.append(builder.param(param.type, param.name))
            continue
        value = builder.param(param.type.with_shape((*shape[:axis], size, *shape[axis:])), param.name)
        arguments.append(move_axis(builder, value, axis, 0))
    if acts(function, sites):
        results = each_example(builder, function, arguments, flags, size)
        batched = [True] * len(results)
        for k, value in enumerate(function.results):
            if isinstance(value, Literal) or (value in function.params and not flags[function.params.index(value)]):
                results[k] = value if isinstance(value, Literal) else arguments[function.params.index(value)]
                batched[k] = False
    else:
        results, batched = batch_region(builder, function, arguments, flags, size)
    for position, axis in out_axes.items():
        results[position] = placed(builder, results[position], batched[position], axis, size)
    return builder.function(f"{function.name}.vmap", results)


def acts(function: Function, sites: Sequence[Any]) -> bool:
    """Whether the function calls back into Python to do something."""
    called = [operation.attrs["site"] for operation in function.walk() if operation.op.name == "host_call"]
    return any(site >= len(sites) or not isinstance(sites[site], RaisingSite) for site in called)


def placed(builder: Builder, value: Value, batched: bool, axis: int | None, size: int) -> Value:
    """An output with its axis of examples where it is asked for.

    Raises:
        ArgumentError: there is to be none, and the examples differ. ShapeError: there is no such axis.
    """
    if axis is None:
        if batched:
            raise ArgumentError(
                "vmap: out_axes=None for an output that differs between examples",
                hint="give it an axis; None is for what no mapped argument reaches",
            )
        return value
    full = value if batched else with_leading_axis(builder, value, size)
    rank = full.type.rank
    if not -rank <= operator.index(axis) < rank:
        raise ShapeError(f"vmap: out_axes={axis} is out of range for an output of {full.type}")
    return move_axis(builder, full, 0, axis % rank)


def move_axis(builder: Builder, value: Value, source: int, target: int) -> Value:
    if source == target:
        return value
    perm = [axis for axis in range(value.type.rank) if axis != source]
    perm.insert(target, source)
    return REGISTRY["transpose"](Term(builder, value), perm=tuple(perm)).value


def check_static(f: Callable[..., Any], argnums: Any, argnames: Any) -> None:
    """Raise an ArgumentError for static arguments that a function does not have, where its signature is known."""
    numbers = check_argnums(argnums, "jit", "static_argnums") if argnums != () else ()
    numbers = numbers if isinstance(numbers, tuple) else (numbers,)
    names = (argnames,) if isinstance(argnames, str) else argnames
    if not isinstance(names, (tuple, list)) or not all(isinstance(name, str) for name in names):
        raise ArgumentError(f"jit: static_argnames must be a name or a sequence of names, not {described(argnames)}")
    try:
        parameters = signature_of(f).parameters.values()
    except (TypeError, ValueError):
        return
    kinds = {parameter.kind for parameter in parameters}
    count = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
    known = [p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    missing = [n for n in numbers if not -count <= n < count and inspect.Parameter.VAR_POSITIONAL not in kinds]
    unknown = [name for name in names if name not in known and inspect.Parameter.VAR_KEYWORD not in kinds]
    if missing or unknown:
        option, first = ("static_argnums", missing[0]) if missing else ("static_argnames", unknown[0])
        raise ArgumentError(
            f"jit: {option} names {first!r}, which the function does not have",
            hint=f"its parameters are {', '.join(p.name for p in parameters) or 'none'}",
        )


class Jit(Transformed):
    """``jit``."""

    kind = "jit"
    writes_back = True

    def __init__(self, f: Callable[..., Any], strict: bool, backend: str | None, donate_argnums: Argnums = ()) -> None:
        self.strict = strict
        self.donate_argnums = () if donate_argnums == () else check_argnums(donate_argnums, "jit", "donate_argnums")
        super().__init__(f, backend, (strict, self.donate_argnums))

    def job(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Job:
        if self.donate_argnums != ():
            self.donated_positions(len(args))
        leaves, treedef = flatten((args, kwargs))
        return Job(leaves, treedef, (True,) * len(leaves), given=(args, kwargs))

    def donated_positions(self, count: int) -> tuple[int, ...]:
        """The donated ones of so many positional arguments, which are looked at on every backend."""
        return normal_argnums(self.donate_argnums, count, f"jit({self.name})", "donate_argnums", "donated")

    def donated(self, job: Job) -> tuple[int, ...]:
        """The inputs that stand for jax arrays of the arguments in ``donate_argnums``."""
        if self.donate_argnums == ():
            return ()
        arguments = job.treedef.children[0].children
        numbers = self.donated_positions(len(arguments))
        flags = [k in numbers for k, argument in enumerate(arguments) for _ in range(argument.num_leaves)]
        flags += [False] * (len(job.leaves) - len(flags))
        inputs = [(leaf, flag) for leaf, flag in zip(job.leaves, flags, strict=True) if leaf_spec(leaf) is not None]
        return tuple(k for k, (leaf, flag) in enumerate(inputs) if flag and is_jax_array(leaf))

    def build(self, traced: Traced, job: Job, active: tuple[bool, ...]) -> Built:
        out_tree, outputs = traced.out_tree, traced.outputs

        def finish(results: Sequence[Any], stages: Any) -> Any:
            return rebuild(out_tree, outputs, results)

        return Built(traced.function, finish, arranges=are_plain(out_tree))

    def inline(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return invoke(self.f, *args, **kwargs)

    def plainly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.f(*args, **kwargs)

    def without_rule(self, met: UnsupportedError, job: Job, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """It runs as it is: a value needs no rule. What NumPy does not take either is told of as what was met."""
        if self.strict:
            raise met
        try:
            return self.retrace(job, args, kwargs, first_lines(met))
        except TypeError as error:
            if is_of_a_raise(error):
                raise
            raise met from None

    def raises_as_it_is(self, error: Exception) -> bool:
        return not self.strict and not isinstance(error, SrcgradError) and translated(error) is None

    def settle(self, args: tuple[Any, ...], job: Job, verdicts: Sequence[Verdict], has_paths: bool = True) -> None:
        """Where the verdicts are settled, later calls on such arrays go to the function without looking for programs.

        As long as what the function reads is the same. What meets no rule takes no paths.
        """
        from srcgrad.paths import settled  # which is written with this module

        if not self.remember_verdicts(args, verdicts):
            return
        if not has_paths or settled(self, job, [verdict.way for verdict in verdicts]):
            self.remember_verdicts(args, verdicts, self.f)

    def takes_paths(self) -> bool:
        return not self.strict

    def makes_calls_again(self) -> bool:
        return not self.strict and self.donate_argnums == ()

    def fails_again(self, job: Job) -> bool:
        return self.donated(job) == ()

    def made_again(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return super().made_again(args, kwargs) if self.makes_calls_again() else self.f(*args, **kwargs)

    def warn_retrace(self, reason: str) -> None:
        if self.strict:
            raise ArgumentError(
                f"jit(strict=True): {self.name} cannot be one program: {reason}",
                hint="leave strict out: then it runs as it is, with one warning",
            )
        super().warn_retrace(reason)

    def execute(self, program: Program, job: Job, hidden: Sequence[Any], captures: Known) -> Any:
        """Run, then let the caller have what the function changes.

        Where memory or containers are shared only Python knows how. What raises is run as it is too: it has changed
        what comes before.
        """
        changes = program.changes
        if changes is None:
            return super().execute(program, job, hidden, captures)
        leaves = [*job.leaves, *hidden]
        inputs = [leaves[position] for position in program.traced]
        captured = captures.containers(job.holder(self.f)) if changes.places and captures.copies else ()
        containers = changes.containers(job.given, captured)
        results = None
        if containers is not None and changes.writable(inputs) and not program.refuses(leaves):
            with suppress_errors(program.acts and not program.restarts):
                results = program.run([as_array(value) for value in inputs])
        if containers is None or results is None:
            args, kwargs = job.given
            return self.f(*args, **kwargs)
        changes.write(leaves, containers, inputs, results)
        return program.finish(results, program.stages)


@contextmanager
def suppress_errors(acts: bool) -> Iterator[None]:
    """Pass over what a program raises that may be begun again, as it has done nothing."""
    try:
        yield
    except Exception as error:
        if acts or from_outside(error):
            raise
