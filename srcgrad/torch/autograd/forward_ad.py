"""Forward mode on tensors: inside `dual_level`, dual tensors carry a tangent through every operation.

An operation's tangent comes from the same derivative as its gradient: the forward-mode program of its signature.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.ir.core import Function
from srcgrad.ir.passes.dce import dce
from srcgrad.ir.transforms.linearize import jvp
from srcgrad.torch.dispatch import FIXED, apply, apply_inplace, apply_view
from srcgrad.torch.errors import AutogradError, TensorError, TensorValueError
from srcgrad.torch.graph import Node
from srcgrad.torch.modes import MODE, Mode
from srcgrad.torch.operation import Op, Signature, derived_op, signature
from srcgrad.torch.ruled import ruled
from srcgrad.torch.tensor import Tensor, wrapped

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]

LEVEL: Final[ContextVar[int]] = ContextVar("srcgrad_torch_dual_level", default=-1)


class UnpackedDualTensor(NamedTuple):
    """What `unpack_dual` returns: ``primal``, and ``tangent`` or None."""

    primal: Tensor
    tangent: Tensor | None


def level_of() -> int:
    """The current level; -1 outside of any."""
    return LEVEL.get()


def tangent_of(tensor: Tensor, level: int) -> Tensor | None:
    """The tangent that a tensor has at this level."""
    return tensor._tangent if tensor._level == level else None


STARTED: Final = [0]
"""How many levels were entered: each has its own number, so that the tangents of one that was left are forgotten."""


class Pushing:
    """Watches operations: what has a dual operand gets a tangent."""

    pushes = True

    def __init__(self, number: int) -> None:
        self.number = number

    def intercept(self, op: Op, operands: Sequence[Tensor], statics: tuple[Any, ...], dtype: Any) -> Any:
        token = MODE.set(without(MODE.get()))
        try:
            found = apply(op, operands, statics, dtype)
            tangents = [tangent_of(x, self.number) for x in operands]
            if any(tangent is not None for tangent in tangents):
                results = found if type(found) is tuple else (found,)
                pushed = pushed_results(op, operands, statics, dtype, tangents, results)
                for result, tangent in zip(results, pushed, strict=True):
                    if tangent is not None:
                        result._tangent, result._level = tangent, self.number
                keep_tangents(results, operands, self.number)
            return found
        finally:
            MODE.reset(token)

    def intercept_inplace(
        self, op: Op, tensor: Tensor, others: Sequence[Tensor], statics: tuple[Any, ...], dtype: Any
    ) -> Tensor:
        token = MODE.set(without(MODE.get()))
        try:
            operands = (tensor, *others)
            tangents = [tangent_of(x, self.number) for x in operands]
            if all(tangent is None for tangent in tangents):
                return apply_inplace(op, tensor, others, statics, dtype)
            before = [wrapped(tensor._data.copy()), *others]
            before[0]._node, before[0]._output = tensor.grad_fn, tensor._output
            found = apply_inplace(op, tensor, others, statics, dtype)
            pushed = pushed_results(op, before, statics, dtype, tangents, (found,))[0]
            if pushed is not None:
                self.put_inplace(tensor, pushed)
            return found
        finally:
            MODE.reset(token)

    def put_inplace(self, tensor: Tensor, tangent: Tensor) -> None:
        """Write a tangent where the tensor's is, so that its views and its base have it too."""
        known = tangent_of(tensor, self.number)
        if known is None and tensor._base is not None and tangent_of(tensor._base, self.number) is None:
            base = tensor._base
            base._tangent, base._level = wrapped(np.zeros_like(base._data)), self.number
            known = base._tangent
            for op, statics, index in tensor._views:
                known = apply_view(op, known, statics)
                known = known if index is None else known[index]
            tensor._tangent, tensor._level = known, self.number
        if known is None or known is tangent:
            tensor._tangent, tensor._level = tangent, self.number
        else:
            apply_inplace(COPY, known, (tangent,), (), known._data.dtype)


def copied(old: Any, new: Any) -> Any:
    return np.broadcast_to(new, old.shape).copy()


COPY: Final = Op("copy", "CopyBackwards", copied, quiet=True)


def without(mode: Mode) -> Mode:
    """The mode without its innermost watcher: an operation passes each of them once."""
    return mode._replace(watchers=mode.watchers[:-1])


def pushed_results(
    op: Op,
    operands: Sequence[Tensor],
    statics: tuple[Any, ...],
    dtype: Any,
    tangents: Sequence[Tensor | None],
    results: Sequence[Tensor],
) -> list[Tensor | None]:
    """The tangents of an operation's results; None for those that have none."""
    values = [operand._data for operand in operands]
    active = tuple(
        tangent is not None and value.dtype.kind in "fc" for tangent, value in zip(tangents, values, strict=True)
    )
    if op.node is None or not any(active):
        return [None] * len(results)
    if active[0] and not any(active[1:]) and is_view(results, operands[0]) and (len(operands) == 1 or op in FIXED):
        viewed = apply_view(op, tangents[0], statics, operands[1:])  # type: ignore[arg-type]
        return list(viewed) if type(viewed) is tuple else [viewed]
    if op.pullback is not None:
        op = ruled(op, len(operands))
    found = signature(op, statics, values, dtype, active)
    given = [*operands]
    given += [tangent for tangent, flag in zip(tangents, active, strict=True) if flag and tangent is not None]
    recorded = MODE.get().grad and any(x.requires_grad for x in given)
    if recorded or MODE.get().watchers:
        pushed: Sequence[Any] = [apply(part, given) for part in forward_parts(found)]
    else:
        pushed = [wrapped(np.asarray(x)) for x in found.push(*[x._data for x in given])]
    return [
        tangent if result._data.dtype.kind in "fc" else None for tangent, result in zip(pushed, results, strict=True)
    ]


