"""Machine code for the CPU: loops of the language fused, and compiled by LLVM."""
