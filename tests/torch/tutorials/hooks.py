# Hooks on tensors and modules.
v = torch.tensor([0.0, 0.0, 0.0], requires_grad=True)
h = v.register_hook(lambda grad: grad * 2)
v.backward(torch.tensor([1.0, 2.0, 3.0]))
print(v.grad)
h.remove()
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x * 3
seen = []
y.register_hook(lambda g: seen.append(g.clone()))
y.retain_grad()
(y**2).sum().backward()
print(seen, y.grad, x.grad)
x.grad = None
calls = []
handle = x.register_post_accumulate_grad_hook(lambda p: calls.append(p.grad.sum().item()))
(x * 2).sum().backward()
(x * 2).sum().backward()
print(calls)
handle.remove()
node = (x * 2).grad_fn
z = (x * 2).exp()
z.grad_fn.register_hook(lambda gi, go: print("node", gi, go))
z.sum().backward()
model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
with torch.no_grad():
    for k, p in enumerate(model.parameters()):
        p.copy_(torch.linspace(-1, 1, p.numel()).reshape(p.shape) + 0.1 * k)
norms = {}
for name, p in model.named_parameters():
    p.register_hook(lambda g, name=name: norms.__setitem__(name, round(g.norm().item(), 5)))
acts = []
model[1].register_forward_hook(lambda m, i, o: acts.append((o == 0).float().mean().item()))
model[0].register_full_backward_hook(
    lambda m, gi, go: print("back", [None if g is None else tuple(g.shape) for g in gi], [tuple(g.shape) for g in go])
)
out = model(torch.tensor([[1.0, 2.0], [-1.0, 0.5]]))
out.sum().backward()
print(norms, acts)
print(model)
