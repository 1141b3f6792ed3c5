"""Functions of the user's own: what they get, what they may return, and the words of the errors."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import srcgrad.torch as torch
from tests.torch import sessions

SESSIONS: dict[str, str] = {
    "a function and its node": """
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.factor = 3
        print(ctx.needs_input_grad, torch.is_grad_enabled())
        return x**3
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        print(torch.is_grad_enabled(), g)
        return g * ctx.factor * x**2
x = torch.tensor([1., 2.], requires_grad=True)
y = Cube.apply(x)
print(y, y.grad_fn.name(), type(y.grad_fn).__name__, y.grad_fn.factor, y.grad_fn.next_functions[0][0].name())
y.sum().backward()
print(x.grad)
print(raised(lambda: y.sum().backward()))
print(Cube.apply(torch.ones(2)))
with torch.no_grad():
    print(Cube.apply(x))
g, = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
print(g.requires_grad, torch.autograd.grad(g.sum(), x))
print(warned(lambda: Cube()))
""",
    "setup_context": """
class Mul(torch.autograd.Function):
    @staticmethod
    def forward(x, y, scale):
        return x * y * scale, x + y
    @staticmethod
    def setup_context(ctx, inputs, output):
        x, y, scale = inputs
        ctx.save_for_backward(x, y, output[0])
        ctx.scale = scale
    @staticmethod
    def backward(ctx, g, h):
        x, y, out = ctx.saved_tensors
        print(out, ctx.needs_input_grad)
        return g * y * ctx.scale + h, g * x * ctx.scale + h, None
x, y = torch.tensor(2., requires_grad=True), torch.tensor(3., requires_grad=True)
a, b = Mul.apply(x, y, 10)
print(a, b, a.output_nr, b.output_nr, a.grad_fn is b.grad_fn)
(a + b).backward()
print(x.grad, y.grad)
x.grad = None
Mul.apply(x, y.detach(), 10)[1].backward()
print(x.grad)
""",
    "none and undefined gradients": """
class Two(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y, mat):
        ctx.set_materialize_grads(mat)
        return x * 2, y * 3
    @staticmethod
    def backward(ctx, g, h):
        print(g, h)
        return (None if g is None else g * 2), None, None
x, y = torch.tensor(1., requires_grad=True), torch.tensor(1., requires_grad=True)
for mat in (True, False):
    a, b = Two.apply(x, y, mat)
    b.backward()
    print(x.grad, y.grad)
a, b = Two.apply(x, y, True)
print(torch.autograd.grad(a, [x, y], allow_unused=True))
""",
    "what backward returns": """
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n, returned):
        ctx.returned = returned
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return ctx.returned(g)
x = torch.tensor([1., 2.], requires_grad=True)
def run(returned):
    x.grad = None
    F.apply(x, 3, returned).sum().backward()
    return x.grad
print(raised(lambda: run(lambda g: g)))
print(raised(lambda: run(lambda g: (g, g, None))))
print(raised(lambda: run(lambda g: (3, None, None))))
print(raised(lambda: run(lambda g: (torch.ones(3), None, None))))
print(run(lambda g: (torch.ones(4, 2), None, None)))
print(run(lambda g: (g.double() * 3, None, None)))
print(run(lambda g: (g, None, None, None)))
print(run(lambda g: (None, None, None)))
""",
    "inputs returned": """
