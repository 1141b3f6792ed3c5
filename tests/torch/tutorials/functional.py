# torch.autograd.functional and torch.func.
from torch.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp


def exp_reducer(x):
    return x.exp().sum(dim=1)


inputs = torch.tensor([[0.1, 0.2], [0.3, 0.4]])
print(jacobian(exp_reducer, inputs))


def exp_adder(x, y):
    return 2 * x.exp() + 3 * y


print(jacobian(exp_adder, (torch.tensor([0.1, 0.2]), torch.tensor([0.3, 0.4]))))


def pow_reducer(x):
    return x.pow(3).sum()


print(hessian(pow_reducer, inputs))
print(vjp(exp_reducer, inputs, torch.ones(2)))
print(jvp(exp_reducer, inputs, torch.ones(2, 2)))
print(vhp(pow_reducer, inputs, torch.ones(2, 2)))
print(hvp(pow_reducer, inputs, torch.ones(2, 2)))
from torch.func import grad, hessian as fhessian, jacfwd, jacrev, vmap

print(grad(torch.sin)(torch.tensor(1.0)))
print(grad(grad(torch.sin))(torch.tensor(1.0)))
x = torch.tensor([1.0, 2.0, 3.0])
print(jacrev(torch.sin)(x))
print(jacfwd(torch.sin)(x))
print(fhessian(lambda x: (x**3).sum())(x))
print(vmap(torch.dot)(torch.ones(3, 4), torch.arange(12.0).reshape(3, 4)))
print(torch.func.vjp(torch.sin, x)[1](torch.ones(3)))
print(torch.func.jvp(torch.sin, (x,), (torch.ones(3),)))
print(torch.func.grad_and_value(lambda x: (x**2).sum())(x))
W, b = torch.arange(6.0).reshape(2, 3) / 10, torch.tensor([0.1, -0.1])
predict = lambda W, b, x: torch.tanh(W @ x + b)
print(jacrev(predict, argnums=(0, 1))(W, b, x)[1])
print(vmap(grad(lambda x, w: (x * w).sum() ** 2), in_dims=(0, None))(torch.ones(2, 3), x))
