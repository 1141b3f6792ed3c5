# torch.autograd.Function.
class LegendrePolynomial3(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return 0.5 * (5 * input**3 - 3 * input)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        return grad_output * 1.5 * (5 * input**2 - 1)


x = torch.tensor([0.1, 0.5, -0.3], requires_grad=True)
y = LegendrePolynomial3.apply(x)
print(y)
y.sum().backward()
print(x.grad)


class StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        return (input > 0).float()

    @staticmethod
    def backward(ctx, grad_output):
        return torch.nn.functional.hardtanh(grad_output)


x = torch.tensor([0.2, -0.7, 1.5], requires_grad=True)
y = StraightThrough.apply(x)
print(y)
(y * torch.tensor([0.5, 2.0, -3.0])).sum().backward()
print(x.grad)


class MulAdd(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y, z):
        ctx.save_for_backward(x, y)
        return x * y + z

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        print(ctx.needs_input_grad)
        return grad * y, grad * x, grad


a = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(3.0, requires_grad=True)
c = torch.tensor(1.0)
out = MulAdd.apply(a, b, c)
print(out, out.grad_fn.name())
ga, gb = torch.autograd.grad(out, (a, b), create_graph=True)
print(ga, gb)
print(torch.autograd.grad(ga, b))


class MaskedSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mask):
        e = torch.exp(x - x.max()) * mask
        p = e / e.sum(-1, keepdim=True)
        ctx.save_for_backward(p)
        ctx.mark_non_differentiable(mask)
        return p

    @staticmethod
    def backward(ctx, g):
        (p,) = ctx.saved_tensors
        return p * (g - (g * p).sum(-1, keepdim=True)), None


x = torch.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
p = MaskedSoftmax.apply(x, torch.tensor([[1.0, 0.0, 1.0]]))
print(p)
(p * torch.tensor([[1.0, 2.0, 3.0]])).sum().backward()
print(x.grad)


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(i):
        return i.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)
        ctx.scale = 1.0

    @staticmethod
    def backward(ctx, g):
        (result,) = ctx.saved_tensors
        return g * result * ctx.scale


x = torch.tensor([0.5], requires_grad=True)
(g,) = torch.autograd.grad(Exp.apply(x), x, create_graph=True)
print(g)
print(torch.autograd.grad(g, x))


class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        return g * 2 * ctx.saved_tensors[0]


x = torch.tensor([3.0], requires_grad=True)
(g,) = torch.autograd.grad(Once.apply(x), x, create_graph=True)
try:
    g.backward()
except RuntimeError as error:
    print(str(error).splitlines()[0])


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        return x * y

    @staticmethod
    def backward(ctx, g):
        return g


try:
    Wrong.apply(x, x).backward()
except RuntimeError as error:
    print(str(error).splitlines()[0])
