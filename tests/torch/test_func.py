"""torch.func over srcgrad's transforms: what they return, how they nest, and the words of their errors."""

from __future__ import annotations

import math
from typing import Any

import pytest

import srcgrad.torch as torch
from srcgrad.errors import SrcgradError
from tests.torch import agreement, facts, sessions

SESSIONS: dict[str, str] = {
    "grad": """
F = torch.func
x = torch.tensor([1., 2.])
f = lambda x: (x**3).sum()
print(F.grad(f)(x), F.grad_and_value(f)(x))
print(F.grad(F.grad(torch.sin))(torch.tensor(0.5)), F.grad(F.grad(F.grad(lambda x: x**4)))(torch.tensor(2.)))
g = lambda x, y: (x * y).sum()
print(F.grad(g, argnums=1)(x, x * 2), F.grad(g, argnums=(0, 1))(x, x * 2), F.grad(g, argnums=-1)(x, x * 3))
print(F.grad(lambda x: (f(x), x * 2), has_aux=True)(x))
print(F.grad_and_value(lambda x: (f(x), {'a': x * 2, 'b': x}), has_aux=True)(x))
print(F.grad(lambda d: (d['a'] * d['b'][0]).sum())({'a': x, 'b': (x * 2,)}))
print(F.grad(lambda x, n, k=1: (x**n).sum() * k)(x, 3, k=2))
print(F.grad(lambda x: x.double().sum())(x))
""",
    "grad errors": """
F = torch.func
x = torch.tensor([1., 2.])
print(raised(lambda: F.grad(lambda x: x)(x)))
print(raised(lambda: F.grad(lambda x: 3)(x)).split(',')[0])
print(F.grad(lambda x: (x * x.detach()).sum())(x))
def part(x):
    with torch.no_grad():
        c = x * 2
    return (c * x).sum()
print(F.grad(part)(x))
print(raised(lambda: F.grad(lambda x: x.sum(), argnums=2)(x)))
print(raised(lambda: F.grad(lambda x: x.sum(), argnums=(0, 0))(x)))
print(raised(lambda: F.grad(lambda x: x.sum(), argnums='a')(x)).split(',')[0])
print(raised(lambda: F.grad(lambda x: x.sum(), has_aux=True)(x)).split(':')[0])
print(raised(lambda: F.vmap(lambda x: x, randomness='some')(x)))
print(raised(lambda: F.jacrev(lambda x: x, chunk_size=0)(x)))
""",
    "vjp, jvp, linearize": """
F = torch.func
x, y = torch.tensor([1., 2.]), torch.tensor([3., 4.])
out, pull = F.vjp(lambda x, y: x * y, x, y)
print(out, pull(torch.ones(2)), pull(torch.tensor([2., 3.])))
out, pull, aux = F.vjp(lambda x: ({'a': x * 2, 'b': x.sum()}, x + 1), x, has_aux=True)
print(out, pull({'a': torch.ones(2), 'b': torch.tensor(10.)}), aux)
print(F.vjp(torch.sin, x)[1](torch.ones(2)))
print(F.jvp(lambda x, y: (x * y, x.sum()), (x, y), (torch.ones(2), torch.zeros(2))))
print(F.jvp(lambda x: (x * 2, x + 1), (x,), (torch.ones(2),), has_aux=True))
out, push = F.linearize(lambda x: x**3, x)
print(out, push(torch.ones(2)), push(torch.tensor([0., 1.])))
print(F.jvp(F.grad(lambda x: (x**3).sum()), (x,), (torch.ones(2),)))
print(raised(lambda: F.jvp(torch.sin, x, x)).split(':')[0])
""",
    "jacobians": """
F = torch.func
x, y = torch.tensor([1., 2.]), torch.tensor([3., 4., 5.])
for jac in (F.jacrev, F.jacfwd):
    print(jac(lambda x: x**2)(x))
    print(jac(lambda x, y: torch.outer(x, y), argnums=(0, 1))(x, y)[1].shape)
    print(jac(lambda x: (x.sum(), {'a': x * 2}))(x))
    print(jac(lambda x: (x * 2, x + 1), has_aux=True)(x))
    print(jac(lambda d: d['u'] * d['v'])({'u': x, 'v': x}))
print(F.hessian(lambda x: (x**3).sum())(x))
print(F.jacrev(F.jacrev(lambda x: (x**3).sum()))(x), F.jacfwd(F.jacfwd(torch.sin))(torch.tensor(1.)))
print(F.hessian(lambda x, y: (x**2).sum() * y.sum(), argnums=(0, 1))(x, y)[0][1])
""",
    "vmap": """
F = torch.func
a, b = torch.arange(6.).reshape(3, 2), torch.arange(6.).reshape(2, 3)
print(torch.vmap(torch.dot)(a, a))
print(F.vmap(torch.dot, in_dims=(0, 1))(a, b))
print(F.vmap(lambda x, y: x * y, in_dims=(0, None))(a, torch.tensor([1., 10.])))
print(F.vmap(lambda x: x * 2, out_dims=1)(a), F.vmap(lambda x: (x, x.sum()), out_dims=(1, 0))(a))
print(F.vmap(F.vmap(lambda x: x**2))(a))
print(F.vmap(lambda d: d['x'].sum() * d['y'], in_dims=({'x': 0, 'y': None},))({'x': a, 'y': torch.tensor(2.)}))
print(F.vmap(lambda d: {'z': d['b'] * 2, 'a': d['a']}, in_dims=({'b': None, 'a': 0},))({'b': a[0], 'a': a}))
print(F.vmap(F.grad(lambda x: (x**3).sum()))(a), F.vmap(lambda x: torch.cat([x, x]).reshape(2, 2).T @ x)(a))
print(F.vmap(lambda x: x.sum(), chunk_size=2)(a), F.vmap(lambda x: x * 2, in_dims=1, out_dims=1, chunk_size=2)(b))
per = F.vmap(F.grad(lambda w, x, y: ((x @ w - y)**2).sum()), in_dims=(None, 0, 0))
print(per(torch.tensor([1., 2.]), a, torch.tensor([1., 2., 3.])))
print(F.vmap(lambda x: x.shape[0] + x)(a), F.vmap(lambda x: torch.where(x > 2, x, 0.))(a))
print(F.grad(lambda w: F.vmap(lambda x: (x * w).sum())(a).sum())(torch.tensor([1., 2.])))
""",
    "vmap errors": """
F = torch.func
a = torch.arange(6.).reshape(3, 2)
print(raised(lambda: F.vmap(torch.dot)(a, a[:2])))
print(raised(lambda: F.vmap(torch.dot, in_dims=(0, 5))(a, a)).split(':')[0])
print(raised(lambda: F.vmap(lambda x: x, in_dims='a')(a)).split(',')[0])
print(raised(lambda: F.vmap(lambda x, y: x * y)(a, 3)).split('Got')[0].split('(')[0])
print(raised(lambda: F.vmap(lambda x: 3)(a)).split('(')[0])
print(raised(lambda: F.vmap(lambda: 3)()).split('(')[0])
print(raised(lambda: F.vmap(lambda x: x, chunk_size=-1)(a)))
print(raised(lambda: F.vmap(lambda x: x + torch.randn(2))(a)))
""",
    "with recorded tensors": """
F = torch.func
x = torch.tensor([1., 2.])
w = torch.tensor([3., 4.], requires_grad=True)
g = F.grad(lambda x: (x * x * w).sum())(x)
print(g.requires_grad, torch.autograd.grad(g.sum(), w))
g = F.grad(lambda w: (w**3).sum())(w)
print(g.detach(), torch.autograd.grad(g.sum(), w, create_graph=True)[0].detach())
h = w * 2
out, pull = F.vjp(lambda x: x * h, x)
(out.sum() + pull(h)[0].sum()).backward()
print(w.grad)
j = F.jacrev(lambda w: w**2 * w.detach())(w)
print(torch.autograd.grad(j.sum(), w))
m = F.vmap(lambda x: (x * w).sum())(torch.ones(3, 2))
print(m.detach(), torch.autograd.grad(m.sum(), w))
with torch.no_grad():
    print(F.grad(lambda w: (w**3).sum())(w))
""",
    "control flow and in-place changes": """
F = torch.func
def halved(x):
    while x.sum() > 1:
        x = x * 0.5
    return (x**2).sum()
print(F.grad(halved)(torch.tensor([1., 2.])))
def branch(x):
    if x.sum().item() > 2:
        return x.prod()
    return x.sum()
print(F.grad(branch)(torch.tensor([1., 2.])), F.grad(branch)(torch.tensor([1., 0.])))
def filled(x):
    y = x.clone()
    y[0] = y[1] * 3
    y.mul_(x)
    return y.sum()
print(F.grad(filled)(torch.tensor([1., 2.])))
def made(x):
    y = torch.zeros(2, 2)
    y[0] = x
    y[1].copy_(x * 2)
    z = torch.zeros(())
    z += x.sum()
    return (y**2).sum() * z
print(F.grad(made)(torch.tensor([1., 2.])), F.jvp(made, (torch.ones(2),), (torch.ones(2),)))
def shown(x):
    n = float(x.detach().sum())
    return (x * n).sum()
print(F.grad(shown)(torch.tensor([1., 2.])))
""",
    "functions of the user's own": """
F = torch.func
class Cube(torch.autograd.Function):
    generate_vmap_rule = True
    @staticmethod
    def forward(x, k):
        return x**3 * k, x + 1
    @staticmethod
    def setup_context(ctx, inputs, output):
        x, k = inputs
        ctx.save_for_backward(x, None)
        ctx.k = k
    @staticmethod
    def backward(ctx, g, h):
        x, none = ctx.saved_tensors
        return g * 30 * ctx.k * x**2 + h, None
f = lambda x: Cube.apply(x, 2)[0].sum() + Cube.apply(x, 1)[1].sum()
x = torch.tensor([1., 2.])
print(F.grad(f)(x), F.vmap(F.grad(lambda x: f(x)))(torch.ones(2, 2)))
print(F.jacrev(F.grad(f))(x))
class Old(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g
print(raised(lambda: F.grad(lambda x: Old.apply(x).sum())(x)).split(' (')[0])
""",
    "modules": """
F = torch.func
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))
params = {k: torch.full_like(v, 0.1) for k, v in net.named_parameters()}
x = torch.tensor([[1., 2.], [3., 4.]])
before = {k: v.clone() for k, v in net.state_dict().items()}
out = F.functional_call(net, params, (x,))
print(out, all(torch.equal(v, before[k]) for k, v in net.state_dict().items()))
loss = lambda params: (F.functional_call(net, params, x)**2).mean()
print({k: v for k, v in F.grad(loss)(params).items()})
per = F.vmap(F.grad(lambda p, x: (F.functional_call(net, p, (x,))**2).sum()), in_dims=(None, 0))(params, x)
print({k: tuple(v.shape) for k, v in per.items()})
nets = [torch.nn.Linear(2, 1) for _ in range(3)]
p, b = F.stack_module_state(nets)
print({k: tuple(v.shape) for k, v in p.items()}, b)
y = F.vmap(lambda p, x: F.functional_call(nets[0], p, (x,)), in_dims=(0, None))(p, x)
print(torch.allclose(y, torch.stack([n(x) for n in nets])))
""",
    "running statistics": """
F, norm = torch.func, torch.nn.functional.batch_norm
m, v = torch.zeros(2), torch.ones(2)
x = torch.tensor([[1., 2.], [3., 4.], [0., 1.]])
print(F.grad(lambda x: norm(x, m, v, training=True).pow(3).sum())(x), m, v)
print(raised(lambda: F.vmap(lambda x: norm(x, m, v, training=True))(torch.ones(2, 3, 2))))
""",
}


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_prints_what_pytorch_prints(name: str) -> None:
    assert sessions.printed(SESSIONS[name], torch) == sessions.recorded("func")[name]


