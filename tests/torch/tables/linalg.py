"""Products, decompositions, solvers: torch's own and those of torch.linalg."""

from __future__ import annotations

from tests.torch.facts import Case

SHAPES = {
    "1-d 1-d": ((3,), (3,)),
    "2-d 1-d": ((2, 3), (3,)),
    "1-d 2-d": ((3,), (3, 2)),
    "2-d 2-d": ((2, 3), (3, 2)),
    "3-d 2-d": ((2, 1, 3), (3, 2)),
    "3-d 1-d": ((2, 2, 3), (3,)),
    "1-d 3-d": ((3,), (2, 3, 2)),
    "2-d 3-d": ((2, 3), (2, 3, 1)),
    "3-d 3-d": ((2, 1, 3), (2, 3, 2)),
    "broadcast stacks": ((2, 1, 1, 3), (2, 3, 2)),
    "0-d": ((), (3,)),
    "mismatch": ((2, 3), (2, 3)),
    "1-d mismatch": ((2,), (3,)),
    "2-d 1-d mismatch": ((2, 3), (2,)),
    "stacks mismatch": ((2, 1, 3), (3, 3, 2)),
    "nothing": ((2, 0), (0, 3)),
}

MATMUL = [
    *(Case(f"matmul of {label}", "torch.matmul(a, b)", {"a": a, "b": b}) for label, (a, b) in SHAPES.items()),
    Case("matmul operator", "a @ b", {"a": (2, 3), "b": (3, 2)}),
    Case("matmul method", "a.matmul(b)", {"a": (2, 3), "b": (3,)}),
    Case("matmul of two dtypes", "a @ i", {"a": (2, 2), "i": ((2, 2), "int")}),
    Case("matmul of ints", "i @ i", {"i": ((2, 2), "int")}),
    Case("matmul of bools", "b @ b", {"b": ((2, 2), "bool")}),
    Case("matmul of complex", "a @ b", {"a": ((2, 2), "complex"), "b": ((2, 2), "complex")}),
    Case("matmul of float32", "a @ b", {"a": ((2, 3), "float32"), "b": ((3, 2), "float32")}, second=False),
    Case("matmul with a number", "torch.matmul(a, 2.0)", {"a": (2, 2)}),
    Case("mm", "torch.mm(a, b)", {"a": (2, 3), "b": (3, 2)}),
    Case("mm method", "a.mm(b)", {"a": (2, 3), "b": (3, 2)}),
    Case("mm of stacks", "torch.mm(a, b)", {"a": (2, 2, 3), "b": (3, 2)}),
    Case("mm mismatch", "torch.mm(a, b)", {"a": (2, 3), "b": (2, 3)}),
    Case("bmm", "torch.bmm(a, b)", {"a": (2, 2, 3), "b": (2, 3, 1)}),
    Case("bmm of matrices", "a.bmm(b)", {"a": (2, 3), "b": (3, 1)}),
    Case("bmm mismatch", "a.bmm(b)", {"a": (2, 2, 3), "b": (3, 3, 1)}),
    Case("mv", "torch.mv(a, b)", {"a": (2, 3), "b": (3,)}),
    Case("mv mismatch", "a.mv(b)", {"a": (2, 3), "b": (2,)}),
    Case("dot", "torch.dot(a, b)", {"a": (3,), "b": (3,)}),
    Case("dot mismatch", "a.dot(b)", {"a": (3,), "b": (2,)}),
    Case("dot of matrices", "a.dot(b)", {"a": (2, 3), "b": (2, 3)}),
    Case("dot of complex", "a.dot(b)", {"a": ((2,), "complex"), "b": ((2,), "complex")}),
    Case("vdot", "torch.vdot(a, b)", {"a": ((2,), "complex"), "b": ((2,), "complex")}),
    Case("vdot of reals", "a.vdot(b)", {"a": (3,), "b": (3,)}),
    Case("inner", "torch.inner(a, b)", {"a": (2, 3), "b": (4, 3)}),
    Case("inner of vectors", "a.inner(b)", {"a": (3,), "b": (3,)}),
    Case("inner with 0-d", "torch.inner(a, b)", {"a": (), "b": (3,)}),
    Case("outer", "torch.outer(a, b)", {"a": (2,), "b": (3,)}),
    Case("outer of matrices", "a.outer(b)", {"a": (2, 2), "b": (3,)}),
    Case("ger", "torch.ger(a, b)", {"a": (2,), "b": (3,)}),
    Case("chain_matmul", "torch.chain_matmul(a, b, c)", {"a": (2, 3), "b": (3, 1), "c": (1, 2)}),
    Case("kron", "torch.kron(a, b)", {"a": (2, 2), "b": (1, 3)}),
    Case("kron of other ranks", "a.kron(b)", {"a": (2,), "b": (2, 2)}),
    Case("tensordot of 1", "torch.tensordot(a, b, dims=1)", {"a": (2, 3), "b": (3, 2)}),
    Case("tensordot of lists", "torch.tensordot(a, b, dims=([1, 0], [0, 1]))", {"a": (2, 3), "b": (3, 2)}),
    Case("tensordot of 0", "torch.tensordot(a, b, 0)", {"a": (2,), "b": (3,)}),
    Case("tensordot of a length 1", "torch.tensordot(a, b, 1)", {"a": (2, 3), "b": (1, 2)}),
    Case("tensordot beyond", "torch.tensordot(a, b, dims=([2], [0]))", {"a": (2, 3), "b": (3, 2)}),
    Case("tensordot mismatch", "torch.tensordot(a, b, 1)", {"a": (2, 3), "b": (2, 3)}),
]

