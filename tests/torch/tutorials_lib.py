"""Tutorial scripts, run on a module called ``torch``: what they print.

``python tests/torch/tutorials_lib.py`` records what they print with PyTorch; it needs PyTorch, the tests do not.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SCRIPTS = sorted((HERE / "tutorials").glob("*.py"))
NEGATIVE_ZERO = re.compile(r"-(0\.0*)(?![0-9])")
"""Structural zeros are +0 here and products with -1 there."""
RECORD = HERE / "recorded" / "tutorials.json"


@contextlib.contextmanager
def named_torch(torch: Any) -> Iterator[None]:
    """``import torch.x`` in a script finds the module's own parts."""
    if torch.__name__ == "torch":
        yield
        return
    import srcgrad.torch.autograd.forward_ad
    import srcgrad.torch.autograd.functional
    import srcgrad.torch.utils.checkpoint
    import srcgrad.torch.utils.data  # noqa: F401

    kept = {name: module for name, module in sys.modules.items() if name == "torch" or name.startswith("torch.")}
    for name in kept:
        del sys.modules[name]
    for name in list(sys.modules):
        if name == torch.__name__ or name.startswith(torch.__name__ + "."):
            sys.modules["torch" + name[len(torch.__name__) :]] = sys.modules[name]
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name == "torch" or name.startswith("torch.")]:
            del sys.modules[name]
        sys.modules.update(kept)


def printed(script: Path, torch: Any) -> str:
    """What a script prints."""
    found = io.StringIO()
    code = compile(script.read_text(), str(script), "exec")
    with contextlib.redirect_stdout(found), named_torch(torch):
        exec(code, {"torch": torch, "__name__": "tutorial"})
    return NEGATIVE_ZERO.sub(r" \1", found.getvalue())


def main() -> None:
    torch = importlib.import_module("torch")
    wanted = sys.argv[1:]
    known = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    known |= {s.stem: printed(s, torch) for s in SCRIPTS if not wanted or s.stem in wanted}
    RECORD.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
