"""The nodes of a function's text: what is a part of what, and where made nodes stand."""

from __future__ import annotations

import ast
import inspect

import pytest

from srcgrad.tracing.conversion import loops, names, statements
from srcgrad.tracing.conversion.sources import entries

MODULES = [loops, names, statements]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rsplit(".")[-1])
def test_all_nodes_are_met_but_contexts_and_operators(module: object) -> None:
    tree = ast.parse(inspect.getsource(module))  # type: ignore[arg-type]
    silent = (ast.expr_context, ast.operator, ast.boolop, ast.unaryop)
    wanted = [node for node in ast.walk(tree) if not isinstance(node, silent)]
    assert [id(node) for node in names.all_nodes(tree)] == [id(node) for node in wanted]


def test_nodes_of_all_kinds_are_met() -> None:
    text = """
@decorated(a)
async def f(x: int, /, *y, k=1, **z) -> float:
    global g
    async for a, in b:
        pass
    async with c as d, e:
        await x
    return [p async for p in q if not r if s < t <= u], {**v, w: 1}, {0}, f'{x!r:>{y}}', lambda: (yield)

class C(D, metaclass=E):
    match x:
        case {'a': [1, *rest], **more} | C(x=2) as whole if whole:
            del x[1:2, ...], y.z
        case _:
            raise A from B
    try:
        assert (n := 1), 'text'
    except* F as error:
        import a.b as c
        from d import e as f
    finally:
        x += -1 ** 2
"""
    tree = ast.parse(text)
    silent = (ast.expr_context, ast.operator, ast.boolop, ast.unaryop)
    wanted = [ast.dump(node) for node in ast.walk(tree) if not isinstance(node, silent)]
    assert [ast.dump(node) for node in names.all_nodes(tree)] == wanted


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rsplit(".")[-1])
def test_made_nodes_stand_where_pythons_own_function_puts_them(module: object) -> None:
    def bare() -> ast.Module:
        tree = ast.parse(inspect.getsource(module))  # type: ignore[arg-type]
        for number, node in enumerate(ast.walk(tree)):
            if number % 3 == 0:
                for name in node._attributes:
                    if hasattr(node, name):
                        delattr(node, name)
        return tree

    found, wanted = bare(), ast.fix_missing_locations(bare())
    names.located(found)
    assert ast.dump(found, include_attributes=True) == ast.dump(wanted, include_attributes=True)


def test_functions_are_found_in_the_order_of_their_lines_with_their_classes() -> None:
    text = "f = lambda: 1; g = lambda: 2\nclass C:\n    class D:\n        def h(self): return lambda: 3\n"
    text += "    def k(self): pass\n"
    found = entries("<these lines>", text)
    assert found is not None
    shown = {line: [(type(x.node).__name__, x.owner) for x in there] for line, there in found.items()}
    assert shown == {
        1: [("Lambda", None), ("Lambda", None)],
        4: [("FunctionDef", "D"), ("Lambda", "D")],
        5: [("FunctionDef", "C")],
    }
    first, second = (x.node for x in found[1])
    assert first.col_offset < second.col_offset
