"""jax programs as operations of srcgrad: the walk over a jaxpr, and one rule per jax primitive, by topic."""
