"""Groups that are written over what they read last, and those that must not be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.backends.llvm import chunks, kernels
from srcgrad.backends.llvm.backend import BACKEND
from srcgrad.backends.llvm.loops import Group, overwritable
from srcgrad.backends.llvm.modules import Program
from srcgrad.backends.llvm.planning import Plan
from srcgrad.backends.llvm.sections import sectioned
from srcgrad.backends.llvm.target import TARGET
from srcgrad.ir.core import Function
from tests.backends.llvm.support import OPS, agree, build, normal, total


def ordered(x: Any) -> Any:
    """An array of the section's own, which a step makes."""
    return OPS["sort"](x, axis=x.rank - 1)


def shown(x: Any) -> Any:
    """What only a step reads, so that it is an array."""
    return OPS["cumsum"](x, axis=0, reverse=False)


def plan_of(function: Function) -> Plan:
    found = sectioned(function)
    (section,) = found.sections
    program = Program(found.partition, TARGET)
    return Plan(program.planner, section.inputs, section.operations, section.outputs, ())


def written_over(plan: Plan) -> int:
    return sum(map(len, plan.over.values()))


def once(x: Any, y: Any) -> Any:
    return shown(OPS["tanh"](ordered(x)))


def of_two(x: Any, y: Any) -> Any:
    """Two results of one group, of which each has an array that it may take."""
    a, b = ordered(x), ordered(y)
    u = OPS["tanh"](a)
    return shown(u), shown(OPS["exp"](b) * u)


def to_bits(x: Any, y: Any) -> Any:
    """Numbers of another dtype, of the same size."""
    return shown(OPS["cast"](OPS["mul"](ordered(x), ordered(x)), dtype=np.dtype(np.int64)))


TAKEN: dict[str, tuple[Callable[..., Any], int]] = {"once": (once, 1), "of two": (of_two, 2), "to bits": (to_bits, 1)}


def backwards(x: Any, y: Any) -> Any:
    return shown(OPS["tanh"](OPS["reverse"](ordered(x), axes=(x.rank - 1,))))


def turned(x: Any, y: Any) -> Any:
    return shown(OPS["tanh"](OPS["transpose"](ordered(x), perm=(1, 0))))


def in_two_ways(x: Any, y: Any) -> Any:
    a = ordered(x)
    return shown(OPS["tanh"](a) + OPS["transpose"](a, perm=(1, 0)))


def read_later(x: Any, y: Any) -> Any:
    a = ordered(x)
    return shown(OPS["tanh"](a)), OPS["cumprod"](a, axis=0, reverse=False)


def of_an_input(x: Any, y: Any) -> Any:
    return shown(OPS["tanh"](x))


def returned(x: Any, y: Any) -> Any:
    a = ordered(x)
    return shown(OPS["tanh"](a)), a


def smaller(x: Any, y: Any) -> Any:
    return shown(OPS["cast"](ordered(x), dtype=np.dtype(np.float32)))


def repeated(x: Any, y: Any) -> Any:
    return shown(OPS["broadcast"](total(ordered(x), 0), shape=x.shape, dims=(1,)) * y)


NOT_TAKEN = {
    rule.__name__: rule
    for rule in (backwards, turned, in_two_ways, read_later, of_an_input, returned, smaller, repeated)
}


@pytest.mark.parametrize("size", [5, 24])
@pytest.mark.parametrize("name", TAKEN)
def test_a_group_is_written_over_what_it_reads_last(name: str, size: int) -> None:
    rule, expected = TAKEN[name]
    x, y = normal(size, size), normal(size, size, seed=1)
    assert written_over(plan_of(build(rule, x, y))) == expected
    before = x.copy(), y.copy()
    agree(rule, x, y, rtol=1e-12)
    np.testing.assert_array_equal((x, y), before)


@pytest.mark.parametrize("name", NOT_TAKEN)
def test_nothing_is_written_over_what_is_read_elsewhere_or_later(name: str) -> None:
    x, y = normal(24, 24), normal(24, 24, seed=1)
    before = x.copy(), y.copy()
    assert not written_over(plan_of(build(NOT_TAKEN[name], x, y)))
    agree(NOT_TAKEN[name], x, y, rtol=1e-12)
    np.testing.assert_array_equal((x, y), before)


def group_of(function: Function) -> Group:
    (group,) = [item for item in sectioned(function).partition.groups if isinstance(item, Group)]
    return group


def test_what_is_stored_before_an_array_is_read_is_not_stored_there() -> None:
    """In a group of two results the first is stored before the second one's operand is read."""
    function = build(lambda x, y: (OPS["tanh"](x), OPS["exp"](y) * OPS["tanh"](x)), normal(9), normal(9, seed=1))
    found = sectioned(function).partition.groups
    (group,) = (item for item in found if isinstance(item, Group))
    x, y = (function.params[k] for k in range(2))
    pairs = {(output, value) for output, values in overwritable(group).items() for value in values}
    first, second = group.outputs
    reads = {group.inputs[item.source]: k for k, item in enumerate(group.statements) if hasattr(item, "source")}
    stored = {group.outputs[store.output]: store.statement for store in group.stores}
    assert pairs == {(a, b) for a in (first, second) for b in (x, y) if reads[b] <= stored[a]}
    assert (second, x) in pairs and (second, y) in pairs


def test_threads_write_over_what_they_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "WORTH", 1)
    monkeypatch.setattr(chunks, "EACH", 1)
    x, y = normal(40, 40), normal(40, 40, seed=1)
    function = build(of_two, x, y)
    assert "_chunk(" in BACKEND.compile(function).source
    agree(of_two, x, y, rtol=1e-12)


def test_what_is_written_over_is_not_written_past_the_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "STREAMED", 1)

    def apart(x: Any) -> Any:
        return shown(OPS["neg"](x))

    x = normal(64, 64)
    assert ("nontemporal" in BACKEND.compile(build(apart, x)).source) == (TARGET.vector_bytes > 16)
    over = build(lambda x: shown(OPS["neg"](ordered(x))), x)
    assert written_over(plan_of(over)) and "nontemporal" not in BACKEND.compile(over).source


def test_a_loop_goes_on_in_the_memory_of_its_carry() -> None:
    """A carry that a group changes in place stays where it is, and what the loop was given is as it was."""

    def shrunk(x: Any) -> Any:
        while np.sum(x * x) > 1.0:
            x = 0.5 * np.tanh(x)
        return np.sort(x)

    x = normal(300)
    before = x.copy()
    found = sg.jit(shrunk)(x)
    np.testing.assert_allclose(found, shrunk(x), rtol=1e-12)
    np.testing.assert_array_equal(x, before)
