"""What operations save for their derivatives: to change that in place is an error, to change anything else is none."""

from __future__ import annotations

from tests.torch.facts import Case

UNARY = {
    "sum": "y.sum(1)",
    "mean": "y.mean()",
    "prod": "y.prod()",
    "nansum": "y.nansum()",
    "std": "y.std()",
    "var": "y.var(0)",
    "max": "y.max()",
    "max over 1": "y.max(1)[0]",
    "min over 1 kept": "y.min(1, True)[0]",
    "amax": "y.amax(1)",
    "cummax": "y.cummax(1)[0]",
    "cumsum": "y.cumsum(1)",
    "cumprod": "y.cumprod(1)",
    "logcumsumexp": "y.logcumsumexp(1)",
    "logsumexp": "y.logsumexp(1)",
    "softmax": "y.softmax(1)",
    "log_softmax": "y.log_softmax(1)",
    "norm": "y.norm(dim=1)",
    "median": "y.median(1)[0]",
    "kthvalue": "y.kthvalue(1, 1)[0]",
    "sort": "y.sort(1)[0]",
    "topk": "y.topk(1)[0]",
    "mode": "y.mode(1)[0]",
    "trace": "y.trace()",
    "diff": "y.diff()",
    "det": "y.det()",
    "slogdet": "y.slogdet()[1]",
    "inverse": "y.inverse()",
    "pinv": "torch.linalg.pinv(y)",
    "matrix_exp": "torch.matrix_exp(y)",
    "svdvals": "torch.linalg.svdvals(y)",
    "eigvalsh": "torch.linalg.eigvalsh(y)",
    "qr": "torch.linalg.qr(y)[0]",
    "cholesky": "torch.linalg.cholesky(y)",
    "rfft": "torch.fft.rfft(y)",
}
BINARY = {
    "mm": "y @ b",
    "mv": "y @ b[0]",
    "addmm": "torch.addmm(y, b, b)",
    "addmm of a product": "torch.addmm(b, y, b)",
    "bmm": "torch.bmm(y[None], b[None])",
    "outer": "torch.outer(y[0], b[0])",
    "kron": "torch.kron(y, b)",
    "solve": "torch.linalg.solve(y, b)",
    "solve of a right-hand side": "torch.linalg.solve(b, y)",
    "solve_triangular": "torch.linalg.solve_triangular(b, y, upper=True)",
    "cholesky_solve": "torch.cholesky_solve(y, torch.linalg.cholesky(b))",
    "dist": "y.dist(b)",
}
INPUTS = {"a": ((2, 2), "spd"), "b": ((2, 2), "spd")}

# PyTorch saves these though the derivative can do without them; here changing them is no error.
LESS = {
    "cummax, operand", "cumprod, result", "det, result", "dist, result", "eigvalsh, result", "logcumsumexp, result",
    "prod, result", "rfft, operand", "std, result", "svdvals, result",
}  # fmt: skip
MORE = {"svdvals, operand", "eigvalsh, operand", "kron, operand"}
"""PyTorch keeps singular vectors, or a copy; here the operand itself is kept, and changing it is an error."""

CASES: list[Case] = [
    Case(
        f"{label}, {changed} changed",
        f"y = a.clone()\nresult = {code}\n{'y' if changed == 'operand' else 'result'}.mul_(2)",
        INPUTS if label in BINARY else {"a": ((2, 2), "spd")},
        second=False,
    )
    for label, code in (UNARY | BINARY).items()
    for changed in ("operand", "result")
    if f"{label}, {changed}" not in LESS | MORE
]
