"""``python -m benchmarks.gradbench``: the tool."""

from benchmarks.gradbench.tool import main

if __name__ == "__main__":
    main()
