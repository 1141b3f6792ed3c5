"""`torch.distributions`: moments, densities, divergences, their gradients, shapes, texts and refusals."""

from __future__ import annotations

import re
from typing import Any

from tests.torch.facts import Case

MADE: dict[str, tuple[str, str]] = {
    "normal": ("Normal(A, B.exp())", "0.3"),
    "lognormal": ("LogNormal(A, B.exp())", "0.4"),
    "uniform": ("Uniform(A - 9, A + B.exp() + 9)", "0.2"),
    "exponential": ("Exponential(B.exp())", "0.5"),
    "laplace": ("Laplace(A, B.exp())", "0.2"),
    "gamma": ("Gamma(A.exp(), B.exp())", "0.7"),
    "beta": ("Beta(A.exp(), B.exp())", "0.3"),
    "dirichlet": ("Dirichlet(A.exp() + B.exp())", "V"),
    "bernoulli": ("Bernoulli(A.sigmoid())", "1.0"),
    "bernoulli of logits": ("Bernoulli(logits=A)", "0.0"),
    "categorical": ("Categorical(A.exp())", "I"),
    "categorical of logits": ("Categorical(logits=A + B)", "I"),
    "poisson": ("Poisson(A.exp())", "3.0"),
    "vectors": ("MultivariateNormal(A, C @ C.mT + 2 * torch.eye(3).double())", "V"),
    "vectors of a precision": ("MultivariateNormal(A, precision_matrix=C @ C.mT + 2 * torch.eye(3).double())", "V"),
    "vectors of a factor": ("MultivariateNormal(A, scale_tril=(C.abs() + 0.3).tril())", "V"),
    "independent": ("Independent(Normal(A, B.exp()), 1)", "V"),
}
INPUTS: dict[str, Any] = {"a": (2, 3), "b": (2, 3), "c": (3, 3), "v": (4, 2, 3)}
MODES = ("normal", "lognormal", "exponential", "laplace", "gamma", "bernoulli", "categorical", "poisson", "vectors")
WITHOUT_GRADIENTS = ("Gamma", "Beta", "Dirichlet", "Bernoulli", "Categorical", "Poisson")
HEAD = "D = torch.distributions\n"


def made(call: str, factor: str = "") -> str:
    """The code of a distribution, of its parameters times a factor."""
    named = re.sub(r"\b([ABC])\b", lambda found: f"({found[0].lower()}{factor})", call)
    return "D." + named.replace("(Normal", "(D.Normal")


def at(value: str) -> str:
    if value == "V":
        return "torch.softmax(v, -1)"
    if value == "I":
        return "torch.tensor([[0, 2], [1, 1], [2, 0], [0, 0]])"
    return f"torch.full((4, 2, 3), {value}, dtype=torch.float64)"


CASES: list[Case] = []


def add(name: str, code: str, second: bool = True, grad: bool = True, text: bool = False) -> None:
    used = {key: shape for key, shape in INPUTS.items() if f"{key}" in code.replace("torch", "")}
    CASES.append(Case(name, f"{HEAD}{code}", used, grad=grad, second=second, text=text))


for name, (call, value) in MADE.items():
    p, q = made(call), made(call, " * 0.5")
    add(
        f"{name} density",
        f"result = {p}.log_prob({at(value)}) * 1",
        second=name not in ("uniform", "gamma", "beta", "dirichlet"),
    )
    add(f"{name} expanded", f"result = {p}.expand((4, *{p}.batch_shape)).log_prob({at(value)}) * 1", second=False)
    add(f"{name} divergence", f"result = D.kl_divergence({p}, {q}) * 1", second=False)
    if name != "poisson":
        add(f"{name} entropy", f"result = {p}.entropy() * 1", second=False)
        add(f"{name} perplexity", f"result = {p}.perplexity() * 1", second=False)
    if not name.startswith("categorical"):
        add(f"{name} moments", f"d = {p}\nresult = [d.mean * 1, d.variance * 1, d.stddev * 1]", second=False)
    if name in MODES:
        add(f"{name} mode", f"result = {p}.mode * 1", second=False, grad=False)
    shapes = "d.batch_shape, d.event_shape, d.sample().shape, d.sample((5, 1)).shape, d.sample().requires_grad"
    drawn = ", d.rsample((2,)).requires_grad" if call.split("(")[0] not in WITHOUT_GRADIENTS else ""
    add(f"{name} shapes", f"d = {p}\nresult = ({shapes}{drawn})", text=True)
for name in ("normal", "lognormal", "uniform", "exponential", "laplace", "gamma"):
    p = made(MADE[name][0])
    value = "torch.full((2, 3), 0.4).double()"
    add(f"{name} cdf", f"result = {p}.cdf({value}) * 1", second=False, grad=name != "gamma")
    if name != "gamma":
        add(f"{name} icdf", f"result = {p}.icdf(torch.full((2, 3), 0.3).double()) * 1", second=False)
for name in ("bernoulli", "categorical"):
    add(f"{name} values", f"d = {made(MADE[name][0])}\nresult = [d.enumerate_support(), d.enumerate_support(False)]",
        grad=False)  # fmt: skip
for code in (
    "D.Normal(0.0, 1.0)", "D.Normal(torch.zeros(2), 1.0)", "D.Categorical(torch.ones(3))", "D.Gamma(1.0, 2.0)",
    "D.Independent(D.Normal(torch.zeros(2), 1.0), 1)", "D.MultivariateNormal(torch.zeros(2), torch.eye(2))",
    "D.Uniform(0.0, 1.0).support", "D.Dirichlet(torch.ones(2)).support", "D.Poisson(1.0).support",
    "D.Normal(0, 1).sample().dtype", "D.Normal(torch.zeros(2).double(), 1).scale.dtype",
    "D.Categorical(torch.ones(3)).sample().dtype",
):  # fmt: skip
    add(f"text of {code}", f"result = {code}", text=True)
for name, code in {
    "scale of 0": "D.Normal(0.0, 0.0)",
    "value outside": "D.Exponential(1.0).log_prob(torch.tensor(-1.0))",
    "class outside": "D.Categorical(torch.ones(3)).log_prob(torch.tensor(3))",
    "value of another shape": "D.MultivariateNormal(torch.zeros(2), torch.eye(2)).log_prob(torch.zeros(3))",
    "value of another batch": "D.Normal(torch.zeros(2), 1.0).log_prob(torch.zeros(3))",
    "probabilities and logits": "D.Categorical(torch.ones(2), torch.ones(2))",
    "matrix that is not positive": "D.MultivariateNormal(torch.zeros(2), -torch.eye(2))",
    "two matrices": "D.MultivariateNormal(torch.zeros(2), torch.eye(2), torch.eye(2))",
    "no divergence": "D.kl_divergence(D.Normal(0.0, 1.0), D.Categorical(torch.ones(2)))",
    "unchecked": "D.Normal(0.0, 0.0, validate_args=False).log_prob(torch.tensor(1.0))",
}.items():
    add(name, f"result = {code}", grad=False)
