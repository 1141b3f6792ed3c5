"""Sums, means, extremes, norms, statistics and running reductions."""

from __future__ import annotations

from tests.torch.facts import Case

AXES = {
    "all": "",
    "0": ", 0",
    "-1 kept": ", dim=-1, keepdim=True",
}
MANY_AXES = AXES | {"pair": ", (0, 1)", "list kept": ", [0, 2], keepdim=True", "no axes": ", ()", "None": ", None"}
SEVERAL = ("sum", "mean", "nansum", "nanmean", "std", "var", "std_mean", "var_mean", "amax", "amin")


def several() -> list[Case]:
    """Functions that take any number of dimensions."""
    found = []
    for function in SEVERAL:
        is_spread = function in ("std", "var", "std_mean", "var_mean")
        for label, text in MANY_AXES.items():
            if is_spread and label in ("no axes", "None"):
                text = text.replace(", ()", ", dim=()").replace(", None", ", dim=None")
            # PyTorch's own derivative of a variance over dim=() is infinite.
            is_sound = not (is_spread and label == "no axes")
            found.append(
                Case(f"{function} over {label}", f"torch.{function}(a{text})", {"a": (3, 1, 3)}, grad=is_sound)
            )
        if not function.endswith("_mean"):
            found.append(Case(f"{function} method", f"a.{function}(dim=(0, 1), keepdim=True)", {"a": (3, 2)}))
        found += [
            Case(f"{function} of 0-d", f"torch.{function}(a)", {"a": ()}, second=not is_spread),
            Case(f"{function} of float32", f"torch.{function}(a, 1)", {"a": ((2, 3), "float32")}, second=False),
            Case(f"{function} of ints", f"torch.{function}(i, 1)", {"i": ((2, 3), "int")}),
            Case(f"{function} of nothing", f"torch.{function}(a, 1)", {"a": (2, 0)}),
            Case(f"{function} beyond", f"torch.{function}(a, 2)", {"a": (2, 3)}),
            Case(f"{function} twice the same", f"torch.{function}(a, (0, -2))", {"a": (2, 3)}),
        ]
    return found


def single() -> list[Case]:
    """Functions of one dimension, or of all."""
    found = []
    for function in ("prod", "argmax", "argmin", "all", "any"):
        for label, text in AXES.items():
            found.append(Case(f"{function} over {label}", f"torch.{function}(a{text})", {"a": (2, 3)}))
        found += [
            Case(f"{function} method", f"a.{function}(1)", {"a": (2, 3)}),
            Case(f"{function} of 0-d", f"torch.{function}(a)", {"a": ()}),
            Case(f"{function} of ints", f"torch.{function}(i, 1)", {"i": ((2, 3), "int")}),
            Case(f"{function} of nothing", f"torch.{function}(a)", {"a": (0,)}),
            Case(f"{function} beyond", f"torch.{function}(a, 2)", {"a": (2, 3)}),
        ]
    return found


