"""Which blocks of the user's code lead to what an analysis refuses, so that it may look at the functions without them.

A trace that comes to such a block is refused then, with the same reason (`conversion.blocks`). What decides that it
does not is read outside of the block, and is a guard or part of the key of the program as ever.
"""

from __future__ import annotations

import ast
import inspect
import types
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from srcgrad.tracing.bytecode import Refusal
from srcgrad.tracing.conversion.blocks import Block, as_block, innermost
from srcgrad.tracing.conversion.calls import MANAGING
from srcgrad.tracing.conversion.convert import Ends
from srcgrad.tracing.conversion.sources import Unconvertible, find_source
from srcgrad.tracing.dispatching import BOUND, DISPATCHED
from srcgrad.tracing.floating_errors import STATED
from srcgrad.tracing.leading import told_from
from srcgrad.tracing.savepoints import Savepoint

if TYPE_CHECKING:
    from srcgrad.tracing.reach import ObjectAnalysis

MOST: Final = 32
"""How often the analysis begins again to pass over blocks."""
Codes = dict[tuple[types.CodeType, str], Ends]
"""By code and file, the blocks that are passed over, and why."""


FOLLOWED: Final = frozenset({STATED, DISPATCHED, BOUND, MANAGING})
"""Code of libraries around functions that are converted."""


class Reader(NamedTuple):
    """Where something is read: the node of a function, the code in it, a line of that and the name."""

    node: int
    code: types.CodeType | None = None
    line: int | None = None
    name: Any = None


def reader_of(analysis: ObjectAnalysis, refusal: Refusal) -> Reader:
    reader = analysis.at
    if refusal.name is not None and reader.code in (None, refusal.code):
        return Reader(reader.node, refusal.code, refusal.line, refusal.name)
    return reader


def look_at(analysis: ObjectAnalysis, index: int) -> None:
    """Visit a node; again without the blocks of it that lead to what is refused, once some are passed over."""
    before = Savepoint(analysis) if analysis.unreached and not analysis.whole else None
    while True:
        try:
            analysis.visit_node(index)
            return
        except Refusal as refusal:
            told = told_from(analysis, index, refusal)
            found = None if before is None else passing_over_here(analysis, index, told)
            if before is None or found is None:
                raise told from None
        before.restore()
        analysis.unreached = found


def passing_over_here(analysis: ObjectAnalysis, index: int, refusal: Refusal) -> Codes | None:
    """The same as `passing_over` of what is refused in a function, if it is in this that blocks lead there.

    None too if another function of its code has been looked at: that would have been without these blocks.
    """
    reader, function = reader_of(analysis, refusal), analysis.objects[index]
    if reader.node != index or reader.line is None or not may_pass(analysis, function):
        return None
    if any(is_of_code(other, function.__code__) for other in analysis.objects[:index]):
        return None
    return with_blocks(analysis, refusal, function.__code__, blocks_around(function.__code__, reader))


def is_of_code(thing: Any, code: types.CodeType) -> bool:
    return isinstance(thing, types.FunctionType) and thing.__code__ == code


def passing_over(analysis: ObjectAnalysis, refusal: Refusal) -> Codes | None:
    """The blocks to pass over with those that lead to what is refused; None if it is read in any case."""
    reader, seen = reader_of(analysis, refusal), set()
    if analysis.begun >= MOST:
        return None
    methods: list[types.CodeType] = []
    while reader.node not in seen and reader.node < len(analysis.objects):
        seen.add(reader.node)
        function = analysis.objects[reader.node]
        if reader.line is not None and may_pass(analysis, function):
            passed = with_blocks(analysis, refusal, function.__code__, blocks_around(function.__code__, reader))
            if passed is not None:
                return passed
            if reader.node and id(function) in analysis.methods:
                methods.append(function.__code__)
        if reader.node >= len(analysis.origins):
            break
        reader = analysis.origins[reader.node]
    found = (with_blocks(analysis, refusal, code, body_of(code)) for code in methods)
    return next((passed for passed in found if passed is not None), None)


def with_blocks(
    analysis: ObjectAnalysis, refusal: Refusal, code: types.CodeType, blocks: frozenset[Block]
) -> Codes | None:
    """What is passed over already, and blocks of a code; None if there are no new ones."""
    key = (code, code.co_filename)
    known = analysis.unreached.get(key, frozenset())
    found = blocks - {block for block, _ in known}
    return {**analysis.unreached, key: known | {(block, str(refusal)) for block in found}} if found else None


def may_pass(analysis: ObjectAnalysis, function: Any) -> bool:
    """Whether each trace runs the function converted: no cache and no class does it as it is."""
    if not isinstance(function, types.FunctionType) or id(function) in analysis.implicit:
        return False
    return not function.__code__.co_flags & inspect.CO_GENERATOR and analysis.is_converted(function)


def require_conversion(analysis: ObjectAnalysis) -> None:
    """Refuse what is passed over in functions that code may call which is run as it is: caches, and libraries.

    The function that is traced itself is called as converted code would call it.
    """
    functions = [
        found
        for found, node in zip(analysis.objects, analysis.plan.nodes, strict=True)
        if node.kind == "function" and found.__code__ not in FOLLOWED
    ]
    passed = dict(analysis.unreached)
    for found in functions[:1]:
        passed.pop((found.__code__, found.__code__.co_filename), None)
    if not passed:
        return
    cached = analysis.native or any(node.kind == "cached" for node in analysis.plan.nodes)
    if cached or not all(map(analysis.is_converted, functions)):
        analysis.whole = True
        raise Refusal(min(reason for blocks in passed.values() for _, reason in blocks))


def body_of(code: types.CodeType) -> frozenset[Block]:
    """All of a method, which another one of its name may be called for: the analysis goes by names."""
    try:
        node = find_source(code).node
    except Unconvertible:
        return frozenset()
    block = None if isinstance(node, ast.Lambda) else as_block(node.body)
    return frozenset() if block is None else frozenset({block})


def blocks_around(code: types.CodeType, reader: Reader) -> frozenset[Block]:
    try:
        return frozenset(innermost(find_source(code).node, reader.line or 0, reader.name))
    except Unconvertible:
        return frozenset()
