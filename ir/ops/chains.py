"""Chains of products of stacked matrices, weighted with a tensor: the sums in derivatives of matrix functions.

Axes have names: those of a stack are counted from its end, so that a larger stack goes with a smaller one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from string import ascii_lowercase

from srcgrad.ir.opdef import REGISTRY, Term, broadcast_to
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
    every = (False,) * (len(matrices) + 1)
    return total([chain(kernel, order, every) for order in permutations(matrices)])


def total(terms: Sequence[Term]) -> Term:
    found, *others = terms
    for other in others:
        found = found + other
    return found


def chain(kernel: Term, matrices: Sequence[Term], shared: Sequence[bool]) -> Term:
    """The sum over i_1 … i_(n-1) of kernel[i0, …, in] M_1[i0, i1] … M_n[i_(n-1), i_n]; the kernel is symmetric.

    For indices that are ``shared`` the kernel has no axis: it is the same for all of their values.
    """
    if matrices[0].rank > matrices[-1].rank:  # the smaller stack first, so that the tensor in between is small
        return transposed(chain(kernel, [transposed(matrix) for matrix in matrices[::-1]], shared[::-1]))
    count = len(matrices)
    first = matrices[0]
    names = ascii_lowercase[: count + 1]
    own = [name for name, flag in zip(names, shared, strict=True) if not flag]
    stack = max(kernel.shape[: kernel.rank - len(own)], first.shape[:-2], key=len)
    sizes = dict(zip(own, kernel.shape[kernel.rank - len(own) :], strict=True))
    sizes |= dict(zip("ab", first.shape[-2:], strict=True))
    axes = [name for name in names if name in sizes]
    last = len(stack)
    shape = (*stack, *(sizes[name] for name in axes))
    kernel_stack = range(last - (kernel.rank - len(own)), last)
    weights = broadcast_to(kernel, shape, (*kernel_stack, *(last + axes.index(name) for name in own)))
    found = weights * broadcast_to(first, shape, (*range(last - first.rank + 2, last), last, last + 1))
    for k, matrix in enumerate(matrices[1:], start=1):
        before, after = names[k], names[k + 1]
        left = "".join(axes)
        axes = ["a", after, *(name for name in axes if name not in ("a", before, after))]
        found = contracted(found, matrix, left, before + after, "".join(axes))
    return found
