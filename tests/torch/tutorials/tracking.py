# What is recorded, and what prints.
x = torch.ones(2, 2, requires_grad=True)
print(x)
y = x + 2
print(y)
print(y.grad_fn.name())
z = y * y * 3
out = z.mean()
print(z, out)
out.backward()
print(x.grad)
a = torch.tensor([[1.0, -2.0], [0.5, 3.0]])
a = (a * 3) / (a - 1)
print(a.requires_grad)
a.requires_grad_(True)
print(a.requires_grad)
b = (a * a).sum()
print(b.grad_fn.name(), b)
w = torch.tensor(1.0, requires_grad=True)
print(w, w.is_leaf, (w * 2).is_leaf, w.grad, w.dtype, w.shape)
p = torch.tensor([2.0, 3.0], requires_grad=True)
q = torch.tensor([6.0, 4.0], requires_grad=True)
Q = 3 * p**3 - q**2
print(Q)
Q.backward(gradient=torch.tensor([1.0, 1.0]))
print(9 * p**2 == p.grad, -2 * q == q.grad)
t = torch.tensor([1, 2, 3])
try:
    t.requires_grad_()
except RuntimeError as error:
    print(str(error).splitlines()[0])
