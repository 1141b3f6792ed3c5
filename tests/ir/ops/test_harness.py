"""The harness of the samples finds what it is to find, however much of it is shared between checks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from srcgrad.ir.core import Builder
from srcgrad.ir.opdef import REGISTRY, Op, Sample
from srcgrad.ir.types import FLOAT64, ArrayType
from tests.backends.numpy.programs import on_every_sample
from tests.ir.ops import harness
from tests.ir.ops.harness import at_operands, cases, run, run_check

TYPE = ArrayType(FLOAT64, (3,))


@pytest.mark.parametrize("mode", ["jvp", "vjp"])
@pytest.mark.parametrize("name", ["mul", "betainc", "solve", "svd", "sort", "host_call"])
def test_programs_at_operands_are_the_whole_programs(name: str, mode: str) -> None:
    for case in cases(REGISTRY[name]):
        if case.differentiable:
            program = case.program(mode)
            of_seeds = at_operands(program, case.operands)
            for seed in range(2):  # what is kept stays as it is
                random = np.random.default_rng(seed)
                types = [param.type for param in program.params[len(case.operands) :]]
                seeds = [random.normal(size=type.static_shape).astype(type.dtype) for type in types]
                for found, expected in zip(of_seeds(seeds), run(program, [*case.operands, *seeds]), strict=True):
                    np.testing.assert_array_equal(found, expected)


def test_effects_happen_with_each_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def doubled(array: Any) -> Any:
        calls.append("site")
        return array * 2

    monkeypatch.setattr(harness, "SITES", (doubled,))
    builder = Builder()
    x, seed = builder.param(TYPE), builder.param(TYPE)
    (y,) = builder.emit_operation(REGISTRY["host_call"], [x], {"site": 0, "results": (TYPE,)}).results
    program = builder.function("f", [builder.emit(REGISTRY["mul"], [builder.emit(REGISTRY["sin"], [y]), seed]), x])
    of_seeds = at_operands(program, [np.ones(3)])
    for number in (1.0, 3.0):
        product, same = of_seeds([np.full(3, number)])
        np.testing.assert_array_equal(product, number * np.sin(np.full(3, 2.0)))
        np.testing.assert_array_equal(same, np.ones(3))
    assert calls == ["site", "site"]


def test_what_a_check_draws_does_not_depend_on_the_checks_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[float] = []
    monkeypatch.setitem(harness.CHECKS, "value", lambda case: found.append(case.random.random()))
    for _ in range(2):
        run_check(REGISTRY["sin"], "value")
    half = len(found) // 2
    assert half and found[:half] == found[half:]


def test_a_sample_that_fails_is_named() -> None:
    def check(op: Op, sample: Sample) -> None:
        assert sample.label != "empty"

    with pytest.raises(AssertionError) as caught:
        on_every_sample(check)(REGISTRY["sin"])
    assert caught.value.__notes__ == ["on sample 2 'empty' of sin"]
