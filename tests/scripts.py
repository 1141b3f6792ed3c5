"""Scripts of the repository that belong to no package, as modules."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def load(path: Path) -> ModuleType:
    """The module of a script; what it adds to the path for its own imports does not stay."""
    specification = importlib.util.spec_from_file_location(f"script_{path.stem}", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    before = list(sys.path)
    try:
        specification.loader.exec_module(module)
    finally:
        sys.path[:] = before
    return module
