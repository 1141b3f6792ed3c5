"""`torch.nn.functional`: every function, with its kinks, reductions and refusals."""

from __future__ import annotations

from typing import Any

from tests.torch.facts import Case

F = "torch.nn.functional"
KINKS = [-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 6.0, -7.0, 30.0]
CASES: list[Case] = []


def add(name: str, code: str, /, second: bool = True, grad: bool = True, rtol: float = 1e-9, **inputs: Any) -> None:
    CASES.append(Case(name, code.replace("F.", f"{F}."), inputs, grad=grad, second=second, rtol=rtol))


# --- activations --------------------------------------------------------------------------------------
ACTIVATIONS = {
    "relu": "", "relu6": "", "leaky_relu": "0.2", "elu": "1.5", "celu": "0.5", "selu": "", "hardtanh": "-0.5, 2.0",
    "hardsigmoid": "", "hardswish": "", "threshold": "0.5, 2.0", "softshrink": "0.5", "hardshrink": "0.5",
    "softplus": "", "softsign": "", "tanhshrink": "", "silu": "", "mish": "", "logsigmoid": "", "gelu": "",
    "sigmoid": "", "tanh": "",
}  # fmt: skip
IN_PLACE = ("relu", "leaky_relu", "elu", "celu", "selu", "hardtanh", "threshold")
for name, more in ACTIVATIONS.items():
    tail = f", {more}" if more else ""
    second, rtol = name != "hardsigmoid", 1e-7 if name == "hardsigmoid" else 1e-9  # PyTorch's 1/6 is of float32
    add(name, f"F.{name}(a{tail})", a=(2, 3), second=second, rtol=rtol)
    add(f"{name} at kinks", f"F.{name}(a{tail})", a=KINKS, second=False, rtol=rtol)
    add(f"{name} of 0-d", f"F.{name}(a{tail})", a=(), second=second, rtol=rtol)
    add(f"{name} of nothing", f"F.{name}(a{tail})", a=(0, 2), second=False)
    add(f"{name} of float32", f"F.{name}(a.float(){tail})", a=(3,), second=False, rtol=2e-6)
    add(f"{name} of half", f"F.{name}(a.half(){tail})", a=(3,), grad=False)
    special = [float("inf"), float("nan")] + [float("-inf")] * (name != "hardswish")  # it is nan there in PyTorch
    add(f"{name} of special", f"F.{name}(a{tail})", a=special, grad=False)
    if name in IN_PLACE:
        add(f"{name}_", f"y = a * 1\nresult = F.{name}_(y{tail})", a=(3,))
        add(f"{name} inplace", f"y = a * 1\nF.{name}(y{tail}, inplace=True)\nresult = y", a=(3,))
for name in ("silu", "mish", "hardsigmoid", "hardswish", "relu6"):
    add(f"{name} inplace", f"y = a * 1\nresult = F.{name}(y, inplace=True)", a=(3,), second=False, rtol=1e-7)
for name in ("elu", "gelu", "softplus", "hardtanh", "logsigmoid", "silu"):
    add(f"{name} of ints", f"F.{name}(n)", n=((2,), "int"))
add("softplus of factor", "F.softplus(a, 2.0, 3.0)", a=(2, 3))
add("softplus of large", "F.softplus(a)", a=[-800.0, -30.0, 19.0, 21.0, 800.0], second=False)
add("gelu tanh", "F.gelu(a, approximate='tanh')", a=(2, 3))
add("gelu wrong", "F.gelu(a, approximate='x')", a=(2, 3))
add("relu of ints", "F.relu(n)", n=((3,), "int"))
add("softshrink negative", "F.softshrink(a, -1.0)", a=(2,))
add("hardtanh wrong", "F.hardtanh(a, 2.0, 1.0)", a=(2,))
add("glu", "F.glu(a)", a=(2, 4))
add("glu of dim", "F.glu(a, 0)", a=(2, 3))
add("glu odd", "F.glu(a)", a=(2, 3))
add("glu of 0-d", "F.glu(a)", a=())
for shape, count in (((2, 3), 1), ((2, 3), 3), ((2, 3, 2), 3), ((4,), 1), ((2, 3), 2)):
    add(f"prelu of {shape} by {count}", "F.prelu(a, w)", a=shape, w=((count,), "unit"))
add("prelu at 0", "F.prelu(a, w)", a=[0.0, -1.0], w=[0.5], second=False)
add("rrelu", "F.rrelu(a, 0.1, 0.3)", a=(2, 3))
for name in ("softmax", "log_softmax", "softmin"):
    add(name, f"F.{name}(a, dim=1)", a=(2, 3))
    add(f"{name} of dtype", f"F.{name}(a, dim=-1, dtype=torch.float32)", a=(2, 3), second=False, rtol=2e-6)
    add(f"{name} of dim out of range", f"F.{name}(a, dim=2)", a=(2, 3))

