"""Is a rule's equation true? Both sides are run where arithmetic is special, and so are their derivatives."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import srcgrad.ir.ops  # noqa: F401  (registers the ops)
from srcgrad.backends.numpy.evaluate import evaluate
from srcgrad.ir.core import Builder, Function
from srcgrad.ir.opdef import Term
from srcgrad.ir.passes.dce import dce
from srcgrad.ir.passes.rewrite import Fired, Rule, RuleSet, rewrite
from srcgrad.ir.types import BOOL, ArrayType, DType
from tests.ir.ops.harness import pull_back_function, push_forward_function

Array = np.ndarray[Any, Any]

DTYPES: dict[str, tuple[DType, ...]] = {
    "b": (BOOL,),
    "i": (np.dtype(np.int64), np.dtype(np.int8)),
    "u": (np.dtype(np.uint8),),
    "f": (np.dtype(np.float64), np.dtype(np.float32)),
    "c": (np.dtype(np.complex128),),
}


def special_values(dtype: DType) -> Array:
    """-inf, -1, -0.0, 0.0, 1, inf, nan and a subnormal, or what the dtype has that is like them."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.array([limits.min, limits.max, 0, 1, 2, limits.max - 1], dtype)
    parts = np.array([-np.inf, -1.0, -0.0, 0.0, 1.0, np.inf, np.nan, 5e-324])
    if dtype.kind == "f":
        parts[-1] = np.finfo(dtype).smallest_subnormal
        return parts.astype(dtype)
    numbers = np.empty(parts.size**2, dtype)
    numbers.real, numbers.imag = (axis.ravel() for axis in np.meshgrid(parts, parts))
    return numbers


def parameters(example: Callable[..., Term]) -> list[str]:
    return list(inspect.signature(example).parameters)


def left_side(example: Callable[..., Term], dtype: DType, shape: tuple[int, ...]) -> Function:
    builder = Builder()
    terms = []
    for name in parameters(example):
        terms.append(Term(builder, builder.param(ArrayType(BOOL if name in "pq" else dtype, shape), name)))
    return builder.function("left", [example(*terms).value])


def inputs(example: Callable[..., Term], dtype: DType, shape: tuple[int, ...] | None) -> list[Array]:
    """All combinations of special values (thinned out for many complex operands), or the values in the given shape."""
    columns = [special_values(BOOL if name in "pq" else dtype) for name in parameters(example)]
    if shape is not None:
        return [np.resize(np.roll(column, k), shape) for k, column in enumerate(columns)]
    if dtype.kind == "c" and len(columns) > 2:
        columns = [column[k::5] for k, column in enumerate(columns)]
    rows = list(itertools.product(*columns))
    return [np.array([row[k] for row in rows], column.dtype) for k, column in enumerate(columns)]


def right_side(rule: Rule, left: Function) -> Function:
    fired: list[Fired] = []
    right = dce(rewrite(left, RuleSet([rule]), fired=fired))
    assert fired, f"{rule} does not fire on {left}"
    assert {each.rule for each in fired} == {rule.name}
    return right


def check_rule(rule: Rule) -> None:
    """Check the equation on all its examples and dtypes.

    Raises:
        AssertionError: it does not fire, or not there, or a value or a derivative differs.
    """
    for example, kind in itertools.product(rule.examples, rule.kinds):
        for dtype in DTYPES[kind]:
            if dtype == BOOL or any(name not in "pq" for name in parameters(example)):
                check_example(rule, example, dtype)


def check_example(rule: Rule, example: Callable[..., Term], dtype: DType) -> None:
    arguments = inputs(example, dtype, rule.shape)
    left = left_side(example, dtype, arguments[0].shape)
    right = right_side(rule, left)
    what = f"{rule.name} on {dtype}"
    compare(left, right, arguments, f"{what}: value", rule.stage == "limit")
    assert len(right.operations) <= len(left.operations) or rule.stage == "limit", f"{what}: more operations"
    if rule.stage == "exact":
        check_derivatives(left, right, arguments, what, rule)


