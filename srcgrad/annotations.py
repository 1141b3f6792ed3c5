"""What functions and classes say of types: its names need not exist.

From Python 3.14 on annotations are code that runs when somebody asks for them (PEP 649).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any, Final

ANNOTATE: Final = "__annotate_func__"
"""The name by which a class holds the code of its annotations."""
ASKING: Final = frozenset({ANNOTATE, "__annotate__", "__annotations__"})
"""The names by which that code may be run."""


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """As `inspect.signature`, but where annotations are code they are texts here: that it fails does not matter.

    Raises:
        ValueError: there is none, or an object that is called cannot be compared with Python's classes, which is asked.
    """
    options: dict[str, Any] = {}
    if sys.version_info >= (3, 14):
        import annotationlib

        options["annotation_format"] = annotationlib.Format.STRING
    try:
        return inspect.signature(function, **options)
    except TypeError:
        raise
    except Exception as error:
        raise ValueError(f"no signature of a {type(function).__name__}: {error}") from error
