"""Reductions, sorting and linear algebra beyond the recorded tables: named results, errors, precision, transforms."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest

import srcgrad.torch as torch
from tests.torch import facts


def test_the_coordinates_of_a_gradient_have_one_of_their_own() -> None:
    x = torch.tensor([4.0, 2.0, 6.0], requires_grad=True)
    y = torch.tensor([1.0, 5.0, 3.0], requires_grad=True)
    (found,) = torch.gradient(y, spacing=[x])
    assert found.tolist() == [-2.0, -3.5, -0.5]
    slopes = torch.autograd.grad(found.sum(), [y, x])
    assert [slope.tolist() for slope in slopes] == [[1.5, -1.5, 0.0], [1.5, -2.25, 0.75]]


def test_named_results_unpack_index_and_pickle() -> None:
    found = torch.tensor([[1.0, 3.0], [5.0, 2.0]]).max(1)
    values, indices = found
    assert found.values is values is found[0]
    assert found.indices is indices
    assert isinstance(found, tuple)
    again = pickle.loads(pickle.dumps(found))
    assert type(again) is type(found)
    assert again.values.tolist() == [3.0, 5.0]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.bool, torch.int8, torch.float32])
def test_a_product_has_the_dtype_that_is_asked_for(dtype: Any) -> None:
    x = torch.tensor([[2, 3], [100, 5]])
    for found in (x.prod(1, dtype=dtype), x.prod(1, True, dtype=dtype), torch.prod(x, dtype=dtype)):
        assert found.dtype is dtype
    wanted = {torch.bool: [True, True], torch.uint8: [6, 244], torch.int8: [6, -12], torch.float32: [6.0, 500.0]}
    assert x.prod(1, dtype=dtype).tolist() == wanted[dtype]
    assert torch.prod(x).dtype is torch.int64


def test_sums_and_products_of_whole_numbers_by_equations_and_powers_are_int64() -> None:
    x = torch.tensor([[2, 3], [100, 200]], dtype=torch.uint8)
    for equation, found in (("ij->", 305), ("ij->j", [102, 203]), ("ii->", 202)):
        assert torch.einsum(equation, x).dtype is torch.int64
        assert torch.einsum(equation, x).tolist() == found
    assert torch.einsum("ij->ji", x).dtype is torch.einsum("ij,j->i", x, x[0]).dtype is torch.uint8
    assert torch.linalg.vander(x[1]).dtype is torch.int64
    assert torch.vander(x[1], 3).tolist() == [[10_000, 100, 1], [40_000, 200, 1]]


def test_powers_of_a_vector_as_rows() -> None:
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    assert torch.vander(x).tolist() == [[2.0, 1.0], [3.0, 1.0]]
    assert torch.vander(x, 3, increasing=True).tolist() == [[1.0, 2.0, 4.0], [1.0, 3.0, 9.0]]
    torch.vander(x, N=4).sum().backward()
    assert x.grad.tolist() == [1 + 4 + 12.0, 1 + 6 + 27.0]
    assert torch.vander(torch.tensor([2, 3]), 0).shape == (2, 0)
    with pytest.raises(RuntimeError, match="one-dimensional"):
        torch.vander(torch.ones(2, 2))
    with pytest.raises(RuntimeError, match="non-negative"):
        torch.vander(torch.ones(2), -1)


def test_a_search_in_rows_for_nothing_finds_nothing() -> None:
    assert torch.searchsorted(torch.zeros(0, 0), torch.zeros(0, 0)).shape == (0, 0)
    assert torch.searchsorted(torch.zeros(2, 3), torch.zeros(2, 0)).shape == (2, 0)


def test_out_takes_what_a_reduction_gives() -> None:
    values, indices = torch.empty(0), torch.empty(0, dtype=torch.int64)
    torch.max(torch.tensor([[1.0, 3.0], [5.0, 2.0]]), 1, out=(values, indices))
    assert (values.tolist(), indices.tolist()) == ([3.0, 5.0], [1, 0])
    total = torch.empty(())
    torch.sum(torch.ones(3), out=total)
    assert total.item() == 3.0


@pytest.mark.parametrize("name", ["sum", "cumsum", "nansum"])
def test_half_precision_is_summed_in_single_precision(name: str) -> None:
    ones = torch.ones(4096, 2, dtype=torch.float16)
    found = getattr(ones, name)(0)
    assert found.dtype is torch.float16
    assert (found if name != "cumsum" else found[-1]).tolist() == [4096.0, 4096.0]


def test_what_changes_nothing_is_a_copy() -> None:
    x = torch.ones(3)
    for copy in (x.diff(0), torch.einsum("i->i", x), torch.eye(3).matrix_power(1), x.sum(()), x[0].cumsum(0)):
        assert not np.shares_memory(copy._data, x._data)
    assert torch.fft.fftshift(torch.tensor(2.0)).item() == 2.0


def test_the_mean_of_half_precision_does_not_overflow() -> None:
    assert torch.full((10,), 60000.0, dtype=torch.float16).mean().item() == 60000.0


SINGULAR = [[1.0, 2.0], [2.0, 4.0]]


def test_a_singular_matrix_has_no_inverse() -> None:
    with pytest.raises(torch.linalg.LinAlgError, match=r"linalg\.inv: The diagonal element 2 is zero"):
        torch.inverse(torch.tensor(SINGULAR))
    with pytest.raises(RuntimeError, match=r"\(Batch element 1\): The diagonal element 2 is zero"):
        torch.linalg.inv(torch.tensor([[[1.0, 0.0], [0.0, 1.0]], SINGULAR]))
    with pytest.raises(torch.linalg.LinAlgError, match="the input matrix is singular"):
        torch.linalg.solve(torch.tensor(SINGULAR), torch.ones(2))
    with pytest.raises(torch.linalg.LinAlgError, match=r"U\[2,2\] is zero"):
        torch.linalg.lu_factor(torch.tensor(SINGULAR))


def test_an_indefinite_matrix_has_no_cholesky_factor() -> None:
    bad = torch.tensor([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]]])
    with pytest.raises(torch.linalg.LinAlgError, match=r"\(Batch element 1\).*the leading minor of order 2"):
        torch.linalg.cholesky(bad)


def test_the_ex_forms_tell_of_a_failure() -> None:
    inverse, info = torch.linalg.inv_ex(torch.tensor(SINGULAR))
    assert info.item() == 2
    assert math.isnan(inverse[0, 0].item())
    assert torch.linalg.cholesky_ex(torch.tensor([[1.0, 2.0], [2.0, 1.0]])).info.item() == 2
    assert torch.linalg.solve_ex(torch.tensor(SINGULAR), torch.ones(2)).info.item() == 1
    with pytest.raises(torch.linalg.LinAlgError):
        torch.linalg.inv_ex(torch.tensor(SINGULAR), check_errors=True)


def test_the_derivative_of_det_is_right_at_a_singular_matrix() -> None:
    a = torch.tensor(SINGULAR, requires_grad=True)
    a.det().backward()
    assert a.grad is not None
    assert a.grad.tolist() == [[4.0, -2.0], [-2.0, 1.0]]


def test_a_function_of_equal_eigenvalues_has_its_derivative() -> None:
    a = torch.eye(2, dtype=torch.float64, requires_grad=True)
    torch.linalg.eigvalsh(a).exp().sum().backward()
    assert a.grad is not None
    np.testing.assert_allclose(a.grad.numpy(), math.e * np.eye(2), rtol=1e-14)


def test_the_older_names_give_what_linalg_gives() -> None:
    a = torch.tensor([[4.0, 1.0], [1.0, 3.0]], dtype=torch.float64)
    assert torch.equal(torch.cholesky(a, upper=True), torch.linalg.cholesky(a, upper=True))
    assert torch.equal(a.qr().R, torch.linalg.qr(a).R)
    packed, pivots, info = torch.lu(a, get_infos=True)
    assert torch.equal(packed, torch.linalg.lu_factor(a).LU)
    assert pivots.tolist() == [1, 2]
    assert info.item() == 0
    assert torch.ger(a[0], a[1]).tolist() == torch.outer(a[0], a[1]).tolist()
    assert a.svd(compute_uv=False).S.tolist() == torch.linalg.svdvals(a).tolist()


def test_lstsq_of_a_stack_solves_each() -> None:
    a = torch.tensor([[[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]], [[2.0, 1.0], [1.0, 1.0], [0.0, 3.0]]], dtype=torch.float64)
    b = torch.ones(2, 3, 1, dtype=torch.float64)
    found = torch.linalg.lstsq(a, b, driver="gelsd")
    for k in range(2):
        alone = np.linalg.lstsq(a[k].numpy(), b[k].numpy(), None)
        np.testing.assert_allclose(found.solution[k].numpy(), alone[0], rtol=1e-12)
        np.testing.assert_allclose(found.residuals[k].numpy(), alone[1], rtol=1e-12)
        np.testing.assert_allclose(found.singular_values[k].numpy(), alone[3], rtol=1e-12)
    assert found.rank.tolist() == [2, 2]


def test_products_take_their_operands_by_keyword() -> None:
    m = torch.eye(2)
    assert torch.addmm(m, mat1=m, mat2=m).tolist() == [[2.0, 0.0], [0.0, 2.0]]
    assert torch.matmul(m, other=m).tolist() == m.tolist()
    with pytest.raises(TypeError, match="unexpected keyword argument 'mat3'"):
        torch.addmm(m, m, mat3=m)


def test_what_beta_0_ignores_may_be_nan() -> None:
    m = torch.full((2, 2), math.nan)
    assert torch.addmm(m, torch.eye(2), torch.eye(2), beta=0).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_each_matrix_has_a_tolerance() -> None:
    """As PyTorch's: the larger of both bounds, of which the relative one is 0 where only the absolute one is given."""
    stack = torch.tensor(np.stack([np.diag([1.0, 1e-3, 1e-6]), np.zeros((3, 3)), np.diag([5.0, 1e-2, 1e-7])]))
    bounds = torch.tensor([1e-4, 1e-4, 1e-8], dtype=torch.float64)
    assert torch.linalg.matrix_rank(stack, atol=bounds).tolist() == [2, 0, 3]
    assert torch.linalg.matrix_rank(stack, rtol=bounds, atol=1e-3).tolist() == [1, 0, 2]
    assert torch.linalg.matrix_rank(stack, tol=torch.tensor([[1e-4], [1e-8]])).tolist() == [[2, 0, 2], [3, 0, 3]]
    found = torch.linalg.pinv(stack, atol=bounds)
    assert [np.count_nonzero(x) for x in found.numpy()] == [2, 0, 3]
    np.testing.assert_allclose(found[2].numpy(), np.diag([0.2, 1e2, 1e7]))
    assert torch.linalg.pinv(stack[:1], rtol=torch.tensor([[1e-4], [1e-8]])).shape == (2, 1, 3, 3)
    assert torch.linalg.pinv(torch.zeros(0, 3, 4), atol=0.1).shape == (0, 4, 3)


