"""What reads a value of a block, found without looking at what does not."""

from __future__ import annotations

import random

import pytest

from srcgrad.ir.core import Builder, Region, Value
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.passes.readers import Readers
from srcgrad.ir.types import FLOAT64, ArrayType


def block(seed: int) -> Region:
    """Operations on what stands before them, some of which read one value twice."""
    chosen, builder = random.Random(seed), Builder()
    values = [builder.param(ArrayType(FLOAT64, ())) for _ in range(4)]
    for _ in range(30):
        values.append(builder.emit(REGISTRY[chosen.choice(["add", "mul", "sub"])], chosen.choices(values, k=2)))
    return builder.region(chosen.choices(values, k=3))


@pytest.mark.parametrize("seed", range(20))
def test_what_is_made_of_a_value_is_found_as_by_looking_at_all(seed: int) -> None:
    region = block(seed)
    readers = Readers(region)
    for param in region.params:
        expected: set[Value] = {param}
        for operation in region.operations:
            if not expected.isdisjoint(operation.operands):
                expected.update(operation.results)
        assert readers.depending([param]) == expected


@pytest.mark.parametrize("seed", range(5))
def test_readers_come_once_and_in_their_order(seed: int) -> None:
    region = block(seed)
    readers = Readers(region)
    given = set(region.params[:2])
    found = list(readers.following(given))
    assert found == [operation for operation in region.operations if not given.isdisjoint(operation.operands)]
    for value in region.params:
        assert readers.of(value) == [operation for operation in region.operations if value in operation.operands]


def test_a_result_beside_the_one_that_is_known() -> None:
    builder = Builder()
    x, y = (builder.param(ArrayType(FLOAT64, ())) for _ in range(2))
    readers = Readers(builder.region([x, y, x]))
    assert readers.is_given(x, 0) and not readers.is_given(y, 1) and readers.is_given(y, 0)