SUMS = [
    Case("sum of bools", "b.sum()", {"b": ((5,), "bool")}),
    Case("sum of int8", "torch.sum(i.to(torch.int8), 0)", {"i": ((3, 2), "int")}),
    Case("sum as float32", "torch.sum(a, dtype=torch.float32)", {"a": (2, 3)}, rtol=1e-5),
    Case("sum over 0 as float32", "a.sum(0, dtype=torch.float32)", {"a": (2, 3)}, rtol=1e-5),
    Case("sum of ints as float64", "i.sum(1, dtype=torch.float64)", {"i": ((2, 3), "int")}),
    Case("sum of two dims positional", "a.sum(0, 1)", {"a": (2, 3)}),
    Case("sum over axis", "torch.sum(a, axis=1, keepdims=True)", {"a": (2, 3)}),
    Case("sum of complex", "c.sum(0)", {"c": ((2, 3), "complex")}),
    Case(
        "sum into out",
        "out = torch.zeros(2, dtype=torch.float64)\nresult = torch.sum(a, 1, out=out)\nresult = out",
        {"a": (2, 3)},
        grad=False,
    ),
    Case("sum into out that is recorded", "torch.sum(a, 1, out=torch.zeros(2, dtype=torch.float64))", {"a": (2, 3)}),
    Case("sum of text", "torch.sum('a')"),
    Case("sum method of squares", "(a * a).sum()", {"a": (2, 3)}),
    Case("mean of ints as float32", "i.mean(dtype=torch.float32)", {"i": ((2, 3), "int")}),
    Case("mean of bools", "b.mean()", {"b": ((5,), "bool")}),
    Case("mean of complex", "c.mean(1)", {"c": ((2, 3), "complex")}),
    Case("mean of nothing at all", "a.mean()", {"a": (0,)}),
    Case("prod with a zero", "torch.prod(a)", {"a": [2.0, 0.0, 3.0]}),
    Case("prod with zeros", "torch.prod(a, 1)", {"a": [[2.0, 0.0, 3.0], [0.0, 0.0, 3.0]]}),
    Case("prod as float32", "a.prod(0, dtype=torch.float32)", {"a": (2, 3)}, rtol=1e-5),
    Case("prod of complex", "c.prod()", {"c": ((3,), "complex")}),
    Case("nansum of nan", "torch.nansum(a)", {"a": [1.0, float("nan"), 3.0]}),
    Case("nansum of nan over 0", "torch.nansum(a, 0)", {"a": [[1.0, float("nan")], [3.0, float("nan")]]}),
    Case("nanmean of nan", "torch.nanmean(a, 1)", {"a": [[1.0, float("nan"), 4.0], [1.0, 2.0, 3.0]]}),
    Case("trace", "torch.trace(a)", {"a": (3, 3)}),
    Case("trace of a wide one", "a.trace()", {"a": (2, 3)}),
    Case("trace of ints", "i.trace()", {"i": ((2, 2), "int")}),
    Case("trace of a vector", "a.trace()", {"a": (2,)}),
    Case("count_nonzero", "torch.count_nonzero(i)", {"i": ((2, 3), "int")}),
    Case("count_nonzero over 1", "i.count_nonzero(dim=1)", {"i": ((2, 3), "int")}),
    Case("all of uint8", "i.abs().to(torch.uint8).all()", {"i": ((2, 3), "int")}),
    Case("any over a pair", "torch.any(b, (0, 1))", {"b": ((2, 3), "bool")}),
    Case("all over a pair kept", "b.all((0, 1), keepdim=True)", {"b": ((2, 3), "bool")}),
    Case("sum in text", "torch.tensor([1., 2.], requires_grad=True).sum()", text=True),
    Case("mean in text", "torch.tensor([1., 2.], requires_grad=True).mean()", text=True),
]

