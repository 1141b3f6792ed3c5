# A loop that depends on the data.
x = torch.tensor([0.5, -1.2, 0.3], requires_grad=True)
y = x * 2
count = 0
while y.data.norm() < 1000:
    y = y * 2
    count += 1
print(count, y)
y.backward(torch.tensor([0.1, 1.0, 0.0001], dtype=torch.float))
print(x.grad)