# --- linear -------------------------------------------------------------------------------------------
for shape in ((4,), (2, 4), (2, 3, 4), (2, 1, 2, 4), (0, 4)):
    add(f"linear of {shape}", "F.linear(a, w, b)", a=shape, w=(3, 4), b=(3,), second=shape != (0, 4))
    add(f"linear of {shape} without bias", "F.linear(a, w)", a=shape, w=(3, 4), second=shape != (0, 4))
for shape in ((4,), (2, 4), (2, 3, 4)):
    add(f"linear of complex {shape}", "F.linear(a, w, b)", a=(shape, "complex"), w=((3, 4), "complex"),
        b=((3,), "complex"))  # fmt: skip
add("linear of wrong sizes", "F.linear(a, w)", a=(2, 5), w=(3, 4))
add("linear of two dtypes", "F.linear(a, w.float())", a=(2, 4), w=(3, 4))
add("linear of 0-d", "F.linear(a, w)", a=(), w=(3, 4))
add("bilinear", "F.bilinear(a, b, w, c)", a=(2, 3), b=(2, 4), w=(2, 3, 4), c=(2,))
add("bilinear without bias", "F.bilinear(a, b, w)", a=(2, 1, 3), b=(2, 1, 2), w=(2, 3, 2))
add("bilinear of vectors", "F.bilinear(a, b, w, c)", a=(3,), b=(2,), w=(2, 3, 2), c=(2,))
add("bilinear wrong", "F.bilinear(a, b, w)", a=(2, 3), b=(3, 2), w=(2, 3, 2))
INDEX = [[0, 2, 2], [3, 1, 0]]
add("embedding", "F.embedding(i, w)", i=INDEX, w=(4, 3))
add("embedding with padding", "F.embedding(i, w, padding_idx=2)", i=INDEX, w=(4, 3))
add("embedding with padding from the end", "F.embedding(i, w, padding_idx=-1)", i=INDEX, w=(4, 3))
add("embedding by frequency", "F.embedding(i, w, scale_grad_by_freq=True)", i=INDEX, w=(4, 3), second=False)
add("embedding of large norms", "v = w.detach().clone()\nresult = [F.embedding(i, v, max_norm=0.5), v]", i=INDEX,
    w=(4, 3), grad=False)  # fmt: skip
add("embedding out of range", "F.embedding(i, w)", i=[4], w=(4, 3))
add("embedding of negative", "F.embedding(i, w)", i=[-1], w=(4, 3))
add("embedding of floats", "F.embedding(a, w)", a=(2,), w=(4, 3))
add("one_hot", "F.one_hot(i)", i=INDEX)
add("one_hot of classes", "F.one_hot(i, 5)", i=INDEX)
add("one_hot too few", "F.one_hot(i, 2)", i=INDEX)
add("one_hot negative", "F.one_hot(i)", i=[-1, 2])
add("one_hot empty", "F.one_hot(i.long(), 3)", i=[])
add("one_hot of floats", "F.one_hot(a)", a=(2,))