def test_a_pseudo_inverse_with_a_tolerance_for_each_matrix_has_derivatives() -> None:
    x = torch.tensor(np.random.default_rng(0).normal(size=(2, 4, 3)), requires_grad=True)
    bounds = torch.tensor([1e-4, 1e-8], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda x: torch.linalg.pinv(x, rtol=bounds), x)
    assert torch.autograd.gradgradcheck(lambda x: torch.linalg.pinv(x, atol=bounds), x)


def test_equations_of_no_matrices_have_empty_solutions() -> None:
    a, b = torch.zeros(0, 3, 3, requires_grad=True), torch.zeros(0, 3, 2, requires_grad=True)
    factors, pivots = torch.linalg.lu_factor(a)
    solutions = [
        torch.linalg.lu_solve(factors, pivots, b),
        torch.linalg.lu_solve(factors, pivots, b.mT, left=False, adjoint=True).mT,
        torch.cholesky_solve(b, a),
        torch.linalg.solve_triangular(a, b, upper=True),
    ]
    for found in solutions:
        assert found.shape == (0, 3, 2) and found.dtype == torch.float32
        slopes = torch.autograd.grad(found.sum(), (a, b), retain_graph=True)
        assert [slope.shape for slope in slopes] == [(0, 3, 3), (0, 3, 2)]
    assert torch.cholesky_inverse(a).shape == (0, 3, 3)
    assert torch.cholesky_solve(torch.zeros(2, 0, 3, 2), a).shape == (2, 0, 3, 2)


