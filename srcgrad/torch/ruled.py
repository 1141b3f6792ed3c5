"""Operations with a pullback of their own, where they are traced: the pullback is their derivative there too.

An operation's function says what it computes; PyTorch's derivative may be another than the function's (at ties of a
maximum, in rows of an embedding that are padding). Forward mode is the transpose of the pullback.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from srcgrad.custom import custom_vjp
from srcgrad.torch.operation import Op
from srcgrad.tracing.tracer import Tracer


@lru_cache(1024)
def ruled(op: Op, count: int) -> Op:
    """The operation on ``count`` arrays, whose function keeps to the pullback under every transform."""

    def function(*arguments: Any) -> Any:
        arrays, statics = arguments[:count], arguments[count:]
        if not any(isinstance(array, Tracer) for array in arrays):
            return op.function(*arguments)
        return with_rule(op, statics)(*arrays)

    return Op(op.name, op.node, function, quiet=op.quiet)


def with_rule(op: Op, statics: tuple[Any, ...]) -> Any:
    def call(*arrays: Any) -> Any:
        return op.function(*arrays, *statics)

    def forward(*arrays: Any) -> Any:
        found = op.function(*arrays, *statics)
        return found, (found, arrays)

    def backward(residuals: Any, cotangents: Any) -> Any:
        found, arrays = residuals
        results = found if isinstance(found, tuple) else (found,)
        given = cotangents if isinstance(cotangents, tuple) else (cotangents,)
        cotangent = next(ct for ct, x in zip(given, results, strict=True) if x.dtype.kind in "fc")
        assert op.pullback is not None
        pulled = op.pullback(conjugate(cotangent), *results, *arrays, *statics)
        pulled = pulled if isinstance(pulled, tuple) else (pulled,)
        return tuple(
            [
                conjugate(ct).astype(x.dtype) if x.dtype.kind in "fc" else None
                for ct, x in zip(pulled, arrays, strict=True)
            ]
        )

    rule = custom_vjp(call)
    rule.defvjp(forward, backward)
    return rule


def conjugate(x: Any) -> Any:
    """PyTorch's cotangent of a complex value as srcgrad's, and the other way round."""
    return np.conj(x) if x.dtype.kind == "c" else x
