"""The order of operations: those with a native form together, and what reads an array before what writes over it."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

from srcgrad.backends.llvm.planning import in_memory, overwritten
from srcgrad.ir.core import Literal, Operation, Value


def is_noticed(operation: Operation) -> bool:
    """Whether it is to be told from outside when an operation comes: it has an effect, or may not end."""
    if operation.op.effect or operation.op.name == "while":
        return True
    return any(is_noticed(inner) for region in operation.regions for inner in region.operations)


def ordered(operations: Sequence[Operation]) -> tuple[list[int], list[list[int]]]:
    """For each operation how many others it waits for, and those that wait for it.

    Effects keep their order; a loop without any has a place among them only by what it reads, so that the adjoint of a
    loop can stand with the loop, whose tape is native then, although a call of Python comes between them.
    """
    producers = {value: index for index, operation in enumerate(operations) for value in operation.results}
    waiting = [0] * len(operations)
    readers: list[list[int]] = [[] for _ in operations]
    last = -1
    for index, operation in enumerate(operations):
        needed = {producers[value] for value in operation.operands if value in producers}
        if is_noticed(operation):
            needed |= {last} - {-1}
            last = index
        waiting[index] = len(needed)
        for other in needed:
            readers[other].append(index)
    return waiting, readers


def arranged(operations: Sequence[Operation], is_native: Callable[[Operation], bool]) -> list[list[Operation]]:
    """The operations in a valid order, as runs of which every second one is native, the first perhaps of none."""
    waiting, readers = ordered(operations)
    native = [is_native(operation) for operation in operations]
    ready: tuple[list[int], list[int]] = ([], [])
    for index, count in enumerate(waiting):
        if not count:
            ready[native[index]].append(index)
    runs: list[list[Operation]] = []
    kind = False
    while ready[0] or ready[1]:
        run, queue = [], ready[kind]
        while queue:
            index = heapq.heappop(queue)
            run.append(operations[index])
            for other in readers[index]:
                waiting[other] -= 1
                if not waiting[other]:
                    heapq.heappush(ready[native[other]], other)
        runs.append(run)
        kind = not kind
    return runs


def reads_first(operations: Sequence[Operation]) -> Sequence[Operation]:
    """The operations in a valid order in which what may write over an array comes after others that read it."""
    written: dict[Value, set[int]] = {}
    for index, operation in enumerate(operations):
        for value in overwritten(operation):
            if in_memory(value.type) and not isinstance(value, Literal):
                written.setdefault(value, set()).add(index)
    if not written:
        return operations
    waiting, readers = ordered(operations)
    others = [0] * len(operations)
    """How many reads should come before."""
    for index, operation in enumerate(operations):
        for value in set(operation.operands) & written.keys():
            for writer in written[value] - {index}:
                others[writer] += 1
    ready = [index for index, count in enumerate(waiting) if not count]
    late: list[int] = []
    done = [False] * len(operations)
    found: list[Operation] = []
    while ready or late:
        from_late = not ready
        index = heapq.heappop(ready or late)
        if done[index]:
            continue
        if others[index] > 0 and not from_late:
            heapq.heappush(late, index)
            continue
        done[index] = True
        found.append(operations[index])
        for value in set(operations[index].operands) & written.keys():
            for writer in written[value] - {index}:
                others[writer] -= 1
                if not others[writer] and not waiting[writer]:
                    heapq.heappush(ready, writer)
        for other in readers[index]:
            waiting[other] -= 1
            if not waiting[other]:
                heapq.heappush(ready, other)
    return found
