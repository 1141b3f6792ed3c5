"""`torch.nn`: how modules print, what they keep, and what they compute from the same parameters."""

from __future__ import annotations

from typing import Any

from tests.torch.facts import Case

CASES: list[Case] = []

# --- text ---------------------------------------------------------------------------------------------
PRINTED = [
    "ReLU()", "ReLU(True)", "ReLU6()", "LeakyReLU(0.2)", "PReLU(3)", "ELU(0.5, True)", "CELU()", "SELU()",
    "GELU('tanh')", "SiLU()", "SiLU(True)", "Mish()", "Softplus()", "Softsign()", "Softshrink()", "Hardshrink(0.3)",
    "Hardtanh()", "Hardtanh(-2, 2, inplace=True)", "Hardsigmoid()", "Hardswish()", "Tanhshrink()", "Threshold(1, 2)",
    "Tanh()", "Sigmoid()", "LogSigmoid()", "Softmax(1)", "Softmax()", "LogSoftmax(1)", "Softmin(1)", "GLU()",
    "RReLU()", "Softmax2d()", "MSELoss()", "L1Loss()", "CrossEntropyLoss()", "CrossEntropyLoss(torch.ones(3))",
    "NLLLoss()", "BCELoss()", "BCEWithLogitsLoss(pos_weight=torch.ones(2))", "SmoothL1Loss()", "HuberLoss()",
    "KLDivLoss()", "PoissonNLLLoss()", "GaussianNLLLoss()", "HingeEmbeddingLoss()", "MarginRankingLoss()",
    "CosineEmbeddingLoss()", "TripletMarginLoss()", "SoftMarginLoss()", "MultiMarginLoss()", "Identity(3)", "Flatten()",
    "Unflatten(1, (2, 3))", "Linear(2, 3)", "Linear(2, 3, bias=False)", "Bilinear(1, 2, 3)", "Embedding(3, 2)",
    "Embedding(3, 2, padding_idx=-1, max_norm=1.0)", "RNN(2, 3)", "RNN(2, 3, nonlinearity='relu')",
    "LSTM(2, 3, num_layers=2, bias=False, batch_first=True, dropout=0.5, bidirectional=True)", "GRU(2, 3)",
    "RNNCell(2, 3, nonlinearity='relu')", "LSTMCell(2, 3, bias=False)", "GRUCell(2, 3)", "LayerNorm(3)",
    "LayerNorm((2, 3), elementwise_affine=False)", "RMSNorm(3)", "GroupNorm(1, 2)", "BatchNorm1d(3)",
    "BatchNorm2d(3, affine=False, momentum=None)", "InstanceNorm1d(2)",
    "InstanceNorm2d(2, affine=True, track_running_stats=True)", "LocalResponseNorm(2)", "Dropout()",
    "Dropout1d(0.2)", "Dropout2d(inplace=True)", "AlphaDropout()", "Conv1d(1, 2, 3)",
    "Conv2d(2, 4, 3, padding=1, stride=2, dilation=2, groups=2, bias=False)", "Conv2d(1, 1, (1, 2), padding='same')",
    "Conv2d(1, 1, 1, padding_mode='circular')", "ConvTranspose2d(1, 1, 2, output_padding=1, stride=2)",
    "MaxPool1d(2)", "MaxPool2d((2, 1), stride=1, padding=1)", "AvgPool1d(2)", "AvgPool2d(2)", "AdaptiveAvgPool1d(2)",
    "AdaptiveAvgPool2d((1, None))", "AdaptiveMaxPool2d(2)", "ZeroPad2d(1)", "ReflectionPad1d((1, 2))",
    "ReplicationPad2d(1)", "CircularPad2d(1)", "ConstantPad1d(1, 3.5)", "Upsample(scale_factor=2)", "Upsample(size=3)",
    "Unfold(2)", "Fold((4, 4), 2)", "PixelShuffle(2)", "CosineSimilarity()", "PairwiseDistance()",
    "MultiheadAttention(4, 2)", "TransformerEncoderLayer(4, 2, 8)", "Module()", "Sequential()", "ModuleList()",
    "ModuleDict({'a': torch.nn.ReLU(), 'b': torch.nn.Linear(1, 2)})",
    "Sequential(torch.nn.Linear(1, 2), torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh()))",
    "ModuleList([torch.nn.Linear(1, 2), torch.nn.Linear(1, 2), torch.nn.ReLU()])",
    "ModuleList([torch.nn.Sequential(torch.nn.ReLU()), torch.nn.Sequential(torch.nn.ReLU())])",
    "ParameterList([torch.zeros(2, 3), torch.nn.Parameter(torch.ones(2)), 3])",
    "ParameterDict({'a': torch.ones(1), 'b': torch.nn.Parameter(torch.tensor(1.0))})",
    "Parameter(torch.tensor([1.0, 2.0]))", "Parameter(torch.ones(1), requires_grad=False)", "Parameter()",
    "Buffer(torch.ones(2))",
]  # fmt: skip
CASES += [Case(f"text of {made}", f"torch.nn.{made}", text=True) for made in PRINTED]

