"""L-BFGS: the quasi-Newton method with limited memory (Nocedal and Wright 2006, chapters 3 and 7)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from srcgrad.torch.errors import TensorError, TensorValueError
from srcgrad.torch.graph import moved_on
from srcgrad.torch.modes import enable_grad, no_grad
from srcgrad.torch.optim.algorithms import checked_rate
from srcgrad.torch.optim.optimizer import Optimizer, as_pairs, number
from srcgrad.torch.tensor import Tensor, wrapped


class Point(NamedTuple):
    """What is known at a step along the line: the value, the gradient, and the slope along the direction."""

    step: float
    value: float
    gradient: Any
    slope: float


def cubic_minimum(a: Point, b: Point, low: float, high: float) -> float:
    """Where the cubic through two values and slopes is least within bounds; their middle if it has no minimum."""
    if a.step > b.step:
        a, b = b, a
    if a.step == b.step:
        return (low + high) / 2
    d = a.slope + b.slope - 3 * (a.value - b.value) / (a.step - b.step)
    square = d * d - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2
    root = math.sqrt(square)
    below = b.slope - a.slope + 2 * root
    if below == 0:
        return (low + high) / 2
    return min(max(b.step - (b.step - a.step) * ((b.slope + root - d) / below), low), high)


class Search:
    """A line search under the strong Wolfe conditions: sufficient decrease (``c1``) and little slope (``c2``).

    ``at(step)`` evaluates the function there.
    """

    c1, c2, least = 1e-4, 0.9, 1e-9

    def __init__(self, at: Callable[[float], Point], start: Point, longest: float, trials: int) -> None:
        self.at = at
        self.start = start
        self.longest = longest
        self.trials = trials
        self.evaluations = 0

    def evaluate(self, step: float) -> Point:
        self.evaluations += 1
        return self.at(step)

    def too_high(self, point: Point) -> bool:
        return point.value > self.start.value + self.c1 * point.step * self.start.slope

    def flat(self, point: Point) -> bool:
        return abs(point.slope) <= -self.c2 * self.start.slope

    def run(self, step: float) -> Point:
        """The first point that is good enough, or the best one that was met."""
        before, now = self.start, self.evaluate(step)
        for trial in range(self.trials):
            if (
                self.too_high(now)
                or (trial > 1 and now.value >= before.value)
                or (now.slope >= 0 and not self.flat(now))
            ):
                return self.zoom(before, now, self.trials - trial)
            if self.flat(now):
                return now
            least, most = now.step + 0.01 * (now.step - before.step), now.step * 10
            before, now = now, self.evaluate(cubic_minimum(before, now, least, most))
        return self.start if self.start.value <= now.value else now

    def zoom(self, a: Point, b: Point, trials: int) -> Point:
        """Between two points with a good one between them; ``low`` is always the lower one."""
        low, high = (a, b) if a.value <= b.value else (b, a)
        stuck = False
        for _ in range(trials):
            left, right = sorted((low.step, high.step))
            if (right - left) * self.longest < self.least:
                break
            step = cubic_minimum(low, high, left, right)
            margin = 0.1 * (right - left)
            near = min(right - step, step - left) < margin
            if near and (stuck or step >= right or step <= left):
                step = right - margin if abs(step - right) < abs(step - left) else left + margin
                near = False
            stuck = near
            point = self.evaluate(step)
            if self.too_high(point) or point.value >= low.value:
                high = point
                if high.value < low.value:
                    low, high = high, low
                continue
            if self.flat(point):
                return point
            if point.slope * (high.step - low.step) >= 0:
                high = low
            low = point
        return low


class LBFGS(Optimizer):
    """L-BFGS; ``step(closure)`` takes up to ``max_iter`` iterations, for each of which the closure is called anew.

    Args:
        max_eval: the most calls of the closure in a step; a quarter more than ``max_iter`` unless given.
        tolerance_grad: the largest element of the gradient at which it stops.
        tolerance_change: the change of the parameters, or of the loss, at which it stops.
        history_size: how many of the last steps are kept.
        line_search_fn: ``"strong_wolfe"``; None takes steps of ``lr``.

    >>> import srcgrad.torch as torch
    >>> w = torch.tensor([3.0, -2.0], requires_grad=True)
    >>> optimizer = torch.optim.LBFGS([w], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((w - 1) ** 4).sum()
    ...     loss.backward()
    ...     return loss
    >>> _ = optimizer.step(closure)
    >>> bool(closure() < 1e-5)
    True
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        checked_rate(lr)
        super().__init__(
            params,
            {
                "lr": lr,
                "max_iter": max_iter,
                "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                "tolerance_grad": tolerance_grad,
                "tolerance_change": tolerance_change,
                "history_size": history_size,
                "line_search_fn": line_search_fn,
            },
        )
        if len(self.param_groups) != 1:
            raise TensorValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    # --- all parameters as one vector ----------------------------------------------------------------
    def _gradient(self) -> Any:
        """The gradients of all parameters; where there is none, zeros."""
        found = []
        for parameter in self.param_groups[0]["params"]:
            gradient = parameter._grad
            array = np.zeros_like(parameter._data) if gradient is None else np.ascontiguousarray(gradient._data)
            found.append(as_pairs(array).reshape(-1))
        return np.concatenate(found)

    def _values(self) -> Any:
        parameters = self.param_groups[0]["params"]
        return [parameter._data.copy() for parameter in parameters]

    def _put(self, values: Any, step: float, direction: Any) -> None:
        """Set the parameters to these values and a step."""
        start = 0
        for parameter, value in zip(self.param_groups[0]["params"], values, strict=True):
            moved = as_pairs(np.ascontiguousarray(value)).copy()
            moved += step * direction[start : start + moved.size].reshape(moved.shape)
            start += moved.size
            as_pairs(parameter._data)[...] = moved
            moved_on(parameter._counter)

    # --- a step ---------------------------------------------------------------------------------------
    def step(self, closure: Callable[[], Any]) -> Any:
        """Iterate; the loss at the start is returned.

        Args:
            closure: forgets the gradients, evaluates the model, calls ``backward`` and returns the loss.
        """
        group = self.param_groups[0]
        state = self.state[group["params"][0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        def evaluate() -> Any:
            state["func_evals"] += 1
            with enable_grad():
                return closure()

        with no_grad(), np.errstate(all="ignore"):
            first = evaluate()
            gradient = self._gradient()
            if not np.abs(gradient).max(initial=0) <= group["tolerance_grad"]:
                self._iterate(evaluate, float(first), gradient, state)
        return first

    def _iterate(self, evaluate: Callable[[], Any], value: float, gradient: Any, state: dict[str, Any]) -> None:
        group = self.param_groups[0]
        budget, rate = state["func_evals"] - 1 + group["max_eval"], number(group["lr"])
        for k in range(group["max_iter"]):
            state["n_iter"] += 1
            direction = self._direction(gradient, state)
            state["prev_flat_grad"], state["prev_loss"] = wrapped(gradient.copy()), value
            start = Point(0.0, value, gradient, float(gradient @ direction))
            step = min(1.0, 1.0 / float(np.abs(gradient).sum())) * rate if state["n_iter"] == 1 else rate
            state["d"], state["t"] = wrapped(direction), step
            if start.slope > -group["tolerance_change"]:
                break
            last = k + 1 == group["max_iter"]
            end = self._moved(evaluate, start, direction, step, 0 if last else 1, budget - state["func_evals"])
            value, gradient, state["t"] = end.value, end.gradient, end.step
            if (
                last
                or state["func_evals"] >= budget
                or np.abs(gradient).max(initial=0) <= group["tolerance_grad"]
                or np.abs(direction * end.step).max(initial=0) <= group["tolerance_change"]
                or abs(value - start.value) < group["tolerance_change"]
            ):
                break

    def _moved(
        self, evaluate: Callable[[], Any], start: Point, direction: Any, step: float, calls: int, budget: int
    ) -> Point:
        """Go along the direction: where the parameters are then. Without a search and calls nothing is evaluated."""
        values, search = self._values(), self.param_groups[0]["line_search_fn"]
        if search not in (None, "strong_wolfe"):
            raise TensorError("only 'strong_wolfe' is supported")

        def at(step: float) -> Point:
            self._put(values, step, direction)
            value = float(evaluate())
            gradient = self._gradient()
            return Point(step, value, gradient, float(gradient @ direction))

        if search is None:
            if calls:
                return at(step)
            self._put(values, step, direction)
            return start._replace(step=step)
        end = Search(at, start, float(np.abs(direction).max(initial=0)), budget).run(step)
        self._put(values, end.step, direction)
        return end

    def _direction(self, gradient: Any, state: dict[str, Any]) -> Any:
        """Minus the approximate inverse Hessian times the gradient, by the two loops over the last steps."""
        if state["n_iter"] == 1:
            state["old_dirs"], state["old_stps"], state["ro"], state["H_diag"] = [], [], [], 1
            return -gradient
        changes, steps, ratios = state["old_dirs"], state["old_stps"], state["ro"]
        change = gradient - state["prev_flat_grad"]._data
        moved = state["d"]._data * state["t"]
        curvature = change @ moved
        if curvature > 1e-10:
            if len(changes) == self.param_groups[0]["history_size"]:
                for kept in (changes, steps, ratios):
                    kept.pop(0)
            changes.append(wrapped(change))
            steps.append(wrapped(moved))
            ratios.append(wrapped(np.array(1.0 / curvature)))
            state["H_diag"] = wrapped(np.array(curvature / (change @ change)))
        found = -gradient
        pairs = [(y._data, s._data, r._data) for y, s, r in zip(changes, steps, ratios, strict=True)]
        shares = []
        for y, s, r in reversed(pairs):
            shares.append((s @ found) * r)
            found -= shares[-1] * y
        scale = state["H_diag"]
        found = found * (scale._data if isinstance(scale, Tensor) else scale)
        for (y, s, r), share in zip(pairs, reversed(shares), strict=True):
            found += (share - (y @ found) * r) * s
        return found
