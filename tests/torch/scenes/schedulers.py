"""Learning-rate schedules: the rates of 22 steps, the state, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.torch.observing import Scene, outcome, warned

STEPS = 22


def optimizer_of(torch: Any, name: str = "SGD") -> Any:
    """Two groups with rates of their own."""
    given = [torch.ones(2).requires_grad_(), torch.ones(3).requires_grad_()]
    options = {"momentum": 0.9} if name in ("SGD", "RMSprop") else {}
    return getattr(torch.optim, name)([{"params": given[:1]}, {"params": given[1:], "lr": 0.3}], lr=0.1, **options)


def settings(optimizer: Any) -> list[Any]:
    return [[g["lr"], g.get("momentum"), g.get("betas")] for g in optimizer.param_groups]


class Decay:
    """A function of the epoch with attributes."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, epoch: int) -> float:
        return float(self.factor**epoch)


MAKERS: dict[str, Callable[[Any, Any], Any]] = {
    "lambda": lambda s, o: s.LambdaLR(o, lambda epoch: 0.9**epoch),
    "lambdas": lambda s, o: s.LambdaLR(o, [lambda epoch: 1 / (1 + epoch), Decay(0.8)]),
    "multiplicative": lambda s, o: s.MultiplicativeLR(o, lambda epoch: 0.95),
    "step": lambda s, o: s.StepLR(o, 4, gamma=0.3),
    "multi step": lambda s, o: s.MultiStepLR(o, [3, 7, 7, 15], gamma=0.5),
    "constant": lambda s, o: s.ConstantLR(o, factor=0.25, total_iters=6),
    "linear": lambda s, o: s.LinearLR(o, start_factor=0.1, end_factor=0.8, total_iters=9),
    "linear up": lambda s, o: s.LinearLR(o),
    "exponential": lambda s, o: s.ExponentialLR(o, 0.85),
    "polynomial": lambda s, o: s.PolynomialLR(o, total_iters=12, power=1.7),
    "cosine": lambda s, o: s.CosineAnnealingLR(o, 7, eta_min=0.01),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, eta_min=0.001),
    "restarts even": lambda s, o: s.CosineAnnealingWarmRestarts(o, 5),
    "one cycle": lambda s, o: s.OneCycleLR(o, 0.5, total_steps=25),
    "one cycle linear": lambda s, o: s.OneCycleLR(
        o, [0.5, 0.7], epochs=5, steps_per_epoch=6, anneal_strategy="linear", pct_start=0.4, div_factor=10
    ),
    "one cycle three": lambda s, o: s.OneCycleLR(o, 0.5, total_steps=24, three_phase=True, base_momentum=0.7),
    "one cycle rates only": lambda s, o: s.OneCycleLR(o, 0.5, total_steps=24, cycle_momentum=False),
    "cyclic": lambda s, o: s.CyclicLR(o, 0.05, 0.4, step_size_up=4),
    "cyclic 2": lambda s, o: s.CyclicLR(o, [0.05, 0.1], 0.4, step_size_up=3, step_size_down=5, mode="triangular2"),
    "cyclic exp": lambda s, o: s.CyclicLR(o, 0.05, 0.4, step_size_up=4, mode="exp_range", gamma=0.95),
    "cyclic own": lambda s, o: s.CyclicLR(o, 0.05, 0.4, 4, scale_fn=lambda x: 1 / x, cycle_momentum=False),
    "cyclic iterations": lambda s, o: s.CyclicLR(
        o, 0.05, 0.4, 4, scale_fn=Decay(0.9), scale_mode="iterations", cycle_momentum=False
    ),
    "sequential": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.1, 3), s.ExponentialLR(o, 0.9), s.StepLR(o, 3)], [4, 12]
    ),
    "warm-up and cosine": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, 0.01, 1.0, 5), s.CosineAnnealingLR(o, 15)], [5]
    ),
    "chained": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 5), s.ExponentialLR(o, 0.9)]),
    "chained in sequence": lambda s, o: s.SequentialLR(
        o, [s.ChainedScheduler([s.LinearLR(o), s.StepLR(o, 2)]), s.ExponentialLR(o, 0.5)], [6]
    ),
}


def rates_of(make: Callable[[Any, Any], Any], optimizer_name: str = "SGD") -> Scene:
    """The settings before and after each step; the state at the end."""

    def scene(torch: Any) -> Any:
        optimizer = optimizer_of(torch, optimizer_name)
        schedule = make(torch.optim.lr_scheduler, optimizer)
        path = [settings(optimizer)]
        for _ in range(STEPS):
            optimizer.step()
            schedule.step()
            path.append([*settings(optimizer), schedule.get_last_lr()])
        return [path, state_of(schedule)]

    return scene