# --- what is kept -------------------------------------------------------------------------------------
KEPT = [
    "Linear(2, 3)", "PReLU()", "BatchNorm1d(2)", "BatchNorm1d(2, affine=False)",
    "LSTM(2, 3, num_layers=2, bidirectional=True)", "GRU(2, 3, bias=False)", "LSTMCell(2, 3)",
    "MultiheadAttention(4, 2)",
    "MultiheadAttention(4, 2, kdim=3, add_bias_kv=True, bias=False)", "TransformerEncoderLayer(4, 2, 8)",
    "CrossEntropyLoss(torch.ones(3))", "Conv2d(2, 4, 3, groups=2)", "ConvTranspose2d(2, 4, 3)", "Embedding(3, 2)",
    "Sequential(torch.nn.Linear(1, 2), torch.nn.BatchNorm1d(2))",
]  # fmt: skip
CASES += [
    Case(f"state of {made}", f"[(k, tuple(v.shape)) for k, v in torch.nn.{made}.state_dict().items()]", text=True)
    for made in KEPT
]

# --- what they compute --------------------------------------------------------------------------------
FILL = (
    "n = 0.3\nfor p in m.parameters():\n    n += 0.1\n"
    "    p.data = torch.linspace(-n, n, p.numel(), dtype=torch.float64).reshape(p.shape)\nm = m.double()\n"
)
COMPUTED: dict[str, tuple[int, ...]] = {
    "Linear(3, 2)": (2, 3),
    "PReLU(3)": (2, 3),
    "LayerNorm(3)": (2, 3),
    "LayerNorm((2, 3), bias=False)": (2, 2, 3),
    "RMSNorm(3)": (2, 3),
    "GroupNorm(2, 4)": (2, 4, 2),
    "BatchNorm1d(3)": (4, 3),
    "BatchNorm1d(2, momentum=None)": (2, 2, 3),
    "BatchNorm2d(2, track_running_stats=False)": (2, 2, 1, 2),
    "BatchNorm1d(3).eval()": (4, 3),
    "InstanceNorm1d(2, affine=True)": (2, 2, 3),
    "InstanceNorm1d(2)": (2, 3),
    "InstanceNorm2d(2, track_running_stats=True).eval()": (1, 2, 2, 2),
    "Conv1d(2, 3, 2)": (1, 2, 4),
    "Conv2d(1, 2, 2, padding_mode='reflect', padding=1)": (1, 1, 3, 3),
    "Conv2d(1, 2, 3, padding_mode='circular', padding='same')": (1, 1, 3, 3),
    "ConvTranspose2d(2, 1, 2, stride=2)": (1, 2, 2, 2),
    "MaxPool2d(2)": (1, 1, 4, 4),
    "AvgPool2d(2, padding=1)": (1, 1, 4, 4),
    "AdaptiveAvgPool2d(2)": (1, 1, 3, 4),
    "ZeroPad2d((1, 0, 2, 1))": (1, 1, 2, 2),
    "CircularPad1d(1)": (1, 2, 3),
    "Upsample(scale_factor=2)": (1, 1, 2, 2),
    "UpsamplingBilinear2d(scale_factor=2)": (1, 1, 2, 2),
    "Unfold(2)": (1, 1, 3, 3),
    "Flatten()": (2, 2, 2),
    "Unflatten(1, (2, 2))": (2, 4),
    "Softmax2d()": (1, 2, 2, 2),
    "Dropout().eval()": (2, 3),
    "Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))": (2, 3),
    "TransformerEncoderLayer(4, 2, 3, dropout=0.0)": (2, 2, 4),
    "TransformerEncoderLayer(4, 2, 3, 0.0, 'gelu', norm_first=True, batch_first=True)": (2, 2, 4),
}
for made, shape in COMPUTED.items():
    code = f"m = torch.nn.{made}\n{FILL}y = m(x)\n"
    second = not made.startswith("TransformerEncoderLayer")
    CASES.append(Case(f"value of {made}", code + "result = y * 1", {"x": shape}, second=second))
    CASES.append(
        Case(
            f"parameters of {made}",
            code + "(y * y).sum().backward()\nresult = [p.grad for p in m.parameters()] + list(m.buffers())",
            {"x": shape},
            grad=False,
        )
    )
