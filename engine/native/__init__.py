"""Python kernels to machine code: CPU level, vector layer, object files and their loader.

Reading order: `level` (what this CPU can do), `simd` (vectors as Numba values), `units` (what is
compiled together), `compiler` (one unit to one object file), `objects` (keys, checks, loading),
`linker` (an object file to code that runs). Only `simd` and `compiler` need Numba and LLVM, and
only a process that compiles imports them.
"""
