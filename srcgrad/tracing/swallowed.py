"""Whether code of the user's catches the error of a traced value that was to become a number.

With the number itself there would be no error, so that what the handler gives is not what the function gives.
"""

from __future__ import annotations

import dis
import sys
import types
from typing import Any, Final

from srcgrad.ir.source import internal_frame

LIBRARIES: Final = sys.stdlib_module_names | {"numpy", "scipy"}
"""What may ask in vain, and does something else that is right."""
BEGINS: Final = "call_user"
"""The function that calls the user's, in `tracing.function`."""


def is_caught(frame: types.FrameType | None) -> bool:
    """Whether the nearest handler around what a frame does is one of the user's."""
    while frame is not None and frame.f_code.co_name != BEGINS:
        if not internal_frame(frame) and is_handled(frame.f_code, frame.f_lasti):
            return str(frame.f_globals.get("__name__")).partition(".")[0] not in LIBRARIES
        frame = frame.f_back
    return False


def is_handled(code: types.CodeType, place: int) -> bool:
    """Whether an error at a place of the code goes to a handler there: of a ``try``, also from a ``with`` inside it.

    The table names the innermost of what is around a place; what is around that is around its own place.
    """
    parse: Any = getattr(dis, "_parse_exception_table")  # noqa: B009
    table = parse(code)
    names = {instruction.offset: instruction.opname for instruction in dis.get_instructions(code)}
    behind = dict(zip(names, [*names.values()][1:], strict=False))
    for _ in table:
        target = next((entry.target for entry in table if entry.start <= place < entry.end), None)
        if target is None:
            return False
        if names.get(target) == "PUSH_EXC_INFO" and behind.get(target) != "WITH_EXCEPT_START":
            return True
        place = target
    return False