DECODED = {
    "TransformerDecoderLayer(4, 2, 3, 0.0)": "m(x, y)",
    "TransformerDecoderLayer(4, 2, 3, 0.0, 'gelu', norm_first=True, batch_first=True)":
        "m(x, y, torch.ones(2, 2).triu(1).bool())",
    "TransformerDecoder(torch.nn.TransformerDecoderLayer(4, 2, 3, 0.0), 2, torch.nn.LayerNorm(4))": "m(x, y)",
    "Transformer(4, 2, 1, 1, 3, 0.0, batch_first=True)":
        "m(y, x, tgt_mask=m.generate_square_subsequent_mask(2).double(), "
        "memory_key_padding_mask=torch.tensor([[False, True, False], [False, False, True]]))",
    "Transformer(4, 2, 2, 1, 3, 0.0, bias=False)": "m(y.transpose(0, 1), x.transpose(0, 1))",
    "Transformer(4, 2, 1, 1, 3)": "m(x, torch.zeros(2, 1, 4))",
    "Transformer(3, 1, 1, 1, 3)": "m(y, y)",
}  # fmt: skip
for made, call in DECODED.items():
    shapes = {"x": (2, 2, 4), "y": (2, 3, 4) if "batch_first" in made or "bias" in made else (3, 2, 4)}
    code = f"m = torch.nn.{made}\n{FILL}z = {call}\n"
    CASES.append(Case(f"value of {made}", code + "result = z * 1", shapes, second=False))
    CASES.append(
        Case(
            f"parameters of {made}",
            code + "(z * z).sum().backward()\nresult = [p.grad for p in m.parameters()]",
            shapes,
            grad=False,
        )
    )
    CASES.append(
        Case(f"state of {made}", f"[(k, tuple(v.shape)) for k, v in torch.nn.{made}.state_dict().items()]", text=True)
    )
CASES += [
    Case(f"text of {made}", f"torch.nn.{made}", text=True)
    for made in ("TransformerDecoderLayer(4, 2, 3)", "Transformer(4, 2, 1, 1, 3)")
]
ATTENTION: dict[str, str] = {
    "plain": "MultiheadAttention(4, 2)|",
    "per head": "MultiheadAttention(4, 2)|, average_attn_weights=False",
    "masked": "MultiheadAttention(4, 2)|, attn_mask=torch.ones(3, 3).triu(1).bool()",
    "padded": "MultiheadAttention(4, 2)|, key_padding_mask=torch.tensor([[False, False, True], [False, True, True]])",
    "with both masks": "MultiheadAttention(4, 2)|, attn_mask=torch.ones(3, 3).tril().double(), "
    "key_padding_mask=torch.tensor([[False, False, True], [False, True, True]])",
    "batch first": "MultiheadAttention(4, 2, batch_first=True)|",
    "with more keys": "MultiheadAttention(4, 2, add_bias_kv=True, add_zero_attn=True)|",
}
for name, text in ATTENTION.items():
    made, more = text.split("|")
    shape = (2, 3, 4) if "batch_first" in made else (3, 2, 4)
    inputs: dict[str, Any] = {"q": shape, "k": shape, "v": shape}
    code = f"m = torch.nn.{made}\n{FILL}y, w = m(q, k, v{more})\n"
    CASES.append(Case(f"attention {name}", code + "result = [y * 1, w * 1]", inputs, second=False))
    code = f"m = torch.nn.{made}\n{FILL}y, w = m(q, k, v{more})\n(y * y).sum().backward()\n"
    CASES.append(
        Case(f"attention {name} parameters", code + "result = [p.grad for p in m.parameters()]", inputs, grad=False)
    )