STATISTICS = [
    *(
        Case(f"{f} with {label}", f"torch.{f}(a, {text})", {"a": (3, 4)})
        for f in ("var", "std", "var_mean", "std_mean")
        for label, text in {
            "no correction": "1, unbiased=False",
            "correction 2": "dim=1, correction=2",
            "all biased": "unbiased=False",
            "all of correction 0": "correction=0",
            "keepdim": "0, True, True",
        }.items()
    ),
    Case("var of one", "torch.var(a, 0)", {"a": (1, 2)}, grad=False),
    Case("std of equal numbers", "torch.std(a, 1)", {"a": [[1.0, 1.0], [1.0, 2.0]]}, grad=False),
    Case("var of complex", "torch.var(c, 1)", {"c": ((2, 3), "complex")}, second=False),
    Case("cov", "torch.cov(a)", {"a": (2, 4)}),
    Case("cov of correction 0", "a.cov(correction=0)", {"a": (2, 4)}),
    Case("cov of a vector", "torch.cov(a)", {"a": (4,)}),
    Case("cov of one row", "torch.cov(a)", {"a": (1, 4)}),
    Case("cov of float32", "torch.cov(a)", {"a": ((2, 3), "float32")}, second=False),
    Case("cov of ints", "torch.cov(i)", {"i": ((2, 3), "int")}),
    Case("all over no axes", "b.all(())", {"b": ((3,), "bool")}),
    Case("gradient of ints", "torch.gradient(i)", {"i": ((3,), "int")}),
    Case("trapezoid of ints", "torch.trapezoid(i)", {"i": ((3,), "int")}),
    Case("max of complex numbers", "c.max(0)", {"c": ((3,), "complex")}),
    Case("argmax of bools", "b.argmax()", {"b": ((3,), "bool")}),
    Case("amax of nothing at all", "a.amax()", {"a": (0, 2)}),
    Case("max of a 0-d bool over 0", "b.max(0)", {"b": ((), "bool")}),
    Case("renorm of a vector", "a.renorm(2, 0, 1.0)", {"a": (3,)}),
    Case("logcumsumexp of complex numbers", "c.logcumsumexp(0).exp()", {"c": ((3,), "complex")}, second=False),
    Case("cov with fweights", "torch.cov(a, fweights=torch.tensor([1, 2, 1]))", {"a": (2, 3)}),
    Case(
        "cov with aweights", "torch.cov(a, aweights=torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64))", {"a": (2, 3)}
    ),
    Case("cov of three dims", "torch.cov(a)", {"a": (2, 3, 2)}),
    Case("corrcoef", "torch.corrcoef(a)", {"a": (3, 4)}),
    Case("corrcoef of a vector", "a.corrcoef()", {"a": (4,)}, grad=False),
    Case("histc", "torch.histc(a, bins=4, min=-2, max=2)", {"a": (9,)}, grad=False),
    Case("histc of its own range", "a.histc(3)", {"a": (9,)}, grad=False),
    Case("histc of float32", "torch.histc(a, 4)", {"a": ((7,), "float32")}, grad=False),
    Case("bincount", "torch.bincount(i)", {"i": ((6,), "index")}),
    Case("bincount with weights", "torch.bincount(i, w, minlength=4)", {"i": ((6,), "index"), "w": (6,)}, grad=False),
    Case("bincount of a negative", "torch.bincount(torch.tensor([-1]))"),
    Case("bincount of floats", "torch.bincount(a)", {"a": (3,)}),
]


def exponentials() -> list[Case]:
    found = []
    for function in ("softmax", "log_softmax", "softmin", "logsumexp", "logcumsumexp"):
        owner = "torch.nn.functional" if function == "softmin" else "torch"
        shown = "softmin by hand" if function == "softmin" else function
        call = "torch.softmax(-a, {})" if function == "softmin" else owner + "." + function + "(a, {})"
        found += [Case(f"{shown} over {dim}", call.format(dim), {"a": (2, 3)}) for dim in ("0", "-1", "dim=1")]
    for function in ("softmax", "log_softmax", "logsumexp", "logcumsumexp"):
        found += [
            Case(f"{function} method", f"a.{function}(-1)", {"a": (2, 3)}),
            Case(f"{function} of 0-d", f"a.{function}(0)", {"a": ()}),
            Case(f"{function} of large numbers", f"a.{function}(0)", {"a": [1000.0, 1001.0, -1000.0]}, second=False),
            Case(f"{function} of -inf", f"a.{function}(0)", {"a": [1.0, -float("inf"), 2.0]}, second=False),
            Case(f"{function} beyond", f"a.{function}(2)", {"a": (2, 3)}),
            Case(f"{function} of ints", f"i.{function}(1)", {"i": ((2, 3), "int")}),
            Case(f"{function} of float32", f"a.{function}(1)", {"a": ((2, 3), "float32")}, second=False),
            Case(f"{function} of nothing", f"a.{function}(1)", {"a": (2, 0)}),
        ]
    found += [
        Case("softmax of ints as float64", "torch.softmax(i, 1, dtype=torch.float64)", {"i": ((2, 3), "int")}),
        Case("log_softmax as float32", "a.log_softmax(1, torch.float32)", {"a": (2, 3)}, rtol=1e-5),
        Case("logsumexp over a pair kept", "torch.logsumexp(a, (0, 1), keepdim=True)", {"a": (2, 3)}),
        Case("logsumexp of -inf alone", "torch.logsumexp(a, 0)", {"a": [-float("inf"), -float("inf")]}, grad=False),
    ]
    return found


