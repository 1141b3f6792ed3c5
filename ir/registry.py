"""Tables that modules fill when they are imported, some of them only when an entry of theirs is asked for.

A program uses few of the ops and rules there are, and a process that starts should not read the others. Nothing says
which module has which entry: the modules are imported one by one, in the order given, until the entry is there. Those
of common entries come first.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, ValuesView
from typing import Any, Final, TypeVar, overload

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")


class Registry(dict[K, V]):
    """A dict that imports what may fill it: for a key that it lacks, and all of it where all entries are asked for.

    Args:
        may_hold: whether a key that is not there may be an entry of a module that is not imported yet.

    >>> table = Registry()
    >>> table["a"] = 1
    >>> "a" in table, table.get("b")
    (True, None)
    """

    def __init__(self, may_hold: Callable[[Any], bool] = lambda key: True) -> None:
        super().__init__()
        self.may_hold: Final = may_hold
        self.later: list[str] = []

    def filled_by(self, package: str, modules: Iterable[str]) -> None:
        """Name modules of a package that fill the table when they are imported, the most asked for first."""
        self.later.extend(f"{package}.{module}" for module in modules)

    def _search(self, key: Any) -> bool:
        """Whether the entry is there after the imports that may bring it."""
        if not self.later or not self.may_hold(key):
            return False
        while self.later and not super().__contains__(key):
            self._import_first()
        return super().__contains__(key)

    def _import_first(self) -> None:
        module = self.later[0]
        importlib.import_module(module)  # two threads may be here: the second waits for the first one's import
        with contextlib.suppress(ValueError):  # the other has been here
            self.later.remove(module)

    def _fill(self) -> None:
        while self.later:
            self._import_first()

    def __missing__(self, key: K) -> V:
        if self._search(key):
            return super().__getitem__(key)
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or self._search(key)

    @overload
    def get(self, key: K, default: None = None, /) -> V | None: ...
    @overload
    def get(self, key: K, default: V, /) -> V: ...
    @overload
    def get(self, key: K, default: D, /) -> V | D: ...
    def get(self, key: K, default: Any = None, /) -> Any:
        return super().__getitem__(key) if key in self else default

    def __iter__(self) -> Iterator[K]:
        self._fill()
        return super().__iter__()

    def __len__(self) -> int:
        self._fill()
        return super().__len__()

    def keys(self) -> KeysView[K]:  # type: ignore[override]
        self._fill()
        return super().keys()

    def values(self) -> ValuesView[V]:  # type: ignore[override]
        self._fill()
        return super().values()

    def items(self) -> ItemsView[K, V]:  # type: ignore[override]
        self._fill()
        return super().items()
