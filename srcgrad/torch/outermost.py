"""The trace that the outermost transform of `torch.func` opens, and the node of its results.

Every number is known in it: it runs the program as it is written. Tensors from outside that require grad are inputs of
the program, whose adjoint is derived when a backward comes to its node.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.custom import custom_jvp
from srcgrad.errors import IntegerInputError, ShapeError, SrcgradError
from srcgrad.ir.core import Function, Value
from srcgrad.ir.types import ArrayType
from srcgrad.torch.dispatch import apply, apply_inplace, replayed
from srcgrad.torch.errors import AutogradError, TensorError
from srcgrad.torch.graph import FREED_MESSAGE, NUMBERS, Edge, GraphNode, SavedValue
from srcgrad.torch.modes import MODE
from srcgrad.torch.operation import Op, Signature, derived_op
from srcgrad.torch.ruled import ruled
from srcgrad.torch.tensor import Tensor, constant_of, edge_of, wrapped
from srcgrad.tracing.function import trace_function
from srcgrad.tracing.pytree import TreeDef, flatten, register_pytree_node
from srcgrad.tracing.trace import CURRENT, Trace
from srcgrad.tracing.tracer import Tracer, as_tracer, from_value


@custom_jvp
def unrecorded_write(before: Any, after: Any) -> Any:
    """What was written in `no_grad`: as far as derivatives know, the tensor is what it was."""
    return after


@unrecorded_write.defjvp
def _(primals: Any, tangents: Any) -> Any:
    return unrecorded_write(*primals), tangents[0]


class Lifting:
    """Watches operations inside an outermost transform: tensors from outside that require grad become its inputs."""

    pushes = False

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.given: dict[int, tuple[Tensor, Tensor]] = {}
        self.converted: list[tuple[weakref.ref[Tensor], Any]] = []
        """Tensors of constants that were made traced ones, since traced values were written into them."""

    def intercept(self, op: Op, operands: Sequence[Tensor], statics: tuple[Any, ...], dtype: Any) -> Any:
        operands = self.lifted_all(operands)
        if op.pullback is not None and any(isinstance(x._data, Tracer) for x in operands):
            op = ruled(op, len(operands))
        mode = MODE.get()
        token = MODE.set(mode._replace(watchers=mode.watchers[:-1]))
        try:
            found = apply(op, operands, statics, dtype)
        finally:
            MODE.reset(token)
        for x in found if type(found) is tuple else (found,):
            if isinstance(x._data, Tracer):
                if x._data.scalar:  # a tensor without dimensions can be written into
                    x._data = from_value(x._data.read())
                if not mode.grad:
                    x._data = constant_of(x._data)
        return found

    def intercept_inplace(
        self, op: Op, tensor: Tensor, others: Sequence[Tensor], statics: tuple[Any, ...], dtype: Any
    ) -> Tensor:
        if type(tensor._data) is np.ndarray and any(isinstance(x._data, Tracer) for x in others):
            self.convert(tensor)
        others = self.lifted_all((tensor, *others))[1:]
        if op.pullback is not None and any(isinstance(x._data, Tracer) for x in (tensor, *others)):
            op = ruled(op, 1 + len(others))
        mode = MODE.get()
        base = (tensor if tensor._base is None else tensor._base)._data
        before = None if mode.grad or not isinstance(base, Tracer) or base.dtype.kind not in "fc" else base.copy()
        token = MODE.set(mode._replace(watchers=mode.watchers[:-1]))
        try:
            found = apply_inplace(op, tensor, others, statics, dtype)
        finally:
            MODE.reset(token)
        if before is not None:
            base[...] = unrecorded_write(before, base.copy())
        return found

    def convert(self, tensor: Tensor) -> None:
        """Make a tensor of constants a traced one.

        Raises:
            TensorError: it requires grad.
        """
        if tensor.requires_grad:
            raise TensorError(
                "a value of a torch.func transform is written into a tensor that requires grad",
                hint="write into a clone(), or return the value",
            )
        base = tensor if tensor._base is None else tensor._base
        for changed in (base, tensor):
            self.converted.append((weakref.ref(changed), changed._data))
        base._data = as_tracer(np.array(base._data)).copy()
        if tensor is not base:
            tensor._data = replayed(base._data, tensor._views)

    def restore(self) -> None:
        """Take tracers out of tensors that outlive the transform.

        Raises:
            TensorError: there are such tensors.
        """
        alive = [(reference(), data) for reference, data in self.converted]
        outside = [tensor for tensor, _ in alive if tensor is not None and isinstance(tensor._data, Tracer)]
        for tensor, data in reversed(alive):
            if tensor is not None:
                tensor._data = data
        if outside:
            raise TensorError(
                "a function wrote a value of a torch.func transform into a tensor from outside of it",
                hint="make the tensor inside the function, or return the value",
            )

    def lifted_all(self, operands: Sequence[Tensor]) -> Sequence[Tensor]:
        if not any(isinstance(x._data, Tracer) for x in operands):
            return operands
        return [self.lifted(x) if type(x._data) is np.ndarray and x.requires_grad else x for x in operands]

    def lifted(self, tensor: Tensor) -> Tensor:
        """The tensor as an input of the program."""
        found = self.given.get(id(tensor))
        if found is None:
            data = tensor._data
            value = Value(ArrayType(data.dtype, data.shape))
            number = np.array(data, order="C")
            self.trace.captured.append((value, number))
            self.trace.builder.known[value] = number
            token = CURRENT.set(self.trace)
            try:
                inside = wrapped(from_value(value))
            finally:
                CURRENT.reset(token)
            found = self.given[id(tensor)] = (tensor, inside)
        return found[1]


class TransformNode(GraphNode):
    """The node of the results of an outermost transform; its adjoint is derived when backward comes here."""

    def __init__(self, program: Function, tensors: Sequence[Tensor], edges: Sequence[Edge | None]) -> None:
        self.edges = edges
        self.number = next(NUMBERS)
        self.program = program
        self.result_count = len(program.results)
        self.tensors: list[tuple[Tensor, SavedValue]] | None = [
            (x, SavedValue(x._data, x._counter, "an input of a transform")) for x in tensors
        ]
        self.found: Signature | None = None

    def name(self) -> str:
        return type(self).__name__

    def result_type(self, index: int) -> ArrayType:
        return self.program.results[index].type

    def free(self) -> None:
        self.tensors = None

    def saved(self) -> list[Tensor]:
        if self.tensors is None:
            raise AutogradError(FREED_MESSAGE)
        for _, value in self.tensors:
            value.array()
        return [x for x, _ in self.tensors]

    def signature_of(self) -> Signature:
        if self.found is None:
            program = self.program
            op = Op(program.name, "TransformBackward0", several(program), quiet=True)
            active = tuple(edge is not None for edge in self.edges)
            self.found = Signature(op, (), [param.type for param in program.params], None, active)
        return self.found

    def operands(self, given: Sequence[Any]) -> list[Tensor]:
        """What the adjoint reads: the inputs, the results where it needs them, and the cotangents."""
        found, inputs = self.signature_of(), self.saved()
        tensors = [inputs[k] for k in found.saved_inputs]
        for cotangent, type_ in zip(given, found.results, strict=True):
            if type_.dtype.kind in "fc":
                array = np.zeros(type_.static_shape, type_.dtype) if cotangent is None else cotangent
                tensors.append(array if isinstance(array, Tensor) else wrapped(array))
        return tensors

    def run(self, given: Sequence[Any]) -> list[Any]:
        results = iter(self.signature_of().run(*[x._data for x in self.operands(given)]))
        return [None if edge is None else np.asarray(next(results)) for edge in self.edges]

    def run_recorded(self, given: Sequence[Any]) -> list[Any]:
        operands = self.operands(given)
        parts = iter(self.signature_of().parts)
        outgoing: list[Any] = []
        for edge in self.edges:
            if edge is None:
                outgoing.append(None)
                continue
            op, places = next(parts)
            outgoing.append(apply(op, [operands[k] for k in places]))
        return outgoing


def several(program: Function) -> Callable[..., Any]:
    """A function of arrays with the program's results as a tuple."""
    parts = [
        derived_op(Function(program.name, program.params, program.operations, [result])) for result in program.results
    ]
    return lambda *arrays: tuple([part.function(*arrays) for part in parts])


