"""The layers: ``ir`` imports the standard library and numpy; ``backends`` imports ``ir``; ``srcgrad`` imports both."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# A layer's folder -> the modules it may import beside the standard library. The longest matching folder holds.
ALLOWED = {
    "ir": {"numpy", "srcgrad.ir"},
    "backends": {"numpy", "scipy", "srcgrad.ir", "srcgrad.backends"},
    "backends/llvm": {"numpy", "scipy", "llvmlite", "srcgrad.ir", "srcgrad.backends"},
    "backends/xla": {"numpy", "scipy", "jax", "jaxlib", "srcgrad.ir", "srcgrad.backends"},
}


def imported_names(source: str) -> Iterator[tuple[int, str]]:
    """Line and dotted name of all that a module imports, wherever in it the import stands."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            # `from srcgrad import ir` imports srcgrad.ir: the package is named by what is taken from it.
            module = "." * node.level + (node.module or "")
            for alias in node.names:
                yield node.lineno, f"{module}.{alias.name}"
        elif isinstance(node, ast.Call):
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if name in ("import_module", "__import__") and node.args:
                for constant in ast.walk(node.args[0]):
                    if isinstance(constant, ast.Constant) and isinstance(constant.value, str):
                        yield node.lineno, constant.value.rstrip(".")


def violations(relative: str, source: str) -> list[str]:
    """What `source`, taken as the file `relative` of the repository, imports against the rule."""
    layer = max((folder for folder in ALLOWED if relative.startswith(folder + "/")), key=len)
    found = []
    for line, name in imported_names(source):
        standard = name.partition(".")[0] in sys.stdlib_module_names
        allowed = any(name == module or name.startswith(module + ".") for module in ALLOWED[layer])
        if not (standard or allowed):
            found.append(f"{relative}:{line}: {name}")
    return found


@pytest.mark.parametrize("folder", ["ir", "backends"])
def test_every_import_respects_the_layers(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    found = [item for file in files for item in violations(file.relative_to(ROOT).as_posix(), file.read_text("utf-8"))]
    assert found == []


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("ir/core.py", "import scipy.special"),
        ("ir/core.py", "import srcgrad"),
        ("ir/core.py", "import srcgrad.backends.numpy"),
        ("ir/core.py", "from srcgrad import grad"),
        ("ir/core.py", "from srcgrad import ir, tracing"),
        ("ir/ops/linalg.py", "from srcgrad.backends import base"),
        ("ir/core.py", "from ..backends import base"),
        ("ir/core.py", "def f():\n    from srcgrad.api import grad"),
        ("ir/core.py", "if TYPE_CHECKING:\n    from srcgrad.tracing.tracer import Tracer"),
        ("ir/core.py", "module = importlib.import_module('srcgrad.backends.numpy')"),
        ("ir/core.py", "module = __import__(f'srcgrad.backends.{name}')"),
        ("backends/base.py", "import srcgrad.api"),
        ("backends/base.py", "import llvmlite"),
        ("backends/base.py", "import jax.numpy as jnp"),
        ("backends/numpy/emit.py", "from srcgrad.errors import TracingError"),
        ("backends/xla/emit.py", "import llvmlite"),
    ],
)
def test_a_planted_import_is_found(file: str, line: str) -> None:
    assert violations(file, line) != []


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("ir/core.py", "import math\nimport numpy as np\nfrom numpy.typing import NDArray"),
        ("ir/core.py", "from srcgrad.ir import types\nfrom srcgrad import ir\nimport srcgrad.ir.core"),
        ("backends/base.py", "module = importlib.import_module(f'srcgrad.backends.{name}')"),
        ("backends/numpy/emit.py", "import scipy.linalg\nfrom srcgrad.backends.base import compile"),
        ("backends/llvm/emit.py", "import llvmlite.ir"),
        ("backends/xla/emit.py", "from jax import lax"),
    ],
)
def test_a_legal_import_is_not_reported(file: str, line: str) -> None:
    assert violations(file, line) == []