# --- losses -------------------------------------------------------------------------------------------
LOSSES: dict[str, tuple[str, dict[str, Any]]] = {
    "mse_loss": ("F.mse_loss(a, b, reduction=R)", {"a": (2, 3), "b": (2, 3)}),
    "l1_loss": ("F.l1_loss(a, b, reduction=R)", {"a": (2, 3), "b": (2, 3)}),
    "smooth_l1_loss": ("F.smooth_l1_loss(a, b, reduction=R, beta=0.5)", {"a": (2, 3), "b": (2, 3)}),
    "smooth_l1_loss of beta 0": ("F.smooth_l1_loss(a, b, reduction=R, beta=0.0)", {"a": (2, 3), "b": (2, 3)}),
    "huber_loss": ("F.huber_loss(a, b, reduction=R, delta=0.7)", {"a": (2, 3), "b": (2, 3)}),
    "binary_cross_entropy": (
        "F.binary_cross_entropy(a.sigmoid(), b.sigmoid(), reduction=R)", {"a": (2, 3), "b": (2, 3)}),
    "binary_cross_entropy weighted": (
        "F.binary_cross_entropy(a.sigmoid(), b.sigmoid().detach(), w.detach(), reduction=R)",
        {"a": (2, 3), "b": (2, 3), "w": (3,)}),
    "binary_cross_entropy_with_logits": (
        "F.binary_cross_entropy_with_logits(a, b, reduction=R)", {"a": (2, 3), "b": (2, 3)}),
    "binary_cross_entropy_with_logits weighted": (
        "F.binary_cross_entropy_with_logits(a, b.detach(), w.detach(), pos_weight=p.detach(), reduction=R)",
        {"a": (2, 3), "b": (2, 3), "w": (3,), "p": ((3,), "positive")}),
    "kl_div": ("F.kl_div(a, b, reduction=R)", {"a": (2, 3), "b": ((2, 3), "positive")}),
    "kl_div of logarithms": ("F.kl_div(a, b, reduction=R, log_target=True)", {"a": (2, 3), "b": (2, 3)}),
    "poisson_nll_loss": ("F.poisson_nll_loss(a, b, reduction=R)", {"a": (2, 3), "b": ((2, 3), "positive")}),
    "poisson_nll_loss full": (
        "F.poisson_nll_loss(a, b.detach() * 2, log_input=False, full=True, reduction=R)",
        {"a": ((2, 3), "positive"), "b": ((2, 3), "positive")}),
    "gaussian_nll_loss": (
        "F.gaussian_nll_loss(a, b, v, reduction=R)", {"a": (2, 3), "b": (2, 3), "v": ((2, 3), "positive")}),
    "gaussian_nll_loss full": (
        "F.gaussian_nll_loss(a, b, v, full=True, reduction=R)",
        {"a": (2, 3), "b": (2, 3), "v": ((2,), "positive")}),
    "hinge_embedding_loss": (
        "F.hinge_embedding_loss(a, t, margin=0.8, reduction=R)", {"a": (2, 3), "t": [[1, -1, 1], [-1, -1, 1]]}),
    "margin_ranking_loss": (
        "F.margin_ranking_loss(a, b, t, 0.3, reduction=R)", {"a": (4,), "b": (4,), "t": [1, -1, 1, -1]}),
    "cosine_embedding_loss": (
        "F.cosine_embedding_loss(a, b, t, 0.1, reduction=R)", {"a": (4, 3), "b": (4, 3), "t": [1, -1, 1, -1]}),
    "triplet_margin_loss": (
        "F.triplet_margin_loss(a, b, c, reduction=R)", {"a": (4, 3), "b": (4, 3), "c": (4, 3)}),
    "triplet_margin_loss swapped": (
        "F.triplet_margin_loss(a, b, c, 2.0, p=3, swap=True, reduction=R)",
        {"a": (4, 3), "b": (4, 3), "c": (4, 3)}),
    "soft_margin_loss": (
        "F.soft_margin_loss(a, t.detach(), reduction=R)", {"a": (4,), "t": [1.0, -1.0, 1.0, -1.0]}),
    "multilabel_soft_margin_loss": (
        "F.multilabel_soft_margin_loss(a, t, reduction=R)", {"a": (2, 3), "t": [[0, 1, 1], [1, 0, 0]]}),
    "multi_margin_loss": ("F.multi_margin_loss(a, t, reduction=R)", {"a": (2, 3), "t": [0, 2]}),
    "multi_margin_loss squared": (
        "F.multi_margin_loss(a, t, p=2, margin=0.5, weight=w.detach(), reduction=R)",
        {"a": (2, 3), "t": [0, 2], "w": ((3,), "positive")}),
    "cross_entropy": ("F.cross_entropy(a, t, reduction=R)", {"a": (3, 4), "t": [1, 0, 3]}),
    "cross_entropy weighted": (
        "F.cross_entropy(a, t, w.detach(), reduction=R)", {"a": (3, 4), "t": [1, 0, 3], "w": ((4,), "positive")}),
    "cross_entropy ignoring": (
        "F.cross_entropy(a, t, reduction=R)", {"a": (3, 4), "t": [1, -100, 3]}),
    "cross_entropy ignoring a class": (
        "F.cross_entropy(a, t, w.detach(), ignore_index=1, reduction=R)",
        {"a": (3, 4), "t": [1, 0, 3], "w": ((4,), "positive")}),
    "cross_entropy smoothed": (
        "F.cross_entropy(a, t, label_smoothing=0.1, reduction=R)", {"a": (3, 4), "t": [1, -100, 3]}),
    "cross_entropy smoothed weighted": (
        "F.cross_entropy(a, t, w.detach(), label_smoothing=0.2, reduction=R)",
        {"a": (3, 4), "t": [1, -100, 3], "w": ((4,), "positive")}),
    "cross_entropy of probabilities": (
        "F.cross_entropy(a, t.softmax(1), reduction=R)", {"a": (3, 4), "t": (3, 4)}),
    "cross_entropy of probabilities weighted": (
        "F.cross_entropy(a, t.softmax(1).detach(), w.detach(), label_smoothing=0.1, reduction=R)",
        {"a": (3, 4), "t": (3, 4), "w": ((4,), "positive")}),
    "cross_entropy of a vector": ("F.cross_entropy(a, t[0], reduction=R)", {"a": (4,), "t": [2]}),
    "cross_entropy of sequences": (
        "F.cross_entropy(a, t, reduction=R)", {"a": (2, 3, 2), "t": [[0, 2], [1, 1]]}),
    "cross_entropy of images": (
        "F.cross_entropy(a, t, reduction=R)", {"a": (1, 3, 2, 2), "t": [[[0, 2], [1, 1]]]}),
    "nll_loss": ("F.nll_loss(a, t, reduction=R)", {"a": (3, 4), "t": [1, 0, 3]}),
    "nll_loss weighted": (
        "F.nll_loss(a, t, w.detach(), ignore_index=0, reduction=R)",
        {"a": (3, 4), "t": [1, 0, 3], "w": ((4,), "positive")}),
}  # fmt: skip
for name, (code, inputs) in LOSSES.items():
    for reduction in ("mean", "sum", "none"):
        add(f"{name} {reduction}", code.replace("R)", f"{reduction!r})").replace("R,", f"{reduction!r},"),
            second="multi_margin" not in name, **inputs)  # fmt: skip
