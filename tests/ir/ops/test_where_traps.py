"""Structural zeros through every op that moves or mixes elements: what a ``where`` leaves out never contributes."""

from __future__ import annotations

import numpy as np
import pytest

from srcgrad.ir.opdef import REGISTRY, Linear
from tests.ir.ops.derivatives import R, check_jacobian, constant, jacobian, program

X = np.array([0.0, 4.0, -1.0, 9.0])


def guarded(x):
    """sqrt where x > 0, else 2x: the branch that is not taken has the slopes inf at 0 and nan at -1."""
    return R["select"](x > 0.0, R["sqrt"](x), 2.0 * x)


GUARDED_SLOPES = np.array([2.0, 0.25, 2.0, 1 / 6])
INDICES = np.array([3, 0, 0, 2])

OUTER = {
    "reduce_sum": lambda g: R["reduce_sum"](g, axes=(0,)),
    "reduce_prod": lambda g: R["reduce_prod"](g + 1.0, axes=(0,)),
    "reduce_max": lambda g: R["reduce_max"](g, axes=(0,)),
    "reduce_min": lambda g: R["reduce_min"](g, axes=(0,)),
    "reduce_norm": lambda g: R["reduce_norm"](g, axes=(0,)),
    "cumsum": lambda g: R["cumsum"](g, axis=0, reverse=False),
    "cumsum from the end": lambda g: R["cumsum"](g, axis=0, reverse=True),
    "cumprod": lambda g: R["cumprod"](g + 1.0, axis=0),
    "sort": lambda g: R["sort"](g, axis=0),
    "take_along_axis": lambda g: R["take_along_axis"](g, constant(g, INDICES), axis=0),
    "add_along_axis": lambda g: R["add_along_axis"](g, constant(g, INDICES), axis=0, size=5),
    "maximum": lambda g: R["maximum"](g, 1.0),
    "minimum of two": lambda g: R["minimum"](g, 2.0 - g),
    "cast": lambda g: R["cast"](g, dtype=np.dtype(np.complex128)),
    "complex": lambda g: R["complex"](g, 3.0 * g),
    "real of complex": lambda g: R["real"](R["complex"](g.like(1.0), g) * 2j),
    "imag of conj": lambda g: R["imag"](R["conj"](R["complex"](g.like(1.0), g))),
    "abs of complex": lambda g: R["abs"](R["complex"](g, g.like(1.0))),
    "hypot": lambda g: R["hypot"](g, 1.0),
}


@pytest.mark.parametrize("name", OUTER)
def test_branches_that_are_not_taken(name):
    """J(op after where) = J(op) diag(slopes of the branches taken), finite, in both modes."""
    outer = OUTER[name]
    value = np.where(X > 0, np.sqrt(np.abs(X)), 2 * X)
    inner = jacobian(program(outer, value), [value], "forward")
    assert np.isfinite(inner).all() and inner.any()
    check_jacobian(lambda x: outer(guarded(x)), [X], inner * GUARDED_SLOPES)


@pytest.mark.parametrize("name", OUTER)
def test_branches_without_a_tangent(name):
    """The same where the other branch is a constant: its structural zero is moved and mixed."""
    outer = OUTER[name]
    value = np.where(X > 0, np.sqrt(np.abs(X)), 0.5)
    inner = jacobian(program(outer, value), [value], "forward")
    slopes = np.where(X > 0, GUARDED_SLOPES, 0.0)
    check_jacobian(lambda x: outer(R["select"](x > 0.0, R["sqrt"](x), x.like(0.5))), [X], inner * slopes)


@pytest.mark.parametrize("name", OUTER)
def test_a_where_afterwards(name):
    """where(p, op(sqrt(x)), 0) with p nowhere true: nothing contributes, though the slope at 0 is inf."""
    outer = OUTER[name]
    x = np.array([0.0, 4.0, 1.0, 9.0])

    def body(x):
        result = outer(R["sqrt"](x))
        return R["select"](result.like(False, np.dtype(np.bool_)), result, result.like(0.0))

    size = jacobian(program(outer, x), [x], "forward").shape[0]
    check_jacobian(body, [x], np.zeros((size, 4)))


OMITTING = {
    "take_along_axis": lambda g: R["take_along_axis"](g, constant(g, np.array([1, 3, 1])), axis=0),
    "add_along_axis of what was taken": lambda g: R["add_along_axis"](
        R["take_along_axis"](g, constant(g, np.array([1, 3])), axis=0), constant(g, np.array([0, 0])), axis=0, size=2
    ),
    "reduce_max": lambda g: R["reduce_max"](g, axes=(0,)),
    "maximum": lambda g: R["maximum"](g, 0.5),
}


@pytest.mark.parametrize("name", OMITTING)
def test_elements_that_are_left_out(name):
    """sqrt at 0 has an infinite slope, but that element goes nowhere: its column is 0, not nan."""
    outer, x = OMITTING[name], np.array([0.0, 4.0, 1.0, 9.0])
    inner = jacobian(program(outer, np.sqrt(x)), [np.sqrt(x)], "forward")
    assert not inner[:, 0].any()
    slopes = np.array([0.0, 0.25, 0.5, 1 / 6])
    check_jacobian(lambda x: outer(R["sqrt"](x)), [x], inner * slopes)


def test_no_zero_is_invented():
    """sqrt(x) * sqrt(x) at 0 is 0 * inf + 0 * inf = nan: a number times inf, not a structural zero."""
    body = lambda x: R["square"](R["sqrt"](x))  # noqa: E731
    check_jacobian(body, [np.array([0.0])], [[np.nan]])


def test_every_linear_op_of_these_modules_is_tried():
    modules = {f"srcgrad.ir.ops.{name}" for name in ("complexes", "reductions", "sorting")}
    ops = {op.name for op in REGISTRY.values() if isinstance(op, Linear) and type(op).__module__ in modules}
    tried = {name.split()[0] for name in OUTER} | {name.split()[-1] for name in OUTER}
    assert ops <= tried