def check_derivatives(left: Function, right: Function, arguments: Sequence[Array], what: str, rule: Rule) -> None:
    """Both modes, seeds with and without masks; of masked programs, the masks of the results too."""
    active = [k for k, param in enumerate(left.params) if param.type.differentiable]
    if not active or not left.results[0].type.differentiable:
        return
    for build, seeded in (
        (push_forward_function, [left.params[k].type for k in active]),
        (pull_back_function, [left.results[0].type]),
    ):
        for masks in ("", "masked", "dirty", "scalar"):
            for subset in [active] if build is pull_back_function else [active, *([k] for k in active)]:
                types = seeded if len(seeded) != len(active) or subset == active else [left.params[subset[0]].type]
                seeds = [seed for k, type in enumerate(types) for seed in seed_values(type, k, masks)]
                programs = [build(side, subset, [0], masks) for side in (left, right)]
                where = f"{what}: {build.__name__} {masks} {subset}"
                compare_tangents(*programs, [*arguments, *seeds], where, masks == "masked", signs=not rule.early)


def seed_values(type: ArrayType, position: int, masks: str) -> list[Array]:
    """(Co)tangents, and their masks if any; where a mask is False the value is 0 (``masked``) or nan."""
    numbers = np.roll(np.array([1.0, 0.0, -2.0, np.inf, 0.5, -0.0, 3.0, np.nan, -np.inf, 1.0, 0.25]), position)
    values = np.resize(numbers, type.static_shape).astype(type.dtype)
    if type.dtype.kind == "c":
        values.imag = np.resize(np.roll(numbers, 3), type.static_shape)
    if not masks:
        return [values]
    if masks == "scalar":
        return [values, np.array(position % 2 == 0)]
    mask = np.resize(np.array([True, False, True, True, False, True, False]), type.static_shape)
    absent = np.array(0.0 if masks == "masked" else np.nan, type.dtype)
    return [np.where(mask, values, absent), mask]


def compare(left: Function, right: Function, arguments: Sequence[Array], what: str, rounding: bool = False) -> None:
    assert left.result_types == right.result_types, what
    for found, expected in zip(evaluate(right, arguments), evaluate(left, arguments), strict=True):
        if rounding:
            np.testing.assert_allclose(found, expected, rtol=1e-6, equal_nan=True, err_msg=what)
        else:
            assert_same_bits(found, expected, f"{what}\n{left}\n{right}")


def compare_tangents(
    left: Function, right: Function, arguments: Sequence[Array], what: str, masked: bool, signs: bool = True
) -> None:
    """Compare (co)tangents; if ``masked``, each is followed by its mask, of its shape or of rank 0.

    The masks must be equal: they say where it is structurally zero. There it is 0, of either sign. Without ``signs``
    those of all zeros may differ: the left side of a rule may add a structural zero to -0.0, where the right does not.
    """
    what = f"{what}\n{left}\n{right}"
    found, expected = evaluate(right, arguments), evaluate(left, arguments)
    step = 2 if masked else 1
    for k in range(0, len(expected), step):
        if masked:
            shape = np.shape(expected[k])
            mask = np.broadcast_to(expected[k + 1], shape)
            assert np.array_equal(np.broadcast_to(found[k + 1], shape), mask), f"{what}\nmask {k}"
            for side in (found, expected):
                assert not np.any(side[k][~mask]), f"{what}\nresult {k} is not 0 where it is structurally zero"
                side[k] = np.where(mask, side[k], np.zeros((), side[k].dtype))
        if not signs:
            found[k], expected[k] = found[k] + 0.0, expected[k] + 0.0
        assert_same_bits(found[k], expected[k], f"{what}\nresult {k}")


def assert_same_bits(found: Any, expected: Any, what: str) -> None:
    """Equal values with equal signs of zero; nan equals nan."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape), what
    same = np.ones(found.shape, bool)
    pairs = (
        [(found, expected)] if found.dtype.kind != "c" else [(found.real, expected.real), (found.imag, expected.imag)]
    )
    for one, other in pairs:
        equal = one == other
        if one.dtype.kind == "f":
            equal = (equal & (np.signbit(one) == np.signbit(other))) | (np.isnan(one) & np.isnan(other))
        same &= equal
    assert same.all(), (
        f"{what}\nat {np.argwhere(~same)[:3].tolist()}: {found[~same][:3]} became of {expected[~same][:3]}"
    )
