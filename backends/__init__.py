"""What runs the language: one folder per backend, each imported when it is first asked for."""

if __name__ != "srcgrad.backends":
    raise ImportError("import srcgrad.backends, not backends: a bare import would make a second copy of every class")
