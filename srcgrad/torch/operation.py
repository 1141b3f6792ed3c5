"""Operations of the facade: a plain NumPy function each, and the adjoint that srcgrad derives from it.

An operation runs on NumPy at once. What is recorded is its *signature*: the operation, its static arguments and the
types of its operands. A signature is traced once; its adjoint comes from the same linearize and transpose as every
derivative of srcgrad, and says by itself which operands and results it reads: these are what a node saves.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextvars import Context
from typing import Any, Final

import numpy as np

from srcgrad.backends.base import backend
from srcgrad.compiler import optimised
from srcgrad.ir.collector import without_gc
from srcgrad.ir.core import Builder, Function, Literal, Value, literal
from srcgrad.ir.locks import new_lock
from srcgrad.ir.opdef import REGISTRY, Lin, Tangent, Zero
from srcgrad.ir.passes.dce import dce
from srcgrad.ir.passes.pipeline import prepare
from srcgrad.ir.passes.products import turned_products
from srcgrad.ir.transforms.interpret import inline
from srcgrad.ir.transforms.linear import Masked
from srcgrad.ir.transforms.linearize import copy_params, jvp, record, terms_of
from srcgrad.ir.transforms.transpose import pull_back
from srcgrad.ir.types import ArrayType
from srcgrad.tracing.function import LeafSpec, inline_function, trace_function
from srcgrad.tracing.trace import CURRENT
from srcgrad.tracing.tracer import Tracer, as_tracer

LIMIT: Final = 4096
"""Signatures that are remembered; the least recently made are forgotten first."""


class Op:
    """An operation: what it computes, and what PyTorch calls its node.

    ``function(*arrays, *statics)`` is plain NumPy that changes nothing it is given. ``pullback(cotangent, result,
    *arrays, *statics)``, where there is one, gives the cotangents in terms of the result, for those operations whose
    result PyTorch saves in place of the operand. ``saves_result``: the derived adjoint may read the result. ``quiet``:
    NumPy never warns here. ``node`` is None where nothing is differentiable. ``shown``: how many of the operands
    PyTorch's node has edges for, where the rest are indices. ``outputs``: how many of the results it takes gradients
    of, where the rest are not differentiated.
    """

    __slots__ = ("function", "name", "node", "outputs", "pullback", "quiet", "saves_result", "shown")

    def __init__(
        self,
        name: str,
        node: str | None,
        function: Callable[..., Any],
        *,
        saves_result: bool = False,
        pullback: Callable[..., Any] | None = None,
        quiet: bool = False,
        shown: int | None = None,
        outputs: int | None = None,
    ) -> None:
        self.name = name
        self.outputs = outputs
        self.node = node
        self.shown = shown
        self.function = function
        self.saves_result = saves_result
        self.pullback = pullback
        self.quiet = quiet

    def __repr__(self) -> str:
        return f"<operation {self.name}>"


class Signature:
    """An operation at given types, differentiated in the active operands.

    ``adjoint`` takes the saved operands and results, then a cotangent per differentiable result; it returns the
    cotangents of the active operands. Cotangents of complex values are PyTorch's, the conjugates of srcgrad's.
    """

    __slots__ = (
        "_jvp",
        "_parts",
        "_run",
        "active",
        "adjoint",
        "dtype",
        "function",
        "node_class",
        "op",
        "results",
        "saved_inputs",
        "saved_results",
        "statics",
        "types",
    )

    def __init__(
        self, op: Op, statics: tuple[Any, ...], types: Sequence[ArrayType], dtype: Any, active: tuple[bool, ...]
    ) -> None:
        self.op = op
        self.node_class: Any = None
        self.statics = statics
        self.types = tuple(types)
        self.dtype = dtype
        self.active = active
        with without_gc():
            self.function = prepare(traced(op, statics, types, dtype))
            self.results = tuple(result.type for result in self.function.results)
            whole = self.derived() if op.pullback is None else self.given()
        used = set().union(*(operation.operands for operation in whole.operations), whole.results)
        inputs, results = len(types), len(self.results)
        self.saved_inputs = tuple(k for k in range(inputs) if whole.params[k] in used)
        self.saved_results = tuple(k for k in range(results) if whole.params[inputs + k] in used)
        kept = [*self.saved_inputs, *(inputs + k for k in self.saved_results)]
        params = [*(whole.params[k] for k in kept), *whole.params[inputs + results :]]
        self.adjoint = Function(whole.name, params, whole.operations, whole.results)
        self._run: Callable[..., Any] | None = None
        self._jvp: Callable[..., Any] | None = None
        self._parts: tuple[tuple[Op, tuple[int, ...]], ...] | None = None

    # --- adjoints ----------------------------------------------------------------------------------
    def derived(self) -> Function:
        """Parameters: operands, results, cotangents of the differentiable results."""
        function = self.function
        builder = Builder()
        operands = copy_params(builder, function)
        results, program = record(builder, function, operands, self.active)
        saved = [builder.param(result.type) for result in results]
        seeds = [builder.param(type) for type in self.results if type.dtype.kind in "fc"]
        rest = iter(seeds)
        cotangents: list[Tangent] = [
            Lin(conjugated(builder, next(rest))) if type.dtype.kind in "fc" else Zero(type) for type in self.results
        ]
        s = Masked(builder)
        found = pull_back(s, program.function, terms_of(builder, program.residuals), cotangents)
        outgoing = [conjugated(builder, s.materialise(tangent)) for tangent in found]
        adjoint = builder.function(f"{self.op.name}_backward", outgoing)
        if self.op.saves_result:
            adjoint = substituted(adjoint, dict(zip(results, saved, strict=True)))
        return dce(adjoint)

    def given(self) -> Function:
        """The operation's own pullback, traced; with the parameters of `derived`."""
        op, statics = self.op, self.statics
        assert op.pullback is not None
        pullback = op.pullback
        count = len(self.types)
        types = [*self.types, *self.results, *(type for type in self.results if type.dtype.kind in "fc")]

        def call(leaves: list[Any]) -> Any:
            operands, results, cotangents = leaves[:count], leaves[count:-1], leaves[-1]
            found = pullback(cotangents, *results, *operands, *statics)
            found = found if isinstance(found, tuple) else (found,)
            wanted = zip(found, self.types, self.active, strict=True)
            return tuple(
                cotangent if cotangent.dtype == type.dtype else cotangent.astype(type.dtype)
                for cotangent, type, is_active in wanted
                if is_active
            )

        return dce(prepare(function_of(call, types, f"{op.name}_backward")))

    @property
    def run(self) -> Callable[..., Any]:
        """The compiled adjoint, on arrays."""
        if self._run is None:
            self._run = compiled_program(self.adjoint)
        return self._run

    @property
    def parts(self) -> tuple[tuple[Op, tuple[int, ...]], ...]:
        """The adjoint as one operation per active operand: what is recorded where the graph of it is wanted.

        With each come the places of the parameters that it reads: a gradient that is linear in its operands does not
        depend on them.
        """
        if self._parts is None:
            adjoint = self.adjoint
            self._parts = tuple(one_result(adjoint, result) for result in adjoint.results)
        return self._parts

    @property
    def push(self) -> Callable[..., Any]:
        """Forward mode, on arrays: the operands, then a tangent per active one; gives the results' tangents."""
        if self._jvp is None:
            whole = jvp(self.function, self.active)
            count = len(self.results)
            self._jvp = compiled_program(
                dce(Function(whole.name, whole.params, whole.operations, whole.results[count:]))
            )
        return self._jvp


