"""Which of PyTorch's public names the facade has: the tables of docs/torch.md.

    python benchmarks/torch_page.py [--write]
    python benchmarks/torch_page.py --record

With ``--write`` the tables are put into docs/torch.md, between the markers. ``--record`` writes PyTorch's names into
``tests/torch/recorded/names.json``; it needs PyTorch, the rest does not.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
import textwrap
import types
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # a checkout that is not installed measures itself

PAGE = ROOT / "docs" / "torch.md"
RECORD = ROOT / "tests" / "torch" / "recorded" / "names.json"
START, END = "<!-- counted -->", "<!-- end of what was counted -->"
NAMESPACES = (
    "torch",
    "Tensor",
    "nn",
    "nn.functional",
    "nn.init",
    "nn.utils",
    "optim",
    "optim.lr_scheduler",
    "autograd",
    "autograd.functional",
    "func",
    "linalg",
    "fft",
    "special",
    "distributions",
    "utils.data",
)
ELSEWHERE = re.compile(
    r"cudnn|miopen|mkldnn|fbgemm|quant|sparse|^sym_|^Sym|[sS]torage|vulkan|nested|compile|^cuda|^xpu|^mtia|^ipu|^hpu|^get_device"
    r"|^jit|^script|[dD]istributed|^q_|_q$|^qscheme|^q?u?int\dx?\d?$|^qu?int|^bits|^float[48]_|^int_repr|^fake_|onnx|autocast"
    r"|GradScaler|coalesce|(row|col)_indices|deterministic|^named|^rename|names$|^refine|^align_|is_(cpu|cuda|meta|mps|maia|xla)"
    r"|is_(xpu|mkldnn|ipu|mtia|pinned|shared|warn_always)|pin_memory|share_memory|record_stream|thread|DataPipe|datapipe"
    r"|bfloat16|BFloat16|chalf|complex32|padded|vital|^fork$|^wait$|^import_ir|^parse_|^merge_type|^unify_type|Lazy"
    r"|Uninitialized|ParamSpec|_copy$|^native_|^batch_norm_\w|^unsafe_|^set_warn|flush_denormal|float32_matmul|torch_function"
    r"|^(saddmm|smm|spmm|sspaddmm|hsmm|hspmm|dsmm|AVG|SUM|cond|from_file|hash_tensor|slice_inverse|debug_unwrap|indices|values)$"
    r"|^(assert_int_or_pair|boolean_dispatch|factory_kwargs|skip_init|swap_in\w*|variable|grad_dtype|const_data_ptr|module_load)$"
    r"|^(volatile|reinforce|storage_type|eig|symeig|solve|lstsq|to_dense|dense_dim|DataChunk|Scaling\w*|Swizzle\w*|as_subclass)$"
    r"|runtime_validation|argument_validation|fuse_|memory_format$|DataParallel|SyncBatchNorm|grouped_mm|scaled_mm|typename"
)
"""Other devices, quantisation, sparse and named tensors, storages, compilers, names that are PyTorch's own."""

CLASSES = re.compile(
    r"Tensor$|^(Generator|Size|device|dtype|layout|memory_format|[fi]info|\w*_grad|\w*_enabled|inference_mode)$"
)
"""The classes of the module itself; the others belong to its compiler."""


def part(torch: Any, namespace: str) -> Any:
    found = torch
    for name in () if namespace == "torch" else namespace.split("."):
        found = getattr(found, name)
    return found


def is_public(module: Any, namespace: str, name: str) -> bool:
    """Whether a name is PyTorch's own and meant for users."""
    value = getattr(module, name)
    if name.startswith("_") or isinstance(value, types.ModuleType) or ELSEWHERE.search(name):
        return False
    if namespace == "Tensor":
        return True
    home = getattr(value, "__module__", None) or "torch"
    if not str(home).startswith("torch") or (inspect.isclass(value) and home.startswith("torch._C")):
        return False
    if namespace == "torch" and inspect.isclass(value):
        return bool(CLASSES.search(name))
    return callable(value) or type(value).__module__ == "torch"


def recorded_names() -> dict[str, list[str]]:
    """PyTorch's public names by namespace."""
    torch = importlib.import_module("torch")
    found = {}
    for namespace in NAMESPACES:
        module = part(torch, namespace)
        names = torch.__all__ if namespace == "torch" else getattr(module, "__all__", None) or dir(module)
        extra = [name for name in dir(torch) if namespace == "torch" and isinstance(getattr(torch, name), torch.dtype)]
        found[namespace] = sorted({name for name in [*names, *extra] if is_public(module, namespace, name)})
    return found


def missing(names: dict[str, list[str]]) -> dict[str, list[str]]:
    """Of each namespace, the names that the facade lacks."""
    facade = importlib.import_module("srcgrad.torch")
    return {space: [name for name in listed if not has(facade, space, name)] for space, listed in names.items()}


def has(facade: Any, namespace: str, name: str) -> bool:
    try:
        return hasattr(part(facade, namespace), name)
    except AttributeError:
        return False


def table(names: dict[str, list[str]]) -> list[str]:
    """The lines between the markers."""
    lacking = missing(names)
    lines = ["| namespace | names in PyTorch | of them here |", "|--|--|--|"]
    for space, listed in names.items():
        lines.append(f"| `{space}` | {len(listed)} | {len(listed) - len(lacking[space])} |")
    for space, absent in lacking.items():
        if absent:
            text = f"Not in `{space}`: " + ", ".join(f"`{name}`" for name in absent) + "."
            lines += ["", *textwrap.wrap(text, 160, break_long_words=False, break_on_hyphens=False)]
    return lines


def write(lines: list[str]) -> None:
    """Put the tables between the markers of docs/torch.md."""
    page = PAGE.read_text("utf-8")
    before, _, rest = page.partition(START)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{START}\n{chr(10).join(lines)}\n{END}{after}", "utf-8")


def main() -> None:
    if sys.argv[1:] == ["--record"]:
        lines = ",\n".join(f"{json.dumps(space)}: {json.dumps(found)}" for space, found in recorded_names().items())
        RECORD.write_text(f"{{\n{lines}\n}}\n", "utf-8")
        return
    lines = table(json.loads(RECORD.read_text("utf-8")))
    if sys.argv[1:] == ["--write"]:
        write(lines)
    else:
        print("\n".join(lines))


if __name__ == "__main__":
    main()