NOT_TRACED = {"numpy-ufunc"}
"""It hands the array to NumPy itself."""


@pytest.mark.parametrize("group", facts.GROUPS, ids="-".join)
def test_transforms_agree_with_recorded_gradients_for_every_operation(group: tuple[str, str]) -> None:
    found = {
        problem.case.name: agreement.transform_difference(problem)
        for problem in agreement.problems(group)
        if problem.case.name not in NOT_TRACED
    }
    assert not {name: text for name, text in found.items() if text}


def test_a_tensor_from_outside_keeps_its_numbers() -> None:
    kept = torch.zeros(2)

    def leaking(x: torch.Tensor) -> torch.Tensor:
        kept.add_(x)
        return x.sum()

    with pytest.raises(SrcgradError, match="into a tensor from outside"):
        torch.func.grad(leaking)(torch.ones(2))
    assert kept.tolist() == [0.0, 0.0]


def test_no_tracer_is_left_behind_by_an_error() -> None:
    made = torch.zeros(2)

    def failing(x: torch.Tensor) -> torch.Tensor:
        made.copy_(x)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        torch.func.grad(failing)(torch.ones(2))
    assert made.tolist() == [0.0, 0.0]
    assert torch.func.grad(lambda x: (x * x).sum())(torch.ones(2)).tolist() == [2.0, 2.0]


