"""Where PyTorch is installed, the records are what it gives now."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.torch import facts, observing, sessions, tutorials_lib

AREAS = ("optim", "schedulers", "data", "training")
SCENES = [(area, name) for area in AREAS for name in observing.scenes(area)]
SESSIONS = [
    (path.stem, name) for path in sorted(sessions.RECORDS.glob("*.json")) for name in sessions.sessions_of(path.stem)
]
TABLES = sorted(path.stem for path in (facts.HERE / "tables").glob("*.py"))


pytestmark = [
    pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Full backward hook is firing:UserWarning"),
]
"""PyTorch's own derivatives of its functions call the first, once in a process; hooks say the second of our inputs."""


@pytest.fixture(scope="module")
def real() -> Any:
    torch = pytest.importorskip("torch")
    if not torch.__version__.startswith("2.13."):
        pytest.skip("the records are of PyTorch 2.13")
    return torch


@pytest.mark.parametrize(("area", "name"), SCENES)
def test_a_scene_goes_as_recorded(area: str, name: str, real: Any) -> None:
    found = observing.seen(observing.scenes(area)[name], real)
    assert observing.difference(found, observing.recorded(area)[name], 1e-4) is None


@pytest.mark.parametrize("script", tutorials_lib.SCRIPTS, ids=lambda script: script.stem)
def test_a_tutorial_prints_what_was_recorded(script: Path, real: Any) -> None:
    known = json.loads(tutorials_lib.RECORD.read_text())
    assert tutorials_lib.printed(script, real) == known[script.stem]


@pytest.mark.parametrize(("area", "name"), SESSIONS)
def test_a_session_prints_what_was_recorded(area: str, name: str, real: Any) -> None:
    assert sessions.printed(sessions.sessions_of(area)[name], real) == sessions.recorded(area)[name]


@pytest.mark.parametrize("area", TABLES)
def test_a_table_gives_what_was_recorded(area: str, real: Any) -> None:
    known = facts.recorded(area)
    for case in facts.cases(area):
        found = facts.differences(case, facts.observe(case, real), known[case.name])
        assert not found, f"{case.name}: {found}"