# --- the transforms of srcgrad.torch.func -------------------------------------------------------------

AREAS = ("reductions", "sorting", "linalg", "fft")
LEFT_OUT = ("of nothing", "half precision")
"""In the names of cases: means of no elements are nan, and half precision has too few digits to compare."""


def is_real_function(case: facts.Case, known: dict[str, Any]) -> bool:
    """Whether a case is a differentiable function of real numbers, with a real result."""
    arrays = [facts.made(case, name, spec) for name, spec in case.inputs.items()]
    return (
        "grad" in known
        and not any(words in case.name for words in LEFT_OUT)
        and all(array.dtype.kind != "c" for array in arrays)
        and any("float" in value["dtype"] for value in known["values"] if isinstance(value, dict))
    )


TABLE = [
    pytest.param(case, id=f"{area}-{case.name}")
    for area in AREAS
    for known in [facts.recorded(area)]
    for case in facts.cases(area)
    if is_real_function(case, known[case.name])
]


def tensors_of(case: facts.Case) -> dict[str, torch.Tensor]:
    found = {}
    for name, spec in case.inputs.items():
        array = facts.made(case, name, spec)
        found[name] = torch.tensor(array.tolist(), dtype=getattr(torch, array.dtype.name)).reshape(tuple(array.shape))
    return found


