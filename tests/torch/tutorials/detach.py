# Leaving the graph.
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x * 3
d = y.detach()
print(d, d.requires_grad, y.requires_grad)
d[0] = 100.0
print(y)
e = y.clone()
print(e)
(x * y.detach()).sum().backward()
print(x.grad)
n = x.detach().numpy()
n[0] = 7.0
print(x)
with torch.no_grad():
    x -= 0.5
print(x, x._version)
x.data = torch.tensor([5.0, 6.0])
print(x)
print(x.detach().tolist(), x[0].item())
print(x.data)
c = x.clone().detach().requires_grad_(True)
print(c, c.is_leaf)
