"""Masks: the algebra of predicates, and what `Masked` makes of tangents, against a model that knows absent elements.

Each predicate is a vector that runs through all its combinations with the others, so every case is looked at.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.backends.numpy.evaluate import evaluate
from srcgrad.ir.core import Builder, Value, literal
from srcgrad.ir.opdef import REGISTRY, Lin, Tangent, Term, Zero
from srcgrad.ir.transforms.linear import PATH_LIMIT, MaskAlgebra, Masked, add_part, total
from srcgrad.ir.types import BOOL, FLOAT64, ArrayType

SIZE = 16
BITS = [np.array([bool(k >> bit & 1) for k in range(SIZE)]) for bit in range(4)]
"""The numbers of the predicates p, q, r and s."""
PREDICATE = ArrayType(BOOL, (SIZE,))
VECTOR = ArrayType(FLOAT64, (SIZE,))
COUNTS = ArrayType(np.dtype(np.int64), (SIZE,))


class Setting:
    """A builder with predicates, and masks made of them as paths."""

    def __init__(self) -> None:
        self.builder = Builder()
        self.algebra = MaskAlgebra(self.builder)
        self.predicates = [self.builder.param(PREDICATE, name) for name in "pqrs"]
        p, q, r, s = self.predicates
        both, invert = self.algebra.both, self.algebra.invert
        self.masks: list[Value | None] = [None, p, q, invert(p), both(p, q), both(p, invert(q)), both(s, q)]
        self.masks += [both(s, invert(q)), both(both(p, q), r), both(both(p, r), invert(q)), both(invert(p), q)]
        self.truths = [self.truth(mask) for mask in self.masks]

    def numbers(self, values: list[Value], *more: Any) -> list[Any]:
        return evaluate(self.builder.function("f", values), [*BITS, *more])

    def truth(self, mask: Value | None) -> Any:
        return np.ones(SIZE, bool) if mask is None else np.broadcast_to(self.numbers([mask])[0], SIZE)


def test_the_algebra_is_that_of_sets() -> None:
    setting = Setting()
    for left, right in itertools.product(setting.masks, repeat=2):
        one, other = setting.truth(left), setting.truth(right)
        np.testing.assert_array_equal(setting.truth(setting.algebra.either(left, right)), one | other)
        np.testing.assert_array_equal(setting.truth(setting.algebra.both(left, right)), one & other)
        if left is not None:
            np.testing.assert_array_equal(setting.truth(setting.algebra.invert(left)), ~one)
        split = setting.algebra.splitting(left, right)
        if split is not None:
            holds = setting.truth(split)
            assert holds[one].all() and not holds[other].any()


def test_disjunctions_fold() -> None:
    setting = Setting()
    algebra, (p, q, r, _) = setting.algebra, setting.predicates
    branch, rest = algebra.both(q, p), algebra.both(q, algebra.invert(p))
    assert algebra.either(p, algebra.invert(p)) is None
    assert algebra.either(branch, rest) is q
    assert algebra.either(rest, branch) is q
    assert algebra.either(q, branch) is q
    assert algebra.either(branch, q) is q
    assert algebra.either(r, None) is None
    assert algebra.both(branch, p) is branch
    assert algebra.splitting(branch, rest) is p


def tangents(setting: Setting) -> list[tuple[str, Tangent, Any, Any]]:
    """Label, tangent, which elements are there, and their numbers: with every mask, clean and dirty, of rank 0 too."""
    found: list[tuple[str, Tangent, Any, Any]] = [("Zero", Zero(VECTOR), np.zeros(SIZE, bool), np.zeros(SIZE))]
    alone = setting.builder.param(ArrayType(BOOL), "alone")
    numbers = np.arange(1.0, SIZE + 1)
    for number, mask in enumerate([*setting.masks, alone]):
        there = np.ones(SIZE, bool) if mask is alone else setting.truths[number]
        for clean in (False, True) if mask is not None else (False,):
            value = setting.builder.param(VECTOR)
            found.append((f"mask {number} {clean=}", Lin(value, mask, clean), there, numbers * (len(found) + 1)))
    return found


def held(there: Any, numbers: Any, tangent: Tangent) -> Any:
    """The numbers of a tangent's value: where it is absent, zeros if it is clean, else nan."""
    return np.where(there, numbers, 0.0 if isinstance(tangent, Lin) and tangent.clean else np.nan)