ADDED = [
    Case("addmm", "torch.addmm(m, a, b)", {"m": (2, 2), "a": (2, 3), "b": (3, 2)}),
    Case("addmm of a row", "torch.addmm(m, a, b, beta=0.5, alpha=2.0)", {"m": (2,), "a": (2, 3), "b": (3, 2)}),
    Case("addmm of beta 0", "m.addmm(a, b, beta=0)", {"m": (2, 2), "a": (2, 3), "b": (3, 2)}),
    Case(
        "addmm in place", "y = m.clone()\ny.addmm_(a, b, alpha=2)\nresult = y", {"m": (2, 2), "a": (2, 3), "b": (3, 2)}
    ),
    Case("addmm of ints", "torch.addmm(i, i, i, alpha=2)", {"i": ((2, 2), "int")}),
    Case("addmm mismatch", "torch.addmm(m, a, b)", {"m": (2, 2), "a": (2, 3), "b": (2, 3)}),
    Case("addmm that does not fit", "torch.addmm(m, a, b)", {"m": (3, 2), "a": (2, 3), "b": (3, 2)}),
    Case("addmv", "torch.addmv(m, a, b)", {"m": (2,), "a": (2, 3), "b": (3,)}),
    Case("addmv scaled", "m.addmv(a, b, beta=2, alpha=3)", {"m": (), "a": (2, 3), "b": (3,)}),
    Case("addmv in place", "y = m.clone()\ny.addmv_(a, b)\nresult = y", {"m": (2,), "a": (2, 3), "b": (3,)}),
    Case("addr", "torch.addr(m, a, b)", {"m": (2, 3), "a": (2,), "b": (3,)}),
    Case("addr scaled", "m.addr(a, b, beta=0.5, alpha=2)", {"m": (2, 3), "a": (2,), "b": (3,)}),
    Case("addr in place", "y = m.clone()\ny.addr_(a, b)\nresult = y", {"m": (2, 3), "a": (2,), "b": (3,)}),
    Case("baddbmm", "torch.baddbmm(m, a, b)", {"m": (2, 1, 2), "a": (2, 1, 3), "b": (2, 3, 2)}),
    Case("baddbmm scaled", "m.baddbmm(a, b, beta=2, alpha=0.5)", {"m": (2,), "a": (2, 1, 3), "b": (2, 3, 2)}),
    Case("addbmm", "torch.addbmm(m, a, b)", {"m": (1, 2), "a": (2, 1, 3), "b": (2, 3, 2)}),
    Case("addbmm scaled", "m.addbmm(a, b, beta=2, alpha=0.5)", {"m": (1, 2), "a": (2, 1, 3), "b": (2, 3, 2)}),
]