add("mse_loss broadcast", "F.mse_loss(a, b)", a=(2, 3), b=(3,))
add("mse_loss of two dtypes", "F.mse_loss(a, b.float())", a=(2,), b=(2,), grad=False)
add("mse_loss of nothing", "F.mse_loss(a, b)", a=(0,), b=(0,), second=False)
add("mse_loss wrong", "F.mse_loss(a, b)", a=(2,), b=(3,))
add("mse_loss of no reduction", "F.mse_loss(a, b, reduction='x')", a=(2,), b=(2,))
add("smooth_l1_loss at its kink", "F.smooth_l1_loss(a, b)", a=[1.0, -1.0, 0.0], b=[0.0, 0.0, 0.0], second=False)
add("huber_loss at its kink", "F.huber_loss(a, b)", a=[1.0, -1.0, 0.0], b=[0.0, 0.0, 0.0], second=False)
add("smooth_l1_loss negative", "F.smooth_l1_loss(a, b, beta=-1.0)", a=(2,), b=(2,))
add("kl_div batchmean", "F.kl_div(a, b, reduction='batchmean')", a=(2, 3), b=((2, 3), "positive"))
add("binary_cross_entropy at the ends", "F.binary_cross_entropy(a, b.detach(), reduction='none')",
    a=[0.0, 0.0, 1.0, 1.0], b=[0.0, 1.0, 0.0, 1.0], second=False, rtol=1e-7)  # fmt: skip
add("binary_cross_entropy outside", "F.binary_cross_entropy(a, b)", a=[1.5], b=[1.0])
add("binary_cross_entropy of sizes", "F.binary_cross_entropy(a, b)", a=[0.5], b=[1.0, 0.0])
add("with_logits of large", "F.binary_cross_entropy_with_logits(a, b, reduction='none')", a=[-900.0, 900.0, 0.0],
    b=[1.0, 0.0, 1.0], second=False)  # fmt: skip
add("with_logits of sizes", "F.binary_cross_entropy_with_logits(a, b)", a=[0.5], b=[1.0, 0.0])
add("cross_entropy out of range", "F.cross_entropy(a, t)", a=(2, 3), t=[0, 3])
add("cross_entropy of sizes", "F.cross_entropy(a, t)", a=(2, 3), t=[0, 1, 2])
add("cross_entropy of float classes", "F.cross_entropy(a, t)", a=(2, 3), t=[0.0, 1.0])
add("cross_entropy of all ignored", "F.cross_entropy(a, t)", a=(2, 3), t=[-100, -100], second=False)
add("cross_entropy of large", "F.cross_entropy(a, t)", a=[[1000.0, 0.0], [-1000.0, 0.0]], t=[1, 0], second=False)
add("gaussian_nll_loss of small variance", "F.gaussian_nll_loss(a, b, v)", a=(2,), b=(2,), v=[1e-9, 1.0], second=False)
add("gaussian_nll_loss negative", "F.gaussian_nll_loss(a, b, v)", a=(2,), b=(2,), v=[-1.0, 1.0])
add("triplet_margin_loss negative", "F.triplet_margin_loss(a, a, a, margin=-1.0)", a=(2, 3))
add("cosine_embedding_loss of zeros", "F.cosine_embedding_loss(a, b, t)", a=[[0.0, 0.0]], b=[[1.0, 2.0]], t=[1],
    second=False, rtol=1e-7)  # fmt: skip

# --- distances ----------------------------------------------------------------------------------------
add("cosine_similarity", "F.cosine_similarity(a, b)", a=(2, 3), b=(2, 3))
add("cosine_similarity broadcast", "F.cosine_similarity(a, b, dim=-1)", a=(2, 3), b=(3,))
add("cosine_similarity of zeros", "F.cosine_similarity(a, b, 0)", a=[0.0, 0.0], b=[1.0, 2.0], second=False)
for p in (1.0, 2.0, 3.0, float("inf")):
    add(f"pairwise_distance of {p}", f"F.pairwise_distance(a, b, float('{p}'))", a=(2, 3), b=(2, 3), second=p != 1.0)
    add(f"normalize of {p}", f"F.normalize(a, float('{p}'))", a=(2, 3))