def check(
    emit: Callable[[Masked, Setting, Tangent, Tangent], Tangent],
    expected: Callable[[Any, Any, Any, Any], tuple[Any, Any]],
) -> None:
    """Emit something of two tangents, and compare: which elements are there, their numbers, zeros where it is clean."""
    setting = Setting()
    cases = tangents(setting)
    emitter = Masked(setting.builder)
    # The numbers of all parameters after the predicates; the mask of rank 0 is True.
    given = [np.True_, *(held(there, numbers, tangent) for _, tangent, there, numbers in cases[1:])]
    pairs, values = [], []
    for left, right in itertools.product(cases, repeat=2):
        found = emit(emitter, setting, left[1], right[1])
        mask = found.mask if isinstance(found, Lin) else None
        values += [emitter.materialise(found), found.value if isinstance(found, Lin) else emitter.materialise(found)]
        values.append(setting.predicates[0] if mask is None else mask)
        pairs.append((left, right, found, mask))
    results = iter(setting.numbers(values, *given))
    for left, right, found, mask in pairs:
        blended, raw, shown = next(results), next(results), np.broadcast_to(next(results), SIZE)
        there, numbers = expected(left[2], left[3], right[2], right[3])
        label = f"{left[0]}, {right[0]}"
        np.testing.assert_array_equal(blended, np.where(there, numbers, 0.0), label)
        if isinstance(found, Zero):
            assert not there.any(), label
            continue
        np.testing.assert_array_equal(shown if mask is not None else np.ones(SIZE, bool), there, label)
        if found.clean and mask is not None:
            np.testing.assert_array_equal(raw, np.where(there, numbers, 0.0), label)


def test_a_sum_is_there_where_a_term_is() -> None:
    check(
        lambda emitter, setting, left, right: emitter.add(left, right),
        lambda a, x, b, y: (a | b, np.where(a, x, 0.0) + np.where(b, y, 0.0)),
    )


@pytest.mark.parametrize("chosen", [False, True])
def test_what_a_choice_leaves_out_is_not_added_in_place(chosen: bool) -> None:
    """The gradient of ``np.sum(np.where(c, x, 0.0)[i] * x)`` had what is gathered where ``c`` is False too."""

    def emit(emitter: Masked, setting: Setting, left: Tangent, right: Tangent) -> Tangent:
        counts = setting.builder.emit(REGISTRY["cumsum"], [literal(1, COUNTS)], {"axis": 0, "reverse": True})
        places = setting.builder.emit(REGISTRY["sub"], [counts, literal(1, COUNTS)])
        operands = [Zero(VECTOR), right, Term(setting.builder, places)]
        (found,) = emitter.apply_all(REGISTRY["scatter_add"], operands, {"axis": 0})
        if chosen:
            found = emitter.select(Term(setting.builder, setting.predicates[2]), found, Zero(VECTOR))
        return emitter.add(left, found)

    taken = BITS[2] if chosen else np.ones(SIZE, bool)
    check(
        emit,
        lambda a, x, b, y: (
            a | (b[::-1] & taken),
            np.where(a, x, 0.0) + np.where(b[::-1] & taken, y[::-1], 0.0),
        ),
    )


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_elements_of_a_choice_are_gathered_beside_what_it_chooses_from(backend: str) -> None:
    x, places = np.array([-0.4, 0.6, 0.1, 0.8, -0.1, 0.2]), np.array([3, 1, 5, 0, 2, 4])
    inverse = np.argsort(places)
    for f, slope in (
        (lambda x: np.sum(np.where(x > 0.0, x, 0.0)[places] * x), (x > 0.0) * x[inverse]),
        (lambda x: np.sum(np.interp(x, [-2.0, 0.0, 2.0], [0.0, 1.0, 3.0])[places] * x), None),
    ):
        gradient = sg.grad(f, backend=backend)(x)
        np.testing.assert_allclose(gradient, sg.jacfwd(f, backend=backend)(x), rtol=1e-12)
        if slope is not None:
            np.testing.assert_allclose(gradient, np.where(x > 0.0, x, 0.0)[places] + slope, rtol=1e-12)