def state_of(schedule: Any) -> Any:
    """The state, without what only guards PyTorch's own calls."""

    def cleaned(state: Any) -> Any:
        if isinstance(state, dict):
            return {key: cleaned(x) for key, x in state.items() if key not in ("_get_lr_called_within_step",)}
        return [cleaned(x) for x in state] if isinstance(state, list) else state

    return cleaned(schedule.state_dict())


def resumed(make: Callable[[Any, Any], Any]) -> Scene:
    """After seven steps another schedule takes the state over."""

    def scene(torch: Any) -> Any:
        optimizer = optimizer_of(torch)
        schedule = make(torch.optim.lr_scheduler, optimizer)
        for _ in range(7):
            optimizer.step()
            schedule.step()
        other = optimizer_of(torch)
        again = make(torch.optim.lr_scheduler, other)
        other.load_state_dict(optimizer.state_dict())
        again.load_state_dict(schedule.state_dict())
        path = []
        for _ in range(7):
            other.step()
            again.step()
            path.append(settings(other))
        return path

    return scene


RESUMABLE = ("step", "cosine", "sequential", "chained", "one cycle", "cyclic exp", "lambdas", "restarts")


def plateau(values: list[float], **options: Any) -> Scene:
    def scene(torch: Any) -> Any:
        optimizer = optimizer_of(torch)
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
        path = []
        for value in values:
            optimizer.step()
            schedule.step(torch.tensor(value))
            path.append([*schedule.get_last_lr(), float(schedule.best), schedule.num_bad_epochs])
        return [path, schedule.state_dict()]

    return scene


FALLING = [1.0, 0.9, 0.8, 0.8, 0.8, 0.79999, 0.9, 0.9, 0.7, 0.7, 0.7, 0.7, 0.71, 0.71, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6]


def last_epoch(torch: Any) -> Any:
    """Schedules that begin in the middle."""
    found = []
    for make in (
        lambda s, o: s.ExponentialLR(o, 0.9, last_epoch=5),
        lambda s, o: s.StepLR(o, 3, last_epoch=5),
        lambda s, o: s.CosineAnnealingLR(o, 10, last_epoch=5),
        lambda s, o: s.LinearLR(o, total_iters=10, last_epoch=5),
        lambda s, o: s.PolynomialLR(o, total_iters=10, last_epoch=5),
        lambda s, o: s.MultiplicativeLR(o, lambda e: 0.9, last_epoch=5),
    ):
        optimizer = optimizer_of(torch)
        for group in optimizer.param_groups:
            group["initial_lr"] = group["lr"] * 2
        schedule = make(torch.optim.lr_scheduler, optimizer)
        path = [settings(optimizer)]
        for _ in range(3):
            schedule.step()
            path.append(settings(optimizer))
        found.append(path)
    return found


def to_an_epoch(torch: Any) -> Any:
    """``step(epoch)``: rates in closed form, and on from there."""
    found = {}
    for name in (
        "step",
        "multi step",
        "constant",
        "linear",
        "exponential",
        "polynomial",
        "cosine",
        "lambda",
        "restarts",
    ):
        optimizer = optimizer_of(torch)
        schedule = MAKERS[name](torch.optim.lr_scheduler, optimizer)
        path = []
        for epoch in (4, 8, None, 1, None):
            optimizer.step()
            schedule.step() if epoch is None else schedule.step(epoch)
            path.append(schedule.get_last_lr())
        found[name] = path
    return found


def warnings_of(torch: Any) -> Any:
    s = torch.optim.lr_scheduler
    too_early = s.StepLR(optimizer_of(torch), 3)
    optimizer = optimizer_of(torch)
    in_order = s.StepLR(optimizer, 3)
    optimizer.step()
    return [warned(too_early.step), warned(in_order.step), warned(lambda: in_order.step(5))]


def added_group(torch: Any) -> Any:
    """A group that comes later, with one lower bound for all or a list of them."""
    found = []
    for low in (0.01, [0.01, 0.02]):
        optimizer = optimizer_of(torch)
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=low)
        optimizer.add_param_group({"params": [torch.ones(1).requires_grad_()]})
        schedule.step(1.0)
        found.append(outcome(lambda schedule=schedule: schedule.step(2.0))[:1] if isinstance(low, list) else None)
        if not isinstance(low, list):
            schedule.step(2.0)
            found.append(schedule.get_last_lr())
    return found


