"""Operations on all pairs of dtypes and kinds of operand give the dtypes, errors and values that PyTorch gives."""

from __future__ import annotations

import json

import numpy as np
import pytest

import srcgrad.torch as torch
from tests.torch import promotion

KNOWN = json.loads(promotion.RECORD.read_text())


@pytest.mark.parametrize("name", promotion.OPERATIONS)
def test_the_dtype_or_the_error_of_every_pair(name: str) -> None:
    ours = promotion.codes(torch, name)
    wrong = [
        f"{left} {name} {right}: ours {mine}, PyTorch's {other}"
        for (left, right), mine, other in zip(promotion.pairs(), ours, KNOWN["dtypes"][name], strict=True)
        if mine != other and not (other == "N" and mine == "F")  # complex64 can more than complex32
    ]
    assert not wrong, "\n".join(wrong[:20])


def test_the_values_of_drawn_pairs() -> None:
    wrong = []
    for case, known in zip(promotion.drawn(), KNOWN["values"], strict=True):
        found = promotion.values(torch, *case)
        if (found is None) != (known is None) or (known is not None and not np.allclose(found, known, rtol=1e-3)):
            wrong.append(f"{case}: ours {found}, PyTorch's {known}")
    assert not wrong, "\n".join(wrong[:20])