EINSUM = [
    Case("einsum of a product", "torch.einsum('ij,jk->ik', a, b)", {"a": (2, 3), "b": (3, 2)}),
    Case("einsum of stacks", "torch.einsum('bij,bjk->bik', a, b)", {"a": (2, 1, 3), "b": (2, 3, 2)}),
    Case("einsum of a trace", "torch.einsum('ii', a)", {"a": (3, 3)}),
    Case("einsum of a diagonal", "torch.einsum('ii->i', a)", {"a": (3, 3)}),
    Case("einsum of a sum", "torch.einsum('ij->', a)", {"a": (2, 3)}),
    Case("einsum of a transpose", "torch.einsum('ij->ji', a)", {"a": (2, 3)}),
    Case("einsum with dots", "torch.einsum('...ij,...jk->...ik', a, b)", {"a": (2, 1, 3), "b": (3, 2)}),
    Case("einsum of three", "torch.einsum('i,ij,j->', a, m, b)", {"a": (2,), "m": (2, 3), "b": (3,)}),
    Case("einsum of an outer product", "torch.einsum('i,j->ij', a, b)", {"a": (2,), "b": (3,)}),
    Case("einsum implicit", "torch.einsum('ij,jk', a, b)", {"a": (2, 3), "b": (3, 2)}),
    Case("einsum of a list", "torch.einsum('ij,ij->i', [a, b])", {"a": (2, 3), "b": (2, 3)}),
    Case("einsum of index lists", "torch.einsum(a, [0, 1], b, [1, 2], [0, 2])", {"a": (2, 3), "b": (3, 2)}),
    Case("einsum mismatch", "torch.einsum('ij,jk->ik', a, b)", {"a": (2, 3), "b": (2, 3)}),
    Case("einsum of too few", "torch.einsum('ij,jk->ik', a)", {"a": (2, 3)}),
]

