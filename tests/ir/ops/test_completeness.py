"""No op lacks a sample, a rule, a meaning or a docstring, unless a list here says why."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pytest

from srcgrad.ir.core import Attrs, Function
from srcgrad.ir.errors import DTypeError, InternalError, MissingRuleError
from srcgrad.ir.opdef import REGISTRY, NonDifferentiable, Op
from srcgrad.ir.transforms.batch import batch
from srcgrad.ir.types import ArrayType
from tests.ir.ops.harness import CHECKS, HOLES, NOT_DIFFERENTIATED, Case, applies, cases, ops, type_of

HOLDS_REGIONS = "holds traced functions as regions, which a sample cannot say: tested with the transforms"

SCALAR_REGION = "holds the function of the values as a region: tested in test_spectral.py"

CONTROL = "control flow, whose regions a sample cannot say: tested in tests/ir/control"

WITHOUT_SAMPLES: dict[str, str] = {
    "checkpoint": HOLDS_REGIONS,
    "cond": CONTROL,
    "coupling": "no backend runs it: tested by the samples of pinv and lstsq",
    "custom_jvp": HOLDS_REGIONS,
    "custom_linear": HOLDS_REGIONS,
    "custom_vjp": HOLDS_REGIONS,
    "for": CONTROL,
    "linear_cond": CONTROL,
    "linear_for": CONTROL,
    "rematerialised": HOLDS_REGIONS,
    "singular": SCALAR_REGION,
    "singular_sum": SCALAR_REGION,
    "spectral": SCALAR_REGION,
    "spectral_sum": SCALAR_REGION,
    "tape_length": "takes tapes, which a sample cannot say: tested in tests/ir/control",
    "while": CONTROL,
}
"""op -> why it has no sample."""

WITHOUT_KIND: dict[tuple[str, str], str] = {}
"""(op, dtype kind) -> why an op that takes float (``f``) or complex (``c``) operands has no sample of them."""


def missing_rules(op: Op) -> set[str]:
    """The rules that raise MissingRuleError on some sample; the transpose is that of the op's linear part."""
    found = set()
    for case in cases(op):
        attempts: dict[str, Callable[[], Function]] = {
            "batch": partial(batch, case.function, [True] * len(case.operands), 2)
        }
        if case.differentiable:
            attempts["jvp"] = partial(case.program, "jvp")
            attempts["transpose"] = partial(case.program, "vjp")
        for rule, attempt in attempts.items():
            if case.operands:
                try:
                    attempt()
                except MissingRuleError:
                    found.add(rule)
    return found


def untried_kinds(op: Op) -> set[str]:
    """Dtype kinds, float or complex, that the op takes in place of those of its samples and that no sample has."""
    samples = list(op.samples())
    tried = {np.asarray(a).dtype.kind for sample in samples for a in sample.operands}
    free = [case for case in cases(op) if not case.constant]
    return {kind for kind in set("fc") - tried if any(accepts(op, case, kind) for case in free)}


def accepts(op: Op, case: Case, kind: str) -> bool:
    dtype = np.dtype(np.float64 if kind == "f" else np.complex128)
    types = [type_of(a).with_dtype(dtype) if a.dtype.kind in "fc" else type_of(a) for a in case.operands]
    if not any(type.dtype == dtype for type in types):
        return False
    try:
        op.result_types(types, case.sample.attrs)
    except DTypeError:
        return False
    return True


def test_every_op_has_samples() -> None:
    assert {op.name for op in ops() if not list(op.samples())} == set(WITHOUT_SAMPLES)


def test_every_op_has_its_rules() -> None:
    found = {(op.name, rule) for op in ops() for rule in missing_rules(op)}
    assert found == set(HOLES)


def test_every_hole_has_a_reason() -> None:
    for reason in [*HOLES.values(), *NOT_DIFFERENTIATED.values(), *WITHOUT_SAMPLES.values(), *WITHOUT_KIND.values()]:
        assert len(reason.split()) >= 3


def test_every_op_has_samples_of_the_kinds_it_takes() -> None:
    found = {(op.name, kind) for op in ops() for kind in untried_kinds(op)}
    assert found == set(WITHOUT_KIND)


@pytest.mark.whole
@pytest.mark.parametrize("op", ops(), ids=lambda op: op.name)
def test_op_says_what_it_means(op: Op) -> None:
    assert "__doc__" in vars(type(op)) and type(op).__doc__, "no docstring of its own"
    if op.name in WITHOUT_SAMPLES:
        return
    assert op.meaning or type(op).source is not Op.source, "neither `meaning` nor `source`"


def test_a_differentiable_op_is_tested_in_both_modes() -> None:
    """An op whose jvp gives something but zeros has a sample on which derivatives were compared."""
    for op in ops():
        differentiable = [case for case in cases(op) if case.differentiable]
        if differentiable and any(case.forward[1].any() for case in differentiable):
            assert any(applies("differences", case) for case in differentiable), op.name


@pytest.mark.parametrize("check", CHECKS)
def test_every_check_applies_to_something(check: str) -> None:
    assert any(applies(check, case) for op in ops() for case in cases(op))


def test_an_op_that_lacks_a_method_is_no_op() -> None:
    class Parted(NonDifferentiable, abstract=True):
        @abstractmethod
        def part(self) -> int: ...

    with pytest.raises(InternalError, match="Untyped is an op without result_type"):

        class Untyped(NonDifferentiable):
            meaning = "np.untyped"

    with pytest.raises(InternalError, match="Unparted is an op without part"):

        class Unparted(Parted):
            def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
                return types[0]

    assert {"untyped", "unparted"}.isdisjoint(REGISTRY)
