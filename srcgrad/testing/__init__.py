"""Checking derivatives.

`check_grads` compares them with differences, in both modes and to any order; `cross_check` compares all backends, both
modes, jax's own derivatives and differences with each other, in one table.
"""

from __future__ import annotations

from srcgrad.testing.check import check_grads
from srcgrad.testing.cross_check import cross_check
from srcgrad.testing.report import CrossCheck, Row

__all__ = ["CrossCheck", "Row", "check_grads", "cross_check"]
