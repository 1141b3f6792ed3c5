"""`torch.cuda`, which says that there is none: tensors of the facade lie on the CPU."""

from __future__ import annotations


def is_available() -> bool:
    """False: code that asks before it moves tensors runs unchanged."""
    return False


def device_count() -> int:
    """None of them."""
    return 0


def synchronize(device: object = None) -> None:
    """There is nothing to wait for."""


def empty_cache() -> None:
    """There is nothing to give back."""


def manual_seed_all(seed: int) -> None:
    """There are no other generators to seed."""


manual_seed = manual_seed_all
