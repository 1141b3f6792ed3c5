# no_grad, enable_grad, set_grad_enabled, inference_mode.
x = torch.tensor([1.0], requires_grad=True)
with torch.no_grad():
    y = x * 2
    with torch.enable_grad():
        z = x * 2
print(y.requires_grad, z.requires_grad, torch.is_grad_enabled())


@torch.no_grad()
def doubler(x):
    return x * 2


@torch.enable_grad()
def tripler(x):
    return x * 3


print(doubler(x).requires_grad)
with torch.no_grad():
    print(tripler(x).requires_grad)
torch.set_grad_enabled(False)
print((x * 2).requires_grad)
torch.set_grad_enabled(True)
with torch.set_grad_enabled(False):
    print((x * 2).requires_grad)
print((x * 2).requires_grad)
with torch.inference_mode():
    w = x * 2
    print(w.requires_grad, w.is_inference(), torch.is_inference_mode_enabled())
print(w.is_inference(), x.is_inference())
try:
    w.requires_grad_()
except RuntimeError as error:
    print(str(error).splitlines()[0])
a = torch.rand(5, 5)
b = torch.rand(5, 5)
c = torch.rand((5, 5), requires_grad=True)
print((a + b).requires_grad, (a + c).requires_grad)
