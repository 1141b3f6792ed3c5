"""Conversion of user functions: Python's control flow and calls become operators that know traced values.

`sources` finds the text of a function, `jumps` replaces jumps by flags, `statements` and `expressions` rewrite the
syntax tree, `convert` compiles it over the function's own cells and globals. `operators` is what converted code runs.
"""
