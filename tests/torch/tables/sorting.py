"""Order: sorting, ranks, quantiles, sets."""

from __future__ import annotations

from tests.torch.facts import Case

NAN = float("nan")
INF = float("inf")


def orders() -> list[Case]:
    found = []
    for label, text in {
        "": "",
        "over 0": "0",
        "descending": "1, descending=True",
        "stable": "dim=1, stable=True",
    }.items():
        text = f", {text}" if text else ""
        found += [
            Case(f"sort {label}", f"torch.sort(a{text})", {"a": (3, 4)}),
            Case(f"argsort {label}", f"torch.argsort(a{text})", {"a": (3, 4)}),
        ]
    return found


SORTS = [
    Case("sort method", "a.sort()", {"a": (5,)}),
    Case("sort by name", "s = a.sort(descending=True)\nresult = (s.indices, s.values)", {"a": (5,)}),
    Case("sort of ties", "torch.sort(a, stable=True)", {"a": [2.0, 1.0, 2.0, 1.0, 1.0]}),
    Case("sort of ties descending", "torch.sort(a, stable=True, descending=True)", {"a": [2.0, 1.0, 2.0, 1.0, 1.0]}),
    Case("sort of nan", "torch.sort(a)", {"a": [2.0, NAN, 1.0]}),
    Case("sort of nan descending", "torch.sort(a, descending=True)", {"a": [2.0, NAN, 1.0]}),
    Case("sort of ints descending", "i.sort(stable=True, descending=True)", {"i": ((6,), "int")}),
    Case("sort of bools", "b.sort(stable=True)", {"b": ((5,), "bool")}),
    Case("sort of 0-d", "a.sort()", {"a": ()}),
    Case("sort of nothing", "a.sort()", {"a": (0,)}),
    Case("sort of no columns", "a.sort(1)", {"a": (2, 0)}),
    Case("sort beyond", "a.sort(2)", {"a": (2, 3)}),
    Case("sort of complex", "c.sort()", {"c": ((3,), "complex")}),
    Case("sort of float32", "a.sort()", {"a": ((4,), "float32")}, second=False),
    Case("sort in text", "torch.sort(torch.tensor([3., 1., 2.]))", text=True),
    Case("argsort method", "a.argsort(0, True)", {"a": (3, 2)}),
    Case("msort", "torch.msort(a)", {"a": (3, 2)}),
    Case("msort method", "a.msort()", {"a": (3,)}),
]

RANKS = [
    Case("topk", "torch.topk(a, 2)", {"a": (2, 5)}),
    Case("topk of the smallest over 0", "a.topk(2, dim=0, largest=False)", {"a": (4, 2)}),
    Case("topk by name", "t = torch.topk(a, k=3, dim=1)\nresult = (t.values, t.indices)", {"a": (2, 5)}),
    Case("topk of none", "a.topk(0)", {"a": (3,)}),
    Case("topk of 0-d", "a.topk(1)", {"a": ()}),
    Case("topk of ints", "i.sum(0, keepdim=True).topk(1)", {"i": ((4,), "int")}),
    Case("topk of too many", "a.topk(4)", {"a": (3,)}),
    Case("topk in text", "torch.topk(torch.tensor([3., 1., 2.]), 2)", text=True),
    Case("kthvalue", "torch.kthvalue(a, 2)", {"a": (2, 5)}),
    Case("kthvalue over 0 kept", "a.kthvalue(1, 0, True)", {"a": (3, 2)}),
    Case("kthvalue beyond", "a.kthvalue(4)", {"a": (3,)}),
    Case("kthvalue of 0", "a.kthvalue(0)", {"a": (3,)}),
    Case("median", "torch.median(a)", {"a": (2, 3)}),
    Case("median of an odd number", "a.median()", {"a": (5,)}),
    Case("median over 1", "torch.median(a, 1)", {"a": (2, 4)}),
    Case("median over 0 kept", "a.median(dim=0, keepdim=True)", {"a": (3, 2)}),
    Case("median of nan", "a.median()", {"a": [1.0, NAN, 3.0, 2.0]}, grad=False),
    Case("median of nan over 0", "a.median(0)", {"a": [1.0, NAN, 3.0, 2.0]}, grad=False),
    Case("median of ints", "i.median()", {"i": ((5,), "int")}),
    Case("median of nothing", "a.median()", {"a": (0,)}, grad=False),
    Case("median of 0-d", "a.median()", {"a": ()}),
    Case("median over 1 in text", "torch.median(torch.tensor([[3., 1., 2.]]), 1)", text=True),
    Case("median of equal ones", "a.median()", {"a": [[1.0, 3.0, 3.0], [3.0, 0.0, 5.0]]}),
    Case("median of all equal", "a.median()", {"a": [2.0, 2.0, 2.0, 2.0]}),
    Case("median of infinite ones", "a.median()", {"a": [-INF, -INF, -INF, 1.0, INF, INF]}, second=False),
    Case("median of several nan", "a.median()", {"a": [1.0, NAN, NAN, 2.0]}, second=False),
    Case("nanmedian of equal ones", "a.nanmedian()", {"a": [1.0, NAN, 3.0, 3.0]}),
    Case("nanmedian", "torch.nanmedian(a)", {"a": [1.0, NAN, 3.0, 2.0]}),
    Case("nanmedian over 0", "a.nanmedian(0)", {"a": [[1.0, NAN], [NAN, 4.0], [3.0, 2.0], [0.5, 6.0]]}),
    Case("mode", "torch.mode(i)", {"i": [[3, 1, 1, 2], [2, 0, 2, 0]]}),
    Case("mode of floats over 0", "a.mode(0)", {"a": [[1.0, 5.0], [2.0, 5.0], [1.0, 4.0]]}),
    Case("mode kept", "a.mode(-1, True)", {"a": [3.0, 3.0, 2.0]}),
]

