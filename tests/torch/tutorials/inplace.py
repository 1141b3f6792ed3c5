# In-place changes and views.
x = torch.zeros(3, requires_grad=True)
y = x + 1
y[0] = 5.0
y[1:] *= 2
print(y)
y.sum().backward()
print(x.grad)
base = torch.arange(6.0).reshape(2, 3).requires_grad_()
t = base * 1
row = t[0]
row.mul_(10)
print(t, row._version, t._version)
t.sum().backward()
print(base.grad)
a = torch.tensor([1.0, 4.0, 9.0], requires_grad=True)
b = a.sqrt()
print(b._version)
b.add_(1)
print(b._version)
try:
    b.sum().backward()
except RuntimeError as error:
    print("SqrtBackward0" in str(error) or "saved" in str(error))
v = torch.ones(2, 2)
w = v.view(4)
w[0] = 7
print(v, w.data_ptr() == v.data_ptr())
m = torch.zeros(3, 3)
m.fill_diagonal_(2.0) if hasattr(m, "fill_diagonal_") else None
e = torch.ones(1, 3).expand(2, 3)
print(e.stride(), e.shape)
p = torch.ones(2, requires_grad=True)
q = p.clone()
q.mul_(3).add_(1)
q.sum().backward()
print(p.grad, q)