def extremes() -> list[Case]:
    found = []
    for f in ("max", "min"):
        found += [
            Case(f"{f}", f"torch.{f}(a)", {"a": (2, 3)}),
            Case(f"{f} with ties", f"torch.{f}(a)", {"a": [1.0, 3.0, 3.0, 1.0]}),
            Case(f"{f} over 1", f"torch.{f}(a, 1)", {"a": (2, 3)}),
            Case(f"{f} over 0 kept", f"a.{f}(dim=0, keepdim=True)", {"a": (2, 3)}),
            Case(f"{f} over 1 with ties", f"a.{f}(1)", {"a": [[1.0, 3.0, 3.0, 1.0]]}),
            Case(f"{f} by name", f"m = a.{f}(1)\nresult = (m.values, m.indices)", {"a": (2, 3)}),
            Case(f"{f} of two", f"torch.{f}(a, b)", {"a": (2, 3), "b": (3,)}),
            Case(f"{f} of two that tie", f"a.{f}(b)", {"a": [1.0, 2.0], "b": [1.0, 3.0]}),
            Case(
                f"{f} of two dtypes", f"torch.{f}(a, i)", {"a": ((2, 3), "float32"), "i": ((2, 3), "int")}, second=False
            ),
            Case(f"{f} of ints", f"i.{f}(1)", {"i": ((2, 3), "int")}),
            Case(f"{f} of bools", f"b.{f}()", {"b": ((3,), "bool")}),
            Case(f"{f} of 0-d over 0", f"a.{f}(0)", {"a": ()}),
            Case(f"{f} of nothing", f"a.{f}()", {"a": (0,)}),
            Case(f"{f} of nothing over 1", f"a.{f}(1)", {"a": (2, 0)}),
            Case(f"{f} of no rows over 1", f"a.{f}(1)", {"a": (0, 2)}),
            Case(f"{f} with nan", f"a.{f}(0)", {"a": [1.0, float("nan"), 0.0]}),
            Case(f"{f} of all with nan", f"a.{f}()", {"a": [1.0, float("nan"), 0.0]}, grad=False),
            Case(f"{f} beyond", f"a.{f}(2)", {"a": (2, 3)}),
            Case(f"a{f} with ties", f"a.a{f}(0)", {"a": [1.0, 3.0, 3.0, 1.0]}),
            Case(f"arg{f} with ties", f"a.arg{f}()", {"a": [1.0, 3.0, 3.0, 1.0]}),
            Case(f"cum{f} over 1", f"torch.cum{f}(a, 1)", {"a": (2, 4)}),
            Case(f"cum{f} with ties", f"a.cum{f}(dim=0)", {"a": [1.0, 3.0, 3.0, 1.0, 1.0, 4.0]}),
            Case(f"cum{f} of ints", f"i.cum{f}(0)", {"i": ((3, 2), "int")}),
            Case(f"cum{f} with nan", f"a.cum{f}(0)", {"a": [1.0, float("nan"), 3.0]}, grad=False),
            Case(f"{f} over 1 in text", f"torch.tensor([[1., 2.], [4., 3.]], requires_grad=True).{f}(1)", text=True),
        ]
    found += [
        Case("aminmax", "torch.aminmax(a)", {"a": (2, 3)}),
        Case("aminmax over 1", "torch.aminmax(a, dim=1, keepdim=True)", {"a": (2, 3)}),
        Case("aminmax over two dims", "a.aminmax(dim=0)", {"a": (2, 3)}),
        Case("aminmax in text", "torch.aminmax(torch.tensor([1, 2, 3]))", text=True),
    ]
    return found