CASES += [
    Case("attention without weights", f"m = torch.nn.MultiheadAttention(4, 2)\n{FILL}result = m(q, q, q, "
         "need_weights=False)[0] * 1", {"q": (3, 2, 4)}, second=False),
    Case("attention of other widths", f"m = torch.nn.MultiheadAttention(4, 2, kdim=3, vdim=2)\n{FILL}"
         "result = m(q, k, v)[0] * 1", {"q": (3, 1, 4), "k": (2, 1, 3), "v": (2, 1, 2)}, second=False),
    Case("attention unbatched", f"m = torch.nn.MultiheadAttention(4, 2)\n{FILL}result = m(q, q, q)[0] * 1",
         {"q": (3, 4)}, second=False),
    Case("packed LSTM", f"m = torch.nn.LSTM(2, 3)\n{FILL}p = torch.nn.utils.rnn.pack_padded_sequence(x, [3, 2, 1])\n"
         "y, (h, c) = m(p)\ny, n = torch.nn.utils.rnn.pad_packed_sequence(y)\nresult = [y * 1, n, h * 1, c * 1]",
         {"x": (3, 3, 2)}, second=False),
    Case("packed GRU in both directions", f"m = torch.nn.GRU(2, 2, bidirectional=True, num_layers=2)\n{FILL}"
         "p = torch.nn.utils.rnn.pack_padded_sequence(x, [1, 3, 2], batch_first=True, enforce_sorted=False)\n"
         "y, h = m(p)\ny, n = torch.nn.utils.rnn.pad_packed_sequence(y, batch_first=True, padding_value=7.0)\n"
         "result = [y * 1, n, h * 1]", {"x": (3, 3, 2)}, second=False),
    Case("long LSTM", f"m = torch.nn.LSTM(1, 2)\n{FILL}y, (h, c) = m(x)\nresult = [y[-3:] * 1, h * 1, c * 1]",
         {"x": (70, 1, 1)}, second=False),
    Case("pad_sequence", "torch.nn.utils.rnn.pad_sequence([a, b], True, 5.0) * 1", {"a": (2, 2), "b": (1, 2)}),
    Case("pad_sequence on the left", "torch.nn.utils.rnn.pad_sequence([a, b], padding_side='left') * 1",
         {"a": (1,), "b": (3,)}, second=False),
    Case("pack_sequence", "[t * 1 for t in torch.nn.utils.rnn.pack_sequence([a, b])[:2]]", {"a": (2, 2), "b": (1, 2)},
         second=False),
    Case("unsorted lengths", "torch.nn.utils.rnn.pack_padded_sequence(a, [1, 2])", {"a": (2, 2)}),
    Case("batch norm of images in 1d", "torch.nn.BatchNorm1d(2)(a.float())", {"a": (1, 2, 3, 3)}),
    Case("LSTM of wrong size", "torch.nn.LSTM(2, 3)(a.float())", {"a": (3, 2, 4)}),
    Case("LSTM of wrong rank", "torch.nn.LSTM(2, 3)(a.float())", {"a": (2,)}),
    Case("LSTM of wrong state", "torch.nn.LSTM(2, 3)(a.float(), (a.float(), a.float()))", {"a": (3, 2, 2)}),
    Case("LSTMCell of wrong size", "torch.nn.LSTMCell(2, 3)(a.float())", {"a": (2, 4)}),
    Case("heads that do not divide", "torch.nn.MultiheadAttention(5, 2)"),
    Case("groups that do not divide", "torch.nn.GroupNorm(2, 3)"),
    Case("dropout of more than all", "torch.nn.Dropout(1.5)"),
    Case("convolution of unknown padding", "torch.nn.Conv2d(1, 1, 2, padding='x')"),
    Case("convolution of wrong groups", "torch.nn.Conv2d(3, 2, 2, groups=2)"),
]  # fmt: skip

