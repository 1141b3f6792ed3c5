"""Every op on every sample: value, derivatives in both modes to second order, masks, transposition, batching."""

from __future__ import annotations

import pytest

from srcgrad.ir.opdef import Op
from tests.ir.ops.harness import CHECKS, ops, run_check


@pytest.mark.parametrize("op", ops(), ids=lambda op: op.name)
@pytest.mark.parametrize("check", CHECKS)
def test_op(op: Op, check: str) -> None:
    run_check(op, check)
