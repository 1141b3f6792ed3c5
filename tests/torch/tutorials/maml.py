# One inner step of gradient descent, differentiated.
w = torch.tensor([[0.5], [-0.3]], requires_grad=True)
xs = torch.tensor([[1.0, 2.0], [0.5, -1.0], [2.0, 0.3]])
ys = torch.tensor([[1.0], [0.0], [2.0]])
for step in range(5):
    inner = ((xs @ w - ys) ** 2).mean()
    (g,) = torch.autograd.grad(inner, w, create_graph=True)
    fast = w - 0.1 * g
    outer = ((torch.tanh(xs) @ fast - ys) ** 2).mean()
    (meta,) = torch.autograd.grad(outer, w)
    with torch.no_grad():
        w -= 0.05 * meta
    print(step, round(outer.item(), 5), [round(v, 5) for v in meta.flatten().tolist()])