ERRORS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "no optimizer": lambda t, s, o: s.StepLR(3, 3),
    "no initial rate": lambda t, s, o: s.StepLR(o, 3, last_epoch=2),
    "too many functions": lambda t, s, o: s.LambdaLR(o, [abs, abs, abs]),
    "no function": lambda t, s, o: s.MultiplicativeLR(o, 3),
    "constant factor": lambda t, s, o: s.ConstantLR(o, 2),
    "linear start": lambda t, s, o: s.LinearLR(o, 0),
    "linear end": lambda t, s, o: s.LinearLR(o, 1, 2),
    "one cycle steps": lambda t, s, o: s.OneCycleLR(o, 0.1),
    "one cycle total": lambda t, s, o: s.OneCycleLR(o, 0.1, total_steps=-1),
    "one cycle epochs": lambda t, s, o: s.OneCycleLR(o, 0.1, epochs=0, steps_per_epoch=3),
    "one cycle share": lambda t, s, o: s.OneCycleLR(o, 0.1, 10, pct_start=2),
    "one cycle way": lambda t, s, o: s.OneCycleLR(o, 0.1, 10, anneal_strategy="x"),
    "one cycle momentum": lambda t, s, o: s.OneCycleLR(optimizer_of(t, "Adagrad"), 0.1, 10),
    "one cycle too far": lambda t, s, o: (
        [s.OneCycleLR(o, 0.1, total_steps=2).step() for _ in [0]]
        and [x.step() for x in [s.OneCycleLR(o, 0.1, total_steps=2)] * 3]
    ),
    "peaks": lambda t, s, o: s.OneCycleLR(o, [0.1, 0.2, 0.3], 10),
    "cyclic mode": lambda t, s, o: s.CyclicLR(o, 0.1, 0.2, mode="x"),
    "cyclic momentum": lambda t, s, o: s.CyclicLR(optimizer_of(t, "Adagrad"), 0.1, 0.2),
    "restart length": lambda t, s, o: s.CosineAnnealingWarmRestarts(o, 0),
    "restart factor": lambda t, s, o: s.CosineAnnealingWarmRestarts(o, 3, 0),
    "restart epoch": lambda t, s, o: s.CosineAnnealingWarmRestarts(o, 3).step(-1),
    "plateau mode": lambda t, s, o: s.ReduceLROnPlateau(o, "x"),
    "plateau factor": lambda t, s, o: s.ReduceLROnPlateau(o, factor=1.0),
    "plateau bounds": lambda t, s, o: s.ReduceLROnPlateau(o, min_lr=[1, 2, 3]),
    "plateau threshold": lambda t, s, o: s.ReduceLROnPlateau(o, threshold_mode="x"),
    "plateau metric": lambda t, s, o: s.ReduceLROnPlateau(o).step(),
    "none in sequence": lambda t, s, o: s.SequentialLR(o, [], []),
    "milestones": lambda t, s, o: s.SequentialLR(o, [s.StepLR(o, 3)], [1]),
    "plateau in sequence": lambda t, s, o: s.SequentialLR(o, [s.ReduceLROnPlateau(o), s.StepLR(o, 3)], [1]),
    "none chained": lambda t, s, o: s.ChainedScheduler([]),
}


def errors(torch: Any) -> Any:
    s = torch.optim.lr_scheduler
    found = {name: outcome(lambda f=f: f(torch, s, optimizer_of(torch))) for name, f in ERRORS.items()}
    return {name: fact[:1] if name == "plateau metric" else fact for name, fact in found.items()}


def other_optimizer(torch: Any) -> Any:
    s = torch.optim.lr_scheduler
    return outcome(lambda: s.ChainedScheduler([s.StepLR(optimizer_of(torch), 3), s.StepLR(optimizer_of(torch), 3)]))[:1]


SCENES: dict[str, Scene] = {
    **{name: rates_of(make) for name, make in MAKERS.items()},
    "one cycle adam": rates_of(MAKERS["one cycle"], "Adam"),
    "cyclic adam": rates_of(MAKERS["cyclic"], "AdamW"),
    **{f"resumed {name}": resumed(MAKERS[name]) for name in RESUMABLE},
    "plateau": plateau(FALLING, patience=2, factor=0.5),
    "plateau max": plateau([-x for x in FALLING], mode="max", patience=1, threshold=0.05),
    "plateau abs": plateau(FALLING, patience=1, threshold=0.05, threshold_mode="abs", cooldown=2),
    "plateau max abs": plateau(FALLING[::-1], mode="max", patience=0, threshold_mode="abs", min_lr=[0.01, 0.02]),
    "plateau eps": plateau(FALLING, patience=0, eps=0.06),
    "last epoch": last_epoch,
    "to an epoch": to_an_epoch,
    "warnings": warnings_of,
    "added group": added_group,
    "errors": errors,
    "other optimizer": other_optimizer,
}
