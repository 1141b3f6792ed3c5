# utils.checkpoint gives the same gradients.
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

x = torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_()
w = (torch.arange(9.0).reshape(3, 3) / 9 - 0.4).requires_grad_()
calls = []


def block(x):
    calls.append(1)
    return torch.tanh(x @ w)


for reentrant in (False, True):
    x.grad = w.grad = None
    calls.clear()
    y = checkpoint(block, x, use_reentrant=reentrant)
    print(y, len(calls)) if not reentrant else print(len(calls))
    y.sum().backward()
    print(len(calls), x.grad, w.grad)
stages = torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Sigmoid(), torch.nn.Tanh(), torch.nn.Sigmoid())
x.grad = None
checkpoint_sequential(stages, 2, x, use_reentrant=False).sum().backward()
print(x.grad)