RUNNING = [
    *(
        Case(f"{f} {label}", code.format(f=f), {"a": (2, 3)}, rtol=1e-5 if "float32" in label else 1e-9)
        for f in ("cumsum", "cumprod")
        for label, code in {
            "over 0": "torch.{f}(a, 0)",
            "over -1": "torch.{f}(a, dim=-1)",
            "method": "a.{f}(1)",
            "in place": "y = a.clone()\ny.{f}_(1)\nresult = y",
            "as float32": "torch.{f}(a, 1, dtype=torch.float32)",
            "beyond": "a.{f}(2)",
        }.items()
    ),
    Case("cumsum of ints", "i.cumsum(0)", {"i": ((3, 2), "int")}),
    Case("cumsum of bools", "b.cumsum(0)", {"b": ((3,), "bool")}),
    Case("cumsum of 0-d", "a.cumsum(0)", {"a": ()}),
    Case("cumprod with zeros", "a.cumprod(0)", {"a": [2.0, 0.0, 3.0, 0.0, 4.0]}),
    Case("cumprod of 0-d", "a.cumprod(0)", {"a": ()}),
    Case("diff", "torch.diff(a)", {"a": (2, 4)}),
    Case("diff twice over 0", "a.diff(2, 0)", {"a": (4, 2)}),
    Case("diff with ends", "torch.diff(a, prepend=p, append=p)", {"a": (2, 3), "p": (2, 1)}),
    Case("diff of bools", "b.diff()", {"b": ((4,), "bool")}),
    Case("diff of 0-d", "a.diff()", {"a": ()}),
    Case("gradient", "torch.gradient(a)", {"a": (3, 4)}, second=False),
    Case("gradient of spacing", "torch.gradient(a, spacing=0.5, dim=0)", {"a": (4, 2)}, second=False),
    Case(
        "gradient at points",
        "torch.gradient(a, spacing=(torch.tensor([0.0, 1.0, 3.0, 4.0], dtype=torch.float64),))",
        {"a": (4,)},
        second=False,
    ),
    Case("gradient of second edges", "torch.gradient(a, edge_order=2)", {"a": (4,)}, second=False),
    Case("trapezoid", "torch.trapezoid(a)", {"a": (2, 4)}),
    Case("trapezoid of dx", "torch.trapezoid(a, dx=0.5, dim=0)", {"a": (3, 2)}),
    Case("trapezoid of x", "torch.trapezoid(a, x)", {"a": (2, 4), "x": (4,)}),
    Case("trapz", "torch.trapz(a, x, dim=1)", {"a": (2, 3), "x": (2, 3)}),
    Case("cumulative_trapezoid", "torch.cumulative_trapezoid(a, dx=2.0)", {"a": (2, 4)}),
]

NORMS = [
    *(
        Case(
            f"norm of order {label} over {dim or 'all'}",
            f"torch.norm(a, {text}{dim})",
            {"a": (2, 3)},
            second=label in ("2", "3", "0", "half"),
        )
        for label, text in {
            "2": "2",
            "1": "1",
            "3": "3",
            "inf": "float('inf')",
            "-inf": "float('-inf')",
            "0": "0",
            "half": "0.5",
        }.items()
        for dim in ("", ", 1")
    ),
    Case("norm", "torch.norm(a)", {"a": (2, 3)}),
    Case("norm method", "a.norm()", {"a": (2, 3)}),
    Case("norm method of p and dim", "a.norm(p=2, dim=1, keepdim=True)", {"a": (2, 3)}),
    Case("norm over dims", "a.norm(dim=(0, 1))", {"a": (2, 3)}),
    Case("norm as float32", "torch.norm(a, 2, dtype=torch.float32)", {"a": (2, 3)}),
    Case("norm fro", "torch.norm(a, 'fro')", {"a": (2, 3)}),
    Case("norm fro over dims", "torch.norm(a, p='fro', dim=(0, 1))", {"a": (2, 3)}),
    Case("norm nuc", "torch.norm(a, 'nuc')", {"a": (2, 3)}, second=False),
    Case("norm at 0", "torch.norm(a)", {"a": [0.0, 0.0]}, second=False),
    Case("norm of order 1 at 0", "torch.norm(a, 1)", {"a": [0.0, 1.0]}, second=False),
    Case("norm of order inf with ties", "torch.norm(a, float('inf'))", {"a": [2.0, -2.0, 1.0]}, second=False),
    Case("norm of ints", "i.norm()", {"i": ((3,), "int")}),
    Case("norm of complex", "c.norm()", {"c": ((3,), "complex")}, second=False),
    Case("norm of nothing", "a.norm()", {"a": (0,)}),
    Case("dist", "torch.dist(a, b)", {"a": (2, 3), "b": (3,)}),
    Case("dist of order 1", "a.dist(b, 1)", {"a": (2, 3), "b": (2, 3)}, second=False),
    Case("dist of order inf", "a.dist(b, float('inf'))", {"a": (2, 3), "b": (2, 3)}, second=False),
    *(
        Case(f"cdist of order {p}", f"torch.cdist(a, b, p={p})", {"a": (2, 3), "b": (4, 3)}, second=False)
        for p in ("2.0", "1.0", "3.0", "float('inf')", "0.0")
    ),
    Case("cdist of stacks", "torch.cdist(a, b)", {"a": (2, 2, 3), "b": (2, 3, 3)}, second=False),
    Case("cdist of different widths", "torch.cdist(a, b)", {"a": (2, 3), "b": (2, 4)}),
    Case("renorm", "torch.renorm(a, 2, 0, 1.0)", {"a": (3, 4)}, rtol=1e-6),
    Case("renorm of order 1 over 1", "a.renorm(1, 1, 0.5)", {"a": (2, 3)}, rtol=1e-6),
    Case("renorm in place", "y = a.clone()\ny.renorm_(2, 0, 0.7)\nresult = y", {"a": (2, 3)}, rtol=1e-6),
]