Q = "torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64)"
QUANTILES = [
    *(
        Case(f"{f} {label}", code.format(f=f), {"a": (2, 5)})
        for f in ("quantile", "nanquantile")
        for label, code in {
            "of all": "torch.{f}(a, 0.3)",
            "over 1": "torch.{f}(a, 0.5, dim=1)",
            "over 0 kept": "a.{f}(0.25, dim=0, keepdim=True)",
            "of several": "torch.{f}(a, " + Q + ", dim=1)",
            "of several kept": "torch.{f}(a, " + Q + ", dim=0, keepdim=True)",
            "lower": "a.{f}(0.4, 1, interpolation='lower')",
            "higher": "a.{f}(0.4, 1, interpolation='higher')",
            "nearest": "a.{f}(0.4, 1, interpolation='nearest')",
            "midpoint": "a.{f}(0.4, 1, interpolation='midpoint')",
            "out of range": "a.{f}(1.5)",
            "by an unknown rule": "a.{f}(0.5, interpolation='cubic')",
        }.items()
    ),
    Case("quantile of nan", "torch.quantile(a, 0.5)", {"a": [1.0, NAN, 3.0]}, grad=False),
    Case("nanquantile of nan", "torch.nanquantile(a, 0.5, 1)", {"a": [[1.0, NAN, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]]}),
    Case("quantile of nothing", "torch.quantile(a, 0.5)", {"a": (0,)}),
    Case("quantile of ints", "torch.quantile(i, 0.5)", {"i": ((3,), "int")}),
    Case("quantile of float32", "torch.quantile(a, 0.5)", {"a": ((4,), "float32")}, second=False),
    Case("quantile at another dtype", "torch.quantile(a, torch.tensor(0.5))", {"a": (4,)}),
]

SETS = [
    Case("unique", "torch.unique(i)", {"i": ((2, 4), "int")}),
    Case("unique of floats", "torch.unique(a)", {"a": [3.0, 1.0, 3.0]}, grad=False),
    Case("unique with all", "torch.unique(i, return_inverse=True, return_counts=True)", {"i": ((2, 4), "int")}),
    Case("unique with inverse", "i.unique(return_inverse=True)", {"i": ((5,), "int")}),
    Case("unique with counts", "torch.unique(i, return_counts=True)", {"i": ((5,), "int")}),
    Case("unique of rows", "torch.unique(i, dim=0)", {"i": [[1, 2], [0, 5], [1, 2]]}),
    Case(
        "unique of rows with all",
        "torch.unique(i, dim=0, return_inverse=True, return_counts=True)",
        {"i": [[1, 2], [0, 5], [1, 2]]},
    ),
    Case("unique of columns", "i.unique(dim=1)", {"i": [[1, 2, 1], [0, 5, 0]]}),
    Case("unique_consecutive", "torch.unique_consecutive(i)", {"i": [1, 1, 2, 2, 1, 3]}),
    Case(
        "unique_consecutive with all",
        "i.unique_consecutive(return_inverse=True, return_counts=True)",
        {"i": [1, 1, 2, 2, 1, 3]},
    ),
    Case("unique_consecutive of rows", "torch.unique_consecutive(i, dim=0)", {"i": [[1, 2], [1, 2], [0, 5], [1, 2]]}),
    Case("unique_consecutive of two dims", "torch.unique_consecutive(i)", {"i": [[1, 1], [1, 2]]}),
    Case("unique_consecutive of 0-d", "torch.unique_consecutive(a)", {"a": ()}, grad=False),
    Case("unique_consecutive of nothing", "torch.unique_consecutive(a)", {"a": (0,)}, grad=False),
    Case("isin", "torch.isin(i, torch.tensor([1, 2]))", {"i": ((2, 3), "int")}),
    Case("isin of a number", "torch.isin(i, 1)", {"i": ((2, 3), "int")}),
    Case("isin inverted", "torch.isin(i, torch.tensor([1, 2]), invert=True)", {"i": ((2, 3), "int")}),
    Case("isin of a number in elements", "torch.isin(1, i)", {"i": ((2, 3), "int")}),
]

STRIDES = [
    Case(f"strides of {code}", f"x.{code}.stride()", {"x": (2, 3)}, grad=False, text=True)
    for code in ("sort(1, descending=True)[0]", "sort(1, True)[1]", "argsort(0, True)", "topk(2)[0]")
]

CASES: list[Case] = [*STRIDES, *orders(), *SORTS, *RANKS, *QUANTILES, *SETS]
