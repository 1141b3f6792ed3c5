"""Every case of the tables gives what PyTorch was recorded to give; where PyTorch is installed, what it gives now."""

from __future__ import annotations

from typing import Any

import pytest

import srcgrad.torch
from tests.torch import facts
from tests.torch.facts import AREAS, GROUPS

KNOWN: dict[str, dict[str, Any]] = {area: facts.recorded(area) for area in AREAS}


@pytest.mark.parametrize("group", GROUPS, ids="-".join)
def test_cases_give_what_pytorch_gives(group: tuple[str, str]) -> None:
    area, _ = group
    wrong = []
    for case in GROUPS[group]:
        found = facts.differences(case, facts.observe(case, srcgrad.torch), KNOWN[area][case.name])
        if found:
            wrong.append("\n".join([f"{case.name}: {case.code}", *found]))
    assert not wrong, "\n\n".join(wrong)


def test_no_case_is_left_out() -> None:
    assert sum(map(len, GROUPS.values())) == sum(len(facts.cases(area)) for area in AREAS) > 5000


@pytest.mark.parametrize("area", AREAS)
def test_every_record_has_its_case(area: str) -> None:
    assert set(KNOWN[area]) == {case.name for case in facts.cases(area)}
