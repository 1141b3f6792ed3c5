"""Bags of rows, poolings of three dimensions and of powers, images resized, and images read at the places of a grid."""

from __future__ import annotations

from typing import Any

from tests.torch.facts import Case

F = "torch.nn.functional"
CASES: list[Case] = []


def add(name: str, code: str, /, second: bool = True, grad: bool = True, **inputs: Any) -> None:
    CASES.append(Case(name, code.replace("F.", f"{F}."), inputs, grad=grad, second=second))


# --- poolings -----------------------------------------------------------------------------------------
VOLUME = (1, 2, 4, 3, 5)
for more in ("2", "(2, 1, 3)", "2, stride=1, padding=1", "2, ceil_mode=True"):
    add(f"max_pool3d {more}", f"F.max_pool3d(a, {more})", a=VOLUME, second=False)
    add(f"avg_pool3d {more}", f"F.avg_pool3d(a, {more})", a=VOLUME)
add("max_pool3d dilated", "F.max_pool3d(a, 2, dilation=(2, 1, 2))", a=VOLUME, second=False)
add("max_pool3d indices", "F.max_pool3d(a, 2, return_indices=True)", a=VOLUME, second=False)
add("max_pool3d unbatched", "F.max_pool3d(a, 2)", a=VOLUME[1:], second=False)
add("avg_pool3d divisor", "F.avg_pool3d(a, 2, padding=1, divisor_override=3)", a=VOLUME)
add("avg_pool3d without border", "F.avg_pool3d(a, 2, padding=1, count_include_pad=False)", a=VOLUME)
for size in ("2", "(3, None, 2)", "1"):
    add(f"adaptive_avg_pool3d {size}", f"F.adaptive_avg_pool3d(a, {size})", a=VOLUME)
    add(f"adaptive_max_pool3d {size}", f"F.adaptive_max_pool3d(a, {size}, True)", a=VOLUME, second=False)
add("lp_pool1d", "F.lp_pool1d(a, 2, 3)", a=(1, 2, 7))
add("lp_pool2d", "F.lp_pool2d(a, 3.0, (2, 1), stride=1)", a=((1, 2, 4, 3), "positive"))
add("lp_pool3d", "F.lp_pool3d(a, 2, 2, ceil_mode=True)", a=VOLUME)
for made, shape in (
    ("MaxPool3d(2)", VOLUME), ("AvgPool3d(2, padding=1)", VOLUME), ("AdaptiveAvgPool3d((2, 1, None))", VOLUME),
    ("AdaptiveMaxPool3d(2)", VOLUME), ("LPPool1d(2, 2)", (1, 2, 4)), ("LPPool2d(2, 2)", (1, 2, 4, 4)),
    ("LPPool3d(2, 2)", VOLUME),
):  # fmt: skip
    add(made, f"torch.nn.{made}(a)", a=shape, second=False)
    CASES.append(Case(f"text of {made}", f"torch.nn.{made}", text=True))
add("avg_pool2d of empty stride", "F.avg_pool2d(a, 2, ())", a=(1, 1, 4, 4))

for rest, more in (("", ""), (", reduction='none'", " each"), (", p=2", " squared")):
    add(
        f"multi_margin_loss of a vector{more}", f"F.multi_margin_loss(a, torch.tensor([1]){rest})", second=False, a=(4,)
    )
    code = f"F.multi_margin_loss(a, torch.tensor(1){rest})"
    add(f"multi_margin_loss of a vector and a number{more}", code, second=False, a=(4,))

# --- sizes --------------------------------------------------------------------------------------------
for align in (True, False):
    for size in ("(3, 2)", "(5, 7)", "1"):
        add(f"bicubic to {size} {align}", f"F.interpolate(a, {size}, mode='bicubic', align_corners={align})",
            a=(1, 2, 4, 3))  # fmt: skip
add("bicubic by factors", "F.interpolate(a, scale_factor=(1.7, 0.6), mode='bicubic')", a=(1, 2, 4, 5))
add("bicubic of 3D", "F.interpolate(a, 4, mode='bicubic')", a=(1, 2, 3))
for shape in ((1, 2, 5), (1, 2, 4, 5), VOLUME):
    add(f"area of {shape}", "F.interpolate(a, 3, mode='area')", a=shape)
