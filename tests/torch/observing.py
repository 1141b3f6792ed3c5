"""Small scenes in which a module called ``torch`` acts: what PyTorch gave is recorded, the facade is asked.

``python tests/torch/observing.py AREA ...`` records the scenes of ``tests/torch/scenes/AREA.py`` into
``tests/torch/recorded/AREA.json``; it needs PyTorch, the tests do not.
"""

from __future__ import annotations

import importlib
import json
import math
import re
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
Scene = Callable[[Any], Any]


def scenes(area: str) -> dict[str, Scene]:
    """The scenes of an area: each takes the module and returns what it saw."""
    sys.path.insert(0, str(HERE.parent.parent))
    found: dict[str, Scene] = importlib.import_module(f"tests.torch.scenes.{area}").SCENES
    return found


def plain(x: Any) -> Any:
    """What was seen, as JSON."""
    if hasattr(x, "detach"):
        array = np.asarray(x.detach())
        values = np.stack([array.real, array.imag], -1) if array.dtype.kind == "c" else array
        return {"dtype": str(x.dtype), "shape": list(array.shape), "values": plain(values.tolist())}
    if isinstance(x, Mapping):
        return {str(key): plain(value) for key, value in x.items()}
    if isinstance(x, (list, tuple)):
        return [plain(item) for item in x]
    if isinstance(x, float) and not math.isfinite(x):
        return str(x)
    return x if x is None or isinstance(x, (bool, int, float, str)) else str(x)


def outcome(action: Callable[[], Any]) -> Any:
    """What an action gives, or the class and the first sentence of what it raises."""
    try:
        return plain(action())
    except Exception as error:
        kind = next(k for k in type(error).__mro__ if k.__module__ == "builtins")
        text = str(error).strip("'\"").replace("\\n", "\n")
        return [kind.__name__, text.splitlines()[0] if text else ""]


def warned(action: Callable[[], Any]) -> list[str]:
    """The classes and first sentences of the warnings of an action."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        action()
    return [f"{w.category.__name__}: {re.split(r'[.;] ', str(w.message))[0].rstrip('.')}" for w in found]


def seen(scene: Scene, torch: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return plain(scene(torch))


def difference(ours: Any, theirs: Any, rtol: float, where: str = "") -> str | None:
    """The first place where two outcomes differ; numbers to a relative tolerance (and of the largest in a list)."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        if set(ours) != set(theirs):
            return f"{where}: keys {sorted(ours)}, theirs {sorted(theirs)}"
        pairs = [(ours[key], theirs[key], f"{where}.{key}") for key in theirs]
    elif isinstance(theirs, list) and isinstance(ours, list) and len(ours) == len(theirs):
        if theirs and all(isinstance(x, float) for x in [*ours, *theirs]):
            scale = max(map(abs, theirs))
            bad = [k for k, (a, b) in enumerate(zip(ours, theirs, strict=True)) if not abs(a - b) <= rtol * scale]
            return f"{where}[{bad[0]}]: {ours}, theirs {theirs}" if bad else None
        pairs = [(a, b, f"{where}[{k}]") for k, (a, b) in enumerate(zip(ours, theirs, strict=True))]
    elif isinstance(theirs, float) and isinstance(ours, (int, float)):
        return None if abs(ours - theirs) <= rtol * abs(theirs) else f"{where}: {ours!r}, theirs {theirs!r}"
    else:
        return None if ours == theirs else f"{where}: {ours!r}, theirs {theirs!r}"
    return next((found for a, b, place in pairs if (found := difference(a, b, rtol, place))), None)


def recorded(area: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HERE / "recorded" / f"{area}.json").read_text())
    return found


def rounded(x: Any) -> Any:
    """A record with as many digits as are compared, so that it stays small."""
    if isinstance(x, float):
        return float(f"{x:.15g}")
    if isinstance(x, dict):
        return {key: rounded(value) for key, value in x.items()}
    return [rounded(item) for item in x] if isinstance(x, list) else x


def main() -> None:
    import torch

    for area in sys.argv[1:]:
        facts = {name: rounded(seen(scene, torch)) for name, scene in scenes(area).items()}
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(fact)}" for name, fact in facts.items())
        (HERE / "recorded" / f"{area}.json").write_text(f"{{\n{lines}\n}}\n")
        print(area, len(facts))


if __name__ == "__main__":
    main()
