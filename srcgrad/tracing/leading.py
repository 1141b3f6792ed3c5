"""Which line of the user's leads to code of a library's: what an analysis refuses there is told by that line too."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING

from srcgrad.tracing.bytecode import Refusal, instructions
from srcgrad.tracing.conversion.convert import library_file

if TYPE_CHECKING:
    from srcgrad.tracing.analysis import Analysis


def told_from(analysis: Analysis, index: int, refusal: Refusal) -> Refusal:
    """What is refused in node ``index``, with the user's line that leads there where that is in a library."""
    if not is_library(analysis.objects[index]):
        return refusal
    readers: dict[int, int] = {}
    for reader, node in enumerate(analysis.plan.nodes):
        for edge in map(analysis.plan.edges.__getitem__, node.edges):
            if edge.node is not None:
                readers.setdefault(edge.node, reader)
    seen = {index}
    while True:
        name, reader = analysis.plan.nodes[index].label, readers.get(index, 0)
        found = analysis.objects[reader]
        if isinstance(found, types.FunctionType) and not is_library(found):
            code = found.__code__
            line = next((line for _, said, line, _ in instructions(code) if said == name and line), None)
            return Refusal(f"{refusal}, which {name} leads to", code, line)
        if reader in seen:
            return refusal
        seen.add(reader)
        index = reader


def is_library(thing: object) -> bool:
    return isinstance(thing, types.FunctionType) and library_file(thing.__code__.co_filename)
