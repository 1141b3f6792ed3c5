"""GradBench's evals: values and gradients against closed forms, hand-written gradients and jax; the tool's protocol."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import special

import srcgrad as sg
from benchmarks.gradbench import by_hand, evals, native, peers, tool

ROOT = Path(__file__).resolve().parents[1]
ANSWER = 0.20719187464861
"""GradBench's answer of particle."""
RANDOM = np.random.default_rng(7)


def mixture(d=3, k=4, n=6):
    given = evals.generate_gmm(d, k, n)
    return tuple(given[name] for name in ("alpha", "mu", "q", "l", "x"))


CASES = {
    "lse": (RANDOM.uniform(size=50),),
    "llsq": (RANDOM.uniform(size=9), evals.points(12)),
    "gmm": (*mixture(), 1.3, 2),
    "ode_last": (RANDOM.uniform(size=8), 20),
}


def leaves(result):
    return result if isinstance(result, tuple) else (result,)


def assert_close(found, expected, tolerance):
    for one, other in zip(leaves(found), leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", CASES)
def test_gradients_written_in_cpp(name):
    gradients = native.gradients()
    if gradients is None:
        pytest.skip("there is no g++ to build them")
    assert_close(gradients[name](*CASES[name]), getattr(by_hand, name)(*CASES[name]), 1e-12)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("mode", [sg.grad, sg.jacfwd])
def test_gradients(name, mode):
    f, args = getattr(evals, name), CASES[name]
    argnums = (0, 1, 2, 3) if name == "gmm" else 0
    assert_close(mode(f, argnums=argnums)(*args), getattr(by_hand, name)(*args), 1e-11)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.usefixtures("jax_as_it_was")
def test_gradients_of_peers(name):
    """The same source with another module for NumPy gives the same gradients: the table compares equal work."""
    args, expected = CASES[name], getattr(by_hand, name)(*CASES[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for table in (peers.jax_gradients(), peers.autograd_gradients()):
            if table is not None:
                assert_close(table[name](*args), expected, 1e-10)


@pytest.mark.parametrize("nesting", ["ff", "rr"])
@pytest.mark.usefixtures("jax_as_it_was")
def test_particle_of_jax(nesting):
    outer, inner = nesting
    expected = by_hand.distance_of_hit(0.3)
    np.testing.assert_allclose(peers.jax_particle_slope(outer, inner)(0.3), expected, rtol=1e-9)
    np.testing.assert_allclose(peers.jax_particle_value(inner)(0.3), expected[0], rtol=1e-9)


def test_values_against_definitions():
    x = CASES["lse"][0]
    np.testing.assert_allclose(evals.lse(x), special.logsumexp(x), rtol=1e-14)
    assert evals.lse(np.array([1000.0, 1000.0])) == 1000.0 + math.log(2)
    x, t = CASES["llsq"]
    rest = np.sign(t) - np.polynomial.polynomial.polyval(t, x)
    np.testing.assert_allclose(evals.llsq(x, t), 0.5 * np.sum(rest**2), rtol=1e-13)
    np.testing.assert_allclose(evals.points(5), [-1, -0.5, 0, 0.5, 1])


def test_gmm_against_densities():
    """The logarithm of the likelihood of the mixture times Wishart densities, as they are defined."""
    from scipy import stats

    alpha, mu, q, l, x = mixture(d=2, k=3, n=5)  # noqa: E741
    gamma, m = 1.3, 2
    weights = np.exp(alpha) / np.sum(np.exp(alpha))
    posterior, likelihood = 0.0, np.zeros(len(x))
    for k in range(3):
        root = np.array([[np.exp(q[k, 0]), 0.0], [l[k, 0], np.exp(q[k, 1])]])
        precision = root.T @ root
        likelihood += weights[k] * stats.multivariate_normal(mu[k], np.linalg.inv(precision)).pdf(x)
        freedom = 2 + m + 1
        posterior += stats.wishart(freedom, np.eye(2) / gamma**2).logpdf(precision)
    expected = np.sum(np.log(likelihood)) + posterior
    np.testing.assert_allclose(evals.gmm(alpha, mu, q, l, x, gamma, m), expected, rtol=1e-12)


def test_ode_against_the_solution():
    """y_i = t^(i + 1) Π x / (i + 1)!, which the steps give exactly up to the fourth power."""
    x = np.array([0.7, 1.1, -0.4, 0.9])
    powers = 2.0 ** np.arange(1, 5) / np.array([1, 2, 6, 24])
    np.testing.assert_allclose(evals.ode(x, 3), powers * np.cumprod(x), rtol=1e-13)


def test_strict_lower():
    found = evals.strict_lower(np.array([1.0, 2, 3, 4, 5, 6]), 4)
    np.testing.assert_array_equal(found, [[0, 0, 0, 0], [1, 0, 0, 0], [2, 4, 0, 0], [3, 5, 6, 0]])
    np.testing.assert_array_equal(peers.gathering(np)(np.arange(1.0, 7), 4), found)


def test_the_answer_of_particle_by_hand():
    def value(w):
        return by_hand.distance_of_hit(w)[0]

    assert evals.argmin(value, by_hand.distance_of_hit, 0.0) == pytest.approx(ANSWER, abs=5e-14)


@pytest.mark.parametrize("inner", "fr")
@pytest.mark.parametrize("outer", "fr")
@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_nestings_of_particle(outer, inner, monkeypatch):
    """One descent from near the answer in each nesting; its value and slope are those written by hand."""
    seen = []

    def once(value, with_slope, w):
        seen.append((value(w), *with_slope(w)))
        return w

    monkeypatch.setattr(evals, "argmin", once)
    assert tool.MODULES["particle"][outer + inner].prepare({"w": 0.3}, None)() == 0.3
    ((alone, value, slope),) = seen
    expected, expected_slope = by_hand.distance_of_hit(0.3)
    np.testing.assert_allclose([alone, value, slope], [expected, expected, expected_slope], rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("nesting", ["ff", "fr", "rf", "rr"])
@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_the_answer_of_particle(nesting):
    task = tool.MODULES["particle"][nesting]
    assert task.output(task.prepare({"w": 0.0}, None)()) == pytest.approx(ANSWER, abs=5e-14)


# --- the protocol -----------------------------------------------------------------------------------


def mixture_input():
    given = evals.generate_gmm(2, 3, 5)
    arrays = {name: value.tolist() for name, value in given.items()}
    return {"d": 2, "k": 3, "n": 5, "gamma": 1.0, "m": 0, "min_runs": 1, "min_seconds": 0, **arrays}


RUNS = {"min_runs": 3, "min_seconds": 0}
X = [0.5, 0.25, 0.125]
QUESTIONS = [
    ("hello", "square", 3.0, 9.0),
    ("hello", "double", 3.0, 6.0),
    ("lse", "primal", {"x": X, **RUNS}, special.logsumexp(X)),
    ("lse", "gradient", {"x": X, **RUNS}, special.softmax(X)),
    ("llsq", "primal", {"x": X, "n": 4, **RUNS}, evals.llsq(np.array(X), evals.points(4))),
    ("llsq", "gradient", {"x": X, "n": 4, **RUNS}, by_hand.llsq(np.array(X), evals.points(4))),
    ("ode", "primal", {"x": X, "s": 5, **RUNS}, evals.ode(np.array(X), 5)),
    ("ode", "gradient", {"x": X, "s": 5, **RUNS}, by_hand.ode_last(np.array(X), 5)),
    ("gmm", "objective", mixture_input(), evals.gmm(*mixture(2, 3, 5), 1.0, 0)),
]


def test_a_session():
    messages = [{"kind": "start", "eval": "hello"}]
    for module in dict.fromkeys(question[0] for question in QUESTIONS):
        messages.append({"kind": "define", "module": module})
    for module, function, given, _ in QUESTIONS:
        messages.append({"kind": "evaluate", "module": module, "function": function, "input": given})
    messages.append({"kind": "evaluate", "module": "gmm", "function": "jacobian", "input": mixture_input()})
    messages.append({"kind": "analysis", "of": 3, "valid": True})
    messages.append({"kind": "define", "module": "kmeans"})
    messages.append({"kind": "evaluate", "module": "lse", "function": "hessian", "input": {}})
    messages.append({"kind": "evaluate", "module": "lse", "function": "gradient", "input": {"y": 1}})
    messages.append({"kind": "end"})
    text = "".join(json.dumps({"id": number, **message}) + "\n" for number, message in enumerate(messages))
    done = subprocess.run(
        [sys.executable, "benchmarks/gradbench/tool.py", "--backend", "numpy"],
        input=text, capture_output=True, text=True, cwd=ROOT, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0 and done.stderr == ""
    replies = [json.loads(line) for line in done.stdout.splitlines()]
    assert [reply["id"] for reply in replies] == list(range(len(messages) - 1))
    assert replies[0]["tool"] == "srcgrad"
    modules = len(messages) - len(QUESTIONS) - 7
    assert all(reply == {"id": reply["id"], "success": True} for reply in replies[1 : modules + 1])
    answers = replies[modules + 1 :]
    for (_, _, given, expected), answer in zip(QUESTIONS, answers, strict=False):
        assert answer["success"]
        np.testing.assert_allclose(answer["output"], expected, rtol=1e-12)
        names = [timing["name"] for timing in answer["timings"]]
        runs = given["min_runs"] if isinstance(given, dict) else 1
        assert names == ["prepare", *["evaluate"] * runs]
        assert all(isinstance(timing["nanoseconds"], int) for timing in answer["timings"])
    jacobian = answers[len(QUESTIONS)]["output"]
    expected = by_hand.gmm(*mixture(2, 3, 5), 1.0, 0)
    for name, value in zip(("alpha", "mu", "q", "l"), expected, strict=True):
        np.testing.assert_allclose(jacobian[name], value, rtol=1e-11)
    assert set(jacobian) == {"alpha", "mu", "q", "l"}
    last = answers[len(QUESTIONS) + 1 :]
    assert last[0] == {"id": last[0]["id"]}
    assert [reply["success"] for reply in last[1:]] == [False] * 3
    assert "kmeans" in last[1]["error"] and "hessian" in last[2]["error"] and "KeyError" in last[3]["error"]


def test_as_a_module():
    text = '{"id": 0, "kind": "start"}\n\n{"id": 1, "kind": "end"}\n{"id": 2, "kind": "start"}\n'
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.gradbench"], input=text, capture_output=True, text=True, cwd=ROOT, timeout=60
    )
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [0]


def test_runs_reach_both_limits():
    slow = tool.Task(lambda given, backend: lambda: sum(range(1000)), float)
    answer = tool.evaluate(slow, {"min_runs": 2, "min_seconds": 0.01}, None)
    times = [timing["nanoseconds"] for timing in answer["timings"] if timing["name"] == "evaluate"]
    assert sum(times) >= 0.01e9 > sum(times[:-1])
    assert len(tool.evaluate(slow, {"min_runs": 5, "min_seconds": 0}, None)["timings"]) == 6
    assert len(tool.evaluate(slow, 3.0, None)["timings"]) == 2
