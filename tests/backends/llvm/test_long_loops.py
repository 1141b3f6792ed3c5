"""Loops of long bodies, which LLVM is not to know as loops: the same results, from either entry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from srcgrad.backends.llvm import modules, native, trips
from srcgrad.backends.llvm.backend import BACKEND
from tests.backends.llvm.support import OPS, build, normal, total


def rule(x: Any, y: Any) -> Any:
    terms = [x, y]
    for k in range(60):
        a, b = terms[-1], terms[k // 2]
        terms.append(OPS["tanh"](a) if k % 4 == 3 else OPS[("mul", "sub", "maximum")[k % 4]](a, b))
    return terms[-1], total(terms[-1], *range(x.rank)), total(terms[-2], x.rank - 1), terms[30]


@pytest.mark.parametrize("shape", [(8,), (64,), (67,), (9001,), (5, 24), (7, 19), (2, 3, 40)])
@pytest.mark.parametrize("entry", ["first", "second"])
def test_long_loops(shape: tuple[int, ...], entry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = normal(*shape), normal(*shape, seed=1)
    function = build(rule, x, y)
    with monkeypatch.context() as patch:
        patch.setattr(trips, "LONG", 1 << 30)
        wanted = BACKEND.compile(function).run(x, y)
    texts: list[str] = []
    load = native.Library.__init__

    def loaded(self: native.Library, text: str) -> None:
        texts.append(text)
        load(self, text.replace(HIDDEN, HIDDEN.replace("i64 0", "i64 1")) if entry == "second" else text)

    monkeypatch.setattr(trips, "LONG", 20)
    monkeypatch.setattr(modules, "PART_TEXT", 1 << 40)  # one module
    monkeypatch.setattr(native.Library, "__init__", loaded)
    found = BACKEND.compile(function).run(x, y)
    assert max(shape) <= 24 or any(HIDDEN in text for text in texts)
    for actual, expected in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(actual, expected)


HIDDEN = 'asm "", "=r,0"(i64 0)'