SQUARE = {"a": (3, 3)}
SPD = {"a": ((3, 3), "spd")}
SYMMETRIC = "(a + a.mT)"
MATRICES = [
    *(
        Case(f"{function}", f"{function}(a)", SQUARE)
        for function in (
            "torch.det",
            "torch.linalg.det",
            "torch.slogdet",
            "torch.linalg.slogdet",
            "torch.inverse",
            "torch.linalg.inv",
            "torch.matrix_exp",
            "torch.linalg.matrix_exp",
            "torch.pinverse",
            "torch.linalg.pinv",
        )
    ),
    *(
        Case(f"{function} of stacks", f"{function}(a)", {"a": (2, 2, 2)})
        for function in ("torch.det", "torch.linalg.slogdet", "torch.inverse", "torch.matrix_exp", "torch.linalg.pinv")
    ),
    *(
        Case(f"{function} of a wide matrix", f"{function}(a)", {"a": (2, 3)})
        for function in (
            "torch.det",
            "torch.linalg.slogdet",
            "torch.inverse",
            "torch.matrix_exp",
            "torch.linalg.eigh",
            "torch.linalg.eig",
            "torch.linalg.cholesky",
            "torch.logdet",
        )
    ),
    Case("det method", "a.det()", SQUARE),
    Case("det of complex", "a.det()", {"a": ((2, 2), "complex")}),
    Case("det of a vector", "a.det()", {"a": (3,)}),
    Case("det of ints", "i.det()", {"i": ((2, 2), "int")}),
    Case("logdet", "torch.logdet(a)", SPD),
    Case("logdet of a negative", "torch.logdet(a)", {"a": [[-1.0, 0.0], [0.0, 1.0]]}, grad=False),
    Case("slogdet by name", "s = torch.slogdet(a)\nresult = (s.sign, s.logabsdet)", SQUARE),
    Case("slogdet in text", "torch.linalg.slogdet(torch.tensor([[2., 0.], [0., 1.]]))", text=True),
    Case("inverse method", "a.inverse()", SQUARE),
    Case("inverse of singular", "torch.inverse(a)", {"a": [[1.0, 2.0], [2.0, 4.0]]}),
    Case("inverse of complex", "torch.linalg.inv(a)", {"a": ((2, 2), "complex")}),
    Case("inv_ex", "torch.linalg.inv_ex(a)", {"a": (2, 2)}),
    *(Case(f"matrix_power of {n}", f"torch.matrix_power(a, {n})", SQUARE) for n in (0, 1, 2, 3, 5, -1, -2)),
    Case("linalg.matrix_power", "torch.linalg.matrix_power(a, 3)", {"a": (2, 2, 2)}),
    Case("pinverse of a wide matrix", "torch.pinverse(a)", {"a": (2, 3)}),
    Case("pinv of hermitian", f"torch.linalg.pinv({SYMMETRIC}, hermitian=True)", {"a": (2, 2)}),
    Case("pinv of rank 1", "torch.linalg.pinv(a)", {"a": [[1.0, 2.0], [2.0, 4.0]]}, second=False),
    Case("matrix_rank", "torch.linalg.matrix_rank(a)", {"a": [[1.0, 2.0], [2.0, 4.0]]}),
    Case("matrix_rank of stacks", "torch.linalg.matrix_rank(a)", {"a": (2, 3, 2)}),
    Case("matrix_rank of tol", "torch.linalg.matrix_rank(a, tol=0.5)", {"a": [[1.0, 0.0], [0.0, 0.1]]}),
    Case("cond", "torch.linalg.cond(a)", {"a": (2, 2)}),
    *(
        Case(f"cond of order {p}", f"torch.linalg.cond(a, {p})", {"a": (2, 2)}, grad=p not in ("1", "'fro'"))
        for p in ("1", "'fro'", "-2", "'nuc'")
    ),
    Case("multi_dot", "torch.linalg.multi_dot([a, b, c])", {"a": (2, 3), "b": (3, 1), "c": (1, 2)}),
    Case("multi_dot of vectors", "torch.linalg.multi_dot((a, b, c))", {"a": (3,), "b": (3, 2), "c": (2,)}),
    Case("vander", "torch.linalg.vander(a)", {"a": (3,)}),
    Case("vander of N", "torch.linalg.vander(a, N=4)", {"a": (2,)}),
    Case("linalg.cross", "torch.linalg.cross(a, b)", {"a": (2, 3), "b": (1, 3)}, second=False),
    Case("linalg.cross of other ranks", "torch.linalg.cross(a, b)", {"a": (2, 3), "b": (3,)}),
    Case("cross", "torch.cross(a, b, dim=1)", {"a": (2, 3), "b": (2, 3)}, second=False),
    Case("cross over 0", "a.cross(b, 0)", {"a": (3, 2), "b": (3, 2)}, second=False),
    Case("cross of another length", "torch.linalg.cross(a, b)", {"a": (2, 2), "b": (2, 2)}),
    Case("linalg.diagonal", "torch.linalg.diagonal(a)", {"a": (2, 2, 3)}),
    Case("linalg.diagonal beside", "torch.linalg.diagonal(a, offset=1)", {"a": (2, 3)}),
    Case("vecdot", "torch.linalg.vecdot(a, b)", {"a": (2, 3), "b": (2, 3)}),
    Case(
        "vecdot over 0 of complex",
        "torch.linalg.vecdot(a, b, dim=0)",
        {"a": ((2, 2), "complex"), "b": ((2, 2), "complex")},
        grad=False,
    ),
]