def test_functionalize_and_different_numbers_in_jacfwd_are_refused() -> None:
    for refused in (
        lambda: torch.func.functionalize(torch.sin),
        lambda: torch.func.jacfwd(torch.sin, randomness="different"),
    ):
        with pytest.raises(NotImplementedError):
            refused()


def test_same_randomness_of_vmap_draws_once_and_different_for_each_example() -> None:
    def noisy(x: torch.Tensor) -> torch.Tensor:
        return x + torch.rand(2)

    x = torch.zeros(4, 2)
    same = torch.vmap(noisy, randomness="same")(x)
    assert len(set(map(tuple, same.tolist()))) == 1
    different = torch.vmap(noisy, randomness="different")(x)
    assert len(set(map(tuple, different.tolist()))) == 4
    nested = torch.vmap(torch.vmap(noisy, randomness="same"), randomness="different")(torch.zeros(3, 4, 2))
    assert len({tuple(row) for example in nested.tolist() for row in example}) == 3
    with pytest.raises(RuntimeError, match="randomness error mode"):
        torch.vmap(torch.vmap(noisy, randomness="same"))(torch.zeros(3, 4, 2))


def test_vmap_in_chunks_gives_an_output_without_a_dimension_once() -> None:
    found = torch.vmap(lambda x: (x * 2, torch.ones(2)), out_dims=(0, None), chunk_size=2)(torch.zeros(5, 3))
    assert [tuple(part.shape) for part in found] == [(5, 3), (2,)]


