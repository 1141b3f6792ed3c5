"""Six evals of GradBench in plain NumPy: the functions, the tool that speaks the protocol, and a table beside peers."""