add("pairwise_distance keepdim", "F.pairwise_distance(a, b, keepdim=True)", a=(2, 3), b=(3,))
add("pairwise_distance of the same", "F.pairwise_distance(a, a)", a=(2, 3), second=False)
add("normalize of dim 0", "F.normalize(a, dim=0)", a=(2, 3))
add("normalize of zeros", "F.normalize(a, dim=0)", a=[0.0, 0.0], second=False)

# --- convolutions -------------------------------------------------------------------------------------
CONVOLUTIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...], str]] = {
    "conv1d": ((2, 2, 5), (3, 2, 2), ""),
    "conv1d strided": ((1, 2, 6), (1, 2, 3), "stride=2, padding=1"),
    "conv1d dilated": ((1, 1, 6), (1, 1, 2), "dilation=3"),
    "conv1d unbatched": ((2, 5), (3, 2, 2), ""),
    "conv1d same": ((1, 2, 5), (1, 2, 4), "padding='same'"),
    "conv1d same dilated": ((1, 2, 5), (1, 2, 3), "padding='same', dilation=2"),
    "conv2d": ((2, 2, 4, 3), (3, 2, 2, 2), ""),
    "conv2d strided": ((1, 2, 5, 4), (2, 2, 3, 2), "stride=(2, 1), padding=(1, 0)"),
    "conv2d dilated": ((1, 1, 5, 5), (1, 1, 2, 2), "dilation=2, padding=1"),
    "conv2d grouped": ((1, 4, 3, 3), (2, 2, 2, 2), "groups=2"),
    "conv2d depthwise": ((1, 2, 3, 3), (4, 1, 2, 2), "groups=2, stride=2"),
    "conv2d unbatched": ((2, 3, 3), (3, 2, 2, 2), ""),
    "conv2d same": ((1, 1, 4, 4), (1, 1, 3, 2), "padding='same'"),
    "conv2d valid": ((1, 1, 3, 3), (1, 1, 3, 2), "padding='valid'"),
    "conv2d of 1x1": ((1, 3, 2, 2), (2, 3, 1, 1), ""),
    "conv3d": ((1, 1, 3, 2, 3), (2, 1, 2, 1, 2), "padding=1, stride=2"),
    "conv_transpose1d": ((1, 2, 3), (2, 3, 2), "stride=2"),
    "conv_transpose2d": ((1, 2, 2, 3), (2, 2, 2, 2), ""),
    "conv_transpose2d strided": ((1, 2, 2, 2), (2, 1, 3, 2), "stride=2, padding=1, output_padding=1"),
    "conv_transpose2d grouped": ((1, 2, 2, 2), (2, 1, 2, 2), "groups=2, dilation=2"),
    "conv_transpose2d unbatched": ((2, 2, 2), (2, 1, 2, 2), ""),
    "conv_transpose3d": ((1, 1, 2, 2, 1), (1, 1, 2, 2, 2), "stride=2"),
}
for name, (image, kernel, more) in CONVOLUTIONS.items():
    function = name.split()[0]
    tail = f", {more}" if more else ""
    groups = 2 if "groups=2" in more else 1
    outputs = kernel[1] * groups if "transpose" in name else kernel[0]
    add(name, f"F.{function}(a, w, b{tail})", a=image, w=kernel, b=(outputs,), second=False)
    add(f"{name} without bias", f"F.{function}(a, w{tail})", a=image, w=kernel, second=True)
add("conv2d of float32", "F.conv2d(a.float(), w.float())", a=(1, 1, 3, 3), w=(1, 1, 2, 2), second=False, rtol=2e-6)
for image, weight, more in (((1, 2, 4, 3), (4, 1, 2, 2), "groups=2, padding=1"), ((2, 3, 3), (3, 2, 2, 2), "stride=2")):
    add(f"conv2d of complex {image}", f"F.conv2d(a, w, b, {more}) * 1", a=(image, "complex"), w=(weight, "complex"),
        b=((weight[0],), "complex"))  # fmt: skip
    back = (weight[0], *image[-2:]) if len(image) == 3 else (1, weight[0], *image[-2:])
    add(f"conv_transpose2d of complex {image}", f"F.conv_transpose2d(a, w, {more}) * 1", a=(back, "complex"),
        w=(weight, "complex"))  # fmt: skip
