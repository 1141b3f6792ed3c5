"""The rows of ``benchmarks/run.py``, by what they measure: each module has ``ROWS``, from names to functions."""
