"""Optimisers: where parameters go in ten steps, what the state holds, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.torch.observing import Scene, outcome, warned

STEPS = 10


def parameters(torch: Any, dtype: Any = None) -> list[Any]:
    kind = torch.float32 if dtype is None else dtype
    first = torch.arange(6, dtype=torch.float32).reshape(2, 3) / 5 - 0.4
    second = torch.tensor([0.3, -1.2], dtype=torch.float32)
    return [x.to(kind).requires_grad_() for x in (first, second)]


def loss_of(torch: Any, given: list[Any]) -> Any:
    """Smooth, with curvature, and with gradients of different sizes."""
    first, second = given
    return (torch.sin(first * 2) * first).sum() + 3 * ((second - 1) ** 4).mean() + (first[0, :2] * second).sum()


def trajectory(torch: Any, optimizer: Any, given: list[Any], steps: int = STEPS) -> list[Any]:
    path = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(torch, given).backward()
        optimizer.step()
        path.append([x.detach().clone() for x in given])
    return path


def path_of(name: str, dtype: str = "float32", **options: Any) -> Scene:
    """The parameters after each step, and the state after the last one."""

    def scene(torch: Any) -> Any:
        given = parameters(torch, getattr(torch, dtype))
        optimizer = getattr(torch.optim, name)(given, **options)
        path = trajectory(torch, optimizer, given)
        return {"path": path[::3], "last": path[-1], "state": optimizer.state_dict()}

    return scene


SGD = {"lr": 0.02}
PATHS: dict[str, Scene] = {
    "sgd": path_of("SGD", **SGD),
    "sgd momentum": path_of("SGD", momentum=0.9, **SGD),
    "sgd dampening": path_of("SGD", momentum=0.9, dampening=0.3, **SGD),
    "sgd nesterov": path_of("SGD", momentum=0.8, nesterov=True, **SGD),
    "sgd weight decay": path_of("SGD", weight_decay=0.1, momentum=0.5, **SGD),
    "sgd maximize": path_of("SGD", maximize=True, weight_decay=0.1, lr=1e-3),
    "sgd double": path_of("SGD", "float64", momentum=0.9, **SGD),
    "adam": path_of("Adam", lr=0.05),
    "adam betas": path_of("Adam", lr=0.05, betas=(0.5, 0.7), eps=1e-3),
    "adam weight decay": path_of("Adam", lr=0.05, weight_decay=0.1),
    "adam decoupled": path_of("Adam", lr=0.05, weight_decay=0.1, decoupled_weight_decay=True),
    "adam amsgrad": path_of("Adam", lr=0.2, amsgrad=True, betas=(0.3, 0.3)),
    "adam maximize": path_of("Adam", lr=0.01, maximize=True),
    "adam double": path_of("Adam", "float64", lr=0.05),
    "adamw": path_of("AdamW", lr=0.05),
    "adamw weight decay": path_of("AdamW", lr=0.05, weight_decay=0.3, amsgrad=True),
    "adamw maximize": path_of("AdamW", lr=0.01, maximize=True),
    "rmsprop": path_of("RMSprop", lr=0.01),
    "rmsprop centred": path_of("RMSprop", lr=0.01, centered=True),
    "rmsprop momentum": path_of("RMSprop", lr=0.01, momentum=0.8, alpha=0.9, eps=1e-4),
    "rmsprop all": path_of("RMSprop", lr=0.01, momentum=0.8, centered=True, weight_decay=0.1, maximize=True),
    "adagrad": path_of("Adagrad", lr=0.1),
    "adagrad decay": path_of("Adagrad", lr=0.1, lr_decay=0.2, weight_decay=0.1),
    "adagrad start": path_of("Adagrad", lr=0.1, initial_accumulator_value=0.5, eps=1e-3, maximize=True),
    "adadelta": path_of("Adadelta"),
    "adadelta all": path_of("Adadelta", lr=0.5, rho=0.8, weight_decay=0.1, maximize=True),
    "adamax": path_of("Adamax", lr=0.05),
    "adamax weight decay": path_of("Adamax", "float64", lr=0.05, betas=(0.5, 0.6), weight_decay=0.1),
    "nadam": path_of("NAdam", lr=0.05),
    "nadam decoupled": path_of("NAdam", lr=0.05, weight_decay=0.1, momentum_decay=0.1, decoupled_weight_decay=True),
    "radam": path_of("RAdam", lr=0.05),
    "radam decoupled": path_of("RAdam", lr=0.05, betas=(0.9, 0.7), weight_decay=0.1, decoupled_weight_decay=True),
    "rprop": path_of("Rprop"),
    "rprop bounded": path_of("Rprop", lr=0.1, etas=(0.3, 1.5), step_sizes=(1e-3, 0.2)),
    "asgd": path_of("ASGD", lr=0.01),
    "asgd averaged": path_of("ASGD", lr=0.01, t0=3, lambd=0.1, alpha=0.5, weight_decay=0.1),
}


def searched(**options: Any) -> Scene:
    """L-BFGS on a curved valley: the losses of all evaluations, where it ends, and how often it looked."""

    def scene(torch: Any) -> Any:
        given = parameters(torch, torch.float64)
        optimizer = torch.optim.LBFGS(given, **options)
        losses: list[float] = []

        def closure() -> Any:
            optimizer.zero_grad()
            first, second = given
            loss = ((1 - first) ** 2 + 10 * (first.roll(1) - first**2) ** 2).sum() + ((second - 1) ** 4).sum()
            loss.backward()
            losses.append(float(loss))
            return loss

        ends = [optimizer.step(closure) for _ in range(3)]
        state = next(iter(optimizer.state.values()))
        return {"losses": losses, "ends": ends, "given": given, "counts": [state["func_evals"], state["n_iter"]]}

    return scene


SEARCHED: dict[str, Scene] = {
    "lbfgs": searched(lr=0.1),
    "lbfgs few steps": searched(lr=0.05, max_iter=3, history_size=2),
    "lbfgs one step": searched(max_iter=1),
    "lbfgs strong wolfe": searched(line_search_fn="strong_wolfe", max_iter=8),
    "lbfgs long steps": searched(line_search_fn="strong_wolfe", lr=5.0, max_iter=4),
    "lbfgs short steps": searched(line_search_fn="strong_wolfe", lr=1e-3, max_iter=3, max_eval=4),
}


def complex_path(name: str, **options: Any) -> Scene:
    """Complex parameters: the adaptive methods treat real and imaginary parts by themselves."""

    def scene(torch: Any) -> Any:
        given = torch.tensor([1 + 2j, -0.5 + 0.1j], dtype=torch.complex64).requires_grad_()
        optimizer = getattr(torch.optim, name)([given], **options)
        for k in range(4):
            given.grad = torch.tensor([1 + 1j * k, 2 - 3j], dtype=torch.complex64)
            optimizer.step()
        return [given, optimizer.state_dict()["state"]]

    return scene


COMPLEX: dict[str, Scene] = {
    "complex sgd": complex_path("SGD", lr=0.1, momentum=0.9, weight_decay=0.1),
    "complex adam": complex_path("Adam", lr=0.1, amsgrad=True, weight_decay=0.1),
    "complex adamw": complex_path("AdamW", lr=0.1),
    "complex rmsprop": complex_path("RMSprop", lr=0.1, momentum=0.5, centered=True),
    "complex adagrad": complex_path("Adagrad", lr=0.1, initial_accumulator_value=0.2),
    "complex adadelta": complex_path("Adadelta", weight_decay=0.1),
    "complex adamax": complex_path("Adamax", lr=0.1),
    "complex nadam": complex_path("NAdam", lr=0.1),
    "complex radam": complex_path("RAdam", lr=0.1),
    "complex rprop": complex_path("Rprop", lr=0.1),
    "complex asgd": complex_path("ASGD", lr=0.1),
}


def groups(torch: Any) -> Any:
    first, second = parameters(torch)
    optimizer = torch.optim.SGD([{"params": [first]}, {"params": second, "lr": 0.5, "momentum": 0.9}], lr=0.01)
    optimizer.add_param_group({"params": [torch.ones(2).requires_grad_()], "weight_decay": 0.1})
    path = trajectory(torch, optimizer, [first, second], 3)
    return [path[-1], optimizer.state_dict(), optimizer.defaults, repr(optimizer)]


def resumed(name: str, **options: Any) -> Scene:
    """Half the way, then on with another optimiser that takes the state over."""

    def scene(torch: Any) -> Any:
        given = parameters(torch)
        optimizer = getattr(torch.optim, name)(given, **options)
        trajectory(torch, optimizer, given, 4)
        other = getattr(torch.optim, name)(given, lr=7.0)
        other.load_state_dict(optimizer.state_dict())
        return [trajectory(torch, other, given, 3), other.state_dict()["param_groups"]]

    return scene


def closure(torch: Any) -> Any:
    given = parameters(torch)
    optimizer = torch.optim.SGD(given, lr=0.01)

    def evaluate() -> Any:
        optimizer.zero_grad()
        loss = loss_of(torch, given)
        loss.backward()
        return loss

    with torch.no_grad():
        found = [optimizer.step(evaluate), optimizer.step(closure=evaluate)]
    return [found, given, optimizer.step()]


def zeroed(torch: Any) -> Any:
    first, second = parameters(torch)
    optimizer = torch.optim.SGD([first, second], lr=0.1)
    first.grad = torch.ones(2, 3)
    held = first.grad
    optimizer.zero_grad(set_to_none=False)
    kept = [held, first.grad is held, second.grad is None]
    optimizer.zero_grad()
    return [*kept, first.grad is None]


def hooks(torch: Any) -> Any:
    given = parameters(torch)
    optimizer = torch.optim.SGD(given, lr=0.1)
    calls: list[Any] = []
    before = optimizer.register_step_pre_hook(lambda o, args, kwargs: calls.append(["pre", o is optimizer, len(args)]))
    after = optimizer.register_step_post_hook(lambda o, args, kwargs: calls.append(["post", len(args), dict(kwargs)]))
    optimizer.step()
    before.remove()
    optimizer.step(closure=None)
    after.remove()
    optimizer.step()
    optimizer.register_step_pre_hook(lambda o, args, kwargs: ((o, lambda: 3.5), {}))
    result = optimizer.step()
    optimizer.register_step_pre_hook(lambda o, args, kwargs: 3)
    kind = outcome(optimizer.step)[0]
    return [calls, result, kind]


def unused(torch: Any) -> Any:
    """A parameter without a gradient has no state and stays."""
    first, second = parameters(torch)
    optimizer = torch.optim.Adam([first, second], lr=0.1)
    second.grad = torch.ones(2)
    optimizer.step()
    return [first, second, optimizer.state_dict()["state"]]


def tensor_rate(torch: Any) -> Any:
    given = parameters(torch)
    rate = torch.tensor(0.05)
    optimizer = torch.optim.SGD(given, lr=rate)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
    path = []
    for _ in range(5):
        trajectory(torch, optimizer, given, 1)
        schedule.step()
        path.append(float(rate))
    return [path, optimizer.param_groups[0]["lr"] is rate, repr(optimizer), given]


def own_optimizer(torch: Any) -> Any:
    """An optimiser of the user's own, with state."""

    class Signed(torch.optim.Optimizer):  # type: ignore[misc, name-defined]
        def __init__(self, params: Any, lr: float = 0.1) -> None:
            super().__init__(params, {"lr": lr})

        @torch.no_grad()
        def step(self, closure: Callable[[], Any] | None = None) -> None:
            for group in self.param_groups:
                for p in group["params"]:
                    count = self.state[p].get("count", 0) + 1
                    self.state[p]["count"] = count
                    p.add_(p.grad.sign(), alpha=-group["lr"] / count)

    given = parameters(torch)
    optimizer = Signed(given)
    calls: list[int] = []
    optimizer.register_step_post_hook(lambda *_: calls.append(1))
    return [trajectory(torch, optimizer, given, 3)[-1], optimizer.state_dict(), len(calls)]


