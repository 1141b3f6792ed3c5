"""Arguments whose axes lie in another order than C's, as Fortran's: a program for them reads them as they stand.

Machine code reads arrays in C order. To copy such an argument first takes longer than most of what is done with it:
the sum of an array in Fortran's order took 45 times as long as NumPy's. What is turned is C-ordered, and loops read
what a program turns back at no cost. That an argument lies so is part of a program's key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from srcgrad.ir.core import Builder, Function, Value
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.transforms.interpret import inline

LARGE: Final = 1 << 16
"""The bytes from which it pays: smaller arguments are copied in less time than Python takes for a call."""
Orders = Mapping[int, tuple[int, ...]]


def orders_of(arguments: Sequence[Any]) -> Orders:
    """Of the large arguments that are no more than turned, the axes as they lie in memory, the outermost first.

    >>> orders_of([np.ones((500, 90)), np.ones((500, 90), order="F"), np.ones((500, 90))[:, ::2]])
    {1: (1, 0)}
    """
    found = {}
    for place, array in enumerate(arguments):
        if type(array) is not np.ndarray or array.flags.c_contiguous or array.nbytes < LARGE:
            continue
        order = tuple(sorted(range(array.ndim), key=lambda axis: -array.strides[axis]))
        if array.transpose(order).flags.c_contiguous:
            found[place] = order
    return found


def turned_back(function: Function, orders: Orders) -> Function:
    """The function of arguments some of which are turned so."""
    builder = Builder()
    arguments: list[Value] = []
    for place, param in enumerate(function.params):
        order, type = orders.get(place), param.type
        if order is None:
            arguments.append(builder.param(type, param.name, param.linear))
            continue
        stored = builder.param(type.with_shape([type.shape[axis] for axis in order]), param.name, param.linear)
        back = tuple(map(int, np.argsort(order)))
        arguments.append(builder.emit(REGISTRY["transpose"], (stored,), {"perm": back}))
    results = inline(builder, function, arguments)
    return Function(function.name, builder.params, builder.operations, results)


def turning(run: Callable[[Sequence[Any]], Sequence[Any]], orders: Orders) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """What runs the program of turned arguments, given the arguments."""

    def runner(arguments: Sequence[Any]) -> Sequence[Any]:
        given = list(arguments)
        for place, order in orders.items():
            given[place] = np.asarray(given[place]).transpose(order)
        return run(given)

    return runner
