"""Conversion of dtypes, copies, and values written into tensors."""

from __future__ import annotations

from tests.torch.facts import Case

TO = ("float", "double", "half", "long", "int", "short", "char", "byte", "bool", "cfloat", "cdouble")
CASES: list[Case] = [
    case
    for name in TO
    for case in (
        Case(name, f"a.{name}()", {"a": (3,)}),
        Case(f"{name}-of-float32", f"a.float().{name}()", {"a": (3,)}),
        Case(f"{name}-of-int", f"n.{name}()", {"n": [0, 1, 2]}),
        Case(f"{name}-of-bool", f"m.{name}()", {"m": [True, False]}),
    )
]
CASES += [
    Case("to-dtype", "a.to(torch.float32)", {"a": (2,)}),
    Case("to-same", "a.to(torch.float64) is a", {"a": (2,)}),
    Case("to-copy", "a.to(torch.float64, copy=True)", {"a": (2,)}),
    Case("to-device", "a.to('cpu') is a", {"a": (2,)}),
    Case("to-device-object", "a.to(torch.device('cpu'), torch.float32)", {"a": (2,)}),
    Case("to-keywords", "a.to(device='cpu', dtype=torch.float32, non_blocking=True)", {"a": (2,)}),
    Case("to-tensor", "a.to(b.float())", {"a": (2,), "b": (2,)}),
    Case("to-nothing", "a.to() is a", {"a": (2,)}),
    Case("to-int", "a.to(torch.int32)", {"a": [1.7, -1.7]}),
    Case("to-complex", "a.to(torch.complex64)", {"a": (2,)}),
    Case("to-real-of-complex", "z.to(torch.complex64)", {"z": ((2,), "complex")}),
    Case("to-text", "a.to('float32')", {"a": (2,)}),
    Case("type_as", "a.type_as(b.float())", {"a": (2,), "b": (2,)}),
    Case("type_as-same", "a.type_as(b) is a", {"a": (2,), "b": (2,)}),
    Case("type", "a.type(torch.float32)", {"a": (2,)}),
    Case("type-name", "(a.type(), a.float().type(), n.type())", {"a": (2,), "n": [1]}),
    Case("float-same", "a.double() is a", {"a": (2,)}),
    Case("cpu", "a.cpu() is a", {"a": (2,)}),
    Case("numpy-ufunc", "(np.sin(a.detach()), np.add(a.detach(), 1.0), np.float64(2) * a)", {"a": (2,)}, second=False),
    Case("numpy-ufunc-grad", "np.sin(a)", {"a": (2,)}),
    Case("numpy-operand", "a.detach() + np.ones(2)", {"a": (2,)}),
    Case("clone", "torch.clone(a)", {"a": (2, 2)}),
    Case("clone-method", "a.clone()", {"a": (2,)}),
    Case("clone-format", "a.clone(memory_format=torch.preserve_format)", {"a": (2,)}),
    Case("clone-int", "n.clone()", {"n": [1, 2]}),
    Case("clone-is-apart", "y = n.clone()\ny.zero_()\nresult = n", {"n": [1, 2]}),
    Case("clone-of-expanded", "n.expand(2, 2).clone().add_(1)", {"n": [1, 2]}),
    Case("contiguous", "a.contiguous() is a", {"a": (2,)}),
    Case("contiguous-transposed", "a.t().contiguous()", {"a": (2, 3)}),
    Case("contiguous-is", "a.t().contiguous().is_contiguous()", {"a": (2, 3)}),
    Case("zero", "result = (a * 1).zero_()", {"a": (2,)}),
    Case("zero-int", "result = n.clone().zero_()", {"n": [1, 2]}),
    Case("fill", "result = (a * 1).fill_(2)", {"a": (2,)}),
    Case("fill-int-float", "result = n.clone().fill_(2.7)", {"n": [1, 2]}),
    Case("fill-complex", "result = (a * 1).fill_(1j)", {"a": (2,)}),
    Case("fill-tensor", "result = (a * 1).fill_(b)", {"a": (2,), "b": ()}),
    Case("fill-tensor-1-d", "result = (a * 1).fill_(b)", {"a": (2,), "b": (1,)}),
    Case("fill-leaf", "a.fill_(2.0)", {"a": (2,)}),
    Case("fill-function", "torch.fill(a, 2.0)", {"a": (2,)}),
    Case("copy", "result = (a * 1).copy_(b)", {"a": (2, 2), "b": (2,)}),
    Case("copy-float32", "result = (a * 1).float().copy_(b)", {"a": (2,), "b": (2,)}),
    Case("copy-int", "result = (a * 1).copy_(n)", {"a": (2,), "n": [1, 2]}),
    Case("copy-into-int", "result = n.clone().copy_(b)", {"n": [1, 2], "b": [1.7, -1.2]}),
    Case("copy-into-constant", "y = torch.zeros(2, dtype=torch.float64)\nresult = y.copy_(b)", {"b": (2,)}),
    Case("copy-into-leaf", "a.copy_(b)", {"a": (2,), "b": (2,)}),
    Case("copy-no-broadcast", "(a * 1).copy_(b)", {"a": (2,), "b": (3,)}),
    Case("copy-into-view", "y = a * 1\ny[0].copy_(b)\nresult = y", {"a": (2, 2), "b": (2,)}),
    Case("to-in-the-graph", "(a.float() * 2).double().sin()", {"a": (2,)}),
    Case("mixed-in-the-graph", "a.float() * b + a.half().double()", {"a": (2,), "b": (2,)}),
]
