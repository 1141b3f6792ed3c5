"""More realistic functions: events, tables, queues, interpreters; each gives a float."""

# ruff: noqa: B905

from __future__ import annotations

import collections
import enum
import itertools
import math
import operator
from typing import Any

import numpy as np

from tests.control_flow.corpus import entry

# --- equations over time ---------------------------------------------------------------------------------


@entry(np.array([1.0, 0.5]))
def rk45_adaptive(y0: Any) -> Any:
    """Dormand-Prince with error control."""
    C = [0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1]
    A = [
        [],
        [1 / 5],
        [3 / 40, 9 / 40],
        [44 / 45, -56 / 15, 32 / 9],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
    ]
    B5 = [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0]
    B4 = [5179 / 57600, 0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40]

    def rhs(t: Any, y: Any) -> Any:
        return np.array([y[1], (1 - y[0] ** 2) * y[1] - y[0]])

    t, y, h = 0.0, y0, 0.1
    accepted = 0
    while t < 2.0:
        h = min(h, 2.0 - t)
        ks: list[Any] = []
        for i in range(7):
            yi = y.copy()
            for j, a in enumerate(A[i]):
                yi = yi + h * a * ks[j]
            ks.append(rhs(t + C[i] * h, yi))
        y5 = y + h * sum(b * k for b, k in zip(B5, ks))
        y4 = y + h * sum(b * k for b, k in zip(B4, ks))
        err = np.max(np.abs(y5 - y4)) / 1e-6
        if err <= 1.0:
            t += h
            y = y5
            accepted += 1
        h = h * min(5.0, max(0.2, 0.9 * (err + 1e-12) ** -0.2))
    return np.sum(y**2)


@entry(np.linspace(0.1, 1.0, 12))
def burgers_upwind(u0: Any) -> Any:
    u = u0.copy()
    dx, dt, nu = 0.1, 0.01, 0.02
    for _ in range(60):
        un = u.copy()
        for i in range(1, len(u) - 1):
            slope = un[i] - un[i - 1] if un[i] > 0 else un[i + 1] - un[i]
            adv = un[i] * slope / dx
            u[i] = un[i] - dt * adv + nu * dt / dx**2 * (un[i + 1] - 2 * un[i] + un[i - 1])
        u[0] = u[-2]
        u[-1] = u[1]
    return np.sum(u * np.arange(12))


@entry(np.array([0.2, 0.4]))
def lotka_volterra_events(p: Any) -> Any:
    prey, pred = p[0] + 1, p[1]
    switches = 0
    above = prey > pred
    for _ in range(200):
        d1 = prey * (1 - pred)
        d2 = pred * (prey - 1)
        prey = prey + 0.02 * d1
        pred = pred + 0.02 * d2
        now = prey > pred
        if now != above:
            switches += 1
            above = now
    return prey * pred * (1 + switches)


@entry(np.array([0.8, 9.81]))
def bouncing_with_events(p: Any) -> Any:
    e, g = p
    h, v, t = 2.0, 0.0, 0.0
    energy: list[Any] = []
    while len(energy) < 6:
        fall = (v + math.sqrt(v * v + 2 * g * h)) / g
        t += fall
        speed = g * fall - v
        v = e * speed
        h = 0.0
        energy.append(0.5 * v * v)
    return t + sum(energy)


@entry(np.array([0.7, 1.1]))
def event_queue(rates: Any) -> Any:
    """Two servers, deterministic arrivals, by a sorted event list."""
    total = 0.0
    free = [0.0, 0.0]
    for k in range(10):
        arrival = 0.4 * k
        which = 0 if free[0] <= free[1] else 1
        start = max(arrival, free[which])
        service = rates[which] * (1 + 0.1 * math.sin(k))
        free[which] = start + service
        total += start + service - arrival
    return total


# --- linear algebra, fits and searches -------------------------------------------------------------------


