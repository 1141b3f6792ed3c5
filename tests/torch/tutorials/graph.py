# Walking the graph.
x = torch.tensor([0.5], requires_grad=True)
y = torch.sin(x) * 2 + 1


def walk(node, depth=0):
    if node is None:
        return
    print("  " * depth + node.name())
    for below, _ in node.next_functions:
        walk(below, depth + 1)


walk(y.grad_fn)
a = torch.linspace(0.0, 2 * 3.141592653589793, steps=5, requires_grad=True)
b = torch.sin(a)
c = 2 * b
d = c + 1
out = d.sum()
print(d)
print("d:", d.grad_fn.name(), [n.name() for n, _ in d.grad_fn.next_functions if n])
print(d.grad_fn.next_functions[0][0].next_functions[0][0].name())
print(d.grad_fn.next_functions[0][0].next_functions[0][0].next_functions[0][0].name())
print(d.grad_fn.next_functions[0][0].next_functions[0][0].next_functions[0][0].next_functions)
print("a:", a.grad_fn)
out.backward()
print(a.grad)
m = torch.ones(2, 3, requires_grad=True)
for t in (
    m.t(),
    m.view(6),
    m[0],
    m[:, 1:],
    m.mean(),
    m.sum(0),
    m.pow(2),
    m.exp(),
    m @ m.t(),
    m.relu(),
    m.clone(),
    -m,
    1 - m,
    1 / m,
    m / 2,
    m.max(),
    m.max(1).values,
    m.unsqueeze(0),
    m.expand(4, 2, 3),
    torch.cat([m, m]),
    torch.stack([m, m]),
    m.norm(),
    m.abs(),
    m.sigmoid(),
    m.softmax(1),
    m.log_softmax(-1),
    m.std(),
    m.var(),
    m.prod(),
    m.cumsum(0),
    m.permute(1, 0),
    m.flatten(),
    m.squeeze(),
    m[m > 0],
    m[[0, 1]],
    m.clamp(min=0),
    torch.where(m > 0, m, -m),
    m.double(),
    m.sqrt(),
    m.sum(),
    m.unbind()[0],
    m.split(1)[0],
    m.chunk(2)[0],
    m.repeat(2, 1),
    m.gather(0, torch.zeros(1, 3, dtype=torch.long)),
    m.masked_fill(m > 0, 1.0),
    m.transpose(0, 1),
    m.reshape(3, 2),
    m.tanh(),
    m.logsumexp(0),
    m.sort().values,
    m.topk(1).values,
    m.triu(),
    m.diagonal(),
    m.view(-1),
    m**0.5,
    m.log(),
    m.erf(),
    m.atan2(m),
    torch.maximum(m, m),
    m.lerp(m, 0.5),
    m.index_select(0, torch.tensor([0])),
    m.flip(0),
    m.roll(1),
):
    print(t.grad_fn.name(), tuple(t.shape))