Z = {"a": ((2, 3), "complex")}
COMPLEX = [
    Case(f"{code} of complex numbers", f"a.{code}", Z)
    for code in (
        "cumsum(1)",
        "cumprod(1)",
        "std(1)",
        "mean()",
        "logsumexp(1)",
        "softmax(1)",
        "diff()",
        "norm(3)",
        "norm(1)",
        "prod(1)",
        "any()",
        "count_nonzero()",
        "cov()",
    )
]
HALF = [
    Case(
        f"{code} of half precision",
        f"a.half().{code}",
        {"a": ((2, 3), "float32")},
        grad=code not in ("norm()", "std(1)", "logsumexp(1)", "log_softmax(1)"),  # rounded elsewhere
        second=False,
    )
    for code in (
        "sum()",
        "sum(1)",
        "mean(0)",
        "max(1)",
        "softmax(1)",
        "norm()",
        "std(1)",
        "cumsum(0)",
        "amax()",
        "logsumexp(1)",
        "log_softmax(1)",
    )
]

KINDS = [
    *(
        Case(f"norm of order {order} at {name}", f"torch.linalg.vector_norm(x, {order})", {"x": x}, second=False)
        for order in (0.5, -1, -3.5)
        for name, x in (("zero", [0.0, 0.0]), ("a zero", [0.0, 2.0, -1.0]))
    ),
    Case(
        "cov of single and counts", "torch.cov(x.float(), fweights=torch.tensor([1, 2, 1]))", {"x": (2, 3)}, rtol=1e-5
    ),
    Case("cumsum of bytes", "torch.cumsum(n.to(torch.uint8), 0, dtype=torch.uint8)", {"n": ((3,), "int")}),
    Case("cumprod of bytes", "torch.cumprod(n.to(torch.uint8), 0, dtype=torch.uint8)", {"n": ((3,), "int")}),
    Case(
        "addbmm of bytes",
        "torch.addbmm(n[0].to(torch.uint8), n.to(torch.uint8), n.to(torch.uint8))",
        {"n": ((2, 3, 3), "int")},
    ),
    *(
        Case(
            f"{name} of large half",
            f"torch.nn.functional.{call}",
            {"x": [[[300.0, -400.0, 1000.0, 200.0]]]},
            grad=False,
        )
        for name, call in {
            "rms_norm": "rms_norm(x.half(), (4,))",
            "layer_norm": "layer_norm(x.half(), (4,))",
            "group_norm": "group_norm(x.half(), 1)",
        }.items()
    ),
    Case("diff of order 0 with ends", "torch.diff(x, 0, prepend=x, append=x) * 1", {"x": (3,)}),
    Case("gradient without a spacing", "torch.gradient(x, spacing=None)", {"x": (4,)}),
]

CASES: list[Case] = [
    *KINDS,
    *COMPLEX,
    *HALF,
    *several(),
    *single(),
    *SUMS,
    *STATISTICS,
    *exponentials(),
    *extremes(),
    *RUNNING,
    *NORMS,
]