def test_what_the_transforms_refuse_is_a_runtime_error_as_in_pytorch() -> None:
    """It was a TypeError or a ValueError, as NumPy would raise: code that catches PyTorch's did not catch it."""
    func, x = torch.func, torch.ones(3)
    for call in (
        lambda: func.grad(lambda x: x.sum())(torch.ones(3, dtype=torch.int64)),
        lambda: func.jvp(lambda x: x, (x,), (torch.ones(2),)),
        lambda: func.vjp(lambda x: x, x)[1](torch.ones(2)),
        lambda: func.linearize(lambda x: x.sin(), x)[1](torch.ones(2)),
        lambda: func.grad(lambda x: (x + torch.ones(2)).sum())(x),
    ):
        with pytest.raises(RuntimeError) as raised:
            call()
        assert isinstance(raised.value, SrcgradError) and "test_func.py" in str(raised.value)
    with pytest.raises(IndexError):
        func.vmap(lambda x: x, out_dims=3)(x)


def test_numbers_that_are_no_tensors_are_pytorchs_errors() -> None:
    """They were TypeErrors of words of srcgrad's own, and `linearize` took them."""
    func, x = torch.func, torch.tensor(3.0)
    for call in (
        lambda: func.grad(lambda x: x * x)(3.0),
        lambda: func.grad(lambda d: d["a"] * d["b"])({"a": x, "b": 2.0}),
        lambda: func.grad(lambda x, y: x * y, argnums=1)(x, 3.0),
        lambda: func.vjp(lambda x: x * x, 3.0),
        lambda: func.jacrev(lambda x: x * x)(3.0),
        lambda: func.linearize(lambda x: x * x, 3.0),
    ):
        with pytest.raises(ValueError, match="Thing passed to transform API must be Tensor, got <class 'float'>"):
            call()
    with pytest.raises(RuntimeError, match="Expected primals to only contain Tensors"):
        func.jvp(lambda x: x * x, (3.0,), (1.0,))
    with pytest.raises(RuntimeError, match="Expected tangents to only contain Tensors"):
        func.jvp(lambda x: x * x, (x,), (1.0,))


def test_integers_that_are_to_require_grad_are_pytorchs_errors() -> None:
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype"):
        torch.tensor([1, 2], requires_grad=True)
    with pytest.raises(RuntimeError, match="only Tensors of floating point and complex dtype"):
        torch.tensor([1]).requires_grad = True
    with pytest.raises(RuntimeError, match="only Tensors of floating point dtype"):
        torch.tensor([1]).requires_grad_()