FACTORS = [
    Case("cholesky", "torch.linalg.cholesky(a)", SPD),
    Case("cholesky upper", "torch.linalg.cholesky(a, upper=True)", SPD),
    Case("cholesky of an indefinite one", "torch.linalg.cholesky(a)", {"a": [[1.0, 2.0], [2.0, 1.0]]}),
    Case("cholesky of stacks", "torch.linalg.cholesky(a)", {"a": ((2, 2, 2), "spd")}),
    Case("cholesky_ex", "torch.linalg.cholesky_ex(a)", SPD),
    Case("cholesky_solve", "torch.cholesky_solve(b, torch.linalg.cholesky(a))", {**SPD, "b": (3, 2)}),
    Case(
        "cholesky_solve upper",
        "torch.cholesky_solve(b, torch.linalg.cholesky(a, upper=True), upper=True)",
        {**SPD, "b": (3, 2)},
    ),
    Case("cholesky_inverse", "torch.cholesky_inverse(torch.linalg.cholesky(a))", SPD),
    Case("qr", "torch.linalg.qr(a)", {"a": (3, 2)}),
    Case("qr complete", "torch.linalg.qr(a, mode='complete')", {"a": (2, 2)}),
    Case("qr of r alone", "torch.linalg.qr(a, 'r')", {"a": (3, 2)}, grad=False),
    Case("qr wide", "torch.linalg.qr(a)", {"a": (2, 3)}),
    Case("qr of an unknown mode", "torch.linalg.qr(a, mode='full')", {"a": (2, 2)}),
    Case("svd values", "torch.linalg.svd(a).S", {"a": (3, 2)}),
    Case(
        "svd product", "u, s, vh = torch.linalg.svd(a, full_matrices=False)\nresult = (u * s.exp()) @ vh", {"a": (3, 2)}
    ),
    Case("svd projector", "u, s, v = torch.svd(a)\nresult = u.abs(), s, v.abs()", {"a": (3, 2)}, second=False),
    Case("svd full", "torch.linalg.svd(a)[0].abs()", {"a": (3, 2)}, grad=False),
    Case("svd of only some values", "torch.svd(a, some=False).S", {"a": (2, 3)}),
    Case("svdvals", "torch.linalg.svdvals(a)", {"a": (3, 2)}),
    Case("eigvalsh", "torch.linalg.eigvalsh(a)", SPD),
    Case("eigvalsh of the upper triangle", "torch.linalg.eigvalsh(a, UPLO='U')", SPD),
    Case("eigh", "w, v = torch.linalg.eigh(a)\nresult = w, v.abs()", SPD),
    Case("eigh of a function", "w, v = torch.linalg.eigh(a)\nresult = (v * w.exp()) @ v.mT", SPD),
    Case("eigh by name", "found = torch.linalg.eigh(a)\nresult = found.eigenvalues", SPD),
    Case("eigvals", "torch.linalg.eigvals(a)", {"a": [[1.0, 2.0], [0.5, 4.0]]}),
    Case("eig", "w, v = torch.linalg.eig(a)\nresult = w", {"a": [[1.0, 2.0], [0.5, 4.0]]}),
    Case(
        "eig of vectors", "w, v = torch.linalg.eig(a)\nresult = v.abs()", {"a": [[1.0, 2.0], [0.5, 4.0]]}, second=False
    ),
    Case("eig of a rotation", "torch.linalg.eigvals(a)", {"a": [[0.0, -2.0], [1.0, 0.0]]}),
    Case("lu", "torch.linalg.lu(a)", SQUARE),
    Case("lu wide", "torch.linalg.lu(a)", {"a": (2, 3)}),
    Case("lu_factor", "torch.linalg.lu_factor(a)", SQUARE),
    Case("lu_factor of a stack", "torch.linalg.lu_factor(a)", {"a": (2, 3, 2)}),
    Case("lu_factor of a singular one in a stack", "torch.linalg.lu_factor(a)", {"a": [[[1.0]], [[0.0]]]}),
    Case("lu of nothing", "torch.linalg.lu(a)", {"a": (2, 0)}),
    Case("torch.lu", "torch.lu(a)", SQUARE),
    Case(
        "lu_solve",
        "LU, p = torch.linalg.lu_factor(a)\nresult = torch.linalg.lu_solve(LU, p, b)",
        {**SQUARE, "b": (3, 2)},
    ),
    Case(
        "torch.lu_solve",
        "LU, p = torch.linalg.lu_factor(a)\nresult = torch.lu_solve(b, LU, p)",
        {**SQUARE, "b": (3, 2)},
    ),
    Case("lu_unpack", "torch.lu_unpack(*torch.linalg.lu_factor(a))", SQUARE),
    Case("lu_unpack of a wide stack", "torch.lu_unpack(*torch.linalg.lu_factor(a))", {"a": (2, 2, 3)}),
    Case("qr in text", "torch.linalg.qr(torch.tensor([[2., 0.], [0., 1.]]))", text=True),
    Case("eigh in text", "torch.linalg.eigh(torch.tensor([[2., 0.], [0., 1.]]))", text=True),
]

