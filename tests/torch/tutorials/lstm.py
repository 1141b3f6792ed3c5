# An LSTM with Adam and clipping.
lstm = torch.nn.LSTM(3, 4, num_layers=2, batch_first=True)
head = torch.nn.Linear(4, 2)
params = [*lstm.parameters(), *head.parameters()]
with torch.no_grad():
    for k, p in enumerate(params):
        p.copy_(0.5 * torch.sin(1.7 * torch.arange(p.numel(), dtype=torch.float32) + k).reshape(p.shape))
print([tuple(p.shape) for p in params])
print([n for n, _ in lstm.named_parameters()])
x = torch.cos(torch.arange(30.0)).reshape(2, 5, 3)
y = torch.tensor([0, 1])
optimizer = torch.optim.Adam(params, lr=0.05)
for step in range(6):
    out, (h, c) = lstm(x)
    loss = torch.nn.functional.cross_entropy(head(out[:, -1]), y)
    optimizer.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(params, 0.25)
    optimizer.step()
    print(step, round(loss.item(), 4), round(norm.item(), 4))
print(out.shape, h.shape, c.shape, out.grad_fn is not None)
