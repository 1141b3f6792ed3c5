"""Which of its loops a ufunc runs on operands of given dtypes: NumPy's own choice, asked of NumPy."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from srcgrad.errors import DTypeError, UnsupportedError
from srcgrad.ir.types import DType, dtype_name

Loop = tuple[tuple[DType, ...], tuple[DType, ...]]

LOOPS: dict[Any, Loop] = {}


class Request(NamedTuple):
    """What a call says of the loop: ``dtype=`` is a signature of its results alone."""

    signature: Any = None
    casting: str = "same_kind"

    @classmethod
    def of(cls, ufunc: np.ufunc, dtype: Any, options: dict[str, Any]) -> Request:
        """Of the options of a ufunc's call, from which it is taken."""
        signature = options.pop("signature", None)
        signature = options.pop("sig", None) if signature is None else signature
        if dtype is not None:
            signature = (None,) * ufunc.nin + (np.dtype(dtype),) * ufunc.nout
        elif isinstance(signature, tuple):
            signature = tuple(None if part is None else np.dtype(part) for part in signature)
        return cls(signature, options.pop("casting", "same_kind"))


ANY = Request()


def resolve(ufunc: np.ufunc, kinds: tuple[Any, ...], asked: Request = ANY) -> Loop:
    """The loop NumPy chooses for operands of these dtypes (Python types are weak).

    Raises:
        DTypeError: the ufunc has no loop for them, or not the one that is asked for.
        UnsupportedError: it has one of Python's objects.
    """
    if asked.casting not in ("same_kind", "unsafe") and any(isinstance(kind, type) for kind in kinds):
        # numbers of Python's are cast by any rule; NumPy reads a null pointer where it refuses one
        loose = resolve(ufunc, kinds, asked._replace(casting="same_kind"))[0]
        kinds = tuple(found if isinstance(kind, type) else kind for kind, found in zip(kinds, loose, strict=True))
    key = (ufunc, kinds) if asked is ANY else (ufunc, kinds, asked)
    loop = LOOPS.get(key)
    if loop is None:
        operands: Any = (*kinds, *[None] * ufunc.nout)
        signature: Any = {} if asked.signature is None else {"signature": asked.signature}
        try:
            resolved = ufunc.resolve_dtypes(operands, casting=asked.casting, **signature)  # type: ignore[arg-type]
        except TypeError as error:
            raise DTypeError(str(error)) from None
        if asked.signature is None and any(dtype.hasobject for dtype in resolved):
            hint = "make numbers of them: np.asarray(x, float)"
            raise UnsupportedError(f"np.{ufunc.__name__} would work on Python's objects", hint=hint)
        for dtype in resolved:
            dtype_name(dtype)
        loop = LOOPS[key] = (resolved[: ufunc.nin], resolved[ufunc.nin :])
    return loop