def analytic(pullback: Callable[..., Any]) -> Callable[..., Any]:
    """A pullback written as for real numbers, as PyTorch takes it of complex ones: with conjugated partials."""

    def pull(cotangent: Any, *values: Any) -> Any:
        if cotangent.dtype.kind != "c":
            return pullback(cotangent, *values)
        found = pullback(np.conjugate(cotangent), *values)
        return tuple(np.conjugate(x) for x in found) if isinstance(found, tuple) else np.conjugate(found)

    return pull


def conjugated(builder: Builder, value: Value) -> Value:
    return builder.emit(REGISTRY["conj"], [value]) if value.type.dtype.kind == "c" else value


def substituted(function: Function, replaced: dict[Value, Value]) -> Function:
    """The function with values read in place of others."""
    builder = Builder()
    builder.params.extend(function.params)
    env: dict[Value, Value] = {param: param for param in function.params}
    for operation in function.operations:
        operands = [value if isinstance(value, Literal) else env[value] for value in operation.operands]
        emitted = builder.emit_operation(operation.op, operands, operation.attrs, operation.regions)
        for old, new in zip(operation.results, emitted.results, strict=True):
            env[old] = replaced.get(old, new)
    results = [value if isinstance(value, Literal) else env[value] for value in function.results]
    return builder.function(function.name, results)


def function_of(call: Callable[[list[Any]], Any], types: Sequence[ArrayType], name: str) -> Function:
    """A traced function of arrays; arrays that it makes are literals."""
    specs = [LeafSpec(type, False, False) for type in types]
    token = CURRENT.set(None)
    try:
        found = trace_function(
            call,
            [None] * len(specs),
            specs,
            [None] * len(specs),
            name=name,
            concrete=False,
            numbers=[None] * len(specs),
        )
    finally:
        CURRENT.reset(token)
    extra = found.function.params[len(specs) :]
    if not extra:
        return found.function
    builder = Builder()
    params = copy_params(builder, Function(name, found.function.params[: len(specs)], [], []))
    made = [literal(value, param.type) for value, param in zip(found.captured, extra, strict=True)]
    return builder.function(name, inline(builder, found.function, [*params, *made]))


