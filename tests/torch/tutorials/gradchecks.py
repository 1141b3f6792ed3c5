# gradcheck, right and wrong.
from torch.autograd import gradcheck, gradgradcheck

a = torch.linspace(-1, 1, 6, dtype=torch.double).reshape(2, 3).requires_grad_()
b = torch.linspace(0.3, 2, 12, dtype=torch.double).reshape(3, 4).requires_grad_()
print(gradcheck(lambda a, b: torch.tanh(a @ b), (a, b), eps=1e-6, atol=1e-4))
print(gradgradcheck(lambda a: torch.sin(a) * a, (a,)))


class WrongSquare(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x


x = torch.tensor([1.0, 2.0], dtype=torch.double, requires_grad=True)
print(gradcheck(WrongSquare.apply, (x,), raise_exception=False))
try:
    gradcheck(WrongSquare.apply, (x,))
except Exception as error:
    print(type(error).__name__)
    lines = str(error).splitlines()
    print(lines[0])
    print("numerical" in str(error), "analytical" in str(error))