add("conv2d of wrong channels", "F.conv2d(a, w)", a=(1, 3, 3, 3), w=(1, 1, 2, 2))
add("conv2d too small", "F.conv2d(a, w)", a=(1, 1, 1, 3), w=(1, 1, 2, 2))
add("conv2d of wrong rank", "F.conv2d(a, w)", a=(3, 3), w=(1, 1, 2, 2))
add("conv2d same and strided", "F.conv2d(a, w, padding='same', stride=2)", a=(1, 1, 3, 3), w=(1, 1, 2, 2))
add("conv2d of two dtypes", "F.conv2d(a, w.float())", a=(1, 1, 3, 3), w=(1, 1, 2, 2))
add("conv2d of stride 0", "F.conv2d(a, w, stride=0)", a=(1, 1, 3, 3), w=(1, 1, 2, 2))
add("unfold", "F.unfold(a, 2)", a=(2, 2, 3, 3))
add("unfold strided", "F.unfold(a, (2, 1), dilation=(1, 2), padding=1, stride=2)", a=(1, 2, 4, 4))
add("unfold unbatched", "F.unfold(a, 2)", a=(1, 3, 3), second=False)
add("fold", "F.fold(a, (3, 3), 2)", a=(1, 8, 4))
add("fold strided", "F.fold(a, (4, 4), (2, 2), stride=2, padding=1)", a=(1, 4, 9))
add("fold wrong", "F.fold(a, (3, 3), 2)", a=(1, 8, 5))

# --- poolings -----------------------------------------------------------------------------------------
POOLINGS: dict[str, tuple[tuple[int, ...], str]] = {
    "max_pool1d": ((2, 2, 5), "2"),
    "max_pool1d padded": ((1, 1, 5), "3, stride=2, padding=1"),
    "max_pool2d": ((1, 2, 4, 4), "2"),
    "max_pool2d overlapping": ((1, 1, 4, 4), "3, stride=1"),
    "max_pool2d padded": ((1, 1, 4, 5), "(3, 2), stride=2, padding=1"),
    "max_pool2d dilated": ((1, 1, 5, 5), "2, stride=1, dilation=2"),
    "max_pool2d ceil": ((1, 1, 5, 5), "2, ceil_mode=True"),
    "max_pool2d unbatched": ((2, 4, 4), "2"),
    "avg_pool1d": ((2, 2, 5), "2"),
    "avg_pool2d": ((1, 2, 4, 4), "2"),
    "avg_pool2d padded": ((1, 1, 4, 5), "3, stride=2, padding=1"),
    "avg_pool2d not counting": ((1, 1, 4, 5), "3, stride=2, padding=1, count_include_pad=False"),
    "avg_pool2d ceil": ((1, 1, 5, 5), "2, ceil_mode=True"),
    "avg_pool2d ceil padded": ((1, 1, 5, 6), "3, stride=2, padding=1, ceil_mode=True"),
    "avg_pool2d divided": ((1, 1, 4, 4), "2, divisor_override=3"),
    "adaptive_avg_pool1d": ((1, 2, 5), "2"),
    "adaptive_avg_pool2d": ((1, 2, 5, 4), "(2, 3)"),
    "adaptive_avg_pool2d to one": ((1, 2, 3, 4), "1"),
    "adaptive_avg_pool2d keeping": ((1, 1, 3, 4), "(None, 2)"),
    "adaptive_max_pool1d": ((1, 2, 5), "2"),
    "adaptive_max_pool2d": ((1, 2, 5, 4), "(2, 3)"),
}
for name, (image, more) in POOLINGS.items():
    function = name.split()[0]
    add(name, f"F.{function}(a, {more})", a=image)
    if "max" in name:
        add(f"{name} with places", f"F.{function}(a, {more}, return_indices=True)", a=image, second=False)
add("max_pool2d of ties", "F.max_pool2d(a, 2)", a=[[[[1.0, 1.0], [1.0, 0.0]]]], second=False)
add("max_pool2d of nan", "F.max_pool2d(a, 2)", a=[[[[1.0, float("nan")], [2.0, 0.0]]]], second=False)
add("max_pool2d too small", "F.max_pool2d(a, 3)", a=(1, 1, 2, 2))
add("max_pool2d of too much padding", "F.max_pool2d(a, 2, padding=2)", a=(1, 1, 4, 4))
add("max_pool2d of wrong rank", "F.max_pool2d(a, 2)", a=(2, 2))

