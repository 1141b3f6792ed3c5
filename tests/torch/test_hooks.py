"""Hooks on tensors, nodes and what the graph saves: when they run, what they see, what they may return."""

from __future__ import annotations

import pytest

import srcgrad.torch as torch
from tests.torch import sessions

SESSIONS: dict[str, str] = {
    "tensor hooks": """
x = torch.tensor([1., 2.], requires_grad=True)
h = x * 2
one = h.register_hook(lambda g: print('h', g))
two = h.register_hook(lambda g: g * 10)
x.register_hook(lambda g: print('x', g))
h.sum().backward(retain_graph=True)
print(x.grad)
two.remove()
h.sum().backward(retain_graph=True)
print(x.grad)
with h.register_hook(lambda g: g * 0):
    h.sum().backward(retain_graph=True)
print(x.grad)
print(raised(lambda: torch.ones(1).register_hook(print)))
""",
    "what a hook may return": """
x = torch.tensor([1., 2.], requires_grad=True)
def run(value):
    h = x * 2
    h.register_hook(value)
    h.sum().backward()
print(raised(lambda: run(lambda g: torch.ones(3))))
print(raised(lambda: run(lambda g: 3)))
print(raised(lambda: run(lambda g: g.double())))
def named(g):
    return torch.ones(5)
print(raised(lambda: run(named)))
""",
    "hooks and targets": """
x = torch.tensor([1., 2.], requires_grad=True)
h = x * 2
log = []
h.register_hook(lambda g: log.append(('h', g.tolist())) or g * 10)
x.register_hook(lambda g: log.append(('x', g.tolist())) or g * 100)
n = h.grad_fn
n.register_prehook(lambda g: log.append(('pre', g[0].tolist())) or (g[0] + 1,))
n.register_hook(lambda gi, go: log.append(('post', gi[0], gi[1], go[0].tolist())))
for targets in ([h, x], [h], [x]):
    print(torch.autograd.grad(h.sum(), targets, retain_graph=True), log)
    log.clear()
for targets in ([h, x], [h], [x]):
    h.sum().backward(inputs=targets, retain_graph=True)
    print(h.grad, x.grad, log)
    log.clear()
""",
    "retained gradients and hooks": """
x = torch.tensor([1., 2.], requires_grad=True)
a = x * 3
a.retain_grad()
a.register_hook(lambda g: g * 2)
a.sum().backward()
print(a.grad, x.grad, a.retains_grad)
a = x * 3
a.register_hook(lambda g: g * 2)
a.retain_grad()
a.register_hook(lambda g: g * 5)
a.grad_fn.register_prehook(lambda g: (g[0] * 100,))
a.sum().backward()
print(a.grad, x.grad)
""",
    "node hooks": """
x = torch.tensor([1., 2.], requires_grad=True)
y = (x * x).exp()
node = y.grad_fn
node.register_hook(lambda gi, go: (gi[0] * 0 + 1,))
mul = node.next_functions[0][0]
print(mul.name())
mul.register_prehook(lambda go: print('go', go))
handle = mul.register_hook(lambda gi, go: print('gi', gi))
y.sum().backward(retain_graph=True)
handle.remove()
y.sum().backward()
print(x.grad)
leaf = (x * 1).grad_fn.next_functions[0][0]
leaf.register_prehook(lambda go: (go[0] * 4,))
leaf.register_hook(lambda gi, go: print('leaf', gi, go))
x.grad = None
z = x * 1
z.sum().backward()
print(x.grad)
""",
    "a result without a gradient gives hooks None": """
x = torch.tensor([[1., 2.], [3., 0.]], requires_grad=True)
u = (x * 1).unbind()
u[0].register_hook(lambda g: print('tensor', g))
u[0].grad_fn.register_prehook(lambda g: print('pre', g))
u[0].grad_fn.register_hook(lambda gi, go: print('post', gi, go))
u[1].sum().backward()
class Nothing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return None
x = torch.ones(2, requires_grad=True)
h = x * 3
h.retain_grad()
h.register_hook(lambda g: print('h', g))
x.register_hook(lambda g: print('x', g))
h.grad_fn.register_prehook(lambda g: print('pre', g))
h.grad_fn.register_hook(lambda gi, go: print('post', gi, go))
Nothing.apply(h).sum().backward()
print(x.grad, h.grad)
u = (x * 1).unbind()
u[0].register_hook(lambda g: torch.ones(()))
print(raised(lambda: u[1].backward()))
""",
    "hooks of a node with indices or statistics": """
x = torch.tensor([[1., 2.], [3., 0.]], requires_grad=True)
y = torch.nn.functional.batch_norm(x * 1, None, None, torch.ones(2), torch.zeros(2), training=True)
for value in (x.max(1).values, x.sort().values, x.topk(1).values, y):
    value.grad_fn.register_prehook(lambda g: print('pre', g))
    value.grad_fn.register_hook(lambda gi, go: print('post', [g is None for g in gi], go))
    value.sum().backward()
""",
    "post-accumulate hooks": """
x = torch.tensor([1., 2.], requires_grad=True)
def step(p):
    print('step', p.grad)
    with torch.no_grad():
        p.sub_(p.grad, alpha=0.1)
    p.grad = None
handle = x.register_post_accumulate_grad_hook(step)
(x * x).sum().backward()
print(x, x.grad)
handle.remove()
(x * 2).sum().backward()
print(x.grad)
print(raised(lambda: (x * 2).register_post_accumulate_grad_hook(step)))
print(raised(lambda: torch.ones(1).register_post_accumulate_grad_hook(step)))
""",
    "hooks of an expression met many times": """
w = torch.tensor([1., 2.], requires_grad=True)
seen = []
for k in range(4):
    w.grad = None
    h = w * (k + 1)
    if k == 3:
        h.register_hook(lambda g: seen.append(g.tolist()))
    (h * h).sum().backward()
    print(w.grad)
print(seen)
""",
    "backward inside a hook": """
x = torch.tensor([1., 2.], requires_grad=True)
w = torch.tensor([3., 4.], requires_grad=True)
y = x * 2
def hook(g):
    with torch.enable_grad():
        (w * w).sum().backward()
    return g
y.register_hook(hook)
y.sum().backward()
print(x.grad, w.grad)
""",
    "graph in hooks": """
x = torch.tensor([1., 2.], requires_grad=True)
y = x**2
y.register_hook(lambda g: print(g.requires_grad, torch.is_grad_enabled()))
torch.autograd.grad(y.sum(), x, retain_graph=True)
torch.autograd.grad((y**2).sum(), x, create_graph=True)
""",
    "saved tensors": """
hooks = torch.autograd.graph.saved_tensors_hooks
x = torch.tensor([1., 2.], requires_grad=True)
def pack(t):
    print('pack', t.detach())
    return t * 10
def unpack(t):
    print('unpack', t)
    return t / 10
with hooks(pack, unpack):
    y = x.exp()
y.sum().backward()
print(x.grad)
with hooks(lambda t: t.tolist(), lambda v: torch.tensor(v)):
    with hooks(lambda t: t * 2, lambda t: t / 2):
        z = (x * x * x).sin()
g, = torch.autograd.grad(z.sum(), x, create_graph=True)
print(g)
print(torch.autograd.grad(g.sum(), x))
with torch.autograd.graph.save_on_cpu():
    z = x.exp().sum()
z.backward()
print(x.grad)
with torch.autograd.graph.disable_saved_tensors_hooks('no hooks here'):
    def use():
        with hooks(pack, unpack):
            pass
    print(raised(use))
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(x, y)
        return y
    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[1]
with hooks(lambda t: t.tolist(), lambda v: torch.tensor(v)):
    y = F.apply(x)
print(torch.autograd.grad(y.sum(), x))
""",
    "unpacking badly": """
x = torch.tensor([1., 2.], requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: 3):
    y = x.exp()
print(raised(lambda: y.sum().backward()).split(':')[0])
""",
    "hooks on several tensors": """
multi = torch.autograd.graph.register_multi_grad_hook
x, y = torch.tensor(1., requires_grad=True), torch.tensor(2., requires_grad=True)
handle = multi((x, y), lambda grads: print([None if g is None else g.item() for g in grads]))
(x * y).backward()
(x * 3).backward()
(x * y).backward()
handle.remove()
(x * y).backward()
handle = multi((x, y), lambda g: print('any', g), mode='any')
(x * 3).backward()
(x * 5 + x.detach() * y * 0).backward(inputs=[x])
""",
}


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_prints_what_pytorch_prints(name: str) -> None:
    assert sessions.printed(SESSIONS[name], torch) == sessions.recorded("hooks")[name]


def test_a_hook_of_any_tensor_runs_once_in_each_run() -> None:
    """Runs that follow one another may lie at the same place in memory."""
    x, seen = torch.tensor(1.0, requires_grad=True), []
    handle = torch.autograd.graph.register_multi_grad_hook((x,), lambda g: seen.append(g.item()), mode="any")
    for k in range(50):
        (x * float(k)).backward()
    handle.remove()
    assert seen == [float(k) for k in range(50)]