def outermost(run: Callable[[], Any], name: str) -> Any:
    """``run()`` inside a trace, whatever it nests; its result, a pytree of tensors, with their numbers."""
    if CURRENT.get() is not None:
        return unrecorded(run())
    made: list[Any] = []
    mode = MODE.get()

    def call(leaves: list[Any]) -> Any:
        trace = CURRENT.get()
        assert trace is not None
        lifting = Lifting(trace)
        made.append(lifting)
        token = MODE.set(mode._replace(watchers=(lifting, *mode.watchers)))
        try:
            found, tree = flat(run())
        finally:
            MODE.reset(token)
        # The tensors themselves are not kept: `Lifting.restore` looks for those that somebody else holds.
        made.append((tree, [TRACED if is_traced(x) else x for x in found]))
        return [x._data for x in found if is_traced(x)]

    try:
        traced = trace_function(call, [], [], [], name=name, concrete=True, numbers=[])
    except BaseException as error:
        for lifting in made[:1]:
            with suppress(TensorError):
                lifting.restore()
        if isinstance(error, (IntegerInputError, ShapeError)):
            raise as_pytorch(error) from None
        raise
    lifting, (tree, leaves) = made
    numbers = iter(traced.numbers)
    results = [wrapped(np.array(next(numbers))) if x is TRACED else x for x in leaves]
    lifting.restore()
    outside = [tensor for tensor, _ in lifting.given.values()]
    if mode.grad and outside:
        made_here = [x for x, leaf in zip(results, leaves, strict=True) if leaf is TRACED]
        attach(traced.function, traced.captured, lifting, made_here)
    return tree.unflatten(results)