# --- borders ------------------------------------------------------------------------------------------
PADDINGS: dict[str, tuple[tuple[int, ...], str]] = {
    "constant": ((2, 3), "(1, 2)"),
    "constant of value": ((2, 3), "(1, 2, 0, 1), value=2.5"),
    "constant cutting": ((3, 4), "(-1, 1, 1, -2)"),
    "constant of 3 dims": ((1, 2, 2), "(0, 1, 1, 0, 1, 1)"),
    "reflect of 1": ((2, 3), "(1, 2), mode='reflect'"),
    "reflect of 2": ((1, 2, 3), "(1, 2, 1, 0), mode='reflect'"),
    "reflect of 2 batched": ((1, 1, 2, 3), "(1, 2, 1, 0), mode='reflect'"),
    "replicate of 1": ((1, 2, 3), "(1, 2), mode='replicate'"),
    "replicate of 2": ((1, 1, 2, 3), "(3, 2, 1, 0), mode='replicate'"),
    "reflect of 3": ((1, 1, 2, 3, 2), "(1, 1, 1, 0, 0, 1), mode='reflect'"),
    "reflect too far": ((2, 3), "(3, 0), mode='reflect'"),
    "circular too far": ((1, 2, 3), "(4, 0), mode='circular'"),
    "of an odd number": ((2, 3), "(1, 2, 3)"),
    "of too many": ((2,), "(1, 2, 3, 4)"),
    "of unknown mode": ((1, 2, 3), "(1, 2), mode='x'"),
    "reflect of no batch": ((3,), "(1, 2), mode='reflect'"),
    "cutting too much": ((3,), "(-2, -2)"),
}
for name, (shape, more) in PADDINGS.items():
    add(f"pad {name}", f"F.pad(a, {more})", a=shape)
add("pad circular of 1", "F.pad(a, (1, 2), mode='circular') * 1", a=(1, 2, 3))
add("pad circular of 2", "F.pad(a, (1, 2, 2, 0), mode='circular') * 1", a=(1, 1, 2, 3))
add("pad of ints", "F.pad(n, (1, 1), value=7)", n=((2,), "int"))
INTERPOLATIONS: dict[str, tuple[tuple[int, ...], str]] = {
    "nearest of 1": ((1, 2, 3), "scale_factor=2"),
    "nearest of 2": ((1, 1, 2, 3), "size=(3, 5)"),
    "nearest smaller": ((1, 1, 4, 5), "scale_factor=0.5"),
    "nearest of 3": ((1, 1, 2, 1, 2), "size=3"),
    "nearest-exact": ((1, 1, 3, 4), "size=(5, 3), mode='nearest-exact'"),
    "linear": ((1, 1, 3), "size=5, mode='linear'"),
    "bilinear": ((1, 1, 2, 3), "scale_factor=2, mode='bilinear'"),
    "bilinear aligned": ((1, 1, 2, 3), "size=(4, 4), mode='bilinear', align_corners=True"),
    "of no size": ((1, 1, 2), ""),
    "of both sizes": ((1, 1, 2), "size=3, scale_factor=2"),
    "aligned nearest": ((1, 1, 2), "size=3, align_corners=True"),
}
for name, (shape, more) in INTERPOLATIONS.items():
    add(f"interpolate {name}", f"F.interpolate(a, {more})", a=shape)
add("pixel_shuffle", "F.pixel_shuffle(a, 2)", a=(1, 4, 1, 2))
add("pixel_unshuffle", "F.pixel_unshuffle(a, 2)", a=(1, 1, 2, 4))

# --- normalisations -----------------------------------------------------------------------------------
add("layer_norm", "F.layer_norm(a, (3,), w, b)", a=(2, 3), w=(3,), b=(3,))
add("layer_norm of 2 dims", "F.layer_norm(a, (2, 3), w)", a=(2, 2, 3), w=(2, 3))
add("layer_norm plain", "F.layer_norm(a, (3,), eps=0.1)", a=(2, 3))
add("layer_norm wrong", "F.layer_norm(a, (4,))", a=(2, 3))
add("rms_norm", "F.rms_norm(a, (3,), w)", a=(2, 3), w=(3,))
add("rms_norm plain", "F.rms_norm(a, (2, 3), eps=0.1).sin()", a=(2, 3))
add("group_norm", "F.group_norm(a, 2, w, b)", a=(2, 4, 2), w=(4,), b=(4,))
add("group_norm plain", "F.group_norm(a, 1)", a=(2, 2, 1, 2))
add("group_norm wrong", "F.group_norm(a, 3)", a=(2, 4))
for shape in ((3, 2), (2, 2, 3), (2, 2, 1, 2)):
    add(f"batch_norm of {shape}", "F.batch_norm(a, None, None, w, b, training=True)", a=shape, w=(2,), b=(2,))
    add(f"batch_norm of {shape} fixed", "F.batch_norm(a, m.detach(), v.detach(), w, b)", a=shape, m=(2,),
        v=((2,), "positive"), w=(2,), b=(2,))  # fmt: skip
add("batch_norm moving", "m, v = torch.zeros(2).double(), torch.ones(2).double()\n"
    "result = [F.batch_norm(a, m, v, training=True, momentum=0.3), m, v]", a=(3, 2))  # fmt: skip
