"""The language and all that rewrites it. Imports the standard library and numpy only."""

if __name__ != "srcgrad.ir":
    raise ImportError("import srcgrad.ir, not ir: a bare import would make a second copy of every class")
