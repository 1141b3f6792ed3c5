# Gradient descent by hand, then with an optimiser.
import math

x = torch.linspace(-math.pi, math.pi, 200)
y = torch.sin(x)
a = torch.tensor(0.1, requires_grad=True)
b = torch.tensor(0.2, requires_grad=True)
c = torch.tensor(-0.1, requires_grad=True)
d = torch.tensor(0.05, requires_grad=True)
for t in range(300):
    y_pred = a + b * x + c * x**2 + d * x**3
    loss = (y_pred - y).pow(2).sum()
    if t % 100 == 99:
        print(t, round(loss.item(), 3))
    loss.backward()
    with torch.no_grad():
        for p in (a, b, c, d):
            p -= 1e-6 * p.grad
            p.grad = None
print(f"Result: y = {a.item():.4f} + {b.item():.4f} x + {c.item():.4f} x^2 + {d.item():.4f} x^3")
p = torch.tensor([1, 2, 3])
xx = x.unsqueeze(-1).pow(p)
print(xx.shape, xx[0])
model = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Flatten(0, 1))
with torch.no_grad():
    model[0].weight.copy_(torch.tensor([[0.3, -0.2, 0.1]]))
    model[0].bias.fill_(0.05)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
loss_fn = torch.nn.MSELoss(reduction="sum")
for t in range(200):
    loss = loss_fn(model(xx), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if t % 50 == 49:
        print(t, round(loss.item(), 2))
print(model[0].weight.shape, model)
