"""Every op on every sample: value, derivatives in both modes to second order, masks, transposition, batching."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from srcgrad.ir.opdef import Op
from tests.ir.ops.harness import CHECKS, ops, run_check

COUNTS: Counter[str] = Counter()


@pytest.fixture(scope="module", autouse=True)
def total() -> Iterator[None]:
    COUNTS.clear()
    yield
    print(f"\nop x check x sample: {COUNTS.total()}, of which {dict(COUNTS)}")


@pytest.mark.parametrize("op", ops(), ids=lambda op: op.name)
@pytest.mark.parametrize("check", CHECKS)
def test_op(op: Op, check: str) -> None:
    COUNTS[check] += run_check(op, check)