# --- initial values -----------------------------------------------------------------------------------
GAINS = ["linear", "conv2d", "sigmoid", "tanh", "relu", "selu", "leaky_relu", "x"]
CASES += [Case(f"gain of {name}", f"torch.tensor(torch.nn.init.calculate_gain('{name}'))") for name in GAINS]
CASES += [
    Case("gain of a slope", "torch.tensor(torch.nn.init.calculate_gain('leaky_relu', 0.2))"),
    Case("gain of no slope", "torch.nn.init.calculate_gain('leaky_relu', 'x')"),
    Case("constant_", "torch.nn.init.constant_(torch.empty(2, 2), 0.5)"),
    Case("ones_ of a parameter", "torch.nn.init.ones_(torch.nn.Parameter(torch.zeros(2)))"),
    Case("eye_", "torch.nn.init.eye_(torch.empty(2, 3))"),
    Case("eye_ of a vector", "torch.nn.init.eye_(torch.empty(2))"),
    Case("dirac_", "torch.nn.init.dirac_(torch.empty(4, 1, 3), 2)"),
    Case("dirac_ of images", "torch.nn.init.dirac_(torch.empty(2, 3, 2, 3))"),
    Case("dirac_ of a matrix", "torch.nn.init.dirac_(torch.empty(2, 3))"),
    Case("fans of a vector", "torch.nn.init.xavier_uniform_(torch.empty(2))"),
    Case("unknown fan", "torch.nn.init.kaiming_normal_(torch.empty(2, 2), mode='x')"),
    Case("orthogonal_ of a vector", "torch.nn.init.orthogonal_(torch.empty(2))"),
    Case("sparse_ of a vector", "torch.nn.init.sparse_(torch.empty(2), 0.5)"),
]

# --- gradients clipped, parameters as vectors ---------------------------------------------------------
MADE = "a = torch.nn.Parameter(a)\nb = torch.nn.Parameter(b)\n(3 * (a * a).sum() + (b * b).sum()).backward()\n"
for order in ("1.0", "2.0", "float('inf')", "0.5"):
    CASES.append(
        Case(
            f"clip_grad_norm_ of {order}",
            MADE + f"n = torch.nn.utils.clip_grad_norm_([a, b], 1.0, {order})\nresult = [n, a.grad, b.grad]",
            {"a": (2, 2), "b": (3,)},
            grad=False,
        )
    )
CASES += [
    Case("clip_grad_norm_ not needed", MADE + "n = torch.nn.utils.clip_grad_norm_(a, 1e3)\nresult = [n, a.grad]",
         {"a": (2,), "b": (3,)}, grad=False),
    Case("clip_grad_norm_ of nan", MADE + "a.grad[0] = float('nan')\n"
         "result = torch.nn.utils.clip_grad_norm_([a], 1.0, error_if_nonfinite=True)", {"a": (2,), "b": (3,)},
         grad=False),
    Case("clip_grad_value_", MADE + "torch.nn.utils.clip_grad_value_([a, b], 0.3)\nresult = [a.grad, b.grad]",
         {"a": (2, 2), "b": (3,)}, grad=False),
    Case("get_total_norm", "torch.nn.utils.get_total_norm([a, b])", {"a": (2, 2), "b": (3,)}, grad=False),
    Case("parameters_to_vector", "torch.nn.utils.parameters_to_vector([a, b])", {"a": (2, 2), "b": (3,)}),
    Case("vector_to_parameters", "a, b = a.detach(), b.detach()\nv = torch.arange(7.0, dtype=torch.float64)\n"
         "torch.nn.utils.vector_to_parameters(v, [a, b])\nresult = [a, b]", {"a": (2, 2), "b": (3,)}, grad=False),
]  # fmt: skip
