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


@pytest.mark.parametrize(
    ("check", "op"), [pytest.param(check, op, id=f"{check}-{op.name}") for op in ops() for check in CHECKS]
)
def test_op(check: str, op: Op) -> None:
    COUNTS[check] += run_check(op, check)