def in_no_grad(x: Any, transform: Any) -> Any:
    with torch.no_grad():
        return transform(x)


UNRECORDED: dict[str, tuple[Any, float]] = {
    "a gradient": (lambda x, f: in_no_grad(x, f.grad(lambda y: y**3)) * x, 6.75),
    "its value": (lambda x, f: in_no_grad(x, f.grad_and_value(lambda y: y**3))[1] * x, 3.375),
    "its auxiliary output": (lambda x, f: in_no_grad(x, f.grad(lambda y: (y, y**3), has_aux=True))[1] * x, 3.375),
    "jvp": (lambda x, f: sum(in_no_grad(x, lambda x: f.jvp(lambda y: y**3, (x,), (x,)))) * x, 13.5),
    "the value of vjp": (lambda x, f: in_no_grad(x, lambda x: f.vjp(lambda y: y**3, x))[0] * x, 3.375),
    "a pullback made there": (lambda x, f: in_no_grad(x, lambda x: f.vjp(lambda y: y**3, x))[1](x)[0], 20.25),
    "a pullback called there": (lambda x, f: in_no_grad(x, f.vjp(lambda y: y**3, x)[1])[0] * x, 10.125),
    "a Jacobian": (lambda x, f: in_no_grad(x, f.jacrev(lambda y: y**3)) * x, 6.75),
    "vmap": (lambda x, f: in_no_grad(x, lambda x: f.vmap(lambda y: y * x)(torch.ones(3))).sum() * x, 4.5),
}
"""Functions of x, and their derivatives at 1.5 in PyTorch."""


@pytest.mark.parametrize("what", UNRECORDED)
def test_transforms_in_no_grad_are_constants_of_the_transform_around(what: str) -> None:
    """They were differentiated as if `no_grad` were not there."""
    function, expected = UNRECORDED[what]
    assert torch.func.grad(lambda x: function(x, torch.func))(torch.tensor(1.5)).item() == expected
    x = torch.tensor([1.5], requires_grad=True)
    slopes = torch.func.vmap(torch.func.grad(lambda x: function(x, torch.func)))(x)
    assert slopes.detach().tolist() == [expected]


def whole(x: Any) -> Any:
    y = x * torch.ones(3)
    in_no_grad(x, y.mul_)
    return (y * y).sum()


def part(x: Any) -> Any:
    y = x * torch.ones(3)
    in_no_grad(x * x, lambda v: y[:1].fill_(0.0).add_(v))
    return (y * torch.tensor([1.0, 2.0, 3.0])).sum()


def infinite(x: Any) -> Any:
    y = 3 * x
    in_no_grad(math.inf, y.add_)
    return y


@pytest.mark.parametrize(("function", "first", "second"), [(whole, 13.5, 6.0), (part, 6.0, 0.0), (infinite, 3.0, 0.0)])
def test_a_write_in_no_grad_leaves_the_history_of_the_tensor(function: Any, first: float, second: float) -> None:
    """The writes were differentiated."""
    grad, x = torch.func.grad, torch.tensor(1.5)
    assert (grad(function)(x).item(), grad(grad(function))(x).item()) == (first, second)
    assert torch.func.jvp(function, (x,), (torch.tensor(1.0),))[1].item() == first


def test_vmap_places_outputs_as_pytorch_does() -> None:
    vmap, x = torch.func.vmap, torch.arange(6.0).reshape(2, 3)
    assert vmap(lambda x: x, out_dims=(1,))(x).tolist() == x.T.tolist()
    assert vmap(lambda x: x, out_dims=(1,), chunk_size=1)(x).tolist() == x.T.tolist()
    found = vmap(lambda x: (x.sum(), "text", None), out_dims=(0, None, 0))(x)
    assert found[0].tolist() == [3, 12] and found[1:] == ("text", None)
    assert vmap(lambda x: x * 0 + 2, out_dims=None)(x).tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match="can not return a BatchedTensor"):
        vmap(lambda x: x, out_dims=None)(x)  # was the first example
    for dims in ("text", (1.0,), (True,)):
        with pytest.raises(ValueError, match="must be an int, None or a python collection"):
            vmap(lambda x: x, out_dims=dims)(x)