add("batch_norm of one", "F.batch_norm(a, None, None, training=True)", a=(1, 2))
add("batch_norm of wrong size", "F.batch_norm(a, m, m)", a=(2, 3), m=(2,))
add("instance_norm", "F.instance_norm(a, weight=w, bias=b)", a=(2, 2, 3), w=(2,), b=(2,))
add("instance_norm moving", "m, v = torch.zeros(2).double(), torch.ones(2).double()\n"
    "result = [F.instance_norm(a, m, v), m, v]", a=(2, 2, 3))  # fmt: skip
add("local_response_norm", "F.local_response_norm(a, 3, alpha=0.5)", a=(1, 4, 2))

# --- attention ----------------------------------------------------------------------------------------
add(
    "attention", "F.scaled_dot_product_attention(q, k, v)", q=(1, 2, 3, 2), k=(1, 2, 4, 2), v=(1, 2, 4, 2), second=False
)
add("attention causal", "F.scaled_dot_product_attention(q, k, v, is_causal=True)", q=(1, 1, 3, 2), k=(1, 1, 3, 2),
    v=(1, 1, 3, 2), second=False)  # fmt: skip
add("attention masked", "F.scaled_dot_product_attention(q, k, v, m)", q=(1, 1, 2, 2), k=(1, 1, 3, 2), v=(1, 1, 3, 2),
    m=[[True, False, True], [False, True, True]], second=False)  # fmt: skip
add("attention of 3 dims", "F.scaled_dot_product_attention(q, k, v, scale=0.3)", q=(1, 3, 2), k=(1, 4, 2), v=(1, 4, 3))
add("attention of both masks", "F.scaled_dot_product_attention(q, q, q, q, is_causal=True)", q=(1, 3, 3))

# --- dropout ------------------------------------------------------------------------------------------
for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"):
    shape = {"1": (2, 3, 2), "2": (2, 3, 2, 1), "3": (2, 3, 1, 2, 1)}.get(name.replace("d", "")[-1:], (2, 3))
    add(f"{name} not training", f"F.{name}(a, 0.5, training=False) * 1", a=shape)
    add(f"{name} of everything", f"F.{name}(a, 1.0, training=True)", a=shape, second=False)
    add(f"{name} of nothing", f"F.{name}(a, 0.0, training=True) * 1", a=shape)
    add(f"{name} wrong", f"F.{name}(a, 1.5)", a=shape)

# --- recurrent cells through their modules ------------------------------------------------------------
FILL = (
    "n = 0.3\nfor p in m.parameters():\n    n += 0.1\n"
    "    p.data = torch.linspace(-n, n, p.numel(), dtype=torch.float64).reshape(p.shape)\n"
)
RECURRENT: dict[str, tuple[str, tuple[int, ...]]] = {
    "RNN": ("RNN(2, 3)", (3, 2, 2)),
    "RNN relu": ("RNN(2, 3, nonlinearity='relu', bias=False)", (3, 2, 2)),
    "LSTM": ("LSTM(2, 3)", (3, 2, 2)),
    "LSTM of two layers": ("LSTM(2, 2, num_layers=2, bidirectional=True)", (2, 2, 2)),
    "LSTM batch first": ("LSTM(2, 2, batch_first=True, bias=False)", (2, 3, 2)),
    "LSTM unbatched": ("LSTM(2, 2)", (3, 2)),
    "GRU": ("GRU(2, 3)", (3, 2, 2)),
    "GRU of two layers": ("GRU(2, 2, num_layers=2, bidirectional=True, bias=False)", (2, 2, 2)),
    "GRU batch first": ("GRU(2, 2, batch_first=True)", (2, 3, 2)),
}
for name, (made, shape) in RECURRENT.items():
    code = f"m = torch.nn.{made}\n{FILL}y, h = m(x)\nh = h if isinstance(h, tuple) else (h,)\n"
    add(name, code + "result = [t * 1 for t in (y, *h)]", x=shape)
    weights = "sum((y * y).sum() + (t * t).sum() for t in h)"
    add(f"{name} weights", code + f"result = list(torch.autograd.grad({weights}, list(m.parameters())))", x=shape,
        grad=False)  # fmt: skip
for name, made in {"RNNCell": "RNNCell(2, 3)", "LSTMCell": "LSTMCell(2, 2)", "GRUCell": "GRUCell(2, 3)"}.items():
    code = f"m = torch.nn.{made}\n{FILL}h = m(x)\nh = h if isinstance(h, tuple) else (h,)\n"
    add(name, code + "result = [t * 1 for t in h]", x=(2, 2))
    add(f"{name} twice", code + "h = m(x, h if len(h) == 2 else h[0])\n"
        "result = [t * 1 for t in (h if isinstance(h, tuple) else (h,))]", x=(2,))  # fmt: skip