def test_parts_of_the_branches_of_choices_have_no_mask_together() -> None:
    """Whatever the order in which they come: two choices, and each branch of them is read where it is taken alone."""
    for order in itertools.permutations(range(4)):
        setting = Setting()
        p, q, *_ = setting.predicates
        emitter, invert, both = Masked(setting.builder), setting.algebra.invert, setting.algebra.both
        masks = [p, both(invert(p), q), both(invert(p), invert(q)), both(invert(p), q)]
        truths = [BITS[0], ~BITS[0] & BITS[1], ~BITS[0] & ~BITS[1], ~BITS[0] & BITS[1]]
        values = [setting.builder.param(VECTOR) for _ in masks]
        given = [np.where(truth, 10.0**k, np.nan) for k, truth in enumerate(truths)]
        parts: list[Tangent] = []
        for k in order:
            add_part(emitter, parts, Lin(values[k], masks[k]))
        found = total(emitter, parts)
        assert isinstance(found, Lin) and found.mask is None
        (numbers,) = setting.numbers([found.value], *given)
        np.testing.assert_array_equal(numbers, sum(np.where(t, 10.0**k, 0.0) for k, t in enumerate(truths)))


def test_many_parts_are_all_added() -> None:
    setting = Setting()
    emitter, parts = Masked(setting.builder), list[Tangent]()
    masks = [setting.builder.param(PREDICATE) for _ in range(PATH_LIMIT + 3)]
    values = [setting.builder.param(VECTOR) for _ in masks]
    random = np.random.default_rng(1)
    truths = [random.random(SIZE) < 0.5 for _ in masks]
    for value, mask in zip(values, masks, strict=True):
        add_part(emitter, parts, Lin(value, mask))
    assert len(parts) == PATH_LIMIT
    found = emitter.materialise(total(emitter, parts))
    given = [np.where(truth, 2.0**k, np.nan) for k, truth in enumerate(truths)]
    (numbers,) = setting.numbers([found], *truths, *given)
    np.testing.assert_array_equal(numbers, sum(np.where(t, 2.0**k, 0.0) for k, t in enumerate(truths)))


@pytest.mark.parametrize("position", range(4))
def test_a_choice_is_there_where_the_chosen_side_is(position: int) -> None:
    predicate = BITS[position]
    check(
        lambda emitter, setting, left, right: emitter.select(
            Term(setting.builder, setting.predicates[position]), left, right
        ),
        lambda a, x, b, y: (np.where(predicate, a, b), np.where(predicate, x, y)),
    )


@pytest.mark.parametrize("clean", [False, True])
def test_an_infinite_factor_leaves_no_zeros(clean: bool) -> None:
    """0 times inf is nan: a product, or a sum of products, is not clean where its factor was."""
    setting = Setting()
    emitter, p = Masked(setting.builder), setting.predicates[0]
    value, factor = setting.builder.param(VECTOR), Term(setting.builder, setting.builder.param(VECTOR))
    tangent = Lin(value, p, clean)
    scaled = emitter.scale(tangent, factor)
    column = emitter.apply(REGISTRY["reshape"], [tangent], {"shape": (SIZE, 1)})
    row = REGISTRY["reshape"](factor, shape=(1, SIZE))
    outer = emitter.apply(REGISTRY["dot_general"], [column, row], {"contract": ((1,), (0,)), "batch": ((), ())})
    numbers = np.where(BITS[0], 2.0, 0.0 if clean else np.nan)
    results = setting.numbers([emitter.materialise(scaled), emitter.materialise(outer)], numbers, np.full(SIZE, np.inf))
    expected = np.where(BITS[0], np.inf, 0.0)
    np.testing.assert_array_equal(results[0], expected)
    np.testing.assert_array_equal(results[1], np.repeat(expected[:, None], SIZE, 1))


def test_movement_moves_masks() -> None:
    setting = Setting()
    emitter, p = Masked(setting.builder), setting.predicates[0]
    tangent = Lin(setting.builder.param(VECTOR), p)
    moved = emitter.apply(REGISTRY["reverse"], [tangent], {"axes": (0,)})
    numbers = np.where(BITS[0], np.arange(1.0, SIZE + 1), np.nan)
    (found,) = setting.numbers([emitter.materialise(moved)], numbers)
    np.testing.assert_array_equal(found, np.nan_to_num(numbers)[::-1])