def unrecorded(tree: Any) -> Any:
    """What a transform inside another gives: constants of the outer one where `no_grad` is around it."""
    if not MODE.get().grad:
        for x in flat(tree)[0]:
            if is_traced(x):
                x._data = constant_of(x._data)
    return tree


def as_pytorch(error: SrcgradError) -> TensorError:
    """What a transform of srcgrad's refuses, as PyTorch's, which raises a RuntimeError: the words and the place."""
    found = TensorError(error.message, hint=error.hint, span=error.span)
    found.context = error.context
    return found


TRACED: Final = object()
"""Stands for a traced tensor among the results."""


def is_traced(x: Any) -> bool:
    return isinstance(x, Tensor) and isinstance(x._data, Tracer)


def attach(program: Function, captured: Sequence[Any], lifting: Lifting, results: Sequence[Tensor]) -> None:
    """Give the results of an outermost transform their node."""
    by_number = {id(inside._data.storage.value): tensor for tensor, inside in lifting.given.values()}
    tensors = [by_number.get(id(param)) for param in program.params]
    operands = [wrapped(number) if tensor is None else tensor for tensor, number in zip(tensors, captured, strict=True)]
    edges = [None if tensor is None else edge_of(tensor) for tensor in tensors]
    node = TransformNode(program, operands, edges)
    for index, result in enumerate(results):
        if result._data.dtype.kind in "fc":
            result._node, result._output = node, index


# --- pytrees of tensors -----------------------------------------------------------------------------


class Ordered(dict[Any, Any]):
    """A dictionary as a container whose keys keep their order; it comes back as a plain one."""


register_pytree_node(
    Ordered,
    lambda table: (tuple(table.values()), tuple(table)),
    lambda names, children: dict(zip(names, children, strict=True)),
)


def ordered(tree: Any) -> Any:
    """A pytree whose dictionaries keep the order of their keys when it is taken apart and put together."""
    kind = type(tree)
    if kind is dict:
        return Ordered({name: ordered(value) for name, value in tree.items()})
    if kind is list or kind is tuple:
        return kind(map(ordered, tree))
    return tree


def flat(tree: Any) -> tuple[list[Any], TreeDef]:
    """The leaves of a pytree, dictionaries in their own order, and its structure."""
    return flatten(ordered(tree))


class Taken(NamedTuple):
    """A pytree taken apart: the arrays of its tensors, and how to put others in their place."""

    leaves: list[Any]
    tree: TreeDef
    places: list[int]

    @property
    def arrays(self) -> list[Any]:
        return [self.leaves[k]._data for k in self.places]

    def emptied(self) -> Taken:
        """The same without the tensors."""
        places = set(self.places)
        return self._replace(leaves=[None if k in places else x for k, x in enumerate(self.leaves)])

    def put(self, arrays: Sequence[Any]) -> Any:
        """The pytree with these arrays as its tensors."""
        leaves = list(self.leaves)
        for k, array in zip(self.places, arrays, strict=True):
            leaves[k] = wrapped(array)
        return self.tree.unflatten(leaves)


def taken(tree: Any) -> Taken:
    leaves, definition = flat(tree)
    return Taken(leaves, definition, [k for k, x in enumerate(leaves) if isinstance(x, Tensor)])


def lifted_args(args: Any) -> Any:
    """Arguments whose tensors require grad, as inputs of the outermost program."""
    watcher = next((w for w in MODE.get().watchers if isinstance(w, Lifting)), None)
    if watcher is None:
        return args
    leaves, tree = flat(args)
    return tree.unflatten(
        [watcher.lifted(x) if isinstance(x, Tensor) and not is_traced(x) and x.requires_grad else x for x in leaves]
    )