ERRORS: dict[str, Callable[[Any, Any, list[Any]], Any]] = {
    "a tensor": lambda torch, o, p: o.SGD(p[0], lr=0.1),
    "nothing": lambda torch, o, p: o.SGD([], lr=0.1),
    "a number": lambda torch, o, p: o.SGD([1.0]),
    "no leaf": lambda torch, o, p: o.SGD([p[0] * 2]),
    "a set": lambda torch, o, p: o.SGD([{"params": {p[0]}}]),
    "twice": lambda torch, o, p: o.SGD([{"params": [p[0]]}, {"params": [p[0]]}]),
    "some names": lambda torch, o, p: o.SGD([("a", p[0]), p[1]]),
    "a group without names": lambda torch, o, p: o.SGD([("a", p[0])]).add_param_group({"params": [p[1]]}),
    "group is a list": lambda torch, o, p: o.SGD(p).add_param_group([1]),
    "other groups": lambda torch, o, p: o.SGD(p).load_state_dict(
        o.SGD([{"params": [p[0]]}, {"params": [p[1]]}]).state_dict()
    ),
    "other sizes": lambda torch, o, p: o.SGD(p).load_state_dict(o.SGD(p[:1]).state_dict()),
    "rate": lambda torch, o, p: o.SGD(p, lr=-1),
    "rate of two": lambda torch, o, p: o.Adam(p, lr=torch.tensor([0.1, 0.2])),
    "momentum": lambda torch, o, p: o.SGD(p, momentum=-1),
    "decay": lambda torch, o, p: o.SGD(p, weight_decay=-1),
    "nesterov": lambda torch, o, p: o.SGD(p, nesterov=True),
    "nesterov dampened": lambda torch, o, p: o.SGD(p, nesterov=True, momentum=0.1, dampening=0.1),
    "beta 0": lambda torch, o, p: o.Adam(p, betas=(1.0, 0.9)),
    "beta 1": lambda torch, o, p: o.AdamW(p, betas=(0.9, -0.1)),
    "eps": lambda torch, o, p: o.Adam(p, eps=-1),
    "alpha": lambda torch, o, p: o.RMSprop(p, alpha=-1),
    "rmsprop momentum": lambda torch, o, p: o.RMSprop(p, momentum=-0.1),
    "lr_decay": lambda torch, o, p: o.Adagrad(p, lr_decay=-1),
    "start": lambda torch, o, p: o.Adagrad(p, initial_accumulator_value=-1),
    "rho": lambda torch, o, p: o.Adadelta(p, rho=1.1),
    "eta values": lambda torch, o, p: o.Rprop(p, etas=(1.1, 0.5)),
    "momentum_decay": lambda torch, o, p: o.NAdam(p, momentum_decay=-1),
    "lbfgs groups": lambda torch, o, p: o.LBFGS([{"params": [x]} for x in p]),
    "lbfgs search": lambda torch, o, p: o.LBFGS(p, line_search_fn="armijo").step(
        lambda: [setattr(x, "grad", torch.ones_like(x)) for x in p] and torch.tensor(1.0)
    ),
}