SOLVERS = [
    Case("solve", "torch.linalg.solve(a, b)", {**SQUARE, "b": (3, 2)}),
    Case("solve of a vector", "torch.linalg.solve(a, b)", {**SQUARE, "b": (3,)}),
    Case("solve of stacks", "torch.linalg.solve(a, b)", {"a": (2, 2, 2), "b": (2, 2)}),
    Case("solve of one matrix and stacks", "torch.linalg.solve(a, b)", {"a": (2, 2), "b": (2, 2, 1)}),
    Case("solve from the right", "torch.linalg.solve(a, b, left=False)", {**SQUARE, "b": (2, 3)}),
    Case("solve of singular", "torch.linalg.solve(a, b)", {"a": [[1.0, 2.0], [2.0, 4.0]], "b": (2,)}),
    Case("solve mismatch", "torch.linalg.solve(a, b)", {**SQUARE, "b": (2, 2)}),
    Case("solve of a wide one", "torch.linalg.solve(a, b)", {"a": (2, 3), "b": (2,)}),
    Case("solve_ex", "torch.linalg.solve_ex(a, b)", {**SQUARE, "b": (3,)}),
    Case("solve_triangular", "torch.linalg.solve_triangular(a, b, upper=True)", {"a": (3, 3), "b": (3, 2)}),
    Case(
        "solve_triangular lower of ones",
        "torch.linalg.solve_triangular(a, b, upper=False, unitriangular=True)",
        {"a": (3, 3), "b": (3, 2)},
    ),
    Case(
        "solve_triangular from the right",
        "torch.linalg.solve_triangular(a, b, upper=True, left=False)",
        {"a": (2, 2), "b": (3, 2)},
    ),
    Case("triangular_solve", "torch.triangular_solve(b, a)", {"a": (3, 3), "b": (3, 2)}),
    Case(
        "triangular_solve transposed",
        "b.triangular_solve(a, upper=False, transpose=True).solution",
        {"a": (3, 3), "b": (3, 2)},
    ),
    Case("lstsq", "torch.linalg.lstsq(a, b).solution", {"a": (4, 2), "b": (4, 3)}),
    Case("lstsq whole", "torch.linalg.lstsq(a, b)", {"a": (4, 2), "b": (4, 3)}, grad=False),
    Case("lstsq under-determined", "torch.linalg.lstsq(a, b)[0]", {"a": (2, 3), "b": (2, 1)}),
    Case("tensorsolve", "torch.linalg.tensorsolve(a, b)", {"a": (2, 2, 4), "b": (2, 2)}),
    Case("tensorinv", "torch.linalg.tensorinv(a, ind=1)", {"a": (4, 2, 2)}),
]