class Id(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x
    @staticmethod
    def backward(ctx, g):
        return g * 7
x = torch.tensor([1., 2.], requires_grad=True)
y = Id.apply(x)
print(y is x, y, y.data_ptr() == x.data_ptr())
y.sum().backward()
print(x.grad)
print(raised(lambda: Id.apply(x).mul_(2)))
class View(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view(2, 1)
    @staticmethod
    def backward(ctx, g):
        return g.view(2) * 5
x.grad = None
View.apply(x * 1).sum().backward()
print(x.grad)
""",
    "dirty": """
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x
    @staticmethod
    def backward(ctx, g):
        return g * 2
x = torch.tensor([1., 2.], requires_grad=True)
y = x * 3
z = Double.apply(y)
print(z is y, y, y.grad_fn.name(), y._version)
y.sum().backward()
print(x.grad)
print(raised(lambda: Double.apply(x)))
a = x * 1
Double.apply(a[:1])
print(a)
class Bad(Double):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x * 2
print(raised(lambda: Bad.apply(x * 1)))
""",
    "non differentiable": """
class Sort(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        mask = (x > 1).to(x.dtype)
        rank = (x > 1).long()
        ctx.mark_non_differentiable(mask)
        ctx.save_for_backward(mask)
        return x * mask, mask, rank
    @staticmethod
    def backward(ctx, g, h, i):
        mask, = ctx.saved_tensors
        print(h, i)
        return g * mask
x = torch.tensor([1., 2.], requires_grad=True)
y, mask, rank = Sort.apply(x)
print(y, mask, rank, mask.requires_grad)
y.sum().backward()
print(x.grad)
""",
    "once differentiable": """
from importlib import import_module
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        x, = ctx.saved_tensors
        print(torch.is_grad_enabled())
        return 2 * x * g
x = torch.tensor([1., 2.], requires_grad=True)
w = torch.tensor([1., 1.], requires_grad=True)
print(torch.autograd.grad(Square.apply(x), x, torch.ones(2)))
g, = torch.autograd.grad((Square.apply(x) * w).sum(), x, create_graph=True)
print(g.requires_grad, raised(lambda: torch.autograd.grad(g.sum(), x)))
""",
    "saved results and double backward": """
class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y
    @staticmethod
    def backward(ctx, g):
        y, = ctx.saved_tensors
        return g * y
x = torch.tensor([0., 1.], requires_grad=True)
y = Exp.apply(x)
d = y.sum()
for _ in range(3):
    d = torch.autograd.grad(d, x, create_graph=True)[0].sum()
    print(d)
z = Exp.apply(x)
with torch.no_grad():
    z.zero_()
print(raised(lambda: z.sum().backward()))
a = x * 1
class Keep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x, None)
        return x * 2
    @staticmethod
    def backward(ctx, g):
        x, nothing = ctx.saved_tensors
        return g * x
b = Keep.apply(a)
a.add_(1)
print(raised(lambda: b.sum().backward()).partition('which')[0])
c = Keep.apply(x)
print(c.grad_fn.saved_tensors[0] is x, c.grad_fn.saved_tensors[1])
""",
    "not implemented": """
class No(torch.autograd.Function):
    pass
x = torch.tensor(1., requires_grad=True)
print(raised(lambda: No.apply(x)))
class Half(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1
print(raised(lambda: Half.apply(x).backward()))
class Save(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(3)
        return x * 1
print(raised(lambda: Save.apply(x)))
class Vjp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1
    @staticmethod
    def vjp(ctx, g):
        return g * 9
Vjp.apply(x).backward()
print(x.grad)
""",
    "straight through, and a masked softmax": """
class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()
    @staticmethod
    def backward(ctx, g):
        return g
x = torch.tensor([0.3, 1.7], requires_grad=True)
(Round.apply(x) ** 2).sum().backward()
print(x.grad)
class Masked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mask):
        e = torch.exp(x - x.max()) * mask
        p = e / e.sum()
        ctx.save_for_backward(p)
        return p
    @staticmethod
    def backward(ctx, g):
        p, = ctx.saved_tensors
        return p * (g - (g * p).sum()), None
x = torch.tensor([1., 2., 3.], requires_grad=True)
p = Masked.apply(x, torch.tensor([1., 0., 1.]))
print(p)
p[0].backward()
print(x.grad)
""",
    "grad inside forward": """
class Inner(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        with torch.enable_grad():
            y = x.detach().requires_grad_()
            z = (y**3).sum()
        ctx.save_for_backward(torch.autograd.grad(z, y)[0])
        return z.detach()
    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]
x = torch.tensor([1., 2.], requires_grad=True)
Inner.apply(x).backward()
print(x.grad)
""",
}


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_prints_what_pytorch_prints(name: str) -> None:
    assert sessions.printed(SESSIONS[name], torch) == sessions.recorded("function")[name]


def test_a_call_and_what_it_saves_die_with_the_result() -> None:
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.exp()
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[1]

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    gc.collect()
    gc.disable()
    try:
        y = Exp.apply(x)
        node, data = weakref.ref(y.grad_fn), weakref.ref(y._data)
        y.sum().backward(retain_graph=True)
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        del y, g
        assert node() is None
        assert data() is None
    finally:
        gc.enable()


def test_several_outputs_of_the_same_memory_accumulate() -> None:
    class Split(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1, x * 2

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return g + 2 * h

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    a, b = Split.apply(x)
    (a * b).sum().backward()
    assert x.grad.tolist() == [4.0, 8.0]


def test_a_function_that_is_called_as_an_object_says_how_it_is_written() -> None:
    class Old(torch.autograd.Function):
        def forward(self, x: Any) -> Any:  # type: ignore[override]
            return x

    with pytest.warns(DeprecationWarning), pytest.raises(RuntimeError, match="non-static forward method"):
        Old()(torch.ones(2))


def test_a_function_with_jvp_alone_has_it_as_its_derivative_in_transforms() -> None:
    """Transforms asked for a backward."""

    class Marked(torch.autograd.Function):
        @staticmethod
        def forward(x: Any, k: int, y: Any) -> Any:
            return x**3 * k, y * 2, x > 0

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_forward(inputs[0])
            ctx.k = inputs[1]
            ctx.mark_non_differentiable(output[2])

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            dx, none, dy = tangents
            assert none is None
            return 5 * ctx.saved_tensors[0] ** 2 * dx * ctx.k, 7 * dy, None

    func, x, y = torch.func, torch.tensor([2.0, 3.0]), torch.tensor([1.0, 4.0])

    def both(x: Any, y: Any) -> Any:
        return Marked.apply(x, 2, y)[:2]

    values, pushed = func.vmap(lambda x, y: func.jvp(both, (x, y), (x, y)))(x, y)
    assert [v.tolist() for v in (*values, *pushed)] == [[16, 54], [2, 8], [80, 270], [7, 28]]
    assert func.jacfwd(both, argnums=(0, 1))(x, y)[0][0].tolist() == [[40, 0], [0, 90]]
    assert func.jvp(lambda x: func.jvp(both, (x, y), (y, y))[1][0], (x,), (x,))[1].tolist() == [80, 720]
