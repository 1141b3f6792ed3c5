# The errors everybody meets.
def attempt(call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except Exception as error:
        kinds = [k.__name__ for k in type(error).__mro__ if k.__module__ == "builtins"]
        print(kinds[0], "|", str(error).splitlines()[0])


x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
attempt((x * 2).backward)
y = (x * x).sum()
y.backward()
attempt(y.backward)
attempt(torch.tensor([1.0]).sum().backward)
attempt(x.numpy)
attempt(lambda: x.add_(1))
attempt(lambda: x[0].add_(1))
attempt(lambda: torch.tensor([1.0, 2.0]) + torch.tensor([1.0, 2.0, 3.0]))
attempt(lambda: bool(torch.tensor([1.0, 2.0])))
attempt(lambda: torch.tensor([1.0, 2.0]).item())
attempt(lambda: torch.autograd.grad((x * 2).sum(), torch.tensor([1.0], requires_grad=True)))
attempt(lambda: torch.autograd.grad((x * 2).sum(), torch.tensor([1.0])))
a = torch.tensor([1.0, 2.0], requires_grad=True)
b = a * 2
c = b * b
b += 1
try:
    c.sum().backward()
except RuntimeError as error:
    print("inplace" in str(error), "version 1; expected version 0" in str(error))
z = (x * 2)[0]
attempt(lambda: z.retain_grad() or z.backward(torch.tensor([1.0, 2.0])))
attempt(lambda: torch.ones(2, 3) @ torch.ones(2, 3))
attempt(lambda: torch.zeros(3).view(2, 2))
attempt(lambda: torch.zeros(3)[5])
attempt(lambda: torch.zeros(2, 3).sum(dim=4))
attempt(lambda: torch.cat([torch.zeros(2, 2), torch.zeros(3, 3)]))
attempt(lambda: (b * 1).requires_grad_(False))
attempt(lambda: torch.tensor([1.5]).long().requires_grad_())
attempt(lambda: torch.tensor([[1.0, 2.0], [3.0]]))
attempt(lambda: torch.ones(2).add_(torch.ones(2, 2)))
attempt(lambda: torch.tensor([1, 2]).add_(1.5))
attempt(lambda: torch.zeros(2, requires_grad=True).detach().requires_grad_().backward())
