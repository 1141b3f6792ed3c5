"""Chains of products of stacked matrices, weighted with a tensor: the sums in derivatives of matrix functions.

Axes have names: those of a stack are counted from its end, so that a larger stack goes with a smaller one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from string import ascii_lowercase

from srcgrad.ir.opdef import REGISTRY, Term, broadcast_to
from srcgrad.ir.ops.divided import at_end
from srcgrad.ir.ops.linalg import transposed


def labels(term: Term, own: str) -> list[str]:
    """Names of the axes: those of the stack counted from its end, then ``own``."""
    count = term.rank - len(own)
    return [f"stack {count - 1 - k}" for k in range(count)] + list(own)


def contracted(left: Term, right: Term, left_axes: str, right_axes: str, axes: str) -> Term:
    """The sum of products over the axes that are not among ``axes``; stacks are aligned at their ends."""
    lhs, rhs = labels(left, left_axes), labels(right, right_axes)
    stack = max(lhs[: len(lhs) - len(left_axes)], rhs[: len(rhs) - len(right_axes)], key=len)
    wanted = [*stack, *axes]
    shared = [name for name in lhs if name in rhs]
    batch = [name for name in shared if name in wanted]
    summed = [name for name in shared if name not in wanted]

    def places(names: list[str], of: list[str]) -> tuple[int, ...]:
        return tuple(of.index(name) for name in names)

    attrs = {
        "contract": (places(summed, lhs), places(summed, rhs)),
        "batch": (places(batch, lhs), places(batch, rhs)),
    }
    found = REGISTRY["dot_general"](left, right, **attrs)
    order = batch + [name for name in lhs if name not in shared] + [name for name in rhs if name not in shared]
    perm = places(wanted, order)
    return found if perm == tuple(range(len(perm))) else REGISTRY["transpose"](found, perm=perm)


def product(left: Term, right: Term) -> Term:
    """The products of stacked matrices."""
    return contracted(left, right, "ij", "jk", "ik")


def chains(kernel: Term, matrices: Sequence[Term]) -> Term:
    """The sum over all orders of the matrices of the chains of products, weighted with the kernel."""
    total: Term | None = None
    for order in permutations(matrices):
        if order[0].rank > order[-1].rank:  # the smaller stack first, so that the tensor in between is small
            found = transposed(chain(kernel, [transposed(matrix) for matrix in order[::-1]]))
        else:
            found = chain(kernel, order)
        total = found if total is None else total + found
    assert total is not None
    return total


def chain(kernel: Term, matrices: Sequence[Term]) -> Term:
    """The sum over i_1 … i_(n-1) of kernel[i0, …, in] M_1[i0, i1] … M_n[i_(n-1), i_n]; the kernel is symmetric."""
    count = len(matrices)
    first = matrices[0]
    tensor = kernel.shape[kernel.rank - count - 1 :]
    stack = max(kernel.shape[: kernel.rank - count - 1], first.shape[:-2], key=len)
    shape, last = (*stack, *tensor), len(stack)
    placed = broadcast_to(first, shape, (*range(last - first.rank + 2, last), last, last + 1))
    found = at_end(kernel, shape) * placed
    for matrix, left in zip(matrices[1:], range(count - 1, 0, -1), strict=True):
        rest = ascii_lowercase[2 : 2 + left]
        found = contracted(found, matrix, "ab" + rest, "b" + rest[0], "a" + rest)
    return found
