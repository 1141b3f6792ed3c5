"""`torch.utils`."""

from __future__ import annotations

from srcgrad.torch.utils import checkpoint, data

__all__ = ["checkpoint", "data"]
