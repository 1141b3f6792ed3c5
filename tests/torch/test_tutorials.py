"""What the usual autograd tutorials show is printed here as PyTorch prints it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import srcgrad.torch
from tests.torch.tutorials_lib import RECORD, SCRIPTS, printed


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_tutorial_prints_what_pytorch_prints(script: Path) -> None:
    assert printed(script, srcgrad.torch) == json.loads(RECORD.read_text())[script.stem]
