"""docs/control_flow.md for the tests of its rows: its tables, and the points at which their functions are tried."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "control_flow.md"
POINTS = (np.array([0.53, -1.57, 2.43]), np.array([-0.52, 1.27, 3.47]), np.array([2.03, 0.26, -1.12]))
Function = Callable[..., Any]
on_the_page = pytest.mark.skipif(not PAGE.exists(), reason="a copy without the documentation")


def table(heading: str) -> dict[str, str]:
    """The rows of the table under a heading."""
    part = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (.*?) \| (.*?) \|$", part, re.MULTILINE)
    return dict(rows[1:])