def keep_tangents(results: Sequence[Tensor], operands: Sequence[Tensor], level: int) -> None:
    """Let the node of the results keep the tangents of what it saves, for a backward at this level."""
    node = results[0]._node
    if not isinstance(node, Node) or node.saved is None:
        return
    found = node.signature
    if len(found.types) != len(operands):
        return
    tangents = [tangent_of(operands[k], level) for k in found.saved_inputs]
    tangents += [tangent_of(results[k], level) for k in found.saved_results]
    if any(tangent is not None for tangent in tangents):
        node.tangents = (level, tangents)


def is_view(results: Sequence[Tensor], operand: Tensor) -> bool:
    """Whether the results look at the operand's memory."""
    return all(result._data is operand._data or result._data.base is not None for result in results) and all(
        np.may_share_memory(result._data, operand._data) for result in results
    )


PARTS: Final[OrderedDict[Signature, tuple[Op, ...]]] = OrderedDict()
REMEMBERED: Final = 512


def forward_parts(found: Signature) -> tuple[Op, ...]:
    """The forward derivative as one operation per result, of operands and tangents: what is recorded."""
    parts = PARTS.get(found)
    if parts is None:
        whole = jvp(found.function, found.active)
        count = len(found.results)
        parts = tuple(
            derived_op(dce(Function(whole.name, whole.params, whole.operations, [result])))
            for result in whole.results[count:]
        )
        PARTS[found] = parts
        while len(PARTS) > REMEMBERED:
            PARTS.popitem(last=False)
    return parts


# --- what users call --------------------------------------------------------------------------------


def enter_dual_level() -> int:
    """Enter forward mode; `exit_dual_level` leaves it. Rather use `dual_level`.

    Raises:
        AutogradError: forward mode is entered already.
    """
    if LEVEL.get() >= 0:
        raise AutogradError(
            "Nested forward mode AD is not supported at the moment",
            hint="leave the outer dual_level first, or use torch.func.jvp, which nests",
        )
    STARTED[0] += 1
    LEVEL.set(STARTED[0])
    mode = MODE.get()
    MODE.set(mode._replace(watchers=(Pushing(STARTED[0]), *mode.watchers)))
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Leave forward mode: the tangents are forgotten.

    Raises:
        AutogradError: forward mode was not entered, or ``level`` is not the innermost.
    """
    if LEVEL.get() < 0:
        raise AutogradError(
            "Dual level must be a positive number"
            if level is None
            else "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    if level not in (None, 0):
        raise AutogradError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    LEVEL.set(-1)
    mode = MODE.get()
    MODE.set(mode._replace(watchers=tuple(w for w in mode.watchers if not isinstance(w, Pushing))))


class dual_level:
    """A ``with`` block of forward mode.

    >>> import srcgrad.torch as torch
    >>> import srcgrad.torch.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(torch.tensor(3.0), torch.tensor(1.0))
    ...     fwAD.unpack_dual(x * x).tangent
    tensor(6.)
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        exit_dual_level()


def checked_level(level: int | None, what: str) -> int:
    if LEVEL.get() < 0 or (level is not None and level < 0):
        raise AutogradError(
            f"Trying to {what} for a dual Tensor but no level exists. Make sure to enter_dual_level() first."
        )
    return LEVEL.get()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A view of a tensor that carries a tangent.

    Raises:
        AutogradError: outside of `dual_level`; the tensor is dual already. TensorError: shapes or dtypes differ.
    """
    if LEVEL.get() < 0:
        raise AutogradError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    number = LEVEL.get()
    if tensor._data.dtype.kind not in "fc":
        raise TensorValueError(
            f"Expected primal to be floating point or complex, but got: {tensor.dtype}", hint="x.float()"
        )
    if tangent._data.dtype.kind not in "fc":
        raise TensorValueError(
            f"Expected tangent to be floating point or complex, but got: {tangent.dtype}", hint="v.float()"
        )
    if tangent._data.shape != tensor._data.shape:
        raise TensorError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(tensor._data.shape)} while the given forward gradient is of size "
            f"{list(tangent._data.shape)}."
        )
    token = MODE.set(MODE.get()._replace(watchers=()))
    try:
        found: Tensor = tensor.view(tensor.shape)
    finally:
        MODE.reset(token)
    if tangent_of(tensor, number) is not None or tangent_of(tangent, number) is not None:
        raise AutogradError(
            "Trying to set a forward gradient that has a forward gradient of its own at this level",
            hint="take unpack_dual(x).primal first",
        )
    found._tangent, found._level = tangent, number
    return found


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The primal and the tangent of a dual tensor; None for the tangent of any other."""
    number = LEVEL.get()
    if number < 0:
        return UnpackedDualTensor(tensor, None)
    tangent = tangent_of(tensor, number)
    token = MODE.set(MODE.get()._replace(watchers=()))
    try:
        primal: Tensor = tensor.view(tensor.shape)
    finally:
        MODE.reset(token)
    return UnpackedDualTensor(primal, tangent)


class _set_fwd_grad_enabled:
    """Forward mode on or off for a ``with`` block; operations inside a block that is off give no tangents."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        self.before = MODE.get()
        if not self.mode:
            MODE.set(
                self.before._replace(watchers=tuple(w for w in self.before.watchers if not isinstance(w, Pushing)))
            )

    def __exit__(self, *error: Any) -> None:
        MODE.set(self.before)
