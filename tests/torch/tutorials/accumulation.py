# Gradients add up until they are set back.
x = torch.tensor([2.0], requires_grad=True)
for _ in range(3):
    y = x**2
    y.backward()
    print(x.grad)
x.grad.zero_()
print(x.grad)
(x**2).backward()
print(x.grad)
x.grad = None
(3 * x).backward()
print(x.grad)
inp = torch.eye(4, 5, requires_grad=True)
out = (inp + 1).pow(2).t()
out.backward(torch.ones_like(out), retain_graph=True)
print(f"First call\n{inp.grad}")
out.backward(torch.ones_like(out), retain_graph=True)
print(f"\nSecond call\n{inp.grad}")
inp.grad.zero_()
out.backward(torch.ones_like(out), retain_graph=True)
print(f"\nCall after zeroing gradients\n{inp.grad}")
