"""The NumPy backend: readable Python source out; it defines what every op means."""