def traced(op: Op, statics: tuple[Any, ...], types: Sequence[ArrayType], dtype: Any) -> Function:
    """The operation as a function of the IR; operands are first cast to ``dtype`` if it is given."""

    def call(leaves: list[Any]) -> Any:
        if dtype is not None:
            leaves = [leaf if leaf.dtype == dtype else leaf.astype(dtype) for leaf in leaves]
        return op.function(*leaves, *statics)

    return function_of(call, types, op.name)


def compiled_program(function: Function) -> Callable[..., Any]:
    """A function of the IR as NumPy code; the gradient of a weight comes as the weight lies in memory."""
    with without_gc():
        return backend("numpy").compile(turned_products(optimised(function))).run


DERIVED_NODES: Final = {
    "add": "AddBackward0",
    "broadcast": "ExpandBackward0",
    "conj": "ConjBackward0",
    "div": "DivBackward0",
    "dot_general": "MmBackward0",
    "exp": "ExpBackward0",
    "mul": "MulBackward0",
    "neg": "NegBackward0",
    "reduce_sum": "SumBackward1",
    "reshape": "ReshapeAliasBackward0",
    "select": "WhereBackward0",
    "sub": "SubBackward0",
    "transpose": "PermuteBackward0",
    "cast": "ToCopyBackward0",
}
"""What PyTorch calls the node of a derivative that ends in this operation."""


def derived_op(function: Function) -> Op:
    """An operation that is a function of the IR with one result."""
    producer = function.results[0].producer
    name = "" if producer is None else producer.op.name
    while producer is not None and producer.op.name in ("reshape", "transpose"):
        producer = producer.operands[0].producer
    if producer is not None and producer.op.name == "dot_general":
        name = "dot_general"
    run: Callable[..., Any] | None = None

    def call(*arrays: Any) -> Any:
        nonlocal run
        if any(isinstance(array, Tracer) for array in arrays):
            return inline_function(function, [as_tracer(array).read() for array in arrays])[0]
        if run is None:
            run = compiled_program(function)
        return run(*arrays)[0]

    return Op(function.name, DERIVED_NODES.get(name, camel(name or "view") + "Backward0"), call, quiet=True)


def one_result(function: Function, result: Any) -> tuple[Op, tuple[int, ...]]:
    """One result of a function as an operation on the parameters that it depends on, and their places."""
    alone = dce(Function(function.name, function.params, function.operations, [result]))
    used = set().union(*(operation.operands for operation in alone.operations), alone.results)
    places = tuple(k for k, param in enumerate(alone.params) if param in used)
    params = [alone.params[k] for k in places]
    return derived_op(Function(alone.name, params, alone.operations, alone.results)), places


def silent() -> Context:
    """A context in which NumPy warns of nothing."""
    context = Context()
    context.run(np.seterr, all="ignore")
    return context


SILENT: Final = [silent()]
"""Contexts that nobody is in. To run in one takes a tenth of the time of `np.errstate`."""


def silently(function: Callable[..., Any], arrays: Sequence[Any], statics: tuple[Any, ...]) -> Any:
    """What a function gives for arrays, without NumPy's warnings. Tracers need the context they were made in."""
    for array in arrays:
        if type(array) is not np.ndarray:
            with np.errstate(all="ignore"):
                return function(*arrays, *statics)
    try:
        context = SILENT.pop()
    except IndexError:
        context = silent()
    try:
        return context.run(function, *arrays, *statics)
    finally:
        SILENT.append(context)


def camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


SIGNATURES: OrderedDict[Any, Signature] = OrderedDict()
LOCK: Final = new_lock()


def signature(
    op: Op, statics: tuple[Any, ...], arrays: Sequence[Any], dtype: Any, active: tuple[bool, ...]
) -> Signature:
    """The signature of an operation on these arrays, made when it is first met."""
    key: list[Any] = [op, statics, dtype]
    for array, is_active in zip(arrays, active, strict=True):
        key += (array.dtype, array.shape, is_active)
    key.extend(map(type, statics))
    found = SIGNATURES.get(tuple(key))
    return remembered(tuple(key), arrays) if found is None else found


def remembered(key: tuple[Any, ...], arrays: Sequence[Any]) -> Signature:
    """The signature of a key that is new: the operation, its statics, the dtype of the computation; for each operand
    its dtype, its shape, and whether it is active; and the types of the statics, since True equals 1.
    """
    op, statics, dtype = key[:3]
    types = [ArrayType(np.dtype(array.dtype), tuple(array.shape)) for array in arrays]
    found = Signature(op, statics, types, dtype, key[5 : 3 + 3 * len(types) : 3])
    with LOCK:
        found = SIGNATURES.setdefault(key, found)
        while len(SIGNATURES) > LIMIT:
            SIGNATURES.popitem(last=False)
    return found
