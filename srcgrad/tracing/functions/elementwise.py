"""Functions of NumPy, beside its ufuncs, that are an op of each element."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcgrad.errors import DTypeError
from srcgrad.tracing.functions.registry import as_array, cast, numpy_rule
from srcgrad.tracing.tracer import emit


@numpy_rule("i0")
def i0(x: Any) -> Any:
    """The modified Bessel function of the first kind and order 0."""
    array = as_array(x)
    if array.dtype.kind == "c":
        raise DTypeError("i0 not supported for complex values")
    return as_array(emit("i0", array if array.dtype.kind == "f" else cast(array, np.float64)))
