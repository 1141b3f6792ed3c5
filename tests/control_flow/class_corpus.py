"""More realistic functions, of classes and records; each gives a float."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.control_flow.corpus import entry


class Particle:
    __slots__ = ("alive", "pos", "vel")

    def __init__(self, pos: Any, vel: Any) -> None:
        self.pos, self.vel, self.alive = pos, vel, True

    def step(self, dt: Any, g: Any) -> Any:
        self.vel = self.vel - g * dt
        self.pos = self.pos + self.vel * dt
        if self.pos < 0:
            self.pos = 0.0 * self.pos
            self.vel = -0.5 * self.vel


@entry(np.array([1.0, 2.0, 9.0]))
def particles_with_slots(x: Any) -> Any:
    ps = [Particle(x[0], x[1]), Particle(x[1], -x[0])]
    for _ in range(30):
        for p in ps:
            p.step(0.02, x[2])
    return sum(p.pos + 0.1 * p.vel for p in ps)


class PID:
    def __init__(self, kp: Any, ki: Any, kd: Any) -> None:
        self.kp, self.ki, self.kd = kp, ki, kd
        self.integral = 0.0
        self.previous = None

    def __call__(self, error: Any, dt: Any) -> Any:
        self.integral += error * dt
        derivative = 0.0 if self.previous is None else (error - self.previous) / dt
        self.previous = error
        u = self.kp * error + self.ki * self.integral + self.kd * derivative
        return np.clip(u, -5.0, 5.0)


@entry(np.array([2.0, 0.5, 0.1]))
def pid_controller(gains: Any) -> Any:
    pid = PID(*gains)
    y, cost = 0.0, 0.0
    for _ in range(50):
        u = pid(1.0 - y, 0.05)
        y = y + 0.05 * (-y + u)
        cost += (1.0 - y) ** 2
    return cost


@dataclass
class Account:
    balance: float
    history: list[Any] = field(default_factory=list)

    @property
    def rich(self) -> Any:
        return self.balance > 1.2

    def deposit(self, amount: Any) -> Any:
        if self.rich:
            amount = amount * 0.9
        self.balance = self.balance + amount
        self.history.append(self.balance)


@entry(np.array([1.0, 0.15]))
def accounts(x: Any) -> Any:
    a = Account(x[0])
    for k in range(8):
        a.deposit(x[1] * (1 + k))
    return sum(h * h for h in a.history)


@dataclass(frozen=True)
class State:
    s: float
    i: float
    r: float


@entry(np.array([0.4, 0.1]))
def sir_with_replace(p: Any) -> Any:
    beta, gamma = p
    state = State(0.99, 0.01, 0.0)
    peak = 0.0
    for _ in range(100):
        new = beta * state.s * state.i
        rec = gamma * state.i
        state = dataclasses.replace(state, s=state.s - new, i=state.i + new - rec, r=state.r + rec)
        peak = max(peak, state.i)
    return peak + state.r


@dataclass(slots=True)
class Cell:
    value: float
    count: int = 0

    def bump(self, v: Any) -> Any:
        if v > self.value:
            self.value = v
            self.count += 1


@entry(np.array([0.3, 0.7, 0.5, 0.9]))
def slots_changed_on_a_condition(x: Any) -> Any:
    c = Cell(x[0])
    for v in x:
        c.bump(v)
    return c.value * c.count + x[0]


@dataclass
class Config:
    rate: float
    scale: float = 2.0
    total: float = field(init=False)

    def __post_init__(self) -> Any:
        if self.rate > 0.5:
            self.scale = self.scale * self.rate
        self.total = self.rate + self.scale


@entry(0.8)
def post_init_condition(x: Any) -> Any:
    return Config(x).total * Config(x - 0.5).total


class Base:
    gain = 2.0

    def __init__(self, x: Any) -> None:
        self.x = x

    def out(self) -> Any:
        return self.gain * self.x

    @classmethod
    def twice(cls, x: Any) -> Any:
        return cls(2 * x)

    @staticmethod
    def clip(v: Any) -> Any:
        return v if v < 1.0 else 1.0 + 0.1 * v


class Derived(Base):
    gain = 3.0

    def __init__(self, x: Any, y: Any) -> None:
        super().__init__(x)
        self.y = y

    def out(self) -> Any:
        b = super().out()
        return self.clip(b) + self.y if self.y > 0 else b


class Third(Base):
    pass


@entry(np.array([0.4, 0.6]))
def inheritance(x: Any) -> Any:
    return Derived(x[0], x[1]).out() + Third.twice(x[1]).out() + Third(x[0]).out() * Derived(x[1], -x[0]).out()
