"""What a view, a version or a change in place does to the graph: nodes, edges, flags, versions, errors."""

from __future__ import annotations

from tests.torch.facts import Case

BEFORE = """
def node(x):
    return x.grad_fn and type(x.grad_fn).__name__
def below(x):
    return [f and type(f).__name__ for f, _ in x.grad_fn.next_functions]
x = (torch.arange(12.0).reshape(3, 4) + 1).clone().requires_grad_()
y = x * 1
b = torch.ones(3, 4)
"""
PROGRAMS = {
    "in-place-on-view": "v = y[0]\nv.mul_(2)\nresult = node(v), node(y), below(v), below(y), v._version, y._version",
    "in-place-on-base": "v = y[0]\ny.mul_(2)\nresult = node(v), below(v), node(y)",
    "view-of-view": "v = y[0]\nw = v[1:]\nw.mul_(2)\nresult = node(v), node(w), w._base is y, v._base is y, below(w)",
    "view-with-tensor": "v = y[0]\nv.mul_(y[1])\nresult = below(y)",
    "set-number": "y[0] = 1.0\nresult = node(y), below(y)",
    "set-tensor": "y[0] = x[1]\nresult = node(y), below(y)",
    "set-indices": "y[[0]] = x[1]\nresult = node(y), below(y)",
    "set-int-indices": "y[0, [0, 1]] = x[1, :2]\nresult = node(y), below(y)",
    "set-all": "y[:] = x\nresult = node(y), below(y)",
    "set-ellipsis": "y[...] = 1\nresult = node(y), below(y)",
    "set-mask": "y[y > 5] = 0.0\nresult = node(y), below(y)",
    "set-mask-tensor": "y[y > 5] = x[y > 5]\nresult = node(y), below(y)",
    "set-expands": "y[0:2] = x[2]\nresult = below(y)",
    "getitem-chain": "result = below(y[0, 1:]), below(y[:, 0]), node(y[:, :]), node(y[:]), node(y[...])",
    "index-edges": "result = below(y[[0, 1]]), below(y.gather(0, torch.tensor([[0]]))), below(y[0, [1]])",
    "no-grad-view": "with torch.no_grad():\n    v = y[0]\nresult = v.requires_grad, node(v), v._is_view(), v.is_leaf",
    "no-grad-view-of-leaf": "with torch.no_grad():\n    v = x[0]\nresult = v.requires_grad, node(v), v.is_leaf",
    "no-grad-view-used": "with torch.no_grad():\n    v = x[0]\n(v * x[1]).sum().backward()\nresult = x.grad, v.grad",
    "no-grad-view-changed": "with torch.no_grad():\n    v = y[0]\nv.mul_(2)\nresult = v",
    "no-grad-view-base-changed": "with torch.no_grad():\n    v = y[0]\ny.mul_(2)\nresult = v.requires_grad, node(v)",
    "no-grad-both": "with torch.no_grad():\n    v = y[0]\n    v.mul_(2)\nresult = v.requires_grad, node(y), y._version",
    "no-grad-constant": "with torch.no_grad():\n    v = b[0]\nv.mul_(2)\nresult = b",
    "no-grad-constant-recorded": "with torch.no_grad():\n    v = b[0]\nv.mul_(x[0])\nresult = v",
    "unbind-changed": "p, q, r = y.unbind()\np.mul_(2)\nresult = p",
    "unbind-base-changed": "p, q, r = y.unbind()\ny.mul_(2)\nresult = p.grad_fn",
    "unbind-base-changed-used": "p, q, r = y.unbind()\ny.mul_(2)\nresult = p * 2",
    "unbind-constant": "p, q, r = b.unbind()\np.mul_(2)\nresult = b",
    "unbind-constant-recorded": "p, q, r = b.unbind()\np.mul_(x[0])\nresult = p",
    "unbind-no-grad": "with torch.no_grad():\n    p, q, r = b.unbind()\np.mul_(x[0])\nresult = p",
    "split-view-changed": "p = y.split(2)[0][0]\np.mul_(2)\nresult = p",
    "chunk-changed": "p = y.chunk(2)[0]\np.mul_(2)\nresult = p",
    "tensor_split-changed": "p = y.tensor_split(2)[0]\np.mul_(2)\nresult = node(y)",
    "iteration-changed": "for row in y:\n    row.mul_(2)\nresult = y",
    "leaf-changed": "x.mul_(2)\nresult = x",
    "leaf-view-changed": "x[0].mul_(2)\nresult = x",
    "leaf-assigned": "x[0] = 1\nresult = x",
    "leaf-changed-no-grad": "v = x.view(-1)\nwith torch.no_grad():\n    x.mul_(2)\n"
    "result = node(v), v._version, below(v)",
    "leaf-detached-changed": "v = x.view(-1)\nx.detach().mul_(2)\nresult = node(v), v._version",
    "data-changed": "v = y.view(-1)\ny.data.mul_(2)\nresult = node(v), v._version, y._version",
    "constant-base": "v = b[0]\nb.mul_(x)\nresult = node(v), node(b), v.requires_grad, v.is_leaf, b.is_leaf",
    "constant-view": "v = b[0]\nv.mul_(x[0])\nresult = node(v), node(b), b.requires_grad, below(b)",
    "view-requires": "v = b[0]\nv.requires_grad_()\nresult = node(v), v.is_leaf, b.requires_grad",
    "view-requires-changed": "v = b[0]\nv.requires_grad_()\nv.mul_(2)\nresult = v",
    "view-requires-base-changed": "v = b[0]\nv.requires_grad_()\nb.mul_(2)\n"
    "result = node(v), v.is_leaf, b.requires_grad",
    "base-requires": "v = b[0]\nb.requires_grad_()\nresult = node(v), v.is_leaf, v.requires_grad",
    "base-requires-view-changed": "v = b[0]\nb.requires_grad_()\nv.mul_(2)\nresult = v",
    "t_": "v = y[0]\ny.t_()\nresult = node(y), y._version, tuple(y.shape), node(v), below(v), v",
    "t_-view": "v = y[:2]\nv.t_()\nresult = node(v), below(v), node(y), y._version, tuple(v.shape), tuple(y.shape)",
    "t_-then-change": "v = y[0]\ny.t_()\nv.mul_(2)\ny[0].add_(1)\nresult = y.detach(), v.detach(), node(v), node(y)",
    "unsqueeze_-view": "v = y[0]\nv.unsqueeze_(0)\nresult = node(v), below(v), node(y), v._version",
    "squeeze_-leaf": "x.squeeze_()\nresult = x",
    "detach": "d = y.detach()\n"
    "result = d._is_view(), d.requires_grad, d._version, d.add_(1) is d, d._version, y._version",
    "detach_": "y.detach_()\nresult = node(y), y.requires_grad",
    "detach_-view": "v = y[0]\nv.detach_()\nresult = v",
    "detach_-leaf-with-view": "v = x[:]\nx.detach_()\nv.sum().backward()\nresult = x.grad, v.requires_grad",
    "base-of-detached": "d = y.detach()[0]\nresult = d._base is y, d._is_view(), d._base is None",
    "views-of-results": "result = y._is_view(), y.view(12)._is_view(), y.t().contiguous()._is_view(), "
    "y.clone()._is_view()",
    "reshape-is-view": "result = y.reshape(12)._is_view(), y.t().reshape(12)._is_view(), y.flatten()._base is y",
    "expand-changed": "v = torch.ones(1).expand(4)\nv.add_(1)\nresult = v",
    "expand-part": "v = torch.ones(1)\nv.expand(4)[0] = 5.0\nresult = v",
    "expand-part-recorded": "v = (x.sum() * 1).view(1)\nv.expand(4)[0].mul_(3)\nresult = v.grad_fn and node(v)",
    "expand-zero": "v = torch.ones(1)\nv.expand(4).zero_()\nresult = v",
    "overlap": "y.mul_(y[0])\nresult = y",
    "overlap-shifted": "v = torch.ones(4)\nv[:3].add_(v[1:])\nresult = v",
    "overlap-assigned": "v = torch.ones(4)\nv[1:] = v[:3]\nresult = v",
    "same-assigned": "v = torch.arange(4.0)\nv[:] = v\nv[0] = v[0]\nresult = v, v._version",
    "overlap-index": "v = torch.arange(4.0)\nv[[1, 2, 3]] = v[:3]\nresult = v",
    "versions": "y.add_(1)\ny[0] = 1.0\ny[[0]] = 2.0\ny += 1\nresult = y._version, y[0]._version, y.detach()._version",
    "version-clone": "y.add_(1)\nresult = y.clone()._version, y.data._version, y.view(-1)._version",
    "retain-through-change": "y.retain_grad()\ny.mul_(2)\n(y * 3).sum().backward()\nresult = y.grad",
    "retain-on-base": "y.retain_grad()\ny[0].mul_(2)\n(y * 3).sum().backward()\nresult = y.grad, x.grad",
    "hook-before-change": "seen = []\ny.register_hook(lambda g: seen.append(g.sum().item()))\n"
    "y.mul_(2)\ny.sum().backward()\n"
    "result = seen",
    "inference-view": "with torch.inference_mode():\n    v = y[0]\n"
    "result = v.is_inference(), v._is_view(), v.requires_grad",
    "inference-view-changed": "with torch.inference_mode():\n    v = y[0]\nv.mul_(2)\nresult = v",
    "inference-tensor": "with torch.inference_mode():\n    v = x * 2\n"
    "result = v.is_inference(), v.requires_grad, v[0].is_inference(), v[0]._is_view()",
    "inference-tensor-changed": "with torch.inference_mode():\n    v = x * 2\nv.mul_(2)\nresult = v",
    "inference-tensor-version": "with torch.inference_mode():\n    v = x * 2\nresult = v._version",
    "inference-tensor-saved": "with torch.inference_mode():\n    v = x.detach() * 2\nresult = v * x",
    "inference-tensor-cloned": "with torch.inference_mode():\n    v = x.detach() * 2\nresult = node(v.clone() * x)",
    "inference-in-inference": "with torch.inference_mode():\n    v = x * 2\n    v.add_(1)\n    v[0] = 0.0\n"
    "result = v.sum().item()",
    "inference-changes-normal": "with torch.inference_mode():\n    b.add_(1)\nresult = b._version, b.is_inference()",
    "inference-requires": "with torch.inference_mode():\n    v = torch.ones(2)\nv.requires_grad_()\nresult = v",
}
SAVED = {
    "mul": "z = y * y\ny.add_(1)\nz.sum().backward()\nresult = x.grad",
    "mul-number": "z = y * 3\ny.add_(1)\nz.sum().backward()\nresult = x.grad",
    "view": "v = y[0]\nz = v * v\ny[1].add_(1)\nz.sum().backward()\nresult = x.grad",
    "detached": "z = y * y\ny.detach().add_(1)\nz.sum().backward()\nresult = x.grad",
    "data": "z = y.sin()\nresult = z.grad_fn._saved_self is not None",
    "leaf": "z = x * x\nwith torch.no_grad():\n    x.add_(1)\nz.sum().backward()\nresult = x.grad",
    "result": "y.exp_()\ny.mul_(2)\ny.sum().backward()\nresult = x.grad",
    "result-last": "y.mul_(2)\ny.exp_()\ny.sum().backward()\nresult = x.grad",
    "result-tanh-view": "v = y[0]\nv.tanh_()\ny[1].add_(1)\ny.sum().backward()\nresult = x.grad",
    "itself": "y.mul_(y)\ny.sum().backward()\nresult = x.grad",
    "itself-added": "y.add_(y)\ny.sum().backward()\nresult = x.grad",
    "itself-as-view": "v = y[0]\nv.mul_(v)\ny.sum().backward()\nresult = x.grad",
    "operand": "y.mul_(x)\ny.sum().backward()\nresult = x.grad",
    "operand-changed": "z = x * 2\ny.mul_(z)\nz.add_(1)\ny.sum().backward()\nresult = x.grad",
    "sin": "y.sin_()\ny.sum().backward()\nresult = x.grad",
    "sin-twice": "y.sin_()\ny.sin_()\ny.sum().backward()\nresult = x.grad",
    "view-mul": "w = x[1] * 1\ny[0].mul_(w)\ny.sum().backward()\nresult = x.grad",
    "view-mul-changed": "w = x[1] * 1\ny[0].mul_(w)\nw.add_(1)\ny.sum().backward()\nresult = x.grad",
    "view-mul-other-part": "w = x[1] * 1\ny[0].mul_(w)\ny[1].zero_()\ny.sum().backward()\nresult = x.grad",
    "gather": "z = y[[0, 1]]\ny.zero_()\nz.sum().backward()\nresult = x.grad",
    "index-changed": "i = torch.tensor([0, 1])\nz = y[i]\ni[0] = 2\nz.sum().backward()\nresult = x.grad",
}
CASES: list[Case] = [Case(name, f"{BEFORE}\n{code}", text=True) for name, code in PROGRAMS.items()]
CASES += [Case(f"saved-{name}", f"{BEFORE}\n{code}", text=True) for name, code in SAVED.items()]