NORMS = [
    Case("linalg.norm", "torch.linalg.norm(a)", {"a": (2, 3)}),
    *(
        Case(f"linalg.norm of order {p}", f"torch.linalg.norm(a, {p})", {"a": (2, 3)}, second="fro" in p)
        for p in ("'fro'", "'nuc'", "2", "-2", "1", "-1", "float('inf')", "-float('inf')")
    ),
    *(
        Case(f"linalg.norm of a vector of order {p}", f"torch.linalg.norm(a, {p})", {"a": (3,)}, second=p in "230")
        for p in ("2", "1", "3", "0", "float('inf')", "-float('inf')")
    ),
    Case("linalg.norm over 1", "torch.linalg.norm(a, dim=1)", {"a": (2, 3)}),
    Case("linalg.norm over a pair", "torch.linalg.norm(a, dim=(0, 1), keepdim=True)", {"a": (2, 3)}),
    Case("linalg.norm of three dims", "torch.linalg.norm(a)", {"a": (2, 1, 3)}),
    Case("vector_norm", "torch.linalg.vector_norm(a)", {"a": (2, 3)}),
    Case("vector_norm of order 3 over 0", "torch.linalg.vector_norm(a, ord=3, dim=0)", {"a": (2, 3)}),
    Case("vector_norm of order 4 kept", "torch.linalg.vector_norm(a, 4, (0, 1), keepdim=True)", {"a": (2, 3)}),
    Case("vector_norm as float32", "torch.linalg.vector_norm(a, dtype=torch.float32)", {"a": (3,)}),
    Case("vector_norm of ints", "torch.linalg.vector_norm(i)", {"i": ((3,), "int")}),
    Case("matrix_norm", "torch.linalg.matrix_norm(a)", {"a": (2, 2, 3)}),
    Case("matrix_norm of order 2", "torch.linalg.matrix_norm(a, 2)", {"a": (2, 2, 3)}),
    Case("matrix_norm of order 1 kept", "torch.linalg.matrix_norm(a, 1, keepdim=True)", {"a": (2, 2, 3)}, second=False),
    Case("matrix_norm of other dims", "torch.linalg.matrix_norm(a, dim=(0, 2))", {"a": (2, 2, 3)}),
    Case("matrix_norm of a vector", "torch.linalg.matrix_norm(a)", {"a": (3,)}),
    Case("matrix_norm of an unknown order", "torch.linalg.matrix_norm(a, 3)", {"a": (2, 2)}),
]

Z = ((2, 2), "complex")
HERMITIAN = "(a @ a.mH + torch.eye(2, dtype=a.dtype))"
COMPLEX = [
    *(
        Case(f"{label} of complex matrices", code, {"a": Z, "b": Z})
        for label, code in {
            "solve": "torch.linalg.solve(a, b)",
            "solve from the right": "torch.linalg.solve(a, b, left=False)",
            "solve_triangular": "torch.linalg.solve_triangular(a, b, upper=True)",
            "lu_solve": "torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b, adjoint=True)",
            "addmm": "torch.addmm(a, a, b, beta=2j, alpha=1 + 1j)",
            "einsum": "torch.einsum('ij,jk->ki', a, b)",
            "tensordot": "torch.tensordot(a, b, 2)",
            "kron": "torch.kron(a, b)",
            "inner": "torch.inner(a, b)",
            "lstsq": "torch.linalg.lstsq(a, b).solution",
        }.items()
    ),
    *(
        Case(f"{label} of a complex matrix", code, {"a": Z})
        for label, code in {
            "pinv": "torch.linalg.pinv(a)",
            "matrix_exp": "torch.matrix_exp(a)",
            "slogdet": "torch.linalg.slogdet(a)",
            "logdet": "torch.logdet(a)",
            "matrix_power": "torch.matrix_power(a, 3)",
            "svdvals": "torch.linalg.svdvals(a)",
            "eigvals": "torch.linalg.eigvals(a)",
            "cholesky": f"torch.linalg.cholesky({HERMITIAN})",
            "eigvalsh": f"torch.linalg.eigvalsh({HERMITIAN})",
            "nuclear norm": "torch.linalg.norm(a, 'nuc')",
            "vector_norm of order 3": "torch.linalg.vector_norm(a, 3)",
            "trace": "a.trace()",
        }.items()
    ),
    Case("qr of a complex matrix", "torch.linalg.qr(a)", {"a": Z}, second=False),
    Case("lu of a complex matrix", "torch.linalg.lu(a)", {"a": Z}, second=False),
    Case("outer of complex vectors", "torch.outer(a, b)", {"a": ((2,), "complex"), "b": ((3,), "complex")}),
    Case("bmm of complex stacks", "torch.bmm(a, b)", {"a": ((2, 1, 2), "complex"), "b": ((2, 2, 1), "complex")}),
]

CASES: list[Case] = [*COMPLEX, *MATMUL, *ADDED, *EINSUM, *MATRICES, *FACTORS, *SOLVERS, *NORMS]