BYTES = """b = (n * 20 + 100).to(torch.uint8)
found = F.interpolate(b, (5, 4), mode='bilinear')
error = found.float() - F.interpolate(b.float(), (5, 4), mode='bilinear')
result = [found.dtype == b.dtype, bool(error.abs().max() <= 1)]"""  # PyTorch rounds after each dimension
add("bilinear of bytes", BYTES, n=((1, 1, 2, 3), "int"))
add("bilinear of integers", "F.interpolate(n, (5, 4), mode='bilinear')", n=((1, 1, 2, 3), "int"))
add("replicate of what is cut off", "F.pad(a, (5, -4), mode='replicate')", a=(1, 2, 4))

# --- grids --------------------------------------------------------------------------------------------
for align in (True, False):
    add(f"affine_grid {align}", f"F.affine_grid(t, (2, 1, 3, 4), align_corners={align})", t=(2, 2, 3))
    add(f"affine_grid of volumes {align}", f"F.affine_grid(t, (1, 1, 2, 3, 1), align_corners={align})", t=(1, 3, 4))
    for padding in ("zeros", "border", "reflection"):
        for mode in ("bilinear", "nearest", "bicubic"):
            add(f"grid_sample {mode} {padding} {align}",
                f"F.grid_sample(a, g, mode='{mode}', padding_mode='{padding}', align_corners={align})",
                a=(2, 2, 3, 4), g=(2, 2, 3, 2), second=mode == "bilinear")  # fmt: skip
        add(f"grid_sample of volumes {padding} {align}",
            f"F.grid_sample(a, g, padding_mode='{padding}', align_corners={align})", a=(1, 2, 2, 3, 2),
            g=(1, 1, 2, 3, 3))  # fmt: skip
add("spatial transformer", "F.grid_sample(a, F.affine_grid(t, a.shape, False), align_corners=False)", a=(1, 1, 4, 4),
    t=((1, 2, 3), "unit"))  # fmt: skip
for name, code in {
    "grid_sample of a mode": "F.grid_sample(a, g, mode='cubic')",
    "grid_sample of a border": "F.grid_sample(a, g, padding_mode='wrap')",
    "grid_sample of other batches": "F.grid_sample(a, g[:1])",
    "grid_sample of two dtypes": "F.grid_sample(a, g.float())",
    "affine_grid of 3D": "F.affine_grid(g[0, 0], (2, 1, 3))",
    "affine_grid of other maps": "F.affine_grid(g[0], (2, 1, 3, 4))",
}.items():
    add(name, code, a=(2, 2, 3, 4), g=(2, 2, 3, 2))

# --- bags of rows -------------------------------------------------------------------------------------
BAGS = "i = torch.tensor([[0, 2, 2], [3, 1, 0]])\nj = i.reshape(-1)\no = torch.tensor([0, 2, 2])\nresult = "
for mode in ("sum", "mean", "max"):
    for name, code in {
        "": "F.embedding_bag(i, w, mode=M)",
        " with offsets": "F.embedding_bag(j, w, o, mode=M)",
        " with the last offset": "F.embedding_bag(j, w, torch.tensor([0, 4, 6]), mode=M, include_last_offset=True)",
        " with padding": "F.embedding_bag(i, w, mode=M, padding_idx=2)",
    }.items():
        add(f"embedding_bag {mode}{name}", BAGS + code.replace("M", f"'{mode}'") + " * 1", second=False, w=(4, 3))
add("embedding_bag weighted", BAGS + "F.embedding_bag(i, w, mode='sum', per_sample_weights=p) * 1", second=False,
    w=(4, 3), p=(2, 3))  # fmt: skip
for name, code in {
    "without offsets": "F.embedding_bag(j, w)",
    "with too many offsets": "F.embedding_bag(i, w, o)",
    "of another mode": "F.embedding_bag(i, w, mode='min')",
}.items():
    add(f"embedding_bag {name}", BAGS + code, w=(4, 3))
for made in ("EmbeddingBag(4, 3)", "EmbeddingBag(4, 3, mode='max', padding_idx=1)"):
    CASES.append(Case(f"text of {made}", f"torch.nn.{made}", text=True))
BAG = "m = torch.nn.EmbeddingBag(4, 3, _weight=w.detach())\nresult = m(torch.tensor([[0, 1], [2, 2]])) * 1"
add("EmbeddingBag", BAG, grad=False, second=False, w=(4, 3))
