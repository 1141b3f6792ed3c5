"""Programs as they are before their loops are looked at as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.ir.core import Function
from srcgrad.ir.passes import pipeline


def before_loops_are_seen(function: Callable[..., Any], arguments: Sequence[Any], argnums: Any = None) -> Function:
    """The program of a function, or with ``argnums`` that of the gradient of the sum of its squares."""
    found: list[Function] = []

    def keep(function: Function, *_: Any) -> Function:
        found.append(function)
        return function

    def loss(*args: Any) -> Any:
        return np.sum(function(*args) ** 2)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "without_moved", keep)
        call = sg.jit(function, backend="numpy") if argnums is None else sg.grad(loss, argnums, backend="numpy")
        call(*arguments)
    return found[-1]
