# A training loop with modules, an optimiser, a loader, clipping and a schedule.
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

t = torch.arange(32.0).reshape(16, 2) / 16 - 1
labels = (t.sum(1) > 0).long()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(2, 4)
        self.fc2 = nn.Linear(4, 2)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.fc2(self.drop(torch.tanh(self.fc1(x))))


net = Net()
with torch.no_grad():
    for k, p in enumerate(net.parameters()):
        p.copy_(torch.sin(torch.arange(p.numel(), dtype=torch.float32) + k).reshape(p.shape))
net.eval()
print(net)
print([name for name, _ in net.named_parameters()], sum(p.numel() for p in net.parameters()))
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(net.parameters(), lr=0.05)
scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
for epoch in range(4):
    total = 0.0
    for xb, yb in DataLoader(TensorDataset(t, labels), batch_size=4):
        optimizer.zero_grad()
        loss = criterion(net(xb), yb)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
    scheduler.step()
    print(epoch, round(total, 4), round(norm.item(), 4), optimizer.param_groups[0]["lr"])
print((net(t).argmax(1) == labels).float().mean())
state = net.state_dict()
print(list(state))
other = Net()
print(other.load_state_dict(state))
other.eval()
print(torch.equal(other(t), net(t)))
params = list(net.parameters())
optimizer.zero_grad()
whole = criterion(net(t), labels)
whole.backward()
full = [p.grad.clone() for p in params]
optimizer.zero_grad()
for xb, yb in DataLoader(TensorDataset(t, labels), batch_size=4):
    (criterion(net(xb), yb) * len(xb) / len(t)).backward()
print(all(torch.allclose(p.grad, g, atol=1e-6) for p, g in zip(params, full)))
