"""Short programs run on either module: what they print, line by line.

A test module lists them in ``SESSIONS``: name to code. ``python tests/torch/sessions.py AREA ...`` records what PyTorch
prints for those of ``tests/torch/test_AREA.py`` into ``tests/torch/recorded/sessions/AREA.json``; it needs PyTorch, the
tests do not. Besides ``torch`` and ``np`` the code sees `raised` and `warned`.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import json
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
RECORDS = HERE / "recorded" / "sessions"


def sentence(text: str) -> str:
    """The first sentence of a message."""
    line = text.strip().splitlines()[0] if text.strip() else ""
    return re.split(r"(?<=[a-z)`'])\.(?=\s|$)", line)[0]


def raised(call: Callable[[], Any]) -> str:
    """The class (of Python's own) and the first sentence of what a call raises."""
    try:
        found = call()
    except Exception as error:
        kind = next(k for k in type(error).__mro__ if k.__module__ == "builtins" and k is not Exception)
        return f"{kind.__name__}: {sentence(getattr(error, 'message', None) or str(error))}"
    return f"no error: {found}"


def warned(call: Callable[[], Any]) -> list[str]:
    """The classes and first sentences of what a call warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [f"{one.category.__name__}: {sentence(str(one.message))}" for one in caught]


def printed(code: str, torch: Any) -> str:
    """What the code prints."""
    name = torch.__name__
    scope = {
        "__name__": "session",
        "torch": torch,
        "np": np,
        "raised": raised,
        "warned": warned,
        "load": lambda part: importlib.import_module(f"{name}.{part}"),
    }
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(code, "<session>", "exec"), scope)
    return re.sub(r"0x[0-9a-f]+", "0x", out.getvalue())


def recorded(area: str) -> dict[str, str]:
    found: dict[str, str] = json.loads((RECORDS / f"{area}.json").read_text())
    return found


def sessions_of(area: str) -> dict[str, str]:
    """The ``SESSIONS`` of a test module, read without importing it."""
    tree = ast.parse((HERE / f"test_{area}.py").read_text())
    for node in tree.body:
        target = node.target if isinstance(node, ast.AnnAssign) else None
        if isinstance(target, ast.Name) and target.id == "SESSIONS":
            found: dict[str, str] = ast.literal_eval(node.value)  # type: ignore[arg-type]
            return found
    raise LookupError(area)


def main() -> None:
    sys.path.insert(0, str(HERE.parent.parent))
    import torch

    RECORDS.mkdir(parents=True, exist_ok=True)
    for area in sys.argv[1:]:
        facts = {}
        for name, code in sessions_of(area).items():
            try:
                facts[name] = printed(code, torch)
            except Exception as error:
                raise RuntimeError(f"{area}: {name}") from error
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(fact)}" for name, fact in facts.items())
        (RECORDS / f"{area}.json").write_text(f"{{\n{lines}\n}}\n")
        print(area, len(facts))


if __name__ == "__main__":
    main()
