"""Functions of the language as XLA programs, through jax. Imports jax: the registry loads it at its first use."""
