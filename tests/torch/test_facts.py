"""Every case of the tables gives what PyTorch was recorded to give; where PyTorch is installed, what it gives now."""

from __future__ import annotations

from typing import Any

import pytest

import srcgrad.torch
from tests.torch import facts

AREAS = sorted(path.stem for path in (facts.HERE / "tables").glob("*.py"))
TABLE = [pytest.param(area, case, id=f"{area}-{case.name}") for area in AREAS for case in facts.cases(area)]
KNOWN: dict[str, dict[str, Any]] = {area: facts.recorded(area) for area in AREAS}


@pytest.mark.parametrize(("area", "case"), TABLE)
def test_a_case_gives_what_pytorch_gives(area: str, case: facts.Case) -> None:
    found = facts.differences(case, facts.observe(case, srcgrad.torch), KNOWN[area][case.name])
    assert not found, f"{case.code}\n" + "\n".join(found)


@pytest.mark.parametrize("area", AREAS)
def test_every_record_has_its_case(area: str) -> None:
    assert set(KNOWN[area]) == {case.name for case in facts.cases(area)}