def errors(torch: Any) -> Any:
    return {name: outcome(lambda f=f: f(torch, torch.optim, parameters(torch))) for name, f in ERRORS.items()}


def texts(torch: Any) -> Any:
    found = []
    for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad"):
        optimizer = getattr(torch.optim, name)([("weight", torch.ones(2).requires_grad_())])
        found.append([repr(optimizer), optimizer.defaults, optimizer.state_dict()])
    return found


def doubled(torch: Any) -> Any:
    x = torch.ones(2).requires_grad_()
    return warned(lambda: torch.optim.SGD([x, x], lr=0.1))


SCENES: dict[str, Scene] = {
    **PATHS,
    **COMPLEX,
    **SEARCHED,
    "groups": groups,
    "resumed sgd": resumed("SGD", lr=0.02, momentum=0.9),
    "resumed adam": resumed("Adam", lr=0.05, amsgrad=True),
    "resumed rmsprop": resumed("RMSprop", lr=0.01, centered=True, momentum=0.5),
    "resumed adagrad": resumed("Adagrad", lr=0.1, lr_decay=0.1),
    "resumed nadam": resumed("NAdam", lr=0.05),
    "resumed rprop": resumed("Rprop", lr=0.05),
    "closure": closure,
    "zeroed": zeroed,
    "hooks": hooks,
    "unused": unused,
    "tensor rate": tensor_rate,
    "own optimizer": own_optimizer,
    "errors": errors,
    "texts": texts,
    "doubled": doubled,
}