def result_of(case: facts.Case, given: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """The tensors that a case gives."""
    scope = {"torch": torch, "np": np, **given}
    if "\n" in case.code:
        exec(case.code, scope)
    else:
        scope["result"] = eval(case.code, scope)
    return [x for x in facts.flat(scope["result"]) if isinstance(x, torch.Tensor)]


@pytest.mark.parametrize("case", TABLE)
def test_only_views_share_memory_with_an_operand(case: facts.Case) -> None:
    given = tensors_of(case)
    for result in result_of(case, given):
        assert result._data.flags.writeable
        for operand in given.values():
            is_view = result is operand or result._base is not None
            assert is_view or not np.shares_memory(result._data, operand._data)


@pytest.mark.parametrize("case", TABLE)
def test_transforms_give_the_derivative_of_eager_mode(case: facts.Case) -> None:
    given = tensors_of(case)
    names = [name for name, tensor in given.items() if tensor.is_floating_point()]
    points = [given[name] for name in names]

    def total(*tensors: torch.Tensor) -> torch.Tensor:
        found = result_of(case, given | dict(zip(names, tensors, strict=True)))
        leaves = [x for x in found if x.is_floating_point()]
        return sum((leaf.sum().double() for leaf in leaves[1:]), leaves[0].sum().double())

    leaves = [point.clone().requires_grad_() for point in points]
    eager = torch.autograd.grad(total(*leaves), leaves, allow_unused=True, materialize_grads=True)
    reverse = torch.func.grad(total, argnums=tuple(range(len(points))))(*points)
    for found, wanted in zip(reverse, eager, strict=True):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5, atol=1e-8)
    ones = tuple(torch.ones_like(point) for point in points)
    forward = torch.func.jvp(total, tuple(points), ones)[1]
    sums = [wanted.double().sum().item() for wanted in eager]
    np.testing.assert_allclose(forward.item(), sum(sums), rtol=1e-4, atol=1e-6)