@entry(np.array([1.0, 2.0, -1.0]))
def gauss_elimination_with_pivoting(b: Any) -> Any:
    A = np.array([[1e-3, 2.0, 3.0], [4.0, 5.0, 6.5], [7.0, 8.0, 1.0]])
    A = A.copy()
    x = b.copy()
    n = 3
    A[0, 0] += b[0] * 0.01
    for k in range(n):
        p = k + int(np.argmax(np.abs(A[k:, k])))
        if p != k:
            A[[k, p]] = A[[p, k]]
            x[[k, p]] = x[[p, k]]
        for i in range(k + 1, n):
            m = A[i, k] / A[k, k]
            A[i, k:] -= m * A[k, k:]
            x[i] -= m * x[k]
    for i in range(n - 1, -1, -1):
        x[i] = (x[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return np.sum(x * np.array([1.0, 2.0, 3.0]))


@entry(np.array([[1.0, 0.2], [0.3, 2.0]]))
def jacobi_eigen(m: Any) -> Any:
    a = (m + m.T) / 2
    for _ in range(10):
        if abs(a[0, 1]) < 1e-13:
            break
        theta = 0.5 * math.atan2(2 * a[0, 1], a[0, 0] - a[1, 1])
        c, s = math.cos(theta), math.sin(theta)
        q = np.array([[c, -s], [s, c]])
        a = q.T @ a @ q
    return a[0, 0] ** 2 + 3 * a[1, 1]


@entry(np.array([1.0, 2.0, 0.5]))
def levenberg_marquardt(y: Any) -> Any:
    t = np.array([0.0, 1.0, 2.0])
    a, b, lam = 1.0, 0.1, 1e-2

    def residual(a: Any, b: Any) -> Any:
        return a * np.exp(b * t) - y

    r = residual(a, b)
    cost = r @ r
    for _ in range(6):
        J = np.stack([np.exp(b * t), a * t * np.exp(b * t)], axis=1)
        H = J.T @ J
        g = J.T @ r
        step = np.linalg.solve(H + lam * np.diag(np.diag(H)), -g)
        na, nb = a + step[0], b + step[1]
        nr = residual(na, nb)
        ncost = nr @ nr
        if ncost < cost:
            a, b, r, cost = na, nb, nr, ncost
            lam = max(lam / 5, 1e-12)
        else:
            lam *= 4
        if np.linalg.norm(g) < 1e-12:
            break
    return cost + a * b


@entry(1.3, smooth=False)
def golden_section(c: Any) -> Any:
    phi = (math.sqrt(5) - 1) / 2
    a, b = 0.0, 4.0

    def f(x: Any) -> Any:
        return (x - c) ** 2 + 0.1 * math.sin(3 * x)

    x1 = b - phi * (b - a)
    x2 = a + phi * (b - a)
    f1, f2 = f(x1), f(x2)
    while b - a > 1e-6:
        if f1 < f2:
            b, x2, f2 = x2, x1, f1
            x1 = b - phi * (b - a)
            f1 = f(x1)
        else:
            a, x1, f1 = x1, x2, f2
            x2 = a + phi * (b - a)
            f2 = f(x2)
    return f((a + b) / 2)


@entry(np.array([[0.0, 0.1], [0.2, 0.0], [3.0, 3.1], [3.2, 2.9], [0.1, 0.2]]))
def k_means(points: Any) -> Any:
    centers = points[:2].copy()
    centers[1] = points[2]
    for _ in range(5):
        sums = np.zeros((2, 2))
        counts = np.zeros(2)
        for p in points:
            d = [np.sum((p - c) ** 2) for c in centers]
            k = int(np.argmin(d))
            sums[k] += p
            counts[k] += 1
        for k in range(2):
            if counts[k] > 0:
                centers[k] = sums[k] / counts[k]
    return np.sum(np.min(np.sum((points[:, None] - centers[None]) ** 2, -1), 1))


# --- tables and queues -----------------------------------------------------------------------------------


@entry(np.array([4.0, 2.5, 1.0, 3.0]))
def knapsack_table(values: Any) -> Any:
    weights = [2, 1, 3, 2]
    cap = 5
    best = np.zeros((len(weights) + 1, cap + 1))
    for i, w in enumerate(weights, start=1):
        for c in range(cap + 1):
            best[i, c] = best[i - 1, c]
            if w <= c and best[i - 1, c - w] + values[i - 1] > best[i, c]:
                best[i, c] = best[i - 1, c - w] + values[i - 1]
    return best[-1, -1] ** 2


@entry(np.array([0.9, 0.2, 1.4]))
def edit_distance_costs(w: Any) -> Any:
    a, b = "kitten", "sitting"
    ins, dele, sub = w
    d = {}
    for i in range(len(a) + 1):
        d[i, 0] = i * dele
    for j in range(len(b) + 1):
        d[0, j] = j * ins
    for i, ca in enumerate(a, 1):
        for j, cb in enumerate(b, 1):
            d[i, j] = min(d[i - 1, j] + dele, d[i, j - 1] + ins, d[i - 1, j - 1] + (0 if ca == cb else sub))
    return d[len(a), len(b)]


@entry(np.array([0.3, 0.6, 0.1]))
def hmm_viterbi_with_backtrace(logits: Any) -> Any:
    obs = [0, 1, 1, 0, 2, 1]
    trans = np.log(np.array([[0.7, 0.3], [0.4, 0.6]]))
    emit = np.array([[0.5, 0.4, 0.1], [0.1, 0.3, 0.6]]) * np.exp(logits)
    emit = np.log(emit / emit.sum(1, keepdims=True))
    delta = np.log(np.array([0.6, 0.4])) + emit[:, obs[0]]
    back = []
    for o in obs[1:]:
        scores = delta[:, None] + trans
        back.append(np.argmax(scores, axis=0))
        delta = np.max(scores, axis=0) + emit[:, o]
    state = np.argmax(delta)
    path = [state]
    for b in reversed(back):
        state = b[state]
        path.append(state)
    score = 0.0
    for s, o in zip(reversed(path), obs):
        score += emit[s, o] * (s + 1)
    return score + np.max(delta)


@entry(np.array([1.0, 0.5, 0.25, 2.0]))
def breadth_first(weights: Any) -> Any:
    graph = {0: [1, 2], 1: [3], 2: [3], 3: []}
    dist = {0: weights[0]}
    queue = collections.deque([0])
    while queue:
        n = queue.popleft()
        for m in graph[n]:
            d = dist[n] + weights[m] * (n + 1)
            if m not in dist:
                dist[m] = d
                queue.append(m)
            else:
                dist[m] = min(dist[m], d)
    return sum(dist.values())


@entry(np.array([0.5, 0.1, 0.7]))
def sort_with_key(x: Any) -> Any:
    order = sorted(range(3), key=lambda k: x[k])
    total = 0.0
    for r, k in enumerate(order):
        total += (r + 1) * x[k]
    return total


@entry(np.array([0.5, 0.1, 0.7]))
def min_with_key(x: Any) -> Any:
    best = min([v * 2 for v in x], key=lambda v: (v - 0.3) ** 2)
    return best * x[0]


@entry(np.array([0.5, 0.1, 0.7]))
def accumulated(x: Any) -> Any:
    total = 0.0
    for v in itertools.accumulate(x, lambda a, b: a * b if b > 0.3 else a + b):
        total += v
    return total


@entry(np.array([0.1, 0.2, 0.3]))
def defaultdict_groups(x: Any) -> Any:
    groups: Any = collections.defaultdict(float)
    for k, v in enumerate(x):
        groups["even" if k % 2 == 0 else "odd"] += v * v
    return groups["even"] * groups["odd"] + len(groups)


# --- programs and trees ----------------------------------------------------------------------------------


@entry(np.array([1.5, 0.5]))
def tiny_interpreter(x: Any) -> Any:
    program = "push0 push1 mul dup add neg push0 sub"
    stack = []
    ops = {"mul": operator.mul, "add": operator.add, "sub": operator.sub}
    for word in program.split():
        if word.startswith("push"):
            stack.append(x[int(word[4:])])
        elif word == "dup":
            stack.append(stack[-1])
        elif word == "neg":
            stack[-1] = -stack[-1]
        else:
            b, a = stack.pop(), stack.pop()
            stack.append(ops[word](a, b))
    return stack.pop()


class Node:
    def __init__(self, op: Any, *children: Any) -> None:
        self.op, self.children = op, children

    def eval(self, env: Any) -> Any:
        vals = [c.eval(env) if isinstance(c, Node) else env.get(c, c) for c in self.children]
        if self.op == "+":
            return vals[0] + vals[1]
        if self.op == "*":
            return vals[0] * vals[1]
        if self.op == "max":
            return max(vals)
        if self.op == "if":
            return vals[1] if vals[0] > 0 else vals[2]
        raise ValueError(self.op)


@entry(np.array([0.7, -0.3]))
def expression_tree(x: Any) -> Any:
    tree = Node("if", Node("+", "a", "b"), Node("max", Node("*", "a", "a"), "b"), Node("*", "b", 3.0))
    return tree.eval({"a": x[0], "b": x[1]}) * tree.eval({"a": x[1], "b": x[0]}) + tree.eval({"a": x[1], "b": x[1]})


@entry(0.6)
def nested_nonlocal(x: Any) -> Any:
    best: Any = None
    count = 0

    def visit(v: Any) -> Any:
        nonlocal best, count
        count += 1
        if best is None or v < best:
            best = v

    def walk(v: Any, depth: Any) -> Any:
        visit(v * v - 0.3 * v)
        if depth:
            walk(v * 0.7, depth - 1)
            walk(v * -0.4, depth - 1)

    walk(x, 3)
    return best * count


@entry(np.array([0.5, 2.0]))
def generator_pipeline(x: Any) -> Any:
    def source() -> Any:
        k = 0
        while k < 12:
            yield x[0] * k + math.sin(x[1] * k)
            k += 1

    def clipped(it: Any, low: Any) -> Any:
        for v in it:
            yield v if v > low else low

    def windowed(it: Any) -> Any:
        prev = None
        for v in it:
            if prev is not None:
                yield (prev + v) / 2
            prev = v

    return sum(v**2 for v in windowed(clipped(source(), 0.3)))


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2


@entry(1.2)
def enum_state_machine(x: Any) -> Any:
    mode = Mode.SLOW
    y = x
    trace = 0.0
    for k in range(10):
        y = y * 1.1 if mode is Mode.SLOW else y * 1.5 - 0.2
        if k == 4:
            mode = Mode.FAST
        trace += y
    return trace
